"""Batch normalization, moments, local response normalization, morphology."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import stoker.compat.v1 as tf
from stoker._src.base.errors import InvalidArgumentError
from tests.ops.nn.references import output_sizes, paddings, to_front
from tests.ops.samples import Sample, check_sample, f32, f64, positive, samples
from tests.running import run


def batch_norm(x, scale, offset, epsilon, axes=(0, 1, 2)):
    mean, variance = x.mean(axes, keepdims=True), x.var(axes, keepdims=True)
    return scale * (x - mean) / np.sqrt(variance + epsilon) + offset


def lrn(x, radius, bias, alpha, beta):
    y = np.zeros_like(x)
    for c in range(x.shape[-1]):
        near = x[..., max(c - radius, 0) : c + radius + 1]
        y[..., c] = x[..., c] / (bias + alpha * (near**2).sum(-1)) ** beta
    return y


def dilate(x, f, strides, rates, padding):
    pads = paddings(x.shape[1:3], f.shape[:2], strides, rates, padding)
    rows, columns = output_sizes(x.shape[1:3], f.shape[:2], strides, rates, pads)
    padded = np.pad(x, [(0, 0), *pads, (0, 0)], constant_values=-np.inf)
    y = np.full((x.shape[0], rows, columns, x.shape[3]), -np.inf)
    for r in range(rows):
        for c in range(columns):
            for i in range(f.shape[0]):
                for j in range(f.shape[1]):
                    y[:, r, c] = np.maximum(
                        y[:, r, c], padded[:, r * strides[0] + i * rates[0], c * strides[1] + j * rates[1]] + f[i, j]
                    )
    return y


TRAINING = [f64(2, 3, 2, 3), positive(3), f64(3), np.zeros(0), np.zeros(0)]
LRN_ATTRS = {"depth_radius": 2, "bias": 1.5, "alpha": 0.7, "beta": 0.6}

SAMPLES = [
    Sample(
        "FusedBatchNorm",
        TRAINING,
        {"epsilon": 0.01},
        lambda x, s, o, m, v: (
            batch_norm(x, s, o, 0.01),
            x.mean((0, 1, 2)),
            x.var((0, 1, 2), ddof=1),
            x.mean((0, 1, 2)),
            x.var((0, 1, 2)),
        ),
        gradient=False,
    ),
    Sample(
        "FusedBatchNorm",
        [f64(2, 3, 2, 3), positive(3), f64(3), f64(3), positive(3)],
        {"epsilon": 0.01, "is_training": False},
        lambda x, s, o, m, v: (s * (x - m) / np.sqrt(v + 0.01) + o, m, v, m, v),
        gradient=False,
    ),
    Sample(
        "FusedBatchNormV3",
        [x.astype("f4") for x in [to_front(f64(2, 2, 2, 3, 3)).copy(), positive(3), f64(3), f64(3), positive(3)]],
        {"epsilon": 0.01, "data_format": "NCDHW", "exponential_avg_factor": 0.25},
        lambda x, s, o, m, v: (
            batch_norm(x, s.reshape(3, 1, 1, 1), o.reshape(3, 1, 1, 1), 0.01, (0, 2, 3, 4)),
            0.75 * m + 0.25 * x.mean((0, 2, 3, 4)),
            0.75 * v + 0.25 * x.var((0, 2, 3, 4), ddof=1),
            x.mean((0, 2, 3, 4)),
            x.var((0, 2, 3, 4)),
            np.zeros(0),
        ),
        gradient=False,
        rtol=1e-4,
        atol=1e-5,
    ),
    Sample(
        "FusedBatchNormV3",
        [f32(2, 2, 2, 3), f32(3), f32(4), f32(0), f32(0)],
        raises=(InvalidArgumentError, "3.*4"),
    ),
    Sample(
        "BatchNormWithGlobalNormalization",
        [f64(2, 2, 2, 3), f64(3), positive(3), f64(3), f64(3)],
        {"variance_epsilon": 0.01, "scale_after_normalization": True},
        lambda t, m, v, b, g: g * (t - m) / np.sqrt(v + 0.01) + b,
    ),
    Sample(
        "BatchNormWithGlobalNormalization",
        [f64(2, 2, 2, 3), f64(3), positive(3), f64(3), f64(3)],
        {"variance_epsilon": 0.01, "scale_after_normalization": False},
        lambda t, m, v, b, g: (t - m) / np.sqrt(v + 0.01) + b,
    ),
    Sample("LRN", [f64(1, 2, 2, 5)], LRN_ATTRS, lambda x: lrn(x, 2, 1.5, 0.7, 0.6)),
    Sample("LRN", [f64(1, 2, 2, 3)], {"depth_radius": 5}, lambda x: lrn(x, 5, 1, 1, 0.5)),
    Sample("LRN", [f64(1, 2, 2, 3)], {"depth_radius": 0}, lambda x: lrn(x, 0, 1, 1, 0.5)),
    Sample(
        "Dilation2D",
        [f64(2, 4, 5, 2), f64(3, 2, 2)],
        {"strides": [1, 1, 1, 1], "rates": [1, 1, 1, 1], "padding": "SAME"},
        lambda x, f: dilate(x, f, [1, 1], [1, 1], "SAME"),
    ),
    Sample(
        "Dilation2D",
        [f64(1, 6, 6, 1), f64(2, 2, 1)],
        {"strides": [1, 2, 1, 1], "rates": [1, 2, 3, 1], "padding": "VALID"},
        lambda x, f: dilate(x, f, [2, 1], [2, 3], "VALID"),
    ),
    Sample(
        "Dilation2D",
        [f32(1, 6, 6, 1), f32(2, 2, 2)],
        {"strides": [1, 2, 1, 1], "rates": [1, 2, 3, 1], "padding": "VALID"},
        raises=(InvalidArgumentError, "1.*2"),
    ),
]


@samples(SAMPLES)
def test_sample(sample: Sample) -> None:
    """The op does what its reference does, in every mode."""
    check_sample(sample)


def _differences(session, total, place, value, step=1e-5):
    result = np.zeros_like(value)
    for index in np.ndindex(*value.shape):
        up, down = value.copy(), value.copy()
        up[index] += step
        down[index] -= step
        result[index] = (session.run(total, {place: up}) - session.run(total, {place: down})) / (2 * step)
    return result


@pytest.mark.parametrize("training", [True, False])
@pytest.mark.parametrize("data_format", ["NHWC", "NCHW"])
def test_first_and_second_derivatives_of_batch_norm(training, data_format) -> None:
    """Both derivatives with respect to the image agree with finite differences."""
    value = f64(2, 2, 2, 2)
    scale, offset, mean, variance = (tf.constant(v) for v in (positive(2), f64(2), f64(2), positive(2)))
    weights = f64(2, 2, 2, 2)
    with tf.Session() as session:
        x = tf.placeholder(tf.float64, value.shape)
        y, _, _ = tf.nn.fused_batch_norm(x, scale, offset, mean, variance, 0.1, data_format, training)
        total = tf.reduce_sum(tf.square(y) * weights)
        gradient, to_scale = tf.gradients(total, [x, scale])
        np.testing.assert_allclose(
            session.run(gradient, {x: value}), _differences(session, total, x, value), rtol=1e-4, atol=1e-6
        )
        second = tf.reduce_sum(gradient * weights) + tf.reduce_sum(tf.square(to_scale))
        found = session.run(tf.gradients(second, x)[0], {x: value})
        np.testing.assert_allclose(found, _differences(session, second, x, value), rtol=1e-4, atol=1e-5)


def test_batch_norm_wants_statistics_for_inference() -> None:
    """Without mean and variance there is nothing to normalize with."""
    with pytest.raises(ValueError, match="mean"):
        tf.nn.fused_batch_norm(f32(1, 2, 2, 3), f32(3), f32(3), is_training=False)


def test_moments() -> None:
    """Mean and variance over the axes, with or without them kept; weighted by frequencies."""
    x, w = f64(3, 4, 2), positive(3, 1, 2)
    mean, variance = run(tf.nn.moments(tf.constant(x), [0, 1]))
    np.testing.assert_allclose(mean, x.mean((0, 1)))
    np.testing.assert_allclose(variance, x.var((0, 1)))
    kept = tf.nn.moments(tf.constant(x), [1], keep_dims=True)
    assert [m.shape.as_list() for m in kept] == [[3, 1, 2]] * 2
    mean, variance = run(tf.nn.weighted_moments(tf.constant(x), [0, 1], tf.constant(w)))
    full = np.broadcast_to(w, x.shape)
    expected = (x * full).sum((0, 1)) / full.sum((0, 1))
    np.testing.assert_allclose(mean, expected)
    np.testing.assert_allclose(variance, (full * (x - expected) ** 2).sum((0, 1)) / full.sum((0, 1)))


def test_sufficient_statistics_and_normalize_moments() -> None:
    """The two together give mean and variance, with or without a shift."""
    x = f64(3, 4)
    for shift in (None, tf.constant(0.3, tf.float64)):
        count, total, squares, used = tf.nn.sufficient_statistics(tf.constant(x), [0], shift=shift)
        mean, variance = run(tf.nn.normalize_moments(count, total, squares, used))
        np.testing.assert_allclose(mean, x.mean(0))
        np.testing.assert_allclose(variance, x.var(0))
    unknown = tf.placeholder(tf.float64, [None, 4])
    count = tf.nn.sufficient_statistics(unknown, [0, 1])[0]
    with tf.Session() as session:
        assert session.run(count, {unknown: x}) == 12


def test_batch_normalization_with_and_without_scale_and_offset() -> None:
    """scale and offset may be None."""
    x, m, v, o, s = f64(3, 4), f64(4), positive(4), f64(4), f64(4)
    plain = (x - m) / np.sqrt(v + 0.01)
    make = lambda o, s: run(tf.nn.batch_normalization(tf.constant(x), m, v, o, s, 0.01))  # noqa: E731
    np.testing.assert_allclose(make(None, None), plain)
    np.testing.assert_allclose(make(o, s), plain * s + o)


def test_l2_normalize() -> None:
    """Unit length along the axis, small vectors left small; complex numbers by their modulus."""
    x = f64(3, 4)
    np.testing.assert_allclose(run(tf.nn.l2_normalize(tf.constant(x), 1)), x / np.sqrt((x**2).sum(1, keepdims=True)))
    np.testing.assert_allclose(run(tf.nn.l2_normalize(tf.constant(x), dim=0)), x / np.sqrt((x**2).sum(0)))
    z = x + 1j * f64(3, 4)
    np.testing.assert_allclose(
        run(tf.nn.l2_normalize(tf.constant(z), 1)), z / np.sqrt((abs(z) ** 2).sum(1, keepdims=True))
    )
    np.testing.assert_allclose(run(tf.nn.l2_normalize(tf.constant([1e-20], tf.float64))), [1e-14])


def test_erosion_is_the_dual_of_dilation() -> None:
    """erosion2d(x, k) is the minimum of x - k over the window."""
    x, k = f64(1, 4, 4, 1), f64(2, 2, 1)
    found = run(tf.nn.erosion2d(tf.constant(x), tf.constant(k), [1] * 4, [1] * 4, "VALID"))
    expected = -dilate(-x, k[::-1, ::-1], [1, 1], [1, 1], "VALID")
    np.testing.assert_allclose(found, expected)


@settings(max_examples=40, deadline=None)
@given(st.integers(1, 20), st.integers(0, 25), st.sampled_from([0.5, 0.75, 1.0, 0.3]), st.integers(0, 999))
def test_local_response_normalization_of_any_radius(channels, radius, beta, seed):
    """Values and gradients agree with the definition, for radii up to and beyond the number of channels."""
    random = np.random.RandomState(seed)
    values, g = random.randn(2, 1, 3, channels), random.randn(2, 1, 3, channels)
    near = np.abs(np.subtract.outer(np.arange(channels), np.arange(channels))) <= radius
    norm = 1.5 + 0.25 * (values**2 @ near)
    shared = (g * values * norm ** (-beta - 1)) @ near
    with tf.Graph().as_default(), tf.Session() as session:
        x = tf.constant(values, tf.float32)
        y = tf.nn.lrn(x, radius, 1.5, 0.25, beta)
        found = session.run([y, *tf.gradients(y, [x], [tf.constant(g, tf.float32)])])
    np.testing.assert_allclose(found[0], values * norm**-beta, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(found[1], g * norm**-beta - 0.5 * beta * values * shared, rtol=1e-4, atol=1e-5)


def test_an_infinite_channel_changes_only_its_neighbours():
    """Local response normalization of channels that are farther away than the radius stays finite, and is their own."""
    values = np.arange(1.0, 10.0, dtype="f").reshape(1, 1, 1, 9)
    with tf.Graph().as_default(), tf.Session() as session:
        x = tf.placeholder(tf.float32, values.shape)
        y = tf.nn.lrn(x, 2)
        plain = session.run(y, {x: values})
        values[..., 4] = np.inf
        found = session.run(y, {x: values})
    np.testing.assert_array_equal(found[..., [0, 1, 7, 8]], plain[..., [0, 1, 7, 8]])
    np.testing.assert_array_equal(found[..., [2, 3, 5, 6]], np.zeros([1, 1, 1, 4]))
