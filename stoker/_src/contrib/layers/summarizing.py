"""Summaries of tensors and collections in `tf.contrib.layers`."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from stoker._src.base import dtypes
from stoker._src.base.export import export
from stoker._src.contrib.layers.common import both
from stoker._src.graph import keys, public
from stoker._src.ops.array import casting
from stoker._src.ops.math import comparison, reductions
from stoker._src.ops.summary import summary_ops


@export(v1=both("summarize_tensor"))
def summarize_tensor(tensor: Any, tag: str | None = None) -> Any:
    """A histogram of a tensor; a scalar summary of a scalar."""
    if tensor.get_shape().ndims == 0:
        return summary_ops.scalar_summary(tag or f"{tensor.op.name}_summary", tensor)
    return summary_ops.histogram_summary(tag or f"{tensor.op.name}_summary", tensor)


@export(v1=both("summarize_activation"))
def summarize_activation(op: Any) -> Any:
    """A histogram of an output. Of ReLUs and sigmoids the saturated fraction is summarized, too."""
    tensor = getattr(op, "op", op).outputs[0] if not hasattr(op, "get_shape") else op
    name, kind = tensor.op.name, tensor.op.type
    if kind in ("Relu", "Softplus", "Relu6"):
        summary_ops.scalar_summary(
            f"{name}/zeros", reductions.reduce_mean(casting.cast(comparison.less(tensor, 0.01), dtypes.float32))
        )
    if kind == "Relu6":
        summary_ops.scalar_summary(
            f"{name}/sixes", reductions.reduce_mean(casting.cast(comparison.greater(tensor, 5.99), dtypes.float32))
        )
    return summary_ops.histogram_summary(f"{name}/activation", tensor)


@export(v1=both("summarize_tensors"))
def summarize_tensors(tensors: Any, summarizer: Callable[[Any], Any] = summarize_tensor) -> list[Any]:
    """Summarizes each of some tensors."""
    return [summarizer(tensor) for tensor in tensors]


@export(v1=both("summarize_collection"))
def summarize_collection(
    collection: str, name_filter: str | None = None, summarizer: Callable[[Any], Any] = summarize_tensor
) -> list[Any]:
    """Summarizes the tensors of a collection whose names match a regular expression."""
    found = public.get_collection(collection)
    if name_filter is not None:
        found = [each for each in found if re.match(name_filter, each.op.name)]
    return summarize_tensors(found, summarizer)


@export(v1=both("summarize_activations"))
def summarize_activations(
    name_filter: str | None = None, summarizer: Callable[[Any], Any] = summarize_activation
) -> list[Any]:
    """Summarizes the collection ACTIVATIONS."""
    return summarize_collection(keys.GraphKeys.ACTIVATIONS, name_filter, summarizer)


@export(v1="contrib.slim.summarize_weights")
def summarize_weights(name_filter: str | None = None, summarizer: Callable[[Any], Any] = summarize_tensor) -> list[Any]:
    """Summarizes the collection WEIGHTS."""
    return summarize_collection(keys.GraphKeys.WEIGHTS, name_filter, summarizer)


@export(v1="contrib.slim.summarize_biases")
def summarize_biases(name_filter: str | None = None, summarizer: Callable[[Any], Any] = summarize_tensor) -> list[Any]:
    """Summarizes the collection BIASES."""
    return summarize_collection(keys.GraphKeys.BIASES, name_filter, summarizer)


@export(v1="contrib.slim.summarize_variables")
def summarize_variables(
    name_filter: str | None = None, summarizer: Callable[[Any], Any] = summarize_tensor
) -> list[Any]:
    """Summarizes all global variables."""
    return summarize_collection(keys.GraphKeys.GLOBAL_VARIABLES, name_filter, summarizer)
