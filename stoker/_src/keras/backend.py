"""`tf.keras.backend`: what models and losses of programs use beside layers."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from stoker._src.base import dtypes, nest
from stoker._src.base.export import export, export_constant, named
from stoker._src.graph import context, scopes, sparse_tensor
from stoker._src.keras import activations, base, learning_phase, sessions
from stoker._src.keras.layers import merging
from stoker._src.layers.base import smart_cond
from stoker._src.ops.array import casting, constants, gathering, joining, pads, ranges, selection, shaping
from stoker._src.ops.control_flow import branches_and_loops, functional_loops
from stoker._src.ops.control_flow import gradients as control_flow_gradients
from stoker._src.ops.linalg import diagonals, einsum, matrix_products
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
from stoker._src.ops.random import uniform_normal
from stoker._src.ops.sparse import sparse_functions
from stoker._src.ops.strings import printing
from stoker._src.ops.variables import variable_functions
from stoker._src.ops.variables import variables as variables_variables

_epsilon = 1e-7

# ---- settings -------------------------------------------------------------------------------------------------------


@export("keras.backend.epsilon")
def epsilon() -> float:
    """A small number that keeps divisions and logarithms finite."""
    return _epsilon


@export("keras.backend.set_epsilon")
def set_epsilon(value: float) -> None:
    """Sets what `epsilon` returns."""
    global _epsilon
    _epsilon = value


@export("keras.backend.floatx")
def floatx() -> str:
    """The dtype of weights by default."""
    return base.floatx()


@export("keras.backend.set_floatx")
def set_floatx(value: str) -> None:
    """Sets the dtype of weights: "float16", "float32" or "float64".

    Raises:
        ValueError: it is something else.
    """
    if value not in ("float16", "float32", "float64"):
        raise ValueError(f"Unknown floatx type: {value}")
    base.set_default_float(value)


@export("keras.backend.image_data_format")
def image_data_format() -> str:
    """ "channels_last" or "channels_first"."""
    return base.default_data_format()


@export("keras.backend.set_image_data_format")
def set_image_data_format(data_format: str) -> None:
    """Sets the default of layers.

    Raises:
        ValueError: it is not a data format.
    """
    if data_format not in ("channels_last", "channels_first"):
        raise ValueError(f"Unknown data_format: {data_format}")
    base.set_default_data_format(data_format)


@export("keras.backend.backend")
def backend() -> str:
    """The name programs ask for: "tensorflow"."""
    return "tensorflow"


@export("keras.backend.clear_session")
def clear_session() -> None:
    """Forgets the graph, the session and the counters of layer names."""
    sessions.close_session()
    base.forget_private_graph()
    if not context.executing_eagerly():
        context.reset_default_graph()


@export("keras.backend.get_uid")
def get_uid(prefix: str = "") -> int:
    """The next number of a name: 1, 2, ..."""
    made = base.layer_name(f"{prefix}")
    return int(made.rsplit("_", 1)[1])


@export("keras.backend.reset_uids")
def reset_uids() -> None:
    """Starts the numbers of names again."""
    graph: Any = base.private_graph() if context.executing_eagerly() else context.get_default_graph()
    graph.keras_names = {}


@export("keras.backend.name_scope")
def name_scope(name: str, default_name: str | None = None, values: Any = None) -> Any:
    """Prefixes the names of ops."""
    return scopes.NameScope(name, default_name, values)


# ---- tensors and variables ------------------------------------------------------------------------------------------


@export("keras.backend.variable")
def variable(value: Any, dtype: Any = None, name: str | None = None, constraint: Any = None) -> Any:
    """A variable with an initial value."""
    if hasattr(value, "tocoo"):
        raise NotImplementedError("Sparse variables.")
    made = variables_variables.Variable(
        value,
        dtype=dtypes.as_dtype(dtype or floatx()) if not hasattr(value, "static_shape") or dtype else None,
        name=name,
        constraint=constraint,
        use_resource=True,
    )
    made._uses_learning_phase = False
    return made


@export("keras.backend.constant")
def constant(value: Any, dtype: Any = None, shape: Any = None, name: str | None = None) -> Any:
    """A constant."""
    return constants.constant(value, dtype=dtype or floatx(), shape=shape, name=name)


@export("keras.backend.placeholder")
def placeholder(
    shape: Any = None,
    ndim: int | None = None,
    dtype: Any = None,
    sparse: bool = False,
    name: str | None = None,
    ragged: bool = False,
) -> Any:
    """A placeholder."""
    if ragged:
        raise NotImplementedError("Ragged placeholders of Keras.")
    shape = (None,) * ndim if shape is None and ndim else shape
    make = sparse_functions.sparse_placeholder if sparse else constants.placeholder
    if context.executing_eagerly():
        with context.enter_graph(base.private_graph()):
            return make(dtype or floatx(), shape=shape, name=name)
    return make(dtype or floatx(), shape=shape, name=name)


@export("keras.backend.is_keras_tensor")
def is_keras_tensor(x: Any) -> bool:
    """Whether a tensor is an input or output of a layer in a network.

    Raises:
        ValueError: it is not a tensor.
    """
    if not hasattr(x, "static_shape"):
        raise ValueError(f"Unexpectedly found an instance of type `{type(x)}`. Expected a symbolic tensor instance.")
    return hasattr(x, "_keras_history")


@export("keras.backend.is_sparse")
def is_sparse(tensor: Any) -> bool:
    """Whether it is a sparse tensor."""
    return isinstance(tensor, sparse_tensor.SparseTensor)


@export("keras.backend.to_dense")
def to_dense(tensor: Any) -> Any:
    """A sparse tensor as a dense one."""
    return sparse_functions.to_dense(tensor) if is_sparse(tensor) else tensor


@export("keras.backend.shape")
def shape(x: Any) -> Any:
    """The shape as a tensor."""
    return shaping.shape(x)


@export("keras.backend.int_shape")
def int_shape(x: Any) -> Any:
    """The static shape as a tuple, with None for unknown sizes; None if the rank is unknown."""
    return None if x.shape.ndims is None else tuple(x.shape.as_list())


@export("keras.backend.ndim")
def ndim(x: Any) -> int | None:
    """The number of dimensions."""
    return x.shape.ndims


@export("keras.backend.dtype")
def dtype(x: Any) -> str:
    """The name of the dtype."""
    return x.dtype.base_dtype.name


@export("keras.backend.count_params")
def count_params(x: Any) -> int:
    """The number of elements."""
    return int(np.prod(x.shape.as_list()))


@export("keras.backend.eval")
def evaluate(x: Any) -> Any:
    """The value of a tensor or variable."""
    return sessions.get_value(to_dense(x))


@export("keras.backend.cast")
def cast(x: Any, dtype: Any) -> Any:
    """Another dtype."""
    return casting.cast(x, dtype)


@export("keras.backend.cast_to_floatx")
def cast_to_floatx(x: Any) -> Any:
    """The default dtype of weights."""
    return casting.cast(x, floatx()) if hasattr(x, "static_shape") else np.asarray(x, dtype=floatx())


def _filled(name: str, make: Callable[..., Any], doc: str) -> Callable[..., Any]:
    @named(name, doc)
    def filled(shape: Any, dtype: Any = None, name: str | None = None) -> Any:
        value = make(shape, dtype or floatx())
        return value if None in tuple(shape) else variables_variables.Variable(value, name=name, use_resource=True)

    return export(f"keras.backend.{name}")(filled)


zeros = _filled("zeros", shaping.zeros, "A variable of zeros.")
ones = _filled("ones", shaping.ones, "A variable of ones.")


@export("keras.backend.eye")
def eye(size: int, dtype: Any = None, name: str | None = None) -> Any:
    """A variable with the identity matrix."""
    return variable(diagonals.eye(size, dtype=dtype or floatx()), dtype, name)


@export("keras.backend.zeros_like")
def zeros_like(x: Any, dtype: Any = None, name: str | None = None) -> Any:
    """Zeros of the same shape."""
    return shaping.zeros_like(x, dtype=dtype, name=name)


@export("keras.backend.ones_like")
def ones_like(x: Any, dtype: Any = None, name: str | None = None) -> Any:
    """Ones of the same shape."""
    return shaping.ones_like(x, dtype=dtype, name=name)


@export("keras.backend.arange")
def arange(start: Any, stop: Any = None, step: Any = 1, dtype: str = "int32") -> Any:
    """Numbers from start to stop."""
    start, stop = (0, start) if stop is None else (start, stop)
    return casting.cast(ranges.range(start, stop, step), dtype)


def _random(
    name: str, draw: Callable[..., Any], first: str, second: str, defaults: tuple[float, float], doc: str
) -> Any:
    @named(name, doc)
    def drawn(shape: Any, *args: Any, **kwargs: Any) -> Any:
        given = dict(zip((first, second, "dtype", "seed"), args))
        given.update(kwargs)
        seed = given.get("seed")
        seed = np.random.randint(10e6) if seed is None else seed
        return draw(
            shape,
            given.get(first, defaults[0]),
            given.get(second, defaults[1]),
            dtype=given.get("dtype") or floatx(),
            seed=seed,
        )

    return export(f"keras.backend.{name}")(drawn)


random_normal = _random("random_normal", uniform_normal.random_normal, "mean", "stddev", (0.0, 1.0), "Normal numbers.")
random_uniform = _random(
    "random_uniform", uniform_normal.random_uniform, "minval", "maxval", (0.0, 1.0), "Uniform numbers."
)
truncated_normal = _random(
    "truncated_normal",
    uniform_normal.truncated_normal,
    "mean",
    "stddev",
    (0.0, 1.0),
    "Normal numbers within two standard deviations.",
)


@export("keras.backend.random_binomial")
def random_binomial(shape: Any, p: float = 0.0, dtype: Any = None, seed: Any = None) -> Any:
    """Ones with probability p."""
    seed = np.random.randint(10e6) if seed is None else seed
    kind = dtype or floatx()
    return selection.where(
        uniform_normal.random_uniform(shape, dtype=kind, seed=seed) <= p,
        shaping.ones(shape, kind),
        shaping.zeros(shape, kind),
    )


@export("keras.backend.update")
def update(x: Any, new_x: Any) -> Any:
    """Assigns a value."""
    return variable_functions.assign(x, new_x)


@export("keras.backend.update_add")
def update_add(x: Any, increment: Any) -> Any:
    """Adds to a variable."""
    return variable_functions.assign_add(x, increment)


@export("keras.backend.update_sub")
def update_sub(x: Any, decrement: Any) -> Any:
    """Subtracts from a variable."""
    return variable_functions.assign_sub(x, decrement)


@export("keras.backend.moving_average_update")
def moving_average_update(x: Any, value: Any, momentum: float) -> Any:
    """Moves a variable towards a value: x = x * momentum + value * (1 - momentum)."""
    return variable_functions.assign_sub(x, (x - casting.cast(value, x.dtype.base_dtype)) * (1 - momentum))


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
    seed = np.random.randint(10e6) if seed is None else seed
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
    logits = unary_functions.log(shaping.transpose(y_pred, [1, 0, 2]) + _epsilon)
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
    logits = unary_functions.log(shaping.transpose(y_pred, [1, 0, 2]) + _epsilon)
    lengths = casting.cast(input_length, dtypes.int32)
    if greedy:
        decoded, scores = ctc.ctc_greedy_decoder(logits, lengths)
    else:
        decoded, scores = ctc.ctc_beam_search_decoder(logits, lengths, beam_width, top_paths)
    return [sparse_functions.to_dense(each, default_value=-1) for each in decoded], scores


# ---- control --------------------------------------------------------------------------------------------------------


@export("keras.backend.gradients")
def gradients(loss: Any, variables: Any) -> Any:
    """The gradients of a loss in a graph."""
    return control_flow_gradients.gradients(loss, variables)


@export("keras.backend.stop_gradient")
def stop_gradient(variables: Any) -> Any:
    """A value that counts as a constant."""
    if isinstance(variables, (list, tuple)):
        return [shaping.stop_gradient(each) for each in variables]
    return shaping.stop_gradient(variables)


@export("keras.backend.switch")
def switch(condition: Any, then_expression: Any, else_expression: Any) -> Any:
    """One of two values, by a condition for all or for each example."""
    if condition.static_shape.rank == 0:
        then, otherwise = (
            each if callable(each) else (lambda value=each: value) for each in (then_expression, else_expression)
        )
        return branches_and_loops.cond(casting.cast(condition, dtypes.bool_), then, otherwise)
    then, otherwise = (each() if callable(each) else each for each in (then_expression, else_expression))
    wider = (then.static_shape.rank or 0) - (condition.static_shape.rank or 0)
    for _ in range(wider):
        condition = shaping.expand_dims(condition, -1)
    condition = (
        comparison.logical_and(casting.cast(condition, dtypes.bool_), shaping.ones_like(then, dtype=dtypes.bool_))
        if wider
        else casting.cast(condition, dtypes.bool_)
    )
    return selection.where(condition, then, otherwise)


@export("keras.backend.in_train_phase")
def in_train_phase(x: Any, alt: Any, training: Any = None) -> Any:
    """x in training, and `alt` otherwise."""
    flag = learning_phase.resolved(training)
    made = (each if callable(each) else (lambda value=each: value) for each in (x, alt))
    return smart_cond(flag, *made)


@export("keras.backend.in_test_phase")
def in_test_phase(x: Any, alt: Any, training: Any = None) -> Any:
    """`alt` in training, and x otherwise."""
    return in_train_phase(alt, x, training)


@export("keras.backend.map_fn")
def map_fn(fn: Any, elems: Any, name: str | None = None, dtype: Any = None) -> Any:
    """A function of each element."""
    return functional_loops.map_fn(fn, elems, name=name, dtype=dtype)


@export("keras.backend.foldl")
def foldl(fn: Any, elems: Any, initializer: Any = None, name: str | None = None) -> Any:
    """Reduces elements from the left."""
    return functional_loops.foldl(fn, elems, initializer=initializer, name=name)


@export("keras.backend.foldr")
def foldr(fn: Any, elems: Any, initializer: Any = None, name: str | None = None) -> Any:
    """Reduces elements from the right."""
    return functional_loops.foldr(fn, elems, initializer=initializer, name=name)


@export("keras.backend.print_tensor")
def print_tensor(x: Any, message: str = "") -> Any:
    """Prints a value when it is computed."""
    if context.executing_eagerly():
        printing.print_v2(message, x)
        return x
    with scopes.control_dependencies([printing.print_v2(message, x)]):
        return shaping.identity(x)


@export("keras.backend.manual_variable_initialization")
def manual_variable_initialization(value: bool) -> None:
    """Whether the program initializes variables itself."""
    sessions.set_manual_initialization(value)


class Function:
    """A function of tensors in a graph: arrays in, arrays out."""

    def __init__(self, inputs: Any, outputs: Any, updates: Any) -> None:
        self.inputs, self.outputs = list(inputs), outputs
        self._updates = [
            getattr(each, "op", each)
            for each in (
                variable_functions.assign(*each) if isinstance(each, tuple) else each for each in updates or ()
            )
        ]

    def __call__(self, inputs: Any) -> Any:
        values = nest.flatten(inputs)
        if len(values) != len(self.inputs):
            raise ValueError(f"The function takes {len(self.inputs)} values, but {len(values)} were given.")
        feeds = dict(zip(self.inputs, values))
        feeds = {key: value for key, value in feeds.items() if base.is_symbolic(key)}
        flat = nest.flatten(self.outputs)
        found = sessions.get_session().run([*flat, *self._updates], feeds)[: len(flat)]
        return nest.pack_sequence_as(self.outputs, found)


@export("keras.backend.function")
def function(inputs: Any, outputs: Any, updates: Any = None, name: str | None = None, **kwargs: Any) -> Any:
    """A function from arrays to arrays, by the tensors of a graph or of a network."""
    if kwargs:
        raise ValueError(f"Unknown arguments of a function: {sorted(kwargs)}")
    if not context.executing_eagerly():
        return Function(nest.flatten(inputs), outputs, updates)
    if updates:
        raise ValueError("`updates` argument is not supported during eager execution.")
    model = base.find("models", "Model")(inputs=inputs, outputs=outputs)

    @functools.wraps(function)
    def call(values: Any) -> Any:
        return nest.map_structure(
            lambda each: each.numpy(), model(values if len(nest.flatten(values)) > 1 else nest.flatten(values)[0])
        )

    return call
