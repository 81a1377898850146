"""Iterators: their threads, their sessions, and what a program sees of a pass."""

from __future__ import annotations

import gc
import threading

import numpy as np
import pytest

import stoker as tf2
import stoker.compat.v1 as tf


def _ahead():
    return [thread for thread in threading.enumerate() if thread.name.startswith("stoker-prefetch")]


def test_closing_a_session_ends_the_threads_of_its_iterators():
    """An endless pipeline that computes ahead stops with its session."""
    following = tf.data.Dataset.range(3).repeat().prefetch(2).make_one_shot_iterator().get_next()
    with tf.Session() as session:
        assert [session.run(following) for _ in range(4)] == [0, 1, 2, 0]
        assert _ahead()
    assert not _ahead()


def test_an_iterator_that_is_dropped_ends_its_threads(eager):
    """A `for` loop that is left early leaves no thread behind."""
    for number in tf2.data.Dataset.range(3).repeat().prefetch(2):
        assert number.numpy() == 0
        break
    gc.collect()
    assert not _ahead()


def test_starting_again_ends_the_pass_before():
    """The initializer starts from the first element, whatever was left of the pass before."""
    iterator = tf.data.Dataset.range(100).prefetch(4).make_initializable_iterator()
    following = iterator.get_next()
    with tf.Session() as session:
        for _ in range(3):
            session.run(iterator.initializer)
            assert [session.run(following) for _ in range(2)] == [0, 1]
            assert len(_ahead()) == 1


def test_tensors_of_one_element_come_from_one_run():
    """All tensors of `get_next` belong to the same element, and each run takes one element."""
    pairs = tf.data.Dataset.range(10).map(lambda x: (x, x * x)).make_one_shot_iterator().get_next()
    with tf.Session() as session:
        for i in range(5):
            number, square = session.run(pairs)
            assert (number, square) == (i, i * i)


def test_many_threads_share_an_iterator():
    """Every element is taken exactly once."""
    following = tf.data.Dataset.range(200).map(lambda x: x + 1).make_one_shot_iterator().get_next()
    found, lock = [], threading.Lock()
    with tf.Session() as session:

        def take():
            while True:
                try:
                    number = session.run(following)
                except tf.errors.OutOfRangeError:
                    return
                with lock:
                    found.append(int(number))

        threads = [threading.Thread(target=take) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert sorted(found) == list(range(1, 201))


def test_fetched_elements_are_the_callers():
    """Writing over a fetched array does not change the dataset."""
    following = tf.data.Dataset.from_tensors(np.zeros(3)).repeat().make_one_shot_iterator().get_next()
    with tf.Session() as session:
        session.run(following)[:] = 7
        np.testing.assert_array_equal(session.run(following), np.zeros(3))


def test_slow_functions_run_in_threads_and_stay_in_order():
    """Results of parallel calls come in the order of the elements, although later calls may end first."""
    release = threading.Event()

    def wait(x):
        if x == 12:
            release.wait(60)
        if x == 14:
            release.set()
        return x

    dataset = tf.data.Dataset.range(30).map(
        lambda x: tf.py_func(lambda a: _busy(wait(a)), [x], tf.int64), num_parallel_calls=4
    )
    following = dataset.make_one_shot_iterator().get_next()
    with tf.Session() as session:
        assert [session.run(following) for _ in range(30)] == list(range(30))
    assert release.is_set()


def _busy(x):
    """Takes longer than what is worth a thread."""
    for _ in range(20):
        np.linalg.svd(np.ones((40, 40)))
    return x


def test_training_reads_from_a_dataset():
    """A monitored session trains on a dataset and ends with it."""
    x, y = (
        tf.data.Dataset.from_tensor_slices(
            (np.linspace(-1, 1, 40, dtype=np.float32), np.linspace(-3, 3, 40, dtype=np.float32))
        )
        .shuffle(40, seed=1)
        .repeat(20)
        .batch(8)
        .make_one_shot_iterator()
        .get_next()
    )
    weight = tf.get_variable("weight", [], initializer=tf.zeros_initializer())
    loss = tf.reduce_mean(tf.square(weight * x - y))
    train = tf.train.GradientDescentOptimizer(0.3).minimize(loss, tf.train.get_or_create_global_step())
    steps = 0
    with tf.train.MonitoredTrainingSession() as session:
        while not session.should_stop():
            last, _ = session.run([loss, train])
            steps += 1
    assert steps == 100
    assert last < 1e-6


def test_a_dataset_is_an_argument_of_functions(eager):
    """`tf.function` takes a dataset; what it returns can be iterated over."""

    @tf2.function
    def doubled(dataset):
        return dataset.map(lambda x: x * 2)

    assert [int(x) for x in doubled(tf2.data.Dataset.range(3))] == [0, 2, 4]


@pytest.mark.parametrize("depth", [1, 3])
def test_nested_repeats(depth):
    """Every level repeats all that is below it."""
    dataset = tf.data.Dataset.range(2)
    for _ in range(depth):
        dataset = dataset.repeat(2)
    following = dataset.make_one_shot_iterator().get_next()
    with tf.Session() as session:
        assert [session.run(following) for _ in range(2 ** (depth + 1))] == [0, 1] * 2**depth
        with pytest.raises(tf.errors.OutOfRangeError, match="End of sequence"):
            session.run(following)


def _shuffled():
    return tf2.data.Dataset.range(10).shuffle(5, seed=2).repeat(3).map(lambda x: x * 2)


def test_checkpoints_hold_iterators(eager, tmp_path):
    """A restored iterator goes on where the saved one stood, in the same order."""
    iterator = iter(_shuffled())
    before = [int(next(iterator)) for _ in range(13)]
    path = tf2.train.Checkpoint(iterator=iterator).save(str(tmp_path / "saved"))
    rest = [int(x) for x in iterator]
    assert len(before) + len(rest) == 30
    again = iter(_shuffled())
    next(again)
    tf2.train.Checkpoint(iterator=again).restore(path).assert_consumed()
    assert [int(x) for x in again] == rest


def test_savers_hold_iterators(tmp_path):
    """`make_saveable_from_iterator` does the same in a graph, before or after the iterator is started."""
    tf.set_random_seed(1)
    iterator = tf.data.Dataset.range(10).shuffle(5, seed=2).make_initializable_iterator()
    following = iterator.get_next()
    tf.add_to_collection(tf.GraphKeys.SAVEABLE_OBJECTS, tf.data.experimental.make_saveable_from_iterator(iterator))
    saver = tf.train.Saver()
    with tf.Session() as session:
        session.run(iterator.initializer)
        for _ in range(4):
            session.run(following)
        path = saver.save(session, str(tmp_path / "saved"))
        rest = [session.run(following) for _ in range(6)]
        saver.restore(session, path)
        assert [session.run(following) for _ in range(6)] == rest
    with tf.Session() as session:
        saver.restore(session, path)
        session.run(iterator.initializer)
        assert [session.run(following) for _ in range(6)] == rest
