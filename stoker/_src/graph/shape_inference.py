"""Static shapes of a node: by its shape rule, else by its kernel on the meta device, else unknown."""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable
from typing import Any

import numpy as np

from stoker._src.base.errors import InvalidArgumentError
from stoker._src.base.shapes import UNKNOWN_SHAPE, Shape
from stoker._src.graph.definition import ShapeRule
from stoker._src.graph.runtime_hooks import hooks
from stoker._src.graph.static_values import Sight, constant_value, constant_value_as_shape
from stoker._src.graph.tensor import Operation, Tensor


def infer_shapes(
    op: Operation,
    shape_of: Callable[[Tensor], Shape] = operator.attrgetter("_static_shape"),
    value_of: Callable[[Tensor], np.ndarray | None] = constant_value,
) -> list[Shape]:
    """The static shape of each output.

    `shape_of` and `value_of` return what is known about the inputs, which may be more than the graph knows if feeds are known.

    Raises:
        InvalidArgumentError: the input shapes are incompatible.
    """
    definition = op.definition
    rule = definition.shape_rule
    infer = rule.function
    if definition.ranked:
        definition.check_ranks([shape_of(tensor).rank for tensor in op._inputs], op.attrs, running=False)
    if definition.measured:
        definition.check_lengths([shape_of(tensor) for tensor in op._inputs], op.attrs)
    if infer is None:
        if op.outputs and all(tensor.static_shape.known for tensor in op._inputs):
            shapes = hooks.shapes_by_kernel(op)
            if shapes is not None:
                return shapes
        return [UNKNOWN_SHAPE] * len(op.outputs)
    attrs = op.attrs
    keywords = {name: op if name == "op" else attrs[name] for name in rule.attrs}
    if definition.plain and not rule.values and not rule.as_shapes:
        shapes = infer(*[shape_of(tensor) for tensor in op._inputs], **keywords)
    else:
        arguments = definition.group(op._inputs, attrs)
        view = functools.partial(_view, rule, shape_of, value_of)
        shapes = infer(*[view(arg.name, x) for arg, x in zip(definition.inputs, arguments)], **keywords)
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


def _view(rule: ShapeRule, shape_of: Any, value_of: Any, name: str, tensor: Any) -> Any:
    """An input in the form that the rule requests: its value, the shape that it denotes, or its shape."""
    if name in rule.values:
        if isinstance(tensor, list):
            return [value_of(each) for each in tensor]
        return value_of(tensor)
    if name in rule.as_shapes:
        return constant_value_as_shape(tensor, Sight(value_of, shape_of))
    if isinstance(tensor, list):
        return [shape_of(each) for each in tensor]
    return shape_of(tensor)
