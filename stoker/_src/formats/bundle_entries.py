"""The entries of tensors in a bundle's index, many at once: the extension's functions, or the same in Python where it is not built."""

from __future__ import annotations

from typing import Any

from stoker._src.base.extensions import extension
from stoker._src.formats import protos
from stoker._src.formats.framing import crc32c, mask


def encode_entries_python(arrays: list[Any], kinds: bytes, offset: int) -> list[bytes]:
    """The entries of arrays that lie end to end from `offset` on; `kinds` are the numbers of their dtypes."""
    entries = []
    for array, kind in zip(arrays, kinds, strict=True):
        data = memoryview(array).cast("B") if array.size else b""
        entry = protos.BundleEntryProto(dtype=kind, offset=offset, size=len(data), crc32c=mask(crc32c(data)))
        entry.shape.SetInParent()  # the shape of a scalar is written too
        for size in array.shape:
            entry.shape.dim.add(size=size)
        entries.append(entry.SerializeToString(deterministic=True))
        offset += len(data)
    return entries


def decode_entry_python(entry: bytes) -> tuple[Any, ...] | None:
    """(number of the dtype, shape, shard, offset, size, checksum); None for an entry with slices, and for what is no entry."""
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
    """The number of the first entry whose bytes, of a buffer that starts at `begin` of the file, do not have its checksum; or -1."""
    for number, (_, _, _, offset, size, crc) in enumerate(entries):
        if mask(crc32c(buffer[offset - begin : offset - begin + size])) != crc:
            return number
    return -1


_native = extension("stoker._src.formats._native")
if not hasattr(_native, "first_damaged"):  # built from older sources
    _native = None
encode_entries = encode_entries_python if _native is None else _native.encode_entries
decode_entry = decode_entry_python if _native is None else _native.decode_entry
first_damaged = first_damaged_python if _native is None else _native.first_damaged
