"""CTC loss against the sum over all paths; decoders against exhaustive search."""

import itertools

import hypothesis
import numpy as np
import pytest
import torch
from hypothesis import strategies as st

import stoker.compat.v1 as tf
from stoker._src.base.errors import FailedPreconditionError, InvalidArgumentError
from stoker._src.graph.definition import find_definition
from stoker._src.ops.nn import ctc_cuda, ctc_kernels
from tests.running import run
from tests.runtime.plan.gpu import emulated_gpu

LOGITS = np.random.RandomState(7).randn(4, 2, 3)


def log_softmax(x):
    shifted = x - x.max(-1, keepdims=True)
    return shifted - np.log(np.exp(shifted).sum(-1, keepdims=True))


def collapse(path, blank, merge=True):
    row = [label for i, label in enumerate(path) if not (merge and i and path[i - 1] == label)]
    return tuple(label for label in row if label != blank)


def probabilities(logits, merge=True):
    """The probability of each labelling, from all paths."""
    scores, blank = log_softmax(logits), logits.shape[1] - 1
    found = {}
    for path in itertools.product(range(logits.shape[1]), repeat=len(logits)):
        key = collapse(path, blank, merge)
        found[key] = found.get(key, 0.0) + np.exp(sum(scores[t, label] for t, label in enumerate(path)))
    return found


def sparse(rows):
    indices = [(i, j) for i, row in enumerate(rows) for j in range(len(row))]
    return tf.SparseTensor(
        np.array(indices, np.int64).reshape(-1, 2),
        np.array([v for row in rows for v in row], np.int32),
        [len(rows), max(map(len, rows))],
    )


@pytest.mark.parametrize("merge", [True, False])
@pytest.mark.parametrize("rows", [[[0, 1], [1]], [[0, 0], [0]], [[1, 0, 1], [1, 1]]])
def test_loss_and_gradient(rows, merge) -> None:
    """The loss is minus the log of the sum over all paths, its gradient that of finite differences."""
    lengths = [4, 3]
    place = tf.placeholder(tf.float64, LOGITS.shape)
    loss = tf.nn.ctc_loss(sparse(rows), place, lengths, ctc_merge_repeated=merge)
    gradient = tf.gradients(loss, place)[0]

    def expected(logits):
        return np.array([-np.log(probabilities(logits[:n, i], merge)[tuple(rows[i])]) for i, n in enumerate(lengths)])

    with tf.Session() as session:
        found, slope = session.run([loss, gradient], {place: LOGITS})
    np.testing.assert_allclose(found, expected(LOGITS))
    for index in [(0, 0, 0), (1, 0, 2), (2, 1, 1), (3, 0, 1), (3, 1, 1)]:
        up, down = LOGITS.copy(), LOGITS.copy()
        up[index] += 1e-6
        down[index] -= 1e-6
        np.testing.assert_allclose(slope[index], (expected(up) - expected(down)).sum() / 2e-6, rtol=1e-5, atol=1e-8)


def test_collapsed_labels() -> None:
    """preprocess_collapse_repeated merges repeated labels before the loss."""
    loss = tf.nn.ctc_loss(sparse([[0, 0, 1], [1, 1]]), tf.constant(LOGITS), [4, 3], preprocess_collapse_repeated=True)
    other = tf.nn.ctc_loss(sparse([[0, 1], [1]]), tf.constant(LOGITS), [4, 3])
    np.testing.assert_allclose(*run([loss, other]))


def test_sequences_that_are_too_short() -> None:
    """More labels than steps: an error, or no loss and no gradient if that is asked for."""
    logits = tf.constant(LOGITS)
    with pytest.raises(InvalidArgumentError, match="required: 3, available: 2"):
        run(tf.nn.ctc_loss(sparse([[0, 1, 0], [1]]), logits, [2, 3]))
    loss = tf.nn.ctc_loss(sparse([[0, 1, 0], [1]]), logits, [2, 3], ignore_longer_outputs_than_inputs=True)
    value, gradient = run([loss, tf.gradients(loss, logits)[0]])
    assert value[0] == 0 and not gradient[:, 0].any() and value[1] > 0


def test_labelling_without_a_path() -> None:
    """Repeated labels need a blank between them: with too few steps the loss is infinite, the gradient softmax."""
    logits = tf.constant(LOGITS)
    loss = tf.nn.ctc_loss(sparse([[0, 0], [1]]), logits, [2, 3])
    value, gradient = run([loss, tf.gradients(loss, logits)[0]])
    assert np.isinf(value[0])
    np.testing.assert_allclose(gradient[:2, 0], np.exp(log_softmax(LOGITS[:2, 0])))


@pytest.mark.parametrize(
    ("rows", "lengths", "text"),
    [
        ([[2, 0], [1]], [4, 3], "following a null label"),
        ([[0], []], [4, 3], "Labels length is zero in batch 1"),
        ([[0], [1]], [5, 3], r"sequence_length\(0\) <= 4"),
        ([[-1], [1]], [4, 3], "nonnegative"),
    ],
)
def test_bad_labels(rows, lengths, text) -> None:
    """Labels that are no classes, missing labels and lengths beyond the input are refused."""
    with pytest.raises(InvalidArgumentError, match=text):
        run(tf.nn.ctc_loss(sparse(rows), tf.constant(LOGITS), lengths))


def test_dense_labels_with_any_blank() -> None:
    """ctc_loss_v2 takes dense labels and any class as the blank."""
    labels = tf.constant([[1, 2], [2, 0]])
    first = tf.nn.ctc_loss_v2(labels, tf.constant(LOGITS), [2, 1], [4, 3], blank_index=0)
    moved = tf.constant(LOGITS[:, :, [1, 2, 0]])
    second = tf.nn.ctc_loss(sparse([[0, 1], [1]]), moved, [4, 3])
    np.testing.assert_allclose(*run([first, second]))
    with pytest.raises(ValueError, match="blank_index"):
        tf.nn.ctc_loss_v2(sparse([[1], [1]]), tf.constant(LOGITS), None, [4, 3])


def test_dense_labels_without_labels_or_time() -> None:
    """A row without labels is all blanks; one that needs more time than it has costs 706.9 and has no gradient."""
    logits = tf.constant(LOGITS)
    losses = tf.nn.ctc_loss_v2(tf.constant([[-1, -1], [1, 1]]), logits, [0, 2], [4, 2], blank_index=0)
    found, gradient = run([losses, tf.gradients(losses, logits)[0]])
    np.testing.assert_allclose(found, [-log_softmax(LOGITS[:, 0])[:, 0].sum(), 307 * np.log(10)], rtol=1e-6)
    assert not gradient[:, 1].any()
    assert gradient[:, 0].any()
    half = tf.nn.ctc_loss_v2(tf.constant([[1], [2]]), tf.constant(LOGITS.astype("f2")), [1, 1], [4, 4])
    assert half.dtype == tf.float16


def test_greedy_decoder() -> None:
    """The labels of the best path, merged or not, and minus the sum of its logits."""
    decoder = find_definition("CTCGreedyDecoder")
    lengths = [4, 3]
    for merge in (True, False):
        indices, values, shape, score = run(decoder(tf.constant(LOGITS), lengths, merge_repeated=merge))
        rows = [collapse(LOGITS[:n, i].argmax(1), 2, merge) for i, n in enumerate(lengths)]
        assert values.tolist() == [label for row in rows for label in row]
        assert indices.tolist() == [[i, j] for i, row in enumerate(rows) for j in range(len(row))]
        assert shape.tolist() == [2, max(map(len, rows))]
        np.testing.assert_allclose(score[:, 0], [-LOGITS[:n, i].max(1).sum() for i, n in enumerate(lengths)])


def test_beam_search_finds_the_most_probable_labellings() -> None:
    """With a wide beam the top paths are exactly the most probable labellings, with their log probabilities."""
    decoder = find_definition("CTCBeamSearchDecoder")
    lengths = [4, 3]
    _, values, _, scores = run(
        list(decoder(tf.constant(LOGITS), lengths, beam_width=100, top_paths=3, merge_repeated=False))
    )
    for i, n in enumerate(lengths):
        ranked = sorted(probabilities(LOGITS[:n, i]).items(), key=lambda item: -item[1])[:3]
        np.testing.assert_allclose(scores[i], [np.log(p) for _, p in ranked])
    best = [max(probabilities(LOGITS[:n, i]).items(), key=lambda item: item[1])[0] for i, n in enumerate(lengths)]
    assert values[0].tolist() == [label for row in best for label in row]


def test_decoder_errors() -> None:
    """More paths than the beam holds, or lengths beyond the input, are refused."""
    decoder = find_definition("CTCBeamSearchDecoder")
    with pytest.raises(InvalidArgumentError, match="beam width"):
        run(decoder(tf.constant(LOGITS), [4, 3], beam_width=1, top_paths=2).log_probability)
    with pytest.raises(FailedPreconditionError, match="sequence_length"):
        run(decoder(tf.constant(LOGITS), [7, 3], beam_width=1, top_paths=1).log_probability)


def test_decoders_return_sparse_tensors() -> None:
    """The functions of tf.nn give the labellings as SparseTensors."""
    (greedy,), _ = tf.nn.ctc_greedy_decoder(tf.constant(LOGITS), [4, 3])
    paths, scores = tf.nn.ctc_beam_search_decoder(tf.constant(LOGITS), [4, 3], top_paths=2, merge_repeated=False)
    assert isinstance(greedy, tf.SparseTensor) and len(paths) == 2 and scores.shape.as_list() == [2, 2]
    found = run(greedy)
    rows = [collapse(LOGITS[:n, i].argmax(1), 2) for i, n in enumerate([4, 3])]
    assert found.values.tolist() == [label for row in rows for label in row]


def test_dense_labels_collapsed() -> None:
    """collapse_repeated merges runs and moves what is left to the front."""
    labels, lengths = run(tf.nn.collapse_repeated([[1, 1, 2, 2, 1], [3, 3, 3, 4, 4]], [5, 3]))
    assert labels.tolist() == [[1, 2, 1], [3, 0, 0]] and lengths.tolist() == [3, 1]
    unique, places = run(tf.nn.ctc_unique_labels([[1, 1, 2], [3, 4, 3]]))
    assert unique.tolist() == [[1, 2, 0], [3, 4, 0]] and places.tolist() == [[0, 0, 1], [0, 1, 0]]


@pytest.mark.skipif(emulated_gpu.COMPILER is None, reason="no C++ compiler")
@hypothesis.settings(max_examples=30)
@hypothesis.given(st.integers(1, 4), st.integers(1, 12), st.integers(2, 6), st.booleans(), st.integers(0, 1000))
def test_the_kernel_for_a_gpu_computes_the_same(batch, steps, classes, blank_is_first, seed):
    """The CUDA source, run by one thread, gives the CPU's losses and gradients: repeated labels, impossible and ignored sequences."""
    random = np.random.RandomState(seed)
    blank = 0 if blank_is_first else classes - 1
    lengths = random.randint(1, steps + 1, batch).tolist()
    first = 1 if blank_is_first else 0
    rows = [random.randint(first, first + classes - 1, random.randint(1, length + 1)).tolist() for length in lengths]
    rows[0] = None if seed % 3 == 0 else rows[0]
    logits = torch.from_numpy(random.randn(steps, batch, classes).astype("f") * 3)
    wanted = ctc_kernels.loss_and_gradient(logits, rows, lengths, True, blank)
    labels = torch.zeros((batch, steps + 2), dtype=torch.int64)
    for i, row in enumerate(rows):
        labels[i, : len(row or ())] = torch.tensor(row or [], dtype=torch.int64)
    counts = torch.tensor([ctc_cuda.IGNORED if row is None else len(row) for row in rows])
    run_it = emulated_gpu.compiled(ctc_cuda.SOURCE, "ctc")
    found = ctc_cuda.launch(run_it, torch.log_softmax(logits, 2), labels, counts, torch.tensor(lengths), blank, 1)
    for one, other in zip(found, wanted):
        np.testing.assert_allclose(one, other, rtol=2e-5, atol=2e-5)
