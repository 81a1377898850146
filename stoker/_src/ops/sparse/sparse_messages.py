"""Serialized sparse tensors: three TensorProtos (indices, values, shape) each, singly or in batches."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import torch
from google.protobuf.message import DecodeError

from stoker._src.base import dtypes
from stoker._src.base.dtypes import DType, as_dtype
from stoker._src.base.errors import InvalidArgumentError
from stoker._src.base.export import export
from stoker._src.base.shapes import Shape
from stoker._src.formats import protos, tensor_proto
from stoker._src.graph.definition import ANY, TYPE, define, one_of
from stoker._src.graph.sparse_tensor import SparseTensor, SparseTensorValue
from stoker._src.graph.tensor import Tensor
from stoker._src.ops.io.tensor_messages import tensor_bytes
from stoker._src.ops.support.movement import allocatable
from stoker._src.ops.support.values import from_numpy, to_numpy

_FORM = one_of(dtypes.string, dtypes.variant, default=dtypes.string)


def _invalid(message: str) -> InvalidArgumentError:
    return InvalidArgumentError(None, None, message)


def _check_parts(indices: Any, values: Any, shape: Any) -> None:
    if indices.ndim != 2:
        raise _invalid(f"Input indices should be a matrix but received shape {list(indices.shape)}")
    if values.ndim != 1:
        raise _invalid(f"Input values should be a vector but received shape {list(values.shape)}")
    if shape.ndim != 1:
        raise _invalid(f"Input shape should be a vector but received shape {list(shape.shape)}")


class _Boxed(NamedTuple):
    """Wraps a tensor as an element of a variant tensor, which is an object array."""

    value: np.ndarray
    dtype: DType


def _three(indices: Any, values: Any, shape: Any, dtype: DType, out_type: DType) -> list[Any]:
    parts = ((indices, dtypes.int64), (values, dtype), (shape, dtypes.int64))
    if out_type is dtypes.string:
        return [tensor_bytes(value, kind, strings_as_content=True) for value, kind in parts]
    return [_Boxed(np.array(to_numpy(value)), kind) for value, kind in parts]


def _set_row(row: np.ndarray, parts: list[Any]) -> None:
    for k, part in enumerate(parts):  # assigned one by one, because NumPy would treat a part as a sequence
        row[k] = part


# ---- serialize --------------------------------------------------------------------------------------------------

SERIALIZE_SPARSE = define(
    "SerializeSparse(sparse_indices: int64, sparse_values: T, sparse_shape: int64) -> (serialized_sparse: out_type)",
    T=ANY, out_type=_FORM,
)  # fmt: skip


@SERIALIZE_SPARSE.kernel
def serialize_sparse_kernel(
    sparse_indices: torch.Tensor, sparse_values: Any, sparse_shape: torch.Tensor, *, T: DType, out_type: DType
) -> np.ndarray:
    _check_parts(sparse_indices, sparse_values, sparse_shape)
    result = np.empty(3, dtype=object)
    _set_row(result, _three(sparse_indices, sparse_values, sparse_shape, T, out_type))
    return result


def _check_ranks(sparse_indices: Shape, sparse_values: Shape, sparse_shape: Shape) -> None:
    sparse_indices.of_rank(2)
    sparse_values.of_rank(1)
    sparse_shape.of_rank(1)


@SERIALIZE_SPARSE.shape
def serialize_sparse_shape(sparse_indices: Shape, sparse_values: Shape, sparse_shape: Shape) -> Shape:
    _check_ranks(sparse_indices, sparse_values, sparse_shape)
    return Shape((3,))


SERIALIZE_MANY_SPARSE = define(
    "SerializeManySparse(sparse_indices: int64, sparse_values: T, sparse_shape: int64) -> "
    "(serialized_sparse: out_type)",
    T=ANY, out_type=_FORM,
)  # fmt: skip


def check_order(indices: np.ndarray, sizes: list[int]) -> None:
    """Checks that the coordinates are within bounds and in row-major order."""
    outside = np.flatnonzero(((indices < 0) | (indices >= np.array(sizes, np.int64))).any(axis=1))
    if outside.size:
        row = int(outside[0])
        raise _invalid(
            f"indices[{row}] = [{','.join(map(str, indices[row]))}] is out of bounds: "
            f"need 0 <= index < [{','.join(map(str, sizes))}]"
        )
    rows = indices.tolist()
    for i, (before, row) in enumerate(zip(rows, rows[1:]), start=1):  # noqa: RUF007 (rows may be long: no tuples)
        if row <= before:
            problem = (
                "repeated"
                if row == before
                else "out of order. Many sparse ops require sorted indices.\n    Use `tf.sparse.reorder` to create a correctly ordered copy."
            )
            raise _invalid(f"indices[{i}] = [{','.join(map(str, row))}] is {problem}")


@SERIALIZE_MANY_SPARSE.kernel
def serialize_many_sparse_kernel(
    sparse_indices: torch.Tensor, sparse_values: Any, sparse_shape: torch.Tensor, *, T: DType, out_type: DType
) -> np.ndarray:
    _check_parts(sparse_indices, sparse_values, sparse_shape)
    sizes = sparse_shape.tolist()
    if len(sizes) <= 1:
        raise _invalid(f"Rank of input SparseTensor should be > 1, but saw rank: {len(sizes)}")
    indices, values = to_numpy(sparse_indices), to_numpy(sparse_values)
    if len(indices) != len(values) or indices.shape[1] != len(sizes):
        raise _invalid(
            f"indices {list(indices.shape)}, values {list(values.shape)} and shape [{len(sizes)}] do not agree."
        )
    check_order(indices, sizes)
    # The indices are sorted, so each row of the batch is a contiguous run.
    allocatable([sizes[0], 3], 128)
    ends = np.searchsorted(indices[:, 0], np.arange(sizes[0] + 1))
    inner = from_numpy(np.array(sizes[1:], np.int64))
    result = np.empty((sizes[0], 3), dtype=object)
    nothing = _three(from_numpy(indices[:0, 1:]), from_numpy(values[:0]), inner, T, out_type)
    for row in range(sizes[0]):
        if ends[row] == ends[row + 1]:
            _set_row(result[row], nothing)
            continue
        run = slice(ends[row], ends[row + 1])
        part = from_numpy(np.ascontiguousarray(indices[run, 1:]))
        _set_row(result[row], _three(part, from_numpy(values[run]), inner, T, out_type))
    return result


@SERIALIZE_MANY_SPARSE.shape
def serialize_many_sparse_shape(sparse_indices: Shape, sparse_values: Shape, sparse_shape: Shape) -> Shape:
    _check_ranks(sparse_indices, sparse_values, sparse_shape)
    return Shape((None, 3))


def _sparse(sp_input: Any) -> SparseTensor:
    if isinstance(sp_input, SparseTensorValue):
        return SparseTensor.from_value(sp_input)
    if not isinstance(sp_input, SparseTensor):
        raise TypeError("Input must be a SparseTensor.")
    return sp_input


@export(v2="io.serialize_sparse")
def serialize_sparse(sp_input: Any, out_type: Any = dtypes.string, name: str | None = None) -> Tensor:
    """Serializes a SparseTensor as three strings: its indices, values and shape.

    Raises:
        TypeError: `sp_input` is not a SparseTensor.
    """
    sparse = _sparse(sp_input)
    return SERIALIZE_SPARSE(sparse.indices, sparse.values, sparse.dense_shape, out_type=out_type, name=name)


@export(v1=("serialize_sparse", "io.serialize_sparse"))
def serialize_sparse_v1(sp_input: Any, name: str | None = None, out_type: Any = dtypes.string) -> Tensor:
    """Serializes a SparseTensor as three strings."""
    return serialize_sparse(sp_input, out_type, name)


@export(v2="io.serialize_many_sparse")
def serialize_many_sparse(sp_input: Any, out_type: Any = dtypes.string, name: str | None = None) -> Tensor:
    """Serializes a batch of N sparse tensors, given as a SparseTensor of rank 2 or more, as strings [N, 3].

    Raises:
        TypeError: `sp_input` is not a SparseTensor.
    """
    sparse = _sparse(sp_input)
    return SERIALIZE_MANY_SPARSE(sparse.indices, sparse.values, sparse.dense_shape, out_type=out_type, name=name)


@export(v1=("serialize_many_sparse", "io.serialize_many_sparse"))
def serialize_many_sparse_v1(sp_input: Any, name: str | None = None, out_type: Any = dtypes.string) -> Tensor:
    """Serializes a batch of N sparse tensors as strings [N, 3]."""
    return serialize_many_sparse(sp_input, out_type, name)


# ---- deserialize ------------------------------------------------------------------------------------------------


def _part(data: Any, dtype: DType, rank: int, what: str) -> np.ndarray:
    array, found = (data.value, data.dtype.name) if isinstance(data, _Boxed) else _parsed(data)
    if found != dtype.name:
        raise _invalid(f"Requested SparseTensor of type {dtype.name} but {what}.dtype() == {found}")
    if array.ndim != rank:
        raise _invalid(f"Expected {what} to have rank {rank}, but it has shape {list(array.shape)}")
    return array


def _parsed(data: bytes) -> tuple[np.ndarray, str]:
    try:
        message = protos.TensorProto.FromString(data)
    except DecodeError:
        raise _invalid("Could not parse serialized proto") from None
    array = tensor_proto.from_tensor_proto(message)
    return array, as_dtype(message.dtype).name


def _batch(serialized: np.ndarray, dtype: DType) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Combines strings [N, 3] into the coordinates, values and shape of one sparse tensor with a leading dimension N."""
    columns: list[np.ndarray] = []
    values: list[np.ndarray] = []
    sizes: np.ndarray | None = None
    for i, (first, second, third) in enumerate(serialized.tolist()):
        where = f"SparseTensor[{i}]"
        indices = _part(first, dtypes.int64, 2, f"{where}.indices")
        elements = _part(second, dtype, 1, f"{where}.values")
        shape = _part(third, dtypes.int64, 1, f"{where}.shape")
        if len(indices) != len(elements) or indices.shape[1] != len(shape):
            raise _invalid(
                f"{where}: indices {list(indices.shape)}, values {list(elements.shape)} and shape {list(shape.shape)} do not agree."
            )
        if sizes is not None and len(shape) != len(sizes):
            raise _invalid(
                f"Inconsistent shape across SparseTensors: rank prior to {where} was: {len(sizes)} but rank of {where} is: {len(shape)}"
            )
        sizes = shape if sizes is None else np.maximum(sizes, shape)
        columns.append(np.column_stack([np.full(len(indices), i, np.int64), indices]))
        values.append(elements)
    assert sizes is not None
    return np.concatenate(columns), np.concatenate(values), np.concatenate([[len(serialized)], sizes]).astype(np.int64)


DESERIALIZE_SPARSE = define(
    "DeserializeSparse(serialized_sparse: Tserialized) -> "
    "(sparse_indices: int64, sparse_values: dtype, sparse_shape: int64)",
    dtype=TYPE, Tserialized=_FORM,
)  # fmt: skip


@DESERIALIZE_SPARSE.kernel
def deserialize_sparse_kernel(
    serialized_sparse: np.ndarray, *, dtype: DType, Tserialized: DType
) -> tuple[Any, Any, Any]:
    if serialized_sparse.ndim == 0:
        raise _invalid("Serialized sparse should have non-zero rank []")
    lead = serialized_sparse.shape[:-1]
    if serialized_sparse.shape[-1] != 3:
        raise _invalid(f"Serialized sparse should have 3 as the last dimension {list(serialized_sparse.shape)}")
    if serialized_sparse.size == 0:
        raise _invalid("Must have at least 1 serialized SparseTensor, but input matrix has 0 rows")
    indices, values, shape = _batch(serialized_sparse.reshape(-1, 3), dtype)
    # The row number is split into a coordinate for each leading dimension. A single sparse tensor has none.
    places = np.stack(np.unravel_index(indices[:, 0], lead), axis=1) if lead else np.empty((len(indices), 0), np.int64)
    indices = np.concatenate([places.astype(np.int64), indices[:, 1:]], axis=1)
    sizes = np.concatenate([np.array(lead, np.int64), shape[1:]])
    return from_numpy(indices), from_numpy(values), from_numpy(sizes)


@DESERIALIZE_SPARSE.shape
def deserialize_sparse_shape(serialized_sparse: Shape) -> tuple[Shape, Shape, Shape]:
    if (dims := serialized_sparse.at_least(1).dims) is not None and dims[-1] not in (None, 3):
        raise _invalid(f"Dimension must be 3 but is {dims[-1]}: serialized_sparse is {serialized_sparse}.")
    return Shape((None, None)), Shape((None,)), Shape((None,))


DESERIALIZE_MANY_SPARSE = define(
    "DeserializeManySparse(serialized_sparse: string) -> "
    "(sparse_indices: int64, sparse_values: dtype, sparse_shape: int64)",
    dtype=TYPE,
)  # fmt: skip


@DESERIALIZE_MANY_SPARSE.kernel
def deserialize_many_sparse_kernel(serialized_sparse: np.ndarray, *, dtype: DType) -> tuple[Any, Any, Any]:
    return deserialize_sparse_kernel(serialized_sparse, dtype=dtype, Tserialized=dtypes.string)


@DESERIALIZE_MANY_SPARSE.shape
def deserialize_many_sparse_shape(serialized_sparse: Shape) -> tuple[Shape, Shape, Shape]:
    rows = serialized_sparse.of_rank(2)
    if rows[1] not in (None, 3):
        raise _invalid(f"Dimension must be 3 but is {rows[1]}: serialized_sparse is {rows}.")
    return Shape((None, None)), Shape((None,)), Shape((None,))


@export("io.deserialize_many_sparse", v1="deserialize_many_sparse")
def deserialize_many_sparse(
    serialized_sparse: Any, dtype: Any, rank: int | None = None, name: str | None = None
) -> Any:
    """Deserializes N sparse tensors, strings [N, 3], into one SparseTensor with a leading dimension N.

    The other sizes are the largest of all N.

    Args:
        serialized_sparse: the result of `serialize_many_sparse`, or stacked results of `serialize_sparse`.
        dtype: the dtype of the values.
        rank: the rank of each sparse tensor, if known.
        name: the op's name.
    """
    indices, values, shape = DESERIALIZE_MANY_SPARSE(serialized_sparse, dtype=as_dtype(dtype), name=name)
    # As in TensorFlow, `rank` is used as the rank of the result here.
    indices.set_shape([None, rank])
    shape.set_shape([rank])
    return SparseTensor(indices, values, shape)
