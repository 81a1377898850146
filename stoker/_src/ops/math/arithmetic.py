"""Element-wise arithmetic of two operands, sums of many tensors, and the operators of Tensor."""

from __future__ import annotations

import math as numbers
from collections.abc import Callable
from typing import Any

import numpy as np
import torch

from stoker._src.base import dtypes
from stoker._src.base.dtypes import FLOATS, INEXACT, NUMERIC, REAL, SIGNED_INTS, DType
from stoker._src.base.errors import FailedPreconditionError, InternalError, InvalidArgumentError, OpError
from stoker._src.base.export import export
from stoker._src.base.shapes import UNKNOWN_SHAPE, Shape, TensorShape
from stoker._src.base.shapes import broadcast as broadcast_shapes
from stoker._src.graph.conversion import convert_to_tensor, dtype_of
from stoker._src.graph.definition import INT, SHAPE, OpDefinition, all_merged, define
from stoker._src.graph.definition import broadcasting as broadcast_rule
from stoker._src.graph.indexed_slices import IndexedSlices
from stoker._src.graph.scopes import name_scope
from stoker._src.graph.static_values import constant_value
from stoker._src.graph.tensor import Operation, Tensor
from stoker._src.ops.array import broadcasting, selection, shaping
from stoker._src.ops.array.casting import cast
from stoker._src.ops.array.constants import number
from stoker._src.ops.math.comparison import GREATER, GREATER_EQUAL, LESS, LESS_EQUAL, NOT_EQUAL
from stoker._src.ops.math.unary_functions import check_divisor, conj, log, negative, square
from stoker._src.ops.support.dispatching import elementwise
from stoker._src.ops.support.lowering import binary_loop
from stoker._src.ops.support.unsigned import SIGNED_TWIN, exact, modular_binary, ordered

Gradients = tuple[Tensor | None, Tensor | None]


def binary(name: str, kernel: Callable[..., Any], allowed: tuple[DType, ...]) -> OpDefinition:
    """Defines an element-wise op of two operands that broadcast."""
    definition = define(f"{name}(x: T, y: T) -> (z: T)", T=allowed)
    definition.kernel(kernel)
    definition.shape(broadcast_rule)
    return definition


def select(condition: Tensor, x: Tensor, y: Tensor, name: str | None = None) -> Tensor:
    """x where `condition` is true, y elsewhere. All three broadcast."""
    return selection.SELECT_V2(condition, x, y, name=name)


# ---- Add, Sub, Mul ----------------------------------------------------------------------------------------------


def _add_kernel(x: Any, y: Any) -> Any:
    return np.asarray(x + y, dtype=object) if isinstance(x, np.ndarray) else _add_numbers(x, y)


_add_numbers = modular_binary(torch.add)
ADD = binary("Add", _add_kernel, (*FLOATS, dtypes.uint8, *SIGNED_INTS, *dtypes.COMPLEX, dtypes.string)).small("add")
ADD_V2 = binary("AddV2", _add_numbers, NUMERIC).small("add")
SUB = binary("Sub", modular_binary(torch.sub), NUMERIC).small("sub")
MUL = binary("Mul", modular_binary(torch.mul), NUMERIC).small("mul")


def _fits(x: torch.Tensor, y: torch.Tensor) -> bool:
    """Whether `x op y` has the shape of `x`. Checks only the cases that are cheap to decide."""
    return x.shape == y.shape or y.ndim == 0 or (y.ndim == 1 and x.ndim > 1 and y.shape[0] == x.shape[-1])


def add_(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    return x.add_(y) if _fits(x, y) else torch.add(x, y)


def sub_(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    return x.sub_(y) if _fits(x, y) else torch.sub(x, y)


def mul_(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    return x.mul_(y) if _fits(x, y) else torch.mul(x, y)


ADD.lower(binary_loop("add")).planning.adds = ADD_V2.planning.adds = 1
SUB.planning.adds = -1
ADD_V2.planning.symmetric = MUL.planning.symmetric = True
ADD_V2.in_place(0, add_).lower(binary_loop("add"))
SUB.in_place(0, sub_).lower(binary_loop("sub"))
MUL.in_place(0, mul_).lower(binary_loop("mul")).vanishing(0, 1)


@ADD.grad
@ADD_V2.grad
def add_grad(op: Operation, g: Tensor) -> Gradients:
    return broadcasting.reduce_to_inputs(op.inputs[0], op.inputs[1], g, g)


@SUB.grad
def sub_grad(op: Operation, g: Tensor) -> Gradients:
    return broadcasting.reduce_to_inputs(op.inputs[0], op.inputs[1], g, negative(g))


@MUL.grad
def mul_grad(op: Operation, g: Tensor) -> Gradients:
    x, y = op.inputs
    return broadcasting.reduce_to_inputs(x, y, multiply(g, conj(y)), multiply(conj(x), g))


@export("add", "math.add")
@elementwise
def add(x: Any, y: Any, name: str | None = None) -> Tensor:
    """x + y, element by element. Strings are concatenated."""
    with name_scope(name, "Add", [x]) as scope:
        x = convert_to_tensor(x, dtype_hint=_hint_for(x, y), name="x")
        definition = ADD if x.dtype.base_dtype is dtypes.string else ADD_V2
        return definition(x, convert_to_tensor(y, dtype_hint=x.dtype.base_dtype, name="y"), name=scope)


@export("subtract", "math.subtract", v1="sub")
@elementwise
def subtract(x: Any, y: Any, name: str | None = None) -> Tensor:
    """x - y, element by element."""
    return SUB(x, y, name=name)


@export("multiply", "math.multiply", v1="mul")
@elementwise
def multiply(x: Any, y: Any, name: str | None = None) -> Tensor:
    """x * y, element by element."""
    return MUL(x, y, name=name)


MUL_NO_NAN = binary("MulNoNan", torch.mul, INEXACT)


@MUL_NO_NAN.kernel
def mul_no_nan_kernel(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    # y = 0 gives 0 even if x is infinite or NaN.
    return torch.where(y == 0, torch.zeros((), dtype=x.dtype, device=x.device), torch.mul(x, y))


@MUL_NO_NAN.grad
def mul_no_nan_grad(op: Operation, g: Tensor) -> Gradients:
    x, y = op.inputs
    return broadcasting.reduce_to_inputs(x, y, MUL_NO_NAN(g, y), MUL_NO_NAN(x, g))


@export("math.multiply_no_nan")
def multiply_no_nan(x: Any, y: Any, name: str | None = None) -> Tensor:
    """x * y, element by element; 0 where y is 0, even if x is infinite or NaN."""
    with name_scope(name, "multiply_no_nan", [x, y]) as scope:
        x = convert_to_tensor(x, name="x")
        return MUL_NO_NAN(x, convert_to_tensor(y, x.dtype.base_dtype, name="y"), name=scope)


SQUARED_DIFFERENCE = binary("SquaredDifference", torch.sub, (*FLOATS, dtypes.int32, dtypes.int64, *dtypes.COMPLEX))
SQUARED_DIFFERENCE.small("square_difference")


@SQUARED_DIFFERENCE.kernel
def squared_difference_kernel(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    difference = torch.sub(x, y)
    return difference.mul_(difference.conj() if difference.is_complex() else difference)


SQUARED_DIFFERENCE.lower(binary_loop("square_difference"))


@SQUARED_DIFFERENCE.grad
def squared_difference_grad(op: Operation, g: Tensor) -> Gradients:
    x, y = op.inputs
    slope = multiply(multiply(number(2, g), g), subtract(x, y))
    return broadcasting.reduce_to_inputs(x, y, slope, negative(slope))


@export("math.squared_difference", v1="squared_difference")
@elementwise
def squared_difference(x: Any, y: Any, name: str | None = None) -> Tensor:
    """(x - y)², element by element; for complex numbers (x - y) times its conjugate."""
    return SQUARED_DIFFERENCE(x, y, name=name)


# ---- division ---------------------------------------------------------------------------------------------------


def _divides(kernel: Callable[..., Any], error: type[OpError] = InvalidArgumentError) -> Callable[..., Any]:
    """Checks the divisor of an integer division. torch would return garbage (or end the process) for zero."""

    def divide(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        if not (x.dtype.is_floating_point or x.dtype.is_complex) and x.numel():  # an empty tensor divides nothing
            check_divisor(y, error)
        return kernel(x, y)

    divide.__name__ = divide.__qualname__ = kernel.__name__
    return divide


def _floor_div(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    if x.dtype.is_floating_point:  # torch's rounding division uses remainders and gives NaN for infinite x
        return torch.floor(torch.div(x, y))
    return torch.div(x, y, rounding_mode="floor") if not x.dtype.is_complex else torch.div(x, y)


def _truncate_div(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    return torch.div(x, y, rounding_mode="trunc") if not x.dtype.is_complex else torch.div(x, y)


def _div(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    if x.dtype.is_floating_point or x.dtype.is_complex:
        return torch.div(x, y)
    return torch.div(x, y, rounding_mode="trunc")


def _numpy_div(x: Any, y: Any) -> Any:
    return np.asarray(x // y)


def _numpy_mod(x: Any, y: Any) -> Any:
    return np.asarray(x % y)


_quotient = _divides(exact(_div, _numpy_div))
REAL_DIV = binary("RealDiv", _quotient, NUMERIC).lower(binary_loop("div"))
REAL_DIV.small("div")
DIV = binary("Div", _quotient, NUMERIC).lower(binary_loop("div"))
FLOOR_DIV = binary("FloorDiv", _divides(exact(_floor_div, _numpy_div)), NUMERIC).lower(binary_loop("floor_div"))
FLOOR_DIV.small("floor_div")
FLOOR_DIV.not_differentiable()
# (For the two truncating ops TensorFlow raises InternalError.)
TRUNCATE_DIV = binary(
    "TruncateDiv", _divides(exact(_truncate_div, _numpy_div), InternalError), NUMERIC
).not_differentiable()


@REAL_DIV.kernel
def real_div_kernel(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    if x.dtype.is_floating_point:
        return torch.true_divide(x, y)
    return _quotient(x, y)


@REAL_DIV.grad
@DIV.grad
def real_div_grad(op: Operation, g: Tensor) -> Gradients:
    x, y = conj(op.inputs[0]), conj(op.inputs[1])
    return broadcasting.reduce_to_inputs(
        op.inputs[0], op.inputs[1], realdiv(g, y), multiply(g, realdiv(realdiv(negative(x), y), y))
    )


DIV_NO_NAN = binary("DivNoNan", torch.div, INEXACT)
DIV_NO_NAN.small("div_no_nan")


@DIV_NO_NAN.kernel
def div_no_nan_kernel(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    return torch.where(y == 0, torch.zeros((), dtype=x.dtype, device=x.device), torch.div(x, y))


@DIV_NO_NAN.lower
def div_no_nan_lower(build: Any, op: Operation, x: Any, y: Any) -> Any:
    quotient = build.binary("div", x, y)
    valid = build.binary("not_equal", y, build.scalar(0.0))
    zero = None if quotient is None else build.broadcast(build.scalar(0.0), quotient.shape)
    return None if zero is None or valid is None else build.select(valid, quotient, zero)


@DIV_NO_NAN.grad
def div_no_nan_grad(op: Operation, g: Tensor) -> Gradients:
    x, y = conj(op.inputs[0]), conj(op.inputs[1])
    return broadcasting.reduce_to_inputs(
        op.inputs[0], op.inputs[1], DIV_NO_NAN(g, y), multiply(g, DIV_NO_NAN(DIV_NO_NAN(negative(x), y), y))
    )


_INTEGERS = dtypes.int32, dtypes.int64
_MOD_TYPES = (*_INTEGERS, *FLOATS)
FLOOR_MOD = binary("FloorMod", _divides(exact(torch.remainder, _numpy_mod)), REAL).lower(binary_loop("floor_mod"))
FLOOR_MOD.small("floor_mod")
MOD = binary("Mod", _divides(torch.fmod), _MOD_TYPES)
TRUNCATE_MOD = binary("TruncateMod", _divides(torch.fmod, InternalError), _MOD_TYPES)


def _unchecked(kernel: Callable[..., Any]) -> Callable[[Operation], Any]:
    """Chooses a kernel that does not look for zeros if the divisor is a constant without them."""

    def chosen(op: Operation) -> Any:
        divisor = constant_value(op.inputs[1]) if op.attr("T") in _INTEGERS else None
        return kernel if divisor is not None and np.all(divisor) else None

    return chosen


FLOOR_DIV.specialize(_unchecked(_floor_div))
FLOOR_MOD.specialize(_unchecked(torch.remainder))


@FLOOR_MOD.grad
def floor_mod_grad(op: Operation, g: Tensor) -> Gradients:
    x, y = op.inputs
    return broadcasting.reduce_to_inputs(x, y, g, negative(multiply(g, floordiv(x, y))))


@export("realdiv", v1="RealDiv")
@elementwise
def realdiv(x: Any, y: Any, name: str | None = None) -> Tensor:
    """x / y for floating point and complex numbers."""
    return REAL_DIV(x, y, name=name)


_TRUEDIV_DTYPES: dict[DType, DType | None] = {
    dtypes.uint8: dtypes.float32,
    dtypes.int8: dtypes.float32,
    dtypes.uint16: dtypes.float32,
    dtypes.int16: dtypes.float32,
    dtypes.uint32: dtypes.float64,
    dtypes.int32: dtypes.float64,
    dtypes.uint64: dtypes.float64,
    dtypes.int64: dtypes.float64,
}


def _tensor_dtype(value: Any) -> dtypes.DType | None:
    """The dtype of a tensor or variable. None for arrays, which take the dtype of the other operand."""
    return None if isinstance(value, (np.ndarray, np.generic)) else dtype_of(value)


def _hint_for(x: Any, y: Any) -> dtypes.DType | None:
    """The dtype that a tensor `y` suggests for a first operand without one. Arrays keep their own dtype."""
    return None if dtype_of(x) is not None else _tensor_dtype(y)


def _same_dtype(x: Any, y: Any) -> tuple[Tensor, Tensor]:
    """Converts two operands to tensors of one dtype. A plain value takes the other's dtype."""
    x = convert_to_tensor(x, dtype_hint=_hint_for(x, y), name="x")
    y = convert_to_tensor(y, dtype_hint=x.dtype.base_dtype, name="y")
    if x.dtype.base_dtype is not y.dtype.base_dtype:
        raise TypeError(f"`x` and `y` must have the same dtype, got {x.dtype!r} != {y.dtype!r}.")
    return x, y


@export("truediv", "math.truediv")
@elementwise
def truediv(x: Any, y: Any, name: str | None = None) -> Tensor:
    """x / y as in Python 3: integers are converted to floating point first."""
    with name_scope(name, "truediv", [x, y]) as scope:
        x, y = _same_dtype(x, y)
        wider = _TRUEDIV_DTYPES.get(x.dtype.base_dtype)
        if wider is not None:
            x, y = cast(x, wider), cast(y, wider)
        return REAL_DIV(x, y, name=scope)


@export("divide", "math.divide")
@elementwise
def divide(x: Any, y: Any, name: str | None = None) -> Any:
    """x / y with the semantics of Python's `/`."""
    if name is not None:
        return truediv(x, y, name=name)
    if not isinstance(x, Tensor) and not isinstance(y, Tensor):
        x = convert_to_tensor(x, dtype_hint=_tensor_dtype(y))
    return x / y


@export(v1="div")
@elementwise
def div(x: Any, y: Any, name: str | None = None) -> Tensor:
    """x / y with the semantics of Python 2: integer quotients are rounded down."""
    with name_scope(name, "div", [x, y]) as scope:
        x = convert_to_tensor(x, dtype_hint=_hint_for(x, y), name="x")
        y = convert_to_tensor(y, x.dtype.base_dtype, name="y")
        inexact = x.dtype.is_floating or x.dtype.is_complex
        return (REAL_DIV if inexact else FLOOR_DIV)(x, y, name=scope)


@export("math.divide_no_nan", v1="div_no_nan")
@elementwise
def divide_no_nan(x: Any, y: Any, name: str | None = None) -> Tensor:
    """x / y, and 0 where y is 0."""
    with name_scope(name, "div_no_nan", [x, y]) as scope:
        if isinstance(y, Tensor) and not isinstance(x, Tensor):
            x = convert_to_tensor(x, y.dtype.base_dtype, name="x")
        x, y = _same_dtype(x, y)
        wider = _TRUEDIV_DTYPES.get(x.dtype.base_dtype)
        if wider is not None:
            x, y = cast(x, wider), cast(y, wider)
        return DIV_NO_NAN(x, y, name=scope)


@export("math.reciprocal_no_nan")
def reciprocal_no_nan(x: Any, name: str | None = None) -> Tensor:
    """1 / x, and 0 where x is 0."""
    with name_scope(name, "reciprocal_no_nan", [x]) as scope:
        x = convert_to_tensor(x, name="x")
        return DIV_NO_NAN(convert_to_tensor(1, x.dtype.base_dtype, name="one"), x, name=scope)


@export("math.floordiv", v1="floordiv")
@elementwise
def floordiv(x: Any, y: Any, name: str | None = None) -> Tensor:
    """x / y rounded toward minus infinity."""
    with name_scope(name, "floordiv", [x, y]) as scope:
        return FLOOR_DIV(x, y, name=scope)


@export(v1="floor_div")
def floor_div(x: Any, y: Any, name: str | None = None) -> Tensor:
    """x / y rounded toward minus infinity."""
    return FLOOR_DIV(x, y, name=name)


@export("truncatediv")
@elementwise
def truncatediv(x: Any, y: Any, name: str | None = None) -> Tensor:
    """x / y rounded toward zero, for integers."""
    return TRUNCATE_DIV(x, y, name=name)


@export("math.floormod", "math.mod", v1=("floormod", "mod"))
@elementwise
def floormod(x: Any, y: Any, name: str | None = None) -> Tensor:
    """The remainder of floor division. It has the sign of y."""
    return FLOOR_MOD(x, y, name=name)


@export("truncatemod")
@elementwise
def truncatemod(x: Any, y: Any, name: str | None = None) -> Tensor:
    """The remainder of truncating division. It has the sign of x."""
    return TRUNCATE_MOD(x, y, name=name)


# ---- Maximum, Minimum, ClipByValue ------------------------------------------------------------------------------

MAXIMUM = binary("Maximum", ordered(torch.maximum), REAL).lower(binary_loop("max"))
MAXIMUM.small("max")
MINIMUM = binary("Minimum", ordered(torch.minimum), REAL).lower(binary_loop("min"))
MINIMUM.small("min")


def _extreme_grad(op: Operation, g: Tensor, wins: OpDefinition) -> Gradients:
    x, y = op.inputs
    mask = cast(wins(x, y), g.dtype.base_dtype)
    return broadcasting.reduce_to_inputs(x, y, multiply(g, mask), multiply(g, subtract(number(1, g), mask)))


@MAXIMUM.grad
def maximum_grad(op: Operation, g: Tensor) -> Gradients:
    return _extreme_grad(op, g, GREATER_EQUAL)


@MINIMUM.grad
def minimum_grad(op: Operation, g: Tensor) -> Gradients:
    return _extreme_grad(op, g, LESS_EQUAL)


@export("maximum", "math.maximum")
@elementwise
def maximum(x: Any, y: Any, name: str | None = None) -> Tensor:
    """The larger of x and y, element by element."""
    return MAXIMUM(x, y, name=name)


@export("minimum", "math.minimum")
@elementwise
def minimum(x: Any, y: Any, name: str | None = None) -> Tensor:
    """The smaller of x and y, element by element."""
    return MINIMUM(x, y, name=name)


CLIP_BY_VALUE = define("ClipByValue(t: T, clip_value_min: T, clip_value_max: T) -> (output: T)", T=REAL)


@CLIP_BY_VALUE.kernel
@ordered
def clip_by_value_kernel(t: torch.Tensor, clip_value_min: torch.Tensor, clip_value_max: torch.Tensor) -> torch.Tensor:
    for bound in (clip_value_min, clip_value_max):
        if bound.ndim and bound.shape != t.shape:
            raise InvalidArgumentError(
                None,
                None,
                "clip_value_min and clip_value_max must be either of the same shape as input, or a scalar. "
                f"input shape: {Shape(t.shape)}, clip_value_min shape: {Shape(clip_value_min.shape)}, clip_value_max shape: {Shape(clip_value_max.shape)}",
            )
    if t.is_floating_point():  # a NaN bound is ignored
        clip_value_min, clip_value_max = (
            torch.nan_to_num(bound, nan=end, posinf=numbers.inf, neginf=-numbers.inf)
            for bound, end in ((clip_value_min, -numbers.inf), (clip_value_max, numbers.inf))
        )
    return torch.maximum(torch.minimum(t, clip_value_max), clip_value_min)


@CLIP_BY_VALUE.shape
def clip_by_value_shape(t: Shape, clip_value_min: Shape, clip_value_max: Shape) -> Shape:
    bounds = broadcast_shapes(clip_value_min, clip_value_max)
    if t.known and broadcast_shapes(t, bounds).known and broadcast_shapes(t, bounds).dims != t.dims:
        raise InvalidArgumentError(
            None, None, f"ClipByValue: bounds of shapes {clip_value_min} and {clip_value_max} do not fit into {t}."
        )
    return t


@CLIP_BY_VALUE.grad
def clip_by_value_grad(op: Operation, g: Tensor) -> tuple[Any, Any, Any]:
    t, low, high = op.inputs
    below, above = cast(LESS(t, low), g.dtype.base_dtype), cast(GREATER(t, high), g.dtype.base_dtype)
    _, to_low = broadcasting.reduce_to_inputs(t, low, None, multiply(g, below))
    _, to_high = broadcasting.reduce_to_inputs(t, high, None, multiply(g, above))
    return multiply(g, subtract(number(1, g), add(below, above))), to_low, to_high


# ---- Pow --------------------------------------------------------------------------------------------------------

POW = binary("Pow", torch.pow, (*FLOATS, *SIGNED_INTS, *dtypes.COMPLEX))


@POW.kernel
def pow_kernel(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    if not (x.dtype.is_floating_point or x.dtype.is_complex) and bool((y < 0).any()):
        raise InvalidArgumentError(None, None, "Integers to negative integer powers are not allowed")
    if y.ndim == 0 and y.device.type == "cpu" and not y.is_complex():
        exponent = y.item()
        if exponent in (1, 2, 3):  # one or two products are many times faster than the general power
            return torch.pow(x, exponent)
    return torch.pow(x, y)


@POW.lower
def pow_lower(build: Any, op: Operation, x: Any, y: Any) -> Any:
    exponent = build.number(y)
    if exponent == 1:
        return build.reshape(x, x.shape)
    if exponent == 2:
        return build.unary("square", x)
    return build.binary("mul", build.unary("square", x), x) if exponent == 3 else None


@POW.grad
def pow_grad(op: Operation, g: Tensor) -> Gradients:
    x, y, z = conj(op.inputs[0]), conj(op.inputs[1]), conj(op.outputs[0])
    to_x = multiply(multiply(g, y), POW(x, subtract(y, number(1, y))))
    # The logarithm is taken as 0 where it is undefined: the gradient of 0 ** y with respect to y is 0.
    defined = NOT_EQUAL(x, number(0, x)) if x.dtype.is_complex else GREATER(x, number(0, x))
    mask = cast(defined, x.dtype.base_dtype)
    safe = add(multiply(x, mask), subtract(number(1, x), mask))
    to_y = multiply(multiply(g, z), log(safe)) if x.dtype.is_floating or x.dtype.is_complex else None
    return broadcasting.reduce_to_inputs(op.inputs[0], op.inputs[1], to_x, to_y)


@export("pow", "math.pow")
@elementwise
def power(x: Any, y: Any, name: str | None = None) -> Tensor:
    """Raises x to the power y, element by element.

    Raises:
        InvalidArgumentError: an integer is raised to a negative power.
    """
    with name_scope(name, "Pow", [x]) as scope:
        return POW(x, y, name=scope)


# ---- Atan2, NextAfter, Cross ------------------------------------------------------------------------------------

ATAN2 = define("Atan2(y: T, x: T) -> (z: T)", T=FLOATS)
ATAN2.kernel(torch.atan2)
ATAN2.shape(broadcast_rule)


@ATAN2.grad
def atan2_grad(op: Operation, g: Tensor) -> Gradients:
    y, x = op.inputs
    scaled = realdiv(g, add(square(x), square(y)))
    return broadcasting.reduce_to_inputs(y, x, multiply(x, scaled), multiply(negative(y), scaled))


@export("atan2", "math.atan2")
@elementwise
def atan2(y: Any, x: Any, name: str | None = None) -> Tensor:
    """The angle of the point (x, y), in (-pi, pi]."""
    return ATAN2(y, x, name=name)


NEXT_AFTER = define(
    "NextAfter(x1: T, x2: T) -> (output: T)", T=dtypes.DTypeSet((dtypes.float64, dtypes.float32), dtypes.float32)
)
NEXT_AFTER.kernel(torch.nextafter)
NEXT_AFTER.shape(broadcast_rule)


@NEXT_AFTER.grad
def next_after_grad(op: Operation, g: Tensor) -> Gradients:
    x, y = op.inputs
    return broadcasting.reduce_to_inputs(x, y, g, shaping.zeros_like(g))


@export("math.nextafter")
def nextafter(x1: Any, x2: Any, name: str | None = None) -> Tensor:
    """The next representable number after x1 in the direction of x2."""
    return NEXT_AFTER(x1, x2, name=name)


CROSS = define("Cross(a: T, b: T) -> (product: T)", T=REAL)


@CROSS.kernel
def cross_kernel(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    if a.shape == b.shape and a.ndim and a.shape[-1] != 3:
        raise FailedPreconditionError(
            None, None, f"Cross-products are only defined for 3-element vectors, but the shape is {Shape(a.shape)}."
        )
    cross_shape(Shape(a.shape), Shape(b.shape))
    twin = SIGNED_TWIN.get(a.dtype)
    if twin is not None:
        return torch.linalg.cross(a.view(twin), b.view(twin)).view(a.dtype)
    # Each product is rounded separately. torch.cross fuses products and differences, so parallel vectors would not give zero.
    (a0, a1, a2), (b0, b1, b2) = a.unbind(-1), b.unbind(-1)
    return torch.stack((a1 * b2 - a2 * b1, a2 * b0 - a0 * b2, a0 * b1 - a1 * b0), -1)


def cross_shape(a: Shape, b: Shape) -> Shape:
    merged = a.merge(b)
    if merged.dims is not None and (not merged.dims or merged.dims[-1] not in (None, 3)):
        raise InvalidArgumentError(None, None, f"Cross products are of 3-element vectors, but the shape is {merged}.")
    return merged


CROSS.shape(cross_shape)


@CROSS.grad
def cross_grad(op: Operation, g: Tensor) -> Gradients:
    a, b = op.inputs
    return CROSS(b, g), CROSS(g, a)


@export("linalg.cross", v1="cross")
def cross(a: Any, b: Any, name: str | None = None) -> Tensor:
    """The cross product of 3-vectors in the last dimension."""
    return CROSS(a, b, name=name)


# ---- AddN, scalar_mul, polyval ----------------------------------------------------------------------------------

ADD_N = define("AddN(inputs: N * T) -> (sum: T)", N=INT(minimum=1), T=(*NUMERIC, dtypes.variant))
ADD_N.small("add_n")
ADD_N.shape(all_merged)


@ADD_N.kernel
def add_n_kernel(inputs: list[Any]) -> Any:
    if not isinstance(inputs[0], torch.Tensor):  # lists and optionals, or None from a branch that was not taken
        held = [each for each in inputs if each is not None]
        return held[0].sum_with(held[1:]) if held else None
    if len(inputs) == 1:
        return inputs[0].clone()
    if inputs[0].dtype in SIGNED_TWIN:
        signed = [each.view(SIGNED_TWIN[each.dtype]) for each in inputs]
        return add_n_kernel(signed).view(inputs[0].dtype)
    _check_alike(inputs)
    return _added(torch.add(inputs[0], inputs[1]), inputs[2:])


def add_n_(inputs: list[torch.Tensor]) -> torch.Tensor:
    _check_alike(inputs)
    return _added(inputs[0], inputs[1:])


ADD_N.in_place(0, add_n_)


def _added(total: torch.Tensor, others: list[torch.Tensor]) -> torch.Tensor:
    for each in others:
        total.add_(each)
    return total


def _check_alike(inputs: list[torch.Tensor]) -> None:
    for i, each in enumerate(inputs):
        if each.shape != inputs[0].shape:
            raise InvalidArgumentError(
                None,
                None,
                f"Inputs to operation of type AddN must have the same size and shape. Input 0: {Shape(inputs[0].shape)} != input {i}: {Shape(each.shape)}",
            )


ADD_N.planning.is_sum = True


@ADD_N.lower
def add_n_lower(build: Any, op: Operation, inputs: list[Any]) -> Any:
    if any(each.shape != inputs[0].shape for each in inputs):
        return None  # the kernel refuses them
    total = inputs[0] if len(inputs) > 1 else None
    for each in inputs[1:]:
        if total is not None:
            total = build.binary("add", total, each)
    return total


@ADD_N.grad
def add_n_grad(op: Operation, g: Tensor) -> list[Tensor]:
    return [g] * len(op.inputs)


ACCUMULATE_N_V2 = define("AccumulateNV2(inputs: N * T) -> (sum: T)", N=INT(minimum=1), T=NUMERIC, shape=SHAPE)
ACCUMULATE_N_V2.kernel(add_n_kernel)
ACCUMULATE_N_V2.grad(add_n_grad)


@ACCUMULATE_N_V2.shape
def accumulate_n_shape(inputs: list[Shape], *, shape: Shape) -> Shape:
    try:
        return all_merged(inputs).merge(shape)
    except InvalidArgumentError:
        return UNKNOWN_SHAPE  # the kernel reports the mismatch


def _add_n_inputs(inputs: Any) -> list[Any]:
    message = "inputs must be an iterable of at least one Tensor/IndexedSlices with the same dtype and shape"
    if not isinstance(inputs, (list, tuple)):
        inputs = list(inputs)
    if not inputs:
        raise ValueError(message)
    return [item if isinstance(item, IndexedSlices) else convert_to_tensor(item) for item in inputs]


@export("add_n", "math.add_n")
def add_n(inputs: Any, name: str | None = None) -> Any:
    """Sums tensors of the same shape and dtype.

    Raises:
        ValueError: there are no inputs, or their shapes or dtypes differ.
    """
    tensors = [convert_to_tensor(item) for item in _add_n_inputs(inputs)]
    if len(tensors) == 1:
        return shaping.identity(tensors[0], name=name) if name else tensors[0]
    return ADD_N(tensors, name=name)


@export("math.accumulate_n", v1="accumulate_n")
def accumulate_n(inputs: Any, shape: Any = None, tensor_dtype: Any = None, name: str | None = None) -> Tensor:
    """Sums tensors. Their shape and dtype may be stated.

    Raises:
        ValueError: there are no inputs, or their shapes or dtypes differ.
        TypeError: `tensor_dtype` is not the dtype of the inputs.
    """
    if not isinstance(inputs, (list, tuple)):
        raise ValueError("inputs must be a list of at least one Tensor/IndexedSlices with the same dtype and shape")
    tensors = [convert_to_tensor(item) for item in _add_n_inputs(inputs)]
    found = {tensor.dtype.base_dtype.name for tensor in tensors}
    if len(found) > 1:
        raise ValueError(
            f"inputs must be a list of at least one Tensor with the same dtype and shape, found {sorted(found)}"
        )
    together = TensorShape(shape)
    for tensor in tensors:
        together = together.merge_with(tensor.static_shape)
    if tensor_dtype is not None and dtypes.as_dtype(tensor_dtype) != tensors[0].dtype.base_dtype:
        raise TypeError(
            f"The `tensor_dtype` argument is {tensor_dtype}, but `input` is of type {tensors[0].dtype.base_dtype}. "
            "These must be equal."
        )
    total = (
        tensors[0]
        if len(tensors) == 1 and name is None
        else (shaping.identity(tensors[0], name=name) if len(tensors) == 1 else ADD_N(tensors, name=name))
    )
    if shape is not None:
        total.set_shape(together)
    return total


@export(v1=("scalar_mul", "math.scalar_mul"))
def scalar_mul(scalar: Any, x: Any, name: str | None = None) -> Any:
    """Multiplies `x` by a scalar. IndexedSlices stay sparse.

    Raises:
        ValueError: `scalar` does not have rank 0.
    """
    scalar = convert_to_tensor(scalar, dtype_of(x), name="scalar")
    if scalar.static_shape.rank != 0:
        raise ValueError(f"The input scalar must be a 0-D value. Received shape {scalar.shape}.")
    if isinstance(x, IndexedSlices):
        return IndexedSlices(MUL(scalar, x.values, name=name), x.indices, x.dense_shape)
    return MUL(scalar, x, name=name)


@export(v2=("scalar_mul", "math.scalar_mul"))
def scalar_mul_v2(scalar: Any, x: Any, name: str | None = None) -> Any:
    """Multiplies `x` by a scalar. IndexedSlices stay sparse."""
    with name_scope(name, "scalar_mul", [x]) as scope:
        return scalar_mul(scalar, x, scope)


@export("math.polyval")
def polyval(coeffs: Any, x: Any, name: str | None = None) -> Tensor:
    """Evaluates the polynomial with `coeffs` (highest power first) at `x` by Horner's rule.

    Raises:
        ValueError: `coeffs` is not a list.
    """
    if not isinstance(coeffs, list):
        raise ValueError(f"Argument coeffs must be list type. Received type {type(coeffs)}.")
    with name_scope(name, "polyval", [*coeffs, x]):
        x = convert_to_tensor(x, name="x")
        if not coeffs:
            return shaping.zeros_like(x, name=name)
        terms = [convert_to_tensor(c, name=f"{i}_coeff") for i, c in enumerate(coeffs)]
        total = terms[0]
        for term in terms[1:]:
            total = term + total * x
        return total
