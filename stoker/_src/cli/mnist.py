"""`tensorflow.examples.tutorials.mnist.input_data`: reads MNIST's four files from a folder and returns batches.

The files are gzipped IDX: a magic number, one big-endian size per dimension, then bytes. Nothing is downloaded.
"""

from __future__ import annotations

import gzip
import os
import zlib
from typing import Any, NamedTuple

import numpy as np

from stoker._src.base.dtypes import as_dtype, float32
from stoker._src.base.errors import DataLossError, NotFoundError

_FILES = {
    "train_images": "train-images-idx3-ubyte.gz",
    "train_labels": "train-labels-idx1-ubyte.gz",
    "test_images": "t10k-images-idx3-ubyte.gz",
    "test_labels": "t10k-labels-idx1-ubyte.gz",
}
_MAX_BYTES = 1 << 31


class DataSet:
    """Images and labels, returned in shuffled batches over repeated epochs."""

    def __init__(self, images: np.ndarray, labels: np.ndarray, seed: int | None = None) -> None:
        if len(images) != len(labels):
            raise ValueError(f"There are {len(images)} images but {len(labels)} labels.")
        self._images, self._labels = images, labels
        self._random = np.random.RandomState(seed)
        self._order = np.arange(len(images))
        self._position = 0
        self._epochs = 0
        self._started = False

    @property
    def images(self) -> np.ndarray:
        """All images."""
        return self._images

    @property
    def labels(self) -> np.ndarray:
        """All labels."""
        return self._labels

    @property
    def num_examples(self) -> int:
        """The number of examples."""
        return len(self._images)

    @property
    def epochs_completed(self) -> int:
        """How often all examples have been returned."""
        return self._epochs

    def next_batch(
        self, batch_size: int, fake_data: bool = False, shuffle: bool = True
    ) -> tuple[np.ndarray, np.ndarray]:
        """Returns the next images and labels. A batch at the end of an epoch continues with the next epoch.

        Raises:
            ValueError: the batch is larger than the data.
            NotImplementedError: `fake_data` is set, which only early tutorials used.
        """
        if fake_data:
            raise NotImplementedError("fake_data: batches of ones are not made.")
        if not 0 <= batch_size <= self.num_examples:
            raise ValueError(f"batch_size is {batch_size}, but there are {self.num_examples} examples.")
        if shuffle and not self._started:
            self._random.shuffle(self._order)
        self._started = True
        chosen = self._order[self._position : self._position + batch_size]
        self._position += batch_size
        if self._position > self.num_examples:
            self._epochs += 1
            self._position -= self.num_examples
            self._order = np.arange(self.num_examples)
            if shuffle:
                self._random.shuffle(self._order)
            chosen = np.concatenate([chosen, self._order[: self._position]])
        return self._images[chosen], self._labels[chosen]


class Datasets(NamedTuple):
    """The three parts of MNIST."""

    train: DataSet
    validation: DataSet
    test: DataSet


def _read_idx(path: str, dimensions: int) -> np.ndarray:
    """Reads the array of one file.

    Raises:
        NotFoundError: the file does not exist.
        DataLossError: the content does not match the header.
    """
    if not os.path.exists(path):
        raise NotFoundError(None, None, f"{path} is not there: put MNIST's four .gz files into that folder.")
    print("Extracting", path)  # as TensorFlow's module does
    try:
        with gzip.open(path, "rb") as file:
            header = file.read(4 * (dimensions + 1))
            numbers = np.frombuffer(header[: len(header) // 4 * 4], ">u4").tolist()
            if len(numbers) != dimensions + 1 or numbers[0] != 0x0800 + dimensions:
                raise DataLossError(None, None, f"{path}: this is no IDX file of {dimensions} dimensions.")
            count = 1
            for size in numbers[1:]:
                count *= size
            if count > _MAX_BYTES:
                raise DataLossError(None, None, f"{path}: its header says {count} bytes.")
            contents = file.read(count + 1)
    except (OSError, EOFError, zlib.error) as error:
        raise DataLossError(None, None, f"{path}: {error}") from error
    if len(contents) != count:
        raise DataLossError(None, None, f"{path}: its header says {count} bytes, but there are {len(contents)}.")
    return np.frombuffer(contents, np.uint8).reshape(numbers[1:])


def read_data_sets(
    train_dir: str,
    fake_data: bool = False,
    one_hot: bool = False,
    dtype: Any = float32,
    reshape: bool = True,
    validation_size: int = 5000,
    seed: int | None = None,
    source_url: str | None = None,
) -> Datasets:
    """Reads MNIST from the files in `train_dir`.

    Args:
        train_dir: the folder of the four .gz files.
        fake_data: not supported.
        one_hot: whether labels are one-hot vectors.
        dtype: float32 for numbers from 0 to 1, uint8 for bytes.
        reshape: whether images are flattened to 784 elements.
        validation_size: the number of training images to use for validation.
        seed: the seed for shuffling.
        source_url: unused, because nothing is downloaded.

    Raises:
        tf.errors.NotFoundError: a file is missing.
        tf.errors.DataLossError: a file is damaged.
        ValueError, NotImplementedError: an argument is invalid.
    """
    if fake_data:
        raise NotImplementedError("fake_data: batches of ones are not made.")
    kind = as_dtype(dtype).base_dtype
    if kind.name not in ("uint8", "float32"):
        raise TypeError(f"Invalid image dtype {dtype!r}, expected uint8 or float32")
    read: dict[str, np.ndarray] = {}
    for part, name in _FILES.items():
        array = _read_idx(os.path.join(train_dir, name), 3 if part.endswith("images") else 1)
        if part.endswith("images"):
            array = array.reshape(len(array), -1) if reshape else array[..., np.newaxis]
            array = array.astype(np.float32) * np.float32(1 / 255) if kind.name == "float32" else array
        elif one_hot:
            array = np.eye(10)[array]
        read[part] = array
    images, labels = read["train_images"], read["train_labels"]
    if not 0 <= validation_size <= len(images):
        raise ValueError(f"Validation size should be between 0 and {len(images)}. Received: {validation_size}.")
    return Datasets(
        DataSet(images[validation_size:], labels[validation_size:], seed),
        DataSet(images[:validation_size], labels[:validation_size], seed),
        DataSet(read["test_images"], read["test_labels"], seed),
    )
