"""The lock that lets many threads run one session: runs that only read variables share it, runs that write have it alone.

A run that may block (on a queue, in Python code) gives the lock up while it waits; the planner clones what such a run has
read before, so it never sees a half-written value.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable
from typing import Any

from stoker._src.ops.support.waiting import RunState, running

MOST_PASSED = 256
"""How many runs may go past one that waits, before all have to queue behind it."""


class _Turn:
    """One run that waits: its lock is released when it should try to get in."""

    __slots__ = ("called", "lock", "writes")

    def __init__(self, writes: bool) -> None:
        self.writes = writes
        self.called = False
        self.lock = threading.Lock()
        self.lock.acquire()


class VariablesLock:
    """Readers share, a writer is alone; who waits gets in after a bounded number of others, so nobody waits for ever.

    A free lock goes to whoever asks, also while others wait: handing it over to a thread that sleeps would cost a switch of
    threads for each run. Only when `MOST_PASSED` runs have gone past the first that waits, all queue in the order of arrival
    until it is in. A thread must not enter twice; runs nested in Python code pause the outer one.
    """

    def __init__(self) -> None:
        self._guard = threading.Lock()
        self._readers = 0
        self._writing = False
        self._waiting: deque[_Turn] = deque()
        self._passed = 0

    def acquire_read(self) -> None:
        with self._guard:
            if not self._writing and (not self._waiting or self._passes()):
                self._readers += 1
                return
            self._waiting.append(turn := _Turn(writes=False))
        self._wait(turn)

    def release_read(self) -> None:
        with self._guard:
            self._readers -= 1
            if self._waiting:
                self._call_next()

    def acquire_write(self) -> None:
        with self._guard:
            if not self._writing and not self._readers and (not self._waiting or self._passes()):
                self._writing = True
                return
            self._waiting.append(turn := _Turn(writes=True))
        self._wait(turn)

    def release_write(self) -> None:
        with self._guard:
            self._writing = False
            if self._waiting:
                self._call_next()

    def _passes(self) -> bool:
        """Whether a run may go past those that wait; counts it."""
        self._passed += 1
        return self._passed <= MOST_PASSED

    def _wait(self, turn: _Turn) -> None:
        try:
            while True:
                turn.lock.acquire()
                with self._guard:
                    turn.called = False
                    if self._free_for(turn):
                        self._let_in(turn)
                        return
                # Somebody went past; who leaves calls again.
        except BaseException:  # an interrupt: somebody else must have the turn
            with self._guard:
                if turn in self._waiting:
                    self._waiting.remove(turn)
                    self._call_next()
            raise

    def _let_in(self, turn: _Turn) -> None:
        self._waiting.popleft()
        self._passed = 0
        if turn.writes:
            self._writing = True
        else:
            self._readers += 1
            self._call_next()

    def _free_for(self, turn: _Turn) -> bool:
        return not self._writing and not (turn.writes and self._readers)

    def _call_next(self) -> None:
        """Wakes the first that waits, if it could get in."""
        if self._waiting:
            first = self._waiting[0]
            if not first.called and self._free_for(first):
                first.called = True
                first.lock.release()


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
        if self.state is not None:
            for give_back in self.state.at_end:
                give_back()

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
