"""The signatures of a model that an Estimator exports."""

from __future__ import annotations

import abc
from typing import Any

from stoker._src.base import dtypes
from stoker._src.base.export import export
from stoker._src.graph.tensor import Tensor
from stoker._src.saved_model.signatures import (
    build_op_info,
    build_signature_def,
    build_tensor_info,
    classification_signature_def,
    predict_signature_def,
    regression_signature_def,
)

SUPERVISED_TRAIN_METHOD = "tensorflow/supervised/training"
SUPERVISED_EVAL_METHOD = "tensorflow/supervised/eval"


@export("estimator.export.ExportOutput")
class ExportOutput(metaclass=abc.ABCMeta):
    """Base class of the outputs of an exported model."""

    @abc.abstractmethod
    def as_signature_def(self, receiver_tensors: Any) -> Any:
        """Returns the SignatureDef from the receiver's tensors to this output."""


def _single(receiver_tensors: Any, what: str) -> Any:
    """Returns the only tensor, serialized examples, that a classification or regression receives.

    Raises:
        ValueError: there are several, or it is not a string tensor.
    """
    if len(receiver_tensors) != 1:
        raise ValueError(f"{what} input must be a single string Tensor; got {receiver_tensors}")
    (examples,) = receiver_tensors.values()
    if not isinstance(examples, Tensor) or examples.dtype.base_dtype is not dtypes.string:
        raise ValueError(f"{what} input must be a single string Tensor; got {receiver_tensors}")
    return examples


@export("estimator.export.ClassificationOutput")
class ClassificationOutput(ExportOutput):
    """The output of a classifier, for TensorFlow Serving's Classify.

    Args:
        scores: a float tensor, usually [batch, classes].
        classes: a string tensor with the names of the classes.

    Raises:
        ValueError: a tensor has the wrong dtype, or both are missing.
    """

    def __init__(self, scores: Any = None, classes: Any = None) -> None:
        if scores is not None and not (isinstance(scores, Tensor) and scores.dtype.is_floating):
            raise ValueError(f"Classification scores must be a float32 Tensor; got {scores}")
        if classes is not None and not (isinstance(classes, Tensor) and classes.dtype.base_dtype is dtypes.string):
            raise ValueError(f"Classification classes must be a string Tensor; got {classes}")
        if scores is None and classes is None:
            raise ValueError("At least one of scores and classes must be set.")
        self._scores, self._classes = scores, classes

    @property
    def scores(self) -> Any:
        return self._scores

    @property
    def classes(self) -> Any:
        return self._classes

    def as_signature_def(self, receiver_tensors: Any) -> Any:
        examples = _single(receiver_tensors, "Classification")
        return classification_signature_def(examples, self.classes, self.scores)


@export("estimator.export.RegressionOutput")
class RegressionOutput(ExportOutput):
    """The output of a regression, for TensorFlow Serving's Regress.

    Raises:
        ValueError: the value is not a float tensor.
    """

    def __init__(self, value: Any) -> None:
        if not (isinstance(value, Tensor) and value.dtype.is_floating):
            raise ValueError(f"Regression output value must be a float32 Tensor; got {value}")
        self._value = value

    @property
    def value(self) -> Any:
        return self._value

    def as_signature_def(self, receiver_tensors: Any) -> Any:
        return regression_signature_def(_single(receiver_tensors, "Regression"), self.value)


def _named(outputs: Any, single: str, what: str) -> dict[str, Any]:
    """Returns tensors by name. A single tensor gets the name `single`; names that are tuples are joined.

    Raises:
        ValueError: a name is not a string, or a value is not a tensor.
    """
    if not isinstance(outputs, dict):
        outputs = {single: outputs}
    named = {}
    for key, value in outputs.items():
        key = "/".join(key) if isinstance(key, tuple) else key
        if not isinstance(key, str):
            raise ValueError(f"{what} output key must be a string; got {key}.")
        if not isinstance(value, Tensor):
            raise ValueError(f"{what} output value must be a Tensor; got {value}.")
        named[key] = value
    return named


@export("estimator.export.PredictOutput")
class PredictOutput(ExportOutput):
    """Named outputs, for TensorFlow Serving's Predict. A single tensor gets the name "output".

    Raises:
        ValueError: a name is not a string, or a value is not a tensor.
    """

    _SINGLE_OUTPUT_DEFAULT_NAME = "output"

    def __init__(self, outputs: Any) -> None:
        self._outputs = _named(outputs, self._SINGLE_OUTPUT_DEFAULT_NAME, "Prediction")

    @property
    def outputs(self) -> dict[str, Any]:
        return self._outputs

    def as_signature_def(self, receiver_tensors: Any) -> Any:
        return predict_signature_def(receiver_tensors, self.outputs)


class SupervisedOutput(ExportOutput):
    """Loss, predictions and metrics: the output of a model that was exported for training or evaluation.

    Args:
        method: the method name of the signature.
        loss: the loss.
        predictions: a tensor, or tensors by name.
        metrics: (value, update op) by name.
    """

    def __init__(self, method: str, loss: Any, predictions: Any, metrics: dict[str, Any]) -> None:
        self._method = method
        self._outputs = {} if loss is None else {"loss": loss}
        for name, value in _prefixed(predictions, "predictions"):
            self._outputs[name] = value
        self._metrics = {}
        for name, pair in metrics.items():
            for part, end in zip(pair, ("value", "update_op")):
                self._metrics[f"{name if name.startswith('metrics/') else f'metrics/{name}'}/{end}"] = part

    @property
    def outputs(self) -> dict[str, Any]:
        """The loss, predictions and metrics by the names that they have in the signature."""
        return {**self._outputs, **self._metrics}

    def as_signature_def(self, receiver_tensors: Any) -> Any:
        inputs = {name: build_tensor_info(tensor) for name, tensor in receiver_tensors.items()}
        outputs = {
            name: build_tensor_info(value) if isinstance(value, Tensor) else build_op_info(value)
            for name, value in self.outputs.items()
        }
        return build_signature_def(inputs, outputs, self._method)


def _prefixed(predictions: Any, prefix: str) -> list[tuple[str, Any]]:
    if predictions is None:
        return []
    if not isinstance(predictions, dict):
        return [(prefix, predictions)]
    return [(f"{prefix}/{name}", value) for name, value in predictions.items()]
