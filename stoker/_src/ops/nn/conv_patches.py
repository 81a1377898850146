"""Convolutions as one matrix product over the windows of the images.

torch's convolutions are fast for large images, many channels and windows that move by one pixel. For small images, few channels and longer
strides (also transposed convolutions), copying the windows into a matrix and multiplying it by the filter takes a third to nine tenths of the
time: channels-last images and TensorFlow's filters already have the layout of the matrices, and the matrix stays in the cache. A route is
what follows from the sizes; conv_kernels.py keeps it for the next call with the same sizes.

With AVX-512, most convolutions multiply the images where they lie, without a copy of the windows
(native/convolutions.c), or, with filters of three by three or five by five pixels, with less than half of the multiplications (native/winograd.c).
Depthwise convolutions, for which torch copies images to another layout and back, are no products, but have the
same routes (native/depthwise.c). On a GPU, only filters of one pixel are products: cuDNN would copy the filter to its layout and back.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import torch

from stoker._src.base.extensions import extension
from stoker._src.ops.nn.windows import Windows
from stoker._src.ops.support import blas

_native: Any = extension("stoker._src.ops.native.patches")
if not blas.connect(_native):
    _native = None
_direct: Any = extension("stoker._src.ops.native.convolutions") if _native is not None else None
if _direct is not None and not _direct.runs_here:
    _direct = None
_winograd: Any = extension("stoker._src.ops.native.winograd") if _direct is not None else None
_depthwise: Any = extension("stoker._src.ops.native.depthwise")
_FEW_CHANNELS = 8  # below this number, the windows of images are a product faster
_FEW_ELEMENTS = 1 << 19  # of the windows of a depthwise convolution with few channels; of more, torch is faster
_MOST = 1 << 22  # elements of the windows
# The same if windows move by one pixel: of the forward product and of the gradients of the input and of the filter.
_MOST_FORWARD, _MOST_TO_INPUT, _MOST_TO_FILTER = 300_000, 1 << 19, 1 << 20
_MOST_OF_FEW = 1 << 19  # of the forward product if there are few channels
# Of a product without a copy; of fewer, the copy of the windows makes a better product, if its sums are not shorter still.
_FEWEST_COLUMNS = 8
# Without a copy, a filter is read once for each row of results. This is too often for filters of so many elements (more than a cache
# holds) if rows have less than so many pixels.
_LARGE_FILTER, _SHORT_ROW = 1 << 18, 14
_FULL_CHANNELS = 16  # which fill vectors
# Elements of windows whose product to the filter is faster with torch, if torch has vectors as wide.
_LARGE_WINDOWS = 1 << 21
# Channels of images and results that are worth transforming them, and squares of results that are worth transforming the filter.
_FEWEST_CHANNELS, _FEWEST_SQUARES = 32, 64
_FEW_OUTPUTS = 8  # below this number, images and results change roles if there are many more channels
_SHARED = 1 << 14  # elements of the windows that are worth a second thread


class Route:
    """A convolution, or one of its gradients, over tensors of given sizes, as a product. Called with its two tensors."""

    __slots__ = ("_arguments", "_for_host", "_is_shared", "_outputs", "_product", "_sizes")

    def __init__(
        self, product: Any, sizes: Sequence[int], outputs: int, arguments: tuple[Any, ...], count: int
    ) -> None:
        self._product, self._sizes, self._outputs = product, tuple(sizes), outputs
        self._arguments, self._is_shared = arguments, count >= _SHARED
        self._for_host = bool(arguments) or (_native is not None and (count <= _MOST or _direct is not None))

    def __call__(self, first: torch.Tensor, second: torch.Tensor) -> torch.Tensor | None:
        """The result; None if torch's own convolution must compute it."""
        if first.dtype is not torch.float32 or second.dtype is not torch.float32:
            return None
        if not (self._for_host if first.is_cpu and second.is_cpu else not self._arguments):
            return None
        if not (first.is_contiguous() and second.is_contiguous()):  # such as the parts of a gradient of joined images
            first, second = first.contiguous(), second.contiguous()
        if not self._arguments:
            return self._product(first, second).view(self._sizes)
        out = torch.empty(self._sizes)
        threads = torch.get_num_threads() if self._is_shared else 1
        self._product(out, first, second, self._outputs, *self._arguments, threads)
        return out


def _route(
    product: str,
    of_pixels: Any,
    result: Sequence[int],
    sizes: Sequence[int],
    filter_sizes: Sequence[int],
    geometry: tuple[Windows, Any, Any, int],
    data_format: str,
    most: int,
    most_of_few: int,
) -> Route | None:
    found, steps, rates, groups = geometry
    flat = data_format == "NHWC"
    if not flat and data_format != "NDHWC":
        return None
    *window, channels, outputs = filter_sizes
    elements = sizes[0] * math.prod(found.outputs) * math.prod(window) * channels
    moves = (found.outputs, window, steps, rates, found.before)
    if flat:  # a volume of one sheet
        image, moves = (sizes[0], 1, *sizes[1:]), tuple((first, *each) for first, each in zip((1, 1, 1, 1, 0), moves))
    else:
        image = tuple(sizes)
    arguments = (image, *map(tuple, moves))
    by_pixels = product != "to_filter" and max(steps) == 1
    # With one channel and one filter, every convolution is a depthwise one.
    if flat and groups == sizes[-1] and (groups > 1 or (outputs == 1 and by_pixels)) and _depthwise is not None:
        elements *= outputs
        if outputs < 4 and not by_pixels:
            most = _FEW_ELEMENTS
        else:
            most = _MOST if product == "forward" and by_pixels else elements
        return Route(getattr(_depthwise, product), result, outputs, arguments, elements) if elements <= most else None
    if groups != 1:
        return None
    if _is_of_pixels(sizes, filter_sizes, found, steps):
        return Route(of_pixels, result, outputs, (), elements)
    if _native is None:
        return None
    if product != "to_input" and max(steps) == 1 and outputs < _FEW_OUTPUTS:
        exchanged = _exchanged(product, arguments, filter_sizes, elements)
        if exchanged is not None:
            return Route(exchanged, result, outputs, arguments, elements)
    if _is_direct(product, filter_sizes, found, steps, rates):
        direct = getattr(_direct, product)
        if _saves_multiplications(product, sizes, filter_sizes, found, steps, rates):
            return Route(_or_exactly(getattr(_winograd, product), direct), result, outputs, arguments, elements)
        row = sizes[-2] if product == "to_input" else found.outputs[-1]
        if product == "to_filter":
            if not blas.is_own and max(steps) == 1 and channels >= _FULL_CHANNELS and elements > _LARGE_WINDOWS:
                return None
        elif math.prod(filter_sizes) > _LARGE_FILTER and row < _SHORT_ROW and elements <= _MOST:
            direct = getattr(_native, product)
        return Route(direct, result, outputs, arguments, elements)
    if elements > _MOST or (max(steps) == 1 and elements > (most_of_few if channels < _FEW_CHANNELS else most)):
        return None
    return Route(getattr(_native, product), result, outputs, arguments, elements)


def _is_direct(product: str, filter_sizes: Sequence[int], found: Windows, steps: Any, rates: Any) -> bool:
    """Whether a convolution is computed without a copy of the windows."""
    if _direct is None:
        return False
    *window, channels, outputs = filter_sizes
    if product != "to_input":
        return outputs > 1
    dimensions = zip(found.before, window, steps, rates)
    return (channels >= _FEWEST_COLUMNS or 2 * channels >= outputs) and all(_has_shares(*each) for each in dimensions)


def _has_shares(before: int, size: int, step: int, rate: int) -> bool:
    """Whether each share of the pixels (those that meet every `step`th element of windows) is a convolution of the gradient with zeros around it."""
    if step > 1 and rate > 1:
        return False
    phases = range(min(step, size))
    return all(max(0, -((phase - before) // step)) <= -((phase - size) // step + 1) * rate for phase in phases)


def _saves_multiplications(
    product: str, sizes: Sequence[int], filter_sizes: Sequence[int], found: Windows, steps: Any, rates: Any
) -> bool:
    *window, channels, outputs = filter_sizes
    if _winograd is None or window not in ([3, 3], [5, 5]) or max(*steps, *rates) > 1:
        return False
    rows, columns = sizes[1:3] if product == "to_input" else found.outputs
    squares = sizes[0] * ((rows + 1) // 2) * ((columns + 1) // 2)
    enough = min(channels, outputs) >= _FEWEST_COLUMNS and channels + outputs >= _FEWEST_CHANNELS
    return enough and squares >= _FEWEST_SQUARES and min(rows, columns) > 1


def _exchanged(product: str, arguments: tuple[Any, ...], filter_sizes: Sequence[int], elements: int) -> Any:
    """A product in which images and results have changed roles, so that vectors consist of the many channels instead of the few results.

    The result of a convolution that moves by one is the gradient of images of which the images are the result, with the window turned around.
    """
    *window, channels, outputs = filter_sizes
    image, results, sides, steps, rates, before = arguments
    behind = tuple((size - 1) * rate - padding for size, rate, padding in zip(sides, rates, before))
    summing: Any = _native if _direct is None else _direct
    is_direct = product == "to_filter" and _direct is not None
    enough = channels > 2 * outputs if is_direct else channels >= _FULL_CHANNELS and channels > 4 * outputs
    fits = product == "forward" or is_direct or elements // channels * outputs <= _MOST
    if min(behind) < 0 or not enough or not fits:
        return None
    others = (image[0], *results, outputs), image[1:4], sides, steps, rates, behind
    dimensions = tuple(range(len(window)))

    def forward(out: torch.Tensor, images: torch.Tensor, filter: torch.Tensor, *more: Any) -> None:
        _native.to_input(out, images, filter.flip(dimensions).mT.contiguous(), channels, *others, more[-1])

    def backward(out: torch.Tensor, images: torch.Tensor, gradient: torch.Tensor, *more: Any) -> None:
        found = torch.empty((*window, outputs, channels))
        summing.to_filter(found, gradient, images, channels, *others, more[-1])
        out.copy_(found.flip(dimensions).mT)

    return forward if product == "forward" else backward


def _or_exactly(transformed: Any, direct: Any) -> Any:
    """The product with fewer multiplications; if not all of its results are finite, the other one, which keeps these numbers where they belong."""

    def product(*arguments: Any) -> None:
        if not transformed(*arguments):
            direct(*arguments)

    return product


def _is_of_pixels(sizes: Sequence[int], filter_sizes: Sequence[int], found: Windows, steps: tuple[int, ...]) -> bool:
    """Whether the images are the matrix of windows themselves: a filter of one pixel, with nothing between and around pixels."""
    alone = set(filter_sizes[:-2]) == {1} == set(steps)
    return alone and tuple(sizes[1:-1]) == tuple(found.outputs) and not any(found.before)


def _rows(images: torch.Tensor) -> torch.Tensor:
    return images.view(-1, images.shape[-1])


def _product(a: torch.Tensor, b: torch.Tensor, transpose_a: bool, transpose_b: bool) -> torch.Tensor:
    found = blas.matmul(a, b, transpose_a, transpose_b)
    return torch.mm(a.t() if transpose_a else a, b.t() if transpose_b else b) if found is None else found


def forward(
    sizes: Sequence[int], filter_sizes: Sequence[int], geometry: tuple[Windows, Any, Any, int], data_format: str
) -> Route | None:
    """A route from the images and the filter to the result; None if torch is faster."""
    result = (sizes[0], *geometry[0].outputs, filter_sizes[-1])

    def of_pixels(images: torch.Tensor, filter: torch.Tensor) -> torch.Tensor:
        return _product(_rows(images), _rows(filter), False, False)

    most = _MOST_FORWARD, _MOST_OF_FEW
    return _route("forward", of_pixels, result, sizes, filter_sizes, geometry, data_format, *most)


def backprop_input(
    sizes: Sequence[int], filter_sizes: Sequence[int], geometry: tuple[Windows, Any, Any, int], data_format: str
) -> Route | None:
    """A route from the gradient of the result and the filter to the gradient of the images; None if torch is faster."""

    def of_pixels(gradient: torch.Tensor, filter: torch.Tensor) -> torch.Tensor:
        return _product(_rows(gradient), _rows(filter), False, True)

    most = _MOST_TO_INPUT, _MOST
    return _route("to_input", of_pixels, sizes, sizes, filter_sizes, geometry, data_format, *most)


def backprop_filter(
    sizes: Sequence[int], filter_sizes: Sequence[int], geometry: tuple[Windows, Any, Any, int], data_format: str
) -> Route | None:
    """A route from the images and the gradient of the result to the gradient of the filter; None if torch is faster."""

    def of_pixels(images: torch.Tensor, gradient: torch.Tensor) -> torch.Tensor:
        return _product(_rows(images), _rows(gradient), True, False)

    most = _MOST_TO_FILTER, _MOST_TO_FILTER
    return _route("to_filter", of_pixels, filter_sizes, sizes, filter_sizes, geometry, data_format, *most)
