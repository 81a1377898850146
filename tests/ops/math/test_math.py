"""Element-wise arithmetic, comparison, logic and bits."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import settings as settings_for_hypothesis
from hypothesis import strategies as st

import stoker.compat.v1 as tf
from stoker._src.base import settings
from stoker._src.base.errors import FailedPreconditionError, InvalidArgumentError
from stoker._src.graph.definition import find_definition
from tests.ops.samples import Sample, booleans, c128, check_sample, f32, f64, i32, i64, positive, samples
from tests.running import run_built

INT_TYPES = ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64")


def of(dtype: str, *values: float) -> np.ndarray:
    return np.array(values, dtype)


def _extremes(dtype: str) -> tuple[np.ndarray, np.ndarray]:
    """Integers at the ends of their type, and partners that make sums and products wrap."""
    info = np.iinfo(dtype)
    x = np.array([info.min, info.max, info.max, 7, 100, 3], dtype)
    y = np.array([info.max, 1, info.max, 3, 7, 3], dtype)
    return x, y


def _wrapping(dtype: str) -> list[Sample]:
    x, y = _extremes(dtype)
    return [
        Sample("AddV2", [x, y], reference=np.add, gradient=False),
        Sample("Sub", [x, y], reference=np.subtract, gradient=False),
        Sample("Mul", [x, y], reference=np.multiply, gradient=False),
        Sample("FloorDiv", [x, y], reference=np.floor_divide, gradient=False),
        Sample("FloorMod", [x, y], reference=np.mod, gradient=False),
        Sample("Maximum", [x, y], reference=np.maximum, gradient=False),
        Sample("Minimum", [x, y], reference=np.minimum, gradient=False),
        Sample("Less", [x, y], reference=np.less, gradient=False),
        Sample("GreaterEqual", [x, y], reference=np.greater_equal, gradient=False),
        Sample("Equal", [x, y], reference=np.equal, gradient=False),
        Sample("BitwiseXor", [x, y], reference=np.bitwise_xor, gradient=False),
        Sample("Invert", [x], reference=np.invert, gradient=False),
        Sample("LeftShift", [x, of(dtype, 1, 2, 3, 4, 0, 7)], reference=np.left_shift, gradient=False),
        Sample("RightShift", [x, of(dtype, 1, 2, 3, 4, 0, 7)], reference=np.right_shift, gradient=False),
        Sample("PopulationCount", [x], reference=_bits, gradient=False),
        Sample("AddN", [[x, y, y]], reference=lambda xs: xs[0] + xs[1] + xs[2], gradient=False),
        Sample("Square", [x], reference=np.square, gradient=False),
        Sample("TruncateDiv", [x, y], reference=lambda a, b: _truncated(a, b), gradient=False),
    ]


def _bits(x: np.ndarray) -> np.ndarray:
    mask = (1 << (8 * x.itemsize)) - 1
    return np.array([bin(int(v) & mask).count("1") for v in x.ravel()], np.uint8).reshape(x.shape)


def _truncated(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    quotients = [abs(int(a)) // abs(int(b)) * (1 if (a < 0) == (b < 0) else -1) for a, b in zip(x, y)]
    return np.array(quotients, object).astype(x.dtype)


SPECIAL = np.array([0.0, -0.0, 1.0, -1.0, np.inf, -np.inf, np.nan, 2.5, -3.5])

BINARY = [
    Sample("Add", [f64(2, 3), f64(3)], reference=np.add),
    Sample("AddV2", [f32(2, 1), f32(1, 3)], reference=np.add),
    Sample("AddV2", [f32(), f32(0, 3)], reference=np.add),
    Sample("Mul", [f64(2, 3), f64(2, 3)], reference=np.multiply),
    Sample("Mul", [c128(2), c128(2)], reference=np.multiply, gradient=False),
    Sample(
        "MulNoNan",
        [of("f8", np.inf, np.nan, 2.0), of("f8", 0.0, 0.0, 3.0)],
        reference=lambda x, y: of("f8", 0, 0, 6),
        gradient=False,
    ),
    Sample("MulNoNan", [f64(3, 1), f64(2)], reference=np.multiply),
    Sample("Div", [i32(5), of("i4", 2, -2, 3, -3, 4)], reference=_truncated, gradient=False),
    Sample("RealDiv", [f64(3, 1), positive(3)], reference=np.divide),
    Sample("RealDiv", [c128(3), c128(3)], reference=np.divide, gradient=False),
    Sample(
        "DivNoNan",
        [of("f8", 1, -1, 0, 6), of("f8", 0, 0, 0, 3)],
        reference=lambda x, y: of("f8", 0, 0, 0, 2),
        gradient=False,
    ),
    Sample("DivNoNan", [f64(2, 3), f64(3)], reference=np.divide),
    Sample("FloorDiv", [SPECIAL, np.full(9, 2.0)], reference=lambda x, y: np.floor(x / y), gradient=False),
    Sample("FloorMod", [f64(5), f64(5)], reference=np.mod),
    Sample("TruncateMod", [f64(5), f64(5)], reference=np.fmod),
    Sample("Mod", [i32(5), of("i4", 2, -2, 3, -3, 4)], reference=np.fmod, gradient=False),
    Sample("FloorDiv", [i32(3), of("i4", 1, 0, 1)], raises=(InvalidArgumentError, "Integer division by zero")),
    Sample("FloorMod", [i64(3), of("i8", 1, 0, 1)], raises=(InvalidArgumentError, "Integer division by zero")),
    Sample("Pow", [positive(2, 3), f64(3)], reference=np.power),
    Sample("Pow", [of("f8", -2, -2, 0), of("f8", 2, -3, 2)], reference=np.power, gradient=(0,)),
    Sample("Pow", [of("i4", -2, 3, 0, 0), of("i4", 3, 2, 0, 5)], reference=np.power, gradient=False),
    Sample("Pow", [of("i4", 2), of("i4", -1)], raises=(InvalidArgumentError, "negative integer powers")),
    Sample("Pow", [c128(3), c128(3)], reference=np.power, gradient=False),
    Sample("SquaredDifference", [f64(2, 3), f64(3)], reference=lambda x, y: (x - y) ** 2),
    Sample("SquaredDifference", [c128(3), c128(3)], reference=lambda x, y: np.abs(x - y) ** 2 + 0j, gradient=False),
    Sample("Maximum", [f64(3, 2), f64(2)], reference=np.maximum),
    Sample("Minimum", [f64(3, 2), f64(2)], reference=np.minimum),
    Sample("Maximum", [SPECIAL, SPECIAL[::-1].copy()], reference=np.maximum, gradient=False),
    Sample("ClipByValue", [f64(2, 3), np.float64(-0.7), np.float64(0.9)], reference=np.clip),
    Sample("ClipByValue", [f64(2, 3), np.full((2, 3), -0.7), np.full((2, 3), 0.9)], reference=np.clip),
    Sample("Atan2", [f64(2, 3), f64(3)], reference=np.arctan2),
    Sample("NextAfter", [f64(4), f64(4)], reference=np.nextafter, gradient=False, rtol=0, atol=0),
    Sample("Cross", [f64(4, 3), f64(4, 3)], reference=np.cross),
    Sample("Cross", [f64(4, 2), f64(4, 2)], raises=(FailedPreconditionError, "3-element")),
    Sample("AddN", [[f64(2), f64(2), f64(2)]], reference=lambda xs: sum(xs)),
    Sample("AddN", [[f64(2)]], reference=lambda xs: xs[0]),
    Sample("AccumulateNV2", [[f64(2), f64(2)]], {"shape": [2]}, reference=lambda xs: sum(xs)),
    Sample("AddV2", [f32(3), f32(4)], raises=(InvalidArgumentError, "3 and 4|size of tensor|must match")),
]

COMPARISON = [
    Sample("Less", [SPECIAL, SPECIAL[::-1].copy()], reference=np.less, gradient=False),
    Sample("GreaterEqual", [SPECIAL, SPECIAL], reference=np.greater_equal, gradient=False),
    Sample("LessEqual", [f32(3, 1), f32(2)], reference=np.less_equal, gradient=False),
    Sample("Greater", [i64(3, 1), i64(2)], reference=np.greater, gradient=False),
    Sample("Equal", [i32(3, 1), i32(2)], reference=np.equal, gradient=False),
    Sample("NotEqual", [SPECIAL, SPECIAL], reference=np.not_equal, gradient=False),
    Sample("Equal", [booleans(4), booleans(4)], reference=np.equal, gradient=False),
    Sample(
        "Equal",
        [np.array([b"a", b"b"], object), np.array([b"a", b"c"], object)],
        reference=lambda x, y: np.array([True, False]),
        gradient=False,
    ),
    Sample(
        "NotEqual",
        [np.array([[b"a"], [b"b"]], object), np.array([b"a", b"c"], object)],
        reference=lambda x, y: np.array([[False, True], [True, True]]),
        gradient=False,
    ),
    Sample(
        "Equal",
        [i32(3), i32(2)],
        {"incompatible_shape_error": False},
        reference=lambda x, y: np.array(False),
        gradient=False,
    ),
    Sample(
        "NotEqual",
        [i32(3), i32(2)],
        {"incompatible_shape_error": False},
        reference=lambda x, y: np.array(True),
        gradient=False,
    ),
    Sample(
        "ApproximateEqual",
        [of("f4", 1, 2), of("f4", 1.000001, 2.1)],
        reference=lambda x, y: np.array([True, False]),
        gradient=False,
    ),
    Sample(
        "ApproximateEqual",
        [of("f4", 1, 2), of("f4", 1.1, 2.9)],
        {"tolerance": 0.5},
        reference=lambda x, y: np.array([True, False]),
        gradient=False,
    ),
    Sample("LogicalAnd", [booleans(4, 1), booleans(4)], reference=np.logical_and, gradient=False),
    Sample("LogicalOr", [booleans(4), booleans(4)], reference=np.logical_or, gradient=False),
    Sample("LogicalNot", [booleans(4)], reference=np.logical_not, gradient=False),
]

CASTS = [
    Sample("Cast", [f32(3)], {"DstT": "float64"}, reference=lambda x: x.astype("f8"), gradient=False),
    Sample("Cast", [of("f8", 1.7, -1.7, 0.2)], {"DstT": "int8"}, reference=lambda x: x.astype("i1"), gradient=False),
    Sample("Cast", [of("f8", 0, 0.3, np.nan)], {"DstT": "bool"}, reference=lambda x: x.astype(bool), gradient=False),
    Sample("Cast", [c128(3)], {"DstT": "float32"}, reference=lambda x: x.real.astype("f4"), gradient=False),
    Sample("Cast", [of("i4", 300, -1)], {"DstT": "uint8"}, reference=lambda x: x.astype("u1"), gradient=False),
    Sample("Cast", [of("i8", -1, 5)], {"DstT": "uint64"}, reference=lambda x: x.astype("u8"), gradient=False),
    Sample("Bitcast", [f32(2, 3)], {"type": "int32"}, reference=lambda x: x.view("i4"), gradient=False),
    Sample(
        "Bitcast", [f64(2, 3)], {"type": "uint8"}, reference=lambda x: x.view("u1").reshape(2, 3, 8), gradient=False
    ),
    Sample("Bitcast", [i32(3, 2)], {"type": "int64"}, reference=lambda x: x.view("i8").reshape(3), gradient=False),
    Sample("Bitcast", [i32(3, 3)], {"type": "int64"}, raises=(InvalidArgumentError, "does not end in 2")),
]


@samples(BINARY + COMPARISON + CASTS)
def test_sample(sample: Sample) -> None:
    """The op does what its reference does, in every mode."""
    check_sample(sample)


@pytest.mark.parametrize("dtype", INT_TYPES)
def test_integers_wrap(dtype: str) -> None:
    """Integers of every width wrap, compare and divide as NumPy's do, at the ends of their range too."""
    with np.errstate(all="ignore"):
        for sample in _wrapping(dtype):
            check_sample(sample)


def test_division_functions() -> None:
    """div floors integers, truediv and divide make floats of them, and divide_no_nan gives 0."""
    x, y = np.array([7, -7], np.int32), np.array([2, 2], np.int32)
    assert run_built(lambda: tf.div(x, y)).tolist() == [3, -4]
    assert run_built(lambda: tf.truediv(x, y)).dtype == np.float64
    assert run_built(lambda: tf.divide(tf.constant(x), y)).tolist() == [3.5, -3.5]
    assert run_built(lambda: tf.floordiv(x, y)).tolist() == [3, -4]
    assert run_built(lambda: tf.truncatediv(x, y)).tolist() == [3, -3]
    assert run_built(lambda: tf.mod(x, y)).tolist() == [1, 1]
    assert run_built(lambda: tf.truncatemod(x, y)).tolist() == [1, -1]
    assert run_built(lambda: tf.div_no_nan(1.0, 0.0)) == 0
    assert run_built(lambda: tf.math.reciprocal_no_nan([0.0, 2.0])).tolist() == [0, 0.5]
    assert np.float32(0.5) == run_built(lambda: tf.div(1.0, 2.0))


def test_operators() -> None:
    """Python's operators make TensorFlow's ops, also with plain values on either side."""
    with tf.Graph().as_default() as graph, tf.Session() as session:
        x = tf.constant([7.0, -7.0])
        n = tf.constant([6, 5])
        b = tf.constant([True, False])
        checks = [
            (1 + x, [8, -6]), (x - 1, [6, -8]), (1 - x, [-6, 8]), (x * 2, [14, -14]), (x / 2, [3.5, -3.5]),
            (14 / x, [2, -2]), (x // 2, [3, -4]), (x % 4, [3, 1]), (9 % n, [3, 4]), (x**2, [49, 49]),
            (2**n, [64, 32]), (-x, [-7, 7]), (abs(x), [7, 7]), (b & True, [True, False]), (b | True, [True, True]),
            (b ^ True, [False, True]), (~b, [False, True]), (n & 3, [2, 1]), (n | 1, [7, 5]), (n ^ 1, [7, 4]),
            (~n, [-7, -6]), (x < 0, [False, True]), (x >= 7, [True, False]), (n / 2, [3, 2.5]),
        ]  # fmt: skip
        for tensor, expected in checks:
            assert session.run(tensor).tolist() == expected, tensor
        product = tf.ones([2, 3]) @ tf.ones([3, 1])
        assert session.run(product).tolist() == [[3], [3]]
        assert product.op.name == "matmul" and product.op.type == "MatMul"
        names = {op.name for op in graph.get_operations()}
        assert {"add", "add/x", "sub", "truediv", "floordiv", "mod", "pow", "and", "or", "Abs", "Neg"} <= names


def test_equality_operator_of_graph_tensors() -> None:
    """In a graph == compares identity, so that tensors can be searched for in lists."""
    with tf.Graph().as_default():
        x, y = tf.constant(1), tf.constant(1)
        assert x == x and x != y
        assert x in [y, x] and x != None  # noqa: E711


def test_equality_operator_in_eager_mode(eager, monkeypatch) -> None:
    """In eager mode == compares values; tensors that do not broadcast are not equal."""
    monkeypatch.setattr(settings, "tensor_equality", True)
    x = tf.constant([1, 2])
    assert (x == [1, 3]).numpy().tolist() == [True, False]
    assert (x != 1).numpy().tolist() == [False, True]
    assert not bool(x == tf.constant([1, 2, 3]))
    assert (x == None) is False  # noqa: E711


def test_saturate_cast() -> None:
    """Numbers beyond the range of the type become its ends."""
    assert run_built(lambda: tf.saturate_cast([300.0, -5.0, 7.9], tf.uint8)).tolist() == [255, 0, 7]
    assert run_built(lambda: tf.saturate_cast([2**31 - 1, -(2**31)], tf.int16)).tolist() == [32767, -32768]
    assert run_built(lambda: tf.saturate_cast(np.float32([1e30, -1e30]), tf.int32)).tolist() == [2147483520, -(2**31)]
    assert run_built(lambda: tf.to_float(3)) == 3.0 and run_built(lambda: tf.to_int64(3.9)) == 3


def test_string_addition() -> None:
    """Strings are joined by add and +."""
    assert run_built(lambda: tf.add(tf.constant(["a", "b"]), "c")).tolist() == [b"ac", b"bc"]
    assert run_built(lambda: tf.constant("x") + "y") == b"xy"


def test_scalar_mul_and_accumulate_n() -> None:
    """scalar_mul keeps IndexedSlices sparse; accumulate_n checks shape and dtype."""
    with tf.Graph().as_default(), tf.Session() as session:
        slices = tf.IndexedSlices(tf.constant([[1.0, 2.0]]), tf.constant([3]))
        assert session.run(tf.scalar_mul(2.0, slices).values).tolist() == [[2, 4]]
        with pytest.raises(ValueError, match="0-D"):
            tf.scalar_mul(tf.constant([1.0]), tf.constant(2.0))
        assert session.run(tf.accumulate_n([tf.constant([1, 2])] * 3, shape=[2])).tolist() == [3, 6]
        with pytest.raises(TypeError, match="must be equal"):
            tf.accumulate_n([tf.constant(1)], tensor_dtype=tf.float32)
        with pytest.raises(ValueError, match="at least one"):
            tf.add_n([])
        assert session.run(tf.math.polyval([2.0, 0.0, 1.0], tf.constant([3.0]))).tolist() == [19]


def test_logical_xor_and_order_within_a_tensor() -> None:
    """logical_xor is true where one is; is_non_decreasing look at neighbours."""
    assert run_built(lambda: tf.logical_xor([True, True, False], [True, False, False])).tolist() == [False, True, False]


SIZES = st.lists(st.integers(0, 3), max_size=3)


@settings_for_hypothesis(max_examples=60, deadline=None)
@given(shape=SIZES, drop=st.integers(0, 3), ones=st.lists(st.booleans(), min_size=3, max_size=3), known=st.booleans())
def test_broadcasting_gradients(shape, drop, ones, known) -> None:
    """The gradient of each operand has the operand's shape and sums over what was stretched, shapes known or not."""
    other = [1 if one else size for size, one in zip(shape, ones)][min(drop, len(shape)) :]
    x, y = np.ones(shape), np.full(other, 2.0)
    with tf.Graph().as_default(), tf.Session() as session:
        a = tf.placeholder(tf.float64, shape if known else [None] * len(shape))
        b = tf.placeholder(tf.float64, other if known else None)
        found = session.run(tf.gradients(a * b, [a, b]), {a: x, b: y})
    assert found[0].shape == x.shape and found[1].shape == y.shape
    assert (found[0] == 2).all()
    assert found[1].sum() == x.size


@pytest.mark.parametrize("dtype", ["int32", "int64"])
def test_broadcast_gradient_args(dtype) -> None:
    """The dimensions along which each operand is repeated, in the type of the shapes."""
    args = find_definition("BroadcastGradientArgs")
    left, right = run_built(lambda: args(tf.constant([2, 1, 3], dtype), tf.constant([4, 1], dtype)))
    assert left.dtype == dtype and left.tolist() == [1] and right.tolist() == [0, 2]
    with pytest.raises(InvalidArgumentError, match="broadcast"):
        run_built(lambda: args(tf.constant([2], dtype), tf.constant([3], dtype)))


def test_nothing_may_be_divided_by_zero():
    """Integer division of no elements succeeds, as the gradient of a sum over all axes of a scalar needs it to."""
    x = tf.placeholder(tf.float32)
    w = tf.Variable(0.5)
    gradient = tf.gradients(tf.reduce_sum(tf.square(x * w)), w)[0]
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        assert session.run(tf.constant([], tf.int32) // tf.constant(0)).tolist() == []
        assert session.run(gradient, {x: 2.0}) == 4.0 and session.run(gradient, {x: [[1.0, 2.0]]}) == 5.0
