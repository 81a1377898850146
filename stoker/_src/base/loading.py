"""Loads torch, the ops and the runtime once, when the first module needs them, as fast as possible."""

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

# How often a torch OpenMP thread polls for work or for the other threads before it sleeps: half a millisecond, longer than the time
# between the parallel parts of a step. OpenMP's default of 300,000 times is several milliseconds. On a busy machine threads sleep
# sooner: with more OpenMP threads than processors, they poll 1,000 times if the policy is `active` (runtime/native/waiting.h).
_SPINS = "20000"


def _settings() -> dict[str, str]:
    """The environment variables that torch and its OpenMP read while they are loaded, except those that the user set."""
    # Large pages for large tensors: gathers from a large table are twice as fast.
    settings = {"THP_MEM_ALLOC_ENABLE": "1"}
    if "OMP_WAIT_POLICY" not in os.environ and "GOMP_SPINCOUNT" not in os.environ:
        settings["GOMP_SPINCOUNT"] = _SPINS
        if _has_libgomp():  # other OpenMP libraries would poll forever
            settings["OMP_WAIT_POLICY"] = "active"
    return {name: value for name, value in settings.items() if name not in os.environ}


def _has_libgomp() -> bool:
    """Whether torch brings GNU's OpenMP library."""
    spec = importlib.util.find_spec("torch")
    folder = None if spec is None or spec.origin is None else os.path.join(os.path.dirname(spec.origin), "lib")
    return (
        folder is not None and os.path.isdir(folder) and any(name.startswith("libgomp") for name in os.listdir(folder))
    )


@contextmanager
def _set(settings: dict[str, str]) -> Iterator[None]:
    os.environ.update(settings)
    try:
        yield
    finally:
        for name in settings:
            del os.environ[name]


# Modules that torch and the ops import anyway. The linker loads one library at a time, so modules with a library come first.
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
    """Imports torch. While the linker loads its library without the GIL, Python imports other modules."""
    spec = None if "torch" in sys.modules else importlib.util.find_spec("torch")
    if spec is None or spec.origin is None or not sys.platform.startswith("linux"):
        importlib.import_module("torch")
        return
    # Called by name, dlopen runs with the GIL released, unlike `ctypes.CDLL`. torch reports a failure later.
    library = os.path.join(os.path.dirname(spec.origin), "lib", "libtorch_cpu.so").encode()
    reading = threading.Thread(target=ctypes.CDLL(None).dlopen, args=(library, os.RTLD_NOW), name="torch library")
    for module in _WITH_LIBRARIES:
        importlib.import_module(module)
    reading.start()
    for module in (*_WITHOUT, "torch"):
        importlib.import_module(module)
    reading.join()


def load() -> None:
    """Imports torch, the ops and the runtime, with garbage collection off.

    Importing creates hundreds of thousands of objects that live as long as the process. Repeated collection of them would
    take a third of the import time. They are also excluded from later collections (`gc.freeze`).
    """
    collecting = gc.isenabled()
    gc.disable()
    try:
        with _set(_settings()):
            _import_torch()
            sys.modules["torch"].empty(1)  # the allocator reads its setting on first use
        ops = importlib.import_module("stoker._src.ops")
        for module in pkgutil.walk_packages(ops.__path__, ops.__name__ + "."):
            if ".native" not in module.name:
                importlib.import_module(module.name)
        importlib.import_module("stoker._src.runtime.install")
        importlib.import_module("stoker._src.distributed.targets")
    finally:
        if collecting:
            gc.freeze()
            gc.enable()
