"""Samples of ops of this family that its other tables do not have."""

import numpy as np

from tests.ops.samples import Sample, check_sample, samples, texts

SAMPLES = [
    Sample("StringToHashBucketStrong", [texts(b"abc")], {"num_buckets": 10, "key": [1, 2]}),
    Sample("StringToHashBucket", [texts(b"abc")], {"num_buckets": 10}),
    Sample("Fingerprint", [texts(b"abc"), np.array(b"farmhash64", object)], reference=lambda *_: np.array([[105, 243, 231, 116, 160, 179, 165, 36]], np.uint8)),
]  # fmt: skip


@samples(SAMPLES)
def test_sample(sample: Sample) -> None:
    """Value, shapes, eager mode, gradient, aliasing and GraphDef of each sample."""
    check_sample(sample)
