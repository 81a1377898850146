"""`tf.saved_model.Builder`: writes graphs with their variables, assets and signatures (1.x)."""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import Any

from google.protobuf import any_pb2

from stoker._src.base import tf_logging
from stoker._src.base.deprecation import deprecated
from stoker._src.base.export import export
from stoker._src.formats import atomic, gfile
from stoker._src.formats.filesystems import path_text, replacing, resolve
from stoker._src.formats.message_files import write_message
from stoker._src.formats.protos import AssetFileDef, MetaGraphDef, SavedModel
from stoker._src.graph import context
from stoker._src.graph.scopes import control_dependencies
from stoker._src.graph.static_values import constant_value
from stoker._src.graph.tensor import Operation, Tensor
from stoker._src.ops.control_flow import grouping
from stoker._src.ops.resources.tables import tables_initializer
from stoker._src.ops.variables import variable_functions
from stoker._src.saved_model import constants, files
from stoker._src.saved_model.signatures import predict_signature_def
from stoker._src.train.checkpoints.saver import Saver

_ASSET_URL = "type.googleapis.com/tensorflow.AssetFileDef"
_PIECE = 1 << 20
_DONE = "This function will only be available through the v1 compatibility library."


@export(v1=("saved_model.Builder", "saved_model.builder.SavedModelBuilder"))
class SavedModelBuilder:
    """Writes a SavedModel: one or several meta graphs that share their variables and assets.

        builder = tf.saved_model.Builder("export")
        builder.add_meta_graph_and_variables(session, ["serve"], signature_def_map={"serving_default": signature})
        builder.add_meta_graph(["train"])
        builder.save()

    Args:
        export_dir: the directory. It is created if it does not exist.

    Raises:
        AssertionError: the directory is not empty.
    """

    def __init__(self, export_dir: Any) -> None:
        self._export_dir = path_text(export_dir)
        location = resolve(self._export_dir)
        if location.prefix in ("", "file://"):
            atomic.sweep(location.path)
        if gfile.exists(self._export_dir):
            if gfile.listdir(self._export_dir):
                raise AssertionError(
                    f"Export directory {self._export_dir} already exists, and isn't empty. Please choose a different export "
                    "directory, or delete all the contents of the specified directory."
                )
        else:
            gfile.makedirs(self._export_dir)
        self._model = SavedModel(saved_model_schema_version=constants.SAVED_MODEL_SCHEMA_VERSION)
        self._has_variables = False

    def add_meta_graph_and_variables(
        self,
        sess: Any,
        tags: Iterable[str],
        signature_def_map: Any = None,
        assets_collection: Any = None,
        legacy_init_op: Any = None,
        clear_devices: bool = False,
        main_op: Any = None,
        strip_default_attrs: bool = False,
        saver: Any = None,
    ) -> None:
        """Adds the session's graph, and writes the values of its variables and its assets. It must be called first, and only once.

        Args:
            sess: the session.
            tags: the tags by which `load` finds the meta graph.
            signature_def_map: its SignatureDefs by name.
            assets_collection: constants that name files; the files are copied.
            legacy_init_op: the older name of `main_op`.
            clear_devices: whether to omit the devices of nodes.
            main_op: an operation to run when the model is loaded.
            strip_default_attrs: whether to omit attributes that have their default values.
            saver: the Saver for the variables; by default one that saves all of them.

        Raises:
            AssertionError: a meta graph with variables was added before.
            TypeError: `main_op` is not an operation, or an asset is not a constant string.
            ValueError: the graph already has a main op, or an asset has an empty name.
        """
        if self._has_variables:
            raise AssertionError(
                "Graph state including variables and assets has already been saved. Please invoke `add_meta_graph()` instead."
            )
        _check_signatures(signature_def_map)
        with sess.graph.as_default():
            self._collect(assets_collection, legacy_init_op if main_op is None else main_op)
            saver = _saver_or_default(saver)
            gfile.makedirs(os.path.dirname(files.variables_path(self._export_dir)))
            saver.save(sess, files.variables_path(self._export_dir), write_meta_graph=False, write_state=False)
            self._add(saver, tags, signature_def_map, clear_devices, strip_default_attrs)
        self._has_variables = True

    def add_meta_graph(
        self,
        tags: Iterable[str],
        signature_def_map: Any = None,
        assets_collection: Any = None,
        legacy_init_op: Any = None,
        clear_devices: bool = False,
        main_op: Any = None,
        strip_default_attrs: bool = False,
        saver: Any = None,
    ) -> None:
        """Adds the current graph. It shares the variables of the first meta graph.

        Args:
            As for `add_meta_graph_and_variables`.

        Raises:
            AssertionError: no meta graph with variables was added before.
            TypeError, ValueError: as for `add_meta_graph_and_variables`.
        """
        if not self._has_variables:
            raise AssertionError(
                "Graph state including variables and assets has not been saved yet. Please invoke "
                "`add_meta_graph_and_variables()` first."
            )
        _check_signatures(signature_def_map)
        self._collect(assets_collection, legacy_init_op if main_op is None else main_op)
        self._add(_saver_or_default(saver), tags, signature_def_map, clear_devices, strip_default_attrs)

    def _add(self, saver: Any, tags: Any, signatures: Any, clear_devices: bool, strip_default_attrs: bool) -> None:
        meta: MetaGraphDef = saver.export_meta_graph(
            clear_devices=clear_devices, strip_default_attrs=strip_default_attrs
        )
        meta.meta_info_def.tags.extend(tags)
        for name, signature in (signatures or {}).items():
            meta.signature_def[name].CopyFrom(signature)
        self._model.meta_graphs.add().CopyFrom(meta)

    def _collect(self, assets: Any, main_op: Any) -> None:
        """Adds the main op and the assets to collections of the graph, and copies the assets."""
        graph = context.get_default_graph()
        if main_op is not None:
            if not isinstance(main_op, Operation):
                raise TypeError(f"Expected {main_op} to be an Operation but got type {type(main_op)} instead.")
            for key in (constants.MAIN_OP_KEY, constants.LEGACY_INIT_OP_KEY):
                if graph.get_collection(key):
                    raise ValueError(f"Graph already contains one or more main ops under the collection {key}.")
            graph.add_to_collection(constants.MAIN_OP_KEY, main_op)
        if assets is None:
            return
        names: dict[str, str] = {}  # of files in the model, by where they come from
        for tensor in assets:
            source = _asset_path(tensor)
            if source not in names:
                names[source] = free_name(os.path.basename(source), set(names.values()))
            described = AssetFileDef(filename=names[source])
            described.tensor_info.name = tensor.name
            graph.add_to_collection(
                constants.ASSETS_KEY, any_pb2.Any(type_url=_ASSET_URL, value=described.SerializeToString())
            )
        copy_assets(names, self._export_dir)

    @property
    def _message(self) -> Any:
        return self._model

    def save(
        self,
        as_text: bool = False,
        experimental_image_format: bool = False,
        experimental_image_writer_options: Any = None,
    ) -> bytes:
        """Writes `saved_model.pb` (`.pbtxt` with `as_text`); returns its path.

        Raises:
            NotImplementedError: the image format, which splits large messages.
        """
        if experimental_image_format or experimental_image_writer_options is not None:
            raise NotImplementedError("SavedModels in the image format are not supported.")
        name = constants.SAVED_MODEL_FILENAME_PBTXT if as_text else constants.SAVED_MODEL_FILENAME_PB
        gfile.makedirs(self._export_dir)
        path = os.path.join(self._export_dir, name)
        write_message(path, self._model, as_text=as_text)
        tf_logging.info("SavedModel written to: %s", path)
        return os.fsencode(path)


def copy_assets(names: dict[str, str], export_dir: str) -> None:
    """Copies files to the assets directory of a model. `names` maps each path to the name of the copy."""
    folder = files.assets_directory(export_dir)
    if names:
        gfile.makedirs(folder)
    for source, name in names.items():
        target = os.path.join(folder, name)
        if not gfile.exists(target):
            with gfile.GFile(source, "rb") as file, replacing(target) as sink:
                while piece := file.read(_PIECE):
                    sink.write(piece)


def free_name(name: str, taken: set[str]) -> str:
    """Returns a name that is not taken: `name`, with a number appended if necessary."""
    free, number = name, 0
    while free in taken:
        number += 1
        free = f"{name}_{number}"
    return free


def _asset_path(tensor: Any) -> str:
    if not isinstance(tensor, Tensor):
        raise TypeError(f"Asset path must be a Tensor, not {tensor!r}.")
    if tensor.op.type != "Const":
        raise TypeError(f"Asset path tensor {tensor} must be of type constant. Has type {tensor.op.type} instead.")
    value = constant_value(tensor)
    if value is None or value.dtype != object or value.ndim:
        raise TypeError(f"Asset path tensor {tensor} must be of type constant string scalar.")
    path = os.fsdecode(value.item())
    if not path:
        raise ValueError(f"Asset path tensor {tensor} has an empty name.")
    return path


def _check_signatures(signatures: Any) -> None:
    for signature in (signatures or {}).values():
        for info in (*signature.inputs.values(), *signature.outputs.values()):
            if info.WhichOneof("encoding") is None:
                raise AssertionError(f"All TensorInfo protos used in the SignatureDefs must have a name: {info}")
            if info.WhichOneof("encoding") == "name" and not info.name:
                raise AssertionError(
                    f"All TensorInfo protos used in the SignatureDefs must have the `name` set: {info}"
                )
            if not info.dtype and info.WhichOneof("encoding") != "composite_tensor":
                raise AssertionError(
                    f"All TensorInfo protos used in the SignatureDefs must have the `dtype` set: {info}"
                )


def _saver_or_default(saver: Any) -> Any:
    return Saver(sharded=True, allow_empty=True) if saver is None else saver


@export(v1="saved_model.main_op.main_op")
@deprecated(None, _DONE)
def main_op() -> Any:
    """Returns an op that initializes variables and tables when a model is loaded."""
    return _initialize()


def _initialize() -> Any:
    return grouping.group(
        variable_functions.global_variables_initializer(),
        variable_functions.local_variables_initializer(),
        tables_initializer(),
    )


@export(v1=("saved_model.main_op_with_restore", "saved_model.main_op.main_op_with_restore"))
@deprecated(None, _DONE)
def main_op_with_restore(restore_op_name: Any) -> Any:
    """Returns an op that initializes variables and tables, and then runs a restore op."""
    with control_dependencies([_initialize()]):
        return grouping.group(restore_op_name)


@export(v1="saved_model.simple_save")
@deprecated(None, "Use tf.saved_model.Builder, or tf.saved_model.save for objects.")
def simple_save(session: Any, export_dir: Any, inputs: Any, outputs: Any, legacy_init_op: Any = None) -> None:
    """Writes a SavedModel for serving. It has the tag `serve` and one signature, `serving_default`.

    Args:
        session: the session whose graph and variables are saved.
        export_dir: the directory.
        inputs, outputs: tensors by name.
        legacy_init_op: an operation to run when the model is loaded.
    """
    builder = SavedModelBuilder(export_dir)
    signature = predict_signature_def(inputs, outputs)
    builder.add_meta_graph_and_variables(
        session,
        [constants.SERVING],
        {constants.DEFAULT_SERVING_SIGNATURE_DEF_KEY: signature},
        assets_collection=session.graph.get_collection("asset_filepaths"),
        main_op=legacy_init_op,
        clear_devices=True,
    )
    builder.save()
