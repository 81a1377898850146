"""`tf.contrib.losses`: the losses with the order of arguments that they had at first, predictions before labels."""

from __future__ import annotations

from typing import Any

from stoker._src.base import dtypes
from stoker._src.base.export import export, export_constant
from stoker._src.graph import conversion, scopes
from stoker._src.layers import losses as current
from stoker._src.ops.array import casting, shaping
from stoker._src.ops.math import reductions, unary_functions
from stoker._src.ops.nn import activations


def _both(name: str) -> tuple[str, str]:
    """The names of a function in `contrib.losses` and in `contrib.slim.losses`."""
    return f"contrib.losses.{name}", f"contrib.slim.losses.{name}"


for _name in "add_loss get_losses get_regularization_losses".split():
    export_constant(current.__name__, _name, v1=_both(_name))


def _along(weights: Any, values: Any) -> Any:
    """Weights of examples as weights of their elements: dimensions of size 1 are added up to the rank of the values."""
    weights = conversion.convert_to_tensor(weights)
    rank = conversion.convert_to_tensor(values).get_shape().ndims
    missing = 0 if rank is None or not weights.get_shape().ndims else rank - weights.get_shape().ndims
    for _ in range(missing):
        weights = shaping.expand_dims(weights, -1)
    return weights


@export(v1=_both("compute_weighted_loss"))
def compute_weighted_loss(losses: Any, weights: Any = 1.0, scope: str | None = None) -> Any:
    """The weighted mean of losses, over those with a weight, which is added to LOSSES."""
    return current.compute_weighted_loss(losses, _along(weights, losses), scope)


@export(v1=_both("get_total_loss"))
def get_total_loss(add_regularization_losses: bool = True, name: str = "total_loss") -> Any:
    """The sum of LOSSES, and of REGULARIZATION_LOSSES if asked for."""
    return current.get_total_loss(add_regularization_losses, name)


@export(v1=_both("absolute_difference"))
def absolute_difference(predictions: Any, labels: Any = None, weights: Any = 1.0, scope: str | None = None) -> Any:
    """|predictions - labels|, weighted, as a mean."""
    return current.absolute_difference(labels, predictions, _along(weights, predictions), scope)


@export(v1=_both("mean_squared_error"))
def mean_squared_error(predictions: Any, labels: Any = None, weights: Any = 1.0, scope: str | None = None) -> Any:
    """(predictions - labels)^2, weighted, as a mean."""
    return current.mean_squared_error(labels, predictions, _along(weights, predictions), scope)


@export(v1=_both("mean_pairwise_squared_error"))
def mean_pairwise_squared_error(
    predictions: Any, labels: Any = None, weights: Any = 1.0, scope: str | None = None
) -> Any:
    """The sum over examples of the squared errors of the differences between any two of their elements, as a mean over pairs.

    Args:
        predictions, labels: tensors of the same shape.
        weights: a number, or one for each example.
        scope: the name scope.
    """
    with scopes.NameScope(scope, "mean_pairwise_squared_error", [predictions, labels, weights]):
        errors = casting.cast(predictions, dtypes.float32) - casting.cast(labels, dtypes.float32)
        errors = shaping.reshape(errors, [shaping.shape(errors)[0], -1])
        # The mean over all pairs of (d - d')^2 is twice the variance.
        means = 2.0 * (
            reductions.reduce_mean(unary_functions.square(errors), 1)
            - unary_functions.square(reductions.reduce_mean(errors, 1))
        )
        loss = reductions.reduce_sum(means * casting.cast(weights, dtypes.float32), name="value")
        current.add_loss(loss)
        return loss


@export(v1=_both("log_loss"))
def log_loss(
    predictions: Any, labels: Any = None, weights: Any = 1.0, epsilon: float = 1e-7, scope: str | None = None
) -> Any:
    """-labels log(predictions) - (1 - labels) log(1 - predictions), weighted, as a mean."""
    return current.log_loss(labels, predictions, _along(weights, predictions), epsilon, scope)


@export(v1=_both("hinge_loss"))
def hinge_loss(logits: Any, labels: Any = None, scope: str | None = None) -> Any:
    """max(0, 1 - y * logits) of each element, where y is -1 or 1 for labels 0 or 1. It is neither reduced nor collected."""
    with scopes.NameScope(scope, "hinge_loss", [logits, labels]):
        logits = conversion.convert_to_tensor(logits)
        logits.get_shape().assert_is_compatible_with(conversion.convert_to_tensor(labels).get_shape())
        signs = 2 * casting.cast(labels, dtypes.float32) - 1
        return activations.relu(1 - signs * logits)


@export(v1=_both("cosine_distance"))
def cosine_distance(
    predictions: Any,
    labels: Any = None,
    axis: int | None = None,
    weights: Any = 1.0,
    scope: str | None = None,
    dim: int | None = None,
) -> Any:
    """1 - the sum of labels * predictions along `axis`, weighted, as a mean. Both must be unit vectors."""
    return current.cosine_distance(labels, predictions, axis, _along(weights, predictions), scope, dim=dim)


@export(v1=_both("sigmoid_cross_entropy"))
def sigmoid_cross_entropy(
    logits: Any, multi_class_labels: Any, weights: Any = 1.0, label_smoothing: float = 0, scope: str | None = None
) -> Any:
    """The cross entropy of independent classes, weighted, as a mean."""
    return current.sigmoid_cross_entropy(multi_class_labels, logits, _along(weights, logits), label_smoothing, scope)


@export(v1=_both("softmax_cross_entropy"))
def softmax_cross_entropy(
    logits: Any, onehot_labels: Any, weights: Any = 1.0, label_smoothing: float = 0, scope: str | None = None
) -> Any:
    """The cross entropy of classes that exclude each other, weighted, as a mean."""
    return current.softmax_cross_entropy(onehot_labels, logits, weights, label_smoothing, scope)


@export(v1=_both("sparse_softmax_cross_entropy"))
def sparse_softmax_cross_entropy(logits: Any, labels: Any, weights: Any = 1.0, scope: str | None = None) -> Any:
    """The cross entropy of classes given by their number, weighted, as a mean."""
    return current.sparse_softmax_cross_entropy(labels, logits, weights, scope)
