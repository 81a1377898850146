"""Checks of the parameters of distributions."""

from __future__ import annotations

from typing import Any

from stoker._src.graph import context
from stoker._src.graph.static_values import constant_value
from stoker._src.graph.tensor import Tensor
from stoker._src.ops.control_flow import assertions, grouping
from stoker._src.ops.math import reductions


def checked(tensor: Tensor, conditions: list[tuple[Any, str]]) -> Tensor:
    """Returns `tensor` with checks that all conditions hold when it is evaluated."""
    checks = []
    for condition, message in conditions:
        whole = reductions.reduce_all(condition)
        known = constant_value(whole)
        if known is None or not bool(known):
            checks.append(assertions.assert_op(whole, [message]))
    return grouping.with_dependencies(checks, tensor) if checks and not context.executing_eagerly() else tensor
