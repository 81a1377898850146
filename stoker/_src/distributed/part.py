"""`Part`: one task's part of the graph of a step, ready to run."""

from __future__ import annotations

import functools
import itertools
import math
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from stoker._src.base.errors import CancelledError, InternalError, InvalidArgumentError, OpError
from stoker._src.base.faults import own_fault
from stoker._src.distributed.frames import Frame, Share
from stoker._src.distributed.links import Link
from stoker._src.distributed.rendezvous import StepTable
from stoker._src.distributed.stages import Stage, Stages, plan_stages
from stoker._src.distributed.wire_graph import Edge, WireGraph
from stoker._src.formats.protos import RunMetadata, RunOptions
from stoker._src.graph.tensor import Tensor
from stoker._src.ops.control_flow.switches import DEAD
from stoker._src.ops.support.values import host_value
from stoker._src.ops.support.waiting import RunState, running, wait_until

if TYPE_CHECKING:
    from stoker._src.distributed.task import Task, WorkerSession


_SOON = 0.5e-3  # seconds


@dataclass(frozen=True)
class _Merge:
    """A Merge: the stages and positions of its inputs, and the positions of its two outputs and the numbers of the waits for them."""

    inputs: list[tuple[int, int]]
    outputs: list[int]
    numbers: list[int]


class _Step:
    """The stages of a part, with a number for each value: its position in the list of values of a run."""

    def __init__(self, part: Part, planned: Stages) -> None:
        self.stages = planned.stages
        # Stages of a part with branches have uniform conditions, and are not taken to pieces.
        self.pieces = None if part.wire.branches.conditions else planned.pieces
        wire = part.wire
        tensors = dict.fromkeys(edge.tensor for edge in (*wire.receives, *wire.sends))
        for stage in planned.stages:
            tensors.update(dict.fromkeys((*stage.feeds, *stage.fetches)))
        tensors.update(dict.fromkeys((*wire.branches.needed, *wire.branches.merged)))
        at = {tensor: i for i, tensor in enumerate(tensors)}
        self.count = len(at)
        self.feeds = {edge.key: (at[edge.tensor], edge) for edge in wire.receives if edge.is_client}
        self.fetches = {edge.key: at[edge.tensor] for edge in wire.sends if edge.is_client}
        self.remote = {
            edge.key: (at[edge.tensor], planned.arrivals[edge.tensor], edge)
            for edge in wire.receives
            if not edge.is_client
        }
        self.keys = {number: key for key, (_, number, _) in self.remote.items()}
        self.conditions = [
            [(at[condition.tensor], condition.side) for condition in stage.conditions] for stage in planned.stages
        ]
        made = {tensor: i for i, stage in enumerate(planned.stages) for tensor in stage.fetches}
        self.merges = [
            _Merge(
                [(made[tensor], at[tensor]) for tensor in merge.inputs],
                [at[merge.output], at[merge.index]],
                [planned.arrivals[merge.output], planned.arrivals[merge.index]],
            )
            for merge in wire.branches.merges
        ]
        self.asked = [
            edge for _, _, edge in self.remote.values() if not edge.is_pushed and edge.source_task != part.task.name
        ]
        self.seconds = [math.inf] * len(planned.stages)  # how long each stage took in its last run
        self.given = [[at[tensor] for tensor in stage.feeds] for stage in planned.stages]
        self.made = [[at[tensor] for tensor in stage.fetches] for stage in planned.stages]
        # For each stage: the position among its results, the task that needs the value (None: it asks), and the key.
        self.sends: list[list[tuple[int, str | None, str]]] = [
            [
                (i, edge.destination_task if edge.is_pushed and edge.destination_task != part.task.name else None, key)
                for i, tensor in enumerate(stage.fetches)
                for edge in part.sends.get(tensor, ())
                for key in (edge.key,)
            ]
            for stage in planned.stages
        ]
        self.kept = [key for sends in self.sends for _, task, key in sends if task is None]
        # The tasks that get values from a stage that waits for nothing.
        self.first_served = {
            task
            for stage, sends in zip(planned.stages, self.sends)
            for _, task, _ in sends
            if task is not None and not stage.waits and not stage.before and stage.blocking < 0
        }
        stage = planned.stages[0] if len(planned.stages) == 1 else None
        self.is_simple = stage is not None and not self.remote and not part.sends and not stage.plan.watched


class Part:
    """A registered part of a graph. It may run in several steps at once."""

    def __init__(self, task: Task, session: WorkerSession, wire: WireGraph, *, combined: bool = False) -> None:
        """If `combined`, the frames of divided loops are numbered as in TensorFlow 2."""
        self.task, self.session, self.wire = task, session, wire
        self.sends: dict[Tensor, list[Edge]] = {}
        for edge in wire.sends:
            if not edge.is_client:
                self.sends.setdefault(edge.tensor, []).append(edge)
        # Nobody comes for a value later, so the step is over here when the part has run.
        self.ends_itself = not wire.shares and all(edge.is_pushed for edges in self.sends.values() for edge in edges)
        self._generation = -1
        self._step: _Step | None = None
        self._planning = threading.Lock()
        self._combined = combined
        self._loops = {
            frame: LoopShare(share, Part(task, session, each, combined=combined))
            for frame, (share, each) in wire.shares.items()
        }

    def _planned(self) -> _Step:
        with self._planning:
            if self._step is None or self._generation != self.task.generation:
                self._generation = self.task.generation
                self._step = _Step(self, plan_stages(self.wire, self.session.worker, self.session.steps))
            return self._step

    def first_served(self) -> set[str]:
        """Returns the tasks to which a run sends values before it waits for anything."""
        return self._planned().first_served

    def run(
        self,
        step_id: int,
        feeds: dict[str, Any],
        fetches: list[str],
        *,
        timeout_in_ms: int = 0,
        trace: Any = None,
        watch: Callable[[Callable[[OpError], None]], None] | None = None,
        routes: Mapping[str, Link] | None = None,
        with_result: dict[str, Any] | None = None,
    ) -> list[Any]:
        """Runs the part in a step and returns the values of `fetches`.

        Args:
            step_id: the step.
            feeds: values by key.
            fetches: keys.
            timeout_in_ms: the time it may take; 0 for any.
            trace: a StepStats to fill with the time of each node, or None.
            watch: is called with a function that cancels the run with an error.
            routes: links over which values go to tasks that take part in the same step. Their end ends the step.
            with_result: gets the values that the last stage would send over a route, by key. The caller sends them with the result.

        Raises:
            OpError: an op failed, a value did not arrive, or the step was cancelled.
        """
        step = self._planned()
        values: list[Any] = [None] * step.count
        _put_feeds(step, feeds, values)
        wanted = _positions(step, fetches)
        if step.is_simple and trace is None and not timeout_in_ms:
            results = step.stages[0].plan.execute([values[i] for i in step.given[0]])
            for i, value in zip(step.made[0], results):
                values[i] = value
            return [values[i] for i in wanted]
        table = self.task.rendezvous.table(step_id)
        state = RunState(timeout_in_ms)
        state.caller = self.session.caller
        state.loops = self._bound_loops(Frame(), 0, table, state, step_id)
        table.running += 1
        run = _Run(self, step, values, step_id, table, state, trace, routes or {}, with_result)
        table.on_abort(lambda error: state.cancel())
        if watch is not None:
            watch(table.abort)
        try:
            with running(state):
                run.go()
            return _alive([values[i] for i in wanted])
        except CancelledError:
            if table.error is not None:
                raise table.error from None
            raise
        finally:
            table.running -= 1

    def _bound_loops(
        self, frame: Frame, iteration: int, table: StepTable, state: RunState, step_id: int
    ) -> dict[str, Callable[[list[Any]], list[Any]]]:
        """Returns what runs the shares of loops in this part, itself an iteration of `frame`."""
        return {
            name: functools.partial(
                loop.run, frame.inner(iteration, name, combined=self._combined), table, state, step_id
            )
            for name, loop in self._loops.items()
        }

    def iterate(
        self, frame: Frame, iteration: int, feeds: dict[str, Any], table: StepTable, outer: RunState, step_id: int
    ) -> dict[str, Any]:
        """Runs one iteration of a loop in a step. Returns the values of all fetches, some of which may be dead."""
        step = self._planned()
        values: list[Any] = [None] * step.count
        _put_feeds(step, feeds, values)
        with outer.inner() as state:
            state.caller = outer.caller
            state.loops = self._bound_loops(frame, iteration, table, state, step_id)
            run = _Run(self, step, values, step_id, table, state, None, {}, None, place=(frame, iteration))
            with running(state):
                run.go()
        return {name: values[at] for name, at in step.fetches.items()}


class LoopShare:
    """A task's share of a loop that TensorFlow's master has divided."""

    def __init__(self, share: Share, part: Part) -> None:
        self._share, self._part = share, part

    def run(self, frame: Frame, table: StepTable, state: RunState, step_id: int, inputs: list[Any]) -> list[Any]:
        """Runs iterations until no loop variable is alive. Returns the values that leave the loop."""
        share = self._share
        count = len(share.variables)
        variables, constants = inputs[:count], dict(zip(share.constants, inputs[count:]))
        results: list[Any] = [DEAD] * len(share.results)
        for iteration in itertools.count():
            state.check("While")
            feeds = {name: value for (name, _), value in zip(share.variables, variables)} | constants
            values = self._part.iterate(frame, iteration, feeds, table, state, step_id)
            results = [
                values[name] if values[name] is not DEAD else known for name, known in zip(share.results, results)
            ]
            variables = [values[name] for _, name in share.variables]
            if all(value is DEAD for value in variables):
                return results
        raise AssertionError


def _put_feeds(step: _Step, feeds: dict[str, Any], values: list[Any]) -> None:
    for key, value in feeds.items():
        found = step.feeds.get(key)
        if found is None:
            raise InvalidArgumentError(None, None, f"There is no feed with the key {key:.500}.")
        at, edge = found
        check_value(edge, value)
        values[at] = value
    if len(feeds) < len(step.feeds):
        missing = [edge.tensor.name for key, (_, edge) in step.feeds.items() if key not in feeds]
        raise InvalidArgumentError(None, None, f"Feeds are missing: {', '.join(missing)}.")


def _positions(step: _Step, fetches: list[str]) -> list[int]:
    for key in fetches:
        if key not in step.fetches:
            raise InvalidArgumentError(None, None, f"There is no fetch with the key {key:.500}.")
    return [step.fetches[key] for key in fetches]


def _alive(values: list[Any]) -> list[Any]:
    for position, value in enumerate(values):
        if value is DEAD:
            raise InvalidArgumentError(None, None, f"Retval[{position}] does not have value")
    return values


def check_value(edge: Edge, value: Any) -> None:
    """Checks the dtype of a value that arrives from elsewhere.

    Raises:
        InvalidArgumentError: it is not the tensor's.
    """
    if isinstance(value, torch.Tensor) and value.dtype is edge.torch_dtype:
        return
    tensor = edge.tensor
    dtype = tensor.dtype.base_dtype
    if isinstance(value, np.ndarray):
        fits = dtype.name == "string"
    elif isinstance(value, torch.Tensor):
        fits = False
    else:
        return  # an object of this process
    if not fits:
        found = "string" if isinstance(value, np.ndarray) else str(value.dtype).removeprefix("torch.")
        raise InvalidArgumentError(None, None, f"{tensor.name} expects {dtype.name}, but the value is of {found}.")


class _Run:
    """One run of a part: the stages that have run, and the values that are there."""

    def __init__(
        self,
        part: Part,
        step: _Step,
        values: list[Any],
        step_id: int,
        table: StepTable,
        state: RunState,
        trace: Any,
        routes: Mapping[str, Link],
        with_result: dict[str, Any] | None,
        place: tuple[Frame, int] = (Frame(), 0),
    ) -> None:
        """`place` is the frame, and the iteration, that the run is in."""
        self.with_result = with_result
        # The keys under which values travel, by those of the part.
        frame, iteration = place
        self.wire_keys = {key: frame.key(key, iteration) for key in (*step.remote, *step.kept)}
        self.part, self.step, self.step_id = part, step, step_id
        self.table, self.state, self.trace, self.routes = table, state, trace, routes
        self.values = values
        self.expected = set(step.remote)
        self.arrived: set[int] = set()
        self.done: set[int] = set()
        self.merging = step.merges
        self.dead: set[Tensor] = set()  # arrivals
        self.threads: list[threading.Thread] = []
        self.pushed: list[Any] = []
        self.began = time.time()

    def go(self) -> None:
        try:
            self._ask_for_values()
            self._run_stages()
            for push in self.pushed:
                push()
        except BaseException as error:
            failed = (
                error
                if isinstance(error, OpError)
                else own_fault(error, None)
                if isinstance(error, Exception)
                else None
            )
            self.table.abort(failed if isinstance(failed, OpError) else InternalError(None, None, repr(error)))
            raise
        finally:
            for thread in self.threads:
                thread.join()

    def _ask_for_values(self) -> None:
        """Asks other tasks for the values that they do not send by themselves."""
        for edge in self.step.asked:
            self.part.task.peers.ask(edge.source_task, self.step_id, self.wire_keys[edge.key], self.table)

    def _run_stages(self) -> None:
        stages = self.step.stages
        waiting = list(range(len(stages)))
        leaving: dict[str, dict[str, Any]] = {}  # values by the task they go to
        soon: int | None = None  # the stage that runs next, because its values go with those of the last one
        while waiting or len(self.done) < len(stages):
            done = len(self.done)
            self._collect()
            ready = next((i for i in waiting if self._is_ready(stages[i])), None) if soon is None else soon
            if ready is None:
                self._wait(done, [stages[i] for i in waiting])
                continue
            waiting.remove(ready)
            if stages[ready].blocking >= 0 and (waiting or self.threads):
                thread = threading.Thread(target=self._run_in_thread, args=(ready,), daemon=True)
                self.threads.append(thread)
                thread.start()
            else:
                self._run_stage(ready, leaving)
                soon = self._following(waiting)
                if soon is None:
                    self._push(leaving, is_last=not waiting and not self.threads)
                    leaving = {}

    def _following(self, waiting: list[int]) -> int | None:
        """Returns a stage that can run at once and takes so little time that its values can wait for it."""
        step = self.step
        quick = (i for i in waiting if step.seconds[i] < _SOON and step.stages[i].blocking < 0)
        return next((i for i in quick if self._is_ready(step.stages[i])), None)

    def _is_ready(self, stage: Stage) -> bool:
        return stage.waits <= self.arrived and stage.before <= self.done

    def _collect(self) -> None:
        """Takes the values that have arrived."""
        with self.table.condition:
            if self.table.error is not None:
                raise self.table.error
            arrived, wire_keys = self.table.values, self.wire_keys
            found = [key for key in self.expected if wire_keys[key] in arrived]
            taken = [arrived.pop(wire_keys[key]) for key in found]
        for key, value in zip(found, taken):
            at, number, edge = self.step.remote[key]
            check_value(edge, value)
            self.values[at] = value
            self.arrived.add(number)
            if value is DEAD:
                self.dead.add(edge.tensor)
            if self.trace is not None:
                self._trace_arrival(edge, value)
        self.expected.difference_update(found)
        if self.merging:
            self.merging = [merge for merge in self.merging if not self._merge(merge)]

    def _merge(self, merge: _Merge) -> bool:
        """Gives a Merge the value of the input that is alive. Returns whether it has one, or can have none."""
        known = [stage in self.done for stage, _ in merge.inputs]
        found = (k for k, (_, at) in enumerate(merge.inputs) if known[k] and self.values[at] is not DEAD)
        index = next(found, None)
        if index is None and not all(known):
            return False
        results = [DEAD, DEAD] if index is None else [self.values[merge.inputs[index][1]], torch.tensor(index).int()]
        for at, number, value in zip(merge.outputs, merge.numbers, results):
            self.values[at] = value
            self.arrived.add(number)
        return True

    def _is_alive(self, index: int) -> bool:
        """Whether the conditions of a stage are fulfilled."""
        for at, side in self.step.conditions[index]:
            value = self.values[at]
            if value is DEAD or (side is not None and bool(host_value(value)) is not side):
                return False
        return True

    def _traced(self) -> Any:
        """Returns the list of this task's nodes in the trace."""
        name = f"{self.part.task.name}/device:CPU:0"
        found = next((device for device in self.trace.dev_stats if device.device == name), None)
        return (found or self.trace.dev_stats.add(device=name)).node_stats

    def _trace_arrival(self, edge: Edge, value: Any) -> None:
        """Notes how long the part has waited for a value, in the form in which TensorFlow does."""
        size = value.nbytes if isinstance(value, torch.Tensor) else 0
        label = f"[{size}B] {edge.tensor.op.name} from {edge.source} to {edge.destination}"
        start, now = int(self.began * 1e6), int(time.time() * 1e6)
        node = self._traced().add(node_name="RecvTensor", timeline_label=label, all_start_micros=start)
        node.op_end_rel_micros = node.all_end_rel_micros = max(1, now - start)

    def _wait(self, done: int, waiting: list[Stage]) -> None:
        """Waits until the values that one of the `waiting` stages lacks have arrived, more than `done` stages have ended, or the step fails."""
        table, known = self.table, self.step.keys
        lacking = [stage.waits - self.arrived for stage in waiting if stage.before <= self.done]
        # A stage that waits for a blocking op is looked at again when that has ended.
        wanted = [
            [self.wire_keys[known[number]] for number in numbers] for numbers in lacking if numbers <= known.keys()
        ]

        def changed() -> bool:
            return table.error is not None or len(self.done) > done or table.has_one(wanted)

        with table.condition:
            first = next(iter(self.expected), None)
            what = "an op" if first is None else self.step.remote[first][2].tensor.op.name
            table.wanted[self] = wanted
            try:
                wait_until(table.condition, changed, f"Waiting for {what}")
            finally:
                del table.wanted[self]

    def _run_in_thread(self, index: int) -> None:
        try:
            leaving: dict[str, dict[str, Any]] = {}
            with running(self.state):
                self._run_stage(index, leaving)
                self._push(leaving, is_last=False)
        except OpError as error:
            self.table.abort(error)
        except BaseException as error:
            self.table.abort(InternalError(None, None, repr(error)))

    def _run_stage(self, index: int, leaving: dict[str, dict[str, Any]]) -> None:
        """Runs a stage. Values that other tasks need are put into `leaving`, by task, or kept until they are asked for."""
        began = time.perf_counter()
        stage = self.step.stages[index]
        given = [self.values[i] for i in self.step.given[index]]
        if self.step.conditions[index] and not self._is_alive(index):
            results = [DEAD] * len(stage.fetches)
        elif self.dead and self.step.pieces is not None and self.step.pieces().depends(index, self.dead):
            results = self._run_pieces(self.step.pieces().of(index), stage, given)
        elif self.trace is None:
            results = stage.plan.execute(given)
        else:
            metadata = RunMetadata()
            results = stage.plan.execute(given, RunOptions(trace_level=RunOptions.FULL_TRACE), metadata)
            for device in metadata.step_stats.dev_stats:
                self._traced().MergeFrom(device.node_stats)
        for i, value in zip(self.step.made[index], results):
            self.values[i] = value
        kept: dict[str, Any] = {}
        for i, destination, key in self.step.sends[index]:
            if destination is None:
                kept[self.wire_keys[key]] = results[i]
            else:
                leaving.setdefault(destination, {})[key] = results[i]
        if kept:
            self.table.put(kept)
        self.step.seconds[index] = time.perf_counter() - began
        with self.table.condition:
            self.done.add(index)
            if stage.blocking >= 0:
                self.arrived.add(stage.blocking)
            if self.threads:
                self.table.condition.notify_all()

    def _run_pieces(self, pieces: list[Stage], stage: Stage, given: list[Any]) -> list[Any]:
        """Runs those pieces of a stage that do not depend on dead values."""
        known = dict(zip(stage.feeds, given))
        for piece in pieces:
            if any(condition.tensor in self.dead for condition in piece.conditions):
                results = [DEAD] * len(piece.fetches)
            else:
                results = piece.plan.execute([known[tensor] for tensor in piece.feeds])
            known.update(zip(piece.fetches, results))
        return [known[tensor] for tensor in stage.fetches]

    def _push(self, leaving: dict[str, dict[str, Any]], *, is_last: bool) -> None:
        """Sends values to the tasks that need them, in one message to each."""
        for destination, values in leaving.items():
            link = self.routes.get(destination)
            if link is None:
                self.pushed.append(self.part.task.peers.push(destination, self.step_id, values, self.table))
            elif is_last and self.with_result is not None:
                self.with_result.update(values)
            else:
                link.send_values(self.step_id, values)
