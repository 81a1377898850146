"""Whatever goes wrong in a kernel becomes a `tf.errors` exception that names the node and the user's line."""

from __future__ import annotations

from typing import Any

import torch

from stoker._src.base.errors import (
    InternalError,
    InvalidArgumentError,
    OpError,
    ResourceExhaustedError,
    UnimplementedError,
)
from stoker._src.base.shapes import Shape
from stoker._src.graph.tensor import Operation


def explain_failure(error: BaseException, op: Operation | None, values: list[Any] | None = None) -> BaseException:
    """The exception to raise for `error`, which the kernel of `op` raised on `values` (its flat inputs, if known)."""
    if isinstance(error, OpError):
        if error._op is None:
            error._op = op
        return error
    if not isinstance(error, Exception):
        return error  # KeyboardInterrupt and its like
    if op is not None and values is not None:
        better = _by_shape_rule(op, values)
        if better is not None:
            return better
    name = "" if op is None else f"{op.type}: "
    described = "" if values is None else f" (inputs: {', '.join(describe_value(value) for value in values)})"
    if isinstance(error, (MemoryError, torch.OutOfMemoryError)) or "not enough memory" in str(error):
        return ResourceExhaustedError(None, op, f"{name}out of memory when allocating{described}: {error}")
    if isinstance(error, NotImplementedError):
        return UnimplementedError(None, op, f"{name}{_first_line(error)}{described}")
    if isinstance(error, (RuntimeError, ValueError, TypeError, IndexError, OverflowError)):
        return InvalidArgumentError(None, op, f"{name}{_first_line(error)}{described}")
    return InternalError(None, op, f"{name}{type(error).__name__}: {error}{described}")


def _first_line(error: Exception) -> str:
    return (str(error).strip() or type(error).__name__).splitlines()[0]


def describe_value(value: Any) -> str:
    """`float32[2,3]`, for messages."""
    if isinstance(getattr(value, "value", None), torch.Tensor):
        value = value.value  # a variable
    if isinstance(value, torch.Tensor):
        return f"{str(value.dtype).removeprefix('torch.')}{Shape(value.shape)}"
    if hasattr(value, "shape"):
        return f"string{Shape(value.shape)}"
    return repr(value)[:80]


def _by_shape_rule(op: Operation, values: list[Any]) -> InvalidArgumentError | None:
    """The error of the op's own shape rule on the real shapes: it says more than torch does."""
    definition = op.definition
    if definition.shape_fn is None or definition.value_inputs or definition.shape_inputs:
        return None
    shapes = [Shape(value.shape) if isinstance(value, torch.Tensor) else Shape(None) for value in values]
    try:
        attrs = {name: op if name == "op" else op.attrs[name] for name in definition.shape_attrs}
        definition.shape_fn(*definition.group(shapes, op.attrs), **attrs)
    except InvalidArgumentError as error:
        error._op = op
        return error
    except Exception:
        return None
    return None
