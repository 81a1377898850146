"""Canned Estimators: linear models, networks, both together, and baselines that ignore features."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from stoker._src.base.export import export
from stoker._src.estimator.canned.class_heads import classifier_head
from stoker._src.estimator.canned.heads import Head
from stoker._src.estimator.canned.logits import (
    dnn_logit_fn_builder,
    linear_learning_rate,
    linear_logit_fn_builder,
    optimizer_of,
    partitioner_of,
)
from stoker._src.estimator.canned.number_heads import RegressionHead
from stoker._src.estimator.estimator import Estimator
from stoker._src.graph import context
from stoker._src.graph.conversion import convert_to_tensor
from stoker._src.graph.keys import GraphKeys
from stoker._src.graph.scopes import control_dependencies
from stoker._src.graph.sparse_tensor import is_sparse
from stoker._src.graph.tensor import Tensor
from stoker._src.layers.losses import Reduction
from stoker._src.ops.array import joining, shaping
from stoker._src.ops.control_flow.grouping import group
from stoker._src.ops.nn.activations import relu
from stoker._src.ops.variables import initializers, variable_scope
from stoker._src.train.training_util import get_global_step

_SLICE = 64 << 20
_DNN_RATE, _LINEAR_RATE, _DEEP_RATE, _WIDE_RATE, _BASELINE_RATE = 0.05, 0.2, 0.001, 0.005, 0.3
_SUM = Reduction.SUM


def _checked(features: Any) -> None:
    if not isinstance(features, dict):
        raise ValueError(f"features should be a dictionary of `Tensor`s. Given type: {type(features)}")


# ---- linear -----------------------------------------------------------------------------------------------------


def _linear_model_fn(head: Head, columns: Any, optimizer: Any, partitioner: Any, combiner: str) -> Callable[..., Any]:
    def model_fn(features: Any, labels: Any, mode: str, config: Any) -> Any:
        _checked(features)
        chosen = optimizer_of(optimizer, linear_learning_rate(columns, _LINEAR_RATE))
        parts = partitioner or partitioner_of(config, _SLICE)
        with variable_scope.variable_scope("linear", partitioner=parts):
            logits = linear_logit_fn_builder(head.logits_dimension, columns, combiner)(features)
            return head.create_estimator_spec(features, mode, logits, labels=labels, optimizer=chosen)

    return model_fn


@export(v1="estimator.LinearClassifier")
class LinearClassifier(Estimator):
    """A linear classifier.

    Args:
        feature_columns: the columns.
        model_dir: the directory of checkpoints and summaries.
        n_classes: the number of classes.
        weight_column: the feature with the weights of examples.
        label_vocabulary: the names of the classes, if labels are strings.
        optimizer: an optimizer, its name, or a function that makes one.
        config: a RunConfig.
        partitioner: the partitioner of variables.
        warm_start_from: as for Estimator.
        loss_reduction: how the losses of a batch are combined.
        sparse_combiner: how to combine the weights of an example's categories.
    """

    def __init__(
        self,
        feature_columns: Any,
        model_dir: Any = None,
        n_classes: int = 2,
        weight_column: Any = None,
        label_vocabulary: Any = None,
        optimizer: Any = "Ftrl",
        config: Any = None,
        partitioner: Any = None,
        warm_start_from: Any = None,
        loss_reduction: str = _SUM,
        sparse_combiner: str = "sum",
    ) -> None:
        head = classifier_head(n_classes, weight_column, label_vocabulary, loss_reduction)
        model_fn = _linear_model_fn(head, tuple(feature_columns or ()), optimizer, partitioner, sparse_combiner)
        super().__init__(model_fn, model_dir, config, warm_start_from=warm_start_from)


@export(v1="estimator.LinearRegressor")
class LinearRegressor(Estimator):
    """A linear regression.

    Args:
        label_dimension: how many numbers a label has.
        The others: as for LinearClassifier.
    """

    def __init__(
        self,
        feature_columns: Any,
        model_dir: Any = None,
        label_dimension: int = 1,
        weight_column: Any = None,
        optimizer: Any = "Ftrl",
        config: Any = None,
        partitioner: Any = None,
        warm_start_from: Any = None,
        loss_reduction: str = _SUM,
        sparse_combiner: str = "sum",
    ) -> None:
        head = RegressionHead(label_dimension, weight_column, loss_reduction)
        model_fn = _linear_model_fn(head, tuple(feature_columns or ()), optimizer, partitioner, sparse_combiner)
        super().__init__(model_fn, model_dir, config, warm_start_from=warm_start_from)


@export(v1="estimator.LinearEstimator")
class LinearEstimator(Estimator):
    """A linear model with a head.

    Args:
        head: the head.
        The others: as for LinearClassifier.
    """

    def __init__(
        self,
        head: Any,
        feature_columns: Any,
        model_dir: Any = None,
        optimizer: Any = "Ftrl",
        config: Any = None,
        partitioner: Any = None,
        sparse_combiner: str = "sum",
    ) -> None:
        model_fn = _linear_model_fn(head, tuple(feature_columns or ()), optimizer, partitioner, sparse_combiner)
        super().__init__(model_fn, model_dir, config)


# ---- networks ---------------------------------------------------------------------------------------------------


def _dnn_model_fn(
    head: Head,
    hidden_units: Any,
    columns: Any,
    optimizer: Any,
    activation_fn: Any,
    dropout: Any,
    input_layer_partitioner: Any,
    batch_norm: bool,
) -> Callable[..., Any]:
    def model_fn(features: Any, labels: Any, mode: str, config: Any) -> Any:
        _checked(features)
        chosen = optimizer_of(optimizer, _DNN_RATE)
        with variable_scope.variable_scope("dnn", partitioner=partitioner_of(config)):
            parts = input_layer_partitioner or partitioner_of(config, _SLICE)
            logit_fn = dnn_logit_fn_builder(
                head.logits_dimension, hidden_units, columns, activation_fn, dropout, parts, batch_norm
            )
            logits = logit_fn(features, mode)
            return head.create_estimator_spec(features, mode, logits, labels=labels, optimizer=chosen)

    return model_fn


@export(v1="estimator.DNNClassifier")
class DNNClassifier(Estimator):
    """A classifier that is a feed-forward network.

    Args:
        hidden_units: the sizes of the hidden layers.
        feature_columns: dense columns.
        model_dir: the directory of checkpoints and summaries.
        n_classes: the number of classes.
        weight_column: the feature with the weights of examples.
        label_vocabulary: the names of the classes, if labels are strings.
        optimizer: an optimizer, its name, or a function that makes one.
        activation_fn: the activation of hidden layers.
        dropout: the probability of dropping a value in training, or None.
        input_layer_partitioner: the partitioner of the input layer's variables.
        config: a RunConfig.
        warm_start_from: as for Estimator.
        loss_reduction: how the losses of a batch are combined.
        batch_norm: whether each hidden layer is followed by batch normalization.
    """

    def __init__(
        self,
        hidden_units: Any,
        feature_columns: Any,
        model_dir: Any = None,
        n_classes: int = 2,
        weight_column: Any = None,
        label_vocabulary: Any = None,
        optimizer: Any = "Adagrad",
        activation_fn: Any = relu,
        dropout: Any = None,
        input_layer_partitioner: Any = None,
        config: Any = None,
        warm_start_from: Any = None,
        loss_reduction: str = _SUM,
        batch_norm: bool = False,
    ) -> None:
        head = classifier_head(n_classes, weight_column, label_vocabulary, loss_reduction)
        columns = tuple(feature_columns or ())
        model_fn = _dnn_model_fn(
            head, hidden_units, columns, optimizer, activation_fn, dropout, input_layer_partitioner, batch_norm
        )
        super().__init__(model_fn, model_dir, config, warm_start_from=warm_start_from)


@export(v1="estimator.DNNRegressor")
class DNNRegressor(Estimator):
    """A regression by a feed-forward network.

    Args:
        label_dimension: how many numbers a label has.
        The others: as for DNNClassifier.
    """

    def __init__(
        self,
        hidden_units: Any,
        feature_columns: Any,
        model_dir: Any = None,
        label_dimension: int = 1,
        weight_column: Any = None,
        optimizer: Any = "Adagrad",
        activation_fn: Any = relu,
        dropout: Any = None,
        input_layer_partitioner: Any = None,
        config: Any = None,
        warm_start_from: Any = None,
        loss_reduction: str = _SUM,
        batch_norm: bool = False,
    ) -> None:
        head = RegressionHead(label_dimension, weight_column, loss_reduction)
        columns = tuple(feature_columns or ())
        model_fn = _dnn_model_fn(
            head, hidden_units, columns, optimizer, activation_fn, dropout, input_layer_partitioner, batch_norm
        )
        super().__init__(model_fn, model_dir, config, warm_start_from=warm_start_from)


@export(v1="estimator.DNNEstimator")
class DNNEstimator(Estimator):
    """A feed-forward network with a head.

    Args:
        head: the head.
        The others: as for DNNClassifier.
    """

    def __init__(
        self,
        head: Any,
        hidden_units: Any,
        feature_columns: Any,
        model_dir: Any = None,
        optimizer: Any = "Adagrad",
        activation_fn: Any = relu,
        dropout: Any = None,
        input_layer_partitioner: Any = None,
        config: Any = None,
        warm_start_from: Any = None,
        batch_norm: bool = False,
    ) -> None:
        columns = tuple(feature_columns or ())
        model_fn = _dnn_model_fn(
            head, hidden_units, columns, optimizer, activation_fn, dropout, input_layer_partitioner, batch_norm
        )
        super().__init__(model_fn, model_dir, config, warm_start_from=warm_start_from)


# ---- both together ----------------------------------------------------------------------------------------------


def _combined_model_fn(
    head: Head,
    linear_columns: Any,
    linear_optimizer: Any,
    dnn_columns: Any,
    dnn_optimizer: Any,
    hidden_units: Any,
    activation_fn: Any,
    dropout: Any,
    input_layer_partitioner: Any,
    batch_norm: bool,
    combiner: str,
) -> Callable[..., Any]:
    linear_columns, dnn_columns = tuple(linear_columns or ()), tuple(dnn_columns or ())
    if not linear_columns and not dnn_columns:
        raise ValueError("Either linear_feature_columns or dnn_feature_columns must be defined.")
    if dnn_columns and not hidden_units:
        raise ValueError("dnn_hidden_units must be defined when dnn_feature_columns is specified.")

    def model_fn(features: Any, labels: Any, mode: str, config: Any) -> Any:
        _checked(features)
        parts = input_layer_partitioner or partitioner_of(config, _SLICE)
        made: list[Tensor] = []
        trained: list[tuple[str, Any]] = []
        if dnn_columns:
            trained.append(("dnn", optimizer_of(dnn_optimizer, _DEEP_RATE)))
            with variable_scope.variable_scope("dnn", partitioner=partitioner_of(config)):
                logit_fn = dnn_logit_fn_builder(
                    head.logits_dimension, hidden_units, dnn_columns, activation_fn, dropout, parts, batch_norm
                )
                made.append(logit_fn(features, mode))
        if linear_columns:
            trained.append(("linear", optimizer_of(linear_optimizer, linear_learning_rate(linear_columns, _WIDE_RATE))))
            with variable_scope.variable_scope("linear", partitioner=parts):
                made.append(linear_logit_fn_builder(head.logits_dimension, linear_columns, combiner)(features))
        logits = made[0] + made[1] if len(made) == 2 else made[0]

        def train_op_fn(loss: Tensor) -> Any:
            """Each part trains its own variables; the step counts when both have."""
            graph = context.get_default_graph()
            ops = [
                optimizer.minimize(loss, var_list=graph.get_collection(GraphKeys.TRAINABLE_VARIABLES, f"{scope}/"))
                for scope, optimizer in trained
            ]
            with control_dependencies([group(*ops)]):
                return get_global_step().assign_add(1).op

        return head.create_estimator_spec(features, mode, logits, labels=labels, train_op_fn=train_op_fn)

    return model_fn


@export(v1="estimator.DNNLinearCombinedClassifier")
class DNNLinearCombinedClassifier(Estimator):
    """A classifier that adds a linear model and a network ("wide and deep").

    Args:
        model_dir: the directory of checkpoints and summaries.
        linear_feature_columns, linear_optimizer: the linear model.
        dnn_feature_columns, dnn_optimizer, dnn_hidden_units, dnn_activation_fn, dnn_dropout, batch_norm: the network.
        n_classes: the number of classes.
        weight_column: the feature with the weights of examples.
        label_vocabulary: the names of the classes, if labels are strings.
        input_layer_partitioner: the partitioner of the input layer's variables.
        config: a RunConfig.
        warm_start_from: as for Estimator.
        loss_reduction: how the losses of a batch are combined.
        linear_sparse_combiner: how the linear model combines the weights of an example's categories.

    Raises:
        ValueError: there are no columns, or no hidden units for columns of the network.
    """

    def __init__(
        self,
        model_dir: Any = None,
        linear_feature_columns: Any = None,
        linear_optimizer: Any = "Ftrl",
        dnn_feature_columns: Any = None,
        dnn_optimizer: Any = "Adagrad",
        dnn_hidden_units: Any = None,
        dnn_activation_fn: Any = relu,
        dnn_dropout: Any = None,
        n_classes: int = 2,
        weight_column: Any = None,
        label_vocabulary: Any = None,
        input_layer_partitioner: Any = None,
        config: Any = None,
        warm_start_from: Any = None,
        loss_reduction: str = _SUM,
        batch_norm: bool = False,
        linear_sparse_combiner: str = "sum",
    ) -> None:
        model_fn = _combined_model_fn(
            classifier_head(n_classes, weight_column, label_vocabulary, loss_reduction),
            linear_feature_columns,
            linear_optimizer,
            dnn_feature_columns,
            dnn_optimizer,
            dnn_hidden_units,
            dnn_activation_fn,
            dnn_dropout,
            input_layer_partitioner,
            batch_norm,
            linear_sparse_combiner,
        )
        super().__init__(model_fn, model_dir, config, warm_start_from=warm_start_from)


@export(v1="estimator.DNNLinearCombinedRegressor")
class DNNLinearCombinedRegressor(Estimator):
    """A regression that adds a linear model and a network.

    Args:
        label_dimension: how many numbers a label has.
        The others: as for DNNLinearCombinedClassifier.
    """

    def __init__(
        self,
        model_dir: Any = None,
        linear_feature_columns: Any = None,
        linear_optimizer: Any = "Ftrl",
        dnn_feature_columns: Any = None,
        dnn_optimizer: Any = "Adagrad",
        dnn_hidden_units: Any = None,
        dnn_activation_fn: Any = relu,
        dnn_dropout: Any = None,
        label_dimension: int = 1,
        weight_column: Any = None,
        input_layer_partitioner: Any = None,
        config: Any = None,
        warm_start_from: Any = None,
        loss_reduction: str = _SUM,
        batch_norm: bool = False,
        linear_sparse_combiner: str = "sum",
    ) -> None:
        model_fn = _combined_model_fn(
            RegressionHead(label_dimension, weight_column, loss_reduction),
            linear_feature_columns,
            linear_optimizer,
            dnn_feature_columns,
            dnn_optimizer,
            dnn_hidden_units,
            dnn_activation_fn,
            dnn_dropout,
            input_layer_partitioner,
            batch_norm,
            linear_sparse_combiner,
        )
        super().__init__(model_fn, model_dir, config, warm_start_from=warm_start_from)


@export(v1="estimator.DNNLinearCombinedEstimator")
class DNNLinearCombinedEstimator(Estimator):
    """The sum of a linear model and a network, with a head.

    Args:
        head: the head.
        The others: as for DNNLinearCombinedClassifier.
    """

    def __init__(
        self,
        head: Any,
        model_dir: Any = None,
        linear_feature_columns: Any = None,
        linear_optimizer: Any = "Ftrl",
        dnn_feature_columns: Any = None,
        dnn_optimizer: Any = "Adagrad",
        dnn_hidden_units: Any = None,
        dnn_activation_fn: Any = relu,
        dnn_dropout: Any = None,
        input_layer_partitioner: Any = None,
        config: Any = None,
        linear_sparse_combiner: str = "sum",
    ) -> None:
        model_fn = _combined_model_fn(
            head,
            linear_feature_columns,
            linear_optimizer,
            dnn_feature_columns,
            dnn_optimizer,
            dnn_hidden_units,
            dnn_activation_fn,
            dnn_dropout,
            input_layer_partitioner,
            False,
            linear_sparse_combiner,
        )
        super().__init__(model_fn, model_dir, config)


# ---- baselines --------------------------------------------------------------------------------------------------


def _baseline_model_fn(head: Head, optimizer: Any) -> Callable[..., Any]:
    def model_fn(features: Any, labels: Any, mode: str, config: Any) -> Any:
        _checked(features)
        with variable_scope.variable_scope("baseline"):
            bias = variable_scope.get_variable("bias", shape=[head.logits_dimension], initializer=initializers.Zeros())
            logits = joining.tile(shaping.expand_dims(bias, 0), [_batch_size(features), 1])
        chosen = optimizer_of(optimizer, _BASELINE_RATE)
        return head.create_estimator_spec(features, mode, logits, labels=labels, optimizer=chosen)

    return model_fn


def _batch_size(features: dict[str, Any]) -> Any:
    """Returns the size of a batch: the first dimension of the first feature.

    Raises:
        ValueError: there is no feature.
    """
    for _, feature in sorted(features.items()):
        shape = feature.dense_shape if is_sparse(feature) else shaping.shape(convert_to_tensor(feature))
        return shape[0]
    raise ValueError("Baseline estimators need at least one feature, whose first dimension is the size of a batch.")


@export(v1="estimator.BaselineClassifier")
class BaselineClassifier(Estimator):
    """A classifier that ignores features and learns how frequent classes are.

    Args:
        model_dir: the directory of checkpoints and summaries.
        n_classes: the number of classes.
        weight_column: the feature with the weights of examples.
        label_vocabulary: the names of the classes, if labels are strings.
        optimizer: an optimizer, its name, or a function that makes one.
        config: a RunConfig.
        loss_reduction: how the losses of a batch are combined.
    """

    def __init__(
        self,
        model_dir: Any = None,
        n_classes: int = 2,
        weight_column: Any = None,
        label_vocabulary: Any = None,
        optimizer: Any = "Ftrl",
        config: Any = None,
        loss_reduction: str = _SUM,
    ) -> None:
        head = classifier_head(n_classes, weight_column, label_vocabulary, loss_reduction)
        super().__init__(_baseline_model_fn(head, optimizer), model_dir, config)


@export(v1="estimator.BaselineRegressor")
class BaselineRegressor(Estimator):
    """A regression that ignores features and learns the mean of labels.

    Args:
        label_dimension: how many numbers a label has.
        The others: as for BaselineClassifier.
    """

    def __init__(
        self,
        model_dir: Any = None,
        label_dimension: int = 1,
        weight_column: Any = None,
        optimizer: Any = "Ftrl",
        config: Any = None,
        loss_reduction: str = _SUM,
    ) -> None:
        head = RegressionHead(label_dimension, weight_column, loss_reduction)
        super().__init__(_baseline_model_fn(head, optimizer), model_dir, config)


@export(v1="estimator.BaselineEstimator")
class BaselineEstimator(Estimator):
    """A model that ignores features, with a head.

    Args:
        head: the head.
        The others: as for BaselineClassifier.
    """

    def __init__(self, head: Any, model_dir: Any = None, optimizer: Any = "Ftrl", config: Any = None) -> None:
        super().__init__(_baseline_model_fn(head, optimizer), model_dir, config)
