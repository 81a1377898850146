"""Shared `lower` functions: how ops are written as fused loops (runtime/plan/fused_loops.py)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


def unary_loop(name: str) -> Callable[..., Any]:
    return lambda build, op, x: build.unary(name, x)


def binary_loop(name: str) -> Callable[..., Any]:
    return lambda build, op, x, y: build.binary(name, x, y)


def alike_loop(name: str) -> Callable[..., Any]:
    """`binary_loop` for ops whose inputs must have the same shape. If they differ, the op's kernel runs and raises the error."""
    return lambda build, op, x, y: build.binary(name, x, y) if x.shape == y.shape else None


def reshaped(build: Any, op: Any, x: Any, *_: Any) -> Any:
    """The same elements in the static shape of the result."""
    shape = build.shape_of(op.outputs[0])
    return build.reshape(x, shape.dims) if x.size == shape.size else None
