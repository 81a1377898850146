"""Elements that a map function is wanted for together (a batch) are computed as a stack: what comes out equals what it gives one by one."""

from __future__ import annotations

import numpy as np
import pytest

import stoker.compat.v1 as tf
from stoker._src.runtime.functions.bodies import BoundFunction

COUNT = 37
ROWS = np.arange(COUNT * 12, dtype=np.float32).reshape(COUNT, 3, 4)


def _drawn(dataset):
    """All elements of a dataset, and how many errors came in between."""
    found, failed = [], 0
    following = tf.data.make_one_shot_iterator(dataset).get_next()
    with tf.Session() as session:
        while True:
            try:
                found.append(session.run(following))
            except tf.errors.OutOfRangeError:
                return found, failed
            except tf.errors.InvalidArgumentError:
                failed += 1


def _assert_equal(found, expected):
    assert len(found) == len(expected)
    for one, other in zip(found, expected):
        np.testing.assert_array_equal(one, other)
        assert one.dtype == other.dtype


FUNCTIONS = {
    "itself": (lambda x: x, lambda x: x),
    "arithmetic": (lambda x: x * 2.0 + 1.0, lambda x: x * 2 + 1),
    "rows of lower rank": (lambda x: x - x[0], lambda x: x - x[0]),
    "a captured value": (
        lambda x: x + tf.constant([4.0, 3.0, 2.0, 1.0]),
        lambda x: x + np.array([4, 3, 2, 1], np.float32),
    ),
    "a fixed result": (lambda x: tf.constant(7.0), lambda x: np.array(7, np.float32)),
    "shape": (lambda x: tf.reshape(x, [-1])[1:9:2], lambda x: x.reshape(-1)[1:9:2]),
    "largest": (lambda x: tf.reduce_max(x), lambda x: x.max()),
    "an op that has no form for stacks": (lambda x: tf.matmul(x, x, transpose_b=True), lambda x: x @ x.T),
    "such an op with several attributes": (
        lambda x: tf.concat([tf.matmul(x, x, transpose_b=True)[:, :2], tf.matmul(x, x, transpose_a=True)[:3, :2]], 0),
        lambda x: np.concatenate([(x @ x.T)[:, :2], (x.T @ x)[:3, :2]]),
    ),
}


@pytest.mark.parametrize("parallel", [None, 2])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_batches_of_mapped_elements(name, parallel):
    """Each row of a batch is the function's result for its element, in order; the last batch is smaller."""
    function, expected = FUNCTIONS[name]
    found, _ = _drawn(tf.data.Dataset.from_tensor_slices(ROWS).map(function, num_parallel_calls=parallel).batch(8))
    _assert_equal(found, [np.stack([expected(x) for x in ROWS[i : i + 8]]) for i in range(0, COUNT, 8)])


def test_rows_of_a_wrong_size():
    """Records that do not have the size they are given are errors, also if all of them together would make up other records."""
    records = tf.data.Dataset.from_tensor_slices([b"ab"] * 6)
    found, failed = _drawn(records.map(lambda r: tf.reshape(tf.decode_raw(r, tf.uint8), [3])).batch(6))
    assert (found, failed) == ([], 6)


def test_a_stack_is_one_call(monkeypatch):
    """A batch of a pure function's results takes one call, not one for each element."""
    calls, call = [], BoundFunction._call

    def counted(self, state, values):
        calls.extend([self.name] if values else [])  # the dataset itself is made by a function without arguments
        return call(self, state, values)

    monkeypatch.setattr(BoundFunction, "_call", counted)
    found, _ = _drawn(
        tf.data.Dataset.from_tensor_slices(ROWS).map(lambda x: tf.pad(x, [[0, 1], [0, 0]]) * 2.0).batch(8)
    )
    _assert_equal(found, [np.pad(2 * ROWS[i : i + 8], [(0, 0), (0, 1), (0, 0)]) for i in range(0, 37, 8)])
    assert not calls


def test_parsed_examples():
    """Serialized examples that are parsed one by one and batched."""

    def serialized(i):
        feature = {"n": tf.train.Feature(int64_list=tf.train.Int64List(value=[i, 2 * i]))}
        return tf.train.Example(features=tf.train.Features(feature=feature)).SerializeToString()

    def parsed(record):
        return tf.parse_single_example(record, {"n": tf.FixedLenFeature([2], tf.int64)})["n"]

    records = tf.data.Dataset.from_tensor_slices([serialized(i) for i in range(20)])
    found, _ = _drawn(records.map(parsed).batch(6))
    _assert_equal(found, [np.array([[i, 2 * i] for i in range(20)[at : at + 6]]) for at in range(0, 20, 6)])


def test_maps_of_maps_and_other_consumers():
    """A result of a stack is an ordinary element for what follows: another map, a filter, a window, a shuffle."""
    mapped = tf.data.Dataset.range(COUNT).map(lambda x: (x, x * x)).shuffle(10, seed=1)
    found, _ = _drawn(mapped.map(lambda x, y: y - x).filter(lambda v: v % 4 > 0).map(lambda v: v + 1).batch(100))
    wanted = [x * x - x + 1 for x in range(COUNT) if (x * x - x) % 4]
    assert sorted(found[0].tolist()) == wanted
    windows = (
        tf.data.Dataset.range(7).map(lambda x: 2 * x).window(3, drop_remainder=True).flat_map(lambda w: w.batch(3))
    )
    assert [each.tolist() for each in _drawn(windows)[0]] == [[0, 2, 4], [6, 8, 10]]


@pytest.mark.parametrize("parallel", [None, 2])
def test_an_error_belongs_to_its_element(parallel):
    """Only the batch that a failing element would be in is lost; after it the pipeline goes on with the next element."""
    texts = [str(i) if i != 5 else "five" for i in range(12)]
    numbers = tf.data.Dataset.from_tensor_slices(texts).map(tf.string_to_number, num_parallel_calls=parallel)
    found, failed = _drawn(numbers.batch(4))
    assert failed == 1
    assert [each.tolist() for each in found] == [[0, 1, 2, 3], [6, 7, 8, 9], [10, 11]]


def test_an_error_of_the_source_comes_after_the_elements_before_it():
    """The function's error for an earlier element is raised first, then the source's own."""
    source = tf.data.Dataset.range(8).map(lambda x: tf.py_func(_refuse_six, [x], tf.string))
    source = source.map(lambda x: tf.ensure_shape(x, []))
    found, failed = _drawn(source.map(tf.string_to_number).batch(8))
    assert failed == 2
    assert [each.tolist() for each in found] == [[7.0]]


def _refuse_six(x):
    if x == 6:
        raise ValueError("six")
    return b"two" if x == 2 else str(x).encode()


def test_elements_of_different_shapes():
    """Stacks need one shape; other elements are mapped one by one."""
    lengths = tf.data.Dataset.range(1, 7).map(lambda n: tf.range(n)).map(lambda v: v * 2)
    found, _ = _drawn(lengths.padded_batch(3, [None]))
    _assert_equal(found, [np.array([[0, 0, 0], [0, 2, 0], [0, 2, 4]]), np.array([[0, 2, 4, 6, 0, 0], [0, 2, 4, 6, 8, 0], [0, 2, 4, 6, 8, 10]])])  # fmt: skip


def test_large_elements():
    """Elements that are too large for a stack."""
    large = np.arange(6 * 300_000, dtype=np.float32).reshape(6, -1)
    found, _ = _drawn(tf.data.Dataset.from_tensor_slices(large).map(lambda x: x + 1.0).batch(4))
    _assert_equal(found, [large[:4] + 1, large[4:] + 1])


def test_functions_with_state_are_called_for_each_element():
    """Random numbers are drawn, and Python code is called, for one element at a time and in order."""
    seen = []
    noted = tf.data.Dataset.range(6).map(lambda x: tf.py_func(lambda v: (seen.append(int(v)), v)[1], [x], tf.int64))
    assert [each.tolist() for each in _drawn(noted.batch(4))[0]] == [[0, 1, 2, 3], [4, 5]]
    assert seen == list(range(6))

    def drawn(batch):
        tf.set_random_seed(3)
        numbers = tf.data.Dataset.range(6).map(lambda x: tf.random_uniform([2], seed=5))
        return np.concatenate([np.reshape(each, [-1, 2]) for each in _drawn(numbers.batch(3) if batch else numbers)[0]])

    with tf.Graph().as_default():
        together = drawn(True)
    with tf.Graph().as_default():
        np.testing.assert_array_equal(together, drawn(False))


def test_variables_are_read_for_each_batch():
    """A function that reads a variable sees its value at that time."""
    variable = tf.get_variable("v", initializer=1.0, use_resource=True)
    dataset = tf.data.Dataset.range(6).map(lambda x: tf.cast(x, tf.float32) * variable).batch(3)
    iterator = tf.data.make_initializable_iterator(dataset)
    following = iterator.get_next()
    with tf.Session() as session:
        session.run([variable.initializer])
        session.run(iterator.initializer)
        assert session.run(following).tolist() == [0, 1, 2]
        session.run(variable.assign(10.0))
        assert session.run(following).tolist() == [30, 40, 50]
