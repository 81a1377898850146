"""Queues: who waits for whom, in which order elements come, and what is refused."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import stoker.compat.v1 as tf


class _Behind:
    """A call in a thread of its own, with what it returned or raised."""

    def __init__(self, call: Callable[[], Any]) -> None:
        self.result: Any = None
        self.error: BaseException | None = None
        self._call = call
        self._thread = threading.Thread(target=self._work)
        self._thread.start()

    def _work(self) -> None:
        try:
            self.result = self._call()
        except BaseException as error:
            self.error = error

    def end(self) -> Any:
        self._thread.join()
        if self.error is not None:
            raise self.error
        return self.result


@pytest.fixture
def session():
    with tf.Session() as session:
        yield session


def test_shuffled_order_is_that_of_the_seeds(session):
    """Numbers of TensorFlow 1.15.5 and 2.21: queues of 0..19 with graph seed 1 and op seeds 3 and 7."""
    tf.set_random_seed(1)
    for seed, single, many in (
        (3, [7, 2, 17, 6, 19, 3], [4, 9, 18, 13, 1, 14, 8, 0]),
        (7, [1, 15, 2, 13, 4, 6], [5, 11, 18, 16, 17, 7, 19, 9]),
    ):
        queue = tf.RandomShuffleQueue(50, 0, tf.int32, [[]], seed=seed)
        session.run(queue.enqueue_many([list(range(20))]))
        one, rest = queue.dequeue(), queue.dequeue_many(8)
        assert [session.run(one) for _ in range(6)] == single
        assert session.run(rest).tolist() == many


def test_elements_stay_behind_until_the_queue_is_closed(session):
    """A shuffled queue keeps `min_after_dequeue`; a dequeue that waits for more goes on when it is closed."""
    queue = tf.RandomShuffleQueue(10, 3, tf.int32, [[]])
    session.run(queue.enqueue_many([[1, 2, 3, 4]]))
    session.run(queue.dequeue())
    taken, size = queue.dequeue_many(3), queue.size()
    waiting = _Behind(lambda: session.run(taken))
    assert session.run(size) == 3
    session.run(queue.close())
    assert len(waiting.end()) == 3


def test_batches_larger_than_the_capacity(session):
    """A dequeue takes elements as they come, so that enqueues go on."""
    queue = tf.FIFOQueue(2, tf.int32, [[]])
    batch, fill = queue.dequeue_many(10), queue.enqueue_many([list(range(10))])
    filling = _Behind(lambda: session.run(fill))
    assert session.run(batch).tolist() == list(range(10))
    filling.end()


def test_a_dequeue_that_fails_takes_nothing(session):
    """What it had taken is there for others, in the old order."""
    queue = tf.FIFOQueue(10, tf.int32, [[]])
    session.run(queue.enqueue_many([[1, 2, 3]]))
    batch = queue.dequeue_many(5)
    with pytest.raises(tf.errors.DeadlineExceededError, match="Timed out waiting for notification"):
        session.run(batch, options=tf.RunOptions(timeout_in_ms=20))
    assert session.run(queue.dequeue_up_to(3)).tolist() == [1, 2, 3]
    ordered = tf.PriorityQueue(10, tf.string, [[]])
    session.run(ordered.enqueue_many([np.array([3, 1]), ["c", "a"]]))
    batch = ordered.dequeue_many(5)
    with pytest.raises(tf.errors.DeadlineExceededError):
        session.run(batch, options=tf.RunOptions(timeout_in_ms=20))
    assert session.run(ordered.dequeue_many(2)[1]).tolist() == [b"a", b"c"]


@pytest.mark.parametrize("large", [False, True])
@pytest.mark.parametrize("dtype", ["float32", "int64", "bool", "complex64", "float16"])
def test_values_come_out_as_they_went_in(session, dtype: str, large: bool):
    """Of every dtype, small or large, one by one or in batches, while slots are used again."""
    rng = np.random.default_rng(0)
    values = rng.integers(0, 2, [7, 3, 9000 if large else 2]).astype(dtype)
    queue = tf.FIFOQueue(4, dtype, [values.shape[1:]])
    value = tf.placeholder(dtype, values.shape[1:])
    one, many = (
        queue.enqueue(value),
        queue.enqueue_many([tf.placeholder_with_default(values[1:4], [None, *values.shape[1:]])]),
    )
    out, rest = queue.dequeue(), queue.dequeue_many(2)
    for _ in range(3):
        session.run(one, {value: values[0]})
        session.run(many)
        np.testing.assert_array_equal(session.run(out), values[0])
        session.run(one, {value: values[6]})
        np.testing.assert_array_equal(session.run(rest), values[1:3])
        np.testing.assert_array_equal(session.run(rest), values[[3, 6]])


def test_a_value_that_was_enqueued_does_not_change(session):
    """Queues keep what a variable was."""
    variable = tf.get_variable("v", [2], initializer=tf.zeros_initializer(), use_resource=True)
    queue = tf.FIFOQueue(4, tf.float32, [[2]])
    session.run(variable.initializer)
    session.run(queue.enqueue(variable))
    session.run(variable.assign_add([1.0, 1.0]))
    session.run(queue.enqueue(variable))
    assert session.run(queue.dequeue_many(2)).tolist() == [[0.0, 0.0], [1.0, 1.0]]


def test_closed_queues(session):
    """They take nothing, give what they have, and say so in TensorFlow's words."""
    queue = tf.FIFOQueue(4, tf.float32, [[]], name="q")
    enqueue, close = queue.enqueue(1.0), queue.close()
    session.run(enqueue)
    session.run(close)
    with pytest.raises(tf.errors.CancelledError, match=r"FIFOQueue '_0_q' is closed\."):
        session.run(enqueue)
    with pytest.raises(tf.errors.OutOfRangeError, match=r"insufficient elements \(requested 3, current size 1\)"):
        session.run(queue.dequeue_many(3))
    assert session.run(queue.dequeue_up_to(3)).tolist() == [1.0]
    with pytest.raises(tf.errors.OutOfRangeError, match=r"insufficient elements \(requested 2, current size 0\)"):
        session.run(queue.dequeue_up_to(2))
    with pytest.raises(tf.errors.CancelledError, match="Queue '_0_q' is already closed"):
        session.run(close)
    session.run(queue.close(cancel_pending_enqueues=True))


def test_a_shared_queue_is_named_without_prefix():
    """Messages name a queue with a shared_name by it, as TensorFlow does; other names have a prefix."""
    queue = tf.FIFOQueue(2, tf.int32, shared_name="common")
    with tf.Session() as session:
        session.run(queue.close())
        with pytest.raises(
            tf.errors.OutOfRangeError, match=r"^FIFOQueue 'common' is closed and has insufficient elements"
        ):
            session.run(queue.dequeue())


def test_enqueues_that_wait_are_cancelled(session):
    """By a close that says so, or by the end of the session."""
    queue = tf.FIFOQueue(1, tf.float32, [[]])
    enqueue, cancel = queue.enqueue_many([[1.0, 2.0, 3.0]]), queue.close(cancel_pending_enqueues=True)
    size = queue.size()
    waiting = _Behind(lambda: session.run(enqueue))
    while session.run(size) < 1:
        pass
    session.run(cancel)
    with pytest.raises(tf.errors.CancelledError, match="Enqueue operation was cancelled"):
        waiting.end()
    other = tf.Session()
    dequeue = tf.FIFOQueue(1, tf.float32).dequeue()
    waiting = _Behind(lambda: other.run(dequeue))
    other.close()
    with pytest.raises(
        (tf.errors.CancelledError, RuntimeError), match=r"Dequeue operation was cancelled|closed Session"
    ):
        waiting.end()


@pytest.mark.parametrize(
    "one, other, expected",
    [
        (lambda: tf.FIFOQueue(3, tf.float32, shared_name="z"), lambda: tf.FIFOQueue(4, tf.float32, shared_name="z"),
         "Shared queue 'z' has capacity 3 but requested capacity was 4"),
        (lambda: tf.FIFOQueue(3, tf.float32, shared_name="z"), lambda: tf.FIFOQueue(3, tf.int32, shared_name="z"),
         "has component types float but requested component types were int32"),
        (lambda: tf.FIFOQueue(3, tf.float32, [[]], shared_name="z"), lambda: tf.FIFOQueue(3, tf.float32, [[1]], shared_name="z"),
         r"has component shapes \[\[\]\] but requested component shapes were \[\[1\]\]"),
        (lambda: tf.FIFOQueue(3, tf.float32, shared_name="z"), lambda: tf.PriorityQueue(3, tf.float32, [[]], shared_name="z"),
         "has type 'FIFOQueue' but requested type was 'PriorityQueue'"),
        (lambda: tf.RandomShuffleQueue(3, 2, tf.float32, shared_name="z"), lambda: tf.RandomShuffleQueue(3, 1, tf.float32, shared_name="z"),
         "has min_after_dequeue 2 but requested min_after_dequeue was 1"),
    ],
)  # fmt: skip
def test_shared_queues_must_be_alike(session, one, other, expected: str):
    """Two nodes with one shared name are one queue, or an error."""
    sizes = [one().size(), other().size()]
    session.run(sizes[0])
    with pytest.raises(tf.errors.InvalidArgumentError, match=expected):
        session.run(sizes[1])


def test_wrong_elements(session):
    """Shapes are checked when the graph is built where they are known, else when an element comes."""
    x, y = tf.placeholder(tf.float32), tf.placeholder(tf.int32)
    queue = tf.FIFOQueue(9, [tf.float32, tf.int32], [[2], []])
    for make, expected in (
        (lambda: queue.enqueue([[1.0], 2]), r"Shapes \(1,\) and \(2,\) are incompatible"),
        (lambda: queue.enqueue_many([[[1.0, 2.0]], [1, 2]]), "are not compatible"),
        (lambda: queue.enqueue_many([1.0, 1]), r"Shape \(\) must have rank at least 1"),
    ):
        with pytest.raises(ValueError, match=expected):
            make()
    one, many = queue.enqueue([x, y]), queue.enqueue_many([x, y])
    for op, feeds, expected in (
        (one, {x: [1, 2, 3], y: 1}, r"Shape mismatch in tuple component 0\. Expected \[2\], got \[3\]"),
        (many, {x: [[1, 2, 3]], y: [1]}, r"Shape mismatch in tuple component 0\. Expected \[1,2\], got \[1,3\]"),
        (many, {x: [[1, 2], [1, 2]], y: [1]}, r"Shape mismatch in tuple component 1\. Expected \[2\], got \[1\]"),
    ):
        with pytest.raises(tf.errors.InvalidArgumentError, match=expected):
            session.run(op, feeds)
    session.run(many, {x: np.zeros([0, 2]), y: []})
    with pytest.raises(tf.errors.InvalidArgumentError, match="DequeueManyOp requested -1 < 0 elements"):
        session.run(queue.dequeue_many(y), {y: -1})
    assert [value.shape for value in session.run(queue.dequeue_many(y), {y: 0})] == [(0, 2), (0,)]


def test_choosing_a_queue(session):
    """`from_list` knows what all have in common; the index is checked in each run."""
    index = tf.placeholder(tf.int32, [])
    queues = [tf.FIFOQueue(3, tf.float32, [[2]], names=["x"]) for _ in range(2)]
    chosen = tf.QueueBase.from_list(index, queues)
    assert chosen.shapes == [(2,)] and chosen.names == ["x"]
    session.run(queues[1].enqueue({"x": [1.0, 2.0]}))
    assert session.run(chosen.size(), {index: 1}) == 1 and session.run(chosen.size(), {index: 0}) == 0
    for wrong in (2, -1):
        with pytest.raises(tf.errors.InvalidArgumentError, match=rf"indices = {wrong} is not in \[0, 2\)"):
            session.run(chosen.size(), {index: wrong})
    other = tf.FIFOQueue(3, tf.float32, [[3]], names=["x"])
    assert tf.QueueBase.from_list(0, [queues[0], other]).shapes[0].as_list() == [None]
    for bad, expected in (
        ([queues[0], tf.FIFOQueue(3, tf.int32, names=["x"])], "matching component dtypes"),
        ([queues[0], tf.FIFOQueue(3, tf.float32, names=["y"])], "matching component names"),
        ([], "A list of queues expected"),
    ):
        with pytest.raises(TypeError, match=expected):
            tf.QueueBase.from_list(0, bad)


def test_who_comes_first_is_served_first(session):
    """A large dequeue that waits is not starved by small ones that come later."""
    queue = tf.FIFOQueue(10, tf.int32, [[]])
    large, small, size = queue.dequeue_many(6), queue.dequeue(), queue.size()
    add = queue.enqueue_many([[1, 2, 3]])
    first = _Behind(lambda: session.run(large))
    session.run(add)
    while session.run(size):
        pass
    second = _Behind(lambda: session.run(small))
    session.run(add)
    assert first.end().tolist() == [1, 2, 3, 1, 2, 3]
    session.run(add)
    assert second.end() == 1


@pytest.mark.parametrize("kind", ["first in, first out", "shuffled", "by priority"])
def test_nothing_is_lost_between_many_threads(session, kind: str):
    """What several threads put in, one by one and in rows, comes out once."""
    if kind == "by priority":
        queue = tf.PriorityQueue(7, tf.int64, [[]])
    elif kind == "shuffled":
        queue = tf.RandomShuffleQueue(7, 2, [tf.int64, tf.int64], [[], []])
    else:
        queue = tf.FIFOQueue(7, [tf.int64, tf.int64], [[], []])
    number = tf.placeholder(tf.int64)
    one, rows = queue.enqueue([number, number]), queue.enqueue_many([number, number])
    single, several, rest = queue.dequeue(), queue.dequeue_many(5), queue.dequeue_up_to(4)

    def put(start: int) -> None:
        for value in range(start, start + 60, 6):
            session.run(one, {number: value})
            session.run(rows, {number: np.arange(value + 1, value + 6)})

    def take(op) -> list[int]:
        found: list[int] = []
        while True:
            try:
                found += np.ravel(session.run(op)[1]).tolist()
            except tf.errors.OutOfRangeError:
                return found

    takers = [_Behind(lambda op=op: take(op)) for op in (single, several, rest, single)]
    putters = [_Behind(lambda start=start: put(start)) for start in (0, 100, 200)]
    for putter in putters:
        putter.end()
    session.run(queue.close())
    found = [value for taker in takers for value in taker.end()]
    left = session.run(queue.size())
    expected = [start + i for start in (0, 100, 200) for i in range(60)]
    assert len(found) == len(set(found)) == len(expected) - left and set(found) <= set(expected) and left < 5


def test_elements_keep_their_static_shapes_in_branches_and_loops():
    """What is dequeued inside of `cond` and `while_loop` has the shapes of the queue."""
    queue = tf.FIFOQueue(3, [tf.float32], [[4, 5]])
    found = []

    def body(i, total):
        found.append(queue.dequeue())
        return i + 1, total + found[-1]

    one = tf.cond(tf.constant(True), queue.dequeue, lambda: tf.zeros([4, 5]))
    many = tf.cond(tf.constant(True), lambda: queue.dequeue_many(3), lambda: tf.zeros([3, 4, 5]))
    _, total = tf.while_loop(lambda i, total: i < 2, body, [0, tf.zeros([4, 5])])
    assert [each.shape.as_list() for each in (one, many, found[0], total)] == [[4, 5], [3, 4, 5], [4, 5], [4, 5]]
