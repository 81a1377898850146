"""How torch, the ops and what runs them are loaded: once, by the first module that needs them, as quickly as the machine allows."""

from __future__ import annotations

import ctypes
import gc
import importlib
import importlib.util
import os
import pkgutil
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager

# How often a thread of torch's OpenMP looks for work before it sleeps, on a busy machine: for some microseconds instead of milliseconds.
# There the threads that look keep those that have work from running, and a step took up to twenty times as long.
_SPINS_WHEN_BUSY = "1000"
_BUSY = 2.5  # programs that want to run, for each processor; a test run or a build just before leaves less


def _settings() -> dict[str, str]:
    """What torch and its OpenMP read from the environment while they are loaded, less what the user chose."""
    settings = {
        "THP_MEM_ALLOC_ENABLE": "1"
    }  # large tensors in large pages: rows of a large table are found twice as fast
    waiting = "GOMP_SPINCOUNT" in os.environ or "OMP_WAIT_POLICY" in os.environ
    if not waiting and hasattr(os, "getloadavg") and os.getloadavg()[0] >= _BUSY * (os.cpu_count() or 1):
        settings["GOMP_SPINCOUNT"] = _SPINS_WHEN_BUSY
    return {name: value for name, value in settings.items() if name not in os.environ}


@contextmanager
def _set(settings: dict[str, str]) -> Iterator[None]:
    os.environ.update(settings)
    try:
        yield
    finally:
        for name in settings:
            del os.environ[name]


# What torch and the ops import in any case. The linker reads one library at a time, so those that have one of their own come first.
_WITH_LIBRARIES = (
    "numpy",
    "google.protobuf.message",
    "google._upb._message",
    "ml_dtypes",
    "google_crc32c",
    "asyncio",
    "csv",
    "hashlib",
    "json",
    "tarfile",
    "tempfile",
    "tty",
    "uuid",
)
_WITHOUT = (
    "stoker._src.graph.interchange.importer",
    "absl.testing.absltest",
    "unittest.mock",
    "urllib.request",
    "importlib.metadata",
    "torchgen.model",
)


def _import_torch() -> None:
    """Imports torch, whose library the linker reads, without need of the interpreter, while Python reads other modules."""
    spec = None if "torch" in sys.modules else importlib.util.find_spec("torch")
    if spec is None or spec.origin is None or not sys.platform.startswith("linux"):
        importlib.import_module("torch")
        return
    # Called by name, dlopen runs with the interpreter's lock released, which loading by `ctypes.CDLL` does not. Its failure is found by torch.
    library = os.path.join(os.path.dirname(spec.origin), "lib", "libtorch_cpu.so").encode()
    reading = threading.Thread(target=ctypes.CDLL(None).dlopen, args=(library, os.RTLD_NOW), name="torch library")
    for module in _WITH_LIBRARIES:
        importlib.import_module(module)
    reading.start()
    for module in (*_WITHOUT, "torch"):
        importlib.import_module(module)
    reading.join()


def load() -> None:
    """Imports torch, the ops and what runs them, with the cycle collector at rest.

    The hundreds of thousands of objects they make live as long as the process, and searching them for garbage again and again
    takes a third of the time to import them. They are set aside (`gc.freeze`), so later collections do not search them either.
    """
    collecting = gc.isenabled()
    gc.disable()
    try:
        with _set(_settings()):
            _import_torch()
            sys.modules["torch"].empty(1)  # the allocator reads its setting when it is first used
        ops = importlib.import_module("stoker._src.ops")
        for module in pkgutil.walk_packages(ops.__path__, ops.__name__ + "."):
            if ".native" not in module.name:
                importlib.import_module(module.name)
        importlib.import_module("stoker._src.runtime.install")
    finally:
        if collecting:
            gc.freeze()
            gc.enable()
