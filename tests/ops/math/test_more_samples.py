"""Samples of ops of this family that its other tables do not have."""

import numpy as np

from stoker._src.base.errors import InternalError, InvalidArgumentError
from tests.ops.samples import WHEN_BUILT, Sample, c128, check_sample, f32, f64, i32, positive, samples

BITS, MASKS = np.array([5, -7, 0, 127, -128], np.int32), np.array([3, 1, 9, 4, 2], np.int32)


SAMPLES = [
    Sample("AddV2", [f32(2, 3), f32(3)], reference=np.add),
    Sample("AddV2", [f32(2, 1), f32(1, 3)], reference=np.add),
    Sample("AddV2", [f32(), f32(0, 3)], reference=np.add),
    Sample("Sub", [i32(4), i32(4)], reference=np.subtract),
    Sample("Mul", [f64(2, 3), f64(2, 3)], reference=np.multiply),
    Sample("Mul", [c128(2), c128(2)], reference=np.multiply, gradient=False),
    Sample("RealDiv", [f64(3), positive(3)], reference=np.divide),
    Sample("Maximum", [f64(3, 2), f64(2)], reference=np.maximum),
    Sample("Neg", [f64(2)], reference=np.negative),
    Sample("Exp", [f64(2, 2)], reference=np.exp),
    Sample("Log", [positive(2, 2)], reference=np.log),
    Sample("Sqrt", [positive(3)], reference=np.sqrt),
    Sample("Square", [f64(3)], reference=np.square),
    Sample("Tanh", [f64(3)], reference=np.tanh),
    Sample("Sum", [f64(2, 3), [1]], reference=lambda x, a: x.sum(1)),
    Sample("Sum", [f64(2, 3), [0, 1]], {"keep_dims": True}, reference=lambda x, a: x.sum(keepdims=True)),
    Sample("Mean", [f64(2, 3), [0]], reference=lambda x, a: x.mean(0)),
    Sample("AddN", [[f64(2), f64(2), f64(2)]], reference=lambda xs: sum(xs)),
    Sample("BitwiseAnd", [BITS, MASKS], reference=np.bitwise_and),
    Sample("BitwiseOr", [BITS, MASKS], reference=np.bitwise_or),
    Sample("BitwiseXor", [BITS, MASKS], reference=np.bitwise_xor),
    Sample("LeftShift", [BITS, MASKS], reference=np.left_shift),
    Sample("RightShift", [BITS, MASKS], reference=np.right_shift),
    Sample("CompareAndBitpack", [f64(2, 16), np.float64(0.3)], reference=lambda x, t: np.packbits(x > t, axis=-1), gradient=False),
    Sample("CompareAndBitpack", [f64(2, 8) > 0, np.bool_(True)], reference=lambda x, t: np.packbits(x, axis=-1), gradient=False),
    Sample("CompareAndBitpack", [f64(3, 0), np.float64(0.3)], reference=lambda x, t: np.zeros((3, 0), np.uint8), gradient=False),
    Sample("CompareAndBitpack", [f64(2, 9), np.float64(0)], raises=(InvalidArgumentError, "divisible by 8")),
    Sample("CompareAndBitpack", [f64(), np.float64(0)], raises=(WHEN_BUILT, "at least rank 1")),
    Sample("Invert", [BITS], reference=np.invert),
    Sample("PopulationCount", [BITS.astype(np.uint8)], reference=lambda x: np.array([bin(v).count("1") for v in x], np.uint8)),
    Sample("TruncateDiv", [BITS, MASKS], reference=lambda x, y: np.trunc(x / y).astype(np.int32)),
    Sample("TruncateDiv", [BITS, BITS], raises=(InternalError, "zero")),
    Sample("InvGrad", [f64(3), f64(3)], reference=lambda y, dy: -dy * y * y),
    Sample("SegmentMinV2", [np.array([1, 2, 3]), np.array([0, 0, 2]), 4], reference=lambda *_: np.array([1, 2**63 - 1, 3, 2**63 - 1]), gradient=False),
    Sample("SegmentMaxV2", [np.array([1, 2, 3]), np.array([0, 0, 2]), 4], reference=lambda *_: np.array([2, -(2**63), 3, -(2**63)]), gradient=False),
    Sample("SparseSegmentSumGrad", [f64(2, 3), np.array([0, 2, 0]), np.array([0, 0, 1]), 4],
           reference=lambda g, i, s, n: np.stack([g[0] + g[1], 0 * g[0], g[0], 0 * g[0]])),
    Sample("SparseSegmentSumGradV2", [f64(2, 3), np.array([0, 2, 0]), np.array([0, 0, 1]), 4], static=False,
           reference=lambda g, i, s, n: (np.stack([g[0] + g[1], g[0]]), np.array([0, 2]))),
    Sample("SparseSegmentSumGradV2", [f64(2, 3), np.array([0, 9]), np.array([0, 1]), 4], raises=(InvalidArgumentError, "9")),
    Sample("SparseSegmentSqrtNWithNumSegments", [f64(3, 2), np.array([0, 2]), np.array([0, 0]), 3],
           reference=lambda x, i, s, n: np.stack([(x[0] + x[2]) / np.sqrt(2), 0 * x[0], 0 * x[0]])),
    Sample("IgammaGradA", [positive(4) + 1, positive(4) + 1], gradient=False),
    Sample("Conj", [c128(2, 3)], reference=np.conj),
]  # fmt: skip


@samples(SAMPLES)
def test_sample(sample: Sample) -> None:
    """Value, shapes, eager mode, gradient, aliasing and GraphDef of each sample."""
    check_sample(sample)
