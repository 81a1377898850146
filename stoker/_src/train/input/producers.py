"""Producers: queues that provide the rows of a tensor, in order or shuffled, for a number of epochs or without end."""

from __future__ import annotations

from typing import Any

from stoker._src.base import dtypes
from stoker._src.base.deprecation import deprecated
from stoker._src.base.export import export
from stoker._src.graph import context
from stoker._src.graph.conversion import convert_to_tensor
from stoker._src.graph.keys import GraphKeys
from stoker._src.graph.scopes import control_dependencies, name_scope
from stoker._src.graph.tensor import Tensor
from stoker._src.ops.array import casting, constants, gathering, ranges, shaping
from stoker._src.ops.control_flow.assertions import assert_op
from stoker._src.ops.random.sampling import random_shuffle
from stoker._src.ops.resources.queues import FIFOQueue, QueueBase
from stoker._src.ops.summary.summary_ops import scalar_summary
from stoker._src.ops.variables.variables import Variable
from stoker._src.train.input.queue_runner import QueueRunner, add_queue_runner

REPLACED = "Queue-based input pipelines have been replaced by `tf.data`. "
_SLICES = (
    REPLACED + "Use `tf.data.Dataset.from_tensor_slices({}).shuffle(tf.shape(input_tensor, out_type=tf.int64)[0])."
    "repeat(num_epochs)`. If `shuffle=False`, omit the `.shuffle(...)`."
)


def refuse_eager(kind: type[Exception]) -> None:
    """Raises an error in eager mode: queues that are filled by threads need a graph."""
    if context.executing_eagerly():
        raise kind(
            "Input pipelines based on Queues are not supported when eager execution is enabled. Please use tf.data to "
            "ingest data into your model instead."
        )


@export(v1="train.limit_epochs")
@deprecated(None, f"{REPLACED}Use `tf.data.Dataset.from_tensors(tensor).repeat(num_epochs)`.")
def limit_epochs(tensor: Any, num_epochs: int | None = None, name: str | None = None) -> Any:
    """Returns `tensor` for `num_epochs` evaluations. The next one raises OutOfRangeError.

    A local variable called `epochs` counts the evaluations. It must be initialized.

    Args:
        tensor: any tensor.
        num_epochs: The number of evaluations, or None for no limit.
        name: the name of the operation.

    Raises:
        ValueError: `num_epochs` is not positive.
    """
    return _limited(tensor, num_epochs, name)


def _limited(tensor: Any, num_epochs: int | None, name: str | None = None) -> Any:
    if num_epochs is None:
        return tensor
    if num_epochs <= 0:
        raise ValueError(f"num_epochs must be > 0 not {num_epochs}.")
    with name_scope(name, "limit_epochs", [tensor]) as scope:
        epochs = Variable(
            constants.constant(0, dtype=dtypes.int64),
            name="epochs",
            trainable=False,
            collections=[GraphKeys.LOCAL_VARIABLES],
        )
        with control_dependencies([epochs.count_up_to(num_epochs)]):
            return shaping.identity(tensor, name=scope)


def fullness(count: Any, capacity: int, summary_name: str) -> None:
    """Adds a summary of how full a queue is, from 0 to 1."""
    scalar_summary(summary_name, casting.cast(count, dtypes.float32) * (1.0 / capacity))


@export(v1="train.input_producer")
@deprecated(None, _SLICES.format("input_tensor"))
def input_producer(
    input_tensor: Any,
    element_shape: Any = None,
    num_epochs: int | None = None,
    shuffle: bool = True,
    seed: int | None = None,
    capacity: int = 32,
    shared_name: str | None = None,
    summary_name: str | None = None,
    name: str | None = None,
    cancel_op: Any = None,
) -> QueueBase:
    """Returns a queue of the rows of a tensor. Its queue runner is added to the collection QUEUE_RUNNERS.

    Args:
        input_tensor: The rows, a tensor of rank 1 or higher.
        element_shape: The shape of a row, if the tensor's shape is not known.
        num_epochs: How often each row is produced before OutOfRangeError is raised, or None for no limit. If it is given,
            local variables must be initialized.
        shuffle: Whether to shuffle the rows in each epoch.
        seed: The seed for shuffling.
        capacity: the capacity of the queue.
        shared_name: the name under which sessions share the queue.
        summary_name: The name of a summary of how full the queue is.
        name: the name scope.
        cancel_op: An op to run when the queue runner is stopped.

    Raises:
        ValueError: the shape of a row is not known.
        RuntimeError: eager mode.
    """
    return _producer(
        input_tensor, element_shape, num_epochs, shuffle, seed, capacity, shared_name, summary_name, name, cancel_op
    )


def _producer(
    input_tensor: Any,
    element_shape: Any,
    num_epochs: int | None,
    shuffle: bool,
    seed: int | None,
    capacity: int,
    shared_name: str | None,
    summary_name: str | None,
    name: str | None,
    cancel_op: Any = None,
) -> QueueBase:
    refuse_eager(RuntimeError)
    with name_scope(name, "input_producer", [input_tensor]):
        rows = convert_to_tensor(input_tensor, name="input_tensor")
        row = rows.shape.with_rank_at_least(1)[1:].merge_with(element_shape)
        if not row.is_fully_defined():
            raise ValueError(
                "Either `input_tensor` must have a fully defined shape or `element_shape` must be specified"
            )
        if shuffle:
            rows = random_shuffle(rows, seed=seed)
        rows = _limited(rows, num_epochs)
        # A name that ends a scope (of the functions below) makes the queue the operation with the scope's name.
        queue = FIFOQueue(capacity, [rows.dtype.base_dtype], [row], shared_name=shared_name, name=name)
        add_queue_runner(QueueRunner(queue, [queue.enqueue_many([rows])], cancel_op=cancel_op))
        if summary_name is not None:
            fullness(queue.size(), capacity, summary_name)
        return queue


@export(v1="train.string_input_producer")
@deprecated(None, _SLICES.format("string_tensor"))
def string_input_producer(
    string_tensor: Any,
    num_epochs: int | None = None,
    shuffle: bool = True,
    seed: int | None = None,
    capacity: int = 32,
    shared_name: str | None = None,
    name: str | None = None,
    cancel_op: Any = None,
) -> QueueBase:
    """Returns a queue of strings, such as the names of files to read. Its queue runner is added to QUEUE_RUNNERS.

    Args:
        string_tensor: The strings, a list or a vector.
        num_epochs: How often each string is produced before OutOfRangeError is raised, or None for no limit. If it is given,
            local variables must be initialized.
        shuffle: Whether to shuffle the strings in each epoch.
        seed: The seed for shuffling.
        capacity: the capacity of the queue.
        shared_name: the name under which sessions share the queue.
        name: the name of the queue.
        cancel_op: An op to run when the queue runner is stopped.

    Raises:
        ValueError: The list is empty. An empty tensor fails an assertion when it is evaluated.
        RuntimeError: eager mode.
    """
    refuse_eager(RuntimeError)
    empty = "string_input_producer requires a non-null input tensor"
    if not isinstance(string_tensor, (Tensor, Variable)) and not len(string_tensor):
        raise ValueError(empty)
    with name_scope(name, "input_producer", [string_tensor]) as scope:
        strings = convert_to_tensor(string_tensor, dtype=dtypes.string)
        with control_dependencies([assert_op(ranges.size(strings) > 0, [empty])]):
            strings = shaping.identity(strings)
        summary = f"fraction_of_{capacity}_full"
        return _producer(strings, [], num_epochs, shuffle, seed, capacity, shared_name, summary, scope, cancel_op)


@export(v1="train.range_input_producer")
@deprecated(
    None,
    f"{REPLACED}Use `tf.data.Dataset.range(limit).shuffle(limit).repeat(num_epochs)`. If `shuffle=False`, omit the "
    "`.shuffle(...)`.",
)
def range_input_producer(
    limit: Any,
    num_epochs: int | None = None,
    shuffle: bool = True,
    seed: int | None = None,
    capacity: int = 32,
    shared_name: str | None = None,
    name: str | None = None,
) -> QueueBase:
    """Returns a queue of the numbers from 0 to `limit` - 1, as int32. For the arguments see `string_input_producer`."""
    refuse_eager(RuntimeError)
    return _numbers(limit, num_epochs, shuffle, seed, capacity, shared_name, name)


def _numbers(
    limit: Any,
    num_epochs: int | None,
    shuffle: bool,
    seed: int | None,
    capacity: int,
    shared_name: str | None,
    name: str | None = None,
) -> QueueBase:
    with name_scope(name, "input_producer", [limit]) as scope:
        numbers = ranges.range(limit)
        summary = f"fraction_of_{capacity}_full"
        return _producer(numbers, [], num_epochs, shuffle, seed, capacity, shared_name, summary, scope)


@export(v1="train.slice_input_producer")
@deprecated(None, _SLICES.format("tuple(tensor_list)"))
def slice_input_producer(
    tensor_list: Any,
    num_epochs: int | None = None,
    shuffle: bool = True,
    seed: int | None = None,
    capacity: int = 32,
    shared_name: str | None = None,
    name: str | None = None,
) -> list[Tensor]:
    """Returns one row of each tensor, with the same row number. Each run produces the next row.

    Args:
        tensor_list: tensors with the same first dimension.
        num_epochs: How often each row is produced before OutOfRangeError is raised, or None for no limit. If it is given,
            local variables must be initialized.
        shuffle: Whether to shuffle the rows in each epoch.
        seed: The seed for shuffling.
        capacity: the capacity of the queue of row numbers.
        shared_name: the name under which sessions share that queue.
        name: the name scope.

    Returns:
        The rows, without the first dimension, in a list.

    Raises:
        ValueError: the list is empty.
        RuntimeError: eager mode.
    """
    refuse_eager(RuntimeError)
    with name_scope(name, "input_producer", tensor_list):
        tensors = [convert_to_tensor(each) for each in tensor_list]
        if not tensors:
            raise ValueError("Expected at least one tensor in slice_input_producer().")
        count = shaping.shape(tensors[0])[0]
        row = _numbers(count, num_epochs, shuffle, seed, capacity, shared_name).dequeue()
        return [gathering.gather(tensor, row) for tensor in tensors]
