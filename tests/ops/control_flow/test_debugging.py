"""The assert family, in graph mode (known and unknown values) and eager mode."""

import numpy as np
import pytest

import stoker as tf2
import stoker.compat.v1 as tf
from stoker._src.graph import context

PAIRS = [
    ("equal", "==", [1, 2], [1, 3]),
    ("none_equal", "!=", [1, 2], [3, 2]),
    ("less", "<", [1, 2], [2, 2]),
    ("less_equal", "<=", [1, 3], [2, 2]),
    ("greater", ">", [1, 2], [0, 2]),
    ("greater_equal", ">=", [1, 2], [2, 2]),
]
SIGNS = [
    ("positive", ">", [1, 0]),
    ("negative", "<", [-1, 0]),
    ("non_negative", ">=", [1, -1]),
    ("non_positive", "<=", [1, -1]),
]


def failure(op, feeds):
    """The message of a check that fails in a run."""
    with tf.Session() as session, pytest.raises(tf.errors.InvalidArgumentError) as caught:
        session.run(op, feeds)
    return caught.value.message.splitlines()[0]


@pytest.mark.parametrize(("name", "symbol", "x", "y"), PAIRS)
def test_pairs(name, symbol, x, y):
    """Known values are checked at once; unknown ones when the op runs, with TensorFlow's message."""
    check = getattr(tf.debugging, f"assert_{name}")
    with pytest.raises(tf.errors.InvalidArgumentError, match=f"Condition x {symbol} y did not hold element-wise"):
        check(x, y, message="MSG")
    a, b = tf.placeholder(tf.int32, None, name="a"), tf.placeholder(tf.int32, None, name="b")
    shown = f"assertion failed: [MSG] [Condition x {symbol} y did not hold element-wise:] [x (a:0) = ] [{x[0]} {x[1]}] [y (b:0) = ] [{y[0]} {y[1]}]"
    assert failure(check(a, b, message="MSG"), {a: x, b: y}) == shown
    assert (
        failure(check(a, b, data=[a, "hello"], summarize=1), {a: x, b: y}) == f"assertion failed: [{x[0]}...] [hello]"
    )


@pytest.mark.parametrize(("name", "symbol", "x", "y"), PAIRS)
def test_pairs_at_once(eager, name, symbol, x, y):
    """Eager mode raises with the places that differ, or returns None."""
    check = getattr(tf2.debugging, f"assert_{name}")
    with pytest.raises(
        tf.errors.InvalidArgumentError,
        match=f"Condition x {symbol} y did not hold.\nIndices of first 1 different values:",
    ):
        check(x, y)
    good = {
        "equal": (1, 1),
        "none_equal": (1, 2),
        "less": (1, 2),
        "less_equal": (1, 1),
        "greater": (2, 1),
        "greater_equal": (1, 1),
    }[name]
    assert check(*good) is None
    assert check([[good[0]], [good[0]]], good[1]) is None


@pytest.mark.parametrize(("name", "symbol", "x"), SIGNS)
def test_signs(name, symbol, x):
    """Against zero, by the same rules."""
    check = getattr(tf, f"assert_{name}")
    with pytest.raises(tf.errors.InvalidArgumentError, match=f"Condition x {symbol} 0"):
        check(x)
    value = tf.placeholder(tf.int32, None, name="v")
    assert f"Condition x {symbol} 0 did not hold element-wise:" in failure(check(value, message="M"), {value: x})


def test_near(eager):
    """Tolerances are relative and absolute; ten epsilons unless given."""
    assert tf2.debugging.assert_near([1.0, 2.0], [1.0, 2.000001]) is None
    assert tf2.debugging.assert_near(1.0, 1.05, rtol=0.1) is None
    with pytest.raises(tf.errors.InvalidArgumentError, match="not equal to tolerance"):
        tf2.debugging.assert_near([1.0], [1.1], message="zz")
    with pytest.raises(ValueError, match=r"inexact|finfo"):
        tf2.debugging.assert_near(1, 2)


def test_checks_are_control_dependencies():
    """A tensor made under a failing check does not come."""
    x = tf.placeholder(tf.int32, None)
    with tf.control_dependencies([tf.assert_positive(x)]):
        y = tf.identity(x)
    with tf.Session() as session:
        assert session.run(y, {x: 3}) == 3
        with pytest.raises(tf.errors.InvalidArgumentError):
            session.run(y, {x: -3})


def test_ranks_known():
    """Known ranks are checked at once."""
    x = np.zeros((2, 3))
    assert tf.assert_rank(x, 2).type == "NoOp"
    assert tf.assert_rank_at_least(x, 1).type == "NoOp"
    assert tf.assert_rank_in(x, (2, 5)).type == "NoOp"
    with pytest.raises(ValueError, match=r"MSG.  Tensor .* must have rank 3.  Received rank 2, shape \(2, 3\)"):
        tf.assert_rank(x, 3, message="MSG")
    with pytest.raises(ValueError, match="must have rank at least 3"):
        tf.assert_rank_at_least(x, 3)
    with pytest.raises(ValueError, match=r"must have rank in \(0, 1\)"):
        tf.assert_rank_in(x, (0, 1))
    with pytest.raises(ValueError, match="Rank must be a scalar"):
        tf.assert_rank(tf.placeholder(tf.float32), [1])
    with pytest.raises(TypeError, match=r"must be of type tf.int32; got tf.float32"):
        tf.assert_rank(tf.placeholder(tf.float32), 1.5)


def test_ranks_unknown():
    """Unknown ranks are checked in the run."""
    x = tf.placeholder(tf.float32, None, name="x")
    assert (
        failure(tf.assert_rank(x, 2), {x: [1.0]})
        == "assertion failed: [] [Tensor x:0 must have rank] [2] [Received shape: ] [1]"
    )
    assert "rank at least] [2]" in failure(tf.assert_rank_at_least(x, 2), {x: [1.0]})
    assert "rank in] [0] [2]" in failure(tf.assert_rank_in(x, [0, 2]), {x: [1.0]})


def test_types_and_scalars():
    """Checks of dtype and of scalars, made when they are called."""
    with pytest.raises(TypeError, match="integer type"):
        tf.assert_integer(1.5)
    with pytest.raises(TypeError, match=r"must be of type tf.int32; got tf.float32"):
        tf.assert_type(tf.constant(1.0), tf.int32)
    with pytest.raises(ValueError, match="Expected scalar shape"):
        tf.assert_scalar([1, 2])
    assert tf.assert_scalar(3).dtype == tf.int32
    assert tf.debugging.assert_same_float_dtype([tf.constant(1.0)]) == tf.float32
    assert tf.debugging.assert_same_float_dtype() == tf.float32
    with pytest.raises(ValueError, match="must be of the same type"):
        tf.debugging.assert_same_float_dtype([tf.constant(1.0), tf.constant(1.0, tf.float64)])
    with pytest.raises(ValueError, match="Expected floating point type"):
        tf.debugging.assert_same_float_dtype([tf.constant(1)])
    assert [tf.debugging.is_numeric_tensor(t) for t in (tf.constant(1), tf.constant("a"), 3, tf.constant(True))] == [
        True,
        False,
        False,
        False,
    ]
    with pytest.raises(TypeError, match='"proper" iterable'):
        tf.debugging.assert_proper_iterable("ab")
    with pytest.raises(TypeError, match="to be iterable"):
        tf.debugging.assert_proper_iterable(3)
    tf.debugging.assert_proper_iterable([1])


def test_shapes_known():
    """Sizes, symbols, open dimensions and scalars of known shapes."""
    check = tf.debugging.assert_shapes
    zeros = tf.zeros
    check([(zeros([2, 3]), ("N", 3)), (zeros([2]), ("N",)), (zeros([]), ()), (zeros([5, 2, 4]), (..., "N", None))])
    check({zeros([2, 3]): "NQ"})
    for bad, message in [
        (
            [(zeros([2, 3]), ("N", 4))],
            r"Specified explicitly.  Tensor .* dimension 1 must have size 4.  Received size 3",
        ),
        ([(zeros([2, 3]), ("N", "M")), (zeros([3, 3]), ("N", "M"))], r"Specified by tensor .* dimension 0.  Tensor"),
        ([(zeros([2, 3]), ("N",))], r"rank in \(0, 1\)"),
        ([(zeros([2, 3]), (2, ..., 3))], "only allowed as the first entry"),
        ([(zeros([3]), 3)], "must be an iterable"),
    ]:
        with pytest.raises(ValueError, match=message):
            check(bad)


def test_shapes_unknown():
    """What cannot be known is checked in the run, with symbols taken from it."""
    a, b = tf.placeholder(tf.float32, None, name="a"), tf.placeholder(tf.float32, None, name="b")
    check = tf.debugging.assert_shapes([(a, ("N", 2)), (b, ("N",))], message="MSG")
    with tf.Session() as session:
        session.run(check, {a: np.zeros((3, 2)), b: np.zeros(3)})
    shown = failure(check, {a: np.zeros((3, 2)), b: np.zeros(4)})
    assert (
        shown
        == "assertion failed: [MSG.  ] [Specified by tensor a:0 dimension 0] [Tensor b:0 dimension] [0] [must have size] [3] [Received shape: ] [4]"
    )


def test_finite_values(eager):
    """NaN and infinity are reported with the caller's message."""
    assert tf2.debugging.assert_all_finite([1.0], "boo").numpy().tolist() == [1.0]
    with pytest.raises(tf.errors.InvalidArgumentError, match="boo : Tensor had NaN"):
        tf2.debugging.assert_all_finite([np.nan], "boo")
    with pytest.raises(ValueError, match="both"):
        tf.verify_tensor_all_finite([1.0], "a", message="b")


def test_every_tensor_of_a_graph_can_be_checked():
    """add_check_numerics_ops names the tensor at fault."""
    x = tf.placeholder(tf.float32, [1], name="x")
    tf.log(x, name="logarithm")
    assert "logarithm:0 : Tensor had Inf" in failure(tf.add_check_numerics_ops(), {x: [0.0]})


@pytest.mark.parametrize(
    ("value", "limit", "expected"),
    [
        (np.arange(6).reshape(2, 3), 1, "[[0...]...]"),
        (np.arange(6).reshape(2, 3), 4, "[[0 1 2][3...]...]"),
        (np.arange(8).reshape(2, 2, 2), 3, "[[[0 1][2...]]...]"),
        (np.arange(4), -1, "[0 1 2 3]"),
        (np.zeros((2, 0)), 3, "[]"),
        (np.float32([1 / 3, 0.1, 1e20, 123456789.0]), -1, "[0.333333343 0.1 1e+20 123456792]"),
    ],
)
def test_data_is_shown_as_tensorflow_shows_it(value, limit, expected):
    """Rows in brackets, what is left out as dots, floats with the digits they need (golden texts of TensorFlow)."""
    ok = tf.placeholder(tf.bool, [])
    assert failure(tf.Assert(ok, [value], summarize=limit), {ok: False}) == f"assertion failed: {expected}"


def test_placement_logging_is_a_switch():
    """set_log_device_placement sets what get_log_device_placement gives."""
    assert tf.debugging.get_log_device_placement() is False
    tf.debugging.set_log_device_placement(True)
    assert tf.debugging.get_log_device_placement() is True
    tf.debugging.set_log_device_placement(False)


def _placement_lines(captured):
    return [line for line in captured.readouterr().err.splitlines() if "/job:localhost" in line]


def test_sessions_log_placement(capsys):
    """A session that is told to writes the device of every op it plans, once."""
    with tf.device("/cpu:0"):
        x = tf.placeholder(tf.float32, [2], name="x")
        y = tf.multiply(x, 2.0, name="y")
    with tf.Session(config=tf.ConfigProto(log_device_placement=True)) as session:
        session.run(y, {x: [1, 2]})
        session.run([y, y + 1], {x: [1, 2]})
    lines = _placement_lines(capsys)
    assert lines.count("y: (Mul): /job:localhost/replica:0/task:0/device:CPU:0") == 1
    assert len(lines) == len(set(lines))
    with tf.Session() as session:
        session.run(y, {x: [1, 2]})
    assert not _placement_lines(capsys)


def test_the_switch_logs_sessions_and_eager_ops(capsys):
    """set_log_device_placement has sessions, eager ops and functions write their devices."""
    tf.debugging.set_log_device_placement(True)
    try:
        with tf.Graph().as_default(), tf.Session() as session:
            session.run(tf.constant(1, name="a"))
        assert any(line.startswith("a: (Const): ") for line in _placement_lines(capsys))
        with context.enter_eager():
            one = tf.constant(1.0)
            tf.add(one, one)
            lines = _placement_lines(capsys)
            assert "Executing op AddV2 in device /job:localhost/replica:0/task:0/device:CPU:0" in lines
            tf2.function(lambda x: tf.multiply(x, x, name="squared"))(one)
            assert any(line.startswith("squared: (Mul): ") for line in _placement_lines(capsys))
    finally:
        tf.debugging.set_log_device_placement(False)


def test_dtypes_are_refused_before_values(eager):
    """Dtypes that cannot be compared are a TypeError in a graph, whatever the values; in eager mode the op says so."""
    with tf.Graph().as_default():
        for x, y in (([1, 2], [1.0, 2.0]), ([True], [False]), (["a"], ["b"])):
            with pytest.raises(TypeError):
                tf.debugging.assert_less(tf.constant(x), tf.constant(y))
        with pytest.raises(TypeError, match="Expected list for 'data'"):
            tf.Assert(False, "words")
    with pytest.raises(ValueError, match="must be of the same type"):
        tf.debugging.assert_same_float_dtype([tf.constant([1]), tf.constant([1.0])])
    for value in (["a", "b"], [True, False]):
        with pytest.raises(TypeError, match="to be numeric"):
            tf.debugging.is_strictly_increasing(value)


def test_no_rank_is_among_none():
    """assert_rank_in without ranks makes an op that fails."""
    with tf.Graph().as_default(), tf.Session() as session:
        x = tf.placeholder(tf.float32)
        with pytest.raises(tf.errors.InvalidArgumentError):
            session.run(tf.debugging.assert_rank_in(x, []), {x: 1.0})


def test_dots_alone_end_in_a_dimension_of_size_one(eager):
    """A wanted shape of only `...` counts as empty behind the dots, so its last dimension is 1; sizes may be NumPy's."""
    tf.debugging.assert_shapes([(tf.zeros([4, 1]), (...,)), (tf.zeros([2]), (np.int64(2),))])
    with pytest.raises(ValueError, match="must have size 1"):
        tf.debugging.assert_shapes([(tf.zeros([1, 4]), (...,))])


def test_nodes_of_assert_equal():
    """TensorFlow spends a name on a look at whether both are the same tensor."""
    assert tf.debugging.assert_equal([1], [1]).name == "assert_equal_1/Assert/Assert"
    assert tf.debugging.assert_equal([1], [1], name="same").name == "same_1/Assert/Assert"
    assert tf.debugging.assert_less([1], [2]).name == "assert_less/Assert/Assert"
