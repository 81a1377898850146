"""`tf.saved_model.loader.load`: a SavedModel into a graph and a session (1.x)."""

from __future__ import annotations

import os
from typing import Any

from stoker._src.base import tf_logging
from stoker._src.base.deprecation import deprecated
from stoker._src.base.export import export
from stoker._src.formats import gfile
from stoker._src.formats.filesystems import path_text
from stoker._src.formats.protos import AssetFileDef
from stoker._src.formats.tensor_bundle import index_filename
from stoker._src.graph.interchange.meta_graph import prepend_name_scope
from stoker._src.saved_model import constants, files
from stoker._src.train.checkpoints.saver import import_meta_graph_with_return_elements


@export(v1=("saved_model.load", "saved_model.loader.load"))
@deprecated(None, "Use `tf.saved_model.load` of TensorFlow 2 (tf.saved_model.load_v2).")
def load(sess: Any, tags: Any, export_dir: Any, import_scope: str | None = None, **saver_kwargs: Any) -> Any:
    """Loads a model into a session: adds its nodes, restores its variables and runs its main op.

    Args:
        sess: the session. The nodes are added to its graph.
        tags: the exact tags of the meta graph.
        export_dir: the directory of the model.
        import_scope: a name scope to put before all names.
        **saver_kwargs: further arguments of `tf.train.import_meta_graph`.

    Returns:
        The MetaGraphDef. Its signatures name the tensors to feed and fetch.

    Raises:
        RuntimeError: there is no meta graph with these tags.
        OSError: there is no model in the directory.
    """
    return load_into(sess, tags, export_dir, import_scope, **saver_kwargs)


def load_into(sess: Any, tags: Any, export_dir: Any, import_scope: str | None = None, **saver_kwargs: Any) -> Any:
    """Like `load`, without the deprecation warning."""
    directory = path_text(export_dir)
    meta = files.meta_graph_of(files.read_saved_model(directory), tags)
    graph = sess.graph
    with graph.as_default():
        before = _absolute_scope(graph, import_scope)
        saver, _ = import_meta_graph_with_return_elements(meta, import_scope=import_scope, **saver_kwargs)
        scope = before if import_scope else None
    with graph.as_default():
        path = files.variables_path(directory)
        if saver is not None and gfile.exists(index_filename(path)):
            saver.restore(sess, path)
        else:
            tf_logging.info("The specified SavedModel has no variables; no checkpoints were restored.")
        run_main_op(sess, meta, directory, scope)
    return meta


def _absolute_scope(graph: Any, import_scope: str | None) -> str | None:
    """Returns the scope that nodes will be imported into. It has a number appended if the scope already exists."""
    return None if not import_scope else graph.unique_name(import_scope, mark_as_used=False)


def asset_paths(meta: Any, export_dir: str) -> dict[str, str]:
    """Returns the paths of a meta graph's assets, by the names of the tensors that hold these paths."""
    described = list(meta.asset_file_def)
    if constants.ASSETS_KEY in meta.collection_def:
        for packed in meta.collection_def[constants.ASSETS_KEY].any_list.value:
            described.append(AssetFileDef.FromString(packed.value))
    return {each.tensor_info.name: asset_path(each.filename, export_dir) for each in described}


def asset_path(name: str, export_dir: str) -> str:
    """Returns the path of an asset.

    Raises:
        ValueError: the name comes from the model, and leads out of its directory.
    """
    parts = name.replace("\\", "/").split("/")
    if not name or os.path.isabs(name) or ".." in parts or "\0" in name:
        raise ValueError(f"The asset {name!r} of {export_dir} lies outside of the model's directory.")
    return os.path.join(files.assets_directory(export_dir), name)


def main_op_name(meta: Any) -> str | None:
    """Returns the name of the op to run when a meta graph is loaded, or None.

    Raises:
        RuntimeError: the meta graph names more than one.
    """
    if constants.INIT_OP_SIGNATURE_KEY in meta.signature_def:
        outputs = meta.signature_def[constants.INIT_OP_SIGNATURE_KEY].outputs
        return outputs[constants.INIT_OP_SIGNATURE_KEY].name
    for key in (constants.MAIN_OP_KEY, constants.LEGACY_INIT_OP_KEY):
        if key in meta.collection_def:
            names = meta.collection_def[key].node_list.value
            if len(names) != 1:
                raise RuntimeError(f"Expected exactly one op under the collection {key}, found {list(names)}.")
            return names[0]
    return None


def run_main_op(sess: Any, meta: Any, export_dir: str, scope: str | None) -> None:
    """Runs the main op of a meta graph. It is fed the paths of the assets."""
    name = main_op_name(meta)
    if name is None:
        return
    feeds = {prepend_name_scope(tensor, scope): path for tensor, path in asset_paths(meta, export_dir).items()}
    sess.run(sess.graph.as_graph_element(prepend_name_scope(name, scope).split(":")[0]), feeds)
