"""`tf.image.resize` of 1.x and 2.x."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from stoker._src.base import dtypes
from stoker._src.base.export import export
from stoker._src.base.shapes import Shape
from stoker._src.graph import context
from stoker._src.graph.conversion import convert_to_tensor
from stoker._src.graph.scopes import name_scope
from stoker._src.graph.static_values import constant_value
from stoker._src.graph.tensor import Tensor
from stoker._src.image import checks
from stoker._src.image.framing import Batch, pad_to_bounding_box
from stoker._src.image.orientation import with_shape
from stoker._src.ops.array import casting, joining, shaping
from stoker._src.ops.image import resizing
from stoker._src.ops.math import arithmetic, unary_functions


@export(v1="image.ResizeMethod")
class ResizeMethodV1:
    """Resizing methods of 1.x, see `tf.image.resize`."""

    BILINEAR = 0
    NEAREST_NEIGHBOR = 1
    BICUBIC = 2
    AREA = 3


@export(v2="image.ResizeMethod")
class ResizeMethod:
    """Resizing methods, see `tf.image.resize`."""

    BILINEAR = "bilinear"
    NEAREST_NEIGHBOR = "nearest"
    BICUBIC = "bicubic"
    AREA = "area"
    LANCZOS3 = "lanczos3"
    LANCZOS5 = "lanczos5"
    GAUSSIAN = "gaussian"
    MITCHELLCUBIC = "mitchellcubic"


def _checked_size(size: Any) -> Tensor:
    try:
        size = convert_to_tensor(size, dtypes.int32, name="size")
    except (TypeError, ValueError):
        raise ValueError("'size' must be a 1-D int32 Tensor") from None
    if not size.static_shape.compatible(Shape((2,))):
        raise ValueError("'size' must be a 1-D Tensor of 2 elements: new_height, new_width")
    return size


def _fitted(images: Tensor, size: Tensor) -> Tensor:
    """Returns the largest size within `size` that keeps the aspect ratio."""
    _, height, width, _ = checks.sizes(images, 4)
    known = constant_value(size)
    wanted = [int(each) for each in known] if known is not None else [size[0], size[1]]
    single = dtypes.float32
    factors = [
        arithmetic.truediv(casting.cast(new, single), casting.cast(old, single))
        for new, old in zip(wanted, (height, width))
    ]
    factor = arithmetic.minimum(*factors)
    fitted = [
        casting.cast(unary_functions.round(arithmetic.multiply(factor, casting.cast(old, single))), dtypes.int32)
        for old in (height, width)
    ]
    return joining.stack(fitted, name="size")


def _resized(
    images: Any,
    size: Any,
    resizer: Any,
    name: str | None,
    *,
    preserve_aspect_ratio: bool,
    skip_if_same: bool,
    is_computed: bool = False,
) -> Tensor:
    """The part of resizing that 1.x and 2.x have in common.

    In TensorFlow's graphs a computed size is not known statically, so an image that already has it is resized anyway and becomes float32.
    """
    with name_scope(name, "resize", [images, size]):
        images = convert_to_tensor(images, name="images")
        rank = images.static_shape.rank
        if rank is None:
            raise ValueError("'images' contains no shape.")
        if rank not in (3, 4):
            raise ValueError("'images' must have either 3 or 4 dimensions.")
        if rank == 3:
            images = shaping.expand_dims(images, 0)
        _, height, width, _ = images.static_shape
        size = _checked_size(size)
        if preserve_aspect_ratio:
            size = _fitted(images, size)
        known = constant_value(size)
        rows, columns = (None, None) if known is None else (int(each) for each in known)
        same = None not in (rows, columns) and (rows, columns) == (height, width)
        seen = context.executing_eagerly() or not (preserve_aspect_ratio or is_computed)
        if not (skip_if_same and same and seen):
            images = resizer(images, size)
            if rows is None or columns is None or min(rows, columns) >= 0:
                shape = images.static_shape
                with_shape(images, Shape((shape[0], rows, columns, shape[3])))
        return shaping.squeeze(images, axis=[0]) if rank == 3 else images


_V1_OPS = {
    ResizeMethodV1.BILINEAR: resizing.RESIZE_BILINEAR,
    ResizeMethod.BILINEAR: resizing.RESIZE_BILINEAR,
    ResizeMethodV1.NEAREST_NEIGHBOR: resizing.RESIZE_NEAREST_NEIGHBOR,
    ResizeMethod.NEAREST_NEIGHBOR: resizing.RESIZE_NEAREST_NEIGHBOR,
    ResizeMethodV1.BICUBIC: resizing.RESIZE_BICUBIC,
    ResizeMethod.BICUBIC: resizing.RESIZE_BICUBIC,
    ResizeMethodV1.AREA: resizing.RESIZE_AREA,
    ResizeMethod.AREA: resizing.RESIZE_AREA,
}


def _v1_resizer(method: Any, align_corners: bool) -> Callable[[Tensor, Tensor], Tensor]:
    def resizer(images: Tensor, size: Tensor) -> Tensor:
        op = _V1_OPS.get(method) if isinstance(method, (int, str)) else None
        if op is None:
            raise ValueError(f"Resize method is not implemented: {method}")
        return op(images, size, align_corners=align_corners)

    return resizer


@export(v1="image.resize_images")
def resize_images(
    images: Any,
    size: Any,
    method: Any = ResizeMethodV1.BILINEAR,
    align_corners: bool = False,
    preserve_aspect_ratio: bool = False,
    name: str | None = None,
) -> Tensor:
    """Resizes [height, width, channels], or a batch of images: the 1.x form, which aligns pixels by their corners.

    Args:
        images: The image or images.
        size: The new height and width.
        method: A `ResizeMethod`: BILINEAR, NEAREST_NEIGHBOR (keeps the dtype, the others return float32), BICUBIC or AREA.
        align_corners: Whether to align the centres of the corner pixels.
        preserve_aspect_ratio: Whether to use the largest size within `size` that keeps the aspect ratio.
        name: A prefix of the ops' names.

    Returns:
        The images. Images that already have the size are returned unchanged, with their dtype.

    Raises:
        ValueError: The rank is wrong, the size is not two integers, or the method is unknown.
    """

    resizer = _v1_resizer(method, align_corners)
    return _resized(images, size, resizer, name, preserve_aspect_ratio=preserve_aspect_ratio, skip_if_same=True)


@export(v1="image.resize")
def resize(
    images: Any,
    size: Any,
    method: Any = ResizeMethodV1.BILINEAR,
    align_corners: bool = False,
    preserve_aspect_ratio: bool = False,
    name: str | None = None,
) -> Tensor:
    """Resizes images, like `resize_images`."""
    return resize_images(images, size, method, align_corners, preserve_aspect_ratio, name)


_PLAIN = {
    ResizeMethod.BILINEAR: (resizing.RESIZE_BILINEAR, "triangle"),
    ResizeMethod.BICUBIC: (resizing.RESIZE_BICUBIC, "keyscubic"),
}
_FILTERED = (ResizeMethod.LANCZOS3, ResizeMethod.LANCZOS5, ResizeMethod.GAUSSIAN, ResizeMethod.MITCHELLCUBIC)


def _filtered(images: Tensor, size: Tensor, kernel: str, antialias: bool) -> Tensor:
    old = casting.cast(shaping.shape(images)[1:3], dtypes.float32)
    scale = arithmetic.truediv(casting.cast(size, dtypes.float32), old)
    zeros = shaping.zeros([2])
    return resizing.SCALE_AND_TRANSLATE(images, size, scale, zeros, kernel_type=kernel, antialias=antialias)


@export(v2="image.resize")
def resize_v2(
    images: Any,
    size: Any,
    method: Any = ResizeMethod.BILINEAR,
    preserve_aspect_ratio: bool = False,
    antialias: bool = False,
    name: str | None = None,
) -> Tensor:
    """Resizes [height, width, channels], or a batch of images. Pixels are aligned by their centres.

    Args:
        images: The image or images.
        size: The new height and width.
        method: A `ResizeMethod`. BILINEAR; NEAREST_NEIGHBOR (keeps the dtype, the others return float32); BICUBIC (Keys); AREA (the mean of the
            covered pixels); LANCZOS3, LANCZOS5 (radius 3 and 5); GAUSSIAN (radius 3, sigma 0.5); MITCHELLCUBIC.
        preserve_aspect_ratio: Whether to use the largest size within `size` that keeps the aspect ratio.
        antialias: Whether to widen the filter when the image shrinks, so that every pixel counts. AREA always does, NEAREST_NEIGHBOR never.
        name: A prefix of the ops' names.

    Raises:
        ValueError: The rank is wrong, the size is not two integers, or the method is unknown.
    """

    def resizer(images: Tensor, size: Tensor) -> Tensor:
        if method in _PLAIN:
            op, kernel = _PLAIN[method]
            if antialias:
                return _filtered(images, size, kernel, True)
            return op(images, size, half_pixel_centers=True)
        if method in _FILTERED:
            return _filtered(images, size, method, antialias)
        if method == ResizeMethod.NEAREST_NEIGHBOR:
            return resizing.RESIZE_NEAREST_NEIGHBOR(images, size, half_pixel_centers=True)
        if method == ResizeMethod.AREA:
            return resizing.RESIZE_AREA(images, size)
        raise ValueError(f"Resize method is not implemented: {method}")

    return _resized(images, size, resizer, name, preserve_aspect_ratio=preserve_aspect_ratio, skip_if_same=False)


def _resized_and_padded(image: Any, target_height: Any, target_width: Any, resizer: Any) -> Tensor:
    with name_scope(None, "resize_image_with_pad", [image]):
        batch = Batch(image)
        image = batch.images
        requirements = [
            *checks.requirement(target_width > 0, "target_width must be > 0."),
            *checks.requirement(target_height > 0, "target_height must be > 0."),
        ]
        if requirements:
            image = checks.after(requirements, image)
        _, height, width, _ = checks.sizes(image, 4)
        single = dtypes.float32
        old_height, old_width, new_height, new_width = (
            casting.cast(each, single) for each in (height, width, target_height, target_width)
        )
        ratio = arithmetic.maximum(arithmetic.truediv(old_width, new_width), arithmetic.truediv(old_height, new_height))
        fitted = [arithmetic.truediv(old, ratio) for old in (old_height, old_width)]
        size = [casting.cast(unary_functions.floor(each), dtypes.int32) for each in fitted]
        margins = [
            arithmetic.maximum(0, casting.cast(unary_functions.floor(arithmetic.truediv(arithmetic.subtract(new, each), 2.0)), dtypes.int32))
            for new, each in zip((new_height, new_width), fitted)
        ]  # fmt: skip
        resized = resizer(image, size)
        return batch.back(pad_to_bounding_box(resized, margins[0], margins[1], target_height, target_width))


@export(v1="image.resize_image_with_pad")
def resize_image_with_pad(
    image: Any,
    target_height: Any,
    target_width: Any,
    method: Any = ResizeMethodV1.BILINEAR,
    align_corners: bool = False,
) -> Tensor:
    """Resizes an image, or each image of a batch, without distortion to fit into the target, and pads it with zeros: the 1.x form.

    Args:
        image: [height, width, channels] or a batch of them.
        target_height: The number of rows of the result.
        target_width: The number of columns of the result.
        method: See `resize_images`.
        align_corners: See `resize_images`.

    Raises:
        ValueError: A size is not positive, or the rank is wrong.
    """
    resizer = _v1_resizer(method, align_corners)

    def resized(image: Tensor, size: Any) -> Tensor:
        return _resized(image, size, resizer, None, preserve_aspect_ratio=False, skip_if_same=True, is_computed=True)

    return _resized_and_padded(image, target_height, target_width, resized)


@export(v2="image.resize_with_pad")
def resize_with_pad(
    image: Any,
    target_height: Any,
    target_width: Any,
    method: Any = ResizeMethod.BILINEAR,
    antialias: bool = False,
) -> Tensor:
    """Resizes an image, or each image of a batch, without distortion to fit into the target, and pads it with zeros.

    Args:
        image: [height, width, channels] or a batch of them.
        target_height: The number of rows of the result.
        target_width: The number of columns of the result.
        method: See `resize`.
        antialias: See `resize`.

    Raises:
        ValueError: A size is not positive, or the rank is wrong.
    """
    return _resized_and_padded(
        image, target_height, target_width, lambda image, size: resize_v2(image, size, method, antialias=antialias)
    )
