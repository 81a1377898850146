"""Keys of tensor slices: numbers and strings encoded so that bytes sort as the values do.

    slice key = number 0, string name, number of dimensions, then per dimension signed start, signed length

A dimension that is covered whole has start 0 and length -1. Keys of whole tensors are their names, which never begin
with a zero byte.
"""

from __future__ import annotations

from collections.abc import Sequence

Extent = tuple[int, int]
"""(start, length) along one dimension; length -1 is the whole dimension."""


def encode_number(value: int) -> bytes:
    """A count byte, then that many bytes, high ones first."""
    body = value.to_bytes((value.bit_length() + 7) // 8, "big")
    return bytes([len(body)]) + body


def encode_string(text: bytes) -> bytes:
    """The bytes with 0x00 and 0xff escaped, and an end that sorts before every continuation."""
    if b"\0" in text or b"\xff" in text:
        text = b"".join({0: b"\0\xff", 0xFF: b"\xff\0"}.get(byte, bytes([byte])) for byte in text)
    return text + b"\0\x01"


def encode_signed(value: int) -> bytes:
    """As many leading ones (zeros for negative numbers) as bytes; then the sign's opposite, then two's complement."""
    magnitude = ~value if value < 0 else value
    if magnitude < 64:
        return bytes([(0x80 ^ value) & 0xFF])
    length = 2
    while magnitude >= 1 << (7 * length - 1):
        length += 1
    body = bytearray((value & ((1 << 80) - 1)).to_bytes(10, "big")[10 - length :])
    # The header's ones are laid over the sign bits: `length` of them, the first byte taking at most eight.
    header = (1 << 16) - (1 << (16 - length))
    body[0] ^= header >> 8
    body[1] ^= header & 0xFF
    return bytes(body)


def encode_slice_key(name: str, extents: Sequence[Extent]) -> bytes:
    """The key of one slice of the tensor `name`."""
    parts = [encode_number(0), encode_string(name.encode()), encode_number(len(extents))]
    for start, length in extents:
        parts += [encode_signed(start), encode_signed(length)]
    return b"".join(parts)
