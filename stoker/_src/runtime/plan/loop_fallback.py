"""The ops of fused loops by their own kernels, for inputs that the loops are not made for."""

from __future__ import annotations

from typing import Any

from stoker._src.ops.support.values import host_value
from stoker._src.runtime.failures import explain_failure
from stoker._src.runtime.plan.instructions import Host, Instruction, Value, values_of


class Fallback:
    """Runs the fused ops one by one: the shapes of inputs differ from the static ones, or a matrix has no inverse, an index no row."""

    def __init__(self, instructions: list[Instruction], inputs: list[Value], results: list[Value]) -> None:
        self.instructions, self.inputs, self.results = instructions, inputs, results

    def __call__(self, *tensors: Any) -> tuple[Any, ...]:
        known: dict[Value, Any] = dict(zip(self.inputs, tensors))
        for instruction in self.instructions:
            arguments = [_found(argument, known) for argument in instruction.arguments]
            assert instruction.op is not None
            try:
                outcome = instruction.kernel(*arguments, **instruction.keywords)
            except Exception as error:
                raise explain_failure(error, instruction.op) from error
            known.update(zip(values_of(instruction.results), instruction.op.definition.flatten_results(outcome)))
        return tuple(known[value] for value in self.results)


def _found(argument: Any, known: dict[Value, Any]) -> Any:
    if isinstance(argument, list):
        return [_found(item, known) for item in argument]
    if isinstance(argument, Host):
        return host_value(argument.value.constant)
    return argument.constant if argument.is_constant else known[argument]
