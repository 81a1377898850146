"""Producers and batches: the graphs they make, and what flows through them."""

from __future__ import annotations

import json
import runpy
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import stoker.compat.v1 as tf

GOLDEN = Path(__file__).resolve().parents[2] / "golden" / "input"
GRAPHS = json.loads((GOLDEN / "graphs.json").read_text())
_PIPELINES = runpy.run_path(str(GOLDEN / "cases.py"))


@contextmanager
def _running() -> Iterator[tf.Session]:
    """A session with initialized variables whose queue runners run until the end of the block."""
    with tf.Session() as session:
        session.run([tf.global_variables_initializer(), tf.local_variables_initializer()])
        coord = tf.train.Coordinator()
        threads = tf.train.start_queue_runners(session, coord)
        try:
            yield session
        finally:
            coord.request_stop()
            coord.join(threads)


def _all(fetches: Any) -> list[Any]:
    """What runs give until the input ends."""
    with _running() as session:
        found = []
        while True:
            try:
                found.append(session.run(fetches))
            except tf.errors.OutOfRangeError:
                return found


def _numbers(limit: int, **arguments: Any) -> tf.Tensor:
    """The numbers from 0 to limit - 1, once and in order."""
    return tf.train.range_input_producer(limit, num_epochs=1, shuffle=False, **arguments).dequeue()


@pytest.mark.parametrize("name", GRAPHS)
def test_graphs_are_those_of_tensorflow(name: str):
    """Nodes, their order, names, inputs and shapes, queue runners, local variables and summaries."""
    found = _PIPELINES["described"](tf, _PIPELINES["cases"](tf)[name])
    assert json.loads(json.dumps(found)) == GRAPHS[name]


def test_a_summary_tells_how_full_the_queue_is():
    """From 0 to 1; of a shuffled queue, what is over the number that stays behind."""
    numbers = tf.train.limit_epochs(tf.range(6), 1)
    tf.train.shuffle_batch([numbers], 2, capacity=10, min_after_dequeue=2, enqueue_many=True, name="batch")
    (runner,) = tf.get_collection(tf.GraphKeys.QUEUE_RUNNERS)
    (summary,) = tf.get_collection(tf.GraphKeys.SUMMARIES)
    with tf.Session() as session:
        session.run(tf.local_variables_initializer())
        session.run(runner.enqueue_ops[0])
        message = tf.Summary.FromString(session.run(summary))
    assert message.value[0].tag == "batch/fraction_over_2_of_8_full" and message.value[0].simple_value == 0.5


# -- producers ---------------------------------------------------------------------------------------------------


def test_strings_come_in_order_for_each_epoch():
    """Then the input ends."""
    names = tf.train.string_input_producer(["a", "b", "c"], num_epochs=2, shuffle=False)
    assert _all(names.dequeue()) == [b"a", b"b", b"c"] * 2


def test_each_epoch_is_shuffled_by_itself():
    """Every string comes once before any comes again; a seed gives the same order in another session."""
    names = tf.train.string_input_producer([str(i) for i in range(20)], num_epochs=3, seed=5).dequeue()
    first, second = _all(names), _all(names)
    assert first == second
    epochs = [first[start : start + 20] for start in (0, 20, 40)]
    assert all(sorted(epoch) == sorted(epochs[0]) for epoch in epochs) and epochs[0] != epochs[1]


def test_without_a_number_of_epochs_the_input_does_not_end():
    """The rows come again and again."""
    rows = tf.train.input_producer([[1, 2], [3, 4]], shuffle=False).dequeue()
    assert rows.shape == (2,)
    with _running() as session:
        assert [session.run(rows).tolist() for _ in range(5)] == [[1, 2], [3, 4], [1, 2], [3, 4], [1, 2]]


def test_slices_are_rows_of_all_tensors():
    """Each with its first dimension removed, the same row of all."""
    number, letter = tf.train.slice_input_producer([np.arange(6).reshape(3, 2), ["a", "b", "c"]], num_epochs=1, seed=1)
    assert number.shape == (2,) and letter.shape == ()
    found = {text: row.tolist() for row, text in _all([number, letter])}
    assert found == {b"a": [0, 1], b"b": [2, 3], b"c": [4, 5]}


def test_limit_epochs_counts_evaluations():
    """The local variable `epochs` counts; it must be initialized."""
    limited = tf.train.limit_epochs(tf.constant(7), 2)
    assert [variable.op.name for variable in tf.local_variables()] == ["limit_epochs/epochs"]
    assert _all(limited) == [7, 7]
    always = tf.constant(1)
    assert tf.train.limit_epochs(always) is always


@pytest.mark.parametrize(
    "make, expected",
    [
        (lambda: tf.train.limit_epochs(tf.constant(1), 0), "num_epochs must be > 0 not 0."),
        (lambda: tf.train.string_input_producer([]), "string_input_producer requires a non-null input tensor"),
        (lambda: tf.train.string_input_producer(np.array([], object)), "requires a non-null input tensor"),
        (lambda: tf.train.string_input_producer("a"), r"Shape \(\) must have rank at least 1"),
        (lambda: tf.train.string_input_producer([["a"]]), r"Shapes \(1,\) and \(\) are not compatible"),
        (lambda: tf.train.slice_input_producer([]), "Expected at least one tensor in slice_input_producer"),
        (lambda: tf.train.input_producer(3.0), r"Shape \(\) must have rank at least 1"),
        (lambda: tf.train.input_producer(tf.placeholder(tf.int32)), "must have a fully defined shape or `element_shape`"),
        (lambda: tf.train.batch([], 4), r"Expected at least one tensor in batch\(\)"),
        (lambda: tf.train.batch_join([], 4), "Expected at least one set of tensors"),
        (lambda: tf.train.batch([tf.placeholder(tf.int32)], 4), "Cannot infer Tensor's rank: Tensor"),
        (lambda: tf.train.batch([tf.placeholder(tf.int32, [None])], 4), "All shapes must be fully defined"),
        (lambda: tf.train.batch([1.0], 4, enqueue_many=True), r"Shape \(\) must have rank at least 1"),
        (lambda: tf.train.batch([[1.0, 2.0]], 4, shapes=[[3]]), r"Shapes \(2,\) and \(3,\) are incompatible"),
        (lambda: tf.train.batch([1.0], 4, num_threads=0), "Must provide queue and enqueue_ops."),
        (lambda: tf.train.batch([1.0], -1), "Input 'n' must be >= 0, but is -1"),
        (lambda: tf.train.batch_join([[1.0], [[1.0]]], 4), r"Shapes \(\) and \(1,\) are not compatible"),
        (lambda: tf.train.batch_join([{"a": 1}, {"b": 1}], 4), "must have the same keys"),
        (lambda: tf.train.batch_join([[1.0, 2.0], [1.0]], 4), "Inconsistent SparseTensors list"),
        (lambda: tf.train.shuffle_batch([1.0], 4, 10, 10), "capacity 10 must be bigger than min_after_dequeue 10."),
        (lambda: tf.train.maybe_batch([1.0], [True], 4), "`keep_input` cannot be a vector when `enqueue_many=False`."),
        (lambda: tf.train.maybe_batch([1.0], tf.placeholder(tf.bool), 4), "dimensions must be known"),
        (lambda: tf.train.maybe_batch([[1.0]], [[True]], 4, enqueue_many=True), "`keep_input` must be 0 or 1 dimensions"),
    ],
)  # fmt: skip
def test_wrong_arguments(make, expected: str):
    """They are refused when the graph is built, in TensorFlow's words."""
    with pytest.raises(ValueError, match=expected):
        make()


def test_sources_of_different_dtypes_are_refused():
    """Of a join, with both dtypes in the message."""
    with pytest.raises(TypeError, match=r"Expected types to be consistent: float32 vs. int32"):
        tf.train.batch_join([[1.0], [1]], 4)


def test_an_empty_tensor_fails_when_it_is_evaluated():
    """Nothing can be said of it before."""
    names = tf.train.string_input_producer(tf.placeholder_with_default(np.array([], object), [None]))
    with (
        tf.Session() as session,
        pytest.raises(tf.errors.InvalidArgumentError, match="requires a non-null input tensor"),
    ):
        session.run(names.queue_ref.graph.get_operation_by_name("input_producer/input_producer_EnqueueMany"))


def test_eager_mode_has_no_queues(eager):
    """Producers and batches say so."""
    for make in (
        lambda: tf.train.string_input_producer(["a"]),
        lambda: tf.train.range_input_producer(3),
        lambda: tf.train.slice_input_producer([[1]]),
        lambda: tf.train.input_producer([1]),
    ):
        with pytest.raises(RuntimeError, match="Input pipelines based on Queues are not supported when eager"):
            make()
    for make in (lambda: tf.train.batch([1], 2), lambda: tf.train.shuffle_batch_join([[1]], 2, 9, 3)):
        with pytest.raises(ValueError, match="Input pipelines based on Queues are not supported when eager"):
            make()


# -- batches -----------------------------------------------------------------------------------------------------


def test_batches_in_order():
    """What is left over at the end is dropped."""
    number = _numbers(10)
    batch, squares = tf.train.batch([number, number * number], 4)
    assert batch.shape == (4,)
    found = _all([batch, squares])
    assert [pair[0].tolist() for pair in found] == [[0, 1, 2, 3], [4, 5, 6, 7]]
    assert found[1][1].tolist() == [16, 25, 36, 49]


def test_examples_that_a_loop_computes():
    """Each example goes through the loop's iterations, in the threads that fill the queue."""
    number = tf.cast(_numbers(4), tf.float32)
    _, grown = tf.while_loop(lambda i, v: i < 3, lambda i, v: (i + 1, v * 2.0), [0, number])
    assert np.concatenate(_all(tf.train.batch([grown], 2))).tolist() == [0.0, 8.0, 16.0, 24.0]


def test_a_smaller_batch_at_the_end():
    """Where it is allowed; the size of batches is then not known."""
    batch = tf.train.batch([_numbers(10)], 4, allow_smaller_final_batch=True)
    assert batch.shape.as_list() == [None]
    assert [each.tolist() for each in _all(batch)] == [[0, 1, 2, 3], [4, 5, 6, 7], [8, 9]]


def test_dictionaries_come_back_as_dictionaries():
    """With the same keys."""
    number = _numbers(4)
    (found,) = _all(tf.train.batch({"n": number, "text": tf.as_string(number)}, 4))
    assert found["n"].tolist() == [0, 1, 2, 3] and found["text"].tolist() == [b"0", b"1", b"2", b"3"]


def test_many_examples_at_once():
    """Rows of the input are examples."""
    rows = tf.train.limit_epochs(tf.constant(np.arange(10).reshape(5, 2)), 2)
    found = _all(tf.train.batch([rows], 3, enqueue_many=True))
    assert np.concatenate(found).tolist() == np.tile(np.arange(10).reshape(5, 2), (2, 1))[:9].tolist()


def test_padding():
    """Examples are padded at their ends, up to the largest of their batch, with zeros and empty strings."""
    number = _numbers(4)
    values, texts = tf.train.batch([tf.range(number), tf.fill([number, 1], "x")], 2, dynamic_pad=True)
    assert values.shape.as_list() == [2, None] and texts.shape.as_list() == [2, None, 1]
    first, second = _all([values, texts])
    assert first[0].tolist() == [[0], [0]] and first[1].tolist() == [[[b""]], [[b"x"]]]
    assert second[0].tolist() == [[0, 1, 0], [0, 1, 2]]


def test_shuffled_batches():
    """Each example comes once, in an order that is not that of the input; the seed decides."""
    batch = tf.train.shuffle_batch([_numbers(40)], 8, capacity=30, min_after_dequeue=20, seed=3)
    found = np.concatenate(_all(batch)).tolist()
    assert sorted(found) == list(range(40)) and found != list(range(40))


def test_join_takes_from_all_sources():
    """Each has a thread of its own; batches mix them."""
    batches = [
        tf.train.batch_join([[_numbers(6)], [_numbers(6) + 100]], 4),
        tf.train.shuffle_batch_join([[_numbers(6)], [_numbers(6) + 100]], 4, 40, 0),
    ]
    for found in zip(*_all(batches)):
        assert sorted(np.concatenate(found).tolist()) == [*range(6), *range(100, 106)]


def test_keeping_examples():
    """A scalar decides about each input."""
    number = _numbers(10)
    batch = tf.train.maybe_batch([number], tf.equal(number % 2, 0), 2, allow_smaller_final_batch=True)
    assert [each.tolist() for each in _all(batch)] == [[0, 2], [4, 6], [8]]


def test_keeping_rows():
    """A vector decides about each row of an input."""
    rows = tf.train.limit_epochs(tf.range(10), 1)
    batch = tf.train.maybe_shuffle_batch(
        [rows, tf.as_string(rows)], 2, 20, 0, rows > 4, enqueue_many=True, allow_smaller_final_batch=True
    )
    found = _all(batch)
    assert sorted(np.concatenate([numbers for numbers, _ in found]).tolist()) == [5, 6, 7, 8, 9]
    assert all(texts.tolist() == [str(n).encode() for n in numbers] for numbers, texts in found)


def _diagonal(number: tf.Tensor) -> tf.SparseTensor:
    """A sparse vector of 5 with `number` at its place `number`."""
    place = tf.cast(tf.reshape(number, [1, 1]), tf.int64)
    return tf.SparseTensor(place, tf.reshape(number, [1]), [5])


def test_sparse_batches():
    """Sparse tensors come out as one sparse tensor with a dimension more."""
    number = _numbers(4)
    sparse, dense = tf.train.batch([_diagonal(number), number], 2)
    assert sparse.indices.shape.as_list() == [None, 2]
    first, second = _all([sparse, dense])
    assert first[0].indices.tolist() == [[0, 0], [1, 1]] and first[0].dense_shape.tolist() == [2, 5]
    assert second[0].values.tolist() == [2, 3] == second[1].tolist()


def test_sparse_batches_of_some_examples():
    """What is not kept is not stored either."""
    number = _numbers(6)
    sparse, dense = tf.train.maybe_batch([_diagonal(number % 5), number], number > 2, 3)
    (found,) = _all([sparse, dense])
    assert found[0].indices.tolist() == [[0, 3], [1, 4], [2, 0]] and found[1].tolist() == [3, 4, 5]


def test_sparse_rows_of_many_examples():
    """Rows of a sparse matrix are examples; a vector keeps some of them."""
    matrix = tf.SparseTensor([[0, 0], [1, 1], [2, 2]], [1, 2, 3], [3, 4])
    rows = tf.train.limit_epochs(tf.constant([10, 20, 30]), 1)
    sparse, dense = tf.train.maybe_batch([matrix, rows], [True, False, True], 2, enqueue_many=True)
    (found,) = _all([sparse, dense])
    assert found[0].indices.tolist() == [[0, 0], [1, 2]] and found[0].values.tolist() == [1, 3]
    assert found[0].dense_shape.tolist() == [2, 4] and found[1].tolist() == [10, 30]


def test_sparse_join():
    """Sources share what keeps sparse tensors between the runs."""
    one, two = _numbers(2), _numbers(2) + 2
    sparse = tf.train.batch_join([[_diagonal(one)], [_diagonal(two)]], 4)
    (found,) = _all(sparse)
    assert sorted(found.values.tolist()) == [0, 1, 2, 3] and sorted(found.indices[:, 1]) == [0, 1, 2, 3]


def test_an_error_of_the_input_reaches_the_program():
    """The queue is closed, and joining raises what went wrong."""
    bad = tf.check_numerics(1.0 / tf.cast(2 - _numbers(5), tf.float32), "infinite")
    batch = tf.train.batch([bad], 2)
    coord = tf.train.Coordinator()
    with tf.Session() as session:
        session.run(tf.local_variables_initializer())
        threads = tf.train.start_queue_runners(session, coord)
        with coord.stop_on_exception():
            while not coord.should_stop():
                session.run(batch)
        with pytest.raises(tf.errors.InvalidArgumentError, match="infinite : Tensor had Inf values"):
            coord.join(threads)
