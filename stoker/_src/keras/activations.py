"""`tf.keras.activations`."""

from __future__ import annotations

from typing import Any

from stoker._src.base.export import export, export_constant
from stoker._src.keras.serialization import class_name
from stoker._src.keras.serialization import deserialize as _deserialize
from stoker._src.layers import base as layers
from stoker._src.ops.array import casting, selection
from stoker._src.ops.math import arithmetic, unary_functions
from stoker._src.ops.nn import activations
from stoker._src.ops.nn import softmax as nn_softmax

linear = layers.linear
export_constant(layers.__name__, "linear", "keras.activations.linear")


@export("keras.activations.relu")
def relu(x: Any, alpha: float = 0.0, max_value: float | None = None, threshold: float = 0.0) -> Any:
    """max(x, 0); below `threshold` alpha * (x - threshold), and at most `max_value`."""
    if not threshold:
        if not alpha and max_value == 6:
            return activations.relu6(x)
        y = activations.leaky_relu(x, alpha) if alpha else activations.relu(x)
        return y if max_value is None else arithmetic.minimum(y, float(max_value))
    above = x * casting.cast(x > threshold, x.dtype.base_dtype)
    if max_value is not None:
        above = arithmetic.minimum(arithmetic.maximum(above, 0.0), float(max_value))
    return above - alpha * activations.relu(-x + threshold) if alpha else above


@export("keras.activations.elu")
def elu(x: Any, alpha: float = 1.0) -> Any:
    """x, and alpha * (exp(x) - 1) below zero."""
    plain = activations.elu(x)
    return plain if alpha == 1 else selection.where(x > 0, plain, alpha * plain)


@export("keras.activations.softmax")
def softmax(x: Any, axis: int = -1) -> Any:
    """Softmax along `axis`.

    Raises:
        ValueError: the tensor has one dimension.
    """
    if x.static_shape.rank == 1:
        raise ValueError(f"Cannot apply softmax to a tensor that is 1D. Received input: {x}")
    return nn_softmax.softmax(x, axis=axis)


@export("keras.activations.hard_sigmoid")
def hard_sigmoid(x: Any) -> Any:
    """0.2 * x + 0.5, between 0 and 1."""
    return arithmetic.minimum(arithmetic.maximum(0.2 * x + 0.5, 0.0), 1.0)


@export("keras.activations.sigmoid")
def sigmoid(x: Any) -> Any:
    """1 / (1 + exp(-x))."""
    return unary_functions.sigmoid(x)


@export("keras.activations.tanh")
def tanh(x: Any) -> Any:
    """The hyperbolic tangent."""
    return unary_functions.tanh(x)


@export("keras.activations.exponential")
def exponential(x: Any) -> Any:
    """exp(x)."""
    return unary_functions.exp(x)


@export("keras.activations.selu")
def selu(x: Any) -> Any:
    """The scaled exponential linear unit."""
    return activations.selu(x)


@export("keras.activations.softplus")
def softplus(x: Any) -> Any:
    """log(1 + exp(x))."""
    return activations.softplus(x)


@export("keras.activations.softsign")
def softsign(x: Any) -> Any:
    """x / (1 + |x|)."""
    return activations.softsign(x)


@export("keras.activations.swish")
def swish(x: Any) -> Any:
    """x * sigmoid(x)."""
    return x * unary_functions.sigmoid(x)


@export(v2="keras.activations.gelu")
def gelu(x: Any, approximate: bool = False) -> Any:
    """x times the probability that a normal number is below x, or an approximation of it by tanh."""
    return activations.gelu(x, approximate=approximate)


@export(v2="keras.activations.mish")
def mish(x: Any) -> Any:
    """x * tanh(softplus(x))."""
    return x * unary_functions.tanh(activations.softplus(x))


@export("keras.activations.serialize")
def serialize(activation: Any) -> Any:
    """The name of an activation."""
    if hasattr(activation, "get_config"):
        return {"class_name": class_name(activation), "config": activation.get_config()}
    name = getattr(activation, "__name__", None)
    return "softmax" if name == "softmax_v2" else name


@export("keras.activations.deserialize")
def deserialize(name: Any, custom_objects: Any = None) -> Any:
    """The activation of a name."""
    return _deserialize(name, "activations", custom_objects)


@export("keras.activations.get")
def get(identifier: Any) -> Any:
    """An activation from a function or a name; the identity for None.

    Raises:
        TypeError: it cannot be interpreted.
    """
    if identifier is None:
        return linear
    if isinstance(identifier, (str, dict)):
        return deserialize(identifier)
    if callable(identifier):
        return identifier
    raise TypeError(f"Could not interpret activation function identifier: {identifier}")
