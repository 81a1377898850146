"""decode_proto and encode_proto."""

import pytest
from google.protobuf import descriptor_pb2
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import stoker as tf2
import stoker.compat.v1 as tf
from stoker._src.graph import context

Field = descriptor_pb2.FieldDescriptorProto


@pytest.fixture
def source(tmp_path):
    """A file that describes a message with several kinds of fields."""
    file = descriptor_pb2.FileDescriptorProto(name="t.proto", package="t", syntax="proto2")
    message = file.message_type.add(name="M")
    for number, (name, kind) in enumerate(
        {"f": Field.TYPE_FLOAT, "i": Field.TYPE_INT32, "u": Field.TYPE_UINT64, "s": Field.TYPE_STRING}.items(), 1
    ):
        message.field.add(name=name, number=number, type=kind, label=Field.LABEL_REPEATED)
    message.field.add(name="sub", number=8, type=Field.TYPE_MESSAGE, type_name=".t.M", label=Field.LABEL_OPTIONAL)
    message.field.add(name="o", number=9, type=Field.TYPE_INT32, label=Field.LABEL_OPTIONAL, default_value="7")
    path = tmp_path / "described"
    path.write_bytes(descriptor_pb2.FileDescriptorSet(file=[file]).SerializeToString())
    return str(path)


def test_messages_go_both_ways(eager, source):
    """What is encoded is decoded: counts, values padded to the longest, defaults where nothing is there."""
    data = tf2.io.encode_proto(
        [[2, 0, 1], [0, 1, 0]],
        [tf2.constant([[1.5, 2.5], [0.0, 0.0]]), tf2.constant([[0], [9]]), tf2.constant([["é"], [""]])],
        ["f", "i", "s"], "t.M", source,
    )  # fmt: skip
    assert data.numpy()[0] == b'\r\x00\x00\xc0?\r\x00\x00 @"\x02\xc3\xa9'
    sizes, values = tf2.io.decode_proto(
        data, "t.M", ["f", "i", "s", "o"], [tf2.float32, tf2.int64, tf2.string, tf2.int32], source
    )
    assert sizes.numpy().tolist() == [[2, 0, 1, 0], [0, 1, 0, 0]]
    assert values[0].numpy().tolist() == [[1.5, 2.5], [0, 0]]
    assert values[1].numpy().tolist() == [[0], [9]]
    assert values[2].numpy().tolist() == [["é".encode()], [b""]]
    assert values[3].numpy().tolist() == [[7], [7]]


def test_submessages_are_strings(eager, source):
    """A message inside of one travels as its bytes; unsigned numbers fit a signed type bit by bit."""
    inner = tf2.io.encode_proto([[1]], [tf2.constant([[2**63 + 5]], tf2.uint64)], ["u"], "t.M", source)
    outer = tf2.io.encode_proto([[1]], [tf2.reshape(inner, [1, 1])], ["sub"], "t.M", source)
    found = tf2.io.decode_proto(outer, "t.M", ["sub"], [tf2.string], source).values[0]
    assert found.numpy().tolist() == [inner.numpy().tolist()]
    assert tf2.io.decode_proto(inner, "t.M", ["u"], [tf2.int64], source).values[0].numpy().tolist() == [[5 - 2**63]]


@pytest.fixture
def every_kind():
    """Two messages with a field of each type: `oN` optional, `rN` repeated, `pN` packed, N being the type's number."""
    files = []
    for syntax in ("proto2", "proto3"):
        file = descriptor_pb2.FileDescriptorProto(name=f"{syntax}.proto", package=syntax, syntax=syntax)
        message = file.message_type.add(name="M")
        values = file.enum_type.add(name="E").value
        values.add(name="A", number=0)
        values.add(name="B", number=1)
        for kind in (1, 2, 3, 4, 5, 6, 7, 8, 9, 11, 12, 13, 14, 15, 16, 17, 18):
            for at, (letter, label) in enumerate((("o", 1), ("r", 3), ("p", 3))):
                field = message.field.add(name=f"{letter}{kind}", number=kind * 5 + at, type=kind, label=label)
                if letter == "p" and kind not in (9, 11, 12):
                    field.options.packed = True
                if kind in (11, 14):
                    field.type_name = f".{syntax}.{'M' if kind == 11 else 'E'}"
        files.append(file)
    return b"bytes://" + descriptor_pb2.FileDescriptorSet(file=files).SerializeToString()


@pytest.mark.parametrize(
    ("kind", "sizes", "values", "fields", "expected"),
    [
        ("proto2", [2], [[1, 2]], ["o5"], b"\xc8\x01\x01\xc8\x01\x02"),
        ("proto2", [1, 1], [[1], [2]], ["r5", "o5"], b"\xc8\x01\x02\xd0\x01\x01"),
        ("proto2", [2], [[1, 300]], ["p5"], b"\xda\x01\x03\x01\xac\x02"),
        ("proto2", [0], [[1]], ["p5"], b""),
        ("proto2", [-1], [[1]], ["r5"], b""),
        ("proto2", [1, 0], [[1], []], ["o5", "r5"], b"\xc8\x01\x01"),
        ("proto3", [1], [[0]], ["o5"], b"\xc8\x01\x00"),
        ("proto3", [2], [[1, 300]], ["r5"], b"\xd2\x01\x03\x01\xac\x02"),
        ("proto2", [1], [[-5]], ["o5"], b"\xc8\x01\xfb" + b"\xff" * 8 + b"\x01"),
        ("proto2", [1], [[-5]], ["o17"], b"\xa8\x05\x09"),
        ("proto2", [1], [[99]], ["o14"], b"\xb0\x04c"),
        ("proto2", [1], [[b"\xff"]], ["o9"], b"\xea\x02\x01\xff"),
        ("proto2", [2], [[b"\x08\x01", b"zz"]], ["r11"], b"\xc2\x03\x02\x08\x01\xc2\x03\x02zz"),
    ],
)
def test_encoding_writes_what_it_is_given(eager, every_kind, kind, sizes, values, fields, expected):
    """Fields come in the order of their numbers, with proto3's zeros, repeats and submessages as they are (golden bytes)."""
    values = [tf2.constant([row], None if row else tf2.int32) for row in values]
    assert tf2.io.encode_proto([sizes], values, fields, f"{kind}.M", every_kind).numpy().tolist() == [expected]


@pytest.mark.parametrize(("field", "dtype", "value", "expected"), [
    ("o5", "int64", 1 << 40 | 3, b"\xc8\x01\x03"), ("o13", "uint64", 1 << 40, b"\x88\x04\x00"),
    ("o2", "float64", 1e300, b"U\x00\x00\x80\x7f"), ("o15", "int64", -5, b"\xdd\x04\xfb\xff\xff\xff"),
])  # fmt: skip
def test_encoding_narrows_numbers(eager, every_kind, field, dtype, value, expected):
    """A number that its field has no room for is cut as a C cast cuts it."""
    encode = tf2.io.encode_proto
    found = encode([[1]], [tf2.constant([[value]], getattr(tf2, dtype))], [field], "proto2.M", every_kind)
    assert found.numpy().tolist() == [expected]


@pytest.mark.parametrize("kind", ["proto2", "proto3"])
@settings(deadline=None, max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_any_message_goes_both_ways(every_kind, kind, data):
    """What is encoded is what protobuf reads, and is decoded to the same numbers."""
    whole = {"3": 64, "5": 32, "15": 32, "16": 64, "17": 32, "18": 64}
    names = data.draw(
        st.lists(st.sampled_from([f"{a}{n}" for a in "orp" for n in whole]), min_size=1, max_size=5, unique=True)
    )
    rows = []
    for name in names:
        bits = whole[name[1:]]
        numbers = st.integers(-(1 << bits - 1), (1 << bits - 1) - 1)
        rows.append(data.draw(st.lists(numbers, min_size=1, max_size=1 if name[0] == "o" else 4)))
    with context.enter_eager():
        types = [tf2.int64 if whole[name[1:]] == 64 else tf2.int32 for name in names]
        values = [tf2.constant([row], dtype) for row, dtype in zip(rows, types)]
        encoded = tf2.io.encode_proto([[len(row) for row in rows]], values, names, f"{kind}.M", every_kind)
        sizes, found = tf2.io.decode_proto(encoded, f"{kind}.M", names, types, every_kind, sanitize=True)
    for name, row, held in zip(names, rows, found):
        # proto3 does not keep a zero of a field that may have one when it writes a message anew.
        gone = kind == "proto3" and name[0] == "o" and row == [0]
        assert held.numpy().tolist() == [row]
        assert sizes.numpy()[0, names.index(name)] == (0 if gone else len(row))


def test_types_of_this_process(eager):
    """local:// finds what has been imported; shapes are kept."""
    data = tf.train.Int64List(value=[1, 2]).SerializeToString()
    sizes, values = tf2.io.decode_proto([[data]], tf.train.Int64List.DESCRIPTOR.full_name, ["value"], [tf2.int64])
    assert sizes.numpy().tolist() == [[[2]]]
    assert values[0].numpy().tolist() == [[[1, 2]]]


def test_what_does_not_fit_is_refused(eager, source):
    """Unknown types and fields, other dtypes, damaged messages, counts too large."""
    decode, encode = tf2.io.decode_proto, tf2.io.encode_proto
    for call, message in [
        (lambda: decode([b""], "t.X", ["f"], [tf2.float32], source), "No descriptor found"),
        (lambda: decode([b""], "t.M", ["none"], [tf2.float32], source), "Unknown field: none"),
        (lambda: decode([b""], "t.M", ["f"], [tf2.int32], source), "Unexpected output type"),
        (lambda: decode([b""], "t.M", ["f"], [], source), "same length"),
        (lambda: decode([b""], "t.M", ["f"], [tf2.float32], source, "xml"), "binary or text"),
        (lambda: decode([b""], "t.M", ["f"], [tf2.float32], "/nowhere"), "file descriptor set"),
        (lambda: encode([[3]], [tf2.constant([[1.5]])], ["f"], "t.M", source), "3 > 1 at message 0 field 0"),
        (lambda: encode([[1]], [tf2.constant([[1.5]])], ["i"], "t.M", source), "Incompatible type"),
        (lambda: encode([[1, 1]], [tf2.constant([[1.5]])], ["f"], "t.M", source), "sizes should be"),
    ]:
        with pytest.raises(tf.errors.InvalidArgumentError, match=message):
            call()
    with pytest.raises(tf.errors.DataLossError, match="Failed reading"):
        decode([b"\xff"], "t.M", ["f"], [tf2.float32], source)
    with pytest.raises(tf.errors.DataLossError, match="text"):
        decode(["zz"], "t.M", ["f"], [tf2.float32], source, "text")


def test_sanitize_writes_messages_anew(eager, source):
    """Without it a submessage is the last one's bytes; with it those of one field are merged and damage is found."""
    one, two = b"\x48\x01", b"\x10\x05"  # o: 1, and i: 5
    data = b"\x42\x02" + one + b"\x42\x02" + two
    read = lambda data, **options: tf2.io.decode_proto([data], "t.M", ["sub"], [tf2.string], source, **options)  # noqa: E731
    assert read(data).values[0].numpy().tolist() == [[two]]
    assert read(data, sanitize=True).values[0].numpy().tolist() == [[two + one]]
    damaged = b"\x42\x01\xff"
    assert read(damaged).values[0].numpy().tolist() == [[b"\xff"]]
    with pytest.raises(tf.errors.DataLossError, match="Unable to parse binary"):
        read(damaged, sanitize=True)


def test_wire_forms(eager, source):
    """Packed and single values of a repeated field mix, unknown fields and other wire types are passed over."""
    data = b"\x12\x02\x01\x02" + b"\x10\x03" + b"\x9d\x0612 34"[:2] + b"1234" + b"\x15abcd" + b"\x48\x05\x48\x06"
    sizes, values = tf2.io.decode_proto([data], "t.M", ["i", "o", "f"], [tf2.int32, tf2.int64, tf2.float64], source)
    assert sizes.numpy().tolist() == [[3, 1, 0]]
    assert [value.numpy().tolist() for value in values] == [[[1, 2, 3]], [[6]], [[0.0]]]


def test_tensorflows_names_are_local(eager):
    """TensorFlow's own messages are found under its package's name."""
    value = tf.train.Feature(int64_list=tf.train.Int64List(value=[3]))
    data = tf.train.Example(features=tf.train.Features(feature={"a": value})).SerializeToString()
    for source in ("local://", ""):
        found = tf2.io.decode_proto([data], "tensorflow.Example", ["features"], [tf2.string], source)
        assert tf.train.Features.FromString(found.values[0].numpy()[0, 0]).feature["a"] == value


@pytest.mark.parametrize("syntax", ["proto2", "proto3"])
def test_maps_keep_the_order_of_the_wire(eager, syntax):
    """Sanitized or from text, a map's entries stay in their order, whole, also those whose key comes again."""
    file = descriptor_pb2.FileDescriptorProto(name=f"maps_{syntax}.proto", package="maps", syntax=syntax)
    message = file.message_type.add(name="Held")
    entry = message.nested_type.add(name="CountEntry", options=descriptor_pb2.MessageOptions(map_entry=True))
    entry.field.add(name="key", number=1, type="TYPE_STRING", label="LABEL_OPTIONAL")
    entry.field.add(name="value", number=2, type="TYPE_INT64", label="LABEL_OPTIONAL")
    message.field.add(
        name="count", number=1, type="TYPE_MESSAGE", type_name=".maps.Held.CountEntry", label="LABEL_REPEATED"
    )
    described = b"bytes://" + descriptor_pb2.FileDescriptorSet(file=[file]).SerializeToString()
    entries = [b"\n\x01z\x10\x05", b"\n\x01a\x10\x00", b"\n\x01z\x10\x07"]
    wire = b"".join(b"\n" + bytes([len(each)]) + each for each in entries) + b"\n\x02\x18\x09"
    text = b'count { key: "z" value: 5 } count { key: "a" } count { key: "z" value: 7 } count {}'
    for data, options in ((wire, {"sanitize": True}), (text, {"message_format": "text"})):
        found = tf2.io.decode_proto([data], "maps.Held", ["count"], [tf2.string], described, **options)
        assert found.values[0].numpy().tolist() == [[*entries, b"\n\x00\x10\x00"]]


def test_sanitizing_misses_required_fields(eager):
    """A message without a required field is a DataLossError when it is parsed as a whole, and taken otherwise."""
    file = descriptor_pb2.FileDescriptorProto(name="required.proto", package="needs", syntax="proto2")
    file.message_type.add(name="Needs").field.add(name="a", number=1, type="TYPE_INT32", label="LABEL_REQUIRED")
    described = b"bytes://" + descriptor_pb2.FileDescriptorSet(file=[file]).SerializeToString()
    assert tf2.io.decode_proto([b""], "needs.Needs", ["a"], [tf2.int32], described).sizes.numpy().tolist() == [[0]]
    for options in ({"sanitize": True}, {"message_format": "text"}):
        with pytest.raises(tf2.errors.DataLossError):
            tf2.io.decode_proto([b""], "needs.Needs", ["a"], [tf2.int32], described, **options)


def test_a_source_that_cannot_be_read_is_bad_input(eager, tmp_path):
    """A directory, or a scheme nobody knows, is an InvalidArgumentError."""
    for described in (str(tmp_path), "nosuchscheme://x"):
        with pytest.raises(tf2.errors.InvalidArgumentError):
            tf2.io.decode_proto([b""], "a.B", [], [], described)
