"""Boxes of tensors: how a partitioned tensor is described in checkpoints, and put together again."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from stoker._src.base.dtypes import DType
from stoker._src.base.errors import DataLossError, InvalidArgumentError, NotFoundError
from stoker._src.formats import protos
from stoker._src.formats.ordered_code import Extent


class TensorInfo(NamedTuple):
    """What a checkpoint says of a tensor without reading it."""

    dtype: DType
    shape: tuple[int, ...]
    slices: tuple[tuple[Extent, ...], ...]  # empty unless the tensor is partitioned


def slice_to_proto(extents: Sequence[Extent]) -> Any:
    """Extents as a TensorSliceProto; whole dimensions have no length."""
    proto = protos.TensorSliceProto()
    for start, length in extents:
        extent = proto.extent.add()
        if length >= 0:
            extent.start, extent.length = start, length
    return proto


def slice_from_proto(proto: Any) -> tuple[Extent, ...]:
    """The extents of a TensorSliceProto."""
    return tuple((e.start, e.length) if e.WhichOneof("has_length") else (0, -1) for e in proto.extent)


def cut_shape(extents: Sequence[Extent], shape: Sequence[int], name: str) -> tuple[int, ...]:
    """The shape of the box that extents cut out of a tensor of the given shape.

    Raises:
        InvalidArgumentError: they do not fit into it.
    """
    if len(extents) != len(shape):
        raise InvalidArgumentError(None, None, f"Slice {list(extents)} of tensor {name} of shape {list(shape)}")
    for (start, length), size in zip(extents, shape):
        if length >= 0 and (start < 0 or start + length > size):
            raise InvalidArgumentError(
                None, None, f"Slice {list(extents)} of tensor {name} passes its shape {list(shape)}"
            )
    return tuple(size if length < 0 else length for (_, length), size in zip(extents, shape))


def box(extents: Sequence[Extent], shape: Sequence[int], name: str) -> tuple[slice, ...]:
    """The same box as indices for NumPy."""
    sizes = cut_shape(extents, shape, name)
    starts = [0 if length < 0 else start for start, length in extents]
    return tuple(slice(start, start + size) for start, size in zip(starts, sizes))


def assemble(
    name: str,
    info: TensorInfo,
    extents: Sequence[Extent],
    verify: Callable[[tuple[Extent, ...], tuple[int, ...]], None],
    fetch: Callable[[tuple[Extent, ...]], np.ndarray],
) -> np.ndarray:
    """A box of a partitioned tensor.

    Args:
        name: the tensor, for errors.
        info: what the checkpoint says of it.
        extents: the box.
        verify: raises unless a slice is stored with the shape given; called for all before anything is allocated.
        fetch: reads a slice.

    Raises:
        NotFoundError: the slices do not cover the box.
    """
    wanted = box(extents, info.shape, name)
    shape = tuple(each.stop - each.start for each in wanted)
    overlaps = []
    for part in info.slices:
        held = box(part, info.shape, name)
        common = [slice(max(a.start, b.start), min(a.stop, b.stop)) for a, b in zip(held, wanted)]
        if all(each.start < each.stop for each in common):
            verify(part, tuple(each.stop - each.start for each in held))
            there = tuple(slice(c.start - h.start, c.stop - h.start) for c, h in zip(common, held))
            here = tuple(slice(c.start - w.start, c.stop - w.start) for c, w in zip(common, wanted))
            overlaps.append((part, there, here))
    held_elements = sum(math.prod(each.stop - each.start for each in here) for _, _, here in overlaps)
    if held_elements < math.prod(shape):
        raise NotFoundError(None, None, f"The slices of {name} do not cover {list(extents)}")
    out = np.empty(shape, info.dtype.as_numpy_dtype)
    covered = np.zeros(shape, bool)
    for part, there, here in overlaps:
        value = fetch(part)
        if value.shape != cut_shape(part, info.shape, name):
            raise DataLossError(None, None, f"Slice {list(part)} of {name} has shape {list(value.shape)}")
        out[here] = value[there]
        covered[here] = True
    if not covered.all():
        raise NotFoundError(None, None, f"The slices of {name} do not cover {list(extents)}")
    return out
