"""Fused recurrent cells: LSTMBlockCell, BlockLSTM (a whole sequence) and GRUBlockCell, for imported graphs.

LSTM (Hochreiter and Schmidhuber, 1997; peepholes as in Gers and Schmidhuber, 2000), for [x, h] w + b split into gates:

    i = sigmoid(i + wci * cs_prev)      f = sigmoid(f + forget_bias + wcf * cs_prev)      ci = tanh(ci)
    cs = clip(ci * i + cs_prev * f)     o = sigmoid(o + wco * cs)      co = tanh(cs)      h = o * co

The columns of w hold the gates in the order i, ci, f, o; in BlockLSTMV2 in the order i, f, ci, o.
"""

from __future__ import annotations

from typing import Any

import torch

from stoker._src.base import dtypes
from stoker._src.base.errors import InvalidArgumentError
from stoker._src.base.shapes import Shape
from stoker._src.graph.definition import BOOL, OpDefinition, define
from stoker._src.graph.tensor import Operation, Tensor
from stoker._src.ops.array import joining, shaping
from stoker._src.ops.linalg import matrix_products
from stoker._src.ops.math import reductions

_FLOATS = (dtypes.float16, dtypes.float32)
_STATE = "cs_prev: T, h_prev: T, w: T, wci: T, wcf: T, wco: T, b: T"
_RANKED_STATE = (
    "cs_prev: matrix T, h_prev: matrix T, w: matrix T, wci: vector T, wcf: vector T, wco: vector T, b: vector T"
)
_CELL_OUT = "(i: T, cs: T, f: T, o: T, ci: T, co: T, h: T)"
_ICFO, _IFCO = (0, 1, 2, 3), (0, 2, 1, 3)  # positions of i, ci, f, o among the columns of w
Tensors = tuple[torch.Tensor, ...]


def _check_sizes(
    batch: int,
    width: int,
    cs_prev: torch.Tensor,
    h_prev: torch.Tensor,
    w: torch.Tensor,
    peepholes: tuple[torch.Tensor, torch.Tensor, torch.Tensor] | None,
    b: torch.Tensor,
) -> None:
    """Raises InvalidArgumentError unless all shapes match `batch` rows of `width` numbers and the size of the state."""
    if cs_prev.ndim != 2:
        raise InvalidArgumentError(None, None, f"cs_prev must be 2D but is of shape {Shape(cs_prev.shape)}")
    size = cs_prev.shape[1]
    expected = {
        "cs_prev": (cs_prev, (batch, size)),
        "h_prev": (h_prev, (batch, size)),
        "w": (w, (width + size, 4 * size)),
        **{name: (each, (size,)) for name, each in zip(("wci", "wcf", "wco"), peepholes or ())},
        "b": (b, (4 * size,)),
    }
    _check_shapes(expected)


def _check_shapes(expected: dict[str, tuple[torch.Tensor, tuple[int, ...]]]) -> None:
    for name, (value, shape) in expected.items():
        if value.shape != shape:
            raise InvalidArgumentError(
                None, None, f"{name} must have the shape {list(shape)} but has {Shape(value.shape)}"
            )


def _check_sequence(x: torch.Tensor, cs_prev: torch.Tensor, *rest: Any) -> None:
    if x.ndim != 3:
        raise InvalidArgumentError(None, None, f"x must be 3D but is of shape {Shape(x.shape)}")
    _check_sizes(x.shape[1], x.shape[2], cs_prev, *rest)


def _check_steps(shape: tuple[int, ...], names: str, *values: torch.Tensor) -> None:
    """Raises InvalidArgumentError unless each has the shape, or more steps in the first of three dimensions."""
    for name, value in zip(names.split(), values):
        if value.ndim != len(shape) or value.shape[-2:] != shape[-2:] or value.shape[0] < shape[0]:
            raise InvalidArgumentError(
                None, None, f"{name} must have the shape {list(shape)} but has {Shape(value.shape)}"
            )


def _gates(
    x: torch.Tensor,
    cs_prev: torch.Tensor,
    h_prev: torch.Tensor,
    w: torch.Tensor,
    peepholes: tuple[torch.Tensor, torch.Tensor, torch.Tensor] | None,
    b: torch.Tensor,
    forget_bias: float,
    cell_clip: float,
    order: tuple[int, ...],
) -> Tensors:
    """One step: (i, cs, f, o, ci, co, h)."""
    parts = torch.addmm(b, torch.cat([x, h_prev], 1), w).chunk(4, 1)
    i, ci, f, o = (parts[at] for at in order)
    if forget_bias:
        f = f + forget_bias
    if peepholes is not None:
        i, f = i + peepholes[0] * cs_prev, f + peepholes[1] * cs_prev
    i, f, ci = torch.sigmoid(i), torch.sigmoid(f), torch.tanh(ci)
    cs = ci * i + cs_prev * f
    if cell_clip > 0:
        cs = cs.clamp(-cell_clip, cell_clip)
    o = torch.sigmoid(o if peepholes is None else o + peepholes[2] * cs)
    co = torch.tanh(cs)
    return i, cs, f, o, ci, co, o * co


def _gate_gradients(
    cs_prev: torch.Tensor,
    peepholes: tuple[torch.Tensor, torch.Tensor, torch.Tensor] | None,
    i: torch.Tensor,
    f: torch.Tensor,
    o: torch.Tensor,
    ci: torch.Tensor,
    co: torch.Tensor,
    cs_grad: torch.Tensor,
    h_grad: torch.Tensor,
    order: tuple[int, ...],
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor]:
    """The gradients of one step: (cs_prev, all gates in w's order, and i, f and o separately)."""
    do = o * (1 - o) * h_grad * co
    dcs = (1 - co * co) * h_grad * o + cs_grad
    if peepholes is not None:
        dcs = dcs + do * peepholes[2]
    dci = (1 - ci * ci) * dcs * i
    df = f * (1 - f) * dcs * cs_prev
    di = i * (1 - i) * dcs * ci
    previous = dcs * f
    if peepholes is not None:
        previous = previous + di * peepholes[0] + df * peepholes[1]
    placed: list[torch.Tensor] = [di] * 4
    for at, gradient in zip(order, (di, dci, df, do)):
        placed[at] = gradient
    return previous, torch.cat(placed, 1), di, df, do


# ---- LSTMBlockCell ----------------------------------------------------------------------------------------------

LSTM_BLOCK_CELL = define(
    f"LSTMBlockCell(x: T, {_STATE}) -> {_CELL_OUT}", forget_bias=1.0, cell_clip=3.0, use_peephole=False, T=_FLOATS
)
LSTM_BLOCK_CELL_GRAD = define(
    f"LSTMBlockCellGrad(x: T, {_STATE}, i: T, cs: T, f: T, o: T, ci: T, co: T, cs_grad: T, h_grad: T) -> "
    "(cs_prev_grad: T, dicfo: T, wci_grad: T, wcf_grad: T, wco_grad: T)",
    use_peephole=BOOL,
    T=_FLOATS,
)


@LSTM_BLOCK_CELL.kernel
def lstm_block_cell_kernel(
    x: torch.Tensor,
    cs_prev: torch.Tensor,
    h_prev: torch.Tensor,
    w: torch.Tensor,
    wci: torch.Tensor,
    wcf: torch.Tensor,
    wco: torch.Tensor,
    b: torch.Tensor,
    *,
    forget_bias: float,
    cell_clip: float,
    use_peephole: bool,
) -> Tensors:
    if x.ndim != 2:
        raise InvalidArgumentError(None, None, f"x must be 2D but is of shape {Shape(x.shape)}")
    for name, each in (("wci", wci), ("wcf", wcf), ("wco", wco)):
        if each.ndim != 1:
            raise InvalidArgumentError(None, None, f"{name} must be rank 1 but is rank {each.ndim}.")
    _check_sizes(x.shape[0], x.shape[1], cs_prev, h_prev, w, (wci, wcf, wco) if use_peephole else None, b)
    peepholes = (wci, wcf, wco) if use_peephole else None
    return _gates(x, cs_prev, h_prev, w, peepholes, b, forget_bias, cell_clip, _ICFO)


@LSTM_BLOCK_CELL.shape
def lstm_block_cell_shape(x: Shape, cs_prev: Shape, *_: Shape) -> tuple[Shape, ...]:
    state = Shape((x.of_rank(2)[0], cs_prev.of_rank(2)[1]))
    return (state,) * 7


@LSTM_BLOCK_CELL_GRAD.kernel
def lstm_block_cell_grad_kernel(
    x: torch.Tensor,
    cs_prev: torch.Tensor,
    h_prev: torch.Tensor,
    w: torch.Tensor,
    wci: torch.Tensor,
    wcf: torch.Tensor,
    wco: torch.Tensor,
    b: torch.Tensor,
    i: torch.Tensor,
    cs: torch.Tensor,
    f: torch.Tensor,
    o: torch.Tensor,
    ci: torch.Tensor,
    co: torch.Tensor,
    cs_grad: torch.Tensor,
    h_grad: torch.Tensor,
    *,
    use_peephole: bool,
) -> Tensors:
    if x.ndim != 2:
        raise InvalidArgumentError(None, None, f"x must be 2D but is of shape {Shape(x.shape)}")
    _check_sizes(x.shape[0], x.shape[1], cs_prev, h_prev, w, (wci, wcf, wco) if use_peephole else None, b)
    _check_steps(cs_prev.shape, "i cs f o ci co cs_grad h_grad", i, cs, f, o, ci, co, cs_grad, h_grad)
    peepholes = (wci, wcf, wco) if use_peephole else None
    previous, gates, di, df, do = _gate_gradients(cs_prev, peepholes, i, f, o, ci, co, cs_grad, h_grad, _ICFO)
    if not use_peephole:
        return previous, gates, torch.zeros_like(wci), torch.zeros_like(wcf), torch.zeros_like(wco)
    return previous, gates, (di * cs_prev).sum(0), (df * cs_prev).sum(0), (do * cs).sum(0)


@LSTM_BLOCK_CELL_GRAD.shape
def lstm_block_cell_grad_shape(x: Shape, cs_prev: Shape, *rest: Shape) -> tuple[Shape, ...]:
    state = Shape((x.of_rank(2)[0], cs_prev.of_rank(2)[1]))
    width = state[1]
    vector = Shape((width,))
    return state, Shape((state[0], None if width is None else 4 * width)), vector, vector, vector


@LSTM_BLOCK_CELL.grad
def lstm_block_cell_gradient(op: Operation, *gradients: Tensor) -> tuple[Any, ...]:
    x, h_prev, w = op.inputs[0], op.inputs[2], op.inputs[3]
    cs_prev_grad, gates, *peepholes = LSTM_BLOCK_CELL_GRAD(
        *op.inputs, *op.outputs[:6], gradients[1], gradients[6], use_peephole=op.attr("use_peephole")
    )
    x_grad, h_prev_grad = _through_product(gates, w, x)
    both = joining.concat([x, h_prev], 1)
    w_grad = matrix_products.matmul(both, gates, transpose_a=True)
    return x_grad, cs_prev_grad, h_prev_grad, w_grad, *peepholes, reductions.reduce_sum(gates, 0)


def _through_product(gates: Tensor, w: Tensor, x: Tensor) -> Any:
    """The gradients of x and h in [x, h] w."""
    both = matrix_products.matmul(gates, w, transpose_b=True)
    width = x.static_shape.of_rank(2)[1]
    if width is None:
        width = shaping.shape(x)[1]
    return both[:, :width], both[:, width:]


# ---- BlockLSTM --------------------------------------------------------------------------------------------------

BLOCK_LSTM = define(
    f"BlockLSTM(seq_len_max: host int64, x: T, {_STATE}) -> {_CELL_OUT}",
    forget_bias=1.0,
    cell_clip=3.0,
    use_peephole=False,
    T=_FLOATS,
)
BLOCK_LSTM_V2 = define(
    f"BlockLSTMV2(seq_len_max: host int64, x: T, {_STATE}) -> {_CELL_OUT}",
    cell_clip=0.0,
    use_peephole=False,
    T=_FLOATS,
)
_GRAD_SIGNATURE = (
    f"(seq_len_max: host int64, x: T, {_RANKED_STATE}, i: T, cs: T, f: T, o: T, ci: T, co: T, h: T, cs_grad: T, h_grad: T) -> "
    "(x_grad: T, cs_prev_grad: T, h_prev_grad: T, w_grad: T, wci_grad: T, wcf_grad: T, wco_grad: T, b_grad: T)"
)
BLOCK_LSTM_GRAD = define(f"BlockLSTMGrad{_GRAD_SIGNATURE}", use_peephole=BOOL, T=_FLOATS)
BLOCK_LSTM_GRAD_V2 = define(f"BlockLSTMGradV2{_GRAD_SIGNATURE}", use_peephole=BOOL, T=_FLOATS)


def _sequence(
    steps: int,
    x: torch.Tensor,
    cs: torch.Tensor,
    h: torch.Tensor,
    w: torch.Tensor,
    peepholes: tuple[torch.Tensor, torch.Tensor, torch.Tensor] | None,
    b: torch.Tensor,
    forget_bias: float,
    cell_clip: float,
    order: tuple[int, ...],
) -> Tensors:
    """Runs all steps. Outputs beyond `steps` are zero."""
    results = [x.new_zeros((x.shape[0], *cs.shape)) for _ in range(7)]
    for t in range(min(steps, x.shape[0])):
        found = _gates(x[t], cs, h, w, peepholes, b, forget_bias, cell_clip, order)
        for result, value in zip(results, found):
            result[t] = value
        cs, h = found[1], found[6]
    return tuple(results)


@BLOCK_LSTM.kernel
def block_lstm_kernel(
    seq_len_max: int,
    x: torch.Tensor,
    cs_prev: torch.Tensor,
    h_prev: torch.Tensor,
    w: torch.Tensor,
    wci: torch.Tensor,
    wcf: torch.Tensor,
    wco: torch.Tensor,
    b: torch.Tensor,
    *,
    forget_bias: float,
    cell_clip: float,
    use_peephole: bool,
) -> Tensors:
    _check_sequence(x, cs_prev, h_prev, w, (wci, wcf, wco), b)
    peepholes = (wci, wcf, wco) if use_peephole else None
    return _sequence(seq_len_max, x, cs_prev, h_prev, w, peepholes, b, forget_bias, cell_clip, _ICFO)


@BLOCK_LSTM_V2.kernel
def block_lstm_v2_kernel(
    seq_len_max: int,
    x: torch.Tensor,
    cs_prev: torch.Tensor,
    h_prev: torch.Tensor,
    w: torch.Tensor,
    wci: torch.Tensor,
    wcf: torch.Tensor,
    wco: torch.Tensor,
    b: torch.Tensor,
    *,
    cell_clip: float,
    use_peephole: bool,
) -> Tensors:
    _check_sequence(x, cs_prev, h_prev, w, (wci, wcf, wco), b)
    peepholes = (wci, wcf, wco) if use_peephole else None
    return _sequence(seq_len_max, x, cs_prev, h_prev, w, peepholes, b, 0.0, cell_clip, _IFCO)


def _register_sequence(forward: OpDefinition, backward: OpDefinition, order: tuple[int, ...]) -> None:
    @forward.shape
    def block_lstm_shape(seq_len_max: Shape, x: Shape, *rest: Shape) -> tuple[Shape, ...]:
        x, gates = x.of_rank(3), rest[-1].of_rank(1)[0]
        if gates is not None and gates % 4:
            raise InvalidArgumentError(None, None, f"Dimension size must be evenly divisible by 4 but is {gates}")
        return (Shape((x[0], x[1], None if gates is None else gates // 4)),) * 7

    @backward.kernel
    def block_lstm_grad_kernel(
        seq_len_max: int,
        x: torch.Tensor,
        cs_prev: torch.Tensor,
        h_prev: torch.Tensor,
        w: torch.Tensor,
        wci: torch.Tensor,
        wcf: torch.Tensor,
        wco: torch.Tensor,
        b: torch.Tensor,
        i: torch.Tensor,
        cs: torch.Tensor,
        f: torch.Tensor,
        o: torch.Tensor,
        ci: torch.Tensor,
        co: torch.Tensor,
        h: torch.Tensor,
        cs_grad: torch.Tensor,
        h_grad: torch.Tensor,
        *,
        use_peephole: bool,
    ) -> Tensors:
        _check_sequence(x, cs_prev, h_prev, w, (wci, wcf, wco) if use_peephole else None, b)
        steps = (x.shape[0], *cs_prev.shape)
        _check_steps(steps, "i cs f o ci co h cs_grad h_grad", i, cs, f, o, ci, co, h, cs_grad, h_grad)
        peepholes = (wci, wcf, wco) if use_peephole else None
        x_grad, w_grad, b_grad = torch.zeros_like(x), torch.zeros_like(w), torch.zeros_like(b)
        on_peepholes = [torch.zeros_like(each) for each in (wci, wcf, wco)]
        to_cs, to_h = torch.zeros_like(cs_prev), torch.zeros_like(h_prev)
        for t in reversed(range(min(seq_len_max, x.shape[0]))):
            before_cs, before_h = (cs[t - 1], h[t - 1]) if t else (cs_prev, h_prev)
            to_cs, gates, di, df, do = _gate_gradients(
                before_cs, peepholes, i[t], f[t], o[t], ci[t], co[t], cs_grad[t] + to_cs, h_grad[t] + to_h, order
            )
            both = gates @ w.t()
            x_grad[t], to_h = both[:, : x.shape[2]], both[:, x.shape[2] :]
            w_grad.addmm_(torch.cat([x[t], before_h], 1).t(), gates)
            b_grad += gates.sum(0)
            if use_peephole:
                for total, gradient, state in zip(on_peepholes, (di, df, do), (before_cs, before_cs, cs[t])):
                    total += (gradient * state).sum(0)
        return x_grad, to_cs, to_h.contiguous(), w_grad, *on_peepholes, b_grad

    @backward.shape
    def block_lstm_grad_shape(seq_len_max: Shape, *inputs: Shape) -> tuple[Shape, ...]:
        inputs[0].of_rank(3)
        return inputs[:8]

    @forward.grad
    def block_lstm_gradient(op: Operation, *gradients: Tensor) -> tuple[Any, ...]:
        results = backward(*op.inputs, *op.outputs, gradients[1], gradients[6], use_peephole=op.attr("use_peephole"))
        return (None, *results)


_register_sequence(BLOCK_LSTM, BLOCK_LSTM_GRAD, _ICFO)
_register_sequence(BLOCK_LSTM_V2, BLOCK_LSTM_GRAD_V2, _IFCO)

# ---- GRUBlockCell (Cho et al., 2014) ----------------------------------------------------------------------------

GRU_BLOCK_CELL = define(
    "GRUBlockCell(x: T, h_prev: T, w_ru: T, w_c: T, b_ru: T, b_c: T) -> (r: T, u: T, c: T, h: T)", T=(dtypes.float32,)
)
GRU_BLOCK_CELL_GRAD = define(
    "GRUBlockCellGrad(x: T, h_prev: T, w_ru: matrix T, w_c: T, b_ru: T, b_c: T, r: T, u: T, c: T, d_h: T) -> "
    "(d_x: T, d_h_prev: T, d_c_bar: T, d_r_bar_u_bar: T)",
    T=(dtypes.float32,),
)


def _check_gru(
    x: torch.Tensor,
    h_prev: torch.Tensor,
    w_ru: torch.Tensor,
    w_c: torch.Tensor,
    b_ru: torch.Tensor,
    b_c: torch.Tensor,
) -> None:
    for name, value in (("x", x), ("h_prev", h_prev)):
        if value.ndim != 2:
            raise InvalidArgumentError(None, None, f"Rank of {name} must be 2, got {value.ndim}")
    batch, width = x.shape
    size = h_prev.shape[1]
    shapes = {
        "h_prev": (h_prev, (batch, size)),
        "w_ru": (w_ru, (width + size, 2 * size)),
        "w_c": (w_c, (width + size, size)),
        "b_ru": (b_ru, (2 * size,)),
        "b_c": (b_c, (size,)),
    }
    _check_shapes(shapes)


@GRU_BLOCK_CELL.kernel
def gru_block_cell_kernel(
    x: torch.Tensor,
    h_prev: torch.Tensor,
    w_ru: torch.Tensor,
    w_c: torch.Tensor,
    b_ru: torch.Tensor,
    b_c: torch.Tensor,
) -> Tensors:
    _check_gru(x, h_prev, w_ru, w_c, b_ru, b_c)
    r, u = torch.sigmoid(torch.addmm(b_ru, torch.cat([x, h_prev], 1), w_ru)).chunk(2, 1)
    c = torch.tanh(torch.addmm(b_c, torch.cat([x, h_prev * r], 1), w_c))
    return r.contiguous(), u.contiguous(), c, u * h_prev + (1 - u) * c


@GRU_BLOCK_CELL.shape
def gru_block_cell_shape(x: Shape, h_prev: Shape, *_: Shape) -> tuple[Shape, ...]:
    state = Shape((x.of_rank(2)[0], h_prev.of_rank(2)[1]))
    return (state,) * 4


@GRU_BLOCK_CELL_GRAD.kernel
def gru_block_cell_grad_kernel(
    x: torch.Tensor,
    h_prev: torch.Tensor,
    w_ru: torch.Tensor,
    w_c: torch.Tensor,
    b_ru: torch.Tensor,
    b_c: torch.Tensor,
    r: torch.Tensor,
    u: torch.Tensor,
    c: torch.Tensor,
    d_h: torch.Tensor,
) -> Tensors:
    _check_gru(x, h_prev, w_ru, w_c, b_ru, b_c)
    _check_steps(h_prev.shape, "r u c d_h", r, u, c, d_h)
    width = x.shape[1]
    d_c_bar = (1 - c * c) * d_h * (1 - u)
    d_u_bar = u * (1 - u) * d_h * (h_prev - c)
    through_c = d_c_bar @ w_c.t()
    d_reset = through_c[:, width:]
    d_r_bar = r * (1 - r) * d_reset * h_prev
    d_gates = torch.cat([d_r_bar, d_u_bar], 1)
    through_gates = d_gates @ w_ru.t()
    d_x = through_c[:, :width] + through_gates[:, :width]
    return d_x, through_gates[:, width:] + d_reset * r + d_h * u, d_c_bar, d_gates


@GRU_BLOCK_CELL_GRAD.shape
def gru_block_cell_grad_shape(x: Shape, h_prev: Shape, *_: Shape) -> tuple[Shape, ...]:
    state = Shape((x.of_rank(2)[0], h_prev.of_rank(2)[1]))
    return x, state, state, Shape((state[0], None if state[1] is None else 2 * state[1]))


@GRU_BLOCK_CELL.grad
def gru_block_cell_gradient(op: Operation, *gradients: Tensor) -> tuple[Any, ...]:
    x, h_prev = op.inputs[:2]
    r, u, c, _ = op.outputs
    d_x, d_h_prev, d_c_bar, d_gates = GRU_BLOCK_CELL_GRAD(*op.inputs, r, u, c, gradients[3])
    d_w_ru = matrix_products.matmul(joining.concat([x, h_prev], 1), d_gates, transpose_a=True)
    d_w_c = matrix_products.matmul(joining.concat([x, h_prev * r], 1), d_c_bar, transpose_a=True)
    return d_x, d_h_prev, d_w_ru, d_w_c, reductions.reduce_sum(d_gates, 0), reductions.reduce_sum(d_c_bar, 0)
