"""Normalization of batches, examples, groups of channels and vectors."""

from __future__ import annotations

from typing import Any

from stoker._src.base.export import export
from stoker._src.base.shapes import TensorShape
from stoker._src.keras.base import Layer
from stoker._src.keras.layers.arguments import resolved
from stoker._src.keras.learning_phase import resolved as training_flag
from stoker._src.layers import normalization
from stoker._src.layers.base import dims
from stoker._src.ops.array import shaping
from stoker._src.ops.math import arithmetic, reductions, unary_functions
from stoker._src.ops.nn import moments


@export("keras.layers.BatchNormalization")
class BatchNormalization(normalization.BatchNormalization, Layer):
    """Normalizes by the mean and variance of the batch in training, and by their moving averages otherwise (Ioffe and Szegedy, 2015)."""

    def __init__(
        self,
        axis: Any = -1,
        momentum: float = 0.99,
        epsilon: float = 1e-3,
        center: bool = True,
        scale: bool = True,
        beta_initializer: Any = "zeros",
        gamma_initializer: Any = "ones",
        moving_mean_initializer: Any = "zeros",
        moving_variance_initializer: Any = "ones",
        beta_regularizer: Any = None,
        gamma_regularizer: Any = None,
        beta_constraint: Any = None,
        gamma_constraint: Any = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(**resolved(locals()))
        self.supports_masking = True

    def call(self, inputs: Any, training: Any = None) -> Any:
        return super().call(inputs, training_flag(training))

    def compute_output_shape(self, input_shape: Any) -> Any:
        return TensorShape(input_shape)


def _standardized(x: Any, axes: list[int], epsilon: float) -> Any:
    """x with mean 0 and variance 1 over `axes`."""
    mean, variance = moments.moments(x, axes, keep_dims=True)
    return (x - mean) * unary_functions.rsqrt(variance + epsilon)


@export("keras.layers.LayerNormalization")
class LayerNormalization(Layer):
    """Normalizes each example by its own mean and variance over `axis` (Ba, Kiros and Hinton, 2016)."""

    def __init__(
        self,
        axis: Any = -1,
        epsilon: float = 1e-3,
        center: bool = True,
        scale: bool = True,
        beta_initializer: Any = "zeros",
        gamma_initializer: Any = "ones",
        beta_regularizer: Any = None,
        gamma_regularizer: Any = None,
        beta_constraint: Any = None,
        gamma_constraint: Any = None,
        **kwargs: Any,
    ) -> None:
        given = resolved(locals())
        super().__init__(**kwargs)
        self.axis = list(axis) if isinstance(axis, (list, tuple)) else axis
        self.epsilon, self.center, self.scale = epsilon, center, scale
        self.beta_initializer, self.gamma_initializer = given["beta_initializer"], given["gamma_initializer"]
        self.beta_regularizer, self.gamma_regularizer = given["beta_regularizer"], given["gamma_regularizer"]
        self.beta_constraint, self.gamma_constraint = given["beta_constraint"], given["gamma_constraint"]
        self.supports_masking = True
        self.gamma: Any = None
        self.beta: Any = None

    def _axes(self, rank: int) -> list[int]:
        axes = self.axis if isinstance(self.axis, list) else [self.axis]
        if any(not -rank <= each < rank for each in axes):
            raise ValueError(f"Invalid axis: {axes} for inputs with {rank} dimensions")
        return sorted(each % rank for each in axes)

    def build(self, input_shape: Any) -> None:
        sizes = dims(input_shape)
        shape = [sizes[axis] for axis in self._axes(len(sizes))]
        if self.scale:
            self.gamma = self.add_weight(
                "gamma", shape, None, self.gamma_initializer, self.gamma_regularizer, constraint=self.gamma_constraint
            )
        if self.center:
            self.beta = self.add_weight(
                "beta", shape, None, self.beta_initializer, self.beta_regularizer, constraint=self.beta_constraint
            )
        self.built = True

    def call(self, inputs: Any) -> Any:
        rank = inputs.static_shape.rank
        axes = self._axes(rank)
        outputs = _standardized(inputs, axes, self.epsilon)
        along = [inputs.static_shape[i] if i in axes else 1 for i in range(rank)]
        beta, gamma = (
            each if each is None or axes == [rank - 1] else shaping.reshape(each, along)
            for each in (self.beta, self.gamma)
        )
        outputs = outputs if gamma is None else outputs * gamma
        outputs = outputs if beta is None else outputs + beta
        outputs.set_shape(inputs.shape)
        return outputs

    def compute_output_shape(self, input_shape: Any) -> Any:
        return TensorShape(input_shape)


@export("keras.layers.GroupNormalization")
class GroupNormalization(Layer):
    """Normalizes groups of channels of each example (Wu and He, 2018). With `groups=-1` each channel is a group.

    Raises:
        ValueError: on the first call, if the channels cannot be divided into that many groups.
        NotImplementedError: the channels are not the last dimension.
    """

    def __init__(
        self,
        groups: int = 32,
        axis: int = -1,
        epsilon: float = 1e-3,
        center: bool = True,
        scale: bool = True,
        beta_initializer: Any = "zeros",
        gamma_initializer: Any = "ones",
        beta_regularizer: Any = None,
        gamma_regularizer: Any = None,
        beta_constraint: Any = None,
        gamma_constraint: Any = None,
        **kwargs: Any,
    ) -> None:
        given = resolved(locals())
        super().__init__(**kwargs)
        self.groups, self.axis, self.epsilon, self.center, self.scale = groups, axis, epsilon, center, scale
        for name in ("beta", "gamma"):
            for kind in ("initializer", "regularizer", "constraint"):
                setattr(self, f"{name}_{kind}", given[f"{name}_{kind}"])
        self._given = given
        self.supports_masking = True
        self.gamma: Any = None
        self.beta: Any = None

    def build(self, input_shape: Any) -> None:
        sizes = dims(input_shape)
        if self.axis % len(sizes) != len(sizes) - 1:
            raise NotImplementedError(f"Groups along dimension {self.axis} of {len(sizes)}; channels must come last.")
        channels, groups = sizes[-1], self.groups
        if channels is None:
            raise ValueError(f"Axis {self.axis} of the input of {self.name} should have a defined dimension.")
        if groups != -1 and (channels < groups or channels % groups):
            raise ValueError(f"Number of groups ({groups}) must divide the number of channels ({channels}).")
        for name, wanted in (("gamma", self.scale), ("beta", self.center)):
            if wanted:
                initializer, regularizer, constraint = (
                    self._given[f"{name}_{kind}"] for kind in ("initializer", "regularizer", "constraint")
                )
                setattr(self, name, self.add_weight(name, [channels], None, initializer, regularizer, None, constraint))
        self.built = True

    def call(self, inputs: Any) -> Any:
        rank = inputs.static_shape.rank
        known = list(inputs.static_shape)[1:]
        sizes = shaping.shape(inputs)
        spatial = [sizes[i + 1] if size is None else size for i, size in enumerate(known[:-1])]
        channels = known[-1]
        groups = channels if self.groups == -1 else self.groups
        parts = shaping.reshape(inputs, [-1, *spatial, groups, channels // groups])
        outputs = _standardized(parts, [*range(1, rank - 1), rank], self.epsilon)
        outputs = shaping.reshape(outputs, [-1, *spatial, channels])
        outputs = outputs if self.gamma is None else outputs * self.gamma
        outputs = outputs if self.beta is None else outputs + self.beta
        outputs.set_shape(inputs.shape)
        return outputs

    def compute_output_shape(self, input_shape: Any) -> Any:
        return TensorShape(input_shape)


@export("keras.layers.UnitNormalization")
class UnitNormalization(Layer):
    """Vectors along `axis` of length 1."""

    def __init__(self, axis: Any = -1, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.axis = list(axis) if isinstance(axis, (list, tuple)) else axis
        self.supports_masking = True

    def call(self, inputs: Any) -> Any:
        square = reductions.reduce_sum(inputs * inputs, axis=self.axis, keepdims=True)
        return inputs * unary_functions.rsqrt(arithmetic.maximum(square, 1e-12))


@export(v2="keras.layers.RMSNormalization")
class RMSNormalization(Layer):
    """Divides by the root mean square along `axis` and multiplies by weights (Zhang and Sennrich, 2019)."""

    def __init__(self, axis: Any = -1, epsilon: float = 1e-6, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.axis, self.epsilon = axis, epsilon
        self.scale: Any = None

    def build(self, input_shape: Any) -> None:
        axes = self.axis if isinstance(self.axis, (list, tuple)) else [self.axis]
        sizes = dims(input_shape)
        self.scale = self.add_weight("scale", [sizes[each] for each in axes], None, "ones")
        self.built = True

    def call(self, inputs: Any) -> Any:
        square = reductions.reduce_mean(inputs * inputs, axis=self.axis, keepdims=True)
        return inputs * unary_functions.rsqrt(square + self.epsilon) * self.scale
