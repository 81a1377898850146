"""Updates of variables in fused loops: `v.assign(0.9 * v)`, `v.assign_sub(rate * m / (sqrt(s) + e))`, a moving average.

As separate instructions, the loops write the new value to memory of its own, and the update reads it again and writes the variable. An
update that joins the loops of its value changes the variable row by row, while the rows are in the cache.

That is right where the loops read no row of the variable after they have written it, and where nothing that runs in the place of the loops,
or is moved ahead of them, has to see the old or the new value. `Builder.store` and `_Runs` (fused_loops.py) check the former and
the latter. `sink` moves the ops that only compute an update's value to the update, so that no other effect stands between them.

In the body of a loop, updates of small variables join fused loops as well, so that the loop can run natively (functions/native_loops.py).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

import torch

from stoker._src.base import dtypes
from stoker._src.graph.definition import Trait
from stoker._src.ops.variables.state_ops import VariableState
from stoker._src.runtime.plan.instructions import Instruction, Value, renumber, values_of

Roots = dict[Value, frozenset[Any]]


def stored(instruction: Instruction) -> tuple[Value, VariableState, Value] | None:
    """The handle and the variable that an instruction changes element by element, and the value it does so with; None for others."""
    op = instruction.op
    if op is None or instruction.kind != "kernel" or op.definition.planning.stores is None or instruction.results:
        return None
    if instruction.kernel is not op.definition.kernel_fn:
        return None
    handle, value = instruction.arguments
    state = handle.constant
    # The first value of a variable may become the variable's own memory instead, without a copy.
    if not isinstance(state, VariableState) or not isinstance(state.value, torch.Tensor) or value.is_constant:
        return None
    return (handle, state, value) if state.dtype in (dtypes.float32, dtypes.float64) else None


def read(instruction: Instruction) -> VariableState | None:
    """The variable whose value an instruction reads; None for others."""
    op = instruction.op
    if instruction.kind != "read" and not (
        op is not None and instruction.kind == "kernel" and op.definition.planning.reads_value
    ):
        return None
    state = instruction.arguments[0].constant
    return state if isinstance(state, VariableState) else None


def without_idle_reads(instructions: list[Instruction], results: list[Value | None]) -> list[Instruction]:
    """Leaves out reads that nothing uses of variables that have been updated before (`assign_sub` returns one). They could not even fail."""
    used = {value for each in instructions for value in values_of(each.arguments)}
    used.update(value for value in results if value is not None)
    updated: set[int] = set()
    kept = []
    for each in instructions:
        found, state = stored(each), read(each)
        if found is not None:
            updated.add(id(found[1]))
        if state is None or id(state) not in updated or not used.isdisjoint(values_of(each.results)):
            kept.append(each)
    renumber(kept)
    return kept


def sink(
    instructions: list[Instruction], results: list[Value | None], is_large: Callable[[Instruction], bool | None]
) -> list[Instruction]:
    """Moves large ops that only compute the value of an update to directly before it, unless they read what is written in between."""
    if not any(stored(each) for each in instructions):
        return instructions
    makers = {value: i for i, each in enumerate(instructions) for value in values_of(each.results)}
    uses = Counter(value for each in instructions for value in values_of(each.arguments))
    uses.update(value for value in results if value is not None)
    roots = roots_of(instructions)
    last_write: dict[Any, int] = {}  # by the id of a variable's state; None for what may write any
    moved: dict[int, list[int]] = {}  # by the position of an update
    gone: set[int] = set()
    for position, each in enumerate(instructions):
        found = stored(each)
        if found is not None:
            chain: list[int] = []
            pending = [found[2]]
            while pending:
                at = makers.get(pending.pop(), -1)
                if at < 0 or at in gone or at in chain or not is_large(instructions[at]):
                    continue
                maker = instructions[at]
                read = frozenset().union(*[roots.get(value, frozenset()) for value in values_of(maker.arguments)])
                if sum(uses[value] for value in values_of(maker.results)) > 1:  # also where each of several has one use
                    continue
                if any(last_write.get(state, -1) > at for state in (None, *read)):
                    continue
                chain.append(at)
                pending += values_of(maker.arguments)
            gone.update(chain)
            moved[position] = sorted(chain)
        if each.traits & Trait.WRITES and not each.steps:
            last_write.update((id(v.constant) if v.is_constant else None, position) for v in _handles(each))
        elif each.traits & (Trait.WRITES | Trait.BLOCKING) or each.steps:
            last_write[None] = position
    ordered = [
        instructions[i]
        for position in range(len(instructions))
        if position not in gone
        for i in (*moved.get(position, ()), position)
    ]
    renumber(ordered)
    return ordered


def _handles(instruction: Instruction) -> list[Value]:
    return [value for value in values_of(instruction.arguments) if value.handle]


def roots_of(instructions: list[Instruction]) -> Roots:
    """The variables whose memory each value may share, by the ids of their states; None stands for any variable."""
    found: Roots = {}
    for each in instructions:
        if each.traits & Trait.READS:
            roots = frozenset(id(v.constant) if v.is_constant else None for v in _handles(each))
        elif each.traits & Trait.VIEW:
            roots = frozenset().union(*[found.get(value, frozenset()) for value in values_of(each.arguments)])
        else:
            continue
        found.update((value, roots) for value in values_of(each.results))
    return found


class Storing:
    """Fused loops that change variables, whose states are the inputs that are `handles`."""

    def __init__(self, program: Any, fallback: Any, handles: list[bool]) -> None:
        self.program, self._fallback = program, fallback
        self._handles = [i for i, is_handle in enumerate(handles) if is_handle]

    def given(self, arguments: list[Value]) -> list[Value | VariableState]:
        """The arguments of the program, with the variables that it changes in the places of their handles."""
        return [each.constant if i in self._handles else each for i, each in enumerate(arguments)]

    def __call__(self, *given: Any) -> tuple[Any, ...]:
        tensors = list(given)
        for i in self._handles:
            tensors[i] = given[i].value
        if all(is_writable(tensors[i]) for i in self._handles):
            return self.program(*tensors)
        return self._fallback(*given)


def is_writable(target: Any) -> bool:
    """Whether loops can change a value where it is."""
    return isinstance(target, torch.Tensor) and target.is_cpu and target.is_contiguous()
