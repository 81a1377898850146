"""Stops runs when the process exits.

Python exits while daemon threads still run. Up to 3.13 it terminates each of them when it next acquires the GIL, by unwinding its
stack. Inside torch this reaches destructors that must not throw, and C++ aborts the process. Runs of daemon threads are therefore
stopped first: a thread that starts a run, or fails in one, sleeps forever, and threads inside a run get a moment to finish.

Forked children are prepared where the state is that they must change: `base/forking.py` (locks) and `runtime/plan/threads.py` (threads).
"""

from __future__ import annotations

import atexit
import ctypes
import functools
import sys
import threading
import time
from collections.abc import Callable
from typing import Any

from stoker._src.runtime.eager.executor import EagerExecutor, KnownCall
from stoker._src.runtime.eager.repeated_walks import CompiledWalk
from stoker._src.runtime.locks import Task
from stoker._src.runtime.plan.compiled import Plan
from stoker._src.runtime.worker import all_running_steps

_SECONDS_TO_FINISH = 1.0
_EAGER_RUNS = ((EagerExecutor, "add"), (KnownCall, "run"), (KnownCall, "run_together"), (CompiledWalk, "run"))
_RUNS = tuple(
    function.__code__
    for function in (Plan.execute, Plan._execute_watched, Task._work, *(getattr(*each) for each in _EAGER_RUNS))
)


def _sleep_for_good() -> None:
    """Stops this thread forever, unless it is the main thread, which has to finish the exit."""
    if threading.current_thread() is not threading.main_thread():
        forever = threading.Lock()
        forever.acquire()
        forever.acquire()


def _stopping(function: Callable[..., Any]) -> Callable[..., Any]:
    """Wraps a function so that only the main thread can call it; other threads sleep forever."""

    @functools.wraps(function)
    def stopped(*args: Any, **kwargs: Any) -> Any:
        _sleep_for_good()
        return function(*args, **kwargs)

    return stopped


def _stop_runs() -> None:
    """Stops the runs of daemon threads. Python has joined all other threads when it calls this."""
    _sleep_instead_of_abort()
    # The functions are replaced here, so that normal runs need no check.
    for owner, name in ((Plan, "execute"), (Plan, "_failure"), *_EAGER_RUNS):
        setattr(owner, name, _stopping(getattr(owner, name)))
    for steps in all_running_steps():
        steps.cancel()
    deadline = time.monotonic() + _SECONDS_TO_FINISH
    while _at_work() and time.monotonic() < deadline:
        time.sleep(0.001)


def _at_work() -> bool:
    """Whether another thread is inside a run and not asleep."""
    for thread, frame in sys._current_frames().items():
        if thread == threading.get_ident() or frame.f_code is _sleep_for_good.__code__:
            continue
        inner: Any = frame
        while inner is not None:
            if inner.f_code in _RUNS:
                return True
            inner = inner.f_back
    return False


def _sleep_instead_of_abort() -> None:
    """Makes a thread sleep instead of aborting the process in C++, in case a kernel takes longer than the wait."""
    # From 3.14 on, Python itself suspends such threads.
    if not sys.platform.startswith("linux") or sys.version_info >= (3, 14):
        return
    try:
        set_terminate = ctypes.CDLL("libstdc++.so.6")._ZSt13set_terminatePFvvE
        set_terminate.argtypes, set_terminate.restype = [ctypes.c_void_p], ctypes.c_void_p
        set_terminate(ctypes.cast(ctypes.CDLL(None).pause, ctypes.c_void_p))
    except (OSError, AttributeError):
        pass  # another C++ library: only the wait is available


def install() -> None:
    """Registers the handler."""
    atexit.register(_stop_runs)
