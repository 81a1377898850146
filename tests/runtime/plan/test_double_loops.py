"""Fused loops of float64: the values of NumPy, and of the ops' own kernels; float32 and float64 side by side."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import stoker.compat.v1 as tf
from stoker._src.runtime.plan import fused_loops

pytestmark = pytest.mark.skipif(fused_loops.native is None, reason="the extension was not built")

EDGES = [
    0.0,
    -0.0,
    5e-324,
    -1e-310,
    1e-300,
    1e-17,
    -1e-9,
    0.3,
    -0.5,
    1.0,
    -1.0,
    20.0,
    -36.5,
    40.5,
    709.7,
    709.79,
    -745.0,
]
EDGES += [-746.0, 1e300, -1e300, 1.7976931348623157e308, np.inf, -np.inf, np.nan]


def _run(make, *values):
    """(results, plan) of a step whose feeds have known shapes."""
    with tf.Graph().as_default(), tf.Session() as session:
        feeds = [tf.placeholder(value.dtype, value.shape) for value in values]
        fetches = make(*feeds)
        fed = dict(zip(feeds, values))
        return session.run(fetches, fed), session.explain(fetches, fed)


def _kernels_in(plan):
    """The types of the ops that run by their own kernels."""
    return {line.split("= ")[1].split("(")[0].split("_")[0] for line in plan.splitlines() if "= " in line} - {"fused"}


FUNCTIONS = {
    "exp": (tf.exp, math.exp),
    "log": (tf.math.log, math.log),
    "log1p": (tf.math.log1p, math.log1p),
    "expm1": (tf.math.expm1, math.expm1),
    "tanh": (tf.tanh, math.tanh),
    "erf": (tf.math.erf, math.erf),
    "sigmoid": (tf.sigmoid, lambda x: 1 / (1 + math.exp(-x)) if x > -700 else math.exp(x)),
    "sqrt": (tf.sqrt, math.sqrt),
    "sin": (tf.sin, math.sin),
    "cos": (tf.cos, math.cos),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_elementary_functions_to_the_last_places(name):
    """Elementary functions are within a few units in the last place of the C library's, from the smallest to the largest numbers.

    Subnormal results are zero.
    """
    function, reference = FUNCTIONS[name]
    random = np.random.RandomState(0)
    x = np.concatenate([random.randn(3000) * 10.0 ** random.randint(-12, 3, 3000), EDGES])
    (found,), plan = _run(lambda x: [function(tf.negative(-x))], x[None])
    assert not _kernels_in(plan)

    def expected(value):
        try:
            return reference(value)
        except OverflowError:
            return math.inf
        except ValueError:
            return -math.inf if value == (-1.0 if name == "log1p" else 0.0) and name.startswith("log") else math.nan

    expected = np.array([expected(value) for value in x])
    np.testing.assert_allclose(found[0], expected, rtol=2e-15, atol=2.3e-308)


@pytest.mark.parametrize("kind, far, tolerance", [(np.float64, 1e200, 1e-14), (np.float32, 1e30, 3e-7)])
def test_digamma_at_known_places(kind, far, tolerance):
    """At whole numbers and halves, digamma is a harmonic sum less Euler's constant; far away it is a logarithm, and for negatives it is reflected."""
    euler = 0.57721566490153286061
    whole = [sum(1 / k for k in range(1, n)) - euler for n in range(1, 30)]
    halves = [sum(2 / (2 * k - 1) for k in range(1, n)) - euler - 2 * math.log(2) for n in range(1, 30)]
    x = np.array([*range(1, 30), *(n - 0.5 for n in range(1, 30)), 2.0**-20, far, -0.5, -2.5], kind)
    near_zero = -(2.0**20) - euler + np.pi**2 / 6 * 2.0**-20
    expected = [*whole, *halves, near_zero, math.log(x[-3]), halves[0] + 2, halves[0] + 2 + 2 / 3 + 2 / 5]
    (found,), plan = _run(lambda x: [tf.math.digamma(tf.negative(-x))], x)
    assert not _kernels_in(plan)
    np.testing.assert_allclose(found, expected, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("kind, tolerance", [(np.float64, 1e-14), (np.float32, 3e-7)])
def test_slope_of_digamma_at_known_places(kind, tolerance):
    """At whole numbers and halves, the derivative of digamma is what is left of the sum of inverse squares; it is reflected, and infinite at poles."""
    whole = [np.pi**2 / 6 - sum(1 / k**2 for k in range(1, n)) for n in range(1, 30)]
    halves = [np.pi**2 / 2 - sum(4 / (2 * k - 1) ** 2 for k in range(1, n)) for n in range(1, 30)]
    x = np.array(
        [*range(1, 30), *(n - 0.5 for n in range(1, 30)), 2.0**40, -0.5, -2.5, 0.0, -3.0, np.inf, np.nan], kind
    )
    expected = [
        *whole,
        *halves,
        2.0**-40,
        np.pi**2 / 2 + 4,
        np.pi**2 / 2 + 4 + 4 / 9 + 4 / 25,
        np.inf,
        np.inf,
        0,
        np.nan,
    ]

    def make(x):
        x = tf.negative(-x)
        return tf.gradients(tf.math.digamma(x), x)

    (found,), plan = _run(make, x)
    assert not _kernels_in(plan)
    np.testing.assert_allclose(found, expected, rtol=tolerance, atol=2e-15)


def test_digamma_without_a_value():
    """Digamma is NaN at its poles, of minus infinity and of NaN; that of infinity is infinite, and the numbers beside them have values."""
    x = np.array([0.0, -0.0, -1.0, -30.0, -np.inf, np.nan, np.inf, 1.0])
    (found,), _ = _run(lambda x: [tf.math.digamma(tf.negative(-x)) + 0.0], x)
    assert np.isnan(found[:6]).all()
    np.testing.assert_allclose(found[6:], [np.inf, -0.57721566490153286061])


@settings(deadline=None, max_examples=40)
@given(st.integers(1, 5), st.integers(1, 40), st.integers(1, 20), st.integers(0, 99))
def test_a_layer_and_its_gradient(rows, inner, columns, seed):
    """Products, sums, softmax, selections and copies of float64 are as NumPy computes them."""
    random = np.random.RandomState(seed)
    x, w, b = random.randn(rows, inner), random.randn(inner, columns), random.randn(columns)

    def make(x, w, b):
        h = tf.tanh(tf.matmul(x, w) + b)
        p = tf.nn.softmax(h)
        big = tf.where(h > 0.1, h, tf.zeros_like(h) - 0.1)
        loss = tf.reduce_sum(p * big) + tf.reduce_mean(tf.concat([h, big], 1)) + tf.reduce_max(h)
        return [h, p, loss, tf.reduce_sum(big, 0), tf.gradients(tf.reduce_sum(h * h), w)[0]]

    (h, p, loss, total, slope), plan = _run(make, x, w, b)
    assert not _kernels_in(plan)
    expected = np.tanh(x @ w + b)
    e = np.exp(expected - expected.max(1, keepdims=True))
    big = np.where(expected > 0.1, expected, -0.1)
    np.testing.assert_allclose(h, expected, rtol=1e-12, atol=1e-14)
    np.testing.assert_allclose(p, e / e.sum(1, keepdims=True), rtol=1e-13)
    np.testing.assert_allclose(total, big.sum(0), rtol=1e-12, atol=1e-13)
    value = (p * big).sum() + np.concatenate([expected, big], 1).mean() + expected.max()
    np.testing.assert_allclose(loss, value, rtol=1e-12, atol=1e-13)
    np.testing.assert_allclose(slope, x.T @ (2 * expected * (1 - expected**2)), rtol=1e-10, atol=1e-12)


@settings(deadline=None, max_examples=20)
@given(st.integers(1, 6), st.integers(0, 99))
def test_factorizations_keep_their_precision(n, seed):
    """Cholesky factors, inverses, determinants and solutions of float64 are as precise as LAPACK's."""
    random = np.random.RandomState(seed)
    root = random.randn(3, n, n)
    a, b = root @ root.transpose(0, 2, 1) + np.eye(n), random.randn(3, n, 2)

    def make(a, b):
        return [tf.linalg.cholesky(a), tf.linalg.inv(a), tf.linalg.det(a), tf.linalg.solve(a, b)]

    (factor, inverse, determinant, solution), _ = _run(make, a, b)
    np.testing.assert_allclose(factor, np.linalg.cholesky(a), rtol=1e-9, atol=1e-11)
    np.testing.assert_allclose(inverse, np.linalg.inv(a), rtol=1e-9, atol=1e-11)
    np.testing.assert_allclose(determinant, np.linalg.det(a), rtol=1e-9)
    np.testing.assert_allclose(solution, np.linalg.solve(a, b), rtol=1e-9, atol=1e-11)


def test_both_precisions_in_one_step():
    """Ops of float32 and of float64 run in loops of their own, and casts between them round as NumPy does."""
    x, y = np.linspace(-1, 1, 40).reshape(4, 10), np.linspace(0, 2, 40).astype("f").reshape(4, 10)

    def make(x, y):
        a, b = tf.exp(x) * 3.0 + x, tf.sqrt(y) * 0.1 + y
        narrow = tf.cast(a, tf.float32)
        return [a, b, narrow * b + narrow, tf.cast(b, tf.float64) * a - a]

    (a, b, narrow, wide), plan = _run(make, x, y)
    assert a.dtype == wide.dtype == np.float64 and b.dtype == narrow.dtype == np.float32
    assert _kernels_in(plan) == {"Cast"}
    np.testing.assert_allclose(a, np.exp(x) * 3 + x, rtol=1e-14)
    np.testing.assert_allclose(b, np.sqrt(y) * np.float32(0.1) + y, rtol=1e-6)
    np.testing.assert_allclose(narrow, a.astype("f") * b + a.astype("f"), rtol=1e-6)
    np.testing.assert_allclose(wide, b.astype("d") * a - a, rtol=1e-14)


def test_constants_are_not_rounded():
    """A constant, also one that a loop brings itself, has all digits of float64."""
    x = np.full([3, 3], 1.0)
    (third, six), plan = _run(lambda x: [x * (1 / 3) + 0.1, tf.nn.relu6(x * 6.1)], x)
    assert not _kernels_in(plan)
    np.testing.assert_array_equal(third, np.full([3, 3], 1.0 * (1 / 3) + 0.1))
    np.testing.assert_array_equal(six, np.full([3, 3], 6.0))


@settings(deadline=None, max_examples=30)
@given(st.integers(1, 7), st.lists(st.integers(0, 6), min_size=1, max_size=9), st.sampled_from([np.int32, np.int64]))
def test_integers_beside_float64(rows, ids, dtype):
    """Lookups and places beside float64 have NumPy's values for both integers; those of 64 bits are not narrowed."""
    ids = np.array(ids, dtype) % rows
    table = np.random.RandomState(rows).randn(rows, 3)

    def make(table, ids):
        taken = tf.gather(tf.sin(table) * 1.0, ids) + 1.0
        places = tf.argmax(taken, 1, output_type=tf.int64)
        return [taken, places * 6000000000, tf.math.unsorted_segment_sum(taken, ids, rows)]

    (taken, places, total), _ = _run(make, table, ids)
    expected = np.sin(table)[ids] + 1
    np.testing.assert_allclose(taken, expected, rtol=1e-14)
    np.testing.assert_array_equal(places, expected.argmax(1) * 6000000000)
    sums = np.zeros([rows, 3])
    np.add.at(sums, ids, expected)
    np.testing.assert_allclose(total, sums, rtol=1e-13)


def test_rows_of_large_tensors():
    """Large tensors go through the loops in blocks of rows, with booleans and reductions."""
    x = np.random.RandomState(0).randn(300, 400)

    def make(x):
        centered = x - tf.reduce_mean(x, 1, keepdims=True)
        scale = tf.rsqrt(tf.reduce_mean(tf.square(centered), 1, keepdims=True) + 1e-12)
        return [tf.where(centered > 0.0, centered * scale, tf.exp(centered))]

    (found,), plan = _run(make, x)
    assert "fused_loops" in plan
    centered = x - x.mean(1, keepdims=True)
    expected = np.where(
        centered > 0, centered / np.sqrt((centered**2).mean(1, keepdims=True) + 1e-12), np.exp(centered)
    )
    np.testing.assert_allclose(found, expected, rtol=1e-11)


def test_a_native_loop_of_float64():
    """A loop over float64 values and lists runs natively, with NumPy's values."""
    start, items = np.linspace(-1, 1, 6), np.random.RandomState(0).randn(9, 6)

    def make(start, items):
        taken, made = tf.TensorArray(tf.float64, 9).unstack(items), tf.TensorArray(tf.float64, 9)

        def body(i, x, made):
            x = x * 0.9 + taken.read(i) * 0.1
            return i + 1, x, made.write(i, x * x)

        _, last, made = tf.while_loop(lambda i, *_: i < 9, body, [0, start, made])
        return [last, made.stack()]

    (last, made), _ = _run(make, start, items)
    x, expected = start, []
    for item in items:
        x = x * 0.9 + item * 0.1
        expected.append(x * x)
    np.testing.assert_allclose(last, x, rtol=1e-13, atol=1e-15)
    np.testing.assert_allclose(made, expected, rtol=1e-12, atol=1e-15)


def test_updates_of_large_variables():
    """A decayed average of float64 changes the variable in the loops; the values are NumPy's."""
    x = np.random.RandomState(0).randn(300, 200)
    with tf.Graph().as_default(), tf.Session() as session:
        given = tf.placeholder(tf.float64, x.shape)
        average = tf.Variable(np.zeros_like(x))
        update = tf.assign_add(average, 0.1 * (tf.square(given) - average)).op
        session.run(tf.global_variables_initializer())
        for _ in range(3):
            session.run(update, {given: x})
        expected = np.zeros_like(x)
        for _ in range(3):
            expected = expected + 0.1 * (x**2 - expected)
        np.testing.assert_allclose(session.run(average), expected, rtol=1e-13)
