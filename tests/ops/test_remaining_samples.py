"""Samples of ops that no family's table has: quantization, bits, hashes, segments, factorisations, random numbers."""

import base64

import numpy as np

from stoker._src.base.errors import InternalError, InvalidArgumentError
from tests.ops.samples import WHEN_BUILT, Sample, check_sample, f64, i32, positive, samples


def texts(*items):
    """A vector of strings."""
    array = np.empty(len(items), object)
    array[:] = items
    return array


def f32(*shape):
    return f64(*shape).astype(np.float32)


def fake_quant(x, low, high, bits=8):
    """Nudges the range so that zero is exact, then rounds to the steps of the range."""
    steps = 2**bits - 1
    scale = (high - low) / steps
    zero = np.round(np.clip(-low / scale, 0, steps))
    low, high = -zero * scale, (steps - zero) * scale
    return (np.floor((np.clip(x, low, high) - low) / scale + 0.5) * scale + low).astype(np.float32)


BITS, MASKS = np.array([5, -7, 0, 127, -128], np.int32), np.array([3, 1, 9, 4, 2], np.int32)
SYMMETRIC = (lambda a: a @ a.T + np.eye(4))(np.random.RandomState(1).rand(4, 4))
FACTOR = np.linalg.cholesky(SYMMETRIC)
SPLIT_ROWS = (np.array([0, 2, 2, 3]), np.array([4, 4, 1]))
WAVES = np.random.RandomState(2).randn(2, 4, 4).astype(np.complex64)

SAMPLES = [
    Sample("ZerosLike", [f64(2, 3)], reference=np.zeros_like, gradient=False),
    Sample("OnesLike", [f64(2, 3)], reference=np.ones_like, gradient=False),
    Sample("PreventGradient", [f64(2)], {"message": "no"}, reference=lambda x: x, gradient=False),
    Sample("PlaceholderWithDefault", [f64(2)], {"shape": [2]}, reference=lambda x: x),
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
    Sample("GuaranteeConst", [f64(2, 3)], reference=lambda x: x, gradient=False),
    Sample("Invert", [BITS], reference=np.invert),
    Sample("PopulationCount", [BITS.astype(np.uint8)], reference=lambda x: np.array([bin(v).count("1") for v in x], np.uint8)),
    Sample("TruncateDiv", [BITS, MASKS], reference=lambda x, y: np.trunc(x / y).astype(np.int32)),
    Sample("TruncateDiv", [BITS, BITS], raises=(InternalError, "zero")),
    Sample("InvGrad", [f64(3), f64(3)], reference=lambda y, dy: -dy * y * y),
    Sample("BroadcastGradientArgs", [[3, 1, 4], [2, 4]], reference=lambda a, b: (np.array([1], np.int32), np.array([0], np.int32)), static=False),
    Sample("FakeQuantWithMinMaxArgs", [f32(3, 4)], {"min": -0.7, "max": 0.9}, reference=lambda x: fake_quant(x, -0.7, 0.9), gradient=False, atol=1e-5),
    Sample("FakeQuantWithMinMaxVars", [f32(3, 4), np.float32(-0.7), np.float32(0.9)], reference=fake_quant, gradient=False, atol=1e-5),
    Sample("FakeQuantWithMinMaxVarsPerChannel", [f32(3, 2), np.float32([-0.7, -1]), np.float32([0.9, 1])], reference=fake_quant, gradient=False, atol=1e-5),
    Sample("QuantizeAndDequantizeV2", [np.array([-1.0, 0.3, 1.0]), np.array(-1.0), np.array(1.0)], {"range_given": True}, gradient=False,
           reference=lambda x, a, b: np.round(x * 127) / 127),
    Sample("MatrixSetDiagV2", [f64(3, 4), f64(2), np.array(2, np.int32)],
           reference=lambda x, d, k: np.where(np.eye(3, 4, 2), np.concatenate([d, [0]])[:, None], x)),
    Sample("CholeskyGrad", [FACTOR, np.tril(f64(4, 4))], gradient=True),
    Sample("SelfAdjointEig", [SYMMETRIC]),
    Sample("MatrixLogarithm", [np.diag([1.0, 2, 3]).astype(np.complex128)], reference=lambda x: np.diag(np.log([1.0, 2, 3])), gradient=False),
    Sample("BatchCholesky", [SYMMETRIC], reference=np.linalg.cholesky),
    Sample("BatchMatrixDeterminant", [SYMMETRIC], reference=np.linalg.det),
    Sample("BatchMatrixInverse", [SYMMETRIC], reference=np.linalg.inv),
    Sample("BatchMatrixSolve", [SYMMETRIC, f64(4, 2)], reference=np.linalg.solve),
    Sample("BatchMatrixTriangularSolve", [FACTOR, f64(4, 2)], reference=np.linalg.solve),
    Sample("BatchMatrixSolveLs", [f64(4, 2), f64(4, 1), np.float64(0)], reference=lambda a, b, _: np.linalg.lstsq(a, b, None)[0]),
    Sample("BandedTriangularSolve", [positive(2, 4) + 1, f64(4, 2)],
           reference=lambda m, b: np.linalg.solve(np.diag(m[0]) + np.diag(m[1, 1:], -1), b)),
    Sample("BandedTriangularSolve", [positive(2, 4) + 1, f64(4, 2)], {"lower": False, "adjoint": True},
           reference=lambda m, b: np.linalg.solve((np.diag(m[1]) + np.diag(m[0, :-1], 1)).T, b)),
    Sample("BatchFFT", [WAVES], reference=np.fft.fft, gradient=False, rtol=1e-4, atol=1e-4),
    Sample("BatchIFFT2D", [WAVES], reference=np.fft.ifft2, gradient=False, rtol=1e-4, atol=1e-4),
    Sample("SegmentMinV2", [np.array([1, 2, 3]), np.array([0, 0, 2]), 4], reference=lambda *_: np.array([1, 2**63 - 1, 3, 2**63 - 1]), gradient=False),
    Sample("SegmentMaxV2", [np.array([1, 2, 3]), np.array([0, 0, 2]), 4], reference=lambda *_: np.array([2, -(2**63), 3, -(2**63)]), gradient=False),
    Sample("SparseSegmentSumGrad", [f64(2, 3), np.array([0, 2, 0]), np.array([0, 0, 1]), 4],
           reference=lambda g, i, s, n: np.stack([g[0] + g[1], 0 * g[0], g[0], 0 * g[0]])),
    Sample("SparseSegmentSumGradV2", [f64(2, 3), np.array([0, 2, 0]), np.array([0, 0, 1]), 4], static=False,
           reference=lambda g, i, s, n: (np.stack([g[0] + g[1], g[0]]), np.array([0, 2]))),
    Sample("SparseSegmentSumGradV2", [f64(2, 3), np.array([0, 9]), np.array([0, 1]), 4], raises=(InvalidArgumentError, "9")),
    Sample("SparseSegmentSqrtNWithNumSegments", [f64(3, 2), np.array([0, 2]), np.array([0, 0]), 3],
           reference=lambda x, i, s, n: np.stack([(x[0] + x[2]) / np.sqrt(2), 0 * x[0], 0 * x[0]])),
    Sample("SparseCountSparseOutput", [np.array([[0, 0], [0, 1], [2, 1]]), np.array([4, 4, 1]), np.array([3, 2]), np.zeros(0)],
           {"binary_output": False}, static=False, gradient=False,
           reference=lambda *_: (np.array([[0, 4], [2, 1]]), np.array([2.0, 1]), np.array([3, 5]))),
    Sample("RaggedCountSparseOutput", [*SPLIT_ROWS, np.zeros(0)], {"binary_output": True, "minlength": 7}, static=False, gradient=False,
           reference=lambda *_: (np.array([[0, 4], [2, 1]]), np.array([1.0, 1]), np.array([3, 7]))),
    Sample("SparseToSparseSetOperation", [np.array([[0, 0]]), np.array([5]), np.array([1, 1]), np.array([[0, 0]]), np.array([3]), np.array([1, 1])],
           {"set_operation": "union"}, static=False, reference=lambda *_: (np.array([[0, 0], [0, 1]]), np.array([3, 5]), np.array([1, 2]))),
    Sample("EncodeBase64", [texts(b"a", b"hello")], reference=lambda x: texts(*(base64.urlsafe_b64encode(v).rstrip(b"=") for v in x))),
    Sample("DecodeBase64", [texts(b"aGVsbG8", b"")], reference=lambda x: texts(b"hello", b"")),
    Sample("DecodeRaw", [texts(b"\x01\x00\x02\x00")], {"out_type": "int16"}, reference=lambda x: np.array([[1, 2]], np.int16), static=False),
    Sample("DecodePaddedRaw", [texts(b"\x01\x02", b"\x03"), np.int32(2)], {"out_type": "uint8"}, reference=lambda x, n: np.array([[1, 2], [3, 0]], np.uint8), static=False),
    Sample("StringToHashBucketStrong", [texts(b"abc")], {"num_buckets": 10, "key": [1, 2]}),
    Sample("StringToHashBucket", [texts(b"abc")], {"num_buckets": 10}),
    Sample("Fingerprint", [texts(b"abc"), np.array(b"farmhash64", object)], reference=lambda *_: np.array([[105, 243, 231, 116, 160, 179, 165, 36]], np.uint8)),
    Sample("RaggedRange", [np.array([0, 5]), np.array([3, 5]), np.array([1, 1])], static=False,
           reference=lambda *_: (np.array([0, 3, 3]), np.array([0, 1, 2]))),
    Sample("StatelessRandomUniform", [[3], [1, 2]], reference=lambda *_: np.array([0.8440604, 0.19204533, 0.9962232], np.float32)),
    Sample("StatelessRandomNormal", [[3], [1, 2]], reference=lambda *_: np.array([0.5441101, 0.20738031, 0.07356432], np.float32)),
    Sample("StatelessRandomUniformInt", [[3], [1, 2], i32(low=0, high=1), np.int32(7)]),
    Sample("StatelessTruncatedNormal", [[3], [1, 2]]),
    Sample("StatelessRandomPoisson", [[3], [1, 2], np.float32(2)], {"dtype": "float32"}, gradient=False),
    Sample("StatelessRandomGammaV2", [[3], [1, 2], np.float64(2)], gradient=False),
    Sample("IgammaGradA", [positive(4) + 1, positive(4) + 1], gradient=False),
    Sample("SerializeTensor", [f64(2)]),
    Sample("RandomGammaGrad", [positive(4), positive(4)], gradient=False),
]  # fmt: skip


@samples(SAMPLES)
def test_sample(sample) -> None:
    """The op's value, shape, gradient, eager form and GraphDef agree with each other and with NumPy."""
    check_sample(sample)
