"""Synchronization modes of variables, and creator functions that intercept the creation of a variable."""

from __future__ import annotations

import enum
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from stoker._src.base.export import export


@export("VariableSynchronization")
class VariableSynchronization(enum.Enum):
    """When copies of a variable on several devices are synchronized."""

    AUTO = 0
    NONE = 1
    ON_WRITE = 2
    ON_READ = 3


@export("VariableAggregation")
class VariableAggregation(enum.Enum):
    """How updates of a variable's copies are aggregated."""

    NONE = 0
    SUM = 1
    MEAN = 2
    ONLY_FIRST_REPLICA = 3
    ONLY_FIRST_TOWER = 3


# The constructor arguments of `tf.Variable` in both versions, with their defaults.
_DEFAULTS = {
    "validate_shape": True,
    "synchronization": VariableSynchronization.AUTO,
    "aggregation": VariableAggregation.NONE,
    "experimental_enable_variable_lifting": True,
}
V1_ARGUMENTS = {
    name: _DEFAULTS.get(name)
    for name in (
        "initial_value trainable collections validate_shape caching_device name variable_def dtype expected_shape "
        "import_scope constraint use_resource synchronization aggregation shape"
    ).split()
}
V2_ARGUMENTS = {
    name: _DEFAULTS.get(name)
    for name in (
        "initial_value trainable validate_shape caching_device name variable_def dtype import_scope constraint "
        "synchronization aggregation shape experimental_enable_variable_lifting"
    ).split()
}


class _Creators:
    """The stack of creator functions of one graph (or of eager mode)."""

    stack: list[Callable[..., Any]] = []


@export("variable_creator_scope")
@contextmanager
def variable_creator_scope(variable_creator: Callable[..., Any]) -> Iterator[None]:
    """Variables created inside this context are created by `variable_creator(next_creator, **kwargs)`."""
    _Creators.stack.append(variable_creator)
    try:
        yield
    finally:
        _Creators.stack.pop()


def create(make: Callable[..., Any], arguments: dict[str, Any], fixed: dict[str, Any], given: dict[str, Any]) -> Any:
    """Creates a variable with `make`, through the active creator functions.

    Args:
        make: called with `arguments` as the creators leave them (unknown ones are dropped) and `fixed`.
        arguments: the constructor's arguments with their defaults. Creators see all of them.
        fixed: further arguments, which creators do not see.
        given: the arguments that the user passed.

    Raises:
        TypeError: an argument is not one of the constructor's.
    """
    for key in given:
        if key not in arguments:
            raise TypeError(f"Variable() got an unexpected keyword argument {key!r}")

    def default(next_creator: Any = None, **kwargs: Any) -> Any:
        return make(**{key: value for key, value in kwargs.items() if key in arguments}, **fixed)

    made = default
    for creator in _Creators.stack:
        made = _bound(creator, made)
    return made(**{**arguments, **given})


def _bound(creator: Callable[..., Any], following: Callable[..., Any]) -> Callable[..., Any]:
    return lambda **kwargs: creator(following, **kwargs)
