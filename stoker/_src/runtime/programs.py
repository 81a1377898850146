"""Small programs: runs of ops on small float32 tensors that become one native call.

A torch call costs about a microsecond before any arithmetic, more than what a few thousand elements need. Ops that say how they
are lowered (`definition.lower`), on tensors whose sizes the graph knows and which are small, are collected into a `Program`
(native/program.c): loops over buffers, most of which never become tensors. Where a tensor turns out to have another shape than
the graph promised, the program runs the ops' own kernels instead, so it can only ever be quicker.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import torch

from stoker._src.base import dtypes
from stoker._src.base.shapes import Shape
from stoker._src.graph.definition import Trait
from stoker._src.graph.tensor import Tensor
from stoker._src.ops.values import host_value
from stoker._src.runtime.failures import explain_failure
from stoker._src.runtime.instructions import EFFECTS, Host, Instruction, Value, values_of

native: Any
try:
    from stoker._src.runtime.native import program as native  # type: ignore[attr-defined]
except ImportError:  # built without a compiler: every op runs by its own kernel
    native = None

ShapeOf = Callable[[Tensor], Shape]
_LARGEST = 1 << 15  # elements of a tensor; torch shares larger ones among threads
_MOST_PRODUCTS = 1 << 16  # multiplications of a matmul; beyond, torch's library wins
_FEWEST = 3  # ops worth a program
_DIMENSIONS = 4  # that native loops have
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
        shape = tuple(np.broadcast_shapes(x.shape, y.shape))
        collapsed = _collapsed(shape, _steps(x.shape, shape), _steps(y.shape, shape))
        if collapsed is None or math.prod(shape) > _LARGEST:
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
        if len(reduced) != len(axes) or last - first != len(reduced) or x.size == 0:
            return None
        middle = math.prod(x.shape[first:last])
        shape = (*x.shape[:first], *((1,) * len(reduced) if keep_dims else ()), *x.shape[last:])
        out = Buffer(shape)
        self.code.append(
            [native.SUM, out, x, math.prod(x.shape[:first]), middle, math.prod(x.shape[last:]), middle if mean else 1]
        )
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
        if collapsed is None or math.prod(shape) > _LARGEST:
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

    def reshape(self, x: Buffer, shape: tuple[int, ...]) -> Buffer:
        return Buffer(shape, x)

    # -- ops -----------------------------------------------------------------------------------------------------

    def add(self, instruction: Instruction) -> bool:
        """Lowers one instruction; False, with no loop added, where it cannot be."""
        op = instruction.op
        assert op is not None and op.definition.lower_fn is not None
        given = zip(values_of(instruction.arguments), op._inputs)
        flat = [self._taken(value, _small(self.shape_of, tensor)) for value, tensor in given]
        length = len(self.code)
        results = op.definition.lower_fn(self, op, *op.definition.group(flat, op.attrs))
        if results is None:
            del self.code[length:]
            return False
        results = results if isinstance(results, list) else [results]
        for value, buffer in zip(values_of(instruction.results), results):
            self.buffers[value] = buffer
        self.instructions.append(instruction)
        return True

    def _taken(self, value: Value, shape: tuple[int, ...] | None) -> Any:
        """An argument as `lower` functions get it: a buffer, or plain numbers for what is not float32."""
        if shape is None:
            return host_value(value.constant)
        known = self.buffers.get(value)
        if known is None:
            known = self.buffers[value] = Buffer(shape)
            if value.is_constant:
                self.constants.append((known, value.constant))
            else:
                self.inputs.append(value)
        return known

    def finish(self, wanted: set[Value]) -> Instruction | None:
        """The program as one instruction whose results are the `wanted` values; None where it would not pay."""
        if sum(1 for each in self.instructions if not each.traits & Trait.VIEW) < _FEWEST:
            return None
        used = {id(item.base) for line in self.code for item in line if isinstance(item, Buffer)}
        made = [value for each in self.instructions for value in values_of(each.results) if value in wanted]
        if not made:
            return None  # only what it fed is wanted
        inputs = [value for value in self.inputs if id(self.buffers[value]) in used or self._is_shared(value, made)]
        outputs = self._outputs(made)
        by_shape: dict[tuple[int, ...], list[tuple[Value, Buffer]]] = {}
        for value, buffer in outputs:
            by_shape.setdefault(buffer.shape, []).append((value, buffer))
        results = [value for group in by_shape.values() for value, _ in group]
        numbered = [self.buffers[value] for value in inputs] + [
            buffer for group in by_shape.values() for _, buffer in group
        ]
        for index, buffer in enumerate(numbered):
            buffer.base.index = index
        offsets, scratch_size = self._scratch(len(numbered))
        constants = [(buffer, constant) for buffer, constant in self.constants if id(buffer) in used]
        position = 0
        for index, (buffer, _) in enumerate(constants, start=len(numbered) + len(offsets)):
            buffer.index = index
            offsets.append(position)
            position += buffer.size
        words = np.zeros((len(self.code), native.WORDS), np.int64)
        for row, line in zip(words, self.code):
            row[: len(line)] = [item.base.index if isinstance(item, Buffer) else item for item in line]
        groups = tuple(
            (len(group), shape if len(group) == 1 else (len(group), *shape), math.prod(shape))
            for shape, group in by_shape.items()
        )
        kernel = native.Program(
            code=words.tobytes(),
            input_shapes=tuple(self.buffers[value].shape for value in inputs),
            output_groups=groups,
            scratch=len(offsets) - len(constants),
            constant_count=len(constants),
            scratch_size=scratch_size,
            rows=self._rows(outputs[0][1].shape),
            offsets=np.asarray(offsets, np.int64).tobytes(),
            constants=b"".join(np.ascontiguousarray(c.numpy(), np.float32).tobytes() for _, c in constants),
            empty=torch.empty,
            fallback=_Fallback(self.instructions, inputs, results),
        )
        return Instruction(self.instructions[0].op, "program", kernel, inputs, results=list(results))

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
        """How many rows threads may share: 0 where some row needs another, or the program is too short.

        Rows are equal parts of every buffer. Buffers that use the same room have the same size, so their rows do, too.
        """
        rows = shape[0] if shape else 0
        made: set[int] = set()
        time = 0.0
        for kind, *line in self.code:
            if kind == native.UNARY_LOOP:
                number, out, _, size = line
                slow, fits = number in [native.UNARY[name] for name in _SLOW_LOOPS], rows > 1 and size % rows == 0
            elif kind in (native.BINARY_LOOP, native.COPY):
                walk = line[4:]
                outermost = next((axis for axis in range(_DIMENSIONS) if walk[axis] != 1), _DIMENSIONS - 1)
                out, buffers = (line[1], line[2:4]) if kind == native.BINARY_LOOP else (line[0], line[:2])
                walked = zip(buffers, (walk[_DIMENSIONS:], walk[2 * _DIMENSIONS :]))
                size, slow = math.prod(walk[:_DIMENSIONS]), False
                fits = (
                    rows > 1
                    and walk[outermost] % rows == 0
                    and all(
                        steps[outermost] * walk[outermost] == buffer.size
                        or (steps[outermost] == 0 and id(buffer.base) not in made)
                        for buffer, steps in walked
                    )
                )
            else:
                return 0
            if not fits:
                return 0
            made.add(id(out.base))
            time += size * (_SLOW if slow else _QUICK)
        return rows if time >= _WORTH_SHARING else 0

    def _scratch(self, first: int) -> tuple[list[int], int]:
        """Numbers the buffers that are neither inputs, outputs nor constants; room is used again when its buffer is done."""
        fixed = {id(buffer) for buffer, _ in self.constants}
        last: dict[int, int] = {}
        for at, line in enumerate(self.code):
            last.update((id(item.base), at) for item in line if isinstance(item, Buffer))
        offsets: list[int] = []
        free: dict[int, list[int]] = {}
        size = 0
        for at, line in enumerate(self.code):
            touched = {id(item.base): item.base for item in line if isinstance(item, Buffer)}
            for base in touched.values():
                if base.index < 0 and id(base) not in fixed:
                    room = free.get(base.size)
                    base.index = first + len(offsets)
                    if room:
                        offsets.append(room.pop())
                    else:
                        offsets.append(size)
                        size += (base.size + 15) // 16 * 16
            for key, base in touched.items():
                if last[key] == at and base.index >= first and key not in fixed:
                    free.setdefault(base.size, []).append(offsets[base.index - first])
        return offsets, size


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
    runs: list[Builder | Instruction] = []
    pending: Builder | None = None
    for instruction in instructions:
        if _is_candidate(instruction, shape_of):
            if pending is None:
                pending = Builder(shape_of)
            if pending.add(instruction):
                continue
        if pending is not None and (
            instruction.traits & (Trait.WRITES | Trait.BLOCKING)
            or instruction.steps
            or any(value in pending.buffers for value in values_of(instruction.arguments))
        ):
            runs.append(pending)
            pending = None
        runs.append(instruction)
    if pending is not None:
        runs.append(pending)
    return _joined(runs, {value for value in results if value is not None})


def _joined(runs: list[Any], wanted: set[Value]) -> list[Instruction]:
    """The instructions again, with a program for each run where it pays."""
    instructions: list[Instruction] = []
    for run in reversed(runs):  # from the end, so that what later ones use is known
        if isinstance(run, Builder):
            program = run.finish(wanted)
            added = run.instructions if program is None else [program]
        else:
            added = [run]
        for each in added:
            wanted.update(values_of(each.arguments))
        instructions.extend(reversed(added))
    instructions.reverse()
    for position, instruction in enumerate(instructions):
        for value in values_of(instruction.results):
            value.position = value.last_use = position
    return instructions


def _is_candidate(instruction: Instruction, shape_of: ShapeOf) -> bool:
    op = instruction.op
    if op is None or instruction.kind != "kernel" or op.definition.lower_fn is None:
        return False
    if instruction.traits & EFFECTS or not all(_small(shape_of, tensor) is not None for tensor in op.outputs):
        return False
    given = list(values_of(instruction.arguments))
    return len(given) == len(op._inputs) and all(
        not value.handle and (_small(shape_of, tensor) is not None or (_is_host(value) and tensor.dtype.is_integer))
        for value, tensor in zip(given, op._inputs)
    )


def _is_host(value: Value) -> bool:
    return value.is_constant and isinstance(value.constant, torch.Tensor)


def _small(shape_of: ShapeOf, tensor: Tensor) -> tuple[int, ...] | None:
    """The shape of a float32 tensor that is known to be small."""
    shape = shape_of(tensor)
    size = shape.size
    if size is None or size > _LARGEST or tensor.dtype.base_dtype is not dtypes.float32:
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
