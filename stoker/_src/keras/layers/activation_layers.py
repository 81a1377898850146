"""Activations that are layers, with parameters or weights of their own."""

from __future__ import annotations

from typing import Any

from stoker._src.base.export import export
from stoker._src.base.shapes import TensorShape
from stoker._src.keras import activations
from stoker._src.keras.base import Layer
from stoker._src.keras.layers.arguments import resolved
from stoker._src.layers.base import InputSpec, dims
from stoker._src.ops.array import casting
from stoker._src.ops.math import comparison
from stoker._src.ops.nn import activations as nn_activations


class _Elementwise(Layer):
    def __init__(self, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.supports_masking = True

    def compute_output_shape(self, input_shape: Any) -> Any:
        return TensorShape(input_shape)


@export("keras.layers.LeakyReLU")
class LeakyReLU(_Elementwise):
    """x, and alpha * x below zero."""

    def __init__(self, alpha: float = 0.3, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.alpha = float(alpha)

    def call(self, inputs: Any) -> Any:
        return nn_activations.leaky_relu(inputs, self.alpha)


@export("keras.layers.PReLU")
class PReLU(_Elementwise):
    """x, and alpha * x below zero, where alpha is a weight for each position; along `shared_axes` one for all."""

    def __init__(
        self,
        alpha_initializer: Any = "zeros",
        alpha_regularizer: Any = None,
        alpha_constraint: Any = None,
        shared_axes: Any = None,
        **kwargs: Any,
    ) -> None:
        given = resolved(locals())
        super().__init__(**kwargs)
        self.alpha_initializer, self.alpha_regularizer = given["alpha_initializer"], given["alpha_regularizer"]
        self.alpha_constraint = given["alpha_constraint"]
        self.shared_axes = (
            None
            if shared_axes is None
            else list(shared_axes)
            if isinstance(shared_axes, (list, tuple))
            else [shared_axes]
        )
        self.alpha: Any = None

    def build(self, input_shape: Any) -> None:
        sizes = dims(input_shape)[1:]
        for axis in self.shared_axes or ():
            sizes[axis - 1] = 1
        self.alpha = self.add_weight(
            "alpha", sizes, None, self.alpha_initializer, self.alpha_regularizer, constraint=self.alpha_constraint
        )
        kept = {
            axis: dims(input_shape)[axis] for axis in range(1, len(sizes) + 1) if axis not in (self.shared_axes or ())
        }
        self.input_spec = InputSpec(ndim=len(sizes) + 1, axes=kept)
        self.built = True

    def call(self, inputs: Any) -> Any:
        return nn_activations.relu(inputs) + -self.alpha * nn_activations.relu(-inputs)


@export("keras.layers.ELU")
class ELU(_Elementwise):
    """x, and alpha * (exp(x) - 1) below zero."""

    def __init__(self, alpha: float = 1.0, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.alpha = float(alpha)

    def call(self, inputs: Any) -> Any:
        return activations.elu(inputs, self.alpha)


@export("keras.layers.ThresholdedReLU")
class ThresholdedReLU(_Elementwise):
    """x above theta, and 0 elsewhere."""

    def __init__(self, theta: float = 1.0, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.theta = float(theta)

    def call(self, inputs: Any) -> Any:
        return inputs * casting.cast(comparison.greater(inputs, self.theta), inputs.dtype.base_dtype)


@export("keras.layers.Softmax")
class Softmax(_Elementwise):
    """Softmax along `axis`."""

    def __init__(self, axis: int = -1, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.axis = axis

    def call(self, inputs: Any) -> Any:
        return activations.softmax(inputs, axis=self.axis)


@export("keras.layers.ReLU")
class ReLU(_Elementwise):
    """max(x, 0), with an upper bound, a slope below zero and a threshold.

    Raises:
        ValueError: `max_value` or `negative_slope` is negative.
    """

    def __init__(
        self, max_value: float | None = None, negative_slope: float = 0, threshold: float = 0, **kwargs: Any
    ) -> None:
        super().__init__(**kwargs)
        if max_value is not None and max_value < 0.0:
            raise ValueError(f"max_value of Relu layer cannot be negative value: {max_value}")
        if negative_slope < 0.0:
            raise ValueError(f"negative_slope of Relu layer cannot be negative value: {negative_slope}")
        self.max_value = None if max_value is None else float(max_value)
        self.negative_slope, self.threshold = float(negative_slope), float(threshold)

    def call(self, inputs: Any) -> Any:
        return activations.relu(inputs, self.negative_slope, self.max_value, self.threshold)
