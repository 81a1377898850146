"""Helpers of TensorFlow's internal modules that programs import: decorators, inspection, ops by their generated names."""

from __future__ import annotations

import functools
import inspect
import re
from collections.abc import Callable
from typing import Any

from stoker._src.base import tf_logging
from stoker._src.graph.definition import all_definitions

getargspec = getfullargspec = inspect.getfullargspec
getmembers, getsource, signature = inspect.getmembers, inspect.getsource, inspect.signature
isclass, isfunction, ismethod, ismodule = inspect.isclass, inspect.isfunction, inspect.ismethod, inspect.ismodule


def tf_export(*names: str, **options: Any) -> Callable[[Any], Any]:
    """Gives a function public names in TensorFlow's own source; elsewhere it changes nothing."""
    return lambda item: item


def deprecated(date: str | None, instructions: str, warn_once: bool = True) -> Callable[[Any], Any]:
    """Marks a function as deprecated: its first call writes a warning."""

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


def deprecated_args(date: str | None, instructions: str, *names: Any, **options: Any) -> Callable[[Any], Any]:
    """Marks arguments as deprecated: the first call that passes one of them by name writes a warning."""
    listed = {name if isinstance(name, str) else name[0] for name in names}

    def decorate(function: Callable[..., Any]) -> Callable[..., Any]:
        told: set[str] = set()

        @functools.wraps(function)
        def wrapper(*args: Any, **kwargs: Any) -> Any:
            for name in listed & kwargs.keys() - told:
                told.add(name)
                when = f"after {date}" if date else "in a future version"
                tf_logging.warning(
                    "%s: argument %s is deprecated and will be removed %s. %s",
                    function.__qualname__,
                    name,
                    when,
                    instructions,
                )
            return function(*args, **kwargs)

        return wrapper

    return decorate


def snake_case(op_type: str) -> str:
    """The name of an op's generated function: `Conv2DBackpropInput` -> `conv2d_backprop_input`, `TopKV2` -> `top_kv2`."""
    return re.sub(r"(?<=[a-z])(?=[A-Z])|(?<=[A-Z0-9])(?=[A-Z][a-z])", "_", op_type).lower()


@functools.cache
def _generated() -> dict[str, str]:
    return {snake_case(name): name for name in all_definitions()}


def __getattr__(name: str) -> Any:
    """Ops under the names that `gen_*_ops` give them."""
    found = _generated().get(name.lstrip("_"))
    if found is None:
        raise AttributeError(f"there is no op whose generated name is {name!r}")
    return all_definitions()[found]
