"""Native operations on rows of large tables: unique, gather, scatter-add, partition, stitch and segment reductions.

Each function returns None (or False) if the extension is missing or does not support the tensors. Callers then use torch.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch

from stoker._src.base.extensions import extension

_native = extension("stoker._src.ops.native.rows")
_segments = extension("stoker._src.ops.native.segments")
updates = extension("stoker._src.ops.native.updates")
_COMBINERS = {"Sum": 0, "Mean": 1, "SqrtN": 2}
_INTEGERS = (torch.int32, torch.int64)
_SUMMED = (torch.float32, torch.float64)
_PLACED = (*_INTEGERS, *_SUMMED)
_WIDE, _FEW = (
    16,
    512,
)  # elements of a row from which it fills a processor's vectors, and a number of rows for which this does not matter
_MOST_AT_ONCE = 1 << 20  # bytes that one thread copies before the others would help
_COORDINATES = 8  # most coordinates of an index


def _plain(*tensors: torch.Tensor) -> bool:
    for tensor in tensors:  # noqa: SIM110 (a generator takes three times as long)
        if not (tensor.is_cpu and tensor.is_contiguous()):
            return False
    return True


def unique(
    x: torch.Tensor, kind: torch.dtype, *, counted: bool = True
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor | None] | None:
    """The distinct elements of an integer vector in order of appearance, the position of each element (dtype `kind`), and the counts."""
    if _native is None or x.dtype not in _INTEGERS or kind not in _INTEGERS or not _plain(x):
        return None
    count = x.numel()
    places, found = torch.empty(count, dtype=kind), torch.empty(count, dtype=x.dtype)
    counts = torch.empty(count, dtype=kind) if counted else None
    total = _native.unique(x, count, x.dtype is torch.int64, places, kind is torch.int64, found, counts)
    return _shortened(found, total), places, None if counts is None else _shortened(counts, total)


def _shortened(vector: torch.Tensor, count: int) -> torch.Tensor:
    """The first elements of a vector. A much shorter one is copied, because the memory of the others would stay in use."""
    return vector.narrow(0, 0, count) if 2 * count >= vector.numel() else vector.narrow(0, 0, count).clone()


def all_distinct(indices: torch.Tensor, size: int) -> bool:
    """Whether all indices are distinct and in [0, size). False also if this cannot be determined quickly."""
    if _native is None or indices.dtype not in _INTEGERS or not _plain(indices):
        return False
    return _native.check_distinct(indices, indices.numel(), indices.dtype is torch.int64, size) == -1


def gather(table: torch.Tensor, indices: torch.Tensor) -> torch.Tensor | None:
    """`table[indices]` for a vector of indices; None also if an index is out of range."""
    if _native is None or indices.dtype not in _INTEGERS or table.ndim == 0 or not _plain(table, indices):
        return None
    size, *inner = table.shape
    count = indices.numel()
    out = torch.empty((count, *inner), dtype=table.dtype)
    row = out.nbytes // count if count else 0
    if not row:
        return None
    threads = torch.get_num_threads()
    outside = _native.gather(out, table, indices, count, indices.dtype is torch.int64, size, row, threads)
    return out if outside < 0 else None


def gather_batched(tables: torch.Tensor, indices: torch.Tensor, batch_dims: int) -> torch.Tensor | None:
    """`tables[b][indices[b]]` for each batch b, of which both have the same; None also if an index is out of range."""
    if _native is None or indices.dtype not in _INTEGERS or not (tables.is_cpu and indices.is_cpu):
        return None
    tables, indices = tables.contiguous(), indices.contiguous()
    batch, size, inner = tables.shape[:batch_dims], tables.shape[batch_dims], tables.shape[batch_dims + 1 :]
    out = torch.empty((*indices.shape, *inner), dtype=tables.dtype)
    count = indices.numel()
    if not 0 < out.nbytes <= _MOST_AT_ONCE:
        return None
    outside = _native.gather_batched(
        out, tables, indices, count, indices.dtype is torch.int64, count // math.prod(batch), size, out.nbytes // count
    )
    return out if outside < 0 else None


def gather_nd(table: torch.Tensor, indices: torch.Tensor) -> torch.Tensor | None:
    """The elements (or slices) of a table at coordinates, which are the last dimension of `indices`; None also if one is out of range."""
    if _native is None or indices.dtype not in _INTEGERS or not (table.is_cpu and indices.is_cpu):
        return None
    table, indices = table.contiguous(), indices.contiguous()
    *outer, depth = indices.shape
    out = torch.empty((*outer, *table.shape[depth:]), dtype=table.dtype)
    if not 0 < out.nbytes <= _MOST_AT_ONCE or not 0 < depth <= _COORDINATES:
        return None
    count = math.prod(outer)
    sizes = tuple(table.shape[:depth])
    outside = _native.gather_nd(out, table, indices, count, indices.dtype is torch.int64, sizes, out.nbytes // count)
    return out if outside < 0 else None


def add(
    table: torch.Tensor,
    indices: torch.Tensor,
    rows: torch.Tensor,
    *,
    subtract: bool = False,
    skip_negatives: bool = False,
) -> bool:
    """Adds (or subtracts) `rows[i]` to `table[indices[i]]` in place and in order. Returns whether it did."""
    if _native is None or table.dtype not in _SUMMED or rows.dtype is not table.dtype or not rows.numel():
        return False
    if indices.dtype not in _INTEGERS or not _plain(table, indices, rows):
        return False
    count = indices.numel()
    outside = _native.add(
        table, rows, indices, count, indices.dtype is torch.int64, table.shape[0], rows.numel() // count,
        table.dtype is torch.float64, subtract, skip_negatives, torch.get_num_threads(),
    )  # fmt: skip
    return outside < 0


def sparse_product(
    indices: torch.Tensor, values: torch.Tensor, dense: torch.Tensor, rows: int, *, transposed: bool
) -> torch.Tensor | None:
    """A matrix of `rows` rows with values at indices [count, 2], or its transpose, times a dense one; None also if an index is out of range.

    Terms are added in the order of the indices.
    """
    if _native is None or values.dtype not in _SUMMED or dense.dtype is not values.dtype:
        return None
    if indices.dtype not in _INTEGERS or not dense.numel() or not _plain(indices, values, dense):
        return None
    inner, width = dense.shape
    out = torch.empty((rows, width), dtype=values.dtype)
    done = _native.multiply(
        out, values, indices, values.numel(), indices.dtype is torch.int64, dense, rows, inner, width,
        int(transposed), values.dtype is torch.float64, torch.get_num_threads(),
    )  # fmt: skip
    return out if done else None


def update(
    rule: int, numbers: tuple[float, ...], tables: list[torch.Tensor], grad: torch.Tensor, indices: torch.Tensor
) -> bool:
    """Applies a rule of native/updates.c to the rows of a variable and its slots in place, in the order of `indices`.

    Returns whether it did. Many narrow rows are left to the caller: they are faster if they are collected first.
    """
    first, *slots = tables
    size, count = first.shape[0], indices.numel()
    width = first.numel() // size if size else 0
    if not count or not width or (width < _WIDE and count > _FEW) or indices.dtype not in _INTEGERS:
        return False
    if grad.dtype is not torch.float32 or not _plain(grad, indices, *tables):
        return False
    return updates.rows(
        rule, first, slots[0], slots[1] if len(slots) > 1 else None, grad, indices, count, indices.dtype is torch.int64,
        size, width, torch.get_num_threads(), numbers,
    )  # fmt: skip


def flatten(coordinates: torch.Tensor, sizes: Sequence[int]) -> torch.Tensor | None:
    """The places of coordinates [count, depth] in an array of these sizes; None also if one is out of range."""
    if _native is None or coordinates.dtype not in _INTEGERS or not 1 <= len(sizes) <= 8 or not _plain(coordinates):
        return None
    out = torch.empty(coordinates.shape[0], dtype=torch.int64)
    wide = coordinates.dtype is torch.int64
    return out if _native.flatten(out, coordinates, wide, coordinates.shape[0], tuple(sizes)) else None


def placed(
    coordinates: torch.Tensor, sizes: Sequence[int], values: torch.Tensor, usual: torch.Tensor, *, ascending: bool
) -> torch.Tensor | None:
    """An array of these sizes with each value at its coordinates [count, depth], and the `usual` value elsewhere. The last one wins.

    `values` may be a single number. None also if coordinates are out of range or, with `ascending`, do not ascend strictly.
    """
    kind, count = values.dtype, coordinates.shape[0]
    if _native is None or coordinates.dtype not in _INTEGERS or kind not in _PLACED or usual.dtype is not kind:
        return None
    if not 1 <= len(sizes) <= 8 or coordinates.shape[1] != len(sizes) or not _plain(coordinates, values, usual):
        return None
    if usual.numel() != 1 or (values.dim() and values.shape != (count,)):
        return None
    out = torch.empty(sizes, dtype=kind)
    wide, step = coordinates.dtype is torch.int64, values.dim()
    done = _native.place(
        out, out.numel(), coordinates, wide, count, tuple(sizes), values, step, usual, kind.itemsize, ascending
    )
    return out if done else None


def reversed_sequences(x: torch.Tensor, lengths: torch.Tensor, seq_dim: int, batch_dim: int) -> torch.Tensor | None:
    """x with the first `lengths[b]` elements along `seq_dim` of each sequence b reversed; None also if a length is out of range."""
    if _native is None or lengths.dtype not in _INTEGERS or not x.is_cpu or not _plain(lengths):
        return None
    x = x.contiguous()
    shape, first, second = x.shape, min(seq_dim, batch_dim), max(seq_dim, batch_dim)
    outer, middle = math.prod(shape[:first]), math.prod(shape[first + 1 : second])
    inner = math.prod(shape[second + 1 :]) * x.element_size()
    out = torch.empty_like(x)
    done = _native.reverse(
        out, x, lengths, lengths.dtype is torch.int64, outer, shape[first], middle, shape[second], inner,
        seq_dim < batch_dim,
    )  # fmt: skip
    return out if done else None


def partition(rows: torch.Tensor, numbers: torch.Tensor, parts: int) -> list[torch.Tensor] | int | None:
    """The rows with each number in [0, parts), in order, or the position of a number outside. `numbers` is an int32 vector."""
    if _native is None or numbers.dtype is not torch.int32 or not _plain(rows, numbers):
        return None
    count = numbers.numel()
    out = torch.empty_like(rows)
    row = out.nbytes // count if count else 0
    found = _native.partition(out, rows, numbers, count, row, parts)
    return list(out.split(found)) if isinstance(found, list) else found


def bounds(indices: list[torch.Tensor]) -> tuple[int, int] | None:
    """The lowest of all indices, but at most 0, and the highest, but at least -1. They are int32 vectors."""
    if _native is None or not all(each.dtype is torch.int32 and _plain(each) for each in indices):
        return None
    return _native.index_bounds(indices, [each.numel() for each in indices])


def stitch(indices: list[torch.Tensor], rows: list[torch.Tensor], size: int) -> torch.Tensor | None:
    """Rows at the places `indices` in [0, size) of a tensor: the last one wins, and places without a row are 0."""
    first = rows[0]
    if _native is None or not all(each.dtype is first.dtype and _plain(each) for each in rows):
        return None
    counts = [each.numel() for each in indices]
    out = torch.empty((size, *first.shape[1:]), dtype=first.dtype)
    row = out.nbytes // size if size else 0
    return out if _native.stitch(out, indices, rows, counts, size, row) else None


class Selection:
    """Distinct rows of several groups of tables (a variable and its slots), copied to flat tensors and back.

    `columns` has a list for each kind of table, with one table for each entry of `indices`. The tables of one entry have the same
    shape.
    """

    def __init__(self, columns: list[list[torch.Tensor]], indices: list[torch.Tensor]) -> None:
        self._columns, self._indices = columns, indices
        self._sizes: list[tuple[int, int, int]] = []
        self._wide = indices[0].dtype is torch.int64

    def taken(self) -> list[torch.Tensor] | None:
        """For each kind of table, the selected rows of all of them in one vector. None if the rows must be handled one by one."""
        dtype, kind = self._columns[0][0].dtype, self._indices[0].dtype
        if _native is None or dtype not in _SUMMED or kind not in _INTEGERS:
            return None
        item = dtype.itemsize
        total = 0
        for index, table in zip(self._indices, self._columns[0]):
            size = table.shape[0]
            if index.dtype is not kind or not index.is_contiguous() or not index.is_cpu or not size:
                return None
            count, width = index.numel(), table.numel() // size
            self._sizes.append((count, size, width * item))
            total += count * width
        for column in self._columns:
            for table in column:
                if table.dtype is not dtype or not table.is_cpu or not table.is_contiguous():
                    return None
        flats = [torch.empty(total, dtype=dtype) for _ in self._columns]
        return flats if self._exchange(flats, back=False) else None

    def put(self, flats: list[torch.Tensor]) -> None:
        """Copies the rows that `taken` returned back into the tables."""
        self._exchange(flats, back=True)

    def _exchange(self, flats: list[torch.Tensor], *, back: bool) -> bool:
        return _native.exchange(
            flats, self._columns, self._indices, self._sizes, self._wide, back, torch.get_num_threads()
        )


def _combinable(values: torch.Tensor, indices: torch.Tensor, ids: torch.Tensor) -> bool:
    return (
        _segments is not None
        and values.dtype in _SUMMED
        and values.is_cpu
        and values.dim() > 0
        and indices.dtype in _INTEGERS
        and indices.is_contiguous()
        and indices.dim() == 1
        and ids.dtype in _INTEGERS
        and ids.shape == indices.shape
    )


def combine(
    how: str, table: torch.Tensor, indices: torch.Tensor, ids: torch.Tensor, segments: int
) -> torch.Tensor | None:
    """The rows `table[indices]` of each segment combined by `how`: "Sum", "Mean" or "SqrtN".

    None also if an index or a segment id is out of range, or the ids are not ascending.
    """
    if segments < 0 or not table.is_contiguous() or not _combinable(table, indices, ids):
        return None
    size, *inner = table.shape
    out = table.new_empty((segments, *inner))
    width = math.prod(inner)
    done = _segments.combine(
        out, table, indices, indices.dtype is torch.int64, ids, ids.dtype is torch.int64, ids.stride(0), indices.numel(),
        size, width, segments, _COMBINERS[how], table.dtype is torch.float64, torch.get_num_threads(),
    )  # fmt: skip
    return out if done else None


def combine_grad(
    how: str, grad: torch.Tensor, indices: torch.Tensor, ids: torch.Tensor, size: int
) -> tuple[torch.Tensor, torch.Tensor] | None:
    """The gradient of `combine` for a table of `size` rows: the rows that can be nonzero, and their indices in ascending order."""
    if not _combinable(grad, indices, ids):
        return None
    segments, *inner = grad.shape
    if not grad.is_contiguous():
        grad = grad.contiguous()  # often a part of the gradient of a concatenation
    count = indices.numel()
    most = min(count, size)
    out, found = grad.new_empty((most, *inner)), indices.new_empty(most)
    width = math.prod(inner)
    total = _segments.combine_grad(
        out, found, grad, indices, indices.dtype is torch.int64, ids, ids.dtype is torch.int64, ids.stride(0), count,
        size, width, segments, _COMBINERS[how], grad.dtype is torch.float64, torch.get_num_threads(),
    )  # fmt: skip
    return None if total < 0 else (out.narrow(0, 0, total), found.narrow(0, 0, total))


def combine_many(
    how: str, members: list[tuple[torch.Tensor, torch.Tensor, torch.Tensor, int]]
) -> list[torch.Tensor] | None:
    """`combine` of many (table, indices, ids, segments) whose tables have rows of one shape and dtype. None if one cannot be combined."""
    first = members[0][0]
    inner, dtype = first.shape[1:], first.dtype
    tasks, sizes = [], []
    for table, indices, ids, segments in members:
        shape = table.shape
        if segments < 0 or shape[1:] != inner or table.dtype is not dtype or not _combinable(table, indices, ids):
            return None
        if not table.is_contiguous():
            return None
        wide, id_wide = indices.dtype is torch.int64, ids.dtype is torch.int64
        tasks.append((table, indices, wide, ids, id_wide, ids.stride(0), indices.shape[0], shape[0], segments))
        sizes.append(segments)
    out = first.new_empty((sum(sizes), *inner))
    double = dtype is torch.float64
    done = _segments.combine_many(out, tasks, math.prod(inner), _COMBINERS[how], double, torch.get_num_threads())
    return list(out.split(sizes)) if done else None


def combine_grad_many(
    how: str, members: list[tuple[torch.Tensor, torch.Tensor, torch.Tensor, int]]
) -> list[torch.Tensor] | None:
    """`combine_grad` of many (grad, indices, ids, size) of one dtype and row shape: rows and indices of each. None if one cannot be done."""
    first, kind = members[0][0], members[0][1].dtype
    inner, dtype = first.shape[1:], first.dtype
    tasks, rooms = [], []
    for grad, indices, ids, size in members:
        shape = grad.shape
        if (
            shape[1:] != inner
            or grad.dtype is not dtype
            or indices.dtype is not kind
            or not _combinable(grad, indices, ids)
        ):
            return None
        if not grad.is_contiguous():
            grad = grad.contiguous()
        count = indices.shape[0]
        id_wide = ids.dtype is torch.int64
        tasks.append((grad, indices, kind is torch.int64, ids, id_wide, ids.stride(0), count, size, shape[0]))
        rooms.append(min(count, size))
    room = sum(rooms)
    out, found = first.new_empty((room, *inner)), torch.empty(room, dtype=kind)
    double = dtype is torch.float64
    totals = _segments.combine_grad_many(
        out, found, tasks, math.prod(inner), _COMBINERS[how], double, torch.get_num_threads()
    )
    if min(totals) < 0:
        return None
    sizes = [size for total, room in zip(totals, rooms) for size in (total, room - total)]
    rows, places = out.split(sizes)[::2], found.split(sizes)[::2]
    return [each for pair in zip(rows, places) for each in pair]
