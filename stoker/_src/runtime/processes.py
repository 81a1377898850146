"""What becomes of runs when the process ends or forks.

Python ends while daemon threads still run. Up to 3.13 it then ends each of them where it next asks for the interpreter, which unwinds its
stack; inside of torch that meets destructors that may not throw, and C++ aborts the whole process. So runs of daemon
threads are stopped before: whoever starts a run, or fails in one, sleeps for good, and those at work have a moment to come to an end.

A forked child has only the thread that forked. The OpenMP threads of its parent are gone, and a kernel that shared its work with them
would wait for ever: children work with one thread.
"""

from __future__ import annotations

import atexit
import ctypes
import functools
import os
import sys
import threading
import time
from collections.abc import Callable
from typing import Any

import torch

from stoker._src.runtime.eager.executor import EagerExecutor
from stoker._src.runtime.locks import Task
from stoker._src.runtime.plan.compiled import Plan
from stoker._src.runtime.worker import all_running_steps

_SECONDS_TO_FINISH = 1.0
_RUNS = tuple(function.__code__ for function in (Plan.execute, Plan._execute_watched, EagerExecutor.add, Task._work))


def _sleep_for_good() -> None:
    """Stops this thread, unless it is the main one, which goes on with what is to be done at the end."""
    if threading.current_thread() is not threading.main_thread():
        forever = threading.Lock()
        forever.acquire()
        forever.acquire()


def _stopping(function: Callable[..., Any]) -> Callable[..., Any]:
    """The function for the main thread; no other thread comes to call it."""

    @functools.wraps(function)
    def stopped(*args: Any, **kwargs: Any) -> Any:
        _sleep_for_good()
        return function(*args, **kwargs)

    return stopped


def _stop_runs() -> None:
    """Stops the runs of daemon threads: all others have been joined when Python calls this."""
    _sleep_instead_of_abort()
    # Replaced here rather than asked at each run, which costs runs nothing.
    for owner, name in ((Plan, "execute"), (Plan, "_failure"), (EagerExecutor, "add")):
        setattr(owner, name, _stopping(getattr(owner, name)))
    for steps in all_running_steps():
        steps.cancel()
    deadline = time.monotonic() + _SECONDS_TO_FINISH
    while _at_work() and time.monotonic() < deadline:
        time.sleep(0.001)


def _at_work() -> bool:
    """Whether another thread is inside of a run and not asleep."""
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
    """Has a thread that C++ would abort the process for sleep instead: a kernel may take longer than we wait."""
    # From 3.14 on Python lets such threads hang by itself.
    if not sys.platform.startswith("linux") or sys.version_info >= (3, 14):
        return
    try:
        set_terminate = ctypes.CDLL("libstdc++.so.6")._ZSt13set_terminatePFvvE
        set_terminate.argtypes, set_terminate.restype = [ctypes.c_void_p], ctypes.c_void_p
        set_terminate(ctypes.cast(ctypes.CDLL(None).pause, ctypes.c_void_p))
    except (OSError, AttributeError):
        pass  # another C++ library: the moment to finish is all there is


def _work_with_one_thread() -> None:
    torch.set_num_threads(1)


def install() -> None:
    """Has Python call what is here when the process ends and in its forks."""
    atexit.register(_stop_runs)
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(after_in_child=_work_with_one_thread)
