"""Queues: first in first out, shuffled, padded and by priority. Ops, the resource behind them, and the Python classes."""

from __future__ import annotations

import heapq
import itertools
import random
import threading
from collections import deque
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch

from stoker._src.base import dtypes
from stoker._src.base.dtypes import DType, as_dtype
from stoker._src.base.errors import CancelledError, InvalidArgumentError, OutOfRangeError
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
from stoker._src.ops.random import get_seed
from stoker._src.ops.waiting import wait_until

Element = tuple[Any, ...]

# -- the resource ------------------------------------------------------------------------------------------------


class Queue:
    """Elements (tuples of values) between runs. Blocks enqueuers when full and dequeuers when short, holding nothing else.

    A closed queue takes no more elements; dequeues go on while enough are left. `close(cancel_pending=True)` also drops
    the enqueues that wait.
    """

    def __init__(self, name: str, capacity: int, component_types: Sequence[DType], shapes: Sequence[Shape]) -> None:
        if capacity == 0 or not -(2**31) <= capacity < 2**31:
            raise InvalidArgumentError(
                None, None, f"Queue {name}: capacity must be a positive int32 or -1 (unbounded), got {capacity}."
            )
        self.name = name
        self.capacity = max(capacity, -1)
        self.component_types = tuple(component_types)
        self.shapes = tuple(shapes)
        self.closed = False
        self._cancelled = False
        self._changed = threading.Condition()
        self._elements: Any = deque()

    # How elements are stored; the kinds of queue differ here alone.

    def _put(self, element: Element) -> None:
        self._elements.append(element)

    def _take(self) -> Element:
        return self._elements.popleft()

    def _available(self) -> int:
        """How many elements may be taken now."""
        return len(self._elements)

    def _batch(self, elements: list[Element]) -> list[Any]:
        return [_stack([element[i] for element in elements]) for i in range(len(self.component_types))]

    def check(self, element: Element) -> None:
        """Raises InvalidArgumentError for an element whose shapes are not the queue's."""
        for i, (value, shape) in enumerate(zip(element, self.shapes)):
            if not shape.compatible(Shape(value.shape)):
                raise InvalidArgumentError(
                    None, None, f"Shape mismatch in tuple component {i}. Expected {shape}, got {Shape(value.shape)}"
                )

    def check_types(self, what: str, component_types: tuple[DType, ...]) -> None:
        """Raises InvalidArgumentError for an op whose components are not the queue's, before it waits."""
        if component_types != self.component_types:
            found, expected = (
                ", ".join(dtype.name for dtype in kinds) for kinds in (component_types, self.component_types)
            )
            raise InvalidArgumentError(
                None, None, f"{what} has components ({found}), but those of queue '{self.name}' are ({expected})."
            )

    def _batches(self, shape: Shape) -> bool:
        """Whether elements of this shape can be dequeued as a batch."""
        return shape.known

    # What ops do.

    def _full(self) -> bool:
        return self.capacity != -1 and len(self._elements) >= self.capacity

    def _refuse_if_closed(self) -> None:
        if self._cancelled:
            raise CancelledError(None, None, f"Enqueue operation was cancelled: queue '{self.name}' was closed.")
        if self.closed:
            raise CancelledError(None, None, f"FIFOQueue '{self.name}' is closed.")

    def enqueue(self, element: Element) -> None:
        self.check(element)
        self._enqueue_all([element])

    def enqueue_many(self, components: Sequence[Any]) -> None:
        """One element for each row of the components.

        Raises:
            InvalidArgumentError: components of different lengths, or rows of the wrong shape.
        """
        counts = {int(value.shape[0]) if len(value.shape) else -1 for value in components}
        if -1 in counts:
            raise InvalidArgumentError(None, None, "Enqueue-many needs components with at least one dimension.")
        if len(counts) > 1:
            raise InvalidArgumentError(
                None, None, f"Input tensors must have the same size in the first dimension, got {sorted(counts)}."
            )
        elements = [tuple(_row(value, i) for value in components) for i in range(counts.pop())] if components else []
        if elements:
            self.check(elements[0])
        self._enqueue_all(elements)

    def _enqueue_all(self, elements: list[Element]) -> None:
        with self._changed:
            self._refuse_if_closed()
            for element in elements:
                wait_until(
                    self._changed, lambda: self._cancelled or not self._full(), f"Enqueue to queue '{self.name}'"
                )
                if self._cancelled:
                    self._refuse_if_closed()
                self._put(element)
                self._changed.notify_all()

    def dequeue(self) -> Element:
        with self._changed:
            wait_until(self._changed, lambda: self.closed or self._available() > 0, f"Dequeue from queue '{self.name}'")
            if self._available_when_closed() < 1:
                raise self._ended(1)
            element = self._take()
            self._changed.notify_all()
            return element

    def dequeue_many(self, count: int, *, up_to: bool = False) -> list[Any]:
        """`count` elements batched; with `up_to`, fewer (at least one) when the queue is closed and has no more."""
        if count < 0:
            raise InvalidArgumentError(None, None, f"DequeueManyV2 needs n >= 0, got {count}.")
        if not all(map(self._batches, self.shapes)):
            raise InvalidArgumentError(
                None,
                None,
                f"{self.KIND}'s DequeueMany and DequeueUpTo require the components to have specified shapes, not "
                f"{list(self.shapes)}.",
            )
        taken: list[Element] = []
        with self._changed:
            while len(taken) < count:
                what = f"Dequeue of {count} elements from queue '{self.name}'"
                try:
                    wait_until(self._changed, lambda: self.closed or self._available() > 0, what)
                except BaseException:
                    self._give_back(taken)
                    raise
                if self._available_when_closed() < 1:
                    break
                taken.append(self._take())
                self._changed.notify_all()
            if len(taken) < count and not (up_to and taken):
                have = len(taken)
                self._give_back(taken)
                raise self._ended(count, have)
        return self._batch(taken) if taken else self._empty_batch()

    def _available_when_closed(self) -> int:
        return len(self._elements) if self.closed else self._available()

    def _give_back(self, taken: list[Element]) -> None:
        for element in reversed(taken):
            self._elements.appendleft(element)
        self._changed.notify_all()

    def _empty_batch(self) -> list[Any]:
        from stoker._src.ops.values import torch_dtype

        batches: list[Any] = []
        for dtype, shape in zip(self.component_types, self.shapes):
            sizes = [0, *[size or 0 for size in shape]]
            batches.append(
                np.empty(sizes, object) if dtype is dtypes.string else torch.empty(sizes, dtype=torch_dtype(dtype))
            )
        return batches

    def _ended(self, wanted: int, have: int | None = None) -> OutOfRangeError:
        size = len(self._elements) if have is None else have
        return OutOfRangeError(
            None,
            None,
            f"{self.KIND} '_0_{self.name}' is closed and has insufficient elements (requested {wanted}, current size {size})",
        )

    KIND = "FIFOQueue"

    def close(self, cancel_pending: bool = False) -> None:
        with self._changed:
            self.closed = True
            self._cancelled = self._cancelled or cancel_pending
            self._changed.notify_all()

    def size(self) -> int:
        with self._changed:
            return len(self._elements)


class ShuffleQueue(Queue):
    """Takes a random element, while at least `min_after_dequeue` stay behind (until it is closed)."""

    KIND = "RandomShuffleQueue"

    def __init__(
        self,
        name: str,
        capacity: int,
        component_types: Sequence[DType],
        shapes: Sequence[Shape],
        min_after_dequeue: int,
        seed: int,
        seed2: int,
    ) -> None:
        super().__init__(name, capacity, component_types, shapes)
        if min_after_dequeue < 0 or 0 <= capacity <= min_after_dequeue:
            raise InvalidArgumentError(
                None, None, f"min_after_dequeue {min_after_dequeue} must be in [0, capacity {capacity})."
            )
        self._elements: list[Element] = []
        self._min_after = min_after_dequeue
        self._random = random.Random(f"{seed}/{seed2}" if seed or seed2 else None)

    def _available(self) -> int:
        return len(self._elements) - self._min_after

    def _take(self) -> Element:
        elements = self._elements
        chosen = self._random.randrange(len(elements))
        elements[chosen], elements[-1] = elements[-1], elements[chosen]
        return elements.pop()

    def _give_back(self, taken: list[Element]) -> None:
        self._elements.extend(taken)
        self._changed.notify_all()


class PaddingQueue(Queue):
    """Batches elements of different sizes by padding with zeros or empty strings."""

    KIND = "PaddingFIFOQueue"

    def _batches(self, shape: Shape) -> bool:
        return shape.rank is not None

    def _batch(self, elements: list[Element]) -> list[Any]:
        batches = []
        for i in range(len(self.component_types)):
            values = [element[i] for element in elements]
            sizes = [max(dims) for dims in zip(*[value.shape for value in values])] if values[0].ndim else []
            if isinstance(values[0], np.ndarray):
                batch: Any = np.full([len(values), *sizes], b"", dtype=object)
            else:
                batch = values[0].new_zeros([len(values), *sizes])
            for row, value in enumerate(values):
                batch[(row, *[slice(0, size) for size in value.shape])] = value
            batches.append(batch)
        return batches


class OrderedQueue(Queue):
    """Takes the element with the smallest priority (its first component), in order of arrival among equals."""

    KIND = "PriorityQueue"

    def __init__(self, name: str, capacity: int, component_types: Sequence[DType], shapes: Sequence[Shape]) -> None:
        super().__init__(name, capacity, (dtypes.int64, *component_types), (SCALAR, *shapes) if shapes else ())
        self._elements: list[Any] = []
        self._arrival = itertools.count()

    def _put(self, element: Element) -> None:
        heapq.heappush(self._elements, (int(element[0]), next(self._arrival), element))

    def _take(self) -> Element:
        return heapq.heappop(self._elements)[2]

    def _give_back(self, taken: list[Element]) -> None:
        for element in taken:
            self._put(element)
        self._changed.notify_all()


def _row(value: Any, index: int) -> Any:
    """A row that keeps no larger tensor alive."""
    if isinstance(value, np.ndarray):
        return np.array(value[index], dtype=object)
    return value[index].clone()


def _stack(values: list[Any]) -> Any:
    shapes = {tuple(value.shape) for value in values}
    if len(shapes) > 1:
        raise InvalidArgumentError(
            None, None, f"Elements of different shapes {sorted(shapes)} cannot be dequeued as one batch."
        )
    return np.stack(values) if isinstance(values[0], np.ndarray) else torch.stack(values)


# -- ops ---------------------------------------------------------------------------------------------------------


def _queue_shapes(shapes: Sequence[Shape], component_types: Sequence[DType]) -> Sequence[Shape]:
    if shapes and len(shapes) != len(component_types):
        raise InvalidArgumentError(
            None, None, f"A queue of {len(component_types)} components has as many shapes or none, not {len(shapes)}."
        )
    return shapes if shapes else [Shape(None)] * len(component_types)


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
    return ctx.resources.lookup_or_create(
        container, "queue", name, lambda: Queue(name, capacity, component_types, shapes)
    )


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
    return ctx.resources.lookup_or_create(
        container, "queue", name, lambda: PaddingQueue(name, capacity, component_types, shapes)
    )


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
    return ctx.resources.lookup_or_create(
        container,
        "queue",
        name,
        lambda: ShuffleQueue(name, capacity, component_types, shapes, min_after_dequeue, seed, seed2),
    )


PRIORITY_QUEUE_V2 = define(
    "PriorityQueueV2() -> (handle: resource)", SOURCE | STATEFUL,
    component_types=TYPES(()), shapes=SHAPES, capacity=-1, container="", shared_name="",
)  # fmt: skip


@PRIORITY_QUEUE_V2.kernel
def priority_queue_kernel(
    *, component_types: Any, shapes: Any, capacity: int, container: str, shared_name: str, ctx: Any
) -> Queue:
    name = shared_name or ctx.name
    return ctx.resources.lookup_or_create(
        container, "queue", name, lambda: OrderedQueue(name, capacity, component_types, shapes)
    )


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
    """The op that made the queue, or None when the handle came from elsewhere."""
    made_by = op._inputs[0].op
    return made_by if "component_types" in made_by.attrs and "capacity" in made_by.attrs else None


def _element_shapes(op: Operation, lead: tuple[int | None, ...]) -> list[Shape]:
    count = len(op.attrs["component_types"])
    made_by = _queue_of(op)
    shapes = made_by.attrs["shapes"] if made_by is not None else ()
    if made_by is not None and made_by.type.startswith("PriorityQueue") and shapes:
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

for _definition in (FIFO_QUEUE_V2, PADDING_FIFO_QUEUE_V2, RANDOM_SHUFFLE_QUEUE_V2, PRIORITY_QUEUE_V2):
    with_references(_definition)
with_references(QUEUE_IS_CLOSED_V2)
for _definition in (
    *(QUEUE_ENQUEUE_V2, QUEUE_ENQUEUE_MANY_V2, QUEUE_DEQUEUE_V2, QUEUE_DEQUEUE_MANY_V2, QUEUE_DEQUEUE_UP_TO_V2),
    *(QUEUE_CLOSE_V2, QUEUE_SIZE_V2),
):
    with_references(_definition).not_differentiable()


# -- classes -----------------------------------------------------------------------------------------------------


def _as_list(value: Any) -> list[Any]:
    return list(value) if isinstance(value, (list, tuple)) else [value]


@export("queue.QueueBase", v1=("QueueBase", "io.QueueBase"))
class QueueBase:
    """What all queues share. Elements are tuples of tensors, dictionaries where the queue has names.

    Made by the subclasses; `queue_ref` is the handle. In eager mode a queue works at once.
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
        """A queue whose handle is `queues[index]`, chosen in each run.

        Raises:
            TypeError: not a list of queues, or queues of different types.
        """
        if not queues or not isinstance(queues, list) or not all(isinstance(queue, QueueBase) for queue in queues):
            raise TypeError("A list of queues expected")
        kinds = {tuple(queue.dtypes) for queue in queues}
        if len(kinds) > 1:
            raise TypeError("Queues do not have matching component dtypes.")
        from stoker._src.ops import array

        handles = array.PACK([queue.queue_ref for queue in queues])
        return QueueBase(queues[0].dtypes, None, queues[0].names, handles[index])

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
        """The values of an element (or of a batch of them), in order and of the queue's types."""
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
        """Adds one element; waits while the queue is full."""
        with name_scope(name, f"{self._scope()}_enqueue", None) as scope:
            return QUEUE_ENQUEUE_V2(self._queue_ref, self._components(vals, 0), name=scope)

    def enqueue_many(self, vals: Any, name: str | None = None) -> Any:
        """Adds one element for each row of `vals`."""
        with name_scope(name, f"{self._scope()}_EnqueueMany", None) as scope:
            tensors = self._components(vals, 1)
            return QUEUE_ENQUEUE_MANY_V2(self._queue_ref, tensors, name=scope)

    def dequeue(self, name: str | None = None) -> Any:
        """Takes one element; waits while there is none."""
        name = name or f"{self._scope()}_Dequeue"
        return self._returned(QUEUE_DEQUEUE_V2(self._queue_ref, component_types=self._dtypes, name=name))

    def dequeue_many(self, n: Any, name: str | None = None) -> Any:
        """Takes `n` elements as one batch; waits until there are enough."""
        name = name or f"{self._scope()}_DequeueMany"
        return self._returned(QUEUE_DEQUEUE_MANY_V2(self._queue_ref, n, component_types=self._dtypes, name=name))

    def dequeue_up_to(self, n: Any, name: str | None = None) -> Any:
        """Takes `n` elements as one batch, or what is left when the queue is closed."""
        name = name or f"{self._scope()}_DequeueUpTo"
        return self._returned(QUEUE_DEQUEUE_UP_TO_V2(self._queue_ref, n, component_types=self._dtypes, name=name))

    def close(self, cancel_pending_enqueues: bool = False, name: str | None = None) -> Any:
        """Takes no more elements; what is in the queue can still be dequeued."""
        name = name or f"{self._scope()}_Close"
        return QUEUE_CLOSE_V2(self._queue_ref, cancel_pending_enqueues=cancel_pending_enqueues, name=name)

    def is_closed(self, name: str | None = None) -> Tensor:
        """Whether the queue is closed."""
        return QUEUE_IS_CLOSED_V2(self._queue_ref, name=name or f"{self._scope()}_Is_Closed")

    def size(self, name: str | None = None) -> Tensor:
        """How many elements are in the queue."""
        return QUEUE_SIZE_V2(self._queue_ref, name=name or f"{self._scope()}_Size")

    def _scope(self) -> str:
        return self.name


def _shape_list(shapes: Any, count: int) -> list[Any] | None:
    """One shape for all, or a list with one for each component."""
    if shapes is None:
        return None
    if (
        isinstance(shapes, TensorShape)
        or not isinstance(shapes, (list, tuple))
        or all(isinstance(s, int) or s is None for s in shapes)
    ):
        shapes = [shapes]
    if len(shapes) != count:
        raise ValueError(
            f"Queue shapes must have the same length as dtypes, received len(shapes)={len(shapes)}, len(dtypes)={count}"
        )
    return [as_shape(shape) for shape in shapes]


def _shared(shared_name: str | None) -> str:
    if context.executing_eagerly() and shared_name is None:
        return f"anonymous_queue_{next(_eager_queues)}"
    return shared_name or ""


_eager_queues = itertools.count()


@export("queue.FIFOQueue", v1="FIFOQueue")
class FIFOQueue(QueueBase):
    """Elements come out in the order they went in."""

    def __init__(
        self,
        capacity: int,
        dtypes: Any,
        shapes: Any = None,
        names: Any = None,
        shared_name: str | None = None,
        name: str = "fifo_queue",
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
        ValueError: shapes of unknown rank, or not one for each component.
    """

    def __init__(
        self,
        capacity: int,
        dtypes: Any,
        shapes: Any,
        names: Any = None,
        shared_name: str | None = None,
        name: str = "padding_fifo_queue",
    ) -> None:
        types = [as_dtype(dtype) for dtype in _as_list(dtypes)]
        known = _shape_list(shapes, len(types))
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
    """Elements come out in random order; `min_after_dequeue` stay behind to be mixed with."""

    def __init__(
        self,
        capacity: int,
        min_after_dequeue: int,
        dtypes: Any,
        shapes: Any = None,
        names: Any = None,
        seed: int | None = None,
        shared_name: str | None = None,
        name: str = "random_shuffle_queue",
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
    """Elements come out by priority, the smallest first; the first component of an element is its int64 priority."""

    def __init__(
        self,
        capacity: int,
        types: Any,
        shapes: Any = None,
        names: Any = None,
        shared_name: str | None = None,
        name: str = "priority_queue",
    ) -> None:
        made = [as_dtype(dtype) for dtype in _as_list(types)]
        known = _shape_list(shapes, len(made))
        ref = PRIORITY_QUEUE_V2(
            component_types=made, shapes=known or (), capacity=capacity, shared_name=_shared(shared_name), name=name
        )
        super().__init__([dtypes.int64, *made], None if known is None else [SCALAR, *known], names, ref)
