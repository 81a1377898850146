"""Variable-length integers: seven bits per byte, low bits first; the high bit marks that more bytes follow.

Protobuf messages and LevelDB tables both use them.
"""

from __future__ import annotations

from collections.abc import Callable

_MASK = 0xFFFF_FFFF_FFFF_FFFF
_ONE_BYTE = [bytes((value,)) for value in range(0x80)]


def encode_varint(value: int) -> bytes:
    """Encodes a number of 64 bits. Negative numbers take ten bytes."""
    value &= _MASK
    if value < 0x80:
        return _ONE_BYTE[value]
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def decode_varint(data: bytes, at: int, end: int, refusal: Callable[[], Exception]) -> tuple[int, int]:
    """Returns (value, position after it) of the number at `at`.

    Raises:
        Exception: that `refusal` makes, where the number does not end before `end`, or has more than ten bytes.
    """
    value = 0
    for shift in range(0, 70, 7):
        if at >= end:
            break
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value & _MASK, at
    raise refusal()
