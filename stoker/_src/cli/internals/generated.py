"""Ops with the names and signatures of TensorFlow's generated modules: `gen_math_ops.mat_mul(a, b, transpose_a=False, ..., name=None)`."""

from __future__ import annotations

import functools
import re
from collections.abc import Callable
from typing import Any

from stoker._src.graph.definition import all_definitions
from stoker._src.runtime import raw_ops


def snake_case(op_type: str) -> str:
    """Returns the name of an op's generated function: `Conv2DBackpropInput` -> `conv2d_backprop_input`, `TopKV2` -> `top_kv2`."""
    return re.sub(r"(?<=[a-z])(?=[A-Z])|(?<=[A-Z0-9])(?=[A-Z][a-z])", "_", op_type).lower()


@functools.cache
def _names() -> dict[str, str]:
    return {snake_case(name): name for name in all_definitions()}


@functools.cache
def _function(op_type: str) -> Callable[..., Any]:
    raw = getattr(raw_ops, op_type)

    def call(*args: Any, **kwargs: Any) -> Any:
        bound = raw.__signature__.bind(*args, **kwargs)
        return raw(**bound.arguments)

    call.__name__ = call.__qualname__ = snake_case(op_type)
    call.__signature__ = raw.__signature__
    call.__doc__ = f"The op {op_type}."
    return call


def __getattr__(name: str) -> Any:
    if name in all_definitions():  # 2.x also has ops under their type names there
        return getattr(raw_ops, name)
    found = _names().get(name.lstrip("_"))
    if found is None:
        raise AttributeError(f"there is no op whose generated name is {name!r}")
    return _function(found)
