"""Hooks: what each asks for, does, logs and writes, and what its constructor refuses."""

from __future__ import annotations

import copy
import json
import pickle
import re

import numpy as np
import pytest

import stoker.compat.v1 as tf


def events(directory):
    return [
        event
        for path in sorted(directory.glob("events*"))
        for event in tf.train.summary_iterator(str(path))
        if not event.file_version
    ]


REFUSALS = {
    "StopAtStepHook": [({}, "One of num_steps or last_step"), ({"num_steps": 1, "last_step": 2}, "Only one of")],
    "LoggingTensorHook": [
        ({"tensors": []}, "exactly one of every_n_iter and every_n_secs"),
        ({"tensors": [], "every_n_iter": 1, "every_n_secs": 1}, "exactly one of"),
        ({"tensors": [], "every_n_iter": 0}, "invalid every_n_iter=0"),
    ],
    "CheckpointSaverHook": [
        ({"checkpoint_dir": "d"}, "Either every_secs or every_steps"),
        ({"checkpoint_dir": "d", "save_secs": 1, "save_steps": 1}, "Can not provide both"),
        ({"checkpoint_dir": "d", "save_secs": 1, "saver": 1, "scaffold": 1}, "both saver and scaffold"),
    ],
    "StepCounterHook": [
        ({"every_n_steps": None}, "exactly one of every_n_steps"),
        ({"every_n_secs": 1}, "exactly one of every_n_steps"),
    ],
    "SummarySaverHook": [
        ({"save_steps": 1}, "Exactly one of scaffold or summary_op"),
        ({"save_steps": 1, "summary_op": 1, "scaffold": 1}, "Exactly one of scaffold or summary_op"),
        ({"summary_op": 1}, "Either every_secs or every_steps"),
    ],
    "ProfilerHook": [
        ({}, "Either every_secs or every_steps"),
        ({"save_steps": 1, "save_secs": 1}, "Can not provide both"),
    ],
    "SecondOrStepTimer": [({}, "Either every_secs"), ({"every_secs": 1, "every_steps": 1}, "Can not provide both")],
}


@pytest.mark.parametrize(("name", "arguments", "words"), [(n, a, w) for n, all in REFUSALS.items() for a, w in all])
def test_refused_arguments(name, arguments, words):
    """Intervals and sources that contradict each other are ValueErrors."""
    with pytest.raises(ValueError, match=words):
        getattr(tf.train, name)(**arguments)


def test_estimator_has_the_same_objects():
    """The names of tf.estimator are the hooks of tf.train."""
    for name in (
        *REFUSALS,
        "SessionRunHook",
        "SessionRunArgs",
        "FinalOpsHook",
        "NanTensorHook",
        "CheckpointSaverListener",
    ):
        assert getattr(tf.estimator, name) is getattr(tf.train, name)


def test_run_args_are_tuples():
    """SessionRunArgs and SessionRunValues compare, copy and pickle as tuples."""
    args = tf.train.SessionRunArgs([1], {"a": 2})
    assert args == ([1], {"a": 2}, None)
    assert pickle.loads(pickle.dumps(args)) == copy.copy(args) == args
    assert repr(args) == "SessionRunArgs(fetches=[1], feed_dict={'a': 2}, options=None)"
    assert tf.train.SessionRunValues(1, 2, 3).run_metadata == 3


def test_a_timer_fires_once_in_an_interval():
    """The first step fires; then every third; the same step does not fire twice."""
    timer = tf.train.SecondOrStepTimer(every_steps=3)
    fired = []
    for step in range(8):
        if timer.should_trigger_for_step(step):
            fired.append(step)
            elapsed = timer.update_last_triggered_step(step)
            assert not timer.should_trigger_for_step(step)
    assert fired == [0, 3, 6]
    assert elapsed[1] == 3
    assert timer.last_triggered_step() == 6
    timer.reset()
    assert timer.last_triggered_step() is None


@pytest.mark.parametrize("name", ["StopAtStepHook", "StepCounterHook", "GlobalStepWaiterHook"])
def test_hooks_need_a_global_step(name):
    """Without a global step `begin` raises RuntimeError."""
    hook = getattr(tf.train, name)(*([] if name == "StepCounterHook" else [1]))
    with pytest.raises(RuntimeError, match=f"Global step should be created to use {name}"):
        hook.begin()


@pytest.mark.parametrize(("arguments", "steps"), [({"num_steps": 3}, 5), ({"last_step": 4}, 4)])
def test_stop_at_step(model, arguments, steps):
    """`num_steps` counts from the step at the start, `last_step` is absolute."""
    start = tf.assign(model.step, 2)
    scaffold = tf.train.Scaffold(init_fn=lambda _, session: session.run(start))
    with tf.train.SingularMonitoredSession([tf.train.StopAtStepHook(**arguments)], scaffold) as session:
        while not session.should_stop():
            session.run(model.train)
        assert session.raw_session().run(model.step) == steps


def test_logging(log):
    """Tensors by name, in order of their tags; every second run, with the time; once more at the end; or in another form."""
    x = tf.constant([1.0, 1e-7], name="x")
    hooks = [
        tf.train.LoggingTensorHook({"b": "x:0", "a": x}, every_n_iter=2),
        tf.train.LoggingTensorHook(["x"], at_end=True),
        tf.train.LoggingTensorHook({"x": x}, every_n_secs=1000, formatter=lambda values: f"made of {sorted(values)}"),
    ]
    with tf.train.MonitoredSession(hooks=hooks) as session:
        for _ in range(3):
            session.run(x)
    lines = [re.sub(r"\(\d\.\d{3} sec\)", "(T)", line) for line in log if "=" in line or "made" in line]
    text = "[1.        0.0000001]"
    assert lines == [f"a = {text}, b = {text}", "made of ['x']", f"a = {text}, b = {text} (T)", f"x = {text}"]
    with pytest.raises(KeyError, match="does not exist"):
        tf.train.LoggingTensorHook(["nothing"], every_n_iter=1).begin()
    with pytest.raises(ValueError, match="should have graph attribute"):
        tf.train.LoggingTensorHook({"a": 3}, every_n_iter=1).begin()


def test_checkpoints_and_listeners(model, tmp_path, log):
    """A checkpoint at the start, on schedule and at the end, listeners around each; the graph is written as text."""
    calls = []

    class Listener(tf.train.CheckpointSaverListener):
        def begin(self):
            calls.append("begin")

        def before_save(self, session, global_step_value):
            calls.append(f"before {global_step_value}")

        def after_save(self, session, global_step_value):
            calls.append(f"after {global_step_value}")
            return global_step_value == 4

        def end(self, session, global_step_value):
            calls.append(f"end {global_step_value}")

    saver = tf.train.Saver()
    hook = tf.train.CheckpointSaverHook(
        str(tmp_path), save_steps=2, saver=saver, checkpoint_basename="m", listeners=[Listener()]
    )
    with tf.train.MonitoredSession(hooks=[hook]) as session:
        while not session.should_stop():
            session.run(model.train)
    expected = ["begin", "before 0", "after 0", "before 2", "after 2", "before 4", "after 4", "end 4"]
    assert calls == expected
    assert tf.train.latest_checkpoint(str(tmp_path)) == str(tmp_path / "m-4")
    assert "node {" in (tmp_path / "graph.pbtxt").read_text()
    logs = [(event.step, event.session_log.status) for event in events(tmp_path) if event.HasField("session_log")]
    assert logs == [(step, tf.SessionLog.CHECKPOINT) for step in (0, 2, 4)]
    assert f"Saving checkpoints for 2 into {tmp_path / 'm'}." in log
    assert any("requested that training be stopped" in line for line in log)


def test_checkpoints_without_graphs(model, tmp_path):
    """With `save_graph_def=False` neither the text nor meta graphs are written."""
    with tf.train.MonitoredTrainingSession(checkpoint_dir=str(tmp_path), save_graph_def=False) as session:
        session.run(model.train)
    assert tf.train.latest_checkpoint(str(tmp_path)) == str(tmp_path / "model.ckpt-1")
    assert not list(tmp_path.glob("*.meta"))
    assert not (tmp_path / "graph.pbtxt").exists()


def test_the_saver_of_a_checkpoint_hook(model, tmp_path):
    """Without saver or scaffold the collection's only saver is used; none or two are errors."""
    hook = tf.train.CheckpointSaverHook(str(tmp_path), save_steps=1)
    with pytest.raises(RuntimeError, match="No items in collection savers"):
        hook._get_saver()
    for _ in range(2):
        tf.add_to_collection(tf.GraphKeys.SAVERS, tf.train.Saver())
    with pytest.raises(RuntimeError, match="More than one item in collection savers"):
        hook._get_saver()


def test_summaries_and_step_rates(model, tmp_path, log):
    """Summaries of the first step and of every second one after it, the rate of steps, and the start of the session."""
    tf.summary.scalar("watched", model.value)
    with tf.train.MonitoredTrainingSession(
        checkpoint_dir=str(tmp_path), save_summaries_steps=2, log_step_count_steps=2, save_checkpoint_secs=None
    ) as session:
        for _ in range(5):
            session.run(model.train)
    found = [(event.step, value.tag) for event in events(tmp_path) for value in event.summary.value]
    assert found == [(1, "watched"), (3, "global_step/sec"), (3, "watched"), (5, "global_step/sec"), (5, "watched")]
    starts = [event.step for event in events(tmp_path) if event.session_log.status == tf.SessionLog.START]
    assert starts == [1]
    assert sum(line.startswith("global_step/sec: ") for line in log) == 2
    assert not list(tmp_path.glob("model*"))


def test_a_step_that_does_not_count_is_reported(model, log):
    """A global step that stands still is warned about."""
    with tf.train.MonitoredSession(hooks=[tf.train.StepCounterHook(1)]) as session:
        for _ in range(3):
            session.run(model.value)
    assert sum("It seems that global step" in line for line in log) == 2


def test_nan(model, log):
    """A loss that is NaN raises, or just ends the loop."""
    loss = tf.constant(np.nan)
    hooks = [tf.train.NanTensorHook(loss)]
    with (
        pytest.raises(tf.train.NanLossDuringTrainingError, match="NaN loss during training"),
        tf.train.MonitoredSession(hooks=hooks) as session,
    ):
        session.run(loss)
    with tf.train.MonitoredSession(hooks=[tf.train.NanTensorHook(loss, fail_on_nan_loss=False)]) as session:
        session.run(loss)
        assert session.should_stop()
    assert log.count("Model diverged with loss = NaN.") == 2
    assert issubclass(tf.train.NanLossDuringTrainingError, RuntimeError)


def test_feeding_waiting_and_final_values(model, monkeypatch, log):
    """FeedFnHook feeds, GlobalStepWaiterHook holds the first run back, FinalOpsHook reads at the end."""
    x = tf.placeholder(tf.float32, [])
    numbers = iter([1.0, 2.0])
    final = tf.train.FinalOpsHook({"v": model.value, "x": x}, {x: 9.0})
    waiter = tf.train.GlobalStepWaiterHook(2)
    hooks = [tf.train.FeedFnHook(lambda: {x: next(numbers)}), waiter, final]
    with tf.train.SingularMonitoredSession(hooks) as session:
        raw = session.raw_session()
        monkeypatch.setattr("stoker._src.train.sessions.basic_hooks.time.sleep", lambda _: raw.run(model.train))
        assert session.run([x, model.step]) == [1.0, 2]
        assert session.run(x) == 2.0
    assert final.final_ops_values == {"v": 2.0, "x": 9.0}
    assert "Waiting for global step 2 before starting training." in log


def test_profiles(model, tmp_path):
    """Timelines are JSON that Chrome opens, written at the steps asked for; the event file has the metadata."""
    with tf.train.MonitoredSession(hooks=[tf.train.ProfilerHook(save_steps=2, output_dir=str(tmp_path))]) as session:
        for _ in range(5):
            session.run(model.train)
    tf.summary.FileWriterCache.clear()
    files = sorted(path.name for path in tmp_path.glob("timeline-*"))
    assert files == ["timeline-2.json", "timeline-4.json"]
    trace = json.loads((tmp_path / files[0]).read_text())
    assert {"AssignAdd"} <= {event["name"] for event in trace["traceEvents"]}
    tags = [event.tagged_run_metadata.tag for event in events(tmp_path) if event.HasField("tagged_run_metadata")]
    assert tags == ["step_2", "step_4"]


@pytest.mark.parametrize("counts_at_once", [True, False])
def test_schedules_of_summaries(tmp_path, counts_at_once):
    """Summaries are written every fifth step, wherever in a run the step is updated, and also if the first run trains nothing."""
    step = tf.train.get_or_create_global_step()
    value = tf.get_variable("value", initializer=1.0)
    loss = tf.square(value)
    trained = tf.train.GradientDescentOptimizer(0.1).minimize(loss, step)
    train = tf.assign_add(step, 1) if counts_at_once else trained
    tf.summary.scalar("loss", loss)
    with tf.train.MonitoredTrainingSession(
        checkpoint_dir=str(tmp_path), save_summaries_steps=5, log_step_count_steps=None, save_checkpoint_secs=None
    ) as session:
        session.run(train if counts_at_once else loss)
        for _ in range(17):
            session.run(train)
    found = [event.step for event in events(tmp_path) if event.summary.value]
    assert found == ([1, 6, 11, 16] if counts_at_once else [0, 5, 10, 15])


def test_a_step_that_is_traced_again_after_a_lost_session(model, tmp_path):
    """A trace of the same step overwrites the file of the first one. It has no second record, because its tag would be used twice."""
    hook = tf.train.ProfilerHook(save_steps=1, output_dir=str(tmp_path))
    back = tf.assign(model.step, 1)
    with tf.train.SingularMonitoredSession(hooks=[hook]) as session:
        for _ in range(4):
            session.run(model.train)
        session.raw_session().run(back)
        for _ in range(3):
            session.run(model.train)
    tf.summary.FileWriterCache.clear()
    tags = [event.tagged_run_metadata.tag for event in events(tmp_path) if event.HasField("tagged_run_metadata")]
    assert len(tags) == len(set(tags))
