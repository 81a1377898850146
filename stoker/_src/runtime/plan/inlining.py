"""Branches whose condition is known when planning: the ops of the chosen function become part of the plan.

A condition is known if it follows from constants, from sizes, or from a flag that is fed, such as `training` (by_shape.py compiles a step for each
of its values). What the ops of the branch compute then fuses with what is around them, and nothing is called.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from stoker._src.base import dtypes
from stoker._src.base.depth import Level
from stoker._src.graph.definition import Trait
from stoker._src.graph.function_graph import Function
from stoker._src.graph.tensor import Operation, Tensor
from stoker._src.ops.support.values import host_value
from stoker._src.runtime.plan.instructions import Host, Value
from stoker._src.runtime.plan.one_sided import find_guards
from stoker._src.runtime.plan.pruning import in_order, prune

if TYPE_CHECKING:
    from stoker._src.runtime.plan.planner import Planner


def flags_of(fetches: list[Tensor], targets: list[Operation], feeds: list[Tensor]) -> list[int]:
    """The positions of the feeds that may decide about branches: booleans without dimensions, if there are branches."""
    flags = [
        i for i, tensor in enumerate(feeds) if tensor.dtype is dtypes.bool_ and tensor.static_shape.rank in (None, 0)
    ]
    if not flags:
        return []
    needed, _ = prune(fetches, targets, set(feeds))
    return flags if any(op.definition.planning.chooses is not None for op in needed) else []


class Inlining:
    """The functions that are parts of one plan."""

    def __init__(self, planner: Planner) -> None:
        self._planner = planner
        self._functions: set[Function] = set()
        self._parts: dict[Operation, list[Operation]] = {}  # the ops that were planned in place of each call

    def parts(self, op: Operation) -> list[Operation]:
        """The ops that were planned in place of a call, and in place of those."""
        found = self._parts.get(op, [])
        return [*found, *(part for each in found for part in self.parts(each))]

    def plan(self, op: Operation, condition: Value | Host, passed: list[Value], wanted: list[bool]) -> bool:
        """Plans the ops of the function that a known condition chooses. Returns False if it must be called."""
        planner = self._planner
        choose = op.definition.planning.chooses
        compiler = planner.compile_function
        value = condition.value if isinstance(condition, Host) else condition
        if choose is None or not value.is_constant or compiler.placement.gpu is not None:
            return False
        if not planner.with_fused_loops or compiler.precision is not None:
            return False
        ref = choose(op, host_value(value.constant) if isinstance(condition, Host) else value.constant)
        function = compiler.checked(op, ref)
        if function in self._functions:
            return False  # its tensors have the values of the first call
        outputs = [tensor for tensor, use in zip(function.outputs, wanted) if use]
        inputs = set(function.inputs)
        targets = compiler.targets(function, wanted)
        needed, waited_for = prune(outputs, targets, inputs)
        ordered = in_order(needed | waited_for, inputs)
        if any(each.definition.traits & Trait.BLOCKING for each in ordered) or find_guards(ordered, inputs):
            return False
        self._functions.add(function)
        self._parts[op] = [each for each in ordered if each in needed]
        for tensor, outer, given in zip(function.inputs, op._inputs[len(op._inputs) - len(passed) :], passed):
            planner.values[tensor] = given
            planner.note(tensor, planner.known(outer))
        with Level():
            planner.plan_part(ordered, needed, outputs)
        for tensor, outer, use in zip(function.outputs, op.outputs, wanted):
            if use:
                planner.values.setdefault(outer, planner.taken(tensor, reference=False))
                planner.note(outer, planner.known(tensor))
            else:
                planner.settle_one(outer, None)  # other calls may be given it, which do not use it
        return True
