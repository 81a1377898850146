"""A cache of features and of the tensors that columns compute from them. A layer computes each tensor once."""

from __future__ import annotations

from typing import Any

from stoker._src.base import dtypes
from stoker._src.base.export import export
from stoker._src.feature_column.base import FeatureColumn, _FeatureColumn
from stoker._src.graph.conversion import convert_to_tensor
from stoker._src.graph.sparse_tensor import SparseTensor, is_sparse
from stoker._src.ops.array import gathering, ranges, selection, shaping
from stoker._src.ops.control_flow import branches_and_loops
from stoker._src.ops.math import comparison
from stoker._src.ops.ragged.ragged_tensor import RaggedTensor
from stoker._src.ops.sparse import sparse_functions


@export(v2="__internal__.feature_column.FeatureTransformationCache")
class FeatureTransformationCache:
    """Holds features by name and the tensors that columns compute from them.

    Args:
        features: tensors by name, of rank 1 or more. Tensors of rank 1 get a second dimension.
    """

    def __init__(self, features: Any) -> None:
        self._features = dict(features)
        self._made: dict[Any, Any] = {}

    def get(self, key: Any, state_manager: Any = None, training: Any = None) -> Any:
        """Returns the feature of a name, or the tensor that a column computes.

        Raises:
            ValueError: the name is not among the features, or the column returns nothing.
            TypeError: the key is neither a name nor a column.
        """
        if key in self._made:
            return self._made[key]
        if isinstance(key, str):
            made = self._raw(key)
        elif isinstance(key, FeatureColumn):
            made = key.transform_feature(self, state_manager)
        elif isinstance(key, _FeatureColumn):
            made = key._transform_feature(self)
        else:
            raise TypeError(f'"key" must be either a "str" or "FeatureColumn". Provided: {key}')
        if made is None:
            raise ValueError(f"Column {getattr(key, 'name', key)} is not supported.")
        self._made[key] = made
        return made

    def _raw(self, key: str) -> Any:
        if key not in self._features:
            raise ValueError(f"Feature {key} is not in features dictionary.")
        feature = self._features[key]
        if isinstance(feature, RaggedTensor):
            raise TypeError(
                f"Failed to convert elements of {feature} to Tensor. Feature columns take dense and sparse features. key: {key}. Call "
                "to_sparse() or to_tensor()."
            )
        if is_sparse(feature):
            sparse = sparse_functions.as_sparse(feature)
            return sparse if sparse.static_shape.rank != 1 else sparse_functions.reshape(sparse, [-1, 1])
        tensor = convert_to_tensor(feature)
        rank = tensor.static_shape.rank
        if rank == 0:
            raise ValueError(f"Feature (key: {key}) cannot have rank 0. Given: {tensor}")
        if rank == 1:
            return shaping.expand_dims(tensor, -1)
        if rank is None:
            return branches_and_loops.cond(
                comparison.equal(1, ranges.rank(tensor)), lambda: shaping.expand_dims(tensor, -1), lambda: tensor
            )
        return tensor


def as_ids(tensor: Any) -> SparseTensor:
    """Returns a feature of categories as a SparseTensor. In a dense feature, -1 and the empty string stand for missing values."""
    if is_sparse(tensor):
        return sparse_functions.as_sparse(tensor)
    tensor = convert_to_tensor(tensor)
    kind = tensor.dtype.base_dtype
    nothing: Any = "" if kind is dtypes.string else -1 if kind.is_integer else 0
    indices = selection.where(comparison.not_equal(tensor, convert_to_tensor(nothing, kind)))
    made = SparseTensor(indices, gathering.gather_nd(tensor, indices), shaping.shape(tensor, out_type=dtypes.int64))
    made._spelled = tensor.static_shape if tensor.static_shape.rank is not None else None
    return made
