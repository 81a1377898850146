"""Parsing of window sizes, strides, paddings and layouts for the public functions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from stoker._src.base.shapes import TensorShape
from stoker._src.graph.tensor import Tensor
from stoker._src.ops.array import joining, shaping, slicing


def whole(value: Any, label: str) -> int:
    """Truncates a number to an integer, as integer attributes do.

    Raises:
        TypeError: the value is not a number, or not one that an integer can hold.
    """
    plain = value.numpy() if getattr(value, "is_eager", False) else value
    try:
        if not isinstance(plain, (str, bytes)) and not getattr(plain, "ndim", 0):
            return int(plain)
    except (TypeError, ValueError, OverflowError):
        pass
    raise TypeError(f"Expected int for argument '{label}' not {value!r}.")


def either(value: Any, name: str, other: Any, other_name: str) -> Any:
    """The value of an argument that has two names.

    Raises:
        ValueError: both or neither are given.
    """
    if other is not None:
        if value is not None:
            raise ValueError(f"Cannot specify both '{name}' and '{other_name}'.")
        return other
    return value


def for_each_dimension(value: Any, spatial: int, channel_axis: int, label: str) -> list[Any]:
    """Window sizes or strides for all dimensions, from one number, one per spatial dimension, or one per dimension.

    The attribute itself checks that they are numbers.

    Raises:
        ValueError: the list has another length.
    """
    if value is None:
        value = [1]
    if not isinstance(value, (list, tuple)) and not hasattr(value, "__len__"):
        value = [value]
    values = list(value)
    if len(values) == spatial + 2:
        return values
    if len(values) == 1:
        values = values * spatial
    elif len(values) != spatial:
        raise ValueError(
            f"{label} should be of length 1, {spatial} or {spatial + 2}. Received: {label}={value} of length {len(values)}"
        )
    return [1, 1, *values] if channel_axis == 1 else [1, *values, 1]


def split_padding(padding: Any) -> tuple[Any, list[Any]]:
    """(padding attribute, explicit_paddings). `padding` is a string, or a pair of numbers for each dimension.

    Raises:
        ValueError: EXPLICIT is given without numbers, or the pairs are malformed.
    """
    if not isinstance(padding, (list, tuple)):
        if padding == "EXPLICIT":
            raise ValueError(
                "'EXPLICIT' is not a valid value for `padding`. To use explicit padding, `padding` must be a list."
            )
        return padding, []
    if len(padding) != 4:
        raise ValueError(
            f"When padding is a list, it must be of size 4. Received: padding={padding} of size {len(padding)}"
        )
    explicit = []
    for i, pair in enumerate(padding):
        if not isinstance(pair, (list, tuple)) or len(pair) != 2:
            raise ValueError(
                f"When padding is a list, each element must be a list of two numbers. Element {i} is {pair!r}."
            )
        explicit.extend(pair)
    return "EXPLICIT", explicit


def starts_with_channels(data_format: str | None) -> bool:
    if data_format is not None and not isinstance(data_format, str):
        raise TypeError(f"Expected string for argument 'data_format' not {data_format!r}.")
    return data_format is not None and data_format.startswith("NC")


def layout(data_format: str | None, spatial: int) -> str:
    """The layout of images with `spatial` dimensions, for any name of channels-first or channels-last; other names are returned unchanged."""
    last, first = {2: ("NHWC", "NCHW"), 3: ("NDHWC", "NCDHW")}[spatial]
    if starts_with_channels(data_format):
        return first
    return last if data_format is None or (data_format[:1], data_format[-1:]) == ("N", "C") else data_format


def rank_of(*tensors: Tensor) -> int | None:
    return next((t.static_shape.rank for t in tensors if t.static_shape.rank is not None), None)


def in_two_dimensions(value: Tensor, channels_first: bool, op: Callable[[Tensor], Tensor]) -> Tensor:
    """Applies a 2-D `op` to 1-D data: a dimension of size 1 is added and removed again."""
    axis = 2 if channels_first else 1
    return shaping.SQUEEZE(op(shaping.EXPAND_DIMS(value, axis)), squeeze_dims=[axis])


def without_batch_dimensions(value: Tensor, spatial: int, op: Callable[[Tensor], Tensor]) -> Tensor:
    """Applies `op`, which supports one batch dimension, to data with several."""
    rank = value.static_shape.rank
    if rank is None or rank <= spatial + 2:
        return op(value)
    inner = rank - spatial - 1
    sizes = value.static_shape
    if sizes[inner:].known:
        flat = shaping.reshape(value, [-1, *sizes[inner:]])
    else:
        flat = shaping.reshape(value, joining.concat([[-1], slicing.SLICE(shaping.shape(value), [inner], [-1])], 0))
    result = op(flat)
    outer = sizes[:inner]
    inner_shape = result.static_shape[1:]
    if outer.known and inner_shape.known:
        return shaping.reshape(result, [*outer, *inner_shape])
    restored = joining.concat(
        [slicing.SLICE(shaping.shape(value), [0], [inner]), slicing.SLICE(shaping.shape(result), [1], [-1])], 0
    )
    return shaping.reshape(result, restored)


def static_sizes(value: Any) -> list[Any] | None:
    """Sizes given as a plain sequence or TensorShape; None if they are a tensor."""
    if isinstance(value, TensorShape):
        return value.as_list()
    if isinstance(value, (list, tuple, np.ndarray)) and not any(isinstance(each, Tensor) for each in value):
        return list(value)
    return None
