"""Queues: first in first out, shuffled, padded and by priority. Ops and the Python classes."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch

from stoker._src.base import dtypes
from stoker._src.base.dtypes import DType, as_dtype
from stoker._src.base.errors import InvalidArgumentError
from stoker._src.base.export import export
from stoker._src.base.shapes import SCALAR, Shape, TensorShape, as_shape
from stoker._src.graph import context
from stoker._src.graph.conversion import convert_to_tensor
from stoker._src.graph.definition import (
    BLOCKING,
    RETAINS,
    SHAPES,
    SOURCE,
    STATEFUL,
    TYPES,
    define,
    scalar,
    with_references,
)
from stoker._src.graph.scopes import name_scope
from stoker._src.graph.tensor import Operation, Tensor
from stoker._src.ops.array import gathering, joining
from stoker._src.ops.random.uniform_normal import get_seed
from stoker._src.ops.resources.queue_resources import Element, OrderedQueue, PaddingQueue, Queue, ShuffleQueue

# -- ops ---------------------------------------------------------------------------------------------------------


def _queue_shapes(shapes: Sequence[Shape], component_types: Sequence[DType]) -> Sequence[Shape]:
    if shapes and len(shapes) != len(component_types):
        raise InvalidArgumentError(
            None, None, f"A queue of {len(component_types)} components has as many shapes or none, not {len(shapes)}."
        )
    return shapes if shapes else [Shape(None)] * len(component_types)


def _shared_or_made(ctx: Any, container: str, shared_name: str, queue: Queue) -> Queue:
    """Returns the queue with that name. An existing one must have the same properties."""
    if shared_name:
        queue.title = shared_name
    return ctx.resources.lookup_or_create(container, "queue", queue.name, lambda: queue).check_shared(queue)


def _check_timeout(timeout_ms: int) -> None:
    if timeout_ms != -1:
        raise InvalidArgumentError(None, None, f"Timeout not supported yet: timeout_ms={timeout_ms}.")


FIFO_QUEUE_V2 = define(
    "FIFOQueueV2() -> (handle: resource)", SOURCE | STATEFUL,
    component_types=TYPES(minimum=1), shapes=SHAPES(()), capacity=-1, container="", shared_name="",
)  # fmt: skip


@FIFO_QUEUE_V2.kernel
def fifo_queue_kernel(
    *, component_types: Any, shapes: Any, capacity: int, container: str, shared_name: str, ctx: Any
) -> Queue:
    name = shared_name or ctx.name
    shapes = _queue_shapes(shapes, component_types)
    return _shared_or_made(ctx, container, shared_name, Queue(name, capacity, component_types, shapes))


PADDING_FIFO_QUEUE_V2 = define(
    "PaddingFIFOQueueV2() -> (handle: resource)", SOURCE | STATEFUL,
    component_types=TYPES(minimum=1), shapes=SHAPES(()), capacity=-1, container="", shared_name="",
)  # fmt: skip


@PADDING_FIFO_QUEUE_V2.kernel
def padding_fifo_queue_kernel(
    *, component_types: Any, shapes: Any, capacity: int, container: str, shared_name: str, ctx: Any
) -> Queue:
    name = shared_name or ctx.name
    if len(shapes) != len(component_types):
        raise InvalidArgumentError(
            None,
            None,
            f"Shapes must be provided for all components, but received {len(component_types)} dtypes and {len(shapes)} shapes.",
        )
    return _shared_or_made(ctx, container, shared_name, PaddingQueue(name, capacity, component_types, shapes))


RANDOM_SHUFFLE_QUEUE_V2 = define(
    "RandomShuffleQueueV2() -> (handle: resource)", SOURCE | STATEFUL,
    component_types=TYPES(minimum=1), shapes=SHAPES(()), capacity=-1, min_after_dequeue=0, seed=0, seed2=0, container="", shared_name="",
)  # fmt: skip


@RANDOM_SHUFFLE_QUEUE_V2.kernel
def random_shuffle_queue_kernel(
    *,
    component_types: Any,
    shapes: Any,
    capacity: int,
    min_after_dequeue: int,
    seed: int,
    seed2: int,
    container: str,
    shared_name: str,
    ctx: Any,
) -> Queue:
    name = shared_name or ctx.name
    shapes = _queue_shapes(shapes, component_types)
    made = ShuffleQueue(name, capacity, component_types, shapes, min_after_dequeue, seed, seed2)
    return _shared_or_made(ctx, container, shared_name, made)


PRIORITY_QUEUE_V2 = define(
    "PriorityQueueV2() -> (handle: resource)", SOURCE | STATEFUL,
    component_types=TYPES(()), shapes=SHAPES, capacity=-1, container="", shared_name="",
)  # fmt: skip


@PRIORITY_QUEUE_V2.kernel
def priority_queue_kernel(
    *, component_types: Any, shapes: Any, capacity: int, container: str, shared_name: str, ctx: Any
) -> Queue:
    name = shared_name or ctx.name
    return _shared_or_made(ctx, container, shared_name, OrderedQueue(name, capacity, component_types, shapes))


for _definition in (FIFO_QUEUE_V2, PADDING_FIFO_QUEUE_V2, RANDOM_SHUFFLE_QUEUE_V2, PRIORITY_QUEUE_V2):
    _definition.shape(lambda: SCALAR)

QUEUE_ENQUEUE_V2 = define(
    "QueueEnqueueV2(handle: resource, components: [Tcomponents]) -> ()",
    STATEFUL | BLOCKING | RETAINS,
    Tcomponents=TYPES(minimum=1),
    timeout_ms=-1,
)


@QUEUE_ENQUEUE_V2.kernel
def queue_enqueue_kernel(
    handle: Queue, components: list[Any], *, Tcomponents: tuple[DType, ...], timeout_ms: int
) -> None:
    _check_timeout(timeout_ms)
    handle.check_types("Enqueue", Tcomponents)
    handle.enqueue(tuple(components))


QUEUE_ENQUEUE_V2.collects(Queue.room, Queue.fitted)(Queue.enqueue_many)

QUEUE_ENQUEUE_MANY_V2 = define(
    "QueueEnqueueManyV2(handle: resource, components: [Tcomponents]) -> ()",
    STATEFUL | BLOCKING,
    Tcomponents=TYPES(minimum=1),
    timeout_ms=-1,
)


@QUEUE_ENQUEUE_MANY_V2.kernel
def queue_enqueue_many_kernel(
    handle: Queue, components: list[Any], *, Tcomponents: tuple[DType, ...], timeout_ms: int
) -> None:
    _check_timeout(timeout_ms)
    handle.check_types("Enqueue", Tcomponents)
    handle.enqueue_many(components)


QUEUE_DEQUEUE_V2 = define(
    "QueueDequeueV2(handle: resource) -> (components: [component_types])",
    STATEFUL | BLOCKING,
    component_types=TYPES(minimum=1),
    timeout_ms=-1,
)


@QUEUE_DEQUEUE_V2.kernel
def queue_dequeue_kernel(handle: Queue, *, component_types: tuple[DType, ...], timeout_ms: int) -> Element:
    _check_timeout(timeout_ms)
    handle.check_types("Dequeue", component_types)
    return handle.dequeue()


QUEUE_DEQUEUE_V2.deals(Queue.dequeue_available)

QUEUE_DEQUEUE_MANY_V2 = define(
    "QueueDequeueManyV2(handle: resource, n: any/one host int32) -> (components: [component_types])", STATEFUL | BLOCKING,
    component_types=TYPES(minimum=1), timeout_ms=-1,
)  # fmt: skip


@QUEUE_DEQUEUE_MANY_V2.kernel
def queue_dequeue_many_kernel(
    handle: Queue, n: int, *, component_types: tuple[DType, ...], timeout_ms: int
) -> list[Any]:
    _check_timeout(timeout_ms)
    handle.check_types("Dequeue", component_types)
    return handle.dequeue_many(n)


QUEUE_DEQUEUE_UP_TO_V2 = define(
    "QueueDequeueUpToV2(handle: resource, n: any/one host int32) -> (components: [component_types])", STATEFUL | BLOCKING,
    component_types=TYPES(minimum=1), timeout_ms=-1,
)  # fmt: skip


@QUEUE_DEQUEUE_UP_TO_V2.kernel
def queue_dequeue_up_to_kernel(
    handle: Queue, n: int, *, component_types: tuple[DType, ...], timeout_ms: int
) -> list[Any]:
    _check_timeout(timeout_ms)
    handle.check_types("Dequeue", component_types)
    return handle.dequeue_many(n, up_to=True)


def _queue_of(op: Operation) -> Any:
    """The op that created the queue, or None if the handle came from elsewhere."""
    handle = op._inputs[0]
    made_by = getattr(handle, "made_by", handle.op)  # Set on handles that are captured by a function.
    return made_by if "component_types" in made_by.attrs and "capacity" in made_by.attrs else None


def _element_shapes(op: Operation, lead: tuple[int | None, ...]) -> list[Shape]:
    count = len(op.attrs["component_types"])
    made_by = _queue_of(op)
    shapes = made_by.attrs["shapes"] if made_by is not None else ()
    if made_by is not None and made_by.type in ("PriorityQueue", "PriorityQueueV2") and shapes:
        shapes = (SCALAR, *shapes)
    return [Shape(lead).concat(shape) for shape in shapes] if len(shapes) == count else [Shape(None)] * count


QUEUE_DEQUEUE_V2.shape(lambda handle, *, op: _element_shapes(op, ()))


@QUEUE_DEQUEUE_MANY_V2.shape(values=["n"])
def queue_dequeue_many_shape(handle: Shape, n: np.ndarray | None, *, op: Operation) -> list[Shape]:
    if n is not None and n.size == 1 and n < 0:
        raise InvalidArgumentError(None, None, f"Input 'n' must be >= 0, but is {n}")
    return _element_shapes(op, (int(n.item()) if n is not None and n.size == 1 else None,))


QUEUE_DEQUEUE_UP_TO_V2.shape(lambda handle, n, *, op: _element_shapes(op, (None,)))

QUEUE_CLOSE_V2 = define("QueueCloseV2(handle: resource) -> ()", STATEFUL, cancel_pending_enqueues=False)


@QUEUE_CLOSE_V2.kernel
def queue_close_kernel(handle: Queue, *, cancel_pending_enqueues: bool) -> None:
    handle.close(cancel_pending_enqueues)


QUEUE_SIZE_V2 = define("QueueSizeV2(handle: resource) -> (size: int32)", STATEFUL)
QUEUE_SIZE_V2.kernel(lambda handle: torch.tensor(handle.size(), dtype=torch.int32))
QUEUE_SIZE_V2.shape(scalar)

QUEUE_IS_CLOSED_V2 = define("QueueIsClosedV2(handle: resource) -> (is_closed: bool)", STATEFUL)
QUEUE_IS_CLOSED_V2.kernel(lambda handle: torch.tensor(handle.closed))
QUEUE_IS_CLOSED_V2.shape(scalar)

for _definition, _older in (
    (FIFO_QUEUE_V2, "FIFOQueue"),
    (PADDING_FIFO_QUEUE_V2, "PaddingFIFOQueue"),
    (RANDOM_SHUFFLE_QUEUE_V2, "RandomShuffleQueue"),
    (PRIORITY_QUEUE_V2, "PriorityQueue"),
    (QUEUE_IS_CLOSED_V2, "QueueIsClosed"),
):
    with_references(_definition, _older)
for _definition, _older in (
    (QUEUE_ENQUEUE_V2, "QueueEnqueue"),
    (QUEUE_ENQUEUE_MANY_V2, "QueueEnqueueMany"),
    (QUEUE_DEQUEUE_V2, "QueueDequeue"),
    (QUEUE_DEQUEUE_MANY_V2, "QueueDequeueMany"),
    (QUEUE_DEQUEUE_UP_TO_V2, "QueueDequeueUpTo"),
    (QUEUE_CLOSE_V2, "QueueClose"),
    (QUEUE_SIZE_V2, "QueueSize"),
):
    with_references(_definition, _older).not_differentiable()


# -- classes -----------------------------------------------------------------------------------------------------


def _common(a: TensorShape, b: TensorShape) -> TensorShape:
    """Returns the shape that two shapes have in common."""
    if a.rank is None or b.rank is None or a.rank != b.rank:
        return TensorShape(None)
    return TensorShape([x if x == y else None for x, y in zip(a.as_list(), b.as_list())])


def _as_list(value: Any) -> list[Any]:
    return list(value) if isinstance(value, (list, tuple)) else [value]


@export("queue.QueueBase", v1=("QueueBase", "io.QueueBase"))
class QueueBase:
    """Base class of the queues. An element is a tuple of tensors, or a dictionary if the queue has names.

    Only subclasses are created. `queue_ref` is the handle. In eager mode the operations run immediately.
    """

    def __init__(self, dtypes: Any, shapes: Any, names: Any, queue_ref: Tensor) -> None:
        self._dtypes = [as_dtype(dtype) for dtype in _as_list(dtypes)]
        if shapes is not None:
            if len(shapes) != len(self._dtypes):
                raise ValueError(
                    f"Queue shapes must have the same length as dtypes, received len(shapes)={len(shapes)}, len(dtypes)={len(self._dtypes)}"
                )
            self._shapes = [TensorShape(shape) for shape in shapes]
        else:
            self._shapes = [TensorShape(None) for _ in self._dtypes]
        self._names = None if names is None else _as_list(names)
        if self._names is not None and len(self._names) != len(self._dtypes):
            raise ValueError(
                f"Queue names must have the same length as dtypes, received len(names)={len(self._names)}, len(dtypes)={len(self._dtypes)}"
            )
        self._queue_ref = queue_ref

    @staticmethod
    def from_list(index: Any, queues: Sequence[QueueBase]) -> QueueBase:
        """Returns a queue whose handle is `queues[index]`, chosen in each run.

        Raises:
            TypeError: `queues` is not a list of queues, or they have different types or names.
        """
        if not queues or not isinstance(queues, list) or not all(isinstance(queue, QueueBase) for queue in queues):
            raise TypeError("A list of queues expected")
        if any(queue.dtypes != queues[0].dtypes for queue in queues):
            raise TypeError("Queues do not have matching component dtypes.")
        if any(queue.names != queues[0].names for queue in queues):
            raise TypeError("Queues do not have matching component names.")
        shapes = [functools.reduce(_common, shapes) for shapes in zip(*[queue.shapes for queue in queues])]
        handles = joining.stack([queue.queue_ref for queue in queues])
        return QueueBase(queues[0].dtypes, shapes, queues[0].names, gathering.gather(handles, index))

    @property
    def queue_ref(self) -> Tensor:
        return self._queue_ref

    @property
    def name(self) -> str:
        return "queue" if getattr(self._queue_ref, "is_eager", False) else self._queue_ref.op.name

    @property
    def dtypes(self) -> list[DType]:
        return self._dtypes

    @property
    def shapes(self) -> list[TensorShape]:
        return self._shapes

    @property
    def names(self) -> list[str] | None:
        return self._names

    def _components(self, vals: Any, lead: int) -> list[Tensor]:
        """Converts an element (or a batch of elements) to tensors of the queue's dtypes, in order."""
        if self._names is not None:
            if not isinstance(vals, dict):
                raise ValueError("Data must be a dictionary when the queue has names.")
            if sorted(vals) != sorted(self._names):
                raise ValueError(
                    f"Keys in dictionary to enqueue do not match names of Queue. Dictionary: {sorted(vals)}, Queue: {sorted(self._names)}"
                )
            vals = [vals[name] for name in self._names]
        elif isinstance(vals, dict):
            raise ValueError("Queue must have names to enqueue a dictionary")
        vals = _as_list(vals)
        if len(vals) != len(self._dtypes):
            raise ValueError(f"The queue takes {len(self._dtypes)} components, but {len(vals)} were given.")
        tensors = [
            convert_to_tensor(value, dtype, name=f"component_{i}")
            for i, (value, dtype) in enumerate(zip(vals, self._dtypes))
        ]
        if lead:
            functools.reduce(
                lambda count, other: count.merge_with(other),
                [tensor.shape.with_rank_at_least(1)[:1] for tensor in tensors if tensor.shape.rank is not None],
                TensorShape([None]),
            )  # Raises if the numbers of rows differ.
        for tensor, shape in zip(tensors, self._shapes):
            found = tensor.static_shape
            tail = found[lead:] if found.rank is not None else found
            if not as_shape(shape).compatible(tail):
                raise ValueError(f"Shapes {TensorShape(tail)} and {shape} are incompatible")
        return tensors

    def _returned(self, tensors: Any) -> Any:
        tensors = list(tensors)
        if self._names is not None:
            return dict(zip(self._names, tensors))
        return tensors[0] if len(tensors) == 1 else tensors

    def enqueue(self, vals: Any, name: str | None = None) -> Any:
        """Enqueues one element. Waits while the queue is full."""
        with name_scope(name, f"{self._scope()}_enqueue", None) as scope:
            return QUEUE_ENQUEUE_V2(self._queue_ref, self._components(vals, 0), name=scope)

    def enqueue_many(self, vals: Any, name: str | None = None) -> Any:
        """Enqueues one element for each row of `vals`."""
        with name_scope(name, f"{self._scope()}_EnqueueMany", None) as scope:
            tensors = self._components(vals, 1)
            return QUEUE_ENQUEUE_MANY_V2(self._queue_ref, tensors, name=scope)

    def dequeue(self, name: str | None = None) -> Any:
        """Dequeues one element. Waits while the queue is empty."""
        name = name or f"{self._scope()}_Dequeue"
        return self._returned(QUEUE_DEQUEUE_V2(self._queue_ref, component_types=self._dtypes, name=name))

    def dequeue_many(self, n: Any, name: str | None = None) -> Any:
        """Dequeues a batch of `n` elements. Waits until there are enough."""
        name = name or f"{self._scope()}_DequeueMany"
        return self._returned(QUEUE_DEQUEUE_MANY_V2(self._queue_ref, n, component_types=self._dtypes, name=name))

    def dequeue_up_to(self, n: Any, name: str | None = None) -> Any:
        """Dequeues a batch of `n` elements, or of what is left when the queue is closed."""
        name = name or f"{self._scope()}_DequeueUpTo"
        return self._returned(QUEUE_DEQUEUE_UP_TO_V2(self._queue_ref, n, component_types=self._dtypes, name=name))

    def close(self, cancel_pending_enqueues: bool = False, name: str | None = None) -> Any:
        """Closes the queue: it accepts no more elements, but those in it can still be dequeued."""
        name = name or f"{self._scope()}_Close"
        return QUEUE_CLOSE_V2(self._queue_ref, cancel_pending_enqueues=cancel_pending_enqueues, name=name)

    def is_closed(self, name: str | None = None) -> Tensor:
        """Whether the queue is closed."""
        return QUEUE_IS_CLOSED_V2(self._queue_ref, name=name or f"{self._scope()}_Is_Closed")

    def size(self, name: str | None = None) -> Tensor:
        """Returns the number of elements in the queue."""
        return QUEUE_SIZE_V2(self._queue_ref, name=name or f"{self._scope()}_Size")

    def _scope(self) -> str:
        return self.name.rpartition("/")[2]


def _shape_list(shapes: Any, count: int, require_known: bool = True) -> list[Any] | None:
    """Returns one shape for each component. A single shape applies to all."""
    if shapes is None:
        return None
    if not isinstance(shapes, (list, tuple, TensorShape)):
        raise TypeError(f"Shapes must be a TensorShape or a list or tuple of TensorShapes, got {type(shapes)} instead.")
    if isinstance(shapes, TensorShape) or all(isinstance(s, int) or s is None for s in shapes):
        shapes = [shapes]
    if len(shapes) != count:
        raise ValueError(
            f"Queue shapes must have the same length as dtypes, received len(shapes)={len(shapes)}, len(dtypes)={count}"
        )
    made = [as_shape(shape) for shape in shapes]
    if require_known and not all(shape.known for shape in made):
        raise ValueError(f"All shapes must be fully defined: {[TensorShape(shape) for shape in made]}")
    return made


def _shared(shared_name: str | None) -> str:
    if context.executing_eagerly() and shared_name is None:
        return f"anonymous_queue_{next(_eager_queues)}"
    return shared_name or ""


_eager_queues = itertools.count()


@export("queue.FIFOQueue", v1="FIFOQueue")
class FIFOQueue(QueueBase):
    """A queue whose elements come out in the order in which they went in."""

    def __init__(
        self,
        capacity: int,
        dtypes: Any,
        shapes: Any = None,
        names: Any = None,
        shared_name: str | None = None,
        name: str | None = "fifo_queue",
    ) -> None:
        types = [as_dtype(dtype) for dtype in _as_list(dtypes)]
        known = _shape_list(shapes, len(types))
        ref = FIFO_QUEUE_V2(
            component_types=types, shapes=known or (), capacity=capacity, shared_name=_shared(shared_name), name=name
        )
        super().__init__(types, known, names, ref)


@export("queue.PaddingFIFOQueue", v1=("PaddingFIFOQueue", "io.PaddingFIFOQueue"))
class PaddingFIFOQueue(QueueBase):
    """A FIFO queue that batches elements of different sizes by padding them.

    Raises:
        ValueError: A shape has an unknown rank, or the shapes do not match the components.
    """

    def __init__(
        self,
        capacity: int,
        dtypes: Any,
        shapes: Any,
        names: Any = None,
        shared_name: str | None = None,
        name: str | None = "padding_fifo_queue",
    ) -> None:
        types = [as_dtype(dtype) for dtype in _as_list(dtypes)]
        known = _shape_list(shapes, len(types), require_known=False)
        if known is None or len(known) != len(types):
            raise ValueError(
                f"Shapes must be provided for all components, but received {0 if known is None else len(known)} dtypes and {len(types)} shapes."
            )
        if any(shape.rank is None for shape in known):
            raise ValueError("Shapes of a padding queue must have a known rank.")
        ref = PADDING_FIFO_QUEUE_V2(
            component_types=types, shapes=known, capacity=capacity, shared_name=_shared(shared_name), name=name
        )
        super().__init__(types, known, names, ref)


@export("queue.RandomShuffleQueue", v1=("RandomShuffleQueue", "io.RandomShuffleQueue"))
class RandomShuffleQueue(QueueBase):
    """A queue whose elements come out in random order. `min_after_dequeue` elements stay in the queue to be mixed with."""

    def __init__(
        self,
        capacity: int,
        min_after_dequeue: int,
        dtypes: Any,
        shapes: Any = None,
        names: Any = None,
        seed: int | None = None,
        shared_name: str | None = None,
        name: str | None = "random_shuffle_queue",
    ) -> None:
        types = [as_dtype(dtype) for dtype in _as_list(dtypes)]
        known = _shape_list(shapes, len(types))
        first, second = get_seed(seed)
        if first is None and second is None:
            first, second = 0, 0
        ref = RANDOM_SHUFFLE_QUEUE_V2(
            component_types=types, shapes=known or (), capacity=capacity, min_after_dequeue=min_after_dequeue, seed=first, seed2=second,
            shared_name=_shared(shared_name), name=name,
        )  # fmt: skip
        super().__init__(types, known, names, ref)


@export("queue.PriorityQueue", v1=("PriorityQueue", "io.PriorityQueue"))
class PriorityQueue(QueueBase):
    """A queue ordered by priority, the smallest first. The first component of an element is its int64 priority."""

    def __init__(
        self,
        capacity: int,
        types: Any,
        shapes: Any = None,
        names: Any = None,
        shared_name: str | None = None,
        name: str | None = "priority_queue",
    ) -> None:
        made = [as_dtype(dtype) for dtype in _as_list(types)]
        known = _shape_list(shapes, len(made))
        ref = PRIORITY_QUEUE_V2(
            component_types=made, shapes=known or (), capacity=capacity, shared_name=_shared(shared_name), name=name
        )
        super().__init__([dtypes.int64, *made], None if known is None else [SCALAR, *known], names, ref)
