"""Recurrent layers whose cells convolve: `ConvLSTM2D`."""

from __future__ import annotations

from typing import Any

from stoker._src.base.export import export
from stoker._src.base.shapes import TensorShape
from stoker._src.keras.layers.cells import LSTMCell
from stoker._src.keras.layers.recurrent import _OneCell
from stoker._src.layers.base import checked_format, checked_padding, dims, output_length, spatial_tuple
from stoker._src.ops.array import joining, shaping
from stoker._src.ops.nn import bias as nn_bias
from stoker._src.ops.nn import conv_api


class ConvLSTM2DCell(LSTMCell):
    """Long short-term memory of images: the products of `LSTMCell` are convolutions (Shi et al., 2015)."""

    def __init__(
        self,
        filters: int,
        kernel_size: Any,
        strides: Any = (1, 1),
        padding: str = "valid",
        data_format: str | None = None,
        dilation_rate: Any = (1, 1),
        activation: Any = "tanh",
        recurrent_activation: Any = "hard_sigmoid",
        use_bias: bool = True,
        kernel_initializer: Any = "glorot_uniform",
        recurrent_initializer: Any = "orthogonal",
        bias_initializer: Any = "zeros",
        unit_forget_bias: bool = True,
        kernel_regularizer: Any = None,
        recurrent_regularizer: Any = None,
        bias_regularizer: Any = None,
        kernel_constraint: Any = None,
        recurrent_constraint: Any = None,
        bias_constraint: Any = None,
        dropout: float = 0.0,
        recurrent_dropout: float = 0.0,
        **kwargs: Any,
    ) -> None:
        given = {name: value for name, value in locals().items() if name not in ("self", "__class__", "kwargs")}
        own = ("filters", "kernel_size", "strides", "padding", "data_format", "dilation_rate")
        super().__init__(filters, **{name: value for name, value in given.items() if name not in own}, **kwargs)
        self.filters, self.kernel_size = filters, spatial_tuple(kernel_size, 2, "kernel_size")
        self.strides = spatial_tuple(strides, 2, "strides")
        self.dilation_rate = spatial_tuple(dilation_rate, 2, "dilation_rate")
        self.padding, self.data_format = checked_padding(padding), checked_format(data_format or "channels_last")

    @property
    def _first(self) -> bool:
        return self.data_format == "channels_first"

    def build(self, input_shape: Any) -> None:
        sizes = dims(input_shape)
        channels = sizes[1] if self._first else sizes[-1]
        spatial = sizes[2:] if self._first else sizes[1:3]
        if channels is None:
            raise ValueError("The channel dimension of the inputs should be defined. Found `None`.")
        rest = zip(spatial, self.kernel_size, self.strides, self.dilation_rate)
        made = [output_length(size, window, self.padding, step, rate) for size, window, step, rate in rest]
        shape = TensorShape([self.filters, *made] if self._first else [*made, self.filters])
        self.state_size, self.output_size = [shape, shape], shape
        self._add_weights(
            (*self.kernel_size, channels, 4 * self.filters), (*self.kernel_size, self.filters, 4 * self.filters)
        )

    def _convolved(self, x: Any, weights: Any, inner: bool) -> Any:
        steps, rates = ((1, 1), (1, 1)) if inner else (self.strides, self.dilation_rate)
        spread = [[1, 1, *each] if self._first else [1, *each, 1] for each in (steps, rates)]
        padding = "SAME" if inner else self.padding.upper()
        layout = "NCHW" if self._first else "NHWC"
        return conv_api.conv2d(x, weights, strides=spread[0], padding=padding, data_format=layout, dilations=spread[1])

    def _blocks(self, x: Any, weights: Any, masks: Any, inner: bool) -> list[Any]:
        """The convolution for each gate. With dropout, each gate has a mask of its own."""
        axis = 1 if self._first else 3
        if masks is None:
            return joining.split(self._convolved(x, weights, inner), 4, axis=axis)
        parts = joining.split(shaping.identity(weights), 4, axis=3)
        return [self._convolved(x * mask, part, inner) for mask, part in zip(masks, parts)]

    def call(self, inputs: Any, states: Any, training: Any = None) -> Any:
        h, c = states[0], states[1]
        of_inputs, of_states = self._current_masks(inputs, h, training)
        axis, layout = (1, "NCHW") if self._first else (3, "NHWC")
        if of_inputs is None and of_states is None:
            y = self._convolved(inputs, self.kernel, inner=False)
            y = y if self.bias is None else nn_bias.bias_add(y, self.bias, layout)
            gates = joining.split(y + self._convolved(h, self.recurrent_kernel, inner=True), 4, axis=axis)
        else:
            x = self._blocks(inputs, self.kernel, of_inputs, inner=False)
            if self.bias is not None:
                offsets = joining.split(shaping.identity(self.bias), 4)
                x = [nn_bias.bias_add(each, offset, layout) for each, offset in zip(x, offsets)]
            gates = [a + b for a, b in zip(x, self._blocks(h, self.recurrent_kernel, of_states, inner=True))]
        return self._step(gates, c)


@export("keras.layers.ConvLSTM2D")
class ConvLSTM2D(_OneCell):
    """Long short-term memory of sequences of images: [batch, time, height, width, channels]."""

    cell_class = ConvLSTM2DCell

    def __init__(self, filters: int, *args: Any, **kwargs: Any) -> None:
        super().__init__(filters, *args, **kwargs)
