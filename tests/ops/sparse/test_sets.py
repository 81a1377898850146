"""Sets along the last dimension, and fingerprints, scripts and coordinates."""

import numpy as np
import pytest

import stoker as tf2
import stoker.compat.v1 as tf
from tests.ops.samples import WHEN_BUILT, Sample, check_sample, samples

A = np.array([[9, 9, 1, 5], [2, 4, 5, 1]])
B = np.array([[1, 9], [1, 7]])


def expected(operation):
    """Python's sets, row by row."""
    function = {
        "a-b": set.difference,
        "b-a": lambda a, b: b - a,
        "intersection": set.intersection,
        "union": set.union,
    }[operation]
    rows = [sorted(function(set(a.tolist()), set(b.tolist()))) for a, b in zip(A, B)]
    places = [[i, j] for i, row in enumerate(rows) for j in range(len(row))]
    values = [value for row in rows for value in row]
    return np.array(places), np.array(values), np.array([2, max(map(len, rows))])


SAMPLES = [
    *(
        Sample("DenseToDenseSetOperation", [A, B], {"set_operation": how}, reference=lambda a, b, how=how: expected(how), static=False)
        for how in ("a-b", "b-a", "intersection", "union")
    ),
    Sample(
        "DenseToSparseSetOperation",
        [A, np.array([[0, 0], [0, 1], [1, 0]]), np.array([9, 3, 2]), np.array([2, 2])],
        {"set_operation": "intersection"},
        reference=lambda *_: (np.array([[0, 0], [1, 0]]), np.array([9, 2]), np.array([2, 1])),
        static=False,
    ),
    Sample(
        "SetSize",
        [np.array([[0, 0], [0, 1], [2, 0]]), np.array([9, 9, 2]), np.array([3, 2])],
        reference=lambda *_: np.array([1, 0, 1], np.int32),
        static=False,
    ),
    Sample("DenseToDenseSetOperation", [A[0], B[0]], {"set_operation": "union"}, raises=(WHEN_BUILT, "rank")),
    Sample("DenseToDenseSetOperation", [A, B], {"set_operation": "xor"}, raises=(tf.errors.InvalidArgumentError, "xor")),
    Sample("UnravelIndex", [np.array([5, 11]), np.array([3, 4])], reference=lambda i, d: np.stack(np.unravel_index(i, d))),
    Sample("UnravelIndex", [np.array(5), np.array([3, 4])], reference=lambda i, d: np.array([1, 1])),
    Sample("UnravelIndex", [np.array([12]), np.array([3, 4])], raises=(tf.errors.InvalidArgumentError, "12")),
    Sample("UnravelIndex", [np.array([0]), np.array([0, 4])], raises=(tf.errors.InvalidArgumentError, "zero at index 0")),
    Sample("UnicodeScript", [np.array([65, 1041, 0x4E00, -1, 0x110000], np.int32)], reference=lambda x: np.array([25, 8, 17, -1, -1], np.int32)),
    Sample("DataFormatDimMap", [np.array([0, 1, 2, 3, -1, -4])], reference=lambda x: np.array([0, 2, 3, 1, 1, 0])),
    Sample("DataFormatVecPermute", [np.array([10, 20, 30, 40])], reference=lambda x: np.array([10, 40, 20, 30])),
    Sample("DataFormatVecPermute", [np.array([[1, 2], [3, 4]])], reference=lambda x: x),
    Sample("DataFormatVecPermute", [np.array([1, 2, 3])], raises=(tf.errors.InvalidArgumentError, "3")),
    Sample("InplaceUpdate", [A, np.array([1, 0], np.int32), A], reference=lambda x, i, v: x[::-1]),
    Sample("InplaceAdd", [A, np.array([1, 1], np.int32), A], reference=lambda x, i, v: x + np.stack([0 * x[0], x.sum(0)])),
    Sample("InplaceSub", [A, np.array([-1], np.int32), A[:1]], reference=lambda x, i, v: np.stack([x[0], x[1] - x[0]])),
    Sample("InplaceSub", [A, np.array([1, 0], np.int32), A[:1]], raises=(tf.errors.InvalidArgumentError, "shape")),
    Sample(
        "SegmentSumV2", [np.array([1.0, 2, 3]), np.array([0, 0, 2]), 4], reference=lambda x, i, n: np.array([3.0, 0, 3, 0])
    ),
    Sample("SegmentProdV2", [np.array([1.0, 2, 3]), np.array([0, 0, 2]), 4], reference=lambda x, i, n: np.array([2.0, 1, 3, 1])),
    Sample("SegmentSumV2", [np.array([1.0, 2]), np.array([0, 4]), 4], raises=(tf.errors.InvalidArgumentError, "4")),
    Sample(
        "RaggedBincount",
        [np.array([0, 2, 2, 3]), np.array([4, 4, 1]), np.int64(5), np.zeros(0, np.float32)],
        reference=lambda *_: np.array([[0, 0, 0, 0, 2], [0] * 5, [0, 1, 0, 0, 0]], np.float32),
    ),
    Sample("RaggedBincount", [np.array([0, 5]), np.array([4, 4, 1]), np.int64(5), np.zeros(0, np.float32)], raises=(tf.errors.InvalidArgumentError, "5 instead of 3")),
    Sample(
        "SparseBincount",
        [np.array([[0, 0], [0, 1], [2, 1]]), np.array([4, 4, 1]), np.array([3, 2]), np.int64(5), np.array([1.0, 2, 3])],
        reference=lambda *_: np.array([[0, 0, 0, 0, 3], [0] * 5, [0, 3, 0, 0, 0]], np.float64),
        static=False,
        gradient=False,
    ),
    Sample(
        "DenseCountSparseOutput",
        [np.array([[1, 1, 5], [0, 3, 3]]), np.zeros(0, np.int64)],
        {"binary_output": False, "maxlength": 4},
        reference=lambda *_: (np.array([[0, 1], [1, 0], [1, 3]]), np.array([2, 1, 2]), np.array([2, 4])),
        static=False,
    ),
    Sample("DenseCountSparseOutput", [np.array([-1]), np.zeros(0, np.int64)], {"binary_output": False}, raises=(tf.errors.InvalidArgumentError, "non-negative")),
]  # fmt: skip


@samples(SAMPLES)
def test_sample(sample) -> None:
    """The op's value, shape and behaviour agree with NumPy's and Python's."""
    check_sample(sample)


def test_sets_of_sparse_and_dense(eager) -> None:
    """The functions take dense and sparse operands in any order."""
    sparse = tf.SparseTensor([[0, 0], [0, 1], [1, 0]], [9, 3, 2], [2, 2])
    dense = tf.constant(A.astype(np.int32))
    for found in (tf2.sets.intersection(dense, sparse), tf2.sets.intersection(sparse, dense)):
        assert found.values.numpy().tolist() == [9, 2]
    assert tf2.sets.difference(sparse, dense).values.numpy().tolist() == [3]
    assert tf2.sets.difference(sparse, dense, aminusb=False).values.numpy().tolist() == [1, 5, 1, 4, 5]
    assert tf.sets.set_union(sparse, sparse).values.numpy().tolist() == [3, 9, 2]
    assert tf.sets.set_size(sparse).numpy().tolist() == [2, 1]


def test_bad_sets(eager) -> None:
    """Other dtypes, dtypes that differ, dense tensors without sparse counterpart and disorder are refused."""
    with pytest.raises(TypeError, match="invalid dtype"):
        tf2.sets.union([[1.5]], [[1.5]])
    with pytest.raises(TypeError, match="Types don't match"):
        tf2.sets.union([[1]], [[1.5]])
    with pytest.raises(TypeError, match="SparseTensor"):
        tf2.sets.size([[1]])
    disorder = tf.SparseTensor([[0, 1], [0, 0]], [1, 2], [1, 2])
    with pytest.raises(tf.errors.InvalidArgumentError, match="out of order"):
        tf2.sets.size(disorder)
    assert tf2.sets.size(disorder, validate_indices=False).numpy().tolist() == [2]


def test_fingerprints_of_rows(eager) -> None:
    """One fingerprint for each row, low byte first, as recorded from TensorFlow."""
    found = tf2.fingerprint(["abc", "d"]).numpy()
    assert found.tolist() == [[105, 243, 231, 116, 160, 179, 165, 36], [33, 154, 125, 149, 99, 228, 10, 62]]
    with pytest.raises(tf.errors.InvalidArgumentError, match="method"):
        tf2.fingerprint(["abc"], method="md5")


def test_sparse_bincount(eager) -> None:
    """Counts of dense, sparse and ragged values, over all and row by row."""
    sparse = tf.SparseTensor([[0, 0], [0, 1], [2, 1]], [4, 4, 1], [3, 2])
    ragged = tf.ragged.constant([[4, 4], [], [1]])
    for values in (sparse, ragged):
        counts = tf2.sparse.bincount(values)
        assert counts.indices.numpy().tolist() == [[1], [4]] and counts.values.numpy().tolist() == [1, 2]
        rows = tf2.sparse.bincount(values, axis=-1)
        assert rows.indices.numpy().tolist() == [[0, 4], [2, 1]] and rows.dense_shape.numpy().tolist() == [3, 5]
        assert tf2.math.bincount(values, axis=-1).numpy().tolist() == [[0, 0, 0, 0, 2], [0] * 5, [0, 1, 0, 0, 0]]
    with pytest.raises(ValueError, match="axis=1"):
        tf2.sparse.bincount([[1]], axis=1)


def test_python_names_of_raw_ops(eager) -> None:
    """Arguments of tf.raw_ops have the names that TensorFlow's wrappers give them."""
    assert float(tf.raw_ops.Sum(input=tf.constant([1.0, 2.0]), axis=0)) == 3
    assert tf.raw_ops.Where(condition=[False, True]).numpy().tolist() == [[1]]
    with pytest.raises(TypeError, match="reduction_indices"):
        tf.raw_ops.Sum(input=tf.constant([1.0]), reduction_indices=0)
