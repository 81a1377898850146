"""Hooks for functionality of later rooms: one object that `runtime/install.py` fills in one call.

They let `graph` and `ops` call, run, differentiate and trace ops without importing the runtime. Nothing else is bound late,
except functions of later op families (`late_binding.py`).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


def _not_loaded(*_: Any, **__: Any) -> Any:
    raise RuntimeError("stoker's runtime is not loaded: import `stoker` or one of its public modules.")


class RuntimeHooks:
    """Before `install` nothing can be called; static values and shapes that need kernels are unknown."""

    def __init__(self) -> None:
        self.new_graph: Callable[[], Any] = _not_loaded
        """Makes a thread's global graph."""
        self.apply: Callable[..., Any] = _not_loaded
        """Calls an op: (definition, positional arguments, keyword arguments, name) -> what the call returns."""
        self.eager_target: Any = None
        """Where ops go in eager mode: has `add`, as a graph has."""
        self.converted: Callable[[Any], Any] = _not_loaded
        """Makes a function of the user one that takes tensors as conditions."""
        self.evaluate: Callable[[Any, list[Any]], list[Any] | None] = lambda op, arrays: None
        """Runs a pure kernel on arrays: (op, arrays) -> arrays, or None where that cannot be."""
        self.shapes_by_kernel: Callable[[Any], list[Any] | None] = lambda op: None
        """The shapes of an op's outputs by its kernel, or None where that does not tell."""
        self.new_tape: Callable[[], Any] = _not_loaded
        """Makes a GradientTape."""
        self.differentiate: Callable[..., list[Any]] = _not_loaded
        """Differentiates a function at given arguments: (function, args, kwargs, variables, gradients of results)."""

    def install(
        self,
        *,
        new_graph: Callable[[], Any],
        apply: Callable[..., Any],
        eager_target: Any,
        converted: Callable[[Any], Any],
        evaluate: Callable[[Any, list[Any]], list[Any] | None],
        shapes_by_kernel: Callable[[Any], list[Any] | None],
        new_tape: Callable[[], Any],
        differentiate: Callable[..., list[Any]],
    ) -> None:
        """Fills in all of them."""
        self.new_graph, self.apply, self.eager_target, self.converted = new_graph, apply, eager_target, converted
        self.evaluate, self.shapes_by_kernel = evaluate, shapes_by_kernel
        self.new_tape, self.differentiate = new_tape, differentiate


hooks = RuntimeHooks()
