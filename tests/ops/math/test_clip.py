"""Clipping by value and by norms."""

from __future__ import annotations

import numpy as np
import pytest

import stoker.compat.v1 as tf
from tests.running import run

X = np.array([[3.0, -4.0, 0.0], [0.3, 0.4, -0.1]], np.float32)


def _norm(x):
    return np.sqrt((x * x).sum())


def test_clip_by_value():
    """Values outside of the bounds become the bounds; bounds may have the tensor's shape."""
    np.testing.assert_array_equal(run(tf.clip_by_value(X, -1.0, 0.35)), np.clip(X, -1, 0.35))
    low = np.full([2, 3], -0.2, np.float32)
    np.testing.assert_array_equal(run(tf.clip_by_value(X, low, 0.35)), np.clip(X, low, 0.35))
    np.testing.assert_array_equal(run(tf.clip_by_value([1, 5, 9], 2, 6)), [2, 5, 6])


def test_clip_by_value_names():
    """The result is the op `clip_by_value`, after a Minimum inside of its scope."""
    clipped = tf.clip_by_value(tf.placeholder(tf.float32, [2]), 0.0, 1.0)
    assert clipped.name == "clip_by_value:0" and clipped.op.type == "Maximum"
    assert clipped.op.inputs[0].name == "clip_by_value/Minimum:0"


def test_clip_by_value_keeps_the_shape():
    """Bounds that would broadcast the tensor to a larger shape are refused."""
    with pytest.raises(ValueError):
        tf.clip_by_value(tf.zeros([2]), tf.zeros([3, 2]), 1.0)
    with pytest.raises(ValueError):
        tf.clip_by_value(tf.zeros([2]), tf.zeros([3]), 1.0)


def test_clip_by_value_of_slices():
    """IndexedSlices are clipped in their values and stay IndexedSlices."""
    slices = tf.IndexedSlices(tf.constant([1.0, 5.0]), tf.constant([1, 4]), tf.constant([6]))
    clipped = tf.clip_by_value(slices, 0.0, 2.0)
    assert clipped.indices is slices.indices and clipped.dense_shape is slices.dense_shape
    np.testing.assert_array_equal(run(clipped.values), [1.0, 2.0])


@pytest.mark.parametrize("limit", [0.5, 5.0, 100.0])
def test_clip_by_norm(limit):
    """A tensor longer than the limit is scaled down to it; a shorter one is left as it is."""
    np.testing.assert_allclose(run(tf.clip_by_norm(X, limit)), X * min(1, limit / _norm(X)), rtol=1e-6)


def test_clip_by_norm_of_slices_along_axes():
    """With axes each slice is clipped by itself; those inside of the limit stay unchanged."""
    found = run(tf.clip_by_norm(X, 1.0, axes=[1]))
    np.testing.assert_allclose(found[0], X[0] / 5, rtol=1e-6)
    np.testing.assert_array_equal(found[1], X[1])
    np.testing.assert_allclose(run(tf.clip_by_norm(X, 1.0, axes=[-1])), found)


def test_clip_by_norm_of_zeros_has_a_gradient():
    """Zeros stay zeros, and their gradient is finite."""
    x = tf.placeholder(tf.float32, [3])
    (gradient,) = tf.gradients(tf.clip_by_norm(x, 2.0), x)
    with tf.Session() as session:
        np.testing.assert_array_equal(session.run(gradient, {x: np.zeros(3)}), np.ones(3))


@pytest.mark.parametrize("limit", [0.1, 3.0])
def test_clip_by_average_norm(limit):
    """The norm divided by the number of elements is what is clipped."""
    average = _norm(X) / X.size
    np.testing.assert_allclose(run(tf.clip_by_average_norm(X, limit)), X * min(1, limit / average), rtol=1e-6)


def test_global_norm():
    """The norm of all tensors together, Nones left out, IndexedSlices counted by their values."""
    slices = tf.IndexedSlices(tf.constant([[1.0, 2.0]]), tf.constant([3]))
    norm = tf.global_norm([tf.constant(X), None, slices])
    assert norm.name == "global_norm/global_norm:0" and norm.shape == ()
    np.testing.assert_allclose(run(norm), np.sqrt(_norm(X) ** 2 + 5), rtol=1e-6)
    assert run(tf.global_norm([None])) == 0


@pytest.mark.parametrize("limit", [1.0, 50.0])
def test_clip_by_global_norm(limit):
    """All tensors are scaled by one factor, in order, with None where it was None."""
    y = np.array([1.0, 2.0], np.float32)
    clipped, norm = tf.clip_by_global_norm([tf.constant(X), None, tf.constant(y)], limit)
    assert clipped[1] is None
    expected = np.sqrt(_norm(X) ** 2 + 5)
    factor = min(1, limit / expected)
    first, last, found = run([clipped[0], clipped[2], norm])
    np.testing.assert_allclose(found, expected, rtol=1e-6)
    np.testing.assert_allclose(first, X * factor, rtol=1e-6)
    np.testing.assert_allclose(last, y * factor, rtol=1e-6)


def test_clip_by_global_norm_with_a_given_norm():
    """`use_norm` takes the place of the computed norm and is returned."""
    given = tf.constant(10.0)
    (clipped,), norm = tf.clip_by_global_norm([tf.constant(X)], 1.0, use_norm=given)
    assert norm is given
    np.testing.assert_allclose(run(clipped), X / 10, rtol=1e-6)


def test_clip_by_global_norm_of_what_is_not_finite():
    """An infinite norm makes everything NaN, so that the failure is seen."""
    (clipped, other), _ = tf.clip_by_global_norm([tf.constant([np.inf]), tf.constant([1.0])], 1.0)
    assert np.isnan(run(clipped)).all() and np.isnan(run(other)).all()


@pytest.mark.parametrize("bad", ["abc", 3.0])
def test_norms_of_what_is_no_sequence(bad):
    """A list of tensors is wanted."""
    with pytest.raises(TypeError, match="should be a sequence"):
        tf.global_norm(bad)
    with pytest.raises(TypeError, match="should be a sequence"):
        tf.clip_by_global_norm(bad, 1.0)
    with pytest.raises(TypeError, match="should be a sequence"):
        tf.clip_by_global_norm(tf.constant([1.0]), 1.0)


@pytest.mark.usefixtures("eager")
def test_clipping_in_eager_mode():
    """The same functions compute at once in eager mode."""
    np.testing.assert_allclose(tf.clip_by_norm(X, 1.0).numpy(), X / _norm(X), rtol=1e-6)
    (clipped,), norm = tf.clip_by_global_norm([tf.constant(X)], 1.0)
    np.testing.assert_allclose(clipped.numpy() * norm.numpy(), X, rtol=1e-6)
