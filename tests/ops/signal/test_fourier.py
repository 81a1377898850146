"""Fourier transforms."""

from __future__ import annotations

import numpy as np
import pytest

import stoker.compat.v1 as tf
from stoker._src.base.errors import InvalidArgumentError
from tests.ops.samples import WHEN_BUILT, Sample, c128, check_sample, f64, samples
from tests.running import run_built

L = np.array


SAMPLES = [
    Sample("FFT", [c128(2, 5)], reference=np.fft.fft, gradient=False),
    Sample("IFFT", [c128(2, 5)], reference=np.fft.ifft, gradient=False),
    Sample("FFT2D", [c128(2, 3, 4)], reference=np.fft.fft2, gradient=False),
    Sample("IFFT2D", [c128(2, 3, 4)], reference=np.fft.ifft2, gradient=False),
    Sample("FFT3D", [c128(2, 3, 4)], reference=np.fft.fftn, gradient=False),
    Sample("IFFT3D", [c128(2, 3, 4)], reference=np.fft.ifftn, gradient=False),
    Sample("RFFT", [f64(2, 6), L([6], "i4")], {"Tcomplex": "complex128"}, reference=lambda x, n: np.fft.rfft(x), gradient=False),
    Sample("RFFT", [f64(2, 6), L([4], "i4")], {"Tcomplex": "complex128"}, reference=lambda x, n: np.fft.rfft(x, 4), gradient=False),
    Sample("IRFFT", [c128(2, 4), L([6], "i4")], {"Treal": "float64"}, reference=lambda x, n: np.fft.irfft(x, 6), gradient=False),
    Sample("IRFFT", [c128(2, 4), L([7], "i4")], {"Treal": "float64"}, reference=lambda x, n: np.fft.irfft(x, 7), gradient=False),
    Sample("RFFT2D", [f64(2, 3, 4), L([3, 4], "i4")], {"Tcomplex": "complex128"}, reference=lambda x, n: np.fft.rfft2(x), gradient=False),
    Sample("IRFFT2D", [c128(3, 3), L([3, 4], "i4")], {"Treal": "float64"}, reference=lambda x, n: np.fft.irfft2(x, (3, 4)), gradient=False),
    Sample("RFFT3D", [f64(2, 3, 4), L([2, 3, 4], "i4")], {"Tcomplex": "complex128"}, reference=lambda x, n: np.fft.rfftn(x), gradient=False),
    Sample("FFT2D", [c128(3)], raises=(WHEN_BUILT, "rank")),
    Sample("IRFFT", [c128(2, 2), L([6], "i4")], {"Treal": "float64"}, raises=(InvalidArgumentError, "at least 4 but got: 2")),
]  # fmt: skip


def test_transform_functions() -> None:
    """fft_length cuts or pads; it defaults to the size of the input."""
    x, z = f64(3, 5), c128(3, 4)
    assert np.allclose(run_built(lambda: tf.signal.rfft(x)), np.fft.rfft(x))
    assert np.allclose(run_built(lambda: tf.signal.rfft(x, [8])), np.fft.rfft(x, 8))
    # Arrays are taken as complex64 unless they cannot be.
    assert np.allclose(run_built(lambda: tf.signal.irfft(z)), np.fft.irfft(z), atol=1e-6)
    assert np.allclose(run_built(lambda: tf.signal.irfft(z, [9])), np.fft.irfft(z, 9), atol=1e-6)
    assert np.allclose(run_built(lambda: tf.signal.irfft2d(tf.signal.rfft2d(x), [3, 5])), x)
    assert run_built(lambda: tf.signal.fft(np.complex64(z))).dtype == np.complex64
    assert run_built(lambda: tf.fft(np.complex64(z))).dtype == np.complex64


@pytest.mark.parametrize(
    "build",
    [
        lambda x: tf.abs(tf.signal.fft(tf.cast(x, tf.complex128))),
        lambda x: tf.abs(tf.signal.ifft2d(tf.cast(x, tf.complex128))),
        lambda x: tf.abs(tf.signal.rfft(x)),
        lambda x: tf.abs(tf.signal.rfft(x, [4])),
        lambda x: tf.abs(tf.signal.rfft2d(x)),
        lambda x: tf.signal.irfft(tf.complex(x, 2 * x)),
        lambda x: tf.signal.irfft(tf.complex(x, 2 * x), [7]),
        lambda x: tf.signal.irfft2d(tf.complex(x, 2 * x)),
    ],
)
def test_gradients_of_transforms(build) -> None:
    """Gradients agree with finite differences."""
    value = f64(3, 5)
    with tf.Graph().as_default(), tf.Session() as session:
        x = tf.placeholder(tf.float64, value.shape)
        y = build(x)
        weights = np.random.RandomState(0).rand(*y.shape.as_list())
        total = tf.reduce_sum(y * weights)
        found = session.run(tf.gradients(total, x)[0], {x: value})
        for index in np.ndindex(*value.shape):
            up, down = value.copy(), value.copy()
            up[index] += 1e-6
            down[index] -= 1e-6
            slope = (session.run(total, {x: up}) - session.run(total, {x: down})) / 2e-6
            np.testing.assert_allclose(found[index], slope, rtol=1e-4, atol=1e-6)


@samples(SAMPLES)
def test_sample(sample: Sample) -> None:
    """Value, shapes, eager mode, gradient, aliasing and GraphDef of each sample."""
    check_sample(sample)
