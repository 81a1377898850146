"""Parsing of single records, as parsing of many: features of different lengths are rows of different lengths (ops/array/uneven_rows.py)."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import torch

from stoker._src.base import dtypes
from stoker._src.base.errors import InvalidArgumentError
from stoker._src.graph.definition import unregistered
from stoker._src.graph.tensor import Operation, Tensor
from stoker._src.ops.array import joining, shaping
from stoker._src.ops.array.constants import constant
from stoker._src.ops.array.uneven_rows import ROW_LENGTHS, unpadded_rows
from stoker._src.ops.io.parsing import PARSE_EXAMPLE_V2, PARSE_SEQUENCE_EXAMPLE_V2, is_padded
from stoker._src.ops.support import rows
from stoker._src.ops.support.rows import Input, again, numbers

STEPS_OF_ROWS = unregistered("StepsOfRows(lengths: int64, size: host int64) -> (steps: int64)")


@STEPS_OF_ROWS.kernel
def steps_of_rows_kernel(lengths: torch.Tensor, size: int) -> torch.Tensor:
    """How many steps of `size` values each row has."""
    if (lengths % size).any():
        raise InvalidArgumentError(None, None, f"Some rows do not consist of steps of {size} values.")
    return lengths // size


STEPS_OF_ROWS.shape(lambda lengths, size: lengths)


def _parsed_as_sparse(op: Operation, inputs: list[Input], moved: list[int]) -> list[Tensor] | None:
    """The parser's outputs, if these dense features become the last of the sparse ones."""
    sparse, dense = numbers(inputs[2]), numbers(inputs[3])
    if sparse is None or dense is None:
        return None
    attrs = op.attrs
    kept = [k for k in range(len(attrs["Tdense"])) if k not in moved]
    keys = [np.array([*sparse, *(dense[k] for k in moved)], object), np.array([dense[k] for k in kept], object)]
    types = [*attrs["sparse_types"], *(attrs["Tdense"][k] for k in moved)]
    tensors = [each.tensor for each in inputs]
    return again(
        op,
        [*tensors[:2], *[constant(each, dtypes.string) for each in keys], tensors[4], *[tensors[5 + k] for k in kept]],
        num_sparse=len(types),
        sparse_types=types,
        Tdense=[attrs["Tdense"][k] for k in kept],
        dense_shapes=[attrs["dense_shapes"][k] for k in kept],
    )


@PARSE_EXAMPLE_V2.rows
def parse_example_rows(op: Operation, inputs: list[Input]) -> list[Any] | None:
    """Sparse features, and dense ones whose length is open, become rows. Ragged features have no such form."""
    attrs = op.attrs
    shapes = attrs["dense_shapes"]
    moved = [k for k, shape in enumerate(shapes) if is_padded(shape)]
    if attrs["ragged_value_types"] or any(None in shapes[k][1:] or 0 in shapes[k][1:] for k in moved):
        return None
    if inputs[0].rank != 0 or any(each.stacked for each in inputs[1:]):
        return None
    made = _parsed_as_sparse(op, inputs, moved) if moved else rows.whole(op, inputs)
    if made is None:
        return None
    count = attrs["num_sparse"]
    total = count + len(moved)
    found: list[Any] = [None] * (3 * count)
    lengths = [ROW_LENGTHS(each, inputs[0].tensor) for each in made[:total]]
    for k in range(count):
        found[k] = Input(made[k][:, 1:], True, 2, lengths[k])
        found[count + k] = Input(made[total + k], True, 1, lengths[k])
        found[2 * count + k] = joining.PACK([lengths[k]], axis=1)
    dense = iter(made[3 * total :])
    for k, shape in enumerate(shapes):
        if k not in moved:
            found.append(next(dense))
            continue
        at = count + moved.index(k)
        inner = list(shape)[1:]
        steps = STEPS_OF_ROWS(lengths[at], math.prod(inner))
        values = made[total + at]
        found.append(Input(shaping.reshape(values, [-1, *inner]) if inner else values, True, len(shape), steps))
    return found


@PARSE_SEQUENCE_EXAMPLE_V2.rows
def parse_sequence_example_rows(op: Operation, inputs: list[Input]) -> list[Any] | None:
    """Dense features of the context, and dense lists of features."""
    attrs = op.attrs
    lists, contexts = attrs["Nfeature_list_dense"], len(attrs["Tcontext_dense"])
    if len(op.outputs) != contexts + 2 * lists or any(is_padded(shape) for shape in attrs["context_dense_shapes"]):
        return None
    made = rows.whole(op, inputs)
    if made is None:
        return None
    found: list[Any] = list(made)
    for k in range(contexts, contexts + lists):
        found[k] = Input(
            unpadded_rows(made[k], made[k + lists]), True, op.outputs[k].static_shape.rank, made[k + lists]
        )
    return found
