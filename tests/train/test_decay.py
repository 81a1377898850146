"""Learning rate decays."""

from __future__ import annotations

import math

import numpy as np
import pytest

import stoker.compat.v1 as tf

STEPS = [0, 1, 4, 5, 7, 10, 11, 20, 25, 61, 1000]


def _over_steps(make):
    """The rate at each of STEPS, in graph mode."""
    step = tf.placeholder(tf.int64, [])
    rate = make(step)
    with tf.Session() as session:
        return [session.run(rate, {step: number}) for number in STEPS]


def _polynomial(step, cycle):
    period = 10 * max(1, math.ceil(step / 10)) if cycle else 10
    return (0.4 - 0.1) * (1 - (step if cycle else min(step, 10)) / period) ** 2 + 0.1


def _restarts(step, t_mul):
    done, length, peak = step, 10.0, 1.0
    while done >= length:
        done, length, peak = done - length, length * t_mul, peak * 0.5
    return 0.4 * (0.9 * peak * 0.5 * (1 + math.cos(math.pi * done / length)) + 0.1)


def _linear_cosine(step):
    at = min(step, 10)
    return 0.4 * ((0.2 + (10 - at) / 10) * 0.5 * (1 + math.cos(math.pi * 2 * 1.5 * at / 10)) + 0.05)


CASES = {
    "exponential": (lambda s: tf.train.exponential_decay(0.4, s, 10, 0.5), lambda s: 0.4 * 0.5 ** (s / 10)),
    "exponential, in stairs": (
        lambda s: tf.train.exponential_decay(0.4, s, 10, 0.5, staircase=True),
        lambda s: 0.4 * 0.5 ** (s // 10),
    ),
    "natural": (lambda s: tf.train.natural_exp_decay(0.4, s, 10, 0.5), lambda s: 0.4 * math.exp(-0.5 * s / 10)),
    "natural, in stairs": (
        lambda s: tf.train.natural_exp_decay(0.4, s, 10, 0.5, staircase=True),
        lambda s: 0.4 * math.exp(-0.5 * (s // 10)),
    ),
    "inverse time": (lambda s: tf.train.inverse_time_decay(0.4, s, 10, 0.5), lambda s: 0.4 / (1 + 0.5 * s / 10)),
    "inverse time, in stairs": (
        lambda s: tf.train.inverse_time_decay(0.4, s, 10, 0.5, staircase=True),
        lambda s: 0.4 / (1 + 0.5 * (s // 10)),
    ),
    "polynomial": (
        lambda s: tf.train.polynomial_decay(0.4, s, 10, 0.1, power=2.0),
        lambda s: _polynomial(s, cycle=False),
    ),
    "polynomial, again and again": (
        lambda s: tf.train.polynomial_decay(0.4, s, 10, 0.1, power=2.0, cycle=True),
        lambda s: _polynomial(s, cycle=True),
    ),
    "cosine": (
        lambda s: tf.train.cosine_decay(0.4, s, 10, alpha=0.1),
        lambda s: 0.4 * (0.9 * 0.5 * (1 + math.cos(math.pi * min(s, 10) / 10)) + 0.1),
    ),
    "restarts": (
        lambda s: tf.train.cosine_decay_restarts(0.4, s, 10, t_mul=2.0, m_mul=0.5, alpha=0.1),
        lambda s: _restarts(s, 2.0),
    ),
    "restarts of one length": (
        lambda s: tf.train.cosine_decay_restarts(0.4, s, 10, t_mul=1.0, m_mul=0.5, alpha=0.1),
        lambda s: _restarts(s, 1.0),
    ),
    "linear cosine": (lambda s: tf.train.linear_cosine_decay(0.4, s, 10, 1.5, 0.2, 0.05), _linear_cosine),
    "noisy linear cosine without noise": (
        lambda s: tf.train.noisy_linear_cosine_decay(0.4, s, 10, 0.0, 0.55, 1.5, 0.2, 0.05),
        _linear_cosine,
    ),
    "piecewise constant": (
        lambda s: tf.train.piecewise_constant(s, [4, 10], [1.0, 0.5, 0.1]),
        lambda s: 1.0 if s <= 4 else 0.5 if s <= 10 else 0.1,
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_formula(name):
    """The rate at every step is what the formula says."""
    make, expected = CASES[name]
    # Restarts divide logarithms in float32, which is coarse near a restart.
    np.testing.assert_allclose(_over_steps(make), [expected(step) for step in STEPS], rtol=2e-5, atol=1e-6)


def test_names():
    """The rate is an op called after its decay."""
    step = tf.train.create_global_step()
    assert tf.train.exponential_decay(0.1, step, 10, 0.5).name == "ExponentialDecay:0"
    assert tf.train.natural_exp_decay(0.1, step, 10, 0.5).name == "ExponentialTimeDecay:0"
    assert tf.train.inverse_time_decay(0.1, step, 10, 0.5).name == "InverseTimeDecay:0"
    assert tf.train.polynomial_decay(0.1, step, 10).name == "PolynomialDecay:0"
    assert tf.train.cosine_decay_restarts(0.1, step, 10).name == "SGDRDecay:0"
    assert tf.train.linear_cosine_decay(0.1, step, 10).name == "LinearCosineDecay:0"
    assert tf.train.noisy_linear_cosine_decay(0.1, step, 10).name == "NoisyLinearCosineDecay:0"
    assert tf.train.cosine_decay(0.1, step, 10, name="mine").name.startswith("mine/")
    assert tf.train.piecewise_constant(step, [1], [1.0, 2.0]).name.startswith("PiecewiseConstant/")


def test_dtype_is_the_rates():
    """The result has the dtype of the learning rate, whatever the other arguments are."""
    step = tf.placeholder(tf.int32, [])
    rate = tf.train.exponential_decay(tf.constant(0.1, tf.float64), step, 10, 0.5)
    assert rate.dtype == tf.float64
    with tf.Session() as session:
        assert session.run(rate, {step: 10}) == pytest.approx(0.05, rel=1e-15)


def test_noise_has_its_variance():
    """The noise of the noisy decay has the variance that was asked for and goes down with the step."""
    tf.set_random_seed(1)
    step = tf.placeholder(tf.int64, [])
    rate = tf.train.noisy_linear_cosine_decay(1.0, step, 1000, initial_variance=4.0, variance_decay=0.5, beta=0.0)
    with tf.Session() as session:
        early = [session.run(rate, {step: 0}) for _ in range(2000)]
        late = [session.run(rate, {step: 99}) for _ in range(2000)]
    assert np.var(early) == pytest.approx(4.0, rel=0.15)
    cosine = 0.5 * (1 + math.cos(math.pi * 0.099))
    assert np.var(late) == pytest.approx(4.0 / 10 * cosine**2, rel=0.15)


@pytest.mark.parametrize(
    "call",
    [
        lambda: tf.train.exponential_decay(0.1, None, 1, 0.1),
        lambda: tf.train.natural_exp_decay(0.1, None, 1, 0.1),
        lambda: tf.train.inverse_time_decay(0.1, None, 1, 0.1),
        lambda: tf.train.polynomial_decay(0.1, None, 1),
        lambda: tf.train.cosine_decay(0.1, None, 1),
        lambda: tf.train.cosine_decay_restarts(0.1, None, 1),
        lambda: tf.train.linear_cosine_decay(0.1, None, 1),
        lambda: tf.train.noisy_linear_cosine_decay(0.1, None, 1),
        lambda: tf.train.piecewise_constant(None, [1], [1.0, 2.0]),
    ],
)
def test_a_step_is_required(call):
    """Without a step there is no rate."""
    with pytest.raises(ValueError, match="is required"):
        call()


def test_piecewise_constant_refuses_what_does_not_fit():
    """Counts and dtypes of boundaries and values must agree."""
    x = tf.constant(1)
    with pytest.raises(ValueError, match="1 less than the length of values"):
        tf.train.piecewise_constant(x, [1, 2], [1.0, 2.0])
    with pytest.raises(ValueError, match="same dtype as x"):
        tf.train.piecewise_constant(x, [1.0, 2.0], [1.0, 2.0, 3.0])
    with pytest.raises(ValueError, match="same dtype as x"):
        tf.train.piecewise_constant(x, [tf.constant(1, tf.int64)], [1.0, 2.0])
    with pytest.raises(ValueError, match="all with the same dtype"):
        tf.train.piecewise_constant(x, [1, 2], [1.0, 2, 3.0])


def test_piecewise_constant_takes_many_dtypes():
    """x may be of any integer or floating point dtype; plain boundaries fit int64."""
    for dtype in (tf.float32, tf.float64, tf.uint8, tf.int8, tf.int16, tf.int32, tf.int64):
        x = tf.constant(3, dtype)
        boundaries = [1, 2] if dtype == tf.int64 else [tf.constant(1, dtype), tf.constant(2, dtype)]
        with tf.Session() as session:
            assert session.run(tf.train.piecewise_constant(x, boundaries, [7, 8, 9])) == 9


@pytest.mark.usefixtures("eager")
def test_eager_rates_are_functions():
    """In eager mode a decay returns a function that reads the step when it is called."""
    step = tf.Variable(0, dtype=tf.int64)
    rate = tf.train.exponential_decay(0.4, step, 10, 0.5)
    piecewise = tf.train.piecewise_constant(step, [5], [1.0, 2.0])
    assert float(rate()) == pytest.approx(0.4) and float(piecewise()) == 1.0
    step.assign(20)
    assert float(rate()) == pytest.approx(0.1) and float(piecewise()) == 2.0


def test_boundaries_that_do_not_increase():
    """A step in two intervals is an error when it runs; one in a single interval, or in none, is not."""
    x = tf.placeholder(tf.int32, [])
    rate = tf.train.piecewise_constant(x, [6, 2], [1.0, 2.0, 3.0])
    tensors = tf.train.piecewise_constant(x, [tf.constant(2), tf.constant(6)], [1.0, 2.0, 3.0])
    with tf.Session() as session:
        assert session.run(rate, {x: 1}) == 1.0 and session.run(rate, {x: 7}) == 3.0
        assert [session.run(tensors, {x: step}) for step in (2, 3, 6, 7)] == [1.0, 2.0, 2.0, 3.0]
        with pytest.raises(tf.errors.InvalidArgumentError, match="more than 1 conditions"):
            session.run(rate, {x: 5})


def test_piecewise_constant_wants_a_scalar():
    """A vector of steps is refused when the graph is built."""
    with pytest.raises(ValueError, match="Shape must be rank 0 but is rank 1"):
        tf.train.piecewise_constant(tf.constant([1, 2]), [1], [0.1, 0.2])


def test_restarts_begin_at_the_peak():
    """The first step of a period has the highest rate, whichever way the logarithms were rounded."""
    step = tf.placeholder(tf.int64, [])
    for t_mul, first, starts in (
        (1.5, 2, (2, 5)),
        (1.5, 64, (64, 160, 304)),
        (1.25, 16, (16, 36, 61)),
        (1.1, 100, (100, 210)),
    ):
        rate = tf.train.cosine_decay_restarts(1.0, step, first, t_mul)
        with tf.Session() as session:
            assert [session.run(rate, {step: start}) for start in starts] == pytest.approx(
                [1.0] * len(starts), abs=1e-4
            )
            assert session.run(rate, {step: first - 1}) < 0.6
