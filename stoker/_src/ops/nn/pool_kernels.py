"""Max and average pooling on torch, over two or three spatial dimensions and in both layouts.

torch pads both ends equally. TensorFlow's SAME padding puts the odd element at the end. In most cases, torch's `ceil_mode`, in which
the last window may extend beyond the end, gives the same windows without a copy. Otherwise the input is padded first.
"""

from __future__ import annotations

import dataclasses
import functools
import itertools
import math
import weakref
from collections.abc import Sequence
from typing import Any

import torch
import torch.nn.functional as F

from stoker._src.base.errors import InvalidArgumentError, UnimplementedError
from stoker._src.base.extensions import extension
from stoker._src.ops.nn.conv_kernels import channels_first, from_channels_first
from stoker._src.ops.nn.windows import explicit_pairs, is_channels_last, spatial, windows
from stoker._src.ops.support.movement import allocatable, itemsize
from stoker._src.ops.support.unsigned import SIGNED_TWIN

native = extension("stoker._src.ops.native.pooling")

_MAX = {2: torch.ops.aten.max_pool2d_with_indices, 3: torch.ops.aten.max_pool3d_with_indices}
_MAX_BACKWARD = {2: torch.ops.aten.max_pool2d_with_indices_backward, 3: torch.ops.aten.max_pool3d_with_indices_backward}
_AVG = {2: torch.ops.aten.avg_pool2d, 3: torch.ops.aten.avg_pool3d}
_AVG_BACKWARD = {2: torch.ops.aten.avg_pool2d_backward, 3: torch.ops.aten.avg_pool3d_backward}


@dataclasses.dataclass(frozen=True)
class Plan:
    """How torch computes the windows: its padding and ceil_mode, after the input is padded by `pad` if necessary."""

    sizes: tuple[int, ...]
    outputs: tuple[int, ...]
    kernel: tuple[int, ...]
    strides: tuple[int, ...]
    fold: tuple[int, ...]
    ceil: bool
    pad: tuple[int, ...] | None
    before: tuple[int, ...]
    after: tuple[int, ...]

    @functools.cached_property
    def is_inside(self) -> bool:
        """Whether every window has an element of the image."""
        ends = (size + before for size, before in zip(self.sizes, self.before))
        return all(before < size for before, size in zip(self.before, self.kernel)) and all(
            (count - 1) * stride < end for count, stride, end in zip(self.outputs, self.strides, ends)
        )

    @functools.cached_property
    def moves(self) -> tuple[tuple[int, ...], ...]:
        """(numbers of windows, sizes, strides, padding before) in three dimensions. Flat images are volumes of one sheet."""
        own = (self.outputs, self.kernel, self.strides, self.before)
        return own if len(self.kernel) == 3 else tuple((first, *each) for first, each in zip((1, 1, 1, 0), own))


def _cut(
    sizes: tuple[int, ...], kernel: tuple[int, ...], strides: tuple[int, ...], found: Any
) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """(padding before, kernel) of windows that cover the same elements without extending far beyond the input."""
    before = tuple(min(b, (n - 1) * step) for b, n, step in zip(found.before, found.outputs, strides))
    ahead = (min(k - b, size) for k, b, size in zip(kernel, found.before, sizes))
    return before, tuple(b + a for b, a in zip(before, ahead))


@functools.lru_cache(maxsize=4096)
def plan(
    sizes: tuple[int, ...],
    kernel: tuple[int, ...],
    strides: tuple[int, ...],
    padding: str,
    explicit: tuple[tuple[int, int], ...],
) -> Plan:
    found = windows(sizes, kernel, strides, (1,) * len(sizes), padding, explicit)
    if 0 not in (*sizes, *found.outputs):
        before, kept = _cut(sizes, kernel, strides, found)
        if kept != kernel:
            ends = [(n - 1) * step - b + k for n, step, b, k in zip(found.outputs, strides, before, kept)]
            pairs = tuple((b, max(0, end - size)) for b, end, size in zip(before, ends, sizes))
            return plan(sizes, kept, strides, "EXPLICIT", pairs)
    fits = all(2 * before <= size for before, size in zip(found.before, kernel))
    if len(sizes) == 3 and any(k > size for k, size in zip(kernel, sizes)):
        fits = False  # torch requires volumes at least as large as the window, without its own padding
    if fits and found.pad is None:
        return Plan(sizes, found.outputs, kernel, strides, found.before, False, None, found.before, found.after)
    if fits:
        # The result of ceil_mode: one more window if the last one would leave elements uncovered.
        counts = [
            -(-(size + 2 * before - k) // stride) + 1
            for size, before, k, stride in zip(sizes, found.before, kernel, strides)
        ]
        if tuple(counts) == found.outputs and all(
            (count - 1) * stride < size + before
            for count, stride, size, before in zip(counts, strides, sizes, found.before)
        ):
            return Plan(sizes, found.outputs, kernel, strides, found.before, True, None, found.before, found.after)
    pad = tuple(amount for i in reversed(range(len(sizes))) for amount in (found.before[i], found.after[i]))
    return Plan(sizes, found.outputs, kernel, strides, (0,) * len(sizes), False, pad, found.before, found.after)


def plan_for(
    sizes: Sequence[int],
    ksize: Sequence[int],
    strides: Sequence[int],
    padding: str,
    explicit_paddings: tuple[int, ...],
    data_format: str,
) -> Plan:
    """The plan for an input of `sizes`.

    Raises:
        InvalidArgumentError: a window size or stride is below 1, or a window is larger than the input.
        UnimplementedError: windows span the batch, or channels and space at once.
    """
    _check_window_sizes(ksize, strides, data_format)
    if ksize[0] != 1 or strides[0] != 1:
        raise UnimplementedError(None, None, "Pooling is not yet supported on the batch dimension.")
    # As in TensorFlow, explicit paddings are ignored if another rule is given.
    explicit = explicit_pairs(explicit_paddings, padding, data_format) if padding == "EXPLICIT" else ()
    return plan(
        spatial(sizes, data_format), spatial(ksize, data_format), spatial(strides, data_format), padding, explicit
    )


def _check_window_sizes(ksize: Sequence[int], strides: Sequence[int], data_format: str) -> None:
    if len(ksize) != len(data_format) or len(strides) != len(data_format):
        raise InvalidArgumentError(
            None,
            None,
            f"Sliding window ksize and strides must specify {len(data_format)} dimensions: {list(ksize)}, {list(strides)}",
        )
    if min(*ksize, *strides) < 1:
        raise InvalidArgumentError(
            None, None, f"Sliding window ksize and strides must be positive: {list(ksize)}, {list(strides)}"
        )


def _pools_channels(ksize: Sequence[int], strides: Sequence[int], data_format: str) -> bool:
    axis = len(data_format) - 1 if is_channels_last(data_format) else 1
    _check_window_sizes(ksize, strides, data_format)
    if ksize[axis] == 1 and strides[axis] == 1:
        return False
    if any(size != 1 for i, size in enumerate(ksize) if i != axis):
        raise UnimplementedError(
            None, None, "MaxPooling supports exactly one of pooling across depth or pooling across width/height."
        )
    if strides[axis] != ksize[axis]:
        raise UnimplementedError(
            None, None, "Depthwise max pooling requires the depth window to equal the depth stride."
        )
    return True


def _by_window(input: torch.Tensor, window: int, data_format: str) -> tuple[torch.Tensor, int]:
    """Splits the channels into windows: (a view with the window's elements on one of the last two axes, that axis)."""
    axis = input.dim() - 1 if is_channels_last(data_format) else 1
    channels = input.shape[axis]
    if channels % window:
        raise UnimplementedError(
            None,
            None,
            f"Depthwise max pooling requires the depth window to evenly divide the input depth: {channels}, {window}",
        )
    return input.reshape(*input.shape[:axis], channels // window, window, *input.shape[axis + 1 :]), axis + 1


def _comparable(x: torch.Tensor) -> torch.Tensor:
    """`x` in a dtype that torch can pool, with the same order and without loss."""
    return x if x.dtype.is_floating_point or x.dtype == torch.int64 else x.to(torch.float64)


def _lowest(dtype: torch.dtype) -> float:
    return float("-inf") if dtype.is_floating_point else torch.iinfo(dtype).min


def _max_with_indices(
    input: torch.Tensor, p: Plan, data_format: str
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """(torch's input, maxima, index of each maximum within the spatial plane). The first of equal elements wins."""
    x = _comparable(channels_first(input, data_format))
    if p.pad is not None:
        x = F.pad(x, p.pad, value=_lowest(x.dtype))
    ones = (1,) * len(p.kernel)
    values, indices = _MAX[len(p.kernel)](x, p.kernel, p.strides, p.fold, ones, p.ceil)
    return x, values, indices


_LARGEST_WINDOW = 256  # elements; the native loops store a position in the window in one byte


def _is_native(p: Plan, data_format: str, x: torch.Tensor) -> bool:
    """Whether the native loops support `x`. Windows that have no element of the image are left to torch."""
    return (
        native is not None
        and x.dtype is torch.float32
        and x.device.type == "cpu"
        and is_channels_last(data_format)
        and p.is_inside
    )


def _stores_places(input: torch.Tensor, p: Plan, data_format: str) -> bool:
    """Whether the native loops support images with the positions of the maxima."""
    fits = data_format == "NHWC" and math.prod(p.kernel) <= _LARGEST_WINDOW
    return fits and input.is_contiguous() and _is_native(p, data_format, input)


def _by_native(loop: Any, sizes: Sequence[int], p: Plan, *tensors: torch.Tensor) -> None:
    """Calls a native loop for images of `sizes`."""
    inside = p.sizes if len(p.sizes) == 3 else (1, *p.sizes)
    loop(*[x.numpy() for x in tensors], (sizes[0], *inside, sizes[-1]), *p.moves, torch.get_num_threads())


def _native_max_pool(input: torch.Tensor, p: Plan) -> tuple[torch.Tensor, torch.Tensor]:
    """(maxima, the position of each in its window)."""
    result = input.new_empty((input.shape[0], *p.outputs, input.shape[3]))
    places = torch.empty(result.shape, dtype=torch.uint8)
    _by_native(native.max_pool, input.shape, p, result, places, input)
    return result, places


def max_pool(
    input: torch.Tensor,
    ksize: Sequence[int],
    strides: Sequence[int],
    padding: str,
    explicit_paddings: tuple[int, ...],
    data_format: str,
) -> torch.Tensor:
    if _pools_channels(ksize, strides, data_format):
        split, axis = _by_window(input, max(ksize), data_format)
        return _comparable(split).amax(axis).to(input.dtype)
    p = plan_for(input.shape, ksize, strides, padding, explicit_paddings, data_format)
    if input.numel() == 0 or 0 in p.outputs:
        return _empty_result(input, p, data_format)
    if _stores_places(input, p, data_format):
        result, found = _native_max_pool(input, p)
    elif len(p.kernel) == 3 and _is_native(p, data_format, input):
        result = input.new_empty(_empty_shape(input, p, data_format))
        _by_native(native.maxima, input.shape, p, result, input.contiguous())
        return result
    else:
        _, values, found = _max_with_indices(input, p, data_format)
        result = from_channels_first(values, data_format).to(input.dtype)
    _remember(result, input, p, found)
    return result


# The gradient op receives input and output, but not the positions of the maxima. They are attached to the output;
# if they are missing (a fed value, a copy), they are computed again.
_MEMO = "stoker_max_pool"


def _remember(output: torch.Tensor, input: torch.Tensor, p: Plan, indices: torch.Tensor) -> None:
    if (p.pad is None or indices.dtype is torch.uint8) and input.dtype.is_floating_point:
        setattr(output, _MEMO, (weakref.ref(input), p, indices))


def _remembered(output: torch.Tensor, input: torch.Tensor, p: Plan) -> torch.Tensor | None:
    source, planned, indices = getattr(output, _MEMO, (None, None, None))
    return indices if source is not None and source() is input and planned is p else None


def _empty_result(input: torch.Tensor, p: Plan, data_format: str) -> torch.Tensor:
    if is_channels_last(data_format):
        return input.new_zeros((input.shape[0], *p.outputs, input.shape[-1]))
    return input.new_zeros((*input.shape[:2], *p.outputs))


def _check_output(found: torch.Tensor, input: torch.Tensor, p: Plan, data_format: str, label: str) -> None:
    expected = _empty_shape(input, p, data_format)
    if tuple(found.shape) != expected:
        raise InvalidArgumentError(
            None, None, f"Expected {label} shape to be {list(expected)}, but got {list(found.shape)}"
        )


def _empty_shape(input: torch.Tensor, p: Plan, data_format: str) -> tuple[int, ...]:
    if is_channels_last(data_format):
        return (input.shape[0], *p.outputs, input.shape[-1])
    return (*input.shape[:2], *p.outputs)


def _without_padding(x: torch.Tensor, p: Plan, sizes: Sequence[int]) -> torch.Tensor:
    if p.pad is None:
        return x
    for i, before in enumerate(p.before):
        x = x.narrow(2 + i, before, sizes[i])
    return x


def max_pool_grad(
    orig_input: torch.Tensor,
    orig_output: torch.Tensor,
    grad: torch.Tensor,
    ksize: Sequence[int],
    strides: Sequence[int],
    padding: str,
    explicit_paddings: tuple[int, ...],
    data_format: str,
) -> torch.Tensor:
    """The gradient of the input: each output's gradient goes to the first maximum of its window."""
    if _pools_channels(ksize, strides, data_format):
        split, axis = _by_window(orig_input, max(ksize), data_format)
        chosen = _comparable(split).argmax(axis, keepdim=True)
        result = torch.zeros_like(split).scatter_(axis, chosen, grad.unsqueeze(axis))
        return result.reshape(orig_input.shape)
    p = plan_for(orig_input.shape, ksize, strides, padding, explicit_paddings, data_format)
    _check_output(orig_output, orig_input, p, data_format, "orig_output")
    _check_output(grad, orig_input, p, data_format, "grad")
    if grad.numel() == 0:
        return torch.zeros_like(orig_input)
    indices = _remembered(orig_output, orig_input, p)
    if _stores_places(orig_input, p, data_format) and (indices is None or indices.dtype is torch.uint8):
        places = _native_max_pool(orig_input, p)[1] if indices is None else indices
        result = torch.empty_like(orig_input)
        _by_native(native.max_pool_grad, orig_input.shape, p, result, places, grad.contiguous())
        return result
    if indices is None:
        x, _, indices = _max_with_indices(orig_input, p, data_format)
    else:
        x = channels_first(orig_input, data_format)
    g = channels_first(grad, data_format).to(x.dtype)
    ones = (1,) * len(p.kernel)
    if not x.dtype.is_floating_point:
        x, g = x.to(torch.float64), g.to(torch.float64)
    result = _MAX_BACKWARD[len(p.kernel)](g, x, p.kernel, p.strides, p.fold, ones, p.ceil, indices)
    result = _without_padding(result, p, spatial(orig_input.shape, data_format))
    return from_channels_first(result, data_format).to(grad.dtype)


def max_pool_3d_grad(
    orig_input: torch.Tensor,
    orig_output: torch.Tensor,
    grad: torch.Tensor,
    ksize: Sequence[int],
    strides: Sequence[int],
    padding: str,
    data_format: str,
) -> torch.Tensor:
    """The gradient for volumes. Unlike for images, each output's gradient goes to every element that equals it."""
    p = plan_for(orig_input.shape, ksize, strides, padding, (), data_format)
    _check_output(orig_output, orig_input, p, data_format, "orig_output")
    _check_output(grad, orig_input, p, data_format, "grad")
    if grad.numel() == 0:
        return torch.zeros_like(orig_input)
    if grad.dtype is torch.float32 and _is_native(p, data_format, orig_input):
        result = grad.new_empty(orig_input.shape)
        _by_native(native.maxima_grad, orig_input.shape, p, result, orig_input.contiguous(), grad.contiguous())
        return result
    x, g = channels_first(orig_input, data_format), channels_first(grad, data_format)
    y = _max_with_indices(orig_input, p, data_format)[1].to(x.dtype)
    sizes = x.shape[2:]
    if p.kernel == p.strides and tuple(sizes) == tuple(n * k for n, k in zip(p.outputs, p.kernel)):
        return _to_equals_of_tiles(x, y, g, p.kernel, data_format).to(grad.dtype)
    ends = [(n - 1) * step + k for n, step, k in zip(p.outputs, p.strides, p.kernel)]
    margins = [(b, max(0, end - b - size)) for b, end, size in zip(p.before, ends, sizes)]
    padded = F.pad(x, [amount for pair in reversed(margins) for amount in pair], value=_lowest(x.dtype))
    result = torch.zeros_like(padded, dtype=g.dtype)
    for offset in itertools.product(*map(range, p.kernel)):
        window = (
            ...,
            *(slice(o, o + (n - 1) * step + 1, step) for o, n, step in zip(offset, p.outputs, p.strides)),
        )
        result[window] += torch.where(padded[window] == y, g, 0)
    inner = (..., *(slice(b, b + size) for (b, _), size in zip(margins, sizes)))
    return from_channels_first(result[inner].contiguous(), data_format).to(grad.dtype)


def _to_equals_of_tiles(
    x: torch.Tensor, y: torch.Tensor, g: torch.Tensor, kernel: Sequence[int], data_format: str
) -> torch.Tensor:
    """`max_pool_3d_grad` for windows that lie side by side and cover everything: each element belongs to one of them."""
    x, y, g = (from_channels_first(each, data_format) for each in (x, y, g))
    first = 1 if is_channels_last(data_format) else 2
    for i in reversed(range(len(kernel))):  # innermost first, when there is least to copy
        y, g = (each.repeat_interleave(kernel[i], first + i) for each in (y, g))
    return torch.where(x == y, g, 0)


def max_pool_grad_grad(
    orig_input: torch.Tensor,
    orig_output: torch.Tensor,
    grad: torch.Tensor,
    ksize: Sequence[int],
    strides: Sequence[int],
    padding: str,
    explicit_paddings: tuple[int, ...],
    data_format: str,
) -> torch.Tensor:
    """`grad`, in the input's shape, gathered at the first maximum of each window."""
    if _pools_channels(ksize, strides, data_format):
        split, axis = _by_window(orig_input, max(ksize), data_format)
        chosen = _comparable(split).argmax(axis, keepdim=True)
        return torch.gather(grad.reshape(split.shape), axis, chosen).squeeze(axis)
    p = plan_for(orig_input.shape, ksize, strides, padding, explicit_paddings, data_format)
    _check_output(orig_output, orig_input, p, data_format, "orig_output")
    if tuple(grad.shape) != tuple(orig_input.shape):
        raise InvalidArgumentError(
            None, None, f"Expected grad shape to be {list(orig_input.shape)}, but got {list(grad.shape)}"
        )
    if orig_input.numel() == 0 or 0 in p.outputs:
        return _empty_result(grad, p, data_format)
    _, _, indices = _max_with_indices(orig_input, p, data_format)
    g = channels_first(_signed(grad), data_format)
    if p.pad is not None:
        g = F.pad(g, p.pad)
    flat = torch.gather(g.flatten(2), 2, indices.flatten(2))
    return from_channels_first(flat.reshape(indices.shape), data_format).view(grad.dtype)


def _signed(x: torch.Tensor) -> torch.Tensor:
    """The bits of wide unsigned integers as signed ones, which torch can move and (modulo 2**n) add."""
    twin = SIGNED_TWIN.get(x.dtype)
    return x if twin is None else x.view(twin)


def scattered(like: torch.Tensor, positions: torch.Tensor, values: torch.Tensor) -> torch.Tensor:
    """Zeros in the shape of `like` with `values` added at flat `positions`."""
    flat = torch.zeros_like(_signed(like)).reshape(-1)
    flat.index_add_(0, positions.reshape(-1), _signed(values).reshape(-1))
    return flat.reshape(like.shape).view(like.dtype)


# ---- with the positions of the maxima ---------------------------------------------------------------------------


def argmax_positions(input: torch.Tensor, p: Plan, include_batch: bool) -> tuple[torch.Tensor, torch.Tensor]:
    """(maxima, their positions in the flattened NHWC image, or in the whole batch) of a channels-last input."""
    _, values, indices = _max_with_indices(input, p, "NHWC")
    batch, height, width, channels = input.shape
    if p.pad is not None:
        padded_width = width + p.before[1] + p.after[1]
        rows, columns = indices // padded_width - p.before[0], indices % padded_width - p.before[1]
        indices = rows * width + columns
    positions = indices.permute(0, 2, 3, 1) * channels + torch.arange(channels, device=input.device)
    if include_batch:
        positions = positions + torch.arange(batch, device=input.device).reshape(-1, 1, 1, 1) * (
            height * width * channels
        )
    return from_channels_first(values, "NHWC").to(input.dtype), positions


def flat_positions(argmax: torch.Tensor, input: torch.Tensor, include_batch: bool) -> torch.Tensor:
    """`argmax` as positions in the whole flattened batch, checked.

    Raises:
        InvalidArgumentError: a position is outside the image (or batch).
    """
    positions = argmax.to(torch.int64)
    if not include_batch and input.dim():
        image = input[0].numel() if input.shape[0] else 0
        positions = positions + torch.arange(input.shape[0], device=input.device).reshape(-1, 1, 1, 1) * image
    if positions.numel() and not (int(positions.min()) >= 0 and int(positions.max()) < input.numel()):
        raise InvalidArgumentError(
            None,
            None,
            f"Expected argmax to lie within the input of {input.numel()} elements, found {int(positions.max())}.",
        )
    return positions.reshape(-1)


# ---- averages ---------------------------------------------------------------------------------------------------


def _counts(p: Plan, sizes: Sequence[int], like: torch.Tensor) -> torch.Tensor:
    """How many elements of the input each window covers."""
    total = like.new_ones(())
    for i, size in enumerate(sizes):
        starts = torch.arange(p.outputs[i], device=like.device) * p.strides[i] - p.before[i]
        covered = (starts + p.kernel[i]).clamp(max=size) - starts.clamp(min=0)
        total = total.unsqueeze(-1) * covered.to(like.dtype)
    return total


def avg_pool(
    value: torch.Tensor, ksize: Sequence[int], strides: Sequence[int], padding: str, data_format: str
) -> torch.Tensor:
    _check_window_sizes(ksize, strides, data_format)
    _refuse_channels(ksize, strides, data_format)
    p = plan_for(value.shape, ksize, strides, padding, (), data_format)
    if value.numel() == 0 or 0 in p.outputs:
        return _empty_result(value, p, data_format)
    if _is_native(p, data_format, value):
        result = value.new_empty(_empty_shape(value, p, data_format))
        _by_native(native.avg_pool, value.shape, p, result, value.contiguous())
        return result
    rank = len(p.kernel)
    x = _averageable(channels_first(value, data_format), rank)
    if p.pad is None:
        result = _AVG[rank](x, p.kernel, p.strides, p.fold, p.ceil, False, None)
    else:
        sums = _AVG[rank](F.pad(x, p.pad), p.kernel, p.strides, p.fold, False, True, 1)
        result = sums / _counts(p, x.shape[2:], x)
    return from_channels_first(result.to(value.dtype), data_format)


def _averageable(x: torch.Tensor, rank: int) -> torch.Tensor:
    """`x` in a dtype that torch can average. torch has no 3-D half precision kernel on the CPU."""
    return x.to(torch.float32) if rank == 3 and x.dtype in (torch.float16, torch.bfloat16) else x


def _refuse_channels(ksize: Sequence[int], strides: Sequence[int], data_format: str) -> None:
    axis = len(data_format) - 1 if is_channels_last(data_format) else 1
    if len(ksize) == len(data_format) and (ksize[axis] != 1 or strides[axis] != 1):
        raise UnimplementedError(None, None, "Average pooling is not supported on the depth dimension.")


def avg_pool_grad(
    orig_input_shape: Sequence[int],
    grad: torch.Tensor,
    ksize: Sequence[int],
    strides: Sequence[int],
    padding: str,
    data_format: str,
) -> torch.Tensor:
    _check_window_sizes(ksize, strides, data_format)
    _refuse_channels(ksize, strides, data_format)
    if len(orig_input_shape) != len(data_format):
        raise InvalidArgumentError(
            None, None, f"orig_input_shape must have {len(data_format)} elements, found {len(orig_input_shape)}"
        )
    if grad.ndim != len(data_format):
        raise InvalidArgumentError(
            None, None, f"out_backprop must be {len(data_format)}-dimensional, found shape {list(grad.shape)}"
        )
    p = plan_for(orig_input_shape, ksize, strides, padding, (), data_format)
    allocatable(orig_input_shape, itemsize(grad))
    sizes = spatial(orig_input_shape, data_format)
    if grad.numel() == 0:
        return grad.new_zeros(tuple(orig_input_shape))
    if _is_native(p, data_format, grad):
        result = grad.new_empty(tuple(orig_input_shape))
        _by_native(native.avg_pool_grad, orig_input_shape, p, result, grad.contiguous())
        return result
    rank = len(p.kernel)
    g = _averageable(channels_first(grad, data_format), rank)
    if p.pad is None:
        x = channels_first(g.new_empty(tuple(orig_input_shape)), data_format)
        if g.is_cuda and any(p.fold):
            # torch's CUDA kernel gives wrong gradients for padded channels-last windows (seen in 2.11).
            g, x = g.contiguous(), x.contiguous()
        result = _AVG_BACKWARD[rank](g, x, p.kernel, p.strides, p.fold, p.ceil, False, None)
        return from_channels_first(result.to(grad.dtype), data_format)
    padded = [g.shape[0], g.shape[1], *(size + p.before[i] + p.after[i] for i, size in enumerate(sizes))]
    shared = (g / _counts(p, sizes, g)).contiguous()
    result = _AVG_BACKWARD[rank](shared, g.new_empty(padded), p.kernel, p.strides, p.fold, False, True, 1)
    return from_channels_first(_without_padding(result, p, sizes).to(grad.dtype), data_format)
