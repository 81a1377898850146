"""What tracked objects know of their parts, and how lists, dictionaries and tuples become parts."""

from __future__ import annotations

import collections
import copy
import json
import pickle

import numpy as np
import pytest

import stoker as tf
import stoker.compat.v1 as tf1


def _children(trackable):
    return list(trackable._trackable_children())


def test_modules_track_what_is_assigned():
    """Variables, modules, functions and containers that are assigned to attributes are parts, in the order of assignment."""
    module = tf.Module()
    module.w, module.number, module.inner = tf.Variable(1.0), 5, tf.Module()
    module.call = tf.function(lambda x: x)
    module.items = [tf.Variable(2.0)]
    assert _children(module) == ["w", "inner", "call", "items"]
    assert module._lookup_dependency("w") is module.w
    assert module._lookup_dependency("number") is None
    del module.inner
    assert _children(module) == ["w", "call", "items"]


def test_a_list_becomes_a_list_that_tracks():
    """A list that is assigned is wrapped; the wrapper is a list, shares the contents and tracks elements by their numbers."""
    module, given = tf.Module(), [1, tf.Variable(1.0), {"k": tf.Variable(2.0)}]
    module.items = given
    assert isinstance(module.items, list)
    assert module.items is not given
    assert _children(module.items) == ["1", "2"]
    assert _children(module.items[2]) == ["k"]
    module.items.append(tf.Variable(3.0))
    module.items += [4]
    assert len(given) == 5
    assert _children(module.items) == ["1", "2", "3"]
    assert type(module.items[:2]) is list
    assert len(module.variables) == 3


def test_what_is_appended_to_the_wrapped_list_is_seen():
    """Appending to the list that was assigned is seen through the attribute, and cannot be saved."""
    module, given = tf.Module(), [tf.Variable(1.0)]
    module.items = given
    given.append(tf.Variable(2.0))
    assert len(module.items) == 2
    assert len(module.variables) == 2
    with pytest.raises(ValueError, match="modified outside the wrapper"):
        module.items._trackable_children()


@pytest.mark.parametrize(
    "change",
    [
        lambda items: items.insert(0, tf.Variable(0.0)),
        lambda items: items.pop(),
        lambda items: items.__setitem__(0, tf.Variable(0.0)),
        lambda items: items.reverse(),
        lambda items: items.clear(),
        lambda items: items.__delitem__(0),
    ],
)
def test_elements_that_moved_cannot_be_saved(change):
    """A checkpoint finds elements by their numbers, so a list whose elements moved refuses."""
    module = tf.Module()
    module.items = [tf1.Variable(1.0, use_resource=True), 1]
    module.items[1] = 1
    assert _children(module.items) == ["0"]
    change(module.items)
    with pytest.raises(ValueError, match="append-only data structures"):
        module.items._trackable_children()


def test_dictionaries_track_values_by_key():
    """Values of a dictionary are parts of its keys; other keys than strings may not lead to something that is tracked."""
    module = tf.Module()
    module.tables = {"a": 1, "b": tf.Variable(1.0)}
    module.tables["c"] = [tf.Variable(2.0)]
    module.tables.update(d=tf.Variable(3.0))
    assert isinstance(module.tables, dict)
    assert _children(module.tables) == ["b", "c", "d"]
    module.tables.pop("b")
    assert _children(module.tables) == ["c", "d"]
    module.tables[1] = 2
    assert _children(module.tables) == ["c", "d"]
    module.tables[1] = tf.Variable(2.0)
    with pytest.raises(ValueError, match="non-string key"):
        module.tables._trackable_children()


def test_ordered_dictionaries_and_others():
    """OrderedDicts keep their type; defaultdicts, subclasses and sets stay as they are."""

    class Own(dict):
        pass

    module = tf.Module()
    module.ordered = collections.OrderedDict([("z", tf.Variable(1.0)), ("a", 2)])
    module.defaults, module.own, module.set = collections.defaultdict(list), Own(), {1}
    assert isinstance(module.ordered, collections.OrderedDict)
    assert list(module.ordered) == ["z", "a"]
    assert type(module.defaults) is collections.defaultdict
    assert type(module.own) is Own
    assert _children(module) == ["ordered"]


def test_tuples_with_something_to_track():
    """A tuple is wrapped if there is something to track in it, by number and, in a namedtuple, by field."""
    Pair = collections.namedtuple("Pair", "x y")
    module = tf.Module()
    module.plain, module.pair, module.both = (1, 2), Pair(tf.Variable(1.0), 2), ([3], 4)
    assert type(module.plain) is tuple
    assert isinstance(module.pair, Pair)
    assert _children(module.pair) == ["x", "0"]
    assert _children(module.both) == ["0"]
    assert module.both == ([3], 4)


def test_wrappers_are_structures():
    """Wrappers pass through nest, copy, pickle and json as the containers they are."""
    module = tf.Module()
    module.items, module.tables = [1, "a", None], {"a": 1}
    assert tf.nest.map_structure(lambda x: x, module.items) == [1, "a", None]
    assert tf.nest.flatten(module.tables) == [1]
    tf.nest.assert_same_structure(module.items, [1, 2, 3])
    tf.nest.assert_same_structure({"a": 1}, module.tables)
    assert json.dumps(module.items) == '[1, "a", null]'
    assert json.dumps(module.tables) == '{"a": 1}'
    for value in (module.items, module.tables):
        assert copy.copy(value) == copy.deepcopy(value) == pickle.loads(pickle.dumps(value)) == value
    assert repr(module.items) == "ListWrapper([1, 'a', None])"


def test_parts_have_one_name_each():
    """A name stands for one part, unless it is replaced on purpose; what is not trackable is refused."""
    module = tf.Module()
    first, second = tf.Variable(1.0), tf.Variable(2.0)
    module._track_trackable(first, "v")
    with pytest.raises(ValueError, match="Names must be unique"):
        module._track_trackable(second, "v")
    module._track_trackable(second, "v", overwrite=True)
    assert module._lookup_dependency("v") is second
    with pytest.raises(TypeError, match="Got type <class 'int'>"):
        module._track_trackable(3, "three")


def test_layers_track_their_weights():
    """1.x layers track what `add_weight` makes, under its name; cells of cells track those."""
    with tf1.Graph().as_default():
        dense = tf1.layers.Dense(3)
        dense(tf1.ones([1, 2]))
        assert _children(dense) == ["kernel", "bias"]
        cells = tf1.nn.rnn_cell.MultiRNNCell(
            [tf1.nn.rnn_cell.GRUCell(2), tf1.nn.rnn_cell.DropoutWrapper(tf1.nn.rnn_cell.LSTMCell(2))]
        )
        cells(tf1.ones([2, 3]), cells.zero_state(2, tf.float32))
        assert _children(cells) == ["cell-0", "cell-1"]
        assert _children(cells._lookup_dependency("cell-0")) == [
            "gates/kernel",
            "gates/bias",
            "candidate/kernel",
            "candidate/bias",
        ]
        assert _children(cells._lookup_dependency("cell-1")) == ["cell"]


def test_optimizers_and_loss_scales_track_the_variables_of_the_current_graph():
    """Shared variables of an optimizer and the state of a loss scale are parts where they were made; slots are not parts."""
    with tf1.Graph().as_default():
        weight = tf1.get_variable("w", [2])
        optimizer = tf1.train.AdamOptimizer(0.1)
        optimizer.minimize(tf1.reduce_sum(weight * weight))
        assert _children(optimizer) == ["beta1_power", "beta2_power"]
        scale = tf1.mixed_precision.DynamicLossScale()
        assert _children(scale) == ["current_loss_scale", "good_steps"]
    with tf1.Graph().as_default():
        assert _children(optimizer) == []


def test_tables_are_saved_by_savers():
    """A table that changes is saved as its keys and values, under its name, unless it was told not to be."""
    with tf1.Graph().as_default():
        with tf1.name_scope("scope"):
            table = tf.lookup.experimental.MutableHashTable(tf.string, tf.int64, -1)
        tf.lookup.experimental.MutableHashTable(tf.string, tf.int64, -1, name="not", checkpoint=False)
        found = tf1.get_collection(tf1.GraphKeys.SAVEABLE_OBJECTS)
        assert [each.name for each in found] == ["MutableHashTable"]
        assert [spec.name for spec in found[0].specs] == ["MutableHashTable-keys", "MutableHashTable-values"]
        assert list(table._gather_saveables_for_checkpoint()) == ["table"]


def test_a_saver_restores_tables(tmp_path):
    """Restoring a table replaces what is in it."""
    with tf1.Graph().as_default(), tf1.Session() as session:
        table = tf.lookup.experimental.MutableHashTable(tf.string, tf.int64, -1)
        session.run(table.insert(["a", "b"], np.array([1, 2])))
        saver = tf1.train.Saver()
        path = saver.save(session, str(tmp_path / "model"))
        assert tf.train.list_variables(path) == [("MutableHashTable-keys", [2]), ("MutableHashTable-values", [2])]
        session.run(table.insert(["c"], np.array([3])))
        session.run(table.remove(["a"]))
        saver.restore(session, path)
        assert session.run(table.lookup(["a", "b", "c"])).tolist() == [1, 2, -1]
    with tf1.Graph().as_default(), tf1.Session() as session:
        table = tf.lookup.experimental.MutableHashTable(tf.string, tf.int64, -1)
        saver = tf1.train.Saver({"other": table})
        assert tf.train.list_variables(saver.save(session, str(tmp_path / "named"))) == [
            ("other-keys", [0]),
            ("other-values", [0]),
        ]


def test_dense_tables_are_restored_from_their_buckets(tmp_path):
    """TensorFlow saves a dense table as all of its buckets, a row for each; those that are empty hold no keys."""
    prefix = str(tmp_path / "model")
    buckets = np.array([[-1], [5], [-2], [7]]), np.float32([[0], [1], [0], [2]])
    names = ["MutableDenseHashTable-keys", "MutableDenseHashTable-values"]
    with tf1.Graph().as_default(), tf1.Session() as session:
        table = tf.lookup.experimental.DenseHashTable(tf.int64, tf.float32, -1.0, empty_key=-1, deleted_key=-2)
        session.run(
            tf1.raw_ops.SaveV2(prefix=prefix, tensor_names=names, shape_and_slices=["", ""], tensors=list(buckets))
        )
        saver = tf1.train.Saver()
        for path in (prefix, str(tmp_path / "again")):
            saver.restore(session, path)
            assert session.run(table.lookup(np.array([5, 7, 9]))).tolist() == [1.0, 2.0, -1.0]
            assert session.run(table.size()) == 2
            saver.save(session, str(tmp_path / "again"))
