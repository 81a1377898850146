"""Ops on rows of different lengths, which follow each other in one tensor: what ops on single rows become in functions of many records
(ops/support/rows.py). Only rewritten graphs contain them."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import numpy as np
import torch

from stoker._src.base import dtypes
from stoker._src.base.errors import InvalidArgumentError
from stoker._src.base.shapes import UNKNOWN_SHAPE, Shape
from stoker._src.graph import context
from stoker._src.graph.definition import ANY, INT, TYPES, unregistered
from stoker._src.graph.tensor import Operation, Tensor
from stoker._src.ops.array import casting, joining, ranges, shaping, slicing
from stoker._src.ops.array.constants import constant
from stoker._src.ops.support.rows import Input, numbers
from stoker._src.ops.support.uneven import Uneven, joined, parts, rows_in
from stoker._src.ops.support.values import call_kernel


def _taken(values: Any, at: np.ndarray) -> Any:
    return values[at] if isinstance(values, np.ndarray) else values[torch.from_numpy(at)]


def _starts(lengths: np.ndarray) -> np.ndarray:
    return np.cumsum(lengths) - lengths


def _of_values(values: Shape) -> Shape:
    return Shape((None, *values.dims[1:])) if values.dims else values


# ---- sizes -------------------------------------------------------------------------------------------------------


@ranges.SIZE.ragged_rows
def size_of_rows(op: Operation, inputs: list[Input]) -> list[Tensor] | None:
    inner, lengths = inputs[0].tensor.static_shape[1:], inputs[0].lengths
    if not inner.known or lengths is None:
        return None
    return [casting.cast(lengths * int(np.prod(inner, dtype=np.int64)), op.attrs["out_type"])]


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


ITEM_OF_ROWS = unregistered("ItemOfRows(values: T, lengths: int64, at: host int64) -> (items: T)", T=ANY)


@ITEM_OF_ROWS.kernel
def item_of_rows_kernel(values: Any, lengths: torch.Tensor, at: int) -> Any:
    sizes = lengths.numpy()
    place = at + sizes if at < 0 else np.full_like(sizes, at)
    if ((place < 0) | (place >= sizes)).any():
        raise InvalidArgumentError(None, None, f"slice index {at} of dimension 0 out of bounds.")
    return _taken(values, _starts(sizes) + place)


ITEM_OF_ROWS.shape(lambda values, lengths, at: _of_values(values))


@slicing.STRIDED_SLICE.ragged_rows
def strided_slice_of_rows(op: Operation, inputs: list[Input]) -> list[Any] | None:
    """Only `row[begin:end]` with fixed ends."""
    bounds = [numbers(each) for each in inputs[1:]]
    attrs = op.attrs
    if any(each is None or len(each) != 1 for each in bounds) or inputs[0].lengths is None:
        return None
    begin, end, stride = (int(each[0]) for each in bounds if each is not None)
    if stride != 1 or attrs["ellipsis_mask"] or attrs["new_axis_mask"]:
        return None
    if attrs["shrink_axis_mask"]:
        return [ITEM_OF_ROWS(inputs[0].tensor, inputs[0].lengths, begin)]
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


unpadded_rows = UNPADDED_ROWS = unregistered("UnpaddedRows(rows: T, lengths: int64) -> (values: T)", T=ANY)


@UNPADDED_ROWS.kernel
def unpadded_rows_kernel(rows: Any, lengths: torch.Tensor) -> Any:
    """The first elements of each row."""
    kept = np.arange(rows.shape[1]) < lengths.numpy()[:, None]
    return rows[kept] if isinstance(rows, np.ndarray) else rows[torch.from_numpy(kept)]


UNPADDED_ROWS.shape(lambda rows, lengths: rows if rows.dims is None else Shape((None, *rows.dims[2:])))


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


DENSE_ROWS = unregistered("DenseRows(indices: int64, lengths: int64, shapes: int64, values: T) -> (values: T)", T=ANY)


@DENSE_ROWS.kernel
def dense_rows_kernel(indices: torch.Tensor, lengths: torch.Tensor, shapes: torch.Tensor, values: Any) -> Any:
    """The values, if the indices of each row are all of its positions."""
    sizes = lengths.numpy()
    at = np.arange(len(values)) - np.repeat(_starts(sizes), sizes)
    if not (np.array_equal(indices[:, 0].numpy(), at) and np.array_equal(shapes[:, 0].numpy(), sizes)):
        raise InvalidArgumentError(None, None, "Some rows have gaps.")
    return values


DENSE_ROWS.shape(lambda indices, lengths, shapes, values: values)


def sparse_to_dense_of_rows(op: Operation, inputs: list[Input]) -> list[Any] | None:
    """Vectors that have a value everywhere, such as the features of a record."""
    indices, shapes, values, default = inputs
    if indices.lengths is None or indices.lengths is not values.lengths or (indices.rank, values.rank) != (2, 1):
        return None
    if not shapes.stacked or shapes.lengths is not None or default.stacked:
        return None
    if op.outputs[0].static_shape.rank != 1 or indices.tensor.dtype is not dtypes.int64:
        return None
    made = DENSE_ROWS(indices.tensor, indices.lengths, shapes.tensor, values.tensor)
    return [Input(made, True, 1, indices.lengths)]


# ---- ops without a form for stacks ---------------------------------------------------------------------------------------


def has_rows_of_one_size(tensor: Tensor) -> bool:
    """Whether rows of this shape make up a tensor, or rows that differ in their first dimension only."""
    dims = tensor.static_shape.dims
    return dims is not None and None not in dims[1:]


def is_called_for_rows(op: Operation) -> bool:
    """Whether the kernel can be called for each row."""
    definition = op.definition
    planning = definition.planning
    kinds = [tensor.dtype for tensor in (*op._inputs, *op.outputs)]
    return not (
        definition.needs_context
        or planning.calls
        or planning.keeps
        or dtypes.resource in kinds
        or dtypes.variant in kinds
    )


def one_by_one(op: Operation, inputs: list[Input]) -> list[Any] | None:
    """Calls the kernel for each row. Results whose first dimension is unknown may differ in length; others must not differ."""
    if not is_called_for_rows(op):
        return None
    return _of_each_row(op, lambda row: call_kernel(op, row), inputs)


def chain_of_each_row(ops: list[Operation], given: list[Tensor], inputs: list[Input]) -> list[Any]:
    """Calls the kernels of several ops for each row, where what is between them may differ in size. Returns the outputs of the last one.

    `inputs` are what the tensors `given` have become.
    """

    places = {tensor: place for place, tensor in enumerate([*given, *(each for op in ops for each in op.outputs)])}
    steps = [(op, [places[tensor] for tensor in op._inputs]) for op in ops]

    def computed(values: list[Any]) -> list[Any]:
        results: list[Any] = []
        for op, taken in steps:
            results = call_kernel(op, [values[place] for place in taken])
            values += results
        return results

    return _of_each_row(ops[-1], computed, inputs)


def _of_each_row(op: Operation, computed: Callable[[list[Any]], list[Any]], inputs: list[Input]) -> list[Any]:
    """Adds what calls `computed` for each row, which returns the outputs of `op`."""
    definition = op.definition
    ragged = []
    for tensor in op.outputs:
        dims = tensor.static_shape.dims
        ragged.append(bool(dims) and dims[0] is None and None not in dims[1:])
    given = [
        tensor for each in inputs for tensor in ([each.tensor] if each.lengths is None else [each.tensor, each.lengths])
    ]
    each_row = unregistered(f"{definition.name}OfEachRow(inputs: [Tin]) -> (outputs: [Tout])", Tin=TYPES, Tout=TYPES)

    @each_row.kernel
    def of_each_row(inputs: list[Any], *, Tout: Any) -> list[Any]:
        values = iter(inputs)
        columns = [
            (next(values), forms.stacked) if forms.lengths is None else (Uneven(next(values), next(values)), True)
            for forms in wanted
        ]
        count = next(len(column) for column, stacked in columns if stacked)
        rows = zip(*[rows_in(column) if stacked else itertools.repeat(column, count) for column, stacked in columns])
        results = [computed(list(row)) for row in rows]
        found: list[Any] = []
        for column, differs in zip(zip(*results), ragged):
            if differs:
                found += parts(joined(column))
            elif isinstance(column[0], np.ndarray):
                found.append(np.stack(column) if column[0].ndim else np.array([each[()] for each in column], object))
            else:
                found.append(torch.stack(column))
        return found

    wanted = inputs
    types, shapes = [], []
    for tensor, differs in zip(op.outputs, ragged):
        types += [tensor.dtype.base_dtype, dtypes.int64] if differs else [tensor.dtype.base_dtype]
        dims = tensor.static_shape.dims
        known = UNKNOWN_SHAPE if dims is None else Shape(dims if differs else (None, *dims))
        shapes += [known, Shape((None,))] if differs else [known]
    each_row.shape(lambda inputs, *, Tout: shapes)
    graph = context.get_default_graph()
    attrs = {"Tin": [tensor.dtype for tensor in given], "Tout": types}
    made = iter(graph.add(each_row, given, attrs, graph.op_name(None, definition.name)).outputs)
    return [
        Input(next(made), True, tensor.static_shape.rank, next(made)) if differs else next(made)
        for tensor, differs in zip(op.outputs, ragged)
    ]
