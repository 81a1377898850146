"""Everything behind the public names. Importing it defines every op."""

import gc
import importlib
import os
from collections.abc import Iterator
from contextlib import contextmanager

# How often a thread of torch's OpenMP looks for work before it sleeps, on a busy machine: for some microseconds instead of milliseconds.
# There the threads that look keep those that have work from running, and a step took up to twenty times as long.
_SPINS_WHEN_BUSY = "1000"
_BUSY = 2.5  # programs that want to run, for each processor; a test run or a build just before leaves less


@contextmanager
def _patience() -> Iterator[None]:
    """The OpenMP runtime reads its settings from the environment while torch is loaded."""
    chosen = "GOMP_SPINCOUNT" in os.environ or "OMP_WAIT_POLICY" in os.environ
    if chosen or not hasattr(os, "getloadavg") or os.getloadavg()[0] < _BUSY * (os.cpu_count() or 1):
        yield
        return
    os.environ["GOMP_SPINCOUNT"] = _SPINS_WHEN_BUSY
    try:
        yield
    finally:
        del os.environ["GOMP_SPINCOUNT"]


def _load() -> None:
    """Imports torch and the ops with the cycle collector at rest.

    The hundreds of thousands of objects they make live as long as the process, and searching them for garbage again and again
    takes a third of the time to import them. They are set aside (`gc.freeze`), so later collections do not search them either.
    """
    collecting = gc.isenabled()
    gc.disable()
    try:
        with _patience():
            importlib.import_module("torch")
        importlib.import_module("stoker._src.ops")
    finally:
        if collecting:
            gc.freeze()
            gc.enable()


_load()
