"""Float models of one operator each, for every op that quantization knows."""

from __future__ import annotations

from typing import Any

import numpy as np

from stoker._src.lite.model import Model, Operator, Subgraph, Tensor
from stoker._src.lite.verification.layout import schema

S: Any = schema()
RANDOM = np.random.RandomState(2)


def _ints(*values: int) -> np.ndarray:
    return np.array(values, np.int32)


def _floats(*shape: int) -> np.ndarray:
    return RANDOM.uniform(-1, 1, shape).astype(np.float32)


IMAGE, MATRIX, VECTOR = (1, 4, 4, 4), (2, 8), (1, 8)
SAME, NONE = 0, 0
# Op -> (inputs: a shape for an argument, an array for a constant; shapes of the results; options; types of results other than FLOAT32)
CASES: dict[str, tuple[list[Any], list[tuple[int, ...]], Any, list[str]]] = {
    "CONV_2D": (
        [IMAGE, _floats(6, 3, 3, 4), _floats(6)],
        [(1, 4, 4, 6)],
        S.Conv2DOptionsT(strideW=1, strideH=1, dilationWFactor=1, dilationHFactor=1),
        [],
    ),
    "DEPTHWISE_CONV_2D": (
        [IMAGE, _floats(1, 3, 3, 4), _floats(4)],
        [IMAGE],
        S.DepthwiseConv2DOptionsT(strideW=1, strideH=1, depthMultiplier=1, dilationWFactor=1, dilationHFactor=1),
        [],
    ),
    "FULLY_CONNECTED": ([MATRIX, _floats(5, 8), _floats(5)], [(2, 5)], S.FullyConnectedOptionsT(), []),
    "TRANSPOSE_CONV": (
        [_ints(1, 8, 8, 2), _floats(2, 2, 2, 4), IMAGE],
        [(1, 8, 8, 2)],
        S.TransposeConvOptionsT(strideW=2, strideH=2),
        [],
    ),
    "AVERAGE_POOL_2D": (
        [IMAGE],
        [(1, 2, 2, 4)],
        S.Pool2DOptionsT(padding=1, strideW=2, strideH=2, filterWidth=2, filterHeight=2),
        [],
    ),
    "MAX_POOL_2D": (
        [IMAGE],
        [(1, 2, 2, 4)],
        S.Pool2DOptionsT(padding=1, strideW=2, strideH=2, filterWidth=2, filterHeight=2),
        [],
    ),
    "RESHAPE": ([MATRIX, _ints(4, 4)], [(4, 4)], S.ReshapeOptionsT(), []),
    "TRANSPOSE": ([MATRIX, _ints(1, 0)], [(8, 2)], None, []),
    "SLICE": ([MATRIX, _ints(0, 1), _ints(2, 3)], [(2, 3)], None, []),
    "STRIDED_SLICE": ([MATRIX, _ints(0, 1), _ints(2, 7), _ints(1, 2)], [(2, 3)], S.StridedSliceOptionsT(), []),
    "SQUEEZE": ([VECTOR], [(8,)], S.SqueezeOptionsT(squeezeDims=_ints(0)), []),
    "EXPAND_DIMS": ([MATRIX, _ints(0)], [(1, 2, 8)], None, []),
    "PAD": ([MATRIX, np.array([[0, 0], [1, 1]], np.int32)], [(2, 10)], None, []),
    "MIRROR_PAD": ([MATRIX, np.array([[0, 0], [1, 1]], np.int32)], [(2, 10)], S.MirrorPadOptionsT(), []),
    "GATHER": ([MATRIX, _ints(1, 0, 1)], [(3, 8)], S.GatherOptionsT(), []),
    "GATHER_ND": ([MATRIX, np.array([[1], [0]], np.int32)], [(2, 8)], None, []),
    "SPLIT": ([_ints(1).reshape(()), MATRIX], [(2, 4), (2, 4)], S.SplitOptionsT(numSplits=2), []),
    "SPLIT_V": (
        [MATRIX, _ints(3, 5), _ints(1).reshape(())],
        [(2, 3), (2, 5)],
        S.SplitVOptionsT(numSplits=2),
        [],
    ),
    "UNPACK": ([MATRIX], [(8,), (8,)], S.UnpackOptionsT(num=2), []),
    "TILE": ([MATRIX, _ints(1, 2)], [(2, 16)], None, []),
    "BATCH_TO_SPACE_ND": (
        [(4, 2, 2, 1), _ints(2, 2), np.zeros((2, 2), np.int32)],
        [(1, 4, 4, 1)],
        None,
        [],
    ),
    "SPACE_TO_BATCH_ND": ([IMAGE, _ints(2, 2), np.zeros((2, 2), np.int32)], [(4, 2, 2, 4)], None, []),
    "SPACE_TO_DEPTH": ([IMAGE], [(1, 2, 2, 16)], S.SpaceToDepthOptionsT(blockSize=2), []),
    "DEPTH_TO_SPACE": ([IMAGE], [(1, 8, 8, 1)], S.DepthToSpaceOptionsT(blockSize=2), []),
    "RESIZE_BILINEAR": ([IMAGE, _ints(8, 8)], [(1, 8, 8, 4)], S.ResizeBilinearOptionsT(), []),
    "RESIZE_NEAREST_NEIGHBOR": ([IMAGE, _ints(8, 8)], [(1, 8, 8, 4)], S.ResizeNearestNeighborOptionsT(), []),
    "REVERSE_V2": ([MATRIX, _ints(1)], [MATRIX], None, []),
    "BROADCAST_TO": ([VECTOR, _ints(3, 8)], [(3, 8)], None, []),
    "REDUCE_MAX": ([MATRIX, _ints(1)], [(2,)], S.ReducerOptionsT(), []),
    "REDUCE_MIN": ([MATRIX, _ints(1)], [(2,)], S.ReducerOptionsT(), []),
    "TOPK_V2": ([MATRIX, _ints(2).reshape(())], [(2, 2), (2, 2)], None, ["FLOAT32", "INT32"]),
    "CONCATENATION": ([MATRIX, MATRIX], [(2, 16)], S.ConcatenationOptionsT(axis=1), []),
    "PACK": ([MATRIX, MATRIX], [(2, 2, 8)], S.PackOptionsT(valuesCount=2), []),
    "MAXIMUM": ([MATRIX, MATRIX], [MATRIX], None, []),
    "MINIMUM": ([MATRIX, _floats(1)], [MATRIX], None, []),
    "PADV2": (
        [MATRIX, np.array([[0, 0], [1, 1]], np.int32), np.array([0.5], np.float32).reshape(())],
        [(2, 10)],
        None,
        [],
    ),
    "DYNAMIC_UPDATE_SLICE": ([MATRIX, (1, 8), _ints(1, 0)], [MATRIX], None, []),
    "SELECT_V2": ([np.arange(16).reshape(MATRIX) % 3 > 0, MATRIX, MATRIX], [MATRIX], None, []),
    "SELECT": ([np.arange(16).reshape(MATRIX) % 3 > 0, MATRIX, MATRIX], [MATRIX], None, []),
    "ONE_HOT": (
        [_ints(1, 0, 3), _ints(4).reshape(()), np.array(0.75, np.float32), np.array(-0.25, np.float32)],
        [(3, 4)],
        S.OneHotOptionsT(axis=-1),
        [],
    ),
    "SOFTMAX": ([MATRIX], [MATRIX], S.SoftmaxOptionsT(beta=1.0), []),
    "LOGISTIC": ([MATRIX], [MATRIX], None, []),
    "TANH": ([MATRIX], [MATRIX], None, []),
    "L2_NORMALIZATION": ([MATRIX], [MATRIX], S.L2NormOptionsT(), []),
    "LOG_SOFTMAX": ([MATRIX], [MATRIX], None, []),
    "ADD": ([MATRIX, MATRIX], [MATRIX], S.AddOptionsT(), []),
    "SUB": ([MATRIX, MATRIX], [MATRIX], S.SubOptionsT(), []),
    "MUL": ([MATRIX, _floats(8)], [MATRIX], S.MulOptionsT(), []),
    "MEAN": ([IMAGE, _ints(1, 2)], [(1, 4)], S.ReducerOptionsT(), []),
    "SUM": ([MATRIX, _ints(1)], [(2,)], S.ReducerOptionsT(), []),
    "LEAKY_RELU": ([MATRIX], [MATRIX], S.LeakyReluOptionsT(alpha=0.2), []),
    "HARD_SWISH": ([MATRIX], [MATRIX], None, []),
    "PRELU": ([IMAGE, np.abs(_floats(4))], [IMAGE], None, []),
    "ELU": ([MATRIX], [MATRIX], None, []),
    "EXP": ([MATRIX], [MATRIX], None, []),
    "GELU": ([MATRIX], [MATRIX], S.GeluOptionsT(), []),
    "ABS": ([MATRIX], [MATRIX], None, []),
    "RSQRT": ([MATRIX], [MATRIX], None, []),
    "LOG": ([MATRIX], [MATRIX], None, []),
    "SQRT": ([MATRIX], [MATRIX], None, []),
    "REDUCE_PROD": ([MATRIX, _ints(1)], [(2,)], S.ReducerOptionsT(), []),
    "SQUARED_DIFFERENCE": ([MATRIX, MATRIX], [MATRIX], None, []),
    "RELU": ([MATRIX], [MATRIX], None, []),
    "RELU6": ([MATRIX], [MATRIX], None, []),
    "RELU_N1_TO_1": ([MATRIX], [MATRIX], None, []),
    "RELU_0_TO_1": ([MATRIX], [MATRIX], None, []),
    "FILL": ([_ints(2, 4), np.array(0.5, np.float32)], [(2, 4)], S.FillOptionsT(), []),
    "CAST": ([np.array([True, False])], [(2,)], S.CastOptionsT(inDataType=6, outDataType=0), []),
    "BATCH_MATMUL": ([(2, 3, 4), (2, 4, 5)], [(2, 3, 5)], S.BatchMatMulOptionsT(), []),
    "ARG_MAX": ([MATRIX, _ints(1)], [(2,)], S.ArgMaxOptionsT(outputType=2), ["INT32"]),
    "ARG_MIN": ([MATRIX, _ints(1)], [(2,)], S.ArgMinOptionsT(outputType=2), ["INT32"]),
    **{
        code: ([MATRIX, MATRIX], [MATRIX], None, ["BOOL"])
        for code in ("EQUAL", "NOT_EQUAL", "GREATER", "GREATER_EQUAL", "LESS", "LESS_EQUAL")
    },
    "SHAPE": ([MATRIX], [(2,)], S.ShapeOptionsT(outType=2), ["INT32"]),
    "RANK": ([MATRIX], [()], None, ["INT32"]),
}
_TYPES = {"float32": "FLOAT32", "int32": "INT32", "bool": "BOOL"}


def model_of(code: str) -> Model:
    """A float model of one operator. Its inputs pass through a sum first, so that results of other ops come before it."""
    given, shapes, options, types = CASES[code]
    inputs, arguments, operators = [], [], []
    for number, each in enumerate(given):
        if isinstance(each, np.ndarray):
            arguments.append(Tensor(f"constant{number}", _TYPES[each.dtype.name], each.shape, each))
            continue
        source = Tensor(f"in{number}", "FLOAT32", each)
        moved = Tensor(f"moved{number}", "FLOAT32", each)
        inputs.append(source)
        arguments.append(moved)
        one = Tensor(f"offset{number}", "FLOAT32", (), np.array(0.25, np.float32))
        operators.append(Operator("ADD", [source, one], [moved], S.AddOptionsT()))
    outputs = [
        Tensor(f"out{number}", types[number] if types else "FLOAT32", shape) for number, shape in enumerate(shapes)
    ]
    operators.append(Operator(code, arguments, outputs, options, version=2 if code == "BROADCAST_TO" else 1))
    return Model([Subgraph("main", inputs, outputs, operators)])


def samples_of(model: Model, count: int = 8) -> list[list[np.ndarray]]:
    random = np.random.RandomState(4)
    # These need numbers above zero, also behind the sum.
    low = 0.1 if any(operator.code in ("RSQRT", "LOG", "SQRT") for operator in model.main.operators) else -1.25
    return [[random.uniform(low, 1, each.shape).astype(np.float32) for each in model.main.inputs] for _ in range(count)]
