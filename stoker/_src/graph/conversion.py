"""Conversion of Python values to tensors by TensorFlow's rules. The dtype of a tensor is never changed.

Conversion functions are tried by ascending priority, and in order of registration within one priority, until one does
not return NotImplemented. It does not matter how specific a function's type is. The library's own priorities are:

    0     RaggedTensor, which is refused
    10    variables
    50    shapes; IndexedSlices, which become dense
    99    lists and tuples that hold tensors
    100   functions that users register, by default
    200   everything else, as a constant
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from stoker._src.base.dtypes import DType, as_dtype
from stoker._src.graph import context
from stoker._src.graph.tensor import Tensor, out_of_scope

Converter = Callable[..., Any]

_CONVERTERS: list[tuple[int, tuple[type, ...] | type, Converter]] = []
_cache: dict[type, list[Converter]] = {}


def register_tensor_conversion_function(base_type: Any, conversion_func: Converter, priority: int = 100) -> None:
    """Registers `conversion_func(value, dtype, name, as_ref)` for instances of `base_type`; lower priority first.

    The function may return NotImplemented to pass a value on to the next function.

    Raises:
        TypeError: `base_type` is not a type (or tuple of types), or the function is not callable.
    """
    bases = base_type if isinstance(base_type, tuple) else (base_type,)
    if not all(isinstance(base, type) for base in bases):
        raise TypeError("base_type must be a type or a tuple of types.")
    if not callable(conversion_func):
        raise TypeError("conversion_func must be callable.")
    _CONVERTERS.append((priority, base_type, conversion_func))
    _CONVERTERS.sort(key=lambda entry: entry[0])
    _cache.clear()


def _converters_for(kind: type) -> list[Converter]:
    found = _cache.get(kind)
    if found is None:
        found = [function for _, base, function in _CONVERTERS if issubclass(kind, base)]
        _cache[kind] = found
    return found


def convert_to_tensor(
    value: Any,
    dtype: Any = None,
    name: str | None = None,
    preferred_dtype: Any = None,
    dtype_hint: Any = None,
    *,
    as_ref: bool = False,
) -> Tensor:
    """Converts `value` to a tensor (of the current graph, or eager).

    Raises:
        TypeError: there is no conversion.
        ValueError: `value` is a tensor of another dtype, or cannot be represented in `dtype`.
    """
    wanted: DType | None = None if dtype is None else as_dtype(dtype).base_dtype
    if isinstance(value, Tensor):
        if wanted is not None and value.dtype.base_dtype is not wanted:
            raise ValueError(
                f"Tensor conversion requested dtype {wanted.name} for Tensor with dtype {value.dtype.base_dtype.name}: {value!r}"
            )
        return _localized(value)
    hint = dtype_hint if dtype_hint is not None else preferred_dtype
    hint = None if hint is None else as_dtype(hint).base_dtype
    for function in _converters_for(type(value)):
        result = NotImplemented
        if wanted is None and hint is not None:
            try:
                result = function(value, dtype=hint, name=name, as_ref=as_ref)
            except (TypeError, ValueError):
                result = NotImplemented
        if result is NotImplemented:
            result = function(value, dtype=wanted, name=name, as_ref=as_ref)
        if result is NotImplemented:
            continue
        if not isinstance(result, Tensor):
            raise RuntimeError(
                f"Conversion function {function!r} for type {type(value)} returned non-Tensor: {result!r}"
            )
        if wanted is not None and result.dtype.base_dtype is not wanted:
            raise RuntimeError(
                f"Conversion function {function!r} for type {type(value)} returned incompatible dtype: requested = {wanted.name}, actual = {result.dtype.name}"
            )
        return _localized(result)
    raise TypeError(f"Cannot convert {value!r} with type {type(value)} to Tensor: no conversion function registered.")


def _localized(tensor: Tensor) -> Tensor:
    """Converts an eager tensor used in a graph to a constant (or a capture) of that graph."""
    concrete = getattr(tensor, "is_eager", False)
    if concrete and not context.executing_eagerly():
        return context.target().capture_eager(tensor)
    if not concrete and context.executing_eagerly():
        if tensor.op.graph.adopts_eager_ops:
            return tensor
        if tensor.op.graph.building_function:
            raise TypeError(out_of_scope(tensor))
        raise TypeError(
            f"{tensor!r} is out of scope and cannot be used here: it is a symbolic tensor of a graph and has no value in "
            "eager mode. Use return values, explicit Python locals or TensorFlow collections to access it, or a Session to "
            "evaluate it."
        )
    return tensor


def convert_n_to_tensor(
    values: Any, dtype: Any = None, name: str | None = None, preferred_dtype: Any = None
) -> list[Tensor]:
    """Converts each of `values` to a tensor, named `name_0`, `name_1`, ..."""
    if not isinstance(values, (list, tuple)):
        raise TypeError("values must be a sequence.")
    return [
        convert_to_tensor(value, dtype, None if name is None else f"{name}_{i}", preferred_dtype)
        for i, value in enumerate(values)
    ]


def is_uneven(value: Any) -> bool:
    """Whether a nested list is ragged: its rows differ in length or depth."""
    return isinstance(value, (list, tuple)) and _list_shape(value) is None


def _list_shape(value: Any) -> tuple[int, ...] | None:
    """The sizes of a nested list; None if it is ragged."""
    if not isinstance(value, (list, tuple)):
        return getattr(value, "shape", ()) if isinstance(value, np.ndarray) else ()
    inner = {_list_shape(item) for item in value} or {()}
    shape = inner.pop()
    return None if inner or shape is None else (len(value), *shape)


def is_tensor(x: Any) -> bool:
    """Whether `x` is a tensor, a variable, or a composite tensor (SparseTensor, RaggedTensor)."""
    return isinstance(x, Tensor) or bool(getattr(x, "is_tensor_like", False))


def dtype_of(value: Any) -> DType | None:
    """The dtype of a tensor, variable or NumPy array; None for plain Python values."""
    known = getattr(value, "dtype", None)
    if known is None:
        return None
    if isinstance(known, DType):
        return known.base_dtype
    if isinstance(value, (np.ndarray, np.generic)) or not isinstance(value, (int, float, complex, str, bytes, list)):
        try:
            return as_dtype(known).base_dtype
        except TypeError:
            return None
    return None
