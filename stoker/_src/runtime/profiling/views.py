"""The views of `tf.profiler.profile`: ops by scope, by inputs, by type, and by the lines of the program that made them."""

from __future__ import annotations

import re
from typing import Any

from stoker._src.runtime.profiling.nodes import ROOT, SCOPE, Node, Numbers, bottom_up, matches, trace_of

# What an option compares: own numbers for what is counted in the graph, totals for what is measured.
_OWN_MINIMA = {"min_params": "parameters", "min_float_ops": "float_ops"}
_TOTAL_MINIMA = {
    "min_bytes": "requested_bytes",
    "min_peak_bytes": "peak_bytes",
    "min_residual_bytes": "residual_bytes",
    "min_output_bytes": "output_bytes",
    "min_micros": "exec_micros",
    "min_accelerator_micros": "accelerator_exec_micros",
    "min_cpu_micros": "cpu_exec_micros",
}
_ORDERS = {
    "params": "parameters",
    "float_ops": "float_ops",
    "bytes": "requested_bytes",
    "peak_bytes": "peak_bytes",
    "residual_bytes": "residual_bytes",
    "output_bytes": "output_bytes",
    "micros": "exec_micros",
    "accelerator_micros": "accelerator_exec_micros",
    "cpu_micros": "cpu_exec_micros",
    "occurrence": "definition_count",
}


def _is_shown(node: Node, counted: Numbers, measured: Numbers, options: dict[str, Any]) -> bool:
    if not matches(options["show_name_regexes"], node.name) or matches(options["hide_name_regexes"], node.name):
        return False
    return all(getattr(counted, name) >= options.get(limit, 0) for limit, name in _OWN_MINIMA.items()) and all(
        getattr(measured, name) >= options.get(limit, 0) for limit, name in _TOTAL_MINIMA.items()
    )


def _ordered(nodes: list[Node], options: dict[str, Any], own: bool = False) -> list[Node]:
    """Returns the nodes by name, or the largest first."""
    key = _ORDERS.get(options["order_by"])
    if key is None:
        return sorted(nodes, key=lambda node: node.name)
    return sorted(nodes, key=lambda node: (-getattr(node.own if own else node.total, key), node.name))


def _selected(
    root: Node, options: dict[str, Any], only_shown: bool, *, with_parents: bool = True, by_totals: bool = False
) -> Node:
    """Returns the part of a tree that the options show. A node that is not shown leaves its children to its parent.

    Args:
        root: The tree, with its totals.
        options: The options of `profile`.
        only_shown: Whether totals leave out what is not shown.
        with_parents: Whether to show nodes that are counted only because of those below them.
        by_totals: Whether the least numbers of operations and parameters are compared with totals.
    """
    # What is shown instead of a node, and how many scopes among that are part of the number of definitions.
    shown: dict[int, tuple[list[Node], int]] = {}

    def collected(nodes: list[Node]) -> tuple[list[Node], int]:
        parts = [shown[id(node)] for node in nodes]
        return [node for part, _ in parts for node in part], sum(scopes for _, scopes in parts)

    starts = _starts(root.children, options)
    for node, depth in (each for start in starts for each in bottom_up(start)):
        if depth + 2 > options["max_depth"]:
            shown[id(node)] = [], 0
            continue
        is_trimmed = matches(options["trim_name_regexes"], node.name)
        children, scopes = ([], 0) if is_trimmed else collected(node.children)
        is_counted = node.has_counted if with_parents else node.counts
        if is_counted and _is_shown(node, node.total if by_totals else node.own, node.total, options):
            scopes += not node.counts
            copy = Node(**{**vars(node), "children": _ordered(children, options)})
            if only_shown:
                copy.total = node.sum_of(children)
                copy.total.definition_count = 1 + sum(child.total.definition_count for child in children)
            else:
                copy.total = Numbers(**vars(node.total))
                copy.total.definition_count += scopes
            children = [copy]
        shown[id(node)] = children, scopes
    children, scopes = collected(starts)
    result = Node(ROOT, root.types, children=_ordered(children, options))
    result.total = result.sum_of(children) if only_shown else Numbers(**vars(root.total))
    result.total.definition_count += 1 if only_shown else 1 + scopes
    return result


def _starts(nodes: list[Node], options: dict[str, Any]) -> list[Node]:
    """Returns the topmost nodes whose names fit."""
    found: list[Node] = []
    level = nodes
    while level:
        found += [node for node in level if matches(options["start_name_regexes"], node.name)]
        below = [node.children for node in level if not matches(options["start_name_regexes"], node.name)]
        level = [child for children in below for child in children]
    return found


def by_scope(ops: dict[Any, Node], options: dict[str, Any]) -> Node:
    """Arranges ops by their names: each below the scope it is in."""
    root = Node(ROOT, [SCOPE])
    places = {node.name: node for node in ops.values()}
    scopes_count = matches(options["account_type_regexes"], SCOPE)
    for name in list(places):
        for match in re.finditer("/", name):
            scope = name[: match.start()]
            if scope not in places:
                places[scope] = Node(scope, [SCOPE], Numbers(definition_count=1), counts=scopes_count)
    for name, node in places.items():
        scope = name.rpartition("/")[0]
        (places[scope] if scope else root).children.append(node)
    root.sum_up()
    return _selected(root, options, options["account_displayed_op_only"])


def by_inputs(ops: dict[Any, Node], options: dict[str, Any]) -> Node:
    """Arranges ops by their inputs: below each op those that it reads or waits for, each op once, from the ends of the graph."""
    root = Node(ROOT, [SCOPE])
    before = {op: [*(tensor.op for tensor in op.inputs), *op.control_inputs] for op in ops}
    read = {id(each) for each_before in before.values() for each in each_before}
    ends = sorted((op for op in ops if id(op) not in read), key=lambda op: op.name)
    seen: set[int] = set()
    waiting = [(op, root) for op in reversed(ends)]
    while waiting:
        op, parent = waiting.pop()
        if id(op) in seen or op not in ops:
            continue
        seen.add(id(op))
        parent.children.append(ops[op])
        waiting += [(each, ops[op]) for each in reversed(before[op])]
    root.sum_up()
    return _selected(root, options, options["account_displayed_op_only"], with_parents=False)


def by_type(ops: dict[Any, Node], options: dict[str, Any]) -> Node:
    """Adds up ops of the same type. The total of a type includes the types after it, in the order in which they are shown."""
    types: dict[str, Node] = {}
    for op, node in ops.items():
        if node.counts:
            kind = types.setdefault(op.type, Node(op.type, counts=True))
            kind.own.add(node.own)
            kind.members.append(node)
            for list_, items in ((kind.devices, node.devices or [""]), (kind.types, node.types)):
                list_ += [item for item in items if item not in list_]
    kinds = list(types.values())
    shown = [
        kind
        for kind in kinds
        if _is_shown(kind, kind.own, kind.own, options) and len(kind.members) >= options.get("min_occurrence", 0)
    ]
    if options["account_displayed_op_only"]:
        kinds = shown
    total = Numbers()
    for kind in reversed(_ordered(kinds, options, own=True)):
        total.add(kind.own)
        kind.total = Numbers(**vars(total))
        kind.members.sort(key=lambda node: node.name)
        for member in kind.members:
            member.total = member.own
    root = Node(ROOT, [SCOPE], children=_ordered(shown, options, own=True))
    root.total = total
    return root


def by_line(ops: dict[Any, Node], options: dict[str, Any]) -> Node:
    """Arranges ops by the lines of the program that made them: below each line those that it called."""
    root = Node(ROOT, [SCOPE])
    names = {op.name: op for op in ops}
    lines: dict[tuple[str, ...], Node] = {(): root}
    everything = matches(options["account_type_regexes"], "")
    for op, node in ops.items():
        if not node.counts:
            continue
        trace, frames = trace_of(op, names)
        for depth in range(1, len(trace) + 1):
            path = tuple(trace[:depth])
            if path not in lines:
                file, number, _ = frames[depth - 1]
                frame = (file, number, path[-1].rpartition(":")[2])  # the function, with its note on gradients
                lines[path] = Node(path[-1], counts=everything, frame=frame)
                lines[path[:-1]].children.append(lines[path])
        line = lines[tuple(trace)]
        if line is not root:
            line.counts = True
            line.own.add(node.own)
            line.members.append(node)
            node.total = node.own
    root.sum_up()
    return _selected(root, options, only_shown=False, by_totals=True)
