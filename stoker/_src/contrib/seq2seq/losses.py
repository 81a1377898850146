"""The loss of sequences."""

from __future__ import annotations

from typing import Any

from stoker._src.base.export import export
from stoker._src.graph.conversion import convert_to_tensor
from stoker._src.graph.scopes import name_scope
from stoker._src.graph.tensor import Tensor
from stoker._src.ops.array import casting, shaping
from stoker._src.ops.math import arithmetic, counting, reductions
from stoker._src.ops.nn import cross_entropy

_SMALLEST_TOTAL = 1e-12


@export(v1="contrib.seq2seq.sequence_loss")
def sequence_loss(
    logits: Any,
    targets: Any,
    weights: Any,
    average_across_timesteps: bool = True,
    average_across_batch: bool = True,
    sum_over_timesteps: bool = False,
    sum_over_batch: bool = False,
    softmax_loss_function: Any = None,
    name: str | None = None,
) -> Tensor:
    """The weighted cross-entropy of sequences.

    Args:
        logits: [batch, time, classes].
        targets: [batch, time], the classes.
        weights: [batch, time], 0 for padding.
        average_across_timesteps, average_across_batch: which dimensions are summed and divided by the sum of the weights.
        sum_over_timesteps, sum_over_batch: which dimensions are summed and divided by the number of weights that are not 0.
        softmax_loss_function: a function of `labels` and `logits`; the sparse softmax cross-entropy by default.
        name: a name scope.

    Raises:
        ValueError: a rank does not match, or a dimension is to be averaged and summed.
    """
    logits, targets, weights = convert_to_tensor(logits), convert_to_tensor(targets), convert_to_tensor(weights)
    if logits.static_shape.rank not in (None, 3):
        raise ValueError("Logits must be a [batch_size x sequence_length x logits] tensor")
    if targets.static_shape.rank not in (None, 2):
        raise ValueError("Targets must be a [batch_size x sequence_length] tensor")
    if weights.static_shape.rank not in (None, 2):
        raise ValueError("Weights must be a [batch_size x sequence_length] tensor")
    if average_across_timesteps and sum_over_timesteps:
        raise ValueError("average_across_timesteps and sum_over_timesteps cannot be set to True at same time.")
    if average_across_batch and sum_over_batch:
        raise ValueError("average_across_batch and sum_over_batch cannot be set to True at same time.")
    with name_scope(name or "sequence_loss"):
        classes = shaping.shape(logits)[2]
        flat, labels = shaping.reshape(logits, [-1, classes]), shaping.reshape(targets, [-1])
        loss = softmax_loss_function or cross_entropy.sparse_softmax_cross_entropy_with_logits
        entropy = loss(labels=labels, logits=flat) * shaping.reshape(weights, [-1])
        if average_across_timesteps and average_across_batch:
            return reductions.reduce_sum(entropy) / (reductions.reduce_sum(weights) + _SMALLEST_TOTAL)
        if sum_over_timesteps and sum_over_batch:
            count = casting.cast(counting.count_nonzero(weights), entropy.dtype)
            return arithmetic.DIV_NO_NAN(reductions.reduce_sum(entropy), count)
        entropy = shaping.reshape(entropy, shaping.shape(logits)[0:2])
        # One dimension at most: an average comes before a sum, and the other dimension stays.
        if average_across_timesteps or average_across_batch:
            axis = 1 if average_across_timesteps else 0
            return reductions.reduce_sum(entropy, axis) / (reductions.reduce_sum(weights, axis) + _SMALLEST_TOTAL)
        if sum_over_timesteps or sum_over_batch:
            axis = 1 if sum_over_timesteps else 0
            count = casting.cast(counting.count_nonzero(weights, axis), entropy.dtype)
            return arithmetic.DIV_NO_NAN(reductions.reduce_sum(entropy, axis), count)
        return entropy
