"""Weights of losses and metrics, and their broadcasting."""

from __future__ import annotations

from typing import Any

from stoker._src.base import dtypes
from stoker._src.base.shapes import Shape
from stoker._src.graph.conversion import convert_to_tensor
from stoker._src.graph.scopes import control_dependencies, name_scope
from stoker._src.graph.tensor import Tensor
from stoker._src.ops.array import casting, joining, ranges, shaping
from stoker._src.ops.control_flow import assertions
from stoker._src.ops.math import arithmetic, comparison, reductions

_RULE = "weights can not be broadcast to values."


def _misfit(weights: Shape, values: Shape) -> str | None:
    """Why the static shapes are incompatible, or None."""
    if weights.rank == 0 or weights.rank is None or values.rank is None:
        return None
    if weights.rank != values.rank:
        return f"{_RULE} values.rank={values.rank}. weights.rank={weights.rank}. values.shape={values}. weights.shape={weights}."
    for mine, theirs in zip(weights, values):
        if mine is not None and theirs is not None and mine not in (1, theirs):
            return f"{_RULE} Mismatch at dim: values.shape={values}. weights.shape={weights}."
    return None


def _surely_fits(weights: Shape, values: Shape) -> bool:
    if weights.rank == 0:
        return True
    if weights.rank is None or values.rank is None:
        return False
    return all(mine == 1 or (mine is not None and mine == theirs) for mine, theirs in zip(weights, values))


def check_weights(weights: Any, values: Any) -> list[Any]:
    """Ops that check at run time what is not statically known: each size of the weights is 1 or that of the values.

    Raises:
        ValueError: the static shapes are incompatible.
    """
    with name_scope("assert_broadcastable", None, [weights, values]):
        weights, values = convert_to_tensor(weights, name="weights"), convert_to_tensor(values, name="values")
        problem = _misfit(weights.static_shape, values.static_shape)
        if problem is not None:
            raise ValueError(problem)
        if _surely_fits(weights.static_shape, values.static_shape):
            return []
        mine, theirs = shaping.shape(weights), shaping.shape(values)
        same = comparison.EQUAL(mine, theirs, incompatible_shape_error=False)
        fits = reductions.reduce_all(comparison.logical_or(comparison.equal(mine, 1), same))
        if None in (weights.static_shape.rank, values.static_shape.rank):
            ranks = ranges.rank(weights), ranges.rank(values)
            fits = comparison.logical_and(fits, comparison.equal(*ranks))
            fits = comparison.logical_or(fits, comparison.equal(ranks[0], 0))
        check = assertions.assert_op(fits, [_RULE, "weights.shape=", mine, "values.shape=", theirs])
        return [] if check is None else [check]


def broadcast_weights(weights: Any, values: Any, checked: bool = False) -> Tensor:
    """Broadcasts the weights to the shape of the values."""
    with name_scope("broadcast_weights", None, [weights, values]) as scope:
        weights = convert_to_tensor(weights, values.dtype.base_dtype, "weights")
        known = weights.static_shape
        if known.known and known.dims == values.static_shape.dims:
            return weights
        with control_dependencies([] if checked else check_weights(weights, values)):
            return arithmetic.multiply(weights, shaping.ones_like(values), name=scope)


def squeezed_like(x: Tensor, other: Tensor, expand: bool = False) -> Tensor:
    """Removes the last dimension (of size 1) of `x` if `x` has one more dimension than `other`. With `expand`, adds one
    if `x` has one less and is not a scalar. Unknown ranks are resolved at run time."""
    last = x.static_shape[-1] if x.static_shape.rank else None
    if last not in (1, None) and not expand:
        return x
    mine, theirs = ranges.rank(x), ranges.rank(other)
    more = comparison.equal(mine, theirs + 1)
    sizes = shaping.shape(x)[: mine - casting.cast(more, dtypes.int32)]
    if expand:
        less = comparison.logical_and(comparison.equal(mine + 1, theirs), comparison.not_equal(mine, 0))
        sizes = joining.concat([sizes, shaping.fill([casting.cast(less, dtypes.int32)], 1)], 0)
    return shaping.reshape(x, sizes)


def without_last_one(labels: Tensor, logits: Tensor, weights: Any) -> tuple[Tensor, Any]:
    """Removes the surplus last dimension of size 1 from labels and weights."""
    ranks = labels.static_shape.rank, logits.static_shape.rank
    if None in ranks:
        return labels, weights
    if ranks[1] == 0:
        raise ValueError(f"`logits` cannot be a scalar. Received logits={logits}`")
    if ranks[0] == ranks[1] and labels.static_shape[-1] in (1, None):
        labels = shaping.squeeze(labels, [-1])
    weights = convert_to_tensor(weights)
    wanted = ranks[1] - 1  # type: ignore[operator]
    if (weights.static_shape.rank or 0) == wanted + 1 and weights.static_shape[-1] in (1, None):
        weights = shaping.squeeze(weights, [-1])
    return labels, weights
