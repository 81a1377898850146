"""ImageProjectiveTransformV2: images whose pixels come from where a projective transform takes them."""

from __future__ import annotations

from typing import Any

import torch

from stoker._src.base import dtypes
from stoker._src.base.errors import InvalidArgumentError
from stoker._src.base.shapes import Shape, merge_dims
from stoker._src.graph.definition import STRING, define
from stoker._src.graph.tensor import Operation, Tensor
from stoker._src.ops.array import joining, shaping
from stoker._src.ops.linalg import decompositions

_PIXELS = (dtypes.uint8, dtypes.int32, dtypes.int64, dtypes.float16, dtypes.float32, dtypes.float64)

TRANSFORM = define(
    "ImageProjectiveTransformV2(images: rank=4/any dtype, transforms: matrix* float32, output_shape: vector* host int32) "
    "-> (transformed_images: dtype)",
    dtype=_PIXELS,
    interpolation=STRING(allowed=("NEAREST", "BILINEAR")),
)


def _sizes(output_shape: list[int]) -> tuple[int, int]:
    if len(output_shape) != 2:
        raise InvalidArgumentError(
            None, None, f"output shape must have two elements, height and width; it has {len(output_shape)}"
        )
    height, width = output_shape
    if height <= 0 or width <= 0:
        raise InvalidArgumentError(None, None, f"new dimensions must be positive, not {height} and {width}")
    return height, width


@TRANSFORM.kernel
def transform_kernel(
    images: torch.Tensor, transforms: torch.Tensor, output_shape: list[int], *, interpolation: str
) -> torch.Tensor:
    height, width = _sizes(output_shape)
    batch, rows, columns, _ = images.shape
    if transforms.ndim != 2 or transforms.shape[0] not in (1, batch) or transforms.shape[1] != 8:
        raise InvalidArgumentError(
            None,
            None,
            f"Input transform should be num_images x 8 or 1 x 8, not {list(transforms.shape)} for {batch} images",
        )
    a0, a1, a2, b0, b1, b2, c0, c1 = transforms[:, :, None, None].unbind(1)
    y, x = (
        torch.arange(n, dtype=torch.float32, device=images.device).view(form)
        for n, form in ((height, (1, -1, 1)), (width, (1, 1, -1)))
    )
    depth = c0 * x + c1 * y + 1
    # Where the depth is zero there is no pixel: the position is outside of every image.
    there = depth != 0
    depth = torch.where(there, depth, 1)
    outside = torch.full_like(depth, -2.0)
    from_x = torch.where(there, (a0 * x + a1 * y + a2) / depth, outside).expand(batch, height, width)
    from_y = torch.where(there, (b0 * x + b1 * y + b2) / depth, outside).expand(batch, height, width)
    which = torch.arange(batch, device=images.device)[:, None, None]

    def read(row: torch.Tensor, column: torch.Tensor) -> torch.Tensor:
        """The pixels at whole positions; zeros outside of the images."""
        inside = (row >= 0) & (row < rows) & (column >= 0) & (column < columns)
        at = (which, torch.where(inside, row, 0).long(), torch.where(inside, column, 0).long())
        return images[at] * inside[..., None].to(images.dtype)

    if interpolation == "NEAREST":
        # Halves are rounded away from zero, as in C.
        away = [torch.where(place < 0, (place - 0.5).ceil(), (place + 0.5).floor()) for place in (from_y, from_x)]
        return read(*away)
    kind = torch.float64 if images.dtype is torch.float64 else torch.float32
    low_y, low_x = from_y.floor(), from_x.floor()
    along_y, along_x = (from_y - low_y)[..., None].to(kind), (from_x - low_x)[..., None].to(kind)
    above = (1 - along_x) * read(low_y, low_x).to(kind) + along_x * read(low_y, low_x + 1).to(kind)
    below = (1 - along_x) * read(low_y + 1, low_x).to(kind) + along_x * read(low_y + 1, low_x + 1).to(kind)
    return ((1 - along_y) * above + along_y * below).to(images.dtype)


@TRANSFORM.shape(values=["output_shape"])
def transform_shape(images: Shape, transforms: Shape, output_shape: Any) -> Shape:
    batch, _, _, channels = images.of_rank(4)
    count = transforms.of_rank(2).merge(Shape((None, 8)))[0]
    batch = batch if count in (1, None) else merge_dims(batch, count)
    if output_shape is None or output_shape.shape != (2,):
        return Shape((batch, None, None, channels))
    return Shape((batch, int(output_shape[0]), int(output_shape[1]), channels))


@TRANSFORM.grad
def transform_grad(op: Operation, grad: Tensor) -> tuple[Tensor | None, ...]:
    """The pixels go back along the inverse transforms."""
    images, transforms, _ = op.inputs
    ones = shaping.ones_like(transforms[:, :1])
    matrices = shaping.reshape(joining.concat([transforms, ones], 1), [-1, 3, 3])
    flat = shaping.reshape(decompositions.matrix_inverse(matrices), [-1, 9])
    back = flat[:, :8] / flat[:, 8:]
    moved = TRANSFORM(grad, back, shaping.shape(images)[1:3], interpolation=op.attr("interpolation"))
    return moved, None, None
