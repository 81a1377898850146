"""The public scopes: name_scope, device, control_dependencies, colocation."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any

from stoker._src.base.export import export
from stoker._src.graph import context
from stoker._src.graph.tapes import no_tapes
from stoker._src.graph.tensor import Tensor


def graph_of(values: Any) -> Any:
    """The graph of the tensors among `values`, or else the current graph.

    Raises:
        ValueError: they belong to different graphs.
    """
    current = context.get_default_graph()
    if current.building_function:
        return current
    found = first = None
    for value in values or ():
        op = getattr(value, "op", None)
        graph = getattr(op, "graph", None)
        if graph is None or getattr(value, "is_eager", False):
            continue
        if found is not None and graph is not found:
            raise ValueError(f"{value} must be from the same graph as {first}.")
        found, first = graph, value
    return current if found is None else found


def name_scope(name: str | None, default_name: str | None = None, values: Any = None) -> AbstractContextManager[str]:
    """Prefixes the names of ops created inside, in the graph of `values`. Yields the prefix with its slash."""
    target = context.target()
    name = default_name if name is None else name
    if values and not context.executing_eagerly():
        for value in values:
            if (
                type(value) is Tensor
                and value.op.graph is not target
                and not value.op.graph.building_function
                and not getattr(target, "building_function", True)
            ):
                return _scope_of_graph(graph_of(values), name)
    return target.name_scope(name)


@contextmanager
def _scope_of_graph(graph: Any, name: str | None) -> Iterator[str]:
    with graph.as_default(), graph.name_scope(name) as scope:
        yield scope


@export(v1="name_scope")
class NameScope:
    """Prefixes the names of ops created inside, in the graph of `values`. Yields the prefix with its slash.

    Raises:
        TypeError: neither a name nor a default name is given, or the name is not a string.
    """

    def __init__(self, name: Any, default_name: str | None = None, values: Any = None) -> None:
        name = name.decode() if isinstance(name, bytes) else name
        if not (name is None or isinstance(name, str)):
            raise TypeError(f"expected string or bytes-like object, got {name!r} as the name of a name_scope.")
        if not (default_name is None or isinstance(default_name, str)):
            raise TypeError(
                f"`default_name` type ({type(default_name)}) is not a string type. You likely meant to pass this into the "
                "`values` kwarg."
            )
        if name is None and default_name is None and values is not None:
            raise ValueError(f"At least one of name ({name}) and default_name ({default_name}) must be provided.")
        self._name = default_name if name is None else name
        self._values = values

    @property
    def name(self) -> Any:
        return self._name

    def __enter__(self) -> str:
        self._open = name_scope(self._name, None, self._values)
        return self._open.__enter__()

    def __exit__(self, *exc: Any) -> Any:
        return self._open.__exit__(*exc)


@export(v2="name_scope")
class NameScopeV2(NameScope):
    """Prefixes the names of ops created inside. Yields the prefix with its slash."""

    def __init__(self, name: str) -> None:
        if not isinstance(name, str):
            raise ValueError("name for name_scope must be a string.")
        super().__init__(name)


@export("control_dependencies")
def control_dependencies(control_inputs: Any) -> Any:
    """Makes ops created inside run after `control_inputs`. None clears outer dependencies. Does nothing in eager mode."""
    if context.executing_eagerly():
        if callable(control_inputs):
            control_inputs()
        return nullcontext()
    return context.get_default_graph().control_dependencies(control_inputs)


@export(v1="device")
def device(device_name_or_function: Any) -> Any:
    """Sets the device of ops created inside: a device name, a function from operation to name, or None to clear outer devices."""
    return context.target().device(device_name_or_function)


@export(v2="device")
def device_v2(device_name: Any) -> Any:
    """Sets the device of ops created inside, by name.

    Raises:
        RuntimeError: a function is given.
    """
    if callable(device_name):
        raise RuntimeError("tf.device does not support functions.")
    return device(device_name)


@export(v1="colocate_with")
def colocate_with(op: Any, ignore_existing: bool = False) -> Any:
    """Places ops created inside on the device of `op`."""
    if context.executing_eagerly():
        return nullcontext()
    return context.get_default_graph().colocate_with(op, ignore_existing)


@export(v1="container")
def container(container_name: str) -> Any:
    """Sets the resource container for stateful ops created inside."""
    return context.get_default_graph().container(container_name)


@export("init_scope")
@contextmanager
def init_scope() -> Iterator[None]:
    """Lifts ops created inside out of functions that are being traced, to the outermost graph or to eager mode.

    Control dependencies are cleared, and the name scope is kept. Variables are created in this scope.
    """
    scope = context.target().get_name_scope()
    graph = context.outermost_context()
    if graph is None:
        with context.enter_eager(), no_tapes(), context.target().name_scope(scope + "/" if scope else None):
            yield
        return
    with context.enter_graph(graph), graph.control_dependencies(None), graph.name_scope(scope + "/" if scope else None):
        yield
