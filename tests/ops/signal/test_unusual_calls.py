"""Legal calls that programs make now and then, and edges of their values: the numbers are TensorFlow 2.21's."""

import numpy as np

import stoker as tf2
import stoker.compat.v1 as tf
from tests.running import run

X = np.random.RandomState(0).randn(2, 3, 4).astype(np.float32)


def test_cosine_transforms_of_unknown_length():
    """They, and cepstral coefficients, are the same whether the length is known or not."""
    x, unknown = tf.constant(X), tf.placeholder_with_default(X, [None] * 3)
    for function in (tf.signal.dct, tf.signal.mfccs_from_log_mel_spectrograms, lambda x: tf.signal.idct(x, type=4)):
        np.testing.assert_allclose(*run([function(x), function(unknown)]), rtol=1e-6, atol=1e-6)


def test_transforms_of_nothing_have_a_shape(eager):
    """No rows of some length give no rows of the transform's."""
    zeros = tf2.zeros([0, 3, 4], tf2.complex64)
    assert tf2.raw_ops.FFTND(input=zeros, fft_length=[5, 4], axes=[1, 2]).shape == (0, 5, 4)
