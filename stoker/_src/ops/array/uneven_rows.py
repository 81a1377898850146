"""Ops on rows of different lengths, which follow each other in one tensor: what ops on single rows become in functions of many records
(ops/support/rows.py). Only rewritten graphs contain them."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from stoker._src.base.errors import InvalidArgumentError
from stoker._src.base.shapes import Shape
from stoker._src.graph.definition import ANY, INT, unregistered
from stoker._src.graph.tensor import Operation, Tensor
from stoker._src.ops.array import casting, joining, ranges, shaping, slicing
from stoker._src.ops.array.constants import constant
from stoker._src.ops.support.rows import Input, numbers


def _taken(values: Any, at: np.ndarray) -> Any:
    return values[at] if isinstance(values, np.ndarray) else values[torch.from_numpy(at)]


def _starts(lengths: np.ndarray) -> np.ndarray:
    return np.cumsum(lengths) - lengths


def _of_values(values: Shape) -> Shape:
    return Shape((None, *values.dims[1:])) if values.dims else values


# ---- sizes -------------------------------------------------------------------------------------------------------


@ranges.SIZE.ragged_rows
def size_of_rows(op: Operation, inputs: list[Input]) -> list[Tensor] | None:
    inner = inputs[0].tensor.static_shape[1:]
    if not inner.known:
        return None
    return [casting.cast(inputs[0].lengths * int(np.prod(inner, dtype=np.int64)), op.attrs["out_type"])]


@shaping.SHAPE_OP.ragged_rows
def shape_of_rows(op: Operation, inputs: list[Input]) -> list[Tensor] | None:
    inner = inputs[0].tensor.static_shape[1:]
    if not inner.known:
        return None
    lengths = casting.cast(inputs[0].lengths, op.attrs["out_type"])
    fixed = [shaping.zeros_like(lengths) + size for size in inner]
    return [joining.PACK([lengths, *fixed], axis=1)]


EVEN_ROWS = unregistered("EvenRows(values: T, lengths: int64, size: vector host int64) -> (rows: T)", T=ANY)


@EVEN_ROWS.kernel
def even_rows_kernel(values: Any, lengths: torch.Tensor, size: list[int]) -> Any:
    inner = int(np.prod(values.shape[1:], dtype=np.int64))
    if set((lengths * inner).tolist()) - {int(np.prod(size, dtype=np.int64))}:
        raise InvalidArgumentError(None, None, f"Some rows do not have the size {size}.")
    return values.reshape(len(lengths), *size)


@EVEN_ROWS.shape(as_shapes=["size"])
def even_rows_shape(values: Shape, lengths: Shape, size: Shape) -> Shape:
    return Shape((None, *size.dims)) if size.dims is not None else size


@shaping.RESHAPE.ragged_rows
def reshape_of_rows(op: Operation, inputs: list[Input]) -> list[Any] | None:
    size = op.outputs[0].static_shape
    if any(each.stacked for each in inputs[1:]):
        return None
    if size.known and 0 not in size:
        return [EVEN_ROWS(inputs[0].tensor, inputs[0].lengths, list(size))]
    wanted = numbers(inputs[1])
    if inputs[0].rank == 1 and wanted is not None and wanted.tolist() == [-1]:
        return [inputs[0]]
    return None


# ---- parts, and rows of several parts ---------------------------------------------------------------------------------

CUT_ROWS = unregistered(
    "CutRows(values: T, lengths: int64, begin: host int64, end: host int64) -> (values: T, lengths: int64)", T=ANY
)


@CUT_ROWS.kernel
def cut_rows_kernel(values: Any, lengths: torch.Tensor, begin: int, end: int) -> Any:
    """The part `begin:end` of every row, in Python's sense."""
    sizes = lengths.numpy()
    first = np.clip(begin + sizes if begin < 0 else np.full_like(sizes, begin), 0, sizes)
    last = np.clip(end + sizes if end < 0 else np.full_like(sizes, end), 0, sizes)
    kept = np.maximum(last - first, 0)
    at = np.repeat(_starts(sizes) + first - _starts(kept), kept) + np.arange(int(kept.sum()))
    return _taken(values, at), torch.from_numpy(kept)


CUT_ROWS.shape(lambda values, lengths, begin, end: (_of_values(values), lengths))


@slicing.STRIDED_SLICE.ragged_rows
def strided_slice_of_rows(op: Operation, inputs: list[Input]) -> list[Any] | None:
    """Only `row[begin:end]` with fixed ends."""
    bounds = [numbers(each) for each in inputs[1:]]
    attrs = op.attrs
    if any(each is None or len(each) != 1 for each in bounds) or inputs[0].lengths is None:
        return None
    begin, end, stride = (int(each[0]) for each in bounds if each is not None)
    if stride != 1 or attrs["ellipsis_mask"] or attrs["new_axis_mask"] or attrs["shrink_axis_mask"]:
        return None
    begin, end = 0 if attrs["begin_mask"] else begin, np.iinfo(np.int32).max if attrs["end_mask"] else end
    values, lengths = CUT_ROWS(inputs[0].tensor, inputs[0].lengths, begin, end)
    return [Input(values, True, inputs[0].rank, lengths)]


CONCAT_ROWS = unregistered(
    "ConcatRows(values: N * T, lengths: N * int64) -> (values: T, lengths: int64)", T=ANY, N=INT(minimum=1)
)


@CONCAT_ROWS.kernel
def concat_rows_kernel(values: list[Any], lengths: list[torch.Tensor]) -> Any:
    sizes = [each.numpy() for each in lengths]
    total = np.sum(sizes, axis=0)
    at, places = _starts(total), []
    for size in sizes:
        places.append(np.repeat(at - _starts(size), size) + np.arange(int(size.sum())))
        at = at + size
    if isinstance(values[0], np.ndarray):
        joined = np.empty((int(total.sum()), *values[0].shape[1:]), dtype=object)
        for place, each in zip(places, values):
            joined[place] = each
        return joined, torch.from_numpy(total)
    made = values[0].new_empty((int(total.sum()), *values[0].shape[1:]))
    for place, each in zip(places, values):
        made[torch.from_numpy(place)] = each
    return made, torch.from_numpy(total)


CONCAT_ROWS.shape(lambda values, lengths: (_of_values(values[0]), lengths[0]))


@joining.CONCAT_V2.ragged_rows
def concat_of_rows(op: Operation, inputs: list[Input]) -> list[Any] | None:
    """Only along the dimension in which rows differ."""
    *given, axis = inputs
    along = numbers(axis)
    if along is None or int(along) not in (0, -(given[0].rank or 0)) or any(not each.rank for each in given):
        return None
    model = next(each.lengths for each in given if each.lengths is not None)
    values, lengths = [], []
    for each in given:
        if each.lengths is not None:
            values.append(each.tensor)
            lengths.append(each.lengths)
            continue
        shape = each.tensor.static_shape
        if not shape.known and not (each.stacked and shape.dims and None not in shape.dims[1:]):
            return None
        dims = list(shape)[1:] if each.stacked else list(shape)
        if each.stacked:
            flat = shaping.reshape(each.tensor, [-1, *dims[1:]])
        else:
            times = joining.PACK([ranges.size(model), *[constant(1)] * (len(dims) - 1)])
            flat = joining.tile(each.tensor, times)
        values.append(flat)
        lengths.append(shaping.zeros_like(model) + dims[0])
    made, total = CONCAT_ROWS(values, lengths)
    return [Input(made, True, given[0].rank, total)]


# ---- rows of sparse matrices ---------------------------------------------------------------------------------------

ROW_LENGTHS = unregistered("RowLengths(indices: int64, like: T) -> (lengths: int64)", T=ANY)


@ROW_LENGTHS.kernel
def row_lengths_kernel(indices: torch.Tensor, like: Any) -> torch.Tensor:
    """How many of the `indices` [n, 2] of a sparse matrix are in each of its rows, of which there are as many as in `like`."""
    return torch.from_numpy(np.bincount(indices[:, 0].numpy(), minlength=len(like)))


ROW_LENGTHS.shape(lambda indices, like: Shape((like[0],)))


def sparse_rows(op: Operation, inputs: list[Input], split: Any) -> list[Any] | None:
    """For ops that return a sparse matrix with a row for each of the strings in a vector: each row of the stack has one string.

    `split(strings)` returns the components of the matrix.
    """
    first = inputs[0]
    if first.lengths is not None or not first.stacked or any(each.stacked for each in inputs[1:]):
        return None
    if first.rank != 1 or first.tensor.static_shape[1] != 1:
        return None
    strings = shaping.reshape(first.tensor, [-1])
    indices, values, _ = split(strings)
    lengths = ROW_LENGTHS(indices, strings)
    columns = slicing.SLICE(indices, [0, 1], [-1, 1])
    within = joining.CONCAT_V2([shaping.zeros_like(columns), columns], 1)
    shapes = joining.PACK([shaping.zeros_like(lengths) + 1, lengths], axis=1)
    return [Input(within, True, 2, lengths), Input(values, True, 1, lengths), shapes]
