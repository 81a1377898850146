"""Embeddings that share a table: `shared_embedding_columns` (1.x) and `shared_embeddings` (2.x)."""

from __future__ import annotations

import weakref
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
    _CategoricalColumn,
    _DenseColumn,
    _SequenceDenseColumn,
)
from stoker._src.feature_column.combined import WeightedCategoricalColumn
from stoker._src.feature_column.embedding import WEIGHTS, OfTable, checked_embedding, loaded
from stoker._src.feature_column.protocol import buckets_of
from stoker._src.graph import context
from stoker._src.graph.scopes import init_scope, name_scope
from stoker._src.graph.trackable import Trackable
from stoker._src.ops.variables.variables import Variable


class _Shared(OfTable):
    """A column that shares its table with other columns."""

    _suffix = "_shared_embedding"
    _kind = "shared_embedding_column"

    def get_dense_tensor(self, transformation_cache: Any, state_manager: Any) -> Any:
        with name_scope(self.name):
            return super().get_dense_tensor(transformation_cache, state_manager)

    def get_config(self) -> dict[str, Any]:
        raise NotImplementedError(
            f"{type(self).__name__}.get_config: the columns that share a table are made together."
        )


# ---- 1.x --------------------------------------------------------------------------------------------------------


class _SharedEmbeddingColumn(
    _Shared,
    _DenseColumn,
    _SequenceDenseColumn,
    namedtuple(
        "_SharedEmbeddingColumn",
        "categorical_column dimension combiner initializer shared_embedding_collection_name ckpt_to_load_from "
        "tensor_name_in_ckpt max_norm trainable use_safe_embedding_lookup",
        defaults=(True,),
    ),
):
    """A column of `shared_embedding_columns`. The table is found in a graph collection."""

    __slots__ = ()

    _is_v2_column = False

    @property
    def _var_scope_name(self) -> str:
        return self.shared_embedding_collection_name

    @property
    def variable_shape(self) -> TensorShape:
        return TensorShape([self.dimension])

    def _table(self, state_manager: Any) -> Any:
        shape = buckets_of(self.categorical_column), self.dimension
        graph = context.get_default_graph()
        found = graph.get_collection(self.shared_embedding_collection_name)
        if len(found) > 1:
            raise ValueError(
                f"Collection {found} can only contain one variable. Suggested fix A: Choose a unique name for this "
                "collection. Suggested fix B: Do not add any variables to this collection. The feature_column library already "
                "adds a variable under the hood."
            )
        if found:
            if not TensorShape(shape).is_compatible_with(found[0].get_shape()):
                raise ValueError(
                    f"Shared embedding collection {self.shared_embedding_collection_name} contains variable "
                    f"{found[0].name} of unexpected shape {found[0].get_shape()}. Expected shape is {shape}. Suggested fix A: "
                    "Choose a unique name for this collection. Suggested fix B: Do not add any variables to this collection. "
                    "The feature_column library already adds a variable under the hood."
                )
            return found[0]
        state = state_manager if isinstance(state_manager, InScope) else InScope()
        table = state.variable(WEIGHTS, shape, dtypes.float32, self.initializer, self.trainable)
        graph.add_to_collection(self.shared_embedding_collection_name, table)
        return loaded(table, self.ckpt_to_load_from, self.tensor_name_in_ckpt)


def _checked(
    columns: Any, name: Any, dimension: Any, initializer: Any, ckpt_to_load_from: Any, tensor_name_in_ckpt: Any
) -> tuple[str, int, Any]:
    """The name of the table, the number of its rows and its initializer.

    Raises:
        ValueError: The columns are of different kinds or have different numbers of categories, or `embedding_column` refuses
            the arguments.
        RuntimeError: Eager execution is enabled.
    """
    if context.executing_eagerly():
        raise RuntimeError("shared_embedding_columns are not supported when eager execution is enabled.")
    initializer = checked_embedding(dimension, initializer, ckpt_to_load_from, tensor_name_in_ckpt, "")
    ordered = sorted(columns, key=lambda column: column.name)
    first = _inner(ordered[0])
    if not isinstance(first, (CategoricalColumn, _CategoricalColumn)):
        raise ValueError(f"All categorical_columns must be categorical columns. Given: {ordered[0]}")
    for column in ordered[1:]:
        other = _inner(column)
        if not isinstance(other, type(first)):
            raise ValueError(
                "To use shared_embedding_column, all categorical_columns must have the same type, or be weighted_categorical_column "
                f"or sequence column of the same type. Given column: {first} of type: {type(first)} does not match given column: "
                f"{other} of type: {type(other)}"
            )
        if buckets_of(other) != buckets_of(ordered[0]):
            raise ValueError(
                "To use shared_embedding_column, all categorical_columns must have the same number of buckets. "
                f"{ordered[0]} has {buckets_of(ordered[0])} buckets. Given column: {column} has {buckets_of(column)} buckets."
            )
    name = name or "_".join(column.name for column in ordered) + "_shared_embedding"
    return name, buckets_of(ordered[0]), initializer


def _inner(column: Any) -> Any:
    if isinstance(column, (WeightedCategoricalColumn, sequences.SequenceCategoricalColumn)):
        return _inner(column.categorical_column)
    return column


@export(v1="feature_column.shared_embedding_columns")
def shared_embedding_columns(
    categorical_columns: Any,
    dimension: int,
    combiner: str = "mean",
    initializer: Any = None,
    shared_embedding_collection_name: str | None = None,
    ckpt_to_load_from: Any = None,
    tensor_name_in_ckpt: str | None = None,
    max_norm: float | None = None,
    trainable: bool = True,
    use_safe_embedding_lookup: bool = True,
) -> list[_SharedEmbeddingColumn]:
    """Creates a dense column for each categorical column. All of them share one table of vectors.

    Args:
        categorical_columns: columns of the same type and number of categories. They may be wrapped in weighted or sequence columns.
        shared_embedding_collection_name: the name of the collection that holds the table, and of its variable scope.
        dimension, combiner, initializer, ckpt_to_load_from, tensor_name_in_ckpt, max_norm, trainable, use_safe_embedding_lookup:
            see `embedding_column`.

    Raises:
        ValueError: the columns cannot share a table, or `embedding_column` refuses the arguments.
        RuntimeError: eager mode is enabled.
    """
    name, _, initializer = _checked(
        categorical_columns, shared_embedding_collection_name, dimension, initializer, ckpt_to_load_from, tensor_name_in_ckpt
    )  # fmt: skip
    return [
        _SharedEmbeddingColumn(
            column,
            dimension,
            combiner,
            initializer,
            name,
            ckpt_to_load_from,
            tensor_name_in_ckpt,
            max_norm,
            trainable,
            use_safe_embedding_lookup,
        )
        for column in categorical_columns
    ]


# ---- 2.x --------------------------------------------------------------------------------------------------------


class SharedEmbeddingColumnCreator(Trackable):
    """Creates the table of `shared_embeddings`, once per graph."""

    def __init__(
        self,
        dimension: int,
        initializer: Any,
        ckpt_to_load_from: Any,
        tensor_name_in_ckpt: Any,
        num_buckets: int,
        trainable: bool,
        name: str = "shared_embedding_column_creator",
        use_safe_embedding_lookup: bool = True,
    ) -> None:
        self._dimension, self._initializer, self._num_buckets = dimension, initializer, num_buckets
        self._ckpt_to_load_from, self._tensor_name_in_ckpt = ckpt_to_load_from, tensor_name_in_ckpt
        self._trainable, self._name, self._use_safe_embedding_lookup = trainable, name, use_safe_embedding_lookup
        self._tables: Any = weakref.WeakKeyDictionary()

    def __call__(self, categorical_column: Any, combiner: str, max_norm: Any) -> SharedEmbeddingColumn:
        return SharedEmbeddingColumn(categorical_column, self, combiner, max_norm, self._use_safe_embedding_lookup)

    @property
    def embedding_weights(self) -> Any:
        """The table. It is created on first use."""
        with init_scope():
            graph = context.get_default_graph()
            table = self._tables.get(graph)
            if table is None:
                shape = self._num_buckets, self._dimension
                with name_scope(""):
                    table = Variable(
                        lambda: self._initializer(shape, dtypes.float32),
                        name=self._name,
                        trainable=self._trainable,
                        dtype=dtypes.float32,
                    )
                self._tables[graph] = table
                self._track_trackable(table, WEIGHTS, overwrite=True)
                loaded(table, self._ckpt_to_load_from, self._tensor_name_in_ckpt)
            return table

    @property
    def dimension(self) -> int:
        return self._dimension


class SharedEmbeddingColumn(
    _Shared,
    DenseColumn,
    SequenceDenseColumn,
    _DenseColumn,
    _SequenceDenseColumn,
    namedtuple(
        "SharedEmbeddingColumn",
        "categorical_column shared_embedding_column_creator combiner max_norm use_safe_embedding_lookup",
        defaults=(True,),
    ),
):
    """A column of `shared_embeddings`."""

    __slots__ = ()

    @property
    def variable_shape(self) -> TensorShape:
        return TensorShape([self.shared_embedding_column_creator.dimension])

    def _table(self, state_manager: Any) -> Any:
        if isinstance(state_manager, InScope):
            raise ValueError(
                "SharedEmbeddingColumns are not supported in `linear_model` or `input_layer`. Please use `DenseFeatures` or "
                "`LinearModel` instead."
            )
        return self.shared_embedding_column_creator.embedding_weights

    def create_state(self, state_manager: Any) -> None:
        self._table(state_manager)


@export(v2="feature_column.shared_embeddings")
def shared_embeddings(
    categorical_columns: Any,
    dimension: int,
    combiner: str = "mean",
    initializer: Any = None,
    shared_embedding_collection_name: str | None = None,
    ckpt_to_load_from: Any = None,
    tensor_name_in_ckpt: str | None = None,
    max_norm: float | None = None,
    trainable: bool = True,
    use_safe_embedding_lookup: bool = True,
) -> list[SharedEmbeddingColumn]:
    """Creates a dense column for each categorical column, for `DenseFeatures`. All of them share one table of vectors.

    Args: the arguments of `embedding_column`, and `shared_embedding_collection_name`, the name of the table's variable.

    Raises:
        ValueError: the columns cannot share a table, or `embedding_column` refuses the arguments.
        RuntimeError: eager mode is enabled.
    """
    name, buckets, initializer = _checked(
        categorical_columns, shared_embedding_collection_name, dimension, initializer, ckpt_to_load_from, tensor_name_in_ckpt
    )  # fmt: skip
    make = SharedEmbeddingColumnCreator(
        dimension, initializer, ckpt_to_load_from, tensor_name_in_ckpt, buckets, trainable, name, use_safe_embedding_lookup
    )  # fmt: skip
    return [make(column, combiner, max_norm) for column in categorical_columns]
