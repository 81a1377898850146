"""What is behind a queue's handle: elements that wait between runs, and the threads that wait for them."""

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
from stoker._src.base.dtypes import DType
from stoker._src.base.errors import CancelledError, InvalidArgumentError, OutOfRangeError
from stoker._src.base.shapes import SCALAR, Shape
from stoker._src.ops.support.values import torch_dtype
from stoker._src.ops.support.waiting import wait_until

Element = tuple[Any, ...]


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
