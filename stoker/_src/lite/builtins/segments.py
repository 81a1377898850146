"""Segment reductions."""

from __future__ import annotations

from typing import Any

from ai_edge_litert import schema_py_generated as schema

from stoker._src.graph.tensor import Operation
from stoker._src.lite.lowering import Scope, lowers

UNSORTED = {
    "UnsortedSegmentMax": ("UNSORTED_SEGMENT_MAX", schema.UnsortedSegmentMaxOptionsT),
    "UnsortedSegmentMin": ("UNSORTED_SEGMENT_MIN", schema.UnsortedSegmentMinOptionsT),
    "UnsortedSegmentProd": ("UNSORTED_SEGMENT_PROD", schema.UnsortedSegmentProdOptionsT),
    "UnsortedSegmentSum": ("UNSORTED_SEGMENT_SUM", schema.UnsortedSegmentSumOptionsT),
}


@lowers("SegmentSum")
def segment_sum(scope: Scope, op: Operation) -> Any:
    inputs = [scope.tensor(op.inputs[0]), scope.int32(op, op.inputs[1])]
    return scope.emit("SEGMENT_SUM", inputs, scope.result(op), schema.SegmentSumOptionsT())


@lowers(*UNSORTED)
def unsorted_segments(scope: Scope, op: Operation) -> Any:
    code, options = UNSORTED[op.type]
    inputs = [scope.tensor(op.inputs[0]), scope.int32(op, op.inputs[1]), scope.int32(op, op.inputs[2])]
    return scope.emit(code, inputs, scope.result(op), options())
