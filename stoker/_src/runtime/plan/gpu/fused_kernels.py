"""Fused kernels: on a GPU, consecutive element-wise ops, sums and softmaxes of a recorded step become a few kernels.

A kernel of a small tensor takes two to three microseconds, whatever it computes, and one of a large tensor takes the time to read and write
memory. Both improve if fewer kernels do the same. Ops take part through their `lower` facet, as in the CPU's fused loops. The source of
the kernels (kernel_source.py) is compiled at the first run by NVRTC, which torch brings, and compiled kernels are shared by all
plans. If torch cannot compile, if the shapes or devices of the inputs are not the expected ones, or with STOKER_FUSED_KERNELS=0, the
ops' own kernels run.

Elements are computed by the formulas of torch's own kernels in the same precision. Sums add in a different order, so they differ by
rounding: by at most a few units in the last place of the sum of absolute values.
"""

from __future__ import annotations

import functools
import os
import threading
from collections.abc import Callable, Iterable
from typing import Any

import torch

from stoker._src.base import dtypes
from stoker._src.base.shapes import Shape
from stoker._src.graph.definition import Trait
from stoker._src.graph.tensor import Tensor
from stoker._src.ops.support.moving import moved_to
from stoker._src.ops.support.values import host_value
from stoker._src.runtime.devices import Placement
from stoker._src.runtime.failures import explain_failure
from stoker._src.runtime.plan.gpu.kernel_nodes import BOOL, FLOAT, INT, LONG, KernelBuilder, Node, fits
from stoker._src.runtime.plan.gpu.kernel_source import Launch, Layout, TooLarge, launches
from stoker._src.runtime.plan.instructions import EFFECTS, Host, Instruction, Value, renumber, values_of

ShapeOf = Callable[[Tensor], Shape]
_FEWEST = 2  # fewest ops worth fusing, apart from views
_MOST = 120  # most ops of one run
_MOST_LAYOUTS = 8  # of the inputs of one call, for which kernels are written
_CTYPES = {dtypes.float32: FLOAT, dtypes.bool_: BOOL, dtypes.int32: INT, dtypes.int64: LONG}
_STORED = {FLOAT: torch.float32, BOOL: torch.bool, INT: torch.int32, LONG: torch.int64}


def is_available() -> bool:
    """Whether kernels can be compiled when a program runs."""
    if os.environ.get("STOKER_FUSED_KERNELS") == "0" or torch.version.cuda is None:
        return False
    return hasattr(torch.cuda, "_compile_kernel")


@functools.cache
def compiled(source: str) -> Any:
    """Compiles a kernel. Products and sums are not contracted to one rounding, so that elements equal those of single ops."""
    return torch.cuda._compile_kernel(source, "fused", nvcc_options=["--fmad=false"])


def form(
    instructions: list[Instruction],
    results: Iterable[Value | None],
    shape_of: ShapeOf,
    placement: Placement,
    left: Any = (),
) -> list[Instruction]:
    """Replaces runs of instructions by fused kernels. `results` are the values that the plan returns.

    `left` holds the ids of instructions that run on the host while a step is recorded.
    """
    runs = _Runs(shape_of, placement, left)
    for instruction in instructions:
        runs.add(instruction)
    runs.end()
    wanted = {value for value in results if value is not None}
    formed: list[Instruction] = []
    for run in reversed(runs.ended):  # from the end, so that the values which later instructions use are known
        added = (run.finish(wanted) or run.instructions) if isinstance(run, Run) else [runs.taking_numbers(run)]
        for each in reversed(added):
            if not _is_pure(each) or not wanted.isdisjoint(values_of(each.results)):
                wanted.update(values_of(each.arguments))
                formed.append(each)
    formed.reverse()
    renumber(formed)
    return formed


def _is_pure(instruction: Instruction) -> bool:
    return (
        instruction.kind in ("kernel", "fused_loops")
        and not instruction.steps
        and not instruction.traits & EFFECTS
        and bool(instruction.results)
    )


class _Runs:
    """Sorts instructions into runs. A run stays open until an instruction needs its results or changes a variable."""

    def __init__(self, shape_of: ShapeOf, placement: Placement, left: Any) -> None:
        self._shape_of, self._placement, self._left = shape_of, placement, left
        self._comparisons: dict[Value, Instruction] = {}
        self.ended: list[Run | Instruction] = []
        self._open = self._empty()

    def _empty(self) -> Run:
        return Run(self._shape_of, self._placement, self._comparisons)

    def end(self) -> None:
        if self._open.instructions:
            self.ended.append(self._open)
            self._open = self._empty()

    def taking_numbers(self, instruction: Instruction) -> Instruction:
        """A comparison with a number of the host, as a kernel that takes the number by value. Otherwise the number would be copied."""
        made = next(values_of(instruction.results), None)
        op = instruction.op
        if made is None or op is None or self._comparisons.get(made) is not instruction:
            return instruction
        sizes = [
            self._shape_of(tensor).size
            for argument, tensor in zip(_flat(instruction.arguments), op._inputs)
            if not isinstance(argument, Host) and not argument.is_constant
        ]
        alone = Run(self._shape_of, self._placement, {})
        if len(sizes) == 2 and min(sizes) == 1 < max(sizes) and alone.add(instruction):  # type: ignore[type-var]
            return (alone.finish({made}, fewest=1) or [instruction])[0]
        return instruction

    def add(self, instruction: Instruction) -> None:
        run = self._open
        if id(instruction) not in self._left and len(run.instructions) < _MOST:
            fusible = _is_fusible(instruction, self._shape_of, self._placement)
            # A view of something else costs nothing, and kernels take it with its strides.
            takes = not instruction.traits & Trait.VIEW or not run.made.isdisjoint(values_of(instruction.arguments))
            if fusible and takes and run.add(instruction):
                return
            if fusible is None:
                self._comparisons[next(values_of(instruction.results))] = instruction
        changes = instruction.traits & (Trait.WRITES | Trait.BLOCKING) or instruction.steps
        if changes or not run.made.isdisjoint(values_of(instruction.arguments)):
            self.end()
            if not changes and id(instruction) not in self._left and not instruction.traits & Trait.VIEW:
                if _is_fusible(instruction, self._shape_of, self._placement) and self._open.add(instruction):
                    return
        self.ended.append(instruction)


def _is_fusible(instruction: Instruction, shape_of: ShapeOf, placement: Placement) -> bool | None:
    """Whether an instruction can be part of a kernel. None for a comparison of integers: it is often computed by the host, and kernels
    repeat it for themselves."""
    op = instruction.op
    if op is None or instruction.kind != "kernel" or op.definition.planning.lower is None:
        return False
    if (
        instruction.traits & EFFECTS
        or op.definition.planning.pads is not None
        or op.definition.planning.sized is not None
    ):
        return False
    if placement.requested(op) not in (None, placement.gpu):
        return False
    given = list(values_of(instruction.arguments))
    if len(given) != len(op._inputs) or any(value.handle for value in given):
        return False
    if not all(_ctype(shape_of, tensor) is not None for tensor in op.outputs):
        return False
    flat = list(_flat(instruction.arguments))
    kinds = set()
    for argument, tensor in zip(flat, op._inputs):
        if isinstance(argument, Host) or (argument.is_constant and tensor.dtype.is_integer):
            if not argument_constant(argument):
                return False
            continue
        kind = _ctype(shape_of, tensor)
        if kind is None:
            return False
        kinds.add(kind)
    made = {_ctype(shape_of, tensor) for tensor in op.outputs}
    if not made <= {FLOAT, BOOL}:
        return False
    if FLOAT in made or FLOAT in kinds:
        return True
    return None if len(op.outputs) == 1 else False


def argument_constant(argument: Any) -> bool:
    value = argument.value if isinstance(argument, Host) else argument
    return value.is_constant and isinstance(value.constant, torch.Tensor)


def _flat(arguments: list[Any]) -> Iterable[Any]:
    for argument in arguments:
        if isinstance(argument, list):
            yield from _flat(argument)
        else:
            yield argument


def _ctype(shape_of: ShapeOf, tensor: Tensor) -> str | None:
    return _CTYPES.get(tensor.dtype.base_dtype) if shape_of(tensor).size is not None else None


class Run:
    """Instructions that become one call. It has the nodes of their results."""

    def __init__(self, shape_of: ShapeOf, placement: Placement, comparisons: dict[Value, Instruction]) -> None:
        self._shape_of, self._placement, self._comparisons = shape_of, placement, comparisons
        self._builder = KernelBuilder(shape_of)
        self._nodes: dict[Value, Node] = {}
        self.inputs: list[Value] = []
        self.made: set[Value] = set()
        self.instructions: list[Instruction] = []

    def add(self, instruction: Instruction) -> bool:
        """Adds an instruction. Returns False if it cannot be part of a kernel."""
        inputs, known = len(self.inputs), len(self._nodes)
        nodes = self._lowered(instruction)
        if nodes is None:
            for value in list(self._nodes)[known:]:
                del self._nodes[value]
            del self.inputs[inputs:]
            return False
        for value, node in zip(values_of(instruction.results), nodes):
            self._nodes[value] = node
            self.made.add(value)
        self.instructions.append(instruction)
        return True

    def _lowered(self, instruction: Instruction) -> list[Node] | None:
        op = instruction.op
        assert op is not None and op.definition.planning.lower is not None
        flat = [self._taken(argument, tensor) for argument, tensor in zip(_flat(instruction.arguments), op._inputs)]
        if any(isinstance(item, Node) and not fits(item) for item in flat):
            return None
        try:
            made = op.definition.planning.lower(self._builder, op, *op.definition.group(flat, op.attrs))
        except (AttributeError, TypeError):  # the op takes an operand as numbers, but it is not a constant here
            return None
        if made is None:
            return None
        made = made if isinstance(made, list) else [made]
        if not all(node is not None and fits(node) and node.ctype == FLOAT for node in made):
            return None
        # Another shape than the one known is that of arguments which do not fit: the op's kernel raises the error.
        known = [self._shape_of(tensor).dims for tensor in op.outputs]
        return made if [node.shape for node in made] == known else None

    def _taken(self, argument: Any, tensor: Tensor) -> Any:
        """An argument as `lower` functions get it: a node, or plain numbers where the kernel takes numbers."""
        if isinstance(argument, Host):
            return host_value(argument.value.constant)
        value: Value = argument
        known = self._nodes.get(value)
        if known is not None:
            return known
        dims: Any = self._shape_of(tensor).dims
        kind = _ctype(self._shape_of, tensor)
        assert kind is not None and dims is not None
        if value.is_constant and isinstance(value.constant, torch.Tensor) and value.constant.numel() == 1:
            number = value.constant.item()
            scalar = self._builder.scalar(float(number) if kind in (FLOAT, BOOL) else number)
            known = self._builder.reshape(scalar, dims)
        elif value in self._comparisons and (nodes := self._lowered(self._comparisons[value])) is not None:
            (known,) = nodes
        else:
            known = self._builder.input(dims, kind, len(self.inputs))
            self.inputs.append(value)
        self._nodes[value] = known
        return known

    def finish(self, wanted: set[Value], fewest: int = _FEWEST) -> list[Instruction] | None:
        """Instructions that compute the wanted values: the kernels, then views. None if fusing does not pay."""
        if sum(1 for each in self.instructions if not each.traits & Trait.VIEW) < fewest:
            return None
        apart: list[Instruction] = []
        wanted = set(wanted)
        for each in reversed(self.instructions):  # views share the memory of what they are made of
            if each.traits & Trait.VIEW and not wanted.isdisjoint(values_of(each.results)):
                apart.insert(0, each)
                wanted.update(values_of(each.arguments))
        viewed = {value for each in apart for value in values_of(each.results)}
        results = [
            value
            for each in self.instructions
            for value in values_of(each.results)
            if value in wanted and value not in viewed
        ]
        if not results:
            return None
        booleans = {
            value
            for each in self.instructions
            if each.op is not None
            for value, tensor in zip(values_of(each.results), each.op.outputs)
            if tensor.dtype.base_dtype is dtypes.bool_
        }
        # A result that is a number, an input or another result gets a node of its own.
        seen: set[int] = set()
        roots: list[Node] = []
        for value in results:
            node = self._nodes[value]
            if id(node) in seen or node.kind in ("input", "number"):
                node = self._builder.reshape(node, node.shape)
            seen.add(id(node))
            roots.append(node)
        comparisons = [self._comparisons[value] for value in self._nodes if value in self._comparisons]
        try:
            call = FusedKernels(
                [*comparisons, *self.instructions], self.inputs, results, roots, booleans, self._nodes, self._placement
            )
        except TooLarge:
            return None
        members = [each.op for each in self.instructions if each.op is not None]
        fused = Instruction(members[0], "fused_loops", call, list(self.inputs), results=list(results), members=members)
        return [fused, *apart]


class FusedKernels:
    """The kernels of one run. It is called with the inputs and returns the results."""

    def __init__(
        self,
        instructions: list[Instruction],
        inputs: list[Value],
        results: list[Value],
        roots: list[Node],
        booleans: set[Value],
        nodes: dict[Value, Node],
        placement: Placement,
    ) -> None:
        assert placement.gpu is not None
        self._device = placement.gpu
        self._roots = roots
        self._booleans = {id(node) for value, node in zip(results, roots) if value in booleans}
        self._inputs = [(nodes[value].shape, _STORED[nodes[value].data[1]]) for value in inputs]
        self._outputs = [(node.shape, torch.bool if id(node) in self._booleans else torch.float32) for node in roots]
        self._fallback = Fallback(instructions, inputs, results, placement)
        self._variants: dict[Any, _Variant | None] = {}
        self._lock = threading.Lock()
        self.kernels = len(self.written([_contiguous(shape) for shape, _ in self._inputs]))
        self.obstacle: str | None = None

    def written(self, strides: list[Any], *, emulated: bool = False) -> list[Launch]:
        layouts = [Layout(each) for each in strides]
        return launches(self._roots, layouts, self._booleans, emulated=emulated)

    def __call__(self, *tensors: torch.Tensor) -> tuple[Any, ...]:
        kind, on_device = self._device.type, False
        for tensor, (shape, dtype) in zip(tensors, self._inputs):
            if tensor.shape != shape or tensor.dtype != dtype:
                return self._fallback(*tensors)
            on_device |= tensor.device.type == kind
        if not on_device or self.obstacle is not None:
            return self._fallback(*tensors)
        strides = []
        given: list[Any] = []
        for tensor in tensors:
            if tensor.device.type == kind:
                strides.append(tensor.stride())
                given.append(tensor)
            elif tensor.numel() == 1 and (number := _by_value(tensor)) is not None:
                strides.append(None)
                given.append(number)
            else:
                given.append(moved_to(tensor, self._device))
                strides.append(given[-1].stride())
        try:
            variant = self._variant(tuple(strides))
        except (RuntimeError, OSError, TooLarge) as error:
            self.obstacle = str(error) or type(error).__name__
            return self._fallback(*tensors)
        if variant is None:
            return self._fallback(*tensors)
        outputs = [torch.empty(shape, dtype=dtype, device=self._device) for shape, dtype in self._outputs]
        variant(given, {id(node): output for node, output in zip(self._roots, outputs)}, self._device)
        return tuple(outputs)

    def _variant(self, strides: Any) -> _Variant | None:
        found = self._variants.get(strides)
        if found is None and strides not in self._variants:
            with self._lock:
                if len(self._variants) >= _MOST_LAYOUTS:
                    return None
                found = self._variants[strides] = _Variant(self.written(list(strides)))
        return found


class _Variant:
    """Compiled kernels for inputs of some layouts."""

    def __init__(self, written: list[Launch]) -> None:
        self._kernels = [(compiled(each.source), each) for each in written]

    def __call__(self, given: list[Any], buffers: dict[int, torch.Tensor], device: Any) -> None:
        for kernel, launch in self._kernels:
            arguments = [given[position] for position in launch.inputs]
            for node in launch.nodes:
                if id(node) not in buffers:
                    buffers[id(node)] = torch.empty(node.size, dtype=torch.float32, device=device)
                arguments.append(buffers[id(node)])
            kernel((launch.blocks, 1, 1), (launch.threads, 1, 1), arguments)


def _by_value(tensor: torch.Tensor) -> Any:
    """A number that a kernel takes as `double` or `int`; None if it does not fit."""
    number = tensor.item()
    if tensor.dtype in (torch.float32, torch.bool):
        return float(number)
    return number if -(1 << 31) <= number < 1 << 31 else None


def _contiguous(shape: tuple[int, ...]) -> tuple[int, ...]:
    return torch.empty(shape, device="meta").stride()


class Fallback:
    """Runs fused ops by their own kernels."""

    def __init__(
        self, instructions: list[Instruction], inputs: list[Value], results: list[Value], placement: Placement
    ) -> None:
        self.instructions, self.inputs, self.results = instructions, inputs, results
        self._placement = placement

    @functools.cached_property
    def _kernels(self) -> list[Any]:
        return [self._placement.kernel(each.op, each.kernel)[1] for each in self.instructions if each.op is not None]

    def __call__(self, *tensors: Any) -> tuple[Any, ...]:
        known: dict[Value, Any] = dict(zip(self.inputs, tensors))
        for instruction, kernel in zip(self.instructions, self._kernels):
            arguments = [self._found(argument, known) for argument in instruction.arguments]
            assert instruction.op is not None
            try:
                outcome = kernel(*arguments, **instruction.keywords)
            except Exception as error:
                raise explain_failure(error, instruction.op) from error
            known.update(zip(values_of(instruction.results), instruction.op.definition.flatten_results(outcome)))
        return tuple(known[value] for value in self.results)

    def _found(self, argument: Any, known: dict[Value, Any]) -> Any:
        if isinstance(argument, list):
            return [self._found(item, known) for item in argument]
        if isinstance(argument, Host):
            return host_value(argument.value.constant)
        return self._placement.data(argument.constant) if argument.is_constant else known[argument]


def summary(instructions: Iterable[Instruction]) -> list[str]:
    """Says how many ops run as fused kernels."""
    calls = [each for each in instructions if each.kind == "fused_loops" and isinstance(each.kernel, FusedKernels)]
    if not calls:
        return []
    kernels, ops = sum(each.kernel.kernels for each in calls), sum(len(each.members) for each in calls)
    lines = [f"fused kernels: {kernels} run {ops} ops"]
    obstacles = {each.kernel.obstacle for each in calls if each.kernel.obstacle is not None}
    return lines + [f"fused kernels that cannot be compiled: {obstacle}" for obstacle in sorted(obstacles)]
