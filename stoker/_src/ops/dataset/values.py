"""Datasets and their elements at run time.

A dataset is a recipe. `elements()` starts a pass over it. An element is a tuple of kernel values, one for each component.
"""

from __future__ import annotations

import copy
import functools
import itertools
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import torch

from stoker._src.base.errors import InvalidArgumentError, OpError
from stoker._src.base.shapes import Shape
from stoker._src.graph import context
from stoker._src.graph.definition import RETAINS, SHAPES, TYPES, OpDefinition, Trait, define, scalar
from stoker._src.ops.array import gathering
from stoker._src.ops.array.joining import pack_kernel
from stoker._src.ops.support import uneven
from stoker._src.ops.support.uneven import Picked, Uneven
from stoker._src.ops.support.values import to_numpy
from stoker._src.ops.support.waiting import current_run

Element = Sequence[Any]

INFINITE, UNKNOWN = -1, -2  # cardinalities


def stop_if_cancelled() -> None:
    """Ends a run that was cancelled or whose time ran out, while it looks for its next element.

    A filter may refuse every element of an endless dataset, so whatever draws elements from a source calls this for each.

    Raises:
        CancelledError: the run was cancelled.
        DeadlineExceededError: the run's time ran out.
    """
    state = current_run()
    if state is not None:
        state.check("The search for the next element of a dataset")


class Elements:
    """One pass over a dataset. It is used by one thread at a time.

    A failed `next` loses its element, and the following call continues after it.
    """

    def __init__(self, *sources: Elements) -> None:
        self._sources = sources

    def next(self) -> Element:
        """Returns the next element.

        Raises:
            StopIteration: there are no more elements.
        """
        raise NotImplementedError(f"{type(self).__name__}.next")

    def take(self, count: int, found: Any) -> None:
        """Appends up to `count` next elements to `found`. If one fails, those before it are there."""
        for _ in itertools.repeat(None, count):
            try:
                found.append(self.next())
            except StopIteration:
                return

    def may_run_ahead(self) -> bool:
        """Whether elements can be taken before they are needed, because nobody would notice."""
        return False

    def close(self) -> None:
        """Ends the pass: joins its threads and closes its files. Closing twice is allowed."""
        for source in self._sources:
            source.close()


class Transparent(Elements):
    """Elements that have no effect but those of the sources."""

    def may_run_ahead(self) -> bool:
        return all(source.may_run_ahead() for source in self._sources)


class Drawn:
    """Elements of a source that were taken together, because all of them are needed. An error comes after the elements before it."""

    def __init__(self, source: Elements) -> None:
        self.source = source
        self.held: deque[Element] = deque()
        self.failure: OpError | None = None  # what the source raised after them

    def fill(self, count: int) -> None:
        """Takes elements until `count` are held, if there are so many before the end or an error."""
        if self.failure is None and count > len(self.held):
            try:
                self.source.take(count - len(self.held), self.held)
            except OpError as error:
                self.failure = error

    def next(self) -> Element:
        if self.held:
            return self.held.popleft()
        if self.failure is not None:
            failure, self.failure = self.failure, None
            raise failure
        return self.source.next()


class Dataset:
    """A recipe for elements. Subclasses define `elements`, and `cardinality` if it can be known."""

    is_source = False  # whether another dataset is made from it

    def elements(self) -> Elements:
        raise NotImplementedError(f"{type(self).__name__}.elements")

    def cardinality(self) -> int:
        """Returns the number of elements, INFINITE or UNKNOWN."""
        return UNKNOWN

    def sources(self) -> Sequence[Dataset]:
        """Returns the datasets that this one is made from."""
        return ()


def counters(dataset: Dataset) -> list[PassCounter]:
    """Returns what distinguishes one pass over `dataset` from the next, for it and everything that it is made from."""
    found = [counter for source in dataset.sources() for counter in counters(source)]
    return [*found, dataset] if isinstance(dataset, PassCounter) else found


class PassCounter:
    """A dataset whose passes differ: `passes` is the number of those started. Setting it back repeats a pass."""

    passes = 0


class Derived(Dataset):
    """A dataset made from another one, with the same number of elements unless a subclass says otherwise."""

    def __init__(self, source: Dataset) -> None:
        self.source = source

    def cardinality(self) -> int:
        return self.source.cardinality()

    def sources(self) -> Sequence[Dataset]:
        return (self.source,)


class Simple(Derived):
    """A dataset whose passes are `kind(pass over the source, *arguments)`."""

    def __init__(
        self, source: Any, kind: Callable[..., Elements], *arguments: Any, count: Callable[[int], int] | None = None
    ) -> None:
        super().__init__(as_source(source))
        self._kind, self._arguments, self._count = kind, arguments, count

    def elements(self) -> Elements:
        return self._kind(self.source.elements(), *self._arguments)

    def cardinality(self) -> int:
        found = self.source.cardinality()
        return found if self._count is None else self._count(found)


class FromIterator(Elements):
    """The elements of a Python iterator that cannot fail, or that ends when it fails."""

    def __init__(self, iterator: Iterator[Element], *, is_plain: bool = False) -> None:
        """`is_plain`: nothing but the iterator's place changes with an element."""
        super().__init__()
        self._iterator, self._is_plain = iterator, is_plain

    def may_run_ahead(self) -> bool:
        return self._is_plain

    def next(self) -> Element:
        stop_if_cancelled()
        return next(self._iterator)

    def take(self, count: int, found: Any) -> None:
        stop_if_cancelled()
        found.extend(itertools.islice(self._iterator, count))

    def close(self) -> None:
        self._iterator = iter(())
        super().close()


class Generated(Dataset):
    """The elements that `start()` iterates over."""

    def __init__(
        self, start: Callable[[], Iterator[Element]], cardinality: int = UNKNOWN, *, is_plain: bool = False
    ) -> None:
        self._start, self._cardinality, self._is_plain = start, cardinality, is_plain

    def elements(self) -> Elements:
        return FromIterator(self._start(), is_plain=self._is_plain)

    def cardinality(self) -> int:
        return self._cardinality


_TYPES_AND_SHAPES = {"output_types": TYPES(minimum=1), "output_shapes": SHAPES(minimum=1)}


def define_dataset(signature: str, traits: Trait = Trait.NONE, *, typed: bool = True, **attrs: Any) -> OpDefinition:
    """Defines an op that returns a dataset. A typed one states the dtypes and shapes of its components."""
    definition = define(
        f"{signature} -> (handle: variant)", traits | RETAINS, **attrs, **(_TYPES_AND_SHAPES if typed else {})
    ).not_differentiable()
    definition.shape(scalar)
    return definition


def as_dataset(value: Any) -> Dataset:
    """Returns the dataset in a variant.

    Raises:
        InvalidArgumentError: the variant holds something else.
    """
    if not isinstance(value, Dataset):
        raise InvalidArgumentError(None, None, f"Expected a dataset, but the variant holds a {type(value).__name__}.")
    return value


def as_source(value: Any) -> Dataset:
    """Returns the dataset in a variant for another dataset, which is made from it.

    In a graph of 1.x, each dataset counts the passes over its sources by itself, so that a shuffled dataset that is zipped with
    itself has equal pairs. In eager mode the passes at all places are counted together. Both are TensorFlow's.
    """
    dataset = as_dataset(value)
    if context.executing_eagerly():
        return dataset
    if dataset.is_source:
        return _apart(dataset)
    dataset.is_source = True
    return dataset


def _apart(dataset: Dataset) -> Dataset:
    """The same recipe for another place, which counts its passes from the first."""
    if not counters(dataset):
        return dataset
    twin = copy.copy(dataset)
    for name, value in vars(dataset).items():
        if isinstance(value, Dataset):
            setattr(twin, name, _apart(value))
        elif isinstance(value, list) and all(isinstance(each, Dataset) for each in value):
            setattr(twin, name, [_apart(each) for each in value])
    if isinstance(twin, PassCounter):
        twin.passes = 0
    return twin


def shape_of(value: Any) -> Shape:
    return Shape(getattr(value, "shape", ()))


def fits(shape: Sequence[int], expected: Shape) -> bool:
    """Returns whether an actual shape is one that `expected` allows."""
    dims = expected.dims
    return dims is None or (len(dims) == len(shape) and all(b is None or a == b for a, b in zip(shape, dims)))


_ROWS_AT_ONCE = 1024  # rows whose values are made together


class Rows:
    """The rows of components, for one pass over them."""

    def __init__(self, components: list[Any]) -> None:
        self.components = components
        self._blocks: dict[int, list[Element]] = {}

    def elements(self, count: int) -> Iterator[Element]:
        return map(functools.partial(Row, self), range(count))

    def values(self, index: int) -> Element:
        block = self._blocks.get(index // _ROWS_AT_ONCE)
        if block is None:
            first = index - index % _ROWS_AT_ONCE
            parts = [rows_of(component[first : first + _ROWS_AT_ONCE]) for component in self.components]
            block = self._blocks[index // _ROWS_AT_ONCE] = list(zip(*parts))
        return block[index % _ROWS_AT_ONCE]


class Row(Sequence[Any]):
    """An element that is a row of components. A batch of such elements is gathered from the components, without making any of them."""

    __slots__ = ("place", "rows")

    def __init__(self, rows: Rows, place: int) -> None:
        self.rows, self.place = rows, place

    def __len__(self) -> int:
        return len(self.rows.components)

    def __getitem__(self, at: Any) -> Any:
        return self.rows.values(self.place)[at]

    def __iter__(self) -> Iterator[Any]:
        return iter(self.rows.values(self.place))


def stacked(elements: Sequence[Element]) -> Element:
    """Stacks the elements of a batch, component by component.

    Raises:
        InvalidArgumentError: the shapes of a component differ.
    """
    gathered = _gathered(elements)
    if gathered is not None:
        return gathered
    columns = []
    for k, column in enumerate(zip(*elements)):
        first = getattr(column[0], "shape", ())
        for i, value in enumerate(column):
            if getattr(value, "shape", ()) != first:
                raise InvalidArgumentError(
                    None,
                    None,
                    f"Cannot batch tensors with different shapes in component {k}. First element had shape "
                    f"{_text(shape_of(column[0]))} and element {i} had shape {_text(shape_of(value))}.",
                )
        columns.append(pack_kernel(list(column), axis=0))
    return tuple(columns)


def as_stacks(elements: Sequence[Element]) -> Element:
    """Stacks elements like `stacked`, but those of different lengths become `Uneven` rows.

    Raises:
        InvalidArgumentError, ValueError or RuntimeError: the elements cannot be stacked.
    """
    found = gathered_columns(elements)
    columns = list(zip(*elements)) if found is None else found
    stacks = []
    for column in columns:
        if not isinstance(column, tuple):
            stacks.append(column)
        elif len({getattr(value, "shape", ()) for value in column}) > 1:
            stacks.append(uneven.joined(column))
        else:
            stacks.append(pack_kernel(list(column), axis=0))
    return tuple(stacks)


_MOST_IN_ROWS, _MOST_BYTES = 1 << 16, 1 << 26


def as_rows(elements: Sequence[Element]) -> Rows | None:
    """The elements as rows of common tensors; None if they are such rows, do not fit together, are many, or large."""
    sources = {id(each.rows): each.rows for each in elements if type(each) is Row}
    others = [each for each in elements if type(each) is not Row]
    if not 0 < len(elements) <= _MOST_IN_ROWS or (len(sources) == 1 and not others):
        return None
    values = [value for each in [*(rows.components for rows in sources.values()), *others] for value in each]
    values = [value.values if isinstance(value, Uneven) else value for value in values]
    if not all(isinstance(value, torch.Tensor) or _is_text(value) for value in values):
        return None
    if sum(value.nbytes for value in values) > _MOST_BYTES:
        return None
    try:
        return Rows(list(as_stacks(elements)))
    except (OpError, ValueError, RuntimeError):
        return None


def _is_text(value: Any) -> bool:
    return isinstance(value, np.ndarray) and value.dtype == object


def _gathered(elements: Sequence[Element]) -> Element | None:
    """A batch of rows of the same components; None for other elements."""
    columns = gathered_columns(elements)
    if columns is None or any(isinstance(each, Uneven) and len(set(each.lengths.tolist())) > 1 for each in columns):
        return None
    return tuple(map(uneven.even, columns))


def gathered_columns(elements: Sequence[Element]) -> list[Any] | None:
    """The components of a batch of rows; None for other elements, and for rows that have hardly any neighbours in the batch.

    They share no memory with the rows. Those of different lengths are `Uneven`.
    """
    columns = picked_columns(elements)
    return columns and [each.joined() if isinstance(each, Picked) else each for each in columns]


def picked_columns(elements: Sequence[Element]) -> list[Any] | None:
    """`gathered_columns`, where rows of different lengths are `Picked`, for those who copy them in another way."""
    if type(elements[0]) is not Row:
        return None
    sources = [each.rows for each in elements if type(each) is Row]
    if len(sources) < len(elements):
        return None
    rows = [each.place for each in elements]  # type: ignore[attr-defined]
    components = sources[0].components
    if sources.count(sources[0]) == len(sources) or all(each.components is components for each in sources):
        at = np.array(rows)
        if rows == list(range(rows[0], rows[0] + len(rows))):
            part = slice(rows[0], rows[0] + len(rows))
            found = [each if isinstance(each, Uneven) else each[part] for each in components]
            found = [each.copy() if isinstance(each, np.ndarray) else each for each in found]
            found = [each.clone() if isinstance(each, torch.Tensor) else each for each in found]
        else:
            tensor = torch.from_numpy(at)
            found = [each if isinstance(each, Uneven) else gathering.take(each, tensor, 0) for each in components]
        everything = np.arange(len(rows))
        return [Picked([(each, at, everything)], len(rows)) if isinstance(each, Uneven) else each for each in found]
    groups: dict[int, list[int]] = {}
    for place, source in enumerate(sources):
        groups.setdefault(id(source.components), []).append(place)
    if len(groups) * _LEAST_NEIGHBOURS > len(elements):
        return None
    picked = [
        (sources[places[0]].components, np.array([rows[place] for place in places]), np.array(places))
        for places in groups.values()
    ]
    try:
        return [_merged([(each[k], *where) for each, *where in picked], len(rows)) for k in range(len(components))]
    except (ValueError, IndexError):  # they do not fit together: the error is for those who need a batch
        return None


_LEAST_NEIGHBOURS = 3  # rows for each of the sources of a batch


def _merged(picked: list[Any], count: int) -> Any:
    """One component of `count` rows of several sources: (source, rows, places)."""
    first = picked[0][0]
    if any(type(each) is not type(first) for each, *_ in picked) or isinstance(first, Uneven):
        return Picked([(uneven.as_uneven(each), *where) for each, *where in picked], count)
    if any(each.dtype != first.dtype for each, *_ in picked):
        raise ValueError("components of different types")
    if any(each.shape[1:] != first.shape[1:] for each, *_ in picked):
        return Picked([(uneven.as_uneven(each), *where) for each, *where in picked], count)
    if isinstance(first, np.ndarray):
        strings = np.empty((count, *first.shape[1:]), dtype=object)
        for each, rows, places in picked:
            strings[places] = each[rows]
        return strings
    merged = first.new_empty((count, *first.shape[1:]))
    for each, rows, places in picked:
        uneven.copy_parts(merged, places, each, rows, np.ones_like(rows))
    return merged


def _text(shape: Shape) -> str:
    return f"[{','.join(map(str, shape))}]"


def rows_of(component: Any) -> Iterator[Any]:
    """Iterates over the first dimension of a component."""
    if isinstance(component, Uneven):
        return iter(component)
    if isinstance(component, np.ndarray):
        return (string_scalar(row) if not isinstance(row, np.ndarray) else row for row in component)
    return iter(component.unbind(0)) if component.shape[0] else iter(())


def string_scalar(value: Any) -> Any:
    """Returns the kernel value for a single string; a variant is its own value."""
    if not isinstance(value, bytes):
        return value
    held = np.empty((), dtype=object)
    held[()] = value
    return held


def integer(value: Any) -> torch.Tensor:
    return torch.tensor(value, dtype=torch.int64)


def strings_in(value: Any) -> list[bytes]:
    """Returns the strings of a scalar or vector."""
    return list(np.asarray(to_numpy(value), dtype=object).reshape(-1).tolist())


def product_of_cardinalities(times: int, each: int) -> int:
    """Returns the cardinality of a dataset repeated `times` times (INFINITE for ever)."""
    if times == 0 or each == 0:
        return 0
    if each in (INFINITE, UNKNOWN):
        return each
    return INFINITE if times < 0 else times * each


def limited(cardinality: int, change: Callable[[int], int]) -> int:
    """Applies `change` to a cardinality that is a number."""
    return cardinality if cardinality < 0 else change(cardinality)


def at_most(elements: Elements, count: int) -> list[Element]:
    """Returns up to `count` next elements."""
    found: list[Element] = []
    elements.take(count, found)
    return found
