"""Zeros that are known when planning, and what follows from them.

The gradient of a gradient is full of zeros: a piecewise linear activation has no second derivative, so its gradient op passes back
zeros, which products, activations and sums then carry to the variables. An op whose output is zeros because of such an input
(`OpDefinition.vanishing`) is left out of the plan, and so are the zeros among the terms of a sum.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch

from stoker._src.graph.tensor import Operation, Tensor
from stoker._src.ops.support.values import torch_dtype
from stoker._src.runtime.plan.instructions import Instruction

if TYPE_CHECKING:
    from stoker._src.runtime.plan.planner import Planner

_MOST_ELEMENTS = 1 << 20  # a constant of zeros is kept as long as the plan


class Zeros:
    """The tensors of one plan that are known to be all zeros."""

    def __init__(self, planner: Planner) -> None:
        self._planner = planner
        self._tensors: set[Tensor] = set()
        self._constants: dict[tuple[object, ...], torch.Tensor] = {}

    def plan(self, op: Operation) -> bool:
        """Whether the output of `op` is zeros. If it is, nothing is left to plan."""
        planner, vanishes = self._planner, op.definition.planning.vanishes
        if op.definition.planning.is_sum:
            return self._plan_sum(op)
        if vanishes is None or not planner.with_fused_loops or planner.compile_function.placement.gpu is not None:
            return False
        output = op.outputs[0]
        if output in planner.values or not (output.dtype.is_floating or output.dtype.is_complex):
            return False
        if vanishes and self._tensors.isdisjoint(op._inputs[i] for i in vanishes):
            return False
        shape = planner.shape_of(output)
        if not shape.known or (shape.size or 0) > _MOST_ELEMENTS:
            return False
        if not all(planner.shape_of(tensor).known for tensor in op._inputs):
            return False  # the kernel may find that they do not fit
        key = (shape.dims, output.dtype)
        if key not in self._constants:
            self._constants[key] = torch.zeros(shape.dims or (), dtype=torch_dtype(output.dtype.base_dtype))  # type: ignore[arg-type]
        planner.settle(op, [self._constants[key]])
        self._tensors.add(output)
        return True

    def passed(self, op: Operation) -> None:
        """Takes note of an op that returns its input."""
        if op._inputs[0] in self._tensors:
            self._tensors.add(op.outputs[0])

    def _terms(self, op: Operation) -> list[int]:
        """The positions of the terms of a sum that matter. All of them if none is zeros, or if the kernel may report their shapes."""
        terms = [i for i, tensor in enumerate(op._inputs) if tensor not in self._tensors]
        output = self._planner.shape_of(op.outputs[0])
        if len(terms) < len(op._inputs) and output.known:
            if all(self._planner.shape_of(tensor) == output for tensor in op._inputs):
                return terms or [0]
        return list(range(len(op._inputs)))

    def _plan_sum(self, op: Operation) -> bool:
        terms = self._terms(op)
        if len(terms) == len(op._inputs) or len(terms) > 1 or op.outputs[0] in self._planner.values:
            return False
        only = op._inputs[terms[0]]
        self._planner.values[op.outputs[0]] = self._planner.taken(only, reference=False)
        if only in self._tensors:
            self._tensors.add(op.outputs[0])
        return True

    def leave_out(self, instruction: Instruction) -> None:
        """Removes the zeros from the terms of a sum."""
        op = instruction.op
        assert op is not None
        terms = self._terms(op)
        if len(terms) < len(op._inputs):
            instruction.arguments = [[instruction.arguments[0][i] for i in terms]]
            instruction.tensors = [op._inputs[i] for i in terms]
