"""Event files: records of Event messages, which TensorBoard reads.

An event file is a TFRecord file whose first record contains `brain.Event:2`. Its name starts with
`events.out.tfevents.`, the time in seconds and the host. TensorBoard finds files by this prefix and sorts those of a directory by name.
"""

from __future__ import annotations

import os
import socket
import time
from collections.abc import Iterator
from typing import Any

from google.protobuf.message import DecodeError

from stoker._src.base import forking
from stoker._src.base.errors import DataLossError, FailedPreconditionError
from stoker._src.formats import gfile
from stoker._src.formats.protos import Event
from stoker._src.formats.tfrecord import TFRecordWriter, tf_record_iterator

FILE_VERSION = "brain.Event:2"


class EventsWriter:
    """Appends events to a file, which is created immediately. Thread-safe.

    Events are buffered until there are more than `max_queue` of them or the last flush was `flush_secs` ago. If the file name
    is taken (two writers within a second), the seconds in the name are increased until the name is free.

    Args:
        directory: the directory of the file; it is created if it does not exist.
        suffix: the end of the file's name.
        max_queue: the maximum number of buffered events.
        flush_secs: the maximum age of the buffer, checked when an event is written.
        prefix: the start of the file's name.
    """

    def __init__(
        self, directory: Any, suffix: str = "", max_queue: int = 10, flush_secs: float = 120, prefix: str = "events"
    ) -> None:
        directory = os.fspath(directory)
        gfile.makedirs(directory)
        start = os.path.join(directory, prefix)
        seconds, host = int(time.time()), socket.gethostname()
        while gfile.exists(path := f"{start}.out.tfevents.{seconds:010d}.{host}{suffix}"):
            seconds += 1
        self.path: str = path
        self._max_queue, self._flush_secs = max_queue, flush_secs
        self._lock = forking.lock()
        self._waiting = 0
        self._records: TFRecordWriter | None = TFRecordWriter(path)
        self._records.write(Event(wall_time=time.time(), file_version=FILE_VERSION).SerializeToString())
        self._flush()

    def write(self, event: Any) -> None:
        """Appends an Event.

        Raises:
            FailedPreconditionError: the file is closed.
        """
        serialized = event.SerializeToString()
        with self._lock:
            if self._records is None:
                raise FailedPreconditionError(None, None, f"The event file {self.path} is closed.")
            self._records.write(serialized)
            self._waiting += 1
            if self._waiting > self._max_queue or time.monotonic() - self._flushed >= self._flush_secs:
                self._flush()

    def _flush(self) -> None:
        if self._records is not None:
            self._records.flush()
        self._waiting, self._flushed = 0, time.monotonic()

    def flush(self) -> None:
        """Passes all buffered data to the operating system."""
        with self._lock:
            self._flush()

    def close(self) -> None:
        """Closes the file. Closing twice is allowed."""
        with self._lock:
            records, self._records = self._records, None
            if records is not None:
                records.close()


def read_events(path: Any) -> Iterator[Any]:
    """Returns an iterator over the events of a file, which is opened immediately.

    An incomplete last record is skipped, since a writer may not have finished it.

    Raises:
        NotFoundError: the file does not exist (raised by the call).
        DataLossError: the file is damaged or a record is not an Event (raised after the preceding events).
    """
    return _parsed(tf_record_iterator(path))


def _parsed(records: Iterator[bytes]) -> Iterator[Any]:
    for number, record in enumerate(_whole(records)):
        try:
            event = Event.FromString(record)
        except DecodeError as error:
            raise DataLossError(None, None, f"record {number} is not an Event message: {error}") from error
        yield event


def _whole(records: Iterator[bytes]) -> Iterator[bytes]:
    try:
        yield from records
    except DataLossError as error:
        if not error.message.startswith("truncated record at"):
            raise
