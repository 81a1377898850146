"""Convolutions as one matrix product over the windows of the images.

torch's convolutions are fast for large images, many channels and windows that move by one pixel. For small images, few channels and longer
strides (also transposed convolutions), copying the windows into a matrix and multiplying it by the filter takes a third to nine tenths of the
time: channels-last images and TensorFlow's filters already have the layout of the matrices, and the matrix stays in the cache. Each
function returns None if torch is faster.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from stoker._src.base.extensions import extension
from stoker._src.ops.nn.windows import Windows
from stoker._src.ops.support import blas

_native: Any = extension("stoker._src.ops.native.patches")
if not blas.connect(_native):
    _native = None
_FEW_CHANNELS = 8  # below this number, the windows of images are a product faster
_MOST = 1 << 22  # elements of the windows
# The same if windows move by one pixel: of the forward product and of the gradients of the input and of the filter.
_MOST_FORWARD, _MOST_TO_INPUT, _MOST_TO_FILTER = 300_000, 1 << 19, 1 << 20
_MOST_OF_FEW = 1 << 19  # of the forward product if there are few channels
_SHARED = 1 << 14  # elements of the windows that are worth a second thread


def _is_faster(
    tensors: Sequence[torch.Tensor],
    sizes: Sequence[int],
    filter_sizes: Sequence[int],
    found: Windows,
    steps: tuple[int, ...],
    groups: int,
    data_format: str,
    most: int,
    most_of_few: int,
) -> bool:
    if _native is None or groups != 1 or data_format != "NHWC":
        return False
    if not all(t.dtype is torch.float32 and t.is_cpu and t.is_contiguous() for t in tensors):
        return False
    height, width, channels, _ = filter_sizes
    elements = sizes[0] * found.outputs[0] * found.outputs[1] * height * width * channels
    if elements > _MOST:
        return False
    if height == width == 1:
        return _is_of_pixels(sizes, filter_sizes, found, steps)
    return max(steps) > 1 or elements <= (most_of_few if channels < _FEW_CHANNELS else most)


def _is_of_pixels(sizes: Sequence[int], filter_sizes: Sequence[int], found: Windows, steps: tuple[int, ...]) -> bool:
    """Whether the images are the matrix of windows themselves: a filter of one pixel, with nothing between and around pixels."""
    alone = filter_sizes[0] == filter_sizes[1] == 1 and max(steps) == 1
    return alone and tuple(sizes[1:3]) == tuple(found.outputs) and not any(found.before)


def _windows(
    sizes: Sequence[int], filter_sizes: Sequence[int], found: Windows, steps: Any, rates: Any
) -> tuple[Any, ...]:
    count = sizes[0] * found.outputs[0] * found.outputs[1] * filter_sizes[0] * filter_sizes[1] * filter_sizes[2]
    threads = torch.get_num_threads() if count >= _SHARED else 1
    return tuple(sizes), found.outputs, tuple(filter_sizes[:2]), steps, rates, found.before, threads


def forward(
    input: torch.Tensor, filter: torch.Tensor, found: Windows, steps: Any, rates: Any, groups: int, data_format: str
) -> torch.Tensor | None:
    sizes = filter.shape
    most = _MOST_FORWARD, _MOST_OF_FEW
    if not _is_faster((input, filter), input.shape, sizes, found, steps, groups, data_format, *most):
        return None
    if _is_of_pixels(input.shape, sizes, found, steps):
        product = torch.mm(input.view(-1, sizes[2]), filter.view(sizes[2], sizes[3]))
        return product.view(*input.shape[:3], sizes[3])
    out = torch.empty(input.shape[0], *found.outputs, sizes[-1])
    _native.forward(out, input, filter, sizes[-1], *_windows(input.shape, sizes, found, steps, rates))
    return out


def backprop_input(
    sizes: Sequence[int],
    filter: torch.Tensor,
    out_backprop: torch.Tensor,
    found: Windows,
    steps: Any,
    rates: Any,
    groups: int,
    data_format: str,
) -> torch.Tensor | None:
    filter_sizes = filter.shape
    most = _MOST_TO_INPUT, _MOST
    if not _is_faster((filter, out_backprop), sizes, filter_sizes, found, steps, groups, data_format, *most):
        return None
    if _is_of_pixels(sizes, filter_sizes, found, steps):
        weights = filter.view(filter_sizes[2], filter_sizes[3])
        return torch.mm(out_backprop.view(-1, filter_sizes[3]), weights.t()).view(tuple(sizes))
    out = torch.empty(tuple(sizes))
    _native.to_input(out, out_backprop, filter, filter_sizes[-1], *_windows(sizes, filter_sizes, found, steps, rates))
    return out


def backprop_filter(
    input: torch.Tensor,
    filter_sizes: Sequence[int],
    out_backprop: torch.Tensor,
    found: Windows,
    steps: Any,
    rates: Any,
    groups: int,
    data_format: str,
) -> torch.Tensor | None:
    most = _MOST_TO_FILTER, _MOST_TO_FILTER
    if not _is_faster((input, out_backprop), input.shape, filter_sizes, found, steps, groups, data_format, *most):
        return None
    if _is_of_pixels(input.shape, filter_sizes, found, steps):
        product = torch.mm(input.view(-1, filter_sizes[2]).t(), out_backprop.view(-1, filter_sizes[3]))
        return product.view(tuple(filter_sizes))
    out = torch.empty(tuple(filter_sizes))
    windows = _windows(input.shape, filter_sizes, found, steps, rates)
    _native.to_filter(out, input, out_backprop, filter_sizes[-1], *windows)
    return out
