"""Audio: WAV files, spectrograms, and mel-frequency cepstral coefficients."""

from __future__ import annotations

import functools
import struct
from typing import Any

import numpy as np
import torch

from stoker._src.base import dtypes
from stoker._src.base.errors import InvalidArgumentError
from stoker._src.base.export import export
from stoker._src.base.shapes import SCALAR, Shape
from stoker._src.graph.conversion import convert_to_tensor
from stoker._src.graph.definition import INT32, define
from stoker._src.graph.tensor import Tensor
from stoker._src.ops.support.movement import allocatable

_FULL = 32768.0  # the 16-bit value of a sample of 1.0, which is just out of range


def _invalid(message: str) -> InvalidArgumentError:
    return InvalidArgumentError(None, None, message)


# ---- WAV files --------------------------------------------------------------------------------------------------

DECODE_WAV = define(
    "DecodeWav(contents: scalar string) -> (audio: float32, sample_rate: int32)",
    desired_channels=INT32(-1),
    desired_samples=INT32(-1),
)


class _Bytes:
    """Reads consecutive parts of a file."""

    def __init__(self, data: bytes) -> None:
        self.data, self.at = data, 0

    def take(self, count: int) -> bytes:
        if count > len(self.data) - self.at:
            raise _invalid(f"Data too short when trying to read string: {count} bytes at {self.at} of {len(self.data)}")
        self.at += count
        return self.data[self.at - count : self.at]

    def expect(self, text: bytes) -> None:
        found = self.take(len(text))
        if found != text:
            raise _invalid(f"Header mismatch: Expected {text.decode()} but found {found!r}")

    def number(self, form: str) -> int:
        return struct.unpack("<" + form, self.take(struct.calcsize(form)))[0]


def decode_wav(data: bytes) -> tuple[np.ndarray, int]:
    """The samples [count, channels], as 16-bit integers, and the sample rate of a PCM file.

    Raises:
        InvalidArgumentError: the bytes are not a 16-bit PCM WAV file.
    """
    file = _Bytes(data)
    file.expect(b"RIFF")
    file.take(4)
    file.expect(b"WAVE")
    file.expect(b"fmt ")
    size = file.number("I")
    if size not in (16, 18):
        raise _invalid(f"Bad chunk size for WAV: Expected 16 or 18, but got{size}")
    kind, channels, rate = file.number("H"), file.number("H"), file.number("I")
    per_second, per_sample, bits = file.number("I"), file.number("H"), file.number("H")
    if kind != 1:
        raise _invalid(f"Bad audio format for WAV: Expected 1 (PCM), but got{kind}")
    if channels < 1:
        raise _invalid(f"Bad number of channels for WAV: Expected at least 1, but got {channels}")
    if bits != 16:
        raise _invalid(f"Can only read 16-bit WAV files, but received {bits}")
    if per_sample != channels * 2 or per_second != rate * per_sample:
        raise _invalid(
            f"Bad bytes per sample or per second in WAV header: {per_sample} and {per_second} for {channels} channels at {rate} Hz"
        )
    file.take(size - 16)
    samples: np.ndarray | None = None
    while file.at < len(data):
        name, length = file.take(4), file.number("I")
        content = file.take(length)
        if name == b"data":
            if samples is not None:
                raise _invalid("More than one data chunk found in WAV")
            whole = length - length % per_sample
            samples = np.frombuffer(content[:whole], "<i2").reshape(-1, channels)
    if samples is None:
        raise _invalid("No data chunk found in WAV")
    if rate > 2**31 - 1:
        raise _invalid(f"Sample rate {rate} of WAV is out of range for an int32")
    return samples, rate


def _check_desired(desired_channels: int, desired_samples: int) -> None:
    if desired_channels < -1 or desired_samples < -1:
        raise _invalid(
            f"desired_channels and desired_samples must be -1 or not negative, got {desired_channels} and {desired_samples}"
        )


@DECODE_WAV.kernel
def decode_wav_kernel(contents: np.ndarray, *, desired_channels: int, desired_samples: int) -> Any:
    _check_desired(desired_channels, desired_samples)
    samples, rate = decode_wav(contents.item())
    audio = samples.astype(np.float32) / np.float32(_FULL)
    count, channels = audio.shape
    if desired_channels > 0 and desired_channels != channels:
        allocatable([count, desired_channels], 4)
        # Channels beyond those in the file repeat the first one.
        more = np.repeat(audio[:, :1], max(desired_channels - channels, 0), axis=1)
        audio = np.concatenate([audio[:, :desired_channels], more], axis=1)
    if desired_samples >= 0 and desired_samples != count:
        allocatable([desired_samples, audio.shape[1]], 4)
        short = max(desired_samples - count, 0)
        audio = np.concatenate([audio[:desired_samples], np.zeros((short, audio.shape[1]), np.float32)])
    return torch.from_numpy(np.ascontiguousarray(audio)), torch.tensor(rate, dtype=torch.int32)


@DECODE_WAV.shape
def decode_wav_shape(contents: Shape, *, desired_channels: int, desired_samples: int) -> tuple[Shape, Shape]:
    _check_desired(desired_channels, desired_samples)
    channels = None if desired_channels == -1 else desired_channels
    count = None if desired_samples == -1 else desired_samples
    return Shape((count, channels)), SCALAR


ENCODE_WAV = define("EncodeWav(audio: matrix float32, sample_rate: scalar host int32) -> (contents: string)")
ENCODE_WAV.shape(lambda audio, sample_rate: SCALAR)


@ENCODE_WAV.kernel
def encode_wav_kernel(audio: torch.Tensor, sample_rate: int) -> np.ndarray:
    channels = audio.shape[1]
    if not 0 < channels < 2**16:
        raise _invalid(f"num_channels must be in (0, 2^16), got: {channels}")
    if sample_rate <= 0:
        raise _invalid(f"sample_rate must be in (0, 2^32), got: {sample_rate}")
    scaled = torch.clamp(audio.cpu() * _FULL, -_FULL, _FULL - 1).nan_to_num()
    # Rounds halves away from zero, unlike torch.round.
    data = torch.clamp(torch.trunc(scaled + torch.copysign(torch.tensor(0.5), scaled)), -_FULL, _FULL - 1)
    data = data.to(torch.int16).numpy().astype("<i2").tobytes()
    header = struct.pack(
        "<4sI4s4sIHHIIHH4sI",
        *(b"RIFF", len(data) + 36, b"WAVE", b"fmt ", 16, 1, channels),
        *(sample_rate, sample_rate * channels * 2, channels * 2, 16, b"data", len(data)),
    )
    result = np.empty((), dtype=object)
    result[()] = header + data
    return result


@export("audio.decode_wav")
def decode_wav_file(
    contents: Any, desired_channels: int = -1, desired_samples: int = -1, name: str | None = None
) -> Any:
    """Decodes a 16-bit PCM WAV file: float32 samples [samples, channels] in [-1, 1), and the sample rate as an int32 scalar.

    Args:
        contents: the file, a string scalar.
        desired_channels: the number of channels to return; -1 for all. Missing channels repeat the first.
        desired_samples: the number of samples to return; -1 for all. Missing samples are silent.
        name: the op's name.
    """
    return DECODE_WAV(contents, desired_channels=desired_channels, desired_samples=desired_samples, name=name)


@export("audio.encode_wav")
def encode_wav_file(audio: Any, sample_rate: Any, name: str | None = None) -> Tensor:
    """Encodes float32 samples [samples, channels] in [-1, 1] as a 16-bit PCM WAV file."""
    return ENCODE_WAV(convert_to_tensor(audio, dtypes.float32), sample_rate, name=name)


# ---- spectrograms -----------------------------------------------------------------------------------------------

AUDIO_SPECTROGRAM = define(
    "AudioSpectrogram(input: matrix float32) -> (spectrogram: float32)",
    window_size=INT32,
    stride=INT32,
    magnitude_squared=False,
)


def _transform_size(window: int) -> int:
    """The length of the Fourier transform: the next power of two."""
    return 1 << (window - 1).bit_length()


@functools.lru_cache(8)
def _hann(size: int) -> torch.Tensor:
    return torch.hann_window(size, periodic=True, dtype=torch.float64)


@AUDIO_SPECTROGRAM.kernel
def audio_spectrogram_kernel(
    input: torch.Tensor, *, window_size: int, stride: int, magnitude_squared: bool
) -> torch.Tensor:
    _check_window(window_size, stride)
    size = _transform_size(window_size)
    samples, channels = input.shape
    if samples < window_size or channels == 0:
        return input.new_zeros([channels, max((samples - window_size) // stride + 1, 0), size // 2 + 1])
    allocatable([channels, (samples - window_size) // stride + 1, size // 2 + 1], 16)
    windows = input.t().to(torch.float64).unfold(1, window_size, stride) * _hann(window_size).to(input.device)
    found = torch.fft.rfft(windows, size)
    squared = (found.real**2 + found.imag**2).to(torch.float32)
    return squared if magnitude_squared else squared.sqrt()


def _check_window(window_size: int, stride: int) -> None:
    if window_size < 2 or stride < 1:
        raise _invalid(f"Spectrogram initialization failed for window size {window_size} and stride {stride}")


@AUDIO_SPECTROGRAM.shape
def audio_spectrogram_shape(input: Shape, *, window_size: int, stride: int) -> Shape:
    _check_window(window_size, stride)
    samples, channels = input.of_rank(2)
    count = None if samples is None else max((samples - window_size) // stride + 1, 0)
    return Shape((channels, count, _transform_size(window_size) // 2 + 1))


# ---- Mfcc -------------------------------------------------------------------------------------------------------

MFCC = define(
    "Mfcc(spectrogram: rank=3 float32, sample_rate: scalar host int32) -> (output: float32)",
    upper_frequency_limit=4000.0,
    lower_frequency_limit=20.0,
    filterbank_channel_count=INT32(40),
    dct_coefficient_count=INT32(13),
)
_LEAST = 1e-12  # the lower limit for the argument of the logarithm


def _mel(frequency: Any) -> Any:
    return 1127.0 * np.log1p(np.asarray(frequency) / 700.0)


@functools.lru_cache(8)
def _mel_bands(bins: int, rate: int, channels: int, low: float, high: float) -> torch.Tensor:
    """Weights [bins, channels] of triangular bands with equal widths on the mel scale. Neighbours overlap by half."""
    width = 0.5 * rate / (bins - 1)  # the width of a bin in Hz
    start, end = int(1.5 + low / width), int(high / width)
    edges = _mel(low) + (_mel(high) - _mel(low)) / (channels + 1) * np.arange(channels + 2)
    weights = np.zeros((bins, channels))
    for index in range(start, end + 1):
        place = float(_mel(index * width))
        # Between two edges, one band falls from its peak at the first edge, and the next band rises.
        band = int(np.searchsorted(edges[1:], place, side="left"))
        if band > channels:
            continue
        falling = (edges[band + 1] - place) / (edges[band + 1] - edges[band])
        if band >= 1:
            weights[index, band - 1] += falling
        if band < channels:
            weights[index, band] += 1 - falling
    return torch.from_numpy(weights)


@functools.lru_cache(8)
def _cosines(coefficients: int, channels: int) -> torch.Tensor:
    rows = np.arange(coefficients)[:, None] * (np.pi / channels) * (np.arange(channels) + 0.5)
    return torch.from_numpy(np.sqrt(2.0 / channels) * np.cos(rows))


@MFCC.kernel
def mfcc_kernel(
    spectrogram: torch.Tensor,
    sample_rate: int,
    *,
    upper_frequency_limit: float,
    lower_frequency_limit: float,
    filterbank_channel_count: int,
    dct_coefficient_count: int,
) -> torch.Tensor:
    bins, bands = spectrogram.shape[-1], filterbank_channel_count
    if (
        *(bands < 1, dct_coefficient_count < 1, bands < dct_coefficient_count, sample_rate <= 0, bins < 2),
        *(lower_frequency_limit < 0, upper_frequency_limit <= lower_frequency_limit),
    ).count(True):
        raise _invalid(
            f"Mfcc initialization failed for channel count {bins}, sample rate {sample_rate} and filterbank_channel_count {bands}"
        )
    if not upper_frequency_limit / (0.5 * sample_rate / (bins - 1)) < bins:
        # The spectrogram does not reach the upper limit. TensorFlow logs this and returns zeros.
        return spectrogram.new_zeros([*spectrogram.shape[:2], dct_coefficient_count])
    allocatable([bins, bands], 8)
    weights = _mel_bands(bins, sample_rate, bands, lower_frequency_limit, upper_frequency_limit)
    device = spectrogram.device
    energy = spectrogram.to(torch.float64).sqrt() @ weights.to(device)
    logs = energy.clamp_min(_LEAST).log()
    return (logs @ _cosines(dct_coefficient_count, bands).to(device).t()).to(torch.float32)


@MFCC.shape
def mfcc_shape(spectrogram: Shape, sample_rate: Shape, *, dct_coefficient_count: int) -> Shape:
    channels, count, _ = spectrogram.of_rank(3)
    return Shape((channels, count, dct_coefficient_count))
