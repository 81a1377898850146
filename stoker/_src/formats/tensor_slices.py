"""Boxes of tensors: the description of partitioned tensors in checkpoints and in save ops, and their assembly."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from stoker._src.base.dtypes import DType
from stoker._src.base.errors import DataLossError, InvalidArgumentError, UnimplementedError
from stoker._src.formats import protos
from stoker._src.formats.ordered_code import Extent

_MAX_RANK = 64  # NumPy's limit


class TensorInfo(NamedTuple):
    """The properties of a tensor in a checkpoint that are known without reading it."""

    dtype: DType
    shape: tuple[int, ...]
    slices: tuple[tuple[Extent, ...], ...]  # empty unless the tensor is partitioned


def slice_to_proto(extents: Sequence[Extent]) -> Any:
    """Converts extents to a TensorSliceProto; whole dimensions have no length."""
    proto = protos.TensorSliceProto()
    for start, length in extents:
        extent = proto.extent.add()
        if length >= 0:
            extent.start, extent.length = start, length
    return proto


def slice_from_proto(proto: Any) -> tuple[Extent, ...]:
    """Returns the extents of a TensorSliceProto."""
    return tuple((e.start, e.length) if e.WhichOneof("has_length") else (0, -1) for e in proto.extent)


def parse_shape_and_slice(text: str) -> tuple[tuple[int, ...], tuple[Extent, ...]]:
    """Parses the full shape and the extents from an op's string: "4 3 0,2:-" means rows 0 and 1 of a tensor of shape [4, 3].

    Raises:
        InvalidArgumentError: the string is malformed.
    """
    *sizes, spelled = text.split(" ")
    if not sizes:
        raise InvalidArgumentError(None, None, f"Need least two elements in shape_and_slice specification: {text}")
    if not all(size.isascii() and size.isdecimal() for size in sizes):
        raise InvalidArgumentError(None, None, f"Non numerical dimension in shape_and_slice: {text}")
    return tuple(map(int, sizes)), tuple(_parse_extent(each, spelled) for each in spelled.split(":") if spelled)


def _parse_extent(text: str, whole: str) -> Extent:
    if text == "-":
        return (0, -1)
    pair = re.fullmatch(r"(-?[0-9]+),(-?[0-9]+)", text)
    if pair is None:
        raise InvalidArgumentError(None, None, f"Expected a pair of numbers or '-' but got '{text}': string = {whole}")
    start, length = map(int, pair.groups())
    if start < 0 or length <= 0:
        raise InvalidArgumentError(
            None,
            None,
            f"Expected non-negative start and positive length but got start = {start}, length = {length}: "
            f"string = {whole}",
        )
    return start, length


def cut_shape(extents: Sequence[Extent], shape: Sequence[int], name: str) -> tuple[int, ...]:
    """Returns the shape of the box that the extents select from a tensor of the given shape.

    Raises:
        InvalidArgumentError: the box is not within the tensor.
    """
    if len(extents) != len(shape):
        raise InvalidArgumentError(None, None, f"Slice {list(extents)} of tensor {name} of shape {list(shape)}")
    for (start, length), size in zip(extents, shape):
        if length >= 0 and (start < 0 or start + length > size):
            raise InvalidArgumentError(
                None, None, f"Slice {list(extents)} of tensor {name} passes its shape {list(shape)}"
            )
    return tuple(size if length < 0 else length for (_, length), size in zip(extents, shape))


def check_slice(name: str, full_shape: Sequence[int], extents: Sequence[Extent], array: np.ndarray) -> None:
    """Raises InvalidArgumentError unless the array has the shape that the extents select from a tensor of the given shape."""
    cut = cut_shape(extents, full_shape, name)
    if array.shape != cut:
        raise InvalidArgumentError(
            None,
            None,
            f"Slice in shape_and_slice specification does not match the shape of the tensor to save: slice "
            f"{list(extents)} of tensor {name} has shape {list(cut)}, its value {list(array.shape)}",
        )


def check_rank(name: str, shape: Sequence[int]) -> None:
    """Raises UnimplementedError if a tensor has more dimensions than an array can have."""
    if len(shape) > _MAX_RANK:
        raise UnimplementedError(None, None, f"Tensor {name} has {len(shape)} dimensions; at most {_MAX_RANK} are read")


def box(extents: Sequence[Extent], shape: Sequence[int], name: str) -> tuple[slice, ...]:
    """Converts extents to NumPy indices."""
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
    """Assembles a box of a partitioned tensor.

    Args:
        name: the tensor's name, for errors.
        info: the tensor's properties in the checkpoint.
        extents: the box.
        verify: raises unless a slice is stored with the given shape. It is called for all slices before memory is allocated.
        fetch: reads a slice.

    Raises:
        InvalidArgumentError: the slices do not cover the box.
        UnimplementedError: the tensor has too many dimensions for an array.
    """
    check_rank(name, info.shape)
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
    check_disjoint([here for _, _, here in overlaps], name)
    # Slices that do not overlap cover the box if they have as many elements as it has.
    if sum(math.prod(each.stop - each.start for each in here) for _, _, here in overlaps) < math.prod(shape):
        raise InvalidArgumentError(
            None, None, f"Does not have sufficient slices for partitioned tensor {name} to restore in {list(extents)}"
        )
    out = np.empty(shape, info.dtype.as_numpy_dtype)
    for part, there, here in overlaps:
        value = fetch(part)
        if value.shape != cut_shape(part, info.shape, name):
            raise DataLossError(None, None, f"Slice {list(part)} of {name} has shape {list(value.shape)}")
        out[here] = value[there]
    return out


def check_disjoint(boxes: list[tuple[slice, ...]], name: str) -> None:
    """Raises DataLossError if two boxes overlap."""
    # Among boxes in the order of their first rows, each can overlap only those that begin before it ends.
    ordered = sorted(boxes, key=lambda each: [side.start for side in each])
    for i, first in enumerate(ordered):
        for second in ordered[i + 1 :]:
            if first and second[0].start >= first[0].stop:
                break
            if all(a.start < b.stop and b.start < a.stop for a, b in zip(first, second)):
                raise DataLossError(None, None, f"Overlapping slices of tensor {name}: {first} and {second}")
