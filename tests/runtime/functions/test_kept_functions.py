"""Functions that outlive the run that made them, as datasets need them."""

from __future__ import annotations

import threading

import numpy as np
import pytest
import torch

import stoker.compat.v1 as tf
from stoker._src.base.shapes import SCALAR, UNKNOWN_SHAPE
from stoker._src.graph import definition
from stoker._src.graph.definition import FUNC, STATEFUL, define
from stoker._src.graph.function_graph import FuncGraph, Function, unique_function_name
from stoker._src.ops.support.waiting import RunState, running


@pytest.fixture
def keep(monkeypatch):
    """`keep(function, dtypes)` makes an op that keeps `function`; running it puts the callable into `keep.made`."""
    monkeypatch.setattr(definition, "_REGISTRY", dict(definition._REGISTRY))
    made = []
    op = define("KeepForTest(captured: [Tcaptured]) -> (count: int32)", STATEFUL, f=FUNC).keeping()

    @op.kernel
    def keep_kernel(captured, *, f):
        made.append(f.bind(captured))
        return torch.tensor(len(made), dtype=torch.int32)

    op.shape(lambda captured: SCALAR)

    def keep(function, *dtypes):
        graph = FuncGraph("kept")
        with graph.as_default():
            inputs = [graph.add_input(dtype, UNKNOWN_SHAPE) for dtype in dtypes]
            outputs = [tf.convert_to_tensor(output) for output in function(*inputs)]
            control = graph.stateful_ops()
        captures = graph.captures
        kept = Function(unique_function_name("kept"), graph, [*inputs, *[c for _, c in captures]], outputs, control)
        return op([outer for outer, _ in captures], f=kept.ref)

    keep.made = made
    return keep


def _table():
    keys, values = tf.constant(["a", "b"]), tf.constant([10.0, 20.0])
    return tf.lookup.StaticHashTable(tf.lookup.KeyValueTensorInitializer(keys, values), -1.0)


def test_a_kept_function_is_called_after_its_run_and_from_another_thread(keep):
    """It reads the variable and the table it captured as they are when it is called."""
    variable = tf.Variable(1.0, use_resource=True)
    table = _table()
    made = keep(lambda key: [table.lookup(key) + variable], tf.string)
    update = variable.assign(5.0)
    with tf.Session() as session:
        session.run([tf.global_variables_initializer(), tf.tables_initializer()])
        session.run(made)
        (call,) = keep.made
        key = np.array(b"b", dtype=object)
        assert [value.item() for value in call(key)] == [21.0]
        session.run(update.op)
        found = []
        thread = threading.Thread(target=lambda: found.extend(call(np.array(b"a", dtype=object))))
        thread.start()
        thread.join()
        assert [value.item() for value in found] == [15.0]


def test_kept_functions_write_variables_from_many_threads(keep):
    """Updates take the worker's lock, so none is lost beside those of runs."""
    variable = tf.Variable(0.0, use_resource=True)
    made = keep(lambda by: [variable.assign_add(by, read_value=False), 0][1:], tf.float32)
    add = variable.assign_add(1.0).op
    with tf.Session() as session:
        session.run(variable.initializer)
        session.run(made)
        (call,) = keep.made
        threads = [threading.Thread(target=lambda: [call(torch.tensor(1.0)) for _ in range(100)]) for _ in range(3)]
        for thread in threads:
            thread.start()
        for _ in range(100):
            session.run(add)
        for thread in threads:
            thread.join()
        assert session.run(variable) == 400.0


def test_what_a_kept_function_returns_belongs_to_the_caller(keep):
    """Writing over a result changes neither the variable nor the constants of the next call."""
    variable = tf.Variable([1.0, 2.0], use_resource=True)
    made = keep(lambda: [variable.read_value(), tf.constant([3.0, 4.0])])
    with tf.Session() as session:
        session.run(variable.initializer)
        session.run(made)
        (call,) = keep.made
        for result in call():
            result.zero_()
        assert [result.tolist() for result in call()] == [[1.0, 2.0], [3.0, 4.0]]
        np.testing.assert_array_equal(session.run(variable), [1.0, 2.0])


def test_a_kept_function_captures_values(keep):
    """Data that was captured is what it was when the op ran."""
    fed = tf.placeholder(tf.float32, [])
    made = keep(lambda x: [x * fed], tf.float32)
    with tf.Session() as session:
        session.run(made, {fed: 3.0})
        session.run(made, {fed: 4.0})
        assert [call(torch.tensor(2.0))[0].item() for call in keep.made] == [6.0, 8.0]


def test_a_failure_in_a_kept_function_names_the_node(keep):
    """Errors are those of a run: a class of tf.errors and the op that failed."""
    table = _table()
    made = keep(lambda x: [tf.reshape(x, [2], name="into_two") + table.lookup(tf.constant("a"))], tf.float32)
    with tf.Session() as session:
        session.run(made)
        with pytest.raises(tf.errors.InvalidArgumentError) as error:
            keep.made[0](torch.tensor([1.0, 2.0, 3.0]))
        assert error.value.op.name.endswith("into_two")
        with pytest.raises(tf.errors.InvalidArgumentError, match="takes 1 values, but 2 were given"):
            keep.made[0](torch.tensor(1.0), torch.tensor(1.0))


def test_a_kept_function_that_waits_is_cancelled_with_the_run_that_calls_it(keep):
    """A call that works for a run ends with CancelledError when the run is cancelled; the run's own state is left as it is."""
    queue = tf.FIFOQueue(1, tf.float32)
    made = keep(lambda: [queue.dequeue()])
    with tf.Session() as session:
        session.run(made)
        (call,) = keep.made
        state, errors = RunState(), []

        def wait():
            try:
                with running(state):
                    call()
            except tf.errors.CancelledError as error:
                errors.append(error)

        thread = threading.Thread(target=wait)
        thread.start()
        state.cancel()
        thread.join()
        assert len(errors) == 1


def test_eager_mode_keeps_functions(keep, eager):
    """In eager mode the op runs at once, and the function is called later."""
    variable = tf.Variable(2.0)
    keep(lambda x: [x + variable], tf.float32)
    variable.assign(4.0)
    (call,) = keep.made
    assert call(torch.tensor(1.0))[0].item() == 5.0
