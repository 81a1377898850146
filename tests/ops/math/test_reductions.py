"""Reductions, scans, places of extremes, counts."""

from __future__ import annotations

import numpy as np
import pytest

import stoker.compat.v1 as tf
from stoker._src.base.errors import InvalidArgumentError
from tests.ops.samples import WHEN_BUILT, Sample, booleans, c128, check_sample, f32, f64, i32, i64, samples
from tests.running import run_built

TIES = np.array([[1.0, 3.0, 3.0], [2.0, 2.0, 0.0]])
ZEROS = np.array([[2.0, 0.0, 3.0], [0.0, 0.0, 4.0]])


def u64(*values: int) -> np.ndarray:
    return np.array(values, np.uint64)


def _logcumsumexp(x, axis):
    return np.log(np.cumsum(np.exp(x), axis))


REDUCTIONS = [
    Sample("Sum", [f64(2, 3), [1]], reference=lambda x, a: x.sum(1)),
    Sample("Sum", [f64(2, 3), [0, -1]], {"keep_dims": True}, reference=lambda x, a: x.sum(keepdims=True)),
    Sample("Sum", [f64(2, 3, 2), [0, 2]], reference=lambda x, a: x.sum((0, 2))),
    Sample("Sum", [f64(2, 3), np.array([], np.int32)], reference=lambda x, a: x),
    Sample("Sum", [f64(2, 3), 1], reference=lambda x, a: x.sum(1)),
    Sample("Sum", [f64(), np.array([], np.int32)], reference=lambda x, a: x),
    Sample("Sum", [f64(0, 3), [0]], reference=lambda x, a: x.sum(0)),
    Sample("Sum", [u64(2**64 - 1, 5), [0]], reference=lambda x, a: np.uint64(4), gradient=False),
    Sample("Sum", [np.array([100, 100], np.int8), [0]], reference=lambda x, a: np.int8(-56), gradient=False),
    Sample("Sum", [c128(2, 3), [0]], reference=lambda x, a: x.sum(0), gradient=False),
    Sample("Sum", [f64(2, 3), [2]], raises=(WHEN_BUILT, "2")),
    Sample("Mean", [f64(2, 3), [0]], reference=lambda x, a: x.mean(0)),
    Sample("Mean", [f64(2, 3, 2), [0, 1]], {"keep_dims": True}, reference=lambda x, a: x.mean((0, 1), keepdims=True)),
    Sample("Mean", [np.array([7, -8, -8], np.int32), [0]], reference=lambda x, a: np.int32(-3), gradient=False),
    Sample("Mean", [np.array([7, 8, 8], np.uint16), [0]], reference=lambda x, a: np.uint16(7), gradient=False),
    Sample("Mean", [f32(0), [0]], reference=lambda x, a: np.float32("nan"), gradient=False),
    Sample("Prod", [f64(2, 3), [1]], reference=lambda x, a: x.prod(1)),
    Sample("Prod", [ZEROS, [1]], reference=lambda x, a: x.prod(1)),
    Sample("Prod", [ZEROS, [0]], {"keep_dims": True}, reference=lambda x, a: x.prod(0, keepdims=True)),
    Sample("Prod", [f64(2, 3, 2), [0, 2]], reference=lambda x, a: x.prod((0, 2))),
    Sample("Prod", [i32(2, 3), [0, 1]], reference=lambda x, a: x.prod(dtype=np.int32), gradient=False),
    Sample("Max", [f64(2, 3), [1]], reference=lambda x, a: x.max(1)),
    Sample("Max", [u64(2**63, 1), [0]], reference=lambda x, a: x.max(), gradient=False),
    Sample("Max", [f32(0, 2), [0]], reference=lambda x, a: np.full(2, -np.inf), gradient=False),
    Sample("Min", [i32(0), [0]], reference=lambda x, a: np.int32(2**31 - 1), gradient=False),
    Sample("Min", [f64(2, 3, 2), [0, 2]], {"keep_dims": True}, reference=lambda x, a: x.min((0, 2), keepdims=True)),
    Sample("All", [booleans(3, 4), [1]], reference=lambda x, a: x.all(1), gradient=False),
    Sample("Any", [booleans(3, 4), [0, 1]], {"keep_dims": True}, reference=lambda x, a: x.any(keepdims=True), gradient=False),
    Sample("All", [booleans(0), [0]], reference=lambda x, a: np.True_, gradient=False),
    Sample("EuclideanNorm", [f64(2, 3), [1]], reference=lambda x, a: np.sqrt((x * x).sum(1))),
    Sample("EuclideanNorm", [np.array([3, 4], np.int32), [0]], reference=lambda x, a: np.int32(5), gradient=False),
]  # fmt: skip

SCANS = [
    Sample("Cumsum", [f64(3, 2), 0], reference=lambda x, a: x.cumsum(0)),
    Sample("Cumsum", [f64(3, 2), -1], {"exclusive": True}, reference=lambda x, a: x.cumsum(1) - x),
    Sample("Cumsum", [f64(3, 2), 0], {"reverse": True}, reference=lambda x, a: x[::-1].cumsum(0)[::-1]),
    Sample("Cumsum", [f64(4), 0], {"reverse": True, "exclusive": True}, reference=lambda x, a: x[::-1].cumsum()[::-1] - x),
    Sample("Cumsum", [u64(2**64 - 1, 3, 4), 0], reference=lambda x, a: u64(2**64 - 1, 2, 6), gradient=False),
    Sample("Cumsum", [f64(0, 2), 0], {"exclusive": True}, reference=lambda x, a: x),
    Sample("Cumsum", [f64(3), 1], raises=(InvalidArgumentError, "1")),
    Sample("Cumprod", [f64(3, 2), 0], reference=lambda x, a: x.cumprod(0)),
    Sample("Cumprod", [f64(3, 2), 1], {"exclusive": True, "reverse": True}, reference=lambda x, a: x[:, ::-1].cumprod(1)[:, ::-1] / x),
    Sample("CumulativeLogsumexp", [f64(3, 2), 0], reference=_logcumsumexp, gradient=False),
    Sample("ArgMax", [f32(3, 4), 1], reference=lambda x, a: x.argmax(1), gradient=False),
    Sample("ArgMax", [TIES, -1], {"output_type": "int32"}, reference=lambda x, a: np.int32([1, 0]), gradient=False),
    Sample("ArgMin", [i64(3, 4), 0], reference=lambda x, a: x.argmin(0), gradient=False),
    Sample("ArgMax", [u64(1, 2**63, 3), 0], reference=lambda x, a: np.int64(1), gradient=False),
    Sample("ArgMax", [booleans(5), 0], reference=lambda x, a: x.argmax(), gradient=False),
    Sample("ArgMax", [f32(0, 2), 0], raises=(InvalidArgumentError, "empty")),
]  # fmt: skip

COUNTS = [
    Sample("Bincount", [np.int32([1, 2, 5, 1]), np.int32(4), np.float32([])], reference=lambda a, s, w: np.float32([0, 2, 1, 0]), gradient=False),
    Sample("DenseBincount", [np.int32([[1, 2, 5, 1], [0, 0, 0, 0]]), np.int32(4), np.int64([])], reference=lambda a, s, w: np.int64([[0, 2, 1, 0], [4, 0, 0, 0]]), gradient=False),
    Sample("DenseBincount", [np.int64([1, 1, 3]), np.int64(4), np.float64([0.5, 1, 2])], reference=lambda a, s, w: np.float64([0, 1.5, 0, 2]), gradient=False),
    Sample("DenseBincount", [np.int64([1, 1, 3]), np.int64(4), np.float64([])], {"binary_output": True}, reference=lambda a, s, w: np.float64([0, 1, 0, 1]), gradient=False),
    Sample("DenseBincount", [np.int32([1, -1]), np.int32(4), np.float32([])], raises=(InvalidArgumentError, "non-negative")),
    Sample("HistogramFixedWidth", [np.float32([-1, 0, 0.1, 0.5, 0.99, 1, 2]), np.float32([0, 1]), np.int32(4)], reference=lambda v, r, n: np.int32([3, 0, 1, 3]), gradient=False),
    Sample("HistogramFixedWidth", [np.float32([0]), np.float32([1, 1]), np.int32(4)], raises=(InvalidArgumentError, "value_range")),
    Sample("Bucketize", [np.float32([-1, 0, 5, 100])], {"boundaries": [0.0, 5.0, 50.0]}, reference=lambda x: np.int32([0, 1, 2, 3]), gradient=False),
    Sample("Bucketize", [np.float32([-1])], {"boundaries": [5.0, 0.0]}, raises=(InvalidArgumentError, "sorted")),
]  # fmt: skip


@samples(REDUCTIONS + SCANS + COUNTS)
def test_sample(sample: Sample) -> None:
    """The op does what its reference does, in every mode."""
    check_sample(sample)


def gradient(build, x: np.ndarray, shape=None) -> np.ndarray:
    """The gradient of a scalar function at x, with a placeholder of `shape`."""
    with tf.Graph().as_default(), tf.Session() as session:
        holder = tf.placeholder(tf.float64, shape)
        return session.run(tf.gradients(build(holder), holder)[0], {holder: x})


def test_ties_share_the_gradient() -> None:
    """Elements that are equally large or small share the gradient."""
    assert gradient(lambda x: tf.reduce_max(x, 1), TIES).tolist() == [[0, 0.5, 0.5], [0.5, 0.5, 0]]
    assert gradient(lambda x: tf.reduce_min(x, [0]), TIES).tolist() == [[1, 0, 0], [0, 1, 1]]


@pytest.mark.parametrize("shape", [None, [None, None, None], [2, None, 2], [2, 3, 2]])
@pytest.mark.parametrize("axis", [None, 1, [0, 2], [-1]])
def test_gradients_with_unknown_shapes(shape, axis) -> None:
    """Gradients of reductions are right whether sizes are known when the graph is built or not."""
    x = f64(2, 3, 2)
    ones = np.ones_like(x)
    axes = tuple(range(3)) if axis is None else tuple(np.atleast_1d(axis))
    assert np.allclose(gradient(lambda t: tf.reduce_sum(t, axis), x, shape), ones)
    count = np.prod([x.shape[a] for a in axes])
    assert np.allclose(gradient(lambda t: tf.reduce_mean(t, axis), x, shape), ones / count)
    product = x.prod(axes, keepdims=True) / x
    assert np.allclose(gradient(lambda t: tf.reduce_prod(t, axis), x, shape), product)
    best = (x == x.max(axes, keepdims=True)).astype(float)
    assert np.allclose(gradient(lambda t: tf.reduce_max(t, axis), x, shape), best)


def test_gradient_with_axes_known_at_run_time() -> None:
    """The axes of a reduction may be fed; its gradient still spreads along them."""
    x = f64(2, 3)
    with tf.Graph().as_default(), tf.Session() as session:
        holder, axes = tf.placeholder(tf.float64, [None, None]), tf.placeholder(tf.int32, [None])
        weighted = tf.reduce_sum(tf.square(tf.reduce_sum(holder, axes)))
        found = session.run(tf.gradients(weighted, holder)[0], {holder: x, axes: [-1]})
    assert np.allclose(found, 2 * np.repeat(x.sum(1, keepdims=True), 3, 1))


def test_older_argument_names() -> None:
    """reduction_indices and keep_dims are accepted; two spellings at once are not."""
    x = f32(2, 3)
    assert run_built(lambda: tf.reduce_sum(x, reduction_indices=[1], keep_dims=True)).shape == (2, 1)
    assert run_built(lambda: tf.argmax(x, dimension=1)).shape == (2,)
    with pytest.raises(ValueError, match="both"):
        tf.reduce_sum(x, axis=0, reduction_indices=0)
    with pytest.raises(ValueError, match="both"):
        tf.reduce_max(x, 0, keepdims=True, keep_dims=True)


def test_variance_std_and_euclidean_norm() -> None:
    """Moments are those of the whole population; integers are refused."""
    x = f64(3, 4)
    assert np.allclose(run_built(lambda: tf.math.reduce_variance(x, 1)), x.var(1))
    assert np.allclose(run_built(lambda: tf.math.reduce_std(x, 0, keepdims=True)), x.std(0, keepdims=True))
    z = c128(4)
    assert np.allclose(run_built(lambda: tf.math.reduce_variance(z)), z.var())
    assert np.allclose(run_built(lambda: tf.math.reduce_euclidean_norm(x)), np.sqrt((x * x).sum()))
    with pytest.raises(TypeError, match="integer"):
        tf.math.reduce_variance([1, 2])


def test_counts() -> None:
    """count_nonzero counts numbers and strings; bincount sizes itself; zero_fraction is a share."""
    assert run_built(lambda: tf.count_nonzero([[0, 1, 2], [0, 0, 3]], 1)).tolist() == [2, 1]
    assert run_built(lambda: tf.count_nonzero(["", "a", " "])) == 2
    assert run_built(lambda: tf.count_nonzero(input=[0.0, 1.0], keep_dims=True, dtype=tf.int32)).tolist() == [1]
    assert run_built(lambda: tf.bincount([1, 1, 4])).tolist() == [0, 2, 0, 0, 1]
    assert run_built(lambda: tf.bincount([1, 1, 4], weights=[0.5, 1.0, 2.0], maxlength=3)).tolist() == [0, 1.5, 0]
    assert run_built(lambda: tf.bincount([1], minlength=4)).tolist() == [0, 1, 0, 0]
    assert run_built(lambda: tf.bincount(tf.constant([], tf.int32))).tolist() == []
    assert run_built(lambda: tf.nn.zero_fraction([0.0, 0.0, 1.0, 2.0])) == 0.5
    assert run_built(lambda: tf.histogram_fixed_width([0.0, 0.5, 9.0], [0.0, 1.0], nbins=2)).tolist() == [1, 2]


def test_cumulative_logsumexp_does_not_overflow() -> None:
    """Large numbers stay finite, and the exclusive form begins with minus infinity."""
    found = run_built(lambda: tf.math.cumulative_logsumexp(np.float64([1000.0, 1000.0, 0.0]), exclusive=True))
    assert found[0] == -np.inf and np.allclose(found[1:], [1000, 1000 + np.log(2)])
