"""Writers of event files as resources of a session, and the ops that write to them, for `tf.summary` of 2.x and `tf.contrib.summary`."""

from __future__ import annotations

import itertools
import os
import time
from typing import Any

import numpy as np
import torch
from google.protobuf.message import DecodeError

from stoker._src.base import dtypes, forking
from stoker._src.base.dtypes import DType
from stoker._src.base.errors import NotFoundError
from stoker._src.base.shapes import SCALAR
from stoker._src.formats.events import EventsWriter
from stoker._src.formats.protos import Event, GraphDef, Summary
from stoker._src.graph.definition import ANY, INT, SOURCE, STATEFUL, define, one_of
from stoker._src.ops.summary.messages import (
    audio_values,
    histogram_value,
    image_values,
    invalid,
    only,
    scalar_values,
    tensor_message,
    text_of,
)
from stoker._src.ops.summary.summary_ops import REAL_NUMBERS
from stoker._src.ops.support.values import to_numpy

_numbers = itertools.count()


class SummaryFileWriter:
    """The resource of a writer. It has a file between `open` and `close`."""

    def __init__(self, name: str) -> None:
        self.name = name
        self._lock = forking.lock()
        self._file: EventsWriter | None = None

    def open(self, logdir: str, max_queue: int, flush_millis: int, suffix: str) -> None:
        """Creates the file. Does nothing if the writer is already open."""
        with self._lock:
            if self._file is None:
                suffix = f".{os.getpid()}.{next(_numbers)}{suffix}"
                self._file = EventsWriter(logdir, suffix, max_queue, flush_millis / 1000)

    def write(self, event: Any) -> None:
        file = self._file
        if file is None:
            raise NotFoundError(None, None, f"Resource {self.name} does not exist: the summary writer is not open.")
        if not event.wall_time:
            event.wall_time = time.time()
        file.write(event)

    def flush(self) -> None:
        if self._file is not None:
            self._file.flush()

    def close(self, cancel_pending: bool = False) -> None:
        """Flushes and closes the file."""
        with self._lock:
            file, self._file = self._file, None
        if file is not None:
            file.close()


# ---- the writer -------------------------------------------------------------------------------------------------

SUMMARY_WRITER = define("SummaryWriter() -> (writer: resource)", SOURCE | STATEFUL, shared_name="", container="")
SUMMARY_WRITER.not_differentiable().shape(lambda: SCALAR)


@SUMMARY_WRITER.kernel
def summary_writer_kernel(*, shared_name: str, container: str, ctx: Any) -> SummaryFileWriter:
    name = shared_name or ctx.name
    return ctx.resources.lookup_or_create(container, "summary_writer", name, lambda: SummaryFileWriter(name))


CREATE_SUMMARY_FILE_WRITER = define(
    "CreateSummaryFileWriter(writer: resource, logdir: scalar string, max_queue: scalar host int32, "
    "flush_millis: scalar host int32, filename_suffix: scalar string) -> ()",
    STATEFUL,
)


@CREATE_SUMMARY_FILE_WRITER.kernel
def create_summary_file_writer_kernel(
    writer: SummaryFileWriter, logdir: np.ndarray, max_queue: int, flush_millis: int, filename_suffix: np.ndarray
) -> tuple[()]:
    writer.open(os.fsdecode(logdir.item()), max_queue, flush_millis, text_of(filename_suffix.item()))
    return ()


FLUSH_SUMMARY_WRITER = define("FlushSummaryWriter(writer: resource) -> ()", STATEFUL)


@FLUSH_SUMMARY_WRITER.kernel
def flush_summary_writer_kernel(writer: SummaryFileWriter) -> tuple[()]:
    writer.flush()
    return ()


CLOSE_SUMMARY_WRITER = define("CloseSummaryWriter(writer: resource) -> ()", STATEFUL)


@CLOSE_SUMMARY_WRITER.kernel
def close_summary_writer_kernel(writer: SummaryFileWriter) -> tuple[()]:
    writer.close()
    return ()


# ---- what is written --------------------------------------------------------------------------------------------


def _write(writer: SummaryFileWriter, step: int, *values: Any) -> tuple[()]:
    writer.write(Event(step=step, summary=Summary(value=values)))
    return ()


WRITE_SUMMARY = define(
    "WriteSummary(writer: resource, step: scalar host int64, tensor: T, tag: string, summary_metadata: string) -> ()",
    STATEFUL,
    T=ANY,
)


@WRITE_SUMMARY.kernel
def write_summary_kernel(
    writer: SummaryFileWriter, step: int, tensor: Any, tag: np.ndarray, summary_metadata: np.ndarray, *, T: DType
) -> tuple[()]:
    value = Summary.Value(tag=only(tag, "tag must be scalar"), tensor=tensor_message(tensor, T))
    if metadata := summary_metadata.item():
        try:
            value.metadata.MergeFromString(metadata)
        except DecodeError:
            raise invalid("summary_metadata is not a SummaryMetadata message") from None
    return _write(writer, step, value)


WRITE_RAW_PROTO_SUMMARY = define(
    "WriteRawProtoSummary(writer: resource, step: scalar host int64, tensor: string) -> ()", STATEFUL
)


@WRITE_RAW_PROTO_SUMMARY.kernel
def write_raw_proto_summary_kernel(writer: SummaryFileWriter, step: int, tensor: np.ndarray) -> tuple[()]:
    for serialized in tensor.ravel().tolist():
        try:
            summary = Summary.FromString(serialized)
        except DecodeError:
            raise invalid("Bad tf.compat.v1.Summary binary proto tensor string") from None
        writer.write(Event(step=step, summary=summary))
    return ()


WRITE_SCALAR_SUMMARY = define(
    "WriteScalarSummary(writer: resource, step: scalar host int64, tag: scalar string, value: scalar T) -> ()",
    STATEFUL,
    T=REAL_NUMBERS,
)


@WRITE_SCALAR_SUMMARY.kernel
def write_scalar_summary_kernel(
    writer: SummaryFileWriter, step: int, tag: np.ndarray, value: torch.Tensor
) -> tuple[()]:
    return _write(writer, step, *scalar_values(tag, value))


WRITE_HISTOGRAM_SUMMARY = define(
    "WriteHistogramSummary(writer: resource, step: scalar host int64, tag: scalar string, values: T) -> ()",
    STATEFUL,
    T=one_of(*REAL_NUMBERS, default=dtypes.float32),
)


@WRITE_HISTOGRAM_SUMMARY.kernel
def write_histogram_summary_kernel(
    writer: SummaryFileWriter, step: int, tag: np.ndarray, values: torch.Tensor
) -> tuple[()]:
    return _write(writer, step, histogram_value(tag, values))


WRITE_IMAGE_SUMMARY = define(
    "WriteImageSummary(writer: resource, step: scalar host int64, tag: scalar string, tensor: T, bad_color: uint8) -> ()",
    STATEFUL,
    max_images=INT(3, minimum=1),
    T=one_of(dtypes.uint8, dtypes.float64, dtypes.float32, dtypes.float16, default=dtypes.float32),
)


@WRITE_IMAGE_SUMMARY.kernel
def write_image_summary_kernel(
    writer: SummaryFileWriter,
    step: int,
    tag: np.ndarray,
    tensor: torch.Tensor,
    bad_color: torch.Tensor,
    *,
    max_images: int,
) -> tuple[()]:
    return _write(writer, step, *image_values(tag, tensor, to_numpy(bad_color), max_images))


WRITE_AUDIO_SUMMARY = define(
    "WriteAudioSummary(writer: resource, step: scalar host int64, tag: scalar string, tensor: float32, "
    "sample_rate: scalar host float32) -> ()",
    STATEFUL,
    max_outputs=INT(3, minimum=1),
)


@WRITE_AUDIO_SUMMARY.kernel
def write_audio_summary_kernel(
    writer: SummaryFileWriter,
    step: int,
    tag: np.ndarray,
    tensor: torch.Tensor,
    sample_rate: float,
    *,
    max_outputs: int,
) -> tuple[()]:
    return _write(writer, step, *audio_values(tag, tensor, sample_rate, max_outputs))


WRITE_GRAPH_SUMMARY = define(
    "WriteGraphSummary(writer: resource, step: scalar host int64, tensor: scalar string) -> ()", STATEFUL
)


@WRITE_GRAPH_SUMMARY.kernel
def write_graph_summary_kernel(writer: SummaryFileWriter, step: int, tensor: np.ndarray) -> tuple[()]:
    serialized = tensor.item()
    try:
        GraphDef.FromString(serialized)
    except DecodeError:
        raise invalid("Bad tf.compat.v1.GraphDef binary proto tensor string") from None
    writer.write(Event(step=step, graph_def=serialized))
    return ()


IMPORT_EVENT = define("ImportEvent(writer: resource, event: scalar string) -> ()", STATEFUL)


@IMPORT_EVENT.kernel
def import_event_kernel(writer: SummaryFileWriter, event: np.ndarray) -> tuple[()]:
    try:
        writer.write(Event.FromString(event.item()))
    except DecodeError:
        raise invalid("Bad tf.Event binary proto tensor string") from None
    return ()
