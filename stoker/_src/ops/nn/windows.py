"""The windows of convolutions and pooling: data layouts, padding rules, output sizes.

A window of effective size k (k = (kernel - 1) * dilation + 1) moves by `stride` over an input of size n:

    VALID      ceil((n - k + 1) / stride) windows, no padding
    SAME       ceil(n / stride) windows; the input is padded as needed, the odd element at the end
    EXPLICIT   the given padding, then as VALID
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any, NamedTuple

from stoker._src.base.errors import InvalidArgumentError, UnimplementedError
from stoker._src.base.shapes import Dim, Shape

_LARGEST = 2**31 - 1
# Ops that report windows across batch or channels as unimplemented. Other ops report them as invalid.
_UNIMPLEMENTED = ("Conv2D", "Conv2DBackpropInput", "Dilation2D")


def is_channels_last(data_format: str) -> bool:
    return data_format[-1] == "C" and len(data_format) > 2


def spatial(values: Sequence[Any], data_format: str) -> tuple[Any, ...]:
    """The entries of the spatial dimensions of a sequence with one entry for each dimension."""
    return tuple(values[1:-1]) if is_channels_last(data_format) else tuple(values[2:])


def channel_axis(data_format: str) -> int:
    return len(data_format) - 1 if is_channels_last(data_format) else 1


class Windows(NamedTuple):
    """Windows over known sizes. `fold` is the padding for a torch kernel if both ends are padded equally. Otherwise
    `fold` is zero, and `pad` is the argument of `torch.nn.functional.pad`."""

    outputs: tuple[int, ...]
    before: tuple[int, ...]
    after: tuple[int, ...]
    fold: tuple[int, ...]
    pad: tuple[int, ...] | None


def _one(
    size: int, kernel: int, stride: int, dilation: int, padding: str, explicit: tuple[int, int]
) -> tuple[int, int, int]:
    """(windows, padding before, padding after) along one dimension."""
    effective = (kernel - 1) * dilation + 1
    if padding == "SAME":
        count = -(-size // stride)
        missing = max((count - 1) * stride + effective - size, 0)
        return count, missing // 2, missing - missing // 2
    before, after = explicit if padding == "EXPLICIT" else (0, 0)
    reach = size + before + after - effective + stride
    if reach <= -stride:
        raise InvalidArgumentError(
            None,
            None,
            f"Computed output size would be negative: {-(-reach // stride)} "
            f"[input_size: {size}, effective_filter_size: {effective}, stride: {stride}]",
        )
    count = max(reach, 0) // stride
    return count, before, after


@functools.lru_cache(maxsize=4096)
def windows(
    sizes: tuple[int, ...],
    kernel: tuple[int, ...],
    strides: tuple[int, ...],
    dilations: tuple[int, ...],
    padding: str,
    explicit: tuple[tuple[int, int], ...] = (),
) -> Windows:
    """The windows over spatial `sizes`.

    Raises:
        InvalidArgumentError: the window is larger than the padded input.
    """
    parts = [
        _one(size, kernel[i], strides[i], dilations[i], padding, explicit[i] if explicit else (0, 0))
        for i, size in enumerate(sizes)
    ]
    outputs, before, after = (tuple(part[i] for part in parts) for i in range(3))
    padded = [size + one + other for size, one, other in zip(sizes, before, after)]
    if any(size >= _LARGEST for size in padded):  # torch's kernels count in 32 bits without a check
        raise InvalidArgumentError(None, None, f"The padded sizes {padded} must be below 2**31 - 1")
    if before == after:
        return Windows(outputs, before, after, before, None)
    pad = [amount for i in reversed(range(len(sizes))) for amount in (before[i], after[i])]
    return Windows(outputs, before, after, (0,) * len(sizes), tuple(pad))


def explicit_pairs(explicit_paddings: Sequence[int], padding: str, data_format: str) -> tuple[tuple[int, int], ...]:
    """The attribute `explicit_paddings` (two numbers for each dimension) as pairs for the spatial dimensions.

    Raises:
        InvalidArgumentError: the list has the wrong length, is negative, or pads batch or channels.
    """
    if padding != "EXPLICIT":
        if explicit_paddings:
            raise InvalidArgumentError(
                None,
                None,
                f"explicit_paddings attribute must be empty if the padding attribute is not EXPLICIT ({padding})",
            )
        return ()
    rank = len(data_format)
    if len(explicit_paddings) != 2 * rank:
        raise InvalidArgumentError(
            None, None, f"explicit_paddings attribute must contain {2 * rank} values, but got: {len(explicit_paddings)}"
        )
    if any(amount < 0 for amount in explicit_paddings):
        raise InvalidArgumentError(
            None, None, f"All elements of explicit_paddings must be nonnegative: {list(explicit_paddings)}"
        )
    pairs = [(explicit_paddings[2 * i], explicit_paddings[2 * i + 1]) for i in range(rank)]
    if pairs[0] != (0, 0) or pairs[channel_axis(data_format)] != (0, 0):
        raise InvalidArgumentError(
            None,
            None,
            f"Nonzero explicit padding in the batch or depth dimensions is not supported: {list(explicit_paddings)}",
        )
    return spatial(pairs, data_format)


def check_window_attr(label: str, values: Sequence[int], data_format: str, op: str) -> None:
    """Checks that `values` has one positive entry for each dimension, and 1 for batch and channels.

    Raises:
        InvalidArgumentError: the length is wrong, a value is below 1, or (UnimplementedError for some ops) windows span
            the batch or the channels.
    """
    if len(values) == len(data_format) and (values[0] != 1 or values[channel_axis(data_format)] != 1):
        kind = UnimplementedError if op in _UNIMPLEMENTED else InvalidArgumentError
        raise kind(None, None, f"{op} does not support {label} in the batch and depth dimensions: {list(values)}")
    check_window_sizes(label, values, data_format, op)


def check_window_sizes(label: str, values: Sequence[int], data_format: str, op: str) -> None:
    """`check_window_attr`, limited to what TensorFlow checks at graph construction."""
    if len(values) != len(data_format):
        raise InvalidArgumentError(
            None,
            None,
            f"{op} requires the {label} attribute to contain {len(data_format)} values, but got: {len(values)}",
        )
    looked_at = spatial(values, data_format) if op in _UNIMPLEMENTED else values
    if any(value < 1 for value in looked_at):
        raise InvalidArgumentError(None, None, f"{op}: every value of {label} must be positive: {list(values)}")


def window_dim(size: Dim, kernel: Dim, stride: int, dilation: int, padding: str, explicit: tuple[int, int]) -> Dim:
    """The number of windows along a dimension; None if the size is not static."""
    if size is None or (kernel is None and padding != "SAME"):
        return None
    effective = ((kernel or 1) - 1) * dilation + 1
    padded = size + sum(explicit)
    if padding != "SAME" and padded < effective:
        raise InvalidArgumentError(
            None,
            None,
            f"Negative dimension size caused by subtracting {effective} from {padded}: "
            f"the window is larger than the input (stride {stride}, padding {padding}).",
        )
    return _one(size, kernel or 1, stride, dilation, padding, explicit)[0]


def window_shape(
    input: Shape,
    kernel: Sequence[Dim],
    strides: Sequence[int],
    dilations: Sequence[int],
    padding: str,
    explicit: tuple[tuple[int, int], ...],
    data_format: str,
    channels: Dim,
) -> Shape:
    """The static output shape of windows over `input`. All sequences cover the spatial dimensions."""
    input = input.of_rank(len(data_format))
    sizes = spatial(input.dims or (), data_format)
    outputs = [
        window_dim(size, kernel[i], strides[i], dilations[i], padding, explicit[i] if explicit else (0, 0))
        for i, size in enumerate(sizes)
    ]
    return image_shape(input[0], outputs, channels, data_format)


def image_shape(batch: Dim, sizes: Sequence[Dim], channels: Dim, data_format: str) -> Shape:
    if is_channels_last(data_format):
        return Shape((batch, *sizes, channels))
    return Shape((batch, channels, *sizes))


def known_or_rank(shape: Shape, data_format: str) -> Shape:
    """A shape given by a vector of sizes. If the sizes are unknown, the rank may still be known."""
    return Shape((None,) * len(data_format)) if shape.dims is None else shape
