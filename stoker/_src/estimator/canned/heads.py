"""Heads: what follows the logits of a model. A head knows labels, loss, predictions, metrics and the outputs of an exported model."""

from __future__ import annotations

import abc
from collections import namedtuple
from collections.abc import Callable
from typing import Any

from stoker._src.base import dtypes
from stoker._src.base.export import export
from stoker._src.estimator.inputs import argument_names
from stoker._src.estimator.spec import EstimatorSpec, ModeKeys
from stoker._src.feature_column.numeric import NumericColumn, numeric_column
from stoker._src.feature_column.transformation import FeatureTransformationCache
from stoker._src.graph import context
from stoker._src.graph.conversion import convert_to_tensor
from stoker._src.graph.keys import GraphKeys
from stoker._src.graph.scopes import name_scope
from stoker._src.graph.tensor import Tensor
from stoker._src.layers import metrics
from stoker._src.layers.losses import Reduction, compute_weighted_loss
from stoker._src.ops.array import shaping
from stoker._src.ops.array.casting import cast
from stoker._src.ops.control_flow.grouping import group
from stoker._src.ops.math import arithmetic, reductions
from stoker._src.ops.resources.vocabularies import index_table_from_tensor
from stoker._src.ops.summary.summary_ops import scalar_summary
from stoker._src.train.optimizers.optimizer import Optimizer
from stoker._src.train.training_util import get_global_step

# The names that 2.x gives to reductions.
_REDUCTIONS = {
    "sum": Reduction.SUM,
    "sum_over_batch_size": Reduction.SUM_OVER_BATCH_SIZE,
    "auto": Reduction.SUM_OVER_BATCH_SIZE,
}
LossSpec = namedtuple("LossSpec", ["training_loss", "unreduced_loss", "weights", "processed_labels"])
Metrics = dict[str, tuple[Any, Any]]


def reduction_of(name: str) -> str:
    """Returns the reduction of 1.x for a name of 1.x or 2.x.

    Raises:
        ValueError: there is none, or it reduces nothing.
    """
    known = _REDUCTIONS.get(name, name)
    if known == Reduction.NONE or known not in Reduction.all():
        raise ValueError(f"Invalid loss_reduction: {name}")
    return known


@export("estimator.Head")
class Head(metaclass=abc.ABCMeta):
    """Base class of heads.

    Args:
        name: the name, which metrics and summaries get as a suffix.
        weight_column: the feature with the weights of examples: its name or a numeric column.
        loss_reduction: how the losses of a batch are combined.
        loss_fn: a function of `labels` and `logits`, and optionally `features` and `loss_reduction`, that returns the losses of examples.
    """

    def __init__(self, name: Any, weight_column: Any, loss_reduction: str, loss_fn: Any = None) -> None:
        self._name, self._weight_column, self._given_reduction = name, weight_column, loss_reduction
        self._reduction = reduction_of(loss_reduction)
        if loss_fn is not None:
            check_loss_fn(loss_fn)
        self._loss_fn = loss_fn

    @property
    def name(self) -> Any:
        return self._name

    @property
    def loss_reduction(self) -> str:
        return self._given_reduction

    @property
    @abc.abstractmethod
    def logits_dimension(self) -> int:
        """The number of logits of an example."""

    @abc.abstractmethod
    def predictions(self, logits: Any, keys: Any = None) -> dict[Any, Any]:
        """Returns predictions by name: all, or those in `keys`."""

    @abc.abstractmethod
    def _process_labels(self, labels: Any, logits: Tensor) -> Tensor:
        """Returns labels as the loss needs them."""

    @abc.abstractmethod
    def _losses(self, labels: Tensor, logits: Tensor) -> Tensor:
        """Returns the losses of examples, [batch, 1] or [batch, dimension]."""

    @abc.abstractmethod
    def _metrics(self, spec: Any, predictions: dict[str, Any], weights: Any) -> Metrics:
        """Returns metrics by their keys, without the average loss."""

    @abc.abstractmethod
    def _export_outputs(self, predictions: dict[str, Any]) -> dict[str, Any]:
        """Returns the outputs of an exported model."""

    def loss(
        self,
        labels: Any,
        logits: Any,
        features: Any = None,
        mode: Any = None,
        regularization_losses: Any = None,
    ) -> Tensor:
        """Returns the loss of a batch."""
        training_loss = self.create_loss(features, mode, logits, labels).training_loss
        return _regularized(training_loss, regularization_losses)[0]

    def create_loss(self, features: Any, mode: Any, logits: Any, labels: Any) -> Any:
        """Returns the loss of a batch, the losses and weights of its examples, and the labels, as a tuple."""
        logits = checked_logits(logits, self.logits_dimension)
        labels = self._process_labels(labels, logits)
        losses = self._losses(labels, logits) if self._loss_fn is None else self._own_losses(labels, logits, features)
        weights = weights_of(features, self._weight_column, logits)
        training_loss = compute_weighted_loss(losses, weights, reduction=self._reduction)
        return LossSpec(training_loss, losses, weights, labels)

    def _own_losses(self, labels: Tensor, logits: Tensor, features: Any) -> Tensor:
        assert self._loss_fn is not None
        names = argument_names(self._loss_fn)
        known = {"labels": labels, "logits": logits, "features": features, "loss_reduction": self._reduction}
        losses = self._loss_fn(**{name: value for name, value in known.items() if name in names})
        return shaping.expand_dims(losses, -1) if losses.static_shape.rank == 1 else losses

    def metrics(self, regularization_losses: Any = None) -> Any:
        """Not supported: metrics of 1.x are made with the labels; see `update_metrics` and `create_estimator_spec`.

        Raises:
            NotImplementedError: always.
        """
        raise NotImplementedError(
            "Head.metrics returns Keras metrics. Use create_estimator_spec, or update_metrics, which makes metrics of 1.x."
        )

    def update_metrics(
        self,
        eval_metrics: Any,
        features: Any,
        logits: Any,
        labels: Any,
        mode: Any = None,
        regularization_losses: Any = None,
    ) -> Metrics:
        """Returns the metrics of an evaluation as pairs (value, update op), added to `eval_metrics`."""
        spec = self.create_loss(features, ModeKeys.EVAL, logits, labels)
        return {**(eval_metrics or {}), **self._named_metrics(spec, self.predictions(logits), regularization_losses)}

    def key(self, key: str) -> str:
        """Returns the name of a metric or a summary: the key with the head's name."""
        return f"{key}/{self._name}" if self._name else key

    def _named_metrics(self, spec: Any, predictions: dict[str, Any], regularization_losses: Any) -> Metrics:
        with name_scope(None, "metrics"):
            average = metrics.mean(spec.unreduced_loss, weights=spec.weights, name=self.key("average_loss"))
            made = {self.key("average_loss"): average}
            for key, metric in self._metrics(spec, predictions, spec.weights).items():
                made[self.key(key)] = metric
            if regularization_losses:
                total = arithmetic.add_n(list(regularization_losses))
                made[self.key("regularization_loss")] = metrics.mean(total, name=self.key("regularization_loss"))
        return made

    def create_estimator_spec(
        self,
        features: Any,
        mode: str,
        logits: Any,
        labels: Any = None,
        optimizer: Any = None,
        trainable_variables: Any = None,
        train_op_fn: Callable[[Tensor], Any] | None = None,
        update_ops: Any = None,
        regularization_losses: Any = None,
    ) -> EstimatorSpec:
        """Returns the EstimatorSpec of a model with these logits.

        Args:
            features: the features.
            mode: a value of ModeKeys.
            logits: the logits.
            labels: the labels; not needed for predictions.
            optimizer: the optimizer of training.
            trainable_variables: the variables to train. By default all.
            train_op_fn: a function from the loss to the op of a training step, instead of an optimizer.
            update_ops: ops that run with each training step. By default those of the collection UPDATE_OPS.
            regularization_losses: losses to add.

        Raises:
            ValueError: training has neither an optimizer nor a `train_op_fn`, or both.
        """
        with name_scope(self._name, "head"):
            predictions = self.predictions(logits)
            if mode == ModeKeys.PREDICT:
                return EstimatorSpec(mode, predictions=predictions, export_outputs=self._export_outputs(predictions))
            spec = self.create_loss(features, mode, logits, labels)
            loss, _ = _regularized(spec.training_loss, regularization_losses)
            if mode == ModeKeys.EVAL:
                found = self._named_metrics(spec, predictions, regularization_losses)
                return EstimatorSpec(mode, predictions=predictions, loss=loss, eval_metric_ops=found)
            train_op = training_op(loss, optimizer, train_op_fn, trainable_variables, update_ops)
        # Summaries have their own names, whatever the scope of the model is.
        with name_scope(""):
            scalar_summary(self.key("loss"), loss)
            if self._reduction == Reduction.SUM:
                average = compute_weighted_loss(
                    spec.unreduced_loss, spec.weights, reduction=Reduction.MEAN, loss_collection=None
                )
                scalar_summary(self.key("average_loss"), average)
        return EstimatorSpec(mode, predictions=predictions, loss=loss, train_op=train_op)


def _regularized(loss: Tensor, regularization_losses: Any) -> tuple[Tensor, Any]:
    if not regularization_losses:
        return loss, None
    total = arithmetic.add_n(list(regularization_losses))
    return arithmetic.add(loss, total), total


def training_op(
    loss: Tensor, optimizer: Any, train_op_fn: Any, trainable_variables: Any = None, update_ops: Any = None
) -> Any:
    """Returns the op of a training step, together with the update ops of the graph.

    Raises:
        ValueError: neither or both of `optimizer` and `train_op_fn` are given.
    """
    if optimizer is not None and train_op_fn is not None:
        raise ValueError("train_op_fn and optimizer cannot both be set.")
    if optimizer is not None:
        if not isinstance(optimizer, Optimizer) and not hasattr(optimizer, "minimize"):
            raise ValueError(f"The given object is not an Optimizer instance. Given: {optimizer}")
        arguments = {} if trainable_variables is None else {"var_list": trainable_variables}
        train_op = optimizer.minimize(loss, global_step=get_global_step(), **arguments)
    elif train_op_fn is not None:
        train_op = train_op_fn(loss)
    else:
        raise ValueError("train_op_fn and optimizer cannot both be None.")
    updates = list(update_ops or context.get_default_graph().get_collection(GraphKeys.UPDATE_OPS))
    return group(train_op, *updates) if updates else train_op


# ---- labels, logits and weights ---------------------------------------------------------------------------------


def checked_logits(logits: Any, dimension: int) -> Tensor:
    """Returns logits as float32 [batch, dimension].

    Raises:
        ValueError: the last dimension is known to be another one.
    """
    logits = cast(convert_to_tensor(logits), dtypes.float32)
    shape = logits.static_shape
    if shape.rank is not None:
        if shape.rank < 2:
            raise ValueError(f"logits must have shape [D0, D1, ... DN, logits_dimension], found {logits.shape}.")
        if shape[-1] is not None and shape[-1] != dimension:
            raise ValueError(
                f"logits shape must be [D0, D1, ... DN, logits_dimension], got {logits.shape} where the last dimension should be "
                f"{dimension}."
            )
    return logits


def checked_labels(labels: Any, dimension: int) -> Tensor:
    """Returns dense labels with a last dimension of `dimension`. A vector becomes a column.

    Raises:
        ValueError: there are none, or they are known to have another shape.
    """
    if labels is None:
        raise ValueError(
            "You must provide a labels Tensor. Given: None. Suggested troubleshooting steps: Check that your data contain your label "
            "feature. Check that your input_fn properly parses and returns labels."
        )
    labels = convert_to_tensor(labels)
    shape = labels.static_shape
    if dimension == 1 and shape.rank == 1:
        return shaping.expand_dims(labels, -1)
    if shape.rank is not None and shape.rank > 1 and shape[-1] is not None and shape[-1] != dimension:
        raise ValueError(
            f"Mismatched label shape. Expected labels dimension={dimension}.  Received {shape[-1]}. Suggested Fix:If your "
            "classifier expects one-hot encoding label,check your n_classes argument to the estimator and/or the shape of your "
            "label. Otherwise, check the shape of your label."
        )
    return labels


def class_ids(labels: Tensor, vocabulary: Any) -> Tensor:
    """Returns the positions of labels in a vocabulary, or the labels themselves, which must then be integers.

    Raises:
        ValueError: labels without a vocabulary are not integers, or labels with one are not strings.
    """
    if vocabulary:
        if labels.dtype.base_dtype is not dtypes.string:
            raise ValueError(f"Labels dtype should be string if there is a vocabulary. Instead got {labels.dtype!r}")
        table = index_table_from_tensor(mapping=tuple(vocabulary), name="class_id_lookup")
        return table.lookup(labels)
    if not labels.dtype.is_integer and labels.dtype.base_dtype is not dtypes.bool_:
        raise ValueError(f"Labels dtype should be integer. Instead got {labels.dtype!r}.")
    return labels


def weights_of(features: Any, weight_column: Any, logits: Tensor) -> Any:
    """Returns the weights of examples, [batch, 1], or 1.0 if there is no weight column.

    Raises:
        TypeError: the column is not numeric.
        ValueError: its shape is not that of a number.
    """
    if weight_column is None:
        return 1.0
    if isinstance(weight_column, str):
        weight_column = numeric_column(weight_column, shape=(1,))
    if not isinstance(weight_column, NumericColumn):
        raise TypeError(f"Weight column must be either a string or _NumericColumn. Given type: {type(weight_column)}.")
    given = FeatureTransformationCache(features).get(weight_column, None)
    weights = cast(convert_to_tensor(given), dtypes.float32)
    return shaping.expand_dims(weights, -1) if weights.static_shape.rank == 1 else weights


def check_loss_fn(loss_fn: Any) -> None:
    """Raises ValueError if a loss function has other arguments than a head gives."""
    names = set(argument_names(loss_fn))
    for needed in ("labels", "logits"):
        if needed not in names:
            raise ValueError(f"loss_fn must contain argument: {needed}. Given arguments: {tuple(sorted(names))}")
    other = sorted(names - {"labels", "logits", "features", "loss_reduction"})
    if other:
        raise ValueError(f"loss_fn has unexpected args: {other}")


def mean_metric(values: Any, weights: Any, name: str) -> tuple[Any, Any]:
    """Returns the weighted mean of values."""
    return metrics.mean(values, weights=weights, name=name)


def batch_of(logits: Tensor) -> Tensor:
    """Returns the size of the batch."""
    return shaping.shape(logits)[0]


def mean_over_classes(losses: Tensor) -> Tensor:
    """Returns the mean over the last dimension, which stays."""
    return reductions.reduce_mean(losses, axis=-1, keepdims=True)
