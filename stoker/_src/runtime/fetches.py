"""Fetches: flattens any structure of graph elements for a plan, and packs the results again."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from stoker._src.base.errors import InaccessibleTensorError
from stoker._src.graph.graph import Graph
from stoker._src.graph.tensor import Operation, Tensor
from stoker._src.graph.type_spec import composite_spec
from stoker._src.ops.resources import session_tensors


class FetchPlan:
    """The content of one structure of fetches: `tensors` to compute, `targets` to run, and how to pack the results."""

    def __init__(self, graph: Graph, fetches: Any, owner: Any = None) -> None:
        self.graph = graph
        self._owner = owner  # the runner that owns the tensors kept by `get_session_handle`
        self.tensors: list[Tensor] = []
        self.targets: list[Operation] = []
        self._positions: dict[Tensor, int] = {}
        self.build: Callable[[list[Any]], Any] = self._expand(fetches)

    def _expand(self, fetch: Any) -> Callable[[list[Any]], Any]:
        if fetch is None:
            raise TypeError("Argument `fetch` = None has invalid type NoneType. Cannot be None")
        spec = composite_spec(fetch)
        if spec is not None and spec._runs:
            builders = [self._expand(part) for part in spec._parts(fetch)]
            return lambda values: spec._fetched(fetch, [build(values) for build in builders])
        if isinstance(fetch, (list, tuple)):
            return self._sequence(fetch)
        if isinstance(fetch, Mapping):
            kind, keys = type(fetch), list(fetch)
            builders = [self._expand(fetch[key]) for key in keys]
            return lambda values: _mapping(kind, fetch, keys, [build(values) for build in builders])
        if hasattr(type(fetch), "__attrs_attrs__"):
            names = [attribute.name for attribute in type(fetch).__attrs_attrs__]
            kind = type(fetch)
            builders = [self._expand(getattr(fetch, name)) for name in names]
            return lambda values: kind(*[build(values) for build in builders])
        return self._element(fetch)

    def _sequence(self, fetch: Any) -> Callable[[list[Any]], Any]:
        builders = [self._expand(item) for item in fetch]
        kind = type(fetch)
        if kind is list:
            return lambda values: [build(values) for build in builders]
        if hasattr(fetch, "_fields"):
            return lambda values: kind(*[build(values) for build in builders])
        return lambda values: kind([build(values) for build in builders])

    def _element(self, fetch: Any) -> Callable[[list[Any]], Any]:
        try:
            element = self.graph.as_graph_element(fetch)
        except TypeError as error:
            raise TypeError(
                f"Fetch argument {fetch!r} has invalid type {type(fetch).__name__!r}, must be a string or Tensor. ({error})"
            ) from None
        except ValueError as error:
            raise ValueError(f"Fetch argument {fetch!r} cannot be interpreted as a Tensor. ({error})") from None
        except KeyError as error:
            raise ValueError(f"Fetch argument {fetch!r} cannot be interpreted as a Tensor. ({error})") from None
        if not self.graph.is_fetchable(element):
            op = element.op if isinstance(element, Tensor) else element
            raise InaccessibleTensorError(
                f"Operation {op.name!r} has been marked as not fetchable. Typically this happens when it is defined in "
                "another function or code block."
            )
        if isinstance(element, Operation):
            self.targets.append(element)
            return lambda values: None
        position = self._positions.get(element)
        if position is None:
            position = self._positions[element] = len(self.tensors)
            self.tensors.append(element)
        if element.op.definition is session_tensors.GET_SESSION_HANDLE and self._owner is not None:
            return lambda values: session_tensors.fetched_handle(element, values[position], self._owner)
        return lambda values: values[position]


def _mapping(kind: type, example: Any, keys: list[Any], values: list[Any]) -> Any:
    if kind.__name__ == "defaultdict":
        return kind(example.default_factory, zip(keys, values))
    return kind(zip(keys, values))
