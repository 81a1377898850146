"""Samples of ops of this family that its other tables do not have."""

import base64

import numpy as np

from tests.ops.samples import Sample, check_sample, f64, samples, texts

SAMPLES = [
    Sample("EncodeBase64", [texts(b"a", b"hello")], reference=lambda x: texts(*(base64.urlsafe_b64encode(v).rstrip(b"=") for v in x))),
    Sample("DecodeBase64", [texts(b"aGVsbG8", b"")], reference=lambda x: texts(b"hello", b"")),
    Sample("DecodeRaw", [texts(b"\x01\x00\x02\x00")], {"out_type": "int16"}, reference=lambda x: np.array([[1, 2]], np.int16), static=False),
    Sample("DecodePaddedRaw", [texts(b"\x01\x02", b"\x03"), np.int32(2)], {"out_type": "uint8"}, reference=lambda x, n: np.array([[1, 2], [3, 0]], np.uint8), static=False),
    Sample("SerializeTensor", [f64(2)]),
]  # fmt: skip


@samples(SAMPLES)
def test_sample(sample: Sample) -> None:
    """Value, shapes, eager mode, gradient, aliasing and GraphDef of each sample."""
    check_sample(sample)
