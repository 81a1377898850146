"""Segment reductions."""

from __future__ import annotations

from typing import Any

import numpy as np
from ai_edge_litert import schema_py_generated as schema

from stoker._src.graph.tensor import Operation
from stoker._src.lite.lowering import Scope, Unsupported, lowers
from stoker._src.lite.model import Tensor

UNSORTED = {
    "UnsortedSegmentMax": ("UNSORTED_SEGMENT_MAX", schema.UnsortedSegmentMaxOptionsT),
    "UnsortedSegmentMin": ("UNSORTED_SEGMENT_MIN", schema.UnsortedSegmentMinOptionsT),
    "UnsortedSegmentProd": ("UNSORTED_SEGMENT_PROD", schema.UnsortedSegmentProdOptionsT),
    "UnsortedSegmentSum": ("UNSORTED_SEGMENT_SUM", schema.UnsortedSegmentSumOptionsT),
}


@lowers("SegmentSum")
def segment_sum(scope: Scope, op: Operation) -> Any:
    rows, segments = scope.tensor(op.inputs[0]), scope.int32(op, op.inputs[1])
    if segments.data is not None and np.any(np.diff(segments.data, prepend=0) > 1):
        return _reduced(scope, op, rows, segments, _segments_in(scope, op, segments), "Sum")
    return scope.emit("SEGMENT_SUM", [rows, segments], scope.result(op), schema.SegmentSumOptionsT())


@lowers(*UNSORTED)
def unsorted_segments(scope: Scope, op: Operation) -> Any:
    code, options = UNSORTED[op.type]
    inputs = [scope.tensor(op.inputs[0]), scope.int32(op, op.inputs[1]), scope.int32(op, op.inputs[2])]
    return scope.emit(code, inputs, scope.result(op), options())


_SUFFIX = "WithNumSegments"
_SPARSE = ("SparseSegmentSum", "SparseSegmentMean", "SparseSegmentSqrtN")


@lowers(*_SPARSE, *(name + _SUFFIX for name in _SPARSE))
def sparse_segments(scope: Scope, op: Operation) -> Any:
    """Reductions of rows that are looked up first, as of embeddings with several identifiers for an example."""
    data, indices = scope.tensor(op.inputs[0]), scope.int32(op, op.inputs[1])
    shape = None
    if data.shape is not None and indices.shape is not None:
        shape = (*indices.shape, *data.shape[1:])
    rows = scope.emit("GATHER", [data, indices], scope.temporary(op, data.type, shape), schema.GatherOptionsT())
    segments = scope.int32(op, op.inputs[2])
    count = scope.int32(op, op.inputs[3]) if op.type.endswith(_SUFFIX) else _segments_in(scope, op, segments)
    kind = op.type.removesuffix(_SUFFIX).removeprefix("SparseSegment")
    return _reduced(scope, op, rows, segments, count, kind)


@lowers("SegmentMean")
def segment_mean(scope: Scope, op: Operation) -> Any:
    segments = scope.int32(op, op.inputs[1])
    return _reduced(scope, op, scope.tensor(op.inputs[0]), segments, _segments_in(scope, op, segments), "Mean")


def _segments_in(scope: Scope, op: Operation, segments: Tensor) -> Tensor:
    """The number of segments: one more than the largest position, none if there are no positions."""
    if segments.data is not None:
        return scope.constant(segments.data.max(initial=-1) + 1, dtype=np.int32)

    def number(code: str, inputs: list[Tensor], options: Any) -> Tensor:
        return scope.emit(code, inputs, scope.temporary(op, "INT32", ()), options)

    last = number("REDUCE_MAX", [segments, scope.constant([0], "axis", np.int32)], schema.ReducerOptionsT())
    last = number("MAXIMUM", [last, scope.constant(-1, dtype=np.int32)], schema.MaximumMinimumOptionsT())
    return number("ADD", [last, scope.constant(1, dtype=np.int32)], schema.AddOptionsT())


def _reduced(scope: Scope, op: Operation, rows: Tensor, segments: Tensor, count: Tensor, kind: str) -> Tensor:
    """The sum, the mean, or the sum divided by the root of the number of the rows of each segment.

    SEGMENT_SUM refuses segments without rows, which are zero here.
    """
    result = scope.result(op)
    shape = result.shape
    if kind != "Sum" and (result.type != "FLOAT32" or shape is None):
        raise Unsupported(
            "the mean of segments is computed for float32 of known rank", "tf.math.segment_sum, then divide"
        )

    def total(values: Tensor, made: Tensor) -> Tensor:
        options = schema.UnsortedSegmentSumOptionsT()
        return scope.emit("UNSORTED_SEGMENT_SUM", [values, segments, count], made, options)

    if kind == "Sum" or shape is None:
        return total(rows, result)
    ones = scope.constant(1.0, dtype=np.float32)
    if segments.shape is not None and -1 not in segments.shape:
        each = scope.constant(np.ones(segments.shape, np.float32), "ones")
    else:
        sizes = scope.emit("SHAPE", [segments], scope.temporary(op, "INT32", (1,)), schema.ShapeOptionsT(outType=2))
        each = scope.emit("FILL", [sizes, ones], scope.temporary(op, "FLOAT32", (-1,)), schema.FillOptionsT())

    def number(code: str, inputs: list[Tensor], options: Any, size: tuple[int, ...] = shape[:1]) -> Tensor:
        return scope.emit(code, inputs, scope.temporary(op, "FLOAT32", size), options)

    found = total(each, scope.temporary(op, "FLOAT32", shape[:1]))
    found = number("MAXIMUM", [found, ones], schema.MaximumMinimumOptionsT())
    if kind == "SqrtN":
        found = number("SQRT", [found], None)
    column = (-1, *(1 for _ in shape[1:]))
    new = scope.constant(np.array(column, np.int32), "shape")
    found = number("RESHAPE", [found, new], schema.ReshapeOptionsT(list(column)), (shape[0], *column[1:]))
    whole = total(rows, scope.temporary(op, "FLOAT32", shape))
    return scope.emit("DIV", [whole, found], result, schema.DivOptionsT())
