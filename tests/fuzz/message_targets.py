"""Fuzz targets for protocol messages: Examples, TensorProtos, sparse tensors, any message by descriptor, GraphDefs."""

from __future__ import annotations

import contextlib
import functools
from typing import Any

import numpy as np
from google.protobuf import descriptor_pb2
from google.protobuf.message import DecodeError

import stoker as tf
import stoker.compat.v1 as tf1
from stoker._src.base.errors import InvalidArgumentError, NotFoundError, OpError
from stoker._src.formats import example, example_python, protos, tensor_proto
from tests.fuzz.registry import REFUSED, either, target

_EXAMPLES = (
    bytes.fromhex("0a0b0a090a016112041a020801"),
    protos.Example(
        features=protos.Features(
            feature={
                "a": protos.Feature(int64_list=protos.Int64List(value=[1, -2])),
                "b": protos.Feature(float_list=protos.FloatList(value=[0.5])),
                "c": protos.Feature(bytes_list=protos.BytesList(value=[b"x", b""])),
                "d": protos.Feature(),
            }
        )
    ).SerializeToString(deterministic=True),
    # The same list unpacked, and a key that comes twice.
    bytes.fromhex("0a1a0a0b0a016112061a04080108020a0b0a016112061a040a020304"),
)
_SEQUENCES = (
    protos.SequenceExample(
        context=protos.Features(feature={"a": protos.Feature(int64_list=protos.Int64List(value=[1]))}),
        feature_lists=protos.FeatureLists(
            feature_list={
                "b": protos.FeatureList(
                    feature=[protos.Feature(float_list=protos.FloatList(value=[1, 2])), protos.Feature()]
                ),
                "c": protos.FeatureList(feature=[protos.Feature(bytes_list=protos.BytesList(value=[b"x"]))] * 2),
            }
        ),
    ).SerializeToString(deterministic=True),
)


def _rows(data: bytes) -> list[bytes]:
    """One or several rows: the first byte says where to cut."""
    option, rest = either(data)
    if not option:
        return [rest]
    at = len(rest) * (option % 64) // 64
    return [rest[:at], rest[at:], rest[at:]]


def _check_twins(name: str, *arguments: Any) -> None:
    """The extension and its Python twin give the same; the twin also shows the fuzzer the way."""
    if example.native is example_python:
        return
    assert getattr(example.native, name)(*arguments) == getattr(example_python, name)(*arguments)


_WANTED = (
    (b"a", 3, -1, None, True),
    (b"b", 2, -1, None, False),
    (b"c", 1, 2, (b"x", b"y"), False),
    (b"d", 3, 2, bytes(16), False),
)


@target(*(b"\0" + row for row in _EXAMPLES + _SEQUENCES))
def example_twins(data: bytes) -> None:
    rows = tuple(_rows(data))
    for wanted in (_WANTED, *((one,) for one in _WANTED)):
        _check_twins("parse_examples", rows, wanted)
    lists = tuple((key, kind) for key, kind, *_ in _WANTED)
    for context, steps in ((lists, lists), ((), lists[:1]), (lists[1:2], ()), ((), lists[2:3])):
        _check_twins("parse_sequence_examples", rows, context, steps)


def _examples(features: dict[str, Any]) -> Any:
    """A target that parses a batch and a single Example with these features."""

    def parse(data: bytes) -> None:
        rows = _rows(data)
        try:
            tf.io.parse_example(np.array(rows, dtype=object), features)
        finally:
            tf.io.parse_single_example(rows[0], features)

    return parse


_example_seeds = [bytes([option]) + row * (1 + option) for row in _EXAMPLES for option in (0, 1, 32)]


@target(*_example_seeds)
def example_dense(data: bytes) -> None:
    _examples(
        {
            "a": tf.io.FixedLenFeature([2], tf.int64, [7, 8]),
            "b": tf.io.FixedLenFeature([], tf.float32, 0.5),
            "c": tf.io.FixedLenFeature([1, 2], tf.string, [["p", "q"]]),
            "d": tf.io.FixedLenFeature([0], tf.int64),
        }
    )(data)


@target(*_example_seeds)
def example_required(data: bytes) -> None:
    _examples({"a": tf.io.FixedLenFeature([2], tf.int64)})(data)


@target(*_example_seeds)
def example_padded(data: bytes) -> None:
    _examples(
        {
            "a": tf.io.FixedLenSequenceFeature([], tf.int64, allow_missing=True),
            "b": tf.io.FixedLenSequenceFeature([2], tf.float32, allow_missing=True, default_value=1.5),
            "c": tf.io.FixedLenSequenceFeature([1], tf.string, allow_missing=True, default_value="z"),
        }
    )(data)


@target(*_example_seeds)
def example_variable(data: bytes) -> None:
    _examples({"a": tf.io.VarLenFeature(tf.int64), "b": tf.io.VarLenFeature(tf.float32), "c": tf.io.VarLenFeature(tf.string)})(data)  # fmt: skip


@target(*_example_seeds)
def example_sparse(data: bytes) -> None:
    _examples(
        {
            "s": tf.io.SparseFeature("a", "b", tf.float32, 100),
            "t": tf.io.SparseFeature(["a", "d"], "c", tf.string, [5, 1 << 62], already_sorted=True),
        }
    )(data)


@target(*_example_seeds)
def example_ragged(data: bytes) -> None:
    feature = tf.io.RaggedFeature
    _examples(
        {
            "r": feature(tf.float32, "b"),
            "s": feature(tf.string, "c", [feature.RowLengths("a")]),
            "t": feature(tf.string, "c", [feature.RowSplits("a"), feature.UniformRowLength(2)], validate=True),
            "u": feature(tf.float32, "b", [feature.ValueRowIds("a")]),
            "v": feature(tf.float32, "b", [feature.RowStarts("a")], validate=True),
            "w": feature(tf.float32, "b", [feature.RowLimits("a")], validate=True),
        }
    )(data)


@target(*(bytes([option]) + row for row in _SEQUENCES + _EXAMPLES for option in (0, 1, 32)))
def sequence_example(data: bytes) -> None:
    rows = _rows(data)
    context = {
        "a": tf.io.FixedLenFeature([], tf.int64, 3),
        "d": tf.io.VarLenFeature(tf.string),
        "e": tf.io.RaggedFeature(tf.float32),
    }
    lists = {
        "b": tf.io.FixedLenSequenceFeature([2], tf.float32, allow_missing=True),
        "c": tf.io.VarLenFeature(tf.string),
        "f": tf.io.RaggedFeature(tf.int64),
    }
    try:
        tf.io.parse_sequence_example(np.array(rows, dtype=object), context, lists)
    finally:
        tf.io.parse_single_sequence_example(rows[0], {"a": context["a"]}, {"b": lists["b"], "c": lists["c"]})


# ---- TensorProto ------------------------------------------------------------------------------------------------

_TENSOR_TYPES = (
    tf.float32, tf.float64, tf.int32, tf.uint8, tf.int16, tf.int8, tf.string, tf.complex64, tf.int64, tf.bool,
    tf.qint8, tf.quint8, tf.qint32, tf.bfloat16, tf.uint16, tf.complex128, tf.float16, tf.uint32, tf.uint64,
)  # fmt: skip


def _proto(array: np.ndarray, dtype: Any) -> bytes:
    return tensor_proto.to_tensor_proto(array, dtype).SerializeToString()


_STRINGS = np.array([b"x", b""], dtype=object)
_TENSORS = (
    b'\x08\x03\x12\x00"\x04\x07\x00\x00\x00',
    b"\x08\x07\x12\x00B\x01a",
    _proto(np.arange(6, dtype=np.float32).reshape(2, 3), tf.float32),
    _proto(_STRINGS, tf.string),
    _proto(np.ones((1000,), np.int64), tf.int64),
)


@target(*(bytes([option]) + data for data in _TENSORS for option in (0, 2, 6, 8)))
def tensor(data: bytes) -> None:
    option, contents = either(data)
    tf.io.parse_tensor(contents, _TENSOR_TYPES[option % len(_TENSOR_TYPES)])


@target(*_TENSORS, refused=(TypeError, DecodeError, NotImplementedError))
def tensor_message(data: bytes) -> None:
    message = protos.TensorProto.FromString(data)
    with contextlib.suppress(*REFUSED):
        tensor_proto.from_tensor_proto(message)
    try:
        tf.make_ndarray(message)
    except ValueError as error:
        assert isinstance(error.__cause__, InvalidArgumentError)


def _joined(*parts: bytes) -> bytes:
    return b"".join(bytes([len(part)]) + part for part in parts)


def _parts(data: bytes, count: int) -> list[bytes]:
    """Strings that follow their lengths."""
    found = []
    for _ in range(count):
        size, data = either(data)
        found.append(data[:size])
        data = data[size:]
    return found


_INDICES = _proto(np.array([[0, 1], [2, 0]], np.int64), tf.int64)
_SPARSE = _joined(_INDICES, _proto(_STRINGS, tf.string), _proto(np.array([3, 2], np.int64), tf.int64))


@target(_SPARSE, _SPARSE * 2)
def sparse_message(data: bytes) -> None:
    rows = np.array(_parts(data, 6), dtype=object).reshape(2, 3)
    for serialized in (rows[:1], rows):
        for call in (
            lambda: tf.io.deserialize_many_sparse(serialized, tf.string),  # noqa: B023 (called at once)
            lambda: tf.raw_ops.DeserializeSparse(serialized_sparse=serialized[0], dtype=tf.string),  # noqa: B023
        ):
            with contextlib.suppress(REFUSED):
                call()


# ---- any message ------------------------------------------------------------------------------------------------

_KINDS = {number: name for name, number in descriptor_pb2.FieldDescriptorProto.Type.items()}
_FIELD_TYPES = {
    "FLOAT": tf.float32, "DOUBLE": tf.float64, "BOOL": tf.bool, "UINT32": tf.uint32, "FIXED32": tf.uint32,
    "UINT64": tf.uint64, "FIXED64": tf.uint64, "INT64": tf.int64, "SINT64": tf.int64, "SFIXED64": tf.int64,
    "STRING": tf.string, "BYTES": tf.string, "MESSAGE": tf.string, "GROUP": tf.string,
}  # fmt: skip


def _described() -> tuple[bytes, list[str], list[Any]]:
    """A message with one field of each type, once optional and once repeated."""
    file = descriptor_pb2.FileDescriptorProto(name="fuzz.proto", package="fuzz")
    message = file.message_type.add(name="All")
    message.nested_type.add(name="Grouped").field.add(name="x", number=1, type=5, label=1)
    file.enum_type.add(name="Color").value.add(name="RED", number=0)
    types = []
    for number, kind in sorted(_KINDS.items()):
        for repeated in (False, True):
            field = message.field.add(
                name=f"{'r' if repeated else 'o'}{number}",
                number=2 * number + repeated,
                type=number,
                label=3 if repeated else 1,
            )
            if kind == "TYPE_GROUP":
                field.name = field.name.replace("o", "grouped").replace("r", "rgrouped")
                field.type_name = ".fuzz.All.Grouped"
            elif kind == "TYPE_MESSAGE":
                field.type_name = ".fuzz.All"
            elif kind == "TYPE_ENUM":
                field.type_name = ".fuzz.Color"
            types.append(_FIELD_TYPES.get(kind[5:], tf.int32))
    names = [field.name for field in message.field]
    return descriptor_pb2.FileDescriptorSet(file=[file]).SerializeToString(), names, types


_DESCRIPTOR, _NAMES, _TYPES = _described()
_MESSAGES = (
    bytes.fromhex("28013002580163013264"),
    b"\x12\x03abc",
    b"\x0a\x04\x0a\x02\x08\x01",
    bytes.fromhex("1d0000803f2a08000000000000f03f"),
)


@target(*(bytes([option]) + message for message in _MESSAGES for option in (0, 1)))
def proto(data: bytes) -> None:
    option, contents = either(data)
    _, values = tf.io.decode_proto(
        [contents], "fuzz.All", _NAMES, _TYPES, b"bytes://" + _DESCRIPTOR, sanitize=bool(option & 1)
    )
    assert all(value.shape[0] == 1 and value.shape[1] >= 1 for value in values)


@target(b"o5: 1", b"o11 { r9: 'x' }", b'grouped10 { x: 1 } r3: [1, 2] "')
def proto_text(data: bytes) -> None:
    tf.io.decode_proto([data], "fuzz.All", _NAMES, _TYPES, b"bytes://" + _DESCRIPTOR, message_format="text")


@target(_DESCRIPTOR, descriptor_pb2.FileDescriptorSet().SerializeToString())
def proto_descriptor(data: bytes) -> None:
    tf.io.decode_proto([b"\x28\x01"], "fuzz.All", ["o5"], [tf.int32], b"bytes://" + data)


@target(_joined(b"text", b"\x28\x01", b"\x08\x01"))
def proto_encoding(data: bytes) -> None:
    """Text and submessages come from the bytes; what is written can be read again."""
    values = [np.array([[part]], dtype=object) for part in _parts(data, 3)]
    names = ["o9", "r11", "grouped10"]
    encoded = tf.io.encode_proto(np.ones((1, 3), np.int32), values, names, "fuzz.All", b"bytes://" + _DESCRIPTOR)
    sizes, _ = tf.io.decode_proto(encoded, "fuzz.All", names, [tf.string] * 3, b"bytes://" + _DESCRIPTOR)
    assert sizes.numpy().tolist() == [[1, 1, 1]]


@functools.cache
def _graph() -> bytes:
    with tf1.Graph().as_default() as graph:
        x = tf1.placeholder(tf.float32, [None, 3], name="x")
        y = tf.reshape(tf.matmul(x, [[1.0], [2.0], [3.0]]), [-1], name="y")
        tf1.cond(tf.reduce_sum(y) > 0, lambda: y, lambda: -y)
        return graph.as_graph_def().SerializeToString()


@target(_graph(), refused=(ValueError, OpError, NotFoundError, DecodeError))
def graph_def(data: bytes) -> None:
    message = protos.GraphDef.FromString(data)
    with tf1.Graph().as_default():
        tf1.import_graph_def(message)
