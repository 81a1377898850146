"""Functions that ops call (If, While, PartitionedCall, ...): their bodies compiled to steps of their own.

A body is compiled for each place that calls it. Inputs that are constants there (variables, captured constants) are bound, so
that what depends on them alone is folded, and the aliasing of variables is known inside of the body; outputs that nobody
wants are not computed.
"""

from __future__ import annotations

from typing import Any

from stoker._src.base.errors import InvalidArgumentError
from stoker._src.graph.attr_values import FunctionRef
from stoker._src.graph.function_graph import Function
from stoker._src.graph.interchange.function_def import function_refs
from stoker._src.graph.interchange.function_library import check_call, check_results
from stoker._src.graph.tensor import Operation, Tensor
from stoker._src.runtime.devices import Placement
from stoker._src.runtime.failures import explain_failure
from stoker._src.runtime.plan.emit import Step, emit
from stoker._src.runtime.plan.instructions import Instruction, Value, values_of
from stoker._src.runtime.plan.mixed_precision import precision_of
from stoker._src.runtime.plan.planner import Planner, has_effect, passed_through, prune


class FunctionCompiler:
    """Compiles the functions of ops of one session (or of eager mode)."""

    def __init__(self, node_context: Any, placement: Placement | None = None, config: Any = None) -> None:
        self.node_context = node_context
        self.placement = placement or Placement(None)
        self.precision = precision_of(self.placement, config)

    def __call__(self, op: Operation, passed: list[Value], wanted: list[bool]) -> tuple[dict[str, Any], list[Step]]:
        """The kernel's keywords for `op`, and the steps that they call.

        Raises:
            InvalidArgumentError: an attribute names a function that is not there, or takes or returns something else.
        """
        for ref in function_refs(op):
            check_call(op, _function_of(op, ref))
            check_results(op, _function_of(op, ref))
        known = {i: value.constant for i, value in enumerate(passed) if value.is_constant}
        steps: list[Step] = []
        keywords: dict[str, Any] = {}
        loop = _Loop(op, wanted) if op.definition.planning.calls == "loop" else None
        if loop is not None:
            known = {i: constant for i, constant in known.items() if i in loop.invariant}
        for name in op.definition.kernel_attrs:
            attr = op.attrs[name]
            if isinstance(attr, FunctionRef):
                keywords[name] = self._step(op, name, attr, known, wanted, loop, steps)
            elif isinstance(attr, tuple) and attr and isinstance(attr[0], FunctionRef):
                keywords[name] = tuple(self._step(op, name, ref, known, wanted, None, steps) for ref in attr)
            else:
                keywords[name] = attr
        return keywords, steps

    def used_inputs(self, op: Operation, wanted: list[bool]) -> set[int]:
        """The positions of the functions' inputs that matter for the outputs that are wanted."""
        if op.definition.planning.calls == "loop":
            return _Loop(op, wanted).needed
        used: set[int] = set()
        for ref in function_refs(op):
            function = _function_of(op, ref)
            outputs = [tensor for tensor, use in zip(function.outputs, wanted) if use]
            used |= _inputs_reached(function, outputs, _targets(function))
        return used

    def _step(
        self,
        op: Operation,
        name: str,
        ref: FunctionRef,
        known: dict[int, Any],
        wanted: list[bool],
        loop: _Loop | None,
        steps: list[Step],
    ) -> Any:
        function = _function_of(op, ref)
        if loop is None:
            outputs: list[Any] = [tensor if use else None for tensor, use in zip(function.outputs, wanted)]
        elif name == "cond":
            outputs = list(function.outputs)
        else:
            # A variable that nobody needs keeps its first value.
            outputs = [t if i in loop.needed else function.inputs[i] for i, t in enumerate(function.outputs)]
        dropped = [tensor for tensor, kept in zip(function.outputs, outputs) if kept is not tensor]
        step = self.compile(function, outputs, known, _effects_behind(dropped, set(function.inputs)))
        steps.append(step)
        return step.function

    def compile(
        self, function: Function, outputs: list[Any], bound: dict[int, Any], effects: list[Operation] | None = None
    ) -> Step:
        targets = [*function.control_outputs, *(effects or ())]
        planner = Planner(outputs, targets, function.inputs, self.node_context, self, bound=bound, is_function=True)
        return emit(planner.build())


def _effects_behind(tensors: list[Tensor], inputs: set[Tensor]) -> list[Operation]:
    """The ops that do something on the way to outputs nobody wants: a call runs them all the same."""
    if not tensors:
        return []
    needed, _ = prune(tensors, [], inputs)
    return [op for op in needed if has_effect(op)]


def _targets(function: Function) -> list[Operation]:
    """All that runs whatever outputs are wanted."""
    return [*function.control_outputs, *_effects_behind(function.outputs, set(function.inputs))]


def _function_of(op: Any, ref: FunctionRef) -> Function:
    if ref.target is None:
        raise InvalidArgumentError(None, op, f"Function '{ref.name}', which '{op.name}' calls, is not defined.")
    return ref.target


class _Loop:
    """Which variables of a While loop never change, and which ones anybody needs."""

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
    """The error to raise for what went wrong in one of the steps: with the node whose line failed, and what it was given."""
    steps = {each.filename: each for step in candidates for each in step.with_functions()}
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
    return explain_failure(error, instruction.op, _inputs_of(instruction, dict(found[1].tb_frame.f_locals)))


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
