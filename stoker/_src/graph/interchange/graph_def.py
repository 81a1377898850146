"""Exports graphs as GraphDefs. `importer.py` imports them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from stoker._src.base.shapes import TensorShape
from stoker._src.formats.protos import GraphDef
from stoker._src.graph.interchange.function_def import referenced_functions
from stoker._src.graph.interchange.lower_control_flow import Lowering, takes_references
from stoker._src.graph.interchange.node_def import PRODUCER_VERSION, node_def_of
from stoker._src.graph.interchange.older_forms import in_older_form

if TYPE_CHECKING:
    from stoker._src.graph.graph import Graph


def graph_def_of(graph: Graph, *, from_version: int | None = None, add_shapes: bool = False) -> Any:
    """Returns the GraphDef of `graph`, or only of the nodes added since `from_version`, with its function library."""
    return graph_def_and_names(graph, from_version=from_version, add_shapes=add_shapes)[0]


def graph_def_and_names(
    graph: Graph, *, from_version: int | None = None, add_shapes: bool = False
) -> tuple[Any, dict[str, str]]:
    """Returns the GraphDef, and the names in it of tensors that have another name there than in the graph."""
    proto = GraphDef()
    proto.versions.producer = PRODUCER_VERSION
    names = {op.name for op in graph._ops}
    lowering = Lowering(node_def_of, names)
    for op in graph._ops[from_version or 0 :]:
        if takes_references(op):
            proto.node.extend(lowering.nodes_of(op))
            continue
        node = node_def_of(op)
        if "_class" in node.attr:
            _keep_neighbours(node, names)
        if add_shapes and op.outputs:
            shapes = node.attr["_output_shapes"].list
            shapes.shape.extend(TensorShape(tensor.static_shape).as_proto() for tensor in op.outputs)
        proto.node.extend(in_older_form(node, op, in_function=False))
    plain = [op for op in graph._ops if not takes_references(op)]
    if lowering.renamed:
        for node in proto.node:
            node.input[:] = [lowering.renamed.get(text, text) for text in node.input]
    functions = {**graph._functions, **referenced_functions([*plain, *lowering.inlined])}
    for function in functions.values():
        proto.library.function.append(function.to_function_def())
        gradient = getattr(function, "gradient", None)
        if gradient is not None:
            proto.library.gradient.add(function_name=function.name, gradient_func=gradient.name)
    return proto, lowering.renamed


def _keep_neighbours(node: Any, names: set[str]) -> None:
    """Drops colocation with nodes that are not in the graph, since such a GraphDef could not be loaded.

    Nodes of imported loops can be missing because the loops became functions.
    """
    groups = node.attr["_class"].list.s
    kept = [group for group in groups if not group.startswith(b"loc:@") or group[5:].decode() in names]
    if len(kept) == len(groups):
        return
    del groups[:]
    groups.extend(kept)
    if not kept:
        del node.attr["_class"]
