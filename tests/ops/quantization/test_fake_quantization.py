"""Fake quantization, and quantizing there and back: the values are TensorFlow's."""

from typing import Any

import numpy as np
import pytest

import stoker as tf2
import stoker.compat.v1 as tf

X = np.linspace(-8, 8, 23).astype(np.float32).reshape(1, 23)


ARGS8 = [
    -1.3,
    -1.3,
    -1.3,
    -1.3,
    -1.3,
    -1.3,
    -1.3,
    -1.3,
    -1.3,
    -1.3,
    -0.739216,
    0.0,
    0.739216,
    1.452941,
    2.192157,
    2.905882,
    3.645098,
    4.358824,
    5.098039,
    5.2,
    5.2,
    5.2,
    5.2,
]


VARS4 = [
    0.0,
    0.0,
    0.0,
    0.0,
    0.0,
    0.0,
    0.0,
    0.0,
    0.0,
    0.0,
    0.0,
    0.0,
    0.671429,
    1.342857,
    2.014286,
    3.021429,
    3.692857,
    4.364285,
    4.7,
    4.7,
    4.7,
    4.7,
    4.7,
]


GRAD4 = [
    [0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 0.0, 0.0, 0.0, 0.0],
    [10.0],
    [4.0],
]


CHANNELS = [
    -0.967742,
    -2.903226,
    -0.967742,
    -2.903226,
    -0.967742,
    -2.903226,
    -0.967742,
    -2.903226,
    -0.967742,
    -2.903226,
    -0.967742,
    -2.903226,
    -0.967742,
    -2.903226,
    -0.967742,
    -2.903226,
    -0.967742,
    -2.258065,
    -0.967742,
    -1.612903,
    -0.774194,
    -0.645161,
    0.0,
    0.0,
    0.774194,
    0.645161,
    1.451613,
    1.612903,
    2.032258,
    2.258065,
    2.032258,
    2.903226,
    2.032258,
    3.548387,
    2.032258,
    4.516129,
    2.032258,
    5.16129,
    2.032258,
    5.806451,
    2.032258,
    6.451612,
    2.032258,
    7.096774,
    2.032258,
    7.096774,
]


VALUES = (np.random.RandomState(0).randn(3, 4) * 2).astype(np.float32)


ROUND_TRIPS = {
    (True, 8, True, "HALF_TO_EVEN", False, None): [
        2.2,
        0.79685,
        1.95748,
        2.2,
        2.2,
        -1.95748,
        1.90551,
        -0.29449,
        -0.20787,
        0.81417,
        0.29449,
        2.2,
    ],
    (True, 3, False, "HALF_UP", True, 1): [
        3.73512,
        0.65152,
        1.95748,
        4.48179,
        3.73512,
        -1.95456,
        1.95748,
        0.0,
        0.0,
        0.65152,
        0.0,
        2.98786,
    ],
    (False, 3, True, "HALF_UP", False, None): [
        2.2,
        0.94286,
        1.88571,
        2.2,
        2.2,
        0.0,
        1.88571,
        0.0,
        0.0,
        0.94286,
        0.31429,
        2.2,
    ],
    (False, 8, False, "HALF_TO_EVEN", False, None): [
        3.5327,
        0.80848,
        1.9509,
        4.48179,
        3.74361,
        -1.9509,
        1.89817,
        -0.29879,
        -0.21091,
        0.82605,
        0.28121,
        2.89998,
    ],
}


def test_fake_quantization_is_tensorflows(eager):
    """Values land on TensorFlow's levels, with a range given, learned, or one for each channel."""
    q = tf2.quantization
    np.testing.assert_allclose(q.fake_quant_with_min_max_args(X, -1.3, 5.2).numpy().ravel(), ARGS8, atol=2e-6)
    np.testing.assert_allclose(q.fake_quant_with_min_max_vars(X, 0.5, 5.2, 4, True).numpy().ravel(), VARS4, atol=2e-6)
    assert not q.fake_quant_with_min_max_vars(X, 0.0, 0.0).numpy().any()
    channels = np.stack([X.ravel(), X.ravel()], 1)
    found = q.fake_quant_with_min_max_vars_per_channel(channels, [-1.0, -3.0], [2.0, 7.0], 5)
    np.testing.assert_allclose(found.numpy().ravel(), CHANNELS, atol=2e-6)
    with pytest.raises(tf2.errors.InvalidArgumentError, match="num_bits is out of range: 1"):
        q.fake_quant_with_min_max_args(X, num_bits=1)
    with pytest.raises(tf2.errors.InvalidArgumentError, match="min has to be smaller than max"):
        q.fake_quant_with_min_max_args(X, 2.0, 1.0)
    with pytest.raises(tf2.errors.InvalidArgumentError, match="incorrect shape"):
        q.fake_quant_with_min_max_vars(X, [0.0], [1.0])


def test_fake_quantization_passes_gradients_through():
    """Inside the range the gradient passes; outside it goes to the bound that was met."""
    with tf.Graph().as_default(), tf.Session() as session:
        x, low, high = tf.constant(X), tf.constant(-1.3), tf.constant(5.2)
        y = tf.fake_quant_with_min_max_vars(x, low, high, 4, True)
        for found, expected in zip(session.run(tf.gradients(y, [x, low, high])), GRAD4):
            np.testing.assert_allclose(np.ravel(found), expected)
        z = tf.fake_quant_with_min_max_args(x, -1.3, 5.2, 4, True)
        np.testing.assert_allclose(session.run(tf.gradients(z, x))[0].ravel(), GRAD4[0])


@pytest.mark.parametrize("case", ROUND_TRIPS, ids=str)
def test_quantize_and_dequantize_is_tensorflows(case, eager):
    """Values make the round trip through integers as TensorFlow's do."""
    signed, bits, given, mode, narrow, axis = case
    low = np.float32(-1.5) if axis is None else np.array([-1, -0.5, -2, -0.1], np.float32)
    high = np.float32(2.2) if axis is None else np.array([1, 2, 0.3, 4], np.float32)
    found = tf2.quantization.quantize_and_dequantize(VALUES, low, high, signed, bits, given, mode, None, narrow, axis)
    np.testing.assert_allclose(found.numpy().ravel(), ROUND_TRIPS[case], atol=2e-5)


def test_gradients_of_the_round_trip():
    """The first form passes every gradient, the second those inside the range."""
    with tf.Graph().as_default(), tf.Session() as session:
        x = tf.constant([-3.0, 0.5, 3.0])
        first = tf.quantization.quantize_and_dequantize(x, -1.0, 1.0, range_given=True)
        second = tf.quantization.quantize_and_dequantize_v2(x, -1.0, 1.0, range_given=True)
        assert session.run(tf.gradients(first, x))[0].tolist() == [1, 1, 1]
        assert session.run(tf.gradients(second, x))[0].tolist() == [0, 1, 0]


@pytest.mark.parametrize(("low", "high"), [(-1.0, 2.0), (0.0, 6.0), (0.0, 0.0), (1.0, 2.0), (-3.0, -1.0), (2.0, -1.0)])
@pytest.mark.parametrize("narrow", [False, True])
def test_one_range_is_that_range_for_each_channel(low, high, narrow):
    """Values and gradients for one range of a tensor, small enough to be fused or not, are those of equal ranges for all channels."""
    rng = np.random.RandomState(0)
    x, g = (rng.randn(40, 16).astype("f") * 3 for _ in range(2))
    x[0, :4] = [0.0, np.inf, -np.inf, np.nan]
    with tf.Graph().as_default(), tf.Session() as session:
        fed, rows = tf.placeholder(tf.float32, [None, 16]), tf.placeholder(tf.float32, [None, 16])
        one, many = [tf.constant(low), tf.constant(high)], [tf.fill([16], low), tf.fill([16], high)]
        options: Any = {"num_bits": 4, "narrow_range": narrow}
        for whole, parts in (
            (
                tf.quantization.fake_quant_with_min_max_vars(fed, one[0], one[1], **options),
                tf.quantization.fake_quant_with_min_max_vars_per_channel(fed, many[0], many[1], **options),
            ),
            (
                tf.quantization.fake_quant_with_min_max_vars_gradient(rows, fed, one[0], one[1], **options),
                tf.quantization.fake_quant_with_min_max_vars_per_channel_gradient(
                    rows, fed, many[0], many[1], **options
                ),
            ),
        ):
            wanted = session.run(parts, {fed: x[1:], rows: g[1:]})
            found = session.run(whole, {fed: x[1:], rows: g[1:]})
            if isinstance(wanted, np.ndarray):
                np.testing.assert_array_equal(found, wanted)
            else:
                np.testing.assert_array_equal(found[0], wanted[0])
                np.testing.assert_allclose(found[1:], [np.sum(each) for each in wanted[1:]], rtol=1e-4, atol=1e-5)
            if isinstance(found, tuple):  # the gradients of values that are not finite, too
                found, wanted = session.run([whole[0], parts[0]], {fed: x, rows: g})
                np.testing.assert_array_equal(found, wanted)


def test_the_gradient_of_what_is_not_a_number_is_zero():
    """It is neither in the range nor below or above it."""
    x, g = np.array([[np.nan, 0.5, 5, -5]], "f"), np.array([[1, 2, 4, 8]], "f")
    with tf.Graph().as_default(), tf.Session() as session:
        found = session.run(tf.quantization.fake_quant_with_min_max_vars_gradient(g, x, -1.0, 2.0))
        np.testing.assert_array_equal(found[0], [[0, 2, 0, 0]])
        assert found[1:] == (8, 4)
        ends = [-1.0] * 4, [2.0] * 4
        found = session.run(tf.quantization.fake_quant_with_min_max_vars_per_channel_gradient(g, x, ends[0], ends[1]))
        np.testing.assert_array_equal(found[0], [[0, 2, 0, 0]])
        found = session.run(tf.raw_ops.FakeQuantWithMinMaxArgsGradient(gradients=g, inputs=x, min=-1.0, max=2.0))
        np.testing.assert_array_equal(found, [[0, 2, 0, 0]])
