"""Where a session's runs go: a runner for each session, made by the factory of its target's scheme.

The empty target runs in this process, on a worker of the session's own. Other rooms register the schemes they serve.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

from stoker._src.base.errors import NotFoundError
from stoker._src.base.shapes import Shape
from stoker._src.graph.graph import Graph
from stoker._src.graph.tensor import Operation, Tensor
from stoker._src.runtime.devices import DeviceAttributes, described
from stoker._src.runtime.feeds import placed_converter
from stoker._src.runtime.fetches import FetchPlan
from stoker._src.runtime.plan import blocks
from stoker._src.runtime.plan.compiled import Plan
from stoker._src.runtime.resources import ResourceManager
from stoker._src.runtime.worker import Worker


class RunPlan(Protocol):
    """One set of fetches and feeds, ready to be run again and again (`Plan`)."""

    fetch: FetchPlan
    fed: list[int]
    """Positions of fetches that are also fed."""
    expands_feeds: bool
    graph_changes: int
    converters: list[Callable[[Any], Any]]

    @property
    def ops(self) -> list[Operation]: ...
    def execute(self, values: list[Any], options: Any = None, metadata: Any = None) -> list[Any]: ...
    def explain(self) -> str: ...


class Runner(Protocol):
    """What a session needs of the place it runs at."""

    @property
    def resources(self) -> ResourceManager: ...
    @property
    def closed(self) -> bool: ...
    def plan(
        self, graph: Graph, fetch: FetchPlan, feeds: list[Tensor], shapes: list[Shape] | None = None
    ) -> RunPlan: ...
    def converter(self, tensor: Tensor) -> Callable[[Any], Any]: ...
    def device_of(self, op: Operation) -> str: ...
    def list_devices(self) -> list[DeviceAttributes]: ...
    def reset(self, containers: list[str] | None) -> None: ...
    def close(self) -> None: ...


class LocalRunner:
    """Runs the plans of one session on a worker in this process."""

    def __init__(self, worker: Worker, config: Any, *, shared: bool = False) -> None:
        """A `shared` worker keeps its resources when the session closes."""
        self._worker = worker
        self._shared = shared
        self._steps = worker.client(config.operation_timeout_in_ms)
        # Devices and precision are those of the moment in which the session is made.
        self._placement = worker.compiler.placement

    @property
    def resources(self) -> ResourceManager:
        return self._worker.resources

    @property
    def closed(self) -> bool:
        return self._steps.closed

    def plan(self, graph: Graph, fetch: FetchPlan, feeds: list[Tensor], shapes: list[Shape] | None = None) -> Plan:
        return Plan(self._worker, self._steps, graph, fetch, feeds, shapes)

    def repeated(self, op: Operation) -> Callable[[], None] | None:
        """A function that runs `op` once or more at each call; None where it can only be once."""
        return blocks.repeated(self._worker, self._steps, op)

    def converter(self, tensor: Tensor) -> Callable[[Any], Any]:
        """What is done with a value fed for `tensor`."""
        return placed_converter(tensor, self._placement)

    def device_of(self, op: Operation) -> str:
        return self._placement.name(op)

    def list_devices(self) -> list[DeviceAttributes]:
        return described(self._placement)

    def reset(self, containers: list[str] | None) -> None:
        """Forgets the resources of `containers`, or of all."""
        self._worker.resources.reset(containers)

    def close(self) -> None:
        """Cancels the session's steps; the resources go with a worker that is its own."""
        self._steps.close()
        if not self._shared:
            self._worker.close()


SessionFactory = Callable[[str, Any], Runner]
"""Makes the runner of a session from its target and its ConfigProto."""


@dataclass(frozen=True)
class _Scheme:
    factory: SessionFactory
    reset: Callable[[str, list[str] | None, Any], None] | None


_schemes: dict[str, _Scheme] = {}


def register_session_target(
    scheme: str,
    factory: SessionFactory,
    reset: Callable[[str, list[str] | None, Any], None] | None = None,
) -> None:
    """Has sessions whose target starts with `scheme://` run where `factory` says.

    `reset(target, containers, config)` forgets resources of a place that outlives the sessions of this process.
    """
    _schemes[scheme] = _Scheme(factory, reset)


def _scheme_of(target: str) -> _Scheme:
    name, separator, _ = target.partition("://")
    if not target or (separator and name in _schemes and name):
        return _schemes[name]
    if separator and name == "grpc":
        raise NotImplementedError(f"Sessions on servers are missing: {target}")
    raise NotFoundError(
        None, None, f'No session factory registered for the given session options: {{target: "{target}"}}'
    )


def open_target(target: str, config: Any) -> Runner:
    """The runner of a session.

    Raises:
        NotFoundError: nobody serves the target's scheme.
        NotImplementedError: a server.
    """
    return _scheme_of(target).factory(target, config)


def reset_target(target: str, containers: list[str] | None, config: Any) -> None:
    """Forgets resources where `target` points, if they outlive the sessions of this process.

    Raises:
        NotFoundError: nobody serves the target's scheme.
        NotImplementedError: a server.
    """
    reset = _scheme_of(target).reset
    if reset is not None:
        reset(target, containers, config)


register_session_target("", lambda target, config: LocalRunner(Worker(config), config))
