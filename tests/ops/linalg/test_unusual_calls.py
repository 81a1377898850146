"""Legal calls that programs make now and then, and edges of their values: the numbers are TensorFlow 2.21's."""

import numpy as np
import pytest

import stoker.compat.v1 as tf


@pytest.fixture
def session():
    with tf.Graph().as_default(), tf.Session() as opened:
        yield opened


def of_any_rank(value):
    """A placeholder that knows nothing of the shape of `value`, and its feed."""
    array = np.asarray(value)
    tensor = tf.placeholder(tf.as_dtype(array.dtype), None)
    return tensor, {tensor: array}


SQUARE = np.cos(np.arange(9, dtype=np.float32)).reshape(3, 3)


def test_permutations_of_matrices_of_unknown_rank(session):
    """The matrices come back from their factors whatever is known of their rank."""
    matrices, feed = of_any_rank(np.stack([SQUARE + 3 * np.eye(3, dtype=np.float32)] * 2))
    found = session.run(tf.linalg.lu_reconstruct(*tf.linalg.lu(matrices)), feed)
    np.testing.assert_allclose(found, feed[matrices], rtol=1e-5, atol=1e-6)


def test_gradient_of_a_diagonal_beside_an_ellipsis(session):
    """A repeated label next to '...' puts the gradient on the diagonal."""
    x, feed = of_any_rank(np.ones((2, 3, 3), np.float32))
    gradient = tf.gradients(tf.einsum("...ii->...i", x), x)[0]
    np.testing.assert_array_equal(session.run(gradient, feed), np.stack([np.eye(3)] * 2))


@pytest.mark.parametrize("dtype", [np.int32, np.int64, np.int16, np.uint8, np.uint32, np.uint64])
def test_einsum_of_integers(session, dtype):
    """Integer contractions sum and wrap in the dtype of their inputs."""
    a, b = np.arange(6, dtype=dtype).reshape(2, 3), np.arange(6, dtype=dtype).reshape(3, 2)
    found = session.run(tf.einsum("ij,jk->k", tf.constant(a), tf.constant(b)))
    assert found.dtype == dtype
    np.testing.assert_array_equal(found, (a @ b).sum(0))
