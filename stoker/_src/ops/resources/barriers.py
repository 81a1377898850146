"""Barriers: elements are assembled from components that arrive by key. Complete elements are taken in the order in which their keys arrived."""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from stoker._src.base import forking
from stoker._src.base.dtypes import DType
from stoker._src.base.errors import CancelledError, InvalidArgumentError, OutOfRangeError
from stoker._src.base.shapes import SCALAR, UNKNOWN_SHAPE, Shape
from stoker._src.graph.definition import ANY, BLOCKING, INT, RETAINS, SHAPES, SOURCE, STATEFUL, TYPES, define, scalar
from stoker._src.graph.tensor import Operation
from stoker._src.ops.support.waiting import wait_until


@dataclass
class _Element:
    """A complete element. Elements leave in the order of the calls that inserted their keys. Within one call the order is that of a
    binary heap
    that compares only the call's number, as in TensorFlow."""

    call: int
    key: bytes
    parts: list[Any]

    def __lt__(self, other: _Element) -> bool:
        return self.call < other.call


class Barrier:
    """The keys and their components. A closed barrier accepts no new keys, but existing ones can still be completed."""

    def __init__(self, name: str, component_types: Sequence[DType], shapes: Sequence[Shape]) -> None:
        self.name = name
        self.component_types, self.shapes = tuple(component_types), tuple(shapes)
        self.closed = self._cancelled = False
        self._changed = forking.condition()
        self._call = -(2**63)
        self.incomplete: dict[bytes, tuple[int, list[Any]]] = {}
        self.ready: list[_Element] = []  # a heap

    def insert(self, keys: list[bytes], component: int, values: Any, dtype: DType) -> None:
        if not 0 <= component < len(self.component_types):
            raise InvalidArgumentError(
                None,
                None,
                f"The component ID is out of range {component} > num_components (= {len(self.component_types)})",
            )
        if dtype is not self.component_types[component]:
            raise InvalidArgumentError(
                None,
                None,
                f"Signature mismatch: component {component} of barrier {self.name} has dtype {self.component_types[component].name}, got {dtype.name}",
            )
        if len(values.shape) == 0 or values.shape[0] != len(keys):
            raise InvalidArgumentError(
                None, None, f"BarrierInsertMany was given {len(keys)} keys and values {list(values.shape)}."
            )
        row = Shape(tuple(values.shape[1:]))
        if not self.shapes[component].compatible(row):
            raise InvalidArgumentError(
                None,
                None,
                f"Shape mismatch in tuple component {component}. Expected {self.shapes[component]}, got {row}",
            )
        with self._changed:
            new = [key for key in keys if key not in self.incomplete]
            if self._cancelled or (self.closed and new):
                raise CancelledError(
                    None,
                    None,
                    f"Barrier {self.name} is closed.  Pending enqueues cancelled: {int(self._cancelled)}.  Number of new insertions: {len(new)}.  Number of incomplete keys: {len(self.incomplete)}.",
                )
            for key, value in zip(keys, values):
                value = value.clone() if isinstance(value, torch.Tensor) else np.asarray(value, dtype=object)
                self._insert_one(key, component, value)
            if new:  # A call that is refused, or that only completes elements, shares its number with the next call.
                self._call += 1
            self._changed.notify_all()

    def _insert_one(self, key: bytes, component: int, value: Any) -> None:
        first, parts = self.incomplete.setdefault(key, (self._call, [None] * len(self.component_types)))
        if parts[component] is not None:
            raise InvalidArgumentError(
                None,
                None,
                f"Key {key.decode(errors='replace')} already has a value for component {component} in barrier {self.name}",
            )
        parts[component] = value
        if all(part is not None for part in parts):
            del self.incomplete[key]
            heapq.heappush(self.ready, _Element(first, key, parts))

    def take(self, count: int, *, allow_small_batch: bool, wait_for_incomplete: bool) -> tuple[Any, Any, list[Any]]:
        if count < 0:
            raise InvalidArgumentError(None, None, f"BarrierTakeMany needs num_elements >= 0, got {count}.")

        def enough() -> bool:
            if len(self.ready) >= count:
                return True
            more_may_come = self.incomplete and not self._cancelled and (wait_for_incomplete or not allow_small_batch)
            return self.closed and not more_may_come

        with self._changed:
            wait_until(self._changed, enough, f"Take from barrier '{self.name}'")
            if len(self.ready) < count and not (allow_small_batch and self.ready):
                raise OutOfRangeError(
                    None,
                    None,
                    f"Barrier '{self.name}' is closed and has insufficient elements (requested {count}, total size {len(self.ready)})",
                )
            taken = [heapq.heappop(self.ready) for _ in range(min(count, len(self.ready)))]
        keys = np.empty(len(taken), dtype=object)
        keys[:] = [element.key for element in taken]
        indices = torch.tensor([element.call for element in taken], dtype=torch.int64)
        return (
            indices,
            keys,
            [_stacked([element.parts[i] for element in taken]) for i in range(len(self.component_types))],
        )

    def close(self, cancel_pending: bool = False) -> None:
        with self._changed:
            self.closed = True
            if cancel_pending:
                self._cancelled = True
                self.incomplete.clear()
            self._changed.notify_all()


def _stacked(values: list[Any]) -> Any:
    if not values:
        return torch.zeros(0)
    return torch.stack(values) if isinstance(values[0], torch.Tensor) else np.stack(values)


# -- ops ---------------------------------------------------------------------------------------------------------

BARRIER = define(
    "Barrier() -> (handle: Ref(string))",
    SOURCE | STATEFUL,
    component_types=TYPES(minimum=1),
    shapes=SHAPES(()),
    capacity=-1,
    container="",
    shared_name="",
)
BARRIER.shape(lambda: SCALAR)


@BARRIER.kernel
def barrier_kernel(
    *, component_types: Any, shapes: Any, capacity: int, container: str, shared_name: str, ctx: Any
) -> Barrier:
    if capacity != -1:
        raise InvalidArgumentError(
            None,
            None,
            "Barrier only accepts capacity=-1.  Feed the inputs to your Barrier through a queue to enforce a limited capacity.",
        )
    if len(shapes) != len(component_types):
        raise InvalidArgumentError(None, None, "All of the component shapes must be specified")
    name = shared_name or ctx.name
    return ctx.resources.lookup_or_create(container, "barrier", name, lambda: Barrier(name, component_types, shapes))


BARRIER_INSERT_MANY = define(
    "BarrierInsertMany(handle: Ref(string), keys: vector string, values: rank>0 T) -> ()",
    STATEFUL | RETAINS,
    T=ANY,
    component_index=INT,
)


@BARRIER_INSERT_MANY.kernel
def barrier_insert_many_kernel(
    handle: Barrier, keys: np.ndarray, values: Any, *, T: DType, component_index: int
) -> None:
    handle.insert(keys.tolist(), component_index, values, T)


@BARRIER_INSERT_MANY.shape
def barrier_insert_many_shape(handle: Shape, keys: Shape, values: Shape) -> None:
    Shape((keys.of_rank(1)[0],)).merge(Shape((values.at_least(1)[0],)))


BARRIER_TAKE_MANY = define(
    "BarrierTakeMany(handle: Ref(string), num_elements: any/scalar host int32) -> "
    "(indices: int64, keys: string, values: [component_types])",
    STATEFUL | BLOCKING,
    component_types=TYPES(minimum=1),
    allow_small_batch=False,
    wait_for_incomplete=False,
    timeout_ms=-1,
)


@BARRIER_TAKE_MANY.kernel
def barrier_take_many_kernel(
    handle: Barrier,
    num_elements: int,
    *,
    component_types: Any,
    allow_small_batch: bool,
    wait_for_incomplete: bool,
    timeout_ms: int,
) -> tuple[Any, Any, list[Any]]:
    if timeout_ms != -1:
        raise InvalidArgumentError(None, None, f"Timeout not supported yet: timeout_ms = {timeout_ms}")
    if tuple(component_types) != handle.component_types:
        expected, found = (", ".join(d.name for d in kinds) for kinds in (handle.component_types, component_types))
        raise InvalidArgumentError(
            None, None, f"Signature mismatch: barrier {handle.name} has components ({expected}), the op takes ({found})"
        )
    return handle.take(num_elements, allow_small_batch=allow_small_batch, wait_for_incomplete=wait_for_incomplete)


@BARRIER_TAKE_MANY.shape
def barrier_take_many_shape(handle: Shape, num_elements: Shape, *, op: Operation) -> Any:
    return Shape((None,)), Shape((None,)), [UNKNOWN_SHAPE] * len(op.attrs["component_types"])


BARRIER_CLOSE = define("BarrierClose(handle: Ref(string)) -> ()", STATEFUL, cancel_pending_enqueues=False)


@BARRIER_CLOSE.kernel
def barrier_close_kernel(handle: Barrier, *, cancel_pending_enqueues: bool) -> None:
    handle.close(cancel_pending_enqueues)


BARRIER_READY_SIZE = define("BarrierReadySize(handle: Ref(string)) -> (size: int32)", STATEFUL)
BARRIER_READY_SIZE.kernel(lambda handle: torch.tensor(len(handle.ready), dtype=torch.int32))
BARRIER_READY_SIZE.shape(scalar)

BARRIER_INCOMPLETE_SIZE = define("BarrierIncompleteSize(handle: Ref(string)) -> (size: int32)", STATEFUL)
BARRIER_INCOMPLETE_SIZE.kernel(lambda handle: torch.tensor(len(handle.incomplete), dtype=torch.int32))
BARRIER_INCOMPLETE_SIZE.shape(scalar)
