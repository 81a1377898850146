"""Crosses of sparse columns, and edit distances: the values are TensorFlow's."""

import functools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import stoker as tf2
import stoker.compat.v1 as tf
from stoker._src.base.errors import InvalidArgumentError
from tests.ops.samples import Sample, check_sample, samples

WORDS = np.array([b"a"], dtype=object)


ROW = np.array([[0, 0]], np.int64)


ONE_BY_ONE = np.array([1, 1], np.int64)


def crossed(value):
    return lambda *_: (ROW, np.array([value], np.int64), ONE_BY_ONE)


def parts(sparse):
    return [each.numpy().tolist() for each in (sparse.indices, sparse.values, sparse.dense_shape)]


SAMPLES = [
    Sample("SparseCrossHashed", [[ROW], [WORDS], [ONE_BY_ONE], [], np.array(0), np.array(False), np.array([1, 2])],
           reference=crossed(3694432073954588132), gradient=False, static=False),
    Sample("SparseCrossHashed", [[ROW], [WORDS], [ONE_BY_ONE], [], np.array(0), np.array(True), np.array([1, 2])],
           reference=crossed(5158252350249958646), gradient=False, static=False),
    Sample("SparseCrossHashed", [[ROW], [np.array([2**33 + 5])], [ONE_BY_ONE], [], np.array(0), np.array(True), np.array([1, 2])],
           reference=crossed(112910862072883125), gradient=False, static=False),
    Sample("SparseCrossHashed", [[ROW], [WORDS], [ONE_BY_ONE], [], np.array(0), np.array(True), np.array([1])],
           raises=(InvalidArgumentError, "length 2 but has length 1")),
]  # fmt: skip


def test_crosses_are_tensorflows(eager):
    """Features are crossed row by row, sparse columns first, as text or as TensorFlow's buckets."""
    a = tf2.SparseTensor([[0, 0], [0, 1], [1, 0]], ["a", "b", "c"], [2, 2])
    b = tf2.SparseTensor([[0, 0], [0, 1]], np.array([7, -8]), [2, 2])
    dense = tf2.constant([["x"], ["y"]])
    assert parts(tf2.sparse.cross([a, b])) == [
        [[0, 0], [0, 1], [0, 2], [0, 3]], [b"a_X_7", b"a_X_-8", b"b_X_7", b"b_X_-8"], [2, 4],
    ]  # fmt: skip
    assert parts(tf2.sparse.cross([dense, a], separator="-"))[1] == [b"a-x", b"b-x", b"c-y"]
    assert parts(tf2.sparse.cross_hashed([a, b], num_buckets=1000))[1] == [856, 72, 976, 201]
    assert parts(tf2.sparse.cross_hashed([a, dense]))[1] == [
        1484974617627318892,
        3552177129620670004,
        6571367263544129360,
    ]
    assert parts(tf2.sparse.cross_hashed([a, dense], num_buckets=50, hash_key=99))[1] == [44, 7, 15]
    empty = tf2.SparseTensor(np.zeros((0, 2), np.int64), tf2.constant([], tf2.string), [2, 0])
    assert parts(tf2.sparse.cross_hashed([a, empty], num_buckets=5)) == [[], [], [2, 0]]
    with pytest.raises(tf2.errors.InvalidArgumentError, match="batch size"):
        tf2.sparse.cross([a, tf2.constant([["x"]])])
    with pytest.raises(TypeError, match="list"):
        tf2.sparse.cross(a)


def test_edit_distance(eager):
    """Distances of sequences in the last dimension, divided by the truth's length; an empty truth is infinitely far."""
    hypothesis = tf2.SparseTensor([[0, 0, 0], [1, 0, 0]], ["a", "b"], [2, 1, 1])
    truth = tf2.SparseTensor([[0, 1, 0], [1, 0, 0], [1, 0, 1], [1, 1, 0]], ["a", "b", "c", "a"], [2, 2, 2])
    assert tf2.edit_distance(hypothesis, truth).numpy().tolist() == [[np.inf, 1.0], [0.5, 1.0]]
    assert tf2.edit_distance(hypothesis, truth, normalize=False).numpy().tolist() == [[1.0, 1.0], [1.0, 1.0]]
    kitten = tf2.SparseTensor([[0, i] for i in range(6)], list("kitten"), [1, 6])
    sitting = tf2.SparseTensor([[0, i] for i in range(7)], list("sitting"), [1, 7])
    assert tf2.edit_distance(kitten, sitting, normalize=False).numpy().tolist() == [3.0]
    with pytest.raises(TypeError, match="SparseTensor"):
        tf2.edit_distance(kitten, ["a"])


def _sparse(rows):
    """The sparse tensor whose rows are the given sequences."""
    indices = [(i, j) for i, row in enumerate(rows) for j in range(len(row))]
    width = max([1, *map(len, rows)])
    values = np.array([item for row in rows for item in row], np.int64)
    return tf.SparseTensorValue(np.array(indices, np.int64).reshape(-1, 2), values, [len(rows), width])


_ROWS = st.lists(st.lists(st.integers(0, 3), max_size=7), min_size=4, max_size=4)


@settings(deadline=None, max_examples=60)
@given(_ROWS, _ROWS, st.booleans())
def test_distances_of_many_sequences(hypotheses, truths, normalize):
    """Each distance is that of the recursive definition, by the length of the truth if normalized; no truth gives infinity, or zero."""

    @functools.cache
    def distance(a, b):
        if not a or not b:
            return len(a) + len(b)
        return min(distance(a[1:], b) + 1, distance(a, b[1:]) + 1, distance(a[1:], b[1:]) + (a[0] != b[0]))

    expected = [float(distance(tuple(a), tuple(b))) for a, b in zip(hypotheses, truths)]
    if normalize:
        expected = [x / len(b) if b else (np.inf if a else 0.0) for x, a, b in zip(expected, hypotheses, truths)]
    with tf.Graph().as_default(), tf.Session() as session:
        fed = tf.sparse_placeholder(tf.int64), tf.sparse_placeholder(tf.int64)
        found = session.run(
            tf.edit_distance(*fed, normalize=normalize), dict(zip(fed, map(_sparse, (hypotheses, truths))))
        )
    np.testing.assert_array_equal(found, np.array(expected, "f"))


def test_edit_distance_shape():
    """The static shape is that of the sequences' places."""
    with tf.Graph().as_default():
        one = tf.SparseTensor([[0, 0]], [1], [3, 4])
        assert tf.edit_distance(one, tf.SparseTensor([[0, 0]], [1], [5, 2])).shape.as_list() == [5]


@samples(SAMPLES)
def test_sample(sample: Sample) -> None:
    """Value, shapes, eager mode, gradient, aliasing and GraphDef of each sample."""
    check_sample(sample)
