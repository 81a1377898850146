"""The convolution functions of `tf.nn`."""

from __future__ import annotations

from typing import Any

import numpy as np

from stoker._src.base import dtypes
from stoker._src.base.export import export
from stoker._src.graph.conversion import convert_to_tensor
from stoker._src.graph.scopes import name_scope
from stoker._src.graph.static_values import constant_value
from stoker._src.graph.tensor import Tensor
from stoker._src.ops.array import joining, shaping, slicing
from stoker._src.ops.nn.arguments import (
    either,
    for_each_dimension,
    in_two_dimensions,
    layout,
    rank_of,
    split_padding,
    starts_with_channels,
    static_sizes,
    whole,
    without_batch_dimensions,
)
from stoker._src.ops.nn.conv import (
    CONV2D,
    CONV2D_BACKPROP_FILTER,
    CONV2D_BACKPROP_INPUT,
    CONV3D,
    CONV3D_BACKPROP_FILTER_V2,
    CONV3D_BACKPROP_INPUT_V2,
    DEPTHWISE_CONV2D,
    DEPTHWISE_CONV2D_BACKPROP_FILTER,
    DEPTHWISE_CONV2D_BACKPROP_INPUT,
)
from stoker._src.ops.nn.dilated import with_space_to_batch

_ONES = (1, 1, 1, 1)


def _attrs_2d(strides: Any, padding: Any, data_format: str | None, dilations: Any) -> dict[str, Any]:
    """Attributes of a convolution whose strides and dilations may omit dimensions."""
    axis = 1 if starts_with_channels(data_format) else 3
    strides = for_each_dimension(strides, 2, axis, "strides")
    return _whole_attrs(strides, padding, data_format, for_each_dimension(dilations, 2, axis, "dilations"))


def _whole_attrs(strides: Any, padding: Any, data_format: str | None, dilations: Any) -> dict[str, Any]:
    """Attributes of a 2-D convolution whose strides and dilations are given for all dimensions."""
    word, explicit = split_padding(padding)
    if word is None:
        raise TypeError("Expected string for argument 'padding' not None.")
    return {
        "strides": strides,
        "padding": word,
        "explicit_paddings": explicit,
        "data_format": "NHWC" if data_format is None else data_format,
        "dilations": dilations,
    }


# ---- two dimensions ---------------------------------------------------------------------------------------------


@export(v1="nn.conv2d")
def conv2d(
    input: Any,
    filter: Any = None,
    strides: Any = None,
    padding: Any = None,
    use_cudnn_on_gpu: bool = True,
    data_format: str = "NHWC",
    dilations: Any = _ONES,
    name: str | None = None,
    filters: Any = None,
) -> Tensor:
    """The 2-D convolution of images with filters [height, width, in channels, out channels].

    `padding` is SAME, VALID or a pair of numbers for each of the four dimensions.
    """
    filter = either(filter, "filter", filters, "filters")
    attrs = _attrs_2d(strides, padding, data_format, dilations)
    value = input if isinstance(input, Tensor) else None
    if value is not None and value.static_shape.rank is not None and value.static_shape.rank > 4:
        with name_scope(None, "squeeze_batch_dims"):
            return without_batch_dimensions(value, 2, lambda x: CONV2D(x, filter, name=name, **attrs))
    return CONV2D(input, filter, use_cudnn_on_gpu=use_cudnn_on_gpu, name=name, **attrs)


@export(v2="nn.conv2d")
def conv2d_v2(
    input: Any,
    filters: Any,
    strides: Any,
    padding: Any,
    data_format: str = "NHWC",
    dilations: Any = None,
    name: str | None = None,
) -> Tensor:
    """The 2-D convolution of images with filters [height, width, in channels, out channels].

    `padding` is SAME, VALID or a pair of numbers for each of the four dimensions.
    """
    return conv2d(input, filters, strides, padding, True, data_format, dilations, name)


@export(v1="nn.conv2d_backprop_input")
def conv2d_backprop_input(
    input_sizes: Any,
    filter: Any = None,
    out_backprop: Any = None,
    strides: Any = None,
    padding: Any = None,
    use_cudnn_on_gpu: bool = True,
    data_format: str = "NHWC",
    dilations: Any = _ONES,
    name: str | None = None,
    filters: Any = None,
) -> Tensor:
    """The gradient of a 2-D convolution with respect to its input of `input_sizes`."""
    filter = either(filter, "filter", filters, "filters")
    attrs = _whole_attrs(strides, padding, data_format, dilations)
    return CONV2D_BACKPROP_INPUT(
        input_sizes, filter, out_backprop, use_cudnn_on_gpu=use_cudnn_on_gpu, name=name, **attrs
    )


@export(v1="nn.conv2d_backprop_filter")
def conv2d_backprop_filter(
    input: Any,
    filter_sizes: Any,
    out_backprop: Any,
    strides: Any,
    padding: Any,
    use_cudnn_on_gpu: bool = True,
    data_format: str = "NHWC",
    dilations: Any = _ONES,
    name: str | None = None,
) -> Tensor:
    """The gradient of a 2-D convolution with respect to its filter of `filter_sizes`."""
    attrs = _whole_attrs(strides, padding, data_format, dilations)
    return CONV2D_BACKPROP_FILTER(
        input, filter_sizes, out_backprop, use_cudnn_on_gpu=use_cudnn_on_gpu, name=name, **attrs
    )


def _conv2d_transpose(
    value: Any,
    filter: Any,
    output_shape: Any,
    strides: Any,
    padding: Any,
    data_format: str | None,
    dilations: Any,
    name: str | None,
    default_name: str = "conv2d_transpose",
) -> Tensor:
    with name_scope(name, default_name, [value, filter, output_shape]) as scope:
        return CONV2D_BACKPROP_INPUT(
            output_shape, filter, value, name=scope, **_attrs_2d(strides, padding, data_format, dilations)
        )


@export(v1="nn.conv2d_transpose")
def conv2d_transpose(
    value: Any = None,
    filter: Any = None,
    output_shape: Any = None,
    strides: Any = None,
    padding: Any = "SAME",
    data_format: str = "NHWC",
    name: str | None = None,
    input: Any = None,
    filters: Any = None,
    dilations: Any = None,
) -> Tensor:
    """The transpose (gradient) of a 2-D convolution; filters are [height, width, out channels, in channels]."""
    value = either(value, "value", input, "input")
    filter = either(filter, "filter", filters, "filters")
    return _conv2d_transpose(value, filter, output_shape, strides, padding, data_format, dilations, name)


@export(v2="nn.conv2d_transpose")
def conv2d_transpose_v2(
    input: Any,
    filters: Any,
    output_shape: Any,
    strides: Any,
    padding: Any = "SAME",
    data_format: str = "NHWC",
    dilations: Any = None,
    name: str | None = None,
) -> Tensor:
    """The transpose (gradient) of a 2-D convolution; filters are [height, width, out channels, in channels]."""
    return _conv2d_transpose(input, filters, output_shape, strides, padding, data_format, dilations, name)


@export("nn.atrous_conv2d")
def atrous_conv2d(value: Any, filters: Any, rate: int, padding: str, name: str | None = None) -> Tensor:
    """The 2-D convolution with filters dilated by `rate`."""
    return _convolution(value, filters, None, padding, None, np.broadcast_to(rate, (2,)), name)


@export("nn.atrous_conv2d_transpose")
def atrous_conv2d_transpose(
    value: Any, filters: Any, output_shape: Any, rate: int, padding: str, name: str | None = None
) -> Tensor:
    """The transpose (gradient) of `atrous_conv2d`.

    Raises:
        ValueError: the rate is below 1, or the padding is neither SAME nor VALID.
    """
    if rate < 1:
        raise ValueError(f"`rate` cannot be less than one. Received: rate={rate}")
    if padding not in ("SAME", "VALID"):
        raise ValueError(f"`padding` must be either 'VALID' or 'SAME'. Received: padding={padding}")
    return _conv2d_transpose(
        value, filters, output_shape, 1, padding, "NHWC", [rate, rate], name, "atrous_conv2d_transpose"
    )


# ---- depthwise --------------------------------------------------------------------------------------------------


@export(v1="nn.depthwise_conv2d")
def depthwise_conv2d(
    input: Any,
    filter: Any,
    strides: Any,
    padding: Any,
    rate: Any = None,
    name: str | None = None,
    data_format: str | None = None,
    dilations: Any = None,
) -> Tensor:
    """Convolves each channel with its own filters [height, width, channels, multiplier]."""
    rate = either(rate, "rate", dilations, "dilations")
    with name_scope(name, "depthwise", [input, filter]) as scope:
        value = convert_to_tensor(input, name="tensor_in")
        filter = convert_to_tensor(filter, name="filter_in")
        if value.static_shape.rank is not None and value.static_shape.rank < 3:
            raise ValueError(
                f"`input.shape.rank` must be at least 3. Received: input.shape={value.shape} with rank {value.static_shape.rank}"
            )
        given = rate if isinstance(rate, (list, tuple)) else ()
        if isinstance(rate, (int, float)) or any(isinstance(each, float) for each in given):
            raise TypeError(f"Expected a list of integers for argument 'rate' not {rate!r}.")
        rates = [1, 1] if rate is None else _positive(list(rate), "dilation_rate")
        if len(rates) == 1:  # the rate of the first spatial dimension
            rates = [*rates, 1]
        if len(rates) != 2:
            raise ValueError(f"`dilation_rate` must have 2 entries, one for each spatial dimension. Received: {rates}")
        first = starts_with_channels(data_format)
        attrs = _whole_attrs(strides, padding, data_format, [1, 1, *rates] if first else [1, *rates, 1])
        if isinstance(strides, (list, tuple)) and any(stride != 1 for stride in strides) and rates != [1, 1]:
            # TensorFlow applies strides within each interleaved grid, which differs from a strided dilated convolution.
            attrs.pop("dilations")
            word = attrs.pop("padding")

            def strided(x: Tensor, _: int, padding: str) -> Tensor:
                return DEPTHWISE_CONV2D(x, filter, padding=padding, name=scope, **attrs)

            return with_space_to_batch(value, rates, word, strided, filter.static_shape[:2].dims, None, data_format)
        return DEPTHWISE_CONV2D(value, filter, name=scope, **attrs)


@export(v2="nn.depthwise_conv2d")
def depthwise_conv2d_v2(
    input: Any,
    filter: Any,
    strides: Any,
    padding: Any,
    data_format: str | None = None,
    dilations: Any = None,
    name: str | None = None,
) -> Tensor:
    """Convolves each channel with its own filters [height, width, channels, multiplier]."""
    return depthwise_conv2d(input, filter, strides, padding, dilations, name, data_format)


@export(v1="nn.depthwise_conv2d_native")
def depthwise_conv2d_native(
    input: Any,
    filter: Any,
    strides: Any,
    padding: Any,
    data_format: str = "NHWC",
    dilations: Any = _ONES,
    name: str | None = None,
) -> Tensor:
    """Convolves each channel with its own filters [height, width, channels, multiplier]."""
    return DEPTHWISE_CONV2D(input, filter, name=name, **_whole_attrs(strides, padding, data_format, dilations))


@export("nn.depthwise_conv2d_backprop_input", v1="nn.depthwise_conv2d_native_backprop_input")
def depthwise_conv2d_backprop_input(
    input_sizes: Any,
    filter: Any,
    out_backprop: Any,
    strides: Any,
    padding: Any,
    data_format: str = "NHWC",
    dilations: Any = _ONES,
    name: str | None = None,
) -> Tensor:
    """The gradient of a depthwise convolution with respect to its input."""
    attrs = _whole_attrs(strides, padding, data_format, dilations)
    return DEPTHWISE_CONV2D_BACKPROP_INPUT(input_sizes, filter, out_backprop, name=name, **attrs)


@export("nn.depthwise_conv2d_backprop_filter", v1="nn.depthwise_conv2d_native_backprop_filter")
def depthwise_conv2d_backprop_filter(
    input: Any,
    filter_sizes: Any,
    out_backprop: Any,
    strides: Any,
    padding: Any,
    data_format: str = "NHWC",
    dilations: Any = _ONES,
    name: str | None = None,
) -> Tensor:
    """The gradient of a depthwise convolution with respect to its filter."""
    attrs = _whole_attrs(strides, padding, data_format, dilations)
    return DEPTHWISE_CONV2D_BACKPROP_FILTER(input, filter_sizes, out_backprop, name=name, **attrs)


@export(v1="nn.separable_conv2d")
def separable_conv2d(
    input: Any,
    depthwise_filter: Any,
    pointwise_filter: Any,
    strides: Any,
    padding: Any,
    rate: Any = None,
    name: str | None = None,
    data_format: str | None = None,
    dilations: Any = None,
) -> Tensor:
    """A depthwise convolution followed by a 1x1 convolution that mixes its channels."""
    rate = either(rate, "rate", dilations, "dilations")
    with name_scope(name, "separable_conv2d", [input, depthwise_filter, pointwise_filter]) as scope:
        value = convert_to_tensor(input, name="tensor_in")
        depthwise = convert_to_tensor(depthwise_filter, name="depthwise_filter")
        pointwise = convert_to_tensor(pointwise_filter, name="pointwise_filter")
        pointwise.shape.assert_has_rank(4)
        shape = pointwise.static_shape.of_rank(4)
        if any(size not in (1, None) for size in (shape[0], shape[1])):
            raise ValueError(f"The pointwise filter must be 1x1, found {shape}.")
        if rate is not None:
            rate = _rates(rate)
        mixed = depthwise_conv2d(value, depthwise, strides, padding, rate, "depthwise", data_format)
        return CONV2D(
            mixed,
            pointwise,
            strides=_ONES,
            padding="VALID",
            data_format="NHWC" if data_format is None else data_format,
            name=scope,
        )


@export(v2="nn.separable_conv2d")
def separable_conv2d_v2(
    input: Any,
    depthwise_filter: Any,
    pointwise_filter: Any,
    strides: Any,
    padding: Any,
    data_format: str | None = None,
    dilations: Any = None,
    name: str | None = None,
) -> Tensor:
    """A depthwise convolution followed by a 1x1 convolution that mixes its channels."""
    return separable_conv2d(input, depthwise_filter, pointwise_filter, strides, padding, dilations, name, data_format)


# ---- one dimension ----------------------------------------------------------------------------------------------


def _conv1d(
    value: Any, filters: Any, stride: Any, padding: Any, data_format: str | None, dilations: Any, scope: str
) -> Tensor:
    if data_format not in (None, "NWC", "NCW", "NHWC", "NCHW"):
        raise ValueError(f"`data_format` must be 'NWC' or 'NCW'. Received: data_format={data_format}")
    first = starts_with_channels(data_format)
    axis = 1 if first else 2
    value = convert_to_tensor(value)
    filters = convert_to_tensor(filters)
    steps = for_each_dimension(stride, 1, axis, "stride")
    rates = for_each_dimension(dilations, 1, axis, "dilations")
    at = 2 if first else 1
    attrs: dict[str, Any] = {
        "strides": [*steps[:at], 1, *steps[at:]],
        "dilations": [*rates[:at], 1, *rates[at:]],
        "padding": padding,
        "data_format": "NCHW" if first else "NHWC",
    }

    def apply(x: Tensor) -> Tensor:
        wide = shaping.EXPAND_DIMS(x, at)
        return shaping.SQUEEZE(CONV2D(wide, shaping.EXPAND_DIMS(filters, 0), name=scope, **attrs), squeeze_dims=[at])

    return without_batch_dimensions(value, 1, apply)


@export(v1="nn.conv1d")
def conv1d(
    value: Any = None,
    filters: Any = None,
    stride: Any = None,
    padding: Any = None,
    use_cudnn_on_gpu: bool | None = None,
    data_format: str | None = None,
    name: str | None = None,
    input: Any = None,
    dilations: Any = None,
) -> Tensor:
    """The 1-D convolution of sequences [batch, width, channels] (NWC) or [batch, channels, width] (NCW)."""
    value = either(value, "value", input, "input")
    with name_scope(name, "conv1d", [value, filters]) as scope:
        return _conv1d(value, filters, stride, padding, data_format, dilations, scope)


@export(v2="nn.conv1d")
def conv1d_v2(
    input: Any,
    filters: Any,
    stride: Any,
    padding: Any,
    data_format: str = "NWC",
    dilations: Any = None,
    name: str | None = None,
) -> Tensor:
    """The 1-D convolution of sequences [batch, width, channels] (NWC) or [batch, channels, width] (NCW)."""
    return conv1d(input, filters, stride, padding, None, data_format, name, None, dilations)


@export("nn.conv1d_transpose")
def conv1d_transpose(
    input: Any,
    filters: Any,
    output_shape: Any,
    strides: Any,
    padding: str = "SAME",
    data_format: str = "NWC",
    dilations: Any = None,
    name: str | None = None,
) -> Tensor:
    """The transpose (gradient) of a 1-D convolution; filters are [width, out channels, in channels]."""
    with name_scope(name, "conv1d_transpose", [input, filters, output_shape]) as scope:
        if data_format not in (None, "NHWC", "NWC", "NCHW", "NCW"):
            raise ValueError(f"`data_format` must be 'NWC' or 'NCW'. Received: data_format={data_format}")
        first = starts_with_channels(data_format)
        at = 2 if first else 1
        steps = for_each_dimension(strides, 1, 1 if first else 2, "strides")
        rates = for_each_dimension(dilations, 1, 1 if first else 2, "dilations")
        known = static_sizes(output_shape)
        if known is not None and all(isinstance(size, (int, np.integer)) for size in known):
            sizes: Any = [*known[:at], 1, *known[at:]]
        elif isinstance(output_shape, (list, tuple)):
            sizes = convert_to_tensor([*output_shape[:at], 1, *output_shape[at:]])
        else:
            vector = convert_to_tensor(output_shape)
            sizes = joining.concat([slicing.SLICE(vector, [0], [at]), [1], slicing.SLICE(vector, [at], [-1])], 0)
        filters = shaping.EXPAND_DIMS(convert_to_tensor(filters, name="filters"), 0)

        def apply(wide: Tensor) -> Tensor:
            return CONV2D_BACKPROP_INPUT(
                sizes,
                filters,
                wide,
                strides=[*steps[:at], 1, *steps[at:]],
                dilations=[*rates[:at], 1, *rates[at:]],
                padding=padding,
                data_format="NCHW" if first else "NHWC",
                name=scope,
            )

        return in_two_dimensions(convert_to_tensor(input, name="input"), first, apply)


# ---- three dimensions -------------------------------------------------------------------------------------------


def _attrs_3d(strides: Any, padding: Any, data_format: str | None, dilations: Any) -> dict[str, Any]:
    axis = 1 if starts_with_channels(data_format) else 4
    return {
        "strides": for_each_dimension(strides, 3, axis, "strides"),
        "padding": padding,
        "data_format": "NDHWC" if data_format is None else data_format,
        "dilations": for_each_dimension(dilations, 3, axis, "dilations"),
    }


@export(v1="nn.conv3d")
def conv3d(
    input: Any,
    filter: Any = None,
    strides: Any = None,
    padding: Any = None,
    data_format: str = "NDHWC",
    dilations: Any = (1, 1, 1, 1, 1),
    name: str | None = None,
    filters: Any = None,
) -> Tensor:
    """The 3-D convolution of volumes with filters [depth, height, width, in channels, out channels]."""
    filter = either(filter, "filter", filters, "filters")
    return CONV3D(
        input, filter, strides=strides, padding=padding, data_format=data_format, dilations=dilations, name=name
    )


@export(v2="nn.conv3d")
def conv3d_v2(
    input: Any,
    filters: Any,
    strides: Any,
    padding: Any,
    data_format: str = "NDHWC",
    dilations: Any = None,
    name: str | None = None,
) -> Tensor:
    """The 3-D convolution of volumes with filters [depth, height, width, in channels, out channels]."""
    return conv3d(
        input, filters, strides, padding, data_format, (1, 1, 1, 1, 1) if dilations is None else dilations, name
    )


@export(v1=("nn.conv3d_backprop_filter", "nn.conv3d_backprop_filter_v2"))
def conv3d_backprop_filter(
    input: Any,
    filter_sizes: Any,
    out_backprop: Any,
    strides: Any,
    padding: str,
    data_format: str = "NDHWC",
    dilations: Any = (1, 1, 1, 1, 1),
    name: str | None = None,
) -> Tensor:
    """The gradient of a 3-D convolution with respect to its filter of `filter_sizes`."""
    return CONV3D_BACKPROP_FILTER_V2(
        input,
        filter_sizes,
        out_backprop,
        strides=strides,
        padding=padding,
        data_format=data_format,
        dilations=dilations,
        name=name,
    )


def _conv3d_transpose(
    value: Any,
    filter: Any,
    output_shape: Any,
    strides: Any,
    padding: str,
    data_format: str | None,
    dilations: Any,
    name: str | None,
) -> Tensor:
    with name_scope(name, "conv3d_transpose", [value, filter, output_shape]) as scope:
        return CONV3D_BACKPROP_INPUT_V2(
            output_shape, filter, value, name=scope, **_attrs_3d(strides, padding, data_format, dilations)
        )


@export(v1="nn.conv3d_transpose")
def conv3d_transpose(
    value: Any,
    filter: Any = None,
    output_shape: Any = None,
    strides: Any = None,
    padding: str = "SAME",
    data_format: str = "NDHWC",
    name: str | None = None,
    input: Any = None,
    filters: Any = None,
    dilations: Any = None,
) -> Tensor:
    """The transpose (gradient) of a 3-D convolution."""
    value = either(value, "value", input, "input")
    filter = either(filter, "filter", filters, "filters")
    return _conv3d_transpose(value, filter, output_shape, strides, padding, data_format, dilations, name)


@export(v2="nn.conv3d_transpose")
def conv3d_transpose_v2(
    input: Any,
    filters: Any,
    output_shape: Any,
    strides: Any,
    padding: str = "SAME",
    data_format: str = "NDHWC",
    dilations: Any = None,
    name: str | None = None,
) -> Tensor:
    """The transpose (gradient) of a 3-D convolution."""
    return _conv3d_transpose(input, filters, output_shape, strides, padding, data_format, dilations, name)


# ---- any number of dimensions -----------------------------------------------------------------------------------


@export("nn.conv_transpose")
def conv_transpose(
    input: Any,
    filters: Any,
    output_shape: Any,
    strides: Any,
    padding: str = "SAME",
    data_format: str | None = None,
    dilations: Any = None,
    name: str | None = None,
) -> Tensor:
    """The transpose of `convolution`. The length of `output_shape` gives the number of spatial dimensions.

    Raises:
        ValueError: `output_shape` does not have length 3, 4 or 5.
    """
    with name_scope(name, "conv_transpose", [input, filters, output_shape]) as scope:
        known = static_sizes(output_shape)
        if known is None and not isinstance(output_shape, (list, tuple, Tensor)):
            raise ValueError(
                f"`output_shape` must be a tensor or sized collection. Received: output_shape={output_shape!r}"
            )
        count = len(known) if known is not None else convert_to_tensor(output_shape).static_shape.of_rank(1)[0]
        if count not in (3, 4, 5):
            raise ValueError(f"`output_shape` must have 3, 4 or 5 entries, found {count}.")
        if count == 3:
            return conv1d_transpose(
                input, filters, output_shape, strides, padding, data_format or "NWC", dilations, scope
            )
        make = _conv2d_transpose if count == 4 else _conv3d_transpose
        return make(input, filters, output_shape, strides, padding, data_format, dilations, scope)


def _rates(rate: Any) -> list[int]:
    """Dilations given as a vector, which may be a tensor with a static value."""
    vector = convert_to_tensor(rate, dtypes.int32, name="dilation_rate")
    if vector.static_shape.rank not in (1, None):
        raise ValueError(f"`dilation_rate.shape.rank` must be 1. Received: dilation_rate={vector}")
    known = constant_value(vector)
    if known is None:
        raise ValueError(f"`dilation_rate` must be known when the graph is built. Received: {vector}")
    return known.tolist()


def _spatial(value: Any, count: int, label: str) -> list[Any]:
    """One entry per spatial dimension, from a single entry, one per spatial dimension, or one per dimension."""
    if value is None:
        return [1] * count
    given = list(value) if hasattr(value, "__iter__") else [value]
    if len(given) == 1:
        given *= count
    if len(given) not in (count, count + 2):
        raise ValueError(f"`{label}` must have {count} entries, one for each spatial dimension. Received: {value}")
    return given


def _positive(given: list[Any], label: str) -> list[int]:
    if any(isinstance(each, str) for each in given):
        raise ValueError(f"`{label}` must be integers. Received: {given!r}")
    numbers = [whole(each, label) for each in given]
    if any(number < 1 for number in numbers):
        raise ValueError(f"all values of `{label}` must be positive. Received: {given}")
    return numbers


def _check_convolution(
    value: Tensor, filters: Tensor, count: int, padding: Any, data_format: str | None, rates: list[int]
) -> None:
    """Raises ValueError if the arguments are statically incompatible."""
    inputs, windows = value.static_shape, filters.static_shape
    if inputs.rank is not None and inputs.rank < count + 2:
        raise ValueError(
            f"`input.shape.rank` must be >= than `num_spatial_dims + 2`. Received: input.shape={value.shape} of rank "
            f"{inputs.rank} and num_spatial_dims={count}"
        )
    if inputs.rank is not None and windows.rank is not None:
        channels, wanted = inputs[-count - 1 if starts_with_channels(data_format) else -1], windows[-2]
        if channels is not None and wanted and channels % wanted:
            raise ValueError(
                "The number of input channels is not divisible by the corresponding number of output filters. Received: "
                f"input.shape={value.shape} with {channels} channels and filters.shape={filters.shape}"
            )
    if any(rate > 1 for rate in rates) and (not isinstance(padding, str) or padding not in ("SAME", "VALID")):
        raise ValueError(f"`padding` must be one of 'SAME' or 'VALID'. Received: padding={padding}")


def _convolution(
    input: Any, filters: Any, strides: Any, padding: Any, data_format: str | None, dilations: Any, name: str | None
) -> Tensor:
    with name_scope(name, "convolution", [input, filters]) as scope:
        value = convert_to_tensor(input, name="input")
        filters = convert_to_tensor(filters, name="filter")
        rank = rank_of(filters, value)
        if rank is None:
            raise ValueError("rank of input or filter must be known")
        count = rank - 2
        if not 1 <= count <= 3:
            raise ValueError(f"convolution works on 1, 2 or 3 spatial dimensions, found {count}.")
        steps, rates = _spatial(strides, count, "strides"), _spatial(dilations, count, "dilation_rate")
        if len(rates) > count:
            rates = rates[2:] if starts_with_channels(data_format) else rates[1:-1]
        rates = _positive(rates, "dilation_rate")
        _check_convolution(value, filters, count, padding, data_format, rates)
        if any(step > 1 for step in steps if isinstance(step, (int, float))) and any(rate > 1 for rate in rates):
            raise ValueError(
                "`strides > 1` not supported in conjunction with `dilation_rate > 1`. "
                f"Received: strides={steps} and dilation_rate={rates}"
            )
        if count == 1:
            return _conv1d(value, filters, steps, padding, data_format, rates, scope)
        if count == 2:
            attrs = {**_attrs_2d(steps, "VALID", layout(data_format, 2), rates), "padding": padding}
            return without_batch_dimensions(value, 2, lambda x: CONV2D(x, filters, name=scope, **attrs))
        attrs = _attrs_3d(steps, padding, layout(data_format, 3), rates)
        return without_batch_dimensions(value, 3, lambda x: CONV3D(x, filters, name=scope, **attrs))


@export(v1="nn.convolution")
def convolution(
    input: Any,
    filter: Any,
    padding: Any,
    strides: Any = None,
    dilation_rate: Any = None,
    name: str | None = None,
    data_format: str | None = None,
    filters: Any = None,
    dilations: Any = None,
) -> Tensor:
    """The convolution over as many spatial dimensions (1 to 3) as the filter has.

    Raises:
        ValueError: strides and dilations are both above 1, or the ranks are unknown.
    """
    filter = either(filter, "filter", filters, "filters")
    rate = either(dilation_rate, "dilation_rate", dilations, "dilations")
    return _convolution(input, filter, strides, padding, data_format, rate, name)


@export(v2="nn.convolution")
def convolution_v2(
    input: Any,
    filters: Any,
    strides: Any = None,
    padding: Any = "VALID",
    data_format: str | None = None,
    dilations: Any = None,
    name: str | None = None,
) -> Tensor:
    """The convolution over as many spatial dimensions (1 to 3) as the filter has."""
    return _convolution(input, filters, strides, padding, data_format, dilations, name)
