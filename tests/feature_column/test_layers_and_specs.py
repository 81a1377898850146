"""DenseFeatures and SequenceFeatures, in graphs and eagerly, and parse specifications."""

from __future__ import annotations

import numpy as np
import pytest

import stoker as tf
import stoker.compat.v1 as tf1

fc = tf.feature_column


def sparse(rows, dtype=np.int64):
    """A SparseTensor [rows, longest] of lists."""
    places = [(i, j) for i, row in enumerate(rows) for j in range(len(row))]
    values = np.array([item for row in rows for item in row], object if dtype is str else dtype)
    return tf.SparseTensor(
        np.array(places, np.int64).reshape(-1, 2), values, [len(rows), max(map(len, rows), default=0)]
    )


@pytest.fixture(params=["eager", "graph"])
def value_of(request):
    """A function that gives the values of tensors, in eager mode or in a graph; the features are made inside of it."""
    if request.param == "eager":
        request.getfixturevalue("eager")
        return lambda make: tf.nest.map_structure(lambda x: x.numpy(), make())

    def run(make):
        with tf1.Graph().as_default(), tf1.Session() as session:
            made = make()
            session.run([tf1.global_variables_initializer(), tf1.tables_initializer()])
            return session.run(made)

    return run


def test_dense_features_puts_columns_side_by_side(value_of):
    """A layer of columns gives what they make, sorted by name, and reports each column's part."""

    def make():
        words = fc.categorical_column_with_vocabulary_list("w", ["a", "b"], num_oov_buckets=1)
        columns = [
            fc.numeric_column("n"),
            fc.embedding_column(words, 2, initializer=tf1.constant_initializer([[1, 2], [3, 4], [5, 6]])),
            fc.indicator_column(words),
        ]
        parts = {}
        layer = tf.keras.layers.DenseFeatures(columns)
        made = layer(
            {"n": tf.constant([[7.0], [8.0]]), "w": sparse([["a", "b"], ["zz"]], str)}, cols_to_output_tensors=parts
        )
        assert set(parts) == set(columns)
        assert [w.name for w in layer.weights] == ["dense_features/w_embedding/embedding_weights:0"]
        return made

    np.testing.assert_array_equal(value_of(make), [[7, 2, 3, 1, 1, 0], [8, 5, 6, 0, 0, 1]])


def test_sequence_features_gives_steps_and_lengths(value_of):
    """Each step of time has the columns side by side; lengths are those of the longest id."""

    def make():
        words = fc.sequence_categorical_column_with_identity("i", 3)
        columns = [
            fc.embedding_column(words, 1, initializer=tf1.constant_initializer([[1], [2], [3]])),
            fc.indicator_column(words),
            fc.sequence_numeric_column("n", shape=2, default_value=-1.0),
        ]
        features = {"i": sparse([[2], [0, 1], []]), "n": sparse([[1.0, 2], [3, 4, 5, 6], []], np.float32)}
        return tf.keras.experimental.SequenceFeatures(columns)(features)

    steps, lengths = value_of(make)
    np.testing.assert_array_equal(lengths, [1, 2, 0])
    np.testing.assert_array_equal(
        steps,
        [
            [[3, 0, 0, 1, 1, 2], [0, 0, 0, 0, -1, -1]],
            [[1, 1, 0, 0, 3, 4], [2, 0, 1, 0, 5, 6]],
            [[0, 0, 0, 0, -1, -1], [0, 0, 0, 0, -1, -1]],
        ],
    )


def test_sequences_and_plain_columns_are_not_mixed_up(value_of):
    """A sequence in DenseFeatures and a plain column in SequenceFeatures say which to use instead."""

    def make():
        features = {"i": sparse([[0]])}
        plain, steps = fc.categorical_column_with_identity("i", 3), fc.sequence_categorical_column_with_identity("i", 3)
        for wrap in (fc.indicator_column, lambda column: fc.embedding_column(column, 2)):
            with pytest.raises(ValueError, match="must not be of type SequenceCategoricalColumn"):
                tf.keras.layers.DenseFeatures([wrap(steps)])(features)
            with pytest.raises(ValueError, match="must be of type SequenceCategoricalColumn"):
                tf.keras.experimental.SequenceFeatures([wrap(plain)])(features)
        with pytest.raises(ValueError, match="SequenceDenseColumn"):
            tf.keras.experimental.SequenceFeatures([fc.numeric_column("n")])
        return tf.constant(0)

    value_of(make)


def test_columns_of_different_lengths_are_refused(eager):
    """All columns of a SequenceFeatures layer have the same lengths."""
    columns = [fc.sequence_numeric_column("a"), fc.sequence_numeric_column("b")]
    features = {"a": sparse([[1.0], [2.0, 3.0]], np.float32), "b": sparse([[1.0, 2.0], [3.0]], np.float32)}
    with pytest.raises(tf.errors.InvalidArgumentError, match="same lengths"):
        tf.keras.experimental.SequenceFeatures(columns)(features)


def test_a_tape_trains_dense_features(eager):
    """Eagerly, embeddings get gradients of the rows that were touched."""
    column = fc.embedding_column(
        fc.categorical_column_with_identity("i", 4), 1, combiner="sum", initializer=tf1.ones_initializer()
    )
    layer = tf.keras.layers.DenseFeatures([column])
    with tf.GradientTape() as tape:
        loss = tf.reduce_sum(layer({"i": sparse([[1, 1], [3]])}))
    gradient = tape.gradient(loss, layer.trainable_weights)[0]
    np.testing.assert_array_equal(tf.convert_to_tensor(gradient), [[0], [2], [0], [1]])


# ---- parse specifications ---------------------------------------------------------------------------------------


def test_make_parse_example_spec_merges_columns():
    """Numbers are parsed at fixed length, categories at any; wrappers and crosses name their sources."""
    age = fc.numeric_column("age", default_value=1.0)
    word = fc.categorical_column_with_hash_bucket("w", 5)
    columns = [
        age,
        fc.bucketized_column(age, [1.0]),
        fc.embedding_column(fc.weighted_categorical_column(word, "weight"), 2),
        fc.crossed_column(["s", fc.categorical_column_with_identity("i", 3)], 5),
    ]
    expected = {
        "age": tf.io.FixedLenFeature((1,), tf.float32, (1.0,)),
        "w": tf.io.VarLenFeature(tf.string),
        "weight": tf.io.VarLenFeature(tf.float32),
        "s": tf.io.VarLenFeature(tf.string),
        "i": tf.io.VarLenFeature(tf.int64),
    }
    assert fc.make_parse_example_spec(columns) == expected
    assert tf1.feature_column.make_parse_example_spec(columns) == expected


def test_make_parse_example_spec_refuses_conflicts():
    """Something that is not a column, and one feature in two forms, are ValueErrors."""
    with pytest.raises(ValueError, match="must be"):
        fc.make_parse_example_spec(["age"])
    with pytest.raises(ValueError, match="different parse_spec for key k"):
        fc.make_parse_example_spec([fc.numeric_column("k"), fc.categorical_column_with_identity("k", 3)])


def test_labels_and_weights_join_the_specs_of_estimators():
    """Classifiers read an int64 label, regressors float32 ones, with weights on request; neither may be a feature."""
    column = fc.numeric_column("x")
    spec = tf1.estimator.classifier_parse_example_spec([column], "y", weight_column="w")
    assert spec["y"] == tf.io.FixedLenFeature((1,), tf.int64, None)
    assert spec["w"] == tf.io.FixedLenFeature((1,), tf.float32, None)
    spec = tf1.estimator.regressor_parse_example_spec([column], "y", label_dimension=3, label_default=0.0)
    assert spec["y"] == tf.io.FixedLenFeature((3,), tf.float32, 0.0)
    with pytest.raises(ValueError, match="label should not be used as feature"):
        tf1.estimator.classifier_parse_example_spec([column], "x")
    with pytest.raises(ValueError, match="weight_column should not be used as feature"):
        tf1.estimator.regressor_parse_example_spec([column], "y", weight_column="x")
