"""Checkpoint files in TensorFlow's V1 format: each file is a sorted string table of SavedTensorSlices.

The value of the empty key describes the file: name, shape, dtype and slices of each tensor. Each slice, including one that is a
whole tensor, is stored under its ordered-code key as a TensorProto. A checkpoint may consist of several files.
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Sequence
from typing import Any, BinaryIO

import numpy as np

from stoker._src.base import dtypes
from stoker._src.base.errors import DataLossError, InvalidArgumentError, NotFoundError, UnimplementedError
from stoker._src.formats import gfile, protos
from stoker._src.formats.filesystems import mapped, replacing, resolve, sweep_beside
from stoker._src.formats.ordered_code import Extent, encode_slice_key
from stoker._src.formats.sstable import Table, TableWriter
from stoker._src.formats.tensor_slices import (
    TensorInfo,
    assemble,
    check_slice,
    cut_shape,
    slice_from_proto,
    slice_to_proto,
)

_PRODUCER = 1
# The repeated field of TensorProto that holds a dtype, and the type of its numbers before conversion to the dtype.
_FIELDS: dict[dtypes.DType, tuple[str, Any]] = {
    dtypes.float32: ("float_val", np.float32),
    dtypes.float64: ("double_val", np.float64),
    dtypes.float16: ("half_val", np.uint16),
    dtypes.bfloat16: ("half_val", np.uint16),
    dtypes.int64: ("int64_val", np.int64),
    dtypes.bool_: ("bool_val", np.bool_),
    dtypes.uint32: ("uint32_val", np.uint32),
    dtypes.uint64: ("uint64_val", np.uint64),
    dtypes.complex64: ("scomplex_val", np.float32),
    dtypes.complex128: ("dcomplex_val", np.float64),
    **dict.fromkeys(
        (
            dtypes.int32, dtypes.int16, dtypes.int8, dtypes.uint16, dtypes.uint8,
            dtypes.qint32, dtypes.qint16, dtypes.qint8, dtypes.quint16, dtypes.quint8,
        ),
        ("int_val", np.int64),
    ),
}  # fmt: skip


# Dtypes that TensorFlow neither writes nor reads in this format.
_NOT_WRITTEN = (dtypes.bfloat16, dtypes.uint32, dtypes.uint64, dtypes.qint16, dtypes.quint16)


def _fill(proto: Any, array: np.ndarray, dtype: dtypes.DType) -> None:
    """Copies the elements of an array into a TensorProto."""
    if dtype is dtypes.string:
        proto.string_val.extend(each.encode() if isinstance(each, str) else bytes(each) for each in array.flat)
        return
    field, stored = _FIELDS[dtype]
    flat = array.reshape(-1)
    numbers = flat.view(stored) if stored is np.uint16 or dtype.is_complex else flat.astype(stored)
    getattr(proto, field).extend(numbers.tolist())


class SliceWriter:
    """Writes a checkpoint as a single file. The file appears complete when `finish` is called.

    Args:
        path: the file.
    """

    def __init__(self, path: str) -> None:
        self._path = path
        self._tensors: dict[str, Any] = {}  # SavedSliceMeta by name
        self._data: dict[bytes, bytes] = {}

    def add(self, name: str, array: np.ndarray, dtype: dtypes.DType) -> None:
        """Adds a whole tensor."""
        self.add_slice(name, array.shape, [(0, -1)] * array.ndim, array, dtype)

    def add_slice(
        self, name: str, full_shape: Sequence[int], extents: Sequence[Extent], array: np.ndarray, dtype: dtypes.DType
    ) -> None:
        """Adds a slice of a partitioned tensor: (start, length) along each dimension; length -1 means the whole dimension.

        Raises:
            InvalidArgumentError: the format does not support the dtype, or the slice conflicts with earlier ones.
        """
        if dtype in _NOT_WRITTEN or (dtype is not dtypes.string and dtype not in _FIELDS):
            raise InvalidArgumentError(
                None, None, f"Tensor slice serialization not implemented for dtype {dtype.name} of {name}"
            )
        check_slice(name, full_shape, extents, array)
        meta = self._tensors.get(name)
        if meta is None:
            meta = self._tensors[name] = protos.SavedSliceMeta(name=name, type=dtype.as_datatype_enum)
            meta.shape.SetInParent()
            for size in full_shape:
                meta.shape.dim.add(size=size)
        elif meta.type != dtype.as_datatype_enum or [dim.size for dim in meta.shape.dim] != list(full_shape):
            raise InvalidArgumentError(
                None, None, f"Slice {list(extents)} of tensor {name} disagrees with what was added before"
            )
        proto = slice_to_proto(extents)
        meta.slice.append(proto)
        saved = protos.SavedTensorSlices()
        saved.data.name = name
        saved.data.slice.CopyFrom(proto)
        saved.data.data.SetInParent()
        _fill(saved.data.data, array, dtype)
        self._data[encode_slice_key(name, slice_from_proto(proto))] = saved.SerializeToString(deterministic=True)

    def finish(self) -> None:
        """Writes the file."""
        described = protos.SavedTensorSlices()
        described.meta.versions.producer = _PRODUCER
        described.meta.tensor.extend(self._tensors[name] for name in sorted(self._tensors))
        sweep_beside(self._path)
        with replacing(self._path) as sink:
            table = TableWriter(sink)
            table.add(b"", described.SerializeToString(deterministic=True))
            for key in sorted(self._data):
                table.add(key, self._data[key])
            table.finish()


def _values(proto: Any, dtype: dtypes.DType) -> np.ndarray:
    """Returns the flat elements of a TensorProto."""
    if dtype is dtypes.string:
        array = np.empty(len(proto.string_val), object)
        array[:] = list(proto.string_val)
        return array
    if dtype not in _FIELDS:
        raise UnimplementedError(None, None, f"A checkpoint of the V1 format with dtype {dtype.name}")
    field, stored = _FIELDS[dtype]
    numbers = np.array(getattr(proto, field), stored)
    if stored is np.uint16 or dtype.is_complex:
        return numbers.view(dtype.as_numpy_dtype)
    return numbers.astype(dtype.as_numpy_dtype)


class SliceReader:
    """Reads a checkpoint of the V1 format. Use as a context manager, or call `close`.

    Args:
        pattern: the file, or a pattern that matches all files of the checkpoint.

    Raises:
        NotFoundError: no file matches.
        DataLossError: a file is damaged or is not a checkpoint.
    """

    def __init__(self, pattern: str) -> None:
        paths = gfile.glob(pattern)
        if not paths:
            raise NotFoundError(
                None,
                None,
                f"Unsuccessful TensorSliceReader constructor: Failed to find any matching files for {pattern}",
            )
        self._pattern = pattern
        self._sources: list[BinaryIO] = []
        self._infos: dict[str, TensorInfo] = {}
        self._homes: dict[tuple[str, tuple[Extent, ...]], Table] = {}
        try:
            for path in paths:
                self._open(path)
        except BaseException:
            self.close()
            raise

    def _open(self, path: str) -> None:
        location = resolve(path)
        source = location.system.open_read(location.path)
        self._sources.append(source)
        with mapped(path):
            table = Table(source, path)
            raw = table.get(b"")
        if raw is None:
            raise DataLossError(None, None, f"{path}: the table has no description of its tensors")
        try:
            meta = protos.SavedTensorSlices.FromString(raw).meta
        except Exception as error:
            raise DataLossError(None, None, f"{path}: damaged description of its tensors: {error}") from error
        for tensor in meta.tensor:
            try:
                dtype = dtypes.as_dtype(tensor.type)
            except TypeError:
                raise UnimplementedError(None, None, f"{path}: {tensor.name} has dtype number {tensor.type}") from None
            slices = tuple(slice_from_proto(each) for each in tensor.slice)
            shape = tuple(dim.size for dim in tensor.shape.dim)
            if min(shape, default=0) < 0:
                raise DataLossError(None, None, f"{path}: {tensor.name} has shape {list(shape)}")
            known = self._infos.get(tensor.name)
            if known is not None and (known.dtype, known.shape) != (dtype, shape):
                raise DataLossError(None, None, f"{path}: {tensor.name} disagrees with another file of the checkpoint")
            self._infos[tensor.name] = TensorInfo(dtype, shape, (known.slices if known else ()) + slices)
            for each in slices:
                cut_shape(each, shape, tensor.name)
                self._homes[tensor.name, each] = table

    def keys(self) -> list[str]:
        """Returns the names of all tensors, sorted."""
        return sorted(self._infos)

    def __contains__(self, name: str) -> bool:
        return name in self._infos

    def info(self, name: str) -> TensorInfo:
        """Returns dtype, shape and slices of a tensor. The slices are empty if it is not partitioned."""
        if name not in self._infos:
            raise NotFoundError(None, None, f'Tensor name "{name}" not found in checkpoint files {self._pattern}')
        info = self._infos[name]
        whole = len(info.slices) == 1 and all(length < 0 for _, length in info.slices[0])
        return info._replace(slices=()) if whole else info

    def read(self, name: str) -> np.ndarray:
        """Returns the value of a whole tensor; strings are an object array of bytes."""
        return self.read_slice(name, [(0, -1)] * len(self.info(name).shape))

    def read_slice(self, name: str, extents: Sequence[Extent]) -> np.ndarray:
        """Returns a box of a tensor: (start, length) along each dimension; length -1 means the whole dimension."""
        self.info(name)
        info = self._infos[name]

        def flat(part: tuple[Extent, ...]) -> np.ndarray:
            with mapped(name):
                raw = self._homes[name, part].get(encode_slice_key(name, part))
            if raw is None:
                raise NotFoundError(None, None, f"Slice {list(part)} of {name} not found in checkpoint")
            try:
                return _values(protos.SavedTensorSlices.FromString(raw).data.data, info.dtype)
            except UnimplementedError:
                raise
            except Exception as error:
                raise DataLossError(None, None, f"Slice {list(part)} of {name} is damaged: {error}") from error

        def verify(part: tuple[Extent, ...], shape: tuple[int, ...]) -> None:
            count = flat(part).size
            if count != math.prod(shape):
                raise DataLossError(None, None, f"Slice {list(part)} of {name} has {count} elements, not {shape}")

        return assemble(name, info, extents, verify, lambda part: flat(part).reshape(cut_shape(part, info.shape, name)))

    def close(self) -> None:
        """Closes the files."""
        sources, self._sources = self._sources, []
        for source in sources:
            with contextlib.suppress(OSError):
                source.close()

    def __enter__(self) -> SliceReader:
        return self

    def __exit__(self, *exc_info: Any) -> None:
        self.close()
