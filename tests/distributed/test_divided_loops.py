"""Loops, branches and functions on a worker that use variables and queues of two parameter servers."""

from __future__ import annotations

from contextlib import nullcontext

import numpy as np
import pytest

import stoker.compat.v1 as tf
from tests.distributed.clusters import far, servers

ROWS = np.random.RandomState(0).randn(6, 3).astype("f")


@pytest.fixture(scope="module")
def cluster():
    with servers(ps=2, worker=1) as started:
        yield started


def on_worker(cluster):
    spec = tf.train.ClusterSpec(cluster["worker", 0].server_def.cluster)
    ps_ops = ["VarHandleOp", "VariableV2", "FIFOQueueV2"]
    return tf.device(tf.train.replica_device_setter(cluster=spec, worker_device="/job:worker/task:0", ps_ops=ps_ops))


def variables(use_resource=True):
    """Two variables, one on each parameter server."""
    with tf.variable_scope("both", use_resource=use_resource):
        table = tf.get_variable("table", initializer=ROWS)
        weights = tf.get_variable("weights", initializer=ROWS[:3])
    return table, weights


def trained(loss):
    step = tf.train.GradientDescentOptimizer(0.1).minimize(loss)
    return lambda session: [session.run([loss, step])[0] for _ in range(3)] + session.run(tf.trainable_variables())


def recurrent():
    with tf.variable_scope("rnn", use_resource=True, initializer=tf.constant_initializer(0.1)):
        cell = tf.nn.rnn_cell.GRUCell(4)
        outputs, _ = tf.nn.dynamic_rnn(cell, ROWS.reshape(2, 3, 3), [3, 2], dtype=tf.float32)
    return trained(tf.reduce_mean(tf.square(outputs)))


def lookups():
    table, weights = variables()
    ids = tf.constant([[1, 2], [3, 3], [5, 0]])

    def body(i, total):
        return i + 1, tf.tanh(tf.matmul(tf.nn.embedding_lookup(table, ids[i]), weights) + total)

    return trained(tf.reduce_sum(tf.square(tf.while_loop(lambda i, _: i < 3, body, [0, tf.zeros([2, 3])])[1])))


def nested():
    table, weights = variables()

    def body(i, value):
        inner = tf.while_loop(lambda j, _: j <= i, lambda j, v: (j + 1, tf.tanh(tf.matmul(v, weights))), [0, value])
        return i + 1, tf.cond(tf.equal(i % 2, 0), lambda: inner[1] * table[0], lambda: inner[1] + table[1])

    return trained(tf.reduce_sum(tf.while_loop(lambda i, _: i < 3, body, [0, tf.ones([2, 3])])[1]))


def branches():
    table, weights = variables()
    which = tf.placeholder_with_default(True, [])
    value = tf.cond(which, lambda: tf.matmul(table, weights), lambda: table * weights[0])
    train = trained(tf.reduce_sum(tf.square(value)))
    return lambda session: [*train(session), session.run(value, {which: False})]


def functions():
    table, weights = variables()

    @tf.function
    def product(rows):
        return tf.matmul(tf.gather(table, rows), weights)

    return trained(tf.reduce_sum(tf.square(product(tf.constant([1, 4])))))


def updates(use_resource):
    with tf.variable_scope("both", use_resource=use_resource):
        first, second = tf.get_variable("first", initializer=0.0), tf.get_variable("second", initializer=1.0)

    def body(i, total):
        with tf.control_dependencies([first.assign_add(1.0)]):
            update = second.assign_add(tf.cast(i, tf.float32))
        with tf.control_dependencies([update]):
            return i + 1, total + second.read_value()

    total = tf.while_loop(lambda i, _: i < 4, body, [0, 0.0], parallel_iterations=1)[1]
    return lambda session: [session.run(total), *session.run([first, second])]


def queues():
    # The device of an op that uses a queue is that of the queue.
    source, target = (tf.FIFOQueue(9, tf.float32, shapes=[[]], name=name) for name in ("first_queue", "second_queue"))

    def body(i, total):
        value = source.dequeue()
        with tf.control_dependencies([target.enqueue(2 * value)]):
            return i + 1, total + value

    total = tf.while_loop(lambda i, _: i < 3, body, [0, 0.0])[1]
    fill = source.enqueue_many([[1.0, 2.0, 3.0]])
    return lambda session: [session.run(fill), session.run(total), session.run(target.dequeue_many(3))]


PROGRAMS = {
    "recurrent": recurrent,
    "lookups": lookups,
    "nested": nested,
    "branches": branches,
    "functions": functions,
    "updates": lambda: updates(True),
    "updates of references": lambda: updates(False),
    "queues": queues,
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_values_are_those_of_a_local_session(cluster, name):
    """A program whose loops and branches use variables of two parameter servers gives the values of one process."""
    found = []
    config = tf.ConfigProto(operation_timeout_in_ms=120_000)
    for target, devices in (("", nullcontext()), (cluster["worker", 0].target, on_worker(cluster))):
        with tf.Graph().as_default(), far(), tf.Session(target, config=config) as session:
            with devices:
                run = PROGRAMS[name]()
            session.run(tf.global_variables_initializer())
            found.append(tf.nest.flatten(run(session)))
    tf.Session.reset(cluster["worker", 0].target)
    for local, divided in zip(*found):
        if local is not None:
            np.testing.assert_allclose(divided, local, rtol=1e-5, atol=1e-6)


def test_a_lookup_in_a_loop_sends_rows(cluster):
    """The table stays on its parameter server: the loop calls the lookup there."""
    with tf.Graph().as_default(), tf.Session(cluster["worker", 0].target) as session:
        with on_worker(cluster):
            table, _ = variables()
            mapped = tf.map_fn(lambda i: tf.nn.embedding_lookup(table, i), tf.constant([1, 2]), dtype=tf.float32)
        session.run(table.initializer)
        plan = session.explain(mapped)
        np.testing.assert_array_equal(session.run(mapped), ROWS[1:3])
    tf.Session.reset(cluster["worker", 0].target)
    assert "ReadVariableOp" not in plan


def test_an_error_of_another_task_ends_the_loop(cluster):
    """What fails on a parameter server fails in the client, with the error's class, and the next step works."""
    with tf.Graph().as_default(), tf.Session(cluster["worker", 0].target) as session:
        with on_worker(cluster):
            table, weights = variables()
            first = tf.placeholder(tf.int32, [])

            def body(i, total):
                return i + 1, total + tf.gather(table, i) + tf.gather(weights, 0)

            _, total = tf.while_loop(lambda i, _: i < 6, body, [first, tf.zeros([3])])
        session.run(tf.global_variables_initializer())
        with pytest.raises(tf.errors.InvalidArgumentError, match="indices"):
            session.run(total, {first: -1})
        np.testing.assert_allclose(session.run(total, {first: 4}), ROWS[4] + ROWS[5] + 2 * ROWS[0], rtol=1e-5)
    tf.Session.reset(cluster["worker", 0].target)


def test_a_deadline_ends_a_call(cluster):
    """A loop that waits for a queue of another task ends with the deadline of its step."""
    with tf.Graph().as_default(), tf.Session(cluster["worker", 0].target) as session:
        with on_worker(cluster):
            empty = tf.FIFOQueue(1, tf.int32, shapes=[[]])
            last = tf.while_loop(lambda i: i < 2, lambda i: i + empty.dequeue(), [0])
        with pytest.raises(tf.errors.DeadlineExceededError):
            session.run(last, options=tf.RunOptions(timeout_in_ms=200))
