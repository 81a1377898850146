"""What each value of a loop's body is, for loops whose iterations run natively (native_loops.py)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import torch

from stoker._src.base import dtypes
from stoker._src.graph import shape_rules
from stoker._src.graph.tensor import Operation
from stoker._src.ops.variables.state_ops import VariableState
from stoker._src.runtime.functions.loop_sums import LoopSum
from stoker._src.runtime.plan.emit import Step
from stoker._src.runtime.plan.fused_loops import native
from stoker._src.runtime.plan.instructions import EFFECTS, Instruction, Value, values_of
from stoker._src.runtime.plan.overlays import Overlaid
from stoker._src.runtime.plan.stores import Storing, read


class Unfit(Exception):
    """This loop, or this execution of it, does not run natively."""


class Fixed(NamedTuple):
    """A value that is the same in all iterations: a constant, an input of the loop, or the value of a variable."""

    position: int = -1
    constant: Any = None
    read: Callable[[], Any] | None = None


class Stored(NamedTuple):
    """The value of a variable that the fused loops change where it is."""

    state: VariableState


class Carried(NamedTuple):
    """A loop variable that each iteration computes from the one before."""

    position: int


class Computed(NamedTuple):
    """The result of an elementwise op on counters, fixed values and random numbers."""

    instruction: Instruction
    operands: tuple[Any, ...]


class Drawn(NamedTuple):
    """Random numbers. `instruction` draws them for one iteration."""

    instruction: Instruction


def is_random(what: Any) -> bool:
    """Whether a value depends on random numbers, so that it is known only once they are drawn."""
    return isinstance(what, Drawn) or (isinstance(what, Computed) and any(map(is_random, what.operands)))


class Item(NamedTuple):
    """The item of a list at an index."""

    position: int
    index: Any


class Popped(NamedTuple):
    """The item that is taken from the end of a list."""

    position: int


class Length(NamedTuple):
    """The number of items of a list that does not change."""

    source: Any


class Made(NamedTuple):
    """A result of fused loops."""

    program: int
    output: int


class Change(NamedTuple):
    """How an iteration changes a list: "push", "pop", "set" (one item) or "add" (to one item)."""

    kind: str
    position: int
    value: Any = None
    index: Any = None


class Analysis:
    """What each value of a loop's body is. Raises Unfit if the body has anything that cannot run natively."""

    def __init__(self, body: Step, condition: Step, count: int, sums: list[LoopSum]) -> None:
        planner = body.planner
        self.planner, self.count, self.sums = planner, count, sums
        if planner.blocks or any(each.steps for each in planner.instructions):
            raise Unfit
        self.stored = {  # the variables that the fused loops change, by the ids of their states
            id(state): state
            for each in planner.instructions
            if isinstance(each.kernel, Storing)
            for state in each.kernel.given(each.arguments)
            if isinstance(state, VariableState)
        }
        self.what: dict[Value, Any] = {}
        self.programs: list[Any] = []
        self.given: list[list[Any]] = []  # what each program takes
        self.shapes: list[list[tuple[tuple[int, ...], torch.dtype]]] = []  # the shapes and dtypes of its results
        self.skipped: list[Instruction] = []  # random numbers that nothing reads
        self.summed = {each.position for each in sums}
        results = planner.results
        for i, value in enumerate(planner.feed_values):
            if value.is_constant:
                self.what[value] = Fixed(constant=value.constant)
            elif results[i] is value and i not in self.summed:
                self.what[value] = Fixed(position=i)
            else:
                self.what[value] = Carried(i)
        for instruction in planner.instructions:
            self._add(instruction)
        self.condition = self._condition_of(condition)
        self.counters: dict[int, int] = {}
        self.states: dict[int, Made] = {}
        self.changes: dict[int, Change] = {}
        self.ends: dict[int, Fixed] = {}  # loop variables that every iteration gives the same value
        for i in range(count):
            if i not in self.summed and isinstance(self.what[planner.feed_values[i]], Carried):
                self._settle(i, results[i])
        self.factors: list[Any] = [self._of(value) for value in results[count:]]
        self.reverse = any(change.kind == "pop" for change in self.changes.values())
        self.kept = {each for each in self.factors if isinstance(each, Made)}
        self.kept |= {each.value for each in self.changes.values() if isinstance(each.value, Made)}
        if len(set(self.states.values())) < len(self.states) or not self.programs:
            raise Unfit
        draws = bool(self.skipped) or any(isinstance(each, Drawn) for each in self.what.values())
        if draws and self.may_refuse:
            raise Unfit  # the iterations could not run again with the same random numbers
        self._check_reads()

    @property
    def may_refuse(self) -> bool:
        """Whether there are inputs for which an iteration must run by the ops' own kernels."""
        return any(program.may_refuse for program in self.programs)

    def _of(self, value: Value | None) -> Any:
        if value is None:
            raise Unfit
        if value.is_constant:
            return Fixed(constant=value.constant)
        if value not in self.what:
            raise Unfit
        return self.what[value]

    def _add(self, instruction: Instruction) -> None:
        if instruction.kind == "fused_loops":
            self._add_program(instruction)
        elif (state := read(instruction)) is not None:
            if id(state) in self.stored and instruction.copies:
                raise Unfit  # the value before the update
            self.what[next(values_of(instruction.results))] = self._value_of(state)
        elif instruction.kind != "kernel" or instruction.op is None:
            raise Unfit
        elif instruction.op.definition.planning.list_role:
            self._add_list_op(instruction, instruction.op)
        elif instruction.op.definition.planning.is_sum and instruction.op.outputs[0].dtype is dtypes.variant:
            self._add_to_list(instruction)
        elif instruction.op.definition.planning.repeats is not None:
            if not all(value.is_constant for value in values_of(instruction.arguments)):
                raise Unfit
            drawn = next(values_of(instruction.results))
            if drawn.last_use > drawn.position:
                self.what[drawn] = Drawn(instruction)
            else:
                self.skipped.append(instruction)
        else:
            self.what[next(values_of(instruction.results))] = self._computed(instruction, instruction.op)

    def _add_program(self, instruction: Instruction) -> None:
        program, arguments = instruction.kernel, instruction.arguments
        if isinstance(program, Overlaid):
            program = program.program
        if isinstance(program, Storing):
            arguments, program = program.given(arguments), program.program
        if not isinstance(program, native.Program):
            raise Unfit
        shapes: list[tuple[int, ...]] = []
        for count, shape, *_ in program.output_groups:
            shapes += [tuple(shape if count == 1 else shape[1:])] * count
        for j, value in enumerate(values_of(instruction.results)):
            self.what[value] = Made(len(self.programs), j)
        self.given.append([self._value_of(v) if isinstance(v, VariableState) else self._of(v) for v in arguments])
        self.programs.append(program)
        self.shapes.append(list(zip(shapes, program.dtypes[len(program.input_shapes) :])))

    def _value_of(self, state: VariableState) -> Fixed | Stored:
        return Stored(state) if id(state) in self.stored else Fixed(read=state.read)

    def _add_list_op(self, instruction: Instruction, op: Operation) -> None:
        role = op.definition.planning.list_role
        made = list(values_of(instruction.results))
        if role == "reserve":
            self.what[made[0]] = None  # only as the list of one item that is added to another (_add_to_list)
            return
        values = list(values_of(instruction.arguments))
        source = self._of(values[0])
        if role == "length" and isinstance(source, Fixed):
            self.what[made[0]] = Length(source)
        elif role == "push" and isinstance(source, Carried):
            self.what[made[0]] = Change("push", source.position, self._of(values[1]))
        elif role == "pop" and isinstance(source, Carried):
            self.what[made[0]] = Change("pop", source.position)
            self.what[made[1]] = Popped(source.position)
        elif role == "get" and isinstance(source, (Fixed, Carried)) and source.position >= 0:
            self.what[made[0]] = Item(source.position, self._index_of(values[1]))
        elif role == "set" and (source is None or isinstance(source, Carried)):
            position = -1 if source is None else source.position
            if op.attr("resize_if_index_out_of_bounds"):
                raise Unfit
            self.what[made[0]] = Change("set", position, self._of(values[2]), self._index_of(values[1]))
        else:
            raise Unfit

    def _index_of(self, value: Value) -> Any:
        """An index, which must be known before the iterations run."""
        what = self._of(value)
        if isinstance(what, Made) or is_random(what):
            raise Unfit
        return what

    def _add_to_list(self, instruction: Instruction) -> None:
        """The sum of a list and a list with one item: the gradient of reading the item."""
        parts = [self._of(value) for value in values_of(instruction.arguments)]
        if len(parts) != 2 or not isinstance(parts[0], Carried):
            raise Unfit
        added = parts[1]
        if not isinstance(added, Change) or added.kind != "set" or added.position != -1:
            raise Unfit
        self.what[next(values_of(instruction.results))] = Change("add", parts[0].position, added.value, added.index)

    def _computed(self, instruction: Instruction, op: Operation) -> Computed:
        return Computed(instruction, tuple(self._operands(instruction, op, self._of)))

    def _operands(self, instruction: Instruction, op: Operation, of: Callable[[Value], Any]) -> list[Any]:
        """What an elementwise op takes that can run for all iterations at once."""
        rule = op.definition.shape_rule.function
        is_unary = rule is shape_rules.unchanged and len(op._inputs) == 1
        if op.definition.traits & EFFECTS or not (is_unary or rule is shape_rules.broadcasting):
            raise Unfit
        if op.definition.needs_context or any(isinstance(each, list) for each in instruction.arguments):
            raise Unfit
        if len(list(values_of(instruction.results))) != 1:
            raise Unfit
        operands = [of(value) for value in values_of(instruction.arguments)]
        allowed = (Fixed, Carried, Computed, Popped, Length, Drawn)
        if not all(isinstance(each, allowed) for each in operands):
            raise Unfit
        return operands

    def _condition_of(self, condition: Step) -> Computed | Fixed:
        what: dict[Value, Any] = {}
        for i, value in enumerate(condition.planner.feed_values):
            if value.is_constant:
                what[value] = Fixed(constant=value.constant)
            else:
                what[value] = self.what[self.planner.feed_values[i]]

        def of(value: Value) -> Any:
            return Fixed(constant=value.constant) if value.is_constant else what[value]

        for instruction in condition.planner.instructions:
            if instruction.kind != "kernel" or instruction.op is None:
                raise Unfit
            operands = self._operands(instruction, instruction.op, of)
            what[next(values_of(instruction.results))] = Computed(instruction, tuple(operands))
        result = condition.planner.results[0]
        if result is None or not isinstance(of(result), Computed):
            raise Unfit
        return of(result)

    def _settle(self, position: int, result: Value | None) -> None:
        """Finds out how a loop variable goes on."""
        what, dtype = self._of(result), self.planner.feeds[position].dtype
        if isinstance(what, Change):
            if what.position != position or dtype is not dtypes.variant:
                raise Unfit
            self.changes[position] = what
        elif isinstance(what, Made) and dtype in (dtypes.float32, dtypes.float64, dtypes.int32, dtypes.int64):
            self.states[position] = what
        elif isinstance(what, Fixed):
            self.ends[position] = what
        elif isinstance(what, Computed) and dtype.is_integer:
            self.counters[position] = self._step_of(position, what)
        else:
            raise Unfit

    def _step_of(self, position: int, what: Computed) -> int:
        op = what.instruction.op
        assert op is not None
        sign = op.definition.planning.adds
        if not sign or len(what.operands) != 2:
            raise Unfit
        variable, step = what.operands
        if sign > 0 and not isinstance(variable, Carried):
            variable, step = step, variable
        if variable != Carried(position) or not isinstance(step, Fixed) or not isinstance(step.constant, torch.Tensor):
            raise Unfit
        if step.constant.ndim:
            raise Unfit
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
            if isinstance(each, Computed):
                for operand in each.operands:
                    if isinstance(operand, Carried) and operand.position not in self.counters:
                        raise Unfit
                pending += each.operands
            elif isinstance(each, Item):
                change = self.changes.get(each.position)
                if change is not None and (change.kind != "set" or change.index is not each.index):
                    raise Unfit
                pending.append(each.index)
            elif isinstance(each, Popped):
                change = self.changes.get(each.position)
                if change is None or change.kind != "pop":
                    raise Unfit
            elif isinstance(each, Carried):
                if each.position not in self.counters and each.position not in self.states:
                    raise Unfit
            elif isinstance(each, Change):
                raise Unfit
