"""CropAndResize, which crops boxes from images and resizes them to one size, and its gradients."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import torch

from stoker._src.base import dtypes
from stoker._src.base.dtypes import DType
from stoker._src.base.errors import InvalidArgumentError, OutOfRangeError
from stoker._src.base.extensions import extension
from stoker._src.base.shapes import Shape, merge_dims
from stoker._src.graph.definition import STRING, define
from stoker._src.graph.tensor import Operation, Tensor
from stoker._src.ops.array import shaping
from stoker._src.ops.support.device_checks import require
from stoker._src.ops.support.values import torch_dtype

_native: Any = extension("stoker._src.ops.native.cropping")
_FLOATS = (dtypes.float16, dtypes.float32, dtypes.float64)
_PIXELS = (dtypes.uint8, dtypes.uint16, dtypes.int8, dtypes.int16, dtypes.int32, dtypes.int64, *_FLOATS)
_METHODS = ("bilinear", "nearest")

CROP_AND_RESIZE = define(
    "CropAndResize(image: rank=4/any T, boxes: matrix* float32, box_ind: vector* int32, crop_size: vector* host int32) -> (crops: float32)",
    T=_PIXELS,
    method=STRING("bilinear", allowed=_METHODS),
    extrapolation_value=0.0,
)
CROP_AND_RESIZE_GRAD_IMAGE = define(
    "CropAndResizeGradImage(grads: rank=4/any float32, boxes: matrix* float32, box_ind: vector* int32, image_size: vector* host int32) "
    "-> (output: T)",
    T=_FLOATS,
    method=STRING("bilinear", allowed=_METHODS),
)
CROP_AND_RESIZE_GRAD_BOXES = define(
    "CropAndResizeGradBoxes(grads: rank=4/any float32, image: rank=4/any T, boxes: matrix* float32, box_ind: vector* int32) "
    "-> (output: float32)",
    T=_PIXELS,
    method=STRING("bilinear", allowed=("bilinear",)),
)
for _definition in (CROP_AND_RESIZE, CROP_AND_RESIZE_GRAD_IMAGE, CROP_AND_RESIZE_GRAD_BOXES):
    _definition.planning.refuses = True


def _is_native(given: torch.Tensor, boxes: torch.Tensor, box_ind: torch.Tensor) -> bool:
    """Whether the extension takes tensors of this kind."""
    plain = all(each.is_cpu and each.is_contiguous() for each in (given, boxes, box_ind))
    return _native is not None and plain and given.dtype is torch.float32


def _resampled(
    function: Callable[..., bool],
    out: torch.Tensor,
    given: torch.Tensor,
    boxes: torch.Tensor,
    box_ind: torch.Tensor,
    image_size: Sequence[int],
    crop_size: Sequence[int],
    method: str,
    usual: float = 0.0,
) -> bool:
    """Fills `out` natively. Returns False if a box is not fine."""
    return function(
        out, given, boxes, box_ind, tuple(image_size), len(boxes), tuple(crop_size), method == "nearest", usual,
        torch.get_num_threads(),
    )  # fmt: skip


def _check(boxes: torch.Tensor, box_ind: torch.Tensor, batch: int) -> None:
    if boxes.ndim != 2:
        raise InvalidArgumentError(None, None, f"boxes must be 2-D{list(boxes.shape)}")
    if boxes.shape[1] != 4:
        raise InvalidArgumentError(None, None, f"boxes must have 4 columns, got {boxes.shape[1]}")
    if box_ind.ndim != 1 or len(box_ind) != len(boxes):
        raise InvalidArgumentError(
            None, None, f"box_index has incompatible shape {list(box_ind.shape)} for {len(boxes)} boxes"
        )
    message = f"box_index has values outside [0, batch_size), the batch size is {batch}"
    require((box_ind >= 0) & (box_ind < batch), lambda: OutOfRangeError(None, None, message))


def _on(
    like: torch.Tensor, boxes: torch.Tensor, box_ind: torch.Tensor, batch: int
) -> tuple[torch.Tensor, torch.Tensor]:
    """Moves boxes to the device of an image. A number of an image that is refused only later reads another image until then."""
    boxes, box_ind = boxes.to(like.device), box_ind.to(like.device)
    return boxes, box_ind.clamp(0, batch - 1) if box_ind.is_cuda else box_ind


class _Places(NamedTuple):
    """For one dimension, [boxes, crop size]: the pixels on both sides, the fraction between them, and whether they are inside."""

    low: torch.Tensor
    high: torch.Tensor
    fraction: torch.Tensor
    inside: torch.Tensor


def _places(first: torch.Tensor, last: torch.Tensor, size: int, crop: int) -> torch.Tensor:
    """Returns the positions of the crops' pixels in the image, [boxes, crop]."""
    if crop == 1:
        return (0.5 * (first + last) * (size - 1))[:, None]
    step = (last - first) * (size - 1) / (crop - 1)
    at = torch.arange(crop, dtype=torch.float32, device=first.device)
    return first[:, None] * (size - 1) + at * step[:, None]


def _around(first: torch.Tensor, last: torch.Tensor, size: int, crop: int) -> _Places:
    place = _places(first, last, size, crop)
    inside = (place >= 0) & (place <= size - 1)
    place = torch.where(inside, place, 0)
    low = place.floor()
    return _Places(low.long(), place.ceil().long(), place - low, inside)


def _nearest(first: torch.Tensor, last: torch.Tensor, size: int, crop: int) -> tuple[torch.Tensor, torch.Tensor]:
    place = _places(first, last, size, crop)
    inside = (place >= 0) & (place <= size - 1)
    # Halves are rounded up, as in C for positive numbers.
    return (torch.where(inside, place, 0) + 0.5).floor().long(), inside


def _pixels(image: torch.Tensor, box_ind: torch.Tensor, rows: torch.Tensor, columns: torch.Tensor) -> torch.Tensor:
    signed = image.view(torch.int16) if image.dtype is torch.uint16 else image
    taken = signed[box_ind.long()[:, None, None], rows[:, :, None], columns[:, None, :]]
    return taken.view(image.dtype).to(torch.float32)


def _flat(box_ind: torch.Tensor, rows: torch.Tensor, columns: torch.Tensor, size: Any) -> torch.Tensor:
    """Returns the same pixels as indices into a flattened batch."""
    return ((box_ind.long()[:, None, None] * size[1] + rows[:, :, None]) * size[2] + columns[:, None, :]).reshape(-1)


@CROP_AND_RESIZE.kernel
def crop_and_resize_kernel(
    image: torch.Tensor,
    boxes: torch.Tensor,
    box_ind: torch.Tensor,
    crop_size: Any,
    *,
    method: str,
    extrapolation_value: float,
) -> torch.Tensor:
    if image.ndim != 4:
        raise InvalidArgumentError(None, None, f"input image must be 4-D{list(image.shape)}")
    batch, height, width, channels = image.shape
    if min(height, width) == 0:
        raise InvalidArgumentError(None, None, f"image dimensions must be positive, got {list(image.shape)}")
    _check(boxes, box_ind, batch)
    if not isinstance(crop_size, list) or len(crop_size) != 2:
        raise InvalidArgumentError(None, None, f"crop_size must have two elements, got {crop_size}")
    if min(crop_size) <= 0:
        raise InvalidArgumentError(None, None, f"crop dimensions must be positive, got {crop_size}")
    if len(boxes) == 0:
        return torch.empty((0, *crop_size, channels), device=image.device)
    if _is_native(image, boxes, box_ind):
        out = torch.empty((len(boxes), *crop_size, channels))
        if _resampled(_native.crop, out, image, boxes, box_ind, image.shape, crop_size, method, extrapolation_value):
            return out
    boxes, box_ind = _on(image, boxes, box_ind, batch)
    message = "Boxes contains at least one element that is not finite"
    require(torch.isfinite(boxes), lambda: InvalidArgumentError(None, None, message))
    boxes = boxes.nan_to_num(0.0, 0.0, 0.0)
    top, left, bottom, right = boxes.unbind(1)
    if method == "nearest":
        rows, rows_inside = _nearest(top, bottom, height, crop_size[0])
        columns, columns_inside = _nearest(left, right, width, crop_size[1])
        result = _pixels(image, box_ind, rows, columns)
    else:
        down = _around(top, bottom, height, crop_size[0])
        across = _around(left, right, width, crop_size[1])
        rows_inside, columns_inside = down.inside, across.inside
        rows = []
        for row in (down.low, down.high):
            left_pixel = _pixels(image, box_ind, row, across.low)
            right_pixel = _pixels(image, box_ind, row, across.high)
            rows.append(left_pixel + (right_pixel - left_pixel) * across.fraction[:, None, :, None])
        result = rows[0] + (rows[1] - rows[0]) * down.fraction[:, :, None, None]
    inside = (rows_inside[:, :, None] & columns_inside[:, None, :])[..., None]
    return torch.where(inside, result, extrapolation_value)


@CROP_AND_RESIZE.shape(values=["crop_size"])
def crop_and_resize_shape(image: Shape, boxes: Shape, box_ind: Shape, crop_size: Any) -> Shape:
    channels = image.of_rank(4)[3]
    count = merge_dims(boxes.of_rank(2).merge(Shape((None, 4)))[0], box_ind.of_rank(1)[0])
    if crop_size is None:
        return Shape((count, None, None, channels))
    if crop_size.shape != (2,):
        raise InvalidArgumentError(None, None, f"Dimension must be 2 but is {list(crop_size.shape)}: crop_size")
    return Shape((count, int(crop_size[0]), int(crop_size[1]), channels))


@CROP_AND_RESIZE_GRAD_IMAGE.kernel
def crop_and_resize_grad_image_kernel(
    grads: torch.Tensor, boxes: torch.Tensor, box_ind: torch.Tensor, image_size: Any, *, T: DType, method: str
) -> torch.Tensor:
    if grads.ndim != 4:
        raise InvalidArgumentError(None, None, f"grads image must be 4-D{list(grads.shape)}")
    if len(image_size) != 4:
        raise InvalidArgumentError(None, None, f"image_size must have 4 elements, got {image_size}")
    _check(boxes, box_ind, image_size[0])
    fits = grads.shape[0] == len(boxes) and grads.shape[3] == image_size[3]
    if T is dtypes.float32 and fits and _is_native(grads, boxes, box_ind):
        out = torch.zeros(image_size)
        if _resampled(_native.spread, out, grads, boxes, box_ind, image_size, grads.shape[1:3], method):
            return out
    total = grads.new_zeros((image_size[0] * image_size[1] * image_size[2], image_size[3]))
    boxes, box_ind = _on(grads, boxes, box_ind, image_size[0])
    top, left, bottom, right = boxes.unbind(1)
    crop = grads.shape[1:3]
    if method == "nearest":
        rows, rows_inside = _nearest(top, bottom, image_size[1], crop[0])
        columns, columns_inside = _nearest(left, right, image_size[2], crop[1])
        parts = [(rows, columns, torch.ones((), device=grads.device))]
    else:
        down = _around(top, bottom, image_size[1], crop[0])
        across = _around(left, right, image_size[2], crop[1])
        rows_inside, columns_inside = down.inside, across.inside
        parts = [
            (row, column, share_y[:, :, None] * share_x[:, None, :])
            for row, share_y in ((down.low, 1 - down.fraction), (down.high, down.fraction))
            for column, share_x in ((across.low, 1 - across.fraction), (across.high, across.fraction))
        ]
    inside = rows_inside[:, :, None] & columns_inside[:, None, :]
    for rows, columns, share in parts:
        part = grads * torch.where(inside, share, 0)[..., None]
        total.index_add_(0, _flat(box_ind, rows, columns, image_size), part.reshape(-1, image_size[3]))
    return total.reshape(image_size).to(torch_dtype(T))


CROP_AND_RESIZE_GRAD_IMAGE.shape(lambda grads, boxes, box_ind, image_size: image_size, as_shapes=["image_size"])


@CROP_AND_RESIZE_GRAD_BOXES.kernel
def crop_and_resize_grad_boxes_kernel(
    grads: torch.Tensor, image: torch.Tensor, boxes: torch.Tensor, box_ind: torch.Tensor
) -> torch.Tensor:
    if grads.ndim != 4 or image.ndim != 4:
        raise InvalidArgumentError(None, None, f"grads and image must be 4-D: {list(grads.shape)}, {list(image.shape)}")
    _check(boxes, box_ind, image.shape[0])
    boxes, box_ind = _on(image, boxes, box_ind, image.shape[0])
    grads = grads.to(image.device)
    top, left, bottom, right = boxes.unbind(1)
    crop = grads.shape[1:3]
    height, width = image.shape[1:3]
    down, across = _around(top, bottom, height, crop[0]), _around(left, right, width, crop[1])
    inside = (down.inside[:, :, None] & across.inside[:, None, :])[..., None]
    corners = [[_pixels(image, box_ind, row, column) for column in across[:2]] for row in down[:2]]
    beside, below = across.fraction[:, None, :, None], down.fraction[:, :, None, None]
    slope_y = (1 - beside) * (corners[1][0] - corners[0][0]) + beside * (corners[1][1] - corners[0][1])
    slope_x = (1 - below) * (corners[0][1] - corners[0][0]) + below * (corners[1][1] - corners[1][0])
    grads = torch.where(inside, grads, 0)
    result = []
    for slope, size, crop_, axis in ((slope_y, height, crop[0], 1), (slope_x, width, crop[1], 2)):
        by_place = (slope * grads).sum((3, 3 - axis))  # [boxes, crop]
        if crop_ > 1:
            to_last = torch.arange(crop_, device=image.device) * ((size - 1) / (crop_ - 1))
        else:
            to_last = torch.full((1,), 0.5 * (size - 1), device=image.device)
        result.append(((by_place * ((size - 1) - to_last)).sum(1), (by_place * to_last).sum(1)))
    return torch.stack([result[0][0], result[1][0], result[0][1], result[1][1]], 1)


@CROP_AND_RESIZE_GRAD_BOXES.shape
def crop_and_resize_grad_boxes_shape(grads: Shape, image: Shape, boxes: Shape, box_ind: Shape) -> Shape:
    return boxes.of_rank(2).merge(Shape((None, 4)))


@CROP_AND_RESIZE.grad
def crop_and_resize_grad(op: Operation, g: Tensor) -> tuple[Any, Tensor, None, None]:
    image, boxes, box_ind, _ = op.inputs
    dtype = image.dtype.base_dtype
    to_image = None
    if dtype in _FLOATS:
        size = list(image.static_shape) if image.static_shape.known else shaping.shape(image)
        to_image = CROP_AND_RESIZE_GRAD_IMAGE(g, boxes, box_ind, size, T=dtype, method=op.attr("method"))
    # The gradient for the boxes is that of bilinear sampling, for both methods.
    return to_image, CROP_AND_RESIZE_GRAD_BOXES(g, image, boxes, box_ind), None, None
