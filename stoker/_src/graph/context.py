"""The target of new ops: the thread's current graph, or the eager executor.

A target has `add(definition, inputs, attrs, name)`. Graphs and the runtime's eager executor (`runtime_hooks.py`) are
targets. `graph` and `ops` do not depend on how values are computed.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from stoker._src.base.errors import InvalidArgumentError
from stoker._src.graph.runtime_hooks import hooks

_EAGER = "eager"


class _ThreadState(threading.local):
    """The state of this thread. `stack` holds graphs, or the string "eager" where eager mode was entered."""

    def __init__(self) -> None:
        self.stack: list[Any] = []
        self.global_graph: Any = None
        self.converts = True


_state = _ThreadState()
_eager_by_default = True


def converted(function: Any) -> Any:
    """Converts a function that an op will call by autograph, if conversion is on."""
    return hooks.converted(function) if _state.converts and not executing_eagerly() else function


@contextmanager
def converting(converts: bool) -> Iterator[None]:
    """A context that turns autograph conversion of functions given to ops on or off."""
    before, _state.converts = _state.converts, converts
    try:
        yield
    finally:
        _state.converts = before


def set_eager_by_default(enabled: bool) -> None:
    """Sets whether ops outside of any graph run at once (2.x) or are added to the thread's global graph (1.x)."""
    global _eager_by_default
    _eager_by_default = enabled


def eager_by_default() -> bool:
    return _eager_by_default


def executing_eagerly() -> bool:
    stack = _state.stack
    if stack:
        return stack[-1] is _EAGER
    return _eager_by_default


def invalid(text: str) -> Exception:
    """The error for invalid arguments of an op: InvalidArgumentError in eager mode, ValueError in a graph."""
    return InvalidArgumentError(None, None, text) if executing_eagerly() else ValueError(text)


def target() -> Any:
    """The graph (or the eager executor) that receives the next op."""
    stack = _state.stack
    if stack:
        top = stack[-1]
        return hooks.eager_target if top is _EAGER else top
    if _eager_by_default:
        return hooks.eager_target
    graph = _state.global_graph
    if graph is None:
        graph = _state.global_graph = hooks.new_graph()
    return graph


def get_default_graph() -> Any:
    """The innermost graph made current by `as_default`, or else this thread's global graph."""
    for entry in reversed(_state.stack):
        if entry is not _EAGER:
            return entry
    if _state.global_graph is None:
        _state.global_graph = hooks.new_graph()
    return _state.global_graph


def has_default_graph() -> bool:
    return any(entry is not _EAGER for entry in _state.stack)


def reset_default_graph() -> None:
    """Discards this thread's global graph. The next op starts an empty one.

    Raises:
        AssertionError: inside a `with graph.as_default()` block.
    """
    if any(entry is not _EAGER for entry in _state.stack):
        raise AssertionError(
            "Do not use tf.reset_default_graph() to clear nested graphs. If you need a cleared graph, exit the nesting and create a new graph."
        )
    _state.global_graph = None


@contextmanager
def _entered(entry: Any) -> Iterator[Any]:
    _state.stack.append(entry)
    try:
        yield entry
    finally:
        _state.stack.pop()


def enter_graph(graph: Any):
    return _entered(graph)


def enter_eager():
    """A context in which ops run at once."""
    return _entered(_EAGER)


def outermost_context() -> Any:
    """The outermost entry that is not a function being traced: a graph, or None for eager mode."""
    for entry in reversed(_state.stack):
        if entry is _EAGER:
            return None
        if not entry.building_function:
            return entry
    if _eager_by_default:
        return None
    if _state.global_graph is None:
        _state.global_graph = hooks.new_graph()
    return _state.global_graph
