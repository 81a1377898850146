"""Computes equal values once, and removes instructions whose results nothing uses.

Programs often compute the same thing twice: every layer of feature columns hashes the strings of its own columns, and the gradients of
broadcasting terms sum the same values for each term. A float that is computed twice may be meant to be: recomputing an activation saves
the memory that keeping it would take. Floats are therefore shared only if they are few, or if the first of the equal values is still
in use, or was a few instructions before and the second waits for nothing but its inputs (as the gradient of a lookup that several ops take).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import torch

from stoker._src.base import dtypes
from stoker._src.base.shapes import Shape
from stoker._src.graph.definition import OpDefinition
from stoker._src.graph.tensor import Operation, Tensor
from stoker._src.runtime.plan.instructions import EFFECTS, Host, Instruction, Value, renumber, values_of, with_values

_SMALL = 1 << 16  # elements of a constant that is compared with another
_FEW = 1 << 14  # floats that need not be in use to be kept
_NEAR = 16  # instructions since the last use of more floats that are kept


def share(
    instructions: list[Instruction],
    results: list[Value | None],
    targets: set[Operation],
    shape_of: Callable[[Tensor], Shape],
    *,
    replaced: bool,
) -> list[Instruction]:
    """Returns the instructions that remain. `results` are the values that the plan returns, and `targets` the ops it must run.

    `replaced` tells whether values were replaced before, so that some instructions may be of no use.
    """
    equal = equal_values(instructions, {value for value in results if value is not None}, shape_of)
    if equal:
        for instruction in instructions:
            instruction.arguments = with_values(instruction.arguments, equal)
    elif not replaced:
        return instructions
    kept = _used(instructions, results, targets)
    renumber(kept)
    return kept


def equal_values(
    instructions: list[Instruction], fetched: set[Value], shape_of: Callable[[Tensor], Shape]
) -> dict[Value, Value]:
    """Returns for each value that is computed again the value that was computed first. Values in `fetched` are not among them."""
    equal: dict[Value, Value] = {}
    seen: dict[Any, list[Instruction]] = {}
    last_uses = {value: at for at, each in enumerate(instructions) for value in values_of(each.arguments)}
    last_uses.update(dict.fromkeys(fetched, len(instructions)))
    for at, instruction in enumerate(instructions):
        if not _is_sharable(instruction):
            continue
        assert instruction.op is not None
        arguments = with_values(instruction.arguments, equal) if equal else instruction.arguments
        definition = instruction.op.definition
        ids = [id(value) for value in values_of(arguments) if not value.is_constant]
        key = (definition, *(sorted(ids) if definition.planning.symmetric else ids))
        earlier = seen.setdefault(key, [])
        since = at - (0 if instruction.op._control_inputs else _NEAR)
        for other in earlier:
            made, first = list(values_of(instruction.results)), list(values_of(other.results))
            if (
                _same_inputs(definition, arguments, with_values(other.arguments, equal))
                and _attributes(instruction.op) == _attributes(other.op)
                and fetched.isdisjoint(made)
                and all(
                    _is_data(tensor.dtype) or _is_small(shape_of(tensor)) or last_uses.get(value, -1) > since
                    for tensor, value in zip(instruction.op.outputs, first)
                )
            ):
                equal.update(zip(made, first))
                for value, again in zip(first, made):
                    last_uses[value] = max(last_uses.get(value, -1), last_uses.get(again, -1))
                break
        else:
            earlier.append(instruction)
    return equal


def _is_sharable(instruction: Instruction) -> bool:
    op = instruction.op
    if op is None or instruction.kind != "kernel" or instruction.steps or instruction.traits & EFFECTS:
        return False
    definition = op.definition
    if definition.needs_context or definition.planning.keeps or not instruction.results:
        return False
    if any(value.handle for value in values_of(instruction.arguments)):
        return False
    return all(_is_data(tensor.dtype) or tensor.dtype.is_floating for tensor in op.outputs)


def _is_data(dtype: Any) -> bool:
    return dtype is dtypes.string or dtype.is_integer or dtype.is_bool


def _is_small(shape: Shape) -> bool:
    return shape.size is not None and shape.size <= _FEW


def _attributes(op: Any) -> list[tuple[str, str]]:
    return sorted((name, repr(value)) for name, value in op.attrs.items() if name[0] != "_")


def _same_inputs(definition: OpDefinition, left: Any, right: Any) -> bool:
    """Whether two ops of a kind have the same inputs, in the same order or one that does not matter."""
    return _same(left, right) or (definition.planning.symmetric and _same(left[::-1], right))


def _same(left: Any, right: Any) -> bool:
    """Whether two lists of arguments have the same values."""
    if isinstance(left, list) or isinstance(right, list):
        return (
            isinstance(left, list)
            and isinstance(right, list)
            and len(left) == len(right)
            and all(_same(a, b) for a, b in zip(left, right))
        )
    if isinstance(left, Host) and isinstance(right, Host):
        left, right = left.value, right.value
    if left is right:
        return True
    if not (isinstance(left, Value) and isinstance(right, Value) and left.is_constant and right.is_constant):
        return False
    return left.constant is right.constant or _same_constant(left.constant, right.constant)


def _same_constant(left: Any, right: Any) -> bool:
    if isinstance(left, torch.Tensor) and isinstance(right, torch.Tensor):
        alike = left.dtype is right.dtype and left.shape == right.shape and left.device == right.device
        if not alike or left.numel() > _SMALL or not torch.equal(left, right):
            return False
        # A floating-point 0 equals -0, but results may differ.
        return not left.dtype.is_floating_point or torch.equal(left.signbit(), right.signbit())
    if isinstance(left, np.ndarray) and isinstance(right, np.ndarray):
        alike = left.dtype == right.dtype == object and left.shape == right.shape and left.size <= _SMALL
        return alike and left.tolist() == right.tolist()
    return False


def _used(instructions: list[Instruction], results: list[Value | None], targets: set[Operation]) -> list[Instruction]:
    needed = {value for value in results if value is not None}
    kept = []
    for instruction in reversed(instructions):
        made = list(values_of(instruction.results))
        pure = instruction.kind == "read" or not instruction.traits & EFFECTS
        must_run = not pure or not made or bool(instruction.steps) or instruction.op in targets
        if must_run or not needed.isdisjoint(made):
            needed.update(values_of(instruction.arguments))
            kept.append(instruction)
    kept.reverse()
    return kept
