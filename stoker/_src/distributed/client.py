"""Sessions on servers: the client's side. A server in this process is called directly, any other through gRPC."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any, Protocol

from stoker._src.base.errors import CancelledError, OpError, UnimplementedError
from stoker._src.base.shapes import Shape
from stoker._src.distributed.master import DividedRun, Master, MasterSession
from stoker._src.distributed.partial_runs import PartialRuns
from stoker._src.distributed.rpc import MasterConnection
from stoker._src.distributed.statuses import raised
from stoker._src.formats.protos import ConfigProto, RunOptions, StepStats
from stoker._src.graph.graph import Graph
from stoker._src.graph.interchange.graph_def import graph_def_and_names
from stoker._src.graph.tensor import Operation, Tensor
from stoker._src.runtime.devices import DeviceAttributes
from stoker._src.runtime.feeds import converter
from stoker._src.runtime.fetches import FetchPlan
from stoker._src.runtime.resources import ResourceManager

local_masters: dict[str, Master] = {}
"""The masters of the servers in this process, by target."""


class Remote(Protocol):
    """A session at a master, near or far."""

    def extend(self, graph_def: Any) -> None: ...
    def prepare(self, feeds: list[str], fetches: list[str], targets: list[str]) -> Any: ...
    def run(self, prepared: Any, values: list[Any], options: Any, metadata: Any) -> list[Any]: ...
    def partial_run_setup(self, feeds: list[str], fetches: list[str], targets: list[str]) -> str: ...
    def partial_run(
        self, handle: str, feeds: list[str], fetches: list[str], targets: list[str], values: list[Any]
    ) -> list[Any]: ...
    def devices(self) -> list[Any]: ...
    def close(self) -> None: ...


class NearSession:
    """A session at a master in this process."""

    def __init__(self, master: Master, graph_def: Any, config: Any) -> None:
        self._session: MasterSession = master.create_session(graph_def, config, trusted=True)
        self._master = master
        self._partial_runs = PartialRuns(master)

    @property
    def resources(self) -> ResourceManager:
        return self._master.task._session(self._session.handle, True).worker.resources

    def extend(self, graph_def: Any) -> None:
        self._session.extend(graph_def, self._session.version)

    def prepare(self, feeds: list[str], fetches: list[str], targets: list[str]) -> DividedRun:
        return self._session.divided(tuple(feeds), tuple(fetches), tuple(targets))

    def run(self, prepared: DividedRun, values: list[Any], options: Any, metadata: Any) -> list[Any]:
        if options is None:
            return prepared.run(values)
        trace = None
        if metadata is not None and options.trace_level >= RunOptions.SOFTWARE_TRACE:
            trace = StepStats()
        results = prepared.run(values, timeout_in_ms=options.timeout_in_ms, trace=trace)
        if metadata is not None and trace is not None:
            metadata.step_stats.MergeFromString(trace.SerializeToString())
        if metadata is not None and options.output_partition_graphs:
            for part in prepared.parts:
                metadata.partition_graphs.add().MergeFromString(part.graph_def.SerializeToString())
        return results

    def partial_run_setup(self, feeds: list[str], fetches: list[str], targets: list[str]) -> str:
        return self._partial_runs.set_up(self._session.handle, feeds, fetches, targets)

    def partial_run(
        self, handle: str, feeds: list[str], fetches: list[str], targets: list[str], values: list[Any]
    ) -> list[Any]:
        return self._partial_runs.go_on(handle, self._session.handle, dict(zip(feeds, values)), fetches, targets)

    def devices(self) -> list[Any]:
        return self._session.devices()

    def close(self) -> None:
        if not self._session.closed:
            self._master.close_session(self._session.handle)


def open_remote(target: str, graph_def: Any, config: Any) -> Remote:
    master = local_masters.get(target)
    return NearSession(master, graph_def, config) if master is not None else MasterConnection(target, graph_def, config)


def reset(target: str, containers: list[str] | None, config: Any) -> None:
    """Drops resources at every task of the cluster that `target` belongs to."""
    filters = list(config.device_filters) if config is not None else []
    master = local_masters.get(target)
    if master is not None:
        master.reset(containers or [], filters)
    else:
        MasterConnection.reset(target, containers or [], filters)


class ServerRunner:
    """Runs the plans of one session on a server. The session there is created at the first run, and extended with the graph."""

    def __init__(self, target: str, config: Any) -> None:
        self._target = target
        self._config = ConfigProto() if config is None else config
        self._guard = threading.Lock()
        self._remote: Remote | None = None
        self._sent = 0  # nodes that the server knows
        self._renamed: dict[str, str] = {}
        self.closed = False

    @property
    def resources(self) -> ResourceManager:
        if isinstance(self._remote, NearSession):
            return self._remote.resources
        raise UnimplementedError(None, None, f"Tensors kept by a session on {self._target} can only be used there.")

    def _up_to_date(self, graph: Graph) -> Remote:
        """Returns the session at the server, which knows the whole graph."""
        with self._guard:
            if self.closed:
                raise CancelledError(None, None, "Session has been closed.")
            count = graph.version
            if self._remote is None:
                graph_def, self._renamed = graph_def_and_names(graph)
                self._remote = open_remote(self._target, graph_def, self._config)
                self._sent = count
            elif count > self._sent:
                graph_def, renamed = graph_def_and_names(graph, from_version=self._sent)
                self._renamed |= renamed
                self._remote.extend(graph_def)
                self._sent = count
            return self._remote

    def plan(
        self, graph: Graph, fetch: FetchPlan, feeds: list[Tensor], shapes: list[Shape] | None = None
    ) -> ServerPlan:
        return ServerPlan(self, graph, fetch, feeds)

    def prepare(self, plan: ServerPlan) -> tuple[Remote, Any]:
        remote = self._up_to_date(plan.graph)
        return remote, remote.prepare(*self._names(plan.fetch, plan.feeds))

    def _names(self, fetch: FetchPlan, feeds: list[Tensor]) -> tuple[list[str], list[str], list[str]]:
        return (
            [tensor.name for tensor in feeds],
            [self._name(tensor) for tensor in fetch.tensors],
            [op.name for op in fetch.targets],
        )

    def partial_run_setup(self, graph: Graph, fetch: FetchPlan, feeds: list[Tensor]) -> str:
        try:
            return self._up_to_date(graph).partial_run_setup(*self._names(fetch, feeds))
        except OpError as error:
            raise raised(error, graph) from error

    def partial_run(self, handle: str, graph: Graph, fetch: FetchPlan, feeds: dict[Tensor, Any]) -> list[Any]:
        try:
            remote = self._up_to_date(graph)
            return remote.partial_run(handle, *self._names(fetch, list(feeds)), list(feeds.values()))
        except OpError as error:
            raise raised(error, graph) from error

    def _name(self, tensor: Tensor) -> str:
        text = self._renamed.get(tensor._as_node_def_input())
        return tensor.name if text is None else text if ":" in text else f"{text}:0"

    def converter(self, tensor: Tensor) -> Callable[[Any], Any]:
        return converter(tensor)

    def device_of(self, op: Operation) -> str:
        return op.device

    def list_devices(self) -> list[DeviceAttributes]:
        remote = self._remote
        if remote is None:
            remote = self._up_to_date(Graph())
            self._sent = 0
        return [
            DeviceAttributes(device.name, device.device_type, device.memory_limit, device.incarnation)
            for device in remote.devices()
        ]

    def reset(self, containers: list[str] | None) -> None:
        """Does nothing: the server drops its resources and ends the sessions itself."""

    def close(self) -> None:
        with self._guard:
            self.closed = True
            remote, self._remote = self._remote, None
        if remote is not None:
            remote.close()


class ServerPlan:
    """One set of fetches and feeds of a session on a server."""

    def __init__(self, runner: ServerRunner, graph: Graph, fetch: FetchPlan, feeds: list[Tensor]) -> None:
        self._runner = runner
        self.graph, self.fetch, self.feeds = graph, fetch, feeds
        self.fed = [i for i, tensor in enumerate(fetch.tensors) if tensor in feeds]
        self.expands_feeds = False
        self.graph_changes = graph.changes
        self.converters = [converter(tensor) for tensor in feeds]
        self.ops: list[Operation] = []  # the server logs placement
        try:
            self._remote, self._prepared = runner.prepare(self)
        except OpError as error:
            raise raised(error, graph) from error

    def execute(self, values: list[Any], options: Any = None, metadata: Any = None) -> list[Any]:
        for name, message in (("options", options), ("run_metadata", metadata)):
            if message is not None and not hasattr(message, "SerializeToString"):
                raise TypeError(f"Argument `{name}` must be a message, but got {type(message)!r}.")
        if self._runner.closed:
            raise CancelledError(None, None, "Session has been closed.")
        try:
            return self._remote.run(self._prepared, list(values), options, metadata)
        except OpError as error:
            raise raised(error, self.graph) from error

    def explain(self) -> str:
        """Returns the parts of the run, if the server is in this process."""
        parts = getattr(self._prepared, "parts", None)
        if parts is None:
            return f"runs at {self._runner._target}"
        lines = []
        for part in parts:
            lines.append(part.task)
            lines += [f"  {node.name} = {node.op}({', '.join(node.input)})" for node in part.graph_def.node]
        return "\n".join(lines)
