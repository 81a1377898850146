"""MetaGraphDefs: a graph with its collections, the ops that it uses, and the information needed to save its variables.

A module that defines collection items registers their conversion to messages with `register_proto_function`. Names of
tensors and operations, numbers and strings need no registration.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

from google.protobuf import any_pb2, message, text_format

from stoker._src.base import tf_logging, version
from stoker._src.formats import gfile
from stoker._src.formats.filesystems import path_text
from stoker._src.formats.message_files import write_message
from stoker._src.formats.protos import CollectionDef, GraphDebugInfo, GraphDef, MetaGraphDef, OpList
from stoker._src.graph import context
from stoker._src.graph.attr_values import to_attr_value
from stoker._src.graph.attributes import MISSING
from stoker._src.graph.definition import find_definition
from stoker._src.graph.graph import Graph
from stoker._src.graph.interchange.function_library import MalformedGraphError
from stoker._src.graph.interchange.importer import import_graph_def
from stoker._src.graph.interchange.node_def import op_def_of
from stoker._src.graph.keys import GraphKeys
from stoker._src.graph.source_lines import line_number

UNBOUND_INPUTS = "unbound_inputs"
_UNBOUND_PREFIX = "$unbound_inputs_"
_LARGEST = 2**31 - 1  # a message that is longer cannot be read


class _Proto(NamedTuple):
    kind: Any
    to_proto: Callable[..., Any] | None
    from_proto: Callable[..., Any] | None


_PROTO_FUNCTIONS: dict[str, _Proto] = {}
_NO_PROTO = _Proto(None, None, None)


def register_proto_function(
    collection_name: str, proto_type: Any = None, to_proto: Any = None, from_proto: Any = None
) -> None:
    """Registers the conversion of a collection's items to and from messages.

    Args:
        collection_name: the name of the collection.
        proto_type: the message's class.
        to_proto: converts an item and `export_scope` to a message, or to None for an item outside that scope.
        from_proto: converts a message and `import_scope` to an item.

    Raises:
        TypeError: an argument is not callable.
    """
    for label, function in (("to_proto", to_proto), ("from_proto", from_proto)):
        if function is not None and not callable(function):
            raise TypeError(f"{label} must be callable.")
    _PROTO_FUNCTIONS[collection_name] = _Proto(proto_type, to_proto, from_proto)


def proto_functions(collection_name: str) -> _Proto:
    """Returns (message class, to_proto, from_proto) of a collection; each is None if it is not registered."""
    return _PROTO_FUNCTIONS.get(collection_name, _NO_PROTO)


# ---- names and scopes -------------------------------------------------------------------------------------------


def in_scope(name: str, scope: str | None) -> bool:
    """Returns whether a node or control input is in a name scope."""
    return not scope or name.lstrip("^").startswith(scope.rstrip("/") + "/")


def strip_name_scope(name: str, export_scope: str | None) -> str:
    """Removes the scope from the start of a name, which may follow `^` or `loc:@`."""
    if not export_scope:
        return name
    start = _mark_of(name)
    return start + name.removeprefix(start).removeprefix(export_scope.rstrip("/") + "/")


def prepend_name_scope(name: str, import_scope: str | None) -> str:
    """Adds a scope to the start of a name, which may follow `^` or `loc:@`."""
    if not import_scope:
        return name
    start = _mark_of(name)
    return f"{start}{import_scope.rstrip('/')}/{name.removeprefix(start)}"


def _mark_of(name: str) -> str:
    return next((mark for mark in ("^", "loc:@") if name.startswith(mark)), "")


def _cut_out(graph_def: Any, scope: str, unbound: list[str]) -> Any:
    """Extracts the nodes of a scope, without the scope in their names. A name prefix marks inputs from outside it as unbound."""
    inside = GraphDef(versions=graph_def.versions)
    inside.library.CopyFrom(graph_def.library)
    for node in graph_def.node:
        if not in_scope(node.name, scope):
            continue
        copy = inside.node.add()
        copy.CopyFrom(node)
        copy.name = strip_name_scope(node.name, scope)
        for number, each in enumerate(node.input):
            if in_scope(each, scope):
                copy.input[number] = strip_name_scope(each, scope)
            elif each.startswith("^"):
                copy.input[number] = f"^{_UNBOUND_PREFIX}{each[1:]}"
            else:
                copy.input[number] = _UNBOUND_PREFIX + each
            if copy.input[number].lstrip("^").startswith(_UNBOUND_PREFIX) and copy.input[number] not in unbound:
                unbound.append(copy.input[number])
        if "_class" in node.attr:
            kept = [
                strip_name_scope(name.decode(), scope) for name in node.attr["_class"].list.s if _is_kept(name, scope)
            ]
            copy.attr["_class"].list.s[:] = [name.encode() for name in kept]
    return inside


def _is_kept(constraint: bytes, scope: str) -> bool:
    return in_scope(constraint.decode().removeprefix("loc:@"), scope)


# ---- out --------------------------------------------------------------------------------------------------------


def export_scoped_meta_graph(
    filename: Any = None,
    graph_def: Any = None,
    graph: Any = None,
    export_scope: str | None = None,
    as_text: bool = False,
    unbound_inputs_col_name: str | None = UNBOUND_INPUTS,
    clear_devices: bool = False,
    saver_def: Any = None,
    clear_extraneous_savers: bool = False,
    strip_default_attrs: bool = False,
    save_debug_info: bool = False,
    meta_info_def: Any = None,
    collection_list: Iterable[str] | None = None,
) -> Any:
    """Returns the MetaGraphDef of a graph or of one of its name scopes, and writes it to a file if `filename` is given.

    Args:
        filename: the file to write.
        graph_def: the GraphDef to write instead of the graph's own.
        graph: the graph (default: the current one).
        export_scope: the name scope to export; it is removed from the names.
        as_text: write the text format instead of the binary one.
        unbound_inputs_col_name: the collection that receives the inputs from outside the scope.
        clear_devices: omit the devices of nodes.
        saver_def: how to save the variables.
        clear_extraneous_savers: omit the ops and collection entries of all other savers.
        strip_default_attrs: omit attributes that have their default values.
        save_debug_info: also write the source lines that created the nodes, to a file that ends in `.debug`.
        meta_info_def: the MetaInfoDef to start from.
        collection_list: the collections to write (default: all).

    Raises:
        TypeError: `graph_def` is not a GraphDef.
        ValueError: the message would be larger than 2 GB.
    """
    graph = graph or context.get_default_graph()
    if graph_def is None:
        graph_def = graph.as_graph_def(add_shapes=True)
    elif not isinstance(graph_def, GraphDef):
        raise TypeError(f"graph_def must be of type GraphDef. Received type: {type(graph_def)}.")
    unbound: list[str] = []
    meta = MetaGraphDef()
    meta.graph_def.CopyFrom(_cut_out(graph_def, export_scope, unbound) if export_scope else graph_def)
    dropped = _other_savers(graph, saver_def) if clear_extraneous_savers else ()
    if dropped:
        kept = [node for node in meta.graph_def.node if not any(in_scope(node.name, scope) for scope in dropped)]
        del meta.graph_def.node[:]
        meta.graph_def.node.extend(kept)
    if clear_devices:
        for node in meta.graph_def.node:
            node.device = ""
    if strip_default_attrs:
        _strip_defaults(meta.graph_def)
    if meta_info_def is not None:
        meta.meta_info_def.CopyFrom(meta_info_def)
    meta.meta_info_def.stripped_default_attrs = strip_default_attrs
    meta.meta_info_def.tensorflow_version = version.API_VERSION_1
    meta.meta_info_def.tensorflow_git_version = version.GIT_VERSION
    meta.meta_info_def.stripped_op_list.CopyFrom(_ops_of(meta.graph_def))
    if saver_def is not None:
        meta.saver_def.CopyFrom(saver_def)
    for key in graph.get_all_collection_keys() if collection_list is None else collection_list:
        _add_collection(meta, graph, key, export_scope, saver_def if clear_extraneous_savers else None)
    if unbound and unbound_inputs_col_name:
        names = sorted(name.encode() for name in unbound)
        meta.collection_def[unbound_inputs_col_name].bytes_list.value.extend(names)
    if meta.ByteSize() > _LARGEST:
        raise ValueError(
            f"The MetaGraphDef has {meta.ByteSize()} bytes, and a message cannot have more than {_LARGEST}: "
            "keep large constants in variables."
        )
    if filename:
        path = path_text(filename)
        write_message(path, meta, as_text=as_text)
        if save_debug_info:
            lines = _debug_info(graph, export_scope)
            write_message(f"{path.rpartition('.')[0] or path}.debug", lines, as_text=as_text)
    return meta


def _other_savers(graph: Graph, saver_def: Any) -> set[str]:
    """Returns the scopes of the ops of all other savers, found through the graph's save ops."""
    own = saver_def.filename_tensor_name.rpartition("/")[0] if saver_def is not None else None
    scopes = {op.name.rpartition("/")[0] for op in graph.get_operations() if op.type in ("SaveV2", "SaveSlices")}
    return {scope for scope in scopes if scope and scope != own}


def _strip_defaults(graph_def: Any) -> None:
    nodes = [*graph_def.node, *(node for function in graph_def.library.function for node in function.node_def)]
    for node in nodes:
        definition = find_definition(node.op)
        for key, spec in definition.attrs.items() if definition is not None else ():
            if key in node.attr and spec.default is not MISSING:
                if node.attr[key] == to_attr_value(spec.default, spec.kind):
                    del node.attr[key]


def _ops_of(graph_def: Any) -> Any:
    """Returns the definitions of the ops that a graph and its functions use, by name."""
    used = {node.op for node in graph_def.node}
    used.update(node.op for function in graph_def.library.function for node in function.node_def)
    definitions = (find_definition(name) for name in sorted(used))
    return OpList(op=[op_def_of(each) for each in definitions if each is not None])


def _add_collection(meta: Any, graph: Graph, key: str, scope: str | None, only_saver: Any) -> None:
    items = graph.get_collection(key)
    to_proto = proto_functions(key).to_proto
    try:
        if key == GraphKeys.SAVERS and only_saver is not None:
            kind, items = "bytes_list", [only_saver.SerializeToString()]
        elif not items:
            return
        elif to_proto is not None:
            found = [to_proto(item, export_scope=scope) for item in items]
            kind, items = "bytes_list", [each.SerializeToString() for each in found if each is not None]
        else:
            kind = _kind_of(items[0])
            if kind == "node_list":
                items = [strip_name_scope(item.name, scope) for item in items if in_scope(item.name, scope)]
            elif kind == "bytes_list":
                items = [item.encode() if isinstance(item, str) else item for item in items]
        if items:
            getattr(CollectionDef(), kind).value.extend(items)  # raises before the message is modified
            getattr(meta.collection_def[key], kind).value.extend(items)
    except (AttributeError, TypeError, ValueError) as error:
        tf_logging.warning(
            "Collection %s is not part of the meta graph: its items are not all names, numbers, strings or of a kind that "
            "is registered. %s",
            key,
            error,
        )


def _kind_of(item: Any) -> str:
    if isinstance(item, bool):
        raise TypeError("Truth values have no place in a CollectionDef.")
    kinds = ((str, bytes), "bytes_list"), (int, "int64_list"), (float, "float_list"), (any_pb2.Any, "any_list")
    for kind, name in kinds:
        if isinstance(item, kind):
            return name
    return "node_list"


def _debug_info(graph: Graph, scope: str | None) -> Any:
    """Returns the lines of the user's program that created each node."""
    info = GraphDebugInfo()
    files: dict[str, int] = {}
    for op in graph.get_operations():
        if not in_scope(op.name, scope):
            continue
        trace = info.traces[f"{strip_name_scope(op.name, scope)}@"]
        for code, instruction in op._frames:
            number = files.setdefault(code.co_filename, len(files))
            trace.file_line_cols.add(file_index=number, line=line_number(code, instruction), func=code.co_name)
    info.files.extend(files)
    return info


# ---- in ---------------------------------------------------------------------------------------------------------


def read_meta_graph_file(filename: Any) -> Any:
    """Reads a MetaGraphDef from a binary or text file.

    Raises:
        OSError: the file does not exist or is not a MetaGraphDef.
    """
    path = path_text(filename)
    if not gfile.exists(path):
        raise OSError(f"File does not exist. Received: {path}.")
    with gfile.GFile(path, "rb") as file:
        data = file.read()
    try:
        return MetaGraphDef.FromString(data)
    except message.DecodeError:
        try:
            return text_format.Parse(data, MetaGraphDef())
        except (text_format.ParseError, UnicodeDecodeError) as error:
            raise OSError(f"Cannot parse file {path}: {error}.") from None


def import_scoped_meta_graph(
    meta_graph_or_file: Any,
    clear_devices: bool = False,
    graph: Any = None,
    import_scope: str | None = None,
    input_map: dict[str, Any] | None = None,
    unbound_inputs_col_name: str | None = UNBOUND_INPUTS,
    restore_collections_predicate: Callable[[str], Any] = lambda key: True,
    return_elements: Any = None,
) -> tuple[Any, str, list[Any] | None]:
    """Adds the nodes and collections of a MetaGraphDef to a graph.

    Args:
        meta_graph_or_file: the message, or the file that holds it.
        clear_devices: omit the devices of nodes.
        graph: the target graph (default: the current graph).
        import_scope: the name scope to add to all names.
        input_map: tensors for inputs, by name. Inputs from outside an exported scope require one.
        unbound_inputs_col_name: the collection that lists these inputs.
        restore_collections_predicate: a function of a collection's name that returns whether to restore it.
        return_elements: names of operations and tensors to return.

    Returns:
        The message, the actual name scope of the imported nodes, and the elements.

    Raises:
        ValueError: an input from outside is not in `input_map`.
    """
    if isinstance(meta_graph_or_file, MetaGraphDef):
        meta = meta_graph_or_file
    elif hasattr(meta_graph_or_file, "SerializeToString"):  # a message of another protobuf package
        meta = MetaGraphDef.FromString(meta_graph_or_file.SerializeToString())
    else:
        meta = read_meta_graph_file(meta_graph_or_file)
    graph = graph or context.get_default_graph()
    input_map = dict(input_map or {})
    for name in _unbound_in(meta, unbound_inputs_col_name):
        outside = name.replace(_UNBOUND_PREFIX, "")
        if name in input_map:
            continue
        if outside not in input_map:
            raise ValueError(
                f"Graph contains unbound inputs: {', '.join(_unbound_in(meta, unbound_inputs_col_name))}. "
                "Must provide these inputs through input_map."
            )
        input_map[name] = input_map.pop(outside)
    nodes = GraphDef()
    nodes.CopyFrom(meta.graph_def)
    if clear_devices:
        for node in nodes.node:
            node.device = ""
    known = meta.meta_info_def.stripped_op_list
    with graph.as_default():
        scope = graph.unique_name(import_scope, mark_as_used=False) if import_scope else ""
        found = import_graph_def(
            nodes,
            name=import_scope or "",
            input_map=input_map,
            producer_op_list=known if known.op else None,
            return_elements=return_elements,
        )
        for key in sorted(meta.collection_def):
            if restore_collections_predicate(key):
                _restore_collection(graph, key, meta.collection_def[key], scope)
    return meta, scope, found


def _unbound_in(meta: Any, collection: str | None) -> list[str]:
    if not collection or collection not in meta.collection_def:
        return []
    return [name.decode() for name in meta.collection_def[collection].bytes_list.value]


def _restore_collection(graph: Graph, key: str, collection: Any, scope: str) -> None:
    kind = collection.WhichOneof("kind")
    if kind is None or key == UNBOUND_INPUTS:
        return
    values: list[Any] = list(getattr(collection, kind).value)
    proto_kind, _, from_proto = proto_functions(key)
    if kind == "bytes_list" and from_proto is not None:
        try:
            messages = [proto_kind.FromString(each) for each in values]
        except message.DecodeError as error:
            raise MalformedGraphError(None, None, f"Collection {key!r:.200} of the meta graph: {error}") from None
        values = [from_proto(each, import_scope=scope or None) for each in messages]
    elif kind == "node_list":
        values = [graph.as_graph_element(prepend_name_scope(name, scope)) for name in values]
    elif kind == "int64_list":
        values = [int(value) for value in values]
    graph.get_collection_ref(key).extend(values)
