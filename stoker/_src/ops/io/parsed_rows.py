"""Parsing of single records, as parsing of many: features of different lengths are rows of different lengths (ops/array/uneven_rows.py)."""

from __future__ import annotations

from typing import Any

from stoker._src.graph.tensor import Operation
from stoker._src.ops.array import joining
from stoker._src.ops.array.uneven_rows import ROW_LENGTHS, unpadded_rows
from stoker._src.ops.io.parsing import PARSE_EXAMPLE_V2, PARSE_SEQUENCE_EXAMPLE_V2, is_padded
from stoker._src.ops.support import rows
from stoker._src.ops.support.rows import Input


@PARSE_EXAMPLE_V2.rows
def parse_example_rows(op: Operation, inputs: list[Input]) -> list[Any] | None:
    """A sparse feature becomes rows; what is padded to the longest record, and ragged features, have no such form."""
    attrs = op.attrs
    if attrs["ragged_value_types"] or any(is_padded(shape) for shape in attrs["dense_shapes"]):
        return None
    made = rows.whole(op, inputs)
    if made is None:
        return None
    count = attrs["num_sparse"]
    found: list[Any] = list(made)
    for k in range(count):
        indices, values = made[k], made[count + k]
        lengths = ROW_LENGTHS(indices, inputs[0].tensor)
        found[k] = Input(indices[:, 1:], True, 2, lengths)
        found[count + k] = Input(values, True, 1, lengths)
        found[2 * count + k] = joining.PACK([lengths], axis=1)
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
