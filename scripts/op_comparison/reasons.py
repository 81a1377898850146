"""Why some ops differ from TensorFlow, or are not compared with it. The documentation prints these words."""

from __future__ import annotations

from typing import Any

# How far apart results may be, in units of the dtype's precision (the distance of 1 to the next number), and why.
ELEMENTWISE = (4.0, "last bits of library functions")
SUMS = (64.0, "sums in another order")

_SPECIAL = (64.0, "series and fractions cut off elsewhere")
_SINGLE = (1e9, "TensorFlow computes float64 in single precision here")
_CANCELS = (4.0, "TensorFlow computes exp(x) - 1, which cancels near zero; measured against 1")
_MODULUS = (64.0, "TensorFlow takes the logarithm of a rounded modulus; measured against 1")
_WAVES = (64.0, "phases of large arguments; measured against 1")
_TAILS = (8192.0, "far tails: TensorFlow's series are cut off earlier")

TOLERANCES: dict[str, tuple[float, str]] = {
    "TanhGrad": (64.0, "1 - y * y is rounded once, by TensorFlow twice"),
    **dict.fromkeys(("BesselI1", "BesselI1e", "BesselK0", "BesselK0e", "BesselI0e", "BesselK1", "Lgamma", "Spence"), _SPECIAL),
    **dict.fromkeys(("RandomGammaGrad", "Zeta", "Polygamma", "Erfc", "Expint", "Dawsn"), _SPECIAL),
    **dict.fromkeys(("Digamma", "IgammaGradA"), (64.0, "near zeros and in far tails digits cancel; measured against 1")),
    **dict.fromkeys(("BesselJ0", "BesselJ1", "BesselY0", "BesselY1"), _WAVES),
    **dict.fromkeys(("FresnelCos", "FresnelSin"), (8192.0, "phases of large arguments, of which TensorFlow keeps fewer digits")),
    **dict.fromkeys(("Igamma", "Igammac"), _TAILS),
    **dict.fromkeys(("Elu", "Selu"), _CANCELS),
    **dict.fromkeys(("Log", "Log1p", "Xlogy", "Xlog1py"), _MODULUS),
    "QuantizedConcat": (4.0, "steps of qint32 are smaller than single precision, in which numbers move to another range"),
    "Pow": (64.0, "large exponents, of which TensorFlow keeps fewer digits"),
    **dict.fromkeys(("CTCLoss", "CTCBeamSearchDecoder"), _SINGLE),
}  # fmt: skip

# Ops whose differences are measured against this size where their values are smaller: near zeros, digits that one of the two
# implementations cancels (TensorFlow's, for all but Digamma and IgammaGradA).
FLOORS: dict[str, float] = dict.fromkeys(
    ("Elu", "Selu", "Erfinv", "Log", "Log1p", "Xlogy", "Xlog1py", "Digamma", "IgammaGradA", "BesselJ0", "BesselJ1", "BesselY0", "BesselY1"),
    1.0,
)  # fmt: skip

# Derivatives go through many ops: how far apart those of single precision and of double precision (the rest) may be.
DERIVATIVES = {"float32": (2048.0, "sums in another order"), "": (1e6, "sums in another order")}
# What TensorFlow says where it cannot differentiate the case: old ops that it does not run, kernels that it lacks.
NO_DERIVATIVE = (
    "Graph execution error", "not available in GraphDef", "not in list of allowed", "not supported", "No OpKernel", "Cannot reshape a tensor",
    "indices.shape[-1] must be", "Dimensions must be equal", "takes 2 positional arguments", "must be positive when outer",
    "does not match type int64", "Could not find device", "was compiled", "Invalid data format",
)  # fmt: skip

_NAN = "where numbers are compared with NaN TensorFlow's answer depends on their order; here NaN spreads"

_SPREAD = ("^NaN, inf", "how NaN and infinities spread through it is not defined")
_EMPTY = (
    "^empty|^NaN, inf",
    "TensorFlow leaves the result for an empty input unset; how NaN and infinities spread is not defined",
)

# Differences that stay: op -> (the differences meant, as a pattern of their description; reason). A difference of the op that
# does not match is reported as unexplained.
DELIBERATE: dict[str, tuple[str, str]] = {
    **dict.fromkeys(
        ("LinSpace", "RGBToHSV", "AdjustHue", "AdjustSaturation", "ScaleAndTranslate", "NonMaxSuppressionV3", "NonMaxSuppressionV4", "NonMaxSuppressionV5",
         "BandedTriangularSolve", "CholeskyGrad", "BatchCholeskyGrad", "Qr", "Lu", "BatchSelfAdjointEig", "BatchSelfAdjointEigV2", "SparseReduceMax",
         "SparseReduceMaxSparse", "FakeQuantWithMinMaxVarsGradient", "FakeQuantWithMinMaxVarsPerChannelGradient", "QuantizeAndDequantize",
         "QuantizeAndDequantizeV4", "AudioSpectrogram", "RFFT"),
        _SPREAD,
    ),
    **dict.fromkeys(("MatrixSolveLs", "RFFT3D", "IRFFT", "IRFFT2D"), _EMPTY),
    "RaggedTensorToTensor": ("^empty .*stoker raises", "row splits beyond the values are refused"),
    "DataFormatDimMap": ("^random", "for numbers that are not axes, TensorFlow reads beyond its table"),
    "ReluGrad": (": 0 instead of nan$", "an infinite or NaN gradient of an inactive unit gives 0 instead of NaN (one pass over memory)"),
    "Sign": (r"complex\d+\[.*nan instead of", "a complex NaN gives NaN in both parts; TensorFlow by the length of the tensor"),
    "Reciprocal": ("complex128.*inf instead of nan$", "of complex zero: TensorFlow gives inf or NaN by the length of the tensor"),
    "Round": (r"\(int(32|64)\[.*instead of 0$", "integers are returned as they are; TensorFlow's kernel gives 0 for them"),
    "Reverse": ("^empty .*TensorFlow raises", "empty tensors are allowed"),
    "MaxPoolWithArgmax": ("stoker raises .*larger than the input|^NaN, inf", "a window larger than the image raises, as for the other pools (TensorFlow's kernel gives an empty tensor); NaN wins"),
    **dict.fromkeys(
        ("MaxPool", "MaxPoolV2", "MaxPool3D", "MaxPoolGrad", "MaxPoolGradV2", "MaxPoolGradGrad", "MaxPoolGradGradV2", "MaxPool3DGrad", "MaxPool3DGradGrad"),
        ("^NaN, inf|^empty .*TensorFlow raises", "NaN wins, so that errors are seen; TensorFlow's kernels skip it"),
    ),
    **dict.fromkeys(
        ("DepthwiseConv2dNativeBackpropInput", "DepthwiseConv2dNativeBackpropFilter"),
        (r"'dilations': \[1, (2, 2|1, 3), 1\]", "dilations are used; TensorFlow's CPU kernels leave them out of the gradients"),
    ),
    "ParallelConcat": ("^empty .*TensorFlow raises", "empty parts are allowed"),
    "MaxPoolGradWithArgmax": ("^empty .*TensorFlow raises", "empty tensors of any rank are allowed"),
    "Cholesky": ("nan instead of", "a matrix that is not positive definite gives NaN; TensorFlow 2.21 gives NaN beside unset memory, or zeros"),
    **dict.fromkeys(
        ("FusedBatchNorm", "FusedBatchNormV2", "FusedBatchNormV3"),
        ("^empty", "of no images nothing is known: the reserve spaces are zero; TensorFlow leaves them unset"),
    ),
    "ArgMax": ("^int16 .*TensorFlow raises", "an axis of dtype int16 works; TensorFlow raises for valid ones"),
    "SegmentMin": ("^NaN, inf.*: nan instead of", _NAN),
    "SegmentMax": ("^NaN, inf.*: nan instead of", _NAN),
    "UnsortedSegmentMin": ("^NaN, inf.*: nan instead of", _NAN),
    "UnsortedSegmentMax": ("^NaN, inf.*: nan instead of", _NAN),
    "CumulativeLogsumexp": ("^NaN, inf.*: nan instead of -inf$", "NaN spreads; TensorFlow passes over it or gives -inf, by where it stands"),
    "TopKV2": ("^NaN, inf.*: nan instead of", "NaN comes first; TensorFlow's order depends on where it stands"),
    "Einsum": ("ij->ik", "output labels that no input has raise InvalidArgumentError; TensorFlow drops them"),
    "Expm1": (r"complex.*(inf|nan) instead of (nan|inf)$", "complex overflow: infinities of the right signs; TensorFlow gives NaN for one part"),
    "Erf": ("^NaN, inf.*float64.*instead of nan$", "of float64 infinities: -1 and 1; TensorFlow gives NaN"),
    "Igammac": (" units$", "huge a and x together: 0.5, where TensorFlow gives numbers from 0 to beyond 1; of a denormal a neither keeps digits"),
    "SparseAdd": (r"shape \[2, 2\] instead of \[3, 2\]$", "a threshold of another dtype than the values is converted; TensorFlow's result is as if it read the bytes"),
    "QuantizeAndDequantizeV3": ("^0-d .*TensorFlow raises|^NaN, inf", "scalars are allowed; how NaN and infinities spread through it is not defined"),
    "ParameterizedTruncatedNormal": ("^float16 .*stoker raises UnimplementedError", "float16 is not supported: use float32"),
    "StatelessParameterizedTruncatedNormal": ("^float16 .*stoker raises UnimplementedError", "float16 is not supported: use float32"),
}  # fmt: skip

# Derivatives that differ: op -> (pattern of the differences meant, reason).
DELIBERATE_DERIVATIVES: dict[str, tuple[str, str]] = {
    "SqrtGrad": ("nan instead of", "complex division by zero gives NaN in both parts"),
    "MulNoNan": ("nan instead of inf", "complex overflow gives NaN in both parts"),
    "Pow": ("complex128", "on the branch cut of complex powers"),
    "Cholesky": ("nan instead of", "of a matrix that is not positive definite it is NaN"),
    **dict.fromkeys(("Qr", "Svd", "Eig"), (" units$", "the order of eigenvalues and the phases of vectors are free; and singular values are real, whatever the gradient's imaginary part")),
    "UnsortedSegmentProd": ("instead of nan$", "of a segment with a zero: the derivative, where TensorFlow gives NaN"),
    "Dawsn": (" units$", "1 - 2 x D(x) cancels for large x"),
    "Spence": ("0 instead of nan$", "at 1: 0 where TensorFlow gives NaN"),
    **dict.fromkeys(
        ("FusedBatchNormGrad", "FusedBatchNormGradV2", "FusedBatchNormGradV3"),
        ("", "the statistics given in the sample are not those of its x, from which TensorFlow takes them again"),
    ),
    **dict.fromkeys(("MaxPoolGrad", "MaxPoolGradV2", "MaxPool3DGrad"), ("", "the pooled tensor of the sample is not that of its x")),
    "CTCLoss": (" units$", "TensorFlow computes float64 in single precision here"),
    "BlockLSTMV2": (" units$", "TensorFlow's gradient reads the gates in the order of BlockLSTM; this one agrees with differences"),
}  # fmt: skip

# Samples whose inputs do not fit together (a pooled tensor that is not the pool's own), which TensorFlow checks or
# resolves in its own way; functions. The cases of extra.py and the programs take their place.
SAMPLES_LEFT_OUT = {"MaxPoolGradGrad", "FractionalMaxPoolGrad"} | {
    "Const", "FakeParam", "PartitionedCall", "StatelessCase", "StatelessIf", "StatelessWhile", "SymbolicGradient",  # functions do not travel
}  # fmt: skip

# Outputs that TensorFlow leaves unset: (op, attribute, value) -> their numbers. They hold what was in memory.
_UNSET: dict[tuple[str, str, Any], tuple[int, ...]] = {
    ("SelfAdjointEigV2", "compute_v", False): (1,),
    ("BatchSelfAdjointEigV2", "compute_v", False): (1,),
    ("Eig", "compute_v", False): (1,),
    ("Svd", "compute_uv", False): (1, 2),
    ("BatchSvd", "compute_uv", False): (1, 2),
    ("FusedBatchNorm", "is_training", False): (3, 4),
    ("FusedBatchNormV2", "is_training", False): (3, 4),
    ("FusedBatchNormV3", "is_training", False): (3, 4, 5),
    ("FusedBatchNormV3", "is_training", True): (5,),
}
_DEFAULTS = {"compute_v": True, "compute_uv": True, "is_training": True}
_NEVER_SET = {"FusedBatchNormGrad": (3, 4), "FusedBatchNormGradV2": (3, 4), "FusedBatchNormGradV3": (3, 4)}


def unset_outputs(op: str, attrs: dict[str, Any]) -> tuple[int, ...]:
    """The outputs of this call that TensorFlow leaves unset."""
    for (name, attr, value), outputs in _UNSET.items():
        if name == op and attrs.get(attr, _DEFAULTS[attr]) == value:
            return outputs
    return _NEVER_SET.get(op, ())


# Ops that are not compared, and why.
NOT_COMPARED: dict[str, str] = {
    "Abort": "ends the process",
    "CompareAndBitpack": "TensorFlow 2 does not have it",
    "FixedLengthRecordReader": "TensorFlow 2 has no kernel for it",
    "QuantizedReluX": "TensorFlow has no CPU kernel for it",
    "MutableDenseHashTable": "TensorFlow's kernel asks for an input that the op does not have",
}
