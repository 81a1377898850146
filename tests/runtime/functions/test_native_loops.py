"""Loops that run natively give the results of loops that run iteration by iteration."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import stoker.compat.v1 as tf
from stoker._src.base.shapes import Shape
from stoker._src.ops.control_flow.tensor_list_values import TensorList
from stoker._src.runtime.functions import native_loops

pytestmark = pytest.mark.skipif(native_loops.native is None, reason="needs the C extension")


@pytest.fixture
def executions(monkeypatch):
    """Records for each execution of a loop whether it ran natively."""
    seen: list[bool] = []
    run = native_loops.NativeLoop.run

    def recorded(self, values, state):
        results = run(self, values, state)
        seen.append(results is not None)
        return results

    monkeypatch.setattr(native_loops.NativeLoop, "run", recorded)
    return seen


def _both(build, feed, monkeypatch):
    """The values of `build()`'s fetches over three runs: with native loops, and iteration by iteration."""
    found = []
    for is_native in (True, False):
        with monkeypatch.context() as patch:
            if not is_native:
                patch.setattr(native_loops.NativeLoop, "run", lambda self, values, state: None)
            with tf.Graph().as_default(), tf.Session() as session:
                tf.set_random_seed(3)
                fetches, placeholders = build()
                session.run(tf.global_variables_initializer())
                fed = dict(zip(placeholders, feed))
                found.append([session.run(fetches, fed) for _ in range(3)])
    return found


def _assert_same(found):
    for with_native, without in zip(*found):
        for a, b in zip(with_native, without):
            np.testing.assert_allclose(a, b, rtol=2e-5, atol=2e-6)


CELLS = {
    "lstm": lambda: tf.nn.rnn_cell.LSTMCell(5),
    "basic_lstm": lambda: tf.nn.rnn_cell.BasicLSTMCell(5),
    "gru": lambda: tf.nn.rnn_cell.GRUCell(5),
    "basic": lambda: tf.nn.rnn_cell.BasicRNNCell(5),
    "stacked": lambda: tf.nn.rnn_cell.MultiRNNCell([tf.nn.rnn_cell.GRUCell(4), tf.nn.rnn_cell.LSTMCell(5)]),
    "dropout": lambda: tf.nn.rnn_cell.DropoutWrapper(tf.nn.rnn_cell.GRUCell(5), 0.8, 0.7, 0.9),
    "dropout_inputs": lambda: tf.nn.rnn_cell.DropoutWrapper(tf.nn.rnn_cell.LSTMCell(5), 0.8, 0.7),
    "residual": lambda: tf.nn.rnn_cell.ResidualWrapper(tf.nn.rnn_cell.GRUCell(3)),
}


def _network(cell, *, with_lengths, reads_outputs=True):
    def build():
        x, lengths = tf.placeholder(tf.float32, [None, None, 3]), tf.placeholder(tf.int32, [None])
        outputs, state = tf.nn.dynamic_rnn(CELLS[cell](), x, lengths if with_lengths else None, dtype=tf.float32)
        loss = tf.add_n([tf.reduce_sum(tf.square(each)) for each in tf.nest.flatten(state)])
        if reads_outputs:
            loss += tf.reduce_mean(outputs * outputs[:, ::-1])
        gradients = tf.gradients(loss, [x, *tf.trainable_variables()])
        return [loss, outputs, *gradients], [x, lengths]

    return build


@pytest.mark.parametrize("cell", sorted(CELLS))
def test_cells_with_lengths(cell, executions, monkeypatch):
    """Outputs, losses and gradients of every cell are those of single iterations, and both loops run natively."""
    random = np.random.RandomState(0)
    feed = [random.randn(4, 6, 3).astype("f"), [6, 2, 5, 1]]
    found = _both(_network(cell, with_lengths=True), feed, monkeypatch)
    _assert_same(found)
    assert executions and all(executions)


@settings(max_examples=5, deadline=None)
@given(
    st.integers(1, 5),
    st.integers(1, 7),
    st.sampled_from(["gru", "stacked"]),
    st.booleans(),
    st.booleans(),
    st.integers(0, 9),
)
def test_any_shapes(batch, steps, cell, with_lengths, reads_outputs, seed):
    """Batches, numbers of steps and lengths of any size, also of no steps at all, give the results of single iterations."""
    random = np.random.RandomState(seed)
    feed = [random.randn(batch, steps, 3).astype("f"), random.randint(0, steps + 1, batch)]
    build = _network(cell, with_lengths=with_lengths, reads_outputs=reads_outputs)
    with pytest.MonkeyPatch.context() as monkeypatch:
        _assert_same(_both(build, feed, monkeypatch))


def test_batches_of_different_sizes_in_turn(monkeypatch):
    """A layout that is kept serves only executions of its own number of steps and batch size."""
    random = np.random.RandomState(0)
    sizes = [(4, 6), (2, 6), (4, 3), (4, 6), (2, 6), (1, 1), (4, 3)]
    feeds = [(random.randn(*size, 3).astype("f"), random.randint(0, size[1] + 1, size[0])) for size in sizes]
    found = []
    for is_native in (True, False):
        with monkeypatch.context() as patch:
            if not is_native:
                patch.setattr(native_loops.NativeLoop, "run", lambda self, values, state: None)
            with tf.Graph().as_default(), tf.Session() as session:
                tf.set_random_seed(3)
                fetches, placeholders = _network("stacked", with_lengths=True)()
                session.run(tf.global_variables_initializer())
                found.append([session.run(fetches, dict(zip(placeholders, feed))) for feed in feeds])
    _assert_same(found)


def test_loop_by_hand(executions, monkeypatch):
    """A while_loop with arrays, a counter that counts down and an item that is read out of order runs natively, with its gradient."""

    def build():
        x = tf.placeholder(tf.float32, [5, 2, 3])
        w = tf.get_variable("w", [3, 3], initializer=tf.random_normal_initializer())
        source = tf.TensorArray(tf.float32, 5).unstack(x)
        target = tf.TensorArray(tf.float32, 5)

        def body(i, h, target):
            h = tf.tanh(tf.matmul(h, w) + source.read((i * 2) % 5))
            return i - 1, h, target.write(i, h * 2.0)

        _, h, target = tf.while_loop(lambda i, h, target: i >= 0, body, [4, tf.zeros([2, 3]), target])
        loss = tf.reduce_sum(h) + tf.reduce_sum(target.stack() ** 2)
        return [loss, target.stack(), *tf.gradients(loss, [x, w])], [x]

    _assert_same(_both(build, [np.random.RandomState(1).randn(5, 2, 3).astype("f")], monkeypatch))
    assert any(executions)


def test_items_that_nothing_wrote(executions, monkeypatch):
    """A loop that reads zeros from an array that nothing wrote to runs natively, with its gradient."""

    def build():
        x = tf.placeholder(tf.float32, [2, 3])
        source = tf.TensorArray(tf.float32, 5, element_shape=[2, 3])
        _, h = tf.while_loop(lambda i, h: i < 5, lambda i, h: (i + 1, tf.tanh(h * 1.5 + source.read(i))), [0, x])
        return [h, *tf.gradients(tf.reduce_sum(h), [x])], [x]

    given = np.random.RandomState(1).randn(2, 3).astype("f")
    found = _both(build, [given], monkeypatch)
    _assert_same(found)
    expected = given
    for _ in range(5):
        expected = np.tanh(1.5 * expected)
    np.testing.assert_allclose(found[0][-1][0], expected, rtol=1e-5)
    assert all(executions) and executions


def test_draws_continue(monkeypatch):
    """Random numbers of a loop are the same, and so are those of the next run, whether or not something reads them."""

    def build():
        def body(i, kept, total):
            drawn = tf.random_uniform([2, 2], seed=1)
            return i + 1, kept * 0.5 + drawn, total + 1.0

        n = tf.placeholder(tf.int32, [])
        _, kept, total = tf.while_loop(lambda i, kept, total: i < n, body, [0, tf.zeros([2, 2]), tf.zeros([2, 2])])
        return [kept, total, tf.identity(total)], [n]

    _assert_same(_both(build, [4], monkeypatch))


def test_masks_of_dropout_are_known_before_the_loop(executions, monkeypatch):
    """Cells that drop inputs and outputs run natively, forward and backward, with the masks of loops that draw in each iteration."""
    build = _network("dropout_inputs", with_lengths=True)
    feed = [np.random.RandomState(0).randn(3, 6, 3).astype("f"), np.array([6, 2, 4], np.int32)]
    _assert_same(_both(build, feed, monkeypatch))
    assert len(executions) == 6 and all(executions)


@pytest.mark.parametrize("words", [7, 300])
def test_attention_in_a_loop(executions, monkeypatch, words):
    """A decoder that looks at all words in each iteration runs natively, also where their tensors are large and summed over all rows."""

    def build():
        keys, mask = tf.placeholder(tf.float32, [4, words, 48]), tf.placeholder(tf.float32, [4, words])
        v = tf.get_variable("v", [48])
        target = tf.TensorArray(tf.float32, 5)

        def body(i, h, target):
            scores = tf.reduce_sum(v * tf.tanh(keys + h[:, None]), -1) + (1.0 - mask) * -1e9
            found = tf.reduce_sum(tf.nn.softmax(scores)[:, :, None] * keys, 1)
            h = tf.tanh(h + found)
            return i + 1, h, target.write(i, h)

        _, h, target = tf.while_loop(lambda i, *_: i < 5, body, [0, tf.zeros([4, 48]), target])
        loss = tf.reduce_sum(tf.square(target.stack()))
        return [loss, h, *tf.gradients(loss, [keys, v])], [keys, mask]

    random = np.random.RandomState(0)
    feed = [random.randn(4, words, 48).astype("f"), (random.rand(4, words) < 0.7).astype("f")]
    _assert_same(_both(build, feed, monkeypatch))
    assert len(executions) == 6 and all(executions)


def test_random_places_run_by_iteration(executions):
    """A loop that reads an item at a drawn index gives items of the array; the next run draws others."""
    with tf.Graph().as_default(), tf.Session() as session:
        source = tf.TensorArray(tf.float32, 50).unstack(tf.range(50.0))

        def body(i, total):
            at = tf.cast(tf.random_uniform([], seed=1) * 50.0, tf.int32)
            return i + 1, total + source.read(at)

        total = tf.while_loop(lambda i, total: i < 20, body, [0, tf.zeros([])])[1]
        first, second = session.run(total), session.run(total)
        assert first != second and first == int(first) and 0 <= first <= 20 * 49
    assert not any(executions)


def test_condition_on_data_runs_by_iteration(executions):
    """A loop that ends when a computed value is large enough still ends there."""
    with tf.Graph().as_default(), tf.Session() as session:
        x = tf.placeholder(tf.float32, [2])
        total = tf.while_loop(lambda v: tf.reduce_sum(v) < 100.0, lambda v: [v * 2.0 + 1.0], [x])
        np.testing.assert_allclose(session.run(total, {x: [1.0, 2.0]}), [63.0, 95.0])


def test_index_out_of_range_is_reported():
    """A loop that reads past the end of an array fails as TensorFlow's does."""
    with tf.Graph().as_default(), tf.Session() as session:
        x = tf.placeholder(tf.float32, [3, 2])
        source = tf.TensorArray(tf.float32, 3).unstack(x)
        _, total = tf.while_loop(
            lambda i, total: i < 5, lambda i, total: (i + 1, total + source.read(i)), [0, tf.zeros([2])]
        )
        with pytest.raises(tf.errors.InvalidArgumentError):
            session.run(total, {x: np.ones([3, 2], "f")})


def test_rows_of_a_list():
    """A list that was made from a tensor behaves as a list of its rows."""
    stack = torch.arange(6.0).reshape(3, 2)
    rows = TensorList.of_rows(stack, tf.float32, Shape([2]))
    assert rows.length() == 3
    longer = rows.pushed(torch.tensor([9.0, 9.0]))
    assert longer.length() == 4 and rows.length() == 3
    shorter, last = longer.popped()
    assert last.tolist() == [9.0, 9.0]
    for found, expected in ((shorter, stack), (rows.sum_with([rows]), stack * 2), (rows.zeros_like(), stack * 0)):
        assert torch.equal(torch.stack(found.items()), expected)


def test_scan_with_logsumexp(executions, monkeypatch):
    """The forward algorithm of a chain as a scan, with its gradient, runs natively."""

    def build():
        x = tf.placeholder(tf.float32, [6, 3, 4])
        moves = tf.get_variable("moves", [4, 4], initializer=tf.random_normal_initializer())
        totals = tf.scan(lambda a, s: tf.reduce_logsumexp(tf.expand_dims(a, 2) + moves, 1) + s, x[1:], x[0])
        loss = tf.reduce_sum(tf.reduce_logsumexp(totals[-1], 1)) + tf.reduce_mean(totals)
        return [loss, totals, *tf.gradients(loss, [x, moves])], [x]

    _assert_same(_both(build, [np.random.RandomState(2).randn(6, 3, 4).astype("f")], monkeypatch))
    assert executions and all(executions)


def _best_paths(scores, moves):
    """The best path of tags through each batch of scores, by dynamic programming in NumPy."""
    best, came_from = scores[:, 0], []
    for score in scores.swapaxes(0, 1)[1:]:
        reached = best[:, :, None] + moves
        came_from.append(reached.argmax(1))
        best = reached.max(1) + score
    path = [best.argmax(1)]
    for places in reversed(came_from):
        path.append(places[np.arange(len(places)), path[-1]])
    return np.stack(path[::-1])


@settings(max_examples=8, deadline=None)
@given(st.integers(1, 4), st.integers(2, 6), st.integers(2, 5), st.integers(0, 99))
def test_paths_back_through_lists_of_places(batch, steps, tags, seed):
    """A loop over the results of another one, which chooses integers by those of the iteration before, finds NumPy's paths natively."""
    random = np.random.RandomState(seed)
    scores, moves = random.randn(batch, steps, tags).astype("f"), random.randn(tags, tags).astype("f")
    natively = []
    run = native_loops.NativeLoop.run

    def recorded(self, values, state):
        results = run(self, values, state)
        natively.append(results is not None)
        return results

    with pytest.MonkeyPatch.context() as patch, tf.Graph().as_default(), tf.Session() as session:
        patch.setattr(native_loops.NativeLoop, "run", recorded)
        x = tf.placeholder(tf.float32, [None, None, tags])
        rows = tf.transpose(x, [1, 0, 2])

        def forward(before, score):
            reached = tf.expand_dims(before[0], 2) + moves
            return tf.reduce_max(reached, 1) + score, tf.argmax(reached, 1, output_type=tf.int32)

        def back(tag, places):
            return tf.gather_nd(places, tf.stack([tf.range(tf.shape(tag)[0]), tag], 1))

        best, came_from = tf.scan(forward, rows[1:], (rows[0], tf.zeros_like(rows[0], tf.int32)))
        last = tf.argmax(best[-1], 1, output_type=tf.int32)
        path = tf.concat([tf.scan(back, came_from, last, reverse=True), last[None]], 0)
        np.testing.assert_array_equal(session.run(path, {x: scores}), _best_paths(scores, moves))
    assert natively == [True, True]
