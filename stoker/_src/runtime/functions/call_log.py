"""Records which functions a program calls, for `tf.summary.trace_on`."""

from __future__ import annotations

from typing import Any


class CallLog:
    """The graphs of functions that are called while recording is on, each once, in order."""

    def __init__(self) -> None:
        self._graphs: dict[int, Any] | None = None

    def start(self) -> None:
        self._graphs = {}

    def stop(self) -> list[Any]:
        """Stops recording and returns the graphs of the functions called since `start`."""
        graphs, self._graphs = self._graphs, None
        return list((graphs or {}).values())

    @property
    def is_on(self) -> bool:
        return self._graphs is not None

    def note(self, graph: Any) -> None:
        if self._graphs is not None:
            self._graphs.setdefault(id(graph), graph)


CALLS = CallLog()
