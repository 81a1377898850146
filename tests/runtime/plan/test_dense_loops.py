"""Small matrices are factored, inverted and solved inside of fused loops, with the values and errors of the ops' own kernels."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import stoker.compat.v1 as tf
from stoker._src.runtime.plan import fused_loops

pytestmark = pytest.mark.skipif(fused_loops.native is None, reason="the extension was not built")


def _matrices(seed, *sizes):
    """Well-conditioned square matrices whose pivots are not on the diagonal."""
    random = np.random.RandomState(seed)
    return (random.randn(*sizes) + 3 * np.roll(np.eye(sizes[-1]), 1, axis=0)).astype("f")


def _run(make, *values):
    """(results, plan) of a step that computes `make` of the sums of its feeds and 0."""
    with tf.Graph().as_default(), tf.Session() as session:
        feeds = [tf.placeholder(tf.float32, value.shape) for value in values]
        fetches = make(*[tf.tanh(feed) * 0.0 + feed for feed in feeds])
        fed = dict(zip(feeds, values))
        return session.run(fetches, fed), session.explain(fetches, fed)


@settings(deadline=None, max_examples=60)
@given(
    n=st.integers(1, 13),
    outer=st.sampled_from([(), (3,), (2, 2)]),
    columns=st.integers(1, 18),
    adjoint=st.booleans(),
    lower=st.booleans(),
    seed=st.integers(0, 1000),
)
def test_factorizations_equal_numpy(n, outer, columns, adjoint, lower, seed):
    """Inverse, determinant, Cholesky factor and solutions of equations, for one matrix and for many."""
    a, b = _matrices(seed, *outer, n, n), np.random.RandomState(seed + 1).randn(*outer, n, columns).astype("f")
    positive = (a @ np.swapaxes(a, -1, -2) + np.eye(n)).astype("f")
    only_lower = np.where(np.tri(n, dtype=bool), positive, np.float32(7))  # what is above the diagonal is not read
    triangle = (np.tril(a) if lower else np.triu(a)) + 4 * np.eye(n, dtype="f")

    def make(a, b, positive, triangle):
        return [
            tf.linalg.inv(a, adjoint=adjoint),
            tf.linalg.det(a),
            tf.linalg.cholesky(positive),
            tf.linalg.solve(a, b, adjoint=adjoint),
            tf.linalg.triangular_solve(triangle, b, lower=lower, adjoint=adjoint),
        ]

    found, plan = _run(make, a, b, only_lower, triangle)
    assert "= MatrixInverse(" not in plan and "= Cholesky(" not in plan
    a, b, positive, triangle = (each.astype("d") for each in (a, b, positive, triangle))
    turned = np.swapaxes(a, -1, -2) if adjoint else a
    expected = [
        np.linalg.inv(turned),
        np.linalg.det(a),
        np.linalg.cholesky(positive),
        np.linalg.solve(turned, b),
        np.linalg.solve(np.swapaxes(triangle, -1, -2) if adjoint else triangle, b),
    ]
    scale = np.max(np.linalg.cond(a))
    for one, other in zip(found, expected):
        np.testing.assert_allclose(one, other, rtol=1e-4, atol=1e-6 * scale * max(1, np.abs(other).max()))


@pytest.mark.parametrize("rows, columns", [(4, 4), (3, 5), (5, 3)])
@pytest.mark.parametrize("outer", [(), (2,)])
def test_diagonals_and_bands(rows, columns, outer):
    """Diagonals are taken, set and made into matrices, and bands are cut, as NumPy does it."""
    x = np.random.RandomState(0).randn(*outer, rows, columns).astype("f")
    count = min(rows, columns)

    def make(x):
        part = tf.linalg.diag_part(x)
        square = tf.linalg.diag(part)
        return [
            part,
            square,
            tf.linalg.set_diag(x, part * 2.0),
            tf.linalg.band_part(x, 1, 0),
            tf.linalg.band_part(x, -1, 1),
        ]

    found, plan = _run(make, x)
    assert "MatrixBandPart" not in plan.split("\n# ")[0].replace("MatrixBandPart_", "")
    diagonal = np.diagonal(x, axis1=-2, axis2=-1)
    doubled = x.copy()
    doubled[..., np.arange(count), np.arange(count)] *= 2
    expected = [diagonal, diagonal[..., None] * np.eye(count), doubled, np.triu(np.tril(x), -1), np.tril(x, 1)]
    for one, other in zip(found, expected):
        np.testing.assert_array_equal(one, other.astype("f"))


def test_singular_matrices_are_reported():
    """The error is that of the op: its class, its message and its node."""
    for make, message in (
        (lambda x: tf.linalg.inv(x, name="inverted"), "Input is not invertible"),
        (lambda x: tf.linalg.solve(x, x, name="inverted"), "Input matrix is not invertible"),
    ):
        with pytest.raises(tf.errors.InvalidArgumentError, match=message) as caught:
            _run(make, np.ones((3, 3), "f"))
        assert caught.value.op.name == "inverted"


def test_matrices_without_a_factor():
    """The determinant of a singular matrix is 0, and the Cholesky factor of one that is not positive definite is NaN."""
    (determinant, factor), _ = _run(
        lambda x, y: [tf.linalg.det(x), tf.linalg.cholesky(y)], np.ones((2, 3, 3), "f"), -np.eye(3, dtype="f")
    )
    np.testing.assert_array_equal(determinant, [0, 0])
    assert np.isnan(factor[np.tri(3, dtype=bool)]).all()


def _powers(matrix, trips):
    """Repeats x = inverse(x) + matrix; the loop runs natively."""
    with tf.Graph().as_default(), tf.Session() as session:
        start = tf.placeholder(tf.float32, matrix.shape)
        body = lambda i, x: (i + 1, tf.linalg.inv(x) + start)  # noqa: E731
        last = tf.while_loop(lambda i, x: i < trips, body, [0, start])[1]
        return session.run(last, {start: matrix})


def test_loops_with_inverses():
    """A loop that inverts matrices gives NumPy's result, and reports the iteration in which there is no inverse."""
    start = _matrices(3, 4, 4)
    expected = start.astype("d")
    for _ in range(5):
        expected = np.linalg.inv(expected) + start
    np.testing.assert_allclose(_powers(start, 5), expected, rtol=1e-4, atol=1e-4)
    with pytest.raises(tf.errors.InvalidArgumentError, match="Input is not invertible"):
        _powers(np.zeros((4, 4), "f"), 5)


def _drawn(inverts, matrix):
    """The sums of four random numbers in each of two runs of a loop, which may also invert a matrix."""
    with tf.Graph().as_default(), tf.Session() as session:
        tf.set_random_seed(5)
        start = tf.placeholder(tf.float32, [2, 2])

        def body(i, total):
            more = tf.linalg.inv(start + total * 0.0)[0, 0] * 0.0 if inverts else 0.0
            return i + 1, total + tf.random.uniform([], seed=3) + more

        total = tf.while_loop(lambda i, _: i < 4, body, [0, 0.0])[1]
        return [session.run(total, {start: matrix}) for _ in range(2)]


def test_loops_that_draw_numbers():
    """Random numbers beside inverses are those of a loop without them, and a matrix without an inverse is reported."""
    assert _drawn(True, np.eye(2)) == pytest.approx(_drawn(False, np.eye(2)))
    with pytest.raises(tf.errors.InvalidArgumentError, match="not invertible"):
        _drawn(True, np.zeros((2, 2)))
