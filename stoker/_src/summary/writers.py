"""Writers for ops: `tf.summary.create_file_writer`, and the conditions under which functions of 2.x write."""

from __future__ import annotations

import itertools
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from stoker._src.base import dtypes
from stoker._src.base.export import export
from stoker._src.graph import context
from stoker._src.graph.conversion import convert_to_tensor
from stoker._src.graph.keys import GraphKeys
from stoker._src.graph.scopes import control_dependencies, init_scope, name_scope
from stoker._src.graph.static_values import constant_value
from stoker._src.graph.tensor import Tensor
from stoker._src.ops.array.casting import cast
from stoker._src.ops.control_flow.branches_and_loops import cond
from stoker._src.ops.control_flow.grouping import no_op
from stoker._src.ops.summary.writer_ops import (
    CLOSE_SUMMARY_WRITER,
    CREATE_SUMMARY_FILE_WRITER,
    FLUSH_SUMMARY_WRITER,
    SUMMARY_WRITER,
)
from stoker._src.summary.state import STATE, replaced

_anonymous = itertools.count()


@export(v2="summary.SummaryWriter")
class SummaryWriter:
    """Base class of summary writers. `create_file_writer` and `create_noop_writer` create them."""

    def set_as_default(self, step: Any = None) -> None:
        """Makes this the thread's writer, and sets the thread's step if `step` is given."""
        raise NotImplementedError

    def as_default(self, step: Any = None) -> Any:
        """A context in which this is the thread's writer. If `step` is given, it is the thread's step."""
        raise NotImplementedError

    def init(self) -> Any:
        """Opens the writer. In graph mode, returns the op that does so."""
        raise NotImplementedError

    def flush(self) -> Any:
        """Passes all buffered events to the operating system. In graph mode, returns the op that does so."""
        raise NotImplementedError

    def close(self) -> Any:
        """Flushes and closes the writer. In graph mode, returns the op that does so."""
        raise NotImplementedError


class ResourceSummaryWriter(SummaryWriter):
    """A writer with a resource handle. In eager mode it is opened immediately, in a graph by `init()`."""

    def __init__(self, shared_name: str, logdir: Any, max_queue: Any, flush_millis: Any, suffix: Any) -> None:
        with init_scope():
            self._is_eager = context.executing_eagerly()
            self._resource = SUMMARY_WRITER(shared_name=shared_name)
            self._init_op = CREATE_SUMMARY_FILE_WRITER(self._resource, logdir, max_queue, flush_millis, suffix)
        self._closed = False

    @contextmanager
    def as_default(self, step: Any = None) -> Iterator[SummaryWriter]:
        self._check_open()
        with replaced(writer=self, step=STATE.step if step is None else step):
            try:
                yield self
            finally:
                if self._is_eager and context.executing_eagerly():
                    self.flush()

    def set_as_default(self, step: Any = None) -> None:
        self._check_open()
        STATE.writer = self
        if step is not None:
            STATE.step = step

    def _check_open(self) -> None:
        if self._is_eager and self._closed:
            raise RuntimeError(f"SummaryWriter {self!r} is already closed")

    def init(self) -> Any:
        self._check_open()
        return self._init_op

    def flush(self) -> Any:
        if self._is_eager and self._closed:
            return None
        with name_scope("flush"):
            return FLUSH_SUMMARY_WRITER(self._resource)

    def close(self) -> Any:
        if self._is_eager and self._closed:
            return None
        with control_dependencies([self.flush()] if not context.executing_eagerly() else []):
            closing = CLOSE_SUMMARY_WRITER(self._resource)
        if self._is_eager:
            self._closed = True
        return closing


class _NoopSummaryWriter(SummaryWriter):
    """A writer that writes nothing."""

    @contextmanager
    def as_default(self, step: Any = None) -> Iterator[SummaryWriter]:
        with replaced(writer=self, step=STATE.step if step is None else step):
            yield self

    def set_as_default(self, step: Any = None) -> None:
        STATE.writer = self
        if step is not None:
            STATE.step = step

    def init(self) -> None:
        """There is nothing to open."""

    def flush(self) -> None:
        """There is nothing to flush."""

    def close(self) -> None:
        """There is nothing to close."""


@export(v2="summary.create_noop_writer")
def create_noop_writer() -> SummaryWriter:
    """Returns a writer that writes nothing, for programs that turn summaries off."""
    return _NoopSummaryWriter()


@export(v2="summary.create_file_writer")
def create_file_writer(
    logdir: Any,
    max_queue: Any = None,
    flush_millis: Any = None,
    filename_suffix: Any = None,
    name: str | None = None,
    experimental_trackable: bool = False,
    experimental_mesh: Any = None,
) -> SummaryWriter:
    """Returns a writer of an event file.

    Args:
        logdir: The directory. It is created if it does not exist.
        max_queue: How many events may be buffered before they are passed to the operating system. By default 10.
        flush_millis: How many milliseconds events may be buffered, checked when the next event arrives. By default two minutes.
        filename_suffix: The suffix of the file name. By default ".v2".
        name: The name of the ops.
        experimental_trackable: Not supported.
        experimental_mesh: Not supported.

    Raises:
        ValueError: `logdir` is None.
        NotImplementedError: `experimental_trackable` or `experimental_mesh` is given.
    """
    if logdir is None:
        raise ValueError("Argument `logdir` cannot be None")
    if experimental_trackable or experimental_mesh is not None:
        raise NotImplementedError("Summary writers are neither trackable objects nor spread over a mesh of devices.")
    if isinstance(logdir, os.PathLike):
        logdir = os.fspath(logdir)
    with init_scope(), name_scope(name, "create_file_writer"):
        return ResourceSummaryWriter(
            shared_name=f"_SummaryWriter{next(_anonymous)}",
            logdir=logdir,
            max_queue=10 if max_queue is None else max_queue,
            flush_millis=120_000 if flush_millis is None else flush_millis,
            suffix=".v2" if filename_suffix is None else filename_suffix,
        )


@export(v2="summary.experimental.get_step")
def get_step() -> Any:
    """Returns the thread's step as it was set, or None."""
    return STATE.step


@export(v2="summary.experimental.set_step")
def set_step(step: Any) -> None:
    """Sets the thread's step: a number, or a variable that is read when a summary is written."""
    STATE.step = step


@export(v2="summary.record_if")
@contextmanager
def record_if(condition: Any) -> Iterator[None]:
    """Records summaries in a block only if `condition` is true: a bool, a tensor, or a function that returns one of them."""
    with replaced(recording=condition):
        yield


@export(v2="summary.should_record_summaries")
def should_record_summaries() -> Any:
    """Returns whether summaries are recorded: there is a writer, and `record_if` allows it."""
    if STATE.writer is None or isinstance(STATE.writer, _NoopSummaryWriter):
        return convert_to_tensor(False)
    return convert_to_tensor(_condition(True))


def _condition(default: bool) -> Any:
    recording = STATE.recording() if callable(STATE.recording) else STATE.recording
    return default if recording is None else recording


@export(v2="summary.flush", v1="contrib.summary.flush")
def flush(writer: Any = None, name: str | None = None) -> Any:
    """Flushes a writer, by default the thread's: passes its buffered events to the operating system.

    Raises:
        ValueError: `writer` is not a writer.
    """
    writer = STATE.writer if writer is None else writer
    if writer is None:
        return no_op()
    if isinstance(writer, SummaryWriter):
        return writer.flush()
    if isinstance(writer, Tensor):
        return FLUSH_SUMMARY_WRITER(writer, name=name)
    raise ValueError(f"Invalid argument to flush(): {writer!r}")


def step_tensor(step: Any) -> Tensor:
    """Returns the given step or else the thread's.

    Raises:
        ValueError: There is none.
    """
    if step is None:
        step = STATE.step
    if step is None:
        raise ValueError(
            "No step set. Please specify one either through the `step` argument or through tf.summary.experimental.set_step()"
        )
    return cast(convert_to_tensor(step() if callable(step) else step), dtypes.int64)


def recorded(write: Callable[[Tensor, str], Any], scope: str, default: bool = True) -> Tensor:
    """Calls `write` with the writer's handle and the name scope, if there is a writer and summaries are recorded.

    Returns:
        Whether it was written, as a tensor. In a graph, running the tensor writes the summary.
    """
    writer = STATE.writer
    if not isinstance(writer, ResourceSummaryWriter):
        return convert_to_tensor(False)

    def record() -> Tensor:
        with control_dependencies([write(writer._resource, scope)] if not context.executing_eagerly() else []):
            if context.executing_eagerly():
                write(writer._resource, scope)
            return convert_to_tensor(True)

    condition = _condition(default)
    known = constant_value(condition) if isinstance(condition, Tensor) else bool(condition)
    if known is not None:
        result = record() if known else convert_to_tensor(False)
    else:
        result = cond(condition, record, lambda: convert_to_tensor(False))
    if not context.executing_eagerly():
        context.get_default_graph().add_to_collection(GraphKeys._SUMMARY_COLLECTION, result)
    return result
