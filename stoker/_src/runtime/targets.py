"""Session targets: each session has a runner, created by the factory for its target's scheme.

The empty target runs in this process, on the session's own worker. Other packages register the schemes they implement.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

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
    """One set of fetches and feeds, ready for repeated runs (`Plan`)."""

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
    """The interface between a session and the place it runs at."""

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


@runtime_checkable
class PartialRunner(Protocol):
    """A runner whose place has partial runs of its own."""

    def partial_run_setup(self, graph: Graph, fetch: FetchPlan, feeds: list[Tensor]) -> str: ...
    def partial_run(self, handle: str, graph: Graph, fetch: FetchPlan, feeds: dict[Tensor, Any]) -> list[Any]: ...
    def converter(self, tensor: Tensor) -> Callable[[Any], Any]: ...


class LocalRunner:
    """Runs the plans of one session on a worker in this process."""

    def __init__(self, worker: Worker, config: Any, *, shared: bool = False) -> None:
        """A `shared` worker keeps its resources when the session closes."""
        self._worker = worker
        self._shared = shared
        self._steps = worker.client(config.operation_timeout_in_ms)
        # Devices and precision are fixed when the session is created.
        self._placement = worker.placement

    @property
    def resources(self) -> ResourceManager:
        return self._worker.resources

    @property
    def closed(self) -> bool:
        return self._steps.closed

    def plan(self, graph: Graph, fetch: FetchPlan, feeds: list[Tensor], shapes: list[Shape] | None = None) -> Plan:
        return Plan(self._worker, self._steps, graph, fetch, feeds, shapes)

    def repeated(self, op: Operation) -> Callable[[], None] | None:
        """Returns a function that runs `op` one or more times per call; None if it must run singly."""
        return blocks.repeated(self._worker, self._steps, op)

    def converter(self, tensor: Tensor) -> Callable[[Any], Any]:
        """Returns the function that converts values fed for `tensor`."""
        return placed_converter(tensor, self._placement)

    def device_of(self, op: Operation) -> str:
        return self._placement.name(op)

    def list_devices(self) -> list[DeviceAttributes]:
        return described(self._placement)

    def reset(self, containers: list[str] | None) -> None:
        """Drops the resources of `containers`, or of all containers."""
        self._worker.resources.reset(containers)

    def close(self) -> None:
        """Cancels the session's steps. A worker that is not shared also drops its resources."""
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
    """Registers `factory` for sessions whose target starts with `scheme://`.

    `reset(target, containers, config)` drops resources at a place that outlives the sessions of this process.
    """
    _schemes[scheme] = _Scheme(factory, reset)


def _scheme_of(target: str) -> _Scheme:
    name, separator, _ = target.partition("://")
    if not target or (separator and name in _schemes and name):
        return _schemes[name]
    raise NotFoundError(
        None, None, f'No session factory registered for the given session options: {{target: "{target}"}}'
    )


def open_target(target: str, config: Any) -> Runner:
    """Returns the runner of a session.

    Raises:
        NotFoundError: the target's scheme is not registered.
    """
    return _scheme_of(target).factory(target, config)


def reset_target(target: str, containers: list[str] | None, config: Any) -> bool:
    """Drops resources at `target`, and ends the sessions there, if they outlive the sessions of this process. Returns whether they do.

    Raises:
        NotFoundError: the target's scheme is not registered.
    """
    reset = _scheme_of(target).reset
    if reset is None:
        return False
    reset(target, containers, config)
    return True


register_session_target("", lambda target, config: LocalRunner(Worker(config), config))
