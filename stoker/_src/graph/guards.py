"""Kernels behind checks: what TensorFlow's kernels look at before they compute, for kernels that would take anything."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

from stoker._src.base.errors import InvalidArgumentError
from stoker._src.graph.planning import Kernel
from stoker._src.graph.signature import Arg


def same_shapes(op: str, kernel: Kernel, *, by_count: bool) -> Kernel:
    """Refuses inputs of different shapes; with `by_count` only other numbers of elements."""

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
    """Gives the kernel scalars and vectors for inputs that may have any rank (`single`, `one` and `flat` in signatures)."""
    reforms = [(i, arg) for i, arg in enumerate(inputs) if arg.reform]

    @functools.wraps(kernel)
    def reformed(*arguments: Any, **attrs: Any) -> Any:
        changed = list(arguments)
        for i, arg in reforms:
            changed[i] = [_reformed(arg, x) for x in changed[i]] if arg.is_list else _reformed(arg, changed[i])
        return kernel(*changed, **attrs)

    return reformed


def checking_ranks(inputs: Sequence[Arg], kernel: Kernel) -> Kernel:
    """Refuses inputs of ranks that the op does not take."""

    @functools.wraps(kernel)
    def ranked(*arguments: Any, **attrs: Any) -> Any:
        for arg, value in zip(inputs, arguments):
            if arg.run_ranks is not None:
                for each in value if arg.is_list else (value,):
                    arg.check_rank(_host_rank(each) if arg.host else each.ndim)
        return kernel(*arguments, **attrs)

    return ranked


def _host_rank(value: Any) -> int:
    """The rank of plain (nested lists of) numbers; what an empty list holds is not known, so it counts as a vector."""
    rank = 0
    while isinstance(value, list):
        rank, value = rank + 1, value[0] if value else None
    return rank


def _elements(value: Any) -> list[Any]:
    return [each for item in value for each in _elements(item)] if isinstance(value, list) else [value]


def _reformed(arg: Arg, value: Any) -> Any:
    """The value of an input as the one element it holds, or as a vector of its elements."""
    flat: Any = _elements(value) if arg.host else value.reshape(-1)
    if arg.reform == "flat":
        return flat
    if len(flat) != 1:
        shape = len(flat) if arg.host else ",".join(map(str, value.shape))
        raise InvalidArgumentError(None, None, f"{arg.name} must be a scalar, not a tensor of shape [{shape}]")
    return flat[0] if arg.host else flat.reshape(())
