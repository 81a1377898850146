"""Heads of regressions, and the head that is made of several."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from stoker._src.base import dtypes
from stoker._src.base.export import export
from stoker._src.estimator.canned.heads import (
    Head,
    Metrics,
    checked_labels,
    checked_logits,
    mean_metric,
    training_op,
)
from stoker._src.estimator.export_outputs import PredictOutput, RegressionOutput
from stoker._src.estimator.spec import EstimatorSpec, ModeKeys
from stoker._src.graph.scopes import name_scope
from stoker._src.graph.tensor import Tensor
from stoker._src.layers import metrics
from stoker._src.ops.array.casting import cast
from stoker._src.ops.math import arithmetic
from stoker._src.ops.math.unary_functions import exp, sigmoid
from stoker._src.ops.nn.cross_entropy import log_poisson_loss, sigmoid_cross_entropy_with_logits
from stoker._src.ops.summary.summary_ops import scalar_summary

_DEFAULT = "serving_default"
_V2 = "sum_over_batch_size"
_V1 = "weighted_sum_over_batch_size"


@export("estimator.RegressionHead")
class RegressionHead(Head):
    """The head of a regression: squared error.

    Args:
        label_dimension: how many numbers a label has.
        weight_column: the feature with the weights of examples.
        loss_reduction: how the losses of a batch are combined.
        loss_fn: another loss.
        inverse_link_fn: a function from logits to predictions. By default they are the same.
        name: the name of the head.

    Raises:
        ValueError: the dimension is not positive.
    """

    def __init__(
        self,
        label_dimension: int = 1,
        weight_column: Any = None,
        loss_reduction: str = _V2,
        loss_fn: Any = None,
        inverse_link_fn: Any = None,
        name: str | None = None,
    ) -> None:
        if label_dimension < 1:
            raise ValueError(f"Invalid label_dimension {label_dimension}.")
        super().__init__(name, weight_column, loss_reduction, loss_fn)
        self._dimension, self._inverse_link_fn = label_dimension, inverse_link_fn

    @property
    def logits_dimension(self) -> int:
        return self._dimension

    def _process_labels(self, labels: Any, logits: Tensor) -> Tensor:
        return cast(checked_labels(labels, self._dimension), dtypes.float32)

    def _losses(self, labels: Tensor, logits: Tensor) -> Tensor:
        return arithmetic.squared_difference(labels, logits)

    def predictions(self, logits: Any, keys: Any = None) -> dict[str, Any]:
        logits = checked_logits(logits, self._dimension)
        if self._inverse_link_fn is None:
            return {"predictions": logits}
        with name_scope(None, "predictions", [logits]):
            return {"predictions": self._inverse_link_fn(logits), "logits": logits}

    def _metrics(self, spec: Any, predictions: dict[str, Any], weights: Any) -> Metrics:
        return {
            "prediction/mean": mean_metric(predictions["predictions"], weights, self.key("prediction/mean")),
            "label/mean": mean_metric(spec.processed_labels, weights, self.key("label/mean")),
        }

    def _export_outputs(self, predictions: dict[str, Any]) -> dict[str, Any]:
        value = RegressionOutput(predictions["predictions"])
        return {_DEFAULT: value, "regression": value, "predict": PredictOutput(predictions)}


@export("estimator.PoissonRegressionHead")
class PoissonRegressionHead(RegressionHead):
    """The head of a regression of counts: the log loss of Poisson distributions, whose means are exp(logits).

    Args:
        label_dimension, weight_column, loss_reduction, name: as for RegressionHead.
        compute_full_loss: whether the loss has the term of the labels alone.
    """

    def __init__(
        self,
        label_dimension: int = 1,
        weight_column: Any = None,
        loss_reduction: str = _V2,
        compute_full_loss: bool = True,
        name: str | None = None,
    ) -> None:
        self._full = compute_full_loss
        super().__init__(label_dimension, weight_column, loss_reduction, None, exp, name)

    def _losses(self, labels: Tensor, logits: Tensor) -> Tensor:
        return log_poisson_loss(targets=labels, log_input=logits, compute_full_loss=self._full)


@export("estimator.LogisticRegressionHead")
class LogisticRegressionHead(RegressionHead):
    """The head of a regression of fractions: sigmoid cross entropy.

    Args:
        weight_column, loss_reduction, name: as for RegressionHead.
    """

    def __init__(self, weight_column: Any = None, loss_reduction: str = _V2, name: str | None = None) -> None:
        super().__init__(1, weight_column, loss_reduction, None, sigmoid, name)

    def _losses(self, labels: Tensor, logits: Tensor) -> Tensor:
        return sigmoid_cross_entropy_with_logits(labels=labels, logits=logits)


@export("estimator.MultiHead")
class MultiHead(Head):
    """Several heads. The loss is the weighted sum of theirs; labels are dictionaries by the names of heads.

    Args:
        heads: heads with different names.
        head_weights: the weights of their losses. By default all are 1.

    Raises:
        ValueError: there is no head, one has no name, or the number of weights differs.
    """

    def __init__(self, heads: Any, head_weights: Any = None) -> None:
        heads = tuple(heads or ())
        if not heads:
            raise ValueError("Must specify heads. Given: []")
        if head_weights and len(head_weights) != len(heads):
            raise ValueError(
                f"heads and head_weights must have the same size. Given len(heads): {len(heads)}. "
                f"Given len(head_weights): {len(head_weights)}."
            )
        names = [head.name for head in heads]
        if not all(names):
            raise ValueError(f"All given heads must have name specified. Given: {[head.name for head in heads]}")
        super().__init__("_".join(names), None, heads[0].loss_reduction)
        self._heads, self._weights = heads, tuple(head_weights or ())

    @property
    def logits_dimension(self) -> int:
        return sum(head.logits_dimension for head in self._heads)

    def _split(self, logits: Any) -> dict[str, Any]:
        """Returns the logits of each head, from a dictionary or from a tensor with the logits of all."""
        if isinstance(logits, dict):
            return logits
        found, first = {}, 0
        for head in self._heads:
            found[head.name] = logits[..., first : first + head.logits_dimension]
            first += head.logits_dimension
        return found

    def predictions(self, logits: Any, keys: Any = None) -> dict[Any, Any]:
        parts = self._split(logits)
        return {
            (head.name, key): value
            for head in self._heads
            for key, value in head.predictions(parts[head.name], keys).items()
        }

    def _merged(self, losses: list[Any]) -> Tensor:
        weights = self._weights or (1.0,) * len(losses)
        return arithmetic.add_n([loss * weight for loss, weight in zip(losses, weights)])

    def loss(
        self,
        labels: Any,
        logits: Any,
        features: Any = None,
        mode: Any = None,
        regularization_losses: Any = None,
    ) -> Tensor:
        parts = self._split(logits)
        total = self._merged([head.loss(labels[head.name], parts[head.name], features, mode) for head in self._heads])
        return arithmetic.add_n([total, *regularization_losses]) if regularization_losses else total

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
        """Returns the EstimatorSpec of a model with the logits of all heads. See `Head.create_estimator_spec`."""
        parts = self._split(logits)
        predictions = self.predictions(parts)
        if mode == ModeKeys.PREDICT:
            return EstimatorSpec(mode, predictions=predictions, export_outputs=self._all_outputs(parts))
        specs = []
        for head in self._heads:
            with name_scope(head.name):
                specs.append(head.create_loss(features, mode, parts[head.name], labels[head.name]))
        loss = self._merged([spec.training_loss for spec in specs])
        if regularization_losses:
            loss = arithmetic.add_n([loss, *regularization_losses])
        if mode == ModeKeys.EVAL:
            found: Metrics = {}
            for head, spec in zip(self._heads, specs):
                found[f"loss/{head.name}"] = metrics.mean(spec.training_loss, name=f"loss/{head.name}")
                found.update(head._named_metrics(spec, head.predictions(parts[head.name]), None))
            if regularization_losses:
                total = arithmetic.add_n(list(regularization_losses))
                found["regularization_loss"] = metrics.mean(total, name="regularization_loss")
            return EstimatorSpec(mode, predictions=predictions, loss=loss, eval_metric_ops=found)
        train_op = training_op(loss, optimizer, train_op_fn, trainable_variables, update_ops)
        with name_scope(""):
            scalar_summary("loss", loss)
            for head, spec in zip(self._heads, specs):
                scalar_summary(f"loss/{head.name}", spec.training_loss)
        return EstimatorSpec(mode, predictions=predictions, loss=loss, train_op=train_op)

    def _all_outputs(self, parts: dict[str, Any]) -> dict[str, Any]:
        """Returns the outputs of all heads, with their names; the first head is the default."""
        found: dict[str, Any] = {}
        for number, head in enumerate(self._heads):
            outputs = head._export_outputs(head.predictions(parts[head.name]))
            for key, output in outputs.items():
                if key == _DEFAULT:
                    found[head.name] = output
                    if number == 0:
                        found[_DEFAULT] = output
                else:
                    found[f"{head.name}/{key}"] = output
        found["predict"] = PredictOutput(self.predictions(parts))
        return found

    def _process_labels(self, labels: Any, logits: Any) -> Any:
        return {head.name: head._process_labels(labels[head.name], logits[head.name]) for head in self._heads}

    def _losses(self, labels: Any, logits: Any) -> Tensor:
        return self._merged([head._losses(labels[head.name], logits[head.name]) for head in self._heads])

    def _metrics(self, spec: Any, predictions: dict[str, Any], weights: Any) -> Metrics:
        return {}

    def _export_outputs(self, predictions: dict[str, Any]) -> dict[str, Any]:
        return {_DEFAULT: PredictOutput(predictions)}


# ---- the functions of tf.contrib.estimator ----------------------------------------------------------------------


@export(v1="contrib.estimator.regression_head")
def regression_head(
    weight_column: Any = None,
    label_dimension: int = 1,
    loss_reduction: str = _V1,
    loss_fn: Any = None,
    inverse_link_fn: Any = None,
    name: str | None = None,
) -> RegressionHead:
    """Returns a RegressionHead."""
    return RegressionHead(label_dimension, weight_column, loss_reduction, loss_fn, inverse_link_fn, name)


@export(v1="contrib.estimator.poisson_regression_head")
def poisson_regression_head(
    weight_column: Any = None,
    label_dimension: int = 1,
    loss_reduction: str = _V1,
    compute_full_loss: bool = True,
    name: str | None = None,
) -> PoissonRegressionHead:
    """Returns a PoissonRegressionHead."""
    return PoissonRegressionHead(label_dimension, weight_column, loss_reduction, compute_full_loss, name)


@export(v1="contrib.estimator.logistic_regression_head")
def logistic_regression_head(
    weight_column: Any = None, loss_reduction: str = _V1, name: str | None = None
) -> LogisticRegressionHead:
    """Returns a LogisticRegressionHead."""
    return LogisticRegressionHead(weight_column, loss_reduction, name)


@export(v1="contrib.estimator.multi_head")
def multi_head(heads: Any, head_weights: Any = None) -> MultiHead:
    """Returns a MultiHead."""
    return MultiHead(heads, head_weights)
