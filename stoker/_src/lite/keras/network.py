"""Builds a graph from the description of a Keras model: Sequential and functional models, which may be nested."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from stoker._src.base import dtypes
from stoker._src.formats.keras_files import KerasModel, Weights, is_model, layers_of
from stoker._src.graph.graph import Graph
from stoker._src.graph.scopes import name_scope
from stoker._src.graph.tensor import Tensor
from stoker._src.lite.keras import core, images, recurrent
from stoker._src.lite.keras.layers import LAYERS, Layer, UnsupportedLayer
from stoker._src.ops.array import constants

assert core.dense and images.convolution and recurrent.lstm  # importing them registers the layers

_SEQUENTIAL = ("Sequential",)
_FUNCTIONAL = ("Functional", "Model")


@dataclass
class Network:
    """A model as a graph."""

    graph: Graph
    inputs: list[Tensor]
    outputs: list[Tensor]


def build_network(model: KerasModel, custom_objects: dict[str, Any] | None = None) -> Network:
    """The graph of a model that Keras described.

    Args:
      model: The description, with weights.
      custom_objects: The caller's functions and layers by name. A layer is a class that is made with its settings, takes its weights
        by `set_weights` and is called with its inputs.

    Raises:
      ValueError: Some layers are not supported (one message lists all of them), or the description is inconsistent.
    """
    builder = _Builder(model.version, dict(custom_objects or {}))
    unknown = list(builder.unknown(model.config))
    if unknown:
        listed = "; ".join(f"'{name}' of the class {kind}{reason}" for kind, name, reason in unknown)
        raise ValueError(f"The Keras model has layers that cannot be converted: {listed}.")
    graph = Graph()
    with graph.as_default():
        outputs = builder.model(model.config, model.weights, None)
    return Network(graph, builder.inputs, outputs)


# Messages for layers that are not supported on purpose.
_REASONS = {
    "Lambda": ", whose Python code a file does not hold",
    "TFOpLambda": ", which calls a TensorFlow function: save the model as a SavedModel",
    "SlicingOpLambda": ", which calls a TensorFlow function: save the model as a SavedModel",
    "TensorFlowOpLayer": ", which wraps a TensorFlow op: save the model as a SavedModel",
    "Masking": ": TFLite has no masks",
}


@dataclass
class _Builder:
    version: str
    custom: dict[str, Any]
    inputs: list[Tensor] = field(default_factory=list)

    def unknown(self, model: dict[str, Any]) -> Iterator[tuple[str, str, str]]:
        """The unsupported layers: class, name and message."""
        if model["class_name"] not in (*_SEQUENTIAL, *_FUNCTIONAL) and not is_model(model):
            yield model["class_name"], str(model["config"].get("name", "")), ": it is neither Sequential nor functional"
            return
        for layer in layers_of(model):
            kind = layer["class_name"]
            if is_model(layer):
                yield from self.unknown(layer)
            elif kind != "InputLayer" and kind not in LAYERS and kind not in self.custom:
                yield kind, str(layer["config"].get("name", layer.get("name", ""))), _REASONS.get(kind, "")

    def model(self, model: dict[str, Any], weights: dict[str, Weights], given: list[Tensor] | None) -> list[Tensor]:
        """The outputs of a model for `given` inputs, or for new placeholders."""
        config = model["config"]
        if isinstance(config, list) or "input_layers" not in config:
            return self.sequential(model, weights, given)
        return self.functional(config, weights, given)

    def sequential(
        self, model: dict[str, Any], weights: dict[str, Weights], given: list[Tensor] | None
    ) -> list[Tensor]:
        layers = layers_of(model)
        value: Any = given[0] if given else None
        for layer in layers:
            if layer["class_name"] == "InputLayer":
                value = self.placeholder(layer) if value is None else value
                continue
            if value is None:
                value = self.first_input(model, layer)
            value = self.apply(layer, weights, value)
        if value is None:
            raise ValueError("The Sequential model has no layers.")
        return list(value) if isinstance(value, list) else [value]

    def first_input(self, model: dict[str, Any], layer: dict[str, Any]) -> Tensor:
        """The input of a Sequential model without an input layer: its first layer, or the model, knows the shape."""
        if is_model(layer):
            first = layers_of(layer)[0]
            return self.placeholder(first) if first["class_name"] == "InputLayer" else self.first_input(layer, first)
        config = layer["config"]
        shape = config.get("batch_input_shape", config.get("batch_shape"))
        if shape is None and isinstance(model["config"], dict):
            shape = model["config"].get("build_input_shape")
        if shape is None:
            raise ValueError("The Sequential model was saved before its input shape was known.")
        name = f"{config.get('name', 'sequential')}_input"
        return self.placeholder({"config": {"batch_input_shape": shape, "dtype": config.get("dtype"), "name": name}})

    def placeholder(self, layer: dict[str, Any]) -> Tensor:
        config = layer["config"]
        shape = config.get("batch_input_shape", config.get("batch_shape"))
        dtype = config.get("dtype") or "float32"
        if isinstance(dtype, dict):
            dtype = dtype.get("config", {}).get("name", "float32")
        if config.get("sparse") or config.get("ragged"):
            raise ValueError(f"The input '{config.get('name')}' is sparse or ragged, which TFLite has not.")
        made = constants.placeholder(dtypes.as_dtype(str(dtype)), shape, name=str(config.get("name", "input")))
        self.inputs.append(made)
        return made

    def apply(self, layer: dict[str, Any], weights: dict[str, Weights], value: Any) -> Any:
        """The output of one layer, or of a model that is used as one."""
        kind, config = layer["class_name"], layer["config"]
        name = str(layer.get("name") or (config.get("name") if isinstance(config, dict) else None) or kind.lower())
        own = weights.get(name, Weights())
        if is_model(layer):
            found = self.model(
                layer, own.layers or _by_layer(layer, own), value if isinstance(value, list) else [value]
            )
            return found if len(found) > 1 else found[0]
        made = Layer(kind, {**config, "name": name}, own.arrays, self.version, self.functions)
        with name_scope(name):
            try:
                return self.custom_layer(made, value) if kind in self.custom else LAYERS[kind](made, value)
            except UnsupportedLayer as error:
                raise ValueError(f"The layer '{name}' of the class {kind} cannot be converted: {error}.") from error

    @property
    def functions(self) -> dict[str, Callable[..., Any]]:
        return {name: each for name, each in self.custom.items() if callable(each)}

    def custom_layer(self, layer: Layer, value: Any) -> Any:
        make = self.custom[layer.class_name]
        made = make.from_config(layer.config) if hasattr(make, "from_config") else make(**layer.config)
        if layer.arrays:
            made.set_weights([np.asarray(each) for each in layer.arrays.values()])
        return made(value)

    def functional(
        self, config: dict[str, Any], weights: dict[str, Weights], given: list[Tensor] | None
    ) -> list[Tensor]:
        """Builds a functional model, whose layers name the nodes they read. A layer that is called several times has several nodes."""
        made: dict[tuple[str, int], Any] = {}
        starts = [name for name, *_ in _ends(config["input_layers"])]
        by_name = {str(each.get("name") or each["config"]["name"]): each for each in config["layers"]}
        for position, name in enumerate(starts):
            made[name, 0] = given[position] if given is not None else self.placeholder(by_name[name])
        first = _first_nodes(config)
        waiting = [
            (name, layer, number, node)
            for name, layer in by_name.items()
            for number, node in enumerate(layer.get("inbound_nodes") or [], first.get(name, 0))
            if (name, number) not in made
        ]
        while waiting:
            later = []
            for name, layer, number, node in waiting:
                sources, single = _sources(node)
                if any((source, index) not in made for source, index, _ in sources):
                    later.append((name, layer, number, node))
                    continue
                values = [_picked(made[source, index], which) for source, index, which in sources]
                made[name, number] = self.apply(layer, weights, values[0] if single else values)
            if len(later) == len(waiting):
                raise ValueError(
                    f"The layers {sorted({name for name, *_ in later})} read nodes that the model does not have."
                )
            waiting = later
        return [_picked(made[name, index], which) for name, index, which in _ends(config["output_layers"])]


def _by_layer(model: dict[str, Any], weights: Weights) -> dict[str, Weights]:
    """The weights of a model inside a model, which an HDF5 file lists together: their paths have the names of the layers."""
    found = {}
    for layer in layers_of(model):
        config = layer["config"]
        name = str(layer.get("name") or (config.get("name") if isinstance(config, dict) else "") or "")
        arrays = {path: each for path, each in weights.arrays.items() if name in path.split("/")}
        found[name] = Weights(arrays)
    return found


def _first_nodes(config: dict[str, Any]) -> dict[str, int]:
    """The number of the first node of models that are used as layers. Most versions count one node for the model itself."""
    used: dict[str, set[int]] = {}
    for layer in config["layers"]:
        for node in layer.get("inbound_nodes") or []:
            for name, number, _ in _sources(node)[0]:
                used.setdefault(name, set()).add(number)
    for name, number, _ in _ends(config["output_layers"]):
        used.setdefault(name, set()).add(number)
    found = {}
    for layer in config["layers"]:
        name = str(layer.get("name") or layer["config"]["name"])
        if is_model(layer) and used.get(name) and max(used[name]) == len(layer.get("inbound_nodes") or []):
            found[name] = 1
    return found


def _picked(value: Any, which: int) -> Any:
    return value[which] if isinstance(value, list) else value


def _ends(ends: Any) -> list[tuple[str, int, int]]:
    """The inputs or outputs of a functional model: one [name, node, tensor], or a list or dictionary of them."""
    if isinstance(ends, dict):
        ends = list(ends.values())
    if ends and isinstance(ends[0], str):
        ends = [ends]
    return [(str(name), int(node), int(tensor)) for name, node, tensor, *_ in ends]


def _sources(node: Any) -> tuple[list[tuple[str, int, int]], bool]:
    """The inputs of a node, and whether it has a single tensor as input."""
    if isinstance(node, dict):
        found = list(_histories(node.get("args", [])))
        extra = [key for key, value in node.get("kwargs", {}).items() if any(True for _ in _histories(value))]
        if extra:
            raise ValueError(
                f"A layer of the model is called with the tensors {extra} by name, which is not supported."
            )
        arguments = node.get("args", [])
        single = len(arguments) == 1 and not isinstance(arguments[0], (list, tuple))
        return found, single
    entries = [node] if node and isinstance(node[0], str) else node
    for entry in entries:
        used = [key for key, value in (entry[3] if len(entry) > 3 else {}).items() if isinstance(value, list) and value]
        if used and any(_is_reference(entry[3][key]) for key in used):
            raise ValueError(f"A layer of the model is called with the tensors {used} by name, which is not supported.")
    return [(str(name), int(index), int(which)) for name, index, which, *_ in entries], len(entries) == 1


def _is_reference(value: list[Any]) -> bool:
    return len(value) >= 3 and isinstance(value[0], str) and isinstance(value[1], int) and isinstance(value[2], int)


def _histories(value: Any) -> Iterator[tuple[str, int, int]]:
    if isinstance(value, dict):
        if value.get("class_name") == "__keras_tensor__":
            name, node, tensor = value["config"]["keras_history"]
            yield str(name), int(node), int(tensor)
        else:
            for each in value.values():
                yield from _histories(each)
    elif isinstance(value, (list, tuple)):
        for each in value:
            yield from _histories(each)
