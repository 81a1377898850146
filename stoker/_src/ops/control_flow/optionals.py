"""Optionals (dtype variant): a structure of tensors, or nothing. TensorFlow 1.15's conditionals pass them to their gradients."""

from __future__ import annotations

from typing import Any

import torch

from stoker._src.base import dtypes, nest
from stoker._src.base.errors import InvalidArgumentError
from stoker._src.base.export import export
from stoker._src.base.shapes import SCALAR, Shape
from stoker._src.graph.definition import SHAPES, TYPES, VIEW, define
from stoker._src.graph.tensor import Operation, Tensor
from stoker._src.graph.tensor_spec import TensorSpec
from stoker._src.graph.type_spec import TypeSpec, describes, type_spec_from_value
from stoker._src.ops.array import shaping
from stoker._src.ops.control_flow import gradients
from stoker._src.ops.math import arithmetic


class OptionalValue:
    """The values, or None if there are none."""

    __slots__ = ("values",)

    def __init__(self, values: list[Any] | None) -> None:
        self.values = values

    def zeros_like(self) -> OptionalValue:
        return OptionalValue(
            None if self.values is None else [shaping.zeros_like_kernel(value) for value in self.values]
        )

    def sum_with(self, others: list[OptionalValue]) -> OptionalValue:
        """The sum by component. Either all optionals have values or none has."""
        held = [each.values for each in (self, *others) if each.values is not None]
        if len(held) not in (0, len(others) + 1):
            raise InvalidArgumentError(
                None, None, "Cannot add optionals because one has a value and the other doesn't."
            )
        if any(len(values) != len(held[0]) for values in held):
            raise InvalidArgumentError(None, None, "Cannot add optionals because they have different types.")
        return OptionalValue([arithmetic.add_n_kernel(list(column)) for column in zip(*held)] if held else None)


OPTIONAL_FROM_VALUE = define(
    "OptionalFromValue(components: [Toutput_types]) -> (optional: variant)",
    VIEW,
    Toutput_types=TYPES(minimum=1),
)
OPTIONAL_FROM_VALUE.kernel(lambda components: OptionalValue(list(components)))
OPTIONAL_FROM_VALUE.shape(lambda components: SCALAR)

OPTIONAL_NONE = define("OptionalNone() -> (optional: variant)")
OPTIONAL_NONE.kernel(lambda: OptionalValue(None))
OPTIONAL_NONE.shape(lambda: SCALAR)

OPTIONAL_HAS_VALUE = define("OptionalHasValue(optional: variant) -> (has_value: bool)")
OPTIONAL_HAS_VALUE.kernel(lambda optional: torch.tensor(optional.values is not None))
OPTIONAL_HAS_VALUE.shape(lambda optional: SCALAR)

OPTIONAL_GET_VALUE = define(
    "OptionalGetValue(optional: variant) -> (components: [output_types])",
    VIEW,
    output_types=TYPES(minimum=1),
    output_shapes=SHAPES(minimum=1),
)


@OPTIONAL_GET_VALUE.kernel
def optional_get_value_kernel(optional: OptionalValue, *, output_types: Any) -> list[Any]:
    if optional.values is None:
        raise InvalidArgumentError(None, None, "The given optional does not have a value.")
    if len(optional.values) != len(output_types):
        raise InvalidArgumentError(
            None, None, f"The given optional has {len(optional.values)} components, expected {len(output_types)}."
        )
    return optional.values


@OPTIONAL_GET_VALUE.shape
def optional_get_value_shape(optional: Shape, *, output_types: Any, output_shapes: Any) -> list[Shape]:
    if len(output_shapes) != len(output_types):
        raise InvalidArgumentError(
            None, None, f"output_shapes has {len(output_shapes)} shapes for {len(output_types)} output_types."
        )
    return list(output_shapes)


@OPTIONAL_FROM_VALUE.grad
def optional_from_value_grad(op: Operation, g: Tensor) -> Any:
    """The gradient of an optional is an optional of the gradients of its components."""
    shapes = [tensor.static_shape for tensor in op.inputs]
    found = OPTIONAL_GET_VALUE(g, output_types=op.attr("Toutput_types"), output_shapes=shapes)
    return [each if gradients.is_trainable(each) else None for each in found]


@OPTIONAL_GET_VALUE.grad
def optional_get_value_grad(op: Operation, *grads: Tensor | None) -> Any:
    return OPTIONAL_FROM_VALUE([shaping.zeros_like(y) if g is None else g for y, g in zip(op.outputs, grads)])


@export("experimental.Optional")
class Optional:
    """A structure of tensors that may be absent; this is known only at run time."""

    def __init__(self, variant_tensor: Tensor, element_spec: Any) -> None:
        self._variant_tensor, self._element_spec = variant_tensor, element_spec

    @staticmethod
    def empty(element_spec: Any) -> Optional:
        """An optional without a value, typed by `element_spec`."""
        return Optional(OPTIONAL_NONE(), element_spec)

    @staticmethod
    def from_value(value: Any) -> Optional:
        """An optional with `value`, a structure of tensors."""
        spec = nest.map_structure(type_spec_from_value, value)
        parts = [
            part
            for each, leaf in zip(nest.flatten(spec), nest.flatten(value))
            for part in nest.flatten(each._to_components(leaf))
        ]
        return Optional(OPTIONAL_FROM_VALUE(parts), spec)

    @property
    def element_spec(self) -> Any:
        return self._element_spec

    def has_value(self, name: str | None = None) -> Tensor:
        """A scalar bool: whether there is a value."""
        return OPTIONAL_HAS_VALUE(self._variant_tensor, name=name)

    def get_value(self, name: str | None = None) -> Any:
        """The value. Raises InvalidArgumentError at run time if there is none."""
        flat = nest.flatten(self._element_spec, expand_composites=True)
        parts = OPTIONAL_GET_VALUE(
            self._variant_tensor,
            output_types=[spec.dtype for spec in flat],
            output_shapes=[spec.static_shape for spec in flat],
            name=name,
        )
        return nest.pack_sequence_as(self._element_spec, list(parts), expand_composites=True)


@export("OptionalSpec")
@describes(Optional)
class OptionalSpec(TypeSpec):
    """Describes optionals by the spec of their value."""

    __slots__ = ("_element_spec",)

    def __init__(self, element_spec: Any) -> None:
        self._element_spec = element_spec

    @staticmethod
    def from_value(value: Optional) -> OptionalSpec:
        return OptionalSpec(value.element_spec)

    _runs = False

    @classmethod
    def _of(cls, value: Any) -> OptionalSpec:
        return cls.from_value(value)

    @property
    def value_type(self) -> Any:
        return Optional

    def _serialize(self) -> tuple[Any, ...]:
        return (self._element_spec,)

    @property
    def _component_specs(self) -> list[TensorSpec]:
        return [TensorSpec([], dtypes.variant)]

    def _to_components(self, value: Optional) -> list[Any]:
        return [value._variant_tensor]

    def _from_components(self, components: Any) -> Optional:
        return Optional(components[0], self._element_spec)

    @classmethod
    def _alike(cls, first: Any, second: Any) -> bool:
        return True  # TensorFlow compares the elements when they are taken out
