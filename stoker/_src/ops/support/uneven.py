"""Rows of different lengths: one after the other in a tensor (or array of strings), beside their lengths."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import torch


class Uneven:
    """Rows that are parts of `values`. `lengths` [rows] says how many of its first dimension each has."""

    __slots__ = ("_ends", "lengths", "values")

    def __init__(self, values: Any, lengths: torch.Tensor) -> None:
        self.values, self.lengths = values, lengths
        self._ends: list[int] | None = None

    def __len__(self) -> int:
        return len(self.lengths)

    @property
    def ends(self) -> list[int]:
        """Where rows begin and end: 0, the end of the first row, that of the second, ..."""
        if self._ends is None:
            self._ends = [0, *itertools.accumulate(self.lengths.tolist())]
        return self._ends

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

    def copy(self) -> Uneven:
        """The same rows in memory of their own."""
        own = self.values.copy() if isinstance(self.values, np.ndarray) else self.values.clone()
        return Uneven(own, self.lengths)

    def gathered(self, rows: Sequence[int]) -> Uneven:
        """Some rows, in any order."""
        count = len(rows)
        if count and rows[0] + count - 1 == rows[-1] and list(rows) == list(range(rows[0], rows[0] + count)):
            return self[rows[0] : rows[0] + count]
        ends = self.ends
        parts = [self.values[ends[row] : ends[row + 1]] for row in rows]
        lengths = self.lengths[torch.tensor(rows)]
        return Uneven(np.concatenate(parts) if isinstance(self.values, np.ndarray) else torch.cat(parts), lengths)


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
