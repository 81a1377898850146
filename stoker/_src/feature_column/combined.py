"""Columns derived from categorical columns: `weighted_categorical_column` and `crossed_column`."""

from __future__ import annotations

from collections import namedtuple
from typing import Any

from stoker._src.base import dtypes
from stoker._src.base.dtypes import as_dtype
from stoker._src.base.export import export
from stoker._src.feature_column.base import (
    Both,
    CategoricalColumn,
    IdWeightPair,
    _CategoricalColumn,
)
from stoker._src.feature_column.categorical import HashedCategoricalColumn
from stoker._src.feature_column.protocol import sparse_tensors, spec_of
from stoker._src.feature_column.transformation import as_ids
from stoker._src.graph.sparse_tensor import SparseTensor, is_sparse
from stoker._src.ops.array import casting
from stoker._src.ops.ragged.feature_specs import VarLenFeature
from stoker._src.ops.sparse import sparse_features, sparse_functions


class WeightedCategoricalColumn(
    Both,
    CategoricalColumn,
    _CategoricalColumn,
    namedtuple("WeightedCategoricalColumn", "categorical_column weight_feature_key dtype"),
):
    """The ids of another column, with weights from a second feature."""

    __slots__ = ()

    @property
    def name(self) -> str:
        return f"{self.categorical_column.name}_weighted_by_{self.weight_feature_key}"

    @property
    def parse_example_spec(self) -> dict[str, Any]:
        spec = dict(spec_of(self.categorical_column))
        if self.weight_feature_key in spec:
            raise ValueError(
                f"Parse config {spec[self.weight_feature_key]} already exists for {self.weight_feature_key}."
            )
        spec[self.weight_feature_key] = VarLenFeature(self.dtype)
        return spec

    @property
    def num_buckets(self) -> int:
        return self.categorical_column.num_buckets

    def transform_feature(self, transformation_cache: Any, state_manager: Any) -> tuple[Any, SparseTensor]:
        weights = transformation_cache.get(self.weight_feature_key, state_manager)
        if weights is None:
            raise ValueError(f"Missing weights {self.weight_feature_key}.")
        sparse = sparse_functions.as_sparse(weights) if is_sparse(weights) else weights
        if self.dtype is not sparse.dtype.base_dtype:
            raise ValueError(f"Bad dtype, expected {self.dtype!r}, but got {sparse.dtype!r}.")
        if not isinstance(sparse, SparseTensor):
            # As in other dense features, zeros stand for missing values.
            sparse = as_ids(sparse)
        if not sparse.dtype.base_dtype.is_floating:
            sparse = SparseTensor(sparse.indices, casting.cast(sparse.values, dtypes.float32), sparse.dense_shape)
        return transformation_cache.get(self.categorical_column, state_manager), sparse

    def get_sparse_tensors(self, transformation_cache: Any, state_manager: Any) -> IdWeightPair:
        return IdWeightPair(*transformation_cache.get(self, state_manager))

    @property
    def parents(self) -> list[Any]:
        return [self.categorical_column, self.weight_feature_key]


@export("feature_column.weighted_categorical_column")
def weighted_categorical_column(
    categorical_column: Any, weight_feature_key: str, dtype: Any = dtypes.float32
) -> WeightedCategoricalColumn:
    """Creates a categorical column with weights, which come from a feature with the same indices.

    Raises:
        ValueError: a dtype that is neither integer nor floating point.
    """
    kind = None if dtype is None else as_dtype(dtype)
    if kind is None or not (kind.is_integer or kind.is_floating):
        raise ValueError(f"dtype {dtype} is not convertible to float.")
    return WeightedCategoricalColumn(categorical_column, weight_feature_key, kind)


# ---- crosses ----------------------------------------------------------------------------------------------------


class CrossedColumn(
    Both, CategoricalColumn, _CategoricalColumn, namedtuple("CrossedColumn", "keys hash_bucket_size hash_key")
):
    """Every combination of one value from each key, hashed into a bucket."""

    __slots__ = ()
    _in_range = True

    @property
    def name(self) -> str:
        return "_X_".join(sorted(leaf if isinstance(leaf, str) else leaf.name for leaf in _leaves(self)))

    @property
    def parse_example_spec(self) -> dict[str, Any]:
        spec: dict[str, Any] = {}
        for key in self.keys:
            spec.update({key: VarLenFeature(dtypes.string)} if isinstance(key, str) else spec_of(key))
        return spec

    @property
    def num_buckets(self) -> int:
        return self.hash_bucket_size

    def transform_feature(self, transformation_cache: Any, state_manager: Any) -> SparseTensor:
        crossed = []
        for key in _leaves(self):
            if isinstance(key, str):
                crossed.append(transformation_cache.get(key, state_manager))
                continue
            pair = sparse_tensors(key, transformation_cache, state_manager)
            if pair.weight_tensor is not None:
                raise ValueError(
                    f"crossed_column does not support weight_tensor, but the given column populates weight_tensor. Given column: {key.name}"
                )
            crossed.append(pair.id_tensor)
        return sparse_features.cross_hashed(crossed, self.hash_bucket_size, self.hash_key)

    def get_sparse_tensors(self, transformation_cache: Any, state_manager: Any) -> IdWeightPair:
        return IdWeightPair(transformation_cache.get(self, state_manager), None)

    @property
    def parents(self) -> list[Any]:
        return list(self.keys)


def _leaves(crossed: CrossedColumn) -> list[Any]:
    """Returns the keys to cross. The keys of nested crosses are included one by one."""
    leaves: list[Any] = []
    for key in crossed.keys:
        leaves.extend(_leaves(key) if isinstance(key, CrossedColumn) else [key])
    return leaves


@export("feature_column.crossed_column")
def crossed_column(keys: Any, hash_bucket_size: int, hash_key: int | None = None) -> CrossedColumn:
    """Creates a column of hashed combinations that take one value from each key.

    Args:
        keys: names of features of strings or integers, or categorical columns other than hashed ones.
        hash_bucket_size: the number of buckets.
        hash_key: the start value of the combined hash.

    Raises:
        ValueError: fewer than two keys, keys of another kind, fewer than one bucket.
    """
    if not hash_bucket_size or hash_bucket_size < 1:
        raise ValueError(f"hash_bucket_size must be > 1. hash_bucket_size: {hash_bucket_size}")
    if not keys or len(keys) < 2:
        raise ValueError(f"keys must be a list with length > 1. Given: {keys}")
    for key in keys:
        if not isinstance(key, (str, CategoricalColumn, _CategoricalColumn)):
            raise ValueError(
                f"Unsupported key type. All keys must be either string, or categorical column except HashedCategoricalColumn. Given: {key}"
            )
        if isinstance(key, HashedCategoricalColumn):
            raise ValueError(
                "categorical_column_with_hash_bucket is not supported for crossing. Hashing before crossing will increase "
                f"probability of collision. Instead, use the feature name as a string. Given: {key}"
            )
    return CrossedColumn(tuple(keys), hash_bucket_size, hash_key)
