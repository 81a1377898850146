"""Ops that resize batches of images (nearest, bilinear, bicubic and area) and their 1.x functions."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from stoker._src.base import dtypes
from stoker._src.base.errors import InvalidArgumentError
from stoker._src.base.export import export
from stoker._src.base.shapes import Shape
from stoker._src.graph.definition import OpDefinition, define
from stoker._src.graph.tensor import Operation, Tensor
from stoker._src.ops.array import shaping
from stoker._src.ops.image import resampling
from stoker._src.ops.support import rows

_FLOATS = (dtypes.float16, dtypes.float32, dtypes.float64, dtypes.bfloat16)
PIXELS = (dtypes.int8, dtypes.uint8, dtypes.int16, dtypes.uint16, dtypes.int32, dtypes.int64, *_FLOATS)
_CENTRES = {"align_corners": False, "half_pixel_centers": False}


def check_sizes(images: torch.Tensor, size: Any) -> tuple[int, int]:
    """Returns the new size of a batch of images.

    Raises:
        InvalidArgumentError: The images or the new size are empty or have the wrong rank.
    """
    if images.ndim != 4:
        raise InvalidArgumentError(None, None, f"input must be 4-dimensional{Shape(images.shape)}")
    if not isinstance(size, list):
        raise InvalidArgumentError(None, None, "shape_t must be 1-dimensional[]")
    if len(size) != 2:
        raise InvalidArgumentError(None, None, f"shape_t must have two elements[{len(size)}]")
    if min(size) <= 0:
        raise InvalidArgumentError(None, None, f"output dimensions must be positive, got {size}")
    if images.shape[3] == 0:
        raise InvalidArgumentError(None, None, f"image must have at least one channel, got {Shape(images.shape)}")
    if 0 in images.shape[1:3]:
        raise InvalidArgumentError(None, None, f"input image must be of non-zero size, got {Shape(images.shape)}")
    return size[0], size[1]


def _check_centres(align_corners: bool, half_pixel_centers: bool) -> None:
    if align_corners and half_pixel_centers:
        raise InvalidArgumentError(None, None, "If half_pixel_centers is True, align_corners must be False.")


def resized_shape(images: Shape, size: Any) -> Shape:
    """The shape rule of all resizing ops: [batch, *size, channels]."""
    batch, _, _, channels = images.of_rank(4)
    if size is None:
        return Shape((batch, None, None, channels))
    if size.shape != (2,):
        raise InvalidArgumentError(None, None, f"Dimension must be 2 but is {list(size.shape)}: the size of an image")
    rows, columns = (int(each) if each >= 0 else None for each in size)
    return Shape((batch, rows, columns, channels))


def _original_shape(_: Shape, original_image: Shape, *__: Shape) -> Shape:
    return original_image.of_rank(4)


def _gradient_to_image(gradient: OpDefinition, op: Operation, g: Tensor, *attrs: str) -> tuple[Any, None]:
    image = op.inputs[0]
    if image.dtype.base_dtype not in gradient.attrs["T"].allowed:
        return None, None
    return gradient(g, image, **{name: op.attr(name) for name in attrs}), None


# ---- ResizeNearestNeighbor --------------------------------------------------------------------------------------

RESIZE_NEAREST_NEIGHBOR = define(
    "ResizeNearestNeighbor(images: rank=4/any T, size: vector* host int32) -> (resized_images: T)",
    T=PIXELS,
    **_CENTRES,
)
RESIZE_NEAREST_NEIGHBOR_GRAD = define(
    "ResizeNearestNeighborGrad(grads: rank=4 T, size: vector* host int32) -> (output: T)",
    T=(dtypes.uint8, dtypes.int8, dtypes.int32, *_FLOATS),
    **_CENTRES,
)


@RESIZE_NEAREST_NEIGHBOR.kernel
def resize_nearest_neighbor_kernel(
    images: torch.Tensor, size: Any, *, align_corners: bool, half_pixel_centers: bool
) -> torch.Tensor:
    rows, columns = check_sizes(images, size)
    _check_centres(align_corners, half_pixel_centers)
    down = resampling.nearest(images.shape[1], rows, align_corners, half_pixel_centers)
    across = resampling.nearest(images.shape[2], columns, align_corners, half_pixel_centers)
    return resampling.take_nearest(images, down, across)


@RESIZE_NEAREST_NEIGHBOR_GRAD.kernel
def resize_nearest_neighbor_grad_kernel(
    grads: torch.Tensor, size: Any, *, align_corners: bool, half_pixel_centers: bool
) -> torch.Tensor:
    check_sizes(grads, size)
    _check_centres(align_corners, half_pixel_centers)
    down = resampling.nearest(size[0], grads.shape[1], align_corners, half_pixel_centers)
    across = resampling.nearest(size[1], grads.shape[2], align_corners, half_pixel_centers)
    return resampling.spread_nearest(grads, size, down, across)


RESIZE_NEAREST_NEIGHBOR.shape(resized_shape, values=["size"])
RESIZE_NEAREST_NEIGHBOR.rows(rows.folded)
RESIZE_NEAREST_NEIGHBOR_GRAD.shape(resized_shape, values=["size"])


@RESIZE_NEAREST_NEIGHBOR.grad
def resize_nearest_neighbor_grad(op: Operation, g: Tensor) -> tuple[Tensor, None]:
    image = op.inputs[0]
    known = image.static_shape
    size: Any = list(known[1:3]) if known.rank == 4 and None not in known[1:3] else shaping.shape(image)[1:3]
    attrs = {name: op.attr(name) for name in _CENTRES}
    return RESIZE_NEAREST_NEIGHBOR_GRAD(g, size, **attrs), None


@export(v1="image.resize_nearest_neighbor")
def resize_nearest_neighbor(
    images: Any,
    size: Any,
    align_corners: bool = False,
    name: str | None = None,
    half_pixel_centers: bool = False,
) -> Tensor:
    """Resizes [batch, height, width, channels] to `size` [height, width] by copying the nearest pixel. Keeps the dtype.

    Args:
        images: The images.
        size: The new height and width.
        align_corners: Whether to align the centres of the corner pixels.
        name: The op's name.
        half_pixel_centers: Whether to align pixels by their centres instead of their corners.
    """
    return RESIZE_NEAREST_NEIGHBOR(
        images, size, align_corners=align_corners, half_pixel_centers=half_pixel_centers, name=name
    )


# ---- ResizeBilinear ---------------------------------------------------------------------------------------------

RESIZE_BILINEAR = define(
    "ResizeBilinear(images: rank=4/any T, size: vector* host int32) -> (resized_images: float32)", T=PIXELS, **_CENTRES
)
RESIZE_BILINEAR_GRAD = define(
    "ResizeBilinearGrad(grads: rank=4 float32, original_image: rank=4 T) -> (output: T)", T=_FLOATS, **_CENTRES
).not_differentiable()


@RESIZE_BILINEAR.kernel
def resize_bilinear_kernel(
    images: torch.Tensor, size: Any, *, align_corners: bool, half_pixel_centers: bool
) -> torch.Tensor:
    rows, columns = check_sizes(images, size)
    _check_centres(align_corners, half_pixel_centers)
    if (rows, columns) == tuple(images.shape[1:3]):
        return images.to(torch.float32, copy=True)
    down = resampling.bilinear(images.shape[1], rows, align_corners, half_pixel_centers)
    across = resampling.bilinear(images.shape[2], columns, align_corners, half_pixel_centers)
    return resampling.interpolate(images, down, across)


@RESIZE_BILINEAR_GRAD.kernel
def resize_bilinear_grad_kernel(
    grads: torch.Tensor, original_image: torch.Tensor, *, align_corners: bool, half_pixel_centers: bool
) -> torch.Tensor:
    _check_centres(align_corners, half_pixel_centers)
    size = original_image.shape[1], original_image.shape[2]
    down = resampling.bilinear(size[0], grads.shape[1], align_corners, half_pixel_centers)
    across = resampling.bilinear(size[1], grads.shape[2], align_corners, half_pixel_centers)
    taps = resampling.as_taps(down), resampling.as_taps(across)
    return resampling.spread(grads, size, *taps).to(original_image.dtype)


RESIZE_BILINEAR.shape(resized_shape, values=["size"])
RESIZE_BILINEAR.rows(rows.folded)
RESIZE_BILINEAR_GRAD.shape(_original_shape)


@RESIZE_BILINEAR.grad
def resize_bilinear_grad(op: Operation, g: Tensor) -> tuple[Any, None]:
    return _gradient_to_image(RESIZE_BILINEAR_GRAD, op, g, *_CENTRES)


@export(v1="image.resize_bilinear")
def resize_bilinear(
    images: Any,
    size: Any,
    align_corners: bool = False,
    name: str | None = None,
    half_pixel_centers: bool = False,
) -> Tensor:
    """Resizes images to `size` by bilinear interpolation, as float32. For the arguments see `resize_nearest_neighbor`."""
    return RESIZE_BILINEAR(images, size, align_corners=align_corners, half_pixel_centers=half_pixel_centers, name=name)


# ---- ResizeBicubic ----------------------------------------------------------------------------------------------

RESIZE_BICUBIC = define(
    "ResizeBicubic(images: rank=4/any T, size: vector* host int32) -> (resized_images: float32)", T=PIXELS, **_CENTRES
)
RESIZE_BICUBIC_GRAD = define(
    "ResizeBicubicGrad(grads: rank=4 float32, original_image: rank=4 T) -> (output: T)",
    T=(dtypes.float32, dtypes.float64),
    **_CENTRES,
)


@RESIZE_BICUBIC.kernel
def resize_bicubic_kernel(
    images: torch.Tensor, size: Any, *, align_corners: bool, half_pixel_centers: bool
) -> torch.Tensor:
    rows, columns = check_sizes(images, size)
    _check_centres(align_corners, half_pixel_centers)
    down = resampling.bicubic(images.shape[1], rows, align_corners, half_pixel_centers)
    across = resampling.bicubic(images.shape[2], columns, align_corners, half_pixel_centers)
    return resampling.weigh(images, down, across)


@RESIZE_BICUBIC_GRAD.kernel
def resize_bicubic_grad_kernel(
    grads: torch.Tensor, original_image: torch.Tensor, *, align_corners: bool, half_pixel_centers: bool
) -> torch.Tensor:
    _check_centres(align_corners, half_pixel_centers)
    size = original_image.shape[1], original_image.shape[2]
    down = resampling.bicubic(size[0], grads.shape[1], align_corners, half_pixel_centers)
    across = resampling.bicubic(size[1], grads.shape[2], align_corners, half_pixel_centers)
    return resampling.spread(grads, size, down, across).to(original_image.dtype)


RESIZE_BICUBIC.shape(resized_shape, values=["size"])
RESIZE_BICUBIC.rows(rows.folded)
RESIZE_BICUBIC_GRAD.shape(_original_shape)


@RESIZE_BICUBIC.grad
def resize_bicubic_grad(op: Operation, g: Tensor) -> tuple[Any, None]:
    return _gradient_to_image(RESIZE_BICUBIC_GRAD, op, g, *_CENTRES)


@export(v1="image.resize_bicubic")
def resize_bicubic(
    images: Any,
    size: Any,
    align_corners: bool = False,
    name: str | None = None,
    half_pixel_centers: bool = False,
) -> Tensor:
    """Resizes images to `size` by cubic convolution, as float32. For the arguments see `resize_nearest_neighbor`.

    The parameter of the kernel is -0.75, or -0.5 (Keys) with `half_pixel_centers`.
    """
    return RESIZE_BICUBIC(images, size, align_corners=align_corners, half_pixel_centers=half_pixel_centers, name=name)


# ---- ResizeArea -------------------------------------------------------------------------------------------------

RESIZE_AREA = define(
    "ResizeArea(images: rank=4/any T, size: vector* host int32) -> (resized_images: float32)",
    T=PIXELS,
    align_corners=False,
)


@RESIZE_AREA.kernel
def resize_area_kernel(images: torch.Tensor, size: Any, *, align_corners: bool) -> torch.Tensor:
    rows, columns = check_sizes(images, size)
    height, width = images.shape[1:3]
    down = resampling.area(height, rows, align_corners)
    across = resampling.area(width, columns, align_corners)
    covered = resampling.scale_of(height, rows, align_corners) * resampling.scale_of(width, columns, align_corners)
    return resampling.weigh(images, down, across, across_first=True).mul_(float(np.float32(1) / covered))


RESIZE_AREA.shape(resized_shape, values=["size"])
RESIZE_AREA.rows(rows.folded)


@export(v1="image.resize_area")
def resize_area(images: Any, size: Any, align_corners: bool = False, name: str | None = None) -> Tensor:
    """Resizes images to `size`. Each pixel is the mean of the area that it covers, as float32.

    Args:
        images: [batch, height, width, channels].
        size: The new height and width.
        align_corners: Whether to align the centres of the corner pixels.
        name: The op's name.
    """
    return RESIZE_AREA(images, size, align_corners=align_corners, name=name)


# ---- ScaleAndTranslate ------------------------------------------------------------------------------------------

_FILTERED: dict[str, Any] = {"kernel_type": "lanczos3", "antialias": True}
SCALE_AND_TRANSLATE = define(
    "ScaleAndTranslate(images: rank=4/any T, size: vector* host int32, scale: vector* host float32, translation: vector* host float32) "
    "-> (resized_images: float32)",
    T=PIXELS,
    **_FILTERED,
)
SCALE_AND_TRANSLATE_GRAD = define(
    "ScaleAndTranslateGrad(grads: rank=4 T, original_image: rank=4 T, scale: vector* host float32, translation: vector* host float32) "
    "-> (output: T)",
    T=(dtypes.float32,),
    **_FILTERED,
)


def _filters(
    old: Any, new: Any, scale: Any, translation: Any, kernel_type: str, antialias: bool
) -> list[resampling.Taps]:
    if kernel_type not in resampling.FILTERS:
        raise InvalidArgumentError(None, None, f"Unrecognized kernel type: {kernel_type}")
    for name, values in (("scale", scale), ("translation", translation)):
        if not isinstance(values, list) or len(values) != 2:
            raise InvalidArgumentError(None, None, f"{name} must have two elements, got {values}")
    if min(scale) <= 0:
        raise InvalidArgumentError(None, None, f"Scale must be greater than zero, got {scale}.")
    return [
        resampling.filtered(old[i], new[i], float(scale[i]), float(translation[i]), kernel_type, antialias)
        for i in range(2)
    ]


@SCALE_AND_TRANSLATE.kernel
def scale_and_translate_kernel(
    images: torch.Tensor, size: Any, scale: Any, translation: Any, *, kernel_type: str, antialias: bool
) -> torch.Tensor:
    new = check_sizes(images, size)
    return resampling.weigh(images, *_filters(images.shape[1:3], new, scale, translation, kernel_type, antialias))


@SCALE_AND_TRANSLATE_GRAD.kernel
def scale_and_translate_grad_kernel(
    grads: torch.Tensor,
    original_image: torch.Tensor,
    scale: Any,
    translation: Any,
    *,
    kernel_type: str,
    antialias: bool,
) -> torch.Tensor:
    size = original_image.shape[1], original_image.shape[2]
    taps = _filters(size, grads.shape[1:3], scale, translation, kernel_type, antialias)
    return resampling.spread(grads, size, *taps)


@SCALE_AND_TRANSLATE.shape(values=["size"])
def scale_and_translate_shape(images: Shape, size: Any, scale: Shape, translation: Shape) -> Shape:
    scale.merge(Shape((2,)))
    translation.merge(Shape((2,)))
    return resized_shape(images, size)


SCALE_AND_TRANSLATE_GRAD.shape(_original_shape)


@SCALE_AND_TRANSLATE.grad
def scale_and_translate_grad(op: Operation, g: Tensor) -> tuple[Tensor, None, None, None]:
    image, _, scale, translation = op.inputs
    attrs = {name: op.attr(name) for name in _FILTERED}
    return SCALE_AND_TRANSLATE_GRAD(g, image, scale, translation, **attrs), None, None, None
