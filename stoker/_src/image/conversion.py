"""Converts pixels between dtypes. Floats range from 0 to 1, integers from 0 to the largest value of their dtype."""

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
    """Converts the pixels of an image to another dtype and scales them to its range.

    Floats are in [0, 1), integers in [0, MAX]. From integer to float, pixels are divided by MAX. From float to integer, they are multiplied by MAX + 0.5
    and truncated. Between integers, they are multiplied or divided by the ratio of the ranges.

    Args:
        image: The pixels.
        dtype: The new dtype.
        saturate: Whether to clip values outside of the range of `dtype`. Otherwise the result for them is undefined.
        name: The name of the last op.

    Raises:
        AttributeError: `dtype` is neither an integer nor a float.
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
        with np.errstate(over="ignore"):  # The largest float16 is smaller than some integers.
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
    """Converts pixels for computation: float16 and float32 are kept, other dtypes become float32."""
    return (
        image
        if image.dtype.base_dtype in (dtypes.float16, dtypes.float32)
        else convert_image_dtype(image, dtypes.float32)
    )


def in_float(image: Any, compute: Callable[[Tensor], Tensor], *, saturate: bool = False) -> Tensor:
    """Applies `compute` to an image's pixels as floats and converts the result back."""
    image = convert_to_tensor(image, name="image")
    return convert_image_dtype(compute(as_float(image)), image.dtype.base_dtype, saturate=saturate)
