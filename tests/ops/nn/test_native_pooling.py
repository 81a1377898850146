"""The native loops for pooling against torch's."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import stoker.compat.v1 as tf
from stoker._src.ops.nn import pool_kernels

pytestmark = pytest.mark.skipif(pool_kernels.native is None, reason="built without a compiler")


def pooled(pool, images, grad_seed, **window):
    """Pooled values, and the gradient of their sum with random weights."""
    with tf.Graph().as_default(), tf.Session() as session:
        x = tf.constant(images)
        y = pool(x, **window)
        weights = np.random.RandomState(grad_seed).normal(size=session.run(tf.shape(y))).astype("f")
        return session.run([y, tf.gradients(y * weights, x)[0]])


def both(pool, images, **window):
    native = pooled(pool, images, 1, **window)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(pool_kernels, "native", None)
        return native, pooled(pool, images, 1, **window)


@settings(max_examples=60, deadline=None)
@given(
    sizes=st.tuples(st.integers(1, 3), st.integers(3, 9), st.integers(3, 9), st.sampled_from([1, 3, 64, 70])),
    window=st.tuples(st.integers(1, 4), st.integers(1, 4)),
    strides=st.tuples(st.integers(1, 4), st.integers(1, 4)),
    padding=st.sampled_from(["SAME", "VALID", [[0, 0], [1, 0], [0, 1], [0, 0]]]),
    seed=st.integers(0, 1000),
)
def test_any_windows(sizes, window, strides, padding, seed):
    """Overlapping, apart, beyond the edges, with ties: the same maxima, and each gradient at the first of them."""
    if padding == "VALID":
        window = tuple(min(a, b) for a, b in zip(window, sizes[1:3]))
    if isinstance(padding, list):
        window = tuple(max(a, 2) for a in window)  # TensorFlow's padding is less than the window
    images = np.random.RandomState(seed).randint(0, 4, sizes).astype("f")
    native, plain = both(tf.nn.max_pool, images, ksize=[1, *window, 1], strides=[1, *strides, 1], padding=padding)
    np.testing.assert_array_equal(native[0], plain[0])
    np.testing.assert_allclose(native[1], plain[1], rtol=1e-6, atol=1e-6)


def test_special_numbers():
    """A NaN counts as the largest, and a window of -inf gives -inf, at the same places as by torch."""
    images = np.random.RandomState(0).choice([np.nan, -np.inf, np.inf, 1.0], size=(2, 6, 6, 5)).astype("f")
    native, plain = both(tf.nn.max_pool, images, ksize=2, strides=2, padding="VALID")
    for found, expected in zip(native, plain):
        np.testing.assert_array_equal(found, expected)


@settings(max_examples=60, deadline=None)
@given(
    pool=st.sampled_from([tf.nn.max_pool3d, tf.nn.avg_pool3d, tf.nn.avg_pool]),
    space=st.tuples(st.integers(1, 5), st.integers(1, 9), st.integers(1, 9)),
    channels=st.sampled_from([1, 3, 13, 64, 70]),
    window=st.tuples(st.integers(1, 3), st.integers(1, 4), st.integers(1, 4)),
    strides=st.tuples(st.integers(1, 3), st.integers(1, 4), st.integers(1, 4)),
    padding=st.sampled_from(["SAME", "VALID"]),
    seed=st.integers(0, 1000),
)
def test_volumes_and_means(pool, space, channels, window, strides, padding, seed):
    """Volumes have the same maxima, each gradient at all elements that equal one, and means have those of torch."""
    if pool is tf.nn.avg_pool:
        space, window, strides = space[1:], window[1:], strides[1:]
    if padding == "VALID":
        window = tuple(min(a, b) for a, b in zip(window, space))
    images = np.random.RandomState(seed).randint(0, 4, (2, *space, channels)).astype("f")
    native, plain = both(pool, images, ksize=[1, *window, 1], strides=[1, *strides, 1], padding=padding)
    np.testing.assert_allclose(native[0], plain[0], rtol=1e-6)
    np.testing.assert_allclose(native[1], plain[1], rtol=1e-5, atol=1e-6)


def test_special_numbers_in_volumes():
    """Of a window with a NaN the maximum is NaN, which no element equals, so that it has no gradient."""
    images = np.random.RandomState(0).choice([np.nan, -np.inf, np.inf, 1.0], size=(2, 4, 6, 6, 5)).astype("f")
    native, plain = both(tf.nn.max_pool3d, images, ksize=2, strides=2, padding="VALID")
    for found, expected in zip(native, plain):
        np.testing.assert_array_equal(found, expected)
