"""Which ops a run needs, and in which order."""

from __future__ import annotations

import heapq
import weakref

from stoker._src.base.errors import InvalidArgumentError
from stoker._src.graph.definition import Trait
from stoker._src.graph.function_graph import Function
from stoker._src.graph.interchange.function_def import function_refs
from stoker._src.graph.tensor import Operation, Tensor
from stoker._src.runtime.plan.instructions import EFFECTS


def prune(
    fetches: list[Tensor], targets: list[Operation], feeds: set[Tensor], *, waits: bool = True
) -> tuple[set[Operation], set[Operation]]:
    """Returns the operations that must run, backwards from the fetches up to fed tensors, and the ones that are only waited for.

    An op that is only a control input runs if it has an effect (it writes, reads, blocks or checks). A pure op does not run; only its
    own control inputs matter. Gradients that an optimizer gates but that are never used therefore cost nothing. If `waits` is false,
    control inputs do not count at all.
    """
    needed: set[Operation] = set()
    waited_for: set[Operation] = set()
    stack = [(t.op, True) for t in fetches if t not in feeds] + [(op, True) for op in targets]
    while stack:
        op, wanted = stack.pop()
        wanted = wanted or (has_effect(op) and not _is_fed(op, feeds))
        seen = needed if wanted else waited_for
        if op in seen or op in needed:
            continue
        seen.add(op)
        for tensor in op._inputs:
            if tensor not in feeds:
                stack.append((tensor.op, wanted))
        for control in op._control_inputs if waits else ():
            stack.append((control, False))
    return needed, waited_for - needed


def _is_fed(op: Operation, feeds: set[Tensor]) -> bool:
    """Whether all outputs of an op are fed. Waiting for a fed placeholder must not run it."""
    return bool(op.outputs) and all(tensor in feeds for tensor in op.outputs)


def has_effect(op: Operation) -> bool:
    """Whether an op does more than compute its outputs. A call has the effects of the functions it calls."""
    pending, seen = [op], set()
    while pending:
        each = pending.pop()
        if each.definition.traits & EFFECTS:
            return True
        for ref in function_refs(each) if each.definition.planning.calls else ():
            function = ref.target
            if function is None:
                return True
            if function not in seen and _without_effect.get(function) != _state_of(function):
                seen.add(function)
                given = {tensor.op for tensor in function.inputs}
                pending += [inner for inner in function.needed_ops() if inner not in given]
    for function in seen:
        _without_effect[function] = _state_of(function)
    return False


# Caches functions without effects, by their state at that time. Otherwise each level of nesting would check all levels below it.
_without_effect: weakref.WeakKeyDictionary[Function, tuple[int, int]] = weakref.WeakKeyDictionary()


def _state_of(function: Function) -> tuple[int, int]:
    return function.graph.version, function.graph.changes


def in_order(ops: set[Operation], feeds: set[Tensor]) -> list[Operation]:
    """Sorts by creation order, except where an edge that was added later (a control input added by hand) requires otherwise.

    Raises:
        InvalidArgumentError: there is a cycle.
    """
    ordered = sorted(ops, key=lambda op: op._id)
    backwards = any(
        source._id >= op._id
        for op in ordered
        for source in (*(t.op for t in op._inputs if t not in feeds), *op._control_inputs)
    )
    if not backwards:
        return ordered
    waiting: dict[Operation, int] = {}
    followers: dict[Operation, list[Operation]] = {}
    for op in ordered:
        sources = ({t.op for t in op._inputs if t not in feeds} | set(op._control_inputs)) & ops
        waiting[op] = len(sources)
        for source in sources:
            followers.setdefault(source, []).append(op)
    ready = [(op._id, op) for op in ordered if waiting[op] == 0]
    heapq.heapify(ready)
    result = []
    while ready:
        _, op = heapq.heappop(ready)
        result.append(op)
        for follower in followers.get(op, ()):
            waiting[follower] -= 1
            if waiting[follower] == 0:
                heapq.heappush(ready, (follower._id, follower))
    if len(result) < len(ordered):
        stuck = next(op for op in ordered if waiting[op] > 0)
        raise InvalidArgumentError(
            None,
            stuck,
            f"The graph has a cycle through '{stuck.name}' ({len(ordered) - len(result)} nodes wait for each other).",
        )
    return result


def passed_through(tensor: Tensor) -> Tensor:
    """Returns the tensor whose value this is, skipping identities."""
    while tensor.op.definition.traits & Trait.PASSES and tensor.op._inputs:
        source = tensor.op._inputs[0]
        if source.dtype._is_ref_dtype:
            break
        tensor = source
    return tensor
