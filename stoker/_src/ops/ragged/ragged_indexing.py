"""`ragged[...]`: rows by index or slice, slices of every row, new dimensions."""

from __future__ import annotations

from typing import Any

from stoker._src.graph.conversion import convert_to_tensor
from stoker._src.graph.scopes import name_scope
from stoker._src.graph.static_values import constant_value
from stoker._src.graph.tensor import Tensor
from stoker._src.ops.array import casting, constants, ranges
from stoker._src.ops.math import arithmetic
from stoker._src.ops.ragged import ragged_functions, ragged_ops
from stoker._src.ops.ragged.ragged_tensor import RaggedTensor

_ALL = slice(None)


def ragged_getitem(ragged: RaggedTensor, key: Any) -> Any:
    """`ragged[key]`.

    Raises:
        ValueError: an index is in a ragged dimension, where rows may be shorter.
        IndexError: a row is statically known not to exist.
    """
    with name_scope(None, "RaggedGetItem", [ragged.row_splits]):
        keys = list(key) if isinstance(key, tuple) else [key]
        return _rows(ragged, _expanded(ragged, keys))


def _is_ellipsis(key: Any) -> bool:
    return key is Ellipsis


def _expanded(ragged: RaggedTensor, keys: list[Any]) -> list[Any]:
    """The keys with `...` expanded."""
    dots = [i for i, key in enumerate(keys) if _is_ellipsis(key)]
    if not dots:
        return keys
    if len(dots) > 1:
        raise ValueError("Only one ellipsis is allowed in an index.")
    rank = ragged.static_shape.rank
    if rank is None:
        raise ValueError("An ellipsis needs the rank of the RaggedTensor.")
    taken = sum(key is not None and not _is_ellipsis(key) for key in keys)
    return [*keys[: dots[0]], *[_ALL] * max(rank - taken, 0), *keys[dots[0] + 1 :]]


def _index(value: Any, keys: list[Any]) -> Any:
    """`value[keys]`, where `value` may be a plain tensor."""
    if not keys:
        return value
    return _rows(value, keys) if isinstance(value, RaggedTensor) else value[tuple(keys)]


def _rows(ragged: RaggedTensor, keys: list[Any]) -> Any:
    first, rest = keys[0], keys[1:]
    if first is None:
        inner = _index(ragged, rest)
        return ragged_functions.expand_dims(inner, 0)
    if isinstance(first, slice):
        if first != _ALL:
            rows = ranges.range(ragged.nrows())[first]
            ragged = ragged_functions.gather_rows(ragged, rows)
        return _columns(ragged, rest) if rest else ragged
    return _index(_row(ragged, first), rest)


def _row(ragged: RaggedTensor, at: Any) -> Any:
    """Row `at`. A negative index counts from the end."""
    splits = ragged.row_splits
    known = constant_value(at) if isinstance(at, Tensor) else at
    rows = ragged.static_shape[0] if ragged.static_shape.rank is not None else None
    if known is not None and rows is not None and not -rows <= int(known) < rows:
        raise IndexError(f"Row key {int(known)} out of bounds")
    if known is not None:
        at = int(known)
        start, end = splits[:-1][at], splits[1:][at]
    else:
        place = casting.cast(convert_to_tensor(at), splits.dtype.base_dtype)
        place = arithmetic.floormod(place, ragged.nrows())
        start, end = splits[place], splits[place + 1]
    return _cut(ragged.values, start, end)


def _cut(values: Any, start: Any, end: Any) -> Any:
    if isinstance(values, RaggedTensor):
        return ragged_functions.gather_rows(values, ranges.range(start, end))
    return values[start:end]


def _columns(ragged: RaggedTensor, keys: list[Any]) -> Any:
    """Applies keys to the dimensions after the row dimension."""
    first, rest = keys[0], keys[1:]
    if first is None:
        inner = _columns(ragged, rest) if rest else ragged
        return ragged_functions.expand_dims(inner, 1)
    if isinstance(first, slice):
        cut = ragged if first == _ALL else _sliced(ragged, first)
        return cut.with_values(_index(cut.values, [_ALL, *rest])) if rest else cut
    if ragged.uniform_row_length is None:
        raise ValueError("Cannot index into an inner ragged dimension.")
    place = casting.cast(convert_to_tensor(first), ragged.row_splits.dtype.base_dtype)
    place = arithmetic.floormod(place, arithmetic.maximum(ragged.uniform_row_length, 1))
    picked = ragged_functions.gather_rows(ragged.values, ragged.row_starts() + place)
    return _index(picked, [_ALL, *rest]) if rest else picked


def _sliced(ragged: RaggedTensor, key: slice) -> RaggedTensor:
    """Applies the same Python slice to every row."""
    kind = ragged.row_splits.dtype.base_dtype
    lengths = ragged.row_lengths()
    step = 1 if key.step is None else key.step
    if not isinstance(step, int) or step == 0:
        raise ValueError(f"The step of a slice of rows must be a number other than 0, got {step!r}")
    low, high = (0, lengths) if step > 0 else (-1, lengths - 1)

    def bound(value: Any, missing: Any) -> Tensor:
        if value is None:
            return missing
        place = casting.cast(convert_to_tensor(value), kind)
        place = arithmetic.add(arithmetic.multiply(casting.cast(place < 0, kind), lengths), place)
        return arithmetic.minimum(arithmetic.maximum(place, constants.constant(low, kind)), high)

    zeros = lengths * 0
    start = bound(key.start, zeros if step > 0 else lengths - 1)
    stop = bound(key.stop, lengths if step > 0 else zeros - 1)
    starts = ragged.row_starts()
    picked = ragged_ops.RAGGED_RANGE(starts + start, starts + stop, constants.constant(step, kind), Tsplits=kind)
    values = ragged_functions.gather_rows(ragged.values, picked.rt_dense_values)
    return RaggedTensor._make(values, picked.rt_nested_splits)


RaggedTensor.__getitem__ = ragged_getitem  # type: ignore[attr-defined]
