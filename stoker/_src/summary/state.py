"""The state of `tf.summary` of 2.x in each thread: the current writer, the step, and whether to record."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any


class SummaryState(threading.local):
    """`recording` is None by default: 2.x then records, `tf.contrib.summary` does not."""

    writer: Any = None
    step: Any = None
    recording: Any = None


STATE = SummaryState()


@contextmanager
def replaced(**values: Any) -> Iterator[None]:
    """Changes the thread's state inside of a block."""
    outer = {name: getattr(STATE, name) for name in values}
    for name, value in values.items():
        setattr(STATE, name, value)
    try:
        yield
    finally:
        for name, value in outer.items():
            setattr(STATE, name, value)
