"""`tf.feature_column.linear_model`, a linear model with a weight for each category and number."""

from __future__ import annotations

from typing import Any

import numpy as np

from stoker._src.base import dtypes
from stoker._src.base.export import export
from stoker._src.feature_column.base import InScope, _CategoricalColumn, _DenseColumn, sorted_columns
from stoker._src.feature_column.input_layer import as_matrix, check_batches, check_features
from stoker._src.feature_column.lookups import combined_rows
from stoker._src.feature_column.protocol import buckets_of, dense_tensor, shape_of
from stoker._src.feature_column.transformation import FeatureTransformationCache
from stoker._src.graph import context
from stoker._src.graph.keys import GraphKeys
from stoker._src.graph.scopes import name_scope
from stoker._src.ops.linalg import matrix_products
from stoker._src.ops.math import arithmetic
from stoker._src.ops.nn import bias as bias_ops
from stoker._src.ops.variables import initializers, variable_scope
from stoker._src.ops.variables.partitioned import PartitionedVariable


@export(v1="feature_column.linear_model")
def linear_model(
    features: Any,
    feature_columns: Any,
    units: int = 1,
    sparse_combiner: str = "sum",
    weight_collections: Any = None,
    trainable: bool = True,
    cols_to_vars: Any = None,
) -> Any:
    """Returns a linear prediction [batch, units]: the sum of the contributions of all columns and a bias.

    A categorical column contributes the combined weights of its ids, a dense column the product of its values and a matrix.

    Args:
        features: tensors by name. Categories are usually SparseTensors.
        feature_columns: dense and categorical columns.
        units: the number of predictions per example.
        sparse_combiner: how to combine the weights of an example's ids: "sum", "mean" or "sqrtn".
        weight_collections: collections to add variables to, in addition to GLOBAL_VARIABLES and MODEL_VARIABLES.
        trainable: whether to add variables to TRAINABLE_VARIABLES.
        cols_to_vars: a dictionary that receives the list of variables of each column, and of "bias".

    Raises:
        ValueError: a column is neither dense nor categorical, two columns have the same name, or a feature is missing.
    """
    check_features(features)
    columns = sorted_columns(feature_columns)
    for column in columns:
        if not isinstance(column, (_DenseColumn, _CategoricalColumn)):
            raise ValueError(
                f"Items of feature_columns must be either a _DenseColumn or _CategoricalColumn. Given: {column}"
            )
    with variable_scope.variable_scope(None, default_name="linear_model") as scope:
        pass
    above = variable_scope.get_variable_scope().name
    model = scope.name.removeprefix(f"{above}/") if above else scope.name
    names = [_free_name(column._var_scope_name) for column in columns]
    cache = FeatureTransformationCache(features)
    state = InScope(weight_collections, trainable)
    sums = []
    zeros = initializers.Zeros()
    with variable_scope.variable_scope(scope, auxiliary_name_scope=False), name_scope(model), name_scope(model):
        for column, name in zip(columns, names):
            with variable_scope.variable_scope(name, auxiliary_name_scope=False), name_scope(name):
                if isinstance(column, _CategoricalColumn):
                    weights = state.variable("weights", (buckets_of(column), units), dtypes.float32, zeros)
                    sums.append(
                        combined_rows(weights, column, cache, state, sparse_combiner, None, "weighted_sum", flat=True)
                    )
                else:
                    width = int(np.prod([int(size) for size in shape_of(column)], dtype=np.int64))
                    weights = state.variable("weights", (width, units), dtypes.float32, zeros)
                    matrix = as_matrix(dense_tensor(column, cache, state), column)
                    sums.append(matrix_products.matmul(matrix, weights, name="weighted_sum"))
                if cols_to_vars is not None:
                    cols_to_vars[column] = _parts(weights)
        check_batches(sums, columns)
        total = arithmetic.add_n(sums, name="weighted_sum_no_bias")
        bias = state.variable("bias_weights", (units,), dtypes.float32, zeros)
        if cols_to_vars is not None:
            cols_to_vars["bias"] = _parts(bias)
        context.get_default_graph().get_collection_ref(GraphKeys.UPDATE_OPS)  # creates the collection
        return bias_ops.bias_add(total, bias, name="weighted_sum")


def _free_name(name: str) -> str:
    """Returns a variable scope name that is unused next to the model's scope. Later models get numbered names."""
    above = variable_scope.get_variable_scope().name
    with variable_scope.variable_scope(None, default_name=name) as scope:
        return scope.name.removeprefix(f"{above}/") if above else scope.name


def _parts(weights: Any) -> list[Any]:
    return list(weights) if isinstance(weights, PartitionedVariable) else [weights]
