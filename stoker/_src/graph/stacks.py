"""What the `with` blocks around new ops say, held for all threads that build a graph or for each of them."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import Any


class NameScope(threading.local):
    """The name scope that a thread is in: always its own, as in TensorFlow."""

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
        """The same for each thread by itself; every thread starts with the blocks that are open here."""
        return ThreadStacks(tuple(self.controllers), tuple(self.devices), tuple(self.colocation))


class ThreadStacks(Stacks, threading.local):
    """Stacks of which every thread has its own: threading.local calls `__init__` again, with these arguments, in each."""

    def per_thread(self) -> ThreadStacks:
        return self
