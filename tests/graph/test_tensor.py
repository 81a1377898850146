"""Tensors of a graph: what is known of them before anything runs, and what they refuse."""

import copy

import numpy as np
import pytest

import stoker.compat.v1 as tf
from stoker._src.graph import context


def test_the_default_of_a_placeholder_is_no_static_value():
    """Shapes do not depend on a default that a feed may replace."""
    rows = tf.placeholder_with_default(2, [])
    filled = tf.fill([rows, 3], 1.0)
    assert filled.shape.as_list() == [None, 3]
    with tf.Session() as session:
        assert session.run(tf.shape(filled), {rows: 5}).tolist() == [5, 3]


def test_a_symbolic_tensor_is_not_copied():
    """A shallow copy is the tensor itself; a deep one would copy its graph, and is refused."""
    x = tf.constant(1.0)
    assert copy.copy(x) is x
    with pytest.raises(TypeError, match="symbolic tensor"):
        copy.deepcopy([x])


@pytest.mark.parametrize(
    ("values", "in_graph", "eagerly"),
    [
        ([np.float64(1.0), np.float64(2.0)], tf.float32, tf.float64),
        ([np.float32(1.0), 2], tf.float32, tf.float32),
        ([1.5, np.float64(2.0)], tf.float32, tf.float32),
        ([np.float16(1.0), 2], tf.float32, tf.float16),
        ([np.int64(1), 2], tf.int32, tf.int32),
        ([np.int64(2**40), 1], tf.int64, tf.int64),
        ([np.uint8(1), np.uint8(2)], tf.uint8, tf.int32),
    ],
)
def test_lists_of_numpy_numbers(values, in_graph, eagerly):
    """Lists that hold NumPy's numbers become the narrow types, as lists of Python's do; eagerly the first float decides."""
    assert tf.constant(values).dtype is in_graph
    with context.enter_eager():
        assert tf.constant(values).dtype is eagerly


def test_a_constant_is_a_copy_of_its_array():
    """What is written to an array after a constant was made of it does not change the constant."""
    values = np.arange(3, dtype=np.float32)
    held, variable = tf.constant(values), tf.Variable(values)
    used = tf.add(values, 1.0)
    values += 10.0
    with tf.Session() as session:
        session.run(variable.initializer)
        assert [each.tolist() for each in session.run([held, variable, used])] == [[0, 1, 2], [0, 1, 2], [1, 2, 3]]
