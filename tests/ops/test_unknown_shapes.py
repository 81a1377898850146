"""What holds for ops of many families where ranks or sizes are not known: values, gradients, partial shapes, names of results."""

import numpy as np
import pytest

import stoker as tf2
import stoker.compat.v1 as tf
from tests.running import run, slope_and_differences

X = np.random.RandomState(0).randn(2, 3, 4).astype(np.float32)


_ROWS, _WAVE = X[0], np.arange(24, dtype=np.float32).reshape(2, 12)


_MATRICES = X[:, :, :3] @ X[:, :, :3].transpose(0, 2, 1) + 2 * np.eye(3, dtype=np.float32)


def _lookup(ids, **options):
    weights = tf.SparseTensor([[0, 0], [1, 0]], [2.0, -1.0], [2, 1])
    sparse = tf.SparseTensor([[0, 0], [1, 0]], tf.constant([1, 2], tf.int64), [2, 1])
    return tf.nn.embedding_lookup_sparse(ids, sparse, weights, **options)


@pytest.fixture
def session():
    with tf.Graph().as_default(), tf.Session() as opened:
        yield opened


def of_any_rank(value):
    """A placeholder that knows nothing of the shape of `value`, and its feed."""
    array = np.asarray(value)
    tensor = tf.placeholder(tf.as_dtype(array.dtype), None)
    return tensor, {tensor: array}


WAVE = np.sin(np.arange(36, dtype=np.float32)).reshape(2, 3, 6)


@pytest.mark.parametrize(
    ("build", "sizes"),
    [
        (lambda x: tf.extract_image_patches(x, [1, 2, 3, 1], [1, 2, 1, 1], [1, 1, 2, 1], "SAME"), (2, 5, 6, 3)),
        (lambda x: tf.extract_volume_patches(x, [1, 2, 2, 1, 1], [1, 1, 2, 1, 1], "VALID"), (1, 3, 4, 2, 2)),
        (lambda x: tf.matrix_solve_ls(x, tf.reverse(x, [1]), l2_regularizer=0.1), (4, 3)),
        (lambda x: tf.matrix_solve_ls(x, tf.reverse(x, [1]), l2_regularizer=0.1), (3, 4)),
        (lambda x: tf.spectral.dct(x, norm="ortho"), (2, 5)),
        (lambda x: tf.spectral.dct(x, type=3), (2, 5)),
        (lambda x: tf.spectral.dct(x, type=4, n=7, norm="ortho"), (2, 5)),
        (lambda x: tf.real(tf.signal.rfft(x, [8])), (2, 5)),
    ],
)
def test_gradients_where_sizes_are_not_known(build, sizes):
    """They agree with finite differences when only the rank is known."""
    found, expected = slope_and_differences(build, np.random.RandomState(3).randn(*sizes), [None] * len(sizes))
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-7)


@pytest.mark.parametrize(
    ("call", "value"),
    [
        (lambda x: tf.repeat(x, 2, axis=1), _ROWS),
        (lambda x: tf.repeat(x, [1, 0, 2], axis=-2), _ROWS),
        (lambda x: tf.signal.frame(x, 3, 2, pad_end=True), _WAVE),
        (lambda x: tf.signal.frame(x, 2, 1, axis=0), _WAVE),
        (lambda x: tf.signal.overlap_and_add(x, 2), X),
        (lambda x: tf.signal.stft(x, 4, 2), _WAVE),
        (lambda x: tf.signal.fftshift(x), _WAVE),
        (lambda x: tf.signal.ifftshift(x, axes=[-1]), _WAVE),
        (lambda x: tf.linalg.lu_reconstruct(x, [[1, 0, 2], [2, 1, 0]]), _MATRICES),
        (lambda x: _lookup(x, combiner="mean"), _ROWS),
        (lambda x: tf.nn.ctc_loss_v2([[1, 2], [1, 1]], x, [2, 1], [3, 3], blank_index=1), X.reshape(3, 2, 4)),
        (lambda x: tf.nn.ctc_loss_v2([[1, 2], [1, 1]], x, [2, 1], [3, 3], blank_index=-2), X.reshape(3, 2, 4)),
    ],
)
def test_no_rank_is_needed(call, value):
    """What a function computes of a tensor of unknown rank is what it computes of a constant."""
    unknown = tf.placeholder_with_default(value, None)
    found, expected = run([call(unknown), call(tf.constant(value))])
    np.testing.assert_allclose(found, expected, rtol=1e-6)


@pytest.mark.filterwarnings("ignore:Converting sparse")
@pytest.mark.parametrize(
    "call",
    [
        lambda x: tf.repeat(x, [1, 2, 0], axis=1),
        lambda x: tf.repeat(x, 3, axis=-1),
        lambda x: tf.signal.frame(x, 3, 2, pad_end=True, pad_value=1.0),
        lambda x: tf.signal.frame(x, 2, 1, axis=1, pad_end=True),
        lambda x: tf.signal.overlap_and_add(x, 2),
        lambda x: tf.signal.fftshift(x, axes=[1, -1]),
        lambda x: tf.signal.ifftshift(x, axes=2),
        lambda x: tf.abs(tf.signal.stft(x, 4, 2)),
        lambda x: tf.einsum("...j,jk->...k", x, tf.ones([6, 2]) * 0.5),
        lambda x: tf.einsum("b...->...", x),
        lambda x: tf.nn.softmax_cross_entropy_with_logits(labels=tf.abs(x), logits=x, axis=0),
        lambda x: tf.nn.softmax_cross_entropy_with_logits(labels=tf.abs(x), logits=x, axis=-2),
        lambda x: tf.nn.ctc_loss_v2(tf.constant([[1, 2], [0, 3], [2, 2]]), x, [2, 1, 1], [2, 2, 2], blank_index=-1),
        lambda x: tf.nn.ctc_loss_v2(tf.constant([[1, 2], [0, 3], [2, 2]]), x, [2, 1, 1], [2, 2, 2], blank_index=4),
        lambda x: tf.nn.embedding_lookup_sparse(
            x,
            tf.SparseTensor([[0, 0], [0, 1], [2, 0]], [0, 1, 1], [3, 2]),
            tf.SparseTensor([[0, 0], [0, 1], [2, 0]], [0.5, 3.0, 1.0], [3, 2]),
            combiner="sqrtn",
        ),
    ],
)
def test_value_and_gradient_do_not_need_the_rank(session, call):
    """What a function gives for a tensor of unknown rank, and its gradient, are those for the same with a known shape."""
    known = tf.constant(WAVE)
    unknown, feed = of_any_rank(WAVE)
    results = []
    for x in (known, unknown):
        y = call(x)
        gradient = tf.convert_to_tensor(tf.gradients(tf.reduce_sum(y * y), x)[0])
        results.append(session.run([y, gradient], feed))
    for expected, found in zip(*results):
        np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-6)


def test_static_shapes(session):
    """Sizes that follow from constants are known when the graph is built."""
    x = tf.placeholder(tf.float32, [2, 3, 4])
    sizes = tf.placeholder(tf.float32, [None, None, None])
    assert tf.repeat(x, [1, 2, 0], axis=1).shape.as_list() == [2, 3, 4]
    assert tf.repeat(x, [2], axis=0).shape.as_list() == [4, 3, 4]
    assert tf.tile(sizes, [2, 1, 0]).shape.as_list() == [None, None, 0]
    assert tf.reverse_sequence(sizes, [2, 1], seq_axis=1, batch_axis=0).shape.as_list() == [2, None, None]
    images = tf.placeholder(tf.float32, None)
    assert tf.space_to_batch(images, [[0, 0], [0, 0]], 2).shape.rank == 4
    pooled = tf.nn.max_pool(images, [1, 2, 2, 1], [1, 1, 1, 1], "SAME")
    assert tf.gradients(pooled, images)[0].shape.rank == 4
    for number in (tf.shape(x)[0], tf.constant(5), tf.constant(5, tf.int64)):
        assert tf.zeros(number).shape.rank == tf.ones(number).shape.rank == 1


def test_small_dtypes_and_strings(session):
    """Ranges of half precision, products of booleans, and text of complex numbers and strings."""
    assert tf.range(tf.constant(2.5, tf.float16)).dtype == tf.float16
    flags = tf.constant([True, False])
    assert session.run(flags * True).tolist() == [True, False]
    numbers = tf.constant([1.5 - 2j], tf.complex64)
    assert session.run(tf.as_string(numbers, precision=1, width=6)).tolist() == [b"(   1.5,  -2.0)"]
    words = tf.constant(["ab", "xyzw"])
    assert session.run(tf.as_string(words, precision=2, width=4)).tolist() == [b"  ab", b"  xy"]
    assert session.run(tf.as_string(words, precision=2)).tolist() == [b"ab", b"xyzw"]
    assert session.run(tf.strings.format("{}", tf.ones([2, 2], tf.complex64))) == b"[? ? ?...]"
    assert session.run(tf.searchsorted(np.zeros((1, 0), np.float32), np.zeros((1, 0), np.float32))).shape == (1, 0)
    parts = session.run(tf.strings.split([["a b", "c"]]))
    assert parts.indices.tolist() == [[0, 0, 0], [0, 0, 1], [0, 1, 0]]
    words, feed = of_any_rank(np.array([b"hello", b"x"], object))
    assert session.run(tf2.strings.split(words, "l").flat_values, feed).tolist() == [b"he", b"", b"o", b"x"]


def test_names_of_results():
    """Results of functions that are made of several ops have TensorFlow's names."""
    x, numbers = tf.placeholder(tf.float32, [2, 3]), tf.placeholder(tf.int32, [4])
    sparse = tf.SparseTensor([[0, 0]], [1.0], [2, 2])
    made = {
        "concat/concat": tf.concat([x], 0),
        "and/BitwiseAnd": numbers & 3,
        "in_it/in_it": tf.nn.in_top_k(x, [0, 1], 1, name="in_it"),
        "sort/sub_1": tf.sort(numbers),
        "sort_1/Neg_1": tf.sort(x, axis=0),
        "Rank": tf.rank(sparse),
        "Size": tf.size(sparse),
        "Shape/Cast": tf.shape(sparse),
        "AvgPool2D": tf2.nn.avg_pool2d(tf.zeros([1, 4, 4, 1]), 2, 2, "SAME"),
        "Gelu/mul_3": tf2.nn.gelu(x, True),
        "random_uniform/RandomUniform": tf.random_uniform([2]),
        "random_uniform_1": tf.random_uniform([2], 0, 2),
    }
    assert [each.op.name for each in made.values()] == list(made)


def test_partial_shapes():
    """What is known of a shape stays known."""
    x, two = tf.placeholder(tf.float32, [2, 1, 5]), tf.placeholder(tf.int64, [3])
    assert tf.broadcast_to(x, two).shape.as_list() == [2, None, 5]
    assert tf.unravel_index(tf.placeholder(tf.int32, [4]), tf.placeholder(tf.int32, [2])).shape.as_list() == [2, 4]
    assert tf.math.invert_permutation(tf.placeholder(tf.int32)).shape.as_list() == [None]
    blocks, margins = tf.placeholder(tf.int32, [1]), tf.placeholder(tf.int32, [1, 2])
    assert tf.space_to_batch_nd(x, blocks, margins).shape.as_list() == [None, None, 5]
