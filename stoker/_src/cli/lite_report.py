"""`stoker inspect model.tflite`: operators, inputs, outputs, signatures, constants and quantization of a TFLite model."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np

from stoker._src.base.errors import DataLossError
from stoker._src.cli.graph_picture import Node
from stoker._src.cli.reports import STATISTICS, Report, statistics, statistics_cells
from stoker._src.formats import gfile
from stoker._src.lite.flatbuffer import read_model
from stoker._src.lite.model import Model, Operator, Quantization, Subgraph, Tensor
from stoker._src.lite.verification.meaning import verify

_MOST_ROWS = 40


def lite_report(path: str, with_statistics: bool) -> Report:
    """The report on a model.

    Raises:
        DataLossError: the file is damaged.
    """
    with gfile.GFile(path, "rb") as file:
        content = file.read()
    try:
        verify(content)
        model = read_model(content)
    except ValueError as error:
        raise DataLossError(None, None, f"{path}: {error}") from error
    report = Report(nodes=picture_nodes(model))
    data: dict[str, Any] = {
        "kind": "tflite",
        "bytes": len(content),
        "description": model.description,
        "metadata": {name: len(value) for name, value in model.metadata.items()},
        "operators": dict(model.operator_counts().most_common()),
        "quantization": _kind_of(model),
        "signatures": {
            each.key: {"inputs": list(each.inputs), "outputs": list(each.outputs)} for each in model.signatures
        },
        "subgraphs": [_subgraph(each, with_statistics) for each in model.subgraphs],
    }
    report.data = data
    _overview(report, model, data)
    for subgraph, described in zip(model.subgraphs, data["subgraphs"], strict=True):
        _subgraph_lines(report, subgraph, described, with_statistics)
    return report


def _overview(report: Report, model: Model, data: dict[str, Any]) -> None:
    operators = sum(len(each.operators) for each in model.subgraphs)
    report.lines.append(
        f"TFLite model of {data['bytes']:,} bytes: {_count(operators, 'operator')}, {data['quantization']}"
        + (f", {len(model.subgraphs)} subgraphs" if len(model.subgraphs) > 1 else "")
    )
    runtime = model.metadata.get("min_runtime_version", b"").rstrip(b"\0").decode("utf-8", "replace")
    if runtime:
        report.lines.append(f"runs on TensorFlow Lite {runtime} and later")
    versions: dict[str, set[int]] = {}
    for operator in model.operators():
        versions.setdefault(operator.kind, set()).add(operator.version)
    report.lines.extend(["", "operators"])
    report.table(
        ("op", "count", "version"),
        [
            (kind, f"{count:,}", ", ".join(map(str, sorted(versions[kind]))))
            for kind, count in data["operators"].items()
        ],
    )
    for key, sides in data["signatures"].items():
        report.lines.append(f"signature {key}: {', '.join(sides['inputs'])} -> {', '.join(sides['outputs'])}")


def _kind_of(model: Model) -> str:
    """What the numbers of a model are, in words."""
    tensors = [each for subgraph in model.subgraphs for each in subgraph.tensors]
    values = Counter(each.type for each in tensors if not each.is_constant and each.quantization is not None)
    weights = Counter(
        each.type for each in tensors if each.is_constant and each.data is not None and each.data.size > 1
    )
    if values:
        return f"quantized to {' and '.join(sorted(name.lower() for name in values if name != 'INT32'))}"
    if weights["INT8"] or weights["UINT8"]:
        return "weights in 8 bits"
    return "weights in half precision" if weights["FLOAT16"] else "floating point"


def _subgraph(subgraph: Subgraph, with_statistics: bool) -> dict[str, Any]:
    constants = _largest_first(subgraph)
    return {
        "name": subgraph.name,
        "operators": [_operator(each) for each in subgraph.operators],
        "inputs": [_tensor(each) for each in subgraph.inputs],
        "outputs": [_tensor(each) for each in subgraph.outputs],
        "results": [_tensor(tensor) for each in subgraph.operators for tensor in each.outputs],
        "constants": [_constant(each, with_statistics) for each in constants],
        "bytes_by_type": _bytes_by_type(constants),
    }


def _largest_first(subgraph: Subgraph) -> list[Tensor]:
    return sorted((each for each in subgraph.tensors if each.is_constant), key=lambda each: -each.byte_size)


def _operator(operator: Operator) -> dict[str, Any]:
    return {
        "op": operator.kind,
        "version": operator.version,
        "inputs": [None if each is None else each.name for each in operator.inputs],
        "outputs": [each.name for each in operator.outputs],
    }


def _tensor(tensor: Tensor) -> dict[str, Any]:
    found: dict[str, Any] = {
        "name": tensor.name,
        "type": tensor.type.lower(),
        "shape": None if tensor.shape is None else [None if size < 0 else size for size in tensor.shape],
    }
    numbers = tensor.quantization
    if numbers is not None and numbers.scale is not None and numbers.zero_point is not None:
        found["scale"] = numbers.scale.tolist()
        found["zero_point"] = numbers.zero_point.tolist()
        found["axis"] = numbers.axis if numbers.per_channel else None
    return found


def _constant(tensor: Tensor, with_statistics: bool) -> dict[str, Any]:
    found = {**_tensor(tensor), "bytes": tensor.byte_size}
    if with_statistics and tensor.data is not None:
        found["statistics"] = statistics(_real_values(tensor))
    return found


def _real_values(tensor: Tensor) -> np.ndarray:
    """The numbers that a constant stands for."""
    values, numbers = tensor.data, tensor.quantization
    assert values is not None
    if numbers is None or numbers.scale is None or numbers.zero_point is None or values.dtype == object:
        return values
    scale, zero = numbers.scale, numbers.zero_point
    if numbers.per_channel:
        shape = [1] * values.ndim
        shape[numbers.axis] = -1
        scale, zero = scale.reshape(shape), zero.reshape(shape)
    return (values.astype(np.float32) - zero) * scale


def _bytes_by_type(constants: list[Tensor]) -> dict[str, int]:
    found: Counter[str] = Counter()
    for each in constants:
        found[each.type.lower()] += each.byte_size
    return dict(found.most_common())


# ---- text -------------------------------------------------------------------------------------------------------


def _subgraph_lines(report: Report, subgraph: Subgraph, data: dict[str, Any], with_statistics: bool) -> None:
    report.lines.extend(["", f"subgraph {subgraph.name}: {_count(len(subgraph.operators), 'operator')}"])
    rows = [
        (side, each.name, each.type.lower(), _shape(each), quantization_text(each.quantization))
        for side, tensors in (("input", subgraph.inputs), ("output", subgraph.outputs))
        for each in tensors
    ]
    report.table(("", "name", "type", "shape", "quantization"), rows)
    rows = [
        (operator.kind, each.name, each.type.lower(), _shape(each), quantization_text(each.quantization))
        for operator in subgraph.operators
        for each in operator.outputs
    ]
    if rows:
        report.lines.append("results, in the order in which they are computed")
        report.table(("op", "result", "type", "shape", "quantization"), rows[:_MOST_ROWS])
    if len(rows) > _MOST_ROWS:
        report.lines.append(f"  and {len(rows) - _MOST_ROWS:,} more")
    constants = data["constants"]
    if not constants:
        return
    sizes = ", ".join(f"{size:,} of {kind}" for kind, size in data["bytes_by_type"].items())
    report.lines.append(f"{_count(len(constants), 'constant')}, bytes: {sizes}")
    header = ("constant", "type", "shape", "bytes", "quantization", *(STATISTICS if with_statistics else ()))
    rows = []
    for each, tensor in list(zip(constants, _largest_first(subgraph), strict=True))[:_MOST_ROWS]:
        cells = statistics_cells(each.get("statistics")) if with_statistics else ()
        numbers = quantization_text(tensor.quantization)
        rows.append((tensor.name, tensor.type.lower(), _shape(tensor), f"{each['bytes']:,}", numbers, *cells))
    report.table(header, rows)
    if len(constants) > _MOST_ROWS:
        report.lines.append(f"  and {len(constants) - _MOST_ROWS:,} smaller ones")


def _count(number: int, thing: str) -> str:
    return f"{number:,} {thing}{'' if number == 1 else 's'}"


def _shape(tensor: Tensor) -> str:
    if tensor.shape is None:
        return "?"
    return " x ".join("?" if size < 0 else str(size) for size in tensor.shape) or "scalar"


def quantization_text(numbers: Quantization | None) -> str:
    """`0.0078 * (q + 1)`: how stored numbers become real ones."""
    if numbers is None or numbers.scale is None or not len(numbers.scale):
        return ""
    if numbers.per_channel:
        low, high = float(numbers.scale.min()), float(numbers.scale.max())
        return f"{low:.4g} to {high:.4g} * q, {len(numbers.scale)} channels of dimension {numbers.axis}"
    zero = int(numbers.zero_point[0]) if numbers.zero_point is not None and len(numbers.zero_point) else 0
    scale = float(numbers.scale[0])
    return f"{scale:.4g} * q" if not zero else f"{scale:.4g} * (q {'-' if zero > 0 else '+'} {abs(zero)})"


# ---- picture ----------------------------------------------------------------------------------------------------


def picture_nodes(model: Model) -> list[Node]:
    """The operators as nodes of a picture. Subgraphs beside the first are scopes of their own."""
    found: list[Node] = []
    for position, subgraph in enumerate(model.subgraphs):
        prefix = f"{_flat(subgraph.name) or position}/" if position else ""
        names: dict[Tensor, str] = {}
        for number, tensor in enumerate(subgraph.inputs):
            names[tensor] = f"{prefix}{_flat(tensor.name)}#{number}"
            found.append(Node(names[tensor], "input", [], _detail(tensor), "input", _flat(tensor.name)))
        for number, operator in enumerate(subgraph.operators):
            name = f"{prefix}{operator.kind}_{number}"
            inputs = [names[each] for each in operator.inputs if each is not None and each in names]
            detail = _detail(operator.outputs[0]) if operator.outputs else ""
            if operator.subgraphs:
                detail = ", ".join(each.name.rpartition("/")[2] for each in operator.subgraphs)
            kind = "output" if any(each in subgraph.outputs for each in operator.outputs) else ""
            found.append(Node(name, operator.kind, list(dict.fromkeys(inputs)), detail, kind, operator.kind))
            names.update(dict.fromkeys(operator.outputs, name))
    return found


def _detail(tensor: Tensor) -> str:
    return f"{tensor.type.lower()} {_shape(tensor).replace(' x ', 'x')}"


def _flat(name: str) -> str:
    """A name without scopes, of which a converted model has none: with a division sign that looks like the slash."""
    return name.replace("/", "\N{DIVISION SLASH}")
