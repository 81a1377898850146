"""Sums that a loop accumulates, computed after the loop.

The gradient of a loop adds the gradient of each weight to a loop variable in every iteration: a product of a few rows, and an addition
of two tensors as large as the weight. If nothing reads the partial sums, the loop only collects the factors, and one product of all rows
follows it (`OpDefinition.sums_over_steps`).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import torch

from stoker._src.graph.function_graph import Function
from stoker._src.graph.tensor import Operation, Tensor
from stoker._src.ops.control_flow.tensor_list_values import on_one_device
from stoker._src.runtime.plan.pruning import passed_through

_MOST_BYTES = 1 << 25  # bytes of collected factors, after which they are summed


class LoopSum(NamedTuple):
    """A loop variable that only accumulates. `terms` has a kernel for each added op, and the tensors that it takes."""

    position: int
    terms: list[tuple[Callable[..., torch.Tensor], list[Tensor]]]


def loop_sums(body: Function, condition: Function, needed: set[int]) -> list[LoopSum]:
    """Returns the accumulating variables of a loop whose sums can be computed after it."""
    found = []
    for position in sorted(needed):
        terms = _terms(body, position)
        if terms and not condition.inputs[position]._consumers:
            found.append(LoopSum(position, terms))
    return found


def _terms(body: Function, position: int) -> list[tuple[Any, list[Tensor]]] | None:
    start, total = body.inputs[position], body.outputs[position]
    if len(start._consumers) != 1 or any(start is output for output in body.outputs):
        return None
    while total is not start and total.op is not start._consumers[0]:  # down to the sum that the variable is part of
        if not _is_only_for(total, body) or passed_through(total) is total:
            return None
        total = total.op._inputs[0]
    if total is start or not total.op.definition.planning.is_sum or not _is_only_for(total, body):
        return None
    terms: list[tuple[Any, list[Tensor]]] = []
    pending = [tensor for tensor in total.op._inputs if tensor is not start]
    if len(pending) != len(total.op._inputs) - 1:
        return None
    while pending:
        tensor = pending.pop()
        op = tensor.op
        if not _is_only_for(tensor, body) or any(tensor is input for input in body.inputs):
            return None
        if op.definition.planning.is_sum:
            pending += op._inputs
            continue
        kernel = _kernel(op)
        if kernel is None:
            return None
        terms.append((kernel, list(op._inputs)))
    return terms


def _is_only_for(tensor: Tensor, body: Function) -> bool:
    """Whether a tensor has one reader: an op, or the caller of the body."""
    return len(tensor._consumers) + sum(each is tensor for each in body.outputs) == 1


def _kernel(op: Operation) -> Any:
    rule = op.definition.planning.sums_over_steps
    return None if rule is None or op._control_inputs else rule(op)


class _Collected:
    """The value of an accumulating variable while the loop runs."""

    def __init__(self, start: torch.Tensor, kernels: list[Any]) -> None:
        self._start, self._kernels = start, kernels
        self._columns: list[list[list[torch.Tensor]]] = []
        self._bytes = 0

    def add(self, factors: list[list[torch.Tensor]]) -> None:
        if not self._columns:
            self._columns = [[[] for _ in each] for each in factors]
        for columns, each in zip(self._columns, factors):
            for column, factor in zip(columns, each):
                column.append(factor)
                self._bytes += factor.nbytes
        if self._bytes > _MOST_BYTES:
            self._start = self.total()
            self._columns, self._bytes = [], 0

    def total(self) -> torch.Tensor:
        result = self._start
        for kernel, columns in zip(self._kernels, self._columns):
            # Parts of a cell may be on the host and others on a GPU.
            count = len(columns[0])
            placed = on_one_device([result, *[factor for column in columns for factor in column]])
            result = placed[0] + kernel(*[placed[1 + i * count : 1 + (i + 1) * count] for i in range(len(columns))])
        return result


class SummingBody:
    """The body of a loop with accumulating variables. Its step returns their factors after the loop variables."""

    def __init__(self, function: Any, count: int, sums: list[LoopSum]) -> None:
        self._function, self._count, self._sums = function, count, sums

    def __call__(self, holding: Any, *values: Any) -> list[Any]:
        returned = self._function(holding, *values)
        results, at = list(returned[: self._count]), self._count
        for position, terms in self._sums:
            factors = []
            for _, inputs in terms:
                factors.append(list(returned[at : at + len(inputs)]))
                at += len(inputs)
            collected = values[position]
            if not isinstance(collected, _Collected):
                collected = _Collected(collected, [kernel for kernel, _ in terms])
            collected.add(factors)
            results[position] = collected
        return results

    def finish(self, values: Any) -> Any:
        """Returns the loop variables after the last iteration."""
        return [value.total() if isinstance(value, _Collected) else value for value in values]
