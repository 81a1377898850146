"""Fused loops: consecutive ops on tensors of floats, and on integers that follow from them or choose among them, that run as one native call.

Ops with a `lower` facet, on tensors whose shapes are statically known, are collected into one native object
(native/program.c). It runs loops over buffers, and most of the intermediate buffers never become tensors. This pays in two cases:

* Small tensors. A torch call costs about a microsecond before any arithmetic, which is more than a few thousand elements need.
* Large tensors whose rows are independent, as in a normalization or an activation with its gradient. Fused loops take a few rows
  at a time through all loops while the rows are in the cache. Separate ops would read and write memory each time.

The floats of one call are all of float32 or all of float64.

If a tensor's shape at run time differs from its static shape, or there is no result (an index out of range, a matrix without an inverse), the
ops' own kernels run instead, so the results and errors are the same.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any

import numpy as np
import torch

from stoker._src.base import dtypes
from stoker._src.graph.definition import Trait
from stoker._src.graph.tensor import Tensor
from stoker._src.ops.support import blas
from stoker._src.ops.support.values import host_value
from stoker._src.runtime.plan import stores
from stoker._src.runtime.plan.instructions import Instruction, Value, values_of
from stoker._src.runtime.plan.loop_fallback import Fallback
from stoker._src.runtime.plan.loop_lines import (
    Buffer,
    NotLowered,
    collapse,
    cost,
    has_rows,
    is_worth_a_call,
    native,
    row_major,
    steps_to,
    written,
)
from stoker._src.runtime.plan.loop_operands import (
    ShapeOf,
    are_numbers,
    dims_of,
    fit_32_bits,
    kind_of,
    precisions,
)
from stoker._src.runtime.plan.overlays import overlays

_has_blas, _has_double_blas = blas.connect(native, with_small=True), blas.connect_double(native)

LARGEST = 1 << 15  # most elements of a small tensor; torch splits larger ones among threads
_MOST_PRODUCTS = 1 << 6 if blas.small_is_own else 1 << 8  # most multiplications of a matmul; BLAS is faster beyond that
_MOST_DOUBLE_PRODUCTS = 1 << 8  # the same of float64
_MOST_ALONE = 1 << 16  # the same where there is no BLAS; torch is faster beyond that
# The most multiplications of each of many products; torch is faster beyond that.
_MOST_OF_MANY = 1 << (20 if blas.is_own else 18 if blas.small_is_own else 16)
_MOST_BLAS_PRODUCTS = (
    1 << 24
)  # most multiplications of a matmul that the loops leave to BLAS; torch has faster products beyond that
_MOST_DENSE = 1 << 20  # most multiplications of a factorization; LAPACK is faster beyond that
_MOST_DEPTH = 8  # dimensions of a table that an index chooses from
_MOST_TOP = 64  # of the largest elements that are kept in order
_COMPARISONS = frozenset(("less", "less_equal", "greater", "greater_equal", "equal", "not_equal"))
_WRAPPING = frozenset(("add", "sub", "mul"))  # whose results may have more bits than their operands
_INTEGERS = {"int32": torch.int32, "int64": torch.int64}
_EMPTY: dict[torch.dtype, Callable[..., torch.Tensor]] = {
    torch.float32: torch.empty,
    **{dtype: functools.partial(torch.empty, dtype=dtype) for dtype in (torch.float64, *_INTEGERS.values())},
}
_FEWEST = 2  # fewest ops worth fusing; a single one if its kernel needs several torch calls, or slow ones
_FEWEST_ROWS = 4  # fewest rows of large tensors, so that threads can share them
_BLOCK = 2048  # elements of the largest buffer in one block of rows
_WORTH_SHARING = 15_000  # rough cost in nanoseconds from which threads share the work


class Builder:
    """Collects the loops of one native call. The `lower` functions of ops call its methods, which return the buffer they fill."""

    def __init__(
        self,
        shape_of: ShapeOf,
        fewest: int = 0,
        roots: stores.Roots | None = None,
        carried: frozenset[Value] = frozenset(),
    ) -> None:
        self.shape_of, self.carried = shape_of, carried
        self.fewest = fewest  # fewest ops worth fusing; 0 for the usual number
        self.roots = roots or {}
        self.precision: torch.dtype | None = None  # of the floats; None as long as there are only booleans
        self.code: list[list[Any]] = []  # each instruction consists of numbers and Buffers
        self.made: set[Value] = set()
        self.row_counts: list[int] | None = (
            None  # numbers of rows that large tensors can be split into; None for small ones
        )
        self.buffers: dict[Value, Buffer] = {}
        self.inputs: list[Value] = []
        self.booleans: set[Value] = set()  # boolean inputs, which the loops hold as the numbers 1 and 0
        self.constants: list[tuple[Buffer, Any]] = []
        self.instructions: list[Instruction] = []
        self.stored: list[Any] = []  # the variables that the loops change

    # -- loops ---------------------------------------------------------------------------------------------------

    def unary(self, name: str, x: Buffer) -> Buffer:
        _of_floats(x)
        return self._unary(name, x, "")

    def _unary(self, name: str, x: Buffer, kind: str) -> Buffer:
        out = Buffer(x.shape, kind=kind)
        self.code.append([native.UNARY_LOOP, native.UNARY[name], out, x, x.size])
        return out

    def binary(self, name: str, x: Buffer, y: Buffer) -> Buffer | None:
        """A binary op with broadcasting; None if it needs more dimensions than native loops have, or is not for such integers."""
        kind = x.kind
        if kind or y.kind:
            divides = name in ("floor_div", "floor_mod")
            is_narrowed = kind == "int64" and not self.is_double
            if kind != y.kind or (divides and not (self.number(y) or 0) > 0) or (is_narrowed and name in _WRAPPING):
                return None
            kind, name = "" if name in _COMPARISONS else kind, f"int_{name}"
        if name not in native.BINARY:
            return None
        try:
            shape = tuple(np.broadcast_shapes(x.shape, y.shape))
        except ValueError:  # incompatible or too large: the op's kernel raises the error
            return None
        collapsed = collapse(shape, steps_to(x.shape, shape), steps_to(y.shape, shape))
        if collapsed is None:
            return None
        out = Buffer(shape, kind=kind)
        self.code.append([native.BINARY_LOOP, native.BINARY[name], out, x, y, *collapsed])
        return out

    def matmul(self, a: Buffer, b: Buffer, *, transpose_a: bool, transpose_b: bool) -> Buffer | None:
        """A product of two matrices, or of as many pairs of small matrices as the outer dimensions have elements."""
        _of_floats(a, b)
        *outer, m, k = a.shape
        m, k = (k, m) if transpose_a else (m, k)
        inner, n = b.shape[:-3:-1] if transpose_b else b.shape[-2:]
        count = math.prod(outer)
        if inner != k or tuple(outer) != b.shape[:-2] or not m * k * n * count > 0:
            return None  # where sizes differ, the op's kernel raises the error
        has_blas = _has_double_blas if self.is_double else _has_blas
        most = _MOST_ALONE if not has_blas else _MOST_DOUBLE_PRODUCTS if self.is_double else _MOST_PRODUCTS
        if outer and (m * k * n > _MOST_OF_MANY or m * k * n * count > _MOST_BLAS_PRODUCTS):
            return None
        if not outer and (m * k * n > (_MOST_BLAS_PRODUCTS if has_blas else _MOST_ALONE) or m * n > LARGEST):
            return None
        out = Buffer((*outer, m, n))
        by_blas = has_blas and m * k * n > most
        room = Buffer((*outer, k, n) if transpose_b and not by_blas else ())
        flags = int(transpose_a), int(transpose_b)
        self.code.append([native.MATMUL, out, a, b, m, k, n, *flags, room, int(by_blas), count])
        return out

    def sum(self, x: Buffer, axes: list[int], *, keep_dims: bool, mean: bool = False) -> Buffer | None:
        """A sum over axes. Those that are not adjacent are summed one after the other, the outer ones first: vectors consist of inner elements."""
        if not axes:
            return self.reshape(x, x.shape)
        _of_floats(x)
        places = _places(axes, len(x.shape))
        if places is None or x.size == 0:
            return None
        line: list[Any] = []
        total = x
        for first, behind in _adjacent(places):
            outer, middle, inner = (math.prod(part) for part in _divided(total.shape, first, behind))
            if middle > LARGEST:
                return None  # the loops sum sequentially, which loses precision over very many elements
            if middle > 1:
                out = Buffer((*total.shape[:first], *[1] * (behind - first), *total.shape[behind:]))
                line = [native.SUM, out, total, outer, middle, inner, 1]
                self.code.append(line)
                total = out
        if mean and line:
            line[-1] = x.size // total.size
        return total if keep_dims and line else self.reshape(total, _without(total.shape, places, keep_dims=keep_dims))

    def max(self, x: Buffer, axes: list[int], *, keep_dims: bool) -> Buffer | None:
        """The maximum over adjacent axes; None if the axes are not adjacent."""
        reduced = self._reduced(x, axes, keep_dims=keep_dims) if axes else None
        if reduced is None:
            return None
        if reduced[2] == 1:
            return self.reshape(x, reduced[0].shape)
        self.code.append([native.MAX, reduced[0], x, *reduced[1:]])
        return reduced[0]

    def _reduced(self, x: Buffer, axes: list[int], *, keep_dims: bool) -> tuple[Buffer, int, int, int] | None:
        """The result of a reduction over adjacent axes, and the numbers of elements before, in and behind these axes."""
        _of_floats(x)
        places = _places(axes, len(x.shape))
        if places is None or x.size == 0:
            return None
        (first, behind), *apart = _adjacent(places)
        if apart:
            return None
        sizes = [math.prod(part) for part in _divided(x.shape, first, behind)]
        return Buffer(_without(x.shape, places, keep_dims=keep_dims)), sizes[0], sizes[1], sizes[2]

    def softmax(self, x: Buffer) -> Buffer | None:
        """A softmax over the last axis."""
        _of_floats(x)
        if not x.shape or not 0 < x.shape[-1] <= LARGEST:
            return None
        out = Buffer(x.shape)
        self.code.append([native.SOFTMAX, out, x, x.size // x.shape[-1], x.shape[-1]])
        return out

    def dense(
        self, kind: str, a: Buffer, b: Buffer | None = None, *, adjoint: bool = False, lower: bool = False
    ) -> Buffer | None:
        """A factorization ("cholesky"), the "inverse" or the "determinant" of each small matrix in `a`, or solutions of equations with right sides `b`
        ("solve", or "triangular" for `lower` or upper triangular matrices)."""
        *outer, rows, n = a.shape
        columns = n if b is None else b.shape[-1]
        count = math.prod(outer)
        if rows != n or not 0 < count * n * n * max(n, columns) <= _MOST_DENSE:
            return None
        if b is not None and b.shape[:-1] != a.shape[:-1]:
            return None
        out = Buffer(tuple(outer) if kind == "determinant" else (*outer, n, columns))
        room = Buffer(() if kind == "triangular" else (n, n))
        number, flags = native.DENSE_KINDS[kind], (int(adjoint), int(lower))
        self.code.append([native.DENSE, out, a, a if b is None else b, room, number, count, n, columns, *flags])
        return out

    def band(self, x: Buffer, low: int, high: int) -> Buffer | None:
        """Matrices with zeros beyond `low` diagonals below and `high` above the main one; -1 keeps all."""
        *outer, rows, columns = x.shape
        if low > rows or high > columns or not x.size:
            return None
        out = Buffer(x.shape)
        low, high = rows if low < 0 else low, columns if high < 0 else high
        self.code.append([native.BAND, out, x, math.prod(outer), rows, columns, low, high])
        return out

    def with_diagonal(self, x: Buffer | None, diagonal: Buffer, shape: tuple[int, ...]) -> Buffer | None:
        """Matrices of `shape` with the given main diagonals, which elsewhere are those of `x`, or zeros."""
        _of_floats(diagonal)
        *outer, rows, columns = shape
        if diagonal.shape != (*outer, min(rows, columns)) or not diagonal.size:
            return None
        steps = row_major(shape)
        out = self.copy(self.scalar(0.0), shape, [0] * len(shape)) if x is None else self.copy(x, shape, steps)
        along = [*steps[:-2], steps[-2] + steps[-1]]
        flat = diagonal, 0, row_major(diagonal.shape), diagonal.shape
        return out if out is not None and self.copy_into(out, 0, along, *flat) else None

    def copy(self, x: Buffer, shape: tuple[int, ...], steps: list[int], begin: int = 0) -> Buffer | None:
        """A tensor of `shape` whose element (i, j, ...) is element `begin + i * steps[0] + j * steps[1] + ...` of x."""
        out = Buffer(shape, kind=x.kind)
        return out if self.copy_into(out, 0, row_major(shape), x, begin, steps, shape) else None

    def copy_into(
        self,
        out: Buffer,
        at: int,
        out_steps: list[int],
        x: Buffer,
        begin: int,
        steps: list[int],
        shape: tuple[int, ...],
    ) -> bool:
        collapsed = collapse(shape, out_steps, steps)
        if collapsed is None:
            return False
        self.code.append([native.COPY, out, x, at, begin, *collapsed])
        return True

    def broadcast(self, x: Buffer, shape: tuple[int, ...]) -> Buffer | None:
        return self.copy(x, shape, steps_to(x.shape, shape))

    def transpose(self, x: Buffer, perm: list[int]) -> Buffer | None:
        steps = row_major(x.shape)
        return self.copy(x, tuple(x.shape[axis] for axis in perm), [steps[axis] for axis in perm])

    def split(self, x: Buffer, axis: int, count: int) -> list[Buffer] | None:
        axis %= len(x.shape)
        size = x.shape[axis] // count
        shape, steps = (*x.shape[:axis], size, *x.shape[axis + 1 :]), row_major(x.shape)
        parts = [self.copy(x, shape, steps, i * size * steps[axis]) for i in range(count)]
        return None if None in parts else parts  # type: ignore[return-value]

    def concat(self, parts: list[Buffer], axis: int) -> Buffer | None:
        axis %= len(parts[0].shape)
        shape = parts[0].shape
        if len({part.kind for part in parts}) > 1:
            return None
        out = Buffer((*shape[:axis], sum(part.shape[axis] for part in parts), *shape[axis + 1 :]), kind=parts[0].kind)
        steps, at = row_major(out.shape), 0
        for part in parts:
            if not self.copy_into(out, at * steps[axis], steps, part, 0, row_major(part.shape), part.shape):
                return None
            at += part.shape[axis]
        return out

    def pad(self, x: Buffer, paddings: list[list[int]]) -> Buffer | None:
        """x with `paddings` (before, after) zeros around each axis."""
        shape = tuple(size + before + after for size, (before, after) in zip(x.shape, paddings))
        if any(min(pair) < 0 for pair in paddings):
            return None
        steps = row_major(shape)
        return self.spread(x, shape, sum(before * step for (before, _), step in zip(paddings, steps)), steps)

    def spread(self, x: Buffer, shape: tuple[int, ...], begin: int, steps: list[int]) -> Buffer | None:
        """Zeros of `shape`, of which element `begin + i * steps[0] + j * steps[1] + ...` is element (i, j, ...) of x."""
        _of_floats(x)
        if x.size == 0:
            return None
        out = self.copy(self.scalar(0.0), shape, [0] * len(shape))
        return out if out is not None and self.copy_into(out, begin, steps, x, 0, row_major(x.shape), x.shape) else None

    def select(self, mask: Buffer, t: Buffer, e: Buffer) -> Buffer | None:
        """Selects `t` where the mask is true and `e` elsewhere. The mask may be broadcast; `t` and `e` have the same shape."""
        if t.shape != e.shape or t.kind != e.kind:
            return None
        collapsed = collapse(t.shape, steps_to(mask.shape, t.shape), row_major(t.shape))
        if collapsed is None:
            return None
        out = Buffer(t.shape, kind=t.kind)
        self.code.append([native.SELECT, out, mask, t, e, *collapsed])
        return out

    def cast(self, x: Buffer, kind: str) -> Buffer | None:
        """Integers and booleans as elements of another `kind`. (Not floats, of which some are no integers.)"""
        if x.kind and kind:
            out = Buffer(x.shape, kind=kind)
            return out if self.copy_into(out, 0, [1], x, 0, [1], (x.size,)) else None
        return self._unary("int_of_float" if kind else "float_of_int", x, kind)

    def gather(self, table: Buffer, indices: Buffer, depth: int) -> Buffer | None:
        """The parts of a table at the indices, each of which chooses from its first `depth` dimensions."""
        sizes, row = table.shape[:depth], table.shape[depth:]
        if not indices.kind or not 0 < len(sizes) == depth <= _MOST_DEPTH or not table.size or not indices.size:
            return None
        outer = indices.shape if depth == 1 else indices.shape[:-1]
        out = Buffer((*outer, *row), kind=table.kind)
        self.code.append([native.GATHER, out, table, indices, math.prod(outer), math.prod(row), depth, *sizes])
        return out

    def segments(self, kind: str, data: Buffer, ids: Buffer, count: int) -> Buffer | None:
        """The "sum", "max" or "min" of the rows with each id below `count`."""
        rank = len(ids.shape)
        if data.kind or not ids.kind or data.shape[:rank] != ids.shape or not data.size or count <= 0:
            return None
        out = Buffer((count, *data.shape[rank:]))
        width = math.prod(data.shape[rank:])
        self.code.append([native.SEGMENTS, out, data, ids, ids.size, width, count, ("sum", "max", "min").index(kind)])
        return out

    def place(self, x: Buffer, axis: int, kind: str, *, least: bool) -> Buffer | None:
        """The index of the largest or least element along an axis."""
        reduced = self._reduced(x, [axis], keep_dims=False)
        if reduced is None:
            return None
        out = Buffer(reduced[0].shape, kind=kind)
        self.code.append([native.PLACE, out, x, *reduced[1:], int(least)])
        return out

    def top(self, x: Buffer, k: int, kind: str) -> list[Buffer] | None:
        """The k largest elements of each row, and their indices."""
        if x.kind or not x.shape or not 0 < k <= x.shape[-1] or k > _MOST_TOP:
            return None
        shape = (*x.shape[:-1], k)
        values, places = Buffer(shape), Buffer(shape, kind=kind)
        self.code.append([native.TOP, values, places, x, x.size // x.shape[-1], x.shape[-1], k])
        return [values, places]

    def scalar(self, number: float) -> Buffer:
        """A constant of one element."""
        made = Buffer(())
        self.constants.append((made, torch.tensor(number, dtype=torch.float64)))
        return made

    def range(self, count: int, kind: str) -> Buffer:
        """The integers from 0 on."""
        made = Buffer((count,), kind=kind)
        self.constants.append((made, torch.arange(count)))
        return made

    @property
    def is_double(self) -> bool:
        return self.precision is torch.float64

    def number(self, x: Buffer) -> float | None:
        """The value of x if it is a constant with one element, else None."""
        return next((c.item() for buffer, c in self.constants if buffer is x and x.size == 1), None)

    def reshape(self, x: Buffer, shape: tuple[int, ...]) -> Buffer:
        return Buffer(shape, x)

    # -- ops -----------------------------------------------------------------------------------------------------

    def add(self, instruction: Instruction) -> bool:
        """Lowers one instruction. Returns False, and adds no loop, if it cannot be lowered."""
        op = instruction.op
        assert op is not None and op.definition.planning.lower is not None
        given = list(zip(values_of(instruction.arguments), instruction.inputs, are_numbers(instruction.arguments)))
        data = [(value, tensor) for value, tensor, is_number in given if not is_number]
        if any(self._is_of(state, value) for state in self.stored for value, _ in data):
            return False  # the old value of a variable that the loops have changed
        if not any(value in self.made or value in self.carried or not kind_of(tensor) for value, tensor in data):
            return False  # integers alone, such as counters and sizes, are the business of loops and plans
        before = self.precision
        if not self._fits_precision(instruction):
            return False
        length = len(self.code)
        try:
            flat = [
                host_value(value.constant) if number else self._taken(value, tensor) for value, tensor, number in given
            ]
            arguments = [flat] if instruction.tensors is not None else op.definition.group(flat, op.attrs)
            results = op.definition.planning.lower(self, op, *arguments)
        except NotLowered:
            results = None
        if results is not None:
            results = results if isinstance(results, list) else [results]
            # A shape that is not the one known is that of arguments which do not fit: the op's kernel raises the error.
            fit = [
                made.kind == kind_of(tensor) and made.shape == self.shape_of(tensor).dims
                for made, tensor in zip(results, op.outputs)
            ]
        if (
            results is None
            or not all(fit)
            or (len(self.code) == length and self.row_counts is not None and self._repeats_input(instruction, results))
            or self._refuses_late(length)
            or not self._divides(length)
        ):
            del self.code[length:]
            self.precision = before
            return False
        for value, buffer in zip(values_of(instruction.results), results):
            self.buffers[value] = buffer
            self.made.add(value)
        self.instructions.append(instruction)
        return True

    def _repeats_input(self, instruction: Instruction, results: list[Buffer]) -> bool:
        """Whether a result that is no view has the elements of an input. The copy of a large one might not have the rows of the other loops."""
        taken = {id(self.buffers[value].base) for value in self.inputs}
        return not instruction.traits & Trait.VIEW and any(id(each.base) in taken for each in results)

    def _refuses_late(self, first: int) -> bool:
        """Whether the lines from `first` on may have no result when a variable has been changed already."""
        refusing = (native.DENSE, native.GATHER, native.SEGMENTS, native.TOP)
        return bool(self.stored) and any(line[0] in refusing for line in self.code[first:])

    def _fits_precision(self, instruction: Instruction) -> bool:
        """Whether an op's tensors are of the same precision as the other floats, which the first op decides."""
        found = precisions(instruction)
        if self.precision is not None:
            found = found | {self.precision}
        if len(found) > 1:
            return False
        self.precision = next(iter(found), None)
        return True

    def store(self, instruction: Instruction) -> bool:
        """Adds an update of a variable by a value that the loops compute. Returns False, and adds no loop, if it must run after them."""
        found = stores.stored(instruction)
        if found is None or self.row_counts == [] or found[1] in self.stored or found[2] not in self.made:
            return False
        handle, state, value = found
        changed = self.buffers[value]
        if state.value.shape != changed.shape or changed.kind or state.value.dtype is not self.precision:
            return False
        assert instruction.op is not None
        how = instruction.op.definition.planning.stores
        target, size = Buffer(changed.shape), [changed.size]
        line = (
            [native.COPY, target, changed, 0, 0]
            if not how
            else [native.BINARY_LOOP, native.BINARY[how], target, target, changed]
        )
        line += collapse(tuple(size), [1], [1]) or []
        old = [self.buffers[each] for each in self.inputs if self._is_of(state, each)]
        filled = {id(each.base) for each in old}
        if self.row_counts is None:
            if any(id(self.buffers[each].base) in filled for each in self.made):
                return False  # a result is the old value in another shape
        else:
            # Only the loops of the same row may have read a row of the variable before.
            rows = [
                rows for rows in self.row_counts if all(has_rows(each, rows, filled) for each in [*self.code, line])
            ]
            if not rows or any(each.size != changed.size for each in old):
                return False
            self.row_counts = rows
        self.code.append(line)
        self.buffers[handle] = target
        self.inputs.append(handle)
        self.stored.append(state)
        self.instructions.append(instruction)
        return True

    def _is_of(self, state: Any, value: Value) -> bool:
        """Whether a value may share the memory of a variable."""
        roots = self.roots.get(value)
        return roots is not None and value not in self.made and (id(state) in roots or None in roots)

    def _divides(self, first: int) -> bool:
        """Whether large tensors can still be split into rows if the lines from `first` on are included."""
        if self.row_counts is None:
            return True
        if first == 0:
            shapes = {item.shape for line in self.code for item in line if isinstance(item, Buffer)}
            counts = {math.prod(shape[:axis]) for shape in shapes for axis in range(1, len(shape) + 1)}
            remaining = sorted((count for count in counts if count >= _FEWEST_ROWS), reverse=True)
        else:
            remaining = self.row_counts
        filled = written(self.code[:first])
        for line in self.code[first:]:
            remaining = [rows for rows in remaining if has_rows(line, rows, filled)]
            filled.update(written([line]))
        if remaining or not self.code:
            self.row_counts = remaining
        return bool(remaining) or not self.code

    def _taken(self, value: Value, tensor: Tensor) -> Any:
        """An argument as `lower` functions get it: a buffer, or plain numbers for constants of dtypes that have no buffers."""
        shape = dims_of(self.shape_of, tensor)
        if shape is None:
            return host_value(value.constant)
        known = self.buffers.get(value)
        if known is None:
            known = Buffer(shape, kind=kind_of(tensor) or "")
            if value.is_constant and known.size <= LARGEST:
                if known.kind and not self.is_double and not fit_32_bits(value.constant):
                    raise NotLowered
                self.constants.append((known, value.constant))
            else:
                self.inputs.append(value)
                if tensor.dtype.base_dtype is dtypes.bool_:
                    self.booleans.add(value)
            self.buffers[value] = known
        return known

    def finish(self, wanted: set[Value]) -> list[Instruction] | None:
        """Instructions that compute the `wanted` values: the fused loops, then views. None if fusing does not pay."""
        fewest = self.fewest or (1 if self._is_worth_a_call() else _FEWEST)
        if sum(1 for each in self.instructions if not each.traits & Trait.VIEW) < fewest:
            return None
        apart, wanted = self._run_apart(wanted)
        used = {id(item.base) for line in self.code for item in line if isinstance(item, Buffer)}
        made = [
            value
            for each in self.instructions
            if not any(each is other for other in apart)
            for value in values_of(each.results)
            if value in wanted
        ]
        if not made and not self.stored:
            return None  # none of the results is used
        inputs = [value for value in self.inputs if id(self.buffers[value]) in used or self._is_shared(value, made)]
        outputs = self._outputs(made)
        groups: dict[Any, list[tuple[Value, Buffer]]] = {}
        for value, buffer in outputs:  # small outputs of one shape share an allocation; large ones are freed separately
            key = (buffer.shape, buffer.kind) if self.row_counts is None else value
            groups.setdefault(key, []).append((value, buffer))
        results = [value for group in groups.values() for value, _ in group]
        numbered = [self.buffers[value] for value in inputs] + [
            buffer for group in groups.values() for _, buffer in group
        ]
        for index, buffer in enumerate(numbered):
            buffer.base.index = index
        alone = bool(self.stored) and self.row_counts is None  # no thread may read what another one has changed
        rows = self.row_counts[0] if self.row_counts else 0 if alone else self._rows(outputs[0][1].shape)
        segments = [] if rows else [(0, len(self.code), 0)] if alone else self._segments()
        scratch, scratch_size = self._scratch(len(numbered), rows, segments)
        constants = [(buffer, constant) for buffer, constant in self.constants if id(buffer) in used]
        position, places = 0, []
        for index, (buffer, _) in enumerate(constants, start=len(numbered) + len(scratch)):
            buffer.index = index
            places.append(position)
            position += buffer.size
        words = np.zeros((len(self.code), native.WORDS), np.int64)
        for row, line in zip(words, self.code):
            row[: len(line)] = [item.base.index if isinstance(item, Buffer) else item for item in line]
        shapes = [(len(group), group[0][1].shape, group[0][1].kind) for group in groups.values()]
        taken = [self.buffers[value] for value in inputs]
        largest = max((item.size for line in self.code for item in line if isinstance(item, Buffer)), default=1)
        fallback = Fallback(self.instructions, inputs, results)
        precision = self.precision or torch.float32
        integers = np.int64 if self.is_double else np.int32
        floats = np.float64 if self.is_double else np.float32
        kernel = native.Program(
            code=words.tobytes(),
            input_shapes=tuple(buffer.shape for buffer in taken),
            output_groups=tuple(
                (
                    count,
                    shape if count == 1 else (count, *shape),
                    math.prod(shape),
                    _EMPTY[_INTEGERS.get(kind, precision)],
                )
                for count, shape, kind in shapes
            ),
            scratch=np.asarray(scratch, np.int64).tobytes(),
            scratch_size=scratch_size,
            rows=rows,
            block=max(1, _BLOCK * rows // max(largest, 1)),
            constants=b"".join(
                np.ascontiguousarray(c.numpy(), integers if buffer.kind else floats).tobytes()
                for buffer, c in constants
            ),
            places=np.asarray(places, np.int64).tobytes(),
            segments=np.asarray(segments, np.int64).tobytes(),
            fallback=fallback,
            narrow=np.asarray(
                [
                    buffer.size if value in self.booleans else -buffer.size if self._is_narrowed(buffer) else 0
                    for value, buffer in zip(inputs, taken)
                ],
                np.int64,
            ).tobytes(),
            widened=np.asarray(
                [buffer.size if self._is_narrowed(buffer) else 0 for group in groups.values() for _, buffer in group],
                np.int64,
            ).tobytes(),
            dtypes=tuple(
                torch.bool if value in self.booleans else _INTEGERS.get(self.buffers[value].kind, precision)
                for value in [*inputs, *results]
            ),
            is_double=self.is_double,
        )
        members = [each.op for each in self.instructions if each.op is not None]
        fused = Instruction(members[0], "fused_loops", kernel, inputs, results=list(results), members=members)
        if rows and not self.stored and not kernel.may_refuse and len(groups) == len(results):
            floats = [None if value in self.booleans else buffer for value, buffer in zip(inputs, taken)]
            fused.overlays = overlays(self.code, rows, floats, [group[0][1] for group in groups.values()])
        if self.stored:
            fused.op = members[-1]
            fused.kernel = stores.Storing(kernel, fallback, [value.handle for value in inputs])
            fused.traits, fused.reads_first = Trait.WRITES | Trait.STATEFUL, True
        return [fused, *apart]

    def _is_narrowed(self, buffer: Buffer) -> bool:
        """Whether the loops hold the integers of a tensor in fewer bits than it has."""
        return buffer.kind == "int64" and not self.is_double

    def _is_worth_a_call(self) -> bool:
        """Whether the loops of a single op are worth a native call: there are several, or they are slower as torch calls."""
        loops = [line for line in self.code if line[0] != native.COPY]
        return len(loops) > 1 or any(map(is_worth_a_call, loops))

    def _run_apart(self, wanted: set[Value]) -> tuple[list[Instruction], set[Value]]:
        """Returns instructions that run separately after the loops, and the values that are wanted including their inputs.

        These are views of large tensors, which would otherwise be copied, and booleans, which the loops hold as numbers.
        """
        apart: list[Instruction] = []
        wanted = set(wanted)
        for each in reversed(self.instructions):
            assert each.op is not None
            is_view = self.row_counts is not None and bool(each.traits & Trait.VIEW)
            is_boolean = bool(each.op.outputs) and each.op.outputs[0].dtype.base_dtype is dtypes.bool_
            if (is_view or is_boolean) and not wanted.isdisjoint(values_of(each.results)):
                apart.insert(0, each)
                wanted.update(values_of(each.arguments))
        return apart, wanted

    def _is_shared(self, value: Value, made: list[Value]) -> bool:
        """Whether an output is only a reshape of this input."""
        return any(self.buffers[each].base is self.buffers[value] for each in made)

    def _outputs(self, made: list[Value]) -> list[tuple[Value, Buffer]]:
        """Gives every output its own buffer: an output that shares one with an input, a constant or another output is copied."""
        taken = {id(self.buffers[value]) for value in self.inputs} | {id(buffer) for buffer, _ in self.constants}
        outputs = []
        for value in made:
            buffer = self.buffers[value]
            if id(buffer.base) in taken:
                flat = Buffer((buffer.size,), kind=buffer.kind)
                self.copy_into(flat, 0, [1], buffer, 0, [1], flat.shape)
                buffer = Buffer(buffer.shape, flat)
            taken.add(id(buffer.base))
            outputs.append((value, buffer))
        return outputs

    def _segments(self) -> list[tuple[int, int, int]]:
        """Cuts the loops of small tensors into (first line, last line + 1, rows). Threads share the rows of a segment; 0 for one thread."""
        segments: list[tuple[int, int, int]] = []
        first, rows, time = 0, 0, 0.0
        filled: set[int] = set()
        for at in range(len(self.code) + 1):
            line = self.code[at] if at < len(self.code) else None
            if line is not None and rows > 1 and has_rows(line, rows, filled):
                filled |= written([line])
                time += cost(line)
                continue
            shared = rows if time >= _WORTH_SHARING else 0
            if at > first:
                if segments and not shared and not segments[-1][2]:
                    segments[-1] = (segments[-1][0], at, 0)
                else:
                    segments.append((first, at, shared))
            if line is None:
                break
            out = line[2 if line[0] in (native.UNARY_LOOP, native.BINARY_LOOP) else 1]
            rows = out.shape[0] if out.shape and out.shape[0] > 1 and has_rows(line, out.shape[0], set()) else 0
            first, time, filled = at, cost(line) if rows else 0.0, written([line])
        return segments

    def _rows(self, shape: tuple[int, ...]) -> int:
        """How many rows of small tensors threads may share; 0 if rows depend on each other or there is too little work."""
        rows = shape[0] if shape else 0
        filled: set[int] = set()
        time = 0.0
        for line in self.code:
            if rows <= 1 or not has_rows(line, rows, filled):
                return 0
            filled.update(written([line]))
            time += cost(line)
        return rows if time >= _WORTH_SHARING else 0

    def _scratch(
        self, first: int, rows: int, segments: list[tuple[int, int, int]]
    ) -> tuple[list[tuple[int, int]], int]:
        """Numbers the intermediate buffers. Returns (offset, elements) of each, and the total size of the scratch memory.

        Scratch memory is reused after the last use of a buffer, or after the segment of that use if threads share its rows: another thread may
        still be at the use. If `rows` is not zero, all sizes are those of one row.
        """
        fixed = {id(buffer) for buffer, _ in self.constants}
        last: dict[int, int] = {}
        for at, line in enumerate(self.code):
            last.update((id(item.base), at) for item in line if isinstance(item, Buffer))
        places: list[tuple[int, int]] = []
        free: dict[int, list[int]] = {}
        size = 0
        ends = {at: end for begin, end, shared in segments if shared for at in range(begin, end)}
        unused: list[tuple[int, int]] = []  # sizes and places
        for at, line in enumerate(self.code):
            touched = {id(item.base): item.base for item in line if isinstance(item, Buffer)}
            for base in touched.values():
                if base.index < 0 and id(base) not in fixed:
                    elements = base.size // rows if rows else base.size
                    room = free.get(base.size)
                    base.index = first + len(places)
                    if room:
                        places.append((room.pop(), elements))
                    else:
                        places.append((size, elements))
                        size += elements if rows else (elements + 15) // 16 * 16
            for key, base in touched.items():
                if last[key] == at and base.index >= first and key not in fixed:
                    unused.append((base.size, places[base.index - first][0]))
            if ends.get(at, at + 1) == at + 1:
                for elements, place in unused:
                    free.setdefault(elements, []).append(place)
                unused.clear()
        return places, size


def _places(axes: list[int], rank: int) -> list[int] | None:
    """The axes in order, as non-negative numbers; None if one is out of range or repeated (the op's kernel raises the error)."""
    places = sorted({axis % rank for axis in axes if -rank <= axis < rank}) if rank else []
    return places if len(places) == len(axes) > 0 else None


def _adjacent(places: list[int]) -> list[tuple[int, int]]:
    """The runs of adjacent axes, as the first one and the one behind the last."""
    runs: list[tuple[int, int]] = []
    for place in places:
        if runs and runs[-1][1] == place:
            runs[-1] = (runs[-1][0], place + 1)
        else:
            runs.append((place, place + 1))
    return runs


def _divided(shape: tuple[int, ...], first: int, behind: int) -> tuple[tuple[int, ...], ...]:
    return shape[:first], shape[first:behind], shape[behind:]


def _without(shape: tuple[int, ...], places: list[int], *, keep_dims: bool) -> tuple[int, ...]:
    """A shape after a reduction over the axes at `places`."""
    if keep_dims:
        return tuple(1 if axis in places else size for axis, size in enumerate(shape))
    return tuple(size for axis, size in enumerate(shape) if axis not in places)


def _of_floats(*buffers: Buffer) -> None:
    if any(buffer.kind for buffer in buffers):
        raise NotLowered
