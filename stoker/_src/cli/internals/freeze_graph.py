"""`tensorflow.python.tools.freeze_graph`: combines a graph and a checkpoint into one GraphDef without variables."""

from __future__ import annotations

from typing import Any

from google.protobuf import message, text_format

from stoker._src.formats import gfile
from stoker._src.formats.message_files import write_message
from stoker._src.formats.protos import GraphDef, MetaGraphDef, SaverDef
from stoker._src.graph.graph import Graph
from stoker._src.graph.interchange.freezing import convert_variables_to_constants
from stoker._src.graph.interchange.importer import import_graph_def
from stoker._src.runtime.session import Session
from stoker._src.train.checkpoints.reader import CheckpointReader
from stoker._src.train.checkpoints.saver import Saver, import_meta_graph
from stoker._src.train.checkpoints.state import has_checkpoint


def freeze_graph(
    input_graph: str | None,
    input_saver: str,
    input_binary: bool,
    input_checkpoint: str | None,
    output_node_names: str,
    restore_op_name: str | None,
    filename_tensor_name: str | None,
    output_graph: str,
    clear_devices: bool,
    initializer_nodes: str,
    variable_names_whitelist: str = "",
    variable_names_denylist: str = "",
    input_meta_graph: Any = None,
    input_saved_model_dir: str | None = None,
    saved_model_tags: str = "serve",
    checkpoint_version: int = SaverDef.V2,
) -> Any:
    """Reads a graph and a checkpoint and writes the graph with variables replaced by constants.

    Args:
        input_graph: path of a GraphDef.
        input_saver: path of a SaverDef, or "".
        input_binary: whether these files are binary rather than text.
        input_checkpoint: the checkpoint.
        output_node_names: comma-separated names of the nodes to keep, together with the nodes they need.
        restore_op_name: unused, as in TensorFlow.
        filename_tensor_name: unused, as in TensorFlow.
        output_graph: path of the file to write, or "".
        clear_devices: whether to remove the devices of nodes.
        initializer_nodes: comma-separated names of nodes to run before variables are read.
        variable_names_whitelist: comma-separated names of the variables to convert; all by default.
        variable_names_denylist: variables not to convert.
        input_meta_graph: path of a MetaGraphDef to use instead of `input_graph`.
        input_saved_model_dir: the folder of a SavedModel.
        saved_model_tags: the tags of the graph to use.
        checkpoint_version: the format of the checkpoint.

    Returns:
        The GraphDef.

    Raises:
        OSError: a file does not exist or has other content.
        ValueError: the checkpoint does not exist, or no output is named.
    """
    graph_def = _parsed(input_graph, GraphDef, input_binary) if input_graph else None
    saver_def = _parsed(input_saver, SaverDef, input_binary) if input_saver else None
    meta = _parsed(input_meta_graph, MetaGraphDef, input_binary) if input_meta_graph else None
    return freeze_graph_with_def_protos(
        graph_def,
        saver_def,
        input_checkpoint,
        output_node_names,
        restore_op_name,
        filename_tensor_name,
        output_graph,
        clear_devices,
        initializer_nodes,
        variable_names_whitelist,
        variable_names_denylist,
        meta,
        input_saved_model_dir,
        saved_model_tags.replace(" ", "").split(","),
        checkpoint_version,
    )


def _parsed(path: str, kind: Any, binary: bool) -> Any:
    if not gfile.exists(path):
        raise OSError(f"Input file '{path}' does not exist!")
    with gfile.GFile(path, "rb") as file:
        data = file.read()
    try:
        return kind.FromString(data) if binary else text_format.Parse(data, kind())
    except (message.DecodeError, text_format.ParseError, UnicodeDecodeError) as error:
        raise OSError(f"{path} holds no {kind.__name__} in {'bytes' if binary else 'text'}: {error}") from error


def freeze_graph_with_def_protos(
    input_graph_def: Any,
    input_saver_def: Any,
    input_checkpoint: str | None,
    output_node_names: str,
    restore_op_name: str | None,
    filename_tensor_name: str | None,
    output_graph: str,
    clear_devices: bool,
    initializer_nodes: str,
    variable_names_whitelist: str = "",
    variable_names_denylist: str = "",
    input_meta_graph_def: Any = None,
    input_saved_model_dir: str | None = None,
    saved_model_tags: Any = None,
    checkpoint_version: int = SaverDef.V2,
) -> Any:
    """Like `freeze_graph`, but takes messages instead of files."""
    del restore_op_name, filename_tensor_name, saved_model_tags
    if input_saved_model_dir:
        raise NotImplementedError("freeze_graph: SavedModels cannot be read yet; give a graph and a checkpoint.")
    if not input_checkpoint or not has_checkpoint(input_checkpoint):
        raise ValueError(f"Input checkpoint '{input_checkpoint}' does not exist!")
    if not output_node_names:
        raise ValueError("You need to supply the name of a node to --output_node_names.")
    with Graph().as_default() as graph, Session() as session:
        if input_meta_graph_def is not None:
            saver = import_meta_graph(input_meta_graph_def, clear_devices=clear_devices)
        else:
            nodes = GraphDef()
            nodes.CopyFrom(input_graph_def)
            for node in nodes.node if clear_devices else ():
                node.device = ""
            import_graph_def(nodes, name="")
            if input_saver_def is not None:
                saver = Saver(saver_def=input_saver_def, write_version=checkpoint_version)
            else:
                saver = Saver(_variables_in(graph, input_checkpoint), write_version=checkpoint_version)
        if saver is not None:
            saver.restore(session, input_checkpoint)
        if initializer_nodes:
            session.run(_listed(initializer_nodes))
        frozen = convert_variables_to_constants(
            session,
            graph.as_graph_def(),
            _listed(output_node_names),
            _listed(variable_names_whitelist) or None,
            _listed(variable_names_denylist) or None,
        )
    if output_graph:
        write_message(output_graph, frozen, as_text=False)
    return frozen


def _listed(names: str) -> list[str]:
    return [name for name in names.replace(" ", "").split(",") if name]


def _variables_in(graph: Graph, checkpoint: str) -> dict[str, Any]:
    """Returns the variables of a graph that a checkpoint contains.

    Raises:
        RuntimeError: some are partitioned; the graph does not say which slices belong together.
    """
    found: dict[str, Any] = {}
    for name in CheckpointReader(checkpoint).get_variable_to_shape_map():
        if f"{name}/part_0" in graph._by_name:
            raise RuntimeError(
                f"{name} is partitioned: give a meta graph (input_meta_graph) or a saver (input_saver), which say how."
            )
        op = graph._by_name.get(name)
        if op is not None:
            found[name] = op.outputs[0]
    return found
