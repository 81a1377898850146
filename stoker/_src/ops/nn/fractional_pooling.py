"""Fractional pooling (Graham, 2014): windows whose sizes differ by one, so that an image shrinks by a fraction.

A pooling sequence 0 = s[0] < s[1] < ... = size divides a dimension into windows [s[i], s[i + 1]). Overlapping windows also
include the first element of the next one. Sequences are random (increments in any order) or pseudo-random (as even as
possible, with a random start). The op's seeds give the same sequences as in TensorFlow.
"""

from __future__ import annotations

import itertools
import math as scalars
from collections.abc import Callable
from typing import Any

import numpy as np
import torch

from stoker._src.base import dtypes
from stoker._src.base.errors import InvalidArgumentError, UnimplementedError
from stoker._src.base.export import export, named
from stoker._src.base.shapes import Dim, Shape
from stoker._src.graph.definition import FLOATS_LIST, STATEFUL, OpDefinition, define, unchanged
from stoker._src.graph.tensor import Operation, Tensor
from stoker._src.ops.array import casting, shaping
from stoker._src.ops.nn.pool_kernels import scattered
from stoker._src.ops.random import uniform_normal
from stoker._src.ops.random.bits import choices, fills
from stoker._src.ops.random.bits.philox import PhiloxState
from stoker._src.ops.support.movement import allocatable, itemsize

_DTYPES = (dtypes.float32, dtypes.float64, dtypes.int32, dtypes.int64)
_ATTRS: dict[str, Any] = {
    "pooling_ratio": FLOATS_LIST(minimum=4),
    "pseudo_random": False,
    "overlapping": False,
    "deterministic": False,
    "seed": 0,
    "seed2": 0,
}
_OUTPUTS = "(output: T, row_pooling_sequence: int64, col_pooling_sequence: int64)"
FRACTIONAL_MAX_POOL = define(f"FractionalMaxPool(value: rank=4 T) -> {_OUTPUTS}", STATEFUL, **_ATTRS, T=_DTYPES)
FRACTIONAL_AVG_POOL = define(f"FractionalAvgPool(value: rank=4 T) -> {_OUTPUTS}", STATEFUL, **_ATTRS, T=_DTYPES)
FRACTIONAL_MAX_POOL_GRAD = define(
    "FractionalMaxPoolGrad(orig_input: rank=4 T, orig_output: T, out_backprop: T, row_pooling_sequence: host int64, "
    "col_pooling_sequence: host int64) -> (output: T)",
    overlapping=False,
    T=_DTYPES,
)
FRACTIONAL_MAX_POOL_GRAD.shape(unchanged)
FRACTIONAL_AVG_POOL_GRAD = define(
    "FractionalAvgPoolGrad(orig_input_tensor_shape: host int64, out_backprop: T, row_pooling_sequence: host int64, "
    "col_pooling_sequence: host int64) -> (output: T)",
    overlapping=False,
    T=_DTYPES,
)

Windows = list[tuple[int, int]]


def _sequence(state: PhiloxState, size: int, count: int, pseudo_random: bool) -> list[int]:
    """Boundaries of `count` windows over `size` elements."""
    ratio = size / count
    least = size // count
    if ratio == least:
        return list(range(0, size + 1, least))
    if pseudo_random:
        # ceil(ratio * (i + u)) - 1, with u small enough that the first and last windows are not longer than the others.
        most = min((least + 2) / ratio - 1, (size + 1 - least) / ratio - (count - 1))
        start = float(fills.uniform(state.reserve(1), 1, torch.float64)[0]) * most
        inner = [min(max(scalars.ceil(ratio * (i + start)) - 1, i * least), size) for i in range(1, count)]
        return [0, *inner, size]
    longer = size - least * count
    increments = np.array([least + 1] * longer + [least] * (count - longer))
    order = choices.permutation(state.reserve(-(-count // 4)), count)
    return [0, *np.cumsum(increments[order]).tolist()]


def _windows(sequence: list[int], size: int, overlapping: bool) -> Windows:
    if any(not 0 <= start < end <= size for start, end in itertools.pairwise(sequence)):
        raise InvalidArgumentError(
            None, None, f"A pooling sequence must rise from 0 to at most the input's size {size}, got {sequence}"
        )
    return [(start, min(end + 1, size) if overlapping else end) for start, end in itertools.pairwise(sequence)]


def _reduced(
    x: torch.Tensor, axis: int, cuts: Windows, reduce: Callable[[torch.Tensor, int], torch.Tensor]
) -> torch.Tensor:
    return torch.stack([reduce(x.narrow(axis, start, end - start), axis) for start, end in cuts], axis)


def _average(x: torch.Tensor, rows: Windows, columns: Windows) -> torch.Tensor:
    total = _reduced(_reduced(x, 1, rows, torch.sum), 2, columns, torch.sum)
    counts = _areas(rows, columns, x.device)
    if x.dtype.is_floating_point:
        return total / counts.to(x.dtype)
    return torch.div(total, counts, rounding_mode="trunc").to(x.dtype)


def _areas(rows: Windows, columns: Windows, device: Any) -> torch.Tensor:
    heights, widths = (torch.tensor([end - start for start, end in cuts], device=device) for cuts in (rows, columns))
    return heights.reshape(1, -1, 1, 1) * widths.reshape(1, 1, -1, 1)


def _quotient(size: int, ratio: float) -> int:
    """Divides in single precision, in which 6 / 1.2 is 5."""
    return int(np.float32(size) / np.float32(ratio))


def _output_size(size: int, ratio: float, label: str) -> int:
    count = _quotient(size, ratio)
    if count < 1:
        raise InvalidArgumentError(None, None, f"output size must be at least 1: {label} {size} / ratio {ratio}")
    return count


def _check_ratios(ratios: tuple[float, ...]) -> None:
    if len(ratios) != 4:
        raise InvalidArgumentError(None, None, f"pooling_ratio must have 4 entries, found {list(ratios)}")
    if min(ratios) < 1:
        raise InvalidArgumentError(None, None, f"pooling_ratio cannot be smaller than 1, got: {min(ratios)}")


def _register(forward: OpDefinition, largest: bool) -> None:
    @forward.kernel
    def fractional_pool_kernel(
        value: torch.Tensor,
        *,
        pooling_ratio: tuple[float, ...],
        pseudo_random: bool,
        overlapping: bool,
        deterministic: bool,
        seed: int,
        seed2: int,
        ctx: Any,
    ) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        _check_ratios(pooling_ratio)
        if pooling_ratio[0] != 1 or pooling_ratio[3] != 1:
            raise UnimplementedError(
                None, None, f"Fractional pooling of batch and channels is not supported: {list(pooling_ratio)}"
            )
        if not deterministic and (seed or seed2):
            raise InvalidArgumentError(
                None, None, f"Both seed and seed2 should be 0 if deterministic is false, got {seed} and {seed2}"
            )
        if deterministic and ctx.state is None:
            # The sequence is drawn once per node: every run uses the same windows.
            ctx.state = (seed, seed2) if seed or seed2 else tuple(np.random.SeedSequence().generate_state(2).tolist())
        state = PhiloxState(*ctx.state) if deterministic else uniform_normal.generator(ctx, seed, seed2)
        height, width = value.shape[1], value.shape[2]
        if value.numel() == 0:
            raise InvalidArgumentError(
                None,
                None,
                f"Pooling ratio is higher than input dimension size: the input is {list(value.shape)}, "
                f"the ratios are {list(pooling_ratio)}",
            )
        rows = _sequence(state, height, _output_size(height, pooling_ratio[1], "rows"), pseudo_random)
        columns = _sequence(state, width, _output_size(width, pooling_ratio[2], "columns"), pseudo_random)
        cuts = _windows(rows, height, overlapping), _windows(columns, width, overlapping)
        if largest:
            result = _reduced(_reduced(value, 1, cuts[0], torch.amax), 2, cuts[1], torch.amax)
        else:
            result = _average(value, *cuts)
        return result, torch.tensor(rows), torch.tensor(columns)

    @forward.shape
    def fractional_pool_shape(value: Shape, *, pooling_ratio: tuple[float, ...]) -> tuple[Shape, Shape, Shape]:
        _check_ratios(pooling_ratio)
        value = value.of_rank(4)
        sizes: list[Dim] = [None if (n := value[i]) is None else _quotient(n, pooling_ratio[i]) for i in (1, 2)]
        cuts = [Shape((None if n is None else n + 1,)) for n in sizes]
        return Shape((value[0], *sizes, value[3])), cuts[0], cuts[1]


_register(FRACTIONAL_MAX_POOL, True)
_register(FRACTIONAL_AVG_POOL, False)


@FRACTIONAL_MAX_POOL_GRAD.kernel
def fractional_max_pool_grad_kernel(
    orig_input: torch.Tensor,
    orig_output: torch.Tensor,
    out_backprop: torch.Tensor,
    row_pooling_sequence: list[int],
    col_pooling_sequence: list[int],
    *,
    overlapping: bool,
) -> torch.Tensor:
    if orig_output.shape != out_backprop.shape:
        raise InvalidArgumentError(
            None,
            None,
            f"orig_output and out_backprop must have one shape, got {list(orig_output.shape)} and {list(out_backprop.shape)}",
        )
    batch, height, width, channels = orig_input.shape
    rows = _windows(row_pooling_sequence, height, overlapping)
    columns = _windows(col_pooling_sequence, width, overlapping)
    _check_gradient(out_backprop, batch, rows, columns, channels)
    # First the maximum of each row, then of the rows. Of equal elements, the first in row-major order wins.
    widest = _reduced(orig_input, 2, columns, torch.amax)
    at_column = _reduced(orig_input, 2, columns, torch.argmax) + _starts(columns, orig_input.device).reshape(
        1, 1, -1, 1
    )
    if not torch.equal(_reduced(widest, 1, rows, torch.amax), orig_output):
        raise InvalidArgumentError(
            None, None, "tensor_out_dup is not the same as tensor_out: orig_output are not the maxima of orig_input."
        )
    row = _reduced(widest, 1, rows, torch.argmax) + _starts(rows, orig_input.device).reshape(1, -1, 1, 1)
    at_column = torch.gather(at_column, 1, row)
    images = torch.arange(batch, device=orig_input.device).reshape(-1, 1, 1, 1)
    depth = torch.arange(channels, device=orig_input.device)
    return scattered(orig_input, ((images * height + row) * width + at_column) * channels + depth, out_backprop)


def _starts(cuts: Windows, device: Any) -> torch.Tensor:
    return torch.tensor([start for start, _ in cuts], device=device)


def _check_gradient(g: torch.Tensor, batch: int, rows: Windows, columns: Windows, channels: int) -> None:
    expected = (batch, len(rows), len(columns), channels)
    if tuple(g.shape) != expected:
        raise InvalidArgumentError(None, None, f"out_backprop must have shape {list(expected)}, found {list(g.shape)}")


@FRACTIONAL_AVG_POOL_GRAD.kernel
def fractional_avg_pool_grad_kernel(
    orig_input_tensor_shape: list[int],
    out_backprop: torch.Tensor,
    row_pooling_sequence: list[int],
    col_pooling_sequence: list[int],
    *,
    overlapping: bool,
) -> torch.Tensor:
    batch, height, width, channels = orig_input_tensor_shape
    rows = _windows(row_pooling_sequence, height, overlapping)
    columns = _windows(col_pooling_sequence, width, overlapping)
    _check_gradient(out_backprop, batch, rows, columns, channels)
    allocatable(orig_input_tensor_shape, itemsize(out_backprop))
    shared = (out_backprop / _areas(rows, columns, out_backprop.device)).to(out_backprop.dtype)
    tall = shared.new_zeros((batch, height, len(columns), channels))
    for i, (start, end) in enumerate(rows):
        tall[:, start:end] += shared[:, i : i + 1]
    result = shared.new_zeros((batch, height, width, channels))
    for i, (start, end) in enumerate(columns):
        result[:, :, start:end] += tall[:, :, i : i + 1]
    return result


@FRACTIONAL_AVG_POOL_GRAD.shape(as_shapes=["orig_input_tensor_shape"])
def fractional_avg_pool_grad_shape(orig_input_tensor_shape: Shape, *_: Shape) -> Shape:
    return orig_input_tensor_shape.of_rank(4)


@FRACTIONAL_MAX_POOL.grad
def fractional_max_pool_gradient(op: Operation, g: Tensor, *_: Any) -> Tensor:
    output, rows, columns = op.outputs
    return FRACTIONAL_MAX_POOL_GRAD(op.inputs[0], output, g, rows, columns, overlapping=op.attr("overlapping"))


@FRACTIONAL_AVG_POOL.grad
def fractional_avg_pool_gradient(op: Operation, g: Tensor, *_: Any) -> Tensor:
    sizes = casting.cast(shaping.shape(op.inputs[0]), dtypes.int64)
    return FRACTIONAL_AVG_POOL_GRAD(sizes, g, *op.outputs[1:], overlapping=op.attr("overlapping"))


def _ratios(pooling_ratio: Any) -> list[float]:
    if not isinstance(pooling_ratio, (list, tuple)):
        return [1.0, float(pooling_ratio), float(pooling_ratio), 1.0]
    if len(pooling_ratio) == 1:
        return [1.0, float(pooling_ratio[0]), float(pooling_ratio[0]), 1.0]
    if len(pooling_ratio) == 2:
        return [1.0, float(pooling_ratio[0]), float(pooling_ratio[1]), 1.0]
    return [float(each) for each in pooling_ratio]


def _functions(definition: OpDefinition, name: str, what: str) -> tuple[Callable[..., Any], Callable[..., Any]]:
    """Makes `tf.nn.<name>` in its 1.x and its 2.x form."""
    parts = f"({what} of randomly cut windows, row boundaries, column boundaries)"

    @export(v1=f"nn.{name}")
    @named(name, f"{parts}; `pooling_ratio` is the shrinking factor.")
    def pool(
        value: Any,
        pooling_ratio: Any,
        pseudo_random: bool = False,
        overlapping: bool = False,
        deterministic: bool = False,
        seed: int = 0,
        seed2: int = 0,
        name: str | None = None,
    ) -> Any:
        return definition(
            value,
            pooling_ratio=pooling_ratio,
            pseudo_random=pseudo_random,
            overlapping=overlapping,
            deterministic=deterministic,
            seed=seed,
            seed2=seed2,
            name=name,
        )

    @export(v2=f"nn.{name}")
    @named(f"{name}_v2", f"{parts}; with a seed the windows stay the same.")
    def pool_v2(
        value: Any,
        pooling_ratio: Any,
        pseudo_random: bool = False,
        overlapping: bool = False,
        seed: int = 0,
        name: str | None = None,
    ) -> Any:
        first, second = (0, 0) if seed == 0 else uniform_normal.get_seed(seed)
        return pool(value, _ratios(pooling_ratio), pseudo_random, overlapping, seed != 0, first or 0, second or 0, name)

    return pool, pool_v2


fractional_max_pool, fractional_max_pool_v2 = _functions(FRACTIONAL_MAX_POOL, "fractional_max_pool", "maxima")
fractional_avg_pool, fractional_avg_pool_v2 = _functions(FRACTIONAL_AVG_POOL, "fractional_avg_pool", "averages")
