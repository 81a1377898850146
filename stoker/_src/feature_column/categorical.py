"""Categories by hash, by number and by vocabulary: `categorical_column_with_*`."""

from __future__ import annotations

import itertools
from collections import namedtuple
from typing import Any

import numpy as np

from stoker._src.base import dtypes
from stoker._src.base.dtypes import as_dtype
from stoker._src.base.errors import FailedPreconditionError
from stoker._src.base.export import export
from stoker._src.feature_column.base import Both, CategoricalColumn, IdWeightPair, _CategoricalColumn
from stoker._src.feature_column.numeric import check_key
from stoker._src.feature_column.transformation import as_ids
from stoker._src.formats import gfile, tfrecord
from stoker._src.graph.scopes import control_dependencies
from stoker._src.graph.sparse_tensor import SparseTensor
from stoker._src.ops.array import casting, selection, shaping
from stoker._src.ops.control_flow import assertions
from stoker._src.ops.math import comparison, reductions
from stoker._src.ops.ragged.feature_specs import VarLenFeature
from stoker._src.ops.resources import vocabularies
from stoker._src.ops.strings import numbers, string_ops


class OfKey(Both, CategoricalColumn, _CategoricalColumn):
    """The base class of categorical columns that are derived from a single feature.

    `_ids` gives the SparseTensor of ids. `_in_range` says that all ids are below `num_buckets` and none is negative, so that nobody must look.
    """

    key: str
    _in_range = False

    @property
    def name(self) -> str:
        return self.key

    @property
    def parents(self) -> list[Any]:
        return [self.key]

    @property
    def parse_example_spec(self) -> dict[str, Any]:
        return {self.key: VarLenFeature(self._parsed_dtype)}

    @property
    def _parsed_dtype(self) -> Any:
        return self.dtype  # type: ignore[attr-defined]

    def _ids(self, sparse: SparseTensor, state_manager: Any) -> SparseTensor:
        raise NotImplementedError(type(self).__name__)

    def transform_feature(self, transformation_cache: Any, state_manager: Any) -> SparseTensor:
        return self._transform_input_tensor(as_ids(transformation_cache.get(self.key, state_manager)), state_manager)

    def _transform_input_tensor(self, input_tensor: Any, state_manager: Any = None) -> SparseTensor:
        return self._ids(as_ids(input_tensor), state_manager)

    def get_sparse_tensors(self, transformation_cache: Any, state_manager: Any) -> IdWeightPair:
        return IdWeightPair(transformation_cache.get(self, state_manager), None)


def with_values(sparse: SparseTensor, values: Any) -> SparseTensor:
    """Returns a SparseTensor with the same indices and other values."""
    made = SparseTensor(sparse.indices, values, sparse.dense_shape)
    made._spelled = sparse.static_shape
    return made


def check_kind(name: str, column_dtype: Any, found: Any, label: str = "column and SparseTensors") -> None:
    """Raises ValueError if only one of the two dtypes is an integer."""
    if column_dtype.is_integer != found.is_integer:
        raise ValueError(
            f"{label.capitalize()} dtypes must be compatible. key: {name}, column dtype: {column_dtype!r}, tensor dtype: {found!r}"
        )


def _check_string_or_int(dtype: Any, prefix: str) -> None:
    if dtype is not dtypes.string and not dtype.is_integer:
        raise ValueError(f"{prefix} dtype must be string or integer. dtype: {dtype!r}.")


# ---- by hash ----------------------------------------------------------------------------------------------------


class HashedCategoricalColumn(OfKey, namedtuple("HashedCategoricalColumn", "key hash_bucket_size dtype")):
    """Categories identified by a hash: the FarmHash fingerprint of the string modulo the number of buckets."""

    __slots__ = ()
    _in_range = True

    @property
    def num_buckets(self) -> int:
        return self.hash_bucket_size

    def _ids(self, sparse: SparseTensor, state_manager: Any) -> SparseTensor:
        found = sparse.dtype.base_dtype
        _check_string_or_int(found, f"column_name: {self.key} input_tensor")
        if self.dtype.is_integer != found.is_integer:
            raise ValueError(
                f"Column dtype and SparseTensors dtype must be compatible. key: {self.key}, column dtype: {self.dtype!r}, "
                f"tensor dtype: {found!r}"
            )
        texts = sparse.values if self.dtype is dtypes.string else numbers.as_string(sparse.values)
        hashed = string_ops.string_to_hash_bucket_fast(texts, self.hash_bucket_size, name="lookup")
        return with_values(sparse, hashed)


@export("feature_column.categorical_column_with_hash_bucket")
def categorical_column_with_hash_bucket(
    key: str, hash_bucket_size: int, dtype: Any = dtypes.string
) -> HashedCategoricalColumn:
    """Creates a column whose ids are hashes of strings, or of integers in decimal notation.

    Raises:
        ValueError: no size, fewer than one bucket, a key that is not a string, a dtype that is neither string nor integer.
    """
    if hash_bucket_size is None:
        raise ValueError(f"hash_bucket_size must be set. key: {key}")
    if hash_bucket_size < 1:
        raise ValueError(f"hash_bucket_size must be at least 1. hash_bucket_size: {hash_bucket_size}, key: {key}")
    check_key(key)
    kind = as_dtype(dtype)
    _check_string_or_int(kind, f"column_name: {key}")
    return HashedCategoricalColumn(key, hash_bucket_size, kind)


# ---- by number --------------------------------------------------------------------------------------------------


class IdentityCategoricalColumn(OfKey, namedtuple("IdentityCategoricalColumn", "key number_buckets default_value")):
    """Categories that are given as ids."""

    __slots__ = ()
    _in_range = True  # or an error, which lookups raise by themselves

    @property
    def _parsed_dtype(self) -> Any:
        return dtypes.int64

    @property
    def num_buckets(self) -> int:
        return self.number_buckets

    def _raw(self, sparse: SparseTensor) -> SparseTensor:
        if not sparse.dtype.base_dtype.is_integer:
            raise ValueError(f"Invalid input, not integer. key: {self.key} dtype: {sparse.dtype!r}")
        return with_values(sparse, casting.cast(sparse.values, dtypes.int64))

    def _unchecked(self, transformation_cache: Any, state_manager: Any) -> SparseTensor:
        """The ids without a range check, for lookups that perform the check themselves."""
        if self.default_value is not None:
            return transformation_cache.get(self, state_manager)
        return self._raw(as_ids(transformation_cache.get(self.key, state_manager)))

    def _ids(self, sparse: SparseTensor, state_manager: Any) -> SparseTensor:
        sparse = self._raw(sparse)
        values = sparse.values
        outside = comparison.logical_or(
            comparison.less(values, 0, name="values_below_0"),
            comparison.greater_equal(values, self.number_buckets, name="values_above_num_buckets"),
        )
        if self.default_value is not None:
            default = shaping.ones_like(values) * self.default_value
            return with_values(sparse, selection.SELECT_V2(outside, default, values))
        fine = comparison.logical_not(reductions.reduce_any(outside))
        check = assertions.assert_op(
            fine,
            [f"{self.key}: ids must be in [0, {self.number_buckets}), the number of buckets. Found:", values],
            name="assert_in_buckets",
        )
        if check is None:  # eager: it has been checked
            return sparse
        with control_dependencies([check]):
            return with_values(sparse, shaping.identity(values))


@export("feature_column.categorical_column_with_identity")
def categorical_column_with_identity(
    key: str, num_buckets: int, default_value: int | None = None
) -> IdentityCategoricalColumn:
    """Creates a column of integers that are used as ids.

    Args:
        key: the name of the feature.
        num_buckets: ids must be less than this number.
        default_value: replaces ids that are out of range. Without it, such ids cause an error when the column is evaluated.

    Raises:
        ValueError: fewer than one bucket, or a default that is out of range.
    """
    if num_buckets < 1:
        raise ValueError(f"num_buckets {num_buckets} < 1, column_name {key}")
    if default_value is not None and not 0 <= default_value < num_buckets:
        raise ValueError(f"default_value {default_value} not in range [0, {num_buckets}), column_name {key}")
    check_key(key)
    return IdentityCategoricalColumn(key, num_buckets, default_value)


# ---- by vocabulary ----------------------------------------------------------------------------------------------


class _OfVocabulary(OfKey):
    dtype: Any
    num_oov_buckets: int

    def _table(self) -> Any:
        raise NotImplementedError(type(self).__name__)

    def _table_of(self, words: Any) -> Any:
        """A table from each of these categories to its position."""
        keys = np.array(words, object)
        return vocabularies.index_table_from_tensor(
            keys.astype(np.int64) if self.dtype.is_integer else keys,
            num_oov_buckets=self.num_oov_buckets,
            default_value=self.default_value,  # type: ignore[attr-defined]
            dtype=dtypes.int64 if self.dtype.is_integer else self.dtype,
            name=f"{self.key}_lookup",
        )

    @property
    def _in_range(self) -> bool:
        return bool(self.num_oov_buckets) or 0 <= self.default_value < self.num_buckets  # type: ignore[attr-defined]

    def _ids(self, sparse: SparseTensor, state_manager: Any) -> SparseTensor:
        found = sparse.dtype.base_dtype
        if self.dtype.is_integer != found.is_integer:
            raise ValueError(
                f"Column dtype and SparseTensors dtype must be compatible. key: {self.key}, column dtype: {self.dtype!r}, "
                f"tensor dtype: {found!r}"
            )
        _check_string_or_int(found, f"column_name: {self.key} input_tensor")
        if self.dtype.is_integer:
            sparse = with_values(sparse, casting.cast(sparse.values, dtypes.int64))
        label = f"{self.key}_lookup"
        keeper = state_manager if hasattr(state_manager, "has_resource") else None
        if keeper is not None and keeper.has_resource(self, label):
            table = keeper.get_resource(self, label)
        else:
            table = self._table()
            if keeper is not None:
                keeper.add_resource(self, label, table)
        return with_values(sparse, table.lookup(sparse.values))


class VocabularyFileCategoricalColumn(
    _OfVocabulary,
    namedtuple(
        "VocabularyFileCategoricalColumn",
        "key vocabulary_file vocabulary_size num_oov_buckets dtype default_value file_format",
        defaults=(None,),
    ),
):
    """Categories that are listed in a file."""

    __slots__ = ()

    @property
    def num_buckets(self) -> int:
        return self.vocabulary_size + self.num_oov_buckets

    def _table(self) -> Any:
        if self.file_format == _RECORDS:
            return self._table_of_records()
        return vocabularies.index_table_from_file(
            self.vocabulary_file,
            num_oov_buckets=self.num_oov_buckets,
            vocab_size=self.vocabulary_size,
            default_value=self.default_value,
            key_dtype=dtypes.int64 if self.dtype.is_integer else self.dtype,
            name=f"{self.key}_lookup",
        )

    def _table_of_records(self) -> Any:
        words = _records_of(self.vocabulary_file, self.vocabulary_size)
        if len(words) < self.vocabulary_size:
            raise FailedPreconditionError(
                None,
                None,
                f"{self.vocabulary_file} has {len(words)} records, fewer than vocabulary_size {self.vocabulary_size}.",
            )
        return self._table_of(words)


class VocabularyListCategoricalColumn(
    _OfVocabulary,
    namedtuple("VocabularyListCategoricalColumn", "key vocabulary_list dtype default_value num_oov_buckets"),
):
    """Categories that are given as a list."""

    __slots__ = ()

    @property
    def num_buckets(self) -> int:
        return len(self.vocabulary_list) + self.num_oov_buckets

    def _table(self) -> Any:
        return self._table_of(self.vocabulary_list)


_RECORDS = "tfrecord_gzip"


def _records_of(path: str, most: int | None = None) -> list[bytes]:
    """The records of a compressed TFRecord file, at most `most` of them."""
    return list(itertools.islice(tfrecord.tf_record_iterator(path, "GZIP"), most))


def _lines_of(path: str, file_format: str | None) -> int:
    if file_format == _RECORDS:
        return len(_records_of(path))
    with gfile.GFile(path, "rb") as stream:
        return sum(1 for _ in stream)


def _from_file(
    key: Any,
    vocabulary_file: Any,
    vocabulary_size: Any,
    num_oov_buckets: Any,
    default_value: Any,
    dtype: Any,
    file_format: Any,
) -> VocabularyFileCategoricalColumn:
    if not vocabulary_file:
        raise ValueError(f"Missing vocabulary_file in {key}.")
    if file_format is None and isinstance(vocabulary_file, str) and vocabulary_file.endswith("tfrecord.gz"):
        file_format = _RECORDS
    if vocabulary_size is None:
        if not gfile.exists(vocabulary_file):
            raise ValueError(f"vocabulary_file in {key} does not exist: {vocabulary_file}")
        vocabulary_size = _lines_of(vocabulary_file, file_format)
    if vocabulary_size < 1:
        raise ValueError(f"Invalid vocabulary_size in {key}: {vocabulary_size}.")
    _check_oov(key, num_oov_buckets, default_value is not None, default_value)
    kind = as_dtype(dtype)
    _check_string_or_int(kind, f"column_name: {key} vocabulary")
    check_key(key)
    return VocabularyFileCategoricalColumn(
        key,
        vocabulary_file,
        vocabulary_size,
        num_oov_buckets or 0,
        kind,
        -1 if default_value is None else default_value,
        file_format,
    )


def _check_oov(key: Any, num_oov_buckets: Any, has_default: bool, default_value: Any) -> None:
    if not num_oov_buckets:
        return
    if has_default:
        raise ValueError(f"Can't specify both num_oov_buckets and default_value in {key}.")
    if num_oov_buckets < 0:
        raise ValueError(f"Invalid num_oov_buckets {num_oov_buckets} in {key}.")


@export(v1="feature_column.categorical_column_with_vocabulary_file")
def categorical_column_with_vocabulary_file(
    key: str,
    vocabulary_file: str,
    vocabulary_size: int | None = None,
    num_oov_buckets: int = 0,
    default_value: int | None = None,
    dtype: Any = dtypes.string,
) -> VocabularyFileCategoricalColumn:
    """Creates a column whose ids are the line numbers of categories in a file.

    Args:
        key: the name of the feature.
        vocabulary_file: a text file with one category per line.
        vocabulary_size: the number of lines to use. All by default.
        num_oov_buckets: the number of additional ids for other categories, which are assigned by hash.
        default_value: the id of all other categories. By default it is -1, which is ignored.
        dtype: string or an integer.

    Raises:
        ValueError: no file (or a missing one, when its lines must be counted), a size below one, both a default and buckets, a
            negative number of buckets, another dtype.
    """
    return _from_file(key, vocabulary_file, vocabulary_size, num_oov_buckets, default_value, dtype, None)


@export(v2="feature_column.categorical_column_with_vocabulary_file")
def categorical_column_with_vocabulary_file_v2(
    key: str,
    vocabulary_file: str,
    vocabulary_size: int | None = None,
    dtype: Any = dtypes.string,
    default_value: int | None = None,
    num_oov_buckets: int = 0,
    file_format: str | None = None,
) -> VocabularyFileCategoricalColumn:
    """Creates a column whose ids are the line numbers of categories in a file. See the 1.x function, which orders its arguments differently.

    With the file format "tfrecord_gzip", which is the default for names that end in "tfrecord.gz", the categories are the records of a
    compressed TFRecord file.
    """
    return _from_file(key, vocabulary_file, vocabulary_size, num_oov_buckets, default_value, dtype, file_format)


@export("feature_column.categorical_column_with_vocabulary_list")
def categorical_column_with_vocabulary_list(
    key: str, vocabulary_list: Any, dtype: Any = None, default_value: int = -1, num_oov_buckets: int = 0
) -> VocabularyListCategoricalColumn:
    """Creates a column whose ids are the positions of categories in a list.

    Args:
        key: the name of the feature.
        vocabulary_list: strings or integers.
        dtype: string or integer. By default the dtype of the list.
        default_value: the id of all other categories. -1 is ignored.
        num_oov_buckets: the number of additional ids for other categories, which are assigned by hash.

    Raises:
        ValueError: an empty list, a category twice, both a default and buckets, a negative number of buckets, another dtype.
    """
    if vocabulary_list is None or len(vocabulary_list) < 1:
        raise ValueError(f"vocabulary_list {vocabulary_list} must be non-empty, column_name: {key}")
    if len(set(vocabulary_list)) != len(vocabulary_list):
        raise ValueError(f"Duplicate keys in vocabulary_list {vocabulary_list}, column_name: {key}")
    found = as_dtype(np.array(list(vocabulary_list)).dtype)
    _check_oov(key, num_oov_buckets, default_value != -1, default_value)
    _check_string_or_int(found, f"column_name: {key} vocabulary")
    kind = found if dtype is None else as_dtype(dtype)
    if kind.is_integer != found.is_integer:
        raise ValueError(f"dtype {kind!r} and vocabulary dtype {found!r} do not match, column_name: {key}")
    _check_string_or_int(kind, f"column_name: {key}")
    check_key(key)
    return VocabularyListCategoricalColumn(key, tuple(vocabulary_list), kind, default_value, num_oov_buckets)
