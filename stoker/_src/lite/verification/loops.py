"""How often loops turn whose counters start, step and end with constants. A damaged one would turn for hours, or without end.

A condition is a comparison of integers, or several that must all hold. What it compares are constants and values that a turn changes by a
constant. Of all other loops nothing is known.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

_LEAST = 2**20
_CONJUNCTION = "LOGICAL_AND"
_DEPTH = 8


@dataclass(frozen=True)
class Counter:
    """An integer that a condition reads: before the first turn, after it, and what each further turn adds to it."""

    start: int
    second: int
    step: int


class Subgraph:
    """What the checks of loops look up in a subgraph.

    Args:
        inputs: the numbers of its inputs.
        outputs: the numbers of its outputs.
        made: the operator that makes a tensor: its name, and the numbers of its arguments.
        constant: gives the value of a tensor that is a constant of integers, or None.
        elements: the elements of the largest tensor, or infinity where one has an open size.
    """

    def __init__(
        self,
        inputs: list[int],
        outputs: list[int],
        made: dict[int, tuple[str, list[int]]],
        constant: Callable[[int], list[int] | None],
        elements: float,
    ) -> None:
        self.inputs, self.outputs, self.made, self.elements = inputs, outputs, made, elements
        self._constant = constant

    def scalar(self, tensor: int) -> int | None:
        value = self._constant(tensor)
        return value[0] if value is not None and len(value) == 1 else None

    def sum(self, tensor: int, depth: int = 0) -> tuple[int | None, int, int] | None:
        """A tensor as a multiple of an input, plus a constant: (place of the input or None, factor, constant). None for other tensors."""
        value = self.scalar(tensor)
        if value is not None:
            return None, 0, value
        if tensor in self.inputs:
            return self.inputs.index(tensor), 1, 0
        name, arguments = self.made.get(tensor, ("", []))
        if name == "RESHAPE" and arguments and depth <= _DEPTH:
            return self.sum(arguments[0], depth + 1)
        if name not in ("ADD", "SUB") or len(arguments) != 2 or depth > _DEPTH:
            return None
        left, right = (self.sum(each, depth + 1) for each in arguments)
        if left is None or right is None or (None not in (left[0], right[0]) and left[0] != right[0]):
            return None
        sign = -1 if name == "SUB" else 1
        factor = left[1] + sign * right[1]
        place = right[0] if left[0] is None else left[0]
        return place if factor else None, factor, left[2] + sign * right[2]

    def comparisons(self, tensor: int, depth: int = 0) -> list[tuple[str, list[int]]]:
        """What must all hold for a tensor to be true."""
        name, arguments = self.made.get(tensor, ("", []))
        if name == _CONJUNCTION and depth <= _DEPTH:
            return [each for argument in arguments for each in self.comparisons(argument, depth + 1)]
        return [(name, arguments)]


def loop_problem(outer: Subgraph, arguments: list[int], condition: Subgraph, body: Subgraph) -> str:
    """Why a loop cannot be meant, or "". Millions of turns are fine if a tensor that the loop reads or makes has as many elements."""
    if len(condition.outputs) != 1 or not len(arguments) == len(condition.inputs) == len(body.outputs):
        return ""
    turns = math.inf
    for name, compared in condition.comparisons(condition.outputs[0]):
        counters = [_counter(each, outer, arguments, condition, body) for each in compared]
        bound = _turns(name, [each for each in counters if each is not None])
        if bound is None:
            return ""
        turns = min(turns, bound)
    if math.isinf(turns):
        return "its loop never ends"
    most = max(_LEAST, outer.elements, condition.elements, body.elements)
    return "" if turns <= most else f"its loop ends after {turns:.0f} turns, and its tensors are small"


def _counter(tensor: int, outer: Subgraph, arguments: list[int], condition: Subgraph, body: Subgraph) -> Counter | None:
    compared = condition.sum(tensor)
    if compared is None:
        return None
    place, factor, more = compared
    if place is None:
        return Counter(more, more, 0)
    start, following = outer.scalar(arguments[place]), body.sum(body.outputs[place])
    if start is None or following is None or factor != 1:
        return None
    source, times, step = following
    if source is None:
        return Counter(start + more, step + more, 0)
    if source == place and times * start + step == start:
        return Counter(start + more, start + more, 0)
    return Counter(start + more, start + step + more, step) if source == place and times == 1 else None


def _turns(name: str, counters: list[Counter]) -> float | None:
    """After how many turns a comparison does not hold. None if that, or what it compares, is not known."""
    if name not in _HOLDS or len(counters) != 2:
        return None
    first, second = counters
    if not _HOLDS[name](first.start - second.start):
        return 0
    distance, step = first.second - second.second, first.step - second.step
    if not _HOLDS[name](distance):
        return 1
    # The comparison holds at least until the distance is zero, or passes it.
    if name == "EQUAL":
        return 2 if step else math.inf
    if name == "NOT_EQUAL":
        return 1 - distance // step if step and distance % step == 0 and distance * step < 0 else math.inf
    if distance == 0:
        return math.inf if _HOLDS[name](step) else 2
    if distance * step >= 0:
        return math.inf
    turns = 1 + -(-abs(distance) // abs(step))
    return turns + 1 if _HOLDS[name](0) and distance % step == 0 else turns


_HOLDS: dict[str, Callable[[int], bool]] = {
    "LESS": lambda distance: distance < 0,
    "LESS_EQUAL": lambda distance: distance <= 0,
    "GREATER": lambda distance: distance > 0,
    "GREATER_EQUAL": lambda distance: distance >= 0,
    "EQUAL": lambda distance: distance == 0,
    "NOT_EQUAL": lambda distance: distance != 0,
}
