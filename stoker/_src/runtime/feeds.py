"""Feeds: converts the values that a caller passes to the form that kernels take."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import torch

from stoker._src.base import dtypes, nest
from stoker._src.base.errors import InvalidArgumentError
from stoker._src.base.shapes import Shape, TensorShape
from stoker._src.graph.tensor import Tensor
from stoker._src.graph.type_spec import composite_spec
from stoker._src.ops.array.constants import _bytes_array
from stoker._src.ops.resources.session_tensors import TensorHandle
from stoker._src.ops.support.values import from_numpy, torch_dtype
from stoker._src.runtime.devices import Placement


def converter(tensor: Tensor) -> Callable[[Any], Any]:
    """Returns a function that checks and converts values fed for `tensor`."""
    dtype = tensor.dtype.base_dtype
    if dtype in (dtypes.resource, dtypes.variant):
        return lambda value: value
    numpy_type = np.dtype(dtype.as_numpy_dtype)
    dims = tensor.static_shape.dims
    exact = None if dims is None or None in dims else dims
    plain = dtype not in (dtypes.string, dtypes.bfloat16)

    def convert(value: Any) -> Any:
        if plain and type(value) is np.ndarray and value.dtype == numpy_type:
            array = value
        elif isinstance(value, torch.Tensor):
            return _torch_feed(tensor, value)
        else:
            array = _as_array(tensor, value, numpy_type)
        if array.shape != exact:
            _check_shape(tensor, array.shape)
        if plain and array.flags.writeable:
            try:
                return torch.from_numpy(array)
            except ValueError:  # negative strides
                pass
        return from_numpy(array)

    return convert


def placed_converter(tensor: Tensor, placement: Placement) -> Callable[[Any], Any]:
    """Like `converter`, but also moves values to the device where data starts."""
    convert = converter(tensor)
    if placement.gpu is None:
        return convert
    return lambda value: placement.data(convert(value))


def _as_array(tensor: Tensor, value: Any, numpy_type: np.dtype) -> np.ndarray:
    if isinstance(value, Tensor) and not getattr(value, "is_eager", False):
        raise TypeError(
            "The value of a feed cannot be a tf.Tensor object. Acceptable feed values include Python scalars, "
            "strings, lists, numpy ndarrays, or TensorHandles. For reference, the tensor object was "
            f"{value} which was passed to the feed with key {tensor}."
        )
    if isinstance(value, TensorHandle):
        if (value.dtype is dtypes.string) is not (tensor.dtype.base_dtype is dtypes.string):
            raise InvalidArgumentError(
                None,
                None,
                f"{tensor.name} expects {tensor.dtype.name} but the handle {value} is of {value.dtype.name}.",
            )
        value = value.eval()
    if isinstance(value, int) and not isinstance(value, bool) and numpy_type.kind in "iu":
        info = np.iinfo(numpy_type)
        if not info.min <= value <= info.max:
            raise TypeError(
                f"Type of feed value {value} with type {type(value)} is not compatible with Tensor type "
                f"{numpy_type}. Try explicitly setting the type of the feed tensor to a larger type (e.g. int64)."
            )
    try:
        array = np.asarray(value, dtype=numpy_type)
    except (TypeError, ValueError) as error:
        raise type(error)(
            f"Cannot feed {value!r:.200} for Tensor {tensor.name!r} of dtype {tensor.dtype.name}: {error}"
        ) from None
    if numpy_type == np.object_:
        array = _bytes_array(array)
    return array


def _torch_feed(tensor: Tensor, value: torch.Tensor) -> torch.Tensor:
    _check_shape(tensor, value.shape)
    return value.detach().to(torch_dtype(tensor.dtype))


def _check_shape(tensor: Tensor, shape: Any) -> None:
    if not tensor.static_shape.compatible(Shape(shape)):
        raise ValueError(
            f"Cannot feed value of shape {tuple(shape)!r} for Tensor {tensor.name!r}, "
            f"which has shape '{TensorShape(tensor.static_shape)}'"
        )


def expand_feeds(graph: Any, feed_dict: Any) -> Any:
    """Replaces nested keys (a state tuple) and composite keys (a SparseTensor) by the tensors they contain.

    A dictionary without such keys is returned unchanged.

    Raises:
        ValueError: a nested key and its value have different structures, or a key occurs twice.
    """
    if not feed_dict:
        return feed_dict
    if any(nest.is_nested(key) for key in feed_dict):
        # Without values, when only a plan is requested, the structure comes from the keys.
        feed_dict = nest.flatten_dict_items(
            {key: nest.map_structure(lambda leaf: None, key) if v is None else v for key, v in feed_dict.items()}
        )
    if not any(map(_composite, feed_dict)):
        return feed_dict
    expanded: dict[Any, Any] = {}
    for key, value in feed_dict.items():
        _expand(key, value, expanded)
    return expanded


def _composite(key: Any) -> Any:
    """Returns the spec class of a composite key, which is fed by its components."""
    spec = composite_spec(key)
    return spec if spec is not None and spec._runs else None


def _expand(key: Any, value: Any, into: dict[Any, Any]) -> None:
    spec = _composite(key)
    if spec is None:
        into[key] = value
        return
    parts = spec._parts(key)
    values = [None] * len(parts) if value is None else spec._fed(key, value)  # None if only a plan is requested
    for part, each in zip(parts, values):
        _expand(part, each, into)
