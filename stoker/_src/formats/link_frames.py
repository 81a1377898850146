"""The frames that two stoker tasks exchange over a link, a TCP connection of their own.

    frame  := kind: u8  step: i64  head size: u32  body size: u64  head  body          (little-endian)
    head   := fields of a message; 3: value { 1: key  2: TensorProto without elements  3: bytes in the body }, other numbers by kind
    body   := the elements of the small values, each aligned to 64 bytes, then those of the large values, without gaps

The body of a value that has no fixed size per element, such as a string, is a whole TensorProto.

The head of a step repeats in every step of the same kind, so both sides keep what they made of it: a writer by keys, dtypes and shapes, a
reader by the bytes. The elements go from the sender's memory to the socket, and from the socket to the receiver's tensor.
"""

from __future__ import annotations

import functools
import math
import struct
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np

from stoker._src.base import dtypes
from stoker._src.base.dtypes import as_dtype
from stoker._src.base.errors import InvalidArgumentError
from stoker._src.formats import wire_tensors as wire
from stoker._src.formats.varints import encode_varint

RUN, RESULT, VALUES, CANCEL, RECEIPT = 1, 2, 3, 4, 5
ASKS_FOR_RECEIPT = 11
"""The number of a field in the head of VALUES: the other side confirms that they have arrived."""
PREFIX = struct.Struct("<BqIQ")
MOST_HEAD_BYTES = 64 << 20
LARGE = 1 << 16
"""Bytes from which a value has memory of its own at the receiver. Smaller ones of a frame share one block."""
_ALIGNMENT = 64
_MOST_REMEMBERED = 1024
_LONGEST_REMEMBERED = 1 << 20


@dataclass(frozen=True)
class Place:
    """Where a value is: at an offset of the block of small values, or in a block of its own."""

    key: str
    dtype: np.dtype | None  # None: a TensorProto
    dims: tuple[int, ...]
    offset: int
    size: int
    is_large: bool


@dataclass
class Head:
    """A parsed head."""

    places: list[Place] = field(default_factory=list)
    small: int = 0  # bytes of the block of small values
    size: int = 0  # bytes of the whole body
    texts: dict[int, list[str]] = field(default_factory=dict)  # fields with bytes, by number
    numbers: dict[int, int] = field(default_factory=dict)
    raw: dict[int, bytes] = field(default_factory=dict)

    def text(self, number: int) -> str:
        found = self.texts.get(number)
        return found[0] if found else ""


# -- writing -----------------------------------------------------------------------------------------------------


@functools.lru_cache(maxsize=_MOST_REMEMBERED)
def _entries(described: tuple[tuple[str, np.dtype, tuple[int, ...], int], ...]) -> tuple[bytes, tuple[bytes, ...], int]:
    """Returns the entries of values in a head, what pads each small value, and the size of the body."""
    entries, pads, at = [], [], 0
    for key, dtype, shape, size in described:
        kind = dtypes.string if dtype == np.object_ else as_dtype(dtype)
        header = wire.shape_header(kind.as_datatype_enum, shape)
        entry = wire.text_field(1, key) + wire.tag(2) + encode_varint(len(header)) + header + wire.int_field(3, size)
        entries.append(wire.tag(3) + encode_varint(len(entry)) + entry)
        pads.append(b"" if size >= LARGE else bytes(-size % _ALIGNMENT))
        at += size + len(pads[-1])
    return b"".join(entries), tuple(pads), at


Value = tuple[str, np.dtype, tuple[int, ...], Sequence[wire.Chunk]]
"""Key, dtype, shape and the chunks of the elements."""


def value_of(key: str, array: np.ndarray) -> Value:
    """Describes an array. The chunks share its memory."""
    if array.dtype == np.object_:
        return key, array.dtype, array.shape, (b"".join(wire.tensor_chunks(array)),)
    if not array.size:
        return key, array.dtype, array.shape, ()
    flat = array if array.flags.c_contiguous else np.ascontiguousarray(array)
    return key, array.dtype, array.shape, (flat.reshape(-1).view(np.uint8).data,)


def encode(kind: int, step: int, head: bytes, values: Sequence[Value] = ()) -> list[wire.Chunk]:
    """Returns the chunks of a frame. `head` are the fields of its head besides the values."""
    sizes = [sum(map(len, value[3])) for value in values]
    if len(sizes) > 1 and max(sizes) >= LARGE:
        order = sorted(range(len(sizes)), key=lambda i: sizes[i] >= LARGE)
        values, sizes = [values[i] for i in order], [sizes[i] for i in order]
    entries, pads, size = _entries(tuple((v[0], v[1], v[2], n) for v, n in zip(values, sizes)))
    chunks: list[wire.Chunk] = [PREFIX.pack(kind, step, len(head) + len(entries), size) + head + entries]
    for value, pad in zip(values, pads):
        chunks += value[3]
        if pad:
            chunks.append(pad)
    return chunks


# -- reading -----------------------------------------------------------------------------------------------------


def read_head(data: bytes) -> Head:
    """Parses a head.

    Raises:
        InvalidArgumentError: it is malformed.
    """
    head = Head()
    large = False
    for number, kind, at, end in wire.fields(data):
        if kind == 0:
            head.numbers[number] = at
        elif number == 3 and kind == 2:
            place = _place(data, at, end, head.small)
            if place.is_large:
                large = True
                head.size += place.size
            elif large:
                raise InvalidArgumentError(None, None, "Malformed frame: a small value after a large one.")
            else:
                head.small += place.size + -place.size % _ALIGNMENT
            head.places.append(place)
        elif number == 2 and kind == 2:
            head.raw[number] = data[at:end]
        elif kind == 2:
            head.texts.setdefault(number, []).append(wire.read_text(data, at, end))
    head.size += head.small
    return head


def _place(data: bytes, start: int, end: int, offset: int) -> Place:
    size = 0
    for number, kind, at, _ in wire.fields(data, start, end):
        if number == 3 and kind == 0:
            size = at
    key, dtype, dims = wire.read_named_header(data, start, end)
    if dtype is not None and math.prod(dims) * dtype.itemsize != size:
        raise InvalidArgumentError(
            None, None, f"Malformed frame: {key:.200} of shape {dims} and dtype {dtype} has {size} bytes."
        )
    return Place(key, dtype, tuple(dims), offset, size, size >= LARGE)


class Heads:
    """Reads heads, and remembers those that repeat."""

    def __init__(self) -> None:
        self._known: dict[bytes, Head] = {}

    def read(self, data: bytes) -> Head:
        found = self._known.get(data)
        if found is None:
            found = read_head(data)
            if len(data) <= _LONGEST_REMEMBERED:
                if len(self._known) >= _MOST_REMEMBERED:
                    self._known.clear()
                self._known[data] = found
        return found


def arrays(head: Head, small: memoryview, large: Iterator[memoryview]) -> dict[str, np.ndarray]:
    """Returns the values of a frame by key. Arrays share the memory of the blocks.

    Raises:
        InvalidArgumentError: elements do not match their dtype.
    """
    found: dict[str, np.ndarray] = {}
    for place in head.places:
        block = next(large) if place.is_large else small
        offset = 0 if place.is_large else place.offset
        dtype = place.dtype
        if dtype is None:
            found[place.key] = wire.read_tensor(bytes(block[offset : offset + place.size]))
            continue
        array: np.ndarray = np.ndarray(place.dims, dtype, block, offset) if place.size else np.empty(place.dims, dtype)
        if dtype == np.bool_ and array.view(np.uint8).max(initial=0) > 1:
            raise InvalidArgumentError(None, None, f"{place.key:.200} has bytes other than 0 and 1 for bools.")
        found[place.key] = array
    return found
