"""Files that hold a graph: GraphDef, MetaGraphDef and SavedModel, binary or text. The content decides, not the name."""

from __future__ import annotations

from typing import Any

from google.protobuf import message, text_format

from stoker._src.base.errors import DataLossError
from stoker._src.formats import gfile
from stoker._src.formats.protos import GraphDef, MetaGraphDef, SavedModel

_MOST_TEXT = 1 << 30


def read_graph_file(path: str) -> Any:
    """The GraphDef, MetaGraphDef or SavedModel in a file.

    Raises:
        NotFoundError: the file does not exist.
        DataLossError: it holds none of them.
    """
    with gfile.GFile(path, "rb") as file:
        data = file.read()
    found = graph_message(data)
    if found is None:
        raise DataLossError(None, None, f"{path} holds neither a GraphDef nor a MetaGraphDef nor a SavedModel.")
    return found


def graph_message(data: bytes) -> Any:
    """The message in `data`, or None."""
    for kind, plausible in _KINDS:
        found = _parsed(kind, data)
        if found is not None and plausible(found):
            return found
    if not data.strip() or len(data) > _MOST_TEXT or b"\0" in data[:4096]:
        return None
    for kind, plausible in _KINDS:
        try:
            found = text_format.Parse(data, kind())
        except (text_format.ParseError, UnicodeDecodeError, ValueError, RecursionError):
            continue
        if plausible(found):
            return found
    return None


def _parsed(kind: Any, data: bytes) -> Any:
    try:
        return kind.FromString(data)
    except (message.DecodeError, RecursionError):
        return None


def _is_graph(graph_def: Any) -> bool:
    # Bytes of one message often parse as another. Nodes without a name or an op tell that it is the wrong one.
    return bool(graph_def.node) and all(node.name and node.op.isidentifier() for node in graph_def.node)


_KINDS = (
    (SavedModel, lambda found: bool(found.meta_graphs) and all(_is_meta_graph(each) for each in found.meta_graphs)),
    (MetaGraphDef, lambda found: _is_graph(found.graph_def)),
    (GraphDef, _is_graph),
)


def _is_meta_graph(meta: Any) -> bool:
    return _is_graph(meta.graph_def) or (not meta.graph_def.node and bool(meta.meta_info_def.tags))
