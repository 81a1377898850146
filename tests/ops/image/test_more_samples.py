"""Samples of ops of this family that its other tables do not have."""

import io

import numpy as np
from PIL import Image

from stoker._src.base.errors import InvalidArgumentError
from tests.ops.samples import Sample, check_sample, samples

PIXELS = np.random.RandomState(5).randint(0, 256, (6, 8, 3)).astype(np.uint8)


def encoded(kind):
    stream = io.BytesIO()
    Image.fromarray(PIXELS).save(stream, kind)
    return np.array(stream.getvalue(), object)


PNG, JPEG, GIF, BMP = map(encoded, ("PNG", "JPEG", "GIF", "BMP"))


SAMPLES = [
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


@samples(SAMPLES)
def test_sample(sample: Sample) -> None:
    """Value, shapes, eager mode, gradient, aliasing and GraphDef of each sample."""
    check_sample(sample)
