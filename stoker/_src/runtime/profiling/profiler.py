"""`tf.profiler`: what a graph holds and what its runs take, as reports, messages, timelines and advice."""

from __future__ import annotations

import os
import sys
from typing import Any

from stoker._src.base.errors import InvalidArgumentError
from stoker._src.base.export import export, export_constant
from stoker._src.formats import protos
from stoker._src.formats.gfile import GFile
from stoker._src.formats.protos import AdviceProto, OpLogProto
from stoker._src.graph import context
from stoker._src.graph.keys import GraphKeys
from stoker._src.runtime.profiling.files import check_pprof, pprof_file, profile_message
from stoker._src.runtime.profiling.nodes import Node, op_nodes, trace_of
from stoker._src.runtime.profiling.options import TRAINABLE, ProfileOptionBuilder
from stoker._src.runtime.profiling.report import body, graph_message, group_message, report
from stoker._src.runtime.profiling.views import by_inputs, by_line, by_scope, by_type
from stoker._src.runtime.trace import Timeline

for _name in ("AdviceProto", "GraphNodeProto", "MultiGraphNodeProto", "OpLogProto"):
    export_constant(protos.__name__, _name, v1=f"profiler.{_name}")

_VIEWS = {"scope": by_scope, "graph": by_inputs, "op": by_type, "code": by_line}
_TOP_TYPES = 3


@export(v1="profiler.profile")
def profile(
    graph: Any = None, run_meta: Any = None, op_log: Any = None, cmd: str = "scope", options: Any = None
) -> Any:
    """Counts parameters, floating point operations, times and memory of a graph, and prints or writes a report.

    Args:
        graph: The graph. By default the current one.
        run_meta: The RunMetadata of a traced run, which holds times and sizes.
        op_log: An OpLogProto with floating point operations and types of ops, which replace and extend those of the graph.
        cmd: "scope" for a tree by names, "graph" for a tree by inputs, "op" for a list by op types, or "code" for a tree by the lines of
            the program that made the ops. Lines of this library are left out.
        options: The result of a ProfileOptionBuilder. By default times are shown.

    Returns:
        The root: a GraphNodeProto for "scope" and "graph", a MultiGraphNodeProto for "op" and "code".

    Raises:
        InvalidArgumentError: There is no such `cmd`.
        ValueError: The output is unknown, a timeline has no run, or pprof cannot show the view or the selected numbers.
    """
    if cmd not in _VIEWS:
        raise InvalidArgumentError(None, None, f"unknown cmd: {cmd}")
    chosen = {**ProfileOptionBuilder().build(), **(options or {})}
    graph = context.get_default_graph() if graph is None else graph
    kind, _, rest = chosen["output"].partition(":")
    path = rest.removeprefix("outfile=")
    if kind == "pprof":
        check_pprof(cmd, chosen["select"])
    if kind not in ("stdout", "file", "timeline", "pprof", "none"):
        raise ValueError(f"Unknown output {kind!r}: it can be stdout, file, timeline, pprof or none.")
    if kind == "timeline" and run_meta is None:
        raise ValueError("A timeline is made of the RunMetadata of a traced run: pass it as run_meta.")
    root = _VIEWS[cmd](op_nodes(graph, run_meta, op_log, chosen), chosen)
    if kind == "stdout":
        sys.stdout.write(report(root, cmd, chosen))
    elif kind == "file":
        with GFile(path, "w") as file:
            file.write(body(root, cmd, chosen))
    elif kind == "timeline":
        with GFile(f"{path}_{chosen['step']}", "w") as file:
            file.write(Timeline(run_meta.step_stats).generate_chrome_trace_format(show_memory=True))
    elif kind == "pprof":
        with GFile(path, "wb") as file:
            file.write(pprof_file(root, chosen["select"][0]))
    return graph_message(root) if cmd in ("scope", "graph") else group_message(root, is_chain=cmd == "op")


@export(v1="profiler.advise")
def advise(graph: Any = None, run_meta: Any = None, options: Any = None) -> Any:
    """Looks for what is expensive in a traced run, and prints it.

    Args:
        graph: The graph. By default the current one.
        run_meta: The RunMetadata of a traced run.
        options: A dictionary with the names of the checkers to run. By default all of them.

    Returns:
        An AdviceProto with the reports of each checker.
    """
    graph = context.get_default_graph() if graph is None else graph
    chosen = {**ProfileOptionBuilder().build(), "order_by": "micros"}
    nodes = op_nodes(graph, run_meta, None, chosen)
    found = AdviceProto()
    for name in options or ("ExpensiveOperationChecker", "OperationChecker", "AcceleratorUtilizationChecker"):
        reports = _expensive(nodes, chosen) if name == "ExpensiveOperationChecker" and run_meta is not None else []
        found.checkers[name].reports.extend(reports)
        sys.stdout.write("\n".join([f"\n{name}:", *reports, ""]))
    return found


def _expensive(nodes: dict[Any, Node], options: dict[str, Any]) -> list[str]:
    def times(node: Node) -> str:
        own = node.own
        return f"cpu: {own.cpu_exec_micros}us, accelerator: {own.accelerator_exec_micros}us, total: {own.exec_micros}us"

    root = by_type(nodes, options)
    whole = max(1, root.total.exec_micros)
    types = [
        f"top {place} operation type: {kind.name}, {times(kind)} ({100 * kind.own.exec_micros / whole:.2f}%)"
        for place, kind in enumerate(root.children[:_TOP_TYPES], start=1)
    ]
    slowest = max(nodes.values(), key=lambda node: node.own.exec_micros)
    return ["\n".join(types), f"top 1 graph node: {slowest.name}, {times(slowest)}"]


@export(v1="profiler.write_op_log")
def write_op_log(graph: Any, log_dir: Any, op_log: Any = None, run_meta: Any = None, add_trace: bool = True) -> None:
    """Writes the file `tfprof_log` with what `profile` counts in a graph, for tools that only have its GraphDef.

    Args:
        graph: The graph, or None for the current one.
        log_dir: The directory of the file.
        op_log: An OpLogProto whose entries are part of the file.
        run_meta: The RunMetadata of a traced run. Not needed here, because the ops are counted from static shapes.
        add_trace: Whether to write the lines of the program that made the ops.
    """
    graph = context.get_default_graph() if graph is None else graph
    with GFile(os.path.join(os.fspath(log_dir), "tfprof_log"), "wb") as file:
        file.write(_log_of(graph, op_log, add_trace).SerializeToString())


def _log_of(graph: Any, op_log: Any, add_trace: bool) -> Any:
    log = OpLogProto()
    given = {} if op_log is None else {entry.name: entry for entry in op_log.log_entries}
    trainable = {variable.op.name for variable in graph.get_collection(GraphKeys.TRAINABLE_VARIABLES)}
    ids: dict[str, int] = {}
    nodes = op_nodes(graph, None, None, ProfileOptionBuilder().build())
    names = {op.name: op for op in nodes}
    for op, node in nodes.items():
        types = [TRAINABLE] if op.name in trainable else []
        entry = log.log_entries.add(name=op.name, float_ops=node.own.float_ops, types=types)
        if op.name in given:
            entry.MergeFromString(given[op.name].SerializeToString())
        for file, line, function in trace_of(op, names)[1] if add_trace else ():
            trace = entry.code_def.traces.add(lineno=line)
            trace.file_id = ids.setdefault(file, len(ids) + 1)
            trace.function_id = ids.setdefault(function, len(ids) + 1)
    for text, number in ids.items():
        log.id_to_string[number] = text
    return log


@export(v1="profiler.Profiler")
class Profiler:
    """Profiles several traced steps of one graph.

    Args:
        graph: The graph. By default the current one.
        op_log: See `profile`.
    """

    def __init__(self, graph: Any = None, op_log: Any = None) -> None:
        self._graph = context.get_default_graph() if graph is None else graph
        self._op_log = op_log
        self._steps: dict[int, Any] = {}

    def add_step(self, step: int, run_meta: Any) -> None:
        """Adds the RunMetadata of a step."""
        self._steps[step] = run_meta

    def _profile(self, cmd: str, options: Any) -> Any:
        step = (options or {}).get("step", -1)
        if step >= 0 and step not in self._steps:
            raise ValueError(f"There is no step {step} in this Profiler, which has the steps {sorted(self._steps)}.")
        if cmd == "graph" and step < 0 and self._steps and (options or {}).get("output", "").startswith("timeline"):
            # Without a selected step, timelines of all steps are written.
            return [
                profile(self._graph, run_meta, self._op_log, cmd, {**options, "step": number})
                for number, run_meta in self._steps.items()
            ][-1]
        run_meta = self._steps[step] if step >= 0 else next(reversed(self._steps.values()), None)
        return profile(self._graph, run_meta, self._op_log, cmd, options)

    def profile_name_scope(self, options: Any) -> Any:
        """Runs `profile` with "scope" for the step that the options select, or for the last one."""
        return self._profile("scope", options)

    def profile_graph(self, options: Any) -> Any:
        """Runs `profile` with "graph" for the step that the options select, or for the last one."""
        return self._profile("graph", options)

    def profile_operations(self, options: Any) -> Any:
        """Runs `profile` with "op" for the step that the options select, or for the last one."""
        return self._profile("op", options)

    def profile_python(self, options: Any) -> Any:
        """Runs `profile` with "code" for the step that the options select, or for the last one."""
        return self._profile("code", options)

    def serialize_to_string(self) -> bytes:
        """Returns the graph and the runs of all steps as a ProfileProto, the input of TensorFlow's profiler UI."""
        return profile_message(self._graph, self._steps, self._op_log).SerializeToString()

    def advise(self, options: Any = None) -> Any:
        """Runs `advise` for the last step."""
        return advise(self._graph, next(reversed(self._steps.values()), None), options)
