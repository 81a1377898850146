"""Names of matrix ops from before 1.0, which do what their successors do."""

from __future__ import annotations

import numpy as np

from tests.ops.samples import Sample, check_sample, f64, samples

SAMPLES = [
    Sample("BatchMatrixBandPart", [f64(2, 3, 3), np.int64(0), np.int64(-1)], reference=lambda x, low, up: np.triu(x)),
    Sample("BatchMatrixDiag", [f64(2, 3)], reference=lambda x: np.stack([np.diag(row) for row in x])),
    Sample("BatchMatrixDiagPart", [f64(2, 3, 3)], reference=lambda x: np.stack([np.diag(m) for m in x])),
    Sample(
        "BatchMatrixSetDiag",
        [f64(2, 3, 3), f64(2, 3)],
        reference=lambda x, d: x * (1 - np.eye(3)) + np.stack([np.diag(row) for row in d]),
    ),
]  # fmt: skip


@samples(SAMPLES)
def test_sample(sample: Sample) -> None:
    """Value, shapes, eager mode, gradient, aliasing and GraphDef of each sample."""
    check_sample(sample)
