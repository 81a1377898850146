"""Files from inside a run, and graphs written to files."""

import math

import numpy as np
import pytest
from google.protobuf import text_format

import stoker as tf2
import stoker.compat.v1 as tf


def test_a_file_written_can_be_read(tmp_path):
    """write_file makes the folders above, read_file gives the bytes."""
    path = str(tmp_path / "a" / "b" / "c.bin")
    name = tf.placeholder(tf.string, [])
    with tf.Session() as session:
        session.run(tf.write_file(name, b"\0hello"), {name: path})
        read = tf.read_file(name)
        assert read.shape.as_list() == []
        assert session.run(read, {name: path}) == b"\0hello"


def test_files_in_eager_mode(tmp_path, eager):
    """The same at once; writing returns nothing to wait for."""
    path = str(tmp_path / "x")
    tf2.io.write_file(path, "hi")
    assert tf2.io.read_file(path).numpy() == b"hi"


def test_missing_files_and_folders(tmp_path, eager):
    """What cannot be read is reported as TensorFlow does."""
    with pytest.raises(tf.errors.NotFoundError, match="No such file"):
        tf2.io.read_file(str(tmp_path / "none"))
    with pytest.raises(tf.errors.FailedPreconditionError, match="directory"):
        tf2.io.read_file(str(tmp_path))
    with pytest.raises(tf.errors.InvalidArgumentError, match="scalar"):
        tf2.io.read_file([str(tmp_path)])


def test_a_file_is_read_anew_in_each_run(tmp_path):
    """Reading is not folded into the plan, though its name is a constant."""
    path = tmp_path / "x"
    path.write_bytes(b"1")
    contents = tf.read_file(str(path))
    with tf.Session() as session:
        assert session.run(contents) == b"1"
        path.write_bytes(b"2")
        assert session.run(contents) == b"2"


def test_matching_files(tmp_path, eager):
    """Names that match one pattern or several, sorted."""
    for name in ("b.txt", "a.txt", "c.csv"):
        (tmp_path / name).write_bytes(b"")
    found = tf2.io.matching_files([f"{tmp_path}/*.txt", f"{tmp_path}/c*"]).numpy()
    assert [name.rsplit(b"/", 1)[1] for name in found] == [b"a.txt", b"b.txt", b"c.csv"]
    assert tf2.io.matching_files(f"{tmp_path}/none*").numpy().shape == (0,)


def test_match_filenames_once(tmp_path):
    """The names are found when the local variable is initialized, and stay."""
    (tmp_path / "a.txt").write_bytes(b"")
    names = tf.train.match_filenames_once(f"{tmp_path}/*.txt")
    assert names in tf.local_variables()
    assert names.name == "matching_filenames:0"
    with tf.Session() as session:
        session.run(tf.local_variables_initializer())
        (tmp_path / "b.txt").write_bytes(b"")
        assert session.run(names).tolist() == [f"{tmp_path}/a.txt".encode()]


@pytest.mark.parametrize("as_text", [True, False])
def test_write_graph(tmp_path, as_text):
    """A graph as text or in binary, in a folder made for it."""
    tf.constant(3.0, name="three")
    path = tf.train.write_graph(tf.get_default_graph(), str(tmp_path / "logs"), "graph.pb", as_text)
    data = (tmp_path / "logs" / "graph.pb").read_bytes()
    assert path == str(tmp_path / "logs" / "graph.pb")
    found = text_format.Parse(data.decode(), tf.GraphDef()) if as_text else tf.GraphDef.FromString(data)
    assert found == tf.get_default_graph().as_graph_def()
    assert tf2.io.write_graph(found, str(tmp_path), "again.pb", as_text).endswith("again.pb")


def test_tensors_travel_as_messages():
    """serialize_tensor and parse_tensor are each other's inverse for every kind of element."""
    for value in (
        np.float32([1.5, 2]),
        np.int8([[1], [2]]),
        np.array(b"x", object),
        np.zeros([0, 2]),
        np.array(True),
        np.complex64([1 + 2j]),
    ):
        with tf.Graph().as_default(), tf.Session() as session:
            tensor = tf.constant(value)
            again = session.run(tf.parse_tensor(tf.serialize_tensor(tensor), tensor.dtype))
            np.testing.assert_equal(again, value[()] if value.ndim == 0 else value)


def test_serialized_bytes_are_tensorflows(eager):
    """Numbers are raw content, even single ones (golden bytes of TensorFlow 2.21)."""
    assert tf2.io.serialize_tensor(7).numpy() == b'\x08\x03\x12\x00"\x04\x07\x00\x00\x00'
    assert (
        tf2.io.serialize_tensor([["a", "bc"]]).numpy()
        == b"\x08\x07\x12\x08\x12\x02\x08\x01\x12\x02\x08\x02B\x01aB\x02bc"
    )


@pytest.mark.parametrize(
    ("data", "message"),
    [(b"abc", "Could not parse"), (b"", "Cannot parse"), (b"\x08\x01\x12\x00*\x04\0\0\0\0", "Type mismatch")],
)
def test_parse_tensor_refuses_other_messages(eager, data, message):
    """Bytes that are no TensorProto, or one of another dtype, are refused."""
    with pytest.raises(tf.errors.InvalidArgumentError, match=message):
        tf2.io.parse_tensor(data, tf2.int32)


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ((1,), b"\x08\x03\x12\x00:\x01\x01"),
        (([1.0, 2.0],), b'\x08\x01\x12\x04\x12\x02\x08\x02"\x08\x00\x00\x80?\x00\x00\x00@'),
        ((["a", b"b"],), b"\x08\x07\x12\x04\x12\x02\x08\x02B\x01aB\x01b"),
        (([True, False],), b"\x08\n\x12\x04\x12\x02\x08\x02Z\x02\x01\x00"),
        ((1, None, [2, 2]), b"\x08\x03\x12\x08\x12\x02\x08\x02\x12\x02\x08\x02:\x01\x01"),
        (([1, 2], None, [3]), b"\x08\x03\x12\x04\x12\x02\x08\x03:\x02\x01\x02"),
    ],
)
def test_make_tensor_proto_is_tensorflows(arguments, expected):
    """The message is TensorFlow's, byte for byte; make_ndarray reads it."""
    proto = tf.make_tensor_proto(*arguments)
    assert proto.SerializeToString() == expected
    array = tf.make_ndarray(proto)
    assert array.shape == tuple(dim.size for dim in proto.tensor_shape.dim)
    assert (
        array.ravel()[-1] == np.asarray(arguments[0], dtype=array.dtype if array.dtype == object else None).ravel()[-1]
        or array.dtype == object
    )


def _message(number, sizes, **values):
    message = tf.make_tensor_proto(0)
    message.Clear()
    message.dtype = number
    for size in sizes:
        message.tensor_shape.dim.add(size=size)
    for name, value in values.items():
        message.MergeFrom(type(message)(**{name: value}))
    return message


@pytest.mark.parametrize(
    ("dtype", "sizes", "values", "expected"),
    [
        (tf.complex64, [2], {"scomplex_val": [1, math.inf, 3]}, [complex(1, math.inf)] * 2),
        (tf.float32, [2], {"float_val": [1, 2, 3]}, [1, 2]),
        (tf.float32, [0, 2], {"float_val": [1]}, []),
        (tf.float32, [0], {"tensor_content": b"xyz"}, []),
        (tf.string, [2], {"tensor_content": b"\x01\x02abc"}, [b"a", b"bc"]),
        (tf.string, [3], {"string_val": [b"x", b"y"]}, [b"x", b"y", b"y"]),
    ],
)
def test_parse_tensor_overlooks_what_does_not_matter(eager, dtype, sizes, values, expected):
    """Values beyond the shape, half a complex number and all contents of a tensor without elements are overlooked."""
    found = tf2.io.parse_tensor(_message(dtype.as_datatype_enum, sizes, **values).SerializeToString(), dtype).numpy()
    assert found.shape == tuple(sizes)
    assert found.ravel().tolist() == expected


@pytest.mark.parametrize(
    ("dtype", "sizes", "values"),
    [
        (tf.float32, [2], {"tensor_content": b"xyz"}),
        (tf.float32, [1 << 40, 1 << 40, 0], {}),
        (tf.float32, [1 << 20, 1 << 20], {"float_val": [1]}),
        (tf.float32, [1] * 100, {}),
        (tf.float32, [-1], {}),
        (tf.bool, [1], {"tensor_content": b"x"}),
        (tf.string, [2], {"tensor_content": b"\x01\x02abcd"}),
        (tf.string, [2], {"tensor_content": b"\xff" * 12}),
        (tf.string, [9], {"tensor_content": b"\0"}),
    ],
)
def test_tensor_messages_that_do_not_add_up(eager, dtype, sizes, values):
    """Contents of another size and impossible shapes are an error of the op, and a ValueError of make_ndarray."""
    message = _message(dtype.as_datatype_enum, sizes, **values)
    with pytest.raises(tf.errors.InvalidArgumentError):
        tf2.io.parse_tensor(message.SerializeToString(), dtype)
    with pytest.raises(ValueError, match="TensorProto"):
        tf.make_ndarray(message)


def test_make_ndarray_refuses_too_many_values():
    """make_ndarray does not overlook values, unlike parse_tensor."""
    with pytest.raises(ValueError, match="holds 3 values"):
        tf.make_ndarray(_message(1, [2], float_val=[1, 2, 3]))


def test_tensor_messages_beyond_the_memory(monkeypatch):
    """A shape that the limit lets through but the memory does not is told as such."""

    def refuse(*args, **options):
        raise MemoryError

    monkeypatch.setattr(np, "empty", refuse)
    with pytest.raises(tf.errors.ResourceExhaustedError, match="1000 elements of float32"):
        tf.make_ndarray(_message(1, [1000], float_val=[1]))


def test_make_tensor_proto_checks_shapes():
    """Too many elements, and under verify_shape any other shape, are refused."""
    with pytest.raises(ValueError, match="Too many elements"):
        tf.make_tensor_proto([1, 2, 3], shape=[2])
    with pytest.raises(TypeError, match="Expected Tensor's shape"):
        tf.make_tensor_proto(5, shape=[2], verify_shape=True)
    assert tf.make_ndarray(tf.make_tensor_proto(5, shape=[2], verify_shape=True, allow_broadcast=True)).tolist() == [
        5,
        5,
    ]


def test_sparse_tensors_travel_as_strings(eager):
    """Serialized one by one or many at once, and read back with a leading dimension."""
    sparse = tf2.SparseTensor([[0, 1], [2, 0]], ["x", "y"], [3, 9])
    rows = tf2.io.serialize_many_sparse(sparse)
    assert rows.shape == (3, 3)
    again = tf2.io.deserialize_many_sparse(rows, tf2.string)
    assert again.indices.numpy().tolist() == [[0, 1], [2, 0]]
    assert again.values.numpy().tolist() == [b"x", b"y"]
    assert again.dense_shape.numpy().tolist() == [3, 9]
    one = tf2.io.serialize_sparse(sparse).numpy()
    pair = tf2.io.deserialize_many_sparse(np.stack([one, one]), tf2.string)
    assert pair.dense_shape.numpy().tolist() == [2, 3, 9]
    assert pair.indices.numpy().tolist() == [[0, 0, 1], [0, 2, 0], [1, 0, 1], [1, 2, 0]]


def test_sparse_strings_that_do_not_fit_are_refused(eager):
    """Another dtype, other bytes, rows out of order, and what is not sparse."""
    sparse = tf2.SparseTensor([[0, 0], [1, 1]], [1, 2], [2, 2])
    with pytest.raises(tf.errors.InvalidArgumentError, match="Requested SparseTensor of type int64"):
        tf2.io.deserialize_many_sparse(tf2.io.serialize_many_sparse(sparse), tf2.int64)
    with pytest.raises(tf.errors.InvalidArgumentError, match="Could not parse"):
        tf2.io.deserialize_many_sparse([[b"a", b"b", b"c"]], tf2.int64)
    with pytest.raises(tf.errors.InvalidArgumentError, match="out of order"):
        tf2.io.serialize_many_sparse(tf2.SparseTensor([[1, 0], [0, 0]], [1, 2], [2, 2]))
    with pytest.raises(tf.errors.InvalidArgumentError, match="out of bounds"):
        tf2.io.serialize_many_sparse(tf2.SparseTensor([[2, 0]], [1], [2, 2]))
    with pytest.raises(tf.errors.InvalidArgumentError, match="Rank of input"):
        tf2.io.serialize_many_sparse(tf2.SparseTensor([[0]], [1], [2]))
    with pytest.raises(TypeError, match="must be a SparseTensor"):
        tf2.io.serialize_sparse([1, 2])
