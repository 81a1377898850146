"""Converts errors in kernels to `tf.errors` exceptions that name the node and the user's line."""

from __future__ import annotations

import errno
import functools
from typing import Any

import numpy as np
import torch

from stoker._src.base.errors import (
    InternalError,
    InvalidArgumentError,
    OpError,
    ResourceExhaustedError,
    UnimplementedError,
)
from stoker._src.base.faults import own_fault
from stoker._src.base.shapes import Shape
from stoker._src.graph.definition import Kernel, ShapeRule
from stoker._src.graph.static_values import constant_value
from stoker._src.graph.tensor import Operation
from stoker._src.ops.support.values import to_numpy


def explain_failure(error: BaseException, op: Any, values: list[Any] | None = None) -> BaseException:
    """Returns the exception to raise for `error`, which the kernel of `op` raised on `values` (its flat inputs, if known).

    `op` is an Operation, the record of an op that ran eagerly, or None if it is unknown. Messages from torch and Python about their
    own functions do not help a user. Unless the op's shape rule has a better message, the message therefore lists the inputs.
    """
    node = op if isinstance(op, Operation) else None
    if isinstance(error, OpError):
        if error._op is None:
            error._op = node
        return error
    if not isinstance(error, Exception):
        return error  # KeyboardInterrupt, SystemExit and other non-errors
    if op is not None and values is not None:
        better = _by_shape_rule(op, values)
        if better is not None:
            better._op = node
            return better
    fault = None if _is_misfit(error, op, values) else own_fault(error, op)
    if fault is not None:
        if isinstance(fault, OpError):
            fault._op = node
        return fault
    name = "" if op is None else f"{op.type}: "
    described = "" if values is None else f" (inputs: {', '.join(describe_value(value) for value in values)})"
    if isinstance(error, (MemoryError, torch.OutOfMemoryError)) or _wants_memory(error):
        missing = "a thread when starting one" if "new thread" in str(error) else "memory when allocating"
        return ResourceExhaustedError(None, node, f"{name}out of {missing}{described}")
    if isinstance(error, RecursionError):
        return ResourceExhaustedError(None, node, f"{name}{_first_line(error)}{described}")
    if isinstance(error, NotImplementedError):
        return UnimplementedError(None, node, f"{name}{_first_line(error)}{described}")
    if isinstance(error, ValueError):
        return InvalidArgumentError(None, node, f"{name}{_first_line(error)}{described}")
    if isinstance(error, _MISFITS) and not str(error).startswith("CUDA error"):  # those say nothing of the inputs
        return InvalidArgumentError(
            None, node, f"{name}shapes, dtypes or values of the inputs do not fit the op or each other{described}"
        )
    return InternalError(None, node, f"{name}{type(error).__name__}: {error}{described}")


# Errors that kernels raise if inputs have unexpected ranks, sizes or types.
_MISFITS = (RuntimeError, TypeError, IndexError, ArithmeticError, AttributeError)


def _is_misfit(error: Exception, op: Any, values: list[Any] | None) -> bool:
    """Whether a kernel got a list instead of a single number (or the reverse), or strings instead of numbers."""
    if op is None:
        return False
    if isinstance(error, TypeError):
        return "'list'" in str(error) and any(arg.host for arg in op.definition.inputs)
    strings = isinstance(error, AttributeError) and str(error).startswith("'numpy.ndarray' object has no attribute")
    return strings and any(isinstance(value, np.ndarray) for value in values or ())


_SHORTAGES = (
    "not enough memory",
    "can't allocate memory",
    "Cannot allocate memory",
    "bad_alloc",
    "Storage size calculation over",
    "could not create a primitive",  # oneDNN's message has no further detail
    "can't start new thread",
    "Resource temporarily unavailable",
)


def _wants_memory(error: Exception) -> bool:
    """Whether memory or a thread could not be allocated."""
    if isinstance(error, OSError):
        return error.errno in (errno.ENOMEM, errno.EAGAIN)
    text = str(error)
    return any(words in text for words in _SHORTAGES)


def _first_line(error: Exception) -> str:
    return (str(error).strip() or type(error).__name__).splitlines()[0]


def describe_value(value: Any) -> str:
    """Formats a value for messages, for example `float32[2,3]`."""
    if isinstance(getattr(value, "value", None), torch.Tensor):
        value = value.value  # a variable
    if isinstance(value, torch.Tensor):
        return f"{str(value.dtype).removeprefix('torch.')}{Shape(value.shape)}"
    if isinstance(value, np.ndarray):
        return f"string{Shape(value.shape)}"
    return repr(value)[:80]


def _by_shape_rule(op: Any, values: list[Any]) -> InvalidArgumentError | None:
    """Returns the error of the op's shape rule on the actual shapes and values, which is more helpful than torch's."""
    try:
        op.definition.check_ranks([getattr(value, "ndim", None) for value in values], op.attrs)
        check_shapes(op, op.definition.group(values, op.attrs))
    except InvalidArgumentError as error:
        return error
    except Exception:
        return None
    return None


def check_shapes(op: Any, arguments: list[Any]) -> None:
    """Runs the op's shape rule on the actual shapes and values of its arguments. List inputs are passed as lists.

    Raises:
        InvalidArgumentError: the arguments are incompatible.
    """
    rule = op.definition.shape_rule
    if rule.function is None:
        return
    keywords = {name: op if name == "op" else op.attrs[name] for name in rule.attrs}
    seen = [
        [_seen(rule, arg.name, each) for each in item] if arg.is_list else _seen(rule, arg.name, item)
        for arg, item in zip(op.definition.inputs, arguments)
    ]
    rule.function(*seen, **keywords)


def checked_kernel(op: Operation) -> Kernel:
    """Returns a node's kernel with the checks that can only be made at run time."""
    definition = op.definition
    kernel = definition.rank_checking_kernel if definition.ranked else definition.kernel_fn
    assert kernel is not None

    @functools.wraps(kernel)
    def checked(*arguments: Any, **keywords: Any) -> Any:
        definition.check_narrow(op.attrs)
        if definition.shape_rule.enforced or definition.shape_rule.late:
            check_shapes(op, list(arguments))
        return kernel(*arguments, **keywords)

    return checked


def kernel_of(op: Operation) -> Any:
    """Returns the kernel, with the op's checks added if they could not run when the graph was built."""
    definition, rule = op.definition, op.definition.shape_rule
    # If the shape rule of a late op found incompatible shapes, its output shapes are unknown.
    unchecked = rule.late and any(tensor.static_shape.rank is None for tensor in op.outputs)
    if definition.ranked or rule.enforced:
        for arg, item in zip(definition.inputs, definition.group(op._inputs, op.attrs)):
            for tensor in item if arg.is_list else (item,):
                shape = tensor.static_shape
                unchecked |= arg.run_ranks is not None and (shape.rank is None or not arg.takes(shape.rank))
                if rule.enforced and not unchecked:
                    unchecked = not shape.known or (arg.name in rule.values and constant_value(tensor) is None)
    if definition.narrow and not unchecked:
        try:
            definition.check_narrow(op.attrs)
        except InvalidArgumentError:
            unchecked = True
    if not unchecked:
        return definition.kernel_fn
    plain = not (rule.enforced or definition.narrow or rule.late)
    return definition.rank_checking_kernel if plain else checked_kernel(op)


def _seen(rule: ShapeRule, name: str, value: Any) -> Any:
    """Returns an input in the form that the shape rule requires."""
    if isinstance(value, (bool, int, float, list)):  # a `host` input
        value = np.asarray(value)
    if not hasattr(value, "shape"):
        return Shape(None)
    if name in rule.values:
        return value if isinstance(value, np.ndarray) else to_numpy(value)
    if name in rule.as_shapes:
        return Shape(None if size < 0 else size for size in value.tolist())
    return Shape(value.shape)
