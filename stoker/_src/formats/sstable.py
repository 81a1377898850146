"""Sorted string tables, the file format of checkpoint indices (V2) and of whole V1 checkpoints.

    file    = data block*, metaindex block, index block, footer
    block   = entries, then a type byte (0 plain, 1 snappy) and the masked CRC-32C of both, little-endian
    entries = (shared, unshared, value length as varints, unshared key bytes, value)*, restarts as uint32, their count
    footer  = metaindex handle, index handle (offset and size as varints), zeros up to 40 bytes, magic

Keys are sorted. An entry shares `shared` bytes with the previous key, except every 16th (a restart), whose offset is
listed at the end of the block. The index block maps a key at or after each block's last one to the block's handle. The
layout is that of LevelDB's tables. The tables written here are byte for byte identical to TensorFlow's.
"""

from __future__ import annotations

import bisect
import io
import struct
from collections.abc import Iterable, Iterator
from typing import BinaryIO

from stoker._src.base.errors import DataLossError, InvalidArgumentError
from stoker._src.base.extensions import extension
from stoker._src.formats.framing import crc32c, mask
from stoker._src.formats.varints import decode_varint, encode_varint

_native = extension("stoker._src.formats._native")
if not hasattr(_native, "write_table"):  # the extension was built from older sources
    _native = None

MAGIC = struct.pack("<Q", 0xDB4775248B80FB57)
_FOOTER_SIZE = 48
_TRAILER_SIZE = 5
_RESTART_INTERVAL = 16
_BLOCK_SIZE = 1 << 18
_MAX_BLOCK = 1 << 30


def _bad_number() -> DataLossError:
    return DataLossError(None, None, "corrupted table: bad varint")


def read_number(data: bytes, at: int) -> tuple[int, int]:
    return decode_varint(data, at, len(data), _bad_number)


# ---- reading ----


def _entries(block: bytes) -> Iterable[tuple[bytes, bytes]]:
    """Returns the (key, value) pairs of a block, in order.

    Raises:
        DataLossError: the block is damaged.
    """
    if _native is not None:
        found = _native.block_entries(block)
        if found is not None:
            return found
    return _entries_python(block)  # raises an error that describes the damage


def _entries_python(block: bytes) -> Iterator[tuple[bytes, bytes]]:
    if len(block) < 4:
        raise DataLossError(None, None, f"corrupted table: a block of {len(block)} bytes")
    restarts = struct.unpack_from("<I", block, len(block) - 4)[0]
    end = len(block) - 4 - 4 * restarts
    if end < 0:
        raise DataLossError(None, None, f"corrupted table: {restarts} restarts in a block of {len(block)} bytes")
    at, key = 0, b""
    while at < end:
        shared, at = read_number(block, at)
        unshared, at = read_number(block, at)
        length, at = read_number(block, at)
        if shared > len(key) or unshared + length > end - at:
            raise DataLossError(None, None, f"corrupted table: an entry at {at} passes the end of its block")
        key = key[:shared] + block[at : at + unshared]
        at += unshared
        yield key, block[at : at + length]
        at += length


def unsnappy(data: bytes) -> bytes:
    """Decompresses Snappy's block format, which old V1 checkpoints use.

    Raises:
        DataLossError: the data is damaged or its decompressed size would exceed 1 GiB.
    """
    damaged = DataLossError(None, None, "corrupted table: damaged snappy block")
    size, at = read_number(data, 0)
    if size > _MAX_BLOCK:
        raise damaged
    out = bytearray()
    while at < len(data):
        tag = data[at]
        at += 1
        if tag & 3 == 0:  # a literal
            length = tag >> 2
            if length >= 60:
                extra = length - 59
                length = int.from_bytes(data[at : at + extra], "little")
                at += extra
            length += 1
            if length > len(data) - at:
                raise damaged
            out += data[at : at + length]
            at += length
        else:  # a copy of earlier output
            width = (0, 1, 2, 4)[tag & 3]
            if width > len(data) - at:
                raise damaged
            offset = int.from_bytes(data[at : at + width], "little")
            length = (tag >> 2) + 1
            if width == 1:
                offset |= tag >> 5 << 8
                length = (tag >> 2 & 7) + 4
            at += width
            if not 0 < offset <= len(out) or length > size - len(out):
                raise damaged
            for _ in range(-(-length // offset)):  # a copy may overlap itself
                piece = out[-offset:][:length]
                out += piece
                length -= len(piece)
        if len(out) > size:
            raise damaged
    if len(out) != size:
        raise damaged
    return bytes(out)


class Table:
    """A table open for reading. Blocks are read on demand and verified against their checksums.

    Args:
        source: the file, open for reading in binary mode, seekable. The caller closes it.
        name: the file's name in errors.

    Raises:
        DataLossError: the file is damaged or is not a table.
    """

    def __init__(self, source: BinaryIO, name: str) -> None:
        self._source = source
        self._name = name
        self._size = source.seek(0, 2)
        if self._size < _FOOTER_SIZE:
            raise DataLossError(None, None, f"{name}: not an sstable (bad magic number): only {self._size} bytes")
        source.seek(self._size - _FOOTER_SIZE)
        footer = source.read(_FOOTER_SIZE)
        if footer[-8:] != MAGIC:
            raise DataLossError(None, None, f"{name}: not an sstable (bad magic number)")
        _, at = self._handle(footer, 0)
        index, _ = self._handle(footer, at)
        pairs = list(_entries(self._block(*index)))
        self._last_keys = [key for key, _ in pairs]
        self._handles = [self._handle(value, 0)[0] for _, value in pairs]

    def _handle(self, data: bytes, at: int) -> tuple[tuple[int, int], int]:
        offset, at = read_number(data, at)
        size, at = read_number(data, at)
        return (offset, size), at

    def _block(self, offset: int, size: int) -> bytes:
        if size > _MAX_BLOCK or offset + size + _TRAILER_SIZE > self._size:
            raise DataLossError(
                None, None, f"{self._name}: block of {size} bytes at {offset} passes the end of the file"
            )
        self._source.seek(offset)
        data = self._source.read(size + _TRAILER_SIZE)
        if len(data) < size + _TRAILER_SIZE:
            raise DataLossError(None, None, f"{self._name}: truncated block read at {offset}")
        if mask(crc32c(data[: size + 1])) != struct.unpack_from("<I", data, size + 1)[0]:
            raise DataLossError(None, None, f"{self._name}: block checksum mismatch at {offset}")
        if data[size] == 0:
            return data[:size]
        if data[size] == 1:
            return unsnappy(data[:size])
        raise DataLossError(None, None, f"{self._name}: bad block type {data[size]} at {offset}")

    def items(self) -> Iterator[tuple[bytes, bytes]]:
        """Yields all (key, value) pairs, in key order."""
        for handle in self._handles:
            yield from _entries(self._block(*handle))

    def get(self, key: bytes) -> bytes | None:
        """Returns the value of a key, or None."""
        number = bisect.bisect_left(self._last_keys, key)
        if number == len(self._handles):
            return None
        for each, value in _entries(self._block(*self._handles[number])):
            if each >= key:
                return value if each == key else None
        return None


# ---- writing ----


class _BlockBuilder:
    def __init__(self, restart_interval: int) -> None:
        self._interval = restart_interval
        self._data = bytearray()
        self._restarts = [0]
        self._since_restart = 0
        self.last_key = b""

    @property
    def size(self) -> int:
        return len(self._data) + 4 * len(self._restarts) + 4

    @property
    def empty(self) -> bool:
        return not self._data

    def add(self, key: bytes, value: bytes) -> None:
        shared = 0
        if self._since_restart < self._interval:
            limit = min(len(key), len(self.last_key))
            while shared < limit and key[shared] == self.last_key[shared]:
                shared += 1
        else:
            self._restarts.append(len(self._data))
            self._since_restart = 0
        for number in (shared, len(key) - shared, len(value)):
            self._data += encode_varint(number)
        self._data += key[shared:]
        self._data += value
        self.last_key = key
        self._since_restart += 1

    def finish(self) -> bytes:
        return bytes(self._data) + struct.pack(f"<{len(self._restarts) + 1}I", *self._restarts, len(self._restarts))


def _separator(before: bytes, after: bytes) -> bytes:
    """Returns a short key at or after `before` and before `after`."""
    at = 0
    while at < min(len(before), len(after)) and before[at] == after[at]:
        at += 1
    if at < min(len(before), len(after)) and before[at] < 0xFF and before[at] + 1 < after[at]:
        return before[:at] + bytes([before[at] + 1])
    return before


def _successor(key: bytes) -> bytes:
    """Returns a short key at or after `key`."""
    for at, byte in enumerate(key):
        if byte != 0xFF:
            return key[:at] + bytes([byte + 1])
    return key


class TableWriter:
    """Writes a table to a file. Keys must be strictly increasing, and `finish` must be called."""

    def __init__(self, sink: BinaryIO) -> None:
        self._sink = sink
        self._offset = 0
        self._block = _BlockBuilder(_RESTART_INTERVAL)
        self._index = _BlockBuilder(1)
        self._pending: tuple[bytes, bytes] | None = None  # last key and handle of a block that is not in the index yet
        self._last_key: bytes | None = None

    def add(self, key: bytes, value: bytes) -> None:
        if self._last_key is not None and key <= self._last_key:
            raise InvalidArgumentError(None, None, f"Key {key!r} does not come after {self._last_key!r}")
        if self._pending is not None:
            last_key, handle = self._pending
            self._index.add(_separator(last_key, key), handle)
            self._pending = None
        self._block.add(key, value)
        self._last_key = key
        if self._block.size >= _BLOCK_SIZE:
            self._flush()

    def _flush(self) -> None:
        if not self._block.empty:
            self._pending = (self._block.last_key, self._write(self._block))
            self._block = _BlockBuilder(_RESTART_INTERVAL)

    def _write(self, block: _BlockBuilder) -> bytes:
        data = block.finish() + b"\0"
        self._sink.write(data + struct.pack("<I", mask(crc32c(data))))
        handle = encode_varint(self._offset) + encode_varint(len(data) - 1)
        self._offset += len(data) + 4
        return handle

    def finish(self) -> None:
        self._flush()
        metaindex = self._write(_BlockBuilder(_RESTART_INTERVAL))
        if self._pending is not None:
            last_key, handle = self._pending
            self._index.add(_successor(last_key), handle)
        handles = metaindex + self._write(self._index)
        self._sink.write(handles.ljust(_FOOTER_SIZE - len(MAGIC), b"\0") + MAGIC)


def write_table(keys: list[bytes], values: list[bytes]) -> bytes:
    """Returns a whole table. The keys must be strictly increasing."""
    if _native is not None:
        table = _native.write_table(keys, values, _BLOCK_SIZE, _RESTART_INTERVAL, MAGIC)
        if table is not None:
            return table
    return write_table_python(keys, values)


def write_table_python(keys: list[bytes], values: list[bytes]) -> bytes:
    """Python implementation of the extension's `write_table`; raises if the keys are not increasing."""
    sink = io.BytesIO()
    writer = TableWriter(sink)
    for key, value in zip(keys, values):
        writer.add(key, value)
    writer.finish()
    return sink.getvalue()
