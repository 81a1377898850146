"""The masks that layers pass on: a boolean for each time step of a sequence, False where the step is padding.

Keras attaches a mask to the output of a layer such as `Masking` and hands it to the layers behind it. A layer that has no rule here drops the mask.
"""

from __future__ import annotations

import functools
from typing import Any

from stoker._src.base import dtypes
from stoker._src.graph.tensor import Tensor
from stoker._src.lite.keras.layers import Layer, builds
from stoker._src.ops.array import casting, joining, shaping
from stoker._src.ops.math import comparison, reductions

# The mask of the first input is that of the output.
PASSED_ON = frozenset(
    {
        "Activation",
        "ActivityRegularization",
        "AdditiveAttention",
        "AlphaDropout",
        "Attention",
        "BatchNormalization",
        "BatchNormalizationV1",
        "BatchNormalizationV2",
        "Dense",
        "Dropout",
        "ELU",
        "GaussianDropout",
        "GaussianNoise",
        "Identity",
        "Lambda",
        "LayerNormalization",
        "LeakyReLU",
        "MultiHeadAttention",
        "PReLU",
        "ReLU",
        "Softmax",
        "SpatialDropout1D",
        "ThresholdedReLU",
        "TimeDistributed",
        "UnitNormalization",
    }
)
RECURRENT = frozenset({"LSTM", "GRU", "SimpleRNN", "RNN", "Bidirectional", "ConvLSTM1D", "ConvLSTM2D", "ConvLSTM3D"})
_MERGING = frozenset({"Add", "Multiply", "Maximum", "Minimum", "Subtract", "Average"})


@builds("Masking")
def masking(layer: Layer, x: Tensor) -> Tensor:
    return x * casting.cast(shaping.expand_dims(_present(layer, x), -1), x.dtype)


def _present(layer: Layer, x: Tensor) -> Tensor:
    return reductions.reduce_any(comparison.not_equal(x, layer.number("mask_value")), axis=-1)


def output_mask(layer: Layer, inputs: list[Tensor]) -> Tensor | None:
    """The mask of a layer's output."""
    kind = layer.class_name
    if kind == "Masking":
        return _present(layer, inputs[0])
    if kind == "Embedding":
        zero = comparison.not_equal(casting.cast(inputs[0], dtypes.int32), 0)
        return zero if layer.config.get("mask_zero") else None
    if kind == "Lambda":
        return None if not layer.masks else layer.masks[0]
    if kind in PASSED_ON:
        return layer.mask
    if kind in RECURRENT:
        settings = layer.config["layer"]["config"] if kind == "Bidirectional" else layer.config
        return layer.mask if settings.get("return_sequences") else None
    if kind in _MERGING:
        return _merged(layer)
    if kind == "Concatenate":
        return _joined(layer, inputs)
    return None


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
