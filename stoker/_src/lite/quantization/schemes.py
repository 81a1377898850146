"""Number formats, and the behaviour of ops in integers: which can be quantized, which arguments share a scale, and which results have a fixed one."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from stoker._src.lite.model import Quantization, numpy_dtype


@dataclass(frozen=True)
class Scheme:
    """How the numbers of a model are stored.

    Attributes:
        activations: the type of inputs and results, "INT8", "UINT8" or "INT16".
        weights: the type of the weights of products, "INT8" or "UINT8".
        biases: the type of biases.
        symmetric: whether zero is stored as 0 in activations.
        per_channel: whether the weights of convolutions have a scale for each output channel.
    """

    activations: str
    weights: str
    biases: str
    symmetric: bool
    per_channel: bool


INT8 = Scheme("INT8", "INT8", "INT32", symmetric=False, per_channel=True)
INT16 = Scheme("INT16", "INT8", "INT64", symmetric=True, per_channel=True)
# What TensorFlow 1.x made of graphs with fake quantization.
UINT8 = Scheme("UINT8", "UINT8", "INT32", symmetric=False, per_channel=False)


def limits(type_name: str) -> tuple[int, int]:
    dtype = numpy_dtype(type_name)
    assert dtype is not None
    info = np.iinfo(dtype)
    return int(info.min), int(info.max)


def parameters(low: float, high: float, type_name: str, symmetric: bool = False, narrow: bool = False) -> Quantization:
    """The scale and zero point for values from `low` to `high`, with zero stored exactly.

    `narrow` excludes the smallest stored value, like FakeQuant's narrow_range.
    """
    low, high = min(low, 0.0), max(high, 0.0)
    smallest, largest = limits(type_name)
    if symmetric:
        scale = max(-low, high) / largest
        return _quantization(scale, 0)
    if narrow:
        smallest += 1
    scale = (high - low) / (largest - smallest)
    if not scale > 0:
        return _quantization(0.0, 0)
    zero = smallest - low / scale
    return _quantization(scale, int(np.clip(np.round(zero), smallest, largest)))


def represented(numbers: Quantization, type_name: str) -> tuple[float, float]:
    """The smallest and the largest value that a scale and a type can store."""
    assert numbers.scale is not None and numbers.zero_point is not None
    smallest, largest = (float((limit - numbers.zero_point[0]) * numbers.scale[0]) for limit in limits(type_name))
    return smallest, largest


def covers(numbers: Quantization, others: Quantization, type_name: str) -> bool:
    """Whether one scale stores, up to a step, all values that another one does."""
    assert numbers.scale is not None
    low, high = represented(numbers, type_name)
    other_low, other_high = represented(others, type_name)
    step = float(numbers.scale[0])
    return low - step <= other_low and other_high <= high + step


def _quantization(scale: float, zero_point: int) -> Quantization:
    # A tensor that is always zero has no range; any positive scale stores it exactly. Comparisons take scales below one.
    scale = float(np.float32(scale))
    return Quantization(
        np.array([scale if scale > 0 and np.isfinite(scale) else 1 / 256], np.float32), np.array([zero_point], np.int64)
    )


def fixed(scale: float, zero_point: int) -> Quantization:
    return _quantization(scale, zero_point)


def same(one: Quantization | None, other: Quantization | None) -> bool:
    if one is None or other is None or one.scale is None or other.scale is None:
        return one is other
    return np.array_equal(one.scale, other.scale) and np.array_equal(one.zero_point, other.zero_point)  # type: ignore[arg-type]


# The position of an op's weights among its inputs, and their dimension of output channels.
WEIGHTS = {"CONV_2D": 1, "DEPTHWISE_CONV_2D": 1, "FULLY_CONNECTED": 1, "TRANSPOSE_CONV": 1}
DATA = {"TRANSPOSE_CONV": 2}
BIASES = {"CONV_2D": 2, "DEPTHWISE_CONV_2D": 2, "FULLY_CONNECTED": 2, "TRANSPOSE_CONV": 3}
CHANNELS = {"CONV_2D": 0, "DEPTHWISE_CONV_2D": 3, "TRANSPOSE_CONV": 0, "FULLY_CONNECTED": 0}

# Results that have the scale of the op's first argument.
PASSING = frozenset(
    {
        "AVERAGE_POOL_2D",
        "MAX_POOL_2D",
        "RESHAPE",
        "TRANSPOSE",
        "SLICE",
        "STRIDED_SLICE",
        "SQUEEZE",
        "EXPAND_DIMS",
        "PAD",
        "MIRROR_PAD",
        "GATHER",
        "GATHER_ND",
        "SPLIT",
        "SPLIT_V",
        "UNPACK",
        "TILE",
        "BATCH_TO_SPACE_ND",
        "SPACE_TO_BATCH_ND",
        "SPACE_TO_DEPTH",
        "DEPTH_TO_SPACE",
        "RESIZE_BILINEAR",
        "RESIZE_NEAREST_NEIGHBOR",
        "REVERSE_V2",
        "BROADCAST_TO",
        "REDUCE_MAX",
        "REDUCE_MIN",
        "TOPK_V2",
    }
)
# The argument whose scale the result has, if it is not the first.
PASSED = {"SPLIT": 1}
# These arguments and the result share one scale.
SHARING = {
    "CONCATENATION": None,
    "PACK": None,
    "MAXIMUM": None,
    "MINIMUM": None,
    "PADV2": (0, 2),
    "DYNAMIC_UPDATE_SLICE": (0, 1),
    "SELECT_V2": (1, 2),
    "SELECT": (1, 2),
    "ONE_HOT": (2, 3),
    "FILL": (1,),
}
# Results whose scale the kernel requires.
FIXED = {
    "SOFTMAX": {"INT8": fixed(1 / 256, -128), "UINT8": fixed(1 / 256, 0), "INT16": fixed(1 / 32768, 0)},
    "LOGISTIC": {"INT8": fixed(1 / 256, -128), "UINT8": fixed(1 / 256, 0), "INT16": fixed(1 / 32768, 0)},
    "TANH": {"INT8": fixed(1 / 128, 0), "UINT8": fixed(1 / 128, 128), "INT16": fixed(1 / 32768, 0)},
    "L2_NORMALIZATION": {"INT8": fixed(1 / 128, 0), "UINT8": fixed(1 / 128, 128)},
    "LOG_SOFTMAX": {"INT8": fixed(16 / 256, 127), "UINT8": fixed(16 / 256, 255)},
    # Truth values become the integers 0 and 1, which are these numbers as they are.
    "CAST": {"INT8": fixed(1.0, 0), "UINT8": fixed(1.0, 0), "INT16": fixed(1.0, 0)},
}
# Any scale will do.
FREE = frozenset(
    {
        "ADD",
        "SUB",
        "MUL",
        "MEAN",
        "SUM",
        "LEAKY_RELU",
        "HARD_SWISH",
        "PRELU",
        "ELU",
        "EXP",
        "GELU",
        "ABS",
        "RSQRT",
        "LOG",
        "SQRT",
        "REDUCE_PROD",
        "SQUARED_DIFFERENCE",
        "RELU",
        "RELU6",
        "RELU_N1_TO_1",
        "RELU_0_TO_1",
        "BATCH_MATMUL",
    }
)
# Integers in, something else out: comparisons and positions.
ASKING = frozenset(
    {"ARG_MAX", "ARG_MIN", "EQUAL", "NOT_EQUAL", "GREATER", "GREATER_EQUAL", "LESS", "LESS_EQUAL", "SHAPE", "RANK"}
)
# Ops with a kernel for INT8 but not for the other types, or with a wrong one: comparisons shift 16 bits out of 32.
NOT_IN_INT16 = frozenset(
    {
        "SPACE_TO_DEPTH",
        "DEPTH_TO_SPACE",
        "HARD_SWISH",
        "ELU",
        "SQUARED_DIFFERENCE",
        "RELU_N1_TO_1",
        "RELU_0_TO_1",
        "ONE_HOT",
        "PRELU",
        *(ASKING - {"SHAPE", "RANK"}),
    }
)
# Used only where floating point is not allowed: a few steps of the argument near zero are most of the range of the result.
_STEEP = frozenset({"LOG", "SQRT", "REDUCE_PROD"})
# The runtime of TensorFlow 2.21 has no GELU of 16 bits, which LiteRT has.
ONLY_IF_STRICT = {"INT8": _STEEP, "INT16": _STEEP | {"GELU"}}
NOT_IN_UINT8 = (
    frozenset("FILL ONE_HOT DYNAMIC_UPDATE_SLICE ELU EXP ABS RSQRT RELU_0_TO_1 SQUARED_DIFFERENCE BATCH_MATMUL".split())
    | _STEEP
)


def quantizable(code: str, scheme: Scheme) -> bool:
    """Whether LiteRT has a kernel for an op in the formats of a scheme."""
    if code in FIXED:
        return scheme.activations in FIXED[code]
    known = code in WEIGHTS or code in PASSING or code in SHARING or code in FREE or code in ASKING
    without = {"INT16": NOT_IN_INT16, "UINT8": NOT_IN_UINT8}.get(scheme.activations, frozenset())
    return known and code not in without
