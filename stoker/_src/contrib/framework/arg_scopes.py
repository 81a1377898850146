"""`arg_scope`: default arguments for the functions that are called inside of a `with` block."""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

from stoker._src.base.export import export

Function = TypeVar("Function", bound=Callable[..., Any])
Defaults = dict[str, dict[str, Any]]  # the key of a function -> its arguments


class _Scopes(threading.local):
    def __init__(self) -> None:
        self.stack: list[Defaults] = [{}]


_SCOPES = _Scopes()
_ARGUMENTS: dict[str, tuple[str, ...]] = {}  # the key of a function -> the names of its arguments with defaults


@export(v1=("contrib.framework.add_arg_scope", "contrib.slim.add_arg_scope"))
def add_arg_scope(func: Function) -> Function:
    """A decorator of functions whose arguments `arg_scope` may set. Arguments of the call itself take precedence."""
    key = f"{func.__module__}.{func.__qualname__}"

    @functools.wraps(func)
    def with_defaults(*args: Any, **kwargs: Any) -> Any:
        given = _SCOPES.stack[-1].get(key)
        return func(*args, **(kwargs if given is None else {**given, **kwargs}))

    with_defaults._arg_scope_key = key  # type: ignore[attr-defined]
    code = func.__code__
    names, defaults = code.co_varnames[: code.co_argcount], func.__defaults__ or ()
    _ARGUMENTS[key] = names[len(names) - len(defaults) :]
    return with_defaults  # type: ignore[return-value]


def _key_of(func: Any) -> str:
    try:
        return func._arg_scope_key
    except AttributeError:
        name = getattr(func, "__name__", repr(func))
        raise ValueError(f"{name} is not decorated with @add_arg_scope") from None


@export(v1=("contrib.framework.has_arg_scope", "contrib.slim.has_arg_scope"))
def has_arg_scope(func: Any) -> bool:
    """Whether `arg_scope` may set arguments of a function."""
    return hasattr(func, "_arg_scope_key")


@export(v1=("contrib.framework.arg_scoped_arguments", "contrib.slim.arg_scoped_arguments"))
def arg_scoped_arguments(func: Any) -> tuple[str, ...]:
    """The names of the arguments of a function that `arg_scope` may set."""
    return _ARGUMENTS[_key_of(func)]


@export(v1="contrib.slim.arg_scope_func_key")
def arg_scope_func_key(func: Any) -> Any:
    """The key of a function in the dictionary of a scope."""
    return getattr(func, "_arg_scope_key", str(func))


@export(v1=("contrib.framework.current_arg_scope", "contrib.slim.current_arg_scope"))
def current_arg_scope() -> Defaults:
    """The default arguments that hold here, as a dictionary for `arg_scope`."""
    return _SCOPES.stack[-1]


@export(v1=("contrib.framework.arg_scope", "contrib.slim.arg_scope"))
@contextmanager
def arg_scope(list_ops_or_scope: Any, **kwargs: Any) -> Iterator[Defaults]:
    """Sets default arguments of functions inside of a `with` block.

        with arg_scope([layers.conv2d, layers.fully_connected], weights_regularizer=layers.l2_regularizer(0.01)) as scope:
            ...
        with arg_scope(scope):  # the same again
            ...

    Args:
        list_ops_or_scope: functions decorated by `add_arg_scope`, or the dictionary that another scope returned.
        **kwargs: the arguments.

    Raises:
        TypeError: the first argument is neither a list, a tuple nor a dictionary.
        ValueError: a function is not decorated, or a dictionary is given together with arguments.
    """
    if isinstance(list_ops_or_scope, dict):
        if kwargs:
            raise ValueError("When attempting to re-use a scope by suppling a dictionary, kwargs must be empty.")
        scope = dict(list_ops_or_scope)
    elif isinstance(list_ops_or_scope, (list, tuple)):
        scope = dict(_SCOPES.stack[-1])
        for key in map(_key_of, list_ops_or_scope):
            scope[key] = {**scope.get(key, {}), **kwargs}
    else:
        raise TypeError("list_ops_or_scope must either be a list/tuple or reused scope (i.e. dict)")
    _SCOPES.stack.append(scope)
    try:
        yield scope
    finally:
        _SCOPES.stack.pop()
