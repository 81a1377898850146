"""Conversion of a node to a NodeDef, and of an op type to an OpDef."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from stoker._src.formats.protos import NodeDef, OpDef
from stoker._src.formats.tensor_proto import partial_tensor_proto
from stoker._src.graph.attr_values import to_attr_value
from stoker._src.graph.attributes import MISSING
from stoker._src.graph.definition import OpDefinition
from stoker._src.graph.interchange.younger_attrs import YOUNGER_ATTRS
from stoker._src.graph.signature import Arg

if TYPE_CHECKING:
    from stoker._src.graph.tensor import Operation

# The producer version that GraphDefs declare: the newest that TensorFlow 1.15 knows.
PRODUCER_VERSION = 134
_NONE: frozenset[str] = frozenset()
# Attributes of TensorFlow 2 that 1.15 rejects. They do not affect values: one marks a product as part of a gradient, the other
# makes an assignment check the variable's shape.
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
        if dtype is not None and op.stated_elements is not None:
            stated = value.ravel()[: op.stated_elements]
            node.attr[key].tensor.CopyFrom(partial_tensor_proto(stated, dtype, value.shape))
            continue
        node.attr[key].CopyFrom(to_attr_value(value, None if spec is None else spec.kind, dtype))
    return node


def op_def_of(definition: OpDefinition) -> Any:
    """Returns TensorFlow's description of an op type."""
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
