"""Scattering by coordinates, and partitioning and stitching by number."""

from __future__ import annotations

import math as numbers
from typing import Any

import numpy as np
import torch

from stoker._src.base import dtypes
from stoker._src.base.dtypes import INDEX
from stoker._src.base.errors import InvalidArgumentError
from stoker._src.base.export import export
from stoker._src.base.shapes import UNKNOWN_SHAPE, Shape
from stoker._src.graph.conversion import convert_to_tensor
from stoker._src.graph.definition import ANY, INT, OpDefinition, define
from stoker._src.graph.late_binding import ops
from stoker._src.graph.static_values import constant_value
from stoker._src.graph.tensor import Operation, Tensor
from stoker._src.ops.array import casting, ranges, shaping
from stoker._src.ops.support import table_rows
from stoker._src.ops.support.movement import POLICIES, POLICY, allocatable, checked_sizes, itemsize, signed


def flat_index(
    indices: torch.Tensor, sizes: Any, policy: str, complaint: str
) -> tuple[torch.Tensor, torch.Tensor | None]:
    """Flattens coordinates [..., K] within `sizes`. Also returns a mask of those out of range if the policy ignores them.

    Raises:
        InvalidArgumentError: a coordinate is out of range on the CPU, and the policy is not IGNORE.
    """
    if policy not in POLICIES:
        raise InvalidArgumentError(None, None, f"Unknown bad indices handling attribute: {policy}")
    depth = indices.shape[-1]
    rows = indices.reshape(-1, depth) if depth else indices.new_zeros((numbers.prod(indices.shape[:-1]), 0))
    if depth == 0:
        return rows.new_zeros(rows.shape[0], dtype=torch.int64), None
    ignored = policy == "IGNORE" or (indices.is_cuda and policy in ("", "DEFAULT"))
    if not ignored:
        flat = table_rows.flatten(rows, sizes)
        if flat is not None:
            return flat, None
    # Sizes are plain numbers: to move them to a GPU would make the host wait for it, and the step could not be recorded.
    columns = rows.long().unbind(1)
    flat, outside = columns[0], (columns[0] < 0) | (columns[0] >= sizes[0])
    for column, size in zip(columns[1:], sizes[1:]):
        flat = flat * size + column
        outside = outside | (column < 0) | (column >= size)
    if ignored:
        return flat.masked_fill(outside, 0), outside
    if bool(outside.any()):
        at = int(torch.nonzero(outside)[0])
        where = np.unravel_index(at, tuple(indices.shape[:-1])) if indices.ndim > 1 else ()
        label = "".join(f"[{','.join(str(int(i)) for i in where)}]" if len(where) else "")
        raise InvalidArgumentError(None, None, f"indices{label} = {rows[at].tolist()} {complaint}".replace("[]", ""))
    return flat, None


def nd_rule(ref: Shape, indices: Shape, updates: Shape) -> Shape:
    """The shape rule of updates at coordinates: `updates` has the shape `indices.shape[:-1] + ref.shape[K:]`."""
    depth = indices.at_least(1)[-1] if indices.rank else None
    if depth is not None and ref.rank is not None:
        if depth > ref.rank:
            raise InvalidArgumentError(
                None, None, f"The last dimension of indices is {depth}, more than the rank {ref.rank} of {ref}."
            )
        indices[:-1].concat(ref[depth:]).merge(updates)
    elif indices.rank is not None and updates.rank is not None:
        indices[:-1].merge(updates[: indices.rank - 1])
    if ref.size == 0 and indices.size and updates.size:
        raise InvalidArgumentError(None, None, f"Indices and updates specified for empty input {ref}")
    return ref


def places(
    shape: list[int], indices: torch.Tensor, updates: Any, policy: str, *, adds: bool = False
) -> tuple[torch.Tensor, Any, int, int]:
    """Flat positions and matching rows of updates, without the ignored ones; then the number of rows and the row length.

    If the rows are added, ignored ones may stay as rows of zeros, so that on a GPU nobody waits for their number.
    """
    if not indices.ndim:
        raise InvalidArgumentError(None, None, "Indices shape must have rank at least one. Found: []")
    depth = indices.shape[-1]
    if depth > len(shape):
        raise InvalidArgumentError(
            None, None, f"index innermost dimension length must be <= shape rank; saw: {depth} vs. {len(shape)}"
        )
    wanted = (*indices.shape[:-1], *shape[depth:])
    if tuple(updates.shape) != tuple(wanted):
        raise InvalidArgumentError(
            None,
            None,
            f"Dimensions of updates {Shape(updates.shape)} must be {Shape(wanted)}: those of indices {Shape(indices.shape)} before the last, then the inner ones of shape {Shape(shape)}",
        )
    flat, bad = flat_index(indices, shape[:depth], policy, f"does not index into shape {Shape(shape)}")
    width = numbers.prod(shape[depth:])
    rows = updates.reshape(flat.shape[0], width)
    if bad is not None and adds and numbers.prod(shape) and isinstance(rows, torch.Tensor):
        rows = rows.masked_fill(bad.unsqueeze(1), 0)
    elif bad is not None:
        keep = ~bad
        flat, rows = flat[keep], rows[keep]
    return flat, rows, numbers.prod(shape[:depth]), width


# ---- ScatterNd --------------------------------------------------------------------------------------------------

SCATTER_ND = define(
    "ScatterNd(indices: rank>0 Tindices, updates: rank>0 T, shape: vector host Tindices) -> (output: T)",
    T=ANY,
    Tindices=(dtypes.int16, *INDEX),
    bad_indices_policy=POLICY,
)
SCATTER_ND.small("scatter_nd", lambda op: [] if op.attrs["bad_indices_policy"] in ("", "DEFAULT", "ERROR") else None)


@SCATTER_ND.kernel
def scatter_nd_kernel(indices: torch.Tensor, updates: Any, shape: list[int], *, bad_indices_policy: str) -> Any:
    flat, rows, count, width = places(checked_sizes(shape), indices, updates, bad_indices_policy, adds=True)
    allocatable(shape, itemsize(updates))
    if isinstance(updates, np.ndarray):
        result: Any = np.full((count, width), b"", dtype=object)
        np.add.at(result, flat.numpy(), rows)
        return result.reshape(shape)
    result = signed(updates.new_zeros((count, width)))
    if table_rows.add(result, flat, rows):
        return result.reshape(shape)
    return result.index_add_(0, flat, signed(rows)).view(updates.dtype).reshape(shape)


@SCATTER_ND.shape(as_shapes=["shape"])
def scatter_nd_shape(indices: Shape, updates: Shape, shape: Shape) -> Shape:
    return nd_rule(shape, indices, updates)


@SCATTER_ND.grad
def scatter_nd_grad(op: Operation, g: Tensor) -> Any:
    return None, ops.GatherNd(g, op.inputs[0], bad_indices_policy=op.attr("bad_indices_policy")), None


@export("scatter_nd", v1="manip.scatter_nd")
def scatter_nd(indices: Any, updates: Any, shape: Any, bad_indices_policy: str = "", name: str | None = None) -> Tensor:
    """Adds `updates` at the coordinates `indices` to a tensor of zeros. Updates of one place are summed.

    Args:
        indices: coordinates, [..., K].
        updates: values or slices to add, [...] followed by `shape[K:]`.
        shape: the shape of the result, with the dtype of `indices`.
        bad_indices_policy: "ERROR" (or "") raises for coordinates out of range; "IGNORE" drops them.
        name: the op's name.
    """
    return SCATTER_ND(indices, updates, shape, bad_indices_policy=bad_indices_policy, name=name)


# ---- TensorScatter* ---------------------------------------------------------------------------------------------


def _tensor_scatter(name: str, kinds: Any = INDEX) -> OpDefinition:
    definition = define(
        f"{name}(tensor: rank>0 T, indices: rank>0 Tindices, updates: T) -> (output: T)",
        T=ANY,
        Tindices=kinds,
        bad_indices_policy=POLICY,
    )

    definition.shape(nd_rule)
    return definition


def _onto(tensor: Any, indices: torch.Tensor, updates: Any, policy: str) -> tuple[Any, Any, torch.Tensor, Any]:
    """A copy of `tensor`, a view of the copy as rows, the positions to change, and the rows of updates."""
    flat, rows, count, width = places(list(tensor.shape), indices, updates, policy)
    result = tensor.copy() if isinstance(tensor, np.ndarray) else tensor.clone(memory_format=torch.contiguous_format)
    return result, result.reshape(count, width), flat, rows


TENSOR_SCATTER_UPDATE = _tensor_scatter("TensorScatterUpdate", (dtypes.int16, *INDEX, dtypes.uint16))
TENSOR_SCATTER_ADD = _tensor_scatter("TensorScatterAdd")
TENSOR_SCATTER_SUB = _tensor_scatter("TensorScatterSub")
TENSOR_SCATTER_MIN = _tensor_scatter("TensorScatterMin")
TENSOR_SCATTER_MAX = _tensor_scatter("TensorScatterMax")
SCATTER_ND_NON_ALIASING_ADD = define(
    "ScatterNdNonAliasingAdd(input: rank>0 T, indices: rank>0 Tindices, updates: T) -> (output: T)",
    T=(*dtypes.NUMERIC, *(each for each in dtypes.QUANTIZED_DTYPES if not each.is_ref), dtypes.bool_),
    Tindices=INDEX,
    bad_indices_policy=POLICY,
)


SCATTER_ND_NON_ALIASING_ADD.shape(nd_rule)


@TENSOR_SCATTER_UPDATE.kernel
def tensor_scatter_update_kernel(tensor: Any, indices: torch.Tensor, updates: Any, *, bad_indices_policy: str) -> Any:
    result, target, flat, rows = _onto(tensor, indices, updates, bad_indices_policy)
    if isinstance(tensor, np.ndarray):
        target[flat.numpy()] = rows
    else:
        signed(target).index_copy_(0, flat, signed(rows))
    return result


@TENSOR_SCATTER_ADD.kernel
def tensor_scatter_add_kernel(tensor: Any, indices: torch.Tensor, updates: Any, *, bad_indices_policy: str) -> Any:
    result, target, flat, rows = _onto(tensor, indices, updates, bad_indices_policy)
    signed(target).index_add_(0, flat, signed(rows))
    return result


@SCATTER_ND_NON_ALIASING_ADD.kernel
def scatter_nd_non_aliasing_add_kernel(
    input: Any, indices: torch.Tensor, updates: Any, *, bad_indices_policy: str
) -> Any:
    return tensor_scatter_add_kernel(input, indices, updates, bad_indices_policy=bad_indices_policy)


@TENSOR_SCATTER_SUB.kernel
def tensor_scatter_sub_kernel(tensor: Any, indices: torch.Tensor, updates: Any, *, bad_indices_policy: str) -> Any:
    result, target, flat, rows = _onto(tensor, indices, updates, bad_indices_policy)
    signed(target).index_add_(0, flat, signed(rows), alpha=-1)
    return result


def _ordered(x: torch.Tensor) -> torch.Tensor:
    """Maps unsigned integers to signed ones in the same order by flipping the highest bit."""
    twin = signed(x)
    return x if twin is x else twin ^ torch.iinfo(twin.dtype).min


def _extreme(tensor: Any, indices: torch.Tensor, updates: Any, policy: str, reduce: str) -> Any:
    result, target, flat, rows = _onto(tensor, indices, updates, policy)
    target = _ordered(target)
    target.scatter_reduce_(0, flat.unsqueeze(1).expand(rows.shape), _ordered(rows), reduce)
    if target.dtype is tensor.dtype:
        return result
    return (target ^ torch.iinfo(target.dtype).min).view(tensor.dtype).reshape(tensor.shape)


@TENSOR_SCATTER_MIN.kernel
def tensor_scatter_min_kernel(tensor: Any, indices: torch.Tensor, updates: Any, *, bad_indices_policy: str) -> Any:
    return _extreme(tensor, indices, updates, bad_indices_policy, "amin")


@TENSOR_SCATTER_MAX.kernel
def tensor_scatter_max_kernel(tensor: Any, indices: torch.Tensor, updates: Any, *, bad_indices_policy: str) -> Any:
    return _extreme(tensor, indices, updates, bad_indices_policy, "amax")


@TENSOR_SCATTER_UPDATE.grad
def tensor_scatter_update_grad(op: Operation, g: Tensor) -> Any:
    indices = op.inputs[1]
    blank = shaping.zeros_like(op.inputs[2])
    return TENSOR_SCATTER_UPDATE(g, indices, blank), None, ops.GatherNd(g, _signed_indices(indices))


def _signed_indices(indices: Tensor) -> Tensor:
    return casting.cast(indices, dtypes.int32) if indices.dtype.base_dtype not in (*INDEX, dtypes.int16) else indices


@TENSOR_SCATTER_ADD.grad
def tensor_scatter_add_grad(op: Operation, g: Tensor) -> Any:
    return g, None, ops.GatherNd(g, op.inputs[1])


@SCATTER_ND_NON_ALIASING_ADD.grad
def scatter_nd_non_aliasing_add_grad(op: Operation, g: Tensor) -> Any:
    return g, None, ops.GatherNd(g, op.inputs[1])


@TENSOR_SCATTER_SUB.grad
def tensor_scatter_sub_grad(op: Operation, g: Tensor) -> Any:
    return g, None, ops.negative(ops.GatherNd(g, op.inputs[1]))


def _extreme_grad(op: Operation, g: Tensor) -> Any:
    """The gradient is shared equally by all elements that hold the extreme value."""
    tensor, indices, updates = op.inputs
    result = op.outputs[0]
    kept = casting.cast(ops.equal(result, tensor), g.dtype.base_dtype)
    chosen = casting.cast(ops.equal(updates, ops.GatherNd(result, indices)), g.dtype.base_dtype)
    holders = TENSOR_SCATTER_ADD(kept, indices, chosen)
    share = ops.realdiv(g, holders)
    return ops.multiply(kept, share), None, ops.multiply(chosen, ops.GatherNd(share, indices))


TENSOR_SCATTER_MIN.grad(_extreme_grad)
TENSOR_SCATTER_MAX.grad(_extreme_grad)


@export("tensor_scatter_nd_update", v1="tensor_scatter_update")
def tensor_scatter_nd_update(tensor: Any, indices: Any, updates: Any, name: str | None = None) -> Tensor:
    """A copy of `tensor` with `updates` written at the coordinates `indices`."""
    return TENSOR_SCATTER_UPDATE(tensor, indices, updates, name=name)


@export("tensor_scatter_nd_add", v1="tensor_scatter_add")
def tensor_scatter_nd_add(
    tensor: Any, indices: Any, updates: Any, bad_indices_policy: str = "", name: str | None = None
) -> Tensor:
    """A copy of `tensor` with `updates` added at the coordinates `indices`."""
    return TENSOR_SCATTER_ADD(tensor, indices, updates, bad_indices_policy=bad_indices_policy, name=name)


@export("tensor_scatter_nd_sub", v1="tensor_scatter_sub")
def tensor_scatter_nd_sub(
    tensor: Any, indices: Any, updates: Any, bad_indices_policy: str = "", name: str | None = None
) -> Tensor:
    """A copy of `tensor` with `updates` subtracted at the coordinates `indices`."""
    return TENSOR_SCATTER_SUB(tensor, indices, updates, bad_indices_policy=bad_indices_policy, name=name)


@export("tensor_scatter_nd_min")
def tensor_scatter_nd_min(
    tensor: Any, indices: Any, updates: Any, bad_indices_policy: str = "", name: str | None = None
) -> Tensor:
    """A copy of `tensor` with the elementwise minimum of it and `updates` at the coordinates `indices`."""
    return TENSOR_SCATTER_MIN(tensor, indices, updates, bad_indices_policy=bad_indices_policy, name=name)


@export("tensor_scatter_nd_max")
def tensor_scatter_nd_max(
    tensor: Any, indices: Any, updates: Any, bad_indices_policy: str = "", name: str | None = None
) -> Tensor:
    """A copy of `tensor` with the elementwise maximum of it and `updates` at the coordinates `indices`."""
    return TENSOR_SCATTER_MAX(tensor, indices, updates, bad_indices_policy=bad_indices_policy, name=name)


# ---- DynamicPartition, DynamicStitch ----------------------------------------------------------------------------

DYNAMIC_PARTITION = define(
    "DynamicPartition(data: T, partitions: int32) -> (outputs: num_partitions * T)",
    num_partitions=INT(minimum=1),
    T=ANY,
)
DYNAMIC_PARTITION.small("partition")
DYNAMIC_PARTITION.planning.sized_by = (1,)


@DYNAMIC_PARTITION.kernel
def dynamic_partition_kernel(data: Any, partitions: torch.Tensor, *, num_partitions: int) -> list[Any]:
    rank = partitions.ndim
    if tuple(data.shape[:rank]) != tuple(partitions.shape):
        raise InvalidArgumentError(
            None,
            None,
            f"data.shape must start with partitions.shape, got data.shape = {Shape(data.shape)}, partitions.shape = {Shape(partitions.shape)}",
        )
    numbers_ = partitions.reshape(-1)
    if isinstance(data, torch.Tensor):
        found = table_rows.partition(data.reshape(numbers_.numel(), *data.shape[rank:]), numbers_, num_partitions)
        if isinstance(found, list):
            return found
    if numbers_.numel() and (int(numbers_.min()) < 0 or int(numbers_.max()) >= num_partitions):
        flat = numbers_.tolist()
        at = next(i for i, each in enumerate(flat) if not 0 <= each < num_partitions)
        raise InvalidArgumentError(None, None, f"partitions[{at}] = {flat[at]} is not in [0, {num_partitions})")
    order = torch.argsort(numbers_, stable=True)
    counts = torch.bincount(numbers_, minlength=num_partitions).tolist()
    rows = data.reshape(numbers_.numel(), *data.shape[rank:])
    if isinstance(data, np.ndarray):
        return np.split(rows[order.numpy()], np.cumsum(counts)[:-1])
    return [part.view(data.dtype) for part in signed(rows).index_select(0, order).split(counts)]


@DYNAMIC_PARTITION.shape
def dynamic_partition_shape(data: Shape, partitions: Shape, *, num_partitions: int) -> list[Shape]:
    if data.dims is None or partitions.dims is None:
        return [UNKNOWN_SHAPE] * num_partitions
    data[: len(partitions)].merge(partitions)
    return [Shape((None, *data.dims[len(partitions) :]))] * num_partitions


@DYNAMIC_PARTITION.grad
def dynamic_partition_grad(op: Operation, *gs: Tensor) -> Any:
    data, partitions = op.inputs
    sizes = shaping.shape(partitions)
    positions = shaping.reshape(ranges.range(ranges.size(partitions)), sizes)
    places = DYNAMIC_PARTITION(positions, partitions, num_partitions=op.attr("num_partitions"))
    stitched = PARALLEL_DYNAMIC_STITCH(places, list(gs))
    return shaping.reshape(stitched, shaping.shape(data)), None


DYNAMIC_STITCH = define("DynamicStitch(indices: N * int32, data: N * T) -> (merged: T)", N=INT(minimum=1), T=ANY)
DYNAMIC_STITCH.small("stitch")
PARALLEL_DYNAMIC_STITCH = define(
    "ParallelDynamicStitch(indices: N * int32, data: N * T) -> (merged: T)", N=INT(minimum=1), T=ANY
)
PARALLEL_DYNAMIC_STITCH.small("stitch")


@DYNAMIC_STITCH.kernel
@PARALLEL_DYNAMIC_STITCH.kernel
def dynamic_stitch_kernel(indices: list[torch.Tensor], data: list[Any]) -> Any:
    inner: tuple[int, ...] | None = None
    rows = []
    for i, (where, values) in enumerate(zip(indices, data)):
        if tuple(values.shape[: where.ndim]) != tuple(where.shape):
            raise InvalidArgumentError(
                None,
                None,
                f"data[{i}].shape = {Shape(values.shape)} does not start with indices[{i}].shape = {Shape(where.shape)}",
            )
        rest = tuple(values.shape[where.ndim :])
        if inner is not None and rest != inner:
            raise InvalidArgumentError(
                None,
                None,
                f"Need data[0].shape[{indices[0].ndim}:] = data[{i}].shape[{where.ndim}:], got {Shape(inner)} and {Shape(rest)}",
            )
        inner = rest
        rows.append(values.reshape(where.numel(), *rest))
    vectors = [each.reshape(-1) for each in indices]
    lowest, highest = table_rows.bounds(vectors) or _bounds(vectors)
    count = highest + 1
    if lowest < 0:
        raise InvalidArgumentError(None, None, f"indices must be >= 0, got {lowest}")
    if count == 2**31:
        raise InvalidArgumentError(None, None, f"Expected a non-negative size, got {-count}: indices reach {count - 1}")
    allocatable([count, *(inner or ())], 8)
    if isinstance(data[0], torch.Tensor):
        merged = table_rows.stitch(vectors, rows, count)
        if merged is not None:
            return merged
    flat = torch.cat(vectors).long()
    # The last occurrence of an index wins, so each row takes the gradient of its winner.
    order = torch.arange(flat.numel(), device=flat.device)
    winners = torch.full((count,), -1, dtype=torch.int64, device=flat.device).scatter_reduce_(0, flat, order, "amax")
    missing = winners < 0
    gaps = count > 0 and bool(missing.any())
    if isinstance(data[0], np.ndarray):
        result: Any = np.concatenate(rows)[winners.clamp(min=0).numpy()]
        if gaps:
            result[missing.numpy()] = b""
        return result
    merged = signed(torch.cat(rows)).index_select(0, winners.clamp(min=0)).view(data[0].dtype)
    if gaps:
        signed(merged)[missing] = 0
    return merged


def _bounds(indices: list[torch.Tensor]) -> tuple[int, int]:
    found = [(int(each.min()), int(each.max())) for each in indices if each.numel()]
    return min((low for low, _ in found), default=0), max((high for _, high in found), default=-1)


def _stitch_rule(indices: list[Shape], data: list[Shape]) -> Shape:
    inner = UNKNOWN_SHAPE
    for where, values in zip(indices, data):
        if where.dims is not None and values.dims is not None:
            Shape(values.dims[: len(where)]).merge(where)
            inner = inner.merge(Shape(values.dims[len(where) :]))
    return UNKNOWN_SHAPE if inner.dims is None else Shape((None, *inner.dims))


DYNAMIC_STITCH.shape(_stitch_rule)
PARALLEL_DYNAMIC_STITCH.shape(_stitch_rule)


def _stitch_grad(op: Operation, g: Any) -> list[Any]:
    count = op.attr("N")
    g = convert_to_tensor(g)
    return [None] * count + [ops.gather(g, indices) for indices in op.inputs[:count]]


DYNAMIC_STITCH.grad(_stitch_grad)
PARALLEL_DYNAMIC_STITCH.grad(_stitch_grad)


@export("dynamic_partition")
def dynamic_partition(data: Any, partitions: Any, num_partitions: int, name: str | None = None) -> list[Tensor]:
    """Partitions the rows of `data` into `num_partitions` tensors by the numbers in `partitions`."""
    return DYNAMIC_PARTITION(data, partitions, num_partitions=num_partitions, name=name)


@export("dynamic_stitch")
def dynamic_stitch(indices: Any, data: Any, name: str | None = None) -> Tensor:
    """Merges rows of several tensors at the positions `indices`. If a position repeats, the last row wins."""
    merged = DYNAMIC_STITCH(indices, data, name=name)
    known = [constant_value(each) if isinstance(each, Tensor) else np.asarray(each) for each in indices]
    if all(each is not None for each in known) and not getattr(merged, "is_eager", False):
        largest = max((int(each.max()) for each in known if each.size), default=-1)
        if merged.static_shape.rank is not None:
            merged.set_shape((largest + 1, *merged.static_shape[1:]))
    return merged
