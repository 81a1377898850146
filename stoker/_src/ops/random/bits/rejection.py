"""Gamma, Poisson and binomial numbers by rejection, one at a time and in float64 for every output dtype.

Consumption: output j (parameters outermost: j = parameter * samples + sample) draws from its own run of blocks,
which starts 256 * j blocks into the stream (42 * j for a binomial with a small mean), so outputs do not depend on each
other. A stateful gamma or Poisson op reserves 256 blocks per output (`PhiloxState.reserve_outputs`); for a binomial see
`binomial_reserve`. Each block gives two float64 numbers, and the second is used first.

The Python functions match the C ones (`native/rejection.h`) expression by expression. `math` calls the C library.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from stoker._src.ops.random.bits import native
from stoker._src.ops.random.bits.fills import box_muller_double, unit_doubles
from stoker._src.ops.random.bits.philox import RESERVED_PER_OUTPUT, Stream, philox_blocks

# A binomial with a small mean uses so few uniforms that TensorFlow spaces its outputs more closely.
_SMALL_BINOMIAL_SPACING = 42
_OUTPUTS_PER_THREAD = 1 << 12


def gamma(stream: Stream, samples: int, alpha: np.ndarray) -> np.ndarray:
    """Gamma numbers with shape parameter `alpha` and scale 1, in alpha's dtype and with shape [samples, *alpha.shape].

    Marsaglia and Tsang, "A simple method for generating gamma variables" (2000). For alpha below one, a gamma number for
    alpha + 1 is multiplied by u**(1 / alpha). For alpha == 1 the result is the exponential -log1p(-u). Subnormal float32 and
    float64 results are zero, because TensorFlow's kernels flush them.
    """
    numbers = _per_output(stream, samples, [alpha], _gamma_number, "fill_gamma").astype(alpha.dtype)
    if alpha.dtype in (np.float32, np.float64):
        numbers[np.abs(numbers) < np.finfo(alpha.dtype).tiny] = 0
    return numbers


def poisson(stream: Stream, samples: int, rate: np.ndarray) -> np.ndarray:
    """Poisson numbers: float64 of shape [samples, *rate.shape].

    For rates below 10, uniforms are multiplied until exp(-rate) is passed (Knuth). Others use PTRS of Hormann, "The transformed
    rejection method for generating Poisson random variables" (1993). A rate that is not a number gives NaN.
    """
    return _per_output(stream, samples, [rate], _poisson_number, "fill_poisson")


def binomial(stream: Stream, samples: int, counts: np.ndarray, probs: np.ndarray) -> np.ndarray:
    """Binomial numbers: float64 of shape [samples, *broadcast(counts, probs).shape].

    With q = min(p, 1 - p): geometric gaps are summed if count * q < 10 (Devroye 1986, X.4.3). Otherwise BTRS of
    Hormann is used, "The generation of binomial random variates" (1993).
    """
    counts, probs = np.broadcast_arrays(counts, probs)
    # As in TensorFlow, the method is chosen by a product that is rounded to the parameters' dtype.
    means = counts * np.minimum(probs, 1 - probs)
    return _per_output(stream, samples, [counts, probs, means], _binomial_number, "fill_binomial")


def binomial_reserve(samples: int, batches: int) -> int:
    """The number of blocks by which a stateful binomial op advances its generator, for `batches` parameter pairs."""
    return batches * 200 * (samples + 3) // 4 * RESERVED_PER_OUTPUT


def _per_output(
    stream: Stream,
    samples: int,
    parameters: list[np.ndarray],
    number: Callable[..., float],
    compiled_name: str,
) -> np.ndarray:
    shape = parameters[0].shape
    flat = [np.ascontiguousarray(parameter, np.float64).reshape(-1) for parameter in parameters]
    out = np.empty(flat[0].size * samples, np.float64)
    if native.compiled is not None:
        function = getattr(native.compiled, compiled_name)

        def fill_piece(first: int, last: int) -> None:
            function(out[first:last], *stream.words, samples, first, *flat)

        native.share(fill_piece, out.size, per_thread=_OUTPUTS_PER_THREAD)
    else:
        for index in range(out.size):
            out[index] = number(stream, index, *(float(parameter[index // samples]) for parameter in flat))
    return np.ascontiguousarray(out.reshape(flat[0].size, samples).T).reshape(samples, *shape)


class Doubles:
    """Uniform and normal float64 numbers from one stream. The second of each block's two numbers is used first."""

    def __init__(self, stream: Stream) -> None:
        self._stream = stream
        self._uniforms: list[float] = []
        self._normals: list[float] = []

    def _next_pair(self) -> list[float]:
        pair = unit_doubles(philox_blocks(self._stream, 1))[0].tolist()
        self._stream = self._stream.skip(1)
        return pair

    def uniform(self) -> float:
        if not self._uniforms:
            self._uniforms = self._next_pair()
        return self._uniforms.pop()

    def normal(self) -> float:
        if not self._normals:
            self._normals = list(box_muller_double(*self._next_pair()))
        return self._normals.pop()


def _log(x: float) -> float:
    """The C library's logarithm, which returns minus infinity at zero. Python's raises."""
    return math.log(x) if x > 0.0 else -math.inf


def _gamma_number(stream: Stream, index: int, alpha: float) -> float:
    draw = Doubles(stream.skip(RESERVED_PER_OUTPUT * index))
    if alpha == 1.0:
        return -math.log1p(-draw.uniform())
    boosted = alpha < 1.0
    d = alpha + (2.0 / 3 if boosted else -1.0 / 3)
    if not 0.0 < d < math.inf:
        return math.inf if d > 0.0 else math.nan
    c = 1.0 / 3 / math.sqrt(d)
    while True:
        x = draw.normal()
        v = 1.0 + c * x
        if v <= 0.0:
            continue
        v = v * v * v
        u = draw.uniform()
        if u < 1.0 - 0.0331 * (x * x) * (x * x) or _log(u) < 0.5 * x * x + d * (1.0 - v + math.log(v)):
            result = d * v
            if boosted:
                u = draw.uniform()
                result *= _power_of_unit(u, alpha)
            return result


def _power_of_unit(u: float, alpha: float) -> float:
    """u ** (1 / alpha) for u in [0, 1), with the results of C's pow if 1 / alpha overflows or is negative."""
    exponent = 1.0 / alpha if alpha != 0.0 else math.copysign(math.inf, alpha)
    try:
        return math.pow(u, exponent)
    except (OverflowError, ValueError):  # Python raises for a negative exponent where C returns infinity
        return math.inf


def _poisson_number(stream: Stream, index: int, rate: float) -> float:
    if not rate > 0.0 or math.isinf(rate):
        return 0.0 if rate <= 0.0 else rate
    draw = Doubles(stream.skip(RESERVED_PER_OUTPUT * index))
    if rate < 10.0:
        limit, product, events = math.exp(-rate), 1.0, 0.0
        while True:
            product = product * draw.uniform()
            if product <= limit:
                return events
            events += 1.0
    log_rate = math.log(rate)
    b = 0.931 + 2.53 * math.sqrt(rate)
    a = -0.059 + 0.02483 * b
    inverse_alpha = 1.1239 + 1.1328 / (b - 3.4)
    easy = 0.9277 - 3.6224 / (b - 2.0)
    while True:
        u = draw.uniform() - 0.5
        v = draw.uniform()
        us = 0.5 - abs(u)
        if us == 0.0:  # the quotients below would be infinite, and the candidate is rejected
            continue
        k = float(math.floor((2.0 * a / us + b) * u + rate + 0.43))
        if us >= 0.07 and v <= easy:
            return k
        if k < 0.0 or (us < 0.013 and v > us):
            continue
        if _log(v * inverse_alpha / (a / (us * us) + b)) <= -rate + k * log_rate - math.lgamma(k + 1.0):
            return k


_STIRLING_TAIL = [
    0.0810614667953272,
    0.0413406959554092,
    0.0276779256849983,
    0.02079067210376509,
    0.0166446911898211,
    0.0138761288230707,
    0.0118967099458917,
    0.0104112652619720,
    0.00925546218271273,
    0.00833056343336287,
]


def _stirling_tail(k: float) -> float:
    """log(k!) minus Stirling's approximation."""
    if k <= 9.0:
        return _STIRLING_TAIL[int(k)]
    square = (k + 1.0) * (k + 1.0)
    return (1.0 / 12 - (1.0 / 360 - 1.0 / 1260 / square) / square) / (k + 1.0)


def _binomial_number(stream: Stream, index: int, count: float, p: float, mean: float) -> float:
    if math.isnan(count) or math.isnan(p):
        return math.nan
    if not count > 0.0 or p <= 0.0:
        return 0.0
    if p >= 1.0 or math.isinf(count):
        return count
    flipped = p > 0.5
    q = 1.0 - p if flipped else p
    if mean < 10.0:
        result = _binomial_small(Doubles(stream.skip(_SMALL_BINOMIAL_SPACING * index)), count, q)
    else:
        result = _binomial_large(Doubles(stream.skip(RESERVED_PER_OUTPUT * index)), count, q)
    return count - result if flipped else result


def _binomial_small(draw: Doubles, count: float, p: float) -> float:
    scale, trials, successes = math.log1p(-p), 0.0, 0.0
    while True:
        gap = _log(draw.uniform()) / scale
        trials += gap if math.isinf(gap) else float(math.ceil(gap))
        if trials > count:
            return successes
        successes += 1.0


def _binomial_large(draw: Doubles, count: float, p: float) -> float:
    deviation = math.sqrt(count * p * (1.0 - p))
    b = 1.15 + 2.53 * deviation
    a = -0.0873 + 0.0248 * b + 0.01 * p
    c = count * p + 0.5
    easy = 0.92 - 4.2 / b
    odds = p / (1.0 - p)
    alpha = (2.83 + 5.1 / b) * deviation
    m = float(math.floor((count + 1.0) * p))
    while True:
        u = draw.uniform() - 0.5
        v = draw.uniform()
        us = 0.5 - abs(u)
        if us == 0.0:  # an infinite candidate, which is rejected
            continue
        k = float(math.floor((2.0 * a / us + b) * u + c))
        if us >= 0.07 and v <= easy:
            return k
        if k < 0.0 or k > count:
            continue
        v = _log(v * alpha / (a / (us * us) + b))
        bound = (
            (m + 0.5) * math.log((m + 1.0) / (odds * (count - m + 1.0)))
            + (count + 1.0) * math.log((count - m + 1.0) / (count - k + 1.0))
            + (k + 0.5) * math.log(odds * (count - k + 1.0) / (k + 1.0))
            + _stirling_tail(m)
            + _stirling_tail(count - m)
            - _stirling_tail(k)
            - _stirling_tail(count - k)
        )
        if v <= bound:
            return k
