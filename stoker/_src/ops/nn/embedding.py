"""Embeddings: lookup and combination of rows of one or several parameter tensors."""

from __future__ import annotations

from contextlib import nullcontext
from typing import Any

import numpy as np

from stoker._src.base import dtypes
from stoker._src.base.export import export
from stoker._src.graph import context
from stoker._src.graph.conversion import convert_to_tensor
from stoker._src.graph.scopes import colocate_with, name_scope
from stoker._src.graph.sparse_tensor import SparseTensor
from stoker._src.graph.tensor import Tensor
from stoker._src.ops.array import casting, gathering, joining, ranges, scattering, selection, shaping
from stoker._src.ops.math import (
    arithmetic,
    clipping,
    comparison,
    reductions,
    segment_reductions,
    sorting,
    sparse_segment_reductions,
    unary_functions,
)
from stoker._src.ops.ragged import ragged_tensor
from stoker._src.ops.sparse import sparse_functions
from stoker._src.ops.support.dispatching import dispatched


def _parts(params: Any) -> list[Any]:
    """The parameter tensors: one, a list of them, or the slices of a partitioned variable."""
    if type(params).__name__ == "PartitionedVariable":
        return list(params)
    parts = list(params) if isinstance(params, (list, tuple)) else [params]
    if not parts:
        raise ValueError("params should not be empty.")
    return parts


def _clipped(rows: Tensor, ids: Tensor, max_norm: Any) -> Tensor:
    """Scales rows down to a Euclidean norm of at most `max_norm`."""
    if max_norm is None:
        return rows
    id_rank, rank = ids.static_shape.rank, rows.static_shape.rank
    if id_rank is None or rank is None:
        return clipping.clip_by_norm(rows, max_norm, ranges.range(ranges.rank(ids), ranges.rank(rows)))
    return clipping.clip_by_norm(rows, max_norm, np.arange(id_rank, rank, dtype=np.int32))


def _beside(part: Any) -> Any:
    """Places ops beside a variable, so that only the rows that are looked up travel to another task."""
    op = getattr(part, "op", None)
    return colocate_with(op) if op is not None and context.target() is getattr(op, "graph", None) else nullcontext()


def _lookup(params: Any, ids: Any, partition_strategy: str, name: str | None, max_norm: Any) -> Tensor:
    parts = _parts(params)
    if len(parts) > 1 and partition_strategy not in ("mod", "div"):
        raise ValueError(f"Only 'mod' and 'div' partition strategies are supported, got {partition_strategy!r}")
    with name_scope(name, "embedding_lookup", [ids]) as scope:
        ids = convert_to_tensor(ids, name="ids")
        if len(parts) == 1:
            with _beside(parts[0]):
                rows = _clipped(gathering.gather(parts[0], ids, name=scope), ids, max_norm)
            return shaping.identity(rows)
        count = len(parts)
        flat = shaping.reshape(ids, [-1])
        places = ranges.range(ranges.size(flat))
        kind = flat.dtype.base_dtype
        if partition_strategy == "mod":
            owner, local = arithmetic.floormod(flat, count), arithmetic.floordiv(flat, count)
        else:
            owner, local = _divided(parts, flat, kind)
        owner = casting.cast(owner, dtypes.int32)
        local_ids = scattering.dynamic_partition(local, owner, count)
        indices = scattering.dynamic_partition(places, owner, count)
        found = []
        for i, part in enumerate(parts):
            with _beside(part):
                found.append(gathering.gather(part, local_ids[i]))
        stitched = scattering.PARALLEL_DYNAMIC_STITCH(indices, found, name=scope)
        row = stitched.static_shape[1:]
        shape = convert_to_tensor(parts[0]).static_shape[1:] if row.dims is None else row
        sizes = joining.concat([shaping.shape(ids), shaping.shape(stitched)[1:]], 0)
        result = shaping.reshape(stitched, sizes)
        if not getattr(result, "is_eager", False):
            result.set_shape(ids.static_shape.concat(shape))
        return _clipped(result, ids, max_norm)


def _divided(parts: list[Any], flat: Tensor, kind: Any) -> tuple[Tensor, Tensor]:
    """The part of each id, and its row there, if the ids are divided consecutively. The first parts are one larger if
    the total is not divisible."""
    count = len(parts)
    sizes = [
        part.static_shape[0] if hasattr(part, "static_shape") else convert_to_tensor(part).static_shape[0]
        for part in parts
    ]
    if None in sizes:
        total: Any = reductions.reduce_sum(joining.PACK([shaping.shape(convert_to_tensor(part))[0] for part in parts]))
        total = casting.cast(total, kind)
    else:
        total = convert_to_tensor(sum(sizes), kind)
    base, extra = arithmetic.floordiv(total, count), arithmetic.floormod(total, count)
    larger = arithmetic.add(base, 1)
    owner = arithmetic.maximum(
        arithmetic.floordiv(flat, larger), arithmetic.floordiv(arithmetic.subtract(flat, extra), base)
    )
    in_larger = comparison.less(owner, extra)
    local = selection.SELECT_V2(
        in_larger, arithmetic.floormod(flat, larger), arithmetic.floormod(arithmetic.subtract(flat, extra), base)
    )
    return owner, local


@export(v1="nn.embedding_lookup")
@dispatched
def embedding_lookup(
    params: Any,
    ids: Any,
    partition_strategy: str = "mod",
    name: str | None = None,
    validate_indices: bool = True,
    max_norm: Any = None,
) -> Tensor:
    """Looks up rows of `params`, one for each id.

    Args:
        params: a tensor or variable [rows, ...], or several that share the rows.
        ids: integers of any shape.
        partition_strategy: how several tensors share the rows: "mod" (row i is in tensor i % n) or "div" (consecutively).
        name: a name for the op.
        validate_indices: has no effect; ids are always checked on the CPU.
        max_norm: the maximum norm of a row. Longer rows are scaled down.

    Returns:
        [*ids.shape, *params.shape[1:]]

    Raises:
        ValueError: there are no params, or the strategy is unknown.
    """
    return _lookup(params, ids, partition_strategy, name, max_norm)


@export(v2="nn.embedding_lookup")
@dispatched
def embedding_lookup_v2(params: Any, ids: Any, max_norm: Any = None, name: str | None = None) -> Tensor:
    """Looks up rows of `params`, one for each id. Several tensors share the rows consecutively."""
    return _lookup(params, ids, "div", name, max_norm)


def _same_places(sp_ids: SparseTensor, sp_weights: SparseTensor) -> None:
    if not isinstance(sp_weights, SparseTensor):
        raise TypeError(f"sp_weights must be either None or SparseTensor. Received: {type(sp_weights)}")
    for one, other in (
        (sp_ids.values, sp_weights.values),
        (sp_ids.indices, sp_weights.indices),
        (sp_ids.dense_shape, sp_weights.dense_shape),
    ):
        if not one.static_shape.compatible(other.static_shape):
            raise ValueError(f"sp_ids and sp_weights must have the same places, got {one.shape} and {other.shape}.")


def _tall(column: Tensor, rows: Tensor) -> Tensor:
    """A vector as a column with the rank of `rows`."""
    rank = rows.static_shape.rank
    if rank is not None:
        return shaping.reshape(column, [-1, *[1] * (rank - 1)])
    return shaping.reshape(column, joining.concat([[-1], shaping.ones_like(shaping.SHAPE_OP(rows)[1:])], 0))


@export(v1="nn.embedding_lookup_sparse")
def embedding_lookup_sparse(
    params: Any,
    sp_ids: Any,
    sp_weights: Any,
    partition_strategy: str = "mod",
    name: str | None = None,
    combiner: str | None = None,
    max_norm: Any = None,
    allow_fast_lookup: bool = False,
) -> Tensor:
    """Looks up the rows of sparse ids and combines them for each row of ids.

    Args:
        params: as for `embedding_lookup`.
        sp_ids: a SparseTensor [N, M] of integers.
        sp_weights: a SparseTensor with the same indices, or None for weights of one.
        partition_strategy: as for `embedding_lookup`.
        name: a name scope.
        combiner: "sum" of the weighted rows, "mean" (the default: divided by the sum of weights) or "sqrtn" (divided by
            the square root of the sum of squared weights).
        max_norm: rows longer than this are scaled down to it before they are combined.
        allow_fast_lookup: has no effect. In TensorFlow it skips the removal of duplicate ids.

    Returns:
        [N, *params.shape[1:]]; rows without ids are zero.

    Raises:
        TypeError: the ids or weights are not sparse.
        ValueError: the combiner is unknown, or the weights have other indices.
    """
    combiner = "mean" if combiner is None else combiner
    if combiner not in ("mean", "sqrtn", "sum"):
        raise ValueError(f"combiner must be one of 'mean', 'sqrtn' or 'sum', got {combiner}")
    if isinstance(sp_ids, ragged_tensor.RaggedTensor):
        sp_ids = sp_ids.to_sparse()
        if isinstance(sp_weights, ragged_tensor.RaggedTensor):
            sp_weights = sp_weights.to_sparse()
    if type(sp_ids).__name__ == "SparseTensorValue":
        sp_ids = sparse_functions.as_sparse(sp_ids)
    if not isinstance(sp_ids, SparseTensor):
        raise TypeError(f"sp_ids must be SparseTensor, got {type(sp_ids)}")
    if sp_weights is not None:
        sp_weights = (
            sparse_functions.as_sparse(sp_weights) if type(sp_weights).__name__ == "SparseTensorValue" else sp_weights
        )
        _same_places(sp_ids, sp_weights)
    with name_scope(name, "embedding_lookup_sparse", [sp_ids]) as scope:
        rows = casting.cast(sp_ids.indices[:, 0], dtypes.int32)
        ids, places = sorting.UNIQUE(sp_ids.values)
        embeddings = _lookup(params, ids, partition_strategy, None, max_norm)
        if sp_weights is None:
            how = {"sum": "sum", "mean": "mean", "sqrtn": "sqrt_n"}[combiner]
            return getattr(sparse_segment_reductions, f"sparse_segment_{how}")(embeddings, places, rows, name=scope)
        kind = embeddings.dtype.base_dtype
        weights = casting.cast(sp_weights.values, kind)
        taken = gathering.gather(embeddings, places)
        tall = _tall(weights, taken)
        total = segment_reductions.segment_sum(
            arithmetic.multiply(taken, tall), rows, name=scope if combiner == "sum" else None
        )
        if combiner == "sum":
            return total
        if combiner == "mean":
            divisor = segment_reductions.segment_sum(tall, rows)
        else:
            divisor = unary_functions.sqrt(segment_reductions.segment_sum(arithmetic.multiply(tall, tall), rows))
        return arithmetic.DIV_NO_NAN(total, divisor, name=scope)


@export(v2="nn.embedding_lookup_sparse")
def embedding_lookup_sparse_v2(
    params: Any,
    sp_ids: Any,
    sp_weights: Any,
    combiner: str | None = None,
    max_norm: Any = None,
    name: str | None = None,
    allow_fast_lookup: bool = False,
) -> Tensor:
    """Looks up the rows of sparse ids and combines them for each row of ids. See the 1.x form."""
    return embedding_lookup_sparse(params, sp_ids, sp_weights, "div", name, combiner, max_norm, allow_fast_lookup)


@export(v1="nn.safe_embedding_lookup_sparse")
def safe_embedding_lookup_sparse(
    embedding_weights: Any,
    sparse_ids: Any,
    sparse_weights: Any = None,
    combiner: str | None = "mean",
    default_id: Any = None,
    name: str | None = None,
    partition_strategy: str = "div",
    max_norm: Any = None,
    allow_fast_lookup: bool = False,
) -> Tensor:
    """`embedding_lookup_sparse` that ignores negative ids and, except for sums, weights that are not positive.

    An empty row gets the row of `default_id`, or zeros. `sparse_ids` may have any rank from 2 on. The last
    dimension is combined.

    Raises:
        ValueError: there are no parameters, or their dtypes differ.
    """
    parts = _parts(embedding_weights)
    ids = sparse_functions.as_sparse(sparse_ids)
    weights = None if sparse_weights is None else sparse_functions.as_sparse(sparse_weights)
    with name_scope(name, "embedding_lookup", [ids]) as scope:
        original = ids.dense_shape
        rank = original.static_shape.of_rank(1)[0]
        known_lead = ids.static_shape[: rank - 1] if rank is not None and ids.static_shape.dims is not None else None
        if rank is None or rank > 2:
            flat = joining.PACK([reductions.reduce_prod(original[:-1]), original[-1]])
            ids = sparse_functions.reshape(ids, flat)
            weights = None if weights is None else SparseTensor(ids.indices, weights.values, ids.dense_shape)
        keep = comparison.greater_equal(ids.values, 0)
        if weights is not None:
            # For sums the second operand only refuses weights of another number than ids.
            if combiner == "sum":
                counted = shaping.ones_like(weights.values, dtype=dtypes.bool_)
            else:
                counted = comparison.greater(weights.values, shaping.zeros_like(weights.values))
            keep = comparison.logical_and(keep, counted)
            weights = sparse_functions.retain(weights, keep)
        ids = sparse_functions.retain(ids, keep)
        fallback = convert_to_tensor(default_id or 0, ids.dtype.base_dtype)
        ids, empty = sparse_functions.fill_empty_rows(ids, fallback)
        if weights is not None:
            weights, _ = sparse_functions.fill_empty_rows(weights, 1.0)
        result = embedding_lookup_sparse(
            parts if len(parts) > 1 else parts[0],
            ids,
            weights,
            partition_strategy,
            None if default_id is None else scope,
            combiner,
            max_norm,
            allow_fast_lookup,
        )
        if default_id is None:
            # Empty rows contain the row of id 0 so far.
            result = selection.SELECT_V2(_tall(empty, result), shaping.zeros_like(result), result, name=scope)
        # TensorFlow names its result after the preceding reshapes: one for each retained tensor, and a few around them.
        retained = 1 if weights is None else 2 if combiner == "sum" else 4
        last = f"Reshape_{retained + (default_id is None or weights is not None)}"
        if rank is None or rank > 2:
            sizes = casting.cast(original[:-1], dtypes.int32)
            sizes = joining.concat([sizes, shaping.shape(result)[1:]], 0)
            result = shaping.reshape(result, sizes, name=last)
        else:
            result = shaping.identity(result, name=last)
        if known_lead is not None and result.static_shape.rank is not None and not getattr(result, "is_eager", False):
            result.set_shape(known_lead.concat(result.static_shape[known_lead.rank :]))
        return result


@export(v2="nn.safe_embedding_lookup_sparse")
def safe_embedding_lookup_sparse_v2(
    embedding_weights: Any,
    sparse_ids: Any,
    sparse_weights: Any = None,
    combiner: str | None = "mean",
    default_id: Any = None,
    max_norm: Any = None,
    name: str | None = None,
    allow_fast_lookup: bool = False,
) -> Tensor:
    """`embedding_lookup_sparse` that ignores negative ids and weights that are not positive. See the 1.x form."""
    return safe_embedding_lookup_sparse(
        embedding_weights, sparse_ids, sparse_weights, combiner, default_id, name, "div", max_norm, allow_fast_lookup
    )


def _ragged_lookup(original: Any, arguments: dict[str, Any]) -> Any:
    """The rows of ragged ids, as a ragged tensor with the partitions of the ids."""
    ids = arguments["ids"]
    return ids.with_flat_values(original(**{**arguments, "ids": ids.flat_values}))


embedding_lookup.also_takes(ragged_tensor.RaggedTensor, _ragged_lookup)
embedding_lookup_v2.also_takes(ragged_tensor.RaggedTensor, _ragged_lookup)
