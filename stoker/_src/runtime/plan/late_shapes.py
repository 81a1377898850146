"""Parts of a plan whose shapes depend on data: compiled for the shapes that turn up while the plan runs.

The number of rows of a dequeued batch, of a segment sum or of a masked tensor is not known when a plan is compiled. The pure ops that
follow work on shapes that depend on it, so nothing folds or fuses. Such ops become one instruction, a `LateStep`: a step of its own,
compiled for the shapes of its inputs once they have been seen twice (more often, if there are many others). Shapes that change from run to run do not cause compilation: those
runs take a step that holds for any shapes.

Values whose sizes vary independently must not meet in one key. A region therefore grows from the results of one instruction, or from
what the plan is given (in the body of a loop also elements of lists), and an op whose result has a size that does not follow from its
inputs' shapes (the number of segments) ends it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from stoker._src.base import dtypes, forking
from stoker._src.base.errors import InvalidArgumentError
from stoker._src.base.shapes import Shape
from stoker._src.graph.definition import Trait
from stoker._src.graph.shape_inference import infer_shapes
from stoker._src.graph.tensor import Operation, Tensor
from stoker._src.runtime.plan import small_ops
from stoker._src.runtime.plan.instructions import EFFECTS, Instruction, Value, renumber, values_of
from stoker._src.runtime.plan.known_shapes import Known
from stoker._src.runtime.plan.sharing import equal_values

_FEWEST = 3  # fewest ops that could be fused in a region worth compiling
_MOST_STEPS = 32  # steps of one region
_DOUBLING = 8  # number of steps after which shapes must have been seen twice as often to have one
_MOST_SEEN = 64  # shapes to remember; a program that shows more of them has no fixed shapes

ShapeOf = Callable[[Tensor], Shape]


class LateStep:
    """A region as a function of tensors. `compile(known)` compiles it for known shapes of its inputs, `compile(None)` for any shapes."""

    def __init__(
        self, compile: Callable[[list[Known] | None], Any], shapes: list[Shape], bound: list[Any], steps: list[Any]
    ) -> None:
        self._compile, self._shapes, self._bound = compile, shapes, bound
        self._late = [i for i, shape in enumerate(shapes[: len(shapes) - len(bound)]) if not shape.known]
        self._steps = steps  # all compiled steps, so that failures are found in them
        self._functions: dict[Any, Any] = {}
        self._general: Any = None
        self._seen: dict[Any, int] = {}  # how often
        self._lock = forking.lock()

    def __call__(self, *tensors: Any) -> tuple[Any, ...]:
        key = tuple([tensors[i].shape for i in self._late])
        function = self._functions.get(key)
        if function is None:
            function = self._function(key)
        return function(None, *tensors, *self._bound)

    def _function(self, key: tuple[Any, ...]) -> Any:
        with self._lock:
            if key in self._functions:
                return self._functions[key]
            times = self._seen.get(key, 0) + 1
            if len(self._functions) < _MOST_STEPS and times >= 2 << len(self._functions) // _DOUBLING:
                shapes = list(self._shapes)
                for i, shape in zip(self._late, key):
                    shapes[i] = Shape(shape)
                function = self._functions[key] = self._made([Known(shape) for shape in shapes])
                return function
            if times > 1 or len(self._seen) < _MOST_SEEN:
                self._seen[key] = times
            if self._general is None:
                self._general = self._made(None)
            return self._general

    def _made(self, known: list[Known] | None) -> Any:
        step = self._compile(known)
        self._steps.append(step)
        return step.function


class _Region:
    """Pure instructions that become one. `inputs` are the tensors that it takes from elsewhere, with their values in the plan."""

    def __init__(self) -> None:
        self.members: list[Instruction] = []
        self.ops: set[Operation] = set()
        self.made: set[Value] = set()
        self.inputs: dict[Tensor, Value] = {}
        self.origins: set[Value] = set()  # inputs of unknown shapes

    def add(self, instruction: Instruction, inputs: dict[Tensor, Value], helpers: list[Operation]) -> None:
        assert instruction.op is not None
        self.members.append(instruction)
        self.ops.update((instruction.op, *helpers))
        self.made.update(values_of(instruction.results))
        self.inputs.update(inputs)

    def pays(self) -> bool:
        """Whether there are enough ops that could be fused, and more than small ops do as well for any shapes.

        Fused loops compute floats, and integers only between them.
        """
        ops = [each.op for each in self.members if each.op is not None]
        if all(map(small_ops.do_as_well, ops)):
            return False
        fused = [op for op in ops if op.definition.planning.lower is not None and not op.definition.traits & Trait.VIEW]
        return len(fused) >= _FEWEST and any(t.dtype.is_floating for op in fused for t in (*op._inputs, *op.outputs))


def form(
    instructions: list[Instruction],
    results: list[Value | None],
    shape_of: ShapeOf,
    numbers: dict[Tensor, Instruction],
    compiler: Any,
) -> list[Instruction]:
    """Replaces regions by one instruction each. `results` are the values that the plan returns.

    `numbers` are vectors that are only passed as plain numbers; they have no instruction. `compiler.compile_region(fetches, feeds,
    bound, known)` compiles the ops between some tensors to a step.
    """
    if compiler.placement.gpu is not None:
        return instructions
    divides = any(each.op is not None and each.op.definition.planning.sized_by for each in instructions)
    equal = equal_values(instructions, set(), shape_of) if divides else {}
    regions = _Regions(shape_of, numbers, equal)
    for instruction in instructions:
        regions.add(instruction)
    regions.end(list(regions.open))
    if not any(isinstance(each, _Region) and each.pays() for each in regions.ended):
        return instructions
    wanted = {value for value in results if value is not None}
    formed: list[Instruction] = []
    for each in reversed(regions.ended):
        if isinstance(each, _Region):
            added = each.members
            if each.pays():
                added = _finished(each, wanted, shape_of, compiler.compile_region) or added
        else:
            added = [each]
        for instruction in added:
            wanted.update(values_of(instruction.arguments))
        formed.extend(reversed(added))
    formed.reverse()
    renumber(formed)
    return formed


class _Regions:
    """Sorts instructions into regions. Other instructions move ahead of the open regions, which do not depend on each other."""

    def __init__(self, shape_of: ShapeOf, numbers: dict[Tensor, Instruction], equal: dict[Value, Value]) -> None:
        self.shape_of, self.numbers, self.equal = shape_of, numbers, equal
        self.ended: list[_Region | Instruction] = []
        self.open: list[_Region] = []
        self._makers: dict[Value, frozenset[Any]] = {}  # what decides about the sizes of a value of unknown shape

    def end(self, regions: list[_Region]) -> None:
        for region in regions:
            self.open.remove(region)
            self.ended.append(region)
            self._makers.update(dict.fromkeys(region.made, self._of(region.origins)))

    def add(self, instruction: Instruction) -> None:
        arguments = set(values_of(instruction.arguments))
        given = self._given(instruction)
        if given is None or not self._join(instruction, arguments, *given):
            changes = bool(instruction.traits & (Trait.WRITES | Trait.BLOCKING) or instruction.steps)
            self.end([each for each in self.open if changes or not each.made.isdisjoint(arguments)])
            follows = self._follows(instruction)
            for i, value in enumerate(values_of(instruction.results)):
                self._makers[value] = follows or frozenset((_maker(instruction, i, self.equal),))
            self.ended.append(instruction)

    def _follows(self, instruction: Instruction) -> frozenset[Any]:
        """What decides about the sizes of a result that follow from the shapes of the inputs; empty if that is not so.

        Ops on strings are in no region, but what is computed from the same strings (their hashes, a mask) has sizes in common.
        """
        op = instruction.op
        if op is None or instruction.kind != "kernel" or instruction.steps or instruction.traits & EFFECTS:
            return frozenset()
        if not any(tensor.dtype.base_dtype is dtypes.string for tensor in op._inputs):
            return frozenset()
        if self._has_new_size(instruction, []):
            return frozenset()
        return self._of({value for value in values_of(instruction.arguments) if not value.is_constant})

    def _of(self, values: set[Value]) -> frozenset[Any]:
        """What decides about the sizes of values that no open region makes."""
        return frozenset().union(*[self._makers.get(value, (None,)) for value in values])

    def _given(self, instruction: Instruction) -> tuple[dict[Tensor, Value], list[Operation]] | None:
        """The inputs of a pure instruction and the ops that make its plain numbers; None if it cannot be in a region."""
        op = instruction.op
        if op is None or instruction.kind != "kernel" or instruction.steps or instruction.traits & EFFECTS:
            return None
        definition = op.definition
        if definition.needs_context or definition.planning.keeps or definition.planning.calls:
            return None
        if not op.outputs or not all(_is_data(tensor) for tensor in (*op._inputs, *op.outputs)):
            return None
        inputs: dict[Tensor, Value] = {}
        helpers: list[Operation] = []
        for arg, argument, group in zip(
            definition.inputs, instruction.arguments, definition.group(op._inputs, op.attrs)
        ):
            tensors, values = group if arg.is_list else [group], list(values_of([argument]))
            if isinstance(argument, list) and not arg.is_list:  # a vector of numbers
                deferred = self.numbers.get(group)
                if deferred is None or deferred.op is None:
                    return None
                helpers.append(deferred.op)
                tensors = list(deferred.op._inputs)
            if len(tensors) != len(values) or any(value.handle for value in values):
                return None
            inputs.update(zip(tensors, values))
        return inputs, helpers

    def _join(
        self, instruction: Instruction, arguments: set[Value], inputs: dict[Tensor, Value], helpers: list[Operation]
    ) -> bool:
        """Adds an instruction to a region. Returns False if it belongs to none."""
        variable = {
            value for value in arguments if not value.is_constant and not any(value in each.made for each in self.open)
        }
        late = {value for tensor, value in inputs.items() if value in variable and not self.shape_of(tensor).known}
        touched = [each for each in self.open if not each.made.isdisjoint(arguments)]
        if not touched:
            touched = [each for each in self.open if late and late <= each.origins]
        if not touched and not late:
            return False
        if self._has_new_size(instruction, touched):
            return False
        if len(touched) > 1 and len({self._of(each.origins) for each in touched}) == 1:
            touched = [self._united(touched)]
        if len(touched) == 1 and self._of(late) <= self._of(touched[0].origins):
            region = touched[0]
        else:
            self.end([each for each in touched if not each.made.isdisjoint(arguments)])
            region = _Region()
            self.open.append(region)
            late |= {
                value for tensor, value in inputs.items() if not value.is_constant and not self.shape_of(tensor).known
            }
        external = {tensor: value for tensor, value in inputs.items() if value not in region.made}
        if any(_source(tensor).op not in region.ops for tensor in inputs if tensor not in external):
            return False  # the plan takes an equal value instead of this tensor's own
        region.origins |= late
        region.add(instruction, external, helpers)
        return True

    def _united(self, regions: list[_Region]) -> _Region:
        """One region of several open ones, about whose sizes the same decides."""
        first, *others = regions
        for other in others:
            self.open.remove(other)
            first.members += other.members
            first.ops |= other.ops
            first.made |= other.made
            first.inputs.update(other.inputs)
            first.origins |= other.origins
        return first

    def _has_new_size(self, instruction: Instruction, touched: list[_Region]) -> bool:
        """Whether a result has a size that the shapes of the inputs do not determine. It is tried with ones for unknown sizes."""
        op = instruction.op
        assert op is not None
        if all(self.shape_of(tensor).known for tensor in op.outputs):
            return False
        made = {tensor for each in touched for member in each.ops for tensor in member.outputs}
        if any(tensor.dtype.is_integer and tensor in made for tensor in op._inputs):
            return False  # perhaps a size that was computed from shapes
        try:
            shapes = infer_shapes(op, self._ones)
        except (InvalidArgumentError, ValueError, LookupError, ArithmeticError, TypeError, AttributeError):
            return False
        return not all(shape.known for shape in shapes)

    def _ones(self, tensor: Tensor) -> Shape:
        shape = self.shape_of(tensor)
        return shape if shape.dims is None else Shape(1 if dim is None else dim for dim in shape.dims)


def _finished(
    region: _Region, wanted: set[Value], shape_of: ShapeOf, compile_region: Callable[..., Any]
) -> list[Instruction] | None:
    """The instruction of a region; None if nothing needs its results."""
    ops = [each.op for each in region.members if each.op is not None]
    made = {
        value: tensor
        for each in region.members
        if each.op is not None
        for value, tensor in zip(values_of(each.results), each.op.outputs)
        if value in wanted
    }
    if not made:
        return None
    given = [item for item in region.inputs.items() if not item[1].is_constant]
    constant = [item for item in region.inputs.items() if item[1].is_constant]
    feeds = [tensor for tensor, _ in (*given, *constant)]
    bound = {len(given) + i: value.constant for i, (_, value) in enumerate(constant)}
    fetches, shapes = list(made.values()), [shape_of(tensor) for tensor in feeds]

    def compile(known: list[Known] | None) -> Any:
        return compile_region(fetches, feeds, bound, known)

    instruction = Instruction(
        ops[0], "fused_loops", None, [value for _, value in given], results=list(made), members=ops
    )
    instruction.kernel = LateStep(compile, shapes, list(bound.values()), instruction.steps)
    return [instruction]


def _maker(instruction: Instruction, position: int, equal: dict[Value, Value]) -> Any:
    """What decides about the sizes of a result: the instruction, or the values that the same op may sort other data by.

    `equal` has for a value that is computed again the one that was computed first.
    """
    op = instruction.op
    by = None if op is None or instruction.kind != "kernel" else op.definition.planning.sized_by
    if op is None or by is None:
        return id(instruction)
    if not by:
        return None  # as for the values that the plan is given
    return op.definition, tuple(equal.get(each, each) for each in (instruction.arguments[i] for i in by)), position


def _source(tensor: Tensor) -> Tensor:
    """The tensor that an identity passes on."""
    while (
        tensor.op.definition.traits & Trait.PASSES
        and tensor.op._inputs
        and not tensor.op._inputs[0].dtype._is_ref_dtype
    ):
        tensor = tensor.op._inputs[0]
    return tensor


def _is_data(tensor: Tensor) -> bool:
    return tensor.dtype.base_dtype not in (dtypes.string, dtypes.resource, dtypes.variant)
