"""Exports functions as FunctionDefs. `function_library.py` imports them."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from stoker._src.base.shapes import TensorShape
from stoker._src.formats.protos import FunctionDef
from stoker._src.graph.attr_values import FunctionRef, to_attr_value
from stoker._src.graph.interchange.node_def import node_def_of
from stoker._src.graph.interchange.older_forms import in_older_form
from stoker._src.graph.tensor import Operation, Tensor

if TYPE_CHECKING:
    from stoker._src.graph.function_graph import Function


def function_refs(op: Any) -> list[FunctionRef]:
    """Returns the function references among an op's attributes."""
    refs: list[FunctionRef] = []
    for value in op.attrs.values():
        if isinstance(value, FunctionRef):
            refs.append(value)
        elif isinstance(value, tuple) and value and isinstance(value[0], FunctionRef):
            refs.extend(value)
    return refs


def referenced_functions(ops: Any, found: dict[str, Function] | None = None) -> dict[str, Function]:
    """Returns every function that `ops` refer to, directly or through the ops of other functions."""
    found = {} if found is None else found
    for op in ops:
        for ref in function_refs(op):
            function = ref.target
            if function is not None and function.derived_from is not None:
                function = function.derived_from  # the attribute refers to the original function
            if function is not None and function.name not in found:
                found[function.name] = function
                referenced_functions(function.needed_ops(), found)
                if function.gradient is not None and function.gradient.name not in found:
                    found[function.gradient.name] = function.gradient
                    referenced_functions(function.gradient.needed_ops(), found)
    return found


class _Names:
    """Argument names as TensorFlow writes them: lower case, unique, and different from the node names."""

    def __init__(self, taken: set[str]) -> None:
        self._taken = {name.lower() for name in taken}

    def unique(self, name: str) -> str:
        base = re.sub(r"[^a-z0-9]+", "_", name.lower()).strip("_") or "unknown"
        if not base[0].isalpha():
            base = "arg_" + base
        candidate, count = base, 0
        while candidate in self._taken:
            candidate, count = f"{base}_{count}", count + 1
        self._taken.add(candidate)
        return candidate


def function_def_of(function: Function) -> Any:
    """Returns the FunctionDef of a function. The body holds only the nodes that outputs and control outputs need."""
    proto = FunctionDef()
    signature = proto.signature
    signature.name = function.name
    inputs = {tensor.op for tensor in function.inputs}
    body = [op for op in function.needed_ops() if op not in inputs]
    names = _Names({op.name for op in body})
    values: dict[Tensor, str] = {}
    for position, tensor in enumerate(function.inputs):
        arg = signature.input_arg.add(name=names.unique(tensor.op.name), type=tensor.dtype.base_dtype.as_datatype_enum)
        arg.is_ref = tensor.dtype._is_ref_dtype
        values[tensor] = arg.name
        _describe_argument(proto.arg_attr[position], tensor)
    for op in body:
        _name_outputs(op, values)
    for op in body:
        node = node_def_of(op)
        del node.input[:]
        node.input.extend(values[tensor] for tensor in op._inputs)
        node.input.extend("^" + control.name for control in op._control_inputs if control not in inputs)
        if "_class" in node.attr:
            del node.attr["_class"]
        proto.node_def.extend(in_older_form(node, op, in_function=True))
    for tensor in function.outputs:
        arg = signature.output_arg.add(name=names.unique(tensor.op.name), type=tensor.dtype.base_dtype.as_datatype_enum)
        proto.ret[arg.name] = values[tensor]
    for op in function.control_outputs:
        name = names.unique(op.name)
        signature.control_output.append(name)
        proto.control_ret[name] = op.name
    signature.is_stateful = function.stateful
    for key, value in function.attributes.items():
        proto.attr[key].CopyFrom(to_attr_value(value))
    return proto


def _describe_argument(attrs: Any, tensor: Tensor) -> None:
    attrs.attr["_output_shapes"].list.shape.add().CopyFrom(TensorShape(tensor.static_shape).as_proto())


def _name_outputs(op: Operation, values: dict[Tensor, str]) -> None:
    position = 0
    for arg in op.definition.outputs:
        for index in range(len(arg.dtypes(op.attrs))):
            values[op.outputs[position]] = f"{op.name}:{arg.name}:{index}"
            position += 1
