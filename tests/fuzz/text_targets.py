"""Fuzz targets for text and packed bytes: CSV, JSON, base64, numbers, Unicode, raw numbers, compressed strings."""

from __future__ import annotations

import contextlib
import gzip
import tempfile
import zlib

import numpy as np

import stoker as tf
import stoker.compat.v1 as tf1
from stoker._src.formats import csv, protos
from stoker._src.ops.io import decoding
from tests.fuzz.registry import REFUSED, either, target

_DEFAULTS = (np.int64(0), b"", np.float32(0), np.float64(0), np.int32(0))


@target(*(bytes([option]) + text for text in (b'1,"a ""b""",2.5,1e-3,7', b"1,2\n", b",,,,", b" 1 ,x,nan,-inf,\t8") for option in (0, 1)))  # fmt: skip
def comma_separated(data: bytes) -> None:
    option, record = either(data)
    defaults = [tf.constant([], tf.as_dtype(default.dtype)) if option & 2 and hasattr(default, "dtype") else default for default in _DEFAULTS]  # fmt: skip
    columns = tf.io.decode_csv(
        [record, record], defaults, field_delim=",;\t "[option >> 2 & 3], use_quote_delim=not option & 1, na_value="NA" if option & 16 else ""
    )  # fmt: skip
    assert [column.shape for column in columns] == [(2,)] * 5


@target(b'1,"a ""b""",2.5', b"1,2\n", b",,")
def comma_separated_twins(data: bytes) -> None:
    """The extension and its Python twin give the same columns or the same refusal."""
    columns = [
        csv.CsvColumn(tf.int64, 0),
        csv.CsvColumn(tf.string, b""),
        csv.CsvColumn(tf.float32),
        csv.CsvColumn(tf.float64, 1.0),
    ]
    outcomes = []
    for native in (csv._native, None):
        original, csv._native = csv._native, native
        try:
            outcomes.append(
                [
                    column.tobytes() if column.dtype != object else column.tolist()
                    for column in csv.decode_csv([data], columns)
                ]
            )
        except REFUSED as error:
            outcomes.append(error.message)
        finally:
            csv._native = original
    assert outcomes[0] == outcomes[1]


@target(
    b'{"features": {"feature": {"a": {"int64List": {"value": ["1"]}}}}}',
    b'{"features": {"feature": {"a": {"floatList": {"value": [1, "NaN", 1e3]}}, "b": {"bytes_list": {"value": ["YQ=="]}}}}}',
    b"[]",
    b'{"features": null}',
    b"{features: {'feature': {,}}}",
)
def json_example(data: bytes) -> None:
    protos.Example.FromString(tf.io.decode_json_example(data).numpy())


@target(b"YWJj", b"YQ==", b"_-8")
def base64_text(data: bytes) -> None:
    decoded = tf.io.decode_base64(data).numpy()
    assert len(decoded) <= len(data)
    assert tf.io.decode_base64(tf.io.encode_base64(decoded, pad=bool(len(data) % 2))).numpy() == decoded


@target(zlib.compress(b"abc"), zlib.compress(bytes(1 << 16)), gzip.compress(b"abc", mtime=0), b"\x1f\x8b\x08")
def compressed(data: bytes) -> None:
    for kind in ("ZLIB", "GZIP"):
        with contextlib.suppress(REFUSED):
            assert len(tf.io.decode_compressed(data, kind).numpy()) <= decoding.INFLATED_LIMIT


@target(bytes(range(24)))
def raw_numbers(data: bytes) -> None:
    option, contents = either(data)
    dtype = (tf.uint8, tf.int16, tf.float32, tf.int64, tf.complex128, tf.bool, tf.bfloat16, tf.uint16)[option & 7]
    tf.io.decode_raw([contents, contents], dtype, little_endian=not option & 8)


@target(bytes(range(24)))
def padded_raw_numbers(data: bytes) -> None:
    option, contents = either(data)
    dtype = (tf.uint8, tf.int16, tf.float32, tf.int64)[option & 3]
    length = (option ^ 128) - 128
    found = tf.io.decode_raw([contents, b"x"], dtype, little_endian=not option & 4, fixed_length=length)
    assert found.shape == (2, length // dtype.size)


@target(b"1", b"-2.5e3", b" 0x1p-3 ", b"inf", b"9223372036854775808")
def number_text(data: bytes) -> None:
    for dtype in (tf.float32, tf.float64, tf.int32, tf.int64):
        with contextlib.suppress(REFUSED):
            tf.strings.to_number(data, dtype)


@target(*(bytes([option]) + "aß\u20ac\U0001f600".encode() for option in range(6)), b"\0\xff\xc0\x80")
def unicode_text(data: bytes) -> None:
    option, text = either(data)
    encoding = ("UTF-8", "UTF-16-BE", "UTF-32-BE")[option % 3]
    errors = ("strict", "replace", "ignore")[option // 3 % 3]
    tf.strings.unicode_decode_with_offsets([text], encoding, errors=errors)
    tf.strings.unicode_transcode(text, encoding, "UTF-8", errors=errors)


@target(b"a\nb\nc\n", b"a\t1\nb\t2", b"\r\n\xff\n", refused=(*REFUSED, ValueError, tf.errors.FailedPreconditionError))
def vocabulary(data: bytes) -> None:
    option, contents = either(data)
    with tempfile.NamedTemporaryFile() as file:
        file.write(contents)
        file.flush()
        value = 1 if option & 1 else tf1.lookup.TextFileIndex.LINE_NUMBER
        initializer = tf1.lookup.TextFileInitializer(file.name, tf.string, 0, tf.int64, value)
        tf1.lookup.StaticHashTable(initializer, -1).lookup(tf.constant(["a", "z"]))
