"""Rank, size, ranges, and broadcasting to a shape."""

from __future__ import annotations

import math as numbers
from typing import Any

import numpy as np
import torch

from stoker._src.base import dtypes
from stoker._src.base.dtypes import FLOATS, INDEX, INTS, DType, as_dtype
from stoker._src.base.errors import InvalidArgumentError
from stoker._src.base.export import export
from stoker._src.base.shapes import UNKNOWN_SHAPE, Shape, TensorShape, as_shape, broadcast
from stoker._src.graph.conversion import convert_to_tensor
from stoker._src.graph.definition import ANY, OF_SHAPES, VIEW, define, one_of, scalar
from stoker._src.graph.late_binding import ops
from stoker._src.graph.scopes import name_scope
from stoker._src.graph.static_values import constant_value_as_shape
from stoker._src.graph.tensor import Operation, Tensor
from stoker._src.ops.array import casting, shaping
from stoker._src.ops.array.constants import constant
from stoker._src.ops.support.dispatching import dispatched
from stoker._src.ops.support.movement import allocatable, itemsize
from stoker._src.ops.support.values import torch_dtype

# ---- Rank, Size -------------------------------------------------------------------------------------------------

RANK = define("Rank(input: T) -> (output: int32)", OF_SHAPES, T=ANY).not_differentiable()
RANK.small("rank")
RANK.kernel(lambda input: torch.tensor(input.ndim, dtype=torch.int32))
RANK.shape(scalar)


@RANK.static_value
def static_rank(op: Operation) -> Any:
    rank = op._inputs[0].static_shape.rank
    return None if rank is None else np.array(rank, np.int32)


SIZE = define(
    "Size(input: T) -> (output: out_type)", OF_SHAPES, T=ANY, out_type=one_of(*INDEX, default=dtypes.int32)
).not_differentiable()
SIZE.small("size")
SIZE.shape(scalar)


@SIZE.kernel
def size_kernel(input: Any, *, out_type: DType) -> torch.Tensor:
    count = input.numel() if isinstance(input, torch.Tensor) else input.size
    return torch.from_numpy(np.array(count, out_type.as_numpy_dtype))


@SIZE.static_value
def static_size(op: Operation) -> Any:
    size = op._inputs[0].static_shape.size
    return None if size is None else np.array(size, op.attrs["out_type"].as_numpy_dtype)


@export("rank")
@dispatched
def rank(input: Any, name: str | None = None) -> Tensor:
    """The number of dimensions; a constant if it is statically known."""
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
    """The number of elements; a constant if it is statically known."""
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
RANGE.small("range")


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
    if not (first <= last if step > 0 else first >= last):  # also true if one is NaN
        order = "<=" if step > 0 else ">="
        raise InvalidArgumentError(
            None, None, f"Requires start {order} limit when delta {'>' if step > 0 else '<'} 0: {first}/{last}"
        )


def _steps(first: float, last: float, step: float) -> int:
    """The number of elements in a floating point range."""
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
    """A vector of numbers from `start` (inclusive) to `limit` (exclusive) with step `delta`. A single argument is the limit."""
    if limit is None:
        start, limit = 0, start
    with name_scope(name, "Range", [start, limit, delta]) as scope:
        wanted = None if dtype is None else as_dtype(dtype)
        given = ((start, "start"), (limit, "limit"), (delta, "delta"))
        parts = [v if isinstance(v, Tensor) else convert_to_tensor(v, wanted, n) for v, n in given]
        if wanted is None:  # the widest dtype of the three
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
BROADCAST_TO.small("broadcast_to")


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
    """Broadcasts `input` to `shape`."""
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


BROADCAST_ARGS.spelled_shape(
    lambda op, index, sight: broadcast(*[constant_value_as_shape(each, sight) for each in op._inputs])
)


@export("broadcast_dynamic_shape")
def broadcast_dynamic_shape(shape_x: Any, shape_y: Any) -> Tensor:
    """The broadcast shape of two shapes that are given as tensors."""
    return BROADCAST_ARGS(shape_x, shape_y)


@export("broadcast_static_shape")
def broadcast_static_shape(shape_x: Any, shape_y: Any) -> TensorShape:
    """The broadcast shape of two static shapes.

    Raises:
        ValueError: the shapes are incompatible.
    """
    try:
        return TensorShape(broadcast(as_shape(shape_x), as_shape(shape_y)))
    except InvalidArgumentError as error:
        raise ValueError(f"Incompatible shapes for broadcasting: {shape_x} and {shape_y}. ({error.message})") from None


# ---- LinSpace ---------------------------------------------------------------------------------------------------


# ---- compositions -----------------------------------------------------------------------------------------------


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
        # Division truncates toward zero, as in TensorFlow for negative indices.
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
    """Converts flat indices to coordinates in an array of shape `dims`, one column for each index."""
    return UNRAVEL_INDEX(indices, dims, name=name)
