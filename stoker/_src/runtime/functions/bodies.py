"""Compiles the functions that ops call (If, While, PartitionedCall, ...) to separate steps.

A body is compiled for each call site. Inputs that are constants there (variables, captured constants) are bound. Ops that depend
only on them are folded, and the aliasing of variables is known inside the body. Outputs that are not needed are not
computed. Call sites of one plan with the same known inputs share the compiled step.

A function that an op keeps (`OpDefinition.keeping`, for example one that a dataset calls) is compiled for the worker, and called outside of runs.
"""

from __future__ import annotations

import copy
import functools
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

import torch

from stoker._src.base import dtypes, forking
from stoker._src.base.depth import Level
from stoker._src.base.errors import InvalidArgumentError
from stoker._src.graph.attr_values import FunctionRef
from stoker._src.graph.function_graph import Function
from stoker._src.graph.interchange.function_def import function_refs
from stoker._src.graph.interchange.function_library import check_call, check_results
from stoker._src.graph.tensor import Operation, Tensor
from stoker._src.ops.support import uneven
from stoker._src.ops.support.waiting import RunState, current_run, running
from stoker._src.runtime.devices import Nowhere, Placement
from stoker._src.runtime.failures import explain_failure
from stoker._src.runtime.functions.loop_sums import SummingBody, loop_sums
from stoker._src.runtime.functions.native_loops import native_loop
from stoker._src.runtime.locks import Holding, VariablesLock
from stoker._src.runtime.plan.emit import Step, emit
from stoker._src.runtime.plan.instructions import Instruction, Value, values_of
from stoker._src.runtime.plan.known_shapes import UNKNOWN, Known, says_more, settled
from stoker._src.runtime.plan.mixed_precision import precision_of
from stoker._src.runtime.plan.planner import Planner
from stoker._src.runtime.plan.pruning import has_effect, passed_through, prune
from stoker._src.runtime.plan.stacking import Stack, over_stacks


class Compiled(NamedTuple):
    """The functions of an op, compiled for one call site."""

    keywords: dict[str, Any]  # keyword arguments of the op's kernel
    steps: list[Step]  # the compiled bodies
    returned: list[Known]  # known shapes of the op's outputs; empty if the graph already has all of them


def _returned(step: Step) -> list[Known]:
    planner = step.planner
    return [UNKNOWN if tensor is None else planner.known(tensor) for tensor in planner.fetches]


class FunctionCompiler:
    """Compiles the functions that ops call on one worker."""

    def __init__(
        self, node_context: Any, placement: Placement, variables_lock: VariablesLock, config: Any = None
    ) -> None:
        self.node_context = node_context
        self.placement: Placement | Nowhere = placement
        self.variables_lock = variables_lock
        self.precision = precision_of(self.placement, config)
        self.fuses_kernels = False  # whether bodies are part of a step that is recorded on a GPU (fused_kernels.py)
        self._bodies: dict[Any, tuple[Step, Any]] | None = None

    def for_plan(self, *, fuses_kernels: bool = False) -> FunctionCompiler:
        """Returns a compiler for one plan. Equivalent call sites of a function share its step."""
        compiler = copy.copy(self)
        compiler.fuses_kernels = fuses_kernels
        compiler._bodies = {}
        return compiler

    def on_host(self) -> FunctionCompiler:
        """Returns a compiler of functions that run on the host as a whole."""
        compiler = copy.copy(self)
        compiler.placement = Nowhere()
        return compiler

    def __call__(
        self, op: Operation, passed: list[Value], wanted: list[bool], given: list[Known] | None = None
    ) -> Compiled:
        """Compiles the functions of `op` for one call site. `given` holds the known shapes of their inputs.

        Raises:
            InvalidArgumentError: an attribute names an undefined function, or one with other inputs or outputs.
        """
        with Level():
            return self._compiled(op, passed, wanted, given)

    def _compiled(self, op: Operation, passed: list[Value], wanted: list[bool], given: list[Known] | None) -> Compiled:
        for ref in function_refs(op):
            self.checked(op, ref)
        known = {i: value.constant for i, value in enumerate(passed) if value.is_constant}
        inputs = function_refs(op)[0].target.inputs
        if given is not None and not says_more(given, inputs):
            given = None
        if op.definition.planning.calls == "loop":
            return self._loop(op, known, wanted, given)
        steps: list[Step] = []
        keywords: dict[str, Any] = {}
        for name in op.definition.kernel_attrs:
            attr = op.attrs[name]
            if isinstance(attr, FunctionRef):
                keywords[name] = self._branch(op, attr, known, wanted, given, steps)
            elif isinstance(attr, tuple) and attr and isinstance(attr[0], FunctionRef):
                keywords[name] = tuple(self._branch(op, ref, known, wanted, given, steps) for ref in attr)
            else:
                keywords[name] = attr
        returned = _returned(steps[0]) if given is not None else []
        for step in steps[1:]:
            returned = [known.agreed(other) for known, other in zip(returned, _returned(step))]
        return Compiled(keywords, steps, returned)

    def checked(self, op: Operation, ref: FunctionRef) -> Function:
        """Returns the function that an attribute of `op` names.

        Raises:
            InvalidArgumentError: it is undefined, or has other inputs or outputs.
        """
        function = _function_of(op, ref)
        check_call(op, function)
        check_results(op, function)
        return function

    def targets(self, function: Function, wanted: list[bool]) -> list[Operation]:
        """Returns the ops of a function that run regardless of which of its outputs are wanted."""
        dropped = [tensor for tensor, use in zip(function.outputs, wanted) if not use]
        return [*function.control_outputs, *_effects_behind(dropped, set(function.inputs))]

    def _loop(self, op: Operation, known: dict[int, Any], wanted: list[bool], given: list[Known] | None) -> Compiled:
        loop = _Loop(op, wanted)
        known = {i: constant for i, constant in known.items() if i in loop.invariant}
        # A loop variable that is not needed keeps its initial value.
        outputs = [tensor if i in loop.needed else loop.body.inputs[i] for i, tensor in enumerate(loop.body.outputs)]
        count = len(outputs)
        sums = loop_sums(loop.body, loop.condition, loop.needed)
        for each in sums:
            outputs[each.position] = loop.body.inputs[each.position]
            outputs += [tensor for _, inputs in each.terms for tensor in inputs]
        if given is None:
            body = self._body(loop.body, outputs, known, None, is_loop=True)
        else:

            def returned(given: list[Known]) -> tuple[list[Known], Step]:
                step = self._body(loop.body, outputs, known, given, is_loop=True)
                return _returned(step), step

            given, body = settled(given, returned)
        condition = self._body(loop.condition, list(loop.condition.outputs), known, given, of_loop=True)
        keywords = {**{name: op.attrs[name] for name in op.definition.kernel_attrs}, "cond": condition.function}
        function = SummingBody(body.function, count, sums) if sums else body.function
        if self.placement.gpu is None:
            function = native_loop(body, condition, count, wanted, sums, function)
        return Compiled({**keywords, "body": function}, [condition, body], given or [])

    def used_inputs(self, op: Operation, wanted: list[bool]) -> set[int]:
        """Returns the positions of the functions' inputs that affect the wanted outputs."""
        if op.definition.planning.calls == "loop":
            return _Loop(op, wanted).needed
        used: set[int] = set()
        for ref in function_refs(op):
            function = _function_of(op, ref)
            outputs = [tensor for tensor, use in zip(function.outputs, wanted) if use]
            used |= _inputs_reached(function, outputs, _targets(function))
        return used

    def _branch(
        self,
        op: Operation,
        ref: FunctionRef,
        known: dict[int, Any],
        wanted: list[bool],
        given: list[Known] | None,
        steps: list[Step],
    ) -> Any:
        function = _function_of(op, ref)
        outputs = [tensor if use else None for tensor, use in zip(function.outputs, wanted)]
        steps.append(self._body(function, outputs, known, given))
        return steps[-1].function

    def _body(
        self,
        function: Function,
        outputs: list[Any],
        bound: dict[int, Any],
        given: list[Known] | None,
        *,
        is_loop: bool = False,
        of_loop: bool = False,
    ) -> Step:
        key = (
            id(function),
            is_loop,
            of_loop,
            tuple(map(id, outputs)),
            tuple((i, _identity(constant)) for i, constant in bound.items()),
            None if given is None else tuple((each.shape.dims, each.elements) for each in given),
        )
        found = None if self._bodies is None else self._bodies.get(key)
        if found is not None:
            return found[0]
        dropped = [tensor for tensor, kept in zip(function.outputs, outputs) if kept is not tensor]
        effects = _effects_behind(dropped, set(function.inputs))
        step = self.compile(
            function, outputs, bound, effects, known=given, is_loop=is_loop, with_small_ops=not (is_loop or of_loop)
        )
        if self._bodies is not None:
            self._bodies[key] = step, (function, outputs, bound)  # kept alive, so that their ids are not reused
        return step

    def compile(
        self,
        function: Function,
        outputs: list[Any],
        bound: dict[int, Any],
        effects: list[Operation] | None = None,
        *,
        is_kept: bool = False,
        known: list[Known] | None = None,
        is_loop: bool = False,
        with_small_ops: bool = True,
    ) -> Step:
        targets = [*function.control_outputs, *(effects or ())]
        options: dict[str, Any] = {"bound": bound, "is_function": True, "is_kept": is_kept, "known": known}
        # A loop can run natively if its body and its condition consist of fused loops, counters and list ops.
        options.update(is_loop=is_loop, with_small_ops=with_small_ops)
        planner = Planner(outputs, targets, function.inputs, self.node_context, self, **options)
        return emit(planner.build())

    def compile_region(
        self, fetches: list[Tensor], feeds: list[Tensor], bound: dict[int, Any], known: list[Known] | None
    ) -> Step:
        """Compiles the pure ops between `feeds` and `fetches`. `known` are the shapes of the feeds; None for any shapes."""
        options: dict[str, Any] = {"bound": bound, "known": known, "with_late_shapes": known is not None}
        return emit(Planner(fetches, [], feeds, self.node_context, self, is_region=True, **options).build())

    def kept(self, function: Function) -> KeptFunction:
        """Returns a function that can be called outside of a run."""
        return KeptFunction(self, function)

    def with_kept(self, op: Any, keywords: dict[str, Any]) -> dict[str, Any]:
        """Returns the kernel's keywords with every function replaced by one that outlives the run."""

        def kept(value: Any) -> Any:
            if isinstance(value, FunctionRef):
                return self.kept(_function_of(op, value))
            is_list = isinstance(value, tuple) and bool(value) and isinstance(value[0], FunctionRef)
            return tuple(map(kept, value)) if is_list else value

        return {name: kept(value) for name, value in keywords.items()}


class KeptFunction:
    """A function compiled for a worker rather than for a run. It may be called later, from any thread, with its captured values.

    Its last inputs are the captured values, which `bind` supplies. Captured resources (variables, tables) are known from then on, and
    the body is compiled for them. Such functions prepare data record by record, so they run on the host, unless one of their variables is
    on a GPU.
    """

    def __init__(self, compiler: FunctionCompiler, function: Function) -> None:
        self.function = function
        self._compiler = compiler
        self.may_use_gpu = compiler.placement.gpu is not None
        self._compiling = forking.lock()
        self._compiled: tuple[dict[int, Any], Step] | None = None
        # By the number of values that differ from call to call, and whether rows in between may differ in size.
        self._for_stacks: dict[tuple[int, bool], StackCall | None] = {}

    def bind(self, captured: Sequence[Any] = ()) -> BoundFunction:
        """Binds the captured values. Returns a function of the remaining inputs.

        Raises:
            InvalidArgumentError: there are more captured values than inputs.
        """
        inputs = self.function.inputs
        first = len(inputs) - len(captured)
        if first < 0:
            raise InvalidArgumentError(
                None, None, f"Function '{self.function.name}' takes {len(inputs)} values, but captured {len(captured)}."
            )
        resources = {first + i: value for i, value in enumerate(captured) if _is_resource(inputs[first + i])}
        return BoundFunction(self, first, list(captured), self._step(resources), self._compiler.variables_lock)

    def _step(self, resources: dict[int, Any]) -> Step:
        with self._compiling:
            if self._compiled is not None:
                known, step = self._compiled
                if known.keys() == resources.keys() and all(known[i] is value for i, value in resources.items()):
                    return step
            effects = [op for op in _targets(self.function) if op not in self.function.control_outputs]
            compiler = self._compiler.on_host() if _are_on_host(resources.values()) else self._compiler
            step = compiler.compile(self.function, self.function.outputs, resources, effects, is_kept=True)
            self._compiled = resources, step
            return step

    @functools.cached_property
    def makes_datasets_only(self) -> bool:
        """See `BoundFunction.makes_datasets_only`."""
        needed, _ = prune(list(self.function.outputs), _targets(self.function), set(self.function.inputs))
        return all(
            not op.definition.planning.keeps
            and not op.definition.planning.calls
            and (not has_effect(op) or {tensor.dtype for tensor in op.outputs} == {dtypes.variant})
            for op in needed
        )

    def for_stacks(self, takes: int, differing: bool) -> StackCall | None:
        """Returns what does the work of many calls, whose first `takes` values are stacked; None if an op has no such form."""
        with self._compiling:
            if (takes, differing) not in self._for_stacks:
                function, stack = self.function, None
                if not self.may_use_gpu:
                    given, shared = function.inputs[:takes], function.inputs[takes:]
                    how = {"in_calls": True, "differing": differing}
                    stack = over_stacks(given, function.outputs, _targets(function), shared, **how)
                self._for_stacks[takes, differing] = stack and StackCall(stack, self._compiler)
            return self._for_stacks[takes, differing]


class StackCall:
    """The work of many calls of a function, as one call for a stack of values. `ragged` says which values and results are rows of
    different lengths: those are passed as a tensor and the lengths of the rows."""

    def __init__(self, stack: Stack, compiler: FunctionCompiler) -> None:
        # A random op goes on where the calls for single values stopped, so that it does not matter which calls were made together.
        contexts = {made: compiler.node_context(single) for made, single in stack.drawing.items()}

        def context_of(op: Operation) -> Any:
            return contexts[op] if op in contexts else compiler.node_context(op)

        planner = Planner(stack.results, stack.targets, stack.inputs, context_of, compiler)
        self.function = emit(planner.build()).function
        self.ragged = stack.ragged
        self._drawing = list(contexts.values())
        self.draws = bool(contexts)

    def of_columns(self, columns: Sequence[Any], shared: Sequence[Any]) -> tuple[Any, ...]:
        """Calls it with stacks, some of which may be `Uneven`, and with the values that are the same for all rows. Returns stacks."""
        given: list[Any] = []
        for value, ragged in zip(columns, self.ragged[0]):
            given += uneven.parts(value) if ragged else [uneven.even(value)]
        found = iter(self(*given, *shared))
        return tuple([uneven.Uneven(next(found), next(found)) if ragged else next(found) for ragged in self.ragged[1]])

    def __call__(self, *values: Any) -> tuple[Any, ...]:
        """A call that fails draws no numbers."""
        marks = [each.state and each.state.mark() for each in self._drawing]
        try:
            return self.function(None, *values)
        except BaseException:
            for each, mark in zip(self._drawing, marks):
                if mark is None:
                    each.state = None
                else:
                    each.state.back_to(mark)
            raise


class BoundFunction:
    """A kept function with its captured values: `call(*values)` returns its outputs.

    Outputs share memory only with the values and the captured values. The caller must not hold the lock on variables: a kernel
    that calls one is BLOCKING or runs in a separate thread. A call from a thread that works for a run ends when that run is cancelled.
    """

    def __init__(
        self, kept: KeptFunction, takes: int, captured: list[Any], step: Step, variables_lock: VariablesLock
    ) -> None:
        self.name = kept.function.name
        self.takes = takes
        self._kept = kept
        self._step = step
        self._lock = variables_lock
        planner = step.planner
        self._moves = kept.may_use_gpu and planner.compile_function.placement.gpu is None
        self._captured = _on_host(captured) if self._moves else captured
        self._writes = planner.writes_variables
        self._touches = planner.writes_variables or planner.reads_variables
        self._blocks = planner.blocks
        self.differs = False  # whether rows were found to differ in size in between

    def __call__(self, *values: Any) -> tuple[Any, ...]:
        """Runs the body.

        Raises:
            InvalidArgumentError: the number of values is wrong.
            tf.errors.OpError: an op of the body failed.
        """
        if len(values) != self.takes:
            raise InvalidArgumentError(
                None, None, f"Function '{self.name}' takes {self.takes} values, but {len(values)} were given."
            )
        outer = current_run() or RunState()
        if not self._blocks:
            return self._call(outer, values)
        with outer.inner() as state, running(state):
            return self._call(state, values)

    def for_stacks(self, differing: bool = False) -> Callable[[Sequence[Any]], tuple[Any, ...]] | None:
        """Returns the function that maps stacks of values to the stacks of what the calls for their rows return.

        It fails if a call for one of the rows would fail, and says nothing about which one. None if the function cannot be called like
        that: it has effects, or contains an op that has no form for many rows. `differing`: rows may differ in size in between, which
        takes longer; None if there are no such rows.
        """
        call = self._kept.for_stacks(self.takes, differing)
        return None if call is None else functools.partial(call.of_columns, shared=self._captured)

    def is_pure(self) -> bool:
        """Whether it has a form for stacks and draws no numbers."""
        call = self._kept.for_stacks(self.takes, False)
        return call is not None and not call.draws

    def makes_datasets_only(self) -> bool:
        """Whether a call does nothing but compute, and make datasets that call no functions."""
        return self._kept.makes_datasets_only

    def _call(self, state: RunState, values: tuple[Any, ...]) -> tuple[Any, ...]:
        holding = Holding(self._lock, writes=self._writes, state=state, touches=self._touches)
        try:
            holding.acquire()
            given = _on_host(values) if self._moves else values
            return self._step.function(holding, *given, *self._captured)
        except BaseException as error:
            raise step_failure(error, self._step) from error
        finally:
            if self._blocks:
                holding.end()
            else:
                holding.release()


def _are_on_host(resources: Iterable[Any]) -> bool:
    """Whether no variable is on a GPU, or will be when it is initialized."""
    devices = [
        place
        for each in resources
        for place in (
            getattr(each, "device", None),
            getattr(each, "home", None),
            getattr(getattr(each, "value", None), "device", None),
        )
    ]
    return not any(isinstance(device, torch.device) and device.type == "cuda" for device in devices)


def _on_host(values: Iterable[Any]) -> list[Any]:
    return [value.cpu() if isinstance(value, torch.Tensor) else value for value in values]


def _identity(constant: Any) -> Any:
    """Returns a key that is equal for constants that can share a compiled body: by value for a single number, else by identity."""
    if isinstance(constant, torch.Tensor) and constant.numel() == 1 and constant.is_cpu:
        return str(constant.dtype), tuple(constant.shape), repr(constant.item())
    return id(constant)


def _is_resource(tensor: Tensor) -> bool:
    return tensor.dtype._is_ref_dtype or tensor.dtype is dtypes.resource


def _effects_behind(tensors: list[Tensor], inputs: set[Tensor]) -> list[Operation]:
    """Returns the ops with effects that produce unneeded outputs. A call runs them anyway."""
    if not tensors:
        return []
    needed, _ = prune(tensors, [], inputs)
    return [op for op in needed if has_effect(op)]


def _targets(function: Function) -> list[Operation]:
    """Returns the ops that run regardless of which outputs are needed."""
    return [*function.control_outputs, *_effects_behind(function.outputs, set(function.inputs))]


def _function_of(op: Any, ref: FunctionRef) -> Function:
    if ref.target is None:
        raise InvalidArgumentError(None, op, f"Function '{ref.name}', which '{op.name}' calls, is not defined.")
    return ref.target


class _Loop:
    """Finds the variables of a While loop that never change, and the ones that are needed."""

    def __init__(self, op: Operation, wanted: list[bool]) -> None:
        self.condition, self.body = _function_of(op, op.attrs["cond"]), _function_of(op, op.attrs["body"])
        self.invariant = {
            i
            for i, (given, returned) in enumerate(zip(self.body.inputs, self.body.outputs))
            if passed_through(returned) is given
        }
        self.needed = self._needed({i for i, use in enumerate(wanted) if use})

    def _needed(self, wanted: set[int]) -> set[int]:
        body, condition = self.body, self.condition
        needed = wanted | _inputs_reached(condition, condition.outputs, condition.control_outputs)
        targets = _targets(body)
        while True:
            outputs = [body.outputs[i] for i in sorted(needed)]
            grown = needed | _inputs_reached(body, outputs, targets)
            if grown == needed:
                return needed
            needed = grown


def _inputs_reached(function: Function, outputs: list[Tensor], targets: list[Operation]) -> set[int]:
    ops, _ = prune(outputs, targets, set())
    return {i for i, tensor in enumerate(function.inputs) if tensor.op in ops}


def step_failure(error: BaseException, *candidates: Step) -> BaseException:
    """Returns the error to raise for a failure in one of the steps. It names the node whose line failed and the inputs of that line."""
    steps = {each.filename: each for step in candidates for each in step.with_functions()}
    asked = getattr(error, "step_line", None)  # a refusal that became known later (device_checks.py)
    if asked is not None and asked[0] in steps:
        instruction = steps[asked[0]].lines.get(asked[1])
        return explain_failure(error, None if instruction is None else instruction.op)
    found = None
    trace = error.__traceback__
    while trace is not None:
        name = trace.tb_frame.f_code.co_filename.removesuffix(" timed")
        if name in steps:
            found = (steps[name], trace)
        trace = trace.tb_next
    if found is None:
        return explain_failure(error, None)
    timed = found[1].tb_frame.f_code.co_filename.endswith(" timed")
    instruction = (found[0].timed_lines if timed else found[0].lines).get(found[1].tb_lineno)
    if instruction is None:
        return explain_failure(error, None)
    op, member = instruction.op, getattr(error, "member", None)
    if instruction.kind == "batch" and member is not None:
        op = instruction.members[member]  # the kernel says which of its ops failed
    return explain_failure(error, op, _inputs_of(instruction, dict(found[1].tb_frame.f_locals)))


def _inputs_of(instruction: Instruction, found: dict[str, Any]) -> list[Any] | None:
    values = []
    for value in values_of(instruction.arguments):
        if value.is_constant:
            values.append(value.constant)
        elif value.label in found:
            values.append(found[value.label])
        else:
            return None
    return values
