"""How many threads share the work of a step: measured for each step while the program runs (native/threads.c).

More threads are not always faster. Waking sixteen of them takes longer than most small ops, and if another process uses one of the
processors, every op waits for the thread that does not run. A step runs thousands of times, so each plan tries 1, 2, 4, ... threads for some
milliseconds now and then, and keeps the fastest number. Threads that the user allows (`intra_op_parallelism_threads`,
`torch.set_num_threads`, OMP_NUM_THREADS) are the upper limit. `STOKER_THREADS=fixed` always uses that many.

The time that a run waits, for a queue or for Python code, says nothing about the number of threads, so it does not count.

While stoker computes, results that would be subnormal are zero, as in TensorFlow.

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


def _nothing() -> None:
    pass


def _ignore(_token: Any) -> None:
    pass


class _Untuned:
    """Surrounds runs whose number of threads is not measured."""

    tiny, threads, comparing = False, None, False

    def __init__(self, begin: str) -> None:
        self.begin: Callable[[], Any] = _nothing if _native is None else getattr(_native, begin)
        self.end: Callable[[Any], None] = _ignore if _native is None else _native.end_untuned


small_runs = _Untuned("begin_small")  # too short to share work among threads
_fixed_runs = _Untuned("begin_fixed")


def tuner() -> Any:
    """Returns an object whose `begin()` and `end(token)` surround each run.

    If it then says that runs are `tiny`, `small_runs` takes its place.
    """
    if _native is None or os.environ.get("STOKER_THREADS") == "fixed":
        return _fixed_runs
    return _native.Tuner()


class Tuned:
    """A compiled step that runs with as many threads as turned out to be fastest; with one thread until it `shares` its work."""

    def __init__(self, function: Callable[..., Any], *, shares: bool = True) -> None:
        self._function = function
        self.shares = False
        self._tuner: Any = small_runs
        if shares:
            self.share()

    def share(self) -> None:
        if not self.shares:
            self.shares, self._tuner = True, tuner()

    @property
    def is_trying(self) -> bool:
        """Whether runs take longer than usual, because other numbers of threads are being tried."""
        return self._tuner.comparing

    def __call__(self, holding: Any, *values: Any) -> Any:
        measured = self._tuner
        began = measured.begin()
        try:
            return self._function(holding, *values)
        finally:
            if holding is not None:
                holding.end_wait()
            measured.end(began)
            if measured.tiny:
                self._tuner = small_runs


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


# A run that waits calls `pause` before and `resume` after each wait. Then the wait does not count as the run's time.
pause: Callable[[], None] = _nothing if _native is None else _native.pause
resume: Callable[[], None] = _nothing if _native is None else _native.resume
