"""Sums of tensors that are zeros but for a part.

A program that slices a tensor step by step (a recurrent network whose loop is written in Python) has a gradient for each slice: zeros of the size of
the tensor, into which the slice's gradient is written. Their sum would take time with the square of the number of slices. Where the
places of the parts are known (`Planning.part`), the parts are added to one tensor instead, in the same order, so that the result has the same bits
(but for the sign of a zero).
"""

from __future__ import annotations

import functools
from collections import Counter
from collections.abc import Callable
from typing import Any

import numpy as np
import torch

from stoker._src.base.shapes import Shape
from stoker._src.graph.tensor import Tensor
from stoker._src.runtime.plan.instructions import Instruction, Value, renumber, values_of

_FEWEST = 4  # parts of a sum
_WORTH_PARTS = 1 << 15  # elements of all terms together, as whole tensors
_MOST_COMPARED = 1 << 22  # elements of a sum whose parts are compared with each other


def form(
    instructions: list[Instruction], results: list[Value | None], shape_of: Callable[[Tensor], Shape], plan: Any
) -> list[Instruction]:
    """Returns the instructions of a plan, in which sums take the parts instead of the tensors that hold them."""
    sums = [each for each in instructions if _is_sum(each)]
    if not sums:
        return instructions
    makers = {value: each for each in instructions for value in values_of(each.results)}
    uses = Counter(value for each in instructions for value in values_of(each.arguments))
    uses.update(value for value in results if value is not None)
    left_out: set[int] = set()
    for each in sums:
        assert each.op is not None
        shape = shape_of(each.op.outputs[0])
        terms = each.arguments[0]
        if not shape.known or len(terms) < _FEWEST:
            continue
        found = [_part(makers.get(term), plan) if uses[term] == 1 else None for term in terms]
        parts = [term for term, part in zip(terms, found) if part is not None]
        if len(parts) < _FEWEST or len(parts) * (shape.size or 0) < _WORTH_PARTS:
            continue
        left_out.update(id(makers[term]) for term in parts)
        sizes = [int(size or 0) for size in shape]
        places = [None if part is None else part[1] for part in found]
        each.kind = "many"
        each.kernel = functools.partial(sum_of_parts, sizes, places, _cover(sizes, places))
        each.arguments = [[term if part is None else part[0] for term, part in zip(terms, found)]]
    if not left_out:
        return instructions
    kept = [each for each in instructions if id(each) not in left_out]
    renumber(kept)
    return kept


def _is_sum(instruction: Instruction) -> bool:
    op = instruction.op
    if op is None or instruction.kind != "kernel" or not op.definition.planning.is_sum:
        return False
    return instruction.kernel is op.definition.kernel_fn and op.outputs[0].dtype.is_floating


def _part(maker: Instruction | None, plan: Any) -> tuple[Value, Any] | None:
    """Returns the part of a tensor that is zeros elsewhere, and its place; None for other tensors."""
    if maker is None or maker.op is None or maker.kind != "kernel" or maker.op.definition.planning.part is None:
        return None
    found = maker.op.definition.planning.part(maker.op, plan)
    return None if found is None else (maker.arguments[found[0]], found[1])


def _cover(sizes: list[int], places: list[Any]) -> bool:
    """Whether each element of the sum belongs to exactly one part."""
    if None in places or np.prod(sizes) > _MOST_COMPARED:
        return False
    counts = np.zeros(sizes, np.int16)
    for place in places:
        counts[place] += 1
    return bool((counts == 1).all())


def sum_of_parts(sizes: list[int], places: list[Any], cover: bool, terms: list[torch.Tensor]) -> tuple[torch.Tensor]:
    """The sum of tensors (whose place is None) and of parts of such tensors."""
    if cover:
        total = terms[0].new_empty(sizes)
        for place, term in zip(places, terms):
            total[place].copy_(term)
        return (total,)
    total = terms[0].clone() if places[0] is None else terms[0].new_zeros(sizes)
    for i, (place, term) in enumerate(zip(places, terms)):
        if place is not None:
            total[place].add_(term)
        elif i:
            total.add_(term)
    return (total,)
