"""Nodes on one side of a Switch: they run only if their side is taken.

The guards of such a node are the outputs of Switch nodes that it depends on, by data or by control edges. Its instruction takes them as a last
argument and does nothing if one of them is dead.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from stoker._src.base.errors import InvalidArgumentError
from stoker._src.graph.tensor import Operation, Tensor
from stoker._src.ops.control_flow.switches import DEAD
from stoker._src.ops.support.values import host_value

Guards = dict[Operation, tuple[Tensor, ...]]


def find_guards(ordered: list[Operation], fed: set[Tensor]) -> Guards:
    """Returns the guards of the ops that have any. `ordered` are the ops of a plan, each after its inputs."""
    if not any(op.definition.planning.switches for op in ordered):
        return {}
    guards: Guards = {}
    for op in ordered:
        found: dict[Tensor, None] = {}
        for tensor in op._inputs:
            if tensor not in fed:
                found.update(dict.fromkeys(guards_of(tensor, guards)))
        for control in op._control_inputs:
            found.update(dict.fromkeys(guards.get(control, ())))
        if found:
            guards[op] = tuple(found)
    return guards


def guards_of(tensor: Tensor, guards: Guards) -> tuple[Tensor, ...]:
    """Returns the outputs of Switch nodes that must be alive for a tensor to have a value."""
    before = guards.get(tensor.op, ())
    return (*before, tensor) if tensor.op.definition.planning.switches else before


def guarded(op: Operation, kernel: Callable[..., Any]) -> Callable[..., Any]:
    """Returns a kernel that takes the values of the guards as its last argument, and gives dead values if one of them is dead."""
    definition = op.definition
    hosts = [arg.host for arg in definition.inputs]
    nothing = definition.group_outputs([DEAD] * len(op.outputs), op.attrs)
    dead = None if not nothing else nothing[0] if len(nothing) == 1 else tuple(nothing)

    def run(*arguments: Any, **keywords: Any) -> Any:
        if any(guard is DEAD for guard in arguments[-1]):
            return dead
        given = [_on_host(value) if host else value for host, value in zip(hosts, arguments)]
        return kernel(*given, **keywords)

    return run


def _on_host(value: Any) -> Any:
    return [host_value(item) for item in value] if isinstance(value, list) else host_value(value)


def alive(position: int) -> Callable[..., Any]:
    """Returns the function through which a fetched value leaves a plan: it fails if the value is dead."""

    def fetched(value: Any, guards: list[Any]) -> Any:
        if any(guard is DEAD for guard in guards):
            raise InvalidArgumentError(None, None, f"Retval[{position}] does not have value")
        return value

    return fetched
