"""Conversion between protocol messages and tensors: `decode_proto` and `encode_proto`.

Messages are described by a FileDescriptorSet, given in a file or after "bytes://", or ("local://") by the types that this
process has imported. Submessages are returned as strings.
"""

from __future__ import annotations

import contextlib
import functools
import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory, text_format
from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.message import DecodeError, EncodeError

from stoker._src.base import dtypes
from stoker._src.base.dtypes import DType, as_dtype
from stoker._src.base.errors import DataLossError, InvalidArgumentError, OpError
from stoker._src.base.export import export
from stoker._src.base.shapes import UNKNOWN_SHAPE, Shape
from stoker._src.formats import gfile, protos
from stoker._src.formats.message_fields import UNSET, read_fields, repeated, write_field
from stoker._src.graph.definition import STRING, STRINGS, TYPES, define
from stoker._src.graph.tensor import Tensor
from stoker._src.ops.support.values import from_numpy, to_numpy


def _invalid(message: str) -> InvalidArgumentError:
    return InvalidArgumentError(None, None, message)


_INT32 = (
    FieldDescriptor.TYPE_INT32,
    FieldDescriptor.TYPE_SINT32,
    FieldDescriptor.TYPE_SFIXED32,
)
_INT64 = (FieldDescriptor.TYPE_INT64, FieldDescriptor.TYPE_SINT64, FieldDescriptor.TYPE_SFIXED64)
_TEXT = (
    FieldDescriptor.TYPE_STRING,
    FieldDescriptor.TYPE_BYTES,
    FieldDescriptor.TYPE_MESSAGE,
    FieldDescriptor.TYPE_GROUP,
)
# The dtypes that each field type may be decoded to. TensorFlow 1 decodes unsigned numbers as signed (two's complement).
_DTYPES: dict[int, tuple[DType, ...]] = {
    FieldDescriptor.TYPE_FLOAT: (dtypes.float32, dtypes.float64),
    FieldDescriptor.TYPE_DOUBLE: (dtypes.float64,),
    FieldDescriptor.TYPE_BOOL: (dtypes.bool_,),
    FieldDescriptor.TYPE_ENUM: (dtypes.int32,),
    **dict.fromkeys(_INT32, (dtypes.int32, dtypes.int64)),
    **dict.fromkeys(_INT64, (dtypes.int64,)),
    **dict.fromkeys((FieldDescriptor.TYPE_UINT32, FieldDescriptor.TYPE_FIXED32), (dtypes.uint32, dtypes.uint64, dtypes.int64, dtypes.int32)),
    **dict.fromkeys((FieldDescriptor.TYPE_UINT64, FieldDescriptor.TYPE_FIXED64), (dtypes.uint64, dtypes.int64)),
    **dict.fromkeys(_TEXT, (dtypes.string,)),
}  # fmt: skip


def _message_class(message_type: str, source: str | bytes) -> Any:
    data = source if isinstance(source, bytes) else source.encode("utf-8", "surrogateescape")
    if data in (b"", b"local://"):
        return _local(message_type)
    if data.startswith(b"bytes://"):
        return _class_of(message_type, data.removeprefix(b"bytes://"))
    try:
        with gfile.GFile(data.decode(), "rb") as file:
            contents = file.read()
    except OpError:
        raise _invalid(f"Source does not represent serialized file descriptor set proto: {data.decode()!r}") from None
    return _class_of(message_type, contents)


@functools.lru_cache(maxsize=64)
def _class_of(message_type: str, described: bytes) -> Any:
    pool = descriptor_pool.DescriptorPool()
    try:
        files = descriptor_pb2.FileDescriptorSet.FromString(described).file
        for file in files:
            _list_map_entries(file.message_type)
            pool.Add(file)
        return _found(pool, message_type)
    except (DecodeError, TypeError) as error:
        raise _invalid(f"Source does not represent serialized file descriptor set proto: {error}") from None


_ENTRY = "stoker_map_entry"


def _list_map_entries(messages: Sequence[Any]) -> None:
    """Turns maps into lists of entries, which keep the serialized order and duplicate keys, as in TensorFlow.

    Each field of an entry becomes a oneof of its own, so that its presence can be tested.
    """
    for message in messages:
        _list_map_entries(message.nested_type)
        if message.options.map_entry:
            message.options.ClearField("map_entry")
            for field in message.field:
                field.oneof_index = len(message.oneof_decl)
                message.oneof_decl.add(name=_ENTRY if field.name == "key" else f"{_ENTRY}_value")


def _complete_entries(message: Any) -> None:
    """Sets the key and value of every map entry, so that both are serialized, and discards unknown fields of the entry."""
    if _ENTRY in message.DESCRIPTOR.oneofs_by_name:
        message.DiscardUnknownFields()
        for field in message.DESCRIPTOR.fields:
            if field.message_type is None:
                setattr(message, field.name, getattr(message, field.name))
            else:
                getattr(message, field.name).SetInParent()
    for field, value in message.ListFields():
        if field.message_type is not None and not field.message_type.GetOptions().map_entry:
            for each in value if repeated(field) else (value,):
                _complete_entries(each)


def _local(message_type: str) -> Any:
    """A type that this process has imported. TensorFlow's own types are found under TensorFlow's names and under ours."""
    pool = descriptor_pool.Default()
    package, _, name = message_type.partition(".")
    if package == "tensorflow":
        for known in (message_type, f"stoker.{name}", f"tensorboard.{name}"):
            with contextlib.suppress(KeyError):
                return message_factory.GetMessageClass(pool.FindMessageTypeByName(known))
    return _found(pool, message_type)


def _found(pool: Any, message_type: str) -> Any:
    try:
        return message_factory.GetMessageClass(pool.FindMessageTypeByName(message_type))
    except KeyError:
        raise _invalid(f"No descriptor found for message type {message_type}") from None


def _fields(kind: Any, names: Sequence[str], message_type: str) -> list[Any]:
    """Looks up fields by name. A name with dots is the full name of an extension."""
    found = []
    for name in names:
        field = kind.DESCRIPTOR.fields_by_name.get(name)
        if field is None:
            try:
                field = kind.DESCRIPTOR.file.pool.FindExtensionByName(name)
            except KeyError:
                raise _invalid(f"Unknown field: {name} in message type {message_type}") from None
        found.append(field)
    return found


def _type_name(field: Any) -> str:
    """The C++ type of the field. Several protobuf types share one."""
    names = {number: name for name, number in vars(FieldDescriptor).items() if name.startswith("CPPTYPE_")}
    return names[field.cpp_type][8:].lower()


# ---- DecodeProtoV2 ----------------------------------------------------------------------------------------------

DECODE_PROTO_V2 = define(
    "DecodeProtoV2(bytes: string) -> (sizes: int32, values: [output_types])",
    message_type=STRING, field_names=STRINGS, output_types=TYPES(minimum=0), descriptor_source="local://",
    message_format="binary", sanitize=False,
).not_differentiable()  # fmt: skip


def _binary(kind: Any, data: bytes, message_format: str, sanitize: bool) -> bytes:
    """The binary message to take fields from. Text, and untrusted messages (`sanitize`), are parsed and serialized again."""
    if message_format == "binary" and not sanitize:
        return data
    message = kind()
    try:
        if message_format == "text":
            text_format.Parse(data.decode(), message)
        else:
            message.MergeFromString(data)
        _complete_entries(message)
        return message.SerializeToString()
    except (
        text_format.ParseError,
        UnicodeDecodeError,
        DecodeError,
        EncodeError,
    ):  # EncodeError means that a required field is missing
        raise DataLossError(None, None, f"Unable to parse {message_format} protobuf") from None


def _as_bytes(item: Any) -> bytes:
    if isinstance(item, str):
        return item.encode()
    return item if isinstance(item, bytes) else item.SerializeToString()


def _fill(field: Any) -> Any:
    """The padding value for messages with fewer values: the field's default."""
    if field.type in _TEXT:
        return _as_bytes(field.default_value) if isinstance(field.default_value, (str, bytes)) else b""
    return 0 if repeated(field) else field.default_value


def _as_array(rows: list[list[Any]], field: Any, dtype: DType, lead: tuple[int, ...]) -> Any:
    # There is at least one column, as in TensorFlow.
    width = max([1, *map(len, rows)])
    fill = _fill(field)
    padded = [[*(fill if value is UNSET else value for value in row), *[fill] * (width - len(row))] for row in rows]
    if dtype is dtypes.string:
        array = np.empty((len(rows), width), dtype=object)
        array[:] = padded
    elif dtype.is_integer:
        # Unsigned numbers keep their bit pattern in a signed type.
        bits = 8 * dtype.size
        array = np.array([[int(v) & ((1 << bits) - 1) for v in row] for row in padded], f"u{dtype.size}").astype(
            dtype.as_numpy_dtype
        )
    else:
        array = np.array(padded, dtype.as_numpy_dtype)
    return from_numpy(array.reshape(*lead, width))


@DECODE_PROTO_V2.kernel
def decode_proto_kernel(
    bytes: np.ndarray,
    *,
    message_type: str,
    field_names: Sequence[str],
    output_types: Sequence[DType],
    descriptor_source: str,
    message_format: str,
    sanitize: bool,
) -> tuple[Any, list[Any]]:
    if len(field_names) != len(output_types):
        raise _invalid("field_names and output_types attributes must have the same length")
    if message_format not in ("binary", "text"):
        raise _invalid("format must be one of binary or text")
    kind = _message_class(message_type, descriptor_source)
    fields = _fields(kind, field_names, message_type)
    for field, dtype in zip(fields, output_types):
        if dtype not in _DTYPES[field.type]:
            raise _invalid(
                f"Unexpected output type for {field.full_name}: {_type_name(field)} to DT_{protos.DataType.Name(dtype.as_datatype_enum)[3:]}"
            )
    if not bytes.size:
        raise _invalid("Bufs argument must contain at least one value")
    found = [read_fields(_binary(kind, each, message_format, sanitize), fields) for each in bytes.ravel().tolist()]
    columns = [[held[k] for held in found] for k in range(len(fields))]
    sizes = np.array([[len(values) for values in held] for held in found], np.int32)
    values = [_as_array(rows, field, dtype, bytes.shape) for rows, field, dtype in zip(columns, fields, output_types)]
    return from_numpy(sizes.reshape(*bytes.shape, len(fields))), values


@DECODE_PROTO_V2.shape
def decode_proto_shape(
    bytes: Shape, *, field_names: Sequence[str], output_types: Sequence[DType]
) -> tuple[Shape, list[Shape]]:
    if bytes.rank is None:
        return UNKNOWN_SHAPE, [UNKNOWN_SHAPE] * len(output_types)
    return Shape((*bytes, len(field_names))), [Shape((*bytes, None))] * len(output_types)


@export("io.decode_proto")
def decode_proto(
    bytes: Any,
    message_type: str,
    field_names: Sequence[str],
    output_types: Sequence[Any],
    descriptor_source: str | bytes = "local://",
    message_format: str = "binary",
    sanitize: bool = False,
    name: str | None = None,
) -> Any:
    """Decodes fields of serialized messages into tensors.

    Args:
        bytes: serialized messages, in a tensor of any shape.
        message_type: the full name of the message type.
        field_names: the fields to decode; an extension by its full name.
        output_types: the dtype of each field; submessages must be strings.
        descriptor_source: "local://" (types this process has imported), the name of a file with a FileDescriptorSet, or "bytes://"
            followed by one.
        message_format: "binary" or "text".
        sanitize: whether to parse and re-serialize each message first. This checks fields that are not decoded, and
            merges submessages of one field. Without it, submessages are returned as their original bytes.
        name: the op's name.

    Returns:
        (sizes, values): sizes [..., fields] is the number of values of each field. Each entry of values is [..., longest], padded
        with the field's default and at least one wide.
    """
    return DECODE_PROTO_V2(
        bytes,
        message_type=message_type,
        field_names=field_names,
        output_types=[as_dtype(dtype) for dtype in output_types],
        descriptor_source=descriptor_source,
        message_format=message_format,
        sanitize=sanitize,
        name=name,
    )


# ---- EncodeProto ------------------------------------------------------------------------------------------------

ENCODE_PROTO = define(
    "EncodeProto(sizes: int32, values: [Tinput_types]) -> (bytes: string)",
    field_names=STRINGS, message_type=STRING, descriptor_source="local://", Tinput_types=TYPES(minimum=1),
).not_differentiable()  # fmt: skip


@ENCODE_PROTO.kernel
def encode_proto_kernel(
    sizes: torch.Tensor,
    values: list[Any],
    *,
    field_names: Sequence[str],
    message_type: str,
    descriptor_source: str,
    Tinput_types: Sequence[DType],
) -> np.ndarray:
    if len(field_names) != len(values):
        raise _invalid("Length of inputs list must match field_names")
    kind = _message_class(message_type, descriptor_source)
    fields = _fields(kind, field_names, message_type)
    for field, dtype, value in zip(fields, Tinput_types, values):
        if dtype not in _DTYPES[field.type]:
            raise _invalid(
                f"Incompatible type for field {field.name}.  Saw dtype: {dtype.name} but field type is: {_type_name(field)}"
            )
        if value.ndim < 2:
            raise _invalid(
                f"Invalid shape for field {field.name}.  Saw shape {list(value.shape)} but it should be at least a matrix."
            )
        if tuple(sizes.shape) != (*value.shape[:-1], len(fields)):
            raise _invalid(
                f"sizes should be batch_size + [len(field_names)].  Saw: {list(sizes.shape)} but expected: {[*value.shape[:-1], len(fields)]}"
            )
    lead = tuple(sizes.shape[:-1])
    counts = sizes.reshape(math.prod(lead), len(fields)).tolist()
    rows = [np.asarray(to_numpy(value)).reshape(len(counts), value.shape[-1]).tolist() for value in values]
    for i, wanted in enumerate(counts):
        for k, count in enumerate(wanted):
            if count > values[k].shape[-1]:
                raise _invalid(
                    f"Size to write must not be larger than value tensor; but saw: {count} > {values[k].shape[-1]} at message {i} field {k}"
                )
    places = sorted(range(len(fields)), key=lambda k: fields[k].number)
    encoded = np.empty(len(counts), dtype=object)
    for i, wanted in enumerate(counts):
        encoded[i] = b"".join(write_field(fields[k], rows[k][i][: max(wanted[k], 0)]) for k in places)
    return encoded.reshape(lead)


@ENCODE_PROTO.shape
def encode_proto_shape(sizes: Shape, values: Sequence[Shape]) -> Shape:
    for each in values:
        each.at_least(2)
    return UNKNOWN_SHAPE if sizes.rank is None else sizes.at_least(1)[:-1]


@export("io.encode_proto")
def encode_proto(
    sizes: Any,
    values: Sequence[Any],
    field_names: Sequence[str],
    message_type: str,
    descriptor_source: str | bytes = "local://",
    name: str | None = None,
) -> Tensor:
    """Serializes messages with the given fields: the inverse of `decode_proto`.

    Args:
        sizes: int32 [..., fields], the number of values of each field in a message.
        values: for each field, a tensor [..., at least that many] of a matching dtype.
        field_names: the fields.
        message_type: the full name of the message type.
        descriptor_source: see `decode_proto`.
        name: the op's name.
    """
    return ENCODE_PROTO(sizes, list(values), field_names=field_names, message_type=message_type, descriptor_source=descriptor_source, name=name)  # fmt: skip
