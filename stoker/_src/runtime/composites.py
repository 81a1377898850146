"""Feeding and fetching what is made of several tensors: SparseTensor, IndexedSlices and RaggedTensor."""

from __future__ import annotations

from typing import Any

from stoker._src.base.export import export_constant
from stoker._src.graph.indexed_slices import IndexedSlices
from stoker._src.graph.sparse_tensor import SparseTensor, SparseTensorValue
from stoker._src.graph.tensor import Tensor
from stoker._src.ops.ragged.ragged_tensor import RaggedTensor
from stoker._src.ops.ragged.ragged_value import RaggedTensorValue
from stoker._src.runtime.feeds import register_composite_feed
from stoker._src.runtime.fetches import register_composite_fetch

export_constant("stoker._src.graph.indexed_slices", "IndexedSlicesValue", v1="IndexedSlicesValue")


def _fetch_sparse(fetch: SparseTensor) -> Any:
    return [fetch.indices, fetch.values, fetch.dense_shape], lambda parts: SparseTensorValue(*parts)


register_composite_fetch(SparseTensor, _fetch_sparse)


def _feed(key: Any, parts: dict[str, Tensor], value: Any) -> list[tuple[Any, Any]]:
    """The tensors that feeding `key` feeds, by the names of their parts, with the values for them.

    Raises:
        TypeError: `value` is not of the kind `key` is.
    """
    if value is None:  # a plan is asked for, without values
        return [(tensor, None) for tensor in parts.values()]
    if hasattr(value, "dense_shape"):
        return [(tensor, getattr(value, name)) for name, tensor in parts.items()]
    if isinstance(value, tuple) and len(value) == len(parts):
        return list(zip(parts.values(), value))
    kind = type(key).__name__
    raise TypeError(f"A {kind} is fed a {kind}Value or a tuple ({', '.join(parts)}), not {value!r:.200}.")


def _feed_sparse(key: SparseTensor, value: Any) -> list[tuple[Any, Any]]:
    return _feed(key, {"indices": key.indices, "values": key.values, "dense_shape": key.dense_shape}, value)


def _feed_slices(key: IndexedSlices, value: Any) -> list[tuple[Any, Any]]:
    parts = {"values": key.values, "indices": key.indices}
    if key.dense_shape is not None:
        parts["dense_shape"] = key.dense_shape
    return _feed(key, parts, value)


register_composite_feed(SparseTensor, _feed_sparse)
register_composite_feed(IndexedSlices, _feed_slices)


def _fetch_ragged(fetch: RaggedTensor) -> Any:
    def rebuild(parts: list[Any]) -> Any:
        value, *splits = parts
        for cuts in reversed(splits):
            value = RaggedTensorValue(value, cuts)
        return value

    return fetch._parts(), rebuild


def _feed_ragged(key: RaggedTensor, value: Any) -> list[tuple[Any, Any]]:
    tensors = key._parts()
    if value is None:  # a plan is asked for, without values
        return [(tensor, None) for tensor in tensors]
    if not isinstance(value, RaggedTensorValue):
        raise TypeError(
            f"A RaggedTensor is fed a RaggedTensorValue, as tf.ragged.constant_value makes it, not {value!r:.200}."
        )
    if value.ragged_rank != key.ragged_rank:
        raise ValueError(
            f"A RaggedTensor of ragged rank {key.ragged_rank} is fed a value of ragged rank {value.ragged_rank}."
        )
    return list(zip(tensors, [value.flat_values, *value.nested_row_splits]))


register_composite_fetch(RaggedTensor, _fetch_ragged)
register_composite_feed(RaggedTensor, _feed_ragged)
