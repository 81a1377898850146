"""Sums, means and other reductions over dimensions."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from stoker._src.base import dtypes
from stoker._src.base.dtypes import INDEX, NUMERIC
from stoker._src.base.export import export
from stoker._src.base.shapes import UNKNOWN_SHAPE, Dim, Shape
from stoker._src.graph.conversion import convert_to_tensor
from stoker._src.graph.definition import OpDefinition, define, one_of
from stoker._src.graph.tensor import Operation, Tensor
from stoker._src.ops import array, math, ranges
from stoker._src.ops.constants import constant


def _reduction(name: str, allowed: Any) -> OpDefinition:
    definition = define(
        f"{name}(input: T, reduction_indices: host Tidx) -> (output: T)",
        T=allowed,
        Tidx=one_of(*INDEX, default=dtypes.int32),
        keep_dims=False,
    )
    definition.shape(reduced_shape, values=["reduction_indices"])
    return definition


def reduced_shape(input: Shape, reduction_indices: np.ndarray | None, *, keep_dims: bool) -> Shape:
    if input.dims is None:
        return UNKNOWN_SHAPE
    if reduction_indices is None:
        return Shape((None,) * len(input)) if keep_dims else UNKNOWN_SHAPE
    axes = {input.normalize_axis(int(axis)) for axis in np.ravel(reduction_indices)}
    dims: list[Dim] = []
    for i, size in enumerate(input.dims):
        if i not in axes:
            dims.append(size)
        elif keep_dims:
            dims.append(1)
    return Shape(dims)


def _axes(reduction_indices: Any) -> list[int]:
    return reduction_indices if isinstance(reduction_indices, list) else [reduction_indices]


SUM = _reduction("Sum", NUMERIC)


@SUM.kernel
def sum_kernel(input: torch.Tensor, reduction_indices: Any, *, keep_dims: bool) -> torch.Tensor:
    axes = _axes(reduction_indices)
    if not axes:  # torch would sum over everything
        return input.clone()
    return torch.sum(input, axes, keep_dims, dtype=input.dtype)


@SUM.grad
def sum_grad(op: Operation, g: Tensor) -> Any:
    x, axes = op.inputs
    return _spread(g, x, axes, op.attr("keep_dims")), None


MEAN = _reduction("Mean", NUMERIC)


@MEAN.kernel
def mean_kernel(input: torch.Tensor, reduction_indices: Any, *, keep_dims: bool) -> torch.Tensor:
    axes = _axes(reduction_indices)
    if not axes:
        return input.clone()
    if input.dtype.is_floating_point or input.dtype.is_complex:
        return torch.mean(input, axes, keep_dims)
    count = int(np.prod([input.shape[axis] for axis in axes]))
    return torch.div(torch.sum(input, axes, keep_dims, dtype=input.dtype), count, rounding_mode="trunc").to(input.dtype)


@MEAN.grad
def mean_grad(op: Operation, g: Tensor) -> Any:
    x, axes = op.inputs
    before, after = x.static_shape.size, op.outputs[0].static_shape.size
    if before is not None and after:
        factor = convert_to_tensor(before // after, dtypes.int32)
    else:
        factor = math.cast(ranges.size(x), dtypes.int32) // math.maximum(ranges.size(op.outputs[0]), 1)
    # Dividing before spreading: one division for each output, not for each input.
    return _spread(math.realdiv(g, math.cast(factor, g.dtype.base_dtype)), x, axes, op.attr("keep_dims")), None


def _spread(g: Tensor, x: Tensor, axes: Tensor, keep_dims: bool) -> Tensor:
    """The gradient of a sum: `g` repeated along the reduced dimensions of `x`."""
    sizes = array.shape(x)
    if not keep_dims:
        g = array.reshape(g, ranges.reduced_sizes(x, sizes, axes))
    return ranges.broadcast_to(g, sizes)


def reduction_axes(x: Tensor, axis: Any) -> Any:
    """The axes a reduction was asked for: all of them for None."""
    if axis is not None:
        return axis
    rank = x.static_shape.rank
    if rank is not None:
        return constant(np.arange(rank, dtype=np.int32))
    return ranges.range(0, ranges.rank(x))


def older_arguments(axis: Any, keepdims: Any, reduction_indices: Any, keep_dims: Any) -> tuple[Any, bool]:
    """`axis` and `keepdims`, also under their names of TensorFlow 0.12 and 1.0.

    Raises:
        ValueError: both spellings of one were given.
    """
    if reduction_indices is not None:
        if axis is not None:
            raise ValueError("Cannot specify both 'axis' and 'reduction_indices'.")
        axis = reduction_indices
    if keep_dims is not None:
        if keepdims is not None:
            raise ValueError("Cannot specify both 'keepdims' and 'keep_dims'.")
        keepdims = keep_dims
    return axis, bool(keepdims)


@export("reduce_sum", "math.reduce_sum")
def reduce_sum(
    input_tensor: Any,
    axis: Any = None,
    keepdims: Any = None,
    name: str | None = None,
    reduction_indices: Any = None,
    keep_dims: Any = None,
) -> Tensor:
    """The sum over `axis` (all dimensions for None)."""
    axis, keep = older_arguments(axis, keepdims, reduction_indices, keep_dims)
    x = convert_to_tensor(input_tensor)
    return SUM(x, reduction_axes(x, axis), keep_dims=keep, name=name)


@export("reduce_mean", "math.reduce_mean")
def reduce_mean(
    input_tensor: Any,
    axis: Any = None,
    keepdims: Any = None,
    name: str | None = None,
    reduction_indices: Any = None,
    keep_dims: Any = None,
) -> Tensor:
    """The mean over `axis` (all dimensions for None)."""
    axis, keep = older_arguments(axis, keepdims, reduction_indices, keep_dims)
    x = convert_to_tensor(input_tensor)
    return MEAN(x, reduction_axes(x, axis), keep_dims=keep, name=name)
