"""ParseExampleV2 with the first steps of feature columns: strings are hashed, and of the indices of a sparse feature only the rows are made.

The plan replaces the ops that would do this by one kernel (runtime/plan/absorption.py). Strings that are only hashed never become Python
objects.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch

from stoker._src.base import dtypes
from stoker._src.base.dtypes import DType
from stoker._src.base.shapes import Shape
from stoker._src.formats.example import INDICES, ROWS, VALUES
from stoker._src.graph.tensor import Operation
from stoker._src.ops.array.slicing import MASKS, STRIDED_SLICE
from stoker._src.ops.io.parsing import PARSE_EXAMPLE_V2, example_parser, is_padded, kept_parser, row_labels
from stoker._src.ops.strings.string_ops import STRING_TO_HASH_BUCKET_FAST
from stoker._src.ops.support.values import from_numpy


def _absorbed(op: Operation, index: int, consumer: Operation, numbers: list[Any]) -> tuple[Any, ...] | None:
    """What a consumer computes from an output: ("hash", feature, buckets), ("row", feature) or ("batch",)."""
    count = op.attrs["num_sparse"]
    if any(op._inputs[i].static_shape.rank != 1 for i in (0, 2, 3, 4)) or op.attrs["ragged_value_types"]:
        return None
    if any(is_padded(shape) for shape in op.attrs["dense_shapes"]):
        return None
    kind, feature = divmod(index, count) if count else (3, 0)
    if kind == 1 and consumer.definition is STRING_TO_HASH_BUCKET_FAST:
        return "hash", feature, consumer.attrs["num_buckets"]
    if kind in (0, 2) and consumer.definition is STRIDED_SLICE:
        masks = [consumer.attrs[name] for name in MASKS]
        if kind == 0 and numbers == [[0, 0], [0, 1], [1, 1]] and masks == [1, 1, 0, 0, 2]:
            return "row", feature
        if kind == 2 and numbers == [[0], [1], [1]] and masks == [0, 0, 0, 0, 1]:
            return ("batch",)
    return None


def _string_array(strings: list[bytes]) -> np.ndarray:
    array = np.empty(len(strings), object)
    array[:] = strings
    return array


class _AbsorbingParser:
    """The kernel of a ParseExampleV2 that also does the work of some of its consumers. `wanted` says what it returns."""

    def __init__(self, op: Operation, wanted: list[Any]) -> None:
        self._wanted = wanted
        count = self._sparse = op.attrs["num_sparse"]
        kinds = op.attrs["sparse_types"]
        flags: list[int] = [0] * count
        buckets: list[tuple[int, ...]] = [()] * count
        for each in wanted:
            if isinstance(each, int):
                if each < 3 * count:
                    flags[each % count] |= (INDICES, VALUES, 0)[each // count]
            elif each[0] == "row":
                flags[each[1]] |= ROWS
            elif each[0] == "hash":
                buckets[each[1]] = (*buckets[each[1]], each[2])
        self._forms = (*zip(flags, buckets), *[None] * len(op.attrs["Tdense"]))
        # What each column has in the two vectors, in order: (what, of how many values each).
        self._parts: list[list[tuple[Any, int]]] = []
        self._float_values: list[bool] = []
        for i in range(count):
            parts: list[tuple[Any, int]] = []
            parts += [(i, 2)] if flags[i] & INDICES else []
            parts += [(("row", i), 1)] if flags[i] & ROWS else []
            parts += [(count + i, 1)] if flags[i] & VALUES and kinds[i] is dtypes.int64 else []
            parts += [(("hash", i, each), 1) for each in buckets[i]]
            self._parts.append(parts)
            self._float_values.append(bool(flags[i] & VALUES and kinds[i] is dtypes.float32))
        self._int_keys = [key for parts in self._parts for key, _ in parts]
        self._float_keys = [count + i for i, given in enumerate(self._float_values) if given]

    def __call__(
        self,
        serialized: np.ndarray,
        names: list[bytes],
        sparse_keys: list[bytes],
        dense_keys: list[bytes],
        ragged_keys: list[bytes],
        dense_defaults: list[Any],
        *,
        ctx: Any,
        Tdense: Sequence[DType],
        sparse_types: Sequence[DType],
        dense_shapes: Sequence[Shape],
        **unused: Any,
    ) -> list[Any]:
        parser = kept_parser(
            ctx,
            (sparse_keys, dense_keys, ragged_keys, dense_defaults),
            lambda: example_parser(sparse_keys, sparse_types, dense_keys, Tdense, dense_shapes, dense_defaults),
        )
        labels = row_labels(names, serialized)
        columns, ints, floats = parser.parse_forms(serialized, labels, torch.get_num_threads(), self._forms)
        count, found = self._sparse, dict[Any, Any]()
        sparse = columns[:count]
        sizes = [column[0] * width for column, parts in zip(sparse, self._parts) for _, width in parts]
        found.update(zip(self._int_keys, from_numpy(ints).split(sizes)))
        float_sizes = [column[0] for column, given in zip(sparse, self._float_values) if given]
        found.update(zip(self._float_keys, from_numpy(floats).split(float_sizes)))
        results = []
        for each in self._wanted:
            if not isinstance(each, int):
                results.append(torch.tensor(len(serialized)) if each[0] == "batch" else found[each])
            elif each < count:
                results.append(found[each].view(-1, 2))
            elif each < 2 * count:
                strings = sparse[each - count][2]
                results.append(found[each] if strings is None else _string_array(strings))
            elif each < 3 * count:
                results.append(torch.tensor([len(serialized), sparse[each - 2 * count][1]]))
            else:
                results.append(from_numpy(columns[each - 2 * count]))
        return results


PARSE_EXAMPLE_V2.absorbs(_absorbed, _AbsorbingParser)
