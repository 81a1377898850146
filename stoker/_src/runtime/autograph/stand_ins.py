"""Replacements for Python built-ins that do not accept tensors, for use in converted functions."""

from __future__ import annotations

import builtins
from typing import Any

from stoker._src.base import dtypes
from stoker._src.graph.conversion import convert_to_tensor
from stoker._src.graph.tensor import Tensor
from stoker._src.ops.array import casting, ranges
from stoker._src.ops.math import sorting, unary_functions
from stoker._src.ops.strings import numbers
from stoker._src.runtime.autograph.values import in_graph, length


def stand_in(function: Any) -> Any:
    """Returns the replacement for `function`; None if there is none."""
    try:
        return _BUILTINS.get(function)
    except TypeError:  # an unhashable object has no replacement
        return None


def _len(value: Any) -> Any:
    return length(value) if in_graph(value) else builtins.len(value)


def _range(*args: Any) -> Any:
    return ranges.range(*args) if any(map(in_graph, args)) else builtins.range(*args)


def _int(value: Any = 0, *base: Any, **named_base: Any) -> Any:
    if not in_graph(value):
        return builtins.int(value, *base, **named_base)
    if base not in ((), (10,)) or named_base.get("base", 10) != 10:
        raise NotImplementedError(f"int() of a tensor with a base: found {base or named_base}.")
    return _number(value, dtypes.int32)


def _float(value: Any = 0.0) -> Any:
    return _number(value, dtypes.float32) if in_graph(value) else builtins.float(value)


def _number(value: Any, dtype: dtypes.DType) -> Tensor:
    tensor = convert_to_tensor(value)
    if tensor.dtype.base_dtype is dtypes.string:
        return numbers.string_to_number(tensor, dtype)
    return casting.cast(tensor, dtype)


def _abs(value: Any) -> Any:
    return unary_functions.abs(value) if in_graph(value) else builtins.abs(value)


def _sorted(value: Any, **kwargs: Any) -> Any:
    if not in_graph(value):
        return builtins.sorted(value, **kwargs)
    if kwargs.get("key") is not None:
        raise NotImplementedError("sorted() of a tensor with a key: use tf.argsort.")
    return sorting.sort(value, direction="DESCENDING" if kwargs.get("reverse") else "ASCENDING")


_BUILTINS: dict[Any, Any] = {
    builtins.len: _len,
    builtins.range: _range,
    builtins.int: _int,
    builtins.float: _float,
    builtins.abs: _abs,
    builtins.sorted: _sorted,
}
