"""Norms of vectors and matrices."""

from __future__ import annotations

from typing import Any

import numpy as np

from stoker._src.base.export import export
from stoker._src.graph.conversion import convert_to_tensor
from stoker._src.graph.scopes import name_scope
from stoker._src.graph.tensor import Tensor
from stoker._src.ops.array import casting, constants, joining, ranges, selection, shaping
from stoker._src.ops.linalg import decompositions
from stoker._src.ops.math import arithmetic, unary_functions
from stoker._src.ops.math.reductions import older_arguments, reduce_max, reduce_sum


def _matrix_or_vector_norm(x: Tensor, ord: Any, axis: Any, matrix: bool) -> Tensor:
    if ord in ("fro", "euclidean", 2, 2.0):
        if matrix and ord in (2, 2.0):
            order, back = _moved_last(x, axis)
            moved = shaping.transpose(x, order)
            largest = reduce_max(decompositions.svd(moved, compute_uv=False), -1, True)
            largest = shaping.reshape(largest, joining.concat([shaping.shape(largest), [1]], 0))
            return shaping.transpose(largest, back)
        return _euclidean(x, axis)
    size = unary_functions.abs(x)
    if matrix and ord in (1, 1.0, np.inf):
        # The largest sum of a column (1) or of a row (infinity).
        inner, outer = (axis[0], axis[1]) if ord != np.inf else (axis[1], axis[0])
        return reduce_max(reduce_sum(size, inner, True), outer, True)
    if ord in (1, 1.0):
        return reduce_sum(size, axis, True)
    if ord == np.inf:
        return reduce_max(size, axis, True)
    power = constants.number(ord, size)
    return arithmetic.power(reduce_sum(arithmetic.power(size, power), axis, True), constants.number(1.0 / ord, size))


def _norm(tensor: Any, ord: Any, axis: Any, keepdims: bool, name: str | None) -> Tensor:
    matrix = isinstance(axis, (tuple, list)) and len(axis) == 2
    allowed = ["euclidean", "fro", 1, 2, np.inf] if matrix else ["euclidean", 1, 2, np.inf]
    if matrix:
        if any(not isinstance(a, (int, np.integer)) for a in axis) or axis[0] == axis[1]:
            raise ValueError(f"'axis' must be None, an integer, or a tuple of 2 unique integers, got {axis}")
        if ord not in allowed:
            raise ValueError(f"'ord' must be a supported matrix norm in {allowed}, got {ord}")
    else:
        if not (axis is None or isinstance(axis, (int, np.integer))):
            raise ValueError(f"'axis' must be None, an integer, or a tuple of 2 unique integers, got {axis}")
        if not isinstance(ord, (str, bytes, int, float)):
            np.asarray(ord)  # raises for symbolic tensors and ragged lists
            raise TypeError(f"'ord' must be a number or the name of a norm, got {ord!r}")
        if ord != "euclidean" if isinstance(ord, (str, bytes)) else ord <= 0:
            raise ValueError(f"'ord' must be a supported vector norm, got {ord}")
    with name_scope(name, "norm", [tensor]):
        x = convert_to_tensor(tensor)
        axes: Any = list(axis) if matrix else axis  # type: ignore[arg-type]
        result = _matrix_or_vector_norm(x, ord, axes, matrix)
        if keepdims:
            return result
        if axis is None and x.static_shape.rank is not None:
            axes = list(range(x.static_shape.rank))
        return shaping.squeeze(result, axes)


@export(v1=("norm", "linalg.norm"))
def norm(
    tensor: Any,
    ord: Any = "euclidean",
    axis: Any = None,
    keepdims: Any = None,
    name: str | None = None,
    keep_dims: Any = None,
) -> Tensor:
    """The norm of vectors (`axis` an integer, or None for the whole tensor) or of matrices (`axis` a pair).

    Args:
        tensor: Real or complex numbers.
        ord: 'euclidean', 'fro' (matrices), 1, 2, `np.inf`, or any positive number (vectors).
        axis: None, an integer or a pair of integers.
        keepdims: Whether to keep the reduced dimensions with size 1.
        name: A name for the scope.
        keep_dims: The older name of `keepdims`.

    Raises:
        ValueError: the order or the axes are invalid.
    """
    _, keep = older_arguments(None, keepdims, None, keep_dims)
    return _norm(tensor, ord, axis, keep, name)


@export(v2=("norm", "linalg.norm"))
def norm_v2(
    tensor: Any, ord: Any = "euclidean", axis: Any = None, keepdims: Any = None, name: str | None = None
) -> Tensor:
    """The norm of vectors or matrices. See `tf.compat.v1.norm`."""
    return _norm(tensor, ord, axis, bool(keepdims), name)


@export("linalg.normalize")
def normalize(tensor: Any, ord: Any = "euclidean", axis: Any = None, name: str | None = None) -> tuple[Tensor, Tensor]:
    """Divides `tensor` by its norm along `axis`. Also returns the norm, with its dimensions kept."""
    with name_scope(name, "normalize", [tensor]):
        x = convert_to_tensor(tensor)
        size = _norm(x, ord, axis, True, None)
        size = casting.cast(size, x.dtype.base_dtype)
        return arithmetic.truediv(x, size), size


def _euclidean(x: Tensor, axis: Any) -> Tensor:
    # As in TensorFlow, the norm of complex numbers has a complex dtype and a zero imaginary part.
    return unary_functions.sqrt(reduce_sum(x * unary_functions.conj(x), axis, True))


def _moved_last(x: Tensor, axes: list[int]) -> tuple[Any, Any]:
    """The permutation that moves `axes` to the end, and its inverse."""
    rank = x.static_shape.rank
    if rank is None:
        count = ranges.rank(x)
        chosen = arithmetic.floormod(convert_to_tensor(axes), count)
        order = joining.concat([selection.LIST_DIFF(ranges.range(count), chosen)[0], chosen], 0)
        return order, shaping.invert_permutation(order)
    last = [axis % rank for axis in axes]
    order = [axis for axis in range(rank) if axis not in last] + last
    return order, np.argsort(order).tolist()
