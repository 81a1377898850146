"""Deprecation warnings: the first call of a deprecated function logs its replacement."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from stoker._src.base import tf_logging


def deprecated(date: str | None, instructions: str, warn_once: bool = True) -> Callable[[Any], Any]:
    """Marks a function as deprecated. Its first call logs a warning."""

    def decorate(function: Callable[..., Any]) -> Callable[..., Any]:
        told: list[bool] = []

        @functools.wraps(function)
        def wrapper(*args: Any, **kwargs: Any) -> Any:
            if not told or not warn_once:
                told.append(True)
                when = f"after {date}" if date else "in a future version"
                tf_logging.warning(
                    "%s is deprecated and will be removed %s. %s", function.__qualname__, when, instructions
                )
            return function(*args, **kwargs)

        return wrapper

    return decorate
