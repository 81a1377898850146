"""`tensorflow.python.tools.strip_unused_lib`: extracts the part of a GraphDef between given nodes."""

from __future__ import annotations

from typing import Any

from google.protobuf import text_format

from stoker._src.base.dtypes import as_dtype
from stoker._src.formats import gfile
from stoker._src.formats.message_files import write_message
from stoker._src.formats.protos import GraphDef
from stoker._src.graph.graph_util import extract_sub_graph


def strip_unused(
    input_graph_def: Any, input_node_names: Any, output_node_names: Any, placeholder_type_enum: Any
) -> Any:
    """Extracts the nodes that `output_node_names` need, with `input_node_names` replaced by placeholders.

    Args:
        input_graph_def: a GraphDef.
        input_node_names: nodes that become placeholders; their declared shapes are kept.
        output_node_names: nodes to keep.
        placeholder_type_enum: the dtype of the placeholders, or a list with one dtype each.

    Raises:
        KeyError: an input is not in the graph.
    """
    names = {node.name for node in input_graph_def.node}
    for name in input_node_names:
        if ":" in name:
            raise ValueError(f"Name '{name}' appears to refer to a Tensor, not an Operation.")
        if name not in names:
            raise KeyError(f"The following input nodes were not found: {{{name!r}}}")
    kinds = placeholder_type_enum
    kinds = list(kinds) if isinstance(kinds, (list, tuple)) else [kinds] * len(list(input_node_names))
    cut = GraphDef()
    for node in input_graph_def.node:
        if node.name not in input_node_names:
            cut.node.add().CopyFrom(node)
            continue
        placeholder = cut.node.add(name=node.name, op="Placeholder")
        kind = as_dtype(kinds[list(input_node_names).index(node.name)])
        placeholder.attr["dtype"].type = kind.as_datatype_enum
        for key in ("_output_shapes", "shape"):
            if key in node.attr:
                placeholder.attr[key].CopyFrom(node.attr[key])
    cut.library.CopyFrom(input_graph_def.library)
    cut.versions.CopyFrom(input_graph_def.versions)
    return extract_sub_graph(cut, list(output_node_names))


def strip_unused_from_files(
    input_graph: str,
    input_binary: bool,
    output_graph: str,
    output_binary: bool,
    input_node_names: str,
    output_node_names: str,
    placeholder_type_enum: Any,
) -> None:
    """Like `strip_unused`, but reads and writes files. Names are separated by commas."""
    graph_def = GraphDef()
    with gfile.GFile(input_graph, "rb" if input_binary else "r") as source:
        if input_binary:
            graph_def.ParseFromString(source.read())
        else:
            text_format.Parse(source.read(), graph_def)
    found = strip_unused(graph_def, input_node_names.split(","), output_node_names.split(","), placeholder_type_enum)
    write_message(output_graph, found, as_text=not output_binary)
