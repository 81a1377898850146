"""`tf.data.experimental`: functions to pass to `Dataset.apply`, and functions on datasets."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from stoker._src.base import dtypes, nest
from stoker._src.base.export import export
from stoker._src.base.shapes import as_shape
from stoker._src.data import structure
from stoker._src.data.dataset import AUTOTUNE, Dataset, DatasetV1, _seeds
from stoker._src.data.readers import TFRecordDatasetV1
from stoker._src.graph.conversion import convert_to_tensor
from stoker._src.graph.late_binding import ops
from stoker._src.graph.tensor import Tensor
from stoker._src.graph.tensor_spec import TensorSpec
from stoker._src.ops.array.casting import cast
from stoker._src.ops.dataset import combinations, transforms
from stoker._src.ops.ragged.feature_specs import parse_example
from stoker._src.ops.random.stateless_random import stateless_multinomial

Transformation = Callable[[Any], Any]


def _integer(value: Any) -> Tensor:
    return convert_to_tensor(value, dtypes.int64)


@export("data.experimental.map_and_batch")
def map_and_batch(
    map_func: Callable[..., Any],
    batch_size: Any,
    num_parallel_batches: Any = None,
    drop_remainder: Any = False,
    num_parallel_calls: Any = None,
) -> Transformation:
    """Returns a function for `Dataset.apply` that maps and batches.

    Raises:
        ValueError: both numbers of parallel calls and of parallel batches are given.
    """
    if num_parallel_batches is not None and num_parallel_calls is not None:
        raise ValueError(
            "`map_and_batch` allows only one of `num_parallel_batches` and `num_parallel_calls` to be set, but "
            f"`num_parallel_batches` was set to {num_parallel_batches} and `num_parallel_calls` was set to {num_parallel_calls}."
        )
    calls = num_parallel_calls
    if calls is None and num_parallel_batches is not None:
        calls = num_parallel_batches * batch_size
    return lambda dataset: dataset.map(map_func, calls).batch(batch_size, drop_remainder)


@export("data.experimental.shuffle_and_repeat")
def shuffle_and_repeat(buffer_size: Any, count: Any = None, seed: Any = None) -> Transformation:
    """Returns a function for `Dataset.apply` that shuffles and repeats."""
    return lambda dataset: dataset._derived(
        transforms.SHUFFLE_AND_REPEAT_DATASET,
        _integer(buffer_size),
        *_seeds(seed),
        _integer(-1 if count is None else count),
    )


@export("data.experimental.parallel_interleave")
def parallel_interleave(
    map_func: Callable[..., Any],
    cycle_length: Any,
    block_length: Any = 1,
    sloppy: Any = False,
    buffer_output_elements: Any = None,
    prefetch_input_elements: Any = None,
) -> Transformation:
    """Returns a function for `Dataset.apply` that interleaves. The order is deterministic, also with `sloppy`."""
    return lambda dataset: dataset.interleave(map_func, cycle_length, block_length, num_parallel_calls=cycle_length)


@export("data.experimental.unbatch")
def unbatch() -> Transformation:
    """Returns a function for `Dataset.apply` that splits elements into rows."""
    return lambda dataset: dataset.unbatch()


@export("data.experimental.enumerate_dataset")
def enumerate_dataset(start: Any = 0) -> Transformation:
    """Returns a function for `Dataset.apply` that numbers the elements."""
    return lambda dataset: dataset.enumerate(start)


@export("data.experimental.ignore_errors")
def ignore_errors(log_warning: bool = False) -> Transformation:
    """Returns a function for `Dataset.apply` that skips elements whose computation fails."""
    return lambda dataset: dataset.ignore_errors(log_warning)


@export("data.experimental.group_by_window")
def group_by_window(
    key_func: Callable[..., Any],
    reduce_func: Callable[..., Any],
    window_size: Any = None,
    window_size_func: Callable[..., Any] | None = None,
) -> Transformation:
    """Returns a function for `Dataset.apply` that groups elements by key. See `Dataset.group_by_window`."""
    return lambda dataset: dataset.group_by_window(key_func, reduce_func, window_size, window_size_func)


@export("data.experimental.scan")
def scan(initial_state: Any, scan_func: Callable[..., Any]) -> Transformation:
    """Returns a function for `Dataset.apply` that scans. See `Dataset.scan`."""
    return lambda dataset: dataset.scan(initial_state, scan_func)


@export("data.experimental.take_while")
def take_while(predicate: Callable[..., Any]) -> Transformation:
    """Returns a function for `Dataset.apply` that ends a dataset. See `Dataset.take_while`."""
    return lambda dataset: dataset.take_while(predicate)


@export("data.experimental.unique")
def unique() -> Transformation:
    """Returns a function for `Dataset.apply` that drops repeated elements."""
    return lambda dataset: dataset.unique()


@export("data.experimental.prefetch_to_device")
def prefetch_to_device(device: str, buffer_size: Any = None) -> Transformation:
    """Returns a function for `Dataset.apply` that computes elements ahead. A session moves them to the device when it needs them."""
    return lambda dataset: dataset.prefetch(AUTOTUNE if buffer_size is None else buffer_size)


@export("data.experimental.copy_to_device")
def copy_to_device(target_device: str, source_device: str = "/cpu:0") -> Transformation:
    """Returns a function for `Dataset.apply`. A session moves elements to the device when it needs them."""
    return lambda dataset: dataset


@export("data.experimental.cardinality")
def cardinality(dataset: Any) -> Tensor:
    """Returns the number of elements; -1 for endless datasets, -2 if it is unknown."""
    return dataset.cardinality()


@export("data.experimental.get_single_element")
def get_single_element(dataset: Any) -> Any:
    """Returns the only element of a dataset.

    Raises:
        TypeError: the argument is not a dataset.
    """
    if not isinstance(dataset, Dataset):
        raise TypeError(f"Invalid `dataset`. Expected a `tf.data.Dataset` object but got {type(dataset)}.")
    return dataset.get_single_element()


def _selected(kind: Any, selector: Any, datasets: list[Any], stop_on_empty: bool) -> Any:
    first = datasets[0]
    variant = combinations.DIRECTED_INTERLEAVE_DATASET(
        selector._variant_tensor,
        [dataset._variant_tensor for dataset in datasets],
        stop_on_empty_dataset=stop_on_empty,
        **structure.types_and_shapes(first.element_spec),
    )
    return kind._of(variant, first.element_spec)


@export("data.experimental.choose_from_datasets")
def choose_from_datasets(datasets: Any, choice_dataset: Any, stop_on_empty_dataset: bool = False) -> Any:
    """Returns a dataset that takes its next element from the dataset whose number `choice_dataset` gives.

    Raises:
        TypeError: the choices are not int64 scalars.
    """
    if choice_dataset.element_spec != TensorSpec([], dtypes.int64):
        raise TypeError(
            "`choice_dataset` must be a dataset of scalar `tf.int64` tensors. Got elements of type "
            f"{choice_dataset.element_spec}."
        )
    return _selected(type(datasets[0]), choice_dataset, list(datasets), stop_on_empty_dataset)


@export("data.experimental.sample_from_datasets")
def sample_from_datasets(
    datasets: Any, weights: Any = None, seed: Any = None, stop_on_empty_dataset: bool = False
) -> Any:
    """Returns a dataset that takes each element from a random one of `datasets`, with probabilities `weights`.

    Raises:
        ValueError: the numbers of weights and datasets differ.
    """
    datasets = list(datasets)
    chances = np.full(len(datasets), 1 / len(datasets)) if weights is None else np.asarray(weights, np.float64)
    if chances.shape != (len(datasets),):
        raise ValueError(
            f"Invalid `weights`. The shape of `weights` should be compatible with `[len(datasets)]` but is {chances.shape}."
        )
    logits = np.log(np.maximum(chances, np.finfo(np.float64).tiny)).astype(np.float32)[None]
    seeds = DatasetV1.random(seed).batch(2)
    chosen = seeds.map(lambda pair: cast(stateless_multinomial(logits, 1, pair)[0, 0], dtypes.int64))
    return _selected(type(datasets[0]), chosen, datasets, stop_on_empty_dataset)


@export("data.experimental.parse_example_dataset")
def parse_example_dataset(
    features: dict[str, Any], num_parallel_calls: int = 1, deterministic: Any = None
) -> Transformation:
    """Returns a function for `Dataset.apply` that parses batches of serialized Examples."""
    if features is None:
        raise ValueError("Argument `features` should be a dictionary of `FixedLenFeature` and others, not None.")
    return lambda dataset: dataset.map(lambda batch: parse_example(batch, features), num_parallel_calls)


@export("data.experimental.bucket_by_sequence_length")
def bucket_by_sequence_length(
    element_length_func: Callable[..., Any],
    bucket_boundaries: Any,
    bucket_batch_sizes: Any,
    padded_shapes: Any = None,
    padding_values: Any = None,
    pad_to_bucket_boundary: bool = False,
    no_padding: bool = False,
    drop_remainder: bool = False,
) -> Transformation:
    """Returns a function for `Dataset.apply` that batches elements of similar length.

    Raises:
        ValueError: there is not one batch size more than there are boundaries.
    """
    if len(bucket_batch_sizes) != len(bucket_boundaries) + 1:
        raise ValueError(
            f"`len(bucket_batch_sizes)` must equal `len(bucket_boundaries) + 1` but `len(bucket_batch_sizes)={len(bucket_batch_sizes)}` "
            f"and `len(bucket_boundaries)={len(bucket_boundaries)}`."
        )
    bounds, sizes = np.array(bucket_boundaries, np.int64), np.array(bucket_batch_sizes, np.int64)

    def bucket(*element: Any) -> Tensor:
        length = cast(element_length_func(*element), dtypes.int64)
        return ops.reduce_sum(cast(length >= bounds, dtypes.int64))

    def size(number: Tensor) -> Tensor:
        return convert_to_tensor(sizes)[number]

    def batch(number: Tensor, window: Any) -> Any:
        rows = size(number)
        if no_padding:
            return window.batch(rows, drop_remainder)
        shapes = padded_shapes
        if shapes is None:
            shapes = structure.legacy_shapes(window.element_spec)
        if pad_to_bucket_boundary:
            limit = convert_to_tensor(np.append(bounds, np.iinfo(np.int64).max))[number] - 1
            shapes = nest.map_structure(lambda shape: _with_limit(shape, limit), shapes)
        return window.padded_batch(rows, shapes, padding_values, drop_remainder)

    return lambda dataset: dataset.group_by_window(bucket, batch, window_size_func=size)


def _with_limit(shape: Any, limit: Tensor) -> Tensor:
    """Returns a shape as a tensor, with `limit` for unknown sizes."""
    sizes = as_shape(shape).dims or ()
    return ops.stack([limit if size is None else _integer(size) for size in sizes]) if sizes else _integer(np.zeros(0))


@export("data.experimental.Counter")
def counter(start: Any = 0, step: Any = 1, dtype: Any = dtypes.int64) -> Any:
    """Returns the endless dataset start, start + step, ..."""
    kind = dtypes.as_dtype(dtype)
    return (
        DatasetV1.from_tensors(0)
        .repeat(None)
        .scan(convert_to_tensor(start, kind), lambda state, _: (state + convert_to_tensor(step, kind), state))
    )


@export("data.experimental.make_batched_features_dataset")
def make_batched_features_dataset(
    file_pattern: Any,
    batch_size: int,
    features: dict[str, Any],
    reader: Any = None,
    label_key: str | None = None,
    reader_args: Any = None,
    num_epochs: int | None = None,
    shuffle: bool = True,
    shuffle_buffer_size: int = 10000,
    shuffle_seed: int | None = None,
    prefetch_buffer_size: int | None = None,
    reader_num_threads: int | None = None,
    parser_num_threads: int | None = None,
    sloppy_ordering: bool = False,
    drop_final_batch: bool = False,
) -> Any:
    """Returns a dataset of parsed batches of the Examples in files, as dictionaries of tensors, or (features, label).

    Raises:
        ValueError: `label_key` is not among the features.
    """
    reader = TFRecordDatasetV1 if reader is None else reader
    files = DatasetV1.list_files(file_pattern, shuffle=shuffle, seed=shuffle_seed)
    dataset = files.interleave(
        lambda name: reader(name, *(reader_args or ())), cycle_length=reader_num_threads or 1, block_length=1
    )
    if shuffle and num_epochs != 1:
        dataset = dataset.apply(shuffle_and_repeat(shuffle_buffer_size, num_epochs, shuffle_seed))
    elif shuffle:
        dataset = dataset.shuffle(shuffle_buffer_size, shuffle_seed)
    elif num_epochs != 1:
        dataset = dataset.repeat(num_epochs)
    dataset = dataset.batch(batch_size, drop_final_batch or num_epochs is None)
    dataset = dataset.map(lambda batch: parse_example(batch, features), parser_num_threads or 2)
    if label_key:
        if label_key not in features:
            raise ValueError(
                f"The `label_key` provided ({label_key!r}) must be one of the `features` keys: {sorted(features)}."
            )
        dataset = dataset.map(lambda parsed: (parsed, parsed.pop(label_key)))
    return dataset.prefetch(AUTOTUNE if prefetch_buffer_size is None else prefetch_buffer_size)
