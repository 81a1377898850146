"""The summaries of evaluations: writing metrics, and reading those of earlier evaluations."""

from __future__ import annotations

import os
from typing import Any

import numpy as np

from stoker._src.base import tf_logging
from stoker._src.formats import gfile
from stoker._src.formats.protos import Summary
from stoker._src.graph.keys import GraphKeys
from stoker._src.ops.io.tensor_messages import make_tensor_proto
from stoker._src.summary.file_writer import FileWriterCache, summary_iterator

CHECKPOINT_PATH_TAG = "checkpoint_path"


def write_results(folder: str, results: dict[str, Any], step: int, checkpoint_path: str | None) -> None:
    """Logs the metrics of an evaluation and writes them as summaries of a step, with the path of the checkpoint."""
    line = ", ".join(f"{name} = {results[name]!s}" for name in sorted(results))
    tf_logging.info("Saving dict for global step %d: %s", step, line)
    summary = Summary()
    for name in sorted(results):
        if name != GraphKeys.GLOBAL_STEP and results[name] is not None:
            _add(summary, name, results[name])
    writer = FileWriterCache.get(folder)
    writer.add_summary(summary, step)
    writer.flush()
    if checkpoint_path:
        tf_logging.info("Saving 'checkpoint_path' summary for global step %d: %s", step, checkpoint_path)
        place = Summary()
        value = place.value.add(tag=CHECKPOINT_PATH_TAG)
        value.tensor.CopyFrom(make_tensor_proto(checkpoint_path.encode()))
        writer.add_summary(place, step)
        writer.flush()


def _add(summary: Any, name: str, value: Any) -> None:
    """Adds a metric to a summary, if it can be shown."""
    if isinstance(value, (float, int, np.floating, np.integer)):
        summary.value.add(tag=name, simple_value=float(value))
    elif isinstance(value, bytes):
        try:
            inner = Summary.FromString(value)
        except Exception:
            tf_logging.warning("Skipping summary for %s, cannot parse string to Summary.", name)
            return
        for position, part in enumerate(inner.value):
            added = summary.value.add()
            added.CopyFrom(part)
            added.tag = f"{name}/{position}"
    elif isinstance(value, np.ndarray):
        added = summary.value.add(tag=name)
        added.tensor.CopyFrom(make_tensor_proto(value))
        tf_logging.info(
            "Summary for np.ndarray is not visible in Tensorboard by default. Consider using a Tensorboard plugin for "
            "visualization (see "
            "https://github.com/tensorflow/tensorboard-plugin-example/blob/master/README.md for more information)."
        )
    else:
        tf_logging.warning(
            "Skipping summary for %s, must be a float, np.float32, np.int64, np.int32 or int or np.ndarray or a serialized "
            "string of Summary.",
            name,
        )


def read_results(folder: str) -> dict[int, dict[str, Any]]:
    """Returns the metrics of earlier evaluations by their global step, from the event files of a directory."""
    found: dict[int, dict[str, Any]] = {}
    if not gfile.exists(folder):
        return found
    for name in gfile.glob(os.path.join(folder, "*.tfevents.*")):
        for event in summary_iterator(name):
            if not event.HasField("summary"):
                continue
            values = {value.tag: value.simple_value for value in event.summary.value if value.HasField("simple_value")}
            if values:
                found.setdefault(event.step, {}).update(values)
    return dict(sorted(found.items()))
