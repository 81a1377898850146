"""Lookup tables as ops. A `LookupTable` lives in the resources of a session or of eager mode, and has its own lock."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import torch

from stoker._src.base import dtypes, forking
from stoker._src.base.dtypes import DType
from stoker._src.base.errors import FailedPreconditionError, InvalidArgumentError, NotFoundError, OutOfRangeError
from stoker._src.base.extensions import extension
from stoker._src.base.shapes import SCALAR, UNKNOWN_SHAPE, Shape
from stoker._src.formats import gfile
from stoker._src.formats.hashing import hash64_many
from stoker._src.graph.definition import ANY, INT, SOURCE, STATEFUL, TYPE, OpDefinition, define, scalar
from stoker._src.graph.tensor import Operation
from stoker._src.ops.support import rows
from stoker._src.ops.support.values import from_numpy, to_numpy, torch_dtype

WHOLE_LINE, LINE_NUMBER = -2, -1

compiled = extension("stoker._src.ops.native.strings")


class LookupTable:
    """Keys and values. The values of all keys are in one array, so that a lookup is one gather."""

    def __init__(
        self, name: str, key_dtype: DType, value_dtype: DType, value_shape: tuple[int, ...] = (), *, static: bool
    ) -> None:
        self.name, self.key_dtype, self.value_dtype = name, key_dtype, value_dtype
        self.value_shape = value_shape
        self._kind = np.dtype(object) if value_dtype is dtypes.string else torch_dtype(value_dtype)  # of kernel values
        self.static = static  # filled once, by its initializer
        self.initialized = not static
        self.reserved: tuple[Any, ...] = ()  # keys that are reserved by a dense table
        self.buckets, self.load_factor = 0, 1.0  # how a dense table is exported
        self._places: dict[Any, int] = {}
        self._values = self._empty(0)
        self._lock = forking.lock()

    def _empty(self, capacity: int) -> np.ndarray:
        return np.empty((capacity, *self.value_shape), dtype=self.value_dtype.as_numpy_dtype)

    def __len__(self) -> int:
        return len(self._places)

    def _check_ready(self) -> None:
        if not self.initialized:
            raise FailedPreconditionError(
                None, None, f"Table not initialized: {self.name}. Run tf.tables_initializer() first."
            )

    def _keys(self, keys: Any, own: DType, label: str = "keys") -> list[Any]:
        if own is not self.key_dtype:
            raise InvalidArgumentError(
                None, None, f"Key must be type {self.key_dtype.name} but got {own.name} ({label} of table {self.name})."
            )
        flat = (keys if keys.ndim == 1 else keys.reshape(-1)).tolist()
        for reserved in self.reserved:
            if reserved in flat:
                raise InvalidArgumentError(
                    None,
                    None,
                    f"Using the empty_key or deleted_key {reserved!r} as a table key is not allowed ({self.name}).",
                )
        return flat

    def _rows(self, values: Any) -> np.ndarray:
        rows = np.asarray(to_numpy(values))
        if rows.dtype != np.dtype(self.value_dtype.as_numpy_dtype):
            raise InvalidArgumentError(
                None, None, f"Value must be type {self.value_dtype.name} but got {rows.dtype.name} (table {self.name})."
            )
        return rows

    def find(self, keys: Any, default: Any, key_dtype: DType) -> Any:
        """Returns the value of each key, or its default, with shape [*keys.shape, *value_shape]."""
        is_text = compiled is not None and key_dtype is dtypes.string is self.key_dtype and not self.reserved
        wanted = np.ascontiguousarray(keys) if is_text else self._keys(keys, key_dtype)
        shape = (*keys.shape, *self.value_shape)
        if default.dtype is not self._kind:
            self._rows(default)  # raises an error, unless it is an array of the same type
        if default.shape not in (shape, self.value_shape):
            raise InvalidArgumentError(
                None,
                None,
                f"Expected shape {Shape(self.value_shape)} or {Shape(shape)} for default value, got {Shape(default.shape)}",
            )
        with self._lock:
            self._check_ready()
            if compiled is not None and isinstance(wanted, np.ndarray):
                found = np.empty(wanted.size, np.int64)
                lacks = compiled.places(self._places, wanted, found) > 0
            else:
                found = np.array(list(map(self._places.get, wanted, itertools.repeat(-1))), np.int64)
                lacks = bool((found < 0).any())
            result = self._values[found] if found.size and self._places else self._empty(found.size)
        if lacks:
            missing, fallback = found < 0, self._rows(default)
            if fallback.shape == shape and fallback.shape != self.value_shape:
                result[missing] = fallback.reshape(found.size, *self.value_shape)[missing]
            else:
                result[missing] = fallback if fallback.ndim else fallback[()]
        return from_numpy(result if result.shape == shape else result.reshape(shape))

    def insert(self, keys: Any, values: Any, key_dtype: DType, *, replace: bool = False) -> None:
        """Inserts or updates keys. With `replace`, all other keys are removed."""
        wanted = self._keys(keys, key_dtype)
        rows = self._rows(values)
        expected = (*tuple(keys.shape), *self.value_shape)
        if rows.shape != expected:
            raise InvalidArgumentError(
                None, None, f"Expected shape {Shape(expected)} for value, got {Shape(rows.shape)}"
            )
        rows = rows.reshape(len(wanted), *self.value_shape)
        with self._lock:
            if replace:
                self._places.clear()
            self._reserve(len(self._places) + len(wanted))
            for key, row in zip(wanted, rows):
                self._values[self._places.setdefault(key, len(self._places))] = row

    def replace(self, keys: Any, values: Any, key_dtype: DType) -> None:
        """Makes these keys the only ones. A dense table also takes its buckets, a row for each, and skips those that are empty."""
        if self.reserved and keys.ndim == 2 and keys.shape[1] == 1:
            flat, rows = np.asarray(to_numpy(keys)).reshape(-1), np.asarray(to_numpy(values))
            if len(rows) != len(flat):
                raise InvalidArgumentError(
                    None, None, f"There are {len(flat)} keys and {len(rows)} values ({self.name})."
                )
            used = np.ones(len(flat), dtype=bool)
            for reserved in self.reserved:
                used &= flat != reserved
            keys = from_numpy(flat[used])
            values = from_numpy(rows.reshape(len(rows), *self.value_shape)[used])
        self.insert(keys, values, key_dtype, replace=True)

    def initialize(self, keys: Any, values: Any, key_dtype: DType) -> None:
        """Fills a static table once. Duplicate keys must have equal values.

        Raises:
            FailedPreconditionError: A key has two values, or the table was already filled with another number of keys (TensorFlow
            compares only
                the number).
        """
        wanted = self._keys(keys, key_dtype)
        with self._lock:
            if self.initialized:
                if len(wanted) != len(self._places):
                    raise FailedPreconditionError(
                        None,
                        None,
                        f"Table was already initialized with different data: {len(self._places)} keys, not {len(wanted)}.",
                    )
                return
        rows = self._rows(values).reshape(-1)
        if len(rows) != len(wanted):
            raise InvalidArgumentError(
                None, None, f"Keys and values must have the same size {len(wanted)} vs {len(rows)}"
            )
        places: dict[Any, int] = {}
        for i, key in enumerate(wanted):
            first = places.setdefault(key, i)
            if first != i and rows[first] != rows[i]:
                raise FailedPreconditionError(
                    None,
                    None,
                    f"HashTable has different value for same key. Key {key!r} has {rows[first]!r} and trying to add value {rows[i]!r}",
                )
        with self._lock:
            if not self.initialized:
                self._places, self._values, self.initialized = places, rows.copy(), True

    def _reserve(self, count: int) -> None:
        if count > len(self._values):
            grown = self._empty(max(count, 2 * len(self._values), 16))
            grown[: len(self._values)] = self._values
            self._values = grown

    def remove(self, keys: Any, key_dtype: DType) -> None:
        """Removes keys. Unknown keys are ignored."""
        wanted = self._keys(keys, key_dtype)
        with self._lock:
            for key in wanted:
                place = self._places.pop(key, None)
                if place is None:
                    continue
                last = len(self._places)
                if place != last:  # The last row moves into the gap.
                    moved = next(k for k, at in reversed(self._places.items()) if at == last)
                    self._places[moved] = place
                    self._values[place] = self._values[last]

    def export(self) -> tuple[Any, Any]:
        """Returns copies of all keys and values."""
        with self._lock:
            self._check_ready()
            keys = np.empty(len(self._places), dtype=self.key_dtype.as_numpy_dtype)
            keys[:] = list(self._places)
            order = np.fromiter(self._places.values(), dtype=np.int64, count=len(self._places))
            values = self._values[order]
        if self.reserved:
            keys, values = self._in_buckets(keys, values)
        return from_numpy(keys), from_numpy(values)

    def _in_buckets(self, keys: np.ndarray, values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The buckets of TensorFlow's dense table, with a row for each.

        TensorFlow restores the buckets as they are, so each key must be where a lookup finds it: at its hash or, if that is taken,
        1, 1 + 2, 1 + 2 + 3, ... places further. Integers are their own hash.
        """
        count = self.buckets
        while len(keys) > count * self.load_factor:
            count *= 2
        texts = self.key_dtype is dtypes.string
        rows = np.full((count, 1), self.reserved[0], dtype=keys.dtype)
        contents = np.full(
            (count, *(self.value_shape or (1,))), b"" if values.dtype == object else 0, dtype=values.dtype
        )
        hashes = hash64_many(keys.tolist()) if texts else keys.astype(np.int64).view(np.uint64)
        starts = (hashes % np.uint64(count)).astype(np.int64)
        taken = np.zeros(count, dtype=bool)
        for i, start in enumerate(starts.tolist()):
            place, step = start, 0
            while taken[place]:
                step += 1
                place = (place + step) % count
            taken[place] = True
            rows[place, 0] = keys[i]
            contents[place] = values[i]
        return rows, contents

    def __repr__(self) -> str:
        return f"<table {self.name} {self.key_dtype.name} -> {self.value_dtype.name}, {len(self)} keys>"


# ---- handles ----------------------------------------------------------------------------------------------------

_HANDLE = {"container": "", "shared_name": "", "use_node_name_sharing": False, "key_dtype": TYPE, "value_dtype": TYPE}


def _table(ctx: Any, container: str, shared_name: str, kind: str, make: Any) -> LookupTable:
    name = shared_name or ctx.name
    table = ctx.resources.lookup_or_create(container, "table", name, lambda: make(name))
    if table.kind != kind:
        raise InvalidArgumentError(None, None, f"The table {name} is a {table.kind}, not a {kind}.")
    return table


def _make(kind: str, name: str, key_dtype: DType, value_dtype: DType, value_shape: Shape | None) -> LookupTable:
    sizes = tuple(value_shape.dims or ()) if value_shape is not None else ()
    table = LookupTable(name, key_dtype, value_dtype, sizes, static=kind == "HashTable")  # type: ignore[arg-type]
    table.kind = kind  # type: ignore[attr-defined]
    return table


def _scalars_kernel(kind: str) -> Any:
    def table_kernel(*, container: str, shared_name: str, key_dtype: DType, value_dtype: DType, ctx: Any) -> Any:
        return _table(ctx, container, shared_name, kind, lambda name: _make(kind, name, key_dtype, value_dtype, None))

    return table_kernel


def _tensors_kernel(kind: str) -> Any:
    def table_kernel(
        *, container: str, shared_name: str, key_dtype: DType, value_dtype: DType, value_shape: Shape, ctx: Any
    ) -> Any:
        return _table(
            ctx, container, shared_name, kind, lambda name: _make(kind, name, key_dtype, value_dtype, value_shape)
        )

    return table_kernel


def _handles(kind: str, *, of_tensors: bool) -> None:
    """Defines the op that creates a kind of table, in its 1.x form (a reference) and its V2 form (a resource)."""
    attrs = {**_HANDLE, "value_shape": Shape(())} if of_tensors else _HANDLE
    for name, output in ((kind, "Ref(string)"), (f"{kind}V2", "resource")):
        definition = define(f"{name}() -> (table_handle: {output})", SOURCE | STATEFUL, **attrs).not_differentiable()
        definition.shape(lambda: SCALAR)
        definition.kernel(_tensors_kernel(kind) if of_tensors else _scalars_kernel(kind))


_handles("HashTable", of_tensors=False)
_handles("MutableHashTable", of_tensors=False)
_handles("MutableHashTableOfTensors", of_tensors=True)

_DENSE = {**_HANDLE, "value_shape": Shape(()), "initial_num_buckets": 131072, "max_load_factor": 0.800000011920929}
MUTABLE_DENSE_HASH_TABLE = define(
    "MutableDenseHashTable(empty_key: key_dtype) -> (table_handle: Ref(string))",
    STATEFUL,
    **{**_DENSE, "key_dtype": ANY},
).not_differentiable()
MUTABLE_DENSE_HASH_TABLE_V2 = define(
    "MutableDenseHashTableV2(empty_key: key_dtype, deleted_key: key_dtype) -> (table_handle: resource)",
    STATEFUL,
    **{**_DENSE, "key_dtype": ANY},
).not_differentiable()
MUTABLE_DENSE_HASH_TABLE.shape(scalar)
MUTABLE_DENSE_HASH_TABLE_V2.shape(scalar)


def _dense(
    reserved: tuple[Any, ...],
    container: str,
    shared_name: str,
    key_dtype: DType,
    value_dtype: DType,
    value_shape: Shape,
    initial_num_buckets: int,
    max_load_factor: float,
    ctx: Any,
) -> Any:
    if initial_num_buckets < 1 or initial_num_buckets & (initial_num_buckets - 1):
        raise InvalidArgumentError(
            None, None, f"Number of buckets must be at least 4 and a power of 2, got: {initial_num_buckets}"
        )

    def make(name: str) -> LookupTable:
        table = _make("MutableDenseHashTable", name, key_dtype, value_dtype, value_shape)
        table.buckets, table.load_factor = initial_num_buckets, max_load_factor
        table.reserved = tuple(key.tolist() if not isinstance(key, np.ndarray) else key[()] for key in reserved)
        if len(set(table.reserved)) != len(table.reserved):
            raise InvalidArgumentError(None, None, f"Empty and deleted keys cannot be equal: {table.reserved[0]!r}")
        return table

    return _table(ctx, container, shared_name, "MutableDenseHashTable", make)


@MUTABLE_DENSE_HASH_TABLE.kernel
def mutable_dense_hash_table_kernel(
    empty_key: Any,
    *,
    container: str,
    shared_name: str,
    key_dtype: DType,
    value_dtype: DType,
    value_shape: Shape,
    initial_num_buckets: int,
    max_load_factor: float,
    ctx: Any,
) -> Any:
    return _dense(
        (empty_key,),
        container,
        shared_name,
        key_dtype,
        value_dtype,
        value_shape,
        initial_num_buckets,
        max_load_factor,
        ctx,
    )


@MUTABLE_DENSE_HASH_TABLE_V2.kernel
def mutable_dense_hash_table_v2_kernel(
    empty_key: Any,
    deleted_key: Any,
    *,
    container: str,
    shared_name: str,
    key_dtype: DType,
    value_dtype: DType,
    value_shape: Shape,
    initial_num_buckets: int,
    max_load_factor: float,
    ctx: Any,
) -> Any:
    reserved = empty_key, deleted_key
    return _dense(
        reserved, container, shared_name, key_dtype, value_dtype, value_shape, initial_num_buckets, max_load_factor, ctx
    )


# ---- tables without a name --------------------------------------------------------------------------------------

_ANONYMOUS = {"key_dtype": TYPE, "value_dtype": TYPE}


def _anonymous_scalars(kind: str) -> Any:
    def table_kernel(*, key_dtype: DType, value_dtype: DType) -> LookupTable:
        return _make(kind, "anonymous", key_dtype, value_dtype, None)

    return table_kernel


def _anonymous_tensors(kind: str) -> Any:
    def table_kernel(*, key_dtype: DType, value_dtype: DType, value_shape: Shape) -> LookupTable:
        return _make(kind, "anonymous", key_dtype, value_dtype, value_shape)

    return table_kernel


def _anonymous(kind: str, *, of_tensors: bool) -> None:
    """Defines the op that creates a table each time it runs. Only its handle refers to the table."""
    attrs = {**_ANONYMOUS, "value_shape": Shape(())} if of_tensors else _ANONYMOUS
    definition = define(f"Anonymous{kind}() -> (table_handle: resource)", STATEFUL, **attrs)
    definition.shape(lambda: SCALAR)
    definition.kernel((_anonymous_tensors if of_tensors else _anonymous_scalars)(kind))


_anonymous("HashTable", of_tensors=False)
_anonymous("MutableHashTable", of_tensors=False)
_anonymous("MutableHashTableOfTensors", of_tensors=True)


# ---- what is done with them -------------------------------------------------------------------------------------


# TensorFlow does not register these ops as not differentiable: asking for their gradient raises an error.
_RAISING = ("LookupTableImport", "LookupTableExport", "LookupTableRemove")


def _on_table(
    name: str, arguments: str, outputs: str, kernel: Any, shape: Any = None, *, v1: bool = True, **attrs: Any
) -> OpDefinition:
    """Defines an op on a table handle, in its 1.x form and its V2 form. Returns the V2 definition."""
    forms = [(f"{name}V2", "resource")] + ([(name, "Ref(string)")] if v1 else [])
    made = []
    for form, handle in forms:
        definition = define(f"{form}(table_handle: {handle}{arguments}) -> ({outputs})", STATEFUL, **attrs)
        if name not in _RAISING:
            definition.not_differentiable()
        definition.kernel(kernel)
        if shape is not None:
            definition.shape(shape)
        made.append(definition)
    return made[0]


def _find(table_handle: LookupTable, keys: Any, default_value: Any, *, Tin: DType) -> Any:
    return table_handle.find(keys, default_value, Tin)


def _find_shape(table_handle: Shape, keys: Shape, default_value: Shape) -> Shape:
    # A default of higher rank than a value is one default for each key.
    if default_value.dims is None or keys.dims is None:
        return UNKNOWN_SHAPE
    return keys.concat(default_value) if len(default_value) < max(1, len(keys)) or not keys.dims else UNKNOWN_SHAPE


def _pairs_shape(table_handle: Shape, keys: Shape, values: Shape) -> tuple[Shape, ...]:
    """Returns the shape of a value, or of a row of values, for each key."""
    if values.dims is not None:
        keys.of_rank(1).merge(Shape(values.at_least(1).dims[:1]))  # type: ignore[index]
    return ()


def _rows_shape(table_handle: Shape, keys: Shape, values: Shape) -> tuple[Shape, ...]:
    """As `_pairs_shape`; the keys of a dense table may be a column."""
    if keys.dims is not None and len(keys) == 2:
        keys.merge(Shape((None, 1)))
        return ()
    return _pairs_shape(table_handle, keys, values)


def _insert(table_handle: LookupTable, keys: Any, values: Any, *, Tin: DType) -> None:
    if table_handle.static:
        raise InvalidArgumentError(
            None, None, f"The table {table_handle.name} is filled by its initializer and cannot be changed."
        )
    table_handle.insert(keys, values, Tin)


def _import(table_handle: LookupTable, keys: Any, values: Any, *, Tin: DType) -> None:
    if table_handle.static:
        table_handle.initialize(keys, values, Tin)
    else:
        table_handle.replace(keys, values, Tin)


def _initialize(table_handle: LookupTable, keys: Any, values: Any, *, Tkey: DType) -> None:
    if keys.ndim != 1 or tuple(keys.shape) != tuple(values.shape):
        raise InvalidArgumentError(
            None,
            None,
            f"Keys and values must be vectors of one length, got {Shape(keys.shape)} and {Shape(values.shape)}",
        )
    if not len(keys):
        raise InvalidArgumentError(None, None, "Keys and values cannot be empty tensors.")
    table_handle.initialize(keys, values, Tkey)


def _remove(table_handle: LookupTable, keys: Any, *, Tin: DType) -> None:
    if table_handle.static:
        raise InvalidArgumentError(
            None, None, f"The table {table_handle.name} is filled by its initializer and cannot be changed."
        )
    table_handle.remove(keys, Tin)


def _size(table_handle: LookupTable) -> torch.Tensor:
    return torch.tensor(len(table_handle), dtype=torch.int64)


def _from_text_file(
    table_handle: LookupTable,
    filename: np.ndarray,
    *,
    key_index: int,
    value_index: int,
    vocab_size: int,
    delimiter: Any,
    offset: int,
) -> None:
    path = filename.item().decode(errors="surrogateescape")
    if not path:
        raise InvalidArgumentError(None, None, "filename cannot be empty.")
    mark = delimiter.encode() if isinstance(delimiter, str) else delimiter
    if len(mark) != 1:
        raise InvalidArgumentError(None, None, f"Only single delimiter is supported, got {delimiter!r}")
    lines = _lines(path)
    if table_handle.initialized:
        return
    lines = _chosen(lines, vocab_size, path)
    keys = _column(lines, key_index, table_handle.key_dtype, mark, offset, path)
    values = _column(lines, value_index, table_handle.value_dtype, mark, offset, path)
    table_handle.initialize(keys, values, table_handle.key_dtype)


def _lines(path: str) -> list[bytes]:
    try:
        with gfile.GFile(path, "rb") as file:
            text = file.read()
    except NotFoundError as error:
        raise NotFoundError(None, None, f"{path}; {error.message}") from None
    lines = text.split(b"\n")
    if lines and lines[-1] == b"":
        lines.pop()
    if not lines:
        raise OutOfRangeError(None, None, f"There are no lines in {path}.")
    return lines


def _chosen(lines: list[bytes], vocab_size: int, path: str) -> list[bytes]:
    """Returns the first `vocab_size` lines (all if that is negative). None may be empty."""
    if vocab_size >= 0:
        if len(lines) < vocab_size:
            raise InvalidArgumentError(
                None, None, f"Invalid vocab_size in {path}: expected {vocab_size} but got {len(lines)}"
            )
        lines = lines[:vocab_size]
    if not lines:
        raise OutOfRangeError(None, None, f"Finished reading 0 of lines from {path}")
    if b"" in lines:
        position = sum(len(line) + 1 for line in lines[: lines.index(b"") + 1])
        raise InvalidArgumentError(None, None, f"Invalid content in {path}: empty line found at position {position}.")
    return [line.removesuffix(b"\r") for line in lines]


def _column(lines: list[bytes], index: int, kind: DType, mark: bytes, offset: int, path: str) -> np.ndarray:
    """Returns one column of a vocabulary file as an array."""
    if index == LINE_NUMBER:
        if kind is not dtypes.int64:
            raise InvalidArgumentError(
                None, None, f"Keys or values that are line numbers require a table of int64, got {kind.name}"
            )
        return np.arange(offset, offset + len(lines), dtype=kind.as_numpy_dtype)
    if index == WHOLE_LINE:
        parts = lines
    else:
        parts = []
        for number, line in enumerate(lines):
            columns = line.split(mark)
            if index >= len(columns):
                raise InvalidArgumentError(
                    None,
                    None,
                    f"Invalid number of columns in {path} line {number} ({line.decode(errors='replace')}): expected at least {index + 1} got {len(columns)}",
                )
            parts.append(columns[index])
    result = np.empty(len(parts), dtype=kind.as_numpy_dtype)
    if kind is dtypes.string:
        result[:] = parts
        return result
    for number, part in enumerate(parts):
        try:
            result[number] = int(part) if kind.is_integer else float(part)
        except ValueError:
            raise InvalidArgumentError(
                None,
                None,
                f"Field {part.decode(errors='replace')} in line {number} of {path} is not a valid {kind.name}.",
            ) from None
    return result


FIND = _on_table(
    "LookupTableFind", ", keys: Tin, default_value: Tout", "values: Tout", _find, _find_shape, Tin=ANY, Tout=ANY
)


@FIND.rows
def find_rows(op: Operation, inputs: list[rows.Input]) -> list[Any] | None:
    """Looks up the keys of all rows at once."""
    handle, keys, default = inputs
    if handle.stacked or default.stacked or not keys.stacked or default.rank != 0:
        return None
    return rows.again(op, [each.tensor for each in inputs])


@FIND.ragged_rows
def find_ragged_rows(op: Operation, inputs: list[rows.Input]) -> list[Any] | None:
    found = find_rows(op, inputs)
    keys = inputs[1]
    return found and [rows.Input(each, True, keys.rank, keys.lengths) for each in found]


INSERT = _on_table("LookupTableInsert", ", keys: Tin, values: Tout", "", _insert, Tin=ANY, Tout=ANY)
IMPORT = _on_table("LookupTableImport", ", keys: rank>0 Tin, values: Tout", "", _import, _rows_shape, Tin=ANY, Tout=ANY)
REMOVE = _on_table("LookupTableRemove", ", keys: rank>0/any Tin", "", _remove, v1=False, Tin=ANY)
SIZE = _on_table("LookupTableSize", "", "size: int64", _size, scalar)
SIZE.rows(lambda op, inputs: rows.again(op, [each.tensor for each in inputs]))
EXPORT = _on_table(
    "LookupTableExport", "", "keys: Tkeys, values: Tvalues", LookupTable.export,
    lambda table_handle: (UNKNOWN_SHAPE, UNKNOWN_SHAPE), Tkeys=TYPE, Tvalues=TYPE,
)  # fmt: skip
INITIALIZE = _on_table(
    "InitializeTable", ", keys: vector Tkey, values: vector Tval", "", _initialize, _pairs_shape, Tkey=ANY, Tval=ANY
)
INITIALIZE_FROM_TEXT_FILE = _on_table(
    "InitializeTableFromTextFile",
    ", filename: scalar string",
    "",
    _from_text_file,
    key_index=INT(minimum=-2),
    value_index=INT(minimum=-2),
    vocab_size=INT(-1, minimum=-1),
    delimiter="\t",
    offset=0,
)
