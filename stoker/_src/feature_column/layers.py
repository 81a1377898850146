"""Layers of feature columns: `tf.keras.layers.DenseFeatures` and `tf.keras.experimental.SequenceFeatures`."""

from __future__ import annotations

from typing import Any

import numpy as np

from stoker._src.base import dtypes
from stoker._src.base.export import export
from stoker._src.base.shapes import Shape
from stoker._src.feature_column import configs
from stoker._src.feature_column.base import DenseColumn, SequenceDenseColumn, StateManager, scope_name, sorted_columns
from stoker._src.feature_column.input_layer import as_matrix, check_batches, check_features
from stoker._src.feature_column.protocol import shape_of
from stoker._src.feature_column.transformation import FeatureTransformationCache
from stoker._src.graph.scopes import name_scope
from stoker._src.graph.trackable import Trackable
from stoker._src.layers.base import Layer
from stoker._src.ops.array import casting, joining, shaping
from stoker._src.ops.control_flow.debugging import assert_equal
from stoker._src.ops.control_flow.grouping import with_dependencies
from stoker._src.ops.variables import variable_scope


class LayerState(StateManager, Trackable):
    """The variables and tables of a layer's columns."""

    def __init__(self, layer: Any, trainable: bool = True, partitioner: Any = None) -> None:
        self._layer, self._trainable, self._partitioner = layer, trainable, partitioner
        self._variables_of: dict[Any, dict[str, Any]] = {}
        self._resources_of: dict[Any, dict[str, Any]] = {}

    def create_variable(
        self,
        feature_column: Any,
        name: str,
        shape: Any,
        dtype: Any = None,
        trainable: bool = True,
        use_resource: bool = True,
        initializer: Any = None,
    ) -> Any:
        """Creates a variable of the layer.

        Raises:
            ValueError: the column already has a variable of this name.
        """
        mine = self._variables_of.setdefault(feature_column, {})
        if name in mine:
            raise ValueError("Variable already exists.")
        mine[name] = self._layer.add_weight(
            name=name,
            shape=shape,
            dtype=dtype,
            initializer=initializer,
            trainable=self._trainable and trainable,
            use_resource=use_resource,
            partitioner=self._partitioner,
        )
        return mine[name]

    def add_variable(self, feature_column: Any, var: Any) -> None:
        self._variables_of.setdefault(feature_column, {})[var.name] = var

    def get_variable(self, feature_column: Any, name: str) -> Any:
        """Returns a variable that was created earlier.

        Raises:
            ValueError: the variable does not exist.
        """
        mine = self._variables_of.get(feature_column, {})
        if name not in mine:
            raise ValueError("Variable does not exist.")
        return mine[name]

    def add_resource(self, feature_column: Any, name: str, resource: Any) -> None:
        self._resources_of.setdefault(feature_column, {})[name] = resource

    def has_resource(self, feature_column: Any, name: str) -> bool:
        return name in self._resources_of.get(feature_column, {})

    def get_resource(self, feature_column: Any, name: str) -> Any:
        """Returns a resource that was added earlier.

        Raises:
            ValueError: the resource does not exist.
        """
        if not self.has_resource(feature_column, name):
            raise ValueError("Resource does not exist.")
        return self._resources_of[feature_column][name]


def _without_first_number(name: str) -> str:
    """Converts the number in a layer's name: Keras starts with `dense_features`, `tf.layers` with `dense_features_1`."""
    base, number = name.rsplit("_", 1)
    return base if number == "1" else f"{base}_{int(number) - 1}"


class _FeaturesLayer(Layer):
    """The base class of layers of feature columns."""

    _lists_updates = False
    _kind: type[Any] = DenseColumn
    _refusal = ""

    def __init__(
        self,
        feature_columns: Any,
        trainable: bool = True,
        name: str | None = None,
        partitioner: Any = None,
        **kwargs: Any,
    ) -> None:
        kwargs.setdefault("dtype", dtypes.float32)
        super().__init__(trainable, name, **kwargs)
        if name is None:
            self._name = _without_first_number(self._name)
        self._feature_columns = sorted_columns(feature_columns)
        self._state_manager = LayerState(self, trainable, partitioner)
        for column in self._feature_columns:
            if not isinstance(column, self._kind):
                raise ValueError(f"{self._refusal} Given: {column}")

    def build(self, input_shape: Any) -> None:
        for column in self._feature_columns:
            with variable_scope.variable_scope(scope_name(column.name), auxiliary_name_scope=False):
                column.create_state(self._state_manager)
        super().build(input_shape)

    def get_config(self) -> dict[str, Any]:
        """Returns the serializable arguments of the layer for `from_config`."""
        return {
            "name": self.name,
            "trainable": self.trainable,
            "dtype": dtypes.as_dtype(self.dtype).name,
            "feature_columns": configs.serialize_feature_columns(self._feature_columns),
            "partitioner": getattr(self._state_manager._partitioner, "__name__", None),
        }

    @classmethod
    def from_config(cls, config: dict[str, Any], custom_objects: Any = None) -> Any:
        """Creates a layer from the result of `get_config`."""
        given = dict(config)
        given["feature_columns"] = configs.deserialize_feature_columns(given["feature_columns"], custom_objects)
        if given.get("partitioner") is not None:
            given["partitioner"] = (custom_objects or {})[given["partitioner"]]
        return cls(**given)


@export("keras.layers.DenseFeatures")
class DenseFeatures(_FeaturesLayer):
    """A layer that concatenates dense columns in the order of their names.

    Args:
        feature_columns: dense columns.
        trainable: whether the layer's variables are trainable.
        name: the name of the layer and its scope.
        partitioner: the partitioner of the layer's variables.

    Raises:
        ValueError: a column is not dense, or two columns have the same name.
    """

    _refusal = (
        "Items of feature_columns must be a DenseColumn. You can wrap a categorical column with an embedding_column or "
        "indicator_column."
    )

    def call(self, inputs: Any, cols_to_output_tensors: Any = None, training: Any = None) -> Any:
        """Returns float32 [batch, total width] for features by name. `cols_to_output_tensors` receives each column's matrix."""
        check_features(inputs)
        cache = FeatureTransformationCache(inputs)
        matrices = []
        for column in self._feature_columns:
            with name_scope(scope_name(column.name)):
                matrix = as_matrix(column.get_dense_tensor(cache, self._state_manager), column)
            if cols_to_output_tensors is not None:
                cols_to_output_tensors[column] = matrix
            matrices.append(matrix)
        check_batches(matrices, self._feature_columns)
        return joining.concat(matrices, 1)

    def compute_output_shape(self, input_shape: Any) -> Any:
        """Returns (None, total width)."""
        total = sum(int(np.prod([int(size) for size in shape_of(column)])) for column in self._feature_columns)
        return (None, total)


@export("keras.experimental.SequenceFeatures")
class SequenceFeatures(_FeaturesLayer):
    """A layer that concatenates sequence columns at each time step.

    Args:
        feature_columns: sequence columns.
        trainable: whether the layer's variables are trainable.
        name: the name of the layer and its scope.

    Raises:
        ValueError: a column is not a sequence column, or two columns have the same name.
    """

    _kind = SequenceDenseColumn
    _refusal = "Items of feature_columns must be a SequenceDenseColumn."

    def call(self, inputs: Any, training: Any = None) -> tuple[Any, Any]:
        """Returns float32 [batch, time, total width] for features by name, and the lengths [batch].

        Raises:
            ValueError: the features are not a dictionary.
            InvalidArgumentError: the sequences of the columns have different lengths.
        """
        check_features(inputs)
        cache = FeatureTransformationCache(inputs)
        parts, lengths = [], []
        for column in self._feature_columns:
            with name_scope(scope_name(column.name)):
                dense, length = column.get_sequence_dense_tensor(cache, self._state_manager)
                parts.append(_as_steps(dense, column))
                lengths.append(length)
        check_batches(parts, self._feature_columns)
        return joining.concat(parts, 2), _agreed(lengths)


def _as_steps(dense: Any, column: Any) -> Any:
    """Flattens the values of each step. The result is [batch, time, width]."""
    width = int(np.prod([int(size) for size in shape_of(column)], dtype=np.int64))
    known = dense.static_shape
    if known.rank == 3 and known[2] == width:
        return casting.cast(dense, dtypes.float32)
    sizes = joining.concat([shaping.shape(dense)[:2], [width]], 0)
    steps = shaping.reshape(casting.cast(dense, dtypes.float32), sizes)
    if not getattr(steps, "is_eager", False) and known.rank is not None:
        steps.set_shape(Shape((known[0], known[1], width)))
    return steps


def _agreed(lengths: list[Any]) -> Any:
    """Returns the sequence lengths, after a check that they are equal for all columns."""
    first = lengths[0]
    for other in lengths[1:]:
        check = assert_equal(first, other, message="All sequence columns must have the same lengths.")
        first = with_dependencies([check], first) if check is not None else first
    return first
