"""Products, normalization, shapes and layers that merge several inputs."""

from __future__ import annotations

import functools
from dataclasses import replace
from typing import Any

import numpy as np

from stoker._src.base import dtypes
from stoker._src.formats.keras_files import is_model
from stoker._src.graph.tensor import Tensor
from stoker._src.lite.keras.calls import Call
from stoker._src.lite.keras.layers import LAYERS, Layer, UnsupportedLayer, builds, static
from stoker._src.ops.array import casting, constants, gathering, joining, shaping
from stoker._src.ops.linalg import einsum, matrix_products
from stoker._src.ops.math import arithmetic, reductions, unary_functions
from stoker._src.ops.nn import batch_norm, bias


@builds("Dense")
def dense(layer: Layer, x: Tensor) -> Tensor:
    kernel = layer.weight("kernel")
    y = matrix_products.matmul(x, kernel) if x.static_shape.rank == 2 else einsum.tensordot(x, kernel, 1)
    if layer.config.get("use_bias", True):
        y = bias.bias_add(y, layer.weight("bias"))
    return layer.activation(y)


@builds("Embedding")
def embedding(layer: Layer, x: Tensor) -> Tensor:
    return gathering.gather(layer.weight("embeddings"), casting.cast(x, dtypes.int32))


def _one_axis(layer: Layer, rank: int) -> int:
    axis = layer.config.get("axis", -1)
    axes = [int(each) % rank for each in (axis if isinstance(axis, (list, tuple)) else [axis])]
    if len(axes) != 1:
        raise UnsupportedLayer(f"it normalizes several axes: {axes}")
    return axes[0]


@builds("BatchNormalization", "BatchNormalizationV1", "BatchNormalizationV2", "SyncBatchNormalization")
def batch_normalization(layer: Layer, x: Tensor) -> Tensor:
    rank = x.static_shape.rank or 0
    axis = _one_axis(layer, rank)
    mean, variance = layer.array("moving_mean"), layer.array("moving_variance")
    gamma = layer.array("gamma") if layer.config.get("scale", True) else np.ones_like(mean)
    beta = layer.array("beta") if layer.config.get("center", True) else np.zeros_like(mean)
    epsilon = layer.number("epsilon", default=1e-3)
    if rank == 4 and axis in (1, 3):
        form = "NCHW" if axis == 1 else "NHWC"
        return batch_norm.fused_batch_norm(
            x, gamma, beta, mean, variance, epsilon=epsilon, data_format=form, is_training=False
        )[0]
    factor = gamma / np.sqrt(variance + np.float32(epsilon))
    along = [-1 if each == axis else 1 for each in range(rank)]
    factor, offset = (np.reshape(each, along).astype(np.float32) for each in (factor, beta - mean * factor))
    return x * constants.constant(factor, name="factor") + constants.constant(offset, name="offset")


@builds("LayerNormalization")
def layer_normalization(layer: Layer, x: Tensor) -> Tensor:
    rank = x.static_shape.rank or 0
    axis = layer.config.get("axis", -1)
    axes = sorted(int(each) % rank for each in (axis if isinstance(axis, (list, tuple)) else [axis]))
    if layer.config.get("rms_scaling"):
        raise UnsupportedLayer("it scales by the root mean square")
    mean = reductions.reduce_mean(x, axis=axes, keepdims=True)
    variance = reductions.reduce_mean(arithmetic.squared_difference(x, mean), axis=axes, keepdims=True)
    y = (x - mean) * unary_functions.rsqrt(variance + layer.number("epsilon", default=1e-3))
    along = [static(x, each) if each in axes else 1 for each in range(rank)]
    if layer.config.get("scale", True):
        y = y * shaping.reshape(layer.weight("gamma"), along)
    return y + shaping.reshape(layer.weight("beta"), along) if layer.config.get("center", True) else y


@builds("Rescaling")
def rescaling(layer: Layer, x: Tensor) -> Tensor:
    x = casting.cast(x, dtypes.float32)
    return x * np.float32(layer.config.get("scale", 1.0)) + np.float32(layer.config.get("offset", 0.0))


# ---- shapes ---------------------------------------------------------------------------------------------------------


def _reshaped(x: Tensor, sizes: list[int]) -> Tensor:
    """Reshapes each example. One size may be -1, and the batch may have any size."""
    batch = x.static_shape[0]
    known = x.static_shape[1:]
    if -1 in sizes and None not in known:
        rest = -int(np.prod(sizes))
        sizes = [int(np.prod(known)) // max(rest, 1) if each == -1 else each for each in sizes]
    if -1 not in sizes:
        return shaping.reshape(x, [-1 if batch is None else batch, *sizes])
    return shaping.reshape(x, joining.stack([shaping.shape(x)[0], *sizes]))


@builds("Flatten")
def flatten(layer: Layer, x: Tensor) -> Tensor:
    rank = x.static_shape.rank or 0
    if layer.channels_first and rank > 2:
        x = shaping.transpose(x, [0, *range(2, rank), 1])
    return shaping.reshape(x, [-1, 1]) if rank == 1 else _reshaped(x, [-1])


@builds("Reshape")
def reshape(layer: Layer, x: Tensor) -> Tensor:
    return _reshaped(x, [int(each) for each in layer.config["target_shape"]])


@builds("Permute")
def permute(layer: Layer, x: Tensor) -> Tensor:
    return shaping.transpose(x, [0, *(int(each) for each in layer.config["dims"])])


@builds("RepeatVector")
def repeat_vector(layer: Layer, x: Tensor) -> Tensor:
    return joining.tile(shaping.expand_dims(x, 1), [1, int(layer.config["n"]), 1])


# ---- several inputs ---------------------------------------------------------------------------------------------------


def _several(layer: Layer, inputs: Any, least: int = 2) -> list[Tensor]:
    if not isinstance(inputs, list) or len(inputs) < least:
        raise UnsupportedLayer(
            f"it merges {least} inputs or more, and has {len(inputs) if isinstance(inputs, list) else 1}"
        )
    # Inputs of lower rank get dimensions after the batch.
    rank = max(each.static_shape.rank or 0 for each in inputs)
    found = []
    for each in inputs:
        for _ in range(rank - (each.static_shape.rank or 0)):
            each = shaping.expand_dims(each, 1)
        found.append(each)
    return found


@builds("Add", "Multiply", "Maximum", "Minimum", "Subtract", "Average")
def merged(layer: Layer, inputs: Any) -> Tensor:
    tensors = _several(layer, inputs)
    combine = {
        "Multiply": lambda a, b: a * b,
        "Maximum": arithmetic.maximum,
        "Minimum": arithmetic.minimum,
        "Subtract": lambda a, b: a - b,
    }.get(layer.class_name, lambda a, b: a + b)
    y = functools.reduce(combine, tensors)
    return y * (1.0 / len(tensors)) if layer.class_name == "Average" else y


@builds("Concatenate")
def concatenate(layer: Layer, inputs: Any) -> Tensor:
    return joining.concat(inputs if isinstance(inputs, list) else [inputs], int(layer.config.get("axis", -1)))


@builds("Dot")
def dot(layer: Layer, inputs: Any) -> Tensor:
    first, second = _several(layer, inputs)
    axes = layer.config["axes"]
    one, other = [axes, axes] if isinstance(axes, int) else [int(each) for each in axes]
    ranks = [each.static_shape.rank or 0 for each in (first, second)]
    one, other = one % ranks[0], other % ranks[1]
    if layer.config.get("normalize"):
        first, second = (
            each
            * unary_functions.rsqrt(
                arithmetic.maximum(reductions.reduce_sum(each * each, axis=axis, keepdims=True), 1e-12)
            )
            for each, axis in ((first, one), (second, other))
        )
    if ranks == [2, 2]:
        return reductions.reduce_sum(first * second, axis=1, keepdims=True)
    if ranks != [3, 3]:
        raise UnsupportedLayer(f"its inputs have {ranks[0]} and {ranks[1]} dimensions")
    return matrix_products.matmul(first, second, transpose_a=one == 1, transpose_b=other == 2)


# ---- layers around layers -----------------------------------------------------------------------------------------------


@builds("TimeDistributed")
def time_distributed(layer: Layer, x: Tensor) -> Tensor:
    inner = layer.config["layer"]
    kind = inner["class_name"]
    if kind not in LAYERS and not is_model(inner):
        raise UnsupportedLayer(f"it applies a layer of the class {kind}")
    steps = static(x, 1)
    sizes = [static(x, axis) for axis in range(2, x.static_shape.rank or 0)]
    each = shaping.reshape(x, [-1, *sizes])
    if is_model(inner):
        assert layer.models is not None
        y = layer.models.inner_model(inner, layer.arrays, each)
    else:
        y = LAYERS[kind](replace(layer.part(kind, inner["config"]), call=Call([each]), masks=[]), each)
    made = [static(y, axis) for axis in range(1, y.static_shape.rank or 0)]
    return shaping.reshape(y, [-1, steps, *made])
