"""Dense, Dropout and Flatten."""

from __future__ import annotations

import math as numbers
from typing import Any

import numpy as np

from stoker._src.base.export import export
from stoker._src.base.shapes import Shape, TensorShape, as_shape
from stoker._src.graph import context
from stoker._src.graph.scopes import name_scope
from stoker._src.graph.tensor import Tensor
from stoker._src.layers.base import (
    InputSpec,
    Layer,
    as_activation,
    as_public,
    called_once,
    checked_format,
    dims,
    smart_cond,
)
from stoker._src.ops.array import constants, joining, shaping
from stoker._src.ops.linalg import matrix_products
from stoker._src.ops.nn import bias
from stoker._src.ops.nn import dropout as nn_dropout
from stoker._src.ops.variables import initializers

ZEROS, ONES = initializers.Zeros(), initializers.Ones()


@export(v1="layers.Dense")
class Dense(Layer):
    """A dense layer: activation(inputs @ kernel + bias) over the last dimension. Variables: `kernel` [inputs, units], `bias` [units].

    Raises:
        ValueError: on a call, if the last size of the inputs is unknown.
    """

    def __init__(
        self,
        units: int,
        activation: Any = None,
        use_bias: bool = True,
        kernel_initializer: Any = None,
        bias_initializer: Any = ZEROS,
        kernel_regularizer: Any = None,
        bias_regularizer: Any = None,
        activity_regularizer: Any = None,
        kernel_constraint: Any = None,
        bias_constraint: Any = None,
        trainable: bool = True,
        name: str | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(trainable, name, activity_regularizer=activity_regularizer, **kwargs)
        self.units = units if isinstance(units, int) else int(units)
        if self.units < 0:
            raise ValueError(
                f"Received an invalid value for `units`, expected a positive integer. Received: units={units}"
            )
        self.activation, self.use_bias = as_activation(activation), use_bias
        self.kernel_initializer, self.bias_initializer = kernel_initializer, bias_initializer
        self.kernel_regularizer, self.bias_regularizer = kernel_regularizer, bias_regularizer
        self.kernel_constraint, self.bias_constraint = kernel_constraint, bias_constraint
        self.input_spec = InputSpec(min_ndim=2)
        self.kernel: Any = None
        self.bias: Any = None

    def build(self, input_shape: Any) -> None:
        kind = self._variable_dtype
        if not (kind.is_floating or kind.is_complex):
            raise TypeError(f"A Dense layer can only be built with a floating-point dtype. Received: dtype={kind!r}")
        shape = as_shape(input_shape)
        size = shape[-1] if shape.rank else None
        if size is None:
            raise ValueError(
                "The last dimension of the inputs to a Dense layer should be defined. Found None. Full input shape received: "
                f"{TensorShape(shape)}"
            )
        self.input_spec = InputSpec(min_ndim=2, axes={-1: size})
        self.kernel = self.add_weight(
            "kernel",
            [size, self.units],
            initializer=self.kernel_initializer,
            regularizer=self.kernel_regularizer,
            constraint=self.kernel_constraint,
        )
        if self.use_bias:
            self.bias = self.add_weight(
                "bias",
                [self.units],
                initializer=self.bias_initializer,
                regularizer=self.bias_regularizer,
                constraint=self.bias_constraint,
            )
        super().build(input_shape)

    def call(self, inputs: Any) -> Tensor:
        shape = inputs.static_shape
        outputs = matrix_products.matmul(inputs, self.kernel) if shape.rank == 2 else self._over_last_dimension(inputs)
        if self.use_bias:
            outputs = bias.bias_add(outputs, self.bias)
        return self.activation(outputs)

    def _over_last_dimension(self, inputs: Any) -> Tensor:
        shape: Shape = inputs.static_shape
        with name_scope("Tensordot") as scope:
            rows = shaping.reshape(inputs, [-1, shape[-1]])
            product = matrix_products.matmul(rows, self.kernel)
            if shape.known:
                sizes: Any = [*list(shape)[:-1], self.units]
            else:
                sizes = joining.concat([shaping.SHAPE_OP(inputs)[:-1], [self.units]], 0)
            outputs = shaping.reshape(product, sizes, name=scope)
        outputs.set_shape(Shape((*shape.dims[:-1], self.units)))  # type: ignore[index]
        return outputs

    def compute_output_shape(self, input_shape: Any) -> Any:
        sizes = dims(input_shape)
        if sizes[-1] is None:
            raise ValueError(
                "The last dimension of the input shape of a Dense layer should be defined. Found None. Received: "
                f"input_shape={as_public(sizes)}"
            )
        return as_public([*sizes[:-1], self.units])


@export(v1="layers.dense")
def dense(
    inputs: Any,
    units: int,
    activation: Any = None,
    use_bias: bool = True,
    kernel_initializer: Any = None,
    bias_initializer: Any = ZEROS,
    kernel_regularizer: Any = None,
    bias_regularizer: Any = None,
    activity_regularizer: Any = None,
    kernel_constraint: Any = None,
    bias_constraint: Any = None,
    trainable: bool = True,
    name: str | None = None,
    reuse: Any = None,
) -> Tensor:
    """Applies a new `Dense` layer: activation(inputs @ kernel + bias)."""
    return called_once(Dense, locals())


@export(v1="layers.Dropout")
class Dropout(Layer):
    """In training, sets inputs to 0 with probability `rate` and divides the others by 1 - rate. Otherwise returns them unchanged."""

    def __init__(
        self, rate: Any = 0.5, noise_shape: Any = None, seed: Any = None, name: str | None = None, **kwargs: Any
    ) -> None:
        super().__init__(name=name, **kwargs)
        if isinstance(rate, (int, float)) and not 0 <= rate <= 1:
            raise ValueError(f"Invalid value {rate} received for `rate`, expected a value between 0 and 1.")
        self.rate, self.noise_shape, self.seed = rate, noise_shape, seed

    def call(self, inputs: Any, training: Any = False) -> Tensor:
        if isinstance(self.rate, (int, float, np.number)) and self.rate == 0:
            return shaping.identity(inputs)

        def dropped() -> Tensor:
            return nn_dropout.dropout_v2(inputs, self.rate, self._decisions(inputs), self.seed)

        return smart_cond(training, dropped, lambda: shaping.identity(inputs))

    def _decisions(self, inputs: Any) -> Any:
        """`noise_shape` with None replaced by the sizes of the inputs."""
        if not isinstance(self.noise_shape, (list, tuple)):
            return self.noise_shape
        sizes = shaping.shape(inputs)
        return [sizes[i] if size is None else size for i, size in enumerate(self.noise_shape)]

    def compute_output_shape(self, input_shape: Any) -> Any:
        return as_public(dims(input_shape))


@export(v1="layers.dropout")
def dropout(
    inputs: Any,
    rate: Any = 0.5,
    noise_shape: Any = None,
    seed: Any = None,
    training: Any = False,
    name: str | None = None,
) -> Tensor:
    """Applies a new `Dropout` layer: in training, sets inputs to 0 with probability `rate`."""
    return Dropout(rate, noise_shape, seed, name).apply(inputs, training=training)


@export(v1="layers.Flatten")
class Flatten(Layer):
    """Flattens all dimensions except the first."""

    def __init__(self, data_format: str | None = None, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.data_format = checked_format(data_format)
        self.input_spec = InputSpec(min_ndim=1)

    def call(self, inputs: Any) -> Tensor:
        if self.data_format == "channels_first" and (inputs.static_shape.rank or 0) > 1:
            inputs = shaping.transpose(inputs, [0, *range(2, inputs.static_shape.rank), 1])
        sizes: list[Any] = list(inputs.static_shape) if inputs.static_shape.rank is not None else [None, None]
        if len(sizes) == 1:
            return shaping.expand_dims(inputs, 1)
        if None not in sizes[1:] and not context.executing_eagerly():
            return shaping.reshape(inputs, constants.constant([-1, numbers.prod(sizes[1:])]))
        if sizes[0] is not None:
            return shaping.reshape(inputs, constants.constant([sizes[0], -1]))
        outputs = shaping.reshape(inputs, [shaping.shape(inputs)[0], -1])
        outputs.set_shape(Shape((None, None)))
        return outputs

    def compute_output_shape(self, input_shape: Any) -> Any:
        sizes = dims(input_shape)
        return as_public([sizes[0], None if None in sizes[1:] else numbers.prod(sizes[1:])])


@export(v1="layers.flatten")
def flatten(inputs: Any, name: str | None = None, data_format: str = "channels_last") -> Tensor:
    """Flattens all dimensions except the first."""
    return Flatten(data_format=data_format, name=name).apply(inputs)
