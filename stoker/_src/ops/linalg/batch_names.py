"""Old names of batched linear algebra ops. Each does the same as the op without `Batch` in its name."""

from stoker._src.base import dtypes
from stoker._src.base.dtypes import COMPLEX
from stoker._src.graph.definition import define
from stoker._src.ops.linalg import decompositions, solvers

_REAL = (dtypes.float64, dtypes.float32)
_INEXACT = (*_REAL, *COMPLEX)
_SAME = (
    (define("BatchCholesky(input: T) -> (output: T)", T=_REAL), decompositions.CHOLESKY),
    (define("BatchCholeskyGrad(l: T, grad: T) -> (output: T)", T=_REAL), decompositions.CHOLESKY_GRAD),
    (define("BatchMatrixDeterminant(input: T) -> (output: T)", T=_INEXACT), decompositions.MATRIX_DETERMINANT),
    (define("BatchMatrixInverse(input: T) -> (output: T)", adjoint=False, T=_REAL), decompositions.MATRIX_INVERSE),
    (define("BatchMatrixSolve(matrix: T, rhs: T) -> (output: T)", adjoint=False, T=_REAL), solvers.MATRIX_SOLVE),
    (
        define("BatchMatrixSolveLs(matrix: T, rhs: T, l2_regularizer: host float64) -> (output: T)", T=_REAL, fast=True),
        solvers.MATRIX_SOLVE_LS,
    ),
    (define("BatchSelfAdjointEig(input: T) -> (output: T)", T=_REAL), decompositions.SELF_ADJOINT_EIG),
    (
        define("BatchSelfAdjointEigV2(input: T) -> (e: T, v: T)", compute_v=True, T=_REAL),
        decompositions.SELF_ADJOINT_EIG_V2,
    ),
    (
        define("BatchSvd(input: T) -> (s: T, u: T, v: T)", compute_uv=True, full_matrices=False, T=_INEXACT),
        decompositions.SVD,
    ),
)  # fmt: skip
for _old, _op in _SAME:
    _old.same_as(_op)
