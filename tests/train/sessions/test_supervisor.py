"""Supervisor: its session, services, loops and its end."""

from __future__ import annotations

import pytest

import stoker.compat.v1 as tf


def kinds(directory):
    """(kind of event, step) of all events but the first of each file."""
    found = []
    for path in sorted(directory.glob("events*")):
        for event in list(tf.train.summary_iterator(str(path)))[1:]:
            log = event.session_log
            name = tf.SessionLog.SessionStatus.Name(log.status) if event.HasField("session_log") else ""
            found.append(name or event.WhichOneof("what"))
    return found


def test_a_managed_session(model, tmp_path, log):
    """The model is initialized, graph, start, first checkpoint and stop are written, the graph is final."""
    tf.summary.scalar("value", model.value)
    supervisor = tf.train.Supervisor(logdir=str(tmp_path))
    assert supervisor.is_chief
    assert supervisor.save_path == str(tmp_path / "model.ckpt")
    assert supervisor.global_step is model.step
    assert (supervisor.save_model_secs, supervisor.save_summaries_secs) == (600, 120)
    with supervisor.managed_session() as session:
        assert session.graph.finalized
        for _ in range(3):
            session.run(model.train)
        supervisor.summary_computed(session, tf.Summary(value=[tf.Summary.Value(tag="mine", simple_value=1.0)]), 7)
        with pytest.raises(TypeError, match="must be a Summary"):
            supervisor.summary_computed(session, 3)
        while not list(tmp_path.glob("checkpoint")):
            assert not supervisor.coord.wait_for_stop(0.01)
    assert supervisor.should_stop()
    found = kinds(tmp_path)
    assert found[:3] == ["graph_def", "meta_graph_def", "START"]
    assert found[-1] == "STOP"
    assert found.count("summary") == 3
    assert (tmp_path / "graph.pbtxt").exists()
    assert "Starting standard services." in log
    with pytest.raises(RuntimeError, match="closed Session"):
        session.run(model.value)


def test_it_goes_on_from_a_checkpoint(tmp_path):
    """A second supervisor of the same directory restores what the first one saved."""
    for expected in (0, 3):
        with tf.Graph().as_default():
            step = tf.train.get_or_create_global_step()
            more = tf.assign_add(step, 3)
            supervisor = tf.train.Supervisor(logdir=str(tmp_path), summary_op=None)
            with supervisor.managed_session(start_standard_services=False) as session:
                assert session.run(step) == expected
                session.run(more)
                supervisor.saver.save(session, supervisor.save_path, global_step=supervisor.global_step)


def test_without_a_directory(model, log):
    """Nothing is written; services are refused with a warning, summaries with an error."""
    supervisor = tf.train.Supervisor()
    assert (supervisor.save_path, supervisor.summary_writer, supervisor.summary_op) == (None, None, None)
    with supervisor.managed_session() as session:
        assert supervisor.start_standard_services(session) is None
        with pytest.raises(RuntimeError, match="requires a summary writer"):
            supervisor.summary_computed(session, b"")
    assert "Standard services need a 'logdir' passed to the SessionManager" in log


def test_what_ends_a_managed_session(model):
    """Exceptions of the block and of loops come out; the end of the input does not."""
    supervisor = tf.train.Supervisor()
    with pytest.raises(ValueError, match="inside"), supervisor.managed_session():
        raise ValueError("inside")
    with supervisor.managed_session():
        raise tf.errors.OutOfRangeError(None, None, "end")
    assert supervisor.should_stop()

    def fail():
        raise RuntimeError("in a loop")

    with pytest.raises(RuntimeError, match="in a loop"), supervisor.managed_session():
        supervisor.loop(None, fail)
        supervisor.wait_for_stop()
        assert supervisor.ShouldStop()


def test_loops_and_the_basic_train_loop(model):
    """A loop calls its target with its arguments until the supervisor stops; so does basic_train_loop."""
    supervisor = tf.train.Supervisor()
    called = []

    def tick(a, b=0):
        called.append((a, b))
        if len(called) == 3:
            supervisor.request_stop()

    with supervisor.managed_session():
        supervisor.loop(0.001, tick, args=(1,), kwargs={"b": 2})
        supervisor.wait_for_stop()
    assert called[:3] == [(1, 2)] * 3
    called.clear()
    tf.train.basic_train_loop(supervisor, lambda session, *args, **kwargs: tick(*args, **kwargs), (4,), {"b": 5})
    assert called == [(4, 5)] * 3


def test_queues_end_training():
    """Queue runners start with the session; the end of their input ends the loop."""
    item = tf.train.string_input_producer(["a", "b"], num_epochs=1, shuffle=False).dequeue()
    supervisor = tf.train.Supervisor()
    found = []
    with supervisor.managed_session() as session:
        while not supervisor.should_stop():
            found.append(session.run(item))
    assert found == [b"a", b"b"]


def test_workers(model):
    """A worker writes nothing and starts no services; its variables need devices."""
    with pytest.raises(ValueError, match="all Variables must have their device set"):
        tf.train.Supervisor(is_chief=False)
    with tf.Graph().as_default(), tf.device("/job:ps/task:0"):
        tf.get_variable("v", [])
        supervisor = tf.train.Supervisor(is_chief=False, logdir="unused")
        assert supervisor.save_path is None
        with pytest.raises(RuntimeError, match="Only chief supervisor can start standard services"):
            supervisor.start_standard_services(None)


def test_pieces_that_are_given_or_turned_off(model):
    """None turns a piece off; without anything to initialize with, there is no session."""
    supervisor = tf.train.Supervisor(init_op=None, local_init_op=None, saver=None, global_step=None)
    assert (supervisor.init_op, supervisor.saver, supervisor.global_step) == (None, None, None)
    with pytest.raises(RuntimeError, match="Model is not initialized"):
        supervisor.PrepareSession()


@pytest.mark.usefixtures("eager")
def test_eager_mode_is_refused():
    """Supervisors belong to graphs."""
    with pytest.raises(RuntimeError, match="incompatible with eager execution"):
        tf.train.Supervisor()
