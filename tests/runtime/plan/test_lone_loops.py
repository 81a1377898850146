"""Fused loops of sums over axes that are apart, and of single ops that choose between elements."""

from __future__ import annotations

import hypothesis
import numpy as np
import pytest
from hypothesis import strategies

import stoker.compat.v1 as tf
from stoker._src.runtime.plan import fused_loops

pytestmark = pytest.mark.skipif(fused_loops.native is None, reason="the C extension is missing")


def _run(build, **given):
    """The results of `build` for placeholders of known shapes, and the plan."""
    with tf.Graph().as_default(), tf.Session() as session:
        fed = {name: tf.placeholder(value.dtype, value.shape) for name, value in given.items()}
        made = build(**fed)
        feeds = {fed[name]: value for name, value in given.items()}
        return session.run(made, feeds), session.explain(made, feeds)


@hypothesis.given(
    strategies.lists(strategies.integers(1, 7), min_size=2, max_size=5),
    strategies.lists(strategies.booleans(), min_size=5, max_size=5),
    strategies.booleans(),
    strategies.sampled_from([(tf.reduce_sum, np.sum), (tf.reduce_mean, np.mean)]),
)
@hypothesis.settings(max_examples=60, deadline=None)
def test_sums_over_any_axes(shape, chosen, keep, functions):
    """Sums and means over any axes are NumPy's, with and without the axes that were summed."""
    x = np.random.default_rng(0).standard_normal(shape).astype("f")
    axes = tuple(axis - len(shape) if axis % 2 else axis for axis, flag in zip(range(len(shape)), chosen) if flag)
    reduce, wanted = functions
    found, _ = _run(lambda x: tf.exp(reduce(x * 0.5, axes, keepdims=keep)), x=x)
    expected = np.exp(wanted(x.astype("d") * 0.5, axes, keepdims=keep))
    assert found.shape == expected.shape
    np.testing.assert_allclose(found, expected, rtol=2e-5)


def test_a_group_norm_of_a_few_large_images_is_one_call():
    """The statistics of groups, over axes that are apart, and what is divided by them are fused also for four images."""
    x = np.random.default_rng(1).standard_normal((4, 32, 32, 4, 8)).astype("f")

    def normalized(x):
        mean = tf.reduce_mean(x, [1, 2, 4], keepdims=True)
        spread = tf.reduce_mean(tf.square(x - mean), [1, 2, 4], keepdims=True)
        return (x - mean) / tf.sqrt(spread + 1e-5)

    found, plan = _run(normalized, x=x)
    exact = x.astype("d")
    expected = (exact - exact.mean((1, 2, 4), keepdims=True)) / np.sqrt(exact.var((1, 2, 4), keepdims=True) + 1e-5)
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-5)
    assert plan.count("fused_loops_") == 1
    assert "Mean(" not in plan


def test_axes_that_do_not_fit_are_refused():
    """An axis that is out of range or repeated is an error, also if others are apart."""
    for axes in ([0, 2, 5], [0, 2, -1]):
        with pytest.raises((tf.errors.InvalidArgumentError, ValueError)):
            _run(lambda x, axes=axes: tf.exp(tf.reduce_sum(x, axes)), x=np.ones((2, 3, 4), "f"))


@pytest.mark.parametrize("shape", [(5,), (64, 700)])
def test_single_ops_that_choose(shape):
    """A choice between elements, and the gradients of elu and relu6, run as loops where torch would jump."""
    rng = np.random.default_rng(2)
    x, y = (rng.standard_normal(shape).astype("f") * 4 for _ in range(2))
    found, plan = _run(lambda x, y: tf.where(x > y, x, y), x=x, y=y)
    np.testing.assert_array_equal(found, np.maximum(x, y))
    assert "fused_loops_" in plan
    found, plan = _run(lambda x, y: tf.raw_ops.EluGrad(gradients=x, outputs=y), x=x, y=y)
    np.testing.assert_array_equal(found, np.where(y < 0, (y + 1) * x, x))
    assert "fused_loops_" in plan
    found, plan = _run(lambda x, y: tf.raw_ops.Relu6Grad(gradients=x, features=y), x=x, y=y)
    np.testing.assert_array_equal(found, np.where((y > 0) & (y < 6), x, 0))
    assert "fused_loops_" in plan
    found, _ = _run(lambda x, y: tf.exp(tf.nn.relu6(x) - tf.nn.relu6(y)), x=x, y=y)
    np.testing.assert_allclose(found, np.exp(np.clip(x, 0, 6) - np.clip(y, 0, 6)), rtol=1e-6)
