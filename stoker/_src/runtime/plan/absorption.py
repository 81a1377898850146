"""Ops that do the work of the ops behind them: a parser that hashes the strings it finds instead of returning them.

An op with an `absorbs` facet says which consumers of its outputs it can stand in for. Those consumers leave the plan, and the op's
instruction returns their results. Outputs that nothing uses any more are not computed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable
from typing import Any

from stoker._src.ops.support.values import host_value
from stoker._src.runtime.plan.instructions import EFFECTS, Host, Instruction, Value, renumber, values_of, with_values


def absorb(instructions: list[Instruction], results: list[Value | None]) -> list[Instruction]:
    """Returns the instructions that remain. `results` are the values that the plan returns."""
    takers = [each for each in instructions if _absorbs(each)]
    for taker in takers:
        instructions = _absorbed(taker, instructions, {value for value in results if value is not None})
    if takers:
        renumber(instructions)
    return instructions


def _absorbs(instruction: Instruction) -> bool:
    op = instruction.op
    return instruction.kind == "kernel" and op is not None and op.definition.planning.absorbs is not None


def _absorbed(taker: Instruction, instructions: list[Instruction], fetched: set[Value]) -> list[Instruction]:
    assert taker.op is not None and taker.op.definition.planning.absorbs is not None
    rule, make = taker.op.definition.planning.absorbs
    outputs = {value: index for index, value in enumerate(values_of(taker.results))}
    made: dict[Hashable, Value] = {}
    equal: dict[Value, Value] = {}
    gone: set[int] = set()
    for each in instructions:
        source = each.arguments[0] if each.arguments else None
        if not isinstance(source, Value) or source not in outputs or not _is_pure(each):
            continue
        others = [_known(argument) for argument in each.arguments[1:]]
        (result,) = each.results
        if result in fetched or any(other is None for other in others):
            continue
        wanted = rule(taker.op, outputs[source], each.op, others)
        if wanted is not None:
            equal[result] = made.setdefault(wanted, result)
            gone.add(id(each))
    if not gone:
        return instructions
    kept = [each for each in instructions if id(each) not in gone]
    for each in kept:
        each.arguments = with_values(each.arguments, equal)
    uses = Counter(value for each in kept for value in values_of(each.arguments))
    plain = {index: value for value, index in outputs.items() if uses[value] or value in fetched}
    wanted = [*plain, *made]
    taker.kernel = make(taker.op, wanted)
    taker.kind, taker.results = "many", [*plain.values(), *made.values()]
    return kept


def _is_pure(instruction: Instruction) -> bool:
    op = instruction.op
    return (
        instruction.kind == "kernel"
        and op is not None
        and not instruction.traits & EFFECTS
        and instruction.kernel is op.definition.kernel_fn
        and len(instruction.results) == 1
        and isinstance(instruction.results[0], Value)
    )


def _known(argument: Any) -> Any:
    """Returns an argument that is passed as plain numbers and known; None for others."""
    if isinstance(argument, Host) and argument.value.is_constant:
        return host_value(argument.value.constant)
    return None
