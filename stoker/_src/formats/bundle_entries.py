"""Batch encoding and decoding of a bundle's index entries, by the C extension or by Python code where it is not built."""

from __future__ import annotations

from typing import Any

from stoker._src.base.extensions import extension
from stoker._src.formats import protos
from stoker._src.formats.framing import crc32c, mask


def encode_entries_python(arrays: list[Any], kinds: bytes, offset: int) -> list[bytes]:
    """Encodes the entries of arrays that are stored contiguously from `offset`; `kinds` are their dtype numbers."""
    entries = []
    for array, kind in zip(arrays, kinds, strict=True):
        data = memoryview(array).cast("B") if array.size else b""
        entry = protos.BundleEntryProto(dtype=kind, offset=offset, size=len(data), crc32c=mask(crc32c(data)))
        entry.shape.SetInParent()  # write the shape even for a scalar
        for size in array.shape:
            entry.shape.dim.add(size=size)
        entries.append(entry.SerializeToString(deterministic=True))
        offset += len(data)
    return entries


def decode_entry_python(entry: bytes) -> tuple[Any, ...] | None:
    """Returns (dtype number, shape, shard, offset, size, checksum), or None for an entry with slices or an invalid one."""
    try:
        proto = protos.BundleEntryProto.FromString(entry)
    except Exception:
        return None
    if proto.slices:
        return None
    return (
        proto.dtype,
        tuple([dim.size for dim in proto.shape.dim]),
        proto.shard_id,
        proto.offset,
        proto.size,
        proto.crc32c,
    )


def first_damaged_python(buffer: Any, begin: int, entries: list[Any]) -> int:
    """Returns the index of the first entry with a wrong checksum, or -1. `begin` is the file offset of the buffer."""
    for number, (_, _, _, offset, size, crc) in enumerate(entries):
        if mask(crc32c(buffer[offset - begin : offset - begin + size])) != crc:
            return number
    return -1


_native = extension("stoker._src.formats._native")
if not hasattr(_native, "first_damaged"):  # the extension was built from older sources
    _native = None
encode_entries = encode_entries_python if _native is None else _native.encode_entries
decode_entry = decode_entry_python if _native is None else _native.decode_entry
first_damaged = first_damaged_python if _native is None else _native.first_damaged
