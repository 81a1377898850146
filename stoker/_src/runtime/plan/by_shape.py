"""Steps compiled for specific feed shapes.

A graph built for batches of any size has few static shapes. A plan whose feeds have unknown shapes is therefore compiled for the
shapes it is fed. Values that the graph computes from sizes become constants, and small tensors are known to be small. If a program
keeps feeding different shapes, all shapes after the first few share one general step.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from stoker._src.base import forking
from stoker._src.base.shapes import Shape
from stoker._src.runtime.plan.emit import Step

_MOST_STEPS = 8  # steps per plan


class ByShape:
    """The steps of one plan by the shapes of its feeds. `make(shapes)` compiles a step for these shapes, `general()` one for any shapes."""

    def __init__(self, make: Callable[[list[Shape]], Step], general: Callable[[], Step]) -> None:
        self._make, self._general = make, general
        self._lock = forking.lock()
        self.steps: dict[Any, Step] = {}

    def function(self, values: Any) -> Any:
        """Returns the function to run for these feeds."""
        key = tuple([value.shape for value in values])
        found = self.steps.get(key)
        if found is None:
            with self._lock:
                if len(self.steps) >= _MOST_STEPS:
                    return self._general().function
                if key not in self.steps:
                    self.steps[key] = self._make([Shape(shape) for shape in key])
                found = self.steps[key]
        return found.function
