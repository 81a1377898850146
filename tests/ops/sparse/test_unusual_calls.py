"""Legal calls that programs make now and then, and edges of their values: the numbers are TensorFlow 2.21's."""

import numpy as np
import pytest

import stoker.compat.v1 as tf
from tests.running import run


def _sparse():
    return tf.SparseTensor([[0, 1], [1, 0], [1, 2]], [1.0, -4.0, 9.0], [2, 3])


@pytest.mark.parametrize("name", ["abs", "negative", "sign", "square", "tanh", "erf", "sqrt"])
def test_functions_that_keep_zero_take_sparse_tensors(name):
    """They are taken of the values; the places and the shape stay."""
    function = getattr(tf, name)
    found, of_values = run([function(_sparse()), function(tf.constant([1.0, -4.0, 9.0]))])
    np.testing.assert_array_equal(found.values, of_values)
    np.testing.assert_array_equal(found.indices, [[0, 1], [1, 0], [1, 2]])
    np.testing.assert_array_equal(found.dense_shape, [2, 3])


def test_what_a_sparse_tensor_would_be_when_dense():
    """Size, rank and zeros are those of the dense tensor; identity and tuple give sparse tensors."""
    sparse = _sparse()
    size, rank, zeros, same, grouped, times = run(
        [
            tf.size(sparse),
            tf.rank(sparse),
            tf.zeros_like(sparse),
            tf.identity(sparse),
            tf.tuple([sparse])[0],
            tf.fill([2, 3], 2.0) * sparse,
        ]
    )
    assert (size, rank, zeros.shape) == (6, 2, (2, 3))
    np.testing.assert_array_equal(same.values, [1, -4, 9])
    np.testing.assert_array_equal(grouped.values, [1, -4, 9])
    np.testing.assert_array_equal(times.values, [2, -8, 18])


def test_a_threshold_is_for_sums():
    """What stands in one operand alone stays in the sum of sparse tensors, however small."""
    other = tf.SparseTensor([[0, 0], [1, 0], [1, 2]], [0.5, 4.0, 1.0], [2, 3])
    found = run(tf.sparse_add(_sparse(), other, threshold=2.0))
    np.testing.assert_array_equal(found.indices, [[0, 0], [0, 1], [1, 2]])
    np.testing.assert_array_equal(found.values, [0.5, 1, 10])


def test_sparse_tensors_of_unknown_rank_grow_when_joined():
    """The rank need not be known to join tensors of different sizes."""
    shape = tf.placeholder_with_default(np.array([2, 3]), [None])
    part = tf.SparseTensor(tf.placeholder_with_default(np.array([[1, 2]]), [None, None]), [5.0], shape)
    wide = tf.SparseTensor([[0, 4]], [7.0], [1, 5])
    for axis, size in ((0, [3, 5]), (-2, [3, 5]), (1, [2, 8]), (-1, [2, 8])):
        assert run(tf.sparse_concat(axis, [part, wide], expand_nonconcat_dim=True)).dense_shape.tolist() == size


def test_gradients_of_sparse_sums_and_products_of_unknown_rank():
    """Neither the rank of the sparse tensor nor that of the dense one need be known."""
    values, dense = tf.placeholder(tf.float32, None), tf.placeholder(tf.float32, None)
    indices, shape = tf.placeholder(tf.int64, None), tf.placeholder(tf.int64, None)
    sparse = tf.SparseTensor(indices, values, shape)
    feeds = {indices: [[0, 1], [1, 0]], values: [2.0, 3.0], shape: [2, 2], dense: [[5.0], [7.0]]}
    total = tf.gradients(tf.sparse.reduce_sum(sparse, axis=[1]) * [10.0, 20.0], values)
    product = tf.gradients((sparse * dense).values, [values, dense])
    found = run([*total, *product], feeds)
    assert [each.tolist() for each in found] == [[10, 20], [5, 7], [[2], [3]]]
