"""The state of the `with` blocks around new ops, either shared by all threads that build a graph or thread-local."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import Any


class NameScope(threading.local):
    """The current name scope. It is always thread-local, as in TensorFlow."""

    current = ""


class Stacks:
    """The open blocks of control dependencies, devices and colocation, innermost last."""

    def __init__(
        self, controllers: Sequence[Any] = (), devices: Sequence[Any] = (), colocation: Sequence[Any] = ()
    ) -> None:
        self.controllers = list(controllers)
        self.devices = list(devices)
        self.colocation = list(colocation)

    def per_thread(self) -> ThreadStacks:
        """Returns thread-local stacks; every thread starts with the blocks that are open in this one."""
        return ThreadStacks(tuple(self.controllers), tuple(self.devices), tuple(self.colocation))


class ThreadStacks(Stacks, threading.local):
    """Thread-local stacks. `threading.local` calls `__init__` in each thread, with the original arguments."""

    def per_thread(self) -> ThreadStacks:
        return self
