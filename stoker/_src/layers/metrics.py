"""`tf.metrics`: streaming metrics. Each returns (value, update op); the update op adds a batch and returns the updated value.

Their state is in local variables, which are also in METRIC_VARIABLES. `tf.local_variables_initializer()` resets it.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any, TypeVar, cast

from stoker._src.base import dtypes
from stoker._src.base.export import export, named
from stoker._src.graph import context
from stoker._src.graph.conversion import convert_to_tensor
from stoker._src.graph.keys import GraphKeys
from stoker._src.graph.scopes import control_dependencies, name_scope
from stoker._src.graph.tensor import Tensor
from stoker._src.layers.weights import broadcast_weights, check_weights, squeezed_like
from stoker._src.ops.array import casting, ranges, selection, shaping
from stoker._src.ops.math import arithmetic, comparison, reductions, unary_functions
from stoker._src.ops.variables import variable_scope
from stoker._src.ops.variables.creators import VariableAggregation, VariableSynchronization
from stoker._src.ops.variables.variables import Variable

Metric = tuple[Any, Any]


Function = TypeVar("Function", bound=Callable[..., tuple[Any, Any]])


def metric(function: Function) -> Function:
    """Decorator of public metrics: refuses eager mode, which could not keep the state, and adds results to the requested collections."""
    signature = inspect.signature(function)

    @functools.wraps(function)
    def made(*args: Any, **kwargs: Any) -> Metric:
        if context.executing_eagerly():
            raise RuntimeError(f"tf.metrics.{function.__name__} is not supported when eager execution is enabled.")
        value, update = function(*args, **kwargs)
        given, graph = signature.bind(*args, **kwargs).arguments, context.get_default_graph()
        if given.get("metrics_collections"):
            graph.add_to_collections(given["metrics_collections"], value)
        if given.get("updates_collections"):
            graph.add_to_collections(given["updates_collections"], update)
        return value, update

    return cast(Function, made)


def metric_variable(shape: Any, dtype: Any, name: str, validate_shape: bool = True) -> Any:
    """A variable of zeros in LOCAL_VARIABLES and METRIC_VARIABLES."""
    return Variable(
        lambda: shaping.zeros(shape, dtype),
        trainable=False,
        collections=[GraphKeys.LOCAL_VARIABLES, GraphKeys.METRIC_VARIABLES],
        validate_shape=validate_shape,
        synchronization=VariableSynchronization.ON_READ,
        aggregation=VariableAggregation.SUM,
        name=name,
    )


def matched(predictions: Any, labels: Any, weights: Any) -> tuple[Tensor, Any, Any]:
    """Removes a surplus last dimension of size 1 from predictions or labels, and adjusts the rank of the weights."""
    predictions = convert_to_tensor(predictions)
    if labels is not None:
        with name_scope("remove_squeezable_dimensions"):
            labels = convert_to_tensor(labels)
            ranks = predictions.static_shape.rank, labels.static_shape.rank
            if None not in ranks:
                if ranks[0] - ranks[1] == 1 and predictions.static_shape[-1] in (1, None):
                    predictions = shaping.squeeze(predictions, [-1])
                elif ranks[1] - ranks[0] == 1 and labels.static_shape[-1] in (1, None):
                    labels = shaping.squeeze(labels, [-1])
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
        weights = shaping.squeeze(weights, [-1])
    elif wanted - rank == 1:
        weights = shaping.expand_dims(weights, -1)
    return predictions, labels, weights


def quotient(part: Any, whole: Any, name: str) -> Tensor:
    """part / whole; 0 if whole is not positive."""
    return arithmetic.divide_no_nan(part, arithmetic.maximum(whole, 0.0), name=name)


# -- means -------------------------------------------------------------------------------------------------------


@export(v1="metrics.mean")
@metric
def mean(
    values: Any,
    weights: Any = None,
    metrics_collections: Any = None,
    updates_collections: Any = None,
    name: str | None = None,
) -> Metric:
    """The weighted mean of all values seen. Variables: `total`, `count`.

    Raises:
        ValueError: the weights do not match.
        RuntimeError: in eager mode.
    """
    with variable_scope.variable_scope(name, "mean", (values, weights)):
        values = casting.cast(values, dtypes.float32)
        total = metric_variable([], dtypes.float32, "total")
        count = metric_variable([], dtypes.float32, "count")
        if weights is None:
            number = casting.cast(ranges.size(values), dtypes.float32)
        else:
            values, _, weights = matched(values, None, weights)
            weights = broadcast_weights(casting.cast(weights, dtypes.float32), values)
            values = arithmetic.multiply(values, weights)
            number = reductions.reduce_sum(weights)
        new_total = total.assign_add(reductions.reduce_sum(values))
        with control_dependencies([values]):
            new_count = count.assign_add(number)
        value = quotient(total, count, "value")
        update = quotient(new_total, new_count, "update_op")
        return value, update


@export(v1="metrics.mean_tensor")
@metric
def mean_tensor(
    values: Any,
    weights: Any = None,
    metrics_collections: Any = None,
    updates_collections: Any = None,
    name: str | None = None,
) -> Metric:
    """The weighted mean of all values seen, element by element. Variables: `total_tensor`, `count_tensor`."""
    with variable_scope.variable_scope(name, "mean", (values, weights)):
        values = casting.cast(values, dtypes.float32)
        total = metric_variable(values.static_shape, dtypes.float32, "total_tensor")
        count = metric_variable(values.static_shape, dtypes.float32, "count_tensor")
        number = shaping.ones_like(values)
        if weights is not None:
            values, _, weights = matched(values, None, weights)
            weights = broadcast_weights(casting.cast(weights, dtypes.float32), values)
            values = arithmetic.multiply(values, weights)
            number = arithmetic.multiply(number, weights)
        new_total = total.assign_add(values)
        with control_dependencies([values]):
            new_count = count.assign_add(number)
        value = quotient(total, count, "value")
        update = quotient(new_total, new_count, "update_op")
        return value, update


@export(v1="metrics.accuracy")
@metric
def accuracy(
    labels: Any,
    predictions: Any,
    weights: Any = None,
    metrics_collections: Any = None,
    updates_collections: Any = None,
    name: str | None = None,
) -> Metric:
    """The accuracy: how often predictions equal labels."""
    predictions, labels, weights = matched(predictions, labels, weights)
    if labels.dtype.base_dtype is not predictions.dtype.base_dtype:
        predictions = casting.cast(predictions, labels.dtype.base_dtype)
    right = casting.cast(comparison.equal(predictions, labels), dtypes.float32)
    return mean(right, weights, name=name or "accuracy")


@export(v1="metrics.mean_absolute_error")
@metric
def mean_absolute_error(
    labels: Any,
    predictions: Any,
    weights: Any = None,
    metrics_collections: Any = None,
    updates_collections: Any = None,
    name: str | None = None,
) -> Metric:
    """The mean of |predictions - labels|."""
    predictions, labels, weights = matched(predictions, labels, weights)
    errors = unary_functions.abs(arithmetic.subtract(predictions, labels))
    return mean(errors, weights, name=name or "mean_absolute_error")


@export(v1="metrics.mean_squared_error")
@metric
def mean_squared_error(
    labels: Any,
    predictions: Any,
    weights: Any = None,
    metrics_collections: Any = None,
    updates_collections: Any = None,
    name: str | None = None,
) -> Metric:
    """The mean of (predictions - labels)^2."""
    predictions, labels, weights = matched(predictions, labels, weights)
    errors = arithmetic.squared_difference(labels, predictions)
    return mean(errors, weights, name=name or "mean_squared_error")


@export(v1="metrics.root_mean_squared_error")
@metric
def root_mean_squared_error(
    labels: Any,
    predictions: Any,
    weights: Any = None,
    metrics_collections: Any = None,
    updates_collections: Any = None,
    name: str | None = None,
) -> Metric:
    """The square root of the mean squared error."""
    value, update = mean_squared_error(labels, predictions, weights, name=name or "root_mean_squared_error")
    return unary_functions.sqrt(value), unary_functions.sqrt(update)


@export(v1="metrics.mean_relative_error")
@metric
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
    predictions, labels, weights = matched(predictions, labels, weights)
    predictions, normalizer, _ = matched(predictions, normalizer, None)
    errors = unary_functions.abs(arithmetic.subtract(labels, predictions))
    relative = selection.where(
        comparison.equal(normalizer, 0.0), shaping.zeros_like(labels), arithmetic.divide(errors, normalizer)
    )
    return mean(relative, weights, name=name or "mean_relative_error")


@export(v1="metrics.mean_cosine_distance")
@metric
def mean_cosine_distance(
    labels: Any,
    predictions: Any,
    dim: int,
    weights: Any = None,
    metrics_collections: Any = None,
    updates_collections: Any = None,
    name: str | None = None,
) -> Metric:
    """1 - the mean of the sums of labels * predictions along `dim`. Both must be unit vectors."""
    predictions, labels, weights = matched(predictions, labels, weights)
    products = reductions.reduce_sum(arithmetic.multiply(predictions, labels), axis=[dim], keepdims=True)
    similarity, update = mean(products, weights, name=name or "mean_cosine_distance")
    return arithmetic.subtract(1.0, similarity), arithmetic.subtract(1.0, update)


@export(v1="metrics.percentage_below")
@metric
def percentage_below(
    values: Any,
    threshold: Any,
    weights: Any = None,
    metrics_collections: Any = None,
    updates_collections: Any = None,
    name: str | None = None,
) -> Metric:
    """The fraction of values below a threshold."""
    below = casting.cast(comparison.less(values, threshold), dtypes.float32)
    return mean(below, weights, name=name or "percentage_below_threshold")


# -- counts ------------------------------------------------------------------------------------------------------


_BINARY = {
    "true_positives": (True, True),
    "false_negatives": (True, False),
    "true_negatives": (False, False),
    "false_positives": (False, True),
}


def _counting(kind: str, doc: str) -> Callable[..., Metric]:
    """Makes `tf.metrics.<kind>`: the weighted count of one kind of outcome. Variable: `count`."""

    @export(v1=f"metrics.{kind}")
    @metric
    @named(kind, doc)
    def count(
        labels: Any,
        predictions: Any,
        weights: Any = None,
        metrics_collections: Any = None,
        updates_collections: Any = None,
        name: str | None = None,
    ) -> Metric:
        with variable_scope.variable_scope(name, kind, (predictions, labels, weights)):
            predictions, labels, weights = matched(
                casting.cast(predictions, dtypes.bool_), casting.cast(labels, dtypes.bool_), weights
            )
            of_label, of_prediction = _BINARY[kind]
            hit = comparison.logical_and(
                comparison.equal(labels, of_label), comparison.equal(predictions, of_prediction)
            )
            total = metric_variable([], dtypes.float32, "count")
            values = casting.cast(hit, dtypes.float32)
            if weights is not None:
                with control_dependencies(check_weights(weights, values)):
                    values = arithmetic.multiply(values, casting.cast(weights, dtypes.float32))
            return shaping.identity(total), total.assign_add(reductions.reduce_sum(values))

    return count


true_positives = _counting("true_positives", "The weighted count of true labels predicted to be true.")
true_negatives = _counting("true_negatives", "The weighted count of false labels predicted to be false.")
false_positives = _counting("false_positives", "The weighted count of false labels predicted to be true.")
false_negatives = _counting("false_negatives", "The weighted count of true labels predicted to be false.")


def _ratio(other: Callable[..., Metric], labels: Any, predictions: Any, weights: Any) -> Metric:
    predictions, labels = casting.cast(predictions, dtypes.bool_), casting.cast(labels, dtypes.bool_)
    hits, hits_update = true_positives(labels, predictions, weights)
    misses, misses_update = other(labels, predictions, weights)

    def ratio(a: Any, b: Any, label: str) -> Tensor:
        return selection.where(comparison.greater(a + b, 0), arithmetic.truediv(a, a + b, name="div"), 0.0, name=label)

    return ratio(hits, misses, "value"), ratio(hits_update, misses_update, "update_op")


@export(v1="metrics.precision")
@metric
def precision(
    labels: Any,
    predictions: Any,
    weights: Any = None,
    metrics_collections: Any = None,
    updates_collections: Any = None,
    name: str | None = None,
) -> Metric:
    """Precision: true positives / (true positives + false positives)."""
    with variable_scope.variable_scope(name, "precision", (predictions, labels, weights)):
        return _ratio(false_positives, labels, predictions, weights)


@export(v1="metrics.recall")
@metric
def recall(
    labels: Any,
    predictions: Any,
    weights: Any = None,
    metrics_collections: Any = None,
    updates_collections: Any = None,
    name: str | None = None,
) -> Metric:
    """Recall: true positives / (true positives + false negatives)."""
    with variable_scope.variable_scope(name, "recall", (predictions, labels, weights)):
        return _ratio(false_negatives, labels, predictions, weights)
