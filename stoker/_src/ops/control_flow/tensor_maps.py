"""Immutable maps from tensors to tensors (dtype variant): an insertion returns another map."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from stoker._src.base import dtypes
from stoker._src.base.dtypes import DType
from stoker._src.base.errors import InvalidArgumentError
from stoker._src.base.shapes import SCALAR, UNKNOWN_SHAPE
from stoker._src.graph.definition import TYPE, VIEW, define
from stoker._src.ops.support.values import to_numpy

# A key is identified by its dtype, shape and elements.
_Place = tuple[str, tuple[int, ...], bytes | tuple[bytes, ...]]


def _place(key: Any) -> _Place:
    array = to_numpy(key)
    if array.dtype == object:
        return "string", array.shape, tuple(array.ravel().tolist())
    return array.dtype.name, array.shape, array.tobytes()


class TensorMap:
    """Keys and values with their dtypes, indexed by the contents of the keys."""

    __slots__ = ("entries",)

    def __init__(self, entries: dict[_Place, tuple[Any, DType, Any, DType]]) -> None:
        self.entries = entries

    def found(self, key: Any, what: str) -> tuple[Any, DType, Any, DType]:
        entry = self.entries.get(_place(key))
        if entry is None:
            raise InvalidArgumentError(
                None, None, f'Trying to {what}. Could not find key "{np.array2string(to_numpy(key))}".'
            )
        return entry

    def zeros_like(self) -> TensorMap:
        return TensorMap({})


EMPTY_TENSOR_MAP = define("EmptyTensorMap() -> (handle: variant)")
EMPTY_TENSOR_MAP.kernel(lambda: TensorMap({}))
EMPTY_TENSOR_MAP.shape(lambda: SCALAR)

TENSOR_MAP_SIZE = define("TensorMapSize(input_handle: variant) -> (size: int32)")
TENSOR_MAP_SIZE.kernel(lambda input_handle: torch.tensor(len(input_handle.entries), dtype=torch.int32))
TENSOR_MAP_SIZE.shape(lambda input_handle: SCALAR)

TENSOR_MAP_LOOKUP = define(
    "TensorMapLookup(input_handle: variant, key: key_dtype) -> (value: value_dtype)",
    VIEW,
    key_dtype=TYPE,
    value_dtype=TYPE,
)
TENSOR_MAP_LOOKUP.shape(lambda input_handle, key: UNKNOWN_SHAPE)


@TENSOR_MAP_LOOKUP.kernel
def tensor_map_lookup_kernel(input_handle: TensorMap, key: Any, *, value_dtype: DType) -> Any:
    _, _, value, kind = input_handle.found(key, "lookup non-existent key")
    if kind is not value_dtype:
        raise InvalidArgumentError(None, None, f"Type mismatch: actual {kind.name} vs. expect {value_dtype.name}")
    return value


TENSOR_MAP_INSERT = define(
    "TensorMapInsert(input_handle: variant, key: key_dtype, value: value_dtype) -> (output_handle: variant)",
    VIEW,
    key_dtype=TYPE,
    value_dtype=TYPE,
)
TENSOR_MAP_INSERT.shape(lambda input_handle, key, value: SCALAR)


@TENSOR_MAP_INSERT.kernel
def tensor_map_insert_kernel(
    input_handle: TensorMap, key: Any, value: Any, *, key_dtype: DType, value_dtype: DType
) -> TensorMap:
    return TensorMap({**input_handle.entries, _place(key): (key, key_dtype, value, value_dtype)})


TENSOR_MAP_ERASE = define(
    "TensorMapErase(input_handle: variant, key: key_dtype) -> (output_handle: variant)",
    VIEW,
    key_dtype=TYPE,
    value_dtype=TYPE,
)
TENSOR_MAP_ERASE.shape(lambda input_handle, key: SCALAR)


@TENSOR_MAP_ERASE.kernel
def tensor_map_erase_kernel(input_handle: TensorMap, key: Any) -> TensorMap:
    input_handle.found(key, "erase non-existent item")
    gone = _place(key)
    return TensorMap({place: entry for place, entry in input_handle.entries.items() if place != gone})


TENSOR_MAP_HAS_KEY = define("TensorMapHasKey(input_handle: variant, key: key_dtype) -> (has_key: bool)", key_dtype=TYPE)
TENSOR_MAP_HAS_KEY.kernel(lambda input_handle, key: torch.tensor(_place(key) in input_handle.entries))
TENSOR_MAP_HAS_KEY.shape(lambda input_handle, key: SCALAR)

TENSOR_MAP_STACK_KEYS = define("TensorMapStackKeys(input_handle: variant) -> (keys: key_dtype)", key_dtype=TYPE)
TENSOR_MAP_STACK_KEYS.shape(lambda input_handle: UNKNOWN_SHAPE)


@TENSOR_MAP_STACK_KEYS.kernel
def tensor_map_stack_keys_kernel(input_handle: TensorMap, *, key_dtype: DType) -> Any:
    """The keys in insertion order. TensorFlow returns them in hash table order."""
    entries = list(input_handle.entries.values())
    if not entries:
        raise InvalidArgumentError(None, None, "TensorMapStackKeys cannot be called on empty map.")
    if any(kind is not key_dtype for _, kind, _, _ in entries):
        raise InvalidArgumentError(None, None, "Key does not match requested dtype.")
    keys = [key for key, *_ in entries]
    if any(key.shape != keys[0].shape for key in keys):
        raise InvalidArgumentError(None, None, "Keys must all have the same shape.")
    return np.stack(keys) if key_dtype is dtypes.string else torch.stack(keys)
