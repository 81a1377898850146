"""`stoker inspect` of graphs: GraphDef, MetaGraphDef and SavedModel, with their inputs, variables, constants, ops and signatures."""

from __future__ import annotations

import collections
import math
import os
from typing import Any

from stoker._src.base.dtypes import as_dtype
from stoker._src.base.errors import DataLossError
from stoker._src.cli.checkpoint_report import checkpoint_report
from stoker._src.cli.graph_picture import Node
from stoker._src.cli.reports import STATISTICS, Report, shape_text, statistics, statistics_cells
from stoker._src.formats import gfile
from stoker._src.formats.graph_files import read_graph_file
from stoker._src.formats.protos import GraphDef, MetaGraphDef
from stoker._src.formats.tensor_bundle import index_filename
from stoker._src.formats.tensor_proto import from_tensor_proto

_VARIABLES = ("Variable", "VariableV2", "VarHandleOp")
_MOST_OPS = 12


def saved_model_file(path: str) -> str | None:
    """The file of a SavedModel's directory, or None."""
    for name in ("saved_model.pb", "saved_model.pbtxt"):
        if gfile.exists(os.path.join(path, name)):
            return os.path.join(path, name)
    return None


def graph_report(path: str, message: Any, with_statistics: bool) -> Report:
    """The report on a message that `read_graph_file` returned."""
    if isinstance(message, GraphDef):
        report = Report([f"{path}: a GraphDef of {_counted(message)}"])
        report.data = {"path": path, "kind": "graph_def", **_graph(report, message, with_statistics)}
        report.graph, report.nodes = message, picture_nodes(message)
        return report
    if isinstance(message, MetaGraphDef):
        report = Report([f"{path}: a MetaGraphDef of {_counted(message.graph_def)}"])
        report.data = {"path": path, "kind": "meta_graph", **_meta_graph(report, message, with_statistics)}
        report.graph, report.nodes = message.graph_def, picture_nodes(message.graph_def)
        return report
    return _saved_model(path, message, with_statistics)


def saved_model_report(path: str, with_statistics: bool) -> Report:
    """The report on a SavedModel's directory: its meta graphs, assets, and the checkpoint of its variables."""
    file = saved_model_file(path)
    assert file is not None, "the caller has seen the file"
    report = _saved_model(path, read_graph_file(file), with_statistics)
    prefix = os.path.join(path, "variables", "variables")
    if gfile.exists(index_filename(prefix)):
        variables = checkpoint_report(prefix, with_statistics)
        report.lines += variables.lines
        report.data["variables"] = variables.data
    assets = os.path.join(path, "assets")
    if gfile.isdir(assets):
        names = sorted(gfile.listdir(assets))
        report.data["assets"] = names
        report.lines.append(f"assets: {', '.join(names)}")
    return report


def _saved_model(path: str, message: Any, with_statistics: bool) -> Report:
    if not hasattr(message, "meta_graphs"):
        raise DataLossError(None, None, f"{path} holds no SavedModel.")
    count = len(message.meta_graphs)
    report = Report([f"{path}: a SavedModel of {count} meta graph{'s' if count != 1 else ''}"])
    metas = []
    for meta in message.meta_graphs:
        tags = list(meta.meta_info_def.tags)
        report.lines.append(f"meta graph {', '.join(tags) or 'without tags'}: {_counted(meta.graph_def)}")
        metas.append(_meta_graph(report, meta, with_statistics))
    report.data = {"path": path, "kind": "saved_model", "meta_graphs": metas}
    if message.meta_graphs:
        report.graph = message.meta_graphs[0].graph_def
        report.nodes = picture_nodes(report.graph)
    return report


def _counted(graph: Any) -> str:
    functions = len(graph.library.function)
    return f"{len(graph.node):,} nodes" + (f" and {functions:,} functions" if functions else "")


# ---- meta graphs ------------------------------------------------------------------------------------------------


def _meta_graph(report: Report, meta: Any, with_statistics: bool) -> dict[str, Any]:
    info = meta.meta_info_def
    data: dict[str, Any] = {
        "tags": list(info.tags),
        "tensorflow_version": info.tensorflow_version,
        "signatures": {key: _signature(meta.signature_def[key]) for key in sorted(meta.signature_def)},
        "collections": {key: _collection_size(meta.collection_def[key]) for key in sorted(meta.collection_def)},
    }
    if info.tensorflow_version:
        report.lines.append(f"written by TensorFlow {info.tensorflow_version}")
    rows = []
    for key, signature in data["signatures"].items():
        for side in ("inputs", "outputs"):
            for name, each in signature[side].items():
                rows.append((key, side[:-1], name, each["dtype"], shape_text(each["shape"] or ()), each["tensor"]))
    if rows:
        report.lines.append("signatures:")
        report.table(("signature", "side", "name", "dtype", "shape", "tensor"), rows)
    if data["collections"]:
        report.lines.append("collections: " + ", ".join(f"{key} ({n})" for key, n in data["collections"].items()))
    data.update(_graph(report, meta.graph_def, with_statistics))
    return data


def _signature(signature: Any) -> dict[str, Any]:
    def side(infos: Any) -> dict[str, Any]:
        return {
            key: {
                "tensor": infos[key].name,
                "dtype": _dtype_name(infos[key].dtype),
                "shape": _proto_shape(infos[key].tensor_shape),
            }
            for key in sorted(infos)
        }

    return {"method": signature.method_name, "inputs": side(signature.inputs), "outputs": side(signature.outputs)}


def _collection_size(collection: Any) -> int:
    kind = collection.WhichOneof("kind")
    return 0 if kind is None else len(getattr(collection, kind).value)


# ---- graphs -----------------------------------------------------------------------------------------------------


def _dtype_name(number: int) -> str:
    try:
        return as_dtype(number).name
    except (TypeError, ValueError, KeyError):
        return str(number)


def _proto_shape(shape: Any) -> list[int | None] | None:
    return None if shape.unknown_rank else [None if dim.size < 0 else dim.size for dim in shape.dim]


def _attr_shape(node: Any) -> list[int | None] | None:
    if "_output_shapes" in node.attr and node.attr["_output_shapes"].list.shape:
        return _proto_shape(node.attr["_output_shapes"].list.shape[0])
    return _proto_shape(node.attr["shape"].shape) if "shape" in node.attr else None


def _attr_dtype(node: Any) -> str:
    for name in ("dtype", "T", "Tparams"):
        if name in node.attr and node.attr[name].type:
            return _dtype_name(node.attr[name].type)
    return ""


def _graph(report: Report, graph: Any, with_statistics: bool) -> dict[str, Any]:
    used = {text.lstrip("^").split(":")[0] for node in graph.node for text in node.input}
    ops = collections.Counter(node.op for node in graph.node)
    inputs = [node for node in graph.node if node.op in ("Placeholder", "PlaceholderV2", "PlaceholderWithDefault")]
    variables = [node for node in graph.node if node.op in _VARIABLES]
    ends = [node.name for node in graph.node if node.name not in used and node.op not in ("NoOp", "Const")]
    constants = [_constant(node, with_statistics) for node in graph.node if node.op == "Const"]
    data = {
        "nodes": len(graph.node),
        "functions": sorted(function.signature.name for function in graph.library.function),
        "producer": graph.versions.producer,
        "ops": dict(ops.most_common()),
        "inputs": [_described(node) for node in inputs],
        "outputs": ends,
        "variables": [_described(node) for node in variables],
        "constants": constants,
    }
    common = ", ".join(f"{op} {count}" for op, count in ops.most_common(_MOST_OPS))
    more = f" and {len(ops) - _MOST_OPS} more" if len(ops) > _MOST_OPS else ""
    report.lines.append(f"ops: {common}{more}")
    for title, nodes in (("inputs", inputs), ("variables", variables)):
        if nodes:
            report.lines.append(f"{title}:")
            rows = [(node.name, _attr_dtype(node), _shape_cell(_attr_shape(node))) for node in nodes]
            report.table((title[:-1], "dtype", "shape"), rows)
    if ends:
        shown = ", ".join(ends[:8]) + (f" and {len(ends) - 8} more" if len(ends) > 8 else "")
        report.lines.append(f"nodes that nothing uses (outputs, or ops to run): {shown}")
    _constant_lines(report, constants, with_statistics)
    return data


def _constant_lines(report: Report, constants: list[dict[str, Any]], with_statistics: bool) -> None:
    size = sum(each["bytes"] or 0 for each in constants)
    large = [each for each in constants if each["elements"] > 16]
    if constants:
        report.lines.append(f"{len(constants):,} constants, {size:,} bytes" + (", the larger ones:" if large else ""))
    header = ("constant", "dtype", "shape", *(STATISTICS if with_statistics else ()))
    rows = [
        (
            each["name"],
            each["dtype"],
            _shape_cell(each["shape"]),
            *(statistics_cells(each.get("stats")) if with_statistics else ()),
        )
        for each in large
    ]
    if rows:
        report.table(header, rows)


def _shape_cell(shape: Any) -> str:
    return "unknown" if shape is None else shape_text(shape)


def _described(node: Any) -> dict[str, Any]:
    return {"name": node.name, "op": node.op, "dtype": _attr_dtype(node), "shape": _attr_shape(node)}


def _constant(node: Any, with_statistics: bool) -> dict[str, Any]:
    proto = node.attr["value"].tensor
    shape = _proto_shape(proto.tensor_shape) or []
    elements = math.prod(size or 0 for size in shape)
    try:
        width = as_dtype(proto.dtype).size
    except (TypeError, ValueError, KeyError):
        width = None
    entry = {
        "name": node.name,
        "dtype": _dtype_name(proto.dtype),
        "shape": shape,
        "elements": elements,
        "bytes": None if width is None else width * elements,
    }
    if with_statistics:
        try:
            entry["stats"] = statistics(from_tensor_proto(proto))
        except (ValueError, TypeError, DataLossError):
            entry["stats"] = None
    return entry


# ---- pictures ---------------------------------------------------------------------------------------------------


def picture_nodes(graph: Any) -> list[Node]:
    """The nodes of a graph to draw. What initializes and saves variables, and constants, is left out."""
    # The `read` op of each variable of 1.x is passed over.
    reads = {node.name: node.input[0].split(":")[0] for node in graph.node if _is_read(node)}
    kept = [n for n in graph.node if n.op != "Const" and n.name not in reads and not _is_plumbing(n.name)]
    nodes = []
    for node in kept:
        inputs = [text.split(":")[0] for text in node.input if not text.startswith("^")]
        inputs = [reads.get(name, name) for name in inputs]
        detail = _shape_cell(_attr_shape(node)) if _attr_shape(node) is not None else ""
        nodes.append(Node(node.name, node.op, inputs, detail, _kind(node.op)))
    return nodes


def _is_read(node: Any) -> bool:
    return node.op == "Identity" and len(node.input) > 0 and node.name == node.input[0].split(":")[0] + "/read"


def _is_plumbing(name: str) -> bool:
    parts = name.split("/")
    return (
        parts[0] in ("save", "init", "init_all_tables")
        or "Initializer" in parts[:-1]
        or parts[-1] in ("Assign", "IsInitialized")
    )


def _kind(op: str) -> str:
    if op.startswith("Placeholder"):
        return "input"
    return "variable" if op in _VARIABLES else ""
