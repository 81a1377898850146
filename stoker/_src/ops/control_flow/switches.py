"""`Switch`, the op that 1.x branches start with, for nodes of imported graphs that lead to no Merge and so become no `If`.

Only one output has a value; the other one is dead. A node that depends on a dead output does not run, and its outputs cannot be fetched. The
planner sees to that (`runtime/plan/one_sided.py`), so kernels other than this one never meet a dead value.
"""

from __future__ import annotations

from typing import Any

from stoker._src.base.shapes import Shape
from stoker._src.graph.definition import ANY, VIEW, define


class _Dead:
    """The value of an output that has none."""

    shape = ()  # for plans that are compiled for the shapes of their feeds: the ops that take a dead value only pass it on

    def __repr__(self) -> str:
        return "<dead>"


DEAD = _Dead()

SWITCH = define(
    "Switch(data: T, pred: host bool) -> (output_false: T, output_true: T)", VIEW, T=ANY
).switching()  # fmt: skip


@SWITCH.kernel
def switch_kernel(data: Any, pred: bool) -> tuple[Any, Any]:
    return (DEAD, data) if pred else (data, DEAD)


@SWITCH.shape
def switch_shape(data: Shape, pred: Shape) -> tuple[Shape, Shape]:
    pred.of_rank(0)
    return data, data


SWITCH.not_differentiable()
