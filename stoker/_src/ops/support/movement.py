"""Moving elements without interpreting them, so that one kernel serves every dtype including strings."""

from __future__ import annotations

import functools
import math as numbers
import os
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch

from stoker._src.base.errors import InvalidArgumentError, ResourceExhaustedError
from stoker._src.base.shapes import Shape
from stoker._src.graph.definition import STRING

# How an op treats out-of-range coordinates: it raises an error, or (on a GPU, or on request) ignores them.
POLICY = STRING("")  # one of POLICIES
POLICIES = ("", "DEFAULT", "ERROR", "IGNORE")
_SIGNED = {torch.uint16: torch.int16, torch.uint32: torch.int32, torch.uint64: torch.int64}
_LARGEST = (1 << 63) - 1


def signed(x: torch.Tensor) -> torch.Tensor:
    """`x`, or its bits as signed integers if torch lacks kernels for the unsigned dtype."""
    twin = _SIGNED.get(x.dtype)
    return x if twin is None else x.view(twin)


def rearranges(kernel: Callable[..., Any]) -> Callable[..., Any]:
    """Extends a kernel that only rearranges or repeats the elements of its first input to every dtype.

    Unsigned integers are viewed as signed integers of the same width. For strings, the kernel rearranges their
    positions, and the result is looked up.
    """

    @functools.wraps(kernel)
    def for_all_dtypes(x: Any, *args: Any, **kwargs: Any) -> Any:
        if isinstance(x, np.ndarray):
            positions = torch.arange(x.size).reshape(x.shape)
            return _looked_up(x, kernel(positions, *args, **kwargs))
        if x.dtype not in _SIGNED:
            return kernel(x, *args, **kwargs)
        moved = kernel(signed(x), *args, **kwargs)
        if isinstance(moved, (list, tuple)):
            return [each.view(x.dtype) for each in moved]
        return moved.view(x.dtype)

    return for_all_dtypes


def _looked_up(strings: np.ndarray, positions: Any) -> Any:
    if isinstance(positions, (list, tuple)):
        return [_looked_up(strings, each) for each in positions]
    result = np.empty(tuple(positions.shape), dtype=object)
    result[...] = strings.reshape(-1)[positions.numpy()]
    # A single variant is returned as it is; a single string stays an array of rank 0.
    return result if result.ndim or isinstance(result.item(), bytes) else result.item()


def element(strings: Any) -> Any:
    """The result of indexing an array of strings (or variants) as an array, even if it is a single string."""
    if not isinstance(strings, bytes):
        return strings
    single = np.empty((), dtype=object)
    single[()] = strings
    return single


_ALWAYS_FITS = 1 << 24  # bytes; asking for the size of the machine takes longer than allocating this much


def checked_sizes(sizes: Sequence[int]) -> list[int]:
    """Checks `sizes` as the shape of a new tensor.

    Raises:
        InvalidArgumentError: a size is negative, or the number of elements overflows.
    """
    if not isinstance(sizes, (list, tuple)):
        raise InvalidArgumentError(None, None, f"The sizes of a tensor must be a vector, got the number {sizes}.")
    for axis, size in enumerate(sizes):
        if isinstance(size, list):
            raise InvalidArgumentError(None, None, f"The sizes of a tensor must be a vector, got {sizes}.")
        if size < 0:
            raise InvalidArgumentError(
                None, None, f"Dimensions must be >= 0: size {size} of dimension {axis} in {list(sizes)}."
            )
    # Even if one size is zero, the others determine the strides, with at most 16 bytes per element.
    count = numbers.prod(size or 16 for size in sizes)
    if count > _LARGEST:
        raise InvalidArgumentError(None, None, f"The shape {list(sizes)} has too many elements (more than 2**63 - 1).")
    return list(sizes)


def allocatable(sizes: Sequence[int], itemsize: int) -> list[int]:
    """Checks `sizes` as the shape of a tensor that is about to be filled, with `itemsize` bytes per element.

    The operating system may grant more memory than it has and kill the process when it is used, so we check first.

    Raises:
        InvalidArgumentError: a size is negative, or the number of elements overflows.
        ResourceExhaustedError: the tensor needs more bytes than this machine has.
    """
    if type(sizes) is list:
        if not sizes:
            return []
        try:
            if min(sizes) > 0 and numbers.prod(sizes) * itemsize <= _ALWAYS_FITS:
                return list(sizes)
        except TypeError:
            pass  # the sizes are lists themselves
    sizes = checked_sizes(sizes)
    needed = numbers.prod(sizes) * itemsize
    if needed > _ALWAYS_FITS and needed > _machine_memory():
        raise ResourceExhaustedError(
            None, None, f"OOM when allocating tensor with shape {sizes}: it needs {needed} bytes."
        )
    return sizes


def misfit(tensor: Any, shape: Any) -> InvalidArgumentError:
    """The reason why `tensor` cannot have `shape`, in TensorFlow's words."""
    count = tensor.numel() if isinstance(tensor, torch.Tensor) else tensor.size
    known = 1
    for axis, size in enumerate(shape):
        if isinstance(size, list):
            return InvalidArgumentError(None, None, f"sizes input must be 1-D, got {shape}")
        if size < -1:
            return InvalidArgumentError(None, None, f"Size {axis} must be non-negative, not {size}")
        known *= 1 if size == -1 else size
    if shape.count(-1) > 1:
        first = shape.index(-1)
        second = shape.index(-1, first + 1)
        return InvalidArgumentError(None, None, f"Only one input size may be -1, not both {first} and {second}")
    if -1 not in shape:
        return InvalidArgumentError(
            None,
            None,
            f"Input to reshape is a tensor with {count} values, but the requested shape has {known}: {shape}",
        )
    if known == 0:
        return InvalidArgumentError(
            None,
            None,
            f"reshape cannot infer the missing input size for an empty tensor unless all specified input sizes are non-zero: {shape}",
        )
    return InvalidArgumentError(
        None,
        None,
        f"Input to reshape is a tensor with {count} values, but the requested shape requires a multiple of {known}: {shape}",
    )


@functools.cache
def _machine_memory() -> int:
    return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")


def itemsize(x: Any) -> int:
    """The bytes per element of a kernel's value: the size of a number, or of a reference to a string."""
    return x.element_size() if isinstance(x, torch.Tensor) else 8


def first_bad_index(indices: torch.Tensor, size: int, label: str = "indices") -> InvalidArgumentError:
    """The error for the first index that is not in [0, size)."""
    flat = indices.reshape(-1)
    bad = torch.nonzero((flat < 0) | (flat >= size)).reshape(-1)
    if not bad.numel():
        return InvalidArgumentError(
            None, None, f"{label} {Shape(indices.shape)} do not fit a dimension of size {size}."
        )
    position = int(bad[0])
    where = (
        ",".join(str(int(each)) for each in np.unravel_index(position, tuple(indices.shape))) if indices.ndim else ""
    )
    return InvalidArgumentError(
        None, None, f"{label}{f'[{where}]' if where else ''} = {int(flat[position])} is not in [0, {size})"
    )


def fresh(result: torch.Tensor, source: torch.Tensor) -> torch.Tensor:
    """`result` in its own memory, because a rearrangement may return a view of `source`."""
    return result.clone() if result.data_ptr() == source.data_ptr() else result


def fill_value(x: Any) -> Any:
    """The default element for the dtype of `x`: zero or the empty string."""
    return b"" if isinstance(x, np.ndarray) else 0
