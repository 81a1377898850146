"""Datasets made from several others."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

import torch

from stoker._src.base.errors import InvalidArgumentError, OpError
from stoker._src.graph.definition import INT
from stoker._src.ops.dataset.values import (
    INFINITE,
    UNKNOWN,
    Dataset,
    Drawn,
    Element,
    Elements,
    Rows,
    Simple,
    Transparent,
    as_source,
    define_dataset,
    gathered_columns,
)


class _Zipped(Transparent):
    def __init__(self, *sources: Elements) -> None:
        super().__init__(*sources)
        self._drawn = [Drawn(source) for source in sources]

    def next(self) -> Element:
        found: list[Any] = []
        failure: OpError | None = None
        for drawn in self._drawn:  # also after an error: what fails takes its partners with it
            try:
                found.extend(drawn.next())
            except OpError as error:
                failure = failure or error
            except StopIteration:
                if failure is None:
                    raise
                break
        if failure is not None:
            raise failure
        return tuple(found)

    def take(self, count: int, found: Any) -> None:
        for each in self._drawn:
            each.fill(count)
            count = min(count, len(each.held) + (each.failure is not None))
        ready = min(len(each.held) for each in self._drawn)
        if ready > 1:
            parts = [[each.held.popleft() for _ in range(ready)] for each in self._drawn]
            columns = [gathered_columns(part) for part in parts]
            if None in columns:
                found.extend([tuple(itertools.chain.from_iterable(each)) for each in zip(*parts)])
            else:  # rows of tensors are rows of more tensors
                found.extend(Rows([each for group in columns for each in group or ()]).elements(ready))
            count -= ready
        super().take(count, found)


class _Zip(Dataset):
    def __init__(self, sources: list[Any]) -> None:
        self._sources = [as_source(source) for source in sources]

    def sources(self) -> Sequence[Dataset]:
        return self._sources

    def elements(self) -> Elements:
        return _Zipped(*[source.elements() for source in self._sources])

    def cardinality(self) -> int:
        found = [source.cardinality() for source in self._sources]
        if UNKNOWN in found:
            return UNKNOWN
        return min((each for each in found if each != INFINITE), default=INFINITE)


ZIP_DATASET = define_dataset("ZipDataset(input_datasets: N * variant)", N=INT(minimum=1), metadata="")
ZIP_DATASET.kernel(lambda input_datasets: _Zip(input_datasets))


class _Concatenated(Transparent):
    def __init__(self, first: Elements, second: Elements) -> None:
        super().__init__(first, second)
        self._in_first = True

    def next(self) -> Element:
        if self._in_first:
            try:
                return self._sources[0].next()
            except StopIteration:
                self._in_first = False
        return self._sources[1].next()


class _Concatenate(Dataset):
    def __init__(self, first: Any, second: Any) -> None:
        self._first, self._second = as_source(first), as_source(second)

    def sources(self) -> Sequence[Dataset]:
        return self._first, self._second

    def elements(self) -> Elements:
        return _Concatenated(self._first.elements(), self._second.elements())

    def cardinality(self) -> int:
        found = self._first.cardinality(), self._second.cardinality()
        return INFINITE if INFINITE in found else UNKNOWN if UNKNOWN in found else sum(found)


CONCATENATE_DATASET = define_dataset(
    "ConcatenateDataset(input_dataset: variant, another_dataset: variant)", metadata=""
)
CONCATENATE_DATASET.kernel(lambda input_dataset, another_dataset: _Concatenate(input_dataset, another_dataset))


class _Directed(Elements):
    def __init__(self, selector: Elements, sources: list[Elements], stop_on_empty: bool) -> None:
        super().__init__(selector, *sources)
        self._selector, self._open = selector, dict(enumerate(sources))
        self._stops = stop_on_empty

    def next(self) -> Element:
        while self._open:
            number = int(self._selector.next()[0])
            if not 0 <= number < len(self._sources) - 1:
                raise InvalidArgumentError(
                    None, None, f"Selector index out of range: {number} >= {len(self._sources) - 1}"
                )
            if number not in self._open:
                continue
            try:
                return self._open[number].next()
            except StopIteration:
                if self._stops:
                    self._open.clear()
                self._open.pop(number, None)
        raise StopIteration


class _Direct(Dataset):
    def __init__(self, selector: Any, sources: list[Any], stop_on_empty: bool) -> None:
        self._selector, self._sources = as_source(selector), [as_source(source) for source in sources]
        self._stops = stop_on_empty

    def sources(self) -> Sequence[Dataset]:
        return self._selector, *self._sources

    def elements(self) -> Elements:
        return _Directed(self._selector.elements(), [source.elements() for source in self._sources], self._stops)


DIRECTED_INTERLEAVE_DATASET = define_dataset(
    "DirectedInterleaveDataset(selector_input_dataset: variant, data_input_datasets: N * variant)",
    N=INT(minimum=1),
    stop_on_empty_dataset=False,
)


@DIRECTED_INTERLEAVE_DATASET.kernel
def directed_interleave_dataset_kernel(
    selector_input_dataset: Any, data_input_datasets: list[Any], *, stop_on_empty_dataset: bool
) -> Dataset:
    return _Direct(selector_input_dataset, data_input_datasets, stop_on_empty_dataset)


class _Distinct(Elements):
    def __init__(self, source: Elements) -> None:
        super().__init__(source)
        self._source = source
        self._seen: set[Any] = set()

    def next(self) -> Element:
        while True:
            element = self._source.next()
            key = tuple(
                (value.dtype, tuple(value.shape), value.numpy().tobytes())
                if isinstance(value, torch.Tensor)
                else (value.shape, tuple(value.reshape(-1).tolist()))
                for value in element
            )
            if key not in self._seen:
                self._seen.add(key)
                return element


UNIQUE_DATASET = define_dataset("UniqueDataset(input_dataset: variant)", metadata="")
UNIQUE_DATASET.kernel(
    lambda input_dataset: Simple(input_dataset, _Distinct, count=lambda found: UNKNOWN if found else 0)
)
