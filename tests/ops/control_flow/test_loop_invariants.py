"""Static shapes in loops and branches: invariants as shapes and specs, elements of queues."""

import numpy as np
import pytest

import stoker.compat.v1 as tf


@pytest.fixture(autouse=True)
def graph():
    with tf.Graph().as_default() as graph:
        yield graph


def _doubled(x):
    return tf.concat([x, x], 0)


@pytest.mark.parametrize("spell", [tf.TensorShape, tf.TensorSpec])
def test_invariants_are_shapes_or_specs(spell):
    """A loop variable may change its shape within an invariant, given as a TensorShape or a TensorSpec."""
    invariants = [tf.TensorShape([]), spell([None, 2])]
    _, x = tf.while_loop(lambda i, x: i < 3, lambda i, x: (i + 1, _doubled(x)), [0, tf.ones([1, 2])], invariants)
    assert x.shape.as_list() == [None, 2]
    with tf.Session() as session:
        assert session.run(x).shape == (8, 2)


@pytest.mark.parametrize("spell", [tf.TensorShape, tf.TensorSpec])
def test_invariants_in_structures(spell):
    """Invariants have the structure of the loop variables."""
    start = {"a": tf.ones([1, 2]), "b": (tf.zeros([2]), tf.ones([3]))}
    invariants = [spell([]) if spell is tf.TensorShape else spell([], tf.int32)]
    invariants.append({"a": spell([None, 2]), "b": (spell([2]), spell([None]))})

    def body(i, x):
        return i + 1, {"a": _doubled(x["a"]), "b": (x["b"][0], _doubled(x["b"][1]))}

    _, x = tf.while_loop(lambda i, x: i < 2, body, [0, start], invariants)
    assert [x["a"].shape.as_list(), x["b"][0].shape.as_list(), x["b"][1].shape.as_list()] == [[None, 2], [2], [None]]
    with tf.Session() as session:
        np.testing.assert_array_equal(session.run(x["b"][1]), np.ones(12))


def test_sparse_invariants():
    """A sparse tensor's invariant is the shape of its vector of sizes, or a SparseTensorSpec."""
    start = tf.SparseTensor([[0, 0]], [1.0], [2, 2])

    def body(i, x):
        return i + 1, tf.SparseTensor(_doubled(x.indices), _doubled(x.values), x.dense_shape)

    for invariant in (tf.TensorShape([2]), tf.SparseTensorSpec([2, 2], tf.float32)):
        _, x = tf.while_loop(lambda i, x: i < 2, body, [0, start], [tf.TensorShape([]), invariant])
        with tf.Session() as session:
            assert session.run(x).values.shape == (4,)
    with pytest.raises(ValueError, match="Expected a shape with 1 dimension"):
        tf.while_loop(lambda i, x: i < 2, body, [0, start], [tf.TensorShape([]), tf.TensorShape([None, None])])


def test_a_spec_of_another_dtype():
    """A spec that the first value does not fit is refused."""
    with pytest.raises(TypeError, match=r"TensorSpec\(.*\) is not compatible with"):
        tf.while_loop(lambda x: True, lambda x: x, [tf.ones([1, 2])], [tf.TensorSpec([None, 2], tf.int32)])


def test_elements_of_queues_keep_their_shapes():
    """What a branch or a loop's body takes from a queue outside of it has the shape the queue declares."""
    queue = tf.FIFOQueue(10, [tf.float32, tf.int32], [[2, 3], []])
    ranked = tf.PriorityQueue(10, [tf.float32], [[5]])
    choice = tf.placeholder_with_default(True, [])
    seen = []

    def body(i, x):
        taken = tf.cond(choice, lambda: queue.dequeue()[0], lambda: x)
        seen.append(taken.shape.as_list())
        return i + 1, taken

    _, last = tf.while_loop(lambda i, x: i < 3, body, [0, tf.zeros([2, 3])])
    many = tf.cond(choice, lambda: queue.dequeue_many(4)[0], lambda: tf.zeros([4, 2, 3]))
    some = tf.cond(choice, lambda: queue.dequeue_up_to(4)[0], lambda: tf.zeros([1, 2, 3]))
    first = tf.cond(choice, lambda: ranked.dequeue()[1], lambda: tf.zeros([5]))
    shapes = [tensor.shape.as_list() for tensor in (last, many, some, first)]
    assert seen == [[2, 3]]
    assert shapes == [[2, 3], [4, 2, 3], [None, 2, 3], [5]]
    with tf.Session() as session:
        session.run(queue.enqueue_many([np.ones([3, 2, 3], np.float32), np.zeros(3, np.int32)]))
        np.testing.assert_array_equal(session.run(last), np.ones([2, 3]))
