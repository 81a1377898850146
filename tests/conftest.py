"""Every test starts in graph mode with an empty default graph; eager tests ask for the `eager` fixture."""

from __future__ import annotations

import pytest

import stoker.compat.v1  # noqa: F401  (loads every op)
from stoker._src.base import shapes
from stoker._src.graph import context


@pytest.fixture(autouse=True)
def fresh_program():
    """1.x behaviour, an empty default graph, no default session."""
    context.set_eager_by_default(False)
    shapes.set_v2_tensorshape(False)
    context.reset_default_graph()
    yield
    context.set_eager_by_default(False)
    shapes.set_v2_tensorshape(False)


@pytest.fixture
def eager():
    """2.x behaviour: ops run when called."""
    shapes.set_v2_tensorshape(True)
    with context.enter_eager():
        yield
    shapes.set_v2_tensorshape(False)
