"""The lock that lets many threads run one session: runs that only read variables share it, runs that write have it alone.

A run that may block (on a queue, in Python code) gives the lock up while it waits; the planner clones what such a run has
read before, so it never sees a half-written value.
"""

from __future__ import annotations

import threading


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
    """One run's hold on the lock, which blocking kernels pause."""

    def __init__(self, lock: VariablesLock, *, writes: bool) -> None:
        self._lock = lock
        self._writes = writes
        self._held = False

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
