"""TensorFlow's ops as functions of torch tensors, for the code that `to_torch` writes. It calls this module `ops`.

They use nothing but torch, so that autograd, `torch.export` and `torch.compile` see through them. Sizes are Python integers (or
torch's symbolic ones), never tensors. Where TensorFlow's gradient differs from torch's (ties of a maximum), TensorFlow's is kept.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import torch
import torch.nn.functional as F

Tensor = torch.Tensor

# ---- numbers and tensors ----------------------------------------------------------------------------------------


def tensor(value: Any, dtype: torch.dtype, device: torch.device) -> Tensor:
    """Converts a number, or a list of numbers, to a tensor. Sizes may be symbolic."""
    if isinstance(value, Tensor):
        return value.to(dtype)
    if isinstance(value, (list, tuple)):
        if not value:
            return torch.zeros([0], dtype=dtype, device=device)
        return torch.stack([tensor(each, dtype, device) for each in value])
    return torch.scalar_tensor(value, dtype=dtype, device=device)


def numbers(value: Any) -> Any:
    """Converts a tensor to plain numbers. Numbers are returned unchanged."""
    return value.tolist() if isinstance(value, Tensor) else value


def assign(target: Tensor, value: Any) -> None:
    """Assigns another value to a variable in place. No gradient passes through."""
    value = value.detach() if isinstance(value, Tensor) else value
    if target.requires_grad:
        with torch.no_grad():
            target.copy_(value)
    else:
        target.copy_(value)


# ---- elementwise ------------------------------------------------------------------------------------------------


def maximum(x: Any, y: Any) -> Tensor:
    """The larger one. At a tie the gradient goes to `x`."""
    return torch.where((x >= y) | (x != x), x, y)


def minimum(x: Any, y: Any) -> Tensor:
    """The smaller one. At a tie the gradient goes to `x`."""
    return torch.where((x <= y) | (x != x), x, y)


def clip(x: Tensor, low: Any, high: Any) -> Tensor:
    """`tf.clip_by_value` as one op: the gradient passes where the value was not changed."""
    return torch.where(x < low, low, torch.where(x > high, high, x))


def divide_no_nan(x: Tensor, y: Tensor) -> Tensor:
    """x / y, and 0 where y is 0. The gradient is 0 there, too."""
    zero = y == 0
    return torch.where(zero, torch.zeros_like(y), x / torch.where(zero, torch.ones_like(y), y))


def sign(x: Tensor) -> Tensor:
    """The sign; NaN of NaN."""
    return torch.where(torch.isnan(x), x, torch.sign(x)) if x.dtype.is_floating_point else torch.sign(x)


def floor_divide(x: Any, y: Any) -> Tensor:
    """floor(x / y): of floating-point numbers, the rounded quotient is rounded down."""
    whole = (x if isinstance(x, Tensor) else y).dtype
    return torch.floor(x / y) if whole.is_floating_point else torch.div(x, y, rounding_mode="floor")


def power(x: Tensor, y: Tensor) -> Tensor:
    """x ** y. The gradient of `y` is 0 where x is not positive."""
    result = torch.pow(x, y.detach())
    if not y.requires_grad:
        return result
    base = x.detach()
    positive = torch.pow(torch.where(base > 0, base, torch.ones_like(base)), y)
    # Adds nothing but the gradient.
    return result + torch.where(base > 0, positive - positive.detach(), torch.zeros_like(positive))


def softplus(x: Tensor) -> Tensor:
    """log(exp(x) + 1), accurate for every x."""
    return torch.logaddexp(x, torch.zeros_like(x))


def select(condition: Tensor, x: Tensor, y: Tensor) -> Tensor:
    """`tf.where` of 1.x: a vector condition selects rows."""
    if condition.dim() == 1 and x.dim() > 1:
        condition = condition.reshape([-1] + [1] * (x.dim() - 1))
    return torch.where(condition, x, y)


def leaky_relu(x: Tensor, alpha: float) -> Tensor:
    return torch.where(x > 0, x, x * alpha)


# ---- shapes -----------------------------------------------------------------------------------------------------


def permute(x: Tensor, order: Sequence[int]) -> Tensor:
    return x.permute(list(order))


def squeeze(x: Tensor, axes: Sequence[int]) -> Tensor:
    if not axes:
        return x.squeeze()
    return x.squeeze([axis % x.dim() for axis in axes])


def pad(x: Tensor, paddings: Sequence[Sequence[int]], value: Any = 0) -> Tensor:
    """Pads with a constant. `paddings` has (before, after) for each dimension."""
    flat = [each for pair in reversed(list(paddings)) for each in pair]
    if isinstance(value, Tensor):  # torch takes the constant as a number
        inside = F.pad(torch.ones_like(x, dtype=torch.bool), flat, value=False)
        return torch.where(inside, F.pad(x, flat), value.detach())
    return F.pad(x, flat, value=value)


def mirror_pad(x: Tensor, paddings: Sequence[Sequence[int]], symmetric: bool) -> Tensor:
    """Pads with the mirror image of the border; with the border itself if `symmetric`."""
    for axis, (before, after) in enumerate(paddings):
        if before or after:
            size, skip = x.shape[axis], 0 if symmetric else 1
            left = torch.arange(before - 1 + skip, skip - 1, -1, device=x.device)
            middle = torch.arange(size, device=x.device)
            right = torch.arange(size - 1 - skip, size - 1 - skip - after, -1, device=x.device)
            x = x.index_select(axis, torch.cat([left, middle, right]))
    return x


def cut(x: Tensor, begin: Sequence[int], size: Sequence[int]) -> Tensor:
    """`tf.slice`: a size of -1 takes the rest of the dimension."""
    for axis, (start, length) in enumerate(zip(begin, size)):
        length = x.shape[axis] - start if isinstance(length, int) and length == -1 else length
        if not (isinstance(start, int) and start == 0 and isinstance(length, int) and length == x.shape[axis]):
            x = x.narrow(axis, start, length)
    return x


def strided_slice(x: Tensor, parts: Sequence[Any]) -> Tensor:
    """Indexing with (start, end, step) triples, numbers, None for a new dimension of size 1, and ... for the remaining dimensions.

    torch has no negative steps: those dimensions are flipped first.
    """
    index: list[Any] = []
    named = sum(1 for part in parts if part is not None and part is not ...)
    axis = 0
    for part in parts:
        if part is ...:
            axis += x.dim() - named
        elif isinstance(part, tuple):
            start, end, step = part
            if step is not None and step < 0:
                size, step = x.shape[axis], -step
                x = x.flip(axis)
                start, end = (None if each is None else _mirrored(each, size) for each in (start, end))
            part = slice(start, end, step)
            axis += 1
        elif part is not None:
            axis += 1
        index.append(part)
    return x[tuple(index)]


def _mirrored(position: int, size: int) -> int:
    position = position + size if position < 0 else position
    return min(max(size - 1 - position, 0), size)


def one_hot(indices: Tensor, depth: int, on: Any, off: Any, axis: int, dtype: torch.dtype) -> Tensor:
    axis = axis % (indices.dim() + 1)
    places = torch.arange(depth, device=indices.device).reshape([-1] + [1] * (indices.dim() - axis))
    hits = indices.unsqueeze(axis) == places
    if isinstance(on, Tensor) or isinstance(off, Tensor):
        return torch.where(hits, on, off).to(dtype)
    return hits.to(dtype) if (on, off) == (1, 0) else torch.where(hits, on, off).to(dtype)


def reverse_sequence(x: Tensor, lengths: Tensor, seq_dim: int, batch_dim: int) -> Tensor:
    """Reverses the first `lengths[i]` elements of each sequence."""
    moved = x.movedim((batch_dim, seq_dim), (0, 1))
    steps = torch.arange(moved.shape[1], device=x.device)
    lengths = lengths.to(torch.int64).unsqueeze(1)
    index = torch.where(steps < lengths, lengths - 1 - steps, steps)
    index = index.reshape(list(index.shape) + [1] * (moved.dim() - 2)).expand(moved.shape)
    return torch.gather(moved, 1, index).movedim((0, 1), (batch_dim, seq_dim))


def space_to_batch(x: Tensor, block: Sequence[int], paddings: Sequence[Sequence[int]]) -> Tensor:
    count = len(block)
    rest = x.dim() - 1 - count
    x = pad(x, [(0, 0), *paddings, *[(0, 0)] * rest])
    sizes = [x.shape[0]]
    for i, step in enumerate(block):
        sizes += [x.shape[1 + i] // step, step]
    outer = [x.shape[1 + i] // step for i, step in enumerate(block)]
    tail = list(x.shape[1 + count :])
    order = [2 * i + 2 for i in range(count)] + [0] + [2 * i + 1 for i in range(count)]
    order += [1 + 2 * count + i for i in range(rest)]
    return x.reshape(sizes + tail).permute(order).reshape([x.shape[0] * math.prod(block), *outer, *tail])


def batch_to_space(x: Tensor, block: Sequence[int], crops: Sequence[Sequence[int]]) -> Tensor:
    count = len(block)
    batch = x.shape[0] // math.prod(block)
    tail = list(x.shape[1 + count :])
    order = [count]
    for i in range(count):
        order += [count + 1 + i, i]
    order += [1 + 2 * count + i for i in range(len(tail))]
    x = x.reshape([*block, batch, *x.shape[1:]]).permute(order)
    sizes = [x.shape[1 + 2 * i] * step for i, step in enumerate(block)]
    x = x.reshape([batch, *sizes, *tail])
    for i, (before, after) in enumerate(crops):
        x = x.narrow(1 + i, before, x.shape[1 + i] - before - after)
    return x


def depth_to_space(x: Tensor, block: int, channels_last: bool) -> Tensor:
    x = x if channels_last else x.movedim(1, -1)
    n, h, w, c = x.shape
    x = x.reshape([n, h, w, block, block, c // block**2]).permute([0, 1, 3, 2, 4, 5])
    x = x.reshape([n, h * block, w * block, c // block**2])
    return x if channels_last else x.movedim(-1, 1)


def space_to_depth(x: Tensor, block: int, channels_last: bool) -> Tensor:
    x = x if channels_last else x.movedim(1, -1)
    n, h, w, c = x.shape
    x = x.reshape([n, h // block, block, w // block, block, c]).permute([0, 1, 3, 2, 4, 5])
    x = x.reshape([n, h // block, w // block, c * block**2])
    return x if channels_last else x.movedim(-1, 1)


# ---- gathering --------------------------------------------------------------------------------------------------


def gather(params: Tensor, indices: Tensor, axis: int = 0, batch_dims: int = 0) -> Tensor:
    """`tf.gather`."""
    axis, batch_dims = axis % params.dim(), batch_dims % (indices.dim() + 1)
    if batch_dims:
        batch, inner = params.shape[:batch_dims], params.shape[axis + 1 :]
        middle = params.shape[batch_dims:axis]
        wanted = indices.shape[batch_dims:]
        flat = indices.reshape([*batch, *[1] * len(middle), -1, *[1] * len(inner)]).to(torch.int64)
        found = torch.gather(params, axis, flat.expand([*batch, *middle, flat.shape[axis], *inner]))
        return found.reshape([*batch, *middle, *wanted, *inner])
    if indices.dim() == 1:
        return params.index_select(axis, indices)
    shape = [*params.shape[:axis], *indices.shape, *params.shape[axis + 1 :]]
    return params.index_select(axis, indices.reshape(-1)).reshape(shape)


def gather_nd(params: Tensor, indices: Tensor, batch_dims: int = 0) -> Tensor:
    """`tf.gather_nd`."""
    index = list(indices.to(torch.int64).unbind(-1))
    for axis in range(batch_dims):
        shape = [-1 if i == axis else 1 for i in range(indices.dim() - 1)]
        index.insert(axis, torch.arange(params.shape[axis], device=params.device).reshape(shape))
    return params[tuple(index)] if index else params.expand([*indices.shape[:-1], *params.shape])


def scatter_nd(indices: Tensor, updates: Tensor, shape: Sequence[int]) -> Tensor:
    """Zeros of `shape` with `updates` added at `indices`."""
    return scatter_nd_add(torch.zeros(list(shape), dtype=updates.dtype, device=updates.device), indices, updates)


def scatter_nd_add(target: Tensor, indices: Tensor, updates: Tensor) -> Tensor:
    return target.index_put(tuple(indices.to(torch.int64).unbind(-1)), updates, accumulate=True)


def scatter_nd_update(target: Tensor, indices: Tensor, updates: Tensor) -> Tensor:
    return target.index_put(tuple(indices.to(torch.int64).unbind(-1)), updates)


def segment_sum(data: Tensor, ids: Tensor, count: int) -> Tensor:
    """The sums of the rows with the same id. Negative ids are ignored."""
    flat = ids.reshape(-1).to(torch.int64)
    rows = data.reshape([flat.shape[0], *data.shape[ids.dim() :]])
    kept = (flat >= 0).reshape([-1] + [1] * (rows.dim() - 1))
    result = torch.zeros([count, *rows.shape[1:]], dtype=data.dtype, device=data.device)
    return result.index_add(0, flat.clamp(min=0), torch.where(kept, rows, torch.zeros_like(rows)))


def sparse_segments(name: str, data: Tensor, indices: Tensor, ids: Tensor, count: int) -> Tensor:
    """The "sum", "mean" or "sqrtn" of the rows `indices` of `data` that have the same id."""
    sums = segment_sum(data.index_select(0, indices), ids, count)
    if name == "sum":
        return sums
    sizes = segment_sum(torch.ones_like(ids, dtype=data.dtype), ids, count).clamp(min=1)
    sizes = sizes if name == "mean" else sizes.sqrt()
    return sums / sizes.reshape([-1] + [1] * (sums.dim() - 1))


def unique(x: Tensor, dtype: torch.dtype) -> tuple[Tensor, Tensor, Tensor]:
    """The distinct elements of a vector in order of first occurrence, the index of each element among them, and counts."""
    found, places, counts = torch.unique(x, return_inverse=True, return_counts=True)
    first = torch.full_like(counts, x.shape[0]).scatter_reduce(
        0, places, torch.arange(x.shape[0], device=x.device), "amin"
    )
    order = torch.argsort(first)
    return found[order], torch.argsort(order)[places].to(dtype), counts[order].to(dtype)


def bucketize(x: Tensor, boundaries: Sequence[float]) -> Tensor:
    """The number of boundaries that are less than or equal to each element."""
    edges = torch.tensor(boundaries, dtype=torch.float32, device=x.device)
    return torch.bucketize(x.detach().to(torch.float32), edges, right=True).to(torch.int32)


def dynamic_partition(data: Tensor, partitions: Tensor, count: int) -> tuple[Tensor, ...]:
    flat = partitions.reshape(-1)
    rows = data.reshape([flat.shape[0], *data.shape[partitions.dim() :]])
    return tuple(rows.index_select(0, torch.nonzero(flat == i).reshape(-1)) for i in range(count))


def cholesky(x: Tensor) -> Tensor:
    """The lower Cholesky factor, or NaN for a matrix that is not positive definite."""
    factor, info = torch.linalg.cholesky_ex(x)
    return torch.where(info[..., None, None] != 0, torch.full_like(factor, math.nan).tril(), factor)


def sparse_matmul(indices: Tensor, values: Tensor, shape: Sequence[int], dense: Tensor) -> Tensor:
    """The product of a sparse matrix, given by its elements, and a dense one."""
    rows, columns = indices[:, 0], indices[:, 1]
    result = torch.zeros([shape[0], dense.shape[1]], dtype=dense.dtype, device=dense.device)
    return result.index_add(0, rows, dense.index_select(0, columns) * values.unsqueeze(1))


# ---- reductions -------------------------------------------------------------------------------------------------


def reduce(name: str, x: Tensor, axes: Any, keep_dims: bool) -> Tensor:
    """A reduction over `axes`, a number or a list of numbers. An empty list returns `x` unchanged."""
    axes = [axes] if isinstance(axes, int) else list(axes)
    if name == "prod":
        for axis in sorted([axis % max(x.dim(), 1) for axis in axes], reverse=True):
            x = torch.prod(x, axis, keepdim=keep_dims, dtype=x.dtype)
        return x
    if not axes:
        return x
    kind = {} if x.dtype.is_floating_point or x.dtype.is_complex or name not in ("sum",) else {"dtype": x.dtype}
    return _REDUCTIONS[name](x, axes, keepdim=keep_dims, **kind)


_REDUCTIONS: dict[str, Callable[..., Tensor]] = {
    "sum": torch.sum,
    "mean": torch.mean,
    "amax": torch.amax,
    "amin": torch.amin,
    "all": torch.all,
    "any": torch.any,
}


def cumulative(name: str, x: Tensor, axis: int, exclusive: bool, reverse: bool) -> Tensor:
    """A cumulative sum or product. `exclusive` excludes each element itself."""
    x = x.flip(axis) if reverse else x
    if exclusive and x.shape[axis]:
        first = torch.full_like(x.narrow(axis, 0, 1), 0 if name == "cumsum" else 1)
        x = torch.cat([first, x.narrow(axis, 0, x.shape[axis] - 1)], axis)
    x = (torch.cumsum if name == "cumsum" else torch.cumprod)(x, axis, dtype=x.dtype)
    return x.flip(axis) if reverse else x


# ---- convolutions and pooling -----------------------------------------------------------------------------------


def _same(size: int, window: int, step: int) -> tuple[int, int]:
    """The padding (before, after) with which ceil(size / step) windows fit."""
    total = max((-(-size // step) - 1) * step + window - size, 0)
    return total // 2, total - total // 2


def _paddings(
    x: Tensor,
    windows: Sequence[int],
    strides: Sequence[int],
    dilations: Sequence[int],
    padding: Any,
) -> list[tuple[int, int]]:
    """The padding of each spatial dimension of a channels-first image. `padding` is "SAME", "VALID" or pairs."""
    if not isinstance(padding, str):
        return [(before, after) for before, after in padding]
    if padding == "VALID":
        return [(0, 0)] * len(windows)
    reaches = [(window - 1) * rate + 1 for window, rate in zip(windows, dilations)]
    return [_same(size, reach, step) for size, reach, step in zip(x.shape[2:], reaches, strides)]


def _split(x: Tensor, pads: list[tuple[int, int]], value: float = 0.0) -> tuple[Tensor, list[int]]:
    """Applies the asymmetric part of the padding and returns the symmetric rest for torch's own padding."""
    if all(before == after for before, after in pads) and value == 0.0:
        return x, [before for before, _ in pads]
    return F.pad(x, [each for pair in reversed(pads) for each in pair], value=value), [0] * len(pads)


def _first(x: Tensor, channels_last: bool) -> Tensor:
    return x.movedim(-1, 1) if channels_last else x


def _last(x: Tensor, channels_last: bool) -> Tensor:
    return x.movedim(1, -1) if channels_last else x


def conv(
    x: Tensor,
    filter: Tensor,
    *,
    strides: Sequence[int],
    padding: Any,
    channels_last: bool = True,
    dilations: Sequence[int] | None = None,
) -> Tensor:
    """A convolution with a filter of TensorFlow's layout [spatial..., in, out]."""
    count = filter.dim() - 2
    dilations = list(dilations or [1] * count)
    x = _first(x, channels_last)
    pads = _paddings(x, filter.shape[:count], strides, dilations, padding)
    x, rest = _split(x, pads)
    if all(size == 1 for size in filter.shape[:count]) and any(step > 1 for step in strides):
        # oneDNN's gradient of such a filter with strides is wrong for channels-last images (torch 2.13).
        x = F.pad(x, [each for before in reversed(rest) for each in (before, before)]) if any(rest) else x
        x = x[(slice(None), slice(None), *(slice(None, None, step) for step in strides))]
        strides, rest = [1] * count, [0] * count
    weight = filter.permute([count + 1, count, *range(count)])
    if x.shape[1] == 1:  # as channels-last, oneDNN would read what is behind the images (conv_kernels.py)
        x, weight = x.reshape(-1).view(x.shape), weight.contiguous()
    groups = x.shape[1] // filter.shape[count]
    function = (F.conv1d, F.conv2d, F.conv3d)[count - 1]
    return _last(function(x, weight, None, list(strides), rest, dilations, groups), channels_last)


def depthwise_conv(
    x: Tensor,
    filter: Tensor,
    *,
    strides: Sequence[int],
    padding: Any,
    channels_last: bool = True,
    dilations: Sequence[int] = (1, 1),
) -> Tensor:
    """A depthwise convolution: each channel has its own filters. The filter is [height, width, in, multiplier]."""
    h, w, channels, multiplier = filter.shape
    return conv(
        x,
        filter.reshape([h, w, 1, channels * multiplier]),
        strides=strides,
        padding=padding,
        channels_last=channels_last,
        dilations=dilations,
    )


def conv_transpose(
    sizes: Sequence[int],
    filter: Tensor,
    x: Tensor,
    *,
    strides: Sequence[int],
    padding: Any,
    channels_last: bool = True,
    dilations: Sequence[int] | None = None,
) -> Tensor:
    """The transpose of `conv`, which TensorFlow calls Conv2DBackpropInput: `sizes` is the shape of the result."""
    count = filter.dim() - 2
    dilations = list(dilations or [1] * count)
    wanted = list(sizes[1 : 1 + count] if channels_last else sizes[2 : 2 + count])
    x = _first(x, channels_last)
    reaches = [(window - 1) * rate + 1 for window, rate in zip(filter.shape, dilations)]
    if padding == "SAME":
        pads = [_same(size, reach, step) for size, reach, step in zip(wanted, reaches, strides)]
    elif padding == "VALID":
        pads = [(0, 0)] * count
    else:
        pads = [tuple(pair) for pair in padding]
    weight = filter.permute([count + 1, count, *range(count)])
    function = (F.conv_transpose1d, F.conv_transpose2d, F.conv_transpose3d)[count - 1]
    full = function(x, weight, None, list(strides), 0, 0, 1, dilations)
    for i, ((before, _), size) in enumerate(zip(pads, wanted)):
        # With a stride, positions after the last window may be reached by no filter.
        short = before + size - full.shape[2 + i]
        if short > 0:
            full = F.pad(full, [0, 0] * (count - 1 - i) + [0, short])
        full = full.narrow(2 + i, before, size)
    return _last(full, channels_last)


def max_pool(x: Tensor, *, window: Sequence[int], strides: Sequence[int], padding: Any, channels_last: bool) -> Tensor:
    x = _first(x, channels_last)
    pads = _paddings(x, window, strides, [1] * len(window), padding)
    if any(before or after for before, after in pads):
        x, _ = _split(x, pads, -math.inf)
    function = (F.max_pool1d, F.max_pool2d, F.max_pool3d)[len(window) - 1]
    return _last(function(x, list(window), list(strides)), channels_last)


def avg_pool(x: Tensor, *, window: Sequence[int], strides: Sequence[int], padding: Any, channels_last: bool) -> Tensor:
    """Average pooling over the elements inside the image. Padding does not count."""
    x = _first(x, channels_last)
    pads = _paddings(x, window, strides, [1] * len(window), padding)
    function = (F.avg_pool1d, F.avg_pool2d, F.avg_pool3d)[len(window) - 1]
    if not any(before or after for before, after in pads):
        return _last(function(x, list(window), list(strides)), channels_last)
    flat = [each for pair in reversed(pads) for each in pair]
    inside = F.pad(torch.ones_like(x[:1, :1]), flat)
    share = function(inside, list(window), list(strides))
    return _last(function(F.pad(x, flat), list(window), list(strides)) / share, channels_last)


def resize(x: Tensor, size: Sequence[int], *, align_corners: bool, half_pixel_centers: bool, nearest: bool) -> Tensor:
    """Resizes [batch, height, width, channels] images, bilinearly or to the nearest pixel."""
    for axis in (1, 2):
        old, new = x.shape[axis], size[axis - 1]
        scale = (old - 1) / (new - 1) if align_corners and new > 1 else old / new
        places = torch.arange(new, dtype=torch.float32, device=x.device)
        if nearest:
            places = (places + 0.5) * scale if half_pixel_centers else places * scale
            index = torch.floor(places + 0.5) if align_corners else torch.floor(places)
            x = x.index_select(axis, index.to(torch.int64).clamp(0, old - 1))
            continue
        places = (places + 0.5) * scale - 0.5 if half_pixel_centers else places * scale
        below = torch.floor(places)
        share = (places - below).reshape([-1] + [1] * (3 - axis))
        first = x.to(torch.float32).index_select(axis, below.to(torch.int64).clamp(0, old - 1))
        second = x.to(torch.float32).index_select(axis, torch.ceil(places).to(torch.int64).clamp(0, old - 1))
        x = first + (second - first) * share
    return x if nearest else x.to(torch.float32)


# ---- normalization ----------------------------------------------------------------------------------------------


def batch_norm(
    x: Tensor, scale: Tensor, offset: Tensor, mean: Tensor, variance: Tensor, *, epsilon: float, channels_last: bool
) -> Tensor:
    """Batch normalization with given statistics."""
    if mean.requires_grad or variance.requires_grad:  # torch's own function has no gradient for them
        wide, shape = _first(x, channels_last).to(scale.dtype), [-1] + [1] * (x.dim() - 2)
        factor = scale * torch.rsqrt(variance + epsilon)
        y = (wide - mean.reshape(shape)) * factor.reshape(shape) + offset.reshape(shape)
        return _last(y, channels_last).to(x.dtype)
    y = F.batch_norm(_first(x, channels_last).to(scale.dtype), mean, variance, scale, offset, False, 0.0, epsilon)
    return _last(y, channels_last).to(x.dtype)


def batch_norm_training(
    x: Tensor, scale: Tensor, offset: Tensor, *, epsilon: float, channels_last: bool
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Batch normalization with the statistics of the batch: (y, mean, unbiased variance, variance)."""
    wide = x.to(scale.dtype)
    y = F.batch_norm(_first(wide, channels_last), None, None, scale, offset, True, 0.0, epsilon)
    axes = list(range(x.dim() - 1)) if channels_last else [0, *range(2, x.dim())]
    variance, mean = torch.var_mean(wide.detach(), axes, correction=0)
    count = wide.numel() // scale.numel()
    return _last(y, channels_last).to(x.dtype), mean, variance * (count / max(count - 1, 1)), variance


def local_response_norm(x: Tensor, radius: int, bias: float, alpha: float, beta: float) -> Tensor:
    squares = F.pad(x.square(), [radius, radius])
    sums = squares.unfold(-1, 2 * radius + 1, 1).sum(-1)
    return x * (bias + alpha * sums) ** -beta


# ---- losses -----------------------------------------------------------------------------------------------------


def softmax_cross_entropy(logits: Tensor, labels: Tensor) -> Tensor:
    """The cross entropy of each row. The gradient of `labels` passes, as in TensorFlow."""
    return -(labels * torch.log_softmax(logits, -1)).sum(-1)


def sparse_softmax_cross_entropy(logits: Tensor, labels: Tensor) -> Tensor:
    return F.cross_entropy(logits, labels.to(torch.int64), reduction="none")


def in_top_k(predictions: Tensor, targets: Tensor, k: int) -> Tensor:
    valid = (targets >= 0) & (targets < predictions.shape[1])
    own = predictions.gather(1, torch.where(valid, targets, 0).to(torch.int64).unsqueeze(1))
    valid = valid & torch.isfinite(own).squeeze(1)
    return valid & ((predictions > own).sum(1) < k) & torch.isfinite(predictions).all(1)


def top_k(x: Tensor, k: int) -> tuple[Tensor, Tensor]:
    """The largest elements of each row and their indices. Equal elements keep their order."""
    values, indices = torch.sort(x, dim=-1, descending=True, stable=True)
    return values[..., :k], indices[..., :k]


# ---- random numbers ---------------------------------------------------------------------------------------------


def truncated_normal(shape: Sequence[int], dtype: torch.dtype, device: torch.device) -> Tensor:
    """Normal numbers within two standard deviations, from torch's generator."""
    low, high = 0.5 * (1 + math.erf(-2 / math.sqrt(2))), 0.5 * (1 + math.erf(2 / math.sqrt(2)))
    uniform = torch.rand(list(shape), dtype=dtype, device=device) * (high - low) + low
    return torch.erfinv(2 * uniform - 1) * math.sqrt(2)


def random_integers(shape: Sequence[int], low: Any, high: Any, dtype: torch.dtype, device: torch.device) -> Tensor:
    return torch.randint(int(low), int(high), list(shape), dtype=dtype, device=device)


def shuffle(x: Tensor) -> Tensor:
    return x.index_select(0, torch.randperm(x.shape[0], device=x.device))


def multinomial(logits: Tensor, samples: int, dtype: torch.dtype) -> Tensor:
    return torch.multinomial(torch.softmax(logits, -1), samples, replacement=True).to(dtype)


def log_uniform_candidates(samples: int, unique: bool, range_max: int, device: torch.device) -> Tensor:
    """Candidate classes with probabilities log((i + 2) / (i + 1)) / log(range_max + 1)."""
    probabilities = _log_uniform(torch.arange(range_max, device=device), range_max)
    return torch.multinomial(probabilities, samples, replacement=not unique)


def uniform_candidates(samples: int, unique: bool, range_max: int, device: torch.device) -> Tensor:
    return torch.multinomial(torch.ones(range_max, device=device), samples, replacement=not unique)


def _log_uniform(classes: Tensor, range_max: int) -> Tensor:
    wide = classes.to(torch.float32)
    return torch.log((wide + 2) / (wide + 1)) / math.log(range_max + 1)


def expected_counts(classes: Tensor, samples: int, range_max: int, log_uniform: bool) -> Tensor:
    """The expected number of occurrences of each class among the samples."""
    if log_uniform:
        return _log_uniform(classes, range_max) * samples
    return torch.full_like(classes, samples / range_max, dtype=torch.float32)


# ---- control flow -----------------------------------------------------------------------------------------------


def cond(predicate: Any, then: Callable[[], Any], otherwise: Callable[[], Any]) -> Any:
    """Calls one of two functions without arguments. A traced tensor selects through `torch.cond`, other values in Python."""
    if isinstance(predicate, Tensor) and torch.compiler.is_compiling():
        return torch.cond(_truth(predicate), lambda: _fresh(then()), lambda: _fresh(otherwise()))
    return then() if bool(predicate) else otherwise()


def switch_case(index: Any, branches: Sequence[Callable[[], Any]]) -> Any:
    """Calls the branch with the given number, or the last branch if the number is out of range."""
    if not isinstance(index, Tensor) or not torch.compiler.is_compiling():
        index = int(index)
        return branches[index if 0 <= index < len(branches) else -1]()
    result = branches[-1]
    for number, branch in reversed(list(enumerate(branches[:-1]))):
        result = _either(index == number, branch, result)
    return result()


def _either(predicate: Tensor, then: Callable[[], Any], otherwise: Callable[[], Any]) -> Callable[[], Any]:
    return lambda: cond(predicate, then, otherwise)


def _truth(predicate: Tensor) -> Tensor:
    return predicate if predicate.dtype is torch.bool else predicate != 0


def _fresh(values: Any) -> Any:
    # A branch of `torch.cond` may return neither its inputs nor the same value twice.
    return tuple(value.clone() for value in values)


def goes_on(condition: Any) -> bool:
    """Whether a bounded loop runs its body once more. A traced loop runs all iterations, and `kept` discards the surplus ones."""
    return True if isinstance(condition, Tensor) and torch.compiler.is_compiling() else bool(condition)


def both(before: Any, condition: Any) -> Any:
    """Whether the condition has been true in all iterations so far, including this one."""
    if isinstance(before, Tensor) or (isinstance(condition, Tensor) and torch.compiler.is_compiling()):
        return torch.logical_and(torch.as_tensor(before), torch.as_tensor(condition))
    return condition


def kept(condition: Any, after: Any, before: Any) -> Any:
    """The loop variables after an iteration. A traced loop that has already ended keeps the earlier values."""
    if not isinstance(condition, Tensor) or not torch.compiler.is_compiling():
        return after
    return tuple(_kept(condition, new, old) for new, old in zip(after, before))


def _kept(condition: Tensor, new: Any, old: Any) -> Any:
    if isinstance(new, list):
        return [
            each if previous is None and each is None else _kept_item(condition, each, previous)
            for each, previous in zip(new, [*old, *[None] * (len(new) - len(old))])
        ]
    return torch.where(condition, new, old)


def _kept_item(condition: Tensor, new: Tensor, old: Tensor | None) -> Tensor:
    return new if new is old else torch.where(condition, new, torch.zeros_like(new) if old is None else old)


def while_loop(condition: Callable[..., Any], body: Callable[..., Any], values: tuple[Any, ...]) -> tuple[Any, ...]:
    """A loop whose number of iterations depends on data: a Python loop, or torch's `while_loop` (which has no gradient) while tracing."""
    if not torch.compiler.is_compiling():
        while bool(condition(*values)):
            values = body(*values)
        return values
    if any(isinstance(value, list) for value in values):
        raise NotImplementedError(
            "torch.export and torch.compile take a loop with a TensorArray only if its length follows from shapes, constants or "
            "maximum_iterations."
        )
    from torch._higher_order_ops.while_loop import while_loop as traced

    return tuple(traced(lambda *given: _truth(condition(*given)), lambda *given: _fresh(body(*given)), values))


# ---- lists ------------------------------------------------------------------------------------------------------
# A TensorArray or TensorList is a Python list. Elements that were not written are None.


def list_set(items: list[Any], index: Any, item: Tensor) -> list[Any]:
    """A copy of the list with one element replaced. The list grows if it is too short."""
    index = int(index)
    items = [*items, *[None] * (index + 1 - len(items))]
    items[index] = item
    return items


def list_get(items: list[Any], index: Any, shape: Sequence[int], dtype: torch.dtype, device: torch.device) -> Tensor:
    item = items[int(index)]
    return torch.zeros(_item_shape(items, shape), dtype=dtype, device=device) if item is None else item


def list_stack(items: list[Any], shape: Sequence[int], dtype: torch.dtype, device: torch.device) -> Tensor:
    if not items:
        return torch.zeros([0, *(max(size, 0) for size in shape)], dtype=dtype, device=device)
    return torch.stack([list_get(items, i, shape, dtype, device) for i in range(len(items))])


def list_gather(
    items: list[Any], indices: Sequence[int], shape: Sequence[int], dtype: torch.dtype, device: torch.device
) -> Tensor:
    return list_stack([items[i] for i in numbers(indices)], shape, dtype, device)


def list_scatter(items: list[Any], indices: Sequence[int], values: Tensor) -> list[Any]:
    for index, value in zip(numbers(indices), values.unbind(0)):
        items = list_set(items, index, value)
    return items


def list_lengths(items: list[Tensor]) -> list[int]:
    return [item.shape[0] for item in items]


def _item_shape(items: list[Any], shape: Sequence[int]) -> list[int]:
    for item in items:
        if item is not None:
            return list(item.shape)
    return [max(size, 0) for size in shape] if not isinstance(shape, int) else []
