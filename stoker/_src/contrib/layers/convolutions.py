"""Convolutions of `tf.contrib.layers`: plain, transposed, separable and within each channel."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from stoker._src.base.export import export, named
from stoker._src.contrib.framework.arg_scopes import add_arg_scope
from stoker._src.contrib.framework.variables import model_variable
from stoker._src.contrib.layers.common import (
    add_to_collections,
    both,
    channel_dimension,
    checked_layout,
    finished,
    get_variable_collections,
    layer_scope,
    two_element_tuple,
)
from stoker._src.graph import conversion
from stoker._src.layers import convolutional
from stoker._src.ops.array import joining
from stoker._src.ops.nn import activations, bias, conv_api
from stoker._src.ops.variables import initializers, regularizers, variable_scope

_RELU = activations.relu
_XAVIER = regularizers.xavier_initializer()
_ZEROS = initializers.Zeros()
_PLAIN = {1: convolutional.Conv1D, 2: convolutional.Conv2D, 3: convolutional.Conv3D}
_TRANSPOSED = {2: convolutional.Conv2DTranspose, 3: convolutional.Conv3DTranspose}


def _called(layer: Any, inputs: Any, scope: Any, arguments: dict[str, Any], **more: Any) -> Any:
    """Calls a layer of tf.layers that is made from the arguments of a function of contrib."""
    made = layer(
        filters=arguments["num_outputs"],
        kernel_size=arguments["kernel_size"],
        strides=arguments["stride"],
        padding=arguments["padding"],
        use_bias=not arguments["normalizer_fn"] and bool(arguments["biases_initializer"]),
        bias_initializer=arguments["biases_initializer"],
        bias_regularizer=arguments["biases_regularizer"],
        trainable=arguments["trainable"],
        name=scope.name,
        dtype=inputs.dtype.base_dtype,
        _scope=scope,
        _reuse=arguments["reuse"],
        **more,
    )
    outputs = made.apply(inputs)
    collections = arguments["variables_collections"]
    for kind, attribute in (("weights", "kernel"), ("weights", "depthwise_kernel"), ("weights", "pointwise_kernel"), ("biases", "bias")):  # fmt: skip
        if getattr(made, attribute, None) is not None:
            add_to_collections(getattr(made, attribute), collections, kind)
    return outputs


def _convolved(default: str, layer: Any, inputs: Any, arguments: dict[str, Any], **more: Any) -> Any:
    with layer_scope(arguments["scope"], default, inputs, arguments["reuse"]) as scope:
        outputs = _called(
            layer,
            inputs,
            scope,
            arguments,
            kernel_initializer=arguments["weights_initializer"],
            kernel_regularizer=arguments["weights_regularizer"],
            **more,
        )
        return finished(
            outputs,
            scope.name,
            arguments["activation_fn"],
            arguments["outputs_collections"],
            arguments["normalizer_fn"],
            arguments["normalizer_params"],
        )


@export(v1=both("convolution"))
@add_arg_scope
def convolution(
    inputs: Any,
    num_outputs: int,
    kernel_size: Any,
    stride: Any = 1,
    padding: str = "SAME",
    data_format: str | None = None,
    rate: Any = 1,
    activation_fn: Any = _RELU,
    normalizer_fn: Any = None,
    normalizer_params: dict[str, Any] | None = None,
    weights_initializer: Any = _XAVIER,
    weights_regularizer: Any = None,
    biases_initializer: Any = _ZEROS,
    biases_regularizer: Any = None,
    reuse: Any = None,
    variables_collections: Any = None,
    outputs_collections: Any = None,
    trainable: bool = True,
    scope: Any = None,
    conv_dims: int | None = None,
) -> Any:
    """A convolution over one, two or three spatial dimensions, with bias or normalizer, and activation.

    Args:
        inputs: a tensor of rank 3, 4 or 5.
        num_outputs: the number of filters.
        kernel_size: the size of the window.
        stride: the steps of the window. Only one of `stride` and `rate` may be above 1.
        padding: "SAME" or "VALID".
        data_format: "NWC", "NHWC", "NDHWC" (by default), or with channels first "NCW", "NCHW", "NCDHW".
        rate: the dilation of the window.
        activation_fn: a function of the result; None for none.
        normalizer_fn: a function instead of the bias, such as `batch_norm`.
        normalizer_params: its arguments.
        weights_initializer, biases_initializer: initializers; None of the biases for no bias.
        weights_regularizer, biases_regularizer: regularizers.
        reuse: whether the variables of the scope are used again.
        variables_collections: collections of the variables, or a dictionary of those of "weights" and "biases".
        outputs_collections: collections of the result.
        trainable: whether the variables are trained.
        scope: the variable scope.
        conv_dims: the number of spatial dimensions that the input must have.

    Raises:
        ValueError: the data format, the padding, the rank or the combination of strides and rates is not valid.
    """
    if data_format not in (None, "NWC", "NCW", "NHWC", "NCHW", "NDHWC", "NCDHW"):
        raise ValueError(f"Invalid data_format: {data_format!r}")
    arguments = dict(locals())
    inputs = conversion.convert_to_tensor(inputs)
    rank = inputs.get_shape().ndims
    if conv_dims is not None and conv_dims + 2 != rank:
        raise ValueError(f"Convolution expects input with rank {conv_dims + 2}, got {rank}")
    if rank not in (3, 4, 5):
        raise ValueError("Convolution not supported for input with rank", rank)
    layout = "channels_first" if data_format and data_format.startswith("NC") else "channels_last"
    return _convolved("Conv", _PLAIN[rank - 2], inputs, arguments, data_format=layout, dilation_rate=rate)


def _of_rank(dims: int) -> Callable[..., Any]:
    @export(v1=both(f"conv{dims}d", f"convolution{dims}d"))
    @add_arg_scope
    @named(
        f"convolution{dims}d",
        f"A convolution over {dims} spatial dimensions. The arguments are those of `convolution`.",
    )
    def convolve(
        inputs: Any,
        num_outputs: int,
        kernel_size: Any,
        stride: Any = 1,
        padding: str = "SAME",
        data_format: str | None = None,
        rate: Any = 1,
        activation_fn: Any = _RELU,
        normalizer_fn: Any = None,
        normalizer_params: dict[str, Any] | None = None,
        weights_initializer: Any = _XAVIER,
        weights_regularizer: Any = None,
        biases_initializer: Any = _ZEROS,
        biases_regularizer: Any = None,
        reuse: Any = None,
        variables_collections: Any = None,
        outputs_collections: Any = None,
        trainable: bool = True,
        scope: Any = None,
    ) -> Any:
        arguments = {name: value for name, value in locals().items() if name != "dims"}
        return convolution(**arguments, conv_dims=dims)

    return convolve


convolution1d, convolution2d, convolution3d = (_of_rank(dims) for dims in (1, 2, 3))


def _transposed(dims: int, layouts: tuple[str, str]) -> Callable[..., Any]:
    @export(v1=both(f"conv{dims}d_transpose", f"convolution{dims}d_transpose"))
    @add_arg_scope
    @named(
        f"convolution{dims}d_transpose",
        f"The transpose of a convolution over {dims} spatial dimensions. The arguments are those of `convolution`.",
    )
    def convolve(
        inputs: Any,
        num_outputs: int,
        kernel_size: Any,
        stride: Any = 1,
        padding: str = "SAME",
        data_format: str = layouts[1],
        activation_fn: Any = _RELU,
        normalizer_fn: Any = None,
        normalizer_params: dict[str, Any] | None = None,
        weights_initializer: Any = _XAVIER,
        weights_regularizer: Any = None,
        biases_initializer: Any = _ZEROS,
        biases_regularizer: Any = None,
        reuse: Any = None,
        variables_collections: Any = None,
        outputs_collections: Any = None,
        trainable: bool = True,
        scope: Any = None,
    ) -> Any:
        arguments = dict(locals())
        layout = checked_layout(data_format, layouts)
        inputs = conversion.convert_to_tensor(inputs)
        return _convolved(f"Conv{dims}d_transpose", _TRANSPOSED[dims], inputs, arguments, data_format=layout)

    return convolve


convolution2d_transpose = _transposed(2, ("NCHW", "NHWC"))
convolution3d_transpose = _transposed(3, ("NCDHW", "NDHWC"))


@export(v1=both("separable_conv2d", "separable_convolution2d"))
@add_arg_scope
def separable_convolution2d(
    inputs: Any,
    num_outputs: int | None,
    kernel_size: Any,
    depth_multiplier: int = 1,
    stride: Any = 1,
    padding: str = "SAME",
    data_format: str = "NHWC",
    rate: Any = 1,
    activation_fn: Any = _RELU,
    normalizer_fn: Any = None,
    normalizer_params: dict[str, Any] | None = None,
    weights_initializer: Any = _XAVIER,
    pointwise_initializer: Any = None,
    weights_regularizer: Any = None,
    biases_initializer: Any = _ZEROS,
    biases_regularizer: Any = None,
    reuse: Any = None,
    variables_collections: Any = None,
    outputs_collections: Any = None,
    trainable: bool = True,
    scope: Any = None,
) -> Any:
    """A convolution of each channel with `depth_multiplier` filters, then a 1x1 convolution of the results.

    Args:
        num_outputs: the number of filters of the second convolution; None to leave it out.
        pointwise_initializer: the initializer of the second convolution; None for that of the first.
        others: those of `convolution`.
    """
    arguments = dict(locals())
    layout = checked_layout(data_format)
    inputs = conversion.convert_to_tensor(inputs)
    with layer_scope(scope, "SeparableConv2d", inputs, reuse) as opened:
        if num_outputs is not None:
            outputs = _called(
                convolutional.SeparableConv2D,
                inputs,
                opened,
                arguments,
                data_format=layout,
                dilation_rate=two_element_tuple(rate),
                depth_multiplier=depth_multiplier,
                depthwise_initializer=weights_initializer,
                pointwise_initializer=pointwise_initializer or weights_initializer,
                depthwise_regularizer=weights_regularizer,
                pointwise_regularizer=weights_regularizer,
            )
        else:
            channels = channel_dimension(inputs.get_shape(), data_format, min_rank=4)
            weights = model_variable(
                "depthwise_weights",
                shape=[*two_element_tuple(kernel_size), channels, depth_multiplier],
                dtype=inputs.dtype.base_dtype,
                initializer=weights_initializer,
                regularizer=weights_regularizer,
                trainable=trainable,
                collections=get_variable_collections(variables_collections, "weights"),
            )
            steps = two_element_tuple(stride)
            strides = [1, 1, *steps] if layout == "channels_first" else [1, *steps, 1]
            outputs = conv_api.depthwise_conv2d(
                inputs, weights, strides, padding, rate=two_element_tuple(rate), data_format=data_format
            )
            outputs = _biased(outputs, (depth_multiplier * channels), arguments) if channels else outputs
        return finished(outputs, opened.name, activation_fn, outputs_collections, normalizer_fn, normalizer_params)


@export(v1=both("conv2d_in_plane", "convolution2d_in_plane"))
@add_arg_scope
def convolution2d_in_plane(
    inputs: Any,
    kernel_size: Any,
    stride: Any = 1,
    padding: str = "SAME",
    activation_fn: Any = _RELU,
    normalizer_fn: Any = None,
    normalizer_params: dict[str, Any] | None = None,
    weights_initializer: Any = _XAVIER,
    weights_regularizer: Any = None,
    biases_initializer: Any = _ZEROS,
    biases_regularizer: Any = None,
    reuse: Any = None,
    variables_collections: Any = None,
    outputs_collections: Any = None,
    trainable: bool = True,
    scope: Any = None,
) -> Any:
    """Convolves each channel with the same window. The arguments are those of `convolution`."""
    arguments = dict(locals())
    with variable_scope.variable_scope(scope, "ConvInPlane", [inputs], reuse=reuse) as opened:
        inputs = conversion.convert_to_tensor(inputs)
        channels = channel_dimension(inputs.get_shape(), "NHWC", min_rank=4)
        window = model_variable(
            "weights",
            shape=[*two_element_tuple(kernel_size), 1, 1],
            dtype=inputs.dtype.base_dtype,
            initializer=weights_initializer,
            regularizer=weights_regularizer,
            trainable=trainable,
            collections=get_variable_collections(variables_collections, "weights"),
        )
        weights = joining.tile(window, [1, 1, channels, 1])
        outputs = conv_api.depthwise_conv2d(inputs, weights, [1, *two_element_tuple(stride), 1], padding)
        outputs = _biased(outputs, channels, arguments)
        return finished(outputs, opened.name, activation_fn, outputs_collections, normalizer_fn, normalizer_params)


def _biased(outputs: Any, channels: Any, arguments: dict[str, Any]) -> Any:
    """Adds biases, unless a normalizer or the lack of an initializer says otherwise."""
    if arguments["normalizer_fn"] is not None or arguments["biases_initializer"] is None:
        return outputs
    biases = model_variable(
        "biases",
        shape=[channels],
        dtype=outputs.dtype.base_dtype,
        initializer=arguments["biases_initializer"],
        regularizer=arguments["biases_regularizer"],
        trainable=arguments["trainable"],
        collections=get_variable_collections(arguments["variables_collections"], "biases"),
    )
    return bias.bias_add(outputs, biases, data_format=arguments.get("data_format", "NHWC"))
