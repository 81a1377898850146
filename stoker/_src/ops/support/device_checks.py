"""Answers that a GPU computes and the host must see before variables change: is this matrix invertible, is this number finite?

A kernel that looked at such an answer at once would make the host wait in the middle of a step, and a step that waits cannot be recorded
as a CUDA graph. It calls `require` instead. Outside of a recording that looks at the answer at once. While a step is recorded, answers are
collected, and `settle`, which the plan calls before the first write behind them, has the host look at all of them in one wait.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch

from stoker._src.base.errors import OpError

Refusal = Callable[[], OpError]


@dataclass(frozen=True)
class Answer:
    """A number on the device that is true if all is well, and what to raise if not. `line` is the line of the step that asked."""

    good: torch.Tensor
    refusal: Refusal
    line: tuple[str, int] | None

    def raise_refusal(self) -> None:
        error = self.refusal()
        error.step_line = self.line  # type: ignore[attr-defined]
        raise error


_collecting = threading.local()


def require(good: torch.Tensor, refusal: Refusal) -> None:
    """Raises `refusal()` unless all elements of `good` are true, at once or when the step settles its answers."""
    settle_answers = getattr(_collecting, "settle", None)
    if settle_answers is not None and good.device.type == _collecting.device:
        _collecting.answers.append(Answer(good.all(), refusal, _line_of_step()))
    elif not bool(good.all()):
        raise refusal()


def settle(*_: Any) -> None:
    """Lets the host look at the answers that were collected. Called by plans before they write to variables."""
    settle_answers = getattr(_collecting, "settle", None)
    if settle_answers is not None and _collecting.answers:
        answers, _collecting.answers = _collecting.answers, []
        settle_answers(answers)


@contextmanager
def collected(settle_answers: Callable[[list[Answer]], None], device: str = "cuda") -> Iterator[None]:
    """Collects what this thread requires of a device's numbers, also what is left at the end, for `settle_answers`."""
    _collecting.settle, _collecting.answers, _collecting.device = settle_answers, [], device
    try:
        yield
        settle()
    finally:
        _collecting.settle, _collecting.answers = None, []


def _line_of_step() -> tuple[str, int] | None:
    """Returns the line of the compiled step that is running. Its file name is not one of the file system."""
    frame = sys._getframe(2)
    while frame is not None:
        if frame.f_code.co_filename.startswith("<stoker step"):
            return frame.f_code.co_filename, frame.f_lineno
        frame = frame.f_back
    return None
