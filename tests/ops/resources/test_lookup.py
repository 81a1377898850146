"""Lookup tables: filled, looked up, changed, in graphs and in eager mode."""

import numpy as np
import pytest

import stoker as tf2
import stoker.compat.v1 as tf

lookup = tf.contrib.lookup


def test_static_table_must_be_initialized():
    """Before tables_initializer a lookup is a FailedPreconditionError; after it keys have values, others the default."""
    with tf.Graph().as_default() as graph, tf.Session() as session:
        table = tf.lookup.StaticHashTable(tf.lookup.KeyValueTensorInitializer(["a", "b"], [1, 2]), -1)
        found, size = table.lookup(tf.constant([["a", "z"]])), table.size()
        assert found.shape.as_list() == [1, 2] and table.name == "hash_table"
        names = [op.name for op in graph.get_operations()]
        assert "hash_table_Lookup/LookupTableFindV2" in names and "key_value_init/LookupTableImportV2" in names
        assert tf.get_collection(tf.GraphKeys.TABLE_INITIALIZERS) == [table.initializer]
        with pytest.raises(tf.errors.FailedPreconditionError, match="Table not initialized"):
            session.run(found)
        session.run(tf.tables_initializer())
        session.run(tf.tables_initializer())
        assert session.run([found, size])[0].tolist() == [[1, -1]] and session.run(size) == 2
        keys, values = session.run(table.export())
        assert dict(zip(keys, values)) == {b"a": 1, b"b": 2}


def test_tables_belong_to_sessions():
    """Another session has its own, unfilled table."""
    with tf.Graph().as_default():
        table = tf.lookup.StaticHashTable(tf.lookup.KeyValueTensorInitializer(["a"], [1]), -1)
        found, init = table.lookup(tf.constant(["a"])), tf.tables_initializer()
        with tf.Session() as first, tf.Session() as second:
            first.run(init)
            assert first.run(found).tolist() == [1]
            with pytest.raises(tf.errors.FailedPreconditionError):
                second.run(found)


def test_a_key_with_two_values_is_refused():
    """An initializer whose keys contradict each other fails; one that repeats itself does not."""
    with tf.Graph().as_default(), tf.Session() as session:
        bad = tf.lookup.StaticHashTable(tf.lookup.KeyValueTensorInitializer(["a", "a"], [1, 2]), -1)
        with pytest.raises(tf.errors.FailedPreconditionError, match="different value for same key"):
            session.run(bad.initializer)
        good = tf.lookup.StaticHashTable(tf.lookup.KeyValueTensorInitializer(["a", "a"], [1, 1]), -1)
        session.run(good.initializer)
        assert session.run(good.size()) == 1


def test_keys_of_another_dtype_are_a_type_error(eager):
    """Looking up integers in a table of strings is refused before anything runs."""
    table = tf2.lookup.StaticHashTable(tf2.lookup.KeyValueTensorInitializer(["a"], [1]), -1)
    with pytest.raises(TypeError, match="Dtype of argument `keys` must be string"):
        table.lookup(tf2.constant([1]))


@pytest.fixture
def vocabulary(tmp_path):
    path = tmp_path / "words.txt"
    path.write_bytes(b"x\t10\ny\t20\nz\t30\n")
    return str(path)


def test_vocabulary_of_a_file(tmp_path):
    """Words get their line numbers; other words a bucket after them, by TensorFlow's hash (values from it)."""
    path = tmp_path / "words.txt"
    path.write_text("x\ny\nz\n")
    with tf.Graph().as_default(), tf.Session() as session:
        initializer = tf.lookup.TextFileInitializer(
            str(path), tf.string, tf.lookup.TextFileIndex.WHOLE_LINE, tf.int64, tf.lookup.TextFileIndex.LINE_NUMBER
        )
        table = tf.lookup.StaticVocabularyTable(initializer, 3)
        found = table.lookup(tf.constant(["x", "z", "q", "r"]))
        session.run(tf.tables_initializer())
        assert session.run(found).tolist() == [0, 2, 5, 4]
        assert session.run(table.size()) == 6
        assert [t.name for t in tf.get_collection(tf.GraphKeys.ASSET_FILEPATHS)] == ["asset_path:0"]


def test_columns_of_a_file(vocabulary):
    """Keys and values may be columns; vocab_size takes the first lines; an offset moves line numbers."""
    with tf.Graph().as_default(), tf.Session() as session:
        columns = tf.lookup.StaticHashTable(tf.lookup.TextFileInitializer(vocabulary, tf.string, 0, tf.int64, 1), -1)
        first = tf.lookup.StaticHashTable(
            tf.lookup.TextFileInitializer(vocabulary, tf.string, 0, tf.int64, -1, vocab_size=2, value_index_offset=5),
            -1,
        )
        keys = tf.constant(["x", "z"])
        session.run(tf.tables_initializer())
        assert session.run([columns.lookup(keys), first.lookup(keys)])[0].tolist() == [10, 30]
        assert session.run(first.lookup(keys)).tolist() == [5, -1]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"key_index": 0, "value_index": 2}, "Invalid number of columns"),
        ({"key_index": 1, "value_index": 0}, "not a valid int64"),
        ({"key_index": 0, "value_index": -1, "vocab_size": 9}, "Invalid vocab_size .* expected 9 but got 3"),
        ({"key_index": 0, "value_index": 1, "delimiter": "ab"}, "Only single delimiter"),
    ],
)
def test_bad_files_are_reported(vocabulary, arguments, message):
    """A file that does not have what the initializer wants fails with the line and the numbers."""
    with tf.Graph().as_default(), tf.Session() as session:
        table = tf.lookup.StaticHashTable(
            tf.lookup.TextFileInitializer(vocabulary, tf.string, value_dtype=tf.int64, **arguments), -1
        )
        with pytest.raises(tf.errors.InvalidArgumentError, match=message):
            session.run(table.initializer)


def test_a_missing_file_is_not_found(tmp_path):
    """A vocabulary that is not there is a NotFoundError."""
    with tf.Graph().as_default(), tf.Session() as session:
        table = lookup.index_table_from_file(str(tmp_path / "none"))
        with pytest.raises(tf.errors.NotFoundError, match="none"):
            session.run(table.init)


def test_mutable_table():
    """Keys can be inserted, changed, removed and exported."""
    with tf.Graph().as_default(), tf.Session() as session:
        table = tf.lookup.experimental.MutableHashTable(tf.string, tf.int64, -1)
        insert = table.insert(tf.constant(["a", "b", "c"]), tf.constant([5, 6, 7], tf.int64))
        found, export = table.lookup(tf.constant(["b", "d"])), table.export()
        session.run(insert)
        assert session.run(found).tolist() == [6, -1]
        session.run(table.remove(tf.constant(["a", "nobody"])))
        assert dict(zip(*session.run(export))) == {b"b": 6, b"c": 7}
        assert session.run(table.size()) == 2
        assert session.run(table.lookup(tf.constant(["b", "d"]), [[1], [2]][0] * 2)).tolist() == [6, 1]


def test_tables_of_vectors(eager):
    """A value may be a vector; a dense table refuses its two reserved keys."""
    table = tf2.lookup.experimental.DenseHashTable(tf2.int64, tf2.float32, [0.0, 0.0], -1, -2)
    table.insert([1, 2], [[1.0, 2.0], [3.0, 4.0]])
    assert table.lookup([2, 9]).numpy().tolist() == [[3, 4], [0, 0]]
    assert int(table.size()) == 2
    with pytest.raises(tf2.errors.InvalidArgumentError, match="empty_key or deleted_key"):
        table.lookup([-1])
    plain = tf2.lookup.experimental.MutableHashTable(tf2.string, tf2.float32, [1.0, 1.0])
    plain.insert(["a"], [[5.0, 6.0]])
    assert plain["b"].numpy().tolist() == [1, 1] or plain.lookup(["b"]).numpy().tolist() == [[1, 1]]


def test_contrib_vocabularies():
    """Words to numbers and back, with buckets for the rest."""
    with tf.Graph().as_default(), tf.Session() as session:
        table = lookup.index_table_from_tensor(["a", "b"], num_oov_buckets=2)
        strong = lookup.index_table_from_tensor(
            [10, 20], num_oov_buckets=4, hasher_spec=lookup.StrongHashSpec([1, 2]), dtype=tf.int64
        )
        back = lookup.index_to_string_table_from_tensor(["a", "b"])
        sparse = tf.SparseTensor([[0, 1]], ["b"], [1, 2])
        session.run(tf.tables_initializer())
        ids = session.run(table.lookup(tf.constant(["b", "q", "a"])))
        assert ids[0] == 1 and ids[2] == 0 and ids[1] in (2, 3)
        assert session.run(strong.lookup(tf.constant([20], tf.int64))).tolist() == [1]
        assert session.run(back.lookup(tf.constant([1, 7], tf.int64))).tolist() == [b"b", b"UNK"]
        assert session.run(table.lookup(sparse)).values.tolist() == [1]
    with pytest.raises(ValueError, match="size 2"):
        lookup.StrongHashSpec([1])


def test_eager_tables_are_ready_at_once(eager):
    """In eager mode a table is filled when it is made."""
    table = tf2.lookup.StaticHashTable(tf2.lookup.KeyValueTensorInitializer([1, 2], ["one", "two"]), "?")
    assert table.lookup([2, 3]).numpy().tolist() == [b"two", b"?"]
    assert table[np.array([1], np.int32)].numpy().tolist() == [b"one"]
