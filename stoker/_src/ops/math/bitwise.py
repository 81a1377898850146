"""Bitwise operations on integers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from stoker._src.base import dtypes
from stoker._src.base.dtypes import INTS
from stoker._src.base.errors import InvalidArgumentError
from stoker._src.base.export import export
from stoker._src.base.shapes import UNKNOWN_SHAPE, Shape
from stoker._src.graph.definition import OpDefinition, broadcasting, define, unchanged
from stoker._src.graph.tensor import Tensor
from stoker._src.ops.support.dispatching import elementwise
from stoker._src.ops.support.unsigned import SIGNED_TWIN, modular


def _binary(name: str, kernel: Callable[..., Any]) -> OpDefinition:
    definition = define(f"{name}(x: T, y: T) -> (z: T)", T=INTS).not_differentiable()
    definition.kernel(kernel)
    definition.shape(broadcasting)
    return definition


BITWISE_AND = _binary("BitwiseAnd", torch.bitwise_and)
BITWISE_OR = _binary("BitwiseOr", torch.bitwise_or)
BITWISE_XOR = _binary("BitwiseXor", torch.bitwise_xor)

INVERT = define("Invert(x: T) -> (y: T)", T=INTS).not_differentiable()
INVERT.kernel(modular(torch.bitwise_not))
INVERT.shape(unchanged)


def _shift_counts(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    """Clamps shift counts to the width of the type: negative counts become 0, large ones width - 1."""
    return torch.clamp(y, 0, x.element_size() * 8 - 1)


def _left_shift(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    twin = SIGNED_TWIN.get(x.dtype)
    if twin is None:
        return torch.bitwise_left_shift(x, _shift_counts(x, y))
    return torch.bitwise_left_shift(x.view(twin), _unsigned_counts(y)).view(x.dtype)


def _unsigned_counts(y: torch.Tensor) -> torch.Tensor:
    """Shift counts as signed numbers. Counts with the top bit set are the largest, so they become width - 1."""
    bits = y.element_size() * 8
    signed = y.view(SIGNED_TWIN[y.dtype])
    return torch.where(signed < 0, bits - 1, torch.clamp(signed, 0, bits - 1))


def _right_shift(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    twin = SIGNED_TWIN.get(x.dtype)
    if twin is None:
        return torch.bitwise_right_shift(x, _shift_counts(x, y))
    bits = x.element_size() * 8
    counts = _unsigned_counts(y)
    moved = torch.bitwise_right_shift(x.view(twin), counts)
    # A signed shift copies the sign into the vacated bits. The mask clears them.
    keep = torch.where(
        counts == 0, -1, torch.bitwise_left_shift(torch.ones_like(counts), (bits - counts).clamp(max=bits - 1)) - 1
    )
    return torch.bitwise_and(moved, keep.to(twin)).view(x.dtype)


LEFT_SHIFT = _binary("LeftShift", _left_shift)
RIGHT_SHIFT = _binary("RightShift", _right_shift)

POPULATION_COUNT = define("PopulationCount(x: T) -> (y: uint8)", T=INTS).not_differentiable()
POPULATION_COUNT.shape(unchanged)


@POPULATION_COUNT.kernel
def population_count_kernel(x: torch.Tensor) -> torch.Tensor:
    if not x.numel():
        return torch.zeros(x.shape, dtype=torch.uint8, device=x.device)
    octets = (
        x.contiguous().view(torch.uint8).reshape(*x.shape, x.element_size())
        if x.ndim
        else x.reshape(1).view(torch.uint8)
    )
    # Bits of a byte, summed pairwise: 2-bit, 4-bit and 8-bit fields.
    octets = octets - ((octets >> 1) & 0x55)
    octets = (octets & 0x33) + ((octets >> 2) & 0x33)
    octets = (octets + (octets >> 4)) & 0x0F
    return torch.sum(octets, -1, dtype=torch.uint8)


COMPARE_AND_BITPACK = define(
    "CompareAndBitpack(input: rank>0 T, threshold: scalar T) -> (output: uint8)",
    T=(dtypes.bool_, dtypes.float16, dtypes.float32, dtypes.float64, *dtypes.SIGNED_INTS),
)


@COMPARE_AND_BITPACK.kernel
def compare_and_bitpack_kernel(input: torch.Tensor, threshold: torch.Tensor) -> torch.Tensor:
    """Packs eight comparisons into a byte, the first in the highest bit. Booleans are packed without a comparison."""
    if input.ndim == 0 or threshold.ndim or input.shape[-1] % 8:
        raise InvalidArgumentError(
            None,
            None,
            "CompareAndBitpack needs an input whose last dimension is divisible by 8 and a scalar threshold, "
            f"got shapes {list(input.shape)} and {list(threshold.shape)}",
        )
    bits = input if input.dtype == torch.bool else input > threshold
    weights = torch.tensor([128, 64, 32, 16, 8, 4, 2, 1], dtype=torch.uint8, device=input.device)
    groups = bits.reshape(*input.shape[:-1], input.shape[-1] // 8, 8)
    return torch.sum(groups * weights, -1, dtype=torch.uint8)


@COMPARE_AND_BITPACK.shape
def compare_and_bitpack_shape(input: Shape, threshold: Shape) -> Shape:
    if input.dims is None:
        return UNKNOWN_SHAPE
    last = input.dims[-1]
    if last is not None and last % 8:
        raise InvalidArgumentError(None, None, f"Dimension size must be evenly divisible by 8 but is {last}")
    return Shape((*input.dims[:-1], None if last is None else last // 8))


@export("bitwise.bitwise_and")
@elementwise
def bitwise_and(x: Any, y: Any, name: str | None = None) -> Tensor:
    """Bitwise AND."""
    return BITWISE_AND(x, y, name=name)


@export("bitwise.bitwise_or")
@elementwise
def bitwise_or(x: Any, y: Any, name: str | None = None) -> Tensor:
    """Bitwise OR."""
    return BITWISE_OR(x, y, name=name)


@export("bitwise.bitwise_xor")
@elementwise
def bitwise_xor(x: Any, y: Any, name: str | None = None) -> Tensor:
    """Bitwise exclusive OR."""
    return BITWISE_XOR(x, y, name=name)


@export("bitwise.invert")
@elementwise
def invert(x: Any, name: str | None = None) -> Tensor:
    """Flips every bit."""
    return INVERT(x, name=name)


@export("bitwise.left_shift")
def left_shift(x: Any, y: Any, name: str | None = None) -> Tensor:
    """Shifts the bits of x left by y places."""
    return LEFT_SHIFT(x, y, name=name)


@export("bitwise.right_shift")
def right_shift(x: Any, y: Any, name: str | None = None) -> Tensor:
    """Shifts the bits of x right by y places. The sign of signed types is kept."""
    return RIGHT_SHIFT(x, y, name=name)
