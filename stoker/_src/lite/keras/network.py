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
from stoker._src.graph.tensor import Operation, Tensor
from stoker._src.keras.base import Layer as KerasLayer
from stoker._src.lite.keras import layers as forms
from stoker._src.lite.keras import recurrent
from stoker._src.lite.keras.calls import Call, Reference, ends, flat, parse_call
from stoker._src.lite.keras.layers import Layer, UnsupportedLayer
from stoker._src.lite.keras.masks import output_mask
from stoker._src.lite.keras.operations import apply_operation, is_operation, knows_operation
from stoker._src.ops.array import constants

# Importing them registers the layers.
assert recurrent.rnn

_SEQUENTIAL = ("Sequential",)
_FUNCTIONAL = ("Functional", "Model")


@dataclass
class Network:
    """A model as a graph."""

    graph: Graph
    inputs: list[Tensor]
    outputs: list[Tensor]
    updates: list[Operation] = field(default_factory=list)
    """Operations that a call runs besides what its outputs need: updates of states that are kept between calls."""


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
    return Network(graph, builder.inputs, outputs, builder.updates)


# Messages for layers that are not supported on purpose.
_REASONS = {
    "Lambda": ", whose Python code a file does not hold: custom_objects may have its function, by the name of the function or the layer",
}


@dataclass
class _Builder:
    version: str
    custom: dict[str, Any]
    inputs: list[Tensor] = field(default_factory=list)
    updates: list[Operation] = field(default_factory=list)
    masks: dict[Tensor, Tensor] = field(default_factory=dict)
    """The masks of tensors that have one."""
    made: dict[int, KerasLayer] = field(default_factory=dict)
    """The layers of `tf.keras` that were made, by the identity of their settings."""

    def unknown(self, model: dict[str, Any]) -> Iterator[tuple[str, str, str]]:
        """The unsupported layers: class, name and message."""
        if model["class_name"] not in (*_SEQUENTIAL, *_FUNCTIONAL) and not is_model(model):
            yield model["class_name"], str(model["config"].get("name", "")), ": it is neither Sequential nor functional"
            return
        for layer in layers_of(model):
            kind = layer["class_name"]
            if is_model(layer):
                yield from self.unknown(layer)
            elif kind != "InputLayer" and kind not in self.custom and not self.is_known(layer):
                yield kind, str(layer["config"].get("name", layer.get("name", ""))), _REASONS.get(kind, "")

    def is_known(self, layer: dict[str, Any]) -> bool:
        if layer["class_name"] == "Lambda":
            return self.function_of(layer["config"]) is not None
        return forms.knows(layer["class_name"]) if not is_operation(layer) else knows_operation(layer)

    def function_of(self, config: dict[str, Any]) -> Any:
        """The function of a Lambda layer, which the caller gives by its name or by the name of the layer."""
        function = config.get("function")
        if isinstance(function, dict):
            function = function.get("config")
        for name in (config.get("name"), function):
            if isinstance(name, str) and callable(self.custom.get(name)):
                return self.custom[name]
        return None

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

    def apply(self, layer: dict[str, Any], weights: dict[str, Weights], value: Any, call: Call | None = None) -> Any:
        """The output of one layer, or of a model that is used as one."""
        kind, config = layer["class_name"], layer["config"]
        name = str(layer.get("name") or (config.get("name") if isinstance(config, dict) else None) or kind.lower())
        own = weights.get(name, Weights())
        if is_model(layer):
            found = self.model(
                layer, own.layers or _by_layer(layer, own), value if isinstance(value, list) else [value]
            )
            return found if len(found) > 1 else found[0]
        inputs = [each for each in flat(value) if isinstance(each, Tensor)]
        config.setdefault("name", name)
        made = Layer(
            kind,
            config,
            own.arrays,
            self.version,
            self.functions,
            call or Call([value]),
            [self.masks.get(each) for each in inputs],
            self,
        )
        try:
            if is_operation(layer):
                with name_scope(name):
                    return apply_operation(made)
            found, own_mask = self.built(made, value)
            mask = output_mask(made, inputs, own_mask)
        except UnsupportedLayer as error:
            raise ValueError(f"The layer '{name}' of the class {kind} cannot be converted: {error}.") from error
        first = found[0] if isinstance(found, list) else found
        if mask is not None and isinstance(first, Tensor):
            self.masks[first] = mask
        return found

    def built(self, layer: Layer, value: Any) -> tuple[Any, Any]:
        """The output of a layer and its mask."""
        kind = layer.class_name
        if kind not in self.custom and kind != "Lambda":
            return forms.apply(layer, value)
        with name_scope(layer.name):
            return (self.custom_layer if kind in self.custom else self.function)(layer, value), None

    def function(self, layer: Layer, value: Any) -> Any:
        """The result of the function of a Lambda layer."""
        try:
            return self.function_of(layer.config)(value, **(layer.config.get("arguments") or {}))
        except Exception as error:
            raise UnsupportedLayer(f"its function failed for a tensor of the graph: {error}") from error

    def inner_model(self, model: dict[str, Any], arrays: dict[str, np.ndarray], value: Tensor) -> Any:
        """The output of a model inside a layer, with the weights of that layer."""
        found = self.model(model, _by_layer(model, Weights(arrays)), [value])
        return found if len(found) > 1 else found[0]

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
        by_name = {str(each.get("name") or each["config"]["name"]): each for each in config["layers"]}
        for position, start in enumerate(ends(config["input_layers"])):
            made[start.layer, 0] = given[position] if given is not None else self.placeholder(by_name[start.layer])
        first = _first_calls(config)
        waiting = [
            (name, layer, number, parse_call(node))
            for name, layer in by_name.items()
            for number, node in enumerate(layer.get("inbound_nodes") or [], first.get(name, 0))
            if (name, number) not in made
        ]

        def value_of(reference: Reference) -> Any:
            value = made[reference.layer, reference.call]
            return value[reference.output] if isinstance(value, list) else value

        while waiting:
            later = []
            for name, layer, number, call in waiting:
                if any((each.layer, each.call) not in made for each in call.references()):
                    later.append((name, layer, number, call))
                    continue
                found = call.resolved(value_of)
                values = flat(found.args)
                made[name, number] = self.apply(layer, weights, values[0] if call.is_single else values, found)
            if len(later) == len(waiting):
                raise ValueError(
                    f"The layers {sorted({name for name, *_ in later})} read nodes that the model does not have."
                )
            waiting = later
        return [value_of(each) for each in ends(config["output_layers"])]


def _by_layer(model: dict[str, Any], weights: Weights) -> dict[str, Weights]:
    """The weights of a model inside a model, which an HDF5 file lists together: their paths have the names of the layers."""
    found = {}
    for layer in layers_of(model):
        config = layer["config"]
        name = str(layer.get("name") or (config.get("name") if isinstance(config, dict) else "") or "")
        arrays = {path: each for path, each in weights.arrays.items() if name in path.split("/")}
        found[name] = Weights(arrays)
    return found


def _first_calls(config: dict[str, Any]) -> dict[str, int]:
    """The number of the first call of models that are used as layers. Most versions count one call for the model itself."""
    used: dict[str, set[int]] = {}
    calls = [parse_call(node) for layer in config["layers"] for node in layer.get("inbound_nodes") or []]
    for each in [*ends(config["output_layers"]), *(found for call in calls for found in call.references())]:
        used.setdefault(each.layer, set()).add(each.call)
    found = {}
    for layer in config["layers"]:
        name = str(layer.get("name") or layer["config"]["name"])
        if is_model(layer) and used.get(name) and max(used[name]) == len(layer.get("inbound_nodes") or []):
            found[name] = 1
    return found
