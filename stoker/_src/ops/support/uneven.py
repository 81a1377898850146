"""Rows of different lengths: one after the other in a tensor (or array of strings), beside their lengths."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import torch

from stoker._src.base.extensions import extension

_native = extension("stoker._src.ops.native.rows")


class Uneven:
    """Rows that are parts of `values`, one after the other. `lengths` [rows] says how many of its first dimension each has."""

    __slots__ = ("_ends", "_inner", "_sizes", "_starts", "lengths", "values")

    def __init__(self, values: Any, lengths: torch.Tensor) -> None:
        self.values, self.lengths = values, lengths
        self._ends: list[int] | None = None
        self._inner: tuple[int, ...] | None = None
        self._sizes: np.ndarray | None = None
        self._starts: np.ndarray | None = None

    def __len__(self) -> int:
        return len(self.lengths)

    @property
    def ends(self) -> list[int]:
        """Where rows begin and end: 0, the end of the first row, that of the second, ..."""
        if self._ends is None:
            self._ends = [0, *itertools.accumulate(self.lengths.tolist())]
        return self._ends

    @property
    def inner(self) -> tuple[int, ...]:
        """The dimensions that all rows have."""
        if self._inner is None:
            self._inner = tuple(self.values.shape[1:])
        return self._inner

    @property
    def sizes(self) -> np.ndarray:
        """The lengths as int64 [rows]."""
        if self._sizes is None:
            self._sizes = self.lengths.numpy()
        return self._sizes

    @property
    def starts(self) -> np.ndarray:
        """Where rows begin, int64 [rows]."""
        if self._starts is None:
            self._starts = self.sizes.cumsum() - self.sizes
        return self._starts

    def __iter__(self) -> Iterator[Any]:
        ends, values = self.ends, self.values
        if isinstance(values, np.ndarray):
            return (values[begin:end] for begin, end in itertools.pairwise(ends))
        return iter(values.split_with_sizes(self.lengths.tolist()))

    def __getitem__(self, rows: slice) -> Uneven:
        """A range of rows."""
        first, last, step = rows.indices(len(self))
        assert step == 1
        last = max(first, last)
        return Uneven(self.values[self.ends[first] : self.ends[last]], self.lengths[first:last])


class Picked:
    """Some rows of one or several sources, in any order, where they lie: (source, the rows of it, their places). If there is one source,
    they are in their places."""

    __slots__ = ("count", "inner", "parts", "sizes")

    def __init__(self, parts: Sequence[tuple[Uneven, np.ndarray, np.ndarray]], count: int) -> None:
        """Refers to rows.

        Raises:
            ValueError: rows differ in other dimensions than the first, or in type.
        """
        first = parts[0][0].values
        if len(parts) == 1:
            source, rows, _ = parts[0]
            self.sizes = source.sizes[rows]
        else:
            self.sizes = np.empty(count, np.int64)
            for source, rows, places in parts:
                if source.values.shape[1:] != first.shape[1:] or source.values.dtype != first.dtype:
                    raise ValueError("rows of different sizes")
                self.sizes[places] = source.sizes[rows]
        self.parts, self.count = parts, count
        self.inner = parts[0][0].inner  # the dimensions that the rows have in common

    def copied(self, starts: np.ndarray, out: Any) -> Any:
        """Copies the rows to where they are to start in `out`, which is returned."""
        if len(self.parts) == 1:
            source, rows, _ = self.parts[0]
            copy_parts(out, starts, source.values, source.starts[rows], self.sizes)
            return out
        for source, rows, places in self.parts:
            copy_parts(out, starts[places], source.values, source.starts[rows], self.sizes[places])
        return out

    def joined(self) -> Uneven:
        """The rows one after the other."""
        first, size = self.parts[0][0].values, (int(self.sizes.sum()), *self.inner)
        values = np.empty(size, object) if isinstance(first, np.ndarray) else first.new_empty(size)
        self.copied(self.sizes.cumsum() - self.sizes, values)
        return Uneven(values, torch.from_numpy(self.sizes))

    def padded(self, width: int, padding: Any = None) -> Any:
        """A tensor [rows, width, ...], filled with `padding` (by default zeros or empty strings) where rows are shorter."""
        first, size = self.parts[0][0].values, (self.count * width, *self.inner)
        if isinstance(first, np.ndarray):
            flat: Any = np.full(size, b"" if padding is None else padding.item(), dtype=object)
        else:
            usual = 0 if padding is None else padding.item()
            flat = torch.full(size, usual, dtype=first.dtype) if usual else torch.zeros(size, dtype=first.dtype)
        self.copied(np.arange(self.count) * width, flat)
        return flat.reshape(self.count, width, *self.inner)


class Row:
    """One of the rows of `Uneven`, which stay together as long as one of them is in use."""

    __slots__ = ("place", "source")

    def __init__(self, source: Uneven, place: int) -> None:
        self.source, self.place = source, place

    @staticmethod
    def all_of(rows: Uneven) -> list[Row]:
        return [Row(rows, place) for place in range(len(rows))]

    def copied(self) -> Any:
        """The row in memory of its own."""
        values = self.source.values[self.source.ends[self.place] : self.source.ends[self.place + 1]]
        return values.copy() if isinstance(values, np.ndarray) else values.clone()


def picked(rows: Sequence[Any]) -> Picked | None:
    """These rows, where they lie; None if one is something else, or they do not fit together."""
    sources: dict[int, tuple[Uneven, list[int], list[int]]] = {}
    for number, row in enumerate(rows):
        if not isinstance(row, Row):
            return None
        _, places, numbers = sources.setdefault(id(row.source), (row.source, [], []))
        places.append(row.place)
        numbers.append(number)
    try:
        return Picked([(source, np.array(a), np.array(b)) for source, a, b in sources.values()], len(rows))
    except ValueError:
        return None


def all_of(rows: Uneven) -> Picked:
    everything = np.arange(len(rows))
    return Picked([(rows, everything, everything)], len(rows))


def copy_parts(out: Any, places: np.ndarray, values: Any, starts: np.ndarray, lengths: np.ndarray) -> None:
    """Copies `values[starts[i] : starts[i] + lengths[i]]` to `out[places[i]]` and what follows, for each i. The numbers are int64."""
    if isinstance(out, torch.Tensor):
        if out.dtype is torch.bfloat16:
            out, values = out.view(torch.int16), values.view(torch.int16)
        out, values = out.numpy(), values.contiguous().numpy()
        inner = math.prod(out.shape[1:]) * out.itemsize
        if _native is not None and inner:
            _native.copy_parts(out, places, values, starts, lengths, inner)
            return
    for place, start, length in zip(places.tolist(), starts.tolist(), lengths.tolist()):
        out[place : place + length] = values[start : start + length]


def joined(rows: Sequence[Any]) -> Uneven:
    """Rows that are tensors of their own. They agree in all dimensions but the first.

    Raises:
        ValueError or RuntimeError: they do not.
    """
    if len({row.shape[1:] for row in rows}) > 1:
        raise ValueError("rows of different sizes")
    lengths = torch.from_numpy(np.array([row.shape[0] for row in rows], np.int64))
    values = np.concatenate(rows) if isinstance(rows[0], np.ndarray) else torch.cat(list(rows))
    return Uneven(values, lengths)


def parts(rows: Any) -> list[Any]:
    """The values and lengths of rows, also of rows of the same length that are a tensor."""
    if isinstance(rows, Uneven):
        return [rows.values, rows.lengths]
    count, length = rows.shape[:2]
    return [rows.reshape(count * length, *rows.shape[2:]), torch.full((count,), length)]


def as_uneven(rows: Any) -> Uneven:
    """Rows of any kind as `Uneven`.

    Raises:
        ValueError: they have no dimension of their own.
    """
    if isinstance(rows, Uneven):
        return rows
    if rows.ndim < 2:
        raise ValueError("rows without a length")
    return Uneven(*parts(rows))


def even(rows: Any) -> Any:
    """The tensor that rows of one length make up.

    Raises:
        ValueError: the lengths differ.
    """
    if not isinstance(rows, Uneven):
        return rows
    lengths = set(rows.lengths.tolist())
    if len(lengths) != 1:
        raise ValueError("rows of different lengths")
    return rows.values.reshape(len(rows), lengths.pop(), *rows.values.shape[1:])


def rows_in(rows: Any) -> Iterator[Any]:
    """The rows of `Uneven` or of a tensor. A row that is a single string is an array without dimensions."""
    if isinstance(rows, np.ndarray) and rows.ndim == 1:
        return (rows[i : i + 1].reshape(()) for i in range(len(rows)))
    return iter(rows)
