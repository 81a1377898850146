"""Sequences and repetition: linspace, meshgrid, repeat."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import torch

from stoker._src.base import dtypes
from stoker._src.base.dtypes import FLOATS, INDEX
from stoker._src.base.errors import InvalidArgumentError
from stoker._src.base.export import export
from stoker._src.base.shapes import Shape, TensorShape
from stoker._src.graph import context
from stoker._src.graph.conversion import convert_to_tensor
from stoker._src.graph.definition import define, one_of
from stoker._src.graph.late_binding import ops
from stoker._src.graph.scopes import name_scope
from stoker._src.graph.static_values import constant_value
from stoker._src.graph.tensor import Tensor
from stoker._src.ops.array import casting, gathering, joining, ranges, selection, shaping
from stoker._src.ops.math import arithmetic, comparison, reductions
from stoker._src.ops.support.movement import allocatable

LIN_SPACE = define(
    "LinSpace(start: scalar T, stop: scalar T, num: scalar host Tidx) -> (output: T)",
    T=FLOATS,
    Tidx=one_of(*INDEX, default=dtypes.int32),
).not_differentiable()

_COUNTABLE = 1 << 24
"""Most elements of a `LinSpace` that torch can count in float32. Beyond them, it rounds some numbers twice."""
_BLOCK = 1 << 17  # elements that are computed together: their positions stay in the cache


@LIN_SPACE.kernel
def lin_space_kernel(start: torch.Tensor, stop: torch.Tensor, num: int) -> torch.Tensor:
    if start.ndim or stop.ndim:
        raise InvalidArgumentError(
            None, None, f"start and stop must be scalars, got {Shape(start.shape)} and {Shape(stop.shape)}"
        )
    if type(num) is list or num <= 0:
        raise InvalidArgumentError(None, None, f"Requires num > 0: {num}")
    if num == 1:
        return start.reshape(1).clone()
    allocatable([num], start.element_size())
    step = (stop - start) / (num - 1)
    if num <= _COUNTABLE:
        result = torch.arange(num, dtype=start.dtype, device=start.device).mul_(step).add_(start)
    else:
        result = torch.empty(num, dtype=start.dtype, device=start.device)
        scratch = torch.empty(_BLOCK, dtype=torch.float64, device=start.device)
        for at in range(0, num, _BLOCK):
            block = result[at : at + _BLOCK]
            positions = torch.arange(at, at + len(block), out=scratch[: len(block)])
            block.copy_(positions).mul_(step).add_(start)
    result[-1] = stop
    return result


@LIN_SPACE.shape(values=["num"])
def lin_space_shape(start: Shape, stop: Shape, num: Any) -> Shape:
    if num is not None and num <= 0:
        raise InvalidArgumentError(None, None, f"Requires num > 0: {num}")
    return Shape((None if num is None else int(num),))


@export("linspace", v1="lin_space")
def linspace(start: Any, stop: Any, num: Any, name: str | None = None, axis: int = 0) -> Tensor:
    """`num` evenly spaced numbers from `start` to `stop`, both included, along a new dimension at `axis`."""
    with name_scope(name, "linspace", [start, stop]) as scope:
        given = isinstance(start, Tensor) or isinstance(stop, Tensor)
        start = convert_to_tensor(start, name="start")
        stop = convert_to_tensor(stop, start.dtype.base_dtype, name="stop")
        num = convert_to_tensor(num, name="num")
        if not num.dtype.is_integer and num.dtype.base_dtype is not dtypes.bool_:
            raise TypeError(f"Argument `tensor` (name: num) must be of type integer. Received `tensor` = {num!r}.")
        if start.dtype.base_dtype.is_integer:
            start, stop = casting.cast(start, dtypes.float64), casting.cast(stop, dtypes.float64)
        axis = _plain_axis(axis, start)
        ends = [constant_value(each) for each in (start, stop, num)]
        finite = all(end is not None and end.dtype != object and np.isfinite(end).all() for end in ends)
        if not given and finite and ends[2].all() and start.static_shape.rank == 0 and stop.static_shape.rank == 0:
            if axis not in (0, -1):
                shaping.expand_dims(start, axis)  # raises the error for an invalid axis
            return LIN_SPACE(start, stop, num if num.dtype.is_integer else casting.cast(num, dtypes.int32), name=scope)
        # Built from differentiable ops, because LinSpace has no gradient.
        num = casting.cast(num, dtypes.int32)
        if ends[2] is not None and (ends[2] < 0).any():
            raise context.invalid(f"Requires num >= 0: {ends[2]}")
        kind = start.dtype.base_dtype
        if start.static_shape != stop.static_shape or not start.static_shape.known:
            zeros = shaping.zeros_like(start + stop)
            start, stop = start + zeros, stop + zeros
        first, last = shaping.expand_dims(start, axis), shaping.expand_dims(stop, axis)
        dims = first.static_shape.rank
        if dims is None:
            whole = ranges.rank(first)
            before = axis if axis >= 0 else axis + whole
            ones = [shaping.ones([count], dtypes.int32) for count in (before, whole - 1 - before)]
            form: Any = joining.concat([ones[0], [-1], ones[1]], 0)
        else:
            form = [1] * dims
            form[axis % dims] = -1
        steps = shaping.reshape(ranges.range(num), form)
        count = arithmetic.maximum(num - 1, 1)
        inner = first + (last - first) / casting.cast(count, kind) * casting.cast(steps, kind)
        # The end points are exact despite rounding. A single number is the start.
        inner = selection.SELECT_V2(comparison.GREATER_EQUAL(steps, count), last, inner)
        return selection.SELECT_V2(comparison.LESS(steps, 1), first, inner, name=scope)


def _plain_axis(axis: Any, x: Tensor) -> int:
    """An axis for a new dimension of `x`, as a number. The axis may be a tensor with a static value."""
    if isinstance(axis, (int, np.integer)) and not isinstance(axis, bool):
        return int(axis)
    shaping.expand_dims(x, axis)  # raises the error for an invalid axis
    known = constant_value(axis) if isinstance(axis, Tensor) else None
    if known is None and not (isinstance(axis, Tensor) and x.static_shape.rank == 0):
        raise TypeError(f"Argument `axis` must be an integer that is known when the graph is built, got {axis!r}.")
    if known is not None and known.ndim:
        raise ValueError(f"Shape must be rank 0 but is rank {known.ndim}: axis")
    return 0 if known is None else int(known)


@export("meshgrid")
def meshgrid(*args: Any, **kwargs: Any) -> list[Tensor]:
    """Coordinate grids from vectors: each vector is repeated along the dimensions of the others.

    Args:
        *args: the vectors.
        **kwargs: `indexing`, "xy" (default: the first two dimensions are swapped) or "ij"; `name`.

    Raises:
        TypeError: an unknown keyword.
        ValueError: an unknown `indexing`.
    """
    indexing = kwargs.pop("indexing", "xy")
    name = kwargs.pop("name", "meshgrid")
    if kwargs:
        raise TypeError(f"'{next(iter(kwargs))}' is an invalid keyword argument for this function")
    if indexing not in ("xy", "ij"):
        raise ValueError(f"Argument `indexing` parameter must be either 'xy' or 'ij', got '{indexing}'")
    with name_scope(name, "meshgrid", args):
        count = len(args)
        vectors = [convert_to_tensor(each) for each in args]
        kinds = [vector.dtype.base_dtype.name for vector in vectors]
        if len(set(kinds)) > 1:
            text = f"The vectors of meshgrid must be of one dtype, found {kinds}."
            raise InvalidArgumentError(None, None, text) if context.executing_eagerly() else TypeError(text)
        grid, sizes = [], [ranges.size(each) for each in vectors]
        order = list(range(count))
        if indexing == "xy" and count > 1:
            order[0], order[1] = 1, 0
            sizes[0], sizes[1] = sizes[1], sizes[0]
        target = joining.joined_sizes(sizes) if sizes else []
        for position, vector in zip(order, vectors):
            form = [1] * count
            form[position] = -1
            grid.append(ranges.broadcast_to(shaping.reshape(vector, form), target))
        return grid


def _check_counts(counts: Shape, length: int | None) -> None:
    """Raises ValueError unless there is one count for all elements or one for each."""
    if counts.rank is not None and counts.rank > 1:
        raise ValueError(f"Shape {TensorShape(counts)} must have rank at most 1: `repeats`")
    if counts.rank == 1 and None not in (counts[0], length) and counts[0] not in (1, length):
        raise ValueError(f"Dimensions {length} and {counts[0]} are not compatible: `input` along axis, and `repeats`")


def along_axis(x: Tensor, axis: Any, function: Callable[[Tensor], Tensor]) -> Tensor:
    """Applies `function` along `axis`, for tensors of unknown rank and for axes that are non-negative tensors.

    The function receives a tensor [before, along, after] and may replace the middle dimension by any number of dimensions.
    """
    sizes: Any = shaping.SHAPE_OP(x)
    before, behind = sizes[:axis], sizes[:0] if type(axis) is int and axis == -1 else sizes[axis + 1 :]
    outer, inner = (reductions.reduce_prod(part) for part in (before, behind))
    done = function(shaping.reshape(x, joining.joined_sizes([outer, sizes[axis], inner])))
    along: Any = shaping.SHAPE_OP(done)
    return shaping.reshape(done, joining.concat([before, along[1:-1], behind], 0))


@export("repeat")
def repeat(input: Any, repeats: Any, axis: int | None = None, name: str | None = None) -> Tensor:
    """Repeats each element (or each slice along `axis`) of `input` as often as `repeats` says."""
    with name_scope(name, "Repeat", [input, repeats]):
        data = convert_to_tensor(input, name="data")
        if axis is None:
            data, axis = shaping.reshape(data, [-1]), 0
        counts = convert_to_tensor(repeats, name="repeats")
        if not isinstance(axis, (int, np.integer)):
            raise TypeError(f"Argument `axis` must be an int. Received `axis` = {axis!r} of type {type(axis).__name__}")
        rank = data.static_shape.rank
        if not counts.dtype.is_integer:
            raise TypeError(f"Argument `tensor` (name: repeats) must be of type integer. Received {counts}")
        at = axis
        if rank is not None:
            if not -max(rank, 1) <= axis < max(rank, 1):
                raise ValueError(f"axis={axis} out of bounds: expected {-max(rank, 1)}<=axis<{max(rank, 1)}")
            at = axis % rank if rank else 0
            if rank == 0:
                data, at = shaping.reshape(data, [1]), 0
            _check_counts(counts.static_shape, data.static_shape[at])
        counts = casting.cast(counts, dtypes.int32)
        length = shaping.shape(data)[at]
        if rank is not None and counts.static_shape.rank == 0:
            # One count for all: tile along a new dimension, then merge it.
            wide = shaping.expand_dims(data, at + 1)
            times = [1] * max(rank + 1, 2)
            times[at + 1] = counts
            sizes = [shaping.shape(data)[i] for i in range(max(rank, 1))]
            sizes[at] = sizes[at] * counts
            return shaping.reshape(joining.tile(wide, times), joining.joined_sizes(sizes))
        counts = ranges.broadcast_to(counts, shaping.reshape(length, [1]))
        # Build a row for each position, repeated up to the largest count. A mask selects the wanted part of each row.
        longest = arithmetic.maximum(reductions.reduce_max(counts), 0)
        rows = ranges.broadcast_to(
            shaping.expand_dims(ranges.range(length), 1), joining.joined_sizes([length, longest])
        )
        places = ops.boolean_mask(rows, ops.sequence_mask(counts, longest))
        known_counts = constant_value(counts)
        if known_counts is not None:
            places.set_shape([int(np.maximum(known_counts, 0).sum())])
        if at == 0:
            data = shaping.reshape(data, shaping.shape(data))  # whose gradient is dense
        return gathering.GATHER_V2(data, places, at)
