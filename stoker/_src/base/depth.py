"""How deep functions may nest: what works through them level by level gets the Python frames it needs.

Branches, loops and calls hold functions that hold others. Tracing, differentiating, planning and running them recurses, a few frames for
each level. Python's limit of 1,000 frames, which is there for programs that went astray, would end that at about a hundred levels.
"""

from __future__ import annotations

import sys
import threading
from typing import Any

from stoker._src.base import forking
from stoker._src.base.errors import ResourceExhaustedError

MOST_LEVELS = 500
_FRAMES_PER_LEVEL = 40
_guard = forking.lock()
_limit_before: int | None = None
_open = 0  # levels in all threads


class _Levels(threading.local):
    count = 0


_levels = _Levels()


class Level:
    """`with Level():` around the work on one function, which may come to do the same for the functions that are called there.

    Raises:
        ResourceExhaustedError: more than `MOST_LEVELS` are open in this thread.
    """

    def __enter__(self) -> None:
        global _limit_before, _open
        count = _levels.count + 1
        if count > MOST_LEVELS:
            raise _too_deep()
        with _guard:
            if not _open:
                _limit_before = sys.getrecursionlimit()
            _open += 1
            _allow((_limit_before or 0) + count * _FRAMES_PER_LEVEL)
        _levels.count = count

    def __exit__(self, *exc: Any) -> None:
        global _open
        _levels.count -= 1
        with _guard:
            _open -= 1
            if not _open and _limit_before is not None:
                sys.setrecursionlimit(_limit_before)


def _only_mine(levels: _Levels) -> None:
    """In a forked child: only this thread's levels are open."""
    global _open
    _open = levels.count


forking.in_children(_levels, _only_mine)


def allow_running(levels: int) -> None:
    """Lets a plan run whose functions nest `levels` deep, from here on.

    Raises:
        ResourceExhaustedError: that is more than `MOST_LEVELS`.
    """
    global _limit_before
    if levels > MOST_LEVELS:
        raise _too_deep()
    with _guard:
        frames = 1000 + levels * _FRAMES_PER_LEVEL
        if _open:
            _limit_before = max(_limit_before or 0, frames)
        _allow(frames)


def _allow(frames: int) -> None:
    if sys.getrecursionlimit() < frames:
        sys.setrecursionlimit(frames)


def _too_deep() -> ResourceExhaustedError:
    return ResourceExhaustedError(None, None, f"Functions are nested more than {MOST_LEVELS} levels deep.")
