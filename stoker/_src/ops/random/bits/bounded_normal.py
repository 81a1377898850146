"""Normal numbers between two bounds. One of three rejection methods is chosen by the bounds (Robert, "Simulation of
truncated normal variables", 1995).

Consumption: batches, the first dimension of the output, follow one another in the stream. A batch draws whole
blocks until it has its samples, and discards the rest of the last block. The stateful op reserves `bounded_reserve`.
(TensorFlow with several threads restarts large outputs at batches that depend on the number of threads; this is one thread.)
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import torch

from stoker._src.base.errors import InternalError, InvalidArgumentError
from stoker._src.ops.random.bits.fills import normal, uniform
from stoker._src.ops.random.bits.float_math import exp_float, log_float
from stoker._src.ops.random.bits.philox import Stream

# If one bound is this many deviations beyond the mean and the other is on the other side, few plain normals are rejected.
_PLAIN_NORMALS_BEYOND = 1.3
_BLOCKS_AT_ONCE = 256
_MOST_BLOCKS = 2**16
_MOST_TRIES = 1000
_TORCH_DTYPES = {np.float16: torch.float16, np.float32: torch.float32, np.float64: torch.float64}


def bounded_reserve(batches: int, samples: int) -> int:
    """The number of blocks by which ParameterizedTruncatedNormal advances its generator."""
    return batches * 2000 * (samples + 3) // 4


def bounded_normal(
    stream: Stream,
    batches: int,
    samples: int,
    means: np.ndarray,
    deviations: np.ndarray,
    lows: np.ndarray,
    highs: np.ndarray,
) -> np.ndarray:
    """Draws numbers of shape [batches, samples], in the parameters' type (float16, float32 or float64).

    Args:
        stream: the stream to draw from.
        batches: the number of parameter sets. Each parameter has this many elements, or one element for all sets.
        samples: the number of samples for each set.
        means: the means of the untruncated normal distributions.
        deviations: their standard deviations, positive.
        lows: lower bounds. Minus infinity is allowed if the upper bound is finite.
        highs: upper bounds. Infinity is allowed if the lower bound is finite.

    Raises:
        InvalidArgumentError: a parameter set violates these conditions.
    """
    dtype = means.dtype.type
    if dtype not in _TORCH_DTYPES:
        raise InvalidArgumentError(None, None, f"bounded normals of type {means.dtype} are not defined")
    for parameter in (means, deviations, lows, highs):
        if parameter.size not in (1, batches):
            raise InvalidArgumentError(
                None, None, f"parameters must have 1 or {batches} elements, got shape {list(parameter.shape)}"
            )
    draw = _Blocks(stream, dtype)
    if 1 in (batches, samples) and all(each.size == 1 for each in (means, deviations, lows, highs)):
        together = _all_alike(draw, batches, samples, *(each.item() for each in (means, deviations, lows, highs)))
        if together is not None:
            return together
    rows = [np.broadcast_to(parameter.reshape(-1), batches) for parameter in (means, deviations, lows, highs)]
    out = np.empty((batches, samples), dtype)
    for batch, (mean, deviation, low, high) in enumerate(zip(*rows, strict=True)):
        if not _valid(deviation, low, high):
            raise InvalidArgumentError(None, None, "Invalid parameters")
        numbers = _numbers(draw, mean, deviation, low, high)
        out[batch] = [next(numbers) for _ in range(samples)]
    return out


class _Blocks:
    """Reads the blocks of a stream one by one, as uniforms or normals, with the C library's functions for the dtype.

    Blocks are generated many at a time, since the contents of a block depend only on its position in the stream.
    """

    def __init__(self, stream: Stream, dtype: type) -> None:
        self._stream, self._at = stream, 0
        self._made: dict[Any, tuple[int, np.ndarray]] = {}
        self._torch_dtype = _TORCH_DTYPES[dtype]
        self._per_block = 2 if dtype is np.float64 else 4
        self.dtype = dtype

    def _next(self, fill: Callable[[Stream, int, torch.dtype], torch.Tensor]) -> np.ndarray:
        first, blocks = self._made.get(fill, (0, ()))
        if not first <= self._at < first + len(blocks):
            first = self._at
            numbers = fill(self._stream.skip(first), self._per_block * _BLOCKS_AT_ONCE, self._torch_dtype)
            blocks = numbers.numpy().reshape(_BLOCKS_AT_ONCE, self._per_block)
            self._made[fill] = first, blocks
        block = blocks[self._at - first]
        self._at += 1
        return block

    def uniforms(self) -> np.ndarray:
        return self._next(uniform)

    def normals(self) -> np.ndarray:
        return self._next(normal)

    def many_normals(self, count: int) -> np.ndarray:
        """The next `count` blocks as normals."""
        numbers = normal(self._stream.skip(self._at), self._per_block * count, self._torch_dtype)
        self._at += count
        return numbers.numpy().reshape(count, self._per_block)

    def exp(self, x: np.floating) -> np.floating:
        if np.isnan(x):
            return x
        if x < -80:  # smaller than any nonzero uniform
            return self.dtype(0)
        return self.dtype(math.exp(x) if self.dtype is np.float64 else exp_float(float(x)))

    def log(self, x: np.floating) -> np.floating:
        if x <= 0:
            return self.dtype(-np.inf)
        return self.dtype(math.log(x) if self.dtype is np.float64 else log_float(np.array([x], np.float32))[0])


def _all_alike(
    draw: _Blocks, batches: int, samples: int, mean: Any, deviation: Any, low: Any, high: Any
) -> np.ndarray | None:
    """Draws plain normals for one parameter set, many blocks at a time. Returns None if another method is needed."""
    mean, deviation, low, high = map(draw.dtype, (mean, deviation, low, high))
    if not batches * samples or not _valid(deviation, low, high):
        return None
    bottom, top, deviation = _standard_bounds(mean, deviation, low, high)
    if not _suits_plain(bottom, top):
        return None
    standard = np.empty(batches * samples, draw.dtype)
    missing, empty = batches * samples, 0
    while missing > 0:
        blocks = draw.many_normals(max(_BLOCKS_AT_ONCE, min(missing, _MOST_BLOCKS)))
        kept = (bottom <= blocks) & (blocks <= top)
        used = np.flatnonzero(kept.any(1))
        gaps = np.diff(np.concatenate([[-1 - empty], used, [len(blocks)]])) - 1
        if gaps.max() > _MOST_TRIES:
            raise _no_sample("rejection")
        empty = int(gaps[-1])
        # A batch with one sample uses the first accepted number of its block and discards the rest.
        found = blocks[used, kept[used].argmax(1)] if samples == 1 and batches > 1 else blocks[kept]
        standard[len(standard) - missing :][: len(found)] = found[:missing]
        missing -= len(found)
    standard *= deviation
    standard += mean
    return standard.reshape(batches, samples)


def _valid(deviation: np.floating, low: np.floating, high: np.floating) -> bool:
    return bool(deviation > 0 and low < high and (np.isfinite(low) or np.isfinite(high)))


def _standard_bounds(
    mean: np.floating, deviation: np.floating, low: np.floating, high: np.floating
) -> tuple[np.floating, np.floating, np.floating]:
    """The bounds in deviations from the mean, and the deviation. It is negative if they are mirrored to put the nearer one first."""
    if low == -np.inf or high < mean:
        low, high, deviation = high, low, -deviation
    return (low - mean) / deviation, (high - mean) / deviation, deviation


def _suits_plain(bottom: np.floating, top: np.floating) -> bool:
    beyond = _PLAIN_NORMALS_BEYOND
    return bool((bottom < -beyond and top >= 0) or (top > beyond and bottom <= 0))


def _numbers(
    draw: _Blocks, mean: np.floating, deviation: np.floating, low: np.floating, high: np.floating
) -> Iterator[np.floating]:
    t = draw.dtype
    bottom, top, deviation = _standard_bounds(mean, deviation, low, high)
    if _suits_plain(bottom, top):
        standard = _plain(draw, bottom, top)
    else:
        root = np.sqrt(bottom * bottom + t(4))
        limit = t(2) * draw.exp(t(0.5) + (bottom * (bottom - root)) / t(4)) / (bottom + root)
        standard = _between(draw, bottom, top) if top - bottom < limit else _tail(draw, bottom, top)
    for z in standard:
        yield z * deviation + mean


def _tries(method: str) -> Iterator[list[None]]:
    """Counts rejected rounds. The caller clears the yielded list when a sample is accepted.

    Raises:
        InternalError: too many rounds were rejected in a row.
    """
    refused: list[None] = []
    while len(refused) <= _MOST_TRIES:
        refused.append(None)
        yield refused
    raise _no_sample(method)


def _no_sample(method: str) -> InternalError:
    return InternalError(None, None, f"TruncatedNormal {method} sampler failed to accept a sample.")


def _plain(draw: _Blocks, bottom: np.floating, top: np.floating) -> Iterator[np.floating]:
    """Draws normals and rejects those outside the bounds."""
    for tries in _tries("rejection"):
        kept = [z for z in draw.normals() if bottom <= z <= top]
        if kept:
            tries.clear()
        yield from kept


def _between(draw: _Blocks, bottom: np.floating, top: np.floating) -> Iterator[np.floating]:
    """Draws uniforms between the bounds, accepted in proportion to the normal density. A second block decides on the first."""
    t = draw.dtype
    nearest = t(0) if bottom < 0 else bottom * bottom
    for tries in _tries("uniform rejection"):
        candidates = draw.uniforms() * (top - bottom) + bottom
        judges = draw.uniforms()
        for z, judge in zip(candidates, judges, strict=True):
            if judge <= draw.exp((nearest - z * z) / t(2)):
                tries.clear()
                yield z


def _tail(draw: _Blocks, bottom: np.floating, top: np.floating) -> Iterator[np.floating]:
    """Draws exponentials from the lower bound. A candidate and the number that decides on it are adjacent in a block."""
    t = draw.dtype
    rate = (bottom + np.sqrt(bottom * bottom + t(4))) / t(2)
    for tries in _tries("exponential distribution rejection"):
        block = draw.uniforms()
        for u, judge in zip(block[0::2], block[1::2], strict=True):
            z = -draw.log(u) / rate + bottom
            gap = z - rate
            if z < top and judge <= draw.exp(-gap * gap / t(2)):
                tries.clear()
                yield z
