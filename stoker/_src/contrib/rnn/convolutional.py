"""LSTM cells whose products are convolutions (Shi et al., 2015)."""

from __future__ import annotations

from typing import Any

from stoker._src.base.export import export
from stoker._src.base.shapes import TensorShape
from stoker._src.contrib.rnn.linear import width
from stoker._src.layers.rnn_cells import LSTMStateTuple, RNNCell
from stoker._src.ops.array import joining
from stoker._src.ops.math import unary_functions
from stoker._src.ops.nn import conv_api
from stoker._src.ops.variables import initializers as initial
from stoker._src.ops.variables import variable_scope


@export(v1="contrib.rnn.ConvLSTMCell")
class ConvLSTMCell(RNNCell):
    """An LSTM on images: i, j, f, o = kernel * [inputs, h] + biases, a convolution with padding SAME.

    Args:
        conv_ndims: the number of spatial dimensions, 1 to 3.
        input_shape: the shape of the inputs without the batch, channels last.
        output_channels: the number of channels of the state.
        kernel_shape: the spatial size of the kernel.
        use_bias: whether there are `biases`.
        skip_connection: whether the inputs are appended to the output, along its channels.
        forget_bias: added to the forget gate.
        initializers: has no effect, as in TensorFlow.
        name: the name of its scope.
    """

    def __init__(
        self,
        conv_ndims: int,
        input_shape: Any,
        output_channels: int,
        kernel_shape: Any,
        use_bias: bool = True,
        skip_connection: bool = False,
        forget_bias: float = 1.0,
        initializers: Any = None,
        name: str = "conv_lstm_cell",
    ) -> None:
        super().__init__(name=name)
        if conv_ndims != len(input_shape) - 1:
            raise ValueError(f"Invalid input_shape {input_shape} for conv_ndims={conv_ndims}.")
        self._input_shape, self._output_channels = list(input_shape), output_channels
        self._kernel_shape, self._use_bias = list(kernel_shape), use_bias
        self._skip_connection, self._forget_bias = skip_connection, forget_bias

    @property
    def state_size(self) -> Any:
        size = TensorShape([*self._input_shape[:-1], self._output_channels])
        return LSTMStateTuple(size, size)

    @property
    def output_size(self) -> Any:
        channels = self._output_channels + (self._input_shape[-1] if self._skip_connection else 0)
        return TensorShape([*self._input_shape[:-1], channels])

    def call(self, inputs: Any, state: Any, scope: Any = None) -> Any:
        c, h = state
        kind, sigmoid, tanh = inputs.dtype.base_dtype, unary_functions.sigmoid, unary_functions.tanh
        both = joining.concat([inputs, h], -1)
        channels = 4 * self._output_channels
        kernel = variable_scope.get_variable("kernel", [*self._kernel_shape, width(both), channels], dtype=kind)
        product = conv_api.convolution(both, kernel, padding="SAME")
        if self._use_bias:
            product = product + variable_scope.get_variable(
                "biases", [channels], dtype=kind, initializer=initial.Constant(0.0, dtype=kind)
            )
        i, j, f, o = joining.split(product, 4, -1)
        new_c = sigmoid(f + self._forget_bias) * c + sigmoid(i) * tanh(j)
        output = tanh(new_c) * sigmoid(o)
        if self._skip_connection:
            output = joining.concat([output, inputs], -1)
        return output, LSTMStateTuple(new_c, output)


@export(v1="contrib.rnn.Conv1DLSTMCell")
class Conv1DLSTMCell(ConvLSTMCell):
    """A `ConvLSTMCell` on sequences."""

    def __init__(self, name: str = "conv_1d_lstm_cell", **kwargs: Any) -> None:
        super().__init__(conv_ndims=1, name=name, **kwargs)


@export(v1="contrib.rnn.Conv2DLSTMCell")
class Conv2DLSTMCell(ConvLSTMCell):
    """A `ConvLSTMCell` on images."""

    def __init__(self, name: str = "conv_2d_lstm_cell", **kwargs: Any) -> None:
        super().__init__(conv_ndims=2, name=name, **kwargs)


@export(v1="contrib.rnn.Conv3DLSTMCell")
class Conv3DLSTMCell(ConvLSTMCell):
    """A `ConvLSTMCell` on volumes."""

    def __init__(self, name: str = "conv_3d_lstm_cell", **kwargs: Any) -> None:
        super().__init__(conv_ndims=3, name=name, **kwargs)
