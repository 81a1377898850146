"""Ops whose output is a serialized Summary, and `tf.summary`'s 1.x functions that make them."""

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


# The form of 0.12's graphs.
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


# The older form, whose value is known by the name of its node.
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
    """A name with what may not stand in the name of a node replaced by underscores; a line of the log says so."""
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
    """The tag of a summary and the name scope of its node, which it opens: `family` is put in front of both."""
    name, family = clean_tag(name), clean_tag(family)
    if name is None and default_name is None:
        raise ValueError(f"At least one of name ({name}) and default_name ({default_name}) must be provided.")
    base = name if family is None else f"{family}/{name}"
    with name_scope(base, default_name, values) as scope:
        tag = scope.rstrip("/")
        yield (tag if family is None else f"{family}/{tag}"), scope


def _collected(summary: Tensor, collections: Any) -> Tensor:
    if context.executing_eagerly():
        return summary
    context.get_default_graph().add_to_collections(
        [GraphKeys.SUMMARIES] if collections is None else list(collections), summary
    )
    return summary


@export(v1="summary.scalar")
def scalar_summary(name: Any, tensor: Any, collections: Any = None, family: str | None = None) -> Tensor:
    """A summary of one number.

    Args:
        name: the name of the node and, with the scopes around it, the tag.
        tensor: a scalar of real numbers.
        collections: where to store the summary; by default in `GraphKeys.SUMMARIES`.
        family: put in front of the tag: TensorBoard shows the summaries of a family together.

    Returns:
        A scalar string, the serialized Summary.
    """
    with summary_scope(name, family, values=[tensor]) as (tag, scope):
        return _collected(SCALAR_SUMMARY(tag, tensor, name=scope), collections)


@export(v1="summary.histogram")
def histogram_summary(name: Any, values: Any, collections: Any = None, family: str | None = None) -> Tensor:
    """A summary of how numbers are distributed. Infinite numbers and NaN are errors when it runs."""
    with summary_scope(name, family, default_name="HistogramSummary", values=[values]) as (tag, scope):
        return _collected(HISTOGRAM_SUMMARY(tag, values, name=scope), collections)


@export(v1="summary.image")
def image_summary(
    name: Any, tensor: Any, max_outputs: int = 3, collections: Any = None, family: str | None = None
) -> Tensor:
    """A summary of images.

    uint8 pixels are kept. Floating point ones are scaled image by image: where none is negative, so that the largest is 255, else so that
    zero is 128 and the largest or smallest lies at an end of the range. Pixels that are not finite become red.

    Args:
        name: as for `scalar`; the tags are `name/image/0` and so on, `name/image` where `max_outputs` is 1.
        tensor: uint8 or floating point, [batch, height, width, channels] with 1, 3 or 4 channels.
        max_outputs: how many images of a batch are kept.
        collections: as for `scalar`.
        family: as for `scalar`.
    """
    with summary_scope(name, family, values=[tensor]) as (tag, scope):
        return _collected(IMAGE_SUMMARY(tag, tensor, max_images=max_outputs, name=scope), collections)


@export(v1="summary.audio")
def audio_summary(
    name: Any, tensor: Any, sample_rate: Any, max_outputs: int = 3, collections: Any = None, family: str | None = None
) -> Tensor:
    """A summary of sounds, samples from -1 to 1 in [batch, frames, channels] or [batch, frames]."""
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
    """A summary of a whole tensor of any dtype.

    Args:
        name: as for `scalar`.
        tensor: the tensor.
        summary_description: a longer text about it, in Markdown.
        collections: as for `scalar`.
        summary_metadata: a SummaryMetadata that says which plugin of TensorBoard shows it.
        family: as for `scalar`.
        display_name: what TensorBoard shows instead of the tag.
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
    """A summary of strings, which TensorBoard shows as Markdown; of rank 1 or 2 as a table.

    Raises:
        ValueError: `tensor` does not hold strings.
    """
    if tensor.dtype != dtypes.string:
        raise ValueError(f"Expected tensor {tensor.name} to have dtype string, got {tensor.dtype}")
    metadata = SummaryMetadata()
    metadata.plugin_data.plugin_name = "text"
    return tensor_summary(name, tensor, collections=collections, summary_metadata=metadata)


@export(v1="summary.merge")
def merge(inputs: Any, collections: Any = None, name: str | None = None) -> Tensor:
    """One summary with the values of several. A tag that occurs twice is an error when it runs.

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
    """One summary with the values of all summaries in a collection, or None when there are none.

    Args:
        key: the collection.
        scope: only summaries whose name matches this regular expression from its start.
        name: of the node.

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
    """The SummaryDescription of a node of type TensorSummary.

    Raises:
        ValueError: the node is of another type.
    """
    if node_def.op != "TensorSummary":
        raise ValueError(f"Can't get_summary_description on {node_def.op}")
    node = NodeDef.FromString(node_def.SerializeToString())
    return SummaryDescription(type_hint=node.attr["description"].s.decode())


# ---- 0.12 -------------------------------------------------------------------------------------------------------


@export(v1="scalar_summary")
def scalar_summary_old(tags: Any, values: Any, collections: Any = None, name: str | None = None) -> Tensor:
    """0.12's summary of numbers: as many tags as values, of the same shape. The tags are not derived from names."""
    with name_scope(name, "ScalarSummary", [tags, values]) as scope:
        return _collected(SCALAR_SUMMARY(tags, values, name=scope), collections)


@export(v1="histogram_summary")
def histogram_summary_old(tag: Any, values: Any, collections: Any = None, name: str | None = None) -> Tensor:
    """0.12's summary of a distribution."""
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
    """0.12's summary of sounds."""
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
