"""Reads and writes selected fields of a serialized message: the core of TensorFlow's DecodeProtoV2 and EncodeProto.

Unlike a full parse, reading returns submessages as bytes, does not merge submessages of a field
that occurs twice, skips fields that are not requested, and accepts text that is not UTF-8. Writing does not validate its input: it accepts
proto3 defaults, several values of a singular field, and bytes that are not a valid submessage.

    message := field*
    field   := tag payload        tag = varint (field number << 3 | wire type)
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
from google.protobuf.descriptor import FieldDescriptor

from stoker._src.base.errors import DataLossError
from stoker._src.formats.varints import decode_varint, encode_varint

VARINT, FIXED64, CHUNK, START_GROUP, END_GROUP, FIXED32 = range(6)
UNSET: Any = object()
"""The value of a field that may have one and came packed: TensorFlow counts it, and leaves the default."""
_MAX_DEPTH = 100  # maximum nesting of groups, as in protobuf


def _lost(message: str) -> DataLossError:
    return DataLossError(None, None, message)


def _unfinished() -> DataLossError:
    return _lost("Failed reading a number: the message ends in it, or it has more than ten bytes")


def _varint(data: bytes, at: int) -> tuple[int, int]:
    return decode_varint(data, at, len(data), _unfinished)


def _signed(bits: int) -> Callable[[int], int]:
    top, mask = 1 << (bits - 1), (1 << bits) - 1
    return lambda value: ((value & mask) ^ top) - top


def _zigzag(bits: int) -> Callable[[int], int]:
    mask = (1 << bits) - 1
    return lambda value: ((value & mask) >> 1) ^ -(value & 1)


class _Codec(NamedTuple):
    """The wire encoding of a type: a struct format of fixed size, or a conversion from a varint."""

    wire: int
    form: str = ""
    convert: Callable[[int], Any] = int


_CODECS = {
    FieldDescriptor.TYPE_DOUBLE: _Codec(FIXED64, "<d"),
    FieldDescriptor.TYPE_FIXED64: _Codec(FIXED64, "<Q"),
    FieldDescriptor.TYPE_SFIXED64: _Codec(FIXED64, "<q"),
    FieldDescriptor.TYPE_FLOAT: _Codec(FIXED32, "<f"),
    FieldDescriptor.TYPE_FIXED32: _Codec(FIXED32, "<I"),
    FieldDescriptor.TYPE_SFIXED32: _Codec(FIXED32, "<i"),
    FieldDescriptor.TYPE_INT32: _Codec(VARINT, convert=_signed(32)),
    FieldDescriptor.TYPE_INT64: _Codec(VARINT, convert=_signed(64)),
    FieldDescriptor.TYPE_UINT32: _Codec(VARINT, convert=lambda value: value & 0xFFFF_FFFF),
    FieldDescriptor.TYPE_UINT64: _Codec(VARINT),
    FieldDescriptor.TYPE_SINT32: _Codec(VARINT, convert=_zigzag(32)),
    FieldDescriptor.TYPE_SINT64: _Codec(VARINT, convert=_zigzag(64)),
    FieldDescriptor.TYPE_BOOL: _Codec(VARINT, convert=bool),
    FieldDescriptor.TYPE_ENUM: _Codec(VARINT, convert=_signed(32)),
    FieldDescriptor.TYPE_STRING: _Codec(CHUNK),
    FieldDescriptor.TYPE_BYTES: _Codec(CHUNK),
    FieldDescriptor.TYPE_MESSAGE: _Codec(CHUNK),
    FieldDescriptor.TYPE_GROUP: _Codec(START_GROUP),
}


def repeated(field: Any) -> bool:
    return field.is_repeated if hasattr(field, "is_repeated") else field.label == FieldDescriptor.LABEL_REPEATED


def read_fields(data: bytes, fields: Sequence[Any]) -> list[list[Any]]:
    """Returns the values of the given fields of a message, in wire order. A field that is not repeated has its last value.

    Args:
        data: the message.
        fields: descriptors. If a field is listed twice, only the first of its results has the values.

    Returns:
        For each field, a list of numbers or of bytes (a group includes its tags), or UNSET.

    Raises:
        DataLossError: the message is damaged.
    """
    found: list[list[Any]] = [[] for _ in fields]
    places: dict[int, int] = {}
    for place, field in enumerate(fields):
        places.setdefault(field.number, place)
    at = 0
    while at < len(data):
        start = at
        tag, at = _varint(data, at)
        number, wire = (tag & 0xFFFF_FFFF) >> 3, tag & 7
        if number == 0:
            raise _lost(f"Failed reading a field: the tag at byte {start} has no number")
        place = places.get(number)
        end = _skipped(data, at, number, wire)
        if place is not None:
            _take(found[place], fields[place], wire, data, start, at, end)
        at = end
    return found


def _take(values: list[Any], field: Any, wire: int, data: bytes, start: int, at: int, end: int) -> None:
    """Adds the bytes from `at` (from `start` with the tag) to `end` to a field's values, if the wire type matches."""
    codec = _CODECS[field.type]
    if wire == codec.wire:
        if wire == CHUNK:
            value = data[_varint(data, at)[1] : end]
        elif wire == START_GROUP:
            value = data[start:end]
        else:
            value = _number(codec, data, at)[0]
        if not repeated(field):
            values.clear()
        values.append(value)
    elif wire == CHUNK and codec.wire in (VARINT, FIXED32, FIXED64):
        _, at = _varint(data, at)
        packed = _packed(codec, data[at:end])
        if repeated(field):
            values += packed
        elif not packed:
            return
        elif values:
            raise _lost(f"Packed values of field {field.number} that may have one: it has it already")
        else:
            values.append(UNSET)


def _number(codec: _Codec, data: bytes, at: int) -> tuple[Any, int]:
    if codec.form:
        return struct.unpack_from(codec.form, data, at)[0], at + struct.calcsize(codec.form)
    value, at = _varint(data, at)
    return codec.convert(value), at


def _packed(codec: _Codec, data: bytes) -> list[Any]:
    if codec.form and len(data) % struct.calcsize(codec.form):
        raise _lost(f"Failed reading packed numbers: {len(data)} bytes of {struct.calcsize(codec.form)} each")
    values, at = [], 0
    while at < len(data):
        value, at = _number(codec, data, at)
        values.append(value)
    return values


def _skipped(data: bytes, at: int, number: int, wire: int, depth: int = 0) -> int:
    """Returns the end of the payload at `at`."""
    if wire == VARINT:
        return _varint(data, at)[1]
    if wire == START_GROUP:
        if depth > _MAX_DEPTH:
            raise _lost(f"Failed skipping a group: more than {_MAX_DEPTH} inside of one another")
        while True:
            tag, at = _varint(data, at)
            inner, wire = (tag & 0xFFFF_FFFF) >> 3, tag & 7
            if wire == END_GROUP:
                if inner != number:
                    raise _lost(f"Failed skipping group {number}: it ends as {inner}")
                return at
            at = _skipped(data, at, inner, wire, depth + 1)
    if wire == CHUNK:
        length, at = _varint(data, at)
        at += length & 0xFFFF_FFFF
    elif wire in (FIXED32, FIXED64):
        at += 4 if wire == FIXED32 else 8
    else:
        raise _lost(f"Failed skipping field {number}: no wire type is {wire}")
    if at > len(data):
        raise _lost(f"Failed reading field {number}: the message ends {at - len(data)} bytes early")
    return at


# ---- writing ----


def _number_bytes(field: Any, value: Any) -> bytes:
    """Encodes a number in the field's type. Out-of-range values wrap, as in a C cast."""
    codec = _CODECS[field.type]
    if codec.form == "<d":
        return struct.pack("<d", value)
    if codec.form == "<f":
        with np.errstate(over="ignore"):  # overflows to infinity
            return np.float32(value).tobytes()
    if codec.form:
        size = struct.calcsize(codec.form)
        return (int(value) & ((1 << 8 * size) - 1)).to_bytes(size, "little")
    if field.type in (FieldDescriptor.TYPE_SINT32, FieldDescriptor.TYPE_SINT64):
        bits = 32 if field.type == FieldDescriptor.TYPE_SINT32 else 64
        narrow = _signed(bits)(int(value))
        return encode_varint((narrow << 1 ^ narrow >> (bits - 1)) & ((1 << bits) - 1))
    return encode_varint(codec.convert(int(value)))


def write_field(field: Any, values: Sequence[Any]) -> bytes:
    """Encodes the values of a field (numbers or bytes) as part of a message."""
    wire = _CODECS[field.type].wire
    if not values:
        return b""
    tag = field.number << 3
    if wire == CHUNK:
        head = encode_varint(tag | CHUNK)
        return b"".join(head + encode_varint(len(value)) + value for value in values)
    if wire == START_GROUP:
        head, tail = encode_varint(tag | START_GROUP), encode_varint(tag | END_GROUP)
        return b"".join(head + value + tail for value in values)
    numbers = [_number_bytes(field, value) for value in values]
    if field.is_packed:
        joined = b"".join(numbers)
        return encode_varint(tag | CHUNK) + encode_varint(len(joined)) + joined
    head = encode_varint(tag | wire)
    return b"".join(head + number for number in numbers)
