"""Small tools of slim: queue runners in a `with` block, lists of variables and ops, and summaries of many tensors."""

from __future__ import annotations

import math
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from stoker._src.base.export import export
from stoker._src.contrib.layers import common
from stoker._src.graph import keys, public
from stoker._src.ops.nn import bias
from stoker._src.ops.strings import printing
from stoker._src.ops.summary import summary_ops
from stoker._src.train.input import coordinator as input_coordinator

# -- queues ------------------------------------------------------------------------------------------------------------


@export(v1="contrib.slim.queues.NestedQueueRunnerError")
class NestedQueueRunnerError(Exception):
    """Queue runners are started inside of a block that has started them."""


_RUNNING = threading.local()


@export(v1="contrib.slim.queues.QueueRunners")
@contextmanager
def QueueRunners(session: Any) -> Iterator[None]:
    """Runs the queue runners of the graph during a `with` block.

    Raises:
        NestedQueueRunnerError: the block is inside of another one.
    """
    if getattr(_RUNNING, "session", None) is not None:
        raise NestedQueueRunnerError("QueueRunners cannot be nested.")
    _RUNNING.session = session
    coordinator = input_coordinator.Coordinator()
    threads: list[Any] = []
    try:
        for runner in public.get_collection(keys.GraphKeys.QUEUE_RUNNERS):
            threads.extend(runner.create_threads(session, coord=coordinator, daemon=True, start=True))
        yield
    finally:
        _RUNNING.session = None
        coordinator.request_stop()
        coordinator.join(threads, stop_grace_period_secs=120)


# -- model_analyzer ----------------------------------------------------------------------------------------------------


@export(v1="contrib.slim.model_analyzer.tensor_description")
def tensor_description(var: Any) -> str:
    """The dtype and shape of a tensor or variable, such as `(float32_ref 3x4) [12, bytes: 48]`."""
    sizes = var.get_shape().as_list()
    elements = math.prod(size or 0 for size in sizes)
    shape = "x".join("?" if size is None else str(size) for size in sizes)
    return f"({var.dtype.name} {shape}) [{elements}, bytes: {elements * var.dtype.size}]"


@export(v1="contrib.slim.model_analyzer.analyze_ops")
def analyze_ops(graph: Any, print_info: bool = False) -> int:
    """The number of elements of all outputs in a graph, as far as shapes are known. With `print_info` each op is printed."""
    if print_info:
        print("---------")
        print("Operations: name -> (type shapes) [size]")
        print("---------")
    total = 0
    for op in graph.get_operations():
        known = [output.get_shape().num_elements() or 0 for output in op.outputs]
        shapes = [str(output.get_shape()) for output in op.outputs]
        total += sum(known)
        if print_info:
            print(op.name, "->", f"({op.type}) {', '.join(shapes)} [{sum(known)}]" if op.outputs else f"({op.type})")
    return total


@export(v1="contrib.slim.model_analyzer.analyze_vars")
def analyze_vars(variables: Any, print_info: bool = False) -> tuple[int, int]:
    """The number of elements and of bytes of variables. With `print_info` each one is printed."""
    if print_info:
        print("---------")
        print("Variables: name (type shape) [size]")
        print("---------")
    elements = [each.get_shape().num_elements() or 0 for each in variables]
    sizes = [count * each.dtype.base_dtype.size for count, each in zip(elements, variables)]
    if print_info:
        for each in variables:
            print(each.name, tensor_description(each))
        print("Total size of variables:", sum(elements))
        print("Total bytes of variables:", sum(sizes))
    return sum(elements), sum(sizes)


# -- summaries ---------------------------------------------------------------------------------------------------------


def _tag(tensor: Any, name: str | None, prefix: str | None) -> str:
    tag = name or common.get_tensor_aliases(tensor)[0]
    return f"{prefix}/{tag}" if prefix else tag


def _printed(tensor: Any, tag: str, print_summary: bool) -> Any:
    return printing.print_v1(tensor, [tensor], tag) if print_summary else tensor


@export(v1="contrib.slim.summaries.add_histogram_summary")
def add_histogram_summary(tensor: Any, name: str | None = None, prefix: str | None = None) -> Any:
    """A histogram of a tensor, by default under its name."""
    return summary_ops.histogram_summary(_tag(tensor, name, prefix), tensor)


@export(v1="contrib.slim.summaries.add_image_summary")
def add_image_summary(
    tensor: Any, name: str | None = None, prefix: str | None = None, print_summary: bool = False
) -> Any:
    """Pictures of a tensor. With `print_summary` its values are printed as well."""
    tag = _tag(tensor, name, prefix)
    return summary_ops.image_summary(tag, _printed(tensor, tag, print_summary))


@export(v1="contrib.slim.summaries.add_scalar_summary")
def add_scalar_summary(
    tensor: Any, name: str | None = None, prefix: str | None = None, print_summary: bool = False
) -> Any:
    """A scalar summary. With `print_summary` the value is printed as well.

    Raises:
        ValueError: the tensor is not a scalar.
    """
    tag = _tag(tensor, name, prefix)
    return summary_ops.scalar_summary(tag, _printed(tensor, tag, print_summary))


@export(v1="contrib.slim.summaries.add_zero_fraction_summary")
def add_zero_fraction_summary(
    tensor: Any, name: str | None = None, prefix: str | None = None, print_summary: bool = False
) -> Any:
    """The fraction of zeros in a tensor."""
    tag = _tag(tensor, name, prefix)
    return summary_ops.scalar_summary(tag, _printed(bias.zero_fraction(tensor), tag, print_summary))


@export(v1="contrib.slim.summaries.add_histogram_summaries")
def add_histogram_summaries(tensors: Any, prefix: str | None = None) -> list[Any]:
    """Histograms of tensors."""
    return [add_histogram_summary(each, prefix=prefix) for each in tensors]


@export(v1="contrib.slim.summaries.add_image_summaries")
def add_image_summaries(tensors: Any, prefix: str | None = None) -> list[Any]:
    """Pictures of tensors."""
    return [add_image_summary(each, prefix=prefix) for each in tensors]


@export(v1="contrib.slim.summaries.add_scalar_summaries")
def add_scalar_summaries(tensors: Any, prefix: str | None = None, print_summary: bool = False) -> list[Any]:
    """Scalar summaries of tensors."""
    return [add_scalar_summary(each, prefix=prefix, print_summary=print_summary) for each in tensors]


@export(v1="contrib.slim.summaries.add_zero_fraction_summaries")
def add_zero_fraction_summaries(tensors: Any, prefix: str | None = None) -> list[Any]:
    """The fractions of zeros in tensors."""
    return [add_zero_fraction_summary(each, prefix=prefix) for each in tensors]
