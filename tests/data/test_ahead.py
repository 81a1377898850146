"""`prefetch`: elements that a thread prepares, or the consumer itself, whichever is faster."""

import threading

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import stoker.compat.v1 as tf
from stoker._src.ops.dataset import ahead


class _Changing(ahead.Choice):
    """Changes the way after as many calls as it is told."""

    pattern = (1,)

    def __init__(self):
        super().__init__()
        self.numbers = [0, 0]  # calls since the last change, and changes

    def called(self, count, is_settled):
        self.numbers[0] += 1
        if self.numbers[0] > self.pattern[self.numbers[1] % len(self.pattern)]:
            self.numbers = [0, self.numbers[1] + 1]
            self.by_thread = not self.by_thread


def _all(dataset):
    following = tf.data.make_one_shot_iterator(dataset).get_next()
    found = []
    with tf.Session() as session:
        while True:
            try:
                found.append(session.run(following))
            except tf.errors.OutOfRangeError:
                return found
            except tf.errors.InvalidArgumentError:
                found.append("failed")


@given(
    st.lists(st.integers(1, 9), min_size=1, max_size=4),
    st.integers(1, 40),
    st.integers(1, 12),
    st.sets(st.integers(0, 99), max_size=4),
    st.booleans(),
)
@settings(max_examples=25, deadline=None)
def test_both_ways_give_the_same_elements(pattern, size, batch, bad, twice):
    """Whenever the way changes, elements and errors come in order, once each, and the end comes after the last."""
    with tf.Graph().as_default(), pytest.MonkeyPatch.context() as patch:
        patch.setattr(_Changing, "pattern", tuple(pattern))
        patch.setattr(ahead, "Choice", _Changing)
        wrong = tf.constant([i in bad for i in range(100)])

        def checked(i):
            with tf.control_dependencies([tf.debugging.assert_equal(tf.gather(wrong, i), False)]):
                return tf.identity(i)

        data = tf.data.Dataset.range(100).map(checked)
        if batch > 1:
            data = data.apply(tf.data.experimental.ignore_errors())
        data = data.prefetch(size)
        if batch > 1:
            data = data.batch(batch)
        if twice:
            data = data.prefetch(2)
        found = _all(data)
    if batch > 1:
        assert np.concatenate(found).tolist() == [i for i in range(100) if i not in bad]
    else:
        assert found == [("failed" if i in bad else i) for i in range(100)]


def _prepared_by(calls):
    """The threads in which the elements of a prefetched dataset were prepared, one for each of `calls` runs."""
    names = []

    def note(i):
        names.append(threading.current_thread().name)
        return i

    data = tf.data.Dataset.range(10**6).map(lambda i: tf.py_func(note, [i], tf.int64)).prefetch(2)
    following = tf.data.make_one_shot_iterator(data).get_next()
    with tf.Session() as session:
        for _ in range(calls):
            session.run(following)
    return names


def _ways(monkeypatch, by_thread, by_consumer):
    """What is chosen at each of many calls that come after so many seconds."""
    now, choice = [0.0], ahead.Choice()

    class Clock:
        def perf_counter(self):
            now[0] += by_thread if choice.by_thread else by_consumer
            return now[0]

    monkeypatch.setattr(ahead, "time", Clock())
    ways = []
    for _ in range(150):
        choice.called(1, True)
        ways.append(choice.by_thread)
    return ways


def test_the_faster_way_is_kept(monkeypatch):
    """Both ways are tried after a number of calls, and the one with which the consumer came back sooner is kept until the next comparison."""
    for by_thread, by_consumer in ((0.02, 0.01), (0.01, 0.02)):
        ways = _ways(monkeypatch, by_thread, by_consumer)
        assert all(ways[:16])
        assert set(ways[16:60]) == {True, False}
        assert set(ways[90:]) == {by_thread < by_consumer}


def test_the_consumer_prepares_in_its_own_thread(monkeypatch):
    """After the way has changed, nothing more is prepared by the thread, and nothing before it is wanted."""
    monkeypatch.setattr(_Changing, "pattern", (3, 10**9))
    monkeypatch.setattr(ahead, "Choice", _Changing)
    names = _prepared_by(30)
    own = threading.current_thread().name
    assert names[0].startswith("stoker-prefetch")
    assert names[-20:] == [own] * 20
    assert len(names) == 30


def test_a_run_with_a_deadline_does_not_lose_the_element(monkeypatch):
    """The element that a run gave up waiting for comes with the next run."""
    monkeypatch.setattr(_Changing, "pattern", (1, 10**9))
    monkeypatch.setattr(ahead, "Choice", _Changing)
    go, asked = threading.Event(), threading.Event()

    def slow(i):
        if i == 8:
            asked.set()
            go.wait()
        return i

    data = tf.data.Dataset.range(20).map(lambda i: tf.py_func(slow, [i], tf.int64)).prefetch(1)
    following = tf.data.make_one_shot_iterator(data).get_next()
    with tf.Session() as session:
        assert [session.run(following) for _ in range(8)] == list(range(8))
        with pytest.raises(tf.errors.DeadlineExceededError):
            session.run(following, options=tf.RunOptions(timeout_in_ms=100))
        assert asked.is_set()
        go.set()
        assert [session.run(following) for _ in range(12)] == list(range(8, 20))
