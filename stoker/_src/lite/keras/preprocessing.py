"""Layers that prepare inputs, other normalizations, and products with an equation."""

from __future__ import annotations

from typing import Any

import numpy as np

from stoker._src.base import dtypes
from stoker._src.graph.tensor import Tensor
from stoker._src.image import resize
from stoker._src.lite.keras.layers import Layer, UnsupportedLayer, builds, static
from stoker._src.ops.array import casting, constants, selection, shaping
from stoker._src.ops.linalg import einsum
from stoker._src.ops.math import arithmetic, reductions, unary_functions
from stoker._src.ops.resources import tables


@builds("EinsumDense")
def einsum_dense(layer: Layer, x: Tensor) -> Tensor:
    y = einsum.einsum(layer.config["equation"], x, layer.weight("kernel"))
    if layer.config.get("bias_axes"):
        y = y + layer.weight("bias")
    return layer.activation(y)


@builds("Normalization")
def normalization(layer: Layer, x: Tensor) -> Tensor:
    """Mean and variance are settings, or they were learned and are weights."""
    config = layer.config
    if config.get("mean") is not None:
        mean, variance = np.asarray(config["mean"], np.float32), np.asarray(config["variance"], np.float32)
    else:
        mean, variance = layer.array("mean"), layer.array("variance")
    rank = x.static_shape.rank or 0
    axis = config.get("axis", -1)
    axes = [] if axis is None else [int(n) % rank for n in (axis if isinstance(axis, (list, tuple)) else [axis])]
    along = [static(x, each) if each in axes else 1 for each in range(rank)]
    mean, deviation = (each.reshape(along).astype(np.float32) for each in (mean, np.sqrt(variance)))
    deviation = np.maximum(deviation, np.float32(1e-7))
    x = casting.cast(x, dtypes.float32)
    if config.get("invert"):
        return x * constants.constant(deviation) + constants.constant(mean)
    return (x - constants.constant(mean, name="mean")) / constants.constant(deviation, name="deviation")


@builds("UnitNormalization")
def unit_normalization(layer: Layer, x: Tensor) -> Tensor:
    axis = layer.config.get("axis", -1)
    square = reductions.reduce_sum(x * x, axis=axis, keepdims=True)
    return x * unary_functions.rsqrt(arithmetic.maximum(square, 1e-12))


@builds("GroupNormalization")
def group_normalization(layer: Layer, x: Tensor) -> Tensor:
    rank = x.static_shape.rank or 0
    axis = int(layer.config.get("axis", -1)) % rank
    if axis != rank - 1:
        raise UnsupportedLayer(f"it normalizes dimension {axis} of {rank}")
    channels, groups = static(x, axis), int(layer.config.get("groups", 32))
    groups = channels if groups == -1 else groups
    sizes = [static(x, each) for each in range(1, rank)]
    parts = shaping.reshape(x, [-1, *sizes[:-1], groups, channels // groups])
    axes = [*range(1, rank - 1), rank]
    mean = reductions.reduce_mean(parts, axis=axes, keepdims=True)
    variance = reductions.reduce_mean(arithmetic.squared_difference(parts, mean), axis=axes, keepdims=True)
    scaled = (parts - mean) * unary_functions.rsqrt(variance + layer.number("epsilon", default=1e-3))
    y = shaping.reshape(scaled, [-1, *sizes])
    y = y * layer.weight("gamma") if layer.config.get("scale", True) else y
    return y + layer.weight("beta") if layer.config.get("center", True) else y


@builds("RMSNormalization")
def rms_normalization(layer: Layer, x: Tensor) -> Tensor:
    axis = layer.config.get("axis", -1)
    square = reductions.reduce_mean(x * x, axis=axis, keepdims=True)
    return x * unary_functions.rsqrt(square + layer.number("epsilon", default=1e-6)) * layer.weight("scale")


# ---- images ---------------------------------------------------------------------------------------------------------------


@builds("Resizing")
def resizing(layer: Layer, x: Tensor) -> Tensor:
    config = layer.config
    unusual = [name for name in ("crop_to_aspect_ratio", "pad_to_aspect_ratio", "antialias") if config.get(name)]
    if unusual or layer.channels_first:
        raise UnsupportedLayer(f"it has the settings {unusual or ['channels_first']}")
    return resize.resize_v2(
        x, [int(config["height"]), int(config["width"])], method=config.get("interpolation", "bilinear")
    )


@builds("CenterCrop")
def center_crop(layer: Layer, x: Tensor) -> Tensor:
    if layer.channels_first or x.static_shape.rank != 4:
        raise UnsupportedLayer(f"its input has the shape {x.shape}, and must be a batch of images with channels last")
    height, width = int(layer.config["height"]), int(layer.config["width"])
    top, left = (static(x, 1) - height) // 2, (static(x, 2) - width) // 2
    if top < 0 or left < 0:
        raise UnsupportedLayer(f"it enlarges an image of the shape {x.shape}")
    return casting.cast(x[:, top : top + height, left : left + width], dtypes.float32)


@builds(
    "RandomFlip",
    "RandomRotation",
    "RandomTranslation",
    "RandomZoom",
    "RandomContrast",
    "RandomBrightness",
)
def random_image(layer: Layer, x: Tensor) -> Tensor:
    """Nothing is random when a model is used."""
    return shaping.identity(x)


# ---- categories -------------------------------------------------------------------------------------------------------------


@builds("StringLookup", "IntegerLookup")
def lookup(layer: Layer, x: Tensor) -> Tensor:
    """Numbers of terms, by a table. Terms that are not in it share one number."""
    config = layer.config
    vocabulary = config.get("vocabulary")
    unusual = {
        "invert": bool(config.get("invert")),
        f"output_mode={config.get('output_mode')!r}": config.get("output_mode", "int") != "int",
        f"num_oov_indices={config.get('num_oov_indices')}": config.get("num_oov_indices", 1) not in (0, 1),
        "vocabulary in a file": not isinstance(vocabulary, (list, tuple)),
    }
    found = [name for name, is_set in unusual.items() if is_set]
    if found:
        raise UnsupportedLayer(f"it has the settings {found}")
    assert isinstance(vocabulary, (list, tuple))
    strings = layer.class_name == "StringLookup"
    mask, unknown = config.get("mask_token"), int(config.get("num_oov_indices", 1))
    first = unknown + (mask is not None)
    special = {mask, config.get("oov_token")}
    terms = [each for each in vocabulary if each not in special]
    pairs = [(mask, 0)] if mask is not None else []
    pairs += [(each, first + number) for number, each in enumerate(terms)]
    keys: list[Any] = [each for each, _ in pairs]
    kind = dtypes.string if strings else dtypes.int64
    table = tables.StaticHashTable(
        tables.KeyValueTensorInitializer(
            constants.constant(keys, kind), constants.constant([number for _, number in pairs], dtypes.int64)
        ),
        (mask is not None) if unknown else -1,
    )
    return table.lookup(x if strings else casting.cast(x, dtypes.int64))


@builds("CategoryEncoding")
def category_encoding(layer: Layer, x: Tensor) -> Tensor:
    mode, count = layer.config.get("output_mode", "multi_hot"), int(layer.config["num_tokens"])
    hot = selection.one_hot(casting.cast(x, dtypes.int32), count)
    if mode == "one_hot":
        return shaping.squeeze(hot, [-2]) if x.static_shape[-1] == 1 else hot
    if mode == "multi_hot":
        return reductions.reduce_max(hot, axis=-2)
    if mode == "count":
        return reductions.reduce_sum(hot, axis=-2)
    raise UnsupportedLayer(f"its output_mode is '{mode}'")
