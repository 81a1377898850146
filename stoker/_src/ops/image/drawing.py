"""Ops that draw boxes into images."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from stoker._src.base import dtypes
from stoker._src.base.errors import InvalidArgumentError
from stoker._src.base.export import export
from stoker._src.base.shapes import Shape
from stoker._src.graph.conversion import convert_to_tensor
from stoker._src.graph.definition import define, one_of
from stoker._src.graph.tensor import Tensor
from stoker._src.ops.support.values import to_numpy

# The default colours, used in turn: yellow, blue, red, lime, purple, olive, maroon, navy, aqua, fuchsia.
_COLOURS = (
    (1.0, 1.0, 0.0, 1.0), (0.0, 0.0, 1.0, 1.0), (1.0, 0.0, 0.0, 1.0), (0.0, 1.0, 0.0, 1.0), (0.5, 0.0, 0.5, 1.0),
    (0.5, 0.5, 0.0, 1.0), (0.5, 0.0, 0.0, 1.0), (0.0, 0.0, 0.5, 1.0), (0.0, 1.0, 1.0, 1.0), (1.0, 0.0, 1.0, 1.0),
)  # fmt: skip
_KINDS = one_of(dtypes.float32, dtypes.float16, default=dtypes.float32)
DRAW_BOUNDING_BOXES = define(
    "DrawBoundingBoxes(images: rank=4/any T, boxes: rank=3/any float32) -> (output: T)", T=_KINDS
).not_differentiable()
DRAW_BOUNDING_BOXES_V2 = define(
    "DrawBoundingBoxesV2(images: rank=4/any T, boxes: rank=3/any float32, colors: matrix* float32) -> (output: T)",
    T=_KINDS,
)


def _pixel(place: float, size: int) -> int:
    """Returns the row or column at a relative position. Positions that are not finite are far outside, on the upper left."""
    at = place * (size - 1)
    return int(at) if np.isfinite(at) else -(2**63)


def _drawn(images: torch.Tensor, boxes: torch.Tensor, colours: Any) -> torch.Tensor:
    if images.ndim != 4:
        raise InvalidArgumentError(None, None, f"The rank of the images should be 4, got {list(images.shape)}")
    if boxes.ndim != 3 or boxes.shape[2] != 4:
        raise InvalidArgumentError(None, None, f"The boxes should be [batch, boxes, 4], got {list(boxes.shape)}")
    if boxes.shape[0] != images.shape[0]:
        raise InvalidArgumentError(
            None, None, f"The batch sizes should be the same: {images.shape[0]} images, boxes of {boxes.shape[0]}"
        )
    _batch, height, width, channels = images.shape
    if channels not in (1, 3, 4):
        raise InvalidArgumentError(
            None, None, f"Channel depth should be either 1 (GRY), 3 (RGB), or 4 (RGBA), got {channels}"
        )
    result = images.clone()
    paints = torch.tensor([colour[:channels] for colour in colours], dtype=images.dtype, device=images.device)
    for i, placed in enumerate(to_numpy(boxes)):
        for j, (y1, x1, y2, x2) in enumerate(placed):
            top, bottom = _pixel(y1, height), _pixel(y2, height)
            left, right = _pixel(x1, width), _pixel(x2, width)
            outside = top >= height or bottom < 0 or left >= width or right < 0
            if bottom < top or right < left or outside:
                continue
            down, across = slice(max(top, 0), bottom + 1), slice(max(left, 0), right + 1)
            paint = paints[j % len(paints)]
            if top >= 0:
                result[i, top, across] = paint
            if bottom < height:
                result[i, bottom, across] = paint
            if left >= 0:
                result[i, down, left] = paint
            if right < width:
                result[i, down, right] = paint
    return result


@DRAW_BOUNDING_BOXES.kernel
def draw_bounding_boxes_kernel(images: torch.Tensor, boxes: torch.Tensor) -> torch.Tensor:
    gray = images.ndim == 4 and images.shape[3] == 1
    return _drawn(images, boxes, [(1.0,)] if gray else _COLOURS)


@DRAW_BOUNDING_BOXES_V2.kernel
def draw_bounding_boxes_v2_kernel(images: torch.Tensor, boxes: torch.Tensor, colors: torch.Tensor) -> torch.Tensor:
    if colors.ndim != 2:
        raise InvalidArgumentError(None, None, f"colors must be a 2-D matrix, got {list(colors.shape)}")
    if not len(colors):
        return draw_bounding_boxes_kernel(images, boxes)
    if images.ndim == 4 and colors.shape[1] < images.shape[3]:
        raise InvalidArgumentError(
            None, None, f"colors must have equal or more channels than the image provided: {colors.shape[1]} vs {images.shape[3]}"
        )  # fmt: skip
    return _drawn(images, boxes, colors.tolist())


def _drawn_shape(images: Shape, boxes: Shape, *_: Shape) -> Shape:
    boxes.of_rank(3).merge(Shape((None, None, 4)))
    return images.of_rank(4)


@DRAW_BOUNDING_BOXES.shape
def draw_bounding_boxes_shape(images: Shape, boxes: Shape) -> Shape:
    result = _drawn_shape(images, boxes)
    if result[3] not in (1, 3, 4, None):
        raise InvalidArgumentError(
            None, None, f"Channel depth should be either 1 (GRY), 3 (RGB), or 4 (RGBA), got {result[3]}"
        )
    return result


DRAW_BOUNDING_BOXES_V2.shape(_drawn_shape)


@export(v2="image.draw_bounding_boxes")
def draw_bounding_boxes_v2(images: Any, boxes: Any, colors: Any, name: str | None = None) -> Tensor:
    """Draws the outlines of boxes into images.

    Args:
        images: float32 or float16 [batch, height, width, 1, 3 or 4].
        boxes: [batch, boxes, 4] of y_min, x_min, y_max, x_max, relative to the height and width. Parts outside of the image are not drawn.
        colors: [colours, channels], used in turn. None for ten distinct colours.
        name: The op's name.
    """
    if colors is None:
        return DRAW_BOUNDING_BOXES(convert_to_tensor(images), boxes, name=name)
    return DRAW_BOUNDING_BOXES_V2(convert_to_tensor(images), boxes, colors, name=name)


@export(v1="image.draw_bounding_boxes")
def draw_bounding_boxes(images: Any, boxes: Any, name: str | None = None, colors: Any = None) -> Tensor:
    """Draws the outlines of boxes into images. See the 2.x form, which has `colors` before `name`."""
    return draw_bounding_boxes_v2(images, boxes, colors, name)
