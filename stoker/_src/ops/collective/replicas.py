"""The strategy in whose scope a program is, and whether it is inside a replica. `tf.distribute` sets it, optimizers ask. The error of a lost replica."""

from __future__ import annotations

import threading
import weakref
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from stoker._src.base.errors import UnavailableError
from stoker._src.graph import context


class LostReplicaError(UnavailableError):
    """A process that trains together with this one has ended. All of them must start again."""


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


# Graphs in which optimizers divide losses by the number of replicas, unless the last loss was a sum over examples. An Estimator with a strategy makes them.
_averaging: weakref.WeakKeyDictionary[Any, bool] = weakref.WeakKeyDictionary()


def average_losses() -> None:
    """Makes the current graph one whose losses are means: the gradient of the replicas is the mean of theirs."""
    _averaging[context.get_default_graph()] = True


def loss_was_made(is_sum: bool) -> None:
    """Notes how a loss function has reduced the losses of examples."""
    graph = context.get_default_graph()
    if graph in _averaging:
        _averaging[graph] = not is_sum


def losses_are_means() -> bool:
    """Whether optimizers divide losses by the number of replicas."""
    return not context.executing_eagerly() and _averaging.get(context.get_default_graph(), False)


def share_of(loss: Any) -> Any:
    """What this replica contributes to the loss of all."""
    strategy, _ = current()
    if strategy is None or strategy.num_replicas_in_sync == 1 or not losses_are_means():
        return loss
    return loss / strategy.num_replicas_in_sync
