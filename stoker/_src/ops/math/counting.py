"""Counts: bincount, histograms, buckets, nonzero elements, confusion matrices."""

from __future__ import annotations

import functools
import itertools
from typing import Any

import numpy as np
import torch

from stoker._src.base import dtypes
from stoker._src.base.dtypes import INDEX, DType, as_dtype
from stoker._src.base.errors import InvalidArgumentError
from stoker._src.base.export import export
from stoker._src.base.extensions import extension
from stoker._src.base.shapes import Shape
from stoker._src.graph.conversion import convert_to_tensor
from stoker._src.graph.definition import FLOATS_LIST, define, one_of, unchanged
from stoker._src.graph.late_binding import ops
from stoker._src.graph.scopes import control_dependencies, name_scope
from stoker._src.graph.static_values import constant_value
from stoker._src.graph.tensor import Operation, Tensor
from stoker._src.ops.array import casting, constants, joining, scattering, shaping
from stoker._src.ops.math import arithmetic, comparison, reductions, unary_functions
from stoker._src.ops.support.movement import allocatable, itemsize
from stoker._src.ops.support.values import torch_dtype

_COUNTED = (dtypes.int32, dtypes.int64, dtypes.float32, dtypes.float64)

# ---- Bincount ---------------------------------------------------------------------------------------------------

BINCOUNT = define("Bincount(arr: int32, size: scalar host int32, weights: T) -> (bins: T)", T=_COUNTED)
DENSE_BINCOUNT = define(
    "DenseBincount(input: Tidx, size: scalar host Tidx, weights: T) -> (output: T)",
    Tidx=INDEX,
    T=_COUNTED,
    binary_output=False,
)


def _check_counts(values: torch.Tensor, size: int) -> None:
    if size < 0:
        raise InvalidArgumentError(None, None, f"size ({size}) must be non-negative")
    if values.numel() and int(values.min()) < 0:
        raise InvalidArgumentError(None, None, "Input arr must be non-negative!")


@BINCOUNT.kernel
def bincount_kernel(arr: torch.Tensor, size: int, weights: torch.Tensor) -> torch.Tensor:
    _check_counts(arr, size)
    allocatable([3, size], itemsize(weights))  # the counts and the temporary tensors for them
    return dense_bincount_kernel(arr.reshape(-1), size, weights.reshape(-1), binary_output=False)


@BINCOUNT.shape(values=["size"])
def bincount_shape(arr: Shape, size: np.ndarray | None, weights: Shape) -> Shape:
    if size is None:
        return Shape((None,))
    if size < 0:
        raise InvalidArgumentError(None, None, f"size ({size}) must be non-negative")
    return Shape((int(size),))


@DENSE_BINCOUNT.kernel
def dense_bincount_kernel(
    input: torch.Tensor, size: int, weights: torch.Tensor, *, binary_output: bool
) -> torch.Tensor:
    if input.ndim > 2:
        raise InvalidArgumentError(None, None, f"Shape must be at most rank 2 but is rank {input.ndim}")
    _check_counts(input, size)
    if weights.numel() and weights.shape != input.shape:
        raise InvalidArgumentError(
            None,
            None,
            f"`weights` must be the same shape as `arr` or a length-0 `Tensor`, but its shape is {list(weights.shape)}.",
        )
    rows = input.reshape(1, -1) if input.ndim < 2 else input
    counted = rows < size
    places = torch.where(counted, rows, 0).to(torch.int64)
    amounts = (
        weights.reshape(rows.shape)
        if weights.numel()
        else torch.ones(rows.shape, dtype=weights.dtype, device=input.device)
    )
    amounts = torch.where(counted, amounts, torch.zeros((), dtype=weights.dtype, device=input.device))
    allocatable([rows.shape[0], size], itemsize(weights))
    result = torch.zeros((rows.shape[0], size), dtype=weights.dtype, device=input.device)
    if size:
        result.scatter_add_(1, places, amounts)
        if binary_output:
            hits = torch.zeros_like(result).scatter_add_(1, places, counted.to(result.dtype))
            result = (hits != 0).to(result.dtype)
    return result[0].clone() if input.ndim < 2 else result


@DENSE_BINCOUNT.shape(values=["size"])
def dense_bincount_shape(input: Shape, size: np.ndarray | None, weights: Shape) -> Shape:
    if size is not None and size < 0:
        raise InvalidArgumentError(None, None, f"size ({size}) must be non-negative")
    last = None if size is None else int(size)
    if input.at_most(2).dims is None:
        return Shape(None)
    return Shape((last,)) if len(input) < 2 else Shape((input[0], last))


# ---- histograms -------------------------------------------------------------------------------------------------

HISTOGRAM_FIXED_WIDTH = define(
    "HistogramFixedWidth(values: T, value_range: T, nbins: scalar host int32) -> (out: dtype)",
    T=_COUNTED,
    dtype=one_of(*INDEX, default=dtypes.int32),
)


def _bins(values: torch.Tensor, low: torch.Tensor, high: torch.Tensor, nbins: int) -> torch.Tensor:
    step = (high.to(torch.float64) - low.to(torch.float64)) / nbins
    scaled = torch.floor((values.to(torch.float64) - low.to(torch.float64)) / step)
    return scaled.clamp(0, nbins - 1).to(torch.int64)


@HISTOGRAM_FIXED_WIDTH.kernel
def histogram_fixed_width_kernel(
    values: torch.Tensor, value_range: torch.Tensor, nbins: int, *, dtype: DType
) -> torch.Tensor:
    if value_range.shape != (2,):
        raise InvalidArgumentError(
            None, None, f"value_range should be a vector of 2 elements, but its shape is {list(value_range.shape)}"
        )
    low, high = value_range[0], value_range[1]
    if bool(low >= high):
        raise InvalidArgumentError(
            None,
            None,
            f"value_range should satisfy value_range[0] < value_range[1], but got '[{low.item()}, {high.item()}]'",
        )
    if nbins <= 0:
        raise InvalidArgumentError(None, None, f"nbins should be a positive number, but got '{nbins}'")
    if values.is_floating_point() and bool(torch.isnan(values).any()):
        raise InvalidArgumentError(None, None, "Histogram values must not contain NaN")
    allocatable([nbins], 8)
    return torch.bincount(_bins(values, low, high, nbins).reshape(-1), minlength=nbins).to(torch_dtype(dtype))


@HISTOGRAM_FIXED_WIDTH.shape(values=["nbins"])
def histogram_fixed_width_shape(values: Shape, value_range: Shape, nbins: np.ndarray | None) -> Shape:
    value_range.merge(Shape((2,)))
    if nbins is not None and nbins <= 0:
        raise InvalidArgumentError(None, None, f"Requires nbins > 0: {nbins}")
    return Shape((None if nbins is None else int(nbins),))


@export("histogram_fixed_width")
def histogram_fixed_width(
    values: Any, value_range: Any, nbins: Any = 100, dtype: Any = dtypes.int32, name: str | None = None
) -> Tensor:
    """Counts how many values fall into each of `nbins` bins of equal width. Values out of range count in the first or last bin."""
    with name_scope(name, "histogram_fixed_width", [values, value_range, nbins]) as scope:
        values = convert_to_tensor(values, name="values")
        value_range = convert_to_tensor(value_range, values.dtype.base_dtype, name="value_range")
        return HISTOGRAM_FIXED_WIDTH(values, value_range, nbins, dtype=dtype, name=scope)


@export("histogram_fixed_width_bins")
def histogram_fixed_width_bins(
    values: Any, value_range: Any, nbins: Any = 100, dtype: Any = dtypes.int32, name: str | None = None
) -> Tensor:
    """The bin of each value, among `nbins` bins of equal width. Values out of range go to the first or last bin."""
    with name_scope(name, "histogram_fixed_width_bins", [values, value_range, nbins]):
        values = convert_to_tensor(values, name="values")
        sizes = shaping.shape(values)
        flat = shaping.reshape(values, [-1])
        limits = convert_to_tensor(value_range, name="value_range")
        count = convert_to_tensor(nbins, dtypes.int32, name="nbins")
        positive = ops.assert_op(comparison.GREATER(count, 0), ["nbins must be positive, found", count])
        with control_dependencies([] if positive is None else [positive]):
            wide = casting.cast(count, values.dtype.base_dtype)
        low, high = limits[0], limits[1]
        scaled = arithmetic.truediv(arithmetic.subtract(flat, low), arithmetic.subtract(high, low))
        wide = casting.cast(wide, scaled.dtype.base_dtype)
        places = unary_functions.floor(arithmetic.multiply(wide, scaled))
        inside = arithmetic.maximum(
            arithmetic.minimum(places, arithmetic.subtract(wide, 1)), constants.number(0, places)
        )
        return shaping.reshape(casting.cast(inside, as_dtype(dtype)), sizes)


_FEW = 32768
_columns = extension("stoker._src.ops.native.columns")
BUCKETIZE = define("Bucketize(input: T) -> (output: int32)", T=_COUNTED, boundaries=FLOATS_LIST)
BUCKETIZE.shape(unchanged)


@BUCKETIZE.kernel
def bucketize_kernel(input: torch.Tensor, *, boundaries: tuple[float, ...]) -> torch.Tensor:
    edges = _edges(tuple(boundaries))
    wide = input if input.is_floating_point() else input.to(torch.float64)
    if wide.is_cpu and wide.dtype in (torch.float32, torch.float64) and wide.numel() <= _FEW:
        # Waking torch's threads for a batch of numbers takes longer than finding their buckets.
        numbers = wide.numpy()
        found = edges.astype(numbers.dtype, copy=False).searchsorted(numbers, side="right")
        return torch.from_numpy(np.asarray(found).astype(np.int32))
    known = torch.from_numpy(edges).to(device=wide.device, dtype=wide.dtype)
    return torch.bucketize(wide, known, right=True, out_int32=True)


@BUCKETIZE.together(lambda op: op._inputs[0].dtype)
def bucketize_many(rows: list[Any], attributes: list[dict[str, Any]]) -> list[torch.Tensor] | None:
    if _columns is None or any(not (x.is_cpu and x.dtype is torch.float32 and x.is_contiguous()) for (x,) in rows):
        return None
    sizes = [x.numel() for (x,) in rows]
    out = torch.empty(sum(sizes), dtype=torch.int32)
    tasks = [(x, size, _edges(tuple(each["boundaries"]))) for (x,), size, each in zip(rows, sizes, attributes)]
    _columns.bucketize(out, tasks, torch.get_num_threads())
    return [found.view(x.shape) for found, (x,) in zip(out.split(sizes), rows)]


def _bits_of_edges(op: Operation) -> list[int] | None:
    """The boundaries as the bits of doubles."""
    try:
        return _edges(tuple(op.attrs["boundaries"])).astype(np.float64).view(np.int64).tolist()
    except InvalidArgumentError:
        return None


BUCKETIZE.small("bucketize", _bits_of_edges)


@functools.lru_cache(maxsize=1024)
def _edges(boundaries: tuple[float, ...]) -> np.ndarray:
    """The boundaries, rounded to float32 as in TensorFlow."""
    if any(b < a for a, b in itertools.pairwise(boundaries)):
        raise InvalidArgumentError(None, None, f"Expected sorted boundaries, got {list(boundaries)}")
    return np.array(boundaries, np.float32)


@export(v1="contrib.layers.bucketize")
def bucketize(input: Any, boundaries: Any, name: str | None = None) -> Tensor:
    """The bucket of each element: the number of sorted `boundaries` that are not above it."""
    return BUCKETIZE(input, boundaries=list(boundaries), name=name)


# ---- nonzero elements -------------------------------------------------------------------------------------------


def _count_nonzero(x: Any, axis: Any, keepdims: bool, dtype: Any, name: str | None) -> Tensor:
    with name_scope(name, "count_nonzero", [x]):
        x = convert_to_tensor(x, name="input")
        kind = x.dtype.base_dtype
        zero = shaping.zeros([], kind) if kind is not dtypes.string else convert_to_tensor("")
        hits = casting.cast(comparison.not_equal(x, zero), dtypes.int64)
        return casting.cast(reductions.reduce_sum(hits, axis, keepdims), as_dtype(dtype))


@export(v1=("count_nonzero", "math.count_nonzero"))
def count_nonzero(
    input_tensor: Any = None,
    axis: Any = None,
    keepdims: Any = None,
    dtype: Any = dtypes.int64,
    name: str | None = None,
    reduction_indices: Any = None,
    keep_dims: Any = None,
    input: Any = None,
) -> Tensor:
    """Counts the nonzero elements (nonempty strings) over `axis`.

    Raises:
        ValueError: an argument is given under both of its names, or there is no input.
    """
    if input is not None:
        if input_tensor is not None:
            raise ValueError("Cannot specify both 'input' and 'input_tensor'.")
        input_tensor = input
    if input_tensor is None:
        raise ValueError("count_nonzero needs an input.")
    axis, keep = reductions.older_arguments(axis, keepdims, reduction_indices, keep_dims)
    return _count_nonzero(input_tensor, axis, keep, dtype, name)


@export(v2="math.count_nonzero")
def count_nonzero_v2(
    input: Any, axis: Any = None, keepdims: Any = None, dtype: Any = dtypes.int64, name: str | None = None
) -> Tensor:
    """Counts the nonzero elements (nonempty strings) over `axis`."""
    return _count_nonzero(input, axis, bool(keepdims), dtype, name)


# ---- confusion matrix -------------------------------------------------------------------------------------------


def _of_one_rank(labels: Tensor, predictions: Tensor) -> tuple[Tensor, Tensor]:
    """Drops the last dimension of one argument if it has size 1 and the other argument has no such dimension."""
    ranks = labels.static_shape.rank, predictions.static_shape.rank
    if None not in ranks and ranks[0] - ranks[1] == 1 and labels.static_shape[-1] in (1, None):  # type: ignore[operator]
        labels = shaping.squeeze(labels, [-1])
    elif None not in ranks and ranks[1] - ranks[0] == 1 and predictions.static_shape[-1] in (1, None):  # type: ignore[operator]
        predictions = shaping.squeeze(predictions, [-1])
    return labels, predictions


def _confusion_matrix(
    labels: Any, predictions: Any, num_classes: Any, dtype: Any, name: str | None, weights: Any
) -> Tensor:
    with name_scope(name, "confusion_matrix", [labels, predictions, weights]):
        labels, predictions = _of_one_rank(
            convert_to_tensor(labels, name="labels"), convert_to_tensor(predictions, name="predictions")
        )
        labels, predictions = casting.cast(labels, dtypes.int64), casting.cast(predictions, dtypes.int64)
        _check_classes(labels, "labels", None)
        _check_classes(predictions, "predictions", None)
        if num_classes is None:
            largest = arithmetic.maximum(reductions.reduce_max(predictions), reductions.reduce_max(labels))
            count = arithmetic.add(largest, constants.number(1, largest))
        else:
            count = casting.cast(convert_to_tensor(num_classes), dtypes.int64)
            _check_classes(labels, "labels", count)
            _check_classes(predictions, "predictions", count)
        kind = as_dtype(dtype)
        if weights is not None:
            weights = convert_to_tensor(weights)
            predictions.shape.assert_is_compatible_with(weights.shape)
        amounts = shaping.ones_like(predictions, kind) if weights is None else casting.cast(weights, kind)
        places = joining.stack([labels, predictions], axis=1)
        return scattering.SCATTER_ND(places, amounts, joining.PACK([count, count]))


def _check_classes(classes: Tensor, label: str, count: Tensor | None) -> None:
    """Refuses classes that are statically known to be out of range. Others are found when the matrix is computed."""
    found = constant_value(classes)
    if found is None or not found.size:
        return
    if found.min() < 0:
        raise InvalidArgumentError(None, None, f"`{label}` contains negative values: {found.tolist()}")
    limit = None if count is None else constant_value(count)
    if limit is not None and (found >= limit).any():
        raise InvalidArgumentError(
            None, None, f"`{label}` out of bound: {found.tolist()} is not below {limit.tolist()}"
        )


@export(v1=("confusion_matrix", "math.confusion_matrix", "contrib.metrics.confusion_matrix"))
def confusion_matrix(
    labels: Any,
    predictions: Any,
    num_classes: Any = None,
    dtype: Any = dtypes.int32,
    name: str | None = None,
    weights: Any = None,
) -> Tensor:
    """Counts (or sums of weights) by label (rows) and prediction (columns)."""
    return _confusion_matrix(labels, predictions, num_classes, dtype, name, weights)


@export(v2="math.confusion_matrix")
def confusion_matrix_v2(
    labels: Any,
    predictions: Any,
    num_classes: Any = None,
    weights: Any = None,
    dtype: Any = dtypes.int32,
    name: str | None = None,
) -> Tensor:
    """Counts (or sums of weights) by label (rows) and prediction (columns)."""
    return _confusion_matrix(labels, predictions, num_classes, dtype, name, weights)
