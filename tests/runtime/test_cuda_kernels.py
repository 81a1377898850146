"""Fused kernels, and small runs on the host, on a GPU. Skipped where there is none."""

from __future__ import annotations

import numpy as np
import pytest
import torch

import stoker.compat.v1 as tf
from stoker._src.runtime.plan.gpu import on_host

pytestmark = [pytest.mark.cuda, pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device")]
R = np.random.RandomState


@pytest.fixture(autouse=True)
def single_precision(monkeypatch):
    """Values are compared closely, so products are not rounded to TF32, and everything runs on the GPU."""
    monkeypatch.setenv("STOKER_RUNS_ON_HOST", "0")
    tf.config.experimental.enable_tensor_float_32_execution(False)
    yield
    tf.config.experimental.enable_tensor_float_32_execution(True)


def _values(build, fused, monkeypatch):
    monkeypatch.setenv("STOKER_FUSED_KERNELS", "1" if fused else "0")
    with tf.Graph().as_default(), tf.Session() as session:
        fetches, feeds = build()
        session.run(tf.global_variables_initializer())
        found = [session.run(fetches, feeds) for _ in range(5)][-1]
        return found, session.explain(fetches, feeds)


def _compare(build, monkeypatch):
    """Compares fused kernels with the ops' own kernels, relative to the largest element."""
    found, remarks = _values(build, True, monkeypatch)
    expected, _ = _values(build, False, monkeypatch)
    for one, other in zip(found, expected):
        np.testing.assert_allclose(one, other, rtol=1e-5, atol=1e-5 * max(np.abs(other).max(), 1e-3))
    assert "# fused kernels: " in remarks and "cannot be compiled" not in remarks


@pytest.mark.parametrize("shape", [(4, 6, 40), (16, 64, 256), (3, 5, 700), (2, 3, 5000), (1, 3, 33)], ids=str)
def test_a_normalization_and_its_gradient(shape, monkeypatch):
    """Rows of a warp and of a block, sums of columns, and parts that are joined, padded and selected."""

    def build():
        x = tf.placeholder(tf.float32, shape)
        scale = tf.get_variable("scale", shape[-1:], initializer=tf.ones_initializer())
        shift = tf.get_variable("shift", shape[-1:], initializer=tf.zeros_initializer())
        mean, variance = tf.nn.moments(x, [-1], keep_dims=True)
        y = (x - mean) * tf.rsqrt(variance + 1e-6) * scale + shift
        z = tf.pad(tf.concat([y * 2.0, tf.tanh(y)], 1), [[0, 0], [1, 2], [0, 0]])
        loss = tf.reduce_mean(tf.square(z) * tf.sigmoid(z))
        others = [tf.transpose(y, [0, 2, 1]) * 3.0, y[:, 2] * 4.0 - 1.0, tf.where(y > 0.2, y, -y)]
        return [loss, *tf.gradients(loss, [x, scale, shift]), *others], {x: R(0).randn(*shape).astype("f")}

    _compare(build, monkeypatch)


@pytest.mark.parametrize("shape", [(32, 5), (8, 4, 64, 64), (5000, 3), (64, 3000), (2, 20000), (512, 1024)], ids=str)
def test_a_softmax_and_its_gradient(shape, monkeypatch):
    """A small one is a single block; longer rows take more."""

    def build():
        x, y = tf.placeholder(tf.float32, shape), tf.placeholder(tf.float32, shape)
        p = tf.nn.softmax(x * 2.0 + 0.5)
        loss = -tf.reduce_mean(tf.reduce_sum(y * tf.log(p + 1e-6), -1))
        return [loss, p, *tf.gradients(loss, x)], {x: R(0).randn(*shape).astype("f"), y: R(1).rand(*shape).astype("f")}

    _compare(build, monkeypatch)


@pytest.mark.parametrize("shape", [(30, 7), (3000, 70), (70, 3000), (100000, 64), (8192, 1), (97, 1013)], ids=str)
def test_sums(shape, monkeypatch):
    """Totals, rows and columns of small, wide and tall matrices."""

    def build():
        x = tf.placeholder(tf.float32, shape)
        return [
            tf.reduce_sum(x * 2.0 + 1.0),
            tf.reduce_sum(tf.square(x) - 1.0, 0),
            tf.reduce_mean(tf.abs(x) + 1.0, [0, 1]),
            tf.reduce_sum(tf.exp(x) * x, 1),
            tf.nn.relu(x) * tf.reduce_sum(x * x, 0),
        ], {x: R(0).randn(*shape).astype("f")}

    _compare(build, monkeypatch)


@pytest.mark.parametrize("cell", ["LSTMCell", "GRUCell", "BasicRNNCell"])
def test_cells_over_sequences_with_lengths(cell, monkeypatch):
    """The body of a recorded loop, with its mask by length, and its gradient."""

    def build():
        x, n = tf.placeholder(tf.float32, [None, 9, 4]), tf.placeholder(tf.int32, [None])
        with tf.variable_scope("cell", initializer=tf.random_uniform_initializer(-0.3, 0.3, seed=4)):
            made = getattr(tf.nn.rnn_cell, cell)(6)
            out, _ = tf.nn.dynamic_rnn(made, x, n, dtype=tf.float32)
        loss = tf.reduce_mean(tf.square(out))
        return [loss, out, *tf.gradients(loss, tf.trainable_variables())], {
            x: R(0).randn(3, 9, 4).astype("f"),
            n: [9, 3, 5],
        }

    _compare(build, monkeypatch)


def test_small_runs_are_measured_on_the_host(monkeypatch):
    """A run that only reads variables sees every update, whichever device it ends up on."""
    monkeypatch.setenv("STOKER_RUNS_ON_HOST", "1")
    with tf.Graph().as_default(), tf.Session() as session:
        x = tf.placeholder(tf.float32, [2, 3])
        v = tf.get_variable("v", [3], initializer=tf.ones_initializer())
        y, more = tf.reduce_sum(tf.tanh(x * 0.1) * v + v * 2.0 - 1.0), tf.assign_add(v, [1.0, 2.0, 3.0])
        session.run(v.initializer)
        for i in range(60):
            if i % 10 == 9:
                session.run(more)
            value = 1.0 + (i + 1) // 10 * np.array([1.0, 2.0, 3.0])
            expected = (np.tanh(np.full((2, 3), i * 0.1)) * value + value * 2 - 1).sum()
            np.testing.assert_allclose(session.run(y, {x: np.full((2, 3), i, "f")}), expected, rtol=1e-5)
        (choice,) = next(
            plan.repeated for plan in session._plans.values() if plan.repeated is not None and plan.repeated._choices
        )._choices.values()
        assert choice.chosen is not None


def _losses(build, steps, *, gpu):
    """Returns what each step of a program fetches first, and what `explain` says."""
    with tf.Graph().as_default():
        fetches, feeds = build()
        config = None if gpu else tf.ConfigProto(device_count={"GPU": 0})
        with tf.Session(config=config) as session:
            session.run(tf.global_variables_initializer())
            found = [session.run(fetches, feeds(i))[0] for i in range(steps)]
            return found, session.explain(fetches, feeds(0))


def test_a_ctc_loss_is_recorded():
    """Batches of different labels and lengths are replayed from one recording."""

    def build():
        x, lengths = tf.placeholder(tf.float32, [4, 12, 6]), tf.placeholder(tf.int32, [4])
        places, values = tf.placeholder(tf.int64, [9, 2]), tf.placeholder(tf.int32, [9])
        w = tf.get_variable("w", [6, 7], initializer=tf.random_normal_initializer(seed=1))
        logits = tf.transpose(tf.tensordot(x, w, [[2], [0]]), [1, 0, 2])
        loss = tf.reduce_mean(tf.nn.ctc_loss(tf.SparseTensor(places, values, [4, 3]), logits, lengths))
        train = tf.train.GradientDescentOptimizer(0.1).minimize(loss)
        given = [[0, 0], [0, 1], [0, 2], [1, 0], [1, 1], [2, 0], [2, 1], [2, 2], [3, 0]]

        def feeds(i):
            labels = R(i).randint(0, 6, 9)
            return {x: R(i).randn(4, 12, 6).astype("f"), lengths: R(i).randint(7, 13, 4), places: given, values: labels}

        return [loss, train], feeds

    found, remarks = _losses(build, 10, gpu=True)
    np.testing.assert_allclose(found, _losses(build, 10, gpu=False)[0], rtol=1e-4)
    assert "recorded 1 times" in remarks


def test_positions_given_by_the_program_do_not_keep_a_step_from_being_recorded():
    """gather_nd, its gradient and sparse_to_dense wait for nothing."""

    def build():
        x, places = tf.placeholder(tf.float32, [3]), tf.placeholder(tf.int64, [3, 2])
        w = tf.get_variable("w", [4, 5], initializer=tf.random_normal_initializer(seed=1))
        dense = tf.sparse_to_dense(places, [4, 5], x, validate_indices=False)
        loss = tf.reduce_sum(tf.square(tf.gather_nd(w, places) - x)) + tf.reduce_sum(dense * w)
        train = tf.train.GradientDescentOptimizer(0.1).minimize(loss)

        def feeds(i):
            chosen = R(i).choice(20, 3, replace=False)
            return {x: R(i).randn(3).astype("f"), places: np.stack([chosen // 5, chosen % 5], 1)}

        return [loss, train], feeds

    found, remarks = _losses(build, 10, gpu=True)
    np.testing.assert_allclose(found, _losses(build, 10, gpu=False)[0], rtol=1e-4)
    assert "recorded 1 times" in remarks


def test_a_step_that_cannot_be_recorded_may_run_on_the_host(monkeypatch):
    """The host borrows the variables; every step continues from the last one, wherever it ran."""
    monkeypatch.setenv("STOKER_RUNS_ON_HOST", "1")
    monkeypatch.setattr(on_host, "_CLEARLY_FASTER", 1e9)  # whatever else the machine does
    monkeypatch.setattr(on_host, "_CLEARLY_LONGER", 1e9)

    def build():
        x = tf.placeholder(tf.float32, [8, 6])
        w = tf.get_variable("w", [6, 3], initializer=tf.random_normal_initializer(seed=1))
        chosen = tf.boolean_mask(tf.matmul(x, w), tf.matmul(x, w)[:, 0] > 0.0)  # a size that only the data tells
        loss = tf.reduce_sum(tf.square(chosen)) + tf.reduce_sum(tf.square(w - 1.0))
        return [loss, tf.train.AdamOptimizer(0.05).minimize(loss)], lambda i: {x: R(i).randn(8, 6).astype("f")}

    found, remarks = _losses(build, 90, gpu=True)
    np.testing.assert_allclose(found, _losses(build, 90, gpu=False)[0], rtol=1e-3)
    assert "runs on the host, with their variables" in remarks
