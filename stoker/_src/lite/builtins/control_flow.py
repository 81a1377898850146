"""Branches and loops become subgraphs; calls are inlined."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from ai_edge_litert import schema_py_generated as schema

from stoker._src.graph.function_graph import Function
from stoker._src.graph.tensor import Operation
from stoker._src.graph.tensor import Tensor as GraphTensor
from stoker._src.lite.builtins.implementations import recognised
from stoker._src.lite.builtins.lists import zeros
from stoker._src.lite.lowering import PendingList, Scope, Unsupported, Value, function_of, lowers
from stoker._src.lite.model import TYPE_CODES, Subgraph, Tensor


@lowers("PartitionedCall", "StatefulPartitionedCall")
def call(scope: Scope, op: Operation) -> Any:
    given = [scope.values.get(tensor) for tensor in op.inputs]
    return scope.inlined(recognised(function_of(op, op.attr("f")), given), given)


# ---- If and Case --------------------------------------------------------------------------------------------------


@lowers("If", "StatelessIf")
def if_(scope: Scope, op: Operation) -> Any:
    branches = [function_of(op, op.attr(name)) for name in ("then_branch", "else_branch")]
    given = [scope.values.get(tensor) for tensor in op.inputs[1:]]
    condition = scope.known(op.inputs[0])
    if condition is not None:
        return scope.inlined(branches[0 if condition else 1], given)
    chosen = scope.tensor(op.inputs[0])
    if chosen.type != "BOOL":
        zero = scope.constant(0, dtype=op.inputs[0].dtype.as_numpy_dtype)
        chosen = scope.emit("NOT_EQUAL", [chosen, zero], scope.temporary(op, "BOOL", ()), schema.NotEqualOptionsT())
    made = [
        scope.child(branch, given, f"{op.name}_{name}") for branch, name in zip(branches, ("then", "else"), strict=True)
    ]
    return _branch(scope, op, chosen, given, made)


def _branch(
    scope: Scope,
    op: Operation,
    condition: Tensor,
    given: Sequence[Value | None],
    made: list[tuple[Subgraph, list[Value | None]]],
) -> list[Any]:
    subgraphs = [subgraph for subgraph, _ in made]
    if any(not isinstance(value, (np.ndarray, Tensor)) for _, values in made for value in values):
        raise Unsupported("a branch returns a resource or a list", "return tensors from both branches")
    scope.conversion.model.subgraphs.extend(subgraphs)
    outputs = []
    for position in range(len(op.outputs)):
        first, second = (subgraph.outputs[position] for subgraph in subgraphs)
        outputs.append(Tensor(scope.unique(op.name), first.type, _common(first.shape, second.shape)))
    operands = [condition, *[value for value in given if isinstance(value, Tensor)]]
    scope.emit("IF", operands, outputs, schema.IfOptionsT(), subgraphs)
    return outputs


def _common(a: tuple[int, ...] | None, b: tuple[int, ...] | None) -> tuple[int, ...] | None:
    if a is None or b is None or len(a) != len(b):
        return None
    return tuple(x if x == y else -1 for x, y in zip(a, b, strict=True))


@lowers("Case", "StatelessCase")
def case(scope: Scope, op: Operation) -> Any:
    branches = [function_of(op, ref) for ref in op.attr("branches")]
    given = [scope.values.get(tensor) for tensor in op.inputs[1:]]
    index = scope.known(op.inputs[0])
    if index is not None:
        return scope.inlined(branches[int(index) if 0 <= int(index) < len(branches) else -1], given)
    return _cases(scope, op, scope.tensor(op.inputs[0]), given, branches, 0)


def _cases(
    scope: Scope, op: Operation, index: Tensor, given: Sequence[Value | None], branches: list[Function], first: int
) -> Any:
    """Lowers a switch: a test selects one branch, and its else-branch contains the tests for the others."""
    if len(branches) == 1:
        return scope.inlined(branches[0], given)
    number = scope.constant(first, dtype=np.int32)
    hit = scope.emit("EQUAL", [index, number], scope.temporary(op, "BOOL", ()), schema.EqualOptionsT())
    taken = scope.child(branches[0], [None, *given][1:], f"{op.name}_case{first}")
    # Both subgraphs take the same inputs, of which the index is the first.
    taken[0].inputs.insert(0, Tensor("index", "INT32", ()))
    rest = Subgraph(f"{op.name}_not{first}")
    inner = Scope(scope.conversion, rest)
    inner_index = Tensor(inner.unique("index"), "INT32", ())
    rest.inputs.append(inner_index)
    inner_given: list[Value | None] = []
    for value in given:
        if isinstance(value, Tensor):
            value = Tensor(inner.unique("input"), value.type, value.shape)
            rest.inputs.append(value)
        inner_given.append(value)
    found = _cases(inner, op, inner_index, inner_given, branches[1:], first + 1)
    rest.outputs = [inner.constant(value) if isinstance(value, np.ndarray) else value for value in found]
    return _branch(scope, op, hit, [index, *given], [taken, (rest, list(found))])


# ---- While --------------------------------------------------------------------------------------------------------


@lowers("While", "StatelessWhile")
def while_(scope: Scope, op: Operation) -> Any:
    """Lowers a loop over the variables that its results need.

    A variable that the body does not change and that is constant outside is a constant inside: weights belong to the subgraph, not to its inputs.
    """
    condition, body = function_of(op, op.attr("cond")), function_of(op, op.attr("body"))
    needed = _needed(
        condition, body, [position for position, tensor in enumerate(op.outputs) if tensor in scope.consumed]
    )
    given: list[Value | None] = [
        scope.values.get(tensor) if position in needed else None for position, tensor in enumerate(op.inputs)
    ]
    kept = [
        position
        for position, (before, after) in enumerate(zip(body.inputs, body.outputs, strict=True))
        if before is after
    ]
    for position, value in enumerate(given):
        if isinstance(value, np.ndarray) and position not in kept:
            given[position] = scope.tensor(op.inputs[position])
    _settle_lists(scope, op, body, given)
    operands = [value for value in given if isinstance(value, Tensor)]
    variables = [position for position, value in enumerate(given) if isinstance(value, Tensor)]
    subgraph, shapes = _stable_body(scope, op, body, given, variables)
    weakened = [_with_shape(value, shapes.get(position)) for position, value in enumerate(given)]
    test, tested = scope.child(condition, weakened, f"{op.name}_cond")
    if isinstance(tested[0], np.ndarray):
        if not tested[0]:
            return [scope.values.get(tensor) for tensor in op.inputs]
    elif not isinstance(tested[0], Tensor):
        raise Unsupported("the loop's condition has no value in TFLite")
    scope.conversion.model.subgraphs.extend([test, subgraph])
    outputs = {
        position: Tensor(scope.unique(op.name), operand.type, shapes[position])
        for position, operand in zip(variables, operands, strict=True)
    }
    scope.emit("WHILE", operands, list(outputs.values()), schema.WhileOptionsT(), [test, subgraph])
    return [
        outputs.get(position, scope.values.get(tensor) if position in kept else None)
        for position, tensor in enumerate(op.inputs)
    ]


def _with_shape(value: Value | None, shape: Any) -> Value | None:
    return Tensor(value.name, value.type, shape) if isinstance(value, Tensor) else value


def _stable_body(
    scope: Scope, op: Operation, body: Function, given: list[Value | None], variables: list[int]
) -> tuple[Subgraph, dict[int, tuple[int, ...] | None]]:
    """The body's subgraph, for variable shapes that hold in every iteration."""
    shapes: dict[int, tuple[int, ...] | None] = {position: given[position].shape for position in variables}  # type: ignore[union-attr]
    while True:
        problems = set(scope.conversion.problems)
        count = len(scope.conversion.model.subgraphs)
        now = [_with_shape(value, shapes.get(position)) for position, value in enumerate(given)]
        inner, subgraph, values = _traced_body(scope, op, body, now)
        weaker = {}
        for position in variables:
            value = values[position]
            if not isinstance(value, (np.ndarray, Tensor)):
                raise Unsupported(
                    "the loop's body returns a resource or a list that is empty", "write to the list in the loop"
                )
            weaker[position] = _common(shapes[position], value.shape)
        if weaker == shapes:
            subgraph.outputs = [inner.tensor(body.outputs[position]) for position in variables]
            return subgraph, shapes
        shapes = weaker
        # The trace and everything it added are discarded.
        del scope.conversion.model.subgraphs[count:]
        for operator in set(scope.conversion.problems) - problems:
            del scope.conversion.problems[operator]


def _traced_body(
    scope: Scope, op: Operation, body: Function, given: list[Value | None]
) -> tuple[Scope, Subgraph, list[Any]]:
    subgraph = Subgraph(f"{op.name}_body")
    inner = Scope(scope.conversion, subgraph)
    for tensor, value in zip(body.inputs, given, strict=True):
        if isinstance(value, Tensor):
            value = Tensor(inner.unique(tensor.op.name), value.type, value.shape)
            subgraph.inputs.append(value)
        inner.values[tensor] = value
    wanted = [position for position, value in enumerate(given) if value is not None]
    inner.run([body.outputs[position] for position in wanted], body.control_outputs)
    return inner, subgraph, [inner.values.get(tensor) for tensor in body.outputs]


def _settle_lists(scope: Scope, op: Operation, body: Function, given: list[Value | None]) -> None:
    """Determines the element shapes of lists that the loop fills, by tracing the body."""
    pending = {position: value for position, value in enumerate(given) if isinstance(value, PendingList)}
    if not pending:
        return
    problems = set(scope.conversion.problems)
    count = len(scope.conversion.model.subgraphs)
    elements: dict[int, Tensor | None] = {}
    items = {position: _item(body, position) for position in pending}
    subgraph = Subgraph("trial")
    trial = Scope(scope.conversion, subgraph)
    for tensor, value in zip(body.inputs, given, strict=True):
        trial.values[tensor] = Tensor(value.name, value.type, value.shape) if isinstance(value, Tensor) else value
    trial.run([item for item in items.values() if item is not None])
    for position, item in items.items():
        value = None if item is None else trial.values.get(item)
        elements[position] = (
            Tensor("", pending[position].type, value.shape) if isinstance(value, (np.ndarray, Tensor)) else None
        )
    del scope.conversion.model.subgraphs[count:]
    for operator in set(scope.conversion.problems) - problems:
        del scope.conversion.problems[operator]
    dynamic = []
    for position, value in pending.items():
        element = elements[position]
        if element is None or element.shape is None:
            raise Unsupported("the shape of a list's elements is not known", "give the TensorArray an element_shape")
        value.element = element.shape
        if -1 in element.shape:
            dynamic.append(position)
        else:
            given[position] = zeros(scope, op, value)
    if dynamic:
        _measure(scope, op, body, given, [(position, items[position]) for position in dynamic])


def _measure(
    scope: Scope, op: Operation, body: Function, given: list[Value | None], wanted: list[tuple[int, Any]]
) -> None:
    """Lists whose element shape is known only at run time: the elements of the first iteration are computed an extra time to measure them."""
    outer_values, outer_shapes = scope.values, scope._shapes
    scope.values = dict(zip(body.inputs, given, strict=True))
    scope._shapes = {}
    try:
        scope.run([item for _, item in wanted])
        measured = [(position, scope.tensor(item)) for position, item in wanted]
    finally:
        scope.values, scope._shapes = outer_values, outer_shapes
    for position, element in measured:
        pending = given[position]
        assert isinstance(pending, PendingList)
        assert element.shape is not None
        sizes = scope.temporary(op, "INT32", (len(element.shape),))
        scope.emit("SHAPE", [element], sizes, schema.ShapeOptionsT(outType=TYPE_CODES["INT32"]))
        pending.element = element.shape
        given[position] = zeros(scope, op, pending, sizes)


def _item(body: Function, position: int) -> GraphTensor | None:
    """The tensor that the body writes into the list at `position` of its variables."""
    op = body.outputs[position].op
    while op.type in ("Identity", "TensorListSetItem", "TensorArrayWriteV3", "TensorListPushBack"):
        if op.type != "Identity":
            return op.inputs[1] if op.type == "TensorListPushBack" else op.inputs[2]
        op = op.inputs[0].op
    return None


def _needed(condition: Function, body: Function, wanted: list[int]) -> set[int]:
    """The positions of the loop variables that the condition, or the wanted results, depend on."""
    found: set[int] = set()
    waiting = [*wanted, *_reached(condition, condition.outputs)]
    if body.control_outputs:
        waiting.extend(_reached(body, [], body.control_outputs))
    while waiting:
        position = waiting.pop()
        if position not in found:
            found.add(position)
            waiting.extend(_reached(body, [body.outputs[position]]))
    return found


def _reached(function: Function, outputs: Sequence[GraphTensor], controls: Sequence[Operation] = ()) -> list[int]:
    positions = {tensor: position for position, tensor in enumerate(function.inputs)}
    found: set[Operation] = set()
    reached: set[int] = set()
    waiting = list(outputs)
    for op in controls:
        waiting.extend(op._inputs)
    while waiting:
        tensor = waiting.pop()
        if tensor in positions:
            reached.add(positions[tensor])
        elif tensor.op not in found:
            found.add(tensor.op)
            waiting.extend(tensor.op._inputs)
    return sorted(reached)
