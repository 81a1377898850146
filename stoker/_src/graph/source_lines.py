"""The line of the user's program that created an op."""

from __future__ import annotations

import os
import sys
import threading
from types import CodeType

import stoker

_PACKAGE = os.path.dirname(os.path.abspath(stoker.__file__)) + os.sep
_LIMIT = 24
_FARTHEST = 64  # frames that are looked at; functions that nest deeply are differentiated by a deep recursion

# A code object and an instruction offset. The line number is computed only on demand.
Frames = tuple[tuple[CodeType, int], ...]


class _Recent(threading.local):
    frames: Frames = ()


_recent = _Recent()


def user_frames() -> Frames:
    """The caller's frames outside of this package, innermost first.

    If they are too far away, those of the last op count that this thread made closer to them.
    """
    frame = sys._getframe(2)
    package = _PACKAGE
    found = []
    left = _FARTHEST
    while frame is not None and left and len(found) < _LIMIT:
        code = frame.f_code
        if not code.co_filename.startswith(package):
            found.append((code, frame.f_lasti))
        frame = frame.f_back
        left -= 1
    if found:
        _recent.frames = frames = tuple(found)
        return frames
    return () if left else _recent.frames


def recent_frames() -> Frames:
    """The frames of the last op that this thread made: near enough for what an op adds to the function that it calls."""
    return _recent.frames


def is_ours(filename: str) -> bool:
    """Whether a file belongs to this package."""
    return filename.startswith(_PACKAGE)


def line_number(code: CodeType, instruction: int) -> int:
    for start, end, line in code.co_lines():
        if start <= instruction < end and line is not None:
            return line
    return code.co_firstlineno


def describe(frames: Frames) -> str:
    """`train.py:41 in build_model`, or a note that the op has no user line (it came from a file)."""
    if not frames:
        return "an unknown place"
    code, instruction = frames[0]
    line = line_number(code, instruction)
    where = os.path.basename(code.co_filename)
    return f"{where}:{line} in {code.co_name}" if code.co_name != "<module>" else f"{where}:{line}"
