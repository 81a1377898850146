"""Convolutions."""

from __future__ import annotations

from typing import Any

from stoker._src.base.export import export
from stoker._src.base.shapes import TensorShape
from stoker._src.keras.base import Layer
from stoker._src.keras.layers.arguments import resolved
from stoker._src.layers import convolutional
from stoker._src.layers.base import InputSpec, checked_format, checked_padding, dims, output_length, spatial_tuple
from stoker._src.ops.array import pads, shaping
from stoker._src.ops.nn import bias as nn_bias
from stoker._src.ops.nn import conv_api


class _Arguments:
    """The arguments of plain convolutions. `groups` of 2.x: the channels are divided, and each filter sees a part of them."""

    _more_arguments = ("groups",)

    def __init__(
        self,
        filters: int,
        kernel_size: Any,
        strides: Any = 1,
        padding: str = "valid",
        data_format: str | None = None,
        dilation_rate: Any = 1,
        activation: Any = None,
        use_bias: bool = True,
        kernel_initializer: Any = "glorot_uniform",
        bias_initializer: Any = "zeros",
        kernel_regularizer: Any = None,
        bias_regularizer: Any = None,
        activity_regularizer: Any = None,
        kernel_constraint: Any = None,
        bias_constraint: Any = None,
        **kwargs: Any,
    ) -> None:
        self.groups = kwargs.pop("groups", 1)
        super().__init__(**resolved(locals()))

    def _kernel_shape(self, channels: int) -> list[int]:
        own: Any = self
        if channels % self.groups or own.filters % self.groups:
            raise ValueError(
                f"The {channels} input channels and {own.filters} filters of {own.name} cannot be divided into {self.groups} groups."
            )
        return super()._kernel_shape(channels // self.groups)  # type: ignore[misc]

    def get_config(self) -> dict[str, Any]:
        config = super().get_config()  # type: ignore[misc]
        return config if self.groups == 1 else {**config, "groups": self.groups}


@export("keras.layers.Conv1D", "keras.layers.Convolution1D")
class Conv1D(_Arguments, convolutional.Conv1D, Layer):
    """A convolution over sequences. The padding may be "causal": then no output depends on later inputs."""


@export("keras.layers.Conv2D", "keras.layers.Convolution2D")
class Conv2D(_Arguments, convolutional.Conv2D, Layer):
    """A convolution over images."""


@export("keras.layers.Conv3D", "keras.layers.Convolution3D")
class Conv3D(_Arguments, convolutional.Conv3D, Layer):
    """A convolution over volumes."""


class _TransposedArguments:
    """The arguments of transposed convolutions."""

    def __init__(
        self,
        filters: int,
        kernel_size: Any,
        strides: Any = 1,
        padding: str = "valid",
        output_padding: Any = None,
        data_format: str | None = None,
        dilation_rate: Any = 1,
        activation: Any = None,
        use_bias: bool = True,
        kernel_initializer: Any = "glorot_uniform",
        bias_initializer: Any = "zeros",
        kernel_regularizer: Any = None,
        bias_regularizer: Any = None,
        activity_regularizer: Any = None,
        kernel_constraint: Any = None,
        bias_constraint: Any = None,
        **kwargs: Any,
    ) -> None:
        given = resolved(locals())
        del given["output_padding"], given["dilation_rate"]
        super().__init__(**given)
        rank: int = self.rank  # type: ignore[attr-defined]
        self.output_padding = (
            None if output_padding is None else spatial_tuple(output_padding, rank, "output_padding", allow_zero=True)
        )
        if any(each != 1 for each in spatial_tuple(dilation_rate, rank, "dilation_rate")):
            raise NotImplementedError("Transposed convolutions with a dilation rate other than 1.")
        self.dilation_rate = spatial_tuple(1, rank, "dilation_rate")
        for stride, extra in zip(self.strides, self.output_padding or ()):  # type: ignore[attr-defined]
            if stride <= extra:
                raise ValueError(f"Stride {self.strides} must be greater than output padding {self.output_padding}")  # type: ignore[attr-defined]

    def _grown(self, size: Any, i: int) -> Any:
        if self.output_padding is None:
            return super()._grown(size, i)  # type: ignore[misc]
        window, stride = self.kernel_size[i], self.strides[i]  # type: ignore[attr-defined]
        around = window // 2 if self.padding == "same" else 0  # type: ignore[attr-defined]
        return (size - 1) * stride + window - 2 * around + self.output_padding[i]


@export("keras.layers.Conv2DTranspose", "keras.layers.Convolution2DTranspose")
class Conv2DTranspose(_TransposedArguments, convolutional.Conv2DTranspose, Layer):
    """The transpose (gradient) of a convolution over images."""


@export("keras.layers.Conv3DTranspose", "keras.layers.Convolution3DTranspose")
class Conv3DTranspose(_TransposedArguments, convolutional.Conv3DTranspose, Layer):
    """The transpose (gradient) of a convolution over volumes."""


@export("keras.layers.Conv1DTranspose", "keras.layers.Convolution1DTranspose")
class Conv1DTranspose(_TransposedArguments, convolutional.Conv1DTranspose, Layer):
    """The transpose (gradient) of a convolution over sequences."""


class _SeparableArguments:
    """The arguments of separable convolutions."""

    def __init__(
        self,
        filters: int,
        kernel_size: Any,
        strides: Any = 1,
        padding: str = "valid",
        data_format: str | None = None,
        dilation_rate: Any = 1,
        depth_multiplier: int = 1,
        activation: Any = None,
        use_bias: bool = True,
        depthwise_initializer: Any = "glorot_uniform",
        pointwise_initializer: Any = "glorot_uniform",
        bias_initializer: Any = "zeros",
        depthwise_regularizer: Any = None,
        pointwise_regularizer: Any = None,
        bias_regularizer: Any = None,
        activity_regularizer: Any = None,
        depthwise_constraint: Any = None,
        pointwise_constraint: Any = None,
        bias_constraint: Any = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(**resolved(locals()))


@export("keras.layers.SeparableConv1D", "keras.layers.SeparableConvolution1D")
class SeparableConv1D(_SeparableArguments, convolutional.SeparableConv1D, Layer):
    """A depthwise convolution over sequences followed by a pointwise one."""


@export("keras.layers.SeparableConv2D", "keras.layers.SeparableConvolution2D")
class SeparableConv2D(_SeparableArguments, convolutional.SeparableConv2D, Layer):
    """A depthwise convolution over images followed by a pointwise one."""


@export("keras.layers.DepthwiseConv2D")
class DepthwiseConv2D(Layer):
    """A convolution that filters each channel on its own. Weights: `depthwise_kernel` [height, width, channels, multiplier], `bias`."""

    def __init__(
        self,
        kernel_size: Any,
        strides: Any = 1,
        padding: str = "valid",
        depth_multiplier: int = 1,
        data_format: str | None = None,
        activation: Any = None,
        use_bias: bool = True,
        depthwise_initializer: Any = "glorot_uniform",
        bias_initializer: Any = "zeros",
        depthwise_regularizer: Any = None,
        bias_regularizer: Any = None,
        activity_regularizer: Any = None,
        depthwise_constraint: Any = None,
        bias_constraint: Any = None,
        dilation_rate: Any = 1,
        **kwargs: Any,
    ) -> None:
        given = resolved(locals())
        super().__init__(activity_regularizer=activity_regularizer, **kwargs)
        self.kernel_size = spatial_tuple(kernel_size, 2, "kernel_size")
        self.strides, self.dilation_rate = (
            spatial_tuple(strides, 2, "strides"),
            spatial_tuple(dilation_rate, 2, "dilation_rate"),
        )
        self.padding, self.data_format = checked_padding(padding), checked_format(given["data_format"])
        self.depth_multiplier, self.activation, self.use_bias = depth_multiplier, given["activation"], use_bias
        self.depthwise_initializer, self.bias_initializer = given["depthwise_initializer"], given["bias_initializer"]
        self.depthwise_regularizer, self.bias_regularizer = given["depthwise_regularizer"], given["bias_regularizer"]
        self.depthwise_constraint, self.bias_constraint = given["depthwise_constraint"], given["bias_constraint"]
        self.input_spec = InputSpec(ndim=4)
        self.depthwise_kernel: Any = None
        self.bias: Any = None

    @property
    def _channels(self) -> int:
        return 1 if self.data_format == "channels_first" else 3

    def _kernel_shape(self, channels: int) -> tuple[int, ...]:
        return (*self.kernel_size, channels, self.depth_multiplier)

    def _kernel(self) -> Any:
        """The kernel over images."""
        return self.depthwise_kernel

    def build(self, input_shape: Any) -> None:
        channels = dims(input_shape)[self._channels]
        if channels is None:
            raise ValueError(
                "The channel dimension of the inputs to `DepthwiseConv2D` should be defined. Found `None`."
            )
        self.depthwise_kernel = self.add_weight(
            "depthwise_kernel",
            self._kernel_shape(channels),
            initializer=self.depthwise_initializer,
            regularizer=self.depthwise_regularizer,
            constraint=self.depthwise_constraint,
        )
        if self.use_bias:
            self.bias = self.add_weight(
                "bias",
                (channels * self.depth_multiplier,),
                initializer=self.bias_initializer,
                regularizer=self.bias_regularizer,
                constraint=self.bias_constraint,
            )
        self.input_spec = InputSpec(ndim=4, axes={self._channels: channels})
        self.built = True

    def call(self, inputs: Any) -> Any:
        first = self._channels == 1
        layout = "NCHW" if first else "NHWC"
        strides = [1, 1, *self.strides] if first else [1, *self.strides, 1]
        outputs = conv_api.depthwise_conv2d(
            inputs, self._kernel(), strides, self.padding.upper(), rate=self.dilation_rate, data_format=layout
        )
        if self.use_bias:
            outputs = nn_bias.bias_add(outputs, self.bias, data_format=layout)
        return self.activation(outputs)

    def compute_output_shape(self, input_shape: Any) -> Any:
        sizes = dims(input_shape)
        first = 2 if self._channels == 1 else 1
        for i in range(2):
            sizes[first + i] = output_length(
                sizes[first + i], self.kernel_size[i], self.padding, self.strides[i], self.dilation_rate[i]
            )
        sizes[self._channels] *= self.depth_multiplier
        return TensorShape(sizes)


@export("keras.layers.DepthwiseConv1D")
class DepthwiseConv1D(DepthwiseConv2D):
    """A convolution over sequences that filters each channel on its own: that over images of one row.

    Weights: `depthwise_kernel` [width, channels, multiplier], `bias`.
    """

    def __init__(self, kernel_size: Any, strides: Any = 1, padding: str = "valid", **kwargs: Any) -> None:
        (size,), (step,) = spatial_tuple(kernel_size, 1, "kernel_size"), spatial_tuple(strides, 1, "strides")
        (rate,) = spatial_tuple(kwargs.pop("dilation_rate", 1), 1, "dilation_rate")
        causal = padding == "causal"
        # TensorFlow strides both dimensions alike; there is one row.
        super().__init__((1, size), (step, step), "valid" if causal else padding, dilation_rate=(1, rate), **kwargs)
        self.causal = causal
        if self.data_format == "channels_first":
            raise NotImplementedError("DepthwiseConv1D with channels first.")
        self.input_spec = InputSpec(ndim=3)

    def _kernel_shape(self, channels: int) -> tuple[int, ...]:
        return (self.kernel_size[1], channels, self.depth_multiplier)

    def build(self, input_shape: Any) -> None:
        batch, time, channels = dims(input_shape)
        super().build(TensorShape([batch, 1, time, channels]))
        self.input_spec = InputSpec(ndim=3, axes={-1: channels})

    def _kernel(self) -> Any:
        return shaping.expand_dims(self.depthwise_kernel, 0)

    def call(self, inputs: Any) -> Any:
        if self.causal:
            before = self.dilation_rate[1] * (self.kernel_size[1] - 1)
            inputs = pads.pad(inputs, [[0, 0], [before, 0], [0, 0]])
        return shaping.squeeze(super().call(shaping.expand_dims(inputs, 1)), [1])

    def compute_output_shape(self, input_shape: Any) -> Any:
        batch, time, channels = dims(input_shape)
        if self.causal and time is not None:
            time += self.dilation_rate[1] * (self.kernel_size[1] - 1)
        inner = dims(super().compute_output_shape([batch, 1, time, channels]))
        return TensorShape([inner[0], *inner[2:]])

    def get_config(self) -> dict[str, Any]:
        config = super().get_config()
        config.update({name: getattr(self, name)[1:] for name in ("kernel_size", "strides", "dilation_rate")})
        return {**config, "padding": "causal" if self.causal else self.padding}
