"""Small graphs, by the TFLite builtin that they become. `build(tf, *inputs)` works with stoker's 1.x names and with TensorFlow's."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np


class Case(NamedTuple):
    """A graph that must be converted to a model with the builtin `code`."""

    code: str
    build: Callable[..., Any]
    inputs: list[np.ndarray]
    name: str = ""
    random: bool = False  # values are not compared, only their shapes

    @property
    def label(self) -> str:
        return f"{self.code}-{self.name}" if self.name else self.code


_numbers = np.random.RandomState(0)


def f32(*shape: int) -> np.ndarray:
    return _numbers.randn(*shape).astype(np.float32)


def positive(*shape: int) -> np.ndarray:
    return (_numbers.rand(*shape) + 0.1).astype(np.float32)


def ints(low: int, high: int, *shape: int, dtype: Any = np.int32) -> np.ndarray:
    return _numbers.randint(low, high, shape).astype(dtype)


def flags(*shape: int) -> np.ndarray:
    return _numbers.rand(*shape) > 0.5


W = f32(3, 3, 3, 4)
DEPTHWISE = f32(3, 3, 3, 2)
MATRIX = f32(4, 5)
IMAGE = f32(2, 8, 8, 3)


def _v2(tf: Any) -> Any:
    return tf.compat.v2


def _growing_list(tf: Any, x: Any, size: int = 0) -> Any:
    """A loop that writes five elements to a list of another size, the last one first."""
    array = tf.TensorArray(tf.float32, size, dynamic_size=True, element_shape=x.shape)
    step = lambda i, a: (i + 1, a.write((i + 4) % 5, x * tf.cast(i, tf.float32)))  # noqa: E731
    return tf.while_loop(lambda i, a: i < 5, step, [0, array])[1].stack()


def _appended_list(tf: Any, x: Any) -> Any:
    """Elements that are written one behind the other, and read."""
    array = tf.TensorArray(tf.float32, 0, dynamic_size=True)
    for place in range(3):
        array = array.write(place, x * float(place + 1))
    return array.stack(), array.read(1), array.size()


def _power(tf: Any, z: Any) -> Any:
    return tf.math.real(z * tf.math.conj(z))


def _gelu(tf: Any, x: Any) -> Any:
    return x * 0.5 * (1.0 + tf.math.erf(x / np.float32(np.sqrt(2.0))))


def _gelu_tanh(tf: Any, x: Any) -> Any:
    return 0.5 * x * (1.0 + tf.tanh(np.float32(np.sqrt(2 / np.pi)) * (x + 0.044715 * tf.pow(x, 3.0))))


def _lstm_loop(tf: Any, x: Any) -> Any:
    kernel, zeros = tf.constant(f_kernel), tf.zeros([2, 3])

    def body(i: Any, c: Any, h: Any) -> Any:
        gates = tf.matmul(tf.concat([x, h], 1), kernel)
        a, g, f, o = tf.split(gates, 4, axis=1)
        c = c * tf.sigmoid(f + 1.0) + tf.sigmoid(a) * tf.tanh(g)
        return i + 1, c, tf.tanh(c) * tf.sigmoid(o)

    return tf.while_loop(lambda i, c, h: i < 3, body, [0, zeros, zeros])[1:]


f_kernel = f32(7, 12)


def _loop(tf: Any, x: Any) -> Any:
    return tf.while_loop(
        lambda i, y: tf.reduce_sum(y) < 20.0, lambda i, y: (i + 1, y * 2.0 + x), [tf.constant(0), tf.abs(x)]
    )


def _list_loop(tf: Any, x: Any) -> Any:
    steps = int(x.shape[0])
    array = tf.TensorArray(tf.float32, size=steps, element_shape=x.shape[1:])
    out = tf.while_loop(lambda i, a: i < steps, lambda i, a: (i + 1, a.write(i, x[i] * 2.0)), [0, array])[1]
    return out.stack()


def _table(tf: Any, keys: Any) -> Any:
    init = tf.lookup.KeyValueTensorInitializer(tf.constant(["a", "b"]), tf.constant([5, 7], tf.int64))
    table = tf.lookup.StaticHashTable(init, -1)
    return table.lookup(keys), table.size()


def _names(tf: Any, keys: Any) -> Any:
    init = tf.lookup.KeyValueTensorInitializer(tf.constant([5, 7], tf.int64), tf.constant(["a", "b"]))
    return tf.lookup.StaticHashTable(init, "none").lookup(keys)


BOXES = np.array([[0, 0, 1, 1], [0, 0.1, 1, 1.1], [0, 2, 1, 3], [0, 2.05, 1, 3.05], [4, 4, 5, 5]], np.float32)
SCORES = np.array([0.9, 0.8, 0.7, 0.75, 0.3], np.float32)
WORDS = np.array([b"a", b"x", b"b"], object)

CASES = [
    Case("ABS", lambda tf, x: tf.abs(x), [f32(2, 3)]),
    Case("ADD", lambda tf, x, y: x + y, [f32(2, 3), f32(3)]),
    Case("ADD", lambda tf, x, y: x + y, [ints(0, 9, 2, 3), ints(0, 9, 3)], "int32"),
    Case("ADD", lambda tf, x: tf.nn.relu(x + 1.0), [f32(2, 3)], "relu"),
    Case("ADD_N", lambda tf, x, y, z: tf.add_n([x, y, z]), [f32(2, 3), f32(2, 3), f32(2, 3)]),
    Case("ARG_MAX", lambda tf, x: tf.argmax(x, 1), [f32(2, 3)]),
    Case("ARG_MIN", lambda tf, x: tf.argmin(x, 1, output_type=tf.int32), [f32(2, 3)]),
    Case("ATAN2", lambda tf, x, y: tf.atan2(x, y), [f32(2, 3), f32(2, 3)]),
    Case("AVERAGE_POOL_2D", lambda tf, x: tf.nn.avg_pool(x, [1, 2, 2, 1], [1, 2, 2, 1], "SAME"), [IMAGE]),
    Case("BATCH_MATMUL", lambda tf, x, y: tf.matmul(x, y), [f32(2, 3, 4), f32(2, 4, 5)]),
    Case("BATCH_MATMUL", lambda tf, x, y: tf.matmul(x, y, transpose_b=True), [f32(3, 4), f32(5, 4)], "matrices"),
    Case(
        "BATCH_MATMUL",
        lambda tf, x, y: tf.einsum("bqhd,bkhd->bhqk", x, y),
        [f32(2, 3, 2, 4), f32(2, 5, 2, 4)],
        "einsum",
    ),
    Case("BATCH_TO_SPACE_ND", lambda tf, x: tf.batch_to_space_nd(x, [2, 2], [[0, 0], [0, 1]]), [f32(4, 2, 3, 2)]),
    Case("BITCAST", lambda tf, x: tf.bitcast(x, tf.int32), [f32(2, 3)]),
    Case("BITWISE_XOR", lambda tf, x, y: tf.bitwise.bitwise_xor(x, y), [ints(0, 99, 4), ints(0, 99, 4)]),
    Case("BROADCAST_ARGS", lambda tf, x, y: tf.broadcast_dynamic_shape(x, y), [np.int32([2, 1]), np.int32([1, 3])]),
    Case("BROADCAST_TO", lambda tf, x: tf.broadcast_to(x, [2, 3]), [f32(3)]),
    Case("BUCKETIZE", lambda tf, x: tf.raw_ops.Bucketize(input=x, boundaries=[-1.0, 0.0, 1.0]), [f32(2, 3)]),
    Case("CAST", lambda tf, x: tf.cast(x, tf.int32), [f32(2, 3) * 5]),
    Case("CEIL", lambda tf, x: tf.ceil(x), [f32(2, 3)]),
    Case("COMPLEX_ABS", lambda tf, x: tf.abs(x), [(f32(2, 3) + 1j * f32(2, 3)).astype(np.complex64)]),
    Case("CONCATENATION", lambda tf, x, y: tf.concat([x, y], 1), [f32(2, 3), f32(2, 4)]),
    Case("CONV_2D", lambda tf, x: tf.nn.conv2d(x, W, [1, 2, 2, 1], "SAME"), [IMAGE]),
    Case(
        "CONV_2D", lambda tf, x: tf.nn.conv2d(x, W, [1, 1, 1, 1], "VALID", dilations=[1, 2, 2, 1]), [IMAGE], "dilated"
    ),
    Case("CONV_2D", lambda tf, x: tf.nn.atrous_conv2d(x, W, 2, "SAME"), [IMAGE], "atrous"),
    Case("CONV_2D", lambda tf, x: tf.nn.relu6(tf.nn.bias_add(tf.nn.conv2d(x, W, 1, "SAME"), f_bias)), [IMAGE], "bias"),
    Case(
        "CONV_2D",
        lambda tf, x: tf.nn.conv2d(tf.pad(x, [[0, 0], [1, 1], [1, 1], [0, 0]]), W, 1, "VALID"),
        [IMAGE],
        "pad",
    ),
    Case("CONV_2D", lambda tf, x: tf.nn.conv2d(x, W, 1, [[0, 0], [2, 1], [1, 1], [0, 0]]), [IMAGE], "explicit"),
    Case("CONV_3D", lambda tf, x: tf.nn.conv3d(x, f_volume, [1, 1, 1, 1, 1], "SAME"), [f32(1, 4, 4, 4, 2)]),
    Case(
        "CONV_3D_TRANSPOSE",
        lambda tf, x: tf.nn.conv3d_transpose(x, f_volume, [1, 8, 8, 8, 2], [1, 2, 2, 2, 1], "SAME"),
        [f32(1, 4, 4, 4, 3)],
    ),
    Case("COS", lambda tf, x: tf.cos(x), [f32(2, 3)]),
    Case("CUMSUM", lambda tf, x: tf.cumsum(x, 1, exclusive=True, reverse=True), [f32(2, 3)]),
    Case("DEPTHWISE_CONV_2D", lambda tf, x: tf.nn.depthwise_conv2d(x, DEPTHWISE, [1, 2, 2, 1], "SAME"), [IMAGE]),
    Case("DEPTH_TO_SPACE", lambda tf, x: tf.depth_to_space(x, 2), [f32(1, 2, 2, 8)]),
    Case("DIV", lambda tf, x, y: x / y, [f32(2, 3), positive(3)]),
    Case("DIV", lambda tf, x, y: tf.truncatediv(x, y), [ints(-9, 9, 2, 3), ints(1, 5, 3)], "int32"),
    Case("DYNAMIC_UPDATE_SLICE", _list_loop, [f32(8, 40)]),
    Case("ELU", lambda tf, x: tf.nn.elu(x), [f32(2, 3)]),
    Case("EMBEDDING_LOOKUP", lambda tf, ids: tf.nn.embedding_lookup(tf.constant(MATRIX), ids), [ints(0, 4, 6)]),
    Case("EQUAL", lambda tf, x, y: tf.equal(x, y), [ints(0, 2, 6), ints(0, 2, 6)]),
    Case("EXP", lambda tf, x: tf.exp(x), [f32(2, 3)]),
    Case("FAKE_QUANT", lambda tf, x: tf.quantization.fake_quant_with_min_max_args(x, -1, 1), [f32(2, 3)]),
    Case("FILL", lambda tf, x: tf.fill(x, 2.0), [np.int32([2, 3])]),
    Case("FLOOR", lambda tf, x: tf.floor(x), [f32(2, 3)]),
    Case("FLOOR_DIV", lambda tf, x, y: x // y, [ints(-9, 9, 2, 3), ints(1, 5, 3)]),
    Case("FLOOR_MOD", lambda tf, x, y: x % y, [ints(-9, 9, 2, 3), ints(1, 5, 3)]),
    Case("FULLY_CONNECTED", lambda tf, x: tf.nn.relu(tf.matmul(x, MATRIX) + f_row), [f32(3, 4)]),
    Case("FULLY_CONNECTED", lambda tf, x: tf.tensordot(x, tf.constant(MATRIX), 1) + 1.0, [f32(2, 3, 4)], "tensordot"),
    Case("GATHER", lambda tf, x, i: tf.gather(x, i, axis=1), [f32(2, 5), ints(0, 5, 3)]),
    Case("GATHER", lambda tf, x, i: tf.gather(x, i, batch_dims=1), [f32(2, 5), ints(0, 5, 2, 3)], "batch"),
    Case("GATHER_ND", lambda tf, x, i: tf.gather_nd(x, i), [f32(2, 5), np.int32([[0, 1], [1, 4]])]),
    Case("GELU", _gelu, [f32(2, 3)]),
    Case("GELU", _gelu_tanh, [f32(2, 3)], "tanh"),
    Case("GREATER", lambda tf, x, y: x > y, [f32(2, 3), f32(3)]),
    Case("GREATER_EQUAL", lambda tf, x, y: x >= y, [f32(2, 3), f32(3)]),
    Case("HARD_SWISH", lambda tf, x: x * tf.nn.relu6(x + 3.0) * np.float32(1 / 6), [f32(2, 3)]),
    Case("HASHTABLE", _table, [WORDS]),
    Case("HASHTABLE", _names, [np.int64([7, 9, 5])], "names"),
    Case("HASHTABLE_FIND", _table, [WORDS]),
    Case("HASHTABLE_IMPORT", _table, [WORDS]),
    Case("HASHTABLE_SIZE", _table, [WORDS]),
    Case("CALL_ONCE", _table, [WORDS]),
    Case("IF", lambda tf, x: tf.cond(tf.reduce_sum(x) > 0, lambda: x + 1.0, lambda: x * x), [f32(2, 3)]),
    Case(
        "IF", lambda tf, x, i: tf.switch_case(i, [lambda: x, lambda: x * 2, lambda: -x]), [f32(2), np.int32(2)], "case"
    ),
    Case("IMAG", lambda tf, x: tf.imag(x), [(f32(2, 3) + 1j * f32(2, 3)).astype(np.complex64)]),
    Case("L2_NORMALIZATION", lambda tf, x: tf.nn.l2_normalize(x, -1), [f32(2, 3)]),
    Case("L2_POOL_2D", lambda tf, x: tf.sqrt(tf.nn.avg_pool(x * x, [1, 2, 2, 1], [1, 2, 2, 1], "VALID")), [IMAGE]),
    Case("LEAKY_RELU", lambda tf, x: tf.nn.leaky_relu(x, 0.3), [f32(2, 3)]),
    Case("LEAKY_RELU", lambda tf, x: tf.maximum(x, 0.1 * x), [f32(2, 3)], "maximum"),
    Case("LESS", lambda tf, x, y: x < y, [f32(2, 3), f32(3)]),
    Case("LESS_EQUAL", lambda tf, x, y: x <= y, [f32(2, 3), f32(3)]),
    Case("LOCAL_RESPONSE_NORMALIZATION", lambda tf, x: tf.nn.lrn(x, 2, 1.0, 1e-2, 0.5), [IMAGE]),
    Case("LOG", lambda tf, x: tf.math.log(x), [positive(2, 3)]),
    Case("LOGICAL_AND", lambda tf, x, y: tf.logical_and(x, y), [flags(6), flags(6)]),
    Case("LOGICAL_NOT", lambda tf, x: tf.logical_not(x), [flags(6)]),
    Case("LOGICAL_OR", lambda tf, x, y: tf.logical_or(x, y), [flags(6), flags(6)]),
    Case("LOGISTIC", lambda tf, x: tf.sigmoid(x), [f32(2, 3)]),
    Case("LOG_SOFTMAX", lambda tf, x: tf.nn.log_softmax(x), [f32(2, 3)]),
    Case("LSTM", _lstm_loop, [f32(2, 4)]),
    Case("MATRIX_DIAG", lambda tf, x: tf.matrix_diag(x), [f32(2, 3)]),
    Case("MATRIX_SET_DIAG", lambda tf, x, y: tf.matrix_set_diag(x, y), [f32(2, 3, 4), f32(2, 3)]),
    Case("MAXIMUM", lambda tf, x, y: tf.maximum(x, y), [f32(2, 3), f32(3)]),
    Case("MAX_POOL_2D", lambda tf, x: tf.nn.max_pool(x, [1, 3, 3, 1], [1, 2, 2, 1], "SAME"), [IMAGE]),
    Case("MEAN", lambda tf, x: tf.reduce_mean(x, [1, 2]), [IMAGE]),
    Case("MINIMUM", lambda tf, x, y: tf.minimum(x, y), [f32(2, 3), f32(3)]),
    Case("MIRROR_PAD", lambda tf, x: tf.pad(x, [[0, 0], [1, 2]], "REFLECT"), [f32(2, 4)]),
    Case("MUL", lambda tf, x, y: x * y, [f32(2, 3), f32(3)]),
    Case("MULTINOMIAL", lambda tf, x: tf.random.categorical(x, 5), [f32(2, 3)], random=True),
    Case("NEG", lambda tf, x: -x, [f32(2, 3)]),
    Case("NON_MAX_SUPPRESSION_V4", lambda tf, b, s: tf.image.non_max_suppression(b, s, 3, 0.5), [BOXES, SCORES]),
    Case(
        "NON_MAX_SUPPRESSION_V4",
        lambda tf, b, s: tf.image.non_max_suppression_padded(b, s, 4, 0.5, 0.4, pad_to_max_output_size=True),
        [BOXES, SCORES],
        "padded",
    ),
    Case(
        "NON_MAX_SUPPRESSION_V5",
        lambda tf, b, s: tf.image.non_max_suppression_with_scores(b, s, 3, 0.5, 0.1, 0.5),
        [BOXES, SCORES],
    ),
    Case("NOT_EQUAL", lambda tf, x, y: tf.not_equal(x, y), [ints(0, 2, 6), ints(0, 2, 6)]),
    Case("ONE_HOT", lambda tf, x: tf.one_hot(x, 4, axis=0), [ints(0, 4, 3)]),
    Case("PACK", lambda tf, x, y: tf.stack([x, y], 1), [f32(2, 3), f32(2, 3)]),
    Case("PAD", lambda tf, x: tf.pad(x, [[1, 0], [0, 2]]), [f32(2, 3)]),
    Case("PADV2", lambda tf, x: tf.pad(x, [[1, 0], [0, 2]], constant_values=1.5), [f32(2, 3)]),
    Case("POW", lambda tf, x, y: tf.pow(x, y), [positive(2, 3), f32(3)]),
    Case("PRELU", lambda tf, x: tf.nn.relu(x) - f_row * tf.nn.relu(-x), [f32(2, 5)]),
    Case("RANDOM_STANDARD_NORMAL", lambda tf, x: x + tf.random.normal([2, 3]), [f32(2, 3)], random=True),
    Case("RANDOM_UNIFORM", lambda tf, x: x + tf.random.uniform([2, 3]), [f32(2, 3)], random=True),
    Case("RANGE", lambda tf, x: tf.range(x), [np.int32(4)]),
    Case("REAL", lambda tf, x: tf.real(x), [(f32(2, 3) + 1j * f32(2, 3)).astype(np.complex64)]),
    Case("REDUCE_ALL", lambda tf, x: tf.reduce_all(x, 1), [flags(2, 3)]),
    Case("REDUCE_ANY", lambda tf, x: tf.reduce_any(x, 1), [flags(2, 3)]),
    Case("REDUCE_MAX", lambda tf, x: tf.reduce_max(x, 1, keepdims=True), [f32(2, 3)]),
    Case("REDUCE_MIN", lambda tf, x: tf.reduce_min(x, 1), [f32(2, 3)]),
    Case("REDUCE_PROD", lambda tf, x: tf.reduce_prod(x, 1), [f32(2, 3)]),
    Case("RELU", lambda tf, x: tf.nn.relu(x), [f32(2, 3)]),
    Case("RELU6", lambda tf, x: tf.nn.relu6(x), [f32(2, 3) * 5]),
    Case("RELU_0_TO_1", lambda tf, x: tf.minimum(tf.maximum(x, 0.0), 1.0), [f32(2, 3)]),
    Case("RELU_N1_TO_1", lambda tf, x: tf.clip_by_value(x, -1.0, 1.0), [f32(2, 3)]),
    Case("RESHAPE", lambda tf, x: tf.reshape(x, [3, 2]), [f32(2, 3)]),
    Case("RESIZE_BILINEAR", lambda tf, x: tf.image.resize_bilinear(x, [5, 6]), [IMAGE]),
    Case("RESIZE_BILINEAR", lambda tf, x: tf.image.resize_bilinear(x, [5, 6], align_corners=True), [IMAGE], "corners"),
    Case("RESIZE_NEAREST_NEIGHBOR", lambda tf, x: tf.image.resize_nearest_neighbor(x, [5, 6]), [IMAGE]),
    Case(
        "REVERSE_SEQUENCE",
        lambda tf, x, n: tf.reverse_sequence(x, n, seq_axis=1, batch_axis=0),
        [f32(2, 4), np.int32([2, 3])],
    ),
    Case("REVERSE_V2", lambda tf, x: tf.reverse(x, [1]), [f32(2, 3)]),
    Case("RFFT2D", lambda tf, x: tf.abs(tf.signal.rfft2d(x)), [f32(1, 8, 8)]),
    Case("RFFT2D", lambda tf, x: tf.abs(tf.signal.rfft(x)), [f32(3, 8)], "rows"),
    Case(
        "RFFT2D",
        lambda tf, x: tf.math.real(tf.signal.rfft(x, [10])),
        [f32(2, 3, 12)],
        "a length that is no power of two",
    ),
    Case("RIGHT_SHIFT", lambda tf, x, y: tf.bitwise.right_shift(x, y), [ints(0, 99, 4), ints(0, 5, 4)]),
    Case("ROUND", lambda tf, x: tf.round(x), [f32(2, 3) * 3]),
    Case("RSQRT", lambda tf, x: tf.math.rsqrt(x), [positive(2, 3)]),
    Case("SCATTER_ND", lambda tf, i, x: tf.scatter_nd(i, x, [6]), [np.int32([[4], [1], [4]]), f32(3)]),
    Case("SEGMENT_SUM", lambda tf, x, i: tf.math.segment_sum(x, i), [f32(4, 2), np.int32([0, 0, 1, 2])]),
    Case("SELECT", lambda tf, c, x, y: tf.where(c, x, y), [flags(2, 3), f32(2, 3), f32(2, 3)]),
    Case("SELECT_V2", lambda tf, c, x, y: tf.where_v2(c, x, y), [flags(3), f32(2, 3), f32(2, 3)]),
    Case("SIGN", lambda tf, x: tf.sign(x), [f32(2, 3)]),
    Case("SIN", lambda tf, x: tf.sin(x), [f32(2, 3)]),
    Case("SLICE", lambda tf, x: tf.slice(x, [0, 1], [2, 2]), [f32(2, 4)]),
    Case("SOFTMAX", lambda tf, x: tf.nn.softmax(x * 0.5), [f32(2, 3)]),
    Case("SPACE_TO_BATCH_ND", lambda tf, x: tf.space_to_batch_nd(x, [2, 2], [[0, 0], [0, 0]]), [f32(1, 4, 4, 2)]),
    Case("SPACE_TO_DEPTH", lambda tf, x: tf.space_to_depth(x, 2), [f32(1, 4, 4, 2)]),
    Case("SPARSE_TO_DENSE", lambda tf, x: tf.sparse_to_dense([[0, 1], [1, 0]], [2, 3], x), [f32(2)]),
    Case("SPLIT", lambda tf, x: tf.split(x, 2, axis=1), [f32(2, 4)]),
    Case("SPLIT_V", lambda tf, x: tf.split(x, [1, 3], axis=1), [f32(2, 4)]),
    Case("SQRT", lambda tf, x: tf.sqrt(x), [positive(2, 3)]),
    Case("SQUARE", lambda tf, x: tf.square(x), [f32(2, 3)]),
    Case("SQUARED_DIFFERENCE", lambda tf, x, y: tf.math.squared_difference(x, y), [f32(2, 3), f32(3)]),
    Case("STRIDED_SLICE", lambda tf, x: x[:, 1:4:2], [f32(2, 5)]),
    Case("STRIDED_SLICE", lambda tf, x: x[..., 1:, tf.newaxis], [f32(2, 3, 5)], "ellipsis"),
    Case(
        "STRIDED_SLICE",
        lambda tf, x, k: (x[:, None, 1 : k + 1], x[..., :k], x[..., None, -k:, ::2], x[k, ..., None]),
        [f32(3, 4, 5), np.int32(2)],
        "ellipsis-without-known-bounds",
    ),
    Case("STRIDED_SLICE", lambda tf, x: x[1, ::-1], [f32(2, 5)], "backwards"),
    Case("SUB", lambda tf, x, y: x - y, [f32(2, 3), f32(3)]),
    Case("SUM", lambda tf, x: tf.reduce_sum(x, 1), [f32(2, 3)]),
    Case("TANH", lambda tf, x: tf.tanh(x), [f32(2, 3)]),
    Case("TILE", lambda tf, x: tf.tile(x, [2, 3]), [f32(2, 3)]),
    Case("TOPK_V2", lambda tf, x: tf.nn.top_k(x, 2), [f32(2, 5)]),
    Case("TRANSPOSE", lambda tf, x: tf.transpose(x, [0, 2, 1]), [f32(2, 3, 4)]),
    Case(
        "TRANSPOSE_CONV",
        lambda tf, x: tf.nn.conv2d_transpose(x, W, [2, 8, 8, 3], [1, 2, 2, 1], "SAME"),
        [f32(2, 4, 4, 4)],
    ),
    Case("UNIQUE", lambda tf, x: tf.unique(x), [ints(0, 3, 6)]),
    Case("UNPACK", lambda tf, x: tf.unstack(x, axis=1), [f32(2, 3)]),
    Case(
        "UNSORTED_SEGMENT_MAX",
        lambda tf, x, i: tf.math.unsorted_segment_max(x, i, 3),
        [f32(4, 2), np.int32([2, 0, 1, 2])],
    ),
    Case(
        "UNSORTED_SEGMENT_MIN",
        lambda tf, x, i: tf.math.unsorted_segment_min(x, i, 3),
        [f32(4, 2), np.int32([2, 0, 1, 2])],
    ),
    Case(
        "UNSORTED_SEGMENT_PROD",
        lambda tf, x, i: tf.math.unsorted_segment_prod(x, i, 3),
        [f32(4, 2), np.int32([2, 0, 1, 2])],
    ),
    Case(
        "UNSORTED_SEGMENT_SUM",
        lambda tf, x, i: tf.math.unsorted_segment_sum(x, i, 3),
        [f32(4, 2), np.int32([2, 0, 1, 2])],
    ),
    Case("WHERE", lambda tf, x: tf.where(x), [flags(2, 3)]),
    Case("WHILE", _loop, [f32(2, 3)]),
]
f_bias = f32(4)
f_row = f32(5)
f_volume = f32(2, 2, 2, 2, 3)

# Ops that are composed of builtins.
COMPOSED = [
    Case("DIV", lambda tf, x: tf.math.reciprocal(x), [positive(2, 3)], "reciprocal"),
    Case("EXP", lambda tf, x: tf.math.expm1(x), [f32(2, 3)], "expm1"),
    Case("LOG", lambda tf, x: tf.math.log1p(x), [positive(2, 3)], "log1p"),
    Case("LOG", lambda tf, x: tf.nn.softplus(x), [f32(2, 3) * 10], "softplus"),
    Case("DIV", lambda tf, x: tf.nn.softsign(x), [f32(2, 3)], "softsign"),
    Case("ELU", lambda tf, x: tf.nn.selu(x), [f32(2, 3)], "selu"),
    Case("DIV", lambda tf, x: tf.tan(x), [f32(2, 3)], "tan"),
    Case("EXP", lambda tf, x: tf.sinh(x) + tf.cosh(x), [f32(2, 3)], "sinh-cosh"),
    Case("ATAN2", lambda tf, x: tf.atan(x), [f32(2, 3)], "atan"),
    Case("ATAN2", lambda tf, x: tf.asin(x) + tf.acos(x), [positive(2, 3) * 0.5], "asin-acos"),
    Case("NOT_EQUAL", lambda tf, x: tf.math.is_nan(x), [np.float32([1, np.nan])], "is-nan"),
    Case("EQUAL", lambda tf, x: tf.math.is_inf(x), [np.float32([1, np.inf])], "is-inf"),
    Case("LESS", lambda tf, x: tf.math.is_finite(x), [np.float32([1, np.inf, np.nan])], "is-finite"),
    Case("LOGICAL_OR", lambda tf, x, y: tf.logical_xor(x, y), [flags(6), flags(6)], "xor"),
    Case("SELECT_V2", lambda tf, x, y: tf.math.divide_no_nan(x, y), [f32(3), np.float32([1, 0, 2])], "div-no-nan"),
    Case("SELECT_V2", lambda tf, x, y: tf.math.xlogy(x, y), [np.float32([0, 1, 2]), np.float32([0, 1, 2])], "xlogy"),
    Case("SUM", lambda tf, x: tf.nn.l2_loss(x), [f32(2, 3)], "l2-loss"),
    Case("SQRT", lambda tf, x: tf.math.reduce_euclidean_norm(x, 1), [f32(2, 3)], "norm"),
    Case("ADD", lambda tf, x: tf.raw_ops.LinSpace(start=1.0, stop=x, num=5), [np.float32(2)], "linspace"),
    Case("SCATTER_ND", lambda tf, x: tf.math.invert_permutation(x), [np.int32([2, 0, 1])], "invert-permutation"),
    Case("SCATTER_ND", lambda tf, x, u: tf.tensor_scatter_update(x, [[1], [3]], u), [f32(5), f32(2)], "tensor-scatter"),
    Case(
        "SCATTER_ND", lambda tf, x, u: tf.tensor_scatter_add(x, [[1], [3]], u), [f32(5), f32(2)], "tensor-scatter-add"
    ),
    Case("DIV", lambda tf, x, i: tf.math.segment_mean(x, i), [f32(4, 2), np.int32([0, 0, 2, 2])], "segment-mean"),
    Case(
        "UNSORTED_SEGMENT_SUM", lambda tf, x: tf.math.segment_sum(x, [1, 1, 3, 3]), [f32(4, 2)], "segments-without-rows"
    ),
    *(
        Case(
            code,
            lambda tf, x, i, name=name: getattr(tf.sparse, name)(x, i, [0, 0, 2]),
            [f32(4, 2, 3), np.int32([3, 1, 3])],
            name,
        )
        for name, code in (("segment_sum", "UNSORTED_SEGMENT_SUM"), ("segment_mean", "DIV"), ("segment_sqrt_n", "SQRT"))
    ),
    Case(
        "UNSORTED_SEGMENT_SUM",
        lambda tf, x, i: tf.sparse.segment_mean(x, [3, 1, 3], i, num_segments=4),
        [f32(4, 2), np.int32([0, 0, 2])],
        "segment-mean-of-four",
    ),
    Case("MUL", lambda tf, x: tf.nn.dropout(x, rate=0.5) * 3.0, [f32(2, 3)], "dropout", random=True),
    Case("MEAN", lambda tf, x: tf.nn.moments(x, [0]), [f32(5, 3)], "moments"),
    Case("TRANSPOSE", lambda tf, x: tf.einsum("abc->cab", x), [f32(2, 3, 4)], "einsum-transpose"),
    Case(
        "BATCH_MATMUL", lambda tf, x, y: tf.einsum("bij,bjk->bik", x, y), [f32(2, 3, 4), f32(2, 4, 5)], "einsum-matmul"
    ),
    Case("SUM", lambda tf, x: tf.einsum("bij->b", x), [f32(2, 3, 4)], "einsum-sum"),
    Case("FULLY_CONNECTED", lambda tf, x: tf.einsum("...i,ij->...j", x, MATRIX), [f32(2, 3, 4)], "einsum-ellipsis"),
    Case(
        "BATCH_MATMUL",
        lambda tf, x, y: tf.einsum("...ij,...kj->...ik", x, y),
        [f32(2, 3, 2, 4), f32(3, 5, 4)],
        "einsum-ellipses",
    ),
    Case("MUL", lambda tf, x: tf.square(x), [ints(-5, 5, 4)], "square-int32"),
    Case("FULLY_CONNECTED", lambda tf, x: tf.signal.dct(x, 2, norm="ortho"), [f32(2, 3, 20)], "cosine-transform"),
    Case("FULLY_CONNECTED", lambda tf, x: tf.imag(tf.signal.rfft(x)[:, 5:1:-1]), [f32(3, 16)], "few-frequencies"),
    Case("REAL", lambda tf, x: tf.real(tf.signal.rfft(x)[:1, :4]), [f32(3, 16)], "frequencies-of-few-rows"),
    Case("COMPLEX_ABS", lambda tf, x: _power(tf, tf.signal.stft(x, 16, 8)), [f32(2, 40)], "power"),
    Case("DYNAMIC_UPDATE_SLICE", _growing_list, [f32(2)], "growing"),
    Case("CONCATENATION", _appended_list, [f32(2, 3)], "appended"),
    Case("DYNAMIC_UPDATE_SLICE", lambda tf, x: _growing_list(tf, x, 3), [np.float32(3)], "growing-numbers"),
    Case("MUL", lambda tf, x: tf.math.divide_no_nan(x, [2.0, 4.0]), [f32(3, 2)], "div-by-numbers"),
    Case("ADD", lambda tf, x: tf.nn.moments(x, [1])[1] + tf.ones_like(x[:, 0]), [f32(2, 3)], "ones-like"),
    Case("LOG", lambda tf, x: tf.asinh(x), [f32(2, 3)], "asinh"),
    Case("LOG", lambda tf, x: tf.acosh(x + 1.0), [positive(2, 3)], "acosh"),
    Case("LOG", lambda tf, x: tf.atanh(x), [positive(2, 3) * 0.5], "atanh"),
    Case(
        "SELECT_V2",
        lambda tf, x, y: tf.raw_ops.Xlog1py(x=x, y=y),
        [np.float32([0, 1, 2]), np.float32([-1, 1, 2])],
        "xlog1py",
    ),
    Case("SELECT_V2", lambda tf, x: tf.matrix_band_part(x, 1, -1), [f32(2, 3, 4)], "band-part"),
    Case("GATHER", lambda tf, x: tf.matrix_diag_part(x), [f32(2, 3, 4)], "diag-part"),
    Case("MATRIX_DIAG", lambda tf, x: tf.diag(x), [f32(3)], "vector"),
    Case("GATHER", lambda tf, x: tf.roll(x, [1, -2], [0, -1]), [f32(2, 5)], "roll"),
    Case("GATHER", lambda tf, x, y: tf.dynamic_stitch([[3, 1], [[0, 2]]], [x, y]), [f32(2, 3), f32(1, 2, 3)], "stitch"),
    Case("CONCATENATION", lambda tf, x: tf.parallel_stack([x, x + 1.0]), [f32(2, 3)], "parallel-stack"),
    Case(
        "LOG_SOFTMAX",
        lambda tf, x, y: tf.nn.softmax_cross_entropy_with_logits_v2(labels=y, logits=x),
        [f32(2, 3), positive(2, 3)],
        "cross-entropy",
    ),
    Case(
        "ONE_HOT",
        lambda tf, x: tf.nn.sparse_softmax_cross_entropy_with_logits(labels=[2, 0], logits=x),
        [f32(2, 3)],
        "sparse-cross-entropy",
    ),
    Case("MEAN", lambda tf, x: tf.image.adjust_contrast(x, 1.5), [f32(1, 4, 3, 2)], "contrast"),
    Case("ADD", lambda tf, x, y: x * y - x + y, [np.uint8([250, 3]), np.uint8([4, 200])], "uint8"),
    Case("LESS", lambda tf, x, y: (x < y, tf.equal(x, y)), [np.int8([-5, 3, 4]), np.int8([-4, 3, -9])], "int8"),
    Case("SUM", lambda tf, x: tf.reduce_sum(x, 0), [np.int16([300, -20, 7])], "int16"),
]

# Other types, ranks and attributes, some of which need a later version of the builtin.
L = np.int64
VARIANTS = [
    Case("SELECT", _list_loop, [f32(4, 3)], "short-list"),
    Case("ADD", lambda tf, x, y: x + y, [ints(0, 9, 2, 3, dtype=L), ints(0, 9, 3, dtype=L)], "int64"),
    Case("ADD", lambda tf, x, y: x + y, [f32(1, 2, 1, 2, 3), f32(2, 1, 3, 1, 3)], "rank-5"),
    Case("SUB", lambda tf, x, y: x - y, [ints(0, 9, 2, 3, dtype=L), ints(0, 9, 3, dtype=L)], "int64"),
    Case("SUB", lambda tf, x, y: x - y, [f32(1, 2, 1, 2, 3), f32(2, 1, 3, 1, 3)], "rank-5"),
    Case("MUL", lambda tf, x, y: x * y, [ints(0, 9, 2, 3, dtype=L), ints(0, 9, 3, dtype=L)], "int64"),
    Case("MUL", lambda tf, x, y: x * y, [ints(0, 9, 2, 3), ints(0, 9, 3)], "int32"),
    Case("MUL", lambda tf, x, y: x * y, [f32(1, 2, 1, 2, 3), f32(2, 1, 3, 1, 3)], "rank-5"),
    Case("MAXIMUM", lambda tf, x, y: tf.maximum(x, y), [ints(0, 9, 2, 3, dtype=L), ints(0, 9, 3, dtype=L)], "int64"),
    Case("MAXIMUM", lambda tf, x, y: tf.maximum(x, y), [f32(1, 2, 1, 2, 3), f32(2, 1, 3, 1, 3)], "rank-5"),
    Case("LESS", lambda tf, x, y: x < y, [ints(0, 9, 2, 3, dtype=L), ints(0, 9, 3, dtype=L)], "int64"),
    Case("LESS", lambda tf, x, y: x < y, [f32(1, 2, 1, 2, 3), f32(2, 1, 3, 1, 3)], "rank-5"),
    Case(
        "EQUAL",
        lambda tf, x, y: tf.equal(x, y[..., 0, 0, 0]),
        [ints(0, 3, 2, 1, 3, 2, 2), ints(0, 3, 2, 1, 1)],
        "rank-5",
    ),
    Case("GREATER", lambda tf, x, y: x > y, [f32(2, 2, 3, 2, 2), f32(1, 1, 3, 1, 1)], "rank-5"),
    Case("POW", lambda tf, x, y: tf.pow(x, y), [positive(2, 2, 3, 2, 2), f32(3, 1, 1)], "rank-5"),
    Case("FLOOR_MOD", lambda tf, x, y: x % y, [f32(1, 2, 3, 2, 2), positive(1, 1, 3, 1, 2)], "rank-5"),
    Case("LOGICAL_AND", lambda tf, x, y: x & y, [flags(2, 2, 3, 2, 2), flags(2, 1, 1, 2, 1)], "rank-5"),
    Case("ATAN2", lambda tf, x, y: tf.atan2(x, y), [f32(2, 3), f32(3)], "broadcast"),
    Case("L2_NORMALIZATION", lambda tf, x: tf.nn.l2_normalize(x, -1), [f32(1, 2, 3, 2, 3)], "rank-5"),
    Case("EQUAL", lambda tf, x, y: tf.equal(x, y), [flags(4), flags(4)], "bool"),
    Case("EQUAL", lambda tf, x, y: tf.equal(x, y), [WORDS, np.array([b"a", b"b", b"b"], object)], "string"),
    Case("NOT_EQUAL", lambda tf, x, y: tf.not_equal(x, y), [WORDS, np.array([b"a", b"b", b"b"], object)], "string"),
    Case("FLOOR_DIV", lambda tf, x, y: tf.floordiv(x, y), [f32(2, 3), positive(3)], "float"),
    Case("FLOOR_MOD", lambda tf, x, y: x % y, [ints(-9, 9, 2, 3, dtype=L), ints(1, 5, 3, dtype=L)], "int64"),
    Case("FLOOR_MOD", lambda tf, x, y: x % y, [f32(2, 3), positive(3)], "float"),
    Case("NEG", lambda tf, x: -x, [ints(0, 9, 2, 3, dtype=L)], "int64"),
    Case("ABS", lambda tf, x: tf.abs(x), [ints(-9, 9, 2, 3)], "int32"),
    Case("SIGN", lambda tf, x: tf.sign(x), [ints(-9, 9, 2, 3)], "int32"),
    Case("CAST", lambda tf, x: tf.cast(x, tf.int64), [f32(2, 3)], "int64"),
    Case("CAST", lambda tf, x: tf.cast(x, tf.float32), [flags(4)], "bool"),
    Case("CAST", lambda tf, x: tf.cast(x, tf.float32), [ints(0, 9, 4, dtype=np.uint8)], "uint8"),
    Case("CAST", lambda tf, x: tf.cast(tf.cast(x, tf.float64), tf.float32), [f32(3)], "float64"),
    Case("CAST", lambda tf, x: tf.cast(tf.cast(x, tf.float16), tf.float32), [f32(3)], "float16"),
    Case("ARG_MAX", lambda tf, x: tf.argmax(x, 1), [ints(0, 99, 2, 3)], "int32"),
    Case("SELECT", lambda tf, c, x, y: tf.where(c, x, y), [flags(2), f32(2, 3), f32(2, 3)], "rows"),
    Case(
        "SELECT_V2", lambda tf, c, x, y: tf.where_v2(c, x, y), [flags(3), ints(0, 9, 2, 3), ints(0, 9, 2, 3)], "int32"
    ),
    Case("SUM", lambda tf, x: tf.reduce_sum(x, 1), [ints(0, 9, 2, 3, dtype=L)], "int64"),
    Case("MEAN", lambda tf, x: tf.reduce_mean(x, 1), [ints(0, 9, 2, 3)], "int32"),
    Case("REDUCE_MAX", lambda tf, x: tf.reduce_max(x, 1), [ints(0, 9, 2, 3, dtype=L)], "int64"),
    Case("TRANSPOSE", lambda tf, x: tf.transpose(x, [4, 0, 2, 1, 3]), [f32(2, 1, 3, 2, 2)], "rank-5"),
    Case("TRANSPOSE", lambda tf, x: tf.transpose(x), [ints(0, 9, 2, 3, dtype=L)], "int64"),
    Case("TRANSPOSE", lambda tf, x: tf.transpose(x), [flags(2, 3)], "bool"),
    Case("SLICE", lambda tf, x: tf.slice(x, [0, 1, 0, 0, 0], [1, 1, 1, 1, 2]), [f32(2, 2, 1, 1, 3)], "rank-5"),
    Case("SLICE", lambda tf, x: tf.slice(x, [1], [2]), [WORDS], "string"),
    Case("STRIDED_SLICE", lambda tf, x: x[1:], [WORDS], "string"),
    Case("STRIDED_SLICE", lambda tf, x: x[:, 1:], [flags(2, 3)], "bool"),
    Case("STRIDED_SLICE", lambda tf, x: x[:, :1, :, :, 1:], [f32(2, 2, 1, 1, 3)], "rank-5"),
    Case("GATHER", lambda tf, x, i: tf.gather(x, i), [WORDS, ints(0, 3, 4)], "string"),
    Case("GATHER", lambda tf, x, i: tf.gather(x, i), [flags(4), ints(0, 3, 4, dtype=L)], "bool"),
    Case("GATHER_ND", lambda tf, x, i: tf.gather_nd(x, i), [WORDS, ints(0, 3, 4, 1)], "string"),
    Case("TILE", lambda tf, x: tf.tile(x, [2]), [WORDS], "string"),
    Case("FILL", lambda tf, n, x: tf.fill(n, x), [np.int32([2, 3]), np.array(True)], "bool"),
    Case("FILL", lambda tf, n, x: tf.fill(n, x), [np.int64([2, 3]), np.int64(4)], "int64"),
    Case("PACK", lambda tf, x, y: tf.stack([x, y]), [ints(0, 9, 3, dtype=L), ints(0, 9, 3, dtype=L)], "int64"),
    Case(
        "CONCATENATION",
        lambda tf, x, y: tf.concat([x, y], 0),
        [ints(0, 9, 3, dtype=L), ints(0, 9, 3, dtype=L)],
        "int64",
    ),
    Case("CONCATENATION", lambda tf, x, y: tf.concat([x, y], 0), [flags(3), flags(3)], "bool"),
    Case("SPLIT", lambda tf, x: tf.split(x, 2, axis=1), [ints(0, 9, 2, 4)], "int32"),
    Case("REVERSE_V2", lambda tf, x: tf.reverse(x, [0]), [flags(3)], "bool"),
    Case("REVERSE_V2", lambda tf, x: tf.reverse(x, [0, 1]), [f32(2, 3)], "axes"),
    Case("REVERSE_V2", lambda tf, x: tf.reverse(x, [0, 2]), [f32(2, 3, 2)], "apart"),
    Case("REVERSE_V2", lambda tf, x: tf.reverse(x, [-1]), [f32(2, 3, 2)], "from_the_end"),
    Case("PAD", lambda tf, x: tf.pad(x, [[1, 0]] * 5), [f32(1, 2, 1, 2, 3)], "rank-5"),
    Case("PAD", lambda tf, x: tf.pad(x, [[1, 0]]), [ints(0, 9, 3, dtype=L)], "int64"),
    Case("TOPK_V2", lambda tf, x: tf.nn.top_k(x, 2), [ints(0, 99, 5)], "int32"),
    Case("RANGE", lambda tf, x: tf.range(x), [np.int64(4)], "int64"),
    Case("RANGE", lambda tf, x: tf.range(0.0, x, 0.5), [np.float32(2)], "float"),
    Case("ONE_HOT", lambda tf, x: tf.one_hot(x, 4, True, False), [ints(0, 4, 3, dtype=L)], "bool"),
    Case("UNIQUE", lambda tf, x: tf.unique(x, tf.int64), [ints(0, 3, 6, dtype=L)], "int64"),
    Case("CUMSUM", lambda tf, x: tf.cumsum(x), [ints(0, 9, 4, dtype=L)], "int64"),
    Case("BATCH_MATMUL", lambda tf, x, y: tf.matmul(x, y), [f32(2, 1, 3, 4), f32(3, 4, 2)], "broadcast"),
    Case("RESIZE_BILINEAR", lambda tf, x: _v2(tf).image.resize(x, [5, 6]), [IMAGE], "half-pixel"),
    Case("RESIZE_NEAREST_NEIGHBOR", lambda tf, x: _v2(tf).image.resize(x, [5, 6], "nearest"), [IMAGE], "half-pixel"),
    Case("CONV_2D", lambda tf, x: tf.nn.conv2d(x, f_grouped, 1, "SAME"), [f32(1, 5, 5, 4)], "grouped"),
    Case(
        "DEPTHWISE_CONV_2D",
        lambda tf, x: tf.nn.depthwise_conv2d(x, DEPTHWISE, [1] * 4, "SAME", dilations=[2, 2]),
        [IMAGE],
        "dilated",
    ),
    Case(
        "TRANSPOSE_CONV",
        lambda tf, x: tf.nn.conv2d_transpose(x, W, [2, 8, 8, 3], 2, "SAME") + f_row[:3],
        [f32(2, 4, 4, 4)],
        "bias",
    ),
    Case(
        "TRANSPOSE_CONV",
        lambda tf, x: tf.nn.relu6(tf.nn.conv2d_transpose(x, W, [2, 8, 8, 3], 2, "SAME") + f_row[:3]),
        [f32(2, 4, 4, 4)],
        "activation",
    ),
    Case(
        "TRANSPOSE_CONV",
        lambda tf, x: tf.nn.relu(tf.nn.conv2d_transpose(x, W, [2, 8, 8, 3], 2, "SAME")),
        [f32(2, 4, 4, 4)],
        "activation-alone",
    ),
    Case("FULLY_CONNECTED", lambda tf, x: tf.matmul(x, MATRIX), [f32(3, 4)], "no-bias"),
    Case("WHERE", lambda tf, x: tf.where(x), [f32(2, 3)], "float"),
    Case("SOFTMAX", lambda tf, x: tf.nn.softmax(x), [f32(2, 1, 3, 2, 3)], "rank-5"),
    Case(
        "SCATTER_ND", lambda tf, i, x: tf.scatter_nd(i, x, [6]), [np.int32([[4], [1]]), ints(0, 9, 2, dtype=L)], "int64"
    ),
    Case("MIRROR_PAD", lambda tf, x: tf.pad(x, [[0, 0], [1, 2]], "SYMMETRIC"), [f32(2, 4)], "symmetric"),
    Case("POW", lambda tf, x, y: tf.pow(x, y), [ints(0, 4, 3), ints(0, 4, 3)], "int32"),
    Case(
        "SQUARED_DIFFERENCE", lambda tf, x, y: tf.math.squared_difference(x, y), [ints(0, 4, 3), ints(0, 4, 3)], "int32"
    ),
]
f_grouped = f32(3, 3, 2, 6)
