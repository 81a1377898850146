"""Small questions about where a program is and what a tensor is."""

import stoker as tf2
import stoker.compat.v1 as tf


def test_name_scopes(eager):
    """The current scope, eagerly, in graphs and in functions."""
    assert tf2.get_current_name_scope() == ""
    with tf2.name_scope("eager"):
        assert tf2.get_current_name_scope() == "eager"
    with tf.Graph().as_default(), tf2.name_scope("a"), tf2.name_scope("b"):
        assert tf2.get_current_name_scope() == "a/b"


def test_inside_function(eager):
    """Functions that are traced are told apart from graphs and eager mode."""
    seen = []
    tf2.function(lambda: seen.append(tf2.inside_function()))()
    with tf.Graph().as_default():
        seen.append(tf2.inside_function())
    assert [*seen, tf2.inside_function()] == [True, False, False]


def test_symbolic_tensors(eager):
    """Tensors of graphs have no value."""
    assert not tf2.is_symbolic_tensor(tf2.constant(1)) and not tf2.is_symbolic_tensor(3)
    with tf.Graph().as_default():
        assert tf.is_symbolic_tensor(tf.constant(1))


def test_dimension_at_index():
    """A dimension of a shape, unknown where the rank is."""
    assert tf.dimension_at_index(tf.TensorShape([2, None]), 0).value == 2
    assert tf.dimension_at_index(tf.TensorShape([2, None]), 1).value is None
    assert tf.dimension_at_index(tf.TensorShape(None), 1).value is None
