"""A plan whose feeds have unknown shapes is compiled for those it is given."""

import numpy as np
import pytest

import stoker.compat.v1 as tf

RUNS = 4


def shaped(session):
    return next(reversed(session._plans.values())).shaped


def test_results_stay_the_same():
    """Sizes taken from the feeds, reductions over them and their gradients are right before and after."""
    with tf.Graph().as_default(), tf.Session() as session:
        x = tf.placeholder(tf.float32, [None, 3])
        w = tf.get_variable("w", initializer=np.arange(6, dtype="f").reshape(3, 2) / 6)
        y = tf.reshape(tf.matmul(x, w), [-1, 1, 2])
        flat = tf.reshape(y, [tf.shape(x)[0] * 2])
        loss = tf.reduce_mean(tf.square(flat - tf.to_float(tf.size(x)))) + tf.to_float(tf.rank(x))
        fetches = [loss, tf.gradients(loss, w)[0], flat, tf.zeros_like(x), tf.shape(x)]
        session.run(tf.global_variables_initializer())
        for size in (4, 7):
            batch = np.random.RandomState(size).randn(size, 3).astype("f")
            runs = [session.run(fetches, {x: batch}) for _ in range(RUNS)]
            for later in runs[1:]:
                for first, again in zip(runs[0], later):
                    np.testing.assert_allclose(again, first, rtol=1e-5, atol=1e-6)
            expected = batch @ (np.arange(6).reshape(3, 2) / 6)
            np.testing.assert_allclose(runs[-1][2], expected.reshape(-1), rtol=1e-5, atol=1e-6)
        assert len(shaped(session).steps) == 2


def test_a_shape_set_by_hand_is_not_trusted():
    """Where a static shape does not hold, the later runs give what the first one gave."""
    with tf.Graph().as_default(), tf.Session() as session:
        x = tf.placeholder(tf.float32)
        y = tf.identity(x)
        y.set_shape([4])
        z = tf.tanh(y * 2.0) + y
        for _ in range(RUNS):
            np.testing.assert_allclose(
                session.run(z, {x: [0.0, 0.5, 1.0]}), np.tanh([0, 1, 2]) + [0, 0.5, 1], rtol=1e-6
            )


@pytest.mark.parametrize("size", [3, 8, 100])
@pytest.mark.parametrize(
    "build",
    [
        lambda x: tf.matmul(x, tf.ones([7, 2])),
        lambda x: tf.matmul(x, tf.ones([2, 7]), transpose_b=True),
        lambda x: tf.matmul(tf.reshape(x, [1, 1, -1]), tf.ones([1, 7, 2])),
        lambda x: tf.concat([x, tf.ones([2, 7])], 0),
        lambda x: tf.concat([tf.ones([2, 7]), x], 0),
        lambda x: tf.stack([x[0], tf.ones([7])]),
        lambda x: x * tf.ones([7]),
    ],
    ids=["product", "transposed", "many products", "joined", "joined last", "stacked", "arithmetic"],
)
def test_sizes_that_do_not_fit_are_errors(build, size):
    """A size that only a feed tells is checked where ops are fused, too, in all runs."""
    with tf.Graph().as_default(), tf.Session() as session:
        x = tf.placeholder(tf.float32, [1, None])
        y = tf.nn.relu(2.0 * build(x) + 1.0)
        for _ in range(RUNS):
            with pytest.raises(tf.errors.InvalidArgumentError, match=rf"7.*{size}|{size}.*7"):
                session.run(y, {x: np.ones([1, size])})
        session.run(y, {x: np.ones([1, 7])})


def test_training_is_that_of_a_graph_that_knows_its_sizes():
    """The losses are the same, bit for bit."""
    losses = []
    for rows in (None, 5):
        with tf.Graph().as_default(), tf.Session() as session:
            x = tf.placeholder(tf.float32, [rows, 3])
            w = tf.get_variable("w", initializer=np.ones((3, 2), "f"))
            loss = tf.reduce_mean(tf.square(tf.nn.relu(tf.matmul(x, w)) - 0.5))
            train = tf.train.MomentumOptimizer(0.1, 0.9).minimize(loss, tf.train.get_or_create_global_step())
            session.run(tf.global_variables_initializer())
            batch = np.random.RandomState(0).randn(5, 3).astype("f")
            losses.append([session.run([loss, train], {x: batch})[0] for _ in range(20)])
            assert session.run(tf.train.get_global_step()) == 20
    np.testing.assert_array_equal(*losses)


def test_strings_and_empty_batches():
    """Feeds of strings have shapes too, and a batch may be empty."""
    with tf.Graph().as_default(), tf.Session() as session:
        words = tf.placeholder(tf.string, [None])
        x = tf.placeholder(tf.float32, [None, 2])
        joined = tf.string_join([words, tf.as_string(tf.shape(words))])
        total = tf.reduce_sum(tf.exp(x) + 1.0, 0)
        for _ in range(RUNS):
            text, sums = session.run([joined, total], {words: ["a", "b"][:1], x: np.zeros((0, 2))})
            assert text.tolist() == [b"a1"] and sums.tolist() == [0.0, 0.0]


def test_errors_name_the_node():
    """A failure in a step made for a shape is explained as any other."""
    with tf.Graph().as_default(), tf.Session() as session:
        x = tf.placeholder(tf.float32, [None])
        at = tf.placeholder(tf.int32, [None])
        y = tf.gather(tf.tanh(x) + x * 2.0, at, name="picked")
        for _ in range(RUNS):
            session.run(y, {x: [1.0, 2.0], at: [1]})
        assert shaped(session).steps
        with pytest.raises(tf.errors.InvalidArgumentError, match="picked"):
            session.run(y, {x: [1.0, 2.0], at: [5]})


def test_a_graph_that_knows_its_sizes_needs_no_other_step():
    """Where all feeds have known shapes there is one step."""
    with tf.Graph().as_default(), tf.Session() as session:
        x = tf.placeholder(tf.float32, [2])
        session.run(x + 1.0, {x: [1.0, 2.0]})
        assert shaped(session) is None


def test_ever_new_shapes_share_one_step():
    """After the first few shapes one step serves all others."""
    with tf.Graph().as_default(), tf.Session() as session:
        x = tf.placeholder(tf.float32, [None])
        y = tf.tanh(x * 2.0) + tf.to_float(tf.size(x))
        for size in range(20):
            values = np.linspace(0, 1, size).astype("f")
            np.testing.assert_allclose(session.run(y, {x: values}), np.tanh(values * 2) + size, rtol=1e-6)
        assert len(shaped(session).steps) == 8
