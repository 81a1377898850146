"""`tf.contrib.metrics`: the metrics under their first names, with predictions before labels."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from stoker._src.base import dtypes
from stoker._src.base.export import export, export_constant, named
from stoker._src.graph import scopes
from stoker._src.layers import metrics, metrics_classes, metrics_thresholds
from stoker._src.layers.metrics import metric, metric_variable
from stoker._src.ops.array import casting, ranges, shaping
from stoker._src.ops.math import arithmetic, comparison, reductions, unary_functions
from stoker._src.ops.sparse import sets
from stoker._src.ops.variables import variable_functions, variable_scope


def _both(name: str) -> tuple[str, str]:
    """The names of a function in `contrib.metrics` and in `contrib.slim.metrics`."""
    return f"contrib.metrics.{name}", f"contrib.slim.metrics.{name}"


def _streaming(
    function: Callable[..., Any],
    name: str,
    *required: str,
    after_weights: tuple[str, ...] = (),
    last: tuple[str, ...] = (),
) -> Callable[..., Any]:
    """The metric `function` of labels and predictions, with predictions first and then the arguments that it requires."""
    positions = ("predictions", "labels", *required, "weights", *after_weights, "metrics_collections", "updates_collections", *last, "name")  # fmt: skip

    @export(v1=_both(name))
    @named(name, f"`tf.metrics.{function.__name__}` with the arguments {', '.join(positions)}.")
    def streaming(*args: Any, **kwargs: Any) -> Any:
        if len(args) > len(positions):
            raise TypeError(f"{name}() takes at most {len(positions)} arguments ({len(args)} given)")
        given = dict(zip(positions, args))
        if given.keys() & kwargs.keys():
            raise TypeError(f"{name}() got multiple values for arguments {sorted(given.keys() & kwargs.keys())}")
        return function(**given, **kwargs)

    return streaming


streaming_accuracy = _streaming(metrics.accuracy, "streaming_accuracy")
streaming_precision = _streaming(metrics.precision, "streaming_precision")
streaming_recall = _streaming(metrics.recall, "streaming_recall")
streaming_mean_absolute_error = _streaming(metrics.mean_absolute_error, "streaming_mean_absolute_error")
streaming_mean_squared_error = _streaming(metrics.mean_squared_error, "streaming_mean_squared_error")
streaming_root_mean_squared_error = _streaming(metrics.root_mean_squared_error, "streaming_root_mean_squared_error")
streaming_mean_relative_error = _streaming(metrics.mean_relative_error, "streaming_mean_relative_error", "normalizer")
streaming_mean_cosine_distance = _streaming(metrics.mean_cosine_distance, "streaming_mean_cosine_distance", "dim")
streaming_true_positives = _streaming(metrics.true_positives, "streaming_true_positives")
streaming_true_negatives = _streaming(metrics.true_negatives, "streaming_true_negatives")
streaming_false_positives = _streaming(metrics.false_positives, "streaming_false_positives")
streaming_false_negatives = _streaming(metrics.false_negatives, "streaming_false_negatives")
streaming_mean_iou = _streaming(metrics_classes.mean_iou, "streaming_mean_iou", "num_classes")
streaming_recall_at_k = _streaming(metrics_classes.recall_at_k, "streaming_recall_at_k", "k")
streaming_sparse_recall_at_k = _streaming(metrics_classes.recall_at_k, "streaming_sparse_recall_at_k", "k", "class_id")
streaming_sparse_precision_at_k = _streaming(
    metrics_classes.precision_at_k, "streaming_sparse_precision_at_k", "k", "class_id"
)
streaming_sparse_average_precision_at_k = _streaming(
    metrics_classes.average_precision_at_k, "streaming_sparse_average_precision_at_k", "k"
)
streaming_auc = _streaming(metrics_thresholds.auc, "streaming_auc", after_weights=("num_thresholds",), last=("curve",))
streaming_sensitivity_at_specificity = _streaming(
    metrics_thresholds.sensitivity_at_specificity,
    "streaming_sensitivity_at_specificity",
    "specificity",
    after_weights=("num_thresholds",),
)
streaming_specificity_at_sensitivity = _streaming(
    metrics_thresholds.specificity_at_sensitivity,
    "streaming_specificity_at_sensitivity",
    "sensitivity",
    after_weights=("num_thresholds",),
)
streaming_precision_at_thresholds = _streaming(
    metrics_thresholds.precision_at_thresholds, "streaming_precision_at_thresholds", "thresholds"
)
streaming_recall_at_thresholds = _streaming(
    metrics_thresholds.recall_at_thresholds, "streaming_recall_at_thresholds", "thresholds"
)
streaming_true_positives_at_thresholds = _streaming(
    metrics_thresholds.true_positives_at_thresholds, "streaming_true_positives_at_thresholds", "thresholds"
)
streaming_true_negatives_at_thresholds = _streaming(
    metrics_thresholds.true_negatives_at_thresholds, "streaming_true_negatives_at_thresholds", "thresholds"
)
streaming_false_positives_at_thresholds = _streaming(
    metrics_thresholds.false_positives_at_thresholds, "streaming_false_positives_at_thresholds", "thresholds"
)
streaming_false_negatives_at_thresholds = _streaming(
    metrics_thresholds.false_negatives_at_thresholds, "streaming_false_negatives_at_thresholds", "thresholds"
)
export_constant(metrics.__name__, "mean", v1=_both("streaming_mean"))
export_constant(metrics.__name__, "mean_tensor", v1=_both("streaming_mean_tensor"))
export_constant(metrics.__name__, "percentage_below", v1=_both("streaming_percentage_less"))
for _name in "set_difference set_intersection set_size set_union".split():
    export_constant(sets.__name__, _name, v1=_both(_name))


@export(v1=_both("accuracy"))
def accuracy(predictions: Any, labels: Any, weights: Any = None, name: str | None = None) -> Any:
    """The fraction of predictions that equal their labels, in this batch alone.

    Raises:
        ValueError: dtypes differ, or are neither integers, strings nor bools.
    """
    if not (labels.dtype.is_integer or labels.dtype in (dtypes.bool_, dtypes.string)):
        raise ValueError(f"Labels should have bool, string, or integer dtype, given: {labels.dtype}")
    if labels.dtype.base_dtype != predictions.dtype.base_dtype:
        raise ValueError(f"Dtypes of predictions and labels should match, given: predictions ({predictions.dtype}) and labels ({labels.dtype})")  # fmt: skip
    labels.get_shape().assert_is_compatible_with(predictions.get_shape())
    with scopes.NameScope(name, "accuracy", values=[predictions, labels]):
        correct = casting.cast(comparison.equal(predictions, labels), dtypes.float32)
        if weights is None:
            return reductions.reduce_mean(correct)
        correct = correct * weights
        count = reductions.reduce_sum(weights * shaping.ones_like(correct))
        return reductions.reduce_sum(correct) / count


@export(v1=_both("f1_score"))
@metric
def f1_score(
    labels: Any,
    predictions: Any,
    weights: Any = None,
    num_thresholds: int = 200,
    metrics_collections: Any = None,
    updates_collections: Any = None,
    name: str | None = None,
) -> Any:
    """The best F1 score at any of `num_thresholds` thresholds in [0, 1], between which the predictions are.

    F1 is the harmonic mean of precision and recall.
    """

    def best(counts: dict[str, Any]) -> Any:
        edge = metrics_thresholds.EDGE
        precision = arithmetic.divide(counts["tp"], edge + counts["tp"] + counts["fp"])
        recall = arithmetic.divide(counts["tp"], edge + counts["tp"] + counts["fn"])
        return reductions.reduce_max(2.0 * precision * recall / (precision + recall + edge))

    with variable_scope.variable_scope(name, "f1", (labels, predictions, weights)):
        kinds = ("true_positives", "false_negatives", "false_positives")
        thresholds = metrics_thresholds.grid(num_thresholds)
        values, updates = metrics_thresholds.confusion(labels, predictions, thresholds, weights, kinds)
        return best(values), best(updates)


@export(v1=_both("aggregate_metrics"))
def aggregate_metrics(*value_update_tuples: Any) -> tuple[list[Any], list[Any]]:
    """Splits pairs of values and updates into a list of each.

    Raises:
        ValueError: there are no pairs.
    """
    if not value_update_tuples:
        raise ValueError("Expected at least one value_tensor/update_op pair")
    values, updates = zip(*value_update_tuples)
    return list(values), list(updates)


@export(v1=_both("aggregate_metric_map"))
def aggregate_metric_map(names_to_tuples: dict[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Splits {name: (value, update)} into dictionaries of the values and of the updates."""
    values = {name: pair[0] for name, pair in names_to_tuples.items()}
    return values, {name: pair[1] for name, pair in names_to_tuples.items()}


@export(v1=_both("count"))
@metric
def count(
    values: Any,
    weights: Any = None,
    metrics_collections: Any = None,
    updates_collections: Any = None,
    name: str | None = None,
) -> Any:
    """The number of elements seen so far, or the sum of their weights."""
    total = metric_variable([], dtypes.float32, name="count")
    values = casting.cast(values, dtypes.float32)
    if weights is None:
        number = casting.cast(ranges.size(values), dtypes.float32)
    else:
        values, _, weights = metrics.matched(values, None, weights)
        number = reductions.reduce_sum(casting.cast(weights, dtypes.float32) * shaping.ones_like(values))
    return shaping.identity(total), variable_functions.assign_add(total, number)


def _moments(predictions: Any, labels: Any, weights: Any, label: str) -> tuple[Any, Any]:
    """The covariance of all pairs seen so far, and its update. Batches are merged by the formula of Chan et al. (1979)."""
    with variable_scope.variable_scope(None, label):
        predictions, labels, weights = metrics.matched(
            casting.cast(predictions, dtypes.float32), casting.cast(labels, dtypes.float32), weights
        )
        seen, mean_p, mean_l, products = (
            metric_variable([], dtypes.float32, name=each)
            for each in ("count", "mean_prediction", "mean_label", "comoment")
        )
        weights = (
            shaping.ones_like(predictions)
            if weights is None
            else casting.cast(weights, dtypes.float32) * shaping.ones_like(predictions)
        )
        number = reductions.reduce_sum(weights)
        here_p = arithmetic.divide_no_nan(reductions.reduce_sum(predictions * weights), number)
        here_l = arithmetic.divide_no_nan(reductions.reduce_sum(labels * weights), number)
        before = shaping.identity(seen), shaping.identity(mean_p), shaping.identity(mean_l)
        after = before[0] + number
        gaps = here_p - before[1], here_l - before[2]
        added = reductions.reduce_sum(weights * (predictions - here_p) * (labels - here_l))
        added += gaps[0] * gaps[1] * arithmetic.divide_no_nan(before[0] * number, after)
        with scopes.control_dependencies([added, after]):
            moved = [
                variable_functions.assign(seen, after),
                variable_functions.assign_add(mean_p, gaps[0] * arithmetic.divide_no_nan(number, after)),
                variable_functions.assign_add(mean_l, gaps[1] * arithmetic.divide_no_nan(number, after)),
                variable_functions.assign_add(products, added),
            ]
        value = arithmetic.divide_no_nan(products, arithmetic.maximum(seen - 1.0, 0.0))
        with scopes.control_dependencies(moved):
            update = arithmetic.divide_no_nan(
                shaping.identity(moved[3]), arithmetic.maximum(shaping.identity(moved[0]) - 1.0, 0.0)
            )
        return value, update


@export(v1=_both("streaming_covariance"))
@metric
def streaming_covariance(
    predictions: Any,
    labels: Any,
    weights: Any = None,
    metrics_collections: Any = None,
    updates_collections: Any = None,
    name: str | None = None,
) -> Any:
    """The unbiased sample covariance of predictions and labels."""
    return _moments(predictions, labels, weights, "covariance")


@export(v1=_both("streaming_pearson_correlation"))
@metric
def streaming_pearson_correlation(
    predictions: Any,
    labels: Any,
    weights: Any = None,
    metrics_collections: Any = None,
    updates_collections: Any = None,
    name: str | None = None,
) -> Any:
    """The correlation of predictions and labels."""
    both = _moments(predictions, labels, weights, "covariance")
    first = _moments(predictions, predictions, weights, "variance_predictions")
    second = _moments(labels, labels, weights, "variance_labels")
    value, update = (arithmetic.divide_no_nan(both[i], unary_functions.sqrt(first[i] * second[i])) for i in (0, 1))
    return value, update
