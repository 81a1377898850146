"""Shared `lower` functions: how ops are written as fused loops (runtime/plan/fused_loops.py)."""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import Any

import torch


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


def viewed(build: Any, op: Any, *inputs: Any) -> Any:
    """A kernel that returns views, as copies: its effect on a tensor without memory shows the shape and the strides of each view."""
    at = next(i for i, item in enumerate(inputs) if hasattr(item, "shape"))
    x = inputs[at]
    like = torch.empty(x.shape, device="meta")
    given = [like if i == at else item for i, item in enumerate(inputs)]
    try:
        results = op.definition.kernel_fn(*given, **{name: op.attrs[name] for name in op.definition.kernel_attrs})
    except Exception:
        return None  # the run raises the error
    views = [results] if isinstance(results, torch.Tensor) else list(results)
    if not all(view._base is like or view is like for view in views):
        return None
    made = [build.copy(x, tuple(view.shape), list(view.stride()), int(view.storage_offset())) for view in views]
    return None if None in made else made


def bits_of(number: float) -> int:
    """The bits of a number as a double, for the native loops of small ops, which take integers."""
    return struct.unpack("<q", struct.pack("<d", number))[0]
