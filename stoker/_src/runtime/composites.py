"""Feeding and fetching what is made of several tensors: SparseTensor and IndexedSlices."""

from __future__ import annotations

from collections import namedtuple
from typing import Any

from stoker._src.base.export import export_constant
from stoker._src.graph.indexed_slices import IndexedSlices
from stoker._src.graph.sparse_tensor import SparseTensor, SparseTensorValue
from stoker._src.graph.tensor import Tensor
from stoker._src.runtime.fetches import register_composite_fetch

IndexedSlicesValue = namedtuple("IndexedSlicesValue", ["values", "indices", "dense_shape"])
IndexedSlicesValue.__doc__ = "What a run gives for IndexedSlices: arrays (dense_shape may be None)."
export_constant(__name__, "IndexedSlicesValue", v1="IndexedSlicesValue")


def _fetch_sparse(fetch: SparseTensor) -> Any:
    return [fetch.indices, fetch.values, fetch.dense_shape], lambda parts: SparseTensorValue(*parts)


def _fetch_slices(fetch: IndexedSlices) -> Any:
    if fetch.dense_shape is None:
        return [fetch.values, fetch.indices], lambda parts: IndexedSlicesValue(*parts, None)
    return [fetch.values, fetch.indices, fetch.dense_shape], lambda parts: IndexedSlicesValue(*parts)


register_composite_fetch(SparseTensor, _fetch_sparse)
register_composite_fetch(IndexedSlices, _fetch_slices)


def parts_of_key(key: Any) -> list[Tensor] | None:
    """The tensors that feeding `key` feeds, or None when it is no composite."""
    if isinstance(key, SparseTensor):
        return [key.indices, key.values, key.dense_shape]
    if isinstance(key, IndexedSlices):
        return [key.values, key.indices, *([] if key.dense_shape is None else [key.dense_shape])]
    return None


def parts_of_value(key: Any, value: Any) -> list[Any]:
    """The values for `parts_of_key(key)`.

    Raises:
        TypeError: `value` is not a triple of the kind `key` is.
    """
    if isinstance(key, SparseTensor):
        if isinstance(value, SparseTensor) and not hasattr(value.values, "numpy"):
            raise TypeError("The value of a feed cannot be a SparseTensor of a graph; feed a tf.SparseTensorValue.")
        wanted = ("indices", "values", "dense_shape")
    else:
        wanted = ("values", "indices", "dense_shape")[: len(parts_of_key(key) or ())]
    if hasattr(value, "dense_shape"):
        return [getattr(value, name) for name in wanted]
    if isinstance(value, tuple) and len(value) == len(wanted):
        return list(value)
    raise TypeError(f"A {type(key).__name__} is fed a {type(key).__name__}Value or a tuple ({', '.join(wanted)}), not {value!r:.200}.")
