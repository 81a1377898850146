"""`tf.keras.preprocessing.sequence`: sequences of equal length, windows over series, pairs of words."""

from __future__ import annotations

import json
import random
from typing import Any

import numpy as np

from stoker._src.base.export import export
from stoker._src.keras.data import Sequence


@export("keras.preprocessing.sequence.pad_sequences", v2="keras.utils.pad_sequences")
def pad_sequences(
    sequences: Any,
    maxlen: int | None = None,
    dtype: Any = "int32",
    padding: str = "pre",
    truncating: str = "pre",
    value: Any = 0.0,
) -> np.ndarray:
    """Sequences as one array [number, maxlen, ...].

    Args:
        sequences: a list of sequences.
        maxlen: the length; by default that of the longest.
        dtype: the dtype of the array.
        padding: "pre" or "post": where shorter sequences are filled with `value`.
        truncating: "pre" or "post": where longer sequences are cut.
        value: what to fill with.

    Raises:
        ValueError: an entry is not a sequence, their elements have different shapes, or an argument is unknown.
    """
    if not hasattr(sequences, "__len__"):
        raise ValueError("`sequences` must be iterable.")
    for name, given in (("Truncating", truncating), ("Padding", padding)):
        if given not in ("pre", "post"):
            raise ValueError(f'{name} type "{given}" not understood')
    lengths, shape = [], None
    for each in sequences:
        try:
            lengths.append(len(each))
        except TypeError as error:
            raise ValueError(f"`sequences` must be a list of iterables. Found non-iterable: {each}") from error
        if shape is None and len(each):
            shape = np.asarray(each).shape[1:]
    width = max(lengths, default=0) if maxlen is None else maxlen
    kind = np.dtype(dtype)
    if isinstance(value, str) and kind.kind not in "OSU":
        raise ValueError(
            f"`dtype` {dtype} is not compatible with `value`'s type: {type(value)}\nYou should set `dtype=object` for variable length strings."
        )
    found = np.full((len(lengths), width, *(shape or ())), value, dtype=dtype)
    for row, each in enumerate(sequences):
        if not len(each) or not width:
            continue
        kept = np.asarray(each[-width:] if truncating == "pre" else each[:width], dtype=dtype)
        if kept.shape[1:] != (shape or ()):
            raise ValueError(
                f"Shape of sample {kept.shape[1:]} of sequence at position {row} is different from expected shape {shape}"
            )
        if padding == "post":
            found[row, : len(kept)] = kept
        else:
            found[row, -len(kept) :] = kept
    return found


@export("keras.preprocessing.sequence.make_sampling_table")
def make_sampling_table(size: int, sampling_factor: float = 1e-5) -> np.ndarray:
    """The probability of keeping the word of each rank, if words are distributed as Zipf's law says (Mikolov et al., 2013)."""
    rank = np.arange(size)
    rank[:1] = 1
    frequency = rank * (np.log(rank) + 0.577) + 0.5 - 1.0 / (12.0 * rank)
    scaled = sampling_factor * frequency
    return np.minimum(1.0, scaled / np.sqrt(scaled))


@export("keras.preprocessing.sequence.skipgrams")
def skipgrams(
    sequence: Any,
    vocabulary_size: int,
    window_size: int = 4,
    negative_samples: float = 1.0,
    shuffle: bool = True,
    categorical: bool = False,
    sampling_table: Any = None,
    seed: int | None = None,
) -> tuple[list[Any], list[Any]]:
    """Pairs of words: those near one another with the label 1, and random ones with the label 0. The word 0 is padding."""
    positive, negative = ([0, 1], [1, 0]) if categorical else (1, 0)
    couples: list[list[int]] = []
    for i, word in enumerate(sequence):
        if not word or (sampling_table is not None and sampling_table[word] < random.random()):
            continue
        near = range(max(0, i - window_size), min(len(sequence), i + window_size + 1))
        couples.extend([word, sequence[j]] for j in near if j != i and sequence[j])
    labels = [positive] * len(couples)
    if negative_samples > 0:
        count = int(len(labels) * negative_samples)
        words = [first for first, _ in couples]
        random.shuffle(words)
        couples += [[words[i % len(words)], random.randint(1, vocabulary_size - 1)] for i in range(count)]
        labels += [negative] * count
    if shuffle:
        seed = random.randint(0, int(10e6)) if seed is None else seed
        for each in (couples, labels):  # the same order
            random.seed(seed)
            random.shuffle(each)
    return couples, labels


@export("keras.preprocessing.sequence.TimeseriesGenerator")
class TimeseriesGenerator(Sequence):
    """Batches of windows over a series, and the targets behind them.

    Args:
        data: the series; the first dimension is time.
        targets: a target for each time.
        length: the length of the windows, in times.
        sampling_rate: the distance of times in a window.
        stride: the distance of windows.
        start_index, end_index: the first and the last time to use.
        shuffle: whether windows are drawn at random.
        reverse: whether windows go back in time.
        batch_size: the number of windows in a batch.

    Raises:
        ValueError: data and targets have different lengths, or no window fits.
    """

    def __init__(
        self,
        data: Any,
        targets: Any,
        length: int,
        sampling_rate: int = 1,
        stride: int = 1,
        start_index: int = 0,
        end_index: int | None = None,
        shuffle: bool = False,
        reverse: bool = False,
        batch_size: int = 128,
    ) -> None:
        if len(data) != len(targets):
            raise ValueError(
                f"Data and targets have to be of same length. Data length is {len(data)} while target length is {len(targets)}"
            )
        self.data, self.targets, self.length = data, targets, length
        self.sampling_rate, self.stride, self.batch_size = sampling_rate, stride, batch_size
        self.start_index = start_index + length
        self.end_index = len(data) - 1 if end_index is None else end_index
        self.shuffle, self.reverse = shuffle, reverse
        if self.start_index > self.end_index:
            raise ValueError(
                f"`start_index+length={self.start_index} > end_index={self.end_index}` is disallowed, as no part of the sequence would be left to be used as current step."
            )

    def __len__(self) -> int:
        step = self.batch_size * self.stride
        return (self.end_index - self.start_index + step) // step

    def __getitem__(self, index: int) -> tuple[np.ndarray, np.ndarray]:
        if self.shuffle:
            rows = np.random.randint(self.start_index, self.end_index + 1, size=self.batch_size)
        else:
            first = self.start_index + self.batch_size * self.stride * index
            last = min(first + self.batch_size * self.stride, self.end_index + 1)
            rows = np.arange(first, last, self.stride)
        samples = np.array([self.data[row - self.length : row : self.sampling_rate] for row in rows])
        targets = np.array([self.targets[row] for row in rows])
        return (samples[:, ::-1, ...] if self.reverse else samples), targets

    def get_config(self) -> dict[str, Any]:
        """The arguments, with the series as lists in JSON."""
        names = "length sampling_rate stride start_index end_index shuffle reverse batch_size".split()
        series = {name: json.dumps(np.asarray(getattr(self, name)).tolist()) for name in ("data", "targets")}
        return {**series, **{name: getattr(self, name) for name in names}}

    def to_json(self, **kwargs: Any) -> str:
        """The arguments as JSON."""
        return json.dumps({"class_name": type(self).__name__, "config": self.get_config()}, **kwargs)
