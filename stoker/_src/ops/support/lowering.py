"""How ops are spelled in programs (runtime/plan/fused_loops.py): what several of them share."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


def unary_loop(name: str) -> Callable[..., Any]:
    return lambda build, op, x: build.unary(name, x)


def binary_loop(name: str) -> Callable[..., Any]:
    return lambda build, op, x, y: build.binary(name, x, y)


def alike_loop(name: str) -> Callable[..., Any]:
    """`binary_loop` for ops whose inputs must have one shape; others are left to the kernel, which says so."""
    return lambda build, op, x, y: build.binary(name, x, y) if x.shape == y.shape else None


def reshaped(build: Any, op: Any, x: Any, *_: Any) -> Any:
    """The same elements in the shape that the graph knows the result has."""
    shape = build.shape_of(op.outputs[0])
    return build.reshape(x, shape.dims) if x.size == shape.size else None
