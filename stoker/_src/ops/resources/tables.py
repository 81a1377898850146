"""tf.lookup and tf.contrib.lookup: tables, their initializers, and vocabularies."""

from __future__ import annotations

import functools
import uuid
from collections import namedtuple
from collections.abc import Callable
from typing import Any

import numpy as np

from stoker._src.base import dtypes
from stoker._src.base.dtypes import DType, as_dtype
from stoker._src.base.export import export, export_constant
from stoker._src.base.shapes import Shape
from stoker._src.graph import context
from stoker._src.graph.conversion import convert_to_tensor
from stoker._src.graph.keys import GraphKeys
from stoker._src.graph.late_binding import ops
from stoker._src.graph.scopes import name_scope
from stoker._src.graph.sparse_tensor import SparseTensor, is_sparse
from stoker._src.graph.tensor import Tensor
from stoker._src.graph.trackable import Trackable
from stoker._src.ops.array import casting, selection
from stoker._src.ops.array.constants import constant
from stoker._src.ops.control_flow import grouping
from stoker._src.ops.math import arithmetic, comparison
from stoker._src.ops.resources import table_ops
from stoker._src.ops.resources.table_saveable import TableSaveable
from stoker._src.ops.resources.trackable_resources import Asset, CapturableResource
from stoker._src.ops.strings import numbers, string_ops


@export("lookup.TextFileIndex", v1="contrib.lookup.TextFileIndex")
class TextFileIndex:
    """Special column numbers of a text file: the whole line, and the line number."""

    WHOLE_LINE = table_ops.WHOLE_LINE
    LINE_NUMBER = table_ops.LINE_NUMBER


# ---- initializers -----------------------------------------------------------------------------------------------


@export(v1="contrib.lookup.TableInitializerBase")
class TableInitializerBase(Trackable):
    """Base class of table initializers. Subclasses define `initialize(table)`."""

    def __init__(self, key_dtype: Any, value_dtype: Any) -> None:
        self._key_dtype, self._value_dtype = as_dtype(key_dtype), as_dtype(value_dtype)

    @property
    def key_dtype(self) -> DType:
        return self._key_dtype

    @property
    def value_dtype(self) -> DType:
        return self._value_dtype

    @property
    def shared_name(self) -> str:
        """Returns a name for the table that is the same for all tables with the same contents."""
        return f"hash_table_{uuid.uuid4()}"

    def initialize(self, table: Any) -> Any:
        raise NotImplementedError(f"{type(self).__name__} does not say how it fills a table.")

    def _check(self, table: Any) -> None:
        if table.key_dtype.base_dtype is not self._key_dtype.base_dtype:
            raise TypeError(
                f"Invalid key dtype for table, expected {self._key_dtype.name} but got {table.key_dtype.name}."
            )
        if table.value_dtype.base_dtype is not self._value_dtype.base_dtype:
            raise TypeError(
                f"Invalid value dtype for table, expected {self._value_dtype.name} but got {table.value_dtype.name}."
            )


def _registered(op: Any) -> Any:
    """Adds an initializer's op to the collection that `tables_initializer` runs."""
    if not context.executing_eagerly():
        context.get_default_graph().add_to_collection(GraphKeys.TABLE_INITIALIZERS, op)
    return op


@export("lookup.KeyValueTensorInitializer", v1="contrib.lookup.KeyValueTensorInitializer")
class KeyValueTensorInitializer(TableInitializerBase):
    """Fills a table from a tensor of keys and a tensor of values."""

    def __init__(
        self, keys: Any, values: Any, key_dtype: Any = None, value_dtype: Any = None, name: str | None = None
    ) -> None:
        self._keys = convert_to_tensor(keys, key_dtype, name="keys")
        self._values = convert_to_tensor(values, value_dtype, name="values")
        self._name = "key_value_init" if name is None else name
        super().__init__(self._keys.dtype, self._values.dtype)

    def initialize(self, table: Any) -> Any:
        """Returns the op that fills `table` and adds it to TABLE_INITIALIZERS."""
        self._check(table)
        with name_scope(self._name, None, [table.resource_handle]):
            return _registered(table_ops.IMPORT(table.resource_handle, self._keys, self._values))


@export("lookup.TextFileInitializer", v1="contrib.lookup.TextFileInitializer")
class TextFileInitializer(TableInitializerBase):
    """Fills a table from columns of a text file.

    Args:
        filename: The name of the file, a string or a scalar string tensor.
        key_dtype: The dtype of the keys.
        key_index: The column of the keys, or TextFileIndex.WHOLE_LINE or LINE_NUMBER.
        value_dtype: The dtype of the values.
        value_index: The column of the values, with the same special numbers.
        vocab_size: How many lines to read. All by default.
        delimiter: The character between columns.
        name: The name of the op.
        value_index_offset: A number that is added to line numbers.

    Raises:
        ValueError: The name is empty, or the columns do not match the dtypes.
    """

    def __init__(
        self,
        filename: Any,
        key_dtype: Any,
        key_index: int,
        value_dtype: Any,
        value_index: int,
        vocab_size: int | None = None,
        delimiter: str = "\t",
        name: str | None = None,
        value_index_offset: int = 0,
    ) -> None:
        if not isinstance(filename, Tensor) and not filename:
            raise ValueError("`filename` argument required for tf.lookup.TextFileInitializer")
        for label, index, kind in (
            ("key", key_index, as_dtype(key_dtype)),
            ("value", value_index, as_dtype(value_dtype)),
        ):
            if index < -2:
                raise ValueError(f"`{label}_index` should be >= -2, received: {index}.")
            if index == TextFileIndex.LINE_NUMBER and kind is not dtypes.int64:
                raise ValueError(
                    f"`{label}_dtype` must be int64 if `{label}_index` is {TextFileIndex.LINE_NUMBER}, received: {kind.name}"
                )
            if index == TextFileIndex.WHOLE_LINE and not (kind.is_integer or kind is dtypes.string):
                raise ValueError(
                    f"`{label}_dtype` should be either integer or string for `{label}_index` {TextFileIndex.WHOLE_LINE}, received: {kind.name}"
                )
        if vocab_size is not None and vocab_size <= 0:
            raise ValueError(f"`vocab_size` should be > 0, received: {vocab_size}")
        self._filename, self._key_index, self._value_index = filename, key_index, value_index
        self._vocab_size, self._delimiter, self._offset = vocab_size, delimiter, value_index_offset
        self._name = "text_file_init" if name is None else name
        super().__init__(key_dtype, value_dtype)
        if context.executing_eagerly():
            # A SavedModel carries the file with it.
            self._path = self._track_trackable(Asset(filename), "_filename").asset_path
        else:
            self._path = (
                filename if isinstance(filename, Tensor) else constant(filename, dtypes.string, name="asset_path")
            )
            context.get_default_graph().add_to_collection(GraphKeys.ASSET_FILEPATHS, self._path)

    @property
    def shared_name(self) -> str:
        path = self._filename if isinstance(self._filename, str) else "tensor"
        size = "" if self._vocab_size is None else f"_{self._vocab_size}"
        offset = f"_{self._offset}" if self._offset else ""
        return f"hash_table_{path}{size}_{self._key_index}_{self._value_index}{offset}"

    def initialize(self, table: Any) -> Any:
        """Returns the op that fills `table` and adds it to TABLE_INITIALIZERS."""
        self._check(table)
        with name_scope(self._name, None, [table.resource_handle]):
            return _registered(
                table_ops.INITIALIZE_FROM_TEXT_FILE(
                    table.resource_handle,
                    self._path,
                    key_index=self._key_index,
                    value_index=self._value_index,
                    vocab_size=-1 if self._vocab_size is None else self._vocab_size,
                    delimiter=self._delimiter,
                    offset=self._offset,
                )
            )


@export(v1="contrib.lookup.TextFileStringTableInitializer")
class TextFileStringTableInitializer(TextFileInitializer):
    """Maps line numbers (or a column) to strings."""

    def __init__(
        self,
        filename: Any,
        key_column_index: int = TextFileIndex.LINE_NUMBER,
        value_column_index: int = TextFileIndex.WHOLE_LINE,
        vocab_size: int | None = None,
        delimiter: str = "\t",
        name: str = "text_file_string_table_init",
    ) -> None:
        super().__init__(
            filename, dtypes.int64, key_column_index, dtypes.string, value_column_index, vocab_size, delimiter, name
        )


@export(v1="contrib.lookup.TextFileIdTableInitializer")
class TextFileIdTableInitializer(TextFileInitializer):
    """Maps strings (or a column) to line numbers."""

    def __init__(
        self,
        filename: Any,
        key_column_index: int = TextFileIndex.WHOLE_LINE,
        value_column_index: int = TextFileIndex.LINE_NUMBER,
        vocab_size: int | None = None,
        delimiter: str = "\t",
        name: str = "text_file_id_table_init",
        key_dtype: Any = dtypes.string,
    ) -> None:
        super().__init__(
            filename, key_dtype, key_column_index, dtypes.int64, value_column_index, vocab_size, delimiter, name
        )


# ---- tables -----------------------------------------------------------------------------------------------------


@export(v1="contrib.lookup.LookupInterface")
class LookupInterface(Trackable):
    """Base class of the tables."""

    def __init__(self, key_dtype: Any, value_dtype: Any) -> None:
        self._key_dtype, self._value_dtype = as_dtype(key_dtype), as_dtype(value_dtype)
        self._name = ""
        self._handle: Any = None

    @property
    def key_dtype(self) -> DType:
        return self._key_dtype

    @property
    def value_dtype(self) -> DType:
        return self._value_dtype

    @property
    def name(self) -> str:
        """The name of the table's op."""
        return self._name

    @property
    def resource_handle(self) -> Any:
        return self._handle

    def size(self, name: str | None = None) -> Tensor:
        """Returns the number of keys."""
        with name_scope(name, f"{self._name}_Size", [self._handle]):
            return table_ops.SIZE(self._handle)

    def _checked(self, keys: Any) -> tuple[Any, Tensor]:
        """Returns the keys as given, and as one tensor of the right dtype."""
        sparse = SparseTensor.from_value(keys) if is_sparse(keys) else None
        flat = sparse.values if sparse is not None else convert_to_tensor(keys, dtype_hint=self._key_dtype)
        if flat.dtype.base_dtype is not self._key_dtype.base_dtype:
            raise TypeError(
                f"Dtype of argument `keys` must be {self._key_dtype.name}, received: {flat.dtype.base_dtype.name}"
            )
        return sparse, flat

    def __getitem__(self, keys: Any) -> Any:
        return self.lookup(keys)  # type: ignore[attr-defined]


def _like_keys(sparse: Any, keys: Tensor, values: Tensor, value_rank: int = 0) -> Any:
    """Gives the values the structure of the keys: sparse for sparse keys. The shape of dense values is set."""
    if sparse is not None:
        return SparseTensor(sparse.indices, values, sparse.dense_shape)
    if value_rank == 0 and not getattr(values, "is_eager", False):
        values.set_shape(keys.static_shape)
    return values


@export(v1="contrib.lookup.InitializableLookupTableBase")
class InitializableLookupTableBase(LookupInterface, CapturableResource):
    """A table that is filled once by its initializer."""

    def __init__(self, default_value: Any, initializer: TableInitializerBase) -> None:
        super().__init__(initializer.key_dtype, initializer.value_dtype)
        self._default_value = convert_to_tensor(default_value, self._value_dtype)
        self._default_value.static_shape.merge(Shape(()))
        self._initializer = self._track_trackable(initializer, "_initializer")
        self._handle = self._create()
        self._init_op = initializer.initialize(self)

    def _create(self) -> Any:
        raise NotImplementedError(f"{type(self).__name__} does not say which op makes it.")

    def _initialize(self) -> Any:
        return self._initializer.initialize(self)

    @property
    def default_value(self) -> Tensor:
        return self._default_value

    @property
    def initializer(self) -> Any:
        """The op that fills the table."""
        return self._init_op

    @property
    def init(self) -> Any:
        return self._init_op

    def lookup(self, keys: Any, name: str | None = None) -> Any:
        """Returns the value of each key, or the default. The result is sparse for a SparseTensor of keys.

        Raises:
            TypeError: The keys do not have the table's key dtype.
        """
        sparse, flat = self._checked(keys)
        with name_scope(name, f"{self._name}_Lookup", [self._handle, flat, self._default_value]):
            values = table_ops.FIND(self._handle, flat, self._default_value)
        return _like_keys(sparse, flat, values)


@export("lookup.StaticHashTable")
class StaticHashTable(InitializableLookupTableBase):
    """An immutable table whose initializer provides the keys and values.

    Args:
        initializer: Fills the table. In a graph, run `tf.tables_initializer()`.
        default_value: The value of missing keys.
        name: The name of the table's op.
        experimental_is_anonymous: Must be False. Every table has a name.
    """

    def __init__(
        self,
        initializer: TableInitializerBase,
        default_value: Any,
        name: str | None = None,
        experimental_is_anonymous: bool = False,
    ) -> None:
        _named(experimental_is_anonymous)
        self._table_name = name or "hash_table"
        self._shared_name = initializer.shared_name
        super().__init__(default_value, initializer)

    def _create(self) -> Any:
        handle = self._create_resource()
        self._name = self._table_name if getattr(handle, "is_eager", False) else handle.op.name.rsplit("/", 1)[-1]
        return handle

    def _create_resource(self) -> Any:
        return ops.HashTableV2(
            shared_name=self._shared_name,
            key_dtype=self._key_dtype,
            value_dtype=self._value_dtype,
            name=self._table_name,
        )

    def export(self, name: str | None = None) -> tuple[Tensor, Tensor]:
        """Returns all keys and values."""
        with name_scope(name, f"{self._name}_Export", [self._handle]):
            found = table_ops.EXPORT(self._handle, Tkeys=self._key_dtype, Tvalues=self._value_dtype)
        return found.keys, found.values


@export(v1="contrib.lookup.HashTable")
class HashTable(StaticHashTable):
    """The table of tf.contrib: a `StaticHashTable` with an explicit shared name."""

    def __init__(
        self,
        initializer: TableInitializerBase,
        default_value: Any,
        shared_name: str | None = None,
        name: str | None = None,
    ) -> None:
        self._given_name = shared_name
        super().__init__(initializer, default_value, name)

    def _create(self) -> Any:
        if self._given_name:
            self._shared_name = self._given_name
        return super()._create()


def _named(anonymous: bool) -> None:
    if anonymous:
        raise NotImplementedError("Anonymous tables are not supported; leave experimental_is_anonymous out.")


# ---- vocabularies with buckets for the rest ---------------------------------------------------------------------

HasherSpec = namedtuple("HasherSpec", ["hasher", "key"])
HasherSpec.__doc__ = "The hash function for out-of-vocabulary keys: its name and its key."
FastHashSpec = HasherSpec("fasthash", None)
export_constant(__name__, "HasherSpec", v1="contrib.lookup.HasherSpec")
export_constant(__name__, "FastHashSpec", v1="contrib.lookup.FastHashSpec")


@export(v1="contrib.lookup.StrongHashSpec")
class StrongHashSpec(HasherSpec):
    """SipHash keyed with two integers.

    Raises:
        ValueError: The key does not have two elements.
        TypeError: The key is not a list of integers.
    """

    __slots__ = ()

    def __new__(cls, key: Any) -> StrongHashSpec:
        if len(key) != 2:
            raise ValueError(f"`key` must have size 2, received {key}")
        if not all(isinstance(each, (int, np.integer)) for each in key):
            raise TypeError(f"Invalid key {key}. Must be unsigned integer values.")
        return super().__new__(cls, "stronghash", list(key))


class _VocabularyTable(LookupInterface):
    """Looks up ids in a table. Missing keys are hashed into buckets whose ids follow those of the table."""

    def __init__(self, table: Any, num_oov_buckets: int, hasher: HasherSpec, name: str, key_dtype: DType) -> None:
        super().__init__(key_dtype, dtypes.int64)
        self._table: Any = table if table is None else self._track_trackable(table, "_table")
        self._num_oov_buckets, self._hasher = num_oov_buckets, hasher
        self._name = name
        self._handle = None if table is None else table.resource_handle

    @property
    def initializer(self) -> Any:
        """The op that fills the vocabulary. It does nothing if there is none."""
        return grouping.no_op() if self._table is None else self._table.initializer

    @property
    def init(self) -> Any:
        return self.initializer

    def size(self, name: str | None = None) -> Tensor:
        """Returns the number of ids, of the vocabulary and of the buckets."""
        with name_scope(name, f"{self._name}_Size"):
            known = convert_to_tensor(0, dtypes.int64) if self._table is None else self._table.size()
            return arithmetic.add(known, np.int64(self._num_oov_buckets), name="add")

    def lookup(self, keys: Any, name: str | None = None) -> Any:
        """Returns the id of each key. The result is sparse for a SparseTensor of keys.

        Raises:
            TypeError: The keys do not have the table's key dtype.
        """
        sparse, flat = self._checked(keys)
        inner = flat if self._table is None else casting.cast(flat, self._table.key_dtype)
        if self._num_oov_buckets == 0:
            return _like_keys(sparse, flat, self._known_ids(inner))
        with name_scope(name, f"{self._name}_Lookup"):
            text = inner if inner.dtype.base_dtype is dtypes.string else numbers.as_string(inner)
            buckets = self._hashed(text)
            if self._table is None:
                ids = buckets
            else:
                found = self._table.lookup(inner)
                buckets = arithmetic.add(buckets, self._table.size())
                ids = selection.SELECT_V2(comparison.not_equal(found, self._table.default_value), found, buckets)
        return _like_keys(sparse, flat, ids)

    def _known_ids(self, keys: Any) -> Tensor:
        assert self._table is not None, "a vocabulary without words has buckets"
        return self._table.lookup(keys)

    def _hashed(self, text: Any) -> Tensor:
        if self._hasher.hasher == "fasthash":
            return string_ops.STRING_TO_HASH_BUCKET_FAST(text, num_buckets=self._num_oov_buckets, name="hash_bucket")
        if self._hasher.hasher == "legacy":
            return string_ops.STRING_TO_HASH_BUCKET(text, num_buckets=self._num_oov_buckets, name="hash_bucket")
        return string_ops.STRING_TO_HASH_BUCKET_STRONG(
            text, num_buckets=self._num_oov_buckets, key=self._hasher.key, name="hash_bucket"
        )


@export("lookup.StaticVocabularyTable")
class StaticVocabularyTable(_VocabularyTable):
    """Maps the keys of a vocabulary to its ids, and all other keys to `num_oov_buckets` more ids, by hash.

    Raises:
        ValueError: `num_oov_buckets` is not positive.
        TypeError: The initializer's keys are neither strings nor int64, or its values are not int64.
    """

    def __init__(
        self,
        initializer: TableInitializerBase | None,
        num_oov_buckets: int,
        lookup_key_dtype: Any = None,
        name: str | None = None,
        experimental_is_anonymous: bool = False,
    ) -> None:
        _named(experimental_is_anonymous)
        if num_oov_buckets <= 0:
            raise ValueError(f"oov_buckets must be > 0; use StaticHashTable instead. Received: {num_oov_buckets}")
        wanted = None if lookup_key_dtype is None else as_dtype(lookup_key_dtype)
        if initializer is None:
            table, wanted = None, wanted or dtypes.string
        else:
            if initializer.value_dtype is not dtypes.int64:
                raise TypeError(f"Invalid `value_dtype`, expected {dtypes.int64} but got {initializer.value_dtype}.")
            if initializer.key_dtype not in (dtypes.int64, dtypes.string):
                raise TypeError(
                    f"Invalid `key_dtype`, expected one of int64 or string but got {initializer.key_dtype}."
                )
            if wanted is not None and wanted.is_integer != initializer.key_dtype.is_integer:
                raise TypeError(
                    f"Invalid `key_dtype`, expected integer={initializer.key_dtype.is_integer} for lookup_key_dtype {wanted.name}."
                )
            table = StaticHashTable(initializer, -1, name=name)
            wanted = wanted or initializer.key_dtype
        label = name or ("hash_table" if table is None else table.name)
        super().__init__(table, num_oov_buckets, FastHashSpec, label, wanted)


@export(v1="contrib.lookup.IdTableWithHashBuckets")
class IdTableWithHashBuckets(_VocabularyTable):
    """Maps the keys of a table to its ids, and all other keys to `num_oov_buckets` more ids, by the hash of `hasher_spec`.

    Raises:
        TypeError: The table or the hasher has the wrong type.
    """

    def __init__(
        self,
        table: Any,
        num_oov_buckets: int,
        hasher_spec: Any = FastHashSpec,
        name: str | None = None,
        key_dtype: Any = None,
    ) -> None:
        if not isinstance(hasher_spec, HasherSpec):
            raise TypeError(f"`hasher_spec` must be of type HasherSpec, got {type(hasher_spec)}.")
        if hasher_spec.hasher not in ("fasthash", "legacy", "stronghash"):
            raise ValueError(f"Invalid hasher {hasher_spec.hasher!r}.")
        if table is None and num_oov_buckets <= 0:
            raise ValueError("oov_buckets must be > 0 if no table is supplied")
        kind = as_dtype(key_dtype) if key_dtype is not None else (dtypes.string if table is None else table.key_dtype)
        if table is not None and table.value_dtype is not dtypes.int64:
            raise TypeError(f"Invalid `value_dtype`: expected int64 but got {table.value_dtype}.")
        label = name or ("hash_bucket" if table is None else table.name)
        super().__init__(table, num_oov_buckets, hasher_spec, label.rsplit("/", 1)[-1], kind)


# ---- tables that change -----------------------------------------------------------------------------------------


class _MutableTable(LookupInterface, CapturableResource):
    """Base class of `MutableHashTable` and `DenseHashTable`."""

    def __init__(self, key_dtype: Any, value_dtype: Any, default_value: Any, checkpoint: bool) -> None:
        super().__init__(key_dtype, value_dtype)
        self._default_value = convert_to_tensor(default_value, self._value_dtype, name="default_value")
        self._value_shape = self._default_value.static_shape
        self._checkpoint = checkpoint
        self._reserved: tuple[Tensor, ...] = ()  # reserved keys
        self._exported: tuple[Tensor, Tensor] | None = None  # the ops of a graph that a saver reads
        self._creation: Callable[[], Any]  # calls the op that creates the table

    def _create_resource(self) -> Any:
        return self._creation()

    def _made(self, name: str) -> None:
        """Sets the table's name after its op was created, and registers the table with savers."""
        eager = getattr(self._handle, "is_eager", False)
        self._name = name if eager else self._handle.op.name.rsplit("/", 1)[-1]
        if self._checkpoint and not eager:
            self._exported = self.export()
            saveable = TableSaveable(self, name, self._exported)
            context.get_default_graph().add_to_collection(GraphKeys.SAVEABLE_OBJECTS, saveable)

    def _gather_saveables_for_checkpoint(self) -> dict[str, Any]:
        def saveable(name: str | None = None) -> TableSaveable:
            # Inside a function, the ops of the graph around it cannot be used.
            exported = None if context.target().building_function else self._exported
            return TableSaveable(self, self._name if name is None else name, exported)

        return {"table": saveable} if self._checkpoint else {}

    def _scope(self, name: str | None, action: str) -> Any:
        return name_scope(name, f"{self._name}_lookup_table_{action}", [self._handle])

    def lookup(self, keys: Any, dynamic_default_values: Any = None, name: str | None = None) -> Any:
        """Returns the value of each key, or the table's default, or the default at the same place in `dynamic_default_values`."""
        sparse, flat = self._checked(keys)
        default = self._default_value if dynamic_default_values is None else dynamic_default_values
        with self._scope(name, "find"):
            default = convert_to_tensor(default, self._value_dtype, name="default_value")
            values = table_ops.FIND(self._handle, flat, default)
        return _like_keys(sparse, flat, values, len(self._value_shape))

    def insert(self, keys: Any, values: Any, name: str | None = None) -> Any:
        """Returns the op that inserts or updates keys."""
        _, flat = self._checked(keys)
        with self._scope(name, "insert"):
            return table_ops.INSERT(self._handle, flat, convert_to_tensor(values, self._value_dtype, name="values"))

    insert_or_assign = insert

    def remove(self, keys: Any, name: str | None = None) -> Any:
        """Returns the op that removes keys."""
        _, flat = self._checked(keys)
        with self._scope(name, "remove"):
            return table_ops.REMOVE(self._handle, flat)

    erase = remove

    def export(self, name: str | None = None) -> tuple[Tensor, Tensor]:
        """Returns all keys and values."""
        with self._scope(name, "export_values"):
            found = table_ops.EXPORT(self._handle, Tkeys=self._key_dtype, Tvalues=self._value_dtype)
        return found.keys, found.values


@export("lookup.experimental.MutableHashTable", v1="contrib.lookup.MutableHashTable")
class MutableHashTable(_MutableTable):
    """A mutable table.

    Args:
        key_dtype: The dtype of the keys.
        value_dtype: The dtype of the values.
        default_value: The value of missing keys. Its shape is the shape of every value.
        name: The name of the table's op.
        checkpoint: Whether savers save it.
        experimental_is_anonymous: Must be False. Every table has a name.
    """

    def __init__(
        self,
        key_dtype: Any,
        value_dtype: Any,
        default_value: Any,
        name: str = "MutableHashTable",
        checkpoint: bool = True,
        experimental_is_anonymous: bool = False,
    ) -> None:
        _named(experimental_is_anonymous)
        super().__init__(key_dtype, value_dtype, default_value, checkpoint)
        attrs: dict[str, Any] = {"key_dtype": self._key_dtype, "value_dtype": self._value_dtype}
        kind = "MutableHashTableV2"
        if len(self._value_shape):
            kind, attrs["value_shape"] = "MutableHashTableOfTensorsV2", self._value_shape
        if context.executing_eagerly():
            attrs["shared_name"] = f"table_{uuid.uuid4()}"
        self._creation = functools.partial(getattr(ops, kind), name=name, use_node_name_sharing=True, **attrs)
        self._handle = self._create_resource()
        self._made(name)


@export("lookup.experimental.DenseHashTable", v1="contrib.lookup.MutableDenseHashTable")
class DenseHashTable(_MutableTable):
    """A mutable table with two reserved keys.

    Args:
        key_dtype: The dtype of the keys.
        value_dtype: The dtype of the values.
        default_value: The value of missing keys. Its shape is the shape of every value.
        empty_key: A key that is never used.
        deleted_key: Another key that is never used.
        initial_num_buckets: The expected number of keys.
        name: The name of the table's op.
        checkpoint: Whether savers save it.
        experimental_is_anonymous: Must be False. Every table has a name.
    """

    def __init__(
        self,
        key_dtype: Any,
        value_dtype: Any,
        default_value: Any,
        empty_key: Any,
        deleted_key: Any,
        initial_num_buckets: int | None = None,
        name: str = "MutableDenseHashTable",
        checkpoint: bool = True,
        experimental_is_anonymous: bool = False,
    ) -> None:
        _named(experimental_is_anonymous)
        super().__init__(key_dtype, value_dtype, default_value, checkpoint)
        empty = convert_to_tensor(empty_key, self._key_dtype, name="empty_key")
        deleted = convert_to_tensor(deleted_key, self._key_dtype, name="deleted_key")
        self._reserved = (empty, deleted)
        self._creation = functools.partial(
            table_ops.MUTABLE_DENSE_HASH_TABLE_V2,
            empty,
            deleted,
            shared_name=f"table_{uuid.uuid4()}" if context.executing_eagerly() else "",
            use_node_name_sharing=True,
            value_dtype=self._value_dtype,
            value_shape=self._value_shape,
            initial_num_buckets=131072 if initial_num_buckets is None else initial_num_buckets,
            name=name,
        )
        self._handle = self._create_resource()
        self._made(name)


@export(v1=("tables_initializer", "initializers.tables_initializer"))
def tables_initializer(name: str = "init_all_tables") -> Any:
    """Returns the op that fills all tables of the graph."""
    return initialize_all_tables(name)


@export(v1="initialize_all_tables")
def initialize_all_tables(name: str = "init_all_tables") -> Any:
    """An older name of `tables_initializer`."""
    if context.executing_eagerly():
        return grouping.no_op(name=name)
    ops = context.get_default_graph().get_collection(GraphKeys.TABLE_INITIALIZERS)
    return grouping.group(*ops, name=name) if ops else grouping.no_op(name=name)
