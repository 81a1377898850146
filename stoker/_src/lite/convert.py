"""The conversion: from graphs with inputs and outputs to the bytes of a `.tflite` file.

Steps: lower the nodes that the outputs need (`lowering`, `builtins/`), clean up, recognise patterns, fold and fuse (`passes/`), decide about nodes
that no builtin computes, give each operator its version, write (`flatbuffer`), and load the result in LiteRT.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from ai_edge_litert import schema_py_generated as schema
from flatbuffers import flexbuffers

from stoker._src.graph.interchange.raise_control_flow import CONTROL_FLOW
from stoker._src.graph.tensor import Operation
from stoker._src.graph.tensor import Tensor as GraphTensor
from stoker._src.lite import builtins
from stoker._src.lite.builtins.resources import ASSIGNMENTS
from stoker._src.lite.custom_nodes import is_unregistered
from stoker._src.lite.hinted import lower_hints
from stoker._src.lite.lowering import (
    LOWERINGS,
    Conversion,
    Problem,
    Rules,
    Scope,
    Unsupported,
    Value,
    Variable,
    function_of,
    lite_shape,
    needed_ops,
)
from stoker._src.lite.model import Model, Operator, Signature, Subgraph, Tensor, type_of
from stoker._src.lite.passes import broadcasting, cleanup, fusion, patterns
from stoker._src.lite.passes.bidirectional import DIRECTIONS
from stoker._src.lite.passes.editing import Editor, apply_rules
from stoker._src.lite.passes.older import has_only_short_lists, lower_to_runtime, one_channel
from stoker._src.lite.passes.reordering import REORDERING
from stoker._src.lite.versions import OLDEST, assign_versions, is_available, minimum_runtime

assert builtins.__all__  # importing the package registers the lowerings


class ConverterError(Exception):
    """A model that cannot be converted. `problems` lists the nodes and the reasons."""

    def __init__(self, message: str, problems: list[Problem] | None = None) -> None:
        super().__init__(message)
        self.problems = problems or []


@dataclass
class Source:
    """A graph to convert: its inputs and outputs, and the values of its external inputs."""

    inputs: list[GraphTensor]
    outputs: list[GraphTensor]
    input_names: list[str]
    output_names: list[str]
    name: str = "main"
    shapes: dict[GraphTensor, tuple[int, ...]] = field(default_factory=dict)
    """Shapes of inputs, which override the graph's. -1 marks sizes that the caller of the model chooses."""
    variables: dict[str, Variable] = field(default_factory=dict)
    """By the name of the node."""
    captured: dict[GraphTensor, Value] = field(default_factory=dict)
    """Inputs of a function that have known values."""
    controls: list[Operation] = field(default_factory=list)
    """Operations that run in addition to those that the outputs need."""
    tables: dict[str, tuple[np.ndarray, np.ndarray]] = field(default_factory=dict)
    """The keys and values of tables, by the name of the node."""
    signature: str = ""
    signature_inputs: list[str] = field(default_factory=list)
    signature_outputs: list[str] = field(default_factory=list)


Observer = Callable[[str, Model], None]


def convert_sources(sources: list[Source], rules: Rules, observe: Observer | None = None) -> Model:
    """Returns the model of one or more graphs. Each graph has its own subgraph.

    Args:
      sources: The graphs. Variables that are the same object are shared between them.
      rules: The operators that may be used.
      observe: Called with the name of each step and the model after it.

    Raises:
      ConverterError: Some nodes cannot be converted. One message lists all of them.
    """
    conversion = Conversion(rules)
    mains = [Subgraph(source.name) for source in sources]
    conversion.model.subgraphs.extend(mains)
    for source in sources:
        _mark_assigned(source)
    for source, main in zip(sources, mains, strict=True):
        _lower(conversion, source, main)
    model = conversion.model
    if conversion.initial is not None:
        model.subgraphs.append(conversion.initial)
        for main in mains:
            once = Operator("CALL_ONCE", [], [], schema.CallOnceOptionsT(), subgraphs=[conversion.initial])
            main.operators.insert(0, once)
    _observed(observe, "lowered", model)
    for step, rewrite in STEPS:
        if (step == _CELLS and not rules.cells) or (step == _REORDERED and not rules.reorder_fake_quant):
            continue
        for subgraph in model.subgraphs:
            rewrite(subgraph)
        _observed(observe, step, model)
    _drop_unused_subgraphs(model, len(mains))
    _resolve_foreign(conversion)
    if rules.runtime is not None:
        _age(model, rules.runtime)
        _observed(observe, "aged", model)
    return model


def _age(model: Model, runtime: str) -> None:
    """Replaces the operators that a runtime does not have.

    Raises:
      ConverterError: Some cannot be replaced.
    """
    for subgraph in model.subgraphs:
        # What the first pass broadcasts to one shape, the second one flattens.
        broadcasting.narrow(subgraph, broadcasting.MOST_OF_OLDER)
        broadcasting.narrow(subgraph, broadcasting.MOST_OF_OLDER)
    left = lower_to_runtime(model, runtime)
    if left:
        raise _too_young(left, runtime)
    for subgraph in model.subgraphs:
        apply_rules(subgraph, {"SLICE": [cleanup.first_part], "CONV_2D": [one_channel]})
        cleanup.merge_duplicates(subgraph)


def _too_young(operators: dict[Operator, str], runtime: str) -> ConverterError:
    lines = [f"Some operators need a younger runtime than {runtime} (target_spec.min_runtime_version):"]
    for operator, reason in operators.items():
        name = operator.outputs[0].name if operator.outputs else operator.code
        lines.append(f"  {operator.code}, which makes '{name}': {reason}.")
    return ConverterError("\n".join(lines))


def finish(model: Model, runtime: str | None = None) -> Model:
    """Sets the versions of the operators and the runtime version that the model needs.

    Loops that collect short lists need no younger runtime than TensorFlow's own conversion of them does, at the cost of a fraction of a microsecond
    for each turn.

    Raises:
      ConverterError: A builtin is younger than the oldest runtime that must have it.
    """
    if runtime is None and has_only_short_lists(model, OLDEST):
        _age(model, OLDEST)
    assign_versions(model)
    if runtime is not None:
        missing = [each for each in model.operators() if each.code != "CUSTOM" and not is_available(each, runtime)]
        if missing:
            raise _too_young({each: f"it has no version {each.version}" for each in missing}, runtime)
    model.metadata["min_runtime_version"] = minimum_runtime(model).encode().ljust(16, b"\0")
    return model


def _observed(observe: Observer | None, step: str, model: Model) -> None:
    if observe is not None:
        observe(step, model)


def _dead_code(subgraph: Subgraph) -> None:
    Editor(subgraph).finish()


_CELLS, _REORDERED = "cells", "reordered"
STEPS: list[tuple[str, Callable[[Subgraph], Any]]] = [
    ("pruned", _dead_code),
    ("cleaned", cleanup.clean),
    ("patterns", lambda subgraph: apply_rules(subgraph, patterns.PATTERNS)),
    ("shared", cleanup.merge_duplicates),
    (_REORDERED, lambda subgraph: apply_rules(subgraph, REORDERING)),
    ("folded", lambda subgraph: apply_rules(subgraph, fusion.FOLDING)),
    ("tidied", cleanup.tidy),
    ("fused", lambda subgraph: apply_rules(subgraph, fusion.FUSING)),
    (_CELLS, lambda subgraph: apply_rules(subgraph, {"MUL": [patterns.lstm_cell], **DIRECTIONS})),
    ("narrowed", broadcasting.narrow),
    ("merged", cleanup.merge_duplicates),
]


def _lower(conversion: Conversion, source: Source, main: Subgraph) -> None:
    conversion.variables = source.variables
    conversion.tables = source.tables
    scope = Scope(conversion, main)
    given: list[Tensor] = []
    for tensor, name in zip(source.inputs, source.input_names, strict=True):
        shape = source.shapes.get(tensor, lite_shape(tensor.static_shape))
        made = Tensor(scope.unique(name), type_of(tensor.dtype), shape)
        given.append(made)
        scope.values[tensor] = made
    scope.values.update(source.captured)
    main.inputs = given
    lower_hints(scope, source.outputs, source.controls)
    scope.run(source.outputs, source.controls)
    results = []
    for tensor, name in zip(source.outputs, source.output_names, strict=True):
        try:
            result = scope.tensor(tensor)
        except Unsupported as error:
            raise ConverterError(
                f"The output '{tensor.name}' cannot be an output of a TFLite model: {error.reason}."
            ) from None
        if result not in given and result not in results and not result.is_constant:
            result.name = name
        results.append(result)
    main.outputs = results
    if source.signature:
        inputs = dict(zip(source.signature_inputs, given, strict=True))
        outputs = dict(zip(source.signature_outputs, results, strict=True))
        conversion.model.signatures.append(_LateSignature(source.signature, inputs, outputs, main))


class _LateSignature(Signature):
    """Its outputs are those of the subgraph, which passes may replace."""

    def __init__(self, key: str, inputs: dict[str, Tensor], outputs: dict[str, Tensor], subgraph: Subgraph) -> None:
        self.key, self.inputs, self.subgraph = key, inputs, subgraph
        self._names = list(outputs)

    @property
    def outputs(self) -> dict[str, Tensor]:
        return dict(zip(self._names, self.subgraph.outputs, strict=True))


def _mark_assigned(source: Source) -> None:
    """Finds the variables that the model itself assigns to, which cannot be constants."""

    def walk(ops: list[Operation], handles: dict[GraphTensor, Variable]) -> None:
        for op in ops:
            given = [handles.get(tensor) for tensor in op.inputs]
            if op.type == "VarHandleOp" and op.name in source.variables:
                handles[op.outputs[0]] = source.variables[op.name]
            elif op.type == "Identity" and given[0] is not None:
                handles[op.outputs[0]] = given[0]
            elif op.type in ASSIGNMENTS and given[0] is not None:
                given[0].assigned = True
            for attr in op.attrs.values():
                for ref in attr if isinstance(attr, (tuple, list)) else (attr,):
                    if not hasattr(ref, "target"):
                        continue
                    function = function_of(op, ref)
                    shift = len(op.inputs) - len(function.inputs)
                    inner = {t: v for t, v in zip(function.inputs, given[shift:], strict=False) if v is not None}
                    if inner:
                        walk(
                            needed_ops(function.outputs, function.control_outputs, dict.fromkeys(function.inputs)),
                            inner,
                        )

    handles = {tensor: value for tensor, value in source.captured.items() if isinstance(value, Variable)}
    walk(needed_ops(source.outputs, source.controls, dict.fromkeys([*source.inputs, *source.captured])), handles)


def _drop_unused_subgraphs(model: Model, mains: int) -> None:
    used: dict[Subgraph, None] = {}
    waiting = list(model.subgraphs[:mains])
    while waiting:
        subgraph = waiting.pop()
        if subgraph not in used:
            used[subgraph] = None
            for operator in subgraph.operators:
                waiting.extend(operator.subgraphs)
    model.subgraphs = [each for each in model.subgraphs if each in used]


# ---- nodes that no builtin computes ---------------------------------------------------------------------------------


def _resolve_foreign(conversion: Conversion) -> None:
    """Turns the remaining nodes into TensorFlow kernels or custom ops, if the rules allow it.

    Raises:
      ConverterError: The rules do not allow it.
    """
    rules = conversion.rules
    left: list[Problem] = []
    for operator in conversion.model.operators():
        problem = conversion.problems.get(operator)
        if problem is None or operator.code != "CUSTOM":
            continue
        is_user = problem.op.type in rules.user_select_ops
        if (any(tensor is None for tensor in operator.inputs) and problem.op.inputs) or problem.op.type in _FED:
            left.append(problem)
        elif (rules.select_ops or is_user) and not is_unregistered(problem.op.type):
            operator.custom_code = f"Flex{problem.op.type}"
            operator.custom_options = _node_options(problem.op)
        elif rules.custom_ops:
            operator.custom_options = _attribute_options(problem.op)
        else:
            left.append(problem)
    if left:
        raise ConverterError(_report(left), left)


# Ops whose value the caller gives.
_FED = frozenset(("Placeholder", "PlaceholderV2"))


def _node_options(op: Operation) -> bytes:
    """The options of a TensorFlow kernel: the op's name and its NodeDef."""
    node = op.node_def
    del node.input[:]
    return _flex_strings(op.type.encode(), node.SerializeToString())


def _flex_strings(*values: bytes) -> bytes:
    """A flexbuffer with a vector of strings. The library's builder accepts only text, but a message is bytes.

    Each string has its length before it and a zero behind it; the vector has its length, the distance back to each string, and a byte for the
    type of each; last come the distance to the vector, its type and the size of the numbers.
    """
    total = sum(len(value) + 16 for value in values)
    code, width = next((code, size) for code, size in ((0, 1), (1, 2), (2, 4)) if total < 1 << (8 * size))
    data = bytearray()
    starts = []

    def number(value: int) -> None:
        data.extend(value.to_bytes(width, "little"))

    for value in values:
        data.extend(bytes(-len(data) % width))
        number(len(value))
        starts.append(len(data))
        data.extend(value + b"\0")
    data.extend(bytes(-len(data) % width))
    number(len(values))
    vector = len(data)
    for start in starts:
        number(len(data) - start)
    data.extend(bytes([_FLEX_STRING << 2 | code] * len(values)))
    data.extend(bytes(-len(data) % width))
    number(len(data) - vector)
    return bytes(data) + bytes([_FLEX_VECTOR << 2 | code, width])


_FLEX_STRING, _FLEX_VECTOR = 5, 10


def _attribute_options(op: Operation) -> bytes:
    """The attributes of a custom op, by name."""
    builder = flexbuffers.Builder()
    with builder.Map():
        for name, value in sorted(op.attrs.items()):
            number = value.item() if isinstance(value, np.generic) else value
            if isinstance(number, (bool, int, float, str)):
                builder.Key(name)
                builder.Add(number)
            elif isinstance(number, (tuple, list)) and number and all(isinstance(each, int) for each in number):
                builder.Key(name)
                builder.TypedVectorFromElements([int(each) for each in number])
    return bytes(builder.Finish())


def _report(problems: list[Problem]) -> str:
    """One message for all nodes, grouped by op and reason, with their names, the user's lines and alternatives."""
    groups: dict[tuple[str, str, str], list[Operation]] = {}
    for problem in problems:
        groups.setdefault((problem.op.type, problem.reason, problem.instead), []).append(problem.op)
    count = len({problem.op for problem in problems})
    lines = [
        "Some ops are not supported by the native TFLite runtime: "
        f"{count} {'node' if count == 1 else 'nodes'} of {len({key[0] for key in groups})} op(s) cannot be converted."
    ]
    for (kind, reason, instead), ops in groups.items():
        lines.append(f"  {kind}: {reason}.")
        for op in ops[:5]:
            lines.append(f"    node '{op.name}', made at {op.user_line}")
        if len(ops) > 5:
            lines.append(f"    and {len(ops) - 5} more")
        if instead:
            lines.append(f"    Instead: {instead}.")
    if all(problem.op.type in _FED for problem in problems):
        return "\n".join(lines)
    lines.append(
        "  To run them with TensorFlow's own kernels, add tf.lite.OpsSet.SELECT_TF_OPS to target_spec.supported_ops; "
        "to implement them yourself, set allow_custom_ops = True."
    )
    return "\n".join(lines)


def supported_types() -> list[str]:
    """The ops of a graph that can be converted: those with a lowering, constants, and the parts of loops and branches of 1.x, which become functions
    before anything is lowered."""
    return sorted({"Const", *CONTROL_FLOW, *LOWERINGS})
