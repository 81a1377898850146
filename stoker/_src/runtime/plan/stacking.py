"""Rewrites a function of one record for a stack of records: an op that each record passes runs once for all of them (ops/support/rows.py)."""

from __future__ import annotations

from collections.abc import Sequence

from stoker._src.base import dtypes
from stoker._src.graph.graph import Graph
from stoker._src.graph.planning import Trait
from stoker._src.graph.static_values import constant_value
from stoker._src.graph.tensor import Tensor
from stoker._src.ops.array.constants import constant, placeholder
from stoker._src.ops.support.rows import Input, over_rows
from stoker._src.runtime.plan.pruning import prune


def over_stacks(
    given: Sequence[Tensor], wanted: Sequence[Tensor], shared: Sequence[Tensor] = ()
) -> tuple[list[Tensor], list[Tensor]] | None:
    """Rewrites the function from `given` to `wanted` for a stack of records, in a separate graph. `shared` are further inputs, which are
    the same for all records.

    Returns its results and its inputs; None if an op has no form for stacks, or has an effect.
    """
    if any(tensor.dtype in (dtypes.resource, dtypes.variant) for tensor in (*given, *shared, *wanted)):
        return None
    fed = {*given, *shared}
    needed, waited_for = prune(list(wanted), [], fed)
    if not given or waited_for:
        return None
    order = [each for each in given[0].graph.get_operations() if each in needed]
    with Graph().as_default():
        stacks = [placeholder(t.dtype, [None, *t.static_shape.dims] if t.static_shape.dims is not None else None) for t in given]  # fmt: skip
        same = [placeholder(t.dtype, t.static_shape) for t in shared]
        known = {tensor: Input(stack, True, tensor.static_shape.rank) for tensor, stack in zip(given, stacks)}
        known.update((tensor, Input(each, False, tensor.static_shape.rank)) for tensor, each in zip(shared, same))
        for op in order:
            if not any(tensor in known and known[tensor].stacked for tensor in op._inputs):
                continue  # does not depend on the record; `_constant` accepts it only as a constant
            if op.definition.traits & Trait.OF_SHAPES and constant_value(op.outputs[0]) is not None:
                continue
            inputs = [known.get(tensor) or _constant(tensor) for tensor in op._inputs]
            found = [each for each in inputs if each is not None]
            outputs = over_rows(op, found) if len(found) == len(inputs) else None
            if outputs is None:
                return None
            known.update((old, Input(new, True, old.static_shape.rank)) for old, new in zip(op.outputs, outputs))
    if not all(tensor in known and known[tensor].stacked for tensor in wanted):
        return None
    return [known[tensor].tensor for tensor in wanted], [*stacks, *same]


def _constant(tensor: Tensor) -> Input | None:
    value = constant_value(tensor)
    return None if value is None else Input(constant(value, tensor.dtype), False, tensor.static_shape.rank)
