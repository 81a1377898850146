"""Hashed crosses in a native loop equal those in Python."""

import numpy as np
import pytest

import stoker.compat.v1 as tf
from stoker._src.ops.sparse import sparse_features


def sparse(rng, batch, kind, width=3):
    places = [(row, column) for row in range(batch) for column in range(rng.randint(0, width + 1))]
    values = rng.randint(-5, 50, len(places))
    if kind is tf.string:
        values = np.array([b"word %d" % value for value in values], object)
    indices = np.array(places, np.int64).reshape(-1, 2)
    return tf.SparseTensorValue(indices, values if kind is tf.string else values.astype(np.int64), [batch, width])


@pytest.mark.skipif(sparse_features._native is None, reason="the extension is not built")
@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("buckets", [0, 11])
def test_native_crosses_equal_python(seed, buckets, monkeypatch):
    """Crosses of sparse and dense columns of strings and integers, with rows without features, are the same in both versions."""
    rng = np.random.RandomState(seed)
    kinds = [(tf.string, tf.int64)[rng.randint(2)] for _ in range(1 + seed % 3)]
    columns = [sparse(rng, 9, kind) for kind in kinds]
    dense = [rng.randint(0, 9, [9, 2]).astype(np.int64), np.array([[b"x"], [b"y"], [b"z"]] * 3, object)][: seed % 3]
    found = []
    for native in (sparse_features._native, None):
        monkeypatch.setattr(sparse_features, "_native", native)
        with tf.Graph().as_default(), tf.Session() as session:
            inputs = [tf.SparseTensor(*each) for each in columns] + [tf.constant(each) for each in dense]
            found.append(session.run(tf.sparse.cross_hashed(inputs, buckets, hash_key=seed)))
    for one, other in zip(*found):
        np.testing.assert_array_equal(one, other)


def test_indices_out_of_row_order_are_crossed_by_row():
    """Features may come in any order; those of one row keep theirs."""
    values = tf.SparseTensorValue([[2, 0], [0, 0], [0, 1]], np.array([5, 6, 7], np.int64), [3, 2])
    ordered = tf.SparseTensorValue([[0, 0], [0, 1], [2, 0]], np.array([6, 7, 5], np.int64), [3, 2])
    with tf.Graph().as_default(), tf.Session() as session:
        one, other = session.run([tf.sparse.cross_hashed([tf.SparseTensor(*each)], 100) for each in (values, ordered)])
    np.testing.assert_array_equal(one.values, other.values)
    np.testing.assert_array_equal(one.indices, other.indices)


def test_indices_out_of_bounds_are_refused():
    """An index beyond the shape names itself."""
    bad = tf.SparseTensor([[5, 0]], np.array([5], np.int64), [3, 2])
    with tf.Session() as session, pytest.raises(tf.errors.InvalidArgumentError, match="out of bounds"):
        session.run(tf.sparse.cross_hashed([bad], 100))


@pytest.mark.parametrize("rows", [1, 5])
def test_columns_without_features_have_no_combinations(rows):
    """An empty sparse column beside a dense one: no row has a combination."""
    empty = tf.SparseTensor(np.zeros((0, 2), np.int64), np.zeros(0, np.int64), [rows, 3])
    dense = tf.constant(np.arange(2 * rows).reshape(rows, 2))
    found = tf.raw_ops.SparseCross(
        indices=[empty.indices], values=[empty.values], shapes=[empty.dense_shape], dense_inputs=[dense],
        hashed_output=True, num_buckets=10, hash_key=7, out_type=tf.int64, internal_type=tf.int64,
    )  # fmt: skip
    with tf.Session() as session:
        indices, values, shape = session.run(found)
    assert indices.shape == (0, 2) and values.shape == (0,) and shape.tolist() == [rows, 0]


def test_more_values_than_indices_are_refused():
    """InvalidArgumentError with both numbers."""
    places = np.array([[0, 0], [1, 0], [1, 1]], np.int64)
    found = tf.raw_ops.SparseCross(
        indices=[places], values=[np.zeros(5, np.int64)], shapes=[[2, 2]], dense_inputs=[],
        hashed_output=True, num_buckets=10, hash_key=7, out_type=tf.int64, internal_type=tf.int64,
    )  # fmt: skip
    with tf.Session() as session, pytest.raises(tf.errors.InvalidArgumentError, match="to be 3 got 5"):
        session.run(found)
