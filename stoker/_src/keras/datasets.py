"""`tf.keras.datasets`: data sets in the files that Keras keeps in its cache. Nothing is fetched over a network: a missing file is named."""

from __future__ import annotations

import gzip
import json
import os
import pickle
import zipfile
from typing import Any

import numpy as np

from stoker._src.base.export import export
from stoker._src.keras.base import default_data_format
from stoker._src.keras.utils import get_file

_STORE = "https://storage.googleapis.com/tensorflow/tf-keras-datasets/"
Split = tuple[tuple[Any, Any], tuple[Any, Any]]


def _arrays(name: str, path: str, origin: str | None = None) -> Any:
    return np.load(get_file(path, origin or _STORE + name), allow_pickle=False)


@export("keras.datasets.mnist.load_data")
def load_mnist(path: str = "mnist.npz") -> Split:
    """Handwritten digits: images [60000, 28, 28] and [10000, 28, 28] of bytes, and their digits. The file is mnist.npz."""
    with _arrays("mnist.npz", path) as file:
        return (file["x_train"], file["y_train"]), (file["x_test"], file["y_test"])


@export("keras.datasets.fashion_mnist.load_data")
def load_fashion_mnist() -> Split:
    """Pictures of clothes, as `mnist`. The files are those of MNIST's format, in the folder fashion-mnist."""
    names = [f"{part}-{kind}-ubyte.gz" for part in ("train", "t10k") for kind in ("labels-idx1", "images-idx3")]
    folder = os.path.join("datasets", "fashion-mnist")
    found = []
    for name in names:
        with gzip.open(get_file(name, _STORE + name, cache_subdir=folder), "rb") as file:
            header = 8 if "labels" in name else 16
            values = np.frombuffer(file.read(), np.uint8, offset=header)
        found.append(values if "labels" in name else values.reshape(-1, 28, 28))
    return (found[1], found[0]), (found[3], found[2])


@export("keras.datasets.boston_housing.load_data")
def load_boston_housing(path: str = "boston_housing.npz", test_split: float = 0.2, seed: int = 113) -> Split:
    """Prices of houses, and 13 numbers about each. The file is boston_housing.npz."""
    assert 0 <= test_split < 1
    with _arrays("boston_housing.npz", path) as file:
        x, y = file["x"], file["y"]
    order = np.arange(len(x))
    np.random.RandomState(seed).shuffle(order)
    x, y = x[order], y[order]
    cut = int(len(x) * (1 - test_split))
    return (x[:cut], y[:cut]), (x[cut:], y[cut:])


# ---- words ----------------------------------------------------------------------------------------------------------


class _ArraysOnly(pickle.Unpickler):
    """Reads arrays, lists, numbers and bytes, and nothing else: a pickle may name any function, and these are the ones that arrays need."""

    def find_class(self, module: str, name: str) -> Any:
        if (module, name) in (
            ("numpy.core.multiarray", "_reconstruct"),
            ("numpy._core.multiarray", "_reconstruct"),
            ("numpy", "ndarray"),
            ("numpy", "dtype"),
        ):
            return super().find_class(module, name)
        raise pickle.UnpicklingError(f"The file names {module}.{name}, which arrays of lists do not need.")


def _lists(path: str, name: str) -> Any:
    """An array of lists in an .npz file, or another array."""
    with zipfile.ZipFile(path) as archive, archive.open(f"{name}.npy") as file:
        version = np.lib.format.read_magic(file)
        read = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
        shape, _, dtype = read(file)
        if dtype.hasobject:
            return _ArraysOnly(file).load()
        count = int(np.prod(shape, dtype=np.int64))
        return np.frombuffer(file.read(count * dtype.itemsize), dtype).reshape(shape)


def _chosen(
    xs: Any, labels: Any, num_words: Any, skip_top: int, start_char: Any, oov_char: Any, index_from: int, maxlen: Any
) -> tuple[Any, Any]:
    """Sequences with their words renumbered, and those that are too long or too rare left out."""
    if start_char is not None:
        rows = [[start_char, *(word + index_from for word in x)] for x in xs]
    elif index_from:
        rows = [[word + index_from for word in x] for x in xs]
    else:
        rows = [list(x) for x in xs]
    if maxlen:
        kept = [i for i, x in enumerate(rows) if len(x) < maxlen]
        if not kept:
            raise ValueError(
                f"After filtering for sequences shorter than maxlen={maxlen}, no sequence was kept. Increase maxlen."
            )
        rows, labels = [rows[i] for i in kept], np.asarray(labels)[kept]
    most = num_words or max(max(x) for x in rows)
    if oov_char is not None:
        return [[word if skip_top <= word < most else oov_char for word in x] for x in rows], labels
    return [[word for word in x if skip_top <= word < most] for x in rows], labels


def _objects(rows: list[Any]) -> np.ndarray:
    found = np.empty(len(rows), dtype=object)
    found[:] = rows
    return found


@export("keras.datasets.imdb.load_data")
def load_imdb(
    path: str = "imdb.npz",
    num_words: int | None = None,
    skip_top: int = 0,
    maxlen: int | None = None,
    seed: int = 113,
    start_char: int | None = 1,
    oov_char: int | None = 2,
    index_from: int = 3,
    **kwargs: Any,
) -> Split:
    """Reviews of films as numbers of words, and whether they praise. The file is imdb.npz.

    Args:
        path: the file in the cache.
        num_words, skip_top: words of this rank and above, and below, become `oov_char`.
        maxlen: longer reviews are left out.
        seed: of the order.
        start_char: the number before each review.
        oov_char: the number of words that are left out.
        index_from: what is added to numbers of words.
        **kwargs: `nb_words`, the old name of `num_words`.
    """
    num_words = kwargs.pop("nb_words", num_words)
    if kwargs:
        raise TypeError(f"Unrecognized keyword arguments: {kwargs}")
    file = get_file(path, _STORE + "imdb.npz")
    parts = {name: _lists(file, name) for name in ("x_train", "y_train", "x_test", "y_test")}
    shuffled = np.random.RandomState(seed)
    xs, labels = [], []
    for part in ("train", "test"):
        order = np.arange(len(parts[f"x_{part}"]))
        shuffled.shuffle(order)
        xs.append(parts[f"x_{part}"][order])
        labels.append(parts[f"y_{part}"][order])
    cut = len(xs[0])
    rows, found = _chosen(
        np.concatenate(xs), np.concatenate(labels), num_words, skip_top, start_char, oov_char, index_from, None
    )
    pairs = [(rows[:cut], found[:cut]), (rows[cut:], found[cut:])]
    if maxlen:
        pairs = [
            ([x for x in part if len(x) < maxlen], [y for x, y in zip(part, of) if len(x) < maxlen])
            for part, of in pairs
        ]
    (x, y), (tx, ty) = pairs
    return (_objects(x), np.asarray(y)), (_objects(tx), np.asarray(ty))


@export("keras.datasets.imdb.get_word_index")
def get_imdb_word_index(path: str = "imdb_word_index.json") -> dict[str, int]:
    """The numbers of the words of `imdb`. The file is imdb_word_index.json."""
    with open(get_file(path, _STORE + "imdb_word_index.json")) as file:
        return json.load(file)


@export("keras.datasets.reuters.load_data")
def load_reuters(
    path: str = "reuters.npz",
    num_words: int | None = None,
    skip_top: int = 0,
    maxlen: int | None = None,
    test_split: float = 0.2,
    seed: int = 113,
    start_char: int | None = 1,
    oov_char: int | None = 2,
    index_from: int = 3,
    **kwargs: Any,
) -> Split:
    """News as numbers of words, and their topics. The file is reuters.npz; arguments are those of `imdb.load_data`."""
    num_words = kwargs.pop("nb_words", num_words)
    if kwargs:
        raise TypeError(f"Unrecognized keyword arguments: {kwargs}")
    file = get_file(path, _STORE + "reuters.npz")
    x, y = _lists(file, "x"), _lists(file, "y")
    order = np.arange(len(x))
    np.random.RandomState(seed).shuffle(order)
    rows, labels = _chosen(x[order], y[order], num_words, skip_top, start_char, oov_char, index_from, maxlen)
    cut = int(len(rows) * (1 - test_split))
    return (_objects(rows[:cut]), np.asarray(labels[:cut])), (_objects(rows[cut:]), np.asarray(labels[cut:]))


@export("keras.datasets.reuters.get_word_index")
def get_reuters_word_index(path: str = "reuters_word_index.json") -> dict[str, int]:
    """The numbers of the words of `reuters`. The file is reuters_word_index.json."""
    with open(get_file(path, _STORE + "reuters_word_index.json")) as file:
        return json.load(file)


# ---- small pictures -------------------------------------------------------------------------------------------------


def _batch(path: str, label: str = "labels") -> tuple[np.ndarray, list[int]]:
    with open(path, "rb") as file:
        content = _ArraysOnly(file, encoding="bytes").load()
    return np.asarray(content[b"data"]).reshape(-1, 3, 32, 32), content[label.encode()]


def _pictures(folder: str, train: list[str], test: str, label: str) -> Split:
    batches = [_batch(os.path.join(folder, name), label) for name in train]
    x, y = np.concatenate([each for each, _ in batches]), np.concatenate([np.array(each) for _, each in batches])
    tx, ty = _batch(os.path.join(folder, test), label)
    if default_data_format() == "channels_last":
        x, tx = x.transpose(0, 2, 3, 1), tx.transpose(0, 2, 3, 1)
    return (x, y.astype("uint8").reshape(-1, 1)), (tx, np.array(ty).reshape(-1, 1))


@export("keras.datasets.cifar10.load_data")
def load_cifar10() -> Split:
    """Pictures [50000, 32, 32, 3] and [10000, 32, 32, 3] of ten kinds of things. The archive is cifar-10-batches-py.tar.gz."""
    origin = "https://www.cs.toronto.edu/~kriz/cifar-10-python.tar.gz"
    folder = get_file("cifar-10-batches-py", origin, untar=True)
    (x, y), (tx, ty) = _pictures(folder, [f"data_batch_{i}" for i in range(1, 6)], "test_batch", "labels")
    return (x, y), (tx, ty)


@export("keras.datasets.cifar100.load_data")
def load_cifar100(label_mode: str = "fine") -> Split:
    """Pictures of 100 ("fine") or 20 ("coarse") kinds of things. The archive is cifar-100-python.tar.gz.

    Raises:
        ValueError: there is no such mode.
    """
    if label_mode not in ("fine", "coarse"):
        raise ValueError('`label_mode` must be one of `"fine"`, `"coarse"`.')
    folder = get_file("cifar-100-python", "https://www.cs.toronto.edu/~kriz/cifar-100-python.tar.gz", untar=True)
    (x, y), (tx, ty) = _pictures(folder, ["train"], "test", f"{label_mode}_labels")
    return (x, y.astype(int)), (tx, ty)
