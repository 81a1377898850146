"""The mathematics of `tf.keras.backend`: reductions, shapes and the ops of networks."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from stoker._src.base import dtypes
from stoker._src.base.export import export, export_constant, named
from stoker._src.graph import sparse_tensor
from stoker._src.keras import activations, base
from stoker._src.keras.backend import epsilon, floatx, image_data_format, is_sparse, to_dense
from stoker._src.keras.layers import merging
from stoker._src.ops.array import casting, gathering, joining, pads, selection, shaping
from stoker._src.ops.linalg import einsum, matrix_products
from stoker._src.ops.math import (
    arithmetic,
    clipping,
    comparison,
    masking,
    reductions,
    scans,
    sequences,
    sorting,
    unary_functions,
)
from stoker._src.ops.nn import activations as nn_activations
from stoker._src.ops.nn import bias as nn_bias
from stoker._src.ops.nn import conv_api, ctc, moments, pool_api
from stoker._src.ops.nn import dropout as nn_dropout
from stoker._src.ops.sparse import sparse_functions

# ---- mathematics ----------------------------------------------------------------------------------------------------

for _name, _function in {
    "abs": unary_functions.abs,
    "exp": unary_functions.exp,
    "log": unary_functions.log,
    "square": unary_functions.square,
    "sin": unary_functions.sin,
    "cos": unary_functions.cos,
    "sign": unary_functions.sign,
    "round": unary_functions.round,
    "maximum": arithmetic.maximum,
    "minimum": arithmetic.minimum,
    "equal": comparison.equal,
    "not_equal": comparison.not_equal,
    "greater": comparison.greater,
    "greater_equal": comparison.greater_equal,
    "less": comparison.less,
    "less_equal": comparison.less_equal,
    "softplus": nn_activations.softplus,
    "softsign": nn_activations.softsign,
    "tanh": unary_functions.tanh,
    "sigmoid": unary_functions.sigmoid,
    "transpose": shaping.transpose,
}.items():
    globals()[_name] = named(_name, f"`tf.{_name}`.")(
        lambda *args, _function=_function, **kwargs: _function(*args, **kwargs)
    )
    export_constant(__name__, _name, f"keras.backend.{_name}")

for _name in ("relu", "elu", "softmax", "hard_sigmoid"):
    export_constant(activations.__name__, _name, f"keras.backend.{_name}")
export_constant(merging.__name__, "batch_dot", "keras.backend.batch_dot")


def _reduction(name: str, reduce: Callable[..., Any], doc: str, *, of_bools: bool = False) -> Any:
    @named(name, doc)
    def reduction(x: Any, axis: Any = None, keepdims: bool = False) -> Any:
        if of_bools:
            x = casting.cast(x, dtypes.bool_)
        elif x.dtype.base_dtype == dtypes.bool_:
            x = casting.cast(x, floatx())
        return reduce(x, axis, keepdims)

    return export(f"keras.backend.{name}")(reduction)


sum = _reduction("sum", reductions.reduce_sum, "The sum over axes.")
mean = _reduction("mean", reductions.reduce_mean, "The mean over axes.")
prod = _reduction("prod", reductions.reduce_prod, "The product over axes.")
max = _reduction("max", reductions.reduce_max, "The largest value over axes.")
min = _reduction("min", reductions.reduce_min, "The smallest value over axes.")
any = _reduction("any", reductions.reduce_any, "Whether any is true.", of_bools=True)
all = _reduction("all", reductions.reduce_all, "Whether all are true.", of_bools=True)


@export("keras.backend.var")
def var(x: Any, axis: Any = None, keepdims: bool = False) -> Any:
    """The variance over axes."""
    return reductions.reduce_variance(x, axis=axis, keepdims=keepdims)


@export("keras.backend.std")
def std(x: Any, axis: Any = None, keepdims: bool = False) -> Any:
    """The standard deviation over axes."""
    return reductions.reduce_std(x, axis=axis, keepdims=keepdims)


@export("keras.backend.logsumexp")
def logsumexp(x: Any, axis: Any = None, keepdims: bool = False) -> Any:
    """The logarithm of the sum of exponentials over axes."""
    return reductions.reduce_logsumexp(x, axis, keepdims)


@export("keras.backend.argmax")
def argmax(x: Any, axis: int = -1) -> Any:
    """Where the largest value is."""
    return scans.argmax(x, axis)


@export("keras.backend.argmin")
def argmin(x: Any, axis: int = -1) -> Any:
    """Where the smallest value is."""
    return scans.argmin(x, axis)


@export("keras.backend.cumsum")
def cumsum(x: Any, axis: int = 0) -> Any:
    """Cumulative sums."""
    return scans.cumsum(x, axis=axis)


@export("keras.backend.cumprod")
def cumprod(x: Any, axis: int = 0) -> Any:
    """Cumulative products."""
    return scans.cumprod(x, axis=axis)


@export("keras.backend.sqrt")
def sqrt(x: Any) -> Any:
    """The square root, of 0 for negative numbers."""
    return unary_functions.sqrt(arithmetic.maximum(x, shaping.zeros([], x.dtype.base_dtype)))


@export("keras.backend.pow")
def pow(x: Any, a: Any) -> Any:
    """x to the power of a."""
    return arithmetic.power(x, a)


@export("keras.backend.clip")
def clip(x: Any, min_value: Any, max_value: Any) -> Any:
    """Values between two bounds."""
    if (
        max_value is not None
        and min_value is not None
        and not hasattr(max_value, "static_shape")
        and max_value < min_value
    ):
        max_value = min_value
    return clipping.clip_by_value(
        x, -np.inf if min_value is None else min_value, np.inf if max_value is None else max_value
    )


@export("keras.backend.dot")
def dot(x: Any, y: Any) -> Any:
    """The product over the last dimension of x and the last but one of y."""
    if is_sparse(x):
        return sparse_functions.sparse_dense_matmul(x, y)
    ranks = x.static_shape.rank, y.static_shape.rank
    if ranks == (2, 2):
        return matrix_products.matmul(x, y)
    return einsum.tensordot(x, y, [[ranks[0] - 1], [ranks[1] - 2 if ranks[1] > 1 else 0]])


@export("keras.backend.l2_normalize")
def l2_normalize(x: Any, axis: Any = None) -> Any:
    """Vectors of norm 1."""
    return moments.l2_normalize(x, axis=axis)


@export("keras.backend.in_top_k")
def in_top_k(predictions: Any, targets: Any, k: int) -> Any:
    """Whether targets are among the k largest predictions."""
    return sorting.in_top_k(predictions, targets, k)


# ---- shapes ---------------------------------------------------------------------------------------------------------


@export("keras.backend.reshape")
def reshape(x: Any, shape: Any) -> Any:
    """Another shape."""
    return shaping.reshape(x, shape)


@export("keras.backend.permute_dimensions")
def permute_dimensions(x: Any, pattern: Any) -> Any:
    """The dimensions in another order."""
    return shaping.transpose(x, perm=pattern)


@export("keras.backend.expand_dims")
def expand_dims(x: Any, axis: int = -1) -> Any:
    """One more dimension of size 1."""
    return shaping.expand_dims(x, axis)


@export("keras.backend.squeeze")
def squeeze(x: Any, axis: int) -> Any:
    """Without a dimension of size 1."""
    return shaping.squeeze(x, [axis])


@export("keras.backend.flatten")
def flatten(x: Any) -> Any:
    """A vector."""
    return shaping.reshape(x, [-1])


@export("keras.backend.batch_flatten")
def batch_flatten(x: Any) -> Any:
    """A matrix with a row for each example."""
    return shaping.reshape(x, [-1, prod(shaping.shape(x)[1:])])


@export("keras.backend.concatenate")
def concatenate(tensors: Any, axis: int = -1) -> Any:
    """Tensors one after the other."""
    axis = axis % tensors[0].static_shape.rank if axis < 0 and tensors[0].static_shape.rank else axis
    return joining.concat([to_dense(each) for each in tensors], axis)


@export("keras.backend.stack")
def stack(x: Any, axis: int = 0) -> Any:
    """Tensors along a new dimension."""
    return joining.stack(x, axis=axis)


@export("keras.backend.tile")
def tile(x: Any, n: Any) -> Any:
    """Copies along each dimension."""
    return joining.tile(x, [n] if isinstance(n, int) else n)


@export("keras.backend.repeat")
def repeat(x: Any, n: int) -> Any:
    """Vectors n times: [batch, size] -> [batch, n, size]."""
    return joining.tile(shaping.expand_dims(x, 1), [1, n, 1])


@export("keras.backend.repeat_elements")
def repeat_elements(x: Any, rep: int, axis: int) -> Any:
    """Each element several times along an axis."""
    return sequences.repeat(x, rep, axis=axis)


@export("keras.backend.reverse")
def reverse(x: Any, axes: Any) -> Any:
    """Backwards along axes."""
    return selection.reverse(x, [axes] if isinstance(axes, int) else axes)


@export("keras.backend.gather")
def gather(reference: Any, indices: Any) -> Any:
    """Rows by index."""
    return gathering.gather(reference, indices)


@export("keras.backend.one_hot")
def one_hot(indices: Any, num_classes: int) -> Any:
    """One-hot vectors."""
    return selection.one_hot(indices, depth=num_classes, axis=-1)


@export("keras.backend.temporal_padding")
def temporal_padding(x: Any, padding: Any = (1, 1)) -> Any:
    """Zeros before and after sequences."""
    return pads.pad(x, [[0, 0], list(padding), [0, 0]])


@export("keras.backend.spatial_2d_padding")
def spatial_2d_padding(x: Any, padding: Any = ((1, 1), (1, 1)), data_format: str | None = None) -> Any:
    """Zeros around images."""
    inner = [list(each) for each in padding]
    first = (data_format or image_data_format()) == "channels_first"
    return pads.pad(x, [[0, 0], [0, 0], *inner] if first else [[0, 0], *inner, [0, 0]])


@export("keras.backend.resize_images")
def resize_images(
    x: Any, height_factor: int, width_factor: int, data_format: str, interpolation: str = "nearest"
) -> Any:
    """Larger images."""
    from_layers = base.find("layers", "UpSampling2D")
    return from_layers((height_factor, width_factor), data_format, interpolation).call(x)


# ---- networks -------------------------------------------------------------------------------------------------------


@export("keras.backend.bias_add")
def bias_add(x: Any, bias: Any, data_format: str | None = None) -> Any:
    """Adds a vector to the channels."""
    first = (data_format or image_data_format()) == "channels_first" and x.static_shape.rank > 2
    return nn_bias.bias_add(x, bias, data_format="NCHW" if first else None)


@export("keras.backend.dropout")
def dropout(x: Any, level: float, noise_shape: Any = None, seed: Any = None) -> Any:
    """Zeros with probability `level`."""
    seed = np.random.randint(10_000_000) if seed is None else seed
    return nn_dropout.dropout(x, rate=level, noise_shape=noise_shape, seed=seed)


@export("keras.backend.conv1d")
def conv1d(
    x: Any,
    kernel: Any,
    strides: int = 1,
    padding: str = "valid",
    data_format: str | None = None,
    dilation_rate: int = 1,
) -> Any:
    """A convolution over sequences."""
    layout = "NCW" if (data_format or image_data_format()) == "channels_first" else "NWC"
    if padding == "causal":
        before = dilation_rate * (kernel.shape.as_list()[0] - 1)
        x, padding = temporal_padding(x, (before, 0)), "valid"
    return conv_api.convolution(x, kernel, padding.upper(), [strides], [dilation_rate], data_format=layout)


@export("keras.backend.conv2d")
def conv2d(
    x: Any,
    kernel: Any,
    strides: Any = (1, 1),
    padding: str = "valid",
    data_format: str | None = None,
    dilation_rate: Any = (1, 1),
) -> Any:
    """A convolution over images."""
    layout = "NCHW" if (data_format or image_data_format()) == "channels_first" else "NHWC"
    return conv_api.convolution(x, kernel, padding.upper(), strides, dilation_rate, data_format=layout)


@export("keras.backend.pool2d")
def pool2d(
    x: Any,
    pool_size: Any,
    strides: Any = (1, 1),
    padding: str = "valid",
    data_format: str | None = None,
    pool_mode: str = "max",
) -> Any:
    """Pooling of images."""
    first = (data_format or image_data_format()) == "channels_first"
    sizes, steps = ([1, 1, *each] if first else [1, *each, 1] for each in (pool_size, strides))
    pool = pool_api.max_pool if pool_mode == "max" else pool_api.avg_pool
    return pool(x, sizes, steps, padding.upper(), data_format="NCHW" if first else "NHWC")


@export("keras.backend.batch_normalization")
def batch_normalization(
    x: Any, mean: Any, var: Any, beta: Any, gamma: Any, axis: int = -1, epsilon: float = 1e-3
) -> Any:
    """Normalizes by a mean and a variance."""
    rank = x.static_shape.rank
    if axis % rank != rank - 1:
        along = [-1 if i == axis % rank else 1 for i in range(rank)]
        mean, var, beta, gamma = (
            None if each is None else shaping.reshape(each, along) for each in (mean, var, beta, gamma)
        )
    return moments.batch_normalization(x, mean, var, beta, gamma, epsilon)


@export("keras.backend.ctc_batch_cost")
def ctc_batch_cost(y_true: Any, y_pred: Any, input_length: Any, label_length: Any) -> Any:
    """The loss of connectionist temporal classification of padded labels, for each example."""
    labels = ctc_label_dense_to_sparse(y_true, shaping.squeeze(casting.cast(label_length, dtypes.int32), -1))
    logits = unary_functions.log(shaping.transpose(y_pred, [1, 0, 2]) + epsilon())
    lengths = shaping.squeeze(casting.cast(input_length, dtypes.int32), -1)
    return shaping.expand_dims(ctc.ctc_loss(inputs=logits, labels=labels, sequence_length=lengths), 1)


@export("keras.backend.ctc_label_dense_to_sparse")
def ctc_label_dense_to_sparse(labels: Any, label_lengths: Any) -> Any:
    """Padded labels as a sparse tensor."""
    present = masking.sequence_mask(label_lengths, shaping.shape(labels)[1])
    places = selection.where(present)
    return sparse_tensor.SparseTensor(
        places,
        casting.cast(gathering.gather_nd(labels, places), dtypes.int32),
        casting.cast(shaping.shape(labels), dtypes.int64),
    )


@export("keras.backend.ctc_decode")
def ctc_decode(y_pred: Any, input_length: Any, greedy: bool = True, beam_width: int = 100, top_paths: int = 1) -> Any:
    """The most likely labels: dense matrices padded with -1, and their logarithms of probabilities."""
    logits = unary_functions.log(shaping.transpose(y_pred, [1, 0, 2]) + epsilon())
    lengths = casting.cast(input_length, dtypes.int32)
    if greedy:
        decoded, scores = ctc.ctc_greedy_decoder(logits, lengths)
    else:
        decoded, scores = ctc.ctc_beam_search_decoder(logits, lengths, beam_width, top_paths)
    return [sparse_functions.to_dense(each, default_value=-1) for each in decoded], scores
