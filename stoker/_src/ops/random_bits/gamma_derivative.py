"""How a gamma number changes with its distribution's parameter."""

from __future__ import annotations

import torch

# Terms of the series beyond which nothing of float64 precision is left, in deviations of the distribution.
_DEVIATIONS = 12.0
_FEWEST_TERMS = 64
_MOST_TERMS = 200_000


def gamma_derivative(alpha: torch.Tensor, sample: torch.Tensor) -> torch.Tensor:
    """d(sample)/d(alpha) at a fixed value of the distribution function P(alpha, sample); float64 in and out.

    By the implicit function theorem it is -(dP/dalpha) / (dP/dsample). P is the series of x^(a+n) e^-x / Gamma(a+n+1)
    over n >= 0, whose terms have the derivative (log x - digamma(a+n+1)) by a; dP/dsample is the density
    x^(a-1) e^-x / Gamma(a). All is taken relative to the first term, so that nothing over- or underflows:

        -sum_n r_n (log x - digamma(a+n+1)) * x / a,   r_0 = 1,  r_n = r_(n-1) x / (a+n)
    """
    a, x = torch.broadcast_tensors(alpha, sample)
    if not a.numel():
        return torch.zeros_like(a)
    finite = torch.isfinite(x) & torch.isfinite(a)
    largest = float(torch.where(finite, torch.maximum(a, x), 0.0).max())
    terms = int(min(max(_FEWEST_TERMS, largest * 0.1 + _DEVIATIONS * largest**0.5 + _FEWEST_TERMS), _MOST_TERMS))
    logarithm, digamma = torch.log(x), torch.digamma(a + 1)
    ratio, total = torch.ones_like(x), torch.zeros_like(x)
    for n in range(terms):
        term = ratio * (logarithm - digamma)
        total += term
        following = a + (n + 1)
        digamma = digamma + following.reciprocal()
        ratio = ratio * x / following
        if n > _FEWEST_TERMS and bool((ratio.abs() <= 1e-17 * total.abs()).all()):
            break
    result = -total * x / a
    return torch.where(x == 0, torch.zeros_like(x), result)
