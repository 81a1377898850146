"""Which ops of a plan run together as fused loops (fused_loops.py): runs of neighbours, of small tensors or of the rows of large ones."""

from __future__ import annotations

import math
from typing import Any

from stoker._src.base import dtypes
from stoker._src.graph.definition import Trait
from stoker._src.runtime.plan import background, fused_loops, stores
from stoker._src.runtime.plan.fused_loops import Builder
from stoker._src.runtime.plan.instructions import EFFECTS, Instruction, Value, renumber, values_of
from stoker._src.runtime.plan.loop_operands import ShapeOf, are_numbers, dims_of, is_host, kind_of, precisions

_LARGEST_IN_LOOP = (
    1 << 17
)  # elements of a small tensor in the body of a loop that can run natively only if all of it is fused


def form(
    instructions: list[Instruction],
    results: list[Value | None],
    shape_of: ShapeOf,
    *,
    updates: bool = False,
    repeats: bool = False,
    carried: frozenset[Value] = frozenset(),
) -> list[Instruction]:
    """Replaces runs of instructions by fused loops. `results` are the values that the plan returns.

    With `updates`, loops also change large variables. The body of a loop `repeats`: its iterations run natively if nothing is left of it.
    So single instructions are fused, too, loops change any variables, and if that leaves instructions, larger tensors whose rows are not independent
    are fused as well. `carried` are integers that follow from the iteration before, so that only loops can compute with them in native iterations.

    A run stays open until an instruction needs one of its results or changes one of its inputs. Other instructions move ahead of it, except
    that a run does not hold back the last input of a message to other processes.
    """
    if fused_loops.native is None:
        return instructions
    if repeats:
        instructions = stores.without_idle_reads(instructions, results)
    if updates:
        instructions = stores.sink(instructions, results, lambda each: _is_large(each, shape_of))
    roots = stores.roots_of(instructions) if updates or repeats else None
    formed = _formed(instructions, results, _Runs(shape_of, roots, repeats, carried))
    if repeats and any(_is_left(each, shape_of) for each in formed):
        return _formed(instructions, results, _Runs(shape_of, roots, repeats, carried, _LARGEST_IN_LOOP))
    return formed


def _formed(instructions: list[Instruction], results: list[Value | None], runs: _Runs) -> list[Instruction]:
    completions = background.completions(instructions)
    for index, instruction in enumerate(instructions):
        runs.add(instruction)
        if index in completions:
            runs.end(*(run for run in (runs.large, runs.small) if not run.made.isdisjoint(completions[index])))
    runs.end(runs.small, runs.large)
    return _joined(runs.ended, {value for value in results if value is not None})


def _is_left(instruction: Instruction, shape_of: ShapeOf) -> bool:
    """Whether an instruction could have been fused but for the size of its tensors."""
    if _is_large(instruction, shape_of) is None:
        return False
    assert instruction.op is not None
    return any(tensor.dtype in (dtypes.float32, dtypes.float64) for tensor in instruction.op.outputs)


def summary(instructions: list[Instruction], shape_of: ShapeOf) -> list[str]:
    """Says in a few lines which ops of a plan run as fused loops, and why others that could do not."""
    fused = [each for each in instructions if each.kind == "fused_loops"]
    if fused_loops.native is None:
        return ["fused loops: none, since the C extension is missing"]
    reasons: dict[str, dict[str, int]] = {}
    for each in instructions:
        if each.kind == "kernel" and each.op is not None and each.op.definition.planning.lower is not None:
            types = reasons.setdefault(_obstacle(each, shape_of), {})
            types[each.op.type] = types.get(each.op.type, 0) + 1
    lines = [f"fused loops: {len(fused)} calls run {sum(len(each.members) for each in fused)} ops"]
    for reason, types in reasons.items():
        named = ", ".join(f"{count} {name}" if count > 1 else name for name, count in sorted(types.items()))
        lines.append(f"not fused, {reason}: {named}")
    return lines


def _obstacle(instruction: Instruction, shape_of: ShapeOf) -> str:
    op = instruction.op
    assert op is not None
    tensors = [*op.outputs, *op._inputs]
    numeric = [tensor for tensor in tensors if not tensor.dtype.is_integer]
    if not numeric or any(kind_of(tensor) != "" for tensor in numeric):
        return "the dtype is neither float32 nor float64"
    if any(shape_of(tensor).size is None for tensor in numeric):
        return "the shape depends on data"
    if _is_large(instruction, shape_of) is None:
        return "an argument is not a constant"
    return "too few neighbours"


class _Runs:
    """Sorts instructions into runs. At most one run of small tensors and one of large tensors are open, and they are independent."""

    def __init__(
        self,
        shape_of: ShapeOf,
        roots: stores.Roots | None,
        repeats: bool,
        carried: frozenset[Value],
        largest: int = 0,
    ) -> None:
        self.shape_of, self._roots, self._repeats, self._carried = shape_of, roots, repeats, carried
        self.fewest, self._largest = 1 if repeats else 0, largest or fused_loops.LARGEST
        self.ended: list[Builder | Instruction] = []
        self.small, self.large = self._empty(large=False), self._empty(large=True)

    def _empty(self, *, large: bool) -> Builder:
        builder = Builder(self.shape_of, self.fewest, self._roots, self._carried)
        builder.row_counts = [] if large else None
        return builder

    def _storing(self) -> list[Builder]:
        if self._roots is None:
            return []
        return [self.large, self.small] if self._repeats else [self.large]

    def end(self, *builders: Builder) -> None:
        for builder in builders:
            if builder.instructions:
                self.ended.append(builder)
            if builder is self.small:
                self.small = self._empty(large=False)
            else:
                self.large = self._empty(large=True)

    def _end_others(self, instruction: Instruction) -> None:
        """Ends the runs whose floats are of another precision than those of a fusible instruction."""
        found = precisions(instruction)
        if len(found) == 1:
            self.end(*(run for run in (self.large, self.small) if run.precision not in (None, *found)))

    def add(self, instruction: Instruction) -> None:
        arguments = set(values_of(instruction.arguments))
        changes = bool(instruction.traits & (Trait.WRITES | Trait.BLOCKING) or instruction.steps)
        if changes and any(builder.store(instruction) for builder in self._storing()):
            return
        if instruction.traits & EFFECTS:
            self.end(*(each for each in (self.small, self.large) if each.stored))  # it may look at what they change
        large = _is_large(instruction, self.shape_of, self._largest)
        if large is not None:
            self._end_others(instruction)
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
        if changes or not self.small.buffers.keys().isdisjoint(arguments):
            self.end(self.small)
        self.ended.append(instruction)


def _joined(runs: list[Any], wanted: set[Value]) -> list[Instruction]:
    """The instructions with each run replaced by fused loops where that pays."""
    instructions: list[Instruction] = []
    for run in reversed(runs):  # from the end, so that the values which later instructions use are known
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


def _is_large(instruction: Instruction, shape_of: ShapeOf, largest: int = 0) -> bool | None:
    """Whether a fusible instruction has tensors of more than `largest` elements (0: those of a large tensor); None if the instruction cannot be fused."""
    op = instruction.op
    if (
        op is None
        or instruction.kind != "kernel"
        or op.definition.planning.lower is None
        or instruction.traits & EFFECTS
    ):
        return None
    given = list(values_of(instruction.arguments))
    if len(given) != len(instruction.inputs) or any(value.handle for value in given):
        return None
    known = [dims_of(shape_of, tensor) for tensor in op.outputs]
    outputs = len(known)
    for value, tensor, is_number in zip(given, instruction.inputs, are_numbers(instruction.arguments)):
        if is_number:
            if not is_host(value):
                return None
        elif kind_of(tensor) is not None or not (is_host(value) and tensor.dtype.is_integer):
            known.append(dims_of(shape_of, tensor))
    if None in known:
        return None
    sized = known[:outputs] if op.definition.planning.lowers_large_inputs else known
    return any(math.prod(shape) > (largest or fused_loops.LARGEST) for shape in sized)  # type: ignore[arg-type]
