"""Rows of large tables: the native pass gives what NumPy gives, whatever the dtypes, sizes and repeated indices."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import stoker.compat.v1 as tf
from stoker._src.ops.support import table_rows

INTEGERS = st.sampled_from([np.int32, np.int64])
needs_extension = pytest.mark.skipif(table_rows._native is None, reason="the extension is not built")


@given(st.lists(st.integers(-5, 9), max_size=60), INTEGERS, INTEGERS)
@settings(deadline=None, max_examples=100)
def test_unique_keeps_the_order_of_appearance(values, kind, places_kind):
    """Distinct numbers come in the order in which they first appear, with places and counts that rebuild the input."""
    x = np.array(values, kind)
    with tf.Graph().as_default(), tf.Session() as session:
        y, places, counts = session.run(tf.unique_with_counts(tf.constant(x), tf.as_dtype(places_kind)))
    assert y.tolist() == list(dict.fromkeys(values))
    assert places.dtype == places_kind
    assert y.dtype == kind
    np.testing.assert_array_equal(y[places], x)
    np.testing.assert_array_equal(counts, [values.count(each) for each in y])


@given(st.integers(1, 40), st.integers(0, 5), st.lists(st.integers(0, 10**6), max_size=80), INTEGERS, st.booleans())
@settings(deadline=None, max_examples=100)
def test_rows_are_gathered_and_added(size, width, places, kind, double):
    """Gathered rows are the table's; added and subtracted rows add up, also where a row is named again and again."""
    indices = np.array(places, kind) % size
    table = np.arange(size * width, dtype=np.float64 if double else np.float32).reshape(size, width)
    updates = np.arange(len(places) * width, dtype=table.dtype).reshape(len(places), width)
    with tf.Graph().as_default(), tf.Session() as session:
        for change, sign in ((tf.scatter_add, 1), (tf.scatter_sub, -1)):
            variable = tf.Variable(table)
            session.run(variable.initializer)
            np.testing.assert_array_equal(session.run(tf.gather(variable, indices)), table[indices])
            expected = table.copy()
            np.add.at(expected, indices, sign * updates)
            np.testing.assert_array_equal(session.run(change(variable, indices, updates)), expected)
        summed = np.zeros_like(table)
        np.add.at(summed, indices, updates)
        np.testing.assert_array_equal(session.run(tf.unsorted_segment_sum(updates, indices, size)), summed)


@needs_extension
@pytest.mark.parametrize("threads", [1, 2, 5])
def test_the_number_of_threads_changes_nothing(threads):
    """Large sums are shared among threads by rows, so each row is added up in the order of the indices."""
    generator = np.random.default_rng(0)
    indices = torch.from_numpy(generator.integers(0, 50, 5000))
    rows = torch.from_numpy(generator.standard_normal((5000, 40)).astype(np.float32))
    before = torch.get_num_threads()
    try:
        torch.set_num_threads(1)
        one = torch.zeros(50, 40)
        assert table_rows.add(one, indices, rows)
        torch.set_num_threads(threads)
        many = torch.zeros(50, 40)
        assert table_rows.add(many, indices, rows)
        gathered = table_rows.gather(rows, indices)
    finally:
        torch.set_num_threads(before)
    assert torch.equal(one, many)
    assert torch.equal(gathered, rows[indices])


@needs_extension
@pytest.mark.parametrize("bad", [-1, 7, 2**40, -(2**40)])
def test_an_index_outside_changes_nothing(bad):
    """All indices are checked before the first row is written."""
    table, indices, rows = torch.ones(7, 2), torch.tensor([0, 3, bad, 2]), torch.ones(4, 2)
    assert not table_rows.add(table, indices, rows)
    assert torch.equal(table, torch.ones(7, 2))
    assert table_rows.gather(table, indices) is None
    assert not table_rows.all_distinct(indices, 7)


@needs_extension
def test_repeated_indices_are_found():
    """Distinct indices are told from those that repeat."""
    assert table_rows.all_distinct(torch.tensor([4, 0, 3]), 5)
    assert not table_rows.all_distinct(torch.tensor([4, 0, 4]), 5)
    assert table_rows.all_distinct(torch.tensor([], dtype=torch.int64), 5)


def test_negative_segments_are_dropped():
    """Rows of negative segments do not count; segments past the end are refused."""
    with tf.Graph().as_default(), tf.Session() as session:
        assert session.run(tf.unsorted_segment_sum([1.0, 2.0, 4.0], [1, -1, 1], 2)).tolist() == [0.0, 5.0]
        ids = tf.placeholder(tf.int32, [3])
        with pytest.raises(tf.errors.InvalidArgumentError, match="out of range"):
            session.run(tf.unsorted_segment_sum([1.0, 2.0, 4.0], ids, 2), {ids: [0, 2, 1]})
