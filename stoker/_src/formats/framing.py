"""Record framing and CRC-32C, by the C extension or by Python code where it is not built.

native/records.c documents the format.
"""

from __future__ import annotations

import struct
from typing import Any

import google_crc32c

from stoker._src.base.extensions import extension

HEADER_SIZE = 12
FOOTER_SIZE = 4

# The status that `split` returns.
NEED_MORE, BAD_LENGTH, BAD_DATA = range(3)

_LENGTH = struct.Struct("<Q")
_CHECKSUM = struct.Struct("<I")


def _crc32c_python(data: Any, crc: int = 0) -> int:
    return google_crc32c.extend(crc, bytes(data))


def mask(crc: int) -> int:
    """Returns the stored form of a CRC: rotated right by 15 bits, plus a constant."""
    return ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFF_FFFF


def frame_python(record: Any) -> bytes:
    """Python implementation of the extension's `frame`."""
    data = bytes(memoryview(record))
    length = _LENGTH.pack(len(data))
    length_checksum = _CHECKSUM.pack(mask(_crc32c_python(length)))
    return b"".join((length, length_checksum, data, _CHECKSUM.pack(mask(_crc32c_python(data)))))


def split_python(buffer: Any, start: int) -> tuple[list[bytes], int, int]:
    """Python implementation of the extension's `split`."""
    if not 0 <= start <= len(buffer):
        raise ValueError("start lies outside the buffer")
    view = memoryview(buffer)
    records: list[bytes] = []
    at = start
    while len(view) - at >= HEADER_SIZE:
        length_bytes = bytes(view[at : at + 8])
        if mask(_crc32c_python(length_bytes)) != _CHECKSUM.unpack_from(view, at + 8)[0]:
            return records, at, BAD_LENGTH
        (length,) = _LENGTH.unpack(length_bytes)
        data_at = at + HEADER_SIZE
        if length + FOOTER_SIZE > len(view) - data_at:
            break
        data = bytes(view[data_at : data_at + length])
        if mask(_crc32c_python(data)) != _CHECKSUM.unpack_from(view, data_at + length)[0]:
            return records, at, BAD_DATA
        records.append(data)
        at = data_at + length + FOOTER_SIZE
    return records, at, NEED_MORE


_native = extension("stoker._src.formats._native")
if _native is None:
    crc32c = _crc32c_python
    frame = frame_python
    split = split_python
else:
    crc32c = _native.crc32c
    """crc32c(data, crc=0): CRC-32C of data, continued from crc."""
    frame = _native.frame
    """frame(record): the record as it stands in a file, with its length and checksums."""
    split = _native.split
    """split(buffer, start): (whole records from start on, where the first byte not taken stands, why)."""
