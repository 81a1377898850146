"""Attention layers."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from stoker._src.base import dtypes
from stoker._src.graph.tensor import Tensor
from stoker._src.lite.keras.calls import flat
from stoker._src.lite.keras.layers import Layer, UnsupportedLayer, builds, static
from stoker._src.ops.array import casting, constants, shaping
from stoker._src.ops.linalg import matrix_products
from stoker._src.ops.math import comparison, reductions, unary_functions
from stoker._src.ops.nn import bias, softmax

# What Keras subtracts from the scores of positions that are masked.
_LARGE = 1e9


def _causal(rows: int, columns: int) -> Tensor:
    """True where a query may look: at its own position and those before it."""
    return constants.constant(np.tri(rows, columns, dtype=bool)[None], name="causal_mask")


def _all(masks: list[Tensor | None]) -> Tensor | None:
    found: Tensor | None = None
    for each in masks:
        if each is not None:
            each = casting.cast(each, dtypes.bool_)
            found = each if found is None else comparison.logical_and(found, each)
    return found


def _without_masked(scores: Tensor, mask: Tensor | None) -> Tensor:
    if mask is None:
        return scores
    return scores - _LARGE * (1.0 - casting.cast(mask, scores.dtype))


def _given_masks(layer: Layer, count: int) -> list[Tensor | None]:
    """The masks of the inputs: those that the layer is called with, or those that come with its inputs."""
    given = layer.call.kwargs.get("mask")
    masks = list(given) if isinstance(given, list) else list(layer.masks)
    return [*masks, *[None] * count][:count]


@builds("Attention", "AdditiveAttention")
def attention(layer: Layer, inputs: Any) -> Any:
    config, kwargs = layer.config, layer.call.kwargs
    if not isinstance(inputs, list) or len(inputs) not in (2, 3):
        raise UnsupportedLayer("it takes a list of a query, a value and perhaps a key")
    query, value = inputs[:2]
    key = inputs[2] if len(inputs) > 2 else value
    query_mask, value_mask = _given_masks(layer, 2)
    additive = layer.class_name == "AdditiveAttention"
    if additive or config.get("score_mode", "dot") == "concat":
        sums = shaping.expand_dims(query, -2) + shaping.expand_dims(key, -3)
        if additive:
            spread = unary_functions.tanh(sums)
            if config.get("use_scale", True):
                spread = spread * layer.weight("scale")
            scores = reductions.reduce_sum(spread, axis=-1)
        else:
            if config.get("use_scale"):
                sums = sums * layer.weight("scale")
            scores = layer.weight("concat_score_weight") * reductions.reduce_sum(unary_functions.tanh(sums), axis=-1)
    else:
        scores = matrix_products.matmul(query, key, transpose_b=True)
        if config.get("use_scale"):
            scores = scores * layer.weight("scale")
    allowed = [None if value_mask is None else shaping.expand_dims(value_mask, -2)]
    if config.get("causal") or kwargs.get("use_causal_mask"):
        allowed.append(_causal(static(scores, -2), static(scores, -1)))
    weights = softmax.softmax(_without_masked(scores, _all(allowed)))
    result = matrix_products.matmul(weights, value)
    if query_mask is not None:
        result = result * casting.cast(shaping.expand_dims(query_mask, -1), result.dtype)
    return [result, weights] if kwargs.get("return_attention_scores") else result


_PLACES = ("query", "value", "key")


@builds("MultiHeadAttention")
def multi_head_attention(layer: Layer, inputs: Any) -> Any:
    config, kwargs = layer.config, layer.call.kwargs
    given: dict[str, Any] = dict(zip(_PLACES, flat(layer.call.args), strict=False))
    given |= {name: kwargs[name] for name in _PLACES if kwargs.get(name) is not None}
    if "value" not in given:
        raise UnsupportedLayer("it is called without a value")
    query, value = given["query"], given["value"]
    key = given.get("key", value)
    for tensor in (query, key, value):
        if tensor.static_shape.rank != 3:
            raise UnsupportedLayer(f"it attends in a tensor of the shape {tensor.shape}")
    unusual = [name for name in ("use_gate", "sliding_window") if config.get(name)]
    if unusual:
        raise UnsupportedLayer(f"it has the settings {unusual}")
    heads, size = int(config["num_heads"]), int(config["key_dim"])
    q = _split(layer, "query", query, heads, 1 / math.sqrt(size))
    k, v = _split(layer, "key", key, heads), _split(layer, "value", value, heads)
    scores = matrix_products.matmul(q, k, transpose_b=True)
    weights = softmax.softmax(_without_masked(scores, _attention_mask(layer, given, query, key)))
    result = shaping.transpose(matrix_products.matmul(weights, v), [0, 2, 1, 3])
    steps, width = static(query, 1), static(v, 3)
    kernel, offset = _projection(layer, ("attention_output", "output_dense", "_output_dense"))
    # The output may have several dimensions.
    made = kernel.shape[2:]
    y = _product(shaping.reshape(result, [-1, steps, heads * width]), kernel.reshape(heads * width, -1), offset)
    if len(made) > 1:
        y = shaping.reshape(y, [-1, steps, *made])
    return [y, weights] if kwargs.get("return_attention_scores") else y


def _attention_mask(layer: Layer, given: dict[str, Tensor], query: Tensor, key: Tensor) -> Tensor | None:
    kwargs = layer.call.kwargs
    named = {name: kwargs.get(f"{name}_mask") for name in _PLACES}
    known = {} if layer.models is None else layer.models.masks
    implicit = {name: known.get(tensor) for name, tensor in given.items()}
    masks = {name: named[name] if named[name] is not None else implicit.get(name) for name in _PLACES}
    allowed: list[Tensor | None] = []
    if masks["query"] is not None:
        allowed.append(shaping.expand_dims(masks["query"], -1))
    for name in ("value", "key"):
        if masks[name] is not None:
            allowed.append(shaping.expand_dims(masks[name], -2))
    if kwargs.get("use_causal_mask"):
        allowed.append(_causal(static(query, 1), static(key, 1)))
    explicit = kwargs.get("attention_mask")
    allowed.append(explicit)
    mask = _all(allowed)
    # One dimension for the heads, unless the caller's mask has it.
    return shaping.expand_dims(mask, 1) if mask is not None and mask.static_shape.rank == 3 else mask


def _projection(layer: Layer, names: tuple[str, ...]) -> tuple[np.ndarray, np.ndarray | None]:
    """The kernel and the bias of a projection. Files name it by its layer, archives by the attribute that holds the layer."""
    found = {}
    for path, value in layer.arrays.items():
        *parents, last = [part for part in path.split("/") if part != "vars"]
        if parents and parents[-1] in names:
            found[{"0": "kernel", "1": "bias"}.get(last, last)] = value
    if "kernel" not in found:
        raise UnsupportedLayer(f"the file has no weight '{names[0]}/kernel' for it, only {sorted(layer.arrays)}")
    return found["kernel"], found.get("bias")


def _split(layer: Layer, name: str, x: Tensor, heads: int, factor: float = 1.0) -> Tensor:
    """A projection of [batch, time, features] to [batch, heads, time, size]."""
    kernel, offset = _projection(layer, (name, f"{name}_dense", f"_{name}_dense"))
    width = kernel.shape[-1]
    y = _product(x, kernel.reshape(kernel.shape[0], -1) * np.float32(factor), offset, factor)
    return shaping.transpose(shaping.reshape(y, [-1, static(x, 1), heads, width]), [0, 2, 1, 3])


def _product(x: Tensor, kernel: np.ndarray, offset: np.ndarray | None, factor: float = 1.0) -> Tensor:
    """A product over the last dimension."""
    steps = static(x, 1)
    flat_x = shaping.reshape(x, [-1, kernel.shape[0]])
    y = matrix_products.matmul(flat_x, constants.constant(np.ascontiguousarray(kernel), name="kernel"))
    if offset is not None:
        y = bias.bias_add(y, constants.constant(offset.reshape(-1) * np.float32(factor), name="bias"))
    return shaping.reshape(y, [-1, steps, kernel.shape[1]])
