"""Functions that say what they implement. TensorFlow writes some ops as functions of many nodes, with a name in their attributes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from stoker._src.base import dtypes
from stoker._src.base.shapes import UNKNOWN_SHAPE, Shape
from stoker._src.graph.function_graph import FuncGraph, Function
from stoker._src.graph.tensor import Tensor as GraphTensor
from stoker._src.image.detection import non_max_suppression_padded
from stoker._src.lite.lowering import Value
from stoker._src.lite.model import Tensor
from stoker._src.ops.array import joining, shaping
from stoker._src.ops.control_flow.branches_and_loops import trace


def recognised(function: Function, given: Sequence[Value | None]) -> Function:
    """The function to inline for a call with the `given` arguments: a shorter one that computes the same, if the function says what it
    implements, and otherwise the function itself."""
    rebuild = _SHORTER.get(function.attributes.get("_implements", ""))
    return (rebuild and rebuild(function, given)) or function


def _suppression(function: Function, given: Sequence[Value | None]) -> Function | None:
    """TensorFlow's function is a loop over tiles of boxes, for which TFLite has a builtin."""
    kinds = [tensor.dtype for tensor in function.inputs]
    size, flag = dtypes.int32, dtypes.bool_
    if kinds != [*[dtypes.float32] * 2, size, *[dtypes.float32] * 2, flag, flag, size] or len(function.outputs) != 2:
        return None
    is_sorted = given[5]
    if not isinstance(is_sorted, np.ndarray) or _shape(given[0]).rank is None:
        return None
    graph = FuncGraph(function.name)
    with graph.as_default():
        arguments = [graph.add_input(kind, _shape(value)) for kind, value in zip(kinds, given, strict=True)]
    known = [
        value if isinstance(value, np.ndarray) else argument for argument, value in zip(arguments, given, strict=True)
    ]

    def body(boxes: Any, scores: Any, most: Any, overlap: Any, least: Any, *_: Any) -> tuple[GraphTensor, GraphTensor]:
        indices, counts = non_max_suppression_padded(
            boxes, scores, most, overlap, least, pad_to_max_output_size=True, sorted_input=bool(is_sorted)
        )
        return shaping.reshape(
            indices, joining.stack([-1, most])
        ), counts  # the function has one dimension for all batches

    traced = trace(graph, body, known)
    return traced.function(arguments, [tensor for tensor in traced.tensors if tensor is not None])


def _shape(value: Value | None) -> Shape:
    if isinstance(value, np.ndarray):
        return Shape(value.shape)
    if isinstance(value, Tensor) and value.shape is not None:
        return Shape(None if size < 0 else size for size in value.shape)
    return UNKNOWN_SHAPE


_SHORTER: dict[str, Callable[[Function, Sequence[Value | None]], Function | None]] = {
    "non_max_suppression_padded_v2": _suppression,
}
