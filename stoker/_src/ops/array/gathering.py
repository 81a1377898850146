"""Lookups: Gather, GatherV2, GatherNd, their gradients, and conversion of IndexedSlices to tensors."""

from __future__ import annotations

import math as numbers
import warnings
from typing import Any

import numpy as np
import torch

from stoker._src.base import dtypes
from stoker._src.base.dtypes import INDEX, DType
from stoker._src.base.errors import InvalidArgumentError
from stoker._src.base.export import export
from stoker._src.base.extensions import extension
from stoker._src.base.shapes import UNKNOWN_SHAPE, Shape
from stoker._src.graph import context
from stoker._src.graph.conversion import convert_to_tensor, register_tensor_conversion_function
from stoker._src.graph.definition import ANY, define
from stoker._src.graph.indexed_slices import IndexedSlices
from stoker._src.graph.late_binding import ops
from stoker._src.graph.scopes import name_scope
from stoker._src.graph.sparse_tensor import SparseTensor
from stoker._src.graph.static_values import Sight, constant_value, constant_value_as_shape
from stoker._src.graph.tensor import Operation, Tensor
from stoker._src.ops.array import casting, joining, ranges, scattering, selection, shaping
from stoker._src.ops.array.joining import joined_sizes
from stoker._src.ops.support import rows, table_rows
from stoker._src.ops.support.dispatching import dispatched
from stoker._src.ops.support.movement import POLICY, element, fill_value, first_bad_index, signed

strings = extension("stoker._src.ops.native.strings")

# ---- kernels ----------------------------------------------------------------------------------------------------


def take(params: Any, indices: torch.Tensor, axis: int) -> Any:
    """Gathers rows of `params` along `axis` into fresh memory.

    Raises:
        InvalidArgumentError: an index out of range, on the CPU. On CUDA, where a check would wait for the device, such
            rows are zero, as in TensorFlow.
    """
    if isinstance(params, np.ndarray):
        taken = _take_strings(params, indices, axis)
        return taken if taken.ndim else element(taken.item())
    if indices.dtype is torch.int16:
        indices = indices.int()
    shape = indices.shape
    flat = indices if indices.ndim == 1 else indices.reshape(-1)
    source = signed(params)
    if params.is_cuda:
        result = _take_cuda(source, flat, axis)
    else:
        try:
            result = table_rows.gather(source, flat) if axis == 0 else None
            if result is None:
                result = torch.index_select(source, axis, flat)
        except (IndexError, RuntimeError):
            if not params.ndim:
                raise InvalidArgumentError(None, None, "params must be at least 1 dimensional") from None
            raise first_bad_index(indices, params.shape[axis]) from None
    if source is not params:
        result = result.view(params.dtype)
    if indices.ndim == 1:
        return result
    return result.reshape((*params.shape[:axis], *shape, *params.shape[axis + 1 :]))


def _take_cuda(source: torch.Tensor, flat: torch.Tensor, axis: int) -> torch.Tensor:
    size = source.shape[axis]
    if size == 0 and flat.numel():
        return source.new_zeros((*source.shape[:axis], flat.numel(), *source.shape[axis + 1 :]))
    result = torch.index_select(source, axis, flat.clamp(0, max(size - 1, 0)))
    bad = ((flat < 0) | (flat >= size)).reshape(-1, *[1] * (source.ndim - 1 - axis))
    return result.masked_fill_(bad, 0)


def _take_strings(params: np.ndarray, indices: torch.Tensor, axis: int) -> np.ndarray:
    where = indices.cpu().numpy()
    if where.size and (where.min() < 0 or where.max() >= params.shape[axis]):
        raise first_bad_index(indices.cpu(), params.shape[axis])
    return (
        np.take(params, where, axis) if where.ndim or params.ndim > 1 else params[where[()] : where[()] + 1].reshape(())
    )


def _normalized(axis: Any, rank: int) -> int:
    if type(axis) is list:
        raise InvalidArgumentError(None, None, f"axis must be scalar, got {axis}")
    if not -rank <= axis < rank:
        raise InvalidArgumentError(None, None, f"Expected axis in the range [{-rank}, {rank}), but got {axis}")
    return axis + rank if axis < 0 else axis


def _take_batched(params: Any, indices: torch.Tensor, axis: int, batch_dims: int) -> Any:
    if batch_dims < 0:
        batch_dims += indices.ndim
    if not 0 <= batch_dims <= min(indices.ndim, axis):
        raise InvalidArgumentError(
            None,
            None,
            f"batch_dims ({batch_dims}) must be at most axis ({axis}) and the rank of indices ({indices.ndim})",
        )
    batch = tuple(params.shape[:batch_dims])
    if tuple(indices.shape[:batch_dims]) != batch:
        raise InvalidArgumentError(
            None,
            None,
            f"params.shape[:{batch_dims}]: {list(batch)} should be equal to indices.shape[:{batch_dims}]: {list(indices.shape[:batch_dims])}",
        )
    size, count = params.shape[axis], numbers.prod(batch)
    if isinstance(params, np.ndarray):
        if indices.numel() and (int(indices.min()) < 0 or int(indices.max()) >= size):
            raise first_bad_index(indices, size)
        places = np.arange(params.size).reshape(params.shape)
        return params.ravel()[_take_batched(torch.from_numpy(places), indices, axis, batch_dims).numpy()]
    if axis == batch_dims:
        gathered = table_rows.gather_batched(signed(params), indices, batch_dims)
        if gathered is not None:
            return gathered.view(params.dtype)
    if indices.numel() and not params.is_cuda and (int(indices.min()) < 0 or int(indices.max()) >= size):
        raise first_bad_index(indices, size)
    front = params.movedim(axis, batch_dims)
    offsets = torch.arange(count, device=indices.device).reshape(*batch, *[1] * (indices.ndim - batch_dims)) * size
    rows = front.reshape(count * size, *front.shape[batch_dims + 1 :])
    inner = tuple(indices.shape[batch_dims:])
    taken = take(rows, (indices.long() + offsets).reshape(-1), 0).reshape(
        *batch, *inner, *front.shape[batch_dims + 1 :]
    )
    if axis == batch_dims:
        return taken
    # The gathered dimensions replace the axis, so they go after the dimensions before it.
    between = axis - batch_dims
    here = list(range(batch_dims, batch_dims + len(inner)))
    there = list(range(batch_dims + between, batch_dims + between + len(inner)))
    return taken.movedim(here, there).contiguous()


# ---- Gather, GatherV2 -------------------------------------------------------------------------------------------

GATHER = define(
    "Gather(params: Tparams, indices: Tindices) -> (output: Tparams)",
    validate_indices=True,
    Tparams=ANY,
    Tindices=INDEX,
)


@GATHER.kernel
def gather_v1_kernel(params: Any, indices: torch.Tensor) -> Any:
    return take(params, indices, 0)


@GATHER.shape
def gather_v1_shape(params: Shape, indices: Shape) -> Shape:
    return indices.concat(params.at_least(1)[1:])


@GATHER.grad
def gather_v1_grad(op: Operation, g: Tensor) -> Any:
    return _rows_gradient(op, g), None


GATHER_V2 = define(
    "GatherV2(params: Tparams, indices: Tindices, axis: scalar host Taxis) -> (output: Tparams)",
    batch_dims=0,
    Tparams=ANY,
    Tindices=(dtypes.int16, *INDEX),
    Taxis=INDEX,
)
GATHER_V2.small("gather", lambda op: None if op.attrs["batch_dims"] else [])


def _gathers_padding(op: Operation, padded: list[bool], shape_of: Any) -> list[bool] | None:
    """Lookups of padded indices give padded rows. Lookups in padded rows are those of rows that count."""
    axis = constant_value(op._inputs[2])
    return None if axis is None or axis != 0 or padded[2] or op.attrs["batch_dims"] else [padded[1]]


GATHER_V2.planning.padded = _gathers_padding


@GATHER_V2.kernel
def gather_kernel(params: Any, indices: torch.Tensor, axis: int, *, batch_dims: int) -> Any:
    if axis:
        axis = _normalized(axis, params.ndim)
    if batch_dims:
        return _take_batched(params, indices, axis, batch_dims)
    return take(params, indices, axis)


@GATHER_V2.lower
def gather_lower(build: Any, op: Operation, params: Any, indices: Any, axis: Any) -> Any:
    return build.gather(params, indices, 1) if axis == 0 and not op.attr("batch_dims") else None


GATHER_V2.planning.lowers_large_inputs = True


@GATHER_V2.shape(values=["axis"])
def gather_shape(params: Shape, indices: Shape, axis: np.ndarray | None, *, batch_dims: int) -> Shape:
    params = params.at_least(1)
    if axis is None:
        if params.rank is None or indices.rank is None:
            return UNKNOWN_SHAPE
        return Shape((None,) * (params.rank + indices.rank - 1 - batch_dims))
    if params.dims is None:
        return UNKNOWN_SHAPE if int(axis) or batch_dims else indices.concat(params)
    at = params.normalize_axis(int(axis))
    if indices.dims is None:
        return UNKNOWN_SHAPE
    if batch_dims < 0:
        batch_dims += len(indices)
    if not 0 <= batch_dims <= len(indices) or batch_dims > at:
        raise InvalidArgumentError(
            None,
            None,
            f"batch_dims ({batch_dims}) must be at most axis ({at}) and the rank of indices ({len(indices)}).",
        )
    batch = Shape(params.dims[:batch_dims]).merge(Shape(indices.dims[:batch_dims]))
    return Shape((*batch, *params.dims[batch_dims:at], *indices.dims[batch_dims:], *params.dims[at + 1 :]))


@GATHER_V2.spelled_shape
def gathered_shape(op: Operation, index: int, sight: Sight) -> Shape:
    """Sizes gathered from a shape."""
    picks, axis = sight.value_of(op._inputs[1]), sight.value_of(op._inputs[2])
    known = constant_value_as_shape(op._inputs[0], sight) if op._inputs[0].static_shape.rank == 1 else UNKNOWN_SHAPE
    if picks is None or axis is None or known.dims is None or picks.ndim != 1 or (picks >= len(known)).any():
        length = op.outputs[0].static_shape.of_rank(1)[0]
        return UNKNOWN_SHAPE if length is None else Shape((None,) * length)
    return Shape(known.dims[int(pick)] for pick in picks)


def _rows_gradient(op: Operation, g: Any) -> IndexedSlices:
    """The gradient of gathering rows: IndexedSlices of those rows."""
    params, indices = op.inputs[0], op.inputs[1]
    g = convert_to_tensor(g)
    sizes = shaping.shape(params)
    row = params.static_shape[1:]
    if row.known and row.dims is not None:
        values_shape: Any = [-1, *row]
    else:
        values_shape = joining.concat([[-1], sizes[1:]], 0)
    if 0 in (row.dims or ()):
        values_shape = joining.concat([shaping.reshape(ranges.size(indices), [1]), sizes[1:]], 0)
    return IndexedSlices(shaping.reshape(g, values_shape), shaping.reshape(indices, [-1]), sizes)


@GATHER_V2.rows
def gather_rows(op: Operation, inputs: list[rows.Input]) -> list[Tensor] | None:
    """Each row gathers from the same values."""
    params, indices, axis = inputs
    if params.stacked or not indices.stacked or rows.numbers(axis) != 0 or op.attrs["batch_dims"]:
        return None
    return rows.again(op, [each.tensor for each in inputs])


@GATHER_V2.grad
def gather_grad(op: Operation, g: Any) -> Any:
    params, indices, axis = op.inputs
    at, batch_dims = constant_value(axis), op.attr("batch_dims")
    if at is not None and int(at) == 0 and batch_dims == 0:
        return _rows_gradient(op, g), None, None
    # View the gradient as [batch, before, gathered, after] with the gathered dimension first, sum by index, and transpose back.
    sizes, index_sizes = shaping.shape(params), shaping.shape(indices)
    place = _from_the_front(axis, params)
    batch = _from_the_front(batch_dims, indices)
    count, before = _product(sizes[:batch]), _product(sizes[batch:place])
    size, after = sizes[place], _product(sizes[place + 1 :])
    each = _product(index_sizes[batch:])
    moved = shaping.transpose(shaping.reshape(g, joined_sizes([count, before, each, after])), [0, 2, 1, 3])
    flat = shaping.reshape(indices, joined_sizes([count, each]))
    if batch_dims:
        offsets = casting.cast(ranges.range(count) * size, flat.dtype.base_dtype)
        flat = flat + shaping.expand_dims(offsets, 1)
    rows = shaping.reshape(moved, joined_sizes([count * each, before, after]))
    summed = segment_sum(rows, shaping.reshape(flat, [-1]), count * size)
    turned = shaping.transpose(shaping.reshape(summed, joined_sizes([count, size, before, after])), [0, 2, 1, 3])
    result = shaping.reshape(turned, sizes)
    if not getattr(result, "is_eager", False):
        result.set_shape(params.static_shape)
    return result, None, None


def _from_the_front(axis: Any, of: Tensor) -> Any:
    """Counts an axis, or a number of axes, from the front; a Python number if it is statically known."""
    known = constant_value(axis) if isinstance(axis, Tensor) else axis
    if known is not None:
        known = int(known)
        rank = of.static_shape.rank
        return known if known >= 0 else known + (ranges.rank(of) if rank is None else rank)
    axis = casting.cast(axis, dtypes.int32)
    return selection.where_v2(axis < 0, axis + ranges.rank(of), axis)


def _product(sizes: Tensor) -> Tensor:
    return ops.reduce_prod(sizes, 0)


def segment_sum(data: Any, segment_ids: Any, num_segments: Any, name: str | None = None) -> Tensor:
    """Sums the rows of `data` that have the same segment number (UnsortedSegmentSum)."""
    return ops.UnsortedSegmentSum(data, segment_ids, num_segments, name=name)


@export(v1="gather")
@dispatched
def gather(
    params: Any,
    indices: Any,
    validate_indices: Any = None,
    name: str | None = None,
    axis: Any = None,
    batch_dims: int = 0,
) -> Tensor:
    """Gathers slices of `params` along `axis` at the positions `indices`.

    Args:
        params: what to look up in, a tensor or variable.
        indices: integers in [0, params.shape[axis]).
        validate_indices: has no effect: indices are always checked on the CPU.
        name: the op's name.
        axis: the dimension of `params` that indices count; by default the first after the batch dimensions.
        batch_dims: the number of leading dimensions that `params` and `indices` share.
    """
    if axis is None:
        axis = batch_dims
    known = constant_value(axis) if isinstance(axis, Tensor) else axis
    if known is not None and np.ndim(known) == 0 and known == 0 and batch_dims == 0 and hasattr(params, "sparse_read"):
        # A resource variable is gathered from directly, without a copy of the whole variable.
        return params.sparse_read(indices, name=name)
    return GATHER_V2(params, indices, axis, batch_dims=batch_dims, name=name)


@export(v2="gather")
@dispatched
def gather_v2(
    params: Any,
    indices: Any,
    validate_indices: Any = None,
    axis: Any = None,
    batch_dims: int = 0,
    name: str | None = None,
) -> Tensor:
    """Gathers slices of `params` along `axis` at the positions `indices`."""
    return gather(params, indices, validate_indices, name, axis, batch_dims)


@export(v1="batch_gather")
def batch_gather(params: Any, indices: Any, name: str | None = None) -> Tensor:
    """Gathers along the last dimension of `indices`. All dimensions before it are batch dimensions."""
    with name_scope(name, "BatchGather", [params, indices]):
        indices = convert_to_tensor(indices, name="indices")
        rank = indices.static_shape.rank
        if rank is None:
            raise ValueError("batch_gather does not allow indices with unknown shape.")
        params = convert_to_tensor(params, name="params")
        _check_batch_dims(rank - 1, params, indices)
        return GATHER_V2(params, indices, rank - 1, batch_dims=rank - 1)


def _check_batch_dims(batch_dims: int, params: Tensor, indices: Tensor) -> None:
    """Raises ValueError if `batch_dims` exceeds the statically known ranks."""
    for label, tensor in (("indices", indices), ("params", params)):
        rank = tensor.static_shape.rank
        if rank is not None and not 0 <= batch_dims < rank:
            raise ValueError(f"Argument `batch_dims` = {batch_dims} must be less than rank(`{label}`) = {rank}")


# ---- GatherNd ---------------------------------------------------------------------------------------------------

GATHER_ND = define(
    "GatherNd(params: Tparams, indices: Tindices) -> (output: Tparams)",
    Tparams=ANY,
    Tindices=(dtypes.int16, *INDEX),
    bad_indices_policy=POLICY,
)
GATHER_ND.small("gather_nd", lambda op: [] if op.attrs["bad_indices_policy"] in ("", "DEFAULT", "ERROR") else None)


@GATHER_ND.lower
def gather_nd_lower(build: Any, op: Operation, params: Any, indices: Any) -> Any:
    if not indices.shape or not 0 < indices.shape[-1] <= len(params.shape):
        return None
    depth = indices.shape[-1]
    return build.gather(params, build.reshape(indices, indices.shape[:-1]) if depth == 1 else indices, depth)


GATHER_ND.planning.lowers_large_inputs = True


@GATHER_ND.kernel
def gather_nd_kernel(params: Any, indices: torch.Tensor, *, bad_indices_policy: str) -> Any:
    if not indices.ndim:
        raise InvalidArgumentError(None, None, "indices must be at least a vector")
    depth = indices.shape[-1]
    if depth > params.ndim:
        raise InvalidArgumentError(
            None, None, f"index innermost dimension length must be <= params rank; saw: {depth} vs. {params.ndim}"
        )
    if strings is not None and isinstance(params, np.ndarray) and depth == params.ndim and indices.ndim == 2:
        at = indices.to(torch.int64).contiguous().numpy()
        made = np.empty(len(at), dtype=object)
        if strings.gather(np.ascontiguousarray(params), params.shape, at, made):
            return made
    if isinstance(params, torch.Tensor):
        gathered = table_rows.gather_nd(signed(params), indices)
        if gathered is not None:
            return gathered.view(params.dtype)
    outer, inner = tuple(indices.shape[:-1]), tuple(params.shape[depth:])
    flat, bad = scattering.flat_index(
        indices, params.shape[:depth], bad_indices_policy, f"does not index into param shape {Shape(params.shape)}"
    )
    if numbers.prod(outer) and not numbers.prod(params.shape):
        raise InvalidArgumentError(
            None, None, f"Requested more than 0 entries, but params is empty: {Shape(params.shape)}"
        )
    if not numbers.prod(inner) or not numbers.prod(outer):
        return params.reshape(-1)[:0].reshape((*outer, *inner))
    rows = params.reshape(numbers.prod(params.shape[:depth]), numbers.prod(inner))
    taken = take(rows, flat, 0)
    if bad is not None and isinstance(taken, torch.Tensor):
        taken = signed(taken).masked_fill(bad.unsqueeze(1), fill_value(params)).view(taken.dtype)
    elif bad is not None:
        taken[bad] = fill_value(params)
    return taken.reshape((*outer, *inner))


def gather_nd_shape(params: Shape, indices: Shape) -> Shape:
    indices = indices.at_least(1)
    if indices.dims is None or indices.dims[-1] is None or params.dims is None:
        return UNKNOWN_SHAPE
    depth = indices.dims[-1]
    if depth > len(params):
        raise InvalidArgumentError(
            None,
            None,
            f"indices.shape[-1] must be <= params.rank, but saw indices shape: {indices} and params shape: {params}",
        )
    return Shape((*indices.dims[:-1], *params.dims[depth:]))


GATHER_ND.shape(gather_nd_shape)


def _size_dtype(indices: Tensor) -> DType:
    return dtypes.int64 if indices.dtype.base_dtype is dtypes.int64 else dtypes.int32


@GATHER_ND.grad
def gather_nd_grad(op: Operation, g: Tensor) -> Any:
    params, indices = op.inputs
    if indices.static_shape.rank == 2 and indices.static_shape[-1] == 1:
        sizes = shaping.shape(params, out_type=_size_dtype(indices))
        return IndexedSlices(convert_to_tensor(g), shaping.squeeze(indices, [-1]), sizes), None
    if indices.dtype.base_dtype is dtypes.int16:
        indices = casting.cast(indices, dtypes.int32)
    sizes = shaping.shape(params, out_type=indices.dtype.base_dtype)
    return scattering.SCATTER_ND(indices, g, sizes, bad_indices_policy=op.attr("bad_indices_policy")), None


@export(v1=("gather_nd", "manip.gather_nd"))
def gather_nd(
    params: Any, indices: Any, name: str | None = None, batch_dims: int = 0, bad_indices_policy: str = ""
) -> Tensor:
    """Gathers elements or slices of `params`. The last dimension of `indices` holds coordinates.

    Args:
        params: what to look up in.
        indices: coordinates, [..., K] with K at most the rank of `params` (less `batch_dims`).
        name: the op's name.
        batch_dims: the number of leading dimensions that `params` and `indices` share.
        bad_indices_policy: "ERROR" (or "") raises for coordinates outside; "IGNORE" gives zeros there.
    """
    if isinstance(batch_dims, Tensor):
        batch_dims = constant_value(batch_dims)
    if not isinstance(batch_dims, (int, np.integer)) and np.shape(batch_dims) != ():
        raise TypeError(f"Argument `batch_dims` must be an int; got {batch_dims!r}")
    if batch_dims is None:
        raise TypeError(
            f"Argument `batch_dims` must be an int that is known when the graph is built; got {batch_dims!r}"
        )
    batch_dims = int(batch_dims)
    if batch_dims == 0:
        return GATHER_ND(params, indices, bad_indices_policy=bad_indices_policy, name=name)
    with name_scope(name, "BatchGatherND", [params, indices]):
        params, indices = convert_to_tensor(params), convert_to_tensor(indices)
        rank = indices.static_shape.rank
        if rank is None:
            raise ValueError("tf.gather_nd does not allow indices with unknown shape.")
        _check_batch_dims(batch_dims, params, indices)
        shared = [x.static_shape[:batch_dims] for x in (params, indices) if x.static_shape.rank is not None]
        if len(shared) == 2 and not shared[0].compatible(shared[1]):
            raise context.invalid(
                f"The first {batch_dims} dimensions of params and indices differ: {shared[0]} and {shared[1]}."
            )
        # Prepend the batch coordinates to the given ones. This fails if the batch dimensions differ.
        sizes = shaping.shape(indices, out_type=indices.dtype.base_dtype)
        batch = shaping.shape(params, out_type=indices.dtype.base_dtype)
        parts = []
        for axis in range(batch_dims):
            steps = ranges.range(casting.cast(batch[axis], indices.dtype.base_dtype))
            form = [1] * rank
            form[axis] = -1
            ones = joined_sizes([*[(batch if i < batch_dims else sizes)[i] for i in range(rank - 1)], 1])
            parts.append(ranges.broadcast_to(shaping.reshape(steps, form), ones))
        return GATHER_ND(params, joining.concat([*parts, indices], -1), bad_indices_policy=bad_indices_policy)


@export(v2="gather_nd")
def gather_nd_v2(
    params: Any, indices: Any, batch_dims: int = 0, name: str | None = None, bad_indices_policy: str = ""
) -> Tensor:
    """Gathers elements or slices of `params`. The last dimension of `indices` holds coordinates."""
    return gather_nd(params, indices, name, batch_dims, bad_indices_policy)


# ---- IndexedSlices as a tensor ----------------------------------------------------------------------------------

_MANY = 100_000_000


def _dense(value: IndexedSlices, dtype: DType | None = None, name: str | None = None, as_ref: bool = False) -> Any:
    """Converts IndexedSlices to a dense tensor. Rows that occur more than once are summed."""
    if dtype is not None and value.dtype.base_dtype is not dtype:
        raise ValueError(
            f"Tensor conversion requested dtype {dtype.name} for IndexedSlices with dtype {value.dtype.name}"
        )
    if value.dense_shape is None:
        raise ValueError(f"Tensor conversion requested for IndexedSlices without dense_shape: {value}")
    size = constant_value_as_shape(value.dense_shape).size
    if size is None:
        warnings.warn(
            f"Converting sparse {value} to a dense Tensor of unknown shape. This may consume a large amount of memory.",
            stacklevel=2,
        )
    elif size >= _MANY:
        warnings.warn(
            f"Converting sparse {value} to a dense Tensor with {size} elements. This may consume a large amount of memory.",
            stacklevel=2,
        )
    rows = constant_value_as_shape(value.dense_shape)
    count = rows[0] if rows.dims else None
    number: Any = np.int32(count) if count is not None and count < 1 << 31 else value.dense_shape[0]
    result = segment_sum(value.values, value.indices, number, name=name)
    if not getattr(result, "is_eager", False):
        result.set_shape(rows.merge(result.static_shape))
    return result


register_tensor_conversion_function(IndexedSlices, _dense, 50)


@export(v1="convert_to_tensor_or_indexed_slices")
def convert_to_tensor_or_indexed_slices(value: Any, dtype: Any = None, name: str | None = None) -> Any:
    """Returns IndexedSlices and SparseTensors unchanged, and converts other values to a tensor."""
    if isinstance(value, (IndexedSlices, SparseTensor)):
        if dtype is not None and dtypes.as_dtype(dtype).base_dtype is not value.dtype.base_dtype:
            raise ValueError(
                f"Tensor conversion requested dtype {dtypes.as_dtype(dtype).name} for Tensor with dtype {value.dtype.name}: {value}"
            )
        return value
    return convert_to_tensor(value, dtype, name)
