"""Everything behind the public names. Importing it defines every op."""

import gc
import importlib
import os
from collections.abc import Iterator
from contextlib import contextmanager

# How often a thread of torch's OpenMP looks for work before it sleeps: for some ten microseconds instead of milliseconds. On an idle machine
# that is enough between two ops. On a busy one the threads that look keep those that have work from running, and a step
# took up to twenty times as long.
_SPINS = "2000"


@contextmanager
def _patience() -> Iterator[None]:
    """The OpenMP runtime reads its settings from the environment while torch is loaded."""
    if "GOMP_SPINCOUNT" in os.environ or "OMP_WAIT_POLICY" in os.environ:
        yield
        return
    os.environ["GOMP_SPINCOUNT"] = _SPINS
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
