"""Converts between TensorProto and NumPy, in every encoding that TensorFlow writes.

A TensorProto holds its elements either as `tensor_content` (little-endian bytes) or in the typed field of its dtype,
where a list shorter than the shape repeats its last element.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from stoker._src.base import dtypes
from stoker._src.base.dtypes import DType, as_dtype
from stoker._src.base.errors import InvalidArgumentError, ResourceExhaustedError
from stoker._src.formats.protos import TensorProto, TensorShapeProto

MAX_BYTES = 1 << 31
"""The most a tensor from a TensorProto may take. One value may stand for any number of elements, so that a small message
could ask for any amount of memory; and a message that spells them out cannot be larger."""

_MAX_RANK = 64  # NumPy's limit

_FIELDS: dict[DType, str] = {
    dtypes.float32: "float_val",
    dtypes.float64: "double_val",
    dtypes.string: "string_val",
    dtypes.complex64: "scomplex_val",
    dtypes.complex128: "dcomplex_val",
    dtypes.int64: "int64_val",
    dtypes.bool_: "bool_val",
    dtypes.float16: "half_val",
    dtypes.bfloat16: "half_val",
    dtypes.uint32: "uint32_val",
    dtypes.uint64: "uint64_val",
}
for _dtype in (
    dtypes.int32,
    dtypes.int16,
    dtypes.int8,
    dtypes.uint8,
    dtypes.uint16,
    dtypes.qint8,
    dtypes.quint8,
    dtypes.qint16,
    dtypes.quint16,
    dtypes.qint32,
):
    _FIELDS[_dtype] = "int_val"


def shape_proto(dims: Any) -> Any:
    return TensorShapeProto(dim=[TensorShapeProto.Dim(size=int(size)) for size in dims])


def to_tensor_proto(array: np.ndarray, dtype: DType) -> Any:
    """Returns the TensorProto that TensorFlow itself would write for `array`.

    Arrays of more than one element are stored as `tensor_content`. Single elements, strings, booleans, complex numbers and
    uint16 are stored in their typed field.
    """
    if array.size > 1 and not dtype.is_complex and dtype not in (dtypes.string, dtypes.bool_, dtypes.uint16):
        proto = TensorProto(dtype=dtype.as_datatype_enum, tensor_shape=shape_proto(array.shape))
        proto.tensor_content = np.ascontiguousarray(array).tobytes()
        return proto
    return partial_tensor_proto(array, dtype, array.shape)


def partial_tensor_proto(array: np.ndarray, dtype: DType, dims: Any) -> Any:
    """Returns a TensorProto of shape `dims` with the elements of `array` in their typed field; the last element is repeated."""
    proto = TensorProto(dtype=dtype.as_datatype_enum, tensor_shape=shape_proto(dims))
    field = _FIELDS[dtype]
    if dtype is dtypes.string:
        proto.string_val.extend(_as_bytes(item) for item in array.ravel())
        return proto
    flat = array.ravel()
    if field == "half_val":
        proto.half_val.extend(flat.view(np.uint16).tolist())
    elif dtype.is_complex:
        getattr(proto, field).extend(part for item in flat.tolist() for part in (item.real, item.imag))
    else:
        getattr(proto, field).extend(flat.tolist())
    return proto


def _as_bytes(item: Any) -> bytes:
    return item.encode() if isinstance(item, str) else bytes(item)


def from_tensor_proto(proto: Any, *, exact: bool = False) -> np.ndarray:
    """Returns the array in a TensorProto; strings are an object array of bytes.

    Like TensorFlow's kernels, this ignores values beyond the number that the shape requires, and all values of a
    message without elements.

    Args:
        proto: the message.
        exact: whether to reject values that would otherwise be ignored.

    Raises:
        InvalidArgumentError: the contents do not match the dtype and shape.
        ResourceExhaustedError: there is not enough memory.
    """
    try:
        dtype = as_dtype(proto.dtype)
    except TypeError:
        raise InvalidArgumentError(None, None, f"TensorProto has the unknown dtype {proto.dtype}.") from None
    field = _FIELDS.get(dtype)
    if field is None:
        raise InvalidArgumentError(None, None, f"TensorProto of dtype {dtype.name} has no NumPy form.")
    dims = _known_dims(proto.tensor_shape, dtype, exact)
    count = math.prod(dims)
    try:
        if not count and not exact:
            return np.empty(dims, dtype=dtype.as_numpy_dtype)
        if proto.tensor_content:
            flat = _from_content(proto.tensor_content, dtype, dims, count)
        else:
            flat = _typed_values(getattr(proto, field), dtype)
            if exact and len(flat) > count:
                raise InvalidArgumentError(None, None, f"TensorProto of shape {dims} holds {len(flat)} values.")
        return _repeat_last(flat, count, dtype).reshape(dims)
    except MemoryError as error:
        message = f"TensorProto's shape {dims} has {count} elements of {dtype.name}, more than there is memory for."
        raise ResourceExhaustedError(None, None, message) from error


def _known_dims(shape: Any, dtype: DType, exact: bool) -> list[int]:
    dims = [dim.size for dim in shape.dim]
    if (shape.unknown_rank and (exact or not dims)) or any(size < 0 for size in dims):
        raise InvalidArgumentError(None, None, f"TensorProto's shape is not fully known: {dims}.")
    if len(dims) > _MAX_RANK:
        raise InvalidArgumentError(
            None, None, f"TensorProto's shape has {len(dims)} dimensions; at most {_MAX_RANK} are taken."
        )
    itemsize = np.dtype(dtype.as_numpy_dtype).itemsize
    if math.prod(dims) * itemsize > MAX_BYTES:
        raise InvalidArgumentError(
            None,
            None,
            f"TensorProto's shape {dims} has {math.prod(dims)} elements, too many: at most {MAX_BYTES} bytes of {dtype.name} are taken.",
        )
    # Strides must be valid numbers even if a dimension is 0.
    if math.prod(size for size in dims if size) * itemsize >= 1 << 63:
        raise InvalidArgumentError(None, None, f"TensorProto's shape {dims} is too large.")
    return dims


def _from_content(content: bytes, dtype: DType, dims: list[int], count: int) -> np.ndarray:
    if dtype is dtypes.string:
        return _string_list(content, dims, count)
    expected = count * dtype.size
    if len(content) != expected:
        raise InvalidArgumentError(
            None,
            None,
            f"TensorProto of shape {dims} and dtype {dtype.name} needs {expected} bytes but has {len(content)}.",
        )
    if dtype is dtypes.bool_ and content.strip(b"\0\1"):
        raise InvalidArgumentError(None, None, f"TensorProto of shape {dims} has bytes other than 0 and 1 for bools.")
    return np.frombuffer(content, dtype=dtype.as_numpy_dtype).copy()


def _string_list(content: bytes, dims: list[int], count: int) -> np.ndarray:
    """Decodes the strings of a `tensor_content`: the lengths of all strings as varints, then their bytes."""
    if count > len(content):
        raise InvalidArgumentError(
            None, None, f"TensorProto of shape {dims} has {len(content)} bytes for {count} strings."
        )
    lengths: list[int] = []
    at = 0
    for _ in range(count):
        length = shift = 0
        while True:
            if at == len(content) or shift > 28:
                raise InvalidArgumentError(
                    None, None, f"TensorProto of shape {dims} has no length for string {len(lengths)} at byte {at}."
                )
            byte = content[at]
            length |= (byte & 127) << shift
            at += 1
            shift += 7
            if byte < 128:
                break
        lengths.append(length)
    if at + sum(lengths) != len(content):
        raise InvalidArgumentError(
            None,
            None,
            f"TensorProto of shape {dims} needs {at + sum(lengths)} bytes for its strings but has {len(content)}.",
        )
    array = np.empty(count, dtype=object)
    for index, length in enumerate(lengths):
        array[index] = content[at : at + length]
        at += length
    return array


def _typed_values(values: Any, dtype: DType) -> np.ndarray:
    if dtype is dtypes.string:
        array = np.empty(len(values), dtype=object)
        array[:] = list(values)
        return array
    if dtype in (dtypes.float16, dtypes.bfloat16):
        return np.array(values, dtype=np.uint16).view(dtype.as_numpy_dtype)
    if dtype.is_complex:
        whole = len(values) // 2 * 2  # a real part without an imaginary part is ignored
        return np.array(values[:whole], dtype=np.float64).view(np.complex128).astype(dtype.as_numpy_dtype)
    # Out-of-range values of the wide wire field wrap, as in a C cast.
    wide = np.array(values, dtype=np.int64 if dtype.is_integer and dtype is not dtypes.uint64 else None)
    return wide.astype(dtype.as_numpy_dtype)


def _repeat_last(flat: np.ndarray, count: int, dtype: DType) -> np.ndarray:
    if len(flat) >= count:
        return flat[:count]
    filled = np.empty(count, dtype=dtype.as_numpy_dtype)
    filled[: len(flat)] = flat
    filled[len(flat) :] = flat[-1] if len(flat) else b"" if dtype is dtypes.string else 0
    return filled
