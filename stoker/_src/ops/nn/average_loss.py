"""Losses scaled for training on several replicas; here there is one."""

from __future__ import annotations

from typing import Any

from stoker._src.base import dtypes
from stoker._src.base.export import export
from stoker._src.graph.conversion import convert_to_tensor
from stoker._src.graph.static_values import constant_value
from stoker._src.graph.tensor import Tensor
from stoker._src.ops import array, assertions, casting, grouping, math, reductions


@export("nn.compute_average_loss")
def compute_average_loss(per_example_loss: Any, sample_weight: Any = None, global_batch_size: Any = None) -> Tensor:
    """The sum of the losses divided by the global batch size.

    Args:
        per_example_loss: a loss for each example, of rank 1 or more; the first dimension is the batch.
        sample_weight: factors of the losses; one of a smaller rank holds for all that lies below it.
        global_batch_size: an integer; by default the size of the first dimension. For 0 the result is 0.

    Raises:
        ValueError: a scalar loss.
        TypeError: a batch size that is no integer.
        InvalidArgumentError: a negative batch size.
    """
    losses = convert_to_tensor(per_example_loss, name="per_example_loss")
    rank = losses.static_shape.rank
    if rank == 0:
        raise ValueError(
            "Invalid value passed for `per_example_loss`. Expected a tensor with at least rank 1. "
            f"Received per_example_loss={per_example_loss} with rank {rank}"
        )
    if not losses.dtype.is_floating:
        losses = casting.cast(losses, dtypes.float64)
    kind = losses.dtype.base_dtype
    if sample_weight is not None:
        weights = casting.cast(convert_to_tensor(sample_weight, dtype_hint=kind), kind)
        missing = (rank or 0) - (weights.static_shape.rank or 0)
        for _ in range(missing if weights.static_shape.rank else 0):
            weights = array.expand_dims(weights, -1)
        losses = math.multiply(losses, weights)
    if global_batch_size is None:
        size = array.shape(losses)[0]  # type: ignore[index]
    else:
        size = convert_to_tensor(global_batch_size, name="global_batch_size")
        if not size.dtype.is_integer:
            raise TypeError(f"global_batch_size must be an integer. Found: tensor of dtype {size.dtype!r}")
        fits = math.greater_equal(size, 0)
        known = constant_value(fits)
        if known is None or not bool(known):
            check = assertions.assert_op(fits, ["global_batch_size must be non-negative.", size])
            size = size if check is None else grouping.with_dependencies([check], size)
    return math.divide_no_nan(reductions.reduce_sum(losses), casting.cast(size, kind))


@export("nn.scale_regularization_loss")
def scale_regularization_loss(regularization_loss: Any) -> Tensor:
    """The sum of the regularization losses divided by the number of replicas, which is one."""
    return reductions.reduce_sum(convert_to_tensor(regularization_loss))
