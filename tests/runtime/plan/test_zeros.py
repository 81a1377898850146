"""Zeros that are known when planning are left out of a plan, and the results stay the same."""

from __future__ import annotations

import re

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import stoker.compat.v1 as tf
from stoker._src.runtime.plan import zeros

ACTIVATIONS = {
    "relu": tf.nn.relu,
    "leaky_relu": tf.nn.leaky_relu,
    "relu6": tf.nn.relu6,
    "elu": tf.nn.elu,
    "tanh": tf.tanh,
    "softplus": tf.nn.softplus,
}


def _penalty(activation, shape, dtype):
    """Gradients of a penalty on the slope of a network: second derivatives."""
    rows, columns, units = shape
    x = tf.placeholder(dtype, [rows, columns])
    h = x
    for i in range(2):
        with tf.variable_scope(f"layer{i}"):
            w = tf.get_variable("w", [int(h.shape[1]), units], dtype, initializer=tf.random_normal_initializer(seed=i))
            b = tf.get_variable("b", [units], dtype, initializer=tf.random_normal_initializer(seed=i + 7))
            h = ACTIVATIONS[activation](tf.nn.bias_add(tf.matmul(h, w), b))
    slope = tf.gradients(tf.reduce_sum(h), x)[0]
    loss = tf.reduce_mean(tf.square(tf.sqrt(tf.reduce_sum(tf.square(slope), 1) + 1e-6) - 1.0)) + tf.reduce_mean(h)
    return x, [loss, *tf.gradients(loss, tf.trainable_variables())]


def _values(activation, shape, dtype, feed):
    with tf.Graph().as_default(), tf.Session() as session:
        x, fetches = _penalty(activation, shape, dtype)
        session.run(tf.global_variables_initializer())
        plan = session.explain(fetches, {x: feed})
        return session.run(fetches, {x: feed}), plan


@settings(max_examples=10, deadline=None)
@given(
    st.sampled_from(sorted(ACTIVATIONS)),
    st.tuples(st.integers(1, 5), st.integers(1, 6), st.integers(1, 6)),
    st.sampled_from([tf.float32, tf.float64]),
)
def test_second_derivatives_stay_the_same(activation, shape, dtype):
    """Second derivatives of networks of any shape are those of a plan that computes with the zeros."""
    feed = np.random.RandomState(0).randn(*shape[:2])
    found, _ = _values(activation, shape, dtype, feed)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(zeros.Zeros, "plan", lambda self, op: False)
        expected, _ = _values(activation, shape, dtype, feed)
    for a, b in zip(found, expected):
        np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-6)


def test_products_with_zeros_are_left_out():
    """The plan of a penalty on a piecewise linear network has no zeros, and no sum has a term that is zeros."""
    found, plan = _values("leaky_relu", (64, 784, 256), tf.float32, np.ones([64, 784]))
    assert "ZerosLike" not in plan
    assert not re.search(r"# gradients_1/AddN$", plan, re.MULTILINE), "a sum of zeros and the gradient of the slope"
    assert all(np.isfinite(each).all() for each in found)


def test_fetched_zeros_and_sums_of_zeros():
    """Zeros that are fetched have their shape and dtype, also where they are products or sums of zeros."""
    with tf.Graph().as_default(), tf.Session() as session:
        x = tf.placeholder(tf.float64, [2, 3])
        nothing = tf.zeros_like(x)
        fetches = [tf.matmul(nothing, x, transpose_b=True), tf.add_n([nothing, nothing]), tf.add_n([nothing, x, x])]
        fetches += [tf.add_n([x, nothing]), tf.reduce_sum(tf.transpose(nothing), 0), nothing * 3.0]
        feed = np.arange(6.0).reshape(2, 3)
        expected = [np.zeros([2, 2]), feed * 0, feed * 2, feed, np.zeros(2), feed * 0]
        for found, wanted in zip(session.run(fetches, {x: feed}), expected):
            assert found.dtype == np.float64
            np.testing.assert_array_equal(found, wanted)


def test_terms_of_other_shapes_are_still_refused():
    """A sum of zeros and a tensor of another shape fails, though its zeros would not matter."""
    with tf.Graph().as_default(), tf.Session() as session:
        x, y = tf.placeholder(tf.float32, [None, 3]), tf.placeholder(tf.float32, [None, 3])
        total = tf.add_n([tf.zeros_like(x), y])
        with pytest.raises(tf.errors.InvalidArgumentError):
            session.run(total, {x: np.ones([2, 3]), y: np.ones([4, 3])})
