"""Matrix factorizations and functions built on them: inverse, determinant, eigenvalues, singular values."""

from __future__ import annotations

from typing import Any

import torch

from stoker._src.base import dtypes
from stoker._src.base.dtypes import COMPLEX, INDEX, DType
from stoker._src.base.errors import InvalidArgumentError
from stoker._src.base.export import export
from stoker._src.base.shapes import Shape
from stoker._src.graph.conversion import convert_to_tensor
from stoker._src.graph.definition import define, one_of
from stoker._src.graph.scopes import name_scope
from stoker._src.graph.tensor import Operation, Tensor
from stoker._src.ops.array import casting, constants, joining, shaping
from stoker._src.ops.linalg import diagonals, matrix_products, solvers
from stoker._src.ops.linalg.square_matrices import check_square, of_invertible, square, wide
from stoker._src.ops.math import arithmetic, reductions, unary_functions
from stoker._src.ops.support.values import torch_dtype

REAL_TYPES = (dtypes.float64, dtypes.float32, dtypes.float16)
TYPES = (*REAL_TYPES, *COMPLEX)


def adjoint(x: Tensor) -> Tensor:
    return matrix_products.adjoint(x)


def product(a: Tensor, b: Tensor, adjoint_a: bool = False, adjoint_b: bool = False) -> Tensor:
    return matrix_products.matmul(a, b, adjoint_a=adjoint_a, adjoint_b=adjoint_b)


# ---- MatrixInverse ----------------------------------------------------------------------------------------------

MATRIX_INVERSE = define("MatrixInverse(input: T) -> (output: T)", adjoint=False, T=TYPES)
MATRIX_INVERSE.shape(square)
MATRIX_INVERSE.planning.refuses = True


@MATRIX_INVERSE.kernel
def matrix_inverse_kernel(input: torch.Tensor, *, adjoint: bool) -> torch.Tensor:
    check_square(input)
    x = wide(input)
    inverse, info = torch.linalg.inv_ex(x.mH if adjoint else x)
    return of_invertible(x, info, inverse, "Input is not invertible.").to(input.dtype)


@MATRIX_INVERSE.lower
def matrix_inverse_lower(build: Any, op: Operation, input: Any) -> Any:
    return build.dense("inverse", input, adjoint=op.attr("adjoint"))


@MATRIX_INVERSE.grad
def matrix_inverse_grad(op: Operation, g: Tensor) -> Tensor:
    y = op.outputs[0]
    if op.attr("adjoint"):
        # y = inverse(x)^H, with the differential -y dx^H y.
        return unary_functions.negative(product(product(y, g, adjoint_b=True), y))
    return unary_functions.negative(product(product(y, g, adjoint_a=True), y, adjoint_b=True))


@export("linalg.inv", v1="matrix_inverse")
def matrix_inverse(input: Any, adjoint: bool = False, name: str | None = None) -> Tensor:
    """The inverse of each matrix, or of its adjoint.

    Raises:
        InvalidArgumentError: a matrix is singular.
    """
    return MATRIX_INVERSE(input, adjoint=adjoint, name=name)


# ---- Cholesky ---------------------------------------------------------------------------------------------------

CHOLESKY = define("Cholesky(input: T) -> (output: T)", T=TYPES)
CHOLESKY.shape(square)


@CHOLESKY.kernel
def cholesky_kernel(input: torch.Tensor) -> torch.Tensor:
    check_square(input)
    factor, info = torch.linalg.cholesky_ex(wide(input))
    failed = info != 0
    if factor.is_cuda or bool(failed.any()):  # not positive definite
        factor = torch.where(failed[..., None, None], torch.full_like(factor, torch.nan).tril(), factor)
    return factor.to(input.dtype)


def _cholesky_gradient(l: Tensor, g: Tensor) -> Tensor:
    """Murray (2016), section 3: L^-H phi(L^H g) L^-1, made Hermitian. phi takes the lower triangle and halves the diagonal."""
    inner = product(l, g, adjoint_a=True)
    inner = diagonals.MATRIX_SET_DIAG(
        inner, arithmetic.multiply(constants.number(0.5, g), diagonals.MATRIX_DIAG_PART(inner))
    )
    inner = diagonals.matrix_band_part(inner, -1, 0)
    solve = solvers.MATRIX_TRIANGULAR_SOLVE
    middle = solve(l, inner, adjoint=True)
    full = adjoint(solve(l, adjoint(middle), adjoint=True))
    return arithmetic.multiply(constants.number(0.5, g), arithmetic.add(full, adjoint(full)))


@CHOLESKY.lower
def cholesky_lower(build: Any, op: Operation, input: Any) -> Any:
    return build.dense("cholesky", input)


@CHOLESKY.grad
def cholesky_grad(op: Operation, g: Tensor) -> Tensor:
    return _cholesky_gradient(op.outputs[0], g)


CHOLESKY_GRAD = define("CholeskyGrad(l: T, grad: T) -> (output: T)", T=(dtypes.float16, dtypes.float32, dtypes.float64))


@CHOLESKY_GRAD.kernel
def cholesky_grad_kernel(l: torch.Tensor, grad: torch.Tensor) -> torch.Tensor:
    check_square(l)
    if l.shape != grad.shape:
        raise InvalidArgumentError(
            None, None, f"Inputs (L and grad) must have the same shape: {Shape(l.shape)} and {Shape(grad.shape)}"
        )
    x = wide(l)
    inner = torch.tril(x.mH @ wide(grad))
    inner = inner - 0.5 * torch.diag_embed(torch.diagonal(inner, dim1=-2, dim2=-1))
    middle = torch.linalg.solve_triangular(x.mH, inner, upper=True)
    full = torch.linalg.solve_triangular(x.mH, middle.mH, upper=True).mH
    return (0.5 * (full + full.mH)).to(l.dtype)


@CHOLESKY_GRAD.shape
def cholesky_grad_shape(l: Shape, grad: Shape) -> Shape:
    l = square(l)
    return l if l.dims != grad.dims else l.merge(grad)


@export("linalg.cholesky", v1="cholesky")
def cholesky(input: Any, name: str | None = None) -> Tensor:
    """The Cholesky factor of positive definite matrices: the lower triangular L with L L^H = input.

    Raises:
        InvalidArgumentError: a matrix is not positive definite.
    """
    return CHOLESKY(input, name=name)


# ---- determinants -----------------------------------------------------------------------------------------------

MATRIX_DETERMINANT = define("MatrixDeterminant(input: T) -> (output: T)", T=TYPES)
LOG_MATRIX_DETERMINANT = define("LogMatrixDeterminant(input: T) -> (sign: T, log_abs_determinant: T)", T=TYPES)


@MATRIX_DETERMINANT.kernel
def matrix_determinant_kernel(input: torch.Tensor) -> torch.Tensor:
    check_square(input)
    return torch.linalg.det(wide(input)).to(input.dtype)


@MATRIX_DETERMINANT.lower
def matrix_determinant_lower(build: Any, op: Operation, input: Any) -> Any:
    return build.dense("determinant", input)


@MATRIX_DETERMINANT.shape
def matrix_determinant_shape(input: Shape) -> Shape:
    return square(input)[:-2]


def as_column(x: Tensor) -> Tensor:
    """Converts a batch of numbers to a batch of 1 by 1 matrices."""
    return shaping.reshape(x, joining.concat([shaping.shape(x), [1, 1]], 0))


@MATRIX_DETERMINANT.grad
def matrix_determinant_grad(op: Operation, g: Tensor) -> Tensor:
    # TensorFlow does not conjugate the determinant of a complex matrix.
    inverse = matrix_inverse(op.inputs[0], adjoint=True)
    return arithmetic.multiply(as_column(arithmetic.multiply(g, op.outputs[0])), inverse)


@LOG_MATRIX_DETERMINANT.kernel
def log_matrix_determinant_kernel(input: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    check_square(input)
    sign, logarithm = torch.linalg.slogdet(wide(input))
    sign = torch.where(torch.isnan(logarithm), torch.nan, sign)
    return sign.to(input.dtype), logarithm.to(input.dtype)


@LOG_MATRIX_DETERMINANT.shape
def log_matrix_determinant_shape(input: Shape) -> tuple[Shape, Shape]:
    batch = square(input)[:-2]
    return batch, batch


@LOG_MATRIX_DETERMINANT.grad
def log_matrix_determinant_grad(op: Operation, _: Any, g: Tensor) -> Tensor:
    return arithmetic.multiply(as_column(g), matrix_inverse(op.inputs[0], adjoint=True))


@export("linalg.det", v1="matrix_determinant")
def matrix_determinant(input: Any, name: str | None = None) -> Tensor:
    """The determinant of each matrix."""
    return MATRIX_DETERMINANT(input, name=name)


@export("linalg.slogdet")
def slogdet(input: Any, name: str | None = None) -> Any:
    """The sign of each determinant and the logarithm of its absolute value: (sign, log_abs_determinant)."""
    return LOG_MATRIX_DETERMINANT(input, name=name)


@export("linalg.logdet")
def logdet(matrix: Any, name: str | None = None) -> Tensor:
    """The logarithm of the determinant of positive definite matrices."""
    with name_scope(name, "logdet", [matrix]):
        factor = cholesky(matrix)
        logs = unary_functions.log(unary_functions.real(diagonals.matrix_diag_part(factor)))
        return 2.0 * reductions.reduce_sum(logs, [-1])


# ---- Qr ---------------------------------------------------------------------------------------------------------

QR = define("Qr(input: T) -> (q: T, r: T)", full_matrices=False, T=TYPES)


@QR.kernel
def qr_kernel(input: torch.Tensor, *, full_matrices: bool) -> tuple[torch.Tensor, torch.Tensor]:
    q, r = torch.linalg.qr(wide(input), mode="complete" if full_matrices else "reduced")
    return q.to(input.dtype), r.to(input.dtype)


@QR.shape
def qr_shape(input: Shape, *, full_matrices: bool) -> tuple[Shape, Shape]:
    if input.at_least(2).dims is None:
        return input, input
    batch, rows, cols = input[:-2], input[-2], input[-1]
    if full_matrices:
        return batch.concat(Shape((rows, rows))), batch.concat(Shape((rows, cols)))
    short = None if rows is None or cols is None else min(rows, cols)
    return batch.concat(Shape((rows, short))), batch.concat(Shape((short, cols)))


@QR.grad
def qr_grad(op: Operation, dq: Tensor, dr: Tensor) -> Tensor:
    """Walter and Lehmann (2011); for wide matrices [X Y] = Q [U V], Roberts and Roberts (2020)."""
    q, r = op.outputs
    rows, cols = q.static_shape[-2], r.static_shape[-1]
    if rows is None or cols is None:
        raise NotImplementedError("The gradient of Qr needs the sizes of the matrices to be known.")
    if op.attr("full_matrices") and rows > cols:
        raise NotImplementedError(
            f"The gradient of Qr with full_matrices is not defined for {rows} rows and {cols} columns (more rows than columns)."
        )
    if rows >= cols:
        return _tall_qr_grad(q, r, dq, dr)
    beyond = op.inputs[0][..., rows:]
    first = _tall_qr_grad(
        q, r[..., :rows], arithmetic.add(dq, product(beyond, dr[..., rows:], adjoint_b=True)), dr[..., :rows]
    )
    return joining.concat([first, product(q, dr[..., rows:])], -1)


def _tall_qr_grad(q: Tensor, r: Tensor, dq: Tensor, dr: Tensor) -> Tensor:
    m = arithmetic.subtract(product(r, dr, adjoint_b=True), product(dq, q, adjoint_a=True))
    lower = diagonals.matrix_band_part(m, -1, 0)
    strict = arithmetic.subtract(lower, diagonals.MATRIX_DIAG(diagonals.MATRIX_DIAG_PART(m)))
    symmetric = arithmetic.add(lower, adjoint(strict))
    solved = solvers.MATRIX_TRIANGULAR_SOLVE(
        r, adjoint(arithmetic.add(dq, product(q, symmetric))), lower=False, adjoint=False
    )
    return adjoint(solved)


@export("linalg.qr", v1="qr")
def qr(input: Any, full_matrices: bool = False, name: str | None = None) -> Any:
    """The QR decomposition input = q r: q has orthonormal columns, and r is upper triangular. Returns (q, r)."""
    return QR(input, full_matrices=full_matrices, name=name)


# ---- Svd --------------------------------------------------------------------------------------------------------

SVD = define("Svd(input: T) -> (s: T, u: T, v: T)", compute_uv=True, full_matrices=False, T=TYPES)


@SVD.kernel
def svd_kernel(input: torch.Tensor, *, compute_uv: bool, full_matrices: bool) -> Any:
    x = wide(input)
    try:
        return _svd(x, input, compute_uv, full_matrices)
    except RuntimeError:  # torch refuses matrices that are not finite; TensorFlow gives NaN
        finite = torch.isfinite(x).all(-1).all(-1)
        if bool(finite.all()):
            raise
        parts = _svd(torch.where(finite[..., None, None], x, 0.0), input, compute_uv, full_matrices)
        return tuple(
            torch.where(finite.reshape(*finite.shape, *[1] * (part.ndim - finite.ndim)), part, torch.nan)
            if part.ndim > finite.ndim
            else part
            for part in parts
        )


def _svd(x: torch.Tensor, input: torch.Tensor, compute_uv: bool, full_matrices: bool) -> tuple[torch.Tensor, ...]:
    if not compute_uv:
        nothing = torch.empty(0, dtype=input.dtype, device=input.device)
        return torch.linalg.svdvals(x).to(input.dtype), nothing, nothing.clone()
    u, s, vh = torch.linalg.svd(x, full_matrices=full_matrices)
    return s.to(input.dtype), u.to(input.dtype), vh.mH.resolve_conj().to(input.dtype)


@SVD.shape
def svd_shape(input: Shape, *, compute_uv: bool, full_matrices: bool) -> tuple[Shape, Shape, Shape]:
    if input.at_least(2).dims is None:
        return input, input, input
    batch, rows, cols = input[:-2], input[-2], input[-1]
    short = None if rows is None or cols is None else min(rows, cols)
    values = batch.concat(Shape((short,)))
    if not compute_uv:
        return values, Shape((0,)), Shape((0,))
    if full_matrices:
        return values, batch.concat(Shape((rows, rows))), batch.concat(Shape((cols, cols)))
    return values, batch.concat(Shape((rows, short))), batch.concat(Shape((cols, short)))


@SVD.grad
def svd_grad(op: Operation, ds: Tensor, du: Any, dv: Any) -> Tensor:
    """Townsend (2016), for the reduced factorisation; Wan and Zhang (2019) for complex matrices."""
    a = op.inputs[0]
    if a.dtype.is_complex:  # singular values are real even if their dtype is complex
        ds = casting.cast(unary_functions.real(ds), a.dtype.base_dtype)
    if not op.attr("compute_uv"):
        s, u, v = SVD(a, compute_uv=True)
        return product(arithmetic.multiply(u, as_row(casting.cast(ds, a.dtype.base_dtype))), v, adjoint_b=True)
    rows, cols = a.static_shape.at_least(2)[-2:]
    if rows is None or cols is None:
        raise NotImplementedError("The gradient of Svd needs the sizes of the matrices to be known.")
    if op.attr("full_matrices") and rows != cols:
        raise NotImplementedError("The gradient of Svd is defined for full_matrices=False, or square matrices.")
    s, u, v = op.outputs
    k = min(rows, cols)
    squares = unary_functions.square(s)
    # 1 / (s_j^2 - s_i^2) off the diagonal, 0 on it.
    gaps = arithmetic.subtract(as_row(squares), as_columns(squares))
    eye = diagonals.MATRIX_DIAG(shaping.ones([k], a.dtype.base_dtype))
    factors = arithmetic.multiply(
        reciprocal_or_zero(arithmetic.add(gaps, eye)), arithmetic.subtract(constants.number(1, eye), eye)
    )
    inner_u = arithmetic.multiply(
        factors, arithmetic.subtract(product(u, du, adjoint_a=True), product(du, u, adjoint_a=True))
    )
    inner_v = arithmetic.multiply(
        factors, arithmetic.subtract(product(v, dv, adjoint_a=True), product(dv, v, adjoint_a=True))
    )
    middle = arithmetic.add(
        arithmetic.add(arithmetic.multiply(inner_u, as_row(s)), arithmetic.multiply(as_columns(s), inner_v)),
        diagonals.MATRIX_DIAG(ds),
    )
    inverse = reciprocal_or_zero(s)
    if a.dtype.is_complex:
        # The phase of singular vectors is arbitrary, so the gradient along a change of phase is removed.
        turned = diagonals.MATRIX_DIAG_PART(product(v, dv, adjoint_a=True))
        phases = arithmetic.multiply(
            constants.number(0.5, s),
            arithmetic.multiply(inverse, arithmetic.subtract(unary_functions.conj(turned), turned)),
        )
        middle = arithmetic.add(middle, diagonals.MATRIX_DIAG(phases))
    result = product(product(u, middle), v, adjoint_b=True)
    if rows > k:
        rest = arithmetic.subtract(du, product(u, product(u, du, adjoint_a=True)))
        result = arithmetic.add(result, product(arithmetic.multiply(rest, as_row(inverse)), v, adjoint_b=True))
    if cols > k:
        rest = arithmetic.subtract(dv, product(v, product(v, dv, adjoint_a=True)))
        result = arithmetic.add(result, product(arithmetic.multiply(u, as_row(inverse)), rest, adjoint_b=True))
    return result


def reciprocal_or_zero(x: Tensor) -> Tensor:
    return arithmetic.DIV_NO_NAN(constants.number(1, x), x)


def as_row(x: Tensor) -> Tensor:
    """The numbers of each matrix as a row, to scale its columns."""
    return shaping.reshape(
        x,
        joining.concat([shaping.shape(x)[:-1], [1, -1]], 0)
        if not x.static_shape.known
        else [*x.static_shape[:-1], 1, x.static_shape[-1]],
    )


def as_columns(x: Tensor) -> Tensor:
    """The numbers of each matrix as a column, to scale its rows."""
    if x.static_shape.known:
        return shaping.reshape(x, [*x.static_shape, 1])
    return shaping.reshape(x, joining.concat([shaping.shape(x), [1]], 0))


@export("linalg.svd", v1="svd")
def svd(tensor: Any, full_matrices: bool = False, compute_uv: bool = True, name: str | None = None) -> Any:
    """The singular value decomposition tensor = u diag(s) v^H, largest values first. Returns (s, u, v), or only s."""
    s, u, v = SVD(tensor, compute_uv=compute_uv, full_matrices=full_matrices, name=name)
    part = s.dtype.base_dtype.real_dtype
    values = unary_functions.real(s) if s.dtype.is_complex else casting.cast(s, part)
    return (values, u, v) if compute_uv else values


# ---- eigenvalues ------------------------------------------------------------------------------------------------

SELF_ADJOINT_EIG_V2 = define("SelfAdjointEigV2(input: T) -> (e: T, v: T)", compute_v=True, T=TYPES)
SELF_ADJOINT_EIG = define("SelfAdjointEig(input: T) -> (output: T)", T=REAL_TYPES)


@SELF_ADJOINT_EIG_V2.kernel
def self_adjoint_eig_kernel(input: torch.Tensor, *, compute_v: bool) -> tuple[torch.Tensor, torch.Tensor]:
    check_square(input)
    x = wide(input)
    if not compute_v:
        return torch.linalg.eigvalsh(x).to(input.dtype), torch.empty(0, dtype=input.dtype, device=input.device)
    values, vectors = torch.linalg.eigh(x)
    return values.to(input.dtype), vectors.contiguous().to(input.dtype)


@SELF_ADJOINT_EIG_V2.shape
def self_adjoint_eig_shape(input: Shape, *, compute_v: bool) -> tuple[Shape, Shape]:
    input = square(input)
    return input[:-1], input if compute_v else Shape((0,))


@SELF_ADJOINT_EIG.kernel
def old_self_adjoint_eig_kernel(input: torch.Tensor) -> torch.Tensor:
    values, vectors = self_adjoint_eig_kernel(input, compute_v=True)
    return torch.cat([values.unsqueeze(-2), vectors], -2)


@SELF_ADJOINT_EIG.shape
def old_self_adjoint_eig_shape(input: Shape) -> Shape:
    input = square(input)
    size = input[-1]
    return input[:-2].concat(Shape((None if size is None else size + 1, size)))


@SELF_ADJOINT_EIG_V2.grad
def self_adjoint_eig_grad(op: Operation, de: Tensor, dv: Any) -> Tensor:
    """With a = v diag(e) v^H: v (diag(de) + f * (v^H dv)) v^H, f = 1 / (e_j - e_i); the lower triangle stands for both."""
    if not op.attr("compute_v"):
        e, v = SELF_ADJOINT_EIG_V2(op.inputs[0])
        full = product(v, product(diagonals.MATRIX_DIAG(de), v, adjoint_b=True))
    else:
        e, v = op.outputs
        gaps = arithmetic.subtract(as_row(e), as_columns(e))
        factors = reciprocal_or_zero(gaps)
        middle = arithmetic.add(
            diagonals.MATRIX_DIAG(de),
            arithmetic.multiply(
                unary_functions.conj(factors) if e.dtype.is_complex else factors, product(v, dv, adjoint_a=True)
            ),
        )
        full = product(v, product(middle, v, adjoint_b=True))
    # Only the lower triangle of the input is read, so the gradient of the upper triangle is added to it.
    lower = diagonals.matrix_band_part(arithmetic.add(full, adjoint(full)), -1, 0)
    return diagonals.MATRIX_SET_DIAG(
        lower, arithmetic.multiply(constants.number(0.5, lower), diagonals.MATRIX_DIAG_PART(lower))
    )


@export("linalg.eigh", v1="self_adjoint_eig")
def self_adjoint_eig(tensor: Any, name: str | None = None) -> Any:
    """Eigenvalues (smallest first) and eigenvectors (as columns) of self-adjoint matrices: (e, v)."""
    e, v = SELF_ADJOINT_EIG_V2(tensor, compute_v=True, name=name)
    return e, v


@export("linalg.eigvalsh", v1="self_adjoint_eigvals")
def self_adjoint_eigvals(tensor: Any, name: str | None = None) -> Tensor:
    """Eigenvalues, smallest first, of self-adjoint matrices."""
    return SELF_ADJOINT_EIG_V2(tensor, compute_v=False, name=name)[0]


EIG = define(
    "Eig(input: T) -> (e: Tout, v: Tout)",
    compute_v=True,
    T=(dtypes.float32, dtypes.float64, *COMPLEX),
    Tout=COMPLEX,
)


@EIG.kernel
def eig_kernel(input: torch.Tensor, *, compute_v: bool, Tout: DType) -> tuple[torch.Tensor, torch.Tensor]:
    check_square(input)
    kind = torch_dtype(Tout)
    if not bool(torch.isfinite(input).all()):  # torch's kernels would fail or end the process
        raise InvalidArgumentError(
            None, None, "Eigen decomposition was not successful. The input might not be valid: it is not finite."
        )
    if not compute_v:
        return torch.linalg.eigvals(input).to(kind), torch.empty(0, dtype=kind, device=input.device)
    values, vectors = torch.linalg.eig(input)
    return values.to(kind), vectors.contiguous().to(kind)


EIG.shape(self_adjoint_eig_shape)


@EIG.grad
def eig_grad(op: Operation, de: Tensor, dv: Any) -> Tensor:
    """Boeddeker et al. (2017), equations 4.60 and 4.63."""
    a = op.inputs[0]
    if not op.attr("compute_v"):
        _, v = EIG(a, compute_v=True, Tout=op.outputs[0].dtype.base_dtype)
        inner = diagonals.MATRIX_DIAG(de)
    else:
        e, v = op.outputs
        factors = unary_functions.conj(reciprocal_or_zero(arithmetic.subtract(as_row(e), as_columns(e))))
        vh_dv = product(v, dv, adjoint_a=True)
        vh_v = product(v, v, adjoint_a=True)
        real_diagonal = diagonals.MATRIX_DIAG(
            casting.cast(unary_functions.real(diagonals.MATRIX_DIAG_PART(vh_dv)), v.dtype.base_dtype)
        )
        inner = arithmetic.add(
            diagonals.MATRIX_DIAG(de),
            arithmetic.multiply(factors, arithmetic.subtract(vh_dv, product(vh_v, real_diagonal))),
        )
    full = solvers.MATRIX_SOLVE(adjoint(v), product(inner, v, adjoint_b=True))
    return full if a.dtype.is_complex else casting.cast(full, a.dtype.base_dtype)


def complex_of(kind: DType) -> DType:
    return dtypes.complex128 if kind in (dtypes.float64, dtypes.complex128) else dtypes.complex64


@export(v2=("linalg.eig", "eig"))
def eig(tensor: Any, name: str | None = None) -> Any:
    """Complex eigenvalues and right eigenvectors (as columns): (e, v)."""
    x = convert_to_tensor(tensor)
    e, v = EIG(x, Tout=complex_of(x.dtype.base_dtype), compute_v=True, name=name)
    return e, v


@export(v2=("linalg.eigvals", "eigvals"))
def eigvals(tensor: Any, name: str | None = None) -> Tensor:
    """Complex eigenvalues."""
    x = convert_to_tensor(tensor)
    return EIG(x, Tout=complex_of(x.dtype.base_dtype), compute_v=False, name=name)[0]


# ---- Lu ---------------------------------------------------------------------------------------------------------

LU = define(
    "Lu(input: T) -> (lu: T, p: output_idx_type)", T=TYPES, output_idx_type=one_of(*INDEX, default=dtypes.int32)
)
LU.planning.refuses = True


@LU.kernel
def lu_kernel(input: torch.Tensor, *, output_idx_type: DType) -> tuple[torch.Tensor, torch.Tensor]:
    check_square(input)
    packed, pivots, info = torch.linalg.lu_factor_ex(wide(input))
    packed = of_invertible(input, info, packed, "Input is not invertible.")
    permutation = torch.lu_unpack(packed, pivots, unpack_data=False)[0]
    # Column j of P has its one in the row where row j of the factors comes from: P L U = input.
    order = permutation.real.argmax(-2) if permutation.is_complex() else permutation.argmax(-2)
    return packed.to(input.dtype), order.to(torch_dtype(output_idx_type))


@LU.shape
def lu_shape(input: Shape) -> tuple[Shape, Shape]:
    input = square(input)
    return input, input[:-1]


@export("linalg.lu")
def lu(input: Any, output_idx_type: Any = dtypes.int32, name: str | None = None) -> Any:
    """The LU decomposition L U = input[p]. Returns (lu, p), where lu packs L (without its unit diagonal) and U into one matrix."""
    return LU(input, output_idx_type=output_idx_type, name=name)
