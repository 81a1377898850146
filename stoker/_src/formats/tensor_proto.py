"""TensorProto to and from NumPy, in every encoding TensorFlow writes.

A TensorProto holds its elements either as `tensor_content` (little-endian bytes) or in the typed field of its dtype,
where a list shorter than the shape repeats its last element, and what is too much is left out.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from stoker._src.base import dtypes
from stoker._src.base.dtypes import DType, as_dtype
from stoker._src.base.errors import InvalidArgumentError
from stoker._src.formats.protos import TensorProto, TensorShapeProto

MAX_BYTES = 1 << 31
"""The most a tensor from a TensorProto may take. One value may stand for any number of elements, so that a small message
could ask for any amount of memory; and a message that spells them out cannot be larger."""

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
    """The TensorProto that TensorFlow itself would write for `array`.

    Arrays of more than one element travel as `tensor_content`; single elements, strings, booleans and uint16 in their
    typed field.
    """
    if array.size > 1 and dtype not in (dtypes.string, dtypes.bool_, dtypes.uint16):
        proto = TensorProto(dtype=dtype.as_datatype_enum, tensor_shape=shape_proto(array.shape))
        proto.tensor_content = np.ascontiguousarray(array).tobytes()
        return proto
    return partial_tensor_proto(array, dtype, array.shape)


def partial_tensor_proto(array: np.ndarray, dtype: DType, dims: Any) -> Any:
    """A TensorProto of shape `dims` with the elements of `array` in their typed field; the last stands for the rest."""
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


def from_tensor_proto(proto: Any) -> np.ndarray:
    """The array a TensorProto holds; strings as an object array of bytes.

    Raises:
        InvalidArgumentError: the contents do not fit the dtype and shape.
    """
    try:
        dtype = as_dtype(proto.dtype)
    except TypeError:
        raise InvalidArgumentError(None, None, f"TensorProto has the unknown dtype {proto.dtype}.") from None
    dims = [dim.size for dim in proto.tensor_shape.dim]
    if any(size < 0 for size in dims):
        raise InvalidArgumentError(None, None, f"TensorProto's shape is not fully known: {dims}.")
    count = 1
    for size in dims:
        count *= size
    field = _FIELDS.get(dtype)
    if field is None:
        raise InvalidArgumentError(None, None, f"TensorProto of dtype {dtype.name} has no NumPy form.")
    if count * np.dtype(dtype.as_numpy_dtype).itemsize > MAX_BYTES:
        raise InvalidArgumentError(
            None,
            None,
            f"TensorProto's shape {dims} has {count} elements, too many: at most {MAX_BYTES} bytes of {dtype.name} are taken.",
        )
    if count == 0:
        return _empty(dims, dtype)
    if proto.tensor_content:
        if dtype is dtypes.string:
            return np.array([*_strings(proto.tensor_content, count), None], dtype=object)[:-1].reshape(dims)
        return _from_content(proto.tensor_content, dtype, dims, count)
    return _repeat_last(_typed_values(getattr(proto, field), dtype), dims, count, dtype)


def _from_content(content: bytes, dtype: DType, dims: list[int], count: int) -> np.ndarray:
    expected = count * dtype.size
    if len(content) != expected:
        raise InvalidArgumentError(
            None,
            None,
            f"TensorProto of shape {dims} and dtype {dtype.name} needs {expected} bytes but has {len(content)}.",
        )
    if dtype is dtypes.bool_ and content.translate(None, b"\0\1"):
        raise InvalidArgumentError(None, None, f"TensorProto of shape {dims} holds booleans that are neither 0 nor 1.")
    return np.frombuffer(content, dtype=dtype.as_numpy_dtype).reshape(dims).copy()


def _strings(content: bytes, count: int) -> list[bytes]:
    """Strings as `tensor_content` holds them: their lengths as varints, then their bytes."""
    lengths: list[int] = []
    position, length, shift = 0, 0, 0
    while len(lengths) < count and position < len(content) and shift < 64:
        byte = content[position]
        position += 1
        length |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            lengths.append(length)
            length, shift = 0, 0
    if len(lengths) < count or position + sum(lengths) != len(content):
        raise InvalidArgumentError(
            None, None, f"TensorProto's content of {len(content)} bytes does not hold {count} strings."
        )
    strings = []
    for length in lengths:
        strings.append(content[position : position + length])
        position += length
    return strings


def _empty(dims: list[int], dtype: DType) -> np.ndarray:
    try:
        return np.empty(dims, dtype=dtype.as_numpy_dtype)
    except ValueError as error:  # more dimensions or larger sizes than NumPy has
        raise InvalidArgumentError(None, None, f"TensorProto's shape {dims} cannot be made ({error}).") from None


def _typed_values(values: Any, dtype: DType) -> np.ndarray:
    if dtype is dtypes.string:
        array = np.empty(len(values), dtype=object)
        array[:] = list(values)
        return array
    if dtype in (dtypes.float16, dtypes.bfloat16):
        return np.array(values, dtype=np.uint16).view(dtype.as_numpy_dtype)
    if dtype.is_complex:
        flat = np.array(values, dtype=np.float64)
        return (flat[0::2] + 1j * flat[1::2]).astype(dtype.as_numpy_dtype)
    # Out-of-range values of the wide wire field wrap, as a C cast does.
    wide = np.array(values, dtype=np.int64 if dtype.is_integer and dtype is not dtypes.uint64 else None)
    return wide.astype(dtype.as_numpy_dtype)


def _repeat_last(flat: np.ndarray, dims: list[int], count: int, dtype: DType) -> np.ndarray:
    if len(flat) < count:
        if len(flat) == 0:
            blank = b"" if dtype is dtypes.string else 0
            filled = np.empty(count, dtype=dtype.as_numpy_dtype)
            filled[:] = blank
            return filled.reshape(dims)
        flat = np.concatenate([flat, np.repeat(flat[-1:], count - len(flat))])
    return flat[:count].reshape(dims)
