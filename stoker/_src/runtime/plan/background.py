"""Ops that wait for other processes run while the step goes on: an all-reduce of gradients during the rest of the backward pass.

An op with a `background` facet becomes two instructions. The first one starts it, right after its input has been computed. The second one waits
for it, right before its result is used. Several ops of one kind share both instructions, because one large message takes less time than many
small ones. A message is full with `_BUCKET` bytes, so that it can leave before the last gradient is there.

All processes must start the same messages in the same order, even if their plans differ, for example because the last batch of one of them is
smaller. Messages and their order therefore depend only on the graph: on the ops' keys and static shapes, and on the order of creation.
"""

from __future__ import annotations

from typing import Any

from stoker._src.graph.tensor import Operation
from stoker._src.runtime.plan.instructions import EFFECTS, Instruction, Value, renumber, values_of

_BUCKET = 4 << 20  # bytes of a message


def completions(instructions: list[Instruction]) -> dict[int, set[Value]]:
    """Returns the inputs of each message by the index of the instruction after which all of them have been computed."""
    waiting = _waiting(instructions)
    if not waiting:
        return {}
    makers = {value: index for index, each in enumerate(instructions) for value in values_of(each.results)}
    found: dict[int, set[Value]] = {}
    for bucket in _buckets(waiting):
        inputs = {value for index in bucket for value in values_of(waiting[index].arguments) if value in makers}
        if inputs:
            found.setdefault(max(makers[value] for value in inputs), set()).update(inputs)
    return found


def split(instructions: list[Instruction]) -> list[Instruction]:
    """Returns the instructions of a plan with its background ops in two halves."""
    waiting = _waiting(instructions)
    if not waiting:
        return instructions
    makers = {value: index for index, each in enumerate(instructions) for value in values_of(each.results)}
    uses: dict[Value, int] = {}
    for index, each in reversed(list(enumerate(instructions))):
        uses.update(dict.fromkeys(values_of(each.arguments), index))
    effects = [i for i, each in enumerate(instructions) if each.traits & EFFECTS and i not in waiting]
    begins: dict[int, list[Instruction]] = {}  # index -> what starts after that instruction
    finishes: dict[int, list[Instruction]] = {}  # index -> what is waited for before that instruction
    earliest = -1
    for bucket in _buckets(waiting):
        begin, finish = _halves([waiting[index] for index in bucket])
        # A message leaves after the one that precedes it, and after what its ops have control edges from.
        earliest = max(earliest, *(makers.get(value, -1) for value in values_of(begin.arguments)), -1)
        if any(waiting[index].op._control_inputs for index in bucket):  # type: ignore[union-attr]
            earliest = max(earliest, *(i for i in effects if i < max(bucket)), -1)
        begins.setdefault(earliest, []).append(begin)
        # What has an effect later may have a control edge from the ops.
        needed = [uses[value] for value in values_of(finish.results) if value in uses]
        needed += [i for i in effects if i > max(bucket)][:1]
        finishes.setdefault(min(needed, default=len(instructions)), []).append(finish)
    result = list(begins.get(-1, ()))
    for index, each in enumerate(instructions):
        result += finishes.get(index, ())
        if index not in waiting:
            result.append(each)
        result += begins.get(index, ())
    result += finishes.get(len(instructions), ())
    renumber(result)
    return result


def _waiting(instructions: list[Instruction]) -> dict[int, Instruction]:
    return {index: each for index, each in enumerate(instructions) if _is_background(each)}


def _is_background(instruction: Instruction) -> bool:
    op = instruction.op
    return instruction.kind == "kernel" and op is not None and op.definition.planning.background is not None


def _key(op: Operation) -> Any:
    assert op.definition.planning.background is not None
    key = op.definition.planning.background[0](op)
    return op if key is None else (op.definition, key)


def _bytes(op: Operation) -> int:
    output = op.outputs[0]
    return (output.static_shape.size or 0) * output.dtype.size


def _buckets(waiting: dict[int, Instruction]) -> list[list[int]]:
    """Groups the indices of the ops of one message. Messages are in the order in which their first inputs were created."""
    kinds: dict[Any, list[tuple[int, int, Operation]]] = {}
    for index, instruction in waiting.items():
        op = instruction.op
        assert op is not None
        made = op._inputs[0].op._id if op._inputs else op._id
        kinds.setdefault(_key(op), []).append((made, index, op))
    # Ops of one kind were created together. Kinds follow each other in the order of creation.
    buckets = []
    for members in sorted(kinds.values(), key=lambda each: min(op._id for _, _, op in each)):
        size, bucket = 0, []
        for _, index, op in sorted(members, key=lambda each: (each[0], each[2]._id)):
            bucket.append(index)
            size += _bytes(op)
            if size >= _BUCKET:
                buckets.append(bucket)
                size, bucket = 0, []
        buckets += [bucket] if bucket else []
    return buckets


def _halves(members: list[Instruction]) -> tuple[Instruction, Instruction]:
    first = members[0]
    assert first.op is not None and first.op.definition.planning.background is not None
    _, start, finish = first.op.definition.planning.background
    ops = [each.op for each in members if each.op is not None]
    started = Value(f"started_{first.op._id}", -1)
    inputs = [each.arguments[0] for each in members if each.arguments]
    results = [value for each in members for value in values_of(each.results)]
    return (
        Instruction(first.op, "begin", start, [inputs], first.keywords, [started], traits=first.traits, members=ops),
        Instruction(first.op, "finish", finish, [started], {}, results, traits=first.traits, members=ops),
    )
