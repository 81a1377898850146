"""Programs on a GPU. Skipped where there is none."""

from __future__ import annotations

import numpy as np
import pytest
import torch

import stoker.compat.v1 as tf

pytestmark = [pytest.mark.cuda, pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device")]


def _network(device=None):
    with tf.device(device):
        x = tf.placeholder(tf.float32, [None, 8])
        w = tf.get_variable("w", [8, 4], initializer=tf.random_normal_initializer(seed=1))
        b = tf.get_variable("b", [4], initializer=tf.zeros_initializer())
        loss = tf.reduce_mean(tf.square(tf.nn.relu(tf.matmul(x, w) + b) - 1.0))
        return x, loss, tf.train.AdamOptimizer(0.01).minimize(loss)


def _losses(device=None, steps=20):
    with tf.Graph().as_default(), tf.Session() as session:
        x, loss, train = _network(device)
        session.run(tf.global_variables_initializer())
        batch = np.random.RandomState(0).randn(16, 8).astype("f")
        return [session.run([loss, train], {x: batch})[0] for _ in range(steps)]


def test_losses_equal_those_of_the_cpu():
    """The same program learns the same on both devices (in full float32)."""
    before = torch.backends.cuda.matmul.allow_tf32
    gpu = _losses()
    torch.backends.cuda.matmul.allow_tf32 = before
    np.testing.assert_allclose(gpu, _losses("/cpu:0"), rtol=2e-3)


def test_variables_and_float_work_are_on_the_gpu():
    """Without tf.device, a variable's value lives on GPU 0."""
    with tf.Graph().as_default(), tf.Session() as session:
        v = tf.Variable(np.ones(3, "f"))
        session.run(v.initializer)
        state = session._resources.of_kind("variable") + session._resources.of_kind("resource_variable")
        assert state[0].value.is_cuda


def test_a_missing_gpu_is_refused_without_soft_placement():
    """GPU 99 is nowhere."""
    with tf.Graph().as_default():
        with tf.device("/gpu:99"):
            y = tf.constant(1.0) + 1.0
        with tf.Session() as session, pytest.raises(tf.errors.InvalidArgumentError, match="available devices"):
            session.run(y)
        with tf.Session(config=tf.ConfigProto(allow_soft_placement=True)) as session:
            assert session.run(y) == 2.0
