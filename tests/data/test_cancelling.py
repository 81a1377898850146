"""Runs that look for the next element of a dataset without end can be cancelled."""

import threading

import numpy as np
import pytest

import stoker.compat.v1 as tf

HUGE = 2**62


def _refusing():
    return tf.data.Dataset.range(HUGE).filter(lambda v: v < 0)


def _lines(folder):
    path = folder / "lines"
    path.write_text("a\n")
    return tf.data.TextLineDataset(str(path)).repeat().filter(lambda line: tf.equal(line, "b"))


ENDLESS = {
    "skip": lambda folder: tf.data.Dataset.range(HUGE).skip(HUGE - 1),
    "filter": lambda folder: _refusing(),
    "no elements": lambda folder: tf.data.Dataset.range(HUGE).flat_map(lambda v: tf.data.Dataset.range(0)),
    "prefetch": lambda folder: _refusing().prefetch(2),
    "parallel": lambda folder: _refusing().map(lambda v: v + 1, num_parallel_calls=2),
    "errors": lambda folder: (
        tf.data.Dataset.range(HUGE)
        .map(lambda v: tf.debugging.check_numerics(np.nan, "bad"))
        .apply(tf.data.experimental.ignore_errors())
    ),
    "files": _lines,
    "generator": lambda folder: tf.data.Dataset.from_generator(lambda: iter(int, 1), tf.int32).filter(lambda v: v < 0),
}


@pytest.mark.parametrize("name", ENDLESS)
def test_a_run_that_finds_no_element_ends_at_its_deadline(name, tmp_path):
    """A run with a time limit raises DeadlineExceededError, and the session closes, with its threads."""
    before = threading.active_count()
    iterator = tf.data.make_initializable_iterator(ENDLESS[name](tmp_path))
    element = iterator.get_next()
    with tf.Session(config=tf.ConfigProto(operation_timeout_in_ms=200)) as session:
        session.run(iterator.initializer, options=tf.RunOptions(timeout_in_ms=60_000))
        with pytest.raises(tf.errors.DeadlineExceededError):
            session.run(element)
    assert threading.active_count() == before


def test_closing_the_session_cancels_the_search():
    """A run that looks for an element in another thread raises CancelledError when its session is closed."""
    seen = threading.Event()

    def refuse(value):
        seen.set()
        return False

    dataset = tf.data.Dataset.range(HUGE).filter(lambda v: tf.py_func(refuse, [v], tf.bool))
    iterator = tf.data.make_initializable_iterator(dataset)
    element = iterator.get_next()
    session, raised = tf.Session(), []

    def run():
        try:
            session.run(element)
        except tf.errors.CancelledError as error:
            raised.append(error)

    session.run(iterator.initializer)
    thread = threading.Thread(target=run)
    thread.start()
    try:
        assert seen.wait(120)
    finally:
        session.close()
        thread.join()
    assert len(raised) == 1


def test_the_position_counts_what_was_delivered(tmp_path):
    """A run that is cancelled while it computes an element does not count: a checkpoint goes on with that element."""
    waits = []
    slow = tf.data.Dataset.range(10).map(
        lambda v: tf.py_func(lambda v: threading.Event().wait(0.05 * len(waits)) or v, [v], tf.int64)
    )
    iterator = tf.data.make_one_shot_iterator(slow)
    following = iterator.get_next()
    saver = tf.train.Saver([tf.data.experimental.make_saveable_from_iterator(iterator)])
    with tf.Session() as session:
        assert session.run(following) == 0
        waits.append(1)
        with pytest.raises(tf.errors.DeadlineExceededError):
            session.run(following, options=tf.RunOptions(timeout_in_ms=10))
        waits.clear()
        path = saver.save(session, str(tmp_path / "position"))
        saver.restore(session, path)
        assert session.run(following) == 1


def test_a_large_cycle_takes_no_memory():
    """The number of datasets that `interleave` may open at once is a limit; only those in use take memory."""
    dataset = tf.data.Dataset.range(3).interleave(
        lambda v: tf.data.Dataset.range(2).map(lambda w: 10 * v + w), cycle_length=2**50
    )
    element = tf.data.make_one_shot_iterator(dataset).get_next()
    with tf.Session() as session:
        assert [session.run(element) for _ in range(6)] == [0, 10, 20, 1, 11, 21]
        with pytest.raises(tf.errors.OutOfRangeError):
            session.run(element)
