"""The lock that lets many threads run one session: runs that only read variables share it, runs that write have it alone.

A run that may block (on a queue, in Python code) gives the lock up while it waits; the planner clones what such a run has
read before, so it never sees a half-written value.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable
from typing import Any

from stoker._src.ops.waiting import RunState, running


class VariablesLock:
    """Readers share, a writer is alone; who waits is served in the order of arrival, so nobody waits for ever.

    A thread must not enter twice; runs nested in Python code pause the outer one.
    """

    def __init__(self) -> None:
        self._guard = threading.Lock()
        self._readers = 0
        self._writing = False
        self._waiting: deque[tuple[bool, threading.Lock]] = deque()  # (writes, the lock that lets it in)

    def acquire_read(self) -> None:
        with self._guard:
            if not self._writing and not self._waiting:
                self._readers += 1
                return
            turn = self._queue(writes=False)
        self._wait(turn)

    def release_read(self) -> None:
        with self._guard:
            self._readers -= 1
            self._admit()

    def acquire_write(self) -> None:
        with self._guard:
            if not self._writing and not self._readers and not self._waiting:
                self._writing = True
                return
            turn = self._queue(writes=True)
        self._wait(turn)

    def release_write(self) -> None:
        with self._guard:
            self._writing = False
            self._admit()

    def _queue(self, *, writes: bool) -> tuple[bool, threading.Lock]:
        turn = (writes, threading.Lock())
        turn[1].acquire()
        self._waiting.append(turn)
        return turn

    def _wait(self, turn: tuple[bool, threading.Lock]) -> None:
        try:
            turn[1].acquire()
        except BaseException:  # an interrupt: somebody else must have the turn
            with self._guard:
                if turn in self._waiting:
                    self._waiting.remove(turn)
                elif turn[0]:
                    self._writing = False
                else:
                    self._readers -= 1
                self._admit()
            raise

    def _admit(self) -> None:
        """Lets in who is next: one writer, or the readers up to the next writer."""
        waiting = self._waiting
        while waiting and not self._writing:
            writes, let_in = waiting[0]
            if writes and self._readers:
                return
            waiting.popleft()
            if writes:
                self._writing = True
            else:
                self._readers += 1
            let_in.release()


class Holding:
    """One run's hold on the lock, which blocking kernels pause, and the threads that work for the run."""

    def __init__(
        self, lock: VariablesLock, *, writes: bool, state: RunState | None = None, touches: bool = True
    ) -> None:
        """A hold that is not taken yet; a run that `touches` no variable never takes it."""
        self._lock = lock
        self._writes = writes
        self._touches = touches
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
        if not self._touches:
            return
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
