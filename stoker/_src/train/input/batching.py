"""Batches: a queue, filled by threads, turns single examples into batches."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from stoker._src.base import dtypes
from stoker._src.base.deprecation import deprecated
from stoker._src.base.export import export
from stoker._src.graph.conversion import convert_to_tensor
from stoker._src.graph.scopes import colocate_with, name_scope
from stoker._src.graph.sparse_tensor import SparseTensor, convert_to_tensor_or_sparse_tensor
from stoker._src.graph.static_values import constant_value
from stoker._src.graph.tensor import Operation, Tensor
from stoker._src.ops.array import casting, constants, gathering, scattering, shaping
from stoker._src.ops.control_flow import branches_and_loops, grouping
from stoker._src.ops.math import arithmetic
from stoker._src.ops.resources.queues import FIFOQueue, PaddingFIFOQueue, QueueBase, RandomShuffleQueue
from stoker._src.ops.sparse import sparse_functions
from stoker._src.ops.sparse.sparse_maps import ADD_MANY_SPARSE, ADD_SPARSE, TAKE_MANY_SPARSE
from stoker._src.train.input.producers import REPLACED, fullness, refuse_eager
from stoker._src.train.input.queue_runner import QueueRunner, add_queue_runner

# -- what all eight functions do ---------------------------------------------------------------------------------


def as_list(tensors: Any) -> list[Any]:
    """Returns the components of one example. The values of a dictionary are in the order of its keys."""
    return [tensors[key] for key in sorted(tensors)] if isinstance(tensors, dict) else list(tensors)


def in_form_of(tensors: Any, batches: list[Any]) -> Any:
    """Returns the batches in the structure of the examples. A single component is returned without a list."""
    if isinstance(tensors, dict):
        return dict(zip(sorted(tensors), batches))
    return batches[0] if len(batches) == 1 else batches


def examples_of(tensors_list: Any) -> list[list[Any]]:
    """Returns the components of one example from each source, as tensors and sparse tensors.

    Raises:
        ValueError: The dictionaries have different keys, or the sources differ in the number or kinds of their components.
    """
    if isinstance(tensors_list[0], dict) and any(set(each) != set(tensors_list[0]) for each in tensors_list):
        raise ValueError("All dictionaries in tensors_list must have the same keys")
    examples = [[convert_to_tensor_or_sparse_tensor(value) for value in as_list(each)] for each in tensors_list]
    kinds = [[isinstance(value, SparseTensor) and value.dtype for value in example] for example in examples]
    for example, kind in zip(examples, kinds):
        if kind != kinds[0]:
            raise ValueError(f"Inconsistent SparseTensors list: {examples[0]} vs. {example}")
    return examples


def _kept(keep_input: Any, enqueue_many: bool) -> Tensor:
    """Returns which examples to keep: a scalar for the whole input, or a vector with one value for each row."""
    kept = convert_to_tensor(keep_input)
    rank = kept.static_shape.rank
    if rank is None:
        raise ValueError("`keep_input` dimensions must be known at graph construction.")
    if rank == 1 and not enqueue_many:
        raise ValueError("`keep_input` cannot be a vector when `enqueue_many=False`.")
    if rank > 1:
        raise ValueError("`keep_input` must be 0 or 1 dimensions.")
    return kept


def if_kept(kept: Tensor, then: Callable[[], Any], otherwise: Callable[[], Any]) -> Any:
    """Calls `then` under the condition `kept`, or directly if the condition is constant."""
    known = constant_value(kept)
    if known is None:
        return branches_and_loops.cond(kept, then, otherwise)
    return then() if known else otherwise()


class _Stored(NamedTuple):
    """How a sparse component passes through the queue: as a key into a map of sparse tensors."""

    map_op: Operation
    shared_name: str
    dtype: Any
    rank: int | None


def store_sparse(
    components: list[Any], enqueue_many: bool, kept: Tensor, maps: list[_Stored | None]
) -> tuple[list[Tensor], list[_Stored | None]]:
    """Replaces sparse tensors by their keys. All sources share the maps of the first one."""
    stored = [
        _store(component, enqueue_many, kept, place) if isinstance(component, SparseTensor) else None
        for component, place in zip(components, maps)
    ]
    # Keys get an extra dimension, because queues must know the shapes of their elements, also for batches of batches.
    tensors = [
        component if each is None else shaping.expand_dims(each[0], [-1]) for component, each in zip(components, stored)
    ]
    return tensors, [each and each[1] for each in stored]


def _store(component: SparseTensor, enqueue_many: bool, kept: Tensor, place: _Stored | None) -> tuple[Tensor, _Stored]:
    if kept.static_shape.rank == 1:  # Examples that are dropped later only leave an empty row in the map.
        component = sparse_functions.retain(component, gathering.gather(kept, component.indices[:, 0]))
    parts = (component.indices, component.values, component.dense_shape)
    add = ADD_MANY_SPARSE if enqueue_many else ADD_SPARSE
    rank = component.dense_shape.static_shape.of_rank(1)[0]
    if rank is not None and not enqueue_many:
        rank += 1
    known = constant_value(kept) if kept.static_shape.rank == 0 else True
    if known is not None:  # With a constant False, nothing is enqueued, so nothing is added to the map.
        number = add(*parts, shared_name=place.shared_name if place else "")
        name = place.shared_name if place else number.op.name
        return number, place or _Stored(number.op, name, component.dtype, rank)
    # The op is inside a branch, so its map is named after the node that decides.
    name = place.shared_name if place else kept.graph.unique_name(add.name)

    def none() -> Tensor:
        if not enqueue_many:
            return constants.constant(-1, dtype=dtypes.int64)
        return -1 * shaping.ones(component.dense_shape[0:1], dtype=dtypes.int64)

    number = if_kept(kept, lambda: add(*parts, shared_name=name), none)
    return number, place or _Stored(number.op, name, component.dtype, rank)


def restore_sparse(batches: list[Tensor], stored: list[_Stored | None]) -> list[Any]:
    """Replaces the keys of the dequeued batches by sparse tensors."""
    if not any(stored):
        return batches
    restored = [batch if place is None else _take(batch, place) for batch, place in zip(batches, stored)]
    # A key can be used only once, so using a part of a batch removes all parts of it from their maps.
    ops = list(dict.fromkeys(batch.values.op if isinstance(batch, SparseTensor) else batch.op for batch in restored))

    def together(batch: Any) -> Any:
        if isinstance(batch, SparseTensor):
            return SparseTensor(*map(together, (batch.indices, batch.values, batch.dense_shape)))
        return grouping.with_dependencies([op for op in ops if op is not batch.op], batch)

    complete = [together(batch) for batch in restored]
    return complete if len(complete) > 1 else restored


def _take(numbers: Tensor, place: _Stored) -> SparseTensor:
    numbers = shaping.squeeze(numbers, axis=[1])
    with colocate_with(place.map_op):
        parts = TAKE_MANY_SPARSE(numbers, dtype=place.dtype, shared_name=place.shared_name)
    indices, values, dense_shape = parts
    indices.set_shape([None, place.rank])
    dense_shape.set_shape([place.rank])
    return SparseTensor(indices, values, dense_shape)


def dtypes_of(examples: list[list[Tensor]]) -> list[Any]:
    """Returns the dtypes of the components. All sources must agree on them."""
    first = [component.dtype.base_dtype for component in examples[0]]
    for example in examples[1:]:
        for expected, component in zip(first, example):
            if component.dtype.base_dtype != expected:
                raise TypeError(
                    f"Expected types to be consistent: {expected.name} vs. {component.dtype.base_dtype.name}."
                )
    return first


def shapes_of(examples: list[list[Tensor]], shapes: Any, enqueue_many: bool) -> Any:
    """Returns the shapes of the components. All sources must agree on them. Those of the first source are used."""
    if shapes is not None:
        return shapes
    for example in examples:
        for component in example:
            if component.static_shape.rank is None:
                raise ValueError(f"Cannot infer Tensor's rank: {component}")
    known = [[c.shape.with_rank_at_least(1)[1:] if enqueue_many else c.shape for c in example] for example in examples]
    for others in known[1:]:
        for first, other in zip(known[0], others):
            first.merge_with(other)  # raises an error if they disagree
    return known[0]


def _enqueue(queue: QueueBase, examples: list[list[Tensor]], threads: int, enqueue_many: bool, kept: Tensor) -> None:
    """Adds the queue runner: `threads` threads for each source."""
    insert = queue.enqueue_many if enqueue_many else queue.enqueue

    def op_of(example: list[Tensor]) -> Any:
        if kept.static_shape.rank == 1:
            side = casting.cast(kept, dtypes.int32)
            return insert([scattering.dynamic_partition(component, side, 2)[1] for component in example])
        return if_kept(kept, lambda: insert(example), grouping.no_op)

    ops = [op_of(example) for example in examples] * threads
    add_queue_runner(QueueRunner(queue, ops))


def _through_queue(
    tensors_list: Any,
    keep_input: Any,
    batch_size: Any,
    make_queue: Callable[[list[Any], Any], QueueBase],
    measure: Callable[[QueueBase], None],
    scope: str,
    *,
    threads: int,
    enqueue_many: bool,
    shapes: Any,
    smaller: bool,
) -> Any:
    """Feeds the examples of all sources in `tensors_list` into one queue and returns batches in the structure of the examples.

    `make_queue` creates the queue from dtypes and shapes. `measure` adds a summary of it.
    """
    examples = examples_of(tensors_list)
    kept = _kept(keep_input, enqueue_many)
    numbered: list[list[Tensor]] = []
    stored: list[_Stored | None] = [None] * len(examples[0])
    for example in examples:
        dense, stored = store_sparse(example, enqueue_many, kept, stored)
        numbered.append(dense)
    queue = make_queue(dtypes_of(numbered), shapes_of(numbered, shapes, enqueue_many))
    _enqueue(queue, numbered, threads, enqueue_many, kept)
    measure(queue)
    batches = queue.dequeue_up_to(batch_size, name=scope) if smaller else queue.dequeue_many(batch_size, name=scope)
    return in_form_of(tensors_list[0], restore_sparse(as_list(batches if len(stored) > 1 else [batches]), stored))


def _in_order(
    tensors_list: Any,
    keep_input: Any,
    batch_size: Any,
    capacity: int,
    dynamic_pad: bool,
    shared_name: str | None,
    name: str | None,
    default_name: str,
    **options: Any,
) -> Any:
    refuse_eager(ValueError)
    kind = PaddingFIFOQueue if dynamic_pad else FIFOQueue

    def make_queue(kinds: list[Any], shapes: Any) -> QueueBase:
        return kind(capacity, kinds, shapes, shared_name=shared_name)

    def measure(queue: QueueBase) -> None:
        fullness(queue.size(), capacity, f"fraction_of_{capacity}_full")

    if not tensors_list:
        raise ValueError("Expected at least one set of tensors")
    with name_scope(name, default_name, [value for each in tensors_list for value in as_list(each)]) as scope:
        return _through_queue(tensors_list, keep_input, batch_size, make_queue, measure, scope, **options)


def _shuffled(
    tensors_list: Any,
    keep_input: Any,
    batch_size: Any,
    capacity: int,
    min_after_dequeue: int,
    seed: int | None,
    shared_name: str | None,
    name: str | None,
    default_name: str,
    **options: Any,
) -> Any:
    refuse_eager(ValueError)

    def make_queue(kinds: list[Any], shapes: Any) -> QueueBase:
        return RandomShuffleQueue(capacity, min_after_dequeue, kinds, shapes, seed=seed, shared_name=shared_name)

    def measure(queue: QueueBase) -> None:
        room = capacity - min_after_dequeue
        fullness(
            arithmetic.maximum(0, queue.size() - min_after_dequeue),
            room,
            f"fraction_over_{min_after_dequeue}_of_{room}_full",
        )

    if not tensors_list:
        raise ValueError("Expected at least one set of tensors")
    if capacity <= min_after_dequeue:
        raise ValueError(f"capacity {capacity} must be bigger than min_after_dequeue {min_after_dequeue}.")
    with name_scope(name, default_name, [value for each in tensors_list for value in as_list(each)]) as scope:
        return _through_queue(tensors_list, keep_input, batch_size, make_queue, measure, scope, **options)


def _single(tensors: Any, function: str) -> list[Any]:
    """Returns a list with one source of examples."""
    refuse_eager(ValueError)
    tensors = tensors if isinstance(tensors, dict) else list(tensors)
    if not tensors:
        raise ValueError(f"Expected at least one tensor in {function}().")
    return [tensors]


# -- the functions -----------------------------------------------------------------------------------------------

_PADDED = " (or `padded_batch(...)` if `dynamic_pad=True`)."


def _instead(chain: str, end: str = ".") -> str:
    return f"{REPLACED}Use `tf.data.Dataset.{chain}`{end}"


@export(v1="train.batch")
@deprecated(None, _instead("batch(batch_size)", _PADDED))
def batch(
    tensors: Any,
    batch_size: Any,
    num_threads: int = 1,
    capacity: int = 32,
    enqueue_many: bool = False,
    shapes: Any = None,
    dynamic_pad: bool = False,
    allow_smaller_final_batch: bool = False,
    shared_name: str | None = None,
    name: str | None = None,
) -> Any:
    """Returns batches of examples, in order. The queue runner that fills the queue is added to QUEUE_RUNNERS.

    At the end of the input (OutOfRangeError) the queue is closed: the remaining full batches are returned, then the error is raised.

    Args:
        tensors: A list or dictionary of the tensors or sparse tensors of one example.
        batch_size: The number of examples in a batch.
        num_threads: The number of threads that evaluate `tensors`. With more than one, the order of the examples is not deterministic.
        capacity: The capacity of the queue, in examples.
        enqueue_many: Whether `tensors` contain many examples, along their first dimension.
        shapes: The shapes of an example's tensors, if the graph does not know them.
        dynamic_pad: Whether to pad examples of different sizes at their ends with zeros or empty strings, up to the largest of
            the batch. The ranks must be known.
        allow_smaller_final_batch: Whether the examples left over at the end make a smaller batch. Otherwise they are dropped.
        shared_name: The name under which sessions share the queue.
        name: The name of the batch's operation.

    Returns:
        The batches in the structure of `tensors`. A list of one tensor is returned as that tensor.

    Raises:
        ValueError: There are no tensors, their shapes are not known, or eager mode is on.
    """
    return _in_order(
        _single(tensors, "batch"), True, batch_size, capacity, dynamic_pad, shared_name, name, "batch",
        threads=num_threads, enqueue_many=enqueue_many, shapes=shapes, smaller=allow_smaller_final_batch,
    )  # fmt: skip


@export(v1="train.maybe_batch")
@deprecated(None, _instead("filter(...).batch(batch_size)", _PADDED))
def maybe_batch(
    tensors: Any,
    keep_input: Any,
    batch_size: Any,
    num_threads: int = 1,
    capacity: int = 32,
    enqueue_many: bool = False,
    shapes: Any = None,
    dynamic_pad: bool = False,
    allow_smaller_final_batch: bool = False,
    shared_name: str | None = None,
    name: str | None = None,
) -> Any:
    """Returns batches of the examples for which `keep_input` is true. The others are dropped.

    Args:
        keep_input: A scalar bool, or with `enqueue_many` a vector with one value for each example.

    For the other arguments see `batch`.

    Raises:
        ValueError: `keep_input` has a higher or an unknown rank.
    """
    return _in_order(
        _single(tensors, "batch"), keep_input, batch_size, capacity, dynamic_pad, shared_name, name, "batch",
        threads=num_threads, enqueue_many=enqueue_many, shapes=shapes, smaller=allow_smaller_final_batch,
    )  # fmt: skip


@export(v1="train.batch_join")
@deprecated(None, _instead("interleave(...).batch(batch_size)", _PADDED))
def batch_join(
    tensors_list: Any,
    batch_size: Any,
    capacity: int = 32,
    enqueue_many: bool = False,
    shapes: Any = None,
    dynamic_pad: bool = False,
    allow_smaller_final_batch: bool = False,
    shared_name: str | None = None,
    name: str | None = None,
) -> Any:
    """Returns batches of examples from several sources, each evaluated by its own thread.

    Args:
        tensors_list: A list of sources, each like `tensors` of `batch`. They must agree in dtypes and shapes.

    For the other arguments see `batch`.

    Raises:
        TypeError: The sources have different dtypes.
        ValueError: The sources have different shapes, keys or lengths, or there are none.
    """
    return _in_order(
        tensors_list, True, batch_size, capacity, dynamic_pad, shared_name, name, "batch_join",
        threads=1, enqueue_many=enqueue_many, shapes=shapes, smaller=allow_smaller_final_batch,
    )  # fmt: skip


@export(v1="train.maybe_batch_join")
@deprecated(None, _instead("interleave(...).filter(...).batch(batch_size)", _PADDED))
def maybe_batch_join(
    tensors_list: Any,
    keep_input: Any,
    batch_size: Any,
    capacity: int = 32,
    enqueue_many: bool = False,
    shapes: Any = None,
    dynamic_pad: bool = False,
    allow_smaller_final_batch: bool = False,
    shared_name: str | None = None,
    name: str | None = None,
) -> Any:
    """Like `batch_join`, but drops the examples for which `keep_input` is false, as `maybe_batch` does."""
    return _in_order(
        tensors_list, keep_input, batch_size, capacity, dynamic_pad, shared_name, name, "batch_join",
        threads=1, enqueue_many=enqueue_many, shapes=shapes, smaller=allow_smaller_final_batch,
    )  # fmt: skip


@export(v1="train.shuffle_batch")
@deprecated(None, _instead("shuffle(min_after_dequeue).batch(batch_size)"))
def shuffle_batch(
    tensors: Any,
    batch_size: Any,
    capacity: int,
    min_after_dequeue: int,
    num_threads: int = 1,
    seed: int | None = None,
    enqueue_many: bool = False,
    shapes: Any = None,
    allow_smaller_final_batch: bool = False,
    shared_name: str | None = None,
    name: str | None = None,
) -> Any:
    """Returns batches of examples in random order, drawn from those in the queue.

    Args:
        capacity: The capacity of the queue, in examples.
        min_after_dequeue: How many examples stay in the queue when a batch is taken, to be mixed with, until the input ends.
        seed: The seed of the order.

    For the other arguments see `batch`.

    Raises:
        ValueError: `capacity` is not larger than `min_after_dequeue`.
    """
    return _shuffled(
        _single(tensors, "shuffle_batch"), True, batch_size, capacity, min_after_dequeue, seed, shared_name, name,
        "shuffle_batch",
        threads=num_threads, enqueue_many=enqueue_many, shapes=shapes, smaller=allow_smaller_final_batch,
    )  # fmt: skip


@export(v1="train.maybe_shuffle_batch")
@deprecated(None, _instead("filter(...).shuffle(min_after_dequeue).batch(batch_size)"))
def maybe_shuffle_batch(
    tensors: Any,
    batch_size: Any,
    capacity: int,
    min_after_dequeue: int,
    keep_input: Any,
    num_threads: int = 1,
    seed: int | None = None,
    enqueue_many: bool = False,
    shapes: Any = None,
    allow_smaller_final_batch: bool = False,
    shared_name: str | None = None,
    name: str | None = None,
) -> Any:
    """Like `shuffle_batch`, but drops the examples for which `keep_input` is false, as `maybe_batch` does."""
    return _shuffled(
        _single(tensors, "shuffle_batch"), keep_input, batch_size, capacity, min_after_dequeue, seed, shared_name, name,
        "shuffle_batch",
        threads=num_threads, enqueue_many=enqueue_many, shapes=shapes, smaller=allow_smaller_final_batch,
    )  # fmt: skip


@export(v1="train.shuffle_batch_join")
@deprecated(None, _instead("interleave(...).shuffle(min_after_dequeue).batch(batch_size)"))
def shuffle_batch_join(
    tensors_list: Any,
    batch_size: Any,
    capacity: int,
    min_after_dequeue: int,
    seed: int | None = None,
    enqueue_many: bool = False,
    shapes: Any = None,
    allow_smaller_final_batch: bool = False,
    shared_name: str | None = None,
    name: str | None = None,
) -> Any:
    """Returns batches of examples in random order, like `shuffle_batch`, from several sources, like `batch_join`."""
    return _shuffled(
        tensors_list, True, batch_size, capacity, min_after_dequeue, seed, shared_name, name, "shuffle_batch_join",
        threads=1, enqueue_many=enqueue_many, shapes=shapes, smaller=allow_smaller_final_batch,
    )  # fmt: skip


@export(v1="train.maybe_shuffle_batch_join")
@deprecated(None, _instead("interleave(...).filter(...).shuffle(min_after_dequeue).batch(batch_size)"))
def maybe_shuffle_batch_join(
    tensors_list: Any,
    batch_size: Any,
    capacity: int,
    min_after_dequeue: int,
    keep_input: Any,
    seed: int | None = None,
    enqueue_many: bool = False,
    shapes: Any = None,
    allow_smaller_final_batch: bool = False,
    shared_name: str | None = None,
    name: str | None = None,
) -> Any:
    """Like `shuffle_batch_join`, but drops the examples for which `keep_input` is false, as `maybe_batch` does."""
    return _shuffled(
        tensors_list, keep_input, batch_size, capacity, min_after_dequeue, seed, shared_name, name, "shuffle_batch_join",
        threads=1, enqueue_many=enqueue_many, shapes=shapes, smaller=allow_smaller_final_batch,
    )  # fmt: skip
