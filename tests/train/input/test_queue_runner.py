"""Queue runners, started by hand and from the collection of a graph."""

from __future__ import annotations

import threading

import pytest

import stoker.compat.v1 as tf
from stoker._src.formats.protos import QueueRunnerDef


def _counting(capacity: int = 10, limit: int = 3, threads: int = 1):
    """A queue and a runner that fills it with 1 to `limit` from a local variable."""
    queue = tf.FIFOQueue(capacity, tf.float32, name="numbers")
    count = tf.get_variable("count", [], tf.float32, tf.zeros_initializer(), use_resource=False)
    following = count.count_up_to(limit) if limit else count.assign_add(1.0)
    return queue, tf.train.QueueRunner(queue, [queue.enqueue(following)] * threads)


def _source(values: list[float]):
    """A queue that is closed with `values` in it, and the ops that bring it there."""
    queue = tf.FIFOQueue(len(values), tf.float32, name="source")
    with tf.control_dependencies([queue.enqueue_many([values])]):
        return queue, queue.close()


def test_threads_fill_the_queue_and_close_it_at_the_end_of_the_input():
    """What was enqueued can be dequeued after that; the coordinator is not stopped."""
    source, fill = _source([1.0, 2.0, 3.0])
    queue = tf.FIFOQueue(10, tf.float32)
    runner = tf.train.QueueRunner(queue, [queue.enqueue(source.dequeue())] * 2)
    taken = queue.dequeue()
    coord = tf.train.Coordinator()
    with tf.Session() as session:
        session.run(fill)
        threads = runner.create_threads(session, coord, start=True)
        assert len(threads) == 3
        assert sorted(session.run(taken) for _ in range(3)) == [1.0, 2.0, 3.0]
        with pytest.raises(tf.errors.OutOfRangeError, match="is closed and has insufficient elements"):
            session.run(taken)
        assert not coord.should_stop() and session.run(queue.is_closed())
        coord.request_stop()
        coord.join(threads)
        assert runner.exceptions_raised == []


def test_names_of_threads_and_their_flags():
    """One thread for each op and one that waits for the stop; not started unless asked to."""
    queue = tf.FIFOQueue(10, tf.float32, name="q")
    runner = tf.train.QueueRunner(queue, [queue.enqueue(1.0), queue.enqueue(2.0)])
    coord = tf.train.Coordinator()
    with tf.Session() as session:
        threads = runner.create_threads(session, coord, daemon=True)
        assert [thread.name for thread in threads] == [
            "QueueRunnerThread-q-q_enqueue", "QueueRunnerThread-q-q_enqueue_1", "QueueRunnerThread-q-close_on_stop",
        ]  # fmt: skip
        assert all(thread.daemon and thread.ident is None for thread in threads)
        assert runner.create_threads(session, coord) == []
        with tf.Session() as other:
            assert len(runner.create_threads(other)) == 2
        coord.request_stop()
        for thread in threads:
            thread.start()
        coord.join()


def test_a_stop_cancels_enqueues_that_wait():
    """The queue is full, the thread waits in it; the coordinator's stop ends it without an error."""
    queue = tf.FIFOQueue(1, tf.float32)
    runner = tf.train.QueueRunner(queue, [queue.enqueue(1.0)] * 3)
    coord = tf.train.Coordinator()
    with tf.Session() as session:
        threads = runner.create_threads(session, coord, start=True)
        assert session.run(queue.dequeue()) == 1.0
        coord.request_stop()
        coord.join(threads)
        assert session.run(queue.is_closed())


def test_other_exceptions_stop_the_coordinator():
    """They are raised by join, and not collected."""
    queue = tf.FIFOQueue(1, tf.float32)
    runner = tf.train.QueueRunner(queue, [queue.enqueue(tf.check_numerics(tf.log(-1.0), "bad"))])
    coord = tf.train.Coordinator()
    with tf.Session() as session:
        threads = runner.create_threads(session, coord, start=True)
        with pytest.raises(tf.errors.InvalidArgumentError, match="bad : Tensor had NaN values"):
            coord.join(threads)
        assert runner.exceptions_raised == []


def test_exceptions_without_a_coordinator_are_collected(monkeypatch):
    """And raised in the thread."""
    raised: list[type] = []
    monkeypatch.setattr(threading, "excepthook", lambda args: raised.append(args.exc_type))
    queue = tf.FIFOQueue(1, tf.float32)
    runner = tf.train.QueueRunner(queue, [queue.enqueue(tf.check_numerics(tf.log(-1.0), "bad"))])
    with tf.Session() as session:
        (thread,) = runner.create_threads(session, start=True)
        thread.join()
        assert [type(error) for error in runner.exceptions_raised] == raised == [tf.errors.InvalidArgumentError]
        assert not session.run(queue.is_closed())
        assert len(runner.create_threads(session)) == 1  # the earlier threads have ended


def test_types_that_mean_the_end_of_the_input():
    """A runner that takes from a cancelled queue ends in good order when it is told that this may happen."""
    source, queue = tf.FIFOQueue(1, tf.float32), tf.FIFOQueue(5, tf.float32)
    ends = (tf.errors.OutOfRangeError, tf.errors.CancelledError)
    runner = tf.train.QueueRunner(queue, [queue.enqueue(1.0)], queue_closed_exception_types=ends)
    assert runner.queue_closed_exception_types == ends
    coord = tf.train.Coordinator()
    with tf.Session() as session:
        session.run([source.close(), queue.close()])
        threads = runner.create_threads(session, coord, start=True)
        threads[0].join()
        assert not coord.should_stop()
        coord.request_stop()
        coord.join(threads)


def test_start_queue_runners_starts_those_of_the_collection():
    """In the default session or in the one that is given; the threads are daemons."""
    queue, runner = _counting(limit=0)
    tf.train.add_queue_runner(runner)
    with pytest.raises(ValueError, match="Cannot start queue runners: No default session is registered"):
        tf.train.start_queue_runners()
    with pytest.raises(TypeError, match=r"sess must be a `tf.Session` object. Given class: <class 'int'>"):
        tf.train.start_queue_runners(sess=3)
    coord = tf.train.Coordinator()
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        threads = tf.train.start_queue_runners(coord=coord)
        assert all(thread.daemon for thread in threads) and len(threads) == 2
        assert [session.run(queue.dequeue()) for _ in range(3)] == [1.0, 2.0, 3.0]
        coord.request_stop()
        coord.join(threads)
        assert tf.train.start_queue_runners(session, collection="others") == []


@pytest.mark.parametrize(
    "arguments, expected",
    [
        (lambda q, op, d: {}, "Must provide queue and enqueue_ops."),
        (lambda q, op, d: {"queue": q}, "Must provide queue and enqueue_ops."),
        (lambda q, op, d: {"queue": q, "enqueue_ops": []}, "Must provide queue and enqueue_ops."),
        (lambda q, op, d: {"queue": q, "queue_runner_def": d}, "queue_runner_def and queue are mutually exclusive."),
    ],
)
def test_wrong_arguments(arguments, expected: str):
    """A queue with its ops, or a message, and not both."""
    queue = tf.FIFOQueue(10, tf.float32)
    op = queue.enqueue(1.0)
    message = tf.train.QueueRunner(queue, [op]).to_proto()
    with pytest.raises(ValueError, match=expected):
        tf.train.QueueRunner(**arguments(queue, op, message))


@pytest.mark.parametrize("types", [(), tf.errors.OutOfRangeError, (int,), [tf.errors.OutOfRangeError]])
def test_wrong_exception_types(types):
    """A tuple of tf.errors classes is wanted."""
    queue = tf.FIFOQueue(10, tf.float32)
    with pytest.raises(TypeError, match=r"must be a tuple of tf.error types"):
        tf.train.QueueRunner(queue, [queue.enqueue(1.0)], queue_closed_exception_types=types)


def test_as_a_message():
    """Names of ops and codes of exceptions; a scope is stripped, and what lies outside of it is left out."""
    with tf.name_scope("input"):
        queue = tf.FIFOQueue(10, tf.float32, name="q")
        runner = tf.train.QueueRunner(
            queue, [queue.enqueue(1.0)], queue_closed_exception_types=(tf.errors.OutOfRangeError, tf.errors.CancelledError)
        )  # fmt: skip
    message = runner.to_proto("input")
    assert message == QueueRunnerDef(
        queue_name="q", enqueue_op_name=["q_enqueue"], close_op_name="q_Close", cancel_op_name="q_Close_1",
        queue_closed_exception_types=[11, 1],
    )  # fmt: skip
    assert runner.to_proto("other") is None
    again = tf.train.QueueRunner.from_proto(message, import_scope="input")
    assert again.name == runner.name and again.enqueue_ops == runner.enqueue_ops
    assert (again.close_op, again.cancel_op) == (runner.close_op, runner.cancel_op)
    assert again.queue_closed_exception_types == runner.queue_closed_exception_types
    del message.queue_closed_exception_types[:]
    read = tf.train.QueueRunner.from_proto(message, import_scope="input")
    assert read.queue_closed_exception_types == (tf.errors.OutOfRangeError,)
    with pytest.raises(KeyError):
        tf.train.QueueRunner.from_proto(message, import_scope="elsewhere")


def test_in_meta_graphs():
    """An imported graph brings its queue runners; they run under their scope."""
    queue, runner = _counting(limit=0)
    queue.dequeue(name="taken")
    tf.train.add_queue_runner(runner)
    init = tf.global_variables_initializer()
    meta = tf.train.export_meta_graph()
    with tf.Graph().as_default() as graph:
        tf.train.import_meta_graph(meta, import_scope="copy")
        (read,) = tf.get_collection(tf.GraphKeys.QUEUE_RUNNERS)
        assert read.name == "copy/numbers" and read.cancel_op.name == "copy/numbers_Close_1"
        coord = tf.train.Coordinator()
        with tf.Session() as session:
            session.run(graph.get_operation_by_name(f"copy/{init.name}"))
            threads = tf.train.start_queue_runners(session, coord)
            assert session.run("copy/taken:0") == 1.0
            coord.request_stop()
            coord.join(threads)


def test_eager_mode_has_no_queue_runners(eager):
    """The error names what to use in their place."""
    with tf.Graph().as_default():
        queue = tf.FIFOQueue(10, tf.float32)
        op = queue.enqueue(1.0)
    with pytest.raises(RuntimeError, match="QueueRunners are not supported when eager execution is enabled"):
        tf.train.QueueRunner(queue, [op])
    with pytest.raises(RuntimeError, match="Queues are not compatible with eager execution"):
        tf.train.start_queue_runners()
