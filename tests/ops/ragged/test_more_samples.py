"""Samples of ops of this family that its other tables do not have."""

import numpy as np

from tests.ops.samples import Sample, check_sample, samples

SPLIT_ROWS = (np.array([0, 2, 2, 3]), np.array([4, 4, 1]))


SAMPLES = [
    Sample("SparseCountSparseOutput", [np.array([[0, 0], [0, 1], [2, 1]]), np.array([4, 4, 1]), np.array([3, 2]), np.zeros(0)],
           {"binary_output": False}, static=False, gradient=False,
           reference=lambda *_: (np.array([[0, 4], [2, 1]]), np.array([2.0, 1]), np.array([3, 5]))),
    Sample("RaggedCountSparseOutput", [*SPLIT_ROWS, np.zeros(0)], {"binary_output": True, "minlength": 7}, static=False, gradient=False,
           reference=lambda *_: (np.array([[0, 4], [2, 1]]), np.array([1.0, 1]), np.array([3, 7]))),
    Sample("RaggedRange", [np.array([0, 5]), np.array([3, 5]), np.array([1, 1])], static=False,
           reference=lambda *_: (np.array([0, 3, 3]), np.array([0, 1, 2]))),
]  # fmt: skip


@samples(SAMPLES)
def test_sample(sample: Sample) -> None:
    """Value, shapes, eager mode, gradient, aliasing and GraphDef of each sample."""
    check_sample(sample)
