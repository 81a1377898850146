"""Loss scales and the optimizer that uses them."""

from __future__ import annotations

import numpy as np
import pytest

import stoker.compat.v1 as tf
from stoker._src.base import settings

experimental = tf.train.experimental
KINDS = pytest.mark.parametrize("resource", [False, True], ids=["ref", "resource"])


@pytest.fixture(autouse=True)
def rewrite_off():
    """The switch for mixed precision is process-wide."""
    yield
    settings.mixed_precision_rewrite = False


def test_fixed():
    """A fixed scale stays, and always says to apply."""
    scale = experimental.FixedLossScale(3)
    _, should_apply = scale.update([tf.constant(np.nan)])
    assert should_apply is True
    with tf.Session() as session:
        assert session.run(scale()) == 3.0 and scale().dtype == tf.float32
    assert experimental.FixedLossScale.from_config(scale.get_config()).get_config() == {"loss_scale_value": 3.0}


@pytest.mark.parametrize("bad", [0.5, -1, "x", True])
def test_fixed_needs_a_number_from_one_on(bad):
    """A scale below one, or no number, is refused."""
    with pytest.raises(ValueError, match="loss_scale_value must be"):
        experimental.FixedLossScale(bad)


def test_loss_scale_is_abstract():
    """The base class cannot be used by itself."""
    with pytest.raises(TypeError):
        experimental.LossScale()


def test_dynamic():
    """The scale doubles after two finite steps, halves at a step that is not (down to 1), and says which to apply."""
    scale = experimental.DynamicLossScale(8.0, 2, 2.0)
    gradient = tf.placeholder(tf.float32, [2])
    update, should_apply = scale.update([gradient, None])
    value = scale()
    assert [v.op.name for v in tf.global_variables()] == ["current_loss_scale", "good_steps"]
    assert tf.trainable_variables() == []
    steps = [
        ([1, 1], True, 8),
        ([1, 1], True, 16),
        ([1, 1], True, 16),
        ([np.nan, 1], False, 8),
        ([np.inf, 1], False, 4),
        ([1, 1], True, 4),
        ([-np.inf, 1], False, 2),
        ([np.nan, 1], False, 1),
        ([np.nan, 1], False, 1),
        ([1, 1], True, 1),
        ([1, 1], True, 2),
    ]
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        for fed, applies, after in steps:
            assert session.run([update, should_apply], {gradient: fed})[1] == applies
            assert session.run(value) == after


def test_dynamic_stays_finite():
    """The scale does not grow to infinity."""
    scale = experimental.DynamicLossScale(3e38, 1, 2.0)
    update, _ = scale.update([tf.constant([1.0])])
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        session.run(update)
        assert session.run(scale()) == np.float32(3e38)


def test_dynamic_config():
    """The arguments of the constructor go around."""
    scale = experimental.DynamicLossScale()
    assert scale.get_config() == {"initial_loss_scale": 32768.0, "increment_period": 2000, "multiplier": 2.0}
    assert (scale.initial_loss_scale, scale.increment_period, scale.multiplier) == (32768.0, 2000, 2.0)
    copy = experimental.DynamicLossScale.from_config(experimental.DynamicLossScale(4.0, 3, 5.0).get_config())
    assert (copy.initial_loss_scale, copy.increment_period, copy.multiplier) == (4.0, 3, 5.0)


@KINDS
@pytest.mark.parametrize("make", [lambda: tf.train.GradientDescentOptimizer(0.1), tf.train.AdamOptimizer])
def test_optimizer_skips_what_is_not_finite(make, resource):
    """Gradients that are not finite change neither variables nor slots nor the step, but the scale."""
    w = tf.Variable([1.0, 2.0], use_resource=resource)
    step = tf.train.create_global_step()
    fed = tf.placeholder(tf.float32, [2])
    scale = experimental.DynamicLossScale(8.0, 2, 2.0)
    optimizer = experimental.MixedPrecisionLossScaleOptimizer(make(), scale)
    train = optimizer.minimize(tf.reduce_sum(w * fed), global_step=step)
    plain = tf.Variable([1.0, 2.0], use_resource=resource)
    expected = make().apply_gradients([(tf.constant([1.0, 1.0]), plain)])
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        session.run(train, {fed: [1.0, 1.0]})
        session.run(expected)
        after = session.run(w)
        np.testing.assert_allclose(after, session.run(plain), rtol=1e-6)
        slots = session.run(optimizer.variables())
        session.run(train, {fed: [np.nan, 1.0]})
        np.testing.assert_array_equal(session.run(w), after)
        for before, now in zip(slots, session.run(optimizer.variables())):
            np.testing.assert_array_equal(before, now)
        assert session.run(step) == 1 and session.run(scale()) == 4.0
        session.run(train, {fed: [1.0, 1.0]})
        assert session.run(step) == 2


def test_optimizer_scales_the_loss():
    """Gradients are taken of the scaled loss and come out unscaled, rows too."""
    w, rows = tf.Variable([1.0, 2.0]), tf.Variable(np.ones([3, 1], np.float32))
    optimizer = experimental.MixedPrecisionLossScaleOptimizer(tf.train.GradientDescentOptimizer(0.1), 16.0)
    unused = tf.Variable(1.0)
    loss = tf.reduce_sum(w * w) + tf.reduce_sum(tf.gather(rows, [0, 0]))
    (dense, _), (sparse, _), (nothing, variable) = optimizer.compute_gradients(loss)
    assert nothing is None and variable is unused
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        np.testing.assert_array_equal(session.run(dense), [2.0, 4.0])
        np.testing.assert_array_equal(session.run(sparse.values), [[1.0], [1.0]])


def test_small_gradients_survive_float16():
    """A gradient too small for float16 is not lost."""
    w = tf.Variable(np.float32(1.0))
    loss = tf.cast(tf.cast(w, tf.float16) * tf.constant(1e-4, tf.float16), tf.float32) * 1e-4

    def gradient(optimizer):
        return optimizer.compute_gradients(loss, var_list=[w])[0][0]

    plain = gradient(tf.train.GradientDescentOptimizer(1.0))
    scaled = gradient(experimental.MixedPrecisionLossScaleOptimizer(tf.train.GradientDescentOptimizer(1.0), 2.0**14))
    with tf.Session() as session:
        session.run(w.initializer)
        assert session.run(plain) == 0.0
        assert session.run(scaled) == pytest.approx(1e-8, rel=1e-2)


def test_enable_and_disable():
    """The switch wraps the optimizer and tells later sessions; switching off leaves wrapped optimizers as they are."""
    assert not settings.mixed_precision_rewrite
    inner = tf.train.GradientDescentOptimizer(0.1)
    wrapped = experimental.enable_mixed_precision_graph_rewrite(inner)
    assert isinstance(wrapped, experimental.MixedPrecisionLossScaleOptimizer)
    assert isinstance(wrapped._loss_scale, experimental.DynamicLossScale) and settings.mixed_precision_rewrite
    assert wrapped.get_name() == "GradientDescent"
    fixed = experimental.enable_mixed_precision_graph_rewrite(inner, 4)
    assert fixed._loss_scale.get_config() == {"loss_scale_value": 4.0}
    settings.mixed_precision_rewrite = False
    assert not settings.mixed_precision_rewrite


def test_bad_arguments():
    """Only optimizers that do not scale yet can be wrapped, and only by scales."""
    inner = tf.train.GradientDescentOptimizer(0.1)
    with pytest.raises(ValueError, match="must be an instance"):
        experimental.enable_mixed_precision_graph_rewrite("opt")
    with pytest.raises(ValueError, match="must not already be"):
        wrapped = experimental.enable_mixed_precision_graph_rewrite(inner)
        experimental.enable_mixed_precision_graph_rewrite(wrapped)
    with pytest.raises(ValueError, match="Could not interpret loss scale identifier"):
        experimental.enable_mixed_precision_graph_rewrite(inner, "fixed")
    with pytest.raises(ValueError, match="must be an instance of Optimizer"):
        experimental.MixedPrecisionLossScaleOptimizer(3, 2.0)


@pytest.mark.usefixtures("eager")
def test_eager():
    """In eager mode `update` acts at once, and the optimizer skips at once."""
    scale = experimental.DynamicLossScale(8.0, 2, 2.0)
    update, should_apply = scale.update([tf.constant([np.nan])])
    assert update is None and not bool(should_apply) and float(scale()) == 4.0
    w = tf.Variable([1.0])
    optimizer = experimental.MixedPrecisionLossScaleOptimizer(tf.train.GradientDescentOptimizer(0.5), scale)
    optimizer.minimize(lambda: tf.reduce_sum(w * w), var_list=[w])
    np.testing.assert_allclose(w.numpy(), [0.0])
    optimizer.apply_gradients([(tf.constant([np.inf]), w)])
    np.testing.assert_allclose(w.numpy(), [0.0])
    assert float(scale()) == 2.0


@pytest.mark.usefixtures("eager")
def test_eager_fixed_scale_has_no_update_op():
    """In eager mode there is no op to return."""
    assert experimental.FixedLossScale(4.0).update([tf.constant(1.0)]) == (None, True)


def test_a_fixed_scale_adds_no_ops():
    """With a fixed scale the step is the wrapped optimizer's own op, under its name."""
    variable = tf.Variable([1.0, 2.0], name="v")
    scaled = tf.train.experimental.MixedPrecisionLossScaleOptimizer(
        tf.train.MomentumOptimizer(0.1, 0.9), tf.train.experimental.FixedLossScale(8.0)
    )
    step = scaled.minimize(tf.reduce_sum(variable * variable))
    assert step.name == "Momentum"
    assert [op.name for op in step.control_inputs] == ["Momentum/update_v/ApplyMomentum"]


def test_names_in_checkpoints():
    """Adam's powers have the names that TensorFlow's branch gives them."""
    w = tf.Variable([1.0], name="w")
    tf.mixed_precision.MixedPrecisionLossScaleOptimizer(tf.train.AdamOptimizer(), "dynamic").minimize(w * w)
    assert sorted(v.op.name for v in tf.global_variables()) == [
        "cond_1/beta1_power", "cond_1/beta2_power", "current_loss_scale", "good_steps", "w", "w/Adam", "w/Adam_1",
    ]  # fmt: skip
