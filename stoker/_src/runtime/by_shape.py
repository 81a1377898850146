"""Steps for feeds of certain shapes.

A graph made for batches of any size knows few sizes. Once a plan has run a few times with feeds of the same shapes, it is planned
again with those shapes: what the graph computes from sizes becomes constants, and small tensors are known to be small.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

from stoker._src.base.shapes import Shape
from stoker._src.runtime.emit import Step

_RUNS_BEFORE = 3  # runs that show the shapes repeat
_MOST_STEPS = 8  # of one plan
_MOST_COUNTED = 1000  # shapes that are counted; a program that feeds more has no use for this


class ByShape:
    """The steps of one plan by the shapes of its feeds. `make(shapes)` compiles one."""

    def __init__(self, make: Callable[[list[Shape]], Step]) -> None:
        self._make = make
        self._runs: dict[Any, int] = {}
        self._lock = threading.Lock()
        self.steps: dict[Any, Step] = {}

    def function(self, function: Any, values: Any) -> Any:
        """What to run for these feeds: the step for their shapes, one made now when it is time for it, or `function`."""
        key = tuple([value.shape for value in values])
        found = self.steps.get(key)
        if found is not None:
            return found.function
        runs = self._runs.get(key, 0) + 1
        if len(self._runs) < _MOST_COUNTED or runs > 1:
            self._runs[key] = runs
        if runs <= _RUNS_BEFORE or len(self.steps) >= _MOST_STEPS:
            return function
        with self._lock:
            if key not in self.steps:
                self.steps[key] = self._make([Shape(shape) for shape in key])
            return self.steps[key].function
