"""Segment reductions of gathered rows: `SparseSegmentSum(data, indices, segment_ids)` combines the rows `data[indices]`."""

from __future__ import annotations

import functools
import sys
from typing import Any

import numpy as np
import torch

from stoker._src.base import dtypes
from stoker._src.base.dtypes import FLOATS, INDEX, REAL, DType
from stoker._src.base.errors import InvalidArgumentError
from stoker._src.base.export import export, named
from stoker._src.base.shapes import Shape
from stoker._src.graph.definition import OpDefinition, define, one_of
from stoker._src.graph.indexed_slices import IndexedSlices
from stoker._src.graph.planning import Prepared
from stoker._src.graph.tensor import Operation, Tensor
from stoker._src.ops.array import shaping
from stoker._src.ops.math.segment_reductions import occurrences
from stoker._src.ops.support import table_rows
from stoker._src.ops.support.movement import allocatable, itemsize
from stoker._src.ops.support.unsigned import SIGNED_TWIN
from stoker._src.ops.support.values import torch_dtype

_PLACES = one_of(*INDEX, default=dtypes.int32)
_SHORT = 256  # most elements of a row of reductions that share a call; one with longer rows is worth threads of its own
_SURELY_FITS = 1 << 16  # with at most this many segments, the result is not much larger than the table


def _weights(how: str, ids: torch.Tensor, count: int, dtype: torch.dtype) -> torch.Tensor | None:
    """The factor for each segment's sum; None for plain sums."""
    if how == "Sum":
        return None
    sizes = occurrences(ids, count).clamp_(min=1).to(torch.float64)
    if how == "SqrtN":
        # Unlike NumPy's, torch's square root on a CPU is not always rounded correctly.
        sizes = torch.from_numpy(np.sqrt(sizes.numpy())) if sizes.is_cpu else torch.sqrt(sizes)
    return (1 / sizes).to(dtype)


def _check_places(indices: torch.Tensor, count: int) -> None:
    if not indices.numel():
        return
    low, high = torch.aminmax(indices)
    if int(low) < 0 or int(high) >= count:
        bad = int(torch.argmax(((indices < 0) | (indices >= count)).to(torch.uint8)))
        raise InvalidArgumentError(None, None, f"Bad: indices[{bad}] == {int(indices[bad])} out of range [0, {count})")


def _summed(count: int, places: torch.Tensor, rows: torch.Tensor) -> torch.Tensor:
    """[count, ...]: the sums of the rows that have the same place."""
    result = torch.zeros((count, *rows.shape[1:]), dtype=rows.dtype, device=rows.device)
    return result if table_rows.add(result, places, rows) else result.index_add_(0, places, rows)


def _combine(how: str, data: torch.Tensor, indices: torch.Tensor, ids: torch.Tensor, count: int | None) -> torch.Tensor:
    segments = count
    if segments is None and ids.is_cpu and ids.ndim == 1 and ids.numel():
        segments = int(ids[-1]) + 1  # ids are ascending, or `combine` refuses them
    if segments is not None:
        if segments > _SURELY_FITS:
            allocatable([segments, *data.shape[1:]], itemsize(data))
        result = table_rows.combine(how, data, indices, ids, segments)
        if result is not None:
            return result
    count = _checked_count(indices, ids, count)
    _check_places(indices, data.shape[0])
    places = ids.to(torch.int64).contiguous()
    twin = SIGNED_TWIN.get(data.dtype)
    bits = data if twin is None else data.view(twin)
    rows = table_rows.gather(bits, indices)
    if rows is None:
        rows = bits.index_select(0, indices.to(torch.int64))
    wide = rows.float() if rows.dtype in (torch.float16, torch.bfloat16) else rows
    allocatable([count, *rows.shape[1:]], itemsize(wide))
    result = _summed(count, places, wide)
    weights = _weights(how, places, count, wide.dtype)
    if weights is not None:
        result *= weights.reshape(-1, *[1] * (rows.ndim - 1))
    return result.to(rows.dtype) if twin is None else result.view(data.dtype)


def _checked_count(indices: torch.Tensor, ids: torch.Tensor, count: int | None) -> int:
    """The number of segments: the given one, or one more than the last.

    Raises:
        InvalidArgumentError: ids are unsorted, negative or too large.
    """
    if indices.ndim != 1 or ids.ndim != 1 or indices.shape != ids.shape:
        raise InvalidArgumentError(
            None,
            None,
            f"segment_ids and indices should have same size, but their shapes are {list(ids.shape)} and {list(indices.shape)}.",
        )
    if ids.numel() > 1 and bool((ids[1:] < ids[:-1]).any()):
        raise InvalidArgumentError(None, None, "segment ids are not increasing")
    if ids.numel() and int(ids[0]) < 0:
        raise InvalidArgumentError(None, None, f"segment ids must be >= 0, but the first is {int(ids[0])}.")
    last = int(ids[-1]) if ids.numel() else -1
    if last >= 2**31 - 1:
        raise InvalidArgumentError(None, None, f"Last segment id must be < {2**31 - 1}, got {last}")
    if count is None:
        count = last + 1
    elif count < 0 or last >= count:
        raise InvalidArgumentError(None, None, f"segment ids must be < num_segments: {last} is not below {count}.")
    return count


def _prepared_sums(how: str, op: Operation, shape_of: Any) -> Prepared | None:
    """The host looks at indices, segments and their number; the device takes a weight for each index."""
    data = op._inputs[0]
    if not _can_prepare(data):
        return None
    rows = _rows_of(data, shape_of)

    def prepare(indices: torch.Tensor, ids: torch.Tensor, count: int | None = None) -> tuple[torch.Tensor, ...]:
        count = _checked_count(indices, ids, count)
        _check_places(indices, sys.maxsize if rows is None else rows)
        return _prepared_places(how, indices, ids, data, count, rows, indices)

    def kernel(data: torch.Tensor, *prepared: torch.Tensor, **attributes: Any) -> torch.Tensor:
        indices, ids, weights, sizes = prepared
        if sizes.shape[1] > data.shape[0]:
            bad = sizes.shape[1] - 1
            raise InvalidArgumentError(None, None, f"Bad: an index is {bad}, out of range [0, {data.shape[0]})")
        return _summed(sizes.shape[0], ids, _weighted(data.index_select(0, indices), weights))

    takes = tuple(arg.name for arg in op.definition.inputs[1:])
    return Prepared(takes, prepare, 4, ("data",), kernel)


def _prepared_gradient(how: str, op: Operation, shape_of: Any) -> Prepared | None:
    grad = op._inputs[0]
    if not _can_prepare(grad):
        return None
    rows = _rows_of(grad, shape_of)

    def prepare(indices: torch.Tensor, ids: torch.Tensor, output_dim0: int) -> tuple[torch.Tensor, ...]:
        _check_segments(indices, ids, sys.maxsize if rows is None else rows)
        _check_places(indices, output_dim0)
        return _prepared_places(how, indices, ids, grad, output_dim0, rows, ids)

    def kernel(grad: torch.Tensor, *prepared: torch.Tensor, **attributes: Any) -> torch.Tensor:
        indices, ids, weights, sizes = prepared
        if sizes.shape[1] > grad.shape[0]:
            raise _bad_segment(sizes.shape[1] - 1, grad.shape[0])
        return _summed(sizes.shape[0], indices, _weighted(grad.index_select(0, ids), weights))

    return Prepared(("indices", "segment_ids", "output_dim0"), prepare, 4, ("grad",), kernel)


def _can_prepare(data: Tensor) -> bool:
    return data.dtype.base_dtype in (dtypes.float32, dtypes.float64)


def _rows_of(data: Tensor, shape_of: Any) -> int | None:
    shape = shape_of(data)
    return shape[0] if shape.rank else None


def _prepared_places(
    how: str,
    indices: torch.Tensor,
    ids: torch.Tensor,
    data: Tensor,
    count: int,
    rows: int | None,
    taken: torch.Tensor,
) -> tuple[torch.Tensor, ...]:
    """Indices and segments as 64-bit integers, the weight of each index (none for plain sums), and an empty tensor that has the size of the
    result and, if the number of rows is not known before, the number of rows that are needed.
    """
    allocatable([count], 8)
    places = ids.to(torch.int64).contiguous()
    segments = int(places.max()) + 1 if places.numel() else 0
    weights = _weights(how, places, segments, torch_dtype(data.dtype.base_dtype))
    needed = 0 if rows is not None or not taken.numel() else int(taken.max()) + 1
    each = torch.empty(0) if weights is None else weights[places]
    return indices.to(torch.int64), places, each, torch.empty((count, needed, 0))


def _weighted(rows: torch.Tensor, weights: torch.Tensor) -> torch.Tensor:
    is_plain = not weights.numel() and rows.shape[0]
    return rows if is_plain else rows.mul_(weights.reshape(-1, *[1] * (rows.ndim - 1)))


def _check_segments(indices: torch.Tensor, ids: torch.Tensor, count: int) -> None:
    if indices.shape != ids.shape:
        raise InvalidArgumentError(
            None,
            None,
            f"segment_ids and indices should have same size: {list(ids.shape)} and {list(indices.shape)}.",
        )
    if ids.numel() and (int(ids.min()) < 0 or int(ids.max()) >= count):
        raise _bad_segment(int(ids[(ids < 0) | (ids >= count)][0]), count)


def _bad_segment(segment: int, count: int) -> InvalidArgumentError:
    return InvalidArgumentError(None, None, f"Segment id {segment} out of range [0, {count}): grad has {count} rows.")


def _row_width(op: Operation) -> Any:
    """What reductions that run together have in common: the dtypes and the size of a row."""
    data, indices = op._inputs[:2]
    inner = data.static_shape[1:] if data.static_shape.rank else None
    if inner is None or inner.size is None or inner.size > _SHORT or data.dtype.base_dtype not in FLOATS:
        return None
    return data.dtype.base_dtype, indices.dtype, inner.dims


_KINDS = {"Sum": 0, "Mean": 1, "SqrtN": 2}  # in native/segment_rows.h


def _definitions(how: str, allowed: tuple[DType, ...]) -> tuple[OpDefinition, OpDefinition, OpDefinition]:
    """Defines the op, the op with a given number of segments, and the gradient of both."""

    def plain(data: torch.Tensor, indices: torch.Tensor, segment_ids: torch.Tensor) -> torch.Tensor:
        return _combine(how, data, indices, segment_ids, None)

    def counted(
        data: torch.Tensor, indices: torch.Tensor, segment_ids: torch.Tensor, num_segments: int
    ) -> torch.Tensor:
        return _combine(how, data, indices, segment_ids, num_segments)

    def gradient(
        grad: torch.Tensor, indices: torch.Tensor, segment_ids: torch.Tensor, output_dim0: int
    ) -> torch.Tensor:
        found = None
        if indices.shape == segment_ids.shape and output_dim0 > 0:
            found = table_rows.combine_grad(how, grad, indices, segment_ids, output_dim0)
        if found is not None:
            allocatable([output_dim0, *grad.shape[1:]], itemsize(grad))
            return _summed(output_dim0, found[1].to(torch.int64), found[0])
        places = segment_ids.to(torch.int64).contiguous()
        count = grad.shape[0] if grad.ndim else 0
        _check_segments(indices, places, count)
        _check_places(indices, output_dim0)
        weights = _weights(how, places, count, grad.dtype)
        rows = grad if weights is None else grad * weights.reshape(-1, *[1] * (grad.ndim - 1))
        allocatable([output_dim0, *grad.shape[1:]], itemsize(grad))
        taken = table_rows.gather(rows, places)
        return _summed(output_dim0, indices.to(torch.int64), rows.index_select(0, places) if taken is None else taken)

    first = define(
        f"SparseSegment{how}(data: T, indices: Tidx, segment_ids: Tsegmentids) -> (output: T)",
        T=allowed,
        Tidx=_PLACES,
        Tsegmentids=_PLACES,
        sparse_gradient=False,
    )
    first.kernel(plain)
    kind = _KINDS[how]
    first.small("sparse_segments", lambda op: [kind])
    first.planning.prepares = functools.partial(_prepared_sums, how)
    first.planning.padded = lambda op, padded, shape_of: None if any(padded[1:]) else [False]
    first.shape(sparse_segment_shape)
    second = define(
        f"SparseSegment{how}WithNumSegments(data: T, indices: Tidx, segment_ids: Tsegmentids, "
        "num_segments: scalar host Tnumsegments) -> (output: T)",
        T=allowed,
        Tidx=_PLACES,
        Tnumsegments=_PLACES,
        Tsegmentids=_PLACES,
        sparse_gradient=False,
    )
    second.kernel(counted)
    second.small("sparse_segments", lambda op: [kind])
    second.planning.prepares, second.planning.padded = first.planning.prepares, first.planning.padded
    second.shape(counted_shape, values=["num_segments"])
    third = define(
        f"SparseSegment{how}Grad(grad: T, indices: vector Tidx, segment_ids: vector Tsegmentids, output_dim0: scalar host int32) -> (output: T)",
        T=FLOATS,
        Tidx=_PLACES,
        Tsegmentids=_PLACES,
    )
    third.kernel(gradient)
    third.small("sparse_segments_grad", lambda op: [kind])
    third.planning.prepares = functools.partial(_prepared_gradient, how)
    # The rows that are too many belong to no index, so they stay zero.
    third.planning.padded = lambda op, padded, shape_of: None if any(padded[:3]) else [True]
    third.shape(gradient_shape, values=["output_dim0"])
    fourth = define(
        f"SparseSegment{how}GradV2(grad: T, indices: vector Tidx, segment_ids: vector Tsegmentids, dense_output_dim0: scalar host int32) -> "
        "(output: T, sorted_unique_indices: Tidx)",
        T=FLOATS,
        Tidx=_PLACES,
        Tsegmentids=_PLACES,
    )

    def rows_alone(
        grad: torch.Tensor, indices: torch.Tensor, segment_ids: torch.Tensor, dense_output_dim0: int
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """The rows of the gradient that can be nonzero, and their sorted indices."""
        found = table_rows.combine_grad(how, grad, indices, segment_ids, dense_output_dim0)
        if found is not None:
            return found
        _check_places(indices, dense_output_dim0)
        rows, places = torch.unique(indices, return_inverse=True)
        return gradient(grad, places, segment_ids, rows.numel()), rows

    fourth.kernel(rows_alone)
    fourth.small("sparse_segments_grad", lambda op: [kind])

    @fourth.together(_row_width)
    def rows_of_many(rows: list[Any], attributes: Any) -> list[torch.Tensor] | None:
        return table_rows.combine_grad_many(how, rows)

    fourth.planning.distinct = frozenset((1,))

    @fourth.shape
    def rows_alone_shape(grad: Shape, indices: Shape, segment_ids: Shape, dense_output_dim0: Shape) -> Any:
        indices.merge(segment_ids)
        return Shape((None,)).concat(grad.at_least(1)[1:]), Shape((None,))

    def backward(op: Operation, g: Tensor) -> Any:
        data, indices, ids = op.inputs[:3]
        rows = data.static_shape[0]
        rows = shaping.SHAPE_OP(data)[0] if rows is None else rows
        if op.attr("sparse_gradient"):
            values, places = fourth(g, indices, ids, rows)
            found = IndexedSlices(values, places, shaping.SHAPE_OP(data))
            return [found] + [None] * (len(op.inputs) - 1)
        return [third(g, indices, ids, rows)] + [None] * (len(op.inputs) - 1)

    @second.together(_row_width)
    def many_counted(rows: list[Any], attributes: Any) -> list[torch.Tensor] | None:
        return table_rows.combine_many(how, rows) if all(count <= _SURELY_FITS for *_, count in rows) else None

    first.grad(backward)
    second.grad(backward)
    return first, second, third


def sparse_segment_shape(data: Shape, indices: Shape, segment_ids: Shape) -> Shape:
    indices.of_rank(1).merge(segment_ids.of_rank(1))
    return Shape((None,)).concat(data.at_least(1)[1:])


def counted_shape(data: Shape, indices: Shape, segment_ids: Shape, num_segments: np.ndarray | None) -> Shape:
    indices.of_rank(1).merge(segment_ids.of_rank(1))
    return Shape((_stated(num_segments, "num_segments"),)).concat(data.at_least(1)[1:])


def _stated(size: np.ndarray | None, name: str) -> int | None:
    if size is not None and size < 0:
        raise InvalidArgumentError(None, None, f"Cannot specify a negative value for {name}: {size}")
    return None if size is None else int(size)


def gradient_shape(grad: Shape, indices: Shape, segment_ids: Shape, output_dim0: np.ndarray | None) -> Shape:
    indices.merge(segment_ids)
    return Shape((_stated(output_dim0, "output_dim0"),)).concat(grad.at_least(1)[1:])


_OPS = {"Sum": _definitions("Sum", REAL), "Mean": _definitions("Mean", FLOATS), "SqrtN": _definitions("SqrtN", FLOATS)}


def _apply(how: str, data: Any, indices: Any, ids: Any, name: str | None, count: Any, sparse_gradient: bool) -> Tensor:
    plain, counted, _ = _OPS[how]
    if count is None:
        return plain(data, indices, ids, sparse_gradient=sparse_gradient, name=name)
    return counted(data, indices, ids, count, sparse_gradient=sparse_gradient, name=name)


def _functions(how: str, suffix: str, doc: str) -> tuple[Any, Any]:
    doc = f"{doc} of the rows `data[indices]` of each segment; segments without rows are 0."

    @export(v1=(f"sparse_segment_{suffix}", f"sparse.segment_{suffix}"))
    @named(f"sparse_segment_{suffix}", doc)
    def first(
        data: Any,
        indices: Any,
        segment_ids: Any,
        name: str | None = None,
        num_segments: Any = None,
        sparse_gradient: bool = False,
    ) -> Tensor:
        return _apply(how, data, indices, segment_ids, name, num_segments, sparse_gradient)

    @export(v2=f"sparse.segment_{suffix}")
    @named(f"sparse_segment_{suffix}_v2", doc)
    def second(
        data: Any,
        indices: Any,
        segment_ids: Any,
        num_segments: Any = None,
        name: str | None = None,
        sparse_gradient: bool = False,
    ) -> Tensor:
        return _apply(how, data, indices, segment_ids, name, num_segments, sparse_gradient)

    return first, second


sparse_segment_sum, sparse_segment_sum_v2 = _functions("Sum", "sum", "The sum")
sparse_segment_mean, sparse_segment_mean_v2 = _functions("Mean", "mean", "The mean")
sparse_segment_sqrt_n, sparse_segment_sqrt_n_v2 = _functions("SqrtN", "sqrt_n", "The sum divided by sqrt(count)")
