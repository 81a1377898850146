"""The order of ops that no edge orders: what reads variables comes before the training step of the same run."""

import numpy as np

import stoker.compat.v1 as tf


def test_readers_see_the_values_before_the_training_step():
    """Summaries and averages that were made after the training op show the variables as they were before it."""
    x = tf.placeholder(tf.float32, [])
    w = tf.get_variable("w", initializer=2.0)
    step = tf.train.get_or_create_global_step()
    train = tf.train.GradientDescentOptimizer(0.1).minimize(x * w, global_step=step)
    doubled, read = w * 2.0, step + 0
    waiting = tf.get_default_graph()
    with waiting.control_dependencies([train]):
        after = w + 0.0
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        for number in range(3):
            _, seen, count, then = session.run([train, doubled, read, after], {x: 1.0})
            np.testing.assert_allclose(seen, 2 * (2.0 - 0.1 * number), rtol=1e-6)
            np.testing.assert_allclose(then, 2.0 - 0.1 * (number + 1), rtol=1e-6)
            assert count == number


def test_a_fetched_variable_has_its_value_at_the_end():
    """A variable that is fetched itself, as training loops do with the global step, is fetched after the update."""
    x = tf.placeholder(tf.float32, [])
    w = tf.get_variable("w", initializer=2.0)
    step = tf.train.get_or_create_global_step()
    train = tf.train.GradientDescentOptimizer(0.1).minimize(x * w, global_step=step)
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        assert session.run([train, step], {x: 1.0})[1] == 1


def test_initializers_and_counters_keep_their_places():
    """Values that are not computed from other variables are written in creation order: a later reader sees them."""
    a = tf.get_variable("a", initializer=3.0)
    b = tf.Variable(a + 1.0, name="b")
    counter = tf.get_variable("counter", initializer=0)
    counted = tf.assign_add(counter, 1)
    seen = counter + 0
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        assert session.run(b) == 4.0
        assert session.run([counted.op, seen])[1] == 1


def test_updates_that_read_each_other_run_in_creation_order():
    """Two updates of a run, each computed from what the other writes, do not wait for each other."""
    a, b = tf.get_variable("a", initializer=1.0), tf.get_variable("b", initializer=2.0)
    first = tf.assign(a, b * 10.0)
    with tf.control_dependencies([first]):
        sum_ = a + b
    second = tf.assign(b, sum_)
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        session.run([first.op, second.op])
        assert session.run([a, b]) == [20.0, 22.0]
