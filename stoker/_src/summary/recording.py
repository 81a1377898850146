"""`tf.summary` of 2.x: functions that write a value to the thread's writer, immediately or when the graph or function runs."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from stoker._src.base import dtypes
from stoker._src.base.export import export
from stoker._src.formats.protos import GraphDef, RunMetadata, SummaryMetadata
from stoker._src.graph import context
from stoker._src.graph.conversion import convert_to_tensor
from stoker._src.graph.graph import Graph
from stoker._src.graph.scopes import name_scope
from stoker._src.graph.tensor import Tensor
from stoker._src.ops.array.casting import cast
from stoker._src.ops.array.joining import concat, stack
from stoker._src.ops.array.ranges import size
from stoker._src.ops.array.selection import one_hot, where_v2
from stoker._src.ops.array.shaping import ones_like, reshape, shape, zeros
from stoker._src.ops.control_flow.branches_and_loops import cond
from stoker._src.ops.control_flow.debugging import assert_non_negative
from stoker._src.ops.control_flow.functional_loops import map_fn
from stoker._src.ops.image.codecs import encode_png
from stoker._src.ops.math.clipping import saturate_cast
from stoker._src.ops.math.reductions import reduce_max, reduce_min, reduce_sum
from stoker._src.ops.math.sequences import linspace
from stoker._src.ops.math.unary_functions import floor
from stoker._src.ops.signal.audio import ENCODE_WAV
from stoker._src.ops.strings.numbers import as_string
from stoker._src.ops.summary.writer_ops import WRITE_GRAPH_SUMMARY, WRITE_RAW_PROTO_SUMMARY, WRITE_SUMMARY
from stoker._src.runtime.functions.call_log import CALLS
from stoker._src.summary.writers import recorded, step_tensor

_DEFAULT_BUCKETS = 30
_WAV = b"\x10\x0b"  # an AudioPluginData message with the encoding WAV


def _metadata(plugin: str, description: str | None, content: bytes = b"") -> Any:
    metadata = SummaryMetadata(summary_description=description or "")
    metadata.plugin_data.plugin_name, metadata.plugin_data.content = plugin, content
    return metadata


@export(v2="summary.experimental.summary_scope")
@contextmanager
def summary_scope(name: str, default_name: str = "summary", values: Any = None) -> Iterator[tuple[str, str]]:
    """Opens a name scope for the ops of a summary. Yields the tag, which is `name` with the surrounding scopes in front, and the scope."""
    name = name or default_name
    around = context.target().get_name_scope()
    tag = f"{around}/{name}" if around else name
    # Not all characters of a tag are allowed in node names.
    cleaned = re.sub(r"[^A-Za-z0-9_.\-/]", "", name).lstrip("-_./") or None
    with name_scope(cleaned, default_name, values) as scope:
        yield tag, scope


@export(v2="summary.write")
def write(tag: Any, tensor: Any, step: Any = None, metadata: Any = None, name: str | None = None) -> Tensor:
    """Writes a tensor to the thread's writer.

    Args:
        tag: The tag.
        tensor: The tensor, or a function that returns it and is called only if it is written.
        step: The step. By default the thread's step.
        metadata: A SummaryMetadata message or its bytes. It determines the TensorBoard plugin.
        name: The name of the op.

    Returns:
        Whether it was written.

    Raises:
        ValueError: There is a writer, but no step.
    """
    if metadata is None:
        serialized = b""
    elif hasattr(metadata, "SerializeToString"):
        serialized = metadata.SerializeToString()
    else:
        serialized = metadata

    def add(writer: Tensor, scope: str) -> Any:
        value = convert_to_tensor(tensor() if callable(tensor) else tensor)
        return WRITE_SUMMARY(writer, step_tensor(step), value, tag, serialized, name=scope)

    with name_scope(name, "write_summary") as scope:
        return recorded(add, scope)


@export(v2="summary.experimental.write_raw_pb")
def write_raw_pb(tensor: Any, step: Any = None, name: str | None = None) -> Tensor:
    """Writes serialized Summary messages to the thread's writer."""
    with name_scope(name, "write_raw_pb") as scope:
        return recorded(
            lambda writer, scope: WRITE_RAW_PROTO_SUMMARY(writer, step_tensor(step), tensor, name=scope), scope
        )


@export(v2="summary.graph")
def graph(graph_data: Any) -> Tensor:
    """Writes a graph to the thread's writer.

    Raises:
        ValueError: `graph_data` is neither a Graph nor a GraphDef.
    """
    if isinstance(graph_data, Graph):
        definition = graph_data.as_graph_def(add_shapes=True)
    elif isinstance(graph_data, GraphDef):
        definition = graph_data
    else:
        raise ValueError(
            f"Argument 'graph_data' is not tf.Graph or tf.compat.v1.GraphDef. Received graph_data={graph_data} "
            f"of type {type(graph_data).__name__}."
        )
    serialized = definition.SerializeToString()
    with name_scope("graph_summary") as scope:
        return recorded(lambda writer, scope: WRITE_GRAPH_SUMMARY(writer, 0, serialized, name=scope), scope)


def _summary(
    name: str,
    kind: str,
    make: Callable[[], Tensor],
    step: Any,
    description: str | None,
    plugin: str,
    content: bytes = b"",
) -> Tensor:
    with summary_scope(name, f"{kind}_summary") as (tag, _):
        return write(tag, make, step=step, metadata=_metadata(plugin, description, content))


@export(v2="summary.scalar")
def scalar(name: str, data: Any, step: Any = None, description: str | None = None) -> Tensor:
    """Writes a number.

    Args:
        name: The tag, to which the surrounding name scopes are prepended.
        data: A scalar. It is converted to float32.
        step: The step. By default the thread's step.
        description: A description in Markdown.

    Returns:
        Whether it was written.

    Raises:
        ValueError: `data` is not a scalar, or there is no step.
    """
    data = convert_to_tensor(data)
    if data.shape.rank not in (0, None):
        raise ValueError(f"Expected scalar shape, saw shape: {data.shape}.")
    return _summary(name, "scalar", lambda: cast(data, dtypes.float32), step, description, "scalars")


@export(v2="summary.text")
def text(name: str, data: Any, step: Any = None, description: str | None = None) -> Tensor:
    """Writes strings. TensorBoard shows them as Markdown, with rank 1 or 2 as a table."""
    data = convert_to_tensor(data)
    if data.dtype is not dtypes.string:
        raise TypeError(f"tensor must be of type {dtypes.string!r}; got {data.dtype!r}")
    return _summary(name, "text", lambda: data, step, description, "text")


def _buckets(data: Tensor, count: int) -> Tensor:
    """Returns [count, 3]: the left end, right end and number of elements of buckets of equal width."""
    flat = cast(reshape(data, [-1]), dtypes.float64)

    def counted() -> Tensor:
        low, high = reduce_min(flat), reduce_max(flat)
        width = (high - low) / count
        is_point = width <= 0
        places = cast(floor((flat - low) / where_v2(is_point, ones_like(width), width)), dtypes.int32)
        # A single distinct value goes into the last bucket. The largest value belongs there, too.
        places = where_v2(is_point, count - 1, where_v2(places < count, places, count - 1))
        numbers = cast(reduce_sum(one_hot(places, depth=count, dtype=dtypes.int64), axis=0), dtypes.float64)
        edges = linspace(low, high, count + 1)
        edges = concat([edges[:-1], [high]], axis=0)
        return stack([edges[:-1], edges[1:], numbers], axis=1)

    return cond(size(flat) > 0, counted, lambda: zeros([count, 3], dtypes.float64))


@export(v2="summary.histogram")
def histogram(
    name: str, data: Any, step: Any = None, buckets: int | None = None, description: str | None = None
) -> Tensor:
    """Writes a histogram with `buckets` (by default 30) buckets of equal width."""
    data = convert_to_tensor(data)
    count = _DEFAULT_BUCKETS if buckets is None else buckets
    return _summary(name, "histogram", lambda: _buckets(data, count), step, description, "histograms")


@export(v2="summary.image")
def image(name: str, data: Any, step: Any = None, max_outputs: Any = 3, description: str | None = None) -> Tensor:
    """Writes images.

    Args:
        name: See `scalar`.
        data: [batch, height, width, channels] with 1 to 4 channels. Floating point pixels are clipped to [0, 1].
        step: See `scalar`.
        max_outputs: How many images of the batch to write.
        description: See `scalar`.
    """
    data = convert_to_tensor(data)
    if data.shape.rank not in (4, None):
        raise ValueError(f"Tensor  must have rank 4.  Received rank {data.shape.rank}, shape {data.shape}")
    assert_non_negative(max_outputs)

    def encoded() -> Tensor:
        pixels = data[:max_outputs]
        if data.dtype.is_floating:
            pixels = saturate_cast(pixels * 255.5, dtypes.uint8)
        else:
            pixels = saturate_cast(pixels, dtypes.uint8)
        sizes = shape(data)
        return concat([as_string(stack([sizes[2], sizes[1]])), encode_png(pixels)], axis=0)

    return _summary(name, "image", encoded, step, description, "images")


@export(v2="summary.audio")
def audio(
    name: str,
    data: Any,
    sample_rate: Any,
    step: Any = None,
    max_outputs: Any = 3,
    encoding: str | None = None,
    description: str | None = None,
) -> Tensor:
    """Writes audio, samples from -1 to 1 in [batch, frames, channels], as WAV.

    Raises:
        ValueError: `data` does not have rank 3, or `encoding` is neither None nor "wav".
    """
    data = convert_to_tensor(data)
    if encoding not in (None, "wav"):
        raise ValueError(f"Unknown encoding: {encoding!r}")
    if data.shape.rank not in (3, None):
        raise ValueError(f"Tensor  must have rank 3.  Received rank {data.shape.rank}, shape {data.shape}")
    assert_non_negative(max_outputs)

    def encoded() -> Tensor:
        sounds = map_fn(lambda sound: ENCODE_WAV(sound, sample_rate), data[:max_outputs], dtype=dtypes.string)
        sounds = reshape(sounds, [-1])
        return stack([sounds, zeros(shape(sounds), dtypes.string)], axis=1)

    return _summary(name, "audio", encoded, step, description, "audio", _WAV)


# ---- traces -----------------------------------------------------------------------------------------------------


@export(v2="summary.trace_on")
def trace_on(graph: bool = True, profiler: bool = False, profiler_outdir: Any = None) -> None:
    """Starts to record the calls of functions for `trace_export`.

    Args:
        graph: Whether to record their graphs.
        profiler: Not supported. Trace runs with RunOptions or ProfilerHook instead.
        profiler_outdir: The directory of the profiler.

    Raises:
        NotImplementedError: `profiler` is set.
    """
    if profiler:
        raise NotImplementedError("tf.summary.trace_on notes graphs and has no profiler.")
    if graph and not CALLS.is_on:
        CALLS.start()


@export(v2="summary.trace_off")
def trace_off() -> None:
    """Stops recording and discards the recorded calls."""
    CALLS.stop()


@export(v2="summary.trace_export")
def trace_export(name: str, step: Any = None, profiler_outdir: Any = None) -> None:
    """Writes the graphs of the functions that were called since `trace_on`, and stops recording.

    Args:
        name: The tag.
        step: The step. By default the thread's step.
        profiler_outdir: The directory of the profiler. Ignored because the profiler is not supported.

    Raises:
        ValueError: `trace_on` was not called, or there is no step.
    """
    if not CALLS.is_on:
        raise ValueError("Must enable trace before export through tf.summary.trace_on.")
    metadata = RunMetadata()
    for called in CALLS.stop():
        metadata.function_graphs.add().pre_optimization_graph.CopyFrom(called.as_graph_def(add_shapes=True))
    serialized = metadata.SerializeToString()
    write(name, lambda: convert_to_tensor(serialized), step, _metadata("graph_run_metadata_graph", None, b"1"))
