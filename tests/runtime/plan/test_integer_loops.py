"""Integers inside of fused loops: indices, places, segments and arithmetic, with the values and errors of the ops' own kernels."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import stoker.compat.v1 as tf
from stoker._src.runtime.plan import fused_loops

pytestmark = pytest.mark.skipif(fused_loops.native is None, reason="the extension was not built")
INTEGERS = st.sampled_from([np.int32, np.int64])


def _run(make, *values):
    """(results, plan) of a step whose feeds have known shapes."""
    with tf.Graph().as_default(), tf.Session() as session:
        feeds = [tf.placeholder(value.dtype, value.shape) for value in values]
        fetches = make(*feeds)
        fed = dict(zip(feeds, values))
        return session.run(fetches, fed), session.explain(fetches, fed)


def _kernels_in(plan):
    """The types of the ops that run by their own kernels."""
    return {line.split("= ")[1].split("(")[0].split("_")[0] for line in plan.splitlines() if "= " in line} - {"fused"}


@settings(deadline=None, max_examples=40)
@given(
    st.integers(1, 9),
    st.integers(1, 6),
    st.lists(st.integers(0, 8), min_size=1, max_size=12),
    INTEGERS,
    st.integers(0, 99),
)
def test_gathered_rows_and_their_sums(rows, width, ids, dtype, seed):
    """Rows of a table, and the sum, largest and least of each segment, as in NumPy; rows with negative ids are left out."""
    ids = np.array(ids, dtype) % rows
    random = np.random.RandomState(seed)
    table, left_out = random.randn(rows, width).astype("f"), random.rand(len(ids)) < 0.2

    def make(table, ids, segments):
        taken = tf.gather(tf.tanh(table), ids) * 2.0
        reductions = tf.math.unsorted_segment_sum, tf.math.unsorted_segment_max, tf.math.unsorted_segment_min
        return [taken, *[each(taken, segments, rows) for each in reductions]]

    segments = np.where(left_out, dtype(-1), ids)
    (taken, total, most, least), plan = _run(make, table, ids, segments)
    assert not _kernels_in(plan)
    expected = np.tanh(table)[ids] * 2
    np.testing.assert_allclose(taken, expected, rtol=1e-5)
    for at in range(rows):
        members = taken[segments == at]
        np.testing.assert_allclose(total[at], members.sum(0), rtol=1e-5, atol=1e-6)
        np.testing.assert_array_equal(most[at], members.max(0) if len(members) else np.finfo("f").min)
        np.testing.assert_array_equal(least[at], members.min(0) if len(members) else np.finfo("f").max)


@settings(deadline=None, max_examples=40)
@given(st.integers(1, 4), st.integers(1, 30), st.integers(1, 5), st.integers(0, 2), INTEGERS, st.integers(0, 99))
def test_places_of_the_largest_elements(outer, columns, inner, axis, dtype, seed):
    """argmax and argmin along any axis give the first of equal elements, and never a NaN if there is a number."""
    x = np.random.RandomState(seed).randint(-3, 4, (outer, columns, inner)).astype("f")
    x.flat[:: 7 + seed] = np.nan

    def make(x):
        return [find(x + tf.tanh(x) * 0.0, axis, output_type=dtype) for find in (tf.argmax, tf.argmin)]

    (largest, least), plan = _run(make, x)
    assert not _kernels_in(plan)
    assert largest.dtype == least.dtype == dtype
    np.testing.assert_array_equal(largest, np.argmax(np.where(np.isnan(x), -np.inf, x), axis))
    np.testing.assert_array_equal(least, np.argmin(np.where(np.isnan(x), np.inf, x), axis))


@settings(deadline=None, max_examples=40)
@given(st.integers(1, 4), st.integers(1, 40), st.data(), st.integers(0, 99))
def test_the_largest_elements_in_order(rows, columns, data, seed):
    """top_k gives decreasing elements; of equal ones the first comes first. What follows from their places is computed with them."""
    k = data.draw(st.integers(1, columns))
    x = np.random.RandomState(seed).randint(-5, 6, (rows, columns)).astype("f")

    def make(x):
        values, places = tf.nn.top_k(tf.nn.relu(x) - tf.nn.relu(-x), k)
        return [values, places, places // 3, places % 3, places * places - 7, tf.cast(places, tf.float32) * 0.5]

    found, plan = _run(make, x)
    assert not _kernels_in(plan)
    places = np.argsort(-x, 1, kind="stable")[:, :k]
    expected = [np.take_along_axis(x, places, 1), places, places // 3, places % 3, places * places - 7, places * 0.5]
    for one, other in zip(found, expected):
        np.testing.assert_array_equal(one, other.astype(one.dtype))


@settings(deadline=None, max_examples=30)
@given(INTEGERS, st.integers(0, 99))
def test_integers_are_moved_compared_and_chosen(dtype, seed):
    """Reshapes, slices, concatenations, comparisons and selections of integers that loops have made."""
    x = np.random.RandomState(seed).randn(4, 6).astype("f")

    def make(x):
        at = tf.argmax(tf.tanh(x), 1, output_type=dtype)
        other = tf.argmin(tf.tanh(x), 1, output_type=dtype)
        both = tf.concat([tf.reshape(at, [2, 2]), tf.expand_dims(other[1:3], 1)], 1)
        wins = tf.logical_or(at < other, tf.equal(at, 5))
        return [both, tf.where(wins, at, other), tf.transpose(both), tf.maximum(at, other), tf.cast(wins, dtype)]

    found, plan = _run(make, x)
    assert "ArgMax" not in _kernels_in(plan)
    at, other = np.argmax(x, 1).astype(dtype), np.argmin(x, 1).astype(dtype)
    both = np.concatenate([at.reshape(2, 2), other[1:3, None]], 1)
    wins = (at < other) | (at == 5)
    expected = [both, np.where(wins, at, other), both.T, np.maximum(at, other), wins]
    for one, value in zip(found, expected):
        assert one.dtype == dtype
        np.testing.assert_array_equal(one, value.astype(dtype))


@pytest.mark.parametrize("depth", [1, 2, 3])
def test_elements_at_indices(depth):
    """gather_nd takes parts of a table at indices of one to all of its dimensions."""
    table = np.random.RandomState(0).randn(3, 4, 5).astype("f")
    at = np.stack([np.random.RandomState(i).randint(0, 3, (2, 6)) for i in range(depth)], -1).astype(np.int32)
    found, plan = _run(lambda table, at: tf.tanh(tf.gather_nd(table, at)), table, at)
    assert not _kernels_in(plan)
    np.testing.assert_allclose(found, np.tanh(table[tuple(np.moveaxis(at, -1, 0))]), rtol=1e-5)


@pytest.mark.parametrize("bad", [-1, 3, 2**33])
def test_indices_out_of_range_are_reported(bad):
    """The error is that of the op that looks up, whether or not the index fits into 32 bits."""
    with pytest.raises(tf.errors.InvalidArgumentError, match=rf"{bad} is not in \[0, 3\)") as caught:
        _run(
            lambda table, at: tf.gather(tf.tanh(table), at, name="found") + 1.0,
            np.zeros((3, 2), "f"),
            np.array([0, bad], np.int64),
        )
    assert caught.value.op.name == "found"
    with pytest.raises(tf.errors.InvalidArgumentError, match="out of range"):
        _run(
            lambda data, at: tf.math.unsorted_segment_sum(tf.tanh(data), at, 3) + 1.0,
            np.zeros((2, 2), "f"),
            np.array([0, abs(bad) + 2], np.int64),
        )


@pytest.mark.parametrize("ids", [[[0, 2], [-1, 5]], [3]])
@pytest.mark.parametrize("values", [{}, {"on_value": 2.5, "off_value": -1.0}])
def test_one_hot_vectors(ids, values):
    """Vectors with one element that is different, or none if the index is out of range."""
    ids = np.array(ids, np.int64)
    found, plan = _run(lambda ids: tf.tanh(tf.one_hot(ids, 4, **values)), ids)
    assert not _kernels_in(plan)
    hits = ids[..., None] == np.arange(4)
    np.testing.assert_allclose(found, np.tanh(np.where(hits, *(values.values() or (1.0, 0.0)))), rtol=1e-5)


def test_the_largest_elements_beside_nan():
    """top_k of rows with NaN is that of the op's own kernel."""
    x = np.array([[1, np.nan, 3, 2]], "f")
    (found, places), _ = _run(lambda x: tf.nn.top_k(x * 2.0 - x, 2), x)
    (alone, others), _ = _run(lambda x: tf.nn.top_k(x, 2), x)
    np.testing.assert_array_equal(found, alone)
    np.testing.assert_array_equal(places, others)


def test_a_loop_that_chooses_by_places():
    """A search with a beam, whose states, words and histories follow from places, gives NumPy's result."""
    beams, words, steps = 3, 7, 6
    random = np.random.RandomState(1)
    table, start = random.randn(words, words).astype("f"), random.randn(beams, words).astype("f")

    def make(table, start):
        def body(i, state, scores, history):
            total = tf.reshape(tf.expand_dims(scores, 1) + tf.nn.log_softmax(state), [-1])
            scores, best = tf.nn.top_k(total, beams)
            parents, chosen = best // words, best % words
            history = tf.concat([tf.gather(history, parents)[:, 1:], tf.expand_dims(chosen, 1)], 1)
            return i + 1, tf.tanh(tf.gather(state, parents)) + tf.gather(table, chosen), scores, history

        first = [0, start, tf.constant([0.0, -1.0, -2.0]), tf.zeros([beams, steps], tf.int32)]
        return tf.while_loop(lambda i, *_: i < steps, body, first)[2:]

    (scores, history), _ = _run(make, table, start)
    state, expected, past = start.astype("d"), np.array([0.0, -1, -2]), np.zeros((beams, steps), int)
    for _ in range(steps):
        logits = state - np.log(np.exp(state).sum(1, keepdims=True))
        total = (expected[:, None] + logits).ravel()
        best = np.argsort(-total, kind="stable")[:beams]
        expected, parents, chosen = total[best], best // words, best % words
        past = np.concatenate([past[parents][:, 1:], chosen[:, None]], 1)
        state = np.tanh(state[parents]) + table[chosen]
    np.testing.assert_allclose(scores, expected, rtol=1e-4)
    np.testing.assert_array_equal(history, past)
