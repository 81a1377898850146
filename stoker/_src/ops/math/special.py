"""Special functions: error functions, gamma and beta functions, Bessel functions, integrals."""

from __future__ import annotations

import math as numbers
from collections.abc import Callable
from typing import Any

import torch

from stoker._src.base import dtypes
from stoker._src.base.dtypes import FLOATS, INEXACT, DType
from stoker._src.base.errors import InvalidArgumentError
from stoker._src.base.export import Names, export, named
from stoker._src.base.shapes import Shape
from stoker._src.graph.conversion import convert_to_tensor
from stoker._src.graph.definition import OpDefinition, define
from stoker._src.graph.definition import broadcasting as broadcast_rule
from stoker._src.graph.scopes import name_scope
from stoker._src.graph.tensor import Operation, Tensor
from stoker._src.ops.array import broadcasting, casting, constants, shaping
from stoker._src.ops.math import arithmetic, comparison, reductions, special_kernels, unary_functions
from stoker._src.ops.math.special_kernels import in_double
from stoker._src.ops.math.unary_functions import unary
from stoker._src.ops.support.dispatching import elementwise
from stoker._src.ops.support.lowering import unary_loop

_WIDE = (dtypes.float32, dtypes.float64)


def _in_single(function: Callable[..., torch.Tensor]) -> Callable[..., torch.Tensor]:
    """Computes half precision in single precision, for functions without half kernels in torch."""

    def kernel(*operands: torch.Tensor) -> torch.Tensor:
        if operands[0].dtype in (torch.float16, torch.bfloat16):
            return function(*[each.float() for each in operands]).to(operands[0].dtype)
        return function(*operands)

    kernel.__name__ = kernel.__qualname__ = getattr(function, "__name__", "special") + "_kernel"
    return kernel


def _x(op: Operation) -> Tensor:
    return op.inputs[0]


def _y(op: Operation) -> Tensor:
    return op.outputs[0]


def _public(
    definition: OpDefinition, python_name: str, doc: str, *names: str, v1: Names = (), v2: Names = (), scope: str = ""
) -> Any:
    """Makes the public function of a unary op. With `scope`, the op keeps its own name inside a scope of that name."""

    @export(*names, v1=v1, v2=v2)
    @elementwise
    @named(python_name, doc)
    def apply(x: Any, name: str | None = None) -> Tensor:
        if not scope:
            return definition(x, name=name)
        with name_scope(name, scope, [x]):
            return definition(x)

    return apply


# ---- error functions --------------------------------------------------------------------------------------------


def _scaled(factor: float, exponent: Tensor) -> Tensor:
    return arithmetic.multiply(constants.number(factor, exponent), unary_functions.exp(exponent))


def _minus_square(x: Tensor) -> Tensor:
    return unary_functions.negative(unary_functions.square(x))


ERF = unary(
    "Erf",
    torch.erf,
    FLOATS,
    lambda op, g: arithmetic.multiply(g, _scaled(2 / numbers.sqrt(numbers.pi), _minus_square(_x(op)))),
)
ERF.lower(unary_loop("erf"))
ERFC = unary(
    "Erfc",
    torch.erfc,
    FLOATS,
    lambda op, g: arithmetic.multiply(g, _scaled(-2 / numbers.sqrt(numbers.pi), _minus_square(_x(op)))),
)
ERFINV = unary(
    "Erfinv",
    torch.erfinv,
    FLOATS,
    lambda op, g: arithmetic.multiply(g, _scaled(numbers.sqrt(numbers.pi) / 2, unary_functions.square(_y(op)))),
)
NDTRI = unary(
    "Ndtri",
    _in_single(torch.special.ndtri),
    FLOATS,
    lambda op, g: arithmetic.multiply(
        g,
        _scaled(
            numbers.sqrt(2 * numbers.pi), arithmetic.multiply(constants.number(0.5, g), unary_functions.square(_y(op)))
        ),
    ),
)

erf = _public(ERF, "erf", "The error function.", "math.erf", v1="erf")
erfc = _public(ERFC, "erfc", "1 - erf(x), accurate for large x.", "math.erfc", v1="erfc")
erfinv = _public(ERFINV, "erfinv", "The inverse of erf.", "math.erfinv", scope="erfinv")
ndtri = _public(
    NDTRI, "ndtri", "The quantile function of the standard normal distribution.", "math.ndtri", scope="ndtri"
)


@export("math.erfcinv")
def erfcinv(x: Any, name: str | None = None) -> Tensor:
    """The inverse of erfc."""
    with name_scope(name, "erfcinv", [x]):
        x = convert_to_tensor(x, name="start")
        return -ndtri(0.5 * x) * numbers.sqrt(0.5)


# ---- gamma functions --------------------------------------------------------------------------------------------

LGAMMA = unary("Lgamma", torch.lgamma, FLOATS, lambda op, g: arithmetic.multiply(g, digamma(_x(op))))


def _digamma(x: torch.Tensor) -> torch.Tensor:
    """Uses reflection for negative x, with the angle measured from the nearest integer, so that poles keep their precision."""
    wide = x if x.dtype == torch.float64 else x.to(torch.float32)
    if wide.is_cpu and wide.numel() and float(wide.min()) > 0:
        return torch.digamma(wide).to(x.dtype)
    below = wide < 0
    right = torch.digamma(torch.where(below, 1 - wide, wide))
    angle = numbers.pi * (wide - torch.round(wide))
    found = torch.where(below, right - numbers.pi / torch.tan(angle), right)
    pole = (wide <= 0) & (wide == torch.round(wide))
    return torch.where(pole, torch.full((), numbers.nan, dtype=wide.dtype, device=x.device), found).to(x.dtype)


DIGAMMA = unary(
    "Digamma", _digamma, FLOATS, lambda op, g: arithmetic.multiply(g, POLYGAMMA(constants.number(1, g), _x(op)))
)
DIGAMMA.lower(unary_loop("digamma"))
lgamma = _public(LGAMMA, "lgamma", "The logarithm of |gamma(x)|.", "math.lgamma", v1="lgamma")
digamma = _public(DIGAMMA, "digamma", "The derivative of lgamma.", "math.digamma", v1="digamma")


def _pair(signature: str, kernel: Callable[..., Any], allowed: tuple[DType, ...]) -> OpDefinition:
    definition = define(signature, T=allowed)
    definition.kernel(kernel)
    definition.shape(broadcast_rule)
    return definition


POLYGAMMA = _pair("Polygamma(a: T, x: T) -> (z: T)", in_double(special_kernels.polygamma), _WIDE)
ZETA = _pair("Zeta(x: T, q: T) -> (z: T)", special_kernels.zeta, _WIDE)


def _in_domain(function: Callable[..., torch.Tensor], at_zero: float | None = None) -> Callable[..., torch.Tensor]:
    """NaN unless a > 0 and x >= 0. `at_zero`, if given, is the value at x = 0 for any a."""

    def kernel(a: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
        nan = torch.full((), numbers.nan, dtype=x.dtype, device=x.device)
        value = torch.where((a > 0) & (x >= 0), function(a, x), nan)
        return (
            value if at_zero is None else torch.where((x == 0) & ~torch.isnan(a), torch.full_like(nan, at_zero), value)
        )

    kernel.__name__ = kernel.__qualname__ = function.__name__
    return kernel


IGAMMA = _pair("Igamma(a: T, x: T) -> (z: T)", in_double(_in_domain(torch.special.gammainc, 0.0)), FLOATS)
IGAMMAC = _pair("Igammac(a: T, x: T) -> (z: T)", in_double(_in_domain(torch.special.gammaincc)), FLOATS)
IGAMMA_GRAD_A = _pair("IgammaGradA(a: T, x: T) -> (z: T)", in_double(special_kernels.igamma_grad_a), _WIDE)


@POLYGAMMA.lower
def polygamma_lower(build: Any, op: Operation, a: Any, x: Any) -> Any:
    """The order that occurs in the gradient of digamma."""
    return build.unary("trigamma", x) if build.number(a) == 1.0 and not a.shape else None


@POLYGAMMA.grad
def polygamma_grad(op: Operation, g: Tensor) -> Any:
    a, x = op.inputs
    slope = POLYGAMMA(arithmetic.add(a, constants.number(1, a)), x)
    return None, broadcasting.reduce_to_inputs(a, x, None, arithmetic.multiply(g, slope))[1]


@ZETA.grad
def zeta_grad(op: Operation, g: Tensor) -> Any:
    x, q = op.inputs
    slope = arithmetic.multiply(unary_functions.negative(x), ZETA(arithmetic.add(x, constants.number(1, x)), q))
    return None, broadcasting.reduce_to_inputs(x, q, None, arithmetic.multiply(g, slope))[1]


def _igamma_gradients(op: Operation, g: Tensor) -> Any:
    a, x = op.inputs
    density = unary_functions.exp(
        arithmetic.subtract(
            arithmetic.add(
                unary_functions.negative(x),
                arithmetic.multiply(arithmetic.subtract(a, constants.number(1, a)), unary_functions.log(x)),
            ),
            lgamma(a),
        )
    )
    return broadcasting.reduce_to_inputs(
        a, x, arithmetic.multiply(g, IGAMMA_GRAD_A(a, x)), arithmetic.multiply(g, density)
    )


@IGAMMA.grad
def igamma_grad(op: Operation, g: Tensor) -> Any:
    return _igamma_gradients(op, g)


@IGAMMAC.grad
def igammac_grad(op: Operation, g: Tensor) -> Any:
    return _igamma_gradients(op, unary_functions.negative(g))


@export("math.polygamma", v1="polygamma")
def polygamma(a: Any, x: Any, name: str | None = None) -> Tensor:
    """The derivative of digamma of order a, a non-negative integer."""
    return POLYGAMMA(a, x, name=name)


@export("math.zeta", v1="zeta")
@elementwise
def zeta(x: Any, q: Any, name: str | None = None) -> Tensor:
    """The Hurwitz zeta function: the sum of (q + n)^-x over n >= 0."""
    return ZETA(x, q, name=name)


@export("math.igamma", v1="igamma")
@elementwise
def igamma(a: Any, x: Any, name: str | None = None) -> Tensor:
    """The lower regularised incomplete gamma function."""
    return IGAMMA(a, x, name=name)


@export("math.igammac", v1="igammac")
def igammac(a: Any, x: Any, name: str | None = None) -> Tensor:
    """The upper regularised incomplete gamma function."""
    return IGAMMAC(a, x, name=name)


# ---- beta functions ---------------------------------------------------------------------------------------------

BETAINC = define("Betainc(a: T, b: T, x: T) -> (z: T)", T=_WIDE)


@BETAINC.kernel
def betainc_kernel(a: torch.Tensor, b: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
    betainc_shape(Shape(a.shape), Shape(b.shape), Shape(x.shape))
    return in_double(special_kernels.betainc)(a, b, x)


def betainc_shape(a: Shape, b: Shape, x: Shape) -> Shape:
    result = Shape(())
    for each in (a, b, x):
        if each.rank is None:
            return each
        if each.rank:
            try:
                result = each if not result.dims else result.merge(each)
            except InvalidArgumentError:
                raise InvalidArgumentError(
                    None, None, f"Shapes of a, b and x are inconsistent: {a}, {b}, {x}."
                ) from None
    return result


BETAINC.shape(betainc_shape)


@BETAINC.grad
def betainc_grad(op: Operation, g: Tensor) -> Any:
    """The gradient for x is the density of the beta distribution. There is no closed form for a and b."""
    a, b, x = op.inputs
    one = constants.number(1, x)
    log_beta = arithmetic.subtract(arithmetic.add(lgamma(a), lgamma(b)), lgamma(arithmetic.add(a, b)))
    exponent = arithmetic.add(
        XLOG1PY(arithmetic.subtract(b, one), unary_functions.negative(x)),
        arithmetic.subtract(XLOGY(arithmetic.subtract(a, one), x), log_beta),
    )
    return (
        None,
        None,
        broadcasting.reduce_to_inputs(op.outputs[0], x, None, arithmetic.multiply(g, unary_functions.exp(exponent)))[1],
    )


@export("math.betainc", v1="betainc")
def betainc(a: Any, b: Any, x: Any, name: str | None = None) -> Tensor:
    """The regularised incomplete beta function."""
    return BETAINC(a, b, x, name=name)


@export("math.lbeta", v1="lbeta")
def lbeta(x: Any, name: str | None = None) -> Tensor:
    """The logarithm of the beta function of the last dimension: sum(lgamma(x)) - lgamma(sum(x))."""
    with name_scope(name, "lbeta", [x]):
        x = convert_to_tensor(x, name="x")
        logs = reductions.reduce_sum(lgamma(x), [-1])
        total = reductions.reduce_sum(x, [-1])
        return logs - lgamma(total)


# ---- x log y and the like ---------------------------------------------------------------------------------------


def _zero_where_zero(function: Callable[..., torch.Tensor], name: str) -> Callable[..., torch.Tensor]:
    """x times a function of y, or 0 where x is 0, even if the function is not finite."""

    def kernel(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        return torch.where(x == 0, torch.zeros((), dtype=x.dtype, device=x.device), function(x, y))

    kernel.__name__ = kernel.__qualname__ = name
    return kernel


XLOGY = _pair("Xlogy(x: T, y: T) -> (z: T)", _zero_where_zero(lambda x, y: x * torch.log(y), "xlogy_kernel"), INEXACT)
XLOG1PY = _pair(
    "Xlog1py(x: T, y: T) -> (z: T)", _zero_where_zero(lambda x, y: x * torch.log1p(y), "xlog1py_kernel"), INEXACT
)
XDIVY = _pair("Xdivy(x: T, y: T) -> (z: T)", _zero_where_zero(torch.div, "xdivy_kernel"), INEXACT)


def _is_set(x: Tensor) -> Tensor:
    return casting.cast(comparison.not_equal(x, constants.number(0, x)), x.dtype.base_dtype)


# TensorFlow does not conjugate these three derivatives for complex numbers.


@XLOGY.grad
def xlogy_grad(op: Operation, g: Tensor) -> Any:
    x, y = op.inputs
    to_x, to_y = XLOGY(_is_set(x), y), XDIVY(x, y)
    return broadcasting.reduce_to_inputs(x, y, arithmetic.multiply(to_x, g), arithmetic.multiply(to_y, g))


@XLOG1PY.grad
def xlog1py_grad(op: Operation, g: Tensor) -> Any:
    x, y = op.inputs
    to_x, to_y = XLOG1PY(_is_set(x), y), XDIVY(x, arithmetic.add(y, constants.number(1, y)))
    return broadcasting.reduce_to_inputs(x, y, arithmetic.multiply(to_x, g), arithmetic.multiply(to_y, g))


@XDIVY.grad
def xdivy_grad(op: Operation, g: Tensor) -> Any:
    x, y = op.inputs
    to_x, to_y = XDIVY(_is_set(x), y), XDIVY(unary_functions.negative(x), unary_functions.square(y))
    return broadcasting.reduce_to_inputs(x, y, arithmetic.multiply(to_x, g), arithmetic.multiply(to_y, g))


@export("math.xlogy")
@elementwise
def xlogy(x: Any, y: Any, name: str | None = None) -> Tensor:
    """x log(y), and 0 where x is 0."""
    return XLOGY(x, y, name=name)


@export("math.xlog1py")
def xlog1py(x: Any, y: Any, name: str | None = None) -> Tensor:
    """x log(1 + y), and 0 where x is 0."""
    with name_scope(name, "xlog1py", [x]):
        return XLOG1PY(x, y)


@export("math.xdivy")
@elementwise
def xdivy(x: Any, y: Any, name: str | None = None) -> Tensor:
    """x / y, and 0 where x is 0."""
    with name_scope(name, "xdivy", [x]):
        return XDIVY(x, y)


# ---- Bessel functions -------------------------------------------------------------------------------------------


def _over(y: Tensor, x: Tensor) -> Tensor:
    return arithmetic.realdiv(y, x)


def _ratio_at_zero(op: Operation, slope: Tensor) -> Tensor:
    """A derivative that contains y / x, which is 1/2 at 0."""
    x = _x(op)
    return arithmetic.select(
        comparison.equal(x, constants.number(0, x)),
        arithmetic.multiply(shaping.ones_like(x), constants.number(0.5, x)),
        slope,
    )


def _safe(x: Tensor) -> Tensor:
    """x with 0 replaced by 1, for use as a divisor."""
    return arithmetic.select(comparison.equal(x, constants.number(0, x)), shaping.ones_like(x), x)


def _left_of_zero(function: Callable[..., torch.Tensor], value: float) -> Callable[..., torch.Tensor]:
    """Functions of the second kind are undefined for negative x. TensorFlow returns `value` there."""

    def kernel(x: torch.Tensor) -> torch.Tensor:
        return torch.where(x < 0, torch.full((), value, dtype=x.dtype, device=x.device), function(x))

    kernel.__name__ = kernel.__qualname__ = getattr(function, "__name__", "bessel")
    return kernel


def _bessel(name: str, kernel: Callable[..., Any], slope: Callable[[Operation], Tensor]) -> OpDefinition:
    return unary(name, _in_single(kernel), FLOATS, lambda op, g: arithmetic.multiply(g, slope(op)))


_special = torch.special
BESSEL_I0 = _bessel("BesselI0", _special.i0, lambda op: BESSEL_I1(_x(op)))
BESSEL_I0E = _bessel(
    "BesselI0e",
    _special.i0e,
    lambda op: arithmetic.subtract(BESSEL_I1E(_x(op)), arithmetic.multiply(unary_functions.sign(_x(op)), _y(op))),
)
BESSEL_I1 = _bessel(
    "BesselI1",
    _special.i1,
    lambda op: _ratio_at_zero(op, arithmetic.subtract(BESSEL_I0(_x(op)), _over(_y(op), _safe(_x(op))))),
)
BESSEL_I1E = _bessel(
    "BesselI1e",
    _special.i1e,
    lambda op: _ratio_at_zero(
        op,
        arithmetic.subtract(
            BESSEL_I0E(_x(op)),
            arithmetic.multiply(
                _y(op), arithmetic.add(unary_functions.sign(_x(op)), unary_functions.reciprocal(_safe(_x(op))))
            ),
        ),
    ),
)
BESSEL_J0 = _bessel(
    "BesselJ0", in_double(special_kernels.bessel_j0), lambda op: unary_functions.negative(BESSEL_J1(_x(op)))
)
BESSEL_J1 = _bessel(
    "BesselJ1",
    in_double(special_kernels.bessel_j1),
    lambda op: _ratio_at_zero(op, arithmetic.subtract(BESSEL_J0(_x(op)), _over(_y(op), _safe(_x(op))))),
)
BESSEL_K0 = _bessel(
    "BesselK0",
    _left_of_zero(_special.modified_bessel_k0, numbers.inf),
    lambda op: unary_functions.negative(BESSEL_K1(_x(op))),
)
BESSEL_K0E = _bessel(
    "BesselK0e",
    _left_of_zero(_special.scaled_modified_bessel_k0, numbers.inf),
    lambda op: arithmetic.subtract(_y(op), BESSEL_K1E(_x(op))),
)
BESSEL_K1 = _bessel(
    "BesselK1",
    _left_of_zero(_special.modified_bessel_k1, numbers.inf),
    lambda op: arithmetic.subtract(unary_functions.negative(BESSEL_K0(_x(op))), _over(_y(op), _x(op))),
)
BESSEL_K1E = _bessel(
    "BesselK1e",
    _left_of_zero(_special.scaled_modified_bessel_k1, numbers.inf),
    lambda op: arithmetic.subtract(
        arithmetic.multiply(
            _y(op), arithmetic.subtract(constants.number(1, _y(op)), unary_functions.reciprocal(_x(op)))
        ),
        BESSEL_K0E(_x(op)),
    ),
)
BESSEL_Y0 = _bessel(
    "BesselY0",
    _left_of_zero(in_double(special_kernels.bessel_y0), -numbers.inf),
    lambda op: unary_functions.negative(BESSEL_Y1(_x(op))),
)
BESSEL_Y1 = _bessel(
    "BesselY1",
    _left_of_zero(in_double(special_kernels.bessel_y1), -numbers.inf),
    lambda op: arithmetic.subtract(BESSEL_Y0(_x(op)), _over(_y(op), _x(op))),
)


def _bessel_function(definition: OpDefinition, short: str, doc: str, in_math: bool = False) -> Any:
    names = [f"math.special.bessel_{short}"] + ([f"math.bessel_{short}"] if in_math else [])
    return _public(definition, f"bessel_{short}", doc, *names, scope=f"bessel_{short}")


bessel_i0 = _bessel_function(BESSEL_I0, "i0", "The modified Bessel function of the first kind, order 0.", True)
bessel_i0e = _bessel_function(BESSEL_I0E, "i0e", "exp(-|x|) times bessel_i0.", True)
bessel_i1 = _bessel_function(BESSEL_I1, "i1", "The modified Bessel function of the first kind, order 1.", True)
bessel_i1e = _bessel_function(BESSEL_I1E, "i1e", "exp(-|x|) times bessel_i1.", True)
bessel_j0 = _bessel_function(BESSEL_J0, "j0", "The Bessel function of the first kind, order 0.")
bessel_j1 = _bessel_function(BESSEL_J1, "j1", "The Bessel function of the first kind, order 1.")
bessel_k0 = _bessel_function(BESSEL_K0, "k0", "The modified Bessel function of the second kind, order 0.")
bessel_k0e = _bessel_function(BESSEL_K0E, "k0e", "exp(x) times bessel_k0.")
bessel_k1 = _bessel_function(BESSEL_K1, "k1", "The modified Bessel function of the second kind, order 1.")
bessel_k1e = _bessel_function(BESSEL_K1E, "k1e", "exp(x) times bessel_k1.")
bessel_y0 = _bessel_function(BESSEL_Y0, "y0", "The Bessel function of the second kind, order 0.")
bessel_y1 = _bessel_function(BESSEL_Y1, "y1", "The Bessel function of the second kind, order 1.")

# ---- integrals --------------------------------------------------------------------------------------------------


def _quarter_turn(x: Tensor) -> Tensor:
    """pi x² / 2."""
    return arithmetic.multiply(constants.number(numbers.pi / 2, x), unary_functions.square(x))


def _integral(name: str, kernel: Callable[..., Any], slope: Callable[[Operation], Tensor]) -> OpDefinition:
    return unary(name, kernel, FLOATS, lambda op, g: arithmetic.multiply(g, slope(op)))


def _with_exponential(function: Callable[..., torch.Tensor]) -> Callable[..., torch.Tensor]:
    """Infinite where exp(x) is, because TensorFlow multiplies exp(x) by 1 / x."""

    def kernel(x: torch.Tensor) -> torch.Tensor:
        return torch.where(torch.isposinf(torch.exp(x)) & ~torch.isposinf(x), numbers.inf, function(x))

    return kernel


def _with_inverse(function: Callable[..., torch.Tensor]) -> Callable[..., torch.Tensor]:
    """NaN where 1 / x underflows, because TensorFlow takes its logarithm."""

    def kernel(x: torch.Tensor) -> torch.Tensor:
        tiny = torch.finfo(torch.float64 if x.dtype == torch.float64 else torch.float32).tiny
        return torch.where(x > 1 / tiny, numbers.nan, function(x))

    return kernel


DAWSN = _integral(
    "Dawsn",
    in_double(special_kernels.dawson),
    lambda op: arithmetic.subtract(
        constants.number(1, _x(op)),
        arithmetic.multiply(arithmetic.multiply(constants.number(2, _x(op)), _x(op)), _y(op)),
    ),
)
FRESNEL_COS = _integral(
    "FresnelCos", in_double(special_kernels.fresnel_cos), lambda op: unary_functions.cos(_quarter_turn(_x(op)))
)
FRESNEL_SIN = _integral(
    "FresnelSin", in_double(special_kernels.fresnel_sin), lambda op: unary_functions.sin(_quarter_turn(_x(op)))
)
EXPINT = _integral(
    "Expint",
    _with_exponential(in_double(special_kernels.expint)),
    lambda op: arithmetic.realdiv(unary_functions.exp(_x(op)), _x(op)),
)


def _spence_slope(op: Operation) -> Tensor:
    x = _x(op)
    one = shaping.ones_like(x)
    at_one = comparison.equal(x, one)
    gap = arithmetic.select(at_one, one, arithmetic.subtract(one, x))
    return arithmetic.select(at_one, unary_functions.negative(one), arithmetic.realdiv(unary_functions.log(x), gap))


SPENCE = _integral("Spence", _with_inverse(in_double(special_kernels.spence)), _spence_slope)

dawsn = _public(DAWSN, "dawsn", "The Dawson integral.", "math.special.dawsn", scope="dawsn")
expint = _public(EXPINT, "expint", "The exponential integral Ei.", "math.special.expint", scope="expint")
fresnel_cos = _public(
    FRESNEL_COS, "fresnel_cos", "The Fresnel cosine integral.", "math.special.fresnel_cos", scope="fresnel_cos"
)
fresnel_sin = _public(
    FRESNEL_SIN, "fresnel_sin", "The Fresnel sine integral.", "math.special.fresnel_sin", scope="fresnel_sin"
)
spence = _public(
    SPENCE, "spence", "Spence's integral: the dilogarithm of 1 - x.", "math.special.spence", scope="spence"
)
