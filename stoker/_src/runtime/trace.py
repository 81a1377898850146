"""Traces of a run: the content of RunMetadata, and the Chrome trace generated from it."""

from __future__ import annotations

import json
import threading
import time
from typing import Any

from stoker._src.formats.protos import NodeDef, StepStats
from stoker._src.graph.interchange.function_def import referenced_functions
from stoker._src.graph.interchange.node_def import PRODUCER_VERSION, node_def_of
from stoker._src.graph.tensor import Tensor
from stoker._src.runtime.plan.instructions import Instruction
from stoker._src.runtime.plan.planner import Planner

HOST = "/job:localhost/replica:0/task:0/device:CPU:0"


class Ticks:
    """Collects the end time of each line of a timed step."""

    def __init__(self) -> None:
        self.start = time.time()
        self._begin = time.perf_counter()
        self.ends: list[tuple[int, float]] = []

    def __call__(self, line: int) -> None:
        self.ends.append((line, time.perf_counter() - self._begin))

    def spans(self) -> list[tuple[int, float, float]]:
        """Returns (line, begin, end) in seconds from the start."""
        spans, last = [], 0.0
        for line, end in self.ends:
            spans.append((line, last, end))
            last = end
        return spans


def fill_run_metadata(metadata: Any, ticks: Ticks, instructions: list[Instruction]) -> None:
    """Fills in the step stats of a run, in the form that TensorBoard and `timeline` read."""
    stats = StepStats()
    device = stats.dev_stats.add(device=HOST)
    for line, begin, end in ticks.spans():
        op = instructions[line].op
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
    metadata.step_stats.MergeFromString(stats.SerializeToString())


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
        """Returns the trace as JSON: one row per device, one slice per op, and arrows along data if `show_dataflow`."""
        events: list[dict[str, Any]] = []
        for process, device in enumerate(self._stats.dev_stats):
            events.append(
                {"name": "process_name", "ph": "M", "pid": process, "args": {"name": f"{device.device} Compute"}}
            )
            ends: dict[str, tuple[int, int]] = {}
            for node in device.node_stats:
                _, _, call = node.timeline_label.partition(" = ")
                is_transfer = node.node_name == "RecvTensor"  # a value from another task; the row below that of the ops
                inputs = [name for name in call.partition("(")[2].rstrip(")").split(", ") if name]
                events.append(
                    {
                        "name": call.partition("(")[0] or node.node_name,
                        "cat": "Op",
                        "ph": "X",
                        "pid": process,
                        "tid": int(is_transfer),
                        "ts": node.all_start_micros,
                        "dur": node.all_end_rel_micros,
                        "args": {
                            "name": node.node_name,
                            "op": node.timeline_label if is_transfer else call.partition("(")[0],
                            **{f"input{i}": n for i, n in enumerate(inputs)},
                        },
                    }
                )
                if show_dataflow:
                    for name in inputs:
                        if name in ends:
                            flow = {"name": name, "cat": "DataFlow", "id": len(events), "pid": process, "tid": 0}
                            events.append({**flow, "ph": "s", "ts": ends[name][0]})
                            events.append({**flow, "ph": "t", "ts": node.all_start_micros})
                ends[node.node_name] = (node.all_start_micros + node.all_end_rel_micros, process)
        return json.dumps({"traceEvents": events}, indent=1)
