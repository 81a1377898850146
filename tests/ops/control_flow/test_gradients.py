"""tf.gradients: stops, gates, and the edges of function bodies."""

import numpy as np
import pytest

import stoker as tf2
import stoker.compat.v1 as tf
from tests.running import run_initialized


def test_paths_behind_a_stop_do_not_count():
    """A source is reached past stop_gradients even where it also lies behind them."""
    w = tf.Variable(2.0)
    h = tf.sin(w) * 4.0
    assert np.allclose(run_initialized(tf.gradients(h * w, w, stop_gradients=h)[0]), np.sin(2.0) * 4.0)


def test_gated_gradients_keep_their_kind_and_names():
    """tf.tuple names its outputs as TensorFlow does and leaves IndexedSlices sparse."""
    slices = tf.IndexedSlices(tf.ones([2, 3]), tf.constant([0, 1]), tf.constant([4, 3]))
    first, second, nothing = tf.tuple([slices, tf.constant(1), None])
    assert isinstance(first, tf.IndexedSlices) and first.indices is slices.indices
    assert first.values.op.name == "tuple/control_dependency" and second.op.name == "tuple/control_dependency_1"
    assert nothing is None and [op.name for op in second.op.control_inputs] == ["tuple/group_deps"]


def test_bodies_differentiate_by_what_is_outside():
    """In a loop's body, gradients by outer tensors and variables go through the outer ops the body uses."""
    w, r = tf.Variable(2.0), tf.get_variable("r", initializer=3.0, use_resource=True)
    c = tf.constant(4.0)
    h = tf.sin(w) * c
    found = tf.map_fn(lambda x: tf.stack(tf.gradients(x * x * h + r * h * w, [w, r, c, h, x])), tf.constant([1.0, 3.0]))
    sin, cos = np.sin(2.0), np.cos(2.0)
    expected = [
        [(x * x + 6) * 4 * cos + 3 * 4 * sin, 2 * 4 * sin, (x * x + 6) * sin, x * x + 6, 2 * x * 4 * sin]
        for x in (1.0, 3.0)
    ]
    assert np.allclose(run_initialized(found), expected, rtol=1e-5)


def test_branches_differentiate_by_what_is_outside():
    """The same in the branches of a cond inside of a loop, where captures pass two edges; and second derivatives."""
    w = tf.Variable(2.0)
    h = w * w

    def row(x):
        return tf.cond(x > 1.5, lambda: tf.gradients(x * h, w)[0], lambda: tf.gradients(x * x * w, w)[0])

    rows = tf.map_fn(row, tf.constant([1.0, 3.0]))
    values, second = run_initialized([rows, tf.gradients(rows, w)[0]])
    assert np.allclose(values, [1.0, 12.0]) and np.allclose(second, 6.0)


def test_bodies_leave_unconnected_tensors_alone():
    """What a body does not use has no gradient there."""
    w = tf.Variable(2.0)
    seen = []

    def row(x):
        seen.append(tf.gradients(x * 2.0, w)[0])
        return x

    tf.map_fn(row, tf.constant([1.0]))
    assert seen == [None]


def test_functions_differentiate_by_eager_variables(eager):
    """tf.gradients in a tf.function takes variables that were made outside of it."""
    v = tf2.Variable(3.0)
    x = tf2.constant(2.0)

    @tf2.function
    def f():
        return tf2.gradients(v * v * x, [v, x])

    assert [float(g) for g in f()] == [12.0, 9.0]


def test_bad_arguments_of_gradients():
    """Gradients to start from fit the tensors in number, dtype and shape; what cannot be differentiated is refused."""
    x = tf.constant([1.0, 2.0])
    with pytest.raises(ValueError, match="Passed 2 grad_ys for 1 ys"):
        tf.gradients([x * x], [x], grad_ys=[tf.ones([2]), tf.ones([2])])
    with pytest.raises(ValueError, match="does not fit the shape"):
        tf.gradients(x * x, [x], grad_ys=[tf.ones([3])])
    with pytest.raises(TypeError):
        tf.gradients(x * x, [x], grad_ys=[tf.constant([1, 1])])
    with pytest.raises(TypeError, match="must set grad_ys"):
        tf.gradients(tf.cast(x, tf.complex64), [x])
    with pytest.raises(TypeError, match="string"):
        tf.gradients(tf.constant("a"), [x])
    with pytest.raises(ValueError):
        tf.gradients(x * x, [x], unconnected_gradients="half")
    with pytest.raises(ValueError, match="aggregation_method"):
        tf.gradients(x * x, [x], aggregation_method=77)


def test_ops_without_a_gradient():
    """An op that nobody registered a gradient for is a LookupError when it lies on the way."""
    x = tf.constant([[1.0, 2.0], [0.0, 3.0]])
    with pytest.raises(LookupError, match="Lu"):
        tf.gradients(tf.linalg.lu(x)[0], [x])
