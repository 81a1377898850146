"""Numbers too small for their exponent, which TensorFlow's threads treat as zero."""

import numpy as np
import pytest
import torch

import stoker.compat.v1 as tf
from stoker._src.runtime.plan import threads

pytestmark = pytest.mark.skipif(threads._native is None, reason="needs the C extension")
SMALL = np.float32(1e-38)  # the half of it is subnormal


def halves_are_exact():
    return np.float32(SMALL * np.float32(0.5)) != 0


@pytest.mark.parametrize("elements", [1, 1000, 1 << 20])
def test_results_that_would_be_subnormal_are_zero(elements):
    """A step computes zero instead of subnormal numbers, in all threads, however small it is."""
    x = tf.placeholder(tf.float32, [None])
    product, fused, large = x * 0.5, tf.exp(x - 95.0), tf.matmul(x[:, None], [[0.25]])
    values = np.full(elements, SMALL)
    with tf.Session() as session:
        for _ in range(3):
            for fetch in (product, fused, large):
                np.testing.assert_array_equal(session.run(fetch, {x: values}), 0.0)


def test_threads_that_started_between_runs_compute_zero(monkeypatch):
    """The same holds for threads that started while nothing ran, whether the number of threads is measured or fixed."""
    x = tf.placeholder(tf.float32, [None])
    values, before = np.full(1 << 20, SMALL), torch.get_num_threads()
    try:
        for setting in ("measured", "fixed"):
            monkeypatch.setenv("STOKER_THREADS", setting)
            with tf.Session() as session:
                for threads_between in (1, 4, 2):
                    torch.set_num_threads(threads_between)
                    assert float((torch.full((1 << 20,), 1e-38) * 0.5).max()) > 0
                    torch.set_num_threads(3)
                    np.testing.assert_array_equal(session.run(x * 0.5, {x: values}), 0.0)
    finally:
        torch.set_num_threads(before)


@pytest.mark.parametrize("elements", [1, 1 << 18])
def test_eager_ops_and_functions_compute_zero(elements, eager):
    """Eager ops and functions return zero at each call, however often they have been called."""
    x = tf.constant(np.full(elements, SMALL))
    halves = tf.function(lambda given: given * 0.5)
    for _ in range(20):
        np.testing.assert_array_equal((x * 0.5).numpy(), 0.0)
        np.testing.assert_array_equal(halves(x).numpy(), 0.0)
    assert halves_are_exact()


def test_zero_counts_as_computed():
    """A product that falls below the smallest number is zero for what follows in the same step."""
    x = tf.placeholder(tf.float32, [2])
    small = x * x
    with tf.Session() as session:
        found = session.run([small > 0.0, small / 1e-30], {x: [1e-20, 1.0]})
    np.testing.assert_array_equal(found[0], [False, True])
    np.testing.assert_allclose(found[1], [0.0, 1e30])


def test_programs_keep_exact_numbers():
    """Outside of runs, and in Python code that a run calls, subnormal numbers are what they are."""
    assert halves_are_exact()
    x = tf.placeholder(tf.float32, [])
    inner = tf.py_func(
        lambda value: (np.float32(value * np.float32(0.5)), np.finfo(np.float32).tiny), [x], [tf.float32] * 2
    )
    after = inner[0] * np.float32(1e10) + x * 0.5
    with tf.Session() as session:
        for _ in range(4):
            seen, _ = session.run(inner, {x: SMALL})
            assert seen == SMALL * np.float32(0.5) != 0
            np.testing.assert_allclose(session.run(after, {x: SMALL}), 0.5e-28, rtol=1e-5)
            assert halves_are_exact()


def test_failed_runs_leave_no_trace():
    """A run that raises an error gives the thread's numbers back, too."""
    x = tf.placeholder(tf.float32, [None])

    def refuse(value):
        raise ValueError("no")

    refused = tf.py_func(refuse, [x * 2.0], tf.float32)
    checked = tf.debugging.check_numerics(x, "no numbers")
    with tf.Session() as session:
        for fetch in (refused, checked):
            with pytest.raises(tf.errors.InvalidArgumentError):
                session.run(fetch, {x: [np.nan]})
            assert halves_are_exact()
