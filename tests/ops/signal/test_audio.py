"""WAV files, spectrograms and mel-frequency cepstral coefficients."""

import struct

import numpy as np
import pytest

import stoker as tf2
from stoker._src.base.errors import InvalidArgumentError
from tests.ops.samples import WHEN_BUILT, Sample, check_sample, samples

SOUND = (np.random.RandomState(0).rand(800, 2) * 2 - 1).astype(np.float32)
PCM = struct.pack("<HHIIHH", 1, 1, 8000, 16000, 2, 16)


def riff(form, data, extra=b""):
    """A WAV file of these chunks."""
    body = b"WAVEfmt " + struct.pack("<I", len(form)) + form + extra + b"data" + struct.pack("<I", len(data)) + data
    return b"RIFF" + struct.pack("<I", len(body)) + body


def text(data):
    """A scalar string."""
    array = np.empty((), object)
    array[()] = data
    return array


def spectrogram(x, window, stride):
    """Squared magnitudes of windows under a periodic Hann window, padded to a power of two."""
    hann = 0.5 - 0.5 * np.cos(2 * np.pi * np.arange(window) / window)
    starts = range(0, len(x) - window + 1, stride)
    rows = [[np.abs(np.fft.rfft(x[s : s + window, c] * hann, 512)) ** 2 for s in starts] for c in range(x.shape[1])]
    return np.array(rows, np.float32)


SHORTS = struct.pack("<4h", -32768, 32767, 1, -1)
FOUR = np.float32([[-1], [32767 / 32768], [1 / 32768], [-1 / 32768]])
POWER = spectrogram(SOUND, 400, 160)
# Numbers of TensorFlow 2.21 for `POWER` at 16 kHz.
COEFFICIENTS = [23.232898712158203, -4.723966598510742, -1.6834114789962769, -1.8106576204299927, -2.091676712036133]

SAMPLES = [
    Sample("DecodeWav", [text(riff(PCM, SHORTS))], reference=lambda _: (FOUR, np.int32(8000)), static=False),
    Sample("DecodeWav", [text(riff(PCM + b"\0\0", SHORTS, b"LIST" + struct.pack("<I", 4) + b"abcd"))], {"desired_samples": 2}, static=False, reference=lambda _: (FOUR[:2], np.int32(8000))),
    Sample("DecodeWav", [text(riff(PCM, SHORTS))], {"desired_channels": 2, "desired_samples": 5}, reference=lambda _: (np.repeat(np.append(FOUR, [[0]], 0), 2, 1), np.int32(8000))),
    Sample("DecodeWav", [text(riff(struct.pack("<HHIIHH", 3, 1, 8000, 32000, 4, 32), b""))], raises=(InvalidArgumentError, "Expected 1")),
    Sample("DecodeWav", [text(riff(struct.pack("<HHIIHH", 1, 1, 8000, 8000, 1, 8), b""))], raises=(InvalidArgumentError, "16-bit")),
    Sample("DecodeWav", [text(riff(PCM, SHORTS)[:-3])], raises=(InvalidArgumentError, "too short")),
    Sample("DecodeWav", [text(b"")], raises=(InvalidArgumentError, "too short")),
    Sample("EncodeWav", [FOUR, np.int32(8000)], reference=lambda *_: text(riff(PCM, SHORTS)), gradient=False),
    Sample("EncodeWav", [np.float32([[2], [-3], [-0.5 / 32768]]), np.int32(8000)], reference=lambda *_: text(riff(PCM, struct.pack("<3h", 32767, -32768, -1))), gradient=False),
    Sample("EncodeWav", [FOUR, np.int32(0)], raises=(InvalidArgumentError, "sample_rate")),
    Sample("AudioSpectrogram", [SOUND], {"window_size": 400, "stride": 160, "magnitude_squared": True}, reference=lambda x: POWER, gradient=False),
    Sample("AudioSpectrogram", [SOUND], {"window_size": 400, "stride": 160}, reference=lambda x: np.sqrt(POWER), gradient=False),
    Sample("AudioSpectrogram", [SOUND[:9]], {"window_size": 400, "stride": 160}, reference=lambda x: np.zeros((2, 0, 257), np.float32), gradient=False),
    Sample("AudioSpectrogram", [SOUND], {"window_size": 1, "stride": 160}, raises=(WHEN_BUILT, "window size 1")),
    Sample("Mfcc", [POWER, np.int32(16000)], gradient=False),
    Sample("Mfcc", [POWER, np.int32(1000)], reference=lambda *_: np.zeros((2, 3, 13), np.float32), gradient=False),
    Sample("Mfcc", [POWER, np.int32(16000)], {"filterbank_channel_count": 9}, raises=(InvalidArgumentError, "channel_count 9")),
]  # fmt: skip


@samples(SAMPLES)
def test_sample(sample) -> None:
    """The op's value, shape, eager form and GraphDef agree with each other and with NumPy."""
    check_sample(sample)


def test_coefficients(eager):
    """The cepstral coefficients are TensorFlow's."""
    found = tf2.raw_ops.Mfcc(spectrogram=POWER, sample_rate=16000).numpy()
    np.testing.assert_allclose(found[0, 0, :5], COEFFICIENTS, rtol=1e-5)


def test_there_and_back(eager):
    """What is encoded is decoded, to 16 bits."""
    audio, rate = tf2.audio.decode_wav(tf2.audio.encode_wav(SOUND, 16000))
    np.testing.assert_allclose(audio, SOUND, atol=1 / 65536 + 1e-7)
    assert rate.numpy() == 16000
    with pytest.raises(tf2.errors.InvalidArgumentError, match="RIFF"):
        tf2.audio.decode_wav(b"NOTA file at all")
