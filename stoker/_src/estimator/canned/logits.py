"""The models of canned Estimators: functions that build logits, and optimizers by name."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from stoker._src.base.export import export
from stoker._src.estimator.inputs import argument_names
from stoker._src.estimator.spec import ModeKeys
from stoker._src.feature_column.input_layer import input_layer
from stoker._src.feature_column.linear_model import linear_model
from stoker._src.graph.tensor import Tensor
from stoker._src.layers.core import dense, dropout
from stoker._src.layers.normalization import batch_normalization
from stoker._src.ops.array import joining, shaping
from stoker._src.ops.nn.bias import zero_fraction
from stoker._src.ops.summary.summary_ops import histogram_summary, scalar_summary
from stoker._src.ops.variables import initializers, variable_scope
from stoker._src.ops.variables.partitioned import min_max_variable_partitioner
from stoker._src.train.optimizers.adagrad import AdagradOptimizer
from stoker._src.train.optimizers.adam import AdamOptimizer
from stoker._src.train.optimizers.descent import GradientDescentOptimizer
from stoker._src.train.optimizers.ftrl import FtrlOptimizer
from stoker._src.train.optimizers.optimizer import Optimizer
from stoker._src.train.optimizers.rmsprop import RMSPropOptimizer

_OPTIMIZERS: dict[str, Any] = {
    "Adagrad": AdagradOptimizer,
    "Adam": AdamOptimizer,
    "Ftrl": FtrlOptimizer,
    "RMSProp": RMSPropOptimizer,
    "SGD": GradientDescentOptimizer,
}
LogitFn = Callable[[Any, str], Any]


def optimizer_of(optimizer: Any, learning_rate: float) -> Optimizer:
    """Returns an optimizer for its name, a function that makes one, or an optimizer.

    Raises:
        ValueError: the name is not known, or the object is not an optimizer.
    """
    if isinstance(optimizer, str):
        if optimizer not in _OPTIMIZERS:
            raise ValueError(
                f"Unsupported optimizer name: {optimizer}. Supported names are: {tuple(sorted(_OPTIMIZERS))}"
            )
        return _OPTIMIZERS[optimizer](learning_rate=learning_rate)
    if callable(optimizer) and not isinstance(optimizer, Optimizer):
        optimizer = optimizer()
    if not isinstance(optimizer, Optimizer):
        raise ValueError(f"The given object is not an Optimizer instance. Given: {optimizer}")
    return optimizer


def linear_learning_rate(columns: Any, largest: float) -> float:
    """Returns the default learning rate of a linear model, which falls with the number of its columns."""
    return min(largest, 1.0 / math.sqrt(len(list(columns))))


def partitioner_of(config: Any, min_slice_size: int | None = None) -> Any:
    """Returns the partitioner of variables: as many parts as there are parameter servers."""
    given = {} if min_slice_size is None else {"min_slice_size": min_slice_size}
    return min_max_variable_partitioner(max_partitions=config.num_ps_replicas if config else 0, **given)


@export(v1=("estimator.experimental.linear_logit_fn_builder", "contrib.estimator.linear_logit_fn_builder"))
def linear_logit_fn_builder(units: int, feature_columns: Any, sparse_combiner: str = "sum") -> Callable[..., Any]:
    """Returns a function from features to the logits of a linear model.

    Args:
        units: the number of logits.
        feature_columns: the columns.
        sparse_combiner: how to combine the weights of an example's categories.
    """

    def linear_logit_fn(features: Any) -> Tensor:
        variables: dict[Any, Any] = {}
        logits = linear_model(features, feature_columns, units, sparse_combiner, cols_to_vars=variables)
        bias = variables.pop("bias")
        if units > 1:
            histogram_summary("bias", joining.concat([*map(_value, bias)], 0))
        else:
            scalar_summary("bias", shaping.reshape(_value(bias[0]), []))
        flat = [shaping.reshape(_value(each), [-1]) for parts in variables.values() for each in parts]
        scalar_summary("fraction_of_zero_weights", zero_fraction(joining.concat(flat, 0)))
        return logits

    return linear_logit_fn


def _value(variable: Any) -> Tensor:
    return variable.value()


@export(v1=("estimator.experimental.dnn_logit_fn_builder", "contrib.estimator.dnn_logit_fn_builder"))
def dnn_logit_fn_builder(
    units: int,
    hidden_units: Any,
    feature_columns: Any,
    activation_fn: Any,
    dropout: Any,
    input_layer_partitioner: Any,
    batch_norm: bool,
) -> LogitFn:
    """Returns a function from features and the mode to the logits of a feed-forward network.

    Args:
        units: the number of logits.
        hidden_units: the sizes of the hidden layers.
        feature_columns: the columns of the input layer.
        activation_fn: the activation of hidden layers.
        dropout: the probability of dropping a value in training, or None.
        input_layer_partitioner: the partitioner of the input layer's variables.
        batch_norm: whether each hidden layer is followed by batch normalization.
    """
    rate = dropout

    def dnn_logit_fn(features: Any, mode: str) -> Tensor:
        is_training = mode == ModeKeys.TRAIN
        with variable_scope.variable_scope("input_from_feature_columns", partitioner=input_layer_partitioner):
            net = input_layer(features, feature_columns)
        for number, size in enumerate(hidden_units):
            with variable_scope.variable_scope(f"hiddenlayer_{number}") as scope:
                net = _hidden(net, size, activation_fn, scope)
                if rate is not None and is_training:
                    net = _dropped(net, rate)
                if batch_norm:
                    net = batch_normalization(net, momentum=0.999, training=is_training, name=f"batchnorm_{number}")
                _summarize(net, scope.name)
        with variable_scope.variable_scope("logits") as scope:
            logits = _hidden(net, units, None, scope)
            _summarize(logits, scope.name)
        return logits

    return dnn_logit_fn


def _hidden(net: Tensor, size: int, activation: Any, scope: Any) -> Tensor:
    return dense(net, size, activation=activation, kernel_initializer=initializers.GlorotUniform(), name=scope)


def _dropped(net: Tensor, rate: Any) -> Tensor:
    return dropout(net, rate=rate, training=True)


def _summarize(values: Tensor, name: str) -> None:
    scalar_summary(f"{name}/fraction_of_zero_values", zero_fraction(values))
    histogram_summary(f"{name}/activation", values)


@export("estimator.experimental.call_logit_fn", v1="contrib.estimator.call_logit_fn")
def call_logit_fn(logit_fn: Callable[..., Any], features: Any, mode: str, params: Any, config: Any) -> Any:
    """Calls a function that builds logits with those of the arguments that it takes.

    Raises:
        ValueError: it returns neither a tensor nor a dictionary.
    """
    names = argument_names(logit_fn)
    known = {"mode": mode, "params": params, "config": config}
    logits = logit_fn(features=features, **{name: value for name, value in known.items() if name in names})
    if not isinstance(logits, (Tensor, dict)):
        raise ValueError(f"model_fn should return either a Tensor or a dictionary of Tensors. Returned: {logits}")
    return logits
