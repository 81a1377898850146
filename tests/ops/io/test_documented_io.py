"""The documents' worked examples and errors of messages, parsing, codecs, files, structures and checks, one by one."""

import collections
import gzip
import zlib

import numpy as np
import pytest
from google.protobuf import text_format

import stoker as tf2
import stoker.compat.v1 as tf


def example(text):
    return text_format.Parse(f"features {{ {text} }}", tf.train.Example()).SerializeToString()


def feature(key, value):
    return f'feature {{ key: "{key}" value {{ {value} }} }}'


FLOATS = [
    example(feature("ft", "float_list { value: [1.0, 2.0] }")),
    example(""),
    example(feature("ft", "float_list { value: [3.0] }")),
]
WORDS = [
    example(feature("kw", 'bytes_list { value: ["knit", "big"] }') + feature("gps", "float_list { value: [] }")),
    example(
        feature("kw", 'bytes_list { value: ["emmy"] }')
        + feature("dank", "int64_list { value: [42] }")
        + feature("gps", "")
    ),
]
PEOPLE = [
    example(feature("age", f"int64_list {{ value: [{age}] }}") + feature("gender", 'bytes_list { value: ["f"] }'))
    for age in ("0", "")
]
PAIRS = [
    example(feature("val", f"float_list {{ value: [{values}] }}") + feature("ix", f"int64_list {{ value: [{at}] }}"))
    for values, at in (("0.5, -1.0", "3, 20"), ("0.0", "42"))
]


@pytest.fixture(params=["graph", "eager"])
def parse(request):
    """parse_example or another function of `tf.io`, in graph or eager mode, with arrays for results."""

    def in_graph(rows, features, name="parse_example", **options):
        with tf.Graph().as_default(), tf.Session() as session:
            return session.run(getattr(tf.io, name)(rows, features, **options))

    def at_once(rows, features, name="parse_example", **options):
        found = getattr(tf2.io, name)(rows, features, **options)
        return {key: value.numpy() for key, value in found.items()}

    if request.param == "eager":
        request.getfixturevalue("eager")
        return at_once
    return in_graph


def is_sparse(found, indices, values, dense_shape):
    assert found.indices.tolist() == indices
    assert found.values.tolist() == values
    assert found.dense_shape.tolist() == dense_shape


def test_ragged_floats_are_sparse(parse):
    """Three rows, the middle one empty, as a VarLenFeature."""
    found = parse(FLOATS, {"ft": tf.io.VarLenFeature(tf.float32)})["ft"]
    is_sparse(found, [[0, 0], [0, 1], [2, 0]], [1, 2, 3], [3, 2])


def test_ragged_floats_are_padded(parse):
    """The same as a FixedLenSequenceFeature: one row for each example, the empty one too."""
    spec = tf.io.FixedLenSequenceFeature([], tf.float32, allow_missing=True, default_value=-1.0)
    assert parse(FLOATS, {"ft": spec})["ft"].tolist() == [[1, 2], [-1, -1], [3, -1]]


def test_words_missing_and_empty_features(parse):
    """A feature that is missing, without a kind, or an empty list has no values; example_names change nothing."""
    spec = {
        "kw": tf.io.VarLenFeature(tf.string),
        "dank": tf.io.VarLenFeature(tf.int64),
        "gps": tf.io.VarLenFeature(tf.float32),
    }
    found = parse(WORDS, spec, example_names=["input0", "input1"])
    is_sparse(found["kw"], [[0, 0], [0, 1], [1, 0]], [b"knit", b"big", b"emmy"], [2, 2])
    is_sparse(found["dank"], [[1, 0]], [42], [2, 1])
    is_sparse(found["gps"], [], [], [2, 0])
    assert found["gps"].indices.shape == (0, 2)


def test_a_missing_scalar_takes_the_default(parse):
    """Dense scalars have the shape of the batch. The documents' empty list is refused, as TensorFlow 1.15 and 2.21 do."""
    spec = {
        "age": tf.io.FixedLenFeature([], dtype=tf.int64, default_value=-1),
        "gender": tf.io.FixedLenFeature([], dtype=tf.string),
    }
    for absent in ("", feature("age", "")):
        rows = [PEOPLE[0], example(absent + feature("gender", 'bytes_list { value: ["f"] }'))]
        found = parse(rows, spec, example_names=["input0", "input1"])
        assert found["age"].tolist() == [0, -1]
        assert found["gender"].tolist() == [b"f", b"f"]
        with pytest.raises(tf.errors.InvalidArgumentError, match=r"age .* is required"):
            parse(rows, {"age": tf.io.FixedLenFeature([], dtype=tf.int64)})
    with pytest.raises(tf.errors.InvalidArgumentError, match=r"Key: age, Index: 1.*Values size: 0"):
        parse(PEOPLE, spec)


def test_indices_and_values_make_a_sparse_feature(parse):
    """Positions from one feature, values from another, columns as told; for a single example without the row."""
    spec = {"sparse": tf.io.SparseFeature(index_key="ix", value_key="val", dtype=tf.float32, size=100)}
    is_sparse(parse(PAIRS, spec)["sparse"], [[0, 3], [0, 20], [1, 42]], [0.5, -1, 0], [2, 100])
    is_sparse(parse(PAIRS[0], spec, "parse_single_example")["sparse"], [[3], [20]], [0.5, -1], [100])


def test_sparse_features_are_sorted_unless_told(parse):
    """Positions are sorted, except where they are said to be sorted; TensorFlow takes those outside of the size as they are."""
    row = [example(feature("val", "float_list { value: [1, 2] }") + feature("ix", "int64_list { value: [9, 4] }"))]
    spec = tf.io.SparseFeature("ix", "val", tf.float32, 10)
    assert parse(row, {"s": spec})["s"].values.tolist() == [2, 1]
    assert parse(row, {"s": spec._replace(already_sorted=True)})["s"].values.tolist() == [1, 2]
    assert parse(row, {"s": spec._replace(size=9)})["s"].indices.tolist() == [[0, 4], [0, 9]]


def test_parsing_needs_features(parse):
    """No features at all, and a feature of another kind than the data, are errors."""
    with pytest.raises(ValueError, match="features"):
        parse(FLOATS, {})
    with pytest.raises(tf.errors.InvalidArgumentError, match="ft"):
        parse(FLOATS, {"ft": tf.io.VarLenFeature(tf.int64)})


def test_messages_of_the_cluster_and_the_saver():
    """Their documented fields, with the map of tasks and the saver's versions."""
    job = tf.train.JobDef(name="worker", tasks={0: "a:1", 3: "b:2"})
    cluster = tf.train.ClusterDef(job=[job])
    server = tf.train.ServerDef(cluster=cluster, job_name="worker", task_index=3, protocol="grpc")
    server.default_session_config.allow_soft_placement = True
    again = tf.train.ServerDef.FromString(server.SerializeToString())
    assert again == server
    assert dict(again.cluster.job[0].tasks) == {0: "a:1", 3: "b:2"}
    assert tf.train.JobDef.TasksEntry(key=3, value="x").SerializeToString() == b"\x08\x03\x12\x01x"
    saver = tf.train.SaverDef(
        filename_tensor_name="f", save_tensor_name="s", restore_op_name="r", max_to_keep=5, sharded=True,
        keep_checkpoint_every_n_hours=2.5, version=tf.train.SaverDef.V2,
    )  # fmt: skip
    assert tf.train.SaverDef.FromString(saver.SerializeToString()) == saver
    assert (tf.train.SaverDef.LEGACY, tf.train.SaverDef.V1, tf.train.SaverDef.V2) == (0, 1, 2)
    assert tf.train.SaverDef.CheckpointFormatVersion.Name(1) == "V1"


def test_a_feature_is_one_of_three_lists():
    """Setting another list clears the one before."""
    value = tf.train.Feature(int64_list=tf.train.Int64List(value=[1]))
    value.float_list.value.append(0.5)
    assert value.WhichOneof("kind") == "float_list"
    lists = tf.train.FeatureLists(feature_list={"a": tf.train.FeatureList(feature=[value])})
    sequence = tf.train.SequenceExample(context=tf.train.Features(feature={"b": value}), feature_lists=lists)
    assert tf.train.SequenceExample.FromString(sequence.SerializeToString()) == sequence


def test_masks_and_orders(eager):
    """is_finite, is_inf and is_nan mark elements; is_non_decreasing and is_strictly_increasing give one bool."""
    values = tf2.constant([1.0, np.inf, np.nan])
    debugging = tf.debugging
    assert debugging.is_finite(values).numpy().tolist() == [True, False, False]
    assert debugging.is_inf(values).numpy().tolist() == [False, True, False]
    assert debugging.is_nan(values).numpy().tolist() == [False, False, True]
    for numbers, even, strictly in [([1, 1, 2], True, False), ([1, 2], True, True), ([2, 1], False, False), ([], True, True)]:  # fmt: skip
        row = tf2.constant(numbers, tf2.int32)
        assert bool(debugging.is_non_decreasing(row)) is even
        assert bool(debugging.is_strictly_increasing(row)) is strictly


def test_shape_checks_are_made_as_soon_as_possible():
    """A known violation raises, a known match is a no-op, and what only the run can tell fails it with data."""
    x, y = tf.placeholder(tf.float32, [None, 3]), tf.placeholder(tf.float32, [None, None])
    with pytest.raises(ValueError, match="dimension 1 must have size 4"):
        tf.debugging.assert_shapes([(x, ("N", 4))])
    assert tf.debugging.assert_shapes([(tf.zeros([2, 3]), ("N", "Q")), (tf.zeros([4, 2]), ("*", "N"))]).type == "NoOp"
    check = tf.debugging.assert_shapes({x: ("N", "Q"), y: ("N", ".")}, summarize=2, message="rows differ")
    with tf.Session() as session:
        session.run(check, {x: np.zeros((2, 3)), y: np.zeros((2, 9))})
        with pytest.raises(tf.errors.InvalidArgumentError, match="rows differ"):
            session.run(check, {x: np.zeros((2, 3)), y: np.zeros((5, 1))})


def test_base64_is_url_safe(eager):
    """Without padding unless asked for; both are read, and the other alphabet is refused."""
    assert tf2.io.encode_base64(b"\xfb\xff").numpy() == b"-_8"
    assert tf2.io.encode_base64(b"\xfb\xff", pad=True).numpy() == b"-_8="
    assert tf2.io.decode_base64(["-_8", "-_8="]).numpy().tolist() == [b"\xfb\xff"] * 2
    with pytest.raises(tf.errors.InvalidArgumentError):
        tf2.io.decode_base64("+/8=")


def test_decompression_is_by_element(eager):
    """Each string of a tensor is unpacked on its own; "" leaves them alone and other names are refused."""
    words = [b"a" * 100, b""]
    assert tf2.io.decode_compressed([zlib.compress(w) for w in words], "ZLIB").numpy().tolist() == words
    assert tf2.io.decode_compressed([gzip.compress(w) for w in words], "GZIP").numpy().tolist() == words
    assert tf2.io.decode_compressed(words).numpy().tolist() == words
    with pytest.raises(tf.errors.InvalidArgumentError):
        tf2.io.decode_compressed(b"", "BZIP")


@pytest.mark.parametrize("dtype", ["half", "float32", "float64", "int8", "int16", "int32", "int64", "uint8", "uint16"])
def test_raw_bytes_of_every_documented_type(eager, dtype):
    """Both byte orders, a trailing dimension, and a fixed length that must hold whole numbers."""
    kind = getattr(tf2, dtype)
    numbers = np.array([1, 2, 3], kind.as_numpy_dtype)
    assert tf2.io.decode_raw([numbers.tobytes()], kind).numpy().tolist() == [[1, 2, 3]]
    swapped = numbers.byteswap().tobytes()
    assert tf2.io.decode_raw([swapped], kind, little_endian=False).numpy().tolist() == [[1, 2, 3]]
    size = numbers.itemsize
    rows = [numbers.tobytes(), numbers[:1].tobytes()]
    assert tf2.io.decode_raw(rows, kind, fixed_length=2 * size).numpy().tolist() == [[1, 2], [1, 0]]
    if size > 1:
        with pytest.raises(tf.errors.InvalidArgumentError, match="multiple"):
            tf2.io.decode_raw(rows, kind, fixed_length=2 * size + 1)


def test_csv_errors(eager):
    """Empty vectors are required, scalars optional; unsorted columns, a wrong delimiter and bad numbers are refused."""
    decode = tf2.io.decode_csv
    found = decode(["1, 2.5 ,a"], [tf2.constant([], tf2.int32), [0.0], ["z"]])
    assert [column.numpy().tolist() for column in found] == [[1], [2.5], [b"a"]]
    with pytest.raises(tf.errors.InvalidArgumentError, match="required"):
        decode([",1"], [tf2.constant([], tf2.int32), [0]])
    with pytest.raises(ValueError, match="select_cols"):
        decode(["1,2"], [[0], [0]], select_cols=[1, 0])
    with pytest.raises(tf.errors.InvalidArgumentError):
        decode(["x"], [[0]])
    with pytest.raises(tf.errors.InvalidArgumentError):
        decode(['a"b'], [[""]])


def test_only_sparse_tensors_are_serialized(eager):
    """Anything else is a TypeError; many need more than one dimension, and those of other ranks do not fit."""
    for serialize in (tf2.io.serialize_sparse, tf2.io.serialize_many_sparse):
        with pytest.raises(TypeError):
            serialize(tf2.constant([1]))
    with pytest.raises((ValueError, tf.errors.InvalidArgumentError)):
        tf2.io.serialize_many_sparse(tf2.SparseTensor([[0]], [1], [2]))
    one = tf2.io.serialize_sparse(tf2.SparseTensor([[0]], [1], [2]))
    two = tf2.io.serialize_sparse(tf2.SparseTensor([[0, 4]], [5], [2, 7]))
    wide = tf2.io.serialize_sparse(tf2.SparseTensor([[3]], [9], [6]))
    found = tf2.io.deserialize_many_sparse(tf2.stack([one, wide]), tf2.int32, rank=2)
    assert found.dense_shape.numpy().tolist() == [2, 6]
    assert found.indices.numpy().tolist() == [[0, 0], [1, 3]]
    with pytest.raises(tf.errors.InvalidArgumentError):
        tf2.io.deserialize_many_sparse(tf2.stack([one, two]), tf2.int32)


def test_structures_as_documented():
    """Namedtuples of one name and fields match; the documented error classes of nest."""
    nest = tf2.nest

    def nt(a, b):
        return collections.namedtuple("foo", "a b")(a, b)

    assert nest.assert_same_structure(nt(0, 1), nt(2, 3)) is None
    assert nest.flatten(collections.OrderedDict([("b", 1), ("a", (2, "xy"))])) == [2, "xy", 1]
    packed = nest.pack_sequence_as(collections.OrderedDict([("b", 1), ("a", 2)]), [5, 6])
    assert list(packed.items()) == [("b", 6), ("a", 5)]
    assert nest.map_structure(lambda a, b: a + b, [1, (2,)], (3, [4]), check_types=False) == [4, (6,)]
    assert nest.pack_sequence_as(3, ["x"]) == "x"
    for error, call in [
        (TypeError, lambda: nest.flatten({1: 1, "a": 2})),
        (TypeError, lambda: nest.pack_sequence_as({1: 1, "a": 2}, [1, 2])),
        (TypeError, lambda: nest.map_structure(lambda a, b: a, [1], (1,))),
        (TypeError, lambda: nest.map_structure(3, [1])),
        (TypeError, lambda: nest.assert_same_structure([1], (1,))),
        (ValueError, lambda: nest.assert_same_structure([1], [1, 2])),
        (ValueError, lambda: nest.assert_same_structure([1], [[1]])),
        (ValueError, lambda: nest.pack_sequence_as([1, 2], [1])),
        (ValueError, lambda: nest.pack_sequence_as(3, [1, 2])),
        (ValueError, lambda: nest.map_structure(lambda: 0)),
        (ValueError, lambda: nest.map_structure(lambda a: a, [1], check_typos=True)),
    ]:
        with pytest.raises(error):
            call()


def test_files_as_documented(tmp_path):
    """Folders, listings, overwriting and the error kinds of gfile."""
    gfile = tf2.io.gfile
    at = lambda *names: str(tmp_path.joinpath(*names))  # noqa: E731
    gfile.makedirs(at("a", "b"))
    gfile.makedirs(at("a", "b"))
    with gfile.GFile(at("a", "x.txt"), "w") as file:
        file.write("one\ntwo\n")
    with gfile.GFile(at("a", "x.txt")) as file:
        assert (file.size(), file.readline(), file.tell(), list(file)) == (8, "one\n", 4, ["two\n"])
        file.seek(4)
        assert file.read(2) == "tw"
    assert sorted(name.rstrip("/") for name in gfile.listdir(at("a"))) == ["b", "x.txt"]
    assert gfile.glob([at("a", "*.txt"), at("a", "b*")]) == [at("a", "x.txt"), at("a", "b")]
    assert gfile.stat(at("a", "x.txt")).length == 8
    assert gfile.stat(at("a")).is_directory
    assert [top for top, *_ in gfile.walk(at("a"), topdown=False)] == [at("a", "b"), at("a")]
    gfile.copy(at("a", "x.txt"), at("y"))
    errors = tf.errors
    for error, call in [
        (errors.AlreadyExistsError, lambda: gfile.copy(at("a", "x.txt"), at("y"))),
        (errors.AlreadyExistsError, lambda: gfile.rename(at("a", "x.txt"), at("y"))),
        (errors.NotFoundError, lambda: gfile.mkdir(at("none", "deep"))),
        (errors.NotFoundError, lambda: gfile.remove(at("none"))),
        (errors.NotFoundError, lambda: gfile.listdir(at("none"))),
        (errors.NotFoundError, lambda: gfile.stat(at("none"))),
        (errors.NotFoundError, lambda: gfile.rmtree(at("none"))),
        (errors.NotFoundError, lambda: gfile.GFile(at("none")).read()),
    ]:
        with pytest.raises(error):
            call()
    gfile.rename(at("a", "x.txt"), at("y"), overwrite=True)
    gfile.rmtree(at("a"))
    assert not gfile.exists(at("a"))


def test_record_options_as_documented(tmp_path):
    """Compression by string, constant or object; other names are refused, and a writer is a context manager."""
    options = tf.io.TFRecordOptions
    kinds = tf.io.TFRecordCompressionType
    assert (kinds.NONE, kinds.ZLIB, kinds.GZIP) == (0, 1, 2)
    assert options.compression_type_map == {0: "", 1: "ZLIB", 2: "GZIP"}
    for given, name in (("GZIP", "GZIP"), (kinds.ZLIB, "ZLIB"), (options("GZIP", compression_level=9), "GZIP"), (None, "")):  # fmt: skip
        assert options.get_compression_type_string(given) == name
        path = str(tmp_path / "file")
        with tf.io.TFRecordWriter(path, given) as writer:
            writer.write(b"record")
            writer.flush()
        assert list(tf.io.tf_record_iterator(path, given)) == [b"record"]
    for call in (lambda: options("LZ4"), lambda: tf.io.TFRecordWriter(path, "LZ4"), lambda: tf.io.tf_record_iterator(path, "LZ4")):  # fmt: skip
        with pytest.raises(ValueError, match="LZ4"):
            call()
