"""Columns: what each makes of features, what it refuses, what it is called."""

from __future__ import annotations

import numpy as np
import pytest

import stoker
import stoker.compat.v1 as tf

fc = tf.feature_column


def sparse(rows, dtype=np.int64):
    """A SparseTensor [rows, longest] of lists."""
    places = [(i, j) for i, row in enumerate(rows) for j in range(len(row))]
    values = [item for row in rows for item in row]
    kind = object if dtype is str else dtype
    width = max(map(len, rows), default=0)
    return tf.SparseTensor(np.array(places, np.int64).reshape(-1, 2), np.array(values, kind), [len(rows), width])


def dense(features, columns, weights=None):
    """The value of `input_layer`; embeddings hold `weights`."""
    with tf.Session() as session:
        made = fc.input_layer(features, columns)
        session.run([tf.global_variables_initializer(), tf.tables_initializer()])
        for variable in tf.global_variables():
            variable.load(weights, session)
        return session.run(made)


@pytest.fixture(autouse=True)
def own_graph():
    with tf.Graph().as_default():
        yield


# ---- numbers ----------------------------------------------------------------------------------------------------


def test_numeric_columns_stand_in_the_order_of_their_names():
    """`input_layer` sorts columns by name, flattens each and applies normalizers."""
    features = {"b": tf.constant([[1, 2], [3, 4]]), "a": tf.constant([5.0, 6.0])}
    columns = [fc.numeric_column("b", shape=2), fc.numeric_column("a", normalizer_fn=lambda x: x * 10.0)]
    np.testing.assert_array_equal(dense(features, columns), [[50, 1, 2], [60, 3, 4]])


def test_a_value_on_a_boundary_is_in_the_upper_bucket():
    """Buckets are closed on the left; each element of the source is bucketized."""
    column = fc.bucketized_column(fc.numeric_column("x", shape=2), [0.0, 1.0])
    made = dense({"x": tf.constant([[-1.0, 0.0], [1.0, 0.5]])}, [column])
    np.testing.assert_array_equal(made, [[1, 0, 0, 0, 1, 0], [0, 0, 1, 0, 1, 0]])


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        ({"key": "x", "shape": (1.5,)}, TypeError),
        ({"key": "x", "shape": 0}, ValueError),
        ({"key": "x", "default_value": "a"}, TypeError),
        ({"key": "x", "shape": 2, "default_value": [1.0, 2.0, 3.0]}, ValueError),
        ({"key": "x", "dtype": tf.string}, ValueError),
        ({"key": "x", "normalizer_fn": 3}, TypeError),
        ({"key": 3}, ValueError),
    ],
)
def test_numeric_column_refuses(arguments, error):
    """Shapes, defaults, dtypes and normalizers that make no sense are refused."""
    with pytest.raises(error):
        fc.numeric_column(**arguments)


@pytest.mark.parametrize("boundaries", [[], [1.0, 0.5], [1.0, 1.0], "ab"[:0], 3])
def test_bucketized_column_refuses_boundaries_that_are_not_sorted(boundaries):
    """Boundaries are a sorted list."""
    with pytest.raises((ValueError, TypeError)):
        fc.bucketized_column(fc.numeric_column("x"), boundaries)


# ---- categories -------------------------------------------------------------------------------------------------


def test_hashes_are_those_of_tensorflow():
    """Strings hash to FarmHash fingerprints modulo the size, integers by their decimal text."""
    features = {"s": sparse([["a", "b"], ["word"]], str), "i": sparse([[101], [201]])}
    columns = [
        fc.indicator_column(fc.categorical_column_with_hash_bucket("i", 3, dtype=tf.int64)),
        fc.indicator_column(fc.categorical_column_with_hash_bucket("s", 4)),
    ]
    expected = np.zeros((2, 7))
    for row, text in ((0, "101"), (1, "201")):
        expected[row, _bucket(text, 3)] += 1
    for row, text in ((0, "a"), (0, "b"), (1, "word")):
        expected[row, 3 + _bucket(text, 4)] += 1
    np.testing.assert_array_equal(dense(features, columns), expected)


def _bucket(text, size):
    with tf.Graph().as_default(), tf.Session() as session:
        return int(session.run(tf.strings.to_hash_bucket_fast(text, size)))


def test_dense_categories_drop_minus_one_and_the_empty_string():
    """In dense features -1 and "" say that there is nothing."""
    features = {"i": tf.constant([[0, -1], [1, 1]]), "s": tf.constant([["a", ""], ["", "b"]])}
    columns = [
        fc.indicator_column(fc.categorical_column_with_identity("i", 2)),
        fc.indicator_column(fc.categorical_column_with_vocabulary_list("s", ["a", "b"])),
    ]
    np.testing.assert_array_equal(dense(features, columns), [[1, 0, 1, 0], [0, 2, 0, 1]])


@pytest.mark.parametrize("use", ["indicator", "embedding", "linear"])
@pytest.mark.parametrize("bad", [-2, 3])
def test_identities_out_of_range_are_refused_by_name(use, bad):
    """An id out of range is an error that names the column, unless there is a default."""
    column = fc.categorical_column_with_identity("some_key", 3)
    features = {"some_key": sparse([[0], [bad]])}
    with tf.Session() as session:
        if use == "linear":
            made = fc.linear_model(features, [column])
        else:
            made = fc.input_layer(
                features, [fc.indicator_column(column) if use == "indicator" else fc.embedding_column(column, 2)]
            )
        session.run(tf.global_variables_initializer())
        with pytest.raises(tf.errors.InvalidArgumentError, match="some_key"):
            session.run(made)


def test_identities_out_of_range_get_the_default():
    """With a default, ids out of range become it."""
    column = fc.categorical_column_with_identity("i", 3, default_value=1)
    np.testing.assert_array_equal(
        dense({"i": sparse([[0, 7], [-3]])}, [fc.indicator_column(column)]), [[1, 1, 0], [0, 1, 0]]
    )


def test_vocabularies_of_files_and_lists(tmp_path):
    """Ids are places in the vocabulary; what is not there is dropped, has the default, or a bucket of its own."""
    path = tmp_path / "words.txt"
    path.write_text("a\nb\nc\n")
    features = {"s": sparse([["a", "zz"], ["c", "b"]], str), "n": sparse([[5], [9]])}
    whole = fc.categorical_column_with_vocabulary_file("s", str(path))
    assert whole.num_buckets == 3
    np.testing.assert_array_equal(dense(features, [fc.indicator_column(whole)]), [[1, 0, 0], [0, 1, 1]])
    short = fc.categorical_column_with_vocabulary_file("s", str(path), 2, default_value=1)
    np.testing.assert_array_equal(dense(features, [fc.indicator_column(short)]), [[1, 1], [0, 2]])
    with_buckets = fc.categorical_column_with_vocabulary_list("n", [9, 8], num_oov_buckets=1)
    np.testing.assert_array_equal(dense(features, [fc.indicator_column(with_buckets)]), [[0, 0, 1], [1, 0, 0]])


def test_a_vocabulary_file_of_the_wrong_size_is_refused(tmp_path):
    """A size larger than the file fails when the table is filled; a missing file at once, when its lines are to be counted."""
    path = tmp_path / "words.txt"
    path.write_text("a\nb\n")
    fc.input_layer(
        {"s": sparse([["a"]], str)},
        [fc.indicator_column(fc.categorical_column_with_vocabulary_file("s", str(path), 9))],
    )
    with tf.Session() as session, pytest.raises(tf.errors.InvalidArgumentError, match="expected 9"):
        session.run(tf.tables_initializer())
    with pytest.raises(ValueError, match="in k does not exist"):
        fc.categorical_column_with_vocabulary_file("k", str(tmp_path / "none.txt"))


def test_the_two_generations_order_the_arguments_of_vocabulary_files_differently(tmp_path):
    """1.x: num_oov_buckets, default_value, dtype; 2.x: dtype, default_value, num_oov_buckets."""
    path = tmp_path / "words.txt"
    path.write_text("1\n2\n")
    old = fc.categorical_column_with_vocabulary_file("k", str(path), 2, 0, 1, tf.int64)
    new = stoker.feature_column.categorical_column_with_vocabulary_file("k", str(path), 2, stoker.int64, 1, 0)
    assert old == new


@pytest.mark.parametrize(
    "make",
    [
        lambda: fc.categorical_column_with_hash_bucket("k", 0),
        lambda: fc.categorical_column_with_hash_bucket("k", None),
        lambda: fc.categorical_column_with_hash_bucket("k", 5, dtype=tf.float32),
        lambda: fc.categorical_column_with_identity("k", 0),
        lambda: fc.categorical_column_with_identity("k", 3, default_value=3),
        lambda: fc.categorical_column_with_vocabulary_list("k", []),
        lambda: fc.categorical_column_with_vocabulary_list("k", ["a", "a"]),
        lambda: fc.categorical_column_with_vocabulary_list("k", ["a"], num_oov_buckets=1, default_value=0),
        lambda: fc.categorical_column_with_vocabulary_list("k", ["a"], num_oov_buckets=-1),
        lambda: fc.categorical_column_with_vocabulary_list("k", ["a"], dtype=tf.int64),
        lambda: fc.categorical_column_with_vocabulary_list("k", [1.5]),
        lambda: fc.weighted_categorical_column(fc.categorical_column_with_identity("k", 3), "w", dtype=tf.string),
        lambda: fc.crossed_column(["a"], 5),
        lambda: fc.crossed_column(["a", "b"], 0),
        lambda: fc.crossed_column(["a", fc.categorical_column_with_hash_bucket("k", 5)], 5),
        lambda: fc.crossed_column(["a", fc.numeric_column("k")], 5),
        lambda: fc.indicator_column(fc.numeric_column("k")),
        lambda: fc.embedding_column(fc.categorical_column_with_identity("k", 3), 0),
        lambda: fc.embedding_column(fc.categorical_column_with_identity("k", 3), 2, initializer="zeros"),
        lambda: fc.embedding_column(fc.categorical_column_with_identity("k", 3), 2, ckpt_to_load_from="x"),
    ],
)  # fmt: skip
def test_constructors_refuse_with_value_error(make):
    """What a column cannot be made of is a ValueError."""
    with pytest.raises(ValueError):
        make()


# ---- combinations -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("combiner", "expected"), [("sum", [3, 0, 4]), ("mean", [1.5, 0, 4]), ("sqrtn", [3 / np.sqrt(2), 0, 4])]
)
def test_embeddings_combine(combiner, expected):
    """The rows of an example's ids are summed, averaged, or divided by the root of their number; without ids they are zero."""
    column = fc.embedding_column(fc.categorical_column_with_identity("i", 3), 1, combiner=combiner)
    made = dense({"i": sparse([[0, 1], [], [2]])}, [column], weights=[[1.0], [2.0], [4.0]])
    np.testing.assert_allclose(made[:, 0], expected, rtol=1e-6)


def test_max_norm_clips_rows_before_they_are_combined():
    """Rows longer than max_norm are scaled down to it."""
    column = fc.embedding_column(fc.categorical_column_with_identity("i", 2), 2, combiner="sum", max_norm=1.0)
    made = dense({"i": sparse([[0], [0, 1]])}, [column], weights=[[3.0, 4.0], [0.5, 0.0]])
    np.testing.assert_allclose(made, [[0.6, 0.8], [1.1, 0.8]], rtol=1e-6)


def test_weights_multiply_rows_and_indicators():
    """A weighted column's weights multiply rows and stand in indicators; weights that are not positive drop out of means."""
    column = fc.weighted_categorical_column(fc.categorical_column_with_identity("i", 3), "w")
    features = {"i": sparse([[0, 1], [2, 2]]), "w": sparse([[0.5, 1.5], [-1.0, 2.0]], np.float32)}
    np.testing.assert_allclose(dense(features, [fc.indicator_column(column)]), [[0.5, 1.5, 0], [0, 0, 1]])
    made = dense(features, [fc.embedding_column(column, 1)], weights=[[1.0], [2.0], [4.0]])
    np.testing.assert_allclose(made, [[(0.5 + 3) / 2], [4]], rtol=1e-6)


def test_weights_of_another_number_than_ids_are_refused():
    """Each id has a weight."""
    column = fc.weighted_categorical_column(fc.categorical_column_with_identity("i", 3), "w")
    features = {"i": tf.constant([[0, -1]]), "w": tf.constant([[0.5, 0.5]])}
    with pytest.raises((tf.errors.InvalidArgumentError, ValueError)):
        dense(features, [fc.indicator_column(column)])


def test_crosses_are_named_by_their_parts_and_hash_every_combination():
    """The name joins the leaves in order; an example's ids are the product of its parts."""
    inner = fc.crossed_column(["a", "b"], 10)
    column = fc.crossed_column([inner, "c"], 10)
    assert column.name == "a_X_b_X_c"
    features = {key: sparse([["x", "y"], ["z"]], str) for key in "abc"}
    np.testing.assert_array_equal(dense(features, [fc.indicator_column(column)]).sum(1), [8, 1])


def test_linear_model_combines_as_documented():
    """The example of the documentation: with "mean", each column's weights are averaged over its ids."""
    first = fc.categorical_column_with_vocabulary_list("one", ["a", "b", "c"])
    second = fc.categorical_column_with_vocabulary_list("two", ["d", "e", "f"])
    features = {"one": sparse([["a", "b"], ["c"]], str), "two": sparse([["d"], ["e", "f", "f"]], str)}
    found = {}
    made = fc.linear_model(features, [first, second], sparse_combiner="mean", cols_to_vars=found)
    with tf.Session() as session:
        session.run([tf.global_variables_initializer(), tf.tables_initializer()])
        found[first][0].load([[1.0], [2.0], [3.0]], session)
        found[second][0].load([[10.0], [20.0], [30.0]], session)
        found["bias"][0].load([0.5], session)
        np.testing.assert_allclose(session.run(made), [[1.5 + 10 + 0.5], [3 + 80 / 3 + 0.5]], rtol=1e-6)


# ---- names and collections --------------------------------------------------------------------------------------


def test_variables_are_named_and_collected_as_in_tensorflow():
    """Names follow columns and scopes; variables join MODEL_VARIABLES and the given collections."""
    word = fc.categorical_column_with_hash_bucket("w", 10)
    features = {"w": sparse([["a"]], str), "p": tf.constant([[1.0]])}
    with tf.variable_scope("s"):
        fc.input_layer(features, [fc.embedding_column(word, 2)], weight_collections=["mine"], trainable=False)
    fc.linear_model(features, [word, fc.numeric_column("p")])
    fc.linear_model(features, [fc.numeric_column("p")])
    names = [variable.name for variable in tf.global_variables()]
    assert names == [
        "s/input_layer/w_embedding/embedding_weights:0", "linear_model/p/weights:0", "linear_model/w/weights:0",
        "linear_model/bias_weights:0", "linear_model_1/p_1/weights:0", "linear_model_1/bias_weights:0",
    ]  # fmt: skip
    assert [v.name for v in tf.get_collection("mine")] == names[:1]
    assert [v.name for v in tf.get_collection(tf.GraphKeys.MODEL_VARIABLES)] == names
    assert [v.name for v in tf.trainable_variables()] == names[1:]


def test_shared_embeddings_share_one_table():
    """1.x shares by collection, across layers; 2.x has one variable at the root."""
    columns = [fc.categorical_column_with_identity(key, 3) for key in "ba"]
    features = {"a": sparse([[0]]), "b": sparse([[1]])}
    old = fc.shared_embedding_columns(columns, 2)
    assert [column.name for column in old] == ["b_shared_embedding", "a_shared_embedding"]
    first, second = {}, {}
    fc.input_layer(features, old[:1], cols_to_vars=first)
    fc.input_layer(features, old[1:], cols_to_vars=second)
    assert (first, second) == ({old[0]: tf.global_variables()}, {old[1]: []})
    assert [v.name for v in tf.global_variables()] == ["input_layer/a_b_shared_embedding/embedding_weights:0"]
    new = stoker.feature_column.shared_embeddings(columns, 2)
    tf.keras.layers.DenseFeatures(new)(features)
    assert tf.global_variables()[-1].name == "a_b_shared_embedding:0"
    with pytest.raises(ValueError, match="SharedEmbeddingColumns are not supported"):
        fc.input_layer(features, new)
    with pytest.raises(ValueError, match="same number of buckets"):
        fc.shared_embedding_columns([columns[0], fc.categorical_column_with_identity("c", 4)], 2)


def test_embeddings_start_with_a_checkpoint(tmp_path):
    """ckpt_to_load_from and tensor_name_in_ckpt say what the table starts with."""
    with tf.Graph().as_default(), tf.Session() as session:
        tf.get_variable("old", initializer=np.arange(6, dtype=np.float32).reshape(3, 2))
        session.run(tf.global_variables_initializer())
        path = tf.train.Saver().save(session, str(tmp_path / "ckpt"))
    column = fc.embedding_column(
        fc.categorical_column_with_identity("i", 3), 2, ckpt_to_load_from=path, tensor_name_in_ckpt="old"
    )
    for partitioner in (None, tf.fixed_size_partitioner(2)):
        with tf.Graph().as_default(), tf.Session() as session:
            with tf.variable_scope("s", partitioner=partitioner):
                made = fc.input_layer({"i": sparse([[2], [0]])}, [column])
            session.run(tf.global_variables_initializer())
            np.testing.assert_array_equal(session.run(made), [[4, 5], [0, 1]])


# ---- what is refused --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("use", ["indicator", "linear", "embedding"])
def test_there_are_as_many_weights_as_ids(use):
    """A weight too many is refused, also where one id could be broadcast."""
    column = fc.weighted_categorical_column(fc.categorical_column_with_hash_bucket("w", 5), "amount")
    with tf.Graph().as_default(), tf.Session() as session:
        features = {"w": tf.constant([["a"], [""]]), "amount": tf.constant([[1.0], [2.0]])}
        if use == "linear":
            result = fc.linear_model(features, [column])
        else:
            result = fc.input_layer(
                features, [fc.indicator_column(column) if use == "indicator" else fc.embedding_column(column, 2)]
            )
        session.run([tf.global_variables_initializer(), tf.tables_initializer()])
        with pytest.raises(tf.errors.InvalidArgumentError, match="w_weighted_by_amount"):
            session.run(result)


def test_strings_are_not_numbers():
    """A numeric column of strings fails when it runs, at a node with the column's name."""
    with tf.Graph().as_default(), tf.Session() as session:
        layer = fc.input_layer({"price": tf.constant([["3"]])}, [fc.numeric_column("price")])
        with pytest.raises(tf.errors.UnimplementedError, match="price/Cast"):
            session.run(layer)


def test_bad_features_are_refused_by_name():
    """A missing feature, a sparse one for numbers, a ragged one, wrong dtypes and dimensions name the column."""
    word = fc.categorical_column_with_hash_bucket("w", 10)
    with pytest.raises(ValueError, match="Feature w is not in features dictionary"):
        fc.linear_model({}, [word])
    with pytest.raises(ValueError, match=r"SparseTensor is not supported\. key: p"):
        fc.input_layer({"p": sparse([[1.0]], np.float32)}, [fc.numeric_column("p")])
    with pytest.raises(ValueError, match="key: w"):
        fc.linear_model({"w": sparse([[1]])}, [word])
    with pytest.raises(TypeError, match="key: p"):
        fc.input_layer({"p": tf.ragged.constant([[1.0], [1.0, 2.0]])}, [fc.numeric_column("p")])
    with pytest.raises(TypeError, match="key: w"):
        fc.linear_model({"w": tf.ragged.constant([["a"], ["b", "c"]])}, [word])
    with pytest.raises(ValueError, match="w_embedding"):
        fc.input_layer({"w": tf.constant([[["a", "b"], ["c", "d"]]])}, [fc.embedding_column(word, 2)])
    with pytest.raises(ValueError, match="column: p_bucketized"):
        fc.linear_model({"p": tf.ones([1, 2, 2])}, [fc.bucketized_column(fc.numeric_column("p"), [0.0])])
    with pytest.raises(ValueError, match="cannot have rank 0"):
        fc.input_layer({"p": tf.constant(1.0)}, [fc.numeric_column("p")])
    with pytest.raises(ValueError, match="must be a _DenseColumn"):
        fc.input_layer({"w": sparse([["a"]], str)}, [word])
    with pytest.raises(ValueError, match="Duplicate feature column name"):
        fc.linear_model({"w": sparse([["a"]], str)}, [word, fc.numeric_column("w")])
    with pytest.raises(ValueError, match="Batch size"):
        fc.input_layer({"a": tf.zeros([2, 1]), "b": tf.zeros([3, 1])}, [fc.numeric_column("a"), fc.numeric_column("b")])


# ---- columns of users -------------------------------------------------------------------------------------------


def test_a_column_of_a_user_takes_part():
    """A subclass of the public base class works in DenseFeatures, with a variable of its own."""
    base = stoker.__internal__.feature_column.DenseColumn

    class Scaled(base):
        name = "scaled"
        parse_example_spec = {"x": tf.FixedLenFeature((1,), tf.float32)}
        variable_shape = tf.TensorShape([1])
        parents = ["x"]
        _is_v2_column = True

        def create_state(self, state_manager):
            state_manager.create_variable(self, "scale", (1,), tf.float32, initializer=tf.constant_initializer(3.0))

        def transform_feature(self, transformation_cache, state_manager):
            return transformation_cache.get("x", state_manager)

        def get_dense_tensor(self, transformation_cache, state_manager):
            return transformation_cache.get(self, state_manager) * state_manager.get_variable(self, "scale")

    layer = tf.keras.layers.DenseFeatures([Scaled()])
    made = layer({"x": tf.constant([1.0, 2.0])})
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        np.testing.assert_array_equal(session.run(made), [[3], [6]])
    assert [v.name for v in layer.trainable_weights] == ["dense_features/scaled/scale:0"]
