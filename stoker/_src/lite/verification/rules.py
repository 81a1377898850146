"""Assumptions of LiteRT's kernels, by op and by option."""

from __future__ import annotations

from stoker._src.lite.verification.structure import Table

# The bytes of an element, or 0 if the size is not fixed.
BYTES = {
    "FLOAT32": 4,
    "FLOAT16": 2,
    "BFLOAT16": 2,
    "FLOAT64": 8,
    "INT8": 1,
    "UINT8": 1,
    "INT16": 2,
    "UINT16": 2,
    "INT32": 4,
    "UINT32": 4,
    "INT64": 8,
    "UINT64": 8,
    "BOOL": 1,
    "COMPLEX64": 8,
    "COMPLEX128": 16,
    "FLOAT8_E4M3FN": 1,
    "FLOAT8_E5M2": 1,
    "INT4": 0.5,
    "UINT4": 0.5,
    "INT2": 0.25,
    "STRING": 0,
    "RESOURCE": 0,
    "VARIANT": 0,
}
# Options that are divisors or counts, in any table.
POSITIVE = {
    "StrideW",
    "StrideH",
    "StrideD",
    "DilationWFactor",
    "DilationHFactor",
    "DilationDFactor",
    "FilterWidth",
    "FilterHeight",
    "BlockSize",
    "NumSplits",
    "ValuesCount",
}
# The sides of windows stay below these: kernels prepare a table of all places of a window, however much of it is padding.
WINDOWS = {"FilterWidth": 2**20, "FilterHeight": 2**20}
# Counts that may be zero.
NOT_NEGATIVE = {"Radius": 2**20}
ENUMERATIONS = {
    "Padding": "Padding",
    "FusedActivationFunction": "ActivationFunctionType",
    "WeightsFormat": "FullyConnectedOptionsWeightsFormat",
    "InDataType": "TensorType",
    "OutDataType": "TensorType",
    "OutType": "TensorType",
    "OutputType": "TensorType",
    "IdxOutType": "TensorType",
    "KeyDtype": "TensorType",
    "ValueDtype": "TensorType",
    "QuantizedBiasType": "TensorType",
    "Mode": "MirrorPadMode",
    "KernelType": "LSTMKernelType",
    "Combiner": "CombinerType",
    "ReduceFunction": "ReduceWindowFunction",
}
SUBGRAPHS = {
    "ThenSubgraphIndex",
    "ElseSubgraphIndex",
    "CondSubgraphIndex",
    "BodySubgraphIndex",
    "InitSubgraphIndex",
    "Subgraph",
    "BranchSubgraphIndices",
    "CalledComputations",
    "ComparatorSubgraphIndex",
    "DecompositionSubgraphIndex",
    "UpdateComputationSubgraphIndex",
}
# Ops whose kernels cannot handle options that are all zero. They get those if the options in the file belong to another op.
OPTIONS = {
    "CONV_2D": "Conv2DOptions",
    "DEPTHWISE_CONV_2D": "DepthwiseConv2DOptions",
    "CONV_3D": "Conv3DOptions",
    "CONV_3D_TRANSPOSE": "Conv3DOptions",
    "TRANSPOSE_CONV": "TransposeConvOptions",
    "MAX_POOL_2D": "Pool2DOptions",
    "AVERAGE_POOL_2D": "Pool2DOptions",
    "L2_POOL_2D": "Pool2DOptions",
    "DEPTH_TO_SPACE": "DepthToSpaceOptions",
    "SPACE_TO_DEPTH": "SpaceToDepthOptions",
    "SPLIT": "SplitOptions",
    "SPLIT_V": "SplitVOptions",
    "PACK": "PackOptions",
    "UNPACK": "UnpackOptions",
    "IF": "IfOptions",
    "WHILE": "WhileOptions",
    "CALL_ONCE": "CallOnceOptions",
    "CALL": "CallOptions",
    "VAR_HANDLE": "VarHandleOptions",
    "HASHTABLE": "HashtableOptions",
    "BUCKETIZE": "BucketizeOptions",
    "STABLEHLO_COMPOSITE": "StableHLOCompositeOptions",
}
# The inputs that may be omitted. Kernels of other ops do not check whether their inputs are present.
FLEXIBLE = {
    "TFLite_Detection_PostProcess": ("FLOAT32", "UINT8"),
    "AudioSpectrogram": ("FLOAT32",),
    "Mfcc": ("FLOAT32", "INT32"),
    "NumericVerify": ("FLOAT32", "FLOAT16", "INT8", "UINT8", "INT16"),
}
"""Custom operators whose kernels LiteRT has, with the types of their inputs. They read their options from a map."""
OPTIONAL_INPUTS = {
    "CONV_2D": frozenset({2}),
    "DEPTHWISE_CONV_2D": frozenset({2}),
    "FULLY_CONNECTED": frozenset({2}),
    "TRANSPOSE_CONV": frozenset({3}),
    "CONV_3D": frozenset({2}),
    "CONV_3D_TRANSPOSE": frozenset({3}),
    "SVDF": frozenset({3}),
    # Input gates, peepholes, projection and layer normalization.
    "LSTM": frozenset({1, 5, 9, 10, 11, 12, 16, 17, 20, 21, 22, 23}),
    "UNIDIRECTIONAL_SEQUENCE_LSTM": frozenset({1, 5, 9, 10, 11, 12, 16, 17, 20, 21, 22, 23}),
    "BIDIRECTIONAL_SEQUENCE_LSTM": frozenset(
        {1, 5, 9, 10, 11, 12, 16, 17, 18, 22, 26, 27, 28, 29, 33, 34, *range(39, 48)}
    ),
    "BIDIRECTIONAL_SEQUENCE_RNN": frozenset({9, 10, 11}),
    "STABLEHLO_COMPOSITE": frozenset(range(1024)),
}


# Options that state the number of inputs or outputs. The kernels trust them.
COUNTS = {
    "SPLIT": ("NumSplits", "Outputs"),
    "SPLIT_V": ("NumSplits", "Outputs"),
    "UNPACK": ("Num", "Outputs"),
    "PACK": ("ValuesCount", "Inputs"),
}
# The required numbers of inputs and outputs. The kernels of these ops access all of them before counting.
ARGUMENTS = {
    "DEPTHWISE_CONV_2D": (3, 1),
    "SLICE": (3, 1),
    "STRIDED_SLICE": (4, 1),
    "BATCH_MATMUL": (2, 1),
    "READ_VARIABLE": (1, 1),
    "ASSIGN_VARIABLE": (2, 0),
    "SIGN": (1, 1),
}
# The dimensions of the first input. These kernels end the process where it has others.
RANKS = {"UNIDIRECTIONAL_SEQUENCE_LSTM": 3, "BIDIRECTIONAL_SEQUENCE_LSTM": 3}
# The inputs that are shapes of results. They have a number for each dimension, of which kernels have at most eight.
SHAPES = {"RESHAPE": 1, "FILL": 0, "BROADCAST_TO": 1, "RANDOM_UNIFORM": 0, "RANDOM_STANDARD_NORMAL": 0, "SCATTER_ND": 2}
MOST_DIMENSIONS = 8
# Elements that are more than numbers: only operators that take some, or have some elsewhere, can make them.
REFERRING = frozenset(("STRING", "RESOURCE", "VARIANT"))
REFERRING_SOURCES = frozenset(
    ("CALL", "CUSTOM", "HASHTABLE", "HASHTABLE_FIND", "IF", "READ_VARIABLE", "VAR_HANDLE", "WHILE")
)
COMPARISONS = frozenset(("EQUAL", "NOT_EQUAL", "GREATER", "GREATER_EQUAL", "LESS", "LESS_EQUAL"))
# Operators that move numbers, and those that make truth values. Of others that compute a result from each number, these change the type.
MOVING = frozenset(
    (
        "BATCH_TO_SPACE_ND BROADCAST_TO CONCATENATION DYNAMIC_UPDATE_SLICE GATHER GATHER_ND MATRIX_DIAG MATRIX_SET_DIAG MAX_POOL_2D MIRROR_PAD PACK PAD "
        "PADV2 RESHAPE RESIZE_NEAREST_NEIGHBOR SLICE SPACE_TO_BATCH_ND STRIDED_SLICE TILE UNPACK"
    ).split()
)
TRUTHS = COMPARISONS | {"LOGICAL_AND", "LOGICAL_OR", "LOGICAL_NOT"}
RETYPED = frozenset(("CAST", "DEQUANTIZE", "FAKE_QUANT", "QUANTIZE", "SELECT_V2"))
# The inputs that are used as positions in memory.
POSITIONS = {"SLICE": (1, 2), "STRIDED_SLICE": (1, 2, 3)}


# Sums shift their arguments to the left by these numbers of bits, and the rest of the factor must be below one.
_SHIFTS = {"INT8": 20, "UINT8": 20, "INT16": 15}
_SQUARED_SHIFT = 7


def scale_problem(name: str, kind: str, inputs: list[float], results: list[float]) -> str:
    """Why kernels for quantized numbers abort with these scales, or "". A tensor without a scale counts as zero.

    Args:
        name: the builtin.
        kind: the type of the numbers.
        inputs: the scales of the arguments.
        results: the scales of the results, none if these are not quantized.
    """
    if kind not in _SHIFTS:
        return ""
    if name in COMPARISONS and any(scale in (0.0, 1.0) for scale in inputs):
        return "it compares numbers whose scale is 0 or 1"
    if name in ("ADD", "SUB", "SQUARED_DIFFERENCE") and results:
        if 0.0 in (*inputs, *results):
            return "a scale is 0"
        factor = 2 * max(inputs) / 2.0 ** _SHIFTS[kind] / results[0]
        if name == "SQUARED_DIFFERENCE":
            factor = (2 * max(inputs) / 2.0**_SQUARED_SHIFT) ** 2 / results[0]
        if factor >= 1:
            return f"its arguments have scales up to {max(inputs):g}, which its result with the scale {results[0]:g} is too small for"
    return ""


class Variables:
    """Shapes of resource variables. A read copies as many bytes as the shape of its result implies."""

    def __init__(self) -> None:
        self.shapes: dict[tuple[bytes, bytes], tuple[int, bytes]] = {}
        self.handles: dict[tuple[int, int], tuple[bytes, bytes]] = {}

    def visit(
        self, subgraph: int, name: str, operator: Table, inputs: list[int], outputs: list[int], tensors: list[Table]
    ) -> str:
        """Records the shape that an op states for a variable. Returns the contradiction with an earlier op, else ""."""
        if name == "VAR_HANDLE" and outputs:
            options = operator.BuiltinOptions
            key = (bytes(options.Container or b""), bytes(options.SharedName or b""))
            self.handles[subgraph, outputs[0]] = key
            return ""
        if name == "READ_VARIABLE" and inputs and outputs:
            handle, value = inputs[0], tensors[outputs[0]]
        elif name == "ASSIGN_VARIABLE" and len(inputs) > 1:
            handle, value = inputs[0], tensors[inputs[1]]
        else:
            return ""
        known = self.handles.get((subgraph, handle))
        free = value.ShapeSignature is not None and b"\xff\xff\xff\xff" in bytes(value.ShapeSignature)
        if known is None or free:
            return ""
        found = (value.Type, bytes(value.Shape or b""))
        if self.shapes.setdefault(known, found) != found:
            return f"the variable {known[1].decode('utf-8', 'replace')!r} has another type or shape elsewhere"
        return ""
