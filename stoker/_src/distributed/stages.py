"""Runs one task's part of a step in stages, so that each value leaves as early as it can.

A part waits for values of other tasks and for blocking ops (a dequeue). A stage is the set of ops that some value to send, or some
blocking op, needs before it, and that wait for the same things. A stage runs as soon as these have arrived, so a part never holds back a value
that another task needs in order to go on: no order of the stages is fixed in advance, and no two parts can wait for each other
unless the graph has a cycle. All ops without such an obligation run last, as one stage. Where values may be dead (`branches.py`), all ops
of a stage also have the same conditions, and none of them runs if one is not fulfilled.

In the typical step of a parameter server there are two: reading and sending the variables, then applying the gradients. A worker has one. Each
stage is compiled like the plan of a local session.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

from stoker._src.base import dtypes
from stoker._src.base.errors import InvalidArgumentError
from stoker._src.distributed.branches import Condition, conditions
from stoker._src.distributed.messages import detached
from stoker._src.distributed.wire_graph import WireGraph, received_by
from stoker._src.graph.definition import Trait, find_definition
from stoker._src.graph.graph import Graph
from stoker._src.graph.interchange.function_def import function_refs
from stoker._src.graph.tensor import Operation, Tensor
from stoker._src.runtime.plan.compiled import Plan
from stoker._src.runtime.plan.emit import copied
from stoker._src.runtime.plan.planner import Planner
from stoker._src.runtime.plan.pruning import has_effect, in_order

_NOTHING: frozenset[int] = frozenset()


@dataclass
class Stage:
    """Ops that run together once all of `waits` have arrived."""

    waits: frozenset[int]
    plan: Plan
    feeds: list[Tensor]  # of the part's graph
    fetches: list[Tensor]
    blocking: int = -1  # the number of the wait that this stage, a single blocking op, fulfils
    before: set[int] = field(default_factory=set)  # stages whose results this one needs
    conditions: frozenset[Condition] = frozenset()


class Pieces:
    """The stages of a part in which all values were expected to be alive, in pieces with the same conditions."""

    def __init__(self, division: _Division, groups: list[list[Operation]], fetches: list[list[Tensor]]) -> None:
        self._division, self._groups, self._fetches = division, groups, fetches
        part = division.part
        self._conditions = conditions(part.graph, received_by(part.receives))
        self._known: dict[int, list[Stage]] = {}

    def depends(self, index: int, dead: set[Tensor]) -> bool:
        """Whether an op of a stage needs one of these values."""
        return any(each.tensor in dead for op in self._groups[index] for each in self._conditions[op])

    def of(self, index: int) -> list[Stage]:
        """Returns the pieces of a stage, in order of execution."""
        found = self._known.get(index)
        if found is None:
            groups: dict[frozenset[Condition], list[Operation]] = {}
            for op in self._groups[index]:
                groups.setdefault(self._conditions[op], []).append(op)
            ordered = sorted(groups.items(), key=lambda each: len(each[0]))  # an op has all conditions of its inputs
            wanted = {*self._fetches[index], *(tensor for op in self._groups[index] for tensor in op._inputs)}
            found = []
            for needed, ops in ordered:
                piece = self._division._stage(ops, _NOTHING, wanted)
                piece.conditions = needed
                found.append(piece)
            self._known[index] = found
        return found


@dataclass
class Stages:
    """The stages of a part, and the number of the wait for each value that arrives from elsewhere or that a Merge returns."""

    stages: list[Stage]
    arrivals: dict[Tensor, int]
    pieces: Callable[[], Pieces] | None = None


def plan_stages(part: WireGraph, worker: Any, steps: Any) -> Stages:
    """Divides a part into stages and compiles them."""
    remote = [edge.tensor for edge in part.receives if not edge.is_client] + part.branches.merged
    given = [edge.tensor for edge in part.receives] + part.branches.merged
    fetched = [edge.tensor for edge in part.sends]
    ops = [op for op in in_order(set(part.graph._ops), set()) if op not in {tensor.op for tensor in given}]
    if not remote and not part.branches.conditions and all(edge.is_client for edge in part.sends):
        # Nothing leaves or arrives during the run, so a plan like that of a local session is enough.
        return Stages([_whole(part.graph, ops, given, fetched, worker, steps)], {})
    return _Division(part, ops, remote, worker, steps).result()


def _whole(
    graph: Graph, ops: list[Operation], feeds: list[Tensor], fetches: list[Tensor], worker: Any, steps: Any
) -> Stage:
    plan = _plan(graph, ops, feeds, fetches, worker, steps)
    return Stage(_NOTHING, plan, feeds, fetches)


def _plan(
    graph: Graph,
    ops: list[Operation],
    feeds: list[Tensor],
    fetches: list[Tensor],
    worker: Any,
    steps: Any,
    copies: list[Callable[[Any], Any]] | None = None,
) -> Plan:
    targets = [op for op in ops if has_effect(op)]
    fetch: Any = SimpleNamespace(tensors=fetches, targets=targets)
    if copies is None:
        return Plan(worker, steps, graph, fetch, feeds)
    return _SendingPlan(copies, worker, steps, graph, fetch, feeds)


class _SendingPlan(Plan):
    """A plan some of whose results leave the task: `copies` has what copies each result that shares memory with a variable."""

    def __init__(self, copies: list[Callable[[Any], Any]], *arguments: Any) -> None:
        self._copies = copies
        super().__init__(*arguments)

    def _planner(self, **options: Any) -> Planner:
        return super()._planner(copies=self._copies, **options)


def _blocks(op: Operation) -> bool:
    """Whether an op, or a function it calls, may wait for another run."""
    pending, seen = [op], set()
    while pending:
        each = pending.pop()
        if each.definition.traits & Trait.BLOCKING:
            return True
        for ref in function_refs(each) if each.definition.planning.calls else ():
            if ref.target is not None and ref.target not in seen:
                seen.add(ref.target)
                pending += ref.target.needed_ops()
    return False


def _is_replicated(op: Operation) -> bool:
    """Whether every stage that needs an op has it itself: constants, handles of variables, queues and tables, and reads of reference variables.

    Such a read shows the value at the time at which it is used, so a stage that runs after an update must not get what was read before.
    """
    if op._control_inputs:
        return False
    if op.type == "Identity":
        return op._inputs[0].dtype._is_ref_dtype and _is_replicated(op._inputs[0].op)
    return not op._inputs and (bool(op.definition.traits & Trait.SOURCE) or op.type == "Const")


def _root(tensor: Tensor) -> Tensor:
    """Returns the variable's own reference for a reference that an update returned."""
    while tensor.dtype._is_ref_dtype and tensor.op._inputs and tensor.op._inputs[0].dtype._is_ref_dtype:
        tensor = tensor.op._inputs[0]
    return tensor


class _Division:
    def __init__(self, part: WireGraph, ops: list[Operation], remote: list[Tensor], worker: Any, steps: Any) -> None:
        self.part, self.ops, self.worker, self.steps = part, ops, worker, steps
        self.arrivals = {tensor: number for number, tensor in enumerate(remote)}
        self.blocking: dict[Operation, int] = {}
        for op in ops:
            if _blocks(op):
                self.blocking[op] = len(self.arrivals) + len(self.blocking)
        self.everything = frozenset(range(len(self.arrivals) + len(self.blocking)))
        self.leaving = {edge.tensor.op for edge in part.sends} | {tensor.op for tensor in part.branches.needed}
        self.keys = self._keys()

    def _is_replicated(self, op: Operation) -> bool:
        return op not in self.leaving and _is_replicated(op)

    def _sources(self, op: Operation) -> list[Operation]:
        return [*(tensor.op for tensor in op._inputs), *op._control_inputs]

    def _waits(self) -> dict[Operation, frozenset[int]]:
        """Returns what each op directly or indirectly waits for."""
        own = {tensor.op: frozenset((number,)) for tensor, number in self.arrivals.items()}
        known: dict[Operation, frozenset[int]] = dict(own)
        for op in self.ops:
            sets = {known.get(source, _NOTHING) for source in self._sources(op)}
            waits = next(iter(sets)) if len(sets) == 1 else _NOTHING.union(*sets)
            if op in self.blocking:
                waits |= {self.blocking[op]}
            known[op] = waits
        return known

    def _keys(self) -> dict[Operation, frozenset[int]]:
        """Returns, for each op, what its stage waits for: all that everything urgent after it waits for in any case."""
        waits = self._waits()
        urgent: dict[Operation, frozenset[int]] = {
            edge.tensor.op: waits[edge.tensor.op] for edge in self.part.sends if not edge.is_client
        }
        for tensor in self.part.branches.needed:
            if tensor.op in waits and tensor not in self.arrivals:
                urgent[tensor.op] = waits[tensor.op]
        for op, number in self.blocking.items():
            urgent[op] = waits[op] - {number}
        keys: dict[Operation, frozenset[int]] = {}
        for op in reversed(self.ops):
            found = keys.get(op, self.everything) & urgent.get(op, self.everything)
            keys[op] = found
            for source in self._sources(op):
                # A blocking op is a stage by itself, so what follows it does not affect what precedes it.
                keys[source] = keys.get(source, self.everything) & found
        return keys

    def result(self) -> Stages:
        groups: dict[Any, list[Operation]] = {}
        for op in self.ops:
            if not self._is_replicated(op):
                key = op if op in self.blocking else (self.keys[op], self.part.branches.of(op))
                groups.setdefault(key, []).append(op)
        number = {op: i for i, ops in enumerate(groups.values()) for op in ops}
        wanted = {edge.tensor for edge in self.part.sends} | self.part.branches.needed
        for op in self.ops:
            for tensor in op._inputs:
                if (
                    tensor.op in number
                    and number.get(op) != number[tensor.op]
                    and not self._is_replicated(_root(tensor).op)
                ):
                    wanted.add(tensor)
        stages = []
        for i, (key, ops) in enumerate(groups.items()):
            stage = self._stage(ops, self.keys[ops[0]], wanted)
            stage.conditions = self.part.branches.of(ops[0])
            if key is ops[0]:
                stage.blocking = self.blocking[ops[0]]
            stage.before = {number[s] for op in ops for s in self._sources(op) if s in number} - {i}
            stages.append(stage)
        fetches = [stage.fetches for stage in stages]
        return Stages(stages, self.arrivals, functools.cache(lambda: Pieces(self, list(groups.values()), fetches)))

    def _copies(self, fetches: list[Tensor]) -> list[Callable[[Any], Any]]:
        """Returns what copies the value of each of `fetches` if it shares memory with a variable."""
        leaving = {edge.tensor for edge in self.part.sends if edge.is_pushed}
        staying = {tensor for op in self.ops for tensor in op._inputs}
        return [detached if tensor in leaving and tensor not in staying else copied for tensor in fetches]

    def _stage(self, ops: list[Operation], waits: frozenset[int], wanted: set[Tensor]) -> Stage:
        """Copies a stage's ops into a graph of their own, in which values of other stages are placeholders."""
        graph = Graph()
        copies: dict[Operation, Operation] = {}
        mapped: dict[Tensor, Tensor] = {}
        feeds: list[Tensor] = []
        inside = set(ops)

        def copied(op: Operation) -> Operation:
            inputs = [taken(tensor) for tensor in op._inputs]
            copy = graph.add(op.definition, inputs, dict(op.attrs), op.name)
            copy.stated_elements = op.stated_elements
            copies[op] = copy
            if op.device:
                copy._set_device(op.device)
            for old, new in zip(op.outputs, copy.outputs):
                mapped[old] = new
                if not old.dtype._is_ref_dtype and old.dtype.base_dtype is not dtypes.resource:
                    new._static_shape = old.static_shape
            return copy

        def taken(tensor: Tensor) -> Tensor:
            if tensor in mapped:
                return mapped[tensor]
            if tensor.op in inside:
                raise InvalidArgumentError(None, None, f"The part has a cycle through '{tensor.op.name}'.")
            source = _root(tensor)
            if self._is_replicated(source.op):
                if source not in mapped:
                    copied(source.op)
                mapped[tensor] = mapped[source]
                return mapped[tensor]
            feeds.append(tensor)
            definition = find_definition("Placeholder")
            assert definition is not None
            attrs = {"dtype": tensor.dtype.base_dtype, "shape": tensor.static_shape}
            mapped[tensor] = graph.add(definition, [], attrs, graph.unique_name(f"stage/{tensor.op.name}")).outputs[0]
            return mapped[tensor]

        for op in ops:
            copy = copied(op)
            for control in op._control_inputs:
                if control in inside:
                    copy._add_control_input(copies[control])
        fetches = [tensor for op in ops for tensor in op.outputs if tensor in wanted]
        plan = _plan(
            graph,
            [copies[op] for op in ops],
            [mapped[tensor] for tensor in feeds],
            [mapped[tensor] for tensor in fetches],
            self.worker,
            self.steps,
            self._copies(fetches),
        )
        return Stage(waits, plan, feeds, fetches)
