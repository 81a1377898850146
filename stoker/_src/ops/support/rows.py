"""Vectorization: a node for one record becomes a node for a batch of records.

`over_rows` rewrites a node whose inputs have an additional leading dimension. An elementwise op stays the same, apart from
broadcasting. Other ops declare their batched form in their definition (`OpDefinition.rows`). Rows of different lengths are one after the
other in a tensor, beside their lengths; what such rows need is declared by `OpDefinition.ragged_rows`.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from stoker._src.graph import context, shape_rules
from stoker._src.graph.late_binding import ops
from stoker._src.graph.planning import Trait
from stoker._src.graph.static_values import constant_value
from stoker._src.graph.tensor import Operation, Tensor

_EFFECTS = Trait.STATEFUL | Trait.READS | Trait.WRITES | Trait.BLOCKING | Trait.RETAINS | Trait.SOURCE


class Input(NamedTuple):
    """An input of a node: a batch of rows, or one value for all rows."""

    tensor: Tensor
    stacked: bool
    rank: int | None  # the rank of a row, or of the value
    lengths: Tensor | None = None  # int64, how many elements of `tensor` are each row's, if rows differ in length


def over_rows(op: Operation, inputs: list[Input]) -> list[Any] | None:
    """The batched outputs of `op` for batched inputs, as nodes of the current graph; None if the op cannot be batched.

    An output is a tensor, or an `Input` with lengths.
    """
    definition = op.definition
    if any(each.lengths is not None for each in inputs):
        return _over_ragged_rows(op, inputs)
    if definition.planning.rows is not None:
        return definition.planning.rows(op, inputs)
    if definition.traits & _EFFECTS:
        return None
    rule = definition.shape_rule.function
    if rule is shape_rules.unchanged and len(inputs) == 1:
        return again(op, [inputs[0].tensor])
    if rule is shape_rules.broadcasting:
        return broadcast(op, inputs)
    return None


def _over_ragged_rows(op: Operation, inputs: list[Input]) -> list[Any] | None:
    definition = op.definition
    if definition.planning.ragged_rows is not None:
        return definition.planning.ragged_rows(op, inputs)
    if definition.traits & _EFFECTS:
        return None
    rule = definition.shape_rule.function
    if (rule is shape_rules.unchanged and len(inputs) == 1) or rule is shape_rules.broadcasting:
        return elements(op, inputs)
    return None


def elements(op: Operation, inputs: list[Input]) -> list[Any] | None:
    """For ops that work element by element on rows of the same lengths, and on single values for all rows."""
    ragged = [each for each in inputs if each.lengths is not None]
    first = ragged[0]
    if any(each.lengths is not first.lengths or each.rank != first.rank for each in ragged):
        return None
    if any(each.lengths is None and (each.stacked or each.rank != 0) for each in inputs):
        return None
    return [Input(made, True, first.rank, first.lengths) for made in again(op, [each.tensor for each in inputs])]


def again(op: Operation, inputs: list[Tensor], **attrs: Any) -> list[Tensor]:
    """A copy of the node `op` in the current graph, with other inputs and some attributes changed."""
    graph = context.get_default_graph()
    kept = {name: value for name, value in op.attrs.items() if not name.startswith("_")}
    made = graph.add(op.definition, inputs, {**kept, **attrs}, graph.op_name(None, op.definition.name))
    return list(made.outputs)


def whole(op: Operation, inputs: list[Input]) -> list[Tensor] | None:
    """For ops that accept a vector as well as a scalar: only the first input may be batched, and a row must be a scalar."""
    if inputs[0].rank != 0 or any(each.stacked for each in inputs[1:]):
        return None
    return again(op, [each.tensor for each in inputs])


def folded(op: Operation, inputs: list[Input]) -> list[Tensor] | None:
    """For ops whose first input and output are batches already: the rows' batches are one large batch."""
    rank = inputs[0].rank
    shape = inputs[0].tensor.static_shape
    result = op.outputs[0].static_shape
    if not rank or not inputs[0].stacked or any(each.stacked for each in inputs[1:]):
        return None
    if shape.dims is None or shape.dims[1] is None or not result.known:
        return None
    if None in shape.dims[2:]:
        sizes = ops.shape(inputs[0].tensor)
        merged = ops.reshape(inputs[0].tensor, ops.concat([sizes[:1] * shape.dims[1], sizes[2:]], 0))
    else:
        merged = ops.reshape(inputs[0].tensor, [-1, *shape.dims[2:]])
    return [ops.reshape(made, [-1, *result]) for made in again(op, [merged, *(each.tensor for each in inputs[1:])])]


def numbers(each: Input) -> np.ndarray | None:
    """The static value of an input that is the same for all rows."""
    return None if each.stacked else constant_value(each.tensor)


def broadcast(op: Operation, inputs: list[Input]) -> list[Tensor] | None:
    """Rows of lower rank than others get dimensions behind that of the stack, where single rows would get them in front."""
    ranks = [each.rank for each in inputs if each.rank is not None]
    if len(ranks) != len(inputs):
        return None
    tensors = []
    for each, rank in zip(inputs, ranks):
        tensor = each.tensor
        for _ in range(max(ranks) - rank if each.stacked else 0):
            tensor = ops.expand_dims(tensor, 1)
        tensors.append(tensor)
    return again(op, tensors)
