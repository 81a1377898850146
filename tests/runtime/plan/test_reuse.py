"""Kernels that write over an input: only where nobody can notice."""

from __future__ import annotations

import numpy as np
import pytest

import stoker.compat.v1 as tf
from stoker._src.runtime.plan import fused_loops

LARGE = np.random.RandomState(0).randn(200, 200)


@pytest.fixture(autouse=True)
def without_fused_loops(monkeypatch):
    """Each op runs its own kernel."""
    monkeypatch.setattr(fused_loops, "native", None)


def _plan(fetches, *feeds):
    with tf.Session() as session:
        return session.explain(fetches, list(feeds))


def test_a_value_that_dies_is_overwritten():
    """relu(x * 2) needs one new tensor."""
    x = tf.placeholder(tf.float64, [200, 200])
    y = tf.nn.relu(x * 2.0)
    assert "Relu_relu_(" in _plan(y, x)
    with tf.Session() as session:
        fed = LARGE.copy()
        np.testing.assert_array_equal(session.run(y, {x: fed}), np.maximum(LARGE * 2, 0))
        np.testing.assert_array_equal(fed, LARGE)


def test_feeds_variables_and_constants_are_left_alone():
    """What somebody else owns is never written over."""
    x = tf.placeholder(tf.float64, [200, 200])
    v = tf.Variable(LARGE)
    c = tf.constant(LARGE)
    fetches = [tf.nn.relu(x), tf.nn.relu(v), tf.nn.relu(c), tf.tanh(v) + c]
    with tf.Session() as session:
        session.run(v.initializer)
        fed = LARGE.copy()
        for _ in range(2):
            for value in session.run(fetches[:3], {x: fed}):
                np.testing.assert_array_equal(value, np.maximum(LARGE, 0))
            np.testing.assert_allclose(session.run(fetches[3], {x: fed}), np.tanh(LARGE) + LARGE, rtol=1e-5)
        np.testing.assert_array_equal(fed, LARGE)
        np.testing.assert_array_equal(session.run(v), LARGE)


def test_a_value_with_another_use_is_left_alone():
    """The input of relu is fetched too, or has a view that is used later."""
    x = tf.placeholder(tf.float64, [200, 200])
    doubled = x * 2.0
    part = tf.reshape(doubled, [-1])[:10]
    y = tf.nn.relu(doubled)
    with tf.Session() as session:
        both = session.run([y, part, doubled], {x: LARGE})
        np.testing.assert_array_equal(both[1], (LARGE * 2).ravel()[:10])
        np.testing.assert_array_equal(both[2], LARGE * 2)
        viewed = session.run([y, part], {x: LARGE})
        np.testing.assert_array_equal(viewed[1], (LARGE * 2).ravel()[:10])


def test_broadcasting_does_not_shrink_the_result():
    """A row plus a matrix is a matrix, whatever dies."""
    x = tf.placeholder(tf.float64, [None, 200])
    row = tf.reduce_sum(x, 0, keepdims=True)
    y = row * 1.0 + x
    with tf.Session() as session:
        found = session.run(y, {x: LARGE})
        np.testing.assert_allclose(found, LARGE.sum(0, keepdims=True) + LARGE, rtol=1e-4, atol=1e-4)


def test_gradients_with_reuse_equal_those_without():
    """A training step on large tensors gives the mathematics' gradient."""
    x = tf.placeholder(tf.float64, [None, 200])
    w = tf.Variable(LARGE)
    b = tf.Variable(np.zeros(200))
    loss = tf.reduce_sum(tf.nn.relu(tf.matmul(x, w) + b))
    gradients = tf.gradients(loss, [w, b])
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        dw, db = session.run(gradients, {x: LARGE})
    on = (LARGE @ LARGE > 0).astype("d")
    np.testing.assert_allclose(dw, LARGE.T @ on, rtol=1e-3, atol=1e-2)
    np.testing.assert_allclose(db, on.sum(0), rtol=1e-5)


def test_a_sum_goes_into_one_of_the_first_two_values():
    """Sums of lists write over a value of their own, never over what is fed, used again or there twice."""
    x = tf.placeholder(tf.float64, [200, 200])
    doubled = x * 2.0
    sums = [tf.add_n([x, x * 2.0, x]), tf.add_n([doubled, doubled]), tf.add_n([doubled, x]), tf.add_n([x, x])]
    with tf.Session() as session:
        fed = LARGE.copy()
        for total, times in zip(sums, (4, 4, 3, 2)):
            np.testing.assert_allclose(session.run(total, {x: fed}), LARGE * times, rtol=1e-6)
            np.testing.assert_allclose(session.run([total, doubled], {x: fed})[1], LARGE * 2, rtol=1e-6)
        np.testing.assert_array_equal(fed, LARGE)
        unlike = tf.add_n([tf.placeholder_with_default(x[:1], None) * 1.0, x])
        with pytest.raises(tf.errors.InvalidArgumentError, match="same size and shape"):
            session.run(unlike, {x: fed})
