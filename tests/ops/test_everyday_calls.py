"""Calls as programs make them, in forms between the families: sparse arguments, and tensors of unknown rank."""

import numpy as np
import pytest

import stoker.compat.v1 as tf
from tests.running import run

X = np.random.RandomState(0).randn(2, 3, 4).astype(np.float32)


def _sparse():
    return tf.SparseTensor([[0, 1], [1, 0], [1, 2]], [1.0, -4.0, 9.0], [2, 3])


@pytest.mark.parametrize("name", ["abs", "negative", "sign", "square", "tanh", "erf", "sqrt"])
def test_functions_that_keep_zero_take_sparse_tensors(name):
    """They are taken of the values; the places and the shape stay."""
    function = getattr(tf, name)
    found, of_values = run([function(_sparse()), function(tf.constant([1.0, -4.0, 9.0]))])
    np.testing.assert_array_equal(found.values, of_values)
    np.testing.assert_array_equal(found.indices, [[0, 1], [1, 0], [1, 2]])
    np.testing.assert_array_equal(found.dense_shape, [2, 3])


def test_what_a_sparse_tensor_would_be_when_dense():
    """Size, rank and zeros are those of the dense tensor; identity and tuple give sparse tensors."""
    sparse = _sparse()
    size, rank, zeros, same, grouped, times = run(
        [
            tf.size(sparse),
            tf.rank(sparse),
            tf.zeros_like(sparse),
            tf.identity(sparse),
            tf.tuple([sparse])[0],
            tf.fill([2, 3], 2.0) * sparse,
        ]
    )
    assert (size, rank, zeros.shape) == (6, 2, (2, 3))
    np.testing.assert_array_equal(same.values, [1, -4, 9])
    np.testing.assert_array_equal(grouped.values, [1, -4, 9])
    np.testing.assert_array_equal(times.values, [2, -8, 18])


def test_a_threshold_is_for_sums():
    """What stands in one operand alone stays in the sum of sparse tensors, however small."""
    other = tf.SparseTensor([[0, 0], [1, 0], [1, 2]], [0.5, 4.0, 1.0], [2, 3])
    found = run(tf.sparse_add(_sparse(), other, threshold=2.0))
    np.testing.assert_array_equal(found.indices, [[0, 0], [0, 1], [1, 2]])
    np.testing.assert_array_equal(found.values, [0.5, 1, 10])


def test_sums_of_embeddings_count_negative_weights():
    """safe_embedding_lookup_sparse passes over weights that are not positive for means, not for sums."""
    ids = tf.SparseTensor([[0, 0], [0, 1]], tf.constant([1, 2], tf.int64), [1, 2])
    weights = tf.SparseTensor([[0, 0], [0, 1]], [2.0, -1.0], [1, 2])
    table = np.arange(6.0, dtype=np.float32).reshape(3, 2)
    found = [tf.nn.safe_embedding_lookup_sparse(table, ids, weights, combiner=how) for how in ("sum", "mean")]
    np.testing.assert_allclose(run(found), [[2 * table[1] - table[2]], [table[1]]])


def test_sparse_tensors_of_unknown_rank_grow_when_joined():
    """The rank need not be known to join tensors of different sizes."""
    shape = tf.placeholder_with_default(np.array([2, 3]), [None])
    part = tf.SparseTensor(tf.placeholder_with_default(np.array([[1, 2]]), [None, None]), [5.0], shape)
    wide = tf.SparseTensor([[0, 4]], [7.0], [1, 5])
    for axis, size in ((0, [3, 5]), (-2, [3, 5]), (1, [2, 8]), (-1, [2, 8])):
        assert run(tf.sparse_concat(axis, [part, wide], expand_nonconcat_dim=True)).dense_shape.tolist() == size


@pytest.mark.parametrize("shape", [None, [None] * 3, [2, 3, 4]])
@pytest.mark.parametrize(("axis", "batch_dims"), [(1, 0), (2, 0), (-1, 1), (1, 1), (2, -1)])
def test_gradients_of_lookups_need_no_rank(shape, axis, batch_dims):
    """What was looked up twice gets both gradients, along any axis, whatever is known when the graph is built."""
    x = tf.placeholder_with_default(X, shape)
    indices = np.array([[0, 2, 2], [1, 0, 1]])
    found = tf.gather(x, indices, axis=axis, batch_dims=batch_dims)
    weights = np.random.RandomState(1).randn(*run(tf.shape(found)))
    gradient = run(tf.gradients(found * weights.astype(np.float32), x)[0])
    step = np.zeros_like(X)
    step[1, 2, 1] = 1.0
    with tf.Session() as session:
        moved, plain = (session.run(found, {x: value}) for value in (X + step, X))
    np.testing.assert_allclose(gradient[1, 2, 1], ((moved - plain) * weights).sum(), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("axis", [0, 1, -2, -1])
def test_tensors_of_unknown_rank_are_sorted(axis):
    """Along any axis, which the tensor may not yet be known to have."""
    x = tf.placeholder_with_default(X, None)
    np.testing.assert_array_equal(run(tf.sort(x, axis=axis)), np.sort(X, axis))
    np.testing.assert_array_equal(run(tf.argsort(x, axis=axis)), np.argsort(X, axis, kind="stable"))


@pytest.mark.parametrize("shape", [None, []])
def test_evenly_spaced_numbers_have_a_gradient(shape):
    """Both ends of linspace get their share of each number's gradient."""
    start, stop = (tf.placeholder_with_default(np.float32(value), shape) for value in (1, 3))
    numbers = tf.linspace(start, stop, 5)
    values, gradients = run([numbers, tf.gradients(numbers * [1.0, 10.0, 100.0, 1000.0, 10000.0], [start, stop])])
    np.testing.assert_allclose(values, [1, 1.5, 2, 2.5, 3])
    np.testing.assert_allclose(gradients, [308.5, 10802.5])


def test_evenly_spaced_columns():
    """Ends of different shapes broadcast before the numbers get a dimension of their own."""
    found = run(tf.linspace(tf.zeros([2, 3]), [1.0, 2.0, 4.0], 3, axis=1))
    np.testing.assert_array_equal(found, np.tile([[0, 0, 0], [0.5, 1, 2], [1, 2, 4]], (2, 1, 1)))


def test_text_of_what_is_no_number():
    """Zeros fill up numbers only, as C's printf does it."""
    found = run(tf.as_string([1.5, np.inf, -np.inf, np.nan], precision=1, width=6, fill="0"))
    assert found.tolist() == [b"0001.5", b"   inf", b"  -inf", b"   nan"]


def _slope(build, value, shape):
    """A gradient, and finite differences of what it is the gradient of, at the same few places."""
    x = tf.placeholder_with_default(value, shape)
    total = tf.reduce_sum(tf.sin(build(x)))
    gradient = tf.gradients(total, x)[0]
    found, expected = [], []
    with tf.Session() as session:
        whole = session.run(gradient)
        for place in list(np.ndindex(value.shape))[:: max(1, value.size // 5)]:
            step = np.zeros_like(value)
            step[place] = 1e-5
            expected.append((session.run(total, {x: value + step}) - session.run(total, {x: value - step})) / 2e-5)
            found.append(whole[place])
    return found, expected


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
    found, expected = _slope(build, np.random.RandomState(3).randn(*sizes), [None] * len(sizes))
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-7)


def test_cosine_transforms_of_unknown_length():
    """They, and cepstral coefficients, are the same whether the length is known or not."""
    x, unknown = tf.constant(X), tf.placeholder_with_default(X, [None] * 3)
    for function in (tf.signal.dct, tf.signal.mfccs_from_log_mel_spectrograms, lambda x: tf.signal.idct(x, type=4)):
        np.testing.assert_allclose(*run([function(x), function(unknown)]), rtol=1e-6, atol=1e-6)


def test_direction_of_complex_numbers_has_a_gradient():
    """x / |x| turns with x, though its length stays."""
    found, expected = _slope(lambda x: tf.imag(tf.sign(tf.complex(x, 2 * x + 1))), np.array([0.3, -2.0, 1.5]), [3])
    np.testing.assert_allclose(found, expected, rtol=1e-6)


_ROWS, _WAVE = X[0], np.arange(24, dtype=np.float32).reshape(2, 12)
_MATRICES = X[:, :, :3] @ X[:, :, :3].transpose(0, 2, 1) + 2 * np.eye(3, dtype=np.float32)


def _lookup(ids, **options):
    weights = tf.SparseTensor([[0, 0], [1, 0]], [2.0, -1.0], [2, 1])
    sparse = tf.SparseTensor([[0, 0], [1, 0]], tf.constant([1, 2], tf.int64), [2, 1])
    return tf.nn.embedding_lookup_sparse(ids, sparse, weights, **options)


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


def test_rows_of_ids_of_unknown_rank():
    """safe_embedding_lookup_sparse combines the last dimension of ids of any rank."""
    table = np.arange(6.0, dtype=np.float32).reshape(3, 2)
    places = tf.placeholder_with_default(np.array([[0, 1, 0], [1, 0, 1]]), None)
    ids = tf.SparseTensor(places, tf.constant([1, 2], tf.int64), tf.placeholder_with_default(np.array([2, 2, 2]), None))
    found = run(tf.nn.safe_embedding_lookup_sparse(table, ids))
    np.testing.assert_array_equal(found, [[[0, 0], [2, 3]], [[4, 5], [0, 0]]])
