"""The event files that a program left behind, as text: one line for each record and each value in it."""

from __future__ import annotations

import hashlib
import io
import itertools
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

import stoker.compat.v1 as tf

_SHOWN = re.compile("^Variable|VarHandle|Placeholder|Summary|Queue|Reader|Apply|MatMul|Conv2D|Softmax|Save|Restore")
_VARIES = re.compile(r"/sec$|fraction_of_\d+_full$|fraction_over_\d+_of_\d+_full$")
_PORTION = 4  # numbers of a long tensor that are shown, besides its sum


def described(folder: Path) -> str:
    """Describes the event files under `folder`, those of one directory in the order in which they were made."""
    lines: list[str] = []
    for path in sorted(folder.rglob("*tfevents*")):
        # The name holds the time, the machine and, from TensorFlow 2 on, the process.
        suffix = re.sub(r"^events\.out\.tfevents\.\d+\.[^.]+(\.\d+\.\d+)?", "", path.name)
        lines.append(f"file in {path.parent.relative_to(folder)} suffix {suffix!r}")
        # The order of records that different ops write in one run is not defined.
        for _, events in itertools.groupby(tf.train.summary_iterator(str(path)), _moment):
            described_events = [list(_event(event)) for event in events]
            lines += itertools.chain.from_iterable(sorted(described_events))
    return "\n".join(lines) + "\n"


def _moment(event: Any) -> Any:
    """The same for summaries of one value each that belong to the same step, one of its own for other records."""
    is_single = event.WhichOneof("what") == "summary" and len(event.summary.value) == 1
    return event.step if is_single else event.SerializeToString()


def _event(event: Any) -> Iterator[str]:
    kind = event.WhichOneof("what")
    if kind == "file_version":
        yield f"{event.step} version {event.file_version}"
    elif kind == "graph_def":
        yield f"{event.step} graph {_graph(tf.GraphDef.FromString(event.graph_def))}"
    elif kind == "meta_graph_def":
        meta = tf.MetaGraphDef.FromString(event.meta_graph_def)
        # A cond is one node here, not a context of many.
        collections = sorted(
            item for item in meta.collection_def.items() if item[0] not in ("cond_context", "while_context")
        )
        sizes = {key: _size(value) for key, value in collections}
        yield f"{event.step} meta graph {_graph(meta.graph_def)} {sizes}"
    elif kind == "session_log":
        log = event.session_log
        yield f"{event.step} log {log.status} {Path(log.checkpoint_path).name!r} {log.msg!r}"
    elif kind == "tagged_run_metadata":
        yield f"{event.step} run metadata {event.tagged_run_metadata.tag}"
    elif kind == "summary":
        for value in event.summary.value:
            yield f"{event.step} {value.tag or value.node_name}{_metadata(value)} {_value(value)}"
    else:
        yield f"{event.step} {kind}"


def _graph(graph_def: Any) -> str:
    """The nodes that a program's own lines make: what a function is composed of differs between versions."""
    nodes = sorted(f"{node.name} {node.op}" for node in graph_def.node if _SHOWN.search(node.op))
    return f"of {len(nodes)} of them, {hashlib.md5(chr(10).join(nodes).encode()).hexdigest()[:8]}"


def _size(collection: Any) -> int:
    kind = collection.WhichOneof("kind")
    return len(getattr(collection, kind).value) if kind else 0


def _metadata(value: Any) -> str:
    if not value.HasField("metadata"):
        return ""
    shown = value.metadata
    return f" [{shown.plugin_data.plugin_name} {shown.display_name!r} {shown.summary_description!r}]"


def _value(value: Any) -> str:
    kind = value.WhichOneof("value")
    if kind == "simple_value":
        # How fast the machine is, and how full a queue, differs from run to run.
        return "varies" if _VARIES.search(value.tag) else _number(value.simple_value)
    if kind == "histo":
        histogram = value.histo
        numbers = [histogram.min, histogram.max, histogram.num, histogram.sum, histogram.sum_squares]
        buckets = f"{len(histogram.bucket)} buckets of {_number(sum(histogram.bucket))}"
        return f"histogram {' '.join(map(_number, numbers))} {buckets}"
    if kind == "image":
        image = value.image
        pixels = np.asarray(Image.open(io.BytesIO(image.encoded_image_string))).astype(float)
        return f"image {image.height}x{image.width}x{image.colorspace} mean {_number(pixels.mean())}"
    if kind == "audio":
        audio = value.audio
        digest = hashlib.md5(audio.encoded_audio_string).hexdigest()[:8]
        sizes = f"{_number(audio.sample_rate)} {audio.num_channels}x{audio.length_frames}"
        return f"audio {sizes} {audio.content_type} {digest}"
    if kind == "tensor":
        array = tf.make_ndarray(value.tensor)
        if array.dtype == object:
            return f"strings {array.shape} {[_text(item) for item in array.ravel().tolist()]}"
        shown = " ".join(_number(number) for number in array.ravel()[:_PORTION].tolist())
        return f"tensor {array.dtype} {array.shape} {shown} sum {_number(array.astype(float).sum())}"
    return str(kind)


def _text(item: bytes) -> str:
    """A string, or what a picture or a sound in it starts with."""
    return item.decode() if item.isascii() else f"{item[:4]!r} of {len(item)} bytes"


def _number(value: float) -> str:
    return f"{float(value):.5f}"
