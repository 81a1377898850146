"""Tensors of a graph: what is known of them before anything runs, and what they refuse."""

import copy

import pytest

import stoker.compat.v1 as tf


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
