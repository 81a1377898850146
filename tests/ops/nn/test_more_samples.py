"""Samples of ops of this family that its other tables do not have."""

import numpy as np

from tests.ops.samples import Sample, check_sample, f64, samples

SAMPLES = [
    Sample("Relu", [f64(5)], reference=lambda x: np.maximum(x, 0)),
]  # fmt: skip


@samples(SAMPLES)
def test_sample(sample: Sample) -> None:
    """Value, shapes, eager mode, gradient, aliasing and GraphDef of each sample."""
    check_sample(sample)
