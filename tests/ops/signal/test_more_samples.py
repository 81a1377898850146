"""Samples of ops of this family that its other tables do not have."""

import numpy as np

from stoker._src.base.errors import InvalidArgumentError
from tests.ops.samples import Sample, c128, check_sample, samples

RIPPLES = np.random.RandomState(2).randn(2, 4, 4).astype(np.complex64)


WAVES = c128(2, 3, 4, 5).astype(np.complex64)


SAMPLES = [
    Sample("BatchFFT", [RIPPLES], reference=np.fft.fft, gradient=False, rtol=1e-4, atol=1e-4),
    Sample("BatchIFFT2D", [RIPPLES], reference=np.fft.ifft2, gradient=False, rtol=1e-4, atol=1e-4),
    Sample("BatchIFFT", [WAVES], reference=np.fft.ifft),
    Sample("BatchFFT2D", [WAVES], reference=np.fft.fft2, rtol=1e-4, atol=1e-5),
    Sample("BatchFFT3D", [WAVES], reference=lambda x: np.fft.fftn(x, axes=(1, 2, 3)), rtol=1e-4, atol=1e-5),
    Sample("BatchIFFT3D", [WAVES], reference=lambda x: np.fft.ifftn(x, axes=(1, 2, 3)), atol=1e-5),
    Sample("IRFFT3D", [WAVES, [3, 4, 8]], gradient=False, reference=lambda x, n: np.fft.irfftn(x, n, axes=(1, 2, 3)), atol=1e-5),
    Sample("IRFFT3D", [WAVES, [3, -4, 8]], raises=(InvalidArgumentError, "-4|>= 0|negative")),
]  # fmt: skip


@samples(SAMPLES)
def test_sample(sample: Sample) -> None:
    """Value, shapes, eager mode, gradient, aliasing and GraphDef of each sample."""
    check_sample(sample)
