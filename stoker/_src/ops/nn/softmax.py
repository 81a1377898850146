"""Softmax and its logarithm, along any dimension."""

from __future__ import annotations

from typing import Any

import torch

from stoker._src.base.dtypes import FLOATS
from stoker._src.base.errors import InvalidArgumentError
from stoker._src.base.export import export
from stoker._src.base.shapes import Shape
from stoker._src.graph.conversion import convert_to_tensor
from stoker._src.graph.definition import OpDefinition, define
from stoker._src.graph.static_values import constant_value
from stoker._src.graph.tensor import Operation, Tensor
from stoker._src.ops.array import casting, joining, ranges, shaping
from stoker._src.ops.math import arithmetic, comparison, reductions, unary_functions
from stoker._src.ops.support import rows

SOFTMAX = define("Softmax(logits: T) -> (softmax: T)", T=FLOATS)
SOFTMAX.small("softmax")
LOG_SOFTMAX = define("LogSoftmax(logits: T) -> (logsoftmax: T)", T=FLOATS)


@SOFTMAX.rows
@LOG_SOFTMAX.rows
def softmax_rows(op: Operation, inputs: list[rows.Input]) -> list[Tensor] | None:
    return rows.again(op, [inputs[0].tensor]) if inputs[0].rank else None


SOFTMAX.lower(lambda build, op, logits: build.softmax(logits))


@LOG_SOFTMAX.lower
def log_softmax_lower(build: Any, op: Operation, logits: Any) -> Any:
    axis = [len(logits.shape) - 1]
    largest = build.max(logits, axis, keep_dims=True) if logits.shape else None
    if largest is None:
        return None
    moved = build.binary("sub", logits, largest)
    total = build.sum(build.unary("exp", moved), axis, keep_dims=True)
    return None if total is None else build.binary("sub", moved, build.unary("log", total))


def _vector_shape(logits: Shape) -> Shape:
    return logits.at_least(1)


SOFTMAX.shape(_vector_shape)
LOG_SOFTMAX.shape(_vector_shape)


def _vector(logits: torch.Tensor) -> torch.Tensor:
    if logits.dim() == 0:
        raise InvalidArgumentError(None, None, "logits must have >= 1 dimension, got rank 0")
    return logits


@SOFTMAX.kernel
def softmax_kernel(logits: torch.Tensor) -> torch.Tensor:
    return torch.softmax(_vector(logits), -1)


@LOG_SOFTMAX.kernel
def log_softmax_kernel(logits: torch.Tensor) -> torch.Tensor:
    return torch.log_softmax(_vector(logits), -1)


@SOFTMAX.grad
def softmax_gradient(op: Operation, g: Tensor) -> Tensor:
    y = op.outputs[0]
    total = reductions.reduce_sum(arithmetic.multiply(g, y), -1, keepdims=True)
    return arithmetic.multiply(arithmetic.subtract(g, total), y)


@LOG_SOFTMAX.grad
def log_softmax_gradient(op: Operation, g: Tensor) -> Tensor:
    y = unary_functions.exp(op.outputs[0])
    return arithmetic.subtract(g, arithmetic.multiply(reductions.reduce_sum(g, -1, keepdims=True), y))


def merged_axis(axis: Any, dim: Any) -> Any:
    """`axis`, which may be given under its older name `dim`.

    Raises:
        ValueError: both are given.
    """
    if dim is not None:
        if axis is not None:
            raise ValueError("Cannot specify both 'axis' and 'dim'.")
        return dim
    return axis


def along(logits: Tensor, definition: OpDefinition, axis: Any, name: str | None) -> Tensor:
    """Applies `definition`, which operates on the last dimension, along `axis`.

    Raises:
        InvalidArgumentError: the axis is out of range.
    """
    if isinstance(axis, Tensor):
        known = constant_value(axis)
        axis = axis if known is None else int(known)
    if not isinstance(axis, Tensor):
        rank = logits.static_shape.rank
        if axis == -1 or (rank is not None and axis == rank - 1):
            return definition(logits, name=name)
        if rank is not None and not -rank <= axis < rank:
            raise InvalidArgumentError(
                None,
                None,
                f"`dim` must be in the range [{-rank}, {rank}) where {rank} is the number of dimensions in the input. "
                f"Received: dim={axis}",
            )
        if rank is not None:
            order = list(range(rank))
            order[axis], order[-1] = order[-1], order[axis]
            return shaping.transpose(definition(shaping.transpose(logits, order)), order, name=name or "transpose")
    last = arithmetic.subtract(ranges.rank(logits), 1)
    axis = convert_to_tensor(axis)
    axis = axis + casting.cast(comparison.LESS(axis, 0), axis.dtype) * (last + 1)
    order = joining.concat(
        [ranges.range(0, axis), joining.PACK([last]), ranges.range(axis + 1, last), joining.PACK([axis])], 0
    )
    return shaping.transpose(definition(shaping.transpose(logits, order)), order, name=name or "transpose")


@export(v1=("nn.softmax", "math.softmax"))
def softmax(logits: Any, axis: Any = None, name: str | None = None, dim: Any = None) -> Tensor:
    """exp(logits) divided by its sum along `axis` (the last dimension by default)."""
    axis = merged_axis(axis, dim)
    return along(convert_to_tensor(logits), SOFTMAX, -1 if axis is None else axis, name)


@export(v2=("nn.softmax", "math.softmax"))
def softmax_v2(logits: Any, axis: Any = None, name: str | None = None) -> Tensor:
    """exp(logits) divided by its sum along `axis` (the last dimension by default)."""
    return softmax(logits, axis, name)


@export(v1=("nn.log_softmax", "math.log_softmax"))
def log_softmax(logits: Any, axis: Any = None, name: str | None = None, dim: Any = None) -> Tensor:
    """logits - log(sum(exp(logits))) along `axis` (the last dimension by default)."""
    axis = merged_axis(axis, dim)
    return along(convert_to_tensor(logits), LOG_SOFTMAX, -1 if axis is None else axis, name)


@export(v2=("nn.log_softmax", "math.log_softmax"))
def log_softmax_v2(logits: Any, axis: Any = None, name: str | None = None) -> Tensor:
    """logits - log(sum(exp(logits))) along `axis` (the last dimension by default)."""
    return log_softmax(logits, axis, name)
