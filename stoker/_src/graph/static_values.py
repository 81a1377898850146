"""Static values: constants, and small pure computations on them."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from stoker._src.base.errors import InvalidArgumentError
from stoker._src.base.shapes import UNKNOWN_SHAPE, Shape, TensorShape
from stoker._src.graph.definition import STATEFUL
from stoker._src.graph.runtime_hooks import hooks
from stoker._src.graph.tensor import Operation, Tensor

_UNKNOWN: Any = object()
_MOST_DIMENSIONS = 254
_LIMIT = 4096  # the maximum number of elements to compute at graph construction


def constant_value(tensor: Any, partial: bool = False) -> Any:
    """The static NumPy value of `tensor`, or None.

    With `partial`, a partly known stack gives an object array with None for unknown elements.
    """
    if hasattr(tensor, "numpy") and not isinstance(tensor, Tensor):
        return np.asarray(tensor)
    static = getattr(tensor, "static_array", None)  # an eager tensor
    if static is not None:
        return static()
    if not isinstance(tensor, Tensor):
        return None
    value = _value_of(tensor.op, 0)
    if value is _UNKNOWN:
        if partial and tensor.op.type == "Pack":
            return np.array([constant_value(each) for each in tensor.op.inputs], dtype=object)
        return None
    return value[tensor.value_index]


def _value_of(op: Operation, depth: int) -> Any:
    """The arrays of all outputs of `op`, or _UNKNOWN. Cached on the op."""
    if op.static_value is not None:
        return op.static_value
    found = _UNKNOWN
    read = op.definition.static_value_fn
    if read is not None:
        value = read(op)
        if isinstance(value, list):
            if any(each is None for each in value):
                return value  # not cached, because it may become known later
            found = value
        else:
            found = _UNKNOWN if value is None else [value]
    elif _worth_evaluating(op, depth):
        arrays = []
        for tensor in op._inputs:
            value = _value_of(tensor.op, depth + 1)
            if value is _UNKNOWN or value[tensor.value_index] is None:
                return _UNKNOWN  # not cached, because set_shape may make an input known
            arrays.append(value[tensor.value_index])
        if sum(array.size for array in arrays) <= _LIMIT:
            results = hooks.evaluate(op, arrays)
            found = _UNKNOWN if results is None else results
    if found is not _UNKNOWN:
        op.static_value = found
    return found


def _worth_evaluating(op: Operation, depth: int) -> bool:
    definition = op.definition
    return (
        bool(op._inputs)
        and depth < 64
        and not definition.traits & STATEFUL
        and all((size := t.static_shape.size) is None or size <= _LIMIT for t in op.outputs)
    )


class Sight(NamedTuple):
    """What somebody knows about tensors: their values (None: nothing) and shapes. A plan for known feeds knows more than the graph."""

    value_of: Callable[[Any], np.ndarray | None]
    shape_of: Callable[[Any], Shape]


STATIC = Sight(constant_value, operator.attrgetter("_static_shape"))


def constant_value_as_shape(tensor: Any, sight: Sight = STATIC) -> Shape:
    """The shape denoted by a size vector, with None for sizes that are unknown or -1."""
    if isinstance(tensor, (list, tuple)):
        raise TypeError("expected one tensor")
    value = sight.value_of(tensor)
    if value is not None:
        if value.ndim == 0:
            if value == -1:
                return UNKNOWN_SHAPE
            raise ValueError(
                f"Received a scalar with value '{value}' as shape; require a statically known scalar with value '-1' to describe an unknown shape."
            )
        if value.ndim > 1:
            raise InvalidArgumentError(None, None, f"Shape must be rank 1 but is rank {value.ndim}")
        sizes = value.tolist()
        for size in sizes:
            if size < -1:
                raise InvalidArgumentError(None, None, f"Invalid value in tensor used for shape: {size}")
        return Shape(None if size < 0 else int(size) for size in sizes)
    read = tensor.op.definition.spelled_shape_fn
    if read is not None:
        return read(tensor.op, tensor.value_index, sight)
    length = sight.shape_of(tensor).of_rank(1)[0]
    # A vector longer than the maximum rank does not denote a shape.
    return UNKNOWN_SHAPE if length is None or length > _MOST_DIMENSIONS else Shape((None,) * length)


def public_constant_value_as_shape(tensor: Any) -> TensorShape:
    try:
        return TensorShape(constant_value_as_shape(tensor))
    except InvalidArgumentError as error:
        raise ValueError(error.message) from None
