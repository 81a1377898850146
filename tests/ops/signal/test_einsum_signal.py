"""Contractions and Fourier transforms."""

from __future__ import annotations

import numpy as np
import pytest

import stoker.compat.v1 as tf
from stoker._src.base.errors import InvalidArgumentError
from tests.ops.samples import Sample, c128, check_sample, f64, i32, samples
from tests.running import run_built


def einsum(equation: str, *inputs: np.ndarray, **kwargs) -> Sample:
    return Sample(
        "Einsum", [list(inputs)], {"equation": equation}, reference=lambda xs: np.einsum(equation, *xs), **kwargs
    )


EINSUMS = [
    einsum("ij,jk->ik", f64(2, 3), f64(3, 4)),
    einsum("bij,bjk->bik", f64(2, 2, 3), f64(2, 3, 2)),
    einsum("abc,cd->dab", f64(2, 2, 3), f64(3, 2)),
    einsum("ij->ji", f64(2, 3)),
    einsum("ij->", f64(2, 3)),
    einsum("ij->j", f64(2, 3)),
    einsum("ii->", f64(3, 3)),
    einsum("ii->i", f64(3, 3)),
    einsum("i,j->ij", f64(2), f64(3)),
    einsum("i,i->", f64(3), f64(3)),
    einsum("...ij,...jk->...ik", f64(2, 1, 2, 3), f64(3, 3, 2)),
    einsum("...ij,jk->...ik", f64(2, 2, 3), f64(3, 2)),
    einsum("ab,ab->a", f64(2, 3), f64(2, 3)),
    einsum("ijk,k->ij", f64(2, 3, 2), f64(2)),
    einsum("ij,k->k", f64(2, 3), f64(2)),
    einsum("ij,jk->ik", i32(2, 3), i32(3, 4), gradient=False),
    einsum("ij,jk->ik", c128(2, 3), c128(3, 4), gradient=False),
    Sample("Einsum", [[f64(2, 3), f64(4, 5)]], {"equation": "ij,jk->ik"}, raises=(InvalidArgumentError, "3 and 4")),
    Sample("Einsum", [[f64(2, 3)]], {"equation": "ij->ik"}, raises=(InvalidArgumentError, "output labels")),
    Sample("Einsum", [[f64(2, 3)]], {"equation": "ijk->i"}, raises=(InvalidArgumentError, "rank 2")),
]

L = np.array
TRANSFORMS = [
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
    Sample("FFT2D", [c128(3)], raises=(InvalidArgumentError, "rank")),
    Sample("IRFFT", [c128(2, 2), L([6], "i4")], {"Treal": "float64"}, raises=(InvalidArgumentError, "at least 4 but got: 2")),
]  # fmt: skip


@samples(EINSUMS + TRANSFORMS)
def test_sample(sample: Sample) -> None:
    """The op does what its reference does, in every mode."""
    check_sample(sample)


def test_einsum_function() -> None:
    """Outputs may be left out, more than two inputs are contracted in turn, gradients flow through all."""
    a, b, c = f64(2, 3), f64(3, 4), f64(4, 2)
    assert np.allclose(run_built(lambda: tf.einsum("ij,jk", a, b)), a @ b)
    assert np.allclose(run_built(lambda: tf.einsum("ij,jk,kl->il", a, b, c)), a @ b @ c)
    with tf.Graph().as_default(), tf.Session() as session:
        parts = [tf.constant(x) for x in (a, b, c)]
        found = session.run(tf.gradients(tf.einsum("ij,jk,kl->", *parts), parts[1])[0])
    assert np.allclose(found, np.outer(a.sum(0), c.sum(1)))
    with pytest.raises(ValueError, match="expecting 2"):
        tf.einsum("ij,jk->ik", a)
    with pytest.raises(TypeError, match="keyword"):
        tf.einsum("ij->ji", a, wrong=1)


@pytest.mark.parametrize("known", [True, False])
@pytest.mark.parametrize("axes", [0, 1, 2, [[1], [0]], [[0, 2], [1, 0]], [2, 1]])
def test_tensordot(axes, known) -> None:
    """The contraction is NumPy's, whether shapes are known or not."""
    a = f64(2, 2, 2)
    b = f64(2, 2, 2)
    with tf.Graph().as_default(), tf.Session() as session:
        x = tf.placeholder(tf.float64, a.shape if known else None)
        y = tf.placeholder(tf.float64, b.shape if known else None)
        found = session.run(tf.tensordot(x, y, axes), {x: a, y: b})
    assert np.allclose(found, np.tensordot(a, b, axes))


def test_tensordot_refuses_axes_that_do_not_fit() -> None:
    """Numbers of axes must agree and exist."""
    with pytest.raises(ValueError, match="larger than"):
        tf.tensordot(f64(2, 2), f64(2, 2), 3)
    with pytest.raises(ValueError, match="Different number"):
        tf.tensordot(f64(2, 2), f64(2, 2), [[0, 1], [0]])


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
