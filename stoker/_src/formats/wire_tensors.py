"""Tensors in the messages of distributed sessions, written and read without intermediate copies.

    TensorProto      := 1: dtype  2: TensorShapeProto{ 2: Dim{ 1: size } }*  4: tensor_content  8: string*
    NamedTensorProto := 1: name   2: TensorProto

A generic encoder copies the elements into the message object and from there into the bytes. Here a message is a list of chunks, where the
elements of an array are a chunk by themselves, and all chunks are joined once. Large elements are aligned by an unknown field
before them, which readers skip, so that the receiver can use them in place.
"""

from __future__ import annotations

import ctypes
import functools
import math
from collections.abc import Iterator
from typing import Any

import numpy as np
from google.protobuf.message import DecodeError

from stoker._src.base import dtypes
from stoker._src.base.dtypes import DType, as_dtype
from stoker._src.base.errors import InvalidArgumentError
from stoker._src.formats.protos import TensorProto
from stoker._src.formats.tensor_proto import from_tensor_proto
from stoker._src.formats.varints import decode_varint, encode_varint

Chunk = bytes | memoryview
_ALIGNMENT = 64
_LARGE = 1 << 12  # bytes from which an array is aligned by the writer and used in place by the reader
_PADDING = 1999  # number of the unknown field
_MAX_RANK = 64
_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5


def _wide_varint(value: int) -> bytes:
    """Encodes a length in five bytes, whatever it is, so that offsets do not depend on it."""
    return bytes((value >> shift & 0x7F | (0x80 if shift < 28 else 0)) for shift in range(0, 35, 7))


@functools.lru_cache(maxsize=256)
def tag(number: int, wire: int = _BYTES) -> bytes:
    return encode_varint(number << 3 | wire)


@functools.lru_cache(maxsize=4096)
def text_field(number: int, text: str) -> bytes:
    data = text.encode()
    return tag(number) + encode_varint(len(data)) + data


def int_field(number: int, value: int) -> bytes:
    """Encodes an integer field; nothing for zero."""
    return tag(number, _VARINT) + encode_varint(value & 0xFFFF_FFFF_FFFF_FFFF) if value else b""


def size_of(chunks: list[Chunk]) -> int:
    return sum(len(chunk) for chunk in chunks)


def dtype_of(array: np.ndarray) -> DType:
    """Returns the dtype under which an array is sent; object arrays are strings."""
    return dtypes.string if array.dtype == np.object_ else as_dtype(array.dtype)


@functools.lru_cache(maxsize=4096)
def shape_header(kind: int, shape: tuple[int, ...]) -> bytes:
    dims = b"".join(
        tag(2) + encode_varint(len(size)) + size for size in (int_field(1, each) or b"\x08\x00" for each in shape)
    )
    return int_field(1, kind) + tag(2) + encode_varint(len(dims)) + dims


def tensor_chunks(array: np.ndarray, before: int | None = None) -> list[Chunk]:
    """Returns the TensorProto of an array. If `before`, the number of bytes in front of it, is given, large elements are aligned."""
    dtype = dtype_of(array)
    header = shape_header(dtype.as_datatype_enum, array.shape)
    if dtype is dtypes.string:
        chunks: list[Chunk] = [header]
        for item in array.ravel():
            data = item.encode() if isinstance(item, str) else bytes(item)
            chunks += (tag(8) + encode_varint(len(data)), data)
        return chunks
    if not array.size:
        return [header]
    if not array.flags.c_contiguous:
        array = np.ascontiguousarray(array)
    content = array.reshape(-1).view(np.uint8).data
    lead = tag(4) + encode_varint(len(content))
    if before is not None and len(content) >= _LARGE:
        opening = tag(_PADDING)
        taken = before + len(header) + len(opening) + 1 + len(lead)
        header += opening + encode_varint(-taken % _ALIGNMENT) + bytes(-taken % _ALIGNMENT)
    return [header, lead, content]


def named_tensor_chunks(number: int, name: str, array: np.ndarray, before: int) -> list[Chunk]:
    """Returns field `number` of a message, a NamedTensorProto. `before` is the number of bytes in front of it."""
    lead = text_field(1, name) + tag(2)
    opening = tag(number)
    # Both lengths are five bytes wide, so the position of the elements is known before the lengths are.
    start = before + len(opening) + 5 + len(lead) + 5
    tensor = tensor_chunks(array, start)
    size = size_of(tensor)
    return [opening + _wide_varint(len(lead) + 5 + size) + lead + _wide_varint(size), *tensor]


def tensor_field_chunks(number: int, array: np.ndarray, before: int) -> list[Chunk]:
    """Returns field `number` of a message, a TensorProto. `before` is the number of bytes in front of it."""
    opening = tag(number)
    tensor = tensor_chunks(array, before + len(opening) + 5)
    return [opening + _wide_varint(size_of(tensor)), *tensor]


def header(array: np.ndarray) -> bytes:
    """Returns dtype and shape of an array as field 2 of a message, a TensorProto without elements."""
    data = shape_header(dtype_of(array).as_datatype_enum, array.shape)
    return tag(2) + encode_varint(len(data)) + data


# -- reading -----------------------------------------------------------------------------------------------------


def _malformed(problem: str) -> InvalidArgumentError:
    return InvalidArgumentError(None, None, f"Malformed message: {problem}")


def _unfinished() -> InvalidArgumentError:
    return _malformed("it ends in a number, or a number has more than ten bytes.")


def read_varint(data: bytes, at: int, end: int) -> tuple[int, int]:
    return decode_varint(data, at, end, _unfinished)


def fields(data: bytes, start: int = 0, end: int | None = None) -> Iterator[tuple[int, int, int, int]]:
    """Yields (number, wire type, start, end) of each field of a message. A number's value is `start`, and its `end` is -1.

    Raises:
        InvalidArgumentError: the message is malformed.
    """
    at, end = start, len(data) if end is None else end
    while at < end:
        key, at = read_varint(data, at, end)
        number, wire = (key & 0xFFFF_FFFF) >> 3, key & 7
        if not number:
            raise _malformed("a field has the number 0.")
        if wire == _VARINT:
            value, at = read_varint(data, at, end)
            yield number, wire, value, -1
            continue
        if wire == _BYTES:
            size, at = read_varint(data, at, end)
        elif wire in (_FIXED64, _FIXED32):
            size = 8 if wire == _FIXED64 else 4
        else:
            raise _malformed(f"field {number} has wire type {wire}.")
        if size > end - at:
            raise _malformed(f"field {number} has {size} bytes, but {end - at} are left.")
        yield number, wire, at, at + size
        at += size


def read_tensor(data: bytes, start: int = 0, end: int | None = None) -> np.ndarray:
    """Returns the array in a TensorProto. Large arrays share the memory of `data`, which must not be used otherwise afterwards.

    Raises:
        InvalidArgumentError: the message is malformed, or its elements do not match its dtype and shape.
    """
    end = len(data) if end is None else end
    kind, dims, content, typed = 0, [], None, False
    for number, wire, at, stop in fields(data, start, end):
        if number == 1 and wire == _VARINT:
            kind = at
        elif number == 2 and wire == _BYTES:
            _read_dims(data, at, stop, dims)
        elif number == 4 and wire == _BYTES:
            content = (at, stop)
        elif number in (3, _PADDING):
            continue
        else:
            typed = True
    if typed or content is None or content[0] == content[1] or len(dims) > _MAX_RANK:
        return _read_generic(data[start:end])
    dtype = _pod_dtype(kind)
    if dtype is None:
        return _read_generic(data[start:end])
    count = math.prod(dims)
    if min(dims, default=0) < 0 or count * dtype.itemsize != content[1] - content[0]:
        raise InvalidArgumentError(
            None, None, f"TensorProto of shape {dims} and dtype {dtype} has {content[1] - content[0]} bytes of content."
        )
    if dtype == np.bool_ and np.frombuffer(data, np.uint8, count, content[0]).max(initial=0) > 1:
        raise InvalidArgumentError(None, None, f"TensorProto of shape {dims} has bytes other than 0 and 1 for bools.")
    return _array_in(data, content[0], dtype, count).reshape(dims)


def read_header(data: bytes) -> tuple[str, np.dtype, list[int]]:
    """Returns the name, dtype and shape of a NamedTensorProto of numbers whose elements come separately.

    Raises:
        InvalidArgumentError: the message is malformed, or the elements cannot come as bytes.
    """
    name, dtype, dims = read_named_header(data, 0, len(data))
    if dtype is None or dtype == np.bool_:
        raise _malformed(f"{name!r:.200} of shape {dims} does not have the dtype of a number.")
    return name, dtype, dims


def read_named_header(data: bytes, start: int, end: int) -> tuple[str, np.dtype | None, list[int]]:
    """Returns the name, dtype and shape of a NamedTensorProto without elements. The dtype is None if elements have no fixed size.

    Raises:
        InvalidArgumentError: the message is malformed.
    """
    name, kind, dims = "", 0, []
    for number, wire, at, stop in fields(data, start, end):
        if number == 1 and wire == _BYTES:
            name = read_text(data, at, stop)
        elif number == 2 and wire == _BYTES:
            for inner, inner_wire, first, last in fields(data, at, stop):
                if inner == 1 and inner_wire == _VARINT:
                    kind = first
                elif inner == 2 and inner_wire == _BYTES:
                    _read_dims(data, first, last, dims)
    if len(dims) > _MAX_RANK or min(dims, default=0) < 0:
        raise _malformed(f"the shape {dims} of {name!r:.200} is not that of a value.")
    return name, _pod_dtype(kind), dims


def _read_dims(data: bytes, start: int, end: int, dims: list[int]) -> None:
    for number, wire, at, stop in fields(data, start, end):
        if number == 2 and wire == _BYTES:
            size = 0
            for inner, kind, value, _ in fields(data, at, stop):
                if inner == 1 and kind == _VARINT:
                    size = value - (1 << 64) if value >> 63 else value
            dims.append(size)
        elif number == 3 and wire == _VARINT and at:
            dims.append(-1)


def _pod_dtype(kind: int) -> np.dtype | None:
    """Returns the NumPy dtype of elements that are stored as they are in memory; None for strings and unknown dtypes."""
    try:
        dtype = as_dtype(kind)
    except TypeError:
        return None
    if dtype.is_ref or dtype in (dtypes.string, dtypes.resource, dtypes.variant):
        return None
    return np.dtype(dtype.as_numpy_dtype)


def _read_generic(data: bytes) -> np.ndarray:
    try:
        message = TensorProto.FromString(data)
    except DecodeError:
        raise _malformed("it has a TensorProto that cannot be read.") from None
    return from_tensor_proto(message)


def _array_in(data: bytes, start: int, dtype: np.dtype, count: int) -> np.ndarray:
    size = count * dtype.itemsize
    flat = np.frombuffer(data, np.uint8, size, start)
    address = flat.__array_interface__["data"][0]
    if size < _LARGE or address % 16:
        return flat.copy().view(dtype)
    # The bytes came from the network and have no other owner, so the array may be writable, as torch requires.
    raw = (ctypes.c_char * size).from_address(address)
    raw.owner = data  # type: ignore[attr-defined]  # keeps the bytes alive
    return np.frombuffer(memoryview(raw), dtype)


def read_named_tensor(data: bytes, start: int, end: int) -> tuple[str, np.ndarray]:
    """Returns the name and the array of a NamedTensorProto.

    Raises:
        InvalidArgumentError: the message is malformed.
    """
    name, array = "", None
    for number, wire, at, stop in fields(data, start, end):
        if number == 1 and wire == _BYTES:
            name = read_text(data, at, stop)
        elif number == 2 and wire == _BYTES:
            array = read_tensor(data, at, stop)
    if array is None:
        raise _malformed(f"the value named {name!r:.200} has no tensor.")
    return name, array


def read_text(data: bytes, start: int, end: int) -> str:
    try:
        return data[start:end].decode()
    except UnicodeDecodeError:
        raise _malformed("a text is not UTF-8.") from None


def read_message(kind: Any, data: bytes) -> Any:
    """Parses a message without tensors.

    Raises:
        InvalidArgumentError: the message is malformed.
    """
    try:
        return kind.FromString(data)
    except (DecodeError, UnicodeDecodeError):
        raise _malformed(f"it is no {kind.__name__}.") from None
