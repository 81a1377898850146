"""Convolutional layers: plain, separable and transposed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from stoker._src.base.export import export, named
from stoker._src.base.shapes import Shape, TensorShape, as_shape
from stoker._src.graph.conversion import convert_to_tensor
from stoker._src.graph.tensor import Tensor
from stoker._src.layers.base import (
    InputSpec,
    Layer,
    as_activation,
    as_public,
    called_once,
    channels_axis,
    checked_count,
    checked_format,
    checked_padding,
    dims,
    output_length,
    spatial_tuple,
)
from stoker._src.layers.core import ZEROS
from stoker._src.ops.array import joining, pads, shaping
from stoker._src.ops.nn import bias, conv_api

_LAYOUTS = {1: ("NWC", "NCW"), 2: ("NHWC", "NCHW"), 3: ("NDHWC", "NCDHW")}


class _Convolution(Layer):
    """A convolution over `rank` spatial dimensions. Variables: `kernel` [*size, inputs, filters], `bias`."""

    rank: int

    def __init__(
        self,
        filters: int,
        kernel_size: Any,
        strides: Any = 1,
        padding: str = "valid",
        data_format: str = "channels_last",
        dilation_rate: Any = 1,
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
        self.filters: Any = checked_count(filters, "filters")
        self.kernel_size = spatial_tuple(kernel_size, self.rank, "kernel_size")
        self.strides = spatial_tuple(strides, self.rank, "strides")
        self.dilation_rate = spatial_tuple(dilation_rate, self.rank, "dilation_rate")
        self.padding = checked_padding(padding, ("valid", "same", "causal") if self.rank == 1 else ("valid", "same"))
        self.data_format = checked_format(data_format)
        self._channels = channels_axis(self.data_format, self.rank + 2)
        if max(self.strides) > 1 and max(self.dilation_rate) > 1:
            raise ValueError(
                f"`strides > 1` not supported in conjunction with `dilation_rate > 1`. Received: strides={self.strides} and dilation_rate={self.dilation_rate}"
            )
        self.activation, self.use_bias = as_activation(activation), use_bias
        self.kernel_initializer, self.bias_initializer = kernel_initializer, bias_initializer
        self.kernel_regularizer, self.bias_regularizer = kernel_regularizer, bias_regularizer
        self.kernel_constraint, self.bias_constraint = kernel_constraint, bias_constraint
        self.input_spec = self._spec()
        self.kernel: Any = None
        self.bias: Any = None

    @property
    def layout(self) -> str:
        return _LAYOUTS[self.rank][1 if self._channels == 1 else 0]

    def _spec(self, axes: dict[int, int] | None = None) -> InputSpec:
        """The input spec, with any number of batch dimensions."""
        return InputSpec(min_ndim=self.rank + 2, axes=axes)

    def _input_channels(self, input_shape: Any) -> int:
        shape = as_shape(input_shape)
        axis = self._channels - self.rank - 2
        count = None if shape.rank is None else shape[axis]
        if count is None:
            raise ValueError(
                f"The channel dimension of the inputs should be defined. The input_shape received is {TensorShape(shape)}, where "
                f"axis {self._channels} (0-based) is the channel dimension, which found to be `None`."
            )
        self.input_spec = self._spec({axis: count})
        return count

    def build(self, input_shape: Any) -> None:
        channels = self._input_channels(input_shape)
        self._check_windows(input_shape)
        self.kernel = self.add_weight(
            "kernel",
            self._kernel_shape(channels),
            initializer=self.kernel_initializer,
            regularizer=self.kernel_regularizer,
            constraint=self.kernel_constraint,
        )
        self._build_bias()
        super().build(input_shape)

    def _check_windows(self, input_shape: Any) -> None:
        """Raises ValueError if the input is smaller than the window."""
        if any(size is not None and size <= 0 for size in self._lengths(dims(input_shape))) and self.padding == "valid":
            raise ValueError(
                f"One of the dimensions in the output is <= 0 due to downsampling in {self.name}: the input of shape "
                f"{as_shape(input_shape)} is smaller than windows of {self.kernel_size}, dilated by {self.dilation_rate}."
            )

    def _build_bias(self) -> None:
        if self.use_bias:
            self.bias = self.add_weight(
                "bias",
                [self.filters],
                initializer=self.bias_initializer,
                regularizer=self.bias_regularizer,
                constraint=self.bias_constraint,
            )

    def _kernel_shape(self, channels: int) -> list[int]:
        return [*self.kernel_size, channels, self.filters]

    def _finished(self, outputs: Tensor) -> Tensor:
        """Applies bias and activation."""
        if self.use_bias:
            first = self._channels == 1
            name = "add" if first and self.rank == 1 else None  # TensorFlow adds a reshaped bias here
            outputs = bias.bias_add(outputs, self.bias, "NCHW" if first else "NHWC", name)
        return self.activation(outputs)

    def call(self, inputs: Any) -> Tensor:
        inputs = convert_to_tensor(inputs)
        shape = inputs.static_shape
        batches = None if shape.rank is None else shape.rank - self.rank - 1
        if batches is None or batches == 1:
            return self._finished(self._convolved(inputs))
        sizes = shaping.shape(inputs)
        folded = shaping.reshape(inputs, joining.concat([[-1], sizes[batches:]], 0))
        folded.set_shape([None, *shape[batches:]])
        outputs = self._finished(self._convolved(folded))
        result = shaping.reshape(outputs, joining.concat([sizes[:batches], shaping.shape(outputs)[1:]], 0))
        result.set_shape([*shape[:batches], *outputs.static_shape[1:]])
        return result

    def _convolved(self, inputs: Any) -> Tensor:
        padding = self.padding
        if padding == "causal":
            inputs, padding = self._padded_before(inputs), "valid"
        return conv_api.convolution(
            inputs,
            self.kernel,
            padding.upper(),
            self.strides,
            self.dilation_rate,
            f"Conv{self.rank}D",
            self.layout,
        )

    def _padded_before(self, inputs: Any) -> Tensor:
        """Pads with zeros at the front, so that no output depends on later inputs."""
        before = [self.dilation_rate[0] * (self.kernel_size[0] - 1), 0]
        paddings = [[0, 0], [0, 0], before] if self._channels == 1 else [[0, 0], before, [0, 0]]
        return pads.pad(inputs, paddings)

    def compute_output_shape(self, input_shape: Any) -> Any:
        sizes = dims(input_shape)
        batches = len(sizes) - self.rank - 1
        spatial = self._lengths(sizes)
        channels_first = self._channels == 1
        return as_public(sizes[:batches] + ([self.filters, *spatial] if channels_first else [*spatial, self.filters]))

    def _lengths(self, sizes: list[Any]) -> list[Any]:
        """The spatial sizes of the output."""
        spatial = sizes[-self.rank :] if self._channels == 1 else sizes[-self.rank - 1 : -1]
        return [
            output_length(size, window, self.padding, stride, dilation)
            for size, window, stride, dilation in zip(spatial, self.kernel_size, self.strides, self.dilation_rate)
        ]


@export(v1="layers.Conv1D")
class Conv1D(_Convolution):
    """A 1-D convolution layer for sequences."""

    rank = 1


@export(v1="layers.Conv2D")
class Conv2D(_Convolution):
    """A 2-D convolution layer for images."""

    rank = 2


@export(v1="layers.Conv3D")
class Conv3D(_Convolution):
    """A 3-D convolution layer for volumes."""

    rank = 3


def _convolution(layer: type[Layer], name: str, ones: Any) -> Callable[..., Tensor]:
    """Makes `tf.layers.<name>`, which creates a convolution layer and calls it once."""

    @export(v1=f"layers.{name}")
    @named(name, f"{str(layer.__doc__)[:-1]}: a `{layer.__name__}` layer, called once.")
    def convolve(
        inputs: Any,
        filters: int,
        kernel_size: Any,
        strides: Any = ones,
        padding: str = "valid",
        data_format: str = "channels_last",
        dilation_rate: Any = ones,
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
        return called_once(layer, locals())

    return convolve


conv1d = _convolution(Conv1D, "conv1d", 1)
conv2d = _convolution(Conv2D, "conv2d", (1, 1))
conv3d = _convolution(Conv3D, "conv3d", (1, 1, 1))


# -- separable ---------------------------------------------------------------------------------------------------


class _Separable(_Convolution):
    """A depthwise convolution followed by a pointwise one. Variables: `depthwise_kernel`, `pointwise_kernel`, `bias`."""

    def __init__(
        self,
        filters: int,
        kernel_size: Any,
        strides: Any = 1,
        padding: str = "valid",
        data_format: str = "channels_last",
        dilation_rate: Any = 1,
        depth_multiplier: int = 1,
        activation: Any = None,
        use_bias: bool = True,
        depthwise_initializer: Any = None,
        pointwise_initializer: Any = None,
        bias_initializer: Any = ZEROS,
        depthwise_regularizer: Any = None,
        pointwise_regularizer: Any = None,
        bias_regularizer: Any = None,
        activity_regularizer: Any = None,
        depthwise_constraint: Any = None,
        pointwise_constraint: Any = None,
        bias_constraint: Any = None,
        trainable: bool = True,
        name: str | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(
            filters,
            kernel_size,
            strides,
            padding,
            data_format,
            dilation_rate,
            activation,
            use_bias,
            bias_initializer=bias_initializer,
            bias_regularizer=bias_regularizer,
            activity_regularizer=activity_regularizer,
            bias_constraint=bias_constraint,
            trainable=trainable,
            name=name,
            **kwargs,
        )
        self.depth_multiplier = depth_multiplier
        self.depthwise_initializer, self.pointwise_initializer = depthwise_initializer, pointwise_initializer
        self.depthwise_regularizer, self.pointwise_regularizer = depthwise_regularizer, pointwise_regularizer
        self.depthwise_constraint, self.pointwise_constraint = depthwise_constraint, pointwise_constraint
        self.depthwise_kernel: Any = None
        self.pointwise_kernel: Any = None

    def build(self, input_shape: Any) -> None:
        channels = self._input_channels(input_shape)
        self.depthwise_kernel = self.add_weight(
            "depthwise_kernel",
            [*self.kernel_size, channels, self.depth_multiplier],
            initializer=self.depthwise_initializer,
            regularizer=self.depthwise_regularizer,
            constraint=self.depthwise_constraint,
        )
        self.pointwise_kernel = self.add_weight(
            "pointwise_kernel",
            [*[1] * self.rank, self.depth_multiplier * channels, self.filters],
            initializer=self.pointwise_initializer,
            regularizer=self.pointwise_regularizer,
            constraint=self.pointwise_constraint,
        )
        self._build_bias()
        self.built = True

    def _separable(self, inputs: Any, depthwise: Any, pointwise: Any, strides: Any, rates: Any) -> Tensor:
        first = self._channels == 1
        return conv_api.separable_conv2d(
            inputs,
            depthwise,
            pointwise,
            [1, 1, *strides] if first else [1, *strides, 1],
            "VALID" if self.padding == "causal" else self.padding.upper(),
            rates,
            data_format="NCHW" if first else "NHWC",
        )


@export(v1="layers.SeparableConv1D")
class SeparableConv1D(_Separable):
    """A separable convolution layer for sequences."""

    rank = 1

    def call(self, inputs: Any) -> Tensor:
        if self.padding == "causal":
            inputs = self._padded_before(inputs)
        extra = 2 if self._channels == 1 else 1
        outputs = self._separable(
            shaping.expand_dims(inputs, extra),
            shaping.expand_dims(self.depthwise_kernel, 0),
            shaping.expand_dims(self.pointwise_kernel, 0),
            self.strides * 2,
            (1, *self.dilation_rate),
        )
        if self.use_bias:
            outputs = bias.bias_add(outputs, self.bias, "NCHW" if self._channels == 1 else "NHWC")
        outputs = shaping.squeeze(outputs, [extra])
        return self.activation(outputs)


@export(v1="layers.SeparableConv2D")
class SeparableConv2D(_Separable):
    """A separable convolution layer for images."""

    rank = 2

    def call(self, inputs: Any) -> Tensor:
        return self._finished(
            self._separable(inputs, self.depthwise_kernel, self.pointwise_kernel, self.strides, self.dilation_rate)
        )


def _separable(layer: type[Layer], name: str, ones: Any) -> Callable[..., Tensor]:
    """Makes `tf.layers.<name>`, which creates a separable convolution layer and calls it once."""

    @export(v1=f"layers.{name}")
    @named(name, f"{str(layer.__doc__)[:-1]}: a `{layer.__name__}` layer, called once.")
    def convolve(
        inputs: Any,
        filters: int,
        kernel_size: Any,
        strides: Any = ones,
        padding: str = "valid",
        data_format: str = "channels_last",
        dilation_rate: Any = ones,
        depth_multiplier: int = 1,
        activation: Any = None,
        use_bias: bool = True,
        depthwise_initializer: Any = None,
        pointwise_initializer: Any = None,
        bias_initializer: Any = ZEROS,
        depthwise_regularizer: Any = None,
        pointwise_regularizer: Any = None,
        bias_regularizer: Any = None,
        activity_regularizer: Any = None,
        depthwise_constraint: Any = None,
        pointwise_constraint: Any = None,
        bias_constraint: Any = None,
        trainable: bool = True,
        name: str | None = None,
        reuse: Any = None,
    ) -> Tensor:
        return called_once(layer, locals())

    return convolve


separable_conv1d = _separable(SeparableConv1D, "separable_conv1d", 1)
separable_conv2d = _separable(SeparableConv2D, "separable_conv2d", (1, 1))


# -- transposed --------------------------------------------------------------------------------------------------


class _Transposed(_Convolution):
    """The transpose (gradient) of a convolution. Variables: `kernel` [*size, filters, inputs], `bias`."""

    def __init__(
        self,
        filters: int,
        kernel_size: Any,
        strides: Any = 1,
        padding: str = "valid",
        data_format: str = "channels_last",
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
        super().__init__(
            filters,
            kernel_size,
            strides,
            padding,
            data_format,
            1,
            activation,
            use_bias,
            kernel_initializer,
            bias_initializer,
            kernel_regularizer,
            bias_regularizer,
            activity_regularizer,
            kernel_constraint,
            bias_constraint,
            trainable,
            name,
            **kwargs,
        )

    def _spec(self, axes: dict[int, int] | None = None) -> InputSpec:
        """The input spec, with one batch dimension."""
        return InputSpec(ndim=self.rank + 2, axes=axes)

    def _check_windows(self, input_shape: Any) -> None:
        """Does nothing, because the output is larger than the input."""

    def _kernel_shape(self, channels: int) -> list[int]:
        return [*self.kernel_size, self.filters, channels]

    def _grown(self, size: Any, i: int) -> Any:
        """The output size of spatial dimension i: a number, or a tensor if the size is a tensor."""
        longer = size * self.strides[i]
        if self.padding == "valid" and self.kernel_size[i] > self.strides[i]:
            longer = longer + (self.kernel_size[i] - self.strides[i])
        return longer

    def call(self, inputs: Any) -> Tensor:
        first = 2 if self._channels == 1 else 1
        known = list(inputs.static_shape)
        sizes = shaping.shape(inputs)
        spatial = [
            self._grown(sizes[first + i] if known[first + i] is None else known[first + i], i) for i in range(self.rank)
        ]
        batch = sizes[0]
        whole = [batch, self.filters, *spatial] if first == 2 else [batch, *spatial, self.filters]
        functions = (conv_api.conv1d_transpose, conv_api.conv2d_transpose, conv_api.conv3d_transpose)
        outputs = functions[self.rank - 1](
            inputs,
            self.kernel,
            whole if self.rank == 1 else joining.stack(whole),
            [1, 1, *self.strides] if first == 2 else [1, *self.strides, 1],
            self.padding.upper(),
            self.layout,
        )
        outputs.set_shape(Shape(dims(self.compute_output_shape(inputs.shape))))
        return self._finished(outputs)

    def compute_output_shape(self, input_shape: Any) -> Any:
        sizes = dims(input_shape)
        first = 2 if self._channels == 1 else 1
        for i in range(self.rank):
            size = sizes[first + i]
            sizes[first + i] = None if size is None else self._grown(size, i)
        sizes[self._channels] = self.filters
        return as_public(sizes)


class Conv1DTranspose(_Transposed):
    """A transposed 1-D convolution layer for sequences, which only Keras has."""

    rank = 1


@export(v1="layers.Conv2DTranspose")
class Conv2DTranspose(_Transposed):
    """A transposed 2-D convolution layer for images."""

    rank = 2


@export(v1="layers.Conv3DTranspose")
class Conv3DTranspose(_Transposed):
    """A transposed 3-D convolution layer for volumes."""

    rank = 3


def _transposed(layer: type[Layer], name: str, ones: Any) -> Callable[..., Tensor]:
    """Makes `tf.layers.<name>`, which creates a transposed convolution layer and calls it once."""

    @export(v1=f"layers.{name}")
    @named(name, f"{str(layer.__doc__)[:-1]}: a `{layer.__name__}` layer, called once.")
    def convolve(
        inputs: Any,
        filters: int,
        kernel_size: Any,
        strides: Any = ones,
        padding: str = "valid",
        data_format: str = "channels_last",
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
        return called_once(layer, locals())

    return convolve


conv2d_transpose = _transposed(Conv2DTranspose, "conv2d_transpose", (1, 1))
conv3d_transpose = _transposed(Conv3DTranspose, "conv3d_transpose", (1, 1, 1))
