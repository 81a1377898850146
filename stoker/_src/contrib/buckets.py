"""`tf.contrib.training.bucket`: batches of examples of one kind each, through a queue for each kind."""

from __future__ import annotations

import functools
import itertools
from typing import Any

from stoker._src.base import dtypes, errors
from stoker._src.base.export import export
from stoker._src.base.shapes import as_shape
from stoker._src.graph.conversion import convert_to_tensor
from stoker._src.graph.scopes import name_scope
from stoker._src.ops.array import casting, constants
from stoker._src.ops.control_flow import branches_and_loops, grouping
from stoker._src.ops.math import comparison, reductions
from stoker._src.ops.resources.queues import FIFOQueue, PaddingFIFOQueue
from stoker._src.ops.summary.summary_ops import scalar_summary
from stoker._src.train.input import batching
from stoker._src.train.input.producers import fullness, refuse_eager
from stoker._src.train.input.queue_runner import QueueRunner, add_queue_runner

_ENDS = (errors.OutOfRangeError, errors.CancelledError)


@export(v1="contrib.training.bucket")
def bucket(
    tensors: Any,
    which_bucket: Any,
    batch_size: Any,
    num_buckets: int,
    num_threads: int = 1,
    capacity: int = 32,
    bucket_capacities: list[int] | None = None,
    shapes: Any = None,
    dynamic_pad: bool = False,
    allow_smaller_final_batch: bool = False,
    keep_input: Any = True,
    shared_name: str | None = None,
    name: str | None = None,
) -> tuple[Any, Any]:
    """Returns a bucket's number and a batch of examples of that bucket. Two queue runners are added to QUEUE_RUNNERS.

    One fills the queues of the buckets; the other moves whatever bucket has enough examples to the queue of batches.

    Args:
        tensors: a list or dictionary of the tensors or sparse tensors of one example.
        which_bucket: the bucket of the example, an integer tensor.
        batch_size: the number of examples in a batch, or a list with one for each bucket.
        num_buckets: how many buckets there are.
        num_threads: the number of threads that evaluate `tensors`.
        capacity: the capacity of the queue of batches, and of the buckets' queues.
        bucket_capacities: capacities of the buckets' queues, if they are other ones.
        shapes: the shapes of an example's tensors, if the graph does not know them.
        dynamic_pad: whether to pad examples of different sizes with zeros or empty strings, up to the largest of the batch.
        allow_smaller_final_batch: whether the examples left over at the end make smaller batches. Otherwise they are dropped.
        keep_input: whether the example is used, a boolean tensor.
        shared_name: the prefix of the names under which sessions share the queues.
        name: a name for the ops.

    Raises:
        ValueError: there are no tensors, or lists of another length than there are buckets.
    """
    refuse_eager(ValueError)
    components = batching.as_list(tensors)
    if not components:
        raise ValueError("Expected at least one tensor in bucket().")
    sizes = list(batch_size) if isinstance(batch_size, (list, tuple)) else [batch_size] * num_buckets
    if len(sizes) != num_buckets:
        raise ValueError("If batch_size is a list it must have num_buckets elements")
    capacities = [capacity] * num_buckets if bucket_capacities is None else list(bucket_capacities)
    if len(capacities) != num_buckets:
        raise ValueError(
            f"The list bucket_capacities ({bucket_capacities}) must have exactly num_buckets ({num_buckets}) elements."
        )
    kind = PaddingFIFOQueue if dynamic_pad else FIFOQueue

    def shared(place: str) -> str | None:
        return None if shared_name is None else f"{shared_name}_{place}"

    with name_scope(name, "bucket", components):
        examples = batching.examples_of([tensors])
        keep = convert_to_tensor(keep_input)
        dense, stored = batching.store_sparse(examples[0], False, keep, [None] * len(components))
        which, kinds = convert_to_tensor(which_bucket), batching.dtypes_of([dense])
        forms = batching.shapes_of([dense], shapes, False)
        queues = [
            kind(room, kinds, forms, shared_name=shared(f"bucket_{i}"), name=f"bucket_queue_{i}")
            for i, room in enumerate(capacities)
        ]
        # A batch has a static size if all batches do.
        rows = sizes[0] if not allow_smaller_final_batch and len({str(each) for each in sizes}) == 1 else None
        rows = rows if isinstance(rows, int) else None
        batched = [[], *([rows, *as_shape(form)] for form in forms)]
        top_kind = PaddingFIFOQueue if dynamic_pad or rows is None else FIFOQueue
        top = top_kind(capacity, [which.dtype.base_dtype, *kinds], batched, shared_name=shared("top"), name="top_queue")

        def insert() -> Any:
            return grouping.group(
                *(
                    branches_and_loops.cond(
                        comparison.equal(which, casting.cast(constants.constant(i), which.dtype)),
                        functools.partial(queue.enqueue, dense),
                        grouping.no_op,
                    )
                    for i, queue in enumerate(queues)
                ),
                name="group_enqueues",
            )

        inserted = batching.if_kept(keep, insert, grouping.no_op)
        moves = []
        for i, (queue, size) in enumerate(zip(queues, sizes)):
            take = queue.dequeue_up_to if allow_smaller_final_batch else queue.dequeue_many
            taken = take(size, name=f"read_bucket_{i}")
            taken = taken if isinstance(taken, list) else [taken]
            number = casting.cast(constants.constant(i), which.dtype)
            moves.append(top.enqueue([number, *taken], name=f"enqueue_from_bucket_{i}"))
        stops = top.close(), top.close(cancel_pending_enqueues=True)
        add_queue_runner(QueueRunner(queues[0], moves, *stops, queue_closed_exception_types=_ENDS))
        add_queue_runner(
            QueueRunner(
                top,
                [inserted] * num_threads,
                grouping.group(*(each.close() for each in queues)),
                grouping.group(*(each.close(cancel_pending_enqueues=True) for each in queues)),
                queue_closed_exception_types=_ENDS,
            )
        )
        for queue in queues:
            scalar_summary(f"bucket/{queue.name}/size", casting.cast(queue.size(), dtypes.float32))
        fullness(top.size(), capacity, f"bucket/{top.name}/fraction_of_{capacity}_full")
        number, *batches = top.dequeue(name="dequeue_top")
        return number, batching.in_form_of(tensors, batching.restore_sparse(batches, stored))


@export(v1="contrib.training.bucket_by_sequence_length")
def bucket_by_sequence_length(
    input_length: Any,
    tensors: Any,
    batch_size: Any,
    bucket_boundaries: list[int],
    num_threads: int = 1,
    capacity: int = 32,
    bucket_capacities: list[int] | None = None,
    shapes: Any = None,
    dynamic_pad: bool = False,
    allow_smaller_final_batch: bool = False,
    keep_input: Any = True,
    shared_name: str | None = None,
    name: str | None = None,
) -> tuple[Any, Any]:
    """Returns the lengths of the examples of a batch, and the batch: a list or dictionary. The lengths lie between two boundaries.

    Args:
        input_length: the length of an example, an int32 scalar.
        tensors: a list or dictionary of the tensors or sparse tensors of one example.
        batch_size: the number of examples in a batch, or a list with one for each bucket.
        bucket_boundaries: increasing lengths. An example goes to the first bucket whose boundary is greater than its length,
            or to the last bucket, which has none.
        num_threads, capacity, bucket_capacities, shapes, dynamic_pad, allow_smaller_final_batch, keep_input, shared_name, name: see
            `bucket`.

    Raises:
        TypeError: a boundary is not an integer.
        ValueError: there are no boundaries, or they do not increase; see `bucket`.
    """
    if not bucket_boundaries:
        raise ValueError("bucket_boundaries must not be empty")
    for before, after in itertools.pairwise(bucket_boundaries):
        if before >= after:
            raise ValueError(f"Buckets must contain sequential increasing lengths, but saw: {before} before {after}")
    if not all(isinstance(each, int) for each in bucket_boundaries):
        raise TypeError(f"bucket_boundaries must be a list of integers, received: {list(bucket_boundaries)}")
    with name_scope(name, "bucket_by_sequence_length", [input_length, *batching.as_list(tensors)]):
        length = convert_to_tensor(input_length)
        boundaries = constants.constant(list(bucket_boundaries), length.dtype)
        which = reductions.reduce_sum(casting.cast(comparison.greater_equal(length, boundaries), dtypes.int32))
        number, batch = bucket(
            [length, *batching.as_list(tensors)],
            which,
            batch_size,
            len(bucket_boundaries) + 1,
            num_threads,
            capacity,
            bucket_capacities,
            None if shapes is None else [[], *shapes],
            dynamic_pad,
            allow_smaller_final_batch,
            keep_input,
            shared_name,
        )
        del number
        lengths, *rest = batch
        return lengths, dict(zip(sorted(tensors), rest)) if isinstance(tensors, dict) else rest
