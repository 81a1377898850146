"""Checkpoints of objects: what is written, what is restored and when, and what the statuses say."""

from __future__ import annotations

import gc
import importlib.util
import os
from pathlib import Path

import numpy as np
import pytest

import stoker as tf
import stoker.compat.v1 as tf1
from stoker._src.formats.protos import TrackableObjectGraph
from stoker._src.graph import context

GOLDEN = Path(__file__).parents[2] / "golden" / "checkpoints"


@pytest.fixture
def eager():
    """The current test runs in eager mode."""
    with context.enter_eager():
        yield


def _graph_of(path):
    message = tf.train.load_variable(path, "_CHECKPOINTABLE_OBJECT_GRAPH")
    return TrackableObjectGraph.FromString(message)


def _described(path):
    return [
        (
            [(child.node_id, child.local_name) for child in node.children],
            [(each.name, each.full_name, each.checkpoint_key) for each in node.attributes],
            [
                (each.original_variable_node_id, each.slot_name, each.slot_variable_node_id)
                for each in node.slot_variables
            ],
            node.has_checkpoint_values.value,
        )
        for node in _graph_of(path).nodes
    ]


def _golden_objects():
    """`objects()` of the golden script, run by stoker."""
    spec = importlib.util.spec_from_file_location("golden_objects", GOLDEN / "objects.py")
    module = importlib.util.module_from_spec(spec)
    source = (
        (GOLDEN / "objects.py").read_text().replace("import tensorflow as tensorflow", "import stoker as tensorflow")
    )
    exec(compile(source, "objects.py", "exec"), module.__dict__)
    return module.objects()


@pytest.mark.parametrize("version", ["tf1", "tf2"])
def test_checkpoints_of_tensorflow_are_restored(version):
    """What TensorFlow wrote is consumed whole: variables, slots, layers, lists and dictionaries have its values."""
    with tf1.Graph().as_default(), tf1.Session() as session:
        _, checkpoint = _golden_objects()
        status = checkpoint.restore(str(GOLDEN / f"objects_{version}" / "model-1")).assert_consumed()
        status.initialize_or_restore(session)
        weight, optimizer = checkpoint.weight, checkpoint.optimizer
        np.testing.assert_allclose(session.run(weight), [0.5, 1.5], rtol=1e-6)
        np.testing.assert_allclose(session.run(optimizer.get_slot(weight, "m")), [0.3, 0.3], rtol=1e-6)
        np.testing.assert_allclose(session.run(optimizer.get_slot(weight, "v")), [0.009, 0.009], rtol=1e-4)
        np.testing.assert_array_equal(session.run(checkpoint.layer.kernel), np.full([3, 2], 5.0))
        assert session.run([checkpoint.module.items[0], checkpoint.save_counter]) == [7.0, 1]
        assert session.run(checkpoint.module.items[1]["a/b"]).tolist() == [8, 9]


def test_the_description_is_that_of_tensorflow(tmp_path):
    """Nodes, names, keys, slots and their order are as TensorFlow 2.21 writes them for the same objects."""
    with tf1.Graph().as_default(), tf1.Session() as session:
        step, checkpoint = _golden_objects()
        session.run(tf1.global_variables_initializer())
        session.run(step)
        path = checkpoint.save(str(tmp_path / "model"), session=session)
    expected = str(GOLDEN / "objects_tf2" / "model-1")
    assert _described(path) == _described(expected)
    assert tf.train.list_variables(path) == tf.train.list_variables(expected)


def test_saving_counts_and_writing_does_not(tmp_path, eager):
    """`save` numbers its checkpoints and writes the state file with relative paths; `write` uses the path it is given."""
    checkpoint = tf.train.Checkpoint(v=tf.Variable([1.0, 2.0], name="v"))
    assert checkpoint.save(str(tmp_path / "a")) == str(tmp_path / "a-1")
    assert checkpoint.write(str(tmp_path / "w")) == str(tmp_path / "w")
    assert int(checkpoint.save_counter) == 1
    assert (tmp_path / "checkpoint").read_text() == 'model_checkpoint_path: "a-1"\nall_model_checkpoint_paths: "a-1"\n'
    assert tf.train.latest_checkpoint(str(tmp_path)) == str(tmp_path / "a-1")
    checkpoint.v.assign([5.0, 5.0])
    checkpoint.read(str(tmp_path / "w")).assert_consumed()
    assert checkpoint.v.numpy().tolist() == [1.0, 2.0]


def test_parts_that_come_later_are_restored_when_they_come(tmp_path, eager):
    """A restoration waits: for attributes, for elements of lists, for parts of parts; of two, the newest decides."""
    module = tf.Module()
    module.items = [tf.Variable(1.0), tf.Variable(2.0)]
    first = tf.train.Checkpoint(m=module).save(str(tmp_path / "first"))
    module.items[0].assign(10.0)
    second = tf.train.Checkpoint(m=module).save(str(tmp_path / "second"))
    later = tf.train.Checkpoint()
    status = later.restore(first)
    later.restore(second)
    status.assert_existing_objects_matched().assert_nontrivial_match()
    with pytest.raises(AssertionError, match=r"Unresolved object in checkpoint \(root\)\.m\.items\.0"):
        status.assert_consumed()
    made = tf.Module()
    later.m = made
    made.items = []
    made.items.append(tf.Variable(0.0))
    made.items.append(tf.Variable(0.0))
    assert [each.numpy() for each in made.items] == [10.0, 2.0]


def test_slots_are_restored_whichever_way_they_come(tmp_path, eager):
    """Slots are made from the checkpoint once their variable and optimizer are known; training goes on as it would have."""

    def train(optimizer, variable):
        optimizer.minimize(lambda: tf.reduce_sum(variable * variable), var_list=[variable])

    weight, optimizer = tf.Variable([1.0, 2.0]), tf1.train.AdamOptimizer(0.1)
    train(optimizer, weight)
    path = tf.train.Checkpoint(w=weight, o=optimizer).save(str(tmp_path / "model"))
    train(optimizer, weight)
    for order in ("wo", "ow", ""):
        made = tf.train.Checkpoint()
        fresh = {"w": tf.Variable([9.0, 9.0]), "o": tf1.train.AdamOptimizer(0.1)}
        for name in order:
            setattr(made, name, fresh[name])
        status = made.restore(path)
        made.w, made.o = fresh["w"], fresh["o"]
        assert made.o.get_slot_names() == ["m", "v"]
        train(made.o, made.w)
        status.assert_consumed()
        np.testing.assert_array_equal(made.w.numpy(), weight.numpy())
    skipping = tf.train.CheckpointOptions(experimental_skip_slot_variables=True)
    made = tf.train.Checkpoint(w=tf.Variable([0.0, 0.0]), o=tf1.train.AdamOptimizer(0.1))
    status = made.restore(path, options=skipping)
    assert made.o.get_slot_names() == []
    train(made.o, made.w)
    status.assert_consumed()


def test_what_does_not_match_is_told(tmp_path, eager):
    """Statuses tell what the program has and the checkpoint does not, and the other way round; shapes and dtypes must fit."""
    path = tf.train.Checkpoint(v=tf.Variable([1.0, 2.0], name="v")).save(str(tmp_path / "a"))
    other = tf.train.Checkpoint(other=tf.Variable(1.0))
    status = other.restore(path)
    for ask in (status.assert_consumed, status.assert_existing_objects_matched):
        with pytest.raises(AssertionError, match="Found 1 Python objects that were not bound to checkpointed values"):
            ask()
    assert status.expect_partial() is status
    with pytest.raises(ValueError, match=r"incompatible tensor with shape \(2,\).*variable with shape \(3,\)"):
        tf.train.Checkpoint(v=tf.Variable([0.0, 0.0, 0.0])).restore(path).expect_partial()
    with pytest.raises(
        tf.errors.InvalidArgumentError, match="expected dtype int32 does not equal original dtype float"
    ):
        tf.train.Checkpoint(v=tf.Variable([0, 0])).restore(path)
    with pytest.raises(tf.errors.NotFoundError, match=r"Error when restoring from checkpoint.*nope"):
        other.restore(str(tmp_path / "nope"))
    nothing = other.restore(None)
    for ask in (nothing.assert_consumed, nothing.assert_existing_objects_matched, nothing.assert_nontrivial_match):
        with pytest.raises(AssertionError, match="No checkpoint specified"):
            ask()
    with pytest.raises(AssertionError, match="no restore ops are available"):
        nothing.run_restore_ops()
    nothing.initialize_or_restore()


def test_unrestored_values_are_warned_about_unless_expected(tmp_path, eager, caplog):
    """A checkpoint with values that nobody took is logged when its objects go, unless `expect_partial` was called."""
    path = tf.train.Checkpoint(v=tf.Variable(1.0)).save(str(tmp_path / "a"))
    gc.collect()  # what other tests left
    caplog.clear()
    with caplog.at_level("WARNING"):
        root = tf.train.Checkpoint()
        root.restore(path).expect_partial()
        del root
        gc.collect()
        assert "unrestored" not in caplog.text
        root = tf.train.Checkpoint()
        root.restore(path)
        del root
        gc.collect()
    assert "deleted with unrestored values" in caplog.text
    assert "(root).v" in caplog.text


def test_checkpoints_of_names_restore_objects(tmp_path, eager):
    """A checkpoint of a Saver is matched by the names of variables, those too that come later."""
    with tf1.Graph().as_default(), tf1.Session() as session:
        tf1.get_variable("v", initializer=[1.0, 1.0])
        session.run(tf1.global_variables_initializer())
        path = tf1.train.Saver().save(session, str(tmp_path / "names"))
    root = tf.train.Checkpoint(x=tf.Variable([0.0, 0.0], name="v"))
    root.restore(path).assert_consumed().assert_nontrivial_match()
    assert root.x.numpy().tolist() == [1.0, 1.0]
    later = tf.train.Checkpoint()
    status = later.restore(path)
    later.x = tf.Variable([0.0, 0.0], name="v")
    assert later.x.numpy().tolist() == [1.0, 1.0]
    later.y = tf.Variable(0.0, name="other")
    with pytest.raises(AssertionError, match=r"not restored: \n.*\['other'\]"):
        status.assert_existing_objects_matched()


def test_graphs_restore_checkpoints_of_names(tmp_path):
    """In a graph, matching by name gives ops that the status runs, and initializers for the rest."""
    with tf1.Graph().as_default(), tf1.Session() as session:
        tf1.get_variable("v", initializer=[1.0, 1.0])
        session.run(tf1.global_variables_initializer())
        path = tf1.train.Saver().save(session, str(tmp_path / "names"))
    with tf1.Graph().as_default(), tf1.Session() as session:
        root = tf1.train.Checkpoint(x=tf1.get_variable("v", [2]), y=tf1.get_variable("y", initializer=3.0))
        root.restore(path).initialize_or_restore()
        assert session.run([root.y, root.x[1]]) == [3.0, 1.0]


def test_savers_restore_checkpoints_of_objects(tmp_path, eager):
    """A Saver finds variables of a checkpoint of objects by the names they had, and tells which are missing."""
    path = tf.train.Checkpoint(anything=tf.Variable([1.0, 2.0], name="v")).save(str(tmp_path / "objects"))
    with tf1.Graph().as_default(), tf1.Session() as session:
        variable = tf1.get_variable("v", [2])
        tf1.train.Saver([variable]).restore(session, path)
        assert session.run(variable).tolist() == [1.0, 2.0]
        tf1.get_variable("more", [2])
        with pytest.raises(tf.errors.NotFoundError, match="Existing variables not in the checkpoint: more"):
            tf1.train.Saver().restore(session, path)


def test_ops_are_made_once(tmp_path):
    """In a graph, saving and restoring again adds no nodes, unless there is something new to save."""
    with tf1.Graph().as_default() as graph, tf1.Session() as session:
        root = tf1.train.Checkpoint(v=tf1.get_variable("v", initializer=1.0), o=tf1.train.MomentumOptimizer(0.1, 0.9))
        step = root.o.minimize(root.v * 2.0)
        session.run(tf1.global_variables_initializer())
        first = root.save(str(tmp_path / "model"))
        root.restore(first).run_restore_ops()
        before = len(graph.get_operations())
        session.run(step)
        second = root.save(str(tmp_path / "model"))
        root.restore(first).assert_consumed().run_restore_ops()
        assert session.run(root.v) == 1.0
        root.restore(second).assert_consumed().run_restore_ops()
        np.testing.assert_allclose(session.run(root.v), 0.8, rtol=1e-6)
        assert len(graph.get_operations()) == before
        assert [os.path.basename(path) for path in (first, second)] == ["model-1", "model-2"]
        root.more = tf1.get_variable("more", initializer=2.0)
        session.run(root.more.initializer)
        assert ("more/.ATTRIBUTES/VARIABLE_VALUE", []) in tf.train.list_variables(root.write(str(tmp_path / "more")))


def test_variables_made_after_restoring_in_a_graph(tmp_path):
    """In a graph, the ops of a variable that comes after `restore` run with the others."""
    with tf1.Graph().as_default(), tf1.Session() as session:
        root = tf1.train.Checkpoint(v=tf1.get_variable("v", initializer=3.0))
        session.run(tf1.global_variables_initializer())
        path = root.save(str(tmp_path / "model"))
    with tf1.Graph().as_default(), tf1.Session() as session:
        root = tf1.train.Checkpoint()
        status = root.restore(path)
        root.v, root.w = tf1.get_variable("other", initializer=1.0), tf1.get_variable("w", initializer=5.0)
        status.initialize_or_restore(session)
        assert session.run([root.v, root.w]) == [3.0, 5.0]


def test_a_root_of_ones_own(tmp_path, eager):
    """`Checkpoint(root)` saves the root's parts under their own names, with what is given beside it."""
    root = tf.Module()
    root.v = tf.Variable(1.0)
    checkpoint = tf.train.Checkpoint(root, extra=tf.Variable(2.0))
    path = checkpoint.save(str(tmp_path / "root"))
    assert [name for name, _ in tf.train.list_variables(path)] == [
        "_CHECKPOINTABLE_OBJECT_GRAPH",
        "extra/.ATTRIBUTES/VARIABLE_VALUE",
        "save_counter/.ATTRIBUTES/VARIABLE_VALUE",
        "v/.ATTRIBUTES/VARIABLE_VALUE",
    ]
    assert [(child.node_id, child.local_name) for child in _graph_of(path).nodes[0].children] == [
        (1, "v"),
        (2, "extra"),
        (0, "root"),
        (3, "save_counter"),
    ]
    root.v.assign(5.0)
    checkpoint.restore(path).assert_consumed()
    assert root.v.numpy() == 1.0
    with pytest.raises(ValueError, match=r"keyword argument v if root\.v already exists"):
        tf.train.Checkpoint(root, v=tf.Variable(3.0))


@pytest.mark.parametrize("value", [1, "text", None, object()])
def test_what_cannot_be_tracked_is_refused(value):
    """Numbers, texts and other objects are no parts of a checkpoint."""
    with pytest.raises(ValueError, match="`Checkpoint` was expecting a trackable object"):
        tf1.train.Checkpoint(a=value)
    with pytest.raises(ValueError, match="`Checkpoint` was expecting a to be a trackable object"):
        tf.train.Checkpoint(a=value)


def test_one_object_under_two_names(tmp_path, eager):
    """Where the program's references differ from the checkpoint's, the first object is restored, and the rest is told."""
    a, b = tf.Variable(1.0), tf.Variable(2.0)
    shared = tf.train.Checkpoint(x=a, y=a).save(str(tmp_path / "shared"))
    with pytest.raises(AssertionError, match="Found 1 Python objects"):
        tf.train.Checkpoint(x=a, y=b).restore(shared).assert_consumed()
    apart = tf.train.Checkpoint(x=a, y=b).save(str(tmp_path / "apart"))
    tf.train.Checkpoint(x=a, y=a).restore(apart).assert_consumed()
    assert a.numpy() == 1.0


class _Counter(tf.train.experimental.PythonState):
    def __init__(self):
        self.array = np.arange(3.0)

    def serialize(self):
        return self.array.tobytes()

    def deserialize(self, string_value):
        self.array = np.frombuffer(string_value)


def test_python_state_rides_along(tmp_path, eager):
    """An object of Python's own is saved as the bytes it gives, and gets them back."""
    checkpoint = tf.train.Checkpoint(state=_Counter())
    path = checkpoint.save(str(tmp_path / "model"))
    checkpoint.state.array = checkpoint.state.array * 2
    checkpoint.restore(path).assert_consumed()
    assert checkpoint.state.array.tolist() == [0.0, 1.0, 2.0]
    assert ("state/.ATTRIBUTES/py_state", []) in tf.train.list_variables(path)


def test_python_state_in_a_graph(tmp_path):
    """In a graph too, what Python holds when the checkpoint is saved is what it gets back."""
    with tf1.Graph().as_default(), tf1.Session():
        checkpoint = tf1.train.Checkpoint(state=_Counter())
        first = checkpoint.save(str(tmp_path / "model"))
        checkpoint.state.array = checkpoint.state.array * 2
        second = checkpoint.save(str(tmp_path / "model"))
        checkpoint.restore(first).assert_consumed()
        assert checkpoint.state.array.tolist() == [0.0, 1.0, 2.0]
        checkpoint.restore(second)
        assert checkpoint.state.array.tolist() == [0.0, 2.0, 4.0]


def test_tables_and_generators(tmp_path, eager):
    """Tables that change and random generators are restored to what they held."""
    table = tf.lookup.experimental.MutableHashTable(tf.string, tf.int64, -1)
    table.insert(["a"], np.array([1]))
    generator = tf.random.Generator.from_seed(1)
    checkpoint = tf.train.Checkpoint(t=table, g=generator)
    path = checkpoint.save(str(tmp_path / "model"))
    drawn = generator.normal([3]).numpy()
    table.insert(["b"], np.array([2]))
    checkpoint.restore(path).assert_consumed()
    assert table.lookup(["a", "b"]).numpy().tolist() == [1, -1]
    np.testing.assert_array_equal(generator.normal([3]).numpy(), drawn)


def test_options(tmp_path, eager):
    """Callbacks hear of the path; a checkpoint in the background holds the values of the moment it was asked for."""
    heard = []
    checkpoint = tf.train.Checkpoint(v=tf.Variable([1.0, 2.0]))
    options = tf.train.CheckpointOptions(experimental_write_callbacks=[lambda: heard.append(1), heard.append])
    path = checkpoint.save(str(tmp_path / "a"), options=options)
    assert heard == [1, path]
    path = checkpoint.save(str(tmp_path / "b"), options=tf.train.CheckpointOptions(enable_async=True))
    checkpoint.v.assign([3.0, 4.0])
    checkpoint.sync()
    assert tf.train.load_variable(path, "v/.ATTRIBUTES/VARIABLE_VALUE").tolist() == [1.0, 2.0]
    assert tf.train.latest_checkpoint(str(tmp_path)) == path
    checkpoint.save(str(tmp_path / "missing" / "deep" / "c"), options=tf.train.CheckpointOptions(enable_async=True))
    with pytest.raises(tf.errors.NotFoundError):
        checkpoint.sync()
    with pytest.raises(NotImplementedError, match="Sharding callbacks"):
        tf.train.CheckpointOptions(experimental_sharding_callback=object())


def test_damaged_descriptions_are_refused(tmp_path):
    """A description of objects that is not a message, or names nodes that are not there, is a data loss."""
    wrong = TrackableObjectGraph()
    wrong.nodes.add().children.add(node_id=5, local_name="x")
    for number, text in enumerate((b"\xff\xff", wrong.SerializeToString(), b"")):
        with tf1.Graph().as_default(), tf1.Session() as session:
            prefix = str(tmp_path / f"damaged{number}")
            session.run(tf1.raw_ops.SaveV2(
                prefix=prefix, tensor_names=["_CHECKPOINTABLE_OBJECT_GRAPH"], shape_and_slices=[""], tensors=[tf.constant(text)]
            ))  # fmt: skip
            with pytest.raises(tf.errors.DataLossError, match="description of its objects"):
                tf1.train.Checkpoint().restore(prefix)
