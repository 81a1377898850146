"""Kernels for uint16, uint32 and uint64, which torch supports only partly.

Missing kernels run on the signed integers of the same width, without a copy:

    modular    results modulo 2**n depend only on the operands modulo 2**n (sums, products): the bits are the same
    ordered    only comparisons matter (maximum, sorting): flipping the top bit maps unsigned order to signed order
    exact      the numbers themselves matter (division): done in a wider signed type, for uint64 by NumPy
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, cast

import torch

from stoker._src.base import dtypes
from stoker._src.ops.support.values import from_numpy, to_numpy

Kernel = Callable[..., Any]

SIGNED_TWIN = {torch.uint16: torch.int16, torch.uint32: torch.int32, torch.uint64: torch.int64}
_WIDER = {torch.uint16: torch.int32, torch.uint32: torch.int64}


def _described(wrapper: Kernel, function: Kernel) -> Kernel:
    """Gives `wrapper` the name and signature of `function`. The op's definition reads the attributes from the signature."""
    functools.update_wrapper(wrapper, function, assigned=("__name__", "__qualname__", "__doc__"))
    wrapper.specialize = functools.partial(_plain_kernel, function)
    return wrapper


def _plain_kernel(function: Kernel, op: Any) -> Kernel | None:
    """`function` itself for an op on other dtypes, if it has no attributes."""
    unsigned = (dtypes.uint16, dtypes.uint32, dtypes.uint64)
    plain = not op.definition.kernel_attrs and op._inputs[0].dtype.base_dtype not in unsigned
    return function if plain else None


def _as_signed(value: Any) -> Any:
    twin = SIGNED_TWIN.get(value.dtype) if isinstance(value, torch.Tensor) else None
    return value if twin is None else value.view(twin)


def modular(function: Kernel) -> Kernel:
    """A kernel that operates on the signed bits of unsigned operands."""

    def kernel(x: torch.Tensor, *rest: Any, **attrs: Any) -> Any:
        if x.dtype in SIGNED_TWIN:
            return function(_as_signed(x), *[_as_signed(each) for each in rest], **attrs).view(x.dtype)
        return function(x, *rest, **attrs)

    return _described(kernel, function)


def modular_binary(function: Kernel) -> Kernel:
    """`modular` for the hot path: two operands and no attributes."""

    def kernel(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        if x.dtype in SIGNED_TWIN:
            return function(_as_signed(x), _as_signed(y)).view(x.dtype)
        return function(x, y)

    return _described(kernel, function)


def flipped(x: torch.Tensor) -> torch.Tensor:
    """Maps the unsigned integers `x` to signed integers in the same order."""
    signed = x.view(SIGNED_TWIN[x.dtype])
    return signed ^ torch.iinfo(signed.dtype).min


def unflipped(signed: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
    return (signed ^ torch.iinfo(signed.dtype).min).view(dtype)


def ordered(function: Kernel) -> Kernel:
    """A kernel that only compares. Outputs in the dtype of the flipped operands are mapped back."""

    def kernel(x: torch.Tensor, *rest: Any, **attrs: Any) -> Any:
        if x.dtype not in SIGNED_TWIN:
            return function(x, *rest, **attrs)
        dtype = x.dtype
        operands = [flipped(each) if isinstance(each, torch.Tensor) and each.dtype == dtype else each for each in rest]
        results = function(flipped(x), *operands, **attrs)
        if isinstance(results, tuple):  # (values, positions): positions may have the signed dtype too
            return (unflipped(results[0], dtype), *results[1:])
        return unflipped(results, dtype) if results.dtype == SIGNED_TWIN[dtype] else results

    return _described(kernel, function)


def exact(function: Kernel, by_numpy: Kernel) -> Kernel:
    """A kernel that needs the numeric values. `by_numpy` handles uint64, which has no wider signed type."""

    def kernel(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        if x.dtype not in SIGNED_TWIN:
            return function(x, y)
        if x.dtype == torch.uint64:
            return cast(torch.Tensor, from_numpy(by_numpy(to_numpy(x), to_numpy(y)))).to(x.device)
        wider = _WIDER[x.dtype]
        return function(x.to(wider), y.to(wider)).to(x.dtype)

    return _described(kernel, function)
