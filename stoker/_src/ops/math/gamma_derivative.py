"""The derivative of a gamma sample with respect to the parameter of its distribution."""

from __future__ import annotations

import numpy as np
import torch

# Length of the series in standard deviations. Later terms are below float64 precision.
_DEVIATIONS = 15.0
_FEWEST_TERMS = 64
_LARGE = 1e7  # for larger parameters the asymptotic limit is exact to single precision
_LEAST = float(np.finfo(np.float64).tiny)  # smaller numbers count as zero
_TAIL = 3.0  # the series cancels beyond this many standard deviations above the mean
_POINTS, _WEIGHTS = np.polynomial.laguerre.laggauss(64)


def gamma_derivative(alpha: torch.Tensor, sample: torch.Tensor) -> torch.Tensor:
    """d(sample)/d(alpha) at a fixed value of the distribution function P(alpha, sample); float64 in and out.

    By the implicit function theorem it is -(dP/dalpha) / (dP/dsample), where dP/dsample is the density. It is 0 where there
    is no such number, at infinities.
    """
    a, x = torch.broadcast_tensors(alpha, sample)
    if x.numel() == 0:
        return torch.zeros_like(a)
    inside = (a >= _LEAST) & (x >= _LEAST) & torch.isfinite(a) & torch.isfinite(x)
    far = inside & (x > a + _TAIL * torch.sqrt(a.clamp(min=0)) + _TAIL)
    large = inside & ~far & (a > _LARGE)
    near = inside & ~far & ~large
    result = torch.where((a >= _LEAST) & (x >= 0), torch.zeros_like(x), torch.nan)
    if bool(near.any()):
        result[near] = _by_series(a[near], x[near])
    if bool(far.any()):
        result[far] = _by_integral(a[far], x[far])
    if bool(large.any()):
        result[large] = _limit(a[large], x[large])
    return torch.where((x >= 0) & (x < _LEAST), torch.zeros_like(x), result)


def _by_series(a: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
    """P is the series of x^(a+n) e^-x / Gamma(a+n+1) over n >= 0, whose terms have the derivative (log x - digamma(a+n+1)) by a.

    Divided by the density x^(a-1) e^-x / Gamma(a), with the ratio r_n of the terms to the first:

        -sum_n r_n (log x - digamma(a+n+1)) * x / a,   r_0 = 1,  r_n = r_(n-1) x / (a+n)
    """
    largest = float(torch.maximum(a, x).max())
    logarithm, digamma = torch.log(x), torch.digamma(a + 1)
    ratio, total = torch.ones_like(x), torch.zeros_like(x)
    for n in range(int(_FEWEST_TERMS + _DEVIATIONS * largest**0.5)):
        term = ratio * (logarithm - digamma)
        total += term
        following = a + (n + 1)
        digamma = digamma + following.reciprocal()
        ratio = ratio * x / following
        if n % 16 == 15 and bool((ratio * (1 + torch.abs(logarithm - digamma)) <= torch.abs(total) * 1e-17).all()):
            break
    return -total * x / a


def _by_integral(a: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
    """The integral of (log(x + t) - digamma(a)) (1 + t / x)^(a-1) e^-t over t >= 0, which has no cancellation above the mean.

    The integrand falls as e^(-t rate); Gauss and Laguerre's points have that in their weights.
    """
    points, weights = (torch.tensor(each, dtype=x.dtype, device=x.device) for each in (_POINTS, _WEIGHTS))
    a, x = a.unsqueeze(-1), x.unsqueeze(-1)
    rate = 1 - (a - 1).clamp(min=0) / x
    t = points / rate
    sizes = torch.exp((a - 1) * torch.log1p(t / x) - t + points) * weights
    return ((torch.log(x + t) - torch.digamma(a)) * sizes / rate).sum(-1)


def _limit(a: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
    """x log(x / a) / (x - a) and the first term in 1 / a, of Temme's expansion."""
    part = (x - a) / a
    return torch.where(part == 0, 1.0, torch.xlogy(1 + part, 1 + part) / part) + 1 / (6 * a)
