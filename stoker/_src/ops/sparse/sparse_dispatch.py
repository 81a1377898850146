"""Public functions that also accept a SparseTensor. They apply to its values, as in TensorFlow."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from stoker._src.base import dtypes
from stoker._src.graph.scopes import name_scope
from stoker._src.graph.sparse_tensor import SparseTensor
from stoker._src.graph.tensor import Tensor
from stoker._src.ops.array import casting, ranges, shaping
from stoker._src.ops.math import reductions, special, unary_functions


def _of_values(original: Callable[..., Any], arguments: dict[str, Any]) -> SparseTensor:
    """Applies the function to the values. This is correct only for functions that map 0 to 0."""
    name, sparse = next(iter(arguments.items()))
    return sparse.with_values(original(**{**arguments, name: sparse.values}))


def _identity(original: Callable[..., Any], arguments: dict[str, Any]) -> SparseTensor:
    sparse = arguments["input"]
    return SparseTensor(*[original(part) for part in (sparse.indices, sparse.values, sparse.dense_shape)])


def _size(original: Callable[..., Any], arguments: dict[str, Any]) -> Tensor:
    with name_scope(arguments.get("name"), "Size") as scope:
        sizes = casting.cast(arguments["input"].dense_shape, arguments.get("out_type") or dtypes.int32)
        return reductions.reduce_prod(sizes, 0, name=scope)


def _rank(original: Callable[..., Any], arguments: dict[str, Any]) -> Tensor:
    with name_scope(arguments.get("name"), "Rank") as scope:
        return ranges.size(arguments["input"].dense_shape, scope)


def _zeros_like(original: Callable[..., Any], arguments: dict[str, Any]) -> Tensor:
    sparse = next(iter(arguments.values()))
    return shaping.zeros(sparse.dense_shape, arguments.get("dtype") or sparse.dtype.base_dtype, arguments.get("name"))


for _function in (
    unary_functions.abs,
    unary_functions.negative,
    unary_functions.sign,
    unary_functions.square,
    unary_functions.sqrt,
    unary_functions.tanh,
    special.erf,
):
    _function.also_takes(SparseTensor, _of_values)
for _function, _form in (
    (shaping.identity, _identity),
    (ranges.size, _size),
    (ranges.size_v2, _size),
    (ranges.rank, _rank),
    (shaping.zeros_like, _zeros_like),
    (shaping.zeros_like_v2, _zeros_like),
):
    _function.also_takes(SparseTensor, _form)
