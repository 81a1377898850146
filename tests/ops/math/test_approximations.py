"""Isotonic regression, the largest elements, Sobol's sequence, and Fourier transforms over any axes."""

import numpy as np
import pytest

import stoker as tf2
from stoker._src.base.errors import InvalidArgumentError
from tests.ops.samples import WHEN_BUILT, Sample, c128, check_sample, f32, f64, samples

ROW = np.array([[3, 1, 2, 4, 1.0]])
RUNS = (np.array([[3, 7 / 3, 7 / 3, 7 / 3, 1]]), np.array([[0, 1, 1, 1, 2]]))
WIDE = {"Tcomplex": "complex128"}
# Points of TensorFlow 2.21.
SOBOL = np.array(
    [[0.5, 0.5, 0.5], [0.75, 0.25, 0.25], [0.25, 0.75, 0.75], [0.375, 0.375, 0.625], [0.875, 0.875, 0.125]]
)


def largest(x, k, axis=-1):
    """The k largest along an axis, and where they are."""
    order = np.flip(np.argsort(x, axis), axis).take(np.arange(k), axis)
    return np.take_along_axis(x, order, axis), order.astype(np.int32)


SAMPLES = [
    Sample("IsotonicRegression", [ROW], {"output_dtype": "float64"}, reference=lambda x: RUNS),
    Sample("IsotonicRegression", [np.array([[1, 2, 2, 5], [4, 3, 2, 1]], np.float64)], {"output_dtype": "float64"},
           reference=lambda x: (np.array([[2.5] * 4, [4, 3, 2, 1]]), np.array([[0] * 4, [0, 1, 2, 3]]))),
    Sample("IsotonicRegression", [np.zeros((2, 0))], {"output_dtype": "float64"}, reference=lambda x: (x, x.astype(np.int32))),
    Sample("ApproxTopK", [f32(2, 5)], {"k": 2}, reference=lambda x: largest(x, 2), gradient=False),
    Sample("ApproxTopK", [f32(4, 3)], {"k": 2, "reduction_dimension": 0, "is_max_k": False}, gradient=False,
           reference=lambda x: (lambda found: (-found[0], found[1]))(largest(-x, 2, 0))),
    Sample("ApproxTopK", [f32(2, 5)], {"k": 7}, raises=(InvalidArgumentError, "Had 5, needed 7")),
    Sample("SobolSample", [3, 5, 0], reference=lambda *_: SOBOL),
    Sample("SobolSample", [2, 2, 3], {"dtype": "float64"}, reference=lambda *_: np.array([[0.375, 0.375], [0.875, 0.875]])),
    Sample("SobolSample", [0, 2, 0], raises=(InvalidArgumentError, "at least one")),
    Sample("SobolSample", [2, 2, -1], raises=(InvalidArgumentError, "non-negative")),
    Sample("FFTND", [c128(2, 3, 4), [3, 4], [1, 2]], WIDE, reference=lambda x, n, a: np.fft.fftn(x, n, a)),
    Sample("FFTND", [c128(2, 3, 4), [5, 2], [0, -1]], WIDE, reference=lambda x, n, a: np.fft.fftn(x, n, a)),
    Sample("IFFTND", [c128(2, 3, 4), [2, 4], [0, 2]], WIDE, reference=lambda x, n, a: np.fft.ifftn(x, n, a)),
    Sample("RFFTND", [f64(2, 3, 4), [2, 3], [0, 1]], WIDE, reference=lambda x, n, a: np.fft.rfftn(x, n, a), gradient=False),
    Sample("IRFFTND", [c128(2, 3, 4), [2, 6], [0, 2]], {"Treal": "float64"}, reference=lambda x, n, a: np.fft.irfftn(x, n, a)),
    Sample("FFTND", [c128(2, 3), [2], [5]], WIDE, raises=(WHEN_BUILT, "rank 2")),
    Sample("FFTND", [c128(2, 3), [2, 2], [1]], WIDE, raises=(WHEN_BUILT, "as many")),
]  # fmt: skip


@samples(SAMPLES)
def test_sample(sample) -> None:
    """The op's value, shape, gradient, eager form and GraphDef agree with each other and with NumPy."""
    check_sample(sample)


def test_isotonic_regression(eager):
    """Rising sequences, other axes, and integers."""
    rising, runs = tf2.nn.isotonic_regression(ROW, decreasing=False)
    np.testing.assert_allclose(rising, [[2, 2, 2, 2.5, 2.5]])
    np.testing.assert_array_equal(runs, [[0, 0, 1, 2, 2]])
    falling, runs = tf2.nn.isotonic_regression(tf2.constant([[3, 1], [2, 4]]), axis=0)
    assert falling.dtype == tf2.float64
    np.testing.assert_allclose(falling, [[3, 2.5], [2, 2.5]])
    np.testing.assert_array_equal(runs, [[0, 0], [1, 0]])


def test_largest_and_smallest(eager):
    """Values, places and gradients."""
    x = tf2.constant([[3.0, 1, 2], [4, 6, 5]])
    with tf2.GradientTape() as tape:
        tape.watch(x)
        values, places = tf2.math.approx_max_k(x, 2)
        total = tf2.reduce_sum(values * values)
    np.testing.assert_array_equal(values, [[3, 2], [6, 5]])
    np.testing.assert_array_equal(places, [[0, 2], [1, 2]])
    np.testing.assert_array_equal(tape.gradient(total, x), [[6, 0, 4], [0, 12, 10]])
    values, places = tf2.nn.approx_min_k(x, 1, reduction_dimension=0)
    np.testing.assert_array_equal(values, [[3, 1, 2]])
    np.testing.assert_array_equal(places, [[0, 0, 0]])


def test_transforms(eager):
    """All axes and their own lengths by default."""
    x = f32(2, 3, 4)
    np.testing.assert_allclose(tf2.signal.fftnd(x.astype(np.complex64)), np.fft.fftn(x), rtol=1e-4, atol=1e-4)
    np.testing.assert_allclose(tf2.signal.rfftnd(x, axes=[0, 2]), np.fft.rfftn(x, axes=[0, 2]), rtol=1e-4, atol=1e-4)
    back = tf2.signal.irfftnd(tf2.signal.rfftnd(x))
    np.testing.assert_allclose(back, x, rtol=1e-4, atol=1e-5)
    with pytest.raises(NotImplementedError, match="norm"):
        tf2.signal.fftnd(x.astype(np.complex64), norm="ortho")


def test_sobol(eager):
    """The sequence without the points that are skipped."""
    np.testing.assert_array_equal(tf2.math.sobol_sample(3, 2, skip=3), SOBOL[3:])
