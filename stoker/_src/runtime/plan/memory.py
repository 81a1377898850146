"""Memory of a plan's values: which may share a variable's, which reads are copied, and which kernels reuse that of an input."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from stoker._src.base import dtypes
from stoker._src.base.shapes import Shape
from stoker._src.graph.definition import Trait
from stoker._src.graph.tensor import Operation, Tensor
from stoker._src.runtime.failures import kernel_of
from stoker._src.runtime.plan.instructions import CONSTANT, EFFECTS, EVERYTHING, FEED, Instruction, Value, values_of
from stoker._src.runtime.plan.overlays import Overlaid

_WORTH_REUSING = 1 << 14  # below this number of elements, allocating a tensor is cheaper than the check for reuse
# Elements of a value that an assignment keeps. Fused loops put smaller ones into one allocation.
_WORTH_TAKING = 1 << 16
_WORTH_OVERLAYING = 1 << 18  # elements from which results of fused loops take the place of inputs


def settle(
    instructions: list[Instruction], results: list[Value | None], shape_of: Callable[[Tensor], Shape]
) -> frozenset[Any]:
    """Finds the values that may share a variable's memory, and inserts copies where a change could be observed.

    A value that is read before a write (or before a wait, during which other runs may write) and used at or after it is copied when
    it is read. Values that a caller receives or a queue keeps never share memory with variables, feeds or constants.
    Returns the variables that the plan writes.
    """
    all_written: frozenset[Any] = frozenset()
    writes: list[tuple[int, frozenset[Any]]] = []
    retained: list[tuple[int, Value]] = []
    for position, instruction in enumerate(instructions):
        inputs = list(values_of(instruction.arguments))
        for value in inputs:
            value.last_use = max(value.last_use, position)
        traits = instruction.traits
        touched = frozenset(id(v.constant) if v.is_constant else EVERYTHING for v in inputs if v.handle)
        roots: frozenset[Any] = frozenset()
        if traits & Trait.READS:
            roots = touched
        if traits & Trait.VIEW:
            roots = roots.union(*[value.roots for value in inputs])
        if instruction.steps:
            roots |= {CONSTANT}  # a body may return one of its own constants
        for value in values_of(instruction.results):
            value.roots = roots
        if traits & Trait.WRITES:
            written = instruction.written if instruction.steps else touched
            writes.append((position + instruction.reads_first, written or frozenset((EVERYTHING,))))
            all_written |= writes[-1][1]
        if traits & Trait.BLOCKING:
            writes.append((position, frozenset((EVERYTHING,))))
        if traits & Trait.RETAINS:
            retained.extend((position, value) for value in inputs if value.roots)
    end = len(instructions)
    for value in results:
        if value is not None:
            value.last_use = end
    _copy_reads(instructions, writes)
    _copy_kept(instructions, retained)
    _reuse_memory(instructions, shape_of)
    return all_written


def _reuse_memory(instructions: list[Instruction], shape_of: Callable[[Tensor], Shape]) -> None:
    """Lets kernels reuse an input's memory if this is its last use. Only plain kernels may have produced and used the input."""
    held: set[Value] = set()  # values whose memory may have another owner
    of_loops: set[Value] = set()  # results of fused loops that only plain kernels have used
    for position, instruction in enumerate(instructions):
        op = instruction.op
        if op is None or instruction.kind != "kernel" or instruction.steps or not _is_plain(op):
            if op is not None and op.definition.planning.takes_over is not None:
                _let_take_over(position, instruction, op, shape_of, held, of_loops)
            if instruction.overlays:
                _overlay(position, instruction, held)
            held.update(values_of(instruction.arguments))
            of_loops.difference_update(values_of(instruction.arguments))
            if instruction.kind == "fused_loops":
                of_loops.update(values_of(instruction.results))
            if (
                instruction.kind != "kernel" or op is None or op.definition.planning.repeats is None
            ):  # random numbers are fresh
                held.update(values_of(instruction.results))
            continue
        definition = op.definition
        if not definition.single:
            held.update(values_of(instruction.results))  # outputs may share memory with each other
        in_place = definition.planning.in_place
        if in_place is None or kernel_of(op) is not definition.kernel_fn or not op.outputs[0].dtype.is_floating:
            continue
        size = shape_of(op.outputs[0]).size
        if size is not None and size < _WORTH_REUSING:
            continue
        written, kernel = in_place
        value = instruction.arguments[written]
        # In a list, only the first two inputs qualify: a kernel that sums a list can swap these without a different rounding.
        for index, each in enumerate(value[:2] if isinstance(value, list) else [value]):
            alone = sum(used is each for used in values_of(instruction.arguments)) == 1
            if alone and each not in held and each.position >= 0 and each.last_use == position:
                instruction.kernel, instruction.keywords = kernel, {}
                if index:
                    value[0], value[1] = value[1], value[0]
                break


def _overlay(position: int, instruction: Instruction, held: set[Value]) -> None:
    """Lets results of fused loops take the place of large inputs that nobody else holds."""
    pairs: dict[int, int] = {}
    arguments: list[Value] = instruction.arguments
    for i, j in instruction.overlays:
        value = arguments[i]
        is_free = (
            value not in held and value.position >= 0 and value.last_use == position and arguments.count(value) == 1
        )
        if is_free and i not in pairs and j not in pairs.values():
            if math.prod(instruction.kernel.input_shapes[i]) >= _WORTH_OVERLAYING:
                pairs[i] = j
    if pairs:
        instruction.kernel = Overlaid(instruction.kernel, pairs)


def _let_take_over(
    position: int,
    instruction: Instruction,
    op: Operation,
    shape_of: Callable[[Tensor], Shape],
    held: set[Value],
    of_loops: set[Value],
) -> None:
    """Lets an assignment keep a large value that nobody else uses. Small ones may share memory with others."""
    facet = op.definition.planning.takes_over
    assert facet is not None
    size = shape_of(op._inputs[facet[0]]).size
    if instruction.kind != "kernel" or size is None or size < _WORTH_TAKING:
        return
    value = instruction.arguments[facet[0]]
    is_fresh = isinstance(value, Value) and value.position >= 0 and (value not in held or value in of_loops)
    if is_fresh and value.last_use == position and kernel_of(op) is op.definition.kernel_fn:
        instruction.kernel = facet[1]


def _copy_reads(instructions: list[Instruction], writes: list[tuple[int, frozenset[Any]]]) -> None:
    last_uses: dict[int, int] = {}  # position of a read -> the last use of any value that shares its memory
    shares: dict[Value, set[int]] = {}
    for position, instruction in enumerate(instructions):
        if instruction.op is None:
            continue
        results = list(values_of(instruction.results))
        origins = {position} if instruction.traits & Trait.READS else set()
        if instruction.traits & Trait.VIEW:
            for value in values_of(instruction.arguments):
                origins |= shares.get(value, set())
        for value in results:
            shares[value] = origins
            for origin in origins:
                last_uses[origin] = max(last_uses.get(origin, -1), value.last_use)
    for origin, last_use in last_uses.items():
        instruction = instructions[origin]
        roots = frozenset().union(*[value.roots for value in values_of(instruction.results)])
        for position, written in writes:
            if origin < position <= last_use and (EVERYTHING in written or EVERYTHING in roots or roots & written):
                instruction.copies = True
                for value in values_of(instruction.results):
                    value.roots = frozenset()
                break
    # Views of a copied read no longer share the variable's memory.
    for value, origins in shares.items():
        if origins and all(instructions[origin].copies for origin in origins):
            value.roots = value.roots & {FEED, CONSTANT}


def _copy_kept(instructions: list[Instruction], retained: list[tuple[int, Value]]) -> None:
    for position, value in retained:
        if value.roots and not value.handle:
            instructions[position].copied.add(value)


def _is_plain(op: Operation) -> bool:
    """Whether an op's kernel neither keeps its inputs nor returns their memory."""
    keeps = any(tensor.dtype.base_dtype in (dtypes.variant, dtypes.resource) for tensor in (*op._inputs, *op.outputs))
    return not op.definition.traits & (EFFECTS | Trait.VIEW) and not keeps
