"""Batch and layer normalization."""

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
        mean, variance = moments.moments(inputs, axes, keep_dims=True)
        along = [inputs.static_shape[i] if i in axes else 1 for i in range(rank)]
        spread = [
            each if each is None or axes == [rank - 1] else shaping.reshape(each, along)
            for each in (self.beta, self.gamma)
        ]
        outputs = moments.batch_normalization(inputs, mean, variance, *spread, variance_epsilon=self.epsilon)
        outputs.set_shape(inputs.shape)
        return outputs

    def compute_output_shape(self, input_shape: Any) -> Any:
        return TensorShape(input_shape)
