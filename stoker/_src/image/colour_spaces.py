"""Grayscale, YIQ and YUV."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from stoker._src.base import dtypes
from stoker._src.base.export import export, named
from stoker._src.graph.conversion import convert_to_tensor
from stoker._src.graph.scopes import name_scope
from stoker._src.graph.tensor import Tensor
from stoker._src.image import checks
from stoker._src.image.conversion import convert_image_dtype
from stoker._src.ops.array import joining, ranges, shaping
from stoker._src.ops.linalg import einsum
from stoker._src.ops.math import arithmetic

_LUMA = (0.2989, 0.5870, 0.1140)


@export("image.rgb_to_grayscale")
def rgb_to_grayscale(images: Any, name: str | None = None) -> Tensor:
    """Converts RGB [..., 3] to grayscale [..., 1]: 0.2989 red + 0.587 green + 0.114 blue. Keeps the dtype."""
    with name_scope(name, "rgb_to_grayscale", [images]) as scope:
        images = convert_to_tensor(images, name="images")
        source = images.dtype.base_dtype
        pixels = convert_image_dtype(images, source if source in (dtypes.float16, dtypes.float32) else dtypes.float32)
        gray = shaping.expand_dims(einsum.tensordot(pixels, list(_LUMA), [-1, -1]), -1)
        return convert_image_dtype(gray, source, name=scope)


@export("image.grayscale_to_rgb")
def grayscale_to_rgb(images: Any, name: str | None = None) -> Tensor:
    """Converts grayscale [..., 1] to RGB [..., 3] with three equal channels.

    Raises:
        ValueError: The last dimension is not 1.
    """
    with name_scope(name, "grayscale_to_rgb", [images]) as scope:
        images = _gray(convert_to_tensor(images, name="images"))
        leading = arithmetic.subtract(ranges.rank(images), 1)
        multiples = joining.concat(
            [shaping.ones(shaping.expand_dims(leading, 0), dtype="int32"), shaping.expand_dims(3, 0)], 0
        )
        result = joining.tile(images, multiples, name=scope)
        known = images.static_shape
        if known.rank is not None and not getattr(result, "is_eager", False):
            result.set_shape([*known[:-1], 3])
        return result


def _gray(images: Tensor) -> Tensor:
    known = checks.static_sizes(images)
    if known is not None and len(known) < 2:
        raise ValueError(f"A grayscale image (shape {images.shape}) must be at least two-dimensional.")
    channels = None if known is None else known[-1]
    if channels is not None:
        if channels != 1:
            raise ValueError("Last dimension of a grayscale image should be size 1.")
        return checks.after([], images)
    from_shape = shaping.shape(images)[-1]
    return checks.after([checks.same(from_shape, 1, "Last dimension of a grayscale image must be size 1.")], images)


def _linear(name: str, kernel: list[list[float]], doc: str) -> Callable[[Any], Tensor]:
    """Returns a function that multiplies colours by a matrix, in the dtype of the images."""

    @export(f"image.{name}")
    @named(name, doc)
    def convert(images: Any) -> Tensor:
        images = convert_to_tensor(images, name="images")
        # Fractions have no integer value, so integer images are refused.
        matrix = convert_to_tensor(kernel, images.dtype.base_dtype, name="kernel")
        return einsum.tensordot(images, matrix, [[images.static_shape.rank - 1], [0]])

    convert.__module__ = __name__
    return convert


rgb_to_yiq = _linear(
    "rgb_to_yiq",
    [[0.299, 0.59590059, 0.2115], [0.587, -0.27455667, -0.52273617], [0.114, -0.32134392, 0.31119955]],
    "YIQ of RGB in the last dimension, for values of [0, 1]: Y in [0, 1], I in [-0.5957, 0.5957], Q in [-0.5226, 0.5226].",
)
yiq_to_rgb = _linear(
    "yiq_to_rgb",
    [[1, 1, 1], [0.95598634, -0.27201283, -1.10674021], [0.6208248, -0.64720424, 1.70423049]],
    "RGB of YIQ in the last dimension; the inverse of `rgb_to_yiq`.",
)
rgb_to_yuv = _linear(
    "rgb_to_yuv",
    [[0.299, -0.14714119, 0.61497538], [0.587, -0.28886916, -0.51496512], [0.114, 0.43601035, -0.10001026]],
    "YUV of RGB in the last dimension, for values of [0, 1]: Y in [0, 1], U and V in [-0.5, 0.5].",
)
yuv_to_rgb = _linear(
    "yuv_to_rgb",
    [[1, 1, 1], [0, -0.394642334, 2.03206185], [1.13988303, -0.58062185, 0]],
    "RGB of YUV in the last dimension; the inverse of `rgb_to_yuv`.",
)
