"""The first value of a large variable is kept without a copy, and belongs to the variable alone."""

import numpy as np
import pytest

import stoker.compat.v1 as tf

SHAPE = [400, 200]


@pytest.mark.parametrize("use_resource", [False, True])
def test_variables_made_from_each_other_stay_apart(use_resource):
    """A variable initialized from another one, and values fetched with an assignment, do not change with later updates."""
    with tf.Graph().as_default(), tf.Session() as session:
        v = tf.Variable(tf.random_uniform(SHAPE, -1.0, 1.0, seed=1), use_resource=use_resource)
        w = tf.Variable(v.initialized_value() * 2.0, use_resource=use_resource)
        x = tf.placeholder(tf.float32, SHAPE)
        y = x * 2.0
        fresh = tf.Variable(tf.zeros(SHAPE), use_resource=use_resource)
        assign = fresh.assign(y)
        add = [each.assign_add(tf.ones(SHAPE)) for each in (v, fresh)]
        session.run([v.initializer])
        session.run([w.initializer])
        first, second = session.run([v, w])
        np.testing.assert_allclose(second, first * 2)
        _, fetched = session.run([assign.op if use_resource else assign, y], {x: np.ones(SHAPE)})
        session.run(add)
        np.testing.assert_array_equal(fetched, np.full(SHAPE, 2.0, "f"))
        np.testing.assert_allclose(session.run(v), first + 1)
        np.testing.assert_array_equal(session.run(w), second)
        np.testing.assert_array_equal(session.run(fresh), np.full(SHAPE, 3.0, "f"))


@pytest.mark.parametrize("use_resource", [False, True])
def test_one_value_for_two_variables(use_resource):
    """Two variables that are initialized with the same tensor in one run have memory of their own."""
    with tf.Graph().as_default(), tf.Session() as session:
        value = tf.random_normal(SHAPE, seed=3) * 0.5
        a, b = (tf.Variable(value, use_resource=use_resource) for _ in range(2))
        session.run(tf.global_variables_initializer())
        before = session.run(b)
        np.testing.assert_array_equal(session.run(a), before)
        session.run(a.assign_sub(tf.ones(SHAPE)))
        np.testing.assert_array_equal(session.run(b), before)
        assert not np.array_equal(session.run(a), before)
