"""tf.contrib.lookup's vocabularies map words to numbers and back. They come from a vector or from a file."""

from __future__ import annotations

from typing import Any

from stoker._src.base import dtypes
from stoker._src.base.dtypes import DType, as_dtype
from stoker._src.base.export import export
from stoker._src.graph.conversion import convert_to_tensor
from stoker._src.graph.scopes import name_scope
from stoker._src.graph.tensor import Tensor
from stoker._src.ops.array import casting, ranges
from stoker._src.ops.resources.tables import (
    FastHashSpec,
    HashTable,
    IdTableWithHashBuckets,
    KeyValueTensorInitializer,
    StaticHashTable,
    TextFileIdTableInitializer,
    TextFileIndex,
    TextFileStringTableInitializer,
)


@export(v1=("contrib.lookup.index_table_from_file",))
def index_table_from_file(
    vocabulary_file: Any = None,
    num_oov_buckets: int = 0,
    vocab_size: int | None = None,
    default_value: int = -1,
    hasher_spec: Any = FastHashSpec,
    key_dtype: Any = dtypes.string,
    name: str | None = None,
    key_column_index: int = TextFileIndex.WHOLE_LINE,
    value_column_index: int = TextFileIndex.LINE_NUMBER,
    delimiter: str = "\t",
) -> Any:
    """Returns a table that maps the words of a file, one on each line, to their line numbers.

    Args:
        vocabulary_file: The name of the file.
        num_oov_buckets: The number of ids for other keys, after those of the words. With 0, other keys get `default_value`.
        vocab_size: How many lines to read. All by default.
        default_value: See `num_oov_buckets`.
        hasher_spec: How other keys choose their bucket.
        key_dtype: The dtype of the keys.
        name: A name scope.
        key_column_index: The column of the words, if lines have several.
        value_column_index: The column of the ids.
        delimiter: The character between columns.

    Raises:
        ValueError: There is no file name, or a number is out of range.
        TypeError: Tables cannot have keys of this dtype.
    """
    if vocabulary_file is None or (isinstance(vocabulary_file, str) and not vocabulary_file):
        raise ValueError("vocabulary_file must be specified and must not be empty.")
    _check_vocabulary(num_oov_buckets, vocab_size, as_dtype(key_dtype))
    with name_scope(name, "string_to_index"):
        kind = dtypes.int64 if as_dtype(key_dtype).is_integer else as_dtype(key_dtype)
        initializer = TextFileIdTableInitializer(
            vocabulary_file, key_column_index, value_column_index, vocab_size, delimiter, "table_init", kind
        )
        with name_scope(None, "hash_table"):
            table = HashTable(initializer, default_value, initializer.shared_name)
        return _with_buckets(table, num_oov_buckets, hasher_spec, as_dtype(key_dtype))


def _check_vocabulary(num_oov_buckets: int, vocab_size: int | None, key_dtype: DType) -> None:
    if num_oov_buckets < 0:
        raise ValueError(f"num_oov_buckets must be greater or equal than 0, got {num_oov_buckets}.")
    if vocab_size is not None and vocab_size < 1:
        raise ValueError(f"vocab_size must be greater than 0, got {vocab_size}.")
    if not key_dtype.is_integer and key_dtype is not dtypes.string:
        raise TypeError("Only integer and string keys are supported.")


def _with_buckets(table: Any, num_oov_buckets: int, hasher_spec: Any, key_dtype: DType) -> Any:
    return (
        IdTableWithHashBuckets(table, num_oov_buckets, hasher_spec, key_dtype=key_dtype) if num_oov_buckets else table
    )


@export(v1="contrib.lookup.index_table_from_tensor")
def index_table_from_tensor(
    mapping: Any,
    num_oov_buckets: int = 0,
    default_value: int = -1,
    hasher_spec: Any = FastHashSpec,
    dtype: Any = dtypes.string,
    name: str | None = None,
) -> Any:
    """Returns a table that maps the elements of a vector to their positions. For the other arguments see `index_table_from_file`.

    Raises:
        ValueError: There is no mapping, or a number is out of range.
        TypeError: Tables cannot have keys of this dtype.
    """
    if mapping is None:
        raise ValueError("mapping must be specified.")
    kind = as_dtype(dtype)
    _check_vocabulary(num_oov_buckets, None, kind)
    with name_scope(name, "string_to_index"):
        keys = convert_to_tensor(mapping)
        if keys.dtype.is_integer != kind.is_integer:
            raise TypeError(f"Expected {'integer' if kind.is_integer else 'non-integer'}, got {keys.dtype.name}.")
        ids = casting.cast(ranges.range(ranges.size(keys)), dtypes.int64)
        keys = casting.cast(keys, dtypes.int64) if keys.dtype.is_integer else keys
        with name_scope(None, "hash_table"):
            table = StaticHashTable(KeyValueTensorInitializer(keys, ids, name="table_init"), default_value)
        return _with_buckets(table, num_oov_buckets, hasher_spec, kind)


@export(v1="contrib.lookup.index_to_string_table_from_file")
def index_to_string_table_from_file(
    vocabulary_file: Any,
    vocab_size: int | None = None,
    default_value: str = "UNK",
    name: str | None = None,
    key_column_index: int = TextFileIndex.LINE_NUMBER,
    value_column_index: int = TextFileIndex.WHOLE_LINE,
    delimiter: str = "\t",
) -> StaticHashTable:
    """Returns a table that maps line numbers of a file to the words there.

    Raises:
        ValueError: There is no file name, or the vocabulary is empty.
    """
    if not isinstance(vocabulary_file, Tensor) and not vocabulary_file:
        raise ValueError("vocabulary_file must be specified and must not be empty.")
    _check_vocabulary(0, vocab_size, dtypes.string)
    with name_scope(name, "index_to_string"):
        initializer = TextFileStringTableInitializer(
            vocabulary_file, key_column_index, value_column_index, vocab_size, delimiter, "table_init"
        )
        return HashTable(initializer, default_value, initializer.shared_name)


@export(v1="contrib.lookup.index_to_string_table_from_tensor")
def index_to_string_table_from_tensor(
    mapping: Any, default_value: str = "UNK", name: str | None = None
) -> StaticHashTable:
    """Returns a table that maps positions in a vector of strings to the strings.

    Raises:
        ValueError: There is no mapping.
    """
    if mapping is None:
        raise ValueError("mapping must be specified.")
    with name_scope(name, "index_to_string"):
        words = convert_to_tensor(mapping, dtypes.string)
        ids = casting.cast(ranges.range(ranges.size(words)), dtypes.int64)
        return StaticHashTable(KeyValueTensorInitializer(ids, words, name="table_init"), default_value)


@export(v1="contrib.lookup.string_to_index_table_from_file")
def string_to_index_table_from_file(
    vocabulary_file: Any = None,
    num_oov_buckets: int = 0,
    vocab_size: int | None = None,
    default_value: int = -1,
    hasher_spec: Any = FastHashSpec,
    name: str | None = None,
) -> Any:
    """An older name of `index_table_from_file`."""
    return index_table_from_file(vocabulary_file, num_oov_buckets, vocab_size, default_value, hasher_spec, name=name)


@export(v1="contrib.lookup.string_to_index_table_from_tensor")
def string_to_index_table_from_tensor(
    mapping: Any,
    num_oov_buckets: int = 0,
    default_value: int = -1,
    hasher_spec: Any = FastHashSpec,
    name: str | None = None,
) -> Any:
    """An older name of `index_table_from_tensor`."""
    return index_table_from_tensor(mapping, num_oov_buckets, default_value, hasher_spec, name=name)


@export(v1="contrib.lookup.string_to_index")
def string_to_index(tensor: Any, mapping: Any, default_value: int = -1, name: str | None = None) -> Any:
    """Returns the position in `mapping` of each string."""
    return index_table_from_tensor(mapping, default_value=default_value, name=name).lookup(tensor)


@export(v1="contrib.lookup.index_to_string")
def index_to_string(tensor: Any, mapping: Any, default_value: str = "UNK", name: str | None = None) -> Any:
    """Returns the string in `mapping` at each position."""
    return index_to_string_table_from_tensor(mapping, default_value, name).lookup(tensor)
