"""MonitoredSession and its relatives: the order of hooks, recovery, the end, and refusals."""

from __future__ import annotations

import numpy as np
import pytest

import stoker.compat.v1 as tf


class Recorder(tf.train.SessionRunHook):
    """Notes what is called; asks for a fetch, and does something at a run."""

    def __init__(self, name, calls, fetches=None, feeds=None, at_run=None):
        self.name, self.calls, self.fetches, self.feeds = name, calls, fetches, feeds
        self.at_run = at_run
        self.runs = 0

    def begin(self):
        assert not tf.get_default_graph().finalized
        self.calls.append(f"{self.name} begin")

    def after_create_session(self, session, coord):
        assert session.graph.finalized
        self.calls.append(f"{self.name} created")

    def before_run(self, run_context):
        self.calls.append(f"{self.name} before")
        self.context = run_context
        if self.fetches is not None or self.feeds is not None:
            return tf.train.SessionRunArgs(self.fetches, self.feeds)
        return None

    def after_run(self, run_context, run_values):
        assert run_context is self.context
        self.calls.append(f"{self.name} after {run_values.results}")
        self.runs += 1
        if self.at_run is not None:
            self.at_run(self.runs, run_context)

    def end(self, session):
        self.calls.append(f"{self.name} end")


def test_the_order_of_hooks():
    """Each stage visits all hooks in their order; results have the structure of what a hook asked for."""
    x = tf.constant(1)
    calls = []
    hooks = [Recorder("a", calls, {"x": [x, tf.no_op()]}), Recorder("b", calls)]
    with tf.train.MonitoredSession(hooks=hooks) as session:
        assert session.graph is tf.get_default_graph()
        assert session.run({"mine": x}) == {"mine": 1}
        assert hooks[0].context.original_args == tf.train.SessionRunArgs({"mine": x}, None)
    assert calls == [
        *("a begin", "b begin", "a created", "b created", "a before", "b before"),
        f"a after {{'x': [{np.int32(1)!r}, None]}}",
        *("b after None", "a end", "b end"),
    ]
    assert not tf.get_default_graph().finalized
    assert session.should_stop()
    assert session.graph is None
    with pytest.raises(RuntimeError, match="Session is already closed"):
        session.close()
    with pytest.raises(RuntimeError, match="Session is already closed"):
        session.run(x)


def test_feeds_of_hooks():
    """Hooks feed the run; a tensor fed by two of them, or by a hook and the caller, is an error."""
    x = tf.placeholder(tf.float32, [])
    with tf.train.MonitoredSession(hooks=[Recorder("a", [], feeds={x: 2.0})]) as session:
        assert session.run(x) == 2.0
        with pytest.raises(RuntimeError, match="Same tensor is fed by a SessionRunHook and user"):
            session.run(x, {x: 1.0})
    hooks = [Recorder("a", [], feeds={x: 2.0}), Recorder("b", [], feeds={x: 3.0})]
    with tf.train.MonitoredSession(hooks=hooks) as session, pytest.raises(RuntimeError, match="fed by two hooks"):
        session.run(x)


def test_options_of_hooks_and_caller_are_merged():
    """A hook that wants a trace gets it, whatever the caller's options say."""
    x = tf.constant(1.0) + 1

    class Tracer(tf.train.SessionRunHook):
        def before_run(self, run_context):
            return tf.train.SessionRunArgs(None, options=tf.RunOptions(trace_level=tf.RunOptions.FULL_TRACE))

        def after_run(self, run_context, run_values):
            self.options, self.metadata = run_values.options, run_values.run_metadata

    tracer = Tracer()
    with tf.train.MonitoredSession(hooks=[tracer]) as session:
        session.run(x, options=tf.RunOptions(timeout_in_ms=60000))
    assert (tracer.options.trace_level, tracer.options.timeout_in_ms) == (tf.RunOptions.FULL_TRACE, 60000)
    assert tracer.metadata.step_stats.dev_stats


@pytest.mark.parametrize("error", [tf.errors.AbortedError, tf.errors.UnavailableError])
def test_recovery_from_a_lost_worker(error, model, tmp_path, log):
    """The run is made again in a new session, which is restored; hooks hear of it. A singular session raises."""

    def fail(runs, run_context):
        if runs == 3:
            raise error(None, None, "lost")

    calls = []
    with tf.train.MonitoredTrainingSession(
        checkpoint_dir=str(tmp_path), save_checkpoint_steps=2, hooks=[Recorder("a", calls, at_run=fail)]
    ) as session:
        for _ in range(4):
            session.run(model.train)
        value = session.run(model.value)
    # Steps 1 and 2 were saved; step 3 was lost with its session and made again.
    assert value == 4.0
    assert calls.count("a created") == 2
    assert any(line.startswith("An error was raised. This may be due to a preemption") for line in log)
    singular = Recorder("b", [], at_run=fail)
    with pytest.raises(error, match="lost"), tf.train.SingularMonitoredSession(hooks=[singular]) as session:
        for _ in range(4):
            session.run(model.train)
    assert "b end" not in singular.calls


@pytest.mark.parametrize("error", [tf.errors.OutOfRangeError(None, None, "end"), StopIteration()])
def test_the_end_of_the_input(error):
    """OutOfRangeError and StopIteration leave the block in good order, hooks end."""
    x = tf.constant(1)
    calls = []

    def fail(runs, run_context):
        raise error

    with tf.train.MonitoredSession(hooks=[Recorder("a", calls, at_run=fail)]) as session:
        session.run(x)
    assert calls[-1] == "a end"


@pytest.mark.parametrize("error", [ValueError("bad"), KeyboardInterrupt()])
def test_other_exceptions_pass_and_hooks_do_not_end(error):
    """The session is closed, the exception goes on."""
    calls = []

    def fail(runs, run_context):
        raise error

    x = tf.constant(1)
    with pytest.raises(type(error)), tf.train.MonitoredSession(hooks=[Recorder("a", calls, at_run=fail)]) as session:
        raw = session._sess.session
        session.run(x)
    assert "a end" not in calls
    with pytest.raises(RuntimeError, match="closed Session"):
        raw.run(x)


def test_a_hook_asks_to_stop():
    """After `request_stop` the loop ends; a further run is an error."""
    x = tf.constant(1)
    with tf.train.MonitoredSession(hooks=[Recorder("a", [], at_run=lambda _, run: run.request_stop())]) as session:
        assert not session.should_stop()
        session.run(x)
        assert session.should_stop()
        with pytest.raises(RuntimeError, match="Run called even after should_stop requested"):
            session.run(x)


def test_step_functions():
    """They see the raw session and runs with hooks, return their value, and stop by StopIteration."""
    x = tf.constant(2)
    calls = []

    def step(step_context):
        return step_context.session.run(x) + step_context.run_with_hooks(x)

    class Owner:
        def step(self, step_context):
            step_context.request_stop()

    with tf.train.MonitoredSession(hooks=[Recorder("a", calls)]) as session:
        assert session.run_step_fn(step) == 4
        assert calls.count("a before") == 1
        with pytest.raises(ValueError, match=r"Got \('a',\) instead"):
            session.run_step_fn(lambda a: a)
        with pytest.raises(TypeError):
            session.run_step_fn(3)
        session.run_step_fn(Owner().step)
        raise AssertionError("the step function ends the block")


def test_the_error_of_an_input_thread_comes_out():
    """What a queue runner failed with is raised by the run that waits for its elements."""
    queue = tf.FIFOQueue(4, tf.float32, shapes=[])
    bad = tf.py_func(lambda: (_ for _ in ()).throw(ValueError("no such data")), [], tf.float32)
    bad.set_shape([])
    tf.train.add_queue_runner(tf.train.QueueRunner(queue, [queue.enqueue(bad)]))
    item = queue.dequeue()
    with pytest.raises(Exception, match="no such data"), tf.train.MonitoredSession() as session:
        while not session.should_stop():
            session.run(item)
        session.run(item)


def test_input_queues_end_the_loop():
    """A pipeline with a number of epochs ends the block, and its threads with it."""
    names = tf.train.string_input_producer(["a", "b"], num_epochs=2, shuffle=False).dequeue()
    found = []
    with tf.train.MonitoredSession() as session:
        while not session.should_stop():
            found.append(session.run(names))
    assert found == [b"a", b"b"] * 2


def test_the_raw_session_of_a_singular_session_saves(model, tmp_path):
    """`raw_session` is a Session, usable with a Saver; a MonitoredSession is not."""
    saver = tf.train.Saver()
    with tf.train.SingularMonitoredSession() as session:
        assert saver.save(session.raw_session(), str(tmp_path / "model"))
        with pytest.raises(TypeError, match="'sess' must be a Session"):
            saver.save(session, str(tmp_path / "other"))


def test_workers_wait_for_the_chief(model):
    """A worker's session that nobody initializes fails after `max_wait_secs`."""
    scaffold = tf.train.Scaffold()
    creator = tf.train.WorkerSessionCreator(scaffold, max_wait_secs=0)
    with pytest.raises(tf.errors.DeadlineExceededError):
        creator.create_session()
