"""tf.distributions against TensorFlow's values, and what is refused."""

import functools
import json

import numpy as np
import pytest

import stoker.compat.v1 as tf
from tests.golden.distributions import make

EXPECTED = json.loads(make.VALUES.read_text())
D = tf.distributions


@functools.cache
def found():
    """Every request, once."""
    return make.results(tf)


@pytest.mark.parametrize("label", sorted(EXPECTED))
def test_value(label):
    """Statistics, densities, samples (bit for bit the same draws) and gradients are TensorFlow's."""
    expected, value = EXPECTED[label], found()[label]
    if isinstance(expected, str):
        assert value == expected
        return
    assert len(value) == len(expected)
    for one, other in zip(value, expected):
        np.testing.assert_allclose(np.array(one, float), np.array(other, float), rtol=1e-4, atol=2e-6)


@pytest.mark.parametrize(
    ("make_one", "words"),
    [
        (lambda: D.Normal(0.0, -1.0, validate_args=True).sample(), "x > 0"),
        (lambda: D.StudentT(0.5, 0.0, 1.0, allow_nan_stats=False).mean(), "not defined for components of df <= 1"),
        (lambda: D.Gamma(0.5, 1.0, allow_nan_stats=False).mode(), "any concentration <= 1"),
        (lambda: D.Uniform(2.0, 1.0, validate_args=True).mean(), "low >= high"),
        (lambda: D.Bernoulli(probs=1.5, validate_args=True).mean(), "greater than 1"),
        (lambda: D.Bernoulli(probs=0.3, validate_args=True).log_prob(2), "exceed 1"),
        (lambda: D.Categorical(probs=[0.5, 0.5], validate_args=True).log_prob(2), "number of classes"),
        (lambda: D.Dirichlet([-1.0, 2.0], validate_args=True).mean(), "must be positive"),
        (lambda: D.Multinomial(2.0, probs=[0.5, 0.5], validate_args=True).log_prob([1.0, 2.0]), "must sum to"),
    ],
)
def test_checks_when_run(make_one, words):
    """Bad parameters and values raise where checks are asked for."""
    with tf.Graph().as_default(), tf.Session() as session, pytest.raises(tf.errors.InvalidArgumentError, match=words):
        session.run(make_one())


def test_checks_when_made():
    """Both or neither of probabilities and logits, and dtypes that differ or are no floats, are refused at once."""
    with tf.Graph().as_default():
        for arguments in ({}, {"logits": 1.0, "probs": 0.5}):
            with pytest.raises(ValueError, match="not both"):
                D.Bernoulli(**arguments)
        with pytest.raises(ValueError, match="must be of the same type"):
            D.Normal(0.0, np.float64(1))
        with pytest.raises(ValueError, match="floating point"):
            D.Normal(0, 1)
        with pytest.raises(NotImplementedError, match="covariance is not implemented: Normal"):
            D.Normal(0.0, 1.0).covariance()


def test_descriptions():
    """Names, shapes and copies."""
    with tf.Graph().as_default(), tf.Session() as session:
        normal = D.Normal([0.0, 1.0], 2.0)
        assert str(normal) == 'tfp.distributions.Normal("Normal/", batch_shape=(2,), event_shape=(), dtype=float32)'
        assert normal.reparameterization_type is D.FULLY_REPARAMETERIZED
        assert normal.sample([3]).shape == (3, 2) and normal.sample([3]).op.name == "Normal/sample_1/Reshape"
        assert session.run(normal.copy(scale=3.0).stddev()).tolist() == [3, 3]
        assert session.run([normal.is_scalar_batch(), normal.is_scalar_event()]) == [False, True]
        shape = tf.placeholder(tf.int32, [None])
        assert session.run(normal.sample(shape), {shape: [2, 5]}).shape == (2, 5, 2)


def test_own_distribution_and_divergence():
    """A user's distribution states what it knows, and may register a divergence."""

    class Fixed(D.Distribution):
        def __init__(self):
            super().__init__(tf.float32, D.NOT_REPARAMETERIZED, False, True)

        def _batch_shape(self):
            return tf.TensorShape([])

        def _event_shape(self):
            return tf.TensorShape([])

        def _sample_n(self, n, seed=None):
            return tf.fill([n], 2.5)

        def _log_prob(self, x):
            return tf.where(tf.equal(x, 2.5), tf.zeros_like(x), tf.fill(tf.shape(x), -np.inf))

    @D.RegisterKL(Fixed, D.Normal)
    def divergence(a, b, name=None):
        return tf.constant(7.0)

    with tf.Graph().as_default(), tf.Session() as session:
        assert session.run(Fixed().sample([2, 2])).tolist() == [[2.5, 2.5], [2.5, 2.5]]
        assert session.run(Fixed().prob([2.5, 1.0])).tolist() == [1, 0]
        assert session.run(D.kl_divergence(Fixed(), D.Normal(0.0, 1.0))) == 7
        with pytest.raises(ValueError, match="already been registered"):
            D.RegisterKL(Fixed, D.Normal)(divergence)
        with pytest.raises(NotImplementedError, match="cdf"):
            Fixed().cdf(1.0)
