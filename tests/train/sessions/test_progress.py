"""ProgressHook: what the bar shows, and when a training session has one by itself."""

from __future__ import annotations

import io

import pytest

import stoker
import stoker.compat.v1 as tf


class Terminal(io.StringIO):
    def isatty(self):
        return True


def test_the_bar(model):
    """Step, end and loss are drawn; the bar is full at the end."""
    stream = io.StringIO()
    stop = tf.train.StopAtStepHook(num_steps=5)
    with tf.train.MonitoredSession(hooks=[stoker.ProgressHook(stop, model.value, stream), stop]) as session:
        while not session.should_stop():
            session.run(model.train)
    text = stream.getvalue()
    assert "5/5" in text
    assert "loss=" in text
    assert tf.ProgressHook is stoker.ProgressHook


@pytest.mark.parametrize(("terminal", "steps", "shown"), [(True, 3, True), (False, 3, False), (True, None, False)])
def test_by_default(model, monkeypatch, terminal, steps, shown):
    """Training sessions draw a bar on a terminal if the number of steps is known, and are silent otherwise."""
    stream = Terminal() if terminal else io.StringIO()
    monkeypatch.setattr("sys.stderr", stream)
    hooks = [] if steps is None else [tf.train.StopAtStepHook(last_step=steps)]
    with tf.train.MonitoredTrainingSession(hooks=hooks) as session:
        for _ in range(3):
            session.run(model.train)
    assert ("3/3" in stream.getvalue()) == shown
    assert bool(stream.getvalue()) == shown
