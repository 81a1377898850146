"""Graphs out to GraphDef. (The way in is `importer.py`.)"""

from __future__ import annotations

from typing import Any

from stoker._src.base.shapes import TensorShape
from stoker._src.formats.protos import GraphDef, NodeDef, OpDef
from stoker._src.graph.attr_values import to_attr_value
from stoker._src.graph.attributes import MISSING
from stoker._src.graph.definition import OpDefinition
from stoker._src.graph.graph import PRODUCER_VERSION, Graph
from stoker._src.graph.interchange.function_library import referenced_functions
from stoker._src.graph.interchange.lower_control_flow import Lowering, takes_references
from stoker._src.graph.interchange.older_forms import in_older_form
from stoker._src.graph.interchange.younger_attrs import YOUNGER_ATTRS
from stoker._src.graph.signature import Arg
from stoker._src.graph.tensor import Operation

_NONE: frozenset[str] = frozenset()
# Of TensorFlow 2, refused by 1.15, and no value depends on them: hints that a product is part of a gradient, and that an
# assignment checks the variable's shape.
_HINTS = frozenset({"grad_a", "grad_b", "grad_x", "grad_y", "validate_shape"})


def node_def_of(op: Operation) -> Any:
    node = NodeDef(name=op.name, op=op.type, device=op.device)
    node.input.extend(tensor._as_node_def_input() for tensor in op._inputs)
    node.input.extend("^" + control.name for control in op._control_inputs)
    specs = op.definition.attrs
    younger = YOUNGER_ATTRS.get(op.type, _NONE)
    for key, value in op.attrs.items():
        spec = specs.get(key)
        if key in younger and spec is not None and (value == spec.default or key in _HINTS):
            continue
        dtype = op.attrs.get("dtype") if spec is not None and spec.kind == "tensor" else None
        node.attr[key].CopyFrom(to_attr_value(value, None if spec is None else spec.kind, dtype))
    return node


def graph_def_of(graph: Graph, *, from_version: int | None = None, add_shapes: bool = False) -> Any:
    """The GraphDef of `graph` (only nodes added since `from_version`), with its function library."""
    proto = GraphDef()
    proto.versions.producer = PRODUCER_VERSION
    names = {op.name for op in graph._ops}
    lowering = Lowering(node_def_of, names)
    for op in graph._ops[from_version or 0 :]:
        if takes_references(op):
            proto.node.extend(lowering.nodes_of(op))
            continue
        node = node_def_of(op)
        if "_class" in node.attr:
            _keep_neighbours(node, names)
        if add_shapes and op.outputs:
            shapes = node.attr["_output_shapes"].list
            shapes.shape.extend(TensorShape(tensor.static_shape).as_proto() for tensor in op.outputs)
        proto.node.extend(in_older_form(node, op, in_function=False))
    plain = [op for op in graph._ops if not takes_references(op)]
    if lowering.renamed:
        for node in proto.node:
            node.input[:] = [lowering.renamed.get(text, text) for text in node.input]
    functions = {**graph._functions, **referenced_functions([*plain, *lowering.inlined])}
    for function in functions.values():
        proto.library.function.append(function.to_function_def())
        gradient = getattr(function, "gradient", None)
        if gradient is not None:
            proto.library.gradient.add(function_name=function.name, gradient_func=gradient.name)
    return proto


def _keep_neighbours(node: Any, names: set[str]) -> None:
    """Drops the wish to be beside nodes that are not in the graph (imported loops became functions): nobody could load it."""
    groups = node.attr["_class"].list.s
    kept = [group for group in groups if not group.startswith(b"loc:@") or group[5:].decode() in names]
    if len(kept) == len(groups):
        return
    del groups[:]
    groups.extend(kept)
    if not kept:
        del node.attr["_class"]


def op_def_of(definition: OpDefinition) -> Any:
    """TensorFlow's description of an op type."""
    proto = OpDef(name=definition.name)
    for args, target in ((definition.inputs, proto.input_arg), (definition.outputs, proto.output_arg)):
        for arg in args:
            _fill_arg(target.add(), arg)
    for name, spec in definition.attrs.items():
        attr = proto.attr.add(name=name, type=spec.kind)
        if spec.default is not MISSING:
            attr.default_value.CopyFrom(to_attr_value(spec.default, spec.kind))
        if spec.allowed:
            attr.allowed_values.CopyFrom(
                to_attr_value(spec.allowed, f"list({spec.kind.removeprefix('list(').rstrip(')')})")
            )
        if spec.minimum is not None:
            attr.has_minimum, attr.minimum = True, spec.minimum
    return proto


def _fill_arg(proto: Any, arg: Arg) -> None:
    proto.name, proto.is_ref = arg.name, arg.is_ref
    if arg.dtype is not None:
        proto.type = arg.dtype.as_datatype_enum
    proto.type_attr = arg.type_attr or ""
    proto.number_attr = arg.number_attr or ""
    proto.type_list_attr = arg.list_attr or ""
