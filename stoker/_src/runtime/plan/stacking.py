"""Rewrites a function of one record for a stack of records: an op that each record passes runs once for all of them (ops/support/rows.py).

Rows of an input whose first dimension is unknown differ in length, and follow each other in a tensor. What a random op draws for each of
the records is drawn at once, and equals what single calls draw. A branch that single records may take is computed for all of them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import torch

from stoker._src.base import dtypes
from stoker._src.graph import context
from stoker._src.graph.function_graph import Function
from stoker._src.graph.graph import Graph
from stoker._src.graph.planning import Trait
from stoker._src.graph.static_values import constant_value
from stoker._src.graph.tensor import Operation, Tensor
from stoker._src.ops.array import ranges, selection, shaping, slicing
from stoker._src.ops.array.constants import constant, placeholder
from stoker._src.ops.array.uneven_rows import (
    chain_of_each_row,
    has_rows_of_one_size,
    is_called_for_rows,
    one_by_one,
)
from stoker._src.ops.support.rows import Input, again, over_rows
from stoker._src.runtime.plan.instructions import EFFECTS
from stoker._src.runtime.plan.pruning import prune


@dataclass
class Stack:
    """A function for a stack of records. The lengths of ragged rows follow the rows, as another input or result."""

    results: list[Tensor]
    inputs: list[Tensor]
    targets: list[Operation]  # checks, which have no result
    ragged: tuple[list[bool], list[bool]]  # which of the given inputs and of the wanted results differ in length
    drawing: dict[Operation, Operation]  # ops that draw for many records, with the ops that draw for one


def over_stacks(
    given: Sequence[Tensor],
    wanted: Sequence[Tensor],
    targets: Sequence[Operation] = (),
    shared: Sequence[Tensor] = (),
    *,
    in_calls: bool = False,
    differing: bool = False,
) -> Stack | None:
    """Rewrites the function from `given` to `wanted` for a stack of records, in a separate graph. `shared` are further inputs, which are
    the same for all records. With `in_calls`, rows may be ragged, and a call that fails is taken back: ops may draw random numbers, look up
    keys in shared tables, and check. With `differing`, rows in between may differ in all dimensions, as images do that become images of one
    size: their kernels are called for each row.

    Returns None if an op has no form for stacks, or has another effect, or if there are no such rows.
    """
    unfit = (dtypes.variant,) if in_calls else (dtypes.resource, dtypes.variant)
    if any(t.dtype in unfit for t in (*given, *shared, *wanted)) or any(t.dtype is dtypes.resource for t in given):
        return None
    fed = {*given, *shared}
    needed, waited_for = prune(list(wanted), list(targets), fed)
    if not given or (waited_for and not in_calls):
        return None
    with Graph().as_default():
        rewriting = _Rewriting(in_calls, differing)
        inputs, ragged = [], []
        for tensor in given:
            taken = rewriting.take(tensor)
            ragged.append(len(taken) > 1)
            inputs += taken
        for tensor in shared:
            same = placeholder(tensor.dtype, tensor.static_shape)
            inputs.append(same)
            rewriting.known[tensor] = Input(same, False, tensor.static_shape.rank)
        order = [each for each in given[0].graph.get_operations() if each in needed]
        if not rewriting.rewrite(order) or (differing and not rewriting.late):
            return None
        results, differ = [], []
        for tensor in wanted:
            found = rewriting.known.get(tensor)
            if found is None or not found.stacked or (found.lengths is not None and not in_calls):
                return None
            differ.append(found.lengths is not None)
            results += [found.tensor] if found.lengths is None else [found.tensor, found.lengths]
    return Stack(results, inputs, rewriting.targets, (ragged, differ), rewriting.drawing)


class _Rewriting:
    """What a function's tensors have become, in the current graph."""

    def __init__(self, in_calls: bool, differing: bool) -> None:
        self.known: dict[Tensor, Input] = {}
        self.targets: list[Operation] = []
        self.drawing: dict[Operation, Operation] = {}
        self.late: set[Operation] = set()  # whose rows differ in size: they are called by those whose rows do not
        self._called: set[Operation] = set()  # those of them that are called
        self._in_calls, self._differing = in_calls, differing
        self._count: Tensor | None = None  # the number of records

    def take(self, tensor: Tensor) -> list[Tensor]:
        """Adds a given tensor. Returns the inputs that stand for it."""
        dims = tensor.static_shape.dims
        if self._in_calls and dims and dims[0] is None and None not in dims[1:]:
            taken = [placeholder(tensor.dtype, dims), placeholder(dtypes.int64, [None])]
            self.known[tensor] = Input(taken[0], True, len(dims), taken[1])
            self._count = self._count if self._count is not None else ranges.size(taken[1])
            return taken
        stack = placeholder(tensor.dtype, None if dims is None else [None, *dims])
        self.known[tensor] = Input(stack, True, tensor.static_shape.rank)
        self._count = (
            self._count
            if self._count is not None
            else slicing.strided_slice(shaping.shape(stack), [0], [1], [1], shrink_axis_mask=1)
        )
        return [stack]

    def rewrite(self, order: Iterable[Operation], *, may_have_effects: bool = True) -> bool:
        """Adds the results of these ops. Returns False if one of them has no form for stacks."""
        for op in order:
            effects = op.definition.traits & EFFECTS
            repeated = op.definition.planning.repeated
            if repeated is not None and self._in_calls and may_have_effects:
                if not self._draw(op, repeated):
                    return False
                continue
            if self._differing and self._is_late(op):
                if not all(map(has_rows_of_one_size, op.outputs)) or effects:
                    if effects or not is_called_for_rows(op):
                        return False
                    self.late.add(op)
                    continue
                if not self._call_late(op):
                    return False
                continue
            if not any(tensor in self.known and self.known[tensor].stacked for tensor in op._inputs):
                if not self._share(op) and effects:
                    return False
                continue
            if ((effects or op._control_inputs) and not self._in_calls) or (effects and not may_have_effects):
                return False
            if op.definition.traits & Trait.OF_SHAPES and constant_value(op.outputs[0]) is not None:
                continue
            inputs = [self.known.get(tensor) or _constant(tensor) for tensor in op._inputs]
            found = [each for each in inputs if each is not None]
            if len(found) < len(inputs):
                return False
            before = len(context.get_default_graph().get_operations())
            chooses = op.definition.planning.chooses
            outputs = over_rows(op, found) if chooses is None else self._branches(op, found, chooses)
            if outputs is None:
                outputs = one_by_one(op, found) if self._in_calls and not effects else None
            if outputs is None:
                return False
            if effects:
                made = context.get_default_graph().get_operations()[before:]
                self.targets += [each for each in made if not each.outputs]
            for old, new in zip(op.outputs, outputs):
                self.known[old] = new if isinstance(new, Input) else Input(new, True, old.static_shape.rank)
        return True

    def _is_late(self, op: Operation) -> bool:
        """Whether an op has or makes rows that differ in size."""
        if any(tensor.op in self.late for tensor in op._inputs):
            return True
        depends = any(tensor in self.known and self.known[tensor].stacked for tensor in op._inputs)
        return depends and not all(map(has_rows_of_one_size, op.outputs))

    def _call_late(self, op: Operation) -> bool:
        """Adds an op whose rows have one size, with those before it whose rows have not. Nothing is computed twice."""
        pending, chain = [op], {op}
        while pending:
            for tensor in pending.pop()._inputs:
                if tensor.op in self.late and tensor.op not in chain:
                    chain.add(tensor.op)
                    pending.append(tensor.op)
        if not is_called_for_rows(op) or not chain.isdisjoint(self._called):
            return False
        ops = [each for each in op.graph.get_operations() if each in chain]
        given = list(dict.fromkeys(tensor for each in ops for tensor in each._inputs if tensor.op not in chain))
        inputs = [self.known.get(tensor) or _constant(tensor) for tensor in given]
        found = [each for each in inputs if each is not None]
        if len(found) < len(inputs):
            return False
        self._called |= chain
        for old, new in zip(op.outputs, chain_of_each_row(ops, given, found)):
            self.known[old] = new if isinstance(new, Input) else Input(new, True, old.static_shape.rank)
        return True

    def _share(self, op: Operation) -> bool:
        """Adds an op that does not depend on the record, if that is possible. Constants are added where they are used (`_constant`)."""
        definition = op.definition
        if not any(tensor in self.known for tensor in op._inputs) or definition.planning.calls or not op.outputs:
            return False
        inputs = [self.known.get(tensor) or _constant(tensor) for tensor in op._inputs]
        found = [each for each in inputs if each is not None]
        if len(found) < len(inputs) or (definition.traits & EFFECTS and definition.planning.rows is None):
            return False
        for old, new in zip(op.outputs, again(op, [each.tensor for each in found])):
            self.known[old] = Input(new, False, old.static_shape.rank)
        return True

    def _draw(self, op: Operation, repeated: object) -> bool:
        assert self._count is not None
        inputs = [_constant(tensor) for tensor in op._inputs]
        if any(each is None for each in inputs):
            return False
        graph = context.get_default_graph()
        attrs = {name: value for name, value in op.attrs.items() if not name.startswith("_")}
        tensors = [self._count, *(each.tensor for each in inputs if each is not None)]
        made = graph.add(repeated, tensors, attrs, graph.op_name(None, op.definition.name))
        self.drawing[made] = op
        (old,) = op.outputs
        self.known[old] = Input(made.outputs[0], True, old.static_shape.rank)
        return True

    def _branches(self, op: Operation, inputs: list[Input], chooses: Callable[[Any, Any], Any]) -> list[Tensor] | None:
        """Both branches for all records, and for each record the results of the one that it takes."""
        condition, *arguments = inputs
        if not condition.stacked or condition.rank != 0 or op._inputs[0].dtype is not dtypes.bool_:
            return None
        functions = [chooses(op, torch.tensor(truth)).target for truth in (True, False)]
        if None in functions:
            return None
        sides = [self._branch(each, arguments) for each in functions]
        if None in sides:
            return None
        chosen = []
        for tensor, *found in zip(op.outputs, *(side for side in sides if side is not None)):
            shape = tensor.static_shape
            if any(each.lengths is not None for each in found) or not shape.known:
                return None
            if not all(each.rank == shape.rank for each in found):
                return None
            truth = shaping.reshape(condition.tensor, [-1, *[1] * len(shape)])
            chosen.append(selection.SELECT_V2(truth, *(each.tensor for each in found)))
        return chosen

    def _branch(self, function: Function, arguments: list[Input]) -> list[Input] | None:
        fed = set(function.inputs)
        needed, _ = prune(list(function.outputs), list(function.control_outputs), fed)
        self.known.update(zip(function.inputs, arguments))
        if not self.rewrite(
            [each for each in function.graph.get_operations() if each in needed], may_have_effects=False
        ):
            return None
        found = [self.known.get(tensor) or _constant(tensor) for tensor in function.outputs]
        return None if None in found else [each for each in found if each is not None]


def _constant(tensor: Tensor) -> Input | None:
    value = constant_value(tensor)
    return None if value is None else Input(constant(value, tensor.dtype), False, tensor.static_shape.rank)
