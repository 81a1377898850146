"""Datasets with the elements of another one: fewer, repeated, in another order, or cached."""

from __future__ import annotations

import itertools
from collections import deque
from typing import Any

import torch

from stoker._src.base import forking
from stoker._src.base.errors import InvalidArgumentError
from stoker._src.graph.definition import STRINGS
from stoker._src.ops.dataset.values import (
    INFINITE,
    UNKNOWN,
    Dataset,
    Derived,
    Drawn,
    Element,
    Elements,
    Generated,
    PassCounter,
    Simple,
    Transparent,
    as_dataset,
    as_rows,
    as_source,
    define_dataset,
    limited,
    product_of_cardinalities,
)
from stoker._src.ops.random.bits.philox import PhiloxState, bits

_INPUT = "input_dataset: variant"


# ---- number of elements --------------------------------------------------------------------------------------------


class _Taking(Transparent):
    def __init__(self, source: Elements, count: int) -> None:
        super().__init__(source)
        self._source, self._left = source, count

    def next(self) -> Element:
        if self._left == 0:
            raise StopIteration
        element = self._source.next()
        self._left -= 1
        return element

    def take(self, count: int, found: Any) -> None:
        if self._left >= 0:
            count = min(count, self._left)
        before = len(found)
        try:
            self._source.take(count, found)
        finally:
            self._left -= len(found) - before


TAKE_DATASET = define_dataset(f"TakeDataset({_INPUT}, count: scalar int64)", metadata="")


@TAKE_DATASET.kernel
def take_dataset_kernel(input_dataset: Any, count: torch.Tensor) -> Dataset:
    limit = int(count)

    def cardinality(found: int) -> int:
        if limit < 0:
            return found
        return limit if found == INFINITE else UNKNOWN if found == UNKNOWN and limit else min(max(found, 0), limit)

    return Simple(input_dataset, _Taking, limit, count=cardinality)


class _Skipping(Transparent):
    def __init__(self, source: Elements, count: int) -> None:
        super().__init__(source)
        self._source, self._left = source, count

    def next(self) -> Element:
        if self._left < 0:
            raise StopIteration
        while self._left:
            self._source.next()
            self._left -= 1
        return self._source.next()


SKIP_DATASET = define_dataset(f"SkipDataset({_INPUT}, count: scalar int64)", metadata="")


@SKIP_DATASET.kernel
def skip_dataset_kernel(input_dataset: Any, count: torch.Tensor) -> Dataset:
    skipped = int(count)
    return Simple(
        input_dataset,
        _Skipping,
        skipped,
        count=lambda found: 0 if skipped < 0 else limited(found, lambda number: max(number - skipped, 0)),
    )


class _Repeating(Elements):
    def __init__(self, dataset: Dataset, count: int) -> None:
        super().__init__()
        self._dataset, self._left = dataset, count
        self._pass: Elements | None = None
        self._is_new = False  # whether the pass has returned nothing

    def _current(self) -> Elements:
        if self._pass is None:
            if self._left == 0:
                raise StopIteration
            self._pass, self._is_new = self._dataset.elements(), True
        return self._pass

    def _end(self) -> None:
        if self._pass is not None:
            self._pass.close()
        self._pass = None
        self._left -= 1
        if self._is_new and self._left < 0:  # repeated for ever, but there is nothing to repeat
            self._left = 0

    def next(self) -> Element:
        while True:
            try:
                element = self._current().next()
            except StopIteration:
                if self._pass is None:
                    raise
                self._end()
            else:
                self._is_new = False
                return element

    def take(self, count: int, found: Any) -> None:
        wanted = len(found) + count
        while len(found) < wanted:
            try:
                current = self._current()
            except StopIteration:
                return
            before = len(found)
            try:
                current.take(wanted - before, found)
            finally:
                self._is_new &= len(found) == before
            if len(found) < wanted:
                self._end()

    def may_run_ahead(self) -> bool:
        return self._pass is not None and self._pass.may_run_ahead()

    def close(self) -> None:
        if self._pass is not None:
            self._pass.close()
        self._pass, self._left = None, 0


class _Repeat(Derived):
    def __init__(self, source: Any, count: int) -> None:
        super().__init__(as_source(source))
        self._times = count

    def elements(self) -> Elements:
        return _Repeating(self.source, self._times)

    def cardinality(self) -> int:
        return product_of_cardinalities(self._times, self.source.cardinality())


REPEAT_DATASET = define_dataset(f"RepeatDataset({_INPUT}, count: scalar int64)", metadata="")
REPEAT_DATASET.kernel(lambda input_dataset, count: _Repeat(input_dataset, int(count)))


class _Sharding(Transparent):
    def __init__(self, source: Elements, shards: int, index: int) -> None:
        super().__init__(source)
        self._source, self._shards, self._skip = source, shards, index

    def next(self) -> Element:
        while self._skip:
            self._source.next()
            self._skip -= 1
        element = self._source.next()
        self._skip = self._shards - 1
        return element


SHARD_DATASET = define_dataset(
    f"ShardDataset({_INPUT}, num_shards: scalar int64, index: scalar int64)", require_non_empty=False, metadata=""
)


@SHARD_DATASET.kernel
def shard_dataset_kernel(input_dataset: Any, num_shards: torch.Tensor, index: torch.Tensor) -> Dataset:
    shards, number = int(num_shards), int(index)
    if shards <= 0:
        raise InvalidArgumentError(
            None, None, f"Number of shards must be greater than zero (currently num_shards = {shards})."
        )
    if not 0 <= number < shards:
        raise InvalidArgumentError(
            None, None, f"Index must be between 0 and {shards - 1} (currently index = {number})."
        )
    return Simple(
        input_dataset,
        _Sharding,
        shards,
        number,
        count=lambda found: limited(found, lambda all: max(0, -(-(all - number) // shards))),
    )


# ---- order -------------------------------------------------------------------------------------------------------


class _Words:
    """32-bit words of a Philox stream, one at a time."""

    def __init__(self, state: PhiloxState) -> None:
        self._state = state
        self._words: Any = iter(())

    def __call__(self) -> int:
        for word in self._words:
            return word
        self._words = iter(bits(self._state.reserve(64), 256).tolist())
        return next(self._words)

    def several(self, count: int) -> list[int]:
        found = list(itertools.islice(self._words, count))
        return found if len(found) == count else [*found, *(self() for _ in range(count - len(found)))]


class _Shuffling(Transparent):
    """Keeps a buffer of elements and returns a random one each time. The order for two seeds is TensorFlow's."""

    def __init__(self, source: Elements, size: int, seeds: tuple[int, int]) -> None:
        super().__init__(source)
        self._drawn, self._draw = Drawn(source), _Words(PhiloxState(*seeds))
        self._size = size
        self._buffer: deque[Element] = deque()
        self._more = True

    def next(self) -> Element:
        if self._more and len(self._buffer) < self._size - 1:
            self._drawn.fill(self._size - len(self._buffer))
        while self._more and len(self._buffer) < self._size:
            try:
                self._buffer.append(self._drawn.next())
            except StopIteration:
                self._more = False
        if not self._buffer:
            raise StopIteration
        chosen = self._draw() % len(self._buffer)
        first = self._buffer.popleft()
        if chosen == 0:
            return first
        element, self._buffer[chosen - 1] = self._buffer[chosen - 1], first
        return element

    def take(self, count: int, found: Any) -> None:
        buffer, drawn, size = self._buffer, self._drawn, self._size
        held, is_last = drawn.held, not self._more
        if self._more:  # an element is read before each draw but the first
            missing = size - len(buffer)
            drawn.fill(missing + count - 1)
            is_last = drawn.failure is None and len(held) < missing + count - 1
            buffer.extend([held.popleft() for _ in range(min(missing, len(held)))])
        if not is_last and (len(buffer) < size or count > 1 + len(held)):
            super().take(count, found)  # an error is due
            return
        for word in self._draw.several(min(count, len(buffer) + len(held))):  # as `next`, for all of them
            if held and len(buffer) < size:
                buffer.append(held.popleft())
            chosen = word % len(buffer)
            first = buffer.popleft()
            if chosen:
                first, buffer[chosen - 1] = buffer[chosen - 1], first
            found.append(first)
        self._more = not is_last


class _Shuffle(Derived, PassCounter):
    def __init__(self, source: Any, size: int, seeds: tuple[int, int], reshuffle: bool) -> None:
        super().__init__(as_source(source))
        if size < 1:
            raise InvalidArgumentError(None, None, f"buffer_size must be greater than zero, got {size}.")
        self._size, self._reshuffles = size, reshuffle
        # The seeds of a pass are the next two words of the stream, unless all passes use the op's seeds.
        self._stream = PhiloxState(*seeds).reserve(0)
        self._seeds = seeds if seeds != (0, 0) else self._words(0)
        self._lock = forking.lock()

    def _words(self, number: int) -> tuple[int, int]:
        first = 2 * (number % 2)
        words = bits(self._stream.skip(number // 2), 4).tolist()
        return words[first], words[first + 1]

    def elements(self) -> Elements:
        with self._lock:
            seeds = self._words(self.passes) if self._reshuffles else self._seeds
            self.passes += 1
        return _Shuffling(self.source.elements(), self._size, seeds)


SHUFFLE_DATASET = define_dataset(
    f"ShuffleDataset({_INPUT}, buffer_size: scalar int64, seed: scalar int64, seed2: scalar int64)",
    reshuffle_each_iteration=True,
    metadata="",
)


@SHUFFLE_DATASET.kernel
def shuffle_dataset_kernel(
    input_dataset: Any,
    buffer_size: torch.Tensor,
    seed: torch.Tensor,
    seed2: torch.Tensor,
    *,
    reshuffle_each_iteration: bool,
) -> Dataset:
    return _Shuffle(input_dataset, int(buffer_size), (int(seed), int(seed2)), reshuffle_each_iteration)


SHUFFLE_AND_REPEAT_DATASET = define_dataset(
    f"ShuffleAndRepeatDataset({_INPUT}, buffer_size: scalar int64, seed: scalar int64, seed2: scalar int64, "
    "count: scalar int64)",
    reshuffle_each_iteration=True,
    metadata="",
)


@SHUFFLE_AND_REPEAT_DATASET.kernel
def shuffle_and_repeat_dataset_kernel(
    input_dataset: Any,
    buffer_size: torch.Tensor,
    seed: torch.Tensor,
    seed2: torch.Tensor,
    count: torch.Tensor,
    *,
    reshuffle_each_iteration: bool,
) -> Dataset:
    shuffled = _Shuffle(input_dataset, int(buffer_size), (int(seed), int(seed2)), reshuffle_each_iteration)
    return _Repeat(shuffled, int(count))


# ---- caching -----------------------------------------------------------------------------------------------------


class _Caching(Elements):
    """The first pass fills the cache, if it reaches the end."""

    def __init__(self, dataset: _Cache) -> None:
        self._source = dataset.source.elements()
        super().__init__(self._source)
        self._dataset, self._held = dataset, []

    def next(self) -> Element:
        try:
            element = self._source.next()
        except StopIteration:
            self._dataset.keep(self._held)
            raise
        self._held.append(element)
        return element

    def take(self, count: int, found: Any) -> None:
        taken = Drawn(self._source)
        taken.fill(count)
        self._held += taken.held
        found.extend(taken.held)
        if taken.failure is not None:
            raise taken.failure
        if len(taken.held) < count:
            self._dataset.keep(self._held)


class _Cache(Derived):
    """Keeps the elements of the first complete pass in memory."""

    def __init__(self, source: Any) -> None:
        super().__init__(as_source(source))
        self._held: list[list[Element] | None] = [None]  # one for all places where the dataset is used

    @property
    def held(self) -> list[Element] | None:
        return self._held[0]

    @held.setter
    def held(self, elements: list[Element]) -> None:
        self._held[0] = elements

    def keep(self, elements: list[Element]) -> None:
        """Takes over all elements. Small ones become rows of the same tensors, from which batches are gathered at once."""
        rows = as_rows(elements)
        self.held = elements if rows is None else list(rows.elements(len(elements)))

    def elements(self) -> Elements:
        held = self.held
        return _Caching(self) if held is None else Generated(lambda: iter(held), is_plain=True).elements()


CACHE_DATASET = define_dataset(f"CacheDataset({_INPUT}, filename: scalar string)", metadata="")


@CACHE_DATASET.kernel
def cache_dataset_kernel(input_dataset: Any, filename: Any) -> Dataset:
    if filename.item():
        raise NotImplementedError("Dataset.cache in a file is missing; without a filename, the cache is in memory.")
    return _Cache(input_dataset)


# ---- wrappers in graphs of TensorFlow that do not change the elements ----------------------------------------------

MODEL_DATASET = define_dataset(f"ModelDataset({_INPUT})", algorithm=0, cpu_budget=0, ram_budget=0)
MODEL_DATASET.kernel(lambda input_dataset: as_dataset(input_dataset))
OPTIMIZE_DATASET = define_dataset(
    f"OptimizeDataset({_INPUT}, optimizations: vector string)", optimization_configs=STRINGS(())
)
OPTIMIZE_DATASET.kernel(lambda input_dataset, optimizations: as_dataset(input_dataset))
OPTIONS_DATASET = define_dataset(f"OptionsDataset({_INPUT})", serialized_options="", metadata="")
OPTIONS_DATASET.kernel(lambda input_dataset: as_dataset(input_dataset))
