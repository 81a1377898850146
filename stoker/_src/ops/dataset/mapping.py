"""Datasets made from others by functions: map, filter, interleave, scan, groups."""

from __future__ import annotations

import os
import time
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, Protocol

import numpy as np
import torch

from stoker._src.base import forking
from stoker._src.base.errors import InvalidArgumentError, OpError
from stoker._src.graph.definition import BLOCKING, FUNC, SHAPES, STATEFUL, TYPES, define
from stoker._src.ops.dataset.batches import batched
from stoker._src.ops.dataset.values import (
    UNKNOWN,
    Dataset,
    Drawn,
    Element,
    Elements,
    Generated,
    Rows,
    Simple,
    as_dataset,
    as_stacks,
    define_dataset,
    integer,
    stop_if_cancelled,
)
from stoker._src.ops.support.uneven import Uneven
from stoker._src.ops.support.waiting import RunState, running


class Call(Protocol):
    """A function with its captured values (`BoundFunction`)."""

    def __call__(self, *values: Any) -> tuple[Any, ...]: ...

    differs: bool

    def for_stacks(self, differing: bool = False) -> Callable[[Sequence[Any]], tuple[Any, ...]] | None: ...

    def is_pure(self) -> bool: ...

    def makes_datasets_only(self) -> bool: ...


_INPUT = "input_dataset: variant, other_arguments: [Targuments]"
_FUNCTION: dict[str, Any] = {"f": FUNC, "Targuments": TYPES}


def _unknown(count: int) -> int:
    """The number of elements where functions decide about it."""
    return UNKNOWN if count else 0


# ---- map ---------------------------------------------------------------------------------------------------------


_MOST_STACKED = 256  # elements that are computed together
_MOST_BYTES = 1 << 20  # what they may take: larger ones gain nothing, and would fall out of the processor's caches
_FIRST_STACKED = 8  # the most elements before the size of the results is known
_MOST_RESULTING = 1 << 22  # bytes of results that are computed together


def _size(results: Any) -> int:
    """Bytes of results, where a string counts as a few."""
    values = [each.values if isinstance(each, Uneven) else each for each in results]
    return sum(value.size * 64 if isinstance(value, np.ndarray) else value.nbytes for value in values)


def _bytes(element: Element) -> int:
    strings = [value for value in element if isinstance(value, np.ndarray)]
    return sum(value.nbytes for value in element) + sum(len(text) for each in strings for text in each.reshape(-1))


class _Calling(Elements):
    """Calls a function for the elements of a source.

    If the results for several elements are wanted (a batch), these are stacked and computed together, where all ops of the function have a form
    for stacks. If that fails, for example because their shapes differ, this pass goes on element by element: an error belongs to its element.
    """

    def __init__(self, source: Elements, call: Call) -> None:
        super().__init__(source)
        self._call = call
        self._drawn = Drawn(source)  # elements for which the function is still to be called
        self._may_stack = True
        self._at_once = 0  # the elements that make up a stack, once the size of one is known
        self._limit = 0  # what they may become

    def may_run_ahead(self) -> bool:
        """A function that draws random numbers would draw more of them than the elements that are used need."""
        return self._may_stack and self._call.is_pure() and self._drawn.source.may_run_ahead()

    def _together(self, most: int) -> tuple[list[Element], list[Any]] | None:
        """Up to `most` next elements, and the stacks of the results for them; None if these have to be computed one by one."""
        if not self._may_stack or most < 2 or self._call.for_stacks() is None or self._drawn.failure is not None:
            return None
        held = self._drawn.held
        if not held:
            self._drawn.fill(min(most, self._at_once or 1))
            if held and not self._at_once:
                self._limit = max(1, min(_MOST_STACKED, _MOST_BYTES // (1 + _bytes(held[0]))))
                self._at_once = min(self._limit, _FIRST_STACKED)
                self._drawn.fill(min(most, self._at_once))
        if not 1 < len(held) <= most:
            return None
        results = self._computed(held)
        if results is None:
            self._may_stack = False
            return None
        elements = list(held)
        held.clear()
        if self._limit > self._at_once:
            self._limit = min(self._limit, max(1, _MOST_RESULTING * len(elements) // (1 + _size(results))))
            self._at_once = self._limit
        return elements, results

    def _computed(self, held: Sequence[Element]) -> list[Any] | None:
        """The stacks of results, or None if a call failed: whatever it was, the call for the element says it better."""
        for differing in (False, True) if not self._call.differs else (True,):
            function = self._call.for_stacks(differing)
            if function is not None:
                try:
                    results = list(function(as_stacks(held)))
                except Exception:
                    continue
                self._call.differs = differing
                return results
        return None


class _Mapped(_Calling):
    """The results of a function."""

    def next(self) -> Element:
        return self._call(*self._drawn.next())

    def take(self, count: int, found: Any) -> None:
        while (together := self._together(count)) is not None:
            elements, results = together
            found.extend(Rows(results).elements(len(elements)))
            count -= len(elements)
        super().take(count, found)


_TRIALS = 8  # calls that are timed before threads are started
_WORTH_A_THREAD = 2e-4  # seconds that a call must compute, or wait
_WORTH_NO_STACK = 5e-4  # the same if the call could be one for many elements
_PAUSE = 1e-3  # seconds that other threads may keep a call from computing


class _MappedInParallel(_Mapped):
    """Calls the function for several elements at once and returns the results in order.

    A call must be worth handing over to another thread: the first ones are timed, and short ones stay in the caller's thread.
    """

    def __init__(self, source: Elements, call: Call, threads: int, timed: list[float]) -> None:
        super().__init__(source, call)
        self._threads = threads
        self._pending: deque[tuple[Future[Element], Element | None]] = deque()  # with the arguments of the call
        self._lost: list[Element] = []  # the arguments of calls that a forked child must repeat
        self._pool: ThreadPoolExecutor | None = None
        self._state = RunState()
        self._timed = timed  # seconds of calls for single elements, of all passes
        self._more = True
        forking.in_children(self, _MappedInParallel._forget_threads)

    def _forget_threads(self) -> None:
        """In a forked child: nobody finishes the calls that were under way."""
        if self._pool is not None:
            self._pool = ThreadPoolExecutor(self._threads, "stoker-map")
            self._lost += [element for _, element in self._pending if element is not None]
            self._pending.clear()

    def next(self) -> Element:
        if self._pool is None:
            return self._timed_call()
        while (self._lost or self._more) and len(self._pending) < self._threads:
            try:
                element = self._lost.pop(0) if self._lost else self._drawn.next()
                self._pending.append((self._pool.submit(self._work, element), element))
            except StopIteration:
                self._more = False
            except OpError as error:
                stop_if_cancelled()  # the run fails, not its element
                failed: Future[Element] = Future()
                failed.set_exception(error)
                self._pending.append((failed, None))
        if not self._pending:
            raise StopIteration
        return self._pending.popleft()[0].result()

    def take(self, count: int, found: Any) -> None:
        trials = min(count, _TRIALS - len(self._timed))
        if trials > 0:
            Elements.take(self, trials, found)
            count -= trials
        if self._is_worth_threads():  # the results that threads work on come first
            Elements.take(self, count, found)
        else:
            super().take(count, found)

    def _is_worth_threads(self) -> bool:
        if len(self._timed) < _TRIALS:
            return False
        worth = _WORTH_A_THREAD if self._call.for_stacks() is None else _WORTH_NO_STACK
        return min(self._timed) > worth

    def _timed_call(self) -> Element:
        element = self._drawn.next()
        if len(self._timed) < _TRIALS:
            started, computed = time.perf_counter(), time.thread_time()
            result = self._call(*element)
            computed = time.thread_time() - computed
            self._timed.append(max(computed, time.perf_counter() - started - computed - _PAUSE))
        else:
            result = self._call(*element)
        if self._is_worth_threads():
            self._pool = ThreadPoolExecutor(self._threads, "stoker-map")
        return result

    def _work(self, element: Element) -> Element:
        with running(self._state):
            return self._call(*element)

    def close(self) -> None:
        self._state.cancel()
        if self._pool is not None:
            self._pool.shutdown(cancel_futures=True)
        super().close()


def _mapped(source: Any, call: Call, parallel_calls: int = 1, same_count: bool = True) -> Dataset:
    if parallel_calls < -1 or parallel_calls == 0:
        raise InvalidArgumentError(None, None, f"num_parallel_calls must be greater than zero, got {parallel_calls}.")
    count = None if same_count else _unknown
    cores = os.cpu_count() or 1
    threads = cores if parallel_calls < 0 else min(parallel_calls, 4 * cores)
    if threads == 1:
        return Simple(source, _Mapped, call, count=count)
    timed: list[float] = []
    return Simple(source, _MappedInParallel, call, threads, timed, count=count)


MAP_DATASET = define_dataset(
    f"MapDataset({_INPUT})",
    **_FUNCTION,
    use_inter_op_parallelism=True,
    preserve_cardinality=False,
    force_synchronous=False,
    metadata="",
).keeping()


@MAP_DATASET.kernel
def map_dataset_kernel(
    input_dataset: Any, other_arguments: list[Any], *, f: Any, preserve_cardinality: bool
) -> Dataset:
    return _mapped(input_dataset, f.bind(other_arguments), same_count=preserve_cardinality)


PARALLEL_MAP_DATASET = define_dataset(
    f"ParallelMapDataset({_INPUT}, num_parallel_calls: scalar int32)",
    **_FUNCTION,
    use_inter_op_parallelism=True,
    sloppy=False,
    preserve_cardinality=False,
    metadata="",
).keeping()
PARALLEL_MAP_DATASET_V2 = define_dataset(
    f"ParallelMapDatasetV2({_INPUT}, num_parallel_calls: scalar int64)",
    **_FUNCTION,
    use_inter_op_parallelism=True,
    deterministic="default",
    preserve_cardinality=False,
    use_unbounded_threadpool=False,
    metadata="",
).keeping()


@PARALLEL_MAP_DATASET.kernel
@PARALLEL_MAP_DATASET_V2.kernel
def parallel_map_dataset_kernel(
    input_dataset: Any,
    other_arguments: list[Any],
    num_parallel_calls: torch.Tensor,
    *,
    f: Any,
    preserve_cardinality: bool,
) -> Dataset:
    """The results come in order, also where the program allows any order."""
    return _mapped(input_dataset, f.bind(other_arguments), int(num_parallel_calls), preserve_cardinality)


MAP_AND_BATCH_DATASET = define_dataset(
    f"MapAndBatchDataset({_INPUT}, batch_size: scalar int64, num_parallel_calls: scalar int64, drop_remainder: scalar bool)",
    **_FUNCTION,
    preserve_cardinality=False,
    metadata="",
).keeping()


@MAP_AND_BATCH_DATASET.kernel
def map_and_batch_dataset_kernel(
    input_dataset: Any,
    other_arguments: list[Any],
    batch_size: torch.Tensor,
    num_parallel_calls: torch.Tensor,
    drop_remainder: torch.Tensor,
    *,
    f: Any,
) -> Dataset:
    mapped = _mapped(input_dataset, f.bind(other_arguments), int(num_parallel_calls))
    return batched(mapped, batch_size, drop_remainder)


# ---- filter ------------------------------------------------------------------------------------------------------


_LEAST_FILTERED = 16  # elements that are looked at together where nobody notices


class _Filtered(_Calling):
    def __init__(self, source: Elements, call: Call, stops: bool) -> None:
        super().__init__(source, call)
        self._stops = stops
        self._may_stack = not stops  # the elements behind the last one are not wanted
        self._passed: deque[Element] = deque()  # elements that come next
        self._goes_ahead = False

    def take(self, count: int, found: Any) -> None:
        """Looks at no more elements than are missing, unless nobody notices, so that none is taken before it is needed."""
        missing = self._hand_over(count, found)
        while missing and (together := self._together(self._at_most(missing))) is not None:
            elements, results = together
            self._passed.extend([element for element, truth in zip(elements, results[0].tolist()) if truth])
            missing = self._hand_over(missing, found)
        for _ in range(missing):
            try:
                found.append(self._single())
            except StopIteration:
                return

    def next(self) -> Element:
        if self._passed:
            return self._passed.popleft()
        if self._at_most(1) == 1:
            return self._single()
        found: list[Element] = []
        self.take(1, found)
        if not found:
            raise StopIteration
        return found[0]

    def _at_most(self, missing: int) -> int:
        """How many elements can be looked at for those that are missing."""
        self._goes_ahead = self._goes_ahead or self.may_run_ahead()
        return max(missing, _LEAST_FILTERED) if self._goes_ahead else missing

    def _hand_over(self, count: int, found: Any) -> int:
        """Appends elements that passed to `found`. Returns how many are missing."""
        ready = min(count, len(self._passed))
        found.extend([self._passed.popleft() for _ in range(ready)])
        return count - ready

    def _single(self) -> Element:
        while True:
            element = self._drawn.next()
            if self._call(*element)[0]:
                return element
            if self._stops:
                self.close()
                self._drawn = Drawn(Generated(lambda: iter(())).elements())
                raise StopIteration


FILTER_DATASET = define_dataset(f"FilterDataset({_INPUT})", predicate=FUNC, Targuments=TYPES, metadata="").keeping()
TAKE_WHILE_DATASET = define_dataset(
    f"TakeWhileDataset({_INPUT})", predicate=FUNC, Targuments=TYPES, metadata=""
).keeping()


@FILTER_DATASET.kernel
def filter_dataset_kernel(input_dataset: Any, other_arguments: list[Any], *, predicate: Any) -> Dataset:
    return Simple(input_dataset, _Filtered, predicate.bind(other_arguments), False, count=_unknown)


@TAKE_WHILE_DATASET.kernel
def take_while_dataset_kernel(input_dataset: Any, other_arguments: list[Any], *, predicate: Any) -> Dataset:
    return Simple(input_dataset, _Filtered, predicate.bind(other_arguments), True, count=_unknown)


class _Tolerant(Elements):
    def __init__(self, source: Elements) -> None:
        super().__init__(source)
        self._source = source

    def next(self) -> Element:
        while True:
            try:
                return self._source.next()
            except OpError:
                stop_if_cancelled()  # an error of the run, not of the element


IGNORE_ERRORS_DATASET = define_dataset("IgnoreErrorsDataset(input_dataset: variant)", log_warning=False)
IGNORE_ERRORS_DATASET.kernel(lambda input_dataset: Simple(input_dataset, _Tolerant, count=_unknown))

# ---- datasets of datasets ----------------------------------------------------------------------------------------


class _Interleaved(Elements):
    """Takes `block` elements in turn from each of `cycle` open datasets, which the function makes from the source's elements."""

    def __init__(self, source: Elements, call: Call, cycle: int, block: int) -> None:
        super().__init__(source)
        self._source, self._call = source, call
        self._open: list[Elements | None] = []
        self._cycle, self._block = cycle, block
        self._at = self._taken = 0
        self._more = True

    def may_run_ahead(self) -> bool:
        passes = [self._source, *(each for each in self._open if each is not None)]
        return self._call.makes_datasets_only() and all(each.may_run_ahead() for each in passes)

    def _current(self) -> Elements | None:
        """The dataset whose turn it is, or None after the last one."""
        while self._more or any(self._open):
            if self._at == len(self._open):
                self._open.append(None)
            current = self._open[self._at]
            if current is None and self._more:
                try:
                    element = self._source.next()
                except StopIteration:
                    self._more = False
                    continue
                current = self._open[self._at] = as_dataset(self._call(*element)[0]).elements()
            if current is not None:
                return current
            self._turn()
        return None

    def next(self) -> Element:
        while (current := self._current()) is not None:
            try:
                found = current.next()
            except StopIteration:
                self._finish(current)
                continue
            self._count(1)
            return found
        raise StopIteration

    def take(self, count: int, found: Any) -> None:
        wanted = len(found) + count
        while len(found) < wanted and (current := self._current()) is not None:
            before = len(found)
            asked = wanted - before if self._cycle == 1 else min(wanted - before, self._block - self._taken)
            try:
                current.take(asked, found)
            finally:
                self._count(len(found) - before)
            if len(found) - before < asked:
                self._finish(current)

    def _count(self, number: int) -> None:
        self._taken += number
        if self._taken >= self._block:
            self._turn()

    def _finish(self, current: Elements) -> None:
        current.close()
        self._open[self._at] = None
        self._turn()

    def _turn(self) -> None:
        self._at, self._taken = self._at + 1, 0
        if self._at == self._cycle or (self._at == len(self._open) and not self._more):
            self._at = 0

    def close(self) -> None:
        for each in self._open:
            if each is not None:
                each.close()
        super().close()


def _interleaved(source: Any, call: Call, cycle: int, block: int) -> Dataset:
    for name, number in (("cycle_length", cycle), ("block_length", block)):
        if number < 1 and not (name == "cycle_length" and number == -1):
            raise InvalidArgumentError(None, None, f"`{name}` must be > 0, got {number}.")
    open_at_once = (os.cpu_count() or 1) if cycle < 0 else cycle
    return Simple(source, _Interleaved, call, open_at_once, block, count=_unknown)


FLAT_MAP_DATASET = define_dataset(f"FlatMapDataset({_INPUT})", **_FUNCTION, metadata="").keeping()


@FLAT_MAP_DATASET.kernel
def flat_map_dataset_kernel(input_dataset: Any, other_arguments: list[Any], *, f: Any) -> Dataset:
    return Simple(input_dataset, _Interleaved, f.bind(other_arguments), 1, 1, count=_unknown)


_CYCLE = "cycle_length: scalar int64, block_length: scalar int64"
INTERLEAVE_DATASET = define_dataset(f"InterleaveDataset({_INPUT}, {_CYCLE})", **_FUNCTION, metadata="").keeping()


@INTERLEAVE_DATASET.kernel
def interleave_dataset_kernel(
    input_dataset: Any, other_arguments: list[Any], cycle_length: torch.Tensor, block_length: torch.Tensor, *, f: Any
) -> Dataset:
    return _interleaved(input_dataset, f.bind(other_arguments), int(cycle_length), int(block_length))


PARALLEL_INTERLEAVE_DATASET_V2 = define_dataset(
    f"ParallelInterleaveDatasetV2({_INPUT}, {_CYCLE}, num_parallel_calls: scalar int64)",
    **_FUNCTION,
    sloppy=False,
    metadata="",
).keeping()


@PARALLEL_INTERLEAVE_DATASET_V2.kernel
def parallel_interleave_dataset_v2_kernel(
    input_dataset: Any,
    other_arguments: list[Any],
    cycle_length: torch.Tensor,
    block_length: torch.Tensor,
    num_parallel_calls: torch.Tensor,
    *,
    f: Any,
) -> Dataset:
    """The elements come in the order of InterleaveDataset, also where the program allows any order."""
    return _interleaved(input_dataset, f.bind(other_arguments), int(cycle_length), int(block_length))


PARALLEL_INTERLEAVE_DATASET = define_dataset(
    f"ParallelInterleaveDataset({_INPUT}, {_CYCLE}, sloppy: scalar bool, buffer_output_elements: scalar int64, "
    "prefetch_input_elements: scalar int64)",
    **_FUNCTION,
    metadata="",
).keeping()


@PARALLEL_INTERLEAVE_DATASET.kernel
def parallel_interleave_dataset_kernel(
    input_dataset: Any,
    other_arguments: list[Any],
    cycle_length: torch.Tensor,
    block_length: torch.Tensor,
    sloppy: torch.Tensor,
    buffer_output_elements: torch.Tensor,
    prefetch_input_elements: torch.Tensor,
    *,
    f: Any,
) -> Dataset:
    return _interleaved(input_dataset, f.bind(other_arguments), int(cycle_length), int(block_length))


# ---- accumulated state -------------------------------------------------------------------------------------------


class _Scanned(Elements):
    def __init__(self, source: Elements, call: Call, state: tuple[Any, ...]) -> None:
        super().__init__(source)
        self._source, self._call, self._held = source, call, state

    def next(self) -> Element:
        results = self._call(*self._held, *self._source.next())
        count = len(self._held)
        self._held = tuple(results[:count])
        return tuple(results[count:])


SCAN_DATASET = define_dataset(
    "ScanDataset(input_dataset: variant, initial_state: [Tstate], other_arguments: [Targuments])",
    f=FUNC,
    Tstate=TYPES(minimum=1),
    Targuments=TYPES,
    preserve_cardinality=False,
    use_default_device=True,
    metadata="",
).keeping()


@SCAN_DATASET.kernel
def scan_dataset_kernel(
    input_dataset: Any, initial_state: list[Any], other_arguments: list[Any], *, f: Any, preserve_cardinality: bool
) -> Dataset:
    call = f.bind(other_arguments)
    count = None if preserve_cardinality else _unknown
    return Simple(input_dataset, _Scanned, call, tuple(initial_state), count=count)


REDUCE_DATASET = define(
    "ReduceDataset(input_dataset: variant, initial_state: [Tstate], other_arguments: [Targuments]) -> "
    "(components: [output_types])",
    STATEFUL | BLOCKING,
    f=FUNC,
    Tstate=TYPES(minimum=1),
    Targuments=TYPES,
    output_types=TYPES(minimum=1),
    output_shapes=SHAPES(minimum=1),
    use_inter_op_parallelism=True,
    metadata="",
).keeping()
REDUCE_DATASET.shape(lambda *_, output_shapes: list(output_shapes))


@REDUCE_DATASET.kernel
def reduce_dataset_kernel(
    input_dataset: Any, initial_state: list[Any], other_arguments: list[Any], *, f: Any
) -> list[Any]:
    call, state = f.bind(other_arguments), tuple(initial_state)
    elements = as_dataset(input_dataset).elements()
    try:
        while True:
            state = call(*state, *elements.next())
    except StopIteration:
        return [value.clone() if isinstance(value, torch.Tensor) else value for value in state]
    finally:
        elements.close()


# ---- groups ------------------------------------------------------------------------------------------------------


_KEYS_AT_ONCE = 32


class _Grouped(_Calling):
    """Collects elements by key. A full window, and at the end every window, is reduced to a dataset."""

    def __init__(self, source: Elements, key: Call, reduce: Call, size: Call) -> None:
        super().__init__(source, key)
        self._reduce, self._size = reduce, size
        self._keyed: deque[tuple[Element, int]] = deque()
        self._groups: dict[int, tuple[int, list[Element]]] = {}
        self._current: Elements | None = None
        self._more = True

    def next(self) -> Element:
        while True:
            if self._current is not None:
                try:
                    return self._current.next()
                except StopIteration:
                    self._current.close()
                    self._current = None
            self._current = self._window()

    def may_run_ahead(self) -> bool:
        return False

    def _next_keyed(self) -> tuple[Element, int]:
        if not self._keyed and self._drawn.source.may_run_ahead():
            together = self._together(_KEYS_AT_ONCE)
            if together is not None:
                elements, results = together
                self._keyed.extend(zip(elements, results[0].tolist()))
        if self._keyed:
            return self._keyed.popleft()
        element = self._drawn.next()
        return element, int(self._call(*element)[0])

    def _window(self) -> Elements:
        while self._more:
            try:
                element, key = self._next_keyed()
            except StopIteration:
                self._more = False
                break
            if key not in self._groups:
                size = int(self._size(integer(key))[0])
                if size <= 0:
                    raise InvalidArgumentError(None, None, f"Window size must be greater than zero, but got {size}.")
                self._groups[key] = size, []
            size, held = self._groups[key]
            held.append(element)
            if len(held) == size:
                del self._groups[key]
                return self._reduced(key, held)
        if not self._groups:
            raise StopIteration
        key = min(self._groups)
        return self._reduced(key, self._groups.pop(key)[1])

    def _reduced(self, key: int, held: list[Element]) -> Elements:
        window = Generated(lambda: iter(held), len(held))
        return as_dataset(self._reduce(integer(key), window)[0]).elements()

    def close(self) -> None:
        if self._current is not None:
            self._current.close()
        super().close()


GROUP_BY_WINDOW_DATASET = define_dataset(
    "GroupByWindowDataset(input_dataset: variant, key_func_other_arguments: [Tkey_func_other_arguments], "
    "reduce_func_other_arguments: [Treduce_func_other_arguments], "
    "window_size_func_other_arguments: [Twindow_size_func_other_arguments])",
    key_func=FUNC,
    reduce_func=FUNC,
    window_size_func=FUNC,
    Tkey_func_other_arguments=TYPES,
    Treduce_func_other_arguments=TYPES,
    Twindow_size_func_other_arguments=TYPES,
    metadata="",
).keeping()


@GROUP_BY_WINDOW_DATASET.kernel
def group_by_window_dataset_kernel(
    input_dataset: Any,
    key_func_other_arguments: list[Any],
    reduce_func_other_arguments: list[Any],
    window_size_func_other_arguments: list[Any],
    *,
    key_func: Any,
    reduce_func: Any,
    window_size_func: Any,
) -> Dataset:
    return Simple(
        input_dataset,
        _Grouped,
        key_func.bind(key_func_other_arguments),
        reduce_func.bind(reduce_func_other_arguments),
        window_size_func.bind(window_size_func_other_arguments),
        count=_unknown,
    )
