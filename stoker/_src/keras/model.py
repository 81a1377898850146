"""`tf.keras.Model` and `tf.keras.Sequential`."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any

from stoker._src.base import nest
from stoker._src.base.export import export
from stoker._src.base.shapes import TensorShape
from stoker._src.graph import context
from stoker._src.graph.function_graph import FuncGraph
from stoker._src.graph.trackable import Trackable
from stoker._src.graph.tracked_structures import no_automatic_dependency_tracking
from stoker._src.keras import weights_files
from stoker._src.keras.base import Layer, MasksInside, floatx, is_shape, is_symbolic, once, takes
from stoker._src.keras.network import Input, InputLayer, Network
from stoker._src.keras.serialization import class_name, deserialize, plain, serialize
from stoker._src.keras.training import Training
from stoker._src.layers import base as layers
from stoker._src.ops.array import constants


@export("keras.Model", "keras.models.Model")
class Model(Training, MasksInside, Layer):
    """Layers between inputs and outputs, with methods that train, evaluate, predict, save and load.

    There are two ways to make one: `Model(inputs, outputs)` with tensors that begin with `tf.keras.Input`, or a subclass that
    creates layers in its constructor and applies them in `call`.
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        functional = len(args) == 2 or "outputs" in kwargs
        if not functional and args:
            raise TypeError(f"A model takes inputs and outputs, or neither. Received: {args}")
        if functional:
            inputs = args[0] if args else kwargs.pop("inputs", None)
            outputs = args[1] if len(args) > 1 else kwargs.pop("outputs")
            if inputs is None:
                inputs = kwargs.pop("input", None)
            self._start(**kwargs)
            self._set_network(inputs, outputs)
        else:
            self._start(**kwargs)

    @no_automatic_dependency_tracking
    def _start(self, name: str | None = None, trainable: bool = True, dtype: Any = None, dynamic: bool = False) -> None:
        self._network: Network | None = None
        self._compiled = None
        self.stop_training = False
        self.history: Any = None
        self.optimizer: Any = None
        Layer.__init__(self, trainable, name, dtype, dynamic)

    def __setattr__(self, name: str, value: Any) -> None:
        if "_weights" not in self.__dict__ and name not in ("_network",) and isinstance(value, Trackable):
            raise RuntimeError(
                "It looks like you are subclassing `Model` and you forgot to call `super(YourClass, self).__init__()`. Always start with this line."
            )
        super().__setattr__(name, value)

    @no_automatic_dependency_tracking
    def _set_network(self, inputs: Any, outputs: Any) -> None:
        self._network = Network(inputs, outputs)
        self.built = True
        self.supports_masking = True
        # The model's own node: what it makes of its inputs, so that `model.output` can go on in other networks.
        self._first_outputs = outputs
        for layer in self._network.layers:
            self._handle_deferred_layer(layer)

    def _handle_deferred_layer(self, layer: Any) -> None:
        for name, child in self._layer_children().items():
            if child is layer:
                self._handle_deferred_dependencies(name, layer)

    # -- layers --------------------------------------------------------------------------------------------------

    @property
    def _is_graph_network(self) -> bool:
        return self._network is not None

    @property
    def layers(self) -> list[Any]:
        """The layers directly in the model."""
        if self._network is not None:
            return list(self._network.layers)
        return self._attribute_layers()

    def _attribute_layers(self) -> list[Any]:
        return [each for each in Layer._sublayers(self) if not _is_metric(each)]

    def _sublayers(self) -> list[Any]:
        if self._network is None:
            return self._attribute_layers()
        found = {id(each): each for each in self._network.layers}
        found.update((id(each), each) for each in self._attribute_layers())
        return list(found.values())

    @property
    def weights(self) -> list[Any]:
        """The weights layer by layer, in the order of files."""
        inner = [each for layer in self._sublayers() for each in layer.weights]
        return once([*self._own_weights(), *inner])

    def _layer_children(self) -> dict[str, Any]:
        """The layers as checkpoints name them: by position, and by position among those with weights."""
        children: dict[str, Any] = {}
        weighted = 0
        for index, layer in enumerate(self.layers):
            if layer.weights:
                children[f"layer_with_weights-{weighted}"] = layer
                weighted += 1
            children[f"layer-{index}"] = layer
        return children

    def _trackable_children(self, save_type: str = "checkpoint", **kwargs: Any) -> dict[str, Any]:
        children = super()._trackable_children(save_type, **kwargs)
        if self.__dict__.get("_network") is None and not isinstance(self, Sequential):
            return children
        return {**self._layer_children(), **children}

    def get_layer(self, name: str | None = None, index: int | None = None) -> Any:
        """A layer by name or position.

        Raises:
            ValueError: there is no such layer.
        """
        if index is not None:
            if len(self.layers) <= index:
                raise ValueError(
                    f"Was asked to retrieve layer at index {index} but model only has {len(self.layers)} layers."
                )
            return self.layers[index]
        if not name:
            raise ValueError("Provide either a layer name or layer index.")
        for layer in self.layers:
            if layer.name == name:
                return layer
        raise ValueError(f"No such layer: {name}")

    # -- tensors -------------------------------------------------------------------------------------------------

    @property
    def inputs(self) -> Any:
        return None if self._network is None else list(self._network.flat_inputs)

    @property
    def outputs(self) -> Any:
        return None if self._network is None else list(self._network.flat_outputs)

    @property
    def input(self) -> Any:
        return super().input if self._network is None else self._network.inputs

    @property
    def output(self) -> Any:
        return super().output if self._network is None else self._network.outputs

    @property
    def input_names(self) -> list[str]:
        if self._network is not None:
            return [layer.name for layer in self._network.input_layers]
        return getattr(self, "_seen_input_names", [])

    @property
    def output_names(self) -> list[str]:
        if self._network is None:
            return getattr(self, "_seen_output_names", [])
        names: list[str] = []
        for tensor in self._network.flat_outputs:
            base = tensor._keras_node.layer.name
            count = sum(1 for each in names if each == base or re.fullmatch(re.escape(base) + r"_\d+", each))
            names.append(f"{base}_{count}" if count else base)
        return names

    @property
    def input_shape(self) -> Any:
        return nest.map_structure(lambda x: tuple(x.shape.as_list()), self.input)

    @property
    def output_shape(self) -> Any:
        return nest.map_structure(lambda x: tuple(x.shape.as_list()), self.output)

    @property
    def state_updates(self) -> list[Any]:
        """The updates of layers that keep a state between batches."""
        return [each for layer in self.layers if getattr(layer, "stateful", False) for each in layer.updates]

    def _state_updates_for(self, inputs: list[Any]) -> list[Any]:
        """Those of `state_updates` that belong to a step with these inputs."""
        meant = {id(each) for each in (*self.get_updates_for(None), *self.get_updates_for(inputs))}
        return [each for each in self.state_updates if id(each) in meant]

    @property
    def stateful(self) -> bool:
        return any(getattr(layer, "stateful", False) for layer in self.layers) if "_weights" in self.__dict__ else False

    @stateful.setter
    def stateful(self, value: bool) -> None:
        """Whether a model is stateful depends on its layers."""

    def reset_states(self) -> None:
        """Sets the kept states of its recurrent layers to zero."""
        for layer in self.layers:
            if getattr(layer, "stateful", False) and hasattr(layer, "reset_states"):
                layer.reset_states()

    # -- calling -------------------------------------------------------------------------------------------------

    def call(self, inputs: Any, training: Any = None, mask: Any = None) -> Any:
        """The outputs for inputs. Subclasses override it.

        Raises:
            NotImplementedError: the model is neither a network nor does its class say what it computes.
        """
        if self._network is None:
            raise NotImplementedError("When subclassing the `Model` class, you should implement a `call` method.")
        outputs, losses = self._network.run(inputs, training, mask)
        self._losses.extend(losses)
        return outputs

    @no_automatic_dependency_tracking
    def add_loss(self, losses: Any, inputs: Any = None) -> None:
        """Adds penalties. Tensors of the network, in eager mode, are computed with each call."""
        flat = [each for each in nest.flatten(losses) if each is not None]
        symbolic = [each for each in flat if is_symbolic(each) and each.op.graph.adopts_eager_ops]
        if symbolic and self._network is not None:
            network = self._network
            self._network = Network(network.inputs, network.outputs, [*network.losses, *symbolic])
        super().add_loss([each for each in flat if not any(each is other for other in symbolic)], inputs)

    def compute_mask(self, inputs: Any, mask: Any = None) -> Any:
        return None

    def compute_output_shape(self, input_shape: Any) -> Any:
        return Layer.compute_output_shape(self, input_shape)

    def build(self, input_shape: Any) -> None:
        """Creates the weights by calling the model on placeholders of that shape, in a graph that is thrown away.

        Their names lack the model's, which only a call of the model adds.
        """
        if self._network is not None or self.built:
            return
        shapes = TensorShape(input_shape) if is_shape(input_shape) else nest.map_structure(TensorShape, input_shape)
        kind = layers.as_dtype(self._dtype or floatx())
        with context.enter_graph(FuncGraph("build")):
            made = nest.map_structure(lambda shape: constants.placeholder(kind, shape), shapes)
            arguments = {"training": False} if takes(self.call, "training") else {}
            self.call(made, **arguments)
        self.built = True

    def _buildonce(self, inputs: Any) -> None:
        if not self.built and self._dtype is None:
            flat = nest.flatten(inputs)
            self._dtype = flat[0].dtype.base_dtype if flat and hasattr(flat[0], "dtype") else None
        self.built = True

    # -- configuration -------------------------------------------------------------------------------------------

    def get_config(self) -> dict[str, Any]:
        """The layers, their calls, inputs and outputs.

        Raises:
            NotImplementedError: the model is a subclass, whose code no configuration holds.
        """
        network = self._network
        if network is None:
            raise NotImplementedError(
                "Layers that are subclasses of `Model` have no configuration: override `get_config`."
            )
        kept = {id(node) for node in network.nodes}
        index: dict[int, int] = {}
        for layer in network.layers:
            for node in (each for each in layer._inbound_nodes if id(each) in kept):
                index[id(node)] = sum(1 for other in layer._inbound_nodes if id(other) in kept and id(other) in index)

        def place(tensor: Any) -> list[Any]:
            layer, _, position = tensor._keras_history
            return [layer.name, index[id(tensor._keras_node)], position]

        described = []
        for layer in network.layers:
            nodes = []
            for node in (each for each in layer._inbound_nodes if id(each) in kept):
                if network._begins(node):
                    continue
                kwargs = {
                    key: place(value) if hasattr(value, "_keras_history") else plain(value)
                    for key, value in node.kwargs.items()
                }
                nodes.append([[*place(each), kwargs] for each in nest.flatten(node.arguments[0])])
            described.append({"name": layer.name, **serialize(layer), "inbound_nodes": nodes})

        return {
            "name": self.name,
            "layers": described,
            "input_layers": [place(each) for each in network.flat_inputs],
            "output_layers": [place(each) for each in network.flat_outputs],
        }

    @classmethod
    def from_config(cls, config: dict[str, Any], custom_objects: Any = None) -> Any:
        """The model that a configuration describes."""
        made = {each["name"]: deserialize(each, "layers", custom_objects) for each in config["layers"]}

        def tensor_of(place: Any) -> Any:
            name, node, position = place[:3]
            return nest.flatten(made[name]._inbound_nodes[node].outputs)[position]

        def ready(place: Any) -> bool:
            return len(made[place[0]]._inbound_nodes) > place[1]

        waiting = [(each["name"], node) for each in config["layers"] for node in each.get("inbound_nodes", ())]
        while waiting:
            left = []
            blocked: set[str] = set()
            for name, node in waiting:
                sources = list(node) if node and isinstance(node[0], list) else [node]
                inner = [
                    value
                    for each in sources
                    for value in (each[3].values() if len(each) > 3 else ())
                    if _is_place(value, made)
                ]
                if name in blocked or not all(map(ready, [*sources, *inner])):
                    blocked.add(name)
                    left.append((name, node))
                    continue
                kwargs = dict(sources[0][3]) if len(sources[0]) > 3 else {}
                kwargs = {key: tensor_of(value) if _is_place(value, made) else value for key, value in kwargs.items()}
                tensors = [tensor_of(each) for each in sources]
                made[name](tensors[0] if len(tensors) == 1 else tensors, **kwargs)
            if len(left) == len(waiting):
                raise ValueError(
                    f"The configuration of the model {config.get('name')!r} has calls without inputs: {[name for name, _ in left]}"
                )
            waiting = left
        inputs, outputs = (
            [tensor_of(each) for each in (places if places and isinstance(places[0], list) else [places])]
            for places in (config["input_layers"], config["output_layers"])
        )
        single = [each[0] if len(each) == 1 else each for each in (inputs, outputs)]
        return cls(inputs=single[0], outputs=single[1], name=config.get("name"))

    def to_json(self, **kwargs: Any) -> str:
        """The configuration as JSON."""
        content = {
            "class_name": class_name(self),
            "config": self.get_config(),
            "keras_version": "2.2.4-tf",
            "backend": "tensorflow",
        }
        return json.dumps(content, default=str, **kwargs)

    # -- files ---------------------------------------------------------------------------------------------------

    def save_weights(
        self, filepath: Any, overwrite: bool = True, save_format: str | None = None, max_shard_size: Any = None
    ) -> None:
        """Writes the weights: an HDF5 file (names that end in .h5, .hdf5 or .keras, or `save_format="h5"`), or a checkpoint."""
        if max_shard_size is not None:
            raise NotImplementedError("Weights in several HDF5 files (max_shard_size).")
        weights_files.save_weights(self, str(filepath), overwrite, save_format)

    def load_weights(self, filepath: Any, by_name: bool = False, skip_mismatch: bool = False) -> Any:
        """Reads the weights that `save_weights` wrote, here or in TensorFlow."""
        return weights_files.load_weights(self, str(filepath), by_name, skip_mismatch)

    def save(
        self,
        filepath: Any,
        overwrite: bool = True,
        include_optimizer: bool = True,
        save_format: str | None = None,
        signatures: Any = None,
        options: Any = None,
    ) -> None:
        """Writes the model: an HDF5 file with its configuration, weights and optimizer."""
        weights_files.hooks.save_model(self, filepath, overwrite, include_optimizer, save_format, signatures)

    # -- a picture in text ---------------------------------------------------------------------------------------

    def summary(
        self, line_length: int | None = None, positions: Any = None, print_fn: Callable[[str], Any] | None = None
    ) -> None:
        """Prints a table of the layers with their output shapes and numbers of weights.

        Raises:
            ValueError: the model has no weights yet.
        """
        if not self.built:
            raise ValueError(
                "This model has not yet been built. Build the model first by calling `build()` or calling `fit()` with some data, or specify an `input_shape` argument in the first layer(s) for automatic build."
            )
        weights_files.hooks.print_summary(self, line_length, positions, print_fn)


def _is_place(value: Any, layers_by_name: dict[str, Any]) -> bool:
    return (
        isinstance(value, (list, tuple))
        and len(value) in (3, 4)
        and isinstance(value[0], str)
        and value[0] in layers_by_name
        and isinstance(value[1], int)
        and isinstance(value[2], int)
    )


def _is_metric(layer: Any) -> bool:
    return hasattr(layer, "update_state") and hasattr(layer, "result")


@export("keras.Sequential", "keras.models.Sequential")
class Sequential(Model):
    """Layers one after the other."""

    def __init__(self, layers: Any = None, name: str | None = None) -> None:
        super().__init__(name=name)
        self.supports_masking = True
        self._steps: list[Any] = []
        for layer in layers or []:
            self.add(layer)

    def __setattr__(self, name: str, value: Any) -> None:
        if name == "_steps":
            object.__setattr__(self, name, value)  # a plain list: its layers are tracked by position
        else:
            super().__setattr__(name, value)

    @property
    def layers(self) -> list[Any]:
        return [each for each in self._steps if not isinstance(each, InputLayer)]

    def _sublayers(self) -> list[Any]:
        found = {id(each): each for each in self._steps}
        found.update((id(each), each) for each in self._attribute_layers())
        return list(found.values())

    def add(self, layer: Any) -> None:
        """Appends a layer.

        Raises:
            TypeError: it is not a layer.
            ValueError: it has several outputs.
        """
        if hasattr(layer, "_keras_history") and not isinstance(layer, layers.Layer):
            layer = layer._keras_history[0]
        if not isinstance(layer, layers.Layer):
            raise TypeError(f"The added layer must be an instance of class Layer. Found: {layer}")
        self.built = False
        tensor = None
        if not self._steps and not isinstance(layer, InputLayer):
            shape, kind = _first_shape(layer)
            if shape is not None:
                tensor = Input(batch_shape=shape, dtype=kind, name=f"{layer.name}_input")
                self._steps.append(tensor._keras_history[0])
        elif isinstance(layer, InputLayer):
            tensor = layer._inbound_nodes[0].outputs
            self._steps.append(layer)
            self._define(tensor, tensor)
            return
        elif self._network is not None:
            tensor = self._network.flat_outputs[0]
        self._steps.append(layer)
        if tensor is not None:
            outputs = layer(tensor)
            if len(nest.flatten(outputs)) != 1:
                raise ValueError(
                    "All layers in a Sequential model should have a single output tensor. For multi-output layers, use the functional API."
                )
            first = self._network.inputs if self._network is not None else tensor
            self._define(first, outputs)

    @no_automatic_dependency_tracking
    def _define(self, inputs: Any, outputs: Any) -> None:
        self._network = Network(inputs, outputs)
        self.built = len(self._steps) > 0
        for layer in self.layers:
            self._handle_deferred_layer(layer)

    def pop(self) -> None:
        """Removes the last layer.

        Raises:
            TypeError: there are no layers.
        """
        if not self.layers:
            raise TypeError("There are no layers in the model.")
        self._steps.pop()
        if self._network is not None:
            begins = self._network.inputs
            self._network = None
            if self.layers:
                self._define(begins, self.layers[-1]._inbound_nodes[-1].outputs)

    def build(self, input_shape: Any = None) -> None:
        if self._network is None and input_shape is not None and not self.built:
            Model.build(self, input_shape)
        self.built = True

    def call(self, inputs: Any, training: Any = None, mask: Any = None) -> Any:
        if self._network is not None:
            return super().call(inputs, training, mask)
        outputs = inputs
        for layer in self.layers:
            kwargs: dict[str, Any] = {}
            if takes(layer.call, "training"):
                kwargs["training"] = training
            if mask is not None and takes(layer.call, "mask"):
                kwargs["mask"] = mask
            outputs = layer(outputs, **kwargs)
            mask = getattr(outputs, "_keras_mask", None)
        return outputs

    def predict_proba(self, x: Any, batch_size: int = 32, verbose: int = 0) -> Any:
        """The predictions, which are expected to be probabilities."""
        return self.predict(x, batch_size, verbose)

    def predict_classes(self, x: Any, batch_size: int = 32, verbose: int = 0) -> Any:
        """The most likely classes."""
        found = self.predict(x, batch_size, verbose)
        return found.argmax(axis=-1) if found.shape[-1] > 1 else (found > 0.5).astype("int32")

    def get_config(self) -> dict[str, Any]:
        config: dict[str, Any] = {"name": self.name, "layers": [serialize(layer) for layer in self.layers]}
        first = self._steps[0] if self._steps else None
        if isinstance(first, InputLayer) and self.layers and not hasattr(self.layers[0], "_batch_input_shape"):
            config["build_input_shape"] = first._batch_input_shape
        return config

    @classmethod
    def from_config(cls, config: Any, custom_objects: Any = None) -> Any:
        name, described = (None, config) if isinstance(config, list) else (config.get("name"), config["layers"])
        model = cls(name=name)
        shape = None if isinstance(config, list) else config.get("build_input_shape")
        made = [deserialize(each, "layers", custom_objects) for each in described]
        if (
            shape is not None
            and made
            and not hasattr(made[0], "_batch_input_shape")
            and not isinstance(made[0], InputLayer)
        ):
            made[0]._batch_input_shape = tuple(shape)
        for layer in made:
            model.add(layer)
        return model


def _first_shape(layer: Any) -> tuple[Any, Any]:
    """The input shape that a first layer says it has, and its dtype."""
    inner = layer
    while isinstance(inner, Model):
        if inner._network is not None:
            first = inner._network.flat_inputs[0]
            return tuple(first.shape.as_list()), first.dtype
        if not inner.layers:
            return None, None
        inner = inner.layers[0]
    kind = inner.dtype
    return getattr(inner, "_batch_input_shape", None), kind
