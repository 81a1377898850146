"""Locks that are free in a forked child.

A child has only the thread that forked. A lock that another thread held at that moment would stay locked in the child, since the thread that
releases it does not exist there. Locks made here are free in every child. An object whose state depends on threads registers a
function that prepares it for the child.
"""

from __future__ import annotations

import os
import threading
import weakref
from collections.abc import Callable
from typing import Any

_locks: weakref.WeakSet[Any] = weakref.WeakSet()
_objects: weakref.WeakKeyDictionary[Any, Callable[[Any], None]] = weakref.WeakKeyDictionary()


def lock() -> threading.Lock:
    """Returns a lock that is free in forked children."""
    return _remembered(threading.Lock())


def rlock() -> Any:
    """Returns a reentrant lock that is free in forked children, unless the thread that forked holds it."""
    return _remembered(threading.RLock())


def condition() -> threading.Condition:
    """Returns a condition whose lock is free in forked children, and on which nobody waits there."""
    return _remembered(threading.Condition())


def _remembered(made: Any) -> Any:
    _locks.add(made)
    return made


def in_children(instance: Any, prepare: Callable[[Any], None]) -> None:
    """Calls `prepare(instance)` in every forked child, as long as the object lives. It must not wait."""
    _objects[instance] = prepare


def _prepare_child() -> None:
    for made in list(_locks):
        # The code that forked releases what its own thread holds. Only reentrant locks know who holds them.
        if not (hasattr(made, "_is_owned") and made._is_owned()):
            made._at_fork_reinit()
    for instance, prepare in list(_objects.items()):
        prepare(instance)


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_prepare_child)
