"""`Part`: one task's part of the graph of a step, ready to run."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from stoker._src.base.errors import CancelledError, InternalError, InvalidArgumentError, OpError
from stoker._src.base.faults import own_fault
from stoker._src.distributed.links import Link
from stoker._src.distributed.rendezvous import StepTable, task_of
from stoker._src.distributed.stages import Stage, Stages, plan_stages
from stoker._src.distributed.wire_graph import Edge, WireGraph
from stoker._src.formats.protos import RunMetadata, RunOptions
from stoker._src.graph.tensor import Tensor
from stoker._src.ops.support.values import torch_dtype
from stoker._src.ops.support.waiting import RunState, running, wait_until

if TYPE_CHECKING:
    from stoker._src.distributed.task import Task, WorkerSession


class Part:
    """A registered part of a graph. It may run in several steps at once."""

    def __init__(self, task: Task, session: WorkerSession, wire: WireGraph) -> None:
        self.task, self.session, self.wire = task, session, wire
        self.feeds = {edge.key: edge for edge in wire.receives if edge.is_client}
        self.fetches = {edge.key: edge for edge in wire.sends if edge.is_client}
        self.remote = {edge.key: edge for edge in wire.receives if not edge.is_client}
        self.sends: dict[Tensor, list[Edge]] = {}
        for edge in wire.sends:
            if not edge.is_client:
                self.sends.setdefault(edge.tensor, []).append(edge)
        # Nobody comes for a value later, so the step is over here when the part has run.
        self.ends_itself = all(edge.is_pushed for edges in self.sends.values() for edge in edges)
        self._generation = -1
        self._planned: Stages | None = None
        self._planning = threading.Lock()

    def stages(self) -> Stages:
        with self._planning:
            if self._planned is None or self._generation != self.task.generation:
                self._generation = self.task.generation
                self._planned = plan_stages(self.wire, self.session.worker, self.session.steps)
            return self._planned

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

        Raises:
            OpError: an op failed, a value did not arrive, or the step was cancelled.
        """
        planned = self.stages()
        if len(planned.stages) == 1 and not planned.arrivals and not self.sends and trace is None and not timeout_in_ms:
            stage = planned.stages[0]
            if not stage.plan.watched:
                return self._results(dict(zip(stage.fetches, stage.plan.execute(self._given(stage, feeds)))), fetches)
        table = self.task.rendezvous.table(step_id)
        state = RunState(timeout_in_ms)
        table.running += 1
        run = _Run(self, planned, step_id, table, state, trace, routes or {})
        table.on_abort(lambda error: state.cancel())
        if watch is not None:
            watch(table.abort)
        try:
            with running(state):
                values = run.go(feeds)
            return self._results(values, fetches)
        except CancelledError:
            if table.error is not None:
                raise table.error from None
            raise
        finally:
            table.running -= 1

    def _given(self, stage: Stage, feeds: dict[str, Any]) -> list[Any]:
        by_tensor = {}
        for key, value in feeds.items():
            edge = self.feeds.get(key)
            if edge is None:
                raise InvalidArgumentError(None, None, f"There is no feed with the key {key:.500}.")
            check_value(edge.tensor, value)
            by_tensor[edge.tensor] = value
        missing = [edge.tensor.name for edge in self.feeds.values() if edge.tensor not in by_tensor]
        if missing:
            raise InvalidArgumentError(None, None, f"Feeds are missing: {', '.join(missing)}.")
        return [by_tensor[tensor] for tensor in stage.feeds]

    def _results(self, values: dict[Tensor, Any], fetches: list[str]) -> list[Any]:
        results = []
        for key in fetches:
            edge = self.fetches.get(key)
            if edge is None:
                raise InvalidArgumentError(None, None, f"There is no fetch with the key {key:.500}.")
            results.append(values[edge.tensor])
        return results


def check_value(tensor: Tensor, value: Any) -> None:
    """Checks the dtype of a value that arrives from elsewhere.

    Raises:
        InvalidArgumentError: it is not the tensor's.
    """
    dtype = tensor.dtype.base_dtype
    if isinstance(value, np.ndarray):
        fits = dtype.name == "string"
    elif isinstance(value, torch.Tensor):
        fits = dtype.name not in ("string", "resource", "variant") and value.dtype == torch_dtype(dtype)
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
        planned: Stages,
        step_id: int,
        table: StepTable,
        state: RunState,
        trace: Any,
        routes: Mapping[str, Link],
    ) -> None:
        self.part, self.stages, self.step_id = part, planned.stages, step_id
        self.table, self.state, self.trace, self.routes = table, state, trace, routes
        self.numbers = planned.arrivals
        self.values: dict[Tensor, Any] = {}
        self.expected = set(part.remote)
        self.arrived: set[int] = set()
        self.done: set[int] = set()
        self.threads: list[threading.Thread] = []
        self.pushed: list[Any] = []

    def go(self, feeds: dict[str, Any]) -> dict[Tensor, Any]:
        for key, value in feeds.items():
            edge = self.part.feeds.get(key)
            if edge is None:
                raise InvalidArgumentError(None, None, f"There is no feed with the key {key:.500}.")
            check_value(edge.tensor, value)
            self.values[edge.tensor] = value
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
        return self.values

    def _ask_for_values(self) -> None:
        """Asks other tasks for the values that they do not send by themselves."""
        for edge in self.part.remote.values():
            source = task_of(edge.source)
            if not edge.is_pushed and source != self.part.task.name:
                self.part.task.peers.ask(source, self.step_id, edge, self.table)

    def _run_stages(self) -> None:
        waiting = list(range(len(self.stages)))
        while waiting or len(self.done) < len(self.stages):
            self._collect()
            ready = next((i for i in waiting if self._is_ready(self.stages[i])), None)
            if ready is None:
                self._wait()
                continue
            waiting.remove(ready)
            if self.stages[ready].blocking >= 0 and (waiting or self.threads):
                thread = threading.Thread(target=self._run_in_thread, args=(ready,), daemon=True)
                self.threads.append(thread)
                thread.start()
            else:
                self._run_stage(ready)

    def _is_ready(self, stage: Stage) -> bool:
        return stage.waits <= self.arrived and stage.before <= self.done

    def _collect(self) -> None:
        """Takes the values that have arrived."""
        with self.table.condition:
            if self.table.error is not None:
                raise self.table.error
            found = [key for key in self.expected if key in self.table.values]
            for key in found:
                tensor = self.part.remote[key].tensor
                self.values[tensor] = value = self.table.values.pop(key)
                check_value(tensor, value)
                self.arrived.add(self.numbers[tensor])
            self.expected.difference_update(found)

    def _wait(self) -> None:
        """Waits until a value arrives, a blocking stage ends, or the step fails."""
        done = len(self.done)

        def changed() -> bool:
            table = self.table
            return table.error is not None or len(self.done) > done or any(key in table.values for key in self.expected)

        with self.table.condition:
            what = ", ".join(sorted(self.part.remote[key].tensor.op.name for key in self.expected)[:3]) or "an op"
            wait_until(self.table.condition, changed, f"Waiting for {what}")

    def _run_in_thread(self, index: int) -> None:
        try:
            with running(self.state):
                self._run_stage(index)
        except OpError as error:
            self.table.abort(error)
        except BaseException as error:
            self.table.abort(InternalError(None, None, repr(error)))

    def _run_stage(self, index: int) -> None:
        stage = self.stages[index]
        given = [self.values[tensor] for tensor in stage.feeds]
        if self.trace is None:
            results = stage.plan.execute(given)
        else:
            metadata = RunMetadata()
            results = stage.plan.execute(given, RunOptions(trace_level=RunOptions.FULL_TRACE), metadata)
            for device in metadata.step_stats.dev_stats:
                device.device = f"{self.part.task.name}/device:CPU:0"
                self.trace.dev_stats.add().CopyFrom(device)
        made = dict(zip(stage.fetches, results))
        self._send(made)
        with self.table.condition:
            self.values.update(made)
            self.done.add(index)
            if stage.blocking >= 0:
                self.arrived.add(stage.blocking)
            self.table.condition.notify_all()

    def _send(self, made: dict[Tensor, Any]) -> None:
        """Sends the values that other tasks need: in one message to each stoker task, and on request to others."""
        pushed: dict[str, dict[str, Any]] = {}
        kept: dict[str, Any] = {}
        for tensor, value in made.items():
            for edge in self.part.sends.get(tensor, ()):
                destination = task_of(edge.destination)
                if edge.is_pushed and destination != self.part.task.name:
                    pushed.setdefault(destination, {})[edge.key] = value
                else:
                    kept[edge.key] = value
        if kept:
            self.table.put(kept)
        for destination, values in pushed.items():
            link = self.routes.get(destination)
            if link is not None:
                link.send_values(self.step_id, values)
                continue
            self.pushed.append(self.part.task.peers.push(destination, self.step_id, values, self.table))
