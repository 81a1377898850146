"""How an exported model receives its input: placeholders, and the features that the model makes of them."""

from __future__ import annotations

from collections import namedtuple
from collections.abc import Callable
from typing import Any

from stoker._src.base import dtypes
from stoker._src.base.export import export
from stoker._src.graph.sparse_tensor import is_sparse
from stoker._src.graph.tensor import Tensor
from stoker._src.ops.array.constants import placeholder
from stoker._src.ops.ragged.feature_specs import parse_example_for_serving

_FIELDS = ("features", "receiver_tensors", "receiver_tensors_alternatives")
_SERVING: Any = namedtuple("ServingInputReceiver", _FIELDS)
_TENSOR_SERVING: Any = namedtuple("TensorServingInputReceiver", _FIELDS)
_UNSUPERVISED: Any = namedtuple("UnsupervisedInputReceiver", _FIELDS[:2])
_SUPERVISED: Any = namedtuple("SupervisedInputReceiver", ["features", "labels", "receiver_tensors"])
_LABEL, _FEATURE = "label", "feature"


def _named(values: Any, single: str) -> dict[Any, Any]:
    return dict(values) if isinstance(values, dict) else {single: values}


def _check_tensor(value: Any, name: Any, what: str) -> None:
    """Raises ValueError if something is not a tensor."""
    if not isinstance(value, Tensor) and not is_sparse(value):
        raise ValueError(f"{what}{'' if name is None else f' {name}'} must be a Tensor or SparseTensor.")


def _features(features: Any, what: str = "feature") -> Any:
    if features is None:
        raise ValueError(f"{what}s must be defined.")
    named = _named(features, what)
    for name, tensor in named.items():
        if not isinstance(name, (str, int)):
            raise ValueError(f"{what} keys must be strings or ints: {name}.")
        _check_tensor(tensor, name, what)
    return named


def _receiver_tensors(tensors: Any) -> dict[str, Any]:
    if tensors is None:
        raise ValueError("receiver_tensors must be defined.")
    named = _named(tensors, "receiver_tensor")
    for name, tensor in named.items():
        if not isinstance(name, str):
            raise ValueError(f"receiver_tensor keys must be strings: {name}.")
        _check_tensor(tensor, name, "receiver_tensor")
    return named


def _alternatives(alternatives: Any) -> Any:
    if alternatives is None:
        return None
    if not isinstance(alternatives, dict):
        raise ValueError(f"receiver_tensors_alternatives must be a dict: {alternatives}.")
    return {name: _receiver_tensors(tensors) for name, tensors in alternatives.items()}


@export("estimator.export.ServingInputReceiver")
class ServingInputReceiver(_SERVING):
    """The input of a model for serving.

    Args:
        features: a tensor, or tensors by name, that the model function gets.
        receiver_tensors: the placeholders that a client feeds: a tensor, or tensors by name.
        receiver_tensors_alternatives: other sets of tensors that a client may feed, by name.

    Raises:
        ValueError: something is not a tensor, or has a name of the wrong type.
    """

    def __new__(
        cls, features: Any, receiver_tensors: Any, receiver_tensors_alternatives: Any = None
    ) -> ServingInputReceiver:
        values = _features(features), _receiver_tensors(receiver_tensors), _alternatives(receiver_tensors_alternatives)
        return super().__new__(cls, *values)


@export("estimator.export.TensorServingInputReceiver")
class TensorServingInputReceiver(_TENSOR_SERVING):
    """As ServingInputReceiver, for a model function whose features are one tensor.

    Raises:
        ValueError: something is not a tensor.
    """

    def __new__(
        cls, features: Any, receiver_tensors: Any, receiver_tensors_alternatives: Any = None
    ) -> TensorServingInputReceiver:
        if features is None:
            raise ValueError("features must be defined.")
        _check_tensor(features, None, "feature")
        values = features, _receiver_tensors(receiver_tensors), _alternatives(receiver_tensors_alternatives)
        return super().__new__(cls, *values)


class UnsupervisedInputReceiver(_UNSUPERVISED):
    """The input of a model that is exported for training or evaluation and has no labels."""

    def __new__(cls, features: Any, receiver_tensors: Any) -> UnsupervisedInputReceiver:
        plain = isinstance(features, Tensor) or is_sparse(features)
        return super().__new__(cls, features if plain else _features(features), _receiver_tensors(receiver_tensors))


class SupervisedInputReceiver(_SUPERVISED):
    """The input of a model that is exported for training or evaluation."""

    def __new__(cls, features: Any, labels: Any, receiver_tensors: Any) -> SupervisedInputReceiver:
        def checked(values: Any, what: str) -> Any:
            plain = isinstance(values, Tensor) or is_sparse(values)
            return values if plain else _features(values, what)

        values = checked(features, _FEATURE), checked(labels, _LABEL), _receiver_tensors(receiver_tensors)
        return super().__new__(cls, *values)


@export("estimator.export.build_parsing_serving_input_receiver_fn")
def build_parsing_serving_input_receiver_fn(
    feature_spec: dict[str, Any], default_batch_size: int | None = None
) -> Callable[[], ServingInputReceiver]:
    """Returns a receiver function for serialized `tf.train.Example`s, which it parses.

    Args:
        feature_spec: the features, as for `tf.io.parse_example`.
        default_batch_size: the size of a batch; None for any.
    """

    def serving_input_receiver_fn() -> ServingInputReceiver:
        serialized = placeholder(dtypes.string, [default_batch_size], name="input_example_tensor")
        return ServingInputReceiver(parse_example_for_serving(serialized, feature_spec), {"examples": serialized})

    return serving_input_receiver_fn


def _placeholder_like(tensor: Any, batch_size: int | None) -> Any:
    """Returns a placeholder with the dtype, name and shape of a tensor, except for the size of the batch."""
    shape = tensor.shape
    if shape.dims is None or not len(shape):
        return placeholder(tensor.dtype.base_dtype, None if shape.dims is None else [], name=tensor.op.name)
    return placeholder(tensor.dtype.base_dtype, [batch_size, *shape.as_list()[1:]], name=tensor.op.name)


@export("estimator.export.build_raw_serving_input_receiver_fn")
def build_raw_serving_input_receiver_fn(
    features: dict[str, Any], default_batch_size: int | None = None
) -> Callable[[], ServingInputReceiver]:
    """Returns a receiver function whose features are fed themselves.

    Args:
        features: tensors by name. Placeholders of their dtypes and shapes are made.
        default_batch_size: the size of a batch; None for any.
    """

    def serving_input_receiver_fn() -> ServingInputReceiver:
        made = {name: _placeholder_like(tensor, default_batch_size) for name, tensor in features.items()}
        return ServingInputReceiver(made, made)

    return serving_input_receiver_fn


@export(
    "estimator.experimental.build_raw_supervised_input_receiver_fn",
    v1="contrib.estimator.build_raw_supervised_input_receiver_fn",
)
def build_raw_supervised_input_receiver_fn(
    features: Any, labels: Any, default_batch_size: int | None = None
) -> Callable[[], SupervisedInputReceiver]:
    """Returns a receiver function whose features and labels are fed themselves, for a model that trains or evaluates.

    Args:
        features, labels: a tensor, or tensors by name. Placeholders of their dtypes and shapes are made.
        default_batch_size: the size of a batch; None for any.

    Raises:
        ValueError: features and labels have a name in common.
    """
    both = set(features if isinstance(features, dict) else ()) & set(labels if isinstance(labels, dict) else ())
    if both:
        raise ValueError(f"Features and labels must have distinct keys. Found overlapping keys: {both}")

    def supervised_input_receiver_fn() -> SupervisedInputReceiver:
        def like(values: Any) -> Any:
            if isinstance(values, dict):
                return {name: _placeholder_like(tensor, default_batch_size) for name, tensor in values.items()}
            return _placeholder_like(values, default_batch_size)

        given, wanted = like(features), like(labels)
        receivers = {**_named(given, "input"), **_named(wanted, "label")}
        return SupervisedInputReceiver(given, wanted, receivers)

    return supervised_input_receiver_fn
