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


@needs_extension
@given(
    st.sampled_from(["Sum", "Mean", "SqrtN"]),
    st.lists(st.tuples(st.integers(0, 11), st.integers(0, 10**9)), max_size=60),
    st.sampled_from([1, 30, 10**5]),
    st.sampled_from([(), (1,), (3,), (2, 2)]),
    INTEGERS,
    st.booleans(),
)
@settings(deadline=None, max_examples=60)
def test_segments_are_combined_as_torch_does_it(how, pairs, size, inner, kind, double):
    """The native pass gives the same bits as gathering and adding with torch, forward and backward."""
    ids = torch.from_numpy(np.array(sorted(segment for segment, _ in pairs), np.int64))
    indices = torch.from_numpy(np.array([index % size for _, index in pairs], kind))
    column = torch.stack([ids, ids], 1)[:, 0]  # a column of a matrix, as in a SparseTensor
    dtype = torch.float64 if double else torch.float32
    generator = torch.Generator().manual_seed(len(pairs))
    table = torch.randn((size, *inner), dtype=dtype, generator=generator)
    grad = torch.randn((12, *inner), dtype=dtype, generator=generator)
    with pytest.MonkeyPatch.context() as patch:
        forward = tf.raw_ops.__dict__[f"SparseSegment{how}WithNumSegments"]
        backward = tf.raw_ops.__dict__[f"SparseSegment{how}GradV2"]

        def results():
            with tf.Graph().as_default(), tf.Session() as session:
                combined = forward(
                    data=table.numpy(), indices=indices.numpy(), segment_ids=column.numpy(), num_segments=12
                )
                spread = backward(
                    grad=grad.numpy(), indices=indices.numpy(), segment_ids=column.numpy(), dense_output_dim0=size
                )
                return session.run([combined, *spread])

        native = results()
        assert table_rows.combine(how, table, indices, column, 12) is not None
        patch.setattr(table_rows, "_segments", None)
        for one, other in zip(native, results(), strict=True):
            np.testing.assert_array_equal(one, other)


@needs_extension
@pytest.mark.parametrize("threads", [1, 2, 5])
def test_the_number_of_threads_changes_no_combination(threads):
    """Threads share the segments of a result and the rows of a gradient, so sums have one order."""
    generator = np.random.default_rng(0)
    ids = torch.from_numpy(np.sort(generator.integers(0, 300, 5000)))
    indices = torch.from_numpy(generator.integers(0, 700, 5000))
    table, grad = (torch.from_numpy(generator.standard_normal((n, 40)).astype(np.float32)) for n in (700, 300))
    before = torch.get_num_threads()
    made = []
    try:
        for count in (1, threads):
            torch.set_num_threads(count)
            spread = table_rows.combine_grad("Mean", grad, indices, ids, 700)
            combined = table_rows.combine("Mean", table, indices, ids, 300)
            assert spread is not None and combined is not None
            made.append([combined, *spread])
    finally:
        torch.set_num_threads(before)
    assert all(torch.equal(one, other) for one, other in zip(*made))


@needs_extension
@pytest.mark.parametrize(
    ("indices", "ids"), [([0, 7], [0, 1]), ([-1, 0], [0, 1]), ([0, 1], [1, 0]), ([0, 1], [0, 3]), ([0, 1], [-1, 0])]
)
def test_bad_segments_are_left_to_the_kernel(indices, ids):
    """An index or id out of range, and ids that fall, are not combined: the kernel reports them."""
    assert table_rows.combine("Sum", torch.ones(7, 2), torch.tensor(indices), torch.tensor(ids), 3) is None
    with tf.Graph().as_default(), tf.Session() as session, pytest.raises(tf.errors.InvalidArgumentError):
        session.run(tf.sparse_segment_sum(tf.ones([7, 2]), indices, ids, num_segments=3))


@given(
    st.lists(st.integers(1, 5), min_size=1, max_size=4),
    st.lists(st.integers(0, 10**6), max_size=20),
    st.sampled_from([np.int32, np.int64]),
)
@settings(deadline=None, max_examples=60)
def test_coordinates_are_flattened(sizes, numbers, kind):
    """`scatter_nd` adds at the places that NumPy's index gives."""
    rows = np.array([[n // 7**d % size for d, size in enumerate(sizes)] for n in numbers], kind).reshape(-1, len(sizes))
    updates = np.arange(len(rows), dtype=np.float32)
    expected = np.zeros(sizes, np.float32)
    np.add.at(expected, tuple(rows.T), updates)
    with tf.Graph().as_default(), tf.Session() as session:
        found = session.run(tf.scatter_nd(rows, updates, np.array(sizes, kind)))
    np.testing.assert_array_equal(found, expected)


@given(
    st.lists(st.integers(1, 5), min_size=1, max_size=4),
    st.lists(st.integers(0, 10**6), max_size=20),
    st.sampled_from([np.int32, np.int64]),
    st.sampled_from([np.float32, np.float64, np.int32, np.int64]),
    st.booleans(),
)
@settings(deadline=None, max_examples=60)
def test_values_are_placed_at_their_coordinates(sizes, numbers, kind, dtype, single):
    """`sparse_to_dense` without checks fills with the default, and the last value of a place wins."""
    rows = np.array([[n // 7**d % size for d, size in enumerate(sizes)] for n in numbers], kind).reshape(-1, len(sizes))
    values = np.array(3, dtype) if single else np.arange(len(rows)).astype(dtype)
    expected = np.full(sizes, 7, dtype)
    for i, row in enumerate(rows):
        expected[tuple(row)] = values if single else values[i]
    with tf.Graph().as_default(), tf.Session() as session:
        found = session.run(tf.sparse_to_dense(rows, np.array(sizes, kind), values, dtype(7), validate_indices=False))
    np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize(
    ("rows", "message"),
    [([[0, 1], [2, 0]], "out of bounds"), ([[1, 0], [0, 1]], "out of order"), ([[0, 1], [0, 1]], "repeated")],
)
def test_bad_coordinates_are_named(rows, message):
    """Coordinates that are outside, out of order or repeated raise an error that says so."""
    with tf.Graph().as_default(), tf.Session() as session, pytest.raises(tf.errors.InvalidArgumentError, match=message):
        session.run(tf.sparse_to_dense(rows, [2, 2], [1.0, 2.0]))


@given(
    st.permutations([0, 1, 2]),
    st.tuples(*[st.integers(1, 4)] * 3),
    st.lists(st.integers(0, 100), min_size=4, max_size=4),
    INTEGERS,
    st.sampled_from([np.float32, np.int64, np.uint8]),
)
@settings(deadline=None, max_examples=40)
def test_sequences_are_reversed(dims, sizes, lengths, kind, dtype):
    """`reverse_sequence` reverses the first elements of each sequence, whichever dimensions hold sequences and steps."""
    seq_dim, batch_dim, _ = dims
    x = np.arange(np.prod(sizes)).reshape(sizes).astype(dtype)
    counts = np.array(lengths[: sizes[batch_dim]], kind) % (sizes[seq_dim] + 1)
    expected = np.moveaxis(x.copy(), (batch_dim, seq_dim), (0, 1))
    for row, count in zip(expected, counts):
        row[:count] = row[:count][::-1].copy()
    with tf.Graph().as_default(), tf.Session() as session:
        found = session.run(tf.reverse_sequence(x, counts, seq_axis=seq_dim, batch_axis=batch_dim))
    np.testing.assert_array_equal(found, np.moveaxis(expected, (0, 1), (batch_dim, seq_dim)))


@needs_extension
def test_selected_rows_are_taken_and_put_back():
    """Rows of several groups of tables become one vector for each kind of table, and return to their places."""
    tables = [torch.arange(8.0).reshape(4, 2), torch.arange(10.0, 15.0)]
    slots = [-table for table in tables]
    selection = table_rows.Selection([tables, slots], [torch.tensor([1, 3]), torch.tensor([0, 4])])
    flats = selection.taken()
    assert flats is not None
    assert flats[0].tolist() == [2, 3, 6, 7, 10, 14]
    assert flats[1].tolist() == [-2, -3, -6, -7, -10, -14]
    selection.put([flats[0] * 10, flats[1]])
    assert tables[0].tolist() == [[0, 1], [20, 30], [4, 5], [60, 70]]
    assert tables[1].tolist() == [100, 11, 12, 13, 140]
    assert slots[0].tolist() == [[0, -1], [-2, -3], [-4, -5], [-6, -7]]


@needs_extension
def test_distinct_rows_are_taken_in_any_order():
    """Rows need not be ascending."""
    table = torch.arange(8.0).reshape(4, 2)
    selection = table_rows.Selection([[table]], [torch.tensor([3, 0, 1])])
    flats = selection.taken()
    assert flats is not None and flats[0].tolist() == [6, 7, 0, 1, 2, 3]
    selection.put([-flats[0]])
    assert table.tolist() == [[0, -1], [-2, -3], [4, 5], [-6, -7]]


@needs_extension
@pytest.mark.parametrize("indices", [[1, 1], [2, 1, 2], [0, 4], [-1, 0], [4, 0]])
def test_rows_that_repeat_or_are_out_of_range_are_not_taken(indices):
    """Only distinct rows in range are taken together."""
    assert table_rows.Selection([[torch.ones(4, 2)]], [torch.tensor(indices)]).taken() is None


@needs_extension
@pytest.mark.parametrize("dtype", [torch.float32, torch.int64, torch.uint8, torch.bfloat16, torch.complex128])
@pytest.mark.parametrize("shape", [(0,), (5,), (7, 3), (6, 0)])
def test_partitions_keep_the_order_of_rows(dtype, shape):
    """Each part has the rows with its number, in the order in which they were."""
    random = np.random.RandomState(1)
    rows, numbers = torch.from_numpy(random.randint(0, 9, shape)).to(dtype), random.randint(0, 3, shape[0])
    parts = table_rows.partition(rows, torch.from_numpy(numbers.astype(np.int32)), 3)
    assert isinstance(parts, list)
    for number, part in enumerate(parts):
        assert torch.equal(part, rows[torch.from_numpy(numbers == number)])


@needs_extension
def test_a_number_outside_of_the_partitions_is_reported_by_its_position():
    """Nothing is divided if a number is out of range."""
    for wrong in (-1, 2):
        assert table_rows.partition(torch.ones(3), torch.tensor([0, 1, wrong], dtype=torch.int32), 2) == 2


@needs_extension
def test_stitched_rows_are_at_their_places():
    """The last row of a place wins, and a place without a row is zero."""
    indices = [torch.tensor([4, 0], dtype=torch.int32), torch.tensor([0, 2], dtype=torch.int32)]
    rows = [torch.tensor([[1.0, 2], [3, 4]]), torch.tensor([[5.0, 6], [7, 8]])]
    assert table_rows.bounds(indices) == (0, 4)
    found = table_rows.stitch(indices, rows, 5)
    assert found is not None and found.tolist() == [[5, 6], [0, 0], [7, 8], [0, 0], [1, 2]]
    assert table_rows.stitch(indices, rows, 4) is None


@given(
    st.integers(1, 12),
    st.integers(1, 9),
    st.integers(1, 40),
    st.lists(st.tuples(st.integers(0, 99), st.integers(0, 99)), max_size=60),
    INTEGERS,
    st.booleans(),
    st.booleans(),
    st.booleans(),
)
@settings(deadline=None, max_examples=100)
def test_sparse_times_dense(rows, inner, width, places, kind, double, adjoint_a, adjoint_b):
    """A sparse matrix whose entries may repeat, also as its transpose, times a dense one is the product of dense matrices."""
    dtype = np.float64 if double else np.float32
    sizes = (inner, rows) if adjoint_a else (rows, inner)
    indices = np.array(places, np.int64).reshape(-1, 2) % sizes
    values = np.arange(1, len(places) + 1, dtype=dtype)
    right = np.arange(inner * width, dtype=dtype).reshape((width, inner) if adjoint_b else (inner, width))
    left = np.zeros(sizes, dtype)
    np.add.at(left, tuple(indices.T), values)
    with tf.Graph().as_default(), tf.Session() as session:
        made = tf.raw_ops.SparseTensorDenseMatMul(
            a_indices=indices.astype(kind),
            a_values=values,
            a_shape=np.array(sizes, np.int64),
            b=right,
            adjoint_a=adjoint_a,
            adjoint_b=adjoint_b,
        )
        found = session.run(made)
    np.testing.assert_array_equal(found, (left.T if adjoint_a else left) @ (right.T if adjoint_b else right))
    assert found.dtype == dtype


@needs_extension
@pytest.mark.parametrize("threads", [1, 2, 5])
def test_sparse_products_do_not_depend_on_the_number_of_threads(threads):
    """Each row of a product has one thread, which adds the terms in the order of the indices."""
    generator = np.random.default_rng(0)
    indices = torch.from_numpy(generator.integers(0, 300, (9000, 2)))
    values = torch.from_numpy(generator.standard_normal(9000).astype(np.float32))
    dense = torch.from_numpy(generator.standard_normal((300, 33)).astype(np.float32))
    expected = torch.zeros(300, 33).index_add_(0, indices[:, 0], dense[indices[:, 1]] * values[:, None])
    before = torch.get_num_threads()
    try:
        torch.set_num_threads(threads)
        found = table_rows.sparse_product(indices, values, dense, 300, transposed=False)
    finally:
        torch.set_num_threads(before)
    assert found is not None
    assert torch.equal(found, expected)
    assert table_rows.sparse_product(indices, values, dense, 299, transposed=False) is None
