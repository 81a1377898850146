"""Keras models as SavedModel folders: a graph that serves predictions, and the configuration that makes the model again.

A folder has the configuration in `assets/saved_model.json`, as `tf.keras.experimental.export_saved_model` of 1.15 writes it. Folders that TensorFlow's `model.save`
wrote have it in their object graph (1.15) or in `keras_metadata.pb` (2.x).
"""

from __future__ import annotations

import io
import json
import os
from typing import Any

import numpy as np
from google.protobuf import descriptor_pb2, descriptor_pool, message, message_factory

from stoker._src.base.export import export
from stoker._src.base.tf_logging import warning
from stoker._src.formats import gfile
from stoker._src.graph.graph import Graph
from stoker._src.keras import configurations, optimizers, saving, weights_files
from stoker._src.keras.serialization import custom_object_scope, plain
from stoker._src.keras.sessions import batch_get_value, batch_set_value
from stoker._src.runtime.session import Session
from stoker._src.saved_model import constants, files
from stoker._src.saved_model.builder import SavedModelBuilder
from stoker._src.saved_model.signatures import predict_signature_def
from stoker._src.train.checkpoints.reader import CheckpointReader

_CONFIG = "saved_model.json"
_OPTIMIZER = "optimizer_weights.npz"
_OBJECTS = "_CHECKPOINTABLE_OBJECT_GRAPH"


@export("keras.experimental.export_saved_model")
def export_saved_model(
    model: Any,
    saved_model_path: Any,
    custom_objects: Any = None,
    as_text: bool = False,
    input_signature: Any = None,
    serving_only: bool = False,
) -> None:
    """Writes a model as a SavedModel folder, with the signature `serving_default` from its inputs to its outputs.

    Args:
        model: a network or a `Sequential`.
        saved_model_path: the folder, which must not exist.
        custom_objects: the program's own classes and functions, by name.
        as_text: whether the graph should be written as text.
        input_signature: other inputs of the signature.
        serving_only: whether only the graph for predictions is written. It is the only one in any case.

    Raises:
        NotImplementedError: the model is a subclass, whose code no configuration holds; or text or other inputs are asked for.
    """
    if as_text or input_signature is not None:
        raise NotImplementedError("export_saved_model(as_text=True) and input_signature.")
    write_folder(model, str(saved_model_path), include_optimizer=False, custom_objects=custom_objects)


@export("keras.experimental.load_from_saved_model")
def load_from_saved_model(saved_model_path: Any, custom_objects: Any = None) -> Any:
    """The model that `export_saved_model` wrote, here or in TensorFlow 1.15."""
    return read_folder(str(saved_model_path), custom_objects, compiled=False)


def write_folder(
    model: Any, path: str, *, overwrite: bool = True, include_optimizer: bool = True, custom_objects: Any = None
) -> None:
    """Writes a model as a SavedModel folder.

    Raises:
        NotImplementedError: the model is a subclass.
        OSError: the folder exists, and may not be overwritten.
    """
    if model.__dict__.get("_network") is None:
        raise NotImplementedError(
            f"The model {model.name} is a subclass of Model or has no input shape, so no configuration describes it: save its weights, or use tf.saved_model.save."
        )
    if gfile.exists(path) and (not overwrite or not gfile.isdir(path)):
        raise OSError(f"{path} exists. Pass overwrite=True to replace a folder; a file stays.")
    if gfile.exists(path) and gfile.listdir(path) and not files.contains_saved_model(path):
        raise OSError(f"The folder {path} has other files than those of a SavedModel, and is not replaced.")
    described = {"class_name": type(model).__name__, "config": model.get_config(), "backend": "tensorflow"}
    compiled = model.__dict__.get("_compiled")
    kept: list[Any] = []
    if include_optimizer and compiled is not None and not isinstance(model.optimizer, optimizers.TFOptimizer):
        described["training_config"] = saving.training_config(model, compiled)
        kept = batch_get_value(model.optimizer.weights)
    values = batch_get_value(model.weights)
    text = json.dumps({**described, "keras_version": "2.2.4-tf"}, default=plain)
    graph = Graph()
    with graph.as_default(), Session(graph=graph) as session, custom_object_scope(custom_objects or {}):
        copy = saving.model_from_config(json.loads(text), custom_objects)
        outputs = copy(list(copy.inputs) if len(copy.inputs) > 1 else copy.inputs[0], training=False)
        made = outputs if isinstance(outputs, (list, tuple)) else [outputs]
        for weight, value in zip(copy.weights, values):
            session.run(weight.initializer)
            weight.load(value, session)
        signature = predict_signature_def(dict(zip(copy.input_names, copy.inputs)), dict(zip(copy.output_names, made)))
        partial = f"{path}.{os.getpid()}.part"
        builder = SavedModelBuilder(partial)
        builder.add_meta_graph_and_variables(
            session, [constants.SERVING], {constants.DEFAULT_SERVING_SIGNATURE_DEF_KEY: signature}, clear_devices=True
        )
        builder.save()
    folder = files.assets_directory(partial)
    gfile.makedirs(folder)
    with gfile.GFile(os.path.join(folder, _CONFIG), "w") as file:
        file.write(text)
    if kept:
        arrays = io.BytesIO()
        np.savez(arrays, *kept)
        with gfile.GFile(os.path.join(folder, _OPTIMIZER), "wb") as file:
            file.write(arrays.getvalue())
    if gfile.exists(path):
        gfile.rmtree(path)
    gfile.rename(partial, path)


def read_folder(path: str, custom_objects: Any = None, compiled: bool = True) -> Any:
    """The model of a SavedModel folder, with its weights.

    Raises:
        ValueError: the folder has no configuration of a Keras model.
    """
    config = _configuration(path)
    with custom_object_scope(custom_objects or {}):
        model = saving.model_from_config(config, custom_objects)
        prefix = files.variables_path(path)
        reader = CheckpointReader(prefix)
        if reader.has_tensor(_OBJECTS):
            weights_files.load_weights(model, prefix, by_name=False, skip_mismatch=False)
        else:
            batch_set_value(list(zip(model.weights, _by_name(config, reader, custom_objects))))
        if compiled and config.get("training_config"):
            try:
                saving.compile_as_before(model, config["training_config"], _optimizer_weights(path), custom_objects)
            except (ValueError, TypeError) as error:  # optimizers of 2.x have other settings
                warning("The model in %s is not compiled as it was (%s): call compile before training it.", path, error)
    return model


def _optimizer_weights(path: str) -> list[Any]:
    asset = os.path.join(files.assets_directory(path), _OPTIMIZER)
    if not gfile.exists(asset):
        return []
    with gfile.GFile(asset, "rb") as file, np.load(io.BytesIO(file.read()), allow_pickle=False) as arrays:
        return [arrays[name] for name in arrays.files]


def _by_name(config: Any, reader: CheckpointReader, custom_objects: Any) -> list[Any]:
    """The weights of a folder that `write_folder` wrote: its variables have the names they get in an empty graph."""
    graph = Graph()
    with graph.as_default():
        copy = saving.model_from_config(config, custom_objects)
    return [reader.get_tensor(weight.name.partition(":")[0]) for weight in copy.weights]


def _configuration(path: str) -> dict[str, Any]:
    asset = os.path.join(files.assets_directory(path), _CONFIG)
    if gfile.exists(asset):
        with gfile.GFile(asset, "r") as file:
            return json.loads(file.read())
    found = _metadata_of_2_x(os.path.join(path, "keras_metadata.pb")) or _metadata_of_1_x(path)
    if found is None or not found.get("config") or "layers" not in found["config"]:
        raise ValueError(
            f"The SavedModel in {path} has no configuration of a Keras network: load it with tf.saved_model.load or tf.saved_model.loader.load."
        )
    found = configurations.plain_value(found)
    return {
        "class_name": found["class_name"],
        "config": found["config"],
        "training_config": found.get("training_config"),
    }


def _metadata_of_1_x(path: str) -> dict[str, Any] | None:
    """The description that TensorFlow 1.15 puts beside the root of the object graph."""
    for meta in files.read_saved_model(path).meta_graphs:
        nodes = meta.object_graph_def.nodes
        if nodes and nodes[0].WhichOneof("kind") == "user_object" and nodes[0].user_object.metadata:
            return json.loads(nodes[0].user_object.metadata)
    return None


def _metadata_of_2_x(path: str) -> dict[str, Any] | None:
    """The description of the root in the file that TensorFlow 2 writes: a list of (node, path, identifier, metadata)."""
    if not gfile.exists(path):
        return None
    found = _metadata_message()()
    with gfile.GFile(path, "rb") as file:
        try:
            found.ParseFromString(file.read())
        except message.DecodeError as error:
            raise ValueError(f"The file {path} is damaged: {error}") from error
    roots = [each for each in found.nodes if each.node_path == "root"]
    return json.loads(roots[0].metadata) if roots else None


def _metadata_message() -> Any:
    file = descriptor_pb2.FileDescriptorProto(
        name="stoker/keras_metadata.proto", package="stoker.keras", syntax="proto3"
    )
    node = file.message_type.add(name="SavedObject")
    kinds = descriptor_pb2.FieldDescriptorProto
    for name, number, kind in (
        ("node_id", 2, kinds.TYPE_INT32),
        ("node_path", 3, kinds.TYPE_STRING),
        ("identifier", 4, kinds.TYPE_STRING),
        ("metadata", 5, kinds.TYPE_STRING),
    ):
        node.field.add(name=name, number=number, type=kind, label=kinds.LABEL_OPTIONAL)
    whole = file.message_type.add(name="SavedMetadata")
    whole.field.add(
        name="nodes",
        number=1,
        type=kinds.TYPE_MESSAGE,
        label=kinds.LABEL_REPEATED,
        type_name=".stoker.keras.SavedObject",
    )
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    return message_factory.GetMessageClass(pool.FindMessageTypeByName("stoker.keras.SavedMetadata"))


saving.hooks.write_folder, saving.hooks.read_folder = write_folder, read_folder
