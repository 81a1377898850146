"""`tf.profiler`: parameters, floating point operations and times of a graph, by scope or by op type, as a report or a tree."""

from __future__ import annotations

import math
import re
import sys
from collections import Counter
from dataclasses import dataclass, field
from typing import Any

from stoker._src.base.export import export
from stoker._src.formats.gfile import GFile
from stoker._src.graph import context
from stoker._src.graph.keys import GraphKeys
from stoker._src.runtime.float_operations import float_operations
from stoker._src.runtime.trace import Timeline

_TRAINABLE = "_trainable_variables"
_VARIABLES = ("Variable", "VariableV2", "VarHandleOp")
_NUMBERS = ("params", "float_ops", "micros", "bytes", "occurrence")
_MINIMA = {
    "params": "min_params",
    "float_ops": "min_float_ops",
    "micros": "min_micros",
    "bytes": "min_bytes",
    "occurrence": "min_occurrence",
}
_TITLES = {
    "params": "# parameters",
    "float_ops": "# float_ops",
    "micros": "total execution time",
    "bytes": "output bytes",
    "occurrence": "op occurrence (run|defined)",
}
_UNITS = {"params": " params", "float_ops": " flops", "micros": "us", "bytes": "B", "occurrence": ""}


@export(v1="profiler.GraphNodeProto")
@dataclass
class GraphNodeProto:
    """One node of a profile, with the totals of its children."""

    name: str
    parameters: int = 0
    float_ops: int = 0
    exec_micros: int = 0
    output_bytes: int = 0
    run_count: int = 0
    definition_count: int = 0
    total_parameters: int = 0
    total_float_ops: int = 0
    total_exec_micros: int = 0
    total_output_bytes: int = 0
    total_run_count: int = 0
    total_definition_count: int = 0
    shape: str = ""
    children: list[GraphNodeProto] = field(default_factory=list)

    def number(self, kind: str, total: bool = False) -> int:
        name = {
            "params": "parameters",
            "float_ops": "float_ops",
            "micros": "exec_micros",
            "bytes": "output_bytes",
            "occurrence": "definition_count",
        }[kind]
        return getattr(self, f"total_{name}" if total else name)

    def add_up(self) -> None:
        """Computes the totals from the node itself and its children."""
        for child in self.children:
            child.add_up()
        for name in ("parameters", "float_ops", "exec_micros", "output_bytes", "run_count", "definition_count"):
            total = getattr(self, name) + sum(getattr(child, f"total_{name}") for child in self.children)
            setattr(self, f"total_{name}", total)


@export(v1="profiler.ProfileOptionBuilder")
class ProfileOptionBuilder:
    """Builds the options of `profile`, which are dictionaries, step by step."""

    def __init__(self, options: dict[str, Any] | None = None) -> None:
        self._options: dict[str, Any] = {
            "max_depth": 100, "min_bytes": 0, "min_micros": 0, "min_params": 0, "min_float_ops": 0, "min_occurrence": 0,
            "order_by": "name", "account_type_regexes": [".*"], "start_name_regexes": [".*"], "trim_name_regexes": [],
            "show_name_regexes": [".*"], "hide_name_regexes": [], "account_displayed_op_only": False, "select": ["micros"],
            "step": -1, "output": "stdout",
        } if options is None else {**options}  # fmt: skip

    @staticmethod
    def _start(**changes: Any) -> dict[str, Any]:
        options = ProfileOptionBuilder()._options
        return {**options, "max_depth": 10000, "account_displayed_op_only": True, **changes}

    @staticmethod
    def trainable_variables_parameter() -> dict[str, Any]:
        """Returns options for the parameters of trainable variables."""
        return ProfileOptionBuilder._start(account_type_regexes=[_TRAINABLE], select=["params"])

    @staticmethod
    def float_operation() -> dict[str, Any]:
        """Returns options for floating point operations, counted from static shapes."""
        return ProfileOptionBuilder._start(min_float_ops=1, order_by="float_ops", select=["float_ops"])

    @staticmethod
    def time_and_memory(
        min_micros: int = 1,
        min_bytes: int = 1,
        min_accelerator_micros: int = 0,
        min_cpu_micros: int = 0,
        min_peak_bytes: int = 0,
        min_residual_bytes: int = 0,
        min_output_bytes: int = 0,
    ) -> dict[str, Any]:
        """Returns options for the times of a traced run, and the bytes of its outputs."""
        return ProfileOptionBuilder._start(
            min_micros=min_micros,
            min_bytes=min_bytes,
            min_accelerator_micros=min_accelerator_micros,
            min_cpu_micros=min_cpu_micros,
            min_peak_bytes=min_peak_bytes,
            min_residual_bytes=min_residual_bytes,
            min_output_bytes=min_output_bytes,
            order_by="micros",
            select=["micros", "bytes"],
        )

    def build(self) -> dict[str, Any]:
        """Returns the options."""
        return {**self._options}

    def _with(self, **changes: Any) -> ProfileOptionBuilder:
        self._options.update(changes)
        return self

    def with_max_depth(self, max_depth: int) -> ProfileOptionBuilder:
        """Limits the number of levels shown."""
        return self._with(max_depth=max_depth)

    def with_min_memory(
        self, min_bytes: int = 0, min_peak_bytes: int = 0, min_residual_bytes: int = 0, min_output_bytes: int = 0
    ) -> ProfileOptionBuilder:
        """Shows only nodes with at least this many bytes."""
        return self._with(
            min_bytes=min_bytes,
            min_peak_bytes=min_peak_bytes,
            min_residual_bytes=min_residual_bytes,
            min_output_bytes=min_output_bytes,
        )

    def with_min_execution_time(
        self, min_micros: int = 0, min_accelerator_micros: int = 0, min_cpu_micros: int = 0
    ) -> ProfileOptionBuilder:
        """Shows only nodes that took at least this many microseconds."""
        return self._with(
            min_micros=min_micros, min_accelerator_micros=min_accelerator_micros, min_cpu_micros=min_cpu_micros
        )

    def with_min_parameters(self, min_params: int) -> ProfileOptionBuilder:
        """Shows only nodes with at least this many parameters."""
        return self._with(min_params=min_params)

    def with_min_occurrence(self, min_occurrence: int) -> ProfileOptionBuilder:
        """Shows only op types that occur at least this often."""
        return self._with(min_occurrence=min_occurrence)

    def with_min_float_operations(self, min_float_ops: int) -> ProfileOptionBuilder:
        """Shows only nodes with at least this many floating point operations."""
        return self._with(min_float_ops=min_float_ops)

    def with_accounted_types(self, account_type_regexes: list[str]) -> ProfileOptionBuilder:
        """Counts only nodes of these types."""
        return self._with(account_type_regexes=list(account_type_regexes))

    def with_node_names(
        self,
        start_name_regexes: list[str] | None = None,
        show_name_regexes: list[str] | None = None,
        hide_name_regexes: list[str] | None = None,
        trim_name_regexes: list[str] | None = None,
    ) -> ProfileOptionBuilder:
        """Selects the nodes to start from, show, hide or trim by name."""
        names = {
            "start_name_regexes": start_name_regexes,
            "show_name_regexes": show_name_regexes,
            "hide_name_regexes": hide_name_regexes,
            "trim_name_regexes": trim_name_regexes,
        }
        return self._with(**{key: list(value) for key, value in names.items() if value is not None})

    def account_displayed_op_only(self, is_true: bool) -> ProfileOptionBuilder:
        """Sets whether totals include only the nodes shown."""
        return self._with(account_displayed_op_only=is_true)

    def with_empty_output(self) -> ProfileOptionBuilder:
        """Prints nothing."""
        return self._with(output="none")

    def with_stdout_output(self) -> ProfileOptionBuilder:
        """Prints the report."""
        return self._with(output="stdout")

    def with_file_output(self, outfile: str) -> ProfileOptionBuilder:
        """Writes the report to a file."""
        return self._with(output=f"file:outfile={outfile}")

    def with_timeline_output(self, timeline_file: str) -> ProfileOptionBuilder:
        """Writes the traced run to a file in Chrome's trace format."""
        return self._with(output=f"timeline:outfile={timeline_file}")

    def with_step(self, step: int) -> ProfileOptionBuilder:
        """Selects one step of a Profiler."""
        return self._with(step=step)

    def order_by(self, attribute: str) -> ProfileOptionBuilder:
        """Sorts nodes by "name", or by one of the numbers in descending order."""
        return self._with(order_by=attribute)

    def select(self, attributes: list[str]) -> ProfileOptionBuilder:
        """Selects the numbers to show: params, float_ops, micros, bytes, occurrence."""
        return self._with(select=list(attributes))


# ---- counting ---------------------------------------------------------------------------------------------------


def _any(patterns: list[str], text: str) -> bool:
    return any(re.fullmatch(pattern, text) for pattern in patterns)


def _bytes(op: Any) -> int:
    count = 0
    for tensor in op.outputs:
        if tensor.static_shape.known:
            count += math.prod(tensor.static_shape) * tensor.dtype.base_dtype.size
    return count


def _nodes(graph: Any, run_meta: Any, options: dict[str, Any]) -> list[tuple[Any, GraphNodeProto]]:
    """Returns every op with its numbers. Ops of types that are not counted have none."""
    times: Counter[str] = Counter()
    runs: Counter[str] = Counter()
    if run_meta is not None:
        for device in run_meta.step_stats.dev_stats:
            for stats in device.node_stats:
                times[stats.node_name] += stats.all_end_rel_micros
                runs[stats.node_name] += 1
    trainable = {variable.op.name for variable in graph.get_collection(GraphKeys.TRAINABLE_VARIABLES)}
    found = []
    for op in graph.get_operations():
        types = [op.type, *([_TRAINABLE] if op.name in trainable else [])]
        node = GraphNodeProto(op.name)
        if any(_any(options["account_type_regexes"], kind) for kind in types):
            node.definition_count = 1
            if op.type in _VARIABLES:
                shape = op.attrs["shape"]
                if shape.known:
                    node.parameters = math.prod(shape)
                    node.shape = "x".join(map(str, shape))
            node.float_ops = float_operations(op)
            node.exec_micros, node.run_count = times[op.name], runs[op.name]
            node.output_bytes = _bytes(op) if runs[op.name] else 0
        found.append((op, node))
    return found


def _is_shown(node: GraphNodeProto, options: dict[str, Any]) -> bool:
    if not node.definition_count or not _any(options["show_name_regexes"], node.name):
        return False
    if _any(options["hide_name_regexes"], node.name):
        return False
    return all(node.number(kind) >= options.get(minimum, 0) for kind, minimum in _MINIMA.items())


def _ordered(nodes: list[GraphNodeProto], options: dict[str, Any]) -> list[GraphNodeProto]:
    key = options["order_by"]
    if key not in _NUMBERS:
        return sorted(nodes, key=lambda node: node.name)
    return sorted(nodes, key=lambda node: (-node.number(key, total=True), node.name))


def _by_scope(graph: Any, run_meta: Any, options: dict[str, Any]) -> GraphNodeProto:
    """Arranges the shown ops as a tree: each below the shown op whose name is a prefix of its own, or below the root."""
    root = GraphNodeProto("_TFProfRoot", definition_count=1)
    all_nodes = [node for _, node in _nodes(graph, run_meta, options) if _any(options["start_name_regexes"], node.name)]
    all_nodes = [node for node in all_nodes if not _any(options["trim_name_regexes"], node.name)]
    shown = {node.name: node for node in all_nodes if _is_shown(node, options)}
    for name, node in shown.items():
        scopes = [name[: match.start()] for match in re.finditer("/", name)]
        parent = next((shown[scope] for scope in reversed(scopes) if scope in shown), root)
        parent.children.append(node)
    root.add_up()
    if not options["account_displayed_op_only"]:
        for kind in ("parameters", "float_ops", "exec_micros", "output_bytes", "run_count"):
            setattr(root, f"total_{kind}", sum(getattr(node, kind) for node in all_nodes))
    _arrange(root, options)
    return root


def _arrange(node: GraphNodeProto, options: dict[str, Any]) -> None:
    node.children = _ordered(node.children, options)
    for child in node.children:
        _arrange(child, options)


def _by_type(graph: Any, run_meta: Any, options: dict[str, Any]) -> GraphNodeProto:
    """Returns one node per op type."""
    root = GraphNodeProto("_TFProfRoot")
    types: dict[str, GraphNodeProto] = {}
    for op, node in _nodes(graph, run_meta, options):
        if node.definition_count:
            total = types.setdefault(op.type, GraphNodeProto(op.type))
            for name in ("parameters", "float_ops", "exec_micros", "output_bytes", "run_count", "definition_count"):
                setattr(total, name, getattr(total, name) + getattr(node, name))
    kinds = [node for node in types.values() if _is_shown(node, options)]
    root.children = kinds
    root.add_up()
    root.children = _ordered(kinds, options)
    return root


# ---- the report -------------------------------------------------------------------------------------------------


def _short(number: float) -> str:
    for limit, unit in ((1e9, "b"), (1e6, "m"), (1e3, "k")):
        if number >= limit:
            return f"{number / limit:.2f}{unit}"
    return str(int(number))


def _scope_lines(node: GraphNodeProto, options: dict[str, Any], depth: int = 0) -> list[str]:
    kinds = [kind for kind in _NUMBERS if kind in options["select"]]
    parts = []
    for kind in kinds:
        own = "--" if not depth else _short(node.number(kind))
        shape = f"{node.shape}, " if kind == "params" and node.shape else ""
        parts.append(f"{shape}{own}/{_short(node.number(kind, total=True))}{_UNITS[kind]}")
    lines = [f"{'  ' * depth}{node.name} ({', '.join(parts)})"]
    if depth < options["max_depth"]:
        for child in node.children:
            lines += _scope_lines(child, options, depth + 1)
    return lines


def _type_lines(root: GraphNodeProto, options: dict[str, Any]) -> list[str]:
    kinds = [kind for kind in _NUMBERS if kind in options["select"]]
    lines = []
    for node in root.children:
        parts = []
        for kind in kinds:
            if kind == "occurrence":
                parts.append(f"{node.run_count}|{node.definition_count}")
            else:
                share = node.number(kind) / max(1, root.number(kind, total=True))
                parts.append(f"{_short(node.number(kind))}{_UNITS[kind]} ({share:.2%})")
        lines.append(f"{node.name:<28} {', '.join(f'{part:>24}' for part in parts)}")
    return lines


def _report(root: GraphNodeProto, cmd: str, options: dict[str, Any]) -> str:
    kinds = [kind for kind in _NUMBERS if kind in options["select"]]
    lines = _scope_lines(root, options) if cmd == "scope" else _type_lines(root, options)
    title = " | ".join(["node name", *(_TITLES[kind] for kind in kinds)])
    rule = "=" * 18
    return "\n".join(
        [
            "",
            f"{rule}Model Analysis Report{'=' * 22}",
            "",
            "Profile:",
            title,
            *lines,
            "",
            f"{'=' * 22}End of Report{'=' * 26}",
            "",
        ]
    )


@export(v1="profiler.profile")
def profile(
    graph: Any = None, run_meta: Any = None, op_log: Any = None, cmd: str = "scope", options: Any = None
) -> GraphNodeProto:
    """Counts parameters, floating point operations, times and outputs of a graph, and prints or writes a report.

    Args:
        graph: the graph; by default the current one.
        run_meta: the RunMetadata of a traced run, which contains the times.
        op_log: not supported, because operations are counted from the graph itself.
        cmd: "scope" for a tree by names, "op" for a list by op types.
        options: the result of a ProfileOptionBuilder; times by default.

    Returns:
        The root of the tree.

    Raises:
        NotImplementedError: `cmd` is "graph" or "code", an `op_log` is given, or the output is for pprof.
    """
    if cmd not in ("scope", "op"):
        raise NotImplementedError(f'tf.profiler.profile knows the commands "scope" and "op", not {cmd!r}.')
    if op_log is not None:
        raise NotImplementedError("tf.profiler.profile counts operations itself and takes no op_log.")
    chosen = {**ProfileOptionBuilder().build(), **(options or {})}
    graph = context.get_default_graph() if graph is None else graph
    root = (_by_scope if cmd == "scope" else _by_type)(graph, run_meta, chosen)
    kind, _, rest = chosen["output"].partition(":")
    path = rest.removeprefix("outfile=")
    if kind == "stdout":
        sys.stdout.write(_report(root, cmd, chosen))
    elif kind == "file":
        with GFile(path, "w") as file:
            file.write(_report(root, cmd, chosen))
    elif kind == "timeline":
        if run_meta is None:
            raise ValueError("A timeline is made of the RunMetadata of a traced run: pass it as run_meta.")
        with GFile(path, "w") as file:
            file.write(Timeline(run_meta.step_stats).generate_chrome_trace_format())
    elif kind != "none":
        raise NotImplementedError(f"tf.profiler.profile does not write {kind!r} output.")
    return root


@export(v1="profiler.Profiler")
class Profiler:
    """Profiles several traced steps of one graph.

    Args:
        graph: the graph; by default the current one.
        op_log: not supported.
    """

    def __init__(self, graph: Any = None, op_log: Any = None) -> None:
        if op_log is not None:
            raise NotImplementedError("tf.profiler.Profiler counts operations itself and takes no op_log.")
        self._graph = context.get_default_graph() if graph is None else graph
        self._steps: dict[int, Any] = {}

    def add_step(self, step: int, run_meta: Any) -> None:
        """Adds the RunMetadata of a step."""
        self._steps[step] = run_meta

    def _run_meta(self, options: Any) -> Any:
        step = (options or {}).get("step", -1)
        if step >= 0:
            return self._steps[step]
        return next(reversed(self._steps.values()), None) if self._steps else None

    def profile_name_scope(self, options: Any) -> GraphNodeProto:
        """Runs `profile` with "scope" for the step that the options select, or for the last one."""
        return profile(self._graph, self._run_meta(options), cmd="scope", options=options)

    def profile_operations(self, options: Any) -> GraphNodeProto:
        """Runs `profile` with "op" for the step that the options select, or for the last one."""
        return profile(self._graph, self._run_meta(options), cmd="op", options=options)
