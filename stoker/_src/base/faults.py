"""Distinguishes defects of stoker from errors of the user: an exception that Python raises in stoker's own code is a defect."""

from __future__ import annotations

import dis
import os
import re
import sysconfig
from types import TracebackType
from typing import Any

from stoker._src.base import settings
from stoker._src.base.errors import InternalError

_ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep
_OURS = (_ROOT, "<stoker step")
_LIBRARIES = tuple({sysconfig.get_path(name) + os.sep for name in ("stdlib", "platstdlib", "purelib", "platlib")})
_KINDS = (AttributeError, NameError, TypeError, KeyError)
_RAISE = dis.opmap["RAISE_VARARGS"]
# How torch functions refuse an argument, which may come from the user.
_REFUSED = re.compile(r"\w+\(\)(: argument|: \w+ ?\w* ?must be| received an invalid combination)")


def own_fault(error: BaseException, op: Any) -> BaseException | None:
    """The exception to raise if `error` is a defect in a kernel, shape rule or gradient of `op`; else None.

    A defect is an AttributeError, NameError, TypeError or KeyError that Python itself raised in stoker's code. Exceptions that stoker
    raises on purpose, that a library raises, or that come from the user's code (callbacks, registered gradients) are not defects.
    With `settings.raise_faults`, the error itself is returned.
    """
    if not isinstance(error, _KINDS) or (isinstance(error, TypeError) and _REFUSED.match(str(error))):
        return None
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        if not _is_known(trace):
            return None
        trace = trace.tb_next
    if trace is None or not _is_ours(trace) or _raises(trace):
        return None
    if settings.raise_faults:
        return error
    code = trace.tb_frame.f_code
    where = f"{code.co_filename.removeprefix(_ROOT)}:{trace.tb_lineno} in {code.co_name}"
    label = "" if op is None else f"{op.type} '{op.name}': "
    return InternalError(
        None,
        None,
        f"{label}{type(error).__name__}: {error} (at {where}). This is a defect of stoker, not of your program. "
        "Please report it with this message and the lines that lead to it.",
    )


def _is_ours(trace: TracebackType) -> bool:
    return trace.tb_frame.f_code.co_filename.startswith(_OURS)


def _is_known(trace: TracebackType) -> bool:
    """Whether a frame belongs to stoker or a library, not to the user."""
    return _is_ours(trace) or trace.tb_frame.f_code.co_filename.startswith((*_LIBRARIES, "<frozen"))


def _raises(trace: TracebackType) -> bool:
    """Whether a `raise` statement in the frame raised the error."""
    return trace.tb_frame.f_code.co_code[trace.tb_lasti] == _RAISE
