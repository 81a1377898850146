"""Samples of ops that gradients and fused cells are made of, and of connectionist temporal classification."""

import itertools

import numpy as np

from stoker._src.base.errors import InvalidArgumentError
from tests.ops.nn.test_normalization import lrn
from tests.ops.samples import Sample, check_sample, f64, samples


def single(*shape):
    return f64(*shape).astype(np.float32)


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def differences(function, x, step=1e-6):
    """The gradient of a function of one array that returns a number."""
    result = np.zeros(x.shape)
    for index in np.ndindex(*x.shape):
        change = np.zeros(x.shape)
        change[index] = step
        result[index] = (function(x + change) - function(x - change)) / (2 * step)
    return result


# ---- normalization ----------------------------------------------------------------------------------------------

EPSILON = np.float32(1e-3)


def batch_norm_gradient(dy, x, scale, mean, variance, *_):
    """The gradient with the batch's own statistics; the last two outputs hold nothing."""
    axes = (0, 1, 2)
    deviation = np.sqrt(variance + EPSILON)
    normal = (x - mean) / deviation
    dx = scale / deviation * (dy - dy.mean(axes) - normal * (dy * normal).mean(axes))
    return dx, (dy * normal).sum(axes), dy.sum(axes), np.zeros(0), np.zeros(0)


IMAGE = single(2, 3, 2, 2)
STATISTICS = [IMAGE.mean((0, 1, 2)), IMAGE.var((0, 1, 2))]
NORM = {"epsilon": float(EPSILON)}
NORM_INPUTS = [single(2, 3, 2, 2), IMAGE, single(2), *STATISTICS]
EMPTY = np.zeros(0, np.float32)


def global_norm_gradient(t, m, v, gamma, backprop):
    deviation = np.sqrt(v + 1e-3)
    axes = (0, 1, 2)
    return (
        backprop * gamma / deviation,
        (backprop * -gamma / deviation).sum(axes),
        (backprop * (t - m) * gamma * -0.5 / deviation**3).sum(axes),
        backprop.sum(axes),
        (backprop * (t - m) / deviation).sum(axes),
    )


def lrn_gradient(g, x, y):
    return differences(lambda x: np.sum(lrn(x, 1, 1.0, 0.5, 0.75) * g), x.astype(np.float64))


LRN_INPUT = single(1, 1, 2, 4)
NORMALIZATION = [
    Sample("FusedBatchNormGrad", NORM_INPUTS, NORM, reference=batch_norm_gradient, gradient=False, static=False, rtol=1e-4, atol=1e-5),
    Sample("FusedBatchNormGradV2", NORM_INPUTS, NORM, reference=batch_norm_gradient, gradient=False, static=False, rtol=1e-4, atol=1e-5),
    Sample("FusedBatchNormGradV3", [*NORM_INPUTS, EMPTY], NORM, reference=batch_norm_gradient, gradient=False, static=False, rtol=1e-4, atol=1e-5),
    Sample("FusedBatchNormV2", [IMAGE, single(2), single(2), *STATISTICS], {"is_training": False, **NORM}, gradient=False, rtol=1e-4,
           reference=lambda x, s, o, m, v: (s * (x - m) / np.sqrt(v + EPSILON) + o, m, v, m, v)),
    Sample("BatchNormWithGlobalNormalizationGrad", [f64(2, 3, 2, 2), f64(2), np.abs(f64(2)), f64(2), f64(2, 3, 2, 2)],
           {"variance_epsilon": 1e-3, "scale_after_normalization": True}, gradient=False, reference=global_norm_gradient),
    Sample("LRNGrad", [single(1, 1, 2, 4), LRN_INPUT, lrn(LRN_INPUT.astype(np.float64), 1, 1.0, 0.5, 0.75).astype(np.float32)],
           {"depth_radius": 1, "bias": 1.0, "alpha": 0.5, "beta": 0.75}, reference=lrn_gradient, gradient=False, rtol=1e-4, atol=1e-5),
]  # fmt: skip

# ---- windows ----------------------------------------------------------------------------------------------------

PLANE = np.random.RandomState(6).permutation(32).reshape(1, 4, 4, 2).astype(np.float64)
SPACE = np.random.RandomState(7).permutation(64).reshape(1, 4, 4, 4, 1).astype(np.float64)
HALVES = {"ksize": [1, 2, 2, 1], "strides": [1, 2, 2, 1], "padding": "VALID"}
CUBES = {"ksize": [1, 2, 2, 2, 1], "strides": [1, 2, 2, 2, 1], "padding": "VALID"}
FIRST = {"strides": [1, 1, 1, 1], "rates": [1, 1, 1, 1], "padding": "VALID"}


def highest(x):
    """The largest of each window of two by two (by two), and where it is."""
    spatial = x.ndim - 2
    blocks = x.reshape(-1, *itertools.chain(*((size // 2, 2) for size in x.shape[1:-1])), x.shape[-1])
    inside = tuple(2 + 2 * axis for axis in range(spatial))
    top = blocks.max(inside, keepdims=True)
    return top.reshape(x.shape[0], *(size // 2 for size in x.shape[1:-1]), x.shape[-1]), (blocks == top).reshape(
        x.shape
    )


def places(x):
    """The flat index, within an image, of each window's largest element."""
    top, _ = highest(x)
    return np.array([np.flatnonzero(x.ravel() == value)[0] for value in top.ravel()]).reshape(top.shape)


def spread(x, g):
    """`g` of the windows at their largest elements."""
    repeated = g
    for axis in range(1, x.ndim - 1):
        repeated = np.repeat(repeated, 2, axis)
    return np.where(highest(x)[1], repeated, 0)


def chosen(x, g):
    """Of each window, the element of `g` where `x` is largest."""
    _, mask = highest(x)
    return highest(np.where(mask, g, -1e9))[0]


def dilation(x, kernel):
    height, width = kernel.shape[:2]
    rows, columns = x.shape[1] - height + 1, x.shape[2] - width + 1
    shifted = [x[:, i : i + rows, j : j + columns] + kernel[i, j] for i in range(height) for j in range(width)]
    return np.max(shifted, 0)


KERNEL = f64(2, 2, 2)
WINDOWS = [
    Sample("MaxPoolWithArgmax", [PLANE], HALVES, reference=lambda x: (highest(x)[0], places(x)), gradient=False),
    Sample("MaxPoolGradWithArgmax", [PLANE, f64(1, 2, 2, 2), places(PLANE)], HALVES, reference=lambda x, g, at: spread(x, g), gradient=False),
    Sample("MaxPoolGradGradWithArgmax", [PLANE, f64(1, 4, 4, 2), places(PLANE)], HALVES, reference=lambda x, g, at: chosen(x, g), gradient=False),
    Sample("MaxPoolGradGradV2", [PLANE, highest(PLANE)[0], f64(1, 4, 4, 2), [1, 2, 2, 1], [1, 2, 2, 1]], {"padding": "VALID"},
           reference=lambda x, y, g, *_: chosen(x, g), gradient=False),
    Sample("MaxPool3DGradGrad", [SPACE, highest(SPACE)[0], f64(1, 4, 4, 4, 1)], CUBES, reference=lambda x, y, g: chosen(x, g), gradient=False),
    Sample("MaxPoolWithArgmax", [PLANE], {**HALVES, "ksize": [1, 5, 5, 1]}, raises=(InvalidArgumentError, "4.*5|5.*4|-|negative")),
    Sample("Dilation2DBackpropInput", [PLANE, KERNEL, f64(1, 3, 3, 2)], FIRST, gradient=False,
           reference=lambda x, k, g: differences(lambda x: np.sum(dilation(x, k) * g), x), rtol=1e-4),
    Sample("Dilation2DBackpropFilter", [PLANE, KERNEL, f64(1, 3, 3, 2)], FIRST, gradient=False,
           reference=lambda x, k, g: differences(lambda k: np.sum(dilation(x, k) * g), k), rtol=1e-4),
]  # fmt: skip

# ---- fused cells ------------------------------------------------------------------------------------------------


def lstm(x, cs_prev, h_prev, w, b, forget_bias=1.0, order="icfo"):
    """One step: input gate, state, forget gate, output gate, candidate, output of the state, output."""
    parts = dict(zip(order, np.split(np.concatenate([x, h_prev], 1) @ w + b, 4, axis=1)))
    i, f, o = sigmoid(parts["i"]), sigmoid(parts["f"] + forget_bias), sigmoid(parts["o"])
    ci = np.tanh(parts["c"])
    cs = ci * i + cs_prev * f
    co = np.tanh(cs)
    return i, cs, f, o, ci, co, co * o


def lstm_cell(x, cs_prev, h_prev, w, wci, wcf, wco, b):
    return lstm(x, cs_prev, h_prev, w, b)


def lstm_steps(forget_bias, order):
    def reference(count, x, cs, h, w, wci, wcf, wco, b):
        steps = []
        for step in x:
            made = lstm(step, cs, h, w, b, forget_bias, order)
            cs, h = made[1], made[6]
            steps.append(made)
        return tuple(np.stack(each) for each in zip(*steps))

    return reference


def lstm_cell_gradient(x, cs_prev, h_prev, w, wci, wcf, wco, b, i, cs, f, o, ci, co, cs_grad, h_grad):
    do = h_grad * co * o * (1 - o)
    dcs = h_grad * o * (1 - co**2) + cs_grad
    dci, di = dcs * i * (1 - ci**2), dcs * ci * i * (1 - i)
    df = dcs * cs_prev * f * (1 - f)
    none = np.zeros_like(wci)
    return dcs * f, np.concatenate([di, dci, df, do], 1), none, none, none


def gru_cell(x, h_prev, w_ru, w_c, b_ru, b_c):
    r, u = np.split(sigmoid(np.concatenate([x, h_prev], 1) @ w_ru + b_ru), 2, axis=1)
    c = np.tanh(np.concatenate([x, h_prev * r], 1) @ w_c + b_c)
    return r, u, c, (1 - u) * c + u * h_prev


def gru_cell_gradient(x, h_prev, w_ru, w_c, b_ru, b_c, r, u, c, d_h):
    d_c = d_h * (1 - u) * (1 - c**2)
    d_u = d_h * (h_prev - c) * u * (1 - u)
    d_x, d_hr = np.split(d_c @ w_c.T, [x.shape[1]], axis=1)
    d_ru = np.concatenate([d_hr * h_prev * r * (1 - r), d_u], 1)
    more_x, more_h = np.split(d_ru @ w_ru.T, [x.shape[1]], axis=1)
    return d_x + more_x, d_hr * r + more_h + d_h * u, d_c, d_ru


LSTM_INPUTS = [single(2, 3), single(2, 2), single(2, 2), single(5, 8), *np.zeros((3, 2), np.float32), single(8)]
STEPS_INPUTS = [np.int64(3), single(3, 2, 3), *LSTM_INPUTS[1:]]
GRU_INPUTS = [single(2, 3), single(2, 2), single(5, 4), single(5, 2), single(4), single(2)]


def made_by(cell, inputs):
    return [np.asarray(each, np.float32) for each in cell(*inputs)]


STEPS_DONE = made_by(lstm_steps(1.0, "icfo"), STEPS_INPUTS)
CELLS = [
    Sample("LSTMBlockCell", LSTM_INPUTS, {"cell_clip": -1.0}, reference=lstm_cell, gradient=False, rtol=1e-4),
    Sample("LSTMBlockCellGrad", [*LSTM_INPUTS, *made_by(lstm_cell, LSTM_INPUTS)[:6], single(2, 2), single(2, 2)], {"use_peephole": False},
           reference=lstm_cell_gradient, gradient=False, rtol=1e-4, atol=1e-5),
    Sample("LSTMBlockCell", [single(2, 4), *LSTM_INPUTS[1:]], raises=(InvalidArgumentError, "5")),
    Sample("BlockLSTM", STEPS_INPUTS, {"cell_clip": -1.0}, reference=lstm_steps(1.0, "icfo"), gradient=False, rtol=1e-4),
    Sample("BlockLSTMV2", STEPS_INPUTS, reference=lstm_steps(0.0, "ifco"), gradient=False, rtol=1e-4),
    Sample("BlockLSTMGrad", [*STEPS_INPUTS, *STEPS_DONE, single(3, 2, 2), single(3, 2, 2)], {"use_peephole": False}, gradient=False, rtol=1e-4),
    Sample("BlockLSTMGradV2", [*STEPS_INPUTS, *STEPS_DONE, single(3, 2, 2), single(3, 2, 2)], {"use_peephole": False}, gradient=False, rtol=1e-4),
    Sample("GRUBlockCell", GRU_INPUTS, reference=gru_cell, gradient=False, rtol=1e-4),
    Sample("GRUBlockCellGrad", [*GRU_INPUTS, *made_by(gru_cell, GRU_INPUTS)[:3], single(2, 2)], reference=gru_cell_gradient, gradient=False, rtol=1e-4, atol=1e-5),
]  # fmt: skip

# ---- connectionist temporal classification ------------------------------------------------------------------------


def collapsed(path, blank):
    return [k for k, _ in itertools.groupby(path) if k != blank]


def ctc_loss(inputs, label, blank):
    """-log of the probability of all paths that read as `label`, by trying every path."""
    chances = np.exp(inputs - np.log(np.exp(inputs).sum(-1, keepdims=True)))
    paths = itertools.product(range(inputs.shape[-1]), repeat=len(inputs))
    return -np.log(sum(np.prod(chances[range(len(inputs)), path]) for path in paths if collapsed(path, blank) == label))


def ctc(blank):
    def reference(inputs, indices, values, lengths):
        inputs, label = inputs.astype(np.float64), list(values)
        loss = ctc_loss(inputs[:, 0], label, blank)
        return np.array([loss]), differences(lambda x: ctc_loss(x[:, 0], label, blank), inputs)

    return reference


SURE = np.full((3, 1, 3), -20, np.float32)
SURE[[0, 1, 2], 0, [1, 2, 0]] = 20
CTC_INPUTS = [single(3, 1, 3), np.array([[0, 0], [0, 1]]), np.array([1, 0], np.int32), [3]]
CTC_SECOND = [single(3, 1, 3), np.array([[0, 0], [0, 1]]), np.array([1, 2], np.int32), [3]]
DECODED = (np.array([[0, 0], [0, 1]]), np.array([1, 0]), np.array([1, 2]))
TEMPORAL = [
    Sample("CTCLoss", CTC_INPUTS, reference=ctc(2), gradient=False, rtol=1e-4, atol=1e-5),
    Sample("CTCLossV2", CTC_SECOND, reference=ctc(0), gradient=False, rtol=1e-4, atol=1e-5),
    Sample("CTCLoss", [*CTC_INPUTS[:3], [4]], raises=(InvalidArgumentError, "4|sequence_length")),
    Sample("CTCGreedyDecoder", [SURE, [3]], static=False, gradient=False, reference=lambda *_: (*DECODED, np.array([[-60.0]]))),
    Sample("CTCBeamSearchDecoder", [SURE, [3]], {"beam_width": 4, "top_paths": 1}, static=False, gradient=False,
           reference=lambda *_: ([DECODED[0]], [DECODED[1]], [DECODED[2]], np.array([[0.0]])), atol=1e-4),
]  # fmt: skip


@samples(NORMALIZATION + WINDOWS + CELLS + TEMPORAL)
def test_sample(sample) -> None:
    """The op's value, shape, eager form and GraphDef agree with each other and with NumPy."""
    check_sample(sample)
