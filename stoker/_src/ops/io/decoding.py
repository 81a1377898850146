"""Ops that decode strings: raw bytes, base64, compressed bytes, CSV and JSON."""

from __future__ import annotations

import base64
import itertools
import re
import zlib
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch

from stoker._src.base import dtypes
from stoker._src.base.dtypes import DType, as_dtype
from stoker._src.base.errors import DataLossError, InvalidArgumentError
from stoker._src.base.export import export
from stoker._src.base.shapes import UNKNOWN_SHAPE, Shape
from stoker._src.formats import csv
from stoker._src.formats.example_json import decode_json_example as json_to_example
from stoker._src.graph.definition import INTS, STRING, TYPES, define, one_of, unchanged
from stoker._src.graph.tensor import Tensor
from stoker._src.ops.support import rows
from stoker._src.ops.support.dispatching import elementwise
from stoker._src.ops.support.movement import allocatable
from stoker._src.ops.support.values import from_numpy


def each_string(strings: np.ndarray, function: Callable[[bytes], bytes]) -> np.ndarray:
    """Applies `function` to every element."""
    result = np.empty(strings.shape, dtype=object)
    result.reshape(-1)[:] = [function(item) for item in strings.ravel().tolist()]
    return result


# ---- DecodeRaw --------------------------------------------------------------------------------------------------

_RAW = (
    dtypes.float16, dtypes.float32, dtypes.float64, dtypes.int32, dtypes.uint16, dtypes.uint8, dtypes.int16,
    dtypes.int8, dtypes.int64, dtypes.complex64, dtypes.complex128, dtypes.bool_, dtypes.bfloat16,
)  # fmt: skip
DECODE_RAW = define(
    "DecodeRaw(bytes: string) -> (output: out_type)", out_type=one_of(*_RAW), little_endian=True
).not_differentiable()


def _elements(data: bytes, dtype: DType, little_endian: bool) -> np.ndarray:
    """Decodes bytes as numbers, in a writable copy."""
    if dtype is dtypes.bool_:
        return np.frombuffer(data, np.uint8) != 0
    array = np.frombuffer(bytearray(data), dtype.as_numpy_dtype)
    if not little_endian and dtype.size > 1:
        # The real and imaginary parts of a complex number are byte-swapped separately.
        part = dtype.size // 2 if dtype.is_complex else dtype.size
        return array.view(f"u{part}").byteswap().view(dtype.as_numpy_dtype)
    return array


@DECODE_RAW.kernel
def decode_raw_kernel(bytes: np.ndarray, *, out_type: DType, little_endian: bool) -> torch.Tensor:
    strings = bytes.ravel().tolist()
    if not strings:
        return from_numpy(np.empty((*bytes.shape, 0), out_type.as_numpy_dtype))
    size = len(strings[0])
    for i, item in enumerate(strings):
        if len(item) != size:
            raise InvalidArgumentError(
                None,
                None,
                "DecodeRaw requires input strings to all be the same size, but "
                f"element {i} has size {size} != {len(item)}",
            )
    if size % out_type.size:
        raise InvalidArgumentError(
            None,
            None,
            f"Input to DecodeRaw has length {size} that is not a multiple of {out_type.size}, "
            f"the size of {out_type.name}",
        )
    numbers = _elements(strings[0] if len(strings) == 1 else b"".join(strings), out_type, little_endian)
    return from_numpy(numbers.reshape(*bytes.shape, size // out_type.size))


DECODE_RAW.rows(rows.whole)


@DECODE_RAW.shape
def decode_raw_shape(bytes: Shape) -> Shape:
    return UNKNOWN_SHAPE if bytes.rank is None else Shape((*bytes, None))


DECODE_PADDED_RAW = define(
    "DecodePaddedRaw(input_bytes: string, fixed_length: scalar host int32) -> (output: out_type)",
    out_type=one_of(*(dtype for dtype in _RAW if dtype is not dtypes.bool_ and not dtype.is_complex)),
    little_endian=True,
).not_differentiable()


@DECODE_PADDED_RAW.kernel
def decode_padded_raw_kernel(
    input_bytes: np.ndarray, fixed_length: Any, *, out_type: DType, little_endian: bool
) -> torch.Tensor:
    if fixed_length <= 0:
        raise InvalidArgumentError(None, None, f"fixed_length ({fixed_length}) must be greater than zero.")
    if fixed_length % out_type.size:
        raise InvalidArgumentError(
            None,
            None,
            f"fixed_length ({fixed_length}) must be a multiple of the size of out_type ({out_type.size})",
        )
    allocatable([input_bytes.size, fixed_length], 2)
    data = b"".join([item[:fixed_length].ljust(fixed_length, b"\0") for item in input_bytes.ravel().tolist()])
    numbers = _elements(data, out_type, little_endian)
    return from_numpy(numbers.reshape(*input_bytes.shape, fixed_length // out_type.size))


@DECODE_PADDED_RAW.shape(values=["fixed_length"])
def decode_padded_raw_shape(input_bytes: Shape, fixed_length: Any, *, out_type: DType) -> Shape:
    width = None
    if fixed_length is not None:
        if fixed_length < 0:
            raise InvalidArgumentError(None, None, f"fixed_length ({fixed_length}) must be greater than zero.")
        if int(fixed_length) % out_type.size:
            raise InvalidArgumentError(
                None,
                None,
                f"Dimension size must be evenly divisible by {out_type.size} but is {int(fixed_length)} (fixed_length).",
            )
        width = int(fixed_length) // out_type.size
    return UNKNOWN_SHAPE if input_bytes.rank is None else Shape((*input_bytes, width))


@export(v2="io.decode_raw")
def decode_raw(
    input_bytes: Any, out_type: Any, little_endian: bool = True, fixed_length: Any = None, name: str | None = None
) -> Tensor:
    """Decodes the bytes of each string as numbers, in a new last dimension.

    Args:
        input_bytes: strings, all of the same length unless `fixed_length` is given.
        out_type: the dtype of the numbers.
        little_endian: whether the low byte of a number comes first.
        fixed_length: the number of bytes to truncate or zero-pad each string to; a multiple of the size
            of `out_type`.
        name: the op's name.
    """
    if fixed_length is None:
        return DECODE_RAW(input_bytes, out_type=as_dtype(out_type), little_endian=little_endian, name=name)
    return DECODE_PADDED_RAW(
        input_bytes, fixed_length, out_type=as_dtype(out_type), little_endian=little_endian, name=name
    )


@export(v1=("decode_raw", "io.decode_raw"))
def decode_raw_v1(
    input_bytes: Any = None,
    out_type: Any = None,
    little_endian: bool = True,
    name: str | None = None,
    bytes: Any = None,
) -> Tensor:
    """Decodes the bytes of each string as numbers. `bytes` is an old name of `input_bytes`.

    Raises:
        ValueError: both or neither of the two names are given, or `out_type` is missing.
    """
    if input_bytes is not None and bytes is not None:
        raise ValueError("Cannot specify both 'bytes' and 'input_bytes'.")
    input_bytes = bytes if input_bytes is None else input_bytes
    if out_type is None:
        raise ValueError("decode_raw_v1() missing 1 positional argument: 'out_type'")
    if input_bytes is None:
        raise ValueError("decode_raw_v1() missing 1 positional argument: 'input_bytes'")
    return DECODE_RAW(input_bytes, out_type=as_dtype(out_type), little_endian=little_endian, name=name)


# ---- base64 -----------------------------------------------------------------------------------------------------

_BASE64 = re.compile(rb"[A-Za-z0-9_-]*")


def decode_base64_bytes(text: bytes) -> bytes:
    """Decodes the URL-safe alphabet. Padding may be omitted; if present, it must be correct."""
    digits = text
    if len(text) % 4 == 0 and text.endswith(b"="):
        digits = text[:-2] if text.endswith(b"==") else text[:-1]
    if len(digits) % 4 == 1:
        problem = (
            "Base64 string length cannot be 1 modulo 4." if digits == text else "Invalid character found in base64."
        )
        raise InvalidArgumentError(None, None, problem)
    if _BASE64.fullmatch(digits) is None:
        raise InvalidArgumentError(None, None, "Invalid character found in base64.")
    return base64.urlsafe_b64decode(digits + b"=" * (-len(digits) % 4))


DECODE_BASE64 = define("DecodeBase64(input: string) -> (output: string)").not_differentiable()
DECODE_BASE64.kernel(lambda input: each_string(input, decode_base64_bytes))
DECODE_BASE64.shape(unchanged)

ENCODE_BASE64 = define("EncodeBase64(input: string) -> (output: string)", pad=False).not_differentiable()


@ENCODE_BASE64.kernel
def encode_base64_kernel(input: np.ndarray, *, pad: bool) -> np.ndarray:
    encoded = each_string(input, base64.urlsafe_b64encode)
    return encoded if pad else each_string(encoded, lambda text: text.rstrip(b"="))


ENCODE_BASE64.shape(unchanged)


@export("io.decode_base64", v1="decode_base64")
@elementwise
def decode_base64(input: Any, name: str | None = None) -> Tensor:
    """Decodes URL-safe base64, padded or not."""
    return DECODE_BASE64(input, name=name)


@export("io.encode_base64", v1="encode_base64")
@elementwise
def encode_base64(input: Any, pad: bool = False, name: str | None = None) -> Tensor:
    """Encodes each string in URL-safe base64. With `pad`, the result is padded with "=" to a multiple of four."""
    return ENCODE_BASE64(input, pad=pad, name=name)


# ---- compressed bytes -------------------------------------------------------------------------------------------

INFLATED_LIMIT = 1 << 31
"""The most bytes one string may unpack to."""


def inflate(data: bytes, gzip: bool) -> bytes:
    """Decompresses all members of a gzip file, or the first zlib stream, and ignores what follows.

    As in TensorFlow, truncated input gives the data up to the truncation.
    """
    parts: list[bytes] = []
    total = 0
    while data:
        stream = zlib.decompressobj(zlib.MAX_WBITS | 16 if gzip else zlib.MAX_WBITS)
        try:
            part = stream.decompress(data, INFLATED_LIMIT - total + 1)
        except zlib.error as error:
            text = str(error).split(": ")[-1]
            raise DataLossError(None, None, f"inflate() failed with error -3: {text}") from None
        parts.append(part)
        total += len(part)
        if total > INFLATED_LIMIT:
            raise InvalidArgumentError(None, None, f"A string of more than {INFLATED_LIMIT} bytes after decompression.")
        data = stream.unused_data if gzip else b""
    return b"".join(parts)


DECODE_COMPRESSED = define("DecodeCompressed(bytes: string) -> (output: string)", compression_type="")


@DECODE_COMPRESSED.kernel
def decode_compressed_kernel(bytes: np.ndarray, *, compression_type: str) -> np.ndarray:
    if compression_type == "":
        return bytes.copy()
    if compression_type not in ("ZLIB", "GZIP"):
        raise InvalidArgumentError(
            None, None, f"Only ZLIB, GZIP or NONE are supported compressions, not {compression_type!r}"
        )
    return each_string(bytes, lambda data: inflate(data, compression_type == "GZIP"))


DECODE_COMPRESSED.shape(unchanged)


@export("io.decode_compressed", v1="decode_compressed")
def decode_compressed(bytes: Any, compression_type: str = "", name: str | None = None) -> Tensor:
    """Decompresses each string: "" (unchanged), "ZLIB" or "GZIP"."""
    return DECODE_COMPRESSED(bytes, compression_type=compression_type, name=name)


# ---- JSON -------------------------------------------------------------------------------------------------------

DECODE_JSON_EXAMPLE = define("DecodeJSONExample(json_examples: string) -> (binary_examples: string)")
DECODE_JSON_EXAMPLE.kernel(lambda json_examples: each_string(json_examples, json_to_example))
DECODE_JSON_EXAMPLE.shape(unchanged)


@export("io.decode_json_example", v1="decode_json_example")
def decode_json_example(json_examples: Any, name: str | None = None) -> Tensor:
    """Converts Examples in protobuf's JSON mapping to the binary messages that the parsing functions take."""
    return DECODE_JSON_EXAMPLE(json_examples, name=name)


# ---- CSV --------------------------------------------------------------------------------------------------------

_CSV = (dtypes.float32, dtypes.float64, dtypes.int32, dtypes.int64, dtypes.string)
DECODE_CSV = define(
    "DecodeCSV(records: string, record_defaults: host [OUT_TYPE]) -> (output: [OUT_TYPE])",
    OUT_TYPE=TYPES(allowed=_CSV, minimum=1), field_delim=STRING(","), use_quote_delim=True, na_value="",
    select_cols=INTS(()),
)  # fmt: skip


def _csv_column(position: int, default: Any, dtype: DType) -> csv.CsvColumn:
    """Creates a column from its default: a scalar or a vector of one element. An empty vector makes the field required."""
    if isinstance(default, list):
        if len(default) > 1:
            raise InvalidArgumentError(
                None, None, f"There should only be 1 default per field but field {position} has {len(default)}"
            )
        if default and isinstance(default[0], list):
            raise InvalidArgumentError(None, None, "Each record default should be at most rank 1")
        default = default[0] if default else None
    return csv.CsvColumn(dtype, default)


@DECODE_CSV.kernel
def decode_csv_kernel(
    records: np.ndarray,
    record_defaults: Sequence[Any],
    *,
    OUT_TYPE: Sequence[DType],
    field_delim: str | bytes,
    use_quote_delim: bool,
    na_value: str | bytes,
    select_cols: Sequence[int],
) -> list[Any]:
    columns = [_csv_column(i, *pair) for i, pair in enumerate(zip(record_defaults, OUT_TYPE))]
    decoded = csv.decode_csv(
        records.ravel().tolist(),
        columns,
        field_delim.encode() if isinstance(field_delim, str) else field_delim,
        use_quote_delim,
        na_value.encode() if isinstance(na_value, str) else na_value,
        select_cols or None,
    )
    return [from_numpy(column.reshape(records.shape)) for column in decoded]


DECODE_CSV.rows(rows.whole)


@DECODE_CSV.shape
def decode_csv_shape(records: Shape, record_defaults: Sequence[Shape]) -> list[Shape]:
    for default in record_defaults:
        default.at_most(1)
        if default.rank == 1 and default[0] is not None and default[0] > 1:
            raise InvalidArgumentError(
                None, None, "Shape of a default must be a length-0 or length-1 vector, or a scalar."
            )
    return [records] * len(record_defaults)


@export(v2="io.decode_csv")
def decode_csv(
    records: Any,
    record_defaults: Sequence[Any],
    field_delim: str = ",",
    use_quote_delim: bool = True,
    na_value: str = "",
    select_cols: Sequence[int] | None = None,
    name: str | None = None,
) -> list[Tensor]:
    """Parses CSV records into one tensor per column, each with the shape of `records`.

    Args:
        records: strings, one record each (RFC 4180, without line ends).
        record_defaults: a default for each column, which also determines its dtype (float32, float64, int32, int64 or
            string). An empty vector means that the field is required.
        field_delim: the delimiter character.
        use_quote_delim: whether double quotes are quotation marks.
        na_value: a text that counts as an empty field.
        select_cols: increasing indices of the columns to parse; by default all.
        name: the op's name.

    Raises:
        ValueError: `select_cols` is not increasing, is negative, or does not match the length of `record_defaults`.
    """
    chosen = [] if select_cols is None else list(select_cols)
    if any(a >= b for a, b in itertools.pairwise(chosen)):
        raise ValueError("select_cols is not strictly increasing.")
    if chosen and chosen[0] < 0:
        raise ValueError("select_cols contains negative values.")
    if select_cols is not None and len(chosen) != len(record_defaults):
        raise ValueError("Length of select_cols and record_defaults do not match.")
    return DECODE_CSV(
        records,
        record_defaults,
        field_delim=field_delim,
        use_quote_delim=use_quote_delim,
        na_value=na_value,
        select_cols=chosen,
        name=name,
    )


@export(v1=("decode_csv", "io.decode_csv"))
def decode_csv_v1(
    records: Any,
    record_defaults: Sequence[Any],
    field_delim: str = ",",
    use_quote_delim: bool = True,
    name: str | None = None,
    na_value: str = "",
    select_cols: Sequence[int] | None = None,
) -> list[Tensor]:
    """Parses CSV records into one tensor per column. See the 2.x form, which has another order of the last arguments."""
    return decode_csv(records, record_defaults, field_delim, use_quote_delim, na_value, select_cols, name)
