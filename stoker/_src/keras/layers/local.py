"""Convolutions with weights of their own at each position."""

from __future__ import annotations

from typing import Any

import numpy as np

from stoker._src.base.export import export
from stoker._src.base.shapes import TensorShape
from stoker._src.keras.base import Layer
from stoker._src.keras.layers.arguments import resolved
from stoker._src.layers.base import InputSpec, checked_format, checked_padding, dims, output_length, spatial_tuple
from stoker._src.ops.array import joining, shaping
from stoker._src.ops.linalg import matrix_products


class _LocallyConnected(Layer):
    """The base. Weights: `kernel` [positions, size of a window, filters], `bias` [*positions, filters]."""

    rank: int

    def __init__(
        self,
        filters: int,
        kernel_size: Any,
        strides: Any = 1,
        padding: str = "valid",
        data_format: str | None = None,
        activation: Any = None,
        use_bias: bool = True,
        kernel_initializer: Any = "glorot_uniform",
        bias_initializer: Any = "zeros",
        kernel_regularizer: Any = None,
        bias_regularizer: Any = None,
        activity_regularizer: Any = None,
        kernel_constraint: Any = None,
        bias_constraint: Any = None,
        implementation: int = 1,
        **kwargs: Any,
    ) -> None:
        given = resolved(locals())
        super().__init__(activity_regularizer=activity_regularizer, **kwargs)
        self.filters, self.use_bias, self.activation = filters, use_bias, given["activation"]
        self.kernel_size = spatial_tuple(kernel_size, self.rank, "kernel_size")
        self.strides = spatial_tuple(strides, self.rank, "strides")
        self.padding, self.data_format = checked_padding(padding), checked_format(given["data_format"])
        if self.padding != "valid" and implementation == 1:
            raise ValueError(
                f'Invalid border mode for {type(self).__name__} (only "valid" is supported if implementation is 1): {padding}'
            )
        if implementation != 1 or self.data_format == "channels_first":
            raise NotImplementedError(
                f"{type(self).__name__} with implementation={implementation} and data_format={self.data_format!r}."
            )
        self.implementation = implementation
        self.kernel_initializer, self.bias_initializer = given["kernel_initializer"], given["bias_initializer"]
        self.kernel_regularizer, self.bias_regularizer = given["kernel_regularizer"], given["bias_regularizer"]
        self.kernel_constraint, self.bias_constraint = given["kernel_constraint"], given["bias_constraint"]
        self.input_spec = InputSpec(ndim=self.rank + 2)
        self.kernel: Any = None
        self.bias: Any = None

    def _positions(self, input_shape: Any) -> list[Any]:
        sizes = dims(input_shape)[1:-1]
        triples = zip(sizes, self.kernel_size, self.strides)
        return [output_length(size, window, "valid", step) for size, window, step in triples]

    def build(self, input_shape: Any) -> None:
        positions = self._positions(input_shape)
        if None in positions:
            raise ValueError(
                f"The spatial dimensions of the inputs to {type(self).__name__} should be fully-defined, but layer received the inputs shape {TensorShape(input_shape)}"
            )
        window = int(np.prod(self.kernel_size)) * dims(input_shape)[-1]
        self.kernel = self.add_weight(
            "kernel",
            [int(np.prod(positions)), window, self.filters],
            None,
            self.kernel_initializer,
            self.kernel_regularizer,
            constraint=self.kernel_constraint,
        )
        if self.use_bias:
            self.bias = self.add_weight(
                "bias",
                [*positions, self.filters],
                None,
                self.bias_initializer,
                self.bias_regularizer,
                constraint=self.bias_constraint,
            )
        self.built = True

    def call(self, inputs: Any) -> Any:
        """The windows side by side, and a product for each."""
        positions = self._positions(inputs.shape)
        windows = []
        for place in np.ndindex(*positions):
            starts = [n * step for n, step in zip(place, self.strides)]
            spans = [slice(start, start + size) for start, size in zip(starts, self.kernel_size)]
            windows.append(shaping.reshape(inputs[(slice(None), *spans)], [-1, self.kernel.shape.as_list()[1]]))
        y = matrix_products.matmul(joining.stack(windows), self.kernel)
        y = shaping.reshape(shaping.transpose(y, [1, 0, 2]), [-1, *positions, self.filters])
        return self.activation(y if self.bias is None else y + self.bias)

    def compute_output_shape(self, input_shape: Any) -> Any:
        return TensorShape([dims(input_shape)[0], *self._positions(input_shape), self.filters])


@export("keras.layers.LocallyConnected1D")
class LocallyConnected1D(_LocallyConnected):
    """A convolution over sequences whose weights differ at each position."""

    rank = 1


@export("keras.layers.LocallyConnected2D")
class LocallyConnected2D(_LocallyConnected):
    """A convolution over images whose weights differ at each position."""

    rank = 2
