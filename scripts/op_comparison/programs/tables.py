"""Lookup tables: made, filled, read, changed, exported."""

from __future__ import annotations

from typing import Any

import numpy as np

from . import Run, program

WORDS = np.array([b"a", b"", b"\xff\x00z", b"stoker"], object)
NUMBERS = np.array([7, -1, 0, 2**40], np.int64)


def _types(run: Run, keys: str, values: str) -> dict[str, Any]:
    return {"key_dtype": run.tf.as_dtype(keys), "value_dtype": run.tf.as_dtype(values)}


def _sorted(run: Run, exported: Any) -> None:
    """Compares exported keys and values in the order of the keys: a hash table has none of its own."""
    keys, values = run.do(exported)
    order = np.argsort(keys.reshape(len(keys), -1)[:, 0], kind="stable")
    run.note(keys[order])
    run.note(values[order])


def _static(run: Run, make: Any, initialize: Any, find: Any, size: Any) -> None:
    for keys, values, key_type, value_type in (
        (WORDS, NUMBERS, "string", "int64"),
        (NUMBERS, WORDS, "int64", "string"),
        (WORDS, np.array([0.5, np.nan, -np.inf, 2.0], np.float32), "string", "float32"),
        (NUMBERS.astype(np.int32), NUMBERS.astype(np.int32), "int32", "int32"),
    ):
        name = f"{key_type}_{value_type}"
        table = make(**_types(run, key_type, value_type), shared_name=name)
        default = np.array(b"none", object) if value_type == "string" else np.array(9, values.dtype)
        if not run.eager:
            run.fails(lambda: find(table_handle=table, keys=keys, default_value=default))  # noqa: B023
        run.do(initialize(table_handle=table, keys=keys, values=values))
        run.get(size(table_handle=table))
        run.get(find(table_handle=table, keys=np.concatenate([keys, keys[:1]]).reshape(1, -1), default_value=default))
        run.get(find(table_handle=table, keys=keys[:0], default_value=default))
        unknown = np.array([b"unknown"], object) if key_type == "string" else np.array([5], keys.dtype)
        run.get(find(table_handle=table, keys=unknown, default_value=default))
        run.fails(lambda: initialize(table_handle=table, keys=keys, values=values))  # noqa: B023 (the same again: NaN is not)
        run.fails(lambda: initialize(table_handle=table, keys=keys[:2], values=values))  # noqa: B023


@program("HashTableV2", "InitializeTableV2", "LookupTableFindV2", "LookupTableSizeV2", eager=True)
def static_table(run: Run) -> None:
    raw = run.raw
    _static(run, raw.HashTableV2, raw.InitializeTableV2, raw.LookupTableFindV2, raw.LookupTableSizeV2)


@program("HashTable", "InitializeTable", "LookupTableFind", "LookupTableSize")
def static_table_by_reference(run: Run) -> None:
    raw = run.raw
    _static(run, raw.HashTable, raw.InitializeTable, raw.LookupTableFind, raw.LookupTableSize)


@program("AnonymousHashTable", eager=True)
def anonymous_static_table(run: Run) -> None:
    if run.eager:
        table = run.raw.AnonymousHashTable(**_types(run, "string", "int64"))
        run.do(run.raw.InitializeTableV2(table_handle=table, keys=WORDS, values=NUMBERS))
        run.get(run.raw.LookupTableFindV2(table_handle=table, keys=WORDS[::-1], default_value=np.int64(4)))
        run.get(run.raw.LookupTableSizeV2(table_handle=table))
        return
    # In a graph each run makes another table.
    table = run.raw.AnonymousHashTable(**_types(run, "string", "int64"))
    with run.tf.control_dependencies([run.raw.InitializeTableV2(table_handle=table, keys=WORDS, values=NUMBERS)]):
        run.get(run.raw.LookupTableFindV2(table_handle=table, keys=WORDS[::-1], default_value=np.int64(4)))
        run.get(run.raw.LookupTableSizeV2(table_handle=table))


def _from_file(run: Run, make: Any, initialize: Any, find: Any, size: Any) -> None:
    path = run.file("words.txt", b"emerson\nlake\npalmer\n")
    pairs = run.file("pairs.txt", b"a\t1\t0.5\nb\t2\t-3e4\n")
    line, whole = -1, -2
    for name, keys, values, file, key, value, size_ in (
        ("ids", "string", "int64", path, whole, line, -1),
        ("first", "string", "int64", path, whole, line, 2),
        ("words", "int64", "string", path, line, whole, -1),
        ("pairs", "string", "int64", pairs, 0, 1, -1),
        ("reals", "string", "float32", pairs, 0, 2, -1),
        ("rows", "int64", "string", pairs, 1, 0, -1),
    ):
        table = make(**_types(run, keys, values), shared_name=name)
        run.do(initialize(table_handle=table, filename=file, key_index=key, value_index=value, vocab_size=size_))
        default = (
            np.array(b"none", object) if values == "string" else np.array(-5, run.tf.as_dtype(values).as_numpy_dtype)
        )
        asked = (
            np.array([b"lake", b"", b"palmer", b"a", b"b"], object)
            if keys == "string"
            else np.arange(5, dtype=np.int64)
        )
        run.get(find(table_handle=table, keys=asked, default_value=default))
        run.get(size(table_handle=table))
    table = make(**_types(run, "string", "int64"), shared_name="bad")
    for bad in (
        {"filename": run.file("missing"), "key_index": whole, "value_index": line},
        {"filename": path, "key_index": 0, "value_index": 3},
        {"filename": run.file("gap.txt", b"a\n\nb\n"), "key_index": whole, "value_index": line},
        {"filename": run.file("twice.txt", b"a\na\n"), "key_index": whole, "value_index": line},
        {"filename": pairs, "key_index": 0, "value_index": 2},
        {"filename": path, "key_index": line, "value_index": whole},
        {"filename": path, "key_index": whole, "value_index": line, "vocab_size": 9},
    ):
        run.fails(lambda: initialize(table_handle=table, **bad))  # noqa: B023


@program("InitializeTableFromTextFileV2", eager=True)
def table_from_file(run: Run) -> None:
    raw = run.raw
    _from_file(run, raw.HashTableV2, raw.InitializeTableFromTextFileV2, raw.LookupTableFindV2, raw.LookupTableSizeV2)


@program("InitializeTableFromTextFile")
def table_from_file_by_reference(run: Run) -> None:
    raw = run.raw
    _from_file(run, raw.HashTable, raw.InitializeTableFromTextFile, raw.LookupTableFind, raw.LookupTableSize)


def _changing(run: Run, table: Any, values: np.ndarray, default: Any, suffix: str) -> None:
    raw = run.raw
    insert, find = getattr(raw, f"LookupTableInsert{suffix}"), getattr(raw, f"LookupTableFind{suffix}")
    size, export = getattr(raw, f"LookupTableSize{suffix}"), getattr(raw, f"LookupTableExport{suffix}")
    fill = getattr(raw, f"LookupTableImport{suffix}")
    types = {"Tkeys": run.tf.string, "Tvalues": run.tf.as_dtype(values.dtype)}
    run.get(size(table_handle=table))
    run.do(insert(table_handle=table, keys=WORDS, values=values))
    run.get(find(table_handle=table, keys=np.array([[b"a", b"q"]], object), default_value=default))
    run.do(insert(table_handle=table, keys=WORDS[[0, 0]], values=values[2:]))  # the last of two stays
    run.get(find(table_handle=table, keys=WORDS, default_value=default))
    run.get(size(table_handle=table))
    _sorted(run, export(table_handle=table, **types))
    run.do(fill(table_handle=table, keys=WORDS[1:3], values=values[1:3]))
    run.get(size(table_handle=table))
    _sorted(run, export(table_handle=table, **types))
    run.fails(lambda: insert(table_handle=table, keys=WORDS, values=values[:2]))
    if suffix:
        run.do(raw.LookupTableRemoveV2(table_handle=table, keys=WORDS[[1, 0]]))
        run.get(size(table_handle=table))
        run.get(find(table_handle=table, keys=WORDS, default_value=default))


ROWS = np.arange(8, dtype=np.float32).reshape(4, 2)


@program(
    "MutableHashTableV2", "LookupTableInsertV2", "LookupTableExportV2", "LookupTableImportV2", "LookupTableRemoveV2",
    eager=True,
)  # fmt: skip
def mutable_table(run: Run) -> None:
    table = run.raw.MutableHashTableV2(**_types(run, "string", "int64"), shared_name="m")
    _changing(run, table, NUMBERS, np.int64(3), "V2")


@program("MutableHashTable", "LookupTableInsert", "LookupTableExport", "LookupTableImport")
def mutable_table_by_reference(run: Run) -> None:
    table = run.raw.MutableHashTable(**_types(run, "string", "int64"), shared_name="m")
    _changing(run, table, NUMBERS, np.int64(3), "")


@program("MutableHashTableOfTensorsV2", eager=True)
def mutable_table_of_rows(run: Run) -> None:
    table = run.raw.MutableHashTableOfTensorsV2(**_types(run, "string", "float32"), value_shape=[2], shared_name="t")
    _changing(run, table, ROWS, np.array([5, 6], np.float32), "V2")


@program("MutableHashTableOfTensors")
def mutable_table_of_rows_by_reference(run: Run) -> None:
    table = run.raw.MutableHashTableOfTensors(**_types(run, "string", "float32"), value_shape=[2], shared_name="t")
    _changing(run, table, ROWS, np.array([5, 6], np.float32), "")


def _anonymous(run: Run, make: Any, values: np.ndarray, default: Any) -> None:
    table = make()
    insert = run.raw.LookupTableInsertV2(table_handle=table, keys=WORDS, values=values)
    with run.tf.control_dependencies([] if run.eager else [insert]):
        run.get(run.raw.LookupTableFindV2(table_handle=table, keys=WORDS[::-1], default_value=default))
        run.get(run.raw.LookupTableSizeV2(table_handle=table))


@program("AnonymousMutableHashTable", eager=True)
def anonymous_mutable_table(run: Run) -> None:
    _anonymous(run, lambda: run.raw.AnonymousMutableHashTable(**_types(run, "string", "int64")), NUMBERS, np.int64(3))


@program("AnonymousMutableHashTableOfTensors", eager=True)
def anonymous_table_of_rows(run: Run) -> None:
    types = _types(run, "string", "float32")
    _anonymous(
        run, lambda: run.raw.AnonymousMutableHashTableOfTensors(**types, value_shape=[2]), ROWS, np.zeros(2, np.float32)
    )


@program("MutableDenseHashTableV2", eager=True)
def dense_table(run: Run) -> None:
    raw, tf = run.raw, run.tf
    keys = {"empty_key": np.int64(-7), "deleted_key": np.int64(-8)}
    table = raw.MutableDenseHashTableV2(**keys, value_dtype=tf.int64, shared_name="d")
    asked = np.array([1, 2, 3, 40, 41], np.int64)
    for count in (3, 60):
        many = np.arange(1, count + 1, dtype=np.int64)
        run.do(raw.LookupTableInsertV2(table_handle=table, keys=many, values=many * many))
        run.get(raw.LookupTableFindV2(table_handle=table, keys=asked, default_value=np.int64(-1)))
        run.get(raw.LookupTableSizeV2(table_handle=table))
    run.do(raw.LookupTableRemoveV2(table_handle=table, keys=asked[:3]))
    run.get(raw.LookupTableFindV2(table_handle=table, keys=asked, default_value=np.int64(-1)))
    run.fails(lambda: raw.LookupTableRemoveV2(table_handle=table, keys=np.array([-7], np.int64)))
    # Export gives the buckets, free ones too: the free ones hold nothing.
    found, values = run.do(raw.LookupTableExportV2(table_handle=table, Tkeys=tf.int64, Tvalues=tf.int64))
    taken = found > 0
    run.note(np.sort(found[taken]))
    run.note(values[taken][np.argsort(found[taken])])
    reserved = {"keys": np.array([-7], np.int64), "values": np.array([1], np.int64)}
    run.fails(lambda: raw.LookupTableInsertV2(table_handle=table, **reserved))
