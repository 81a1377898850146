"""The numbers of each op of a graph: parameters, floating point operations, and what a traced run took."""

from __future__ import annotations

import math
import os
import re
from collections.abc import Iterator
from dataclasses import dataclass, field, fields
from typing import Any

from stoker._src.graph.keys import GraphKeys
from stoker._src.runtime.profiling.float_operations import float_operations
from stoker._src.runtime.profiling.options import TRAINABLE

ROOT = "_TFProfRoot"
SCOPE = "_kTFScopeParent"  # the type of a scope that is not an op itself
_WITH_PARAMETERS = ("Variable", "VariableV2", "VarHandleOp", "AutoReloadVariable", "Placeholder")
_GRADIENT = re.compile(r"(?:.*/)?gradients(?:_\d+)?/(.+?)_grad(?:/|$)")
_STREAM = re.compile(r"/stream:|/memcpy$")


@dataclass
class Numbers:
    """What is counted. The sum of two has the sums of all fields."""

    run_count: int = 0
    exec_micros: int = 0
    accelerator_exec_micros: int = 0
    cpu_exec_micros: int = 0
    requested_bytes: int = 0
    peak_bytes: int = 0
    residual_bytes: int = 0
    output_bytes: int = 0
    parameters: int = 0
    float_ops: int = 0
    definition_count: int = 0

    def add(self, other: Numbers) -> None:
        for name in NAMES:
            setattr(self, name, getattr(self, name) + getattr(other, name))


NAMES = tuple(each.name for each in fields(Numbers))


@dataclass
class Node:
    """An op, a scope, a type of ops or a line of a program, with those below it."""

    name: str
    types: list[str] = field(default_factory=list)
    own: Numbers = field(default_factory=Numbers)
    total: Numbers = field(default_factory=Numbers)
    devices: list[str] = field(default_factory=list)
    shape: tuple[int, ...] | None = None  # of the parameters
    input_shapes: dict[int, tuple[int, ...]] = field(default_factory=dict)
    counts: bool = False  # whether its own numbers are part of the totals
    children: list[Node] = field(default_factory=list)
    members: list[Node] = field(default_factory=list)  # the ops of a type or a line
    frame: tuple[str, int, str] | None = None  # file, line and function of a line
    has_counted: bool = False  # whether its own numbers, or some below, are part of the totals

    def sum_up(self) -> None:
        """Computes the totals from the numbers that count, here and below."""
        for node, _ in bottom_up(self):
            node.total = node.sum_of(node.children)
            node.has_counted = node.counts or any(child.has_counted for child in node.children)

    def sum_of(self, children: list[Node]) -> Numbers:
        """Returns the own numbers, if they count, and the totals of `children`."""
        total = Numbers()
        if self.counts:
            total.add(self.own)
        for child in children:
            total.add(child.total)
        return total


def bottom_up(root: Node) -> Iterator[tuple[Node, int]]:
    """Yields each node of a tree after those below it, with its depth. Trees by inputs can be deeper than Python's stack."""
    waiting = [(root, 0, False)]
    while waiting:
        node, depth, is_done = waiting.pop()
        if is_done:
            yield node, depth
        else:
            waiting.append((node, depth, True))
            waiting += [(child, depth + 1, False) for child in reversed(node.children)]


def matches(patterns: list[str], text: str) -> bool:
    """Whether one of the patterns fits the whole text."""
    return any(re.fullmatch(pattern, text) for pattern in patterns)


def op_nodes(graph: Any, run_meta: Any, op_log: Any, options: dict[str, Any]) -> dict[Any, Node]:
    """Returns a node for each op, without children."""
    trainable = {variable.op.name for variable in graph.get_collection(GraphKeys.TRAINABLE_VARIABLES)}
    runs = _runs(run_meta)
    logged = {} if op_log is None else {entry.name: entry for entry in op_log.log_entries}
    found: dict[Any, Node] = {}
    for op in graph.get_operations():
        numbers, devices = runs.get(op.name, (Numbers(), []))
        node = Node(op.name, own=numbers, devices=devices)
        node.types = [*devices, op.type, *([TRAINABLE] if op.name in trainable else [])]
        numbers.definition_count = 1
        numbers.float_ops = float_operations(op)
        if op.type in _WITH_PARAMETERS and op.attrs["shape"].known:
            node.shape = tuple(op.attrs["shape"]) or (1,)  # a scalar is shown as one element
            numbers.parameters = math.prod(node.shape)
        for index, shape in enumerate(_input_shapes(op)):
            if shape is not None:
                node.input_shapes[index] = shape
        if entry := logged.get(op.name):
            numbers.float_ops = entry.float_ops or numbers.float_ops
            node.types += entry.types
        node.counts = any(matches(options["account_type_regexes"], kind) for kind in node.types)
        found[op] = node
    return found


def _input_shapes(op: Any) -> Iterator[tuple[int, ...] | None]:
    """Shapes of the inputs, scalars as [1], as TensorFlow's profiler has them."""
    for tensor in op.inputs:
        shape = tensor.static_shape
        yield (tuple(shape) or (1,)) if shape.known else None


def is_accelerator(device: str) -> bool:
    """Whether a device of a trace, in lower case, is not the host's processor."""
    return bool(_STREAM.search(device)) or "gpu" in device


def _runs(run_meta: Any) -> dict[str, tuple[Numbers, list[str]]]:
    """What the ops took in a traced run, and on which devices, by name."""
    found: dict[str, tuple[Numbers, list[str]]] = {}
    for device in () if run_meta is None else run_meta.step_stats.dev_stats:
        place = device.device.lower()
        for stats in device.node_stats:
            name = stats.node_name.partition(":")[0]
            numbers, devices = found.setdefault(name, (Numbers(), []))
            micros = stats.op_end_rel_micros - stats.op_start_rel_micros
            numbers.exec_micros += micros
            if is_accelerator(place):
                numbers.accelerator_exec_micros += micros
            else:
                numbers.cpu_exec_micros += micros
            if place not in devices:
                devices.append(place)
                numbers.run_count += 1
            for memory in stats.memory:
                numbers.requested_bytes += memory.total_bytes
                numbers.peak_bytes += memory.peak_bytes
                numbers.residual_bytes += memory.live_bytes
            for output in stats.output:
                numbers.output_bytes += output.tensor_description.allocation_description.requested_bytes
    return found


def trace_of(op: Any, ops: dict[str, Any]) -> tuple[list[str], list[tuple[str, int, str]]]:
    """Returns the lines of the program that made an op, outermost first: for reports, and as (file, line, function).

    An op of a gradient is attributed to the line of the op whose gradient it is, which `ops` has by name.
    """
    note = ""
    if (found := _GRADIENT.match(op.name)) and found[1] in ops:
        op, note = ops[found[1]], " (gradient)"
    frames = [(file, line, function) for file, line, function, _ in op.traceback]
    return [f"{os.path.basename(file)}:{line}:{function}{note}" for file, line, function in frames], frames
