"""Errors as they travel between processes: a code and a message, with the name of the node that failed."""

from __future__ import annotations

import re

from stoker._src.base.errors import InternalError, OpError, exception_type_from_error_code
from stoker._src.graph.graph import Graph

_NODE = re.compile(r"\n?\s*\[\[(?:\{\{)?node ([^\s{}\]]+)[^\]]*\]\]")


def described(error: BaseException) -> tuple[int, str]:
    """Returns an error as code and message, with the node that failed."""
    if not isinstance(error, OpError):
        return InternalError.error_code, f"{type(error).__name__}: {error}"
    text = error.message
    name = getattr(error.op, "name", None)
    if name and not _NODE.search(text):
        text += f"\n\t [[{{{{node {name}}}}}]]"
    return error.error_code, text


def error_of(code: int, message: str) -> OpError:
    try:
        kind = exception_type_from_error_code(code)
    except KeyError:
        return OpError(None, None, message, code)
    return kind(None, None, message)


def raised(error: OpError, graph: Graph) -> OpError:
    """Returns an error of a server as an error of the client: with the op of the client's graph."""
    name = getattr(error.op, "name", None)
    message = error.message
    found = _NODE.search(message)
    if name is None and found is not None:
        name = found[1]
    op = graph._by_name.get(name) if name else None
    if op is not None and found is not None and found[1] == name:
        message = (message[: found.start()] + message[found.end() :]).strip()
    copy = error_of(error.error_code, message)
    copy._op = op
    return copy
