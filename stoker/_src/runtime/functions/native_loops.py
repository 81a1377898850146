"""Loops whose iterations run natively, without Python in between.

The body of a typical loop over a sequence is a few fused loops (runtime/plan/fused_loops.py) and bookkeeping: counters, a condition on
them, items read from lists and items put into lists. Here the bookkeeping is done for all iterations at once, and the fused loops run
in one native call:

* Values that depend only on counters (the condition, a mask by sequence length) are computed for all iterations by one kernel call.
* A list that an iteration pushes to, or sets an item of, is one tensor with a row per iteration, and the fused loops write into its
  rows. A list that an iteration pops from, or reads an item of, is read in place.
* A value that is passed on to the next iteration is the next row of a tensor, too.
* The factors of sums over all iterations (loop_sums.py) are tensors already.
* Random numbers are drawn before the loop; if nothing reads them, the generator only moves on.

A loop with other ops in its body runs iteration by iteration. So does one that finds lists or shapes at run time that it is not prepared
for. The results are the same.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import torch

from stoker._src.base import dtypes
from stoker._src.graph import shape_rules
from stoker._src.graph.tensor import Operation
from stoker._src.ops.control_flow.tensor_list_values import TensorList
from stoker._src.ops.support.values import host_value
from stoker._src.runtime.functions.loop_sums import LoopSum
from stoker._src.runtime.plan.emit import Step
from stoker._src.runtime.plan.fused_loops import native
from stoker._src.runtime.plan.instructions import EFFECTS, Host, Instruction, Value, values_of

_MOST_BYTES = 1 << 28  # bytes of all rows of a loop; a larger one runs iteration by iteration
_FIRST_GUESS, _MOST_TRIPS = 64, 1 << 18  # iterations for which the condition is evaluated at once
_TRIPS_AT_ONCE = 64  # iterations after which a loop looks whether its run was cancelled


class _Unfit(Exception):
    """This loop, or this execution of it, does not run natively."""


class _Fixed(NamedTuple):
    """A value that is the same in all iterations: a constant, an input of the loop, or the value of a variable."""

    position: int = -1
    constant: Any = None
    read: Callable[[], Any] | None = None


class _Carried(NamedTuple):
    """A loop variable that each iteration computes from the one before."""

    position: int


class _Computed(NamedTuple):
    """The result of an elementwise op on counters and fixed values."""

    instruction: Instruction
    operands: tuple[Any, ...]


class _Drawn(NamedTuple):
    """Random numbers. `instruction` draws them for one iteration."""

    instruction: Instruction


class _Item(NamedTuple):
    """The item of a list at an index."""

    position: int
    index: Any


class _Popped(NamedTuple):
    """The item that is taken from the end of a list."""

    position: int


class _Length(NamedTuple):
    """The number of items of a list that does not change."""

    source: Any


class _Made(NamedTuple):
    """A result of fused loops."""

    program: int
    output: int


class _Change(NamedTuple):
    """How an iteration changes a list: "push", "pop", "set" (one item) or "add" (to one item)."""

    kind: str
    position: int
    value: Any = None
    index: Any = None


class _Rows(NamedTuple):
    """The values of all iterations: iteration i has row `first + i * step` of the tensor."""

    tensor: torch.Tensor
    first: int
    step: int

    def in_order(self, trips: int) -> torch.Tensor:
        if self.step == 0:
            row = self.tensor[self.first]
            return row.expand(trips, *row.shape)
        if self.step > 0:
            return self.tensor[self.first : self.first + trips]
        return self.tensor[self.first - trips + 1 : self.first + 1].flip(0)


class _Analysis:
    """What each value of a loop's body is. Raises _Unfit if the body has anything that cannot run natively."""

    def __init__(self, body: Step, condition: Step, count: int, sums: list[LoopSum]) -> None:
        planner = body.planner
        self.planner, self.count, self.sums = planner, count, sums
        if planner.writes_variables or planner.blocks or any(each.steps for each in planner.instructions):
            raise _Unfit
        self.what: dict[Value, Any] = {}
        self.programs: list[Any] = []
        self.given: list[list[Any]] = []  # what each program takes
        self.shapes: list[list[tuple[int, ...]]] = []  # the shapes of its results
        self.skipped: list[Instruction] = []  # random numbers that nothing reads
        self.summed = {each.position for each in sums}
        results = planner.results
        for i, value in enumerate(planner.feed_values):
            if value.is_constant:
                self.what[value] = _Fixed(constant=value.constant)
            elif results[i] is value and i not in self.summed:
                self.what[value] = _Fixed(position=i)
            else:
                self.what[value] = _Carried(i)
        for instruction in planner.instructions:
            self._add(instruction)
        self.condition = self._condition_of(condition)
        self.counters: dict[int, int] = {}
        self.states: dict[int, _Made] = {}
        self.changes: dict[int, _Change] = {}
        for i in range(count):
            if i not in self.summed and isinstance(self.what[planner.feed_values[i]], _Carried):
                self._settle(i, results[i])
        self.factors: list[Any] = [self._of(value) for value in results[count:]]
        self.reverse = any(change.kind == "pop" for change in self.changes.values())
        self.kept = {each for each in self.factors if isinstance(each, _Made)}
        self.kept |= {each.value for each in self.changes.values() if isinstance(each.value, _Made)}
        if len(set(self.states.values())) < len(self.states) or not self.programs:
            raise _Unfit
        self._check_reads()

    def _of(self, value: Value | None) -> Any:
        if value is None:
            raise _Unfit
        if value.is_constant:
            return _Fixed(constant=value.constant)
        if value not in self.what:
            raise _Unfit
        return self.what[value]

    def _add(self, instruction: Instruction) -> None:
        if instruction.kind == "fused_loops":
            self._add_program(instruction)
        elif instruction.kind == "read":
            self.what[instruction.results[0]] = _Fixed(read=instruction.arguments[0].constant.read)
        elif instruction.kind != "kernel" or instruction.op is None:
            raise _Unfit
        elif instruction.op.definition.planning.list_role:
            self._add_list_op(instruction, instruction.op)
        elif instruction.op.definition.planning.is_sum and instruction.op.outputs[0].dtype is dtypes.variant:
            self._add_to_list(instruction)
        elif instruction.op.definition.planning.skips is not None:
            if not all(value.is_constant for value in values_of(instruction.arguments)):
                raise _Unfit
            drawn = next(values_of(instruction.results))
            if drawn.last_use > drawn.position:
                self.what[drawn] = _Drawn(instruction)
            else:
                self.skipped.append(instruction)
        else:
            self.what[next(values_of(instruction.results))] = self._computed(instruction, instruction.op)

    def _add_program(self, instruction: Instruction) -> None:
        program = instruction.kernel
        if not isinstance(program, native.Program):
            raise _Unfit
        shapes: list[tuple[int, ...]] = []
        for count, shape, _ in program.output_groups:
            shapes += [tuple(shape if count == 1 else shape[1:])] * count
        for j, value in enumerate(values_of(instruction.results)):
            self.what[value] = _Made(len(self.programs), j)
        self.given.append([self._of(value) for value in instruction.arguments])
        self.programs.append(program)
        self.shapes.append(shapes)

    def _add_list_op(self, instruction: Instruction, op: Operation) -> None:
        role = op.definition.planning.list_role
        made = list(values_of(instruction.results))
        if role == "reserve":
            self.what[made[0]] = None  # only as the list of one item that is added to another (_add_to_list)
            return
        values = list(values_of(instruction.arguments))
        source = self._of(values[0])
        if role == "length" and isinstance(source, _Fixed):
            self.what[made[0]] = _Length(source)
        elif role == "push" and isinstance(source, _Carried):
            self.what[made[0]] = _Change("push", source.position, self._of(values[1]))
        elif role == "pop" and isinstance(source, _Carried):
            self.what[made[0]] = _Change("pop", source.position)
            self.what[made[1]] = _Popped(source.position)
        elif role == "get" and isinstance(source, (_Fixed, _Carried)) and source.position >= 0:
            self.what[made[0]] = _Item(source.position, self._of(values[1]))
        elif role == "set" and (source is None or isinstance(source, _Carried)):
            position = -1 if source is None else source.position
            if op.attr("resize_if_index_out_of_bounds"):
                raise _Unfit
            self.what[made[0]] = _Change("set", position, self._of(values[2]), self._of(values[1]))
        else:
            raise _Unfit

    def _add_to_list(self, instruction: Instruction) -> None:
        """The sum of a list and a list with one item: the gradient of reading the item."""
        parts = [self._of(value) for value in values_of(instruction.arguments)]
        if len(parts) != 2 or not isinstance(parts[0], _Carried):
            raise _Unfit
        added = parts[1]
        if not isinstance(added, _Change) or added.kind != "set" or added.position != -1:
            raise _Unfit
        self.what[next(values_of(instruction.results))] = _Change("add", parts[0].position, added.value, added.index)

    def _computed(self, instruction: Instruction, op: Operation) -> _Computed:
        return _Computed(instruction, tuple(self._operands(instruction, op, self._of)))

    def _operands(self, instruction: Instruction, op: Operation, of: Callable[[Value], Any]) -> list[Any]:
        """What an elementwise op takes that can run for all iterations at once."""
        rule = op.definition.shape_rule.function
        is_unary = rule is shape_rules.unchanged and len(op._inputs) == 1
        if op.definition.traits & EFFECTS or not (is_unary or rule is shape_rules.broadcasting):
            raise _Unfit
        if op.definition.needs_context or any(isinstance(each, list) for each in instruction.arguments):
            raise _Unfit
        if len(list(values_of(instruction.results))) != 1:
            raise _Unfit
        operands = [of(value) for value in values_of(instruction.arguments)]
        allowed = (_Fixed, _Carried, _Computed, _Popped, _Length)
        if not all(isinstance(each, allowed) for each in operands):
            raise _Unfit
        return operands

    def _condition_of(self, condition: Step) -> _Computed | _Fixed:
        what: dict[Value, Any] = {}
        for i, value in enumerate(condition.planner.feed_values):
            if value.is_constant:
                what[value] = _Fixed(constant=value.constant)
            else:
                what[value] = self.what[self.planner.feed_values[i]]

        def of(value: Value) -> Any:
            return _Fixed(constant=value.constant) if value.is_constant else what[value]

        for instruction in condition.planner.instructions:
            if instruction.kind != "kernel" or instruction.op is None:
                raise _Unfit
            operands = self._operands(instruction, instruction.op, of)
            what[next(values_of(instruction.results))] = _Computed(instruction, tuple(operands))
        result = condition.planner.results[0]
        if result is None or not isinstance(of(result), _Computed):
            raise _Unfit
        return of(result)

    def _settle(self, position: int, result: Value | None) -> None:
        """Finds out how a loop variable goes on."""
        what, dtype = self._of(result), self.planner.feeds[position].dtype
        if isinstance(what, _Change):
            if what.position != position or dtype is not dtypes.variant:
                raise _Unfit
            self.changes[position] = what
        elif isinstance(what, _Made) and dtype is dtypes.float32:
            self.states[position] = what
        elif isinstance(what, _Computed) and dtype.is_integer:
            self.counters[position] = self._step_of(position, what)
        else:
            raise _Unfit

    def _step_of(self, position: int, what: _Computed) -> int:
        op = what.instruction.op
        assert op is not None
        sign = op.definition.planning.adds
        if not sign or len(what.operands) != 2:
            raise _Unfit
        variable, step = what.operands
        if sign > 0 and not isinstance(variable, _Carried):
            variable, step = step, variable
        if (
            variable != _Carried(position)
            or not isinstance(step, _Fixed)
            or not isinstance(step.constant, torch.Tensor)
        ):
            raise _Unfit
        if step.constant.ndim:
            raise _Unfit
        return sign * int(step.constant)

    def _check_reads(self) -> None:
        """Checks that counters are counters, that items are read before they are replaced, and that pops have one reader."""
        pending = [*(each for given in self.given for each in given), *self.factors, self.condition]
        pending += [each for change in self.changes.values() for each in (change.value, change.index)]
        seen: set[int] = set()
        while pending:
            each = pending.pop()
            if id(each) in seen or each is None:
                continue
            seen.add(id(each))
            if isinstance(each, _Computed):
                for operand in each.operands:
                    if isinstance(operand, _Carried) and operand.position not in self.counters:
                        raise _Unfit
                pending += each.operands
            elif isinstance(each, _Item):
                change = self.changes.get(each.position)
                if change is not None and (change.kind != "set" or change.index is not each.index):
                    raise _Unfit
                pending.append(each.index)
            elif isinstance(each, _Popped):
                change = self.changes.get(each.position)
                if change is None or change.kind != "pop":
                    raise _Unfit
            elif isinstance(each, _Carried):
                if each.position not in self.counters and each.position not in self.states:
                    raise _Unfit
            elif isinstance(each, _Change):
                raise _Unfit


class NativeLoop:
    """The body of a loop that can run natively. As a function it is one iteration; `run` is the whole loop."""

    def __init__(self, function: Any, analysis: _Analysis) -> None:
        self._function, self._analysis = function, analysis
        self.finish = getattr(function, "finish", None)

    def __call__(self, holding: Any, *values: Any) -> Any:
        return self._function(holding, *values)

    def run(self, values: list[Any], state: Any) -> list[Any] | None:
        """Returns the loop variables after the last iteration; None if this execution must run iteration by iteration."""
        try:
            return _Execution(self._analysis, values, state).results()
        except _Unfit:
            return None


class _Execution:
    """One execution of a loop."""

    def __init__(self, analysis: _Analysis, values: list[Any], state: Any) -> None:
        self.analysis, self.values, self.state = analysis, values, state
        self.trips = self._count()
        if self.trips == 0:
            raise _Unfit
        self._bytes = 0
        self._known: dict[int, Any] = {}
        self._made: dict[_Made, _Rows] = {}
        self._states: dict[int, _Rows] = {}
        self._drawn: list[tuple[torch.Tensor, Instruction]] = []

    # -- values of all iterations --------------------------------------------------------------------------------

    def _count(self) -> int:
        """The number of iterations: the first for which the condition is false."""
        guess = _FIRST_GUESS
        while guess <= _MOST_TRIPS:
            self.trips, self._known = guess, {}
            found, stacked = self._value(self.analysis.condition)
            if not isinstance(found, torch.Tensor) or found.dtype is not torch.bool:
                raise _Unfit
            if not stacked:
                if bool(found):
                    raise _Unfit
                return 0
            if found.shape != (guess,):
                raise _Unfit
            ends = (~found).nonzero()
            if len(ends):
                return int(ends[0])
            guess *= 8
        raise _Unfit

    def _value(self, what: Any) -> tuple[Any, bool]:
        """A value that depends on counters only, and whether it is a stack of the values of all iterations."""
        if isinstance(what, _Fixed):
            return self._fixed(what), False
        known = self._known.get(id(what))
        if known is None:
            known = self._known[id(what)] = self._evaluated(what)
        return known

    def _fixed(self, what: _Fixed) -> Any:
        if what.read is not None:
            return what.read()
        return what.constant if what.position < 0 else self.values[what.position]

    def _evaluated(self, what: Any) -> tuple[Any, bool]:
        if isinstance(what, _Carried):
            start, step = self.values[what.position], self.analysis.counters[what.position]
            if not isinstance(start, torch.Tensor) or start.ndim or start.dtype not in (torch.int32, torch.int64):
                raise _Unfit
            first = int(start)
            if abs(first) + abs(step) * self.trips >= 2**31:
                raise _Unfit
            return torch.arange(self.trips, dtype=start.dtype).mul_(step).add_(first), True
        if isinstance(what, _Length):
            return torch.tensor(self._list(what.source).length(), dtype=torch.int32), False
        if isinstance(what, _Popped):
            rows = self._popped(what.position)
            return rows.in_order(self.trips), True
        assert isinstance(what, _Computed)
        found = [self._value(operand) for operand in what.operands]
        if not all(isinstance(value, torch.Tensor) for value, _ in found):
            raise _Unfit
        rank = max(value.ndim - stacked for value, stacked in found)
        operands = [
            value.reshape(value.shape[0], *(1,) * (rank + 1 - value.ndim), *value.shape[1:]) if stacked else value
            for value, stacked in found
        ]
        arguments = []
        for argument, value in zip(what.instruction.arguments, operands):
            if isinstance(argument, Host):
                if not argument.value.is_constant:
                    raise _Unfit
                arguments.append(host_value(argument.value.constant))
            else:
                arguments.append(value)
        return what.instruction.kernel(*arguments, **what.instruction.keywords), any(stacked for _, stacked in found)

    def _list(self, what: _Fixed) -> TensorList:
        found = self._fixed(what)
        if not isinstance(found, TensorList):
            raise _Unfit
        return found

    def _rows_of(self, position: int) -> torch.Tensor:
        """The items of the list that a loop variable has at the start, as one tensor."""
        key = -1 - position
        if key not in self._known:
            found = self.values[position]
            rows = found.rows() if isinstance(found, TensorList) else None
            if rows is None:
                raise _Unfit
            self._known[key] = rows.contiguous()
        return self._known[key]

    def _popped(self, position: int) -> _Rows:
        rows = self._rows_of(position)
        if rows.shape[0] < self.trips:
            raise _Unfit
        return _Rows(rows, rows.shape[0] - 1, -1)

    def _indices(self, what: Any) -> list[int]:
        """The index of each iteration."""
        found, stacked = self._value(what)
        if not isinstance(found, torch.Tensor) or not stacked or found.ndim != 1 or found.dtype.is_floating_point:
            raise _Unfit
        return found.tolist()

    def _item(self, what: _Item) -> _Rows:
        rows, indices = self._rows_of(what.position), self._indices(what.index)
        if min(indices) < 0 or max(indices) >= rows.shape[0]:
            raise _Unfit  # the op reports it
        step = _step(indices)
        if step:
            return _Rows(rows, indices[0], step)
        key = id(what)
        if key not in self._known:
            self._known[key] = rows.index_select(0, torch.tensor(indices))
        return _Rows(self._known[key], 0, 1)

    def _rows(self, what: Any) -> _Rows:
        if isinstance(what, _Made):
            return self._made[what]
        if isinstance(what, _Carried) and what.position in self._states:
            return self._states[what.position]
        if isinstance(what, _Popped):
            return self._popped(what.position)
        if isinstance(what, _Item):
            return self._item(what)
        if isinstance(what, _Drawn):
            return self._draw(what)
        value, stacked = self._value(what)
        if not isinstance(value, torch.Tensor):
            raise _Unfit
        return _Rows(value.contiguous(), 0, 1) if stacked else _Rows(value.contiguous().unsqueeze(0), 0, 0)

    def _draw(self, what: _Drawn) -> _Rows:
        """Room for random numbers. They are drawn once nothing can fail any more."""
        key = id(what)
        if key not in self._known:
            op = what.instruction.op
            assert op is not None
            shape = self.analysis.planner.shape_of(op.outputs[0])
            if not shape.known or op.outputs[0].dtype is not dtypes.float32:
                raise _Unfit
            self._known[key] = self._room(self.trips, shape.dims or ())  # type: ignore[arg-type]
            self._drawn.append((self._known[key], what.instruction))
        return _Rows(self._known[key], 0, 1)

    # -- the loop ------------------------------------------------------------------------------------------------

    def results(self) -> list[Any]:
        analysis = self.analysis
        self._check_lists()
        self._allocate()
        programs = tuple(analysis.programs)
        moves = tuple(self._moves(k) for k in range(len(programs)))
        for room, instruction in self._drawn:
            numbers = [host_value(argument.value.constant) for argument in instruction.arguments]
            for row in room:
                row.copy_(instruction.kernel(*numbers, **instruction.keywords))
        for instruction in analysis.skipped:
            assert instruction.op is not None and instruction.op.definition.planning.skips is not None
            numbers = [host_value(argument.value.constant) for argument in instruction.arguments]
            instruction.op.definition.planning.skips(self.trips, *numbers, **instruction.keywords)
        for first in range(0, self.trips, _TRIPS_AT_ONCE):
            self.state.check("While")
            native.run_loop(programs, moves, first, min(first + _TRIPS_AT_ONCE, self.trips))
        returned = [self._result(i) for i in range(analysis.count)]
        self._add_sums(returned)
        return returned

    def _check_lists(self) -> None:
        for position, change in self.analysis.changes.items():
            found = self.values[position]
            if not isinstance(found, TensorList):
                raise _Unfit
            if change.kind == "push" and (found.length() or 0 <= found.limit < self.trips):
                raise _Unfit
            if change.kind == "pop" and found.length() < self.trips:
                raise _Unfit
            if change.kind in ("set", "add"):
                indices = self._indices(change.index)
                if min(indices) < 0 or max(indices) >= found.length():
                    raise _Unfit  # the op reports it
                if len(set(indices)) < len(indices):
                    raise _Unfit

    def _room(self, rows: int, shape: tuple[int, ...]) -> torch.Tensor:
        self._bytes += rows * math.prod(shape) * 4
        if self._bytes > _MOST_BYTES:
            raise _Unfit
        return torch.empty((rows, *shape))

    def _allocate(self) -> None:
        analysis, trips = self.analysis, self.trips
        owners = {made: position for position, made in analysis.states.items()}
        step = -1 if analysis.reverse else 1
        for k, shapes in enumerate(analysis.shapes):
            for j, shape in enumerate(shapes):
                made = _Made(k, j)
                position = owners.get(made)
                if position is not None:
                    start = self.values[position]
                    if not isinstance(start, torch.Tensor) or start.shape != shape or start.dtype is not torch.float32:
                        raise _Unfit
                    room = self._room(trips + 1, shape)
                    room[trips if analysis.reverse else 0].copy_(start)
                    self._states[position] = _Rows(room, trips if analysis.reverse else 0, step)
                    self._made[made] = _Rows(room, trips - 1 if analysis.reverse else 1, step)
                elif made in analysis.kept:
                    self._made[made] = _Rows(self._room(trips, shape), trips - 1 if analysis.reverse else 0, step)
                else:
                    self._made[made] = _Rows(self._room(1, shape), 0, 0)

    def _moves(self, k: int) -> bytes:
        """The address of each input and output of a program in the first iteration, and its step in bytes."""
        program = self.analysis.programs[k]
        table: list[int] = []
        for what, shape in zip(self.analysis.given[k], program.input_shapes):
            rows = self._rows(what)
            tensor = rows.tensor
            if (
                tuple(tensor.shape[1:]) != tuple(shape)
                or tensor.dtype not in (torch.float32, torch.bool)
                or tensor.is_cuda
            ):
                raise _Unfit
            table += self._move(rows)
            self._known.setdefault(("kept", k, len(table)), tensor)  # type: ignore[call-overload]
        for j in range(len(self.analysis.shapes[k])):
            table += self._move(self._made[_Made(k, j)])
        return np.asarray(table, np.int64).tobytes()

    @staticmethod
    def _move(rows: _Rows) -> tuple[int, int]:
        size = rows.tensor.stride(0) * rows.tensor.element_size()
        return rows.tensor.data_ptr() + rows.first * size, rows.step * size

    # -- results -------------------------------------------------------------------------------------------------

    def _result(self, position: int) -> Any:
        analysis, start = self.analysis, self.values[position]
        if position in analysis.counters:
            return start + analysis.counters[position] * self.trips
        if position in analysis.states:
            rows = self._made[analysis.states[position]]
            return rows.tensor[rows.first + (self.trips - 1) * rows.step].clone()
        change = analysis.changes.get(position)
        return start if change is None else self._changed(start, change)

    def _changed(self, start: TensorList, change: _Change) -> TensorList:
        if change.kind == "pop":
            rest = start.length() - self.trips
            if rest == 0:
                return start.replaced([])
            return TensorList.of_rows(self._rows_of(change.position)[:rest], start.dtype, start.shape, start.limit)
        rows = self._rows(change.value)
        if change.kind == "push":
            return TensorList.of_rows(rows.in_order(self.trips), start.dtype, start.shape, start.limit)
        indices = self._indices(change.index)
        stack = self._by_index(rows, indices)
        if change.kind == "set" and len(indices) == start.length():
            return TensorList.of_rows(stack, start.dtype, start.shape, start.limit)
        before = start.rows() if change.kind == "add" else None
        if before is not None and before.shape[1:] == stack.shape[1:]:
            total = before.index_add(0, torch.tensor(sorted(indices)), stack)
            return TensorList.of_rows(total, start.dtype, start.shape, start.limit)
        items = list(start.items())
        for i, row in zip(sorted(indices), stack.unbind(0)):
            items[i] = row if change.kind == "set" or items[i] is None else items[i] + row
        return start.replaced(items)

    def _by_index(self, rows: _Rows, indices: list[int]) -> torch.Tensor:
        """The rows of all iterations in the order of their indices, which are distinct."""
        step = _step(indices)
        if step and rows.step == step:
            low = min(rows.first, rows.first + (self.trips - 1) * step)
            return rows.tensor[low : low + self.trips]
        stack = rows.in_order(self.trips)
        if step > 0:
            return stack
        return stack.index_select(0, torch.tensor(sorted(range(self.trips), key=indices.__getitem__)))

    def _add_sums(self, returned: list[Any]) -> None:
        at = 0
        for position, terms in self.analysis.sums:
            total = self.values[position]
            for kernel, inputs in terms:
                rows = [self._rows(what) for what in self.analysis.factors[at : at + len(inputs)]]
                at += len(inputs)
                steps = {each.step for each in rows}
                if len(steps) == 1 and steps <= {1, -1}:  # in which order the terms are added does not matter
                    lows = [min(each.first, each.first + (self.trips - 1) * each.step) for each in rows]
                    stacks = [each.tensor[low : low + self.trips] for each, low in zip(rows, lows)]
                else:
                    stacks = [each.in_order(self.trips) for each in rows]
                total = total + kernel(*[[stack.flatten(0, 1)] for stack in stacks])
            returned[position] = total


def _step(indices: list[int]) -> int:
    """1 or -1 if each index follows the one before in that direction, else 0."""
    for step in (1, -1):
        if indices == list(range(indices[0], indices[0] + step * len(indices), step)):
            return step
    return 0


def native_loop(body: Step, condition: Step, count: int, sums: list[LoopSum], function: Any) -> Any:
    """The body of a loop as a NativeLoop if it can run natively, else `function`."""
    if native is None:
        return function
    try:
        return NativeLoop(function, _Analysis(body, condition, count, sums))
    except _Unfit:
        return function
