"""Columns as plain values and back, vocabularies of records, and the internal modules that programs import."""

from __future__ import annotations

import json

import numpy as np
import pytest

import stoker
import stoker.compat.v1 as tf
from stoker._src.feature_column import configs

fc = stoker.feature_column


def normalized(x):
    """A normalizer with a name."""
    return x * 2


IDENTITY = {
    "class_name": "IdentityCategoricalColumn",
    "config": {"key": "i", "number_buckets": 3, "default_value": None},
}
# What TensorFlow 2.21's get_config returns for the same columns.
CONFIGS = [
    (
        lambda: fc.numeric_column("n", shape=[2], default_value=1.0),
        {"key": "n", "shape": (2,), "default_value": (1.0, 1.0), "dtype": "float32", "normalizer_fn": None},
    ),
    (
        lambda: fc.bucketized_column(fc.numeric_column("n"), [1.0, 2.0]),
        {
            "source_column": {
                "class_name": "NumericColumn",
                "config": {"key": "n", "shape": (1,), "default_value": None, "dtype": "float32", "normalizer_fn": None},
            },
            "boundaries": (1.0, 2.0),
        },
    ),
    (
        lambda: fc.categorical_column_with_hash_bucket("h", 5),
        {"key": "h", "hash_bucket_size": 5, "dtype": "string"},
    ),
    (lambda: fc.categorical_column_with_identity("i", 3), IDENTITY["config"]),
    (
        lambda: fc.categorical_column_with_vocabulary_file("x", "words.tfrecord.gz", vocabulary_size=3),
        {
            "key": "x",
            "vocabulary_file": "words.tfrecord.gz",
            "vocabulary_size": 3,
            "num_oov_buckets": 0,
            "dtype": "string",
            "default_value": -1,
            "file_format": "tfrecord_gzip",
        },
    ),
    (
        lambda: fc.categorical_column_with_vocabulary_list("l", ["a", "b"]),
        {"key": "l", "vocabulary_list": ("a", "b"), "dtype": "string", "default_value": -1, "num_oov_buckets": 0},
    ),
    (
        lambda: fc.weighted_categorical_column(fc.categorical_column_with_identity("i", 3), "w"),
        {"categorical_column": IDENTITY, "weight_feature_key": "w", "dtype": "float32"},
    ),
    (lambda: fc.crossed_column(["a", "b"], 5), {"keys": ("a", "b"), "hash_bucket_size": 5, "hash_key": None}),
    (lambda: fc.indicator_column(fc.categorical_column_with_identity("i", 3)), {"categorical_column": IDENTITY}),
    (
        lambda: fc.embedding_column(fc.categorical_column_with_identity("i", 3), 2),
        {
            "categorical_column": IDENTITY,
            "dimension": 2,
            "combiner": "mean",
            "initializer": {
                "class_name": "TruncatedNormal",
                "config": {"mean": 0.0, "stddev": 0.7071067811865475, "seed": None, "dtype": "float32"},
            },
            "ckpt_to_load_from": None,
            "tensor_name_in_ckpt": None,
            "max_norm": None,
            "trainable": True,
            "use_safe_embedding_lookup": True,
        },
    ),
    (
        lambda: fc.sequence_numeric_column("s"),
        {"key": "s", "shape": (1,), "default_value": 0.0, "dtype": "float32", "normalizer_fn": None},
    ),
    (lambda: fc.sequence_categorical_column_with_identity("i", 3), {"categorical_column": IDENTITY}),
]


@pytest.mark.parametrize(("make", "config"), CONFIGS, ids=[str(i) for i in range(len(CONFIGS))])
def test_a_column_has_the_config_of_tensorflow_and_comes_back(make, config):
    """The config equals TensorFlow's; a column made from it, also after JSON, equals the first one."""
    column = make()
    assert column.get_config() == config
    written = json.loads(json.dumps(configs.serialize_feature_column(column)))
    for made in (type(column).from_config(config), configs.deserialize_feature_column(written)):
        if "initializer" in config:
            assert made.initializer.get_config() == config["initializer"]["config"]
            made = made._replace(initializer=column.initializer)
        assert made == column
        assert type(made) is type(column)


def test_functions_and_classes_are_found_by_name():
    """A normalizer comes back from custom_objects, and so does a column of the user's own class."""
    column = fc.numeric_column("n", normalizer_fn=normalized)
    written = configs.serialize_feature_column(column)
    assert written["config"]["normalizer_fn"] == "normalized"
    assert configs.deserialize_feature_column(written, {"normalized": normalized}) == column
    with pytest.raises(ValueError, match="normalized"):
        configs.deserialize_feature_column(written)

    class Own(type(column)):
        """A column of a user."""

        __slots__ = ()

    own = {"class_name": "Mine", "config": fc.numeric_column("n").get_config()}
    assert type(configs.deserialize_feature_column(own, {"Mine": Own})) is Own


def test_configs_that_fit_no_column_are_refused():
    """An unknown class, fields that are missing or too many, and things that are no columns are ValueErrors."""
    with pytest.raises(ValueError, match="Unknown feature_column_v2: Nope"):
        configs.deserialize_feature_column({"class_name": "Nope", "config": {}})
    with pytest.raises(ValueError, match="expected keys"):
        configs.deserialize_feature_column({"class_name": "NumericColumn", "config": {"key": "n"}})
    with pytest.raises(ValueError, match="is not a FeatureColumn"):
        configs.serialize_feature_column(3)
    assert configs.serialize_feature_column("name") == configs.deserialize_feature_column("name") == "name"


def test_columns_of_one_name_become_one_column():
    """The parts of several columns are shared again."""
    words = fc.categorical_column_with_hash_bucket("w", 7)
    written = configs.serialize_feature_columns([fc.indicator_column(words), fc.embedding_column(words, 2)])
    one, other = configs.deserialize_feature_columns(written)
    assert one.categorical_column is other.categorical_column


@pytest.mark.parametrize("layer", ["DenseFeatures", "SequenceFeatures"])
def test_a_layer_comes_back_from_its_config(layer):
    """A layer's config holds its columns, and a layer made from it gives columns that are equal."""
    kind = {"DenseFeatures": tf.keras.layers.DenseFeatures, "SequenceFeatures": tf.keras.experimental.SequenceFeatures}
    column = fc.numeric_column("n") if layer == "DenseFeatures" else fc.sequence_numeric_column("n")
    made = kind[layer]([column], name="columns", trainable=False)
    config = made.get_config()
    assert config == {
        "name": "columns",
        "trainable": False,
        "dtype": "float32",
        "feature_columns": [configs.serialize_feature_column(column)],
        "partitioner": None,
    }
    again = kind[layer].from_config(json.loads(json.dumps(config)))
    assert again.name == "columns"
    assert again._feature_columns == [column]


# ---- vocabularies of records --------------------------------------------------------------------------------------


@pytest.fixture(name="records")
def written_records(tmp_path):
    """A compressed TFRecord file of three categories."""
    path = str(tmp_path / "words.tfrecord.gz")
    with stoker.io.TFRecordWriter(path, "GZIP") as writer:
        for word in (b"a", b"b", b"c"):
            writer.write(word)
    return path


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({}, [[1, 0, 1], [0, 1, 0]]),
        ({"vocabulary_size": 2}, [[1, 0], [0, 1]]),
        ({"default_value": 1}, [[1, 0, 1], [0, 2, 0]]),
        ({"num_oov_buckets": 2}, [[1, 0, 1, 0, 0], [0, 1, 0, 1, 0]]),
        ({"file_format": "tfrecord_gzip", "vocabulary_size": 3}, [[1, 0, 1], [0, 1, 0]]),
    ],
)
def test_a_vocabulary_may_be_compressed_records(records, options, expected):
    """The ids are the numbers of records, as in TensorFlow 2.21."""
    column = fc.categorical_column_with_vocabulary_file("x", records, **options)
    with tf.Graph().as_default(), tf.Session() as session:
        made = tf.feature_column.input_layer(
            {"x": tf.constant([["a", "c"], ["zz", "b"]])}, [fc.indicator_column(column)]
        )
        session.run(tf.tables_initializer())
        assert session.run(made).tolist() == expected


def test_a_vocabulary_of_too_few_records_is_refused(records):
    """A size above the number of records is a FailedPreconditionError, as in TensorFlow."""
    column = fc.categorical_column_with_vocabulary_file("x", records, vocabulary_size=5)
    with tf.Graph().as_default(), pytest.raises(tf.errors.FailedPreconditionError, match="3 records"):
        tf.feature_column.input_layer({"x": tf.constant([["a"]])}, [fc.indicator_column(column)])


# ---- warm starts --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("backup", [tf.constant_initializer(5.0), lambda shape: tf.fill(shape, 5.0)])
def test_an_embedding_is_warm_started_by_vocabulary(tmp_path, backup):
    """Rows of an old table go to the same categories of a vocabulary in another order; other rows are initialized."""
    old_words, new_words = tmp_path / "old.txt", tmp_path / "new.txt"
    old_words.write_text("a\nb\nc\n")
    new_words.write_text("c\nnew\na\n")
    trained = np.arange(6, dtype=np.float32).reshape(3, 2)

    def table(path, size):
        words = tf.feature_column.categorical_column_with_vocabulary_file("w", str(path), size)
        column = tf.feature_column.embedding_column(words, 2, initializer=tf.constant_initializer(9.0))
        tf.feature_column.input_layer({"w": tf.constant([["a"]])}, [column])
        return tf.global_variables()[0]

    with tf.Graph().as_default(), tf.Session() as session:
        variable = table(old_words, 3)
        session.run(tf.global_variables_initializer())
        variable.load(trained, session)
        saved = tf.train.Saver().save(session, str(tmp_path / "model"))
    with tf.Graph().as_default(), tf.Session() as session:
        variable = table(new_words, 3)
        info = tf.train.VocabInfo(
            new_vocab=str(new_words),
            new_vocab_size=3,
            num_oov_buckets=0,
            old_vocab=str(old_words),
            backup_initializer=backup,
        )
        tf.train.warm_start(saved, ".*", {variable.op.name: info})
        session.run([tf.global_variables_initializer(), tf.tables_initializer()])
        assert session.run(variable).tolist() == [[4, 5], [5, 5], [0, 1]]
