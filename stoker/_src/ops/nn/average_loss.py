"""Losses scaled for training on several replicas. stoker has one replica."""

from __future__ import annotations

from typing import Any

from stoker._src.base import dtypes
from stoker._src.base.errors import InvalidArgumentError
from stoker._src.base.export import export
from stoker._src.graph.conversion import convert_to_tensor
from stoker._src.graph.static_values import constant_value
from stoker._src.graph.tensor import Tensor
from stoker._src.ops.array import casting, ranges, shaping
from stoker._src.ops.control_flow import assertions, branches_and_loops, grouping
from stoker._src.ops.math import arithmetic, comparison, reductions


@export("nn.compute_average_loss")
def compute_average_loss(per_example_loss: Any, sample_weight: Any = None, global_batch_size: Any = None) -> Tensor:
    """Sums the losses and divides by the global batch size.

    Args:
        per_example_loss: the loss of each example, of rank 1 or more. The first dimension is the batch.
        sample_weight: weights of the losses: a scalar, one per loss, or with a last dimension missing or (of size 1) added.
        global_batch_size: an integer; by default the size of the first dimension. For 0 the result is 0.

    Raises:
        ValueError: the loss is a scalar, or the batch size is not.
        TypeError: the batch size is not an integer.
        InvalidArgumentError: the batch size is negative.
    """
    losses = convert_to_tensor(per_example_loss, name="per_example_loss")
    rank = losses.static_shape.rank
    if rank == 0:
        raise ValueError(
            "Invalid value passed for `per_example_loss`. Expected a tensor with at least rank 1. "
            f"Received per_example_loss={per_example_loss} with rank {rank}"
        )
    kind = losses.dtype.base_dtype
    if rank is None:
        check = assertions.assert_op(
            comparison.greater_equal(ranges.rank(losses), 1),
            ["per_example_loss must have a rank of 1 or more.", losses],
        )
        losses = losses if check is None else grouping.with_dependencies([check], losses)
    if sample_weight is not None:
        precise = dtypes.float32 if kind.is_integer else kind
        weights = casting.cast(convert_to_tensor(sample_weight), precise)
        losses = casting.cast(arithmetic.multiply(casting.cast(losses, precise), _beside(losses, weights)), kind)
    if global_batch_size is None:
        size = shaping.shape(losses)[0]
    else:
        size = convert_to_tensor(global_batch_size, name="global_batch_size")
        if not size.dtype.is_integer:
            raise TypeError(f"global_batch_size must be an integer. Found: tensor of dtype {size.dtype!r}")
        if size.static_shape.rank != 0:
            raise ValueError(f"global_batch_size must be scalar. Saw shape: {size.shape}")
        known = constant_value(size)
        if known is not None and known < 0:
            raise InvalidArgumentError(None, None, f"global_batch_size must be non-negative, not {known}.")
        if known is None:
            check = assertions.assert_op(
                comparison.greater_equal(size, 0), ["global_batch_size must be non-negative.", size]
            )
            size = size if check is None else grouping.with_dependencies([check], size)
    total = reductions.reduce_sum(losses)
    if kind.is_integer:
        kind = dtypes.float64 if kind.size > 2 else dtypes.float32
        total = casting.cast(total, kind)
    return arithmetic.divide_no_nan(total, casting.cast(size, kind))


def _beside(losses: Tensor, weights: Tensor) -> Tensor:
    """Adjusts the rank of the weights to that of the losses. They may differ by a last dimension."""
    given, wanted = weights.static_shape.rank, losses.static_shape.rank
    if given == 0:
        return weights
    if given is not None and wanted is not None:
        if given - wanted == 1:
            return shaping.squeeze(weights, [-1])
        return shaping.expand_dims(weights, -1) if wanted - given == 1 else weights
    more = arithmetic.subtract(ranges.rank(weights), ranges.rank(losses))
    return branches_and_loops.cond(
        comparison.equal(more, 1),
        lambda: shaping.squeeze(weights, [-1]),
        lambda: branches_and_loops.cond(
            comparison.equal(more, -1), lambda: shaping.expand_dims(weights, -1), lambda: weights
        ),
    )


@export("nn.scale_regularization_loss")
def scale_regularization_loss(regularization_loss: Any) -> Tensor:
    """Sums the regularization losses and divides by the number of replicas, which is one."""
    return reductions.reduce_sum(convert_to_tensor(regularization_loss))
