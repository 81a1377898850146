"""Activations of Keras 3 that `tf.keras` of TensorFlow 1.x and 2.x has no name for. Files name them, and graphs of `keras.ops` call them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from stoker._src.keras import activations
from stoker._src.ops.array import joining, selection
from stoker._src.ops.math import arithmetic, unary_functions
from stoker._src.ops.nn import activations as nn_activations
from stoker._src.ops.nn import softmax


def hard_sigmoid(x: Any) -> Any:
    """x / 6 + 0.5, between 0 and 1. (Before Keras 3 the slope was 0.2.)"""
    return arithmetic.minimum(arithmetic.maximum(x * (1 / 6) + 0.5, 0.0), 1.0)


def hard_silu(x: Any) -> Any:
    """x * relu6(x + 3) / 6, also called hard swish."""
    return x * nn_activations.relu6(x + 3.0) * (1 / 6)


def hard_tanh(x: Any) -> Any:
    """x between -1 and 1."""
    return arithmetic.minimum(arithmetic.maximum(x, -1.0), 1.0)


def hard_shrink(x: Any, threshold: float = 0.5) -> Any:
    """x, and 0 from -threshold to threshold."""
    return selection.where_v2(unary_functions.abs(x) > threshold, x, 0.0)


def soft_shrink(x: Any, threshold: float = 0.5) -> Any:
    """x moved by the threshold towards 0, at most to 0."""
    return nn_activations.relu(x - threshold) - nn_activations.relu(-x - threshold)


def tanh_shrink(x: Any) -> Any:
    """x - tanh(x)."""
    return x - unary_functions.tanh(x)


def celu(x: Any, alpha: float = 1.0) -> Any:
    """max(x, 0) + min(alpha * (exp(x / alpha) - 1), 0)."""
    return nn_activations.relu(x) + alpha * nn_activations.elu(arithmetic.minimum(x, 0.0) / alpha)


def glu(x: Any, axis: int = -1) -> Any:
    """The first half of x times the sigmoid of the second half."""
    value, gate = joining.split(x, 2, axis=axis)
    return value * unary_functions.sigmoid(gate)


def log_sigmoid(x: Any) -> Any:
    """log(1 / (1 + exp(-x)))."""
    return -nn_activations.softplus(-x)


def squareplus(x: Any, b: float = 4.0) -> Any:
    """(x + sqrt(x ** 2 + b)) / 2."""
    return (x + unary_functions.sqrt(unary_functions.square(x) + b)) * 0.5


def sparse_plus(x: Any) -> Any:
    """0 up to -1, (x + 1) ** 2 / 4 up to 1, and then x."""
    middle = unary_functions.square(hard_tanh(x) + 1.0) * 0.25
    return middle + nn_activations.relu(x - 1.0)


def sparse_sigmoid(x: Any) -> Any:
    """(x + 1) / 2, between 0 and 1."""
    return (hard_tanh(x) + 1.0) * 0.5


NEWER: dict[str, Callable[..., Any]] = {
    "celu": celu,
    "gelu": activations.gelu,
    "glu": glu,
    "hard_shrink": hard_shrink,
    "hard_silu": hard_silu,
    "hard_swish": hard_silu,
    "hard_tanh": hard_tanh,
    "leaky_relu": nn_activations.leaky_relu,
    "log_sigmoid": log_sigmoid,
    "log_softmax": softmax.log_softmax,
    "mish": activations.mish,
    "relu6": nn_activations.relu6,
    "silu": nn_activations.swish,
    "soft_shrink": soft_shrink,
    "sparse_plus": sparse_plus,
    "sparse_sigmoid": sparse_sigmoid,
    "squareplus": squareplus,
    "swish": nn_activations.swish,
    "tanh_shrink": tanh_shrink,
}
