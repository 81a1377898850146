"""Candidate samplers draw TensorFlow's classes and give its expected counts, bit for bit."""

from unittest import mock

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from random_golden import SEED, SEED2, assert_same_bits

from stoker._src.base.errors import InvalidArgumentError
from stoker._src.ops.random.bits import candidates, native
from stoker._src.ops.random.bits.philox import PhiloxState, Stream

TRUE_CLASSES = np.array([[3, 70], [0, 5]], np.int64)
SAMPLERS = {"uniform": candidates.uniform_candidates, "log_uniform": candidates.log_uniform_candidates}
PARTS = ("sampled_candidates", "true_expected_count", "sampled_expected_count")


@pytest.mark.parametrize("unique", [False, True])
@pytest.mark.parametrize("name", SAMPLERS)
@pytest.mark.parametrize("count, range_max", [(1, 2**40), (7, 100), (40, 100), (100, 100), (500, 10**6)])
def test_samplers(twin, name, unique, count, range_max):
    """Classes and counts of three executions, with and without repetition."""
    state = PhiloxState(SEED, SEED2)
    for execution in range(3):
        stream = state.reserve(candidates.candidate_reserve(count))
        outputs = SAMPLERS[name](stream, TRUE_CLASSES, count, unique, range_max)
        for part in PARTS:
            key = f"candidates/{name}/{int(unique)}/{count}/{range_max}/{part}/{execution}"
            assert_same_bits(getattr(outputs, part), key)


GROWING = [k + 1.0 for k in range(18)]
FIXED = {
    "plain": (candidates.UnigramTable([1.0, 2.0, 3.0, 4.0, 5.0, 6.0], 0.75), 6),
    "reserved": (candidates.UnigramTable([5.0, 1.0, 9.0, 0.5], num_reserved_ids=2), 6),
    "shard": (candidates.UnigramTable(GROWING, num_reserved_ids=2, num_shards=2, shard=1), 10),
    "third": (candidates.UnigramTable(GROWING, num_reserved_ids=1, num_shards=3, shard=2), 6),
    "long": (candidates.UnigramTable([1e6 / (k + 1) for k in range(1000)], 0.75), 1000),
}


@pytest.mark.parametrize("unique", [False, True])
@pytest.mark.parametrize("name", FIXED)
def test_fixed_unigrams(twin, name, unique):
    """Weighted classes: with a distortion, with reserved ones, of a shard, of a long vocabulary."""
    table, range_max = FIXED[name]
    count = 4 if unique else 50
    state = PhiloxState(SEED, SEED2)
    for execution in range(3):
        stream = state.reserve(candidates.candidate_reserve(count))
        outputs = candidates.fixed_unigram_candidates(stream, TRUE_CLASSES % 6, count, unique, range_max, table)
        for part in PARTS:
            assert_same_bits(getattr(outputs, part), f"candidates/fixed/{name}/{int(unique)}/{part}/{execution}")


def test_accidental_hits(twin):
    """One hit for each true class that was sampled, at the last place it was."""
    rows, places, weights = candidates.accidental_hits(TRUE_CLASSES, np.array([5, 3, 9, 70, 5, 0]))
    assert_same_bits(rows, "hits/indices")
    assert_same_bits(places, "hits/ids")
    assert_same_bits(weights, "hits/weights")
    rows, places, weights = candidates.accidental_hits(TRUE_CLASSES, np.array([1, 2]))
    assert rows.shape == places.shape == weights.shape == (0,)


@pytest.mark.skipif(native.compiled is None, reason="the compiled module was not built")
@settings(deadline=None, max_examples=60)
@given(
    st.sampled_from(sorted(SAMPLERS)),
    st.integers(1, 60),
    st.integers(0, 200),
    st.booleans(),
    st.lists(st.integers(0, 10**6), max_size=12),
    st.integers(1, 3),
)
def test_compiled_candidates_equal_their_twins(name, count, more, unique, targets, width):
    """Classes, counts and accidental hits are the same, bit by bit, compiled and in Python, for any numbers of classes and targets."""
    range_max = count + more
    known = np.array(targets[: len(targets) // width * width], np.int64).reshape(-1, width) % range_max

    def results():
        drawn = SAMPLERS[name](Stream(3, 4), known, count, unique, range_max)
        return [*drawn, *candidates.accidental_hits(known, drawn.sampled_candidates)]

    compiled = results()
    with mock.patch.object(native, "compiled", None):
        plain = results()
    for one, other in zip(compiled, plain, strict=True):
        assert one.dtype == other.dtype
        np.testing.assert_array_equal(one, other)


def test_all_candidates():
    """Every class once, with a count of one."""
    outputs = candidates.all_candidates(TRUE_CLASSES % 10, 10)
    assert outputs.sampled_candidates.tolist() == list(range(10))
    assert outputs.true_expected_count.tolist() == [[1.0, 1.0], [1.0, 1.0]]
    assert outputs.sampled_expected_count.tolist() == [1.0] * 10


def test_bad_requests_are_refused():
    """More unique classes than there are, or a true class outside the range."""
    stream = Stream(1, 2)
    with pytest.raises(InvalidArgumentError, match="range is too small: 101 unique candidates of 100"):
        candidates.uniform_candidates(stream, TRUE_CLASSES, 101, True, 100)
    with pytest.raises(InvalidArgumentError, match=r"out of range \[0, 60\), received 70"):
        candidates.log_uniform_candidates(stream, TRUE_CLASSES, 3, False, 60)
    with pytest.raises(InvalidArgumentError, match=r"out of range \[0, 10\), received 70"):
        candidates.all_candidates(TRUE_CLASSES, 10)
    with pytest.raises(InvalidArgumentError, match="at least 1, got 0"):
        candidates.uniform_candidates(stream, TRUE_CLASSES, 1, False, 0)
    with pytest.raises(InvalidArgumentError, match="range is 7 must be equal to weights size  6"):
        candidates.fixed_unigram_candidates(stream, TRUE_CLASSES, 1, False, 7, FIXED["plain"][0])
    with pytest.raises(InvalidArgumentError, match="no 2 unique candidates"):
        table = candidates.UnigramTable([1.0, 0.0])
        candidates.fixed_unigram_candidates(stream, TRUE_CLASSES % 2, 2, True, 2, table)
    with pytest.raises(InvalidArgumentError, match=r"shard must be in \[0, 2\), got 2"):
        candidates.UnigramTable([1.0, 2.0], num_shards=2, shard=2)
    with pytest.raises(InvalidArgumentError, match="no class has a positive weight"):
        candidates.UnigramTable([], num_reserved_ids=3)


def test_classes_that_are_hardly_ever_drawn():
    """A unique sample goes on until it has its classes."""
    stream = Stream.from_seeds(SEED, SEED2)
    none = np.zeros((1, 1), np.int64)
    heavy = candidates.UnigramTable([1.0, 2.0, 1e5])
    found = candidates.fixed_unigram_candidates(stream, none, 3, True, 3, heavy)
    assert sorted(found.sampled_candidates.tolist()) == [0, 1, 2]
