"""The lines of fused loops (fused_loops.py): which buffers they walk, how long they take, and whether threads can share their rows."""

from __future__ import annotations

import math
from typing import Any

from stoker._src.base.extensions import extension
from stoker._src.ops.support import blas

native: Any = extension("stoker._src.runtime.native.program")  # if it is missing, every op runs its own kernel

_DIMENSIONS = 4  # number of dimensions of a native loop
# Rough cost of one element in nanoseconds.
_SLOW, _QUICK = 1.2, 0.35
_PRODUCT = 0.02 if blas.small_is_own else 0.08  # of one multiplication in a matrix product
_COMPOSED = ("elu_grad", "relu6_grad", "sqrt_grad", "rsqrt_grad", "reciprocal_grad")  # which take several torch calls
_SLOW_LOOPS = ("exp", "log", "log1p", "tanh", "sigmoid", "expm1", "elu", "erf", "sin", "cos", "digamma", "trigamma")


class NotLowered(Exception):
    """An op is not part of fused loops after all."""


class Buffer:
    """The row-major elements of one operand, of four bytes each. A reshaped buffer shares the elements of its `base`.

    `kind` is empty for floats (and booleans, which are 1 and 0), or the name of an integer dtype. Integers of 64 bits that fit into 32 are held as those.
    """

    __slots__ = ("_kind", "base", "index", "shape")

    def __init__(self, shape: tuple[int, ...], base: Buffer | None = None, kind: str = "") -> None:
        self.shape = shape
        self.base = self if base is None else base.base
        self.index = -1
        self._kind = kind

    @property
    def kind(self) -> str:
        return self.base._kind

    @property
    def size(self) -> int:
        return math.prod(self.shape)


def slow_loops() -> list[int]:
    return [native.UNARY[name] for name in _SLOW_LOOPS]


def is_worth_a_call(line: list[Any]) -> bool:
    """Whether a loop alone is quicker than the torch calls for it. (torch chooses between elements by jumps, which cost 4 ns each.)"""
    if line[0] == native.UNARY_LOOP:
        return line[1] in slow_loops()
    if line[0] == native.BINARY_LOOP:
        return any(line[1] == native.BINARY[name] for name in _COMPOSED)
    return line[0] in (native.SOFTMAX, native.DENSE, native.SELECT) or (line[0] == native.MATMUL and line[11] > 1)


def walks(line: list[Any]) -> tuple[list[int], list[tuple[Buffer, list[int]]]]:
    """The sizes that a binary loop or a copy iterates over, and its buffers with their strides (except a row-major result)."""
    sizes, first, second = (line[5 + _DIMENSIONS * i :][:_DIMENSIONS] for i in range(3))
    if line[0] == native.SELECT:
        return sizes, list(zip(line[2:5], (first, second, second)))
    buffers = line[3:5] if line[0] == native.BINARY_LOOP else line[1:3]
    return sizes, list(zip(buffers, (first, second)))


def walked_size(line: list[Any]) -> int:
    """How many elements a loop iterates over."""
    if line[0] == native.UNARY_LOOP:
        return line[4]
    if line[0] in (native.SUM, native.MAX, native.SOFTMAX):
        return math.prod(line[3:6])
    return math.prod(walks(line)[0])


def cost(line: list[Any]) -> float:
    """About how many nanoseconds a loop takes."""
    if line[0] == native.MATMUL:
        return line[4] * line[5] * line[6] * line[11] * _PRODUCT
    if line[0] == native.DENSE:
        return math.prod(line[6:9]) * line[7] * _QUICK
    if line[0] == native.BAND:
        return math.prod(line[3:6]) * _QUICK
    if line[0] in (native.GATHER, native.SEGMENTS, native.PLACE, native.TOP):
        return max(item.size for item in line if isinstance(item, Buffer)) * _SLOW
    slow = line[0] == native.SOFTMAX or (line[0] == native.UNARY_LOOP and line[1] in slow_loops())
    return walked_size(line) * (_SLOW if slow else _QUICK)


def written(code: list[list[Any]]) -> set[int]:
    """The buffers that loops write."""
    return {id(line[2 if line[0] in (native.UNARY_LOOP, native.BINARY_LOOP) else 1].base) for line in code}


def has_rows(line: list[Any], rows: int, filled: set[int]) -> bool:
    """Whether each of `rows` equal parts of a loop's result depends only on the same part of its operands, or on a repeated input.

    `filled` are the buffers that earlier loops write. They must not be repeated, because another thread may own those rows.
    """
    if line[0] == native.UNARY_LOOP:
        return line[4] % rows == 0
    if line[0] in (native.SUM, native.MAX, native.SOFTMAX):
        return line[3] % rows == 0
    if line[0] == native.MATMUL:
        return line[11] > 1 and line[11] % rows == 0
    if line[0] not in (native.BINARY_LOOP, native.COPY, native.SELECT):
        return False
    sizes, walked = walks(line)
    outermost = next((axis for axis in range(_DIMENSIONS) if sizes[axis] != 1), _DIMENSIONS - 1)
    return sizes[outermost] % rows == 0 and all(
        steps[outermost] * sizes[outermost] == buffer.size or (steps[outermost] == 0 and id(buffer.base) not in filled)
        for buffer, steps in walked
    )


def row_major(shape: tuple[int, ...]) -> list[int]:
    return [math.prod(shape[axis + 1 :]) for axis in range(len(shape))]


def steps_to(shape: tuple[int, ...], broadcast: tuple[int, ...]) -> list[int]:
    """The strides of a tensor of `shape` in each dimension of the shape that it is broadcast to."""
    padded = (1,) * (len(broadcast) - len(shape)) + shape
    return [0 if size == 1 else step for size, step in zip(padded, row_major(padded))]


def collapse(shape: tuple[int, ...], first: list[int], second: list[int]) -> list[int] | None:
    """Sizes, and strides of two tensors, in exactly four dimensions. Dimensions that are contiguous in both are merged."""
    dims: list[tuple[int, int, int]] = []
    for size, a, b in zip(shape, first, second):
        if size == 1:
            continue
        if dims and dims[-1][1] == a * size and dims[-1][2] == b * size:
            dims[-1] = (dims[-1][0] * size, a, b)
        else:
            dims.append((size, a, b))
    if len(dims) > _DIMENSIONS:
        return None
    dims = [(1, 0, 0)] * (_DIMENSIONS - len(dims)) + dims
    return [d[0] for d in dims] + [d[1] for d in dims] + [d[2] for d in dims]
