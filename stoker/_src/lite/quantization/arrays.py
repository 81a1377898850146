"""Constants in fewer bits."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from stoker._src.lite.model import Quantization, Tensor, numpy_dtype
from stoker._src.lite.quantization.schemes import limits, parameters

_PART = 1 << 20


def stored(values: np.ndarray, quantization: Quantization, type_name: str) -> np.ndarray:
    """Real values as a tensor of `type_name` stores them."""
    assert quantization.scale is not None and quantization.zero_point is not None
    scale, zero = quantization.scale.astype(np.float64), quantization.zero_point.astype(np.float64)
    if len(scale) > 1:
        shape = [1] * values.ndim
        shape[quantization.axis] = -1
        scale, zero = scale.reshape(shape), zero.reshape(shape)
    smallest, largest = limits(type_name)
    dtype = numpy_dtype(type_name)
    assert dtype is not None
    made = np.empty(values.shape, dtype)
    for part in _parts(values):
        factors = [each[part] if each.ndim and each.shape[0] > 1 else each for each in (scale, zero)]
        made[part] = np.clip(np.round(values[part].astype(np.float64) / factors[0] + factors[1]), smallest, largest)
    return made


def _parts(values: np.ndarray) -> Iterator[Any]:
    """Slices of an array of a million elements or so: arithmetic in float64 on all of it would take many times its memory."""
    if values.size <= _PART:
        yield ...
        return
    rows = max(1, _PART * values.shape[0] // values.size)
    for first in range(0, values.shape[0], rows):
        yield slice(first, first + rows)


def _magnitude(values: np.ndarray, axis: int | None) -> np.ndarray:
    """The largest absolute value, of all or of each slice along `axis`."""
    over = None if axis is None else tuple(n for n in range(values.ndim) if n != axis)
    high = np.atleast_1d(values.max(axis=over, initial=0.0))
    return np.maximum(high, -np.atleast_1d(values.min(axis=over, initial=0.0))).astype(np.float32)


def symmetric_weights(tensor: Tensor, axis: int | None, bound: float | None = None) -> Tensor:
    """Weights in 8 bits from -127 to 127, with one scale, or one for each slice along `axis`. `bound` is the largest value, if it is given."""
    assert tensor.data is not None
    if bound is not None:
        axis, largest = None, np.array([bound])
    else:
        largest = _magnitude(tensor.data, axis)
    # Channels that are zero, or so small that the quotient would overflow, are stored as zeros.
    scale = np.maximum(largest / 127, np.finfo(np.float32).tiny).astype(np.float32)
    scale[largest == 0] = 1.0
    quantization = Quantization(scale, np.zeros(len(scale), np.int64), axis or 0)
    values = stored(tensor.data, quantization, "INT8")
    return Tensor(tensor.name, "INT8", tensor.shape, np.maximum(values, -127, out=values), quantization)


def ranged_weights(tensor: Tensor, low: float, high: float, type_name: str, narrow: bool) -> Tensor:
    """Weights in 8 bits with the range that training used."""
    assert tensor.data is not None
    quantization = parameters(low, high, type_name, narrow=narrow)
    return Tensor(tensor.name, type_name, tensor.shape, stored(tensor.data, quantization, type_name), quantization)


def bias(tensor: Tensor, input_scale: np.ndarray, weight_scale: np.ndarray, type_name: str) -> Tensor:
    """A bias in the scale of the sums that it is added to."""
    assert tensor.data is not None
    scale = (input_scale.astype(np.float64)[0] * weight_scale.astype(np.float64)).astype(np.float32)
    quantization = Quantization(scale, np.zeros(len(scale), np.int64), 0)
    wide = np.maximum(scale.astype(np.float64), np.finfo(np.float64).tiny)
    dtype = numpy_dtype(type_name)
    assert dtype is not None
    # Half of the range is left for the sum. A mask of -1e9 or minus infinity still lies below all that the result can store.
    largest = (limits(type_name)[1] + 1) // 2
    values = np.clip(np.round(tensor.data.astype(np.float64) / wide), -largest, largest)
    return Tensor(tensor.name, type_name, tensor.shape, values.astype(dtype), quantization)
