"""SparseTensors and RaggedTensors out of the parts that parsing ops give."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from stoker._src.base import dtypes
from stoker._src.graph.conversion import convert_to_tensor
from stoker._src.graph.definition import find_definition
from stoker._src.graph.scopes import name_scope
from stoker._src.graph.sparse_tensor import SparseTensor
from stoker._src.graph.tensor import Tensor
from stoker._src.ops import array, array_joining, casting


def sparse_tensors(indices: Sequence[Any], values: Sequence[Any], shapes: Sequence[Any]) -> list[SparseTensor]:
    """A SparseTensor of each triple."""
    return [SparseTensor(*parts) for parts in zip(indices, values, shapes)]


def merged_sparse(
    ids: Sequence[SparseTensor], values: SparseTensor, sizes: Any, *, already_sorted: bool
) -> SparseTensor:
    """Rows of ids and rows of values as one sparse tensor: the ids replace the last coordinate of the values.

    Raises:
        TypeError: a size that is neither a number nor a tensor.
        ValueError: another number of sizes than of ids.
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
        places = [array.reshape(casting.cast(each.values, dtypes.int64), [-1, 1]) for each in ids]
        indices = array.concat([values.indices[:, :-1], *places], 1)
        shape = array.concat(
            [
                values.dense_shape[:-1],
                array_joining.stack([casting.cast(convert_to_tensor(size), dtypes.int64) for size in sizes]),
            ],
            0,
        )
        merged = SparseTensor(indices, values.values, shape)
        return merged if already_sorted else _in_order(merged)


def _in_order(sparse: SparseTensor) -> SparseTensor:
    reorder = find_definition("SparseReorder")
    if reorder is None:
        raise NotImplementedError("A SparseFeature whose indices are not already_sorted needs the op SparseReorder.")
    ordered = reorder(sparse.indices, sparse.values, sparse.dense_shape, name="SparseReorder")
    indices, values = ordered
    return SparseTensor(indices, values, sparse.dense_shape)


def ragged_feature(key: Any, feature: Any, found: Mapping[Any, Any], *, batched: bool) -> Any:
    raise NotImplementedError(f"Feature {key} is a RaggedFeature, which needs RaggedTensor.")
