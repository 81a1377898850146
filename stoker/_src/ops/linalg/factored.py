"""Matrix functions built from factorizations: pseudo-inverse, rank, and functions of an LU factorization."""

from __future__ import annotations

from typing import Any

import numpy as np

from stoker._src.base import dtypes
from stoker._src.base.dtypes import DType
from stoker._src.base.export import export
from stoker._src.graph import context
from stoker._src.graph.conversion import convert_to_tensor
from stoker._src.graph.late_binding import ops
from stoker._src.graph.scopes import control_dependencies, name_scope
from stoker._src.graph.tensor import Tensor
from stoker._src.ops.array import casting, constants, gathering, joining, ranges, selection, shaping
from stoker._src.ops.linalg import decompositions, diagonals, matrix_products, solvers
from stoker._src.ops.math import arithmetic, comparison, reductions, unary_functions


def _matrices(a: Any, hint: DType, name: str) -> Tensor:
    """`a` as a tensor of rank 2 or more.

    Raises:
        ValueError: the rank is smaller.
    """
    a = convert_to_tensor(a, dtype_hint=hint, name=name)
    rank = a.static_shape.rank
    if rank is not None and rank < 2:
        raise ValueError(f"Input `{name}` must have at least 2 dimensions (saw: {rank}).")
    return a


def _real_matrices(a: Any, validate_args: bool, hint: DType | None = None) -> Tensor:
    """`a` as a floating point tensor of rank 2 or more. With `validate_args`, it is also checked at run time.

    Raises:
        TypeError: `a` has another dtype.
        ValueError: the rank is smaller.
    """
    a = convert_to_tensor(a, dtype_hint=hint, name="a")
    if not a.dtype.is_floating:
        raise TypeError(f"Input `a` must have `float`-like `dtype` (saw {a.dtype.name}).")
    a = _matrices(a, dtypes.float32, "a")
    if validate_args and a.static_shape.rank is None:
        with control_dependencies([ops.assert_rank_at_least(a, 2)]):
            return shaping.identity(a)
    return a


def _scale(a: Tensor) -> Tensor:
    """max(rows, columns) times the machine epsilon, in the real dtype of `a`."""
    kind = a.dtype.base_dtype.real_dtype
    precision = float(np.finfo(kind.as_numpy_dtype).eps)
    known = a.static_shape
    if known.dims is None or None in known.dims[-2:]:
        larger = casting.cast(reductions.reduce_max(shaping.shape(a)[-2:]), kind)
        return arithmetic.multiply(convert_to_tensor(precision, kind), larger)
    return convert_to_tensor(precision * max(known.dims[-2:]), kind)  # type: ignore[type-var]


@export("linalg.matrix_rank")
def matrix_rank(a: Any, tol: Any = None, validate_args: bool = False, name: str | None = None) -> Tensor:
    """The rank of each matrix: the number of singular values above `tol`. The default tolerance is the rounding error of zero."""
    with name_scope(name, "matrix_rank", [a]):
        a = _real_matrices(a, validate_args, dtypes.float32)
        values = decompositions.svd(a, compute_uv=False)
        if tol is None:
            largest = reductions.reduce_max(values, -1, True)
            tol = arithmetic.multiply(_scale(a), largest)
        return reductions.reduce_sum(casting.cast(comparison.greater(values, tol), dtypes.int32), -1)


@export("linalg.pinv")
def pinv(a: Any, rcond: Any = None, validate_args: bool = False, name: str | None = None) -> Tensor:
    """The Moore-Penrose pseudo-inverse. Singular values of at most `rcond` times the largest one count as zero."""
    with name_scope(name, "pinv", [a]):
        a = _real_matrices(a, validate_args)
        kind = a.dtype.base_dtype
        if rcond is None:
            limit = arithmetic.multiply(convert_to_tensor(10, kind.real_dtype), _scale(a))
        else:
            limit = convert_to_tensor(rcond, kind.real_dtype, name="rcond")
        s, u, v = decompositions.svd(a)
        cutoff = arithmetic.multiply(limit, reductions.reduce_max(s, -1))
        huge = constants.number(float("inf"), s)
        usable = selection.SELECT_V2(comparison.greater(s, shaping.expand_dims(cutoff, -1)), s, huge)
        scaled = arithmetic.realdiv(v, shaping.expand_dims(casting.cast(usable, kind), -2))
        inverse = matrix_products.matmul(scaled, u, adjoint_b=True)
        if a.static_shape.dims is not None:
            *batch, rows, columns = a.static_shape
            inverse.set_shape([*batch, columns, rows])
        return inverse


def _unit_lower(lower_upper: Tensor) -> Tensor:
    """The factor L: the packed lower triangle with ones on the diagonal."""
    lower = diagonals.matrix_band_part(lower_upper, -1, 0)
    return diagonals.matrix_set_diag(lower, shaping.ones_like(diagonals.matrix_diag_part(lower_upper)))


def _factors(lower_upper: Any, perm: Any, validate_args: bool) -> tuple[Tensor, Tensor]:
    """The packed factors and their permutation. With `validate_args`, they are also checked at run time.

    Raises:
        ValueError: the factors are not square, or the permutation has the wrong rank.
    """
    packed = _matrices(lower_upper, dtypes.float32, "lower_upper")
    order = convert_to_tensor(perm, dtype_hint=dtypes.int32, name="perm")
    ranks = packed.static_shape.rank, order.static_shape.rank
    if None not in ranks and ranks[0] != ranks[1] + 1:  # type: ignore[operator]
        raise ValueError(f"`rank(lower_upper)` must equal `rank(perm) + 1`: {ranks[0]} and {ranks[1]}.")
    if ranks[0] is not None and len({*packed.static_shape[-2:]} - {None}) > 1:
        raise ValueError(f"`lower_upper` must be square, but its shape is {packed.shape}.")
    if validate_args and None in ranks:
        same = ops.assert_equal(ranges.rank(packed), arithmetic.add(ranges.rank(order), 1))
        with control_dependencies([ops.assert_rank_at_least(packed, 2), same]):
            return shaping.identity(packed), shaping.identity(order)
    return packed, order


def _rows(x: Tensor, order: Tensor) -> Tensor:
    """The rows of each matrix, permuted by `order`."""
    rank = x.static_shape.rank
    if rank is None:
        sizes: Any = shaping.SHAPE_OP(x)
        matrices = shaping.reshape(x, joining.joined_sizes([-1, sizes[-2], sizes[-1]]))
        orders = shaping.reshape(order, joining.joined_sizes([-1, sizes[-2]]))
        return shaping.reshape(gathering.GATHER_V2(matrices, orders, 1, batch_dims=1), sizes)
    if order.static_shape.rank == 1:
        return gathering.GATHER_V2(x, order, rank - 2)
    return gathering.GATHER_V2(x, order, rank - 2, batch_dims=rank - 2)


def _inverse_order(perm: Tensor) -> Tensor:
    from_rank = perm.static_shape.rank
    if from_rank == 1:
        return shaping.invert_permutation(perm)
    # The permutations of all matrices, concatenated, form one permutation.
    rows = shaping.reshape(perm, joining.joined_sizes([-1, shaping.SHAPE_OP(perm)[-1]]))
    count, size = (casting.cast(each, perm.dtype.base_dtype) for each in joining.unstack(shaping.SHAPE_OP(rows), 2))
    starts = shaping.expand_dims(arithmetic.multiply(ranges.range(count), size), 1)
    inverse = shaping.invert_permutation(shaping.reshape(arithmetic.add(rows, starts), [-1]))
    return shaping.reshape(
        arithmetic.subtract(shaping.reshape(inverse, shaping.SHAPE_OP(rows)), starts), shaping.SHAPE_OP(perm)
    )


@export("linalg.lu_reconstruct")
def lu_reconstruct(lower_upper: Any, perm: Any, validate_args: bool = False, name: str | None = None) -> Tensor:
    """Reconstructs the matrices from their factorization by `tf.linalg.lu`."""
    with name_scope(name, "lu_reconstruct"):
        packed, order = _factors(lower_upper, perm, validate_args)
        product = matrix_products.matmul(_unit_lower(packed), diagonals.matrix_band_part(packed, 0, -1))
        whole = _rows(product, _inverse_order(order))
        whole.set_shape(packed.static_shape)
        return whole


@export("linalg.lu_solve")
def lu_solve(lower_upper: Any, perm: Any, rhs: Any, validate_args: bool = False, name: str | None = None) -> Tensor:
    """Solves A x = rhs, given the factorization of A by `tf.linalg.lu`."""
    with name_scope(name, "lu_solve"):
        packed, order = _factors(lower_upper, perm, validate_args)
        right = _matrices(rhs, packed.dtype.base_dtype, "rhs")
        sizes = packed.static_shape[-1], (right.static_shape[-2] if (right.static_shape.rank or 0) > 1 else None)
        if None not in sizes and sizes[0] != sizes[1]:
            raise ValueError(f"`lower_upper.shape[-1]` must equal `rhs.shape[-2]`: {sizes[0]} and {sizes[1]}.")
        solve = solvers.MATRIX_TRIANGULAR_SOLVE
        return solve(packed, solve(_unit_lower(packed), _rows(right, order)), lower=False)


@export("linalg.lu_matrix_inverse")
def lu_matrix_inverse(lower_upper: Any, perm: Any, validate_args: bool = False, name: str | None = None) -> Tensor:
    """The inverse of matrices, given their factorization by `tf.linalg.lu`."""
    with name_scope(name, "lu_matrix_inverse"):
        packed, order = _factors(lower_upper, perm, validate_args)
        size = packed.static_shape[-1]
        size = shaping.shape(packed)[-1] if size is None else size
        eye = diagonals.eye(size, dtype=packed.dtype.base_dtype)
        if packed.static_shape.rank != 2:
            eye = ranges.broadcast_to(eye, shaping.shape(packed))
        return lu_solve(packed, order, eye)


@export("linalg.eigh_tridiagonal")
def eigh_tridiagonal(
    alpha: Any,
    beta: Any,
    eigvals_only: bool = True,
    select: str = "a",
    select_range: Any = None,
    tol: Any = None,
    name: str | None = None,
) -> Any:
    """Eigenvalues, smallest first, of the Hermitian tridiagonal matrix with diagonal `alpha` and off-diagonal `beta`.

    Args:
        alpha: The diagonal, a vector of n real or complex numbers.
        beta: The n - 1 numbers above the diagonal. The numbers below it are their conjugates.
        eigvals_only: Whether to omit eigenvectors.
        select: 'a' for all eigenvalues, 'i' for those with indices in `select_range` (inclusive).
        select_range: A pair of indices.
        tol: Accepted; the values are as accurate as the dtype allows.
        name: A name for the scope.

    Returns:
        The eigenvalues, or (eigenvalues, eigenvectors as columns).

    Raises:
        NotImplementedError: select='v' (a range of values).
        ValueError: an unknown `select`.
    """
    del tol
    if select not in ("a", "i", "v"):
        raise ValueError(f"'select must have a value in {{'i', 'a', 'v'}}. Received: {select}")
    if select == "v":
        raise NotImplementedError("eigh_tridiagonal(select='v')")
    with name_scope(name, "eigh_tridiagonal"):
        alpha, beta = convert_to_tensor(alpha), convert_to_tensor(beta)
        if alpha.dtype.base_dtype is not beta.dtype.base_dtype:
            raise ValueError("'alpha' and 'beta' must have the same type.")
        sizes = [each.static_shape[-1] if each.static_shape.rank else None for each in (alpha, beta)]
        if None not in sizes and sizes[0] != sizes[1] + 1:  # type: ignore[operator]
            raise context.invalid(
                f"beta must have one element less than alpha, but they have {sizes[1]} and {sizes[0]}."
            )
        dense = diagonals.matrix_diag(alpha)
        if alpha.static_shape.size != 1:
            dense = dense + diagonals.matrix_diag(beta, k=1) + diagonals.matrix_diag(unary_functions.conj(beta), k=-1)
        values, vectors = decompositions.self_adjoint_eig(dense)
        if values.dtype.is_complex:
            values = casting.cast(values, values.dtype.base_dtype.real_dtype)
        if select == "i":
            first, last = select_range
            values, vectors = values[first : last + 1], vectors[:, first : last + 1]
        return values if eigvals_only else (values, vectors)
