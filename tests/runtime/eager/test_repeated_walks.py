"""Tapes that record the same ops again and again, and updates that run together: values are those of single calls."""

from __future__ import annotations

import numpy as np
import pytest

import stoker.compat.v1 as tf
from stoker._src.runtime.eager import repeated_walks
from stoker._src.runtime.eager.executor import EagerExecutor

pytestmark = pytest.mark.usefixtures("eager")


@pytest.fixture(autouse=True)
def no_walks():
    repeated_walks._walks.clear()
    yield
    repeated_walks._walks.clear()


def _compiled():
    return [each for each in repeated_walks._walks.values() if isinstance(each, repeated_walks.CompiledWalk)]


def _random(*shape, seed=0):
    return np.random.RandomState(seed).randn(*shape).astype("f")


def _dense(x, w, b):
    return tf.nn.softmax(tf.tanh(tf.matmul(x, w) + b))


def _axes(x, w, b):
    h = tf.concat([tf.matmul(x, w), tf.reverse(x, [1])[:, :3]], 1)
    return tf.reduce_mean(tf.transpose(h)[1:, ::2] * tf.reduce_max(b), axis=[0]) / 3.0


def _losses(x, w, b):
    labels = tf.argmax(x[:, :3], 1)
    each = tf.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=tf.matmul(x, w) + b)
    return tf.where(each > 1.0, each, each * each) + tf.nn.l2_loss(w)


def _rows(x, w, b):
    return tf.reduce_sum(tf.gather(w, [0, 2, 2]) * tf.stack([b, b * 2.0, tf.stop_gradient(b)]), 1)


@pytest.mark.parametrize("model", [_dense, _axes, _losses, _rows])
def test_repeated_gradients_equal_the_first(model):
    """Gradients of a compiled walk equal those of the walk op by op, for other values and for variables that change."""
    w, b = tf.Variable(_random(4, 3, seed=1)), tf.Variable(_random(3, seed=2))
    for step in range(6):
        w.assign(_random(4, 3, seed=10 + step))
        x = tf.constant(_random(5, 4, seed=step))
        found = []
        for persistent in (False, True):
            with tf.GradientTape(persistent=persistent) as tape:
                tape.watch(x)
                y = model(x, w, b)
            if not persistent:
                found.append(tape.gradient(y, [x, w, b]))
            else:
                found.append(tape._walk([y], [x, w.handle, b.handle], [None]))
        for one, other in zip(*found):
            assert (one is None) == (other is None)
            if one is not None:
                np.testing.assert_allclose(tf.convert_to_tensor(one), tf.convert_to_tensor(other), rtol=1e-5, atol=1e-6)
    assert len(_compiled()) == (model is not _rows)


def test_walks_are_told_apart():
    """Shapes, axes, sources, attributes and output gradients that differ have gradients of their own."""
    v = tf.Variable([[1.0, 2.0], [3.0, 4.0]])
    for _ in range(4):
        for axis in (0, 1):
            for power in (2.0, 3.0):
                with tf.GradientTape() as tape:
                    y = tf.reduce_prod(v**power, axis)
                expected = power * np.prod([[1.0, 2.0], [3.0, 4.0]], axis, keepdims=True) ** power / v.numpy()
                np.testing.assert_allclose(tape.gradient(y, v), expected, rtol=1e-5)
        for rows in (1, 3):
            x = tf.ones([rows, 2])
            with tf.GradientTape(persistent=True) as tape:
                tape.watch(x)
                y = tf.matmul(x, v, transpose_b=rows == 3)
            np.testing.assert_allclose(tape.gradient(y, v), [[rows, rows]] * 2)
            np.testing.assert_allclose(
                tape.gradient(y, [x], 2.0 * tf.ones([rows, 2]))[0], [[8, 12] if rows == 3 else [6, 14]] * rows
            )


def test_second_derivatives_and_own_gradients():
    """A walk that another tape records, and gradient functions of users, run at every step."""
    calls = []

    @tf.custom_gradient
    def own(x):
        def grad(g):
            calls.append(1)
            return 5.0 * g

        return x * 2.0, grad

    x = tf.Variable(3.0)
    for _ in range(5):
        with tf.GradientTape() as outer:
            with tf.GradientTape() as inner:
                y = x * x * x
            first = inner.gradient(y, x)
        assert float(outer.gradient(first, x)) == 18.0
        with tf.GradientTape() as tape:
            z = own(x) * 2.0
        assert float(tape.gradient(z, x)) == 10.0
    assert len(calls) == 5


def test_integers_that_change_at_every_step():
    """Labels that are different each time are not taken for constants of a walk."""
    v = tf.Variable([1.0, 2.0, 3.0])
    for label in range(12):
        with tf.GradientTape() as tape:
            y = tf.gather(v.read_value(), tf.constant([label % 3])) * 2.0
        expected = np.zeros(3)
        expected[label % 3] = 2.0
        np.testing.assert_allclose(tf.convert_to_tensor(tape.gradient(y, v)), expected)


@pytest.mark.parametrize(
    "make",
    [
        lambda: tf.train.AdamOptimizer(0.1),
        lambda: tf.train.MomentumOptimizer(0.1, 0.9),
        lambda: tf.train.FtrlOptimizer(0.1),
        lambda: tf.keras.optimizers.Adam(0.1),
        lambda: tf.keras.optimizers.RMSprop(0.1),
    ],
)
def test_updates_together_equal_single_updates(make, monkeypatch):
    """An optimizer that updates many variables at once gives the numbers of one that updates each alone, also with constraints and rows."""

    def trained():
        variables = [tf.Variable(_random(3, i + 1, seed=i)) for i in range(3)]
        variables.append(tf.Variable(_random(3, 2), constraint=lambda x: tf.clip_by_value(x, -0.5, 0.5)))
        optimizer = make()
        for step in range(3):
            gradients: list = [tf.constant(_random(*v.shape, seed=step)) for v in variables]
            gradients[1] = tf.IndexedSlices(gradients[1][:2], tf.constant([2, 2]), tf.constant([3, 2]))
            optimizer.apply_gradients(list(zip(gradients, variables)))
        return [v.numpy() for v in variables]

    together = trained()
    monkeypatch.setattr(EagerExecutor, "updates_together", lambda self: self.name_scope(None))
    for one, other in zip(together, trained()):
        np.testing.assert_array_equal(one, other)
    assert np.abs(together[3]).max() <= 0.5


def test_a_variable_that_is_updated_twice():
    """Two gradients of one variable in one call are applied one after the other."""
    v = tf.Variable([1.0, 2.0])
    tf.train.GradientDescentOptimizer(1.0).apply_gradients([(tf.constant([1.0, 1.0]), v), (tf.constant([2.0, 3.0]), v)])
    np.testing.assert_allclose(v.numpy(), [-2.0, -2.0])


def test_a_failing_update_names_its_variable():
    """A gradient of the wrong shape is reported, and other variables are not left half updated."""
    a, b = tf.Variable([1.0, 2.0]), tf.Variable([1.0, 2.0])
    with pytest.raises((tf.errors.InvalidArgumentError, ValueError), match="same shape"):
        tf.train.AdamOptimizer(1.0).apply_gradients([(tf.ones([2]), a), (tf.ones([3]), b)])
