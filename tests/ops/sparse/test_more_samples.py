"""Samples of ops of this family that its other tables do not have."""

import numpy as np

from tests.ops.samples import Sample, check_sample, samples

SAMPLES = [
    Sample("SparseToSparseSetOperation", [np.array([[0, 0]]), np.array([5]), np.array([1, 1]), np.array([[0, 0]]), np.array([3]), np.array([1, 1])],
           {"set_operation": "union"}, static=False, reference=lambda *_: (np.array([[0, 0], [0, 1]]), np.array([3, 5]), np.array([1, 2]))),
]  # fmt: skip


@samples(SAMPLES)
def test_sample(sample: Sample) -> None:
    """Value, shapes, eager mode, gradient, aliasing and GraphDef of each sample."""
    check_sample(sample)
