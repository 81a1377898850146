"""Data for slim: descriptions of datasets, readers in threads, and providers of decoded items."""

from __future__ import annotations

from typing import Any

from stoker._src.base import dtypes as base_dtypes
from stoker._src.base.export import export
from stoker._src.formats import gfile
from stoker._src.graph import scopes
from stoker._src.ops.array import casting
from stoker._src.ops.math import arithmetic
from stoker._src.ops.resources import queues, readers
from stoker._src.ops.summary import summary_ops
from stoker._src.train.input import producers, queue_runner


@export(v1="contrib.slim.dataset.Dataset")
class Dataset:
    """What is known of a dataset: where it is, how to read and decode it, and anything else as attributes.

    Args:
        data_sources: patterns of its files.
        reader: the class of its reader, such as `tf.TFRecordReader`.
        decoder: turns records into items.
        num_samples: the number of its records.
        items_to_descriptions: a description of each item.
        **kwargs: more attributes.
    """

    def __init__(
        self, data_sources: Any, reader: Any, decoder: Any, num_samples: Any, items_to_descriptions: Any, **kwargs: Any
    ) -> None:
        vars(self).update(kwargs)
        self.data_sources, self.reader, self.decoder = data_sources, reader, decoder
        self.num_samples, self.items_to_descriptions = num_samples, items_to_descriptions


@export(v1="contrib.slim.parallel_reader.get_data_files")
def get_data_files(data_sources: Any) -> list[str]:
    """The files of patterns.

    Raises:
        ValueError: there are none.
    """
    if isinstance(data_sources, (list, tuple)):
        found = [file for source in data_sources for file in get_data_files(source)]
    else:
        wild = any(mark in data_sources for mark in "*?[")
        found = gfile.Glob(data_sources) if wild else [data_sources]
    if not found:
        raise ValueError(f"No data files found in {data_sources}")
    return found


@export(v1="contrib.slim.parallel_reader.ParallelReader")
class ParallelReader(readers.ReaderBase):
    """Several readers of the same files whose records meet in a queue.

    Args:
        reader_class: the class of the readers.
        common_queue: the queue, of keys and values.
        num_readers: how many there are.
        reader_kwargs: arguments of each.
    """

    def __init__(self, reader_class: Any, common_queue: Any, num_readers: int = 4, reader_kwargs: Any = None) -> None:
        if len(common_queue.dtypes) != 2:
            raise TypeError("common_queue.dtypes must contain two elements: one for the keys and one for the values")
        if any(not dtype.is_compatible_with(base_dtypes.string) for dtype in common_queue.dtypes):
            raise TypeError("common_queue.dtypes must be strings")
        self._readers = [reader_class(**(reader_kwargs or {})) for _ in range(num_readers)]
        self._common_queue = common_queue

    @property
    def num_readers(self) -> int:
        return len(self._readers)

    @property
    def common_queue(self) -> Any:
        return self._common_queue

    def read(self, queue: Any, name: str | None = None) -> Any:
        """The next record of any of the readers, which read the files whose names are in `queue`."""
        self._start(queue)
        return self._common_queue.dequeue(name=name)

    def read_up_to(self, queue: Any, num_records: int, name: str | None = None) -> Any:
        """Up to `num_records` records of any of the readers."""
        self._start(queue)
        return self._common_queue.dequeue_up_to(num_records, name=name)

    def _start(self, queue: Any) -> None:
        enqueues = [self._common_queue.enqueue(reader.read(queue)) for reader in self._readers]
        queue_runner.add_queue_runner(queue_runner.QueueRunner(self._common_queue, enqueues))

    def num_records_produced(self, name: str | None = None) -> Any:
        """The number of records that all readers have read."""
        return arithmetic.add_n([reader.num_records_produced() for reader in self._readers], name=name)

    def num_work_units_completed(self, name: str | None = None) -> Any:
        """The number of files that all readers have read."""
        return arithmetic.add_n([reader.num_work_units_completed() for reader in self._readers], name=name)


@export(v1="contrib.slim.parallel_reader.parallel_read")
def parallel_read(
    data_sources: Any,
    reader_class: Any,
    num_epochs: int | None = None,
    num_readers: int = 4,
    reader_kwargs: Any = None,
    shuffle: bool = True,
    dtypes: Any = None,
    capacity: int = 256,
    min_after_dequeue: int = 128,
    seed: int | None = None,
    scope: str | None = None,
) -> Any:
    """The keys and values of the records of files, read by several readers.

    Args:
        data_sources: patterns of files.
        reader_class: the class of the readers.
        num_epochs: how often the files are read; None for no end.
        num_readers: the number of readers.
        reader_kwargs: arguments of each reader.
        shuffle: whether files and records are shuffled.
        dtypes: of keys and values; strings by default.
        capacity, min_after_dequeue: of the queue of records.
        seed: of the shuffling.
        scope: the name scope ("parallel_read").
    """
    files = get_data_files(data_sources)
    with scopes.NameScope(scope, "parallel_read"):
        names = producers.string_input_producer(
            files, num_epochs=num_epochs, shuffle=shuffle, seed=seed, name="filenames"
        )
        kinds = dtypes or [base_dtypes.string, base_dtypes.string]
        if shuffle:
            queue = queues.RandomShuffleQueue(capacity, min_after_dequeue, kinds, seed=seed, name="common_queue")
        else:
            queue = queues.FIFOQueue(capacity, kinds, name="common_queue")
        summary_ops.scalar_summary(
            f"fraction_of_{capacity}_full", casting.cast(queue.size(), base_dtypes.float32) * (1.0 / capacity)
        )
        return ParallelReader(reader_class, queue, num_readers, reader_kwargs).read(names)


@export(v1="contrib.slim.parallel_reader.single_pass_read")
def single_pass_read(data_sources: Any, reader_class: Any, reader_kwargs: Any = None, scope: str | None = None) -> Any:
    """The keys and values of the records of files, each once and in order."""
    files = get_data_files(data_sources)
    with scopes.NameScope(scope, "single_pass_read"):
        names = producers.string_input_producer(files, num_epochs=1, shuffle=False, capacity=1, name="filenames")
        return reader_class(**(reader_kwargs or {})).read(names)


@export(v1="contrib.slim.data_provider.DataProvider")
class DataProvider:
    """Items by name, each a tensor that changes from run to run.

    Args:
        items_to_tensors: the tensors.
        num_samples: the number of samples.
    """

    def __init__(self, items_to_tensors: dict[str, Any], num_samples: Any) -> None:
        self._items_to_tensors, self._num_samples = items_to_tensors, num_samples

    def get(self, items: Any) -> list[Any]:
        """The tensors of items.

        Raises:
            ValueError: an item is not provided.
        """
        for item in items:
            if item not in self._items_to_tensors:
                raise ValueError(f"Item [{item}] is not provided; there are {', '.join(self.list_items())}.")
        return [self._items_to_tensors[item] for item in items]

    def list_items(self) -> list[str]:
        """The names of the items."""
        return list(self._items_to_tensors)

    def num_samples(self) -> Any:
        """The number of samples."""
        return self._num_samples


@export(v1="contrib.slim.dataset_data_provider.DatasetDataProvider")
class DatasetDataProvider(DataProvider):
    """Provides the decoded items of a dataset.

    Args:
        dataset: a `Dataset`.
        num_readers: the number of readers.
        reader_kwargs: arguments of each reader.
        shuffle: whether files and records are shuffled.
        num_epochs: how often the files are read; None for no end.
        common_queue_capacity, common_queue_min: of the queue of records.
        record_key: the name of the item with the key of a record.
        seed: of the shuffling.
        scope: the name scope of the readers.
    """

    def __init__(
        self,
        dataset: Any,
        num_readers: int = 1,
        reader_kwargs: Any = None,
        shuffle: bool = True,
        num_epochs: int | None = None,
        common_queue_capacity: int = 256,
        common_queue_min: int = 128,
        record_key: str = "record_key",
        seed: int | None = None,
        scope: str | None = None,
    ) -> None:
        key, data = parallel_read(
            dataset.data_sources,
            dataset.reader,
            num_epochs,
            num_readers,
            reader_kwargs,
            shuffle,
            capacity=common_queue_capacity,
            min_after_dequeue=common_queue_min,
            seed=seed,
            scope=scope,
        )
        items = dataset.decoder.list_items()
        tensors = dict(zip(items, dataset.decoder.decode(data, items)))
        if record_key in tensors:
            raise ValueError(
                f"The item name used for `record_key` cannot also be used for a dataset item: {record_key}"
            )
        super().__init__({**tensors, record_key: key}, dataset.num_samples)


@export(v1="contrib.slim.prefetch_queue.prefetch_queue")
def prefetch_queue(
    tensors: Any,
    capacity: int = 8,
    num_threads: int = 1,
    dynamic_pad: bool = False,
    shared_name: str | None = None,
    name: str | None = None,
) -> Any:
    """A queue that holds batches ready.

    Args:
        tensors: a list or dictionary of tensors.
        capacity: the number of batches.
        num_threads: the number of threads that fill it.
        dynamic_pad: whether shapes may be unknown.
        shared_name: a name under which sessions share the queue.
        name: the name scope.
    """
    names = sorted(tensors) if isinstance(tensors, dict) else None
    flat = [tensors[key] for key in names] if names else list(tensors)
    with scopes.NameScope(name, "prefetch_queue", flat):
        kinds, shapes = [each.dtype for each in flat], [each.get_shape() for each in flat]
        if dynamic_pad:
            queue = queues.PaddingFIFOQueue(capacity, kinds, shapes, names=names, shared_name=shared_name)
        else:
            queue = queues.FIFOQueue(capacity, kinds, shapes, names=names, shared_name=shared_name)
        enqueue = queue.enqueue(tensors)
        queue_runner.add_queue_runner(queue_runner.QueueRunner(queue, [enqueue] * num_threads))
        summary_ops.scalar_summary(
            f"fraction_of_{capacity}_full", casting.cast(queue.size(), base_dtypes.float32) * (1.0 / capacity)
        )
    return queue
