"""Masks: elements selected by booleans, and booleans made from lengths."""

from __future__ import annotations

from typing import Any

import numpy as np

from stoker._src.base import dtypes
from stoker._src.base.dtypes import as_dtype
from stoker._src.base.export import export
from stoker._src.base.shapes import Shape
from stoker._src.graph.conversion import convert_to_tensor
from stoker._src.graph.scopes import name_scope
from stoker._src.graph.static_values import constant_value
from stoker._src.graph.tensor import Tensor
from stoker._src.ops.array import casting, gathering, joining, ranges, shaping
from stoker._src.ops.array.selection import WHERE
from stoker._src.ops.math import arithmetic, comparison, reductions
from stoker._src.ops.support.dispatching import dispatched


@export(v1="boolean_mask")
@dispatched
def boolean_mask(tensor: Any, mask: Any, name: str = "boolean_mask", axis: Any = None) -> Tensor:
    """The slices of `tensor` from `axis` on for which `mask` is true.

    Raises:
        ValueError: a scalar mask or one of unknown rank, or shapes that do not fit.
    """
    with name_scope(name, "boolean_mask", [tensor, mask]):
        tensor = convert_to_tensor(tensor, name="tensor")
        mask = convert_to_tensor(mask, name="mask")
        mask_shape, shape = mask.static_shape, tensor.static_shape
        if mask_shape.rank is None:
            raise ValueError(
                "Number of mask dimensions must be specified, even if some dimensions are None.  E.g. shape=[None] is ok, but shape=None is not."
            )
        if mask_shape.rank == 0:
            raise ValueError("mask cannot be scalar.")
        at = 0 if axis is None else constant_value(axis) if isinstance(axis, Tensor) else axis
        if not isinstance(at, (int, np.integer)) and getattr(at, "shape", None) != ():
            raise TypeError(f"axis must be an integer that is known when the graph is built, got {axis!r}.")
        at = int(at)
        if at < 0:
            at += len(shape)
        end = at + mask_shape.rank
        if shape.rank is not None and not shape[at:end].compatible(mask_shape):
            raise ValueError(
                f"Shapes {shape[at:end]} and {mask_shape} are incompatible: mask {mask_shape} at axis {at} of a tensor of shape {shape}."
            )
        if mask_shape.rank > 1:
            count = reductions.reduce_prod(shaping.shape(tensor)[at:end], [0])
            sizes = [shaping.shape(tensor)[:at], [count], shaping.shape(tensor)[end:]]
            tensor = shaping.reshape(tensor, joining.concat(sizes, 0))
            if shape.rank is not None and not getattr(tensor, "is_eager", False):
                covered = shape[at:end]
                tensor.set_shape(Shape((*(shape.dims or ())[:at], covered.size, *(shape.dims or ())[end:])))
            mask = shaping.reshape(mask, [-1])
        elif at == 0:
            tensor = shaping.reshape(tensor, shaping.shape(tensor))  # whose gradient is dense
        positions = shaping.squeeze(WHERE(mask), [1])
        return gathering.GATHER_V2(tensor, positions, at)


@export(v2="boolean_mask")
@dispatched
def boolean_mask_v2(tensor: Any, mask: Any, axis: Any = None, name: str = "boolean_mask") -> Tensor:
    """The slices of `tensor` from `axis` on for which `mask` is true."""
    return boolean_mask(tensor, mask, name, axis)


@export("sequence_mask")
def sequence_mask(lengths: Any, maxlen: Any = None, dtype: Any = dtypes.bool_, name: str | None = None) -> Tensor:
    """For each length a row of `maxlen` elements (the largest length by default), true for the first `length` of them."""
    with name_scope(name, "SequenceMask", [lengths, maxlen]):
        lengths = convert_to_tensor(lengths)
        if maxlen is None:
            largest = reductions.reduce_max(lengths)
            maxlen = arithmetic.maximum(convert_to_tensor(0, lengths.dtype.base_dtype), largest)
        else:
            maxlen = convert_to_tensor(maxlen)
        if maxlen.static_shape.rank not in (None, 0):
            raise ValueError(f"Argument `maxlen` must be scalar, got shape {maxlen.shape}")
        kind = maxlen.dtype.base_dtype
        steps = ranges.RANGE(convert_to_tensor(0, kind), maxlen, convert_to_tensor(1, kind))
        result = comparison.LESS(steps, casting.CAST(shaping.expand_dims(lengths, -1), DstT=kind))
        return result if dtype in (None, dtypes.bool_) else casting.cast(result, as_dtype(dtype).base_dtype)
