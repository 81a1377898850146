"""Rank, size, ranges and broadcasting to a shape."""

from __future__ import annotations

import math as numbers
from collections.abc import Callable
from typing import Any

import numpy as np
import torch

from stoker._src.base import dtypes
from stoker._src.base.dtypes import FLOATS, INDEX, INTS, DType, as_dtype
from stoker._src.base.errors import InvalidArgumentError
from stoker._src.base.export import export
from stoker._src.base.shapes import UNKNOWN_SHAPE, Shape, TensorShape, as_shape, broadcast
from stoker._src.graph import context
from stoker._src.graph.conversion import convert_to_tensor
from stoker._src.graph.definition import ANY, OF_SHAPES, VIEW, define, one_of, scalar
from stoker._src.graph.late_binding import ops
from stoker._src.graph.scopes import name_scope
from stoker._src.graph.static_values import constant_value, constant_value_as_shape
from stoker._src.graph.tensor import Operation, Tensor
from stoker._src.ops.array import casting, joining, shaping
from stoker._src.ops.array.constants import constant
from stoker._src.ops.support.dispatching import dispatched
from stoker._src.ops.support.movement import allocatable, itemsize
from stoker._src.ops.support.values import torch_dtype

# ---- Rank, Size -------------------------------------------------------------------------------------------------

RANK = define("Rank(input: T) -> (output: int32)", OF_SHAPES, T=ANY).not_differentiable()
RANK.kernel(lambda input: torch.tensor(input.ndim, dtype=torch.int32))
RANK.shape(scalar)


@RANK.static_value
def static_rank(op: Operation) -> Any:
    rank = op._inputs[0].static_shape.rank
    return None if rank is None else np.array(rank, np.int32)


SIZE = define(
    "Size(input: T) -> (output: out_type)", OF_SHAPES, T=ANY, out_type=one_of(*INDEX, default=dtypes.int32)
).not_differentiable()
SIZE.shape(scalar)


@SIZE.kernel
def size_kernel(input: Any, *, out_type: DType) -> torch.Tensor:
    count = input.numel() if isinstance(input, torch.Tensor) else input.size
    return torch.tensor(count, dtype=torch_dtype(out_type))


@SIZE.static_value
def static_size(op: Operation) -> Any:
    size = op._inputs[0].static_shape.size
    return None if size is None else np.array(size, op.attrs["out_type"].as_numpy_dtype)


@export("rank")
@dispatched
def rank(input: Any, name: str | None = None) -> Tensor:
    """The number of dimensions; a constant when it is known."""
    if not isinstance(input, Tensor):
        with name_scope(name, "Rank") as scope:
            return rank(convert_to_tensor(input), scope)
    tensor = convert_to_tensor(input)
    known = tensor.static_shape.rank
    if known is not None:
        return constant(known, dtypes.int32, name=name or "Rank")
    return RANK(tensor, name=name)


@export(v1="size")
@dispatched
def size(input: Any, name: str | None = None, out_type: Any = dtypes.int32) -> Tensor:
    """The number of elements; a constant when it is known."""
    if not isinstance(input, Tensor):
        with name_scope(name, "Size") as scope:
            return size(convert_to_tensor(input), scope, out_type)
    tensor = convert_to_tensor(input)
    known = tensor.static_shape.size
    if known is not None:
        return constant(known, as_dtype(out_type), name=name or "Size")
    return SIZE(tensor, out_type=out_type, name=name)


@export(v2="size")
@dispatched
def size_v2(input: Any, out_type: Any = dtypes.int32, name: str | None = None) -> Tensor:
    """The number of elements."""
    return size(input, name, out_type)


# ---- Range ------------------------------------------------------------------------------------------------------

_RANGE = (*FLOATS, *(each for each in INTS if each is not dtypes.uint8))
RANGE = define(
    "Range(start: scalar/single Tidx, limit: scalar/single Tidx, delta: scalar/single Tidx) -> (output: Tidx)",
    Tidx=one_of(*_RANGE, default=dtypes.int32),
).not_differentiable()


@RANGE.kernel
def range_kernel(start: torch.Tensor, limit: torch.Tensor, delta: torch.Tensor) -> torch.Tensor:
    first, last, step = start.item(), limit.item(), delta.item()
    _check_range(first, last, step)
    if start.dtype.is_floating_point:
        count = _steps(first, last, step)
        allocatable([count], start.element_size())
        return start + torch.arange(count, dtype=start.dtype) * delta
    allocatable([max(0, int(-((first - last) // step)))], start.element_size())
    return torch.arange(first, last, step, dtype=start.dtype)


def _check_range(first: float, last: float, step: float) -> None:
    if step == 0:
        raise InvalidArgumentError(None, None, "Requires delta != 0: 0")
    if not (first <= last if step > 0 else first >= last):  # also where one is not a number
        order = "<=" if step > 0 else ">="
        raise InvalidArgumentError(
            None, None, f"Requires start {order} limit when delta {'>' if step > 0 else '<'} 0: {first}/{last}"
        )


def _steps(first: float, last: float, step: float) -> int:
    """How many floating point numbers a range holds."""
    count = np.ceil((last - first) / step)
    if not count < 2.0**63:
        raise InvalidArgumentError(
            None, None, f"Requires ((limit - start) / delta) <= {2**63 - 1}: ({last} - {first}) / {step}"
        )
    return max(0, int(count))


@RANGE.shape(values=["start", "limit", "delta"])
def range_shape(start: Any, limit: Any, delta: Any) -> Shape:
    if start is None or limit is None or delta is None:
        return Shape((None,))
    _check_range(start, limit, delta)
    if np.issubdtype(start.dtype, np.integer):
        return Shape((len(builtin_range(int(start), int(limit), int(delta))),))
    return Shape((_steps(float(start), float(limit), float(delta)),))


builtin_range = range
_ORDER = (dtypes.int32, dtypes.int64, dtypes.float16, dtypes.bfloat16, dtypes.float32, dtypes.float64)


@export("range")
def range(start: Any, limit: Any = None, delta: Any = 1, dtype: Any = None, name: str = "range") -> Tensor:
    """Numbers from `start` up to, not including, `limit`, `delta` apart; with one argument, from 0."""
    if limit is None:
        start, limit = 0, start
    with name_scope(name, "Range", [start, limit, delta]) as scope:
        wanted = None if dtype is None else as_dtype(dtype)
        given = ((start, "start"), (limit, "limit"), (delta, "delta"))
        parts = [v if isinstance(v, Tensor) else convert_to_tensor(v, wanted, n) for v, n in given]
        if wanted is None:  # the widest of the three decides
            found = [part.dtype.base_dtype for part in parts]
            if unranked := [each.name for each in found if each not in _ORDER]:
                raise TypeError(f"range() needs a `dtype` for numbers of type {', '.join(unranked)}.")
            wanted = max(found, key=_ORDER.index)
        parts = [casting.cast(part, wanted) for part in parts]
        return RANGE(*parts, name=scope)


# ---- BroadcastTo ------------------------------------------------------------------------------------------------

BROADCAST_TO = define(
    "BroadcastTo(input: T, shape: host Tidx) -> (output: T)", VIEW, T=ANY, Tidx=one_of(*INDEX, default=dtypes.int32)
)


@BROADCAST_TO.kernel
def broadcast_to_kernel(input: Any, shape: list[int]) -> Any:
    shape = allocatable(shape, itemsize(input))
    return input.expand(shape) if isinstance(input, torch.Tensor) else np.broadcast_to(input, shape)


@BROADCAST_TO.lower
def broadcast_to_lower(build: Any, op: Operation, input: Any, shape: list[int]) -> Any:
    return build.broadcast(input, tuple(shape))


@BROADCAST_TO.shape(as_shapes=["shape"])
def broadcast_to_shape(input: Shape, shape: Shape) -> Shape:
    if None not in (input.rank, shape.rank) and input.rank > shape.rank:  # type: ignore[operator]
        raise InvalidArgumentError(None, None, f"Shape must be at most rank {shape.rank} but is rank {input.rank}.")
    if shape.known and input.known:
        if broadcast(input, shape).dims != shape.dims:
            raise InvalidArgumentError(None, None, f"Incompatible shapes: {input} does not broadcast to {shape}.")
    if shape.dims is None or input.dims is None or len(input) > len(shape):
        return shape
    kept = (None,) * (len(shape) - len(input)) + tuple(None if size == 1 else size for size in input.dims)
    return Shape(own if size is None else size for size, own in zip(shape.dims, kept))


@BROADCAST_TO.grad
def broadcast_to_grad(op: Operation, g: Tensor) -> Any:
    sizes = shaping.shape(op.inputs[0])
    axes, _ = ops.BroadcastGradientArgs(sizes, shaping.shape(g))
    return shaping.reshape(ops.Sum(g, axes), sizes), None


@export("broadcast_to")
def broadcast_to(input: Any, shape: Any, name: str | None = None) -> Tensor:
    """`input` repeated to fill `shape`."""
    return BROADCAST_TO(input, shape, name=name)


# ---- BroadcastArgs ----------------------------------------------------------------------------------------------

BROADCAST_ARGS = define("BroadcastArgs(s0: host T, s1: host T) -> (r0: T)", T=one_of(*INDEX, default=dtypes.int32))


@BROADCAST_ARGS.kernel
def broadcast_args_kernel(s0: list[int], s1: list[int], *, T: DType) -> torch.Tensor:
    return torch.tensor(broadcast(Shape(s0), Shape(s1)).dims, dtype=torch_dtype(T))


@BROADCAST_ARGS.shape
def broadcast_args_shape(s0: Shape, s1: Shape) -> Shape:
    a, b = s0.of_rank(1)[0], s1.of_rank(1)[0]
    return Shape((None if a is None or b is None else max(a, b),))


BROADCAST_ARGS.spelled_shape(lambda op, index: broadcast(*map(constant_value_as_shape, op._inputs)))


@export("broadcast_dynamic_shape")
def broadcast_dynamic_shape(shape_x: Any, shape_y: Any) -> Tensor:
    """The shape of an element-wise operation of tensors of two shapes, given as vectors."""
    return BROADCAST_ARGS(shape_x, shape_y)


@export("broadcast_static_shape")
def broadcast_static_shape(shape_x: Any, shape_y: Any) -> TensorShape:
    """The shape of an element-wise operation of tensors of two static shapes.

    Raises:
        ValueError: they do not broadcast.
    """
    try:
        return TensorShape(broadcast(as_shape(shape_x), as_shape(shape_y)))
    except InvalidArgumentError as error:
        raise ValueError(f"Incompatible shapes for broadcasting: {shape_x} and {shape_y}. ({error.message})") from None


# ---- LinSpace ---------------------------------------------------------------------------------------------------

LIN_SPACE = define(
    "LinSpace(start: scalar T, stop: scalar T, num: scalar host Tidx) -> (output: T)",
    T=FLOATS,
    Tidx=one_of(*INDEX, default=dtypes.int32),
).not_differentiable()


@LIN_SPACE.kernel
def lin_space_kernel(start: torch.Tensor, stop: torch.Tensor, num: int) -> torch.Tensor:
    if start.ndim or stop.ndim:
        raise InvalidArgumentError(
            None, None, f"start and stop must be scalars, got {Shape(start.shape)} and {Shape(stop.shape)}"
        )
    if type(num) is list or num <= 0:
        raise InvalidArgumentError(None, None, f"Requires num > 0: {num}")
    if num == 1:
        return start.reshape(1).clone()
    allocatable([num], start.element_size())
    step = (stop - start) / (num - 1)
    result = start + step * torch.arange(num, dtype=start.dtype, device=start.device)
    result[-1] = stop
    return result


@LIN_SPACE.shape(values=["num"])
def lin_space_shape(start: Shape, stop: Shape, num: Any) -> Shape:
    if num is not None and num <= 0:
        raise InvalidArgumentError(None, None, f"Requires num > 0: {num}")
    return Shape((None if num is None else int(num),))


@export("linspace", v1="lin_space")
def linspace(start: Any, stop: Any, num: Any, name: str | None = None, axis: int = 0) -> Tensor:
    """`num` evenly spaced numbers from `start` to `stop`, both included, along a new dimension at `axis`."""
    with name_scope(name, "linspace", [start, stop]) as scope:
        given = isinstance(start, Tensor) or isinstance(stop, Tensor)
        start = convert_to_tensor(start, name="start")
        stop = convert_to_tensor(stop, start.dtype.base_dtype, name="stop")
        num = convert_to_tensor(num, name="num")
        if not num.dtype.is_integer and num.dtype.base_dtype is not dtypes.bool_:
            raise TypeError(f"Argument `tensor` (name: num) must be of type integer. Received `tensor` = {num!r}.")
        if start.dtype.base_dtype.is_integer:
            start, stop = casting.cast(start, dtypes.float64), casting.cast(stop, dtypes.float64)
        axis = _plain_axis(axis, start)
        ends = [constant_value(each) for each in (start, stop, num)]
        finite = all(end is not None and end.dtype != object and np.isfinite(end).all() for end in ends)
        if not given and finite and ends[2].all() and start.static_shape.rank == 0 and stop.static_shape.rank == 0:
            if axis not in (0, -1):
                shaping.expand_dims(start, axis)  # says what is wrong with it
            return LIN_SPACE(start, stop, num if num.dtype.is_integer else casting.cast(num, dtypes.int32), name=scope)
        # Of ops that have gradients, which LinSpace has not.
        num = casting.cast(num, dtypes.int32)
        if ends[2] is not None and (ends[2] < 0).any():
            raise context.invalid(f"Requires num >= 0: {ends[2]}")
        kind = start.dtype.base_dtype
        if start.static_shape != stop.static_shape or not start.static_shape.known:
            zeros = shaping.zeros_like(start + stop)  # type: ignore[operator]
            start, stop = start + zeros, stop + zeros  # type: ignore[operator]
        first, last = shaping.expand_dims(start, axis), shaping.expand_dims(stop, axis)
        dims = first.static_shape.rank
        if dims is None:
            whole = rank(first)
            before = axis if axis >= 0 else axis + whole  # type: ignore[operator]
            ones = [shaping.ones([count], dtypes.int32) for count in (before, whole - 1 - before)]  # type: ignore[operator]
            form: Any = joining.concat([ones[0], [-1], ones[1]], 0)
        else:
            form = [1] * dims
            form[axis % dims] = -1
        steps = shaping.reshape(range(num), form)
        count = ops.maximum(num - 1, 1)  # type: ignore[operator]
        inner = first + (last - first) / casting.cast(count, kind) * casting.cast(steps, kind)  # type: ignore[operator]
        # The ends are exact, whatever the steps come to. One number is the start.
        inner = ops.SelectV2(ops.GreaterEqual(steps, count), last, inner)
        return ops.SelectV2(ops.Less(steps, 1), first, inner, name=scope)


def _plain_axis(axis: Any, x: Tensor) -> int:
    """An axis for a new dimension of `x`, given as a number or as a tensor whose value is known, or does not matter."""
    if isinstance(axis, (int, np.integer)) and not isinstance(axis, bool):
        return int(axis)
    shaping.expand_dims(x, axis)  # says what is wrong with others
    known = constant_value(axis) if isinstance(axis, Tensor) else None
    if known is None and not (isinstance(axis, Tensor) and x.static_shape.rank == 0):
        raise TypeError(f"Argument `axis` must be an integer that is known when the graph is built, got {axis!r}.")
    if known is not None and known.ndim:
        raise ValueError(f"Shape must be rank 0 but is rank {known.ndim}: axis")
    return 0 if known is None else int(known)


# ---- compositions -----------------------------------------------------------------------------------------------


@export("meshgrid")
def meshgrid(*args: Any, **kwargs: Any) -> list[Tensor]:
    """Coordinates of a grid spanned by vectors: each repeated along the dimensions of the others.

    Args:
        *args: the vectors.
        **kwargs: `indexing`, "xy" (default: the first two dimensions exchanged, as in a plot) or "ij"; `name`.

    Raises:
        TypeError: another keyword.
        ValueError: another indexing.
    """
    indexing = kwargs.pop("indexing", "xy")
    name = kwargs.pop("name", "meshgrid")
    if kwargs:
        raise TypeError(f"'{next(iter(kwargs))}' is an invalid keyword argument for this function")
    if indexing not in ("xy", "ij"):
        raise ValueError(f"Argument `indexing` parameter must be either 'xy' or 'ij', got '{indexing}'")
    with name_scope(name, "meshgrid", args):
        count = len(args)
        vectors = [convert_to_tensor(each) for each in args]
        kinds = [vector.dtype.base_dtype.name for vector in vectors]
        if len(set(kinds)) > 1:
            text = f"The vectors of meshgrid must be of one dtype, found {kinds}."
            raise InvalidArgumentError(None, None, text) if context.executing_eagerly() else TypeError(text)
        grid, sizes = [], [size(each) for each in vectors]
        order = list(builtin_range(count))
        if indexing == "xy" and count > 1:
            order[0], order[1] = 1, 0
            sizes[0], sizes[1] = sizes[1], sizes[0]
        target = joining.joined_sizes(sizes) if sizes else []
        for position, vector in zip(order, vectors):
            form = [1] * count
            form[position] = -1
            grid.append(broadcast_to(shaping.reshape(vector, form), target))
        return grid


def _check_counts(counts: Shape, length: int | None) -> None:
    """Raises ValueError unless there is one count for all, or one for each."""
    if counts.rank is not None and counts.rank > 1:
        raise ValueError(f"Shape {TensorShape(counts)} must have rank at most 1: `repeats`")
    if counts.rank == 1 and None not in (counts[0], length) and counts[0] not in (1, length):
        raise ValueError(f"Dimensions {length} and {counts[0]} are not compatible: `input` along axis, and `repeats`")


def along_axis(x: Tensor, axis: Any, function: Callable[[Tensor], Tensor]) -> Tensor:
    """`function` along `axis` of a tensor whose rank is not known, or along one that is not (a tensor, not below 0).

    It receives [before, along, behind] and may put any number of dimensions in the place of the middle one.
    """
    sizes: Any = shaping.SHAPE_OP(x)
    before, behind = sizes[:axis], sizes[:0] if type(axis) is int and axis == -1 else sizes[axis + 1 :]
    outer, inner = (ops.reduce_prod(part) for part in (before, behind))
    done = function(shaping.reshape(x, joining.joined_sizes([outer, sizes[axis], inner])))
    along: Any = shaping.SHAPE_OP(done)
    return shaping.reshape(done, joining.concat([before, along[1:-1], behind], 0))


@export("repeat")
def repeat(input: Any, repeats: Any, axis: int | None = None, name: str | None = None) -> Tensor:
    """Each element (or slice along `axis`) of `input` repeated as often as `repeats` says."""
    with name_scope(name, "Repeat", [input, repeats]):
        data = convert_to_tensor(input, name="data")
        if axis is None:
            data, axis = shaping.reshape(data, [-1]), 0
        counts = convert_to_tensor(repeats, name="repeats")
        if not isinstance(axis, (int, np.integer)):
            raise TypeError(f"Argument `axis` must be an int. Received `axis` = {axis!r} of type {type(axis).__name__}")
        rank = data.static_shape.rank
        if not counts.dtype.is_integer:
            raise TypeError(f"Argument `tensor` (name: repeats) must be of type integer. Received {counts}")
        at = axis
        if rank is not None:
            if not -max(rank, 1) <= axis < max(rank, 1):
                raise ValueError(f"axis={axis} out of bounds: expected {-max(rank, 1)}<=axis<{max(rank, 1)}")
            at = axis % rank if rank else 0
            if rank == 0:
                data, at = shaping.reshape(data, [1]), 0
            _check_counts(counts.static_shape, data.static_shape[at])
        counts = casting.cast(counts, dtypes.int32)
        length = shaping.shape(data)[at]  # type: ignore[index]
        if rank is not None and counts.static_shape.rank == 0:
            # One count for all: a new dimension, filled and folded in.
            wide = shaping.expand_dims(data, at + 1)
            times = [1] * max(rank + 1, 2)
            times[at + 1] = counts
            sizes = [shaping.shape(data)[i] for i in builtin_range(max(rank, 1))]  # type: ignore[index]
            sizes[at] = sizes[at] * counts
            return shaping.reshape(joining.tile(wide, times), joining.joined_sizes(sizes))
        counts = broadcast_to(counts, shaping.reshape(length, [1]))
        # Each position stands as often in a row as it is repeated; the rows' true parts, one after the other, are the result.
        longest = ops.maximum(ops.reduce_max(counts), 0)
        rows = broadcast_to(shaping.expand_dims(range(length), 1), joining.joined_sizes([length, longest]))
        places = ops.boolean_mask(rows, ops.sequence_mask(counts, longest))
        known_counts = constant_value(counts)
        if known_counts is not None:
            places.set_shape([int(np.maximum(known_counts, 0).sum())])
        if at == 0:
            data = shaping.reshape(data, shaping.shape(data))  # whose gradient is dense
        return ops.GatherV2(data, places, at)


# ---- UnravelIndex -----------------------------------------------------------------------------------------------

UNRAVEL_INDEX = define(
    "UnravelIndex(indices: Tidx, dims: vector host Tidx) -> (output: Tidx)", Tidx=one_of(*INDEX, default=dtypes.int32)
)


@UNRAVEL_INDEX.kernel
def unravel_index_kernel(indices: torch.Tensor, dims: list[int]) -> torch.Tensor:
    if indices.ndim > 1:
        raise InvalidArgumentError(
            None, None, f'The indices can only be scalar or vector, got "{Shape(indices.shape)}"'
        )
    if 0 in dims:
        raise InvalidArgumentError(
            None, None, f"Input dims cannot contain a dim of zero, but dims contains zero at index {dims.index(0)}"
        )
    if not indices.numel():
        raise InvalidArgumentError(None, None, f"received empty tensor indices of shape {Shape(indices.shape)}")
    if any(size < 0 for size in dims):
        raise InvalidArgumentError(None, None, f"Input dims cannot be negative. Got {dims}")
    total = numbers.prod(dims)
    if total > torch.iinfo(indices.dtype).max:
        raise InvalidArgumentError(None, None, f"Input dims product is causing integer overflow: {dims}")
    if int(indices.max()) >= total:
        raise InvalidArgumentError(None, None, f"index is out of bound as with dims: {int(indices.max())} in {dims}")
    if not dims:
        return indices.new_zeros((0, *indices.shape))
    coordinates, rest = [], indices
    for size in reversed(dims):
        # C's rounding towards zero, as TensorFlow has it for negative indices.
        quotient = torch.div(rest, size, rounding_mode="trunc")
        coordinates.append(rest - quotient * size)
        rest = quotient
    return torch.stack(coordinates[::-1])


@UNRAVEL_INDEX.shape
def unravel_index_shape(indices: Shape, dims: Shape) -> Shape:
    if indices.dims is None or len(indices) > 1:
        return UNKNOWN_SHAPE
    return dims.of_rank(1).concat(indices)


@export("unravel_index")
def unravel_index(indices: Any, dims: Any, name: str | None = None) -> Tensor:
    """Positions in a flat array as coordinates in one of sizes `dims`: one column for each index."""
    return UNRAVEL_INDEX(indices, dims, name=name)
