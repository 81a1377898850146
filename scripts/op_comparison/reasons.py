"""Why some ops differ from TensorFlow, or are not compared with it. The documentation prints these words."""

from __future__ import annotations

from typing import Any

# How far apart results may be, in units of the dtype's precision (the distance of 1 to the next number), and why.
ELEMENTWISE = (4.0, "last bits of library functions")
SUMS = (64.0, "sums in another order")

_SPECIAL = (64.0, "series and fractions cut off elsewhere")
_BESSEL = (4e10, "torch's kernel is good to 1e-6 between 2.5 and 15 (to the last bits elsewhere)")
_SINGLE = (1e9, "TensorFlow computes float64 in single precision here")

TOLERANCES: dict[str, tuple[float, str]] = {
    **dict.fromkeys(("Digamma", "BesselI1e", "BesselK0", "BesselI0e", "BesselK1", "Lgamma"), _SPECIAL),
    **dict.fromkeys(("IgammaGradA", "RandomGammaGrad", "Zeta", "Polygamma"), _SPECIAL),
    **dict.fromkeys(("FresnelCos", "FresnelSin"), (512.0, "series and fractions cut off elsewhere")),
    **dict.fromkeys(("BesselJ0", "BesselJ1", "BesselY0", "BesselY1"), _BESSEL),
    **dict.fromkeys(("CTCLoss", "CTCBeamSearchDecoder"), _SINGLE),
}

_NAN = "where numbers are compared with NaN TensorFlow's answer depends on their order; here NaN spreads"

# Differences that stay: op -> reason.
DELIBERATE: dict[str, str] = {
    "ReluGrad": "an infinite or NaN gradient of an inactive unit gives 0 instead of NaN (one pass over memory)",
    "Relu6Grad": "an infinite or NaN gradient of an inactive unit gives 0 instead of NaN (one pass over memory)",
    "Sign": "a complex NaN gives NaN in both parts",
    "Reciprocal": "of complex zero: TensorFlow gives inf or NaN by the length of the tensor",
    "Round": "integers are returned as they are; TensorFlow's kernel gives 0 for them (tf.round does not call it)",
    "Cross": "the shape rule finds wrong sizes first: InvalidArgumentError instead of FailedPreconditionError",
    "ReduceJoin": "the shape rule finds wrong axes first: InvalidArgumentError instead of OutOfRangeError",
    "TruncateDiv": "division by zero is InvalidArgumentError as for the other divisions, instead of InternalError",
    "Reverse": "empty tensors are allowed",
    "ParallelConcat": "empty parts are allowed",
    "Cholesky": "a matrix that is not positive definite raises InvalidArgumentError; TensorFlow 2.21 returns NaN beside unset memory",
    "ArgMax": "an int16 axis works; TensorFlow reads it as an int32",
    "SegmentMin": _NAN,
    "SegmentMax": _NAN,
    "UnsortedSegmentMin": _NAN,
    "UnsortedSegmentMax": _NAN,
    "TopKV2": "NaN comes first; TensorFlow's order depends on where it stands",
    "EuclideanNorm": "squares of int32 that overflow: TensorFlow takes the root of what is left",
    "Einsum": "output labels that no input has raise InvalidArgumentError; TensorFlow drops them",
    "Erf": "of float64 infinities: -1 and 1; TensorFlow gives NaN",
    "Erfinv": "full precision near 0 and 1, where TensorFlow cancels digits",
    "Zeta": "infinite arguments give NaN",
    "Igammac": "arguments beyond 1e30: another limit",
    "SparseAdd": "a threshold of another dtype than the values is converted; TensorFlow reads its bytes",
    "FakeQuantWithMinMaxArgsGradient": "inputs of different sizes broadcast",
    "QuantizeAndDequantizeV3": "scalars are allowed",
    "Eig": "eigenvalues in LAPACK's order; TensorFlow's differs",
    "DecodeJSONExample": "numbers are packed in the message; TensorFlow writes the same numbers one by one",
    "FractionalMaxPoolGrad": "of equal elements another one receives the gradient",
    "MaxPoolGradWithArgmax": "empty tensors of any rank are allowed",
    "EncodePng": "other bytes for the same pixels: the compressor's choices",
    "ParameterizedTruncatedNormal": "float16 is not supported: use float32",
    "StatelessParameterizedTruncatedNormal": "float16 is not supported: use float32",
}

# Samples whose inputs do not fit together (a pooled tensor that is not the pool's own), which TensorFlow checks or
# resolves in its own way. The cases of extra.py take their place.
SAMPLES_LEFT_OUT = {"MaxPoolGradGrad", "FractionalMaxPoolGrad"}

# Outputs that TensorFlow leaves unset: (op, attribute, value) -> their numbers. They hold what was in memory.
_UNSET: dict[tuple[str, str, Any], tuple[int, ...]] = {
    ("SelfAdjointEigV2", "compute_v", False): (1,),
    ("Eig", "compute_v", False): (1,),
    ("Svd", "compute_uv", False): (1, 2),
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


# Modules whose ops are not compared here, and why.
NOT_COMPARED: dict[str, str] = {
    "queues": "holds state between runs: compared by programs",
    "readers": "holds state between runs: compared by programs",
    "lookup_ops": "holds state between runs: compared by programs",
    "tensor_array_v3": "holds state between runs: compared by programs",
    "tensor_lists": "values are lists: compared by programs",
    "optionals": "values are not arrays",
    "functional": "takes functions: compared by programs",
    "python_functions": "calls Python",
    "printing": "prints",
    "files": "reads and writes files",
    "grouping": "computes nothing",
    "constants": "computes nothing",
    "state": "makes or destroys a variable",
    "parsing": "compared with recorded results",
    "sdca": "compared with recorded results",
    "image_codecs": "compared with recorded results",
    "sparse_messages": "values are not arrays",
}
NOT_COMPARED_OPS: dict[str, str] = {
    "NonDeterministicInts": "random",
    "LearnedUnigramCandidateSampler": "learns between runs: compared with recorded results",
    "ThreadUnsafeUnigramCandidateSampler": "learns between runs: compared with recorded results",
    "Timestamp": "reads the clock",
}
