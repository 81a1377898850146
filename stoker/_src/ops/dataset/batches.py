"""Batches, windows, and their rows."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Any

import numpy as np
import torch

from stoker._src.base.errors import DataLossError, InvalidArgumentError
from stoker._src.graph.definition import INT, SHAPES, TYPES
from stoker._src.ops.dataset.values import (
    UNKNOWN,
    Dataset,
    Element,
    Elements,
    Generated,
    Simple,
    Transparent,
    at_most,
    define_dataset,
    limited,
    picked_columns,
    rows_of,
    shape_of,
    stacked,
)
from stoker._src.ops.support import uneven
from stoker._src.ops.support.uneven import Picked

_INPUT = "input_dataset: variant"


class _Batching(Transparent):
    def __init__(
        self, source: Elements, size: int, drop_remainder: bool, join: Callable[[list[Element]], Element]
    ) -> None:
        super().__init__(source)
        self._source, self._size, self._drop, self._join = source, size, drop_remainder, join

    def next(self) -> Element:
        found = at_most(self._source, self._size)
        if not found or (self._drop and len(found) < self._size):
            raise StopIteration
        return self._join(found)


def checked_batch_size(size: Any) -> int:
    if int(size) <= 0:
        raise InvalidArgumentError(None, None, f"Batch size must be greater than zero, got {int(size)}.")
    return int(size)


def batched(source: Any, size: Any, drop_remainder: Any, join: Callable[[list[Element]], Element] = stacked) -> Dataset:
    """The dataset of batches: `size` elements of `source` each, put together by `join`."""
    each, drop = checked_batch_size(size), bool(drop_remainder)
    return Simple(
        source,
        _Batching,
        each,
        drop,
        join,
        count=lambda found: limited(found, lambda all: all // each if drop else -(-all // each)),
    )


BATCH_DATASET_V2 = define_dataset(
    f"BatchDatasetV2({_INPUT}, batch_size: scalar int64, drop_remainder: scalar bool)", parallel_copy=False, metadata=""
)
BATCH_DATASET_V2.kernel(
    lambda input_dataset, batch_size, drop_remainder: batched(input_dataset, batch_size, drop_remainder)
)
BATCH_DATASET = define_dataset(f"BatchDataset({_INPUT}, batch_size: scalar int64)", metadata="")
BATCH_DATASET.kernel(lambda input_dataset, batch_size: batched(input_dataset, batch_size, False))

PADDED_BATCH_DATASET_V2 = define_dataset(
    f"PaddedBatchDatasetV2({_INPUT}, batch_size: scalar int64, padded_shapes: N * int64, padding_values: [Toutput_types], "
    "drop_remainder: scalar bool)",
    typed=False,
    parallel_copy=False,
    Toutput_types=TYPES(minimum=1),
    output_shapes=SHAPES(minimum=1),
    N=INT(minimum=1),
    metadata="",
)


def _padded_rows(rows: Any, sizes: list[int], padding: Any) -> Any:
    """`_padded` for the rows of a component, if only their lengths differ from what is wanted; else None."""
    if not isinstance(rows, Picked) or len(sizes) != len(rows.inner) + 1 or not rows.count:
        return None
    most = int(rows.sizes.max())
    if any(wanted not in (-1, size) for wanted, size in zip(sizes[1:], rows.inner)) or 0 <= sizes[0] < most:
        return None
    return rows.padded(most if sizes[0] < 0 else sizes[0], padding)


def _padded(values: list[Any], sizes: list[int], padding: Any) -> Any:
    """Stacks values of one component, each extended by `padding` to `sizes` (-1: to the largest of the batch)."""
    if sizes and len({value.shape[1:] for value in values}) == 1 and values[0].ndim == len(sizes):
        rows = _padded_rows(uneven.all_of(uneven.joined(values)), sizes, padding)
        if rows is not None:
            return rows
    shapes: list[list[int]] = [list(value.shape) for value in values]
    for shape in shapes:
        if len(shape) != len(sizes):
            raise InvalidArgumentError(
                None,
                None,
                f"All elements in a batch must have the same rank as the padded shape for component: expected rank "
                f"{len(sizes)}, got element of rank {len(shape)}.",
            )
    wanted = [max(sizes_here) if size < 0 else size for size, sizes_here in zip(sizes, zip(*shapes))] if sizes else []
    for shape in shapes:
        for axis, (size, most) in enumerate(zip(shape, wanted)):
            if size > most:
                raise DataLossError(
                    None,
                    None,
                    f"Attempted to pad to a smaller size than the input element: dimension {axis} is {size}, and the "
                    f"padded shape has {most}.",
                )
    if isinstance(values[0], np.ndarray):
        result: Any = np.full([len(values), *wanted], padding.item(), dtype=object)
    elif not wanted:
        return torch.stack(values)
    else:
        result = padding.expand([len(values), *wanted]).contiguous()
        result = result.clone() if result.data_ptr() == padding.data_ptr() else result
    # Assignments to slices take NumPy a fraction of the time that they take torch.
    by_numpy = isinstance(result, torch.Tensor) and result.dtype is not torch.bfloat16
    rows = result.numpy() if by_numpy else result
    for i, value in enumerate(values):
        rows[(i, *map(slice, shapes[i]))] = value.numpy() if by_numpy else value if value.ndim else value.item()
    return result


@PADDED_BATCH_DATASET_V2.kernel
def padded_batch_dataset_kernel(
    input_dataset: Any,
    batch_size: torch.Tensor,
    padded_shapes: list[torch.Tensor],
    padding_values: list[Any],
    drop_remainder: torch.Tensor,
) -> Dataset:
    sizes = [shape.tolist() for shape in padded_shapes]

    def join(elements: list[Element]) -> Element:
        columns = picked_columns(elements)
        if columns is None:
            return tuple(_padded(list(column), *how) for column, *how in zip(zip(*elements), sizes, padding_values))
        found = []
        for column, *how in zip(columns, sizes, padding_values):
            rows = _padded_rows(column, *how)
            if (
                rows is None
                and not isinstance(column, Picked)
                and list(column.shape[1:])
                == [size if wanted < 0 else wanted for size, wanted in zip(column.shape[1:], how[0])]
                and len(how[0]) == column.ndim - 1
            ):
                rows = column
            if rows is None:
                column = column.joined() if isinstance(column, Picked) else column
                rows = _padded(list(rows_of(column)), *how)
            found.append(rows)
        return tuple(found)

    return batched(input_dataset, batch_size, drop_remainder, join)


class _Unbatching(Elements):
    def __init__(self, source: Elements) -> None:
        super().__init__(source)
        self._source = source
        self._rows: Any = iter(())

    def next(self) -> Element:
        while True:
            try:
                return next(self._rows)
            except StopIteration:
                element = self._source.next()
                sizes = {shape_of(component).dims[:1] for component in element}  # type: ignore[index]
                if () in sizes or len(sizes) != 1:
                    raise InvalidArgumentError(
                        None, None, "Input element must have the same batch size in each component."
                    ) from None
                self._rows = zip(*map(rows_of, element))


UNBATCH_DATASET = define_dataset(f"UnbatchDataset({_INPUT})", metadata="")
UNBATCH_DATASET.kernel(
    lambda input_dataset: Simple(input_dataset, _Unbatching, count=lambda found: UNKNOWN if found else 0)
)


class _Windows(Elements):
    def __init__(self, source: Elements, size: int, shift: int, stride: int, drop_remainder: bool) -> None:
        super().__init__(source)
        self._source, self._size, self._shift, self._stride, self._drop = source, size, shift, stride, drop_remainder
        self._buffer: deque[Element] = deque()

    def next(self) -> Element:
        span = (self._size - 1) * self._stride + 1
        self._buffer.extend(at_most(self._source, span - len(self._buffer)))
        if not self._buffer or (self._drop and len(self._buffer) < span):
            raise StopIteration
        window = [self._buffer[i] for i in range(0, min(span, len(self._buffer)), self._stride)]
        for _ in range(min(self._shift, len(self._buffer))):
            self._buffer.popleft()
        if self._shift > span:
            at_most(self._source, self._shift - span)
        return tuple(_component(window, k) for k in range(len(window[0])))


def _component(window: list[Element], k: int) -> Dataset:
    return Generated(lambda: ((element[k],) for element in window), len(window))


WINDOW_DATASET = define_dataset(
    f"WindowDataset({_INPUT}, size: scalar int64, shift: scalar int64, stride: scalar int64, drop_remainder: scalar bool)",
    metadata="",
)


@WINDOW_DATASET.kernel
def window_dataset_kernel(
    input_dataset: Any, size: torch.Tensor, shift: torch.Tensor, stride: torch.Tensor, drop_remainder: torch.Tensor
) -> Dataset:
    for name, value in (("size", size), ("shift", shift), ("stride", stride)):
        if int(value) <= 0:
            raise InvalidArgumentError(None, None, f"Window {name} must be greater than zero, got {int(value)}.")
    each, step, stride_, drop = int(size), int(shift), int(stride), bool(drop_remainder)
    span = (each - 1) * stride_ + 1
    return Simple(
        input_dataset,
        _Windows,
        each,
        step,
        stride_,
        drop,
        count=lambda found: limited(found, lambda all: max(0, (all - span) // step + 1) if drop else -(-all // step)),
    )
