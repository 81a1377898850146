"""The number of threads of a step is chosen by measurement, within what the caller allows."""

import threading

import numpy as np
import pytest
import torch

import stoker.compat.v1 as tf
from stoker._src.base.extensions import extension
from stoker._src.runtime.plan import threads

needs_native = pytest.mark.skipif(
    extension("stoker._src.runtime.native.threads") is None, reason="built without the C extension"
)


@pytest.fixture
def four_threads(monkeypatch):
    """The number of threads is chosen, up to four of them, whatever the machine has."""
    monkeypatch.delenv("STOKER_THREADS")
    before = torch.get_num_threads()
    torch.set_num_threads(4)
    yield
    torch.set_num_threads(before)


@needs_native
def test_every_number_of_threads_is_tried_and_the_callers_number_restored(four_threads):
    """A tuner tries 1, 2, 4 threads; after each run the caller has its own number again."""
    tuner = threads.tuner()
    x, seen = torch.randn(64, 64), set()
    for _ in range(20_000):
        began = tuner.begin()
        seen.add(torch.get_num_threads())
        torch.mm(x, x)
        tuner.end(began)
        assert torch.get_num_threads() == 4
        if tuner.threads is not None:
            break
    assert seen <= {1, 2, 4} and 1 in seen and 4 in seen
    assert tuner.threads in (1, 2, 4)


@needs_native
def test_a_run_inside_of_a_run_keeps_the_outer_choice(four_threads):
    """A nested run (a session used by py_func) leaves the number of threads alone."""
    outer, inner = threads.tuner(), threads.tuner()
    for _ in range(10):
        began = outer.begin()
        chosen = torch.get_num_threads()
        nested = inner.begin()
        assert torch.get_num_threads() == chosen
        inner.end(nested)
        assert torch.get_num_threads() == chosen
        outer.end(began)
    assert torch.get_num_threads() == 4


@needs_native
def test_a_wait_has_the_callers_number_of_threads(four_threads):
    """While a run waits, its thread has the caller's number of threads, and a run that starts meanwhile chooses for itself."""
    tuner, other = threads.tuner(), threads.tuner()
    x, alone = torch.randn(64, 64), set()
    for _ in range(20_000):
        began = tuner.begin()
        chosen = torch.get_num_threads()
        threads.pause()
        assert torch.get_num_threads() == 4
        inner = other.begin()
        alone.add(torch.get_num_threads())
        torch.mm(x, x)
        other.end(inner)
        threads.resume()
        assert torch.get_num_threads() == chosen
        tuner.end(began)
        if other.threads is not None:
            break
    assert alone >= {1, 4}


@needs_native
def test_a_run_that_waits_chooses_its_threads(four_threads):
    """The number of threads of a step behind a queue is chosen, too, and a failed wait restores the caller's number."""
    with tf.Graph().as_default(), tf.Session() as session:
        queue = tf.FIFOQueue(4, [tf.float32], shapes=[[200, 200]])
        put, x = queue.enqueue(tf.ones([200, 200])), queue.dequeue()
        y = tf.reduce_sum(tf.matmul(x, x), 1)
        for _ in range(2_000):
            session.run(put)
            np.testing.assert_array_equal(session.run(y), np.full(200, 200.0 * 200.0))
            if "# threads: " in session.explain(y):
                break
        assert "# threads: " in session.explain(y)
        session.run(queue.close())
        for _ in range(4):
            with pytest.raises(tf.errors.OutOfRangeError):
                session.run(y)
            assert torch.get_num_threads() == 4


def test_the_number_of_threads_can_be_fixed(monkeypatch, four_threads):
    """STOKER_THREADS=fixed switches the choice off."""
    monkeypatch.setenv("STOKER_THREADS", "fixed")
    fixed = threads.tuner()
    for _ in range(20):
        began = fixed.begin()
        assert torch.get_num_threads() == 4
        fixed.end(began)
    assert fixed.threads is None


def test_values_do_not_depend_on_the_number_of_threads(four_threads):
    """While a session tries numbers of threads, every run returns the same values, also from two Python threads at once."""
    x = np.random.RandomState(0).randn(96, 96).astype(np.float32)
    with tf.Graph().as_default(), tf.Session() as session:
        given = tf.placeholder(tf.float32, [96, 96])
        y = tf.nn.softmax(tf.matmul(tf.tanh(tf.matmul(given, given)), given))
        expected = session.run(y, {given: x})
        found = []

        def work():
            found.append(all(np.allclose(session.run(y, {given: x}), expected, atol=1e-5) for _ in range(150)))

        workers = [threading.Thread(target=work) for _ in range(2)]
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join()
    assert found == [True, True]
    assert torch.get_num_threads() == 4


def test_a_failing_run_restores_the_number_of_threads(four_threads):
    """An error in a step does not leave the caller with another number of threads."""
    with tf.Graph().as_default(), tf.Session() as session:
        size = tf.placeholder(tf.int32, [])
        y = tf.reshape(tf.ones([4, 4]), [size, 2])
        session.run(y, {size: 8})
        for _ in range(6):
            with pytest.raises(tf.errors.InvalidArgumentError):
                session.run(y, {size: 3})
    assert torch.get_num_threads() == 4


@pytest.mark.parametrize("size", [1 << 15, (1 << 15) + 1, 100_003])
def test_a_total_does_not_depend_on_the_number_of_threads(size):
    """The sum and the mean of a large tensor have the same bits with any number of threads."""
    x = np.random.RandomState(1).randn(size).astype(np.float32)
    before, found = torch.get_num_threads(), []
    with tf.Graph().as_default(), tf.Session() as session:
        given = tf.placeholder(tf.float32, [None])
        fetches = [tf.reduce_sum(given), tf.reduce_mean(given)]
        try:
            for count in (1, 2, 4):
                torch.set_num_threads(count)
                found.append(session.run(fetches, {given: x}))
        finally:
            torch.set_num_threads(before)
    assert found[0] == found[1] == found[2]
    np.testing.assert_allclose(found[0], [x.sum(dtype=np.float64), x.mean(dtype=np.float64)], rtol=1e-4, atol=1e-6)


@needs_native
def test_threads_compute_whether_they_poll_or_sleep_between_ops():
    """Switching between polling and sleeping threads, as on a machine that becomes busy and quiet again, changes no result."""
    native = extension("stoker._src.runtime.native.threads")
    before = torch.get_num_threads()
    torch.set_num_threads(4)
    x = torch.arange(300_000, dtype=torch.float32)
    try:
        for polls in (False, True, False, False, True, True):
            native.set_polling(polls)
            torch.testing.assert_close(x * 2 + x, 3 * x)
    finally:
        native.set_polling(True)
        torch.set_num_threads(before)
