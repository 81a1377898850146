"""Columns of sequences, and the lengths of the sequences."""

from __future__ import annotations

from collections import namedtuple
from typing import Any

import numpy as np

from stoker._src.base import dtypes
from stoker._src.base.export import export
from stoker._src.base.shapes import Shape, TensorShape
from stoker._src.feature_column import categorical
from stoker._src.feature_column.base import (
    CategoricalColumn,
    IdWeightPair,
    SequenceDenseColumn,
    TensorSequenceLengthPair,
    WithConfig,
    _CategoricalColumn,
)
from stoker._src.feature_column.numeric import check_normalizer, checked_numbers
from stoker._src.feature_column.protocol import OfOneColumn, buckets_of, sparse_tensors
from stoker._src.graph.scopes import name_scope
from stoker._src.graph.sparse_tensor import SparseTensor, is_sparse
from stoker._src.ops.array import joining, shaping
from stoker._src.ops.math import arithmetic, segment_reductions
from stoker._src.ops.ragged.feature_specs import VarLenFeature
from stoker._src.ops.sparse import sparse_functions


def lengths(sparse: SparseTensor, num_elements: int = 1) -> Any:
    """Returns the length of each sequence of a SparseTensor [batch, time, ...]. `num_elements` values make one step."""
    with name_scope(None, "sequence_length"):
        rows, steps = sparse.indices[:, 0], arithmetic.add(sparse.indices[:, 1], 1)
        longest = segment_reductions.unsorted_segment_max(steps, rows, sparse.dense_shape[0])
        longest = arithmetic.maximum(longest, np.int64(0))
        if num_elements == 1:
            return longest
        return arithmetic.floordiv(arithmetic.add(longest, num_elements - 1), num_elements)


def refuse_sequence(column: Any, kind: str) -> None:
    """Raises ValueError if a column of sequences is used where each example has one vector."""
    if isinstance(column.categorical_column, SequenceCategoricalColumn):
        raise ValueError(
            f"In {kind}: {column.name}. categorical_column must not be of type SequenceCategoricalColumn. Suggested fix A: If you "
            "wish to use DenseFeatures, use a non-sequence categorical_column_with_*. Suggested fix B: If you wish to create "
            f"sequence input, use SequenceFeatures instead of DenseFeatures. Given (type {type(column.categorical_column)}): "
            f"{column.categorical_column}"
        )


def require_sequence(column: Any, kind: str) -> None:
    """Raises ValueError if a column without sequences is used where sequences are needed."""
    if not isinstance(column.categorical_column, SequenceCategoricalColumn):
        raise ValueError(
            f"In {kind}: {column.name}. categorical_column must be of type SequenceCategoricalColumn to use SequenceFeatures. "
            f"Suggested fix: Use one of sequence_categorical_column_with_*. Given (type {type(column.categorical_column)}): "
            f"{column.categorical_column}"
        )


class SequenceCategoricalColumn(
    OfOneColumn, CategoricalColumn, _CategoricalColumn, namedtuple("SequenceCategoricalColumn", "categorical_column")
):
    """Sequences of categories."""

    __slots__ = ()

    @property
    def num_buckets(self) -> int:
        return buckets_of(self.categorical_column)

    @property
    def _in_range(self) -> bool:
        return getattr(self.categorical_column, "_in_range", False)

    def get_sparse_tensors(self, transformation_cache: Any, state_manager: Any) -> IdWeightPair:
        """Returns ids [batch, time, ids of one step]. In ids of rank two, the second dimension is the time."""
        ids, weights = sparse_tensors(self.categorical_column, transformation_cache, state_manager)
        return IdWeightPair(_with_steps(ids), None if weights is None else _with_steps(weights))


def _with_steps(sparse: SparseTensor) -> SparseTensor:
    if sparse.static_shape.rank not in (2, None):
        return sparse
    shape = joining.concat([sparse.dense_shape, shaping.ones_like(sparse.dense_shape[:1])], 0)
    if sparse.static_shape.rank is None:
        # [batch, time, ...] keeps its steps, and [batch, time] gets steps with one id.
        return sparse_functions.reshape(sparse, joining.concat([sparse.dense_shape[:2], [-1]], 0))
    made = sparse_functions.reshape(sparse, shape)
    made._spelled = made.static_shape.merge(sparse.static_shape.concat(Shape((1,))))
    return made


@export("feature_column.sequence_categorical_column_with_identity")
def sequence_categorical_column_with_identity(
    key: str, num_buckets: int, default_value: int | None = None
) -> SequenceCategoricalColumn:
    """Creates a column of sequences of ids. See `categorical_column_with_identity`."""
    return SequenceCategoricalColumn(categorical.categorical_column_with_identity(key, num_buckets, default_value))


@export("feature_column.sequence_categorical_column_with_hash_bucket")
def sequence_categorical_column_with_hash_bucket(
    key: str, hash_bucket_size: int, dtype: Any = dtypes.string
) -> SequenceCategoricalColumn:
    """Creates a column of sequences of hashed categories. See `categorical_column_with_hash_bucket`."""
    return SequenceCategoricalColumn(categorical.categorical_column_with_hash_bucket(key, hash_bucket_size, dtype))


@export("feature_column.sequence_categorical_column_with_vocabulary_file")
def sequence_categorical_column_with_vocabulary_file(
    key: str,
    vocabulary_file: str,
    vocabulary_size: int | None = None,
    num_oov_buckets: int = 0,
    default_value: int | None = None,
    dtype: Any = dtypes.string,
) -> SequenceCategoricalColumn:
    """Creates a column of sequences of categories that are listed in a file. See `categorical_column_with_vocabulary_file`."""
    return SequenceCategoricalColumn(
        categorical.categorical_column_with_vocabulary_file(
            key, vocabulary_file, vocabulary_size, num_oov_buckets, default_value, dtype
        )
    )


@export("feature_column.sequence_categorical_column_with_vocabulary_list")
def sequence_categorical_column_with_vocabulary_list(
    key: str, vocabulary_list: Any, dtype: Any = None, default_value: int = -1, num_oov_buckets: int = 0
) -> SequenceCategoricalColumn:
    """Creates a column of sequences of categories that are given as a list. See `categorical_column_with_vocabulary_list`."""
    return SequenceCategoricalColumn(
        categorical.categorical_column_with_vocabulary_list(key, vocabulary_list, dtype, default_value, num_oov_buckets)
    )


# ---- numbers ----------------------------------------------------------------------------------------------------


class SequenceNumericColumn(
    WithConfig,
    SequenceDenseColumn,
    namedtuple("SequenceNumericColumn", "key shape default_value dtype normalizer_fn"),
):
    """Sequences of numbers, with a tensor of `shape` at each step."""

    __slots__ = ()

    @property
    def _is_v2_column(self) -> bool:
        return True

    @property
    def name(self) -> str:
        return self.key

    @property
    def parse_example_spec(self) -> dict[str, Any]:
        return {self.key: VarLenFeature(self.dtype)}

    @property
    def variable_shape(self) -> TensorShape:
        return TensorShape(self.shape)

    @property
    def parents(self) -> list[Any]:
        return [self.key]

    def transform_feature(self, transformation_cache: Any, state_manager: Any) -> Any:
        tensor = transformation_cache.get(self.key, state_manager)
        if not is_sparse(tensor):
            raise TypeError(f"sequence_input must be a SparseTensor. key: {self.key}, given: {tensor}")
        return tensor if self.normalizer_fn is None else self.normalizer_fn(tensor)

    def get_sequence_dense_tensor(self, transformation_cache: Any, state_manager: Any) -> TensorSequenceLengthPair:
        """Returns the sequences, padded with the default value, and their lengths."""
        sparse = transformation_cache.get(self, state_manager)
        dense = sparse_functions.to_dense(sparse, default_value=self.default_value)
        size = int(np.prod(self.shape))
        if sparse.static_shape.rank == 2:
            sizes = joining.concat([shaping.shape(dense)[:1], [-1, *self.shape]], 0)
        else:
            sizes = joining.concat([shaping.shape(dense)[:2], list(self.shape)], 0)
        reshaped = shaping.reshape(dense, sizes)
        if not getattr(reshaped, "is_eager", False):
            reshaped.set_shape([dense.static_shape[0] if dense.static_shape.rank else None, None, *self.shape])
        return TensorSequenceLengthPair(reshaped, lengths(sparse, size if sparse.static_shape.rank == 2 else 1))


@export("feature_column.sequence_numeric_column")
def sequence_numeric_column(
    key: str,
    shape: Any = (1,),
    default_value: Any = 0.0,
    dtype: Any = dtypes.float32,
    normalizer_fn: Any = None,
) -> SequenceNumericColumn:
    """Creates a column of sequences of numbers.

    Args:
        key: the name of the feature.
        shape: the shape of the values of one step.
        default_value: the padding of shorter sequences.
        dtype: the dtype of the parsed numbers.
        normalizer_fn: a function that is applied to the SparseTensor.

    Raises:
        TypeError: a dimension is not an integer, or the normalizer cannot be called.
        ValueError: a dimension is not positive, or the dtype is neither integer nor floating point.
    """
    sizes, kind = checked_numbers(key, shape, dtype)
    check_normalizer(normalizer_fn)
    return SequenceNumericColumn(key, sizes, default_value, kind, normalizer_fn)
