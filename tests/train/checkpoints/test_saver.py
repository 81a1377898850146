"""`tf.train.Saver`, state files, readers and meta graphs: as under TensorFlow, and what it cannot show."""

import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pytest

import stoker as tf2
import stoker.compat.v1 as tf
from stoker._src.formats import filesystems
from stoker._src.formats.protos import TrackableObjectGraph
from stoker._src.train.checkpoints.saver_ops import BaseSaverBuilder

ROOT = Path(__file__).parents[3]
GOLDEN = ROOT / "tests" / "golden"


@pytest.mark.parametrize("name", ["graphs", "saving", "starting", "state"])
def test_a_program_prints_what_it_prints_under_tensorflow(name, tmp_path):
    """Nodes, files, states, values and errors of savers and of what starts with saved values, line by line."""
    arguments = [str(tmp_path / "new"), str(GOLDEN / "checkpoints" / "written")]
    done = subprocess.run(
        [sys.executable, "-m", "stoker", "run", str(GOLDEN / "saver" / f"{name}.py"), *arguments],
        cwd=ROOT, capture_output=True, text=True, timeout=300,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == (GOLDEN / "saver" / f"{name}.txt").read_text().splitlines()


def test_eager_variables(tmp_path, eager):
    """In eager mode a saver needs to be told its variables, and saves and restores them at once."""
    with pytest.raises(RuntimeError, match="var_list"):
        tf.train.Saver()
    v, w = tf2.Variable([1.0, 2.0], name="v"), tf2.Variable(3, name="w")
    saver = tf.train.Saver({"v": v, "other": w})
    with pytest.raises(RuntimeError, match="build"):
        saver.build()
    path = saver.save(None, str(tmp_path / "model"), global_step=tf2.Variable(7))
    assert path == str(tmp_path / "model-7")
    assert tf.train.list_variables(path) == [("other", []), ("v", [2])]
    assert tf.train.latest_checkpoint(str(tmp_path)) == path
    v.assign([0.0, 0.0])
    w.assign(0)
    saver.restore(None, path)
    assert v.numpy().tolist() == [1, 2]
    assert w.numpy() == 3
    with pytest.raises(tf.errors.NotFoundError, match="missing"):
        tf.train.Saver({"missing": v}).restore(None, path)
    with pytest.raises(RuntimeError, match="meta graphs"):
        tf.train.export_meta_graph()


def test_steps_in_names(tmp_path):
    """A step is an integer of Python or NumPy, as a session returns it, a tensor, or the name of one."""
    with tf.Graph().as_default(), tf.Session() as session:
        step = tf.train.create_global_step()
        session.run(step.assign(5))
        for given in (5, session.run(step), np.uint8(5), step, "global_step:0"):
            saver = tf.train.Saver(pad_step_number=given is step)
            path = saver.save(session, str(tmp_path / "model"), global_step=given, write_meta_graph=False)
            assert path == str(tmp_path / ("model-00000005" if given is step else "model-5"))


def test_resource_variables_are_restored_together(tmp_path):
    """One call copies all values of a checkpoint; the plan has no line for each variable."""
    with tf.Graph().as_default(), tf.Session() as session:
        variables = [tf.get_variable(f"v{i}", initializer=float(i), use_resource=True) for i in range(20)]
        counter = tf.get_variable("counter", initializer=7, use_resource=True)
        session.run(tf.global_variables_initializer())
        saver = tf.train.Saver()
        path = saver.save(session, str(tmp_path / "model"))
        session.run([variable.assign(-1.0) for variable in variables] + [counter.assign(0)])
        saver.restore(session, path)
        assert session.run(variables) == list(range(20)) and session.run(counter) == 7
        restore = session.graph.get_operation_by_name("save/restore_all")
        assert len(session.explain(restore, {"save/Const:0": path}).splitlines()) < 20


def test_a_checkpoint_of_objects_is_restored_by_name(tmp_path):
    """A checkpoint that says under which key each variable lies is taken too."""
    objects = TrackableObjectGraph()
    objects.nodes.add().attributes.add(name="VARIABLE_VALUE", full_name="v", checkpoint_key="layer/v/.ATTRIBUTES")
    prefix = str(tmp_path / "objects")
    with tf.Graph().as_default(), tf.Session() as session:
        tensors = [np.float32([4, 5]), np.array(objects.SerializeToString(), object)]
        names = ["layer/v/.ATTRIBUTES", "_CHECKPOINTABLE_OBJECT_GRAPH"]
        session.run(tf.raw_ops.SaveV2(prefix=prefix, tensor_names=names, shape_and_slices=["", ""], tensors=tensors))
    with tf.Graph().as_default(), tf.Session() as session:
        v = tf.get_variable("v", [2])
        tf.train.Saver().restore(session, prefix)
        assert session.run(v).tolist() == [4, 5]
        tf.get_variable("w", [2])
        with pytest.raises(tf.errors.NotFoundError, match="not in the checkpoint: w"):
            tf.train.Saver().restore(session, prefix)


def test_objects_of_ones_own(tmp_path):
    """A saveable object names its tensors and takes them back; it may be given, or be in its collection."""

    class Pair(BaseSaverBuilder.SaveableObject):
        def __init__(self, name, first, second):
            self.pair = first, second
            specs = [BaseSaverBuilder.SaveSpec(each, "", f"{name}/{end}") for each, end in zip(self.pair, "ab")]
            super().__init__(first, specs, name)

        def restore(self, restored_tensors, restored_shapes):
            assigned = [variable.assign(-tensor) for variable, tensor in zip(self.pair, restored_tensors)]
            return tf.group(*assigned)

    with tf.Graph().as_default(), tf.Session() as session:
        first, second = (tf.get_variable(name, [], collections=["none"]) for name in "xy")
        session.run([first.assign(1.0), second.assign(2.0)])
        tf.add_to_collection(tf.GraphKeys.SAVEABLE_OBJECTS, Pair("pair", first, second))
        saver = tf.train.Saver()
        path = saver.save(session, str(tmp_path / "model"))
        assert tf.train.list_variables(path) == [("pair/a", []), ("pair/b", [])]
        saver.restore(session, path)
        assert session.run([first, second]) == [-1, -2]


def test_a_builder_of_ones_own(tmp_path):
    """A builder may save in another way."""

    class Doubling(BaseSaverBuilder):
        def bulk_restore(self, filename_tensor, saveables, preferred_shard, restore_sequentially):
            found = super().bulk_restore(filename_tensor, saveables, preferred_shard, restore_sequentially)
            return [2 * each for each in found]

    with tf.Graph().as_default(), tf.Session() as session:
        v = tf.Variable(3.0)
        session.run(v.initializer)
        saver = tf.train.Saver(builder=Doubling())
        saver.restore(session, saver.save(session, str(tmp_path / "model")))
        assert session.run(v) == 6


def test_nothing_names_a_checkpoint_that_is_not_complete(tmp_path, monkeypatch):
    """When the meta graph cannot be written, the state file still names the checkpoint before."""
    with tf.Graph().as_default(), tf.Session() as session:
        v = tf.Variable(1.0)
        session.run(v.initializer)
        saver = tf.train.Saver()
        first = saver.save(session, str(tmp_path / "model"), 1)
        (tmp_path / "model-2.meta").mkdir()
        with pytest.raises(tf.errors.FailedPreconditionError):
            saver.save(session, str(tmp_path / "model"), 2)
        assert tf.train.latest_checkpoint(str(tmp_path)) == first

    def broken(path):
        raise tf.errors.ResourceExhaustedError(None, None, "disk full")

    with tf.Graph().as_default(), tf.Session() as session:
        monkeypatch.setattr(filesystems.atomic, "sync_directory", broken)
        with pytest.raises(tf.errors.ResourceExhaustedError):
            tf.train.update_checkpoint_state(str(tmp_path), str(tmp_path / "model-2"))
    assert not [path for path in tmp_path.iterdir() if path.name.endswith(".tmp")]


def test_meta_graphs_of_scopes(tmp_path):
    """A scope is written alone, with names inside of it; what it needs from outside is given when it is read."""
    with tf.Graph().as_default() as graph:
        x = tf.placeholder(tf.float32, [None, 2], name="x")
        with tf.variable_scope("net"):
            w = tf.get_variable("w", [2, 1], initializer=tf.ones_initializer())
            tf.add_to_collection("results", tf.matmul(x, w, name="y"))
        meta = tf.train.export_meta_graph(str(tmp_path / "net.meta"), export_scope="net", as_text=True)
        assert [node.name for node in meta.graph_def.node] == ["w/Initializer/ones", "w", "w/Assign", "w/read", "y"]
        assert tf.train.export_meta_graph(graph=graph, collection_list=["results"]).collection_def[
            "results"
        ].node_list.value == ["net/y:0"]
    with tf.Graph().as_default(), tf.Session() as session:
        with pytest.raises(ValueError, match=r"unbound inputs: \$unbound_inputs_x"):
            tf.train.import_meta_graph(str(tmp_path / "net.meta"))
        given = tf.constant([[3.0, 4.0]])
        saver = tf.train.import_meta_graph(meta, import_scope="again", input_map={"x": given})
        assert isinstance(saver, tf.train.Saver)
        assert [v.name for v in tf.trainable_variables()] == ["again/w:0"]
        session.run(tf.global_variables_initializer())
        (result,) = tf.get_collection("results")
        assert result.name == "again/y:0"
        assert session.run(result).tolist() == [[7.0]]


def test_meta_graphs_keep_what_collections_hold(tmp_path):
    """Numbers, strings, names and variables come back; what cannot be written is left out with a warning."""
    with tf.Graph().as_default():
        v = tf.get_variable("v", [], use_resource=True)
        for name, value in (("ints", 3), ("floats", 1.5), ("strings", "a"), ("ops", v.op), ("odd", object())):
            tf.add_to_collection(name, value)
        saver = tf.train.Saver()
        tf.add_to_collection(tf.GraphKeys.SAVERS, saver)
        other = tf.train.Saver(name="other")
        tf.add_to_collection(tf.GraphKeys.SAVERS, other)
        meta = saver.export_meta_graph(str(tmp_path / "m.meta"), save_debug_info=True)
        assert sorted(path.name for path in tmp_path.iterdir()) == ["m.debug", "m.meta"]
        assert "odd" not in meta.collection_def
        alone = saver.export_meta_graph(clear_extraneous_savers=True, clear_devices=True, strip_default_attrs=True)
        assert not [node.name for node in alone.graph_def.node if node.name.startswith("other") or node.device]
        assert len(alone.collection_def["savers"].bytes_list.value) == 1
        assert "container" not in next(node for node in alone.graph_def.node if node.name == "v").attr
    with tf.Graph().as_default():
        tf.train.import_meta_graph(str(tmp_path / "m.meta"), import_scope="s")
        found = {key: tf.get_collection(key) for key in ("ints", "floats", "strings", "ops", "savers")}
        assert found["ints"] == [3]
        assert found["floats"] == [1.5]
        assert found["strings"] == [b"a"]
        assert [op.name for op in found["ops"]] == ["s/v"]
        assert [each.as_saver_def().restore_op_name for each in found["savers"]] == [
            "s/save/restore_all",
            "s/other/restore_all",
        ]


def test_files_that_are_no_meta_graphs(tmp_path):
    """OSError names the file; an empty one is an empty graph without a saver."""
    (tmp_path / "junk.meta").write_bytes(b"\x01junk")
    (tmp_path / "empty.meta").write_bytes(b"")
    with tf.Graph().as_default():
        for name in ("junk.meta", "none.meta"):
            with pytest.raises(OSError, match=name):
                tf.train.import_meta_graph(str(tmp_path / name))
        assert tf.train.import_meta_graph(str(tmp_path / "empty.meta")) is None
        with pytest.raises(TypeError, match="binary or unicode string"):
            tf.train.import_meta_graph(3)


def test_readers_are_for_several_threads(tmp_path):
    """Threads that share a reader get whole tensors."""
    with tf.Graph().as_default(), tf.Session() as session:
        arrays = {f"v{number}": np.full(5000, number, np.float32) for number in range(20)}
        saver = tf.train.Saver([tf.Variable(value, name=name) for name, value in arrays.items()])
        session.run(tf.global_variables_initializer())
        path = saver.save(session, str(tmp_path / "model"))
    reader = tf.train.load_checkpoint(path)
    wrong = []

    def check():
        wrong.extend(name for name, value in arrays.items() if not np.array_equal(reader.get_tensor(name), value))

    threads = [threading.Thread(target=check) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []
    assert reader.debug_string().startswith(b"v0 (DT_FLOAT) [5000]\n")


def test_the_variable_that_does_not_fit_is_named(tmp_path):
    """Variables are restored together; the error is that of the one whose shape differs, and the others can still be restored."""
    path = str(tmp_path / "model")
    arrays = [np.full([3, number + 1], number, np.float32) for number in range(6)]
    with tf.Graph().as_default(), tf.Session() as session:
        saver = tf.train.Saver([tf.Variable(value, name=f"v{number}") for number, value in enumerate(arrays)])
        session.run(tf.global_variables_initializer())
        saver.save(session, path)
    with tf.Graph().as_default(), tf.Session() as session:
        shapes = [[7, 7] if number == 4 else value.shape for number, value in enumerate(arrays)]
        variables = [tf.Variable(tf.zeros(shape), name=f"v{number}") for number, shape in enumerate(shapes)]
        with pytest.raises(tf.errors.InvalidArgumentError, match=r"lhs shape= \[7,7\] rhs shape= \[3,5\]") as caught:
            tf.train.Saver(variables).restore(session, path)
        assert "save/Assign_4" in str(caught.value)
        others = variables[:4]
        saver = tf.train.Saver(others)
        for _ in range(2):  # into variables without and with a value
            saver.restore(session, path)
            for found, expected in zip(session.run(others), arrays):
                np.testing.assert_array_equal(found, expected)
            session.run([each.assign(each - 1) for each in others])
