"""Clipping by value, by norm, by average norm and by global norm."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from stoker._src.base import dtypes
from stoker._src.base.dtypes import DType, as_dtype
from stoker._src.base.export import export
from stoker._src.graph import context
from stoker._src.graph.conversion import convert_to_tensor
from stoker._src.graph.indexed_slices import IndexedSlices
from stoker._src.graph.scopes import colocate_with, name_scope
from stoker._src.graph.tensor import Tensor
from stoker._src.ops.array import casting, constants, joining, ranges, selection, shaping
from stoker._src.ops.array.casting import cast
from stoker._src.ops.array.constants import constant
from stoker._src.ops.math import arithmetic, reductions, unary_functions
from stoker._src.ops.support.dispatching import elementwise


def _values(t: Any) -> Tensor:
    return convert_to_tensor(t.values if isinstance(t, IndexedSlices) else t, name="t")


def _like(t: Any, values: Tensor) -> Any:
    """Replaces the values of `t`. The result is IndexedSlices if `t` is."""
    return IndexedSlices(values, t.indices, t.dense_shape) if isinstance(t, IndexedSlices) else values


def _check_not_larger(values: Tensor, result: Tensor) -> None:
    if not values.static_shape.compatible(result.static_shape):
        raise ValueError(
            f"Clipping must keep the shape: the tensor has shape {values.shape}, and with the bounds {result.shape}."
        )


@export("clip_by_value")
@elementwise
def clip_by_value(t: Any, clip_value_min: Any, clip_value_max: Any, name: str | None = None) -> Any:
    """Clips the elements of `t` to the range [`clip_value_min`, `clip_value_max`].

    Args:
        t: a tensor or IndexedSlices.
        clip_value_min, clip_value_max: the bounds. They must broadcast to the shape of `t`.
        name: the name of the op.

    Raises:
        ValueError: the bounds do not fit the shape of `t`.
    """
    with name_scope(name, "clip_by_value", [t, clip_value_min, clip_value_max]) as scope:
        values = _values(t)
        lowered = arithmetic.MINIMUM(values, clip_value_max)
        _check_not_larger(values, lowered)
        raised = arithmetic.MAXIMUM(lowered, clip_value_min, name=scope)
        _check_not_larger(values, raised)
        return _like(t, raised)


@export("clip_by_norm")
def clip_by_norm(t: Any, clip_norm: Any, axes: Any = None, name: str | None = None) -> Any:
    """Scales `t` by `clip_norm / l2norm(t)` if its norm is larger than `clip_norm`.

    Args:
        t: a tensor or IndexedSlices.
        clip_norm: the maximum norm. A negative value counts as zero.
        axes: the dimensions to compute the norm over, so that each slice is clipped separately; all by default.
        name: the name of the op.
    """
    with name_scope(name, "clip_by_norm", [t, clip_norm]) as scope:
        values = _values(t)
        if isinstance(clip_norm, (int, float)):  # known values need no node
            clip_norm = max(clip_norm, 0.0)
        else:
            clip_norm = arithmetic.MAXIMUM(convert_to_tensor(clip_norm, dtype_hint=values.dtype.base_dtype), 0)
        squares = reductions.reduce_sum(values * values, axes, keepdims=True)
        # The square root has no finite gradient at 0, so 0 is replaced before and after it.
        positive = squares > 0
        safe = selection.SELECT(positive, squares, shaping.ones_like(squares))
        norm = selection.SELECT(positive, unary_functions.sqrt(safe), squares)
        limit = casting.cast(convert_to_tensor(clip_norm, dtype_hint=values.dtype.base_dtype), values.dtype.base_dtype)
        scaled = values * limit
        _check_not_larger(values, scaled)
        clipped = scaled / arithmetic.MAXIMUM(norm, limit)
        return _like(t, shaping.identity(clipped, name=scope))


@export(v1="clip_by_average_norm")
def clip_by_average_norm(t: Any, clip_norm: Any, name: str | None = None) -> Any:
    """Like `clip_by_norm`, with the norm divided by the number of elements."""
    with name_scope(name, "clip_by_average_norm", [t, clip_norm]) as scope:
        values = _values(t)
        count = casting.cast(ranges.size(values), values.dtype.base_dtype)
        axes = ranges.range(ranges.rank(values))
        inverse = unary_functions.RSQRT(reductions.reduce_sum(values * values, axes))
        limit = constants.constant(1.0, values.dtype.base_dtype) / clip_norm
        clipped = values * clip_norm * arithmetic.MINIMUM(inverse * count, limit)
        return _like(t, shaping.identity(clipped, name=scope))


def _sequence(t_list: Any) -> list[Any]:
    if not isinstance(t_list, Sequence) or isinstance(t_list, (str, bytes)):
        raise TypeError(f"t_list should be a sequence of tensors. Received {type(t_list)}.")
    return list(t_list)


@export("linalg.global_norm", v1="global_norm")
def global_norm(t_list: Any, name: str | None = None) -> Tensor:
    """sqrt(sum over tensors of l2norm(t)^2), a scalar. None entries are ignored.

    Raises:
        TypeError: `t_list` is not a sequence.
    """
    given = _sequence(t_list)
    with name_scope(name, "global_norm", given):
        halves = []
        for t in given:
            if t is not None:
                values = _values(t)
                with name_scope(None, "") if context.executing_eagerly() else colocate_with(values):
                    halves.append(reductions.L2_LOSS(values))
        if not halves:
            return constants.constant(0.0, name="global_norm")
        total = reductions.reduce_sum(joining.PACK(halves, name="stack"))
        two = constants.constant(2.0, total.dtype.base_dtype)
        return unary_functions.SQRT(total * two, name="global_norm")


@export("clip_by_global_norm")
def clip_by_global_norm(
    t_list: Any, clip_norm: Any, use_norm: Any = None, name: str | None = None
) -> tuple[list[Any], Tensor]:
    """Scales all tensors by `clip_norm / max(global_norm, clip_norm)`, and returns the global norm as well.

    Args:
        t_list: tensors, IndexedSlices and Nones.
        clip_norm: the maximum global norm, positive.
        use_norm: a norm to use instead of the computed one.
        name: the name of the ops.

    Returns:
        (the clipped list, in order, with None where the input was None; the norm that was used). If the norm is not finite,
        all results are NaN.

    Raises:
        TypeError: `t_list` is not a sequence.
    """
    given = _sequence(t_list)
    if use_norm is None:
        use_norm = global_norm(given, name)
    with name_scope(name, "clip_by_global_norm", [*given, clip_norm]) as scope:
        use_norm = convert_to_tensor(use_norm)
        inverse = 1.0 / use_norm
        limit = constants.constant(1.0, use_norm.dtype.base_dtype) / clip_norm
        scale = clip_norm * arithmetic.MINIMUM(inverse, limit)
        scale = scale + (use_norm - use_norm)  # NaN if the norm is infinite
        clipped: list[Any] = []
        for i, t in enumerate(given):
            if t is None:
                clipped.append(None)
                continue
            values = _values(t)
            with name_scope(None, "") if context.executing_eagerly() else colocate_with(values):
                # 16-bit gradients may be clipped by a norm that was computed in 32 bits.
                scaled = values * casting.cast(scale, values.dtype.base_dtype)
                clipped.append(_like(t, shaping.identity(scaled, name=f"{scope}_{i}")))
        return clipped, use_norm


@export("saturate_cast", "dtypes.saturate_cast")
@elementwise
def saturate_cast(value: Any, dtype: Any, name: str | None = None) -> Tensor:
    """Casts `value` to `dtype` and clamps numbers outside the range of `dtype`."""
    with name_scope(name, "saturate_cast", [value]) as scope:
        value = convert_to_tensor(value, name="value")
        wanted = as_dtype(dtype).base_dtype
        source = value.dtype.base_dtype
        if dtypes.bool_ in (source, wanted):
            raise TypeError(f"Cannot find minimum value of bool: saturate_cast from {source.name} to {wanted.name}.")
        if source.is_complex and not wanted.is_complex:
            value = cast(value, source.real_dtype)
            source = source.real_dtype
        if not source.is_complex and not wanted.is_complex:
            low, high = _limits_within(source, wanted)
            # Infinities exceed the range of every integer dtype.
            if low != source.min or high != source.max or (source.is_floating and wanted.is_integer):
                value = arithmetic.CLIP_BY_VALUE(value, constant(low, source), constant(high, source), name="clamp")
        return cast(value, wanted, name=scope)


def _limits_within(source: DType, wanted: DType) -> tuple[Any, Any]:
    """The range of `wanted` in numbers of dtype `source`, rounded inward if `source` is a coarser float type."""
    if source.is_integer and wanted.is_integer:
        return max(int(source.min), int(wanted.min)), min(int(source.max), int(wanted.max))
    if source.is_integer:
        return source.min, source.max
    kind = source.as_numpy_dtype
    if wanted.is_integer:
        zero = kind(0)
        # A half cannot exceed limits that it cannot represent.
        low = kind(max(float(source.min), float(wanted.min)))
        high = kind(min(float(source.max), float(wanted.max)))
        if int(high) > int(wanted.max):
            high = np.nextafter(high, zero)
        if int(low) < int(wanted.min):
            low = np.nextafter(low, zero)
        return low, high
    return max(float(source.min), float(wanted.min)), min(float(source.max), float(wanted.max))
