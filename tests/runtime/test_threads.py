"""Many threads run one session."""

from __future__ import annotations

import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pytest
import torch

import stoker.compat.v1 as tf
from stoker._src.ops.control_flow.tensor_list_values import rows_of
from stoker._src.ops.support.waiting import RunState, running
from stoker._src.runtime.locks import MOST_PASSED, VariablesLock

ROOT = Path(__file__).resolve().parent.parent.parent


def test_a_few_seconds_of_everything_at_once():
    """Steps of every kind in 20 threads: totals are right, no write is seen by half, everything ends."""
    done = subprocess.run(
        [sys.executable, str(ROOT / "scripts" / "stress_threads.py"), "--seconds", "4"],
        cwd=ROOT, env={"PYTHONPATH": str(ROOT)}, capture_output=True, text=True, timeout=200,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    assert "nothing wrong" in done.stdout


def test_nobody_is_passed_by_more_than_a_bounded_number():
    """Readers go past a writer that waits, but only so many; then all queue behind it, and who waits gets in in order."""
    lock = VariablesLock()
    order: list[str] = []
    lock.acquire_read()

    def write() -> None:
        lock.acquire_write()
        order.append("write")
        lock.release_write()

    def read() -> None:
        lock.acquire_read()
        order.append("read")
        lock.release_read()

    writer = threading.Thread(target=write)
    writer.start()
    while not lock._waiting:
        pass
    for _ in range(MOST_PASSED):
        lock.acquire_read()
        lock.release_read()
    reader = threading.Thread(target=read)
    reader.start()
    while len(lock._waiting) < 2:
        pass
    lock.release_read()
    for thread in (writer, reader):
        thread.join()
    assert order == ["write", "read"]


def test_a_session_closed_while_a_run_waits_cancels_it():
    """The waiting run is cancelled, whatever closing does to the queue it waits for."""
    with tf.Graph().as_default():
        queue = tf.FIFOQueue(1, [tf.int32], [[]])
        take = queue.dequeue()
        for _ in range(20):
            session = tf.Session()
            outcome: list[type] = []

            def wait(session=session, outcome=outcome) -> None:
                try:
                    session.run(take)
                except Exception as error:
                    outcome.append(type(error))

            thread = threading.Thread(target=wait)
            thread.start()
            session.close()
            thread.join()
            assert outcome[0] in (tf.errors.CancelledError, RuntimeError)


def test_a_loop_ends_when_its_time_is_over():
    """A while_loop that would go on for ever fails with DeadlineExceededError."""
    endless = tf.while_loop(lambda i: i >= 0, lambda i: i * 0, [tf.constant(0)])
    with tf.Session() as session, pytest.raises(tf.errors.DeadlineExceededError):
        session.run(endless, options=tf.RunOptions(timeout_in_ms=20))
    config = tf.ConfigProto(operation_timeout_in_ms=20)
    with tf.Session(config=config) as session, pytest.raises(tf.errors.DeadlineExceededError):
        session.run(endless)


def test_a_run_that_is_cancelled_in_python_code_has_no_result():
    """If a session closes, or time runs out, while a Python function runs, the run fails when the function returns."""
    session = tf.Session()
    closes = tf.py_func(lambda: np.int32(session.close() or 1), [], tf.int32)
    with pytest.raises(tf.errors.CancelledError):
        session.run(closes)
    over = tf.py_func(lambda: np.int32(threading.Event().wait(0.05)), [], tf.int32)
    with tf.Session() as session, pytest.raises(tf.errors.DeadlineExceededError):
        session.run(over, options=tf.RunOptions(timeout_in_ms=10))


def test_a_session_in_python_code_ends_with_the_run_around_it():
    """A run of another session that a Python function starts is cancelled with the run of that function."""
    endless = tf.while_loop(lambda i: i >= 0, lambda i: i * 0, [tf.constant(0)])
    with tf.Session() as inner, tf.Session() as session:
        outer = tf.py_func(lambda: inner.run(endless), [], tf.int32)
        with pytest.raises(tf.errors.DeadlineExceededError):
            session.run(outer, options=tf.RunOptions(timeout_in_ms=50))
        assert inner.run(tf.constant(3)) == 3


def test_closing_a_session_ends_its_loops():
    """A while_loop that runs in another thread fails with CancelledError."""
    entered = threading.Event()
    first = tf.py_func(lambda: np.int32(entered.set() or 0), [], tf.int32)
    endless = tf.while_loop(lambda i: i >= 0, lambda i: i * 0, [first], shape_invariants=[tf.TensorShape(None)])
    session = tf.Session()
    errors = []

    def run():
        try:
            session.run(endless)
        except tf.errors.CancelledError as error:
            errors.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    entered.wait()
    session.close()
    thread.join()
    assert len(errors) == 1


def test_only_ops_that_may_wait_for_each_other_get_threads():
    """Of blocking ops in one run, those that need each other's results run one after the other in the run's own thread."""
    one, two = tf.FIFOQueue(3, tf.float32, [[]]), tf.FIFOQueue(3, tf.float32, [[]])
    with tf.Session() as session:
        chain = two.enqueue(one.dequeue() + 1.0)
        assert "started(" not in session.explain(chain)
        apart = [one.enqueue(1.0), two.dequeue()]
        assert session.explain(apart).count("started(") == 2
        session.run(one.enqueue(1.0))
        session.run(chain)
        assert session.run(apart)[1] == 2.0


def test_dividing_a_long_tensor_into_a_list_ends_with_the_run():
    """map_fn over millions of rows first makes a list of them; a run that is cancelled does not wait for the whole list."""
    state = RunState()
    state.cancel()
    with running(state):
        assert len(rows_of(torch.zeros(10, 2))) == 10
        with pytest.raises(tf.errors.CancelledError, match="Dividing a tensor"):
            rows_of(torch.zeros(200_000))
    rows = rows_of(torch.arange(120_001))
    assert len(rows) == 120_001
    assert [int(rows[i]) for i in (0, 49_999, 50_000, 120_000)] == [0, 49_999, 50_000, 120_000]
