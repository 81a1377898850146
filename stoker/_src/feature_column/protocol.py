"""The interface shared by columns of both generations, and functions to query it."""

from __future__ import annotations

from typing import Any

from stoker._src.feature_column.base import Both, CategoricalColumn, DenseColumn, FeatureColumn, IdWeightPair, InScope


def _scope_of(state_manager: Any) -> dict[str, Any]:
    if isinstance(state_manager, InScope):
        return {"weight_collections": state_manager.collections, "trainable": state_manager.trainable}
    return {}


def sparse_tensors(column: Any, cache: Any, state_manager: Any) -> IdWeightPair:
    """The ids and weights of a categorical column."""
    if isinstance(column, CategoricalColumn):
        return column.get_sparse_tensors(cache, state_manager)
    return column._get_sparse_tensors(cache, **_scope_of(state_manager))


def dense_tensor(column: Any, cache: Any, state_manager: Any) -> Any:
    """The dense tensor of a dense column."""
    if isinstance(column, DenseColumn):
        return column.get_dense_tensor(cache, state_manager)
    return column._get_dense_tensor(cache, **_scope_of(state_manager))


def spec_of(column: Any) -> dict[str, Any]:
    """The features that Examples must contain for a column."""
    return column.parse_example_spec if isinstance(column, FeatureColumn) else column._parse_example_spec


def buckets_of(column: Any) -> int:
    """The number of ids of a categorical column."""
    return column.num_buckets if isinstance(column, CategoricalColumn) else column._num_buckets


def shape_of(column: Any) -> Any:
    """The shape of a dense column's values for one example."""
    return column.variable_shape if hasattr(column, "variable_shape") else column._variable_shape


class OfOneColumn(Both):
    """A column that wraps one categorical column. It needs the same features, and its name is that column's name plus `_suffix`."""

    categorical_column: Any
    _suffix = ""

    @property
    def name(self) -> str:
        return self.categorical_column.name + self._suffix

    @property
    def parse_example_spec(self) -> dict[str, Any]:
        return spec_of(self.categorical_column)

    @property
    def parents(self) -> list[Any]:
        return [self.categorical_column]

    def transform_feature(self, transformation_cache: Any, state_manager: Any) -> Any:
        return transformation_cache.get(self.categorical_column, state_manager)
