"""A model as a Graphviz graph: operators as boxes, constants as notes, values as the edges between them."""

from __future__ import annotations

import numpy as np
from ai_edge_litert import schema_py_generated as schema

from stoker._src.lite.model import Model, Operator, Subgraph, Tensor

_COLOURS = {
    "CONV_2D": "#c5e1f5",
    "DEPTHWISE_CONV_2D": "#c5e1f5",
    "FULLY_CONNECTED": "#c5e1f5",
    "BATCH_MATMUL": "#c5e1f5",
    "CUSTOM": "#f7c9c4",
    "IF": "#fbe7b2",
    "WHILE": "#fbe7b2",
}


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'"{escaped}"'


def _type(tensor: Tensor) -> str:
    sizes = "?" if tensor.shape is None else "x".join("?" if size < 0 else str(size) for size in tensor.shape)
    kind = tensor.type.lower()
    return f"{kind}[{sizes}]" if sizes or tensor.shape is None else kind


def _name(tensor: Tensor) -> str:
    return f"{tensor.name}\n{_type(tensor)}"


# Options that say nothing, or are shown in another way.
_SKIPPED = frozenset(("potScaleInt16", "weightsFormat", "quantizedBiasType"))
# Options by the enumeration that names their values, without the value that is the rule.
_NAMED = {
    "fusedActivationFunction": (schema.ActivationFunctionType, "NONE"),
    "padding": (schema.Padding, "SAME"),
    "inDataType": (schema.TensorType, ""),
    "outDataType": (schema.TensorType, ""),
    "outType": (schema.TensorType, ""),
    "idxOutType": (schema.TensorType, ""),
    "outputType": (schema.TensorType, ""),
    "mode": (schema.MirrorPadMode, ""),
}
# Options in pairs, the text they make, and the pair that is the rule.
_PAIRS = (
    ("filterHeight", "filterWidth", "filter", None),
    ("strideH", "strideW", "stride", (1, 1)),
    ("dilationHFactor", "dilationWFactor", "dilation", (1, 1)),
)


def _label(operator: Operator) -> str:
    """The builtin and those of its options that are not the rule."""
    options = dict(vars(operator.options)) if operator.options is not None else {}
    lines = [operator.kind]
    for high, wide, text, rule in _PAIRS:
        pair = options.pop(high, None), options.pop(wide, None)
        if None not in pair and pair != rule:
            lines.append(f"{text} {pair[0]}x{pair[1]}")
    for name, value in options.items():
        if name.endswith("SubgraphIndex") or value is None or name in _SKIPPED:
            continue
        plain = value.tolist() if hasattr(value, "tolist") else value
        if name in _NAMED:
            enumeration, rule = _NAMED[name]
            word = next((word for word, code in vars(enumeration).items() if code == plain and word[0] != "_"), plain)
            if word != rule:
                lines.append(str(word) if rule else f"{name} {word}")
        elif plain is True:
            lines.append(name)
        elif plain not in (0, False, 0.0):
            lines.append(f"{name} {plain:.4g}" if isinstance(plain, float) else f"{name} {plain}")
    return "\n".join(lines)


_ROLES = {"WHILE": ("condition", "body"), "IF": ("then", "else")}


def dot(model: Model) -> str:
    """The model in the DOT language: a cluster for each subgraph."""
    lines = [
        "digraph model {",
        '  compound=true; fontname="Helvetica"; fontsize=11; color="#9aa5b1";',
        '  node [shape=box, style="rounded,filled", fillcolor="#eeeeee", fontname="Helvetica", fontsize=10];',
    ]
    lines.append('  edge [fontname="Helvetica", fontsize=8];')
    for position, subgraph in enumerate(model.subgraphs):
        lines.extend(_cluster(subgraph, f"s{position}"))
    for position, subgraph in enumerate(model.subgraphs):
        for number, operator in enumerate(subgraph.operators):
            roles = _ROLES.get(operator.code, ("",) * len(operator.subgraphs))
            for role, inner in zip(roles, operator.subgraphs, strict=False):
                target = model.subgraphs.index(inner)
                if inner.operators or inner.inputs:
                    first = "o0" if inner.operators else "i0"
                    lines.append(
                        f"  s{position}_o{number} -> s{target}_{first} "
                        f'[style=dashed, label=" {role}", lhead=cluster_s{target}];'
                    )
    return "\n".join([*lines, "}", ""])


def _cluster(subgraph: Subgraph, prefix: str) -> list[str]:
    lines = [f"  subgraph cluster_{prefix} {{", f"    label={_quoted(subgraph.name)};"]
    made: dict[Tensor, str] = {}
    for number, tensor in enumerate(subgraph.inputs):
        made[tensor] = f"{prefix}_i{number}"
        lines.append(f'    {made[tensor]} [label={_quoted(_name(tensor))}, shape=ellipse, fillcolor="#cdebc5"];')
    constants: dict[Tensor, str] = {}
    for number, operator in enumerate(subgraph.operators):
        node = f"{prefix}_o{number}"
        lines.append(
            f'    {node} [label={_quoted(_label(operator))}, fillcolor="{_COLOURS.get(operator.code, "#eeeeee")}"];'
        )
        for tensor in operator.inputs:
            if tensor is None:
                continue
            if tensor.is_constant:
                if tensor not in constants:
                    constants[tensor] = f"{prefix}_c{len(constants)}"
                    lines.append(
                        f"    {constants[tensor]} [label={_quoted(_constant(tensor))}, shape=note, fillcolor=white];"
                    )
                lines.append(f"    {constants[tensor]} -> {node};")
            elif tensor in made:
                lines.append(f"    {made[tensor]} -> {node} [label={_quoted(' ' + _type(tensor))}];")
        made.update(dict.fromkeys(operator.outputs, node))
    for number, tensor in enumerate(subgraph.outputs):
        node = f"{prefix}_r{number}"
        lines.append(f'    {node} [label={_quoted(_name(tensor))}, shape=ellipse, fillcolor="#d9d2f0"];')
        if tensor in made:
            lines.append(f"    {made[tensor]} -> {node};")
    return [*lines, "  }"]


def _constant(tensor: Tensor) -> str:
    assert tensor.data is not None
    if tensor.data.size <= 4 and tensor.data.dtype != object:
        words = [f"{value:.4g}" if isinstance(value, float) else str(value) for value in tensor.data.ravel().tolist()]
        return str(np.array(words, object).reshape(tensor.data.shape).tolist()).replace("'", "")
    return _name(tensor)
