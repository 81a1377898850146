"""`tf.linalg.LinearOperator` and its kinds: each acts as the matrix that NumPy makes of the same numbers."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import stoker.compat.v1 as tf

A = np.random.RandomState(0).randn(2, 3, 3)
SPD = A @ A.transpose(0, 2, 1) + np.eye(3)
D = np.random.RandomState(1).rand(2, 3) + 0.5
HINTS: Any = {"is_positive_definite": True, "is_self_adjoint": True}
KINDS = {
    "lower": (lambda: tf.linalg.LinearOperatorLowerTriangular(A), np.tril(A)),
    "lower, no batch": (lambda: tf.linalg.LinearOperatorLowerTriangular(A[0]), np.tril(A[0])),
    "full": (lambda: tf.linalg.LinearOperatorFullMatrix(SPD, **HINTS), SPD),
    "diagonal": (lambda: tf.linalg.LinearOperatorDiag(D, **HINTS), D[..., None] * np.eye(3)),
    "scaled": (lambda: tf.linalg.LinearOperatorScaledIdentity(3, D[:, 0]), D[:, :1, None] * np.eye(3)),
    "identity": (lambda: tf.linalg.LinearOperatorIdentity(3, [2], tf.float64), np.tile(np.eye(3), [2, 1, 1])),
}


@pytest.fixture(autouse=True)
def graph():
    with tf.Graph().as_default():
        yield


def _value(tensor):
    with tf.Session() as session:
        return session.run(tensor)


@pytest.mark.parametrize("kind", KINDS)
def test_values_are_those_of_the_matrix(kind):
    """The matrix, its diagonal, trace, determinant, adjoint and inverse."""
    make, matrix = KINDS[kind]
    operator = make()
    got = _value(
        [
            operator.to_dense(),
            operator.diag_part(),
            operator.trace(),
            operator.determinant(),
            operator.log_abs_determinant(),
            operator.H.to_dense(),
            operator.inverse().to_dense(),
            operator.add_to_tensor(SPD),
            operator.shape_tensor(),
        ]
    )
    determinant = np.linalg.det(matrix)
    expected = [
        matrix,
        np.diagonal(matrix, axis1=-2, axis2=-1),
        np.trace(matrix, axis1=-2, axis2=-1),
        determinant,
        np.log(np.abs(determinant)),
        np.swapaxes(matrix, -2, -1),
        np.linalg.inv(matrix),
        matrix + SPD,
        matrix.shape,
    ]
    for one, other in zip(got, expected, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-9, atol=1e-9)
    assert operator.shape.as_list() == list(matrix.shape) and operator.is_square


@pytest.mark.parametrize("adjoint", [False, True])
@pytest.mark.parametrize("kind", KINDS)
def test_products_and_solutions(kind, adjoint):
    """Products with matrices and vectors, and solutions, also of the adjoint; batches broadcast."""
    make, matrix = KINDS[kind]
    x, v = np.random.RandomState(2).randn(2, 3, 2), np.random.RandomState(3).randn(2, 3)
    acting = np.swapaxes(matrix, -2, -1) if adjoint else matrix
    wide = np.broadcast_to(acting, (2, 3, 3))
    operator = make()
    got = _value(
        [
            operator.matmul(x, adjoint=adjoint),
            operator.matmul(x.transpose(0, 2, 1), adjoint=adjoint, adjoint_arg=True),
            operator.matvec(v, adjoint=adjoint),
            operator.solve(x, adjoint=adjoint),
            operator.solvevec(v, adjoint=adjoint),
        ]
    )
    expected = [wide @ x, wide @ x, (wide @ v[..., None])[..., 0], np.linalg.solve(wide, x)]
    expected.append(np.linalg.solve(wide, v[..., None])[..., 0])
    for one, other in zip(got, expected, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("kind", ["full", "diagonal", "identity"])
def test_cholesky_factors(kind):
    """A positive definite operator that is its own adjoint has a factor; others refuse."""
    make, matrix = KINDS[kind]
    np.testing.assert_allclose(_value(make().cholesky().to_dense()), np.linalg.cholesky(matrix), atol=1e-9)
    with pytest.raises(ValueError, match="positive definite"):
        tf.linalg.LinearOperatorFullMatrix(SPD).cholesky()


def test_operators_multiply_and_solve_operators():
    """The result is an operator; contradicting hints are refused."""
    lower, full = KINDS["lower"][0](), KINDS["full"][0]()
    product, solution = _value([(lower @ full).to_dense(), lower.solve(full).to_dense()])
    np.testing.assert_allclose(product, np.tril(A) @ SPD, atol=1e-9)
    np.testing.assert_allclose(solution, np.linalg.solve(np.tril(A), SPD), atol=1e-9)
    with pytest.raises(ValueError, match="non-singular"):
        tf.linalg.LinearOperatorFullMatrix(SPD, is_positive_definite=True, is_non_singular=False)
    with pytest.raises(NotImplementedError, match="square"):
        tf.linalg.LinearOperatorFullMatrix(np.ones([2, 3])).determinant()


def test_a_causal_mask_of_unknown_length():
    """The way sequence models make their mask: the lower triangle of ones of a shape that only the run knows."""
    scores = tf.placeholder(tf.float32, [None, None, None])
    mask = tf.linalg.LinearOperatorLowerTriangular(tf.ones_like(scores[0])).to_dense()
    with tf.Session() as session:
        np.testing.assert_array_equal(session.run(mask, {scores: np.zeros([2, 4, 4])}), np.tri(4, dtype="f"))
