"""Whether a model trains or predicts: the learning phase, and what calls of outer layers say about it."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from stoker._src.base.export import export
from stoker._src.graph import context
from stoker._src.ops.array import constants
from stoker._src.ops.array.constants import placeholder_with_default
from stoker._src.ops.variables import variable_scope


class _Calls(threading.local):
    """The calls of layers that this thread is in, the innermost last."""

    def __init__(self) -> None:
        self.training: list[Any] = []


_calls = _Calls()
_eager_phase = 0


@contextmanager
def in_call(training: Any) -> Iterator[None]:
    """A call of a layer, whose inner layers take over its `training`."""
    _calls.training.append(training)
    try:
        yield
    finally:
        _calls.training.pop()


def calls_deep() -> int:
    """How many calls of layers this thread is in."""
    return len(_calls.training)


def outer_training() -> Any:
    """What the innermost call around this one says about training; None if nothing is said."""
    return next((each for each in reversed(_calls.training) if each is not None), None)


@export(v1="keras.backend.learning_phase", v2="keras.backend.learning_phase")
def learning_phase() -> Any:
    """1 in training, 0 otherwise. In a graph it is a placeholder with the default 0, unless `set_learning_phase` chose a number."""
    if context.executing_eagerly():
        return _eager_phase
    graph = variable_scope.program_graph()
    if graph.building_function:
        return _eager_phase
    phase = getattr(graph, "keras_learning_phase", None)
    if phase is None:
        with graph.as_default(), graph.name_scope(None), graph.control_dependencies(None):
            phase = placeholder_with_default(
                constants.constant(False, name="keras_learning_phase/input"), [], name="keras_learning_phase"
            )
        graph.keras_learning_phase = phase
    return phase


@export(v1="keras.backend.set_learning_phase", v2="keras.backend.set_learning_phase")
def set_learning_phase(value: int) -> None:
    """Fixes the learning phase: 0 or 1.

    Raises:
        ValueError: the value is something else.
    """
    global _eager_phase
    if value not in (0, 1):
        raise ValueError("Expected learning phase to be 0 or 1.")
    _eager_phase = int(value)
    if not context.executing_eagerly():
        variable_scope.program_graph().keras_learning_phase = int(value)


def reset_learning_phase() -> None:
    global _eager_phase
    _eager_phase = 0


def resolved(training: Any) -> Any:
    """The flag for a layer that behaves differently in training: its own argument, that of the calls around it, or the learning phase."""
    if training is None:
        training = outer_training()
    return learning_phase() if training is None else training
