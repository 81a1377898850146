"""The lock that lets many threads run one session: runs that only read variables share it, runs that write have it alone.

A run that may block (on a queue, in Python code) gives the lock up while it waits; the planner clones what such a run has
read before, so it never sees a half-written value.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

from stoker._src.ops.waiting import RunState, running


class VariablesLock:
    """Readers share, a writer is alone. A thread must not enter twice; runs nested in Python code pause the outer one."""

    def __init__(self) -> None:
        self._condition = threading.Condition(threading.Lock())
        self._readers = 0
        self._writing = False

    def acquire_read(self) -> None:
        with self._condition:
            while self._writing:
                self._condition.wait()
            self._readers += 1

    def release_read(self) -> None:
        with self._condition:
            self._readers -= 1
            if self._readers == 0:
                self._condition.notify_all()

    def acquire_write(self) -> None:
        with self._condition:
            while self._writing or self._readers:
                self._condition.wait()
            self._writing = True

    def release_write(self) -> None:
        with self._condition:
            self._writing = False
            self._condition.notify_all()


class Holding:
    """One run's hold on the lock, which blocking kernels pause, and the threads that work for the run."""

    def __init__(self, lock: VariablesLock, *, writes: bool, state: RunState | None = None) -> None:
        self._lock = lock
        self._writes = writes
        self._held = False
        self.state = state
        self.tasks: list[Task] = []

    def end(self) -> None:
        """Gives up the lock. Tasks still at work (another line failed) are cancelled and waited for."""
        self.pause()
        if any(not task.done for task in self.tasks):
            if self.state is not None:
                self.state.cancel()
            for task in self.tasks:
                task.join()

    def resume(self) -> None:
        if self._writes:
            self._lock.acquire_write()
        else:
            self._lock.acquire_read()
        self._held = True

    def pause(self) -> None:
        if not self._held:
            return
        self._held = False
        if self._writes:
            self._lock.release_write()
        else:
            self._lock.release_read()


class Task:
    """A blocking kernel at work in a thread of its own, so that two of one run cannot wait for each other for ever."""

    def __init__(self, state: RunState | None, kernel: Callable[..., Any], args: Any, kwargs: Any) -> None:
        self._state, self._kernel, self._args, self._kwargs = state, kernel, args, kwargs
        self._value: Any = None
        self._error: BaseException | None = None
        self.done = False
        self._thread = threading.Thread(target=self._work, daemon=True)
        self._thread.start()

    def _work(self) -> None:
        try:
            with running(self._state):
                self._value = self._kernel(*self._args, **self._kwargs)
        except BaseException as error:
            self._error = error
        finally:
            self.done = True

    def join(self) -> None:
        self._thread.join()

    def result(self) -> Any:
        self._thread.join()
        if self._error is not None:
            raise self._error
        return self._value


def started(holding: Holding, kernel: Callable[..., Any], *args: Any, **kwargs: Any) -> Task:
    """Starts a blocking kernel beside the others of its run."""
    task = Task(holding.state, kernel, args, kwargs)
    holding.tasks.append(task)
    return task
