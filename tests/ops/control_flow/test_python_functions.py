"""Python functions as ops."""

import pytest

import stoker as tf2
import stoker.compat.v1 as tf


def _raise(error):
    def function(*_):
        raise error

    return function


def test_functions_of_arrays():
    """py_func takes arrays and gives arrays; several results come as a list."""
    x = tf.placeholder(tf.float32, [None])
    double = tf.py_func(lambda a: a * 2, [x], tf.float32)
    several = tf.py_func(lambda a: (a, str(a.sum())), [x], [tf.float32, tf.string], stateful=False)
    assert double.op.type == "PyFunc"
    assert several[0].op.type == "PyFuncStateless"
    assert tf.gradients(double, x) == [None]
    with tf.Session() as session:
        assert session.run(double, {x: [1, 2]}).tolist() == [2, 4]
        assert session.run(several, {x: [1, 2]})[1] == b"3.0"
        assert session.run(tf.py_func(lambda a: a, ["abc"], tf.string)) == b"abc"


@pytest.mark.parametrize(
    ("function", "error", "message"),
    [
        (_raise(ValueError("oops")), tf.errors.InvalidArgumentError, "ValueError: oops"),
        (_raise(StopIteration("stop")), tf.errors.OutOfRangeError, "StopIteration: stop"),
        (_raise(NotImplementedError("ni")), tf.errors.UnimplementedError, "NotImplementedError: ni"),
        (_raise(KeyError("k")), tf.errors.UnknownError, "KeyError: 'k'"),
        (lambda a: a.astype("f8"), tf.errors.InvalidArgumentError, "is double, but expects float"),
        (lambda a: (a, a), tf.errors.InvalidArgumentError, "returns 2 values, but expects to see 1"),
        (lambda a: None, tf.errors.InvalidArgumentError, "returns 0 values"),
    ],
)
def test_functions_that_fail(function, error, message):
    """What a function raises, or returns of the wrong kind, is an error of the run."""
    x = tf.placeholder(tf.float32, [None])
    with tf.Session() as session, pytest.raises(error, match=message):
        session.run(tf.py_func(function, [x], tf.float32), {x: [1, 2]})


def test_functions_must_be_callable():
    """Anything else is refused at once."""
    with pytest.raises(ValueError, match="callable"):
        tf.py_func(3, [], tf.string)


def test_functions_of_eager_tensors_have_gradients():
    """py_function computes with eager tensors inside a graph, and is differentiated through them."""
    x = tf.placeholder(tf.float32, [None])
    y = tf.py_function(lambda a: a * a, [x], tf.float32)
    with tf.Session() as session:
        assert session.run(y, {x: [3.0]}).tolist() == [9]
        assert session.run(tf.gradients(y, x)[0], {x: [3.0, 4.0]}).tolist() == [6, 8]


def test_functions_in_eager_mode(eager):
    """At once; errors of numpy_function are the function's own."""
    assert tf2.numpy_function(lambda a: a + 1, [tf2.constant([1.0])], tf2.float32).numpy().tolist() == [2]
    with tf2.GradientTape() as tape:
        x = tf2.constant([3.0])
        tape.watch(x)
        y = tf2.py_function(lambda a: a * a * a, [x], tf2.float32)
    assert tape.gradient(y, x).numpy().tolist() == [27]
    with pytest.raises(ValueError, match="oops"):
        tf2.numpy_function(_raise(ValueError("oops")), [1.0], tf2.float32)
    with pytest.raises(tf.errors.InvalidArgumentError, match="oops"):
        tf2.py_function(_raise(ValueError("oops")), [1.0], tf2.float32)
