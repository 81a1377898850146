"""The lock that lets many threads run one session: runs that only read variables share it, runs that write hold it exclusively.

A run that may block (on a queue, or in Python code) releases the lock while it waits. The planner copies the values that such a run
has read before, so it never sees a half-written value.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable
from typing import Any

from stoker._src.base import forking
from stoker._src.ops.support.waiting import RunState, running
from stoker._src.runtime.lent_variables import LentVariables
from stoker._src.runtime.plan import threads

MOST_PASSED = 256
"""How many runs may overtake a waiting run before all must queue behind it."""


class _Turn:
    """A waiting run. Its lock is released when it should try to acquire the variables lock."""

    __slots__ = ("called", "lock", "writes")

    def __init__(self, writes: bool) -> None:
        self.writes = writes
        self.called = False
        self.lock = threading.Lock()
        self.lock.acquire()


class VariablesLock:
    """A readers-writer lock. A waiting run gets in after a bounded number of others, so there is no starvation.

    A free lock goes to the run that asks for it, even while others wait: a handover to a sleeping thread would cost a context
    switch per run. After `MOST_PASSED` runs have overtaken the first waiting run, all others queue in order of arrival
    until it gets in. A thread must not enter twice; runs nested in Python code pause the outer run.
    """

    def __init__(self) -> None:
        self._guard = forking.lock()
        self._readers = 0
        self._writing = False
        self.writes = 0  # how often a run that writes got in
        self.lent = LentVariables()
        self._waiting: deque[_Turn] = deque()
        self._passed = 0
        forking.in_children(self, VariablesLock._free)

    def _free(self) -> None:
        """In a forked child: the runs that held the lock or waited for it do not exist."""
        self._readers, self._writing, self._passed = 0, False, 0
        self._waiting.clear()

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
                self.writes += 1
                return
            self._waiting.append(turn := _Turn(writes=True))
        self._wait(turn)

    def release_write(self) -> None:
        with self._guard:
            self._writing = False
            if self._waiting:
                self._call_next()

    def _passes(self) -> bool:
        """Whether a run may overtake the waiting runs. Counts it if so."""
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
                # Another run overtook this one. The next run that leaves wakes it again.
        except BaseException:  # on an interrupt, another run must get the turn
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
            self.writes += 1
        else:
            self._readers += 1
            self._call_next()

    def _free_for(self, turn: _Turn) -> bool:
        return not self._writing and not (turn.writes and self._readers)

    def _call_next(self) -> None:
        """Wakes the first waiting run if it could get in."""
        if self._waiting:
            first = self._waiting[0]
            if not first.called and self._free_for(first):
                first.called = True
                first.lock.release()


class Holding:
    """One run's hold on the lock, which blocking kernels pause, and the threads that work for the run."""

    def __init__(
        self,
        lock: VariablesLock,
        *,
        writes: bool,
        state: RunState | None = None,
        touches: bool = True,
        leaves_lent: bool = False,
    ) -> None:
        """Creates a hold that is not acquired yet. A run that `touches` no variable never acquires it.

        Variables that are lent to the host return when it is acquired, unless the run `leaves_lent` and says by `settles` where they belong.
        """
        self._lock = lock
        self._writes = writes
        self._touches = touches
        self._settle: Callable[[], None] | None = None if leaves_lent else self.return_lent
        self._held = False
        self._waits = False
        self.state = state
        self.tasks: list[Task] = []

    def end(self) -> None:
        """Releases the lock. Tasks that are still running because another line failed are cancelled and joined."""
        self.release()
        self.end_wait()
        if any(not task.done for task in self.tasks):
            if self.state is not None:
                self.state.cancel()
            for task in self.tasks:
                task.join()
        if self.state is not None:
            for give_back in self.state.at_end:
                give_back()

    def pause(self) -> None:
        """Begins a wait."""
        self.release()
        self._waits = True
        threads.pause()

    def resume(self) -> None:
        """Ends a wait."""
        self.acquire()
        self.end_wait()

    def end_wait(self) -> None:
        """Ends a wait that has failed, without the lock."""
        if self._waits:
            self._waits = False
            threads.resume()

    def acquire(self) -> None:
        if not self._touches:
            return
        if self._writes:
            self._lock.acquire_write()
        else:
            self._lock.acquire_read()
        self._held = True
        if self._settle is not None:
            self._settle()

    def settles(self, settle: Callable[[], None]) -> None:
        """Moves variables to where the run wants them, while the lock is held. Another run may move them while this one waits, so it is repeated then."""
        self._settle = settle
        settle()

    def return_lent(self) -> None:
        """Sees to it that variables are where they belong, while the lock is held."""
        if self._touches and self._lock.lent.are_there:
            self._lock.lent.give_back(writes=None if self._writes else self._lock.writes)

    def release(self) -> None:
        if not self._held:
            return
        self._held = False
        if self._writes:
            self._lock.release_write()
        else:
            self._lock.release_read()


class Task:
    """A blocking kernel that runs in a separate thread, so that two kernels of one run cannot deadlock."""

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
    """Starts a blocking kernel in parallel to the others of its run."""
    task = Task(holding.state, kernel, args, kwargs)
    holding.tasks.append(task)
    return task
