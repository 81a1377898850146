"""Versions: the version of a builtin that an operator needs, and the runtime that supports it.

A runtime refuses unknown versions, so an operator gets the lowest version that supports it. The values agree with those that TensorFlow
2.21 writes for the same operators (`scripts/check_lite.py --versions` compares them).
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from stoker._src.lite.model import Model, Operator, Tensor

# Builtins whose first version is not 1.
_FIRST = {"BROADCAST_TO": 2}
# code -> element type of the first input (or of another one, see below) -> version
_BY_TYPE: dict[str, dict[str, int]] = {
    "ABS": {"INT8": 2, "INT16": 3, "INT32": 5},
    "ADD": {"INT8": 2, "INT16": 3, "INT64": 4},
    "ARG_MAX": {"INT8": 2, "BOOL": 3},
    "ARG_MIN": {"INT8": 2, "BOOL": 3},
    "BATCH_MATMUL": {"INT8": 2, "INT16": 3, "INT32": 3},
    "CAST": {"UINT16": 4, "FLOAT64": 5, "FLOAT16": 5, "BFLOAT16": 7},
    "CONCATENATION": {"INT8": 2, "INT16": 3},
    "CONV_2D": {"INT8": 3, "INT16": 4},
    "DEPTHWISE_CONV_2D": {"INT8": 3, "INT16": 5},
    "DEQUANTIZE": {"INT8": 2, "FLOAT16": 3, "INT16": 3},
    # The oldest version of the 16-bit kernel is not known. TensorFlow 2.21 has it, with this version as its latest.
    "DYNAMIC_UPDATE_SLICE": {"INT16": 5},
    "EQUAL": {"INT8": 2, "STRING": 3},
    "EXP": {"INT8": 2, "INT16": 2},
    "FILL": {"INT8": 3, "INT16": 3, "BOOL": 2, "STRING": 2},
    "FULLY_CONNECTED": {"INT8": 4, "INT16": 7},
    "GATHER": {"INT8": 2, "BOOL": 3, "INT16": 4},
    "GATHER_ND": {"STRING": 2, "INT16": 3},
    "LEAKY_RELU": {"INT16": 2},
    "LOG": {"INT8": 2, "INT16": 2},
    "MUL": {"INT8": 2, "INT16": 4, "INT64": 5, "COMPLEX64": 6},
    "NOT_EQUAL": {"INT8": 2, "STRING": 3},
    "PAD": {"INT8": 2, "INT16": 3},
    "PADV2": {"INT8": 2, "INT16": 3},
    "QUANTIZE": {"INT8": 2, "UINT8": 2, "INT16": 2, "INT32": 2},
    "RANGE": {"INT64": 2},
    "REVERSE_V2": {"BOOL": 2, "INT8": 3, "INT16": 3},
    "SIGN": {"INT32": 2},
    "SLICE": {"INT8": 2, "STRING": 3, "INT16": 4},
    "SPLIT": {"INT8": 2, "INT32": 3, "INT16": 4},
    "SQRT": {"INT8": 2, "INT16": 2},
    "STRIDED_SLICE": {"INT8": 2, "BOOL": 3, "INT16": 4, "STRING": 5},
    "SUB": {"INT8": 2, "INT64": 4, "INT16": 5},
    "TILE": {"STRING": 2, "INT8": 3, "INT16": 3},
    "TRANSPOSE": {"INT8": 2, "BOOL": 3, "INT16": 5},
    "TRANSPOSE_CONV": {"INT8": 2, "INT16": 3},
    "WHERE": {**dict.fromkeys(("FLOAT32", "FLOAT64", "INT8", "UINT8", "INT16", "INT32", "INT64", "UINT32"), 2)},
}
for _code in (
    "AVERAGE_POOL_2D BATCH_TO_SPACE_ND GREATER_EQUAL LESS LOGISTIC MAXIMUM MAX_POOL_2D MEAN MINIMUM MIRROR_PAD PACK REDUCE_MAX REDUCE_MIN "
    "GELU RELU RELU6 RESIZE_BILINEAR RESIZE_NEAREST_NEIGHBOR RSQRT SOFTMAX SPACE_TO_BATCH_ND SPLIT_V TANH TOPK_V2 UNPACK"
).split():
    _BY_TYPE.setdefault(_code, {"INT8": 2, "INT16": 3})
# Their second version is the last one: it takes both types, or has no kernel for 16 bits.
for _code in (
    "DEPTH_TO_SPACE GREATER L2_NORMALIZATION LESS_EQUAL LOG_SOFTMAX REDUCE_PROD SPACE_TO_DEPTH SQUARED_DIFFERENCE SUM"
).split():
    _BY_TYPE.setdefault(_code, {"INT8": 2, "INT16": 2})
# code -> version of the kernel that takes more than four dimensions
_BY_RANK = {"PAD": 4, "PADV2": 4, "SLICE": 5, "STRIDED_SLICE": 4, "TRANSPOSE": 4}
# The same for inputs with different shapes.
_BY_BROADCAST = {"SUB": 3, "DIV": 2, "MAXIMUM": 3, "MINIMUM": 3}
_BROADCASTING = frozenset(
    (
        "ADD ATAN2 DIV EQUAL FLOOR_DIV FLOOR_MOD GREATER GREATER_EQUAL LESS LESS_EQUAL LOGICAL_AND LOGICAL_OR MAXIMUM MINIMUM MUL NOT_EQUAL "
        "POW SQUARED_DIFFERENCE SUB"
    ).split()
)
# The input that has the element type, if it is not the first.
_VALUES = {"FILL": 1, "SPLIT": 1, "TRANSPOSE_CONV": 2, "EMBEDDING_LOOKUP": 1, "SCATTER_ND": 1}


def _weights_are_smaller(operator: Operator) -> bool:
    """Whether 8-bit weights are multiplied with floating-point values."""
    weights = operator.inputs[1]
    return weights is not None and weights.type in ("INT8", "UINT8", "INT4") and _values(operator).type == "FLOAT32"


def _conv_2d(operator: Operator) -> int:
    x, weights = operator.inputs[0], operator.inputs[1]
    if _weights_are_smaller(operator):
        return 5 if weights is not None and weights.quantization is not None and weights.quantization.per_channel else 2
    if (
        x is not None
        and weights is not None
        and x.shape
        and weights.shape
        and x.shape[-1] != weights.shape[-1]
        and x.shape[-1] > 0
    ):
        return 6  # groups
    return 1


def _depthwise_conv_2d(operator: Operator) -> int:
    if _weights_are_smaller(operator):
        weights = operator.inputs[1]
        return 6 if weights is not None and weights.quantization is not None and weights.quantization.per_channel else 4
    return 2 if operator.options.dilationHFactor != 1 or operator.options.dilationWFactor != 1 else 1


def _fully_connected(operator: Operator) -> int:
    weights = operator.inputs[1]
    if weights is not None and weights.quantization is not None and weights.quantization.per_channel:
        # TensorFlow 2.21 writes 4 or 5 for integers, and runtimes without scales for channels then compute nonsense. These refuse 12.
        return 12
    if _weights_are_smaller(operator):
        return 9 if operator.options.asymmetricQuantizeInputs else 3
    if operator.options.keepNumDims:
        return 5
    return 6 if len(operator.inputs) == 2 and _values(operator).type == "INT8" else 1


def _resize(operator: Operator) -> int:
    return 3 if operator.options.halfPixelCenters else 1


def _batch_matmul(operator: Operator) -> int:
    return 4 if operator.options.asymmetricQuantizeInputs else 1


def _select_v2(operator: Operator) -> int:
    return 2 if operator.code == "SELECT" and len(_values(operator).shape or ()) > 4 else 1


def _transpose_conv(operator: Operator) -> int:
    if operator.options.fusedActivationFunction:
        return 4
    return 3 if len(operator.inputs) > 3 else 1 + _weights_are_smaller(operator)


_BY_OPTIONS: dict[str, Callable[[Operator], int]] = {
    "BATCH_MATMUL": _batch_matmul,
    "CAST": lambda operator: _BY_TYPE["CAST"].get(operator.outputs[0].type, 1),
    "CONV_2D": _conv_2d,
    "DEPTHWISE_CONV_2D": _depthwise_conv_2d,
    "EMBEDDING_LOOKUP": lambda operator: 3 if _values(operator).type == "INT8" else 1,
    "FLOOR_DIV": lambda operator: 2 if _values(operator).type == "FLOAT32" else 1,
    "FULLY_CONNECTED": _fully_connected,
    "GATHER": lambda operator: 5 if operator.options.batchDims else 1,
    "RESIZE_BILINEAR": _resize,
    "RESIZE_NEAREST_NEIGHBOR": _resize,
    "SELECT": _select_v2,
    "TRANSPOSE_CONV": _transpose_conv,
}


def _values(operator: Operator) -> Tensor:
    found = operator.inputs[_VALUES.get(operator.code, 0)] if operator.inputs else None
    return found if found is not None else Tensor("")


def _broadcasts(operator: Operator) -> bool:
    if operator.code not in _BROADCASTING:
        return False
    shapes = [each.shape for each in operator.inputs[:2] if each is not None]
    return len(shapes) == 2 and shapes[0] != shapes[1] and any(shape is not None and len(shape) > 4 for shape in shapes)


def version_of(operator: Operator) -> int:
    """The lowest version of the builtin that computes the operator."""
    code = operator.code
    if not operator.inputs:
        return 1
    value = _values(operator)
    found = [_FIRST.get(code, 1), _BY_TYPE.get(code, {}).get(value.type, 1)]
    if code in _BY_RANK and value.shape is not None and len(value.shape) > 4:
        found.append(_BY_RANK[code])
    if code in _BY_BROADCAST and _broadcasts(operator):
        found.append(_BY_BROADCAST[code])
    if code in _BY_OPTIONS:
        found.append(_BY_OPTIONS[code](operator))
    return max(found)


def assign_versions(model: Model) -> None:
    """Gives each operator its version."""
    for operator in model.operators():
        operator.version = version_of(operator)


# runtime -> builtins that it introduced, in version 1 or in the version after the colon
_RUNTIMES = {
    "1.5.0": (
        "ADD AVERAGE_POOL_2D CAST CONCATENATION CONV_2D DEPTHWISE_CONV_2D FAKE_QUANT FULLY_CONNECTED "
        "L2_NORMALIZATION L2_POOL_2D LOCAL_RESPONSE_NORMALIZATION MAX_POOL_2D MUL PAD RELU RELU6 RELU_N1_TO_1 "
        "RESHAPE SOFTMAX SPACE_TO_DEPTH SPLIT"
    ),
    "1.6.0": "BATCH_TO_SPACE_ND DIV GATHER MEAN SPACE_TO_BATCH_ND SQUEEZE STRIDED_SLICE SUB TRANSPOSE",
    "1.7.0": "EXP LSTM RESIZE_BILINEAR TOPK_V2",
    "1.8.0": "PRELU",
    "1.9.0": "ARG_MAX ARG_MIN FLOOR NEG PADV2 SIN SPARSE_TO_DENSE TRANSPOSE_CONV",
    "1.10.0": "EXPAND_DIMS POW RSQRT SHAPE SQRT SUM",
    "1.10.1": "TILE",
    "1.11.0": "LOGICAL_AND LOGICAL_NOT LOGICAL_OR ONE_HOT PACK REDUCE_ANY REDUCE_MAX REDUCE_MIN REDUCE_PROD UNPACK",
    "1.12.0": "DEPTHWISE_CONV_2D:2 SQUARE ZEROS_LIKE",
    "1.13.0": "ABS EMBEDDING_LOOKUP FILL FLOOR_MOD RANGE",
    "1.13.1": (
        "DEQUANTIZE LEAKY_RELU MIRROR_PAD RESIZE_NEAREST_NEIGHBOR SPLIT_V SQUARED_DIFFERENCE "
        "UNIDIRECTIONAL_SEQUENCE_LSTM"
    ),
    "1.14.0": (
        "ADD:2 ADD_N AVERAGE_POOL_2D:2 BIDIRECTIONAL_SEQUENCE_LSTM BIDIRECTIONAL_SEQUENCE_RNN CEIL CONCATENATION:2 "
        "CONV_2D:2 CONV_2D:3 COS DEPTHWISE_CONV_2D:3 DEQUANTIZE:2 ELU EQUAL FLOOR_DIV FLOOR_DIV:2 "
        "FULLY_CONNECTED:3 FULLY_CONNECTED:4 GATHER:2 GATHER_ND GREATER GREATER_EQUAL L2_NORMALIZATION:2 LESS "
        "LESS_EQUAL LOG LOGISTIC LOGISTIC:2 LOG_SOFTMAX MATRIX_DIAG MATRIX_SET_DIAG MAXIMUM MAXIMUM:2 "
        "MAX_POOL_2D:2 MEAN:2 MINIMUM MINIMUM:2 MUL:2 NOT_EQUAL PACK:2 PAD:2 QUANTIZE RANK RESIZE_BILINEAR:2 "
        "REVERSE_SEQUENCE REVERSE_V2 ROUND SELECT SLICE SLICE:2 SLICE:3 SOFTMAX:2 SPLIT:2 SPLIT:3 STRIDED_SLICE:2 "
        "SUB:2 TANH TANH:2 TRANSPOSE:2 UNIDIRECTIONAL_SEQUENCE_RNN UNIQUE WHERE"
    ),
    "1.15.0": "GATHER:3 HARD_SWISH IF SUM:2 TRANSPOSE:3 WHILE",
    "2.0.0": "FULLY_CONNECTED:5",
    "2.1.0": "DEPTH_TO_SPACE NON_MAX_SUPPRESSION_V4 NON_MAX_SUPPRESSION_V5 RELU6:2 RELU:2 SCATTER_ND STRIDED_SLICE:3",
    "2.2.0": (
        "DEPTHWISE_CONV_2D:4 RESIZE_BILINEAR:3 REVERSE_V2:2 SEGMENT_SUM SELECT_V2 STRIDED_SLICE:4 TILE:2 "
        "TRANSPOSE_CONV:2"
    ),
    "2.3.0": (
        "BATCH_MATMUL BATCH_MATMUL:2 EQUAL:3 FILL:2 FULLY_CONNECTED:9 GATHER_ND:2 LEAKY_RELU:2 MAXIMUM:3 "
        "NOT_EQUAL:3 RESIZE_NEAREST_NEIGHBOR:3 SUB:3 TRANSPOSE:4 TRANSPOSE_CONV:3"
    ),
    "2.4.0": "CUMSUM SUB:4",
    "2.5.0": (
        "BROADCAST_TO:2 CALL_ONCE COMPLEX_ABS CONV_3D GATHER:5 HASHTABLE HASHTABLE_FIND HASHTABLE_IMPORT "
        "HASHTABLE_SIZE IMAG REAL RFFT2D SLICE:5 STRIDED_SLICE:5"
    ),
    "2.6.0": (
        "ADD:4 ASSIGN_VARIABLE BROADCAST_ARGS CONV_3D_TRANSPOSE MUL:5 PAD:4 READ_VARIABLE REDUCE_ALL REDUCE_PROD:2 "
        "VAR_HANDLE"
    ),
    "2.8.0": "BUCKETIZE MULTINOMIAL RANDOM_STANDARD_NORMAL RANDOM_UNIFORM WHERE:2",
    "2.9.0": "CONV_2D:6 DYNAMIC_UPDATE_SLICE GELU",
    "2.10.0": "ATAN2 RELU_0_TO_1 UNSORTED_SEGMENT_MAX UNSORTED_SEGMENT_PROD UNSORTED_SEGMENT_SUM",
    "2.11.0": "SIGN UNSORTED_SEGMENT_MIN",
    "2.12.0": "ABS:5 CAST:5 SIGN:2",
    "2.13.0": "BITCAST BITWISE_XOR RIGHT_SHIFT TRANSPOSE_CONV:4",
    "2.14.0": "RANGE:2",
    "2.15.0": "LOG:2",
    "2.17.0": "FULLY_CONNECTED:12",
    "2.21.0": "DYNAMIC_UPDATE_SLICE:5 SQRT:2",
}
_FIRST_RUNTIME = {
    each if ":" in each else f"{each}:1": runtime for runtime, names in _RUNTIMES.items() for each in names.split()
}


def _order(version: str) -> list[int]:
    return [int(part) for part in version.split(".")]


OLDEST = "1.15.0"
"""The oldest runtime that models can be made for."""


def is_runtime(version: Any) -> bool:
    """Whether this is a runtime that models can be made for: 1.15 or a younger one."""
    if not isinstance(version, str) or not re.fullmatch(r"\d+(\.\d+){1,2}", version):
        return False
    return _order(version) >= _order(OLDEST)[:2]


def _runtime_of(code: str, version: int) -> str:
    """The oldest runtime that has a builtin in a version. Builtins missing from the table are assumed to be as old as the oldest runtime."""
    return _FIRST_RUNTIME.get(f"{code}:{version}", "1.5.0")


def minimum_runtime(model: Model) -> str:
    """The oldest runtime that supports all builtins in their versions."""
    needed = [_runtime_of(operator.code, operator.version) for operator in model.operators()]
    return max(needed, key=_order, default="1.5.0")


def is_available(operator: Operator, runtime: str) -> bool:
    """Whether a runtime, 1.15 or a younger one, is known to have the builtin in the version that the operator needs."""
    if not _has(operator.code, version_of(operator), runtime):
        return False
    return _order(runtime) >= [2] or not _differs_in_1_15(operator)


def _differs_in_1_15(operator: Operator) -> bool:
    """Whether 1.15 has the builtin in this version, but fails with these arguments, or computes something else."""
    tensors = [*(each for each in operator.inputs if each is not None), *operator.outputs]
    types = {each.type for each in tensors}
    if operator.code == "CONCATENATION" and "BOOL" in types:
        return True
    if operator.code == "CAST" and types & {"INT8", "INT16"}:
        return True
    # UNIQUE of 1.15 returns wrong values.
    return (
        operator.code == "UNIQUE"
        or (operator.code == "SOFTMAX" and len(_values(operator).shape or ()) > 4)
        or _broadcasts(operator)
    )


def without_channel_scales(runtime: str) -> frozenset[str]:
    """The products that have no integer kernel with a scale for each channel in a runtime."""
    first = {"FULLY_CONNECTED": 12, "TRANSPOSE_CONV": 2}
    return frozenset(code for code, version in first.items() if not _has(code, version, runtime))


def without_integers(runtime: str, type_name: str) -> frozenset[str]:
    """The builtins that have no kernel for quantized numbers of a type in a runtime."""
    lacking = {code for code, versions in _BY_TYPE.items() if not _has(code, versions.get(type_name, 1), runtime)}
    if type_name == "INT8" and _order(runtime) < [2]:
        lacking |= _WRONG_IN_1_15
    return frozenset(lacking)


# Kernels of 1.15 for 8-bit numbers that fail or compute something else, although they have the version.
_WRONG_IN_1_15 = frozenset(
    ("CAST", "CONCATENATION", "ELU", "EXP", "MEAN", "PAD", "PADV2", "PRELU", "RELU6", "RELU_N1_TO_1", "SUM")
)


def _has(code: str, version: int, runtime: str) -> bool:
    if version <= _IN_1_15.get(code, 0):
        return True
    first = _FIRST_RUNTIME.get(f"{code}:{version}")
    return first is not None and _order(first) <= max(_order(runtime), [2, 0, 0])


# The latest version of each builtin in TensorFlow 1.15.
_IN_1_15 = {
    "BIDIRECTIONAL_SEQUENCE_LSTM": 3,
    "CONV_2D": 3,
    "DEPTHWISE_CONV_2D": 3,
    "DEQUANTIZE": 4,
    "EMBEDDING_LOOKUP": 3,
    "FULLY_CONNECTED": 6,
    "GATHER": 3,
    "LSTM": 3,
    "MUL": 3,
    "SLICE": 3,
    "SPARSE_TO_DENSE": 3,
    "SPLIT": 3,
    "TRANSPOSE": 3,
    **dict.fromkeys(
        (
            "ADD ARG_MAX ARG_MIN AVERAGE_POOL_2D BATCH_TO_SPACE_ND BIDIRECTIONAL_SEQUENCE_RNN CONCATENATION EQUAL FAKE_QUANT FLOOR_DIV GREATER "
            "GREATER_EQUAL L2_NORMALIZATION LESS LESS_EQUAL LOGISTIC LOG_SOFTMAX MAXIMUM MAX_POOL_2D MEAN MINIMUM NOT_EQUAL PACK PAD PADV2 QUANTIZE "
            "REDUCE_MAX REDUCE_MIN RELU6 RESIZE_BILINEAR RESIZE_NEAREST_NEIGHBOR RNN SELECT SOFTMAX SPACE_TO_BATCH_ND SPACE_TO_DEPTH "
            "STRIDED_SLICE SUB SUM SVDF TANH TOPK_V2 UNIDIRECTIONAL_SEQUENCE_LSTM UNIDIRECTIONAL_SEQUENCE_RNN UNPACK"
        ).split(),
        2,
    ),
    **dict.fromkeys(
        (
            "ABS ADD_N CAST CEIL COS DEPTH_TO_SPACE DIV ELU EMBEDDING_LOOKUP_SPARSE EXP EXPAND_DIMS FILL FLOOR FLOOR_MOD GATHER_ND HARD_SWISH "
            "HASHTABLE_LOOKUP IF L2_POOL_2D LEAKY_RELU LOCAL_RESPONSE_NORMALIZATION LOG LOGICAL_AND LOGICAL_NOT LOGICAL_OR LSH_PROJECTION "
            "MATRIX_DIAG MATRIX_SET_DIAG MIRROR_PAD NEG ONE_HOT POW PRELU RANGE RANK REDUCE_ANY REDUCE_PROD RELU RELU_N1_TO_1 RESHAPE "
            "REVERSE_SEQUENCE REVERSE_V2 ROUND RSQRT SHAPE SIN SKIP_GRAM SPLIT_V SQRT SQUARE SQUARED_DIFFERENCE SQUEEZE TILE TRANSPOSE_CONV "
            "UNIQUE WHERE WHILE ZEROS_LIKE"
        ).split(),
        1,
    ),
}
