"""TFRecord files: TFRecordWriter, tf_record_iterator and their options.

Files are byte for byte identical to TensorFlow's (compressed ones if the zlib libraries agree). Reading yields all
records before the first damage and then raises DataLossError with the offset. A record's length is not trusted until its bytes are read.
"""

from __future__ import annotations

import os
import struct
import zlib
from collections.abc import Iterator
from typing import Any, BinaryIO

from stoker._src.base.errors import DataLossError, FailedPreconditionError, InvalidArgumentError
from stoker._src.formats import framing
from stoker._src.formats.filesystems import locate, raise_for

_READ_SIZE = 1 << 18
_WRITE_BUFFER = 1 << 18
_INFLATE_LIMIT = 1 << 20  # maximum output for one piece of compressed input
INFLATED_RECORD_LIMIT = 1 << 31
"""The longest record taken from a compressed file: a small file may spell any number of bytes. Records of plain files are
bounded by the file."""
_DEFAULT_INPUT_BUFFER = 256 << 10
_GZIP_WINDOW = zlib.MAX_WBITS + 16


class TFRecordCompressionType:
    """The compression type of a TFRecord file."""

    NONE = 0
    ZLIB = 1
    GZIP = 2


class TFRecordOptions:
    """How a TFRecord file is compressed.

    All options except `compression_type` matter only when writing a compressed file. None means TensorFlow's default.

    Args:
        compression_type: "GZIP", "ZLIB", "" or None, or a TFRecordCompressionType.
        flush_mode: zlib flush mode used each time the input buffer is full; default Z_NO_FLUSH. (Z_FINISH
            takes effect only at the end.)
        input_buffer_size: bytes buffered before they are compressed; default 256 KiB. It changes the file only in combination
            with a `flush_mode`.
        output_buffer_size: bytes of compressed data buffered before they are written; default 256 KiB.
        window_bits: zlib's window size, in zlib's encoding (8 to 15 for zlib, 24 to 31 for gzip). As in TensorFlow, it overrides the
            container format of `compression_type`.
        compression_level: 0 to 9; zlib's default if None.
        compression_method: zlib's method; 8 (deflate) is the only one.
        mem_level: 1 to 9; default 9.
        compression_strategy: zlib's strategy; default Z_DEFAULT_STRATEGY.

    Raises:
        ValueError: `compression_type` is invalid.
    """

    compression_type_map = {
        TFRecordCompressionType.ZLIB: "ZLIB",
        TFRecordCompressionType.GZIP: "GZIP",
        TFRecordCompressionType.NONE: "",
    }

    def __init__(
        self,
        compression_type: Any = None,
        flush_mode: int | None = None,
        input_buffer_size: int | None = None,
        output_buffer_size: int | None = None,
        window_bits: int | None = None,
        compression_level: int | None = None,
        compression_method: int | None = None,
        mem_level: int | None = None,
        compression_strategy: int | None = None,
    ) -> None:
        self.get_compression_type_string(compression_type)  # rejects invalid types
        self.compression_type = compression_type
        self.flush_mode = flush_mode
        self.input_buffer_size = input_buffer_size
        self.output_buffer_size = output_buffer_size
        self.window_bits = window_bits
        self.compression_level = compression_level
        self.compression_method = compression_method
        self.mem_level = mem_level
        self.compression_strategy = compression_strategy

    @classmethod
    def get_compression_type_string(cls, options: Any) -> str:
        """Returns "GZIP", "ZLIB" or "" for options, a TFRecordCompressionType, such a string, or None."""
        if not options:
            return ""
        if isinstance(options, TFRecordOptions):
            return cls.get_compression_type_string(options.compression_type)
        if isinstance(options, int) and options in cls.compression_type_map:
            return cls.compression_type_map[options]
        if isinstance(options, str) and options in cls.compression_type_map.values():
            return options
        raise ValueError(f'Not a valid compression_type: "{options}"')


class _PlainSink:
    """Writes framed records directly to a buffered file."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file

    def write(self, record: bytes) -> None:
        self._file.write(framing.frame(record))

    def flush(self) -> None:
        self._file.flush()

    def finish(self) -> None:
        """Does nothing, since the records are not buffered here."""


class _DeflateSink:
    """Compresses framed records on their way into a file.

    Input is buffered in the same way as in TensorFlow, because the boundaries of deflate calls affect the file
    when a flush mode is set. The three parts of a record are added one by one and are not split, and a part that is larger than the buffer is compressed on its own.
    """

    def __init__(self, file: BinaryIO, options: TFRecordOptions) -> None:
        def pick(value: int | None, default: int) -> int:
            return default if value is None else value

        gzip = TFRecordOptions.get_compression_type_string(options) == "GZIP"
        self._file = file
        self._flush_mode = pick(options.flush_mode, zlib.Z_NO_FLUSH)
        self._room = pick(options.input_buffer_size, _DEFAULT_INPUT_BUFFER)
        if self._room <= 0:
            raise InvalidArgumentError(None, None, f"input_buffer_size must be positive, got {self._room}.")
        if not zlib.Z_NO_FLUSH <= self._flush_mode <= zlib.Z_BLOCK:
            raise InvalidArgumentError(None, None, f"flush_mode must be one from 0 to 5, got {self._flush_mode}.")
        if self._flush_mode == zlib.Z_FINISH:  # more records may follow, and a finished stream accepts no more
            self._flush_mode = zlib.Z_NO_FLUSH
        try:
            self._deflate = zlib.compressobj(
                pick(options.compression_level, zlib.Z_DEFAULT_COMPRESSION),
                pick(options.compression_method, zlib.DEFLATED),
                pick(options.window_bits, _GZIP_WINDOW if gzip else zlib.MAX_WBITS),
                pick(options.mem_level, 9),
                pick(options.compression_strategy, zlib.Z_DEFAULT_STRATEGY),
            )
        except (ValueError, zlib.error) as error:
            raise InvalidArgumentError(None, None, f"zlib does not take these TFRecordOptions: {error}") from error
        self._parts: list[bytes] = []
        self._size = 0

    def write(self, record: bytes) -> None:
        framed = framing.frame(record)
        if self._size + len(framed) <= self._room:
            self._gather(framed)
            return
        for part in (framed[:12], framed[12:-4], framed[-4:]):
            if self._size + len(part) > self._room:
                self._compress(self._flush_mode)
            self._gather(part)
            if len(part) > self._room:
                self._compress(self._flush_mode)

    def flush(self) -> None:
        self._compress(zlib.Z_PARTIAL_FLUSH)
        self._file.flush()

    def finish(self) -> None:
        self._compress(zlib.Z_FINISH)

    def _gather(self, part: bytes) -> None:
        self._parts.append(part)
        self._size += len(part)

    def _compress(self, flush_mode: int) -> None:
        if self._parts:  # an empty call would make zlib forget that it was just flushed
            self._file.write(self._deflate.compress(b"".join(self._parts)))
            self._parts.clear()
            self._size = 0
        if flush_mode != zlib.Z_NO_FLUSH:
            self._file.write(self._deflate.flush(flush_mode))


class TFRecordWriter:
    """Writes records to a TFRecord file. It is a context manager that closes the file.

    Args:
        path: the file, which is created or overwritten.
        options: TFRecordOptions, a TFRecordCompressionType, "GZIP", "ZLIB", "" or None.

    Raises:
        NotFoundError, PermissionDeniedError, FailedPreconditionError: the file cannot be opened.
        ValueError: `options` has an invalid compression type.
        InvalidArgumentError: zlib does not accept the numbers in the options.
    """

    def __init__(self, path: str | bytes | os.PathLike[Any], options: Any = None) -> None:
        if not isinstance(options, TFRecordOptions):
            options = TFRecordOptions(TFRecordOptions.get_compression_type_string(options))
        self._sink: _PlainSink | _DeflateSink | None = None
        buffer_size = _WRITE_BUFFER
        compressed = TFRecordOptions.get_compression_type_string(options)
        if compressed and options.output_buffer_size is not None:
            if options.output_buffer_size <= 0:
                message = f"output_buffer_size must be positive, got {options.output_buffer_size}."
                raise InvalidArgumentError(None, None, message)
            buffer_size = max(options.output_buffer_size, 2)  # open() has special meanings for 0 and 1
        location = locate(path)
        self._path = location.full
        self._file = location.system.open_write(location.path, append=False, buffering=buffer_size)
        try:
            self._sink = _DeflateSink(self._file, options) if compressed else _PlainSink(self._file)
        except BaseException:
            self._file.close()
            raise

    def __enter__(self) -> TFRecordWriter:
        return self

    def __exit__(self, unused_type: object, unused_value: object, unused_traceback: object) -> None:
        self.close()

    def write(self, record: bytes | bytearray | str) -> None:
        """Appends a record; text is encoded as UTF-8.

        Raises:
            FailedPreconditionError: the writer is closed.
        ResourceExhaustedError: the disk is full.
        """
        if not isinstance(record, bytes):
            record = _as_bytes(record)
        try:
            self._open_sink().write(record)
        except OSError as error:
            raise_for(error, self._path)

    def flush(self) -> None:
        """Passes all buffered data to the operating system."""
        try:
            self._open_sink().flush()
        except OSError as error:
            raise_for(error, self._path)

    def close(self) -> None:
        """Closes the file. Closing twice is allowed."""
        sink, self._sink = self._sink, None
        if sink is None:
            return
        try:
            with self._file:
                sink.finish()
        except OSError as error:
            raise_for(error, self._path)

    def _open_sink(self) -> _PlainSink | _DeflateSink:
        if self._sink is None:
            raise FailedPreconditionError(None, None, "Writer is closed.")
        return self._sink


def tf_record_iterator(path: str | bytes | os.PathLike[Any], options: Any = None) -> Iterator[bytes]:
    """Returns an iterator over the records of a TFRecord file; the file is opened immediately.

    Args:
        path: the file.
        options: as for TFRecordWriter; only the compression type is used.

    Raises:
        NotFoundError, PermissionDeniedError, FailedPreconditionError: the file cannot be opened (raised by the call).
        DataLossError: the file is damaged (raised while iterating, after the records before the damage).
    """
    compression = TFRecordOptions.get_compression_type_string(options)
    location = locate(path)
    file = location.system.open_read(location.path)
    return _closing(location.full, file, read_records(file, compression))


def read_records(file: Any, compression: str = "") -> Iterator[bytes]:
    """Yields the records of an open file, from its current position. See `records_with_offsets`."""
    for records, _ in _batches(file, compression):
        yield from records


def records_with_offsets(file: BinaryIO, compression: str = "") -> Iterator[tuple[bytes, int]]:
    """Yields (record, offset of the byte after it) for an open file. Offsets are positions in the uncompressed stream.

    As in TensorFlow, an incomplete header at the end of the file counts as its end, since files that are still being
    written look like that.

    Raises:
        DataLossError: a checksum does not match ("corrupted record at N"), the file ends inside a record ("truncated
            record at N"), it is not compressed as expected, or it is compressed and has a record of more than 2 GiB.
    """
    for records, offset in _batches(file, compression):
        for record in records:
            offset += framing.HEADER_SIZE + len(record) + framing.FOOTER_SIZE
            yield record, offset


def _batches(file: BinaryIO, compression: str) -> Iterator[tuple[list[bytes], int]]:
    """Yields runs of complete records, each with its start offset."""
    source = _inflated(file, compression) if compression else _chunks(file)
    held = bytearray()  # bytes of the stream from `offset` on
    offset = 0
    ended, failure = False, None
    while not ended:
        # The buffer doubles while a record does not fit, so that memory use depends on the bytes that were actually read, not on the
        # length that the record declares.
        target = max(_READ_SIZE, 2 * len(held))
        while len(held) < target:
            try:
                piece = next(source, None)
            except DataLossError as error:  # the records before the damage come first
                failure, piece = error, None
            if piece is None:
                ended = True
                break
            held += piece
        records, position, status = framing.split(held, 0)
        if records:
            yield records, offset
        offset += position
        del held[:position]
        if status == framing.BAD_LENGTH:
            hint = " (Is this even a TFRecord file?)" if offset == 0 else ""
            raise DataLossError(None, None, f"corrupted record at {offset}{hint}")
        if status == framing.BAD_DATA:
            raise DataLossError(None, None, f"corrupted record at {offset + framing.HEADER_SIZE}")
        if compression and not ended and len(held) >= framing.HEADER_SIZE:
            (length,) = struct.unpack_from("<Q", held)
            if length > INFLATED_RECORD_LIMIT:
                raise DataLossError(
                    None,
                    None,
                    f"record at {offset} has {length} bytes; of a compressed file at most {INFLATED_RECORD_LIMIT} are taken",
                )
    if failure is not None:
        raise failure
    if len(held) >= framing.HEADER_SIZE:
        (length,) = struct.unpack_from("<Q", held)
        raise DataLossError(
            None,
            None,
            f"truncated record at {offset}' failed with Read less bytes than requested: "
            f"{length} bytes and a checksum should follow its header, {len(held) - framing.HEADER_SIZE} do.",
        )


def _chunks(file: BinaryIO) -> Iterator[bytes]:
    while chunk := file.read(_READ_SIZE):
        yield chunk


def _inflated(file: BinaryIO, compression: str) -> Iterator[bytes]:
    """Yields the contents of a GZIP or ZLIB file, in pieces of bounded size.

    GZIP members may be concatenated; data after a ZLIB stream is not read. A truncated stream ends without an error.
    """
    window = _GZIP_WINDOW if compression == "GZIP" else zlib.MAX_WBITS
    inflate = zlib.decompressobj(window)
    for chunk in _chunks(file):
        while chunk:
            if inflate.eof:
                if compression == "ZLIB":
                    return
                inflate = zlib.decompressobj(window)
            try:
                piece = inflate.decompress(chunk, _INFLATE_LIMIT)
            except zlib.error as error:
                reason = str(error).partition("data: ")[2] or str(error)
                raise DataLossError(None, None, f"inflate() failed with error -3: {reason}") from error
            if piece:
                yield piece
            chunk = inflate.unused_data if inflate.eof else inflate.unconsumed_tail


def _closing(path: str, file: BinaryIO, records: Iterator[bytes]) -> Iterator[bytes]:
    with file:
        try:
            yield from records
        except OSError as error:
            raise_for(error, path)


def _as_bytes(record: Any) -> bytes:
    if isinstance(record, str):
        return record.encode()
    if isinstance(record, (bytes, bytearray)):
        return bytes(record)
    raise TypeError(f"A record is bytes, not {type(record).__name__}.")
