"""Tensors whose first size depends on data, padded to the largest size they can have.

A recorded step (cuda_graphs.py) has fixed shapes, but the number of distinct rows that a sparse gradient updates differs from step to step.
In a plan that pads, an op with the facet `pads` returns as many rows as it is given, and the ones that are too many have the
index -1. Lookups of such an index give zeros, and updates skip it. `padded_outputs` says which ops may take padded tensors: the rows
that count must not depend on the other rows, or on their number.

The largest size may itself be known only when the step is recorded (a list of what a loop has looked up). `ALL` sizes are then padded, if every op that
takes them can, else those whose largest size is `KNOWN`.
"""

from __future__ import annotations

from collections.abc import Callable

from stoker._src.base.shapes import Shape
from stoker._src.graph import shape_rules
from stoker._src.graph.definition import Trait
from stoker._src.graph.tensor import Operation, Tensor
from stoker._src.runtime.plan.instructions import EFFECTS

ALL, KNOWN = "all", "known"


class CannotPad(Exception):
    """An op takes a padded tensor whose padding would change its result."""


def padded_outputs(op: Operation, padded: list[bool], shape_of: Callable[[Tensor], Shape]) -> list[bool] | None:
    """Returns which outputs of an op are padded if the given inputs are; None if the op cannot take padded inputs."""
    definition = op.definition
    if definition.planning.padded is not None:
        return definition.planning.padded(op, padded, shape_of)
    if definition.traits & Trait.OF_SHAPES:
        return [True] * len(op.outputs)  # sizes, which also only padded tensors may have
    if definition.traits & EFFECTS or definition.planning.calls:
        return None
    if definition.shape_rule.function not in (shape_rules.unchanged, shape_rules.broadcasting):
        return None
    ranks = [shape_of(tensor).rank for tensor in op._inputs]
    known = [rank for rank in ranks if rank is not None]
    if len(known) < len(ranks) or any(flag and rank < max(known) for flag, rank in zip(padded, known)):
        return None
    return [True] * len(op.outputs)
