"""Samples of ops of this family that its other tables do not have."""

import numpy as np

from stoker._src.base.errors import InvalidArgumentError
from tests.ops.samples import Sample, check_sample, f32, f64, samples


def fake_quant(x, low, high, bits=8):
    """Nudges the range so that zero is exact, then rounds to the steps of the range."""
    steps = 2**bits - 1
    scale = (high - low) / steps
    zero = np.round(np.clip(-low / scale, 0, steps))
    low, high = -zero * scale, (steps - zero) * scale
    return (np.floor((np.clip(x, low, high) - low) / scale + 0.5) * scale + low).astype(np.float32)


X = f64(3, 4).astype(np.float32)


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


UNEVEN = np.array([0.3, -1.2, 0.7, 2, -0.1])


def quantized(x, *_):
    """Eight signed bits, scaled by the largest magnitude, which must be positive."""
    scale = 127 / np.abs(x).max()
    return np.round(x * scale) / scale


SAMPLES = [
    Sample("FakeQuantWithMinMaxArgs", [f32(3, 4)], {"min": -0.7, "max": 0.9}, reference=lambda x: fake_quant(x, -0.7, 0.9), gradient=False, atol=1e-5),
    Sample("FakeQuantWithMinMaxVars", [f32(3, 4), np.float32(-0.7), np.float32(0.9)], reference=fake_quant, gradient=False, atol=1e-5),
    Sample("FakeQuantWithMinMaxVarsPerChannel", [f32(3, 2), np.float32([-0.7, -1]), np.float32([0.9, 1])], reference=fake_quant, gradient=False, atol=1e-5),
    Sample("QuantizeAndDequantizeV2", [np.array([-1.0, 0.3, 1.0]), np.array(-1.0), np.array(1.0)], {"range_given": True}, gradient=False,
           reference=lambda x, a, b: np.round(x * 127) / 127),
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


@samples(SAMPLES)
def test_sample(sample: Sample) -> None:
    """Value, shapes, eager mode, gradient, aliasing and GraphDef of each sample."""
    check_sample(sample)
