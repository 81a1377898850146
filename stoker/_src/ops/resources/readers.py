"""Readers of the 1.x input pipeline: they take file names from a queue and return (key, value) pairs.

A reader works on one file at a time. At the end of the file it takes the next name and waits if there is none. If the queue is
closed and empty, reads fail with OutOfRangeError.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import torch
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory
from google.protobuf.message import DecodeError

from stoker._src.base import dtypes, forking
from stoker._src.base.deprecation import deprecated
from stoker._src.base.errors import InvalidArgumentError, UnimplementedError
from stoker._src.base.export import export
from stoker._src.base.shapes import SCALAR, Shape
from stoker._src.formats import gfile, tfrecord
from stoker._src.graph import context
from stoker._src.graph.definition import (
    BLOCKING,
    INT,
    INT32,
    SOURCE,
    STATEFUL,
    OpDefinition,
    define,
    scalar,
    with_references,
)
from stoker._src.graph.tensor import Tensor
from stoker._src.ops.io import decoding
from stoker._src.ops.resources.queue_resources import Queue

Record = tuple[bytes, bytes]
_CHUNK = 1 << 18


def _state_class() -> Any:
    """Returns the message that holds a reader's state, TensorFlow's ReaderBaseState."""
    file = descriptor_pb2.FileDescriptorProto(name="stoker/reader_state.proto", package="stoker", syntax="proto3")
    message = file.message_type.add(name="ReaderBaseState")
    field = descriptor_pb2.FieldDescriptorProto
    names = ("work_started", "work_finished", "num_records_produced")
    for number, name in enumerate(names, start=1):
        message.field.add(name=name, number=number, type=field.TYPE_INT64, label=field.LABEL_OPTIONAL)
    message.field.add(name="current_work", number=4, type=field.TYPE_BYTES, label=field.LABEL_OPTIONAL)
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    return message_factory.GetMessageClass(pool.FindMessageTypeByName("stoker.ReaderBaseState"))


_State = _state_class()


# -- the resource ------------------------------------------------------------------------------------------------


class Reader:
    """The state of one reader. `records(path)`, which subclasses define, yields the pairs of a file.

    A lock is held for a whole read, including the wait for the queue, as in TensorFlow: the reads of one reader are sequential.
    """

    KIND = "Reader"
    # A reader that finishes a file together with its last record can be saved between any two reads.
    serializable = False

    def __init__(self, name: str) -> None:
        self.name = name
        self._lock = forking.lock()
        self._clear()

    def _clear(self) -> None:
        self.work_started = self.work_finished = self.num_records_produced = 0
        self._work = b""
        self._close_file()

    def _close_file(self) -> None:
        current = getattr(self, "_records", None)
        if current is not None:
            current.close()
        self._records: Any = None
        self._failure: Exception | None = None

    def records(self, work: bytes) -> Iterator[Record]:
        raise NotImplementedError

    def _next(self) -> Record | None:
        """Returns the next pair of the current file, or None at its end. A damaged file fails at every read."""
        if self._failure is not None:
            raise self._failure
        try:
            return next(self._records, None)
        except Exception as error:
            self._failure = error
            raise

    def _start(self, queue: Queue) -> None:
        if [dtype.base_dtype for dtype in queue.component_types] != [dtypes.string]:
            raise InvalidArgumentError(None, None, "Expected queue with single string component")
        (name,) = queue.dequeue()
        if name.ndim:
            raise InvalidArgumentError(None, None, f"Expected a queue of string scalars, got shape {list(name.shape)}")
        self._work = name.item()
        records = self.records(self._work)  # Opens the file. A file that cannot be opened is skipped.
        self._records = records
        self.work_started += 1

    def _finish(self) -> None:
        self.work_finished = self.work_started
        self._close_file()

    def read(self, queue: Queue) -> Record:
        with self._lock:
            while True:
                if self._records is None:
                    self._start(queue)
                record = self._next()
                if record is None:
                    self._finish()
                    continue
                self._produced(1)
                return record

    def read_block(self, queue: Queue, count: int) -> list[np.ndarray]:
        """Returns the keys and values of up to `count` reads of one file, at least one. A damaged record is left to the next read."""
        found: list[Record] = []
        with self._lock:
            while len(found) < count:
                if self._records is None:
                    if found:
                        break
                    self._start(queue)
                try:
                    record = self._next()
                except Exception:
                    if found:
                        break  # The next read fails again.
                    raise
                if record is None:
                    self._finish()
                    continue
                found.append(record)
                if self.serializable:
                    break
            self._produced(len(found))
        keys, values = zip(*found)
        return [_strings(keys), _strings(values)]

    def read_up_to(self, queue: Queue, count: int) -> list[Record]:
        """Returns up to `count` pairs of one file, at least one unless `count` is 0."""
        found: list[Record] = []
        with self._lock:
            while len(found) < count:
                if self._records is None:
                    if found:
                        break
                    self._start(queue)
                try:
                    record = self._next()
                except Exception:
                    self._produced(len(found))
                    raise
                if record is None:
                    self._finish()
                    continue
                found.append(record)
            self._produced(len(found))
        return found

    def _produced(self, count: int) -> None:
        self.num_records_produced += count
        if self.serializable and count:
            self._finish()

    def units_completed(self) -> int:
        with self._lock:
            return self.work_finished

    def records_produced(self) -> int:
        with self._lock:
            return self.num_records_produced

    def reset(self) -> None:
        with self._lock:
            self._clear()

    def serialize(self) -> bytes:
        if not self.serializable:
            raise UnimplementedError(None, None, "Reader SerializeState")
        with self._lock:
            return _State(
                work_started=self.work_started,
                work_finished=self.work_finished,
                num_records_produced=self.num_records_produced,
                current_work=self._work,
            ).SerializeToString()

    def restore(self, data: bytes) -> None:
        with self._lock:
            self._clear()  # also if the rest fails
            if not self.serializable:
                raise UnimplementedError(None, None, "Reader RestoreState")
            shown = data[:200].decode("ascii", "backslashreplace")
            try:
                state = _State.FromString(data)
            except DecodeError:
                raise InvalidArgumentError(
                    None, None, f"Could not parse state for {self.KIND} '{self.name}': {shown}"
                ) from None
            counts = (state.work_started, state.work_finished, state.num_records_produced)
            if min(counts) < 0:
                raise InvalidArgumentError(
                    None, None, f"Unexpected negative value when restoring in {self.KIND} '{self.name}': {shown}"
                )
            if state.work_started > state.work_finished:
                raise InvalidArgumentError(
                    None,
                    None,
                    f"Inconsistent work started vs. finished when restoring in {self.KIND} '{self.name}': {shown}",
                )
            self.work_started, self.work_finished, self.num_records_produced = counts
            self._work = state.current_work

    def close(self, cancel_pending: bool = False) -> None:
        """Closes the open file. Called when the session releases its resources."""
        self._close_file()


class WholeFile(Reader):
    KIND = "WholeFileReader"
    serializable = True

    def records(self, work: bytes) -> Iterator[Record]:
        with gfile.GFile(os.fsdecode(work), "rb") as file:
            contents = file.read()
        return _once((work, contents))


class Same(Reader):
    KIND = "IdentityReader"
    serializable = True

    def records(self, work: bytes) -> Iterator[Record]:
        return _once((work, work))


class TextLines(Reader):
    KIND = "TextLineReader"

    def __init__(self, name: str, skip_header_lines: int) -> None:
        super().__init__(name)
        if skip_header_lines < 0:
            raise InvalidArgumentError(None, None, f"skip_header_lines must be >= 0 not {skip_header_lines}")
        self._skip = skip_header_lines

    def records(self, work: bytes) -> Iterator[Record]:
        return _opened(work, lambda file: _lines(file, work, self._skip))


class Records(Reader):
    KIND = "TFRecordReader"

    def __init__(self, name: str, compression: str) -> None:
        super().__init__(name)
        self._compression = compression

    def records(self, work: bytes) -> Iterator[Record]:
        return _opened(work, lambda file: _tfrecords(file, work, self._compression))


class FixedLength(Reader):
    KIND = "FixedLengthRecordReader"

    def __init__(self, name: str, header: int, record: int, footer: int, hop: int, encoding: str) -> None:
        super().__init__(name)
        for what, size in (("header_bytes", header), ("footer_bytes", footer), ("hop_bytes", hop)):
            if size < 0:
                raise InvalidArgumentError(None, None, f"{what} must be >= 0 not {size}")
        if record <= 0:
            raise InvalidArgumentError(None, None, f"record_bytes must be > 0 not {record}")
        if encoding not in ("", "ZLIB"):
            raise InvalidArgumentError(None, None, f"encoding must be '' or 'ZLIB', not {encoding!r}")
        self._sizes = (header, record, footer, hop or record)
        self._encoding = encoding

    def records(self, work: bytes) -> Iterator[Record]:
        return _opened(work, lambda file: _fixed(file, work, self._sizes, self._encoding))


def _strings(items: Sequence[bytes]) -> np.ndarray:
    vector = np.empty(len(items), dtype=object)
    vector[:] = items
    return vector


def _once(record: Record) -> Iterator[Record]:
    yield record


def _opened(work: bytes, pairs: Callable[[Any], Iterator[Record]]) -> Iterator[Record]:
    """Yields the pairs of a file. The file is opened immediately and closed after the last pair."""
    file = gfile.GFile(os.fsdecode(work), "rb")
    file.read(0)  # A GFile opens on first use.

    def each() -> Iterator[Record]:
        with file:
            yield from pairs(file)

    return each()


def _lines(file: Any, work: bytes, skip: int) -> Iterator[Record]:
    """Yields numbered lines without their ends. A carriage return before the newline belongs to the line end."""
    held, number = b"", 0
    while True:
        chunk = file.read(_CHUNK)
        lines = (held + chunk).split(b"\n")
        held = lines.pop()
        if not chunk and held.removesuffix(b"\r"):
            lines.append(held)
        for line in lines:
            number += 1
            if number > skip:
                yield work + b":%d" % number, line.removesuffix(b"\r")
        if not chunk:
            return


def _tfrecords(file: Any, work: bytes, compression: str) -> Iterator[Record]:
    offset = 0
    for record, after in tfrecord.records_with_offsets(file, compression):
        yield work + b":%d" % offset, record
        offset = after


def _fixed(file: Any, work: bytes, sizes: tuple[int, int, int, int], encoding: str) -> Iterator[Record]:
    header, record, footer, hop = sizes
    data = file.read()
    if encoding:
        data = decoding.inflate(data, gzip=False)
    end = len(data) - footer - record
    for number, at in enumerate(range(header, end + 1, hop)):
        yield work + b":%d" % number, data[at : at + record]


# -- ops ---------------------------------------------------------------------------------------------------------


def _reader(ctx: Any, container: str, shared_name: str, make: Callable[[str], Reader]) -> Reader:
    name = shared_name or ctx.name
    return ctx.resources.lookup_or_create(container, "reader", name, lambda: make(name))


WHOLE_FILE_READER_V2 = define(
    "WholeFileReaderV2() -> (reader_handle: resource)", SOURCE | STATEFUL, container="", shared_name=""
)
IDENTITY_READER_V2 = define(
    "IdentityReaderV2() -> (reader_handle: resource)", SOURCE | STATEFUL, container="", shared_name=""
)
TEXT_LINE_READER_V2 = define(
    "TextLineReaderV2() -> (reader_handle: resource)", SOURCE | STATEFUL,
    skip_header_lines=INT32(0), container="", shared_name="",
)  # fmt: skip
TF_RECORD_READER_V2 = define(
    "TFRecordReaderV2() -> (reader_handle: resource)", SOURCE | STATEFUL,
    container="", shared_name="", compression_type="",
)  # fmt: skip
FIXED_LENGTH_RECORD_READER_V2 = define(
    "FixedLengthRecordReaderV2() -> (reader_handle: resource)", SOURCE | STATEFUL,
    header_bytes=0, record_bytes=INT, footer_bytes=0, hop_bytes=0, container="", shared_name="", encoding="",
)  # fmt: skip


@WHOLE_FILE_READER_V2.kernel
def whole_file_reader_kernel(*, container: str, shared_name: str, ctx: Any) -> Reader:
    return _reader(ctx, container, shared_name, WholeFile)


@IDENTITY_READER_V2.kernel
def identity_reader_kernel(*, container: str, shared_name: str, ctx: Any) -> Reader:
    return _reader(ctx, container, shared_name, Same)


@TEXT_LINE_READER_V2.kernel
def text_line_reader_kernel(*, skip_header_lines: int, container: str, shared_name: str, ctx: Any) -> Reader:
    return _reader(ctx, container, shared_name, lambda name: TextLines(name, skip_header_lines))


@TF_RECORD_READER_V2.kernel
def tf_record_reader_kernel(*, container: str, shared_name: str, compression_type: str, ctx: Any) -> Reader:
    return _reader(ctx, container, shared_name, lambda name: Records(name, compression_type))


@FIXED_LENGTH_RECORD_READER_V2.kernel
def fixed_length_record_reader_kernel(
    *,
    header_bytes: int,
    record_bytes: int,
    footer_bytes: int,
    hop_bytes: int,
    container: str,
    shared_name: str,
    encoding: str,
    ctx: Any,
) -> Reader:
    sizes = (header_bytes, record_bytes, footer_bytes, hop_bytes)
    return _reader(ctx, container, shared_name, lambda name: FixedLength(name, *sizes, encoding))


FIXED_LENGTH_RECORD_READER = define(
    "FixedLengthRecordReader() -> (reader_handle: Ref(string))", SOURCE | STATEFUL,
    header_bytes=0, record_bytes=INT, footer_bytes=0, hop_bytes=0, container="", shared_name="",
).not_differentiable()  # fmt: skip


@FIXED_LENGTH_RECORD_READER.kernel
def plain_fixed_length_record_reader_kernel(
    *,
    header_bytes: int,
    record_bytes: int,
    footer_bytes: int,
    hop_bytes: int,
    container: str,
    shared_name: str,
    ctx: Any,
) -> Reader:
    sizes = (header_bytes, record_bytes, footer_bytes, hop_bytes)
    return _reader(ctx, container, shared_name, lambda name: FixedLength(name, *sizes, ""))


for _definition in (
    WHOLE_FILE_READER_V2,
    IDENTITY_READER_V2,
    TEXT_LINE_READER_V2,
    TF_RECORD_READER_V2,
    FIXED_LENGTH_RECORD_READER_V2,
    FIXED_LENGTH_RECORD_READER,
):
    _definition.shape(lambda: SCALAR)


def _string(value: bytes) -> np.ndarray:
    return np.array(value, dtype=object)


def _string_vector(values: list[bytes]) -> np.ndarray:
    vector = np.empty(len(values), dtype=object)
    vector[:] = values
    return vector


READER_READ_V2 = define(
    "ReaderReadV2(reader_handle: resource, queue_handle: resource) -> (key: string, value: string)",
    STATEFUL | BLOCKING,
)


@READER_READ_V2.kernel
def reader_read_kernel(reader_handle: Reader, queue_handle: Queue) -> tuple[np.ndarray, np.ndarray]:
    key, value = reader_handle.read(queue_handle)
    return _string(key), _string(value)


READER_READ_V2.shape(lambda reader_handle, queue_handle: (SCALAR, SCALAR))

READER_READ_V2.deals(Reader.read_block)

READER_READ_UP_TO_V2 = define(
    "ReaderReadUpToV2(reader_handle: resource, queue_handle: resource, num_records: scalar/one host int64) -> "
    "(keys: string, values: string)",
    STATEFUL | BLOCKING,
)


@READER_READ_UP_TO_V2.kernel
def reader_read_up_to_kernel(
    reader_handle: Reader, queue_handle: Queue, num_records: int
) -> tuple[np.ndarray, np.ndarray]:
    found = reader_handle.read_up_to(queue_handle, num_records)
    return _string_vector([key for key, _ in found]), _string_vector([value for _, value in found])


READER_READ_UP_TO_V2.shape(lambda reader_handle, queue_handle, num_records: (Shape((None,)), Shape((None,))))


def _count(signature: str, count: Callable[[Reader], int]) -> OpDefinition:
    definition = define(signature, STATEFUL)
    definition.kernel(lambda reader_handle: torch.tensor(count(reader_handle)))
    definition.shape(scalar)
    return definition


READER_NUM_RECORDS_PRODUCED_V2 = _count(
    "ReaderNumRecordsProducedV2(reader_handle: resource) -> (records_produced: int64)", Reader.records_produced
)
READER_NUM_WORK_UNITS_COMPLETED_V2 = _count(
    "ReaderNumWorkUnitsCompletedV2(reader_handle: resource) -> (units_completed: int64)", Reader.units_completed
)

READER_SERIALIZE_STATE_V2 = define("ReaderSerializeStateV2(reader_handle: resource) -> (state: string)", STATEFUL)
READER_SERIALIZE_STATE_V2.kernel(lambda reader_handle: _string(reader_handle.serialize()))
READER_SERIALIZE_STATE_V2.shape(scalar)

READER_RESTORE_STATE_V2 = define("ReaderRestoreStateV2(reader_handle: resource, state: scalar string) -> ()", STATEFUL)
READER_RESTORE_STATE_V2.kernel(lambda reader_handle, state: reader_handle.restore(state.item()))
READER_RESTORE_STATE_V2.shape(lambda reader_handle, state: ())

READER_RESET_V2 = define("ReaderResetV2(reader_handle: resource) -> ()", STATEFUL)
READER_RESET_V2.kernel(lambda reader_handle: reader_handle.reset())
READER_RESET_V2.shape(lambda reader_handle: ())

for _definition, _older in (
    (WHOLE_FILE_READER_V2, "WholeFileReader"),
    (IDENTITY_READER_V2, "IdentityReader"),
    (TEXT_LINE_READER_V2, "TextLineReader"),
    (TF_RECORD_READER_V2, "TFRecordReader"),
    (READER_READ_V2, "ReaderRead"),
    (READER_READ_UP_TO_V2, "ReaderReadUpTo"),
    (READER_NUM_RECORDS_PRODUCED_V2, "ReaderNumRecordsProduced"),
    (READER_NUM_WORK_UNITS_COMPLETED_V2, "ReaderNumWorkUnitsCompleted"),
    (READER_SERIALIZE_STATE_V2, "ReaderSerializeState"),
    (READER_RESTORE_STATE_V2, "ReaderRestoreState"),
    (READER_RESET_V2, "ReaderReset"),
):
    with_references(_definition, _older).not_differentiable()


# -- classes -----------------------------------------------------------------------------------------------------


@export(v1="ReaderBase")
class ReaderBase:
    """Base class of the readers. They return the records of the files whose names a queue holds.

    Raises:
        RuntimeError: In eager mode. Use tf.data there.
    """

    def __init__(self, reader_ref: Tensor, supports_serialize: bool = False) -> None:
        if context.executing_eagerly():
            raise RuntimeError(
                "Readers are not supported when eager execution is enabled. "
                "Instead, please use tf.data to get data into your model."
            )
        self._reader_ref = reader_ref
        self._supports_serialize = supports_serialize

    @property
    def reader_ref(self) -> Tensor:
        """The op that implements the reader."""
        return self._reader_ref

    @property
    def supports_serialize(self) -> bool:
        """Whether the reader's state can be saved and restored."""
        return self._supports_serialize

    def read(self, queue: Any, name: str | None = None) -> Any:
        """Returns the next (key, value) as two string scalars. Takes a file name from `queue` when it needs one."""
        return READER_READ_V2(self._reader_ref, getattr(queue, "queue_ref", queue), name=name)

    def read_up_to(self, queue: Any, num_records: Any, name: str | None = None) -> Any:
        """Returns up to `num_records` (keys, values) as two string vectors. Fewer at the end of a file."""
        return READER_READ_UP_TO_V2(self._reader_ref, getattr(queue, "queue_ref", queue), num_records, name=name)

    def num_records_produced(self, name: str | None = None) -> Tensor:
        """Returns how many records the reader has produced."""
        return READER_NUM_RECORDS_PRODUCED_V2(self._reader_ref, name=name)

    def num_work_units_completed(self, name: str | None = None) -> Tensor:
        """Returns how many files the reader has finished."""
        return READER_NUM_WORK_UNITS_COMPLETED_V2(self._reader_ref, name=name)

    def serialize_state(self, name: str | None = None) -> Tensor:
        """Returns the reader's state as a string. Requires `supports_serialize`."""
        return READER_SERIALIZE_STATE_V2(self._reader_ref, name=name)

    def restore_state(self, state: Any, name: str | None = None) -> Any:
        """Returns the op that restores a state from `serialize_state`."""
        return READER_RESTORE_STATE_V2(self._reader_ref, state, name=name)

    def reset(self, name: str | None = None) -> Any:
        """Returns the op that resets the reader to its initial state."""
        return READER_RESET_V2(self._reader_ref, name=name)


def _refuse_eager() -> None:
    if context.executing_eagerly():
        ReaderBase(None)  # type: ignore[arg-type]  # raises


_QUEUES = "Queue-based input pipelines have been replaced by `tf.data`."


@export(v1="WholeFileReader")
class WholeFileReader(ReaderBase):
    """A reader whose records are (file name, contents)."""

    @deprecated(None, f"{_QUEUES} Use `tf.data.Dataset.map(tf.read_file)`.")
    def __init__(self, name: str | None = None) -> None:
        _refuse_eager()
        super().__init__(WHOLE_FILE_READER_V2(name=name), supports_serialize=True)


@export(v1="TextLineReader")
class TextLineReader(ReaderBase):
    """A reader of the lines of text files, without their line ends. The keys are "file:line"."""

    @deprecated(None, f"{_QUEUES} Use `tf.data.TextLineDataset`.")
    def __init__(self, skip_header_lines: int | None = None, name: str | None = None) -> None:
        _refuse_eager()
        super().__init__(TEXT_LINE_READER_V2(skip_header_lines=skip_header_lines, name=name))


@export(v1="FixedLengthRecordReader")
class FixedLengthRecordReader(ReaderBase):
    """A reader of records with a fixed number of bytes. The keys are "file:number".

    Args:
        record_bytes: The size of a record.
        header_bytes: The number of bytes to skip at the start of a file.
        footer_bytes: The number of bytes to ignore at the end of a file.
        hop_bytes: The distance between the starts of two records. By default `record_bytes`.
        name: The op's name.
        encoding: "" or "ZLIB".
    """

    @deprecated(None, f"{_QUEUES} Use `tf.data.FixedLengthRecordDataset`.")
    def __init__(
        self,
        record_bytes: int,
        header_bytes: int | None = None,
        footer_bytes: int | None = None,
        hop_bytes: int | None = None,
        name: str | None = None,
        encoding: str | None = None,
    ) -> None:
        _refuse_eager()
        super().__init__(
            FIXED_LENGTH_RECORD_READER_V2(
                record_bytes=record_bytes,
                header_bytes=header_bytes,
                footer_bytes=footer_bytes,
                hop_bytes=hop_bytes,
                encoding=encoding,
                name=name,
            )
        )


@export(v1="TFRecordReader")
class TFRecordReader(ReaderBase):
    """A reader of TFRecord files. The keys are "file:offset"."""

    @deprecated(None, f"{_QUEUES} Use `tf.data.TFRecordDataset`.")
    def __init__(self, name: str | None = None, options: Any = None) -> None:
        _refuse_eager()
        compression = tfrecord.TFRecordOptions.get_compression_type_string(options)
        super().__init__(TF_RECORD_READER_V2(compression_type=compression, name=name))


@export(v1="IdentityReader")
class IdentityReader(ReaderBase):
    """A reader that returns (name, name) for each entry of the queue."""

    @deprecated(None, f"{_QUEUES} Use `tf.data.Dataset.map(...)`.")
    def __init__(self, name: str | None = None) -> None:
        _refuse_eager()
        super().__init__(IDENTITY_READER_V2(name=name), supports_serialize=True)
