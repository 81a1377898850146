"""Legal calls that programs make now and then, and edges of their values: the numbers are TensorFlow 2.21's."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import stoker as tf2
import stoker.compat.v1 as tf
from stoker._src.graph import context
from stoker._src.graph.definition import find_definition
from tests.running import run


def run_op(op: str, *inputs: Any, **attrs: Any) -> Any:
    definition = find_definition(op)
    assert definition is not None
    with context.enter_eager():
        result = definition(*[tf.convert_to_tensor(each) for each in inputs], **attrs)
        return [each.numpy() for each in result] if isinstance(result, tuple) else result.numpy()


@pytest.fixture
def session():
    with tf.Graph().as_default(), tf.Session() as opened:
        yield opened


def test_ties_of_fractional_max_pool_go_to_the_first_in_row_order() -> None:
    """Of two equal elements the one in the earlier row receives the gradient."""
    x, edges = np.array([1, 5, 5, 1], np.float32).reshape(1, 2, 2, 1), np.array([0, 2])
    one = np.ones((1, 1, 1, 1), np.float32)
    assert run_op("FractionalMaxPoolGrad", x, one * 5, one * 9, edges, edges).ravel().tolist() == [0, 9, 0, 0]


def test_sums_of_embeddings_count_negative_weights():
    """safe_embedding_lookup_sparse passes over weights that are not positive for means, not for sums."""
    ids = tf.SparseTensor([[0, 0], [0, 1]], tf.constant([1, 2], tf.int64), [1, 2])
    weights = tf.SparseTensor([[0, 0], [0, 1]], [2.0, -1.0], [1, 2])
    table = np.arange(6.0, dtype=np.float32).reshape(3, 2)
    found = [tf.nn.safe_embedding_lookup_sparse(table, ids, weights, combiner=how) for how in ("sum", "mean")]
    np.testing.assert_allclose(run(found), [[2 * table[1] - table[2]], [table[1]]])


def test_rows_of_ids_of_unknown_rank():
    """safe_embedding_lookup_sparse combines the last dimension of ids of any rank."""
    table = np.arange(6.0, dtype=np.float32).reshape(3, 2)
    places = tf.placeholder_with_default(np.array([[0, 1, 0], [1, 0, 1]]), None)
    ids = tf.SparseTensor(places, tf.constant([1, 2], tf.int64), tf.placeholder_with_default(np.array([2, 2, 2]), None))
    found = run(tf.nn.safe_embedding_lookup_sparse(table, ids))
    np.testing.assert_array_equal(found, [[[0, 0], [2, 3]], [[4, 5], [0, 0]]])


def test_pooling_windows_of_any_size(session):
    """Windows far larger than the input cover all of it, and cost no more than it."""
    x = tf.constant(np.arange(16, dtype=np.float32).reshape(1, 4, 4, 1))
    volume = tf.constant(np.arange(64, dtype=np.float32).reshape(1, 4, 4, 4, 1))
    large = 2**30
    largest = tf.nn.max_pool(x, [1, large, large, 1], [1, 1, 1, 1], "SAME")
    mean = tf.nn.avg_pool(x, [1, large, large, 1], [1, 1, 1, 1], "SAME")
    _, places = tf.nn.max_pool_with_argmax(x, [1, large, large, 1], [1, 1, 1, 1], "SAME")
    found = session.run(
        [largest, mean, places, tf.nn.max_pool3d(volume, large, 1, "SAME"), tf.gradients(largest, x)[0]]
    )
    for value, expected in zip(found[:4], (15, 7.5, 15, 63)):
        assert set(value.ravel().tolist()) == {expected}
    assert found[4].ravel().tolist() == [0.0] * 15 + [16.0]
    corner = session.run(tf.nn.avg_pool3d(volume, 5, 1, "SAME")).ravel()[:3]
    assert corner.tolist() == [21.0, 21.5, 21.5]


def test_fractional_pooling_divides_in_single_precision(session):
    """A ratio of 1.2 makes 5 of 6 columns."""
    x = tf.placeholder(tf.float32, [2, 7, 6, 3])
    assert tf2.nn.fractional_avg_pool(x, [1.0, 1.5, 1.2, 1.0], seed=3)[0].shape.as_list() == [2, 4, 5, 3]


def test_accidental_hits_count_once(session):
    """A class that is true twice is taken out of the sampled ones once, so that its loss is finite."""
    labels = tf.constant([[0, 0], [2, 2]], tf.int64)
    sampled = (tf.constant([0, 1], tf.int64), tf.fill([2, 2], 0.3), tf.fill([2], 0.3))
    loss = tf.nn.nce_loss(
        tf.ones([6, 3]) * 0.1,
        tf.zeros([6]),
        labels,
        tf.ones([2, 3]),
        num_sampled=2,
        num_classes=6,
        num_true=2,
        sampled_values=sampled,
        remove_accidental_hits=True,
    )
    assert np.isfinite(session.run(loss)).all()


def test_third_derivative_of_batch_normalization(session):
    """In training, derivatives of any order go through the batch's own mean and variance."""
    data = np.random.RandomState(0).randn(2, 3, 2, 3)
    x = tf.placeholder(tf.float64, data.shape)
    scale, offset = tf.constant([1.0, 2.0, 0.5], tf.float64), tf.zeros([3], tf.float64)
    none = tf.zeros([0], tf.float64)
    y = tf.raw_ops.FusedBatchNorm(x=x, scale=scale, offset=offset, mean=none, variance=none, epsilon=0.1).y
    weights = np.cos(np.arange(data.size)).reshape(data.shape)
    value = tf.reduce_sum(tf.tanh(y) * weights)
    for _ in range(2):
        value = tf.reduce_sum(tf.gradients(value, x)[0] * weights)
    third = session.run(tf.gradients(value, x)[0], {x: data})
    for place in ((0, 0, 0, 0), (1, 2, 1, 2)):
        step = np.zeros_like(data)
        step[place] = 1e-5
        change = session.run(value, {x: data + step}) - session.run(value, {x: data - step})
        np.testing.assert_allclose(third[place], change / 2e-5, rtol=1e-5)


def test_equal_maxima_of_volumes_share_no_gradient(session):
    """The gradient of 3-D max pooling goes whole to every element that equals the maximum."""
    x = tf.ones([1, 1, 1, 4, 1])
    largest = tf.nn.max_pool3d(x, [1, 1, 1, 2, 1], [1, 1, 1, 1, 1], "VALID")
    gradient = tf.gradients(largest, x, tf.reshape(tf.constant([1.0, 2.0, 3.0]), [1, 1, 1, 3, 1]))[0]
    assert session.run(gradient).ravel().tolist() == [1.0, 3.0, 5.0, 3.0]


def test_constants_of_activations_are_rounded_as_tensorflows(eager):
    """gelu's are of single precision for float64 too, the slope of a leaky unit of 16 bits for such tensors."""
    found = tf2.nn.gelu(tf2.constant([-3.0, 0.5], tf2.float64)).numpy()
    root = float(np.float32(np.sqrt(0.5)))
    np.testing.assert_allclose(found, [0.5 * x * math.erfc(-x * root) for x in (-3.0, 0.5)], rtol=1e-13)
    assert tf2.nn.leaky_relu(tf2.constant([-0.842], tf2.float16), 0.3).numpy().tolist() == [-0.252685546875]
    grad = tf2.raw_ops.Relu6Grad(gradients=tf2.constant([np.inf, 2.0]), features=tf2.constant([-1.0, 1.0])).numpy()
    assert np.isnan(grad[0]) and grad[1] == 2
