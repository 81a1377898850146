"""Iterators: resources that hold one pass over a dataset."""

from __future__ import annotations

import contextlib
import itertools
import weakref
from typing import Any

import numpy as np
import torch

from stoker._src.base import forking
from stoker._src.base.errors import (
    FailedPreconditionError,
    InvalidArgumentError,
    NotFoundError,
    OpError,
    OutOfRangeError,
)
from stoker._src.base.shapes import Shape
from stoker._src.graph.definition import (
    BLOCKING,
    FUNC,
    RETAINS,
    SHAPES,
    SOURCE,
    STATEFUL,
    TYPES,
    VIEW,
    define,
    scalar,
)
from stoker._src.ops.control_flow.optionals import OptionalValue
from stoker._src.ops.dataset.values import (
    Dataset,
    Element,
    Elements,
    as_dataset,
    counters,
    fits,
    shape_of,
    string_scalar,
)
from stoker._src.ops.support.waiting import is_over

_TYPES_AND_SHAPES = {"output_types": TYPES(minimum=1), "output_shapes": SHAPES(minimum=1)}


class Iterator:
    """A pass over a dataset that several runs may share. `start` begins a new pass."""

    def __init__(self, name: str, types: tuple[Any, ...], shapes: tuple[Any, ...]) -> None:
        self.name, self.types, self.shapes = name, types, shapes
        self._lock = forking.lock()
        self._dataset: Dataset | None = None
        self._elements: Elements | None = None
        self._taken = 0
        self._passes: list[int] = []  # of the parts of the dataset whose passes differ, before this pass
        self._restored: list[int] | None = None  # the position that was restored before a pass was started
        self.handle = f"iterator_{next(_numbers)}"
        _by_handle[self.handle] = self

    def start(self, dataset: Dataset) -> None:
        with self._lock:
            restored, self._restored = self._restored, None
            self._start(dataset, restored or [0])

    def _start(self, dataset: Dataset, position: list[int]) -> None:
        if self._elements is not None:
            self._elements.close()
        parts = counters(dataset)
        for part, passes in zip(parts, position[1:]):
            part.passes = passes
        self._passes = [part.passes for part in parts]
        self._dataset, self._elements, self._taken = dataset, dataset.elements(), 0
        for _ in range(position[0]):
            try:
                self._elements.next()
            except StopIteration:
                break
            self._taken += 1

    @property
    def position(self) -> list[int]:
        """The number of elements taken in this pass, and which pass it is. A checkpoint of the iterator consists of it."""
        with self._lock:
            return [self._taken, *self._passes]

    def move_to(self, position: list[int]) -> None:
        """Starts the same pass again and skips the elements taken; at the next start, if no pass was started.

        Raises:
            InvalidArgumentError: a number is negative, or there is none.
        """
        if not position or min(position) < 0:
            raise InvalidArgumentError(None, None, f"{position} is not the position of an iterator.")
        with self._lock:
            if self._dataset is None:
                self._restored = position
            else:
                self._start(self._dataset, position)

    def next(self) -> Element:
        """Returns the next element.

        Raises:
            FailedPreconditionError: no pass was started.
            OutOfRangeError: there are no more elements.
        """
        with self._lock:
            if self._elements is None:
                raise FailedPreconditionError(
                    None,
                    None,
                    "GetNext() failed because the iterator has not been initialized. Ensure that you have run the "
                    "initializer operation for this iterator before getting the next element.",
                )
            try:
                element = self._elements.next()
            except StopIteration:
                raise OutOfRangeError(None, None, "End of sequence") from None
            except OpError:
                if not is_over():
                    self._taken += 1  # the element that failed is lost
                raise
            self._taken += 1
        self._check(element)
        return element

    def _check(self, element: Element) -> None:
        if len(element) != len(self.shapes):
            raise InvalidArgumentError(
                None, None, f"Expected {len(self.shapes)} components but got {len(element)} in iterator '{self.name}'."
            )
        for k, (value, shape) in enumerate(zip(element, self.shapes)):
            if not fits(getattr(value, "shape", ()), shape):
                raise InvalidArgumentError(
                    None,
                    None,
                    f"Component {k} of iterator '{self.name}' has shape {shape_of(value)}, but {shape} was expected.",
                )

    def close(self, cancel_pending: bool = False) -> None:
        """Ends the pass. The iterator ends with its session."""
        with self._lock:
            elements, self._elements = self._elements, None
        if elements is not None:
            elements.close()

    def __del__(self) -> None:
        # A thread that computes ahead would go on for ever. Functions that clean up may be gone before the iterator.
        with contextlib.suppress(OpError):
            self.close()


_numbers = itertools.count()
_by_handle: weakref.WeakValueDictionary[str, Iterator] = weakref.WeakValueDictionary()


def _found(
    ctx: Any, container: str, shared_name: str, output_types: tuple[Any, ...], output_shapes: tuple[Any, ...]
) -> Iterator:
    name = shared_name or ctx.name
    return ctx.resources.lookup_or_create(
        container, "iterator", name, lambda: Iterator(name, output_types, output_shapes)
    )


ITERATOR = define(
    "Iterator() -> (handle: resource)", SOURCE | STATEFUL, shared_name="", container="", **_TYPES_AND_SHAPES
)
ITERATOR_V2 = define(
    "IteratorV2() -> (handle: resource)", SOURCE | STATEFUL, shared_name="", container="", **_TYPES_AND_SHAPES
)
ITERATOR.shape(scalar)
ITERATOR_V2.shape(scalar)


@ITERATOR.kernel
@ITERATOR_V2.kernel
def iterator_kernel(
    *, shared_name: str, container: str, output_types: tuple[Any, ...], output_shapes: tuple[Any, ...], ctx: Any
) -> Iterator:
    return _found(ctx, container, shared_name, output_types, output_shapes)


ANONYMOUS_ITERATOR_V3 = define("AnonymousIteratorV3() -> (handle: resource)", SOURCE | STATEFUL, **_TYPES_AND_SHAPES)
ANONYMOUS_ITERATOR_V3.shape(scalar)


@ANONYMOUS_ITERATOR_V3.kernel
def anonymous_iterator_kernel(*, output_types: tuple[Any, ...], output_shapes: tuple[Any, ...]) -> Iterator:
    return Iterator("AnonymousIterator", output_types, output_shapes)


ONE_SHOT_ITERATOR = define(
    "OneShotIterator() -> (handle: resource)",
    SOURCE | STATEFUL,
    dataset_factory=FUNC,
    **_TYPES_AND_SHAPES,
    container="",
    shared_name="",
).keeping()
ONE_SHOT_ITERATOR.shape(scalar)


@ONE_SHOT_ITERATOR.kernel
def one_shot_iterator_kernel(
    *,
    dataset_factory: Any,
    output_types: tuple[Any, ...],
    output_shapes: tuple[Any, ...],
    container: str,
    shared_name: str,
    ctx: Any,
) -> Iterator:
    name = shared_name or ctx.name

    def make() -> Iterator:
        iterator = Iterator(name, output_types, output_shapes)
        iterator.start(as_dataset(dataset_factory.bind()()[0]))
        return iterator

    return ctx.resources.lookup_or_create(container, "iterator", name, make)


MAKE_ITERATOR = define("MakeIterator(dataset: variant, iterator: resource) -> ()", STATEFUL | BLOCKING | RETAINS)
MAKE_ITERATOR.kernel(lambda dataset, iterator: iterator.start(as_dataset(dataset)))

ITERATOR_GET_NEXT = define(
    "IteratorGetNext(iterator: resource) -> (components: [output_types])",
    STATEFUL | BLOCKING | VIEW,
    **_TYPES_AND_SHAPES,
)
ITERATOR_GET_NEXT_SYNC = define(
    "IteratorGetNextSync(iterator: resource) -> (components: [output_types])",
    STATEFUL | BLOCKING | VIEW,
    **_TYPES_AND_SHAPES,
)
ITERATOR_GET_NEXT.kernel(lambda iterator: list(iterator.next()))
ITERATOR_GET_NEXT_SYNC.kernel(lambda iterator: list(iterator.next()))
ITERATOR_GET_NEXT.shape(lambda iterator, *, output_shapes: list(output_shapes))
ITERATOR_GET_NEXT_SYNC.shape(lambda iterator, *, output_shapes: list(output_shapes))

ITERATOR_GET_NEXT_AS_OPTIONAL = define(
    "IteratorGetNextAsOptional(iterator: resource) -> (optional: variant)",
    STATEFUL | BLOCKING | VIEW,
    **_TYPES_AND_SHAPES,
)
ITERATOR_GET_NEXT_AS_OPTIONAL.shape(scalar)


@ITERATOR_GET_NEXT_AS_OPTIONAL.kernel
def iterator_get_next_as_optional_kernel(iterator: Iterator) -> OptionalValue:
    try:
        return OptionalValue(list(iterator.next()))
    except OutOfRangeError:
        return OptionalValue(None)


ITERATOR_TO_STRING_HANDLE = define(
    "IteratorToStringHandle(resource_handle: resource) -> (string_handle: string)", STATEFUL
)
ITERATOR_TO_STRING_HANDLE.kernel(lambda resource_handle: string_scalar(resource_handle.handle.encode()))
ITERATOR_TO_STRING_HANDLE.shape(scalar)

ITERATOR_FROM_STRING_HANDLE_V2 = define(
    "IteratorFromStringHandleV2(string_handle: scalar string) -> (resource_handle: resource)",
    STATEFUL,
    output_types=TYPES(()),
    output_shapes=SHAPES(()),
)
ITERATOR_FROM_STRING_HANDLE_V2.shape(scalar)


@ITERATOR_FROM_STRING_HANDLE_V2.kernel
def iterator_from_string_handle_kernel(
    string_handle: np.ndarray, *, output_types: tuple[Any, ...], output_shapes: tuple[Any, ...]
) -> Iterator:
    text = string_handle.item().decode(errors="replace")
    found = _by_handle.get(text)
    if found is None:
        raise NotFoundError(None, None, f"There is no iterator with the handle {text!r}.")
    if output_types and tuple(output_types) != tuple(found.types):
        raise InvalidArgumentError(
            None,
            None,
            f"Iterator '{found.name}' has components of types {[t.name for t in found.types]}, expected "
            f"{[t.name for t in output_types]}.",
        )
    return found


ITERATOR_POSITION = define("IteratorPosition(iterator: resource) -> (position: int64)", STATEFUL)
ITERATOR_POSITION.kernel(lambda iterator: torch.tensor(iterator.position))
ITERATOR_POSITION.shape(lambda iterator: Shape((None,)))
MOVE_ITERATOR = define("MoveIterator(iterator: resource, position: vector int64) -> ()", STATEFUL | BLOCKING)
MOVE_ITERATOR.kernel(lambda iterator, position: iterator.move_to(position.tolist()))

DATASET_TO_SINGLE_ELEMENT = define(
    "DatasetToSingleElement(dataset: variant) -> (components: [output_types])",
    STATEFUL | BLOCKING | VIEW,
    **_TYPES_AND_SHAPES,
    metadata="",
)
DATASET_TO_SINGLE_ELEMENT.shape(lambda dataset, *, output_shapes: list(output_shapes))


@DATASET_TO_SINGLE_ELEMENT.kernel
def dataset_to_single_element_kernel(dataset: Any) -> list[Any]:
    elements = as_dataset(dataset).elements()
    try:
        try:
            found = elements.next()
        except StopIteration:
            raise InvalidArgumentError(None, None, "Dataset was empty.") from None
        try:
            elements.next()
        except StopIteration:
            return list(found)
        raise InvalidArgumentError(None, None, "Dataset had more than one element.")
    finally:
        elements.close()


DATASET_CARDINALITY = define(
    "DatasetCardinality(input_dataset: variant) -> (cardinality: int64)", cardinality_options=""
)
DATASET_CARDINALITY.kernel(lambda input_dataset: torch.tensor(as_dataset(input_dataset).cardinality()))
DATASET_CARDINALITY.shape(scalar)
