"""Comparisons and logic."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import torch

from stoker._src.base.dtypes import NUMERIC, REAL
from stoker._src.base.errors import InvalidArgumentError
from stoker._src.base.export import export
from stoker._src.base.shapes import SCALAR, UNKNOWN_SHAPE, Shape
from stoker._src.base.shapes import broadcast as broadcast_shapes
from stoker._src.graph.conversion import convert_to_tensor
from stoker._src.graph.definition import ANY, OpDefinition, broadcasting, define, unchanged
from stoker._src.graph.late_binding import ops
from stoker._src.graph.scopes import name_scope
from stoker._src.graph.tensor import Operation, Tensor
from stoker._src.ops.array import shaping
from stoker._src.ops.support import rows
from stoker._src.ops.support.dispatching import elementwise
from stoker._src.ops.support.lowering import binary_loop
from stoker._src.ops.support.unsigned import ordered

# ---- order ------------------------------------------------------------------------------------------------------


def _order(name: str, kernel: Callable[..., Any]) -> OpDefinition:
    definition = define(f"{name}(x: T, y: T) -> (z: bool)", T=REAL).not_differentiable()
    definition.kernel(ordered(kernel))
    definition.shape(broadcasting)
    return definition


LESS = _order("Less", torch.lt).lower(binary_loop("less"))
LESS.small("less")
LESS_EQUAL = _order("LessEqual", torch.le).lower(binary_loop("less_equal"))
LESS_EQUAL.small("less_equal")
GREATER = _order("Greater", torch.gt).lower(binary_loop("greater"))
GREATER.small("greater")
GREATER_EQUAL = _order("GreaterEqual", torch.ge).lower(binary_loop("greater_equal"))
GREATER_EQUAL.small("greater_equal")


@export("less", "math.less")
@elementwise
def less(x: Any, y: Any, name: str | None = None) -> Tensor:
    """x < y, element by element."""
    return LESS(x, y, name=name)


@export("less_equal", "math.less_equal")
@elementwise
def less_equal(x: Any, y: Any, name: str | None = None) -> Tensor:
    """x <= y, element by element."""
    return LESS_EQUAL(x, y, name=name)


@export("greater", "math.greater")
@elementwise
def greater(x: Any, y: Any, name: str | None = None) -> Tensor:
    """x > y, element by element."""
    return GREATER(x, y, name=name)


@export("greater_equal", "math.greater_equal")
@elementwise
def greater_equal(x: Any, y: Any, name: str | None = None) -> Tensor:
    """x >= y, element by element."""
    return GREATER_EQUAL(x, y, name=name)


# ---- equality ---------------------------------------------------------------------------------------------------


def _raises_if_incompatible(op: Operation) -> list[int] | None:
    return [] if op.attrs["incompatible_shape_error"] else None


EQUAL = define("Equal(x: T, y: T) -> (z: bool)", T=ANY, incompatible_shape_error=True).not_differentiable()
EQUAL.small("equal", _raises_if_incompatible)
NOT_EQUAL = define("NotEqual(x: T, y: T) -> (z: bool)", T=ANY, incompatible_shape_error=True).not_differentiable()
NOT_EQUAL.small("not_equal", _raises_if_incompatible)
EQUAL.rows(rows.broadcast)
NOT_EQUAL.rows(rows.broadcast)
for _definition in (EQUAL, NOT_EQUAL):
    _definition.ragged_rows(rows.elements)


def _fit(x: Any, y: Any) -> bool:
    """Whether the shapes of two values broadcast."""
    return all(a == b or 1 in (a, b) for a, b in zip(reversed(x.shape), reversed(y.shape)))


def _equality(x: Any, y: Any, incompatible_shape_error: bool, wanted: bool) -> Any:
    if not incompatible_shape_error and not _fit(x, y):
        return torch.tensor(not wanted, device=x.device if isinstance(x, torch.Tensor) else None)
    if isinstance(x, np.ndarray):  # strings
        result = np.equal(x, y) if wanted else np.not_equal(x, y)
        return torch.from_numpy(np.asarray(result, dtype=bool))
    return torch.eq(x, y) if wanted else torch.ne(x, y)


@EQUAL.kernel
def equal_kernel(x: Any, y: Any, *, incompatible_shape_error: bool) -> Any:
    return _equality(x, y, incompatible_shape_error, True)


@NOT_EQUAL.kernel
def not_equal_kernel(x: Any, y: Any, *, incompatible_shape_error: bool) -> Any:
    return _equality(x, y, incompatible_shape_error, False)


def equality_shape(x: Shape, y: Shape, *, incompatible_shape_error: bool) -> Shape:
    if incompatible_shape_error:
        return broadcast_shapes(x, y)
    if not x.known or not y.known:
        return UNKNOWN_SHAPE
    try:
        return broadcast_shapes(x, y)
    except InvalidArgumentError:
        return SCALAR  # tensors whose shapes do not broadcast are unequal


EQUAL.shape(equality_shape)
NOT_EQUAL.shape(equality_shape)
EQUAL.lower(binary_loop("equal"))
NOT_EQUAL.lower(binary_loop("not_equal"))


@export("equal", "math.equal")
@elementwise
def equal(x: Any, y: Any, name: str | None = None) -> Tensor:
    """x == y, element by element."""
    return EQUAL(x, y, name=name)


@export("not_equal", "math.not_equal")
@elementwise
def not_equal(x: Any, y: Any, name: str | None = None) -> Tensor:
    """x != y, element by element."""
    return NOT_EQUAL(x, y, name=name)


APPROXIMATE_EQUAL = (
    define("ApproximateEqual(x: T, y: T) -> (z: bool)", T=NUMERIC, tolerance=float(np.float32(1e-5)))
    .not_differentiable()
    .alike()
)


@APPROXIMATE_EQUAL.kernel
def approximate_equal_kernel(x: torch.Tensor, y: torch.Tensor, *, tolerance: float) -> torch.Tensor:
    if x.dtype.is_floating_point or x.dtype.is_complex:
        return torch.abs(x - y) <= tolerance
    return torch.eq(x, y) if tolerance < 1 else torch.abs(x.to(torch.float64) - y.to(torch.float64)) <= tolerance


@export(v1="approximate_equal")
def approximate_equal(x: Any, y: Any, tolerance: float = 1e-05, name: str | None = None) -> Tensor:
    """|x - y| <= tolerance, element by element, for tensors of the same shape."""
    return APPROXIMATE_EQUAL(x, y, tolerance=tolerance, name=name)


# ---- logic ------------------------------------------------------------------------------------------------------

LOGICAL_AND = define("LogicalAnd(x: bool, y: bool) -> (z: bool)").not_differentiable()
LOGICAL_AND.small("and")
LOGICAL_AND.kernel(torch.logical_and)
LOGICAL_AND.shape(broadcasting)
LOGICAL_AND.lower(binary_loop("mul"))  # booleans are 1 and 0 in fused loops

LOGICAL_OR = define("LogicalOr(x: bool, y: bool) -> (z: bool)").not_differentiable()
LOGICAL_OR.small("or")
LOGICAL_OR.kernel(torch.logical_or)
LOGICAL_OR.shape(broadcasting)
LOGICAL_OR.lower(binary_loop("max"))

LOGICAL_NOT = define("LogicalNot(x: bool) -> (y: bool)").not_differentiable()
LOGICAL_NOT.small("not")
LOGICAL_NOT.kernel(torch.logical_not)
LOGICAL_NOT.shape(unchanged)
LOGICAL_NOT.lower(lambda build, op, x: build.binary("equal", x, build.scalar(0.0)))


@export("logical_and", "math.logical_and")
@elementwise
def logical_and(x: Any, y: Any, name: str | None = None) -> Tensor:
    """x and y, element by element."""
    return LOGICAL_AND(x, y, name=name)


@export("logical_or", "math.logical_or")
@elementwise
def logical_or(x: Any, y: Any, name: str | None = None) -> Tensor:
    """x or y, element by element."""
    return LOGICAL_OR(x, y, name=name)


@export("logical_not", "math.logical_not")
@elementwise
def logical_not(x: Any, name: str | None = None) -> Tensor:
    """not x, element by element."""
    return LOGICAL_NOT(x, name=name)


@export("math.logical_xor", v1="logical_xor")
@elementwise
def logical_xor(x: Any, y: Any, name: str = "LogicalXor") -> Tensor:
    """Whether exactly one of x and y is true, element by element."""
    either = LOGICAL_OR(x, y)
    both = LOGICAL_AND(x, y)
    return LOGICAL_AND(either, LOGICAL_NOT(both), name=name)


# ---- order within one tensor ------------------------------------------------------------------------------------


def _steps(x: Any, name: str | None, default: str, holds: Callable[[Tensor, Tensor], Tensor]) -> Tensor:
    """Whether `holds(next, previous)` is true for all adjacent elements of the flattened `x`."""
    with name_scope(name, default, [x]):
        x = convert_to_tensor(x, name="x")
        if not (x.dtype.is_floating or x.dtype.is_integer or x.dtype.is_quantized or x.dtype.is_complex):
            raise TypeError(f"Expected x to be numeric, instead found: {x}")
        flat = shaping.reshape(x, [-1])
        # Both slices are empty for zero or one element, so the result is true.
        return ops.reduce_all(holds(flat[1:], flat[:-1]))


@export("math.is_non_decreasing", v1=("is_non_decreasing", "debugging.is_non_decreasing"))
def is_non_decreasing(x: Any, name: str | None = None) -> Tensor:
    """Whether no element of `x`, in row-major order, is smaller than the one before it."""
    return _steps(x, name, "is_non_decreasing", greater_equal)


@export("math.is_strictly_increasing", v1=("is_strictly_increasing", "debugging.is_strictly_increasing"))
def is_strictly_increasing(x: Any, name: str | None = None) -> Tensor:
    """Whether every element of `x`, in row-major order, is larger than the one before it."""
    return _steps(x, name, "is_strictly_increasing", greater)
