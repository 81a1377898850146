"""Looks up the rows of a table for the ids of a categorical column and combines them for each example."""

from __future__ import annotations

from typing import Any

from stoker._src.base.shapes import Shape
from stoker._src.feature_column.categorical import IdentityCategoricalColumn
from stoker._src.feature_column.protocol import sparse_tensors
from stoker._src.graph.sparse_tensor import SparseTensor
from stoker._src.ops.array import casting, shaping
from stoker._src.ops.math import (
    arithmetic,
    comparison,
    segment_reductions,
    sparse_segment_reductions,
    unary_functions,
)
from stoker._src.ops.nn import embedding
from stoker._src.ops.sparse import sparse_functions
from stoker._src.ops.variables.partitioned import PartitionedVariable

_COMBINED = {
    "sum": sparse_segment_reductions.sparse_segment_sum,
    "mean": sparse_segment_reductions.sparse_segment_mean,
    "sqrtn": sparse_segment_reductions.sparse_segment_sqrt_n,
}


def combined_rows(
    table: Any,
    column: Any,
    cache: Any,
    state_manager: Any,
    combiner: str,
    max_norm: Any,
    name: str | None,
    *,
    flat: bool = False,
) -> Any:
    """Returns [batch, dimension]: the rows of `table` for the ids of each example, combined.

    Ids of more dimensions are combined along the last one, or with `flat` along all but the first.
    Negative ids are ignored. Except for sums, so are ids with weights that are not positive. An example without ids gets zeros.
    """
    plain = not isinstance(table, (PartitionedVariable, list, tuple)) and combiner in _COMBINED
    if plain and isinstance(column, IdentityCategoricalColumn):
        ids, weights = column._unchecked(cache, state_manager), None
    else:
        ids, weights = sparse_tensors(column, cache, state_manager)
    if flat or ids.static_shape.rank is None:
        ids, weights = _of_rank_two(ids), None if weights is None else _of_rank_two(weights)
    if not plain or ids.static_shape.rank not in (2, None):
        return embedding.safe_embedding_lookup_sparse(
            table, ids, weights, combiner, name=name, max_norm=max_norm, partition_strategy="div"
        )
    if weights is not None:
        weights = matching(ids, weights)
        keep = comparison.greater_equal(ids.values, 0)
        if combiner != "sum":
            keep = comparison.logical_and(keep, comparison.greater(weights.values, 0))
        ids, weights = sparse_functions.retain(ids, keep), sparse_functions.retain(weights, keep)
    elif not getattr(column, "_in_range", False):
        ids = sparse_functions.retain(ids, comparison.greater_equal(ids.values, 0))
    if weights is None and max_norm is None:
        # This op takes the number of examples, so examples without ids need no filling, and its gradient has only the rows in use.
        result = _COMBINED[combiner](
            table, ids.values, ids.indices[:, 0], num_segments=ids.dense_shape[0], sparse_gradient=True, name=name
        )
    else:
        result = _weighted(table, ids, weights, combiner, max_norm, name)
    known = ids.static_shape[0]
    if known is not None and not getattr(result, "is_eager", False):
        result.set_shape(Shape((known,)).concat(result.static_shape[1:]))
    return result


def matching(ids: SparseTensor, weights: SparseTensor) -> SparseTensor:
    """Returns the weights at the places of the ids. There must be as many of them."""
    return SparseTensor(ids.indices, shaping.reshape(weights.values, shaping.shape(ids.values)), ids.dense_shape)


def _weighted(table: Any, ids: SparseTensor, weights: Any, combiner: str, max_norm: Any, name: str | None) -> Any:
    rows, count = ids.indices[:, 0], ids.dense_shape[0]

    def summed(values: Any, name: str | None = None) -> Any:
        return segment_reductions.unsorted_segment_sum(values, rows, count, name=name)

    taken = embedding.embedding_lookup(table, ids.values, max_norm=max_norm)
    tall = (
        shaping.ones_like(taken[:, :1])
        if weights is None
        else shaping.expand_dims(casting.cast(weights.values, taken.dtype.base_dtype), -1)
    )
    if weights is not None:
        taken = arithmetic.multiply(taken, tall)
    if combiner == "sum":
        return summed(taken, name)
    divisor = summed(tall) if combiner == "mean" else unary_functions.sqrt(summed(arithmetic.multiply(tall, tall)))
    return arithmetic.DIV_NO_NAN(summed(taken), divisor, name=name)


def _of_rank_two(sparse: SparseTensor) -> SparseTensor:
    """Flattens all dimensions but the first."""
    if sparse.static_shape.rank == 2:
        return sparse
    return sparse_functions.reshape(sparse, [sparse.dense_shape[0], -1])
