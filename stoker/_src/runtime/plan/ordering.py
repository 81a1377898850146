"""The order in which the ops of a run are planned."""

from __future__ import annotations

from stoker._src.base import dtypes
from stoker._src.graph.planning import Trait
from stoker._src.graph.tensor import Operation, Tensor


def is_handle(tensor: Tensor) -> bool:
    """Whether a tensor stands for a variable or another resource."""
    return tensor.dtype._is_ref_dtype or tensor.dtype is dtypes.resource


def updates_last(ordered: list[Operation], feeds: set[Tensor]) -> list[Operation]:
    """Returns the ops with updates of variables, and what follows from them, after all others.

    TensorFlow runs an op as soon as its inputs are there. The summary of a variable is therefore made of the value before the training
    step of the same run, although the order of the two is not defined. An update counts if it is computed from variables, feeds
    or queues; initializers and counters, which TensorFlow could run at once, keep their places.

    If the program itself says when a variable is read, by a control dependency on something else than the updates before it (a lock,
    for example), all ops stay in creation order.
    """
    computed: set[Operation] = set()  # depend on variables, feeds or queues
    late: set[Operation] = set()
    updated: set[Tensor] = set()  # the handles of variables that late ops use
    for op in ordered:
        before = [*(tensor.op for tensor in op._inputs if tensor not in feeds), *op._control_inputs]
        if not late.isdisjoint(before):
            late.add(op)
            updated.update(filter(is_handle, op._inputs))
            continue
        if op._control_inputs and not updated.isdisjoint(op._inputs):
            return ordered
        is_computed = any(tensor in feeds for tensor in op._inputs) or not computed.isdisjoint(before)
        if op.definition.traits & Trait.WRITES:
            if is_computed:
                late.add(op)
                updated.update(filter(is_handle, op._inputs))
        elif is_computed or op.definition.traits & (Trait.READS | Trait.BLOCKING) or any(map(is_handle, op._inputs)):
            computed.add(op)
    return [op for op in ordered if op not in late] + [op for op in ordered if op in late] if late else ordered
