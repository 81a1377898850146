"""Candidate samplers: classes drawn for a sampled loss, with their expected counts.

Consumption: each try takes one 64-bit number of the stream (two per block). The op reserves `candidate_reserve`
blocks, regardless of the number of tries for a unique sample.
"""

from __future__ import annotations

import ctypes
import math
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
import torch

from stoker._src.base import forking
from stoker._src.base.errors import InvalidArgumentError
from stoker._src.ops.random.bits import native
from stoker._src.ops.random.bits.fills import uniform, uniform_full_int
from stoker._src.ops.random.bits.philox import Stream, bits

_MOST_AT_ONCE = 2**20
_LOWEST = np.finfo(np.float32).min
Draws = Sequence[int] | np.ndarray


class Candidates(NamedTuple):
    """The three outputs of a candidate sampler op."""

    sampled_candidates: np.ndarray  # int64 [num_sampled]
    true_expected_count: np.ndarray  # float32, with the shape of the true classes
    sampled_expected_count: np.ndarray  # float32 [num_sampled]


def candidate_reserve(num_sampled: int) -> int:
    """The number of blocks by which a candidate sampler op advances its generator."""
    return 512 * num_sampled


def uniform_candidates(
    stream: Stream, true_classes: np.ndarray, num_sampled: int, unique: bool, range_max: int
) -> Candidates:
    """UniformCandidateSampler: 64-bit numbers modulo `range_max`."""
    if native.compiled is not None:
        return _compiled_candidates(stream, true_classes, num_sampled, unique, range_max, 0.0)

    def draw(first: int, count: int) -> Draws:
        words = uniform_full_int(stream, first + count, torch.uint64).numpy()[first:]
        return (words % np.uint64(range_max)).tolist()

    def probability(classes: np.ndarray) -> np.ndarray:
        return np.full(classes.shape, np.float32(1.0) / np.float32(range_max), np.float32)

    return _candidates(draw, probability, true_classes, num_sampled, unique, range_max)


def log_uniform_candidates(
    stream: Stream, true_classes: np.ndarray, num_sampled: int, unique: bool, range_max: int
) -> Candidates:
    """LogUniformCandidateSampler: P(k) = log((k + 2) / (k + 1)) / log(range_max + 1), by inversion."""
    log_range = math.log1p(range_max)
    if native.compiled is not None:
        return _compiled_candidates(stream, true_classes, num_sampled, unique, range_max, log_range)

    def draw(first: int, count: int) -> Draws:
        uniforms = uniform(stream, first + count, torch.float64)[first:].tolist()
        return [(int(math.exp(u * log_range)) - 1) % range_max for u in uniforms]

    def probability(classes: np.ndarray) -> np.ndarray:
        values = [math.log((k + 2.0) / (k + 1.0)) / log_range for k in classes.reshape(-1).tolist()]
        return np.array(values, np.float32).reshape(classes.shape)

    return _candidates(draw, probability, true_classes, num_sampled, unique, range_max)


class UnigramTable:
    """Draws classes in proportion to their weights, with Walker's alias table, for FixedUnigramCandidateSampler.

    Entry i gives class i with probability `_keep[i]`, and otherwise class `_other[i]`.

    Args:
        unigrams: a weight for each class after the reserved ones (the last column of a vocabulary file, or the attr).
        distortion: the exponent applied to the weights.
        num_reserved_ids: the number of classes before the first one with a weight. They are never drawn.
        num_shards: the number of samplers that share the classes. Each keeps every `num_shards`-th class and renumbers them.
        shard: the index of this sampler.
    """

    def __init__(
        self,
        unigrams: Sequence[float],
        distortion: float = 1.0,
        num_reserved_ids: int = 0,
        num_shards: int = 1,
        shard: int = 0,
    ) -> None:
        if not 0 <= shard < num_shards:
            raise InvalidArgumentError(None, None, f"shard must be in [0, {num_shards}), got {shard}")
        reserved = len(range(shard, num_reserved_ids, num_shards))
        # TensorFlow's offset counts only the reserved classes that this shard keeps, not all of them.
        kept = unigrams[(shard - reserved) % num_shards :: num_shards]
        powers = [0.0] * reserved + [_POW(float(np.float32(weight)), distortion) for weight in kept]
        self.weights = np.array(powers, np.float32)
        # Summed sequentially in float32, like the denominators of the counts.
        self.total = np.add.accumulate(self.weights, dtype=np.float32)[-1] if self.weights.size else np.float32(0)
        if not self.total > 0:
            raise InvalidArgumentError(None, None, "FixedUnigramCandidateSampler: no class has a positive weight.")
        self._keep, self._other = map(np.array, self._alias_table(self.weights.tolist()))

    @staticmethod
    def _alias_table(weights: list[float]) -> tuple[list[float], list[int]]:
        size, total = len(weights), math.fsum(weights)
        keep = [weight * size / total for weight in weights]
        other = list(range(size))
        low = [place for place in range(size) if keep[place] < 1.0]
        high = [place for place in range(size) if keep[place] >= 1.0]
        while low and high:  # takes the last of each list, because the order determines which classes share an entry
            small, large = low.pop(), high.pop()
            other[small] = large
            keep[large] -= 1.0 - keep[small]
            (low if keep[large] < 1.0 else high).append(large)
        for place in low:  # rounding errors left these slightly below one
            keep[place] = 1.0
        return keep, other

    def draw(self, stream: Stream, first: int, count: int) -> np.ndarray:
        """The draws from `first` to `first + count`. Each uses a word to choose between the two classes and one for the entry."""
        skipped, odd = divmod(first, 2)
        words = bits(stream.skip(skipped), 2 * (count + odd))[2 * odd :]
        decisions = uniform(stream.skip(skipped), 2 * (count + odd), torch.float32).numpy()[2 * odd :: 2]
        places = words[1::2] % np.uint32(len(self._keep))
        return np.where(decisions < self._keep[places], places, self._other[places])


def fixed_unigram_candidates(
    stream: Stream, true_classes: np.ndarray, num_sampled: int, unique: bool, range_max: int, table: UnigramTable
) -> Candidates:
    """FixedUnigramCandidateSampler: draws classes in proportion to given weights. `table` is built once per op."""
    if table.weights.size != range_max:
        raise InvalidArgumentError(
            None, None, f"range is {range_max} must be equal to weights size  {table.weights.size}"
        )
    if unique and np.count_nonzero(table.weights) < num_sampled:  # TensorFlow loops forever here
        raise InvalidArgumentError(
            None, None, f"Fewer than {num_sampled} classes have a weight: there are no {num_sampled} unique candidates."
        )

    def draw(first: int, count: int) -> Draws:
        return table.draw(stream, first, count)

    def probability(classes: np.ndarray) -> np.ndarray:
        return table.weights[classes] / table.total

    return _candidates(draw, probability, true_classes, num_sampled, unique, range_max)


class LearnedUnigrams:
    """Counts how often each class was a true class, starting from 1, as weights for the learning samplers. Thread-safe."""

    def __init__(self, range_max: int) -> None:
        self._lock = forking.lock()
        self._weights = np.ones(range_max, np.int64)

    def candidates(self, stream: Stream, true_classes: np.ndarray, num_sampled: int, unique: bool) -> Candidates:
        """LearnedUnigramCandidateSampler: 32-bit numbers modulo the sum of the weights. Afterwards counts the true classes."""
        with self._lock:
            weights, ends = self._weights, np.cumsum(self._weights)

            def draw(first: int, count: int) -> Draws:
                words = bits(stream, first + count)[first:].astype(np.int64)
                return np.searchsorted(ends, words % ends[-1], side="right").tolist()

            def probability(classes: np.ndarray) -> np.ndarray:
                return weights[classes].astype(np.float32) / np.float32(ends[-1])

            drawn = _candidates(draw, probability, true_classes, num_sampled, unique, weights.size)
            np.add.at(weights, true_classes.reshape(-1), 1)
        return drawn


def all_candidates(true_classes: np.ndarray, num_sampled: int) -> Candidates:
    """AllCandidateSampler: every class below `num_sampled`, once. Draws nothing."""
    _check_range(true_classes, num_sampled)
    return Candidates(
        np.arange(num_sampled, dtype=np.int64),
        np.ones(true_classes.shape, np.float32),
        np.ones(num_sampled, np.float32),
    )


def accidental_hits(true_classes: np.ndarray, sampled: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """ComputeAccidentalHits: finds sampled classes that are among a row's true classes.

    Returns:
        Rows (int32), positions among the sampled candidates (int64; the last one if a class was drawn more than once), and
        the weights that remove such candidates from a softmax (float32, the lowest finite number).
    """
    if native.compiled is not None and true_classes.shape[1]:
        rows, places = np.empty(true_classes.size, np.int32), np.empty(true_classes.size, np.int64)
        targets, drawn = np.ascontiguousarray(true_classes, np.int64), np.ascontiguousarray(sampled, np.int64)
        found = native.compiled.find_hits(rows, places, targets, true_classes.shape[1], drawn)
        return rows[:found], places[:found], np.full(found, _LOWEST, np.float32)
    place = {candidate: at for at, candidate in enumerate(sampled.tolist())}
    hits = [(row, place[k]) for row, classes in enumerate(true_classes.tolist()) for k in classes if k in place]
    rows, places = np.array(hits, np.int64).reshape(-1, 2).T
    weights = np.full(len(hits), _LOWEST, np.float32)
    return rows.astype(np.int32), np.ascontiguousarray(places), weights


def _compiled_candidates(
    stream: Stream, true_classes: np.ndarray, num_sampled: int, unique: bool, range_max: int, log_range: float
) -> Candidates:
    """Draws classes with equal probabilities or, if `log_range` is not zero, by Zipf's law."""
    _check_size(num_sampled, unique, range_max)
    sampled, counts = np.empty(num_sampled, np.int64), np.empty(num_sampled, np.float32)
    targets, target_counts = np.ascontiguousarray(true_classes, np.int64), np.empty(true_classes.shape, np.float32)
    outside = native.compiled.sample_candidates(
        sampled, counts, targets, target_counts, *stream.words, unique, range_max, log_range
    )
    if outside >= 0:
        _check_range(true_classes, range_max)
    return Candidates(sampled, target_counts, counts)


def _candidates(
    draw: Callable[[int, int], Draws],
    probability: Callable[[np.ndarray], np.ndarray],
    true_classes: np.ndarray,
    num_sampled: int,
    unique: bool,
    range_max: int,
) -> Candidates:
    _check_size(num_sampled, unique, range_max)
    _check_range(true_classes, range_max)
    if unique:
        chosen, tries = _distinct(draw, num_sampled)
    else:
        chosen, tries = draw(0, num_sampled), num_sampled
    sampled = np.array(chosen, np.int64)
    return Candidates(
        sampled,
        _expected_count(probability(true_classes), num_sampled, tries),
        _expected_count(probability(sampled), num_sampled, tries),
    )


def _check_size(num_sampled: int, unique: bool, range_max: int) -> None:
    if range_max < 1:
        raise InvalidArgumentError(None, None, f"range_max must be at least 1, got {range_max}")
    if unique and num_sampled > range_max:
        raise InvalidArgumentError(
            None, None, f"Sampler's range is too small: {num_sampled} unique candidates of {range_max} classes."
        )


def _check_range(true_classes: np.ndarray, range_max: int) -> None:
    outside = true_classes[(true_classes < 0) | (true_classes >= range_max)]
    if outside.size:
        raise InvalidArgumentError(
            None, None, f"`true_candidate` out of range [0, {range_max}), received {outside.reshape(-1)[0]}"
        )


def _distinct(draw: Callable[[int, int], Draws], wanted: int) -> tuple[list[int], int]:
    """The first `wanted` distinct classes in the order drawn, and the number of draws they took."""
    chosen: dict[int, None] = {}
    tries = 0
    while len(chosen) < wanted:
        drawn = draw(tries, max(wanted, min(tries, _MOST_AT_ONCE)))
        for candidate in drawn.tolist() if isinstance(drawn, np.ndarray) else drawn:
            tries += 1
            chosen[candidate] = None
            if len(chosen) == wanted:
                break
    return list(chosen), tries


def _expected_count(probability: np.ndarray, num_sampled: int, tries: int) -> np.ndarray:
    """The expected count of a class in the sample or, if tries were rejected, the probability that the sample contains it."""
    if tries == num_sampled:
        return probability * np.float32(num_sampled)
    if native.compiled is not None:
        result = np.empty(probability.shape, np.float32)
        native.compiled.fill_expected_counts(result, np.ascontiguousarray(probability, np.float32), float(tries))
        return result
    values = [-_EXPM1(float(np.float32(tries) * np.float32(_LOG1P(-p)))) for p in probability.reshape(-1).tolist()]
    return np.array(values, np.float32).reshape(probability.shape)


def _c_float_function(name: str, exact: Callable[..., float], arguments: int = 1) -> Callable[..., float]:
    """The C library's float32 function, which TensorFlow's counts match to the last bit; if unavailable, `exact`, rounded."""
    try:
        function = getattr(ctypes.CDLL(None), name)
    except (AttributeError, OSError, TypeError):  # the platform does not expose the C library
        return lambda *x: float(np.float32(exact(*x)))
    function.restype = ctypes.c_float
    function.argtypes = [ctypes.c_float] * arguments
    return function


_LOG1P = _c_float_function("log1pf", math.log1p)
_EXPM1 = _c_float_function("expm1f", math.expm1)
_POW = _c_float_function("powf", math.pow, 2)
