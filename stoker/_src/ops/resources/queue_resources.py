"""The state of a queue: its elements, and the threads that wait for it."""

from __future__ import annotations

import heapq
import itertools
import math
import random
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import numpy as np
import torch

from stoker._src.base import dtypes, forking
from stoker._src.base.dtypes import DType
from stoker._src.base.errors import CancelledError, InvalidArgumentError, OutOfRangeError
from stoker._src.base.shapes import SCALAR, Shape
from stoker._src.ops.random.bits.philox import Stream, bits
from stoker._src.ops.support.uneven import Row, Uneven, even, picked
from stoker._src.ops.support.values import torch_dtype
from stoker._src.ops.support.waiting import current_run, is_cancelled, wait_until

Element = tuple[Any, ...]
_MOST_BYTES = 1 << 16
"""Components up to this many bytes are packed into one tensor. Larger ones are kept without a copy."""


class _Slots:
    """Numbers of slots, and the first of them if they are consecutive: such rows are copied without an index."""

    def __init__(self, numbers: list[int]) -> None:
        self.numbers, self.count = numbers, len(numbers)
        first = numbers[0]
        consecutive = numbers[-1] - first == self.count - 1 and numbers == list(range(first, first + self.count))
        self.first = first if consecutive else None
        self.highest = numbers[-1] if consecutive else max(numbers)
        self._tensor: torch.Tensor | None = None

    def on(self, device: torch.device) -> torch.Tensor:
        if self._tensor is None:
            self._tensor = torch.from_numpy(np.array(self.numbers)).to(device)
        return self._tensor


class _Turn:
    """The place of one thread in a line, for a `with` statement. `is_first` tells whether it is the first one."""

    __slots__ = ("_changed", "_line")

    def __init__(self, line: deque[object], changed: threading.Condition) -> None:
        self._line, self._changed = line, changed

    def __enter__(self) -> Callable[[], bool]:
        self._line.append(self)
        return self.is_first

    def is_first(self) -> bool:
        return self._line[0] is self

    def __exit__(self, *error: object) -> None:
        self._line.remove(self)
        if self._line:
            self._changed.notify_all()


class _Table:
    """One component of all elements, if they have the same small size: the rows of a tensor that grows on demand."""

    def __init__(self) -> None:
        self._rows: torch.Tensor | None = None

    def _with_room(self, like: torch.Tensor, shape: Sequence[int], slots: int) -> torch.Tensor:
        rows = self._rows
        if rows is None or len(rows) < slots:
            grown = like.new_empty([max(16, 2 * slots), *shape])
            if rows is not None:
                grown[: len(rows)] = rows
            self._rows = rows = grown
        return rows

    def put(self, slot: int, value: torch.Tensor) -> None:
        self._with_room(value, value.shape, slot + 1)[slot] = value

    def put_rows(self, slots: _Slots, values: torch.Tensor) -> None:
        rows = self._with_room(values, values.shape[1:], slots.highest + 1)
        if slots.first is not None:
            rows.narrow(0, slots.first, slots.count).copy_(values)
        else:
            rows[slots.on(rows.device)] = values.to(rows.device)

    def take(self, slot: int) -> torch.Tensor:
        assert self._rows is not None  # the slot was taken
        return self._rows[slot].clone()

    def take_rows(self, slots: _Slots) -> torch.Tensor:
        assert self._rows is not None
        if slots.first is not None:
            return self._rows.narrow(0, slots.first, slots.count).clone()
        return self._rows.index_select(0, slots.on(self._rows.device))


class _List:
    """One component of all elements. Each value is a separate object."""

    def __init__(self, batch: Callable[[list[Any]], Any]) -> None:
        self._values: dict[int, Any] = {}
        self._batch = batch

    def put(self, slot: int, value: Any) -> None:
        self._values[slot] = value

    def put_rows(self, slots: _Slots, values: Any) -> None:
        rows: Iterable[Any]
        if isinstance(values, Uneven):
            rows = Row.all_of(values)
        elif isinstance(values, np.ndarray):
            rows = [np.array(row, dtype=object) for row in values]
        else:
            rows = [row.clone() for row in values]  # A view would keep all other rows alive.
        self._values.update(zip(slots.numbers, rows))

    def take(self, slot: int) -> Any:
        value = self._values.pop(slot)
        return value.copied() if isinstance(value, Row) else value

    def take_rows(self, slots: _Slots) -> Any:
        return self._batch([self._values.pop(slot) for slot in slots.numbers])


class Queue:
    """Elements (tuples of values) kept between runs. Enqueuers block while the queue is full, dequeuers while it has too few elements.

    Each element has a slot number. `_order` lists the slots of the waiting elements, and each component is stored under its
    slot. Enqueuers are served in order of arrival, and so are dequeuers. A closed queue accepts no more elements, and
    dequeues succeed while enough are left. `close(cancel_pending=True)` also cancels the pending enqueues.
    """

    KIND = "FIFOQueue"

    def __init__(self, name: str, capacity: int, component_types: Sequence[DType], shapes: Sequence[Shape]) -> None:
        if not -(2**31) <= capacity < 2**31:
            raise InvalidArgumentError(None, None, f"Queue {name}: capacity must be an int32, got {capacity}.")
        self.name = name
        self.title = (
            f"_0_{name}"  # in messages; TensorFlow puts a prefix before the names of queues that are not shared
        )
        self.capacity = max(capacity, -1)
        self.component_types = tuple(component_types)
        self.shapes = tuple(shapes) or (Shape(None),) * len(self.component_types)
        self.closed = False
        self._cancelled = False
        self._changed = forking.condition()
        self._order: Any = deque()
        self._free: list[int] = []
        self._slots = 0
        self._columns = [self._column(dtype, shape) for dtype, shape in zip(self.component_types, self.shapes)]
        self._enqueuers: deque[object] = deque()
        self._dequeuers: deque[object] = deque()
        forking.in_children(self, Queue._forget_waiting)

    def _forget_waiting(self) -> None:
        """In a forked child: the threads that waited do not exist."""
        self._enqueuers.clear()
        self._dequeuers.clear()

    def _column(self, dtype: DType, shape: Shape) -> _Table | _List:
        data = dtype not in (dtypes.string, dtypes.resource, dtypes.variant)
        if data and shape.known and dtype.size * math.prod(size or 0 for size in shape) <= _MOST_BYTES:
            return _Table()
        return _List(_stack)

    # The order of the waiting elements. Subclasses override these methods.

    def _put(self, slots: list[int], components: list[Any]) -> None:
        self._order.extend(slots)

    def _next(self, count: int) -> list[int]:
        """Removes and returns the slots of the next `count` elements."""
        return [self._order.popleft() for _ in range(count)]

    def _give_back(self, slots: list[int]) -> None:
        """Returns the elements that were taken last to the queue."""
        self._order.extendleft(reversed(slots))

    def _available(self) -> int:
        """Returns how many elements can be taken now."""
        return len(self._order)

    # Checks.

    def check(self, element: Element) -> None:
        """Raises InvalidArgumentError if an element does not have the queue's shapes."""
        for i, (value, shape) in enumerate(zip(element, self.shapes)):
            if not shape.compatible(Shape(value.shape)):
                raise _mismatch(i, shape, value)

    def check_types(self, what: str, component_types: tuple[DType, ...]) -> None:
        """Raises InvalidArgumentError if an op's components do not match the queue's. Called before the op waits."""
        if component_types != self.component_types:
            found, expected = (
                ", ".join(dtype.name for dtype in kinds) for kinds in (component_types, self.component_types)
            )
            raise InvalidArgumentError(
                None, None, f"{what} has components ({found}), but those of queue '{self.name}' are ({expected})."
            )

    def definition(self) -> list[tuple[str, str]]:
        """The properties that all nodes which share the queue must agree on, with TensorFlow's words for them."""
        kinds = ", ".join(_DATA_TYPES.get(dtype.name, dtype.name) for dtype in self.component_types)
        shapes = ",".join(map(str, self.shapes)) if all(shape.known for shape in self.shapes) else ""
        return [
            ("type", f"'{self.KIND}'"),
            ("capacity", str(self.capacity)),
            ("component types", kinds),
            ("component shapes", f"[{shapes}]"),
        ]

    def check_shared(self, wanted: Queue) -> Queue:
        """Returns this queue to a node that refers to it by name.

        Raises:
            InvalidArgumentError: The node describes a different queue.
        """
        for (what, found), (_, requested) in zip(self.definition(), wanted.definition()):
            if found != requested:
                were = "were" if what.endswith("s") else "was"
                raise InvalidArgumentError(
                    None, None, f"Shared queue '{self.name}' has {what} {found} but requested {what} {were} {requested}"
                )
        return self

    def batches(self) -> bool:
        """Whether several elements can be dequeued as a batch."""
        return all(map(self._batches, self.shapes))

    def _batches(self, shape: Shape) -> bool:
        return shape.known

    # Enqueueing.

    def room(self) -> int:
        """Returns a lower bound of how many elements can be enqueued without waiting; 2**31 for an unbounded queue."""
        return 1 << 31 if self.capacity == -1 else self.capacity - len(self._order)

    def fitted(self, components: Sequence[Any]) -> list[Any]:
        """The components of several elements, as `enqueue_many` takes them. Rows of different lengths may be `Uneven`.

        Raises:
            InvalidArgumentError or ValueError: they do not have the queue's shapes.
        """
        found = []
        for i, (value, shape) in enumerate(zip(components, self.shapes)):
            if not isinstance(value, Uneven):
                found.append(value)
            elif shape.dims is None or (shape.dims and shape.dims[0] is None):
                if not shape.compatible(Shape((None, *value.values.shape[1:]))):
                    raise _mismatch(i, shape, value.values)
                found.append(value)
            else:
                found.append(even(value))
        return found

    def _refuse_if_closed(self) -> None:
        if self.closed:
            kind = "FIFOQueue" if self.KIND == "PaddingFIFOQueue" else self.KIND
            raise CancelledError(None, None, f"{kind} '{self.title}' is closed.")

    def enqueue(self, element: Element) -> None:
        self.check(element)
        with self._changed:
            self._refuse_if_closed()
            with self._turn(self._enqueuers) as first:
                self._wait_for_room(first)
                (slot,) = self._new_slots(1)
                for column, value in zip(self._columns, element):
                    column.put(slot, value)
                self._put([slot], [value[None] for value in element[:1]])
                self._changed.notify_all()

    def enqueue_many(self, components: Sequence[Any]) -> None:
        """Enqueues one element for each row of the components.

        Raises:
            InvalidArgumentError: The components have different lengths, or their rows have the wrong shape.
        """
        if components and isinstance(components[0], Uneven):
            count: int | None = len(components[0])
        else:
            count = int(components[0].shape[0]) if components and len(components[0].shape) else None
        for i, (value, shape) in enumerate(zip(components, self.shapes)):
            if isinstance(value, Uneven):  # `fitted` looked at it
                continue
            if shape.dims is not None and tuple(value.shape) == (count, *shape.dims):
                continue
            expected = Shape((count,)).concat(shape)
            if not len(value.shape) or not expected.compatible(Shape(value.shape)) or value.shape[0] != count:
                raise _mismatch(i, expected, value)
        with self._changed:
            self._refuse_if_closed()
            with self._turn(self._enqueuers) as first:
                done = 0
                while done < (count or 0):
                    self._wait_for_room(first)
                    more = min(self.room(), (count or 0) - done)
                    whole = more == count
                    rows = components if whole else [value[done : done + more] for value in components]
                    slots = self._new_slots(more)
                    places = _Slots(slots)
                    for column, value in zip(self._columns, rows):
                        column.put_rows(places, value)
                    self._put(slots, list(rows[:1]))
                    done += more
                    self._changed.notify_all()

    def _new_slots(self, count: int) -> list[int]:
        reused = self._free[-count:]
        del self._free[-count:]
        made = range(self._slots, self._slots + count - len(reused))
        self._slots += len(made)
        return [*reused, *made]

    def _wait_for_room(self, first: Callable[[], bool]) -> None:
        if first() and self.room() > 0 and not self._cancelled and not is_cancelled():
            return
        wait_until(
            self._changed, lambda: self._cancelled or (first() and self.room() > 0),
            "Enqueue operation", f"queue '{self.name}'",
        )  # fmt: skip
        if self._cancelled:
            raise CancelledError(None, None, f"Enqueue operation was cancelled (queue '{self.name}' was closed)")

    # Dequeueing.

    def dequeue(self) -> Element:
        with self._changed, self._turn(self._dequeuers) as first:
            (slot,) = self._taken(1, first, up_to=False)
            self._free.append(slot)
            element = tuple([column.take(slot) for column in self._columns])
            self._changed.notify_all()
            return element

    def dequeue_many(self, count: int, *, up_to: bool = False) -> list[Any]:
        """Returns a batch of `count` elements. With `up_to`, the batch may be smaller, but not empty, if the queue is closed."""
        if count < 0:
            which = "DequeueUpToOp" if up_to else "DequeueManyOp"
            raise InvalidArgumentError(None, None, f"{which} requested {count} < 0 elements")
        if not self.batches():
            raise InvalidArgumentError(
                None,
                None,
                f"{self.KIND}'s DequeueMany and DequeueUpTo require the components to have specified shapes. "
                f"Those of queue '{self.name}' are {list(map(str, self.shapes))}.",
            )
        if count == 0:
            return self._empty_batch()
        with self._changed, self._turn(self._dequeuers) as first:
            return self._batch(self._taken(count, first, up_to=up_to))

    def dequeue_available(self, count: int) -> list[Any]:
        """Waits for the first element and returns a batch of what is available, at most `count` elements.

        If the queue does not know the shapes of its elements, or they may differ, the batch has one element.
        """
        with self._changed, self._turn(self._dequeuers) as first:
            slots = self._taken(1, first, up_to=False)
            if not all(shape.known for shape in self.shapes):
                self._free.extend(slots)
                return [column.take(slots[0])[None] for column in self._columns]
            more = min(count - 1, len(self._order) if self.closed else self._available())
            return self._batch([*slots, *self._next(more)] if more > 0 else slots)

    def _batch(self, slots: list[int]) -> list[Any]:
        taken = _Slots(slots)
        batch = [column.take_rows(taken) for column in self._columns]
        self._free.extend(slots)
        self._changed.notify_all()
        return batch

    def _taken(self, count: int, first: Callable[[], bool], up_to: bool) -> list[int]:
        """Returns the slots of the next elements, which it waits for."""
        taken: list[int] = []
        if self.closed and first() and len(self._order) < (1 if up_to else count):
            state = current_run()
            if state is not None:  # A session that closes cancels its runs before it closes its queues.
                state.check("Dequeue operation")
            raise self._ended(count, len(self._order))
        try:
            while len(taken) < count:
                if not first() or self._available() < 1 or is_cancelled():
                    wait_until(
                        self._changed, lambda: first() and (self.closed or self._available() > 0),
                        "Dequeue operation", f"queue '{self.name}'",
                    )  # fmt: skip
                available = len(self._order) if self.closed else self._available()
                if available < 1:
                    if up_to and taken:
                        break
                    raise self._ended(count - len(taken), 0)
                taken += self._next(min(available, count - len(taken)))
                if len(taken) < count:
                    self._changed.notify_all()  # wakes the enqueuers
        except BaseException:
            self._give_back(taken)
            self._changed.notify_all()
            raise
        return taken

    def _turn(self, line: deque[object]) -> _Turn:
        """Takes a place in a line of threads."""
        return _Turn(line, self._changed)

    def _empty_batch(self) -> list[Any]:
        batches: list[Any] = []
        for dtype, shape in zip(self.component_types, self.shapes):
            sizes = [0, *[size or 0 for size in shape]]
            batches.append(
                np.empty(sizes, object) if dtype is dtypes.string else torch.empty(sizes, dtype=torch_dtype(dtype))
            )
        return batches

    def _ended(self, wanted: int, size: int) -> OutOfRangeError:
        return OutOfRangeError(
            None,
            None,
            f"{self.KIND} '{self.title}' is closed and has insufficient elements (requested {wanted}, current size {size})",
        )

    # Life.

    def close(self, cancel_pending: bool = False) -> None:
        with self._changed:
            if self.closed and not cancel_pending:
                raise CancelledError(None, None, f"Queue '{self.title}' is already closed.")
            self.closed = True
            self._cancelled = self._cancelled or cancel_pending
            self._changed.notify_all()

    def size(self) -> int:
        with self._changed:
            return len(self._order)


class ShuffleQueue(Queue):
    """Returns a random element, but leaves at least `min_after_dequeue` in the queue until it is closed.

    With seeds, the order is TensorFlow's: it takes the element at (next Philox word) modulo (number of elements) and moves the
    last element into the gap.
    """

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
        if min_after_dequeue < 0:
            raise InvalidArgumentError(None, None, f"min_after_dequeue {min_after_dequeue} must be >= 0")
        if 0 <= capacity <= min_after_dequeue:
            raise InvalidArgumentError(
                None, None, f"min_after_dequeue {min_after_dequeue} must be < capacity {capacity}"
            )
        self._order: list[int] = []
        self._min_after = min_after_dequeue
        self._seeds = (seed, seed2)
        if not seed and not seed2:
            seed, seed2 = random.getrandbits(63), random.getrandbits(63)
        self._words = _words(Stream.from_seeds(seed, seed2))

    def definition(self) -> list[tuple[str, str]]:
        return [
            *super().definition(),
            ("min_after_dequeue", str(self._min_after)),
            ("random seeds", str(self._seeds)),
        ]

    def _available(self) -> int:
        return len(self._order) - self._min_after

    def _next(self, count: int) -> list[int]:
        order, words = self._order, self._words
        taken = []
        for _ in range(count):
            chosen = next(words) % len(order)
            order[chosen], order[-1] = order[-1], order[chosen]
            taken.append(order.pop())
        return taken

    def _give_back(self, slots: list[int]) -> None:
        self._order.extend(slots)


def _words(stream: Stream) -> Iterator[int]:
    """Yields the 32-bit words of a random stream."""
    while True:
        yield from bits(stream, 1024).tolist()
        stream = stream.skip(256)


class PaddingQueue(Queue):
    """Batches elements of different sizes by padding with zeros or empty strings."""

    KIND = "PaddingFIFOQueue"

    def _batches(self, shape: Shape) -> bool:
        return shape.rank is not None

    def _column(self, dtype: DType, shape: Shape) -> _Table | _List:
        return super()._column(dtype, shape) if shape.known else _List(_padded)

    def definition(self) -> list[tuple[str, str]]:
        return super().definition()[:3]  # Shapes may differ.


class OrderedQueue(Queue):
    """Returns the element with the smallest priority (its first component), in order of arrival among equals."""

    KIND = "PriorityQueue"

    def __init__(self, name: str, capacity: int, component_types: Sequence[DType], shapes: Sequence[Shape]) -> None:
        super().__init__(name, capacity, (dtypes.int64, *component_types), (SCALAR, *shapes) if shapes else ())
        self._order: list[tuple[int, int, int]] = []  # (priority, arrival, slot)
        self._arrival = itertools.count()
        self._entries: dict[int, tuple[int, int, int]] = {}  # by slot

    def _put(self, slots: list[int], components: list[Any]) -> None:
        for slot, priority in zip(slots, components[0].tolist()):
            entry = self._entries[slot] = (priority, next(self._arrival), slot)
            heapq.heappush(self._order, entry)

    def _next(self, count: int) -> list[int]:
        return [heapq.heappop(self._order)[2] for _ in range(count)]

    def _give_back(self, slots: list[int]) -> None:
        for slot in slots:
            heapq.heappush(self._order, self._entries[slot])


_DATA_TYPES = {"float32": "float", "float64": "double", "float16": "half"}


def _mismatch(component: int, expected: Shape, value: Any) -> InvalidArgumentError:
    found = Shape(value.shape)
    return InvalidArgumentError(
        None, None, f"Shape mismatch in tuple component {component}. Expected {expected}, got {found}"
    )


def _stack(values: list[Any]) -> Any:
    values = [value.copied() if isinstance(value, Row) else value for value in values]
    shapes = {tuple(value.shape) for value in values}
    if len(shapes) > 1:
        raise InvalidArgumentError(
            None, None, f"Elements of different shapes {sorted(shapes)} cannot be dequeued as one batch."
        )
    if isinstance(values[0], np.ndarray):
        return np.stack(values)
    place = values[0].device  # elements may come from several devices
    return torch.stack([value.to(place) for value in values])


def _padded(values: list[Any]) -> Any:
    rows = picked(values)
    if rows is not None:
        return rows.padded(int(rows.sizes.max()))
    values = [value.copied() if isinstance(value, Row) else value for value in values]
    sizes = [max(dims) for dims in zip(*[value.shape for value in values])] if values[0].ndim else []
    if isinstance(values[0], np.ndarray):
        batch: Any = np.full([len(values), *sizes], b"", dtype=object)
    else:
        batch = values[0].new_zeros([len(values), *sizes])
    for row, value in enumerate(values):
        batch[(row, *[slice(0, size) for size in value.shape])] = value
    return batch
