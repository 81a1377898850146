"""The gradient tapes that record ops in this thread."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any


class _Tapes(threading.local):
    def __init__(self) -> None:
        self.active: list[Any] = []


tapes = _Tapes()


@contextmanager
def no_tapes() -> Iterator[None]:
    """Suspends all tapes while a function's body is traced. They record only the op that calls it."""
    saved, tapes.active = tapes.active, []
    try:
        yield
    finally:
        tapes.active = saved
