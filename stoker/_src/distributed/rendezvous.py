"""Values that travel between the tasks of a step: each waits under its key until the other side asks for it."""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from collections.abc import Callable
from typing import Any

from stoker._src.base.errors import AbortedError, CancelledError, InvalidArgumentError, OpError

_MOST_ENDED = 4096  # ended steps that are remembered, so that values that arrive late are dropped
_LONGEST_UNCLAIMED = 600.0  # seconds after which values of a step that never began here are dropped


class StepTable:
    """The values of one step at one task. `condition` is notified when a value that is wanted arrives or the step is aborted."""

    def __init__(self) -> None:
        self.condition = threading.Condition()
        self.values: dict[str, Any] = {}
        self.error: OpError | None = None
        self.began = time.monotonic()
        self.running = 0  # parts of the step that run here
        self.wanted: dict[Any, list[list[str]]] = {}
        """What each waiting thread waits for: sets of keys, one of which must have arrived completely. It is woken for nothing less."""
        self._watchers: list[Callable[[OpError], None]] = []

    def put(self, values: dict[str, Any]) -> None:
        with self.condition:
            self.values.update(values)
            if any(self.has_one(sets) for sets in self.wanted.values()):
                self.condition.notify_all()

    def has_one(self, sets: list[list[str]]) -> bool:
        """Whether all values of one of these sets of keys are there."""
        values = self.values
        return any(all(key in values for key in keys) for keys in sets)

    def abort(self, error: OpError) -> None:
        """Ends the step: all that wait for a value raise `error`."""
        with self.condition:
            if self.error is None:
                self.error = error
            watchers = list(self._watchers)
            self.condition.notify_all()
        for watch in watchers:
            watch(error)

    def on_abort(self, watch: Callable[[OpError], None]) -> None:
        """Calls `watch` when the step is aborted, or immediately if it is already."""
        with self.condition:
            self._watchers.append(watch)
            error = self.error
        if error is not None:
            watch(error)


class Rendezvous:
    """The tables of all steps at one task. It is thread-safe."""

    def __init__(self) -> None:
        self._guard = threading.Lock()
        self._steps: dict[int, StepTable] = {}
        self._ended: OrderedDict[int, None] = OrderedDict()

    def table(self, step_id: int) -> StepTable:
        """Returns the table of a step.

        Raises:
            AbortedError: the step has ended.
        """
        with self._guard:
            if step_id in self._ended:
                raise AbortedError(None, None, f"Step {step_id} has ended.")
            found = self._steps.get(step_id)
            if found is None:
                self._drop_unclaimed()
                found = self._steps[step_id] = StepTable()
            return found

    def deliver(self, step_id: int, values: dict[str, Any]) -> None:
        """Accepts values that another task sent. Values of an ended step are dropped."""
        try:
            table = self.table(step_id)
        except AbortedError:
            return
        table.put(values)

    def end(self, step_id: int, error: OpError | None = None) -> None:
        """Forgets a step, and aborts what still waits in it."""
        with self._guard:
            found = self._steps.pop(step_id, None)
            self._ended[step_id] = None
            while len(self._ended) > _MOST_ENDED:
                self._ended.popitem(last=False)
        if found is not None:
            found.abort(error or CancelledError(None, None, f"Step {step_id} has ended."))

    def end_all(self, error: OpError) -> None:
        for step_id in list(self._steps):
            self.end(step_id, error)

    def _drop_unclaimed(self) -> None:
        """Drops the values of steps that no master has started here, for example because it died."""
        if len(self._steps) < 256:
            return
        oldest = time.monotonic() - _LONGEST_UNCLAIMED
        for step_id, table in list(self._steps.items()):
            if not table.running and table.began < oldest:
                del self._steps[step_id]
                self._ended[step_id] = None


class Key:
    """The name of a value on its way: `source device;incarnation in hex;destination device;edge;frame:iteration`."""

    __slots__ = ("destination", "edge", "incarnation", "source", "text")

    def __init__(self, text: str) -> None:
        """Raises:
        InvalidArgumentError: `text` is not a key.
        """
        self.text = text
        try:
            self.source, incarnation, self.destination, self.edge, _ = text.split(";")
            self.incarnation = int(incarnation, 16)
        except ValueError:
            raise InvalidArgumentError(None, None, f"Invalid rendezvous key: {text:.500}") from None


def key_text(source: str, incarnation: int, destination: str, edge: str) -> str:
    return f"{source};{incarnation & 0xFFFF_FFFF_FFFF_FFFF:016x};{destination};{edge};0:0"


def task_of(device: str) -> str:
    """Returns the task part of a full device name."""
    return device.partition("/device:")[0].partition("/cpu:")[0].partition("/gpu:")[0]
