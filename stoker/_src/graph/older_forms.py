"""Nodes as TensorFlow 1.15 can read them, where it lacks an op or an attribute that younger versions have."""

from __future__ import annotations

from typing import Any

from stoker._src.base import dtypes
from stoker._src.formats.protos import NodeDef
from stoker._src.graph.definition import find_definition

# The same op, which in 1.15 has no name of its own where its branches have no effects.
_OLDER_OPS = {"StatelessCase": "Case"}
_GROWS = "resize_if_index_out_of_bounds"


def in_older_form(node: Any, in_function: bool) -> list[Any]:
    """The nodes that say the same as `node`, which comes last; `in_function` chooses the spelling of inputs."""
    node.op = _OLDER_OPS.get(node.op, node.op)
    if node.op == "TensorListSetItem" and _GROWS in node.attr and node.attr[_GROWS].b:
        return _grown_first(node, in_function)
    return [node]


def _grown_first(node: Any, in_function: bool) -> list[Any]:
    """An item set in a list that was given room for it before."""
    before: list[Any] = []

    def add(name: str, op: str, inputs: list[str], **types: Any) -> str:
        made = NodeDef(name=f"{node.name}/{name}", op=op, device=node.device, input=inputs)
        for key, dtype in types.items():
            made.attr[key].type = dtype.as_datatype_enum
        before.append(made)
        definition = find_definition(op)
        assert definition is not None
        return f"{made.name}:{definition.outputs[0].name}:0" if in_function else made.name

    handle, index = node.input[:2]
    one = add("one", "Const", [], dtype=dtypes.int32)
    before[-1].attr["value"].tensor.dtype = dtypes.int32.as_datatype_enum
    before[-1].attr["value"].tensor.tensor_shape.SetInParent()
    before[-1].attr["value"].tensor.int_val.append(1)
    end = add("end", "AddV2", [index, one], T=dtypes.int32)
    length = add("length", "TensorListLength", [handle])
    size = add("size", "Maximum", [length, end], T=dtypes.int32)
    node.input[0] = add("grown", "TensorListResize", [handle, size])
    del node.attr[_GROWS]
    return [*before, node]
