"""What a queue runner runs again and again, many times in one call: the same elements in the same order as one by one."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import stoker.compat.v1 as tf

ROWS = np.arange(72, dtype=np.float32).reshape(6, 3, 4)
TABLE = np.arange(20.0, dtype=np.float32).reshape(10, 2)
CASES = {
    "elementwise": (lambda x: tf.sqrt(x * 2.0 + 1.0) - tf.constant([1.0, 2.0, 3.0, 4.0]), True),
    "rows with rows": (lambda x: x * tf.exp(-x), True),
    "compare": (lambda x: tf.cast(x > 5.0, tf.int32), True),
    "reshape": (lambda x: tf.reshape(x, [2, -1]), True),
    "expand and squeeze": (lambda x: tf.squeeze(tf.expand_dims(x, 1), [1]), True),
    "transpose": (lambda x: tf.transpose(x), True),
    "transpose by a permutation": (lambda x: tf.transpose(tf.reshape(x, [3, 2, 2]), [1, 2, 0]), True),
    "slice": (lambda x: tf.slice(x, [1, 0], [2, -1]), True),
    "strided": (lambda x: x[1:, ::2], True),
    "index": (lambda x: x[..., -1], True),
    "new axis": (lambda x: x[tf.newaxis, 0, 1:3], True),
    "stack": (lambda x: tf.stack([x, 2.0 * x], axis=1), True),
    "stack at the end": (lambda x: tf.stack([x, 2.0 * x], axis=-1), True),
    "concat": (lambda x: tf.concat([x, x + 1.0], 0), True),
    "concat at the end": (lambda x: tf.concat([x, x + 1.0], -1), True),
    "gather": (lambda x: tf.gather(TABLE, tf.cast(x[0, :2] % 10.0, tf.int32)), True),
    "text": (lambda x: tf.string_to_number(tf.as_string(x[0, 0])), True),
    "a value of higher rank": (lambda x: x[0, 0] + tf.constant([1.0, 2.0]), True),
    "rows of lower rank": (lambda x: x - tf.reduce_mean(x) + x[:, 0:1] + x[0], True),
    "sum": (lambda x: tf.reduce_sum(x, 0), True),
    "mean of the last dimension": (lambda x: tf.reduce_mean(x, [-1], keepdims=True), True),
    "largest": (lambda x: tf.reduce_max(x, [0, 1]), True),
    "one-hot": (lambda x: tf.one_hot(tf.cast(x[0] % 5.0, tf.int32), 5), True),
    "one-hot along the first dimension": (lambda x: tf.one_hot(tf.cast(x[0] % 5.0, tf.int32), 5, axis=0), True),
    "selection": (lambda x: tf.where(x > 5.0, x, -x), True),
    "selection by one condition": (lambda x: tf.where(x[0, 0] > 30.0, x, -x), True),
    "selection with broadcasting": (lambda x: tf.where_v2(x[0] > 5.0, x, 0.0), True),
    "reverse": (lambda x: tf.reverse(x, [-1]), True),
    "pad": (lambda x: tf.pad(x, [[1, 0], [0, 2]]), True),
    "tile": (lambda x: tf.tile(x, [2, 1]), True),
    "place of the largest": (lambda x: tf.argmax(x, 0), True),
    "place of the least in the last dimension": (lambda x: tf.argmin(x, -1), True),
    "softmax": (lambda x: tf.nn.softmax(x) + tf.nn.log_softmax(x / 9.0), True),
    "rank and size": (
        lambda x: x / tf.cast(tf.size(x) + tf.rank(x), tf.float32) + tf.cast(tf.shape(x)[0], tf.float32),
        True,
    ),
    "product": (lambda x: tf.matmul(x, x, transpose_b=True), True),
    "random": (lambda x: x + tf.random_uniform([4], seed=3), True),
}


def _through(session, queue, op) -> list[np.ndarray]:
    """What blocks of runs of `op` bring into a queue."""
    block = session._repeated(op)
    assert block is not None
    while session.run(queue.size()) < len(ROWS):
        block()
    return [session.run(queue.dequeue()) for _ in ROWS]


@pytest.mark.parametrize("name", CASES)
def test_blocks_give_what_single_runs_give(name: str):
    """For ops that have a form for many rows, and for those that are called for each."""
    work, together = CASES[name]
    source = tf.FIFOQueue(10, tf.float32, [[3, 4]])
    result = work(source.dequeue())
    queue = tf.FIFOQueue(10, result.dtype)
    enqueue = queue.enqueue(result)
    found = []
    for once in (True, False):
        with tf.Session() as session:
            session.run(source.enqueue_many([ROWS]))
            assert (session._repeated(enqueue).__self__._together is not None) == together
            if once:
                for _ in ROWS:
                    session.run(enqueue)
                found.append([session.run(queue.dequeue()) for _ in ROWS])
            else:
                found.append(_through(session, queue, enqueue))
    for one, other in zip(*found):
        np.testing.assert_allclose(one, other, rtol=1e-6, atol=1e-6)


WORDS = np.array([b"a b c", b"", b"b", b"c c c c x", b"a", b"x y", b"b b"], object)


def _table():
    keys = tf.constant(["a", "b", "c"])
    return tf.lookup.StaticHashTable(tf.lookup.KeyValueTensorInitializer(keys, tf.constant([5, 6, 7], tf.int64)), -1)


def _in_both_ways(enqueue, source, queue, take, count=7):
    """What a queue gets from single runs of an op, and from blocks of runs."""
    found = []
    for once in (True, False):
        with tf.Session() as session:
            session.run(tf.tables_initializer())
            session.run(source.enqueue_many([WORDS]))
            block = session._repeated(enqueue)
            if once:
                for _ in range(count):
                    session.run(enqueue)
            else:
                assert block.__self__.is_stacked
                block()
            assert session.run(queue.size()) == count
            found.append(session.run(take))
    return found


def assert_same(found, expected):
    assert len(found) == len(expected)
    for one, other in zip(found, expected):
        assert one.dtype == other.dtype
        np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("batch", [3, 7])
def test_records_of_different_lengths_are_padded(batch):
    """A padding queue gets the ids and the words of lines, and their number, in blocks; its batches are those of single runs."""
    source = tf.FIFOQueue(10, tf.string, [[]])
    words = tf.string_split([source.dequeue()]).values
    ids = _table().lookup(words)
    pairs = tf.stack([ids, ids], 1)
    queue = tf.PaddingFIFOQueue(10, [tf.int64, tf.string, tf.int64, tf.int32], [[None], [None], [None, 2], []])
    enqueue = queue.enqueue([ids, words, pairs, tf.size(words)])
    one, other = _in_both_ways(enqueue, source, queue, queue.dequeue_many(batch))
    assert_same(one, other)
    assert one[0].shape == (batch, 5 if batch > 3 else 3)
    assert one[1][0].tolist()[:3] == [b"a", b"b", b"c"]


def test_records_of_different_lengths_are_taken_one_by_one():
    """They leave a queue without padding, also one whose elements have no known shape."""
    source = tf.FIFOQueue(10, tf.string, [[]])
    words = tf.string_split([source.dequeue()]).values
    for queue in (
        tf.PaddingFIFOQueue(10, [tf.string, tf.int32], [[None], [None]]),
        tf.FIFOQueue(10, [tf.string, tf.int32]),
    ):
        enqueue = queue.enqueue([words, tf.strings.length(words)])
        take = [queue.dequeue() for _ in WORDS]
        for first, second in itertools.pairwise(take):
            second[0].op._add_control_input(first[0].op)
        for one, other in zip(*_in_both_ways(enqueue, source, queue, take)):
            assert_same(one, other)
            assert len(one[0]) == len(one[1])


def test_records_that_do_not_have_the_shape_of_the_queue():
    """If rows differ in length where the queue's do not, those before the first that differs are in the queue, and the error is its own."""
    source = tf.FIFOQueue(10, tf.string, [[]])
    words = tf.string_split([source.dequeue()]).values
    queue = tf.FIFOQueue(10, tf.string, [[3]])
    with tf.Session() as session:
        session.run(source.enqueue_many([WORDS]))
        with pytest.raises(tf.errors.InvalidArgumentError, match="Shape mismatch"):
            session._repeated(queue.enqueue(words))()
        assert session.run(queue.size()) <= 1


def test_elements_of_a_padding_queue_are_not_padded_for_a_block():
    """What single runs take from a padding queue has its own length, and so it has in blocks."""
    source = tf.PaddingFIFOQueue(10, tf.int32, [[None]])
    queue = tf.FIFOQueue(10, tf.int32, [[]])
    enqueue = queue.enqueue(tf.size(source.dequeue()))
    given = tf.placeholder(tf.int32, [None])
    put = source.enqueue(given)
    with tf.Session() as session:
        for length in (3, 1, 2):
            session.run(put, {given: np.zeros(length)})
        block = session._repeated(enqueue)
        while session.run(queue.size()) < 3:
            block()
        assert session.run(queue.dequeue_many(3)).tolist() == [3, 1, 2]


def test_records_that_never_fit_into_a_stack_are_processed_separately():
    """After a few blocks that cannot be computed together, no more of them are tried."""
    source = tf.FIFOQueue(40, tf.int32, [[]])
    queue = tf.FIFOQueue(40, tf.int32)
    size = source.dequeue()
    enqueue = queue.enqueue(tf.zeros([size, size], tf.int32))
    with tf.Session() as session:
        block = session._repeated(enqueue)
        for _ in range(4):
            session.run(source.enqueue_many([[1, 2, 3, 4]]))
            while session.run(source.size()):
                block()
        assert [session.run(queue.dequeue()).shape for _ in range(16)] == [(n, n) for n in (1, 2, 3, 4)] * 4
        assert not block.__self__.is_stacked


@pytest.fixture
def lines(tmp_path):
    path = tmp_path / "lines.csv"
    path.write_text("".join(f"{i},{i * i},word{i}\n" for i in range(20)))
    return str(path)


def _reading(path: str, capacity: int = 50):
    """A queue that is filled with the fields of a file's lines: the queue, the op, the reader and a start op."""
    names = tf.FIFOQueue(3, tf.string, [[]])
    reader = tf.TextLineReader()
    number, square, word = tf.decode_csv(reader.read(names)[1], [[0], [0.0], [""]])
    queue = tf.FIFOQueue(capacity, [tf.int32, tf.float32, tf.string], [[], [], []])
    return queue, queue.enqueue([number, square, word]), reader, names.enqueue(path)


def test_records_of_a_file(lines: str):
    """A file is read in one block where there is room; the next block waits for the next file."""
    queue, enqueue, _, start = _reading(lines)
    with tf.Session() as session:
        session.run(start)
        session._repeated(enqueue)()
        assert session.run(queue.size()) == 20
        number, square, word = session.run(queue.dequeue_many(20))
        assert number.tolist() == list(range(20)) and square[-1] == 361.0 and word[3] == b"word3"


def test_no_more_is_read_than_has_room(lines: str):
    """A queue of 5 gets 5 records at once, then one for each that was taken."""
    queue, enqueue, reader, start = _reading(lines, capacity=5)
    produced = reader.num_records_produced()
    with tf.Session() as session:
        session.run(start)
        block = session._repeated(enqueue)
        block()
        assert session.run(queue.size()) == session.run(produced) == 5
        session.run(queue.dequeue())
        block()
        assert session.run(produced) == 6


def test_a_bad_record_comes_after_the_good_ones(tmp_path):
    """Those before it are in the queue, and the error names the node that failed."""
    path = tmp_path / "bad.csv"
    path.write_text("1,1,a\n2,2,b\nno number,3,c\n4,4,d\n")
    queue, enqueue, _, start = _reading(str(path))
    with tf.Session() as session:
        session.run(start)
        with pytest.raises(tf.errors.InvalidArgumentError, match="no number") as caught:
            session._repeated(enqueue)()
        assert caught.value.op.type == "DecodeCSV"
        assert session.run(queue.size()) == 2


def test_the_end_of_the_input(lines: str):
    """Ends the loop with the error of a single run."""
    names = tf.train.string_input_producer([lines], num_epochs=2, shuffle=False)
    value = tf.TextLineReader().read(names)[1]
    queue = tf.FIFOQueue(100, tf.string, [[]])
    tf.train.add_queue_runner(tf.train.QueueRunner(queue, [queue.enqueue(value)]))
    coord = tf.train.Coordinator()
    with tf.Session() as session:
        session.run(tf.local_variables_initializer())
        threads = tf.train.start_queue_runners(session, coord)
        assert len(session.run(queue.dequeue_many(40))) == 40
        with pytest.raises(tf.errors.OutOfRangeError):
            session.run(queue.dequeue())
        coord.request_stop()
        coord.join(threads)


def test_what_must_be_run_once_at_a_time():
    """Ops that look at resources between runs, wait for others, or have more than one source."""
    source, other = tf.FIFOQueue(5, tf.float32, [[]]), tf.FIFOQueue(5, tf.float32, [[]])
    queue = tf.FIFOQueue(5, tf.float32, [[]])
    variable = tf.get_variable("v", [], use_resource=True)
    value = source.dequeue()
    with tf.control_dependencies([variable.assign_add(1.0)]):
        waits = queue.enqueue(value)
    with tf.Session() as session:
        for op in (
            queue.enqueue(value + other.dequeue()),
            queue.enqueue(value + tf.cast(queue.size(), tf.float32)),
            queue.enqueue(value * variable),
            queue.enqueue(1.0),
            queue.enqueue_many([[1.0]]),
            queue.close(),
            waits,
        ):
            assert session._repeated(op) is None
