"""Checkpoint files in TensorFlow's V2 format: `prefix.index` and `prefix.data-0000N-of-0000M`.

The index is a sorted string table. The value of its empty key is the header; a tensor's name maps to the location of its bytes (shard,
offset, size, masked CRC-32C). The entry of a partitioned tensor lists its slices instead, and each slice has its own entry
under an ordered-code key. Data files contain the tensors' bytes contiguously, little-endian, in the order of writing.
Strings are stored as varint lengths, the masked CRC-32C of the lengths (as uint32, or uint64 for those past 4 GiB), and
the bytes.

Files appear complete or not at all. The index is renamed last and makes the bundle visible.

A bundle may replace one of the same prefix, whose data files have the same names. A crash between the renames of data and index must not leave
the old index with new data. Therefore the new data files first get a second name, as shards of a bundle that has one shard more:
`prefix.data-00000-of-00002`. An index that refers to those names replaces the old one, and commits the bundle. Then the data files are renamed to
the names they replace, the index that refers to these follows, and the second names are removed. At each moment, the index and the files that it
refers to belong together.
"""

from __future__ import annotations

import collections
import contextlib
import io
import itertools
import math
import mmap
import operator
import os
import struct
from collections.abc import Iterable, Sequence
from typing import Any, BinaryIO, NamedTuple, NoReturn

import numpy as np

from stoker._src.base import dtypes
from stoker._src.base.errors import (
    AlreadyExistsError,
    DataLossError,
    FailedPreconditionError,
    InvalidArgumentError,
    NotFoundError,
    UnimplementedError,
)
from stoker._src.formats import atomic, gfile, protos
from stoker._src.formats.bundle_entries import decode_entry, encode_entries, first_damaged
from stoker._src.formats.filesystems import mapped, replacing, resolve, sweep_beside
from stoker._src.formats.framing import crc32c, mask
from stoker._src.formats.ordered_code import Extent, encode_slice_key
from stoker._src.formats.sstable import Table, read_number, write_table
from stoker._src.formats.tensor_slices import (
    TensorInfo,
    assemble,
    box,
    check_disjoint,
    check_rank,
    check_slice,
    slice_from_proto,
    slice_to_proto,
)
from stoker._src.formats.varints import encode_varint

HEADER_KEY = b""
_PRODUCER = 1
_MIN_CONSUMER_KNOWN = 1
_COPY_CHUNK = 1 << 24
_JOINED = 1 << 22  # smaller tensors are written together
_PIECES = 1000  # so many at a time; systems take at least 1024
_RUN = 1 << 24  # adjacent tensors are read together, up to this many bytes
_MAPPED = 1 << 26  # larger tensors may be memory-mapped
# By wire number. Resources and variants cannot be stored.
_STORABLE = {
    number: dtype
    for number, dtype in ((number, dtypes.as_dtype(number)) for number in range(1, 24))
    if dtype not in (dtypes.resource, dtypes.variant)
}


def index_filename(prefix: str) -> str:
    """Returns the name of a bundle's index file."""
    return f"{prefix}.index"


def data_filename(prefix: str, shard: int, num_shards: int) -> str:
    """Returns the name of one of a bundle's data files."""
    return f"{prefix}.data-{shard:05d}-of-{num_shards:05d}"


# ---- bytes of one tensor ----


def _encode_strings(array: np.ndarray) -> tuple[list[bytes], int]:
    """Returns (pieces to write, masked CRC of the entry)."""
    elements = [each.encode() if isinstance(each, str) else bytes(each) for each in array.reshape(-1).tolist()]
    lengths = b"".join(struct.pack("<I" if len(each) < 1 << 32 else "<Q", len(each)) for each in elements)
    crc = crc32c(lengths)
    checksum = struct.pack("<I", mask(crc))
    crc = crc32c(checksum, crc)
    body = b"".join(elements)
    crc = crc32c(body, crc)
    return [b"".join(encode_varint(len(each)) for each in elements), checksum, body], mask(crc)


def _decode_strings(data: bytes, count: int, name: str) -> tuple[np.ndarray, int]:
    """Returns (object array of bytes, expected masked CRC of the entry)."""
    lengths, at = [], 0
    for _ in range(count):
        length, at = read_number(data, at)
        lengths.append(length)
    packed = b"".join(struct.pack("<I" if each < 1 << 32 else "<Q", each) for each in lengths)
    crc = crc32c(packed)
    checksum = data[at : at + 4]
    if checksum != struct.pack("<I", mask(crc)):
        raise DataLossError(None, None, f"The length checksum does not match for tensor {name}")
    crc = crc32c(checksum, crc)
    at += 4
    if sum(lengths) != len(data) - at:
        raise DataLossError(
            None, None, f"The strings of tensor {name} have {sum(lengths)} bytes, the file has {len(data) - at}"
        )
    crc = crc32c(data[at:], crc)
    array = np.empty(count, object)
    for index, length in enumerate(lengths):
        array[index] = data[at : at + length]
        at += length
    return array, mask(crc)


def _checked_dtype(array: np.ndarray, dtype: Any, name: str) -> dtypes.DType:
    chosen = dtypes.as_dtype(array.dtype if dtype is None else dtype).base_dtype
    if chosen.as_datatype_enum not in _STORABLE:
        raise UnimplementedError(None, None, f"Tensor {name} of dtype {chosen.name} cannot be stored in a checkpoint")
    if chosen is not dtypes.string and np.dtype(chosen.as_numpy_dtype) != array.dtype:
        raise InvalidArgumentError(
            None, None, f"Tensor {name} is given as {chosen.name}, but its array has dtype {array.dtype}"
        )
    return chosen


def _set_shape(entry: Any, shape: Sequence[int]) -> None:
    entry.shape.SetInParent()  # write the shape even for a scalar
    add = entry.shape.dim.add
    for size in shape:
        add(size=size)


def _buffer(array: np.ndarray) -> np.ndarray:
    """Returns the array in a contiguous, little-endian form that supports the buffer protocol, which ml_dtypes' arrays do not."""
    if not array.flags.c_contiguous:
        array = np.ascontiguousarray(array)
    kind = array.dtype.kind
    if kind in "fiu" and array.dtype.isnative and array.dtype.num < 24:
        return array
    if array.dtype.byteorder == ">":
        array = array.astype(array.dtype.newbyteorder("<"))
    if kind in "bfiuc" and array.dtype.num < 24:
        return array
    return array.view(_UNSIGNED[array.dtype.itemsize])


_UNSIGNED = {1: np.uint8, 2: np.uint16, 4: np.uint32, 8: np.uint64}


# ---- files ----


def _index(num_shards: int, entries: dict[bytes, Any]) -> bytes:
    """Builds the contents of an index file; entries are messages or serialized messages."""
    header = protos.BundleHeaderProto(num_shards=num_shards)
    header.version.producer = _PRODUCER
    entries = _in_order(entries)
    return write_table([HEADER_KEY, *entries], [header.SerializeToString(deterministic=True), *entries.values()])


def _in_order(entries: dict[bytes, Any]) -> dict[bytes, bytes]:
    """Serializes entries, which are messages or serialized messages, and sorts them by key."""
    return {
        key: entry if entry.__class__ is bytes else entry.SerializeToString(deterministic=True)
        for key, entry in sorted(entries.items(), key=operator.itemgetter(0))
    }


def _write_all(sink: Any, pieces: Sequence[Any]) -> None:
    """Writes contiguous arrays or bytes to a data file, which is unbuffered if it is local. Many small pieces are one call to the system."""
    if not isinstance(sink, io.FileIO):
        for piece in pieces:
            view = memoryview(piece)
            if view.nbytes:
                sink.write(view.cast("B"))  # buffered: takes all
        return
    sizes = [memoryview(piece).nbytes for piece in pieces]
    start = 0
    while start < len(pieces):
        stop, size = start, 0
        while stop < len(pieces) and stop - start < _PIECES and size < _JOINED:
            size += sizes[stop]
            stop += 1
        _write_vector(sink, pieces[start:stop], size)
        atomic.start_writing(sink)
        start = stop


def _write_vector(sink: Any, pieces: Sequence[Any], size: int) -> None:
    written = os.writev(sink.fileno(), pieces) if hasattr(os, "writev") else 0
    if written < size:  # a signal or a limit of the system (2 GiB a call) came between
        rest = memoryview(b"".join(pieces) if len(pieces) > 1 else memoryview(pieces[0]).cast("B"))
        while written < size:
            written += os.write(sink.fileno(), rest[written : written + _COPY_CHUNK])


def _publish(files: atomic.Together, prefix: str, data: Sequence[Any], entries: dict[bytes, Any]) -> None:
    """Plans how a bundle appears: the steps are in the description of the module.

    Args:
        files: carries out the steps.
        prefix: a local path.
        data: data files in the order of shards, open or as paths.
        entries: the entries of the index.
    """
    names = [data_filename(prefix, shard, len(data)) for shard in range(len(data))]
    folder, base = os.path.split(data_filename(prefix, 0, 1).removesuffix("00000-of-00001"))
    present = [os.path.join(folder, name) for name in os.listdir(folder or ".") if name.startswith(base)]
    second: list[str] = []
    index = index_filename(prefix)
    entries = _in_order(entries)  # once for both indices
    if not set(names).isdisjoint(present) and not set(names).issubset(data) and os.path.exists(index):
        count = len(data) + 1
        while any(name.endswith(f"-of-{count:05d}") for name in present):
            count += 1
        second = [data_filename(prefix, shard, count) for shard in range(len(data))]
        for file, name in zip(data, second):
            files.link(file, name)
        files.open(index).write(_index(count, entries))
    for file, name in zip(data, names):
        if file != name:
            files.rename(file, name)
    files.open(index).write(_index(len(data), entries))
    for name in (*second, *present):
        if name not in names:
            files.remove(name)


class _Remote:
    """Files of a store behind fsspec, which become visible when they are closed. They are closed in opening order."""

    def __init__(self) -> None:
        self._stacks: list[contextlib.ExitStack] = []

    def open(self, path: str) -> BinaryIO:
        stack = contextlib.ExitStack()
        sink = stack.enter_context(replacing(path))
        self._stacks.append(stack)
        return sink

    def __exit__(self, kind: Any, value: Any, trace: Any) -> None:
        for stack in self._stacks:
            with contextlib.suppress(_Discarded):
                if kind is None:
                    stack.close()
                else:
                    stack.__exit__(kind, value, trace)


class _Discarded(Exception):
    """Raised into an open file to discard it."""


class BundleWriter:
    """Writes a bundle of one shard. Use it as a context manager: a normal exit finishes the bundle, an exception discards it.

    Args:
        prefix: path of the files without their suffixes. Its directory is created if the parent directory exists.
    """

    def __init__(self, prefix: str) -> None:
        self._prefix = prefix
        self._entries: dict[bytes, Any] = {}
        self._offset = 0
        directory = os.path.dirname(prefix)
        if directory and not gfile.exists(directory):
            gfile.mkdir(directory)
        location = resolve(data_filename(prefix, 0, 1))
        local = location.prefix in ("", "file://")
        self._files: Any = atomic.Together() if local else _Remote()
        self._local_prefix = resolve(prefix).path if local else None
        if local:
            atomic.sweep(os.path.dirname(location.path))
        with mapped(location.full):
            if local:
                self._sink = self._files.create(location.path, buffering=0)
            else:
                self._sink = self._files.open(data_filename(prefix, 0, 1))
        self._open = True

    def add(self, name: str, array: Any, dtype: Any = None) -> None:
        """Adds a whole tensor.

        Args:
            name: its key.
            array: its value; strings as an array of bytes objects.
            dtype: its dtype, if NumPy's dtype does not determine it (quantized types).

        Raises:
            InvalidArgumentError: the name is taken or empty, or the dtype does not match the array.
        """
        array = np.asarray(array)
        self._add(name.encode(), name, array, _checked_dtype(array, dtype, name))

    def add_all(self, keys: Sequence[bytes], arrays: list[np.ndarray], kinds: Sequence[Any]) -> None:
        """Adds many whole tensors, excluding string tensors. Faster than calling `add` for each."""
        if not self._open:
            raise FailedPreconditionError(None, None, f"Adding {_text(keys[0])} to a bundle that is finished")
        numbers, buffers = bytearray(), arrays
        dtype = stored = known = None
        plain = True
        for array, kind, key in zip(arrays, kinds, keys):
            if kind is not dtype or array.dtype is not stored:
                dtype, stored = kind, array.dtype
                known = _checked_dtype(array, kind, _text(key)).as_datatype_enum
                plain = plain and stored.kind in "fiubc" and stored.isnative and stored.num < 24
            numbers.append(known)  # type: ignore[arg-type]
        if not plain or not all(array.flags.c_contiguous for array in arrays):
            buffers = [_buffer(array) for array in arrays]
        # The bytes are written first, so that the disk is busy with them while the entries are encoded.
        with mapped(self._prefix):
            _write_all(self._sink, buffers)
        before = len(self._entries)
        self._entries.update(zip(keys, encode_entries(buffers, bytes(numbers), self._offset)))
        self._offset += sum([buffer.nbytes for buffer in buffers])
        if HEADER_KEY in self._entries or len(self._entries) - before != len(keys):
            counts = collections.Counter(keys)
            repeated = next((key for key in keys if counts[key] > 1 or not key), keys[0])
            raise InvalidArgumentError(None, None, f"Adding duplicate key: {_text(repeated)!r}")

    def _add(self, key: bytes, name: str, array: np.ndarray, dtype: dtypes.DType) -> None:
        if not self._open:
            raise FailedPreconditionError(None, None, f"Adding {name} to a bundle that is finished")
        if key == HEADER_KEY or key in self._entries:
            raise InvalidArgumentError(None, None, f"Adding duplicate key: {name!r}")
        entry = protos.BundleEntryProto(dtype=dtype.as_datatype_enum, offset=self._offset)
        _set_shape(entry, array.shape)
        if dtype is dtypes.string:
            pieces, entry.crc32c = _encode_strings(array)
        else:
            # Avoid copying where the array supports it; ml_dtypes' arrays do not support the buffer protocol.
            flat = np.ascontiguousarray(array.astype(array.dtype.newbyteorder("<"), copy=False)).reshape(-1)
            data = flat.view(np.uint8)
            pieces, entry.crc32c = [data.data], mask(crc32c(data))
        entry.size = sum(len(piece) for piece in pieces)
        with mapped(self._prefix):
            _write_all(self._sink, pieces)
        self._offset += entry.size
        self._entries[key] = entry

    def add_slice(
        self, name: str, full_shape: Sequence[int], extents: Sequence[Extent], array: Any, dtype: Any = None
    ) -> None:
        """Adds one slice of a partitioned tensor.

        Args:
            name: key of the whole tensor.
            full_shape: its shape.
            extents: (start, length) of the slice along each dimension; length -1 is the whole dimension.
            array: the slice's value.
            dtype: as in `add`.

        Raises:
            InvalidArgumentError: the slice does not match the shape, the array or earlier slices.
        """
        array = np.asarray(array)
        chosen = _checked_dtype(array, dtype, name)
        check_slice(name, full_shape, extents, array)
        # TensorFlow stores a fully covered dimension without numbers only if its length was given as -1.
        normal = tuple((0, -1) if length < 0 else (start, length) for start, length in extents)
        if all(length < 0 for _, length in normal):
            self.add(name, array, dtype)  # a slice that covers everything is stored as a whole tensor
            return
        whole = self._entries.get(name.encode())
        if whole is None:
            whole = protos.BundleEntryProto(dtype=chosen.as_datatype_enum)
            _set_shape(whole, full_shape)
        elif (
            not whole.slices
            or whole.dtype != chosen.as_datatype_enum
            or [dim.size for dim in whole.shape.dim] != list(full_shape)
        ):
            raise InvalidArgumentError(
                None, None, f"Slice {list(extents)} of tensor {name} disagrees with what was added before"
            )
        self._add(encode_slice_key(name, normal), name, array, chosen)
        whole.slices.append(slice_to_proto(normal))
        self._entries[name.encode()] = whole

    def finish(self) -> None:
        """Makes the files appear under their final names."""
        if not self._open:
            return
        self._open = False
        try:
            with mapped(self._prefix):
                if self._local_prefix is None:
                    self._files.open(index_filename(self._prefix)).write(_index(1, self._entries))
                else:
                    _publish(self._files, self._local_prefix, [self._sink], self._entries)
        except BaseException:
            self._files.__exit__(_Discarded, _Discarded(), None)
            raise
        with mapped(self._prefix):
            self._files.__exit__(None, None, None)

    def discard(self) -> None:
        """Discards all files."""
        if self._open:
            self._open = False
            self._files.__exit__(_Discarded, _Discarded(), None)

    def __enter__(self) -> BundleWriter:
        return self

    def __exit__(self, kind: Any, value: Any, trace: Any) -> None:
        if kind is None:
            self.finish()
        else:
            self.discard()


class _Entry(NamedTuple):
    """A parsed index entry."""

    info: TensorInfo
    count: int  # number of elements
    shard: int
    offset: int
    size: int
    crc32c: int


def _parse_entry(raw: bytes, name: str) -> _Entry:
    plain = decode_entry(raw)
    if plain is not None:
        kind, shape, shard, offset, size, crc = plain
        dtype = _STORABLE.get(kind)
        if dtype is not None and (not shape or min(shape) >= 0):
            return _Entry(TensorInfo(dtype, shape, ()), math.prod(shape), shard, offset, size, crc)
    try:
        proto = protos.BundleEntryProto.FromString(raw)
    except Exception as error:
        raise DataLossError(None, None, f"Entry for key {name} not parseable: {error}") from error
    dtype = _STORABLE.get(proto.dtype)
    if dtype is None:
        raise UnimplementedError(None, None, f"Tensor {name} has a dtype with the number {proto.dtype}")
    shape = tuple([dim.size for dim in proto.shape.dim])
    if shape and min(shape) < 0:
        raise DataLossError(None, None, f"Tensor {name} has the shape {list(shape)}")
    slices = tuple([slice_from_proto(each) for each in proto.slices]) if proto.slices else ()
    info = TensorInfo(dtype, shape, slices)
    return _Entry(info, math.prod(shape), proto.shard_id, proto.offset, proto.size, proto.crc32c)


_NOT_PLAIN = (None, -1)


def _text(key: bytes) -> str:
    return key.decode(errors="surrogateescape")


def let_go(array: Any, start: int, end: int) -> None:
    """Releases the memory pages of a mapped tensor. They are read from the file again when they are needed."""
    pages, mapping = array, array.base
    while isinstance(mapping, np.ndarray):
        pages, mapping = mapping, mapping.base
    if not isinstance(mapping, mmap.mmap):
        return
    first = pages.ctypes.data % mmap.PAGESIZE  # the mapping starts at a page boundary, the array at the tensor
    begin = (first + start + mmap.PAGESIZE - 1) // mmap.PAGESIZE * mmap.PAGESIZE
    length = (first + end) // mmap.PAGESIZE * mmap.PAGESIZE - begin
    if length > 0:
        mapping.madvise(mmap.MADV_DONTNEED, begin, length)


class BundleReader:
    """Reads a bundle. Use it as a context manager, or call `close`. Not thread-safe.

    Args:
        prefix: path of the files without their suffixes.

    Raises:
        NotFoundError: the index file does not exist.
        DataLossError: the index file is damaged.
    """

    def __init__(self, prefix: str) -> None:
        self._prefix = prefix
        self._shards: dict[int, tuple[BinaryIO, int]] = {}
        self._entries: dict[bytes, _Entry] = {}
        location = resolve(index_filename(prefix))
        with contextlib.closing(location.system.open_read(location.path)) as source, mapped(location.full):
            table = dict(Table(source, location.full).items())
        try:
            header = protos.BundleHeaderProto.FromString(table.pop(HEADER_KEY))
        except KeyError:
            raise DataLossError(None, None, f"{location.full}: the header entry is missing") from None
        except Exception as error:
            raise DataLossError(None, None, f"{location.full}: the header entry is damaged: {error}") from error
        if header.version.min_consumer > _MIN_CONSUMER_KNOWN:
            raise FailedPreconditionError(
                None,
                None,
                f"{location.full}: written for readers of version {header.version.min_consumer} and later, "
                f"this one is {_MIN_CONSUMER_KNOWN}",
            )
        if header.num_shards <= 0:
            raise DataLossError(None, None, f"{location.full}: {header.num_shards} shards")
        self.num_shards = header.num_shards
        self._swapped = header.endianness == protos.BundleHeaderProto.BIG
        self._raw = table

    def keys(self) -> list[str]:
        """Returns the names of all tensors, sorted."""
        return [key.decode(errors="surrogateescape") for key in self._raw if key[:1] != b"\0"]

    def __contains__(self, name: str) -> bool:
        return name.encode(errors="surrogateescape") in self._raw

    def _entry(self, key: bytes, name: str) -> _Entry:
        entry = self._entries.get(key)
        if entry is None:
            raw = self._raw.get(key)
            if raw is None:
                raise NotFoundError(None, None, f"Key {name} not found in checkpoint")
            entry = self._entries[key] = _parse_entry(raw, name)
        return entry

    def info(self, name: str) -> TensorInfo:
        """Returns dtype, shape and slices of a tensor.

        Raises:
            NotFoundError: the tensor does not exist.
        """
        return self._entry(name.encode(errors="surrogateescape"), name).info

    def read(self, name: str) -> np.ndarray:
        """Returns the value of a whole tensor, assembled if it is partitioned. Strings are an object array of bytes.

        Raises:
            NotFoundError: the tensor does not exist, or one of its slices is missing.
            DataLossError: its bytes are damaged.
        """
        entry = self._entry(name.encode(errors="surrogateescape"), name)
        if not entry.info.slices:
            return self._value(entry, name)
        return self.read_slice(name, [(0, -1)] * len(entry.info.shape))

    def read_all(
        self, keys: Sequence[bytes], wanted: Sequence[dtypes.DType], mappable: bool = False
    ) -> list[np.ndarray]:
        """Returns the values of whole tensors, as `read` does. Tensors that are adjacent in a file are read together.

        Args:
            keys: their names.
            wanted: their dtypes.
            mappable: whether a large tensor may be a copy-on-write memory map of the file. This suits a caller that copies the tensor
                and releases it, since the tensor then does not occupy memory twice.

        Raises:
            NotFoundError, DataLossError: as in `read`.
            InvalidArgumentError: a tensor has a different dtype.
        """
        found: list[Any] = [None] * len(keys)
        together: list[tuple[Any, int, Any]] = []  # (entry, index in `keys`, dtype of the array)
        kinds: dict[Any, tuple[Any, int]] = {}  # dtype number and shape -> dtype and size in bytes of the array
        # This loop runs for every tensor of a checkpoint, so it looks up names and files once.
        raws, ends, kinds_get, swapped = self._raw.get, dict[int, int](), kinds.get, self._swapped
        for number, (key, dtype) in enumerate(zip(keys, wanted)):
            raw = raws(key)
            entry = None if raw is None or swapped else decode_entry(raw)
            if entry is None or entry[4] >= _RUN or _STORABLE.get(entry[0]) is not dtype:
                found[number] = self._read_one(key, dtype, mappable)
                continue
            code, shape, shard, offset, size, _ = entry
            kind = kinds_get((code, shape))
            if kind is None:
                kind = _NOT_PLAIN
                if dtype is not dtypes.string and (not shape or min(shape) >= 0):
                    kind = np.dtype(dtype.as_numpy_dtype), math.prod(shape) * dtype.size
                kinds[code, shape] = kind
            end = ends.get(shard)
            if end is None:
                end = ends[shard] = self._shard(shard, "")[1]
            if kind[1] != size or offset + size > end:
                found[number] = self._read_one(key, dtype, mappable)  # strings and damaged entries
            else:
                together.append((entry, number, kind[0]))
        places = [(entry[2], entry[3]) for entry, _, _ in together]
        if any(after < before for before, after in itertools.pairwise(places)):
            together.sort(key=lambda each: each[0][2:4])
        start = 0
        while start < len(together):
            _, _, shard, begin, size, _ = together[start][0]
            end, stop = begin + size, start + 1
            while stop < len(together):
                _, _, other, offset, size, _ = together[stop][0]
                # A gap of up to a page between two tensors is read too.
                if other != shard or offset > end + 4096 or offset + size - begin > _RUN:
                    break
                end, stop = max(end, offset + size), stop + 1
            run = together[start:stop]
            buffer = self._read_range(shard, begin, end - begin, _text(keys[run[0][1]]))
            damaged = first_damaged(buffer, begin, [entry for entry, _, _ in run])
            if damaged >= 0:
                (_, _, _, offset, size, stored), number, _ = run[damaged]
                self._raise_damaged(
                    stored, _text(keys[number]), mask(crc32c(buffer[offset - begin : offset - begin + size]))
                )
            for (_, shape, _, offset, _, _), number, kind in run:
                array = np.ndarray(shape, kind, buffer, offset - begin)
                # Kernels rely on aligned memory.
                found[number] = array if not (offset - begin) % 16 else array.copy()
            start = stop
        return found

    def _read_one(self, key: bytes, wanted: dtypes.DType, mappable: bool) -> np.ndarray:
        name = _text(key)
        entry = self._entry(key, name)
        info = entry.info
        if info.dtype != wanted.base_dtype:
            raise InvalidArgumentError(
                None,
                None,
                f"tensor_name = {name}; expected dtype {wanted.base_dtype.name} does not equal original dtype "
                f"{info.dtype.name}",
            )
        plain = not info.slices and not self._swapped and info.dtype is not dtypes.string
        return self._map(entry, name) if mappable and plain and entry.size >= _MAPPED else self.read(name)

    def _map(self, entry: _Entry, name: str) -> np.ndarray:
        """Returns a large tensor as a memory map. The checksum is verified in pieces, and their pages are released."""
        self._check_size(entry, name)
        location = resolve(data_filename(self._prefix, entry.shard, self.num_shards))
        if location.prefix not in ("", "file://") or not hasattr(mmap.mmap, "madvise"):
            return self._value(entry, name)
        with mapped(location.full):
            pages = np.memmap(location.path, np.uint8, "c", entry.offset, (entry.size,))
        crc = 0
        for at in range(0, entry.size, _COPY_CHUNK):
            crc = crc32c(pages[at : at + _COPY_CHUNK], crc)
            let_go(pages, at, min(at + _COPY_CHUNK, entry.size))
        if mask(crc) != entry.crc32c:
            self._raise_damaged(entry.crc32c, name, mask(crc))
        return pages.view(entry.info.dtype.as_numpy_dtype).reshape(entry.info.shape)

    def read_slice(self, name: str, extents: Sequence[Extent], mappable: bool = False) -> np.ndarray:
        """Returns a box of a tensor, regardless of its partitioning. Only slices that overlap the box are read.

        Args:
            name: the tensor.
            extents: (start, length) along each dimension; length -1 means the whole dimension.
            mappable: whether the result may be a memory map, which a large slice that is stored by itself then is.
        """
        info = self.info(name)
        if not info.slices:
            return self.read(name)[box(extents, info.shape, name)]

        def entry_of(part: tuple[Extent, ...]) -> _Entry:
            return self._entry(encode_slice_key(name, part), f"{name} {list(part)}")

        def verify(part: tuple[Extent, ...], shape: tuple[int, ...]) -> None:
            entry = entry_of(part)
            if entry.info.dtype != info.dtype or entry.info.shape != shape:
                raise DataLossError(
                    None,
                    None,
                    f"Slice {list(part)} of tensor {name} is stored as {entry.info.dtype.name} "
                    f"{list(entry.info.shape)}, and the tensor is {info.dtype.name} {list(info.shape)}",
                )
            self._check_size(entry, name)

        if mappable and not self._swapped and info.dtype is not dtypes.string:
            wanted, boxes = box(extents, info.shape, name), [box(part, info.shape, name) for part in info.slices]
            if wanted in boxes:
                check_disjoint(boxes, name)
                part = info.slices[boxes.index(wanted)]
                verify(part, tuple(each.stop - each.start for each in wanted))
                entry = entry_of(part)
                if entry.size >= _MAPPED:
                    return self._map(entry, name)
        return assemble(name, info, extents, verify, lambda part: self._value(entry_of(part), name))

    def _check_size(self, entry: _Entry, name: str) -> None:
        """Raises unless the entry can be read: its size matches its dtype and shape and is within the file. Call it before allocating memory."""
        check_rank(name, entry.info.shape)
        dtype, count = entry.info.dtype, entry.count
        if not (entry.size >= count + 4 if dtype is dtypes.string else entry.size == count * dtype.size):
            raise DataLossError(
                None, None, f"Tensor {name}: {entry.size} bytes are stored for {count} elements of {dtype.name}"
            )
        _, size = self._shard(entry.shard, name)
        if entry.offset < 0 or entry.size > size - entry.offset:
            raise DataLossError(
                None,
                None,
                f"Tensor {name}: bytes {entry.offset} to {entry.offset + entry.size} of "
                f"{data_filename(self._prefix, entry.shard, self.num_shards)}, which has {size}",
            )

    def _value(self, entry: _Entry, name: str) -> np.ndarray:
        self._check_size(entry, name)
        data = self._bytes(entry, name)
        if entry.info.dtype is dtypes.string:
            array, crc = _decode_strings(data.tobytes(), entry.count, name)
        else:
            crc = mask(crc32c(data))
            array = data.view(entry.info.dtype.as_numpy_dtype)
            if self._swapped:
                array = array.byteswap()
        if crc != entry.crc32c:
            self._raise_damaged(entry.crc32c, name, crc)
        return array.reshape(entry.info.shape)

    def _raise_damaged(self, stored: int, name: str, crc: int) -> NoReturn:
        raise DataLossError(
            None,
            None,
            f"Checksum does not match for tensor {name}: stored {stored:#010x} vs. calculated on the "
            f"restored bytes {crc:#010x}",
        )

    def _shard(self, shard: int, name: str) -> tuple[BinaryIO, int]:
        """Returns a data file and its size."""
        if shard not in self._shards:
            if not 0 <= shard < self.num_shards:
                raise DataLossError(None, None, f"Tensor {name} is in shard {shard} of {self.num_shards}")
            location = resolve(data_filename(self._prefix, shard, self.num_shards))
            source = location.system.open_read(location.path)
            with mapped(location.full):
                self._shards[shard] = (source, source.seek(0, os.SEEK_END))
        return self._shards[shard]

    def _bytes(self, entry: _Entry, name: str) -> np.ndarray:
        return self._read_range(entry.shard, entry.offset, entry.size, name)

    def _read_range(self, shard: int, offset: int, size: int, name: str) -> np.ndarray:
        source, _ = self._shard(shard, name)
        # A NumPy buffer is aligned and writable, so the array needs no copy.
        buffer = np.empty(size, np.uint8)
        with mapped(name):
            source.seek(offset)
            view, at = buffer.data, 0
            while at < size:
                chunk = source.readinto(view[at : at + _COPY_CHUNK])  # pyright: ignore[reportAttributeAccessIssue]
                if not chunk:
                    raise DataLossError(None, None, f"Tensor {name}: the file ends {size - at} bytes early")
                at += chunk
        return buffer

    def close(self) -> None:
        """Closes the data files."""
        shards, self._shards = self._shards, {}
        for source, _ in shards.values():
            source.close()

    def __enter__(self) -> BundleReader:
        return self

    def __exit__(self, *exc_info: Any) -> None:
        self.close()


def merge_bundles(prefixes: Iterable[str], merged_prefix: str, allow_missing: bool = False) -> None:
    """Merges several bundles into one. Their data files become its shards, and slices of the same tensor are combined.

    The data files are renamed and the old index files are removed, so that only the merged bundle remains.

    Raises:
        InvalidArgumentError: several bundles contain the same whole tensor, or a bundle does not exist. With
            `allow_missing`, the latter is an error only if none exists.
    """
    named = list(prefixes)
    prefixes = [prefix for prefix in named if gfile.exists(index_filename(prefix))]
    if not prefixes or (len(prefixes) < len(named) and not allow_missing):
        missing = ", ".join(prefix for prefix in named if prefix not in prefixes)
        raise InvalidArgumentError(None, None, f"Nothing to merge into {merged_prefix}: no checkpoint at {missing}")
    entries: dict[bytes, Any] = {}
    files: list[str] = []
    for prefix in prefixes:
        with BundleReader(prefix) as reader:
            for key, raw in reader._raw.items():
                _parse_entry(raw, key.decode(errors="replace"))  # raises if it is damaged
                entry = protos.BundleEntryProto.FromString(raw)
                present = entries.get(key)
                if present is None:
                    if not entry.slices:
                        entry.shard_id += len(files)
                    entries[key] = entry
                elif present.slices and entry.slices:
                    present.slices.extend(entry.slices)
                else:
                    raise InvalidArgumentError(
                        None,
                        None,
                        f"Duplicate tensor keyed by {key.decode(errors='replace')}, in more than one of {prefixes}",
                    )
            files += [data_filename(prefix, shard, reader.num_shards) for shard in range(reader.num_shards)]
    directory = os.path.dirname(merged_prefix)
    if directory:
        gfile.makedirs(directory)
    sweep_beside(merged_prefix)
    if len(set(files)) != len(files):
        raise AlreadyExistsError(None, None, f"A bundle is named twice: {prefixes}")
    locations = [resolve(path) for path in (merged_prefix, *files)]
    if all(location.prefix in ("", "file://") for location in locations):
        target, *sources = (location.path for location in locations)
        with mapped(merged_prefix), atomic.Together() as together:
            _publish(together, target, sources, entries)
    else:
        for shard, source in enumerate(files):
            target = data_filename(merged_prefix, shard, len(files))
            if source != target:
                gfile.rename(source, target, overwrite=True)
        with replacing(index_filename(merged_prefix)) as sink:
            sink.write(_index(len(files), entries))
    for prefix in prefixes:
        if prefix != merged_prefix:
            gfile.remove(index_filename(prefix))
