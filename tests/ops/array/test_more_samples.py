"""Samples of ops of this family that its other tables do not have."""

import numpy as np

from tests.ops.samples import Sample, check_sample, f32, f64, i32, samples

SAMPLES = [
    Sample("Cast", [f32(3)], {"DstT": "float64"}, reference=lambda x: x.astype("f8"), gradient=False),
    Sample("Reshape", [f64(2, 3), [3, -1]], reference=lambda x, s: x.reshape(3, 2)),
    Sample("Transpose", [f64(2, 3, 4), [2, 0, 1]], reference=lambda x, p: x.transpose(2, 0, 1)),
    Sample("Shape", [f64(2, 3)], reference=lambda x: np.array([2, 3], "i4"), gradient=False),
    Sample("Fill", [[2, 3], f64()], reference=lambda d, v: np.full((2, 3), v)),
    Sample("BroadcastTo", [f64(3, 1), [2, 3, 4]], reference=lambda x, s: np.broadcast_to(x, (2, 3, 4))),
    Sample(
        "Range",
        [i32(low=0, high=1), np.int32(7), np.int32(2)],
        reference=lambda a, b, c: np.arange(0, 7, 2),
        gradient=False,
        static=False,
    ),
    Sample("ZerosLike", [f64(2, 3)], reference=np.zeros_like, gradient=False),
    Sample("OnesLike", [f64(2, 3)], reference=np.ones_like, gradient=False),
    Sample("PreventGradient", [f64(2)], {"message": "no"}, reference=lambda x: x, gradient=False),
    Sample("PlaceholderWithDefault", [f64(2)], {"shape": [2]}, reference=lambda x: x),
    Sample("GuaranteeConst", [f64(2, 3)], reference=lambda x: x, gradient=False),
    Sample("BroadcastGradientArgs", [[3, 1, 4], [2, 4]], reference=lambda a, b: (np.array([1], np.int32), np.array([0], np.int32)), static=False),
]  # fmt: skip


@samples(SAMPLES)
def test_sample(sample: Sample) -> None:
    """Value, shapes, eager mode, gradient, aliasing and GraphDef of each sample."""
    check_sample(sample)
