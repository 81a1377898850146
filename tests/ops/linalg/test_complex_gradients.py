"""Gradients of real functions of complex matrices against finite differences, first and second order."""

import numpy as np
import pytest

import stoker.compat.v1 as tf
from tests.ops.samples import c128 as c


def size(x):
    return tf.square(tf.abs(x))


def hermitian(n):
    a = c(n, n)
    return a @ a.conj().T


def parts(*tensors):
    return list(tensors)


# Functions that do not depend on the free phases of singular and eigenvectors.
FUNCTIONS = {
    "svd wide": (c(3, 4), lambda x: (lambda s, u, v: parts(s, size(u), size(v)))(*tf.linalg.svd(x))),
    "svd tall": (c(4, 3), lambda x: (lambda s, u, v: parts(tf.real(tf.matmul(u, v, adjoint_b=True))))(*tf.linalg.svd(x))),
    "singular values": (c(4, 3), lambda x: parts(tf.linalg.svd(x, compute_uv=False))),
    "eigh": (hermitian(3), lambda x: (lambda e, v: parts(tf.real(e), size(v)))(*tf.linalg.eigh(_symmetric(x)))),
    "qr tall": (c(4, 3), lambda x: parts(*map(size, tf.linalg.qr(x)))),
    "qr wide": (c(3, 4), lambda x: parts(*map(size, tf.linalg.qr(x)))),
    "inverse": (c(3, 3), lambda x: parts(size(tf.linalg.inv(x)))),
    "solve": (c(3, 3), lambda x: parts(size(tf.linalg.solve(x, x * x)))),
    "exponential": (c(3, 3), lambda x: parts(size(tf.linalg.expm(x)))),
    "least squares wide": (c(2, 4), lambda x: parts(size(tf.raw_ops.MatrixSolveLs(matrix=x, rhs=x * x, l2_regularizer=0.1)))),
    "band": (
        c(2, 4) + 3,
        lambda x: parts(
            size(tf.raw_ops.BandedTriangularSolve(matrix=x, rhs=tf.transpose(x))),
            size(tf.raw_ops.BandedTriangularSolve(matrix=x, rhs=tf.transpose(x), lower=False, adjoint=True)),
        ),
    ),
    "power": (c(3), lambda x: parts(size(x ** (x + 1)))),
    "angle": (c(3), lambda x: parts(tf.angle(x), tf.abs(x))),
}  # fmt: skip


def _symmetric(x):
    """Only the lower triangle is read, so the function must say what the upper one does."""
    return tf.linalg.band_part(x, -1, 0) + tf.linalg.adjoint(
        tf.linalg.band_part(x, -1, 0) - tf.linalg.diag(tf.linalg.diag_part(x))
    )


@pytest.mark.parametrize("name", FUNCTIONS)
def test_gradient_and_its_gradient(name) -> None:
    """The gradient is the direction of steepest ascent over real and imaginary parts, and can be differentiated."""
    value, function = FUNCTIONS[name]
    with tf.Graph().as_default(), tf.Session() as session:
        x = tf.placeholder(tf.complex128, value.shape)
        outputs = function(x)
        weights = [np.random.RandomState(i).rand(*output.shape.as_list()) for i, output in enumerate(outputs)]
        total = tf.add_n([tf.reduce_sum(output * weight) for output, weight in zip(outputs, weights)])
        first = tf.gradients(total, x)[0]
        direction = c(*value.shape)
        projected = tf.reduce_sum(tf.real(first * direction.conj()))
        second = tf.gradients(projected, x)[0]
        for scalar, gradient in ((total, first), (projected, second)):
            other = c(*value.shape)
            up, down = (session.run(scalar, {x: value + step * other}) for step in (1e-6, -1e-6))
            slope = np.sum(np.real(session.run(gradient, {x: value}) * other.conj()))
            np.testing.assert_allclose(slope, (up - down) / 2e-6, rtol=1e-5, atol=1e-6)


def test_no_second_derivative_of_ctc_loss() -> None:
    """The gradient of ctc_loss comes with the loss; asking for its own raises LookupError."""
    inputs = tf.placeholder(tf.float32, [5, 2, 4])
    labels = tf.SparseTensor([[0, 0], [1, 0]], [1, 2], [2, 1])
    loss = tf.nn.ctc_loss(labels, inputs, [5, 5])
    first = tf.gradients(loss, inputs)[0]
    with pytest.raises(LookupError, match="ctc_loss"):
        tf.gradients(first, inputs)


def test_gradient_of_least_squares_without_normal_equations() -> None:
    """MatrixSolveLs has a gradient for fast=True alone."""
    x = tf.placeholder(tf.float64, [4, 2])
    y = tf.raw_ops.MatrixSolveLs(matrix=x, rhs=x, l2_regularizer=0.0, fast=False)
    with pytest.raises(ValueError, match="fast=False"):
        tf.gradients(y, x)


def test_sparse_gradient_of_segments() -> None:
    """sparse_gradient=True gives the looked-up rows alone, in order."""
    data = tf.constant(np.arange(6.0).reshape(3, 2))
    total = tf.raw_ops.SparseSegmentMean(data=data, indices=[0, 2, 0], segment_ids=[0, 0, 1], sparse_gradient=True)
    gradient = tf.gradients(total, data)[0]
    assert isinstance(gradient, tf.IndexedSlices)
    with tf.Session() as session:
        values, rows = session.run([gradient.values, gradient.indices])
    np.testing.assert_allclose(values, [[1.5, 1.5], [0.5, 0.5]])
    assert rows.tolist() == [0, 2]


def test_gradient_of_cumulative_products_with_zeros() -> None:
    """An element that is zero gets the gradient 0, as in TensorFlow."""
    x = tf.constant([3.0, 2.0, 0.0])
    with tf.Session() as session:
        assert session.run(tf.gradients(tf.cumprod(x), x)[0]).tolist() == [3.0, 3.0, 0.0]
