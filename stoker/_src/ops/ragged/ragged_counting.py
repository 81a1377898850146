"""Bincounts of dense, sparse and ragged values: `tf.math.bincount` and `tf.sparse.bincount`."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from stoker._src.base import dtypes
from stoker._src.base.dtypes import INDEX, DType, as_dtype
from stoker._src.base.errors import InvalidArgumentError
from stoker._src.base.export import export
from stoker._src.base.shapes import UNKNOWN_SHAPE, Shape
from stoker._src.graph.conversion import convert_to_tensor
from stoker._src.graph.definition import BOOL, INT, define
from stoker._src.graph.scopes import name_scope
from stoker._src.graph.sparse_tensor import SparseTensor
from stoker._src.graph.tensor import Tensor
from stoker._src.ops.array import casting, constants, ranges, shaping
from stoker._src.ops.math import arithmetic, comparison, reductions
from stoker._src.ops.math.counting import DENSE_BINCOUNT
from stoker._src.ops.ragged import ragged_tensor
from stoker._src.ops.sparse import sparse_ops
from stoker._src.ops.support.movement import allocatable, itemsize

_COUNTED = (dtypes.int32, dtypes.int64, dtypes.float32, dtypes.float64)
_RESULT = "(output_indices: int64, output_values: output_type, output_dense_shape: int64)"
_LIMITS = {"minlength": INT(-1, minimum=-1), "maxlength": INT(-1, minimum=-1), "binary_output": BOOL}

SPARSE_BINCOUNT = define(
    "SparseBincount(indices: int64, values: Tidx, dense_shape: int64, size: host Tidx, weights: T) -> (output: T)",
    Tidx=INDEX,
    T=_COUNTED,
    binary_output=False,
)
RAGGED_BINCOUNT = define(
    "RaggedBincount(splits: any/flat int64, values: any/flat Tidx, size: any/scalar host Tidx, weights: any/flat T) -> (output: T)",
    Tidx=INDEX,
    T=_COUNTED,
    binary_output=False,
)
DENSE_COUNT = define(
    f"DenseCountSparseOutput(values: T, weights: output_type) -> {_RESULT}", T=INDEX, **_LIMITS, output_type=_COUNTED
)
SPARSE_COUNT = define(
    f"SparseCountSparseOutput(indices: matrix int64, values: any/vector T, dense_shape: any/vector int64, weights: output_type) -> {_RESULT}",
    T=INDEX,
    **_LIMITS,
    output_type=_COUNTED,
)
RAGGED_COUNT = define(
    f"RaggedCountSparseOutput(splits: any/flat int64, values: T, weights: output_type) -> {_RESULT}",
    T=INDEX,
    **_LIMITS,
    output_type=_COUNTED,
)


# ---- rows of values ---------------------------------------------------------------------------------------------


def _sparse_rows(indices: torch.Tensor, values: torch.Tensor, shape: torch.Tensor) -> tuple[torch.Tensor, int | None]:
    """The row of each value, and the number of rows. The rows are None for vectors."""
    sizes = sparse_ops.sizes_of(shape)
    if indices.shape[0] != values.numel():
        raise InvalidArgumentError(
            None, None, f"Number of elements in indices ({indices.shape[0]}) and values ({values.numel()}) do not match"
        )
    sparse_ops.flat_positions(indices, sizes)
    if len(sizes) == 1:
        return torch.zeros_like(values, dtype=torch.int64), None
    if len(sizes) != 2:
        raise InvalidArgumentError(None, None, f"Input must be a 1 or 2-dimensional tensor. Got: {Shape(sizes)}")
    return indices[:, 0], sizes[0]


def _ragged_rows(splits: torch.Tensor, values: torch.Tensor) -> tuple[torch.Tensor, int]:
    if splits.ndim != 1 or splits.numel() < 1:
        raise InvalidArgumentError(None, None, f"Splits must be a non-empty vector, not {Shape(splits.shape)}")
    if int(splits[0]) != 0:
        raise InvalidArgumentError(None, None, f"Splits must start with 0, not with {int(splits[0])}")
    if int(splits[-1]) != values.numel():
        raise InvalidArgumentError(
            None,
            None,
            f"Splits must end with the number of values, got {int(splits[-1])} instead of {values.numel()}",
        )
    lengths = splits[1:] - splits[:-1]
    if bool((lengths < 0).any()):
        raise InvalidArgumentError(None, None, "Splits must not decrease")
    return torch.repeat_interleave(torch.arange(lengths.numel(), device=splits.device), lengths), lengths.numel()


def _amounts(values: torch.Tensor, weights: torch.Tensor) -> torch.Tensor:
    if not weights.numel():
        return torch.ones(values.numel(), dtype=weights.dtype, device=values.device)
    if weights.shape != values.shape:
        raise InvalidArgumentError(
            None,
            None,
            f"Weights and data must have the same shape. Weight shape: {Shape(weights.shape)}; data shape: {Shape(values.shape)}",
        )
    return weights.reshape(-1)


# ---- dense counts -----------------------------------------------------------------------------------------------


def _dense(
    rows: torch.Tensor, count: int | None, values: torch.Tensor, size: int, weights: torch.Tensor, binary: bool
) -> torch.Tensor:
    if size < 0:
        raise InvalidArgumentError(None, None, f"size ({size}) must be non-negative")
    if values.numel() and int(values.min()) < 0:
        raise InvalidArgumentError(None, None, "Input must be non-negative")
    amounts = _amounts(values, weights)
    kept = values < size
    places = rows[kept] * size + values[kept].to(torch.int64)
    allocatable([1 if count is None else count, size], itemsize(weights))
    result = torch.zeros((1 if count is None else count) * size, dtype=weights.dtype, device=values.device)
    if binary:
        result[places] = 1
    else:
        result.index_add_(0, places, amounts[kept])
    return result if count is None else result.reshape(count, size)


@SPARSE_BINCOUNT.kernel
def sparse_bincount_kernel(
    indices: torch.Tensor,
    values: torch.Tensor,
    dense_shape: torch.Tensor,
    size: int,
    weights: torch.Tensor,
    *,
    binary_output: bool,
) -> torch.Tensor:
    rows, count = _sparse_rows(indices, values, dense_shape)
    return _dense(rows, count, values, size, weights, binary_output)


@RAGGED_BINCOUNT.kernel
def ragged_bincount_kernel(
    splits: torch.Tensor, values: torch.Tensor, size: int, weights: torch.Tensor, *, binary_output: bool
) -> torch.Tensor:
    rows, count = _ragged_rows(splits, values)
    return _dense(rows, count, values, size, weights, binary_output)


@SPARSE_BINCOUNT.shape(values=["size"])
def sparse_bincount_shape(
    indices: Shape, values: Shape, dense_shape: Shape, size: np.ndarray | None, weights: Shape
) -> Shape:
    rank = dense_shape[0] if dense_shape.rank == 1 else None
    if rank is None:
        return UNKNOWN_SHAPE
    if rank not in (1, 2):
        raise InvalidArgumentError(None, None, f"Input must be less than rank 3, but dense_shape has {rank} elements")
    if size is not None and size < 0:
        raise InvalidArgumentError(None, None, f"size ({size}) must be non-negative")
    last = None if size is None else int(size)
    return Shape((last,)) if rank == 1 else Shape((None, last))


@RAGGED_BINCOUNT.shape(values=["size"])
def ragged_bincount_shape(splits: Shape, values: Shape, size: np.ndarray | None, weights: Shape) -> Shape:
    count = splits.size
    return Shape((count - 1 if count else None, int(size) if size is not None and not size.ndim else None))


# ---- sparse counts ----------------------------------------------------------------------------------------------


def _sparse(
    rows: torch.Tensor,
    count: int | None,
    values: torch.Tensor,
    weights: torch.Tensor,
    minlength: int,
    maxlength: int,
    binary: bool,
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    flat = values.reshape(-1).to(torch.int64)
    if flat.numel() and int(flat.min()) < 0:
        raise InvalidArgumentError(None, None, "Input values must all be non-negative")
    amounts = _amounts(values, weights)
    width = max(int(flat.max()) + 1 if flat.numel() else 1, minlength)
    if maxlength >= 0:
        kept = flat < maxlength
        rows, flat, amounts, width = rows[kept], flat[kept], amounts[kept], maxlength
    if width > 2**63 - 1:
        raise InvalidArgumentError(None, None, f"Input values must be below 2**63 - 1, got {width - 1}")
    if (count or 1) * max(width, 1) < 2**63:
        keys, places = torch.unique(rows * max(width, 1) + flat, return_inverse=True)
        found = torch.stack([keys // max(width, 1), keys % max(width, 1)], 1)
    else:
        found, places = torch.unique(torch.stack([rows, flat], 1), dim=0, return_inverse=True)
    totals = torch.zeros(len(found), dtype=weights.dtype, device=values.device).index_add_(0, places, amounts)
    if binary:
        totals = torch.ones_like(totals)
    sizes = [width] if count is None else [count, width]
    return found[:, 2 - len(sizes) :].contiguous(), totals, torch.tensor(sizes, dtype=torch.int64)


@DENSE_COUNT.kernel
def dense_count_kernel(
    values: torch.Tensor, weights: torch.Tensor, *, minlength: int, maxlength: int, binary_output: bool
) -> Any:
    if values.ndim not in (1, 2):
        raise InvalidArgumentError(None, None, f"Input must be a 1 or 2-dimensional tensor. Got: {Shape(values.shape)}")
    count = values.shape[0] if values.ndim == 2 else None
    rows = torch.arange(count or 1, device=values.device).repeat_interleave(values.shape[-1])
    return _sparse(rows, count, values, weights, minlength, maxlength, binary_output)


@SPARSE_COUNT.kernel
def sparse_count_kernel(
    indices: torch.Tensor,
    values: torch.Tensor,
    dense_shape: torch.Tensor,
    weights: torch.Tensor,
    *,
    minlength: int,
    maxlength: int,
    binary_output: bool,
) -> Any:
    rows, count = _sparse_rows(indices, values, dense_shape)
    return _sparse(rows, count, values, weights, minlength, maxlength, binary_output)


@RAGGED_COUNT.kernel
def ragged_count_kernel(
    splits: torch.Tensor,
    values: torch.Tensor,
    weights: torch.Tensor,
    *,
    minlength: int,
    maxlength: int,
    binary_output: bool,
) -> Any:
    rows, count = _ragged_rows(splits, values)
    return _sparse(rows, count, values, weights, minlength, maxlength, binary_output)


def _count_shapes(rank: int | None) -> tuple[Shape, Shape, Shape]:
    return Shape((None, rank)), Shape((None,)), Shape((rank,))


@DENSE_COUNT.shape
def dense_count_shape(values: Shape, weights: Shape) -> tuple[Shape, Shape, Shape]:
    if weights.rank == 0 and values.rank:
        raise InvalidArgumentError(
            None, None, f"Shapes must be equal rank, but are 0 and {values.rank}: weights, values."
        )
    return _count_shapes(values.rank)


SPARSE_COUNT.shape(
    lambda indices, values, dense_shape, weights: _count_shapes(dense_shape[0] if dense_shape.rank == 1 else None)
)
RAGGED_COUNT.shape(lambda splits, values, weights: _count_shapes(2))


# ---- functions --------------------------------------------------------------------------------------------------


@export("sparse.bincount")
def sparse_bincount(
    values: Any,
    weights: Any = None,
    axis: Any = 0,
    minlength: Any = None,
    maxlength: Any = None,
    binary_output: bool = False,
    name: str | None = None,
) -> SparseTensor:
    """Counts how often each integer occurs, as a SparseTensor of the integers that occur.

    Args:
        values: a Tensor, SparseTensor or RaggedTensor of non-negative integers.
        weights: a weight for each value, in the same form. Their sums replace the counts.
        axis: 0 or None counts over all values, -1 for each row.
        minlength: the minimum size of the result's last dimension.
        maxlength: the maximum size. Larger values are ignored.
        binary_output: whether to return 1 instead of counts.
        name: a name for the scope.

    Raises:
        ValueError: the axis is invalid, or both weights and `binary_output` are given.
    """
    with name_scope(name, "count", [values, weights]):
        if not isinstance(values, (SparseTensor, ragged_tensor.RaggedTensor)):
            values = convert_to_tensor(values, name="values")
        if binary_output and weights is not None:
            raise ValueError("Arguments `binary_output` and `weights` are mutually exclusive. Please specify only one.")
        if axis not in (None, 0, -1):
            raise ValueError(f"Unsupported value for argument axis={axis}. Only 0 and -1 are currently supported.")
        attrs = {
            "minlength": -1 if minlength is None else minlength,
            "maxlength": -1 if maxlength is None else maxlength,
            "binary_output": binary_output,
        }
        if weights is not None and not isinstance(weights, (SparseTensor, ragged_tensor.RaggedTensor)):
            weights = convert_to_tensor(weights, name="weights")
        flat = _values_of(values)
        counts = flat.dtype.base_dtype if flat.dtype.base_dtype in INDEX else dtypes.int32
        amounts = shaping.zeros([0], counts) if weights is None else _values_of(weights)
        if axis != -1:
            flat = shaping.reshape(flat, [-1])
            amounts = amounts if weights is None else shaping.reshape(amounts, [-1])
            return SparseTensor(*DENSE_COUNT(flat, amounts, **attrs))
        if isinstance(values, SparseTensor):
            found = SPARSE_COUNT(values.indices, flat, values.dense_shape, amounts, **attrs)
        elif isinstance(values, ragged_tensor.RaggedTensor):
            found = RAGGED_COUNT(casting.cast(values.row_splits, dtypes.int64), flat, amounts, **attrs)
        else:
            found = DENSE_COUNT(flat, amounts, **attrs)
        return SparseTensor(*found)


def _values_of(value: Any) -> Tensor:
    if isinstance(value, ragged_tensor.RaggedTensor):
        return value.flat_values
    return value.values if isinstance(value, SparseTensor) else value


def _bin_limits(arr: Tensor, minlength: Any, maxlength: Any) -> Tensor:
    """The number of bins: one more than the largest value, within the given limits."""
    kind = arr.dtype.base_dtype
    empty = casting.cast(comparison.greater(ranges.size(arr), 0), kind)
    size = arithmetic.multiply(arithmetic.add(reductions.reduce_max(arr), constants.number(1, arr)), empty)
    if minlength is not None:
        size = arithmetic.maximum(convert_to_tensor(minlength, kind, name="minlength"), size)
    if maxlength is not None:
        size = arithmetic.minimum(convert_to_tensor(maxlength, kind, name="maxlength"), size)
    return size


@export(v1=("bincount", "math.bincount"))
def bincount_v1(
    arr: Any, weights: Any = None, minlength: Any = None, maxlength: Any = None, dtype: Any = dtypes.int32
) -> Tensor:
    """Counts how often each integer occurs in `arr`, or sums the `weights` of each integer."""
    return bincount(arr, weights, minlength, maxlength, dtype)


@export(v2="math.bincount")
def bincount(
    arr: Any,
    weights: Any = None,
    minlength: Any = None,
    maxlength: Any = None,
    dtype: Any = dtypes.int32,
    name: str | None = None,
    axis: Any = None,
    binary_output: bool = False,
) -> Tensor:
    """Counts how often each integer occurs in `arr`, or sums the `weights` of each integer.

    Args:
        arr: Non-negative integers, of rank 2 at most if `axis` is given.
        weights: A weight for each element. The result has its dtype.
        minlength: The minimum number of bins.
        maxlength: The maximum number of bins. Larger values are ignored.
        dtype: The dtype of the counts.
        name: A name for the scope.
        axis: 0 or None counts over all elements, -1 for each row.
        binary_output: Whether to return only whether an integer occurs.

    Raises:
        ValueError: the axis is invalid, or both weights and `binary_output` are given.
    """
    with name_scope(name, "bincount"):
        if isinstance(arr, (SparseTensor, ragged_tensor.RaggedTensor)):
            if axis == -1:
                return _rows_of_parts(arr, weights, minlength, maxlength, as_dtype(dtype), binary_output)
            arr = arr.values if isinstance(arr, SparseTensor) else arr.flat_values
            weights = getattr(weights, "flat_values", getattr(weights, "values", weights))
        arr = convert_to_tensor(arr, name="arr")
        if not arr.dtype.is_integer:
            arr = casting.cast(arr, dtypes.int32)
        if binary_output and weights is not None:
            raise ValueError("Arguments `binary_output` and `weights` are mutually exclusive. Please specify only one.")
        if axis not in (None, 0, -1):
            raise ValueError(f"Unsupported value for argument axis={axis}. Only 0 and -1 are currently supported.")
        size = _bin_limits(arr, minlength, maxlength)
        if weights is None:
            amounts = shaping.zeros([0], as_dtype(dtype))
        else:
            amounts = convert_to_tensor(weights, name="weights")
        if axis != -1:
            arr = shaping.reshape(arr, [-1])
            amounts = amounts if weights is None else shaping.reshape(amounts, [-1])
        return DENSE_BINCOUNT(arr, size, amounts, binary_output=binary_output)


def _rows_of_parts(arr: Any, weights: Any, minlength: Any, maxlength: Any, dtype: DType, binary_output: bool) -> Tensor:
    """Counts for each row of a sparse or ragged tensor."""
    if binary_output and weights is not None:
        raise ValueError("Arguments `binary_output` and `weights` are mutually exclusive. Please specify only one.")
    values = arr.values if isinstance(arr, SparseTensor) else arr.flat_values
    if values.dtype.base_dtype not in INDEX:
        values = casting.cast(values, dtypes.int32)
    size = _bin_limits(values, minlength, maxlength)
    if weights is None:
        amounts = shaping.zeros([0], dtype)
    else:
        amounts = weights.values if isinstance(weights, SparseTensor) else weights.flat_values
    if isinstance(arr, SparseTensor):
        return SPARSE_BINCOUNT(arr.indices, values, arr.dense_shape, size, amounts, binary_output=binary_output)
    splits = casting.cast(arr.row_splits, dtypes.int64)
    return RAGGED_BINCOUNT(splits, values, size, amounts, binary_output=binary_output)
