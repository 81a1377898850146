"""Dropout and the losses over sampled classes."""

import numpy as np
import pytest

import stoker.compat.v1 as tf
from stoker._src.base.errors import InvalidArgumentError
from tests.running import run


def test_dropout_draws_tensorflows_numbers() -> None:
    """With a graph seed the same elements are dropped as in TensorFlow (golden values of 2.21)."""
    tf.set_random_seed(1)
    y = tf.nn.dropout(tf.ones([4]), rate=0.3)
    z = tf.random_uniform([2])
    y, z = run([y, z])
    np.testing.assert_allclose(y, np.array([1, 0, 1, 0]) / 0.7, rtol=1e-6)
    np.testing.assert_allclose(z, [0.05554414, 0.01869845], rtol=1e-6)


def test_dropout_scales_what_is_kept() -> None:
    """About rate of the elements become zero, the others x / (1 - rate); the gradient has the same pattern."""
    x = tf.constant(np.arange(1, 10001, dtype=np.float32))
    y = tf.nn.dropout(x, keep_prob=0.25, seed=3)
    value, gradient = run([y, tf.gradients(y, x)[0]])
    kept = value != 0
    assert abs(kept.mean() - 0.25) < 0.02
    np.testing.assert_allclose(value[kept], 4 * np.arange(1, 10001)[kept])
    np.testing.assert_allclose(gradient, 4.0 * kept)


def test_noise_shape_drops_whole_rows() -> None:
    """A size of 1 in noise_shape shares the decision; None takes the input's size."""
    y = run(tf.nn.dropout(tf.ones([50, 6]), rate=0.5, noise_shape=[None, 1], seed=5))
    assert set(y.sum(1).tolist()) == {0.0, 12.0}


def test_dropout_by_tensors_and_bad_rates() -> None:
    """The rate may be a tensor; 0 returns the input itself; rates outside [0, 1) and integers are refused."""
    x = tf.ones([5])
    assert tf.nn.dropout(x, rate=0.0) is x
    rate = tf.placeholder(tf.float32, [])
    y = tf.nn.dropout(x, rate=rate)
    with tf.Session() as session:
        np.testing.assert_array_equal(session.run(y, {rate: 0.0}), np.ones(5))
    for bad in (1.0, -0.1):
        with pytest.raises(ValueError, match="rate"):
            tf.nn.dropout(x, rate=bad)
    with pytest.raises(ValueError, match="floating point"):
        tf.nn.dropout(tf.constant([1]), rate=0.2)
    with pytest.raises(ValueError, match="rate"):
        tf.nn.dropout(x)
    with pytest.raises(ValueError, match="keep_prob"):
        tf.nn.dropout(x, 0.5, rate=0.5)


def test_candidate_samplers() -> None:
    """Samplers give distinct classes in range with their expected counts; bad arguments are refused."""
    true = tf.constant([[1], [4]], tf.int64)
    for sampler in (tf.nn.uniform_candidate_sampler, tf.nn.log_uniform_candidate_sampler):
        sampled, true_count, sampled_count = run(sampler(true, 1, 5, True, 9, seed=2))
        assert len(set(sampled.tolist())) == 5 and sampled.min() >= 0 and sampled.max() < 9
        assert true_count.shape == (2, 1) and sampled_count.shape == (5,)
        assert (true_count > 0).all() and (sampled_count <= 1).all()
    everything = run(tf.nn.all_candidate_sampler(true, 1, 9, True))
    assert everything[0].tolist() == list(range(9))
    weighted = run(
        tf.nn.fixed_unigram_candidate_sampler(true, 1, 20, False, 5, unigrams=[0.0, 1.0, 0.0, 0.0, 1.0], seed=1)
    )
    assert set(weighted[0].tolist()) <= {1, 4}
    with pytest.raises(InvalidArgumentError, match="range"):
        run(tf.nn.uniform_candidate_sampler(true, 1, 10, True, 9))
    with pytest.raises((InvalidArgumentError, ValueError), match=r"2|num_true"):
        run(tf.nn.uniform_candidate_sampler(true, 2, 3, True, 9))


def test_accidental_hits() -> None:
    """Rows and places of sampled classes that are true ones, with the lowest float as weight."""
    rows, places, weights = run(
        tf.nn.compute_accidental_hits(tf.constant([[1, 4], [2, 7]], tf.int64), tf.constant([4, 0, 2], tf.int64), 2)
    )
    assert rows.tolist() == [0, 1] and places.tolist() == [0, 2]
    assert (weights == np.finfo(np.float32).min).all()
