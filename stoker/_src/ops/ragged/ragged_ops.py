"""Ops on ragged tensors, given as flat values and the row splits of each level."""

from __future__ import annotations

import math as numbers
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch

from stoker._src.base import dtypes
from stoker._src.base.dtypes import INDEX, DType
from stoker._src.base.errors import InvalidArgumentError
from stoker._src.base.shapes import UNKNOWN_SHAPE, Shape
from stoker._src.graph.conversion import convert_to_tensor
from stoker._src.graph.definition import ANY, INT, STRINGS, all_merged, define, one_of
from stoker._src.graph.indexed_slices import IndexedSlices
from stoker._src.graph.tensor import Operation, Tensor
from stoker._src.ops.array import joining, ranges, shaping
from stoker._src.ops.math import masking, reductions, segment_reductions
from stoker._src.ops.support.movement import allocatable, itemsize
from stoker._src.ops.support.values import torch_dtype

_SPLITS = one_of(*INDEX, default=dtypes.int64)


def _invalid(message: str) -> InvalidArgumentError:
    return InvalidArgumentError(None, None, message)


def _pick(values: Any, positions: torch.Tensor) -> Any:
    """Selects rows of `values`, which may be an array of strings."""
    return values[positions] if isinstance(values, torch.Tensor) else values[positions.numpy()]


def _loose_lengths(splits: torch.Tensor, count: int) -> torch.Tensor:
    """The row lengths of `splits`, which need not cover all of the `count` values at the start and the end.

    Raises:
        InvalidArgumentError: the splits decrease, or exceed the values.
    """
    lengths = splits[1:] - splits[:-1]
    if not len(splits) or bool((lengths < 0).any()) or int(splits[0]) < 0 or int(splits[-1]) > count:
        raise _invalid(f"Ragged splits must rise within [0, {count}], got {splits.tolist()!s:.200}")
    return lengths


def _lengths(splits: torch.Tensor, count: int | None = None) -> torch.Tensor:
    """The row lengths of `splits`; `count` is the number of values they must cover.

    Raises:
        InvalidArgumentError: the splits do not increase from 0 to `count`.
    """
    if splits.ndim != 1 or not len(splits) or splits[0] != 0:
        raise _invalid(f"row_splits must be a vector that starts with 0, got {splits.tolist()!s:.200}")
    lengths = splits[1:] - splits[:-1]
    if bool((lengths < 0).any()):
        raise _invalid(f"row_splits must be sorted, got {splits.tolist()!s:.200}")
    if count is not None and splits[-1] != count:
        raise _invalid(f"row_splits must end with the number of values {count}, got {int(splits[-1])}")
    return lengths


def _rows_and_places(splits: torch.Tensor, count: int | None = None) -> tuple[torch.Tensor, torch.Tensor]:
    """For each value, its row and its position in the row."""
    lengths = _lengths(splits, count)
    rows = torch.repeat_interleave(lengths.to(torch.int64))
    places = torch.arange(len(rows), device=splits.device) - splits[:-1].to(torch.int64)[rows]
    return rows, places


# ---- RaggedRange ------------------------------------------------------------------------------------------------

RAGGED_RANGE = define(
    "RaggedRange(starts: rank<2 T, limits: rank<2 T, deltas: rank<2 T) -> (rt_nested_splits: Tsplits, rt_dense_values: T)",
    T=one_of(dtypes.bfloat16, dtypes.float32, dtypes.float64, dtypes.int32, dtypes.int64, default=dtypes.int32),
    Tsplits=_SPLITS,
).not_differentiable()


@RAGGED_RANGE.kernel
def ragged_range_kernel(starts: torch.Tensor, limits: torch.Tensor, deltas: torch.Tensor, *, Tsplits: DType) -> Any:
    sizes = {len(each) for each in (starts, limits, deltas) if each.ndim}
    if len(sizes) > 1:
        raise _invalid("starts, limits, and deltas must have the same shape")
    if any(each.ndim > 1 for each in (starts, limits, deltas)):
        raise _invalid("starts, limits and deltas must be scalars or vectors")
    rows = sizes.pop() if sizes else 1
    first, last, step = (each.expand(rows) for each in (starts, limits, deltas))
    if bool(((step == 0) | torch.isnan(step)).any()):
        raise _invalid("Requires delta != 0")
    forward = torch.where(step > 0, first < last, first > last)
    exact = torch.abs((last.double() - first.double()) / step.double())
    if bool((forward & (exact >= 2.0**62)).any()):
        raise _invalid("Requires ((limit - start) / delta) <= 2**62")
    if step.dtype.is_floating_point:
        counts = torch.ceil(torch.abs((last - first) / step)).to(torch.int64)
    else:
        counts = -((first.to(torch.int64) - last.to(torch.int64)) // step)
    counts = torch.where(forward, counts.to(torch.int64), 0)
    splits = torch.cat([counts.new_zeros(1), counts.cumsum(0)])
    if int(splits[-1]) > torch.iinfo(torch_dtype(Tsplits)).max:
        raise _invalid(f"The ranges hold {int(splits[-1])} numbers: too many for {Tsplits.name} row splits")
    allocatable([int(splits[-1])], 16)
    row, place = _rows_and_places(splits)
    return splits.to(torch_dtype(Tsplits)), first[row] + place.to(first.dtype) * step[row]


@RAGGED_RANGE.shape
def ragged_range_shape(starts: Shape, limits: Shape, deltas: Shape) -> Any:
    given = (starts, limits, deltas)
    rows = all_merged([each for each in given if each.rank == 1])
    if any(each.rank is None for each in given):
        return Shape((None,)), Shape((None,))
    count = rows[0] if rows.rank else 1
    return Shape((None if count is None else count + 1,)), Shape((None,))


# ---- RaggedTensorToSparse ---------------------------------------------------------------------------------------

RAGGED_TENSOR_TO_SPARSE = define(
    "RaggedTensorToSparse(rt_nested_splits: vector/flat RAGGED_RANK * Tsplits, rt_dense_values: rank>0 T) -> "
    "(sparse_indices: int64, sparse_values: T, sparse_dense_shape: int64)",
    RAGGED_RANK=INT(minimum=1),
    T=ANY,
    Tsplits=_SPLITS,
)


@RAGGED_TENSOR_TO_SPARSE.kernel
def ragged_tensor_to_sparse_kernel(rt_nested_splits: list[torch.Tensor], rt_dense_values: Any) -> Any:
    if not rt_dense_values.ndim:
        raise _invalid("rt_dense_values must be at least a vector")
    rows = len(rt_nested_splits[0]) - 1
    device = rt_nested_splits[0].device
    coordinates = [torch.arange(rows, device=device)]
    sizes = [rows]
    for level, splits in enumerate(rt_nested_splits):
        deeper = rt_nested_splits[level + 1 :]
        row, place = _rows_and_places(splits, len(deeper[0]) - 1 if deeper else rt_dense_values.shape[0])
        coordinates = [each[row] for each in coordinates] + [place]
        sizes.append(int(place.max()) + 1 if len(place) else 0)
    for size in rt_dense_values.shape[1:]:
        count = len(coordinates[0])
        inner = torch.arange(size, device=device).repeat(count)
        coordinates = [each.repeat_interleave(size) for each in coordinates] + [inner]
        sizes.append(size)
    values = rt_dense_values.reshape(-1)
    values = values.clone() if isinstance(values, torch.Tensor) else values.copy()
    return torch.stack(coordinates, 1), values, torch.tensor(sizes, dtype=torch.int64)


@RAGGED_TENSOR_TO_SPARSE.shape
def ragged_tensor_to_sparse_shape(rt_nested_splits: list[Shape], rt_dense_values: Shape) -> Any:
    rank = None if rt_dense_values.rank is None else len(rt_nested_splits) + rt_dense_values.rank
    return Shape((rt_dense_values.size, rank)), Shape((rt_dense_values.size,)), Shape((rank,))


@RAGGED_TENSOR_TO_SPARSE.grad
def ragged_tensor_to_sparse_grad(op: Operation, _indices: Any, g: Tensor, _shape: Any) -> Any:
    values = op.inputs[-1]
    return [None] * (len(op.inputs) - 1) + [shaping.reshape(g, shaping.shape(values))]


# ---- RaggedTensorToTensor ---------------------------------------------------------------------------------------

RAGGED_TENSOR_TO_TENSOR = define(
    "RaggedTensorToTensor(shape: host Tshape, values: T, default_value: T, "
    "row_partition_tensors: any/flat num_row_partition_tensors * Tindex) -> (result: T)",
    T=ANY,
    Tindex=INDEX,
    Tshape=INDEX,
    num_row_partition_tensors=INT(minimum=1),
    row_partition_types=STRINGS,
)


def _all_splits(partitions: list[torch.Tensor], types: Sequence[str]) -> list[torch.Tensor]:
    """The splits of each level, given as splits, or as a first size followed by row ids."""
    if len(types) != len(partitions):
        raise _invalid(f"{len(types)} row_partition_types for {len(partitions)} row_partition_tensors")
    if types[0] == "ROW_SPLITS":
        if set(types) != {"ROW_SPLITS"}:
            raise _invalid(f"Unsupported row partition types {list(types)}")
        return partitions
    if types[0] != "FIRST_DIM_SIZE" or set(types[1:]) - {"VALUE_ROWIDS"}:
        raise _invalid(f"Unsupported row partition types {list(types)}")
    count = int(partitions[0][0])
    found = []
    for rowids in partitions[1:]:
        ids = rowids.to(torch.int64)
        if len(ids) and (bool((ids[1:] < ids[:-1]).any()) or int(ids[0]) < 0 or int(ids[-1]) >= count):
            raise _invalid(f"value_rowids must rise within [0, {count})")
        counts = torch.bincount(ids, minlength=count)
        found.append(torch.cat([counts.new_zeros(1), counts.cumsum(0)]))
        count = len(ids)
    return found


def _filled(part: torch.Tensor, count: int, value: Any) -> torch.Tensor:
    """Pads `part` at the end with `value` to `count` elements."""
    return part if len(part) == count else torch.cat([part, part.new_full((count - len(part),), value)])


def fits_tail(default: Shape, values: Shape) -> bool:
    """Whether a default value broadcasts to the inner dimensions of the values."""
    pairs = zip(reversed(default.dims or ()), reversed(values.dims or ()))
    return all(own in (1, None) or size in (own, None) for own, size in pairs)


def _unlike(default: Shape, values: Shape) -> InvalidArgumentError:
    return _invalid(
        f"default_value.shape={default} and rt_input.flat_values.shape={values} are incompatible: the rank of the default "
        "value must be less, and its sizes must be 1 or those of the values."
    )


@RAGGED_TENSOR_TO_TENSOR.kernel
def ragged_tensor_to_tensor_kernel(
    shape: Any, values: Any, default_value: Any, row_partition_tensors: list[torch.Tensor], *, row_partition_types: Any
) -> Any:
    levels = _all_splits(row_partition_tensors, row_partition_types)
    inner = tuple(values.shape[1:])
    rank = len(levels) + values.ndim
    wanted = [-1] * rank if isinstance(shape, int) else list(shape)
    if len(wanted) != rank:
        raise _invalid(f"shape {wanted} must have rank {rank}, that of the ragged tensor")
    for size in wanted:
        if size < -1:
            raise _invalid(f"Dimension {size} must be >= -1")
    if default_value.ndim >= values.ndim or not fits_tail(Shape(default_value.shape), Shape(values.shape)):
        raise _unlike(Shape(default_value.shape), Shape(values.shape))
    outer = wanted[: len(levels) + 1]
    for found, size in zip(inner, wanted[len(levels) + 1 :]):
        if size not in (-1, found):
            raise _invalid(f"Inner dimensions of values {list(inner)} do not fit the wanted shape {wanted}")
    rows = len(levels[0]) - 1
    outer[0] = rows if outer[0] < 0 else outer[0]
    flat = torch.arange(rows, device=levels[0].device)
    kept = flat < outer[0]
    for level, splits in enumerate(levels):
        count = len(levels[level + 1]) - 1 if level + 1 < len(levels) else values.shape[0]
        lengths = _loose_lengths(splits, count)
        row = torch.repeat_interleave(lengths.to(torch.int64))
        if int(splits[0]):
            raise _invalid(f"row_splits must start with 0, got {int(splits[0])}")
        place = torch.arange(len(row), device=splits.device) - splits[:-1].to(torch.int64)[row]
        if outer[level + 1] < 0:
            outer[level + 1] = int(place.max()) + 1 if len(place) else 0
        # Values after the last row belong to no row.
        flat = _filled(flat[row] * outer[level + 1] + place, count, 0)
        kept = _filled(kept[row] & (place < outer[level + 1]), count, False)
    total = numbers.prod(allocatable([*outer, *inner], itemsize(values))[: len(outer)])
    if isinstance(values, torch.Tensor):
        result = default_value.expand(total, *inner).clone()
        result[flat[kept]] = values[kept]
    else:
        result = np.broadcast_to(default_value, (total, *inner)).copy()
        result[flat[kept].numpy()] = values[kept.numpy()]
    return result.reshape((*outer, *inner))


@RAGGED_TENSOR_TO_TENSOR.shape(as_shapes=["shape"])
def ragged_tensor_to_tensor_shape(
    shape: Shape,
    values: Shape,
    default_value: Shape,
    row_partition_tensors: list[Shape],
    *,
    row_partition_types: Any,
) -> Shape:
    if len(row_partition_types) != len(row_partition_tensors):
        raise _invalid(
            f"{len(row_partition_types)} row_partition_types for {len(row_partition_tensors)} row_partition_tensors"
        )
    if default_value.rank is not None and values.rank is not None:
        if default_value.rank >= values.rank or not fits_tail(default_value, values):
            raise _unlike(default_value, values)
    for kind, partition in zip(row_partition_types, row_partition_tensors):
        if kind != "FIRST_DIM_SIZE" and partition.rank not in (None, 1):
            raise _invalid(f"Row partition must be a vector, but has shape {partition}")
    levels = len(row_partition_tensors) - (row_partition_types[0] == "FIRST_DIM_SIZE")
    if values.rank is None:
        return shape if shape.rank is not None else UNKNOWN_SHAPE
    first = row_partition_tensors[0]
    rows = first[0] if row_partition_types[0] == "ROW_SPLITS" and first.rank == 1 else None
    found = Shape((None if rows is None else rows - 1, *[None] * levels, *values.dims[1:]))  # type: ignore[index]
    if shape.rank is None:
        return found
    if shape.rank != found.rank:
        raise _invalid(f"shape {shape} must have rank {found.rank}, that of the ragged tensor")
    return Shape(tuple(own if given is None else given for given, own in zip(shape.dims, found.dims)))  # type: ignore[arg-type]


@RAGGED_TENSOR_TO_TENSOR.grad
def ragged_tensor_to_tensor_grad(op: Operation, g: Tensor) -> Any:
    _, values, default, *partitions = op.inputs
    rank = values.static_shape.rank
    if rank is None:
        raise ValueError("The gradient of RaggedTensorToTensor needs the rank of its values.")
    levels = len(partitions) - (op.attr("row_partition_types")[0] == "FIRST_DIM_SIZE")
    sizes = shaping.shape(g)
    count = shaping.shape(values)[0]
    # The index of the value at each position of the result; -1 for the default.
    places = RAGGED_TENSOR_TO_TENSOR(
        sizes[: levels + 1],
        ranges.range(count),
        -1,
        partitions,
        row_partition_types=op.attr("row_partition_types"),
    )
    places = shaping.reshape(places, [-1])
    rows = shaping.reshape(g, joining.concat([[-1], shaping.shape(values)[1:]], 0))
    for_values = segment_reductions.UNSORTED_SEGMENT_SUM(rows, places, count)
    empty = masking.boolean_mask(rows, places < 0)
    missing = None
    if default.dtype.is_floating or default.dtype.is_complex:
        kept = default.static_shape.rank
        if kept is None:
            raise ValueError("The gradient of RaggedTensorToTensor needs the rank of its default value.")
        summed = reductions.reduce_sum(empty, list(range(rank - kept)))
        axes = [i for i, size in enumerate(default.static_shape) if size == 1]
        missing = shaping.reshape(reductions.reduce_sum(summed, axes, keepdims=True), shaping.shape(default))
    return [None, for_values, missing, *[None] * len(partitions)]


# ---- RaggedGather -----------------------------------------------------------------------------------------------

RAGGED_GATHER = define(
    "RaggedGather(params_nested_splits: vector PARAMS_RAGGED_RANK * Tsplits, params_dense_values: rank>0 Tvalues, indices: Tindices) "
    "-> (output_nested_splits: OUTPUT_RAGGED_RANK * Tsplits, output_dense_values: Tvalues)",
    Tvalues=ANY,
    Tindices=INDEX,
    Tsplits=_SPLITS,
    PARAMS_RAGGED_RANK=INT(minimum=1),
    OUTPUT_RAGGED_RANK=INT(minimum=0),
)


@RAGGED_GATHER.kernel
def ragged_gather_kernel(
    params_nested_splits: list[torch.Tensor],
    params_dense_values: Any,
    indices: torch.Tensor,
    *,
    OUTPUT_RAGGED_RANK: int,
) -> Any:
    if len(params_nested_splits) + indices.ndim - 1 != OUTPUT_RAGGED_RANK:
        raise _invalid(
            f"OUTPUT_RAGGED_RANK is {OUTPUT_RAGGED_RANK}, expected {len(params_nested_splits) + indices.ndim - 1}"
        )
    rows = indices.reshape(-1).to(torch.int64)
    count = len(params_nested_splits[0]) - 1
    bad = (rows < 0) | (rows >= count)
    if bool(bad.any()):
        at = int(bad.nonzero()[0])
        raise _invalid(f"indices[{at}] = {int(rows[at])} is not in [0, {count})")
    kind = params_nested_splits[0].dtype
    found = []
    for axis in range(1, indices.ndim):
        before, size = int(np.prod(indices.shape[:axis])), indices.shape[axis]
        found.append(torch.arange(before + 1, device=rows.device, dtype=kind) * size)
    for level, splits in enumerate(params_nested_splits):
        deeper = params_nested_splits[level + 1 :]
        lengths = _loose_lengths(splits, len(deeper[0]) - 1 if deeper else params_dense_values.shape[0])[rows]
        cut = torch.cat([lengths.new_zeros(1), lengths.cumsum(0)]).to(kind)
        row, place = _rows_and_places(cut)
        rows = splits.to(torch.int64)[rows][row] + place
        found.append(cut)
    return found, _pick(params_dense_values, rows)


@RAGGED_GATHER.shape
def ragged_gather_shape(
    params_nested_splits: list[Shape], params_dense_values: Shape, indices: Shape, *, OUTPUT_RAGGED_RANK: int
) -> Any:
    first = indices.size if indices.rank == 1 else (indices[0] if indices.rank else None)
    splits = [Shape((None if first is None else first + 1,)), *[Shape((None,))] * OUTPUT_RAGGED_RANK]
    values = UNKNOWN_SHAPE if params_dense_values.rank is None else Shape((None, *params_dense_values.dims[1:]))  # type: ignore[index]
    return splits[:OUTPUT_RAGGED_RANK], values


@RAGGED_GATHER.grad
def ragged_gather_grad(op: Operation, *gs: Any) -> Any:
    *splits, values, indices = op.inputs
    sizes = shaping.shape(values, out_type=dtypes.int64)
    positions = RAGGED_GATHER(
        splits,
        ranges.range(sizes[0]),
        indices,
        OUTPUT_RAGGED_RANK=op.attr("OUTPUT_RAGGED_RANK"),
    ).output_dense_values
    return [*[None] * len(splits), IndexedSlices(convert_to_tensor(gs[-1]), positions, sizes), None]
