"""Metrics of classes: intersection over union, per-class accuracy, precision and recall at k."""

from __future__ import annotations

from typing import Any

import numpy as np

from stoker._src.base import dtypes
from stoker._src.base.export import export
from stoker._src.graph.conversion import convert_to_tensor
from stoker._src.graph.scopes import name_scope
from stoker._src.graph.sparse_tensor import SparseTensor, SparseTensorValue
from stoker._src.graph.tensor import Tensor
from stoker._src.layers.metrics import Metric, matched, metric, metric_variable
from stoker._src.layers.weights import broadcast_weights
from stoker._src.ops.array import casting, ranges, selection, shaping
from stoker._src.ops.control_flow import assertions, grouping
from stoker._src.ops.linalg import diagonals
from stoker._src.ops.math import arithmetic, comparison, counting, reductions, sorting
from stoker._src.ops.sparse import sparse_functions
from stoker._src.ops.variables import scatter_ops, variable_scope


def _flat(labels: Any, predictions: Any, weights: Any) -> tuple[Tensor, Tensor, Any]:
    predictions, labels, weights = matched(
        casting.cast(predictions, dtypes.int64), casting.cast(labels, dtypes.int64), weights
    )
    labels, predictions = shaping.reshape(labels, [-1]), shaping.reshape(predictions, [-1])
    return labels, predictions, None if weights is None else shaping.reshape(weights, [-1])


@export(v1="metrics.mean_iou")
@metric
def mean_iou(
    labels: Any,
    predictions: Any,
    num_classes: int,
    weights: Any = None,
    metrics_collections: Any = None,
    updates_collections: Any = None,
    name: str | None = None,
) -> Metric:
    """The mean over classes of intersection / union between labels and predictions.

    The update op returns the confusion matrix, as in TensorFlow. Variable: `total_confusion_matrix`.
    """
    with variable_scope.variable_scope(name, "mean_iou", (predictions, labels, weights)):
        labels, predictions, weights = _flat(labels, predictions, weights)
        total = metric_variable([num_classes, num_classes], dtypes.float64, "total_confusion_matrix")
        if weights is not None:  # a single weight applies to all
            weights = arithmetic.multiply(
                casting.cast(weights, dtypes.float64), shaping.ones_like(labels, dtypes.float64)
            )
        found = counting.confusion_matrix(labels, predictions, num_classes, dtypes.float64, weights=weights)
        update = total.assign_add(found)
        rows = casting.cast(reductions.reduce_sum(total, 0), dtypes.float32)
        columns = casting.cast(reductions.reduce_sum(total, 1), dtypes.float32)
        both = casting.cast(diagonals.DIAG_PART(total.value()), dtypes.float32)
        union: Any = rows + columns - both
        present = reductions.reduce_sum(casting.cast(comparison.not_equal(union, 0.0), dtypes.float32))
        safe = selection.where(comparison.greater(union, 0.0), union, shaping.ones_like(union))
        overlaps = arithmetic.divide(both, safe)
        mean = selection.where(
            comparison.greater(present, 0.0),
            arithmetic.divide(reductions.reduce_sum(overlaps, name="mean_iou"), present),
            0.0,
        )
        return mean, update


@export(v1="metrics.mean_per_class_accuracy")
@metric
def mean_per_class_accuracy(
    labels: Any,
    predictions: Any,
    num_classes: int,
    weights: Any = None,
    metrics_collections: Any = None,
    updates_collections: Any = None,
    name: str | None = None,
) -> Metric:
    """The mean of the per-class accuracies.

    The update op returns the accuracy of every class, as in TensorFlow. Variables: `total`, the number of examples of each class, and
    `count`, the number of correct predictions.
    """
    with variable_scope.variable_scope(name, "mean_accuracy", (predictions, labels, weights)):
        labels, predictions, weights = _flat(labels, predictions, weights)
        total = metric_variable([num_classes], dtypes.float32, "total")
        count = metric_variable([num_classes], dtypes.float32, "count")
        ones = shaping.ones_like(labels, dtypes.float32)
        right = casting.cast(comparison.equal(labels, predictions), dtypes.float32)
        if weights is not None:
            weights = casting.cast(weights, dtypes.float32)
            right, ones = arithmetic.multiply(right, weights), arithmetic.multiply(ones, weights)
        new_total = scatter_ops.scatter_add(total, labels, ones)
        new_count = scatter_ops.scatter_add(count, labels, right)
        by_class = arithmetic.divide_no_nan(count, arithmetic.maximum(total, 0.0))
        value = reductions.reduce_mean(by_class, name="mean_accuracy")
        update = arithmetic.divide_no_nan(new_count, arithmetic.maximum(new_total, 0.0), name="update_op")
        return value, update


# -- the best k --------------------------------------------------------------------------------------------------


def _dense_labels(labels: Any, predictions: Tensor) -> Tensor:
    """Labels [..., count]: a last dimension is added if there is a single label per example.

    Sparse labels are padded with -1, which is not a class.

    Raises:
        TypeError: the labels are not int64.
        ValueError: labels and predictions have different numbers of examples.
    """
    if _is_sparse(labels):
        labels = sparse_functions.to_dense(sparse_functions.as_sparse(labels), -1)
    labels = convert_to_tensor(labels)
    if labels.dtype.base_dtype is not dtypes.int64:
        raise TypeError(f"Types don't match, {dtypes.int64} vs {labels.dtype}.")
    found, wanted = labels.static_shape, predictions.static_shape
    if found.rank is not None and wanted.rank is not None:
        if found.rank not in (wanted.rank, wanted.rank - 1):
            raise ValueError(
                f"Unexpected labels shape {labels.shape} for predictions shape {predictions.shape}. Predictions rank should "
                "be the same rank as labels rank or labels rank plus one."
            )
        if found.rank == wanted.rank - 1:
            labels = shaping.expand_dims(labels, -1)
        if not found[: wanted.rank - 1].compatible(wanted[:-1]):
            raise ValueError(f"Labels of shape {labels.shape} are not for predictions of shape {predictions.shape}.")
        if found.known and wanted.known:
            return labels
    examples = shaping.shape(labels)[:-1], shaping.shape(predictions)[:-1]
    alike = comparison.logical_and(
        comparison.equal(ranges.rank(labels), ranges.rank(predictions)),
        reductions.reduce_all(comparison.equal(*examples)),
    )
    check = assertions.assert_op(alike, ["labels and predictions are of other examples:", *examples])
    return labels if check is None else grouping.with_dependencies([check], labels)


def _is_sparse(labels: Any) -> bool:
    return isinstance(labels, (SparseTensor, SparseTensorValue))


def _first_of_its_kind(labels: Tensor) -> Tensor:
    """Marks the first occurrence of each class in its row, so that repeated labels count once."""
    count = shaping.shape(labels)[-1]
    same = comparison.equal(shaping.expand_dims(labels, -1), shaping.expand_dims(labels, -2))
    places = ranges.range(count)
    earlier = comparison.less(shaping.expand_dims(places, 0), shaping.expand_dims(places, 1))
    return comparison.logical_not(reductions.reduce_any(comparison.logical_and(same, earlier), axis=-1))


def _hits(labels: Tensor, chosen: Tensor) -> Tensor:
    """[..., k]: which of the selected classes are labels."""
    equal = comparison.equal(shaping.expand_dims(chosen, -1), shaping.expand_dims(labels, -2))
    return reductions.reduce_any(equal, axis=-1)


def _as_double(flags: Tensor) -> Tensor:
    return casting.cast(flags, dtypes.float64)


def _positives(labels: Tensor, chosen: Tensor, class_id: Any) -> tuple[Tensor, Tensor, Tensor]:
    """The true positives, false positives and false negatives of each example among its selected classes."""
    if class_id is not None:
        named = reductions.reduce_any(comparison.equal(labels, casting.cast(class_id, dtypes.int64)), axis=-1)
        called = reductions.reduce_any(comparison.equal(chosen, casting.cast(class_id, dtypes.int64)), axis=-1)
        both = comparison.logical_and(named, called)
        return (
            _as_double(both),
            _as_double(comparison.logical_and(called, comparison.logical_not(named))),
            _as_double(comparison.logical_and(named, comparison.logical_not(called))),
        )
    hits, once = _hits(labels, chosen), _first_of_its_kind(chosen)
    found = reductions.reduce_sum(_as_double(comparison.logical_and(once, hits)), -1)
    wrong = reductions.reduce_sum(_as_double(comparison.logical_and(once, comparison.logical_not(hits))), -1)
    fresh = comparison.logical_and(_first_of_its_kind(labels), comparison.greater_equal(labels, 0))
    missed = comparison.logical_and(fresh, comparison.logical_not(_hits(chosen, labels)))
    return found, wrong, reductions.reduce_sum(_as_double(missed), -1)


def _weighted_total(amounts: Tensor, weights: Any) -> Tensor:
    if weights is not None:
        weights = casting.cast(weights, dtypes.float64)
        amounts = arithmetic.multiply(amounts, broadcast_weights(weights, amounts))
    return reductions.reduce_sum(amounts)


def _label_at(base: str, k: Any, class_id: Any) -> str:
    named = f"{base}_at_{_whole(k)}" if k is not None else f"{base}_at_k"
    return f"{named}_class{_whole(class_id)}" if class_id is not None else named


def _best(predictions: Any, k: Any) -> Tensor:
    """The k classes with the highest scores."""
    if k is not None:
        _whole(k)
    return sorting.top_k(predictions, k)[1]


def _whole(value: Any) -> int:
    if not isinstance(value, (int, float, np.number)):
        raise TypeError(f"`k` and `class_id` are numbers, not {value!r}.")
    return int(value)


def _at_top_k(
    kind: str,
    labels: Any,
    chosen: Any,
    k: Any,
    class_id: Any,
    weights: Any,
    name: Any,
) -> Metric:
    """Precision or recall of the selected classes."""
    other = "false_positive" if kind == "precision" else "false_negative"
    with name_scope(name, _label_at(kind, k, class_id), (chosen, labels, weights)) as scope:
        chosen = casting.cast(chosen, dtypes.int64)
        labels = _dense_labels(labels, chosen)
        found, wrong, missed = _positives(labels, chosen, class_id)
        amounts = {"true_positive": found, other: wrong if kind == "precision" else missed}
        values, updates = [], []
        for label, amount in amounts.items():
            variable = metric_variable([], dtypes.float64, _label_at(label, k, class_id))
            values.append(variable.value())
            updates.append(variable.assign_add(_weighted_total(amount, weights)))
        value = arithmetic.divide(values[0], arithmetic.add(values[0], values[1]), name=scope)
        update = arithmetic.divide(updates[0], arithmetic.add(updates[0], updates[1]), name="update")
        return value, update


@export(v1="metrics.recall_at_top_k")
@metric
def recall_at_top_k(
    labels: Any,
    predictions_idx: Any,
    k: int | None = None,
    class_id: Any = None,
    weights: Any = None,
    metrics_collections: Any = None,
    updates_collections: Any = None,
    name: str | None = None,
) -> Metric:
    """Recall of the given top-k classes. Variables: `true_positive_at_<k>`, `false_negative_at_<k>`."""
    return _at_top_k("recall", labels, predictions_idx, k, class_id, weights, name)


@export(v1="metrics.recall_at_k")
@metric
def recall_at_k(
    labels: Any,
    predictions: Any,
    k: int,
    class_id: Any = None,
    weights: Any = None,
    metrics_collections: Any = None,
    updates_collections: Any = None,
    name: str | None = None,
) -> Metric:
    """Recall at k: the fraction of labels among the k classes with the highest scores."""
    chosen = _best(predictions, k)
    return _at_top_k("recall", labels, chosen, k, class_id, weights, name)


@export(v1="metrics.precision_at_top_k")
@metric
def precision_at_top_k(
    labels: Any,
    predictions_idx: Any,
    k: int | None = None,
    class_id: Any = None,
    weights: Any = None,
    metrics_collections: Any = None,
    updates_collections: Any = None,
    name: str | None = None,
) -> Metric:
    """Precision of the given top-k classes. Variables: `true_positive_at_<k>`, `false_positive_at_<k>`."""
    return _at_top_k("precision", labels, predictions_idx, k, class_id, weights, name)


@export(v1=("metrics.precision_at_k", "metrics.sparse_precision_at_k"))
@metric
def precision_at_k(
    labels: Any,
    predictions: Any,
    k: int,
    class_id: Any = None,
    weights: Any = None,
    metrics_collections: Any = None,
    updates_collections: Any = None,
    name: str | None = None,
) -> Metric:
    """Precision at k: the fraction of the k classes with the highest scores that are labels."""
    chosen = _best(predictions, k)
    return _at_top_k("precision", labels, chosen, k, class_id, weights, name)


@export(v1=("metrics.average_precision_at_k", "metrics.sparse_average_precision_at_k"))
@metric
def average_precision_at_k(
    labels: Any,
    predictions: Any,
    k: int,
    weights: Any = None,
    metrics_collections: Any = None,
    updates_collections: Any = None,
    name: str | None = None,
) -> Metric:
    """The mean over examples of the average precision at k.

    The average precision of an example is the sum of the precisions at each rank that holds a label, divided by the
    smaller of k and the number of its labels. Variables: `max`, `total`.
    """
    if _whole(k) < 1:
        raise ValueError(f"Invalid k={k}. `k` should be >= 1.")
    with name_scope(name, f"average_precision_at_{k}", (predictions, labels, weights)) as scope:
        chosen = casting.cast(sorting.top_k(predictions, k)[1], dtypes.int64)
        by_row = _is_sparse(labels)
        labels = _dense_labels(labels, chosen)
        hits = _as_double(_hits(labels, chosen))
        places = casting.cast(ranges.range(1, k + 1), dtypes.float64)
        before = comparison.less_equal(shaping.expand_dims(places, 0), shaping.expand_dims(places, 1))
        running = reductions.reduce_sum(arithmetic.multiply(shaping.expand_dims(hits, -2), _as_double(before)), -1)
        precisions = arithmetic.multiply(arithmetic.divide(running, places), hits)
        # As in TensorFlow, a repeated label counts twice here unless labels are sparse.
        if by_row:
            fresh = comparison.logical_and(_first_of_its_kind(labels), comparison.greater_equal(labels, 0))
            named = reductions.reduce_sum(_as_double(fresh), -1)
        else:
            named = casting.cast(shaping.shape(labels)[-1], dtypes.float64)
        most = arithmetic.minimum(named, float(k))
        averages = arithmetic.divide(reductions.reduce_sum(precisions, -1), most)
        count = shaping.ones_like(averages)
        if weights is not None:
            weights = broadcast_weights(casting.cast(weights, dtypes.float64), averages)
            averages, count = arithmetic.multiply(averages, weights), weights
        # TensorFlow's name for this variable comes from a scope that it opens earlier.
        largest = metric_variable([], dtypes.float64, "max_1")
        total = metric_variable([], dtypes.float64, "total")
        new_largest = largest.assign_add(reductions.reduce_sum(count))
        new_total = total.assign_add(reductions.reduce_sum(averages))
        value = arithmetic.divide_no_nan(total, largest, name="mean")
        update = arithmetic.divide_no_nan(new_total, new_largest, name=scope)
        return value, update
