"""`tf.feature_column.input_layer`, which concatenates dense columns."""

from __future__ import annotations

from typing import Any

import numpy as np

from stoker._src.base.export import export
from stoker._src.feature_column.base import InScope, _DenseColumn, sorted_columns
from stoker._src.feature_column.protocol import dense_tensor, shape_of
from stoker._src.feature_column.transformation import FeatureTransformationCache
from stoker._src.graph import context
from stoker._src.graph.keys import GraphKeys
from stoker._src.ops.array import joining, shaping
from stoker._src.ops.variables import variable_scope


def check_features(features: Any) -> None:
    """Raises ValueError if the features are not a dictionary."""
    if not isinstance(features, dict):
        raise ValueError(f"We expected a dictionary here. Instead we got: {features}")


def as_matrix(tensor: Any, column: Any) -> Any:
    """Flattens the values of each example. The result is [batch, width]."""
    width = int(np.prod([int(size) for size in shape_of(column)], dtype=np.int64))
    known = tensor.static_shape
    if known.rank == 2 and known[1] == width:
        return tensor
    return shaping.reshape(tensor, [-1 if known.rank is None or known[0] is None else known[0], width])


def check_batches(tensors: list[Any], columns: list[Any]) -> None:
    """Raises ValueError if two columns are known to have different batch sizes."""
    first: int | None = None
    for position, tensor in enumerate(tensors):
        size = tensor.static_shape[0] if tensor.static_shape.rank else None
        if size is None:
            continue
        if first is None:
            first, owner = size, columns[position]
        elif size != first:
            raise ValueError(
                f"Batch size (first dimension) of each feature must be same. Batch size of columns ({owner.name}, "
                f"{columns[position].name}): ({first}, {size})"
            )


@export(v1="feature_column.input_layer")
def input_layer(
    features: Any,
    feature_columns: Any,
    weight_collections: Any = None,
    trainable: bool = True,
    cols_to_vars: Any = None,
    cols_to_output_tensors: Any = None,
) -> Any:
    """Concatenates dense columns in the order of their names. The result is float32 [batch, total width].

    Args:
        features: tensors by name. Categories are usually SparseTensors.
        feature_columns: dense columns. Categorical columns must be wrapped in an embedding or indicator column.
        weight_collections: collections to add variables to, in addition to GLOBAL_VARIABLES and MODEL_VARIABLES.
        trainable: whether to add variables to TRAINABLE_VARIABLES.
        cols_to_vars: a dictionary that receives the list of variables of each column. A shared table belongs to the first of its columns.
        cols_to_output_tensors: a dictionary that receives the matrix of each column.

    Raises:
        ValueError: a column is not dense, two columns have the same name, or a feature is missing.
    """
    check_features(features)
    columns = sorted_columns(feature_columns)
    for column in columns:
        if not isinstance(column, _DenseColumn):
            raise ValueError(
                "Items of feature_columns must be a _DenseColumn. You can wrap a categorical column with an embedding_column or "
                f"indicator_column. Given: {column}"
            )
    cache = FeatureTransformationCache(features)
    state = InScope(weight_collections, trainable)
    matrices = []
    with variable_scope.variable_scope(None, default_name="input_layer", values=_tensors(features)):
        for column in columns:
            with variable_scope.variable_scope(None, default_name=column._var_scope_name):
                before = _variables()
                matrix = as_matrix(dense_tensor(column, cache, state), column)
                matrices.append(matrix)
                if cols_to_vars is not None:
                    cols_to_vars[column] = _made_since(before)
                if cols_to_output_tensors is not None:
                    cols_to_output_tensors[column] = matrix
        check_batches(matrices, columns)
        return joining.concat(matrices, 1)


def _tensors(features: Any) -> list[Any]:
    return [value for value in features.values() if hasattr(value, "graph")] if not context.executing_eagerly() else []


def _variables() -> list[Any]:
    scope = variable_scope.get_variable_scope().name
    return context.get_default_graph().get_collection(GraphKeys.GLOBAL_VARIABLES, scope and f"{scope}/")


def _made_since(before: list[Any]) -> list[Any]:
    known = set(map(id, before))
    return [each for each in _variables() if id(each) not in known]
