"""Convolutions on torch, for any number of spatial dimensions and both layouts.

TensorFlow stores filters as [spatial..., in / groups, out], torch as [out, in / groups, spatial...]. A channels-last
tensor viewed with its channels first has exactly torch's channels_last memory format, so nothing is copied.
The number of groups is not an attribute: it is the ratio of the input's channels to the filter's input channels.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

import torch
import torch.nn.functional as F

from stoker._src.base.errors import InvalidArgumentError
from stoker._src.ops.nn import conv_patches
from stoker._src.ops.nn.windows import Windows, check_window_attr, explicit_pairs, is_channels_last, spatial, windows
from stoker._src.ops.support import blas
from stoker._src.ops.support.movement import allocatable, itemsize

_TO_FRONT = {3: (0, 2, 1), 4: (0, 3, 1, 2), 5: (0, 4, 1, 2, 3)}
_TO_BACK = {3: (0, 2, 1), 4: (0, 2, 3, 1), 5: (0, 2, 3, 4, 1)}
_FILTER_TO_TORCH = {4: (3, 2, 0, 1), 5: (4, 3, 0, 1, 2)}
_FILTER_FROM_TORCH = {4: (2, 3, 1, 0), 5: (2, 3, 4, 1, 0)}
_FORWARD = {4: torch.conv2d, 5: torch.conv3d}
_FAR = 8  # windows count as far apart if the stride is this many times as long
_BACKWARD = torch.ops.aten.convolution_backward


def channels_first(x: torch.Tensor, data_format: str) -> torch.Tensor:
    """`x` with its channels second, as torch requires; a view."""
    return x.permute(_TO_FRONT[x.dim()]) if is_channels_last(data_format) else x


def from_channels_first(x: torch.Tensor, data_format: str) -> torch.Tensor:
    """The inverse of `channels_first`, contiguous in TensorFlow's layout."""
    return (x.permute(_TO_BACK[x.dim()]) if is_channels_last(data_format) else x).contiguous()


def _groups(channels: int, filter_channels: int, outputs: int) -> int:
    if filter_channels == 0 or channels % filter_channels or outputs % max(channels // filter_channels, 1):
        raise InvalidArgumentError(
            None, None, f"input depth must be evenly divisible by filter depth: {channels} vs {filter_channels}"
        )
    return channels // filter_channels


@functools.lru_cache(maxsize=4096)
def _movement(
    strides: tuple[int, ...],
    padding: str,
    explicit_paddings: tuple[int, ...],
    data_format: str,
    dilations: tuple[int, ...],
    op: str,
) -> tuple[tuple[int, ...], tuple[int, ...], tuple[tuple[int, int], ...]]:
    """(strides, dilations, explicit padding) of the spatial dimensions, checked."""
    check_window_attr("strides", strides, data_format, op)
    check_window_attr("dilations", dilations, data_format, op)
    explicit = explicit_pairs(explicit_paddings, padding, data_format)
    return spatial(strides, data_format), spatial(dilations, data_format), explicit


def _geometry(
    sizes: Sequence[int],
    filter_sizes: Sequence[int],
    strides: tuple[int, ...],
    padding: str,
    explicit_paddings: tuple[int, ...],
    data_format: str,
    dilations: tuple[int, ...],
    op: str = "convolution",
) -> tuple[Windows, tuple[int, ...], tuple[int, ...], int]:
    """(windows, spatial strides, spatial dilations, groups) of a convolution over an input of `sizes`."""
    steps, rates, explicit = _movement(strides, padding, explicit_paddings, data_format, dilations, op)
    found = windows(spatial(sizes, data_format), tuple(filter_sizes[:-2]), steps, rates, padding, explicit)
    channels = sizes[-1] if is_channels_last(data_format) else sizes[1]
    return found, steps, rates, _groups(channels, filter_sizes[-2], filter_sizes[-1])


def _empty_like_image(like: torch.Tensor, sizes: Sequence[int], data_format: str) -> torch.Tensor:
    """Uninitialized memory in torch's dimension order. Only its sizes and layout are used."""
    return channels_first(like.new_empty(tuple(sizes)), data_format)


def _check_gradient(
    out_backprop: torch.Tensor, sizes: Sequence[int], found: Windows, filter_sizes: Sequence[int], data_format: str
) -> None:
    expected = (
        (sizes[0], *found.outputs, filter_sizes[-1])
        if is_channels_last(data_format)
        else (sizes[0], filter_sizes[-1], *found.outputs)
    )
    if tuple(out_backprop.shape) != tuple(expected):
        raise InvalidArgumentError(
            None,
            None,
            f"Size of out_backprop doesn't match computed: actual = {list(out_backprop.shape)}, computed = {list(expected)} "
            f"[input: {list(sizes)} filter: {list(filter_sizes)}]",
        )


def _exact(x: torch.Tensor) -> torch.Tensor:
    """Converts integers to float64, in which products and sums of int32 are exact up to 2**53."""
    return x if x.dtype.is_floating_point else x.to(torch.float64)


def _back(result: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
    if result.dtype == dtype:
        return result
    return result.to(torch.int64).to(dtype)  # through int64, so that int32 wraps around


# Routes by kind, sizes and attributes. All checks passed for them.
_routes: dict[Any, conv_patches.Route] = {}
_MOST_ROUTES = 4096


def _by_known_route(key: Any, first: torch.Tensor, second: torch.Tensor) -> torch.Tensor | None:
    route = _routes.get(key)
    return None if route is None else route(first, second)


def _by_route(
    key: Any, route: conv_patches.Route | None, first: torch.Tensor, second: torch.Tensor
) -> torch.Tensor | None:
    if route is None:
        return None
    if len(_routes) >= _MOST_ROUTES:
        _routes.clear()
    _routes[key] = route
    return route(first, second)


def conv_forward(
    input: torch.Tensor,
    filter: torch.Tensor,
    strides: tuple[int, ...],
    padding: str,
    explicit_paddings: tuple[int, ...],
    data_format: str,
    dilations: tuple[int, ...],
    op: str = "convolution",
) -> torch.Tensor:
    if blas.is_slow(input):
        geometric = strides, padding, explicit_paddings, data_format, dilations
        return conv_forward(input.float(), filter.float(), *geometric, op).half()
    key = "forward", input.shape, filter.shape, strides, padding, explicit_paddings, data_format, dilations
    result = _by_known_route(key, input, filter)
    if result is not None:
        return result
    rank = input.dim()
    if 0 in filter.shape[: -1 if rank == 4 else rank] and op != "DepthwiseConv2dNative":
        raise InvalidArgumentError(
            None,
            None,
            f"filter must not have zero elements (i.e. all dimensions must be non-zero): {list(filter.shape)}",
        )
    geometry = _geometry(input.shape, filter.shape, strides, padding, explicit_paddings, data_format, dilations, op)
    found, steps, rates, groups = geometry
    if 0 in found.outputs or 0 in input.shape or 0 in filter.shape:
        sizes = (input.shape[0], filter.shape[-1], *found.outputs)
        return from_channels_first(input.new_zeros(sizes), data_format)
    result = _by_route(key, conv_patches.forward(input.shape, filter.shape, geometry, data_format), input, filter)
    if result is not None:
        return result
    x, weight = _exact(channels_first(input, data_format)), _exact(filter).permute(_FILTER_TO_TORCH[rank])
    if found.pad is not None:
        x = F.pad(x, found.pad)
    if x.shape[1] == 1:
        # Both orders of dimensions describe this memory. Taken as channels-last, oneDNN reads what is behind the images where each row of them
        # gives one result (torch 2.11 to 2.13).
        x, weight = x.reshape(-1).view(x.shape), weight.contiguous()
    result = _FORWARD[rank](x, weight, None, steps, found.fold, rates, groups)
    return _back(from_channels_first(result, data_format), input.dtype)


def _check_rank(rank: int, **tensors: torch.Tensor) -> None:
    for name, tensor in tensors.items():
        if tensor.dim() != rank:
            raise InvalidArgumentError(
                None, None, f"{name} must be {rank}-dimensional, found the shape {list(tensor.shape)}"
            )


def conv_backprop_input(
    input_sizes: Sequence[int],
    filter: torch.Tensor,
    out_backprop: torch.Tensor,
    strides: tuple[int, ...],
    padding: str,
    explicit_paddings: tuple[int, ...],
    data_format: str,
    dilations: tuple[int, ...],
    op: str = "convolution",
) -> torch.Tensor:
    if blas.is_slow(out_backprop):
        geometric = strides, padding, explicit_paddings, data_format, dilations
        return conv_backprop_input(input_sizes, filter.float(), out_backprop.float(), *geometric, op).half()
    key = (
        "to_input", tuple(input_sizes), filter.shape, out_backprop.shape,
        strides, padding, explicit_paddings, data_format, dilations,
    )  # fmt: skip
    result = _by_known_route(key, out_backprop, filter)
    if result is not None:
        return result
    rank = len(data_format)
    _check_rank(rank, filter=filter, out_backprop=out_backprop)
    geometry = _geometry(input_sizes, filter.shape, strides, padding, explicit_paddings, data_format, dilations, op)
    found, steps, rates, groups = geometry
    _check_gradient(out_backprop, input_sizes, found, filter.shape, data_format)
    allocatable(input_sizes, itemsize(out_backprop))
    if out_backprop.numel() == 0 or filter.numel() == 0:
        return out_backprop.new_zeros(tuple(input_sizes))
    route = conv_patches.backprop_input(input_sizes, filter.shape, geometry, data_format)
    result = _by_route(key, route, out_backprop, filter)
    if result is not None:
        return result
    g, weight = _exact(channels_first(out_backprop, data_format)), _exact(filter).permute(_FILTER_TO_TORCH[rank])
    sizes = list(input_sizes)
    first = 1 if is_channels_last(data_format) else 2
    reaches = [(size - 1) * rate + 1 for size, rate in zip(filter.shape, rates)]
    if any(step > _FAR * reach for step, reach in zip(steps, reaches)):
        result = _far_apart(g, weight, steps, reaches, rates, groups)
        for i, before in enumerate(found.before):
            short = before + input_sizes[first + i] - result.shape[2 + i]
            if short > 0:
                result = F.pad(result, [0, 0] * (len(steps) - 1 - i) + [0, short])
            result = result.narrow(2 + i, before, input_sizes[first + i])
        return _back(from_channels_first(result, data_format), out_backprop.dtype)
    if found.pad is not None:
        for i in range(len(found.before)):
            sizes[first + i] += found.before[i] + found.after[i]
    x = _empty_like_image(g, sizes, data_format)
    zeros = [0] * len(steps)
    result = _BACKWARD(g, x, weight, None, steps, found.fold, rates, False, zeros, groups, [True, False, False])[0]
    if found.pad is not None:
        for i, before in enumerate(found.before):
            result = result.narrow(2 + i, before, input_sizes[first + i])
    return _back(from_channels_first(result, data_format), out_backprop.dtype)


def _far_apart(
    g: torch.Tensor,
    weight: torch.Tensor,
    steps: Sequence[int],
    reaches: Sequence[int],
    rates: Sequence[int],
    groups: int,
) -> torch.Tensor:
    """The gradient of the padded input if the windows do not overlap. The windows are moved together for torch, whose
    kernels take minutes for large gaps."""
    near = [min(step, reach) for step, reach in zip(steps, reaches)]
    counts = g.shape[2:]
    sizes = [(count - 1) * step + reach for count, step, reach in zip(counts, near, reaches)]
    x = g.new_empty((g.shape[0], weight.shape[1] * groups, *sizes))
    zeros = [0] * len(near)
    result = _BACKWARD(g, x, weight, None, near, zeros, rates, False, zeros, groups, [True, False, False])[0]
    for i, (count, step, reach) in enumerate(zip(counts, steps, reaches)):
        if step > reach and count > 1:  # each window is followed by a gap
            windows = result.unflatten(2 + i, (count, reach))
            behind = [0, 0] * (len(near) - 1 - i) + [0, step - reach]
            result = F.pad(windows, behind).flatten(2 + i, 3 + i)
    return result


def conv_backprop_filter(
    input: torch.Tensor,
    filter_sizes: Sequence[int],
    out_backprop: torch.Tensor,
    strides: tuple[int, ...],
    padding: str,
    explicit_paddings: tuple[int, ...],
    data_format: str,
    dilations: tuple[int, ...],
) -> torch.Tensor:
    if blas.is_slow(input):
        geometric = strides, padding, explicit_paddings, data_format, dilations
        return conv_backprop_filter(input.float(), filter_sizes, out_backprop.float(), *geometric).half()
    key = (
        "to_filter", input.shape, tuple(filter_sizes), out_backprop.shape,
        strides, padding, explicit_paddings, data_format, dilations,
    )  # fmt: skip
    result = _by_known_route(key, input, out_backprop)
    if result is not None:
        return result
    rank = len(data_format)
    _check_rank(rank, input=input, out_backprop=out_backprop)
    channels = input.shape[-1 if is_channels_last(data_format) else 1]
    if filter_sizes[-2] and (channels == 0 or (rank == 5 and channels != filter_sizes[-2])):
        raise InvalidArgumentError(
            None,
            None,
            "input and filter_sizes must have the same number of channels. "
            f"Got {channels} for input and {filter_sizes[-2]} for filter_sizes",
        )
    geometry = _geometry(input.shape, filter_sizes, strides, padding, explicit_paddings, data_format, dilations)
    found, steps, rates, groups = geometry
    _check_gradient(out_backprop, input.shape, found, filter_sizes, data_format)
    allocatable(filter_sizes, itemsize(input))
    if input.numel() == 0 or out_backprop.numel() == 0 or 0 in filter_sizes:
        return input.new_zeros(tuple(filter_sizes))
    route = conv_patches.backprop_filter(input.shape, filter_sizes, geometry, data_format)
    result = _by_route(key, route, input, out_backprop)
    if result is not None:
        return result
    x, g = channels_first(input, data_format), channels_first(out_backprop, data_format)
    if found.pad is not None:
        x = F.pad(x, found.pad)
    fold: Sequence[int] = found.fold
    if all(size == 1 for size in filter_sizes[:-2]) and any(step > 1 for step in steps):
        x, steps, fold = _taken_by_steps(x, fold, steps, found.outputs), (1,) * len(steps), (0,) * len(steps)
    # Only its sizes are used. One of torch's kernels refuses a weight that is not contiguous.
    weight = x.new_empty([filter_sizes[axis] for axis in _FILTER_TO_TORCH[rank]])
    zeros = [0] * len(steps)
    result = _BACKWARD(g, x, weight, None, steps, fold, rates, False, zeros, groups, [False, True, False])[1]
    return result.permute(_FILTER_FROM_TORCH[rank]).contiguous()


def _taken_by_steps(x: torch.Tensor, fold: Sequence[int], steps: Sequence[int], outputs: Sequence[int]) -> torch.Tensor:
    """The elements that a filter of one element reads.

    oneDNN's gradient of such a filter with strides, for channels-last images, is wrong and writes beyond its memory (torch 2.13).
    """
    if any(fold):
        x = F.pad(x, [size for each in reversed(fold) for size in (each, each)])
    index = [slice(0, (count - 1) * step + 1, step) for count, step in zip(outputs, steps)]
    return x[(slice(None), slice(None), *index)].contiguous()


# ---- depthwise: a filter [height, width, channels, multiplier] is one group for each channel -------------------


def grouped_filter(filter: torch.Tensor) -> torch.Tensor:
    """A depthwise filter as the filter of a convolution with as many groups as channels; a view."""
    height, width, channels, multiplier = filter.shape
    return filter.reshape(height, width, 1, channels * multiplier)


def grouped_sizes(filter_sizes: Sequence[int]) -> tuple[int, ...]:
    height, width, channels, multiplier = filter_sizes
    return (height, width, 1, channels * multiplier)
