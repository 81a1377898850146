"""Cropping and padding of images."""

from __future__ import annotations

from typing import Any

import numpy as np

from stoker._src.base import dtypes
from stoker._src.base.export import export
from stoker._src.base.shapes import Shape
from stoker._src.graph.conversion import convert_to_tensor
from stoker._src.graph.scopes import name_scope
from stoker._src.graph.static_values import constant_value
from stoker._src.graph.tensor import Tensor
from stoker._src.image import checks
from stoker._src.image.orientation import with_shape
from stoker._src.ops.array import casting, joining, pads, shaping, slicing
from stoker._src.ops.math import arithmetic, comparison
from stoker._src.ops.random import stateless_random


class Batch:
    """Converts an image to a batch of one and returns a function that undoes this. An image of unknown rank counts as one image."""

    def __init__(self, image: Any) -> None:
        image = convert_to_tensor(image, name="image")
        self._is_single = checks.rank_3_or_4(image) != 4
        if self._is_single:
            unknown = image.static_shape.rank is None
            image = shaping.expand_dims(image, 0)
            if unknown:
                with_shape(image, Shape((None,) * 4))
        self.images = checks.at_least_3d(image)

    def back(self, images: Tensor) -> Tensor:
        """Returns a result for the batch in the rank of the caller's image."""
        return shaping.squeeze(images, axis=[0]) if self._is_single else images


def _known(size: Any) -> int | None:
    """Returns a size as an integer if it is known."""
    if checks.is_tensor(size):
        value = constant_value(size)
        return None if value is None else int(value)
    return int(size)


def _plain(size: Any) -> Any:
    """Returns a size as an integer if it is known, otherwise unchanged."""
    known = _known(size)
    return size if known is None else known


@export("image.crop_to_bounding_box")
def crop_to_bounding_box(
    image: Any, offset_height: Any, offset_width: Any, target_height: Any, target_width: Any
) -> Tensor:
    """Crops a window from an image, or from each image of a batch.

    Args:
        image: [height, width, channels] or a batch of them.
        offset_height: The first row of the window.
        offset_width: The first column of the window.
        target_height: The number of rows.
        target_width: The number of columns.

    Raises:
        ValueError: An offset is negative, a size is not positive, the window extends beyond the image, or the rank is wrong.
    """
    with name_scope(None, "crop_to_bounding_box", [image]):
        batch = Batch(image)
        image = batch.images
        _, height, width, channels = checks.sizes(image, 4)
        top, left, rows, columns = map(_plain, (offset_height, offset_width, target_height, target_width))
        requirements = [
            *checks.requirement(left >= 0, "offset_width must be >= 0."),
            *checks.requirement(top >= 0, "offset_height must be >= 0."),
            *checks.requirement(columns > 0, "target_width must be > 0."),
            *checks.requirement(rows > 0, "target_height must be > 0."),
            *checks.requirement(width >= columns + left, "width must be >= target + offset."),
            *checks.requirement(height >= rows + top, "height must be >= target + offset."),
        ]
        image = checks.after(requirements, image)
        count = image.static_shape[0]
        cropped = slicing.slice(image, joining.stack([0, top, left, 0]), joining.stack([-1, rows, columns, -1]))
        with_shape(cropped, Shape((count, _known(rows), _known(columns), _known(channels))))
        return batch.back(cropped)


@export("image.pad_to_bounding_box")
def pad_to_bounding_box(
    image: Any, offset_height: Any, offset_width: Any, target_height: Any, target_width: Any
) -> Tensor:
    """Pads an image, or each image of a batch, with zeros to the target size.

    Args:
        image: [height, width, channels] or a batch of them.
        offset_height: The number of rows of zeros above the image.
        offset_width: The number of columns of zeros on the left.
        target_height: The number of rows of the result.
        target_width: The number of columns of the result.

    Raises:
        ValueError: An offset is negative, the image does not fit, or the rank is wrong.
    """
    with name_scope(None, "pad_to_bounding_box", [image]):
        batch = Batch(image)
        image = batch.images
        _, height, width, _ = checks.sizes(image, 4)
        top, left, rows, columns = map(_plain, (offset_height, offset_width, target_height, target_width))
        right, below = columns - left - width, rows - top - height
        requirements = [
            *checks.requirement(top >= 0, "offset_height must be >= 0"),
            *checks.requirement(left >= 0, "offset_width must be >= 0"),
            *checks.requirement(right >= 0, "width must be <= target - offset"),
            *checks.requirement(below >= 0, "height must be <= target - offset"),
        ]
        image = checks.after(requirements, image)
        shape = image.static_shape
        flat = joining.stack([0, 0, top, below, left, right, 0, 0])
        padded = pads.pad(image, shaping.reshape(flat, [4, 2]))
        with_shape(padded, Shape((shape[0], _known(rows), _known(columns), shape[3])))
        return batch.back(padded)


@export("image.resize_with_crop_or_pad", v1="image.resize_image_with_crop_or_pad")
def resize_with_crop_or_pad(image: Any, target_height: Any, target_width: Any) -> Tensor:
    """Crops an image, or each image of a batch, centrally or pads it with zeros on all sides to reach the target size.

    Args:
        image: [height, width, channels] or a batch of them.
        target_height: The number of rows of the result.
        target_width: The number of columns of the result.

    Raises:
        ValueError: A size is not positive, or the rank is wrong.
    """
    with name_scope(None, "resize_image_with_crop_or_pad", [image]):
        batch = Batch(image)
        image = batch.images
        rows, columns = _plain(target_height), _plain(target_width)
        requirements = [
            *checks.requirement(columns > 0, "target_width must be > 0."),
            *checks.requirement(rows > 0, "target_height must be > 0."),
        ]
        if requirements:
            image = checks.after(requirements, image)
        _, height, width, _ = checks.sizes(image, 4)
        wider, taller = columns - width, rows - height
        cropped = crop_to_bounding_box(
            image,
            _largest(_half(-taller), 0),
            _largest(_half(-wider), 0),
            _smallest(rows, height),
            _smallest(columns, width),
        )
        resized = pad_to_bounding_box(cropped, _largest(_half(taller), 0), _largest(_half(wider), 0), rows, columns)
        return batch.back(checks.after([], resized))


def _half(size: Any) -> Any:
    return arithmetic.floordiv(size, 2) if checks.is_tensor(size) else size // 2


def _largest(a: Any, b: Any) -> Any:
    return arithmetic.maximum(a, b) if checks.is_tensor(a) or checks.is_tensor(b) else max(a, b)


def _smallest(a: Any, b: Any) -> Any:
    return arithmetic.minimum(a, b) if checks.is_tensor(a) or checks.is_tensor(b) else min(a, b)


@export("image.central_crop")
def central_crop(image: Any, central_fraction: Any) -> Tensor:
    """Returns the central part of an image, or of each image of a batch.

    Args:
        image: [height, width, channels] or a batch of them.
        central_fraction: The part of the height and of the width to keep, in (0, 1].

    Raises:
        ValueError: The fraction is out of range, or the rank is wrong.
    """
    with name_scope(None, "central_crop", [image]):
        image = convert_to_tensor(image, name="image")
        fraction = constant_value(central_fraction) if checks.is_tensor(central_fraction) else central_fraction
        if fraction is not None:
            if fraction <= 0.0 or fraction > 1.0:
                raise ValueError("central_fraction must be within (0, 1]")
            if fraction == 1.0:
                return image
        rank = image.static_shape.rank
        checked = checks.at_least_3d(image)
        if rank not in (3, 4):
            raise ValueError(f"`image` should either be a Tensor with rank = 3 or rank = 4. Had rank = {rank}.")
        image = checked
        height, width = checks.sizes(image, rank)[-3:-1]
        (top, rows), (left, columns) = (_middle(size, central_fraction, fraction) for size in (height, width))
        ends = [0] if rank == 4 else []
        begin = joining.stack([*ends, top, left, 0])
        size = joining.stack([*([-1] if rank == 4 else []), rows, columns, -1])
        cropped = slicing.slice(image, begin, size)
        shape = image.static_shape
        return with_shape(cropped, Shape((*shape[: rank - 3], _known(rows), _known(columns), shape[-1])))


def _middle(size: Any, fraction: Any, known: Any) -> tuple[Any, Any]:
    """Returns (margin, remaining size) of a height or width, computed in double precision."""
    if known is not None and not checks.is_tensor(size):
        # A fraction that is a Python number is not rounded to single precision.
        margin = int((size - size * float(known)) / 2)
        return margin, size - margin * 2
    wide = casting.cast(size, dtypes.float64)
    if not checks.is_tensor(fraction):
        fraction = np.float64(fraction)
    part = arithmetic.multiply(wide, casting.cast(fraction, dtypes.float64))
    margin = casting.cast(arithmetic.truediv(arithmetic.subtract(wide, part), 2.0), dtypes.int32)
    return margin, arithmetic.subtract(size, arithmetic.multiply(margin, 2))


@export(v2="image.stateless_random_crop")
def stateless_random_crop(value: Any, size: Any, seed: Any, name: str | None = None) -> Tensor:
    """Returns a slice of shape `size` of `value` at a place that is determined by the two numbers of `seed`.

    Raises:
        InvalidArgumentError: `value` is smaller than `size`.
    """
    with name_scope(name, "random_crop", [value, size]) as scope:
        value = convert_to_tensor(value, name="value")
        size = convert_to_tensor(size, dtypes.int32, name="size")
        shape = shaping.shape(value)
        fits = comparison.greater_equal(shape, size)
        shape = checks.after([checks.asserted(fits, ["Need value.shape >= size, got ", shape, size])], shape)
        limit = arithmetic.add(arithmetic.subtract(shape, size), 1)
        drawn = stateless_random.stateless_uniform(
            shaping.shape(shape), seed, dtype=dtypes.int32, maxval=int(dtypes.int32.max), minval=0
        )
        return slicing.slice(value, arithmetic.floormod(drawn, limit), size, name=scope)
