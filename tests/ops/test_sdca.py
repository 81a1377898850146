"""Stochastic dual coordinate ascent."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import stoker.compat.v1 as tf

# (loss, label, dual before, l2, partitions, weight) -> example state and weight changes of TensorFlow 1.15, for one example
# x = (1, -2), weights (0.3, 0.2), l1 = 0.1.
ONE_EXAMPLE = {
    ("logistic_loss", 0.0, 0.0, 1.0, 1, 1.0): ([-0.23550105, 0.69314718, 0.0, 1.0], [-0.23550105, 0.47100210]),
    ("logistic_loss", 0.0, -0.4, 0.5, 2, 2.0): ([-0.41144943, 1.48879337, -1.34602332, 2.0], [-0.04579768, 0.09159535]),
    ("logistic_loss", 1.0, 0.4, 0.5, 2, 2.0): ([0.40691802, 1.28879333, -1.34602332, 2.0], [0.02767209, -0.05534417]),
    ("squared_loss", 1.0, 0.0, 1.0, 1, 1.0): ([0.16666666, 0.5, 0.0, 1.0], [0.16666666, -0.33333331]),
    ("squared_loss", 3.0, 0.4, 0.5, 2, 2.0): ([0.46097562, 8.40999985, -2.24000001, 2.0], [0.24390244, -0.48780489]),
    ("hinge_loss", 0.0, -0.4, 0.5, 2, 2.0): ([-0.42750001, 2.20000005, -0.80000001, 2.0], [-0.11, 0.22]),
    ("hinge_loss", 1.0, 0.0, 1.0, 1, 1.0): ([0.2, 1.0, 0.0, 1.0], [0.2, -0.4]),
    ("smooth_hinge_loss", 0.0, -0.4, 0.5, 2, 2.0): (
        [-0.41707319, 1.20000005, -0.63999999, 2.0],
        [-0.06829268, 0.13658537],
    ),
    ("smooth_hinge_loss", 1.0, 0.0, 1.0, 1, 1.0): ([0.16666666, 0.5, 0.0, 1.0], [0.16666666, -0.33333331]),
    ("poisson_loss", 0.0, -0.4, 0.5, 2, 2.0): ([-0.42395329, 2.21034193, -1.53303266, 2.0], [-0.0958132, 0.1916264]),
    ("poisson_loss", 1.0, 0.0, 1.0, 1, 1.0): ([0.0, 1.0, -1.0, 1.0], [0.0, 0.0]),
    ("poisson_loss", 3.0, 0.4, 0.5, 2, 2.0): ([0.42118326, 1.61034179, -0.2313405, 2.0], [0.08473306, -0.16946612]),
}


def _step(features, labels, weights, state, loss, l1, l2, partitions=1, passes=1, adaptative=False, importance=None):
    count = len(labels)
    result = tf.train.sdca_optimizer(
        [], [], [], [np.asarray(features, np.float32)],
        np.ones(count, np.float32) if importance is None else np.asarray(importance, np.float32),
        np.asarray(labels, np.float32), [], [], [np.asarray([weights], np.float32)],
        np.asarray(state, np.float32), loss, l1, l2, partitions, passes, adaptative,
    )  # fmt: skip
    with tf.Session() as session:
        state, _, (delta,) = session.run(result)
    return state, delta[0]


@pytest.mark.parametrize("case", ONE_EXAMPLE)
def test_one_example(case):
    """One step on one example is TensorFlow's, for every loss."""
    loss, label, dual, l2, partitions, weight = case
    state, delta = _step(
        [[1.0, -2.0]], [label], [0.3, 0.2], [[dual, 0, 0, 0]], loss, 0.1, l2, partitions, importance=[weight]
    )
    expected_state, expected_delta = ONE_EXAMPLE[case]
    np.testing.assert_allclose(state[0], expected_state, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(delta, expected_delta, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("adaptative", [False, True])
def test_ridge_regression(adaptative):
    """Passes over the examples lead to the weights that the normal equations give."""
    random = np.random.RandomState(3)
    x, y = random.randn(30, 4), random.randn(30)
    _, delta = _step(x, y, np.zeros(4), np.zeros([30, 4]), "squared_loss", 0.0, 2.0, passes=200, adaptative=adaptative)
    np.testing.assert_allclose(delta, np.linalg.solve(x.T @ x + 2 * np.eye(4), x.T @ y), rtol=1e-3, atol=1e-4)


def test_logistic_regression():
    """The gradient of the regularized loss is zero at the weights that logistic SDCA finds."""
    random = np.random.RandomState(4)
    x, y = random.randn(40, 3), random.randint(0, 2, 40)
    _, w = _step(x, y, np.zeros(3), np.zeros([40, 4]), "logistic_loss", 0.0, 1.0, passes=100)
    gradient = x.T @ (1 / (1 + np.exp(-x @ w)) - y) + w
    np.testing.assert_allclose(gradient, 0, atol=1e-3)


def test_sparse_features_equal_dense_ones():
    """Sparse groups, with values or without (then 1), do what the dense matrix they stand for does."""
    matrix = np.array([[1, 0, 1], [0, 1, 0], [0, 1, 1]], np.float32)
    examples, features = (np.asarray(part, np.int64) for part in np.nonzero(matrix))
    labels, zeros = np.array([1.0, -2.0, 0.5], np.float32), np.zeros([3, 4], np.float32)
    weights = np.array([0.1, 0.2, 0.3], np.float32)

    def sparse(values):
        return tf.train.sdca_optimizer(
            [examples], [features], values, [], np.ones(3, np.float32), labels, [np.arange(3)], [weights], [], zeros,
            "squared_loss", 0.01, 1.0, 1, 5, False,
        )  # fmt: skip

    state, delta = _step(matrix, labels, weights, zeros, "squared_loss", 0.01, 1.0, passes=5)
    with tf.Session() as session:
        for values in ([], [np.ones(len(examples), np.float32)]):
            found = session.run(sparse(values))
            np.testing.assert_allclose(found.out_example_state_data, state, rtol=1e-5, atol=1e-6)
            np.testing.assert_allclose(found.out_delta_sparse_weights[0], delta, rtol=1e-5, atol=1e-6)
            assert found.out_delta_dense_weights == []


@pytest.mark.parametrize("loss", ["logistic_loss", "hinge_loss", "smooth_hinge_loss"])
def test_labels_of_two_classes(loss):
    """Losses of two classes take the labels 0 and 1 only."""
    with pytest.raises(tf.errors.InvalidArgumentError, match=r"Only labels of 0.0 or 1.0.* label: 3"):
        _step([[1.0]], [3.0], [0.0], [[0, 0, 0, 0]], loss, 0.0, 1.0)


def test_bad_inputs():
    """Negative counts, state of another size, unknown losses and numbers out of range are refused."""
    with pytest.raises(tf.errors.InvalidArgumentError, match="non-negative labels"):
        _step([[1.0]], [-1.0], [0.0], [[0, 0, 0, 0]], "poisson_loss", 0.0, 1.0)
    with pytest.raises(tf.errors.InvalidArgumentError, match="for example_state_data"):
        _step([[1.0], [2.0]], [1.0, 1.0], [0.0], [[0, 0, 0, 0]], "squared_loss", 0.0, 1.0)
    with pytest.raises(ValueError, match="not in the list of allowed values"):
        _step([[1.0]], [1.0], [0.0], [[0, 0, 0, 0]], "cubic_loss", 0.0, 1.0)
    with pytest.raises(ValueError, match="less than minimum 1"):
        _step([[1.0]], [1.0], [0.0], [[0, 0, 0, 0]], "squared_loss", 0.0, 1.0, passes=0)


def test_shrink():
    """Weights move towards zero by l1 / l2, in place."""
    w, u = tf.Variable([1.0, -0.3, 0.05]), tf.Variable([[-1.0]])
    shrink = tf.train.sdca_shrink_l1([w, u], 0.1, 0.5)
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        session.run(shrink)
        np.testing.assert_allclose(session.run(w), [0.8, -0.1, 0.0], rtol=1e-6, atol=1e-7)
        np.testing.assert_allclose(session.run(u), [[-0.8]])


def test_fingerprints():
    """Fingerprints of strings of every length class are TensorFlow's."""
    golden = Path(__file__).parent.parent / "golden" / "train" / "fingerprints.json"
    rows = json.loads(golden.read_text())
    prints = tf.train.sdca_fprint([bytes.fromhex(row[0]) for row in rows])
    assert prints.shape == [len(rows), 2]
    with tf.Session() as session:
        assert session.run(prints).tolist() == [row[1:] for row in rows]
        assert session.run(tf.train.sdca_fprint(np.array([], object))).shape == (0, 2)


def test_fingerprints_of_a_matrix():
    """Only vectors have fingerprints."""
    with pytest.raises(ValueError):
        tf.train.sdca_fprint([[b"a"]])
