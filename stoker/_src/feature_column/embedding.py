"""Dense columns derived from categorical columns: `embedding_column` and `indicator_column`."""

from __future__ import annotations

import math
from collections import namedtuple
from typing import Any

from stoker._src.base import dtypes
from stoker._src.base.export import export
from stoker._src.base.shapes import TensorShape
from stoker._src.feature_column import sequences
from stoker._src.feature_column.base import (
    CategoricalColumn,
    DenseColumn,
    InScope,
    SequenceDenseColumn,
    TensorSequenceLengthPair,
    _CategoricalColumn,
    _DenseColumn,
    _SequenceDenseColumn,
)
from stoker._src.feature_column.lookups import combined_rows, matching
from stoker._src.feature_column.protocol import OfOneColumn, buckets_of, sparse_tensors
from stoker._src.graph.conversion import convert_to_tensor
from stoker._src.graph.sparse_tensor import SparseTensor
from stoker._src.ops.array import casting, joining, scattering, shaping
from stoker._src.ops.math import comparison
from stoker._src.ops.nn import embedding
from stoker._src.ops.sparse import sparse_functions
from stoker._src.ops.variables import initializers
from stoker._src.ops.variables.partitioned import PartitionedVariable
from stoker._src.train.checkpoints.initializers import init_from_checkpoint

WEIGHTS = "embedding_weights"


def checked_embedding(
    dimension: Any, initializer: Any, ckpt_to_load_from: Any, tensor_name_in_ckpt: Any, what: str
) -> Any:
    """Checks the arguments of an embedding and returns its initializer.

    Raises:
        ValueError: the dimension is below one, only one of the two checkpoint arguments is given, or the initializer cannot be called.
    """
    if dimension is None or dimension < 1:
        raise ValueError(f"Invalid dimension {dimension}.")
    if (ckpt_to_load_from is None) != (tensor_name_in_ckpt is None):
        raise ValueError("Must specify both `ckpt_to_load_from` and `tensor_name_in_ckpt` or none of them.")
    if initializer is not None and not callable(initializer):
        raise ValueError(f"initializer must be callable if specified. {what}")
    if initializer is None:
        return initializers.TruncatedNormal(mean=0.0, stddev=1 / math.sqrt(dimension))
    return initializer


def loaded(variable: Any, ckpt_to_load_from: Any, tensor_name_in_ckpt: Any) -> Any:
    """Returns the variable, initialized from a checkpoint if one is given."""
    if ckpt_to_load_from is not None:
        whole = list(variable) if isinstance(variable, PartitionedVariable) else variable
        init_from_checkpoint(ckpt_to_load_from, {tensor_name_in_ckpt: whole})
    return variable


class OfTable(OfOneColumn):
    """A column of vectors, the rows of a table, which are combined for each example or each step of a sequence."""

    combiner: Any
    max_norm: Any
    _kind = ""  # the name of the function that creates such columns, for messages

    def _table(self, state_manager: Any) -> Any:
        raise NotImplementedError(type(self).__name__)

    def get_dense_tensor(self, transformation_cache: Any, state_manager: Any) -> Any:
        sequences.refuse_sequence(self, self._kind)
        return combined_rows(
            self._table(state_manager), self.categorical_column, transformation_cache, state_manager, self.combiner,
            self.max_norm, f"{self.name}_weights",
        )  # fmt: skip

    def get_sequence_dense_tensor(self, transformation_cache: Any, state_manager: Any) -> TensorSequenceLengthPair:
        sequences.require_sequence(self, self._kind)
        ids, weights = sparse_tensors(self.categorical_column, transformation_cache, state_manager)
        rows = embedding.safe_embedding_lookup_sparse(
            self._table(state_manager), ids, weights, self.combiner, name=f"{self.name}_weights",
            max_norm=self.max_norm, partition_strategy="div",
        )  # fmt: skip
        return TensorSequenceLengthPair(rows, sequences.lengths(ids))


class EmbeddingColumn(
    OfTable,
    DenseColumn,
    SequenceDenseColumn,
    _DenseColumn,
    _SequenceDenseColumn,
    namedtuple(
        "EmbeddingColumn",
        "categorical_column dimension combiner initializer ckpt_to_load_from tensor_name_in_ckpt max_norm trainable use_safe_embedding_lookup",
        defaults=(True,),
    ),
):
    """A trained vector for each category. The vectors of an example are combined."""

    __slots__ = ()

    _suffix = "_embedding"
    _kind = "embedding_column"

    @property
    def variable_shape(self) -> TensorShape:
        return TensorShape([self.dimension])

    @property
    def _table_shape(self) -> tuple[int, int]:
        return buckets_of(self.categorical_column), self.dimension

    def create_state(self, state_manager: Any) -> None:
        state_manager.create_variable(
            self,
            name=WEIGHTS,
            shape=self._table_shape,
            dtype=dtypes.float32,
            trainable=self.trainable,
            use_resource=True,
            initializer=self.initializer,
        )

    def _table(self, state_manager: Any) -> Any:
        if isinstance(state_manager, InScope):
            table = state_manager.variable(WEIGHTS, self._table_shape, dtypes.float32, self.initializer, self.trainable)
        else:
            table = state_manager.get_variable(self, WEIGHTS)
        return loaded(table, self.ckpt_to_load_from, self.tensor_name_in_ckpt)


@export("feature_column.embedding_column")
def embedding_column(
    categorical_column: Any,
    dimension: int,
    combiner: str = "mean",
    initializer: Any = None,
    ckpt_to_load_from: Any = None,
    tensor_name_in_ckpt: str | None = None,
    max_norm: float | None = None,
    trainable: bool = True,
    use_safe_embedding_lookup: bool = True,
) -> EmbeddingColumn:
    """Creates a dense column with a trained vector for each category.

    Args:
        categorical_column: the column of the categories.
        dimension: the length of the vectors.
        combiner: how to combine the vectors of an example: "mean", "sum" or "sqrtn" (the sum divided by the root of the count).
        initializer: initializes the vectors. By default a truncated normal with standard deviation 1 / sqrt(dimension).
        ckpt_to_load_from: a checkpoint to initialize the vectors from.
        tensor_name_in_ckpt: the name of the vectors in that checkpoint.
        max_norm: vectors with a larger norm are scaled down to it before they are combined.
        trainable: whether optimizers update the vectors.
        use_safe_embedding_lookup: lets TensorFlow skip its handling of examples without categories. It has no effect here.

    Raises:
        ValueError: the dimension is below one, only one of the two checkpoint arguments is given, or the initializer cannot be called.
    """
    what = f"Embedding of column_name: {getattr(categorical_column, 'name', categorical_column)}"
    initializer = checked_embedding(dimension, initializer, ckpt_to_load_from, tensor_name_in_ckpt, what)
    return EmbeddingColumn(
        categorical_column, dimension, combiner, initializer, ckpt_to_load_from, tensor_name_in_ckpt, max_norm, trainable,
        use_safe_embedding_lookup,
    )  # fmt: skip


# ---- indicators -------------------------------------------------------------------------------------------------


class IndicatorColumn(
    OfOneColumn,
    DenseColumn,
    SequenceDenseColumn,
    _DenseColumn,
    _SequenceDenseColumn,
    namedtuple("IndicatorColumn", "categorical_column"),
):
    """The number of occurrences of each category in an example, or the sum of their weights."""

    __slots__ = ()

    _suffix = "_indicator"

    @property
    def variable_shape(self) -> TensorShape:
        return TensorShape([1, buckets_of(self.categorical_column)])

    def transform_feature(self, transformation_cache: Any, state_manager: Any) -> Any:
        ids, weights = sparse_tensors(self.categorical_column, transformation_cache, state_manager)
        in_range = getattr(self.categorical_column, "_in_range", False)
        return counted(ids, weights, buckets_of(self.categorical_column), in_range)

    def get_dense_tensor(self, transformation_cache: Any, state_manager: Any) -> Any:
        sequences.refuse_sequence(self, "indicator_column")
        return transformation_cache.get(self, state_manager)

    def get_sequence_dense_tensor(self, transformation_cache: Any, state_manager: Any) -> TensorSequenceLengthPair:
        sequences.require_sequence(self, "indicator_column")
        dense = transformation_cache.get(self, state_manager)
        ids, _ = sparse_tensors(self.categorical_column, transformation_cache, state_manager)
        return TensorSequenceLengthPair(dense, sequences.lengths(ids))


def counted(ids: SparseTensor, weights: SparseTensor | None, depth: int, in_range: bool) -> Any:
    """Sums the weights of each id (or counts it) along the last dimension of a SparseTensor. The result is [..., depth]."""
    if weights is not None:
        weights = matching(ids, weights)
    if not in_range or weights is not None:
        keep = comparison.logical_and(comparison.greater_equal(ids.values, 0), comparison.less(ids.values, depth))
        weights = None if weights is None else sparse_functions.retain(weights, keep)
        ids = sparse_functions.retain(ids, keep)
    rank = ids.static_shape.rank
    values = shaping.expand_dims(ids.values, -1)
    places = joining.concat([ids.indices[:, :-1], values], 1)
    shape = joining.concat([ids.dense_shape[:-1], convert_to_tensor([depth], dtypes.int64)], 0)
    amounts = (
        shaping.ones(shaping.shape(ids.values), dtypes.float32)
        if weights is None
        else casting.cast(weights.values, dtypes.float32)
    )
    dense = scattering.scatter_nd(places, amounts, shape)
    if rank is not None and not getattr(dense, "is_eager", False):
        dense.set_shape([*ids.static_shape[:-1], depth])
    return dense


@export("feature_column.indicator_column")
def indicator_column(categorical_column: Any) -> IndicatorColumn:
    """Creates a dense column that counts each category, or sums its weights.

    Raises:
        ValueError: `categorical_column` is not a categorical column.
    """
    if not isinstance(categorical_column, (CategoricalColumn, _CategoricalColumn)):
        raise ValueError(f"Unsupported input type. Input must be a CategoricalColumn. Given: {categorical_column}")
    return IndicatorColumn(categorical_column)
