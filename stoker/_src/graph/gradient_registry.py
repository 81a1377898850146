"""The gradient function of an op: the user's registration, the override of a scope, or that of the definition."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from stoker._src.base.export import export
from stoker._src.graph.definition import find_definition
from stoker._src.graph.source_lines import describe, user_frames

Gradient = Callable[..., Any]

_REGISTERED: dict[str, tuple[Gradient | None, str]] = {}


@export("RegisterGradient")
class RegisterGradient:
    """Decorator that registers the gradient function of an op type, or of a name for `gradient_override_map`."""

    def __init__(self, op_type: str) -> None:
        if not isinstance(op_type, str):
            raise TypeError("op_type must be a string")
        self._op_type = op_type

    def __call__(self, f: Gradient) -> Gradient:
        register_gradient(self._op_type, f)
        return f


@export("no_gradient", v1=("NotDifferentiable", "NoGradient"))
def not_differentiable(op_type: str) -> None:
    """Declares that ops of this type have no gradient."""
    if not isinstance(op_type, str):
        raise TypeError("op_type must be a string")
    register_gradient(op_type, None)


def register_gradient(op_type: str, function: Gradient | None) -> None:
    """Registers a gradient function (None: no gradient) under a name that has none yet."""
    definition = find_definition(op_type)
    known = definition is not None and (definition.gradient_fn is not None or not definition.differentiable)
    if op_type in _REGISTERED or known:
        where = _REGISTERED[op_type][1] if op_type in _REGISTERED else "its definition"
        raise KeyError(f"Registering two gradient with name '{op_type}'! (Previous registration was in {where})")
    _REGISTERED[op_type] = (function, describe(user_frames()))


def gradient_function(op: Any) -> Gradient | None:
    """The gradient function of `op`, or None if it has no gradient.

    Raises:
        LookupError: no gradient is registered.
    """
    override = op.attrs.get("_gradient_op_type")
    if op.definition.planning.calls and override not in _REGISTERED:
        override = None  # 1.15 registered the gradients of its calls one by one, in a process that is gone
    name = op.type if override is None else override
    if name in _REGISTERED:
        return _REGISTERED[name][0]
    definition = op.definition if override is None else find_definition(name)
    if definition is not None:
        if definition.gradient_fn is not None:
            return definition.gradient_fn
        if not definition.differentiable:
            return None
    raise LookupError(f"gradient registry has no entry for: {name}")


def is_registered_by_user(op_type: str) -> bool:
    """Whether a program has registered the gradient of ops of this type."""
    return op_type in _REGISTERED
