"""`tf.contrib.summary`: summaries written by ops of a graph, or immediately in eager mode. Recording must be turned on."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from stoker._src.base import dtypes
from stoker._src.base.export import export, export_constant
from stoker._src.formats.protos import GraphDef
from stoker._src.graph import context
from stoker._src.graph.conversion import convert_to_tensor
from stoker._src.graph.graph import Graph, current_session
from stoker._src.graph.keys import GraphKeys
from stoker._src.graph.tensor import Tensor
from stoker._src.ops.array.casting import cast
from stoker._src.ops.array.constants import constant
from stoker._src.ops.control_flow.grouping import no_op
from stoker._src.ops.math.arithmetic import floormod
from stoker._src.ops.math.comparison import equal
from stoker._src.ops.summary.summary_ops import BAD_COLOR, summary_scope
from stoker._src.ops.summary.writer_ops import (
    IMPORT_EVENT,
    WRITE_AUDIO_SUMMARY,
    WRITE_GRAPH_SUMMARY,
    WRITE_HISTOGRAM_SUMMARY,
    WRITE_IMAGE_SUMMARY,
    WRITE_SCALAR_SUMMARY,
    WRITE_SUMMARY,
)
from stoker._src.summary import writers
from stoker._src.summary.state import STATE, replaced
from stoker._src.summary.writers import ResourceSummaryWriter, SummaryWriter, create_noop_writer, recorded
from stoker._src.train.training_util import get_or_create_global_step

_WRITER_INIT = "_SUMMARY_WRITER_V2"
export_constant(writers.__name__, "SummaryWriter", v1="contrib.summary.SummaryWriter")


# ---- writers ----------------------------------------------------------------------------------------------------


@export(v1="contrib.summary.create_file_writer")
def create_file_writer(
    logdir: Any,
    max_queue: Any = None,
    flush_millis: Any = None,
    filename_suffix: Any = None,
    name: str | None = None,
) -> SummaryWriter:
    """Returns a writer of an event file. In a graph `initialize` opens it, in eager mode it is opened immediately.

    Args:
        logdir: The directory, or None for a writer that writes nothing.
        max_queue: How many events may be buffered before they are passed to the operating system. By default 10.
        flush_millis: How many milliseconds events may be buffered, checked when the next event arrives. By default two minutes.
        filename_suffix: The suffix of the file name. By default ".v2".
        name: The name under which the writer is shared within a session. By default the directory.
    """
    if logdir is None:
        return create_noop_writer()
    logdir = os.fspath(logdir) if isinstance(logdir, os.PathLike) else logdir
    writer = ResourceSummaryWriter(
        shared_name=f"logdir:{logdir}" if name is None else name,
        logdir=logdir,
        max_queue=10 if max_queue is None else max_queue,
        flush_millis=120_000 if flush_millis is None else flush_millis,
        suffix=".v2" if filename_suffix is None else filename_suffix,
    )
    if not context.executing_eagerly():
        context.get_default_graph().add_to_collection(_WRITER_INIT, writer.init())
    return writer


@export(v1="contrib.summary.create_db_writer")
def create_db_writer(
    db_uri: Any, experiment_name: Any = None, run_name: Any = None, user_name: Any = None, name: str | None = None
) -> SummaryWriter:
    """Not supported. TensorBoard no longer reads databases, and TensorFlow 2 has no function of this name.

    Raises:
        NotImplementedError: Always.
    """
    raise NotImplementedError(
        f"create_db_writer cannot write to {db_uri!r}: TensorBoard no longer reads databases. Use create_file_writer."
    )


create_summary_file_writer = create_file_writer
export_constant(__name__, "create_summary_file_writer", v1="contrib.summary.create_summary_file_writer")


@export(v1="contrib.summary.summary_writer_initializer_op")
def summary_writer_initializer_op() -> list[Any]:
    """Returns the ops that open the writers of the default graph.

    Raises:
        RuntimeError: in eager mode.
    """
    if context.executing_eagerly():
        raise RuntimeError("tf.contrib.summary.summary_writer_initializer_op is only supported in graph mode.")
    return context.get_default_graph().get_collection(_WRITER_INIT)


@export(v1=("summary.initialize", "contrib.summary.initialize"))
def initialize(graph: Any = None, session: Any = None) -> None:
    """Opens the writers of the default graph in a session, by default the current one, and writes `graph` if it is given.

    Does nothing in eager mode.

    Raises:
        RuntimeError: The thread has no writer.
        ValueError: There is no session.
    """
    if context.executing_eagerly():
        return
    if STATE.writer is None:
        raise RuntimeError("No default tf.contrib.summary.SummaryWriter found")
    session = current_session() if session is None else session
    if session is None:
        raise ValueError("Argument `session must be passed if no default session exists")
    session.run(summary_writer_initializer_op())
    if graph is not None:
        session.run(write_graph(graph, 0))


@export(v1=("summary.all_v2_summary_ops", "contrib.summary.all_summary_ops"))
def all_v2_summary_ops() -> list[Tensor] | None:
    """Returns the tensors that write summaries in the default graph; None in eager mode."""
    if context.executing_eagerly():
        return None
    return context.get_default_graph().get_collection(GraphKeys._SUMMARY_COLLECTION)


# ---- whether to record ------------------------------------------------------------------------------------------


@export(v1="contrib.summary.always_record_summaries")
def always_record_summaries() -> Any:
    """A context in which summaries are recorded."""
    return replaced(recording=True)


@export(v1="contrib.summary.never_record_summaries")
def never_record_summaries() -> Any:
    """A context in which no summaries are recorded."""
    return replaced(recording=False)


@export(v1="contrib.summary.record_summaries_every_n_global_steps")
@contextmanager
def record_summaries_every_n_global_steps(n: int, global_step: Any = None) -> Iterator[None]:
    """A context in which summaries are recorded if the global step is a multiple of `n`."""
    step = get_or_create_global_step() if global_step is None else global_step
    with replaced(recording=lambda: equal(floormod(convert_to_tensor(step), constant(n, step.dtype.base_dtype)), 0)):
        yield


@export(v1="contrib.summary.should_record_summaries")
def should_record_summaries() -> Any:
    """Returns whether recording is turned on and there is a writer."""
    recording = STATE.recording() if callable(STATE.recording) else STATE.recording
    if STATE.writer is None or recording is None:
        return convert_to_tensor(False)
    return convert_to_tensor(recording)


# ---- what is written --------------------------------------------------------------------------------------------


def _written(name: str, tensor: Any, family: str | None, write: Callable[[Tensor, str, str], Any]) -> Any:
    """Writes a summary with the tag from `name` and `family`, if there is a writer."""
    if STATE.writer is None:
        return no_op()
    with summary_scope(name, family, values=[tensor]) as (tag, scope):
        return recorded(lambda writer, scope: write(writer, tag, scope), scope, default=False)


def _step(step: Any) -> Any:
    return cast(convert_to_tensor(get_or_create_global_step() if step is None else step), dtypes.int64)


@export(v1="contrib.summary.generic")
def generic(name: str, tensor: Any, metadata: Any = None, family: str | None = None, step: Any = None) -> Any:
    """Writes a tensor, with a SummaryMetadata message if it is given."""
    serialized = b"" if metadata is None else metadata.SerializeToString()

    def write(writer: Tensor, tag: str, scope: str) -> Any:
        return WRITE_SUMMARY(writer, _step(step), tensor, tag, serialized, name=scope)

    return _written(name, tensor, family, write)


@export(v1="contrib.summary.scalar")
def scalar(name: str, tensor: Any, family: str | None = None, step: Any = None) -> Any:
    """Writes a number."""

    def write(writer: Tensor, tag: str, scope: str) -> Any:
        return WRITE_SCALAR_SUMMARY(writer, _step(step), tag, tensor, name=scope)

    return _written(name, tensor, family, write)


@export(v1="contrib.summary.histogram")
def histogram(name: str, tensor: Any, family: str | None = None, step: Any = None) -> Any:
    """Writes a histogram."""

    def write(writer: Tensor, tag: str, scope: str) -> Any:
        return WRITE_HISTOGRAM_SUMMARY(writer, _step(step), tag, tensor, name=scope)

    return _written(name, tensor, family, write)


@export(v1="contrib.summary.image")
def image(
    name: str, tensor: Any, bad_color: Any = None, max_images: int = 3, family: str | None = None, step: Any = None
) -> Any:
    """Writes images. Pixels that are not finite become `bad_color`, by default red."""
    color = BAD_COLOR if bad_color is None else bad_color

    def write(writer: Tensor, tag: str, scope: str) -> Any:
        return WRITE_IMAGE_SUMMARY(writer, _step(step), tag, tensor, color, max_images=max_images, name=scope)

    return _written(name, tensor, family, write)


@export(v1="contrib.summary.audio")
def audio(
    name: str, tensor: Any, sample_rate: Any, max_outputs: int, family: str | None = None, step: Any = None
) -> Any:
    """Writes audio."""

    def write(writer: Tensor, tag: str, scope: str) -> Any:
        return WRITE_AUDIO_SUMMARY(writer, _step(step), tag, tensor, sample_rate, max_outputs=max_outputs, name=scope)

    return _written(name, tensor, family, write)


@export(v1="contrib.summary.graph")
def write_graph(param: Any, step: Any = None, name: str | None = None) -> Any:
    """Writes a graph: a Graph, a GraphDef, or a tensor with the bytes of a GraphDef."""
    if isinstance(param, Graph):
        serialized: Any = param.as_graph_def(add_shapes=True).SerializeToString()
    elif isinstance(param, GraphDef):
        serialized = param.SerializeToString()
    else:
        serialized = param
    if not isinstance(STATE.writer, ResourceSummaryWriter):
        return no_op()
    return WRITE_GRAPH_SUMMARY(STATE.writer._resource, _step(step), serialized, name=name)


@export(v1="contrib.summary.import_event")
def import_event(tensor: Any, name: str | None = None) -> Any:
    """Writes a serialized Event unchanged."""
    return IMPORT_EVENT(STATE.writer._resource, tensor, name=name)


@export(v1="contrib.summary.eval_dir")
def eval_dir(model_dir: str, name: str | None = None) -> str:
    """Returns the directory for summaries of an evaluation: `eval` in the model's directory, with the evaluation's name if it has one."""
    return os.path.join(model_dir, "eval" if not name else f"eval_{name}")
