"""Static shapes of a new node: its definition's rule, else its kernel on shapes alone, else unknown."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from stoker._src.base.errors import InvalidArgumentError
from stoker._src.base.shapes import UNKNOWN_SHAPE, Shape
from stoker._src.graph.static_values import constant_value, constant_value_as_shape
from stoker._src.graph.tensor import Operation

# Runs a kernel on fully known shapes without data; set by the ops room, which knows torch's meta device.
_shapes_by_kernel: Callable[[Operation], list[Shape] | None] = lambda op: None  # noqa: E731


def set_shapes_by_kernel(function: Callable[[Operation], list[Shape] | None]) -> None:
    global _shapes_by_kernel
    _shapes_by_kernel = function


def infer_shapes(op: Operation) -> list[Shape]:
    """The shape of each output, as far as it can be known now.

    Raises:
        InvalidArgumentError: the inputs' shapes do not fit the op.
    """
    definition = op.definition
    rule = definition.shape_fn
    if definition.ranked:
        definition.check_ranks([tensor.static_shape.rank for tensor in op._inputs], op.attrs)
    if rule is None:
        if op.outputs and all(tensor.static_shape.known for tensor in op._inputs):
            shapes = _shapes_by_kernel(op)
            if shapes is not None:
                return shapes
        return [UNKNOWN_SHAPE] * len(op.outputs)
    attrs = op.attrs
    keywords = {name: op if name == "op" else attrs[name] for name in definition.shape_attrs}
    if definition.plain and not definition.value_inputs and not definition.shape_inputs:
        shapes = rule(*[tensor._static_shape for tensor in op._inputs], **keywords)
    else:
        arguments = definition.group(op._inputs, attrs)
        shapes = rule(*[_view(definition, arg.name, x) for arg, x in zip(definition.inputs, arguments)], **keywords)
    if definition.single:
        return [shapes]
    flat = definition.flatten_results(shapes)
    if len(flat) != len(op.outputs):
        raise InvalidArgumentError(
            None,
            None,
            f"{definition.name} has {len(op.outputs)} outputs, its inputs and attributes ask for {len(flat)}.",
        )
    return flat


def _view(definition: Any, name: str, tensor: Any) -> Any:
    """An input as the rule asked for it: its value, the shape it spells, or its shape."""
    if name in definition.value_inputs:
        if isinstance(tensor, list):
            return [constant_value(each) for each in tensor]
        return constant_value(tensor)
    if name in definition.shape_inputs:
        return constant_value_as_shape(tensor)
    if isinstance(tensor, list):
        return [each.static_shape for each in tensor]
    return tensor.static_shape
