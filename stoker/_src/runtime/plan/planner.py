"""Turns fetches and feeds into a list of instructions: prunes, orders, folds constants, resolves aliasing, and groups updates.

`emit.py` turns the result into straight-line Python. The planner does not know any op by name. It uses only the op's
definition (its traits, kernel and batch kernel).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import torch

from stoker._src.base import dtypes
from stoker._src.base.errors import InvalidArgumentError
from stoker._src.base.shapes import UNKNOWN_SHAPE, Shape
from stoker._src.graph.definition import Trait
from stoker._src.graph.interchange.function_def import function_refs
from stoker._src.graph.planning import Elements
from stoker._src.graph.shape_inference import infer_shapes
from stoker._src.graph.static_values import constant_value
from stoker._src.graph.tensor import Operation, Tensor
from stoker._src.ops.support.values import host_value, to_numpy, torch_dtype
from stoker._src.ops.variables.state_ops import VariableState
from stoker._src.runtime.failures import kernel_of
from stoker._src.runtime.plan import (
    absorption,
    background,
    grouping,
    late_shapes,
    loop_runs,
    memory,
    mixed_precision,
    parts,
    products_in_parts,
    small_ops,
)
from stoker._src.runtime.plan.call_outputs import CallOutputs
from stoker._src.runtime.plan.gpu import fused_kernels, padding
from stoker._src.runtime.plan.gpu.padding import CannotPad, padded_outputs
from stoker._src.runtime.plan.inlining import Inlining
from stoker._src.runtime.plan.instructions import (
    CONSTANT,
    EFFECTS,
    FEED,
    LONG,
    Host,
    Instruction,
    Value,
    values_of,
)
from stoker._src.runtime.plan.known_shapes import Known
from stoker._src.runtime.plan.one_sided import Guards, alive, find_guards, guards_of
from stoker._src.runtime.plan.ordering import is_handle, updates_last
from stoker._src.runtime.plan.pruning import in_order, passed_through, prune
from stoker._src.runtime.plan.reordering import reorder
from stoker._src.runtime.plan.sharing import share
from stoker._src.runtime.plan.zeros import Zeros

_OBJECTS = (dtypes.string, dtypes.resource, dtypes.variant)  # dtypes whose values are not torch tensors
_FOLD_LIMIT = 1 << 20  # most elements of a folded constant


def _merged(a: Shape, b: Shape) -> Shape:
    """Merges two shapes. Contradicting parts become unknown; if that matters, the run raises the error."""
    try:
        return a.merge(b)
    except (InvalidArgumentError, ValueError):
        return UNKNOWN_SHAPE


def _of_shape(like: Tensor, dims: tuple[Any, ...]) -> torch.Tensor:
    dtype = torch.float32 if like.dtype in _OBJECTS else torch_dtype(like.dtype.base_dtype)
    return torch.zeros((), dtype=dtype).expand(dims)


class Planner:
    """Builds the instructions of one plan. `node_context(op)` creates the `ctx` for kernels that take one.

    A function's body is planned the same way, with its inputs as the feeds. `bound` holds the values of feeds that are known at
    planning time (a body's captured variables and constants). `compile_function` compiles the functions that ops call.
    """

    def __init__(
        self,
        fetches: list[Any],
        targets: list[Operation],
        feeds: list[Tensor],
        node_context: Any,
        compile_function: Any = None,
        *,
        bound: dict[int, Any] | None = None,
        is_function: bool = False,
        is_kept: bool = False,
        with_fused_loops: bool = True,
        known: list[Known] | None = None,
        lends: bool = False,
        copies: list[Callable[[Any], Any]] | None = None,
        with_late_shapes: bool = True,
        is_region: bool = False,
        arrange: Callable[[Planner], list[Instruction]] | None = None,
        pads: str = "",
        is_loop: bool = False,
        with_small_ops: bool = True,
    ) -> None:
        self.fetches, self.targets, self.feeds = fetches, targets, feeds
        self._fed = set(feeds)
        self.node_context, self.compile_function = node_context, compile_function
        self.bound = bound or {}
        self.is_function = is_function
        # The owners of memory that results may share. A body's caller knows its inputs and handles its constants. A body that is
        # called repeatedly must return copies of its constants.
        self.may_share = frozenset((FEED,) if is_kept else (FEED, CONSTANT) if is_function else ())
        self.lends = lends  # whether results may share any memory, because the caller only reads them at once
        self.copies = copies  # what copies each result that shares memory, if it is another function than `copied`
        self.with_fused_loops = with_fused_loops
        self.with_late_shapes = with_late_shapes and with_fused_loops
        self.is_region = is_region  # a part of another plan, which handles control inputs
        self._is_loop = is_loop  # the body of a loop, which may run natively if all of it is fused
        self.with_small_ops = with_small_ops and not pads
        self._pads = pads  # which sizes that depend on data are padded (padding.py)
        self._padded: set[Tensor] = set()
        self._arrange = arrange  # returns the instructions in another order (division.py)
        # Shapes that are known in addition to the graph, because the shapes of the feeds are known.
        self._shapes: dict[Tensor, Shape] = {tensor: each.shape for tensor, each in zip(feeds, known or ())}
        self._elements: dict[Tensor, Elements] = {
            tensor: each.elements for tensor, each in zip(feeds, known or ()) if tensor.dtype is dtypes.variant
        }
        self.written: frozenset[Any] = frozenset()
        self.needed: set[Operation] = set()
        self.values: dict[Tensor, Value] = {}
        self.instructions: list[Instruction] = []
        self.feed_values: list[Value] = []
        self.results: list[Value | None] = []
        self.ops: list[Operation] = []
        self.planned: list[Operation] = []  # the same, with the replacements of the mixed precision rewrite
        self._ordered: list[Operation] = []
        self._guards: Guards = {}
        self._stand_ins: dict[Operation, list[Operation]] = {}
        self._reads: dict[Any, Value] = {}  # variable -> its value, valid until the next write
        self._fetched_tensors = set(fetches)
        self._numbers: dict[Tensor, Instruction] = {}  # vectors of numbers that have not been needed as tensors yet
        self._call_outputs: CallOutputs
        self._has_replacements = False  # whether an output was replaced by an equal value
        self.reads_variables = self.writes_variables = self.blocks = False
        self.loops = (
            False  # whether it may run for long (a loop, many instructions), so that the run must be cancellable
        )
        self._labels: dict[str, int] = {}
        self._zeros = Zeros(self)
        self._inlining = Inlining(self)

    def build(self) -> Planner:
        fed = self._fed
        for position, tensor in enumerate(self.feeds):
            value = self._value("feed", -1, tensor)
            value.roots = frozenset((FEED,))
            if position in self.bound:
                value.is_constant, value.constant = True, self.bound[position]
                value.handle = value.handle or isinstance(value.constant, VariableState)
                value.roots = frozenset((CONSTANT,))
            self.values[tensor] = value
            self.feed_values.append(value)
        fetched = [tensor for tensor in self.fetches if tensor is not None]
        self.needed, passed = prune(fetched, self.targets, fed, waits=not self.is_region)
        # An op that is only waited for does not run, but its edges order the ops that do.
        self._ordered = in_order(self.needed | passed, fed)
        if not self.is_function:
            self._ordered = updates_last(self._ordered, fed)
        self._guards = find_guards(self._ordered, fed)
        if self._guards:
            self._also_needs_guards(fed)
        self.ops = [op for op in self._ordered if op in self.needed]
        ordered = self._rewritten(fed)
        self._call_outputs = CallOutputs(ordered, self.needed, self._fetched_tensors, self.compile_function.used_inputs)
        self._plan_all(ordered)
        if not self._padded.isdisjoint(self.fetches):
            raise CannotPad("a padded tensor is fetched")
        for position, tensor in enumerate(self.fetches):
            # A reference is fetched after all updates of the step, because TensorFlow returns the variable's own buffer.
            self.results.append(None if tensor is None else self._fetched(position, tensor))
        if self.with_late_shapes and not (self._stand_ins or self._guards):
            self.instructions = late_shapes.form(
                self.instructions, self.results, self.shape_of, self._numbers, self.compile_function
            )
        if self.with_fused_loops:
            self.instructions = share(
                self.instructions, self.results, set(self.targets), self.shape_of, replaced=self._has_replacements
            )
        self.instructions = reorder(self.instructions, self.results)
        if self.with_fused_loops and self.compile_function.placement.gpu is None:
            self.instructions = parts.form(self.instructions, self.results, self.shape_of, self)
            self.instructions = absorption.absorb(self.instructions, self.results)
            self.instructions = grouping.group(self.instructions)
            self.instructions = loop_runs.form(
                self.instructions,
                self.results,
                self.shape_of,
                updates=not self.is_function,
                repeats=self._is_loop,
                carried=self._carried() if self._is_loop else frozenset(),
            )
            self.instructions = products_in_parts.form(self.instructions, self.results, self.shape_of)
            if self.with_small_ops:
                self.instructions = small_ops.form(self.instructions, self.results, self.shape_of)
        elif self.is_function and self.compile_function.fuses_kernels:
            self.instructions = fused_kernels.form(
                self.instructions, self.results, self.shape_of, self.compile_function.placement
            )
        if self._arrange is not None:
            self.instructions = self._arrange(self)
        self.instructions = background.split(self.instructions)
        self.written = memory.settle(self.instructions, self.results, self.shape_of)
        self.loops |= len(self.instructions) > LONG
        return self

    def _carried(self) -> frozenset[Value]:
        """Returns the vectors and matrices of integers that each iteration of this loop passes on to the next."""
        return frozenset(
            value
            for tensor, value, result in zip(self.feeds, self.feed_values, self.results)
            if tensor.dtype.is_integer and self.shape_of(tensor).dims and result is not value
        )

    def _plan_all(self, ordered: list[Operation]) -> None:
        for op in self._grouped(ordered):
            if isinstance(op, list):
                self._batch(op)
            elif op in self.needed:
                self._plan(op)

    def plan_part(self, ordered: list[Operation], needed: set[Operation], outputs: list[Tensor]) -> None:
        """Plans the ops of a function, whose inputs have values, as a part of this plan."""
        self.needed |= needed
        self._fetched_tensors |= set(outputs)
        self._call_outputs.add(ordered, needed, outputs)
        self._plan_all(ordered)

    def _rewritten(self, fed: set[Tensor]) -> list[Operation]:
        """Returns the ops in order. Ops that the session runs in 16 bits are replaced by 16-bit copies."""
        precision = getattr(self.compile_function, "precision", None)
        if precision is None or self._guards:
            self.planned = self.ops
            return self._ordered
        rewritten = mixed_precision.rewrite(
            precision, self._ordered, self.needed, self.fetches, fed, feeds_are_data=not self.is_function
        )
        self._stand_ins = rewritten.stand_ins
        self.needed = self.needed.union(*rewritten.stand_ins.values())
        self.planned = [op for op in rewritten.ops if op in self.needed]
        return rewritten.ops

    def dependents(self, op: Operation) -> set[Operation]:
        """Returns the ops of this plan that must wait for `op`."""
        return self.behind([op])

    def behind(self, ops: list[Operation]) -> set[Operation]:
        """Returns the ops of this plan that must wait for one of `ops`."""
        sources = set(ops)
        found: set[Operation] = set()
        for each in self._ordered:
            before = {t.op for t in each._inputs}.union(each._control_inputs)
            if not (sources.isdisjoint(before) and found.isdisjoint(before)):
                found.add(each)
        return found.union(*[[*self._stand_ins.get(each, ()), *self._inlining.parts(each)] for each in found])

    # -- one op --------------------------------------------------------------------------------------------------

    def _plan(self, op: Operation) -> None:
        definition = op.definition
        traits = definition.traits
        if definition.kernel_fn is None:
            raise InvalidArgumentError(None, op, f"Op type {definition.name} cannot be executed: it has no kernel.")
        if traits & Trait.SOURCE:
            self.settle(op, [definition.kernel_fn(**self._keywords(op))])
            return
        if _is_snapshot(op):
            # The value of a 1.x variable. Each consumer reads the variable at its own position, because with TensorFlow's shared
            # buffers a consumer sees the updates that it waits for.
            self.values.setdefault(op.outputs[0], self.values[op._inputs[0]])
            return
        if self._shapes:
            self._infer(op)
            if self._pads:
                self._pad(op)
            if definition.planning.elements is not None:
                self._infer_elements(op)
        if op in self._guards:
            self._plan_guarded(op)
            return
        if self._zeros.plan(op):  # before they become constants like others
            return
        if (self._shapes or self._is_loop) and traits & Trait.OF_SHAPES and self._fold_shapes(op):
            return
        if definition.planning.equals is not None and self.with_fused_loops:
            self._replace_outputs(op)
        arguments = self._arguments(op)
        if traits & Trait.PASSES:
            passed = arguments[0]
            self.values.setdefault(op.outputs[0], passed)
            self.note(op.outputs[0], self.known(op._inputs[0]))
            self._zeros.passed(op)
            return
        if not op.outputs and not op._inputs and not traits:
            return  # a NoOp only affects the order
        if definition.planning.calls:
            self._call(op, arguments)
            return
        if not traits & EFFECTS and self._fold(op, arguments):
            return
        if definition.planning.reads_variable and self._read_again(op, arguments[0]):
            return
        specialize = definition.planning.specialize
        special = None if specialize is None else specialize(op)
        if definition.planning.pads is not None and op.outputs[0] in self._padded:
            instruction = Instruction(op, "kernel", definition.planning.pads, arguments, self._keywords(op))
        elif special is None:
            kernel = kernel_of(op)
            instruction = Instruction(op, "kernel", kernel, arguments, self._keywords(op))
        else:
            instruction = Instruction(op, "kernel", special, arguments)
        if definition.planning.is_sum and instruction.kind == "kernel":
            self._zeros.leave_out(instruction)
        if self._is_of_numbers(op):
            self._numbers[op.outputs[0]] = instruction
        else:
            self._append(instruction, traits)
            self._name_results(instruction, op)

    def _replace_outputs(self, op: Operation) -> None:
        """Replaces the outputs that equal other tensors. If no output remains in use, `share` removes the instruction."""
        assert op.definition.planning.equals is not None
        for tensor, same in zip(op.outputs, op.definition.planning.equals(op, self) or ()):
            if same is not None and tensor not in self.values:
                self.values[tensor] = self.taken(same, reference=False)
                self._has_replacements = True

    def made_by(self, tensor: Tensor) -> Tensor | None:
        """Returns the tensor that an op computes, skipping identities; None if it is fed."""
        while tensor not in self._fed and tensor.op.definition.traits & Trait.PASSES and tensor.op._inputs:
            if tensor.op._inputs[0].dtype._is_ref_dtype:
                break
            tensor = tensor.op._inputs[0]
        return None if tensor in self._fed else tensor

    def _is_of_numbers(self, op: Operation) -> bool:
        """Whether a vector is created only when it is needed as a tensor. (On a GPU the host would wait for each number.)"""
        of_numbers = op.definition.planning.of_numbers
        if of_numbers is None or self.compile_function.placement.gpu is not None:
            return False
        return of_numbers(op) and op.outputs[0] not in self.values

    # -- ops on one side of a Switch -----------------------------------------------------------------------------

    def _also_needs_guards(self, fed: set[Tensor]) -> None:
        """Adds the Switch nodes that decide whether an op of this plan runs, also where a control edge alone leads to them."""
        guards = [tensor for op in self.needed for tensor in self._guards.get(op, ())]
        fetches = [tensor for tensor in self.fetches if tensor is not None]
        self.needed, passed = prune([*fetches, *guards], self.targets, fed)
        self._ordered = in_order(self.needed | passed, fed)

    def _plan_guarded(self, op: Operation) -> None:
        definition = op.definition
        arguments = self._arguments(op)
        if definition.planning.calls:
            self._call(op, arguments)
            instruction = self.instructions[-1]
        else:
            instruction = Instruction(op, "kernel", kernel_of(op), arguments, self._keywords(op))
            self._append(instruction, definition.traits)
            self._name_results(instruction, op)
        instruction.kind = "guarded"
        instruction.arguments = [*_without_host(arguments), [self.values[tensor] for tensor in self._guards[op]]]

    def _fetched(self, position: int, tensor: Tensor) -> Value:
        """Returns a fetched value. One that may be dead passes a check."""
        taken = self.taken(tensor, reference=False)
        guards = () if tensor in self._fed else guards_of(tensor, self._guards)
        if not guards:
            return taken
        instruction = Instruction(
            tensor.op, "fetched", alive(position), [taken, [self.values[each] for each in guards]]
        )
        self._append(instruction, Trait.VIEW)
        value = self._value("fetched", len(self.instructions) - 1)
        instruction.results = [value]
        return value

    # -- shapes --------------------------------------------------------------------------------------------------

    def shape_of(self, tensor: Tensor) -> Shape:
        """Returns a tensor's shape as far as it is known from the graph or from the shapes of the feeds."""
        return self._shapes.get(tensor, tensor.static_shape)

    def _infer(self, op: Operation) -> None:
        """Records the shapes of an op's outputs that follow from the known shapes."""
        if op.definition.shape_rule.function is None or all(t.static_shape.known for t in (*op.inputs, *op.outputs)):
            return
        try:
            shapes = [
                tensor.static_shape.merge(shape)
                for tensor, shape in zip(op.outputs, infer_shapes(op, self.shape_of, self.known_value))
            ]
        except (InvalidArgumentError, ValueError, LookupError, ArithmeticError, TypeError, AttributeError):
            # A shape that was set by hand is wrong. Nothing is assumed then; if it matters, the run raises the error.
            shapes = [UNKNOWN_SHAPE] * len(op.outputs)
        self._shapes.update(zip(op.outputs, shapes))

    def elements_of(self, tensor: Tensor) -> Elements:
        """Returns what is known of a list's elements."""
        return self._elements.get(tensor, Elements())

    def known(self, tensor: Tensor) -> Known:
        return Known(self.shape_of(tensor), self.elements_of(tensor))

    def note(self, tensor: Tensor, known: Known) -> None:
        if not self._shapes:
            return
        if tensor.dtype is dtypes.variant:
            self._elements[tensor] = known.elements
        else:
            self._shapes[tensor] = _merged(tensor.static_shape, known.shape)

    def _infer_elements(self, op: Operation) -> None:
        """Records what is known of the list that an op produces, and the shapes of the tensors it takes out."""
        rule = op.definition.planning.elements
        assert rule is not None
        for tensor, found in zip(op.outputs, rule(op, self)):
            if isinstance(found, Elements):
                self._elements[tensor] = found
            elif found is not None:
                self._shapes[tensor] = _merged(self.shape_of(tensor), found)

    def known_value(self, tensor: Tensor) -> np.ndarray | None:
        """Returns the value of a tensor that is constant in this plan; None if it is not."""
        value = self.values.get(tensor)
        if value is None or not value.is_constant or not isinstance(value.constant, torch.Tensor):
            return constant_value(tensor)
        return to_numpy(value.constant)

    def _fold_shapes(self, op: Operation) -> bool:
        """Folds an op that depends only on the shapes of its inputs."""
        shapes = [self.shape_of(tensor) for tensor in op._inputs]
        if not all(shape.known for shape in shapes) or any(tensor.dtype in _OBJECTS for tensor in op.outputs):
            return False
        if any(tensor.dtype is dtypes.variant for tensor in op._inputs):
            return False
        if any((self.shape_of(tensor).size or 0) > _FOLD_LIMIT for tensor in op.outputs):
            return False
        # Tensors of one element, expanded without memory: the kernel uses only their shape and dtype.
        given = [_of_shape(tensor, shape.dims or ()) for tensor, shape in zip(op._inputs, shapes)]
        results = op.definition.kernel_fn(*op.definition.group(given, op.attrs), **self._keywords(op))  # type: ignore[misc]
        self.settle(op, op.definition.flatten_results(results))
        return True

    def _pad(self, op: Operation) -> None:
        """Records which outputs of an op are padded.

        Raises:
            CannotPad: the result of the op would depend on the padding.
        """
        given = [tensor in self._padded for tensor in op._inputs]
        if any(given):
            padded = padded_outputs(op, given, self.shape_of)
            if padded is None:
                raise CannotPad(op.name)
            self._padded.update(tensor for tensor, flag in zip(op.outputs, padded) if flag)
        if op.definition.planning.pads is not None:
            size = self.shape_of(op._inputs[0])
            if op._inputs[0].dtype.is_integer and (size.known or self._pads == padding.ALL):
                self._padded.add(op.outputs[0])
                self._shapes[op.outputs[0]] = size

    # -- calls ---------------------------------------------------------------------------------------------------

    def _call(self, op: Operation, arguments: list[Any]) -> None:
        """Plans an op that calls functions. They are compiled for this call site, with the inputs that are known here bound."""
        passed: list[Value] = arguments[-1]
        wanted = self._call_outputs.wanted(op)
        if self._inlining.plan(op, arguments[0], passed, wanted):
            return
        given = [self.known(tensor) for tensor in op._inputs[len(op._inputs) - len(passed) :]] if self._shapes else None
        keywords, steps, returned = self.compile_function(op, passed, wanted, given)
        for tensor, known in zip(op.outputs, returned):
            self.note(tensor, known)
        instruction = Instruction(op, "kernel", op.definition.kernel_fn, arguments, keywords, steps=steps)
        planners = [step.planner for step in steps]
        instruction.written = frozenset().union(*[planner.written for planner in planners])
        traits = op.definition.traits
        if any(planner.writes_variables for planner in planners):
            traits |= Trait.WRITES
        self._append(instruction, traits)
        if any(planner.blocks for planner in planners):
            # The body itself releases the lock around ops that block. Here the call only counts as a point where variables may change.
            instruction.traits |= Trait.BLOCKING
            self.blocks = True
        self.reads_variables |= any(planner.reads_variables for planner in planners)
        self.loops |= op.definition.planning.calls == "loop" or any(planner.loops for planner in planners)
        self._name_results(instruction, op)

    def _keywords(self, op: Operation) -> dict[str, Any]:
        definition = op.definition
        keywords = {name: op.attrs[name] for name in definition.kernel_attrs}
        if definition.planning.keeps:
            keywords = self.compile_function.with_kept(op, keywords)
        if definition.needs_context:
            keywords["ctx"] = self.node_context(op)
        return keywords

    def _arguments(self, op: Operation) -> list[Any]:
        definition = op.definition
        groups = definition.group(op._inputs, op.attrs)
        arguments: list[Any] = []
        for arg, group in zip(definition.inputs, groups):
            if definition.planning.calls and arg is definition.inputs[-1]:
                arguments.append(self._passed(op, group))
            elif arg.is_list:
                arguments.append([self._argument(arg, tensor) for tensor in group])
            else:
                arguments.append(self._argument(arg, group))
        return arguments

    def _passed(self, op: Operation, group: list[Tensor]) -> list[Value]:
        """Returns the inputs of the functions that an op calls.

        The value of a 1.x variable that the functions also update is passed as the variable, and read at each use inside.
        """
        inputs = function_refs(op)[0].target.inputs
        references = [inner.dtype._is_ref_dtype for inner in inputs]
        if any(references):
            updated = {id(self.values[tensor].constant) for tensor, given in zip(group, references) if given}
            is_loop = op.definition.planning.calls == "loop"
            for i, tensor in enumerate(group):
                value = self.values.get(tensor)
                if value is not None and value.handle and value.is_constant and id(value.constant) in updated:
                    references[i] |= not is_loop or (self._stays(op, i) and not self._call_outputs.wanted(op)[i])
        return [self.taken(tensor, reference=reference) for tensor, reference in zip(group, references)]

    def _stays(self, op: Operation, position: int) -> bool:
        body = op.attrs["body"].target
        return passed_through(body.outputs[position]) is body.inputs[position]

    def _argument(self, arg: Any, tensor: Tensor) -> Any:
        if arg.host and tensor in self._numbers:
            return [Host(value) for value in values_of(self._numbers[tensor].arguments)]
        value = self.taken(tensor, reference=arg.is_ref)
        return Host(value) if arg.host else value

    def taken(self, tensor: Tensor, *, reference: bool) -> Value:
        """Returns a value in the form a consumer takes: the variable if it takes a reference, otherwise the variable's value."""
        deferred = self._numbers.pop(tensor, None)
        if deferred is not None:
            self._append(deferred, tensor.op.definition.traits)
            self._name_results(deferred, tensor.op)
        value = self.values[tensor]
        if value.handle and not reference and tensor.dtype is not dtypes.resource:
            return self._read(tensor)
        return value

    def _read(self, tensor: Tensor) -> Value:
        """Returns the value of a reference, read from the variable at this point of the plan."""
        source = self.values[tensor]
        if FEED in source.roots:
            return source  # a fed reference holds its value directly
        known = self._reads.get(source)
        if known is not None:
            return known
        instruction = Instruction(tensor.op, "read", None, [source])
        self._append(instruction, Trait.READS)
        value = self._value("read", len(self.instructions) - 1)
        instruction.results = [value]
        self._reads[source] = value
        return value

    def _read_again(self, op: Operation, handle: Value) -> bool:
        """Gives the output of an op that reads a variable the value that the variable was read with before, if it still has it."""
        known = self._reads.get((_owner(handle), op.outputs[0].dtype))
        if known is not None:
            self.values.setdefault(op.outputs[0], known)
        return known is not None

    def _append(self, instruction: Instruction, traits: Trait) -> None:
        instruction.traits = traits
        if traits & Trait.READS:
            self.reads_variables = True
        if traits & Trait.WRITES:
            self.writes_variables = True
        if traits & (Trait.WRITES | Trait.BLOCKING):
            self._reads.clear()  # variables may have other values after this instruction
        if traits & Trait.BLOCKING:
            instruction.blocking = self.blocks = True
        self.instructions.append(instruction)

    def _name_results(self, instruction: Instruction, op: Operation) -> None:
        position = len(self.instructions) - 1
        flat = []
        for tensor in op.outputs:
            value = self._value(op.type, position, tensor)
            self.values.setdefault(tensor, value)  # a fed output keeps its feed
            flat.append(value)
        instruction.results = op.definition.group_outputs(flat, op.attrs)
        if op.definition.planning.reads_variable and instruction.kind == "kernel":
            self._reads[_owner(instruction.arguments[0]), op.outputs[0].dtype] = flat[0]
        if op.definition.traits & Trait.WRITES and op.outputs and op.outputs[0].dtype._is_ref_dtype:
            # Ops that return the reference they wrote to, for example Assign: that value is known already.
            reference = instruction.arguments[0]
            if reference.is_constant:
                self.values[op.outputs[0]] = reference
                instruction.results = []

    # -- constants -----------------------------------------------------------------------------------------------

    def settle(self, op: Operation, constants: list[Any]) -> None:
        """Gives the outputs of an op values that are known when planning."""
        for tensor, constant in zip(op.outputs, constants):
            self.settle_one(tensor, constant)

    def settle_one(self, tensor: Tensor, constant: Any) -> None:
        value = self._value(tensor.op.type, -1, tensor)
        value.is_constant, value.constant = True, constant
        value.roots = frozenset((CONSTANT,))
        self.values.setdefault(tensor, value)

    def _fold(self, op: Operation, arguments: list[Any]) -> bool:
        """Runs a pure op on constants at planning time. If it fails, it is left to the run, so that the error names the node."""
        if not all(_is_constant(argument) for argument in arguments):
            return False
        if (
            op.definition.needs_context
            or op.definition.planning.keeps
            or any(isinstance(v, Operation) for v in op.attrs.values())
        ):
            return False
        if op._inputs and any((self.shape_of(tensor).size or 0) > _FOLD_LIMIT for tensor in op.outputs):
            return False
        if any(tensor.dtype.base_dtype in (dtypes.variant, dtypes.resource) for tensor in op.outputs):
            return False  # lists and other objects belong to a single run
        try:
            kernel = kernel_of(op)
            results = kernel(*[_constant(a) for a in arguments], **self._keywords(op))
        except Exception:
            return False
        flat = op.definition.flatten_results(results)
        if not all(isinstance(result, (torch.Tensor, np.ndarray)) for result in flat):
            return False
        if any(_elements(result) > _FOLD_LIMIT for result in flat) and op._inputs:
            return False
        self.settle(op, flat)
        return True

    # -- groups of updates ---------------------------------------------------------------------------------------

    def _grouped(self, ops: list[Operation]) -> list[Any]:
        """Combines ops that one batch kernel can run together into a list, at the position of the last of them.

        A group ends before an op that depends on one of its members, or uses a variable that one of them updates.
        """
        if any(constant_value(tensor) is not None for tensor in self.feeds):
            return ops  # constants that look equal may not be
        groups: list[list[int]] = []
        open_groups: dict[Any, list[int]] = {}
        key_of: dict[Operation, Any] = {}
        users: dict[Tensor, Any] = {}  # variables of the members of open groups

        def end(key: Any) -> None:
            if key in open_groups:
                groups.append(open_groups.pop(key))

        for position, op in enumerate(ops):
            for before in (*(tensor.op for tensor in op._inputs), *op._control_inputs):
                if before in key_of:
                    end(key_of[before])
            handles = [_variable_of(tensor) for tensor in op._inputs if is_handle(tensor)]
            for handle in handles:
                if handle in users:
                    end(users.pop(handle))
            batch = op.definition.planning.batch
            if batch is not None and op in self.needed and op not in self._guards:
                key = op.definition, batch[0](op)
                open_groups.setdefault(key, []).append(position)
                key_of[op] = key
                users.update(dict.fromkeys(handles, key))
        groups.extend(open_groups.values())
        replaced: dict[int, Any] = {}
        for positions in groups:
            if len(positions) > 1:
                replaced.update(dict.fromkeys(positions[:-1]))
                replaced[positions[-1]] = [ops[position] for position in positions]
        if not replaced:
            return ops
        return [item for i, op in enumerate(ops) if (item := replaced.get(i, op)) is not None]

    def _batch(self, ops: list[Operation]) -> None:
        definition = ops[0].definition
        for op in ops if self._pads else ():
            self._pad(op)
        rows = [self._arguments(op) for op in ops]
        # Plain numbers are part of the group's key and therefore equal for all members, so they are passed once.
        columns = [rows[0][i] if arg.host else [row[i] for row in rows] for i, arg in enumerate(definition.inputs)]
        assert definition.planning.batch is not None
        _, kernel = definition.planning.batch
        instruction = Instruction(ops[0], "batch", kernel, columns, self._keywords(ops[0]), members=ops)
        self._append(instruction, definition.traits)
        for op in ops:
            if op.outputs:  # the references that the updates were given
                self.values[op.outputs[0]] = self.values[op._inputs[0]]

    def _value(self, label: str, position: int, tensor: Tensor | None = None) -> Value:
        self._labels[label] = count = self._labels.get(label, 0) + 1
        return Value(f"{label}_{count}", position, handle=tensor is not None and is_handle(tensor))


def _owner(handle: Value) -> Any:
    """What identifies the variable of a handle: the variable itself if it is known."""
    return id(handle.constant) if handle.is_constant else handle


def _variable_of(handle: Tensor) -> Tensor:
    """Returns the variable's own handle, for one that an op passes on."""
    while handle.op._inputs and is_handle(handle.op._inputs[0]):
        handle = handle.op._inputs[0]
    return handle


def _is_snapshot(op: Operation) -> bool:
    """Whether this is the `<variable>/read` op that every 1.x variable has."""
    return (
        bool(op.definition.traits & Trait.PASSES)
        and bool(op._inputs)
        and op._inputs[0].dtype._is_ref_dtype
        and op.name == op._inputs[0].op.name + "/read"
    )


def _without_host(arguments: list[Any]) -> list[Any]:
    """Returns arguments as the values that are there before a kernel takes them as numbers."""
    return [
        _without_host(each) if isinstance(each, list) else each.value if isinstance(each, Host) else each
        for each in arguments
    ]


def _is_constant(argument: Any) -> bool:
    if isinstance(argument, list):
        return all(_is_constant(item) for item in argument)
    value = argument.value if isinstance(argument, Host) else argument
    return value.is_constant and isinstance(value.constant, (torch.Tensor, np.ndarray))


def _constant(argument: Any) -> Any:
    if isinstance(argument, list):
        return [_constant(item) for item in argument]
    if isinstance(argument, Host):
        return host_value(argument.value.constant)
    return argument.constant


def _elements(result: Any) -> int:
    return result.numel() if isinstance(result, torch.Tensor) else getattr(result, "size", 1)
