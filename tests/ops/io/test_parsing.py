"""parse_example and its relatives, through the public names."""

import numpy as np
import pytest

import stoker as tf2
import stoker.compat.v1 as tf
from stoker._src.graph import context

Features, Feature = tf.train.Features, tf.train.Feature


NO_FLOATS, NO_TEXTS = Feature(float_list=tf.train.FloatList()), Feature(bytes_list=tf.train.BytesList())


def _feature(values):
    if isinstance(values, Feature):
        return values
    if values and isinstance(values[0], (bytes, str)):
        return Feature(bytes_list=tf.train.BytesList(value=[v.encode() if isinstance(v, str) else v for v in values]))
    if values and isinstance(values[0], float):
        return Feature(float_list=tf.train.FloatList(value=values))
    return Feature(int64_list=tf.train.Int64List(value=values))


def example(**features):
    return tf.train.Example(
        features=Features(feature={k: _feature(v) for k, v in features.items()})
    ).SerializeToString()


def sequence(context_features, lists):
    return tf.train.SequenceExample(
        context=Features(feature={k: _feature(v) for k, v in context_features.items()}),
        feature_lists=tf.train.FeatureLists(
            feature_list={k: tf.train.FeatureList(feature=[_feature(v) for v in steps]) for k, steps in lists.items()}
        ),
    ).SerializeToString()


ROWS = [example(x=[1.5, 2.5], n=[3], t=["a", "b"]), example(x=[0.5, 0.25], n=[4]), example(x=[1.0, 2.0], t=["c"])]
SPEC = {
    "x": tf.io.FixedLenFeature([2], tf.float32),
    "n": tf.io.FixedLenFeature([], tf.int64, default_value=-1),
    "t": tf.io.VarLenFeature(tf.string),
}


def _check(found):
    assert found["x"].tolist() == [[1.5, 2.5], [0.5, 0.25], [1.0, 2.0]]
    assert found["n"].tolist() == [3, 4, -1]
    assert found["t"].indices.tolist() == [[0, 0], [0, 1], [2, 0]]
    assert found["t"].values.tolist() == [b"a", b"b", b"c"]
    assert found["t"].dense_shape.tolist() == [3, 2]


def test_a_batch_of_examples():
    """Dense features, defaults for missing ones, and sparse features, in graph mode."""
    batch = tf.placeholder(tf.string, [None])
    parsed = tf.parse_example(batch, SPEC)
    assert parsed["x"].shape.as_list() == [None, 2]
    assert parsed["n"].shape.as_list() == [None]
    assert parsed["t"].shape.as_list() == [None, None]
    assert parsed["n"].name == "ParseExample/ParseExampleV2:3"
    with tf.Session() as session:
        _check(session.run(parsed, {batch: ROWS}))
        assert session.run(parsed, {batch: np.array([], dtype=object)})["x"].shape == (0, 2)


def test_a_batch_of_examples_in_eager_mode(eager):
    """The same at once, under the 2.x signature."""
    found = tf2.io.parse_example(ROWS, SPEC, example_names=["r0", "r1", "r2"])
    _check({key: value.numpy() for key, value in found.items()})


def test_one_example():
    """A scalar gives tensors without a batch dimension; sparse indices lose their first column."""
    parsed = tf.parse_single_example(ROWS[0], SPEC)
    assert parsed["x"].shape.as_list() == [2]
    assert parsed["t"].dense_shape.shape.as_list() == [1]
    with tf.Session() as session:
        found = session.run(parsed)
    assert found["n"] == 3
    assert found["t"].indices.tolist() == [[0], [1]]
    assert found["t"].dense_shape.tolist() == [2]


def test_one_example_of_unknown_rank():
    """A placeholder without a shape is taken for a scalar, which the run checks."""
    text = tf.placeholder(tf.string)
    parsed = tf.parse_single_example(text, {"n": tf.FixedLenFeature([], tf.int64)})
    with tf.Session() as session:
        assert session.run(parsed, {text: ROWS[0]})["n"] == 3
        with pytest.raises(tf.errors.InvalidArgumentError):
            session.run(parsed, {text: ROWS[:2]})
    with pytest.raises(ValueError, match="must be a scalar"):
        tf.parse_single_example(ROWS, SPEC)


def test_steps_are_padded(eager):
    """FixedLenSequenceFeature gives one row per example, filled up with the default."""
    rows = [example(v=[1, 2, 3, 4]), example(), example(v=[5, 6])]
    feature = tf.io.FixedLenSequenceFeature([2], tf.int64, allow_missing=True)
    found = tf2.io.parse_example(rows, {"v": feature})["v"].numpy()
    assert found.tolist() == [[[1, 2], [3, 4]], [[0, 0], [0, 0]], [[5, 6], [0, 0]]]
    found = tf2.io.parse_example(rows, {"v": feature._replace(default_value=9)})["v"].numpy()
    assert found[1].tolist() == [[9, 9], [9, 9]]


def test_sparse_features_that_are_sorted(eager):
    """Lists of indices and values become one SparseTensor of the given size."""
    rows = [example(i=[1, 7], v=[1.5, 2.5]), example(i=[], v=NO_FLOATS), example(i=[0], v=[4.5])]
    found = tf2.io.parse_example(rows, {"s": tf.io.SparseFeature("i", "v", tf.float32, 10, already_sorted=True)})["s"]
    assert found.indices.numpy().tolist() == [[0, 1], [0, 7], [2, 0]]
    assert found.values.numpy().tolist() == [1.5, 2.5, 4.5]
    assert found.dense_shape.numpy().tolist() == [3, 10]


def test_sparse_features_of_several_dimensions(eager):
    """A list of index keys gives one dimension each; parts asked for by themselves are there too."""
    rows = [example(i=[1, 2], j=[3, 0], v=["a", "b"])]
    spec = {
        "s": tf.io.SparseFeature(["i", "j"], "v", tf.string, [4, 5], already_sorted=True),
        "v": tf.io.VarLenFeature(tf.string),
    }
    found = tf2.io.parse_example(rows, spec)
    assert sorted(found) == ["s", "v"]
    assert found["s"].indices.numpy().tolist() == [[0, 1, 3], [0, 2, 0]]
    assert found["s"].dense_shape.numpy().tolist() == [1, 4, 5]


@pytest.mark.parametrize(
    ("feature", "error", "message"),
    [
        (3, ValueError, "Unsupported int 3"),
        (tf.io.FixedLenFeature([], None), ValueError, "Missing type"),
        (tf.io.FixedLenFeature(None, tf.int64), ValueError, "Missing shape"),
        (tf.io.FixedLenFeature([None, 2], tf.float32), ValueError, "First dimension"),
        (tf.io.FixedLenFeature([2, None], tf.float32), ValueError, "All dimensions"),
        (tf.io.FixedLenFeature([2], tf.float32, [1.0]), ValueError, "Cannot reshape"),
        (tf.io.FixedLenFeature([], tf.int32), TypeError, "int32"),
        (tf.io.VarLenFeature(None), ValueError, "Missing type"),
        (tf.io.FixedLenSequenceFeature([], tf.int64), ValueError, "allow_missing"),
        (tf.io.SparseFeature("", "v", tf.float32, 3), ValueError, "Missing index_key"),
        (tf.io.SparseFeature("i", "", tf.float32, 3), ValueError, "Missing value_key"),
        (tf.io.SparseFeature("i", "v", None, 3), ValueError, "Missing type"),
        (tf.io.SparseFeature("i", "v", tf.float32, [3]), TypeError, "vocab_size"),
        (tf.io.SparseFeature(["i", "j"], "v", tf.float32, [3]), ValueError, "equal lengths"),
    ],
)
def test_specifications_are_checked_at_once(feature, error, message):
    """A feature that is not complete is refused when the op is made."""
    with pytest.raises(error, match=message):
        tf.parse_example(tf.placeholder(tf.string, [None]), {"a": feature})


def test_specifications_must_fit_each_other():
    """No features, one key of two types, or dense and sparse under one key are refused."""
    batch = tf.placeholder(tf.string, [None])
    with pytest.raises(ValueError, match="features"):
        tf.parse_example(batch, {})
    sparse = tf.io.SparseFeature("i", "a", tf.float32, 3)
    with pytest.raises(ValueError, match="Conflicting type"):
        tf.parse_example(batch, {"a": tf.io.VarLenFeature(tf.int64), "b": sparse})
    with pytest.raises(ValueError, match="must not intersect"):
        tf.parse_example(batch, {"a": tf.io.FixedLenFeature([], tf.float32), "b": sparse})


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ([b"\x0a\xff"], "Could not parse example input"),
        ([example(n=[1])], r"Feature: x \(data type: float\) is required"),
        ([example(x=[1.0], n=[1])], "Number of float values != expected"),
        ([example(x=[1, 2], n=[1])], "Data types don't match"),
    ],
)
def test_rows_that_do_not_fit_are_refused(rows, message):
    """Malformed rows, missing features, other numbers and kinds of values name the row and the feature."""
    batch = tf.placeholder(tf.string, [None])
    parsed = tf.parse_example(batch, SPEC)
    with tf.Session() as session, pytest.raises(tf.errors.InvalidArgumentError, match=message):
        session.run(parsed, {batch: rows})


def test_example_names_must_be_as_many(eager):
    """Names stand for the rows in messages; another number of them is refused."""
    with pytest.raises(tf.errors.InvalidArgumentError, match="row seven"):
        tf2.io.parse_example([example(n=[1])], SPEC, example_names=["row seven"])
    with pytest.raises(tf.errors.InvalidArgumentError, match="names"):
        tf2.io.parse_example(ROWS, SPEC, example_names=["one"])


SEQUENCES = [
    sequence({"c": [7]}, {"l": [[1.0, 2.0], [3.0, 4.0]], "s": [["a"], NO_TEXTS, ["b", "c"]]}),
    sequence({"c": [8]}, {"l": [[5.0, 6.0]]}),
]
CONTEXT = {"c": tf.io.FixedLenFeature([], tf.int64)}
LISTS = {
    "l": tf.io.FixedLenSequenceFeature([2], tf.float32),
    "m": tf.io.FixedLenSequenceFeature([], tf.int64, allow_missing=True),
    "s": tf.io.VarLenFeature(tf.string),
}


def test_a_batch_of_sequence_examples(eager):
    """Context, padded lists with their lengths, and sparse lists of rank 3."""
    context_found, lists, lengths = tf2.io.parse_sequence_example(SEQUENCES, CONTEXT, LISTS)
    assert context_found["c"].numpy().tolist() == [7, 8]
    assert lists["l"].numpy().tolist() == [[[1, 2], [3, 4]], [[5, 6], [0, 0]]]
    assert lists["m"].numpy().shape == (2, 0)
    assert lengths["l"].numpy().tolist() == [2, 1]
    assert lengths["m"].numpy().tolist() == [0, 0]
    assert lists["s"].indices.numpy().tolist() == [[0, 0, 0], [0, 2, 0], [0, 2, 1]]
    assert lists["s"].dense_shape.numpy().tolist() == [2, 3, 2]


def test_one_sequence_example():
    """A scalar gives (context, lists) without a batch dimension."""
    found_context, lists = tf.parse_single_sequence_example(SEQUENCES[0], CONTEXT, LISTS)
    assert lists["l"].shape.as_list() == [None, 2]
    with tf.Session() as session:
        contexts, values = session.run([found_context, lists])
    assert contexts["c"] == 7
    assert values["l"].tolist() == [[1, 2], [3, 4]]
    assert values["s"].indices.tolist() == [[0, 0], [2, 0], [2, 1]]


def test_sequence_specifications_are_checked():
    """At least one feature, and the right classes in the right place."""
    with pytest.raises(ValueError, match="at least one"):
        tf.io.parse_sequence_example(SEQUENCES)
    with pytest.raises(ValueError, match="Unsupported FixedLenSequenceFeature"):
        tf.io.parse_sequence_example(SEQUENCES, {"a": LISTS["l"]})
    with pytest.raises(ValueError, match="Unsupported FixedLenFeature"):
        tf.parse_single_sequence_example(SEQUENCES[0], None, CONTEXT)
    with pytest.raises(ValueError, match="must be None"):
        tf.io.parse_sequence_example(SEQUENCES, None, {"l": LISTS["l"]._replace(default_value=1.0)})


def test_a_required_list_must_be_there(eager):
    """A list that may not be missing, and is, is refused with its name."""
    with pytest.raises(tf.errors.InvalidArgumentError, match="'l' is required"):
        tf2.io.parse_sequence_example([sequence({}, {})], None, {"l": LISTS["l"]})


def test_parsing_ops_survive_a_graph_def():
    """Keys are constants of the graph: a graph written and read back parses the same."""
    with tf.Graph().as_default() as graph:
        batch = tf.placeholder(tf.string, [None], name="batch")
        parsed = tf.parse_example(batch, SPEC)
        names = [parsed["x"].name, parsed["n"].name]
    with tf.Graph().as_default(), tf.Session() as session:
        found = tf.import_graph_def(graph.as_graph_def(), return_elements=names, name="")
        assert session.run(found, {"batch:0": ROWS})[1].tolist() == [3, 4, -1]


def test_the_older_ops_parse_the_same():
    """ParseExample and ParseSingleExample, which graphs of TensorFlow 1.15 hold, give what V2 gives."""
    from stoker._src.ops.io import parsing

    with context.enter_eager():
        old = parsing.PARSE_EXAMPLE(
            ROWS, np.array([], object), [b"t"], [b"n", b"x"], [np.int64(-1), np.zeros(0, "f4")],
            sparse_types=[tf.string], dense_shapes=[[], [2]],
        )  # fmt: skip
        assert old.dense_values[0].numpy().tolist() == [3, 4, -1]
        assert old.sparse_values[0].numpy().tolist() == [b"a", b"b", b"c"]
        one = parsing.PARSE_SINGLE_EXAMPLE(
            ROWS[0], [np.zeros(0, "f4")], num_sparse=1, sparse_keys=["t"], dense_keys=["x"], sparse_types=[tf.string],
            dense_shapes=[[2]],
        )  # fmt: skip
        assert one.dense_values[0].numpy().tolist() == [1.5, 2.5]
        assert one.sparse_indices[0].numpy().tolist() == [[0], [1]]


def test_a_uniform_last_partition_makes_no_ragged_level(eager):
    """Rows of one length below everything ragged are a dimension of the flat values."""
    numbers = tf.train.Feature(int64_list=tf.train.Int64List(value=[1, 2, 3, 4]))
    example = tf.train.Example(features=tf.train.Features(feature={"a": numbers})).SerializeToString()
    uniform = tf.io.RaggedFeature.UniformRowLength(2)
    feature = tf.io.RaggedFeature(tf.int64, value_key="a", partitions=[uniform])
    found = tf.io.parse_example([example, b""], {"r": feature})["r"]
    assert found.ragged_rank == 1
    assert found.flat_values.numpy().tolist() == [[1, 2], [3, 4]]
    assert found.to_list() == [[[1, 2], [3, 4]], []]


def test_values_are_in_the_rows_of_their_ids(eager):
    """A SparseFeature takes its rows from the ids; another number of values than of ids is the data's fault."""
    feature = {"s": tf2.io.SparseFeature("i", "v", tf2.string, 5)}
    rows = [example(i=[3], v=["x", "y"]), example(i=[1, 0], v=["z"])]
    found = tf2.io.parse_example(rows, feature)["s"]
    assert found.indices.numpy().tolist() == [[0, 3], [1, 0], [1, 1]]
    assert found.values.numpy().tolist() == [b"x", b"z", b"y"]
    with pytest.raises(tf2.errors.InvalidArgumentError, match="As many values as ids"):
        tf2.io.parse_single_example(rows[0], feature)


def test_ragged_features_need_a_known_rank():
    """Whether there is a batch decides what a RaggedFeature becomes."""
    partition = tf2.io.RaggedFeature.UniformRowLength(2)
    assert repr(partition) == "UniformRowLength(length=2)"
    feature = {"n": tf2.io.RaggedFeature(tf2.int64, partitions=[partition])}
    for parse in (tf.io.parse_example, tf.io.parse_sequence_example):
        with pytest.raises(ValueError, match="statically-known rank"):
            parse(tf.placeholder(tf.string), feature)


def test_nodes_of_a_named_sequence_example():
    """One name for a single SequenceExample; nodes are named as TensorFlow names them."""
    feature = {"n": tf.io.FixedLenFeature([], tf.int64)}
    row = sequence({"n": [3]}, {})
    found = tf.io.parse_single_sequence_example(row, feature, name="P")[0]["n"]
    assert found.name == "P/P_1/P:0"
    with tf.Session() as session, pytest.raises(tf.errors.InvalidArgumentError, match="one debug_name"):
        session.run(tf.io.parse_single_sequence_example(row, feature, example_name=["a", "b"])[0])
