"""Patches of images and volumes, flattened into the last dimension."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch

from stoker._src.base.dtypes import FLOATS, INTS, NUMERIC, bool_
from stoker._src.base.errors import InvalidArgumentError, OutOfRangeError, UnimplementedError
from stoker._src.base.export import export
from stoker._src.base.shapes import Dim, Shape
from stoker._src.graph.definition import INT32S, STRING, OpDefinition, define
from stoker._src.graph.late_binding import ops
from stoker._src.graph.tensor import Operation, Tensor
from stoker._src.ops.array import gathering, joining, ranges, shaping

_PADDING = STRING(allowed=("SAME", "VALID"))


def _geometry(size: int, window: int, stride: int, rate: int, padding: str) -> tuple[int, int, int]:
    """The number of patches along one dimension, and the padding before and after."""
    reach = (window - 1) * rate + 1
    if padding == "VALID":
        count = -(-(size - reach + 1) // stride)
        if count < 0:
            raise InvalidArgumentError(
                None,
                None,
                f"Computed output size would be negative: {count} "
                f"[input_size: {size}, effective_filter_size: {reach}, stride: {stride}]",
            )
        return count, 0, 0
    count = -(-size // stride)
    total = max(0, (count - 1) * stride + reach - size)
    return count, total // 2, total - total // 2


def _patches(
    x: torch.Tensor, windows: Sequence[int], strides: Sequence[int], rates: Sequence[int], padding: str
) -> torch.Tensor:
    """Copies the windows of all dimensions between the first and the last side by side."""
    count = len(windows)
    plans = [_geometry(x.shape[1 + i], windows[i], strides[i], rates[i], padding) for i in range(count)]
    flat = [0, 0] + [each for _, before, after in reversed(plans) for each in (before, after)]
    padded = torch.nn.functional.pad(x, flat) if any(flat) else x.contiguous()
    steps = padded.stride()
    sizes = (x.shape[0], *(plan[0] for plan in plans), *windows, x.shape[-1])
    if 0 in sizes:
        return x.new_zeros((*sizes[: 1 + count], int(np.prod(windows)) * x.shape[-1]))
    view = padded.as_strided(
        sizes,
        (
            steps[0],
            *(steps[1 + i] * strides[i] for i in range(count)),
            *(steps[1 + i] * rates[i] for i in range(count)),
            steps[-1],
        ),
    )
    result = view.reshape(*sizes[: 1 + count], -1)
    return result.clone() if result.data_ptr() == x.data_ptr() else result


def _checked(name: str, values: Sequence[int], length: int) -> Sequence[int]:
    wanted = f"{name} must be {length} positive numbers with 1 for the batch and the channels, got {list(values)}."
    if len(values) != length:
        raise InvalidArgumentError(None, None, wanted)
    if values[0] != 1 or values[-1] != 1:
        raise UnimplementedError(None, None, wanted)
    if any(value < 1 for value in values):
        raise OutOfRangeError(None, None, wanted)
    return values[1:-1]


def _sizes_seen(length: int, *attrs: Sequence[int]) -> list[Sequence[int]]:
    """Window sizes, strides and rates along the spatial dimensions, with the checks that happen at graph construction."""
    for values in attrs:
        if len(values) != length:
            raise InvalidArgumentError(None, None, f"expected {length} sizes, got {list(values)}.")
    for step in attrs[1][1:-1]:
        if step < 1:
            raise InvalidArgumentError(None, None, f"Stride must be > 0, but got {step} of {list(attrs[1])}.")
    return [values[1:-1] for values in attrs]


def _patches_shape(
    x: Shape, windows: Sequence[int], strides: Sequence[int], rates: Sequence[int], padding: str
) -> Shape:
    dims: Any = x.of_rank(len(windows) + 2).dims
    inner: list[Dim] = [
        None
        if size is None or min(windows[i], rates[i]) < 1
        else _geometry(size, windows[i], strides[i], rates[i], padding)[0]
        for i, size in enumerate(dims[1:-1])
    ]
    depth = None if dims[-1] is None else dims[-1] * int(np.prod(windows))
    return Shape((dims[0], *inner, depth))


def _scattered_back(definition: OpDefinition, op: Operation, g: Tensor, **attrs: Any) -> Tensor:
    """The gradient: adds every element of a patch to its source. Patches of element numbers tell the source."""
    x = op.inputs[0]
    sizes = shaping.shape(x)
    inner, channels = sizes[1:-1], sizes[-1:]
    area = ops.reduce_prod(inner)
    numbers = shaping.reshape(ranges.range(1, area + 1), joining.concat([[1], inner, [1]], 0))
    places = shaping.reshape(definition(numbers, **{name: op.attr(name) for name in ("ksizes", "strides", "padding")}, **attrs), [-1])  # fmt: skip
    taken = shaping.reshape(g, joining.concat([sizes[:1], shaping.shape(places), channels], 0))
    # Padding has number 0.
    summed = gathering.segment_sum(shaping.transpose(taken, [1, 0, 2]), places, area + 1)[1:]
    result = shaping.reshape(shaping.transpose(summed, [1, 0, 2]), sizes)
    if not getattr(result, "is_eager", False):
        result.set_shape(x.static_shape)
    return result


# ---- ExtractImagePatches ----------------------------------------------------------------------------------------

EXTRACT_IMAGE_PATCHES = define(
    "ExtractImagePatches(images: T) -> (patches: T)",
    ksizes=INT32S(minimum=4),
    strides=INT32S(minimum=4),
    rates=INT32S(minimum=4),
    T=(*NUMERIC, bool_),
    padding=_PADDING,
)


def _image_arguments(ksizes: Any, strides: Any, rates: Any) -> Any:
    return [_checked(name, values, 4) for name, values in (("ksizes", ksizes), ("strides", strides), ("rates", rates))]


@EXTRACT_IMAGE_PATCHES.kernel
def extract_image_patches_kernel(
    images: torch.Tensor, *, ksizes: Any, strides: Any, rates: Any, padding: str
) -> torch.Tensor:
    if images.ndim != 4:
        raise InvalidArgumentError(None, None, f"input must be 4-dimensional, got {Shape(images.shape)}")
    windows, steps, gaps = _image_arguments(ksizes, strides, rates)
    return _patches(images, windows, steps, gaps, padding)


@EXTRACT_IMAGE_PATCHES.shape
def extract_image_patches_shape(images: Shape, *, ksizes: Any, strides: Any, rates: Any, padding: str) -> Shape:
    return _patches_shape(images, *_sizes_seen(4, ksizes, strides, rates), padding=padding)


@EXTRACT_IMAGE_PATCHES.grad
def extract_image_patches_grad(op: Operation, g: Tensor) -> Tensor:
    return _scattered_back(EXTRACT_IMAGE_PATCHES, op, g, rates=op.attr("rates"))


@export(v1=("extract_image_patches", "image.extract_image_patches"))
def extract_image_patches(
    images: Any,
    ksizes: Any = None,
    strides: Any = None,
    rates: Any = None,
    padding: Any = None,
    name: str | None = None,
    sizes: Any = None,
) -> Tensor:
    """Extracts patches of images [batch, height, width, channels]. See `extract_patches`, whose `sizes` is called `ksizes` here."""
    if ksizes is not None and sizes is not None:
        raise ValueError("Cannot specify both 'sizes' and 'ksizes'.")
    return extract_patches(images, sizes if ksizes is None else ksizes, strides, rates, padding, name)


@export("image.extract_patches")
def extract_patches(images: Any, sizes: Any, strides: Any, rates: Any, padding: str, name: str | None = None) -> Tensor:
    """Extracts patches of images [batch, height, width, channels] and flattens each into the last dimension.

    Args:
        images: the images.
        sizes: [1, rows, columns, 1] of a patch.
        strides: [1, rows, columns, 1] between the centres of patches.
        rates: [1, rows, columns, 1] between the pixels of a patch.
        padding: "VALID" takes patches inside the image only; "SAME" pads the image with zeros.
        name: the op's name.
    """
    return EXTRACT_IMAGE_PATCHES(images, ksizes=sizes, strides=strides, rates=rates, padding=padding, name=name)


# ---- ExtractVolumePatches ---------------------------------------------------------------------------------------

EXTRACT_VOLUME_PATCHES = define(
    "ExtractVolumePatches(input: T) -> (patches: T)",
    ksizes=INT32S(minimum=5),
    strides=INT32S(minimum=5),
    T=(*FLOATS, *INTS),
    padding=_PADDING,
)


def _volume_arguments(ksizes: Any, strides: Any) -> Any:
    return [
        _checked(name, values, 5) for name, values in (("ksizes", ksizes), ("strides", strides), ("rates", (1,) * 5))
    ]


@EXTRACT_VOLUME_PATCHES.kernel
def extract_volume_patches_kernel(input: torch.Tensor, *, ksizes: Any, strides: Any, padding: str) -> torch.Tensor:
    if input.ndim != 5:
        raise InvalidArgumentError(None, None, f"input must be 5-dimensional, got {Shape(input.shape)}")
    return _patches(input, *_volume_arguments(ksizes, strides), padding=padding)


@EXTRACT_VOLUME_PATCHES.shape
def extract_volume_patches_shape(input: Shape, *, ksizes: Any, strides: Any, padding: str) -> Shape:
    return _patches_shape(input, *_sizes_seen(5, ksizes, strides, (1,) * 5), padding=padding)


@EXTRACT_VOLUME_PATCHES.grad
def extract_volume_patches_grad(op: Operation, g: Tensor) -> Tensor:
    return _scattered_back(EXTRACT_VOLUME_PATCHES, op, g)


@export("extract_volume_patches")
def extract_volume_patches(input: Any, ksizes: Any, strides: Any, padding: str, name: str | None = None) -> Tensor:
    """Extracts patches of volumes [batch, planes, rows, columns, channels] and flattens each into the last dimension."""
    return EXTRACT_VOLUME_PATCHES(input, ksizes=ksizes, strides=strides, padding=padding, name=name)
