"""Expressions of fused GPU kernels: what `lower` functions build for a GPU.

An op's `lower` function calls the methods of a builder. For the CPU the builder collects loops (fused_loops.py). Here it builds a graph
of nodes, each of which says how an element of a tensor follows from elements of other tensors. `kernel_source.py` writes kernels from it.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

FLOAT, BOOL, INT, LONG = "float", "bool", "int", "long long"

# Formulas of one and of two elements. They round as torch's own kernels do, because multiplications and additions are not contracted.
UNARY = {
    "neg": "-x",
    "square": "x * x",
    "sqrt": "sqrtf(x)",
    "rsqrt": "rsqrtf(x)",
    "reciprocal": "1.0f / x",
    "abs": "fabsf(x)",
    "exp": "expf(x)",
    "log": "logf(x)",
    "log1p": "log1pf(x)",
    "expm1": "expm1f(x)",
    "tanh": "tanhf(x)",
    "sigmoid": "1.0f / (1.0f + expf(-x))",
    "elu": "x < 0.0f ? expm1f(x) : x",
    "relu": "x > 0.0f ? x : (x == x ? 0.0f : x)",
    "relu6": "x > 0.0f ? (x < 6.0f ? x : 6.0f) : (x == x ? 0.0f : x)",
    "is_finite": "x - x == 0.0f ? 1.0f : 0.0f",
    "floor": "floorf(x)",
    "ceil": "ceilf(x)",
    "rint": "rintf(x)",
    "sign": "x > 0.0f ? 1.0f : (x < 0.0f ? -1.0f : x)",
    "erf": "erff(x)",
}
BINARY = {
    "add": "x + y",
    "sub": "x - y",
    "mul": "x * y",
    "div": "x / y",
    "max": "(x > y || x != x) ? x : y",
    "min": "(x < y || x != x) ? x : y",
    "square_difference": "(x - y) * (x - y)",
    "tanh_grad": "y * (1.0f - x * x)",
    "sigmoid_grad": "y * (1.0f - x) * x",
    "elu_grad": "y < 0.0f ? (y + 1.0f) * x : x",
    "relu_grad": "y <= 0.0f ? 0.0f : x",
    "relu6_grad": "x * (y > 0.0f && y < 6.0f ? 1.0f : 0.0f)",
    "sqrt_grad": "y == 0.0f ? y : y * (0.5f / x)",
    "rsqrt_grad": "y == 0.0f ? y : y * -0.5f * x * (x * x)",
    "reciprocal_grad": "y == 0.0f ? y : -y * (x * x)",
    "leaky_relu": "x > 0.0f ? x : x * y",
    "less": "x < y ? 1.0f : 0.0f",
    "less_equal": "x <= y ? 1.0f : 0.0f",
    "greater": "x > y ? 1.0f : 0.0f",
    "greater_equal": "x >= y ? 1.0f : 0.0f",
    "equal": "x == y ? 1.0f : 0.0f",
    "not_equal": "x != y ? 1.0f : 0.0f",
}
COMPARISONS = frozenset(("less", "less_equal", "greater", "greater_equal", "equal", "not_equal"))
_SLOW = frozenset(("exp", "log", "log1p", "expm1", "tanh", "sigmoid", "elu", "erf", "div", "reciprocal", "sqrt"))

_MOST_ELEMENTS = 1 << 30  # kernels compute indices as 32-bit integers
_LONG = 1 << 13  # most elements that one block sums; longer sums have two stages
_FEW, _BLOCKS = 64, 512  # blocks that keep the device busy in one stage, and those of the first of two stages


class Node:
    """A tensor inside of kernels. `kind` says which of the other fields count; see the methods of `KernelBuilder`."""

    __slots__ = ("cost", "ctype", "data", "inputs", "kind", "name", "shape")

    def __init__(
        self, kind: str, shape: tuple[int, ...], inputs: tuple[Node, ...] = (), name: str = "", data: Any = None
    ) -> None:
        self.kind, self.shape, self.inputs, self.name, self.data = kind, shape, inputs, name, data
        self.ctype = FLOAT  # of the element in a register; booleans are the numbers 1 and 0
        # About how many operations an element takes, if all inputs that are computed are computed again.
        own = 8 if name in _SLOW else 1 if kind in ("unary", "binary", "select", "pad", "concat") else 0
        self.cost = 0 if kind in ("input", "number", "sum", "max") else own + sum(each.cost for each in inputs)

    @property
    def size(self) -> int:
        return math.prod(self.shape)

    @property
    def is_reduction(self) -> bool:
        return self.kind in ("sum", "max")


class KernelBuilder:
    """Builds nodes. The methods are those of `fused_loops.Builder`; None says that an op cannot be part of a kernel."""

    def __init__(self, shape_of: Any) -> None:
        self.shape_of = shape_of

    def input(self, shape: tuple[int, ...], ctype: str, position: int) -> Node:
        made = Node("input", shape, data=(position, ctype))
        made.ctype = FLOAT if ctype in (FLOAT, BOOL) else ctype
        return made

    def scalar(self, number: Any) -> Node:
        made = Node("number", (), data=number)
        if isinstance(number, int) and not isinstance(number, bool):
            made.ctype = LONG
        return made

    def number(self, x: Node) -> float | None:
        """The value of x if it is a constant with one element, else None."""
        while x.kind == "reshape":
            (x,) = x.inputs
        return x.data if x.kind == "number" else None

    def unary(self, name: str, x: Node) -> Node | None:
        return Node("unary", x.shape, (x,), name) if name in UNARY and x.ctype == FLOAT else None

    def binary(self, name: str, x: Node, y: Node) -> Node | None:
        try:
            shape = tuple(np.broadcast_shapes(x.shape, y.shape))
        except ValueError:  # the op's kernel raises the error
            return None
        if name not in BINARY or (name not in COMPARISONS and (x.ctype, y.ctype) != (FLOAT, FLOAT)):
            return None
        return Node("binary", shape, (x, y), name) if (x.ctype == FLOAT) == (y.ctype == FLOAT) else None

    def matmul(self, a: Node, b: Node, *, transpose_a: bool, transpose_b: bool) -> None:
        return None  # libraries are faster

    def dense(self, kind: str, a: Node, b: Node | None = None, *, adjoint: bool = False, lower: bool = False) -> None:
        return None  # so they are here

    def band(self, x: Node, low: int, high: int) -> None:
        return None

    def cast(self, x: Node, kind: str) -> None:
        return None

    def gather(self, table: Node, indices: Node, depth: int) -> None:
        return None

    def segments(self, kind: str, data: Node, ids: Node, count: int) -> None:
        return None

    def range(self, count: int, kind: str) -> None:
        return None

    def place(self, x: Node, axis: int, kind: str, *, least: bool) -> None:
        return None

    def top(self, x: Node, k: int, kind: str) -> None:
        return None

    def with_diagonal(self, x: Node | None, diagonal: Node, shape: tuple[int, ...]) -> None:
        return None

    def sum(self, x: Node, axes: list[int], *, keep_dims: bool, mean: bool = False) -> Node | None:
        """A sum over adjacent axes."""
        return self._reduced("sum", x, axes, keep_dims=keep_dims, mean=mean)

    def max(self, x: Node, axes: list[int], *, keep_dims: bool) -> Node | None:
        return self._reduced("max", x, axes, keep_dims=keep_dims, mean=False)

    def _reduced(self, kind: str, x: Node, axes: list[int], *, keep_dims: bool, mean: bool) -> Node | None:
        if x.ctype != FLOAT or x.size == 0:
            return None
        if not axes:
            return self.reshape(x, x.shape)
        rank = len(x.shape)
        reduced = sorted({axis % rank for axis in axes if -rank <= axis < rank}) if rank else []
        # Axes of one element can be summed along with their neighbours.
        wide = [axis for axis in reduced if x.shape[axis] != 1]
        if len(reduced) != len(axes):
            return None
        between = range(wide[0], wide[-1] + 1) if wide else range(0)
        if any(axis not in reduced and x.shape[axis] != 1 for axis in between):
            return None
        shape = tuple(
            1 if axis in reduced else size for axis, size in enumerate(x.shape) if keep_dims or axis not in reduced
        )
        if not wide:
            return self.reshape(x, shape)
        outer, middle, inner = (
            math.prod(x.shape[: wide[0]]),
            math.prod(x.shape[wide[0] : wide[-1] + 1]),
            math.prod(x.shape[wide[-1] + 1 :]),
        )
        total = self._staged(kind, x, outer, middle, inner, middle if mean else 1)
        return None if total is None else self.reshape(total, shape)

    def _staged(self, kind: str, x: Node, outer: int, middle: int, inner: int, divisor: int) -> Node | None:
        blocks = outer * -(-inner // 32)
        if blocks < _FEW and middle > (_LONG if inner == 1 else 512):
            chunk = _chunk(middle, blocks, 512 if inner == 1 else 64)
            if chunk is None:
                return None
            count = middle // chunk
            parts = Node(kind, (outer * count * inner,), (x,), data=(outer * count, chunk, inner, 1))
            return self._staged(kind, parts, outer, count, inner, divisor)
        return Node(kind, (outer * inner,), (x,), data=(outer, middle, inner, divisor))

    def softmax(self, x: Node) -> Node | None:
        """A softmax over the last axis."""
        if not x.shape or x.size == 0:
            return None
        largest = self.max(x, [-1], keep_dims=True)
        shifted = None if largest is None else self.binary("sub", x, largest)
        powers = None if shifted is None else self.unary("exp", shifted)
        total = None if powers is None else self.sum(powers, [-1], keep_dims=True)
        return None if powers is None or total is None else self.binary("div", powers, total)

    def copy(self, x: Node, shape: tuple[int, ...], steps: list[int], begin: int = 0) -> Node | None:
        """A tensor of `shape` whose element (i, j, ...) is element `begin + i * steps[0] + j * steps[1] + ...` of x."""
        made = Node("copy", shape, (x,), data=(tuple(steps), begin))
        made.ctype = x.ctype
        return made

    def broadcast(self, x: Node, shape: tuple[int, ...]) -> Node | None:
        return self.copy(x, shape, broadcast_steps(x.shape, shape))

    def spread(self, x: Node, shape: tuple[int, ...], begin: int, steps: list[int]) -> None:
        return None

    def transpose(self, x: Node, perm: list[int]) -> Node | None:
        steps = row_major(x.shape)
        return self.copy(x, tuple(x.shape[axis] for axis in perm), [steps[axis] for axis in perm])

    def split(self, x: Node, axis: int, count: int) -> list[Node] | None:
        axis %= len(x.shape)
        size = x.shape[axis] // count
        shape, steps = (*x.shape[:axis], size, *x.shape[axis + 1 :]), row_major(x.shape)
        parts = [self.copy(x, shape, steps, i * size * steps[axis]) for i in range(count)]
        return None if None in parts else parts  # type: ignore[return-value]

    def concat(self, parts: list[Node], axis: int) -> Node | None:
        axis %= len(parts[0].shape)
        shape = parts[0].shape
        if any(part.ctype != FLOAT for part in parts):
            return None
        whole = (*shape[:axis], sum(part.shape[axis] for part in parts), *shape[axis + 1 :])
        return Node("concat", whole, tuple(parts), data=axis)

    def pad(self, x: Node, paddings: list[list[int]]) -> Node | None:
        """x with `paddings` (before, after) zeros around each axis."""
        if x.size == 0 or x.ctype != FLOAT or any(min(pair) < 0 for pair in paddings):
            return None
        shape = tuple(size + before + after for size, (before, after) in zip(x.shape, paddings))
        return Node("pad", shape, (x,), data=tuple(before for before, _ in paddings))

    def select(self, mask: Node, t: Node, e: Node) -> Node | None:
        """Selects `t` where the mask is true and `e` elsewhere. The mask may be broadcast; `t` and `e` have the same shape."""
        if t.shape != e.shape or t.ctype != FLOAT or e.ctype != FLOAT:
            return None
        return Node("select", t.shape, (mask, t, e))

    def reshape(self, x: Node, shape: tuple[int, ...]) -> Node:
        made = Node("reshape", shape, (x,))
        made.ctype = x.ctype
        return made


def _chunk(middle: int, blocks: int, fewest: int) -> int | None:
    """The number of elements that the first stage adds up for each part; None if the sum cannot be divided evenly."""
    wanted = max(fewest, middle * blocks // _BLOCKS)
    divisors = (size for size in range(wanted, min(middle // 2, wanted * 16) + 1) if middle % size == 0)
    return next(divisors, None)


def row_major(shape: tuple[int, ...]) -> list[int]:
    return [math.prod(shape[axis + 1 :]) for axis in range(len(shape))]


def broadcast_steps(shape: tuple[int, ...], broadcast: tuple[int, ...]) -> list[int]:
    """The strides of a tensor of `shape` in each dimension of the shape that it is broadcast to."""
    padded = (1,) * (len(broadcast) - len(shape)) + shape
    return [0 if size == 1 else step for size, step in zip(padded, row_major(padded))]


def fits(node: Node) -> bool:
    return 0 < node.size < _MOST_ELEMENTS
