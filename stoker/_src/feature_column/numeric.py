"""Numbers: `numeric_column` and `bucketized_column`."""

from __future__ import annotations

import itertools
from collections import namedtuple
from collections.abc import Iterable
from typing import Any

import numpy as np

from stoker._src.base import dtypes
from stoker._src.base.dtypes import as_dtype
from stoker._src.base.export import export
from stoker._src.base.shapes import TensorShape
from stoker._src.feature_column.base import (
    Both,
    CategoricalColumn,
    DenseColumn,
    IdWeightPair,
    _CategoricalColumn,
    _DenseColumn,
)
from stoker._src.graph.sparse_tensor import SparseTensor, is_sparse
from stoker._src.ops.array import casting, joining, ranges, selection, shaping
from stoker._src.ops.math import arithmetic, counting
from stoker._src.ops.ragged.feature_specs import FixedLenFeature


def check_key(key: Any) -> None:
    """Raises ValueError if the key is not a string."""
    if not isinstance(key, str):
        raise ValueError(f"key must be a string. Got: type {type(key)} of key {key}.")


def checked_numbers(key: Any, shape: Any, dtype: Any) -> tuple[tuple[int, ...], dtypes.DType]:
    """The shape and dtype of a column of numbers.

    Raises:
        TypeError: A dimension is not an integer.
        ValueError: A dimension is not positive, the key is not a string, or the dtype is neither integer nor floating point.
    """
    sizes = checked_shape(shape, key)
    check_key(key)
    kind = as_dtype(dtype)
    if not (kind.is_integer or kind.is_floating):
        raise ValueError(f"dtype must be convertible to float. dtype: {kind!r}, key: {key}")
    return sizes, kind


def check_normalizer(normalizer_fn: Any) -> None:
    """Raises TypeError if a normalizer cannot be called."""
    if normalizer_fn is not None and not callable(normalizer_fn):
        raise TypeError(f"normalizer_fn must be a callable. Given: {normalizer_fn}")


class NumericColumn(
    Both, DenseColumn, _DenseColumn, namedtuple("NumericColumn", "key shape default_value dtype normalizer_fn")
):
    """Numbers, optionally transformed by `normalizer_fn`."""

    __slots__ = ()

    @property
    def name(self) -> str:
        return self.key

    @property
    def parse_example_spec(self) -> dict[str, Any]:
        return {self.key: FixedLenFeature(self.shape, self.dtype, self.default_value)}

    def transform_feature(self, transformation_cache: Any, state_manager: Any) -> Any:
        tensor = transformation_cache.get(self.key, state_manager)
        if is_sparse(tensor):
            raise ValueError(
                "The corresponding Tensor of numerical column must be a Tensor. SparseTensor is not supported. key: "
                f"{self.key}, given: {type(tensor).__name__}"
            )
        if self.normalizer_fn is not None:
            tensor = self.normalizer_fn(tensor)
        return casting.cast(tensor, dtypes.float32)

    @property
    def variable_shape(self) -> TensorShape:
        return TensorShape(self.shape)

    def get_dense_tensor(self, transformation_cache: Any, state_manager: Any) -> Any:
        return transformation_cache.get(self, state_manager)

    @property
    def parents(self) -> list[Any]:
        return [self.key]


def checked_shape(shape: Any, key: str) -> tuple[int, ...]:
    """Returns a shape as a tuple of positive integers.

    Raises:
        TypeError: a dimension is not an integer.
        ValueError: a dimension is not positive.
    """
    sizes = tuple(shape) if isinstance(shape, Iterable) else (shape,)
    for size in sizes:
        if isinstance(size, bool) or not isinstance(size, (int, np.integer)):
            raise TypeError(f"shape dimensions must be integer. shape: {shape}, key: {key}")
        if size < 1:
            raise ValueError(f"shape dimensions must be greater than 0. shape: {shape}, key: {key}")
    return tuple(int(size) for size in sizes)


def _checked_default(default: Any, shape: tuple[int, ...], dtype: Any, key: str) -> Any:
    """Returns a default value as nested tuples of `shape`. A single number is repeated.

    Raises:
        TypeError: the default has another shape or another kind of number.
    """
    if default is None:
        return None
    found = np.asarray(default)
    whole = found.dtype.kind in "iu" and not isinstance(default, bool)
    fits = whole or (found.dtype.kind == "f" and (dtype.is_floating or bool((found == np.floor(found)).all())))
    if found.dtype.kind == "b" or not fits:
        raise TypeError(
            f"The value of default_value must be compatible with dtype. default_value: {default}, dtype: {dtype!r}, column_name: {key}"
        )
    if found.ndim == 0:
        if not shape:
            return found.astype(dtype.as_numpy_dtype).item()
        found = np.broadcast_to(found, shape)
    elif found.shape != shape:
        raise ValueError(
            f"The shape of default_value must be equal to given shape. default_value: {default}, shape: {shape}, column_name: {key}"
        )
    return _as_tuples(found.astype(dtype.as_numpy_dtype).tolist())


def _as_tuples(value: Any) -> Any:
    return tuple(map(_as_tuples, value)) if isinstance(value, list) else value


@export("feature_column.numeric_column")
def numeric_column(
    key: str,
    shape: Any = (1,),
    default_value: Any = None,
    dtype: Any = dtypes.float32,
    normalizer_fn: Any = None,
) -> NumericColumn:
    """Creates a column of numbers.

    Args:
        key: the name of the feature, and of the column.
        shape: the shape of the values of one example. An integer stands for one dimension.
        default_value: replaces a missing feature when Examples are parsed: a number, or numbers of that shape.
        dtype: the dtype of the parsed numbers.
        normalizer_fn: a function that is applied to the tensor after parsing.

    Raises:
        TypeError: a dimension is not an integer, or the default value does not fit.
        ValueError: a dimension is not positive, or the dtype is neither integer nor floating point.
    """
    sizes, kind = checked_numbers(key, shape, dtype)
    default = _checked_default(default_value, sizes, kind, key)
    check_normalizer(normalizer_fn)
    return NumericColumn(key, sizes, default, kind, normalizer_fn)


# ---- buckets ----------------------------------------------------------------------------------------------------


class BucketizedColumn(
    Both,
    DenseColumn,
    CategoricalColumn,
    _DenseColumn,
    _CategoricalColumn,
    namedtuple("BucketizedColumn", "source_column boundaries"),
):
    """The intervals between boundaries that numbers fall into."""

    __slots__ = ()
    _in_range = True

    @property
    def name(self) -> str:
        return f"{self.source_column.name}_bucketized"

    @property
    def parse_example_spec(self) -> dict[str, Any]:
        return self.source_column.parse_example_spec

    def transform_feature(self, transformation_cache: Any, state_manager: Any) -> Any:
        return counting.BUCKETIZE(
            transformation_cache.get(self.source_column, state_manager), boundaries=list(self.boundaries)
        )

    @property
    def variable_shape(self) -> TensorShape:
        return TensorShape((*self.source_column.shape, len(self.boundaries) + 1))

    def get_dense_tensor(self, transformation_cache: Any, state_manager: Any) -> Any:
        return selection.one_hot(
            transformation_cache.get(self, state_manager), len(self.boundaries) + 1, 1.0, 0.0, dtype=dtypes.float32
        )

    @property
    def num_buckets(self) -> int:
        return (len(self.boundaries) + 1) * self.source_column.shape[0]

    def get_sparse_tensors(self, transformation_cache: Any, state_manager: Any) -> IdWeightPair:
        """Bucket b of element i of the source has the id i * buckets + b, so elements do not share weights."""
        buckets = transformation_cache.get(self, state_manager)
        if buckets.static_shape.rank not in (2, None):
            raise ValueError(
                f"Dimensions must be equal: a feature with shape {buckets.shape} has no single row of numbers for each example. "
                f"column: {self.name}"
            )
        width = self.source_column.shape[0]
        rows = shaping.shape(buckets)[0]
        if buckets.static_shape.rank is None or buckets.static_shape[1] is None:
            buckets = shaping.reshape(buckets, [rows, width])
        elif buckets.static_shape[1] != width:
            raise ValueError(
                f"Dimensions must be equal: a feature with shape {buckets.shape} does not have {width} numbers for each example. "
                f"column: {self.name}"
            )
        known = buckets.static_shape[0]
        if known is not None:
            places = np.indices((known, width)).reshape(2, -1).T
            indices: Any = np.ascontiguousarray(places, dtype=np.int64)
            shape: Any = np.array([known, width], np.int64)
        else:
            total = arithmetic.multiply(rows, width)
            flat = ranges.range(total)
            indices = joining.PACK([arithmetic.floordiv(flat, width), arithmetic.floormod(flat, width)], axis=1)
            indices = casting.cast(indices, dtypes.int64)
            shape = casting.cast(joining.PACK([rows, width]), dtypes.int64)
        if width > 1:
            offsets = np.arange(width, dtype=np.int32) * (len(self.boundaries) + 1)
            buckets = arithmetic.add(buckets, offsets)
        ids = casting.cast(shaping.reshape(buckets, [-1]), dtypes.int64)
        made = SparseTensor(indices, ids, shape)
        return IdWeightPair(made, None)

    @property
    def parents(self) -> list[Any]:
        return [self.source_column]


@export("feature_column.bucketized_column")
def bucketized_column(source_column: Any, boundaries: Any) -> BucketizedColumn:
    """Creates a column of the intervals that numbers fall into. n boundaries make n + 1 intervals; each includes its lower boundary.

    Raises:
        ValueError: the source is not a numeric column with one dimension, or the boundaries are not a sorted list.
    """
    if not isinstance(source_column, NumericColumn):
        raise ValueError(f"source_column must be a column generated with numeric_column(). Given: {source_column}")
    if len(source_column.shape) > 1:
        raise ValueError(f"source_column must be one-dimensional column. Given: {source_column}")
    if not boundaries:
        raise ValueError("boundaries must not be empty.")
    if not isinstance(boundaries, (list, tuple)):
        raise ValueError("boundaries must be a sorted list.")
    for low, high in itertools.pairwise(boundaries):
        if low >= high:
            raise ValueError("boundaries must be a sorted list.")
    return BucketizedColumn(source_column, tuple(boundaries))
