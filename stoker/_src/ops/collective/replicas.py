"""The strategy in whose scope a program is, and whether it is inside a replica. `tf.distribute` sets it, optimizers ask."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any


class _Stack(threading.local):
    """The (strategy, replica context) pairs that this thread has entered. The context is None outside of a replica."""

    def __init__(self) -> None:
        self.entries: list[tuple[Any, Any]] = []


_stack = _Stack()
_default: list[tuple[Any, Any]] = []  # the strategy of `experimental_set_strategy`, for all threads


def current() -> tuple[Any, Any]:
    """The strategy and the replica context. Both are None outside of all strategies."""
    entries = _stack.entries or _default
    return entries[-1] if entries else (None, None)


@contextmanager
def entered(strategy: Any, replica_context: Any) -> Iterator[None]:
    """Enters a strategy's scope, or one of its replicas."""
    _stack.entries.append((strategy, replica_context))
    try:
        yield
    finally:
        _stack.entries.pop()


def inside() -> bool:
    """Whether this thread has entered a strategy."""
    return bool(_stack.entries)


def set_default(strategy: Any) -> None:
    """Makes a strategy the one of all threads that have not entered another; None for none."""
    _default[:] = [] if strategy is None else [(strategy, None)]
