"""Reorders instructions to compute the same result with less work, where op definitions allow an exchange."""

from __future__ import annotations

from collections import Counter

from stoker._src.runtime.plan.instructions import Instruction, Value, renumber, values_of


def reorder(instructions: list[Instruction], results: list[Value | None]) -> list[Instruction]:
    """Returns the reordered instructions of a plan. `results` are the values that the plan returns.

    If an op is the only consumer of its input, it may run before the op that produces the input (`definition.planning.exchanges`).
    """
    makers = {value: each for each in instructions for value in values_of(each.results)}
    uses = Counter(value for each in instructions for value in values_of(each.arguments))
    uses.update(value for value in results if value is not None)
    after: dict[int, Instruction] = {}
    for each in instructions:
        made = (
            each.arguments[0]
            if each.kind == "kernel" and each.op is not None and each.op.definition.planning.exchanges
            else None
        )
        maker = makers.get(made) if made is not None and uses[made] == 1 else None
        if maker is None or maker.kind != "kernel":
            continue
        assert each.op is not None and maker.op is not None and made is not None
        rule = each.op.definition.planning.exchanges.get(maker.op.definition)
        taken = None if rule is None else rule(each.op, maker.op)
        if taken is None or not all(_is_made(maker, position, makers) for position in taken[1:]):
            continue
        (result,) = each.results
        each.arguments, each.results = [maker.arguments[position] for position in taken], [made]
        maker.arguments[taken[0]], maker.results = made, [result]
        made.label, result.label = result.label, made.label  # labels follow the ops that produce the values
        after[id(each)] = maker
    if not after:
        return instructions
    moved = {id(maker) for maker in after.values()}
    ordered = [
        instruction
        for each in instructions
        if id(each) not in moved
        for instruction in (each, after.get(id(each)))
        if instruction is not None
    ]
    renumber(ordered)
    return ordered


def _is_made(instruction: Instruction, position: int, makers: dict[Value, Instruction]) -> bool:
    """Whether an argument is computed as in the graph, rather than fed."""
    made_by = makers.get(instruction.arguments[position])
    return made_by is not None and instruction.op is not None and made_by.op is instruction.op.inputs[position].op
