"""Builds SparseTensors and RaggedTensors from the outputs of parsing ops."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from stoker._src.base import dtypes
from stoker._src.base.errors import InvalidArgumentError
from stoker._src.graph.conversion import convert_to_tensor
from stoker._src.graph.scopes import name_scope
from stoker._src.graph.sparse_tensor import SparseTensor
from stoker._src.graph.tensor import Tensor
from stoker._src.ops.array import casting, constants, gathering, joining, shaping
from stoker._src.ops.math import arithmetic, scans, segment_reductions
from stoker._src.ops.ragged.ragged_tensor import RaggedTensor
from stoker._src.ops.sparse import sparse_ops


def sparse_tensors(indices: Sequence[Any], values: Sequence[Any], shapes: Sequence[Any]) -> list[SparseTensor]:
    """A SparseTensor of each triple."""
    return [SparseTensor(*parts) for parts in zip(indices, values, shapes)]


def merged_sparse(
    ids: Sequence[SparseTensor], values: SparseTensor, sizes: Any, *, already_sorted: bool
) -> SparseTensor:
    """Combines rows of ids and rows of values into one sparse tensor. Each value is in the row of its first id, at its ids.

    Raises:
        TypeError: a size is neither a number nor a tensor.
        ValueError: the numbers of sizes and ids differ.
    """
    sizes = [sizes] if len(ids) == 1 and not isinstance(sizes, (list, tuple)) else sizes
    if not isinstance(sizes, (list, tuple)):
        raise TypeError(f"The sizes of several index keys must be a list, got {type(sizes)}")
    if len(sizes) != len(ids):
        raise ValueError("sp_ids and vocab_size have to have equal lengths.")
    for size in sizes:
        if not isinstance(size, (int, Tensor)) or isinstance(size, bool):
            raise TypeError(f"vocab_size has to be a Tensor or Python int. Found {type(size)}")
    with name_scope(None, "SparseMerge", None):
        places = [shaping.reshape(casting.cast(each.values, dtypes.int64), [-1, 1]) for each in ids]
        indices = joining.concat([ids[0].indices[:, :-1], *places], 1)
        shape = joining.concat(
            [
                ids[0].dense_shape[:-1],
                joining.stack([casting.cast(convert_to_tensor(size), dtypes.int64) for size in sizes]),
            ],
            0,
        )
        try:
            merged = SparseTensor(indices, values.values, shape)
        except ValueError as error:  # sizes that do not match are an error in the data, not in the program
            raise InvalidArgumentError(None, None, f"As many values as ids are needed: {error}") from error
        return merged if already_sorted else _in_order(merged)


def _in_order(sparse: SparseTensor) -> SparseTensor:
    ordered = sparse_ops.SPARSE_REORDER(sparse.indices, sparse.values, sparse.dense_shape, name="SparseReorder")
    indices, values = ordered
    return SparseTensor(indices, values, sparse.dense_shape)


def ragged_feature(key: Any, feature: Any, found: Mapping[Any, Any], *, batched: bool) -> Any:
    """Builds a RaggedFeature from its values and partitions, each given as (values, the splits of its examples and steps).

    Raises:
        ValueError: a partition and the values have different numbers of outer levels.
    """
    values, outer = found[key if feature.value_key is None else feature.value_key]
    result: Any = values
    if outer:
        result = RaggedTensor._make(values, outer[-1])
    for partition in reversed(feature.partitions):
        if not hasattr(partition, "key"):
            length = constants.constant(partition.length, feature.row_splits_dtype)
            result = _uniform_rows(result, length, ragged=bool(outer))
            continue
        places, levels = found[partition.key]
        if len(levels) != len(outer):
            raise ValueError(
                f"Partition {partition.key} of feature {key} has {len(levels)} outer levels, not {len(outer)}."
            )
        places = casting.cast(places, feature.row_splits_dtype)
        kind = type(partition).__name__
        if outer:
            result = _partitioned(result, RaggedTensor._make(places, levels[-1]), kind, feature.validate)
        else:
            try:
                result = _PARTITIONS[kind](result, places, validate=feature.validate)
            except ValueError as error:  # sizes that do not match are an error in the data, not in the program
                raise InvalidArgumentError(None, None, f"Feature {key}, partition {partition.key}: {error}") from error
    for splits in reversed(outer[:-1]):
        result = RaggedTensor._make(result, splits)
    return result


_PARTITIONS: dict[str, Any] = {
    "RowSplits": RaggedTensor.from_row_splits,
    "RowLengths": RaggedTensor.from_row_lengths,
    "RowStarts": RaggedTensor.from_row_starts,
    "RowLimits": RaggedTensor.from_row_limits,
    "ValueRowIds": RaggedTensor.from_value_rowids,
}


def _uniform_rows(values: Any, length: Tensor, *, ragged: bool) -> Any:
    if isinstance(values, Tensor):  # the values of one example have no ragged level
        sizes = shaping.shape(values, out_type=length.dtype.base_dtype)
        return shaping.reshape(values, joining.concat([[-1], [length], sizes[1:]], 0))
    if not ragged:
        return RaggedTensor.from_uniform_row_length(values, length)
    inner = _uniform_rows(
        values.values, length, ragged=False
    )  # a tensor with one more dimension if no level below is ragged
    return RaggedTensor._make(inner, values.row_splits // length)


def _partitioned(values: RaggedTensor, partition: RaggedTensor, kind: str, validate: bool) -> RaggedTensor:
    """Partitions the values of every example by its row of `partition`. This adds a level below the examples."""
    if kind == "RowSplits":
        partition, kind = partition[:, 1:], "RowLimits"  # type: ignore[index]
    if kind == "RowLengths":
        inner = RaggedTensor.from_row_lengths(values.values, partition.values, validate=validate)
        return RaggedTensor._make(inner, partition.row_splits)
    examples = partition.value_rowids()
    if kind == "ValueRowIds":
        # The last row id of an example determines its number of rows.
        last = segment_reductions.UNSORTED_SEGMENT_MAX(partition.values, examples, partition.nrows())
        rows = arithmetic.maximum(last + 1, constants.constant(0, last.dtype.base_dtype))
        splits = joining.concat([constants.constant([0], rows.dtype.base_dtype), scans.cumsum(rows)], 0)
        numbers = partition.values + gathering.gather(splits, examples)
        inner = RaggedTensor.from_value_rowids(values.values, numbers, splits[-1], validate=validate)
        return RaggedTensor._make(inner, splits)
    # The positions are relative to the start of an example; make them relative to the start of the flat values.
    places = partition.values + gathering.gather(values.row_starts(), examples)
    inner = _PARTITIONS[kind](values.values, places, validate=validate)
    return RaggedTensor._make(inner, partition.row_splits)
