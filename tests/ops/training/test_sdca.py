"""Stochastic dual coordinate ascent."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import scipy.optimize

import stoker.compat.v1 as tf
from stoker._src.graph import context
from stoker._src.ops.training import sdca_solver

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


@pytest.mark.parametrize("loss", ["hinge_loss", "smooth_hinge_loss"])
def test_adaptive_calls_do_not_get_stuck(loss):
    """Calls of one adaptive pass each reach the weights of least loss, also when a pass finds nothing to do for its draws."""
    random = np.random.RandomState(5)
    x = random.uniform(-1, 1, [24, 3])
    y = (x @ [1.0, -2.0, 0.5] > 0).astype(np.float64)

    def objective(w):
        margin = 1 - (2 * y - 1) * (x @ w)
        smooth = np.where(margin <= 0, 0, np.where(margin >= 1, margin - 0.5, 0.5 * margin**2))
        return np.sum(np.maximum(margin, 0) if loss == "hinge_loss" else smooth) + 0.5 * w @ w

    found = []
    for adaptative in (False, True):
        w, state = np.zeros(3), np.zeros([24, 4])
        for _ in range(100):
            state, delta = _step(x, y, w, state, loss, 0.0, 1.0, adaptative=adaptative)
            w = w + delta
        found.append(objective(w))
    assert found[1] == pytest.approx(found[0], rel=1e-4)


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
    golden = Path(__file__).parents[2] / "golden" / "train" / "fingerprints.json"
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


def _objective(loss, x, y, importance, l2):
    """The smooth part of what SDCA minimizes and its gradient, as a function of the weights."""
    side = 2 * y - 1

    def value_and_gradient(w):
        p = x @ w
        margin = side * p
        value, slope = {
            "squared_loss": lambda: (0.5 * (p - y) ** 2, p - y),
            "logistic_loss": lambda: (np.logaddexp(0, -margin), -side / (1 + np.exp(margin))),
            "hinge_loss": lambda: (np.maximum(0, 1 - margin), -side * (margin < 1)),
            "smooth_hinge_loss": lambda: (
                np.where(margin >= 1, 0, np.where(margin <= 0, 0.5 - margin, 0.5 * (1 - margin) ** 2)),
                side * np.where(margin >= 1, 0, np.where(margin <= 0, -1, margin - 1)),
            ),
            "poisson_loss": lambda: (np.exp(p) - p * y, np.exp(p) - y),
        }[loss]()
        return (importance * value).sum() + 0.5 * l2 * w @ w, x.T @ (importance * slope) + l2 * w

    return value_and_gradient


def _best(loss, x, y, importance, l1, l2):
    """What scipy finds; w as a difference of two vectors that are not negative makes the l1 term smooth."""
    smooth, size = _objective(loss, x, y, importance, l2), x.shape[1]

    def value_and_gradient(z):
        value, gradient = smooth(z[:size] - z[size:])
        return value + l1 * z.sum(), np.concatenate([gradient + l1, l1 - gradient])

    found = scipy.optimize.minimize(
        value_and_gradient, np.full(2 * size, 0.01), jac=True, method="L-BFGS-B", bounds=[(0, None)] * (2 * size),
        options={"maxiter": 2000, "maxfun": 4000, "ftol": 1e-15, "gtol": 1e-10},
    )  # fmt: skip
    return found.fun


@pytest.mark.parametrize(
    ("l1", "l2", "partitions", "passes", "adaptive", "weighted"),
    [
        (0.0, 1.0, 1, 20, False, False),
        (0.5, 1.0, 1, 5, True, True),
        (2.0, 2.0, 1, 1, False, True),
        (0.1, 1.0, 2, 2, False, False),
    ],
)
@pytest.mark.parametrize("loss", list(sdca_solver.LOSSES))
def test_solution_is_scipys(loss, l1, l2, partitions, passes, adaptive, weighted):
    """Dense and sparse features, weights, l1, partitions, several passes: the objective ends where scipy's search ends."""
    random = np.random.RandomState(11)
    count = 60
    dense = 0.5 * random.randn(count, 3).astype(np.float32)
    owners, places = np.repeat(np.arange(count), 2), random.randint(0, 4, [count, 2])
    places[:, 1] = (places[:, 0] + 1 + places[:, 1] % 3) % 4
    places, values = places.reshape(-1), random.randn(2 * count).astype(np.float32)
    x = np.zeros([count, 7])
    x[owners, places], x[:, 4:] = values, dense
    scores = x @ random.randn(7)
    y = {
        "squared_loss": scores + random.randn(count),
        "poisson_loss": random.poisson(np.exp(np.clip(scores, -3, 2))),
    }.get(loss, scores + random.randn(count) > 0)
    y = np.asarray(y, np.float32)
    importance = np.asarray(2 * random.rand(count) if weighted else np.ones(count), np.float32)
    state, sparse_weights = np.zeros([count, 4], np.float32), np.zeros(4, np.float32)
    dense_weights = np.zeros(3, np.float32)
    with context.enter_eager():
        for _ in range(400 // passes):
            step = tf.raw_ops.SdcaOptimizerV2(
                sparse_example_indices=[owners], sparse_feature_indices=[places], sparse_feature_values=[values],
                dense_features=[dense], example_weights=importance, example_labels=y, sparse_indices=[np.arange(4)],
                sparse_weights=[sparse_weights], dense_weights=[dense_weights], example_state_data=state, loss_type=loss,
                l1=l1, l2=l2, num_loss_partitions=partitions, num_inner_iterations=passes, adaptive=adaptive,
            )  # fmt: skip
            state = step[0].numpy()
            sparse_weights = sparse_weights + step[1][0].numpy()
            dense_weights = dense_weights + step[2][0].numpy()
    w = np.concatenate([sparse_weights, dense_weights]).astype(np.float64)
    w = np.sign(w) * np.maximum(np.abs(w) - l1 / l2, 0)
    found = _objective(loss, x, y.astype(np.float64), importance.astype(np.float64), l2)(w)[0] + l1 * np.abs(w).sum()
    best = _best(loss, x, y.astype(np.float64), importance.astype(np.float64), l1, l2)
    assert found <= best + 2e-3 * abs(best)
    if loss in ("squared_loss", "logistic_loss", "smooth_hinge_loss"):
        assert abs(found - best) <= 1e-5 * abs(best)


@pytest.mark.skipif(sdca_solver.compiled is None, reason="no compiled twin")
@pytest.mark.parametrize("loss", list(sdca_solver.LOSSES))
def test_compiled_pass_is_its_twin(loss):
    """The compiled pass and the Python one give the same bits."""
    random = np.random.RandomState(2)
    count, entries = 40, 90
    labels = {"squared_loss": random.randn(count), "poisson_loss": 1.0 * random.poisson(2.0, count)}.get(
        loss, 2.0 * random.randint(0, 2, count) - 1
    )
    starts = np.concatenate([[0], np.sort(random.randint(0, entries + 1, count - 1)), [entries]]).astype(np.int64)
    given = [
        random.randint(0, count, 200), labels, random.rand(count) * random.randint(0, 2, count), 10 * random.rand(count),
        random.randn(count),
    ]  # fmt: skip
    dense = random.randn(count, 5).astype(np.float32)
    places, values = random.randint(0, 7, entries), random.randn(entries).astype(np.float32)
    found = []
    for run, how in (
        (sdca_solver.compiled.sdca_pass, sdca_solver.LOSSES[loss].code),
        (sdca_solver.python_pass, sdca_solver.LOSSES[loss].update),
    ):
        duals, dense_delta, sparse_delta = np.zeros(count), np.zeros(5), np.zeros(7)
        run(how, 0.5, 2.0, *given, duals, dense, dense_delta, starts, places, values, sparse_delta)
        found.append((duals, dense_delta, sparse_delta))
    for compiled, twin in zip(*found):
        assert np.array_equal(compiled, twin) and np.isfinite(twin).all()


@pytest.mark.skipif(sdca_solver.compiled is None, reason="no compiled twin")
def test_compiled_pass_checks_its_arrays():
    """Arrays that do not fit together, and places outside of them, are refused."""
    ones = np.ones(2)
    good = [
        np.array([0, 1]), ones, ones, ones, ones, ones.copy(), np.ones([2, 1], np.float32), np.zeros(1), np.array([0, 1, 1]),
        np.array([0]), np.ones(1, np.float32), np.zeros(1),
    ]  # fmt: skip
    sdca_solver.compiled.sdca_pass(0, 1.0, 1.0, *good)
    for position, bad in ((0, np.array([0, 2])), (1, np.ones(3)), (8, np.array([0, 2, 1])), (9, np.array([1]))):
        wrong = [*good]
        wrong[position] = bad
        with pytest.raises(ValueError, match="do not fit"):
            sdca_solver.compiled.sdca_pass(0, 1.0, 1.0, *wrong)
    with pytest.raises(ValueError, match="do not fit"):
        sdca_solver.compiled.sdca_pass(9, 1.0, 1.0, *good)


def test_adaptive_draws_follow_the_gaps():
    """An example with all of the duality gap gets half of the draws and its even share of the rest."""
    gaps = np.zeros(50)
    gaps[7] = 3.0
    passes = [sdca_solver.drawn(np.random.RandomState(seed), gaps) for seed in range(100)]
    assert all(set(order) == set(range(50)) for order in passes)  # those that were not drawn come at the end
    draws = np.concatenate([order[:50] for order in passes])
    shares = np.bincount(draws, minlength=50) / len(draws)
    assert shares[7] == pytest.approx(0.51, abs=0.03) and np.delete(shares, 7) == pytest.approx(
        np.full(49, 0.01), abs=0.006
    )
    assert sorted(sdca_solver.drawn(np.random.RandomState(0), np.zeros(5))) == [0, 1, 2, 3, 4]


def test_inner_passes_do_not_shrink_again():
    """Within one call only the given weights are shrunk by l1 / l2, so a second pass over one example changes nothing."""
    one = _step([[1.0, 2.0]], [5.0], [0.2, 0.3], np.zeros([1, 4]), "squared_loss", 1.0, 1.0)
    many = _step([[1.0, 2.0]], [5.0], [0.2, 0.3], np.zeros([1, 4]), "squared_loss", 1.0, 1.0, passes=10)
    np.testing.assert_allclose(one[1], [5 / 6, 10 / 6], rtol=1e-6)
    np.testing.assert_allclose(many[1], one[1], rtol=1e-6)


def test_l2_must_be_positive():
    """Without l2 there is no dual problem."""
    with pytest.raises(tf.errors.InvalidArgumentError, match="l2 must be positive"):
        _step([[1.0, 2.0]], [5.0], [0.2, 0.3], np.zeros([1, 4]), "squared_loss", 1.0, 0.0)
