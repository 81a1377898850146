"""The computation of a layer: that of the layer in `tf.keras`, with the weights of the file, unless TFLite has a form of its own for it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

import numpy as np

from stoker._src.base.errors import OpError
from stoker._src.formats.keras_files import is_model
from stoker._src.graph import context
from stoker._src.graph.scopes import name_scope
from stoker._src.graph.tensor import Operation, Tensor
from stoker._src.keras import configurations
from stoker._src.keras.base import Layer as KerasLayer
from stoker._src.keras.base import takes
from stoker._src.keras.layers.attention import MultiHeadAttention
from stoker._src.lite.keras.calls import Call, flat
from stoker._src.ops.array import constants, shaping
from stoker._src.ops.variables.creators import variable_creator_scope


class UnsupportedLayer(Exception):
    """A layer or one of its settings is not supported. The message says why."""


class ModelBuilder(Protocol):
    """The parts of a network that layers need."""

    updates: list[Operation]
    """Operations that run in every call, such as updates of states."""
    masks: dict[Tensor, Tensor]
    """The masks of tensors that have one."""
    made: dict[int, KerasLayer]
    """The layers of `tf.keras`, by the identity of their settings in the file."""

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
        """A weight of a recurrent layer. Archives number them."""
        last = {path.rpartition("/")[2]: value for path, value in reversed(self.arrays.items())}
        if name in last:
            return last[name]
        numbered = [value for path, value in self.arrays.items() if path.rpartition("/")[2].isdigit()]
        position = ("kernel", "recurrent_kernel", "bias").index(name)
        if position < len(numbered):
            return numbered[position]
        raise UnsupportedLayer(f"the file has no weight '{name}' for it, only {sorted(self.arrays)}")

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
        found = configurations.activation(self.config.get(name), self.version, self.functions)
        return x if found is None else found(x)

    @property
    def is_keras_3(self) -> bool:
        return self.version.startswith("3")


def _has_part(path: str, marker: str) -> bool:
    return any(part.startswith(marker) for part in path.split("/"))


Build = Callable[[Layer, Any], Any]
LAYERS: dict[str, Build] = {}
"""Layers that have a form of their own here."""


def builds(*names: str) -> Callable[[Build], Build]:
    """Registers a function for layers of these classes. It takes the layer and its input, or a list of inputs, and returns its output."""

    def attach(function: Build) -> Build:
        for name in names:
            assert name not in LAYERS, name
            LAYERS[name] = function
        return function

    return attach


def knows(class_name: str) -> bool:
    return class_name in LAYERS or configurations.class_of(class_name) is not None


def apply(layer: Layer, value: Any) -> tuple[Any, Any]:
    """The output of a layer, and its mask as `tf.keras` tells it.

    Raises:
      UnsupportedLayer: The layer, a setting or a weight is not supported.
    """
    try:
        if layer.class_name in LAYERS:
            with name_scope(layer.name):
                return LAYERS[layer.class_name](layer, value), None
        return _applied(layer)
    except (ValueError, TypeError, NotImplementedError, OpError) as error:
        raise UnsupportedLayer(str(error).rstrip(".")) from error


def static(x: Tensor, axis: int) -> int:
    """A size, which must be known."""
    size = x.static_shape[axis]
    if size is None:
        raise UnsupportedLayer(f"its input has the shape {x.shape}, and size {axis} must be known")
    return size


# ---- layers of tf.keras -------------------------------------------------------------------------------------------------


def _applied(layer: Layer) -> tuple[Any, Any]:
    """Calls the layer of `tf.keras`: once made, it is called again where the model calls it again."""
    assert layer.models is not None
    made = layer.models.made.get(id(layer.config))
    if made is None:
        made = configurations.layer_of(layer.class_name, layer.config, layer.version, layer.functions)
        layer.models.made[id(layer.config)] = made
    known = layer.models.masks
    kwargs = {key: value for key, value in layer.call.kwargs.items() if takes(made.call, key)}
    first = layer.call.args[0] if layer.call.args else None
    masks = [known.get(each) for each in flat(first)] if isinstance(first, list) else known.get(first)
    if isinstance(made, MultiHeadAttention):
        given = dict(zip(("query", "value", "key"), flat(layer.call.args)))
        given |= {name: value for name, value in kwargs.items() if name in ("query", "value", "key")}
        for name, tensor in given.items():
            if kwargs.get(f"{name}_mask") is None and tensor in known:
                kwargs[f"{name}_mask"] = known[tensor]
        args = [*given.values()]
        kwargs = {name: value for name, value in kwargs.items() if name not in given}
        masks = known.get(given["query"])
    else:
        args = layer.call.args
        if takes(made.call, "mask") and kwargs.get("mask") is None and any(each is not None for each in flat(masks)):
            kwargs["mask"] = masks
    if takes(made.call, "training"):
        kwargs["training"] = False
    with weights_of(layer.arrays):
        outputs = made(*args, **kwargs)
    return outputs, _mask(made, first, outputs, masks)


def _mask(made: KerasLayer, inputs: Any, outputs: Any, masks: Any) -> Any:
    """The mask of the outputs. Masks travel beside tensors here, because versions of Keras differ in what they make of them."""
    found = None
    for each in flat(outputs):
        found = getattr(each, "_keras_mask", None) if found is None else found
        if hasattr(each, "_keras_mask"):
            del each._keras_mask
    if found is None and made.supports_masking and any(each is not None for each in flat(masks)):
        return made.compute_mask(inputs, masks)
    return found


@contextmanager
def weights_of(arrays: dict[str, np.ndarray]) -> Iterator[None]:
    """Variables that are created inside begin with the arrays of a file.

    HDF5 files name weights, archives number them in the order of creation; those of a layer inside the layer have its name, or that of the
    attribute that holds it, in their path.
    """
    left = dict(arrays)

    def create(next_creator: Callable[..., Any], **kwargs: Any) -> Any:
        name = str(kwargs["name"])
        parts = (context.get_default_graph().get_name_scope() or "").split("/")
        inner = parts[-1].removeprefix("attention_")
        owners = {parts[-1], f"{inner}_dense", f"_{inner}_dense"}
        near = [path for path in left if owners & set(path.split("/")[:-1])] or list(left)
        last = {path: path.rpartition("/")[2] for path in reversed(near)}
        # Keras 3 calls the kernel of a depthwise convolution simply "kernel".
        names = (name, "kernel") if name == "depthwise_kernel" and "pointwise_kernel" not in last.values() else (name,)
        named = [path for each in names for path in near if last[path] == each]
        numbered = [path for path in near if last[path].isdigit() and "seed_generator" not in path]
        if not named and not numbered:
            raise UnsupportedLayer(f"the file has no weight '{name}' for it, only {sorted(arrays)}")
        value = left.pop((named or numbered)[0])
        shape = tuple(kwargs["shape"].as_list())
        if value.shape != shape:
            raise UnsupportedLayer(
                f"its weight '{name}' has the shape {value.shape} in the file, and should have {shape}"
            )
        return next_creator(**{**kwargs, "initial_value": value.astype(kwargs["dtype"].as_numpy_dtype)})

    with variable_creator_scope(create):
        yield


# ---- layers that a converted model does not need, and a layer around layers -----------------------------------------------


@builds(
    "RandomFlip",
    "RandomRotation",
    "RandomTranslation",
    "RandomZoom",
    "RandomContrast",
    "RandomBrightness",
)
def random_image(layer: Layer, x: Tensor) -> Tensor:
    """Nothing is random when a model is used."""
    return shaping.identity(x)


@builds("TimeDistributed")
def time_distributed(layer: Layer, x: Tensor) -> Tensor:
    inner = layer.config["layer"]
    kind = inner["class_name"]
    if not knows(kind) and not is_model(inner):
        raise UnsupportedLayer(f"it applies a layer of the class {kind}")
    steps = static(x, 1)
    sizes = [static(x, axis) for axis in range(2, x.static_shape.rank or 0)]
    each = shaping.reshape(x, [-1, *sizes])
    if is_model(inner):
        assert layer.models is not None
        y = layer.models.inner_model(inner, layer.arrays, each)
    else:
        y, _ = apply(replace(layer.part(kind, inner["config"]), call=Call([each]), masks=[]), each)
    made = [static(y, axis) for axis in range(1, y.static_shape.rank or 0)]
    return shaping.reshape(y, [-1, steps, *made])
