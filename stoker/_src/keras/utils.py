"""`tf.keras.utils`: labels as vectors, files, and batches that are fetched ahead."""

from __future__ import annotations

import hashlib
import os
import queue
import random
import shutil
import tarfile
import threading
import urllib.parse
import zipfile
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

import numpy as np

from stoker._src.base.export import export


@export("keras.utils.to_categorical")
def to_categorical(y: Any, num_classes: int | None = None, dtype: Any = "float32") -> np.ndarray:
    """One-hot vectors of integer labels."""
    labels = np.array(y, dtype="int")
    shape = labels.shape[:-1] if labels.ndim > 1 and labels.shape[-1] == 1 else labels.shape
    flat = labels.ravel()
    count = num_classes or int(flat.max()) + 1
    found = np.zeros((flat.size, count), dtype=dtype)
    found[np.arange(flat.size), flat] = 1
    return found.reshape((*shape, count))


@export("keras.utils.normalize")
def normalize(x: Any, axis: int = -1, order: int = 2) -> np.ndarray:
    """Vectors of norm 1 along an axis."""
    norms = np.atleast_1d(np.linalg.norm(x, order, axis))
    norms[norms == 0] = 1
    return x / np.expand_dims(norms, axis)


# ---- files ----------------------------------------------------------------------------------------------------------


def cache_folder() -> str:
    """Where Keras keeps files: the folder that KERAS_HOME names, or ~/.keras."""
    return os.environ.get("KERAS_HOME") or os.path.join(os.path.expanduser("~"), ".keras")


@export("keras.utils.get_file")
def get_file(
    fname: str,
    origin: str,
    untar: bool = False,
    md5_hash: str | None = None,
    file_hash: str | None = None,
    cache_subdir: str = "datasets",
    hash_algorithm: str = "auto",
    extract: bool = False,
    archive_format: Any = "auto",
    cache_dir: str | None = None,
) -> str:
    """The path of a file in the cache. An origin on this machine (`file://`, or a path) is copied there; nothing is fetched over a network.

    Args:
        fname: the name in the cache.
        origin: where it comes from.
        untar: whether it is a tar archive, named without its ending.
        md5_hash, file_hash: the hash it must have.
        cache_subdir: the folder in the cache.
        hash_algorithm: "md5", "sha256", or "auto", which tells them by their length.
        extract: whether to unpack an archive.
        archive_format: "tar", "zip", "auto", None or a list.
        cache_dir: the cache, in place of ~/.keras.

    Raises:
        OSError: the file is neither in the cache nor on this machine; the message says where to place it.
        ValueError: it has another hash.
    """
    folder = os.path.join(cache_dir or cache_folder(), cache_subdir)
    file_hash, algorithm = (
        (md5_hash, "md5") if md5_hash is not None and file_hash is None else (file_hash, hash_algorithm)
    )
    path = os.path.join(folder, fname)
    stored = path + ".tar.gz" if untar else path
    good = os.path.exists(stored) and (file_hash is None or _has_hash(stored, file_hash, algorithm))
    if not good:
        local = urllib.parse.urlparse(origin)
        source = urllib.parse.unquote(local.path) if local.scheme in ("file", "") else ""
        if not source or not os.path.exists(source):
            what = "has another hash than expected" if os.path.exists(stored) else "does not exist"
            raise OSError(
                f"The file {stored} {what}, and files are not fetched over a network: get {origin} and place it there."
            )
        if file_hash is not None and not _has_hash(source, file_hash, algorithm):
            raise ValueError(f"The file {source} does not have the hash {file_hash}: it is incomplete or outdated.")
        os.makedirs(folder, exist_ok=True)
        partial = f"{stored}.{os.getpid()}.part"
        shutil.copyfile(source, partial)
        os.replace(partial, stored)
    if untar:
        if not os.path.exists(path):
            _unpack(stored, folder, "tar")
    elif extract:
        _unpack(stored, folder, archive_format)
    return path


def _has_hash(path: str, expected: str, algorithm: str) -> bool:
    kind = "sha256" if algorithm == "sha256" or (algorithm == "auto" and len(expected) == 64) else "md5"
    found = hashlib.new(kind, usedforsecurity=False)
    with open(path, "rb") as file:
        while block := file.read(1 << 20):
            found.update(block)
    return found.hexdigest() == str(expected)


def _unpack(path: str, folder: str, archive_format: Any) -> bool:
    """Unpacks an archive. Entries that would land outside of the folder are refused."""
    kinds = (
        ["tar", "zip"]
        if archive_format == "auto"
        else [archive_format]
        if isinstance(archive_format, str)
        else archive_format
    )
    for kind in kinds or ():
        if kind == "tar" and tarfile.is_tarfile(path):
            with tarfile.open(path) as archive:
                archive.extractall(folder, filter="data")
            return True
        if kind == "zip" and zipfile.is_zipfile(path):
            with zipfile.ZipFile(path) as archive:
                archive.extractall(folder)
            return True
    return False


# ---- batches ahead --------------------------------------------------------------------------------------------------


@export("keras.utils.SequenceEnqueuer")
class SequenceEnqueuer:
    """The base of what fetches batches ahead in threads: `start`, then `get`, then `stop`."""

    def __init__(self, sequence: Any, use_multiprocessing: bool = False) -> None:
        # Threads serve both: NumPy and the codecs of images release the interpreter.
        self.sequence, self.use_multiprocessing = sequence, use_multiprocessing
        self.workers = 0
        self.queue: Any = None
        self._stopped = threading.Event()
        self._thread: threading.Thread | None = None

    def is_running(self) -> bool:
        return self._thread is not None and not self._stopped.is_set()

    def start(self, workers: int = 1, max_queue_size: int = 10) -> None:
        """Begins to fetch: `workers` threads, and at most `max_queue_size` batches."""
        self.workers, self.queue = workers, queue.Queue(max_queue_size)
        self._stopped.clear()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def stop(self, timeout: float | None = None) -> None:
        """Ends fetching."""
        self._stopped.set()
        if self._thread is not None:
            self._thread.join(timeout)
            self._thread = None

    def _put(self, item: Any) -> bool:
        """Puts an item into the queue as soon as there is room. Returns False if fetching ended before."""
        while not self._stopped.is_set():
            try:
                self.queue.put(item, timeout=0.05)
            except queue.Full:
                continue
            return True
        return False

    def _run(self) -> None:
        raise NotImplementedError

    def get(self) -> Iterator[Any]:
        """The batches. An error of the data is raised here."""
        while self.is_running():
            item = self.queue.get()
            if item is None:
                return
            try:
                value = item.result()
            except StopIteration:
                return
            except BaseException:
                self.stop()
                raise
            if value is not None:
                yield value


@export("keras.utils.OrderedEnqueuer")
class OrderedEnqueuer(SequenceEnqueuer):
    """Fetches the batches of a `Sequence`, again and again, in order."""

    def __init__(self, sequence: Any, use_multiprocessing: bool = False, shuffle: bool = False) -> None:
        super().__init__(sequence, use_multiprocessing)
        self.shuffle = shuffle

    def _run(self) -> None:
        with ThreadPoolExecutor(max(self.workers, 1)) as pool:
            while not self._stopped.is_set():
                order = list(range(len(self.sequence)))
                if self.shuffle:
                    random.shuffle(order)
                made = []
                for index in order:
                    made.append(pool.submit(self.sequence.__getitem__, index))
                    if not self._put(made[-1]):
                        return
                for each in made:  # an epoch ends when its batches are there
                    each.exception()
                self.sequence.on_epoch_end()


@export("keras.utils.GeneratorEnqueuer")
class GeneratorEnqueuer(SequenceEnqueuer):
    """Fetches what a generator yields. A generator has one thread: it cannot run in several."""

    def __init__(self, sequence: Any, use_multiprocessing: bool = False, random_seed: int | None = None) -> None:
        super().__init__(sequence, use_multiprocessing)
        self.random_seed = random_seed

    def _run(self) -> None:
        while not self._stopped.is_set():
            made: Future[Any] = Future()
            try:
                made.set_result(next(self.sequence))
            except StopIteration:
                self._put(None)
                return
            except Exception as error:
                made.set_exception(error)
            if not self._put(made) or made.exception() is not None:
                return
