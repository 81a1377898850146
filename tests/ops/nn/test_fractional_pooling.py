"""Fractional pooling: windows as the sequences say, sequences as the ratios say."""

import itertools

import numpy as np
import pytest

import stoker.compat.v1 as tf
from stoker._src.base.errors import InvalidArgumentError, UnimplementedError
from tests.ops.samples import WHEN_BUILT, Sample, check_sample, f64, samples

X = np.random.RandomState(2).permutation(2 * 7 * 8 * 2).reshape(2, 7, 8, 2).astype(np.float64) / 20
ROWS, COLUMNS = np.array([0, 1, 3, 5, 7]), np.array([0, 2, 3, 5, 6, 8])


def pooled(x, rows, columns, overlapping, reduce):
    extra = 1 if overlapping else 0
    return np.stack(
        [
            np.stack(
                [reduce(x[:, a : b + extra, c : d + extra], axis=(1, 2)) for c, d in itertools.pairwise(columns)], 1
            )
            for a, b in itertools.pairwise(rows)
        ],
        1,
    )


@pytest.mark.parametrize("overlapping", [False, True])
@pytest.mark.parametrize("pseudo", [False, True])
@pytest.mark.parametrize("kind", ["max", "avg"])
def test_windows_and_gradient(kind, pseudo, overlapping) -> None:
    """Outputs are the maxima (averages) of the windows, the gradient that of the reduction over them."""
    make = tf.nn.fractional_max_pool if kind == "max" else tf.nn.fractional_avg_pool
    reduce = np.max if kind == "max" else np.mean
    x = tf.constant(X)
    y, rows, columns = make(x, [1.0, 1.5, 1.44, 1.0], pseudo, overlapping, deterministic=True, seed=3, seed2=4)
    assert y.shape.as_list() == [2, 4, 5, 2]
    gradient = tf.gradients(tf.square(y), x)[0]
    with tf.Session() as session:
        value, r, c, slope = session.run([y, rows, columns, gradient])
        again = session.run(rows)
    assert (r == again).all()
    for cuts, size in ((r, 7), (c, 8)):
        assert cuts[0] == 0 and cuts[-1] == size and set(np.diff(cuts)) <= {1, 2}
    np.testing.assert_allclose(value, pooled(X, r, c, overlapping, reduce))
    for index in [(0, 0, 0, 0), (1, 3, 4, 1), (0, 6, 7, 1), (1, 2, 3, 0)]:
        up, down = X.copy(), X.copy()
        up[index] += 1e-6
        down[index] -= 1e-6
        change = (
            pooled(up, r, c, overlapping, reduce) ** 2 - pooled(down, r, c, overlapping, reduce) ** 2
        ).sum() / 2e-6
        np.testing.assert_allclose(slope[index], change, rtol=1e-5, atol=1e-5)


MAXIMA = pooled(X, ROWS, COLUMNS, False, np.max)
SAMPLES = [
    Sample("FractionalAvgPoolGrad", [np.array([2, 7, 8, 2]), f64(2, 4, 5, 2), ROWS, COLUMNS], gradient=False),
    Sample("FractionalMaxPoolGrad", [X, MAXIMA, f64(2, 4, 5, 2), ROWS, COLUMNS], gradient=False),
    Sample(
        "FractionalMaxPoolGrad",
        [X, MAXIMA + 1, f64(2, 4, 5, 2), ROWS, COLUMNS],
        raises=(InvalidArgumentError, "not the same as tensor_out"),
    ),
    Sample(
        "FractionalMaxPoolGrad",
        [X, f64(2, 4, 5, 2), f64(2, 3, 5, 2), ROWS, COLUMNS],
        raises=(InvalidArgumentError, "out_backprop"),
    ),
    Sample(
        "FractionalMaxPool",
        [X],
        {"pooling_ratio": [1.0, 0.5, 1.0, 1.0]},
        raises=(WHEN_BUILT, "smaller than 1"),
    ),
    Sample(
        "FractionalMaxPool",
        [X],
        {"pooling_ratio": [2.0, 1.5, 1.0, 1.0]},
        raises=(UnimplementedError, "batch and channels"),
    ),
]


@samples(SAMPLES)
def test_sample(sample: Sample) -> None:
    """The gradient ops run in every mode; bad ratios and shapes are refused."""
    check_sample(sample)


def test_draws_differ_unless_deterministic() -> None:
    """Without `deterministic` each run draws windows anew."""
    rows = tf.nn.fractional_max_pool(tf.zeros([1, 40, 40, 1]), [1.0, 1.44, 1.44, 1.0])[1]
    with tf.Session() as session:
        drawn = {tuple(session.run(rows).tolist()) for _ in range(4)}
    assert len(drawn) > 1


def test_seeds_need_deterministic() -> None:
    """Seeds without `deterministic` are refused, as in TensorFlow."""
    rows = tf.nn.fractional_max_pool(tf.zeros([1, 40, 40, 1]), [1.0, 1.44, 1.44, 1.0], seed=1, seed2=2)[1]
    with tf.Session() as session, pytest.raises(tf.errors.InvalidArgumentError, match="should be 0"):
        session.run(rows)


@pytest.mark.parametrize(
    ("pseudo_random", "rows", "columns"),
    [
        (False, [0, 1, 2, 4, 6], [0, 2, 3, 5, 6, 7]),
        (True, [0, 2, 4, 5, 6], [0, 2, 3, 5, 6, 7]),
    ],
)
def test_windows_are_tensorflows(pseudo_random: bool, rows: list[int], columns: list[int]) -> None:
    """The same seeds cut an image as TensorFlow 2.21 does (its numbers)."""
    attrs = {"deterministic": True, "seed": 5, "seed2": 6, "pseudo_random": pseudo_random}
    found = tf.nn.fractional_max_pool(tf.zeros([1, 6, 7, 1]), [1.0, 1.5, 1.4, 1.0], **attrs)[1:]
    with tf.Session() as session:
        assert [each.tolist() for each in session.run(found)] == [rows, columns]
