"""Checkpoints as safetensors files and back, bit for bit.

A large checkpoint becomes several files with an index, as Hugging Face writes them: `out-00001-of-00003.safetensors`, ..., and
`out.safetensors.index.json`, which maps each name to its file. The description of objects in an object-based checkpoint is text; it
travels in the metadata of the first file, so that the way back gives an object-based checkpoint again.
"""

from __future__ import annotations

import base64
import binascii
import json
import math
import operator
import os
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, NamedTuple

import ml_dtypes
import numpy as np
import safetensors.numpy

from stoker._src.base import dtypes
from stoker._src.base.errors import DataLossError, InvalidArgumentError, NotFoundError, UnimplementedError
from stoker._src.formats import gfile
from stoker._src.formats.checkpoints import open_checkpoint
from stoker._src.formats.filesystems import replacing
from stoker._src.formats.tensor_bundle import BundleWriter
from stoker._src.formats.tensor_slices import TensorInfo

OBJECT_GRAPH_KEY = "_CHECKPOINTABLE_OBJECT_GRAPH"
_METADATA_KEY = "stoker.object_graph"
SUFFIX, INDEX_SUFFIX = ".safetensors", ".safetensors.index.json"
_MOST_INDEX = 1 << 28  # bytes
_MOST_HEADER = 100_000_000  # bytes, as the safetensors library has it

# The names of dtypes in files, and NumPy's dtypes.
_FROM_FILE: dict[str, Any] = {
    "BOOL": np.bool_,
    "U8": np.uint8,
    "I8": np.int8,
    "I16": np.int16,
    "U16": np.uint16,
    "F16": np.float16,
    "BF16": ml_dtypes.bfloat16,
    "I32": np.int32,
    "U32": np.uint32,
    "F32": np.float32,
    "F64": np.float64,
    "I64": np.int64,
    "U64": np.uint64,
    "C64": np.complex64,
    "F8_E4M3": ml_dtypes.float8_e4m3fn,
    "F8_E5M2": ml_dtypes.float8_e5m2,
}
_HELD = frozenset(np.dtype(each) for each in _FROM_FILE.values())

Rename = Callable[[str], str]


@dataclass
class Converted:
    """What a conversion wrote."""

    files: list[str]
    tensors: int
    size: int
    left_out: list[str]


def is_safetensors(path: str) -> bool:
    """Whether a path names safetensors: by its ending, or a directory that holds such files."""
    if path.endswith((SUFFIX, INDEX_SUFFIX)):
        return True
    return gfile.isdir(path) and any(name.endswith((SUFFIX, INDEX_SUFFIX)) for name in gfile.listdir(path))


def renaming(rules: Iterable[tuple[str, str]], names: dict[str, str]) -> Rename:
    """A function that renames: `names` first, then each rule, a pattern and its replacement, in order.

    Raises:
        InvalidArgumentError: a pattern is malformed.
    """
    try:
        compiled = [(re.compile(pattern), replacement) for pattern, replacement in rules]
    except re.error as error:
        raise InvalidArgumentError(None, None, f"{error.pattern!r} is not a regular expression: {error}") from error

    def rename(name: str) -> str:
        if name in names:
            return names[name]
        for pattern, replacement in compiled:
            try:
                name = pattern.sub(replacement, name)
            except (re.error, IndexError) as error:
                raise InvalidArgumentError(
                    None, None, f"{replacement!r} cannot replace {pattern.pattern!r}: {error}"
                ) from error
        return name

    return rename


def _renamed(names: Iterable[str], rename: Rename, skip: str | None) -> tuple[dict[str, str], list[str]]:
    """The new names by the old ones, and the names that are left out.

    Raises:
        InvalidArgumentError: two get the same name.
    """
    found: dict[str, str] = {}
    owners: dict[str, str] = {}
    left_out = []
    for name in names:
        if skip is not None and re.search(skip, name):
            left_out.append(name)
            continue
        new = rename(name)
        if new in owners:
            raise InvalidArgumentError(None, None, f"{owners[new]} and {name} would both be named {new}.")
        owners[new], found[name] = name, new
    return found, left_out


# ---- to safetensors ---------------------------------------------------------------------------------------------


def checkpoint_to_safetensors(
    prefix: str, target: str, rename: Rename, *, skip: str | None = None, max_shard_size: int = 2 * 10**9
) -> Converted:
    """Writes the tensors of a checkpoint of either format as `target`, or as several files of at most `max_shard_size` bytes.

    Raises:
        UnimplementedError: a tensor has a dtype that safetensors cannot hold, such as strings.
        NotFoundError: there is no such checkpoint.
        InvalidArgumentError: two tensors would have the same name.
    """
    with open_checkpoint(prefix) as reader:
        infos = {name: reader.info(name) for name in reader.keys()}  # noqa: SIM118
        metadata = {"format": "pt"}
        if OBJECT_GRAPH_KEY in infos:
            graph = bytes(reader.read(OBJECT_GRAPH_KEY)[()])
            metadata[_METADATA_KEY] = base64.b64encode(graph).decode()
            del infos[OBJECT_GRAPH_KEY]
        new_names, left_out = _renamed(infos, rename, skip)
        for name in new_names:
            _refuse(name, infos[name].dtype)
        shards = _shards(((name, _size(infos[name])) for name in new_names), max_shard_size)
        base = target.removesuffix(INDEX_SUFFIX).removesuffix(SUFFIX)
        files, weight_map, total = [], {}, 0
        for number, names in enumerate(shards):
            path = base + SUFFIX
            if len(shards) > 1:
                path = f"{base}-{number + 1:05}-of-{len(shards):05}{SUFFIX}"
            arrays = {
                new_names[name]: np.ascontiguousarray(reader.read(name)).reshape(infos[name].shape) for name in names
            }
            data = safetensors.numpy.save(arrays, metadata if number == 0 else {"format": "pt"})
            with replacing(path) as file:
                file.write(data)
            files.append(path)
            total += sum(_size(infos[name]) for name in names)
            weight_map.update({new_names[name]: os.path.basename(path) for name in names})
    if len(shards) > 1:
        index = {"metadata": {"total_size": total}, "weight_map": dict(sorted(weight_map.items()))}
        with replacing(base + INDEX_SUFFIX) as file:
            file.write((json.dumps(index, indent=2) + "\n").encode())
        files.append(base + INDEX_SUFFIX)
    return Converted(files, len(new_names), total, left_out)


def _size(info: Any) -> int:
    return math.prod(info.shape) * info.dtype.size


def _refuse(name: str, dtype: dtypes.DType) -> None:
    if dtype is dtypes.string:
        raise UnimplementedError(
            None,
            None,
            f"{name} holds strings, and safetensors holds numbers only. Leave it out with --skip {re.escape(name)!r}.",
        )
    if dtype.is_quantized or np.dtype(dtype.as_numpy_dtype) not in _HELD:
        raise UnimplementedError(
            None,
            None,
            f"{name} is {dtype.name}, which safetensors cannot hold. Leave it out with --skip {re.escape(name)!r}.",
        )


def _shards(sizes: Iterable[tuple[str, int]], most: int) -> list[list[str]]:
    shards: list[list[str]] = [[]]
    filled = 0
    for name, size in sizes:
        if shards[-1] and filled + size > most:
            shards.append([])
            filled = 0
        shards[-1].append(name)
        filled += size
    return shards


# ---- from safetensors -------------------------------------------------------------------------------------------


def safetensors_to_checkpoint(source: str, prefix: str, rename: Rename, *, skip: str | None = None) -> Converted:
    """Writes the tensors of a safetensors file, of an index's files, or of a directory's, as a checkpoint.

    Raises:
        NotFoundError: a file does not exist.
        DataLossError: a file is damaged, or does not hold what the index says.
        InvalidArgumentError: two tensors would have the same name.
        UnimplementedError: a tensor has a dtype that TensorFlow has not.
    """
    reader = SafetensorsReader(source)
    new_names, left_out = _renamed(reader.keys(), rename, skip)
    if not new_names:
        raise InvalidArgumentError(None, None, f"{source} holds no tensors to write.")
    size = 0
    with BundleWriter(prefix) as writer:
        for name, new in new_names.items():
            array = reader.read(name)
            writer.add(new, array)
            size += array.nbytes
        if reader.object_graph:
            holder = np.empty([], object)
            holder[()] = reader.object_graph
            writer.add(OBJECT_GRAPH_KEY, holder)
    return Converted([prefix], len(new_names), size, left_out)


def _files(source: str) -> dict[str, list[str] | None]:
    """The files to read, each with the names to take from it (None for all)."""
    if gfile.isdir(source):
        names = sorted(gfile.listdir(source))
        indexes = [name for name in names if name.endswith(INDEX_SUFFIX)]
        found = indexes or [name for name in names if name.endswith(SUFFIX)]
        if len(found) != 1:
            raise InvalidArgumentError(None, None, f"{source} holds {found}: name the one to read.")
        source = os.path.join(source, found[0])
    if not source.endswith(INDEX_SUFFIX):
        return {source: None}
    with gfile.GFile(source, "rb") as file:
        if file.size() > _MOST_INDEX:
            raise DataLossError(None, None, f"{source} has {file.size():,} bytes, too many for an index.")
        data = file.read()
    try:
        weight_map = json.loads(data)["weight_map"]
        pairs = [(str(name), str(name_of_file)) for name, name_of_file in weight_map.items()]
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise DataLossError(None, None, f"{source} is not an index of safetensors files: {error!r}") from error
    files: dict[str, list[str] | None] = {}
    for name, name_of_file in pairs:
        # The index comes from elsewhere: it may not name files outside of its directory.
        if name_of_file in ("", ".", "..") or re.search(r"[/\\:]", name_of_file):
            raise DataLossError(None, None, f"{source} names the file {name_of_file!r}, which is not beside it.")
        path = os.path.join(os.path.dirname(source), name_of_file)
        names = files.setdefault(path, [])
        assert names is not None
        names.append(name)
    return files


class SafetensorsReader:
    """The tensors of a safetensors file, of an index's files, or of a directory's. Tensors are read one by one.

    Args:
        source: The file, the index or the directory.

    Raises:
        NotFoundError: A file does not exist.
        DataLossError: A file is damaged, or does not hold what the index says.
    """

    def __init__(self, source: str) -> None:
        self._places: dict[str, _Place] = {}
        self.object_graph = b""  # the description of objects that the first file may hold
        files = _files(source)
        self.num_files = len(files)
        for path, wanted in files.items():
            places, metadata = _header(path)
            missing = [] if wanted is None else [name for name in wanted if name not in places]
            if missing:
                raise DataLossError(None, None, f"{path} does not hold {missing[0]}, which the index says it does.")
            self.object_graph = self.object_graph or _object_graph(metadata, path)
            self._places.update({name: places[name] for name in (places if wanted is None else wanted)})

    def keys(self) -> list[str]:
        """Returns the names of the tensors."""
        return list(self._places)

    def info(self, name: str) -> TensorInfo:
        """Returns the dtype and the shape of a tensor.

        Raises:
            UnimplementedError: TensorFlow has no such dtype.
        """
        place = self._places[name]
        if place.dtype not in _FROM_FILE:
            raise UnimplementedError(
                None,
                None,
                f"{name} of {place.path} is {place.dtype}, which TensorFlow has not. Leave it out with --skip {re.escape(name)!r}.",
            )
        return TensorInfo(dtypes.as_dtype(_FROM_FILE[place.dtype]), place.shape, ())

    def read(self, name: str) -> np.ndarray:
        """Returns a tensor.

        Raises:
            UnimplementedError: TensorFlow has no such dtype.
        """
        place, info = self._places[name], self.info(name)
        with gfile.GFile(place.path, "rb") as file:
            file.seek(place.begin)
            data = file.read(place.end - place.begin)
        return np.frombuffer(data, dtype=info.dtype.as_numpy_dtype).reshape(info.shape)


class _Place(NamedTuple):
    """Where a tensor is."""

    path: str
    dtype: str
    shape: tuple[int, ...]
    begin: int
    end: int


def _header(path: str) -> tuple[dict[str, _Place], dict[str, str]]:
    """The tensors of a file and its metadata. The file has the length of its header in 8 bytes, the header, and the tensors without gaps."""
    if not gfile.exists(path):
        raise NotFoundError(None, None, f"{path} does not exist.")
    with gfile.GFile(path, "rb") as file:
        size = file.size()
        length = int.from_bytes(file.read(8), "little")
        if size < 8 or length > min(size - 8, _MOST_HEADER):
            raise DataLossError(
                None, None, f"{path} is not a safetensors file: {size:,} bytes with a header of {length:,}."
            )
        data = file.read(length)
    try:
        header = json.loads(data)
        metadata = header.pop("__metadata__", None) or {}
        places = {}
        for name, entry in header.items():
            shape = tuple(map(operator.index, entry["shape"]))
            begin, end = map(operator.index, entry["data_offsets"])
            places[name] = _Place(path, str(entry["dtype"]), shape, begin + 8 + length, end + 8 + length)
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise DataLossError(None, None, f"{path} is not a safetensors file: {error!r}") from error
    at = 8 + length
    for name, place in sorted(places.items(), key=lambda item: item[1][3:]):
        item = np.dtype(_FROM_FILE[place.dtype]).itemsize if place.dtype in _FROM_FILE else None
        needed = place.end - place.begin if item is None else math.prod(place.shape) * item
        if place.begin != at or place.end - place.begin != needed or min(place.shape, default=0) < 0:
            raise DataLossError(
                None,
                None,
                f"{path} is not a safetensors file: {name} of shape {list(place.shape)} is said to be at {place.begin:,} to {place.end:,}, "
                f"but the one before it ends at {at:,}.",
            )
        at = place.end
    if at != size:
        raise DataLossError(
            None, None, f"{path} is not a safetensors file: its tensors end at {at:,}, and it has {size:,} bytes."
        )
    return places, metadata


def _object_graph(metadata: dict[str, str], path: str) -> bytes:
    try:
        return base64.b64decode(metadata.get(_METADATA_KEY, ""), validate=True)
    except (binascii.Error, TypeError) as error:
        raise DataLossError(None, None, f"{path}: the description of its objects is damaged: {error}") from error
