"""Isotonic regression: the nearest monotonic sequence."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from stoker._src.base import dtypes
from stoker._src.base.dtypes import FLOATS, REAL, DType
from stoker._src.base.export import export
from stoker._src.graph.conversion import convert_to_tensor
from stoker._src.graph.definition import define, one_of
from stoker._src.graph.tensor import Operation, Tensor
from stoker._src.ops.array import casting, gathering, joining, ranges, shaping
from stoker._src.ops.math import arithmetic, reductions, segment_reductions, unary_functions
from stoker._src.ops.support.values import torch_dtype

ISOTONIC_REGRESSION = define(
    "IsotonicRegression(input: T) -> (output: output_dtype, segments: int32)",
    T=REAL,
    output_dtype=one_of(*FLOATS, default=dtypes.float32),
)


ISOTONIC_REGRESSION.shape(lambda input: (input, input))


def _pooled(row: list[float]) -> list[tuple[float, int]]:
    """The runs (mean, length) of the nearest sequence that never rises: neighbours that rise are averaged."""
    blocks: list[tuple[float, int]] = []  # sum and count
    for value in row:
        total, count = value, 1
        while blocks and blocks[-1][0] * count < total * blocks[-1][1]:
            before, many = blocks.pop()
            total, count = before + total, many + count
        blocks.append((total, count))
    return [(total / count, count) for total, count in blocks]


@ISOTONIC_REGRESSION.kernel
def isotonic_regression_kernel(input: torch.Tensor, *, output_dtype: DType) -> tuple[torch.Tensor, torch.Tensor]:
    width = input.shape[-1] if input.ndim else 1
    rows = input.reshape(-1, width) if input.numel() else input.reshape(0, max(width, 1))
    values, numbers = np.empty(rows.shape), np.empty(rows.shape, np.int32)
    for i, row in enumerate(rows.to(torch.float64).tolist()):
        means, counts = zip(*_pooled(row))
        values[i] = np.repeat(means, counts)
        numbers[i] = np.repeat(np.arange(len(counts)), counts)
    found = torch.from_numpy(values).to(torch_dtype(output_dtype)).reshape(input.shape)
    return found.to(input.device), torch.from_numpy(numbers).reshape(input.shape)


@ISOTONIC_REGRESSION.grad
def isotonic_regression_grad(op: Operation, g: Tensor, _: Any) -> Tensor:
    """Each run passes the mean of its gradients."""
    segments = op.outputs[1]
    sizes = shaping.shape(segments)
    width, rows = sizes[-1], reductions.reduce_prod(sizes[:-1])
    flat = shaping.reshape(segments, joining.PACK([rows, width]))
    starts = arithmetic.multiply(ranges.range(rows), width)
    places = shaping.reshape(arithmetic.add(flat, shaping.reshape(starts, [-1, 1])), [-1])
    slopes, count = shaping.reshape(g, [-1]), ranges.SIZE(segments)
    sums = segment_reductions.UNSORTED_SEGMENT_SUM(slopes, places, count)
    counts = segment_reductions.UNSORTED_SEGMENT_SUM(shaping.ones_like(slopes), places, count)
    mean = arithmetic.divide(sums, arithmetic.maximum(counts, shaping.ones_like(counts)))
    return casting.cast(
        shaping.reshape(gathering.gather(mean, places), shaping.shape(segments)), op.inputs[0].dtype.base_dtype
    )


@export(v2="nn.isotonic_regression")
def isotonic_regression(inputs: Any, decreasing: bool = True, axis: int = -1) -> tuple[Tensor, Tensor]:
    """The sequence nearest to `inputs` along `axis` that never rises (or, with `decreasing` False, never falls).

    Returns:
        The sequence (float64 for integers of 32 bits and more), and for each element the number of the run of equal values it is in.
    """
    inputs = convert_to_tensor(inputs)
    kind = inputs.dtype.base_dtype
    if not kind.is_floating:
        kind = dtypes.float32 if kind.size < 4 else dtypes.float64
    rank = inputs.static_shape.rank
    moved = inputs
    order: list[int] = []
    if axis != -1 and not (rank is not None and axis == rank - 1):
        if rank is None:
            raise ValueError("isotonic_regression along another axis than the last needs inputs of known rank.")
        axis = inputs.static_shape.normalize_axis(axis)
        order = list(range(rank))
        order[axis], order[-1] = order[-1], order[axis]
        moved = shaping.transpose(inputs, order)
    result, runs = ISOTONIC_REGRESSION(moved if decreasing else unary_functions.negative(moved), output_dtype=kind)
    result = result if decreasing else unary_functions.negative(result)
    return (shaping.transpose(result, order), shaping.transpose(runs, order)) if order else (result, runs)
