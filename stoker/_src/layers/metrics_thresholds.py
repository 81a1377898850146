"""Metrics of scores at many thresholds: areas under curves, precision and recall at thresholds."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from stoker._src.base import dtypes
from stoker._src.base.export import export, named
from stoker._src.graph.conversion import convert_to_tensor
from stoker._src.graph.scopes import control_dependencies, name_scope
from stoker._src.graph.tensor import Tensor
from stoker._src.layers.metrics import Metric, matched, metric, metric_variable
from stoker._src.layers.weights import broadcast_weights
from stoker._src.ops.array import casting, selection, shaping
from stoker._src.ops.control_flow import debugging
from stoker._src.ops.math import arithmetic, comparison, reductions, scans, unary_functions
from stoker._src.ops.variables import variable_scope

_ALL = ("true_positives", "false_negatives", "true_negatives", "false_positives")
_SHORT = {"true_positives": "tp", "false_negatives": "fn", "true_negatives": "tn", "false_positives": "fp"}
EDGE = 1e-7


def confusion(
    labels: Any, predictions: Any, thresholds: list[float], weights: Any, kinds: tuple[str, ...] = _ALL
) -> tuple[dict[str, Any], dict[str, Any]]:
    """The counts of each kind at each threshold (a score above it counts as true), and the ops that update them."""
    predictions = convert_to_tensor(predictions)
    message, kind = "predictions must be in [0, 1]", predictions.dtype.base_dtype
    check = [
        debugging.assert_greater_equal(predictions, casting.cast(0.0, kind), message=message),
        debugging.assert_less_equal(predictions, casting.cast(1.0, kind), message=message),
    ]
    with control_dependencies([each for each in check if each is not None]):
        predictions, labels, weights = matched(
            casting.cast(predictions, dtypes.float32), casting.cast(labels, dtypes.bool_), weights
        )
    scores = shaping.reshape(predictions, [1, -1])
    truth = shaping.reshape(labels, [1, -1])
    levels = convert_to_tensor(thresholds)
    if levels.static_shape.rank != 1:
        raise ValueError(f"Shape must be rank 1 but is rank {levels.static_shape.rank}: thresholds")
    levels = shaping.reshape(levels, [-1, 1])
    above = comparison.greater(scores, levels)
    below, untrue = comparison.logical_not(above), comparison.logical_not(truth)
    flat = None
    if weights is not None:
        whole = broadcast_weights(casting.cast(weights, dtypes.float32), predictions)
        flat = shaping.reshape(whole, [1, -1])
    parts = {
        "true_positives": (truth, above),
        "false_negatives": (truth, below),
        "true_negatives": (untrue, below),
        "false_positives": (untrue, above),
    }
    values, updates = {}, {}
    for kind in kinds:
        variable = metric_variable([len(thresholds)], dtypes.float32, kind)
        hits = casting.cast(comparison.logical_and(*parts[kind]), dtypes.float32)
        if flat is not None:
            hits = arithmetic.multiply(hits, flat)
        values[_SHORT[kind]] = variable.value()
        updates[_SHORT[kind]] = variable.assign_add(reductions.reduce_sum(hits, 1))
    return values, updates


def grid(count: int) -> list[float]:
    """`count` evenly spaced thresholds in [0, 1], the outermost slightly outside."""
    inner = [(i + 1) * 1.0 / (count - 1) for i in range(count - 2)]
    return [0.0 - EDGE, *inner, 1.0 + EDGE]


@export(v1="metrics.auc")
@metric
def auc(
    labels: Any,
    predictions: Any,
    weights: Any = None,
    num_thresholds: int = 200,
    metrics_collections: Any = None,
    updates_collections: Any = None,
    curve: str = "ROC",
    name: str | None = None,
    summation_method: str = "trapezoidal",
    thresholds: Any = None,
) -> Metric:
    """The area under the ROC or precision-recall curve, from counts at thresholds.

    Args:
        labels, predictions, weights: booleans, scores in [0, 1], and weights.
        num_thresholds: the number of thresholds in [0, 1].
        metrics_collections, updates_collections: collections for the value and the update op.
        curve: "ROC" or "PR".
        name: the scope.
        summation_method: "trapezoidal", "minoring", "majoring", or "careful_interpolation" (for PR: Davis and Goadrich,
            2006).
        thresholds: explicit inner thresholds, instead of evenly spaced ones.

    Raises:
        ValueError: the curve or method is unknown, or a threshold is outside [0, 1].
    """
    with variable_scope.variable_scope(name, "auc", (labels, predictions, weights)):
        if curve not in ("ROC", "PR"):
            raise ValueError(f"curve must be either ROC or PR, {curve} unknown")
        if summation_method not in ("trapezoidal", "minoring", "majoring", "careful_interpolation"):
            raise ValueError(f"Invalid summation_method: {summation_method}")
        if thresholds is not None:
            if any(not 0 <= each <= 1 for each in thresholds):
                raise ValueError("threshold values must be in the range [0, 1]")
            levels = [0.0 - EDGE, *sorted(thresholds), 1.0 + EDGE]
        else:
            levels = grid(num_thresholds)
        values, updates = confusion(labels, predictions, levels, weights)
        value = _area(values, curve, summation_method, "value")
        update = _area(updates, curve, summation_method, "update_op")
        return value, update


def _area(counts: dict[str, Any], curve: str, method: str, name: str) -> Tensor:
    tp, fn, tn, fp = (convert_to_tensor(counts[key]) for key in ("tp", "fn", "tn", "fp"))
    if curve == "PR" and method == "careful_interpolation":
        return _interpolated(tp, fp, fn)
    small = 1.0e-6
    recall: Any = arithmetic.divide(tp + small, tp + fn + small)
    if curve == "ROC":
        x: Any = arithmetic.divide(fp, fp + tn + small)
        y: Any = recall
    else:
        x, y = recall, arithmetic.divide(tp + small, tp + fp + small)
    before, after = y[:-1], y[1:]
    if method == "minoring":
        height = arithmetic.minimum(before, after)
    elif method == "majoring":
        height = arithmetic.maximum(before, after)
    else:
        height = (before + after) / 2.0
    return reductions.reduce_sum(arithmetic.multiply(x[:-1] - x[1:], height), name=name)


def _interpolated(tp: Any, fp: Any, fn: Any) -> Tensor:
    with name_scope("interpolate_pr_auc") as scope:
        hits = tp[:-1] - tp[1:]
        called = tp + fp
        slope = arithmetic.divide_no_nan(hits, arithmetic.maximum(called[:-1] - called[1:], 0), name="prec_slope")
        intercept = tp[1:] - arithmetic.multiply(slope, called[1:])
        ratio = selection.where(
            comparison.logical_and(called[:-1] > 0, called[1:] > 0),
            arithmetic.divide_no_nan(called[:-1], arithmetic.maximum(called[1:], 0), name="recall_relative_ratio"),
            shaping.ones_like(called[1:]),
        )
        area = arithmetic.multiply(slope, hits + arithmetic.multiply(intercept, unary_functions.log(ratio)))
        return reductions.reduce_sum(
            arithmetic.divide_no_nan(area, arithmetic.maximum(tp[1:] + fn[1:], 0), name="pr_auc_increment"), name=scope
        )


def _at_best(
    counts: dict[str, Any], wanted: float, fixed: tuple[str, str], shown: tuple[str, str], name: str
) -> Tensor:
    """One rate at the threshold where another rate is closest to a target.

    If several thresholds are equally close, a specificity uses the highest and a sensitivity the lowest.
    """
    given: Any = arithmetic.divide(counts[fixed[0]], counts[fixed[0]] + counts[fixed[1]] + EDGE)
    distance: Any = unary_functions.abs(given - wanted)
    if fixed == ("tp", "fn"):
        last: Any = shaping.shape(distance)[0]
        index = last - 1 - casting.cast(scans.argmin(selection.reverse(distance, [0]), 0), dtypes.int32)
    else:
        index = casting.cast(scans.argmin(distance, 0), dtypes.int32)
    hit, miss = (convert_to_tensor(counts[key])[index] for key in shown)
    return arithmetic.divide(hit, hit + miss + EDGE, name=name)


def _rate_at_rate(
    label: str, fixed: tuple[str, str], shown: tuple[str, str], wanted: float, arguments: tuple[Any, ...]
) -> Metric:
    labels, predictions, weights, num_thresholds, name = arguments
    if not 0 <= wanted <= 1:
        raise ValueError(f"{label.split('_')[-1]} must be in the range [0, 1]. Currently: {wanted}.")
    with variable_scope.variable_scope(name, label, (predictions, labels, weights)):
        values, updates = confusion(labels, predictions, grid(num_thresholds), weights)
        value = _at_best(values, wanted, fixed, shown, "value")
        update = _at_best(updates, wanted, fixed, shown, "update_op")
        return value, update


@export(v1="metrics.sensitivity_at_specificity")
@metric
def sensitivity_at_specificity(
    labels: Any,
    predictions: Any,
    specificity: float,
    weights: Any = None,
    num_thresholds: int = 200,
    metrics_collections: Any = None,
    updates_collections: Any = None,
    name: str | None = None,
) -> Metric:
    """The sensitivity at the threshold whose specificity is closest to the given one."""
    arguments = (labels, predictions, weights, num_thresholds, name)
    return _rate_at_rate("sensitivity_at_specificity", ("tn", "fp"), ("tp", "fn"), specificity, arguments)


@export(v1="metrics.specificity_at_sensitivity")
@metric
def specificity_at_sensitivity(
    labels: Any,
    predictions: Any,
    sensitivity: float,
    weights: Any = None,
    num_thresholds: int = 200,
    metrics_collections: Any = None,
    updates_collections: Any = None,
    name: str | None = None,
) -> Metric:
    """The specificity at the threshold whose sensitivity is closest to the given one."""
    arguments = (labels, predictions, weights, num_thresholds, name)
    return _rate_at_rate("specificity_at_sensitivity", ("tp", "fn"), ("tn", "fp"), sensitivity, arguments)


def _counting(kind: str, doc: str) -> Callable[..., Metric]:
    """Makes `tf.metrics.<kind>_at_thresholds`, one of the counts."""

    @export(v1=f"metrics.{kind}_at_thresholds")
    @metric
    @named(f"{kind}_at_thresholds", doc)
    def count(
        labels: Any,
        predictions: Any,
        thresholds: Any,
        weights: Any = None,
        metrics_collections: Any = None,
        updates_collections: Any = None,
        name: str | None = None,
    ) -> Metric:
        with variable_scope.variable_scope(name, kind, (predictions, labels, weights)):
            values, updates = confusion(labels, predictions, list(thresholds), weights, (kind,))
            return shaping.identity(values[_SHORT[kind]]), updates[_SHORT[kind]]

    return count


true_positives_at_thresholds = _counting(
    "true_positives", "The weighted count of true labels whose score is above each threshold."
)
true_negatives_at_thresholds = _counting(
    "true_negatives", "The weighted count of false labels whose score is not above each threshold."
)
false_positives_at_thresholds = _counting(
    "false_positives", "The weighted count of false labels whose score is above each threshold."
)
false_negatives_at_thresholds = _counting(
    "false_negatives", "The weighted count of true labels whose score is not above each threshold."
)


def _hit_rate(label: str, other: str) -> Callable[..., Metric]:
    """Makes `tf.metrics.<label>_at_thresholds`: true positives / (true positives + another count)."""

    @export(v1=f"metrics.{label}_at_thresholds")
    @metric
    @named(f"{label}_at_thresholds", f"{label.capitalize()} at each threshold.")
    def rate(
        labels: Any,
        predictions: Any,
        thresholds: Any,
        weights: Any = None,
        metrics_collections: Any = None,
        updates_collections: Any = None,
        name: str | None = None,
    ) -> Metric:
        with variable_scope.variable_scope(name, f"{label}_at_thresholds", (predictions, labels, weights)):
            kinds = ("true_positives", other)
            values, updates = confusion(labels, predictions, list(thresholds), weights, kinds)

            def ratio(counts: dict[str, Any], ending: str) -> Tensor:
                hits, misses = counts["tp"], counts[_SHORT[other]]
                return arithmetic.divide(hits, EDGE + hits + misses, name=f"{label}_{ending}")

            return ratio(values, "value"), ratio(updates, "update_op")

    return rate


precision_at_thresholds = _hit_rate("precision", "false_positives")
recall_at_thresholds = _hit_rate("recall", "false_negatives")
