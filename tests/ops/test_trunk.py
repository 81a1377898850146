"""The first ops, through the sample runner."""

import numpy as np

from stoker._src.base.errors import InvalidArgumentError
from tests.ops.samples import Sample, c128, check_sample, f32, f64, i32, positive, samples

SAMPLES = [
    Sample("MatMul", [f32(2, 3), f32(3, 4)], reference=np.matmul),
    Sample("MatMul", [f32(3, 2), f32(3, 4)], {"transpose_a": True}, reference=lambda a, b: a.T @ b),
    Sample("MatMul", [f32(2, 3), f32(4, 3)], {"transpose_b": True}, reference=lambda a, b: a @ b.T),
    Sample("MatMul", [f32(32, 7), f32(8, 10)], raises=(InvalidArgumentError, "7 and 8")),
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
    Sample("Relu", [f64(5)], reference=lambda x: np.maximum(x, 0)),
    Sample("Cast", [f32(3)], {"DstT": "float64"}, reference=lambda x: x.astype("f8"), gradient=False),
    Sample("Sum", [f64(2, 3), [1]], reference=lambda x, a: x.sum(1)),
    Sample("Sum", [f64(2, 3), [0, 1]], {"keep_dims": True}, reference=lambda x, a: x.sum(keepdims=True)),
    Sample("Mean", [f64(2, 3), [0]], reference=lambda x, a: x.mean(0)),
    Sample("Reshape", [f64(2, 3), [3, -1]], reference=lambda x, s: x.reshape(3, 2)),
    Sample("Transpose", [f64(2, 3, 4), [2, 0, 1]], reference=lambda x, p: x.transpose(2, 0, 1)),
    Sample("Shape", [f64(2, 3)], reference=lambda x: np.array([2, 3], "i4"), gradient=False),
    Sample("Fill", [[2, 3], f64()], reference=lambda d, v: np.full((2, 3), v)),
    Sample("AddN", [[f64(2), f64(2), f64(2)]], reference=lambda xs: sum(xs)),
    Sample("BroadcastTo", [f64(3, 1), [2, 3, 4]], reference=lambda x, s: np.broadcast_to(x, (2, 3, 4))),
    Sample(
        "Range",
        [i32(low=0, high=1), np.int32(7), np.int32(2)],
        reference=lambda a, b, c: np.arange(0, 7, 2),
        gradient=False,
        static=False,
    ),
]


@samples(SAMPLES)
def test_sample(sample: Sample) -> None:
    """The op does what its reference does, in every mode."""
    check_sample(sample)
