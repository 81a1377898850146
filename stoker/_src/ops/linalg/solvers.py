"""Systems of linear equations."""

from __future__ import annotations

from typing import Any

import torch

from stoker._src.base import dtypes
from stoker._src.base.dtypes import COMPLEX
from stoker._src.base.errors import InvalidArgumentError
from stoker._src.base.export import export
from stoker._src.base.shapes import UNKNOWN_SHAPE, Shape, merge_dims
from stoker._src.base.shapes import broadcast as broadcast_shapes
from stoker._src.graph.conversion import convert_to_tensor, dtype_of
from stoker._src.graph.definition import define
from stoker._src.graph.late_binding import ops
from stoker._src.graph.scopes import name_scope
from stoker._src.graph.static_values import constant_value
from stoker._src.graph.tensor import Operation, Tensor
from stoker._src.ops.array import broadcasting, casting, joining, shaping
from stoker._src.ops.linalg import diagonals, matrix_products, square_matrices
from stoker._src.ops.math import arithmetic, comparison, reductions, unary_functions

_TYPES = (dtypes.float64, dtypes.float32, dtypes.float16, *COMPLEX)


def _wide(x: torch.Tensor) -> torch.Tensor:
    return x.float() if x.dtype in (torch.float16, torch.bfloat16) else x


def _check_rows(matrix: torch.Tensor, rhs: torch.Tensor) -> None:
    if matrix.ndim < 2 or rhs.ndim < 2 or matrix.shape[-2] != rhs.shape[-2]:
        raise InvalidArgumentError(
            None, None, f"Input matrix and rhs are incompatible: {list(matrix.shape)} and {list(rhs.shape)}."
        )


# ---- MatrixSolve ------------------------------------------------------------------------------------------------

MATRIX_SOLVE = define("MatrixSolve(matrix: T, rhs: T) -> (output: T)", adjoint=False, T=_TYPES)
MATRIX_SOLVE.planning.refuses = True


@MATRIX_SOLVE.kernel
def matrix_solve_kernel(matrix: torch.Tensor, rhs: torch.Tensor, *, adjoint: bool) -> torch.Tensor:
    square_matrices.check_square(matrix)
    _check_rows(matrix, rhs)
    if matrix.ndim != rhs.ndim:
        raise InvalidArgumentError(
            None, None, f"All input tensors must have the same rank: {list(matrix.shape)} and {list(rhs.shape)}."
        )
    a = _wide(matrix)
    solution, info = torch.linalg.solve_ex(a.mH if adjoint else a, _wide(rhs))
    solution = square_matrices.of_invertible(a, info, solution, "Input matrix is not invertible.")
    return solution.contiguous().to(matrix.dtype)


@MATRIX_SOLVE.lower
def matrix_solve_lower(build: Any, op: Operation, matrix: Any, rhs: Any) -> Any:
    return build.dense("solve", matrix, rhs, adjoint=op.attr("adjoint"))


@MATRIX_SOLVE.shape
def matrix_solve_shape(matrix: Shape, rhs: Shape) -> Shape:
    matrix = square_matrices.square(matrix)
    if rhs.at_least(2).dims is None or matrix.dims is None:
        return rhs
    rows = merge_dims(matrix[-1], rhs[-2], matrix, rhs)
    return matrix[:-2].merge(rhs[:-2]).concat(Shape((rows, rhs[-1])))


@MATRIX_SOLVE.grad
def matrix_solve_grad(op: Operation, g: Tensor) -> tuple[Tensor, Tensor]:
    a, x = op.inputs[0], op.outputs[0]
    transposed = op.attr("adjoint")
    db = MATRIX_SOLVE(a, g, adjoint=not transposed)
    if transposed:
        da = unary_functions.negative(matrix_products.matmul(x, db, adjoint_b=True))
    else:
        da = unary_functions.negative(matrix_products.matmul(db, x, adjoint_b=True))
    return da, db


@export("linalg.solve", v1="matrix_solve")
def matrix_solve(matrix: Any, rhs: Any, adjoint: bool = False, name: str | None = None) -> Tensor:
    """Solves matrix x = rhs, or with the adjoint of the matrix.

    Raises:
        InvalidArgumentError: a matrix is singular.
    """
    return MATRIX_SOLVE(matrix, rhs, adjoint=adjoint, name=name)


# ---- MatrixTriangularSolve --------------------------------------------------------------------------------------

MATRIX_TRIANGULAR_SOLVE = define(
    "MatrixTriangularSolve(matrix: T, rhs: T) -> (output: T)", lower=True, adjoint=False, T=(dtypes.bfloat16, *_TYPES)
)
BATCH_MATRIX_TRIANGULAR_SOLVE = define(
    "BatchMatrixTriangularSolve(matrix: T, rhs: T) -> (output: T)",
    lower=True,
    adjoint=False,
    T=(dtypes.float64, dtypes.float32),
)


@MATRIX_TRIANGULAR_SOLVE.kernel
@BATCH_MATRIX_TRIANGULAR_SOLVE.kernel
def matrix_triangular_solve_kernel(
    matrix: torch.Tensor, rhs: torch.Tensor, *, lower: bool, adjoint: bool
) -> torch.Tensor:
    square_matrices.check_square(matrix)
    _check_rows(matrix, rhs)
    a = _wide(matrix)
    a, upper = (a.mH, lower) if adjoint else (a, not lower)
    return torch.linalg.solve_triangular(a, _wide(rhs), upper=upper).contiguous().to(matrix.dtype)


def matrix_triangular_solve_lower(build: Any, op: Operation, matrix: Any, rhs: Any) -> Any:
    return build.dense("triangular", matrix, rhs, adjoint=op.attr("adjoint"), lower=op.attr("lower"))


for _definition in (MATRIX_TRIANGULAR_SOLVE, BATCH_MATRIX_TRIANGULAR_SOLVE):
    _definition.lower(matrix_triangular_solve_lower)


@MATRIX_TRIANGULAR_SOLVE.shape
@BATCH_MATRIX_TRIANGULAR_SOLVE.shape
def matrix_triangular_solve_shape(matrix: Shape, rhs: Shape) -> Shape:
    matrix = square_matrices.square(matrix)
    if rhs.at_least(2).dims is None or matrix.dims is None:
        return UNKNOWN_SHAPE
    rows = merge_dims(matrix[-1], rhs[-2], matrix, rhs)
    return broadcast_shapes(matrix[:-2], rhs[:-2]).concat(Shape((rows, rhs[-1])))


@MATRIX_TRIANGULAR_SOLVE.grad
def matrix_triangular_solve_grad(op: Operation, g: Tensor) -> Any:
    a, b = op.inputs
    x = op.outputs[0]
    transposed, lower = op.attr("adjoint"), op.attr("lower")
    db = MATRIX_TRIANGULAR_SOLVE(a, g, lower=lower, adjoint=not transposed)
    if transposed:
        da = unary_functions.negative(matrix_products.matmul(x, db, adjoint_b=True))
    else:
        da = unary_functions.negative(matrix_products.matmul(db, x, adjoint_b=True))
    da = diagonals.matrix_band_part(da, -1, 0) if lower else diagonals.matrix_band_part(da, 0, -1)
    return _without_broadcasting(a, b, da, db)


def _without_broadcasting(a: Tensor, b: Tensor, da: Tensor, db: Tensor) -> tuple[Tensor, Tensor]:
    """Gradients of a matrix and a right-hand side, summed over broadcast batch dimensions."""
    batch_a, batch_b = a.static_shape[:-2], b.static_shape[:-2]
    if batch_a.known and batch_a.dims == batch_b.dims:
        return da, db
    sizes_a, sizes_b = shaping.shape(a), shaping.shape(b)
    axes_a, axes_b = broadcasting.BROADCAST_GRADIENT_ARGS(sizes_a[:-2], sizes_b[:-2])
    return shaping.reshape(reductions.SUM(da, axes_a), sizes_a), shaping.reshape(reductions.SUM(db, axes_b), sizes_b)


@export("linalg.triangular_solve", v1="matrix_triangular_solve")
def matrix_triangular_solve(
    matrix: Any, rhs: Any, lower: bool = True, adjoint: bool = False, name: str | None = None
) -> Tensor:
    """Solves matrix x = rhs for triangular matrices. The other triangle is not read."""
    with name_scope(name, "triangular_solve", [matrix, rhs]):
        return MATRIX_TRIANGULAR_SOLVE(matrix, rhs, lower=lower, adjoint=adjoint)


@export("linalg.cholesky_solve", v1="cholesky_solve")
def cholesky_solve(chol: Any, rhs: Any, name: str | None = None) -> Tensor:
    """Solves A x = rhs, given the Cholesky factor of A."""
    with name_scope(name, "cholesky_solve", [chol, rhs]):
        chol = convert_to_tensor(chol)
        first = MATRIX_TRIANGULAR_SOLVE(chol, rhs, adjoint=False, lower=True)
        return MATRIX_TRIANGULAR_SOLVE(chol, first, adjoint=True, lower=True)


# ---- least squares ----------------------------------------------------------------------------------------------

MATRIX_SOLVE_LS = define(
    "MatrixSolveLs(matrix: T, rhs: rank>1 T, l2_regularizer: scalar host float64) -> (output: T)", T=_TYPES, fast=True
)


@MATRIX_SOLVE_LS.kernel
def matrix_solve_ls_kernel(
    matrix: torch.Tensor, rhs: torch.Tensor, l2_regularizer: float, *, fast: bool
) -> torch.Tensor:
    if matrix.ndim != rhs.ndim:
        raise InvalidArgumentError(
            None,
            None,
            f"All input tensors must have the same rank: matrix {Shape(matrix.shape)}, rhs {Shape(rhs.shape)}",
        )
    _check_rows(matrix, rhs)
    if not l2_regularizer >= 0:
        raise InvalidArgumentError(None, None, f"l2_regularizer must be >= 0, got {l2_regularizer}.")
    a, b = _wide(matrix), _wide(rhs)
    rows, cols = a.shape[-2:]
    if not fast:  # the complete orthogonal decomposition does not support a regularizer
        driver = "gelsy" if a.device.type == "cpu" else None
        finite = (torch.isfinite(a).all(-1).all(-1) & torch.isfinite(b).all(-1).all(-1))[..., None, None]
        if bool(finite.all()):
            return torch.linalg.lstsq(a, b, driver=driver).solution.to(matrix.dtype)
        a, b = torch.where(finite, a, 0.0), torch.where(finite, b, 0.0)  # torch refuses values that are not finite
        return torch.where(finite, torch.linalg.lstsq(a, b, driver=driver).solution, torch.nan).to(matrix.dtype)
    tall = rows >= cols
    gram = a.mH @ a if tall else a @ a.mH
    gram = gram + l2_regularizer * torch.eye(gram.shape[-1], dtype=a.dtype, device=a.device)
    factor, info = torch.linalg.cholesky_ex(gram)
    if bool((info != 0).any()) and bool(torch.isfinite(gram).all()):
        raise InvalidArgumentError(
            None,
            None,
            "Input matrix was rank deficient or ill-conditioned. Try setting fast=False or provide a larger l2_regularizer > 0.",
        )
    if tall:
        return torch.cholesky_solve(a.mH @ b, factor).to(matrix.dtype)
    return (a.mH @ torch.cholesky_solve(b, factor)).to(matrix.dtype)


@MATRIX_SOLVE_LS.shape
def matrix_solve_ls_shape(matrix: Shape, rhs: Shape, l2_regularizer: Shape) -> Shape:
    if matrix.at_least(2).dims is None or rhs.at_least(2).dims is None:
        return UNKNOWN_SHAPE
    merge_dims(matrix[-2], rhs[-2], matrix, rhs)
    return matrix[:-2].merge(rhs[:-2]).concat(Shape((matrix[-1], rhs[-1])))


@MATRIX_SOLVE_LS.grad
def matrix_solve_ls_grad(op: Operation, g: Tensor) -> Any:
    """From x = C A^H b with C = (A^H A + lambda I)^-1, or x = A^H C b with C = (A A^H + lambda I)^-1 for wide A."""
    if not op.attr("fast"):
        raise ValueError("Gradient not defined for fast=False")
    a, b, weight = op.inputs
    x = op.outputs[0]

    def tall() -> list[Any]:
        z = cholesky_solve(_regularized(a, True, weight), g)
        outer = matrix_products.matmul(x, z, adjoint_b=True)
        symmetric = arithmetic.add(
            outer, matrix_products.transposed(outer)
        )  # TensorFlow uses the transpose here, not the adjoint
        da = arithmetic.subtract(matrix_products.matmul(b, z, adjoint_b=True), matrix_products.matmul(a, symmetric))
        return [da, matrix_products.matmul(a, z)]

    def wide() -> list[Any]:
        factor = _regularized(a, False, weight)
        w, z = cholesky_solve(factor, b), cholesky_solve(factor, matrix_products.matmul(a, g))
        rest = arithmetic.subtract(g, matrix_products.matmul(a, z, adjoint_a=True))
        return [
            arithmetic.subtract(
                matrix_products.matmul(w, rest, adjoint_b=True), matrix_products.matmul(z, x, adjoint_b=True)
            ),
            z,
        ]

    rows, cols = a.static_shape.at_least(2)[-2:] if a.static_shape.rank else (None, None)
    if rows is not None and cols is not None:
        return *(tall() if rows >= cols else wide()), None
    sizes = shaping.shape(a)
    return *ops.cond(comparison.greater_equal(sizes[-2], sizes[-1]), tall, wide), None


def _regularized(matrix: Tensor, first: bool, l2_regularizer: Any) -> Tensor:
    """The Cholesky factor of A^H A (or A A^H) + lambda I."""
    gram = matrix_products.matmul(matrix, matrix, adjoint_a=first, adjoint_b=not first)
    if l2_regularizer is not None:
        size = gram.static_shape[-1]
        eye = diagonals.eye(size if size is not None else shaping.shape(gram)[-1], dtype=gram.dtype.base_dtype)
        gram = arithmetic.add(gram, arithmetic.multiply(casting.cast(l2_regularizer, gram.dtype.base_dtype), eye))
    return ops.cholesky(gram)


@export("linalg.lstsq", v1="matrix_solve_ls")
def matrix_solve_ls(
    matrix: Any, rhs: Any, l2_regularizer: Any = 0.0, fast: bool = True, name: str | None = None
) -> Tensor:
    """Solves a least-squares problem: minimizes |matrix x - rhs|² + l2_regularizer |x|². If x is not unique, its norm is minimal.

    `fast` solves the normal equations and has gradients. Otherwise an orthogonal decomposition is used, which also handles
    rank-deficient matrices.
    """
    with name_scope(name, "matrix_solve_ls", [matrix, rhs, l2_regularizer]) as scope:
        matrix = convert_to_tensor(matrix)
        rhs = convert_to_tensor(rhs, dtype_hint=matrix.dtype.base_dtype if dtype_of(rhs) is None else None)
        weight = convert_to_tensor(l2_regularizer, dtypes.float64 if not isinstance(l2_regularizer, Tensor) else None)
        matrix.shape.with_rank_at_least(2)
        rows, cols = matrix.static_shape[-2], matrix.static_shape[-1]
        if not fast or rows is None or cols is None:
            weight = casting.cast(weight, dtypes.float64)
            return MATRIX_SOLVE_LS(matrix, rhs, weight, fast=fast, name=None if fast else scope)
        known = constant_value(weight)
        weight = None if known is not None and not known.any() else weight
        factor = _regularized(matrix, rows >= cols, weight)
        if rows >= cols:
            return cholesky_solve(factor, matrix_products.matmul(matrix, rhs, adjoint_a=True))
        return matrix_products.matmul(matrix, cholesky_solve(factor, rhs), adjoint_a=True)


# ---- tridiagonal and banded systems -----------------------------------------------------------------------------

_BAND_TYPES = (dtypes.float64, dtypes.float32, *COMPLEX)
TRIDIAGONAL_SOLVE = define(
    "TridiagonalSolve(diagonals: T, rhs: rank>1 T) -> (output: T)",
    partial_pivoting=True,
    perturb_singular=False,
    T=_BAND_TYPES,
)


def _tridiagonal(superdiag: torch.Tensor, maindiag: torch.Tensor, subdiag: torch.Tensor) -> torch.Tensor:
    """Dense matrices from three diagonals. The last element of the upper and the first of the lower diagonal are padding."""
    result = torch.diag_embed(maindiag)
    if maindiag.shape[-1] > 1:
        result = result + torch.diag_embed(superdiag[..., :-1], 1) + torch.diag_embed(subdiag[..., 1:], -1)
    return result


@TRIDIAGONAL_SOLVE.kernel
def tridiagonal_solve_kernel(diagonals: torch.Tensor, rhs: torch.Tensor) -> torch.Tensor:
    if diagonals.ndim < 2 or diagonals.shape[-2] != 3 or rhs.ndim < 2 or diagonals.shape[-1] != rhs.shape[-2]:
        raise InvalidArgumentError(
            None,
            None,
            f"Expected diagonals of shape [..., 3, M] and rhs [..., M, K], got {list(diagonals.shape)} and {list(rhs.shape)}.",
        )
    if diagonals.shape[:-2] != rhs.shape[:-2]:
        raise InvalidArgumentError(
            None,
            None,
            f"Batch shapes of diagonals {Shape(diagonals.shape)} and rhs {Shape(rhs.shape)} must be the same.",
        )
    matrix = _tridiagonal(diagonals[..., 0, :], diagonals[..., 1, :], diagonals[..., 2, :])
    solution, info = torch.linalg.solve_ex(matrix, rhs)
    if bool((info != 0).any()):
        raise InvalidArgumentError(None, None, "The tridiagonal matrix is not invertible.")
    return solution.contiguous()


@TRIDIAGONAL_SOLVE.shape
def tridiagonal_solve_shape(diagonals: Shape, rhs: Shape) -> Shape:
    if diagonals.at_least(2).dims is not None and rhs.at_least(2).dims is not None:
        merge_dims(diagonals[-2], 3, diagonals)
        merge_dims(diagonals[-1], rhs[-2], diagonals, rhs)
        diagonals[:-2].merge(rhs[:-2])
    return rhs


TRIDIAGONAL_MATMUL = define(
    "TridiagonalMatMul(superdiag: rank>1 T, maindiag: rank>1 T, subdiag: rank>1 T, rhs: rank>1 T) -> (output: T)",
    T=_BAND_TYPES,
)


@TRIDIAGONAL_MATMUL.kernel
def tridiagonal_matmul_kernel(
    superdiag: torch.Tensor, maindiag: torch.Tensor, subdiag: torch.Tensor, rhs: torch.Tensor
) -> torch.Tensor:
    wanted = (*rhs.shape[:-2], 1, rhs.shape[-2])
    for label, each in (("superdiagonal", superdiag), ("maindiagonal", maindiag), ("subdiagonal", subdiag)):
        if tuple(each.shape) != wanted:
            raise InvalidArgumentError(
                None, None, f"Invalid {label} shape: {Shape(each.shape)} instead of {Shape(wanted)}"
            )
    result = maindiag.mT * rhs
    if rhs.shape[-2] > 1:
        result[..., :-1, :] += superdiag.mT[..., :-1, :] * rhs[..., 1:, :]
        result[..., 1:, :] += subdiag.mT[..., 1:, :] * rhs[..., :-1, :]
    return result


@TRIDIAGONAL_MATMUL.shape
def tridiagonal_matmul_shape(superdiag: Shape, maindiag: Shape, subdiag: Shape, rhs: Shape) -> Shape:
    if rhs.dims is not None:
        for each in (superdiag, maindiag, subdiag):
            each.merge(Shape((*rhs.dims[:-2], 1, rhs.dims[-2])))
    return rhs


def _rolled(x: Tensor, by: int) -> Tensor:
    """Shifts rows down by one (`by` 1) or up (-1). The vacated row is zero."""
    size = x.static_shape[-2]
    edge = shaping.zeros_like(x[..., :1, :])
    if by == 1:
        return joining.concat([edge, x[..., : (size - 1 if size is not None else -1), :]], -2)
    return joining.concat([x[..., 1:, :], edge], -2)


def _row_sums(x: Tensor, y: Tensor) -> Tensor:
    """sum over columns of x y, as a row."""
    total = reductions.reduce_sum(arithmetic.multiply(x, y), -1)
    return shaping.reshape(total, joining.concat([shaping.shape(total)[:-1], [1, -1]], 0))


@TRIDIAGONAL_MATMUL.grad
def tridiagonal_matmul_grad(op: Operation, g: Tensor) -> Any:
    superdiag, maindiag, subdiag, rhs = op.inputs
    up, main, down = (unary_functions.conj(matrix_products.transposed(d)) for d in (superdiag, maindiag, subdiag))
    to_rhs = arithmetic.add(
        arithmetic.add(arithmetic.multiply(main, g), _rolled(arithmetic.multiply(up, g), 1)),
        _rolled(arithmetic.multiply(down, g), -1),
    )
    rhs = unary_functions.conj(rhs)
    return _row_sums(g, _rolled(rhs, -1)), _row_sums(g, rhs), _row_sums(g, _rolled(rhs, 1)), to_rhs


@TRIDIAGONAL_SOLVE.grad
def tridiagonal_solve_grad(op: Operation, g: Tensor) -> Any:
    diags, x = op.inputs[0], op.outputs[0]
    # In the transposed system the upper and lower diagonals are swapped and shifted by one. (TensorFlow does not conjugate.)
    upper, main, lower = diags[..., 0, :], diags[..., 1, :], diags[..., 2, :]
    zero = shaping.zeros_like(upper[..., :1])
    turned = joining.PACK(
        [joining.concat([lower[..., 1:], zero], -1), main, joining.concat([zero, upper[..., :-1]], -1)], axis=-2
    )
    to_rhs = TRIDIAGONAL_SOLVE(turned, g)
    to_diags = joining.concat(
        [_row_sums(to_rhs, _rolled(x, -1)), _row_sums(to_rhs, x), _row_sums(to_rhs, _rolled(x, 1))], -2
    )
    return unary_functions.negative(to_diags), to_rhs


def _compact(diags: Any, form: str, size: Any) -> Tensor:
    """Three diagonals in the [..., 3, M] form of the op."""
    if form == "compact":
        return convert_to_tensor(diags, name="diagonals")
    if form == "matrix":
        matrix = convert_to_tensor(diags, name="diagonals")
        return diagonals.matrix_diag_part(matrix, k=(-1, 1), align="LEFT_RIGHT")
    if form != "sequence":
        raise ValueError(f"Expected diagonals_format to be one of ['compact', 'matrix', 'sequence'], got {form}.")
    if len(diags) != 3:
        raise ValueError("Expected diagonals to be a sequence of length 3.")
    parts = [convert_to_tensor(d) for d in diags]
    if size is not None:
        zero = shaping.zeros_like(parts[1][..., :1])
        if parts[0].static_shape[-1] == size - 1:
            parts[0] = joining.concat([parts[0], zero], -1)
        if parts[2].static_shape[-1] == size - 1:
            parts[2] = joining.concat([zero, parts[2]], -1)
    return joining.PACK(parts, axis=-2)


@export("linalg.tridiagonal_solve")
def tridiagonal_solve(
    diagonals: Any,
    rhs: Any,
    diagonals_format: str = "compact",
    transpose_rhs: bool = False,
    conjugate_rhs: bool = False,
    name: str | None = None,
    partial_pivoting: bool = True,
    perturb_singular: bool = False,
) -> Tensor:
    """Solves T x = rhs for tridiagonal matrices T.

    Args:
        diagonals: The upper, main and lower diagonal, in the form given by `diagonals_format`.
        rhs: [..., M] or [..., M, K].
        diagonals_format: 'compact' ([..., 3, M]), 'matrix' or 'sequence' (three tensors).
        transpose_rhs: Whether to transpose the right-hand side first.
        conjugate_rhs: Whether to conjugate it.
        name: A name for the op.
        partial_pivoting: Accepted; pivoting is always done.
        perturb_singular: Not supported. A singular matrix is refused.

    Raises:
        ValueError: an unknown format.
        NotImplementedError: `perturb_singular` is set.
    """
    if perturb_singular:
        raise NotImplementedError("perturb_singular=True (solving a perturbed system for singular matrices)")
    right = convert_to_tensor(rhs)
    diags = _compact(
        diagonals,
        diagonals_format,
        right.static_shape[-1]
        if right.static_shape.rank == 1
        else right.static_shape[-2]
        if right.static_shape.rank
        else None,
    )
    vector = right.static_shape.rank is not None and right.static_shape.rank == (diags.static_shape.rank or 0) - 1
    if conjugate_rhs:
        right = unary_functions.conj(right)
    if vector:
        right = shaping.reshape(right, joining.concat([shaping.shape(right), [1]], 0))
    elif transpose_rhs:
        right = matrix_products.transposed(right)
    _check_systems(diags.static_shape, right.static_shape)
    solution = TRIDIAGONAL_SOLVE(diags, right, partial_pivoting=partial_pivoting, name=name)
    if vector:
        return shaping.reshape(solution, shaping.shape(solution)[:-1])
    return matrix_products.transposed(solution) if transpose_rhs else solution


def _check_systems(diags: Shape, rhs: Shape) -> None:
    """Raises ValueError if diagonals [..., 3, M] and right-hand sides [..., M, K] are statically incompatible."""
    if diags.rank is None or rhs.rank is None or diags.rank < 2:
        return
    if diags.rank != rhs.rank:
        raise ValueError(f"Expected the rank of rhs to be {diags.rank - 1} or {diags.rank}, got {rhs.rank}")
    if any(None not in pair and pair[0] != pair[1] for pair in zip(diags[:-2], rhs[:-2])):
        raise ValueError(f"Batch shapes {diags[:-2]} and {rhs[:-2]} are incompatible")
    if diags[-2] not in (3, None):
        raise ValueError(f"Expected 3 diagonals got {diags[-2]}")
    if None not in (diags[-1], rhs[-2]) and diags[-1] != rhs[-2]:
        raise ValueError(
            f"Expected number of left-hand sided and right-hand sides to be equal, got {diags[-1]} and {rhs[-2]}"
        )


@export("linalg.tridiagonal_matmul")
def tridiagonal_matmul(diagonals: Any, rhs: Any, diagonals_format: str = "compact", name: str | None = None) -> Tensor:
    """Multiplies tridiagonal matrices by `rhs` [..., M, K]. The diagonals are given as in `tridiagonal_solve`."""
    size = None
    if diagonals_format == "sequence":
        rhs = convert_to_tensor(rhs)
        size = rhs.static_shape[-2] if (rhs.static_shape.rank or 0) > 1 else None
    diags = _compact(diagonals, diagonals_format, size)
    return TRIDIAGONAL_MATMUL(diags[..., 0:1, :], diags[..., 1:2, :], diags[..., 2:3, :], rhs, name=name)


BANDED_TRIANGULAR_SOLVE = define(
    "BandedTriangularSolve(matrix: T, rhs: rank>1 T) -> (output: T)", lower=True, adjoint=False, T=_TYPES
)


@BANDED_TRIANGULAR_SOLVE.kernel
def banded_triangular_solve_kernel(
    matrix: torch.Tensor, rhs: torch.Tensor, *, lower: bool, adjoint: bool
) -> torch.Tensor:
    bands, size = matrix.shape[-2:]
    if not bands:
        raise InvalidArgumentError(None, None, f"Number of bands must be positive, but is 0: {Shape(matrix.shape)}")
    _check_rows(matrix.mT, rhs)
    if not rhs.numel():
        raise InvalidArgumentError(None, None, f"In[1] must not be an empty tensor: {Shape(rhs.shape)}")
    if bool(torch.isnan(matrix).any()):
        raise InvalidArgumentError(None, None, "Input matrix is not invertible.")
    dense = torch.zeros((*matrix.shape[:-2], size, size), dtype=matrix.dtype, device=matrix.device)
    for k in range(min(bands, size)):
        # Lower diagonals are aligned to the right, the main one first. Upper diagonals are aligned to the left, the main one last.
        if lower:
            dense = dense + torch.diag_embed(matrix[..., k, k:], -k)
        else:
            dense = dense + torch.diag_embed(matrix[..., bands - 1 - k, : size - k], k)
    return matrix_triangular_solve_kernel(dense, rhs, lower=lower, adjoint=adjoint)


@BANDED_TRIANGULAR_SOLVE.shape
def banded_triangular_solve_shape(matrix: Shape, rhs: Shape) -> Shape:
    if matrix.at_least(2).dims is None or rhs.at_least(2).dims is None:
        return UNKNOWN_SHAPE
    if matrix[-2] == 0:
        raise InvalidArgumentError(None, None, f"Number of bands must be positive, but is 0: {matrix}")
    rows = merge_dims(matrix[-1], rhs[-2], matrix, rhs)
    return broadcast_shapes(matrix[:-2], rhs[:-2]).concat(Shape((rows, rhs[-1])))


@BANDED_TRIANGULAR_SOLVE.grad
def banded_triangular_solve_grad(op: Operation, g: Tensor) -> Any:
    bands, b = op.inputs
    x = op.outputs[0]
    transposed, lower = op.attr("adjoint"), op.attr("lower")
    db = BANDED_TRIANGULAR_SOLVE(bands, g, lower=lower, adjoint=not transposed)
    dense = (
        matrix_products.matmul(x, db, adjoint_b=True) if transposed else matrix_products.matmul(db, x, adjoint_b=True)
    )
    count = bands.static_shape[-2]
    others = shaping.shape(bands)[-2] - 1 if count is None else convert_to_tensor(count - 1)
    zero = shaping.zeros_like(others)
    kept = joining.stack([unary_functions.negative(others), zero] if lower else [zero, others])
    da = unary_functions.negative(diagonals.matrix_diag_part(dense, k=kept, align="LEFT_RIGHT"))
    return _without_broadcasting(bands, b, da, db)


@export(v2="linalg.banded_triangular_solve")
def banded_triangular_solve(
    bands: Any, rhs: Any, lower: bool = True, adjoint: bool = False, name: str | None = None
) -> Tensor:
    """Solves T x = rhs for triangular band matrices, given as [..., bands, M]."""
    with name_scope(name, "banded_triangular_solve", [bands, rhs]):
        return BANDED_TRIANGULAR_SOLVE(bands, rhs, lower=lower, adjoint=adjoint)
