"""`tf.graph_util`: extracts parts of GraphDefs and prepares them for inference. `freezing.py` converts variables to constants."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from stoker._src.base import dtypes
from stoker._src.base.export import export
from stoker._src.base.shapes import TensorShape
from stoker._src.formats.protos import GraphDef
from stoker._src.graph.graph import Graph
from stoker._src.graph.tensor import Operation

_VARIABLES = ("Variable", "VariableV2")


def node_name(text: str) -> str:
    """Returns the name of the node that an input (`"x"`, `"x:1"`, `"^x"`) comes from."""
    return text.removeprefix("^").partition(":")[0]


@export(v1="graph_util.extract_sub_graph")
def extract_sub_graph(graph_def: Any, dest_nodes: Iterable[str]) -> Any:
    """Extracts the part of a GraphDef that `dest_nodes` need, in its original order.

    Args:
        graph_def: a GraphDef.
        dest_nodes: names of nodes.

    Raises:
        TypeError: `graph_def` is not a GraphDef, or `dest_nodes` is a single string.
        AssertionError: a name is not in the graph.
    """
    _check(graph_def)
    if isinstance(dest_nodes, (str, bytes)) or not isinstance(dest_nodes, Iterable):
        raise TypeError(f"dest_nodes must be an iterable of strings, but got type {type(dest_nodes)}.")
    nodes = {node.name: node for node in graph_def.node}
    needed: set[str] = set()
    waiting = [node_name(name) for name in dest_nodes]
    while waiting:
        name = waiting.pop()
        if name in needed:
            continue
        if name not in nodes:
            raise AssertionError(f"{name} is not in graph")
        needed.add(name)
        waiting.extend(node_name(text) for text in nodes[name].input)
    found = GraphDef()
    found.node.extend(node for node in graph_def.node if node.name in needed)
    found.library.CopyFrom(graph_def.library)
    found.versions.CopyFrom(graph_def.versions)
    return found


@export(v1="graph_util.remove_training_nodes")
def remove_training_nodes(input_graph: Any, protected_nodes: Iterable[str] | None = None) -> Any:
    """Removes nodes that only training uses: CheckNumerics, and Identity nodes that no node has as a control input.

    Consumers of a removed node take its input instead. Nodes in `protected_nodes` are kept, and so are Identity
    nodes with control inputs. To keep their names, outputs of the graph that are Identity nodes must be protected.
    """
    _check(input_graph)
    protected = set(protected_nodes or ())
    checks = {node.name for node in input_graph.node if node.op == "CheckNumerics"} - protected
    graph = _without(input_graph, checks, checks)
    awaited = {node_name(text) for node in graph.node for text in node.input if text.startswith("^")}
    passing = {
        node.name
        for node in graph.node
        if node.op == "Identity" and len(node.input) == 1 and not node.input[0].startswith("^")
    }
    return _without(graph, passing - protected, passing - protected - awaited)


def _without(graph_def: Any, bypassed: set[str], names: set[str]) -> Any:
    """Removes the nodes `names` and control inputs that refer to them. Consumers of a `bypassed` node take its first input."""
    sources = {node.name: node.input[0] for node in graph_def.node if node.name in bypassed}

    def followed(text: str) -> str:
        while not text.startswith("^") and node_name(text) in sources:
            text = sources[node_name(text)]
        return text

    result = GraphDef()
    for node in graph_def.node:
        if node.name in names:
            continue
        copy = result.node.add()
        copy.CopyFrom(node)
        del copy.input[:]
        copy.input.extend(
            followed(text) for text in node.input if not (text.startswith("^") and node_name(text) in names)
        )
    result.library.CopyFrom(graph_def.library)
    result.versions.CopyFrom(graph_def.versions)
    return result


@export(v1="graph_util.must_run_on_cpu")
def must_run_on_cpu(node: Any, pin_variables_on_cpu: bool = False) -> bool:
    """Returns whether TensorFlow would place a node on the CPU regardless of its device, as it does for strings and int32 bookkeeping.

    Args:
        node: an Operation or a NodeDef.
        pin_variables_on_cpu: whether to include reference variables.
    """
    node_def = node.node_def if isinstance(node, Operation) else node
    if node_def.op in _VARIABLES and pin_variables_on_cpu:
        return True
    attr = {"Const": "dtype", "DynamicStitch": "T", "Cast": "SrcT"}.get(node_def.op)
    if attr is None or attr not in node_def.attr:
        return False
    dtype = node_def.attr[attr].type
    return dtype == dtypes.int32.as_datatype_enum or (
        node_def.op == "Const" and dtype == dtypes.string.as_datatype_enum
    )


@export(v1="graph_util.tensor_shape_from_node_def_name")
def tensor_shape_from_node_def_name(graph: Graph, input_name: str) -> TensorShape:
    """Returns the static shape of a tensor, given its name in NodeDef form (`"x"` means `"x:0"`)."""
    return graph.get_tensor_by_name(input_name if ":" in input_name else f"{input_name}:0").shape


def _check(graph_def: Any) -> None:
    if not isinstance(graph_def, GraphDef) and not hasattr(graph_def, "node"):
        raise TypeError(f"graph_def must be a graph_pb2.GraphDef proto, but got type {type(graph_def)}.")
