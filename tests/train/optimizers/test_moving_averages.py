"""ExponentialMovingAverage and assign_moving_average."""

from __future__ import annotations

import numpy as np
import pytest

import stoker as tf2
import stoker.compat.v1 as tf
from stoker._src.train.optimizers.moving_averages import assign_moving_average


@pytest.mark.parametrize("resource", [False, True])
def test_shadow_follows_its_variable(resource):
    """The shadow starts at the variable's initial value and moves by 1 - decay of the difference at every update."""
    w = tf.Variable([1.0, 2.0], name="w", use_resource=resource)
    ema = tf.train.ExponentialMovingAverage(0.9)
    update = ema.apply([w])
    assign = w.assign([11.0, -8.0])
    shadow = ema.average(w)
    assert shadow.op.name == "w/ExponentialMovingAverage" and not shadow.trainable
    assert update.name == "ExponentialMovingAverage"
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        np.testing.assert_array_equal(session.run(shadow), [1.0, 2.0])
        session.run(assign)
        session.run(update)
        np.testing.assert_allclose(session.run(shadow), [2.0, 1.0], rtol=1e-6)
        session.run(update)
        np.testing.assert_allclose(session.run(shadow), [2.9, 0.1], rtol=1e-6, atol=1e-6)


def test_shadow_of_an_initialized_variable():
    """A shadow that is initialized later than its variable starts at the value the variable has then."""
    w = tf.Variable(1.0, name="w")
    ema = tf.train.ExponentialMovingAverage(0.5)
    ema.apply([w])
    with tf.Session() as session:
        session.run(w.initializer)
        session.run(w.assign(7.0))
        session.run(ema.average(w).initializer)
        assert session.run(ema.average(w)) == 7.0


def test_num_updates_lowers_the_decay():
    """Early updates use (1 + n) / (10 + n), as it is when the update runs."""
    w = tf.Variable(0.0)
    count = tf.Variable(0, trainable=False)
    ema = tf.train.ExponentialMovingAverage(0.5, num_updates=count)
    update = ema.apply([w])
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        session.run(w.assign(1.0))
        session.run(update)
        assert session.run(ema.average(w)) == pytest.approx(0.9)
        session.run(count.assign(1000))
        session.run(update)
        assert session.run(ema.average(w)) == pytest.approx(0.95)


def test_trainable_variables_by_default():
    """Without a list all trainable variables are averaged, and join MOVING_AVERAGE_VARIABLES."""
    w, u = tf.Variable(1.0, name="w"), tf.Variable(1.0, name="u", trainable=False)
    ema = tf.train.ExponentialMovingAverage(0.9, name="ema")
    assert ema.name == "ema"
    ema.apply()
    assert tf.moving_average_variables() == [w]
    assert ema.average(u) is None
    assert ema.average(w) in tf.global_variables() and ema.average(w) not in tf.trainable_variables()


@pytest.mark.parametrize("debias", [False, True])
def test_averages_of_tensors(debias):
    """The average of a tensor starts at zero; debiased, it is divided by 1 - decay^updates."""
    x = tf.placeholder(tf.float32, [])
    ema = tf.train.ExponentialMovingAverage(0.9, zero_debias=debias)
    update = ema.apply([x])
    values = [3.0, -1.0, 4.0]
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        expected = 0.0
        for count, value in enumerate(values, start=1):
            session.run(update, {x: value})
            expected = 0.9 * expected + 0.1 * value
            wanted = expected / (1 - 0.9**count) if debias else expected
            assert session.run(ema.average(x)) == pytest.approx(wanted, rel=1e-5)
    assert tf.moving_average_variables() == []


def test_apply_again():
    """`apply` may be called again, with the same or other variables; a shadow is made once."""
    w, u = tf.Variable(1.0), tf.Variable(2.0)
    ema = tf.train.ExponentialMovingAverage(0.9)
    ema.apply([w])
    shadow = ema.average(w)
    assert ema.apply([w, u]).name == "ExponentialMovingAverage_1"
    assert ema.average(w) is shadow and ema.average(u) is not None


def test_apply_inside_of_control_dependencies():
    """Averaging after training sees what training did, in one run."""
    w = tf.Variable(1.0)
    train = w.assign(3.0)
    ema = tf.train.ExponentialMovingAverage(0.5)
    with tf.control_dependencies([train]):
        step = ema.apply([w])
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        session.run(step)
        assert session.run(ema.average(w)) == 2.0


def test_only_floating_point():
    """Integers cannot be averaged."""
    with pytest.raises(TypeError, match="must be half, float, or double"):
        tf.train.ExponentialMovingAverage(0.9).apply([tf.Variable(1)])


def test_average_name():
    """The name of a shadow is known before it is made."""
    w = tf.Variable(1.0, name="w")
    ema = tf.train.ExponentialMovingAverage(0.9)
    assert ema.average(w) is None
    assert ema.average_name(w) == "w/ExponentialMovingAverage"
    ema.apply([w])
    assert ema.average_name(w) == ema.average(w).op.name == "w/ExponentialMovingAverage"


def test_variables_to_restore():
    """Averaged (and trainable) variables are restored from their shadows, all others from themselves."""
    w, u = tf.Variable(1.0, name="w"), tf.Variable(1.0, name="u", trainable=False)
    step = tf.train.create_global_step()
    ema = tf.train.ExponentialMovingAverage(0.9)
    assert ema.variables_to_restore() == {"w/ExponentialMovingAverage": w, "u": u, "global_step": step}
    ema.apply([w])
    assert ema.variables_to_restore() == {"w/ExponentialMovingAverage": w, "u": u, "global_step": step}
    assert ema.variables_to_restore([u]) == {
        "u/ExponentialMovingAverage": u,
        "w": w,
        "w/ExponentialMovingAverage": ema.average(w),
        "global_step": step,
    }


def test_assign_moving_average():
    """The function behind: variable -= (1 - decay) * (variable - value), debiased unless told not to."""
    w, u = tf.Variable(10.0, name="w"), tf.Variable(0.0, name="u")
    plain = assign_moving_average(w, 0.0, 0.9, zero_debias=False)
    debiased = assign_moving_average(u, 5.0, 0.9)
    assert plain.op.name == "AssignMovingAvg"
    assert [v.op.name for v in tf.global_variables()] == ["w", "u", "u/biased", "u/local_step"]
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        assert session.run(plain) == pytest.approx(9.0)
        for _ in range(2):
            assert session.run(debiased) == pytest.approx(5.0, rel=1e-5)


def test_partitioned_variables():
    """Slices of a partitioned variable are averaged one by one, and their shadows know their place in the whole."""
    with tf.variable_scope("p", partitioner=tf.fixed_size_partitioner(2)):
        w = tf.get_variable("w", [4], initializer=tf.ones_initializer())
    ema = tf.train.ExponentialMovingAverage(0.9)
    ema.apply([w])
    shadows = [ema.average(part) for part in w]
    assert [shadow._get_save_slice_info().full_name for shadow in shadows] == ["p/w/ExponentialMovingAverage"] * 2
    assert [shadow._get_save_slice_info().var_offset for shadow in shadows] == [[0], [2]]


@pytest.mark.usefixtures("eager")
def test_eager():
    """In eager mode every call of `apply` is one update."""
    w = tf.Variable(1.0)
    ema = tf.train.ExponentialMovingAverage(0.5)
    ema.apply([w])
    w.assign(3.0)
    ema.apply([w])
    assert float(ema.average(w).numpy()) == 2.0
    ema.apply([w])
    assert float(ema.average(w).numpy()) == 2.5


@pytest.mark.usefixtures("eager")
def test_eager_names_and_tensors():
    """Shadows are named as in a graph; tensors, which are nothing that stays, are refused."""
    v = tf.Variable(3.0, name="v")
    average = tf.train.ExponentialMovingAverage(0.9)
    assert average.apply([v]) is None and average.average(v).name == "v/ExponentialMovingAverage:0"
    assert average.average_name(v) == "v/ExponentialMovingAverage"
    with pytest.raises(TypeError, match="does not support non-Variable tensors"):
        average.apply([tf.constant(2.0)])


def test_eager_variables_to_restore(eager):
    """Averaged variables are restored from their shadows in eager mode, too."""
    tf.reset_default_graph()
    variable = tf.Variable(1.0, name="v")
    average = tf.train.ExponentialMovingAverage(0.5)
    average.apply([variable])
    assert average.variables_to_restore() == {"v/ExponentialMovingAverage": variable}


def test_shadows_made_inside_of_a_function(eager):
    """The first call of a function makes the shadows, outside of it; every call updates them once."""
    v = tf2.Variable([1.0, 2.0])
    ema = tf.train.ExponentialMovingAverage(0.9)

    @tf2.function
    def step():
        v.assign_add([1.0, 1.0])
        ema.apply([v])

    for _ in range(3):
        step()
    np.testing.assert_allclose(ema.average(v).numpy(), [1.561, 2.561], rtol=1e-6)
