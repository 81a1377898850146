"""Legal calls that programs make now and then: unknown ranks, odd dtypes, large windows. Numbers are TensorFlow 2.21's."""

import numpy as np
import pytest

import stoker as tf2
import stoker.compat.v1 as tf


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
SQUARE = np.cos(np.arange(9, dtype=np.float32)).reshape(3, 3)


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


def test_permutations_of_matrices_of_unknown_rank(session):
    """The matrices come back from their factors whatever is known of their rank."""
    matrices, feed = of_any_rank(np.stack([SQUARE + 3 * np.eye(3, dtype=np.float32)] * 2))
    found = session.run(tf.linalg.lu_reconstruct(*tf.linalg.lu(matrices)), feed)
    np.testing.assert_allclose(found, feed[matrices], rtol=1e-5, atol=1e-6)


def test_gradient_of_a_diagonal_beside_an_ellipsis(session):
    """A repeated label next to '...' puts the gradient on the diagonal."""
    x, feed = of_any_rank(np.ones((2, 3, 3), np.float32))
    gradient = tf.gradients(tf.einsum("...ii->...i", x), x)[0]
    np.testing.assert_array_equal(session.run(gradient, feed), np.stack([np.eye(3)] * 2))


@pytest.mark.parametrize("dtype", [np.uint8, np.int8, np.int16, np.int32, np.uint16, np.uint32])
def test_means_of_integers_do_not_overflow(session, dtype):
    """The mean of large small integers is taken in 64 bits."""
    numbers = np.full((3, 4), np.iinfo(dtype).max - 1, dtype)
    assert session.run(tf.reduce_mean(tf.constant(numbers), 1)).tolist() == [np.iinfo(dtype).max - 1] * 3
    assert session.run(tf.reduce_mean(tf.constant([-7, -2, 3], tf.int8))) == -2


@pytest.mark.parametrize("dtype", [np.int32, np.int64, np.int16, np.uint8, np.uint32, np.uint64])
def test_einsum_of_integers(session, dtype):
    """Integer contractions sum and wrap in the dtype of their inputs."""
    a, b = np.arange(6, dtype=dtype).reshape(2, 3), np.arange(6, dtype=dtype).reshape(3, 2)
    found = session.run(tf.einsum("ij,jk->k", tf.constant(a), tf.constant(b)))
    assert found.dtype == dtype
    np.testing.assert_array_equal(found, (a @ b).sum(0))


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


def test_fractions_beside_integers_at_once(eager):
    """An operator given a Python fraction beside integers is a TypeError, as TensorFlow's eager mode words it."""
    x = tf.constant([1, 2])
    for call in (lambda: x - 2.5, lambda: x * 2.5, lambda: x // 2.5, lambda: x % 2.5, lambda: x**2.5):
        with pytest.raises(TypeError, match=r"Cannot convert 2\.5 to EagerTensor of dtype int32"):
            call()


def test_counts_have_the_dtype_of_what_is_counted(eager):
    """tf.sparse.bincount of int64 counts in int64."""
    for dtype in (tf.int32, tf.int64):
        values = tf.SparseTensor([[0, 0], [1, 1]], tf.constant([2, 0], dtype), [2, 3])
        assert tf.sparse.bincount(values).values.dtype == dtype


def test_pooling_windows_of_any_size(session):
    """Windows far larger than the input cover all of it, and cost no more than it."""
    x = tf.constant(np.arange(16, dtype=np.float32).reshape(1, 4, 4, 1))
    volume = tf.constant(np.arange(64, dtype=np.float32).reshape(1, 4, 4, 4, 1))
    large = 2**30
    largest = tf.nn.max_pool(x, [1, large, large, 1], [1, 1, 1, 1], "SAME")
    mean = tf.nn.avg_pool(x, [1, large, large, 1], [1, 1, 1, 1], "SAME")
    _, places = tf.nn.max_pool_with_argmax(x, [1, large, large, 1], [1, 1, 1, 1], "SAME")
    found = session.run(
        [largest, mean, places, tf.nn.max_pool3d(volume, large, 1, "SAME"), tf.gradients(largest, x)[0]]
    )
    for value, expected in zip(found[:4], (15, 7.5, 15, 63)):
        assert set(value.ravel().tolist()) == {expected}
    assert found[4].ravel().tolist() == [0.0] * 15 + [16.0]
    corner = session.run(tf.nn.avg_pool3d(volume, 5, 1, "SAME")).ravel()[:3]
    assert corner.tolist() == [21.0, 21.5, 21.5]


def test_fractional_pooling_divides_in_single_precision(session):
    """A ratio of 1.2 makes 5 of 6 columns."""
    x = tf.placeholder(tf.float32, [2, 7, 6, 3])
    assert tf2.nn.fractional_avg_pool(x, [1.0, 1.5, 1.2, 1.0], seed=3)[0].shape.as_list() == [2, 4, 5, 3]


def test_fake_quantization_of_a_range_turned_around(session):
    """Where the minimum is above the maximum, everything becomes the (moved) minimum."""
    found = session.run(tf.fake_quant_with_min_max_vars([-2.0, 0.0, 2.0], 0.38, -0.48))
    np.testing.assert_allclose(found, [0.38109803] * 3, rtol=1e-6)


def test_accidental_hits_count_once(session):
    """A class that is true twice is taken out of the sampled ones once, so that its loss is finite."""
    labels = tf.constant([[0, 0], [2, 2]], tf.int64)
    sampled = (tf.constant([0, 1], tf.int64), tf.fill([2, 2], 0.3), tf.fill([2], 0.3))
    loss = tf.nn.nce_loss(
        tf.ones([6, 3]) * 0.1,
        tf.zeros([6]),
        labels,
        tf.ones([2, 3]),
        num_sampled=2,
        num_classes=6,
        num_true=2,
        sampled_values=sampled,
        remove_accidental_hits=True,
    )
    assert np.isfinite(session.run(loss)).all()


def test_third_derivative_of_batch_normalization(session):
    """In training, derivatives of any order go through the batch's own mean and variance."""
    data = np.random.RandomState(0).randn(2, 3, 2, 3)
    x = tf.placeholder(tf.float64, data.shape)
    scale, offset = tf.constant([1.0, 2.0, 0.5], tf.float64), tf.zeros([3], tf.float64)
    none = tf.zeros([0], tf.float64)
    y = tf.raw_ops.FusedBatchNorm(x=x, scale=scale, offset=offset, mean=none, variance=none, epsilon=0.1).y
    weights = np.cos(np.arange(data.size)).reshape(data.shape)
    value = tf.reduce_sum(tf.tanh(y) * weights)
    for _ in range(2):
        value = tf.reduce_sum(tf.gradients(value, x)[0] * weights)
    third = session.run(tf.gradients(value, x)[0], {x: data})
    for place in ((0, 0, 0, 0), (1, 2, 1, 2)):
        step = np.zeros_like(data)
        step[place] = 1e-5
        change = session.run(value, {x: data + step}) - session.run(value, {x: data - step})
        np.testing.assert_allclose(third[place], change / 2e-5, rtol=1e-5)


def test_names_of_penalties(session):
    """Penalties add up from zero, which decides the names of their nodes."""
    regularizers = tf.keras.regularizers
    for name, regularizer in (
        ("add_1", regularizers.l1_l2(0.1, 0.2)),
        ("add", regularizers.l1_l2(0.1, 0.0)),
        ("Const", regularizers.l1_l2(0.0, 0.0)),
        ("mul", regularizers.l1(0.1)),
        ("mul", regularizers.l2(0.1)),
    ):
        with tf.Graph().as_default():
            tf.layers.dense(tf.zeros([2, 3]), 2, kernel_regularizer=regularizer, name="d")
            assert [each.name for each in tf.losses.get_regularization_losses()] == [f"d/kernel/Regularizer/{name}:0"]
    assert regularizers.l1(0.5).get_config() == {"l1": 0.5}
    assert regularizers.l2(0.5).get_config() == {"l2": 0.5}


def test_ragged_ids_are_looked_up(session):
    """embedding_lookup_sparse takes ragged ids."""
    table = tf.constant([[1.0], [2.0], [4.0]])
    found = tf2.nn.embedding_lookup_sparse(table, tf2.ragged.constant([[0, 1], [2]]), None, combiner="sum")
    assert session.run(found).tolist() == [[3.0], [4.0]]


def test_vocabulary_table_of_buckets_alone(session):
    """Without a vocabulary, keys are strings unless stated."""
    found = tf.lookup.StaticVocabularyTable(None, 5).lookup(tf.constant(["a", "z"]))
    assert all(0 <= bucket < 5 for bucket in session.run(found))


def test_equal_maxima_of_volumes_share_no_gradient(session):
    """The gradient of 3-D max pooling goes whole to every element that equals the maximum."""
    x = tf.ones([1, 1, 1, 4, 1])
    largest = tf.nn.max_pool3d(x, [1, 1, 1, 2, 1], [1, 1, 1, 1, 1], "VALID")
    gradient = tf.gradients(largest, x, tf.reshape(tf.constant([1.0, 2.0, 3.0]), [1, 1, 1, 3, 1]))[0]
    assert session.run(gradient).ravel().tolist() == [1.0, 3.0, 5.0, 3.0]
