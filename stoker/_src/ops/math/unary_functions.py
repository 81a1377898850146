"""Unary element-wise functions: powers, exponentials, trigonometry, rounding, complex parts."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from stoker._src.base import dtypes
from stoker._src.base.dtypes import COMPLEX, FLOATS, INEXACT, NUMERIC, SIGNED_INTS, DType, DTypeSet
from stoker._src.base.errors import InvalidArgumentError, OpError
from stoker._src.base.export import Names, export, named
from stoker._src.base.extensions import extension
from stoker._src.graph.conversion import convert_to_tensor
from stoker._src.graph.definition import OpDefinition, define, unchanged
from stoker._src.graph.definition import broadcasting as broadcast_rule
from stoker._src.graph.indexed_slices import IndexedSlices
from stoker._src.graph.late_binding import ops
from stoker._src.graph.scopes import name_scope
from stoker._src.graph.tensor import Operation, Tensor
from stoker._src.ops.array import broadcasting, casting, constants, selection, shaping
from stoker._src.ops.math import comparison
from stoker._src.ops.support.dispatching import elementwise
from stoker._src.ops.support.lowering import alike_loop, unary_loop
from stoker._src.ops.support.unsigned import modular
from stoker._src.ops.support.values import torch_dtype

Gradient = Callable[[Operation, Tensor], Any]
SIGNED = (*FLOATS, *SIGNED_INTS, *COMPLEX)


def unary(name: str, kernel: Callable[..., Any], allowed: tuple[DType, ...], gradient: Gradient | None) -> OpDefinition:
    """Defines a unary op. It has no gradient if `gradient` is None."""
    definition = define(f"{name}(x: T) -> (y: T)", T=allowed)
    definition.kernel(kernel)
    definition.shape(unchanged)
    if gradient is None:
        return definition.not_differentiable()
    definition.grad(gradient)
    return definition


def function(definition: OpDefinition, python_name: str, doc: str, *names: str, v1: Names = (), v2: Names = ()) -> Any:
    """Makes the public function `python_name(x, name=None)` of an op."""

    @export(*names, v1=v1, v2=v2)
    @elementwise
    @named(python_name, doc)
    def apply(x: Any, name: str | None = None) -> Tensor:
        return definition(x, name=name)

    return apply


def _times(g: Tensor, slope: Any) -> Tensor:
    return ops.multiply(g, slope)


def _plus_one(x: Tensor) -> Tensor:
    return ops.add(constants.number(1, x), x)


def _one_minus(x: Tensor) -> Tensor:
    return ops.subtract(constants.number(1, x), x)


def _x(op: Operation) -> Tensor:
    return conj(op.inputs[0])


def _y(op: Operation) -> Tensor:
    return conj(op.outputs[0])


# ---- complex numbers --------------------------------------------------------------------------------------------

_modulus: Any = extension("stoker._src.ops.native.modulus")
_COMPLEX = DTypeSet(COMPLEX, dtypes.complex64)
_PARTS = DTypeSet((dtypes.float32, dtypes.float64), dtypes.float32)

CONJ = define("Conj(input: T) -> (output: T)", T=DTypeSet((*COMPLEX, dtypes.variant), dtypes.complex64))
CONJ.kernel(lambda input: torch.conj_physical(input))
CONJ.shape(unchanged)
CONJ.grad(lambda op, g: conj(g))

REAL_PART = define("Real(input: T) -> (output: Tout)", T=_COMPLEX, Tout=_PARTS)
REAL_PART.kernel(lambda input: input.real.clone())
REAL_PART.shape(unchanged)
REAL_PART.grad(lambda op, g: COMPLEX_OF(g, constants.number(0, g), Tout=op.inputs[0].dtype.base_dtype))

IMAG_PART = define("Imag(input: T) -> (output: Tout)", T=_COMPLEX, Tout=_PARTS)
IMAG_PART.kernel(lambda input: input.imag.clone())
IMAG_PART.shape(unchanged)
IMAG_PART.grad(lambda op, g: COMPLEX_OF(constants.number(0, g), g, Tout=op.inputs[0].dtype.base_dtype))

ANGLE = define("Angle(input: T) -> (output: Tout)", T=_COMPLEX, Tout=_PARTS)
ANGLE.kernel(lambda input: torch.angle(input))
ANGLE.shape(unchanged)


@ANGLE.grad
def angle_grad(op: Operation, g: Tensor) -> Tensor:
    """With z = re + i im, d angle = (re d im - im d re) / |z|², written as -g / (im + i re)."""
    z = op.inputs[0]
    turned = COMPLEX_OF(imag(z), real(z), Tout=z.dtype.base_dtype)
    return ops.multiply(negative(COMPLEX_OF(g, constants.number(0, g), Tout=z.dtype.base_dtype)), reciprocal(turned))


COMPLEX_ABS = define("ComplexAbs(x: T) -> (y: Tout)", T=_COMPLEX, Tout=_PARTS)


@COMPLEX_ABS.kernel
def complex_abs_kernel(x: torch.Tensor) -> torch.Tensor:
    if _modulus is None or x.dtype is not torch.complex64 or not x.is_cpu or x.is_conj() or not x.is_contiguous():
        return torch.abs(x)
    out = torch.empty(x.shape)
    _modulus.modulus(out, x, x.numel(), torch.get_num_threads())
    return out


COMPLEX_ABS.shape(unchanged)


@COMPLEX_ABS.grad
def complex_abs_grad(op: Operation, g: Tensor) -> Tensor:
    """g x / |x|, written out because the gradient of Sign is zero."""
    x, size = op.inputs[0], op.outputs[0]
    scaled = ops.multiply(COMPLEX_OF(g, constants.number(0, g), Tout=x.dtype.base_dtype), x)
    return ops.DivNoNan(scaled, COMPLEX_OF(size, constants.number(0, size), Tout=x.dtype.base_dtype))


COMPLEX_OF = define("Complex(real: T, imag: T) -> (out: Tout)", T=_PARTS, Tout=_COMPLEX)
COMPLEX_OF.shape(broadcast_rule)


@COMPLEX_OF.kernel
def complex_kernel(real: torch.Tensor, imag: torch.Tensor, *, Tout: DType) -> torch.Tensor:
    return torch.complex(*torch.broadcast_tensors(real, imag)).to(torch_dtype(Tout))


@COMPLEX_OF.grad
def complex_grad(op: Operation, g: Tensor) -> Any:
    return broadcasting.reduce_to_inputs(op.inputs[0], op.inputs[1], real(g), imag(g))


def _part_dtype(x: Tensor) -> DType:
    return x.dtype.base_dtype.real_dtype


@export("math.conj", v1="conj")
@elementwise
def conj(x: Any, name: str | None = None) -> Tensor:
    """The complex conjugate. Real tensors are returned unchanged."""
    if isinstance(x, Tensor) and (x.dtype.is_floating or x.dtype.is_integer):
        return x
    with name_scope(name, "Conj", [x]) as scope:
        x = convert_to_tensor(x, name="x")
        if x.dtype.is_complex or x.dtype.base_dtype is dtypes.variant:
            return CONJ(x, name=scope)
        if x.dtype.is_floating or x.dtype.is_integer:
            return x
        raise TypeError(f"Expected numeric or variant tensor, got dtype {x.dtype!r}.")


@export("math.real", v1="real")
@elementwise
def real(input: Any, name: str | None = None) -> Tensor:
    """The real part. Real tensors are returned unchanged."""
    with name_scope(name, "Real", [input]) as scope:
        x = convert_to_tensor(input, name="input")
        if x.dtype.is_complex:
            return REAL_PART(x, Tout=_part_dtype(x), name=scope)
        if not x.dtype.is_numeric:
            raise TypeError(f"input must be a numeric tensor, but got tensor with dtype {x.dtype!r}")
        return x


@export("math.imag", v1="imag")
@elementwise
def imag(input: Any, name: str | None = None) -> Tensor:
    """The imaginary part: zeros for a real tensor."""
    with name_scope(name, "Imag", [input]) as scope:
        x = convert_to_tensor(input, name="input")
        return IMAG_PART(x, Tout=_part_dtype(x), name=scope) if x.dtype.is_complex else shaping.zeros_like(x)


@export("math.angle", v1="angle")
@elementwise
def angle(input: Any, name: str | None = None) -> Tensor:
    """The argument of complex numbers, in (-pi, pi]; 0 or pi for real ones."""
    with name_scope(name, "Angle", [input]) as scope:
        x = convert_to_tensor(input, name="input")
        if x.dtype.is_complex:
            return ANGLE(x, Tout=_part_dtype(x), name=scope)
        zero = shaping.zeros_like(x)
        half_turns = ops.multiply(constants.number(3.141592653589793, x), shaping.ones_like(x))
        return selection.SELECT(comparison.less(x, zero), half_turns, zero)


@export("complex", "dtypes.complex")
def complex(real: Any, imag: Any, name: str | None = None) -> Tensor:
    """real + i imag.

    Raises:
        TypeError: the parts are not both float32 or both float64.
    """
    real, imag = convert_to_tensor(real, name="real"), convert_to_tensor(imag, name="imag")
    with name_scope(name, "Complex", [real, imag]) as scope:
        kinds = (real.dtype.base_dtype, imag.dtype.base_dtype)
        if kinds not in ((dtypes.float32,) * 2, (dtypes.float64,) * 2):
            raise TypeError(
                f"The `real` and `imag` components have incorrect types: {kinds[0].name} {kinds[1].name}. "
                "They must be consistent, and one of (tf.float64, tf.float32)"
            )
        result = dtypes.complex64 if kinds[0] is dtypes.float32 else dtypes.complex128
        return COMPLEX_OF(real, imag, Tout=result, name=scope)


# ---- Neg, Abs, Sign ---------------------------------------------------------------------------------------------

NEG = unary("Neg", modular(torch.neg), SIGNED, lambda op, g: negative(g))
NEG.small("neg")
ABS = unary("Abs", torch.abs, (*FLOATS, *SIGNED_INTS), lambda op, g: _times(g, sign(op.inputs[0])))
ABS.small("abs")


def _sign(x: torch.Tensor) -> torch.Tensor:
    if x.is_floating_point():
        return torch.where(torch.isnan(x), x, torch.sign(x))  # torch's sign of NaN is 0
    if not x.is_complex():
        return torch.sgn(x)
    size = torch.abs(x).unsqueeze(-1)
    parts = torch.view_as_real(x) / size
    return torch.view_as_complex(torch.where(size < torch.finfo(size.dtype).tiny, 0.0, parts))


SIGN = unary("Sign", _sign, SIGNED, lambda op, g: shaping.zeros_like(op.inputs[0]))

negative = function(NEG, "negative", "-x.", "negative", "math.negative", v1="neg")


@export("abs", "math.abs")
@elementwise
def abs(x: Any, name: str | None = None) -> Any:
    """The absolute value, or the modulus of complex numbers."""
    with name_scope(name, "Abs", [x]) as scope:
        x = convert_to_tensor(x, name="x")
        if x.dtype.is_complex:
            return COMPLEX_ABS(x, Tout=_part_dtype(x), name=scope)
        return ABS(x, name=scope)


@export(v1="complex_abs")
def complex_abs(x: Any, name: str | None = None) -> Tensor:
    """The modulus of complex numbers, under its name in TensorFlow 0.12."""
    return abs(x, name=name)


@export("sign", "math.sign")
@elementwise
def sign(x: Any, name: str | None = None) -> Tensor:
    """The sign of x: -1, 0 or 1; x / |x| for complex numbers. Unlike the op Sign, it has a gradient for complex numbers."""
    x = convert_to_tensor(x)
    if x.dtype.is_complex:
        return ops.DivNoNan(x, casting.cast(COMPLEX_ABS(x, Tout=_part_dtype(x)), x.dtype.base_dtype), name=name)
    return SIGN(x, name=name)


# ---- powers -----------------------------------------------------------------------------------------------------


def _integer_reciprocal(x: torch.Tensor) -> torch.Tensor:
    if x.dtype.is_floating_point or x.dtype.is_complex:
        return torch.reciprocal(x)
    check_divisor(x)
    return torch.div(torch.ones_like(x), x, rounding_mode="trunc")


SQUARE = unary(
    "Square",
    modular(torch.square),
    NUMERIC,
    lambda op, g: _times(g, ops.multiply(_x(op), constants.number(2, g))),
)
SQUARE.small("square")
SQRT = unary("Sqrt", torch.sqrt, INEXACT, lambda op, g: SQRT_GRAD(op.outputs[0], g))
SQRT.small("sqrt")
RSQRT = unary("Rsqrt", torch.rsqrt, INEXACT, lambda op, g: RSQRT_GRAD(op.outputs[0], g))
RSQRT.small("rsqrt")
RECIPROCAL = unary("Reciprocal", _integer_reciprocal, SIGNED, lambda op, g: RECIPROCAL_GRAD(op.outputs[0], g))
RECIPROCAL.small("reciprocal")
INV = unary("Inv", _integer_reciprocal, SIGNED, lambda op, g: INV_GRAD(op.outputs[0], g))
INV.lower(unary_loop("reciprocal"))


def _slope(name: str, kernel: Callable[..., Any]) -> OpDefinition:
    """Defines the gradient op of a function, in terms of the function's value y and the incoming gradient dy."""
    definition = define(f"{name}(y: T, dy: T) -> (z: T)", T=INEXACT).alike(by_count=True)
    definition.kernel(kernel)
    return definition


def _zero_stays(dy: torch.Tensor, z: torch.Tensor) -> torch.Tensor:
    """z, or 0 where dy is 0, so that an infinite derivative does not turn a zero gradient into NaN."""
    return torch.where(dy == 0, dy, z)


def sqrt_grad_kernel(y: torch.Tensor, dy: torch.Tensor) -> torch.Tensor:
    return _zero_stays(dy, dy * (0.5 / torch.conj_physical(y)))


def rsqrt_grad_kernel(y: torch.Tensor, dy: torch.Tensor) -> torch.Tensor:
    y = torch.conj_physical(y)
    return _zero_stays(dy, dy * -0.5 * y * (y * y))


def reciprocal_grad_kernel(y: torch.Tensor, dy: torch.Tensor) -> torch.Tensor:
    y = torch.conj_physical(y)
    return _zero_stays(dy, -dy * (y * y))


SQRT_GRAD = _slope("SqrtGrad", sqrt_grad_kernel)
SQRT_GRAD.small("sqrt_grad")
RSQRT_GRAD = _slope("RsqrtGrad", rsqrt_grad_kernel)
RSQRT_GRAD.small("rsqrt_grad")
RECIPROCAL_GRAD = _slope("ReciprocalGrad", reciprocal_grad_kernel)
RECIPROCAL_GRAD.small("reciprocal_grad")
INV_GRAD = _slope("InvGrad", reciprocal_grad_kernel)


# The gradient ops conjugate y themselves: these are the derivatives of dy * f(conj(y)) with respect to y and dy.


@SQRT_GRAD.grad
def sqrt_grad_grad(op: Operation, g: Tensor) -> tuple[Tensor, Tensor]:
    scaled = ops.realdiv(g, op.inputs[0])
    return ops.multiply(negative(conj(scaled)), op.outputs[0]), ops.multiply(constants.number(0.5, g), scaled)


@RSQRT_GRAD.grad
def rsqrt_grad_grad(op: Operation, g: Tensor) -> tuple[Tensor, Tensor]:
    y, dy = conj(op.inputs[0]), op.inputs[1]
    to_y = ops.multiply(ops.multiply(constants.number(-1.5, g), ops.multiply(conj(g), dy)), square(y))
    return to_y, RSQRT_GRAD(y, g)


@RECIPROCAL_GRAD.grad
@INV_GRAD.grad
def reciprocal_grad_grad(op: Operation, g: Tensor) -> tuple[Tensor, Tensor]:
    y, dy = conj(op.inputs[0]), op.inputs[1]
    to_y = ops.multiply(ops.multiply(constants.number(-2, g), ops.multiply(conj(g), dy)), y)
    return to_y, RECIPROCAL_GRAD(y, g)


square = function(SQUARE, "square", "x * x.", "square", "math.square")
sqrt = function(SQRT, "sqrt", "The square root.", "sqrt", "math.sqrt")
rsqrt = function(RSQRT, "rsqrt", "1 / sqrt(x).", "math.rsqrt", v1="rsqrt")
reciprocal = function(RECIPROCAL, "reciprocal", "1 / x.", "math.reciprocal", v1=("reciprocal", "inv"))

# ---- exponentials and logarithms --------------------------------------------------------------------------------

EXP = unary("Exp", torch.exp, INEXACT, lambda op, g: _times(g, _y(op)))
EXP.small("exp")
EXPM1 = unary("Expm1", torch.expm1, INEXACT, lambda op, g: _times(g, exp(_x(op))))
LOG = unary("Log", torch.log, INEXACT, lambda op, g: _times(g, reciprocal(_x(op))))
LOG.small("log")
LOG1P = unary("Log1p", torch.log1p, INEXACT, lambda op, g: _times(g, reciprocal(_plus_one(_x(op)))))
LOG1P.small("log1p")

exp = function(EXP, "exp", "The exponential function.", "exp", "math.exp")
expm1 = function(EXPM1, "expm1", "exp(x) - 1, accurate for small x.", "math.expm1", v1="expm1")
log = function(LOG, "log", "The natural logarithm.", "math.log", v1="log")
log1p = function(LOG1P, "log1p", "log(1 + x), accurate for small x.", "math.log1p", v1="log1p")

# ---- sigmoid and tanh -------------------------------------------------------------------------------------------


def sigmoid_kernel(x: torch.Tensor) -> torch.Tensor:
    return _complex_sigmoid(x) if x.is_complex() else torch.sigmoid(x)


def sigmoid_(x: torch.Tensor) -> torch.Tensor:
    return x.copy_(_complex_sigmoid(x)) if x.is_complex() else torch.sigmoid_(x)


def _complex_sigmoid(x: torch.Tensor) -> torch.Tensor:
    """Uses the exponential that does not overflow. torch gives NaN for large negative real parts."""
    positive = x.real > 0
    power = torch.exp(torch.where(positive, -x, x))
    return torch.where(positive, torch.ones_like(power), power) / (1 + power)


SIGMOID = unary("Sigmoid", sigmoid_kernel, INEXACT, lambda op, g: SIGMOID_GRAD(_y(op), g))
SIGMOID.small("sigmoid")
TANH = unary("Tanh", torch.tanh, INEXACT, lambda op, g: TANH_GRAD(_y(op), g))
TANH.small("tanh")


_WIDE = (torch.float32, torch.float64)  # in 16 bits TensorFlow rounds (and overflows) after every operation


def sigmoid_grad_kernel(y: torch.Tensor, dy: torch.Tensor) -> torch.Tensor:
    return torch.ops.aten.sigmoid_backward(dy, y) if y.dtype in _WIDE else dy * (y * (1 - y))


def tanh_grad_kernel(y: torch.Tensor, dy: torch.Tensor) -> torch.Tensor:
    return torch.ops.aten.tanh_backward(dy, y) if y.dtype in _WIDE else dy * (1 - y * y)


def sigmoid_grad_(y: torch.Tensor, dy: torch.Tensor) -> torch.Tensor:
    return (
        torch.ops.aten.sigmoid_backward.grad_input(dy, y, grad_input=dy)
        if y.dtype in _WIDE
        else sigmoid_grad_kernel(y, dy)
    )


def tanh_grad_(y: torch.Tensor, dy: torch.Tensor) -> torch.Tensor:
    return (
        torch.ops.aten.tanh_backward.grad_input(dy, y, grad_input=dy) if y.dtype in _WIDE else tanh_grad_kernel(y, dy)
    )


SIGMOID_GRAD = _slope("SigmoidGrad", sigmoid_grad_kernel).in_place(1, sigmoid_grad_).vanishing(1)
SIGMOID_GRAD.small("sigmoid_grad")
TANH_GRAD = _slope("TanhGrad", tanh_grad_kernel).in_place(1, tanh_grad_).vanishing(1)
TANH_GRAD.small("tanh_grad")
SIGMOID.in_place(0, sigmoid_)
TANH.in_place(0, torch.tanh_)

for _definition, _loop in (
    (NEG, "neg"), (ABS, "abs"), (SQUARE, "square"), (SQRT, "sqrt"), (RSQRT, "rsqrt"), (RECIPROCAL, "reciprocal"),
    (EXP, "exp"), (LOG, "log"), (LOG1P, "log1p"), (SIGMOID, "sigmoid"), (TANH, "tanh"),
    (EXPM1, "expm1"),
):  # fmt: skip
    _definition.lower(unary_loop(_loop))
for _definition, _loop in (
    (SIGMOID_GRAD, "sigmoid_grad"), (TANH_GRAD, "tanh_grad"), (SQRT_GRAD, "sqrt_grad"), (RSQRT_GRAD, "rsqrt_grad"),
    (RECIPROCAL_GRAD, "reciprocal_grad"),
):  # fmt: skip
    _definition.lower(alike_loop(_loop))


@SIGMOID_GRAD.grad
def sigmoid_grad_grad(op: Operation, g: Tensor) -> tuple[Tensor, Tensor]:
    y, dy = conj(op.inputs[0]), conj(op.inputs[1])
    through = ops.multiply(g, dy)
    return ops.subtract(through, ops.multiply(ops.multiply(constants.number(2, g), through), y)), SIGMOID_GRAD(y, g)


@TANH_GRAD.grad
def tanh_grad_grad(op: Operation, g: Tensor) -> tuple[Tensor, Tensor]:
    y, dy = conj(op.inputs[0]), conj(op.inputs[1])
    return ops.multiply(ops.multiply(ops.multiply(g, dy), constants.number(-2, g)), y), TANH_GRAD(y, g)


sigmoid = function(SIGMOID, "sigmoid", "1 / (1 + exp(-x)).", "sigmoid", "math.sigmoid", "nn.sigmoid")


@export("tanh", "math.tanh", "nn.tanh")
@elementwise
def tanh(x: Any, name: str | None = None) -> Any:
    """The hyperbolic tangent. For IndexedSlices it applies to the values."""
    if isinstance(x, IndexedSlices):
        return IndexedSlices(TANH(x.values, name=name), x.indices, x.dense_shape)
    return TANH(x, name=name)


# ---- trigonometry -----------------------------------------------------------------------------------------------


def _over_root(g: Tensor, x: Tensor) -> Tensor:
    """g / sqrt(1 - x²)."""
    return _times(g, reciprocal(sqrt(_one_minus(square(x)))))


SIN = unary("Sin", torch.sin, INEXACT, lambda op, g: _times(g, cos(_x(op))))
COS = unary("Cos", torch.cos, INEXACT, lambda op, g: _times(negative(g), sin(_x(op))))
SIN.lower(unary_loop("sin"))
COS.lower(unary_loop("cos"))
TAN = unary("Tan", torch.tan, INEXACT, lambda op, g: _times(square(reciprocal(cos(_x(op)))), g))
ASIN = unary("Asin", torch.asin, INEXACT, lambda op, g: _over_root(g, _x(op)))
ACOS = unary("Acos", torch.acos, INEXACT, lambda op, g: negative(_over_root(g, _x(op))))
ATAN = unary("Atan", torch.atan, INEXACT, lambda op, g: _times(g, reciprocal(_plus_one(square(_x(op))))))


def _to_the_end(kernel: Callable[..., torch.Tensor]) -> Callable[..., torch.Tensor]:
    """Computes single precision in double, because torch's kernel overflows before the result does."""

    def run(x: torch.Tensor) -> torch.Tensor:
        return kernel(x.to(torch.float64)).to(torch.float32) if x.dtype == torch.float32 else kernel(x)

    run.__name__ = run.__qualname__ = f"{kernel.__name__}_kernel"
    return run


SINH = unary("Sinh", _to_the_end(torch.sinh), INEXACT, lambda op, g: _times(g, cosh(_x(op))))
COSH = unary("Cosh", _to_the_end(torch.cosh), INEXACT, lambda op, g: _times(g, sinh(_x(op))))
ASINH = unary("Asinh", torch.asinh, INEXACT, lambda op, g: ops.realdiv(g, cosh(_y(op))))
ACOSH = unary("Acosh", torch.acosh, INEXACT, lambda op, g: ops.realdiv(g, sinh(_y(op))))
ATANH = unary("Atanh", torch.atanh, INEXACT, lambda op, g: _times(g, reciprocal(_one_minus(square(_x(op))))))

sin = function(SIN, "sin", "The sine of x (in radians).", "sin", "math.sin")
cos = function(COS, "cos", "The cosine of x (in radians).", "cos", "math.cos")
tan = function(TAN, "tan", "The tangent of x (in radians).", "tan", "math.tan")
asin = function(ASIN, "asin", "The angle in [-pi/2, pi/2] whose sine is x.", "asin", "math.asin")
acos = function(ACOS, "acos", "The angle in [0, pi] whose cosine is x.", "acos", "math.acos")
atan = function(ATAN, "atan", "The angle in (-pi/2, pi/2) whose tangent is x.", "atan", "math.atan")
sinh = function(SINH, "sinh", "The hyperbolic sine.", "sinh", "math.sinh")
cosh = function(COSH, "cosh", "The hyperbolic cosine.", "cosh", "math.cosh")
asinh = function(ASINH, "asinh", "The inverse of sinh.", "asinh", "math.asinh")
acosh = function(ACOSH, "acosh", "The inverse of cosh, for x >= 1.", "acosh", "math.acosh")
atanh = function(ATANH, "atanh", "The inverse of tanh, for |x| < 1.", "atanh", "math.atanh")

# ---- rounding ---------------------------------------------------------------------------------------------------


def _round(x: torch.Tensor) -> torch.Tensor:
    if x.is_complex():
        return torch.complex(torch.round(x.real), torch.round(x.imag))
    return torch.round(x) if x.is_floating_point() else x.clone()


FLOOR = unary("Floor", torch.floor, FLOATS, None)
CEIL = unary("Ceil", torch.ceil, FLOATS, None)
RINT = unary("Rint", torch.round, FLOATS, None)
ROUND = unary("Round", _round, SIGNED, None)

for _definition, _loop in ((FLOOR, "floor"), (CEIL, "ceil"), (RINT, "rint"), (ROUND, "rint"), (SIGN, "sign")):
    _definition.lower(unary_loop(_loop))

floor = function(FLOOR, "floor", "The largest integer that is at most x.", "floor", "math.floor")
ceil = function(CEIL, "ceil", "The smallest integer that is at least x.", "math.ceil", v1="ceil")
rint = function(RINT, "rint", "Rounds to the nearest integer, halves to even.", "math.rint", v1="rint")


@export("round", "math.round")
@elementwise
def round(x: Any, name: str | None = None) -> Tensor:
    """Rounds to the nearest integer, halves to even. Integers are returned unchanged."""
    x = convert_to_tensor(x, name="x")
    return x if x.dtype.is_integer else ROUND(x, name=name)


# ---- tests ------------------------------------------------------------------------------------------------------


def _test(name: str, kernel: Callable[..., Any]) -> OpDefinition:
    definition = define(f"{name}(x: T) -> (y: bool)", T=FLOATS)
    definition.kernel(kernel)
    definition.shape(unchanged)
    return definition


IS_NAN = _test("IsNan", torch.isnan)
IS_INF = _test("IsInf", torch.isinf)
IS_FINITE = _test("IsFinite", torch.isfinite)
IS_FINITE.lower(unary_loop("is_finite"))

is_nan = function(IS_NAN, "is_nan", "Whether x is not a number.", "math.is_nan", v1=("is_nan", "debugging.is_nan"))
is_inf = function(IS_INF, "is_inf", "Whether x is infinite.", "math.is_inf", v1=("is_inf", "debugging.is_inf"))
is_finite = function(
    IS_FINITE, "is_finite", "Whether x is a finite number.", "math.is_finite", v1=("is_finite", "debugging.is_finite")
)


def check_divisor(y: torch.Tensor, error: type[OpError] = InvalidArgumentError) -> None:
    """Refuses zeros. On a GPU the host would have to wait for the answer, and the result is what the device makes of it."""
    if not y.is_cuda and not bool(torch.all(y)):
        raise error(None, None, "Integer division by zero")
