"""Data for training: arrays, tensors, datasets and generators as batches of inputs, targets and weights."""

from __future__ import annotations

import collections
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np

from stoker._src.base import errors, nest
from stoker._src.base.export import export
from stoker._src.data import dataset
from stoker._src.graph import context
from stoker._src.keras.base import is_symbolic
from stoker._src.keras.sessions import get_session

Batch = tuple[Any, Any, Any]
"""Inputs, targets and weights of examples; the last two may be None."""


@export("keras.utils.Sequence")
class Sequence:
    """Data that can be indexed by batch: a subclass has `__getitem__` and `__len__`."""

    def __getitem__(self, index: int) -> Any:
        raise NotImplementedError

    def __len__(self) -> int:
        raise NotImplementedError

    def on_epoch_end(self) -> None:
        """Called after each epoch."""

    def __iter__(self) -> Iterator[Any]:
        for index in range(len(self)):
            yield self[index]


def unpacked(item: Any) -> Batch:
    """The parts of what a dataset or generator yields.

    Raises:
        ValueError: it has more than three parts.
    """
    if not isinstance(item, (tuple, list)) or isinstance(item, list):
        return item, None, None
    if len(item) > 3:
        raise ValueError(
            f"Please provide data as a list or tuple of 2 elements - input and target pair, or 3 elements - input, target and sample weights. Received: {len(item)} elements"
        )
    return (*item, None, None)[:3]  # type: ignore[return-value]


class Arrays:
    """Arrays in memory, in batches."""

    def __init__(self, x: Any, y: Any, weights: Any, batch_size: int, *, shuffle: Any = False) -> None:
        self.parts = nest.map_structure(_in_memory, (x, y, weights))
        sizes = {len(each) for each in nest.flatten(self.parts) if each is not None}
        if len(sizes) > 1:
            raise ValueError(
                f"All input arrays (x) and target arrays (y) should have the same number of samples. Got numbers of samples: {sorted(sizes)}"
            )
        self.samples = sizes.pop() if sizes else 0
        self.batch_size, self.shuffle = batch_size, shuffle
        self._order: Any = None

    def __len__(self) -> int:
        return -(-self.samples // self.batch_size)

    def epoch(self) -> Iterator[tuple[Batch, int]]:
        """Batches with their sizes."""
        order: Any = None
        if self.shuffle:
            # Each epoch shuffles the order of the one before, by the global generator, which programs seed.
            if self._order is None:
                self._order = np.arange(self.samples)
            if self.shuffle == "batch":
                whole = self.samples // self.batch_size * self.batch_size
                blocks = self._order[:whole].reshape(-1, self.batch_size)
                np.random.shuffle(blocks)
                self._order = np.concatenate([blocks.reshape(-1), self._order[whole:]])
            else:
                np.random.shuffle(self._order)
            order = self._order
        for start in range(0, self.samples, self.batch_size):
            chosen: Any = slice(start, start + self.batch_size)
            if order is not None:
                chosen = order[chosen]
            parts = tuple(
                None if part is None else nest.map_structure(lambda a, at=chosen: rows(a, at), part)
                for part in self.parts
            )
            yield parts, min(self.batch_size, self.samples - start)  # type: ignore[misc]


class Stream:
    """What comes batch by batch: a dataset, an iterator, symbolic tensors, a generator or a Sequence.

    Args:
        source: where batches come from.
        steps: the number of batches of an epoch; None for as many as there are.
        workers: how many threads fetch batches of a `Sequence` ahead; a generator has one.
        queue: how many batches are fetched ahead.
        shuffle: whether a `Sequence` is read in another order in each epoch.
    """

    def __init__(
        self, source: Any, steps: int | None, workers: int = 1, queue: int = 10, *, shuffle: bool = False
    ) -> None:
        self.source, self.steps, self.workers, self.queue, self.shuffle = source, steps, workers, queue, shuffle
        self._running: Any = None
        if isinstance(source, Sequence) and steps is None:
            self.steps = len(source)
        self.samples: int | None = None

    def __len__(self) -> int:
        return self.steps or 0

    def epoch(self) -> Iterator[tuple[Batch, int]]:
        done = 0
        if self._running is None or isinstance(self.source, Sequence) or self.steps is None:
            self._running = self._items()
        while self.steps is None or done < self.steps:
            item = next(self._running, None)
            if item is None:
                self._running = None
                if self.steps is not None and done == 0:
                    self._running = self._items()
                    item = next(self._running, None)
                if item is None:
                    break
            batch = unpacked(item)
            flat = nest.flatten(batch[0])
            yield batch, int(np.shape(flat[0])[0]) if np.ndim(flat[0]) else 1
            done += 1
        self.steps = self.steps if self.steps is not None else done
        if isinstance(self.source, Sequence):
            self.source.on_epoch_end()

    def close(self) -> None:
        """Ends threads that fetch ahead."""
        if self._running is not None:
            self._running.close()
            self._running = None

    def _items(self) -> Any:
        source = self.source
        if isinstance(source, Sequence):
            order = np.arange(len(source))
            if self.shuffle:
                np.random.shuffle(order)
            return _ahead((lambda at=int(at): source[at] for at in order), self.workers, self.queue)
        if hasattr(source, "element_spec") or hasattr(source, "output_types"):
            return self._dataset_items()
        if any(is_symbolic(each) for each in nest.flatten(source)):
            return self._tensor_items(source)
        running = iter(source)
        return _ahead((lambda: next(running, None) for _ in iter(int, 1)), min(1, self.workers), self.queue)

    def _dataset_items(self) -> Iterator[Any]:
        if context.executing_eagerly():
            yield from self.source
            return
        if hasattr(self.source, "get_next"):
            following = self.source.get_next()
        else:
            iterator = dataset.make_initializable_iterator(self.source)
            get_session().run(iterator.initializer)
            following = iterator.get_next()
        yield from self._tensor_items(following)

    def _tensor_items(self, tensors: Any) -> Iterator[Any]:
        session = get_session()
        flat = nest.flatten(tensors)
        while True:
            try:
                yield nest.pack_sequence_as(tensors, session.run(flat))
            except errors.OutOfRangeError:
                return


def _ahead(calls: Iterator[Any], workers: int, queue: int) -> Iterator[Any]:
    """The results of calls in order, computed by threads up to `queue` calls ahead. None ends it."""
    if workers < 1:
        for call in calls:
            found = call()
            if found is None:
                return
            yield found
        return
    pool = ThreadPoolExecutor(workers, thread_name_prefix="keras_data")
    waiting: collections.deque[Any] = collections.deque()
    try:
        for call in calls:
            waiting.append(pool.submit(call))
            if len(waiting) > max(queue, 1):
                found = waiting.popleft().result()
                if found is None:
                    return
                yield found
        while waiting:
            found = waiting.popleft().result()
            if found is None:
                return
            yield found
    finally:
        for each in waiting:
            each.cancel()
        pool.shutdown(wait=True, cancel_futures=True)


def standardized(data: Any, names: list[str] | None) -> Any:
    """Arrays of a model with these inputs or outputs: dictionaries by name become lists, numbers become arrays."""
    if data is None:
        return None
    if isinstance(data, dict) and names and all(name in data for name in names):
        data = [data[name] for name in names]
        data = data[0] if len(data) == 1 else data
    return nest.map_structure(_array, data)


def rows(array: Any, at: Any) -> Any:
    """Rows of an array, or None for outputs without weights."""
    return None if array is None else array[at]


def _in_memory(value: Any) -> Any:
    """An eager tensor as an array, whose rows can be taken in any order."""
    return _array(value.numpy()) if hasattr(value, "static_shape") and hasattr(value, "numpy") else value


def _array(value: Any) -> Any:
    if hasattr(value, "static_shape"):
        return value if context.executing_eagerly() or is_symbolic(value) else np.asarray(value)
    if hasattr(value, "to_numpy"):
        value = value.to_numpy()
    array = np.asarray(value)
    return array[:, None] if array.ndim == 1 and array.dtype.kind != "U" else array
