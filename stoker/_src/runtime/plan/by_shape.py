"""Steps compiled for specific feeds: for their shapes, and for the values of those that decide about branches.

A graph built for batches of any size has few static shapes. A plan whose feeds have unknown shapes is therefore compiled for the
shapes it is fed. Values that the graph computes from sizes become constants, and small tensors are known to be small. A truth value that is fed, such as
whether a network is trained, is known as well: the branches that it chooses are part of the step. If a program keeps feeding
different shapes, all shapes after the first few share one general step.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from stoker._src.base import forking
from stoker._src.runtime.plan.emit import Step

_MOST_STEPS = 8  # steps per plan


class ByShape:
    """The steps of one plan by what is known of its feeds: the value of a feed that is `deciding`, else its shape.

    `make(key)` compiles a step for feeds with that key, `general()` one for any feeds.
    """

    def __init__(
        self,
        make: Callable[[tuple[Any, ...]], Step],
        general: Callable[[], Step],
        deciding: frozenset[int] = frozenset(),
    ) -> None:
        self._make, self._general, self._deciding = make, general, deciding
        self._lock = forking.lock()
        self.steps: dict[Any, Step] = {}

    def function(self, values: Any) -> Any:
        """Returns the function to run for these feeds."""
        if self._deciding:
            key = tuple([bool(value) if i in self._deciding else value.shape for i, value in enumerate(values)])
        else:
            key = tuple([value.shape for value in values])
        found = self.steps.get(key)
        if found is None:
            with self._lock:
                if len(self.steps) >= _MOST_STEPS:
                    return self._general().function
                if key not in self.steps:
                    self.steps[key] = self._make(key)
                found = self.steps[key]
        return found.function
