"""Special functions without a torch kernel, from their textbook series. All are vectorized and computed in float64."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import torch

from stoker._src.ops.math.gamma_derivative import gamma_derivative

Kernel = Callable[..., torch.Tensor]


def in_double(function: Kernel) -> Kernel:
    """Computes the function in float64 and rounds to the dtype of the operands."""

    def kernel(*operands: torch.Tensor) -> torch.Tensor:
        dtype = operands[0].dtype
        return function(*[each.to(torch.float64) for each in operands]).to(dtype)

    kernel.__name__ = kernel.__qualname__ = f"{function.__name__.strip('_')}_kernel"
    return kernel


def _horner(x: torch.Tensor, coefficients: list[float]) -> torch.Tensor:
    """Evaluates a polynomial, lowest power first."""
    total = torch.full_like(x, coefficients[-1])
    for coefficient in reversed(coefficients[:-1]):
        total = total * x + coefficient
    return total


# ---- Hurwitz' zeta function -------------------------------------------------------------------------------------


def zeta(x: torch.Tensor, q: torch.Tensor) -> torch.Tensor:
    """torch's kernel, with the limit 0 where infinite or huge arguments would give NaN."""
    found = torch.special.zeta(x, q)
    at_limit = torch.isnan(found) & (x > 1) & (q > 1)
    return torch.where(at_limit, torch.zeros((), dtype=x.dtype, device=x.device), found)


# ---- Dawson's integral ------------------------------------------------------------------------------------------

_STEP = 0.2
_ODD = np.arange(1, 200, 2)


def dawson(x: torch.Tensor) -> torch.Tensor:
    """exp(-x²) times the integral of exp(t²) from 0 to x.

    Rybicki (1989): a sum of Gaussians at odd multiples of a step h, whose error falls like exp(-(pi / 2h)²).
    """
    size = torch.abs(x)
    odd = torch.tensor(_ODD, dtype=torch.float64, device=x.device)
    places = odd * _STEP
    # Near zero, pairs of Gaussians are merged into a sinh to avoid cancellation.
    near = size.clamp(max=2.0).unsqueeze(-1)
    weights = torch.exp(-(places**2)) / odd
    small = 2 * torch.exp(-(near.squeeze(-1) ** 2)) * torch.sum(weights * torch.sinh(2 * near * places), -1)
    far = size.clamp(max=25.0).unsqueeze(-1)
    large = torch.sum((torch.exp(-((far - places) ** 2)) - torch.exp(-((far + places) ** 2))) / odd, -1)
    series = torch.where(size < 2, small, large) / math.sqrt(math.pi)
    inverse = 1 / (2 * size * size)
    asymptotic = _horner(inverse, [1.0, 1.0, 3.0, 15.0, 105.0, 945.0, 10395.0, 135135.0, 2027025.0]) / (2 * size)
    return torch.sign(x) * torch.where(size > 20, asymptotic, series)


# ---- Fresnel integrals ------------------------------------------------------------------------------------------

_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(128)


def _fresnel(x: torch.Tensor, wave: Kernel, sine: bool) -> torch.Tensor:
    """The integral of wave(pi t² / 2) from 0 to x: Gauss-Legendre up to 6, the auxiliary functions f and g beyond."""
    size = torch.abs(x)
    near = size.clamp(max=6.0)
    nodes = torch.tensor((_NODES + 1) / 2, device=x.device)
    weights = torch.tensor(_WEIGHTS / 2, device=x.device)
    inner = near * torch.sum(weights * wave(math.pi / 2 * (near.unsqueeze(-1) * nodes) ** 2), -1)
    far = size.clamp(min=6.0)
    far = torch.where(torch.isinf(far), torch.full_like(far, 1e150), far)
    z = 1 / (math.pi * far * far) ** 2
    f = _horner(z, [1.0, -3.0, 105.0, -10395.0, 2027025.0, -654729075.0]) / (math.pi * far)
    g = _horner(z, [1.0, -15.0, 945.0, -135135.0, 34459425.0]) / (math.pi**2 * far**3)
    # Reduce the phase modulo one turn from the remainder of the square, so that large arguments keep their precision.
    phase = math.pi / 2 * torch.remainder(far * far, 4)
    sin, cos = torch.sin(phase), torch.cos(phase)
    outer = 0.5 - f * cos - g * sin if sine else 0.5 + f * sin - g * cos
    return torch.sign(x) * torch.where(size <= 6, inner, outer)


def fresnel_sin(x: torch.Tensor) -> torch.Tensor:
    return _fresnel(x, torch.sin, True)


def fresnel_cos(x: torch.Tensor) -> torch.Tensor:
    return _fresnel(x, torch.cos, False)


# ---- Spence's function ------------------------------------------------------------------------------------------

# Bernoulli numbers over (k + 1)!: the dilogarithm in powers of -log(1 - z).
_DILOGARITHM = [
    0.0, 1.0, -1 / 4, 1 / 36, 0.0, -1 / 3600, 0.0, 1 / 211680, 0.0, -1 / 10886400, 0.0, 1 / 526901760, 0.0,
    -691 / 16999766784000, 0.0, 7 / 7846046208000, 0.0, -3617 / 181400588328960000, 0.0, 43867 / 97072790126247936000,
]  # fmt: skip


def spence(x: torch.Tensor) -> torch.Tensor:
    """The dilogarithm of 1 - x."""
    inverted = x > 2
    y = torch.where(inverted, 1 / x, x)
    reflected = y < 0.5
    base = torch.where(reflected, 1 - y, y)
    u = -torch.log(base)
    value = _horner(u, _DILOGARITHM)
    logs = torch.where(y > 0, torch.log(y.clamp(min=1e-300)) * torch.log1p(-y), torch.zeros_like(y))
    value = torch.where(reflected, math.pi**2 / 6 - logs - value, value)
    value = torch.where(inverted, -0.5 * torch.log(x) ** 2 - value, value)
    return torch.where(x < 0, torch.full_like(x, math.nan), value)


# ---- exponential integral ---------------------------------------------------------------------------------------


def expint(x: torch.Tensor) -> torch.Tensor:
    """Ei(x) for x > 0: its power series up to 40, the asymptotic series beyond; NaN for negative x."""
    near = x.clamp(min=0, max=40.0)
    term = torch.ones_like(x)
    total = torch.zeros_like(x)
    for k in range(1, 141):
        term = term * near / k
        total = total + term / k
    series = np.euler_gamma + torch.log(near) + total
    far = x.clamp(min=40.0)
    tail, piece = torch.ones_like(x), torch.ones_like(x)
    for k in range(1, 39):
        piece = piece * k / far
        tail = tail + piece
    value = torch.where(x > 40, torch.exp(far) / far * tail, series)
    return torch.where(x < 0, torch.full_like(x, math.nan), value)


# ---- incomplete beta function -----------------------------------------------------------------------------------


def betainc(a: torch.Tensor, b: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
    """The regularized incomplete beta function, by Lentz's method for its continued fraction, on the side that converges."""
    a, b, x = torch.broadcast_tensors(a, b, x)
    swapped = x > (a + 1) / (a + b + 2)
    p, q, y = torch.where(swapped, b, a), torch.where(swapped, a, b), torch.where(swapped, 1 - x, x)
    front = torch.lgamma(p + q) - torch.lgamma(p) - torch.lgamma(q) + torch.xlogy(p, y) + torch.xlogy(q, 1 - y)
    tiny = 1e-300

    def kept(value: torch.Tensor) -> torch.Tensor:
        return torch.where(torch.abs(value) < tiny, torch.full_like(value, tiny), value)

    c = torch.ones_like(y)
    d = 1 / kept(1 - (p + q) * y / (p + 1))
    h = d
    for m in range(1, 400):
        even = m * (q - m) * y / ((p + 2 * m - 1) * (p + 2 * m))
        d = 1 / kept(1 + even * d)
        c = kept(1 + even / c)
        h = h * d * c
        odd = -(p + m) * (p + q + m) * y / ((p + 2 * m) * (p + 2 * m + 1))
        d = 1 / kept(1 + odd * d)
        c = kept(1 + odd / c)
        step = d * c
        h = h * step
        if m % 8 == 0 and bool((torch.abs(step - 1) < 1e-15).all()):
            break
    value = torch.exp(front) * h / p
    value = torch.where(swapped, 1 - value, value)
    value = torch.where(x == 0, torch.zeros_like(value), torch.where(x == 1, torch.ones_like(value), value))
    outside = (x < 0) | (x > 1) | (a <= 0) | (b <= 0) | torch.isnan(a + b + x)
    return torch.where(outside, torch.full_like(value, math.nan), value)


# ---- derivatives of the incomplete gamma function ---------------------------------------------------------------


def igamma_grad_a(a: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
    """The derivative of P(a, x) with respect to a: the derivative of a gamma sample times the density."""
    a, x = torch.broadcast_tensors(a, x)
    density = torch.exp(torch.xlogy(a - 1, x) - x - torch.lgamma(a))
    value = -gamma_derivative(a, x) * density
    return torch.where((x == 0) & ~torch.isnan(a), torch.zeros_like(value), torch.where(a <= 0, torch.nan, value))


# ---- polygamma and zeta -----------------------------------------------------------------------------------------


def polygamma(a: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
    """(-1)^(a + 1) a! zeta(a + 1, x) for integer a; digamma for a = 0; NaN for other orders."""
    whole = (a == torch.floor(a)) & (a >= 0)
    order = torch.where(whole, a, torch.ones_like(a))
    factor = torch.exp(torch.lgamma(order + 1)) * torch.where(torch.remainder(order, 2) == 1, 1.0, -1.0)
    value = torch.where(order == 0, torch.digamma(x), factor * zeta(order + 1, x))
    return torch.where(whole, value, torch.full_like(value, math.nan))


# ---- Bessel functions of orders 0 and 1 -------------------------------------------------------------------------

_FAR = 25.0  # the asymptotic series is accurate to the last bits from here on
_POINTS = 32
_TURNS = np.sin((np.arange(_POINTS) + 0.5) * np.pi / (2 * _POINTS))
# sum over k of (-1)^(k+1) cos(2 k theta) / k, which makes the series of Y over J_2k from the points of J_0.
_EVEN_ORDERS = sum(
    (-1) ** (k + 1) / k * np.cos(2 * k * (np.arange(_POINTS) + 0.5) * np.pi / (2 * _POINTS)) for k in range(1, 32)
)


def _points(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """x sin(theta) and sin(theta) at points of a quarter circle, and the weights of the even orders.

    The integrand of Bessel's integral over theta is periodic, so equal weights are accurate to the last bits below `_FAR`.
    """
    turns = torch.tensor(_TURNS, dtype=x.dtype, device=x.device)
    return x.clamp(max=_FAR).unsqueeze(-1) * turns, turns, torch.tensor(_EVEN_ORDERS, dtype=x.dtype, device=x.device)


def _asymptotic(x: torch.Tensor, order: int) -> tuple[torch.Tensor, torch.Tensor]:
    """J and Y for large x, by Hankel's expansion."""
    x = x.clamp(min=_FAR)
    term, even, odd = torch.ones_like(x), torch.ones_like(x), torch.zeros_like(x)
    for k in range(1, 25):
        term = term * ((4 * order * order - (2 * k - 1) ** 2) / (8 * k)) / x
        if k % 2:
            odd = odd + term * (-1) ** ((k - 1) // 2)
        else:
            even = even + term * (-1) ** (k // 2)
    # The phase is rounded, as in TensorFlow. For huge x its last digits are lost either way.
    phase = x - (2 * order + 1) * (math.pi / 4)
    cos, sin = torch.cos(phase), torch.sin(phase)
    scale = math.sqrt(2 / math.pi) / torch.sqrt(x)
    return scale * (even * cos - odd * sin), scale * (even * sin + odd * cos)


def bessel_j0(x: torch.Tensor) -> torch.Tensor:
    size = torch.abs(x)
    near = torch.cos(_points(size)[0]).mean(-1)
    return torch.where(size < _FAR, near, _asymptotic(size, 0)[0])


def bessel_j1(x: torch.Tensor) -> torch.Tensor:
    size = torch.abs(x)
    phases, turns, _ = _points(size)
    near = (turns * torch.sin(phases)).mean(-1)
    return torch.sign(x) * torch.where(size < _FAR, near, _asymptotic(size, 1)[0])


def bessel_y0(x: torch.Tensor) -> torch.Tensor:
    """(2 / pi) (log(x / 2) + gamma) J_0 + (4 / pi) sum of (-1)^(k+1) J_2k / k."""
    phases, _, weights = _points(x)
    waves = torch.cos(phases)
    near = (torch.log(x / 2) + np.euler_gamma) * waves.mean(-1) + 2 * (weights * waves).mean(-1)
    return torch.where(x < _FAR, near * (2 / math.pi), _asymptotic(x, 0)[1])


def bessel_y1(x: torch.Tensor) -> torch.Tensor:
    """The derivative of Y_0, term by term, negated."""
    phases, turns, weights = _points(x)
    cosines, slopes = torch.cos(phases).mean(-1), turns * torch.sin(phases)
    near = (torch.log(x / 2) + np.euler_gamma) * slopes.mean(-1) - cosines / x + 2 * (weights * slopes).mean(-1)
    near = torch.where(x == 0, torch.full_like(x, -math.inf), near * (2 / math.pi))
    return torch.where(x < _FAR, near, _asymptotic(x, 1)[1])
