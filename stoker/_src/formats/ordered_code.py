"""Keys of tensor slices: numbers and strings encoded so that the bytes sort in the order of the values.

    slice key = number 0, string name, number of dimensions, then per dimension signed start, signed length

A dimension that is covered completely has start 0 and length -1. Keys of whole tensors are their names, which never start
with a zero byte.
"""

from __future__ import annotations

from collections.abc import Sequence

Extent = tuple[int, int]
"""(start, length) along one dimension; length -1 is the whole dimension."""


def encode_number(value: int) -> bytes:
    """Encodes a number as a count byte and that many bytes, high byte first."""
    body = value.to_bytes((value.bit_length() + 7) // 8, "big")
    return bytes([len(body)]) + body


def encode_string(text: bytes) -> bytes:
    """Escapes 0x00 and 0xff, and appends a terminator that sorts before every continuation."""
    if b"\0" in text or b"\xff" in text:
        text = b"".join({0: b"\0\xff", 0xFF: b"\xff\0"}.get(byte, bytes([byte])) for byte in text)
    return text + b"\0\x01"


def encode_signed(value: int) -> bytes:
    """Encodes a signed number: one leading 1 bit per byte (0 bits if negative), the opposite bit, then two's complement."""
    magnitude = ~value if value < 0 else value
    if magnitude < 64:
        return bytes([(0x80 ^ value) & 0xFF])
    length = 2
    while magnitude >= 1 << (7 * length - 1):
        length += 1
    body = bytearray((value & ((1 << 80) - 1)).to_bytes(10, "big")[10 - length :])
    # The header's `length` ones are XORed onto the sign bits; the first byte holds at most eight of them.
    header = (1 << 16) - (1 << (16 - length))
    body[0] ^= header >> 8
    body[1] ^= header & 0xFF
    return bytes(body)


def encode_slice_key(name: str, extents: Sequence[Extent]) -> bytes:
    """Returns the key of a slice of the tensor `name`."""
    parts = [encode_number(0), encode_string(name.encode()), encode_number(len(extents))]
    for start, length in extents:
        parts += [encode_signed(start), encode_signed(length)]
    return b"".join(parts)
