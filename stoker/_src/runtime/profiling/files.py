"""Profiles as messages for other programs: pprof, and TensorFlow's profiler UI."""

from __future__ import annotations

import gzip
import os
from collections.abc import Iterator
from typing import Any

from stoker._src.formats.protos import Pprof, ProfileProto
from stoker._src.graph.interchange.node_def import node_def_of
from stoker._src.runtime.profiling.nodes import Node, is_accelerator, op_nodes, trace_of
from stoker._src.runtime.profiling.options import ProfileOptionBuilder

# What can be selected for pprof: the number, its unit, and what it means.
_SAMPLES = {
    "bytes": ("requested_bytes", "bytes", "Sum of operation total memory requests, excluding deallocations."),
    "peak_bytes": ("peak_bytes", "bytes", "Sum of operation peak memory usage."),
    "residual_bytes": ("residual_bytes", "bytes", "Sum of operation allocated memory after finish."),
    "output_bytes": ("output_bytes", "bytes", "Sum of operation output size."),
    "micros": ("exec_micros", "microseconds", "Sum of accelerator execution time and cpu execution time."),
    "accelerator_micros": ("accelerator_exec_micros", "microseconds", "Accelerator execution time."),
    "cpu_micros": ("cpu_exec_micros", "microseconds", "CPU execution time."),
    "params": ("parameters", "count", "Model parameters."),
    "float_ops": ("float_ops", "count", "Model float operations (Only available if defined)."),
}


def check_pprof(cmd: str, select: list[str]) -> None:
    """Checks what pprof can show: one number of each line of the program.

    Raises:
        ValueError: The view is not that of the code, or not one number is selected.
    """
    if cmd != "code":
        raise ValueError(f"Only 'code' view supports pprof output now. Found {cmd!r}.")
    if len(select) != 1:
        raise ValueError(f"Can only select 1 attribute for pprof output. Found {list(select)}.")
    if select[0] not in _SAMPLES:
        raise ValueError(f"pprof doesn't support -select={select[0]}. It can be one of {', '.join(_SAMPLES)}.")


class _Numbering:
    """Numbers values in the order in which they are first asked for, from 0 on."""

    def __init__(self, *values: Any) -> None:
        self.known: dict[Any, int] = {value: number for number, value in enumerate(values)}

    def __call__(self, value: Any) -> int:
        return self.known.setdefault(value, len(self.known))


def pprof_file(root: Node, select: str) -> bytes:
    """Returns the content of a file for pprof: a sample for each op, with the lines that made it.

    Args:
        root: The view by lines.
        select: The number to show.
    """
    name, unit, text = _SAMPLES[select]
    # An empty string is number 0 in each file for pprof, and no function or location has the number 0.
    strings, functions, locations = _Numbering(""), _Numbering(None), _Numbering(None)
    message = Pprof()
    for kind, measure in (("count", "count"), (select, unit)):
        message.sample_type.add(type=strings(kind), unit=strings(measure))
    for line, frames in _lines(root):
        for member in line.members:
            sample = message.sample.add(value=[1, getattr(member.own, name)])
            sample.location_id.extend(locations(frame) for frame in reversed(frames))
            sample.label.add(key=strings("graph node:"), str=strings(member.name))
    for (file, number, function), location in list(locations.known.items())[1:]:
        message.location.add(id=location).line.add(function_id=functions((file, function)), line=number)
    for (file, function), number in list(functions.known.items())[1:]:
        module = os.path.splitext(os.path.basename(file))[0]
        message.function.add(id=number, name=strings(f"{module}:{function}"), filename=strings(file))
    message.comment.append(strings(text))
    message.string_table.extend(strings.known)
    return gzip.compress(message.SerializeToString(), mtime=0)


def _lines(root: Node) -> Iterator[tuple[Node, list[tuple[str, int, str]]]]:
    """Yields the lines of a program below `root`, each with the lines that lead to it, outermost first."""
    waiting: list[tuple[Node, list[tuple[str, int, str]]]] = [(root, [])]
    while waiting:
        line, frames = waiting.pop()
        frames = [*frames, line.frame] if line.frame else frames
        yield line, frames
        waiting += [(child, frames) for child in reversed(line.children)]


def profile_message(graph: Any, steps: dict[int, Any], op_log: Any) -> Any:
    """Returns a ProfileProto of a graph and the RunMetadata of its steps."""
    message = ProfileProto(has_trace=True, steps=sorted(steps))
    nodes = op_nodes(graph, None, op_log, ProfileOptionBuilder().build())
    numbers = {op: number for number, op in enumerate(nodes)}
    names = {op.name: op for op in nodes}
    strings = _Numbering(None)
    for op, node in nodes.items():
        _fill_node(message.nodes[numbers[op]], op, node, numbers)
        for file, line, function in trace_of(op, names)[1]:
            trace = message.nodes[numbers[op]].trace.traces.add(lineno=line)
            trace.file_id, trace.function_id = strings(file), strings(function)
    for step, run_meta in steps.items():
        for device in run_meta.step_stats.dev_stats:
            for stats in device.node_stats:
                op = names.get(stats.node_name.partition(":")[0])
                if op is not None:
                    _fill_run(message.nodes[numbers[op]], step, device.device.lower(), stats)
    for text, number in list(strings.known.items())[1:]:
        message.id_to_string[number] = text
    return message


def _fill_node(message: Any, op: Any, node: Node, numbers: dict[Any, int]) -> None:
    message.name, message.op, message.id, message.float_ops = op.name, op.type, numbers[op], node.own.float_ops
    message.op_types.extend(node.types)
    message.shape.extend(node.shape or ())
    for index, tensor in enumerate(op.inputs):
        message.inputs[index] = numbers[tensor.op]
        message.src_output_index[numbers[tensor.op]] = tensor.value_index
    for index, shape in node.input_shapes.items():
        message.input_shapes[index].int64_values.extend(-1 if size is None else size for size in shape)
    for index, tensor in enumerate(op.outputs):
        if tensor.static_shape.known:
            sizes = tuple(tensor.static_shape) or (1,)
            message.output_shapes[index].int64_values.extend(-1 if size is None else size for size in sizes)
    for name, value in node_def_of(op).attr.items():
        message.attrs[name].CopyFrom(value)


def _fill_run(message: Any, step: int, device: str, stats: Any) -> None:
    """Adds what an op took on a device in a step."""
    if not message.canonical_device:
        message.canonical_device = message.host_device = device
        message.op_types.insert(0, device)
    start, duration = stats.all_start_micros, stats.op_end_rel_micros - stats.op_start_rel_micros
    run = message.execs[step]
    if device not in run.devices:
        run.devices.append(device)
        run.run_count += 1
    run.all_start_micros = min(run.all_start_micros or start, start)
    run.latest_end_micros = max(run.latest_end_micros, start + stats.all_end_rel_micros)
    kind = run.accelerator_execs if is_accelerator(device) else run.cpu_execs
    kind[device].times.add(int64_values=[start, duration])
    memory = run.memory_execs.add(memory_micros=start + stats.all_end_rel_micros)
    for used in stats.memory:
        memory.requested_bytes += used.total_bytes
        memory.peak_bytes += used.peak_bytes
        memory.residual_bytes += used.live_bytes
    for output in stats.output:
        described = output.tensor_description.allocation_description
        memory.output_bytes += described.requested_bytes
        memory.output_memory[output.slot].bytes = described.requested_bytes
        memory.output_memory[output.slot].ptr = described.ptr
