"""`tf.metrics`: numbers gathered over many runs. Each returns (value, op that adds what it is given and returns the new value).

Their state is in local variables, which also join METRIC_VARIABLES: run `tf.local_variables_initializer()` to start anew.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from stoker._src.base import dtypes
from stoker._src.base.export import export
from stoker._src.graph import context
from stoker._src.graph.conversion import convert_to_tensor
from stoker._src.graph.keys import GraphKeys
from stoker._src.graph.scopes import control_dependencies, name_scope
from stoker._src.graph.tensor import Tensor
from stoker._src.layers.weights import broadcast_weights, check_weights, squeezed_like
from stoker._src.ops import (
    array,
    array_selection,
    casting,
    comparison,
    math,
    math_unary,
    ranges,
    reductions,
    variable_scope,
)
from stoker._src.ops.variables import Variable, VariableAggregation, VariableSynchronization

Metric = tuple[Any, Any]


def refuse_eager(name: str) -> None:
    """Raises RuntimeError in eager mode, where there is no graph to keep the state in."""
    if context.executing_eagerly():
        raise RuntimeError(f"tf.metrics.{name} is not supported when eager execution is enabled.")


def metric_variable(shape: Any, dtype: Any, name: str, validate_shape: bool = True) -> Any:
    """Zeros in LOCAL_VARIABLES and METRIC_VARIABLES."""
    return Variable(
        lambda: array.zeros(shape, dtype),
        trainable=False,
        collections=[GraphKeys.LOCAL_VARIABLES, GraphKeys.METRIC_VARIABLES],
        validate_shape=validate_shape,
        synchronization=VariableSynchronization.ON_READ,
        aggregation=VariableAggregation.SUM,
        name=name,
    )


def collected(value: Any, update: Any, metrics_collections: Any, updates_collections: Any) -> Metric:
    """Both, after joining the collections asked for."""
    graph = context.get_default_graph()
    if metrics_collections:
        graph.add_to_collections(metrics_collections, value)
    if updates_collections:
        graph.add_to_collections(updates_collections, update)
    return value, update


def added(variable: Any, amount: Any) -> Any:
    return variable.assign_add(amount)


def matched(predictions: Any, labels: Any, weights: Any) -> tuple[Tensor, Any, Any]:
    """Without an extra last dimension of size 1 in one of them; weights get one where they need it."""
    predictions = convert_to_tensor(predictions)
    if labels is not None:
        with name_scope("remove_squeezable_dimensions"):
            labels = convert_to_tensor(labels)
            ranks = predictions.static_shape.rank, labels.static_shape.rank
            if None not in ranks:
                if ranks[0] - ranks[1] == 1 and predictions.static_shape[-1] in (1, None):  # type: ignore[operator]
                    predictions = array.squeeze(predictions, [-1])
                elif ranks[1] - ranks[0] == 1 and labels.static_shape[-1] in (1, None):  # type: ignore[operator]
                    labels = array.squeeze(labels, [-1])
            else:
                predictions, labels = squeezed_like(predictions, labels), squeezed_like(labels, predictions)
        predictions.shape.assert_is_compatible_with(labels.shape)
    if weights is None:
        return predictions, labels, None
    weights = convert_to_tensor(weights)
    rank, wanted = weights.static_shape.rank, predictions.static_shape.rank
    if rank == 0:
        return predictions, labels, weights
    if rank is None or wanted is None:
        return predictions, labels, squeezed_like(weights, predictions, expand=True)
    if rank - wanted == 1 and weights.static_shape[-1] in (1, None):
        weights = array.squeeze(weights, [-1])
    elif wanted - rank == 1:
        weights = array.expand_dims(weights, -1)
    return predictions, labels, weights


def quotient(part: Any, whole: Any, name: str) -> Tensor:
    """part / whole; 0 where whole is not positive."""
    return math.divide_no_nan(part, math.maximum(whole, 0.0), name=name)


# -- means -------------------------------------------------------------------------------------------------------


@export(v1="metrics.mean")
def mean(
    values: Any,
    weights: Any = None,
    metrics_collections: Any = None,
    updates_collections: Any = None,
    name: str | None = None,
) -> Metric:
    """The weighted mean of all values seen. Variables: `total`, `count`.

    Raises:
        ValueError: weights that do not fit.
        RuntimeError: in eager mode.
    """
    refuse_eager("mean")
    with variable_scope.variable_scope(name, "mean", (values, weights)):
        values = casting.cast(values, dtypes.float32)
        total = metric_variable([], dtypes.float32, "total")
        count = metric_variable([], dtypes.float32, "count")
        if weights is None:
            number = casting.cast(ranges.size(values), dtypes.float32)
        else:
            values, _, weights = matched(values, None, weights)
            weights = broadcast_weights(casting.cast(weights, dtypes.float32), values)
            values = math.multiply(values, weights)
            number = reductions.reduce_sum(weights)
        new_total = added(total, reductions.reduce_sum(values))
        with control_dependencies([values]):
            new_count = added(count, number)
        value = quotient(total, count, "value")
        update = quotient(new_total, new_count, "update_op")
        return collected(value, update, metrics_collections, updates_collections)


@export(v1="metrics.mean_tensor")
def mean_tensor(
    values: Any,
    weights: Any = None,
    metrics_collections: Any = None,
    updates_collections: Any = None,
    name: str | None = None,
) -> Metric:
    """The weighted mean of all values seen, element by element. Variables: `total_tensor`, `count_tensor`."""
    refuse_eager("mean_tensor")
    with variable_scope.variable_scope(name, "mean", (values, weights)):
        values = casting.cast(values, dtypes.float32)
        total = metric_variable(values.static_shape, dtypes.float32, "total_tensor")
        count = metric_variable(values.static_shape, dtypes.float32, "count_tensor")
        number = array.ones_like(values)
        if weights is not None:
            values, _, weights = matched(values, None, weights)
            weights = broadcast_weights(casting.cast(weights, dtypes.float32), values)
            values = math.multiply(values, weights)
            number = math.multiply(number, weights)
        new_total = added(total, values)
        with control_dependencies([values]):
            new_count = added(count, number)
        value = quotient(total, count, "value")
        update = quotient(new_total, new_count, "update_op")
        return collected(value, update, metrics_collections, updates_collections)


@export(v1="metrics.accuracy")
def accuracy(
    labels: Any,
    predictions: Any,
    weights: Any = None,
    metrics_collections: Any = None,
    updates_collections: Any = None,
    name: str | None = None,
) -> Metric:
    """How often predictions equal labels."""
    refuse_eager("accuracy")
    predictions, labels, weights = matched(predictions, labels, weights)
    if labels.dtype.base_dtype is not predictions.dtype.base_dtype:
        predictions = casting.cast(predictions, labels.dtype.base_dtype)
    right = casting.cast(comparison.equal(predictions, labels), dtypes.float32)
    return mean(right, weights, metrics_collections, updates_collections, name or "accuracy")


def _of_errors(label: str, error: Callable[[Any, Any], Any]) -> Callable[..., Metric]:
    """A metric that is the mean of a function of predictions and labels."""

    def metric(
        labels: Any,
        predictions: Any,
        weights: Any = None,
        metrics_collections: Any = None,
        updates_collections: Any = None,
        name: str | None = None,
    ) -> Metric:
        refuse_eager(label)
        predictions, labels, weights = matched(predictions, labels, weights)
        return mean(error(predictions, labels), weights, metrics_collections, updates_collections, name or label)

    return metric


_mean_absolute_error = _of_errors("mean_absolute_error", lambda p, y: math_unary.abs(math.subtract(p, y)))
_mean_squared_error = _of_errors("mean_squared_error", lambda p, y: math.squared_difference(y, p))


@export(v1="metrics.mean_absolute_error")
def mean_absolute_error(
    labels: Any,
    predictions: Any,
    weights: Any = None,
    metrics_collections: Any = None,
    updates_collections: Any = None,
    name: str | None = None,
) -> Metric:
    """The mean of |predictions - labels|."""
    return _mean_absolute_error(labels, predictions, weights, metrics_collections, updates_collections, name)


@export(v1="metrics.mean_squared_error")
def mean_squared_error(
    labels: Any,
    predictions: Any,
    weights: Any = None,
    metrics_collections: Any = None,
    updates_collections: Any = None,
    name: str | None = None,
) -> Metric:
    """The mean of (predictions - labels)^2."""
    return _mean_squared_error(labels, predictions, weights, metrics_collections, updates_collections, name)


@export(v1="metrics.root_mean_squared_error")
def root_mean_squared_error(
    labels: Any,
    predictions: Any,
    weights: Any = None,
    metrics_collections: Any = None,
    updates_collections: Any = None,
    name: str | None = None,
) -> Metric:
    """The square root of the mean squared error."""
    value, update = mean_squared_error(labels, predictions, weights, None, None, name or "root_mean_squared_error")
    return collected(math_unary.sqrt(value), math_unary.sqrt(update), metrics_collections, updates_collections)


@export(v1="metrics.mean_relative_error")
def mean_relative_error(
    labels: Any,
    predictions: Any,
    normalizer: Any,
    weights: Any = None,
    metrics_collections: Any = None,
    updates_collections: Any = None,
    name: str | None = None,
) -> Metric:
    """The mean of |predictions - labels| / normalizer; 0 where the normalizer is 0."""
    refuse_eager("mean_relative_error")
    predictions, labels, weights = matched(predictions, labels, weights)
    predictions, normalizer, _ = matched(predictions, normalizer, None)
    errors = math_unary.abs(math.subtract(labels, predictions))
    relative = array_selection.where(
        comparison.equal(normalizer, 0.0), array.zeros_like(labels), math.divide(errors, normalizer)
    )
    return mean(relative, weights, metrics_collections, updates_collections, name or "mean_relative_error")


@export(v1="metrics.mean_cosine_distance")
def mean_cosine_distance(
    labels: Any,
    predictions: Any,
    dim: int,
    weights: Any = None,
    metrics_collections: Any = None,
    updates_collections: Any = None,
    name: str | None = None,
) -> Metric:
    """1 - the mean of the sums of labels * predictions along `dim`, both unit vectors."""
    refuse_eager("mean_cosine_distance")
    predictions, labels, weights = matched(predictions, labels, weights)
    products = reductions.reduce_sum(math.multiply(predictions, labels), axis=[dim], keepdims=True)
    similarity, update = mean(products, weights, None, None, name or "mean_cosine_distance")
    return collected(
        math.subtract(1.0, similarity), math.subtract(1.0, update), metrics_collections, updates_collections
    )


@export(v1="metrics.percentage_below")
def percentage_below(
    values: Any,
    threshold: Any,
    weights: Any = None,
    metrics_collections: Any = None,
    updates_collections: Any = None,
    name: str | None = None,
) -> Metric:
    """How many of the values are below a threshold, of 1."""
    refuse_eager("percentage_below")
    below = casting.cast(comparison.less(values, threshold), dtypes.float32)
    return mean(below, weights, metrics_collections, updates_collections, name or "percentage_below_threshold")


# -- counts ------------------------------------------------------------------------------------------------------


def counted(condition: Any, weights: Any, metrics_collections: Any = None, updates_collections: Any = None) -> Metric:
    """The weighted count of what is true. Variable: `count`."""
    count = metric_variable([], dtypes.float32, "count")
    values = casting.cast(condition, dtypes.float32)
    if weights is not None:
        with control_dependencies(check_weights(weights, values)):
            values = math.multiply(values, casting.cast(weights, dtypes.float32))
    value = array.identity(count)
    update = added(count, reductions.reduce_sum(values))
    return collected(value, update, metrics_collections, updates_collections)


_BINARY = {
    "true_positives": (True, True),
    "false_negatives": (True, False),
    "true_negatives": (False, False),
    "false_positives": (False, True),
}


def _count(
    kind: str,
    labels: Any,
    predictions: Any,
    weights: Any,
    metrics_collections: Any,
    updates_collections: Any,
    name: Any,
) -> Metric:
    refuse_eager(kind)
    with variable_scope.variable_scope(name, kind, (predictions, labels, weights)):
        predictions, labels, weights = matched(
            casting.cast(predictions, dtypes.bool_), casting.cast(labels, dtypes.bool_), weights
        )
        of_label, of_prediction = _BINARY[kind]
        hit = comparison.logical_and(comparison.equal(labels, of_label), comparison.equal(predictions, of_prediction))
        return counted(hit, weights, metrics_collections, updates_collections)


@export(v1="metrics.true_positives")
def true_positives(
    labels: Any,
    predictions: Any,
    weights: Any = None,
    metrics_collections: Any = None,
    updates_collections: Any = None,
    name: str | None = None,
) -> Metric:
    """The weighted count of true labels that were predicted."""
    return _count("true_positives", labels, predictions, weights, metrics_collections, updates_collections, name)


@export(v1="metrics.true_negatives")
def true_negatives(
    labels: Any,
    predictions: Any,
    weights: Any = None,
    metrics_collections: Any = None,
    updates_collections: Any = None,
    name: str | None = None,
) -> Metric:
    """The weighted count of false labels that were predicted."""
    return _count("true_negatives", labels, predictions, weights, metrics_collections, updates_collections, name)


@export(v1="metrics.false_positives")
def false_positives(
    labels: Any,
    predictions: Any,
    weights: Any = None,
    metrics_collections: Any = None,
    updates_collections: Any = None,
    name: str | None = None,
) -> Metric:
    """The weighted count of false labels predicted to be true."""
    return _count("false_positives", labels, predictions, weights, metrics_collections, updates_collections, name)


@export(v1="metrics.false_negatives")
def false_negatives(
    labels: Any,
    predictions: Any,
    weights: Any = None,
    metrics_collections: Any = None,
    updates_collections: Any = None,
    name: str | None = None,
) -> Metric:
    """The weighted count of true labels predicted to be false."""
    return _count("false_negatives", labels, predictions, weights, metrics_collections, updates_collections, name)


def _ratio(name: str, other: Callable[..., Metric], labels: Any, predictions: Any, weights: Any) -> Metric:
    predictions, labels = casting.cast(predictions, dtypes.bool_), casting.cast(labels, dtypes.bool_)
    hits, hits_update = true_positives(labels, predictions, weights)
    misses, misses_update = other(labels, predictions, weights)

    def ratio(a: Any, b: Any, label: str) -> Tensor:
        return array_selection.where(comparison.greater(a + b, 0), math.truediv(a, a + b, name="div"), 0.0, name=label)

    return ratio(hits, misses, "value"), ratio(hits_update, misses_update, "update_op")


@export(v1="metrics.precision")
def precision(
    labels: Any,
    predictions: Any,
    weights: Any = None,
    metrics_collections: Any = None,
    updates_collections: Any = None,
    name: str | None = None,
) -> Metric:
    """How many of those predicted to be true are: true positives / (true positives + false positives)."""
    refuse_eager("precision")
    with variable_scope.variable_scope(name, "precision", (predictions, labels, weights)):
        value, update = _ratio("precision", false_positives, labels, predictions, weights)
        return collected(value, update, metrics_collections, updates_collections)


@export(v1="metrics.recall")
def recall(
    labels: Any,
    predictions: Any,
    weights: Any = None,
    metrics_collections: Any = None,
    updates_collections: Any = None,
    name: str | None = None,
) -> Metric:
    """How many of the true ones were predicted: true positives / (true positives + false negatives)."""
    refuse_eager("recall")
    with variable_scope.variable_scope(name, "recall", (predictions, labels, weights)):
        value, update = _ratio("recall", false_negatives, labels, predictions, weights)
        return collected(value, update, metrics_collections, updates_collections)
