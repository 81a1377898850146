"""Threads that stop together. Any of them may request the stop, and `join` raises the first exception."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from types import TracebackType
from typing import Any

from stoker._src.base import forking, tf_logging
from stoker._src.base.errors import OutOfRangeError
from stoker._src.base.export import export

_SHORTEST_LOOK, _LONGEST_LOOK = 0.001, 0.25
"""Seconds between two checks of threads that may end without notice."""
_INTERRUPTED_GRACE = 0.2
"""Seconds that threads have after Ctrl-C, so that a program with a stuck input thread ends soon."""


@export("train.Coordinator")
class Coordinator:
    """Coordinates the termination of threads.

    Any thread may call `request_stop`. All threads call `should_stop` regularly and end when it returns True. The thread
    that started them calls `join`, which raises the first exception that was passed to `request_stop`:

        coord = tf.train.Coordinator()
        threads = [threading.Thread(target=loop, args=(coord,)) for _ in range(4)]
        for thread in threads:
            thread.start()
        coord.join(threads)

    Args:
        clean_stop_exception_types: Exceptions that end the work regularly: `request_stop` treats them as a request
            without an exception. OutOfRangeError, the end of the input, by default.
    """

    def __init__(self, clean_stop_exception_types: tuple[type[BaseException], ...] | None = None) -> None:
        if clean_stop_exception_types is None:
            clean_stop_exception_types = (OutOfRangeError,)
        self._clean_stop_exception_types = tuple(clean_stop_exception_types)
        self._lock = forking.lock()
        self._stop_event = threading.Event()
        self._error: tuple[BaseException, TracebackType | None] | None = None
        self._joined = False
        self._registered_threads: set[threading.Thread] = set()

    def request_stop(self, ex: Any = None) -> None:
        """Requests that the threads stop.

        Args:
            ex: The reason, an exception or the result of `sys.exc_info()`. `join` raises the first one.

        Raises:
            TypeError: `ex` is neither.
            BaseException: `ex` itself, if `join` has already ended and cannot raise it.
        """
        error = self._error_of(ex)
        with self._lock:
            if self._joined:
                if error is not None:
                    raise error[0].with_traceback(error[1])
                return
            if self._stop_event.is_set():
                return
            self._error = error
            if error is not None:
                tf_logging.info("Error reported to Coordinator: %s, %s", type(error[0]), error[0])
            self._stop_event.set()

    def _error_of(self, ex: Any) -> tuple[BaseException, TracebackType | None] | None:
        trace = None
        if isinstance(ex, tuple) and len(ex) == 3:
            _, ex, trace = ex
        if ex is None:
            return None
        if not isinstance(ex, BaseException):
            raise TypeError(f"request_stop takes an exception or what sys.exc_info() returned, not {ex!r}.")
        if isinstance(ex, self._clean_stop_exception_types):
            return None
        return ex, trace or ex.__traceback__

    def clear_stop(self) -> None:
        """Clears the stop request and its exception, so that the coordinator can be used again."""
        with self._lock:
            self._joined = False
            self._error = None
            self._stop_event.clear()

    def should_stop(self) -> bool:
        """Whether a stop was requested."""
        return self._stop_event.is_set()

    @contextmanager
    def stop_on_exception(self) -> Iterator[None]:
        """Returns a context that passes every exception of its body to `request_stop` and suppresses it."""
        try:
            yield
        except BaseException:
            self.request_stop(ex=sys.exc_info())

    def wait_for_stop(self, timeout: float | None = None) -> bool:
        """Waits until a stop is requested. Returns False after `timeout` seconds."""
        return self._stop_event.wait(timeout)

    def register_thread(self, thread: threading.Thread) -> None:
        """Adds a thread to those that `join` waits for."""
        with self._lock:
            self._registered_threads.add(thread)

    def _forget_threads(self, threads: Iterable[threading.Thread]) -> None:
        """Removes threads from those that `join` waits for: daemons that end when their session is closed."""
        with self._lock:
            self._registered_threads.difference_update(threads)

    def join(
        self,
        threads: Iterable[threading.Thread] | None = None,
        stop_grace_period_secs: float = 120,
        ignore_live_threads: bool = False,
    ) -> None:
        """Waits until all given and registered threads have ended.

        Threads may run without limit until a stop is requested. From then on they have `stop_grace_period_secs`. While a KeyboardInterrupt ends the
        program, they have a fifth of a second at most.

        Args:
            threads: Threads to wait for, in addition to the registered ones.
            stop_grace_period_secs: How long threads may continue after the request.
            ignore_live_threads: Whether not to raise an error for threads that are still running then.

        Raises:
            BaseException: The exception that was passed to `request_stop`, before anything else.
            RuntimeError: Threads are still running after the grace period. The message names them.
        """
        with self._lock:
            awaited = [*self._registered_threads, *(threads or ())]
        awaited = list(dict.fromkeys(awaited))
        pause = _SHORTEST_LOOK
        while any(thread.is_alive() for thread in awaited) and not self.wait_for_stop(pause):
            pause = min(2 * pause, _LONGEST_LOOK)
        if isinstance(sys.exc_info()[1], KeyboardInterrupt):
            stop_grace_period_secs = min(stop_grace_period_secs, _INTERRUPTED_GRACE)
        deadline = time.monotonic() + stop_grace_period_secs
        for thread in awaited:
            if thread.is_alive():
                thread.join(max(0.0, deadline - time.monotonic()))
        alive = [thread.name for thread in awaited if thread.is_alive()]
        with self._lock:
            self._joined = True
            self._registered_threads.clear()
            error = self._error
        stuck = f"Coordinator stopped with threads still running: {' '.join(alive)}"
        if error is not None:
            if alive:
                tf_logging.info(stuck)
            raise error[0].with_traceback(error[1])
        if alive:
            if not ignore_live_threads:
                raise RuntimeError(stuck)
            tf_logging.info(stuck)

    @property
    def joined(self) -> bool:
        """Whether a `join` has ended since the last `clear_stop`."""
        return self._joined

    def raise_requested_exception(self) -> None:
        """Raises the exception that was passed to `request_stop`, if one was."""
        with self._lock:
            error = self._error
        if error is not None:
            raise error[0].with_traceback(error[1])


@export(v1="train.LooperThread")
class LooperThread(threading.Thread):
    """A thread that repeats an action until its coordinator stops.

    Calls `start_loop` once, `run_loop` repeatedly, and `stop_loop` at the end. `run_loop` calls `target`. Subclasses may
    override all three. An exception goes to the coordinator and ends the thread. The thread is a daemon and registered.

    Args:
        coord: the coordinator.
        timer_interval_secs: Seconds between the starts of two calls, or None for no pause. Calls start at multiples of it,
            independent of their duration.
        target: what `run_loop` calls.
        args: arguments for `target`.
        kwargs: keyword arguments for `target`.

    Raises:
        ValueError: `coord` is not a coordinator, or there are arguments but no target.
    """

    def __init__(
        self,
        coord: Coordinator,
        timer_interval_secs: float | None,
        target: Callable[..., Any] | None = None,
        args: Iterable[Any] | None = None,
        kwargs: dict[str, Any] | None = None,
    ) -> None:
        if not isinstance(coord, Coordinator):
            raise ValueError(f"'coord' argument must be a Coordinator: {coord}")
        if target is None and (args or kwargs):
            raise ValueError("'args' and 'kwargs' argument require that you also pass 'target'")
        super().__init__()
        self.daemon = True
        self._coord = coord
        self._timer_interval_secs = timer_interval_secs
        self._loop_target = target
        self._loop_args = tuple(args or ())
        self._loop_kwargs = dict(kwargs or {})
        coord.register_thread(self)

    @staticmethod
    def loop(
        coord: Coordinator,
        timer_interval_secs: float | None,
        target: Callable[..., Any] | None,
        args: Iterable[Any] | None = None,
        kwargs: dict[str, Any] | None = None,
    ) -> LooperThread:
        """Creates a looper thread, starts it and returns it."""
        looper = LooperThread(coord, timer_interval_secs, target=target, args=args, kwargs=kwargs)
        looper.start()
        return looper

    def run(self) -> None:
        with self._coord.stop_on_exception():
            self.start_loop()
            if self._timer_interval_secs is None:
                while not self._coord.should_stop():
                    self.run_loop()
            else:
                due = time.monotonic()
                while not self._coord.wait_for_stop(max(0.0, due - time.monotonic())):
                    due += self._timer_interval_secs
                    self.run_loop()
            self.stop_loop()

    def start_loop(self) -> None:
        """Called once, before the first call of `run_loop`."""

    def run_loop(self) -> None:
        """Called repeatedly. Calls the target."""
        if self._loop_target is not None:
            self._loop_target(*self._loop_args, **self._loop_kwargs)

    def stop_loop(self) -> None:
        """Called once after the last `run_loop`, unless that raised."""

    # Accessors of older Pythons. The standard library has removed some of them and deprecated others.

    def isAlive(self) -> bool:
        return self.is_alive()

    def isDaemon(self) -> bool:
        return self.daemon

    def setDaemon(self, daemonic: bool) -> None:
        self.daemon = daemonic

    def getName(self) -> str:
        return self.name

    def setName(self, name: str) -> None:
        self.name = name
