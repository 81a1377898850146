"""How many threads share the work of a step: measured for each step while the program runs (native/threads.c).

More threads are not always faster. Waking sixteen of them takes longer than most small ops, and if another process uses one of the
processors, every op waits for the thread that does not run. A step runs thousands of times, so each plan tries 1, 2, 4, ... threads for some
milliseconds now and then, and keeps the fastest number. Threads that the user allows (`intra_op_parallelism_threads`,
`torch.set_num_threads`, OMP_NUM_THREADS) are the upper limit. `STOKER_THREADS=fixed` always uses that many.

The time that a run waits, for a queue or for Python code, says nothing about the number of threads, so it does not count.

Between two ops, threads poll for the next one on a quiet machine and sleep on a busy one (native/waiting.h).

A forked child has only the thread that forked. The OpenMP threads of its parent do not exist there, and a kernel that shares work
with them would wait forever. Children therefore use one thread, whatever a session asks for.
"""

from __future__ import annotations

import ctypes
import os
from collections.abc import Callable
from typing import Any

import torch

from stoker._src.base.extensions import extension

_native = extension("stoker._src.runtime.native.threads")


def _let_mkl_know() -> None:
    """Finds MKL's setting for the calling thread. torch contains MKL, which does not follow OpenMP's setting once it has its own."""
    library = os.path.join(os.path.dirname(torch.__file__), "lib", "libtorch_cpu.so")
    try:
        found = ctypes.CDLL(library).MKL_Set_Num_Threads_Local
    except (OSError, AttributeError):
        return
    _native.set_setter(ctypes.cast(found, ctypes.c_void_p).value)


if _native is not None:
    _let_mkl_know()


def tuner() -> Any:
    """Returns an object whose `begin()` and `end(token)` surround each run; None if the number of threads is fixed."""
    if _native is None or os.environ.get("STOKER_THREADS") == "fixed":
        return None
    return _native.Tuner()


class Tuned:
    """A compiled step that runs with as many threads as turned out to be fastest."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self._function = function
        self._tuner = tuner()

    def __call__(self, holding: Any, *values: Any) -> Any:
        measured = self._tuner
        if measured is None:
            return self._function(holding, *values)
        began = measured.begin()
        try:
            return self._function(holding, *values)
        finally:
            if holding is not None:
                holding.end_wait()
            measured.end(began)
            if measured.tiny:
                self._tuner = None


_is_forked = False


def allow(number: int) -> None:
    """Sets how many threads one op may use."""
    torch.set_num_threads(1 if _is_forked else number)


def _work_with_one_thread() -> None:
    global _is_forked
    _is_forked = True
    torch.set_num_threads(1)


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_work_with_one_thread)


def look_around() -> None:
    """Before a run without a tuner: lets threads poll or sleep, depending on whether other processes want the processors."""
    if _native is not None:
        _native.look_around()


def _nothing() -> None:
    pass


def _ignore(_was: Any) -> None:
    pass


# A run that waits calls `pause` before and `resume` after each wait. Then the wait does not count as the run's time.
pause: Callable[[], None] = _nothing if _native is None else _native.pause
resume: Callable[[], None] = _nothing if _native is None else _native.resume

# In between, results that would be subnormal are zero: `end_flushing` takes what `begin_flushing` has returned.
begin_flushing: Callable[[], Any] = _nothing if _native is None else _native.begin_flushing
end_flushing: Callable[[Any], None] = _ignore if _native is None else _native.end_flushing
