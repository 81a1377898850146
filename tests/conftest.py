"""Every test starts in graph mode with an empty default graph; eager tests ask for the `eager` fixture."""

from __future__ import annotations

import os

import pytest

# Sums differ in the last digit with the number of threads, so it does not follow the load of the machine, also in child processes.
os.environ.setdefault("STOKER_THREADS", "fixed")

import stoker.compat.v1  # noqa: F401  (loads every op)
from stoker._src.base import settings, shapes
from stoker._src.graph import context
from stoker._src.runtime import devices
from tests.differs_on_gpu import reason_to_skip

settings.raise_faults = True  # a test that meets a defect shows where it is


@pytest.fixture(autouse=True)
def fresh_program():
    """1.x behaviour, an empty default graph, no default session."""
    context.set_eager_by_default(False)
    shapes.set_v2_tensorshape(False)
    context.reset_default_graph()
    yield
    context.set_eager_by_default(False)
    shapes.set_v2_tensorshape(False)


@pytest.fixture(autouse=True)
def no_gpu(request, monkeypatch):
    """Expected values are the CPU's, so tests run there even where there is a GPU; those marked `cuda` are for it.

    With STOKER_TEST_DEVICE=gpu all run as a program would, but with the CPU's precision. `differs_on_gpu.py` lists those that
    cannot pass there.
    """
    monkeypatch.setattr(devices, "visible_gpus", None)  # a test may have hidden them
    if request.node.get_closest_marker("cuda") is None:
        if os.environ.get("STOKER_TEST_DEVICE") == "gpu":
            reason = reason_to_skip(request.node.nodeid)
            if reason is not None:
                pytest.skip(reason)
            monkeypatch.setattr(devices, "_tensor_float_32", False)
        else:
            monkeypatch.setattr(devices, "usable_gpus", lambda: 0)


@pytest.fixture
def eager():
    """2.x behaviour: ops run when called."""
    shapes.set_v2_tensorshape(True)
    with context.enter_eager():
        yield
    shapes.set_v2_tensorshape(False)


@pytest.fixture
def equality(monkeypatch):
    """`==` of tensors compares their values, as in 2.x."""
    monkeypatch.setattr(settings, "tensor_equality", True)
