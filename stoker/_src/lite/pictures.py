"""A model as a Graphviz graph: operators as boxes, constants as notes, values as the edges between them."""

from __future__ import annotations

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


def _label(operator: Operator) -> str:
    lines = [operator.kind]
    for name, value in vars(operator.options).items() if operator.options is not None else ():
        if name.endswith("SubgraphIndex") or value is None:
            continue
        plain = value.tolist() if hasattr(value, "tolist") else value
        if plain not in (0, False, 0.0):
            lines.append(f"{name} = {plain}")
    return "\n".join(lines)


def dot(model: Model) -> str:
    """The model in the DOT language: a cluster for each subgraph."""
    lines = [
        "digraph model {",
        '  node [shape=box, style="rounded,filled", fillcolor="#eeeeee", fontname="Helvetica", fontsize=10];',
    ]
    lines.append('  edge [fontname="Helvetica", fontsize=8];')
    for position, subgraph in enumerate(model.subgraphs):
        lines.extend(_cluster(subgraph, f"s{position}"))
    for position, subgraph in enumerate(model.subgraphs):
        for number, operator in enumerate(subgraph.operators):
            for inner in operator.subgraphs:
                target = model.subgraphs.index(inner)
                if inner.operators or inner.inputs:
                    first = "o0" if inner.operators else "i0"
                    lines.append(
                        f"  s{position}_o{number} -> s{target}_{first} [style=dashed, lhead=cluster_s{target}];"
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
                lines.append(f"    {made[tensor]} -> {node} [label={_quoted(_type(tensor))}];")
        made.update(dict.fromkeys(operator.outputs, node))
    for number, tensor in enumerate(subgraph.outputs):
        node = f"{prefix}_r{number}"
        lines.append(f'    {node} [label={_quoted(_name(tensor))}, shape=ellipse, fillcolor="#d9d2f0"];')
        if tensor in made:
            lines.append(f"    {made[tensor]} -> {node} [label={_quoted(_type(tensor))}];")
    return [*lines, "  }"]


def _constant(tensor: Tensor) -> str:
    assert tensor.data is not None
    if tensor.data.size <= 4 and tensor.data.dtype != object:
        return f"{tensor.data.tolist()}"
    return _name(tensor)
