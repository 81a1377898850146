"""Layers around other layers: the same layer at every time step, and recurrent layers in both directions."""

from __future__ import annotations

import copy
from typing import Any

from stoker._src.base import nest
from stoker._src.base.export import export
from stoker._src.base.shapes import TensorShape
from stoker._src.keras.base import Layer, takes
from stoker._src.keras.serialization import deserialize, serialize
from stoker._src.layers.base import dims
from stoker._src.ops.array import joining, selection, shaping


@export("keras.layers.Wrapper")
class Wrapper(Layer):
    """The base of layers that hold another one."""

    def __init__(self, layer: Any, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.layer = layer

    def build(self, input_shape: Any = None) -> None:
        if not self.layer.built:
            self.layer.build(input_shape)
            self.layer.built = True
        self.built = True

    @property
    def activity_regularizer(self) -> Any:
        return getattr(self.layer, "activity_regularizer", None)

    def get_config(self) -> dict[str, Any]:
        return {**self._common_config(), "layer": serialize(self.layer)}

    @classmethod
    def from_config(cls, config: dict[str, Any], custom_objects: Any = None) -> Any:
        config = copy.deepcopy(config)
        return cls(deserialize(config.pop("layer"), "layers", custom_objects), **config)


@export("keras.layers.TimeDistributed")
class TimeDistributed(Wrapper):
    """Applies a layer to every time step: inputs [batch, time, ...]."""

    def __init__(self, layer: Any, **kwargs: Any) -> None:
        if not isinstance(layer, Layer):
            raise ValueError(
                f"Please initialize `TimeDistributed` layer with a `tf.keras.layers.Layer` instance. You passed: {layer}"
            )
        super().__init__(layer, **kwargs)
        self.supports_masking = True

    def build(self, input_shape: Any = None) -> None:
        if not self.layer.built and not self._calls_whole():
            batch, _, *rest = dims(input_shape)
            self.layer._dtype = self.layer._dtype or self._dtype
            self.layer.build(TensorShape([batch, *rest]))
            self.layer.built = True
        self.built = True

    def _calls_whole(self) -> bool:
        """Whether the layer is called as such, with a scope of its own, because it consists of other layers."""
        return type(self.layer).build is Layer.build or bool(self.layer._sublayers())

    def compute_output_shape(self, input_shape: Any) -> Any:
        batch, time, *rest = dims(input_shape)
        inner = self.layer.compute_output_shape(TensorShape([batch, *rest]))
        return TensorShape([batch, time, *TensorShape(inner).as_list()[1:]])

    def call(self, inputs: Any, training: Any = None, mask: Any = None) -> Any:
        arguments = {"training": training} if takes(self.layer.call, "training") else {}
        known = inputs.static_shape
        sizes = shaping.shape(inputs)
        rows = shaping.reshape(inputs, joining.concat([[-1], sizes[2:]], 0))
        rows.set_shape([None if None in known[:2] else known[0] * known[1], *known[2:]])
        if mask is not None and takes(self.layer.call, "mask"):
            arguments["mask"] = shaping.reshape(mask, joining.concat([[-1], shaping.shape(mask)[2:]], 0))
        outputs = (self.layer if self._calls_whole() else self.layer.call)(rows, **arguments)
        result = shaping.reshape(outputs, joining.concat([sizes[:2], shaping.shape(outputs)[1:]], 0))
        result.set_shape([*known[:2], *outputs.static_shape[1:]])
        return result


@export("keras.layers.Bidirectional")
class Bidirectional(Wrapper):
    """A recurrent layer forwards and a copy of it backwards.

    Args:
        layer: the recurrent layer.
        merge_mode: how outputs are combined: "concat", "sum", "mul", "ave", or None for a list of both.
        weights: initial values of both layers.
        backward_layer: the layer that goes backwards, in place of a copy.
        **kwargs: arguments of every layer.

    Raises:
        ValueError: the layer is not a layer, the mode is unknown, or both layers go in the same direction.
    """

    def __init__(
        self,
        layer: Any,
        merge_mode: str | None = "concat",
        weights: Any = None,
        backward_layer: Any = None,
        **kwargs: Any,
    ) -> None:
        recurrent: Any = layer
        if not isinstance(layer, Layer):
            raise ValueError(f"Please initialize `Bidirectional` layer with a `Layer` instance. You passed: {layer}")
        if merge_mode not in ("sum", "mul", "ave", "concat", None):
            raise ValueError("Invalid merge mode. Merge mode should be one of {'sum', 'mul', 'ave', 'concat', None}")
        super().__init__(layer, **kwargs)
        self.merge_mode = merge_mode
        self.supports_masking = True
        self.forward_layer = self._again(recurrent, "forward_", recurrent.go_backwards)
        self.backward_layer = backward_layer or self._again(recurrent, "backward_", not recurrent.go_backwards)
        if backward_layer is not None:
            self._given_backward = True
            if backward_layer.go_backwards == recurrent.go_backwards:
                raise ValueError("Forward layer and backward layer should have different `go_backwards` value.")
        self.layer = self.forward_layer
        self._initial_weights = weights

    @staticmethod
    def _again(layer: Any, prefix: str, go_backwards: bool) -> Any:
        config = {**layer.get_config(), "go_backwards": go_backwards}
        config["name"] = prefix + layer.name
        return type(layer).from_config(config)

    @property
    def return_sequences(self) -> bool:
        return self.forward_layer.return_sequences

    @property
    def return_state(self) -> bool:
        return self.forward_layer.return_state

    def build(self, input_shape: Any = None) -> None:
        self.built = True

    def __call__(self, inputs: Any, initial_state: Any = None, constants: Any = None, **kwargs: Any) -> Any:
        extra = nest.flatten(initial_state) if initial_state is not None else []
        if extra and any(hasattr(each, "_keras_history") for each in extra):
            return super().__call__([*(inputs if isinstance(inputs, (list, tuple)) else [inputs]), *extra], **kwargs)
        if initial_state is not None:
            kwargs["initial_state"] = initial_state
        return super().__call__(inputs, **kwargs)

    def call(self, inputs: Any, training: Any = None, mask: Any = None, initial_state: Any = None) -> Any:
        if isinstance(inputs, (list, tuple)):
            initial_state = list(inputs[1:]) or initial_state
            inputs = inputs[0]
            mask = mask[0] if isinstance(mask, (list, tuple)) else mask
        arguments: dict[str, Any] = {}
        if takes(self.layer.call, "training"):
            arguments["training"] = training
        if takes(self.layer.call, "mask"):
            arguments["mask"] = mask
        halves: list[Any] = [None, None]
        if initial_state is not None:
            states = nest.flatten(initial_state)
            half = len(states) // 2
            halves = [states[:half], states[half:]]
        y = self.forward_layer(inputs, initial_state=halves[0], **arguments)
        back = self.backward_layer(inputs, initial_state=halves[1], **arguments)
        states = []
        if self.return_state:
            states = [*y[1:], *back[1:]]
            y, back = y[0], back[0]
        if self.return_sequences:
            back = selection.reverse(back, [0 if getattr(self.forward_layer, "time_major", False) else 1])
        if self.merge_mode is None:
            merged: Any = [y, back]
        elif self.merge_mode == "concat":
            merged = joining.concat([y, back], -1)
        elif self.merge_mode == "mul":
            merged = y * back
        else:
            merged = y + back if self.merge_mode == "sum" else (y + back) / 2
        if not states:
            return merged
        return [*merged, *states] if self.merge_mode is None else [merged, *states]

    def compute_mask(self, inputs: Any, mask: Any = None) -> Any:
        mask = mask[0] if isinstance(mask, (list, tuple)) else mask
        own = mask if self.return_sequences else None
        outputs = [own, own] if self.merge_mode is None else own
        if not self.return_state:
            return outputs
        states = [None] * (2 * len(self.forward_layer.states))
        return [*outputs, *states] if isinstance(outputs, list) else [outputs, *states]

    def reset_states(self) -> None:
        self.forward_layer.reset_states()
        self.backward_layer.reset_states()

    def get_config(self) -> dict[str, Any]:
        config = {**super().get_config(), "merge_mode": self.merge_mode}
        inner = config["layer"]["config"]
        inner["name"] = inner["name"].removeprefix("forward_")
        if getattr(self, "_given_backward", False):
            config["backward_layer"] = serialize(self.backward_layer)
        return config

    @classmethod
    def from_config(cls, config: dict[str, Any], custom_objects: Any = None) -> Any:
        config = copy.deepcopy(config)
        back = config.pop("backward_layer", None)
        if back is not None:
            config["backward_layer"] = deserialize(back, "layers", custom_objects)
        return cls(deserialize(config.pop("layer"), "layers", custom_objects), **config)
