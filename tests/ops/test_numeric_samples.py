"""Samples of factorisations, Fourier transforms, quantization, counter-based random numbers and images."""

import io

import numpy as np
from PIL import Image

from stoker._src.base.errors import InvalidArgumentError
from tests.ops.samples import Sample, c128, check_sample, f64, positive, samples

SQUARE = np.random.RandomState(4).rand(2, 3, 3) + 2 * np.eye(3)
SYMMETRIC = SQUARE + np.swapaxes(SQUARE, 1, 2)
FACTOR = np.linalg.cholesky(SYMMETRIC)
WAVES = c128(2, 3, 4, 5).astype(np.complex64)
X = f64(3, 4).astype(np.float32)
UNEVEN = np.array([0.3, -1.2, 0.7, 2, -0.1])
SEED, KEY, COUNTER, PHILOX = np.array([1, 2]), np.array([5], np.uint64), np.array([7, 0], np.uint64), np.int32(1)
PIXELS = np.random.RandomState(5).randint(0, 256, (6, 8, 3)).astype(np.uint8)


def inside(low, high):
    """The gradient of a clamped value: passed on between the ends of the nudged range."""
    scale = (high - low) / 255
    zero = np.round(-low / scale)
    low, high = -zero * scale, (255 - zero) * scale
    return lambda x: (x >= low) & (x <= high), lambda x: x < low, lambda x: x > high


WITHIN, BELOW, ABOVE = inside(np.float32(-0.7), np.float32(0.9))


def split_gradient(g, x, low, high, axis=None):
    return (
        np.where(WITHIN(x), g, 0),
        np.where(BELOW(x), g, 0).sum(axis),
        np.where(ABOVE(x), g, 0).sum(axis),
    )


def quantized(x, *_):
    """Eight signed bits, scaled by the largest magnitude, which must be positive."""
    scale = 127 / np.abs(x).max()
    return np.round(x * scale) / scale


def encoded(kind):
    stream = io.BytesIO()
    Image.fromarray(PIXELS).save(stream, kind)
    return np.array(stream.getvalue(), object)


PNG, JPEG, GIF, BMP = map(encoded, ("PNG", "JPEG", "GIF", "BMP"))

LINALG = [
    Sample("Qr", [SQUARE], gradient=True, reference=lambda x: tuple(np.linalg.qr(x))),
    Sample("Qr", [f64(4, 2)], {"full_matrices": True}, gradient=False),
    Sample("Svd", [f64(3, 2)], {"compute_uv": False}, static=True, reference=lambda x: (np.linalg.svd(x, compute_uv=False), np.zeros(0), np.zeros(0)), gradient=False),
    Sample("Svd", [SQUARE], gradient=False),
    Sample("Eig", [SYMMETRIC], {"Tout": "complex128"}, gradient=False),
    Sample("Lu", [np.array([[1.0, 2], [4, 3]])], gradient=False, reference=lambda x: (np.array([[4, 3], [0.25, 1.25]]), np.array([1, 0], np.int32))),
    Sample("Lu", [np.zeros((2, 2))], raises=(InvalidArgumentError, "invertible")),
    Sample("BatchCholeskyGrad", [FACTOR, np.tril(f64(2, 3, 3))], gradient=False),
    Sample("BatchSelfAdjointEigV2", [SYMMETRIC], {"compute_v": False}, gradient=False, reference=lambda x: (np.linalg.eigvalsh(x), np.zeros(0))),
    Sample("BatchSelfAdjointEig", [SYMMETRIC], gradient=False),
    Sample("BatchSvd", [SQUARE], {"compute_uv": False}, gradient=False, reference=lambda x: (np.linalg.svd(x, compute_uv=False), np.zeros(0), np.zeros(0))),
    Sample("Conj", [c128(2, 3)], reference=np.conj),
    Sample("BatchIFFT", [WAVES], reference=np.fft.ifft),
    Sample("BatchFFT2D", [WAVES], reference=np.fft.fft2, rtol=1e-4, atol=1e-5),
    Sample("BatchFFT3D", [WAVES], reference=lambda x: np.fft.fftn(x, axes=(1, 2, 3)), rtol=1e-4, atol=1e-5),
    Sample("BatchIFFT3D", [WAVES], reference=lambda x: np.fft.ifftn(x, axes=(1, 2, 3)), atol=1e-5),
    Sample("IRFFT3D", [WAVES, [3, 4, 8]], gradient=False, reference=lambda x, n: np.fft.irfftn(x, n, axes=(1, 2, 3)), atol=1e-5),
    Sample("IRFFT3D", [WAVES, [3, -4, 8]], raises=(InvalidArgumentError, "-4|>= 0|negative")),
]  # fmt: skip

QUANTIZATION = [
    Sample("FakeQuantWithMinMaxArgsGradient", [X, X[::-1].copy()], {"min": -0.7, "max": 0.9}, gradient=False, reference=lambda g, x: np.where(WITHIN(x), g, 0)),
    Sample("FakeQuantWithMinMaxVarsGradient", [X, X[::-1].copy(), np.float32(-0.7), np.float32(0.9)], gradient=False, reference=split_gradient),
    Sample("FakeQuantWithMinMaxVarsPerChannelGradient", [X, X[::-1].copy(), np.full(4, -0.7, np.float32), np.full(4, 0.9, np.float32)], gradient=False,
           reference=lambda g, x, a, b: split_gradient(g, x, a, b, axis=0)),
    Sample("QuantizeAndDequantize", [UNEVEN], gradient=False, reference=quantized),
    Sample("QuantizeAndDequantizeV3", [UNEVEN, np.float64(0), np.float64(0), np.int32(8)], {"range_given": False}, gradient=False, reference=quantized),
    Sample("QuantizeAndDequantizeV4", [UNEVEN, np.float64(0), np.float64(0)], gradient=False, reference=quantized),
    Sample("QuantizeAndDequantizeV4Grad", [f64(3), np.array([-2.0, 0.5, 3]), np.float64(-1), np.float64(1)], gradient=False,
           reference=lambda g, x, a, b: (g * (np.abs(x) <= 1), np.float64(0), np.float64(0))),
    Sample("QuantizeV2", [np.array([0, 0.5, 1], np.float32), np.float32(0), np.float32(1)], {"T": "quint8"}, gradient=False,
           reference=lambda *_: (np.array([0, 128, 255]), np.float32(0), np.float32(1))),
    Sample("QuantizeV2", [X, np.float32(1), np.float32(-1)], {"T": "quint8"}, raises=(InvalidArgumentError, "range")),
]  # fmt: skip

RANDOM = [
    Sample("StatelessRandomGetKeyCounter", [SEED]),
    Sample("StatelessRandomGetKeyCounterAlg", [SEED]),
    Sample("StatelessRandomUniformV2", [[2, 3], KEY, COUNTER, PHILOX]),
    Sample("StatelessRandomNormalV2", [[2, 3], KEY, COUNTER, PHILOX]),
    Sample("StatelessTruncatedNormalV2", [[2, 3], KEY, COUNTER, PHILOX]),
    Sample("StatelessRandomUniformFullInt", [[2, 3], SEED]),
    Sample("StatelessRandomUniformFullIntV2", [[2, 3], KEY, COUNTER, PHILOX]),
    Sample("StatelessRandomUniformIntV2", [[2, 3], KEY, COUNTER, PHILOX, np.int32(4), np.int32(5)], reference=lambda *_: np.full((2, 3), 4, np.int32)),
    Sample("StatelessRandomUniformIntV2", [[2], KEY, COUNTER, PHILOX, np.int32(5), np.int32(5)], raises=(InvalidArgumentError, "5")),
    Sample("StatelessMultinomial", [np.array([[0.0, -1e9], [-1e9, 0]]), np.int32(3), SEED], gradient=False, reference=lambda *_: np.array([[0] * 3, [1] * 3])),
    Sample("StatelessShuffle", [np.full(4, 2.0), KEY, COUNTER, PHILOX], gradient=False, reference=lambda x, *_: x),
    Sample("StatelessRandomGammaV3", [[4], KEY, COUNTER, PHILOX, positive()], gradient=False),
    Sample("StatelessRandomBinomial", [[3], SEED, np.float64(6), np.float64(1)], gradient=False, reference=lambda *_: np.array([6, 6, 6])),
    Sample("StatelessParameterizedTruncatedNormal", [[3], SEED, f64(), positive(), np.float64(-1), np.float64(2)], gradient=False),
    Sample("StatelessRandomUniformV2", [[-1], KEY, COUNTER, PHILOX], raises=(InvalidArgumentError, "-1|negative|>= 0")),
]  # fmt: skip

IMAGES = [
    Sample("DecodePng", [PNG], static=False, reference=lambda x: PIXELS),
    Sample("DecodeBmp", [BMP], static=False, reference=lambda x: PIXELS),
    Sample("DecodeImage", [PNG], static=False, reference=lambda x: PIXELS),
    Sample("DecodeGif", [GIF], static=False),
    Sample("DecodeJpeg", [JPEG], {"channels": 3}, static=False),
    Sample("DecodeAndCropJpeg", [JPEG, [0, 0, 4, 5]], {"channels": 3}, static=False),
    Sample("ExtractJpegShape", [JPEG], reference=lambda x: np.array([6, 8, 3], np.int32)),
    Sample("EncodePng", [PIXELS], gradient=False),
    Sample("EncodeJpeg", [PIXELS], gradient=False),
    Sample("EncodeJpegVariableQuality", [PIXELS, np.int32(50)], gradient=False),
    Sample("DecodePng", [np.array(b"not an image", object)], raises=(InvalidArgumentError, "PNG|image")),
]  # fmt: skip


@samples(LINALG + QUANTIZATION + RANDOM + IMAGES)
def test_sample(sample) -> None:
    """The op's value, shape, gradient, eager form and GraphDef agree with each other and with NumPy."""
    check_sample(sample)
