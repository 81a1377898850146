"""Waiting in kernels: for a condition, until the run's deadline, unless the run is cancelled.

A session creates a `RunState` for each run that may block, and makes it current in the threads that work for the run.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from stoker._src.base.errors import CancelledError, DeadlineExceededError


class RunState:
    """The deadline of one run, and whether the run was cancelled."""

    def __init__(self, timeout_in_ms: int = 0) -> None:
        self.timeout_in_ms = timeout_in_ms
        self.deadline = time.monotonic() + timeout_in_ms / 1000 if timeout_in_ms else None
        self.cancelled = False
        self._lock = threading.Lock()
        self._waiting: set[threading.Condition] = set()
        self._inner: set[RunState] = set()
        self._callbacks: list[Callable[[], None]] = []
        self.at_end: list[Callable[[], None]] = []  # cleanup functions, called however the run ends
        self.loops: dict[str, Callable[[list[Any]], list[Any]]] = {}  # the shares of divided loops, by frame
        self.caller: Callable[..., list[Any]] | None = (
            None  # runs a part of a graph at another task, in a step of a server
        )

    def cancel(self) -> None:
        """Wakes everything that waits in this run, which then raises CancelledError."""
        with self._lock:
            self.cancelled = True
            waiting, inner, callbacks = list(self._waiting), list(self._inner), list(self._callbacks)
        for condition in waiting:
            with condition:
                condition.notify_all()
        for state in inner:
            state.cancel()
        for callback in callbacks:
            callback()

    def on_cancel(self, callback: Callable[[], None]) -> None:
        """Calls `callback` when the run is cancelled, or immediately if it is already."""
        with self._lock:
            self._callbacks.append(callback)
            cancelled = self.cancelled
        if cancelled:
            callback()

    def check(self, what: str) -> None:
        """Stops long-running work. A loop calls this once per iteration.

        Raises:
            CancelledError: the run was cancelled.
            DeadlineExceededError: the run's time ran out.
        """
        if self.cancelled:
            raise CancelledError(None, None, f"{what} was cancelled")
        if self.deadline is not None and time.monotonic() > self.deadline:
            raise DeadlineExceededError(
                None, None, f"{what} did not finish in {self.timeout_in_ms} ms (RunOptions.timeout_in_ms)"
            )

    def left_in_ms(self) -> int:
        """Returns the time that is left until the deadline, at least 1; 0 if there is none."""
        return 0 if self.deadline is None else max(1, int((self.deadline - time.monotonic()) * 1000))

    @contextmanager
    def inner(self) -> Iterator[RunState]:
        """The state of a nested run: it has the same deadline and is cancelled with this one."""
        state = RunState()
        self.adopt(state)
        try:
            yield state
        finally:
            self.disown(state)

    def adopt(self, state: RunState) -> None:
        """Makes `state` that of a nested run: it is cancelled with this one, and has at most the same deadline."""
        if self.deadline is not None and (state.deadline is None or state.deadline > self.deadline):
            state.timeout_in_ms, state.deadline = self.timeout_in_ms, self.deadline
        state.caller, state.loops = self.caller, self.loops
        with self._lock:
            self._inner.add(state)
            cancelled = self.cancelled
        if cancelled:
            state.cancel()

    def disown(self, state: RunState) -> None:
        with self._lock:
            self._inner.discard(state)

    def enter(self, condition: threading.Condition) -> None:
        with self._lock:
            self._waiting.add(condition)

    def leave(self, condition: threading.Condition) -> None:
        with self._lock:
            self._waiting.discard(condition)


class _Current(threading.local):
    def __init__(self) -> None:
        self.state: RunState | None = None


_current = _Current()


def current_run() -> RunState | None:
    return _current.state


def is_cancelled() -> bool:
    """Whether the run of this thread was cancelled."""
    state = _current.state
    return state is not None and state.cancelled


def is_over() -> bool:
    """Whether the run of this thread was cancelled or its time ran out."""
    state = _current.state
    return state is not None and (state.cancelled or (state.deadline is not None and time.monotonic() > state.deadline))


class running:
    """Makes `state` current in this thread, for a `with` statement."""

    __slots__ = ("_outer", "_state")

    def __init__(self, state: RunState | None) -> None:
        self._state = state

    def __enter__(self) -> None:
        self._outer, _current.state = _current.state, self._state

    def __exit__(self, *error: object) -> None:
        _current.state = self._outer


def wait_until(condition: threading.Condition, ready: Callable[[], bool], what: str, where: str = "") -> None:
    """Waits, holding `condition`, until `ready()` is true. `what` and `where` describe the waiter in error messages.

    Raises:
        CancelledError: the run was cancelled.
        DeadlineExceededError: the run's time ran out.
    """
    state = _current.state
    if (state is None or not state.cancelled) and ready():
        return
    if state is None:
        condition.wait_for(ready)
        return
    state.enter(condition)
    try:
        # A session that closes cancels its runs and closes its queues. The run must report the cancellation.
        while state.cancelled or not ready():
            if state.cancelled:
                raise CancelledError(None, None, f"{what} was cancelled{where and f' ({where})'}")
            left = None if state.deadline is None else state.deadline - time.monotonic()
            if left is not None and left <= 0:
                raise DeadlineExceededError(
                    None,
                    None,
                    f"Timed out waiting for notification: {what}{where and f' ({where})'} did not finish in "
                    f"{state.timeout_in_ms} ms (timeout_in_ms)",
                )
            condition.wait(left)
    finally:
        state.leave(condition)
