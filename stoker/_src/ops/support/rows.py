"""Ops over many rows at once: what is one node for a record becomes one node for a stack of records.

`over_rows` rewrites a node whose inputs have got one more dimension in front. An elementwise op stays as it is, up to
broadcasting; other ops say at their definition (`OpDefinition.rows`) what they become.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from stoker._src.graph import context, shape_rules
from stoker._src.graph.planning import Trait
from stoker._src.graph.static_values import constant_value
from stoker._src.graph.tensor import Operation, Tensor

_EFFECTS = Trait.STATEFUL | Trait.READS | Trait.WRITES | Trait.BLOCKING | Trait.RETAINS | Trait.SOURCE


class Input(NamedTuple):
    """An input of a node: a stack of rows, or one value for all of them."""

    tensor: Tensor
    stacked: bool
    rank: int | None  # of a row, or of the value


def over_rows(op: Operation, inputs: list[Input]) -> list[Tensor] | None:
    """The stacked outputs of `op` for stacked inputs, as nodes of the current graph; None where there is no way."""
    definition = op.definition
    if definition.traits & _EFFECTS or op._control_inputs:
        return None
    if definition.planning.rows is not None:
        return definition.planning.rows(op, inputs)
    rule = definition.shape_rule.function
    if rule is shape_rules.unchanged and len(inputs) == 1:
        return again(op, [inputs[0].tensor])
    if rule is shape_rules.broadcasting:
        return _broadcast(op, inputs)
    return None


def again(op: Operation, inputs: list[Tensor], **attrs: Any) -> list[Tensor]:
    """A node like `op` in the current graph, with other inputs and some attributes changed."""
    graph = context.get_default_graph()
    kept = {name: value for name, value in op.attrs.items() if not name.startswith("_")}
    made = graph.add(op.definition, inputs, {**kept, **attrs}, graph.op_name(None, op.definition.name))
    return list(made.outputs)


def whole(op: Operation, inputs: list[Input]) -> list[Tensor] | None:
    """For ops that take a vector as well as a scalar: only the first input may be rows, and a row is a scalar."""
    if inputs[0].rank != 0 or any(each.stacked for each in inputs[1:]):
        return None
    return again(op, [each.tensor for each in inputs])


def numbers(each: Input) -> np.ndarray | None:
    """The value of an input that is the same for all rows, if it is known."""
    return None if each.stacked else constant_value(each.tensor)


def _broadcast(op: Operation, inputs: list[Input]) -> list[Tensor] | None:
    """Rows against rows of the same rank, or against a value of no higher rank, broadcast as single rows do."""
    ranks = [each.rank for each in inputs]
    if None in ranks:
        return None
    highest = max(rank for rank in ranks if rank is not None)
    if any(each.stacked and each.rank != highest for each in inputs):
        return None
    return again(op, [each.tensor for each in inputs])
