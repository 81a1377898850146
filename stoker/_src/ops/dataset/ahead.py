"""Elements that are prepared before they are wanted: `Dataset.prefetch`."""

from __future__ import annotations

import threading
import time
from collections import deque
from typing import Any

import torch

from stoker._src.base import forking
from stoker._src.base.errors import InvalidArgumentError
from stoker._src.ops.dataset.values import Dataset, Element, Elements, Simple, as_dataset, define_dataset
from stoker._src.ops.support.waiting import RunState, current_run, running, wait_until

_UNMEASURED = 16  # calls before the first comparison: what they run is still being compiled
_WINDOW = 0.03  # the least seconds for which one way is measured
_CALLS = 4  # the least calls in that time
_MARGIN = 0.97  # preparing elements when they are wanted must take less than this part of the time
_FIRST_REST, _LONGEST_REST = 1.0, 32.0  # seconds until the ways are compared again


class Choice:
    """Whether a thread stays ahead of the consumer, or the consumer prepares elements itself when it wants them.

    Threads that run Python code take turns, and passing the turn on costs time. Where the elements and the steps that use them are
    mostly such code, a thread makes both slower. So both ways are tried now and then, and the one is kept that had the consumer come back
    sooner. That is the time for a whole step, whatever else the program does in it.
    """

    def __init__(self) -> None:
        self.by_thread = True
        self._calls = 0  # since the way was changed, or since the window began
        self._elements = 0  # in this window
        self._began: float | None = None  # when the window began
        self._left: list[bool] = []  # the ways that are to be measured
        self._found = {True: [0.0], False: [0.0]}  # seconds for an element
        self._compares_at, self._rest = 0.0, _FIRST_REST

    def called(self, count: int, is_settled: bool) -> None:
        """The consumer wants `count` elements. `is_settled`: nothing is left of what was prepared in another way."""
        self._calls += 1
        if not self._left:
            if self._calls < _UNMEASURED or time.perf_counter() < self._compares_at:
                return
            self._found = {True: [], False: []}
            self._left = [self.by_thread, not self.by_thread] * 3
            self._measure()
        now = time.perf_counter()
        if self._began is None:
            if is_settled and self._calls > 1:
                self._began, self._calls, self._elements = now, 0, 0
        elif now - self._began >= _WINDOW and self._calls >= _CALLS:
            self._found[self._left.pop(0)].append((now - self._began) / self._elements)
            if self._left:
                self._measure()
            else:
                self.by_thread = min(self._found[False]) >= _MARGIN * min(self._found[True])
                self._compares_at = now + self._rest
                self._rest = min(2 * self._rest, _LONGEST_REST)
                self._calls = _UNMEASURED
        self._elements += count

    def _measure(self) -> None:
        self.by_thread, self._began, self._calls = self._left[0], None, 0


_MOST_TOGETHER = 32  # elements that the thread takes from its source in one call
_QUICK = 2e-4  # seconds: elements that take longer are handed over one by one


class Ahead(Elements):
    """Stays up to `size` elements ahead of its consumer, with a thread of its own, where that is faster."""

    def __init__(self, source: Elements, size: int) -> None:
        super().__init__(source)
        self._source, self._size = source, size
        self._changed = forking.condition()
        self._ready: deque[tuple[Element | None, BaseException | None]] = deque()
        self._state = RunState()
        self._thread: threading.Thread | None = None
        self._choice = Choice()
        self._by_thread = True
        self._working = False  # whether the thread uses the source
        self._together = 1  # the elements that it takes in one call
        self._ended = False
        forking.in_children(self, Ahead._forget_thread)

    def _forget_thread(self) -> None:
        """In a forked child: the next element that is asked for starts another thread."""
        self._thread, self._working = None, False

    def next(self) -> Element:
        found: list[Element] = []
        self.take(1, found)
        if not found:
            raise StopIteration
        return found[0]

    def take(self, count: int, found: Any) -> None:
        self._choice.called(count, self._by_thread or not (self._working or self._ready))
        state = current_run()
        # A run with a deadline may give up, and the element that it waits for is not lost if a thread prepares it.
        by_thread = self._choice.by_thread or (state is not None and state.deadline is not None)
        wanted = len(found) + count
        with self._changed:
            if by_thread is not self._by_thread:
                self._by_thread = by_thread
                self._changed.notify_all()
            while len(found) < wanted:
                if self._ready:
                    found.append(self._pop())
                elif self._ended:
                    return
                elif by_thread or self._working:
                    self._wait()
                else:
                    break
        if len(found) < wanted:
            self._source.take(wanted - len(found), found)
            if len(found) < wanted:
                with self._changed:
                    self._ended = True
                    self._changed.notify_all()

    def _pop(self) -> Element:
        element, error = self._ready.popleft()
        if self._size - len(self._ready) == self._together:
            self._changed.notify_all()
        if error is not None:
            raise error
        assert element is not None
        return element

    def _wait(self) -> None:
        if self._by_thread and self._thread is None:
            self._thread = threading.Thread(target=self._work, name="stoker-prefetch", daemon=True)
            self._thread.start()
        wait_until(
            self._changed,
            lambda: bool(self._ready) or self._ended or not (self._by_thread or self._working),
            "Waiting for a prefetched element",
        )

    def may_run_ahead(self) -> bool:
        return True

    def _work(self) -> None:
        most = max(1, min(self._size // 2, _MOST_TOGETHER))
        with running(self._state), self._changed:
            while True:
                self._changed.wait_for(
                    lambda: self._ended or (self._by_thread and self._size - len(self._ready) >= self._together)
                )
                if self._ended:
                    return
                self._working = True
                self._changed.release()
                found: list[Element] = []
                failure: BaseException | None = None
                began = time.perf_counter()
                try:
                    self._source.take(self._together, found)
                except BaseException as error:
                    failure = error
                quick = time.perf_counter() - began < _QUICK * self._together
                self._changed.acquire()
                self._working = False
                self._ready.extend([(element, None) for element in found])
                if failure is not None:
                    self._ready.append((None, failure))
                elif len(found) < self._together:
                    self._ended = True
                self._together = min(2 * self._together, most) if quick else 1
                self._changed.notify_all()

    def close(self) -> None:
        with self._changed:
            self._ended = True
            self._changed.notify_all()
        self._state.cancel()
        thread, self._thread = self._thread, None
        if thread is not None and thread is not threading.current_thread():
            thread.join()
        super().close()


_AUTOMATIC = 8  # elements to stay ahead by if the program leaves the number to the library

PREFETCH_DATASET = define_dataset(
    "PrefetchDataset(input_dataset: variant, buffer_size: scalar int64)",
    slack_period=0,
    legacy_autotune=True,
    buffer_size_min=0,
    metadata="",
)


@PREFETCH_DATASET.kernel
def prefetch_dataset_kernel(input_dataset: Any, buffer_size: torch.Tensor) -> Dataset:
    size = int(buffer_size)
    if size < -1:
        raise InvalidArgumentError(None, None, f"buffer_size must be >= 0 or AUTOTUNE (-1), got {size}.")
    source = as_dataset(input_dataset)
    return source if size == 0 else Simple(source, Ahead, _AUTOMATIC if size < 0 else size)
