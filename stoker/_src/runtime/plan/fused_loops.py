"""Programs: runs of ops on float32 tensors that become one native call.

Ops that say how they are lowered (`definition.lower`), on tensors whose sizes the graph knows, are collected into a `Program`
(native/program.c): loops over buffers, most of which never become tensors. That pays in two cases:

* Small tensors: a torch call costs about a microsecond before any arithmetic, more than what a few thousand elements need.
* Large ones whose rows need no other row, as in a normalization or an activation with its gradient: a program takes a few rows
  through all of its loops while they are in the cache, where op after op would go through memory each time.

Where a tensor turns out to have another shape than the graph promised, the program runs the ops' own kernels instead, so it can
only ever be quicker.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import torch

from stoker._src.base import dtypes
from stoker._src.base.extensions import extension
from stoker._src.base.shapes import Shape
from stoker._src.graph.definition import Trait
from stoker._src.graph.tensor import Tensor
from stoker._src.ops.support.values import host_value
from stoker._src.runtime.failures import explain_failure
from stoker._src.runtime.plan.instructions import EFFECTS, Host, Instruction, Value, renumber, values_of

native = extension("stoker._src.runtime.native.program")  # without it every op runs by its own kernel

ShapeOf = Callable[[Tensor], Shape]
_LARGEST = 1 << 15  # elements of a small tensor; torch shares larger ones among threads
_MOST_PRODUCTS = 1 << 16  # multiplications of a matmul; beyond, torch's library wins
_FEWEST, _FEWEST_LARGE = 3, 2  # ops worth a program, by the size of their tensors
_DIMENSIONS = 4  # that native loops have
_FEWEST_ROWS = 16  # of large tensors, for threads to share
_BLOCK = 2048  # elements of the largest buffer that one goes through the loops with
# Nanoseconds an element takes, roughly, and for how long a program must run before threads should share it.
_SLOW, _QUICK, _WORTH_SHARING = 1.2, 0.35, 15_000
_SLOW_LOOPS = ("exp", "tanh", "sigmoid")


class Buffer:
    """Elements of a program in row-major order. A reshaped one shares the elements of its `base`."""

    __slots__ = ("base", "index", "shape")

    def __init__(self, shape: tuple[int, ...], base: Buffer | None = None) -> None:
        self.shape = shape
        self.base = self if base is None else base.base
        self.index = -1

    @property
    def size(self) -> int:
        return math.prod(self.shape)


class Builder:
    """Collects the loops of one program. Ops' `lower` functions call its methods, which return the buffer they fill."""

    def __init__(self, shape_of: ShapeOf) -> None:
        self.shape_of = shape_of
        self.code: list[list[Any]] = []  # an instruction: numbers and Buffers
        self.made: set[Value] = set()
        self.row_counts: list[int] | None = None  # into which large tensors may be divided; None for small ones
        self.buffers: dict[Value, Buffer] = {}
        self.inputs: list[Value] = []
        self.constants: list[tuple[Buffer, Any]] = []
        self.instructions: list[Instruction] = []

    # -- loops ---------------------------------------------------------------------------------------------------

    def unary(self, name: str, x: Buffer) -> Buffer:
        out = Buffer(x.shape)
        self.code.append([native.UNARY_LOOP, native.UNARY[name], out, x, x.size])
        return out

    def binary(self, name: str, x: Buffer, y: Buffer) -> Buffer | None:
        """With broadcasting; None where it has more dimensions than the loops."""
        try:
            shape = tuple(np.broadcast_shapes(x.shape, y.shape))
        except ValueError:  # they do not fit, or are too large: the op's kernel says so
            return None
        collapsed = _collapsed(shape, _steps(x.shape, shape), _steps(y.shape, shape))
        if collapsed is None:
            return None
        out = Buffer(shape)
        self.code.append([native.BINARY_LOOP, native.BINARY[name], out, x, y, *collapsed])
        return out

    def matmul(self, a: Buffer, b: Buffer, *, transpose_a: bool, transpose_b: bool) -> Buffer | None:
        m, k = reversed(a.shape) if transpose_a else a.shape
        n = b.shape[0] if transpose_b else b.shape[1]
        if not 0 < m * k * n <= _MOST_PRODUCTS or m * n > _LARGEST:
            return None
        out = Buffer((m, n))
        room = Buffer((k, n) if transpose_b else ())
        self.code.append([native.MATMUL, out, a, b, m, k, n, int(transpose_a), int(transpose_b), room])
        return out

    def sum(self, x: Buffer, axes: list[int], *, keep_dims: bool, mean: bool = False) -> Buffer | None:
        """Over neighbouring axes; None for others."""
        rank = len(x.shape)
        reduced = sorted({axis % rank for axis in axes if -rank <= axis < rank}) if rank else []
        first, last = (reduced[0], reduced[-1] + 1) if reduced else (0, 0)
        middle = math.prod(x.shape[first:last])
        if len(reduced) != len(axes) or last - first != len(reduced) or x.size == 0 or middle > _LARGEST:
            return None  # plain loops add up; over very many elements that would lose digits
        shape = (*x.shape[:first], *((1,) * len(reduced) if keep_dims else ()), *x.shape[last:])
        out = Buffer(shape)
        self.code.append(
            [native.SUM, out, x, math.prod(x.shape[:first]), middle, math.prod(x.shape[last:]), middle if mean else 1]
        )
        return out

    def softmax(self, x: Buffer) -> Buffer | None:
        """Over the last axis."""
        if not x.shape or not 0 < x.shape[-1] <= _LARGEST:
            return None
        out = Buffer(x.shape)
        self.code.append([native.SOFTMAX, out, x, x.size // x.shape[-1], x.shape[-1]])
        return out

    def copy(self, x: Buffer, shape: tuple[int, ...], steps: list[int], begin: int = 0) -> Buffer | None:
        """A tensor of `shape` whose element (i, j, ...) is element `begin + i * steps[0] + ...` of x."""
        out = Buffer(shape)
        return out if self.copy_into(out, 0, _row_major(shape), x, begin, steps, shape) else None

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
        collapsed = _collapsed(shape, out_steps, steps)
        if collapsed is None:
            return False
        self.code.append([native.COPY, out, x, at, begin, *collapsed])
        return True

    def broadcast(self, x: Buffer, shape: tuple[int, ...]) -> Buffer | None:
        return self.copy(x, shape, _steps(x.shape, shape))

    def transpose(self, x: Buffer, perm: list[int]) -> Buffer | None:
        steps = _row_major(x.shape)
        return self.copy(x, tuple(x.shape[axis] for axis in perm), [steps[axis] for axis in perm])

    def split(self, x: Buffer, axis: int, count: int) -> list[Buffer] | None:
        axis %= len(x.shape)
        size = x.shape[axis] // count
        shape, steps = (*x.shape[:axis], size, *x.shape[axis + 1 :]), _row_major(x.shape)
        parts = [self.copy(x, shape, steps, i * size * steps[axis]) for i in range(count)]
        return None if None in parts else parts  # type: ignore[return-value]

    def concat(self, parts: list[Buffer], axis: int) -> Buffer | None:
        axis %= len(parts[0].shape)
        shape = parts[0].shape
        out = Buffer((*shape[:axis], sum(part.shape[axis] for part in parts), *shape[axis + 1 :]))
        steps, at = _row_major(out.shape), 0
        for part in parts:
            if not self.copy_into(out, at * steps[axis], steps, part, 0, _row_major(part.shape), part.shape):
                return None
            at += part.shape[axis]
        return out

    def number(self, x: Buffer) -> float | None:
        """A constant of one element as a number; None for others."""
        return next((c.item() for buffer, c in self.constants if buffer is x and x.size == 1), None)

    def reshape(self, x: Buffer, shape: tuple[int, ...]) -> Buffer:
        return Buffer(shape, x)

    # -- ops -----------------------------------------------------------------------------------------------------

    def add(self, instruction: Instruction) -> bool:
        """Lowers one instruction; False, with no loop added, where it cannot be."""
        op = instruction.op
        assert op is not None and op.definition.planning.lower is not None
        given = zip(values_of(instruction.arguments), op._inputs)
        flat = [self._taken(value, _known(self.shape_of, tensor)) for value, tensor in given]
        length = len(self.code)
        results = op.definition.planning.lower(self, op, *op.definition.group(flat, op.attrs))
        if results is None or not self._divides(length):
            del self.code[length:]
            return False
        results = results if isinstance(results, list) else [results]
        for value, buffer in zip(values_of(instruction.results), results):
            self.buffers[value] = buffer
            self.made.add(value)
        self.instructions.append(instruction)
        return True

    def _divides(self, first: int) -> bool:
        """Whether large tensors can still be divided into rows with the lines from `first` on."""
        if self.row_counts is None:
            return True
        if first == 0:
            shapes = {item.shape for line in self.code for item in line if isinstance(item, Buffer)}
            counts = {math.prod(shape[:axis]) for shape in shapes for axis in range(1, len(shape) + 1)}
            remaining = sorted((count for count in counts if count >= _FEWEST_ROWS), reverse=True)
        else:
            remaining = self.row_counts
        filled = _filled(self.code[:first])
        for line in self.code[first:]:
            remaining = [rows for rows in remaining if _has_rows(line, rows, filled)]
            filled.update(_filled([line]))
        if remaining or not self.code:
            self.row_counts = remaining
        return bool(remaining) or not self.code

    def _taken(self, value: Value, shape: tuple[int, ...] | None) -> Any:
        """An argument as `lower` functions get it: a buffer, or plain numbers for what is not float32."""
        if shape is None:
            return host_value(value.constant)
        known = self.buffers.get(value)
        if known is None:
            known = self.buffers[value] = Buffer(shape)
            if value.is_constant and known.size <= _LARGEST:
                self.constants.append((known, value.constant))
            else:
                self.inputs.append(value)
        return known

    def finish(self, wanted: set[Value]) -> list[Instruction] | None:
        """Instructions that make the `wanted` values, a program first; None where it would not pay."""
        fewest = _FEWEST if self.row_counts is None else _FEWEST_LARGE
        if sum(1 for each in self.instructions if not each.traits & Trait.VIEW) < fewest:
            return None
        views, wanted = self._wanted_views(wanted)
        used = {id(item.base) for line in self.code for item in line if isinstance(item, Buffer)}
        made = [
            value
            for each in self.instructions
            if not any(each is view for view in views)
            for value in values_of(each.results)
            if value in wanted
        ]
        if not made:
            return None  # only what it fed is wanted
        inputs = [value for value in self.inputs if id(self.buffers[value]) in used or self._is_shared(value, made)]
        outputs = self._outputs(made)
        groups: dict[Any, list[tuple[Value, Buffer]]] = {}
        for value, buffer in outputs:  # small ones of a shape are made together, large ones have lives of their own
            groups.setdefault(buffer.shape if self.row_counts is None else value, []).append((value, buffer))
        results = [value for group in groups.values() for value, _ in group]
        numbered = [self.buffers[value] for value in inputs] + [
            buffer for group in groups.values() for _, buffer in group
        ]
        for index, buffer in enumerate(numbered):
            buffer.base.index = index
        rows = self.row_counts[0] if self.row_counts else self._rows(outputs[0][1].shape)
        scratch, scratch_size = self._scratch(len(numbered), rows)
        constants = [(buffer, constant) for buffer, constant in self.constants if id(buffer) in used]
        position, places = 0, []
        for index, (buffer, _) in enumerate(constants, start=len(numbered) + len(scratch)):
            buffer.index = index
            places.append(position)
            position += buffer.size
        words = np.zeros((len(self.code), native.WORDS), np.int64)
        for row, line in zip(words, self.code):
            row[: len(line)] = [item.base.index if isinstance(item, Buffer) else item for item in line]
        shapes = [(len(group), group[0][1].shape) for group in groups.values()]
        largest = max((item.size for line in self.code for item in line if isinstance(item, Buffer)), default=1)
        kernel = native.Program(
            code=words.tobytes(),
            input_shapes=tuple(self.buffers[value].shape for value in inputs),
            output_groups=tuple(
                (count, shape if count == 1 else (count, *shape), math.prod(shape)) for count, shape in shapes
            ),
            scratch=np.asarray(scratch, np.int64).tobytes(),
            scratch_size=scratch_size,
            rows=rows,
            block=max(1, _BLOCK * rows // max(largest, 1)),
            constants=b"".join(np.ascontiguousarray(c.numpy(), np.float32).tobytes() for _, c in constants),
            places=np.asarray(places, np.int64).tobytes(),
            empty=torch.empty,
            fallback=_Fallback(self.instructions, inputs, results),
        )
        return [Instruction(self.instructions[0].op, "program", kernel, inputs, results=list(results)), *views]

    def _wanted_views(self, wanted: set[Value]) -> tuple[list[Instruction], set[Value]]:
        """Views of large tensors among the wanted values, which a copy would cost more, and what is wanted with what they show."""
        views: list[Instruction] = []
        if self.row_counts is None:
            return views, wanted
        wanted = set(wanted)
        for each in reversed(self.instructions):
            if each.traits & Trait.VIEW and not wanted.isdisjoint(values_of(each.results)):
                views.insert(0, each)
                wanted.update(values_of(each.arguments))
        return views, wanted

    def _is_shared(self, value: Value, made: list[Value]) -> bool:
        """Whether an output is a mere reshape of this input."""
        return any(self.buffers[each].base is self.buffers[value] for each in made)

    def _outputs(self, made: list[Value]) -> list[tuple[Value, Buffer]]:
        """A buffer of its own for every output: a copy for those that share one with an input, a constant or each other."""
        taken = {id(self.buffers[value]) for value in self.inputs} | {id(buffer) for buffer, _ in self.constants}
        outputs = []
        for value in made:
            buffer = self.buffers[value]
            if id(buffer.base) in taken:
                flat = Buffer((buffer.size,))
                self.copy_into(flat, 0, [1], buffer, 0, [1], flat.shape)
                buffer = Buffer(buffer.shape, flat)
            taken.add(id(buffer.base))
            outputs.append((value, buffer))
        return outputs

    def _rows(self, shape: tuple[int, ...]) -> int:
        """How many rows of small tensors threads may share: 0 where some row needs another, or the program is too short."""
        rows = shape[0] if shape else 0
        filled: set[int] = set()
        time = 0.0
        for line in self.code:
            if rows <= 1 or not _has_rows(line, rows, filled):
                return 0
            filled.update(_filled([line]))
            slow = line[0] == native.SOFTMAX or (line[0] == native.UNARY_LOOP and line[1] in _slow_loops())
            time += _size(line) * (_SLOW if slow else _QUICK)
        return rows if time >= _WORTH_SHARING else 0

    def _scratch(self, first: int, rows: int) -> tuple[list[tuple[int, int]], int]:
        """Numbers the buffers that are neither inputs, outputs nor constants: (place, elements) of each, and the room they need.

        Room is used again when its buffer is done. With `rows`, all of it is counted for one row.
        """
        fixed = {id(buffer) for buffer, _ in self.constants}
        last: dict[int, int] = {}
        for at, line in enumerate(self.code):
            last.update((id(item.base), at) for item in line if isinstance(item, Buffer))
        places: list[tuple[int, int]] = []
        free: dict[int, list[int]] = {}
        size = 0
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
                    free.setdefault(base.size, []).append(places[base.index - first][0])
        return places, size


def _slow_loops() -> list[int]:
    return [native.UNARY[name] for name in _SLOW_LOOPS]


def _walks(line: list[Any]) -> tuple[list[int], list[tuple[Buffer, list[int]]]]:
    """Of a binary loop or a copy: the sizes it goes through, and the buffers, other than a row-major result, with their steps."""
    sizes, first, second = (line[5 + _DIMENSIONS * i :][:_DIMENSIONS] for i in range(3))
    buffers = line[3:5] if line[0] == native.BINARY_LOOP else line[1:3]
    return sizes, list(zip(buffers, (first, second)))


def _size(line: list[Any]) -> int:
    """How many elements a loop goes through."""
    if line[0] == native.UNARY_LOOP:
        return line[4]
    if line[0] in (native.SUM, native.SOFTMAX):
        return math.prod(line[3:6])
    return math.prod(_walks(line)[0])


def _filled(code: list[list[Any]]) -> set[int]:
    """The buffers that loops write."""
    return {id(line[2 if line[0] in (native.UNARY_LOOP, native.BINARY_LOOP) else 1].base) for line in code}


def _has_rows(line: list[Any], rows: int, filled: set[int]) -> bool:
    """Whether a loop makes each of `rows` equal parts of its result from the same part of its operands, or from one part of an input.

    `filled` are the buffers that loops before it write: what repeats one of those needs rows that another thread may have.
    """
    if line[0] == native.UNARY_LOOP:
        return line[4] % rows == 0
    if line[0] in (native.SUM, native.SOFTMAX):
        return line[3] % rows == 0
    if line[0] not in (native.BINARY_LOOP, native.COPY):
        return False
    sizes, walked = _walks(line)
    outermost = next((axis for axis in range(_DIMENSIONS) if sizes[axis] != 1), _DIMENSIONS - 1)
    return sizes[outermost] % rows == 0 and all(
        steps[outermost] * sizes[outermost] == buffer.size or (steps[outermost] == 0 and id(buffer.base) not in filled)
        for buffer, steps in walked
    )


class _Fallback:
    """The program's ops by their own kernels, for inputs of another shape than the graph promised."""

    def __init__(self, instructions: list[Instruction], inputs: list[Value], results: list[Value]) -> None:
        self.instructions, self.inputs, self.results = instructions, inputs, results

    def __call__(self, *tensors: Any) -> tuple[Any, ...]:
        known: dict[Value, Any] = dict(zip(self.inputs, tensors))
        for instruction in self.instructions:
            arguments = [_found(argument, known) for argument in instruction.arguments]
            assert instruction.op is not None
            try:
                outcome = instruction.kernel(*arguments, **instruction.keywords)
            except Exception as error:
                raise explain_failure(error, instruction.op) from error
            known.update(zip(values_of(instruction.results), instruction.op.definition.flatten_results(outcome)))
        return tuple(known[value] for value in self.results)


def _found(argument: Any, known: dict[Value, Any]) -> Any:
    if isinstance(argument, list):
        return [_found(item, known) for item in argument]
    if isinstance(argument, Host):
        return host_value(argument.value.constant)
    return argument.constant if argument.is_constant else known[argument]


def form(instructions: list[Instruction], results: list[Value | None], shape_of: ShapeOf) -> list[Instruction]:
    """The instructions of a plan with programs in place of runs of them; `results` are what the plan returns.

    A run is held back until something needs what it makes or changes what it reads; what does neither goes ahead of it.
    """
    if native is None:
        return instructions
    runs = _Runs(shape_of)
    for instruction in instructions:
        runs.add(instruction)
    runs.end(runs.small, runs.large)
    return _joined(runs.ended, {value for value in results if value is not None})


class _Runs:
    """Sorts instructions into runs: at most one of small tensors and one of large ones are open, and neither needs the other."""

    def __init__(self, shape_of: ShapeOf) -> None:
        self.shape_of = shape_of
        self.ended: list[Builder | Instruction] = []
        self.small, self.large = self._empty(large=False), self._empty(large=True)

    def _empty(self, *, large: bool) -> Builder:
        builder = Builder(self.shape_of)
        builder.row_counts = [] if large else None
        return builder

    def end(self, *builders: Builder) -> None:
        for builder in builders:
            if builder.instructions:
                self.ended.append(builder)
            if builder is self.small:
                self.small = self._empty(large=False)
            else:
                self.large = self._empty(large=True)

    def add(self, instruction: Instruction) -> None:
        arguments = set(values_of(instruction.arguments))
        changes = bool(instruction.traits & (Trait.WRITES | Trait.BLOCKING) or instruction.steps)
        large = _is_large(instruction, self.shape_of)
        if large is None:
            if changes or not self.large.made.isdisjoint(arguments):
                self.end(self.large)
        elif large or not self.large.made.isdisjoint(arguments):
            if not self.small.made.isdisjoint(arguments):
                self.end(self.small)
            if self.large.add(instruction):
                return
            alone = self._empty(large=True)
            starts = large and alone.add(instruction)
            if starts or not self.large.made.isdisjoint(arguments):
                self.end(self.large)
            if starts:
                self.large = alone
                return
        if large is False and self.small.add(instruction):
            return
        if changes or not arguments.isdisjoint(self.small.buffers):
            self.end(self.small)
        self.ended.append(instruction)


def _joined(runs: list[Any], wanted: set[Value]) -> list[Instruction]:
    """The instructions again, with a program for each run where it pays."""
    instructions: list[Instruction] = []
    for run in reversed(runs):  # from the end, so that what later ones use is known
        if isinstance(run, Builder):
            added = run.finish(wanted) or run.instructions
        else:
            added = [run]
        for each in added:
            wanted.update(values_of(each.arguments))
        instructions.extend(reversed(added))
    instructions.reverse()
    renumber(instructions)
    return instructions


def _is_large(instruction: Instruction, shape_of: ShapeOf) -> bool | None:
    """Whether an instruction that a program may hold has large tensors; None for the others."""
    op = instruction.op
    if (
        op is None
        or instruction.kind != "kernel"
        or op.definition.planning.lower is None
        or instruction.traits & EFFECTS
    ):
        return None
    given = list(values_of(instruction.arguments))
    if len(given) != len(op._inputs) or any(value.handle for value in given):
        return None
    known = [_known(shape_of, tensor) for tensor in op.outputs]
    for value, tensor in zip(given, op._inputs):
        if not (_is_host(value) and tensor.dtype.is_integer):
            known.append(_known(shape_of, tensor))
    return None if None in known else any(math.prod(shape) > _LARGEST for shape in known)  # type: ignore[arg-type]


def _is_host(value: Value) -> bool:
    return value.is_constant and isinstance(value.constant, torch.Tensor)


def _known(shape_of: ShapeOf, tensor: Tensor) -> tuple[int, ...] | None:
    """The shape of a float32 tensor, where the graph knows all of it."""
    shape = shape_of(tensor)
    if shape.size is None or tensor.dtype.base_dtype is not dtypes.float32:
        return None
    return shape.dims  # type: ignore[return-value]


def _row_major(shape: tuple[int, ...]) -> list[int]:
    return [math.prod(shape[axis + 1 :]) for axis in range(len(shape))]


def _steps(shape: tuple[int, ...], broadcast: tuple[int, ...]) -> list[int]:
    """How far one goes in a tensor of `shape` for one step in each dimension of what it is broadcast to."""
    padded = (1,) * (len(broadcast) - len(shape)) + shape
    return [0 if size == 1 else step for size, step in zip(padded, _row_major(padded))]


def _collapsed(shape: tuple[int, ...], first: list[int], second: list[int]) -> list[int] | None:
    """Sizes, and steps of two tensors, in exactly four dimensions: those that can be walked as one are joined."""
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
