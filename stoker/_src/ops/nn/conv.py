"""Convolution ops: Conv2D, Conv3D, DepthwiseConv2dNative, and their gradient ops.

Each op is linear in both of its data inputs, so the three ops of a family are each other's gradients.
"""

from __future__ import annotations

import math as scalars
from typing import Any

import torch

from stoker._src.base import dtypes
from stoker._src.base.dtypes import FLOATS, INDEX
from stoker._src.base.errors import InvalidArgumentError
from stoker._src.base.shapes import Dim, Shape
from stoker._src.graph.definition import INT32S, INTS, STRING, OpDefinition, define, one_of
from stoker._src.graph.tensor import Operation, Tensor
from stoker._src.ops.array import pads, shaping
from stoker._src.ops.nn import conv_kernels
from stoker._src.ops.nn.windows import (
    channel_axis,
    check_window_sizes,
    explicit_pairs,
    known_or_rank,
    spatial,
    window_shape,
)

_ATTRS_2D: dict[str, Any] = {
    "strides": INT32S,
    "padding": STRING(allowed=("SAME", "VALID", "EXPLICIT")),
    "explicit_paddings": INTS(()),
    "data_format": STRING("NHWC", allowed=("NHWC", "NCHW")),
    "dilations": INT32S((1, 1, 1, 1)),
}
_ATTRS_CONV2D: dict[str, Any] = {**_ATTRS_2D, "use_cudnn_on_gpu": True}
_ATTRS_3D: dict[str, Any] = {
    "strides": INT32S(minimum=5),
    "padding": STRING(allowed=("SAME", "VALID")),
    "data_format": STRING("NDHWC", allowed=("NDHWC", "NCDHW")),
    "dilations": INT32S((1, 1, 1, 1, 1)),
}
_ATTRS_3D_OLD: dict[str, Any] = {name: spec for name, spec in _ATTRS_3D.items() if name != "data_format"}


def _linear_attrs(op: Operation) -> dict[str, Any]:
    """The attributes that a convolution shares with its two gradients."""
    names = ("strides", "padding", "explicit_paddings", "use_cudnn_on_gpu", "data_format", "dilations")
    return {name: op.attr(name) for name in names if name in op.definition.attrs}


def _filter_rank(filter: Shape, data_format: str) -> Shape:
    return filter.of_rank(len(data_format))


def _conv_shape(
    input: Shape,
    filter: Shape,
    strides: tuple[int, ...],
    padding: str,
    explicit_paddings: tuple[int, ...],
    data_format: str,
    dilations: tuple[int, ...],
    op: str,
) -> Shape:
    check_window_sizes("strides", strides, data_format, op)
    check_window_sizes("dilations", dilations, data_format, op)
    input, filter = input.of_rank(len(data_format)), _filter_rank(filter, data_format)
    channels, wanted = input[channel_axis(data_format)], filter[-2]
    if channels == 0 and wanted:
        raise InvalidArgumentError(None, None, f"Number of groups must not be 0 for {op}: input is {input}.")
    if channels is not None and wanted is not None and (wanted == 0 or channels % wanted):
        raise InvalidArgumentError(
            None,
            None,
            f"Depth of input ({channels}) is not a multiple of input depth of filter ({wanted}) for {op}: "
            f"input is {input}, filter is {filter}, data_format={data_format}.",
        )
    return window_shape(
        input,
        filter.dims[:-2],  # type: ignore[index]
        spatial(strides, data_format),
        spatial(dilations, data_format),
        padding,
        explicit_pairs(explicit_paddings, padding, data_format),
        data_format,
        filter[-1],
    )


# ---- Conv2D -----------------------------------------------------------------------------------------------------

CONV2D = define("Conv2D(input: T, filter: T) -> (output: T)", T=(*FLOATS, dtypes.int32), **_ATTRS_CONV2D)
CONV2D_BACKPROP_INPUT = define(
    "Conv2DBackpropInput(input_sizes: host int32, filter: rank=4 T, out_backprop: T) -> (output: T)",
    T=(*FLOATS, dtypes.int32),
    **_ATTRS_CONV2D,
)
CONV2D_BACKPROP_FILTER = define(
    "Conv2DBackpropFilter(input: T, filter_sizes: host int32, out_backprop: T) -> (output: T)",
    T=FLOATS,
    **_ATTRS_CONV2D,
)


def _is_of_pixels(op: Operation, image: tuple[int, ...], filter_sizes: tuple[int, ...]) -> bool:
    """Whether a convolution multiplies each pixel by the filter, with nothing between pixels and around the image."""
    plain = op.attr("data_format") == "NHWC" and op.attr("padding") != "EXPLICIT" and set(op.attr("strides")) == {1}
    return plain and len(image) == 4 and filter_sizes[:2] == (1, 1) and image[3] == filter_sizes[2]


def _matrix(build: Any, x: Any) -> Any:
    return build.reshape(x, (scalars.prod(x.shape[:-1]), x.shape[-1]))


@CONV2D.lower
def conv2d_lower(build: Any, op: Operation, input: Any, filter: Any) -> Any:
    if not _is_of_pixels(op, input.shape, filter.shape):
        return None
    product = build.matmul(_matrix(build, input), _matrix(build, filter), transpose_a=False, transpose_b=False)
    return None if product is None else build.reshape(product, (*input.shape[:3], filter.shape[3]))


@CONV2D_BACKPROP_INPUT.lower
def conv2d_backprop_input_lower(build: Any, op: Operation, input_sizes: Any, filter: Any, out_backprop: Any) -> Any:
    sizes = (*out_backprop.shape[:3], filter.shape[2])
    if not _is_of_pixels(op, sizes, filter.shape) or tuple(input_sizes) != sizes:
        return None
    product = build.matmul(_matrix(build, out_backprop), _matrix(build, filter), transpose_a=False, transpose_b=True)
    return None if product is None else build.reshape(product, sizes)


@CONV2D_BACKPROP_FILTER.lower
def conv2d_backprop_filter_lower(build: Any, op: Operation, input: Any, filter_sizes: Any, out_backprop: Any) -> Any:
    sizes = tuple(filter_sizes)
    fits = len(sizes) == 4 and input.shape[:3] == out_backprop.shape[:3] and sizes[3:] == out_backprop.shape[3:]
    if not fits or not _is_of_pixels(op, input.shape, sizes):
        return None
    product = build.matmul(_matrix(build, input), _matrix(build, out_backprop), transpose_a=True, transpose_b=False)
    return None if product is None else build.reshape(product, sizes)


for _definition in (CONV2D, CONV2D_BACKPROP_INPUT, CONV2D_BACKPROP_FILTER):
    _definition.planning.lowers_large_inputs = True

CONV2D.vanishing(0, 1)
CONV2D_BACKPROP_INPUT.vanishing(1, 2)
CONV2D_BACKPROP_FILTER.vanishing(0, 2)


@CONV2D.kernel
def conv2d_kernel(
    input: torch.Tensor,
    filter: torch.Tensor,
    *,
    strides: tuple[int, ...],
    padding: str,
    explicit_paddings: tuple[int, ...],
    data_format: str,
    dilations: tuple[int, ...],
) -> torch.Tensor:
    return conv_kernels.conv_forward(
        input, filter, strides, padding, explicit_paddings, data_format, dilations, "Conv2D"
    )


@CONV2D.shape
def conv2d_shape(
    input: Shape,
    filter: Shape,
    *,
    strides: tuple[int, ...],
    padding: str,
    explicit_paddings: tuple[int, ...],
    data_format: str,
    dilations: tuple[int, ...],
) -> Shape:
    return _conv_shape(input, filter, strides, padding, explicit_paddings, data_format, dilations, "Conv2D")


@CONV2D_BACKPROP_INPUT.kernel
def conv2d_backprop_input_kernel(
    input_sizes: list[int],
    filter: torch.Tensor,
    out_backprop: torch.Tensor,
    *,
    strides: tuple[int, ...],
    padding: str,
    explicit_paddings: tuple[int, ...],
    data_format: str,
    dilations: tuple[int, ...],
) -> torch.Tensor:
    sizes = whole_input_sizes(input_sizes, filter.shape[-2], out_backprop.shape[0], data_format)
    return conv_kernels.conv_backprop_input(
        sizes,
        filter,
        out_backprop,
        strides,
        padding,
        explicit_paddings,
        data_format,
        dilations,
        "Conv2DBackpropInput",
    )


def whole_input_sizes(sizes: list[int], channels: int, batch: int, data_format: str) -> list[int]:
    """The full sizes of the input. `input_sizes` may hold only the spatial sizes; batch and channels then come from the other inputs."""
    if len(sizes) == len(data_format) - 2:
        return [batch, *sizes, channels] if channel_axis(data_format) != 1 else [batch, channels, *sizes]
    if len(sizes) != len(data_format):
        raise InvalidArgumentError(
            None, None, f"Conv2DBackpropInput: input_sizes must contain 4 values or 2 values, but got: {len(sizes)}"
        )
    return sizes


@CONV2D_BACKPROP_INPUT.shape(as_shapes=["input_sizes"])
def conv2d_backprop_input_shape(input_sizes: Shape, filter: Shape, out_backprop: Shape, *, data_format: str) -> Shape:
    given = out_backprop.of_rank(len(data_format))[channel_axis(data_format)]
    wanted = filter.of_rank(len(data_format))[-1]
    if given is not None and wanted is not None and given != wanted:
        raise InvalidArgumentError(
            None,
            None,
            f"Dimensions must be equal, but are {given} (depth of out_backprop) and {wanted} (of the filter)",
        )
    return _whole_input_shape(input_sizes, filter, out_backprop, data_format=data_format)


def _whole_input_shape(input_sizes: Shape, filter: Shape, out_backprop: Shape, *, data_format: str) -> Shape:
    out_backprop = out_backprop.of_rank(len(data_format))
    if input_sizes.rank == len(data_format) - 2:
        channels: Dim = filter.of_rank(len(data_format))[-2]
        dims = list(input_sizes)
        return Shape(
            (out_backprop[0], *dims, channels) if data_format == "NHWC" else (out_backprop[0], channels, *dims)
        )
    known = known_or_rank(input_sizes, data_format).of_rank(len(data_format))
    return known.merge(Shape((out_backprop[0], *(None,) * (len(data_format) - 1))))


@CONV2D_BACKPROP_FILTER.kernel
def conv2d_backprop_filter_kernel(
    input: torch.Tensor,
    filter_sizes: list[int],
    out_backprop: torch.Tensor,
    *,
    strides: tuple[int, ...],
    padding: str,
    explicit_paddings: tuple[int, ...],
    data_format: str,
    dilations: tuple[int, ...],
) -> torch.Tensor:
    return conv_kernels.conv_backprop_filter(
        input, filter_sizes, out_backprop, strides, padding, explicit_paddings, data_format, dilations
    )


def _filter_shape(input: Shape, filter_sizes: Shape, out_backprop: Shape, *, data_format: str) -> Shape:
    return known_or_rank(filter_sizes, data_format).of_rank(len(data_format))


CONV2D_BACKPROP_FILTER.shape(as_shapes=["filter_sizes"])(_filter_shape)


def _register_gradients(forward: OpDefinition, to_input: OpDefinition, to_filter: OpDefinition) -> None:
    """Registers the gradients of a family. The input and filter gradients take the sizes of the missing operand."""

    @forward.grad
    def forward_grad(op: Operation, g: Tensor) -> tuple[Tensor, Tensor]:
        x, filter = op.inputs
        attrs = _linear_attrs(op)
        return (
            to_input(shaping.shape(x), filter, g, **attrs),
            to_filter(x, shaping.shape(filter), g, **attrs),
        )

    @to_input.grad
    def to_input_grad(op: Operation, g: Tensor) -> tuple[None, Tensor, Tensor]:
        _, filter, out_backprop = op.inputs
        attrs = _linear_attrs(op)
        return None, to_filter(g, shaping.shape(filter), out_backprop, **attrs), forward(g, filter, **attrs)

    @to_filter.grad
    def to_filter_grad(op: Operation, g: Tensor) -> tuple[Tensor, None, Tensor]:
        x, _, out_backprop = op.inputs
        attrs = _linear_attrs(op)
        return to_input(shaping.shape(x), g, out_backprop, **attrs), None, forward(x, g, **attrs)


_register_gradients(CONV2D, CONV2D_BACKPROP_INPUT, CONV2D_BACKPROP_FILTER)

# ---- FusedPadConv2D, of rewritten graphs ------------------------------------------------------------------------

FUSED_PAD_CONV2D = define(
    "FusedPadConv2D(input: rank=4 T, paddings: matrix host int32, filter: rank=4 T) -> (output: T)",
    T=FLOATS,
    mode=STRING(allowed=("REFLECT", "SYMMETRIC")),
    strides=INT32S,
    padding=STRING(allowed=("SAME", "VALID")),
)
_UNPADDED: dict[str, Any] = {"explicit_paddings": (), "data_format": "NHWC", "dilations": (1, 1, 1, 1)}


@FUSED_PAD_CONV2D.kernel
def fused_pad_conv2d_kernel(
    input: torch.Tensor, paddings: Any, filter: torch.Tensor, *, mode: str, strides: Any, padding: str
) -> torch.Tensor:
    if input.numel() == 0 or filter.shape[-1] == 0:
        raise InvalidArgumentError(
            None,
            None,
            f"Input and output tensor can't be empty: input {list(input.shape)}, filter {list(filter.shape)}",
        )
    padded = pads.mirror_pad_kernel(input, paddings, mode=mode)
    return conv2d_kernel(padded, filter, strides=strides, padding=padding, **_UNPADDED)


@FUSED_PAD_CONV2D.shape(values=["paddings"])
def fused_pad_conv2d_shape(input: Shape, paddings: Any, filter: Shape, *, strides: Any, padding: str) -> Shape:
    padded = pads.mirror_pad_shape(input.of_rank(4), paddings)
    return conv2d_shape(padded, filter, strides=strides, padding=padding, **_UNPADDED)  # type: ignore[call-arg]


# ---- DepthwiseConv2dNative --------------------------------------------------------------------------------------

DEPTHWISE_CONV2D = define("DepthwiseConv2dNative(input: T, filter: T) -> (output: T)", T=FLOATS, **_ATTRS_2D)
DEPTHWISE_CONV2D_BACKPROP_INPUT = define(
    "DepthwiseConv2dNativeBackpropInput(input_sizes: host int32, filter: T, out_backprop: T) -> (output: T)",
    T=FLOATS,
    **_ATTRS_2D,
)
DEPTHWISE_CONV2D_BACKPROP_FILTER = define(
    "DepthwiseConv2dNativeBackpropFilter(input: T, filter_sizes: host int32, out_backprop: T) -> (output: T)",
    T=FLOATS,
    **_ATTRS_2D,
)
_register_gradients(DEPTHWISE_CONV2D, DEPTHWISE_CONV2D_BACKPROP_INPUT, DEPTHWISE_CONV2D_BACKPROP_FILTER)


def _check_depthwise(channels: int, filter_channels: int) -> None:
    if channels != filter_channels:
        raise InvalidArgumentError(
            None, None, f"input and filter must have the same depth: {channels} vs {filter_channels}"
        )


@DEPTHWISE_CONV2D.kernel
def depthwise_conv2d_kernel(
    input: torch.Tensor,
    filter: torch.Tensor,
    *,
    strides: tuple[int, ...],
    padding: str,
    explicit_paddings: tuple[int, ...],
    data_format: str,
    dilations: tuple[int, ...],
) -> torch.Tensor:
    _check_depthwise(input.shape[channel_axis(data_format)], filter.shape[2])
    return conv_kernels.conv_forward(
        input,
        conv_kernels.grouped_filter(filter),
        strides,
        padding,
        explicit_paddings,
        data_format,
        dilations,
        "DepthwiseConv2dNative",
    )


@DEPTHWISE_CONV2D.shape
def depthwise_conv2d_shape(
    input: Shape,
    filter: Shape,
    *,
    strides: tuple[int, ...],
    padding: str,
    explicit_paddings: tuple[int, ...],
    data_format: str,
    dilations: tuple[int, ...],
) -> Shape:
    input, filter = input.of_rank(4), filter.of_rank(4)
    channels, own = input[channel_axis(data_format)], filter[2]
    if channels is not None and own is not None:
        _check_depthwise(channels, own)
    channels = own if channels is None else channels
    outputs = None if channels is None or filter[3] is None else channels * filter[3]
    grouped = Shape((filter[0], filter[1], 1, outputs))
    return _conv_shape(
        input, grouped, strides, padding, explicit_paddings, data_format, dilations, "DepthwiseConv2dNative"
    )


@DEPTHWISE_CONV2D_BACKPROP_INPUT.kernel
def depthwise_conv2d_backprop_input_kernel(
    input_sizes: list[int],
    filter: torch.Tensor,
    out_backprop: torch.Tensor,
    *,
    strides: tuple[int, ...],
    padding: str,
    explicit_paddings: tuple[int, ...],
    data_format: str,
    dilations: tuple[int, ...],
) -> torch.Tensor:
    _check_depthwise(input_sizes[channel_axis(data_format)], filter.shape[2])
    grouped = conv_kernels.grouped_filter(filter)
    return conv_kernels.conv_backprop_input(
        input_sizes, grouped, out_backprop, strides, padding, explicit_paddings, data_format, dilations
    )


DEPTHWISE_CONV2D_BACKPROP_INPUT.shape(as_shapes=["input_sizes"])(_whole_input_shape)


@DEPTHWISE_CONV2D_BACKPROP_FILTER.kernel
def depthwise_conv2d_backprop_filter_kernel(
    input: torch.Tensor,
    filter_sizes: list[int],
    out_backprop: torch.Tensor,
    *,
    strides: tuple[int, ...],
    padding: str,
    explicit_paddings: tuple[int, ...],
    data_format: str,
    dilations: tuple[int, ...],
) -> torch.Tensor:
    _check_depthwise(input.shape[channel_axis(data_format)], filter_sizes[2])
    grouped = conv_kernels.grouped_sizes(filter_sizes)
    return conv_kernels.conv_backprop_filter(
        input, grouped, out_backprop, strides, padding, explicit_paddings, data_format, dilations
    ).reshape(filter_sizes)


DEPTHWISE_CONV2D_BACKPROP_FILTER.shape(as_shapes=["filter_sizes"])(_filter_shape)

# ---- Conv3D -----------------------------------------------------------------------------------------------------

CONV3D = define("Conv3D(input: T, filter: T) -> (output: T)", T=FLOATS, **_ATTRS_3D)
CONV3D_BACKPROP_INPUT_V2 = define(
    "Conv3DBackpropInputV2(input_sizes: host Tshape, filter: T, out_backprop: T) -> (output: T)",
    T=FLOATS,
    Tshape=one_of(*INDEX, default=dtypes.int32),
    **_ATTRS_3D,
)
CONV3D_BACKPROP_FILTER_V2 = define(
    "Conv3DBackpropFilterV2(input: T, filter_sizes: host int32, out_backprop: T) -> (output: T)", T=FLOATS, **_ATTRS_3D
)
_register_gradients(CONV3D, CONV3D_BACKPROP_INPUT_V2, CONV3D_BACKPROP_FILTER_V2)


@CONV3D.kernel
def conv3d_kernel(
    input: torch.Tensor,
    filter: torch.Tensor,
    *,
    strides: tuple[int, ...],
    padding: str,
    data_format: str,
    dilations: tuple[int, ...],
) -> torch.Tensor:
    channels = input.shape[channel_axis(data_format)]
    if channels == 0 and filter.shape[-2]:
        raise InvalidArgumentError(
            None,
            None,
            f"Number of channels in filter ({filter.shape[-2]}) must match last dimension of input ({channels})",
        )
    return conv_kernels.conv_forward(input, filter, strides, padding, (), data_format, dilations)


@CONV3D.shape
def conv3d_shape(
    input: Shape, filter: Shape, *, strides: tuple[int, ...], padding: str, data_format: str, dilations: tuple[int, ...]
) -> Shape:
    return _conv_shape(input, filter, strides, padding, (), data_format, dilations, "Conv3D")


@CONV3D_BACKPROP_INPUT_V2.kernel
def conv3d_backprop_input_kernel(
    input_sizes: list[int],
    filter: torch.Tensor,
    out_backprop: torch.Tensor,
    *,
    strides: tuple[int, ...],
    padding: str,
    data_format: str,
    dilations: tuple[int, ...],
) -> torch.Tensor:
    return conv_kernels.conv_backprop_input(
        input_sizes, filter, out_backprop, strides, padding, (), data_format, dilations
    )


@CONV3D_BACKPROP_INPUT_V2.shape(as_shapes=["input_sizes"])
def conv3d_backprop_input_shape(input_sizes: Shape, filter: Shape, out_backprop: Shape, *, data_format: str) -> Shape:
    return known_or_rank(input_sizes, data_format).of_rank(5)


@CONV3D_BACKPROP_FILTER_V2.kernel
def conv3d_backprop_filter_kernel(
    input: torch.Tensor,
    filter_sizes: list[int],
    out_backprop: torch.Tensor,
    *,
    strides: tuple[int, ...],
    padding: str,
    data_format: str,
    dilations: tuple[int, ...],
) -> torch.Tensor:
    return conv_kernels.conv_backprop_filter(
        input, filter_sizes, out_backprop, strides, padding, (), data_format, dilations
    )


CONV3D_BACKPROP_FILTER_V2.shape(as_shapes=["filter_sizes"])(_filter_shape)

# Forms of old graphs, which take the operand itself although only its sizes matter.

_OLD_FLOATS = (dtypes.float16, dtypes.float32, dtypes.float64)
CONV3D_BACKPROP_INPUT = define(
    "Conv3DBackpropInput(input: T, filter: T, out_backprop: T) -> (output: T)", T=_OLD_FLOATS, **_ATTRS_3D_OLD
)
CONV3D_BACKPROP_FILTER = define(
    "Conv3DBackpropFilter(input: T, filter: T, out_backprop: T) -> (output: T)", T=_OLD_FLOATS, **_ATTRS_3D_OLD
)


@CONV3D_BACKPROP_INPUT.kernel
def conv3d_backprop_input_v1_kernel(
    input: torch.Tensor,
    filter: torch.Tensor,
    out_backprop: torch.Tensor,
    *,
    strides: tuple[int, ...],
    padding: str,
    dilations: tuple[int, ...],
) -> torch.Tensor:
    return conv_kernels.conv_backprop_input(
        tuple(input.shape), filter, out_backprop, strides, padding, (), "NDHWC", dilations
    )


@CONV3D_BACKPROP_INPUT.shape
def conv3d_backprop_input_v1_shape(input: Shape, filter: Shape, out_backprop: Shape) -> Shape:
    return input.of_rank(5)


@CONV3D_BACKPROP_FILTER.kernel
def conv3d_backprop_filter_v1_kernel(
    input: torch.Tensor,
    filter: torch.Tensor,
    out_backprop: torch.Tensor,
    *,
    strides: tuple[int, ...],
    padding: str,
    dilations: tuple[int, ...],
) -> torch.Tensor:
    return conv_kernels.conv_backprop_filter(
        input, tuple(filter.shape), out_backprop, strides, padding, (), "NDHWC", dilations
    )


@CONV3D_BACKPROP_FILTER.shape
def conv3d_backprop_filter_v1_shape(input: Shape, filter: Shape, out_backprop: Shape) -> Shape:
    return filter.of_rank(5)
