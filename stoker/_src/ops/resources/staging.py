"""Staging areas (Stage, MapStage and OrderedMapStage) pass values from one step of a pipeline to the next, by name."""

from __future__ import annotations

import itertools
from collections import deque
from collections.abc import Callable
from typing import Any

import numpy as np
import torch

from stoker._src.base import forking
from stoker._src.base.dtypes import DType, string
from stoker._src.base.errors import InvalidArgumentError, OpError, ResourceExhaustedError
from stoker._src.base.shapes import UNKNOWN_SHAPE
from stoker._src.graph.definition import BLOCKING, INT, RETAINS, STATEFUL, TYPES, OpDefinition, define, scalar
from stoker._src.ops.support.values import torch_dtype
from stoker._src.ops.support.waiting import wait_until

_ATTRS = {"capacity": INT(0, minimum=0), "memory_limit": INT(0, minimum=0)}
_NAMES = {"container": "", "shared_name": ""}
_POINTER = 8  # bytes counted for a string in addition to its length


def _size_in_bytes(values: Any) -> int:
    total = 0
    for value in values:
        if isinstance(value, torch.Tensor):
            total += value.numel() * value.element_size()
        elif isinstance(value, np.ndarray):
            total += sum(_POINTER + len(text) for text in value.reshape(-1).tolist())
    return total


class StagingArea:
    """A first-in first-out list of tuples, limited to `capacity` tuples and `memory_limit` bytes (0: unlimited)."""

    def __init__(self, name: str, capacity: int, memory_limit: int) -> None:
        self.name, self.capacity, self.memory_limit = name, capacity, memory_limit
        self.changed = forking.condition()
        self._elements: deque[tuple[Any, ...]] = deque()
        self._bytes = 0
        self.closed = False

    def close(self, cancel_pending: bool = False) -> None:
        """Wakes all waiting threads. The area ends with its session."""
        with self.changed:
            self.closed = True
            self.changed.notify_all()

    def has_room(self, count: int, held: int, more: int) -> bool:
        return (not self.capacity or count < self.capacity) and (
            not self.memory_limit or held + more <= self.memory_limit
        )

    too_large: type[OpError] = InvalidArgumentError

    def check_memory(self, more: int) -> None:
        if self.memory_limit and more > self.memory_limit:
            raise self.too_large(
                None,
                None,
                f"Attempted to insert tensors with combined size of '{more}' bytes into Staging Area with a memory limit of '{self.memory_limit}'.",
            )

    def put(self, values: tuple[Any, ...]) -> None:
        more = _size_in_bytes(values)
        self.check_memory(more)
        with self.changed:
            wait_until(
                self.changed,
                lambda: self.closed or self.has_room(len(self._elements), self._bytes, more),
                f"Stage into '{self.name}'",
            )
            self._elements.append(values)
            self._bytes += more
            self.changed.notify_all()

    def take(self) -> tuple[Any, ...]:
        with self.changed:
            wait_until(self.changed, lambda: len(self._elements) > 0, f"Unstage from '{self.name}'")
            values = self._elements.popleft()
            self._bytes -= _size_in_bytes(values)
            self.changed.notify_all()
            return values

    def peek(self, index: int) -> tuple[Any, ...]:
        if index < 0:
            raise InvalidArgumentError(None, None, f"StagePeek needs an index >= 0, got {index}.")
        with self.changed:
            wait_until(self.changed, lambda: len(self._elements) > index, f"StagePeek of '{self.name}'")
            return self._elements[index]

    def size(self) -> int:
        return len(self._elements)

    def clear(self) -> None:
        with self.changed:
            self._elements.clear()
            self._bytes = 0
            self.changed.notify_all()


class StagingMap(StagingArea):
    """Tuples by key, assembled from parts. Complete tuples can be taken whole or in parts."""

    too_large = ResourceExhaustedError

    def __init__(self, name: str, capacity: int, memory_limit: int, count: int, ordered: bool) -> None:
        super().__init__(name, capacity, memory_limit)
        self.count, self.ordered = count, ordered
        self.whole: dict[int, list[Any]] = {}
        self.partial: dict[int, list[Any]] = {}

    def _others(self, key: int) -> int:
        """Returns how many tuples there are, without the one that a part of `key` would belong to."""
        return len(self.whole) + len(self.partial) - (key in self.partial)

    def _bytes_held(self) -> int:
        return sum(
            _size_in_bytes(part for part in parts if part is not None)
            for parts in itertools.chain(self.whole.values(), self.partial.values())
        )

    def _check_indices(self, key: int, indices: list[int]) -> None:
        if not indices:
            raise InvalidArgumentError(None, None, "Indices are empty")
        if any(after <= before for before, after in itertools.pairwise(indices)):
            raise InvalidArgumentError(None, None, "Indices are not strictly ordered")
        for index in indices:
            if not 0 <= index < self.count:
                raise InvalidArgumentError(
                    None, None, f"Index '{index}' for key '{key}' was out of bounds '{self.count}'."
                )

    def put_parts(self, key: int, indices: list[int], values: list[Any]) -> None:
        if len(indices) != len(values):
            raise InvalidArgumentError(
                None, None, f"MapStage was given {len(indices)} indices for {len(values)} values."
            )
        self._check_indices(key, indices)
        more = _size_in_bytes(values)
        self.check_memory(more)
        with self.changed:
            wait_until(
                self.changed,
                lambda: self.closed or self.has_room(self._others(key), self._bytes_held(), more),
                f"MapStage into '{self.name}'",
            )
            parts = self.partial.get(key, [None] * self.count)
            for index, value in zip(indices, values):
                if parts[index] is not None:
                    raise InvalidArgumentError(
                        None,
                        None,
                        f"The tensor for index '{index}' for key '{key}' was already initialized '{self.count}'.",
                    )
                parts[index] = value
            self.partial[key] = parts
            if all(part is not None for part in parts):
                # A complete tuple is kept and a later one with the same key dropped, as in TensorFlow.
                self.whole.setdefault(key, self.partial.pop(key))
            self.changed.notify_all()

    def peek_parts(self, key: int, indices: list[int]) -> list[Any]:
        self._check_indices(key, indices)
        with self.changed:
            wait_until(self.changed, lambda: key in self.whole, f"MapPeek of '{self.name}'")
            return self._parts(key, indices)

    def _parts(self, key: int, indices: list[int]) -> list[Any]:
        parts = self.whole[key]
        for index in indices:
            if parts[index] is None:
                raise InvalidArgumentError(
                    None, None, f"Tensor at index '{index}' for key '{key}' has already been removed."
                )
        return [parts[index] for index in indices]

    def take_parts(self, key: int | None, indices: list[int]) -> tuple[int, list[Any]]:
        """Returns the parts of `key`, or of any key (the smallest if ordered). The remaining parts stay until they are taken."""
        self._check_indices(0 if key is None else key, indices)
        with self.changed:
            wait_until(
                self.changed,
                lambda: bool(self.whole) if key is None else key in self.whole,
                f"MapUnstage from '{self.name}'",
            )
            if key is None:
                key = min(self.whole) if self.ordered else next(iter(self.whole))
            found = self._parts(key, indices)
            for index in indices:
                self.whole[key][index] = None
            if all(part is None for part in self.whole[key]):
                del self.whole[key]
            self.changed.notify_all()
            return key, found

    def size(self) -> int:
        return len(self.whole)

    def clear(self) -> None:
        with self.changed:
            self.whole.clear()
            self.partial.clear()
            self.changed.notify_all()


# -- ops ---------------------------------------------------------------------------------------------------------


def _area(ctx: Any, container: str, shared_name: str, capacity: int, memory_limit: int) -> StagingArea:
    name = shared_name or ctx.name
    return ctx.resources.lookup_or_create(container, "staging", name, lambda: StagingArea(name, capacity, memory_limit))


def _checked(found: Any, dtypes: tuple[DType, ...], name: str) -> list[Any]:
    if len(found) != len(dtypes):
        raise InvalidArgumentError(
            None, None, f"The elements of staging area '{name}' have {len(found)} parts, the op wants {len(dtypes)}."
        )
    for value, dtype in zip(found, dtypes):
        kind = torch_dtype(dtype) if isinstance(value, torch.Tensor) and dtype is not string else None
        if isinstance(value, np.ndarray) != (dtype is string) or (kind is not None and value.dtype is not kind):
            actual = str(value.dtype).removeprefix("torch.") if isinstance(value, torch.Tensor) else "string"
            raise InvalidArgumentError(None, None, f"Type mismatch: actual {actual} vs. expect {dtype.name}")
    return list(found)


def _unknown_shapes(*_: Any, dtypes: tuple[DType, ...]) -> list[Any]:
    return [UNKNOWN_SHAPE] * len(dtypes)


def _staging(
    signature: str, method: Callable[..., Any], traits: Any = STATEFUL, least: int | None = None
) -> OpDefinition:
    """Defines an op on the area that its attributes name."""
    definition = define(signature, traits, **_ATTRS, dtypes=TYPES(minimum=least) if least else TYPES, **_NAMES)

    def kernel(
        *inputs: Any, capacity: int, memory_limit: int, dtypes: Any, container: str, shared_name: str, ctx: Any
    ) -> Any:
        return method(_area(ctx, container, shared_name, capacity, memory_limit), dtypes, *inputs)

    definition.kernel(kernel)
    return definition


_staging(
    "Stage(values: [dtypes]) -> ()", lambda area, _, values: area.put(tuple(values)), STATEFUL | BLOCKING | RETAINS, 1
)
_staging(
    "Unstage() -> (values: [dtypes])",
    lambda area, dtypes: _checked(area.take(), dtypes, area.name),
    STATEFUL | BLOCKING,
    1,
).shape(_unknown_shapes)
_staging(
    "StagePeek(index: scalar host int32) -> (values: [dtypes])",
    lambda area, dtypes, index: _checked(area.peek(index), dtypes, area.name),
    STATEFUL | BLOCKING,
    1,
).shape(_unknown_shapes)
_staging("StageSize() -> (size: int32)", lambda area, _: torch.tensor(area.size(), dtype=torch.int32)).shape(scalar)
_staging("StageClear() -> ()", lambda area, _: area.clear())


def _map(
    ctx: Any, container: str, shared_name: str, capacity: int, memory_limit: int, count: int, ordered: bool
) -> Any:
    name = shared_name or ctx.name
    return ctx.resources.lookup_or_create(
        container,
        "ordered_staging_map" if ordered else "staging_map",
        name,
        lambda: StagingMap(name, capacity, memory_limit, count, ordered),
    )


def _mapping(
    ordered: bool, signature: str, method: Callable[..., Any], traits: Any = STATEFUL, least: int | None = None
) -> OpDefinition:
    more = {"fake_dtypes": TYPES(minimum=1)} if "fake_dtypes" in signature else {}
    kinds = TYPES(minimum=least) if least else TYPES
    definition = define("Ordered" * ordered + signature, traits, **_ATTRS, dtypes=kinds, **more, **_NAMES)

    def kernel(
        *inputs: Any, capacity: int, memory_limit: int, dtypes: Any, container: str, shared_name: str, ctx: Any
    ) -> Any:
        area = _map(ctx, container, shared_name, capacity, memory_limit, len(dtypes), ordered)
        return method(area, dtypes, *inputs)

    definition.kernel(kernel)
    return definition


for _ordered in (False, True):
    _mapping(
        _ordered,
        "MapStage(key: any/one host int64, indices: any/flat host int32, values: [fake_dtypes]) -> ()",
        lambda area, _, *parts: area.put_parts(*parts),
        STATEFUL | BLOCKING | RETAINS,
    )
    _mapping(
        _ordered,
        "MapPeek(key: any/scalar host int64, indices: any/flat host int32) -> (values: [dtypes])",
        lambda area, dtypes, key, indices: _checked(area.peek_parts(key, indices), dtypes, area.name),
        STATEFUL | BLOCKING,
        1,
    ).shape(_unknown_shapes)
    _mapping(
        _ordered,
        "MapUnstage(key: any/scalar host int64, indices: any/flat host int32) -> (values: [dtypes])",
        lambda area, dtypes, key, indices: _checked(area.take_parts(key, indices)[1], dtypes, area.name),
        STATEFUL | BLOCKING,
        1,
    ).shape(_unknown_shapes)

    def _take_any(area: StagingMap, dtypes: tuple[DType, ...], indices: list[int]) -> tuple[Any, Any]:
        key, parts = area.take_parts(None, indices)
        return torch.tensor(key, dtype=torch.int64), _checked(parts, dtypes, area.name)

    _mapping(
        _ordered,
        "MapUnstageNoKey(indices: any/flat host int32) -> (key: int64, values: [dtypes])",
        _take_any,
        STATEFUL | BLOCKING,
        1,
    ).shape(lambda indices, *, dtypes: (UNKNOWN_SHAPE, _unknown_shapes(dtypes=dtypes)))
    _mapping(
        _ordered, "MapSize() -> (size: int32)", lambda area, _: torch.tensor(area.size(), dtype=torch.int32)
    ).shape(scalar)
    _mapping(
        _ordered,
        "MapIncompleteSize() -> (size: int32)",
        lambda area, _: torch.tensor(len(area.partial), dtype=torch.int32),
    ).shape(scalar)
    _mapping(_ordered, "MapClear() -> ()", lambda area, _: area.clear())
