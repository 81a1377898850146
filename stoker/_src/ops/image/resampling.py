"""Resampling of images, along one dimension at a time.

A table for each dimension lists the source pixels of each new pixel. There are three kinds: one pixel (nearest), two with a fraction
(bilinear), and any number with weights (cubic, area, and the filters of ScaleAndTranslate). Tables are computed in single
precision in the same steps as TensorFlow's, because a different rounding would select another pixel.

For float32 and uint8 images in host memory there are native loops (`ops/native/images.c`). torch computes the others.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import torch

from stoker._src.base.extensions import extension
from stoker._src.ops.support.moving import moved_to
from stoker._src.ops.support.values import from_numpy

native = extension("stoker._src.ops.native.images")
f32 = np.float32
_KEPT_TABLES = 256


class Pair(NamedTuple):
    """Two neighbours for each new pixel: `low + (high - low) * fraction`."""

    low: np.ndarray
    high: np.ndarray
    fraction: np.ndarray


class Taps(NamedTuple):
    """The same number of source pixels for each new pixel, [new size, taps]: positions and weights (0 for padding)."""

    places: np.ndarray
    weights: np.ndarray


def scale_of(size: int, new: int, align_corners: bool) -> np.float32:
    """Returns the ratio of old to new size."""
    return f32(size - 1) / f32(new - 1) if align_corners and size > 1 and new > 1 else f32(size) / f32(new)


def _positions(size: int, new: int, align_corners: bool, half_pixel_centers: bool) -> np.ndarray:
    """Returns the positions of the new pixels' centres among the old pixels."""
    scale, at = scale_of(size, new, align_corners), np.arange(new).astype(f32)
    return (at + f32(0.5)) * scale - f32(0.5) if half_pixel_centers else at * scale


@functools.lru_cache(_KEPT_TABLES)
def nearest(size: int, new: int, align_corners: bool, half_pixel_centers: bool) -> np.ndarray:
    scale, at = scale_of(size, new, align_corners), np.arange(new).astype(f32)
    place = (at + f32(0.5)) * scale if half_pixel_centers else at * scale
    # Halves are rounded away from zero, as in C.
    chosen = np.floor(place + f32(0.5)) if align_corners else np.floor(place)
    return np.clip(chosen, 0, size - 1).astype(np.int64)


@functools.lru_cache(_KEPT_TABLES)
def bilinear(size: int, new: int, align_corners: bool, half_pixel_centers: bool) -> Pair:
    place = _positions(size, new, align_corners, half_pixel_centers)
    below = np.floor(place)
    low = np.maximum(below, 0).astype(np.int32)
    high = np.minimum(np.ceil(place), size - 1).astype(np.int32)
    # Rounding may move the last position beyond the image.
    return Pair(np.minimum(low, size - 1), np.maximum(high, 0), place - below)


_CUBIC_STEPS = 1024


@functools.lru_cache(2)
def _cubic_weights(a: float) -> np.ndarray:
    """Returns the cubic convolution kernel of parameter `a` at multiples of 1/1024: [steps, (near, far)]."""
    x = np.arange(_CUBIC_STEPS + 1) / _CUBIC_STEPS
    near = ((a + 2) * x - (a + 3)) * x * x + 1
    x = x + 1
    far = ((a * x - 5 * a) * x + 8 * a) * x - 4 * a
    return np.stack([near, far], -1).astype(f32)


@functools.lru_cache(_KEPT_TABLES)
def bicubic(size: int, new: int, align_corners: bool, half_pixel_centers: bool) -> Taps:
    """Four taps. With half-pixel centres the kernel is Keys' (a = -0.5) and taps outside of the image are ignored; without, a = -0.75."""
    table = _cubic_weights(-0.5 if half_pixel_centers else -0.75)
    place = _positions(size, new, align_corners, half_pixel_centers)
    below = np.floor(place)
    step = np.rint((place - below) * f32(_CUBIC_STEPS)).astype(np.int64)
    back = _CUBIC_STEPS - step
    weights = np.stack([table[step, 1], table[step, 0], table[back, 0], table[back, 1]], -1)
    wanted = below.astype(np.int64)[:, None] + np.arange(-1, 3)
    places = np.clip(wanted, 0, size - 1)
    if half_pixel_centers:
        weights = np.where(places == wanted, weights, f32(0))
        total = ((weights[:, 0] + weights[:, 1]) + weights[:, 2]) + weights[:, 3]
        counts = np.abs(total) >= 1000 * np.finfo(f32).tiny
        weights = np.where(counts[:, None], weights * (f32(1) / np.where(counts, total, f32(1)))[:, None], weights)
    return Taps(places.astype(np.int32), weights.astype(f32))


@functools.lru_cache(_KEPT_TABLES)
def area(size: int, new: int, align_corners: bool) -> Taps:
    """Weights by the part of each old pixel that a new one covers, not divided by the number of covered pixels."""
    scale = scale_of(size, new, align_corners)
    at = np.arange(new).astype(f32)
    start, end = at * scale, (at + f32(1)) * scale
    first = np.floor(start).astype(np.int64)
    count = int((np.ceil(end).astype(np.int64) - first).max())
    pixel = first[:, None] + np.arange(count)
    left, right = pixel.astype(f32), (pixel + 1).astype(f32)
    start, end = start[:, None], end[:, None]
    weights = np.where(
        left < start, np.where(right > end, scale, right - start), np.where(right > end, end - left, f32(1))
    )
    weights = np.where(left < end, weights, f32(0)).astype(f32)
    return Taps(np.clip(pixel, 0, size - 1).astype(np.int32), weights)


# ---- filters ----------------------------------------------------------------------------------------------------


def _lanczos(radius: float) -> Callable[[np.ndarray], np.ndarray]:
    def value(x: np.ndarray) -> np.ndarray:
        x = np.abs(x)
        with np.errstate(divide="ignore", invalid="ignore"):
            inside = (
                f32(radius)
                * np.sin(f32(math.pi) * x)
                * np.sin(f32(math.pi) * x / f32(radius))
                / (f32(math.pi) * f32(math.pi) * x * x)
            )
        return np.where(x > radius, f32(0), np.where(x <= 1e-3, f32(1), inside))

    return value


def _gaussian(x: np.ndarray) -> np.ndarray:
    x, radius = np.abs(x), f32(1.5)
    return np.where(x >= radius, f32(0), np.exp(-x * x / (f32(2) * (radius / f32(3)) * (radius / f32(3)))))


def _box(x: np.ndarray) -> np.ndarray:
    x = np.abs(x)
    return np.where(x < 0.5, f32(1), np.where(x == 0.5, f32(0.5), f32(0)))


def _triangle(x: np.ndarray) -> np.ndarray:
    return np.maximum(f32(1) - np.abs(x), f32(0))


def _keys_cubic(x: np.ndarray) -> np.ndarray:
    x = np.abs(x)
    near = ((f32(1.5) * x - f32(2.5)) * x) * x + f32(1)
    far = ((f32(-0.5) * x + f32(2.5)) * x - f32(4)) * x + f32(2)
    return np.where(x >= 2, f32(0), np.where(x >= 1, far, near))


def _mitchell_cubic(x: np.ndarray) -> np.ndarray:
    x = np.abs(x)
    near = ((f32(7 / 6) * x - f32(2)) * x) * x + f32(16 / 18)
    far = ((f32(-7 / 18) * x + f32(2)) * x - f32(10 / 3)) * x + f32(16 / 9)
    return np.where(x >= 2, f32(0), np.where(x >= 1, far, near))


# name -> (radius, value)
FILTERS: dict[str, tuple[float, Callable[[np.ndarray], np.ndarray]]] = {
    "lanczos1": (1, _lanczos(1)),
    "lanczos3": (3, _lanczos(3)),
    "lanczos5": (5, _lanczos(5)),
    "gaussian": (1.5, _gaussian),
    "box": (0.5, _box),
    "triangle": (1, _triangle),
    "keyscubic": (2, _keys_cubic),
    "mitchellcubic": (2, _mitchell_cubic),
}


@functools.lru_cache(_KEPT_TABLES)
def filtered(size: int, new: int, scale: float, translation: float, kernel_type: str, antialias: bool) -> Taps:
    """Places the filter at each new pixel's centre and widens it when the image shrinks. The weights sum to one if the centre is inside."""
    radius, value = FILTERS[kernel_type]
    inverse = f32(1) / f32(scale)
    moved = -inverse * f32(translation)
    widened = max(inverse, f32(1)) if antialias else f32(1)
    centre = (np.arange(new).astype(f32) + f32(0.5)) * inverse + moved
    reach = f32(radius) * widened
    first = np.clip(np.ceil(centre - reach - f32(0.5)), 0, size - 1).astype(np.int64)
    last = np.clip(np.floor(centre + reach - f32(0.5)), 0, size - 1).astype(np.int64)
    count = max(1, int((last - first).max(initial=0)) + 1)
    pixel = first[:, None] + np.arange(count)
    # Pixels outside of the image or of the filter have no weight.
    counted = (pixel <= last[:, None]) & (centre >= 0)[:, None] & (centre <= size)[:, None]
    weights = value(((pixel.astype(f32) + f32(0.5)) - centre[:, None]) / widened).astype(f32)
    weights = np.where(counted, weights, f32(0))
    total = np.cumsum(weights, -1, dtype=f32)[:, -1:]
    normal = np.abs(total) >= 1000 * np.finfo(f32).tiny
    weights = np.where(normal, weights * (f32(1) / np.where(normal, total, f32(1))), weights)
    return Taps(np.clip(pixel, 0, size - 1).astype(np.int32), weights.astype(f32))


# ---- images -----------------------------------------------------------------------------------------------------


def _is_native(images: torch.Tensor) -> bool:
    return (
        native is not None
        and images.device.type == "cpu"
        and images.dtype in (torch.float32, torch.uint8)
        and images.numel() > 0
    )


def _native(
    function: Callable[..., None], images: torch.Tensor, tables: tuple[Any, ...], *options: bool
) -> torch.Tensor:
    images = images.contiguous()
    down, across = tables
    size = len(down[0]), len(across[0])
    result = torch.empty((images.shape[0], *size, images.shape[3]))
    kind = images.dtype is torch.uint8, torch.get_num_threads()
    function(result.numpy(), images.numpy(), *down, *across, tuple(images.shape), size, *kind, *options)
    return result


def _on(array: np.ndarray, device: torch.device, rank: int = 1, axis: int = 0) -> torch.Tensor:
    shape = [1] * rank
    shape[axis] = -1
    tensor = from_numpy(array.astype(np.int64) if array.dtype.kind == "i" else array)
    return moved_to(tensor, device).reshape(shape)


def take_nearest(images: torch.Tensor, rows: np.ndarray, columns: np.ndarray) -> torch.Tensor:
    signed = images.view(torch.int16) if images.dtype is torch.uint16 else images
    taken = signed.index_select(1, _on(rows, images.device)).index_select(2, _on(columns, images.device))
    return taken.view(images.dtype)


def interpolate(images: torch.Tensor, down: Pair, across: Pair) -> torch.Tensor:
    """Bilinear interpolation: horizontally, then vertically."""
    if _is_native(images):
        return _native(native.bilinear, images, (down, across))
    device, images = images.device, images.to(torch.float32)
    for axis, (low, high, fraction) in ((2, across), (1, down)):
        first = images.index_select(axis, _on(low, device))
        last = images.index_select(axis, _on(high, device))
        images = first + (last - first) * _on(fraction, device, 4, axis)
    return images


def weigh(images: torch.Tensor, down: Taps, across: Taps, *, across_first: bool = False) -> torch.Tensor:
    """Returns weighted sums of pixels: vertically, then horizontally, or the other way round."""
    if _is_native(images):
        return _native(native.resample, images, (down, across), across_first)
    device, images = images.device, images.to(torch.float32)
    steps = ((1, down), (2, across))
    for axis, (places, weights) in reversed(steps) if across_first else steps:
        total = None
        for tap in range(places.shape[1]):
            part = images.index_select(axis, _on(places[:, tap], device))
            part = part * _on(np.ascontiguousarray(weights[:, tap]), device, 4, axis)
            total = part if total is None else total + part
        images = total  # type: ignore[assignment]
    return images


def as_taps(pair: Pair) -> Taps:
    return Taps(np.stack([pair.low, pair.high], -1), np.stack([1 - pair.fraction, pair.fraction], -1).astype(f32))


def spread(grads: torch.Tensor, size: tuple[int, int], down: Taps, across: Taps) -> torch.Tensor:
    """The transpose of `weigh`: adds the value of every new pixel to its source pixels."""
    for axis, old, (places, weights) in ((1, size[0], down), (2, size[1], across)):
        shape = list(grads.shape)
        shape[axis] = old
        total = grads.new_zeros(shape)
        for tap in range(places.shape[1]):
            weight = _on(np.ascontiguousarray(weights[:, tap]), grads.device, 4, axis).to(grads.dtype)
            total.index_add_(axis, _on(places[:, tap], grads.device), grads * weight)
        grads = total
    return grads


def spread_nearest(grads: torch.Tensor, size: Any, rows: np.ndarray, columns: np.ndarray) -> torch.Tensor:
    for axis, old, places in ((1, size[0], rows), (2, size[1], columns)):
        shape = list(grads.shape)
        shape[axis] = old
        grads = grads.new_zeros(shape).index_add_(axis, _on(places, grads.device), grads)
    return grads
