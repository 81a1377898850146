"""Gradients of weights that a loop sums up are computed after the loop, with the same values."""

from unittest import mock

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import stoker.compat.v1 as tf
from stoker._src.runtime.functions import bodies, loop_sums


def gradients(steps, batch, units, build, limit=None):
    """The gradients of a cell that is repeated `steps` times, and how many sums were left for the end of its loops."""
    random = np.random.RandomState(steps * 100 + batch * 10 + units)
    found = []

    def counted(*args):
        found.extend(sums := loop_sums.loop_sums(*args))
        return sums

    replaced = mock.patch.object(bodies, "loop_sums", counted if limit != 0 else lambda *args: [])
    most = mock.patch.object(loop_sums, "_MOST_BYTES", limit or loop_sums._MOST_BYTES)
    with replaced, most, tf.Graph().as_default(), tf.Session() as session:
        x = tf.constant(random.randn(batch, units).astype("f"))
        w = tf.constant(random.randn(units, units).astype("f") * 0.3)
        b = tf.constant(random.randn(units).astype("f"))
        _, y = tf.while_loop(lambda i, _: i < steps, lambda i, y: (i + 1, build(y, w, b)), [0, x])
        return session.run(tf.gradients(tf.reduce_sum(y * y), [w, b, x])), len(found)


def cell(y, w, b):
    return tf.tanh(tf.nn.bias_add(tf.matmul(y, w), b))


@settings(deadline=None, max_examples=12)
@given(st.integers(0, 7), st.integers(1, 5), st.integers(1, 6), st.sampled_from([None, 1, 100]))
def test_sums_after_the_loop_equal_those_inside(steps, batch, units, limit):
    """Any number of iterations, none and one among them, and factors that are summed before the loop ends."""
    after, count = gradients(steps, batch, units, cell, limit)
    inside, _ = gradients(steps, batch, units, cell, 0)
    assert count >= 2
    for one, other in zip(after, inside):
        np.testing.assert_allclose(one, other, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(
    "build",
    [
        lambda y, w, b: tf.tanh(tf.matmul(tf.matmul(y, w), w) + b),  # a weight used twice
        lambda y, w, b: tf.tanh(tf.matmul(y, w, transpose_b=True)) * b,  # a transposed weight
        lambda y, w, b: tf.tanh(tf.matmul(y, w * tf.reduce_mean(y))) + b,  # a weight that is not the factor itself
    ],
)
def test_other_uses_of_a_weight(build):
    """Weights that are used twice, transposed, or inside of other ops have the right gradients, too."""
    after, _ = gradients(4, 3, 5, build)
    inside, _ = gradients(4, 3, 5, build, 0)
    for one, other in zip(after, inside):
        np.testing.assert_allclose(one, other, rtol=1e-4, atol=1e-5)


def test_a_partial_sum_that_is_read_stays_in_the_loop():
    """A sum that the loop's condition or another variable reads is computed in every iteration."""
    with tf.Graph().as_default(), tf.Session() as session:
        a = tf.constant(np.arange(6, dtype="f").reshape(2, 3))

        def body(i, total, seen):
            grown = tf.add_n([total, tf.matmul(a, a, transpose_a=True)])
            return i + 1, grown, seen + tf.reduce_sum(grown)

        start = [0, tf.zeros([3, 3]), 0.0]
        _, total, seen = session.run(tf.while_loop(lambda i, *_: i < 3, body, start))
        _, early = session.run(
            tf.while_loop(
                lambda i, total: tf.reduce_sum(total) < 100.0,
                lambda i, total: (i + 1, tf.add_n([total, tf.matmul(a, a, transpose_a=True)])),
                start[:2],
            )
        )
    once = np.arange(6, dtype="f").reshape(2, 3)
    once = once.T @ once
    np.testing.assert_allclose(total, 3 * once)
    np.testing.assert_allclose(seen, 6 * once.sum())
    np.testing.assert_allclose(early, np.ceil(100 / once.sum()) * once)


def test_a_plain_sum_of_products():
    """The sum may be built by hand: nothing else reads it, so the products are made at once."""
    with tf.Graph().as_default(), tf.Session() as session:
        a = tf.placeholder(tf.float32, [4, 2, 3])
        total = tf.while_loop(
            lambda i, _: i < 4,
            lambda i, total: (i + 1, tf.add_n([total, tf.matmul(a[i], a[i], transpose_a=True)])),
            [0, tf.ones([3, 3])],
        )[1]
        x = np.random.RandomState(0).randn(4, 2, 3).astype("f")
        np.testing.assert_allclose(session.run(total, {a: x}), 1 + np.einsum("tij,tik->jk", x, x), rtol=1e-4, atol=1e-5)
