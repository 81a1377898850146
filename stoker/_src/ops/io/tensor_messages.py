"""Conversion between TensorProtos, tensors and arrays; sparse tensors are three TensorProtos."""

from __future__ import annotations

import base64
import math
from typing import Any

import numpy as np
from google.protobuf.message import DecodeError

from stoker._src.base import dtypes
from stoker._src.base.dtypes import DType, as_dtype
from stoker._src.base.errors import InvalidArgumentError
from stoker._src.base.export import export
from stoker._src.base.shapes import UNKNOWN_SHAPE
from stoker._src.formats import protos, tensor_proto
from stoker._src.formats.varints import encode_varint
from stoker._src.graph.definition import ANY, TYPE, define, scalar
from stoker._src.graph.tensor import Tensor
from stoker._src.ops.array.constants import message_sizes, to_array
from stoker._src.ops.support.values import from_numpy, to_numpy


def tensor_bytes(value: Any, dtype: DType, *, strings_as_content: bool = False) -> bytes:
    """Serializes a kernel's value as a TensorProto. Numbers are stored as raw content, as by TensorFlow's kernels.

    With `strings_as_content`, strings are stored there too: the lengths of all strings, then their bytes.
    """
    array = np.asarray(to_numpy(value))
    if isinstance(value, np.ndarray) and not (strings_as_content and dtype is dtypes.string):
        return tensor_proto.to_tensor_proto(array, dtype).SerializeToString()
    message = protos.TensorProto(dtype=dtype.as_datatype_enum, tensor_shape=tensor_proto.shape_proto(array.shape))
    if dtype is dtypes.string:
        texts = array.ravel().tolist()
        message.tensor_content = b"".join([encode_varint(len(text)) for text in texts] + texts)
    else:
        message.tensor_content = np.ascontiguousarray(array).tobytes()
    return message.SerializeToString()


# ---- ParseTensor, SerializeTensor -------------------------------------------------------------------------------

PARSE_TENSOR = define("ParseTensor(serialized: string) -> (output: out_type)", out_type=TYPE).not_differentiable()


@PARSE_TENSOR.kernel
def parse_tensor_kernel(serialized: np.ndarray, *, out_type: DType) -> Any:
    if serialized.ndim:
        raise InvalidArgumentError(
            None, None, f"Expected `serialized` to be a scalar, got shape: {list(serialized.shape)}"
        )
    data = serialized.item()
    try:
        message = protos.TensorProto.FromString(data)
    except DecodeError:
        shown = base64.urlsafe_b64encode(data[:200]).decode()
        raise InvalidArgumentError(
            None, None, f"Could not parse `serialized` as TensorProto, base64: {shown}"
        ) from None
    found = message.dtype
    if found and found != out_type.as_datatype_enum:
        name = protos.DataType.Name(found)[3:].lower() if found in protos.DataType.values() else str(found)
        raise InvalidArgumentError(
            None, None, f"Type mismatch between parsed tensor ({name}) and dtype ({out_type.name})"
        )
    if not found:
        raise InvalidArgumentError(None, None, "Cannot parse tensor from proto: it has no dtype.")
    return from_numpy(tensor_proto.from_tensor_proto(message))


PARSE_TENSOR.shape(lambda serialized: UNKNOWN_SHAPE)


@export("io.parse_tensor", v1="parse_tensor")
def parse_tensor(serialized: Any, out_type: Any, name: str | None = None) -> Tensor:
    """Parses a serialized TensorProto. Its dtype must be exactly `out_type`."""
    return PARSE_TENSOR(serialized, out_type=as_dtype(out_type), name=name)


SERIALIZE_TENSOR = define("SerializeTensor(tensor: T) -> (serialized: string)", T=ANY).not_differentiable()


@SERIALIZE_TENSOR.kernel
def serialize_tensor_kernel(tensor: Any, *, T: DType) -> np.ndarray:
    return np.array(tensor_bytes(tensor, T), dtype=object)


SERIALIZE_TENSOR.shape(scalar)


@export("io.serialize_tensor", v1="serialize_tensor")
def serialize_tensor(tensor: Any, name: str | None = None) -> Tensor:
    """Serializes a tensor as a TensorProto, which `parse_tensor` reads."""
    return SERIALIZE_TENSOR(tensor, name=name)


# ---- from and to Python -----------------------------------------------------------------------------------------


@export("make_tensor_proto", v1="contrib.util.make_tensor_proto")
def make_tensor_proto(
    values: Any, dtype: Any = None, shape: Any = None, verify_shape: bool = False, allow_broadcast: bool = False
) -> Any:
    """Creates a TensorProto from Python or NumPy values.

    Args:
        values: numbers, strings, lists of them or an array. A TensorProto is returned unchanged.
        dtype: the dtype; by default that of a constant with these values.
        shape: the tensor's shape. If it has more elements than `values`, the last value is repeated.
        verify_shape: whether to reject values of another shape.
        allow_broadcast: with `verify_shape`, whether to allow a scalar or a vector of one element for any shape.

    Raises:
        TypeError: the shape differs although `verify_shape` is set, or elements are not of `dtype`.
        ValueError: there are too many elements, or the value is None.
    """
    if isinstance(values, protos.TensorProto):
        return values
    array, found = to_array(values, None if dtype is None else as_dtype(dtype).base_dtype)
    if shape is None:
        return tensor_proto.to_tensor_proto(array, found)
    sizes = tuple(message_sizes(shape))
    if allow_broadcast and verify_shape and array.size == 1:
        verify_shape = False
    if verify_shape and array.shape != sizes:
        raise TypeError(f"Expected Tensor's shape: {sizes}, but got {array.shape}.")
    count = math.prod(sizes)
    if count == 0:
        return tensor_proto.to_tensor_proto(array.reshape(-1)[:0].reshape(sizes), found)
    if array.size > count:
        raise ValueError(f"Too many elements provided. Takes at most {count:d}, but got {array.size:d}.")
    if array.size == count:
        return tensor_proto.to_tensor_proto(array.reshape(sizes), found)
    return tensor_proto.partial_tensor_proto(array, found, sizes)


@export("make_ndarray", v1="contrib.util.make_ndarray")
def make_ndarray(tensor: Any) -> np.ndarray:
    """Converts a TensorProto to an array. Strings become an object array of bytes.

    Raises:
        TypeError: arrays cannot have the dtype.
        ValueError: the contents do not match the dtype and shape.
    """
    dtype = as_dtype(tensor.dtype)
    if dtype.name in ("resource", "variant"):
        raise TypeError(f"Unsupported tensor type: {tensor.dtype}. A tensor of {dtype.name} has no array.")
    try:
        return tensor_proto.from_tensor_proto(tensor, exact=True)
    except InvalidArgumentError as error:
        raise ValueError(error.message) from error
