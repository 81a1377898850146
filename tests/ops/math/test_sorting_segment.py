"""Sorting, selection, unique elements, searches and segments."""

from __future__ import annotations

import numpy as np
import pytest

import stoker.compat.v1 as tf
from stoker._src.base.errors import InvalidArgumentError
from tests.ops.samples import WHEN_BUILT, Sample, check_sample, f32, f64, i32, samples
from tests.running import run_built

TIES = np.array([[1.0, 3.0, 3.0, 2.0], [5.0, 5.0, 5.0, 0.0]])
U64 = np.array([3, 2**63 + 1, 5, 2**63], np.uint64)
WORDS = np.array([b"b", b"a", b"b", b"c"], object)
IDS = np.array([0, 0, 2], np.int32)
D = np.array([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]])


def top(x, k):
    order = np.argsort(-x, -1, kind="stable")[..., :k]
    return np.take_along_axis(x, order, -1), order


def first_seen(x):
    values = list(dict.fromkeys(x.tolist()))
    return np.array(values, x.dtype), np.array([values.index(v) for v in x.tolist()])


SORTING = [
    Sample("TopKV2", [f64(2, 5), np.int32(3)], reference=top),
    Sample("TopKV2", [TIES, np.int32(3)], reference=top, gradient=False),
    Sample("TopKV2", [TIES, np.int32(1)], {"index_type": "int64"}, reference=top, gradient=False),
    Sample("TopK", [f64(5)], {"k": 2}, reference=lambda x: top(x, 2)),
    Sample("TopKV2", [f64(2, 3), np.int32(0)], reference=top),
    Sample("TopKV2", [U64, np.int32(2)], reference=lambda x, k: (x[[1, 3]], np.array([1, 3])), gradient=False),
    Sample("TopKV2", [f64(2, 3), np.int32(4)], raises=(InvalidArgumentError, "4")),
    Sample("NthElement", [f64(2, 5), np.int32(1)], reference=lambda x, n: np.sort(x, -1)[..., 1]),
    Sample("NthElement", [U64, np.int32(0)], {"reverse": True}, reference=lambda x, n: x.max(), gradient=False),
    Sample("NthElement", [f64(2, 3), np.int32(3)], raises=(InvalidArgumentError, "> n = 3")),
    Sample("Unique", [np.array([4, 1, 4, 2, 1], np.int64)], reference=first_seen, gradient=False, static=False),
    Sample("Unique", [WORDS], {"out_idx": "int64"}, reference=first_seen, gradient=False, static=False),
    Sample("Unique", [U64], reference=first_seen, gradient=False, static=False),
    Sample("Unique", [np.zeros(0, np.int32)], reference=first_seen, gradient=False, static=False),
    Sample("Unique", [i32(2, 2)], raises=(WHEN_BUILT, "1|vector")),
    Sample("UniqueWithCounts", [np.array([4, 1, 4], np.int32)], reference=lambda x: (*first_seen(x), np.array([2, 1])), gradient=False, static=False),
    Sample("UniqueV2", [np.array([[1, 2], [1, 2], [0, 2]], np.int32), np.array([0])], reference=lambda x, a: (np.array([[1, 2], [0, 2]]), np.array([0, 0, 1])), gradient=False, static=False),
    Sample("UniqueWithCountsV2", [np.array([[1, 1, 2]], np.int32), np.array([1])], reference=lambda x, a: (np.array([[1, 2]]), np.array([0, 0, 1]), np.array([2, 1])), gradient=False, static=False),
    Sample("InTopKV2", [np.float32([[0.1, 0.3, 0.3], [0.5, 0.4, 0.5]]), np.int32([2, 1]), np.int32(2)], reference=lambda p, t, k: np.array([True, False]), gradient=False),
    Sample("InTopK", [np.float32([[0.1, 0.3], [np.inf, 1], [1, 2]]), np.int32([0, 1, 5])], {"k": 1}, reference=lambda p, t: np.array([False, False, False]), gradient=False),
    Sample("LowerBound", [np.int32([[1, 2, 2, 4]]), np.int32([[2, 3, 0, 9]])], reference=lambda s, v: np.array([[1, 3, 0, 4]]), gradient=False),
    Sample("UpperBound", [f32(1, 1), f32(1, 1) + 9], reference=lambda s, v: np.array([[1]]), gradient=False),
    Sample("LowerBound", [np.sort(U64)[None], U64[None]], reference=lambda s, v: np.array([[0, 3, 1, 2]]), gradient=False),
    Sample("UpperBound", [f32(1, 2), f32(2, 2)], raises=(InvalidArgumentError, "1 and 2")),
]  # fmt: skip

SEGMENTS = [
    Sample("SegmentSum", [D, IDS], reference=lambda d, i: np.array([d[0] + d[1], [0, 0], d[2]]), static=False),
    Sample("SegmentMean", [D, IDS], reference=lambda d, i: np.array([(d[0] + d[1]) / 2, [0, 0], d[2]]), static=False),
    Sample("SegmentProd", [D, IDS], reference=lambda d, i: np.array([d[0] * d[1], [1, 1], d[2]]), static=False),
    Sample("SegmentMax", [D, IDS], reference=lambda d, i: np.array([d[1], [0, 0], d[2]]), static=False),
    Sample("SegmentMin", [D, IDS], reference=lambda d, i: np.array([d[0], [0, 0], d[2]]), static=False),
    Sample("SegmentSum", [np.uint64([2**63, 2**63, 1]), IDS], reference=lambda d, i: np.uint64([0, 0, 1]), gradient=False, static=False),
    Sample("SegmentSum", [D, np.int32([1, 0, 2])], raises=(InvalidArgumentError, "not increasing")),
    Sample("SegmentSum", [D, np.int32([-1, 0, 2])], raises=(InvalidArgumentError, "out of range")),
    Sample("SegmentSum", [D[:0], IDS[:0]], reference=lambda d, i: d, static=False),
    Sample("UnsortedSegmentSum", [D, np.int32([2, -1, 2]), np.int32(4)], reference=lambda d, i, n: np.array([[0, 0], [0, 0], d[0] + d[2], [0, 0]])),
    Sample("UnsortedSegmentSum", [f64(2, 2, 3), np.int32([[0, 1], [1, 1]]), np.int32(2)], reference=lambda d, i, n: np.stack([d[0, 0], d[0, 1] + d[1].sum(0)])),
    Sample("UnsortedSegmentProd", [D, np.int32([1, -1, 1]), np.int32(2)], reference=lambda d, i, n: np.array([[1, 1], d[0] * d[2]])),
    Sample("UnsortedSegmentProd", [np.array([0.0, 2.0, 3.0]), np.int32([0, 0, 0]), np.int32(1)], reference=lambda d, i, n: np.array([0.0])),
    Sample("UnsortedSegmentMax", [D, np.int32([1, 1, 0]), np.int32(2)], reference=lambda d, i, n: np.array([d[2], d[1]])),
    Sample("UnsortedSegmentMin", [i32(2), np.int32([0, 0]), np.int32(2)], reference=lambda d, i, n: np.array([d.min(), 2**31 - 1]), gradient=False),
    Sample("UnsortedSegmentSum", [D, np.int32([0, 2, 5]), np.int32(4)], raises=(InvalidArgumentError, "segment_ids.2. = 5")),
    Sample("SparseSegmentSum", [D, np.int32([0, 2, 1]), IDS], reference=lambda d, p, i: np.array([d[0] + d[2], [0, 0], d[1]]), static=False),
    Sample("SparseSegmentMean", [D, np.int32([0, 2, 2]), IDS], reference=lambda d, p, i: np.array([(d[0] + d[2]) / 2, [0, 0], d[2]]), static=False),
    Sample("SparseSegmentSqrtN", [D, np.int32([0, 2, 1]), IDS], reference=lambda d, p, i: np.array([(d[0] + d[2]) / np.sqrt(2), [0, 0], d[1]]), static=False),
    Sample("SparseSegmentSumWithNumSegments", [D, np.int64([0, 2, 1]), IDS, np.int32(4)], reference=lambda d, p, i, n: np.array([d[0] + d[2], [0, 0], d[1], [0, 0]])),
    Sample("SparseSegmentMeanWithNumSegments", [D, np.int64([0, 2, 1]), IDS, np.int32(4)], reference=lambda d, p, i, n: np.array([(d[0] + d[2]) / 2, [0, 0], d[1], [0, 0]])),
    Sample("SparseSegmentSum", [D, np.int32([0, 7, 1]), IDS], raises=(InvalidArgumentError, "indices.1. == 7")),
    Sample("SparseSegmentSumWithNumSegments", [D, np.int32([0, 2, 1]), IDS, np.int32(2)], raises=(InvalidArgumentError, "num_segments")),
]  # fmt: skip


@samples(SORTING + SEGMENTS)
def test_sample(sample: Sample) -> None:
    """The op does what its reference does, in every mode."""
    check_sample(sample)


@pytest.mark.parametrize("dtype", ["float32", "int32", "int8", "uint8", "uint64"])
@pytest.mark.parametrize("axis", [-1, 0, 1])
def test_sort_and_argsort(dtype, axis) -> None:
    """Any dimension of any type sorts both ways, and equal elements keep their order."""
    x = np.random.RandomState(1).randint(0, 5, (4, 5)).astype(dtype)
    assert (run_built(lambda: tf.sort(x, axis)) == np.sort(x, axis)).all()
    assert (run_built(lambda: tf.argsort(x, axis, stable=True)) == np.argsort(x, axis, kind="stable")).all()
    assert (run_built(lambda: tf.sort(x, axis, "DESCENDING")) == -np.sort(-x.astype(float), axis)).all()
    with pytest.raises(ValueError, match="direction"):
        tf.sort(x, direction="UP")


def test_searchsorted() -> None:
    """Rows of any rank are searched from either side."""
    rows = np.array([[[1, 2, 2, 4]], [[0, 0, 1, 1]]])
    values = np.array([[[2, 5]], [[0, 1]]])
    for side in ("left", "right"):
        expected = [[[np.searchsorted(rows[i, 0], v, side) for v in values[i, 0]]] for i in range(2)]
        assert run_built(lambda side=side: tf.searchsorted(rows, values, side)).tolist() == expected
    with pytest.raises(ValueError, match="side"):
        tf.searchsorted(rows, values, "middle")


def test_segment_functions() -> None:
    """Means and root means of unsorted segments divide by the number of rows, at least one."""
    ids = [2, -1, 2]
    assert run_built(lambda: tf.unsorted_segment_mean(D, ids, 3)).tolist() == [[0, 0], [0, 0], [3, 4]]
    assert np.allclose(run_built(lambda: tf.unsorted_segment_sqrt_n(D, ids, 3))[2], (D[0] + D[2]) / np.sqrt(2))
    assert run_built(lambda: tf.sparse_segment_sum(D, [0, 1], [0, 0], num_segments=2)).tolist() == [[4, 6], [0, 0]]
    assert run_built(lambda: tf.confusion_matrix([1, 2, 4], [2, 2, 4])).sum() == 3
    assert run_built(lambda: tf.confusion_matrix([0, 1], [1, 1], num_classes=2, weights=[2, 3])).tolist() == [
        [0, 2],
        [0, 3],
    ]
    assert run_built(lambda: tf.nn.in_top_k(np.float32([[0.1, 0.9]]), [1], 1)).tolist() == [True]


def test_gradient_of_top_k() -> None:
    """The gradient goes back to where each value came from, and only there."""
    with tf.Graph().as_default(), tf.Session() as session:
        x = tf.placeholder(tf.float64, [None, None])
        values, _ = tf.nn.top_k(x, 2)
        found = session.run(tf.gradients(tf.reduce_sum(values * [1.0, 10.0]), x)[0], {x: TIES})
    assert found.tolist() == [[0, 1, 10, 0], [1, 10, 0, 0]]


@pytest.mark.parametrize("ties", [False, True])
def test_top_k_of_wide_rows(ties) -> None:
    """Wide rows give the same values and places as narrow ones, with ties and without."""
    rng = np.random.RandomState(2)
    x = (rng.randint(0, 50, (3, 1000)) if ties else rng.rand(3, 1000)).astype(np.float32)
    values, places = run_built(lambda: tf.nn.top_k(x, 20))
    assert (places == top(x, 20)[1]).all() and (values == top(x, 20)[0]).all()
