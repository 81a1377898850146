"""Traces of a run: the content of RunMetadata, and the Chrome trace generated from it."""

from __future__ import annotations

import json
import threading
import time
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from stoker._src.base.dtypes import as_dtype
from stoker._src.formats.protos import NodeDef, StepStats
from stoker._src.graph.interchange.function_def import referenced_functions
from stoker._src.graph.interchange.node_def import PRODUCER_VERSION, node_def_of
from stoker._src.graph.tensor import Tensor
from stoker._src.runtime.plan.instructions import Instruction, values_of
from stoker._src.runtime.plan.planner import Planner

_ALLOCATOR = "cpu"
HOST = "/job:localhost/replica:0/task:0/device:CPU:0"


@dataclass(frozen=True)
class Output:
    """What a line produced: the memory is freed again as in an ordinary run."""

    dtype: int  # a DataType, 0 for what is not a tensor
    shape: tuple[int, ...]
    size: int  # in bytes
    address: int

    @staticmethod
    def of(value: Any) -> Output:
        if isinstance(value, torch.Tensor):
            storage = value.untyped_storage()
            dtype = as_dtype(str(value.dtype).removeprefix("torch.")).as_datatype_enum
            return Output(dtype, tuple(value.shape), value.numel() * value.element_size(), storage.data_ptr())
        if isinstance(value, np.ndarray):  # strings
            size = sum(map(len, value.ravel().tolist())) if value.dtype == object else value.nbytes
            return Output(as_dtype("string").as_datatype_enum, value.shape, size, value.ctypes.data)
        return Output(0, (), 0, 0)


class Ticks:
    """Collects the times of each line of a timed step, and what it produced."""

    def __init__(self) -> None:
        self.start = time.time()
        self._origin = self._begin = time.perf_counter()
        self._spans: list[tuple[int, float, float]] = []
        self.outputs: list[list[Output]] = []

    def __call__(self, line: int, values: list[Any]) -> None:
        self._spans.append((line, self._begin - self._origin, time.perf_counter() - self._origin))
        self.outputs.append([Output.of(value) for value in values])
        self._begin = time.perf_counter()

    def spans(self) -> list[tuple[int, float, float]]:
        """Returns (line, begin, end) in seconds from the start."""
        return self._spans


def fill_run_metadata(metadata: Any, ticks: Ticks, instructions: list[Instruction]) -> None:
    """Fills in the step stats of a run, in the form that TensorBoard and `timeline` read."""
    stats = StepStats()
    device = stats.dev_stats.add(device=HOST)
    known: dict[Any, int] = {}  # by Value of the plan: where its memory is
    for (line, begin, end), outputs in zip(ticks.spans(), ticks.outputs):
        instruction = instructions[line]
        op = instruction.op
        node = device.node_stats.add()
        node.node_name = "" if op is None else op.name
        inputs = "" if op is None else ", ".join(tensor.op.name for tensor in op._inputs)
        node.timeline_label = f"{node.node_name} = {'' if op is None else op.type}({inputs})"
        node.all_start_micros = int((ticks.start + begin) * 1e6)
        node.op_start_rel_micros = 0
        node.op_end_rel_micros = node.all_end_rel_micros = max(1, round((end - begin) * 1e6))
        node.all_start_nanos = int((ticks.start + begin) * 1e9)
        node.op_end_rel_nanos = node.all_end_rel_nanos = round((end - begin) * 1e9)
        node.thread_id = threading.get_ident() & 0xFFFFFFFF
        given = {known[value] for value in values_of(instruction.arguments) if value in known}
        # What shares memory with an input, or belongs to a variable, was not allocated here.
        is_read = instruction.kind == "read" and not instruction.copies
        fresh = [output for output in outputs if output.address not in given and not is_read and output.dtype]
        known.update(zip(values_of(instruction.results), (output.address for output in outputs)))
        _fill_outputs(node, outputs, fresh)
    metadata.step_stats.MergeFromString(stats.SerializeToString())


def _fill_outputs(node: Any, outputs: list[Output], fresh: list[Output]) -> None:
    for slot, output in enumerate(outputs):
        if not output.dtype:
            continue
        description = node.output.add(slot=slot).tensor_description
        description.dtype = output.dtype
        for size in output.shape:
            description.shape.dim.add(size=size)
        memory = description.allocation_description
        memory.requested_bytes, memory.allocator_name, memory.ptr = output.size, _ALLOCATOR, output.address
        memory.allocated_bytes = output.size if output in fresh else 0
    if fresh:
        size = sum(output.size for output in fresh)
        node.memory.add(allocator_name=_ALLOCATOR, total_bytes=size, peak_bytes=size, live_bytes=size)


def fill_partition_graph(metadata: Any, planner: Planner) -> None:
    """Fills in the graph as it runs, pruned and rewritten. Feeds are `_Arg` nodes, conversions of the mixed precision rewrite are Casts."""
    graph = metadata.partition_graphs.add()
    graph.versions.producer = PRODUCER_VERSION
    names: dict[Tensor, str] = {}
    for position, tensor in enumerate(planner.feeds):
        node = graph.node.add(name=f"_arg_{tensor.op.name}_{tensor.value_index}_{position}", op="_Arg")
        node.attr["T"].type = tensor.dtype.base_dtype.as_datatype_enum
        node.attr["index"].i = position
        names[tensor] = node.name
    for op in planner.planned:
        for position, tensor in enumerate(op.outputs):
            names.setdefault(tensor, f"{op.name}:{position}" if position else op.name)
    running = {op.name for op in planner.planned}
    for op in planner.planned:
        node = NodeDef.FromString(node_def_of(op).SerializeToString())
        del node.input[:]
        node.input.extend(names[tensor] for tensor in op._inputs)
        node.input.extend("^" + control.name for control in op._control_inputs if control.name in running)
        node.device = node.device or HOST
        graph.node.add().CopyFrom(node)
    for function in referenced_functions(planner.ops).values():
        graph.library.function.append(function.to_function_def())


class Timeline:
    """Converts step stats to a Chrome trace (`chrome://tracing`), like `tensorflow.python.client.timeline`."""

    def __init__(self, step_stats: Any, graph: Any = None) -> None:
        self._stats = step_stats

    def generate_chrome_trace_format(
        self, show_dataflow: bool = True, show_memory: bool = False, op_time: str = "schedule"
    ) -> str:
        """Returns the trace as JSON: one row for each device, with a slice for each op.

        Args:
            show_dataflow: Whether arrows lead from an op to those that take its outputs.
            show_memory: Whether to show the outputs in a row for each device, from their creation to their last use, and the memory that
                they take as a chart.
            op_time: Accepted for TensorFlow's sake. An op is scheduled when it starts.
        """
        trace = _Trace()
        allocators = trace.process("Allocators") if show_memory else 0
        for device in self._stats.dev_stats:
            compute = trace.process(f"{device.device} Compute")
            tensors = trace.process(f"{device.device} Tensors") if show_memory else 0
            nodes = [(node, *_call(node)) for node in device.node_stats]
            for node, kind, inputs in nodes:
                details = {"name": node.node_name, "op": kind, **{f"input{i}": name for i, name in enumerate(inputs)}}
                start, length = node.all_start_micros, node.all_end_rel_micros
                # A value from another task has the row below that of the ops.
                row = {"tid": 1} if node.node_name == "RecvTensor" else {}
                details["op"] = node.timeline_label if row else kind
                trace.add("X", kind or node.node_name, compute, start, cat="Op", dur=length, args=details, **row)
            if show_dataflow:
                _dataflow(trace, compute, nodes)
            if show_memory:
                _memory(trace, allocators, tensors, nodes)
        return json.dumps({"traceEvents": trace.events}, indent=1)


class _Trace:
    """Events of Chrome's trace format."""

    def __init__(self) -> None:
        self.events: list[dict[str, Any]] = []
        self._processes = 0

    def process(self, name: str) -> int:
        number, self._processes = self._processes, self._processes + 1
        self.events.append({"name": "process_name", "ph": "M", "pid": number, "args": {"name": name}})
        return number

    def add(self, phase: str, name: str, process: int, moment: int, **details: Any) -> None:
        self.events.append({"name": name, "ph": phase, "pid": process, "tid": 0, "ts": moment, **details})


def _call(node: Any) -> tuple[str, list[str]]:
    """The type of an op and the names of its inputs, from its label `name = Type(input, input)`."""
    kind, _, inputs = node.timeline_label.partition(" = ")[2].partition("(")
    return kind, [name for name in inputs.rstrip(")").split(", ") if name]


def _dataflow(trace: _Trace, process: int, nodes: list[Any]) -> None:
    ends: dict[str, int] = {}
    for node, _, inputs in nodes:
        for name in inputs:
            if name in ends:
                flow = {"cat": "DataFlow", "id": len(trace.events)}
                trace.add("s", name, process, ends[name], **flow)
                trace.add("t", name, process, node.all_start_micros, **flow)
        ends[node.node_name] = node.all_start_micros + node.all_end_rel_micros


def _memory(trace: _Trace, allocators: int, tensors: int, nodes: list[Any]) -> None:
    """Adds the tensors, as objects with a life, and how much memory they take, as a counter."""
    last_uses = {name: node.all_start_micros + node.all_end_rel_micros for node, _, inputs in nodes for name in inputs}
    changes: list[tuple[int, int]] = []
    for number, (node, _, _) in enumerate(each for each in nodes if each[0].output):
        start = node.all_start_micros
        end = max(start + node.all_end_rel_micros, last_uses.get(node.node_name, 0))
        label = {"cat": "Tensor", "id": number}
        snapshot = {"tensor_description": str(node.output[0].tensor_description)}
        trace.add("N", node.node_name, tensors, start, **label)
        trace.add("O", node.node_name, tensors, start + node.all_end_rel_micros, **label, args={"snapshot": snapshot})
        trace.add("D", node.node_name, tensors, end, **label)
        size = sum(memory.live_bytes for memory in node.memory)
        changes += [(start, size), (end, -size)]
    held = 0
    for moment, change in sorted(changes, key=lambda each: (each[0], -each[1])):
        held += change
        trace.add("C", _ALLOCATOR, allocators, moment, cat="Memory", args={_ALLOCATOR: held})
