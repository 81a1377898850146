"""The computation of each layer, by the name of its class."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

import numpy as np

from stoker._src.graph.tensor import Operation, Tensor
from stoker._src.lite.keras.calls import Call
from stoker._src.ops.array import casting, constants, shaping
from stoker._src.ops.math import arithmetic, clipping, unary_functions
from stoker._src.ops.nn import activations, softmax


class UnsupportedLayer(Exception):
    """A layer or one of its settings is not supported. The message says why."""


class ModelBuilder(Protocol):
    """The parts of a network that layers need."""

    updates: list[Operation]
    """Operations that run in every call, such as updates of states."""
    masks: dict[Tensor, Tensor]
    """The masks of tensors that have one."""

    def inner_model(self, model: dict[str, Any], arrays: dict[str, np.ndarray], value: Tensor) -> Any:
        """The output of a model that is used inside a layer."""
        ...


@dataclass
class Layer:
    """One layer of a file: its class, its settings and its weights."""

    class_name: str
    config: dict[str, Any]
    arrays: dict[str, np.ndarray] = field(default_factory=dict)
    version: str = ""
    functions: dict[str, Callable[..., Any]] = field(default_factory=dict)
    """The caller's own activations, by name."""
    call: Call = field(default_factory=Call)
    """What the layer is called with."""
    masks: list[Tensor | None] = field(default_factory=list)
    """The mask of each input: a boolean for each time step, False where it is padding."""
    models: ModelBuilder | None = None

    @property
    def name(self) -> str:
        return str(self.config.get("name", self.class_name.lower()))

    def weight(self, name: str) -> Tensor:
        """A weight as a constant of the graph."""
        return constants.constant(self.array(name), name=name)

    def array(self, name: str) -> np.ndarray:
        # Keras 3 calls the kernel of a depthwise convolution simply "kernel".
        last = {path.rpartition("/")[2]: value for path, value in reversed(self.arrays.items())}
        for known in (name, "kernel" if name == "depthwise_kernel" and "pointwise_kernel" not in last else name):
            if known in last:
                return last[known]
        numbered = [value for path, value in self.arrays.items() if path.rpartition("/")[2].isdigit()]
        names = [each for each, present in _WEIGHTS.get(self.class_name, _USUAL)(self.config) if present]
        if name in names and names.index(name) < len(numbered):
            return numbered[names.index(name)]
        raise UnsupportedLayer(f"the file has no weight '{name}' for it, only {sorted(self.arrays)}")

    def has_weight(self, name: str) -> bool:
        try:
            self.array(name)
        except UnsupportedLayer:
            return False
        return True

    @property
    def mask(self) -> Tensor | None:
        """The mask that the layer is called with, or that comes with its first input."""
        given = self.call.kwargs.get("mask")
        if isinstance(given, list):
            given = given[0]
        return given if given is not None else next(iter(self.masks), None)

    def part(self, class_name: str, config: dict[str, Any], marker: str = "") -> Layer:
        """A layer inside this one, with the weights whose path has `marker`."""
        arrays = {path: value for path, value in self.arrays.items() if not marker or _has_part(path, marker)}
        return replace(self, class_name=class_name, config=config, arrays=arrays)

    def activation(self, x: Tensor, name: str = "activation") -> Tensor:
        return activate(self, x, self.config.get(name))

    @property
    def channels_first(self) -> bool:
        return self.config.get("data_format") == "channels_first"

    @property
    def is_keras_3(self) -> bool:
        return self.version.startswith("3")

    def number(self, *names: str, default: float = 0.0) -> float:
        """A numeric setting under any of the names that different versions use. Some versions store it as an array."""
        for name in names:
            if self.config.get(name) is not None:
                value = self.config[name]
                return float(value["config"]["value"] if isinstance(value, dict) else value)
        return default


def _has_part(path: str, marker: str) -> bool:
    return any(part.startswith(marker) for part in path.split("/"))


# The order of weights in an archive: names, and whether the settings ask for them.
def _usual(config: dict[str, Any]) -> list[tuple[str, bool]]:
    return [("kernel", True), ("bias", config.get("use_bias", True))]


def _recurrent(config: dict[str, Any]) -> list[tuple[str, bool]]:
    return [("kernel", True), ("recurrent_kernel", True), ("bias", config.get("use_bias", True))]


def _separable(config: dict[str, Any]) -> list[tuple[str, bool]]:
    return [("depthwise_kernel", True), ("pointwise_kernel", True), ("bias", config.get("use_bias", True))]


def _normalization(config: dict[str, Any]) -> list[tuple[str, bool]]:
    scale, center = config.get("scale", True), config.get("center", True)
    return [("gamma", scale), ("beta", center), ("moving_mean", True), ("moving_variance", True)]


_USUAL = _usual
_WEIGHTS: dict[str, Callable[[dict[str, Any]], list[tuple[str, bool]]]] = {
    "BatchNormalization": _normalization,
    "LayerNormalization": _normalization,
    "SeparableConv1D": _separable,
    "SeparableConv2D": _separable,
    "DepthwiseConv2D": lambda config: [("depthwise_kernel", True), ("bias", config.get("use_bias", True))],
    "DepthwiseConv1D": lambda config: [("depthwise_kernel", True), ("bias", config.get("use_bias", True))],
    "Embedding": lambda config: [("embeddings", True)],
    "EinsumDense": lambda config: [("kernel", True), ("bias", bool(config.get("bias_axes")))],
    "GroupNormalization": _normalization,
    "RMSNormalization": lambda config: [("scale", True)],
    "Normalization": lambda config: [("mean", True), ("variance", True)],
    "Attention": lambda config: [
        ("scale", bool(config.get("use_scale"))),
        ("concat_score_weight", config.get("score_mode") == "concat"),
    ],
    "AdditiveAttention": lambda config: [("scale", config.get("use_scale", True))],
    "PReLU": lambda config: [("alpha", True)],
    **dict.fromkeys(("LSTM", "GRU", "SimpleRNN", "LSTMCell", "GRUCell", "SimpleRNNCell", "ConvLSTM2D"), _recurrent),
}

Build = Callable[[Layer, Any], Any]
LAYERS: dict[str, Build] = {}


def builds(*names: str) -> Callable[[Build], Build]:
    """Registers a function for layers of these classes. It takes the layer and its input, or a list of inputs, and returns its output."""

    def attach(function: Build) -> Build:
        for name in names:
            assert name not in LAYERS, name
            LAYERS[name] = function
        return function

    return attach


def static(x: Tensor, axis: int) -> int:
    """A size, which must be known."""
    size = x.static_shape[axis]
    if size is None:
        raise UnsupportedLayer(f"its input has the shape {x.shape}, and size {axis} must be known")
    return size


# ---- activations --------------------------------------------------------------------------------------------------


def _hard_sigmoid(layer: Layer, x: Tensor) -> Tensor:
    slope = 1 / 6 if layer.is_keras_3 else 0.2
    return clipping.clip_by_value(slope * x + 0.5, 0.0, 1.0)


_ACTIVATIONS: dict[str, Callable[[Tensor], Any]] = {
    "linear": lambda x: x,
    "relu": activations.relu,
    "relu6": activations.relu6,
    "elu": activations.elu,
    "selu": activations.selu,
    "softplus": activations.softplus,
    "softsign": activations.softsign,
    "softmax": softmax.softmax,
    "log_softmax": softmax.log_softmax,
    "sigmoid": unary_functions.sigmoid,
    "tanh": unary_functions.tanh,
    "exponential": unary_functions.exp,
    "swish": activations.swish,
    "silu": activations.swish,
    "gelu": activations.gelu,
    "leaky_relu": activations.leaky_relu,
}


def activate(layer: Layer, x: Tensor, setting: Any) -> Tensor:
    """The activation that a setting names: a name, a layer of its own, or a function of the caller."""
    if setting is None:
        return x
    if isinstance(setting, dict):
        kind, config = setting.get("class_name"), setting.get("config")
        if kind in LAYERS and isinstance(config, dict):
            return LAYERS[kind](replace(layer, class_name=kind, config=config, arrays={}), x)
        setting = config if isinstance(config, str) else kind
    name = str(setting)
    if name in layer.functions:
        return layer.functions[name](x)
    if name == "hard_sigmoid":
        return _hard_sigmoid(layer, x)
    if name not in _ACTIVATIONS:
        raise UnsupportedLayer(f"its activation '{name}' is not known; custom_objects may have it")
    return _ACTIVATIONS[name](x)


@builds("Activation")
def activation(layer: Layer, x: Tensor) -> Tensor:
    return layer.activation(x)


@builds("ReLU")
def relu(layer: Layer, x: Tensor) -> Tensor:
    slope, threshold = layer.number("negative_slope"), layer.number("threshold")
    most = layer.config.get("max_value")
    if threshold:
        above = casting.cast(x > threshold, x.dtype)
        y = x * above + slope * (x - threshold) * (1.0 - above) if slope else x * above
    elif slope:
        y = activations.leaky_relu(x, slope)
    elif most is not None and layer.number("max_value") == 6:
        return activations.relu6(x)
    else:
        y = activations.relu(x)
    return y if most is None else arithmetic.minimum(y, layer.number("max_value"))


@builds("LeakyReLU")
def leaky_relu(layer: Layer, x: Tensor) -> Tensor:
    return activations.leaky_relu(x, layer.number("alpha", "negative_slope", default=0.3))


@builds("ELU")
def elu(layer: Layer, x: Tensor) -> Tensor:
    alpha = layer.number("alpha", default=1.0)
    y = activations.elu(x)
    return y if alpha == 1 else activations.relu(x) - activations.relu(-alpha * y)


@builds("PReLU")
def prelu(layer: Layer, x: Tensor) -> Tensor:
    return activations.relu(x) - layer.weight("alpha") * activations.relu(-x)


@builds("ThresholdedReLU")
def thresholded_relu(layer: Layer, x: Tensor) -> Tensor:
    return x * casting.cast(x > layer.number("theta", default=1.0), x.dtype)


@builds("Softmax")
def softmax_layer(layer: Layer, x: Tensor) -> Tensor:
    axis = layer.config.get("axis", -1)
    return softmax.softmax(x, axis=axis[0] if isinstance(axis, list) else axis)


# ---- layers that do nothing when a model is used ----------------------------------------------------------------------


@builds(
    "Dropout",
    "SpatialDropout1D",
    "SpatialDropout2D",
    "SpatialDropout3D",
    "GaussianNoise",
    "GaussianDropout",
    "AlphaDropout",
    "ActivityRegularization",
    "Identity",
)
def unchanged(layer: Layer, x: Tensor) -> Tensor:
    return shaping.identity(x)
