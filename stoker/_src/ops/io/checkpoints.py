"""Ops that write and read checkpoint files of both formats."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import torch

from stoker._src.base.dtypes import DType
from stoker._src.base.errors import InvalidArgumentError, NotFoundError
from stoker._src.base.shapes import SCALAR, UNKNOWN_SHAPE, Shape
from stoker._src.formats import gfile
from stoker._src.formats.checkpoint_v1 import SliceReader, SliceWriter
from stoker._src.formats.checkpoints import Reader, open_checkpoint
from stoker._src.formats.tensor_bundle import BundleReader, BundleWriter, merge_bundles
from stoker._src.formats.tensor_slices import cut_shape, parse_shape_and_slice
from stoker._src.graph.definition import STATEFUL, TYPE, TYPES, define
from stoker._src.ops.support.values import from_numpy, to_numpy

_BATCH = TYPES(minimum=1)


def _text(value: bytes) -> str:
    """Decodes a tensor name. Invalid UTF-8 survives a round trip."""
    return value.decode(errors="surrogateescape")


def _specified(names: np.ndarray, slices: np.ndarray, count: int, what: str) -> Iterator[tuple[int, str, str]]:
    """Yields (position, name, slice) for each tensor of a batch.

    Raises:
        InvalidArgumentError: the numbers of names, slices and tensors differ.
    """
    if len(names) != len(slices):
        raise InvalidArgumentError(
            None,
            None,
            f"tensor_names and shape_and_slices have different number of elements: {len(names)} vs. {len(slices)}",
        )
    if len(names) != count:
        raise InvalidArgumentError(None, None, f"Got {len(names)} tensor names but {count} {what}.")
    return zip(range(count), map(_text, names), map(_text, slices))


# ---- writing ----------------------------------------------------------------------------------------------------

SAVE = define("Save(filename: scalar/one string, tensor_names: vector string, data: [T]) -> ()", STATEFUL, T=_BATCH)
SAVE_SLICES = define(
    "SaveSlices(filename: scalar/one string, tensor_names: vector string, shapes_and_slices: vector string, data: [T]) -> ()",
    STATEFUL,
    T=_BATCH,
)
SAVE_V2 = define(
    "SaveV2(prefix: scalar/one string, tensor_names: vector string, shape_and_slices: vector string, tensors: [dtypes])"
    " -> ()",
    STATEFUL,
    dtypes=_BATCH,
)


def _add_all(
    writer: SliceWriter | BundleWriter,
    tensor_names: np.ndarray,
    slices: np.ndarray,
    tensors: Sequence[Any],
    dtypes: Sequence[DType],
) -> None:
    for number, name, spelled in _specified(tensor_names, slices, len(tensors), "tensors"):
        array = np.asarray(to_numpy(tensors[number]))
        if spelled:
            shape, extents = parse_shape_and_slice(spelled)
            writer.add_slice(name, shape, extents, array, dtypes[number])
        else:
            writer.add(name, array, dtypes[number])


@SAVE_SLICES.kernel
def save_slices_kernel(
    filename: np.ndarray,
    tensor_names: np.ndarray,
    shapes_and_slices: np.ndarray,
    data: list[Any],
    *,
    T: tuple[DType, ...],
) -> None:
    writer = SliceWriter(os.fsdecode(filename.item()))
    _add_all(writer, tensor_names, shapes_and_slices, data, T)
    writer.finish()


@SAVE.kernel
def save_kernel(filename: np.ndarray, tensor_names: np.ndarray, data: list[Any], *, T: tuple[DType, ...]) -> None:
    whole = np.full(tensor_names.shape, b"", object)
    save_slices_kernel(filename, tensor_names, whole, data, T=T)


@SAVE_V2.kernel
def save_v2_kernel(
    prefix: np.ndarray,
    tensor_names: np.ndarray,
    shape_and_slices: np.ndarray,
    tensors: list[Any],
    *,
    dtypes: tuple[DType, ...],
) -> None:
    with BundleWriter(os.fsdecode(prefix.item())) as writer:
        try:
            arrays = [tensor.numpy() for tensor in tensors]
            plain = [True] * len(arrays)
        except (
            AttributeError,
            TypeError,
            RuntimeError,
        ):  # some are strings, on a device, or of a dtype that NumPy lacks
            arrays = [to_numpy(tensor) for tensor in tensors]
            plain = [each.__class__ is np.ndarray and each.dtype != object for each in arrays]
        if len(tensor_names) != len(tensors) or any(shape_and_slices) or not any(plain):
            _add_all(writer, tensor_names, shape_and_slices, tensors, dtypes)
            return
        keys = tensor_names.tolist()
        start = 0
        while start < len(arrays):
            # Consecutive whole numeric tensors are written in one call.
            stop = start
            while stop < len(arrays) and plain[stop]:
                stop += 1
            if stop > start:
                writer.add_all(keys[start:stop], arrays[start:stop], dtypes[start:stop])
            if stop < len(arrays):
                writer.add(_text(keys[stop]), np.asarray(arrays[stop]), dtypes[stop])
            start = stop + 1


def _counted(*names: Shape, count: int) -> tuple[()]:
    """The shape rule: there is one name (and one slice, if the op takes slices) for each tensor."""
    for each in names:
        each.merge(Shape((count,)))
    return ()


@SAVE.shape
def save_shape(filename: Shape, tensor_names: Shape, data: list[Shape]) -> tuple[()]:
    return _counted(tensor_names, count=len(data))


@SAVE_SLICES.shape
def save_slices_shape(filename: Shape, tensor_names: Shape, shapes_and_slices: Shape, data: list[Shape]) -> tuple[()]:
    return _counted(tensor_names, shapes_and_slices, count=len(data))


@SAVE_V2.shape
def save_v2_shape(prefix: Shape, tensor_names: Shape, shape_and_slices: Shape, tensors: list[Shape]) -> tuple[()]:
    return _counted(tensor_names, shape_and_slices, count=len(tensors))


# ---- reading ----------------------------------------------------------------------------------------------------

RESTORE = define(
    "Restore(file_pattern: scalar/one string, tensor_name: scalar/one string) -> (tensor: dt)",
    STATEFUL,
    dt=TYPE,
    preferred_shard=-1,
)
RESTORE_SLICE = define(
    "RestoreSlice(file_pattern: scalar/one string, tensor_name: scalar/one string, shape_and_slice: scalar/one string)"
    " -> (tensor: dt)",
    STATEFUL,
    dt=TYPE,
    preferred_shard=-1,
)
RESTORE_V2 = define(
    "RestoreV2(prefix: scalar/one string, tensor_names: vector string, shape_and_slices: vector string)"
    " -> (tensors: [dtypes])",
    STATEFUL,
    dtypes=_BATCH,
)


def _check_dtype(stored: DType, name: str, dtype: DType) -> None:
    if stored is not dtype and stored != dtype.base_dtype:
        raise InvalidArgumentError(
            None,
            None,
            f"tensor_name = {name}; expected dtype {dtype.base_dtype.name} does not equal original dtype {stored.name}",
        )


def _read(reader: Reader, name: str, spelled: str, dtype: DType, mappable: bool = False) -> torch.Tensor | np.ndarray:
    info = reader.info(name)
    _check_dtype(info.dtype, name, dtype)
    if not spelled:
        return from_numpy(reader.read(name))
    shape, extents = parse_shape_and_slice(spelled)
    if shape != info.shape:
        raise InvalidArgumentError(
            None,
            None,
            f"tensor_name = {name}; shape in shape_and_slice spec {list(shape)} does not match the shape stored in "
            f"checkpoint: {list(info.shape)}",
        )
    if isinstance(reader, BundleReader):
        return _restored(reader.read_slice(name, extents, mappable=mappable))
    return from_numpy(reader.read_slice(name, extents))


def _sliced_shape(spelled: bytes) -> Shape:
    """The shape that a slice specification selects. For a whole tensor (an empty string), only the file knows the shape."""
    if not spelled:
        return UNKNOWN_SHAPE
    shape, extents = parse_shape_and_slice(_text(spelled))
    return Shape(cut_shape(extents, shape, "to restore"))


@RESTORE_SLICE.kernel
def restore_slice_kernel(
    file_pattern: np.ndarray, tensor_name: np.ndarray, shape_and_slice: np.ndarray, *, dt: DType, preferred_shard: int
) -> Any:
    del preferred_shard  # a hint for where to look first, which is not needed because all files are open
    with SliceReader(os.fsdecode(file_pattern.item())) as reader:
        return _read(reader, _text(tensor_name.item()), _text(shape_and_slice.item()), dt)


@RESTORE_SLICE.shape(values=["shape_and_slice"])
def restore_slice_shape(file_pattern: Shape, tensor_name: Shape, shape_and_slice: np.ndarray | None) -> Shape:
    return UNKNOWN_SHAPE if shape_and_slice is None else _sliced_shape(shape_and_slice.item())


@RESTORE.kernel
def restore_kernel(file_pattern: np.ndarray, tensor_name: np.ndarray, *, dt: DType, preferred_shard: int) -> Any:
    whole = np.array(b"", object)
    return restore_slice_kernel(file_pattern, tensor_name, whole, dt=dt, preferred_shard=preferred_shard)


@RESTORE_V2.kernel
def restore_v2_kernel(
    prefix: np.ndarray, tensor_names: np.ndarray, shape_and_slices: np.ndarray, *, dtypes: tuple[DType, ...]
) -> list[Any]:
    with open_checkpoint(os.fsdecode(prefix.item())) as reader:
        whole = len(tensor_names) == len(shape_and_slices) == len(dtypes) and not any(shape_and_slices)
        if whole and isinstance(reader, BundleReader):
            return list(map(_restored, reader.read_all(tensor_names.tolist(), dtypes, mappable=True)))
        specified = _specified(tensor_names, shape_and_slices, len(dtypes), "expected dtypes")
        return [_read(reader, name, spelled, dtypes[number], mappable=True) for number, name, spelled in specified]


def _restored(array: np.ndarray) -> Any:
    if array.__class__ is np.ndarray and array.dtype.num < 24 and array.dtype.kind in "fiub":
        return torch.from_numpy(array)
    tensor = from_numpy(array)
    if isinstance(array, np.memmap):
        tensor.pages = array  # lets the code that copies the tensor release pages that it has copied
    return tensor


@RESTORE_V2.shape(values=["shape_and_slices"])
def restore_v2_shape(
    prefix: Shape, tensor_names: Shape, shape_and_slices: np.ndarray | None, *, dtypes: tuple[DType, ...]
) -> tuple[Shape, ...]:
    _counted(tensor_names, count=len(dtypes))
    if shape_and_slices is None:
        return (UNKNOWN_SHAPE,) * len(dtypes)
    _counted(Shape(shape_and_slices.shape), count=len(dtypes))
    return tuple(map(_sliced_shape, shape_and_slices))


# ---- several files ----------------------------------------------------------------------------------------------

MERGE_V2_CHECKPOINTS = define(
    "MergeV2Checkpoints(checkpoint_prefixes: vector string, destination_prefix: scalar string) -> ()",
    STATEFUL,
    delete_old_dirs=True,
    allow_missing_files=False,
)
SHARDED_FILENAME = define(
    "ShardedFilename(basename: scalar string, shard: scalar host int32, num_shards: scalar host int32)"
    " -> (filename: string)"
)
SHARDED_FILESPEC = define(
    "ShardedFilespec(basename: scalar string, num_shards: scalar host int32) -> (filename: string)"
)


@MERGE_V2_CHECKPOINTS.kernel
def merge_v2_checkpoints_kernel(
    checkpoint_prefixes: np.ndarray, destination_prefix: np.ndarray, *, delete_old_dirs: bool, allow_missing_files: bool
) -> None:
    prefixes = [os.fsdecode(each) for each in checkpoint_prefixes]
    merged = os.fsdecode(destination_prefix.item())
    merge_bundles(prefixes, merged, allow_missing_files)
    if not delete_old_dirs:
        return
    for folder in {os.path.dirname(prefix) for prefix in prefixes} - {os.path.dirname(merged), ""}:
        try:
            empty = not gfile.listdir(folder)
        except NotFoundError:  # another merge removed the folder, or it never existed
            continue
        if empty:
            gfile.rmtree(folder)


def _file_of(basename: np.ndarray, shard: str, num_shards: int) -> np.ndarray:
    return np.array(basename.item() + f"-{shard}-of-{num_shards:05d}".encode(), object)


@SHARDED_FILENAME.kernel
def sharded_filename_kernel(basename: np.ndarray, shard: int, num_shards: int) -> np.ndarray:
    return _file_of(basename, f"{shard:05d}", num_shards)


@SHARDED_FILESPEC.kernel
def sharded_filespec_kernel(basename: np.ndarray, num_shards: int) -> np.ndarray:
    return _file_of(basename, "?????", num_shards)


SHARDED_FILENAME.shape(lambda basename, shard, num_shards: SCALAR)
SHARDED_FILESPEC.shape(lambda basename, num_shards: SCALAR)
