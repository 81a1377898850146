"""Wrappers that add the input checks of TensorFlow's kernels to kernels that do not check their inputs."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

from stoker._src.base.errors import InvalidArgumentError
from stoker._src.graph.planning import Kernel
from stoker._src.graph.signature import Arg


def same_shapes(op: str, kernel: Kernel, *, by_count: bool) -> Kernel:
    """Rejects inputs of different shapes. With `by_count`, only the numbers of elements must be equal."""

    @functools.wraps(kernel)
    def guarded(first: Any, *others: Any, **attrs: Any) -> Any:
        for i, other in enumerate(others):
            if other.shape != first.shape:
                if by_count and other.numel() == first.numel():
                    others = (*others[:i], other.reshape(first.shape), *others[i + 1 :])
                    continue
                raise InvalidArgumentError(
                    None,
                    None,
                    f"Inputs to operation of type {op} must have the same size and shape: {list(first.shape)} != {list(other.shape)}",
                )
        return kernel(first, *others, **attrs)

    return guarded


def reforming(inputs: Sequence[Arg], kernel: Kernel) -> Kernel:
    """Passes scalars and vectors to the kernel for inputs that may have any rank (`single`, `one` and `flat` in signatures)."""
    reforms = [(i, arg) for i, arg in enumerate(inputs) if arg.reform]

    @functools.wraps(kernel)
    def reformed(*arguments: Any, **attrs: Any) -> Any:
        changed = list(arguments)
        for i, arg in reforms:
            changed[i] = [_reformed(arg, x) for x in changed[i]] if arg.is_list else _reformed(arg, changed[i])
        return kernel(*changed, **attrs)

    return reformed


def checking_ranks(inputs: Sequence[Arg], kernel: Kernel) -> Kernel:
    """Rejects inputs whose rank the op does not support."""

    @functools.wraps(kernel)
    def ranked(*arguments: Any, **attrs: Any) -> Any:
        for arg, value in zip(inputs, arguments):
            if arg.run_ranks is not None:
                for each in value if arg.is_list else (value,):
                    arg.check_rank(_host_rank(each) if arg.host else each.ndim)
        return kernel(*arguments, **attrs)

    return ranked


def _host_rank(value: Any) -> int:
    """Returns the rank of a number or of nested lists of numbers. An empty list counts as a vector, since its contents are unknown."""
    rank = 0
    while isinstance(value, list):
        rank, value = rank + 1, value[0] if value else None
    return rank


def _elements(value: Any) -> list[Any]:
    return [each for item in value for each in _elements(item)] if isinstance(value, list) else [value]


def _is_single(arg: Arg, value: Any) -> bool:
    return not isinstance(value, list) if arg.host else value.ndim == 0


def _reformed(arg: Arg, value: Any) -> Any:
    """Converts the value of an input to its single element, or to a vector of its elements."""
    if arg.reform != "flat" and _is_single(arg, value):
        return value
    flat: Any = _elements(value) if arg.host else value.reshape(-1)
    if arg.reform == "flat":
        return flat
    if len(flat) != 1:
        shape = len(flat) if arg.host else ",".join(map(str, value.shape))
        raise InvalidArgumentError(None, None, f"{arg.name} must be a scalar, not a tensor of shape [{shape}]")
    return flat[0] if arg.host else flat.reshape(())
