"""Rank, size, ranges and broadcasting to a shape."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from stoker._src.base import dtypes
from stoker._src.base.dtypes import INDEX, REAL, DType, as_dtype
from stoker._src.base.errors import InvalidArgumentError
from stoker._src.base.export import export
from stoker._src.base.shapes import Shape, broadcast
from stoker._src.graph.conversion import convert_to_tensor
from stoker._src.graph.definition import ANY, VIEW, define, one_of, scalar
from stoker._src.graph.scopes import name_scope
from stoker._src.graph.static_values import VALUE_READERS
from stoker._src.graph.tensor import Operation, Tensor
from stoker._src.ops import array, broadcasting, math, reductions
from stoker._src.ops.constants import constant
from stoker._src.ops.values import torch_dtype

# ---- Rank, Size -------------------------------------------------------------------------------------------------

RANK = define("Rank(input: T) -> (output: int32)", T=ANY).not_differentiable()
RANK.kernel(lambda input: torch.tensor(input.ndim, dtype=torch.int32))
RANK.shape(scalar)
VALUE_READERS["Rank"] = lambda op: (
    None if op._inputs[0].static_shape.rank is None else np.array(op._inputs[0].static_shape.rank, np.int32)
)

SIZE = define(
    "Size(input: T) -> (output: out_type)", T=ANY, out_type=one_of(*INDEX, default=dtypes.int32)
).not_differentiable()
SIZE.shape(scalar)


@SIZE.kernel
def size_kernel(input: Any, *, out_type: DType) -> torch.Tensor:
    count = input.numel() if isinstance(input, torch.Tensor) else input.size
    return torch.tensor(count, dtype=torch_dtype(out_type))


VALUE_READERS["Size"] = lambda op: (
    None
    if op._inputs[0].static_shape.size is None
    else np.array(op._inputs[0].static_shape.size, op.attrs["out_type"].as_numpy_dtype)
)


@export("rank")
def rank(input: Any, name: str | None = None) -> Tensor:
    """The number of dimensions; a constant when it is known."""
    tensor = convert_to_tensor(input)
    known = tensor.static_shape.rank
    if known is not None:
        return constant(known, dtypes.int32, name=name or "Rank")
    return RANK(tensor, name=name)


@export(v1="size")
def size(input: Any, name: str | None = None, out_type: Any = dtypes.int32) -> Tensor:
    """The number of elements; a constant when it is known."""
    tensor = convert_to_tensor(input)
    known = tensor.static_shape.size
    if known is not None:
        return constant(known, as_dtype(out_type), name=name or "Size")
    return SIZE(tensor, out_type=as_dtype(out_type), name=name)


@export(v2="size")
def size_v2(input: Any, out_type: Any = dtypes.int32, name: str | None = None) -> Tensor:
    """The number of elements."""
    return size(input, name, out_type)


# ---- Range ------------------------------------------------------------------------------------------------------

RANGE = define("Range(start: Tidx, limit: Tidx, delta: Tidx) -> (output: Tidx)", Tidx=REAL).not_differentiable()


@RANGE.kernel
def range_kernel(start: torch.Tensor, limit: torch.Tensor, delta: torch.Tensor) -> torch.Tensor:
    first, last, step = start.item(), limit.item(), delta.item()
    _check_range(first, last, step)
    if start.dtype.is_floating_point:
        count = max(0, int(np.ceil((last - first) / step)))
        return start + torch.arange(count, dtype=start.dtype) * delta
    return torch.arange(first, last, step, dtype=start.dtype)


def _check_range(first: float, last: float, step: float) -> None:
    if step == 0:
        raise InvalidArgumentError(None, None, "Requires delta != 0: 0")
    if (step > 0 and first > last) or (step < 0 and first < last):
        order = "<=" if step > 0 else ">="
        raise InvalidArgumentError(
            None, None, f"Requires start {order} limit when delta {'>' if step > 0 else '<'} 0: {first}/{last}"
        )


@RANGE.shape(values=["start", "limit", "delta"])
def range_shape(start: Any, limit: Any, delta: Any) -> Shape:
    if start is None or limit is None or delta is None:
        return Shape((None,))
    _check_range(start, limit, delta)
    if np.issubdtype(start.dtype, np.integer):
        return Shape((len(builtin_range(int(start), int(limit), int(delta))),))
    return Shape((max(0, int(np.ceil((limit - start) / delta))),))


builtin_range = range
_ORDER = (dtypes.int32, dtypes.int64, dtypes.float32, dtypes.float64)


@export("range")
def range(start: Any, limit: Any = None, delta: Any = 1, dtype: Any = None, name: str = "range") -> Tensor:
    """Numbers from `start` up to, not including, `limit`, `delta` apart; with one argument, from 0."""
    if limit is None:
        start, limit = 0, start
    with name_scope(name, "Range", [start, limit, delta]) as scope:
        wanted = None if dtype is None else as_dtype(dtype)
        parts = [convert_to_tensor(v, wanted, n) for v, n in ((start, "start"), (limit, "limit"), (delta, "delta"))]
        if wanted is None:  # the widest of the three decides
            found = [part.dtype.base_dtype for part in parts]
            widest = max(found, key=lambda each: _ORDER.index(each) if each in _ORDER else 0)
            parts = [math.cast(part, widest) for part in parts]
        return RANGE(*parts, name=scope)


# ---- BroadcastTo ------------------------------------------------------------------------------------------------

BROADCAST_TO = define(
    "BroadcastTo(input: T, shape: host Tidx) -> (output: T)", VIEW, T=ANY, Tidx=one_of(*INDEX, default=dtypes.int32)
)


@BROADCAST_TO.kernel
def broadcast_to_kernel(input: Any, shape: list[int]) -> Any:
    return input.expand(shape) if isinstance(input, torch.Tensor) else np.broadcast_to(input, shape)


@BROADCAST_TO.shape(as_shapes=["shape"])
def broadcast_to_shape(input: Shape, shape: Shape) -> Shape:
    if shape.known and input.known:
        if broadcast(input, shape).dims != shape.dims:
            raise InvalidArgumentError(None, None, f"Incompatible shapes: {input} does not broadcast to {shape}.")
    return shape


@BROADCAST_TO.grad
def broadcast_to_grad(op: Operation, g: Tensor) -> Any:
    sizes = array.shape(op.inputs[0])
    axes, _ = broadcasting.BROADCAST_GRADIENT_ARGS(sizes, array.shape(g))
    return array.reshape(reductions.SUM(g, axes), sizes), None


@export("broadcast_to")
def broadcast_to(input: Any, shape: Any, name: str | None = None) -> Tensor:
    """`input` repeated to fill `shape`."""
    return BROADCAST_TO(input, shape, name=name)
