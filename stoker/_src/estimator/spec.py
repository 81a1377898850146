"""What a model function returns: `EstimatorSpec`, and the modes it is called in."""

from __future__ import annotations

from collections import namedtuple
from collections.abc import Callable
from typing import Any

from stoker._src.base.export import export
from stoker._src.estimator.export_outputs import ExportOutput, PredictOutput
from stoker._src.graph import context
from stoker._src.graph.sparse_tensor import is_sparse
from stoker._src.graph.tensor import Operation, Tensor
from stoker._src.ops.array.shaping import reshape
from stoker._src.saved_model.constants import DEFAULT_SERVING_SIGNATURE_DEF_KEY
from stoker._src.train.sessions.run_hooks import SessionRunHook
from stoker._src.train.sessions.scaffold import Scaffold


@export("estimator.ModeKeys")
class ModeKeys:
    """The modes in which a model function is called."""

    TRAIN = "train"
    EVAL = "eval"
    PREDICT = "infer"


_FIELDS = (
    "mode",
    "predictions",
    "loss",
    "train_op",
    "eval_metric_ops",
    "export_outputs",
    "training_chief_hooks",
    "training_hooks",
    "scaffold",
    "evaluation_hooks",
    "prediction_hooks",
)
_SPEC: Any = namedtuple("EstimatorSpec", _FIELDS)


@export("estimator.EstimatorSpec")
class EstimatorSpec(_SPEC):
    """What a model function returns: the ops and objects that train, evaluate or use the model.

    Args:
        mode: a value of ModeKeys.
        predictions: a tensor, or tensors by name. Needed in mode PREDICT.
        loss: the loss, a scalar. Needed in modes TRAIN and EVAL.
        train_op: the op of a training step. Needed in mode TRAIN.
        eval_metric_ops: for each name of a metric, a pair (value, update op) or a metric object.
        export_outputs: the signatures of an exported model: ExportOutputs by name. By default one PredictOutput of the predictions.
        training_chief_hooks: hooks of training on the chief.
        training_hooks: hooks of training on all workers.
        scaffold: a `tf.train.Scaffold`.
        evaluation_hooks: hooks of evaluation.
        prediction_hooks: hooks of prediction.

    Raises:
        ValueError: something that the mode needs is missing, or belongs to another graph.
        TypeError: an argument has the wrong type.
    """

    def __new__(
        cls,
        mode: str,
        predictions: Any = None,
        loss: Any = None,
        train_op: Any = None,
        eval_metric_ops: Any = None,
        export_outputs: Any = None,
        training_chief_hooks: Any = None,
        training_hooks: Any = None,
        scaffold: Any = None,
        evaluation_hooks: Any = None,
        prediction_hooks: Any = None,
    ) -> EstimatorSpec:
        train_op = checked_train_op(train_op, mode)
        loss = checked_loss(loss, mode)
        predictions = checked_predictions(predictions, mode)
        export_outputs = checked_export_outputs(export_outputs, predictions, mode)
        hooks = [
            checked_hooks(given) for given in (training_chief_hooks, training_hooks, evaluation_hooks, prediction_hooks)
        ]
        metrics = checked_metrics(eval_metric_ops)
        if scaffold is None:
            scaffold = Scaffold()
        elif not isinstance(scaffold, Scaffold):
            raise TypeError(f"scaffold must be tf.train.Scaffold. Given: {scaffold}")
        values = mode, predictions, loss, train_op, metrics, export_outputs, hooks[0], hooks[1], scaffold, *hooks[2:]
        return super().__new__(cls, *values)

    def _replace(self, **kwds: Any) -> EstimatorSpec:
        """Returns a copy with other values. Only the mode cannot be replaced by another one.

        Raises:
            ValueError: another mode, or the values do not fit together.
        """
        if "mode" in kwds and kwds["mode"] != self.mode:
            raise ValueError(f"mode of EstimatorSpec cannot be changed. Given: {kwds['mode']}, have: {self.mode}")
        return EstimatorSpec(**{**self._asdict(), **kwds})


def _in_graph(values: Any) -> None:
    """Checks that tensors belong to the default graph.

    Raises:
        ValueError: one does not.
    """
    graph = context.get_default_graph()
    for name, value in values:
        if value.graph is not graph:
            raise ValueError(
                "{} must be from the default graph. Possible causes of this error include: \n\n1) {} was created outside the "
                "context of the default graph.\n\n2) The object passed through to EstimatorSpec was not created in the most "
                'recent call to "model_fn".'.format(name, getattr(value, "name", value))
            )


def checked_train_op(train_op: Any, mode: str) -> Any:
    if train_op is None:
        if mode == ModeKeys.TRAIN:
            raise ValueError("Missing train_op.")
        return None
    if hasattr(train_op, "op") and not isinstance(train_op, Tensor):  # a variable
        train_op = train_op.op
    if not isinstance(train_op, (Tensor, Operation)):
        raise TypeError(f"train_op must be Operation or Tensor, given: {train_op}")
    if mode == ModeKeys.TRAIN:
        _in_graph([("train_op", train_op)])
    return train_op


def checked_loss(loss: Any, mode: str) -> Any:
    if loss is None:
        if mode in (ModeKeys.TRAIN, ModeKeys.EVAL):
            raise ValueError("Missing loss.")
        return None
    if not isinstance(loss, Tensor):
        raise TypeError(f"loss must be Tensor, given: {loss}")
    size = loss.shape.num_elements()
    if size is not None and size != 1:
        raise ValueError(f"Loss must be scalar, given: {loss}")
    if loss.static_shape.rank != 0:
        loss = reshape(loss, [])
    _in_graph([("loss", loss)])
    return loss


def checked_predictions(predictions: Any, mode: str) -> Any:
    if predictions is None:
        if mode == ModeKeys.PREDICT:
            raise ValueError("Missing predictions.")
        return {}
    items = list(predictions.items()) if isinstance(predictions, dict) else [(None, predictions)]
    for key, value in items:
        if not isinstance(value, Tensor) and not is_sparse(value):
            raise TypeError(f"predictions{'' if key is None else f'[{key}]'} must be Tensor, given: {value}")
    if mode == ModeKeys.PREDICT:
        _in_graph(("prediction values", value) for _, value in items)
    return predictions


def checked_export_outputs(outputs: Any, predictions: Any, mode: str) -> Any:
    if mode != ModeKeys.PREDICT:
        return outputs
    if outputs is None:
        return {DEFAULT_SERVING_SIGNATURE_DEF_KEY: PredictOutput(predictions)}
    if not isinstance(outputs, dict):
        raise TypeError(f"export_outputs must be dict, given: {outputs}")
    for value in outputs.values():
        if not isinstance(value, ExportOutput):
            raise TypeError(f"Values in export_outputs must be ExportOutput objects. Given: {outputs}")
    outputs = dict(outputs)
    if DEFAULT_SERVING_SIGNATURE_DEF_KEY in outputs:
        return outputs
    if len(outputs) > 1:
        raise ValueError(
            "Multiple export_outputs were provided, but none of them is specified as the default.  Do this by naming one of them "
            "with signature_constants.DEFAULT_SERVING_SIGNATURE_DEF_KEY."
        )
    return {**outputs, DEFAULT_SERVING_SIGNATURE_DEF_KEY: next(iter(outputs.values()))} if outputs else {}


def checked_hooks(hooks: Any) -> tuple[Any, ...]:
    hooks = tuple(hooks or [])
    for hook in hooks:
        if not isinstance(hook, SessionRunHook):
            raise TypeError(f"All hooks must be SessionRunHook instances, given: {hook}")
    return hooks


def is_metric_object(metric: Any) -> bool:
    """Whether a metric is an object with a result and updates, as `tf.keras.metrics` has them."""
    return callable(getattr(metric, "result", None)) and hasattr(metric, "updates")


def checked_metrics(metrics: Any) -> dict[str, Any]:
    if metrics is None:
        return {}
    if not isinstance(metrics, dict):
        raise TypeError(f"eval_metric_ops must be a dict, given: {metrics}")
    for key, value in metrics.items():
        if is_metric_object(value):
            continue
        if not isinstance(value, tuple) or len(value) != 2:
            raise TypeError(
                f"Values of eval_metric_ops must be (metric_value, update_op) tuples, given: {value} for key: {key}"
            )
        _in_graph(("eval_metric_ops", each) for pair in [value] for each in _leaves(pair))
    return metrics


def _leaves(value: Any) -> list[Any]:
    if isinstance(value, dict):
        return [leaf for each in value.values() for leaf in _leaves(each)]
    if isinstance(value, (list, tuple)):
        return [leaf for each in value for leaf in _leaves(each)]
    return [value]


ModelFn = Callable[..., EstimatorSpec]
