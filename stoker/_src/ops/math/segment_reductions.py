"""Segment reductions: rows with the same segment id are combined."""

from __future__ import annotations

import math as numbers
from collections.abc import Callable
from typing import Any

import numpy as np
import torch

from stoker._src.base import dtypes
from stoker._src.base.dtypes import INDEX, NUMERIC, REAL, DType
from stoker._src.base.errors import InvalidArgumentError
from stoker._src.base.export import export
from stoker._src.base.shapes import UNKNOWN_SHAPE, Shape
from stoker._src.graph.conversion import convert_to_tensor
from stoker._src.graph.definition import OpDefinition, define, one_of
from stoker._src.graph.scopes import name_scope
from stoker._src.graph.static_values import constant_value
from stoker._src.graph.tensor import Operation, Tensor
from stoker._src.ops.array import casting, constants, gathering, joining, ranges, shaping
from stoker._src.ops.math import arithmetic, comparison, unary_functions
from stoker._src.ops.support import table_rows
from stoker._src.ops.support.movement import allocatable
from stoker._src.ops.support.unsigned import modular, ordered

COUNT = one_of(*INDEX, default=dtypes.int32)


def _gather(x: Tensor, ids: Any) -> Tensor:
    """The rows `ids` of x."""
    return gathering.GATHER_V2(x, ids, 0)


# ---- combining rows ---------------------------------------------------------------------------------------------


def _start(count: int, data: torch.Tensor, fill: Any) -> torch.Tensor:
    sizes = allocatable([count, *data.shape[1:]], data.element_size())
    return data.new_full(sizes, fill) if fill else data.new_zeros(sizes)


@modular
def _add_rows(data: torch.Tensor, ids: torch.Tensor, count: int) -> torch.Tensor:
    result = _start(count, data, 0)
    return result if table_rows.add(result, ids, data) else result.index_add_(0, ids, data)


@modular
def _multiply_rows(data: torch.Tensor, ids: torch.Tensor, count: int) -> torch.Tensor:
    if data.is_complex():
        result = _start(count, data, 1)
        for place, row in zip(ids.tolist(), data):
            result[place] *= row
        return result
    return _start(count, data, 1).scatter_reduce_(0, _per_row(ids, data).expand_as(data), data, "prod")


def _extreme_rows(how: str, fill: Callable[[torch.dtype], Any]) -> Callable[..., torch.Tensor]:
    @ordered
    def combine(data: torch.Tensor, ids: torch.Tensor, count: int) -> torch.Tensor:
        return _start(count, data, fill(data.dtype)).scatter_reduce_(0, _per_row(ids, data).expand_as(data), data, how)

    return combine


def _limits(dtype: torch.dtype) -> Any:
    return torch.finfo(dtype) if dtype.is_floating_point else torch.iinfo(dtype)


def _ends(dtype: torch.dtype) -> tuple[Any, Any]:
    """The smallest and the largest value of a dtype, including infinities."""
    if dtype.is_floating_point:
        return -numbers.inf, numbers.inf
    return torch.iinfo(dtype).min, torch.iinfo(dtype).max


# As in TensorFlow, an empty segment, or one with only infinities, gives the extreme finite number.
_max_rows = _extreme_rows("amax", lambda dtype: _limits(dtype).min)
_min_rows = _extreme_rows("amin", lambda dtype: _limits(dtype).max)


def occurrences(ids: torch.Tensor, count: int) -> torch.Tensor:
    """How often each of the numbers below `count` occurs. On a GPU, torch's own function would make the host wait."""
    if not ids.is_cuda:
        return torch.bincount(ids, minlength=count)
    ones = torch.ones_like(ids, dtype=torch.int64)
    return torch.zeros(count, dtype=torch.int64, device=ids.device).index_add_(0, ids, ones)


def _mean_rows(data: torch.Tensor, ids: torch.Tensor, count: int) -> torch.Tensor:
    totals = _add_rows(data, ids, count)
    divisors = _per_row(occurrences(ids, count).clamp_(min=1), data)
    if data.is_floating_point() or data.is_complex():
        return totals / divisors.to(data.dtype)
    return arithmetic.TRUNCATE_DIV.kernel_fn(totals, divisors.to(data.dtype))  # type: ignore[misc]


def _per_row(numbers: torch.Tensor, data: torch.Tensor) -> torch.Tensor:
    """One number per row, shaped to multiply rows of `data`."""
    return numbers.reshape(-1, *[1] * (data.ndim - 1))


def _emptied(combine: Callable[..., torch.Tensor]) -> Callable[..., torch.Tensor]:
    """Makes empty segments 0, as the sorted ops do, instead of the identity of the reduction."""

    def run(data: torch.Tensor, ids: torch.Tensor, count: int) -> torch.Tensor:
        result = combine(data, ids, count)
        return torch.where(_per_row(occurrences(ids, count) == 0, data), result.new_zeros(()), result)

    return run


# ---- sorted segments --------------------------------------------------------------------------------------------


def _check_sorted(data: torch.Tensor, ids: torch.Tensor) -> None:
    if ids.ndim != 1:
        raise InvalidArgumentError(None, None, f"segment_ids should be a vector, but has shape {list(ids.shape)}.")
    if data.ndim == 0 or ids.shape[0] != data.shape[0]:
        raise InvalidArgumentError(
            None,
            None,
            f"segment_ids should be the same size as dimension 0 of input: {ids.shape[0]} ids, input {list(data.shape)}.",
        )
    if ids.numel():
        if int(ids[0]) < 0:
            raise InvalidArgumentError(
                None,
                None,
                f"Segment id {int(ids[0])} out of range [0, {int(ids[-1]) + 1}), possibly because 'segment_ids' input is not sorted.",
            )
        if ids.numel() > 1 and bool((ids[1:] < ids[:-1]).any()):
            raise InvalidArgumentError(None, None, "segment ids are not increasing")


def _count_of_sorted(ids: torch.Tensor) -> torch.Tensor:
    """The number of segments of sorted ids."""
    _check_sorted(ids, ids)
    return ids[-1:].sum() + 1 if ids.numel() else torch.zeros((), dtype=torch.int64)


def segment_shape(data: Shape, segment_ids: Shape) -> Shape:
    segment_ids.of_rank(1)
    return Shape((None,)).concat(data.at_least(1)[1:])


def _sorted_op(
    name: str,
    combine: Callable[..., torch.Tensor],
    allowed: tuple[DType, ...],
    counted: Callable[..., torch.Tensor] | None = None,
) -> OpDefinition:
    """Defines a sorted op, and its form with a given number of segments, which may fill empty segments differently."""

    def kernel(data: torch.Tensor, segment_ids: torch.Tensor) -> torch.Tensor:
        _check_sorted(data, segment_ids)
        count = int(segment_ids[-1]) + 1 if segment_ids.numel() else 0
        return combine(data, segment_ids.to(torch.int64), count)

    kernel.__name__ = kernel.__qualname__ = f"segment_{name.lower()}_kernel"
    definition = define(f"Segment{name}(data: T, segment_ids: Tindices) -> (output: T)", T=allowed, Tindices=INDEX)
    definition.kernel(kernel)
    definition.shape(segment_shape)

    def counted_rows(data: torch.Tensor, segment_ids: torch.Tensor, count: int) -> torch.Tensor:
        return combine(data, segment_ids.to(torch.int64), count)

    definition.planning.sized = 1, _count_of_sorted, counted_rows
    definition.planning.sized_by = (1,)  # the sums of several columns by the same ids have as many rows
    if name != "Mean":
        _counted_op(name, counted or combine, allowed)
    return definition


def _counted_op(name: str, combine: Callable[..., torch.Tensor], allowed: tuple[DType, ...]) -> None:
    """Defines the op with a given number of segments. TensorFlow has only an XLA kernel and no gradient for it."""

    def kernel(data: torch.Tensor, segment_ids: torch.Tensor, num_segments: int) -> torch.Tensor:
        _check_sorted(data, segment_ids)
        last = int(segment_ids[-1]) if segment_ids.numel() else -1
        if num_segments < 0 or last >= num_segments:
            raise InvalidArgumentError(None, None, f"Segment id {last} out of range [0, {num_segments})")
        return combine(data, segment_ids.to(torch.int64), num_segments)

    kernel.__name__ = kernel.__qualname__ = f"segment_{name.lower()}_v2_kernel"
    definition = define(
        f"Segment{name}V2(data: T, segment_ids: vector Tindices, num_segments: scalar host Tnumsegments) -> (output: T)",
        T=allowed,
        Tindices=INDEX,
        Tnumsegments=COUNT,
    )
    definition.kernel(kernel)

    @definition.shape(values=["num_segments"])
    def counted_shape(data: Shape, segment_ids: Shape, num_segments: np.ndarray | None) -> Shape:
        data.at_least(1)[:1].merge(segment_ids)
        if num_segments is not None and num_segments < 0:
            raise InvalidArgumentError(None, None, f"num_segments must be non-negative but is {num_segments}")
        return Shape((None if num_segments is None else int(num_segments),)).concat(data[1:])


SEGMENT_SUM = _sorted_op("Sum", _add_rows, NUMERIC)
SEGMENT_SUM.small("segment_sum", lambda op: [1])
SEGMENT_MEAN = _sorted_op("Mean", _mean_rows, NUMERIC)
SEGMENT_MEAN.small("segment_mean", lambda op: [1])
SEGMENT_PROD = _sorted_op("Prod", _multiply_rows, NUMERIC)
SEGMENT_MIN = _sorted_op("Min", _emptied(_extreme_rows("amin", lambda dtype: _ends(dtype)[1])), REAL, _min_rows)
SEGMENT_MAX = _sorted_op("Max", _emptied(_extreme_rows("amax", lambda dtype: _ends(dtype)[0])), REAL, _max_rows)
SEGMENT_MAX.small("segment_max", lambda op: [1, 0])


@SEGMENT_SUM.grad
def segment_sum_grad(op: Operation, g: Tensor) -> Any:
    return _gather(g, op.inputs[1]), None


@SEGMENT_MEAN.grad
def segment_mean_grad(op: Operation, g: Tensor) -> Any:
    data, ids = op.inputs
    column = joining.concat(
        [shaping.SHAPE_OP(ids), shaping.fill(arithmetic.subtract(shaping.reshape(ranges.rank(data), [1]), 1), 1)], 0
    )
    ones = shaping.fill(column, constants.number(1, g))
    return _gather(arithmetic.realdiv(g, SEGMENT_SUM(ones, ids)), ids), None


def _shared(op: Operation, g: Tensor, total: Callable[[Tensor], Tensor]) -> Tensor:
    """The gradient of a minimum or maximum: rows that tie share it."""
    data, ids = op.inputs[:2]
    hits = comparison.equal(data, _gather(op.outputs[0], ids))
    counts = total(casting.cast(hits, g.dtype.base_dtype))
    share = _gather(arithmetic.realdiv(g, counts), ids)
    return arithmetic.select(hits, share, shaping.zeros_like(share))


@SEGMENT_MIN.grad
@SEGMENT_MAX.grad
def segment_extreme_grad(op: Operation, g: Tensor) -> Any:
    return _shared(op, g, lambda hits: SEGMENT_SUM(hits, op.inputs[1])), None


@SEGMENT_PROD.grad
def segment_prod_grad(op: Operation, g: Tensor) -> Any:
    """The derivative for a row is the product of the segment's other rows. Zeros are counted separately."""
    data, ids = op.inputs
    return _product_grad(data, ids, g, lambda x, reduce: reduce(x, ids), SEGMENT_SUM, SEGMENT_PROD), None


def _product_grad(data: Tensor, ids: Tensor, g: Tensor, apply: Any, total: Any, product: Any) -> Tensor:
    zero = comparison.equal(data, constants.number(0, data))
    zeros = apply(casting.cast(zero, dtypes.int32), total)
    # If a segment has two zeros, every derivative is zero.
    g = arithmetic.select(comparison.greater(zeros, 1), shaping.zeros_like(g), g)
    whole = apply(arithmetic.select(zero, shaping.ones_like(data), data), product)
    rows = _gather(apply(data, product), ids)
    without = _gather(whole, ids)
    partial = arithmetic.select(
        zero, without, arithmetic.realdiv(rows, arithmetic.select(zero, shaping.ones_like(data), data))
    )
    return arithmetic.multiply(_gather(g, ids), partial)


def _segment_function(name: str, definition: OpDefinition, doc: str) -> Any:
    def apply(data: Any, segment_ids: Any, name: str | None = None) -> Tensor:
        return definition(data, segment_ids, name=name)

    apply.__name__ = apply.__qualname__ = name
    apply.__doc__ = f"{doc} of the rows of each segment. `segment_ids` must be sorted and non-negative."
    return export(f"math.{name}", v1=name)(apply)


segment_sum = _segment_function("segment_sum", SEGMENT_SUM, "The sum")
segment_mean = _segment_function("segment_mean", SEGMENT_MEAN, "The mean")
segment_prod = _segment_function("segment_prod", SEGMENT_PROD, "The product")
segment_min = _segment_function("segment_min", SEGMENT_MIN, "The smallest")
segment_max = _segment_function("segment_max", SEGMENT_MAX, "The largest")

# ---- unsorted segments ------------------------------------------------------------------------------------------


def _flattened(data: torch.Tensor, ids: torch.Tensor, count: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Flattens rows and segment ids to one dimension each, and drops rows with negative ids.

    On a GPU, where a check of the ids would make the host wait, all rows stay.
    """
    if count < 0:
        raise InvalidArgumentError(None, None, f"Input num_segments == {count} must not be negative.")
    if tuple(data.shape[: ids.ndim]) != tuple(ids.shape):
        raise InvalidArgumentError(
            None, None, f"data.shape = {list(data.shape)} does not start with segment_ids.shape = {list(ids.shape)}"
        )
    rows = data.reshape(ids.numel(), *data.shape[ids.ndim :])
    places = ids.reshape(-1).to(torch.int64)
    if places.numel() and not places.is_cuda:
        low, high = torch.aminmax(places)
        if int(high) >= count:
            bad = int(torch.argmax((places >= count).to(torch.uint8)))
            raise InvalidArgumentError(
                None, None, f"segment_ids[{bad}] = {int(places[bad])} is out of range [0, {count})"
            )
        if int(low) < 0:
            keep = (places >= 0).nonzero().squeeze(1)
            rows, places = rows[keep], places[keep]
    return rows, places


def unsorted_segment_shape(data: Shape, segment_ids: Shape, num_segments: np.ndarray | None) -> Shape:
    if num_segments is not None and num_segments < 0:
        raise InvalidArgumentError(
            None, None, f"Dimension size, given by scalar input 2, must be non-negative but is {num_segments}"
        )
    rank = segment_ids.rank
    if data.dims is None or rank is None:
        return UNKNOWN_SHAPE
    data.at_least(rank)[:rank].merge(segment_ids)
    return Shape((None if num_segments is None else int(num_segments), *data.dims[rank:]))


def _unsorted_op(
    name: str, combine: Callable[..., torch.Tensor], allowed: tuple[DType, ...], ids: Any = INDEX
) -> OpDefinition:
    def kernel(data: torch.Tensor, segment_ids: torch.Tensor, num_segments: int) -> torch.Tensor:
        if combine is _add_rows and data.shape[:1] == segment_ids.shape and num_segments >= 0:
            result = _start(num_segments, data, 0)
            if table_rows.add(result, segment_ids, data, skip_negatives=True):
                return result
        rows, places = _flattened(data, segment_ids, num_segments)
        if not places.is_cuda:
            return combine(rows, places, num_segments)
        # Rows whose id is out of range go to a segment of their own, which is cut off.
        places = places.masked_fill((places < 0) | (places >= num_segments), num_segments)
        return combine(rows, places, num_segments + 1)[:num_segments]

    kernel.__name__ = kernel.__qualname__ = f"unsorted_segment_{name.lower()}_kernel"
    definition = define(
        f"UnsortedSegment{name}(data: T, segment_ids: Tindices, num_segments: scalar host Tnumsegments) -> (output: T)",
        T=allowed,
        Tindices=ids,
        Tnumsegments=COUNT,
    )
    definition.kernel(kernel)
    definition.shape(unsorted_segment_shape, values=["num_segments"])
    if name != "Prod":
        definition.lower(
            lambda build, op, data, segment_ids, num_segments: build.segments(
                name.lower(), data, segment_ids, num_segments
            )
        )
    return definition


UNSORTED_SEGMENT_SUM = _unsorted_op("Sum", _add_rows, NUMERIC, (dtypes.int16, *INDEX))
UNSORTED_SEGMENT_SUM.small("segment_sum", lambda op: [0])
# Padded ids are -1, or places among padded indices. The number of segments tells whether the result is padded.
UNSORTED_SEGMENT_SUM.planning.padded = lambda op, padded, shape_of: [padded[2]] if padded[0] == padded[1] else None
UNSORTED_SEGMENT_PROD = _unsorted_op("Prod", _multiply_rows, NUMERIC)
UNSORTED_SEGMENT_MIN = _unsorted_op("Min", _min_rows, REAL)
UNSORTED_SEGMENT_MAX = _unsorted_op("Max", _max_rows, REAL)
UNSORTED_SEGMENT_MAX.small("segment_max", lambda op: [0, int(np.float32(np.finfo(np.float32).min).view(np.int32))])


@UNSORTED_SEGMENT_SUM.equals
def sum_of_distinct(op: Operation, plan: Any) -> list[Tensor | None] | None:
    """If the segment ids are the places of distinct elements among themselves, every row is a segment of its own.

    Optimizers sum the rows of a sparse gradient that have the same index. Often the gradient has no such rows.
    """
    data, ids, count = op.inputs
    places, size = plan.made_by(ids), plan.made_by(count)
    if places is None or size is None or places.op.type != "Unique" or places.value_index != 1:
        return None
    source = plan.made_by(places.op.inputs[0])
    if source is None or source.value_index not in source.op.definition.planning.distinct:
        return None
    return [data] if _is_length(size, {source, places.op.outputs[0]}, plan.made_by) else None


def _is_length(size: Tensor, vectors: set[Tensor], made_by: Callable[[Tensor], Tensor | None]) -> bool:
    """Whether `size` is `tf.shape(vector)[0]` for one of these vectors."""
    if size.op.type != "StridedSlice" or size.op.attrs["shrink_axis_mask"] != 1 or size.op.attrs["new_axis_mask"]:
        return False
    begin, sizes = constant_value(size.op.inputs[1]), made_by(size.op.inputs[0])
    if begin is None or begin.tolist() != [0] or made_by(size.op.inputs[1]) is None:
        return False
    return sizes is not None and sizes.op.type == "Shape" and made_by(sizes.op.inputs[0]) in vectors


def _gather_dropping_negatives(x: Tensor, ids: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Gathers rows of x, with zeros for negative ids. Also returns the clamped ids and a mask of the valid ones."""
    usable = arithmetic.maximum(ids, shaping.zeros_like(ids))
    rows = _gather(x, usable)
    kept = comparison.greater_equal(ids, constants.number(0, ids))
    extra = arithmetic.subtract(ranges.rank(rows), ranges.rank(ids))
    shape = joining.concat([shaping.SHAPE_OP(kept), shaping.fill(shaping.reshape(extra, [1]), 1)], 0)
    mask = shaping.reshape(kept, shape)
    return arithmetic.select(mask, rows, shaping.zeros_like(rows)), usable, mask


@UNSORTED_SEGMENT_SUM.grad
def unsorted_segment_sum_grad(op: Operation, g: Tensor) -> Any:
    return _gather_dropping_negatives(g, op.inputs[1])[0], None, None


@UNSORTED_SEGMENT_MIN.grad
@UNSORTED_SEGMENT_MAX.grad
def unsorted_segment_extreme_grad(op: Operation, g: Tensor) -> Any:
    data, ids, count = op.inputs
    chosen, usable, mask = _gather_dropping_negatives(op.outputs[0], ids)
    hits = comparison.logical_and(comparison.equal(data, chosen), mask)
    counts = UNSORTED_SEGMENT_SUM(casting.cast(hits, g.dtype.base_dtype), ids, count)
    share = _gather(arithmetic.realdiv(g, counts), usable)
    return arithmetic.select(hits, share, shaping.zeros_like(share)), None, None


@UNSORTED_SEGMENT_PROD.grad
def unsorted_segment_prod_grad(op: Operation, g: Tensor) -> Any:
    """The derivative for a row is the product of the segment's other rows. Zeros are counted separately."""
    data, ids, count = op.inputs
    zero = comparison.equal(data, constants.number(0, data))
    zeros = UNSORTED_SEGMENT_SUM(casting.cast(zero, dtypes.int32), ids, count)
    g = arithmetic.select(comparison.greater(zeros, 1), shaping.zeros_like(g), g)
    nonzero = arithmetic.select(zero, shaping.ones_like(data), data)
    usable = arithmetic.maximum(ids, shaping.zeros_like(ids))
    without = _gather(UNSORTED_SEGMENT_PROD(nonzero, ids, count), usable)
    whole = _gather(UNSORTED_SEGMENT_PROD(data, ids, count), usable)
    partial = arithmetic.select(zero, without, arithmetic.realdiv(whole, nonzero))
    return arithmetic.multiply(_gather_dropping_negatives(g, ids)[0], partial), None, None


def _unsorted_function(name: str, definition: OpDefinition, doc: str) -> Any:
    def apply(data: Any, segment_ids: Any, num_segments: Any, name: str | None = None) -> Tensor:
        return definition(data, segment_ids, num_segments, name=name)

    apply.__name__ = apply.__qualname__ = name
    apply.__doc__ = (
        f"{doc} of the rows of each segment. `segment_ids` need not be sorted; rows with negative ids are ignored."
    )
    return export(f"math.{name}", v1=name)(apply)


unsorted_segment_sum = _unsorted_function("unsorted_segment_sum", UNSORTED_SEGMENT_SUM, "The sum")
unsorted_segment_prod = _unsorted_function("unsorted_segment_prod", UNSORTED_SEGMENT_PROD, "The product")
unsorted_segment_min = _unsorted_function("unsorted_segment_min", UNSORTED_SEGMENT_MIN, "The smallest")
unsorted_segment_max = _unsorted_function("unsorted_segment_max", UNSORTED_SEGMENT_MAX, "The largest")


def _row_counts(data: Tensor, ids: Tensor, num_segments: Any) -> Tensor:
    """The number of rows in each segment (at least 1), shaped to divide rows of `data`."""
    num_segments = convert_to_tensor(num_segments)
    ones = shaping.ones(shaping.SHAPE_OP(ids), dtype=data.dtype.base_dtype)
    counts = UNSORTED_SEGMENT_SUM(ones, ids, num_segments)
    extra = arithmetic.subtract(ranges.rank(data), ranges.rank(ids))
    shape = joining.concat(
        [
            shaping.reshape(num_segments, [1]),
            shaping.fill(shaping.reshape(extra, [1]), constants.number(1, num_segments)),
        ],
        0,
    )
    return arithmetic.maximum(shaping.reshape(counts, shape), constants.number(1, counts))


@export("math.unsorted_segment_mean", v1="unsorted_segment_mean")
def unsorted_segment_mean(data: Any, segment_ids: Any, num_segments: Any, name: str | None = None) -> Tensor:
    """The mean of the rows of each segment. The ids need not be sorted. Empty segments give 0."""
    with name_scope(name, "UnsortedSegmentMean"):
        data, ids = convert_to_tensor(data), convert_to_tensor(segment_ids)
        counts = _row_counts(data, ids, num_segments)
        return UNSORTED_SEGMENT_SUM(data, ids, num_segments) / counts


@export("math.unsorted_segment_sqrt_n", v1="unsorted_segment_sqrt_n")
def unsorted_segment_sqrt_n(data: Any, segment_ids: Any, num_segments: Any, name: str | None = None) -> Tensor:
    """The sum of the rows of each segment divided by the square root of their number. The ids need not be sorted."""
    with name_scope(name, "UnsortedSegmentSqrtN"):
        data, ids = convert_to_tensor(data), convert_to_tensor(segment_ids)
        counts = _row_counts(data, ids, num_segments)
        return UNSORTED_SEGMENT_SUM(data, ids, num_segments) / unary_functions.sqrt(counts)
