"""Ops that return a serialized Summary, and the 1.x functions of `tf.summary` that create them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import torch

from stoker._src.base import dtypes, tf_logging
from stoker._src.base.dtypes import DType
from stoker._src.base.export import export
from stoker._src.formats.protos import NodeDef, Summary, SummaryDescription, SummaryMetadata
from stoker._src.graph import context
from stoker._src.graph.conversion import convert_to_tensor
from stoker._src.graph.definition import ANY, FLOAT, INT, STRINGS, TENSOR, define, one_of, scalar
from stoker._src.graph.keys import GraphKeys
from stoker._src.graph.public import get_collection
from stoker._src.graph.scopes import name_scope
from stoker._src.graph.tensor import Tensor
from stoker._src.ops.summary.messages import (
    audio_values,
    histogram_value,
    image_values,
    merged,
    message_bytes,
    scalar_values,
    tensor_message,
    tensor_value,
)

REAL_NUMBERS = (
    dtypes.float32, dtypes.float64, dtypes.int32, dtypes.uint8, dtypes.int16, dtypes.int8, dtypes.int64, dtypes.bfloat16,
    dtypes.uint16, dtypes.float16, dtypes.uint32, dtypes.uint64,
)  # fmt: skip
BAD_COLOR = np.array([255, 0, 0, 255], np.uint8)  # opaque red, for pixels that are not finite


# ---- ops --------------------------------------------------------------------------------------------------------

SCALAR_SUMMARY = define("ScalarSummary(tags: string, values: T) -> (summary: string)", T=REAL_NUMBERS)
SCALAR_SUMMARY.not_differentiable().shape(scalar)


@SCALAR_SUMMARY.kernel
def scalar_summary_kernel(tags: np.ndarray, values: torch.Tensor) -> np.ndarray:
    return message_bytes(scalar_values(tags, values))


HISTOGRAM_SUMMARY = define(
    "HistogramSummary(tag: string, values: T) -> (summary: string)", T=one_of(*REAL_NUMBERS, default=dtypes.float32)
)
HISTOGRAM_SUMMARY.not_differentiable().shape(scalar)


@HISTOGRAM_SUMMARY.kernel
def histogram_summary_kernel(tag: np.ndarray, values: torch.Tensor) -> np.ndarray:
    return message_bytes([histogram_value(tag, values)])


IMAGE_SUMMARY = define(
    "ImageSummary(tag: string, tensor: T) -> (summary: string)",
    max_images=INT(3, minimum=1),
    T=one_of(dtypes.uint8, dtypes.float32, dtypes.float16, dtypes.float64, default=dtypes.float32),
    bad_color=TENSOR(BAD_COLOR),
)
IMAGE_SUMMARY.not_differentiable().shape(scalar)


@IMAGE_SUMMARY.kernel
def image_summary_kernel(tag: np.ndarray, tensor: torch.Tensor, *, max_images: int, bad_color: Any) -> np.ndarray:
    return message_bytes(image_values(tag, tensor, bad_color, max_images))


AUDIO_SUMMARY_V2 = define(
    "AudioSummaryV2(tag: string, tensor: float32, sample_rate: scalar/one host float32) -> (summary: string)",
    max_outputs=INT(3, minimum=1),
)
AUDIO_SUMMARY_V2.not_differentiable().shape(scalar)


@AUDIO_SUMMARY_V2.kernel
def audio_summary_v2_kernel(tag: np.ndarray, tensor: torch.Tensor, sample_rate: Any, *, max_outputs: int) -> np.ndarray:
    return message_bytes(audio_values(tag, tensor, np.ravel(sample_rate)[0], max_outputs))


# The op of 0.12's graphs.
AUDIO_SUMMARY = define(
    "AudioSummary(tag: string, tensor: float32) -> (summary: string)",
    sample_rate=FLOAT,
    max_outputs=INT(3, minimum=1),
)
AUDIO_SUMMARY.not_differentiable().shape(scalar)


@AUDIO_SUMMARY.kernel
def audio_summary_kernel(tag: np.ndarray, tensor: torch.Tensor, *, sample_rate: float, max_outputs: int) -> np.ndarray:
    return message_bytes(audio_values(tag, tensor, sample_rate, max_outputs))


TENSOR_SUMMARY_V2 = define(
    "TensorSummaryV2(tag: string, tensor: T, serialized_summary_metadata: string) -> (summary: string)", T=ANY
)
TENSOR_SUMMARY_V2.not_differentiable().shape(scalar)


@TENSOR_SUMMARY_V2.kernel
def tensor_summary_v2_kernel(tag: np.ndarray, tensor: Any, metadata: np.ndarray, *, T: DType) -> np.ndarray:
    return message_bytes([tensor_value(tag, tensor, T, metadata)])


# The older op, whose value is identified by the name of its node.
TENSOR_SUMMARY = define(
    "TensorSummary(tensor: T) -> (summary: string)", T=ANY, description="", labels=STRINGS(()), display_name=""
)
TENSOR_SUMMARY.not_differentiable().shape(scalar)


@TENSOR_SUMMARY.kernel
def tensor_summary_kernel(tensor: Any, *, T: DType, ctx: Any) -> np.ndarray:
    return message_bytes([Summary.Value(node_name=ctx.name, tensor=tensor_message(tensor, T))])


MERGE_SUMMARY = define("MergeSummary(inputs: N * string) -> (summary: string)", N=INT(minimum=1))
MERGE_SUMMARY.not_differentiable().shape(scalar)


@MERGE_SUMMARY.kernel
def merge_summary_kernel(inputs: list[np.ndarray]) -> np.ndarray:
    return merged(inputs)


# ---- tf.summary, 1.x --------------------------------------------------------------------------------------------


def clean_tag(name: Any) -> Any:
    """Returns a name with characters that node names do not allow replaced by underscores. Logs the change."""
    if name is None:
        return None
    cleaned = re.sub(r"[^-/\w\.]", "_", name).lstrip("/")
    if cleaned != name:
        tf_logging.info("Summary name %s is illegal; using %s instead.", name, cleaned)
    return cleaned


@contextmanager
def summary_scope(
    name: Any, family: str | None = None, default_name: str | None = None, values: Any = None
) -> Iterator[tuple[str, str]]:
    """Opens the name scope of a summary node. Yields the tag and the scope. `family` is prepended to both."""
    name, family = clean_tag(name), clean_tag(family)
    if name is None and default_name is None:
        raise ValueError(f"At least one of name ({name}) and default_name ({default_name}) must be provided.")
    base = name if family is None else f"{family}/{name}"
    with name_scope(base, default_name, values) as scope:
        tag = scope.rstrip("/")
        yield (tag if family is None else f"{family}/{tag}"), scope


def collect(val: Any, collections: Any, default_collections: Any) -> None:
    """Adds a summary to `collections`, or to the default ones if that is None."""
    names = default_collections if collections is None else collections
    context.get_default_graph().add_to_collections(list(names or ()), val)


def _collected(summary: Tensor, collections: Any) -> Tensor:
    if not context.executing_eagerly():
        collect(summary, collections, [GraphKeys.SUMMARIES])
    return summary


@export(v1="summary.scalar")
def scalar_summary(name: Any, tensor: Any, collections: Any = None, family: str | None = None) -> Tensor:
    """Returns a summary of one number.

    Args:
        name: The name of the node and, with the surrounding scopes, the tag.
        tensor: A scalar real number.
        collections: The collections to which to add the summary. By default `GraphKeys.SUMMARIES`.
        family: A prefix of the tag. TensorBoard groups summaries by family.

    Returns:
        The serialized Summary, a scalar string.
    """
    with summary_scope(name, family, values=[tensor]) as (tag, scope):
        return _collected(SCALAR_SUMMARY(tag, tensor, name=scope), collections)


@export(v1="summary.histogram")
def histogram_summary(name: Any, values: Any, collections: Any = None, family: str | None = None) -> Tensor:
    """Returns a histogram summary. Running it with infinite numbers or NaN is an error."""
    with summary_scope(name, family, default_name="HistogramSummary", values=[values]) as (tag, scope):
        return _collected(HISTOGRAM_SUMMARY(tag, values, name=scope), collections)


@export(v1="summary.image")
def image_summary(
    name: Any, tensor: Any, max_outputs: int = 3, collections: Any = None, family: str | None = None
) -> Tensor:
    """Returns a summary of images.

    uint8 pixels are not changed. Floating point pixels are scaled for each image: if none is negative, the largest becomes 255. Otherwise
    zero becomes 128 and the largest or smallest is at an end of the range. Pixels that are not finite become red.

    Args:
        name: See `scalar`. The tags are `name/image/0` and so on, or `name/image` if `max_outputs` is 1.
        tensor: uint8 or floating point, [batch, height, width, channels] with 1, 3 or 4 channels.
        max_outputs: How many images of a batch to keep.
        collections: See `scalar`.
        family: See `scalar`.
    """
    with summary_scope(name, family, values=[tensor]) as (tag, scope):
        return _collected(IMAGE_SUMMARY(tag, tensor, max_images=max_outputs, name=scope), collections)


@export(v1="summary.audio")
def audio_summary(
    name: Any, tensor: Any, sample_rate: Any, max_outputs: int = 3, collections: Any = None, family: str | None = None
) -> Tensor:
    """Returns a summary of audio, samples from -1 to 1 in [batch, frames, channels] or [batch, frames]."""
    with summary_scope(name, family, values=[tensor]) as (tag, scope):
        rate = convert_to_tensor(sample_rate, dtypes.float32, name="sample_rate")
        return _collected(AUDIO_SUMMARY_V2(tag, tensor, rate, max_outputs=max_outputs, name=scope), collections)


@export(v1="summary.tensor_summary")
def tensor_summary(
    name: Any,
    tensor: Any,
    summary_description: str | None = None,
    collections: Any = None,
    summary_metadata: Any = None,
    family: str | None = None,
    display_name: str | None = None,
) -> Tensor:
    """Returns a summary of a whole tensor of any dtype.

    Args:
        name: See `scalar`.
        tensor: The tensor.
        summary_description: A longer description in Markdown.
        collections: See `scalar`.
        summary_metadata: A SummaryMetadata message that determines the TensorBoard plugin.
        family: See `scalar`.
        display_name: The name that TensorBoard shows instead of the tag.
    """
    metadata = SummaryMetadata() if summary_metadata is None else summary_metadata
    if summary_description is not None:
        metadata.summary_description = summary_description
    if display_name is not None:
        metadata.display_name = display_name
    with summary_scope(name, family, values=[tensor]) as (tag, scope):
        return _collected(TENSOR_SUMMARY_V2(tag, tensor, metadata.SerializeToString(), name=scope), collections)


@export(v1="summary.text")
def text_summary(name: Any, tensor: Any, collections: Any = None) -> Tensor:
    """Returns a summary of strings. TensorBoard shows them as Markdown, with rank 1 or 2 as a table.

    Raises:
        ValueError: `tensor` does not contain strings.
    """
    if tensor.dtype != dtypes.string:
        raise ValueError(f"Expected tensor {tensor.name} to have dtype string, got {tensor.dtype}")
    metadata = SummaryMetadata()
    metadata.plugin_data.plugin_name = "text"
    return tensor_summary(name, tensor, collections=collections, summary_metadata=metadata)


@export(v1="summary.merge")
def merge(inputs: Any, collections: Any = None, name: str | None = None) -> Tensor:
    """Returns one summary with the values of several. Running it with a duplicate tag is an error.

    Raises:
        RuntimeError: in eager mode.
    """
    if context.executing_eagerly():
        raise RuntimeError(
            "Merging tf.summary.* ops is not compatible with eager execution. Use tf.contrib.summary instead."
        )
    if not isinstance(inputs, (list, tuple)):
        raise TypeError(f"Expected list for 'inputs' argument to 'merge_summary' Op, not {inputs!r}.")
    with name_scope(name, "Merge", inputs):
        result = MERGE_SUMMARY(list(inputs), name="MergeSummary" if name is None else name)
    if collections:
        context.get_default_graph().add_to_collections(collections, result)
    return result


@export(v1="summary.merge_all")
def merge_all(key: str = GraphKeys.SUMMARIES, scope: str | None = None, name: str | None = None) -> Tensor | None:
    """Returns one summary with the values of all summaries in a collection, or None if there are none.

    Args:
        key: the collection.
        scope: A regular expression. Only summaries whose name matches it from the start are included.
        name: The name of the node.

    Raises:
        RuntimeError: in eager mode.
    """
    if context.executing_eagerly():
        raise RuntimeError(
            "Merging tf.summary.* ops is not compatible with eager execution. Use tf.contrib.summary instead."
        )
    summaries = get_collection(key, scope=scope)
    return merge(summaries, name=name) if summaries else None


@export(v1="summary.get_summary_description")
def get_summary_description(node_def: Any) -> Any:
    """Returns the SummaryDescription of a node of type TensorSummary.

    Raises:
        ValueError: The node has another type.
    """
    if node_def.op != "TensorSummary":
        raise ValueError(f"Can't get_summary_description on {node_def.op}")
    node = NodeDef.FromString(node_def.SerializeToString())
    return SummaryDescription(type_hint=node.attr["description"].s.decode())


# ---- 0.12 -------------------------------------------------------------------------------------------------------


@export(v1="scalar_summary")
def scalar_summary_old(tags: Any, values: Any, collections: Any = None, name: str | None = None) -> Tensor:
    """0.12's summary of numbers: one tag for each value, in the same shape. Tags do not depend on names."""
    with name_scope(name, "ScalarSummary", [tags, values]) as scope:
        return _collected(SCALAR_SUMMARY(tags, values, name=scope), collections)


@export(v1="histogram_summary")
def histogram_summary_old(tag: Any, values: Any, collections: Any = None, name: str | None = None) -> Tensor:
    """0.12's histogram summary."""
    with name_scope(name, "HistogramSummary", [tag, values]) as scope:
        return _collected(HISTOGRAM_SUMMARY(tag, values, name=scope), collections)


@export(v1="image_summary")
def image_summary_old(
    tag: Any, tensor: Any, max_images: int = 3, collections: Any = None, name: str | None = None
) -> Tensor:
    """0.12's summary of images."""
    with name_scope(name, "ImageSummary", [tag, tensor]) as scope:
        return _collected(IMAGE_SUMMARY(tag, tensor, max_images=max_images, name=scope), collections)


@export(v1="audio_summary")
def audio_summary_old(
    tag: Any, tensor: Any, sample_rate: Any, max_outputs: int = 3, collections: Any = None, name: str | None = None
) -> Tensor:
    """0.12's summary of audio."""
    with name_scope(name, "AudioSummary", [tag, tensor]) as scope:
        rate = convert_to_tensor(sample_rate, dtypes.float32, name="sample_rate")
        return _collected(AUDIO_SUMMARY_V2(tag, tensor, rate, max_outputs=max_outputs, name=scope), collections)


@export(v1="merge_summary")
def merge_summary_old(inputs: Any, collections: Any = None, name: str | None = None) -> Tensor:
    """0.12's `tf.summary.merge`."""
    with name_scope(name, "MergeSummary", inputs):
        result = MERGE_SUMMARY(list(inputs), name=name)
    if collections:
        context.get_default_graph().add_to_collections(collections, result)
    return result


@export(v1="merge_all_summaries")
def merge_all_summaries(key: str = GraphKeys.SUMMARIES) -> Tensor | None:
    """0.12's `tf.summary.merge_all`."""
    summaries = get_collection(key)
    return merge_summary_old(summaries) if summaries else None
