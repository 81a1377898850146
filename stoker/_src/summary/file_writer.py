"""`tf.summary.FileWriter`: event files that the program writes itself, not through ops."""

from __future__ import annotations

import os
import time
import warnings
from collections.abc import Iterator
from typing import Any

from stoker._src.base import dtypes, forking
from stoker._src.base.export import export
from stoker._src.base.shapes import SCALAR
from stoker._src.formats.events import EventsWriter, read_events
from stoker._src.formats.protos import Event, GraphDef, MetaGraphDef, SessionLog, Summary, TaggedRunMetadata
from stoker._src.graph import context
from stoker._src.graph.graph import Graph
from stoker._src.graph.interchange.meta_graph import export_scoped_meta_graph
from stoker._src.ops.array.constants import PLACEHOLDER
from stoker._src.ops.summary.writer_ops import (
    CLOSE_SUMMARY_WRITER,
    CREATE_SUMMARY_FILE_WRITER,
    FLUSH_SUMMARY_WRITER,
    IMPORT_EVENT,
    SUMMARY_WRITER,
)

_GRAPH_EXPECTED = "The passed graph must be an instance of `Graph` or the deprecated `GraphDef`"


class EventFileWriter:
    """Writes events to a file in its directory. `reopen` after `close` starts a new file."""

    def __init__(self, logdir: Any, max_queue: int = 10, flush_secs: float = 120, filename_suffix: Any = None) -> None:
        self._logdir = os.fspath(logdir)
        suffix = filename_suffix.decode() if isinstance(filename_suffix, bytes) else filename_suffix or ""
        self._make = lambda: EventsWriter(self._logdir, suffix, max_queue, flush_secs)
        self._file: EventsWriter | None = self._make()

    def get_logdir(self) -> str:
        return self._logdir

    def reopen(self) -> None:
        if self._file is None:
            self._file = self._make()

    def add_event(self, event: Any) -> None:
        if self._file is not None:
            self._file.write(event)

    def flush(self) -> None:
        if self._file is not None:
            self._file.flush()

    def close(self) -> None:
        file, self._file = self._file, None
        if file is not None:
            file.close()


class SessionEventWriter:
    """Writes events through a writer in a session, which all users of the same directory in that session share."""

    def __init__(
        self, session: Any, logdir: Any, max_queue: int = 10, flush_secs: float = 120, filename_suffix: Any = None
    ) -> None:
        self._session, self._logdir = session, os.fspath(logdir)
        suffix = ".v2" if filename_suffix is None else filename_suffix
        with session.graph.as_default(), session.graph.name_scope("filewriter"):
            writer = SUMMARY_WRITER(shared_name=f"logdir:{self._logdir}")
            self._open = CREATE_SUMMARY_FILE_WRITER(writer, self._logdir, max_queue, int(flush_secs * 1000), suffix)
            self._event = PLACEHOLDER(dtype=dtypes.string, shape=SCALAR)
            self._add = IMPORT_EVENT(writer, self._event)
            self._flush = FLUSH_SUMMARY_WRITER(writer)
            self._close = CLOSE_SUMMARY_WRITER(writer)
        session.run(self._open)
        self._closed = False

    def get_logdir(self) -> str:
        return self._logdir

    def reopen(self) -> None:
        if self._closed:
            self._session.run(self._open)
            self._closed = False

    def add_event(self, event: Any) -> None:
        if not self._closed:
            self._session.run(self._add, {self._event: event.SerializeToString()})

    def flush(self) -> None:
        if not self._closed:
            self._session.run(self._flush)

    def close(self) -> None:
        if not self._closed:
            self._session.run(self._flush)
            self._session.run(self._close)
            self._closed = True


class SummaryToEventTransformer:
    """Wraps summaries, graphs and logs into events for a writer.

    Raises:
        ValueError: Both `graph` and `graph_def` are given.
    """

    def __init__(self, event_writer: Any, graph: Any = None, graph_def: Any = None) -> None:
        self.event_writer = event_writer
        self._run_tags: set[str] = set()
        self._seen_tags: set[str] = set()  # tags whose metadata was already written
        if graph is not None and graph_def is not None:
            raise ValueError("Please pass only graph, or graph_def (deprecated), but not both.")
        if graph is not None or graph_def is not None:
            self.add_graph(graph=graph, graph_def=graph_def)
            if isinstance(graph, Graph):
                self.add_meta_graph(export_scoped_meta_graph(graph=graph))

    def add_summary(self, summary: Any, global_step: Any = None) -> None:
        """Writes a Summary, given as a message or as the bytes that a summary op returns.

        The metadata of a tag is written with its first value only.
        """
        if isinstance(summary, bytes):
            summary = Summary.FromString(summary)
        else:
            summary.value  # noqa: B018  (an object without values is not a summary)
            summary = Summary.FromString(summary.SerializeToString())
        for value in summary.value:
            if value.HasField("metadata"):
                if value.tag in self._seen_tags:
                    value.ClearField("metadata")
                else:
                    self._seen_tags.add(value.tag)
        self._add(Event(summary=summary), global_step)

    def add_session_log(self, session_log: Any, global_step: Any = None) -> None:
        """Writes a SessionLog: a session was started or stopped, or it saved a checkpoint."""
        self._add(Event(session_log=SessionLog.FromString(session_log.SerializeToString())), global_step)

    def add_graph(self, graph: Any, global_step: Any = None, graph_def: Any = None) -> None:
        """Writes a graph, which TensorBoard displays.

        Raises:
            ValueError: Both `graph` and `graph_def` are given.
            TypeError: The argument is not a graph.
        """
        if graph is not None and graph_def is not None:
            raise ValueError("Please pass only graph, or graph_def (deprecated), but not both.")
        definition: Any = graph_def if graph is None else graph
        if isinstance(definition, Graph):
            definition = definition.as_graph_def(add_shapes=True)
        elif not _is_message(definition, "GraphDef"):
            raise TypeError(_GRAPH_EXPECTED)
        self._add(Event(graph_def=definition.SerializeToString()), global_step)

    def add_meta_graph(self, meta_graph_def: Any, global_step: Any = None) -> None:
        """Writes a meta graph.

        Raises:
            TypeError: The argument is not a meta graph.
        """
        if not _is_message(meta_graph_def, "MetaGraphDef"):
            raise TypeError(f"meta_graph_def must be type MetaGraphDef, saw type: {type(meta_graph_def)}")
        self._add(Event(meta_graph_def=meta_graph_def.SerializeToString()), global_step)

    def add_run_metadata(self, run_metadata: Any, tag: str, global_step: Any = None) -> None:
        """Writes the trace of a run under a name.

        Raises:
            ValueError: The name was used before.
        """
        if tag in self._run_tags:
            raise ValueError("The provided tag was already used for this event type")
        self._run_tags.add(tag)
        tagged = TaggedRunMetadata(tag=tag, run_metadata=run_metadata.SerializeToString())
        self._add(Event(tagged_run_metadata=tagged), global_step)

    def _add(self, event: Any, step: Any) -> None:
        event.wall_time = time.time()
        if step is not None:
            event.step = int(step)
        self.event_writer.add_event(event)


def _is_message(value: Any, name: str) -> bool:
    """Returns whether a value is a message of that type, from any package."""
    kinds = {"GraphDef": GraphDef, "MetaGraphDef": MetaGraphDef}
    return isinstance(value, kinds[name]) or getattr(getattr(value, "DESCRIPTOR", None), "name", None) == name


@export(v1=("summary.FileWriter", "train.SummaryWriter"))
class FileWriter(SummaryToEventTransformer):
    """Writes summaries, graphs and logs of a training program to an event file for TensorBoard. A context manager that closes the file.

    Args:
        logdir: The directory. It is created if it does not exist.
        graph: A graph to write first, with its meta graph.
        max_queue: How many events may be buffered before they are passed to the operating system.
        flush_secs: How many seconds events may be buffered. Checked when the next event arrives.
        graph_def: the older form of `graph`.
        filename_suffix: The suffix of the file name.
        session: A session. The writer is then shared with the ops of `tf.contrib.summary` for the same directory.

    Raises:
        RuntimeError: in eager mode.
    """

    def __init__(
        self,
        logdir: Any,
        graph: Any = None,
        max_queue: int = 10,
        flush_secs: float = 120,
        graph_def: Any = None,
        filename_suffix: str | None = None,
        session: Any = None,
    ) -> None:
        if context.executing_eagerly():
            raise RuntimeError(
                "tf.summary.FileWriter is not compatible with eager execution. Use tf.contrib.summary instead."
            )
        logdir = "" if logdir is None else logdir
        if session is not None:
            writer: Any = SessionEventWriter(session, logdir, max_queue, flush_secs, filename_suffix)
        else:
            writer = EventFileWriter(logdir, max_queue, flush_secs, filename_suffix)
        self._closed = False
        super().__init__(writer, graph, graph_def)

    def __enter__(self) -> FileWriter:
        return self

    def __exit__(self, unused_type: object, unused_value: object, unused_traceback: object) -> None:
        self.close()

    def get_logdir(self) -> str:
        """The directory of the event file."""
        return self.event_writer.get_logdir()

    def add_event(self, event: Any) -> None:
        """Writes an event unchanged."""
        if not _is_event(event):
            raise TypeError(f"Expected an event_pb2.Event proto,  but got {type(event)}")
        self._warn_if_closed()
        self.event_writer.add_event(event)

    def _add(self, event: Any, step: Any) -> None:
        self._warn_if_closed()
        super()._add(event, step)

    def _warn_if_closed(self) -> None:
        if self._closed:
            warnings.warn(
                "Attempting to use a closed FileWriter. The operation will be a noop unless the FileWriter is explicitly reopened.",
                stacklevel=3,
            )

    def flush(self) -> None:
        """Passes all buffered events to the operating system."""
        self._warn_if_closed()
        self.event_writer.flush()

    def close(self) -> None:
        """Closes the file. It may be called more than once."""
        self._closed = True
        self.event_writer.close()

    def reopen(self) -> None:
        """Continues with a new file in the same directory. Does nothing while the writer is open."""
        self._closed = False
        self.event_writer.reopen()


def _is_event(event: Any) -> bool:
    return getattr(getattr(event, "DESCRIPTOR", None), "name", None) == "Event"


@export(v1=("summary.FileWriterCache", "train.SummaryWriterCache"))
class FileWriterCache:
    """One FileWriter for each directory."""

    _cache: dict[str, FileWriter] = {}
    _lock = forking.rlock()

    @staticmethod
    def clear() -> None:
        """Closes and removes all writers."""
        with FileWriterCache._lock:
            for writer in FileWriterCache._cache.values():
                writer.close()
            FileWriterCache._cache.clear()

    @staticmethod
    def get(logdir: Any) -> FileWriter:
        """Returns the writer of a directory. The first call creates it, and its file starts with the default graph."""
        with FileWriterCache._lock:
            logdir = os.fspath(logdir)
            if logdir not in FileWriterCache._cache:
                FileWriterCache._cache[logdir] = FileWriter(logdir, graph=context.get_default_graph())
            return FileWriterCache._cache[logdir]


@export(v1="train.summary_iterator")
def summary_iterator(path: Any) -> Iterator[Any]:
    """Iterates over the events of an event file, which is opened immediately. An incomplete record header at the end is ignored.

    Raises:
        NotFoundError: The file does not exist.
        DataLossError: The file is damaged or ends inside a record. Raised after the events before the damage.
    """
    return read_events(path)
