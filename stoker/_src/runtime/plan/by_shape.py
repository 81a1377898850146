"""Steps for feeds of certain shapes.

A graph made for batches of any size knows few sizes. So a plan whose feeds have unknown shapes is compiled for those it is given: what
the graph computes from sizes becomes constants, and small tensors are known to be small. A program that feeds ever new shapes
gets one step for all of them after the first few.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

from stoker._src.base.shapes import Shape
from stoker._src.runtime.plan.emit import Step

_MOST_STEPS = 8  # of one plan


class ByShape:
    """The steps of one plan by the shapes of its feeds. `make(shapes)` compiles one, `general()` the one for any."""

    def __init__(self, make: Callable[[list[Shape]], Step], general: Callable[[], Step]) -> None:
        self._make, self._general = make, general
        self._lock = threading.Lock()
        self.steps: dict[Any, Step] = {}

    def function(self, values: Any) -> Any:
        """What to run for these feeds."""
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
