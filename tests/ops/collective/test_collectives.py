"""Collective ops in a process on its own, and how plans run them. Several processes: tests/distributed/test_replicas.py."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import stoker.compat.v1 as tf
from stoker._src.ops.collective import collectives
from stoker._src.runtime.plan import background
from tests.running import run, run_initialized


def test_alone_an_op_returns_its_input():
    """In a group of one process the sum, the mean, the rows of all and the broadcast value are the input."""
    x = tf.constant([[1.0, 2.0], [3.0, 4.0]])
    values = run([collectives.all_reduce(x, "Add", "Div"), collectives.all_gather(x), collectives.broadcast(x)])
    for value in values:
        np.testing.assert_array_equal(value, [[1, 2], [3, 4]])


def test_static_shapes():
    """A reduction and a broadcast keep the shape; a gather leaves the number of rows open."""
    x = tf.placeholder(tf.float32, [3, 4])
    assert collectives.all_reduce(x).shape.as_list() == [3, 4]
    assert collectives.broadcast(x).shape.as_list() == [3, 4]
    assert collectives.all_gather(x).shape.as_list() == [None, 4]


def test_a_group_of_some_processes_is_refused():
    """An op for a part of the processes says that it is not implemented."""
    x = tf.raw_ops.CollectiveReduce(
        input=[1.0], group_size=3, group_key=1, instance_key=1, merge_op="Add", final_op="Id", subdiv_offsets=[0]
    )
    with pytest.raises(tf.errors.UnimplementedError, match="for 3 of 1 processes"):
        run(x)


def test_gradients():
    """A mean of one process passes the gradient on; a maximum has none."""
    x = tf.constant([1.0, 2.0])
    (found,) = tf.gradients(collectives.all_reduce(x, "Add", "Div") * [3.0, 4.0], x)
    np.testing.assert_array_equal(run(found), [3, 4])
    with pytest.raises(LookupError, match="it reduces by Max"):
        tf.gradients(collectives.all_reduce(x, "Max"), x)


def test_graph_definition_survives():
    """Ops that share messages still do after the graph went through a GraphDef."""
    first, second = collectives.all_reduce_all([tf.constant([1.0]), tf.constant([2.0])])
    assert first.op.type == "CollectiveReduce"
    definition = tf.get_default_graph().as_graph_def()
    with tf.Graph().as_default():
        found = tf.import_graph_def(definition, return_elements=[first.name, second.name], name="")
        with tf.Session() as session:
            assert [value.tolist() for value in session.run(found)] == [[1.0], [2.0]]
            assert session.explain(found).count("CollectiveReduce_begin") == 1


def _layers(count, size):
    """The gradients of a chain of matrix products, and the variables, first layer first."""
    variables = [tf.get_variable(f"w{i}", [size, size], initializer=tf.ones_initializer()) for i in range(count)]
    x = tf.placeholder(tf.float32, [2, size], name="x")
    y = x
    for variable in variables:
        y = tf.matmul(y, variable)
    return x, tf.gradients(tf.reduce_sum(y), variables), variables


def _lines(fetches, x):
    with tf.Session() as session:
        feed = {x: np.ones(x.shape.as_list(), np.float32)}
        return [line.strip() for line in session.explain(fetches, feed).splitlines()]


def test_messages_leave_during_the_backward_pass(monkeypatch):
    """Gradients are sent in messages of limited size, each as soon as the last of its gradients is there, and awaited before the update."""
    monkeypatch.setattr(background, "_BUCKET", 2 * 300 * 300 * 4)
    x, gradients, variables = _layers(4, 300)
    reduced = collectives.all_reduce_all(gradients, "Add", "Div")
    update = tf.train.GradientDescentOptimizer(0.5).apply_gradients(list(zip(reduced, variables)))
    lines = _lines([update], x)
    begins = [i for i, line in enumerate(lines) if "CollectiveReduce_begin" in line]
    finishes = [i for i, line in enumerate(lines) if "CollectiveReduce_finish" in line]
    products = [i for i, line in enumerate(lines) if line.startswith("MatMul_")]
    applied = next(i for i, line in enumerate(lines) if line.startswith("ApplyGradientDescent"))
    assert len(begins) == len(finishes) == 2
    assert any(begins[0] < i < begins[1] for i in products), "the first message leaves before the last product"
    assert max(begins) < min(finishes) and max(finishes) < applied


def test_a_small_gradient_does_not_hold_back_the_messages(monkeypatch):
    """The gradient of a small last layer could be computed at any time; it is computed when the message that it belongs to is complete."""
    monkeypatch.setattr(background, "_BUCKET", 300 * 300 * 4)
    x, y, variables = tf.placeholder(tf.float32, [400, 300], name="x"), None, []
    for i, units in enumerate([300, 300, 300, 3]):
        variables.append(tf.get_variable(f"w{i}", [300, units], initializer=tf.ones_initializer()))
        y = tf.nn.relu(tf.matmul(x if y is None else y, variables[-1]))
    reduced = collectives.all_reduce_all(tf.gradients(tf.reduce_mean(tf.square(y)), variables), "Add", "Div")
    lines = _lines([tf.train.GradientDescentOptimizer(0.5).apply_gradients(list(zip(reduced, variables)))], x)
    begins = [i for i, line in enumerate(lines) if "CollectiveReduce_begin" in line]
    products = [i for i, line in enumerate(lines) if line.startswith("MatMul_")]
    assert len(begins) == 3
    assert all(any(i < product < j for product in products) for i, j in itertools.pairwise(begins))


def test_an_update_with_messages_is_the_update_without():
    """Splitting gradients into messages and putting them together again changes no number."""
    x, gradients, _variables = _layers(3, 7)
    feed = {x: np.arange(14, dtype=np.float32).reshape(2, 7)}
    reduced = collectives.all_reduce_all(gradients, "Add", "Div")
    for plain, sent in zip(run_initialized(gradients, feed), run_initialized(reduced, feed)):
        np.testing.assert_array_equal(plain, sent)


def test_messages_respect_control_dependencies():
    """A message that must wait for an update by a control edge does not leave before it, and what waits for a message runs after it."""
    count = tf.get_variable("count", initializer=0.0)
    bumped = count.assign_add(1.0)
    x = tf.placeholder(tf.float32, [2], name="x")
    with tf.control_dependencies([bumped]):
        first = collectives.all_reduce(x * 2.0)
    with tf.control_dependencies([first]):
        again = count.assign_add(10.0)
    lines = _lines([again], x)
    at = [next(i for i, line in enumerate(lines) if part in line) for part in ("_begin(", "_finish(")]
    writes = [i for i, line in enumerate(lines) if line.startswith("AssignAdd")]
    assert writes[0] < at[0] < at[1] < writes[1]


def test_dependent_reductions_do_not_share_a_message():
    """A reduction of what another one gave starts after that one has ended."""
    x = tf.placeholder(tf.float32, [2], name="x")
    second = collectives.all_reduce(collectives.all_reduce(x) + 1.0)
    lines = _lines([second], x)
    order = ["begin" if "_begin(" in line else "finish" for line in lines if "_begin(" in line or "_finish(" in line]
    assert order == ["begin", "finish", "begin", "finish"]
    np.testing.assert_array_equal(run(second, {x: [1.0, 2.0]}), [2, 3])
