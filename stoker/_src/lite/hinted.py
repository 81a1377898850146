"""Lowers the parts of a graph that `OpHint` marks to single operators: recurrent cells to TFLite's fused operators, other functions to custom ops.

The results of a hint get their values before the rest of the graph is lowered. The walk stops there, so the nodes inside the hint are not
lowered. If a part does not match the fused operator, the hint is ignored and its nodes are lowered one by one.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from ai_edge_litert import schema_py_generated as schema
from flatbuffers import flexbuffers

from stoker._src.graph.function_graph import Function
from stoker._src.graph.tensor import Operation
from stoker._src.graph.tensor import Tensor as GraphTensor
from stoker._src.lite.lowering import Scope, Unsupported, function_of, lowers, needed_ops
from stoker._src.lite.model import Operator, Tensor
from stoker._src.lite.op_hints import ATTRIBUTE_PREFIX, OpHint

_LOOPS = ("While", "StatelessWhile")
_ACTIVATIONS = {"tanh": 4, "relu": 1, "relu6": 3}
# What each cell has besides its activation.
_PLAIN = frozenset(
    ("Add", "AddV2", "BiasAdd", "ConcatV2", "Const", "Identity", "MatMul", "Mul", "Sigmoid", "Transpose")
)
# The hint numbers its arguments like the inputs of the operator.
_LSTM_INPUTS, _LSTM_STATES, _LSTM_RESULT = 24, (18, 19), 2
_RNN_INPUTS, _RNN_STATES, _RNN_RESULT = 5, (4,), 1


@dataclass
class Hint:
    """One use of a hinted function: the wrapped tensors of each argument, in order."""

    function: str
    level: int
    inputs: dict[int, list[Operation]] = field(default_factory=dict)
    outputs: dict[int, list[Operation]] = field(default_factory=dict)
    attrs: dict[str, Any] = field(default_factory=dict)


def hints_in(ops: Iterable[Operation]) -> list[Hint]:
    """The hints whose nodes are among `ops`, in the order of their first nodes."""
    found: dict[str, Hint] = {}
    for op in ops:
        uuid = op.attrs.get(OpHint.FUNCTION_UUID_ATTR)
        if uuid is None:
            continue
        attrs = op.attrs
        hint = found.setdefault(uuid, Hint(attrs[OpHint.FUNCTION_NAME_ATTR], attrs.get(OpHint.FUNCTION_LEVEL_ATTR, 1)))
        is_input = OpHint.FUNCTION_INPUT_INDEX_ATTR in attrs
        index = attrs[OpHint.FUNCTION_INPUT_INDEX_ATTR if is_input else OpHint.FUNCTION_OUTPUT_INDEX_ATTR]
        (hint.inputs if is_input else hint.outputs).setdefault(index, []).append(op)
        for key, value in attrs.items():
            if key.startswith(ATTRIBUTE_PREFIX):
                hint.attrs[key.removeprefix(ATTRIBUTE_PREFIX)] = value
    for hint in found.values():
        for side in (hint.inputs, hint.outputs):
            for wrapped in side.values():
                wrapped.sort(key=lambda op: op.attrs.get(OpHint.FUNCTION_SORT_INDEX_ATTR, 0))
    return list(found.values())


def lower_hints(scope: Scope, outputs: Sequence[GraphTensor], controls: Sequence[Operation] = ()) -> None:
    """Gives values to the results of the hints that `outputs` need."""
    for hint in sorted(hints_in(needed_ops(outputs, controls, scope.values)), key=lambda each: -each.level):
        if not hint.inputs or not hint.outputs:
            continue  # the part is needed only for its other results
        first, values, handles = len(scope.subgraph.operators), dict(scope.values), dict(scope.handles)
        try:
            if hint.level > 1:
                _lower_loop(scope, hint)
            elif hint.function in _FUSED:
                _lower_steps(scope, hint)
            elif scope.conversion.rules.custom_ops:
                _lower_custom(scope, hint)
        except Unsupported:
            # The tensors that these operators made are to be made again.
            del scope.subgraph.operators[first:]
            scope.values, scope.handles = values, handles


# ---- loops ----------------------------------------------------------------------------------------------------------


def _lower_loop(scope: Scope, parent: Hint) -> None:
    if 0 not in parent.inputs or 0 not in parent.outputs:
        return  # not the hint of dynamic_rnn
    source, result = parent.inputs[0][0], parent.outputs[0][0]
    between = needed_ops([result.inputs[0]], (), dict.fromkeys([*source.outputs, *scope.values]))
    loops = [op for op in between if op.type in _LOOPS]
    if len(loops) != 1:
        return
    body = function_of(loops[0], loops[0].attrs["body"])
    inside = needed_ops(body.outputs, body.control_outputs, dict.fromkeys(body.inputs))
    children = hints_in(inside)
    if not children or any(child.function not in _FUSED or child.level != 1 for child in children):
        return
    _check_chain(children, inside)
    scope.run([source.outputs[0]])
    sequence = scope.tensor(source.outputs[0])
    for child in children:
        sequence = _FUSED[child.function](scope, _cell(child, _Body(scope, loops[0], body)), sequence)
    scope.values[result.outputs[0]] = sequence


def _check_chain(children: list[Hint], inside: list[Operation]) -> None:
    """Checks that the cells form a chain from a step of the sequence to the output of the loop.

    Raises:
      Unsupported: Each step computes something else that the fused operators would drop.
    """
    before: Operation | None = None
    for child in children:
        read = _behind(child.inputs[0][0].inputs[0]).op
        if (before is None and read.type != "TensorListGetItem") or (before is not None and read is not before):
            raise Unsupported("the cells of a loop do not follow each other directly")
        before = child.outputs[_RESULTS[child.function]][0]
    written = [op for op in inside if op.type == "TensorListSetItem"]
    if len(written) != 1 or _behind(written[0].inputs[2]).op is not before:
        raise Unsupported("the loop returns something else than the output of its last cell")


def _behind(tensor: GraphTensor) -> GraphTensor:
    """The input of an identity, unless the identity itself marks a result."""
    while tensor.op.type == "Identity" and OpHint.FUNCTION_OUTPUT_INDEX_ATTR not in tensor.op.attrs:
        tensor = tensor.op.inputs[0]
    return tensor


class _Body:
    """Values of a loop body in its first step."""

    def __init__(self, scope: Scope, loop: Operation, body: Function) -> None:
        self.scope, self.loop, self.body = scope, loop, body

    def constants(self, tensors: list[GraphTensor]) -> list[np.ndarray]:
        """The values of tensors of the body that do not depend on the step.

        Raises:
          Unsupported: The values depend on the step or are not constant.
        """
        scope = self.scope
        given = dict.fromkeys(self.body.inputs)
        read = {t for op in needed_ops(tensors, (), given) for t in op._inputs} | set(tensors)
        pairs = [
            (inner, outer) for inner, outer in zip(self.body.inputs, self.loop.inputs, strict=True) if inner in read
        ]
        scope.run([outer for _, outer in pairs])
        values, shapes = scope.values, scope._shapes
        scope.values, scope._shapes = {inner: values.get(outer) for inner, outer in pairs}, {}
        try:
            scope.run(tensors)
            return [scope.required(tensor, "the weights of a cell") for tensor in tensors]
        finally:
            scope.values, scope._shapes = values, shapes


class _Here:
    """Values of the graph itself, for unrolled cells."""

    def __init__(self, scope: Scope) -> None:
        self.scope = scope

    def constants(self, tensors: list[GraphTensor]) -> list[np.ndarray]:
        self.scope.run(tensors)
        return [self.scope.required(tensor, "the weights of a cell") for tensor in tensors]


def _lower_steps(scope: Scope, hint: Hint) -> None:
    """Cells of unrolled steps: their inputs are packed into a sequence, and the results unpacked."""
    steps, results = hint.inputs.get(0, []), hint.outputs.get(_RESULTS[hint.function], [])
    if not steps or len(steps) != len(results):
        raise Unsupported("some steps of an unrolled cell are not needed")
    inputs = [op.inputs[0] for op in steps]
    scope.run(inputs)
    sequence = _packed(scope, steps[0], [scope.tensor(tensor) for tensor in inputs])
    made = _FUSED[hint.function](scope, _cell(hint, _Here(scope)), sequence)
    for op, value in zip(results, _unpacked(scope, results, made), strict=True):
        scope.values[op.outputs[0]] = value


def _packed(scope: Scope, op: Operation, tensors: list[Tensor]) -> Tensor:
    first = tensors[0]
    shape = None if first.shape is None else (len(tensors), *first.shape)
    options = schema.PackOptionsT(valuesCount=len(tensors), axis=0)
    return scope.emit("PACK", tensors, scope.temporary(op, first.type, shape), options)


def _unpacked(scope: Scope, ops: list[Operation], whole: Tensor) -> list[Tensor]:
    options = schema.UnpackOptionsT(num=len(ops), axis=0)
    return scope.emit("UNPACK", [whole], [scope.result(op) for op in ops], options)


# ---- operators ------------------------------------------------------------------------------------------------------


@dataclass
class _Cell:
    """A fused operator to be made."""

    arguments: dict[int, tuple[str, GraphTensor]]
    """Name and value of each input but the sequence."""
    where: _Body | _Here
    """Knows the values of `arguments`."""
    result: str
    attrs: dict[str, Any]


def _cell(hint: Hint, where: _Body | _Here) -> _Cell:
    arguments = {index: (ops[0].name, ops[0].inputs[0]) for index, ops in sorted(hint.inputs.items()) if index != 0}
    attrs = hint.attrs if "activation" in hint.attrs else _attrs_of_nodes(hint)
    return _Cell(arguments, where, hint.outputs[_RESULTS[hint.function]][0].name, attrs)


def _attrs_of_nodes(hint: Hint) -> dict[str, Any]:
    """The attributes of a cell in a graph of TensorFlow, whose hints do not state them, as far as its nodes tell.

    Raises:
      Unsupported: The cell does more than a plain one, such as clipping its state.
    """
    given = [op.outputs[0] for ops in hint.inputs.values() for op in ops]
    results = [op.inputs[0] for ops in hint.outputs.values() for op in ops]
    other = {op.type for op in needed_ops(results, (), dict.fromkeys(given))} - _PLAIN
    if len(other) != 1:
        raise Unsupported(f"a plain cell has one activation, and this one has {', '.join(sorted(other)) or 'none'}")
    return {"activation": other.pop().lower()}


def _arguments(
    scope: Scope, cell: _Cell, sequence: Tensor, count: int, states: tuple[int, ...]
) -> tuple[list[Tensor | None], tuple[int, ...]]:
    """The operator's inputs and the shape of what it gives in a step. The inputs are the sequence, the weights, and the states, which are initially
    zero and stored in the model."""
    found = cell.where.constants([tensor for _, tensor in cell.arguments.values()])
    inputs: list[Tensor | None] = [None] * count
    inputs[0] = sequence
    for (index, (name, _)), value in zip(cell.arguments.items(), found, strict=True):
        if not 0 < index < count:
            raise Unsupported(f"the fused operator has {count} inputs and no input {index}")
        if index not in states:
            inputs[index] = scope.constant(value.astype(np.float32), name)
            continue
        if value.any():
            raise Unsupported("the state of a fused cell starts as zeros")
        inputs[index] = Tensor(scope.unique(name), "FLOAT32", value.shape, is_variable=True)
    state = inputs[states[0]]
    if state is None or state.shape is None:
        raise Unsupported(f"the fused operator has no state, its input {states[0]}")
    return inputs, state.shape


def _activation(cell: _Cell) -> int:
    name = cell.attrs.get("activation", "tanh")
    if name not in _ACTIVATIONS:
        raise Unsupported(f"fused cells have no activation {name}")
    return _ACTIVATIONS[name]


def _lstm(scope: Scope, cell: _Cell, sequence: Tensor) -> Tensor:
    inputs, state = _arguments(scope, cell, sequence, _LSTM_INPUTS, _LSTM_STATES)
    options = schema.UnidirectionalSequenceLSTMOptionsT(
        fusedActivationFunction=_activation(cell),
        cellClip=cell.attrs.get("cell_clip", 0.0),
        projClip=cell.attrs.get("proj_clip", 0.0),
        timeMajor=True,
    )
    return _emitted(scope, cell, "UNIDIRECTIONAL_SEQUENCE_LSTM", inputs, state, options)


def _rnn(scope: Scope, cell: _Cell, sequence: Tensor) -> Tensor:
    inputs, state = _arguments(scope, cell, sequence, _RNN_INPUTS, _RNN_STATES)
    options = schema.SequenceRNNOptionsT(timeMajor=True, fusedActivationFunction=_activation(cell))
    return _emitted(scope, cell, "UNIDIRECTIONAL_SEQUENCE_RNN", inputs, state, options)


def _emitted(
    scope: Scope, cell: _Cell, code: str, inputs: list[Tensor | None], state: tuple[int, ...], options: Any
) -> Tensor:
    sequence = inputs[0]
    assert sequence is not None
    if sequence.shape is None or len(sequence.shape) != 3 or sequence.shape[1] not in (-1, state[0]):
        raise Unsupported("a fused cell reads sequences of [time, batch, size]")
    made = Tensor(scope.unique(cell.result), "FLOAT32", (sequence.shape[0], *state))
    return scope.emit(code, inputs, made, options)


_FUSED = {"UnidirectionalSequenceLstm": _lstm, "UnidirectionalSequenceRnn": _rnn}
_RESULTS = {"UnidirectionalSequenceLstm": _LSTM_RESULT, "UnidirectionalSequenceRnn": _RNN_RESULT}


@lowers(*_FUSED)
def _lower_stub(scope: Scope, op: Operation) -> list[Tensor | None]:
    """Lowers the node that `convert_op_hints_to_stubs` makes of a cell. Its inputs have the numbers of the hint's arguments."""
    numbers = op.attrs.get(OpHint.TFLITE_INPUT_INDICES, ())
    given = dict(zip(numbers, op.inputs, strict=False))
    if len(given) != len(op.inputs) or 0 not in given:
        raise Unsupported(
            f"{OpHint.TFLITE_INPUT_INDICES} does not number the inputs, of which the sequence is the first"
        )
    number = _RESULTS[op.type]
    if any(tensor in scope.consumed for index, tensor in enumerate(op.outputs) if index != number):
        raise Unsupported("the fused operator gives no final state", "use the output of the last step")
    arguments = {index: (tensor.op.name, tensor) for index, tensor in given.items() if index != 0}
    made = _FUSED[op.type](scope, _Cell(arguments, _Here(scope), op.name, op.attrs), scope.tensor(given[0]))
    return [made if index == number else None for index in range(len(op.outputs))]


def _lower_custom(scope: Scope, hint: Hint) -> None:
    """Lowers any other hinted function to a custom op of the same name."""
    inputs: list[Tensor | None] = []
    for index in sorted(hint.inputs):
        wrapped = hint.inputs[index]
        strategy = wrapped[0].attrs.get(OpHint.FUNCTION_AGGREGATE_ATTR, "")
        chosen = {OpHint.AGGREGATE_FIRST: wrapped[:1], OpHint.AGGREGATE_LAST: wrapped[-1:]}.get(strategy, wrapped)
        tensors = [op.inputs[0] for op in chosen]
        scope.run(tensors)
        values = [scope.tensor(tensor) for tensor in tensors]
        inputs.append(_packed(scope, chosen[0], values) if strategy == OpHint.AGGREGATE_STACK else values[0])
    outputs: list[Tensor] = []
    stacked: list[tuple[list[Operation], Tensor]] = []
    for index in sorted(hint.outputs):
        wrapped = hint.outputs[index]
        strategy = wrapped[0].attrs.get(OpHint.FUNCTION_AGGREGATE_ATTR, "")
        if strategy == OpHint.AGGREGATE_STACK:
            one = scope.result(wrapped[0])
            shape = None if one.shape is None else (len(wrapped), *one.shape)
            outputs.append(scope.temporary(wrapped[0], one.type, shape))
            stacked.append((wrapped, outputs[-1]))
        else:
            op = wrapped[-1] if strategy == OpHint.AGGREGATE_LAST else wrapped[0]
            outputs.append(scope.result(op))
            scope.values[op.outputs[0]] = outputs[-1]
    builder = flexbuffers.Builder()
    with builder.Map():
        for name, value in sorted(hint.attrs.items()):
            builder.Key(name)
            builder.Add(value)
    scope.subgraph.operators.append(
        Operator("CUSTOM", inputs, outputs, custom_code=hint.function, custom_options=bytes(builder.Finish()))
    )
    for ops, whole in stacked:
        for op, value in zip(ops, _unpacked(scope, ops, whole), strict=True):
            scope.values[op.outputs[0]] = value
