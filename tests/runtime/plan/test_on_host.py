"""Small runs of a program with a GPU, on the host with copies of variables. There is no GPU here: the copies are what is tested."""

from __future__ import annotations

import numpy as np
import pytest
import torch

import stoker.compat.v1 as tf
from stoker._src.runtime.plan.on_host import Choice, OnHost, read_variables


def _plan(session, fetches, feeds):
    plan = session._plan(fetches, feeds, None)
    return plan, [convert(value) for convert, value in zip(plan.converters, feeds.values())]


@pytest.mark.parametrize("resource", [False, True])
def test_copies_follow_the_variables(resource):
    """A run on the host sees what the last update wrote, and takes no copies while nothing is written."""
    x = tf.placeholder(tf.float32, [3])
    v = tf.get_variable("v", [3], initializer=tf.ones_initializer(), use_resource=resource)
    y, more = tf.tanh(x * v) + 1.0, tf.assign_add(v, [1.0, 2.0, 3.0])
    with tf.Session() as session:
        session.run(v.initializer)
        plan, values = _plan(session, y, {x: np.ones(3, "f")})
        worker = session._runner._worker
        assert [
            state.name for state in read_variables(plan._planner(with_fused_loops=False).build(), worker.placement)
        ] == ["v"]
        on_host = OnHost(plan._planner, values, worker.variables_lock)
        (first,) = on_host(None, values)
        np.testing.assert_allclose(first.numpy(), np.tanh([1, 1, 1]) + 1, rtol=1e-6)
        (_, copied) = on_host._copies[0]
        kept = copied.value
        on_host(None, values)
        assert copied.value is kept
        session.run(more)
        (second,) = on_host(None, values)
        np.testing.assert_allclose(second.numpy(), np.tanh([2, 3, 4]) + 1, rtol=1e-6)


def test_runs_that_write_wait_or_loop_stay_on_the_gpu():
    """Only plans that compute from feeds and variables can run on copies."""
    x = tf.placeholder(tf.float32, [3])
    v = tf.get_variable("v", [3], initializer=tf.ones_initializer())
    queue = tf.FIFOQueue(3, tf.float32, [[]])
    loop = tf.while_loop(lambda i: i < 3, lambda i: i + 1, [0])
    with tf.Session() as session:
        session.run(v.initializer)
        for fetch in (tf.assign_add(v, x), queue.dequeue(), loop):
            plan, _ = _plan(session, fetch, {x: np.ones(3, "f")})
            assert (
                read_variables(plan._planner(with_fused_loops=False).build(), session._runner._worker.placement) is None
            )


def test_the_faster_way_is_kept(monkeypatch):
    """Both ways are measured in turns, then one is used. `session.explain` says so."""
    clock = [0.0]
    monkeypatch.setattr("time.perf_counter", lambda: clock[0])
    for slow, expected in ((0.5, True), (1e-6, False)):
        used = []

        def run(kind, seconds, used=used):
            clock[0] += seconds
            used.append(kind)
            return (torch.zeros(1),)

        choice = Choice(lambda holding, values, run=run: run("host", 1e-4))  # type: ignore[arg-type]
        for _ in range(30):
            choice.run(lambda run=run, slow=slow: run("gpu", slow), None, [])
        assert choice.chosen is expected and set(used[-5:]) == {"host" if expected else "gpu"}
        assert (choice.remark is not None) is expected
