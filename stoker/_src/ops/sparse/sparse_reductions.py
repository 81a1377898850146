"""Reductions and normalization of sparse tensors: sums and maxima, softmax, empty rows."""

from __future__ import annotations

import math as numbers
from typing import Any

import numpy as np
import torch

from stoker._src.base import dtypes
from stoker._src.base.dtypes import FLOATS, NUMERIC, REAL
from stoker._src.base.errors import InternalError, InvalidArgumentError
from stoker._src.base.extensions import extension
from stoker._src.base.shapes import UNKNOWN_SHAPE, Shape
from stoker._src.graph.definition import ANY, OpDefinition, define
from stoker._src.graph.tensor import Operation, Tensor
from stoker._src.ops.array import gathering, ranges, selection, shaping
from stoker._src.ops.math import arithmetic, reductions, unary_functions
from stoker._src.ops.sparse import sparse_with_dense
from stoker._src.ops.sparse.sparse_ops import check_parts, distinct, flat_positions, pick, sizes_of, sort_keys
from stoker._src.ops.support.movement import allocatable, itemsize, signed
from stoker._src.ops.support.unsigned import ordered

_native: Any = extension("stoker._src.ops.native.columns")

_MATRIX, _VECTOR = Shape((None, None)), Shape((None,))

# ---- reductions -------------------------------------------------------------------------------------------------

_REDUCED = "input_indices: any/matrix int64, input_values: any/vector T, input_shape: any/vector int64, reduction_axes: host int32"


def _reduced(
    indices: torch.Tensor, values: torch.Tensor, shape: torch.Tensor, axes: Any, keep_dims: bool, how: str
) -> Any:
    """The distinct coordinates in the kept dimensions, their values, those dimensions, and the input and output sizes."""
    sizes = sizes_of(shape)
    rank = len(sizes)
    chosen = axes if type(axes) is list else [axes]
    for axis in chosen:
        if not -rank <= axis < rank:
            raise InvalidArgumentError(
                None, None, f"Invalid reduction dimension {axis}, for input with {rank} dimensions."
            )
    dropped = {axis % rank for axis in chosen}
    check_parts(indices, values, sizes)
    kept = [axis for axis in range(rank) if axis not in dropped]
    inner = indices[:, kept]
    one, inverse = distinct(sort_keys(inner, [sizes[axis] for axis in kept]))
    if how == "sum":
        result = signed(values.new_zeros(one.shape[0])).index_add_(0, inverse, signed(values)).view(values.dtype)
    else:
        result = _largest_of_groups(values, inverse, one.shape[0])
    final = [1 if axis in dropped else sizes[axis] for axis in range(rank) if keep_dims or axis not in dropped]
    return inner.index_select(0, one), result, kept, sizes, final


@ordered
def _largest_of_groups(values: torch.Tensor, groups: torch.Tensor, count: int) -> torch.Tensor:
    return values.new_zeros(count).scatter_reduce_(0, groups, values, "amax", include_self=False)


def _reduction(name: str, how: str, kinds: Any) -> tuple[OpDefinition, OpDefinition]:
    """Defines the op with a dense result and the op with a sparse result."""
    dense = define(f"SparseReduce{name}({_REDUCED}) -> (output: T)", keep_dims=False, T=kinds)
    sparse = define(
        f"SparseReduce{name}Sparse({_REDUCED}) -> (output_indices: int64, output_values: T, output_shape: int64)",
        keep_dims=False,
        T=kinds,
    )

    @dense.kernel
    def dense_kernel(
        input_indices: torch.Tensor,
        input_values: torch.Tensor,
        input_shape: torch.Tensor,
        reduction_axes: Any,
        *,
        keep_dims: bool,
    ) -> torch.Tensor:
        rows, values, kept, sizes, final = _reduced(
            input_indices, input_values, input_shape, reduction_axes, keep_dims, how
        )
        inner = [sizes[axis] for axis in kept]
        result = values.new_zeros(numbers.prod(allocatable(inner, itemsize(values))))
        try:
            places = flat_positions(rows, inner)
        except InvalidArgumentError as error:
            raise InternalError(None, None, f"Obtained a write index outside of the result: {error.message}") from None
        signed(result)[places] = signed(values)
        return result.reshape(final)

    @sparse.kernel
    def sparse_kernel(
        input_indices: torch.Tensor,
        input_values: torch.Tensor,
        input_shape: torch.Tensor,
        reduction_axes: Any,
        *,
        keep_dims: bool,
    ) -> Any:
        rows, values, kept, _, final = _reduced(
            input_indices, input_values, input_shape, reduction_axes, keep_dims, how
        )
        if keep_dims:
            whole = rows.new_zeros((len(rows), len(final)))
            whole[:, kept] = rows
            rows = whole
        return rows, values, torch.tensor(final, dtype=torch.int64)

    @dense.shape(values=["input_shape", "reduction_axes"])
    def dense_shape(
        input_indices: Shape, input_values: Shape, input_shape: Any, reduction_axes: Any, *, keep_dims: bool
    ) -> Shape:
        if input_shape is None or reduction_axes is None:
            return UNKNOWN_SHAPE
        rank = np.size(input_shape)
        if not rank:
            raise InvalidArgumentError(None, None, "Number of dims in shape tensor must not be 0")
        if input_shape.ndim != 1 or any(not -rank <= axis < rank for axis in np.ravel(reduction_axes)):
            return UNKNOWN_SHAPE  # the kernel reports the error
        sizes = Shape(None if size < 0 else int(size) for size in input_shape)
        return reductions.reduced_shape(sizes, reduction_axes, keep_dims=keep_dims)

    sparse.shape(lambda *_: (_MATRIX, _VECTOR, _VECTOR))
    return dense, sparse


SPARSE_REDUCE_SUM, SPARSE_REDUCE_SUM_SPARSE = _reduction("Sum", "sum", NUMERIC)
SPARSE_REDUCE_MAX, SPARSE_REDUCE_MAX_SPARSE = _reduction("Max", "max", REAL)


@SPARSE_REDUCE_SUM.grad
def sparse_reduce_sum_grad(op: Operation, g: Tensor) -> Any:
    indices, _, shape, axes = op.inputs
    rank = ranges.size(shape)
    chosen = arithmetic.floormod(shaping.reshape(axes, [-1]), rank)
    counts = reductions.reduce_sum(selection.one_hot(chosen, rank, dtype=dtypes.int64), 0)
    dropped = arithmetic.minimum(counts, shaping.ones_like(counts))
    kept = arithmetic.subtract(shaping.ones_like(dropped), dropped)
    sizes = arithmetic.add(arithmetic.multiply(shape, kept), dropped)  # size 1 for reduced dimensions
    places = arithmetic.multiply(indices, kept)
    return None, gathering.GATHER_ND(shaping.reshape(g, sizes), places), None, None


# ---- SparseSoftmax ----------------------------------------------------------------------------------------------

SPARSE_SOFTMAX = define(
    "SparseSoftmax(sp_indices: matrix int64, sp_values: vector T, sp_shape: vector int64) -> (output: T)",
    T=tuple(each for each in FLOATS if each is not dtypes.bfloat16),
)


@SPARSE_SOFTMAX.kernel
def sparse_softmax_kernel(sp_indices: torch.Tensor, sp_values: torch.Tensor, sp_shape: torch.Tensor) -> torch.Tensor:
    sizes = sizes_of(sp_shape)
    if len(sizes) < 2:
        raise InvalidArgumentError(None, None, f"Input should have rank >= 2, but received shape: {sizes}")
    check_parts(sp_indices, sp_values, sizes)
    _, rows = distinct(sort_keys(sp_indices[:, :-1], sizes[:-1]))
    count = int(rows.max()) + 1 if rows.numel() else 0
    largest = sp_values.new_zeros(count).scatter_reduce_(0, rows, sp_values, "amax", include_self=False)
    powers = torch.exp(sp_values - largest[rows])
    return powers / powers.new_zeros(count).index_add_(0, rows, powers)[rows]


@SPARSE_SOFTMAX.shape
def sparse_softmax_shape(sp_indices: Shape, sp_values: Shape, sp_shape: Shape) -> Shape:
    return sp_values.of_rank(1)


@SPARSE_SOFTMAX.grad
def sparse_softmax_grad(op: Operation, g: Tensor) -> Any:
    indices, _, shape = op.inputs
    y = op.outputs[0]
    weighted = arithmetic.multiply(y, g)
    rank = shape.static_shape.of_rank(1)[0]
    last: Any = np.array([-1], np.int32) if rank is None else np.array([rank - 1], np.int32)
    sums = SPARSE_REDUCE_SUM(indices, weighted, shape, last, keep_dims=True)
    return (
        None,
        arithmetic.multiply(
            y, sparse_with_dense.SPARSE_DENSE_CWISE_ADD(indices, g, shape, unary_functions.negative(sums))
        ),
        None,
    )


# ---- SparseFillEmptyRows ----------------------------------------------------------------------------------------

SPARSE_FILL_EMPTY_ROWS = define(
    "SparseFillEmptyRows(indices: int64, values: vector T, dense_shape: int64, default_value: scalar T) -> "
    "(output_indices: int64, output_values: T, empty_row_indicator: bool, reverse_index_map: int64)",
    T=ANY,
)
SPARSE_FILL_EMPTY_ROWS.small("fill_empty_rows")


@SPARSE_FILL_EMPTY_ROWS.kernel
def sparse_fill_empty_rows_kernel(
    indices: torch.Tensor, values: Any, dense_shape: torch.Tensor, default_value: Any
) -> Any:
    if len(values) != len(indices):
        raise InvalidArgumentError(
            None,
            None,
            f"The length of `values` ({len(values)}) must match the first dimension of `indices` ({len(indices)}).",
        )
    if indices.ndim != 2 or dense_shape.ndim != 1 or indices.shape[1] != len(dense_shape) or not len(dense_shape):
        raise InvalidArgumentError(
            None,
            None,
            f"indices {Shape(indices.shape)} must be a matrix with a column for each of the sizes in dense_shape {Shape(dense_shape.shape)}",
        )
    count, rank = int(dense_shape[0]), len(dense_shape)
    filled = _filled_natively(indices, values, count, rank, default_value)
    if filled is not None:
        return filled
    rows = indices[:, 0]
    bad = torch.nonzero((rows < 0) | (rows >= count)).reshape(-1)
    if bad.numel():
        at = int(bad[0])
        raise InvalidArgumentError(None, None, f"indices({at}, 0) is invalid: {int(rows[at])} >= {count}")
    allocatable([count, rank + 4], 8)  # the coordinates of the added rows, and the sort order
    full = torch.zeros(count, dtype=torch.bool, device=rows.device)
    full[rows] = True
    empty = torch.nonzero(~full).reshape(-1)
    added = empty.new_zeros((empty.shape[0], rank))
    added[:, 0] = empty
    # A stable sort by row moves each default to its row and keeps the order within rows.
    order = torch.argsort(torch.cat([rows, empty]), stable=True)
    together = torch.cat([indices, added]).index_select(0, order)
    if isinstance(values, np.ndarray):
        longer: Any = np.concatenate([values, np.broadcast_to(default_value, empty.shape)])
    else:
        longer = torch.cat([values, default_value.expand(empty.shape[0])])
    back = torch.empty_like(order)
    back[order] = torch.arange(order.shape[0], device=order.device)
    return together, pick(longer, order), ~full, back[: rows.shape[0]]


def _filled_natively(indices: torch.Tensor, values: Any, rows: int, rank: int, default_value: Any) -> Any:
    """The op's results by native loops; None if that is not possible, also if a row is out of bounds."""
    if (
        _native is None
        or not isinstance(values, torch.Tensor)
        or indices.device.type != "cpu"
        or indices.dtype is not torch.int64
        or rows < 0
    ):
        return None
    allocatable([rows, rank + 4], 8)
    indices = indices.contiguous()
    count = len(indices)
    places = indices.new_empty(rows)
    empty = _native.empty_rows(indices, count, rank, rows, places)
    if empty < 0:
        return None
    total = count + empty
    filled, order = indices.new_empty((total, rank)), indices.new_empty(total)
    reverse, is_empty = indices.new_empty(count), indices.new_empty(rows, dtype=torch.bool)
    if not _native.fill_rows(indices, count, rank, rows, places, total, filled, order, reverse, is_empty):
        return None
    return filled, torch.cat([values, default_value.reshape(1)]).index_select(0, order), is_empty, reverse


@SPARSE_FILL_EMPTY_ROWS.shape(as_shapes=["dense_shape"])
def sparse_fill_empty_rows_shape(indices: Shape, values: Shape, dense_shape: Shape, default_value: Shape) -> Any:
    count, rank = indices.of_rank(2)
    values.merge(Shape((count,)))
    if dense_shape.dims is not None:
        Shape((rank,)).merge(Shape((len(dense_shape),)))
    return Shape((None, rank)), _VECTOR, Shape((dense_shape[0],)), Shape((count,))


@SPARSE_FILL_EMPTY_ROWS.grad
def sparse_fill_empty_rows_gradient(op: Operation, _: Any, g: Tensor, *__: Any) -> Any:
    of_values, of_default = SPARSE_FILL_EMPTY_ROWS_GRAD(op.outputs[3], g)
    return None, of_values, None, of_default


SPARSE_FILL_EMPTY_ROWS_GRAD = define(
    "SparseFillEmptyRowsGrad(reverse_index_map: vector int64, grad_values: vector T) -> (d_values: T, d_default_value: T)",
    T=ANY,
)


@SPARSE_FILL_EMPTY_ROWS_GRAD.kernel
def sparse_fill_empty_rows_grad_kernel(reverse_index_map: torch.Tensor, grad_values: torch.Tensor) -> Any:
    if reverse_index_map.numel() and (
        int(reverse_index_map.min()) < 0 or int(reverse_index_map.max()) >= len(grad_values)
    ):
        raise InvalidArgumentError(
            None,
            None,
            f"Elements in reverse index must be in [0, {len(grad_values)}), got {reverse_index_map.tolist()}",
        )
    of_values = grad_values.index_select(0, reverse_index_map)
    added = torch.ones(len(grad_values), dtype=torch.bool)
    added[reverse_index_map] = False
    return of_values, grad_values[added].sum().to(grad_values.dtype)


@SPARSE_FILL_EMPTY_ROWS_GRAD.shape
def sparse_fill_empty_rows_grad_shape(reverse_index_map: Shape, grad_values: Shape) -> Any:
    return reverse_index_map, Shape(())
