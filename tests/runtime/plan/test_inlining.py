"""Branches whose condition is known when planning are parts of the plan: the same values, updates and errors as those that are called."""

import numpy as np
import pytest

import stoker.compat.v1 as tf


def _both(build, feeds, runs=3):
    """The results of runs with a fed flag, and with one that a variable holds, which no plan knows; and the plan of the former."""
    found = []
    for is_fed in (True, False):
        with tf.Graph().as_default(), tf.Session() as session:
            tf.set_random_seed(3)
            flag = tf.placeholder(tf.bool)
            held = tf.get_variable("held", [], tf.bool, trainable=False)
            fetches, inputs = build(flag if is_fed else held.read_value())
            session.run(tf.global_variables_initializer(), {flag: True})
            results = []
            for turn in range(runs):
                for value in (True, False, True):
                    held.load(value, session)
                    fed = {flag: value, **{tensor: feed + turn for tensor, feed in zip(inputs, feeds)}}
                    if not is_fed:
                        del fed[flag]
                    results.append(session.run(fetches, fed))
            results.append(session.run(tf.trainable_variables()))
            found.append((results, session.explain(fetches, list(fed))))
    (results, plan), (expected, _) = found
    for one, other in zip(results, expected, strict=True):
        for a, b in zip(one, other, strict=True):
            if a is not None:
                np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-6)
    return results, plan


def test_a_fed_flag_chooses():
    """A step is compiled for each value of a fed flag, without a call; its gradient is that of the branch."""

    def build(flag):
        x = tf.placeholder(tf.float32, [None, 3])
        y = tf.cond(flag, lambda: tf.square(x) + 1.0, lambda: tf.exp(x))
        return [y, tf.gradients(y, x)[0], tf.shape(y)], [x]

    x = np.linspace(-1, 1, 6, dtype="f").reshape(2, 3)
    results, plan = _both(build, [x])
    assert "If" not in plan
    np.testing.assert_allclose(results[0][0], x**2 + 1, rtol=1e-6)
    np.testing.assert_allclose(results[1][1], np.exp(x), rtol=1e-6)


@pytest.mark.parametrize("use_resource", [False, True])
def test_updates_of_the_chosen_branch_alone(use_resource):
    """Variables change by the branch that is taken, before or after what else reads them, as with a call."""

    def build(flag):
        x = tf.placeholder(tf.float32, [4])
        v = tf.get_variable("v", [4], initializer=tf.ones_initializer(), use_resource=use_resource)
        w = tf.get_variable("w", [4], initializer=tf.ones_initializer(), use_resource=use_resource)
        before = tf.reduce_sum(v * 2.0)
        with tf.control_dependencies([before]):

            def train():
                with tf.control_dependencies([v.assign_add(x), w.assign(v * 0.5)]):
                    return tf.identity(x) * 2.0

            y = tf.cond(flag, train, lambda: v + x)
        with tf.control_dependencies([y]):
            after = tf.identity(v.read_value() if use_resource else v) + 0.0
        return [before, y, after], [x]

    _both(build, [np.arange(4, dtype="f")])


def test_random_numbers_of_a_branch():
    """Dropout behind a flag draws the same numbers as in a called branch, also in the gradient."""

    def build(flag):
        x = tf.placeholder(tf.float32, [5, 8])
        h = tf.layers.dense(x, 8, kernel_initializer=tf.glorot_uniform_initializer(seed=1))
        h = tf.layers.dropout(h, 0.5, training=flag, seed=4)
        h = tf.layers.batch_normalization(h, training=flag, fused=False)
        loss = tf.reduce_mean(tf.square(h - 0.3))
        with tf.control_dependencies(tf.get_collection(tf.GraphKeys.UPDATE_OPS)):
            train = tf.train.GradientDescentOptimizer(0.1).minimize(loss)
        return [loss, h, train], [x]

    _, plan = _both(build, [np.random.RandomState(0).randn(5, 8).astype("f")])
    assert "If" not in plan


def test_nested_branches_and_unused_outputs():
    """A branch in a branch is decided as well; what nobody uses is not computed."""

    def build(flag):
        x = tf.placeholder(tf.float32, [3])

        def outer():
            a, b = tf.cond(tf.logical_not(flag), lambda: (x, x * 3.0), lambda: (tf.sin(x), tf.cos(x)))
            return a + 1.0, b, x

        a, _, passed = tf.cond(flag, outer, lambda: (x - 1.0, x, tf.negative(x)))
        return [a, passed], [x]

    results, plan = _both(build, [np.arange(3, dtype="f")])
    assert "If" not in plan and "Cos" not in plan
    np.testing.assert_allclose(results[0][0], np.sin(np.arange(3)) + 1, rtol=1e-6)


def test_a_loop_in_a_branch():
    """A branch may hold a loop."""

    def build(flag):
        x = tf.placeholder(tf.float32, [3])
        double = lambda: tf.while_loop(lambda i, y: i < 4, lambda i, y: (i + 1, y * 2.0), [0, x])[1]  # noqa: E731
        return [tf.cond(flag, double, lambda: x)], [x]

    results, _ = _both(build, [np.ones(3, "f")])
    np.testing.assert_array_equal(results[0][0], np.full(3, 16.0))


def test_conditions_that_follow_from_sizes():
    """A branch that the shape of a feed decides, and a case of many."""
    with tf.Graph().as_default(), tf.Session() as session:
        x = tf.placeholder(tf.float32, [None])
        y = tf.cond(tf.shape(x)[0] > 2, lambda: tf.reduce_sum(x), lambda: tf.constant(-1.0))
        z = tf.switch_case(tf.size(x), {i: lambda i=i: tf.constant(float(i)) for i in range(3)}, lambda: x[0])
        for size, expected in ((1, [-1, 1]), (2, [-1, 2]), (4, [4, 1]), (2, [-1, 2])):
            np.testing.assert_array_equal(session.run([y, z], {x: np.ones(size)}), expected)


def test_a_failing_op_of_a_branch_is_named():
    """An error in a branch names its node."""
    with tf.Graph().as_default(), tf.Session() as session:
        flag, i = tf.placeholder(tf.bool, []), tf.placeholder(tf.int32, [])
        y = tf.cond(flag, lambda: tf.gather([1.0, 2.0], i, name="lookup") + 0.0, lambda: 0.0)
        assert session.run(y, {flag: True, i: 1}) == 2.0
        with pytest.raises(tf.errors.InvalidArgumentError, match="lookup"):
            session.run(y, {flag: True, i: 5})
        assert session.run(y, {flag: False, i: 5}) == 0.0


def test_a_flag_that_is_no_scalar():
    """A condition of another rank is left to the call."""
    with tf.Graph().as_default(), tf.Session() as session:
        flag = tf.placeholder(tf.bool)
        y = tf.cond(tf.reduce_all(flag), lambda: 1.0, lambda: 2.0)
        assert [session.run(y, {flag: value}) for value in ([True, False], True, [True], False)] == [2.0, 1.0, 1.0, 2.0]
