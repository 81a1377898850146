"""Gradients of broadcasting ops: sums over the dimensions that were broadcast."""

from __future__ import annotations

import torch

from stoker._src.base import dtypes
from stoker._src.base.dtypes import INDEX, DType
from stoker._src.base.errors import InvalidArgumentError
from stoker._src.base.shapes import Shape
from stoker._src.graph.definition import define, one_of
from stoker._src.graph.late_binding import ops
from stoker._src.graph.tensor import Tensor
from stoker._src.ops.array import shaping
from stoker._src.ops.support.values import torch_dtype

BROADCAST_GRADIENT_ARGS = define(
    "BroadcastGradientArgs(s0: vector host T, s1: vector host T) -> (r0: T, r1: T)",
    T=one_of(*INDEX, default=dtypes.int32),
).not_differentiable()
BROADCAST_GRADIENT_ARGS.small("gradient_axes")


@BROADCAST_GRADIENT_ARGS.kernel
def broadcast_gradient_args_kernel(s0: list[int], s1: list[int], *, T: DType) -> tuple[torch.Tensor, torch.Tensor]:
    rank = max(len(s0), len(s1))
    a = [1] * (rank - len(s0)) + list(s0)
    b = [1] * (rank - len(s1)) + list(s1)
    for x, y in zip(a, b):
        if x != y and 1 not in (x, y):
            raise InvalidArgumentError(None, None, f"Shapes {list(s0)} and {list(s1)} do not broadcast.")
    # If a dimension is 1 on both sides, both gradients are summed over it. This costs nothing and keeps the ranks right.
    first, second = ([i for i in range(rank) if sizes[i] == 1] for sizes in (a, b))
    kind = torch_dtype(T)
    return torch.tensor(first, dtype=kind), torch.tensor(second, dtype=kind)


# Axes do not depend on how many rows are padded. A sum over padded rows is refused.
BROADCAST_GRADIENT_ARGS.planning.padded = lambda op, padded, shape_of: [False, False]


@BROADCAST_GRADIENT_ARGS.shape
def broadcast_gradient_args_shape(s0: Shape, s1: Shape) -> tuple[Shape, Shape]:
    return Shape((None,)), Shape((None,))


def stretched(own: Shape, other: Shape) -> list[int] | None:
    """The output dimensions along which an input of shape `own` was repeated, or None if they are not statically known."""
    if own.dims is None or other.dims is None:
        return None
    rank = max(len(own.dims), len(other.dims))
    mine = (0,) * (rank - len(own.dims)) + own.dims  # 0 marks a missing dimension
    theirs = (1,) * (rank - len(other.dims)) + other.dims
    axes = []
    for axis, (size, against) in enumerate(zip(mine, theirs)):
        missing = axis < rank - len(own.dims)
        if missing or (size == 1 and against != 1):
            axes.append(axis)
        elif size is None and against != 1:
            return None
    return axes


def _reduced(gradient: Tensor, x: Tensor, own: Shape, other: Shape) -> Tensor | None:
    """Sums `gradient` to the shape of `x`, if the static shapes tell over which dimensions."""
    axes = stretched(own, other)
    if axes is None:
        return None
    if not axes:
        return gradient
    lead = max(0, len(other) - len(own))
    summed = ops.reduce_sum(gradient, axes)
    if axes == list(range(lead)):
        return summed
    return shaping.reshape(summed, shaping.shape(x))


def reduce_to_inputs(
    x: Tensor, y: Tensor, gradient_x: Tensor | None, gradient_y: Tensor | None
) -> tuple[Tensor | None, Tensor | None]:
    """Gradients of `x` and `y` in their own shapes, from gradients in the broadcast shape."""
    shape_x, shape_y = x.static_shape, y.static_shape
    if shape_x.known and shape_x.dims == shape_y.dims:
        return gradient_x, gradient_y
    reduced_x = None if gradient_x is None else _reduced(gradient_x, x, shape_x, shape_y)
    reduced_y = None if gradient_y is None else _reduced(gradient_y, y, shape_y, shape_x)
    if (gradient_x is not None and reduced_x is None) or (gradient_y is not None and reduced_y is None):
        sizes_x, sizes_y = shaping.shape(x), shaping.shape(y)
        axes_x, axes_y = BROADCAST_GRADIENT_ARGS(sizes_x, sizes_y)
        if gradient_x is not None and reduced_x is None:
            reduced_x = shaping.reshape(ops.Sum(gradient_x, axes_x), sizes_x)
        if gradient_y is not None and reduced_y is None:
            reduced_y = shaping.reshape(ops.Sum(gradient_y, axes_y), sizes_y)
    return reduced_x, reduced_y
