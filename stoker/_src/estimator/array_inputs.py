"""Input functions over arrays in memory: `tf.estimator.inputs.numpy_input_fn` and `pandas_input_fn`."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from stoker._src.base import dtypes
from stoker._src.base.errors import OutOfRangeError
from stoker._src.base.export import export
from stoker._src.graph.scopes import name_scope
from stoker._src.ops.array.casting import cast
from stoker._src.ops.array.constants import placeholder
from stoker._src.ops.math.arithmetic import maximum
from stoker._src.ops.resources.queues import FIFOQueue, RandomShuffleQueue
from stoker._src.ops.summary.summary_ops import scalar_summary
from stoker._src.train.input.queue_runner import QueueRunner, add_queue_runner


class FeedingQueueRunner(QueueRunner):
    """A queue runner whose threads feed their enqueue ops.

    Args:
        queue: the queue.
        enqueue_ops: one op for each thread.
        feed_fns: for each op, a function that returns its feeds, and raises OutOfRangeError at the end.
    """

    def __init__(self, queue: Any, enqueue_ops: list[Any], feed_fns: list[Callable[[], Any]]) -> None:
        super().__init__(queue, enqueue_ops)
        self._feed_fns = dict(zip(enqueue_ops, feed_fns))

    def _enqueuer(self, sess: Any, enqueue_op: Any) -> Callable[[], Any]:
        feed_fn = self._feed_fns[enqueue_op]
        return lambda: sess.run(enqueue_op, feed_dict=feed_fn())

    def to_proto(self, export_scope: str | None = None) -> Any:
        """A message cannot hold the functions, so the runner is not written."""
        return None


def _rows(count: int, size: int, num_epochs: int | None, random_start: bool) -> Iterator[np.ndarray]:
    """Yields the positions of consecutive rows, at most `size` at a time, over a number of epochs (None: for ever)."""
    start = int(np.random.randint(count)) if random_start and count else 0
    epoch = 0
    while num_epochs is None or epoch < num_epochs:
        for first in range(0, count, size):
            yield (np.arange(first, min(first + size, count)) + start) % count
        epoch += 1


def _enqueued(
    columns: list[np.ndarray], batch_size: int, num_epochs: int | None, shuffle: bool, capacity: int, num_threads: int
) -> list[Any]:
    """Returns a batch of each column, dequeued from a queue that threads fill."""
    with name_scope("enqueue_input"):
        types = [dtypes.int64, *(dtypes.as_dtype(column.dtype) for column in columns)]
        shapes = [(), *(column.shape[1:] for column in columns)]
        least = capacity // 4 if shuffle else 0
        queue = RandomShuffleQueue(capacity, least, types, shapes) if shuffle else FIFOQueue(capacity, types, shapes)
        ops, feed_fns = [], []
        for _ in range(num_threads):
            places = [placeholder(dtype) for dtype in types]
            ops.append(queue.enqueue_many(places))
            feed_fns.append(_feed_fn(columns, places, batch_size, num_epochs, shuffle))
        add_queue_runner(FeedingQueueRunner(queue, ops, feed_fns))
        full = cast(maximum(0, queue.size() - least), dtypes.float32) * (1.0 / (capacity - least))
        scalar_summary(f"queue/{queue.name}fraction_over_{least}_of_{capacity - least}_full", full)
    batch = queue.dequeue_many(batch_size) if num_epochs is None else queue.dequeue_up_to(batch_size)
    return list(batch)[1:]


def _feed_fn(
    columns: list[np.ndarray], places: list[Any], size: int, num_epochs: int | None, random_start: bool
) -> Callable[[], dict[Any, Any]]:
    rows = _rows(len(columns[0]), size, num_epochs, random_start)

    def feed() -> dict[Any, Any]:
        positions = next(rows, None)
        if positions is None or not len(positions):
            raise OutOfRangeError(None, None, f"Already emitted {num_epochs} epochs.")
        return dict(zip(places, [positions, *(column[positions] for column in columns)]))

    return feed


def _check_shuffle(shuffle: Any) -> None:
    if not isinstance(shuffle, bool):
        raise ValueError(
            "shuffle must be provided and explicitly set as boolean (it is recommended to set it as True for training); "
            f"got {shuffle}"
        )


@export(v1="estimator.inputs.numpy_input_fn")
def numpy_input_fn(
    x: Any,
    y: Any = None,
    batch_size: int = 128,
    num_epochs: int | None = 1,
    shuffle: bool | None = None,
    queue_capacity: int = 1000,
    num_threads: int = 1,
) -> Callable[[], Any]:
    """Returns an input function over NumPy arrays.

    Args:
        x: an array, or arrays by name, with a row for each example.
        y: labels: an array, arrays by name, or None.
        batch_size: the size of a batch.
        num_epochs: how often to go through the data; None for ever.
        shuffle: whether to shuffle. It must be given.
        queue_capacity: how many examples are read ahead.
        num_threads: the number of threads that fill the queue. With several the order is random.

    Raises:
        ValueError: `shuffle` is not given; when called: the arrays have different lengths or a dictionary is empty.
        TypeError: when called: `x` is neither an array nor a dictionary.
    """
    _check_shuffle(shuffle)

    def input_fn() -> Any:
        if not isinstance(x, (dict, np.ndarray)):
            raise TypeError(f"x must be a dict or array; got {type(x).__name__}")
        if isinstance(x, dict) and not x:
            raise ValueError("x cannot be an empty dict")
        if isinstance(y, dict) and not y:
            raise ValueError("y cannot be empty dict, use None instead.")
        features = {name: np.asarray(x[name]) for name in sorted(x)} if isinstance(x, dict) else {None: x}
        targets = {name: np.asarray(y[name]) for name in sorted(y)} if isinstance(y, dict) else {None: y}
        if y is None:
            targets = {}
        columns = [*features.values(), *map(np.asarray, targets.values())]
        if len({column.shape[0] for column in columns}) > 1:
            shapes = {name: column.shape for name, column in (*features.items(), *targets.items())}
            raise ValueError(
                "Length of tensors in x and y is mismatched. All elements in x and y must have the same length.\n"
                f"Shapes in x and y: {shapes}\n"
            )
        batch = _enqueued(columns, batch_size, num_epochs, bool(shuffle), queue_capacity, num_threads)
        made = batch[0] if None in features else dict(zip(features, batch))
        if y is None:
            return made
        labels = batch[len(features) :]
        return made, labels[0] if None in targets else dict(zip(targets, labels))

    return input_fn


@export(v1="estimator.inputs.pandas_input_fn")
def pandas_input_fn(
    x: Any,
    y: Any = None,
    batch_size: int = 128,
    num_epochs: int | None = 1,
    shuffle: bool | None = None,
    queue_capacity: int = 1000,
    num_threads: int = 1,
    target_column: str = "target",
) -> Callable[[], Any]:
    """Returns an input function over a pandas DataFrame: each column is a feature.

    Args:
        x: a DataFrame.
        y: labels: a Series, a DataFrame, or None.
        batch_size: the size of a batch.
        num_epochs: how often to go through the data; None for ever.
        shuffle: whether to shuffle. It must be given.
        queue_capacity: how many examples are read ahead.
        num_threads: the number of threads that fill the queue. With several the order is random.
        target_column: a name for the labels that is not one of the columns of `x`.

    Raises:
        TypeError: `x` is not a DataFrame.
        ValueError: `shuffle` is not given, `y` has another index, or `target_column` is a column of `x`.
    """
    if not hasattr(x, "columns") or not hasattr(x, "index"):
        raise TypeError("pandas_input_fn should not be called without pandas installed")
    _check_shuffle(shuffle)
    if not isinstance(target_column, str):
        raise TypeError("target_column must be a string type")
    if y is not None:
        if target_column in x:
            raise ValueError(
                f"Cannot use name {target_column} for target column: DataFrame already has a column with that name: {x.columns}"
            )
        if not np.array_equal(x.index, y.index):
            raise ValueError(f"Index for x and y are mismatched.\nIndex for x: {x.index}\nIndex for y: {y.index}\n")

    def input_fn() -> Any:
        several = y is not None and hasattr(y, "columns")
        labels = {} if y is None else {name: y[name] for name in y.columns} if several else {target_column: y}
        columns = [*(x[name].to_numpy() for name in x.columns), *(each.to_numpy() for each in labels.values())]
        batch = _enqueued(columns, batch_size, num_epochs, bool(shuffle), queue_capacity, num_threads)
        features = dict(zip(x.columns, batch))
        if y is None:
            return features
        targets = batch[len(features) :]
        return features, dict(zip(labels, targets)) if several else targets[0]

    return input_fn
