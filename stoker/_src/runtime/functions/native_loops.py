"""Loops whose iterations run natively, without Python in between.

The body of a typical loop over a sequence is a few fused loops (runtime/plan/fused_loops.py) and bookkeeping: counters, a condition on
them, items read from lists and items put into lists. Here the bookkeeping is done for all iterations at once, and the fused loops run
in one native call:

* Values that depend only on counters (the condition, a mask by sequence length) are computed for all iterations by one kernel call.
* A list that an iteration pushes to, or sets an item of, is one tensor with a row per iteration, and the fused loops write into its
  rows. A list that an iteration pops from, or reads an item of, is read in place.
* A value that is passed on to the next iteration is the next row of a tensor, too.
* The factors of sums over all iterations (loop_sums.py) are tensors already.
* A variable that the fused loops change is read and changed where it is.
* Random numbers are drawn for all iterations before the loop, and what depends only on them (the mask of a dropout) is computed
  then; if nothing reads them, the generator only moves on.

Which row an iteration reads or writes depends on a few numbers: the counters, the limits of the condition and the lengths of lists. The
layout of an execution is kept and used again when these numbers return.

A loop with other ops in its body runs iteration by iteration. So does one that finds lists or shapes at run time that it is not prepared
for. The results are the same.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
import torch

from stoker._src.base import dtypes
from stoker._src.base.errors import FailedPreconditionError
from stoker._src.ops.control_flow.tensor_list_values import TensorList
from stoker._src.ops.support.values import host_value, torch_dtype
from stoker._src.runtime.functions.loop_analysis import (
    Analysis,
    Carried,
    Change,
    Computed,
    Drawn,
    Fixed,
    Item,
    Length,
    Made,
    Popped,
    Stored,
    Unfit,
    is_random,
)
from stoker._src.runtime.functions.loop_sums import LoopSum
from stoker._src.runtime.plan.emit import Step
from stoker._src.runtime.plan.fused_loops import native
from stoker._src.runtime.plan.instructions import Host, Instruction
from stoker._src.runtime.plan.stores import is_writable

_MOST_BYTES = 1 << 28  # bytes of all rows of a loop; a larger one runs iteration by iteration
_FIRST_GUESS, _MOST_TRIPS = 64, 1 << 18  # iterations for which the condition is evaluated at once
_TRIPS_AT_ONCE = 64  # iterations after which a loop looks whether its run was cancelled
_MOST_LAYOUTS, _MOST_NUMBERS = 64, 1024  # layouts that a loop keeps, and the numbers of a list that one may depend on

# Where the tensors of an execution come from.
_FIXED, _LIST, _GATHERED, _VALUE, _ROOM, _STATE, _STORED = range(7)


class _Place(NamedTuple):
    """The values of all iterations: iteration i has row `first + i * step` of the tensor number `source`."""

    source: int
    first: int
    step: int


class _Source(NamedTuple):
    """A tensor that an execution takes or makes."""

    kind: int
    what: Any
    shape: tuple[int, ...]
    dtype: torch.dtype


class _Evaluator:
    """The values that depend on counters and fixed values only, for all iterations at once."""

    def __init__(self, analysis: Analysis, values: list[Any], trips: int, known: dict[int, tuple[Any, bool]]) -> None:
        self.analysis, self.values, self.trips, self.known = analysis, values, trips, known
        self._rows: dict[int, torch.Tensor] = {}

    def value(self, what: Any) -> tuple[Any, bool]:
        """A value that depends on counters only, and whether it is a stack of the values of all iterations."""
        if isinstance(what, Fixed):
            return self.fixed(what), False
        known = self.known.get(id(what))
        if known is None:
            known = self.known[id(what)] = self._evaluated(what)
        return known

    def fixed(self, what: Fixed) -> Any:
        if what.read is not None:
            try:
                return what.read()
            except FailedPreconditionError:
                raise Unfit from None  # the op reports it
        return what.constant if what.position < 0 else self.values[what.position]

    def _evaluated(self, what: Any) -> tuple[Any, bool]:
        if isinstance(what, Carried):
            start, step = self.values[what.position], self.analysis.counters[what.position]
            if not isinstance(start, torch.Tensor) or start.ndim or start.dtype not in (torch.int32, torch.int64):
                raise Unfit
            first = int(start)
            if abs(first) + abs(step) * self.trips >= 2**31:
                raise Unfit
            return torch.arange(self.trips, dtype=start.dtype).mul_(step).add_(first), True
        if isinstance(what, Length):
            return torch.tensor(self._list(what.source).length(), dtype=torch.int32), False
        if isinstance(what, Popped):
            rows = self.rows_of(what.position)
            return _in_order(rows, rows.shape[0] - 1, -1, self.trips), True
        if not isinstance(what, Computed):
            raise Unfit  # random numbers that are not drawn yet
        found = [self.value(operand) for operand in what.operands]
        if not all(isinstance(value, torch.Tensor) for value, _ in found):
            raise Unfit
        rank = max(value.ndim - stacked for value, stacked in found)
        operands = [
            value.reshape(value.shape[0], *(1,) * (rank + 1 - value.ndim), *value.shape[1:])
            if stacked and value.ndim <= rank
            else value
            for value, stacked in found
        ]
        arguments = []
        for argument, value in zip(what.instruction.arguments, operands):
            if isinstance(argument, Host):
                if not argument.value.is_constant:
                    raise Unfit
                arguments.append(host_value(argument.value.constant))
            else:
                arguments.append(value)
        return what.instruction.kernel(*arguments, **what.instruction.keywords), any(stacked for _, stacked in found)

    def _list(self, what: Fixed) -> TensorList:
        found = self.fixed(what)
        if not isinstance(found, TensorList):
            raise Unfit
        return found

    def rows_of(self, position: int) -> torch.Tensor:
        """The items of the list that a loop variable has at the start, as one tensor."""
        known = self._rows.get(position)
        if known is None:
            found = self.values[position]
            rows = found.rows() if isinstance(found, TensorList) else None
            if rows is None:
                raise Unfit
            known = self._rows[position] = rows.contiguous()
        return known

    def indices(self, what: Any) -> list[int]:
        """The index of each iteration."""
        found, stacked = self.value(what)
        if not isinstance(found, torch.Tensor) or not stacked or found.ndim != 1 or found.dtype.is_floating_point:
            raise Unfit
        return found.tolist()


def _count(analysis: Analysis, values: list[Any]) -> int:
    """The number of iterations: the first for which the condition is false."""
    guess = _FIRST_GUESS
    while guess <= _MOST_TRIPS:
        found, stacked = _Evaluator(analysis, values, guess, {}).value(analysis.condition)
        if not isinstance(found, torch.Tensor) or found.dtype is not torch.bool:
            raise Unfit
        if not stacked:
            if bool(found):
                raise Unfit
            return 0
        if found.shape != (guess,):
            raise Unfit
        ends = (~found).nonzero()
        if len(ends):
            return int(ends[0])
        guess *= 8
    raise Unfit


def _in_order(tensor: torch.Tensor, first: int, step: int, trips: int) -> torch.Tensor:
    """The rows that the iterations have, from the first iteration to the last."""
    if step == 0:
        row = tensor[first]
        return row.expand(trips, *row.shape)
    if step > 0:
        return tensor if first == 0 and tensor.shape[0] == trips else tensor[first : first + trips]
    return tensor[first - trips + 1 : first + 1].flip(0)


def _step(indices: list[int]) -> int:
    """1 or -1 if each index follows the one before in that direction, else 0."""
    for step in (1, -1):
        if indices == list(range(indices[0], indices[0] + step * len(indices), step)):
            return step
    return 0


class _Layout:
    """Which tensors the iterations of an execution read and write, and which rows of them.

    It depends on the numbers that decide about the loop (`_Numbers`) and on the shapes of tensors. Executions for which these are
    the same share it.
    """

    def __init__(self, analysis: Analysis, values: list[Any], wanted: list[bool]) -> None:
        """Finds the layout for the values of one execution. Raises Unfit if it cannot run natively."""
        self.analysis = analysis
        self.trips = _count(analysis, values)
        if self.trips == 0:
            raise Unfit
        self._evaluator = _Evaluator(analysis, values, self.trips, {})
        self._bytes = self._scratch = 0
        self._numbers: dict[int, int] = {}  # the number of a source by what it comes from
        self._places: dict[int, _Place] = {}
        self._made: dict[Made, _Place] = {}
        self._states: dict[int, _Place] = {}
        self.sources: list[_Source] = []
        self.drawn: list[tuple[int, Drawn]] = []
        self.random: list[tuple[int, Computed]] = []  # what is computed from random numbers
        self._indices = {
            id(each.index): self._evaluator.indices(each.index)
            for each in [*analysis.changes.values(), *_items_read(analysis)]
            if each.index is not None
        }
        self.known = dict(self._evaluator.known)  # what depends only on the numbers that decide
        self._check_lists(values)
        self._allocate(values)
        self.which, self.template, self.spans = self._table()
        self.results = [each for i in range(analysis.count) if wanted[i] for each in self._result(i)]
        self.sums = self._sums()
        del self._evaluator, self._numbers, self._places, self._made, self._states, self._indices

    # -- lists and rooms -----------------------------------------------------------------------------------------

    def _check_lists(self, values: list[Any]) -> None:
        for position, change in self.analysis.changes.items():
            found = values[position]
            if not isinstance(found, TensorList):
                raise Unfit
            if change.kind == "push" and (found.length() or 0 <= found.limit < self.trips):
                raise Unfit
            if change.kind == "pop" and found.length() < self.trips:
                raise Unfit
            if change.kind in ("set", "add"):
                indices = self._indices[id(change.index)]
                if min(indices) < 0 or max(indices) >= found.length():
                    raise Unfit  # the op reports it
                if len(set(indices)) < len(indices):
                    raise Unfit

    def _source(self, kind: int, what: Any, shape: tuple[int, ...], dtype: torch.dtype = torch.float32) -> int:
        if kind in (_ROOM, _STATE):
            self._bytes += math.prod(shape) * dtype.itemsize
            if self._bytes > _MOST_BYTES:
                raise Unfit
        self.sources.append(_Source(kind, what, shape, dtype))
        return len(self.sources) - 1

    def _allocate(self, values: list[Any]) -> None:
        analysis, trips = self.analysis, self.trips
        owners = {made: position for position, made in analysis.states.items()}
        step = -1 if analysis.reverse else 1
        for k, shapes in enumerate(analysis.shapes):
            for j, (shape, dtype) in enumerate(shapes):
                made = Made(k, j)
                position = owners.get(made)
                if position is not None:
                    first = trips if analysis.reverse else 0
                    room = self._source(_STATE, (position, first, shape), (trips + 1, *shape), dtype)
                    self._states[position] = _Place(room, first, step)
                    self._made[made] = _Place(room, first + step, step)
                elif made in analysis.kept:
                    room = self._source(_ROOM, None, (trips, *shape), dtype)
                    self._made[made] = _Place(room, trips - 1 if analysis.reverse else 0, step)
                else:
                    self._made[made] = _Place(self._source(_ROOM, None, (1, *shape), dtype), 0, 0)

    # -- where values are ----------------------------------------------------------------------------------------

    def _place(self, what: Any) -> _Place:
        """Where the values of all iterations are."""
        if isinstance(what, Made):
            return self._made[what]
        if isinstance(what, Carried) and what.position in self._states:
            return self._states[what.position]
        known = self._places.get(id(what))
        if known is None:
            known = self._places[id(what)] = self._found(what)
        return known

    def _found(self, what: Any) -> _Place:
        if isinstance(what, Popped):
            number = self._taken(_LIST, what.position, self._evaluator.rows_of(what.position))
            length = self.sources[number].shape[0]
            if length < self.trips:
                raise Unfit
            return _Place(number, length - 1, -1)
        if isinstance(what, Item):
            return self._item(what)
        if is_random(what):
            return self._random(what)
        if isinstance(what, Fixed):
            return _Place(self._taken(_FIXED, what, self._evaluator.fixed(what)), 0, 0)
        if isinstance(what, Stored):
            return _Place(self._taken(_STORED, what.state, what.state.value), 0, 0)
        value, stacked = self._evaluator.value(what)
        return _Place(self._taken(_VALUE, what, value), 0, 1 if stacked else 0)

    def _taken(self, kind: int, what: Any, tensor: Any) -> int:
        if not isinstance(tensor, torch.Tensor) or tensor.is_cuda:
            raise Unfit
        key = -1 - what if kind == _LIST else id(what)
        if key not in self._numbers:
            self._numbers[key] = self._source(kind, what, tuple(tensor.shape), tensor.dtype)
        return self._numbers[key]

    def _item(self, what: Item) -> _Place:
        rows, indices = self._evaluator.rows_of(what.position), self._indices[id(what.index)]
        if min(indices) < 0 or max(indices) >= rows.shape[0]:
            raise Unfit  # the op reports it
        step = _step(indices)
        if step:
            return _Place(self._taken(_LIST, what.position, rows), indices[0], step)
        shape = (self.trips, *rows.shape[1:])
        return _Place(self._source(_GATHERED, (what.position, torch.tensor(indices)), shape, rows.dtype), 0, 1)

    def _random(self, what: Drawn | Computed) -> _Place:
        """Room for random numbers, or for what is computed from them. They are drawn once nothing can fail any more."""
        op = what.instruction.op
        assert op is not None
        shape, dtype = self.analysis.planner.shape_of(op.outputs[0]), op.outputs[0].dtype
        if not shape.known or (isinstance(what, Drawn) and dtype is not dtypes.float32):
            raise Unfit
        dims: tuple[int, ...] = shape.dims  # type: ignore[assignment]
        if isinstance(what, Drawn):
            number = self._source(_ROOM, None, (self.trips, *dims))
            self.drawn.append((number, what))
        else:
            for operand in filter(is_random, what.operands):
                self._place(operand)
            number = self._source(_ROOM, None, (self.trips, *dims), torch_dtype(dtype))
            self.random.append((number, what))
        return _Place(number, 0, 1)

    def _table(self) -> tuple[Any, Any, list[tuple[int, int]]]:
        """For each input and output of the programs: which tensor it is part of, and the offset and the step of its rows in bytes.

        Also returns the part of this table that belongs to each program.
        """
        which: list[int] = []
        template: list[int] = []
        spans = []
        for k, program in enumerate(self.analysis.programs):
            first = len(which)
            places = [self._place(what) for what in self.analysis.given[k]]
            for place, shape, dtype in zip(places, program.input_shapes, program.dtypes):
                if self.sources[place.source].dtype is not dtype or self._row_shape(place) != tuple(shape):
                    raise Unfit
            places += [self._made[Made(k, j)] for j in range(len(self.analysis.shapes[k]))]
            for place in places:
                source = self.sources[place.source]
                size = math.prod(self._row_shape(place)) * source.dtype.itemsize
                which.append(place.source)
                template += (place.first * size, place.step * size)
            spans.append((first * 16, len(which) * 16))
        return np.asarray(which, np.int64), np.asarray(template, np.int64), spans

    def _row_shape(self, place: _Place) -> tuple[int, ...]:
        source = self.sources[place.source]
        is_single = source.kind in (_FIXED, _STORED) or (source.kind == _VALUE and place.step == 0)
        return source.shape if is_single else source.shape[1:]

    # -- results -------------------------------------------------------------------------------------------------

    def _result(self, position: int) -> Iterator[tuple[int, Callable[[_Execution, Any], Any]]]:
        """How the value of a loop variable after the last iteration is found, from an execution and its first value."""
        analysis, trips = self.analysis, self.trips
        if position in analysis.counters:
            total = analysis.counters[position] * trips
            yield position, lambda execution, start: start + total
        elif position in analysis.states:
            number, first, step = self._made[analysis.states[position]]
            last = first + (trips - 1) * step
            yield position, lambda execution, start: execution.tensors[number][last].clone()
        elif position in analysis.ends:
            end = analysis.ends[position]
            yield position, lambda execution, start: execution.evaluator.fixed(end)
        elif position in analysis.changes:
            yield position, self._changed(analysis.changes[position])

    def _changed(self, change: Change) -> Callable[[_Execution, Any], Any]:
        trips = self.trips
        if change.kind == "pop":

            def popped(execution: _Execution, start: TensorList) -> TensorList:
                rest = start.length() - trips
                if rest == 0:
                    return start.replaced([])
                rows = execution.evaluator.rows_of(change.position)[:rest]
                return TensorList.of_rows(rows, start.dtype, start.shape, start.limit)

            return popped
        rows = self._stack(change.value)
        if change.kind == "push":
            return lambda execution, start: TensorList.of_rows(rows(execution), start.dtype, start.shape, start.limit)
        indices = self._indices[id(change.index)]
        stack = self._by_index(change.value, indices)
        if change.kind == "set":
            return lambda execution, start: _with_items(start, indices, stack(execution))
        return lambda execution, start: _with_added(start, indices, stack(execution))

    def _stack(self, what: Any) -> Callable[[_Execution], torch.Tensor]:
        """The rows of all iterations, from the first to the last."""
        number, first, step = self._place(what)
        trips = self.trips
        if self.sources[number].kind == _STORED:
            raise Unfit  # each iteration has another value
        if self.sources[number].kind == _FIXED or (self.sources[number].kind == _VALUE and step == 0):
            return lambda execution: execution.tensors[number].unsqueeze(0).expand(trips, *self.sources[number].shape)
        if id(what) in self.known:  # other executions use it, too
            return lambda execution: execution.tensors[number].clone()
        return lambda execution: _in_order(execution.tensors[number], first, step, trips)

    def _by_index(self, what: Any, indices: list[int]) -> Callable[[_Execution], torch.Tensor]:
        """The rows of all iterations in the order of their indices, which are distinct."""
        trips, step, place = self.trips, _step(indices), self._place(what)
        stack = self._stack(what)
        if step > 0:
            return stack
        if step and place.step == step:
            low = place.first - trips + 1
            return lambda execution: execution.tensors[place.source][low : low + trips]
        order = torch.tensor(sorted(range(trips), key=indices.__getitem__))
        return lambda execution: stack(execution).index_select(0, order)

    def _sums(self) -> list[tuple[int, list[tuple[Any, list[Callable[[_Execution], torch.Tensor]]]]]]:
        """For each accumulating variable, the kernels of its terms and the stacks of factors that they take."""
        found, at = [], 0
        for position, terms in self.analysis.sums:
            settled = []
            for kernel, inputs in terms:
                factors = self.analysis.factors[at : at + len(inputs)]
                at += len(inputs)
                steps = {self._place(what).step for what in factors}
                if len(steps) == 1 and steps <= {-1}:  # in which order the terms are added does not matter
                    settled.append((kernel, [self._from_the_end(what) for what in factors]))
                else:
                    settled.append((kernel, [self._stack(what) for what in factors]))
            found.append((position, settled))
        return found

    def _from_the_end(self, what: Any) -> Callable[[_Execution], torch.Tensor]:
        number, first, _ = self._place(what)
        return lambda execution: execution.tensors[number][first - self.trips + 1 : first + 1]


def _items_read(analysis: Analysis) -> list[Item]:
    return [each for given in [*analysis.given, analysis.factors] for each in given if isinstance(each, Item)] + [
        each.value for each in analysis.changes.values() if isinstance(each.value, Item)
    ]


def _with_items(start: TensorList, indices: list[int], stack: torch.Tensor) -> TensorList:
    """A list with the rows of `stack` at the sorted indices."""
    if len(indices) == start.length():
        return TensorList.of_rows(stack, start.dtype, start.shape, start.limit)
    items = list(start.items())
    for i, row in zip(sorted(indices), stack.unbind(0)):
        items[i] = row
    return start.replaced(items)


def _with_added(start: TensorList, indices: list[int], stack: torch.Tensor) -> TensorList:
    """A list with the rows of `stack` added at the sorted indices."""
    if start.is_blank:
        return _with_items(start, indices, stack)
    before = start.rows()
    if before is not None and before.shape[1:] == stack.shape[1:]:
        if len(indices) == before.shape[0]:
            total = before + stack
        else:
            total = before.index_add(0, torch.tensor(sorted(indices)), stack)
        return TensorList.of_rows(total, start.dtype, start.shape, start.limit)
    items = list(start.items())
    for i, row in zip(sorted(indices), stack.unbind(0)):
        items[i] = row if items[i] is None else items[i] + row
    return start.replaced(items)


class _Execution:
    """One execution of a loop. Raises Unfit if a tensor is not as the layout expects it."""

    def __init__(self, layout: _Layout, values: list[Any]) -> None:
        self.layout, self.values = layout, values
        self.evaluator = _Evaluator(layout.analysis, values, layout.trips, dict(layout.known))
        self.tensors = [self._tensor(*source) for source in layout.sources]

    def _tensor(self, kind: int, what: Any, shape: tuple[int, ...], dtype: torch.dtype) -> torch.Tensor:
        if kind == _ROOM:
            return torch.empty(shape, dtype=dtype)
        if kind == _STATE:
            position, first, row = what
            start = self.values[position]
            if not isinstance(start, torch.Tensor) or start.shape != row or start.dtype is not dtype:
                raise Unfit
            room = torch.empty(shape, dtype=dtype)
            room[first].copy_(start)
            return room
        if kind == _STORED:
            if what.value is None or what.value.shape != shape or not is_writable(what.value):
                raise Unfit
            return what.value
        if kind == _FIXED:
            found = self.evaluator.fixed(what)
        elif kind == _LIST:
            found = self.evaluator.rows_of(what)
        elif kind == _GATHERED:
            position, indices = what
            found = self.evaluator.rows_of(position).index_select(0, indices)
        else:
            found = self.evaluator.value(what)[0]
        if not isinstance(found, torch.Tensor) or found.shape != shape or found.dtype is not dtype:
            raise Unfit
        return found.contiguous()

    def run(self, state: Any) -> list[Any] | None:
        """Returns the loop variables after the last iteration; None if an iteration must run by the ops' own kernels."""
        layout = self.layout
        analysis, trips = layout.analysis, layout.trips
        table = layout.template.copy()
        table[::2] += np.asarray([tensor.data_ptr() for tensor in self.tensors], np.int64)[layout.which]
        addresses = table.tobytes()
        moves = tuple(addresses[begin:end] for begin, end in layout.spans)
        for number, drawn in layout.drawn:
            self.tensors[number].copy_(_repeated(drawn.instruction, trips, wanted=True))
            self.evaluator.known[id(drawn)] = self.tensors[number], True
        for number, computed in layout.random:
            self.tensors[number].copy_(self.evaluator.value(computed)[0])
        for instruction in analysis.skipped:
            _repeated(instruction, trips, wanted=False)
        before = [(each, each.read().clone()) for each in analysis.stored.values()] if analysis.may_refuse else []
        programs = tuple(analysis.programs)
        for first in range(0, trips, _TRIPS_AT_ONCE):
            state.check("While")
            if not native.run_loop(programs, moves, first, min(first + _TRIPS_AT_ONCE, trips)):
                for each, value in before:
                    each.assign(value)
                return None
        returned = list(self.values)
        for position, result in layout.results:
            returned[position] = result(self, self.values[position])
        for position, terms in layout.sums:
            total = self.values[position]
            for kernel, stacks in terms:
                total = total + kernel(*[[stack(self).flatten(0, 1)] for stack in stacks])
            returned[position] = total
        return returned


def _repeated(instruction: Instruction, trips: int, *, wanted: bool) -> Any:
    """The random numbers that an instruction draws in all iterations."""
    assert instruction.op is not None and instruction.op.definition.planning.repeats is not None
    numbers = [host_value(argument.value.constant) for argument in instruction.arguments]
    return instruction.op.definition.planning.repeats(trips, *numbers, wanted=wanted, **instruction.keywords)


class _Numbers:
    """The numbers that decide about the layout of an execution: what the condition and the indices depend on, the lengths of lists."""

    def __init__(self, analysis: Analysis) -> None:
        pending = [analysis.condition, *(each.index for each in analysis.changes.values())]
        pending += [each.index for each in _items_read(analysis)]
        self._numbers: set[int] = set()  # loop variables that are numbers
        self._reads: list[Callable[[], Any]] = []  # variables that are numbers
        self._popped: set[int] = set()  # lists of numbers
        self._lists = set(analysis.changes) | {each.position for each in _items_read(analysis)}
        while pending:
            what = pending.pop()
            if isinstance(what, Computed):
                pending += what.operands
            elif isinstance(what, Carried) or (isinstance(what, Fixed) and what.position >= 0):
                self._numbers.add(what.position)
            elif isinstance(what, Fixed) and what.read is not None:
                self._reads.append(what.read)
            elif isinstance(what, Popped):
                self._popped.add(what.position)
            elif isinstance(what, Length) and what.source.position >= 0:
                self._lists.add(what.source.position)

    def key(self, values: list[Any]) -> Any:
        """A key for layouts; None if there are too many numbers."""
        parts: list[Any] = []
        found = [values[position] for position in self._numbers]
        if self._reads:
            found += [read() for read in self._reads]
        for value in found:
            if not isinstance(value, torch.Tensor) or value.ndim or value.dtype not in (torch.int32, torch.int64):
                return None
            parts.append(value.item())
        for position in self._lists:
            value = values[position]
            if not isinstance(value, TensorList):
                return None
            parts += (value.length(), value.limit)
        for position in self._popped:
            value = values[position]
            rows = value.rows() if isinstance(value, TensorList) else None
            if rows is None or rows.ndim != 1 or rows.numel() > _MOST_NUMBERS or rows.dtype is torch.bfloat16:
                return None
            parts.append(rows.numpy().tobytes())
        return tuple(parts)


class NativeLoop:
    """The body of a loop that can run natively. As a function it is one iteration; `run` is the whole loop."""

    def __init__(self, function: Any, analysis: Analysis, wanted: list[bool]) -> None:
        self._function, self._analysis, self._wanted = function, analysis, wanted
        self._numbers = _Numbers(analysis)
        self._layouts: dict[Any, _Layout] = {}
        self.finish = getattr(function, "finish", None)

    def __call__(self, holding: Any, *values: Any) -> Any:
        return self._function(holding, *values)

    def run(self, values: list[Any], state: Any) -> list[Any] | None:
        """Returns the loop variables after the last iteration; None if this execution must run iteration by iteration.

        A variable that the loop's caller does not want keeps its first value.
        """
        key = self._numbers.key(values)
        layout = None if key is None else self._layouts.get(key)
        try:
            if layout is not None:
                try:
                    return _Execution(layout, values).run(state)
                except Unfit:
                    pass  # the shapes have changed
            layout = _Layout(self._analysis, values, self._wanted)
            execution = _Execution(layout, values)
        except Unfit:
            return None
        if key is not None:
            if len(self._layouts) >= _MOST_LAYOUTS:
                self._layouts.clear()
            self._layouts[key] = layout
        return execution.run(state)


def native_loop(body: Step, condition: Step, count: int, wanted: list[bool], sums: list[LoopSum], function: Any) -> Any:
    """The body of a loop as a NativeLoop if it can run natively, else `function`."""
    if native is None:
        return function
    try:
        return NativeLoop(function, Analysis(body, condition, count, sums), wanted)
    except Unfit:
        return function
