"""Divides a plan for a GPU into a part before the device's work, the device's work, and a part after it.

The middle part can be recorded as a CUDA graph (cuda_graphs.py), because nothing in it depends on the host while it runs. The part before
holds what only the host can do and the device waits for: dequeuing, random numbers, counters, strings, and the integers that decide
about loops, branches and sizes. The part after holds what waits for the device's results: summaries, assertions about data,
Python functions. Numbers that the device's part needs on the host are computed before it; a recording holds for one set of them.

If the device goes on with what the host makes of its results (a reward that NumPy computes in the middle of a step; the choice of a branch that
updates variables if all gradients are finite), the part after is divided again, into what the host does first, the device's second part, and so on.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from typing import Any

import torch

from stoker._src.base import dtypes
from stoker._src.base.devices import DeviceSpec
from stoker._src.graph.definition import Trait
from stoker._src.graph.tensor import Operation
from stoker._src.ops.support import device_checks
from stoker._src.ops.support.moving import moved_to
from stoker._src.ops.variables.state_ops import VariableState
from stoker._src.runtime.plan.emit import Step, emit
from stoker._src.runtime.plan.gpu import fused_kernels
from stoker._src.runtime.plan.instructions import (
    EFFECTS,
    FEED,
    Host,
    Instruction,
    Value,
    renumber,
    values_of,
    with_values,
)
from stoker._src.runtime.plan.planner import Planner

BEFORE, DEVICE, AFTER = range(3)
_MOST_SELECTED = 100  # instructions of a branch that may run in vain
_MOST_PARTS = 8  # of the device's work
_WORTH_A_PART = 4  # instructions that wait for the host, for the device to run them
_KINDS = ("kernel", "read", "batch", "fused_loops")


class Obstacle(Exception):
    """A plan cannot be divided. The message says why."""


def _name(instruction: Instruction) -> str:
    op = instruction.op
    return "an instruction" if op is None else f"{op.name} ({op.type})"


def _states(instruction: Instruction) -> list[Any]:
    """Returns the resources that an instruction takes. An iterator of the host may be known only when the step runs: then it is the value.

    Raises:
        Obstacle: another resource is only known when the step runs.
    """
    handles = [value for value in values_of(instruction.arguments) if value.handle]
    if not all(value.is_constant for value in handles) and not instruction.traits & Trait.BLOCKING:
        raise Obstacle(f"{_name(instruction)} takes a resource that is not known in advance")
    return [value.constant if value.is_constant else value for value in handles]


def _numbers(instruction: Instruction) -> Iterator[Value]:
    """Returns the values that the kernel takes as plain numbers."""
    op = instruction.op
    also = frozenset() if op is None else op.definition.planning.device_numbers
    names = [] if op is None else [arg.name for arg in op.definition.inputs]
    for position, argument in enumerate(instruction.arguments):
        if also and position < len(names) and names[position] in also:
            continue
        yield from _hosts(argument)


def _hosts(argument: Any) -> Iterator[Value]:
    if isinstance(argument, list):
        for item in argument:
            yield from _hosts(item)
    elif isinstance(argument, Host) and not argument.value.is_constant:
        yield argument.value


def _data(instruction: Instruction) -> list[Value]:
    """Returns the values that an instruction takes, apart from constants and resources."""
    return [value for value in values_of(instruction.arguments) if not value.is_constant and not value.handle]


def _indices_at(op: Any) -> int:
    """Returns the position of a sparse update's indices."""
    return next(i for i, arg in enumerate(op.definition.inputs) if arg.name == "indices")


def _is_string(tensor: Any) -> bool:
    return tensor.dtype.base_dtype is dtypes.string


class Division:
    """The three parts of one plan, of which the last may be divided again (`rest`).

    Called by the planner to arrange its instructions; `emit` then compiles the parts.
    """

    def __init__(self, device: torch.device, number: int = 0) -> None:
        """`number` is how many parts of the device's work come before."""
        self._gpu, self._number = device, number
        self.rest: Division | None = None
        # What the part before takes: the plan's feeds and, for a rest, what the parts before made.
        self.given: list[Value] = []
        self._place: dict[int, int] = {}  # by the id of an instruction
        self._makers: dict[Value, Instruction] = {}
        self._available: set[Value] = set()  # values that the host can compute without the device
        self._of_data: set[Value] = set()  # those that depend on feeds of floating-point numbers
        self._of_host: set[int] = (
            set()
        )  # ids of instructions of the device's part that run on host tensors while it is recorded
        self._asked: set[Value] = set()
        self._added: dict[int, list[Instruction]] = {}  # the instruction that computes the size for another
        self._wanted: dict[int, set[int]] = {}  # the outputs of a call that the host needs
        self.variables: list[VariableState] = []  # on the device
        self.inputs: list[Value] = []  # what the device's part takes as tensors
        self.numbers: list[Value] = []  # what it takes as numbers
        self.made: list[Value] = []  # what the part before hands on
        self.outputs: list[Value] = []  # what the device's part hands on
        self.staying: frozenset[int] = frozenset()  # positions of outputs that only the device goes on with
        self.counts = (0, 0, 0)
        # For what waits for the host: variables of the device that it reads or changes, and whether the device goes on with it.
        self._read_late: set[int] = set()
        self._changed_late: set[int] = set()
        self._late_work = 0
        self._needs_rest = False

    # -- the parts -----------------------------------------------------------------------------------------------

    def __call__(self, planner: Planner) -> list[Instruction]:
        """Returns the instructions of a plan, those before the device's work first, and those after it last.

        Raises:
            Obstacle: the device's work needs something from the host that depends on the device's work.
        """
        feeds = {value: _is_device_data(each) for value, each in zip(planner.feed_values, planner.feeds)}
        ordered = self._divide(planner, {value: is_data for value, is_data in feeds.items() if not value.handle})
        self._hand_on(planner.feed_values)
        renumber(ordered)
        return ordered

    def _hand_on(self, given: list[Value]) -> None:
        self.given = given
        if self.rest is not None:
            self.rest._hand_on([*given, *self.made, *self.outputs])

    def _divide(self, planner: Planner, given: dict[Value, bool]) -> list[Instruction]:
        """`given` are the values that exist before, and whether they are floating-point numbers, which do not decide."""
        self._available = set(given)
        self._of_data = {value for value, is_data in given.items() if is_data}
        self._makers = {value: each for each in planner.instructions for value in values_of(each.results)}
        self._assign_places(planner)
        instructions = [new for each in planner.instructions for new in (*self._added.get(id(each), ()), each)]
        for each in instructions:
            if self._place[id(each)] == BEFORE or self._has_sizes_from_data(planner, each):
                self._to_host(each)
        for each in instructions:
            if self._place[id(each)] == DEVICE:
                self._ask_for_numbers(each)
        parts: list[list[Instruction]] = [[], [], []]
        for each in instructions:
            parts[self._place[id(each)]].append(each)
        if self._needs_rest or self._late_work >= _WORTH_A_PART:
            parts[AFTER] = self._divide_again(planner, parts, given)
        parts[DEVICE] = _with_settlements(self._used(parts[DEVICE], parts[AFTER], planner.results))
        self._connect(planner, parts)
        if planner.compile_function.fuses_kernels:
            parts[DEVICE] = fused_kernels.form(
                parts[DEVICE], self.outputs, planner.shape_of, planner.compile_function.placement, self._of_host
            )
        self.counts = len(parts[0]), len(parts[1]), len(parts[2])
        return [each for part in parts for each in part]

    def _divide_again(
        self, planner: Planner, parts: list[list[Instruction]], given: dict[Value, bool]
    ) -> list[Instruction]:
        """Divides what comes after the device's first part, and returns its instructions in order."""
        before, device, after = parts
        if self._number + 1 >= _MOST_PARTS or not device:
            raise Obstacle("device and host wait for each other too often")
        after = _with_own_reads(device, after)
        rest = copy.copy(planner)
        rest.instructions, rest.ops = after, [op for each in after for op in (each.op, *each.members) if op is not None]
        # What the host made before can decide as its feeds can.
        made = {**given, **{value: False for each in before for value in values_of(each.results)}}
        for each in device:
            results = list(values_of(each.results))
            tensors = [] if each.op is None or each.kind == "read" else each.op.outputs
            known = len(tensors) == len(results)
            made.update(zip(results, map(_is_device_data, tensors)) if known else dict.fromkeys(results, True))
            lists = {value for value, tensor in zip(results, tensors) if tensor.dtype.base_dtype is dtypes.variant}
            if not lists.isdisjoint(value for other in after for value in _data(other)):
                raise Obstacle(f"{_name(each)} makes a list that waits for the host")
        rest.feed_values = list(made)
        self.rest = type(self)(self._gpu, self._number + 1)
        return self.rest._divide(rest, made)

    def _assign_places(self, planner: Planner) -> None:
        late: set[Value] = set()  # results of the part after
        touched: set[int] = set()  # variables of the host that the part after uses
        seen: dict[int, VariableState] = {}
        updated = planner.behind([op for op in planner.ops if op.definition.traits & Trait.WRITES])
        waiting: set[Operation] = set()  # ops behind an effect of the part after
        refusing: list[Operation] = []  # of the device's part
        for each in planner.instructions:
            self._know_sizes(each)
            self._prepare(planner, each)
            states = _states(each)
            only_host = self._is_of_host(each, states) or self._is_refusal_of_host(each)
            on_device = [state for state in states if self._is_here(state)]
            given = _data(each)
            inner = list(self._checked_bodies(each)) if each.steps else []
            seen.update((id(state), state) for state in (*inner, *on_device))
            used = {id(state) for state in (*inner, *on_device)}
            changes = bool(each.traits & Trait.WRITES or each.written)
            waits = any(value in late for value in given) or not used.isdisjoint(self._changed_late)
            waits = waits or (changes and not used.isdisjoint(self._read_late))
            waits = waits or (bool(each.steps) and self._is_decided_late(each))
            if only_host:
                waits = waits or not all(value in self._available for value in given)
                waits = waits or any(id(state) in touched for state in states) or each.op in waiting
                # What other runs can see must not happen before the updates that it waits for.
                seen_outside = each.blocking or not all(isinstance(state, VariableState) for state in states)
                waits = waits or (seen_outside and each.op in updated)
                if refusing and each.traits & Trait.WRITES:  # a step that is refused does not count
                    waits = waits or each.op in planner.behind(refusing)
                if waits and on_device:
                    raise Obstacle(f"{_name(each)} writes to a variable on the device, but waits for the host")
                if waits and any(isinstance(state, Value) for state in states):
                    raise Obstacle(f"{_name(each)} takes a resource that is not known in advance")
                if waits:
                    touched.update(id(state) for state in states)
                    if each.traits & EFFECTS and each.op is not None:
                        waiting |= planner.behind([each.op])
                place = AFTER if waits else BEFORE
            elif waits or self._ends_the_devices_work(planner, each, on_device):
                place = AFTER
                (self._changed_late if changes else self._read_late).update(used)
                self._needs_rest |= bool(used or each.steps)
                self._late_work += waits and any(map(_is_device_data, each.op.outputs if each.op is not None else ()))
            else:
                place = DEVICE
            self._place[id(each)] = place
            if place == DEVICE and each.op is not None and _any(each, _refuses):
                refusing.append(each.op)
            results = list(values_of(each.results))
            if place == AFTER:
                late.update(results)
            elif not each.steps and not on_device and all(value in self._available for value in given):
                tensors = each.op.outputs if each.kind != "read" and each.op is not None else ()
                if not any(tensor.dtype.base_dtype is dtypes.variant for tensor in tensors):
                    self._available.update(results)
                    if not self._of_data.isdisjoint(given):
                        self._of_data.update(results)
        self.variables = list(seen.values())

    def _know_sizes(self, instruction: Instruction) -> None:
        """Exchanges a kernel whose result has a size that only the data tells, if the host can compute the size before."""
        op = instruction.op
        if op is None or instruction.kind not in ("kernel", "batch"):
            return
        facets = op.definition.planning
        if facets.on_distinct is not None:
            if all(map(self._is_distinct, values_of([instruction.arguments[_indices_at(op)]]))):
                instruction.kernel = facets.on_distinct[instruction.kind == "batch"]
        elif facets.sized is not None and instruction.kernel is op.definition.kernel_fn:
            position, size_of, kernel = facets.sized
            given = instruction.arguments[position]
            if given in self._available:
                size = Value(f"{given.label}_size_{self._number}_{len(self._added)}", -1)
                added = Instruction(op, "kernel", size_of, [given], results=[size])
                self._added[id(instruction)] = [added]
                self._place[id(added)] = BEFORE
                self._makers[size] = added
                self._available.add(size)
                instruction.kernel, instruction.arguments = kernel, [*instruction.arguments, Host(size)]

    def _prepare(self, planner: Planner, instruction: Instruction) -> None:
        """Lets the host look at the numbers that a kernel would look at, if it can before the device's work."""
        op = instruction.op
        prepares = None if op is None else op.definition.planning.prepares
        if op is None or prepares is None or instruction.kernel is not op.definition.kernel_fn:
            return
        found = prepares(op, planner.shape_of)
        given = dict(zip([arg.name for arg in op.definition.inputs], instruction.arguments))
        if found is None:
            return
        taken = [given[name] for name in found.takes]
        if not all(value.is_constant or value in self._available for value in values_of(taken)):
            return
        made = [Value(f"{op.type}_prepared_{self._number}_{len(self._added)}_{i}", -1) for i in range(found.count)]
        added = Instruction(op, "many", found.prepare, taken, results=made)
        self._added[id(instruction)] = [added]
        self._place[id(added)] = BEFORE
        for value in made:
            self._makers[value] = added
            self._available.add(value)
        instruction.kernel, instruction.arguments = found.kernel, [*(given[name] for name in found.keeps), *made]

    def _is_distinct(self, value: Value) -> bool:
        maker = self._makers.get(value)
        if maker is None or maker.op is None or maker.kind != "kernel":
            return False
        outputs = list(values_of(maker.results))
        return any(outputs[i] is value for i in maker.op.definition.planning.distinct)

    def _is_here(self, state: Any) -> bool:
        if not isinstance(state, VariableState):
            return False
        return isinstance(state.value, torch.Tensor) and state.value.device == self._gpu

    def _is_of_host(self, instruction: Instruction, states: list[Any]) -> bool:
        """Whether only the host can run an instruction, and must run it every time."""
        op, traits = instruction.op, instruction.traits
        if op is None or instruction.kind in ("begin", "finish"):
            raise Obstacle(f"{_name(instruction)} runs beside other work")
        if instruction.kind not in _KINDS or op.definition.planning.switches:
            raise Obstacle(f"{_name(instruction)} is on one side of a Switch")
        if instruction.kind == "read":
            return not self._is_here(states[0])
        if any(not self._is_here(state) for state in states):
            return True
        if op.definition.planning.refuses:
            given = zip(values_of(instruction.arguments), instruction.inputs)
            return any(_is_string(tensor) and not value.is_constant for value, tensor in given)
        if op.definition.planning.on_host or any(_is_string(tensor) for tensor in (*op._inputs, *op.outputs)):
            return True
        if op.device and DeviceSpec.from_string(op.device).device_type == "CPU":
            return True
        if op.definition.planning.calls:
            return False
        if traits & (Trait.BLOCKING | Trait.RETAINS):
            return True
        on_gpu = op.definition.planning.on_gpu
        own_state = traits & Trait.STATEFUL and not traits & (Trait.WRITES | Trait.READS)
        return bool(own_state) and (on_gpu is None or on_gpu(op) is None)

    def _ends_the_devices_work(self, planner: Planner, instruction: Instruction, on_device: list[Any]) -> bool:
        """Whether the size of a result depends on the device's data, while only the host's data meets the result afterwards."""
        op = instruction.op
        if op is None or instruction.kind != "kernel" or on_device or instruction.steps:
            return False
        if instruction.kernel is not op.definition.kernel_fn or instruction.traits & EFFECTS:
            return False
        if all(value in self._available for value in _data(instruction)):
            return False
        if any(each.dtype.base_dtype is dtypes.variant for each in (*instruction.inputs, *op.outputs)):
            return False
        sized_by_data = any(not planner.shape_of(each).known for each in op.outputs)
        if not sized_by_data or not all(planner.shape_of(each).known for each in instruction.inputs):
            return False
        behind = planner.behind([op])
        following = [each for each in planner.instructions if each.op in behind]
        known = self._independent(planner).union(values_of(instruction.results))
        for each in following:
            known.update(values_of(each.results))
        return not any(
            each.steps or any(map(self._is_here, _states(each))) or not known.issuperset(_data(each))
            for each in following
        )

    def _independent(self, planner: Planner) -> set[Value]:
        """Returns the values that depend on no variable of the device."""
        found = {feed for feed in planner.feed_values if not feed.handle}
        for each in planner.instructions:
            if not each.steps and found.issuperset(_data(each)) and not any(map(self._is_here, _states(each))):
                found.update(values_of(each.results))
        return found

    def _is_refusal_of_host(self, instruction: Instruction) -> bool:
        """Whether an instruction that only refuses some data looks at numbers of the host."""
        if instruction.op is None or not instruction.op.definition.planning.refuses:
            return False
        return all(value in self._available and value not in self._of_data for value in _data(instruction))

    def _checked_bodies(self, instruction: Instruction) -> Iterator[VariableState]:
        """Checks that the functions that an instruction calls can be part of the device's work. Returns their variables."""
        for step in instruction.steps:
            for each in step.planner.instructions:
                states = _states(each)
                if self._is_of_host(each, states):
                    raise Obstacle(f"{_name(each)} in a function that {_name(instruction)} calls is work of the host")
                yield from states
                yield from self._checked_bodies(each)

    def _has_sizes_from_data(self, planner: Planner, instruction: Instruction) -> bool:
        """Whether the host can compute something whose size depends on data. On the device, the host would wait for the size."""
        op, made = instruction.op, list(values_of(instruction.results))
        if op is None or not made or not all(value in self._available for value in made):
            return False
        if op.definition.planning.pads is not None:
            return True
        return any(not planner.shape_of(tensor).known for tensor in op.outputs) and not any(
            tensor.dtype.is_floating or tensor.dtype.base_dtype is dtypes.variant for tensor in op.outputs
        )

    def _to_host(self, instruction: Instruction) -> None:
        """Moves an instruction to the part before, with all that it needs."""
        pending = [instruction]
        while pending:
            each = pending.pop()
            self._place[id(each)] = BEFORE
            for value in _data(each):
                maker = self._makers.get(value)
                if maker is not None and self._place[id(maker)] != BEFORE:
                    pending.append(maker)

    # -- numbers -------------------------------------------------------------------------------------------------

    def _ask_for_numbers(self, instruction: Instruction) -> None:
        for value in _numbers(instruction):
            self._ask(value, instruction)
        if instruction.steps:
            self._ask_for_decision(instruction)
            self._ask_for_inputs(instruction, set())

    def _ask_for_decision(self, call: Instruction) -> None:
        """Makes sure that the host knows which function a call runs. If only the device can know, it runs both and selects results."""
        before = self._saved()
        try:
            for value in _deciding(call):
                self._ask(value, call)
        except Obstacle:
            if not _can_select(call):
                raise
            self._restore(before)
            call.kernel = select_branch_kernel

    def _saved(self) -> tuple[Any, ...]:
        """Returns what has been asked so far, for `_restore`."""
        wanted = {key: set(outputs) for key, outputs in self._wanted.items()}
        return set(self._asked), list(self.numbers), set(self._of_host), dict(self._place), wanted

    def _restore(self, before: tuple[Any, ...]) -> None:
        self._asked, self.numbers, self._of_host, self._place, self._wanted = before

    def _is_decided_late(self, call: Instruction) -> bool:
        """Whether only the device knows which branch is to run, and one that does not count must not run: it changes variables, say."""
        if call.op is None or call.op.definition.planning.calls == "loop" or _can_select(call):
            return False
        before = self._saved()
        try:
            for value in _deciding(call):
                self._ask(value, call)
        except Obstacle:
            return True
        finally:
            self._restore(before)
        return False

    def _ask_for_inputs(self, call: Instruction, outputs: set[int]) -> None:
        wanted = self._wanted.setdefault(id(call), set())
        wanted |= outputs
        for position in sorted(needed_inputs(call, frozenset(wanted))):
            self._ask(call.arguments[-1][position], call)

    def _ask(self, value: Value, asker: Instruction) -> None:
        """Makes sure that the host knows a value while the device's part is recorded.

        Raises:
            Obstacle: the value is computed by the device from data.
        """
        pending = [value]
        while pending:
            each = pending.pop()
            if each.is_constant or each.handle or each in self._asked:
                continue
            self._asked.add(each)
            maker = self._makers.get(each)
            # The host does not compute with data so that it can decide, but it may have done so for another reason.
            is_known = each not in self._of_data or (maker is not None and self._place[id(maker)] == BEFORE)
            if each in self._available and is_known:
                if maker is not None:
                    self._to_host(maker)
                self.numbers.append(each)
                continue
            if maker is None:
                raise Obstacle(f"{_name(asker)} needs the numbers of a fed floating-point tensor on the host")
            traits = maker.traits
            if self._place[id(maker)] == DEVICE and _has_fixed_result(maker):
                continue
            if self._place[id(maker)] != DEVICE or (not maker.steps and traits & EFFECTS):
                raise Obstacle(f"{_name(asker)} needs on the host what {_name(maker)} computes")
            if maker.steps:
                flat = list(values_of(maker.results))
                self._ask_for_inputs(maker, {i for i, made in enumerate(flat) if made is each})
            elif any(_is_device_data(tensor) for tensor in maker.op.outputs if maker.op is not None):  # type: ignore[union-attr]
                raise Obstacle(f"{_name(asker)} needs on the host what {_name(maker)} computes on the device")
            else:
                self._of_host.add(id(maker))
                pending += _data(maker)

    # -- connections ---------------------------------------------------------------------------------------------

    def _used(
        self, device: list[Instruction], after: list[Instruction], results: list[Value | None]
    ) -> list[Instruction]:
        """Returns the instructions of the device's part that are still of use."""
        needed = {value for value in results if value is not None}
        needed.update(value for each in after for value in _data(each))
        kept = []
        for each in reversed(device):
            made = list(values_of(each.results))
            pure = not each.steps and (each.kind == "read" or not each.traits & EFFECTS)
            if not pure or not made or not needed.isdisjoint(made):
                needed.update(_data(each))
                kept.append(each)
        kept.reverse()
        return kept

    def _connect(self, planner: Planner, parts: list[list[Instruction]]) -> None:
        """Finds the values that pass from one part to another. Numbers of the device's part become separate values."""
        made_on_device = {value for each in parts[DEVICE] for value in values_of(each.results)}
        known = set(self.numbers)
        forms: dict[Value, Value] = {}
        inputs: dict[Value, None] = {}

        def number(value: Value) -> Value:
            if value not in known:
                return value
            if value not in forms:
                forms[value] = Value(f"{value.label}_number", -1)
                forms[value].roots = frozenset((FEED,))
            return forms[value]

        for each in parts[DEVICE]:
            whole = id(each) in self._of_host
            last = len(each.arguments) - 1
            chosen = needed_inputs(each, frozenset(self._wanted[id(each)])) if each.steps else frozenset()
            deciding = set(_deciding(each)) if each.steps else set()
            accepted = set(_numbers(each))
            arguments: list[Any] = []
            for position, argument in enumerate(each.arguments):
                if each.steps and position == last:
                    arguments.append([number(value) if i in chosen else value for i, value in enumerate(argument)])
                else:
                    arguments.append(_exchanged(argument, number, accepted, whole or bool(deciding)))
            each.arguments = arguments
            for value in _data(each):
                if value not in made_on_device and value not in forms.values():
                    inputs[value] = None
        self.inputs = list(inputs)
        self.numbers = [value for value in self.numbers if value in forms]
        self._forms = [forms[value] for value in self.numbers]
        later = {value for each in parts[AFTER] for value in _data(each)}
        fetched = {value for value in planner.results if value is not None and not value.is_constant}
        on_host = fetched | (later if self.rest is None else self.rest.taken_by_host(parts[AFTER]))
        later |= on_host
        fed = set(planner.feed_values)
        handed_on = [*self.inputs, *self.numbers, *later]
        made_before = {value for each in parts[BEFORE] for value in values_of(each.results)}
        self.made = [value for value in dict.fromkeys(handed_on) if value in made_before and value not in fed]
        self.outputs = [value for value in later if value in made_on_device]
        self.staying = frozenset(i for i, value in enumerate(self.outputs) if value not in on_host)

    def taken_by_host(self, instructions: list[Instruction]) -> set[Value]:
        """Returns the values that the host takes, of the instructions that were divided."""
        first, second, _ = self.counts
        after = instructions[first + second :]
        found = {value for each in instructions[:first] for value in _data(each)}.union(self.numbers)
        if self.rest is not None:
            return found | self.rest.taken_by_host(after)
        return found.union(*map(_data, after))

    # -- code ----------------------------------------------------------------------------------------------------

    def emit(self, planner: Planner) -> list[Step]:
        """Compiles the parts: before(given) -> made, device(inputs, numbers) -> outputs, after(given, made, outputs) -> results.

        If there is a rest, its parts come in the place of the last.
        """
        first, second, _ = self.counts
        before, device, after = _cut(planner.instructions, first, first + second)
        steps = [
            _part(planner, before, self.given, self.made, compiler=planner.compile_function.on_host()),
            _part(planner, device, [*self.inputs, *self._forms], self.outputs),
        ]
        if self.rest is None:
            takes = [*self.given, *self.made, *self.outputs]
            return [*steps, _part(planner, after, takes, planner.results, lends=False)]
        rest = copy.copy(planner)
        rest.instructions = after
        return [*steps, *self.rest.emit(rest)]


def _cut(instructions: list[Instruction], *places: int) -> list[list[Instruction]]:
    return [instructions[start:end] for start, end in zip((0, *places), (*places, len(instructions)))]


def _with_own_reads(device: list[Instruction], after: list[Instruction]) -> list[Instruction]:
    """Lets what comes after the device's part read variables itself, if that part does not change them. Their values need not be handed on."""
    changed = {id(state) for each in device if each.traits & Trait.WRITES for state in _states(each)}
    inner = {state for each in device for state in each.written}
    wanted = {value for each in after for value in _data(each)}
    reads, own = [], {}
    for each in device:
        if each.kind != "read" or not wanted.intersection(values_of(each.results)):
            continue
        (state,), (value,) = _states(each), values_of(each.results)
        if id(state) not in changed and state not in inner:
            again = own[value] = Value(value.label, -1)
            again.roots = value.roots
            reads.append(replace(each, results=[again]))
    for each in after:
        each.arguments = with_values(each.arguments, own)
    return [*reads, *after]


def _with_settlements(instructions: list[Instruction]) -> list[Instruction]:
    """Lets the host look at the refusals of data before the next instruction that changes variables.

    Raises:
        Obstacle: a function that is called both refuses data and changes variables.
    """
    result, open_answers = [], False
    for each in instructions:
        writes = _any(each, lambda one: bool(one.traits & Trait.WRITES))
        refuses = _any(each, _refuses)
        if writes and refuses:
            raise Obstacle(f"a function that {_name(each)} calls refuses data and changes variables")
        if writes and open_answers:
            result.append(Instruction(each.op, "kernel", device_checks.settle, [], traits=Trait.WRITES))
            open_answers = False
        open_answers |= refuses
        result.append(each)
    return result


def _refuses(instruction: Instruction) -> bool:
    return instruction.op is not None and instruction.op.definition.planning.refuses


def _any(instruction: Instruction, holds: Callable[[Instruction], bool]) -> bool:
    """Whether something holds for an instruction, or for one in a function that it calls."""
    inner = (each for step in instruction.steps for each in step.planner.instructions)
    return holds(instruction) or any(_any(each, holds) for each in inner)


def _part(
    planner: Planner,
    instructions: list[Instruction],
    takes: list[Value],
    results: list[Any],
    *,
    compiler: Any = None,
    lends: bool = True,
) -> Step:
    part = copy.copy(planner)
    part.instructions, part.feed_values, part.results, part.lends = instructions, takes, results, lends
    if compiler is not None:
        part.compile_function = compiler
    renumber(instructions)
    for position, instruction in enumerate(instructions):
        for value in values_of(instruction.arguments):
            value.last_use = max(value.last_use, position)
    for value in results:
        if value is not None:
            value.last_use = len(instructions)
    return emit(part)


def _has_fixed_result(instruction: Instruction) -> bool:
    """Whether the result depends only on shapes and on the lengths of lists, which are fixed in a recording."""
    facets = None if instruction.op is None else instruction.op.definition.planning
    fixed = facets is not None and (facets.of_variable_shapes or facets.of_list_sizes)
    return fixed or bool(instruction.traits & Trait.OF_SHAPES)


def _is_device_data(tensor: Any) -> bool:
    return tensor.dtype.is_floating or tensor.dtype.is_complex


def _deciding(call: Instruction) -> list[Value]:
    """Returns the values that decide which function a call runs."""
    return [value for value in values_of(call.arguments[:-1]) if not value.is_constant and not value.handle]


def _can_select(call: Instruction) -> bool:
    """Whether both branches of a call can run: they only compute, and agree in the shapes of their results."""
    if call.op is None or not {"then_branch", "else_branch"} <= call.keywords.keys():
        return False
    if call.op._inputs[0].static_shape.rank != 0:
        return False
    one, other = (step.planner for step in call.steps)
    for planner in (one, other):
        effects = any(each.steps or each.traits & (EFFECTS & ~Trait.READS) for each in planner.instructions)
        if effects or len(planner.instructions) > _MOST_SELECTED:
            return False
    return all(
        a is b is None
        or (
            a is not None
            and b is not None
            and a.dtype.base_dtype not in (dtypes.variant, dtypes.string, dtypes.resource)
            and one.shape_of(a).known
            and one.shape_of(a).dims == other.shape_of(b).dims
        )
        for a, b in zip(one.fetches, other.fetches)
    )


def select_branch_kernel(cond: Any, input: list[Any], *, then_branch: Any, else_branch: Any, holding: Any) -> Any:
    """Runs both branches, and selects the results of one by a number on the device."""
    chosen = cond.reshape(()) != 0
    return tuple(
        None if a is None else torch.where(chosen, moved_to(a, chosen.device), moved_to(b, chosen.device))
        for a, b in zip(then_branch(holding, *input), else_branch(holding, *input))
    )


def _exchanged(argument: Any, number: Any, accepted: set[Value], whole: bool) -> Any:
    if isinstance(argument, list):
        return [_exchanged(item, number, accepted, whole) for item in argument]
    if isinstance(argument, Host):
        return Host(number(argument.value)) if argument.value in accepted else argument
    return number(argument) if whole else argument


def needed_inputs(call: Instruction, outputs: frozenset[int]) -> frozenset[int]:
    """Returns the positions of a call's inputs that the host must know: those that decide about branches, iterations and sizes
    inside, and those that the given outputs depend on.

    Raises:
        Obstacle: a variable decides.
    """
    if call.op is not None and call.op.definition.planning.calls == "loop":
        condition, body = (step.planner for step in call.steps)
        needed = outputs | _needed(condition, frozenset((0,)))
        while True:
            grown = needed | _needed(body, needed)
            if grown == needed:
                return needed
            needed = grown
    return frozenset().union(*[_needed(step.planner, outputs) for step in call.steps])


def _needed(planner: Planner, outputs: Iterable[int]) -> frozenset[int]:
    results = planner.results
    wanted = {value for i in outputs if i < len(results) and (value := results[i]) is not None}
    for each in reversed(planner.instructions):
        wanted.update(_numbers(each))
        made = list(values_of(each.results))
        if each.steps:
            wanted.update(_deciding(each))
            inner = needed_inputs(each, frozenset(i for i, value in enumerate(made) if value in wanted))
            wanted.update(each.arguments[-1][i] for i in inner)
        elif not wanted.isdisjoint(made) and not _has_fixed_result(each):
            if each.kind == "read" or each.traits & EFFECTS:
                raise Obstacle(f"{_name(each)} decides about branches, iterations or sizes")
            wanted.update(_data(each))
    return frozenset(i for i, value in enumerate(planner.feed_values) if value in wanted and not value.is_constant)
