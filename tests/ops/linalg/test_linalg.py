"""Matrix products, factorisations, solvers and diagonals."""

from __future__ import annotations

import numpy as np
import pytest

import stoker as tf2
import stoker.compat.v1 as tf
from stoker._src.base.errors import InvalidArgumentError
from stoker._src.graph.definition import find_definition
from tests.ops.samples import WHEN_BUILT, Sample, c128, check_sample, f32, f64, i32, samples
from tests.running import run_built


def spd(*shape: int) -> np.ndarray:
    """Symmetric positive definite matrices."""
    x = f64(*shape)
    return x @ np.swapaxes(x, -1, -2) + 2 * np.eye(shape[-1])


def lower(*shape: int) -> np.ndarray:
    return np.tril(f64(*shape)) + 2 * np.eye(shape[-1])


def T(x: np.ndarray) -> np.ndarray:
    return np.swapaxes(x, -1, -2)


A, B = spd(3, 3), f64(3, 2)

PRODUCTS = [
    Sample("MatMul", [f32(2, 3), f32(3, 4)], reference=np.matmul),
    Sample("MatMul", [f64(3, 2), f64(3, 4)], {"transpose_a": True}, reference=lambda a, b: a.T @ b),
    Sample("MatMul", [f64(2, 3), f64(4, 3)], {"transpose_b": True}, reference=lambda a, b: a @ b.T),
    Sample("MatMul", [f64(3, 2), f64(4, 3)], {"transpose_a": True, "transpose_b": True}, reference=lambda a, b: a.T @ b.T),
    Sample("MatMul", [i32(2, 3), i32(3, 4)], reference=np.matmul, gradient=False),
    Sample("MatMul", [np.uint64([[2**63, 2]]), np.uint64([[2], [3]])], reference=np.matmul, gradient=False),
    Sample("MatMul", [c128(2, 3), c128(3, 4)], reference=np.matmul, gradient=False),
    Sample("MatMul", [f32(2, 0), f32(0, 3)], reference=np.matmul),
    Sample("MatMul", [f32(32, 7), f32(8, 10)], raises=(InvalidArgumentError, "7 and 8")),
    Sample("MatMul", [f32(2), f32(2, 2)], raises=(WHEN_BUILT, "rank|shape")),
    Sample("BatchMatMul", [f64(2, 2, 3), f64(2, 3, 2)], reference=np.matmul),
    Sample("BatchMatMulV2", [f64(2, 1, 2, 3), f64(3, 3, 2)], reference=np.matmul),
    Sample("BatchMatMulV2", [f64(2, 3), f64(2, 3, 2)], reference=np.matmul),
    Sample("BatchMatMulV2", [f64(2, 3, 2), f64(2, 4, 3)], {"adj_x": True, "adj_y": True}, reference=lambda x, y: T(x) @ T(y)),
    Sample("BatchMatMulV2", [c128(2, 3, 2), c128(2, 3, 2)], {"adj_x": True}, reference=lambda x, y: T(x).conj() @ y, gradient=False),
    Sample("BatchMatMulV3", [np.int8([[[100, 100]]]), np.int8([[[100], [100]]])], {"Tout": "int32"}, reference=lambda x, y: np.int32([[[20000]]]), gradient=False),
    Sample("SparseMatMul", [f32(2, 3), f32(3, 4)], {"a_is_sparse": True}, reference=np.matmul, gradient=False),
]  # fmt: skip

FACTORS = [
    Sample("MatrixInverse", [A], reference=np.linalg.inv),
    Sample("MatrixInverse", [f64(2, 3, 3)], {"adjoint": True}, reference=lambda x: np.linalg.inv(T(x))),
    Sample("MatrixInverse", [np.zeros((2, 2))], raises=(InvalidArgumentError, "not invertible")),
    Sample("MatrixInverse", [f64(2, 3)], raises=(InvalidArgumentError, "2|square")),
    Sample("MatrixInverse", [f64(0, 2, 2)], reference=lambda x: x),
    Sample("Cholesky", [np.diag([4.0, 9.0])], reference=np.linalg.cholesky, gradient=False),
    Sample("Cholesky", [-np.ones((2, 2))], reference=lambda x: np.tril(np.full_like(x, np.nan)), gradient=False),
    Sample("MatrixDeterminant", [f64(2, 3, 3)], reference=np.linalg.det),
    Sample("LogMatrixDeterminant", [spd(3, 3)], reference=lambda x: tuple(np.linalg.slogdet(x)), gradient=False),
    Sample("MatrixSolve", [A, B], reference=np.linalg.solve),
    Sample("MatrixSolve", [f64(2, 3, 3), f64(2, 3, 2)], {"adjoint": True}, reference=lambda a, b: np.linalg.solve(T(a), b)),
    Sample("MatrixSolve", [np.zeros((2, 2)), f64(2, 1)], raises=(InvalidArgumentError, "not invertible")),
    Sample("MatrixTriangularSolve", [lower(3, 3), B], reference=np.linalg.solve),
    Sample("MatrixTriangularSolve", [lower(3, 3), B], {"adjoint": True}, reference=lambda a, b: np.linalg.solve(a.T, b)),
    Sample("MatrixTriangularSolve", [T(lower(2, 3, 3)), f64(3, 2)], {"lower": False}, reference=np.linalg.solve),
    Sample("MatrixSolveLs", [f64(4, 2), f64(4, 1), np.float64(0)], reference=lambda a, b, l: np.linalg.lstsq(a, b, None)[0]),
    Sample("MatrixSolveLs", [f64(2, 4), f64(2, 1), np.float64(0)], {"fast": False}, reference=lambda a, b, l: np.linalg.lstsq(a, b, None)[0], gradient=False),
    Sample("SelfAdjointEigV2", [A], {"compute_v": False}, reference=lambda x: (np.linalg.eigvalsh(x), np.zeros(0)), gradient=False),
    Sample("MatrixExponential", [np.diag([1.0, 2.0])], reference=lambda x: np.diag(np.exp([1.0, 2.0]))),
    Sample("MatrixSquareRoot", [np.diag([4.0, 9.0])], reference=lambda x: np.diag([2.0, 3.0])),
    Sample("TridiagonalSolve", [np.array([[1.0, 2, 0], [4, 5, 6], [0, 1, 2]]), f64(3, 2)], reference=lambda d, b: np.linalg.solve(np.array([[4.0, 1, 0], [1, 5, 2], [0, 2, 6]]), b)),
    Sample("TridiagonalMatMul", [np.array([[1.0, 2, 0]]), np.array([[4.0, 5, 6]]), np.array([[0.0, 1, 2]]), f64(3, 2)], reference=lambda u, m, l, b: np.array([[4.0, 1, 0], [1, 5, 2], [0, 2, 6]]) @ b),
]  # fmt: skip

X34 = f64(3, 4)
DIAGONALS = [
    Sample("MatrixBandPart", [f64(2, 3, 4), np.int64(1), np.int64(0)], reference=lambda x, l, u: np.triu(np.tril(x), -1)),
    Sample("MatrixBandPart", [f64(3, 3), np.int64(-1), np.int64(-1)], reference=lambda x, l, u: x),
    Sample("Diag", [f64(2, 3)], reference=lambda x: np.diag(x.ravel()).reshape(2, 3, 2, 3)),
    Sample("DiagPart", [f64(2, 3, 2, 3)], reference=lambda x: np.diag(x.reshape(6, 6)).reshape(2, 3)),
    Sample("DiagPart", [f64(2, 3, 2)], raises=(WHEN_BUILT, "even")),
    Sample("MatrixDiag", [f64(2, 3)], reference=lambda x: np.stack([np.diag(r) for r in x])),
    Sample("MatrixDiagPart", [X34], reference=np.diag),
    Sample("MatrixSetDiag", [X34, f64(3)], reference=lambda x, d: x + np.concatenate([np.diag(d - np.diag(x)), np.zeros((3, 1))], 1)),
    Sample("MatrixDiagV3", [f64(3), np.int32(1), np.int32(-1), np.int32(-1), np.float64(0)], reference=lambda d, *_: np.diag(d, 1), gradient=(0,)),
    Sample("MatrixDiagV2", [f64(2), np.int32(-1), np.int32(3), np.int32(2), np.float64(7)], reference=lambda d, *_: np.array([[7, 7], [d[0], 7], [7, d[1]]]), gradient=(0,)),
    Sample("MatrixDiagPartV3", [X34, np.int32([-1, 1]), np.float64(9)], reference=lambda x, *_: np.array([np.diag(x, 1), np.diag(x), [*np.diag(x, -1), 9]]), gradient=(0,)),
    Sample("MatrixDiagPartV3", [X34, np.int32([-1, 1]), np.float64(9)], {"align": "RIGHT_RIGHT"}, reference=lambda x, *_: np.array([np.diag(x, 1), np.diag(x), [9, *np.diag(x, -1)]]), gradient=(0,)),
    Sample("MatrixDiagPartV2", [X34, np.int32(3), np.float64(9)], reference=lambda x, *_: np.diag(x, 3), gradient=(0,)),
    Sample("MatrixDiagPartV3", [X34, np.int32(4), np.float64(9)], raises=(InvalidArgumentError, "4")),
    Sample("MatrixSetDiagV3", [X34, f64(2), np.int32(-1)], reference=lambda x, d, k: x + np.concatenate([np.diag(d - np.diag(x, -1), -1), np.zeros((3, 1))], 1), gradient=(0, 1)),
]  # fmt: skip


@samples(PRODUCTS + FACTORS + DIAGONALS)
def test_sample(sample: Sample) -> None:
    """The op does what its reference does, in every mode."""
    check_sample(sample)


def check_gradient(build, x: np.ndarray) -> None:
    """tf.gradients of a scalar against central differences."""
    with tf.Graph().as_default(), tf.Session() as session:
        holder = tf.placeholder(tf.float64, x.shape)
        total = build(holder)
        found = session.run(tf.gradients(total, holder)[0], {holder: x})
        expected = np.zeros_like(x)
        for index in np.ndindex(*x.shape):
            up, down = x.copy(), x.copy()
            up[index] += 1e-6
            down[index] -= 1e-6
            expected[index] = (session.run(total, {holder: up}) - session.run(total, {holder: down})) / 2e-6
        np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-5)


def test_matmul_arguments() -> None:
    """Adjoints conjugate, ranks above two broadcast, contradictory flags are refused."""
    a, b = c128(2, 3), c128(2, 4)
    assert np.allclose(run_built(lambda: tf.matmul(a, b, adjoint_a=True)), a.conj().T @ b)
    assert np.allclose(run_built(lambda: tf.matmul(a, b, transpose_a=True)), a.T @ b)
    x, y = c128(2, 3, 2), c128(4, 2)
    assert np.allclose(run_built(lambda: tf.matmul(x, y, transpose_b=True)), x @ y.T)
    assert np.allclose(run_built(lambda: tf.linalg.matvec(x.real, np.ones(2))), x.real.sum(-1))
    assert run_built(lambda: tf.matmul(np.int8([[100]]), np.int8([[100]]), output_type=tf.int32)).tolist() == [[10000]]
    with pytest.raises(ValueError, match="Only one of"):
        tf.matmul(a, b, transpose_a=True, adjoint_a=True)
    with tf.Graph().as_default():
        p = tf.placeholder(tf.float32)
        assert tf.matmul(p, p).op.type == "BatchMatMulV2"
        assert tf.matmul(tf.ones([2, 2]), tf.ones([2, 2]), a_is_sparse=True).op.type == "SparseMatMul"


def test_factorisations_multiply_back() -> None:
    """Factors multiply to the matrix they came from, and vectors are orthonormal."""
    x = f64(2, 4, 3)
    q, r = run_built(lambda: tf.qr(x))
    assert np.allclose(q @ r, x) and np.allclose(T(q) @ q, np.eye(3))
    q, r = run_built(lambda: tf.qr(x, full_matrices=True))
    assert q.shape == (2, 4, 4) and np.allclose(q @ r, x)
    s, u, v = run_built(lambda: tf.svd(x))
    assert np.allclose(u * s[:, None, :] @ T(v), x)
    assert np.allclose(run_built(lambda: tf.svd(x, compute_uv=False)), s)
    m = spd(3, 3)
    e, v = run_built(lambda: tf.self_adjoint_eig(m))
    assert np.allclose(v * e @ v.T, m) and (np.diff(e) > 0).all()
    f = m + np.triu(np.ones((3, 3)))
    e, v = run_built(lambda: tf2.linalg.eig(f))
    assert np.allclose(v * e @ np.linalg.inv(v), f)
    packed, order = run_built(lambda: tf.linalg.lu(x[:, :3]))
    assert np.allclose(
        (np.tril(packed, -1) + np.eye(3)) @ np.triu(packed), np.stack([a[o] for a, o in zip(x[:, :3], order)])
    )
    root = run_built(lambda: tf.linalg.sqrtm(m))
    assert np.allclose(root @ root, m)
    assert np.allclose(run_built(lambda: tf.linalg.expm(np.zeros((2, 2)))), np.eye(2))
    assert np.allclose(run_built(lambda: tf.linalg.logdet(m)), np.log(np.linalg.det(m)))
    chol = np.linalg.cholesky(m)
    assert np.allclose(run_built(lambda: tf.cholesky_solve(chol, B)), np.linalg.solve(m, B))


@pytest.mark.parametrize(
    "build",
    [
        lambda x: tf.reduce_sum(tf.cholesky(tf.matmul(x, x, transpose_b=True) + tf.eye(3, dtype=tf.float64)) * X34[:, :3]),
        lambda x: tf.reduce_sum(tf.qr(x)[0] * X34[:, :3]) + tf.reduce_sum(tf.qr(x)[1] ** 2 * X34[:, 1:]),
        lambda x: tf.reduce_sum(tf.svd(x)[0] * [1.0, 2.0, 3.0]),
        lambda x: tf.reduce_sum(tf.svd(x, compute_uv=False) ** 2),
        lambda x: tf.reduce_sum(tf.matmul(tf.svd(x)[1], tf.svd(x)[2], transpose_b=True) * X34[:, :3]),
        lambda x: tf.reduce_sum(tf.self_adjoint_eigvals(x + tf.transpose(x)) * [1.0, 2.0, 3.0]),
        lambda x: tf.reduce_sum(tf.self_adjoint_eig(x + tf.transpose(x))[1] ** 2 * X34[:, :3]),
        lambda x: tf.reduce_sum(tf.linalg.expm(x) * X34[:, :3]),
        lambda x: tf.reduce_sum(tf.linalg.sqrtm(tf.matmul(x, x, transpose_b=True) + tf.eye(3, dtype=tf.float64)) * X34[:, :3]),
        lambda x: tf.reduce_sum(tf.real(tf2.linalg.eigvals(x)) ** 2),
        lambda x: tf.linalg.slogdet(x)[1],
        lambda x: tf.reduce_sum(tf.matrix_solve_ls(x, B, l2_regularizer=0.1) * B),
    ],
)  # fmt: skip
def test_gradients_of_factorisations(build) -> None:
    """Gradients agree with finite differences."""
    check_gradient(build, np.array([[1.1, 0.3, -0.4], [0.2, 2.2, 0.5], [-0.3, 0.1, 3.4]]))


def test_qr_and_svd_gradients_of_tall_matrices() -> None:
    """Matrices with more rows than columns have gradients too."""
    x = f64(4, 2)
    w = f64(4, 2)
    check_gradient(lambda t: tf.reduce_sum(tf.qr(t)[0] * w), x)
    check_gradient(lambda t: tf.reduce_sum(tf.matmul(tf.svd(t)[1], tf.svd(t)[2], transpose_b=True) * w), x)
    check_gradient(lambda t: tf.reduce_sum(tf.matmul(tf.svd(t)[1], tf.svd(t)[2], transpose_b=True) * w.T), x.T.copy())


def test_eye_trace_and_norms() -> None:
    """eye has rows, columns and batches; norms are those of vectors or matrices."""
    assert run_built(lambda: tf.eye(2, 3)).tolist() == np.eye(2, 3).tolist()
    assert run_built(lambda: tf.eye(3, batch_shape=[2], dtype=tf.int32)).tolist() == [np.eye(3).tolist()] * 2
    assert run_built(lambda: tf.eye(tf.constant(2))).tolist() == np.eye(2).tolist()
    x = f64(2, 3, 4)
    assert np.allclose(run_built(lambda: tf.trace(x)), np.trace(x, axis1=1, axis2=2))
    assert np.allclose(run_built(lambda: tf.norm(x)), np.sqrt((x**2).sum()))
    assert np.allclose(run_built(lambda: tf.norm(x, 1, 1)), np.abs(x).sum(1))
    assert np.allclose(
        run_built(lambda: tf.norm(x, 3, -1, keepdims=True)), (np.abs(x) ** 3).sum(-1, keepdims=True) ** (1 / 3)
    )
    assert np.allclose(run_built(lambda: tf.norm(x, np.inf, 2)), np.abs(x).max(2))
    for order in ("fro", 1, 2, np.inf):
        expected = [np.linalg.norm(m, order) for m in x]
        assert np.allclose(run_built(lambda order=order: tf.norm(x, order, [1, 2])), expected)
    z = c128(3)
    assert np.allclose(run_built(lambda: tf.norm(z)), np.linalg.norm(z))
    with pytest.raises(ValueError, match="ord"):
        tf.norm(x, "fro", 1)
    with pytest.raises(ValueError, match="axis"):
        tf.norm(x, 2, [0, 1, 2])


def test_functions_of_factorisations() -> None:
    """Pseudo-inverse, rank, and what an LU factorisation serves for."""
    x = f64(2, 4, 3)
    assert np.allclose(run_built(lambda: tf.linalg.pinv(x)), np.linalg.pinv(x))
    assert run_built(lambda: tf.linalg.matrix_rank(np.array([[1.0, 2.0], [2.0, 4.0]]))) == 1
    for m in (spd(3, 3), x[:, :3]):
        right = f64(*m.shape[:-1], 2)

        with tf.Graph().as_default(), tf.Session() as session:
            factors = tf.linalg.lu(m)
            assert np.allclose(session.run(tf.linalg.lu_reconstruct(*factors)), m)
            assert np.allclose(session.run(tf.linalg.lu_solve(*factors, right)), np.linalg.solve(m, right))
            assert np.allclose(session.run(tf.linalg.lu_matrix_inverse(*factors)), np.linalg.inv(m))
    alpha, beta = np.array([1.0, 2.0, 3.0]), np.array([0.5, 0.25])
    dense = np.diag(alpha) + np.diag(beta, 1) + np.diag(beta, -1)
    assert np.allclose(run_built(lambda: tf.linalg.eigh_tridiagonal(alpha, beta)), np.linalg.eigvalsh(dense))
    assert np.allclose(
        run_built(lambda: tf.linalg.eigh_tridiagonal(alpha, beta, select="i", select_range=(1, 2))),
        np.linalg.eigvalsh(dense)[1:],
    )


def test_banded_and_tridiagonal_functions() -> None:
    """Band matrices are given by their diagonals."""
    right = f64(3, 2)
    dense = np.array([[4.0, 1, 0], [1, 5, 2], [0, 2, 6]])
    compact = np.array([[1.0, 2, 0], [4, 5, 6], [0, 1, 2]])
    assert np.allclose(run_built(lambda: tf.linalg.tridiagonal_solve(compact, right)), np.linalg.solve(dense, right))
    assert np.allclose(
        run_built(lambda: tf.linalg.tridiagonal_solve(compact, right[:, 0])), np.linalg.solve(dense, right[:, 0])
    )
    assert np.allclose(
        run_built(lambda: tf.linalg.tridiagonal_solve(dense, right, "matrix")), np.linalg.solve(dense, right)
    )
    parts = [np.array([1.0, 2]), np.array([4.0, 5, 6]), np.array([1.0, 2])]
    assert np.allclose(
        run_built(lambda: tf.linalg.tridiagonal_solve(parts, right, "sequence")), np.linalg.solve(dense, right)
    )
    assert np.allclose(run_built(lambda: tf.linalg.tridiagonal_matmul(compact, right)), dense @ right)
    lower_bands = np.array([[2.0, 3, 4], [9, 1, 5]])
    lower_dense = np.array([[2.0, 0, 0], [1, 3, 0], [0, 5, 4]])
    upper_bands, upper_dense = np.array([[1.0, 5, 9], [2, 3, 4]]), lower_dense.T
    solve = find_definition("BandedTriangularSolve")
    assert np.allclose(run_built(lambda: solve(lower_bands, right)), np.linalg.solve(lower_dense, right))
    assert np.allclose(run_built(lambda: solve(upper_bands, right, lower=False)), np.linalg.solve(upper_dense, right))


def test_attributes_younger_than_1_15_are_left_out_of_graph_defs() -> None:
    """TensorFlow 1.15 reads matrix products and their gradients: attributes it does not know are not written."""
    with tf.Graph().as_default() as graph:
        a, b = tf.constant(f64(2, 3)), tf.constant(f64(3, 2))
        product = tf.matmul(a, b)
        tf.gradients(product, [a, b])
        nodes = [node for node in graph.as_graph_def().node if node.op == "MatMul"]
        assert len(nodes) == 3
        for node in nodes:
            assert set(node.attr) >= {"T", "transpose_a", "transpose_b"} and "grad_a" not in node.attr
        assert product.op.get_attr("grad_a") is False


@pytest.mark.parametrize("transposed", [(False, False), (True, False), (False, True), (True, True)])
def test_large_products(transposed):
    """Large float32 matrices, of sizes that fill no block of any kernel, are multiplied in every orientation."""
    rng = np.random.RandomState(0)
    a, b = rng.randn(331, 333).astype("f"), rng.randn(333, 165).astype("f")
    stored = [x.T.copy() if flip else x for x, flip in zip((a, b), transposed)]
    with tf.Graph().as_default(), tf.Session() as session:
        x, y = (tf.placeholder(tf.float32, [None, None]) for _ in range(2))
        product = tf.matmul(x, y, transpose_a=transposed[0], transpose_b=transposed[1])
        found = session.run(product, dict(zip((x, y), stored)))
        views = session.run(tf.matmul(tf.transpose(x), y, transpose_a=not transposed[0], transpose_b=transposed[1]),
                            dict(zip((x, y), stored)))  # fmt: skip
        with pytest.raises(tf.errors.InvalidArgumentError, match="333"):
            session.run(product, {x: stored[0], y: np.zeros((500, 500), "f")})
    exact = a.astype("d") @ b.astype("d")
    np.testing.assert_allclose(found, exact, rtol=1e-4, atol=1e-4)
    np.testing.assert_allclose(views, exact, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("hole", [np.nan, np.inf])
def test_matrices_that_are_not_finite(hole, eager):
    """NaN passes through inverses and solutions; eigenvalues of what is not finite are refused, and logarithms are NaN."""
    matrix = np.eye(3, dtype=np.float32)
    matrix[0, 1] = hole
    for function in (tf2.linalg.eigvals, tf2.linalg.eig):
        with pytest.raises(InvalidArgumentError, match="Eigen decomposition was not successful"):
            function(matrix)
    assert np.isnan(tf2.linalg.logm(matrix.astype(np.complex64)).numpy()).all()
    if np.isnan(hole):
        assert np.isnan(tf2.linalg.inv(matrix).numpy()).all()
        pair = tf2.linalg.solve(np.stack([np.eye(3, dtype=np.float32), matrix]), np.ones((2, 3, 1), np.float32)).numpy()
        assert (pair[0] == 1).all() and np.isnan(pair[1]).all()
        matrix[0, 0] = hole
        with pytest.raises(InvalidArgumentError, match="not invertible"):
            tf2.linalg.inv(matrix)


def test_spectral_norms_of_unknown_rank() -> None:
    """The largest singular value, over axes that are counted when it runs."""
    value = f64(2, 3, 4)
    fed = tf.placeholder(tf.float64)
    with tf.Session() as session:
        for axes in ([0, 1], [-2, -1], [2, 0]):
            found = session.run(tf.norm(fed, 2, axes), {fed: value})
            np.testing.assert_allclose(found, np.linalg.norm(value, 2, tuple(axes)))


def test_factors_of_unknown_rank_are_checked() -> None:
    """`validate_args` looks at ranks when it runs, and permutations of many matrices must be some."""
    packed, order = tf.placeholder(tf.float64), tf.placeholder(tf.int32)
    whole = tf.linalg.lu_reconstruct(packed, order, validate_args=True)
    matrices = spd(2, 3, 3)
    with tf.Session() as session:
        factors, places = session.run(tf.linalg.lu(matrices))
        np.testing.assert_allclose(session.run(whole, {packed: factors, order: places}), matrices)
        for wrong in (places[0], np.array([[0, 1, 7], [0, 1, 2]])):
            with pytest.raises(InvalidArgumentError):
                session.run(whole, {packed: factors, order: wrong})
