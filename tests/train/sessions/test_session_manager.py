"""SessionManager and Scaffold: restoring, initializing, waiting, and what they say when that fails."""

from __future__ import annotations

import pytest

import stoker.compat.v1 as tf


def manager(**options):
    return tf.train.SessionManager(ready_op=tf.report_uninitialized_variables(), **options)


def test_prepare_initializes_and_calls_back(model):
    """Without a checkpoint the init op runs with its feeds, then the function."""
    start = tf.placeholder(tf.float32, [])
    init = tf.group(tf.global_variables_initializer(), name="everything")
    with tf.control_dependencies([init]):
        init = tf.assign(model.value, start)
    seen = []
    session = manager().prepare_session(
        "", init_op=init, init_feed_dict={start: 3.0}, init_fn=lambda s: seen.append(s.run(model.value))
    )
    assert seen == [3.0]
    session.close()


def test_what_cannot_be_prepared(model):
    """Nothing to initialize with, or a model that is not ready afterwards, is a RuntimeError that names the variables."""
    with pytest.raises(
        RuntimeError, match="Model is not initialized and no init_op or init_fn or local_init_op was given"
    ):
        manager().prepare_session("")
    with pytest.raises(
        RuntimeError, match=r"Init operations did not make model ready.*not initialized: global_step, value"
    ):
        manager().prepare_session("", init_op=tf.no_op())
    with pytest.raises(ValueError, match="you must also pass a local_init_op"):
        tf.train.SessionManager(ready_for_local_init_op=tf.constant([], tf.string))
    local = manager(
        local_init_op=tf.no_op(), ready_for_local_init_op=tf.report_uninitialized_variables(tf.global_variables())
    )
    with pytest.raises(RuntimeError, match="did not make model ready for local_init"):
        local.prepare_session("", init_op=tf.no_op())


def test_a_checkpoint_is_restored_and_nothing_initialized(model, tmp_path):
    """With a checkpoint neither init op nor function runs; the local init op does."""
    saver = tf.train.Saver()
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        session.run(model.train)
        path = saver.save(session, str(tmp_path / "model"), 1)
    local = tf.get_variable("local", [], initializer=tf.ones_initializer(), collections=[tf.GraphKeys.LOCAL_VARIABLES])
    made = manager(local_init_op=tf.local_variables_initializer())
    for source in ({"checkpoint_dir": str(tmp_path)}, {"checkpoint_filename_with_path": path}):
        session = made.prepare_session(
            "", init_op=tf.global_variables_initializer(), saver=saver, init_fn=None, **source
        )
        assert session.run([model.value, local]) == [1.0, 1.0]
        recovered, is_ready = made.recover_session("", saver=saver, **source)
        assert is_ready
        assert recovered.run(model.value) == 1.0
        session.close()
        recovered.close()
    with pytest.raises(ValueError, match="Can not provide both"):
        made.recover_session("", saver=saver, checkpoint_dir=str(tmp_path), checkpoint_filename_with_path=path)


class Clock:
    """Time that passes only by sleeping."""

    now = 0.0

    def monotonic(self):
        return self.now

    def sleep(self, seconds):
        self.now += seconds


def test_waiting(model, tmp_path, log, monkeypatch):
    """Nobody waits longer than asked: for a checkpoint the session comes unrestored, for a session DeadlineExceededError."""
    monkeypatch.setattr("stoker._src.train.sessions.session_manager.time", Clock())
    session, is_ready = manager().recover_session(
        "", saver=tf.train.Saver(), checkpoint_dir=str(tmp_path), wait_for_checkpoint=True, max_wait_secs=50
    )
    assert not is_ready
    session.close()
    assert log.count("Waiting for checkpoint to be available.") == 2
    with pytest.raises(tf.errors.DeadlineExceededError, match="not ready after waiting 50 secs"):
        manager().wait_for_session("", max_wait_secs=50)
    assert sum(line.startswith("Waiting for model to be ready.") for line in log) == 1


def test_a_scaffold_fills_the_collections():
    """`finalize` makes what is missing, stores it, uses what is there, and freezes the graph."""
    with tf.Graph().as_default() as graph:
        tf.get_variable("value", [])
        tf.summary.scalar("s", 1.0)
        given = tf.no_op(name="given")
        scaffold = tf.train.Scaffold(init_op=given).finalize()
        assert graph.finalized
        assert scaffold.init_op is given
        assert graph.get_collection(tf.GraphKeys.INIT_OP) == []
        pieces = (
            scaffold.ready_op,
            scaffold.ready_for_local_init_op,
            scaffold.local_init_op,
            scaffold.summary_op,
            scaffold.saver,
        )
        keys = ("READY_OP", "READY_FOR_LOCAL_INIT_OP", "LOCAL_INIT_OP", "SUMMARY_OP", "SAVERS")
        for key, piece in zip(keys, pieces):
            assert graph.get_collection(getattr(tf.GraphKeys, key)) == [piece]
        ready = scaffold.ready_op
        assert scaffold.finalize().ready_op is ready


def test_copies_of_scaffolds_and_full_collections():
    """Explicit pieces overrule those of the copied scaffold; two items in a collection are an error."""
    first = tf.train.Scaffold(init_op=tf.no_op(), ready_op=tf.constant([], tf.string))
    second = tf.train.Scaffold(ready_op=tf.constant(["x"]), copy_from_scaffold=first)
    assert second.init_op is first.init_op
    assert second.ready_op is not first.ready_op
    with pytest.raises(TypeError, match="not a Scaffold instance"):
        tf.train.Scaffold(copy_from_scaffold=3)
    tf.add_to_collection("two", 1)
    tf.add_to_collection("two", 2)
    with pytest.raises(RuntimeError, match="More than one item in the collection two"):
        tf.train.Scaffold.get_or_default("piece", "two", lambda: 3)
    assert tf.train.Scaffold.get_or_default("piece", "none", lambda: 3) == 3
    assert tf.get_collection("none") == [3]


def test_init_fn_of_a_scaffold_gets_both(model):
    """`init_fn` is called with the scaffold and the session."""
    seen = []
    scaffold = tf.train.Scaffold(init_fn=lambda s, session: seen.append((s, session.run(model.value))))
    session = tf.train.ChiefSessionCreator(scaffold).create_session()
    assert seen == [(scaffold, 0.0)]
    session.close()


def test_a_scaffold_saves_objects(tmp_path):
    """With a Checkpoint as saver, its objects are saved under their keys, restored by the next session, and readable by Checkpoint."""
    for expected in (0.0, 3.0):
        with tf.Graph().as_default():
            step = tf.train.get_or_create_global_step()
            value = tf.get_variable("value", [], initializer=tf.zeros_initializer(), use_resource=True)
            more = tf.group(tf.assign_add(value, 3.0), tf.assign_add(step, 1))
            scaffold = tf.train.Scaffold(saver=tf.train.Checkpoint(part=value, step=step))
            with tf.train.MonitoredTrainingSession(checkpoint_dir=str(tmp_path), scaffold=scaffold) as session:
                assert session.run(value) == expected
                session.run(more)
            tf.summary.FileWriterCache.clear()
        reader = tf.train.NewCheckpointReader(tf.train.latest_checkpoint(str(tmp_path)))
        assert reader.has_tensor("part/.ATTRIBUTES/VARIABLE_VALUE")
        assert reader.has_tensor("_CHECKPOINTABLE_OBJECT_GRAPH")
