"""The base classes of feature columns, both built-in and user-defined.

There are two generations of the protocol. The 2.x one (`FeatureColumn` and below) is told where its variables live by a state
manager; the 1.x one (`_FeatureColumn` and below, names with underscores) makes them in the current variable scope. The columns of
this package implement the first; the second follows from it (`Both`).
"""

from __future__ import annotations

import re
from typing import Any, NamedTuple

from stoker._src.base.export import export
from stoker._src.feature_column import configs
from stoker._src.graph.keys import GraphKeys
from stoker._src.ops.variables import variable_scope


class IdWeightPair(NamedTuple):
    """The ids of a categorical column (a SparseTensor) and their weights (a SparseTensor or None)."""

    id_tensor: Any
    weight_tensor: Any


class TensorSequenceLengthPair(NamedTuple):
    """A dense tensor [batch, time, ...] and the length of each of its sequences."""

    dense_tensor: Any
    sequence_length: Any


# ---- the 2.x protocol -------------------------------------------------------------------------------------------


@export(v2="__internal__.feature_column.FeatureColumn")
class FeatureColumn:
    """A column describes which input features it needs and how to transform them."""

    @property
    def name(self) -> str:
        """The name of the column, and of the scope of its variables."""
        raise NotImplementedError(f"{type(self).__name__}.name")

    def __lt__(self, other: Any) -> bool:
        return str(self) < str(other)

    def __gt__(self, other: Any) -> bool:
        return str(self) > str(other)

    def transform_feature(self, transformation_cache: Any, state_manager: Any) -> Any:
        """Computes the column's intermediate tensor. Callers use `transformation_cache.get(column, state_manager)`, which caches it."""
        raise NotImplementedError(f"{type(self).__name__}.transform_feature")

    @property
    def parse_example_spec(self) -> dict[str, Any]:
        """The features that `tf.io.parse_example` must parse for this column."""
        raise NotImplementedError(f"{type(self).__name__}.parse_example_spec")

    def create_state(self, state_manager: Any) -> None:
        """Creates the column's variables with the state manager."""

    @property
    def _is_v2_column(self) -> bool:
        raise NotImplementedError(f"{type(self).__name__}._is_v2_column")

    @property
    def parents(self) -> list[Any]:
        """The columns and feature names that this column is derived from."""
        raise NotImplementedError(f"{type(self).__name__}.parents")

    def get_config(self) -> dict[str, Any]:
        """Returns a serializable description of the column for `from_config`."""
        raise NotImplementedError(f"{type(self).__name__}.get_config")

    @classmethod
    def from_config(cls, config: dict[str, Any], custom_objects: Any = None, columns_by_name: Any = None) -> Any:
        """Creates a column from the result of `get_config`."""
        raise NotImplementedError(f"{cls.__name__}.from_config")


@export(v2="__internal__.feature_column.DenseColumn")
class DenseColumn(FeatureColumn):
    """A column whose values are a dense tensor [batch, ...]."""

    @property
    def variable_shape(self) -> Any:
        """The shape of the dense tensor without its first dimension."""
        raise NotImplementedError(f"{type(self).__name__}.variable_shape")

    def get_dense_tensor(self, transformation_cache: Any, state_manager: Any) -> Any:
        """The dense tensor."""
        raise NotImplementedError(f"{type(self).__name__}.get_dense_tensor")


class CategoricalColumn(FeatureColumn):
    """A column whose values are ids below `num_buckets`. An example may have any number of them."""

    IdWeightPair = IdWeightPair

    @property
    def num_buckets(self) -> int:
        raise NotImplementedError(f"{type(self).__name__}.num_buckets")

    def get_sparse_tensors(self, transformation_cache: Any, state_manager: Any) -> IdWeightPair:
        """The ids and their weights."""
        raise NotImplementedError(f"{type(self).__name__}.get_sparse_tensors")


@export(v2="__internal__.feature_column.SequenceDenseColumn")
class SequenceDenseColumn(FeatureColumn):
    """A column whose values are a dense tensor [batch, time, ...] with lengths."""

    TensorSequenceLengthPair = TensorSequenceLengthPair

    def get_sequence_dense_tensor(self, transformation_cache: Any, state_manager: Any) -> TensorSequenceLengthPair:
        """The dense tensor and the lengths."""
        raise NotImplementedError(f"{type(self).__name__}.get_sequence_dense_tensor")


# ---- the 1.x protocol -------------------------------------------------------------------------------------------


class _FeatureColumn:
    """A column of the 1.x protocol."""

    @property
    def name(self) -> str:
        raise NotImplementedError(f"{type(self).__name__}.name")

    def __lt__(self, other: Any) -> bool:
        return self.name < other.name

    @property
    def _var_scope_name(self) -> str:
        """The name of the scope that holds the column's variables."""
        return self.name

    def _transform_feature(self, inputs: Any) -> Any:
        """Computes the column's intermediate tensor. `inputs.get(key)` returns the feature or column it is derived from."""
        raise NotImplementedError(f"{type(self).__name__}._transform_feature")

    @property
    def _parse_example_spec(self) -> dict[str, Any]:
        raise NotImplementedError(f"{type(self).__name__}._parse_example_spec")

    def _reset_config(self) -> None:
        """Discards state that belongs to an earlier graph."""


class _DenseColumn(_FeatureColumn):
    """A dense column of the 1.x protocol."""

    @property
    def _variable_shape(self) -> Any:
        raise NotImplementedError(f"{type(self).__name__}._variable_shape")

    def _get_dense_tensor(self, inputs: Any, weight_collections: Any = None, trainable: Any = None) -> Any:
        raise NotImplementedError(f"{type(self).__name__}._get_dense_tensor")


class _CategoricalColumn(_FeatureColumn):
    """A categorical column of the 1.x protocol."""

    IdWeightPair = IdWeightPair

    @property
    def _num_buckets(self) -> int:
        raise NotImplementedError(f"{type(self).__name__}._num_buckets")

    def _get_sparse_tensors(self, inputs: Any, weight_collections: Any = None, trainable: Any = None) -> IdWeightPair:
        raise NotImplementedError(f"{type(self).__name__}._get_sparse_tensors")


class _SequenceDenseColumn(_FeatureColumn):
    """A sequence column of the 1.x protocol."""

    TensorSequenceLengthPair = TensorSequenceLengthPair

    def _get_sequence_dense_tensor(
        self, inputs: Any, weight_collections: Any = None, trainable: Any = None
    ) -> TensorSequenceLengthPair:
        raise NotImplementedError(f"{type(self).__name__}._get_sequence_dense_tensor")


# ---- both -------------------------------------------------------------------------------------------------------


class WithConfig:
    """A column whose config follows from the fields of its tuple."""

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        configs.register(cls)

    def get_config(self) -> dict[str, Any]:
        return configs.config_of(self)

    @classmethod
    def from_config(cls, config: dict[str, Any], custom_objects: Any = None, columns_by_name: Any = None) -> Any:
        return configs.column_from(cls, config, custom_objects, columns_by_name)


class Both(WithConfig):
    """Implements the 1.x protocol in terms of the 2.x one. Variables are created in the current variable scope."""

    name: Any
    transform_feature: Any
    parse_example_spec: Any
    variable_shape: Any
    num_buckets: Any
    get_dense_tensor: Any
    get_sparse_tensors: Any
    get_sequence_dense_tensor: Any

    _is_v2_column = True

    @property
    def _var_scope_name(self) -> str:
        return self.name

    @property
    def _parse_example_spec(self) -> dict[str, Any]:
        return self.parse_example_spec

    @property
    def _variable_shape(self) -> Any:
        return self.variable_shape

    @property
    def _num_buckets(self) -> int:
        return self.num_buckets

    def _transform_feature(self, inputs: Any) -> Any:
        return self.transform_feature(inputs, None)

    def _get_dense_tensor(self, inputs: Any, weight_collections: Any = None, trainable: Any = None) -> Any:
        return self.get_dense_tensor(inputs, InScope(weight_collections, trainable))

    def _get_sparse_tensors(self, inputs: Any, weight_collections: Any = None, trainable: Any = None) -> IdWeightPair:
        return self.get_sparse_tensors(inputs, InScope(weight_collections, trainable))

    def _get_sequence_dense_tensor(
        self, inputs: Any, weight_collections: Any = None, trainable: Any = None
    ) -> TensorSequenceLengthPair:
        return self.get_sequence_dense_tensor(inputs, InScope(weight_collections, trainable))


@export(v2="__internal__.feature_column.StateManager")
class StateManager:
    """Holds the variables and other resources of columns, keyed by column and name."""

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
        """Creates a variable for a column."""
        raise NotImplementedError("StateManager.create_variable")

    def add_variable(self, feature_column: Any, var: Any) -> None:
        """Adds an existing variable."""
        raise NotImplementedError("StateManager.add_variable")

    def get_variable(self, feature_column: Any, name: str) -> Any:
        """Returns a variable that was created before."""
        raise NotImplementedError("StateManager.get_variable")

    def add_resource(self, feature_column: Any, name: str, resource: Any) -> None:
        """Adds a resource, such as a lookup table."""
        raise NotImplementedError("StateManager.add_resource")

    def has_resource(self, feature_column: Any, name: str) -> bool:
        """Returns whether a resource of this name exists."""
        raise NotImplementedError("StateManager.has_resource")

    def get_resource(self, feature_column: Any, name: str) -> Any:
        """Returns a resource that was added before."""
        raise NotImplementedError("StateManager.get_resource")


class InScope:
    """The state of `input_layer` and `linear_model`: variables are created or reused by `get_variable` in the current scope."""

    def __init__(self, weight_collections: Any = None, trainable: bool | None = True) -> None:
        self.trainable = True if trainable is None else trainable
        given = [] if weight_collections is None else list(weight_collections)
        self.collections = [
            *given, *(each for each in (GraphKeys.GLOBAL_VARIABLES, GraphKeys.MODEL_VARIABLES) if each not in given),
        ]  # fmt: skip

    def variable(self, name: str, shape: Any, dtype: Any, initializer: Any, trainable: bool = True) -> Any:
        return variable_scope.get_variable(
            name, shape, dtype=dtype, initializer=initializer,
            trainable=trainable and self.trainable, collections=self.collections,
        )  # fmt: skip


_NOT_IN_SCOPES = re.compile(r"[^A-Za-z0-9_.\-/]")


def scope_name(name: str) -> str:
    """Returns a column's name with the characters that scopes do not allow replaced."""
    return _NOT_IN_SCOPES.sub("_", name)


def sorted_columns(columns: Any) -> list[Any]:
    """Returns columns sorted by name, the order in which layers concatenate them.

    Raises:
        ValueError: none, something that is not a column, or two of one name.
    """
    if isinstance(columns, (FeatureColumn, _FeatureColumn)):
        columns = [columns]
    if isinstance(columns, dict):
        raise ValueError("Expected feature_columns to be iterable, found dict.")
    found = list(columns)
    for each in found:
        if not isinstance(each, (FeatureColumn, _FeatureColumn)):
            raise ValueError(f"Items of feature_columns must be a FeatureColumn. Given (type {type(each)}): {each}.")
    if not found:
        raise ValueError("feature_columns must not be empty.")
    by_name: dict[str, Any] = {}
    for each in found:
        if each.name in by_name:
            raise ValueError(
                f"Duplicate feature column name found for columns: {each} and {by_name[each.name]}. This usually means that "
                "these columns refer to same base feature. Either one must be discarded or a duplicated but renamed item "
                "must be inserted in features dict."
            )
        by_name[each.name] = each
    return [by_name[name] for name in sorted(by_name)]
