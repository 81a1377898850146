"""State that outlives a run: variables, queues and tables by container and name, and the state of single nodes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from stoker._src.base import forking


class ResourceManager:
    """Resources of one worker. It is thread-safe."""

    def __init__(self) -> None:
        self._lock = forking.lock()
        self._resources: dict[tuple[str, str, str], Any] = {}

    def lookup_or_create(self, container: str, kind: str, name: str, create: Callable[[], Any]) -> Any:
        key = (container or "", kind, name)
        with self._lock:
            found = self._resources.get(key)
            if found is None:
                found = self._resources[key] = create()
            return found

    def lookup(self, container: str, kind: str, name: str) -> Any:
        with self._lock:
            return self._resources.get((container or "", kind, name))

    def remove(self, container: str, kind: str, name: str) -> Any:
        with self._lock:
            return self._resources.pop((container or "", kind, name), None)

    def reset(self, containers: list[str] | None = None) -> None:
        """Drops the resources of `containers`, or of all containers."""
        with self._lock:
            for key in list(self._resources):
                if containers is None or key[0] in containers:
                    resource = self._resources.pop(key)
                    if hasattr(resource, "close"):
                        resource.close(cancel_pending=True)

    def of_kind(self, kind: str) -> list[Any]:
        with self._lock:
            return [value for (_, each, _), value in self._resources.items() if each == kind]


class NodeContext:
    """The `ctx` argument of a kernel: the worker's resources, and a place for the node's own state.

    `state` starts as None and belongs to one node on one worker. A random op, for example, keeps its generator there.
    """

    __slots__ = ("device", "name", "resources", "state")

    def __init__(self, name: str, resources: ResourceManager, device: Any = None) -> None:
        self.name = name
        self.resources = resources
        self.device = device
        self.state: Any = None
