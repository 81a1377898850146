"""Parses CSV records into columns: the core of TensorFlow's DecodeCSV.

    record := "" | field (delim field)*           a record is one string; line ends before a field are skipped
    field  := '"' (any but '"' | '""')* '"'       if quotes are enabled
            | (any but delim, '"', CR, LF)*       if they are not, '"' is an ordinary character

This follows RFC 4180, except that a record cannot contain line breaks outside quotes. All text is bytes.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from stoker._src.base.dtypes import DType, float32, float64, int32, int64, string
from stoker._src.base.errors import InvalidArgumentError
from stoker._src.base.extensions import extension

_native = extension("stoker._src.formats._native")

_INTEGER = re.compile(rb"[+-]?[0-9]+", re.ASCII)
_DECIMAL = rb"(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:e[+-]?[0-9]+)?"
_FLOAT = re.compile(rb"[+-]?(?:" + _DECIMAL + rb"|inf(?:inity)?|nan(?:\([0-9a-z_]*\))?)", re.ASCII | re.IGNORECASE)
_HEX_FLOAT = re.compile(rb"[+-]?0x(?:[0-9a-f]+\.?[0-9a-f]*|\.[0-9a-f]+)(?:p[+-]?[0-9]+)?", re.ASCII | re.IGNORECASE)
_TYPES = {string: 0, int32: 1, int64: 2, float32: 3, float64: 4}  # the numbers that native/csv.c uses
_SPACE = b" \t\n\v\f\r"
_NAMES = {int32: "int32", int64: "int64", float32: "float", float64: "double"}


@dataclass(frozen=True)
class CsvColumn:
    """An output column: its dtype (int32, int64, float32, float64 or string) and the default for an empty
    field, or None if the field is required."""

    dtype: DType
    default: Any = None


def decode_csv(
    records: Sequence[bytes],
    columns: Sequence[CsvColumn],
    field_delim: bytes = b",",
    use_quote_delim: bool = True,
    na_value: bytes = b"",
    select_cols: Sequence[int] | None = None,
) -> list[np.ndarray]:
    """Parses records into one array of shape [records] per column.

    Args:
        records: the records, without line ends.
        columns: the columns that the fields are converted to.
        field_delim: one byte.
        use_quote_delim: whether '"' is a quotation mark.
        na_value: a field with exactly these bytes also counts as empty.
        select_cols: strictly increasing indices of the fields that `columns` describe. None selects all of them, in which
            case a record must have exactly as many.

    Raises:
        InvalidArgumentError: a record is malformed, has the wrong number of fields, lacks a required field, or a field is
            not a number. The messages match TensorFlow's.
        ValueError: `select_cols` is not increasing, is negative, or differs from `columns` in length.
    """
    if len(field_delim) != 1:
        raise InvalidArgumentError(None, None, "field_delim should be only 1 char")
    if select_cols is not None:
        if any(a >= b for a, b in itertools.pairwise(select_cols)):
            raise ValueError("select_cols is not strictly increasing.")
        if any(col < 0 for col in select_cols):
            raise ValueError("select_cols contains negative values.")
        if len(select_cols) != len(columns):
            raise ValueError("Length of select_cols and record_defaults do not match.")
    for column in columns:
        if column.dtype is not string and column.dtype not in _NAMES:
            raise ValueError(f"{column.dtype!r} is not a dtype of CSV columns.")
    if _native is not None and select_cols is None and not na_value:
        types = tuple(_TYPES[column.dtype] for column in columns)
        found = _native.plain_csv(tuple(records), types, field_delim[0])
        if found is not None:
            return [_array(each, column.dtype) for each, column in zip(found, columns)]
    rows = [split_record(record, field_delim, use_quote_delim, select_cols) for record in records]
    values = _whole_columns(rows, columns, na_value) or _field_by_field(rows, columns, na_value)
    return [_array(column_values, column.dtype) for column_values, column in zip(values, columns)]


def _whole_columns(rows: list[list[bytes]], columns: Sequence[CsvColumn], na_value: bytes) -> list[list[Any]] | None:
    """Converts whole columns at once, which is several times faster. Returns None if any field needs the slower path."""
    if set(map(len, rows)) != {len(columns)}:
        return None
    values: list[list[Any]] = []
    for column, fields in zip(columns, zip(*rows)):
        if not all(fields) or (na_value and na_value in fields):
            return None
        if column.dtype is string:
            values.append(list(fields))
            continue
        if b"_" in b"".join(fields):  # Python accepts underscores in numbers, C does not
            return None
        try:
            converted = list(map(int if column.dtype in (int32, int64) else float, fields))
        except ValueError:
            return None
        if column.dtype in (int32, int64) and (min(converted) < column.dtype.min or max(converted) > column.dtype.max):
            return None
        values.append(converted)
    return values


def _field_by_field(rows: list[list[bytes]], columns: Sequence[CsvColumn], na_value: bytes) -> list[list[Any]]:
    values: list[list[Any]] = [[] for _ in columns]
    for number, fields in enumerate(rows):
        if len(fields) != len(columns):
            raise InvalidArgumentError(
                None, None, f"Expect {len(columns)} fields but have {len(fields)} in record {number}"
            )
        for position, (field, column) in enumerate(zip(fields, columns)):
            if not field or field == na_value:
                if column.default is None:
                    raise InvalidArgumentError(
                        None, None, f"Field {position} is required but missing in record {number}!"
                    )
                values[position].append(column.default)
            elif column.dtype is string:
                values[position].append(field)
            else:
                values[position].append(_number(field, column.dtype, position, number))
    return values


def split_record(
    record: bytes, field_delim: bytes = b",", use_quote_delim: bool = True, select_cols: Sequence[int] | None = None
) -> list[bytes]:
    """Returns the unquoted fields of a record. With `select_cols`, returns only those and does not read past the last of them.

    Raises:
        InvalidArgumentError: there are quotes or line ends where they are not allowed.
    """
    if b"\n" not in record and b"\r" not in record and (b'"' not in record or not use_quote_delim):
        fields = record.split(field_delim) if record else []
        return fields if select_cols is None else [fields[col] for col in select_cols if col < len(fields)]
    delim = field_delim[0]
    wanted = None if select_cols is None else set(select_cols)
    last = None if select_cols is None else max(select_cols, default=-1)
    fields: list[bytes] = []
    at, size, position = 0, len(record), 0
    while at < size:
        if record[at] in b"\r\n":
            at += 1
            continue
        if last is not None and position > last:
            return fields
        include = wanted is None or position in wanted
        if use_quote_delim and record[at] == 0x22:
            field, at = _quoted(record, at + 1, delim)
        else:
            end = record.find(field_delim, at)
            end = size if end < 0 else end
            field, at = record[at:end], end
            if b"\n" in field or b"\r" in field or (use_quote_delim and b'"' in field):
                raise InvalidArgumentError(None, None, "Unquoted fields cannot have quotes/CRLFs inside")
        if include:
            fields.append(field)
        position += 1
        at += 1  # past the delimiter
    # A delimiter at the very end is followed by an empty field.
    if record and record[-1] == delim and (wanted is None or position in wanted):
        fields.append(b"")
    return fields


def _quoted(record: bytes, at: int, delim: int) -> tuple[bytes, int]:
    """Returns the rest of a quoted field, and the position after its closing quote, where the delimiter or the end follows."""
    field = bytearray()
    size = len(record)
    while True:
        quote = record.find(b'"', at)
        if quote < 0:
            raise InvalidArgumentError(None, None, "Quoted field has to end with quote followed by delim or end")
        field += record[at:quote]
        after = quote + 1
        if after == size or record[after] == delim:
            return bytes(field), after
        if record[after] != 0x22:
            raise InvalidArgumentError(None, None, "Quote inside a string has to be escaped by another quote")
        field.append(0x22)
        at = after + 1


def _number(field: bytes, dtype: DType, position: int, record: int) -> int | float:
    text = field.strip(_SPACE)
    if dtype in (int32, int64):
        if _INTEGER.fullmatch(text) and len(text) < 100:
            value = int(text)
            if dtype.min <= value <= dtype.max:
                return value
    elif _FLOAT.fullmatch(text):
        return float(text.partition(b"(")[0])
    elif _HEX_FLOAT.fullmatch(text):
        try:
            return float.fromhex(text.decode())
        except OverflowError:
            return float("-inf") if text.startswith(b"-") else float("inf")
    shown = field.decode(errors="backslashreplace")
    raise InvalidArgumentError(
        None, None, f"Field {position} in record {record} is not a valid {_NAMES[dtype]}: {shown}"
    )


def _array(values: list[Any] | bytearray, dtype: DType) -> np.ndarray:
    if isinstance(values, bytearray):
        return np.frombuffer(values, dtype.as_numpy_dtype)
    if dtype is string:
        array = np.empty(len(values), object)
        array[:] = values
        return array
    with np.errstate(over="ignore"):  # values too large for float32 become infinity
        return np.array(values, dtype.as_numpy_dtype)
