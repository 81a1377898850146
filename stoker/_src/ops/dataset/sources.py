"""Datasets that are not made from others: tensors, ranges, random numbers, files and generators."""

from __future__ import annotations

import itertools
import os
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy as np
import torch

from stoker._src.base.dtypes import DType
from stoker._src.base.errors import InvalidArgumentError, OutOfRangeError
from stoker._src.formats import gfile, tfrecord
from stoker._src.graph.definition import ANY, FUNC, SHAPES, STATEFUL, TYPES
from stoker._src.ops.dataset.values import (
    INFINITE,
    Dataset,
    Element,
    Elements,
    Generated,
    Rows,
    Transparent,
    define_dataset,
    integer,
    stop_if_cancelled,
    string_scalar,
    strings_in,
)
from stoker._src.ops.io import decoding
from stoker._src.ops.random.bits.philox import PhiloxState, bits
from stoker._src.ops.support.values import torch_dtype

_CHUNK = 1 << 18
_COMPONENTS: dict[str, Any] = {"Toutput_types": TYPES(minimum=1), "output_shapes": SHAPES(minimum=1)}

# ---- tensors -----------------------------------------------------------------------------------------------------

TENSOR_DATASET = define_dataset("TensorDataset(components: [Toutput_types])", typed=False, **_COMPONENTS, metadata="")


@TENSOR_DATASET.kernel
def tensor_dataset_kernel(components: list[Any]) -> Dataset:
    element = tuple(components)
    return Generated(lambda: iter([element]), 1)


TENSOR_SLICE_DATASET = define_dataset(
    "TensorSliceDataset(components: [Toutput_types])",
    typed=False,
    **_COMPONENTS,
    is_files=False,
    metadata="",
    replicate_on_split=False,
)


@TENSOR_SLICE_DATASET.kernel
def tensor_slice_dataset_kernel(components: list[Any]) -> Dataset:
    sizes = [component.shape[0] if getattr(component, "ndim", 0) else None for component in components]
    if None in sizes:
        raise InvalidArgumentError(None, None, "All components must be at least 1-dimensional")
    if len(set(sizes)) > 1:
        k = next(k for k, size in enumerate(sizes) if size != sizes[0])
        raise InvalidArgumentError(
            None,
            None,
            f"All components must have the same size in the 0th dimension: component {k} has {sizes[k]} rows, "
            f"component 0 has {sizes[0]}.",
        )
    count = sizes[0] or 0
    return Generated(lambda: Rows(components).elements(count), count, is_plain=True)


SPARSE_TENSOR_SLICE_DATASET = define_dataset(
    "SparseTensorSliceDataset(indices: int64, values: Tvalues, dense_shape: int64)", typed=False, Tvalues=ANY
)


@SPARSE_TENSOR_SLICE_DATASET.kernel
def sparse_tensor_slice_dataset_kernel(indices: torch.Tensor, values: Any, dense_shape: torch.Tensor) -> Dataset:
    """The rows of a sparse tensor: (indices, values, shape) of each."""
    if dense_shape.numel() == 0 or indices.ndim != 2 or indices.shape[1] != dense_shape.numel():
        raise InvalidArgumentError(
            None,
            None,
            f"Number of dimensions must match, got indices {list(indices.shape)} and dense_shape {dense_shape.tolist()}",
        )
    rows = indices[:, 0]
    if bool((rows[1:] < rows[:-1]).any()):
        raise InvalidArgumentError(None, None, "The SparseTensor must be ordered in the batch dimension.")
    count = int(dense_shape[0])
    ends = torch.searchsorted(rows.contiguous(), torch.arange(count + 1))
    bounds = ends.tolist()

    def start() -> Iterator[Element]:
        for first, last in itertools.pairwise(bounds):
            yield indices[first:last, 1:], values[first:last], dense_shape[1:]

    return Generated(start, count)


# ---- numbers -----------------------------------------------------------------------------------------------------

RANGE_DATASET = define_dataset(
    "RangeDataset(start: scalar int64, stop: scalar int64, step: scalar int64)", metadata="", replicate_on_split=False
)


@RANGE_DATASET.kernel
def range_dataset_kernel(
    start: torch.Tensor, stop: torch.Tensor, step: torch.Tensor, *, output_types: tuple[DType, ...]
) -> Dataset:
    if int(step) == 0:
        raise InvalidArgumentError(None, None, "step must be a non-zero integer.")
    numbers, kind = range(int(start), int(stop), int(step)), torch_dtype(output_types[0])
    return Generated(lambda: ((torch.tensor(number, dtype=kind),) for number in numbers), len(numbers), is_plain=True)


RANDOM_DATASET = define_dataset("RandomDataset(seed: scalar int64, seed2: scalar int64)", STATEFUL, metadata="")


@RANDOM_DATASET.kernel
def random_dataset_kernel(seed: torch.Tensor, seed2: torch.Tensor) -> Dataset:
    """Endless 32-bit numbers, as int64."""

    def start() -> Iterator[Element]:
        state = PhiloxState(int(seed), int(seed2))
        while True:
            for word in bits(state.reserve(64), 256).tolist():
                yield (integer(word),)

    return Generated(start, INFINITE)


# ---- files -------------------------------------------------------------------------------------------------------


def _opened(name: bytes) -> Any:
    return gfile.GFile(os.fsdecode(name), "rb")


def _compression(value: Any) -> str:
    text = strings_in(value)[0].decode()
    if text not in ("", "ZLIB", "GZIP"):
        raise InvalidArgumentError(None, None, f"Unsupported compression_type: {text}.")
    return text


def _chunks(file: Any, compression: str) -> Iterator[bytes]:
    if compression:
        yield decoding.inflate(file.read(), gzip=compression == "GZIP")
        return
    while chunk := file.read(_CHUNK):
        yield chunk


_MOST_TOGETHER, _SMALL_RECORD = 256, 1024  # records in an array, and bytes of one


def _elements(records: list[bytes]) -> Iterable[Element]:
    """Small records are rows of an array, from which batches are made quickly. The array lives as long as one of its rows."""
    if len(records) == 1 or sum(map(len, records)) > len(records) * _SMALL_RECORD:
        return [(string_scalar(record),) for record in records]
    column = np.empty(len(records), dtype=object)
    column[:] = records
    return Rows([column]).elements(len(records))


class _Files(Transparent):
    """The records of several files, one file after the other. After a failure, it continues with the next file."""

    def __init__(self, names: list[bytes], read: Callable[[bytes], Iterator[bytes]]) -> None:
        super().__init__()
        self._names, self._read = iter(names), read
        self._records: Iterator[bytes] = iter(())

    def next(self) -> Element:
        stop_if_cancelled()
        while True:
            try:
                return (string_scalar(next(self._records)),)
            except StopIteration:
                self._records = self._read(next(self._names))

    def take(self, count: int, found: Any) -> None:
        records: list[bytes] = []
        try:
            while len(records) < count:
                stop_if_cancelled()
                wanted = min(count, len(records) + _MOST_TOGETHER)
                records.extend(itertools.islice(self._records, wanted - len(records)))
                if len(records) < wanted:
                    name = next(self._names, None)
                    if name is None:
                        break
                    self._records = self._read(name)
        finally:
            for first in range(0, len(records), _MOST_TOGETHER):
                found.extend(_elements(records[first : first + _MOST_TOGETHER]))

    def close(self) -> None:
        self._names, self._records = iter(()), iter(())  # dropping the generator closes its file


class _FileDataset(Dataset):
    def __init__(self, filenames: Any, read: Callable[[bytes], Iterator[bytes]]) -> None:
        self._names, self._read = strings_in(filenames), read

    def elements(self) -> Elements:
        return _Files(self._names, self._read)


_FILES = "filenames: rank<2 string, compression_type: scalar string, buffer_size: scalar int64"

TEXT_LINE_DATASET = define_dataset(f"TextLineDataset({_FILES})", STATEFUL, typed=False, metadata="")


@TEXT_LINE_DATASET.kernel
def text_line_dataset_kernel(filenames: Any, compression_type: Any, buffer_size: torch.Tensor) -> Dataset:
    compression = _compression(compression_type)

    def lines(name: bytes) -> Iterator[bytes]:
        held = b""
        with _opened(name) as file:
            for chunk in _chunks(file, compression):
                found = (held + chunk).split(b"\n")
                held = found.pop()
                for line in found:
                    yield line.removesuffix(b"\r")
        if held:
            yield held.removesuffix(b"\r")

    return _FileDataset(filenames, lines)


TF_RECORD_DATASET = define_dataset(f"TFRecordDataset({_FILES})", STATEFUL, typed=False, metadata="")


@TF_RECORD_DATASET.kernel
def tf_record_dataset_kernel(filenames: Any, compression_type: Any, buffer_size: torch.Tensor) -> Dataset:
    compression = _compression(compression_type)

    def records(name: bytes) -> Iterator[bytes]:
        with _opened(name) as file:
            yield from tfrecord.read_records(file, compression)

    return _FileDataset(filenames, records)


FIXED_LENGTH_RECORD_DATASET_V2 = define_dataset(
    "FixedLengthRecordDatasetV2(filenames: rank<2 string, header_bytes: scalar int64, record_bytes: scalar int64, "
    "footer_bytes: scalar int64, buffer_size: scalar int64, compression_type: scalar string)",
    STATEFUL,
    typed=False,
    metadata="",
)


@FIXED_LENGTH_RECORD_DATASET_V2.kernel
def fixed_length_record_dataset_kernel(
    filenames: Any,
    header_bytes: torch.Tensor,
    record_bytes: torch.Tensor,
    footer_bytes: torch.Tensor,
    buffer_size: torch.Tensor,
    compression_type: Any,
) -> Dataset:
    compression = _compression(compression_type)
    header, size, footer = int(header_bytes), int(record_bytes), int(footer_bytes)
    for what, number, least in (("header_bytes", header, 0), ("record_bytes", size, 1), ("footer_bytes", footer, 0)):
        if number < least:
            raise InvalidArgumentError(None, None, f"{what} must be >= {least}, not {number}")

    def records(name: bytes) -> Iterator[bytes]:
        with _opened(name) as file:
            data = b"".join(_chunks(file, compression))
        body = len(data) - header - footer
        if body % size:
            raise InvalidArgumentError(
                None,
                None,
                f"Excess bytes of {body % size} in file {os.fsdecode(name)}: {len(data)} bytes with header_bytes = {header}, "
                f"footer_bytes = {footer} are not a multiple of record_bytes = {size}.",
            )
        for at in range(header, header + body, size):
            yield data[at : at + size]

    return _FileDataset(filenames, records)


# ---- generators --------------------------------------------------------------------------------------------------

GENERATOR_DATASET = define_dataset(
    "GeneratorDataset(init_func_other_args: [Tinit_func_args], next_func_other_args: [Tnext_func_args], "
    "finalize_func_other_args: [Tfinalize_func_args])",
    STATEFUL,
    init_func=FUNC,
    next_func=FUNC,
    finalize_func=FUNC,
    Tinit_func_args=TYPES,
    Tnext_func_args=TYPES,
    Tfinalize_func_args=TYPES,
    metadata="",
).keeping()


class _Generating(Elements):
    """`init_func()` makes a state, `next_func(state)` an element until OutOfRangeError, `finalize_func(state)` cleans up."""

    def __init__(self, begin: Any, following: Any, finish: Any) -> None:
        super().__init__()
        self._begin, self._following, self._finish = begin, following, finish
        self._state: Element | None = None
        self._ended = False

    def next(self) -> Element:
        if self._ended:
            raise StopIteration
        stop_if_cancelled()
        state = self._state
        if state is None:
            state = self._state = self._begin()
        try:
            return self._following(*state)
        except OutOfRangeError:
            self.close()
            raise StopIteration from None

    def close(self) -> None:
        self._ended = True
        state, self._state = self._state, None
        if state is not None:
            self._finish(*state)


class _GeneratorDataset(Dataset):
    def __init__(self, functions: tuple[Any, Any, Any]) -> None:
        self._functions = functions

    def elements(self) -> Elements:
        return _Generating(*self._functions)


@GENERATOR_DATASET.kernel
def generator_dataset_kernel(
    init_func_other_args: list[Any],
    next_func_other_args: list[Any],
    finalize_func_other_args: list[Any],
    *,
    init_func: Any,
    next_func: Any,
    finalize_func: Any,
) -> Dataset:
    return _GeneratorDataset(
        (
            init_func.bind(init_func_other_args),
            next_func.bind(next_func_other_args),
            finalize_func.bind(finalize_func_other_args),
        )
    )
