"""Shapes of feeds are known inside of functions: bodies of loops and branches give what they give without that knowledge."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import stoker.compat.v1 as tf


def _sources(session):
    """The compiled source of every body that the session's plans call."""
    return [
        each.source
        for plan in session._plans.values()
        for step in plan._steps()
        for each in step.with_functions()
        if each is not step
    ]


def _lstm(batch, steps, width, units):
    x = tf.placeholder(tf.float32, [None, steps, width])
    lengths = tf.placeholder(tf.int32, [None])
    with tf.variable_scope("rnn", initializer=tf.random_normal_initializer(stddev=0.3, seed=3)):
        outputs, state = tf.nn.dynamic_rnn(tf.nn.rnn_cell.LSTMCell(units), x, lengths, dtype=tf.float32)
    loss = tf.reduce_sum(tf.square(outputs)) + tf.reduce_sum(state.c)
    gradients = tf.gradients(loss, tf.trainable_variables())
    return x, lengths, [outputs, state.h, *gradients]


@given(st.integers(1, 4), st.integers(1, 5), st.integers(1, 3), st.integers(1, 4), st.randoms(use_true_random=False))
@settings(deadline=None, max_examples=15)
def test_a_recurrent_network_is_the_same_for_known_and_unknown_shapes(batch, steps, width, units, random):
    """Outputs and gradients of dynamic_rnn agree with those of a run that is traced node by node."""
    generator = np.random.default_rng(random.randrange(1000))
    with tf.Graph().as_default(), tf.Session() as session:
        x, lengths, fetches = _lstm(batch, steps, width, units)
        session.run(tf.global_variables_initializer())
        for rows in (batch, batch + 1):
            feed = {
                x: generator.standard_normal((rows, steps, width)).astype("f"),
                lengths: generator.integers(0, steps + 1, rows),
            }
            quick = session.run(fetches, feed)
            options = tf.RunOptions(trace_level=tf.RunOptions.FULL_TRACE)
            plain = session.run(fetches, feed, options=options, run_metadata=tf.RunMetadata())
            for one, other in zip(quick, plain):
                np.testing.assert_allclose(one, other, rtol=2e-5, atol=1e-6)


def test_a_body_computes_no_shapes_that_the_feeds_tell():
    """With the batch size known, the body of a recurrent network and of its gradient asks no tensor for its shape."""
    with tf.Graph().as_default(), tf.Session() as session:
        x, lengths, fetches = _lstm(2, 3, 2, 4)
        session.run(tf.global_variables_initializer())
        session.run(fetches, {x: np.ones((2, 3, 2), "f"), lengths: np.array([3, 1])})
        bodies = _sources(session)
        assert len(bodies) >= 4
        assert not [source for source in bodies if "Shape(" in source or "BroadcastGradientArgs(" in source]


def test_a_variable_that_grows_keeps_no_shape():
    """What changes its shape in the loop is taken as unknown, also where the first value's shape is known."""
    with tf.Graph().as_default(), tf.Session() as session:
        start = tf.placeholder(tf.float32, [None])
        _, grown, fixed = tf.while_loop(
            lambda i, grown, fixed: i < 3,
            lambda i, grown, fixed: (i + 1, tf.concat([grown, grown], 0), fixed * tf.cast(tf.size(grown), tf.float32)),
            [0, start, start],
            shape_invariants=[tf.TensorShape([]), tf.TensorShape([None]), tf.TensorShape([None])],
        )
        for size in (2, 3):
            values = session.run([grown, fixed], {start: np.ones(size, "f")})
            assert values[0].tolist() == [1.0] * (8 * size)
            assert values[1].tolist() == [float(size * 2 * size * 4 * size)] * size


def test_elements_of_several_shapes_are_unknown():
    """An array whose elements differ in size gives each with its own size."""
    with tf.Graph().as_default(), tf.Session() as session:
        x = tf.placeholder(tf.float32, [None])
        array = tf.TensorArray(tf.float32, 3, infer_shape=False, element_shape=[None], clear_after_read=False)
        _, array = tf.while_loop(lambda i, a: i < 3, lambda i, a: (i + 1, a.write(i, x[: i + 1])), [0, array])
        sizes = [tf.size(array.read(i)) for i in range(3)]
        assert session.run([array.concat(), *sizes], {x: [1.0, 2.0, 3.0]})[1:] == [1, 2, 3]
        total = tf.while_loop(lambda i, total: i < 3, lambda i, total: (i + 1, total + tf.size(array.read(i))), [0, 0])[
            1
        ]
        assert session.run(total, {x: [1.0, 2.0, 3.0]}) == 6


def test_branches_that_return_different_shapes_agree_on_what_is_the_same():
    """What is known after a branch holds for both of its sides."""
    with tf.Graph().as_default(), tf.Session() as session:
        x, flag = tf.placeholder(tf.float32, [None, None]), tf.placeholder(tf.bool, [])
        chosen = tf.cond(flag, lambda: x[:, :1] * 2.0, lambda: tf.identity(x))
        sizes, total = tf.shape(chosen), tf.reduce_sum(chosen + tf.zeros_like(chosen), 1)
        values = np.arange(6, dtype="f").reshape(2, 3)
        for truth, expected in ((True, values[:, :1] * 2), (False, values)):
            found = session.run([sizes, total], {x: values, flag: truth})
            assert found[0].tolist() == list(expected.shape)
            np.testing.assert_array_equal(found[1], expected.sum(1))


def test_a_loop_that_never_runs_returns_what_it_was_given():
    """Shapes of a loop's results hold also where the body is not called once."""
    with tf.Graph().as_default(), tf.Session() as session:
        x, count = tf.placeholder(tf.float32, [None, 2]), tf.placeholder(tf.int32, [])
        _, result = tf.while_loop(lambda i, x: i < count, lambda i, x: (i + 1, tf.tanh(x)), [0, x])
        shape = tf.shape(result)
        for times in (0, 2):
            found = session.run([result, shape], {x: np.ones((3, 2), "f"), count: times})
            expected = np.tanh(np.tanh(np.float32(1))) if times else 1.0
            np.testing.assert_allclose(found[0], np.full((3, 2), expected), rtol=1e-6)
            assert found[1].tolist() == [3, 2]


@pytest.mark.parametrize("rows", [1, 4])
def test_zeros_like_a_fed_tensor_are_fresh(rows):
    """Zeros that are known when planning are not changed by who gets them."""
    with tf.Graph().as_default(), tf.Session() as session:
        x = tf.placeholder(tf.float32, [None, 2])
        zeros = tf.zeros_like(x)
        first = session.run(zeros, {x: np.ones((rows, 2), "f")})
        first += 1
        assert session.run(zeros, {x: np.ones((rows, 2), "f")}).tolist() == [[0.0, 0.0]] * rows


def test_the_number_of_a_list_s_elements_is_known_behind_a_loop():
    """What a loop wrote into an array of known size has a known shape, so that ops on it ask no tensor for its shape."""
    with tf.Graph().as_default(), tf.Session() as session:
        x = tf.placeholder(tf.float32, [None, None])
        sums = tf.scan(lambda before, row: before + row, x)
        flat = tf.reshape(sums, [tf.shape(sums)[0] * tf.shape(sums)[1]])
        session.run(flat, {x: np.ones((4, 3), "f")})
        found = session.run(flat, {x: np.ones((4, 3), "f")})
        assert "Shape" not in session.explain(flat, {x: np.ones((4, 3), "f")}).replace("Reshape", "")
    np.testing.assert_array_equal(found, np.repeat(np.arange(1, 5, dtype="f"), 3))


@pytest.mark.parametrize("size, is_dynamic", [(2, True), (6, False)])
def test_arrays_that_grow_or_stay_partly_empty(size, is_dynamic):
    """An array that grows has the number of elements it was given; one that is larger than what is written keeps zeros."""
    with tf.Graph().as_default(), tf.Session() as session:
        x = tf.placeholder(tf.float32, [None, 3])
        array = tf.TensorArray(tf.float32, size, dynamic_size=is_dynamic, element_shape=[3])
        count = tf.shape(x)[0]
        _, array = tf.while_loop(
            lambda i, array: i < count, lambda i, array: (i + 1, array.write(i, x[i] * 2.0)), [0, array]
        )
        rows = np.arange(12, dtype="f").reshape(4, 3)
        found = session.run([array.stack(), array.size()], {x: rows})
    expected = rows * 2 if is_dynamic else np.concatenate([rows * 2, np.zeros((2, 3), "f")])
    np.testing.assert_array_equal(found[0], expected)
    assert found[1] == len(expected)
