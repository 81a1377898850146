"""Whole models in files and as JSON: configuration, weights and optimizer; copies of models; a table of layers."""

from __future__ import annotations

import copy
import io
import json
from collections.abc import Callable
from typing import Any

import numpy as np

from stoker._src.base.export import export
from stoker._src.formats import gfile, keras_files
from stoker._src.graph import scopes
from stoker._src.keras import configurations, optimizers, weights_files
from stoker._src.keras.base import Layer
from stoker._src.keras.model import Model, Sequential
from stoker._src.keras.network import Input, InputLayer
from stoker._src.keras.serialization import custom_object_scope, deserialize, plain, serialize
from stoker._src.keras.sessions import batch_get_value


class _Hooks:
    """What a later module of this room supplies: SavedModel folders."""

    write_folder: Callable[..., None]
    read_folder: Callable[..., Any]


hooks = _Hooks()


@export("keras.models.save_model")
def save_model(
    model: Any,
    filepath: Any,
    overwrite: bool = True,
    include_optimizer: bool = True,
    save_format: str | None = None,
    signatures: Any = None,
) -> None:
    """Writes a model to an HDF5 file, or with `save_format="tf"` to a SavedModel folder.

    Raises:
        NotImplementedError: signatures of the program for a SavedModel: use `tf.saved_model.save`.
        ValueError: signatures for an HDF5 file.
    """
    path = str(filepath)
    if not weights_files.is_hdf5(path, save_format or "h5"):
        if signatures is not None:
            raise NotImplementedError(
                "Signatures of the program in Keras models as SavedModel: use tf.saved_model.save."
            )
        hooks.write_folder(model, path, overwrite=overwrite, include_optimizer=include_optimizer)
        return
    if signatures is not None:
        raise ValueError("Signatures belong to SavedModels, not to HDF5 files.")

    def fill(file: Any) -> None:
        file.attrs["keras_version"], file.attrs["backend"] = b"2.2.4-tf", b"tensorflow"
        described = {"class_name": type(model).__name__, "config": model.get_config()}
        file.attrs["model_config"] = json.dumps(described, default=plain).encode()
        weights_files.write_weights(file.create_group("model_weights"), model.layers)
        compiled = model.__dict__.get("_compiled")
        if include_optimizer and compiled is not None and not isinstance(model.optimizer, optimizers.TFOptimizer):
            file.attrs["training_config"] = json.dumps(training_config(model, compiled), default=plain).encode()
            weights = model.optimizer.weights
            if weights:
                group = file.create_group("optimizer_weights")
                group.attrs["weight_names"] = np.array([each.name.encode() for each in weights])
                for weight, value in zip(weights, batch_get_value(weights)):
                    group.create_dataset(weight.name, data=value)

    weights_files.write_hdf5(path, fill, overwrite)


def training_config(model: Any, compiled: Any) -> dict[str, Any]:
    return {
        "loss": plain(compiled.loss),
        "metrics": plain(compiled.given),
        "weighted_metrics": plain(compiled.weighted),
        "sample_weight_mode": compiled.options["sample_weight_mode"],
        "loss_weights": compiled.loss_weights,
        "optimizer_config": serialize(model.optimizer),
    }


weights_files.hooks.save_model = save_model


@export("keras.models.load_model")
def load_model(filepath: Any, custom_objects: Any = None, compile: bool = True) -> Any:
    """Reads a model from an HDF5 file or a SavedModel folder.

    Args:
        filepath: the file or folder.
        custom_objects: the program's own classes and functions, by name.
        compile: whether to compile it as it was.

    Raises:
        OSError: there is no such file.
        ValueError: it is not a file of a Keras model.
    """
    path = str(filepath)
    if not gfile.exists(path):
        raise OSError(f"SavedModel file does not exist at: {path}")
    if gfile.isdir(path):
        return hooks.read_folder(path, custom_objects, compiled=compile)
    with gfile.GFile(path, "rb") as source:
        data = source.read()
    try:
        file = weights_files.h5py().File(io.BytesIO(data), "r")
    except OSError as error:
        raise ValueError(f"The file {path} is not an HDF5 file: {error}") from error
    with file, custom_object_scope(custom_objects or {}):
        if "model_config" not in file.attrs:
            raise ValueError("No model found in config file.")
        model = model_from_config(_json(file.attrs["model_config"]), custom_objects)
        weights_files.read_weights(file["model_weights"], model.layers)
        if compile and "training_config" in file.attrs:
            group = file.get("optimizer_weights")
            names = [] if group is None else keras_files.names_in(group, "weight_names")
            weights = [np.asarray(group[name]) for name in names]
            compile_as_before(model, _json(file.attrs["training_config"]), weights, custom_objects)
    return model


def _json(text: Any) -> Any:
    return json.loads(text.decode() if isinstance(text, bytes) else text)


def compile_as_before(model: Any, config: dict[str, Any], weights: list[Any], custom_objects: Any) -> None:
    """Compiles a model as a file says. `weights` are those of the optimizer."""
    described = config["optimizer_config"]
    optimizer = optimizers.deserialize(described, custom_objects)

    def known(value: Any) -> Any:
        if isinstance(value, dict) and "class_name" in value:
            return deserialize(value, "losses", custom_objects)
        if isinstance(value, dict):
            return {key: known(each) for key, each in value.items()}
        if isinstance(value, list):
            return [known(each) for each in value]
        return custom_objects.get(value, value) if custom_objects and isinstance(value, str) else value

    metrics = config.get("metrics")
    model.compile(
        optimizer,
        known(config.get("loss")),
        metrics=None if metrics is None else _metrics(metrics, custom_objects),
        loss_weights=config.get("loss_weights"),
        sample_weight_mode=config.get("sample_weight_mode"),
        weighted_metrics=None
        if config.get("weighted_metrics") is None
        else _metrics(config["weighted_metrics"], custom_objects),
    )
    if weights:
        optimizer.iterations  # noqa: B018 - creates the counter
        with scopes.NameScope("training"), scopes.NameScope(optimizer._name):
            optimizer._create_hypers()
            optimizer._create_slots(model.trainable_weights)
        if len(optimizer.weights) == len(weights):
            optimizer.set_weights(weights)


def _metrics(given: Any, custom_objects: Any) -> Any:
    if isinstance(given, dict) and "class_name" in given:
        return deserialize(given, "metrics", custom_objects)
    if isinstance(given, dict):
        return {key: _metrics(each, custom_objects) for key, each in given.items()}
    if isinstance(given, list):
        return [_metrics(each, custom_objects) for each in given]
    return custom_objects.get(given, given) if custom_objects and isinstance(given, str) else given


@export("keras.models.model_from_config")
def model_from_config(config: Any, custom_objects: Any = None) -> Any:
    """The model that a configuration describes: {"class_name": ..., "config": ...}.

    Raises:
        TypeError: it is a list, which only `Sequential.from_config` takes.
    """
    if isinstance(config, list):
        raise TypeError(
            "`model_from_config` expects a dictionary, not a list. Maybe you meant to use `Sequential.from_config(config)`?"
        )
    name = {"Functional": "Model"}.get(config["class_name"], config["class_name"])
    plain_config = configurations.without_unknown({"class_name": name, "config": config["config"]})
    return deserialize(plain_config, "models", custom_objects)


@export("keras.models.model_from_json")
def model_from_json(json_string: str, custom_objects: Any = None) -> Any:
    """The model that `to_json` described."""
    return model_from_config(json.loads(json_string), custom_objects)


@export("keras.models.clone_model")
def clone_model(model: Any, input_tensors: Any = None, clone_function: Callable[[Any], Any] | None = None) -> Any:
    """A model with the same layers and new weights.

    Args:
        model: a network or a `Sequential`.
        input_tensors: inputs of the copy, in place of placeholders.
        clone_function: makes the copy of a layer; by default from its configuration.

    Raises:
        ValueError: the model is a subclass, whose code says what it computes.
    """
    again = clone_function or (lambda layer: type(layer).from_config(layer.get_config()))
    if isinstance(model, Sequential):
        first = model._steps[0] if model._steps else None
        made = []
        if isinstance(first, InputLayer):
            tensor = (
                Input(tensor=input_tensors)
                if input_tensors is not None
                else Input(batch_shape=first._batch_input_shape, dtype=first.dtype, name=first.name)
            )
            made.append(tensor._keras_history[0])
        return Sequential([*made, *map(again, model.layers)], name=model.name)
    if model._network is None:
        raise ValueError(
            "Expected `model` argument to be a functional `Model` instance, but got a subclass model instead."
        )
    config = copy.deepcopy(model.get_config())
    if input_tensors is not None:
        raise NotImplementedError("clone_model(input_tensors=...) of networks.")
    if clone_function is None:
        return Model.from_config(config)
    by_name = {layer.name: layer for layer in model.layers}

    class Copied:
        """Stands for each class: a layer is made by the program's function."""

        @classmethod
        def from_config(cls, described: dict[str, Any]) -> Any:
            layer = by_name[described["name"]]
            return type(layer).from_config(described) if isinstance(layer, InputLayer) else again(layer)

    for each in config["layers"]:
        each["class_name"] = "Copied"
        each["config"] = {**each["config"], "name": each["name"]}
    return Model.from_config(config, {"Copied": Copied})


# ---- a table of layers ----------------------------------------------------------------------------------------------


def print_summary(model: Any, line_length: int | None = None, positions: Any = None, print_fn: Any = None) -> None:
    """Prints the layers of a model: their output shapes, numbers of weights and, if they are no plain sequence, inputs."""
    show = print if print_fn is None else print_fn
    network: Any = model._network
    simple = isinstance(model, Sequential) or network is None or _is_chain(network)
    shares = positions or ([0.45, 0.85, 1.0] if simple else [0.33, 0.55, 0.67, 1.0])
    width = line_length or (65 if simple else 98)
    ends = [int(width * each if shares[-1] <= 1 else each) for each in shares]

    def row(fields: list[Any]) -> None:
        line = ""
        for i, field in enumerate(fields):
            if i > 0:
                line = line[:-1] + " "
            line = (line + str(field))[: ends[i]]
            line += " " * (ends[i] - len(line))
        show(line)

    show(f'Model: "{model.name}"')
    show("_" * width)
    row(["Layer (type)", "Output Shape", "Param #", *([] if simple else ["Connected to"])])
    show("=" * width)
    kept = set() if network is None else {id(node) for node in network.nodes}
    for i, layer in enumerate(model.layers):
        try:
            shape: Any = layer.output_shape
        except AttributeError:
            shape = "multiple"
        if network is None and isinstance(layer, Layer) and not layer._inbound_nodes:
            shape = "multiple"
        if isinstance(layer, InputLayer):
            shape = [shape]
        sources = []
        if not simple:
            for node in getattr(layer, "_inbound_nodes", ()):
                if network is not None and id(node) in kept and not network._begins(node):
                    sources.extend(
                        f"{each._keras_history[0].name}[{each._keras_history[1]}][{each._keras_history[2]}]"
                        for each in node.inputs
                    )
        number = layer.count_params() if getattr(layer, "built", True) else "0 (unused)"
        row([f"{layer.name} ({type(layer).__name__})", shape, number, *([] if simple else sources[:1] or [""])])
        for source in sources[1:]:
            row(["", "", "", source])
        show(("=" if i == len(model.layers) - 1 else "_") * width)
    trained = sum(int(np.prod(each.shape.as_list())) for each in model.trainable_weights)
    fixed = sum(int(np.prod(each.shape.as_list())) for each in model.non_trainable_weights)
    show(f"Total params: {trained + fixed:,}")
    show(f"Trainable params: {trained:,}")
    show(f"Non-trainable params: {fixed:,}")
    show("_" * width)


def _is_chain(network: Any) -> bool:
    """Whether each layer is called once, on the output of the one before."""
    return (
        all(len(node.inputs) <= 1 for node in network.nodes)
        and len(network.nodes) == len(network.layers)
        and len(network.flat_outputs) == 1
        and len({id(each) for node in network.nodes for each in node.inputs}) == len(network.nodes) - 1
    )


weights_files.hooks.print_summary = print_summary
