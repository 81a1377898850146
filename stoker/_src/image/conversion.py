"""Pixels of one dtype as pixels of another: floats count from 0 to 1, integers to the largest they hold."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from stoker._src.base import dtypes
from stoker._src.base.dtypes import DType, as_dtype
from stoker._src.base.export import export
from stoker._src.graph.conversion import convert_to_tensor
from stoker._src.graph.scopes import name_scope
from stoker._src.graph.tensor import Tensor
from stoker._src.ops.array import casting, shaping
from stoker._src.ops.math import arithmetic, clipping


@export("image.convert_image_dtype")
def convert_image_dtype(image: Any, dtype: Any, saturate: bool = False, name: str | None = None) -> Tensor:
    """The image with pixels of another dtype, scaled to its range.

    Floats are numbers of [0, 1), integers of [0, MAX]. From integer to float: divided by MAX. From float to integer: multiplied by MAX + 0.5 and
    truncated. Between integers: multiplied or divided by the ratio of their ranges.

    Args:
        image: the pixels.
        dtype: what they are to be.
        saturate: clip numbers that are beyond the range of `dtype` (else what they become is not defined).
        name: the name of the last op.

    Raises:
        AttributeError: a dtype that is neither integer nor float.
    """
    image = convert_to_tensor(image, name="image")
    dtype = as_dtype(dtype)
    source = image.dtype.base_dtype
    if not (dtype.is_floating or dtype.is_integer):
        raise AttributeError("dtype must be either floating point or integer")
    if not (source.is_floating or source.is_integer):
        raise AttributeError("image dtype must be either floating point or integer")
    if dtype == source:
        return shaping.identity(image, name=name)
    with name_scope(name, "convert_image", [image]) as scope:
        if source.is_integer and dtype.is_integer:
            return _between_integers(image, source, dtype, saturate, scope)
        if source.is_floating and dtype.is_floating:
            return casting.cast(image, dtype, name=scope)
        if source.is_integer:
            return arithmetic.multiply(casting.cast(image, dtype), 1.0 / int(source.max), name=scope)
        with np.errstate(over="ignore"):  # halves end before some integers do
            scale = np.asarray(float(dtype.max) + 0.5).astype(source.as_numpy_dtype)
        scaled = arithmetic.multiply(image, scale, name="Mul")
        return (clipping.saturate_cast if saturate else casting.cast)(scaled, dtype, name=scope)


def _between_integers(image: Tensor, source: DType, dtype: DType, saturate: bool, scope: str) -> Tensor:
    steps, wanted = int(source.max) + 1, int(dtype.max) + 1
    if steps > wanted:
        # TensorFlow scales before it casts, so that nothing overflows.
        scaled = arithmetic.floordiv(image, steps // wanted)
        return (clipping.saturate_cast if saturate else casting.cast)(scaled, dtype, name=scope)
    cast = clipping.saturate_cast if saturate else casting.cast
    return arithmetic.multiply(cast(image, dtype), wanted // steps, name=scope)


def as_float(image: Tensor) -> Tensor:
    """Pixels to compute with: halves and floats as they are, others as float32."""
    return (
        image
        if image.dtype.base_dtype in (dtypes.float16, dtypes.float32)
        else convert_image_dtype(image, dtypes.float32)
    )


def in_float(image: Any, compute: Callable[[Tensor], Tensor], *, saturate: bool = False) -> Tensor:
    """What `compute` makes of an image's pixels as floats, converted back."""
    image = convert_to_tensor(image, name="image")
    return convert_image_dtype(compute(as_float(image)), image.dtype.base_dtype, saturate=saturate)
