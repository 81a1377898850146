"""Adds the user's source lines to errors of converted functions."""

from __future__ import annotations

import linecache
import re
import traceback
from types import CodeType
from typing import Any

from stoker._src.base.errors import OpError
from stoker._src.graph.source_lines import is_ours

CONVERTED: set[CodeType] = set()  # generated code objects
PIECES: dict[CodeType, str] = {}  # generated parts of a user's function -> the function's name
_UNBOUND = re.compile(r"cannot access (?:free|local) variable '(\w+)'")


class _KeyErrorInWords(KeyError):
    """A KeyError that shows its message without quotes."""

    def __str__(self) -> str:
        return str(self.args[0])


_KeyErrorInWords.__name__ = _KeyErrorInWords.__qualname__ = "KeyError"


def unbound(error: Exception) -> Exception:
    """Converts a NameError for an unbound variable to the UnboundLocalError of the user's function."""
    found = _UNBOUND.match(str(error)) if isinstance(error, NameError) else None
    if found is None:
        return error
    made = UnboundLocalError(f"'{found[1]}' is used before assignment")
    return made.with_traceback(error.__traceback__)


def in_user_code(error: Exception) -> Exception:
    """Returns the error with the user's lines in its message: the same object if possible, else one of the same class.

    Errors whose class builds its own message from other data are returned unchanged.
    """
    error = unbound(error)
    plain = getattr(error, "_autograph_message", None)  # an inner function may have added its lines already
    if plain is None:
        plain = f"{type(error).__name__}: {error}"
    told = f"in user code:\n\n{_user_lines(error)}\n{_indented(plain)}\n"
    if isinstance(error, OpError):
        error._message = told
    elif isinstance(error, KeyError):
        error = _KeyErrorInWords(told).with_traceback(error.__traceback__)
    args, error.args = error.args, (told,)
    if str(error) != told:
        error.args = args
        return error
    error._autograph_message = plain  # type: ignore[attr-defined]
    return error


def _user_lines(error: Exception) -> str:
    frames = [
        (frame.f_code, line)
        for frame, line in traceback.walk_tb(error.__traceback__)
        if not is_ours(frame.f_code.co_filename)
    ]
    told = []
    for position, (code, line) in enumerate(frames):
        if position + 1 < len(frames) and frames[position + 1][0] in PIECES:
            continue  # the next frame, a piece, has the exact line
        mark = "  *" if code in CONVERTED else ""
        told.append(f'    File "{code.co_filename}", line {line}, in {PIECES.get(code, code.co_name)}{mark}\n')
        text = linecache.getline(code.co_filename, line).strip()
        told.append(f"        {text}\n" if text else "")
    return "".join(told)


def _indented(text: Any) -> str:
    return "\n".join(f"    {line}" for line in str(text).split("\n"))
