"""Rewrites nodes for TensorFlow 1.15 where it lacks an op or an attribute of later versions."""

from __future__ import annotations

from typing import Any

from stoker._src.base import dtypes
from stoker._src.formats.protos import NodeDef
from stoker._src.graph.definition import find_definition
from stoker._src.graph.static_values import constant_value
from stoker._src.graph.tensor import Operation

_GROWS = "resize_if_index_out_of_bounds"
# Ops that differ from the older ones in the alignment of several diagonals, with the index of the input that selects the diagonals.
_DIAGONALS = {
    "MatrixDiagV3": ("MatrixDiagV2", 1),
    "MatrixDiagPartV3": ("MatrixDiagPartV2", 1),
    "MatrixSetDiagV3": ("MatrixSetDiagV2", 2),
}


def in_older_form(node: Any, op: Operation, in_function: bool) -> list[Any]:
    """Returns nodes equivalent to `node`, the node of `op`; the last one replaces it. `in_function` selects the format of input names."""
    if node.op in _DIAGONALS:
        _as_one_diagonal(node, op)
    elif node.op == "TensorListSetItem" and _GROWS in node.attr and node.attr[_GROWS].b:
        return _grown_first(node, in_function)
    elif node.op == "SparseSegmentSumGrad":
        return _summed_rows(node, in_function)
    return [node]


class _Before:
    """Nodes that are inserted before another one, under its name."""

    def __init__(self, node: Any, in_function: bool) -> None:
        self._node, self._in_function = node, in_function
        self.nodes: list[Any] = []

    def add(self, name: str, op: str, inputs: list[str], **types: Any) -> str:
        made = NodeDef(name=f"{self._node.name}/{name}", op=op, device=self._node.device, input=inputs)
        for key, dtype in types.items():
            made.attr[key].type = dtype if isinstance(dtype, int) else dtype.as_datatype_enum
        self.nodes.append(made)
        definition = find_definition(op)
        assert definition is not None
        return f"{made.name}:{definition.outputs[0].name}:0" if self._in_function else made.name

    def number(self, name: str, value: int) -> str:
        spelled = self.add(name, "Const", [], dtype=dtypes.int32)
        tensor = self.nodes[-1].attr["value"].tensor
        tensor.dtype = dtypes.int32.as_datatype_enum
        tensor.tensor_shape.SetInParent()
        tensor.int_val.append(value)
        return spelled


def _as_one_diagonal(node: Any, op: Operation) -> None:
    older, position = _DIAGONALS[node.op]
    which = constant_value(op._inputs[position])
    if which is not None and which.size and which.min() == which.max():
        node.op = older
        del node.attr["align"]


def _grown_first(node: Any, in_function: bool) -> list[Any]:
    """Sets an item of a list after the list is resized to hold it."""
    before = _Before(node, in_function)
    handle, index = node.input[:2]
    end = before.add("end", "AddV2", [index, before.number("one", 1)], T=dtypes.int32)
    length = before.add("length", "TensorListLength", [handle])
    size = before.add("size", "Maximum", [length, end], T=dtypes.int32)
    node.input[0] = before.add("grown", "TensorListResize", [handle, size])
    del node.attr[_GROWS]
    return [*before.nodes, node]


def _summed_rows(node: Any, in_function: bool) -> list[Any]:
    """The gradient of sums of rows: each looked-up row receives the gradient of its segment, and contributions to the same row are added."""
    before = _Before(node, in_function)
    gradient, indices, segments, count, *waits = node.input
    element, places = node.attr["T"].type, node.attr["Tidx"].type
    kinds = node.attr["Tsegmentids"].type if "Tsegmentids" in node.attr else dtypes.int32.as_datatype_enum
    axis = before.number("axis", 0)
    rows = before.add(
        "rows", "GatherV2", [gradient, segments, axis], Tparams=element, Tindices=kinds, Taxis=dtypes.int32
    )
    made = NodeDef(name=node.name, op="UnsortedSegmentSum", device=node.device, input=[rows, indices, count, *waits])
    for key, number in (("T", element), ("Tindices", places), ("Tnumsegments", dtypes.int32.as_datatype_enum)):
        made.attr[key].type = number
    return [*before.nodes, made]
