"""`Master`: serves sessions. A session's graph is divided over the tasks of the cluster, and a step runs all parts at once."""

from __future__ import annotations

import itertools
import random
import threading
import time
from collections import OrderedDict
from typing import Any

from stoker._src.base import tf_logging
from stoker._src.base.devices import DeviceSpec
from stoker._src.base.errors import (
    AbortedError,
    CancelledError,
    InvalidArgumentError,
    NotFoundError,
    OpError,
)
from stoker._src.distributed.bodies import Cluster, divide_bodies
from stoker._src.distributed.links import Link
from stoker._src.distributed.partition import TaskPart, partition
from stoker._src.distributed.placer import Placer
from stoker._src.distributed.task import STOKER, Task
from stoker._src.distributed.wire_graph import check_no_python, import_graph
from stoker._src.formats.protos import ConfigProto, GraphDef
from stoker._src.graph.graph import Graph
from stoker._src.graph.tensor import Operation, Tensor
from stoker._src.ops.support.waiting import RunState

_MOST_SIGNATURES = 512  # divided graphs per session
_SECONDS_BETWEEN_WARNINGS = 10.0
_SECONDS_BETWEEN_CHECKS = 0.2  # whether a call that waits for other tasks was cancelled


class Signature(tuple):
    """The names of what a run gets and wants: (feeds, fetches, targets)."""


class Master:
    """The master of one server. Clients in this process call its methods; others call them through `MasterService`."""

    def __init__(self, task: Task, tasks: dict[str, str], config: Any) -> None:
        """`tasks` are the addresses of all tasks of the cluster by name, this one included."""
        self.task, self.tasks, self.config = task, tasks, config
        self._guard = threading.Lock()
        self._sessions: dict[str, MasterSession] = {}

    def create_session(
        self, graph_def: Any, config: Any, *, trusted: bool, state: RunState | None = None
    ) -> MasterSession:
        """Opens a session, once all tasks that it can use have answered.

        Args:
            graph_def: the first nodes of the graph.
            config: a ConfigProto.
            trusted: whether the client is in this process, so that Python functions may be called.
            state: the state of the call, which may be cancelled.
        """
        merged = ConfigProto()
        if self.config is not None:
            merged.CopyFrom(self.config)
        merged.MergeFrom(config)
        tasks = self._filtered(list(merged.device_filters))
        if merged.cluster_def.job and not self._is_cluster(merged.cluster_def):
            raise InvalidArgumentError(
                None,
                None,
                "ConfigProto.cluster_def names another cluster than the one the server was started with, which is not supported: "
                f"{sorted(self.tasks.items())}",
            )
        session = MasterSession(self, merged, tasks, trusted=trusted)
        session.connect(state)
        session.extend(graph_def, 0)
        with self._guard:
            self._sessions[session.handle] = session
        return session

    def _is_cluster(self, cluster_def: Any) -> bool:
        """Whether a ClusterDef has the tasks of this cluster."""
        named = {
            f"/job:{job.name}/replica:0/task:{index}": address
            for job in cluster_def.job
            for index, address in job.tasks.items()
        }
        return named.keys() == self.tasks.keys() and all(
            address == self.tasks[name] for name, address in named.items() if name != self.task.name
        )

    def _filtered(self, filters: list[str]) -> list[str]:
        """Returns the tasks that a session with these device filters can use. Its own task is always among them."""
        if not filters:
            return list(self.tasks)
        try:
            specs = [DeviceSpec.from_string(text) for text in filters]
        except ValueError as error:
            raise InvalidArgumentError(None, None, f"Invalid device filter: {error}") from None
        return [
            name
            for name in self.tasks
            if name == self.task.name or any(_matches(spec, DeviceSpec.from_string(name)) for spec in specs)
        ]

    def session(self, handle: str) -> MasterSession:
        found = self._sessions.get(handle)
        if found is None:
            raise _not_found(handle)
        return found

    def close_session(self, handle: str) -> None:
        session = self.session(handle)
        with self._guard:
            self._sessions.pop(handle, None)
        session.close()

    def devices(self, tasks: list[str] | None = None, state: RunState | None = None) -> dict[str, list[Any]]:
        """Returns the DeviceAttributes of each task. Waits until all have answered."""
        found: dict[str, list[Any]] = {}
        found[self.task.name] = self.task.devices()
        calls = {
            name: self.task.peers.connect(name).get_status() for name in (tasks or self.tasks) if name != self.task.name
        }
        warned = time.monotonic()
        try:
            while len(found) <= len(calls):
                for name, call in calls.items():
                    if name not in found:
                        devices = call.poll(_SECONDS_BETWEEN_CHECKS)
                        if devices is not None:
                            found[name] = devices
                    if state is not None:
                        state.check("CreateSession")
                if time.monotonic() - warned > _SECONDS_BETWEEN_WARNINGS:
                    warned = time.monotonic()
                    for name in calls.keys() - found.keys():
                        tf_logging.info("CreateSession still waiting for response from worker: %s", name)
        finally:
            for call in calls.values():
                call.cancel()
        return found

    def reset(self, containers: list[str], filters: list[str]) -> None:
        """Drops the resources of `containers`, or of all containers, at every task. This master's sessions end with AbortedError."""
        self._close_sessions(aborted=True)
        self.task.cleanup_all(containers)
        calls = [
            self.task.peers.connect(name).cleanup_all(containers)
            for name in self._filtered(filters)
            if name != self.task.name
        ]
        for call in calls:
            call()

    def close(self) -> None:
        self._close_sessions()

    def _close_sessions(self, *, aborted: bool = False) -> None:
        with self._guard:
            sessions = list(self._sessions.values())
            self._sessions.clear()
        for session in sessions:
            session.close(_not_found(session.handle) if aborted else None)


def _not_found(handle: str) -> AbortedError:
    text = f"Session {handle:.100} is not found. Possibly, this master has restarted, or tf.Session.reset was called."
    return AbortedError(None, None, text)


def _matches(spec: DeviceSpec, task: DeviceSpec) -> bool:
    return all(getattr(spec, part) in (None, getattr(task, part)) for part in ("job", "replica", "task"))


class MasterSession:
    """One session: its graph, and how each kind of run is divided."""

    def __init__(self, master: Master, config: Any, tasks: list[str], *, trusted: bool) -> None:
        self.master, self.config, self.tasks, self.trusted = master, config, tasks, trusted
        self.handle = f"{random.SystemRandom().getrandbits(64):016x}"
        self.version = 0
        self._end: OpError | None = None
        self._guard = threading.RLock()
        self._graph_def = GraphDef()
        self._graph: Graph | None = None
        self._placer: Placer | None = None
        self._devices: dict[str, Any] = {}
        self._pushing: set[str] = set()
        self._local_device = ""
        self._divided: OrderedDict[Any, DividedRun] = OrderedDict()
        self._callables: dict[int, Any] = {}
        self._numbers = itertools.count(1)
        self._running: set[StepRun] = set()

    def connect(self, state: RunState | None) -> None:
        """Finds the devices of all tasks and opens the session there."""
        by_task = self.master.devices(self.tasks, state)
        self._devices = {device.name: device for devices in by_task.values() for device in devices}
        self._local_device = by_task[self.local][0].name
        self._pushing = {name for name, devices in by_task.items() if devices[0].physical_device_desc == STOKER}
        for name in self._pushing - {self.local}:
            self.master.task.peers.connect(name).connection.recognize()
        isolated = self.config.isolate_session_state
        self.master.task.create_worker_session(self.handle, isolated=isolated, config=self.config)
        calls = [
            self.master.task.peers.connect(name).create_worker_session(self.handle, isolated)
            for name in self.tasks
            if name != self.master.task.name
        ]
        for call in calls:
            call()

    def devices(self) -> list[Any]:
        return list(self._devices.values())

    @property
    def local(self) -> str:
        return self.master.task.name

    # -- the graph -----------------------------------------------------------------------------------------------

    def extend(self, graph_def: Any, version: int) -> int:
        """Adds nodes to the graph. Returns the version after it.

        Raises:
            AbortedError: the client extends another version than the current one.
        """
        with self._guard:
            self.check_open()
            if version != self.version:
                raise AbortedError(None, None, f"Current version is {self.version}, but the caller expected {version}.")
            if not self.trusted:
                check_no_python(graph_def)
            names = {node.name for node in self._graph_def.node}
            for node in graph_def.node:
                if node.name in names:
                    raise InvalidArgumentError(
                        None, None, f"Repeatedly extending the graph with the node '{node.name:.200}' is not allowed."
                    )
            known = {function.signature.name for function in self._graph_def.library.function}
            self._graph_def.node.extend(graph_def.node)
            self._graph_def.library.function.extend(
                function for function in graph_def.library.function if function.signature.name not in known
            )
            pairs = {each.function_name for each in self._graph_def.library.gradient}
            self._graph_def.library.gradient.extend(
                each for each in graph_def.library.gradient if each.function_name not in pairs
            )
            self._graph_def.versions.MergeFrom(graph_def.versions)
            if graph_def.node:
                self._graph = self._placer = None
                self.version += 1
            return self.version

    def graph(self) -> Graph:
        with self._guard:
            if self._graph is None:
                cluster = Cluster(self._devices, self.local, self._pushing, self.config.allow_soft_placement)
                self._graph = divide_bodies(import_graph(self._graph_def), cluster)
                self._placer = cluster.placer(self._graph)
            return self._graph

    def divided(self, feeds: tuple[str, ...], fetches: tuple[str, ...], targets: tuple[str, ...]) -> DividedRun:
        """Returns the parts of a run, registered at their tasks."""
        key = (feeds, fetches, targets)
        with self._guard:
            self.check_open()
            found = self._divided.get(key)
            if found is None:
                try:
                    found = DividedRun(self, feeds, fetches, targets)
                except OpError as error:
                    self.check_open(error)
                    raise
                while len(self._divided) >= _MOST_SIGNATURES:
                    self._divided.popitem(last=False)[1].forget()
                self._divided[key] = found
            return found

    def divide(self, feeds: list[Tensor], fetches: list[Tensor], targets: list[Operation]) -> list[TaskPart]:
        graph = self.graph()
        assert self._placer is not None
        return partition(graph, feeds, fetches, targets, self._placer, self._devices, self._pushing, self._local_device)

    def tensor(self, name: str, what: str) -> Tensor:
        node, _, index = name.partition(":")
        op = self.graph()._by_name.get(node)
        if op is None or not (index or "0").isdigit() or int(index or 0) >= len(op.outputs):
            raise NotFoundError(None, None, f"{what}: not found: {name:.500}")
        return op.outputs[int(index or 0)]

    def operation(self, name: str) -> Operation:
        op = self.graph()._by_name.get(name.partition(":")[0])
        if op is None:
            raise NotFoundError(None, None, f"PruneForTargets: Some target nodes not found: {name:.500}")
        return op

    # -- running -------------------------------------------------------------------------------------------------

    def begin(self, run: StepRun) -> None:
        with self._guard:
            self.check_open()
            self._running.add(run)

    def end(self, run: StepRun) -> None:
        with self._guard:
            self._running.discard(run)

    @property
    def closed(self) -> bool:
        return self._end is not None

    def check_open(self, cause: OpError | None = None) -> None:
        """Raises the error of a session that was closed, a new one for each thread."""
        if self._end is not None:
            raise type(self._end)(None, None, self._end.message) from cause

    def close(self, error: OpError | None = None) -> None:
        """Ends the session's steps, those that run and later ones, with an error, and forgets its graphs at all tasks."""
        error = error or CancelledError(None, None, "Session has been closed.")
        with self._guard:
            if self.closed:
                return
            self._end = error
            running = list(self._running)
            self._divided.clear()
        for run in running:
            run.abort(error)
        self.master.task.delete_worker_session(self.handle)
        for name in self.tasks:
            if name != self.local:
                self.master.task.peers.connect(name).delete_worker_session(self.handle)

    # -- callables -----------------------------------------------------------------------------------------------

    def make_callable(self, options: Any) -> int:
        if options.tensor_connection:
            raise InvalidArgumentError(None, None, "CallableOptions.tensor_connection is not supported by servers.")
        with self._guard:
            self.check_open()
            number = next(self._numbers)
            self._callables[number] = options
        return number

    def callable(self, number: int) -> Any:
        found = self._callables.get(number)
        if found is None:
            raise InvalidArgumentError(None, None, f"No such callable handle: {number}")
        return found

    def release_callable(self, number: int) -> None:
        if self._callables.pop(number, None) is None:
            raise InvalidArgumentError(None, None, f"No such callable handle: {number}")


class DividedRun:
    """The parts of one kind of run, registered at their tasks."""

    def __init__(
        self, session: MasterSession, feeds: tuple[str, ...], fetches: tuple[str, ...], targets: tuple[str, ...]
    ) -> None:
        self.session = session
        self.feeds = [session.tensor(name, "FeedInputs: unable to find feed output") for name in feeds]
        self.fetches = [session.tensor(name, "FetchOutputs node") for name in fetches]
        ops = [session.operation(name) for name in targets]
        if len(set(self.feeds)) != len(self.feeds):
            raise InvalidArgumentError(None, None, "Endpoint fed more than once.")
        self.parts = session.divide(self.feeds, self.fetches, ops)
        self.handles: dict[str, str] = {}
        self._register()
        at = {tensor: index for index, tensor in enumerate(self.feeds)}
        self.positions = [at.get(tensor, -1) for tensor in self.fetches]
        # Per part: (key, position among the feeds) and (key, fetched tensor).
        self.given = [[(key, at[tensor]) for tensor, key in part.feeds.items()] for part in self.parts]
        self.wanted = [list(part.fetches.items()) for part in self.parts]

    def _register(self) -> None:
        session, task = self.session, self.session.master.task
        calls = {
            part.task: task.peers.connect(part.task).register_graph(
                session.handle, part.graph_def, session.config.graph_options
            )
            for part in self.parts
            if part.task != task.name
        }
        for part in self.parts:
            if part.task == task.name:
                self.handles[part.task] = task.register_graph(session.handle, part.graph_def, trusted=session.trusted)
        for name, call in calls.items():
            self.handles[name] = call()

    def forget(self) -> None:
        session, task = self.session, self.session.master.task
        for name, handle in self.handles.items():
            if name == task.name:
                task.deregister_graph(session.handle, handle)
            else:
                task.peers.connect(name).deregister_graph(session.handle, handle)

    def run(
        self, values: list[Any], *, timeout_in_ms: int = 0, trace: Any = None, state: RunState | None = None
    ) -> list[Any]:
        """Runs a step: `values` are those of the feeds. Returns those of the fetches."""
        run = StepRun(self, timeout_in_ms or self.session.config.operation_timeout_in_ms, trace)
        self.session.begin(run)
        try:
            fetched = run.go(values, state)
        except OpError as error:
            # A step that meets the end of its session may fail in many ways; what counts is that it was closed.
            self.session.check_open(error)
            raise
        finally:
            self.session.end(run)
        return [
            values[position] if position >= 0 else fetched[tensor]
            for position, tensor in zip(self.positions, self.fetches)
        ]


class StepRun:
    """One step: its parts at work, and the first error among them."""

    def __init__(self, divided: DividedRun, timeout_in_ms: int, trace: Any) -> None:
        self.divided, self.timeout_in_ms, self.trace = divided, timeout_in_ms, trace
        self.step_id = random.getrandbits(56)
        self._guard = threading.Lock()
        self.error: OpError | None = None
        self._cancels: list[Any] = []

    def abort(self, error: OpError) -> None:
        """Ends the step with an error, unless it has one."""
        with self._guard:
            if self.error is not None and not (
                isinstance(self.error, CancelledError) and not isinstance(error, CancelledError)
            ):
                return
            self.error = error
            cancels, self._cancels = self._cancels, []
        for cancel in cancels:
            cancel(error)

    def _on_abort(self, cancel: Any) -> None:
        with self._guard:
            if self.error is None:
                self._cancels.append(cancel)
                return
            error = self.error
        cancel(error)

    def go(self, values: list[Any], state: RunState | None) -> dict[Tensor, Any]:
        divided, session = self.divided, self.divided.session
        task = session.master.task
        if state is not None:
            state.on_cancel(lambda: self.abort(CancelledError(None, None, "RunStep was cancelled.")))
        fetched: dict[Tensor, Any] = {}
        calls: list[tuple[int, Any]] = []
        routes: dict[str, Link] = {}
        local = -1
        first_served = self._first_served()
        try:
            for index, part in enumerate(divided.parts):
                if part.task == task.name:
                    local = index
                    continue
                feeds = {key: values[position] for key, position in divided.given[index]}
                connection = task.peers.connect(part.task)
                link = connection.link() if part.task in session._pushing else None
                if link is not None:
                    routes[part.task] = link
                call = connection.run_graph(
                    session.handle,
                    divided.handles[part.task],
                    self.step_id,
                    feeds,
                    [key for _, key in divided.wanted[index]],
                    self.timeout_in_ms,
                    self.trace,
                    self.abort,
                    link,
                    held=part.waits_first and part.task in first_served,
                )
                self._on_abort(call.cancel)
                calls.append((index, call))
            if local >= 0:
                self._run_local(local, values, fetched, routes)
                for link in routes.values() if first_served and self.error is None else ():
                    link.release(self.step_id)
            for index, call in calls:
                try:
                    results = call.result()
                except OpError as error:
                    self.abort(error)
                    continue
                fetched.update(zip((tensor for tensor, _ in divided.wanted[index]), results))
        finally:
            if self.error is not None or session._pushing != set(session.tasks) or self.trace is not None:
                self._clean_up()
            else:
                task.cleanup_graph(self.step_id)
        if self.error is not None:
            raise self.error
        return fetched

    def _first_served(self) -> set[str]:
        """Returns the tasks that get values from the part of the master's own task at the beginning of the step."""
        divided, task = self.divided, self.divided.session.master.task
        handle = divided.handles.get(task.name)
        if handle is None or not any(part.waits_first for part in divided.parts):
            return set()
        return task.part(divided.session.handle, handle).first_served()

    def _run_local(self, index: int, values: list[Any], fetched: dict[Tensor, Any], routes: dict[str, Link]) -> None:
        divided = self.divided
        task = divided.session.master.task
        feeds = {key: values[position] for key, position in divided.given[index]}
        wanted = divided.wanted[index]
        try:
            part = task.part(divided.session.handle, divided.handles[task.name])
            results = part.run(
                self.step_id,
                feeds,
                [key for _, key in wanted],
                timeout_in_ms=self.timeout_in_ms,
                trace=self.trace,
                watch=self._on_abort,
                routes=routes,
            )
            fetched.update(zip((tensor for tensor, _ in wanted), results))
        except OpError as error:
            self.abort(error)

    def _clean_up(self) -> None:
        """Ends the step at every task that took part."""
        task = self.divided.session.master.task
        error = self.error
        for part in self.divided.parts:
            if part.task == task.name:
                task.cleanup_graph(self.step_id, error)
            else:
                task.peers.connect(part.task).cleanup_graph(self.step_id)
