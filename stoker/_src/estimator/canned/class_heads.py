"""Heads of classifiers: two classes, several classes, several labels at once."""

from __future__ import annotations

from typing import Any

from stoker._src.base import dtypes
from stoker._src.base.export import export
from stoker._src.estimator.canned.heads import (
    Head,
    Metrics,
    batch_of,
    checked_labels,
    checked_logits,
    class_ids,
    mean_metric,
    mean_over_classes,
)
from stoker._src.estimator.export_outputs import ClassificationOutput, PredictOutput, RegressionOutput
from stoker._src.graph.conversion import convert_to_tensor
from stoker._src.graph.scopes import control_dependencies, name_scope
from stoker._src.graph.sparse_tensor import SparseTensor, is_sparse
from stoker._src.graph.tensor import Tensor
from stoker._src.layers import metrics, metrics_thresholds
from stoker._src.ops.array import joining, ranges, shaping
from stoker._src.ops.array.casting import cast
from stoker._src.ops.array.constants import constant
from stoker._src.ops.array.gathering import gather
from stoker._src.ops.control_flow import debugging
from stoker._src.ops.math import arithmetic, scans
from stoker._src.ops.math.comparison import greater
from stoker._src.ops.math.unary_functions import sigmoid
from stoker._src.ops.nn.cross_entropy import (
    sigmoid_cross_entropy_with_logits,
    sparse_softmax_cross_entropy_with_logits,
)
from stoker._src.ops.nn.softmax import softmax
from stoker._src.ops.resources.vocabularies import index_table_from_tensor
from stoker._src.ops.sparse.sparse_functions import to_indicator
from stoker._src.ops.strings.numbers import as_string

_DEFAULT = "serving_default"
_V2 = "sum_over_batch_size"
_V1 = "weighted_sum_over_batch_size"


def _class_names(vocabulary: Any, count: int) -> Tensor:
    return constant([str(name) for name in (vocabulary or range(count))], dtypes.string)


def _tiled(values: Tensor, logits: Tensor) -> Tensor:
    """Returns a row of values for each example."""
    return joining.tile(shaping.expand_dims(values, 0), [batch_of(logits), 1])


def _checked_thresholds(thresholds: Any) -> tuple[float, ...]:
    thresholds = tuple(thresholds or ())
    for each in thresholds:
        if not 0.0 < each < 1.0:
            raise ValueError(f"thresholds not in (0, 1): {thresholds}.")
    return thresholds


def _chosen(predictions: dict[str, Any], keys: Any) -> dict[str, Any]:
    return predictions if keys is None else {key: predictions[key] for key in keys}


def _in_range(labels: Tensor, count: int) -> Tensor:
    """Returns labels that are checked when they are used: they number classes from zero on."""
    high = debugging.assert_less(
        labels, convert_to_tensor(count, labels.dtype.base_dtype), message=f"Labels must be <= {count} - 1"
    )
    low = debugging.assert_non_negative(labels, message="Labels must be >= 0")
    with control_dependencies([op for op in (high, low) if op is not None]):
        return shaping.identity(labels)


def _threshold_metrics(labels: Any, probabilities: Any, weights: Any, threshold: float) -> Metrics:
    positive = cast(greater(probabilities, threshold), dtypes.float32)
    suffix = f"/positive_threshold_{threshold:g}"
    return {
        f"accuracy{suffix}": metrics.accuracy(
            cast(labels, dtypes.float32), positive, weights, name=f"accuracy{suffix}"
        ),
        f"precision{suffix}": metrics_thresholds.precision_at_thresholds(
            labels, probabilities, [threshold], weights, name=f"precision{suffix}"
        ),
        f"recall{suffix}": metrics_thresholds.recall_at_thresholds(
            labels, probabilities, [threshold], weights, name=f"recall{suffix}"
        ),
    }


def _first_of(metric: tuple[Any, Any]) -> tuple[Any, Any]:
    """Returns a metric over one threshold as a number."""
    return tuple(shaping.squeeze(each) for each in metric)  # type: ignore[return-value]


def _areas(method: str, labels: Any, probabilities: Any, weights: Any, suffix: str = "") -> Metrics:
    return {
        f"{name}{suffix}": metrics_thresholds.auc(
            labels,
            probabilities,
            weights,
            curve=curve,
            summation_method=method,
            name=f"{name}{suffix}",
        )
        for name, curve in (("auc", "ROC"), ("auc_precision_recall", "PR"))
    }


@export("estimator.BinaryClassHead")
class BinaryClassHead(Head):
    """The head of a classifier with two classes: one logit, sigmoid cross entropy.

    Args:
        weight_column: the feature with the weights of examples.
        thresholds: probabilities at which accuracy, precision and recall are measured in addition to 0.5.
        label_vocabulary: the two names of the classes, if labels are strings.
        loss_reduction: how the losses of a batch are combined.
        loss_fn: another loss.
        name: the name of the head.

    Raises:
        ValueError: a threshold is not between 0 and 1, or the loss function has other arguments.
    """

    # How areas under curves are computed from counts at thresholds.
    _area_method = "careful_interpolation"

    def __init__(
        self,
        weight_column: Any = None,
        thresholds: Any = None,
        label_vocabulary: Any = None,
        loss_reduction: str = _V2,
        loss_fn: Any = None,
        name: str | None = None,
    ) -> None:
        super().__init__(name, weight_column, loss_reduction, loss_fn)
        self._thresholds = _checked_thresholds(thresholds)
        if label_vocabulary is not None and not isinstance(label_vocabulary, (list, tuple)):
            raise ValueError(f"label_vocabulary should be a list or a tuple. Given type: {type(label_vocabulary)}")
        self._vocabulary = label_vocabulary

    @property
    def logits_dimension(self) -> int:
        return 1

    def _process_labels(self, labels: Any, logits: Tensor) -> Tensor:
        labels = checked_labels(labels, 1)
        if self._vocabulary is not None:
            labels = class_ids(labels, self._vocabulary)
        labels = cast(labels, dtypes.float32)
        return _in_range(labels, 2)

    def _losses(self, labels: Tensor, logits: Tensor) -> Tensor:
        return sigmoid_cross_entropy_with_logits(labels=labels, logits=logits)

    def predictions(self, logits: Any, keys: Any = None) -> dict[str, Any]:
        logits = checked_logits(logits, 1)
        with name_scope(None, "predictions", [logits]):
            logistic = sigmoid(logits, name="logistic")
            two = joining.concat([shaping.zeros_like(logits), logits], axis=-1, name="two_class_logits")
            probabilities = softmax(two, name="probabilities")
            ids = shaping.expand_dims(scans.argmax(two, axis=-1, name="classes"), -1)
            names = _class_names(self._vocabulary, 2)
            found = {
                "logits": logits,
                "logistic": logistic,
                "probabilities": probabilities,
                "class_ids": ids,
                "classes": gather(names, ids) if self._vocabulary else as_string(ids, name="str_classes"),
                "all_class_ids": _tiled(ranges.range(2), logits),
                "all_classes": _tiled(names, logits),
            }
        return _chosen(found, keys)

    def _metrics(self, spec: Any, predictions: dict[str, Any], weights: Any) -> Metrics:
        labels, logistic = spec.processed_labels, predictions["logistic"]
        guessed = predictions["class_ids"]
        mean = mean_metric(labels, weights, self.key("label/mean"))
        baseline = tuple(arithmetic.maximum(each, 1 - each) for each in mean)
        found: Metrics = {
            "accuracy": metrics.accuracy(labels, cast(guessed, dtypes.float32), weights, name=self.key("accuracy")),
            "precision": metrics.precision(labels, guessed, weights, name=self.key("precision")),
            "recall": metrics.recall(labels, guessed, weights, name=self.key("recall")),
            "prediction/mean": mean_metric(logistic, weights, self.key("prediction/mean")),
            "label/mean": mean,
            "accuracy_baseline": (baseline[0], baseline[1]),
            **_areas(self._area_method, labels, logistic, weights),
        }
        for threshold in self._thresholds:
            at = _threshold_metrics(labels, logistic, weights, threshold)
            found.update({name: each if name.startswith("accuracy") else _first_of(each) for name, each in at.items()})
        return found

    def _export_outputs(self, predictions: dict[str, Any]) -> dict[str, Any]:
        names = _class_names(self._vocabulary, 2)
        classes = ClassificationOutput(predictions["probabilities"], _tiled(names, predictions["logits"]))
        return {
            _DEFAULT: classes,
            "classification": classes,
            "regression": RegressionOutput(predictions["logistic"]),
            "predict": PredictOutput(predictions),
        }


@export("estimator.MultiClassHead")
class MultiClassHead(Head):
    """The head of a classifier with several classes: softmax cross entropy.

    Args:
        n_classes: the number of classes, at least three.
        weight_column: the feature with the weights of examples.
        label_vocabulary: the names of the classes, if labels are strings.
        loss_reduction: how the losses of a batch are combined.
        loss_fn: another loss.
        name: the name of the head.

    Raises:
        ValueError: there are fewer than three classes, or the vocabulary has another length.
    """

    def __init__(
        self,
        n_classes: int,
        weight_column: Any = None,
        label_vocabulary: Any = None,
        loss_reduction: str = _V2,
        loss_fn: Any = None,
        name: str | None = None,
    ) -> None:
        if n_classes is None:
            raise ValueError("n_classes cannot be None")
        if n_classes < 3:
            raise ValueError(f"n_classes must be > 2: {n_classes}.")
        super().__init__(name, weight_column, loss_reduction, loss_fn)
        self._n_classes, self._vocabulary = n_classes, _checked_vocabulary(label_vocabulary, n_classes)

    @property
    def logits_dimension(self) -> int:
        return self._n_classes

    def _process_labels(self, labels: Any, logits: Tensor) -> Tensor:
        return _in_range(class_ids(checked_labels(labels, 1), self._vocabulary), self._n_classes)

    def _losses(self, labels: Tensor, logits: Tensor) -> Tensor:
        losses = sparse_softmax_cross_entropy_with_logits(labels=shaping.squeeze(labels, axis=-1), logits=logits)
        return shaping.expand_dims(losses, -1)

    def predictions(self, logits: Any, keys: Any = None) -> dict[str, Any]:
        logits = checked_logits(logits, self._n_classes)
        with name_scope(None, "predictions", [logits]):
            ids = shaping.expand_dims(scans.argmax(logits, axis=-1, name="class_ids"), -1)
            names = _class_names(self._vocabulary, self._n_classes)
            found = {
                "logits": logits,
                "probabilities": softmax(logits, name="probabilities"),
                "class_ids": ids,
                "classes": gather(names, ids) if self._vocabulary else as_string(ids, name="str_classes"),
                "all_class_ids": _tiled(ranges.range(self._n_classes), logits),
                "all_classes": _tiled(names, logits),
            }
        return _chosen(found, keys)

    def _metrics(self, spec: Any, predictions: dict[str, Any], weights: Any) -> Metrics:
        guessed = cast(predictions["class_ids"], spec.processed_labels.dtype.base_dtype)
        return {"accuracy": metrics.accuracy(spec.processed_labels, guessed, weights, name=self.key("accuracy"))}

    def _export_outputs(self, predictions: dict[str, Any]) -> dict[str, Any]:
        names = _class_names(self._vocabulary, self._n_classes)
        classes = ClassificationOutput(predictions["probabilities"], _tiled(names, predictions["logits"]))
        return {_DEFAULT: classes, "classification": classes, "predict": PredictOutput(predictions)}


def _checked_vocabulary(vocabulary: Any, count: int) -> Any:
    if vocabulary is None:
        return None
    if not isinstance(vocabulary, (list, tuple)):
        raise ValueError(f"label_vocabulary should be a list or a tuple. Given type: {type(vocabulary)}")
    if len(vocabulary) != count:
        raise ValueError(
            f'"label_vocabulary" does not have "n_classes" items. n_classes={count}, len(label_vocabulary)={len(vocabulary)}.'
        )
    return vocabulary


@export("estimator.MultiLabelHead")
class MultiLabelHead(Head):
    """The head of a classifier whose examples have any number of classes: the mean of sigmoid cross entropies.

    Labels are a matrix of zeros and ones, or a SparseTensor with the ids or names of the classes of each example.

    Args:
        n_classes: the number of classes, at least two.
        weight_column: the feature with the weights of examples.
        thresholds: probabilities at which accuracy, precision and recall are measured.
        label_vocabulary: the names of the classes, if labels are strings.
        loss_reduction: how the losses of a batch are combined.
        loss_fn: another loss.
        classes_for_class_based_metrics: classes, by number or name, that have metrics of their own.
        name: the name of the head.

    Raises:
        ValueError: there are fewer than two classes, or another argument is out of range.
    """

    # How areas under curves are computed from counts at thresholds.
    _area_method = "careful_interpolation"

    def __init__(
        self,
        n_classes: int,
        weight_column: Any = None,
        thresholds: Any = None,
        label_vocabulary: Any = None,
        loss_reduction: str = _V2,
        loss_fn: Any = None,
        classes_for_class_based_metrics: Any = None,
        name: str | None = None,
    ) -> None:
        if n_classes is None or n_classes < 2:
            raise ValueError(f"n_classes must be > 1 for multi-label classification. Given: {n_classes}")
        super().__init__(name, weight_column, loss_reduction, loss_fn)
        self._n_classes, self._vocabulary = n_classes, _checked_vocabulary(label_vocabulary, n_classes)
        self._thresholds = _checked_thresholds(thresholds)
        chosen: list[Any] = [
            self._vocabulary.index(each) if isinstance(each, str) and self._vocabulary else each
            for each in classes_for_class_based_metrics or ()
        ]
        for each in chosen:
            if not isinstance(each, int) or not 0 <= each < n_classes:
                raise ValueError(
                    f"All classes_for_class_based_metrics must be in range [0, {n_classes - 1}]. Given: {each}"
                )
        self._chosen_classes = chosen

    @property
    def logits_dimension(self) -> int:
        return self._n_classes

    def _process_labels(self, labels: Any, logits: Tensor) -> Tensor:
        if is_sparse(labels):
            values = labels.values
            if self._vocabulary:
                values = index_table_from_tensor(mapping=tuple(self._vocabulary), name="class_id_lookup").lookup(values)
            ids = SparseTensor(
                labels.indices, _in_range(cast(values, dtypes.int64), self._n_classes), labels.dense_shape
            )
            return cast(to_indicator(ids, self._n_classes), dtypes.int64)
        labels = checked_labels(labels, self._n_classes)
        return _in_range(cast(labels, dtypes.int64), 2)

    def _losses(self, labels: Tensor, logits: Tensor) -> Tensor:
        losses = sigmoid_cross_entropy_with_logits(labels=cast(labels, dtypes.float32), logits=logits)
        return mean_over_classes(losses)

    def predictions(self, logits: Any, keys: Any = None) -> dict[str, Any]:
        logits = checked_logits(logits, self._n_classes)
        with name_scope(None, "predictions", [logits]):
            return _chosen({"logits": logits, "probabilities": sigmoid(logits, name="probabilities")}, keys)

    def _metrics(self, spec: Any, predictions: dict[str, Any], weights: Any) -> Metrics:
        labels, probabilities = spec.processed_labels, predictions["probabilities"]
        found = _areas(self._area_method, labels, probabilities, weights)
        for threshold in self._thresholds:
            at = _threshold_metrics(labels, probabilities, weights, threshold)
            found.update({name: each if name.startswith("accuracy") else _first_of(each) for name, each in at.items()})
        for number in self._chosen_classes:
            suffix = f"/{self._vocabulary[number]}" if self._vocabulary else f"/class{number}"
            wanted, guessed = labels[:, number : number + 1], probabilities[:, number : number + 1]
            found[f"probability_mean{suffix}"] = mean_metric(guessed, weights, f"probability_mean{suffix}")
            found.update(_areas(self._area_method, wanted, guessed, weights, suffix))
        return found

    def _export_outputs(self, predictions: dict[str, Any]) -> dict[str, Any]:
        names = _class_names(self._vocabulary, self._n_classes)
        classes = ClassificationOutput(predictions["probabilities"], _tiled(names, predictions["logits"]))
        return {_DEFAULT: classes, "classification": classes, "predict": PredictOutput(predictions)}


# ---- the functions of tf.contrib.estimator ----------------------------------------------------------------------


def _as_in_1x(head: Any) -> Any:
    """Makes a head compute areas as the functions of 1.x do."""
    head._area_method = "trapezoidal"
    return head


@export(v1="contrib.estimator.binary_classification_head")
def binary_classification_head(
    weight_column: Any = None,
    thresholds: Any = None,
    label_vocabulary: Any = None,
    loss_reduction: str = _V1,
    loss_fn: Any = None,
    name: str | None = None,
) -> BinaryClassHead:
    """Returns a BinaryClassHead."""
    return _as_in_1x(BinaryClassHead(weight_column, thresholds, label_vocabulary, loss_reduction, loss_fn, name))


@export(v1="contrib.estimator.multi_class_head")
def multi_class_head(
    n_classes: int,
    weight_column: Any = None,
    label_vocabulary: Any = None,
    loss_reduction: str = _V1,
    loss_fn: Any = None,
    name: str | None = None,
) -> MultiClassHead:
    """Returns a MultiClassHead."""
    return MultiClassHead(n_classes, weight_column, label_vocabulary, loss_reduction, loss_fn, name)


@export(v1="contrib.estimator.multi_label_head")
def multi_label_head(
    n_classes: int,
    weight_column: Any = None,
    thresholds: Any = None,
    label_vocabulary: Any = None,
    loss_reduction: str = _V1,
    loss_fn: Any = None,
    classes_for_class_based_metrics: Any = None,
    name: str | None = None,
) -> MultiLabelHead:
    """Returns a MultiLabelHead."""
    head = MultiLabelHead(
        n_classes,
        weight_column,
        thresholds,
        label_vocabulary,
        loss_reduction,
        loss_fn,
        classes_for_class_based_metrics,
        name,
    )
    return _as_in_1x(head)


def classifier_head(n_classes: int, weight_column: Any, label_vocabulary: Any, loss_reduction: str) -> Head:
    """Returns the head of a canned classifier."""
    if n_classes == 2:
        return _as_in_1x(BinaryClassHead(weight_column, None, label_vocabulary, loss_reduction))
    return MultiClassHead(n_classes, weight_column, label_vocabulary, loss_reduction)
