"""Runs an op that is executed repeatedly (a queue runner's enqueue) several times in one call.

If the op's inputs come from a single blocking op (a read or a dequeue), both ops have kernels for several runs at once
(`OpDefinition.deals` and `collects`). The ops between them are a function of one record. That function is rewritten for a stack
of records (stacking.py), so that a block of records costs about as many kernel calls as one record. A function that
cannot be rewritten is called once per record, which still saves starting a run for each. The records and their order are the same
as in single runs. A block never reads more records than the destination has room for, so nothing is read early.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import torch

from stoker._src.base import dtypes
from stoker._src.graph.planning import Trait
from stoker._src.graph.tensor import Operation, Tensor
from stoker._src.ops.support.waiting import running
from stoker._src.runtime.failures import explain_failure
from stoker._src.runtime.functions.bodies import StackCall, step_failure
from stoker._src.runtime.plan.emit import Step, emit
from stoker._src.runtime.plan.planner import Planner
from stoker._src.runtime.plan.pruning import prune
from stoker._src.runtime.plan.stacking import over_stacks
from stoker._src.runtime.worker import RunningSteps, Worker

MOST_STACKED, MOST_SINGLE = 256, 32
"""The most records in a block: if they are processed as a stack, and if each is processed separately."""

_MOST_MISFITS = 3  # blocks that may fail as a stack before it is not tried any more


def repeated(worker: Worker, running_steps: RunningSteps, op: Operation) -> Callable[[], None] | None:
    """Returns a function that runs `op` one or more times; None if several runs cannot be combined."""
    if not isinstance(op, Operation) or op.definition.planning.collects is None or worker.placement.gpu is not None:
        return None
    needed, passed = prune([], [op], set())
    waiting = [each for each in needed if each.definition.traits & Trait.BLOCKING and each is not op]
    if len(waiting) != 1 or waiting[0].definition.planning.deals is None or op._control_inputs or passed:
        return None
    source = waiting[0]
    handles = [*source._inputs, op._inputs[0]]
    if source._control_inputs or not all(handle.op.definition.traits & Trait.SOURCE for handle in handles):
        return None
    kept = {source, op, *(handle.op for handle in handles)}
    between = [tensor for each in needed - kept for tensor in each._inputs]
    shared = list(dict.fromkeys(tensor for tensor in between if tensor.dtype is dtypes.resource))
    if any(tensor.dtype is dtypes.variant for tensor in between):
        return None
    if not all(handle.op.definition.traits & Trait.SOURCE for handle in shared):
        return None
    block = _Block(worker, running_steps, source, op, shared)
    # A reader of a resource between two runs would notice that they were combined, unless it only looks up keys.
    return block.run if block.is_stacked or not shared else None


class _Block:
    def __init__(
        self, worker: Worker, running_steps: RunningSteps, source: Operation, sink: Operation, shared: list[Tensor]
    ) -> None:
        self._running_steps = running_steps
        self._source, self._sink = source, sink
        given, wanted = list(source.outputs), list(sink._inputs[1:])
        self._single = _step(worker, wanted, given)
        stack = over_stacks(given, wanted, (), shared, in_calls=True)
        self._together = None if stack is None else StackCall(stack, worker.compiler)
        handles = _step(worker, [*source._inputs, sink._inputs[0], *shared], []).function(None)
        count = len(source._inputs)
        self._from, self._to, self._shared = handles[:count], handles[count], handles[count + 1 :]
        self._deal: Any = source.definition.planning.deals
        self._room, self._fitted, self._collect = sink.definition.planning.collects  # type: ignore[misc]
        self._misfits = 0  # blocks in a row whose records could only be processed separately
        self._most = MOST_SINGLE if self._together is None else MOST_STACKED

    @property
    def is_stacked(self) -> bool:
        """Whether the records of a block are processed together."""
        return self._together is not None

    def run(self) -> None:
        """Runs the op as often as the destination has room for its results, at least once."""
        state = self._running_steps.begin()
        try:
            with running(state):
                self._work()
        finally:
            self._running_steps.end(state)
            for give_back in state.at_end:
                give_back()

    def _work(self) -> None:
        count = max(1, min(self._room(self._to), self._most))
        records = self._at(self._source, self._deal, *self._from, count)
        if self._together is not None and len(records[0]) > 1:
            try:
                results = self._fitted(self._to, self._together.of_columns(records, self._shared))
            except Exception:
                pass  # Falls back to single records: those before a bad one go through, and the error names it.
            else:
                self._misfits = 0
                self._at(self._sink, self._collect, self._to, results)
                return
        done: list[Any] = []
        try:
            for number in range(len(records[0])):
                done.append(self._single.function(None, *[_row(column, number) for column in records]))
        except BaseException as error:
            self._put(done)
            raise step_failure(error, self._single) from error
        self._put(done)
        if self._together is not None and len(records[0]) > 1:  # no record was bad, so they do not fit into a stack
            self._misfits += 1
            if self._misfits == _MOST_MISFITS:
                self._together, self._most = None, MOST_SINGLE

    def _put(self, done: list[Any]) -> None:
        """Passes on the results of single records, in one call if they have the same size."""
        if not done:
            return
        columns = list(zip(*done))
        if all(value.shape == column[0].shape for column in columns for value in column):
            stack = [
                np.stack(column) if isinstance(column[0], np.ndarray) else torch.stack(column) for column in columns
            ]
            self._at(self._sink, self._collect, self._to, stack)
            return
        for results in done:
            self._at(self._sink, self._collect, self._to, [value[None] for value in results])

    def _at(self, op: Operation, kernel: Any, *arguments: Any) -> Any:
        try:
            return kernel(*arguments)
        except BaseException as error:
            raise explain_failure(error, op) from error


def _row(column: Any, number: int) -> Any:
    if isinstance(column, np.ndarray):
        single = np.empty(column.shape[1:], dtype=object)
        single[...] = column[number]
        return single
    return column[number]


def _step(worker: Worker, fetches: list[Tensor], feeds: list[Tensor]) -> Step:
    return emit(Planner(fetches, [], feeds, worker.node_context, worker.compiler).build())
