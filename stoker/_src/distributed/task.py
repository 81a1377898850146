"""`Task`: the worker of one server. It owns the resources of its task and runs parts of graphs for masters."""

from __future__ import annotations

import itertools
import random
import threading
from contextlib import suppress
from functools import cached_property
from typing import Any

from stoker._src.base.devices import DeviceSpec
from stoker._src.base.errors import AbortedError, CancelledError, OpError
from stoker._src.distributed.part import Part
from stoker._src.distributed.rendezvous import Key, Rendezvous, task_of
from stoker._src.distributed.task_calls import Caller
from stoker._src.distributed.wire_graph import check_no_python, read_part
from stoker._src.formats.protos import ConfigProto, DeviceAttributes
from stoker._src.graph.function_graph import FuncGraph
from stoker._src.graph.tensor import Operation
from stoker._src.ops.support.waiting import wait_until
from stoker._src.runtime.devices import Placement, memory_of
from stoker._src.runtime.locks import VariablesLock
from stoker._src.runtime.resources import NodeContext, ResourceManager
from stoker._src.runtime.worker import RunningSteps, Worker

STOKER = "stoker"
"""What a stoker task's devices state as their description, by which others recognize it."""


class TaskPlacement(Placement):
    """The devices of a task. An op that is here was placed here, so the task in its device's name does not matter."""

    def is_here(self, spec: DeviceSpec) -> bool:
        return True


class SessionWorker(Worker):
    """What a session sees of a task: its resources, and the states of the session's nodes by name."""

    def __init__(self, config: Any, prefix: str, resources: ResourceManager, lock: VariablesLock) -> None:
        super().__init__(config)
        self._prefix = prefix
        self.resources = resources
        self.variables_lock = lock
        self.private = ResourceManager()
        self._by_name: dict[str, NodeContext] = {}

    @cached_property
    def placement(self) -> Placement:
        return TaskPlacement(self.config, self._prefix)

    def node_context(self, op: Operation) -> NodeContext:
        """Returns the context of a node: the same in every graph of the session, so that a random op goes on with its numbers."""
        if isinstance(op.graph, FuncGraph):
            return super().node_context(op)  # a node of a function; its name is not unique
        found = self._by_name.get(op.name)
        if found is None:
            device = self.placement.variable_device(op)
            resources = self.private if _is_private(op) else self.resources
            found = self._by_name.setdefault(op.name, NodeContext(op.name, resources, device))
        return found


_VARIABLES = ("Variable", "VariableV2", "VarHandleOp")


def _is_private(op: Operation) -> bool:
    """Whether a queue, accumulator or table belongs to its session: it has no name under which others could share it."""
    attrs = op.attrs
    return attrs.get("shared_name") == "" and op.type not in _VARIABLES and not attrs.get("use_node_name_sharing")


class WorkerSession:
    """A session's graphs at a task."""

    def __init__(self, worker: SessionWorker, caller: Caller) -> None:
        self.worker, self.caller = worker, caller
        self.steps = RunningSteps()
        self.parts: dict[str, Part] = {}


class Task:
    """The worker of one task. All methods may be called from many threads."""

    def __init__(self, name: str, config: Any, peers: Any = None) -> None:
        """`name` is `/job:worker/replica:0/task:1`; `peers` opens connections to the other tasks."""
        self.name = name
        self.config = ConfigProto() if config is None else config
        self.peers = peers
        self.resources = ResourceManager()
        self.lock = VariablesLock()
        self.generation = 0  # counts resets, after which plans must look for their resources again
        self.rendezvous = Rendezvous()
        self.incarnation = random.SystemRandom().getrandbits(63) | 1
        self._numbers = itertools.count()
        self._guard = threading.Lock()
        self._sessions: dict[str, WorkerSession] = {}
        self.closed = False

    @cached_property
    def _prefix(self) -> str:
        return f"{self.name}/device:"

    def devices(self) -> list[Any]:
        """Returns the DeviceAttributes of this task's devices."""
        return [
            DeviceAttributes(
                name=name,
                device_type=name.rsplit(":", 2)[1],
                memory_limit=memory_of(name),
                incarnation=self.incarnation,
                physical_device_desc=STOKER,
            )
            for name in TaskPlacement(self.config, self._prefix).names()
        ]

    # -- sessions ------------------------------------------------------------------------------------------------

    def create_worker_session(self, handle: str, *, isolated: bool = False, config: Any = None) -> None:
        with self._guard:
            resources, lock = (ResourceManager(), VariablesLock()) if isolated else (self.resources, self.lock)
            worker = SessionWorker(config or self.config, self._prefix, resources, lock)
            self._sessions[handle] = WorkerSession(worker, Caller(self.peers, handle))

    def delete_worker_session(self, handle: str) -> None:
        with self._guard:
            session = self._sessions.pop(handle, None)
        if session is not None:
            session.steps.close()
            session.worker.private.reset()
            if session.worker.resources is not self.resources:
                session.worker.resources.reset()

    def _session(self, handle: str, created: bool) -> WorkerSession:
        with self._guard:
            session = self._sessions.get(handle if created else "")
            if session is None and not created:
                worker = SessionWorker(self.config, self._prefix, self.resources, self.lock)
                session = self._sessions[""] = WorkerSession(worker, Caller(self.peers, handle))
        if session is None:
            raise AbortedError(
                None,
                None,
                f"Session handle is not found: {handle:.100}. Possibly this worker ({self.name}) just restarted.",
            )
        return session

    # -- graphs --------------------------------------------------------------------------------------------------

    def register_graph(
        self,
        session_handle: str,
        graph_def: Any,
        *,
        created: bool = True,
        trusted: bool = False,
        combined: bool = False,
    ) -> str:
        """Imports a part of a graph and returns its handle.

        Only a `trusted` caller, in this process, may have Python functions called. If `combined`, the frames of divided loops are numbered
        as in TensorFlow 2.
        """
        session = self._session(session_handle, created)
        if not trusted:
            check_no_python(graph_def)
        handle = f"{next(self._numbers):016x}"
        session.parts[handle] = Part(self, session, read_part(graph_def), combined=combined)
        return handle

    def deregister_graph(self, session_handle: str, graph_handle: str, *, created: bool = True) -> None:
        if self._session(session_handle, created).parts.pop(graph_handle, None) is None:
            raise self._unknown_graph(graph_handle)

    def _unknown_graph(self, handle: str) -> AbortedError:
        return AbortedError(
            None, None, f"Graph handle is not found: {handle:.100}. Possibly, this worker ({self.name}) just restarted."
        )

    def part(self, session_handle: str, graph_handle: str, *, created: bool = True) -> Part:
        part = self._session(session_handle, created).parts.get(graph_handle)
        if part is None:
            raise self._unknown_graph(graph_handle)
        return part

    def cleanup_graph(self, step_id: int, error: OpError | None = None) -> None:
        """Ends a step: values that were not fetched are dropped, and what still runs is cancelled."""
        self.rendezvous.end(step_id, error)

    def cleanup_all(self, containers: list[str]) -> None:
        """Drops the resources of `containers`, or of all containers."""
        self.resources.reset(containers or None)
        self.generation += 1

    # -- values --------------------------------------------------------------------------------------------------

    def deliver(self, step_id: int, values: dict[str, Any]) -> None:
        """Takes values that another task sent."""
        self.rendezvous.deliver(step_id, values)

    def refuse(self, step_id: int, error: OpError) -> None:
        """Ends a step whose values were refused."""
        with suppress(AbortedError):
            self.rendezvous.table(step_id).abort(error)

    def take(self, step_id: int, key: str) -> Any:
        """Returns a value that a part of this task sends, as soon as it is there.

        Raises:
            AbortedError: the value comes from another incarnation of this task: it was restarted.
            InvalidArgumentError: `key` is not a key.
        """
        parsed = Key(key)
        if task_of(parsed.source) == self.name and parsed.incarnation != self.incarnation:
            raise AbortedError(
                None,
                None,
                f"RecvTensor expects a different device incarnation: {parsed.incarnation} vs. {self.incarnation}. Your "
                f"worker job ({self.name}) was probably restarted. Check your worker job for the reason why it was restarted.",
            )
        table = self.rendezvous.table(step_id)
        with table.condition:
            waiter = object()
            table.wanted[waiter] = [[key]]
            try:
                wait_until(
                    table.condition, lambda: key in table.values or table.error is not None, f"RecvTensor of {key}"
                )
            finally:
                del table.wanted[waiter]
            if key not in table.values:
                assert table.error is not None
                raise table.error
            return table.values.pop(key)

    def close(self) -> None:
        """Cancels everything that runs and drops all resources."""
        with self._guard:
            self.closed = True
            sessions = list(self._sessions.values())
        for session in sessions:
            session.steps.close()
            session.worker.private.reset()
        self.rendezvous.end_all(CancelledError(None, None, f"The server of {self.name} was shut down."))
        self.resources.reset()
