"""Windows, frames, short-time transforms, cosine transforms."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.fft
import scipy.signal

import stoker.compat.v1 as tf
from tests.ops.samples import f64
from tests.running import run_built

X = f64(2, 40)


@pytest.mark.parametrize("length", [1, 2, 5, 8])
def test_windows(length) -> None:
    """Windows are scipy's; a periodic window of odd length is the symmetric one, as in TensorFlow."""
    periodic = length % 2 == 0
    for name in ("hann", "hamming"):
        made = getattr(tf.signal, f"{name}_window")
        expected = scipy.signal.get_window(name, length, fftbins=periodic)
        assert np.allclose(run_built(lambda made=made: made(length)), expected, atol=1e-6)
        symmetric = scipy.signal.get_window(name, length, fftbins=False)
        assert np.allclose(run_built(lambda made=made: made(length, periodic=False, dtype=tf.float64)), symmetric)
    assert np.allclose(run_built(lambda: tf.signal.kaiser_window(length, dtype=tf.float64)), np.kaiser(length, 12.0))
    k = np.arange(length)
    vorbis = np.sin(np.pi / 2 * np.sin(np.pi * (k + 0.5) / length) ** 2)
    assert np.allclose(run_built(lambda: tf.signal.vorbis_window(length, dtype=tf.float64)), vorbis)


def test_kaiser_bessel_derived_window() -> None:
    """Squares of a power-complementary window and of itself moved by half add up to one."""
    window = run_built(lambda: tf.signal.kaiser_bessel_derived_window(8, dtype=tf.float64))
    assert np.allclose(window[:4] ** 2 + window[4:] ** 2, 1)


def test_frame_and_overlap_and_add() -> None:
    """Frames overlap; without padding, incomplete ones are left out."""
    x = np.arange(10.0)
    assert run_built(lambda: tf.signal.frame(x, 4, 3)).tolist() == [[0, 1, 2, 3], [3, 4, 5, 6], [6, 7, 8, 9]]
    padded = run_built(lambda: tf.signal.frame(x, 4, 4, pad_end=True, pad_value=-1))
    assert padded.tolist() == [[0, 1, 2, 3], [4, 5, 6, 7], [8, 9, -1, -1]]
    assert run_built(lambda: tf.signal.frame(X.T, 4, 4, axis=0)).shape == (10, 4, 2)
    assert run_built(lambda: tf.signal.frame(x, 20, 3)).shape == (0, 20)
    assert run_built(lambda: tf.signal.overlap_and_add(np.ones((2, 3)), 2)).tolist() == [1, 1, 2, 1, 1]
    with pytest.raises(ValueError, match="at least 2"):
        tf.signal.overlap_and_add(x, 2)
    with tf.Graph().as_default(), tf.Session() as session:
        unknown = tf.placeholder(tf.float64, [None])
        assert session.run(tf.signal.frame(unknown, 4, 3), {unknown: x}).shape == (3, 4)


def test_stft_and_back() -> None:
    """Transforms of windowed frames, and the signal they came from (away from its ends)."""
    found = run_built(lambda: tf.signal.stft(X, 8, 4, 16))
    frames = np.stack([X[:, i : i + 8] for i in range(0, 33, 4)], 1)
    expected = np.fft.rfft(frames * scipy.signal.get_window("hann", 8), 16)
    assert np.allclose(found, expected)
    back = run_built(
        lambda: tf.signal.inverse_stft(
            tf.signal.stft(tf.constant(X), 8, 2), 8, 2, window_fn=tf.signal.inverse_stft_window_fn(2)
        )
    )
    assert np.allclose(back[:, 8:32], X[:, 8:32])


@pytest.mark.parametrize("norm", [None, "ortho"])
@pytest.mark.parametrize("type", [1, 2, 3, 4])
def test_dct(type, norm) -> None:
    """All four types are scipy's, cut or filled up to n; the inverse undoes the orthonormal ones."""
    if type == 1 and norm:
        with pytest.raises(ValueError, match="Type-I"):
            tf.signal.dct(X, 1, norm=norm)
        return
    for n in (None, 6, 50):
        assert np.allclose(
            run_built(lambda n=n: tf.signal.dct(X, type, n, norm=norm)), scipy.fft.dct(X, type, n, norm=norm)
        )
    if norm:
        assert np.allclose(run_built(lambda: tf.signal.idct(tf.signal.dct(X, type, norm=norm), type, norm=norm)), X)


def test_mdct_and_back() -> None:
    """The inverse gives back the signal between the first and last half frame."""
    for norm in (None, "ortho"):
        back = run_built(lambda norm=norm: tf.signal.inverse_mdct(tf.signal.mdct(X, 8, norm=norm), norm=norm))
        assert np.allclose(back[:, 4:-4], X[:, 4:-4])
    with pytest.raises(ValueError, match="multiple of 4"):
        tf.signal.mdct(X, 6)


def test_sizes_that_are_known_when_run() -> None:
    """Lengths of frames and transforms, and axes, may be tensors: results are those of numbers."""
    signal, unknown = tf.placeholder(tf.float64, [None, None]), tf.placeholder(tf.float64)
    number, spectra = tf.placeholder(tf.int32, []), tf.placeholder(tf.float64, [None, None, None])
    pairs = [
        (tf.signal.mdct(signal, number), tf.signal.mdct(X, 8), 8),
        (tf.signal.stft(signal, number, 4), tf.signal.stft(X, 7, 4), 7),
        (tf.signal.stft(signal, 8, 4, fft_length=tf.cast(number, tf.float32)), tf.signal.stft(X, 8, 4, 16), 16),
        (tf.signal.frame(unknown, 3, 2, pad_end=True, axis=number), tf.signal.frame(X, 3, 2, True, axis=0), -2),
        (tf.signal.fftshift(signal, tf.reshape(number, [1])), tf.signal.fftshift(X, [1]), -1),
        (tf.signal.overlap_and_add(unknown, number), tf.signal.overlap_and_add(X, 3), 3),
    ]
    with tf.Session() as session:
        for found, expected, size in pairs:
            found, expected = session.run([found, expected], {signal: X, unknown: X, number: size})
            np.testing.assert_allclose(found, expected, atol=1e-12)
        parts = session.run(tf.signal.mdct(X, 8))
        back = session.run(tf.signal.inverse_mdct(spectra), {spectra: parts})
    assert np.allclose(back[:, 4:-4], X[:, 4:-4])


def test_mel_matrix_and_cepstral_coefficients() -> None:
    """Each mel band is a triangle with its top at one of the edges; coefficients are scaled cosine transforms."""
    weights = run_built(lambda: tf.signal.linear_to_mel_weight_matrix(10, 65, 16000, 80.0, 7600.0, tf.float64))
    assert weights.shape == (65, 10) and (weights[0] == 0).all() and (weights >= 0).all() and weights.max() <= 1
    expected = scipy.fft.dct(X) / np.sqrt(2 * 40)
    assert np.allclose(run_built(lambda: tf.signal.mfccs_from_log_mel_spectrograms(X)), expected)
    with pytest.raises(ValueError, match="lower_edge"):
        tf.signal.linear_to_mel_weight_matrix(lower_edge_hertz=5000.0)


def test_shifts() -> None:
    """fftshift and ifftshift are NumPy's, for odd sizes too."""
    assert (run_built(lambda: tf.signal.fftshift(X[:, :7])) == np.fft.fftshift(X[:, :7])).all()
    assert (run_built(lambda: tf.signal.ifftshift(X[:, :7], 1)) == np.fft.ifftshift(X[:, :7], 1)).all()
