"""`tensorflow.python.layers.utils`: normalizes arguments of layers, and computes lengths after convolutions."""

from __future__ import annotations

from typing import Any

from stoker._src.cli.internals.framework import smart_cond as smart_cond
from stoker._src.cli.internals.framework import smart_constant_value
from stoker._src.ops.variables.variables import Variable


def constant_value(pred: Any) -> bool | None:
    """Returns the value of a predicate if it is known statically, else None."""
    return None if isinstance(pred, Variable) else smart_constant_value(pred)


def convert_data_format(data_format: str, ndim: int) -> str:
    """Converts a layer's data format to the ops' form, for example `channels_last` to `NHWC`.

    Raises:
        ValueError: the format or the number of dimensions is unknown.
    """
    formats = {
        "channels_last": {3: "NWC", 4: "NHWC", 5: "NDHWC"},
        "channels_first": {3: "NCW", 4: "NCHW", 5: "NCDHW"},
    }
    if data_format not in formats:
        raise ValueError(f"Invalid data_format: {data_format}")
    if ndim not in formats[data_format]:
        raise ValueError(f"Input rank not supported: {ndim}")
    return formats[data_format][ndim]


def normalize_tuple(value: Any, n: int, name: str) -> tuple[int, ...]:
    """Returns one number, or n of them, as a tuple of n integers.

    Raises:
        ValueError: `value` is something else.
    """
    if isinstance(value, int):
        return (value,) * n
    try:
        numbers = tuple(value)
    except TypeError:
        raise ValueError(f"The `{name}` argument must be a tuple of {n} integers. Received: {value}") from None
    if len(numbers) != n:
        raise ValueError(f"The `{name}` argument must be a tuple of {n} integers. Received: {value}")
    for number in numbers:
        try:
            int(number)
        except (ValueError, TypeError):
            raise ValueError(
                f"The `{name}` argument must be a tuple of {n} integers. Received: {value} including element {number} of "
                f"type {type(number)}"
            ) from None
    return numbers


def normalize_data_format(value: str) -> str:
    """Returns `channels_first` or `channels_last`, in lower case."""
    found = value.lower()
    if found not in ("channels_first", "channels_last"):
        raise ValueError(
            f'The `data_format` argument must be one of "channels_first", "channels_last". Received: {value}'
        )
    return found


def normalize_padding(value: str) -> str:
    """Returns `valid` or `same`, in lower case."""
    found = value.lower()
    if found not in ("valid", "same"):
        raise ValueError(f'The `padding` argument must be one of "valid", "same". Received: {found}')
    return found


def conv_output_length(
    input_length: int | None, filter_size: int, padding: str, stride: int, dilation: int = 1
) -> int | None:
    """Returns the length after a convolution; None if the input length is unknown."""
    if input_length is None:
        return None
    reach = filter_size + (filter_size - 1) * (dilation - 1)
    length = {
        "same": input_length,
        "valid": input_length - reach + 1,
        "full": input_length + reach - 1,
    }[padding]
    return (length + stride - 1) // stride


def conv_input_length(output_length: int | None, filter_size: int, padding: str, stride: int) -> int | None:
    """Returns the input length of a convolution for a given output length."""
    if output_length is None:
        return None
    added = {"same": filter_size // 2, "valid": 0, "full": filter_size - 1}[padding]
    return (output_length - 1) * stride - 2 * added + filter_size


def deconv_output_length(input_length: int | None, filter_size: int, padding: str, stride: int) -> int | None:
    """Returns the length after a transposed convolution."""
    if input_length is None:
        return None
    length = input_length * stride
    if padding == "valid":
        return length + max(filter_size - stride, 0)
    return length - (stride + filter_size - 2) if padding == "full" else length
