"""Resizing and non-maximum suppression."""

from __future__ import annotations

from typing import Any

import numpy as np
from ai_edge_litert import schema_py_generated as schema

from stoker._src.graph.tensor import Operation
from stoker._src.lite.lowering import Scope, lowers
from stoker._src.lite.model import Tensor


@lowers("ResizeBilinear")
def resize_bilinear(scope: Scope, op: Operation) -> Any:
    images = scope.cast(op, scope.tensor(op.inputs[0]), "FLOAT32")
    options = schema.ResizeBilinearOptionsT(
        alignCorners=op.attr("align_corners"), halfPixelCenters=op.attr("half_pixel_centers")
    )
    return scope.emit("RESIZE_BILINEAR", [images, scope.int32(op, op.inputs[1])], scope.result(op), options)


@lowers("ResizeNearestNeighbor")
def resize_nearest_neighbor(scope: Scope, op: Operation) -> Any:
    options = schema.ResizeNearestNeighborOptionsT(
        alignCorners=op.attr("align_corners"), halfPixelCenters=op.attr("half_pixel_centers")
    )
    inputs = [scope.tensor(op.inputs[0]), scope.int32(op, op.inputs[1])]
    return scope.emit("RESIZE_NEAREST_NEIGHBOR", inputs, scope.result(op), options)


@lowers("NonMaxSuppression", "NonMaxSuppressionV2", "NonMaxSuppressionV3", "NonMaxSuppressionV4", "NonMaxSuppressionV5")
def non_max_suppression(scope: Scope, op: Operation) -> Any:
    """The builtins pad to the maximum number of boxes. If the op does not, the padding is sliced off."""
    given = scope.inputs(op)
    if op.type == "NonMaxSuppression":
        given.append(scope.constant(op.attr("iou_threshold"), dtype=np.float32))
    if len(given) < 5:
        given.append(scope.constant(-np.inf, dtype=np.float32))
    known = scope.known(op.inputs[2])
    most = -1 if known is None else int(known)
    padded = op.attrs.get("pad_to_max_output_size", False)

    def filled(position: int, type_name: str) -> Tensor:
        return scope.result(op, position) if padded else scope.temporary(op, type_name, (most,))

    indices = filled(0, "INT32")
    if op.type == "NonMaxSuppressionV5":
        scores, count = filled(1, "FLOAT32"), scope.result(op, 2)
        sigma = scope.known(op.inputs[5])
        if sigma is not None and sigma > 0:
            # In this case the op only weakens overlapping boxes. The builtin would also drop those beyond the threshold.
            given[3] = scope.constant(1, dtype=np.float32)
        scope.emit("NON_MAX_SUPPRESSION_V5", given, [indices, scores, count], schema.NonMaxSuppressionV5OptionsT())
        if padded:
            return indices, scores, count
        return _first(scope, op, indices, count, 0), _first(scope, op, scores, count, 1), count
    count = scope.result(op, 1) if op.type == "NonMaxSuppressionV4" else scope.temporary(op, "INT32", ())
    scope.emit("NON_MAX_SUPPRESSION_V4", given, [indices, count], schema.NonMaxSuppressionV4OptionsT())
    found = indices if padded else _first(scope, op, indices, count, 0)
    return (found, count)[: len(op.outputs)]


def _first(scope: Scope, op: Operation, values: Tensor, count: Tensor, position: int) -> Tensor:
    size = scope.emit("PACK", [count], scope.temporary(op, "INT32", (1,)), schema.PackOptionsT(valuesCount=1, axis=0))
    start = scope.constant([0], "begin", np.int32)
    return scope.emit("SLICE", [values, start, size], scope.result(op, position), schema.SliceOptionsT())
