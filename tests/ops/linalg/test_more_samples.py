"""Samples of ops of this family that its other tables do not have."""

import numpy as np

from stoker._src.base.errors import InvalidArgumentError
from tests.ops.samples import Sample, check_sample, f32, f64, positive, samples

DEFINITE = (lambda a: a @ a.T + np.eye(4))(np.random.RandomState(1).rand(4, 4))


ROOT = np.linalg.cholesky(DEFINITE)


SQUARE = np.random.RandomState(4).rand(2, 3, 3) + 2 * np.eye(3)


SYMMETRIC = SQUARE + np.swapaxes(SQUARE, 1, 2)


FACTOR = np.linalg.cholesky(SYMMETRIC)


SAMPLES = [
    Sample("MatMul", [f32(2, 3), f32(3, 4)], reference=np.matmul),
    Sample("MatMul", [f32(3, 2), f32(3, 4)], {"transpose_a": True}, reference=lambda a, b: a.T @ b),
    Sample("MatMul", [f32(2, 3), f32(4, 3)], {"transpose_b": True}, reference=lambda a, b: a @ b.T),
    Sample("MatMul", [f32(32, 7), f32(8, 10)], raises=(InvalidArgumentError, "7 and 8")),
    Sample("MatrixSetDiagV2", [f64(3, 4), f64(2), np.array(2, np.int32)],
           reference=lambda x, d, k: np.where(np.eye(3, 4, 2), np.concatenate([d, [0]])[:, None], x)),
    Sample("CholeskyGrad", [ROOT, np.tril(f64(4, 4))], gradient=True),
    Sample("SelfAdjointEig", [DEFINITE]),
    Sample("MatrixLogarithm", [np.diag([1.0, 2, 3]).astype(np.complex128)], reference=lambda x: np.diag(np.log([1.0, 2, 3])), gradient=False),
    Sample("BatchCholesky", [DEFINITE], reference=np.linalg.cholesky),
    Sample("BatchMatrixDeterminant", [DEFINITE], reference=np.linalg.det),
    Sample("BatchMatrixInverse", [DEFINITE], reference=np.linalg.inv),
    Sample("BatchMatrixSolve", [DEFINITE, f64(4, 2)], reference=np.linalg.solve),
    Sample("BatchMatrixTriangularSolve", [ROOT, f64(4, 2)], reference=np.linalg.solve),
    Sample("BatchMatrixSolveLs", [f64(4, 2), f64(4, 1), np.float64(0)], reference=lambda a, b, _: np.linalg.lstsq(a, b, None)[0]),
    Sample("BandedTriangularSolve", [positive(2, 4) + 1, f64(4, 2)],
           reference=lambda m, b: np.linalg.solve(np.diag(m[0]) + np.diag(m[1, 1:], -1), b)),
    Sample("BandedTriangularSolve", [positive(2, 4) + 1, f64(4, 2)], {"lower": False, "adjoint": True},
           reference=lambda m, b: np.linalg.solve((np.diag(m[1]) + np.diag(m[0, :-1], 1)).T, b)),
    Sample("Qr", [SQUARE], gradient=True, reference=lambda x: tuple(np.linalg.qr(x))),
    Sample("Qr", [f64(4, 2)], {"full_matrices": True}, gradient=False),
    Sample("Svd", [f64(3, 2)], {"compute_uv": False}, static=True, reference=lambda x: (np.linalg.svd(x, compute_uv=False), np.zeros(0), np.zeros(0)), gradient=False),
    Sample("Svd", [SQUARE], gradient=False),
    Sample("Eig", [SYMMETRIC], {"Tout": "complex128"}, gradient=False),
    Sample("Lu", [np.array([[1.0, 2], [4, 3]])], gradient=False, reference=lambda x: (np.array([[4, 3], [0.25, 1.25]]), np.array([1, 0], np.int32))),
    Sample("Lu", [np.zeros((2, 2))], raises=(InvalidArgumentError, "invertible")),
    Sample("BatchCholeskyGrad", [FACTOR, np.tril(f64(2, 3, 3))], gradient=False),
    Sample("BatchSelfAdjointEigV2", [SYMMETRIC], {"compute_v": False}, gradient=False, reference=lambda x: (np.linalg.eigvalsh(x), np.zeros(0))),
    Sample("BatchSelfAdjointEig", [SYMMETRIC], gradient=False),
    Sample("BatchSvd", [SQUARE], {"compute_uv": False}, gradient=False, reference=lambda x: (np.linalg.svd(x, compute_uv=False), np.zeros(0), np.zeros(0))),
]  # fmt: skip


@samples(SAMPLES)
def test_sample(sample: Sample) -> None:
    """Value, shapes, eager mode, gradient, aliasing and GraphDef of each sample."""
    check_sample(sample)
