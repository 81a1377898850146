"""Reports of `tf.profiler`: a tree or a table as text, and as messages."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from stoker._src.formats.protos import GraphNodeProto, MultiGraphNodeProto
from stoker._src.runtime.profiling.nodes import NAMES, ROOT, Node

_VIEWS = {
    "scope": "scope: ops by their names, like files in folders.",
    "graph": "graph: below each op, those that it reads or waits for.",
    "op": "op: ops of the same type together.",
    "code": "code: ops by the lines of the program that made them, below the lines that called those.",
}
_TEXTS = {
    "accelerator_micros": ["accelerator execution time: time on the accelerator."],
    "bytes": ["requested bytes: the memory that the op asked for."],
    "cpu_micros": ["cpu execution time: time from the start of the op to its end, waiting included."],
    "device": ["device: the device of the op."],
    "float_ops": ["flops: number of floating point operations, from static shapes."],
    "input_shapes": ["input shape: the shapes of the inputs."],
    "micros": [
        "total execution time: cpu and accelerator execution time together.",
        "cpu execution time: time from the start of the op to its end, waiting included.",
        "accelerator execution time: time on the accelerator.",
    ],
    "occurrence": ["occurrence: how often the op ran, and how often it is defined."],
    "op_types": ["op_types: the type of the op, its device, and types that were given to it."],
    "output_bytes": ["output bytes: the size of the outputs, whoever allocated them."],
    "params": ["param: number of parameters in variables."],
    "peak_bytes": ["peak bytes: the most memory that the op held at a time."],
    "residual_bytes": ["residual bytes: the memory that the op still held at its end."],
    "tensor_value": ["tensor_value: not shown."],
}


def _scaled(number: int, units: tuple[str, ...], limit: int = 1000) -> str:
    if number < limit:
        return f"{number}{units[0]}"
    power = 1
    while power + 1 < len(units) and number >= limit ** (power + 1):
        power += 1
    return f"{number / limit**power:.2f}{units[power]}"


def _count(number: int) -> str:
    return _scaled(number, ("", "k", "m", "b"))


def _memory(number: int) -> str:
    return _scaled(number, ("B", "KB", "MB", "GB"))


def _time(number: int) -> str:
    return _scaled(number, ("us", "ms", "sec"))


# The columns in their order: what selects them, the title, the number, and its form.
_COLUMNS: list[tuple[tuple[str, ...], str, str, Callable[[int], str]]] = [
    (("params",), "# parameters", "parameters", _count),
    (("float_ops",), "# float_ops", "float_ops", _count),
    (("bytes",), "requested bytes", "requested_bytes", _memory),
    (("peak_bytes",), "peak bytes", "peak_bytes", _memory),
    (("residual_bytes",), "residual bytes", "residual_bytes", _memory),
    (("output_bytes",), "output bytes", "output_bytes", _memory),
    (("micros",), "total execution time", "exec_micros", _time),
    (("micros", "accelerator_micros"), "accelerator execution time", "accelerator_exec_micros", _time),
    (("micros", "cpu_micros"), "cpu execution time", "cpu_exec_micros", _time),
]
_TREE_UNITS = {"parameters": " params", "float_ops": " flops"}
_TABLE_UNITS = {"parameters": " params", "float_ops": " float_ops"}


def _shape(shape: tuple[int, ...]) -> str:
    return "x".join(map(str, shape))


def _inputs(node: Node, separator: str) -> str:
    return separator.join(f"{index}:{_shape(shape)}" for index, shape in node.input_shapes.items())


def _columns(options: dict[str, Any]) -> list[tuple[str, str, Callable[[int], str]]]:
    select = set(options["select"])
    return [(title, name, form) for keys, title, name, form in _COLUMNS if select & set(keys)]


def _tree_lines(root: Node, options: dict[str, Any]) -> list[str]:
    lines: list[str] = []
    waiting = [(root, 0)]
    select, columns = options["select"], _columns(options)
    while waiting:
        node, depth = waiting.pop()
        parts = []
        for _, name, form in columns:
            own = form(getattr(node.own, name)) if node.counts else "--"
            text = f"{own}/{form(getattr(node.total, name))}{_TREE_UNITS.get(name, '')}"
            parts.append(
                f"{_shape(node.shape)}, {text}" if name == "parameters" and node.shape and node.counts else text
            )
        if "device" in select and node.devices:
            parts.append("|".join(node.devices))
        if "op_types" in select and node.types:
            parts.append("|".join(node.types))
        if "occurrence" in select:
            runs, defined = (node.own.run_count, node.own.definition_count) if node.counts else ("--", "--")
            parts.append(f"{runs}/{node.total.run_count}|{defined}/{node.total.definition_count}")
        if "input_shapes" in select:
            parts.append(_inputs(node, "|"))
        lines.append(f"{'  ' * depth}{node.name} ({', '.join(parts)})")
        waiting += [(child, depth + 1) for child in reversed(node.children)]
    return lines


def _table_lines(root: Node, options: dict[str, Any]) -> list[str]:
    lines: list[str] = []
    select = options["select"]
    for node in root.children:
        parts = []
        for _, name, form in _columns(options):
            whole = getattr(root.total, name)
            rest, own = (100 * getattr(part, name) / whole if whole else 0.0 for part in (node.total, node.own))
            value = f"{form(getattr(node.own, name))}{_TABLE_UNITS.get(name, '')}"
            parts.append(f"{f'{value} ({rest:.2f}%, {own:.2f}%)':>30}")
        if "device" in select:
            parts.append("|".join(sorted(node.devices)))
        if "op_types" in select:
            parts.append("|".join(sorted(node.types)))
        if "occurrence" in select:
            parts.append(f"{f'{node.own.run_count}|{node.own.definition_count}':>10}")
        lines.append(f"{node.name:<25}{', '.join(parts)}")
        if "input_shapes" in select:
            lines += ["", *_by_input_shapes(node), ""]
    return lines


def _by_input_shapes(kind: Node) -> list[str]:
    """The ops of a type by the shapes of their inputs, with the number of runs, of definitions, and the time."""
    groups: dict[str, list[Node]] = {}
    for member in kind.members:
        groups.setdefault(_inputs(member, ",\t"), []).append(member)
    lines = []
    for shapes, members in groups.items():
        runs, micros = (sum(getattr(node.own, name) for node in members) for name in ("run_count", "exec_micros"))
        lines.append(f"input_type: {shapes}\t(run*{runs}|defined*{len(members)})\texec_time: {_time(micros)}")
    return lines


def body(root: Node, cmd: str, options: dict[str, Any]) -> str:
    """Returns what a report says about the numbers, and the numbers."""
    texts = [line for name in sorted(options["select"]) for line in _TEXTS.get(name, [f"Unknown select: {name}"])]
    titles = [title for title, _, _ in _columns(options)]
    extra = {
        "device": "assigned devices",
        "op_types": "op types",
        "occurrence": "op occurrence (run|defined)" if cmd == "op" else "op count (run|defined)",
        "input_shapes": "input shapes",
    }
    titles += [title for name, title in extra.items() if name in options["select"]]
    lines = _table_lines(root, options) if cmd == "op" else _tree_lines(root, options)
    return "\n".join(["", "Doc:", _VIEWS[cmd], *texts, "", "Profile:", f"node name | {' | '.join(titles)}", *lines, ""])


_SHOWN_OPTIONS = (
    "max_depth", "min_bytes", "min_peak_bytes", "min_residual_bytes", "min_output_bytes", "min_micros",
    "min_accelerator_micros", "min_cpu_micros", "min_params", "min_float_ops", "min_occurrence", "step", "order_by",
    "account_type_regexes", "start_name_regexes", "trim_name_regexes", "show_name_regexes", "hide_name_regexes",
    "account_displayed_op_only", "select", "output",
)  # fmt: skip


def report(root: Node, cmd: str, options: dict[str, Any]) -> str:
    """Returns the whole report, with the options."""
    lines = ["", f"{'=' * 25}Options{'=' * 29}"]
    for name in _SHOWN_OPTIONS:
        value = options.get(name, 0)
        if name == "select":
            value = sorted(value)
        text = ",".join(value) if isinstance(value, list) else str(value).lower() if isinstance(value, bool) else value
        lines.append(f"{'-' + name:<28}{text}{':' if name == 'output' else ''}")
    lines += ["", f"{'=' * 18}Model Analysis Report{'=' * 22}"]
    return "\n".join(lines) + "\n" + body(root, cmd, options) + f"\n{'=' * 22}End of Report{'=' * 26}\n"


# ---- messages -----------------------------------------------------------------------------------------------------


def _fill(message: Any, node: Node, is_op: bool) -> None:
    message.name = node.name
    for name in NAMES:
        if name not in ("definition_count", "run_count") or is_op:
            if name != "definition_count" and node.name != ROOT:
                setattr(message, name, getattr(node.own, name))
            setattr(message, f"total_{name}", getattr(node.total, name))


def graph_message(node: Node) -> Any:
    """Returns a GraphNodeProto of a tree."""
    root = GraphNodeProto()
    waiting = [(node, root)]
    while waiting:
        node, message = waiting.pop()
        _fill(message, node, is_op=True)
        message.devices.extend(node.devices)
        for index, shape in node.input_shapes.items():
            for size in shape:
                message.input_shapes[index].dim.add(size=size)
        waiting += [(child, message.children.add()) for child in node.children]
    return root


def group_message(node: Node, is_chain: bool) -> Any:
    """Returns a MultiGraphNodeProto of a tree.

    Args:
        node: The root.
        is_chain: Whether each child is below the one before it, as types are, whose totals include the following ones.
    """
    root = MultiGraphNodeProto()
    waiting = [(node, root)]
    while waiting:
        node, message = waiting.pop()
        _fill(message, node, is_op=False)
        message.graph_nodes.extend(graph_message(member) for member in node.members)
        if is_chain:
            for child in node.children:
                message = message.children.add()
                _fill(message, child, is_op=False)
                message.graph_nodes.extend(graph_message(member) for member in child.members)
        else:
            waiting += [(child, message.children.add()) for child in node.children]
    return root
