"""`tf.keras.metrics`: values that are collected over batches."""

from __future__ import annotations

import functools
import types
from collections.abc import Callable
from typing import Any

import numpy as np

from stoker._src.base import dtypes, shapes
from stoker._src.base.export import export
from stoker._src.graph import context, conversion, scopes
from stoker._src.keras import losses
from stoker._src.keras.base import Layer
from stoker._src.keras.losses import matched
from stoker._src.keras.serialization import deserialize as _deserialize
from stoker._src.keras.serialization import find
from stoker._src.keras.serialization import serialize as _serialize
from stoker._src.keras.sessions import batch_set_value
from stoker._src.ops.array import casting, constants, ranges, selection, shaping
from stoker._src.ops.control_flow import grouping
from stoker._src.ops.linalg import diagonals
from stoker._src.ops.math import arithmetic, comparison, counting, reductions, scans, sorting, unary_functions


@export("keras.metrics.Metric")
class Metric(Layer):
    """The base of metrics: `update_state` adds a batch to variables, `result` computes the value, `reset_states` starts again."""

    def __init__(self, name: str | None = None, dtype: Any = None, **kwargs: Any) -> None:
        super().__init__(name=name, dtype=dtype or "float32", **kwargs)
        self.stateful, self.built = True, True

    def __new__(cls, *args: Any, **kwargs: Any) -> Any:
        made = super().__new__(cls)
        update, result = cls.update_state, cls.result

        @functools.wraps(update)
        def updating(self: Any, *args: Any, **kwargs: Any) -> Any:
            # Updates of a batch come before what is computed from them.
            op = update(self, *args, **kwargs)
            if op is not None and not context.executing_eagerly():
                self.add_update(op)
            return op

        @functools.wraps(result)
        def named(self: Any) -> Any:
            value = shaping.identity(result(self))
            value._metric_obj = self
            return value

        made.__dict__["update_state"] = types.MethodType(updating, made)
        made.__dict__["result"] = types.MethodType(named, made)
        return made

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Adds a batch and returns the value so far."""
        with scopes.NameScope(self.name):
            op = self.update_state(*args, **kwargs)
            with scopes.control_dependencies([op] if op is not None and not context.executing_eagerly() else []):
                value = self.result()
        value._metric_obj = self
        return value

    def update_state(self, *args: Any, **kwargs: Any) -> Any:
        """Adds a batch."""
        raise NotImplementedError("Must be implemented in subclasses.")

    def result(self) -> Any:
        """The value so far."""
        raise NotImplementedError("Must be implemented in subclasses.")

    def reset_states(self) -> None:
        """Sets the variables to zero."""
        batch_set_value([(each, np.zeros(each.shape.as_list())) for each in self.variables])

    def reset_state(self) -> None:
        """`reset_states` under its name in 2.x. Training calls this one, so that a subclass may override either."""
        self.reset_states()

    def add_weight(
        self,
        name: str | None = None,
        shape: Any = (),
        aggregation: Any = None,
        synchronization: Any = None,
        initializer: Any = None,
        dtype: Any = None,
    ) -> Any:
        """Creates a variable of the metric, which is not trained."""
        graph_scope = "" if context.executing_eagerly() else context.get_default_graph().get_name_scope()
        # A trailing slash enters the same scope for all variables of the metric.
        with scopes.NameScope(f"{graph_scope}/{self.name}/" if graph_scope else f"{self.name}/"):
            return super().add_weight(name, shape, dtype, initializer or "zeros", trainable=False, collections=[])

    def get_config(self) -> dict[str, Any]:
        return {"name": self.name, "dtype": self.dtype}


def _weights_like(values: Any, sample_weight: Any) -> Any:
    """Sample weights for values: more dimensions of 1 are appended or removed."""
    weights = casting.cast(sample_weight, values.dtype.base_dtype)
    ranks = values.static_shape.rank, weights.static_shape.rank
    if None in ranks:
        return weights
    if ranks[1] == ranks[0] + 1 and weights.static_shape[-1] == 1:
        weights = shaping.squeeze(weights, -1)
    while weights.static_shape.rank < ranks[0]:
        weights = shaping.expand_dims(weights, -1)
    return weights


class _Totals(Metric):
    """Sums of values, and of weights."""

    def __init__(self, name: str | None, dtype: Any = None, *, counts: bool = True) -> None:
        super().__init__(name=name, dtype=dtype)
        self.total = self.add_weight("total")
        self.count: Any = self.add_weight("count") if counts else None

    def update_state(self, values: Any, sample_weight: Any = None) -> Any:
        values = casting.cast(values, self._dtype)
        weights = None
        if sample_weight is not None:
            weights = _weights_like(values, sample_weight)
            rank, of_weights = values.static_shape.rank, weights.static_shape.rank
            if (
                of_weights is not None
                and rank is not None
                and shapes.TensorShape(weights.shape).as_list() != values.shape.as_list()
            ):
                extra = [i for i in range(rank) if i >= _shared(values, sample_weight)]
                if extra:  # one weight for a whole example: its values are averaged first
                    values = reductions.reduce_mean(values, axis=extra)
                    weights = _weights_like(values, sample_weight)
            values = values * weights
        total = self.total.assign_add(reductions.reduce_sum(values))
        if self.count is None:
            return total.op if not context.executing_eagerly() else None
        number = casting.cast(ranges.size(values), self._dtype) if weights is None else reductions.reduce_sum(weights)
        counted = self.count.assign_add(number)
        return None if context.executing_eagerly() else grouping.group(total, counted)

    def result(self) -> Any:
        return (
            arithmetic.divide_no_nan(conversion.convert_to_tensor(self.total), conversion.convert_to_tensor(self.count))
            if self.count is not None
            else conversion.convert_to_tensor(self.total)
        )


def _shared(values: Any, weights: Any) -> int:
    """How many leading dimensions weights have."""
    weights = conversion.convert_to_tensor(weights)
    rank = weights.static_shape.rank or 0
    sizes = weights.shape.as_list() if weights.shape.ndims is not None else []
    while rank > 1 and sizes and sizes[-1] == 1 and rank > (values.static_shape.rank or 0):
        sizes.pop()
        rank -= 1
    return rank


@export("keras.metrics.Sum")
class Sum(_Totals):
    """The weighted sum of values."""

    def __init__(self, name: str = "sum", dtype: Any = None) -> None:
        super().__init__(name, dtype, counts=False)


@export("keras.metrics.Mean")
class Mean(_Totals):
    """The weighted mean of values."""

    def __init__(self, name: str = "mean", dtype: Any = None) -> None:
        super().__init__(name, dtype)


class MeanMetricWrapper(_Totals):
    """The mean of a function of true values and predictions."""

    def __init__(self, fn: Callable[..., Any], name: str | None = None, dtype: Any = None, **kwargs: Any) -> None:
        super().__init__(name, dtype)
        self._fn, self._arguments = fn, kwargs

    def update_state(self, y_true: Any, y_pred: Any, sample_weight: Any = None) -> Any:
        y_pred = casting.cast(y_pred, self._dtype)
        y_true = casting.cast(y_true, self._dtype)
        if self._fn is not sparse_categorical_accuracy and self._fn is not losses.sparse_categorical_crossentropy:
            y_true, y_pred = matched(y_true, y_pred)
        return super().update_state(self._fn(y_true, y_pred, **self._arguments), sample_weight)

    def get_config(self) -> dict[str, Any]:
        return {**super().get_config(), **self._arguments}


# ---- functions ------------------------------------------------------------------------------------------------------


@export("keras.metrics.binary_accuracy")
def binary_accuracy(y_true: Any, y_pred: Any, threshold: float = 0.5) -> Any:
    """How often predictions above the threshold equal the labels."""
    decided = casting.cast(y_pred > casting.cast(threshold, y_pred.dtype), y_pred.dtype)
    return reductions.reduce_mean(
        casting.cast(comparison.equal(casting.cast(y_true, y_pred.dtype), decided), dtypes.float32), axis=-1
    )


@export("keras.metrics.categorical_accuracy")
def categorical_accuracy(y_true: Any, y_pred: Any) -> Any:
    """How often the largest prediction is at the label, which is one-hot."""
    return casting.cast(comparison.equal(scans.argmax(y_true, axis=-1), scans.argmax(y_pred, axis=-1)), dtypes.float32)


def _flat_labels(y_true: Any, y_pred: Any) -> Any:
    ranks = y_true.static_shape.rank, y_pred.static_shape.rank
    if None not in ranks and ranks[0] == ranks[1] and y_true.static_shape[-1] in (1, None):
        return shaping.squeeze(y_true, [-1])
    return y_true


@export("keras.metrics.sparse_categorical_accuracy")
def sparse_categorical_accuracy(y_true: Any, y_pred: Any) -> Any:
    """How often the largest prediction is at the label, which is an integer."""
    y_pred = conversion.convert_to_tensor(y_pred)
    labels = _flat_labels(conversion.convert_to_tensor(y_true), y_pred)
    return casting.cast(
        comparison.equal(casting.cast(labels, dtypes.int64), scans.argmax(y_pred, axis=-1)), dtypes.float32
    )


@export("keras.metrics.top_k_categorical_accuracy")
def top_k_categorical_accuracy(y_true: Any, y_pred: Any, k: int = 5) -> Any:
    """How often the label, which is one-hot, is among the k largest predictions."""
    return casting.cast(sorting.in_top_k(y_pred, scans.argmax(y_true, axis=-1), k), dtypes.float32)


@export("keras.metrics.sparse_top_k_categorical_accuracy")
def sparse_top_k_categorical_accuracy(y_true: Any, y_pred: Any, k: int = 5) -> Any:
    """How often the label, which is an integer, is among the k largest predictions."""
    labels = _flat_labels(conversion.convert_to_tensor(y_true), y_pred)
    return casting.cast(sorting.in_top_k(y_pred, casting.cast(labels, dtypes.int32), k), dtypes.float32)


def accuracy(y_true: Any, y_pred: Any) -> Any:
    """How often predictions equal the labels."""
    return casting.cast(comparison.equal(casting.cast(y_true, y_pred.dtype), y_pred), dtypes.float32)


def cosine_proximity(y_true: Any, y_pred: Any, axis: int = -1) -> Any:
    """The cosine of the angle between vectors."""
    return -losses.cosine_similarity(y_true, y_pred, axis)


def _metric_class(class_name: str, function: Callable[..., Any], name: str, doc: str, **options: Any) -> type[Any]:
    def __init__(self: Any, *args: Any, **kwargs: Any) -> None:
        # The number k comes before the name, other options after it.
        order = [*options, "name", "dtype"] if "k" in options else ["name", "dtype", *options]
        given = {"name": name, "dtype": None, **options, **dict(zip(order, args)), **kwargs}
        unknown = set(given) - {"name", "dtype", *options}
        if unknown:
            raise TypeError(f"{class_name} got an unexpected keyword argument: {', '.join(sorted(unknown))}")
        MeanMetricWrapper.__init__(self, function, **given)

    made = type(class_name, (MeanMetricWrapper,), {"__init__": __init__, "__doc__": doc, "__module__": __name__})
    return export(f"keras.metrics.{class_name}")(made)


Accuracy = _metric_class("Accuracy", accuracy, "accuracy", "How often predictions equal the labels.")
BinaryAccuracy = _metric_class(
    "BinaryAccuracy",
    binary_accuracy,
    "binary_accuracy",
    "How often predictions above a threshold equal the labels.",
    threshold=0.5,
)
CategoricalAccuracy = _metric_class(
    "CategoricalAccuracy",
    categorical_accuracy,
    "categorical_accuracy",
    "How often the largest prediction is at the one-hot label.",
)
SparseCategoricalAccuracy = _metric_class(
    "SparseCategoricalAccuracy",
    sparse_categorical_accuracy,
    "sparse_categorical_accuracy",
    "How often the largest prediction is at the integer label.",
)
TopKCategoricalAccuracy = _metric_class(
    "TopKCategoricalAccuracy",
    top_k_categorical_accuracy,
    "top_k_categorical_accuracy",
    "How often the one-hot label is among the k largest predictions.",
    k=5,
)
SparseTopKCategoricalAccuracy = _metric_class(
    "SparseTopKCategoricalAccuracy",
    sparse_top_k_categorical_accuracy,
    "sparse_top_k_categorical_accuracy",
    "How often the integer label is among the k largest predictions.",
    k=5,
)
MeanSquaredError = _metric_class(
    "MeanSquaredError", losses.mean_squared_error, "mean_squared_error", "The mean squared difference."
)
MeanAbsoluteError = _metric_class(
    "MeanAbsoluteError", losses.mean_absolute_error, "mean_absolute_error", "The mean absolute difference."
)
MeanAbsolutePercentageError = _metric_class(
    "MeanAbsolutePercentageError",
    losses.mean_absolute_percentage_error,
    "mean_absolute_percentage_error",
    "The mean difference in percent.",
)
MeanSquaredLogarithmicError = _metric_class(
    "MeanSquaredLogarithmicError",
    losses.mean_squared_logarithmic_error,
    "mean_squared_logarithmic_error",
    "The mean squared difference of logarithms.",
)
BinaryCrossentropy = _metric_class(
    "BinaryCrossentropy",
    losses.binary_crossentropy,
    "binary_crossentropy",
    "The mean cross entropy of labels 0 and 1.",
    from_logits=False,
    label_smoothing=0,
)
CategoricalCrossentropy = _metric_class(
    "CategoricalCrossentropy",
    losses.categorical_crossentropy,
    "categorical_crossentropy",
    "The mean cross entropy of one-hot labels.",
    from_logits=False,
    label_smoothing=0,
)
SparseCategoricalCrossentropy = _metric_class(
    "SparseCategoricalCrossentropy",
    losses.sparse_categorical_crossentropy,
    "sparse_categorical_crossentropy",
    "The mean cross entropy of integer labels.",
    from_logits=False,
    axis=-1,
)
Hinge = _metric_class("Hinge", losses.hinge, "hinge", "The mean hinge loss.")
SquaredHinge = _metric_class("SquaredHinge", losses.squared_hinge, "squared_hinge", "The mean squared hinge loss.")
CategoricalHinge = _metric_class(
    "CategoricalHinge", losses.categorical_hinge, "categorical_hinge", "The mean hinge loss of one-hot labels."
)
LogCoshError = _metric_class("LogCoshError", losses.logcosh, "logcosh", "The mean logarithm of the hyperbolic cosine.")
Poisson = _metric_class("Poisson", losses.poisson, "poisson", "The mean Poisson loss.")
KLDivergence = _metric_class(
    "KLDivergence",
    losses.kullback_leibler_divergence,
    "kullback_leibler_divergence",
    "The mean Kullback-Leibler divergence.",
)
CosineSimilarity = _metric_class(
    "CosineSimilarity", cosine_proximity, "cosine_similarity", "The mean cosine of the angle.", axis=-1
)


@export("keras.metrics.RootMeanSquaredError")
class RootMeanSquaredError(_Totals):
    """The root of the mean squared difference."""

    def __init__(self, name: str = "root_mean_squared_error", dtype: Any = None) -> None:
        super().__init__(name, dtype)

    def update_state(self, y_true: Any, y_pred: Any, sample_weight: Any = None) -> Any:
        y_true, y_pred = matched(casting.cast(y_true, self._dtype), casting.cast(y_pred, self._dtype))
        return super().update_state(arithmetic.squared_difference(y_pred, y_true), sample_weight)

    def result(self) -> Any:
        return unary_functions.sqrt(
            arithmetic.divide_no_nan(conversion.convert_to_tensor(self.total), conversion.convert_to_tensor(self.count))
        )


class _Confusion(Metric):
    """Counts of true and false positives and negatives, at one or more thresholds."""

    counts: tuple[str, ...] = ()

    def __init__(self, thresholds: Any = None, name: str | None = None, dtype: Any = None) -> None:
        super().__init__(name=name, dtype=dtype)
        self.init_thresholds = thresholds
        chosen = 0.5 if thresholds is None else thresholds
        self.thresholds = list(chosen) if isinstance(chosen, (list, tuple)) else [chosen]
        if any(each is None or not 0 <= each <= 1 for each in self.thresholds):
            raise ValueError(
                f"Threshold values must be in [0, 1]. Invalid values: {[each for each in self.thresholds if each is None or not 0 <= each <= 1]}"
            )
        for each in self.counts:
            setattr(self, each, self.add_weight(each, (len(self.thresholds),)))

    def update_state(self, y_true: Any, y_pred: Any, sample_weight: Any = None) -> Any:
        y_true, y_pred = matched(casting.cast(y_true, self._dtype), casting.cast(y_pred, self._dtype))
        labels = shaping.reshape(casting.cast(y_true, dtypes.bool_), [1, -1])
        above = shaping.reshape(y_pred, [1, -1]) > shaping.reshape(
            constants.constant(self.thresholds, self._dtype), [-1, 1]
        )
        weights = (
            1.0
            if sample_weight is None
            else shaping.reshape(shaping.ones_like(y_pred) * _weights_like(y_pred, sample_weight), [1, -1])
        )
        found = {
            "true_positives": (labels, above),
            "false_positives": (comparison.logical_not(labels), above),
            "true_negatives": (comparison.logical_not(labels), comparison.logical_not(above)),
            "false_negatives": (labels, comparison.logical_not(above)),
        }
        updates = []
        for each in self.counts:
            both = casting.cast(comparison.logical_and(*found[each]), self._dtype) * weights
            updates.append(getattr(self, each).assign_add(reductions.reduce_sum(both, axis=1)))
        return None if context.executing_eagerly() else grouping.group(*updates)

    def _single(self, value: Any) -> Any:
        return value[0] if len(self.thresholds) == 1 else value

    def get_config(self) -> dict[str, Any]:
        return {**super().get_config(), "thresholds": self.init_thresholds}


def _count_class(class_name: str, name: str, doc: str) -> type[Any]:
    def __init__(self: Any, thresholds: Any = None, name: str = name, dtype: Any = None) -> None:
        _Confusion.__init__(self, thresholds, name, dtype)

    def result(self: Any) -> Any:
        return self._single(conversion.convert_to_tensor(getattr(self, self.counts[0])))

    body = {"counts": (name,), "__init__": __init__, "result": result, "__doc__": doc, "__module__": __name__}
    return export(f"keras.metrics.{class_name}")(type(class_name, (_Confusion,), body))


TruePositives = _count_class("TruePositives", "true_positives", "The number of true positives.")
FalsePositives = _count_class("FalsePositives", "false_positives", "The number of false positives.")
TrueNegatives = _count_class("TrueNegatives", "true_negatives", "The number of true negatives.")
FalseNegatives = _count_class("FalseNegatives", "false_negatives", "The number of false negatives.")


@export("keras.metrics.Precision")
class Precision(_Confusion):
    """True positives / predicted positives."""

    counts = ("true_positives", "false_positives")

    def __init__(
        self,
        thresholds: Any = None,
        top_k: int | None = None,
        class_id: int | None = None,
        name: str = "precision",
        dtype: Any = None,
    ) -> None:
        if top_k is not None or class_id is not None:
            raise NotImplementedError("Precision and recall with top_k or class_id.")
        super().__init__(thresholds, name, dtype)
        self.top_k, self.class_id = top_k, class_id

    def result(self) -> Any:
        own: Any = self
        hits, others = (conversion.convert_to_tensor(getattr(own, each)) for each in self.counts)
        return self._single(arithmetic.divide_no_nan(hits, hits + others))


@export("keras.metrics.Recall")
class Recall(Precision):
    """True positives / actual positives."""

    counts = ("true_positives", "false_negatives")

    def __init__(
        self,
        thresholds: Any = None,
        top_k: int | None = None,
        class_id: int | None = None,
        name: str = "recall",
        dtype: Any = None,
    ) -> None:
        super().__init__(thresholds, top_k, class_id, name, dtype)


@export("keras.metrics.AUC")
class AUC(_Confusion):
    """The area under the curve of receiver operating characteristics ("ROC") or of precision and recall ("PR"), by the trapezoidal rule."""

    counts = ("true_positives", "false_positives", "true_negatives", "false_negatives")

    def __init__(
        self,
        num_thresholds: int = 200,
        curve: str = "ROC",
        summation_method: str = "interpolation",
        name: str | None = "auc",
        dtype: Any = None,
        thresholds: Any = None,
    ) -> None:
        if curve not in ("ROC", "PR"):
            raise ValueError(f"Invalid curve: {curve!r}. Valid values are 'ROC' and 'PR'.")
        if summation_method not in ("interpolation", "minoring", "majoring"):
            raise ValueError(f"Invalid summation method: {summation_method!r}.")
        if thresholds is None:
            if num_thresholds <= 1:
                raise ValueError("`num_thresholds` must be > 1.")
            inner = [(i + 1) / (num_thresholds - 1) for i in range(num_thresholds - 2)]
        else:
            inner = sorted(thresholds)
        super().__init__([0.0, *inner, 1.0], name, dtype)
        # Everything is above the first threshold and below the last.
        self.thresholds = [-1e-7, *inner, 1.0 + 1e-7]
        self.num_thresholds, self.curve, self.summation_method = len(self.thresholds), curve, summation_method
        self._given_thresholds = thresholds

    def result(self) -> Any:
        own: Any = self
        tp, fp, tn, fn = (conversion.convert_to_tensor(getattr(own, each)) for each in self.counts)
        if self.curve == "PR" and self.summation_method == "interpolation":
            return self._interpolated(tp, fp, fn)
        recall = arithmetic.divide_no_nan(tp, tp + fn)
        if self.curve == "ROC":
            x, y = arithmetic.divide_no_nan(fp, fp + tn), recall
        else:
            x, y = recall, arithmetic.divide_no_nan(tp, tp + fp)
        if self.summation_method == "interpolation":
            heights = (y[:-1] + y[1:]) / 2.0
        else:
            heights = (arithmetic.minimum if self.summation_method == "minoring" else arithmetic.maximum)(y[:-1], y[1:])
        return reductions.reduce_sum((x[:-1] - x[1:]) * heights)

    def _interpolated(self, tp: Any, fp: Any, fn: Any) -> Any:
        """The area of precision over recall (Davis and Goadrich, 2006)."""
        gained = tp[:-1] - tp[1:]
        p = tp + fp
        slope = arithmetic.divide_no_nan(gained, arithmetic.maximum(p[:-1] - p[1:], 0.0))
        intercept = tp[1:] - slope * p[1:]
        ratio = selection.where(
            comparison.logical_and(p[:-1] > 0, p[1:] > 0),
            arithmetic.divide_no_nan(p[:-1], arithmetic.maximum(p[1:], 0.0)),
            shaping.ones_like(p[1:]),
        )
        parts = arithmetic.divide_no_nan(
            slope * (gained + intercept * unary_functions.log(ratio)), arithmetic.maximum(tp[1:] + fn[1:], 0.0)
        )
        return reductions.reduce_sum(parts)

    def get_config(self) -> dict[str, Any]:
        config = {"name": self.name, "dtype": self.dtype, "num_thresholds": self.num_thresholds}
        return {
            **config,
            "curve": self.curve,
            "summation_method": self.summation_method,
            "thresholds": self._given_thresholds,
        }


@export("keras.metrics.MeanIoU")
class MeanIoU(Metric):
    """The mean over classes of intersection / union of labels and predictions."""

    def __init__(self, num_classes: int, name: str | None = None, dtype: Any = None) -> None:
        super().__init__(name=name, dtype=dtype)
        self.num_classes = num_classes
        self.total_cm = self.add_weight("total_confusion_matrix", (num_classes, num_classes))

    def update_state(self, y_true: Any, y_pred: Any, sample_weight: Any = None) -> Any:
        labels, found = (shaping.reshape(casting.cast(each, dtypes.int64), [-1]) for each in (y_true, y_pred))
        weights = None if sample_weight is None else shaping.reshape(casting.cast(sample_weight, self._dtype), [-1])
        matrix = counting.confusion_matrix(labels, found, self.num_classes, weights=weights, dtype=self._dtype)
        done = self.total_cm.assign_add(matrix)
        return None if context.executing_eagerly() else done.op

    def result(self) -> Any:
        matrix = conversion.convert_to_tensor(self.total_cm)
        hits = diagonals.tensor_diag_part(matrix)
        union = reductions.reduce_sum(matrix, 0) + reductions.reduce_sum(matrix, 1) - hits
        present = reductions.reduce_sum(casting.cast(comparison.not_equal(union, 0), self._dtype))
        return arithmetic.divide_no_nan(reductions.reduce_sum(arithmetic.divide_no_nan(hits, union)), present)

    def get_config(self) -> dict[str, Any]:
        return {**super().get_config(), "num_classes": self.num_classes}


@export("keras.metrics.serialize")
def serialize(metric: Any) -> Any:
    """The configuration of a metric, or the name of a function."""
    return _serialize(metric)


@export("keras.metrics.deserialize")
def deserialize(config: Any, custom_objects: Any = None) -> Any:
    """The metric that a configuration describes, or the function of a name."""
    return _deserialize(config, "metrics", custom_objects)


@export("keras.metrics.get")
def get(identifier: Any) -> Any:
    """A metric from a function, an object, a name or a configuration.

    Raises:
        ValueError: it cannot be interpreted.
    """
    if isinstance(identifier, dict):
        return deserialize(identifier)
    if isinstance(identifier, str):
        return find("metrics", identifier)
    if callable(identifier):
        return identifier
    raise ValueError(f"Could not interpret metric function identifier: {identifier}")
