"""Softmax and cross entropies."""

from unittest import mock

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import stoker as tf2
import stoker.compat.v1 as tf
from stoker._src.base.errors import InvalidArgumentError
from stoker._src.ops.nn import cross_entropy
from tests.ops.samples import WHEN_BUILT, Sample, check_sample, f32, f64, i32, positive, samples
from tests.running import run


def softmax(x, axis=-1):
    e = np.exp(x - x.max(axis, keepdims=True))
    return e / e.sum(axis, keepdims=True)


def dense(x, p):
    return -(p * np.log(softmax(x))).sum(-1), softmax(x) - p


def sparse(x, labels):
    q = np.eye(x.shape[-1])[labels]
    return -np.log(softmax(x))[np.arange(len(x)), labels], softmax(x) - q


SAMPLES = [
    Sample("Softmax", [f64(2, 3, 4)], reference=softmax),
    Sample("Softmax", [f64(4)], reference=softmax),
    Sample("Softmax", [f64(2, 0)], reference=lambda x: x, gradient=False),
    Sample("Softmax", [f32()], raises=(WHEN_BUILT, "rank")),
    Sample("LogSoftmax", [f64(2, 4)], reference=lambda x: np.log(softmax(x))),
    Sample("SoftmaxCrossEntropyWithLogits", [f64(3, 4), positive(3, 4)], reference=dense, gradient=False),
    Sample("SoftmaxCrossEntropyWithLogits", [f64(3, 4), positive(1, 4)], reference=dense, gradient=False),
    Sample(
        "SoftmaxCrossEntropyWithLogits",
        [f32(3, 4), f32(3, 5)],
        raises=(InvalidArgumentError, "broadcast|Incompatible|equal"),
    ),
    Sample("SparseSoftmaxCrossEntropyWithLogits", [f64(3, 4), i32(3, low=0, high=4)], reference=sparse),
    Sample("SparseSoftmaxCrossEntropyWithLogits", [f64(0, 4), i32(0)], reference=sparse),
    Sample(
        "SparseSoftmaxCrossEntropyWithLogits",
        [f32(2, 3), np.array([0, 5])],
        raises=(InvalidArgumentError, r"label value of 5 which is outside the valid range of \[0, 3\)"),
    ),
    Sample(
        "SparseSoftmaxCrossEntropyWithLogits",
        [f32(2, 3), np.array([-1, 0])],
        raises=(InvalidArgumentError, r"label value of -1"),
    ),
    Sample(
        "SparseSoftmaxCrossEntropyWithLogits",
        [f32(2, 3), i32(3)],
        raises=(InvalidArgumentError, "2.*3|first dimension"),
    ),
]


@samples(SAMPLES)
def test_sample(sample: Sample) -> None:
    """The op does what its reference does, in every mode."""
    check_sample(sample)


def differences(function, x, step=1e-6):
    result = np.zeros_like(x)
    for index in np.ndindex(*x.shape):
        up, down = x.copy(), x.copy()
        up[index] += step
        down[index] -= step
        result[index] = (function(up) - function(down)) / (2 * step)
    return result


def test_softmax_along_any_axis() -> None:
    """softmax and log_softmax work along `axis` (or `dim`), also a negative one."""
    x = f64(2, 3, 4)
    for axis in (0, 1, 2, -1, -2, -3):
        np.testing.assert_allclose(run(tf.nn.softmax(tf.constant(x), axis)), softmax(x, axis))
        np.testing.assert_allclose(run(tf.nn.log_softmax(tf.constant(x), dim=axis)), np.log(softmax(x, axis)))
    unknown = tf.placeholder(tf.float64)
    with tf.Session() as session:
        np.testing.assert_allclose(session.run(tf.nn.softmax(unknown, 0), {unknown: x}), softmax(x, 0))
    with pytest.raises((InvalidArgumentError, ValueError), match="dim=5"):
        tf.nn.softmax(tf.constant(x), 5)
    with pytest.raises(ValueError, match="both"):
        tf.nn.softmax(tf.constant(x), 1, dim=1)


def test_dense_loss_has_gradients_to_logits_and_labels() -> None:
    """Version 2 differentiates to the labels; the older function stops there."""
    x, p = f64(3, 4), softmax(f64(3, 4))
    logits, labels = tf.constant(x), tf.constant(p)
    both = tf.nn.softmax_cross_entropy_with_logits_v2(labels=labels, logits=logits)
    older = tf.nn.softmax_cross_entropy_with_logits(labels=labels, logits=logits)
    assert both.op.name == "softmax_cross_entropy_with_logits/Reshape_2"
    assert older.op.name == "softmax_cross_entropy_with_logits_sg/Reshape_2"
    np.testing.assert_allclose(run(both), dense(x, p)[0])
    np.testing.assert_allclose(run(tf.gradients(both, logits)[0]), softmax(x) - p)
    np.testing.assert_allclose(run(tf.gradients(both, labels)[0]), -np.log(softmax(x)))
    assert tf.gradients(older, labels) == [None]
    with pytest.raises(ValueError, match="labels and logits"):
        tf.nn.softmax_cross_entropy_with_logits(labels=labels)


def test_dense_loss_of_any_rank_and_axis() -> None:
    """The class dimension is removed, wherever it is."""
    x, p = f64(2, 3, 4), softmax(f64(2, 3, 4), 1)
    loss = tf.nn.softmax_cross_entropy_with_logits_v2(labels=tf.constant(p), logits=tf.constant(x), axis=1)
    assert loss.shape.as_list() == [2, 4]
    np.testing.assert_allclose(run(loss), -(p * np.log(softmax(x, 1))).sum(1))
    vector = tf.nn.softmax_cross_entropy_with_logits_v2(labels=tf.constant(p[0, :, 0]), logits=tf.constant(x[0, :, 0]))
    np.testing.assert_allclose(run(vector), -(p[0, :, 0] * np.log(softmax(x[0, :, 0]))).sum())


@pytest.mark.parametrize("kind", ["dense", "sparse"])
def test_second_derivative(kind) -> None:
    """The derivative of the gradient, against differences of the gradient."""
    x, p, w = f64(2, 3), softmax(f64(2, 3)), f64(2, 3)
    place = tf.placeholder(tf.float64, [2, 3])
    if kind == "dense":
        loss = tf.nn.softmax_cross_entropy_with_logits_v2(labels=tf.constant(p), logits=place)
    else:
        loss = tf.nn.sparse_softmax_cross_entropy_with_logits(labels=[2, 0], logits=place)
    gradient = tf.gradients(tf.square(loss), place)[0]
    projected = tf.reduce_sum(gradient * w)
    with tf.Session() as session:
        found = session.run(tf.gradients(projected, place)[0], {place: x})
        expected = differences(lambda value: session.run(projected, {place: value}), x)
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-6)


def test_sparse_loss_of_any_rank() -> None:
    """Labels have one dimension less than logits; their shapes must agree."""
    x, labels = f64(2, 3, 4), i32(2, 3, low=0, high=4)
    loss = tf.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=tf.constant(x))
    expected = sparse(x.reshape(6, 4), labels.reshape(6))[0].reshape(2, 3)
    np.testing.assert_allclose(run(loss), expected)
    with pytest.raises(ValueError, match="rank"):
        tf.nn.sparse_softmax_cross_entropy_with_logits(labels=[[1]], logits=tf.constant(x[0]))
    with pytest.raises(ValueError, match="except for the last dimension"):
        tf.nn.sparse_softmax_cross_entropy_with_logits(labels=[1, 2], logits=tf.constant(x[0]))
    with pytest.raises(ValueError, match="scalar"):
        tf.nn.sparse_softmax_cross_entropy_with_logits(labels=[1, 2], logits=tf.constant(1.0))


def test_sigmoid_losses() -> None:
    """The logistic losses equal their definitions, also for large logits, and have gradient sigmoid(x) - z."""
    x, z = 30 * f64(2, 3), softmax(f64(2, 3))
    logits = tf.constant(x)
    loss = tf.nn.sigmoid_cross_entropy_with_logits(labels=tf.constant(z), logits=logits)
    assert loss.op.name == "logistic_loss"
    np.testing.assert_allclose(run(loss), np.logaddexp(0, x) - x * z)
    np.testing.assert_allclose(run(tf.gradients(loss, logits)[0]), 1 / (1 + np.exp(-x)) - z, atol=1e-9)
    weighted = tf.nn.weighted_cross_entropy_with_logits(labels=tf.constant(z), logits=logits, pos_weight=3.0)
    np.testing.assert_allclose(run(weighted), 3 * z * np.logaddexp(0, -x) + (1 - z) * np.logaddexp(0, x))
    with pytest.raises(ValueError, match="same shape"):
        tf.nn.sigmoid_cross_entropy_with_logits(labels=tf.constant(z[0]), logits=logits)


def test_poisson_loss() -> None:
    """exp(c) - c z, plus Stirling's approximation of log(z!) for z above 1 if the full loss is wanted."""
    c, z = f64(4), np.array([0.5, 1, 2, 7.0])
    np.testing.assert_allclose(run(tf.nn.log_poisson_loss(tf.constant(z), tf.constant(c))), np.exp(c) - c * z)
    stirling = np.where(z <= 1, 0, z * np.log(z) - z + 0.5 * np.log(2 * np.pi * z))
    full = tf.nn.log_poisson_loss(tf.constant(z), tf.constant(c), compute_full_loss=True)
    np.testing.assert_allclose(run(full), np.exp(c) - c * z + stirling)


def test_losses_in_eager_mode(eager) -> None:
    """The tape's gradient of both cross entropies is softmax minus the labels."""
    x, p = f64(3, 4), softmax(f64(3, 4))
    with tf2.GradientTape(persistent=True) as tape:
        logits = tf2.constant(x)
        tape.watch(logits)
        first = tf2.nn.softmax_cross_entropy_with_logits(labels=p, logits=logits)
        second = tf2.nn.sparse_softmax_cross_entropy_with_logits(labels=[1, 0, 3], logits=logits)
    np.testing.assert_allclose(tape.gradient(first, logits).numpy(), softmax(x) - p)
    np.testing.assert_allclose(tape.gradient(second, logits).numpy(), softmax(x) - np.eye(4)[[1, 0, 3]])


@pytest.mark.skipif(cross_entropy._native is None, reason="the extension was not built")
@pytest.mark.parametrize(("rows", "classes"), [(0, 3), (1, 1), (7, 10), (64, 17), (50, 1000)])
def test_sparse_cross_entropy_in_one_pass_equals_its_twin(rows, classes):
    """The native loops give what torch's ops give: for threads and without, for infinite logits and NaN, for a label that is not a class."""
    random = np.random.RandomState(rows)
    logits = (random.randn(rows, classes) * 5).astype("f")
    if rows > 5 and classes > 3:
        logits[0, 1], logits[1, 2], logits[2, 0], logits[3] = -np.inf, np.nan, np.inf, -np.inf
    labels = random.randint(0, classes, rows)
    native = loss_and_gradient(logits, labels)
    with mock.patch.object(cross_entropy, "_native", None):
        twin = loss_and_gradient(logits, labels)
    for found, expected in zip(native, twin):
        np.testing.assert_allclose(found, expected, rtol=2e-6, atol=2e-6)
    if rows:
        with pytest.raises(tf.errors.InvalidArgumentError, match=f"label value of {classes} "):
            loss_and_gradient(logits, np.full(rows, classes))


@pytest.mark.skipif(cross_entropy._native is None, reason="the extension was not built")
@pytest.mark.parametrize(("rows", "classes"), [(1, 1), (7, 10), (64, 17), (50, 1000)])
def test_dense_cross_entropy_in_one_pass_equals_its_twin(rows, classes):
    """The native loops give what torch's ops give: for threads and without, for infinite logits and NaN, for labels that are broadcast."""
    random = np.random.RandomState(rows)
    logits = (random.randn(rows, classes) * 5).astype("f")
    labels = softmax(random.randn(rows, classes)).astype("f")
    labels[0] = np.eye(classes)[0]
    if rows > 5 and classes > 3:
        logits[1, 2], logits[2, 0], logits[3], logits[4, 1] = np.nan, np.inf, -np.inf, np.finfo(np.float32).min

    def both(labels):
        with tf.Graph().as_default(), tf.Session() as session:
            return session.run(tf.raw_ops.SoftmaxCrossEntropyWithLogits(features=logits, labels=labels))

    for each in (labels, labels[:1]):
        native = both(each)
        with mock.patch.object(cross_entropy, "_native", None):
            twin = both(each)
        for found, expected in zip(native, twin):
            np.testing.assert_allclose(found, expected, rtol=3e-6, atol=3e-6)


def loss_and_gradient(logits, labels):
    with tf.Graph().as_default(), tf.Session() as session:
        return session.run(tf.raw_ops.SparseSoftmaxCrossEntropyWithLogits(features=logits, labels=labels))


@settings(max_examples=40, deadline=None)
@given(st.integers(1, 200), st.integers(1, 20), st.integers(0, 999))
def test_rows_of_few_classes_do_not_depend_on_each_other(rows, classes, seed):
    """Losses and gradients of many rows are, bit for bit, those of each row alone, and NumPy's; rows that are not finite change no others."""
    random = np.random.RandomState(seed)
    logits, labels = 5 * random.randn(rows, classes).astype("f"), random.randint(0, classes, rows)
    probabilities = random.dirichlet(np.ones(classes), rows).astype("f")
    logits[random.rand(rows) < 0.1, 0] = random.choice([np.nan, np.inf, -np.inf])
    sparse = tf.raw_ops.SparseSoftmaxCrossEntropyWithLogits
    dense = tf.raw_ops.SoftmaxCrossEntropyWithLogits
    with tf.Graph().as_default(), tf.Session() as session:
        x, p = (tf.placeholder(tf.float32, [None, classes]) for _ in range(2))
        ids = tf.placeholder(tf.int64, [None])
        fetches = [sparse(features=x, labels=ids), dense(features=x, labels=p), tf.nn.softmax(x)]
        together = tf.nest.flatten(session.run(fetches, {x: logits, ids: labels, p: probabilities}))
        for i in range(0, rows, 1 + rows // 8):
            one = {x: logits[i : i + 1], ids: labels[i : i + 1], p: probabilities[i : i + 1]}
            for all_rows, row in zip(together, tf.nest.flatten(session.run(fetches, one))):
                np.testing.assert_array_equal(all_rows[i : i + 1], row)
    finite = np.isfinite(logits).all(1)
    exact = logits[finite].astype(np.float64)
    exact -= np.log(np.exp(exact).sum(1, keepdims=True))
    one_hot = np.eye(classes)[labels[finite]]
    expected = [
        -(one_hot * exact).sum(1),
        np.exp(exact) - one_hot,
        -(probabilities[finite] * exact).sum(1),
        np.exp(exact) - probabilities[finite],
        np.exp(exact),
    ]
    for found, wanted in zip(together, expected):
        np.testing.assert_allclose(found[finite], wanted, rtol=1e-4, atol=1e-5)
