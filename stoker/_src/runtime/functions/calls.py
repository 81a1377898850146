"""Calls functions so that tapes can differentiate them: the forward call also returns the values that its gradient needs."""

from __future__ import annotations

from typing import Any

from stoker._src.graph import context
from stoker._src.graph.conversion import convert_to_tensor
from stoker._src.graph.definition import OpDefinition
from stoker._src.graph.function_graph import FuncGraph, Function, note_handle, unique_function_name
from stoker._src.graph.tapes import no_tapes, tapes
from stoker._src.graph.tensor import Tensor
from stoker._src.ops.control_flow.functional_gradients import BodyGradient, call, flat_gradients, packed_gradients
from stoker._src.ops.control_flow.gradients import is_trainable


class CallRecord:
    """A tape's record of a call: its inputs, its outputs and its gradient function."""

    def __init__(self, inputs: list[Any], outputs: list[Any], backward: Any, name: str) -> None:
        self._inputs = inputs
        self.inputs = inputs
        self.outputs = outputs
        self.backward = backward
        self.name = name
        self.type = "PartitionedCall"


class DifferentiableFunction:
    """A function and its gradient, which is built on first use. The gradient is differentiable again, for gradients of any order."""

    def __init__(self, function: Function) -> None:
        self.function = function
        self._forward: Function | None = None
        self._backward: dict[tuple[int, ...], tuple[DifferentiableFunction, list[Tensor], list[Any]]] = {}

    def __call__(self, values: list[Any]) -> list[Any]:
        """Returns the outputs. If a tape tracks an input, the call is recorded."""
        values = [convert_to_tensor(value) for value in values]
        if not context.executing_eagerly() or not any(t.is_tracked(v) for t in tapes.active for v in values):
            return list(call(self.function, values))
        forward = self._with_intermediates()
        with no_tapes():
            outputs = list(call(forward, values))
        record = CallRecord(values, outputs, lambda *grads: self._go_back(values, outputs, grads), self.function.name)
        for tape in tapes.active:
            tape.record(record)
        return outputs[: len(self.function.outputs)]

    def _with_intermediates(self) -> Function:
        """Returns the forward function extended by the outputs that its gradient needs."""
        if self._forward is None:
            function = self.function
            starts = tuple(i for i, tensor in enumerate(function.outputs) if is_trainable(tensor))
            _, captured, _ = self._gradient(starts)
            known = {*function.inputs, *function.outputs}
            self._forward = function.extended([], [tensor for tensor in captured if tensor not in known], "forward")
        return self._forward

    def _gradient(self, starts: tuple[int, ...]) -> tuple[DifferentiableFunction, list[Tensor], list[Any]]:
        """Returns the gradient of the outputs `starts`: a function, the forward values it takes, and the gradients in its body."""
        found = self._backward.get(starts)
        if found is None:
            source = self.function if self._forward is None else self._forward
            body = BodyGradient(source, list(starts), [source.outputs[i] for i in starts])
            captured = body.captures()
            made = Function(
                unique_function_name(f"__backward_{source.name}"),
                body.graph,
                [*body.incoming, *[inner for _, inner in captured]],
                flat_gradients([g for g in body.results if g is not None]),
            )
            found = DifferentiableFunction(made), [value for value, _ in captured], body.results
            self._backward[starts] = found
        return found

    def _go_back(self, values: list[Any], outputs: list[Any], grads: tuple[Any, ...]) -> list[Any]:
        forward = self._with_intermediates()
        starts = tuple(i for i, g in enumerate(grads) if g is not None)
        backward, captured, inside = self._gradient(starts)
        known = dict(zip([*forward.inputs, *forward.outputs], [*values, *outputs]))
        missing = [tensor for tensor in captured if tensor not in known]
        if (
            missing
        ):  # a second-order gradient may need values that the forward call did not return, so they are recomputed
            again = DifferentiableFunction(forward.extended([], missing, "again"))(values)
            known.update(zip(missing, again[len(forward.outputs) :]))
        incoming = [convert_to_tensor(grads[i]) for i in starts]
        returned = backward([*incoming, *[known[tensor] for tensor in captured]])
        given = [(g, value) for g, value in zip(inside, values) if g is not None]
        found = iter(packed_gradients([g for g, _ in given], [value for _, value in given], returned))
        return [None if g is None else next(found) for g in inside]


def call_op(definition: OpDefinition, inputs: list[Any], attrs: dict[str, Any], name: str) -> list[Any]:
    """Runs an op that calls functions eagerly under a tape, by wrapping it in a function of that single op. Returns its outputs."""
    graph = FuncGraph(name)
    with graph.as_default():
        arguments = [graph.add_input(tensor.dtype, tensor.static_shape) for tensor in inputs]
        for argument, tensor in zip(arguments, inputs):
            note_handle(argument, tensor)
        op = graph.add(definition, arguments, dict(attrs), graph.op_name(name, definition.name))
    function = Function(unique_function_name(name), graph, arguments, list(op.outputs), [op])
    return DifferentiableFunction(function)(inputs)
