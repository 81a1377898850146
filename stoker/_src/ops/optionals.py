"""Optionals (dtype variant): tensors, or nothing. The functional conditionals of TensorFlow 1.15 hand them to their gradients."""

from __future__ import annotations

from typing import Any

import torch

from stoker._src.base.errors import InvalidArgumentError
from stoker._src.base.shapes import SCALAR, Shape
from stoker._src.graph.definition import SHAPES, TYPES, VIEW, define


class Optional:
    """Values, or None in their place."""

    __slots__ = ("values",)

    def __init__(self, values: list[Any] | None) -> None:
        self.values = values


OPTIONAL_FROM_VALUE = define(
    "OptionalFromValue(components: [Toutput_types]) -> (optional: variant)",
    VIEW,
    Toutput_types=TYPES(minimum=1),
).not_differentiable()
OPTIONAL_FROM_VALUE.kernel(lambda components: Optional(list(components)))
OPTIONAL_FROM_VALUE.shape(lambda components: SCALAR)

OPTIONAL_NONE = define("OptionalNone() -> (optional: variant)")
OPTIONAL_NONE.kernel(lambda: Optional(None))
OPTIONAL_NONE.shape(lambda: SCALAR)

OPTIONAL_HAS_VALUE = define("OptionalHasValue(optional: variant) -> (has_value: bool)")
OPTIONAL_HAS_VALUE.kernel(lambda optional: torch.tensor(optional.values is not None))
OPTIONAL_HAS_VALUE.shape(lambda optional: SCALAR)

OPTIONAL_GET_VALUE = define(
    "OptionalGetValue(optional: variant) -> (components: [output_types])",
    VIEW,
    output_types=TYPES(minimum=1),
    output_shapes=SHAPES(minimum=1),
).not_differentiable()


@OPTIONAL_GET_VALUE.kernel
def optional_get_value_kernel(optional: Optional, *, output_types: Any) -> list[Any]:
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
