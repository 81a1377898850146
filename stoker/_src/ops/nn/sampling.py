"""Losses over many classes, estimated from a few sampled ones: candidate samplers, NCE and sampled softmax."""

from __future__ import annotations

from typing import Any

from stoker._src.base import dtypes
from stoker._src.base.export import export
from stoker._src.graph.conversion import convert_to_tensor
from stoker._src.graph.scopes import name_scope
from stoker._src.graph.tensor import Tensor
from stoker._src.ops.array import casting, joining, shaping, slicing
from stoker._src.ops.linalg import matrix_products
from stoker._src.ops.math import arithmetic, reductions, unary_functions
from stoker._src.ops.nn import embedding
from stoker._src.ops.nn.cross_entropy import sigmoid_cross_entropy_with_logits, softmax_cross_entropy_with_logits_v2
from stoker._src.ops.random.candidate_sampling import compute_accidental_hits, log_uniform_candidate_sampler
from stoker._src.ops.sparse import sparse_ops


def _sampled_logits(
    weights: Any,
    biases: Any,
    labels: Any,
    inputs: Any,
    num_sampled: int,
    num_classes: int,
    num_true: int,
    sampled_values: Any,
    subtract_log_q: bool,
    remove_accidental_hits: bool,
    partition_strategy: str,
    name: str | None,
    seed: Any,
) -> tuple[Tensor, Tensor]:
    """(logits of the true and sampled classes [batch, num_true + num_sampled], labels of the same shape)."""
    lookup = embedding.embedding_lookup
    parts = list(weights) if isinstance(weights, (list, tuple)) else [weights]
    with name_scope(name, "compute_sampled_logits", [*parts, biases, inputs, labels]):
        labels = casting.cast(convert_to_tensor(labels), dtypes.int64)
        flat = shaping.reshape(labels, [-1])
        if sampled_values is None:
            sampled_values = log_uniform_candidate_sampler(labels, num_true, num_sampled, True, num_classes, seed)
        sampled, true_count, sampled_count = (shaping.stop_gradient(part) for part in sampled_values)
        sampled = casting.cast(sampled, dtypes.int64)
        ids = joining.concat([flat, sampled], 0)
        inputs = convert_to_tensor(inputs)
        dtype = inputs.dtype.base_dtype
        rows = casting.cast(lookup(weights, ids, partition_strategy=partition_strategy), dtype)
        count = slicing.SLICE(shaping.shape(flat), [0], [1])
        width = slicing.SLICE(shaping.shape(rows), [1], [1])
        from_start = joining.concat([count, [-1]], 0)
        true_rows = slicing.SLICE(rows, [0, 0], from_start)
        sampled_rows = slicing.SLICE(rows, joining.concat([count, [0]], 0), [-1, -1])
        sampled_logits = matrix_products.matmul(inputs, sampled_rows, transpose_b=True)
        bias_rows = casting.cast(lookup(biases, ids, partition_strategy=partition_strategy), dtype)
        true_bias = slicing.SLICE(bias_rows, [0], count)
        sampled_bias = slicing.SLICE(bias_rows, count, [-1])
        grouped = shaping.reshape(true_rows, joining.concat([[-1, num_true], width], 0))
        products = arithmetic.multiply(shaping.EXPAND_DIMS(inputs, 1), grouped)
        true_logits = reductions.reduce_sum(products, 2) + shaping.reshape(true_bias, [-1, num_true])
        sampled_logits = sampled_logits + sampled_bias
        if remove_accidental_hits:
            sampled_logits = _without_hits(labels, sampled, sampled_logits, num_sampled, num_true)
        if subtract_log_q:
            true_logits = true_logits - unary_functions.log(true_count)
            sampled_logits = sampled_logits - unary_functions.log(sampled_count)
        logits = joining.concat([true_logits, sampled_logits], 1)
        ones = shaping.ones_like(true_logits) / num_true
        return logits, joining.concat([ones, shaping.zeros_like(sampled_logits)], 1)


def _without_hits(labels: Tensor, sampled: Tensor, logits: Tensor, num_sampled: int, num_true: int) -> Tensor:
    """`logits` of the sampled classes. Those that are true classes of their row are made so low that they vanish."""
    rows, places, lowest = compute_accidental_hits(labels, sampled, num_true)
    target = joining.PACK([casting.cast(rows, dtypes.int64), places], axis=1)
    batch = casting.cast(slicing.SLICE(shaping.shape(labels), [0], [1]), dtypes.int64)
    shape = joining.concat([batch, convert_to_tensor([num_sampled], dtypes.int64)], 0)
    # A class that is true twice in a row is lowered only once: twice would give minus infinity.
    penalty = sparse_ops.SPARSE_TO_DENSE(
        target,
        shape,
        casting.cast(lowest, logits.dtype.base_dtype),
        0.0,
        validate_indices=False,
    )
    return logits + penalty


def _nce(
    weights: Any,
    biases: Any,
    labels: Any,
    inputs: Any,
    num_sampled: int,
    num_classes: int,
    num_true: int,
    sampled_values: Any,
    remove_accidental_hits: bool,
    partition_strategy: str,
    name: str | None,
) -> Tensor:
    logits, targets = _sampled_logits(
        weights,
        biases,
        labels,
        inputs,
        num_sampled,
        num_classes,
        num_true,
        sampled_values,
        True,
        remove_accidental_hits,
        partition_strategy,
        name,
        None,
    )
    losses = sigmoid_cross_entropy_with_logits(labels=targets, logits=logits, name="sampled_losses")
    return reductions.reduce_sum(losses, 1)


@export(v1="nn.nce_loss")
def nce_loss(
    weights: Any,
    biases: Any,
    labels: Any,
    inputs: Any,
    num_sampled: int,
    num_classes: int,
    num_true: int = 1,
    sampled_values: Any = None,
    remove_accidental_hits: bool = False,
    partition_strategy: str = "mod",
    name: str | None = "nce_loss",
) -> Tensor:
    """The noise-contrastive estimation loss (Gutmann and Hyvarinen, 2010) of each example."""
    return _nce(
        weights,
        biases,
        labels,
        inputs,
        num_sampled,
        num_classes,
        num_true,
        sampled_values,
        remove_accidental_hits,
        partition_strategy,
        name,
    )


@export(v2="nn.nce_loss")
def nce_loss_v2(
    weights: Any,
    biases: Any,
    labels: Any,
    inputs: Any,
    num_sampled: int,
    num_classes: int,
    num_true: int = 1,
    sampled_values: Any = None,
    remove_accidental_hits: bool = False,
    name: str | None = "nce_loss",
) -> Tensor:
    """The noise-contrastive estimation loss (Gutmann and Hyvarinen, 2010) of each example."""
    return _nce(
        weights,
        biases,
        labels,
        inputs,
        num_sampled,
        num_classes,
        num_true,
        sampled_values,
        remove_accidental_hits,
        "div",
        name,
    )


@export(v1="nn.sampled_softmax_loss")
def sampled_softmax_loss(
    weights: Any,
    biases: Any,
    labels: Any,
    inputs: Any,
    num_sampled: int,
    num_classes: int,
    num_true: int = 1,
    sampled_values: Any = None,
    remove_accidental_hits: bool = True,
    partition_strategy: str = "mod",
    name: str | None = "sampled_softmax_loss",
    seed: Any = None,
) -> Tensor:
    """The softmax cross entropy over the true and the sampled classes (Jean et al., 2014) of each example."""
    logits, targets = _sampled_logits(
        weights,
        biases,
        labels,
        inputs,
        num_sampled,
        num_classes,
        num_true,
        sampled_values,
        True,
        remove_accidental_hits,
        partition_strategy,
        name,
        seed,
    )
    targets = shaping.stop_gradient(targets, name="labels_stop_gradient")
    return softmax_cross_entropy_with_logits_v2(labels=targets, logits=logits)


@export(v2="nn.sampled_softmax_loss")
def sampled_softmax_loss_v2(
    weights: Any,
    biases: Any,
    labels: Any,
    inputs: Any,
    num_sampled: int,
    num_classes: int,
    num_true: int = 1,
    sampled_values: Any = None,
    remove_accidental_hits: bool = True,
    seed: Any = None,
    name: str | None = "sampled_softmax_loss",
) -> Tensor:
    """The softmax cross entropy over the true and the sampled classes (Jean et al., 2014) of each example."""
    return sampled_softmax_loss(
        weights,
        biases,
        labels,
        inputs,
        num_sampled,
        num_classes,
        num_true,
        sampled_values,
        remove_accidental_hits,
        "div",
        name,
        seed,
    )
