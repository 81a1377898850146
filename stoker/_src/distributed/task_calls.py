"""`Caller`: runs parts of graphs at other tasks for bodies of branches, loops and functions that run here (`bodies.py`)."""

from __future__ import annotations

import random
import threading
from typing import Any

import torch

from stoker._src.base.errors import CancelledError, OpError
from stoker._src.formats.protos import GraphDef, GraphOptions
from stoker._src.ops.support.waiting import RunState


class Caller:
    """The calls of one session at one task. A part is registered at its task with the first call and stays until the session ends."""

    def __init__(self, peers: Any, session_handle: str) -> None:
        self._peers, self._session = peers, session_handle
        self._guard = threading.Lock()
        self._handles: dict[tuple[str, Any], str] = {}

    def __call__(
        self, task: str, graph: Any, feeds: dict[str, Any], fetches: list[str], linked: bool, state: RunState
    ) -> list[Any]:
        """Runs a part, a serialized GraphDef, in a step of its own, and returns the values of `fetches`.

        Raises:
            OpError: an op of the part failed, the task is gone, or the run with `state` was cancelled.
        """
        connection = self._peers.connect(task)
        handle = self._registered(connection, task, graph)
        state.check(f"A call of {task}")
        step = random.getrandbits(56)
        link = connection.link() if linked else None
        given = {key: _on_host(value) for key, value in feeds.items()}
        timeout_in_ms = state.left_in_ms()
        with state.inner() as inner:
            call = connection.run_graph(
                self._session, handle, step, given, fetches, timeout_in_ms, None, _ignored, link
            )
            inner.on_cancel(call.cancel)
            try:
                return call.result()
            except CancelledError:
                state.check(f"A call of {task}")  # the run was cancelled, or ran out of time, and not the call
                raise
            finally:
                if link is None:
                    connection.cleanup_graph(step)

    def _registered(self, connection: Any, task: str, graph: Any) -> str:
        with self._guard:
            handle = self._handles.get((task, graph))
            if handle is None:
                part = GraphDef.FromString(graph.encode() if isinstance(graph, str) else graph)
                handle = connection.register_graph(self._session, part, GraphOptions())()
                self._handles[task, graph] = handle
        return handle


def _on_host(value: Any) -> Any:
    return value.cpu() if isinstance(value, torch.Tensor) else value


def _ignored(error: OpError) -> None:
    """The call itself raises it."""
