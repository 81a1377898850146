"""tf.compat.v1.wrap_function: code of 1.x called from eager programs."""

from __future__ import annotations

import numpy as np
import pytest

import stoker as tf2
import stoker.compat.v1 as tf


def _model(x):
    with tf.variable_scope("s"):
        w = tf.get_variable("w", [2], initializer=tf.ones_initializer())
    y = tf.multiply(x, w, name="y")
    z = tf.add(y, 1.0, name="z")
    tf.assign_add(w, [1.0, 1.0], name="update")
    return {"z": z}


def test_variables_are_made_once_and_kept(eager):
    """State lives in the wrapped function; only what the results need runs."""

    def count(x, upwards):
        v = tf.Variable(5.0)
        with tf.control_dependencies([v.assign_add(x) if upwards else v.assign_sub(x)]):
            return v.read_value()

    up = tf.wrap_function(count, [tf2.TensorSpec((), tf.float32), True])
    down = tf.wrap_function(count, [tf2.TensorSpec((), tf.float32), False])
    assert [float(up(1.0)), float(up(1.0)), float(down(1.0))] == [6.0, 7.0, 4.0]


def test_parts_of_it_by_name(eager):
    """prune makes functions of tensors and operations of the graph; the variables are shared."""
    wrapped = tf.wrap_function(_model, [tf2.TensorSpec([2], tf.float32)])
    x = tf2.constant([2.0, 3.0])
    np.testing.assert_array_equal(wrapped(x)["z"], [3, 4])
    np.testing.assert_array_equal(wrapped(x)["z"], [3, 4])  # nothing needs the update
    assert [v.name for v in wrapped.variables] == ["s/w:0"]
    assert [v.name for v in wrapped.graph.get_collection("variables")] == ["s/w:0"]
    np.testing.assert_array_equal(wrapped.prune("y:0", "z:0")(x), [3, 4])
    assert wrapped.prune([], wrapped.graph.get_operation_by_name("update"))() is None
    np.testing.assert_array_equal(wrapped(x)["z"], [5, 7])
    with pytest.raises(KeyError, match="nope"):
        wrapped.prune([], "nope")


def test_it_is_differentiated(eager):
    """Tapes see through the call, to arguments and variables."""
    wrapped = tf.wrap_function(_model, [tf2.TensorSpec([2], tf.float32)])
    x = tf2.constant([2.0, 3.0])
    with tf2.GradientTape() as tape:
        tape.watch(x)
        z = wrapped(x)["z"]
    by_x, by_w = tape.gradient(z, [x, *wrapped.variables])
    np.testing.assert_array_equal(by_x, [1, 1])
    np.testing.assert_array_equal(by_w, [2, 3])


def test_calls_that_do_not_fit(eager):
    """Arguments by name, too few of them, and what no feed reaches have their errors."""
    added = tf.wrap_function(lambda a, b: a + b, [tf2.TensorSpec([], tf.int32)] * 2)
    with pytest.raises(NotImplementedError, match="Keyword arguments"):
        added(a=1, b=2)
    with pytest.raises(ValueError, match="specifies 2 arguments, got: 1"):
        added(tf2.constant(1))
    holder = tf.wrap_function(lambda: tf.placeholder(tf.float32, [], name="a") * 2.0, [])
    assert float(holder.prune("a:0", "mul:0")(tf2.constant(3.0))) == 6.0
    with pytest.raises(tf.errors.InvalidArgumentError, match="must feed a value"):
        holder()
