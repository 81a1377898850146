"""Samples of the image ops. (Their values against TensorFlow's over many shapes and dtypes: tests/image/test_golden.py.)"""

import numpy as np

import stoker.compat.v1 as tf
from stoker._src.base.errors import FailedPreconditionError, InvalidArgumentError, OutOfRangeError
from tests.ops.samples import Sample, check_sample, f32, samples

SIZE = np.array([3, 4], np.int32)
BOXES = np.array([[0, 0, 1, 1], [0.1, 0.2, 0.8, 0.9]], np.float32)
SCORES = np.array([0.9, 0.8], np.float32)
INDICES = np.array([0, 1], np.int32)
MOST, HALF, NONE = np.int32(2), np.float32(0.5), np.float32(0.0)


def unit(*shape):
    return np.random.RandomState(5).uniform(0.05, 0.95, shape).astype(np.float32)


def nearest(x, size):
    rows, columns = (np.arange(new) * old // new for new, old in zip(size, x.shape[1:3]))
    return x[:, rows][:, :, columns]


def area_of_halves(x, size, *_):
    batch, height, width, channels = x.shape
    return x.reshape(batch, size[0], height // size[0], size[1], width // size[1], channels).mean((2, 4))


def contrast(x, factor):
    mean = x.mean((-3, -2), keepdims=True)
    return (x - mean) * factor + mean


def saturated(x, scale):
    """Colours moved along the line from their gray, which is their largest channel."""
    value = x.max(-1, keepdims=True)
    saturation = (value - x.min(-1, keepdims=True)) / value
    return value - (value - x) * np.minimum(saturation * scale, 1) / saturation


def hsv(x):
    import colorsys

    return np.array([colorsys.rgb_to_hsv(*pixel) for pixel in x.reshape(-1, 3)]).reshape(x.shape)


def rgb(x):
    import colorsys

    return np.array([colorsys.hsv_to_rgb(*pixel) for pixel in x.reshape(-1, 3)]).reshape(x.shape)


def turned(x, delta):
    wide = hsv(x)
    wide[..., 0] = (wide[..., 0] + delta) % 1
    return rgb(wide)


SAMPLES = [
    Sample("ResizeNearestNeighbor", [f32(2, 6, 8, 3), SIZE], reference=nearest),
    Sample("ResizeNearestNeighbor", [np.zeros((2, 6), np.float32), SIZE], raises=((ValueError, InvalidArgumentError), "rank 4|4-dim")),
    Sample("ResizeNearestNeighborGrad", [f32(2, 6, 8, 3), SIZE], reference=lambda g, size: area_of_halves(g, size) * 4, gradient=False),
    Sample("ResizeBilinear", [f32(2, 6, 8, 3), SIZE], reference=nearest),
    Sample("ResizeBilinear", [f32(2, 6, 8, 3), SIZE], {"half_pixel_centers": True}, reference=area_of_halves),
    Sample("ResizeBilinear", [f32(1, 2, 2, 1), np.array([0, 1], np.int32)], raises=(InvalidArgumentError, "must be positive")),
    Sample("ResizeBilinear", [f32(1, 0, 2, 1), SIZE], raises=(InvalidArgumentError, "non-zero size")),
    Sample("ResizeBilinearGrad", [f32(2, 3, 4, 3), f32(2, 6, 8, 3)], {"half_pixel_centers": True}, reference=lambda g, x: g.repeat(2, 1).repeat(2, 2) / 4, gradient=False),
    Sample("ResizeBicubic", [f32(2, 6, 8, 3), SIZE], reference=nearest),
    Sample("ResizeBicubicGrad", [f32(2, 6, 8, 3), f32(2, 6, 8, 3)], reference=lambda g, x: g, gradient=False),
    Sample("ResizeArea", [f32(2, 6, 8, 3), SIZE], reference=area_of_halves, gradient=False),
    Sample("ScaleAndTranslate", [f32(2, 6, 8, 3), SIZE, np.array([0.5, 0.5], np.float32), np.zeros(2, np.float32)], {"kernel_type": "box"}, reference=area_of_halves),
    Sample("ScaleAndTranslate", [f32(1, 2, 2, 1), SIZE, np.array([0.0, 0.5], np.float32), np.zeros(2, np.float32)], raises=(InvalidArgumentError, "greater than zero")),
    Sample("ScaleAndTranslate", [f32(1, 2, 2, 1), SIZE, np.array([1, 1], np.float32), np.zeros(2, np.float32)], {"kernel_type": "x"}, raises=(InvalidArgumentError, "Unrecognized kernel")),
    Sample("ScaleAndTranslateGrad", [f32(2, 3, 4, 3), f32(2, 6, 8, 3), np.array([0.5, 0.5], np.float32), np.zeros(2, np.float32)], {"kernel_type": "box"}, reference=lambda g, x, *_: g.repeat(2, 1).repeat(2, 2) / 4, gradient=False),
    Sample("RGBToHSV", [unit(2, 3, 3)], reference=hsv),
    Sample("RGBToHSV", [unit(2, 4)], raises=(FailedPreconditionError, "3")),
    Sample("HSVToRGB", [unit(2, 3, 3)], reference=rgb, gradient=False),
    Sample("AdjustContrastv2", [f32(2, 4, 5, 3), np.float32(1.7)], reference=contrast, gradient=False),
    Sample("AdjustContrastv2", [f32(4, 5), np.float32(1.7)], raises=((ValueError, InvalidArgumentError), "at least")),
    Sample("AdjustContrast", [unit(2, 4, 5, 3), np.float32(3), np.float32(0.3), np.float32(0.6)], reference=lambda x, f, low, high: contrast(x, f).clip(low, high), gradient=False),
    Sample("AdjustHue", [unit(2, 4, 5, 3), np.float32(0.3)], reference=turned, gradient=False),
    Sample("AdjustHue", [unit(2, 4, 5, 4), np.float32(0.3)], raises=(InvalidArgumentError, "3 channels")),
    Sample("AdjustSaturation", [unit(2, 4, 5, 3), np.float32(0.7)], reference=saturated, gradient=False),
    Sample("CropAndResize", [f32(2, 5, 7, 3), np.array([[0, 0, 1, 1], [1, 1, 0, 0]], np.float32), INDICES, np.array([5, 7], np.int32)], reference=lambda x, *_: np.stack([x[0], x[1, ::-1, ::-1]]), atol=1e-5, gradient=False),
    Sample("CropAndResize", [f32(2, 5, 7, 3), BOXES, np.array([0, 2], np.int32), SIZE], raises=(OutOfRangeError, "outside")),
    Sample("CropAndResize", [f32(2, 5, 7, 3), BOXES[:, :3], INDICES, SIZE], raises=(InvalidArgumentError, "4")),
    Sample("CropAndResizeGradImage", [f32(2, 5, 7, 3), np.array([[0, 0, 1, 1], [0, 0, 1, 1]], np.float32), INDICES, np.array([2, 5, 7, 3], np.int32)], {"T": tf.float32}, reference=lambda g, *_: g, gradient=False),
    Sample("ImageProjectiveTransformV2", [f32(2, 5, 7, 3), np.array([[1, 0, 2, 0, 1, 1, 0, 0]], np.float32), np.array([3, 4], np.int32)], {"interpolation": "NEAREST"}, reference=lambda x, *_: x[:, 1:4, 2:6], gradient=False),
    Sample("ImageProjectiveTransformV2", [f32(2, 5, 7, 3), np.array([[1, 0, 0.5, 0, 1, 0, 0, 0]], np.float32), np.array([5, 6], np.int32)], {"interpolation": "BILINEAR"}, reference=lambda x, *_: (x[:, :, :-1] + x[:, :, 1:]) / 2, gradient=False),
    Sample("ImageProjectiveTransformV2", [f32(2, 5, 7, 3), np.zeros((1, 8), np.float32), np.array([0, 4], np.int32)], {"interpolation": "NEAREST"}, raises=(InvalidArgumentError, "positive")),
    Sample("CropAndResizeGradBoxes", [f32(2, 3, 4, 3), f32(2, 5, 7, 3), BOXES, INDICES], gradient=False),
    Sample("NonMaxSuppression", [BOXES, SCORES, MOST], reference=lambda *_: np.array([0, 1], np.int32), static=False, gradient=False),
    Sample("NonMaxSuppressionV2", [BOXES, SCORES, MOST, np.float32(0.4)], reference=lambda *_: np.array([0], np.int32), static=False, gradient=False),
    Sample("NonMaxSuppressionV3", [BOXES, SCORES, MOST, HALF, NONE], reference=lambda *_: np.array([0, 1], np.int32), static=False, gradient=False),
    Sample("NonMaxSuppressionV3", [BOXES, SCORES, MOST, np.float32(1.5), NONE], raises=(InvalidArgumentError, "in .0, 1.")),
    Sample("NonMaxSuppressionV4", [BOXES, SCORES, np.int32(3), np.float32(0.4), NONE], {"pad_to_max_output_size": True}, reference=lambda *_: (np.array([0, 0, 0], np.int32), np.int32(1)), gradient=False),
    Sample("NonMaxSuppressionV5", [BOXES, SCORES, MOST, HALF, NONE, HALF], reference=lambda *_: (np.array([0, 1], np.int32), np.float32([0.9, 0.8 * np.exp(-(0.49**2))]), np.int32(2)), static=False, gradient=False),
    Sample("NonMaxSuppressionWithOverlaps", [np.eye(2, dtype=np.float32), SCORES, MOST, HALF, NONE], reference=lambda *_: np.array([0, 1], np.int32), static=False, gradient=False),
    Sample("CombinedNonMaxSuppression", [BOXES[None, :, None], SCORES[None, :, None], MOST, np.int32(3), np.float32(0.4), NONE], reference=lambda *_: (np.float32([[[0, 0, 1, 1], [0] * 4, [0] * 4]]), np.float32([[0.9, 0, 0]]), np.zeros((1, 3), np.float32), np.int32([1])), gradient=False),
    Sample("DrawBoundingBoxes", [np.zeros((1, 3, 3, 1), np.float32), np.array([[[0, 0, 1, 1]]], np.float32)], reference=lambda *_: np.float32([[1, 1, 1], [1, 0, 1], [1, 1, 1]]).reshape(1, 3, 3, 1), gradient=False),
    Sample("DrawBoundingBoxesV2", [np.zeros((1, 3, 3, 1), np.float32), np.array([[[0, 0, 1, 1]]], np.float32), np.array([[0.5]], np.float32)], reference=lambda *_: np.float32([[0.5] * 3, [0.5, 0, 0.5], [0.5] * 3]).reshape(1, 3, 3, 1), gradient=False),
    Sample("DrawBoundingBoxes", [np.zeros((1, 3, 3, 2), np.float32), np.array([[[0, 0, 1, 1]]], np.float32)], raises=(InvalidArgumentError, "Channel depth")),
    Sample("ExtractGlimpse", [f32(2, 5, 6, 3), np.array([3, 4], np.int32), np.zeros((2, 2), np.float32)], reference=lambda x, *_: x[:, 1:4, 1:5], gradient=False),
    Sample("ExtractGlimpseV2", [f32(2, 5, 6, 3), np.array([3, 4], np.int32), np.zeros((2, 2), np.float32)], {"centered": False}, reference=lambda x, *_: x[:, :3, :4], gradient=False),
    Sample("ExtractGlimpse", [f32(2, 5, 6, 3), np.array([3, 4], np.int32), np.zeros((1, 2), np.float32)], raises=(InvalidArgumentError, "batch|equal|Dimension")),
    Sample("StatelessSampleDistortedBoundingBox", [np.array([5, 6, 3], np.int32), np.array([[[0, 0, 1, 1]]], np.float32), np.float32(1), np.array([1, 2], np.int32)], reference=lambda *_: (np.int32([0, 0, 0]), np.int32([5, 6, -1]), np.float32([[[0, 0, 1, 1]]])), gradient=False),
]  # fmt: skip


@samples(SAMPLES)
def test_sample(sample):
    """Each op computes what NumPy does, in graphs and eagerly, with sizes known and unknown, and travels in GraphDefs."""
    check_sample(sample)
