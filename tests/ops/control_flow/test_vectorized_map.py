"""vectorized_map: map_fn that finds its own signature."""

import numpy as np
import pytest

import stoker as tf2
import stoker.compat.v1 as tf

X = np.arange(6, dtype=np.float32).reshape(3, 2)


def test_values(eager):
    """Structures in and out, constants for every row, rows that stand for all, and no rows."""
    mapped = tf2.vectorized_map
    np.testing.assert_array_equal(mapped(lambda row: tf2.reduce_sum(row * row), X), [1, 13, 41])
    first, more = mapped(lambda row: (row[0], row + 1), X)
    np.testing.assert_array_equal(first, X[:, 0])
    np.testing.assert_array_equal(more, X + 1)
    np.testing.assert_array_equal(mapped(lambda pair: pair[0] * pair[1], (X, tf2.constant([[1.0, 2.0]]))), X * [1, 2])
    np.testing.assert_array_equal(mapped(lambda row: {"k": row["a"] * 2}, {"a": X})["k"], X * 2)
    np.testing.assert_array_equal(mapped(lambda row: 3.0, X), [3, 3, 3])
    assert mapped(lambda row: row * 2, tf2.zeros([0, 2])).shape == (0, 2)
    ragged = tf2.ragged.constant([[1.0], [2.0, 3.0]])
    np.testing.assert_array_equal(mapped(tf2.reduce_sum, ragged), [1, 5])


def test_refuses(eager):
    """Scalars and different numbers of rows."""
    with pytest.raises(ValueError, match="scalars"):
        tf2.vectorized_map(lambda x: x, tf2.constant(1.0))
    with pytest.raises(tf2.errors.InvalidArgumentError, match=r"\[3, 2\]"):
        tf2.vectorized_map(lambda pair: pair[0] + pair[1], (X, X[:2]))


def test_graph_and_gradient():
    """In a graph, also with an unknown number of rows; gradients pass."""
    with tf.Graph().as_default(), tf.Session() as session:
        x = tf.placeholder(tf.float32, [None, 2])
        cubes = tf.vectorized_map(lambda row: row**3, x)
        assert cubes.shape.as_list() == [None, 2]
        found, slope = session.run([cubes, tf.gradients(cubes, x)[0]], {x: X})
        np.testing.assert_allclose(found, X**3)
        np.testing.assert_allclose(slope, 3 * X**2)
