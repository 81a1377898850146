"""Applies an op with plain windows to dilated ones: interleaved grids become batch entries (space to batch)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from stoker._src.base.export import export
from stoker._src.graph.conversion import convert_to_tensor
from stoker._src.graph.static_values import constant_value
from stoker._src.graph.tensor import Tensor
from stoker._src.ops.array import joining, pads, shaping, slicing
from stoker._src.ops.math import arithmetic, unary_functions
from stoker._src.ops.nn.arguments import starts_with_channels


def _known_vector(value: Any, label: str) -> list[int]:
    tensor = convert_to_tensor(value, name=label)
    known = constant_value(tensor)
    if known is None:
        raise NotImplementedError(f"with_space_to_batch needs a {label} that is known when the graph is built")
    return [int(each) for each in np.ravel(known)]


@export("nn.with_space_to_batch")
def with_space_to_batch(
    input: Any,
    dilation_rate: Any,
    padding: str,
    op: Callable[..., Tensor],
    filter_shape: Any = None,
    spatial_dims: Any = None,
    data_format: str | None = None,
) -> Tensor:
    """Applies `op(input, number of spatial dimensions, padding)` with windows dilated by `dilation_rate`.

    SAME padding requires `filter_shape`: the input is padded here, and `op` is called with VALID.

    Raises:
        ValueError: the spatial dimensions are not positive and increasing, or `filter_shape` is missing for SAME.
    """
    value = convert_to_tensor(input, name="input")
    rates = _known_vector(dilation_rate, "dilation_rate")
    count = len(rates)
    first = 2 if starts_with_channels(data_format) else 1
    dims = list(range(first, first + count)) if spatial_dims is None else [int(dim) for dim in spatial_dims]
    if sorted(set(dims)) != dims or any(dim < 1 for dim in dims):
        raise ValueError(
            f"`spatial_dims` must be a monotonically increasing sequence of positive integers. Received: {dims}"
        )
    if len(dims) != count:
        raise ValueError(f"`spatial_dims` and `dilation_rate` must be equally long: {dims}, {rates}")
    if any(rate < 1 for rate in rates):
        raise ValueError(f"`dilation_rate` must be positive. Received: dilation_rate={rates}")
    rank = value.static_shape.rank
    if rank is not None and dims and rank <= dims[-1]:
        raise ValueError(
            f"`input.shape.rank` must be at least {dims[-1] + 1}. Received: input.shape={value.shape} with rank {rank}"
        )
    if all(rate == 1 for rate in rates):
        return op(value, count, padding)
    before, after = [0] * count, [0] * count
    if padding == "SAME":
        if filter_shape is None:
            raise ValueError("`filter_shape` must be specified for `padding='SAME'`.")
        sizes = _known_vector(filter_shape, "filter_shape")
        for i, rate in enumerate(rates):
            missing = (sizes[i] - 1) * rate
            before[i], after[i] = missing // 2, missing - missing // 2
    elif padding != "VALID":
        raise ValueError(f"Invalid padding method {padding!r}")
    last = dims[-1]
    blocks = [1] * last
    paddings: list[list[Any]] = [[0, 0] for _ in range(last)]
    crops: list[list[Any]] = [[0, 0] for _ in range(last)]
    for i, dim in enumerate(dims):
        blocks[dim - 1] = rates[i]
        extra = _to_multiple(value, dim, before[i] + after[i], rates[i])
        paddings[dim - 1] = [before[i], after[i] + extra]
        crops[dim - 1] = [0, extra]
    grids = pads.SPACE_TO_BATCH_ND(value, blocks, _matrix(paddings))
    return pads.BATCH_TO_SPACE_ND(op(grids, count, "VALID"), blocks, _matrix(crops))


def _to_multiple(value: Tensor, dim: int, added: int, rate: int) -> Any:
    """The padding that makes a padded size divisible by `rate`; a tensor if the size is unknown."""
    size = value.static_shape[dim] if value.static_shape.rank is not None else None
    if size is not None:
        return -(size + added) % rate
    found = shaping.reshape(slicing.SLICE(shaping.shape(value), [dim], [1]), [])
    return arithmetic.FLOOR_MOD(unary_functions.negative(found + added), rate)


def _matrix(pairs: list[list[Any]]) -> Any:
    if any(isinstance(each, Tensor) for pair in pairs for each in pair):
        return joining.PACK([joining.PACK([convert_to_tensor(each) for each in pair]) for pair in pairs])
    return np.array(pairs, np.int32)
