"""NumPy references for windows: written as plain loops over output positions, straight from the definitions."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

Pairs = Sequence[tuple[int, int]]


def paddings(
    sizes: Sequence[int], kernel: Sequence[int], strides: Sequence[int], rates: Sequence[int], padding: Any
) -> Pairs:
    """Padding before and after along each spatial dimension; `padding` is SAME, VALID or explicit pairs."""
    if padding == "VALID":
        return [(0, 0)] * len(sizes)
    if padding != "SAME":
        return padding
    pairs = []
    for size, k, stride, rate in zip(sizes, kernel, strides, rates):
        outputs = -(-size // stride)
        missing = max((outputs - 1) * stride + (k - 1) * rate + 1 - size, 0)
        pairs.append((missing // 2, missing - missing // 2))
    return pairs


def output_sizes(
    sizes: Sequence[int], kernel: Sequence[int], strides: Sequence[int], rates: Sequence[int], pads: Pairs
) -> list[int]:
    return [
        (size + sum(pad) - ((k - 1) * rate + 1)) // stride + 1
        for size, k, stride, rate, pad in zip(sizes, kernel, strides, rates, pads)
    ]


def convolution(
    x: np.ndarray, filter: np.ndarray, strides: Sequence[int], padding: Any, rates: Sequence[int] | None = None
) -> np.ndarray:
    """Channels-last convolution; the input's channels may be a multiple (groups) of the filter's."""
    spatial = x.ndim - 2
    rates = rates or [1] * spatial
    kernel = filter.shape[:spatial]
    pads = paddings(x.shape[1:-1], kernel, strides, rates, padding)
    outputs = output_sizes(x.shape[1:-1], kernel, strides, rates, pads)
    padded = np.pad(x, [(0, 0), *pads, (0, 0)])
    groups = x.shape[-1] // filter.shape[-2]
    width = filter.shape[-2]
    per_group = filter.shape[-1] // groups
    result = np.zeros((x.shape[0], *outputs, filter.shape[-1]), x.dtype)
    for position in itertools.product(*map(range, outputs)):
        for offset in itertools.product(*map(range, kernel)):
            at = tuple(p * s + o * r for p, s, o, r in zip(position, strides, offset, rates))
            for group in range(groups):
                result[(slice(None), *position, slice(group * per_group, (group + 1) * per_group))] += (
                    padded[(slice(None), *at, slice(group * width, (group + 1) * width))]
                    @ filter[(*offset, slice(None), slice(group * per_group, (group + 1) * per_group))]
                )
    return result


def depthwise(x: np.ndarray, filter: np.ndarray, strides: Sequence[int], padding: Any, rates: Any = None) -> np.ndarray:
    height, width, channels, multiplier = filter.shape
    return convolution(x, filter.reshape(height, width, 1, channels * multiplier), strides, padding, rates)


def pooling(
    x: np.ndarray, kernel: Sequence[int], strides: Sequence[int], padding: Any, reduce: Callable[..., Any]
) -> np.ndarray:
    """`reduce` of the elements of each window that lie inside a channels-last input."""
    ones = [1] * len(kernel)
    pads = paddings(x.shape[1:-1], kernel, strides, ones, padding)
    outputs = output_sizes(x.shape[1:-1], kernel, strides, ones, pads)
    result = np.zeros((x.shape[0], *outputs, x.shape[-1]), x.dtype)
    for position in itertools.product(*map(range, outputs)):
        window = tuple(
            slice(max(p * s - pad[0], 0), p * s - pad[0] + k) for p, s, k, pad in zip(position, strides, kernel, pads)
        )
        part = x[(slice(None), *window, slice(None))]
        result[(slice(None), *position, slice(None))] = reduce(part, axis=tuple(range(1, x.ndim - 1)))
    return result


def to_front(x: np.ndarray) -> np.ndarray:
    """Channels last to channels first."""
    return np.moveaxis(x, -1, 1)


def to_back(x: np.ndarray) -> np.ndarray:
    return np.moveaxis(x, 1, -1)
