"""Updates that take large gradients as products. The sizes that count as large are lowered, so that small layers are large."""

from __future__ import annotations

import numpy as np
import pytest

import stoker.compat.v1 as tf
from stoker._src.ops.linalg.matrix_products import MATMUL
from stoker._src.runtime.plan import products_in_parts

OPTIMIZERS = {
    "descent": lambda: tf.train.GradientDescentOptimizer(0.1),
    "momentum": lambda: tf.train.MomentumOptimizer(0.1, 0.9),
    "nesterov": lambda: tf.train.MomentumOptimizer(0.1, 0.9, use_nesterov=True),
    "adagrad": lambda: tf.train.AdagradOptimizer(0.1),
    "proximal": lambda: tf.train.ProximalAdagradOptimizer(0.1, l1_regularization_strength=0.01),
    "adadelta": lambda: tf.train.AdadeltaOptimizer(0.1),
    "rms_prop": lambda: tf.train.RMSPropOptimizer(0.01, momentum=0.5),
    "centered": lambda: tf.train.RMSPropOptimizer(0.01, centered=True),
    "adam": lambda: tf.train.AdamOptimizer(0.01),
    "ftrl": lambda: tf.train.FtrlOptimizer(0.1, l1_regularization_strength=0.01),
}


@pytest.fixture(autouse=True)
def small_sizes(monkeypatch):
    """A gradient of 4 KiB is large, and it is computed in parts of at most 1 KiB."""
    monkeypatch.setattr(products_in_parts, "LARGEST_KEPT", 1 << 12)
    monkeypatch.setattr(products_in_parts, "_PART", 1 << 10)
    monkeypatch.setattr(products_in_parts, "_FEWEST_ROWS", 1)
    monkeypatch.setattr(MATMUL.planning, "lower", None)  # fused loops and small ops take products as small as these
    monkeypatch.setattr(MATMUL.planning, "small", None)


def _network(optimizer, resource):
    """A network of dense layers. Returns its training step, the loss, and the feed."""
    tf.set_random_seed(1)
    values = np.random.RandomState(0).randn(6, 50).astype("f")
    x = tf.placeholder(tf.float32, [None, 50])
    with tf.variable_scope("net", use_resource=resource):
        h = tf.nn.relu(tf.layers.dense(x, 77, kernel_initializer=tf.random_normal_initializer(stddev=0.1)))
        # A kernel whose gradient is computed with transposed factors.
        v = tf.get_variable("v", [61, 77], initializer=tf.random_normal_initializer(stddev=0.1))
        loss = tf.reduce_mean(tf.square(tf.matmul(h, v, transpose_b=True)))
    return optimizer.minimize(loss), loss, {x: values}


def _trained(build):
    """Runs a few steps. Returns the losses, all variables, and the plan."""
    with tf.Graph().as_default(), tf.Session() as session:
        train, loss, feed = build()
        session.run(tf.global_variables_initializer())
        losses = [session.run([loss, train], feed)[0] for _ in range(4)]
        return losses, session.run(tf.global_variables()), session.explain([loss, train], feed)


@pytest.mark.parametrize("resource", [False, True])
@pytest.mark.parametrize("name", OPTIMIZERS)
def test_training_gives_the_same_variables(monkeypatch, name, resource):
    """The variables and slots of every optimizer are those of whole gradients."""
    losses, values, source = _trained(lambda: _network(OPTIMIZERS[name](), resource))
    monkeypatch.setattr(products_in_parts, "LARGEST_KEPT", 1 << 40)
    whole_losses, whole_values, whole_source = _trained(lambda: _network(OPTIMIZERS[name](), resource))
    assert source.count(" = MatMul") == whole_source.count(" = MatMul") - 2
    np.testing.assert_allclose(losses, whole_losses, rtol=1e-6)
    for found, wanted in zip(values, whole_values):
        np.testing.assert_allclose(found, wanted, rtol=1e-5, atol=1e-7)


def test_float64_gradients_are_taken_in_parts():
    """float64 layers train to the values that NumPy computes."""
    with tf.Graph().as_default(), tf.Session() as session:
        x = tf.placeholder(tf.float64, [4, 40])
        w = tf.get_variable("w", [40, 30], tf.float64, initializer=tf.zeros_initializer())
        train = tf.train.GradientDescentOptimizer(0.5).minimize(tf.reduce_sum(tf.square(tf.matmul(x, w) - 1.0)))
        session.run(w.initializer)
        given = np.random.RandomState(0).randn(4, 40)
        session.run(train, {x: given})
        assert "MatMul_grad" not in session.explain(train, {x: given})
        np.testing.assert_allclose(session.run(w), -0.5 * given.T @ np.full((4, 30), -2.0), rtol=1e-12)


def _has_whole_product(fetches, feed, session):
    """Whether the gradient of the weights is a tensor of the plan."""
    return "gradients/MatMul_grad/MatMul_1" in session.explain(fetches, feed)


def test_gradients_with_other_uses_stay_whole():
    """A gradient whose norm is computed, or that is fetched, is a tensor of its own."""
    x, w = tf.placeholder(tf.float32, [4, 40]), tf.get_variable("w", [40, 30])
    loss = tf.reduce_sum(tf.square(tf.matmul(x, w)))
    optimizer = tf.train.AdagradOptimizer(0.1)
    ((gradient, _),) = pairs = optimizer.compute_gradients(loss)
    clipped = optimizer.apply_gradients(zip(tf.clip_by_global_norm([gradient], 1.0)[0], [w]))
    plain = optimizer.apply_gradients(pairs)
    feed = {x: np.ones([4, 40], "f")}
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        assert not _has_whole_product(plain, feed, session)
        assert _has_whole_product(clipped, feed, session)
        assert _has_whole_product([plain, gradient], feed, session)


def test_values_of_variables_are_not_factors():
    """If a factor is a variable's value, the product is computed before the variable changes."""
    v = tf.get_variable("v", [4, 40], initializer=tf.ones_initializer())
    w = tf.get_variable("w", [40, 30], initializer=tf.ones_initializer())
    train = tf.train.GradientDescentOptimizer(1.0).minimize(tf.reduce_sum(tf.matmul(v, w)))
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        session.run(train)
        np.testing.assert_array_equal(session.run(w), np.full([40, 30], -3.0))
        np.testing.assert_array_equal(session.run(v), np.full([4, 40], -29.0))


def test_a_variable_of_another_shape_is_refused():
    """The product is compared with the variable as it is, and nothing changes if they differ."""
    x = tf.placeholder(tf.float32, [4, 40])
    initial = tf.placeholder(tf.float32, None)
    w = tf.Variable(initial, validate_shape=False, use_resource=True)
    gradient = tf.matmul(x, tf.ones([4, 30]), transpose_a=True)
    train = tf.train.GradientDescentOptimizer(1.0).apply_gradients([(gradient, w)])
    with tf.Session() as session:
        session.run(w.initializer, {initial: np.zeros([40, 30])})
        session.run(train, {x: np.ones([4, 40], "f")})
        np.testing.assert_array_equal(session.run(w), np.full([40, 30], -4.0))
        session.run(w.initializer, {initial: np.zeros([20, 30])})
        with pytest.raises(tf.errors.InvalidArgumentError, match="same shape"):
            session.run(train, {x: np.ones([4, 40], "f")})
        assert not session.run(w).any()
