"""Candidate samplers: classes drawn to stand for all of them in a sampled loss, with their expected counts.

What is consumed: each try takes one 64-bit number of the stream (two to a block); the op reserves `candidate_reserve`
blocks however many tries a unique sample took.
"""

from __future__ import annotations

import ctypes
import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import torch

from stoker._src.base.errors import InvalidArgumentError
from stoker._src.ops.random_bits.fills import uniform, uniform_full_int
from stoker._src.ops.random_bits.philox import Stream


class Candidates(NamedTuple):
    """The three outputs of a candidate sampler op."""

    sampled_candidates: np.ndarray  # int64 [num_sampled]
    true_expected_count: np.ndarray  # float32, shaped as the true classes
    sampled_expected_count: np.ndarray  # float32 [num_sampled]


def candidate_reserve(num_sampled: int) -> int:
    """Blocks that a candidate sampler op moves its generator by."""
    return 512 * num_sampled


def uniform_candidates(
    stream: Stream, true_classes: np.ndarray, num_sampled: int, unique: bool, range_max: int
) -> Candidates:
    """UniformCandidateSampler: 64-bit numbers modulo `range_max`."""

    def draw(first: int, count: int) -> list[int]:
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

    def draw(first: int, count: int) -> list[int]:
        uniforms = uniform(stream, first + count, torch.float64)[first:].tolist()
        return [(int(math.exp(u * log_range)) - 1) % range_max for u in uniforms]

    def probability(classes: np.ndarray) -> np.ndarray:
        values = [math.log((k + 2.0) / (k + 1.0)) / log_range for k in classes.reshape(-1).tolist()]
        return np.array(values, np.float32).reshape(classes.shape)

    return _candidates(draw, probability, true_classes, num_sampled, unique, range_max)


def all_candidates(true_classes: np.ndarray, num_sampled: int) -> Candidates:
    """AllCandidateSampler: every class below `num_sampled`, once. Draws nothing."""
    _check_range(true_classes, num_sampled)
    return Candidates(
        np.arange(num_sampled, dtype=np.int64),
        np.ones(true_classes.shape, np.float32),
        np.ones(num_sampled, np.float32),
    )


def accidental_hits(true_classes: np.ndarray, sampled: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """ComputeAccidentalHits: where a sampled class is one of a row's true classes.

    Returns:
        Rows (int32), places among the sampled candidates (int64; the last, where a class was drawn more than once) and
        the weights that remove such candidates from a softmax (float32, the lowest finite number).
    """
    place = {candidate: at for at, candidate in enumerate(sampled.tolist())}
    hits = [(row, place[k]) for row, classes in enumerate(true_classes.tolist()) for k in classes if k in place]
    rows, places = np.array(hits, np.int64).reshape(-1, 2).T
    weights = np.full(len(hits), np.finfo(np.float32).min, np.float32)
    return rows.astype(np.int32), np.ascontiguousarray(places), weights


def _candidates(
    draw: Callable[[int, int], list[int]],
    probability: Callable[[np.ndarray], np.ndarray],
    true_classes: np.ndarray,
    num_sampled: int,
    unique: bool,
    range_max: int,
) -> Candidates:
    if range_max < 1:
        raise InvalidArgumentError(None, None, f"range_max must be at least 1, got {range_max}")
    if unique and num_sampled > range_max:
        raise InvalidArgumentError(
            None, None, f"Sampler's range is too small: {num_sampled} unique candidates of {range_max} classes."
        )
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


def _check_range(true_classes: np.ndarray, range_max: int) -> None:
    outside = true_classes[(true_classes < 0) | (true_classes >= range_max)]
    if outside.size:
        raise InvalidArgumentError(
            None, None, f"`true_candidate` out of range [0, {range_max}), received {outside.reshape(-1)[0]}"
        )


def _distinct(draw: Callable[[int, int], list[int]], wanted: int) -> tuple[list[int], int]:
    """The first `wanted` different classes in the order drawn, and how many draws that took."""
    chosen: dict[int, None] = {}
    tries = 0
    while len(chosen) < wanted:
        for candidate in draw(tries, max(wanted, tries)):
            tries += 1
            chosen.setdefault(candidate)
            if len(chosen) == wanted:
                break
    return list(chosen), tries


def _expected_count(probability: np.ndarray, num_sampled: int, tries: int) -> np.ndarray:
    """How often a class is expected in the sample; with rejected tries, how likely it is in it at all."""
    if tries == num_sampled:
        return probability * np.float32(num_sampled)
    values = [-_EXPM1(float(np.float32(tries) * np.float32(_LOG1P(-p)))) for p in probability.reshape(-1).tolist()]
    return np.array(values, np.float32).reshape(probability.shape)


def _c_float_function(name: str, exact: Callable[[float], float]) -> Callable[[float], float]:
    """The C library's float32 function, whose last bit TensorFlow's counts have; else the exact one, rounded."""
    try:
        function = getattr(ctypes.CDLL(None), name)
    except (AttributeError, OSError, TypeError):  # a platform that does not show the C library to the process
        return lambda x: float(np.float32(exact(x)))
    function.restype = ctypes.c_float
    function.argtypes = [ctypes.c_float]
    return function


_LOG1P = _c_float_function("log1pf", math.log1p)
_EXPM1 = _c_float_function("expm1f", math.expm1)
