"""Steps compiled for specific feed shapes, and for the values of fed flags.

A graph built for batches of any size has few static shapes. A plan whose feeds have unknown shapes is therefore compiled for the
shapes it is fed. Values that the graph computes from sizes become constants, and small tensors are known to be small. If a program
keeps feeding different shapes, all shapes after the first few share one general step.

A flag is a boolean that decides about branches (inlining.py).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from stoker._src.base import forking
from stoker._src.base.shapes import Shape
from stoker._src.runtime.plan.emit import Step

_MOST_STEPS = 8  # steps per plan


class ByShape:
    """The steps of one plan by the shapes of its feeds and the values of those that are `flags`.

    `make(shapes, flags)` compiles a step for these shapes, with the values of flags by position. `general()` compiles one for all others.
    """

    def __init__(
        self, make: Callable[[list[Shape], dict[int, Any]], Step], general: Callable[[], Step], flags: list[int]
    ) -> None:
        self._make, self._general, self._flags = make, general, flags
        self._lock = forking.lock()
        self.steps: dict[Any, Step] = {}

    def function(self, values: Any) -> Any:
        """Returns the function to run for these feeds."""
        key = tuple([value.shape for value in values])
        if self._flags:
            key = key, tuple([None if values[i].ndim else values[i].item() for i in self._flags])
        found = self.steps.get(key)
        if found is None:
            with self._lock:
                if len(self.steps) >= _MOST_STEPS:
                    return self._general().function
                if key not in self.steps:
                    flags = {i: values[i].clone() for i in self._flags if not values[i].ndim}
                    self.steps[key] = self._make([Shape(value.shape) for value in values], flags)
                found = self.steps[key]
        return found.function
