"""Small ops: neighbouring ops on small tensors whose sizes are known only during the run, as one native call.

Fused loops are compiled for shapes. Where sizes depend on data (the entries of a sparse batch, distinct ids, a mask), they change from run
to run, and each op would cost a call from Python and tensors for its results, which takes many times as long as the work. A chain of small ops
(native/small_ops.c) works on memory, finds the sizes as it goes, and makes tensors only of what leaves it.

An op takes part through its `small` facet. If its inputs are not what the native loop is made for (large, of another type, an index out of
range), its own kernel runs within the chain, so results and errors are the same.
"""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Callable
from typing import Any

import numpy as np
import torch

from stoker._src.base import dtypes
from stoker._src.base.extensions import extension
from stoker._src.base.shapes import Shape
from stoker._src.graph.definition import Trait
from stoker._src.graph.tensor import Operation, Tensor
from stoker._src.ops.support import blas
from stoker._src.ops.support.values import host_value
from stoker._src.runtime.failures import explain_failure
from stoker._src.runtime.plan.grouping import Dependencies, is_barrier
from stoker._src.runtime.plan.instructions import EFFECTS, Host, Instruction, Value, renumber, values_of

native = extension("stoker._src.runtime.native.small_ops")
blas.connect(native, with_small=True)

_KINDS = {
    dtypes.float32: torch.float32,
    dtypes.float64: torch.float64,
    dtypes.int32: torch.int32,
    dtypes.int64: torch.int64,
    dtypes.bool_: torch.bool,
}
_NUMBERS = {dtype: number for number, dtype in enumerate(_KINDS)}
_OTHER = len(_KINDS)
_CHECK = "assert"
# Ops for which one call of torch is hardly more than a chain of one op: those that fused loops do better, and these.
_OF_FLOATS = frozenset(
    ("exp", "log", "log1p", "tanh", "sigmoid", "rsqrt", "reciprocal", "relu", "tanh_grad", "sigmoid_grad", "relu_grad", "matmul", "bias_add",
     "bias_add_grad", "softmax")
)  # fmt: skip
_BETTER_FUSED = _OF_FLOATS | frozenset(("sum", "mean", "reduce_max", "reduce_min", "square_difference", "l2_loss"))
_CHEAP = _OF_FLOATS | frozenset(
    ("add", "sub", "mul", "max", "min", "div", "less", "less_equal", "greater", "greater_equal", "equal", "not_equal", "and", "or", "neg",
     "square", "abs", "sqrt", "not", "cast", "zeros_like", "ones_like", "concat", _CHECK)
)  # fmt: skip
_LARGEST = 1 << 14  # elements from which a tensor is too large: kernels reuse the memory of such ones
_FEWEST_CHEAP = 2  # such ops that are worth a chain

ShapeOf = Callable[[Tensor], Shape]


def form(instructions: list[Instruction], results: list[Value | None], shape_of: ShapeOf) -> list[Instruction]:
    """Returns the instructions with chains of small ops as one instruction each. `results` are the values that the plan returns."""
    if native is None:
        return instructions
    small = {id(each) for each in instructions if _is_small(each, shape_of)}
    if not small:
        return instructions
    runs: list[Instruction | list[Instruction]] = []
    segment: list[Instruction] = []
    for each in (*instructions, None):
        if each is not None and not is_barrier(each):
            segment.append(each)
            continue
        runs += _Schedule(segment, small).run()
        segment = []
        if each is not None:
            runs.append(each)
    if not any(isinstance(run, list) and _pays(run) for run in runs):
        return instructions
    wanted = {value for value in results if value is not None}
    formed: list[Instruction] = []
    for run in reversed(runs):  # from the end, so that the values which later instructions use are known
        added = [_Chain(run, wanted).instruction()] if isinstance(run, list) and _pays(run) else run
        for each in added if isinstance(added, list) else [added]:
            wanted.update(values_of(each.arguments))
        formed.extend(reversed(added) if isinstance(added, list) else [added])
    formed.reverse()
    renumber(formed)
    return formed


def do_as_well(op: Operation) -> bool:
    """Whether an op among small ops, for any shapes, costs about what it would cost in fused loops for known shapes."""
    facet = op.definition.planning.small
    return native is not None and facet is not None and facet[0] not in _BETTER_FUSED


def summary(instructions: list[Instruction]) -> list[str]:
    """Says in a line which ops of a plan run as small ops."""
    chains = [each for each in instructions if native is not None and isinstance(each.kernel, native.Chain)]
    types = Counter(op.type for each in chains for op in each.members)
    named = ", ".join(f"{count} {name}" if count > 1 else name for name, count in sorted(types.items()))
    return [f"small ops: {len(chains)} calls run {types.total()} ops: {named}"] if chains else []


def _is_small(instruction: Instruction, shape_of: ShapeOf) -> bool:
    op = instruction.op
    if op is None or instruction.kind != "kernel" or instruction.steps or instruction.copied or instruction.copies:
        return False
    facet = op.definition.planning.small
    if facet is None or facet[1](op) is None or any(value.handle for value in values_of(instruction.arguments)):
        return False
    if facet[0] == _CHECK:
        return True
    if instruction.traits & EFFECTS or not all(t.dtype.base_dtype in _KINDS for t in (*op._inputs, *op.outputs)):
        return False
    sized = op.outputs if _takes_tables(op) else (*op._inputs, *op.outputs)
    return all((shape_of(tensor).size or 0) <= _LARGEST for tensor in sized)


def _takes_tables(op: Operation) -> bool:
    """Whether an op is cheap with a large input."""
    planning = op.definition.planning
    assert planning.small is not None
    return (
        planning.lowers_large_inputs
        or bool(op.definition.traits & Trait.OF_SHAPES)
        or planning.small[0] == "sparse_segments"
    )


def _pays(run: list[Instruction]) -> bool:
    """Whether a chain of these ops is faster than their own kernels. Views cost little."""
    names = [_name(each) for each in run if not each.traits & Trait.VIEW or _name(each) == "cast"]
    return any(name not in _CHEAP for name in names) or len(names) >= _FEWEST_CHEAP


def _name(instruction: Instruction) -> str:
    assert instruction.op is not None and instruction.op.definition.planning.small is not None
    return instruction.op.definition.planning.small[0]


class _Schedule:
    """Puts the instructions of a stretch without writes and waits in order: small ops when nothing else can run, and then all that can."""

    def __init__(self, segment: list[Instruction], small: set[int]) -> None:
        self._segment, self._small = segment, [id(each) in small for each in segment]
        self._dependencies = Dependencies(segment)

    def run(self) -> list[Instruction | list[Instruction]]:
        ready: tuple[list[int], list[int]] = [], []  # others, and small ones
        for i in self._dependencies.first():
            heapq.heappush(ready[self._small[i]], i)
        runs: list[Instruction | list[Instruction]] = []
        while ready[0] or ready[1]:
            chain: list[Instruction] = []
            is_small = not ready[0]
            while ready[is_small]:
                i = heapq.heappop(ready[is_small])
                if is_small:
                    chain.append(self._segment[i])
                else:
                    runs.append(self._segment[i])
                for user in self._dependencies.after(i):
                    heapq.heappush(ready[self._small[user]], user)
            if chain:
                runs.append(chain)
        return runs


class _Kernel:
    """An op of a chain by its own kernel. It is called with all inputs as they are, one after the other, and returns a tuple."""

    def __init__(self, instruction: Instruction) -> None:
        self._instruction = instruction

    def __call__(self, *inputs: Any) -> tuple[Any, ...]:
        instruction = self._instruction
        assert instruction.op is not None
        given = iter(inputs)
        arguments = [_taken(argument, given) for argument in instruction.arguments]
        try:
            found = instruction.kernel(*arguments, **instruction.keywords)
        except Exception as error:
            raise explain_failure(error, instruction.op, list(inputs)) from error
        return tuple(instruction.op.definition.flatten_results(found)) if instruction.op.outputs else ()


def _taken(argument: Any, given: Any) -> Any:
    if isinstance(argument, list):
        return [_taken(item, given) for item in argument]
    return host_value(next(given)) if isinstance(argument, Host) else next(given)


class _Chain:
    """Writes the code of a chain: for each op its number, how many arguments, inputs, outputs, numbers and values to free there are, and then these."""

    def __init__(self, run: list[Instruction], wanted: set[Value]) -> None:
        self._run = run
        made = {value: tensor for each in run for value, tensor in zip(values_of(each.results), _outputs(each))}
        given = dict.fromkeys(value for each in run for value in values_of(each.arguments) if value not in made)
        self._inputs = [value for value in given if not value.is_constant]
        self._constants = [value for value in given if value.is_constant]
        self._values = [*self._inputs, *self._constants, *made]
        self._place = {value: i for i, value in enumerate(self._values)}
        self._results = [value for value in made if value in wanted]
        self._kinds = bytearray([_OTHER] * len(self._values))
        for value, tensor in made.items():
            self._kinds[self._place[value]] = _NUMBERS[tensor.dtype.base_dtype]
        last = {
            value: i for i, each in enumerate(run) for value in (*values_of(each.results), *values_of(each.arguments))
        }
        kept = set(self._results) | set(self._constants)
        self._free: list[list[int]] = [[] for _ in run]
        for value, i in last.items():
            if value not in kept:
                self._free[i].append(self._place[value])

    def instruction(self) -> Instruction:
        assert native is not None
        code = [number for i, each in enumerate(self._run) for number in self._entry(i, each)]
        wanted = bytearray(len(self._values))
        for value in self._results:
            wanted[self._place[value]] = 1
        kernel = native.Chain(
            inputs=len(self._inputs),
            values=len(self._values),
            constants=tuple(value.constant for value in self._constants),
            kernels=tuple(_Kernel(each) for each in self._run),
            code=np.asarray(code, np.int64).tobytes(),
            results=np.asarray([self._place[value] for value in self._results], np.int64).tobytes(),
            wanted=bytes(wanted),
            kinds=bytes(self._kinds),
            torch=(torch.Tensor, torch.empty),
            dtypes=tuple(_KINDS.values()),
        )
        members = [each.op for each in self._run if each.op is not None]
        traits = Trait.STATEFUL if any(each.traits & Trait.STATEFUL for each in self._run) else Trait.NONE
        return Instruction(
            members[0], "many", kernel, list(self._inputs), results=list(self._results), traits=traits, members=members
        )

    def _entry(self, position: int, instruction: Instruction) -> list[int]:
        op = instruction.op
        assert op is not None and op.definition.planning.small is not None
        name, numbers = op.definition.planning.small
        ranges: list[int] = []
        inputs: list[int] = []
        groups = op.definition.group(op._inputs, op.attrs)
        for arg, argument, group in zip(op.definition.inputs, instruction.arguments, groups):
            values = list(values_of([argument]))
            is_packed = isinstance(argument, list) and not arg.is_list  # the numbers of one vector
            ranges += [len(inputs), len(values), int(is_packed)]
            for value, tensor in zip(values, group if arg.is_list else [group] * len(values)):
                self._kinds[self._place[value]] = _NUMBERS.get(tensor.dtype.base_dtype, _OTHER)
                inputs.append(self._place[value])
        outputs = [self._place[value] for value in values_of(instruction.results)]
        extra = numbers(op) or []
        freed = self._free[position]
        counts = [len(ranges) // 3, len(inputs), len(outputs), len(extra), len(freed)]
        return [native.OPS[name], *counts, *ranges, *inputs, *outputs, *extra, *freed]


def _outputs(instruction: Instruction) -> list[Tensor]:
    assert instruction.op is not None
    return instruction.op.outputs
