"""Elements of `from_tensor_slices` are rows that batches gather: what comes out equals batches of elements that were made one by one."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import stoker.compat.v1 as tf

_COUNT = 23


def _arrays():
    random = np.random.RandomState(0)
    return (
        random.randn(_COUNT, 2, 3).astype("f"),
        np.arange(_COUNT),
        np.array([f"word {i}" for i in range(_COUNT)], object),
        random.rand(_COUNT) < 0.5,
        np.arange(_COUNT, dtype=np.uint16),
    )


def _batches(dataset):
    found = []
    with tf.Session() as session:
        following = tf.data.make_one_shot_iterator(dataset).get_next()
        while True:
            try:
                found.append(session.run(following))
            except tf.errors.OutOfRangeError:
                return found


def _number(parts):
    return next(part for part in parts if part.dtype == tf.int64)


def _doubled(cycle, block):
    def change(dataset):
        return dataset.interleave(lambda *parts: tf.data.Dataset.from_tensors(parts).repeat(2), cycle, block)

    return change


_STEPS = st.one_of(
    st.builds(lambda by: lambda d: d.filter(lambda *parts: _number(parts) % by > 0), st.integers(1, 4)),
    st.builds(_doubled, st.integers(1, 5), st.integers(1, 3)),
    st.builds(lambda size, seed: lambda d: d.shuffle(size, seed=seed), st.integers(1, 40), st.integers(1, 5)),
    st.builds(lambda times: lambda d: d.repeat(times), st.integers(0, 3)),
    st.builds(lambda count: lambda d: d.take(count), st.integers(0, 30)),
    st.builds(lambda count: lambda d: d.skip(count), st.integers(0, 30)),
    st.builds(lambda size: lambda d: d.prefetch(size), st.integers(1, 3)),
    st.just(lambda d: d.cache()),
    st.just(lambda d: d.concatenate(d)),
)


@settings(deadline=None, max_examples=40)
@given(st.lists(_STEPS, max_size=3), st.integers(1, 30), st.booleans())
def test_batches_of_rows(steps, size, drop):
    """Batches have the rows of the arrays, in the order that the same pipeline has without rows (its elements pass a map)."""
    with tf.Graph().as_default():
        rows = tf.data.Dataset.from_tensor_slices(_arrays())
        made = rows.map(lambda *parts: parts)
        for step in steps:
            rows, made = step(rows), step(made)
        found, expected = (_batches(each.batch(size, drop)) for each in (rows, made))
    assert len(found) == len(expected)
    for one, other in zip(found, expected):
        for a, b in zip(one, other):
            assert a.dtype == b.dtype
            np.testing.assert_array_equal(a, b)


_WORDS = np.array([" ".join(f"w{k}" for k in range(i * 5 % 7)) for i in range(300)], object)


def _parsed(number, line):
    """Components of different lengths, of several types, with and without further dimensions."""
    words = tf.string_split([line]).values
    lengths = tf.strings.length(words)
    real = tf.cast(lengths, tf.float32)
    pairs = tf.stack([real, real * 2.0], 1)
    return words, tf.cast(lengths, tf.uint16), pairs, tf.cast(real, tf.bfloat16), number


@settings(deadline=None, max_examples=20)
@given(st.lists(_STEPS, max_size=3), st.integers(1, 40), st.booleans(), st.sampled_from([-1, 6]))
def test_padded_batches_of_rows(steps, size, drop, width):
    """Elements of different lengths that were computed together make the padded batches of elements that were computed one by one."""
    shapes = ([width], [width], [width, 2], [width], [])
    padding = (b"none", np.uint16(7), 0.5, None, None)

    def alone(*parts):  # Python functions are called for one element at a time
        same = tf.py_func(lambda *given: given, parts, [part.dtype for part in parts])
        for part, like in zip(same, parts):
            part.set_shape(like.shape)
        return tuple(same)

    with tf.Graph().as_default():
        together = tf.data.Dataset.from_tensor_slices((np.arange(60), _WORDS[:60])).map(_parsed)
        single = together.map(alone)
        for step in steps:
            together, single = step(together), step(single)
        found, expected = (_batches(each.padded_batch(size, shapes, padding, drop)) for each in (together, single))
    assert len(found) == len(expected)
    for one, other in zip(found, expected):
        for a, b in zip(one, other):
            assert a.dtype == b.dtype
            np.testing.assert_array_equal(a, b)


def test_a_row_that_is_too_long_for_its_batch():
    """Rows from several stacks raise the error of single elements, and the other batches come."""
    with tf.Graph().as_default():
        data = tf.data.Dataset.from_tensor_slices((np.arange(300), _WORDS)).map(_parsed).map(lambda *parts: parts[0])
        batch = tf.data.make_one_shot_iterator(data.shuffle(300, seed=3).padded_batch(100, [5])).get_next()
        with tf.Session() as session, pytest.raises(tf.errors.DataLossError, match="smaller size"):
            session.run(batch)


@pytest.mark.parametrize("change", [lambda d: d, lambda d: d.shuffle(9, seed=1)])
def test_batches_have_memory_of_their_own(change):
    """A batch of rows that lie one behind the other is no view of the arrays."""
    array = np.zeros((8, 2), "f")
    with tf.Graph().as_default():
        (batch,) = _batches(change(tf.data.Dataset.from_tensor_slices(array)).batch(8))
    batch += 1.0
    assert not array.any()


def test_rows_are_elements_like_others():
    """Rows can be zipped, filtered, mapped, counted, windowed and taken apart."""
    with tf.Graph().as_default():
        numbers = np.arange(_COUNT)
        rows = tf.data.Dataset.from_tensor_slices((numbers, numbers * 2))
        even = rows.filter(lambda a, b: tf.equal(a % 2, 0)).map(lambda a, b: a + b)
        both = tf.data.Dataset.zip((rows, tf.data.Dataset.range(_COUNT)))
        windows = rows.window(5, drop_remainder=True).flat_map(lambda a, b: a.batch(5))
        assert _batches(even) == [3 * i for i in range(0, _COUNT, 2)]
        assert _batches(both) == [((i, 2 * i), i) for i in range(_COUNT)]
        np.testing.assert_array_equal(_batches(windows), numbers[:20].reshape(4, 5))


def test_caches_of_elements_that_have_no_common_form():
    """Elements of different ranks, and datasets, come from a cache as they went in."""

    def given():
        yield np.zeros(2)
        yield np.zeros([2, 3])
        yield np.zeros([])

    with tf.Graph().as_default():
        data = tf.data.Dataset.from_generator(given, tf.float64).cache().repeat(2)
        assert [each.shape for each in _batches(data)] == [(2,), (2, 3), ()] * 2
        windows = tf.data.Dataset.range(6).window(3).cache().repeat(2).flat_map(lambda part: part.batch(3))
        assert [each.tolist() for each in _batches(windows)] == [[0, 1, 2], [3, 4, 5]] * 2
