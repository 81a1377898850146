"""Convolutions, pooling and other layers for images and sequences."""

from __future__ import annotations

from typing import Any

import numpy as np

from stoker._src.graph.tensor import Tensor
from stoker._src.image import resize
from stoker._src.lite.keras.layers import Layer, UnsupportedLayer, builds, static
from stoker._src.ops.array import casting, constants, joining, pads, shaping
from stoker._src.ops.linalg import matrix_products
from stoker._src.ops.math import reductions
from stoker._src.ops.nn import bias, conv_api, pool_api

_LAST = {1: "NWC", 2: "NHWC", 3: "NDHWC"}
_FIRST = {1: "NCW", 2: "NCHW", 3: "NCDHW"}


def _format(layer: Layer, spatial: int) -> str:
    return (_FIRST if layer.channels_first else _LAST)[spatial]


def _sizes(value: Any, spatial: int) -> list[int]:
    return [int(value)] * spatial if isinstance(value, (int, float)) else [int(each) for each in value]


def _whole(layer: Layer, sizes: list[int]) -> list[int]:
    """Sizes of spatial dimensions among those of all dimensions."""
    return [1, 1, *sizes] if layer.channels_first else [1, *sizes, 1]


def _finished(layer: Layer, y: Tensor) -> Tensor:
    """Adds the bias and applies the activation."""
    if layer.config.get("use_bias", True):
        spatial = (y.static_shape.rank or 0) - 2
        values = layer.weight("bias")
        if layer.channels_first:
            y = y + shaping.reshape(values, [1, -1, *[1] * spatial])
        else:
            y = bias.bias_add(y, values)
    return layer.activation(y)


def _spatial_axes(layer: Layer, spatial: int) -> list[int]:
    return [axis + (2 if layer.channels_first else 1) for axis in range(spatial)]


@builds("Conv1D", "Conv2D", "Conv3D", "Convolution1D", "Convolution2D")
def convolution(layer: Layer, x: Tensor) -> Tensor:
    spatial = int(layer.class_name[-2])
    config = layer.config
    strides, rates = (
        _sizes(config.get("strides", 1), spatial),
        _sizes(config.get("dilation_rate", 1), spatial),
    )
    padding = str(config.get("padding", "valid")).upper()
    kernel = layer.weight("kernel")
    if padding == "CAUSAL":
        before = rates[0] * (static(kernel, 0) - 1)
        x = pads.pad(x, [[0, 0], [0, 0], [before, 0]] if layer.channels_first else [[0, 0], [before, 0], [0, 0]])
        padding = "VALID"
    if spatial == 2:
        y = conv_api.conv2d(
            x,
            kernel,
            strides=_whole(layer, strides),
            padding=padding,
            data_format=_format(layer, 2),
            dilations=_whole(layer, rates),
        )
    else:
        y = conv_api.convolution(
            x, kernel, padding, strides=strides, dilation_rate=rates, data_format=_format(layer, spatial)
        )
    return _finished(layer, y)


@builds("DepthwiseConv2D")
def depthwise(layer: Layer, x: Tensor) -> Tensor:
    config = layer.config
    y = conv_api.depthwise_conv2d(
        x,
        layer.weight("depthwise_kernel"),
        strides=_whole(layer, _sizes(config.get("strides", 1), 2)),
        padding=str(config.get("padding", "valid")).upper(),
        rate=_sizes(config.get("dilation_rate", 1), 2),
        data_format=_format(layer, 2),
    )
    return _finished(layer, y)


@builds("DepthwiseConv1D")
def depthwise_1d(layer: Layer, x: Tensor) -> Tensor:
    config = layer.config
    if layer.channels_first:
        raise UnsupportedLayer("it has channels first")
    (stride,), (rate,) = _sizes(config.get("strides", 1), 1), _sizes(config.get("dilation_rate", 1), 1)
    kernel = layer.weight("depthwise_kernel")
    padding = str(config.get("padding", "valid")).upper()
    if padding == "CAUSAL":
        x, padding = pads.pad(x, [[0, 0], [rate * (static(kernel, 0) - 1), 0], [0, 0]]), "VALID"
    y = conv_api.depthwise_conv2d(
        shaping.expand_dims(x, 1),
        shaping.expand_dims(kernel, 0),
        strides=[1, stride, stride, 1],
        padding=padding,
        rate=[1, rate],
    )
    return _finished(layer, shaping.squeeze(y, [1]))


@builds("LocallyConnected1D", "LocallyConnected2D")
def locally_connected(layer: Layer, x: Tensor) -> Tensor:
    """A convolution with other weights at each place: the windows side by side, and a product for each."""
    config, spatial = layer.config, int(layer.class_name[-2])
    if layer.channels_first or config.get("implementation", 1) != 1:
        raise UnsupportedLayer("it has channels first, or weights for another implementation")
    kernel = layer.array("kernel")
    strides, sizes = _sizes(config.get("strides", 1), spatial), _sizes(config["kernel_size"], spatial)
    counts = [(static(x, axis + 1) - sizes[axis]) // strides[axis] + 1 for axis in range(spatial)]
    windows = []
    for place in np.ndindex(*counts):
        starts = [n * step for n, step in zip(place, strides, strict=True)]
        spans = [slice(start, start + size) for start, size in zip(starts, sizes, strict=True)]
        windows.append(shaping.reshape(x[(slice(None), *spans)], [-1, kernel.shape[1]]))
    y = matrix_products.matmul(joining.stack(windows), constants.constant(kernel, name="kernel"))
    y = shaping.reshape(shaping.transpose(y, [1, 0, 2]), [-1, *counts, kernel.shape[2]])
    if config.get("use_bias", True):
        y = y + layer.weight("bias")
    return layer.activation(y)


@builds("SeparableConv1D", "SeparableConv2D")
def separable(layer: Layer, x: Tensor) -> Tensor:
    config, spatial = layer.config, int(layer.class_name[-2])
    if layer.channels_first:
        raise UnsupportedLayer("it has channels first")
    strides, rates = _sizes(config.get("strides", 1), spatial), _sizes(config.get("dilation_rate", 1), spatial)
    padding = str(config.get("padding", "valid")).upper()
    first, second = layer.weight("depthwise_kernel"), layer.weight("pointwise_kernel")
    if spatial == 1:
        if padding == "CAUSAL":
            x, padding = pads.pad(x, [[0, 0], [rates[0] * (static(first, 0) - 1), 0], [0, 0]]), "VALID"
        x = shaping.expand_dims(x, 1)
        first, second = shaping.expand_dims(first, 0), shaping.expand_dims(second, 0)
        strides, rates = strides * 2, [1, *rates]
    y = conv_api.separable_conv2d(x, first, second, [1, *strides, 1], padding, rate=rates)
    return _finished(layer, shaping.squeeze(y, [1]) if spatial == 1 else y)


@builds("Conv2DTranspose", "Conv1DTranspose", "Conv3DTranspose")
def transposed(layer: Layer, x: Tensor) -> Tensor:
    config, spatial = layer.config, int(layer.class_name[4])
    if any(rate != 1 for rate in _sizes(config.get("dilation_rate", 1), spatial)):
        raise UnsupportedLayer("it has dilations")
    kernel = layer.weight("kernel")
    strides, padding = _sizes(config.get("strides", 1), spatial), str(config.get("padding", "valid")).upper()
    added = config.get("output_padding")
    axes = _spatial_axes(layer, spatial)
    sizes = []
    for position, (axis, stride) in enumerate(zip(axes, strides, strict=True)):
        size, width = static(x, axis), static(kernel, position)
        if added is not None:
            pad = 0 if padding == "VALID" else width // 2
            sizes.append((size - 1) * stride + width - 2 * pad + _sizes(added, spatial)[position])
        else:
            sizes.append(size * stride + (max(width - stride, 0) if padding == "VALID" else 0))
    batch, channels = shaping.shape(x)[0], static(kernel, spatial)
    dims = [batch, channels, *sizes] if layer.channels_first else [batch, *sizes, channels]
    if spatial == 1:
        if layer.channels_first:
            raise UnsupportedLayer("it has channels first")
        y = conv_api.conv2d_transpose(
            shaping.expand_dims(x, 1),
            shaping.expand_dims(kernel, 0),
            joining.stack([batch, 1, sizes[0], channels]),
            [1, 1, strides[0], 1],
            padding,
        )
        return _finished(layer, shaping.squeeze(y, [1]))
    transpose = conv_api.conv2d_transpose if spatial == 2 else conv_api.conv3d_transpose
    y = transpose(x, kernel, joining.stack(dims), _whole(layer, strides), padding, data_format=_format(layer, spatial))
    return _finished(layer, y)


@builds("MaxPooling1D", "MaxPooling2D", "MaxPooling3D", "AveragePooling1D", "AveragePooling2D", "AveragePooling3D")
def pooling(layer: Layer, x: Tensor) -> Tensor:
    spatial = int(layer.class_name[-2])
    size = layer.config.get("pool_size", layer.config.get("pool_length", 2))
    strides = layer.config.get("strides")
    sizes, steps = _sizes(size, spatial), _sizes(size if strides is None else strides, spatial)
    if spatial == 1 and layer.channels_first:
        raise UnsupportedLayer("it has channels first")
    kind = "MAX" if layer.class_name.startswith("Max") else "AVG"
    padding = str(layer.config.get("padding", "valid")).upper()
    if spatial == 1:
        pool = pool_api.max_pool2d if kind == "MAX" else pool_api.avg_pool2d
        y = pool(shaping.expand_dims(x, 1), [1, 1, *sizes, 1], [1, 1, *steps, 1], padding)
        return shaping.squeeze(y, [1])
    pool = {
        ("MAX", 2): pool_api.max_pool2d,
        ("AVG", 2): pool_api.avg_pool2d,
        ("MAX", 3): pool_api.max_pool3d,
        ("AVG", 3): pool_api.avg_pool3d,
    }[kind, spatial]
    return pool(x, _whole(layer, sizes), _whole(layer, steps), padding, data_format=_format(layer, spatial))


@builds(
    "GlobalMaxPooling1D",
    "GlobalMaxPooling2D",
    "GlobalMaxPooling3D",
    "GlobalAveragePooling1D",
    "GlobalAveragePooling2D",
    "GlobalAveragePooling3D",
)
def global_pooling(layer: Layer, x: Tensor) -> Tensor:
    axes = _spatial_axes(layer, int(layer.class_name[-2]))
    if layer.class_name == "GlobalAveragePooling1D" and layer.mask is not None:
        present = casting.cast(shaping.expand_dims(layer.mask, 1 if layer.channels_first else 2), x.dtype)
        y = reductions.reduce_sum(x * present, axis=axes) / reductions.reduce_sum(present, axis=axes)
        return shaping.expand_dims(y, axes[0]) if layer.config.get("keepdims") else y
    reduce = reductions.reduce_max if "Max" in layer.class_name else reductions.reduce_mean
    return reduce(x, axis=axes, keepdims=bool(layer.config.get("keepdims", False)))


def _pairs(value: Any, spatial: int) -> list[list[int]]:
    """Sizes before and after each dimension; one number or one pair stands for both, or for all."""
    if isinstance(value, int):
        return [[value, value]] * spatial
    if spatial == 1 and not isinstance(value[0], (list, tuple)):
        value = [value]
    return [[each, each] if isinstance(each, int) else [int(n) for n in each] for each in value]


def _with_others(layer: Layer, pairs: list[list[int]]) -> list[list[int]]:
    return [[0, 0], [0, 0], *pairs] if layer.channels_first else [[0, 0], *pairs, [0, 0]]


@builds("ZeroPadding1D", "ZeroPadding2D", "ZeroPadding3D")
def zero_padding(layer: Layer, x: Tensor) -> Tensor:
    pairs = _pairs(layer.config.get("padding", 1), int(layer.class_name[-2]))
    return pads.pad(x, _with_others(layer, pairs))


@builds("Cropping1D", "Cropping2D", "Cropping3D")
def cropping(layer: Layer, x: Tensor) -> Tensor:
    pairs = _with_others(layer, _pairs(layer.config.get("cropping", 1), int(layer.class_name[-2])))
    return x[tuple(slice(before, -after if after else None) for before, after in pairs)]


@builds("UpSampling3D")
def up_sampling_3d(layer: Layer, x: Tensor) -> Tensor:
    for axis, factor in zip(_spatial_axes(layer, 3), _sizes(layer.config.get("size", 2), 3), strict=True):
        parts = joining.split(x, static(x, axis), axis=axis)
        x = joining.concat([part for part in parts for _ in range(factor)], axis)
    return x


@builds("UpSampling1D", "UpSampling2D")
def up_sampling(layer: Layer, x: Tensor) -> Tensor:
    spatial = int(layer.class_name[-2])
    factors = _sizes(layer.config.get("size", 2), spatial)
    if layer.channels_first:
        raise UnsupportedLayer("it has channels first")
    method = layer.config.get("interpolation", "nearest")
    if method not in ("nearest", "bilinear"):
        raise UnsupportedLayer(f"its interpolation is '{method}'")
    if spatial == 1:
        x, factors = shaping.expand_dims(x, 1), [1, *factors]
    sizes = [static(x, axis + 1) * factor for axis, factor in enumerate(factors)]
    y = resize.resize_v2(x, sizes, method=method)
    return shaping.squeeze(y, [1]) if spatial == 1 else y
