"""The masks of layers that `tf.keras` does not compute here, and of merged inputs, about which versions of Keras differ.

A mask is a boolean for each time step of a sequence, False where the step is padding.
"""

from __future__ import annotations

import functools
from typing import Any

from stoker._src.base import dtypes
from stoker._src.graph.tensor import Tensor
from stoker._src.lite.keras.layers import Layer
from stoker._src.ops.array import joining, shaping
from stoker._src.ops.math import comparison

_RECURRENT = frozenset({"LSTM", "GRU", "SimpleRNN", "RNN", "Bidirectional", "ConvLSTM2D"})
_MERGING = frozenset({"Add", "Multiply", "Maximum", "Minimum", "Subtract", "Average"})


def output_mask(layer: Layer, inputs: list[Tensor], own: Any) -> Tensor | None:
    """The mask of a layer's output. `own` is what the layer of `tf.keras` says."""
    kind = layer.class_name
    if kind == "Lambda":
        return None if not layer.masks else layer.masks[0]
    if kind == "TimeDistributed":
        return layer.mask
    if kind in _RECURRENT:
        settings = layer.config["layer"]["config"] if kind == "Bidirectional" else layer.config
        return layer.mask if settings.get("return_sequences") else None
    if kind in _MERGING:
        return _merged(layer)
    if kind == "Concatenate":
        return _joined(layer, inputs)
    return own


def _merged(layer: Layer) -> Tensor | None:
    """The steps that all inputs have, or in Keras 3 those that any input has. There, an input without a mask has all."""
    masks = [each for each in layer.masks if each is not None]
    if not masks or (layer.is_keras_3 and len(masks) < len(layer.masks)):
        return None
    combine = comparison.logical_or if layer.is_keras_3 else comparison.logical_and
    return functools.reduce(combine, masks)


def _joined(layer: Layer, inputs: list[Tensor]) -> Tensor | None:
    """The mask of a concatenation: steps of one input after those of another, or steps that all inputs have."""
    if not any(each is not None for each in layer.masks):
        return None
    rank = inputs[0].static_shape.rank or 0
    axis = int(layer.config.get("axis", -1)) % max(rank, 1)
    if axis != 1:
        return _merged(layer)
    masks: list[Any] = []
    for tensor, mask in zip(inputs, layer.masks, strict=True):
        masks.append(shaping.ones_like(tensor[:, :, 0], dtypes.bool_) if mask is None else mask)
    return joining.concat(masks, 1)
