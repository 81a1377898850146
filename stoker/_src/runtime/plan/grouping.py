"""Independent ops of one kind become one instruction: the lookups of three hundred feature columns are one call.

An op takes part through its `together` facet. Most such ops are short, so what a group saves is the cost of many calls; its kernel can also
divide the members among threads.

The order of instructions with effects does not change. No instruction moves ahead of an effect that preceded it (a check must fail before
the op that relies on it), and none crosses a write or a wait (a value that was read before would have to be copied).
"""

from __future__ import annotations

import heapq
from typing import Any

from stoker._src.base.extensions import extension
from stoker._src.graph.definition import OpDefinition, Trait
from stoker._src.graph.tensor import Operation
from stoker._src.runtime.failures import explain_failure
from stoker._src.runtime.plan.instructions import EFFECTS, Instruction, Value, renumber, values_of

_FEWEST = 4  # members of a group that is worth forming
_FEWEST_SMALL = 16  # the same for ops that could be small ops instead, which need no call for each

has_small_ops = extension("stoker._src.runtime.native.small_ops") is not None


def group(instructions: list[Instruction]) -> list[Instruction]:
    """Returns the instructions with groups as one instruction each."""
    grouped: list[Instruction] = []
    segment: list[Instruction] = []
    found = False
    for each in (*instructions, None):
        if each is not None and not is_barrier(each):
            segment.append(each)
            continue
        formed = _formed(segment)
        found |= len(formed) < len(segment)
        grouped += formed
        segment = []
        if each is not None:
            grouped.append(each)
    if not found:
        return instructions
    renumber(grouped)
    return grouped


def is_barrier(instruction: Instruction) -> bool:
    return bool(instruction.traits & (Trait.WRITES | Trait.BLOCKING) or instruction.steps)


def is_effect(instruction: Instruction) -> bool:
    return instruction.kind != "read" and bool(instruction.traits & EFFECTS)


def _key(instruction: Instruction) -> Any:
    """What the members of a group have in common; None for an instruction that stays alone."""
    op = instruction.op
    if op is None or instruction.kind != "kernel" or instruction.traits & EFFECTS:
        return None
    together = op.definition.planning.together
    if together is None or instruction.kernel is not op.definition.kernel_fn or instruction.copied:
        return None
    key = together[0](op)
    return None if key is None else (op.definition, key)


def _fewest(definition: OpDefinition) -> int:
    return _FEWEST if definition.planning.small is None or not has_small_ops else _FEWEST_SMALL


def _formed(segment: list[Instruction]) -> list[Instruction]:
    """The instructions of a stretch without writes and waits, in an order in which groups can be formed."""
    keys = [_key(each) for each in segment]
    counts: dict[Any, int] = {}
    for key in keys:
        if key is not None:
            counts[key] = counts.get(key, 0) + 1
    keys = [key if key is not None and counts[key] >= _fewest(key[0]) else None for key in keys]
    if all(key is None for key in keys):
        return segment
    return _Schedule(segment, keys).run()


class Dependencies:
    """What the instructions of a stretch without writes and waits wait for: values, and the last effect before them."""

    def __init__(self, segment: list[Instruction]) -> None:
        self._users: list[list[int]] = [[] for _ in segment]
        self._missing = [0] * len(segment)
        makers: dict[Value, int] = {}
        effect = None
        for i, each in enumerate(segment):
            before = {makers[value] for value in values_of(each.arguments) if value in makers}
            if effect is not None:
                before.add(effect)
            for maker in before:
                self._users[maker].append(i)
            self._missing[i] = len(before)
            makers.update(dict.fromkeys(values_of(each.results), i))
            if is_effect(each):
                effect = i

    def first(self) -> list[int]:
        """Returns the instructions that wait for nothing."""
        return [i for i, missing in enumerate(self._missing) if not missing]

    def after(self, i: int) -> list[int]:
        """Notes that an instruction has run. Returns those that can run then."""
        for user in self._users[i]:
            self._missing[user] -= 1
        return [user for user in self._users[i] if not self._missing[user]]


class _Schedule:
    """Puts instructions in order: those that stay alone as soon as they can run, groups when nothing else can."""

    def __init__(self, segment: list[Instruction], keys: list[Any]) -> None:
        self._segment, self._keys = segment, keys
        self._dependencies = Dependencies(segment)
        self._left: dict[Any, int] = {}  # members of each key that have not run
        for key in keys:
            if key is not None:
                self._left[key] = self._left.get(key, 0) + 1
        self._alone: list[int] = []
        self._ready: dict[Any, list[int]] = {}

    def run(self) -> list[Instruction]:
        for i in self._dependencies.first():
            self._add(i)
        ordered: list[Instruction] = []
        while self._alone or self._ready:
            if self._alone:
                ran = [heapq.heappop(self._alone)]
                ordered.append(self._segment[ran[0]])
            else:
                # A group that is complete comes first; of several, the one that the program computes first.
                key = min(self._ready, key=lambda k: (self._left[k] - len(self._ready[k]) > 0, min(self._ready[k])))
                ran = sorted(self._ready.pop(key))
                self._left[key] -= len(ran)
                ordered += _merged([self._segment[i] for i in ran])
            for i in ran:
                for user in self._dependencies.after(i):
                    self._add(user)
        return ordered

    def _add(self, i: int) -> None:
        key = self._keys[i]
        if key is None:
            heapq.heappush(self._alone, i)
        else:
            self._ready.setdefault(key, []).append(i)


class Together:
    """The kernel of a group. If the group's own kernel cannot compute it or fails, the members run one by one, so that an error names its node."""

    def __init__(self, kernel: Any, ops: list[Operation]) -> None:
        self._kernel, self._ops = kernel, ops

    def __call__(self, rows: list[list[Any]], attributes: list[dict[str, Any]]) -> list[Any]:
        try:
            found = self._kernel(rows, attributes)
        except Exception:
            found = None
        return self._one_by_one(rows, attributes) if found is None else found

    def _one_by_one(self, rows: list[list[Any]], attributes: list[dict[str, Any]]) -> list[Any]:
        results = []
        for op, row, keywords in zip(self._ops, rows, attributes):
            kernel = op.definition.kernel_fn
            assert kernel is not None
            try:
                results += op.definition.flatten_results(kernel(*row, **keywords))
            except Exception as error:
                raise explain_failure(error, op, row) from error
        return results


def _merged(members: list[Instruction]) -> list[Instruction]:
    if len(members) < _FEWEST:
        return members
    ops = [each.op for each in members if each.op is not None]
    first = ops[0]
    assert first.definition.planning.together is not None
    rows = [each.arguments for each in members]
    results = [value for each in members for value in values_of(each.results)]
    return [
        Instruction(
            first,
            "many",
            Together(first.definition.planning.together[1], ops),
            [rows],
            {"attributes": [each.keywords for each in members]},
            results,
            traits=members[0].traits,
            members=ops,
        )
    ]
