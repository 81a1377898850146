"""The shapes and values that `Dataset.padded_batch` pads with."""

from __future__ import annotations

from typing import Any

import numpy as np

from stoker._src.base import dtypes, nest
from stoker._src.base.shapes import as_shape
from stoker._src.graph.conversion import convert_to_tensor
from stoker._src.graph.tensor import Tensor
from stoker._src.graph.tensor_spec import TensorSpec
from stoker._src.ops.array.casting import cast


def padded_shape(shape: Any, spec: TensorSpec) -> Tensor:
    """Returns the shape to pad a component to, with -1 for the largest size of a batch.

    Raises:
        ValueError: it has another rank than the component, or is smaller.
    """
    if isinstance(shape, Tensor):
        return cast(shape, dtypes.int64)
    dims = [None if each in (None, -1) else int(each) for each in _dims(shape)]
    if spec.static_shape.rank not in (None, len(dims)):
        raise ValueError(
            f"The padded shape {tuple(dims)} is not compatible with the shape {spec.shape} of the corresponding input component."
        )
    for size, most in zip(spec.static_shape.dims or (), dims):
        if size is not None and most is not None and most < size:
            raise ValueError(
                f"The padded shape {tuple(dims)} is not compatible with the shape {spec.shape} of the corresponding input component."
            )
    return convert_to_tensor([-1 if size is None else size for size in dims], dtypes.int64, name="padded_shape")


def _dims(shape: Any) -> list[Any]:
    return list(shape if isinstance(shape, (list, tuple)) else as_shape(shape).dims or ())


def padding_value(value: Any, spec: TensorSpec) -> Tensor:
    """Returns the value to pad a component with: 0 or "" by default.

    Raises:
        TypeError: it has another dtype than the component.
    """
    if value is None:
        value = "" if spec.dtype == dtypes.string else np.zeros((), spec.dtype.as_numpy_dtype)
    tensor = convert_to_tensor(value, name="padding_value")
    if tensor.dtype != spec.dtype:
        raise TypeError(
            f"The padding value has dtype {tensor.dtype.name}, but the component has dtype {spec.dtype.name}."
        )
    return tensor


def for_each_component(spec: Any, values: Any) -> list[Any]:
    """Returns a value for each component: one number serves all."""
    if nest.is_nested(spec) and not nest.is_nested(values):
        return [values] * len(nest.flatten(spec))
    return nest.flatten_up_to(spec, values)
