"""`tf.losses`: losses with weights, reduction and a collection."""

from __future__ import annotations

from typing import Any

from stoker._src.base import dtypes
from stoker._src.base.export import export
from stoker._src.graph import context
from stoker._src.graph.conversion import convert_to_tensor
from stoker._src.graph.keys import GraphKeys
from stoker._src.graph.scopes import control_dependencies, name_scope
from stoker._src.graph.tensor import Tensor
from stoker._src.layers.weights import broadcast_weights, check_weights, without_last_one
from stoker._src.ops.array import casting, constants, ranges, selection, shaping
from stoker._src.ops.collective import replicas
from stoker._src.ops.math import arithmetic, comparison, reductions, unary_functions
from stoker._src.ops.nn import activations, cross_entropy


@export(v1="losses.Reduction")
class Reduction:
    """How weighted losses are reduced to one number.

    NONE: no reduction. SUM: the sum. SUM_OVER_BATCH_SIZE: the sum divided by the number of losses. MEAN: the sum divided by the sum of
    weights. SUM_BY_NONZERO_WEIGHTS (the same as SUM_OVER_NONZERO_WEIGHTS): the sum divided by the number of nonzero weights.
    """

    NONE = "none"
    SUM = "weighted_sum"
    SUM_OVER_BATCH_SIZE = "weighted_sum_over_batch_size"
    MEAN = "weighted_mean"
    SUM_BY_NONZERO_WEIGHTS = "weighted_sum_by_nonzero_weights"
    SUM_OVER_NONZERO_WEIGHTS = SUM_BY_NONZERO_WEIGHTS

    @classmethod
    def all(cls) -> tuple[str, ...]:
        """All reductions."""
        return (
            cls.NONE,
            cls.SUM,
            cls.MEAN,
            cls.SUM_OVER_BATCH_SIZE,
            cls.SUM_OVER_NONZERO_WEIGHTS,
            cls.SUM_BY_NONZERO_WEIGHTS,
        )

    @classmethod
    def validate(cls, key: Any) -> None:
        """Raises ValueError if `key` is not a reduction."""
        if key not in cls.all():
            raise ValueError(f"Invalid Reduction Key: {key}. Key should be one of {cls.all()}.")


_DEFAULT = Reduction.SUM_BY_NONZERO_WEIGHTS


# -- the collection ----------------------------------------------------------------------------------------------


@export(v1="losses.add_loss")
def add_loss(loss: Any, loss_collection: str | None = GraphKeys.LOSSES) -> None:
    """Adds a loss to the collection of losses."""
    if loss_collection and not context.executing_eagerly():
        context.get_default_graph().add_to_collection(loss_collection, loss)


@export(v1="losses.get_losses")
def get_losses(scope: str | None = None, loss_collection: str = GraphKeys.LOSSES) -> list[Any]:
    """The losses in the collection, filtered by `scope` if given."""
    return context.get_default_graph().get_collection(loss_collection, scope)


@export(v1="losses.get_regularization_losses")
def get_regularization_losses(scope: str | None = None) -> list[Any]:
    """The regularization losses, filtered by `scope` if given."""
    return context.get_default_graph().get_collection(GraphKeys.REGULARIZATION_LOSSES, scope)


@export(v1="losses.get_regularization_loss")
def get_regularization_loss(scope: str | None = None, name: str = "total_regularization_loss") -> Tensor:
    """The sum of the regularization losses; 0 if there are none."""
    losses = get_regularization_losses(scope)
    return arithmetic.add_n(losses, name=name) if losses else constants.constant(0.0)


@export(v1="losses.get_total_loss")
def get_total_loss(
    add_regularization_losses: bool = True, name: str = "total_loss", scope: str | None = None
) -> Tensor:
    """The sum of all losses, by default including the regularization losses.

    Raises:
        ValueError: there are no losses.
    """
    losses = get_losses(scope)
    if add_regularization_losses:
        losses = losses + get_regularization_losses(scope)
    return arithmetic.add_n(losses, name=name)


# -- weighting ---------------------------------------------------------------------------------------------------


def _number_present(losses: Tensor, weights: Tensor, per_batch: bool = False) -> Tensor:
    """The number of losses with a nonzero weight, in total or for each example."""
    known = weights.static_shape.rank == 0
    with name_scope("num_present", None, [losses, weights]) as scope:
        weights = casting.cast(weights, dtypes.float32)
        present = selection.where(
            comparison.equal(weights, 0.0), shaping.zeros_like(weights), shaping.ones_like(weights)
        )
        present = broadcast_weights(present, losses, checked=known)
        if per_batch:
            axes = ranges.range(1, ranges.rank(present))
            return reductions.reduce_sum(present, axis=axes, keepdims=True, name=scope)
        return reductions.reduce_sum(present, name=scope)


def _safe_mean(losses: Tensor, count: Tensor) -> Tensor:
    return arithmetic.divide_no_nan(reductions.reduce_sum(losses), count, name="value")


@export(v1="losses.compute_weighted_loss")
def compute_weighted_loss(
    losses: Any,
    weights: Any = 1.0,
    scope: str | None = None,
    loss_collection: str | None = GraphKeys.LOSSES,
    reduction: str = _DEFAULT,
) -> Tensor:
    """Multiplies `losses` by `weights`, reduces them, and adds the result to a collection.

    Args:
        losses: a tensor of losses.
        weights: a scalar, or a tensor of the same rank whose sizes are 1 or those of `losses`.
        scope: the name scope.
        loss_collection: the collection for the result.
        reduction: a `Reduction`.

    Raises:
        ValueError: the weights do not match, or the reduction is unknown.
    """
    Reduction.validate(reduction)
    with name_scope(scope, "weighted_loss", [losses, weights]):
        losses = convert_to_tensor(losses)
        kind = losses.dtype.base_dtype
        with control_dependencies(check_weights(weights, losses)):
            losses = casting.cast(losses, dtypes.float32)
            weights = casting.cast(weights, dtypes.float32)
            weighted = arithmetic.multiply(losses, weights)
            if reduction == Reduction.NONE:
                loss = weighted
            else:
                loss = reductions.reduce_sum(weighted)
                if reduction == Reduction.MEAN:
                    total = reductions.reduce_sum(arithmetic.multiply(shaping.ones_like(losses), weights))
                    loss = _safe_mean(loss, total)
                elif reduction == Reduction.SUM_BY_NONZERO_WEIGHTS:
                    loss = _safe_mean(loss, _number_present(losses, weights))
                elif reduction == Reduction.SUM_OVER_BATCH_SIZE:
                    count = casting.cast(ranges.size(losses), dtypes.float32)
                    loss = _safe_mean(loss, count)
            loss = casting.cast(loss, kind)
        replicas.loss_was_made(reduction == Reduction.SUM)
        add_loss(loss, loss_collection)
        return loss


def _required(**given: Any) -> None:
    for name, value in given.items():
        if value is None:
            raise ValueError(f"{name} must not be None.")


def _same_shape(labels: Any, predictions: Any) -> tuple[Tensor, Tensor]:
    """Converts both to float32 and checks that their shapes agree.

    Raises:
        ValueError: an argument is missing, or the shapes differ.
    """
    _required(labels=labels, predictions=predictions)
    predictions = casting.cast(predictions, dtypes.float32)
    labels = casting.cast(labels, dtypes.float32)
    predictions.shape.assert_is_compatible_with(labels.shape)
    return labels, predictions


@export(v1="losses.absolute_difference")
def absolute_difference(
    labels: Any,
    predictions: Any,
    weights: Any = 1.0,
    scope: str | None = None,
    loss_collection: str | None = GraphKeys.LOSSES,
    reduction: str = _DEFAULT,
) -> Tensor:
    """|predictions - labels|, weighted and reduced."""
    with name_scope(scope, "absolute_difference", [predictions, labels, weights]) as opened:
        labels, predictions = _same_shape(labels, predictions)
        losses = unary_functions.abs(arithmetic.subtract(predictions, labels))
        return compute_weighted_loss(losses, weights, opened, loss_collection, reduction=reduction)


@export(v1="losses.mean_squared_error")
def mean_squared_error(
    labels: Any,
    predictions: Any,
    weights: Any = 1.0,
    scope: str | None = None,
    loss_collection: str | None = GraphKeys.LOSSES,
    reduction: str = _DEFAULT,
) -> Tensor:
    """(predictions - labels)^2, weighted and reduced."""
    with name_scope(scope, "mean_squared_error", [predictions, labels, weights]) as opened:
        labels, predictions = _same_shape(labels, predictions)
        losses = arithmetic.squared_difference(predictions, labels)
        return compute_weighted_loss(losses, weights, opened, loss_collection, reduction=reduction)


@export(v1="losses.huber_loss")
def huber_loss(
    labels: Any,
    predictions: Any,
    weights: Any = 1.0,
    delta: float = 1.0,
    scope: str | None = None,
    loss_collection: str | None = GraphKeys.LOSSES,
    reduction: str = _DEFAULT,
) -> Tensor:
    """0.5 d^2 where the difference d is at most `delta`, else delta * d - 0.5 delta^2, weighted and reduced."""
    with name_scope(scope, "huber_loss", [predictions, labels, weights]) as opened:
        labels, predictions = _same_shape(labels, predictions)
        distance = unary_functions.abs(arithmetic.subtract(predictions, labels))
        quadratic = arithmetic.minimum(distance, delta)
        # The gradient of the linear part comes only through the difference.
        linear = arithmetic.subtract(distance, quadratic)
        losses = arithmetic.add(0.5 * arithmetic.multiply(quadratic, quadratic), arithmetic.multiply(delta, linear))
        return compute_weighted_loss(losses, weights, opened, loss_collection, reduction=reduction)


@export(v1="losses.log_loss")
def log_loss(
    labels: Any,
    predictions: Any,
    weights: Any = 1.0,
    epsilon: float = 1e-7,
    scope: str | None = None,
    loss_collection: str | None = GraphKeys.LOSSES,
    reduction: str = _DEFAULT,
) -> Tensor:
    """-labels log(predictions) - (1 - labels) log(1 - predictions), weighted and reduced."""
    with name_scope(scope, "log_loss", [predictions, labels, weights]) as opened:
        labels, predictions = _same_shape(labels, predictions)
        p: Any = predictions
        negated: Any = unary_functions.negative(arithmetic.multiply(labels, unary_functions.log(p + epsilon)))
        losses = negated - arithmetic.multiply(1 - labels, unary_functions.log(1 - p + epsilon))
        return compute_weighted_loss(losses, weights, opened, loss_collection, reduction=reduction)


@export(v1="losses.hinge_loss")
def hinge_loss(
    labels: Any,
    logits: Any,
    weights: Any = 1.0,
    scope: str | None = None,
    loss_collection: str | None = GraphKeys.LOSSES,
    reduction: str = _DEFAULT,
) -> Tensor:
    """max(0, 1 - y * logits), where y is -1 or 1 for labels 0 or 1, weighted and reduced."""
    _required(labels=labels, logits=logits)
    with name_scope(scope, "hinge_loss", [logits, labels, weights]) as opened:
        labels, logits = _same_shape(labels, logits)
        signs = arithmetic.subtract(2 * labels, shaping.ones_like(labels))
        losses = activations.relu(arithmetic.subtract(shaping.ones_like(labels), arithmetic.multiply(signs, logits)))
        return compute_weighted_loss(losses, weights, opened, loss_collection, reduction=reduction)


@export(v1="losses.cosine_distance")
def cosine_distance(
    labels: Any,
    predictions: Any,
    axis: int | None = None,
    weights: Any = 1.0,
    scope: str | None = None,
    loss_collection: str | None = GraphKeys.LOSSES,
    reduction: str = _DEFAULT,
    dim: int | None = None,
) -> Tensor:
    """1 - the sum of labels * predictions along `axis`, weighted and reduced. Both must be unit vectors."""
    if dim is not None:
        if axis is not None:
            raise ValueError("Cannot specify both 'axis' and 'dim'")
        axis = dim
    if axis is None:
        raise ValueError("You must specify argument `axis`.")
    with name_scope(scope, "cosine_distance_loss", [predictions, labels, weights]) as opened:
        labels, predictions = _same_shape(labels, predictions)
        product = reductions.reduce_sum(arithmetic.multiply(predictions, labels), axis=(axis,), keepdims=True)
        losses = 1 - product
        return compute_weighted_loss(losses, weights, opened, loss_collection, reduction=reduction)


@export(v1="losses.mean_pairwise_squared_error")
def mean_pairwise_squared_error(
    labels: Any,
    predictions: Any,
    weights: Any = 1.0,
    scope: str | None = None,
    loss_collection: str | None = GraphKeys.LOSSES,
) -> Tensor:
    """The squared differences between pairwise differences of elements, averaged for each example, then weighted."""
    with name_scope(scope, "mean_pairwise_squared_error", [predictions, labels, weights]):
        labels, predictions = _same_shape(labels, predictions)
        weights = casting.cast(weights, dtypes.float32)
        with control_dependencies(check_weights(weights, labels)):
            difference = arithmetic.subtract(predictions, labels)
            axes = ranges.range(1, ranges.rank(difference))
            squares = reductions.reduce_sum(unary_functions.square(difference), axis=axes, keepdims=True)
            count: Any = _number_present(difference, weights, per_batch=True)
            first = 2.0 * arithmetic.divide_no_nan(squares, arithmetic.maximum(count - 1, 0), name="value")
            total = reductions.reduce_sum(difference, axis=axes, keepdims=True)
            second = 2.0 * arithmetic.divide_no_nan(
                unary_functions.square(total),
                arithmetic.maximum(arithmetic.multiply(count, count - 1), 0),
                name="value",
            )
            weighted = arithmetic.multiply(arithmetic.subtract(first, second), weights)
            loss = reductions.reduce_sum(weighted)
            mean = selection.where(
                reductions.reduce_sum(count) > 0,
                loss,
                shaping.zeros_like(loss),
                name="value",
            )
        add_loss(mean, loss_collection)
        return mean


@export(v1="losses.sigmoid_cross_entropy")
def sigmoid_cross_entropy(
    multi_class_labels: Any,
    logits: Any,
    weights: Any = 1.0,
    label_smoothing: float = 0,
    scope: str | None = None,
    loss_collection: str | None = GraphKeys.LOSSES,
    reduction: str = _DEFAULT,
) -> Tensor:
    """The cross entropy of independent probabilities sigmoid(logits), weighted and reduced.

    `label_smoothing` moves labels towards 1/2.
    """
    _required(multi_class_labels=multi_class_labels, logits=logits)
    with name_scope(scope, "sigmoid_cross_entropy_loss", [logits, multi_class_labels, weights]) as opened:
        logits = convert_to_tensor(logits)
        labels: Any = casting.cast(multi_class_labels, logits.dtype.base_dtype)
        logits.shape.assert_is_compatible_with(labels.shape)
        if label_smoothing > 0:
            labels = labels * (1 - label_smoothing) + 0.5 * label_smoothing
        losses = cross_entropy.sigmoid_cross_entropy_with_logits(labels=labels, logits=logits, name="xentropy")
        return compute_weighted_loss(losses, weights, opened, loss_collection, reduction=reduction)


@export(v1="losses.softmax_cross_entropy")
def softmax_cross_entropy(
    onehot_labels: Any,
    logits: Any,
    weights: Any = 1.0,
    label_smoothing: float = 0,
    scope: str | None = None,
    loss_collection: str | None = GraphKeys.LOSSES,
    reduction: str = _DEFAULT,
) -> Tensor:
    """The cross entropy of softmax(logits) with distributions of labels, weighted and reduced.

    `label_smoothing` moves labels towards the uniform distribution.
    """
    _required(onehot_labels=onehot_labels, logits=logits)
    with name_scope(scope, "softmax_cross_entropy_loss", [logits, onehot_labels, weights]) as opened:
        logits = convert_to_tensor(logits)
        labels: Any = casting.cast(onehot_labels, logits.dtype.base_dtype)
        logits.shape.assert_is_compatible_with(labels.shape)
        if label_smoothing > 0:
            classes = casting.cast(shaping.shape(labels, optimize=False)[-1], logits.dtype.base_dtype)
            labels = labels * (1.0 - label_smoothing) + label_smoothing / classes
        labels = shaping.stop_gradient(labels, name="labels_stop_gradient")
        losses = cross_entropy.softmax_cross_entropy_with_logits_v2(labels=labels, logits=logits, name="xentropy")
        return compute_weighted_loss(losses, weights, opened, loss_collection, reduction=reduction)


@export(v1="losses.sparse_softmax_cross_entropy")
def sparse_softmax_cross_entropy(
    labels: Any,
    logits: Any,
    weights: Any = 1.0,
    scope: str | None = None,
    loss_collection: str | None = GraphKeys.LOSSES,
    reduction: str = _DEFAULT,
) -> Tensor:
    """The cross entropy of softmax(logits) with the classes `labels`, weighted and reduced."""
    _required(labels=labels, logits=logits)
    with name_scope(scope, "sparse_softmax_cross_entropy_loss", [logits, labels, weights]) as opened:
        labels, logits = convert_to_tensor(labels), convert_to_tensor(logits)
        labels, weights = without_last_one(labels, logits, weights)
        losses = cross_entropy.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=logits, name="xentropy")
        return compute_weighted_loss(losses, weights, opened, loss_collection, reduction=reduction)
