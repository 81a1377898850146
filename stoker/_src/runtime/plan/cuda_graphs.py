"""Replays repeated steps on a GPU as CUDA graphs.

A small step on a GPU spends its time launching kernels one by one. Once a plan has run a few times with feeds of the same
shapes, its launches are recorded into a CUDA graph (`torch.cuda.CUDAGraph`) and replayed with one call from then on. Feeds are
copied into the recording's own inputs, variables are updated in place, and results are copied out.

A plan is not recorded if a replay could not repeat it: if it uses random numbers or other host state, waits, or reads variables on
the CPU in device work. Some obstacles show only during recording, for example a kernel that waits for the device to learn a
size. The recording then fails without side effects, and the plan runs as before. A recording becomes invalid when a variable
gets different memory. STOKER_CUDA_GRAPHS=0 turns recording off.
"""

from __future__ import annotations

import copy
import functools
import os
import threading
import warnings
from collections.abc import Iterator
from typing import Any

import torch

from stoker._src.graph.definition import Trait
from stoker._src.ops.variables.state_ops import VariableState
from stoker._src.runtime.devices import recording
from stoker._src.runtime.plan.emit import emit
from stoker._src.runtime.plan.instructions import Instruction, values_of
from stoker._src.runtime.plan.planner import Planner

_RUNS_BEFORE = 3  # runs that show that a plan repeats, and that let libraries choose their kernels
_FEWEST = 4  # fewest instructions worth recording
_MOST_RECORDINGS = 4  # recordings per plan; each has its own memory
_NOT_REPEATABLE = Trait.BLOCKING | Trait.RETAINS


def repeated(planner: Planner) -> Repeated | None:
    """Returns the object that replays a plan's step; None if the plan cannot be recorded."""
    placement = planner.compile_function.placement
    if placement.gpu is None or os.environ.get("STOKER_CUDA_GRAPHS") == "0":
        return None
    if len(planner.instructions) < _FEWEST or not all(_is_repeatable(each) for each in _all_instructions(planner)):
        return None
    return Repeated(planner, placement.gpu)


def _all_instructions(planner: Planner) -> Iterator[Instruction]:
    """Returns the instructions of a plan and of the functions it calls."""
    for instruction in planner.instructions:
        yield instruction
        for step in instruction.steps:
            yield from _all_instructions(step.planner)


def _is_repeatable(instruction: Instruction) -> bool:
    traits = instruction.traits
    if traits & _NOT_REPEATABLE or (traits & Trait.STATEFUL and not traits & Trait.WRITES):
        return False
    return all(value.is_constant for value in values_of(instruction.arguments) if value.handle)


class Repeated:
    """Counts the runs of one plan by the shapes of their feeds, and records the ones that repeat."""

    def __init__(self, planner: Planner, device: torch.device) -> None:
        self._planner, self._device = planner, device
        self._runs: dict[Any, int] = {}
        self._lock = threading.Lock()
        self.recordings: dict[Any, _Recording] = {}
        self.obstacle: str | None = None  # why the plan is not recorded

    def function(self, function: Any, values: Any) -> Any:
        """Returns the function to run for these feeds: a recording, made on this call if it is due, or `function`."""
        if self.obstacle is not None or not all(isinstance(value, torch.Tensor) for value in values):
            return function
        key = tuple((value.shape, value.dtype) for value in values)
        found = self.recordings.get(key)
        if found is not None:
            if found.is_current():
                return found
            del self.recordings[key]
        runs = self._runs[key] = self._runs.get(key, 0) + 1
        if runs < _RUNS_BEFORE or len(self.recordings) >= _MOST_RECORDINGS:
            return function
        if runs == _RUNS_BEFORE:
            return functools.partial(self._watched, function)
        with self._lock:
            try:
                found = self.recordings[key] = _Recording(self._planner, self._device, values)
            except (RuntimeError, _NotRepeatableError) as error:
                self.obstacle = str(error)
                torch.cuda.synchronize(self._device)
                return function
        return found

    def _watched(self, function: Any, *args: Any) -> Any:
        """Runs the step and checks whether the host waits for the device. Recording such a step could leave libraries in a bad state."""
        with self._lock, warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            recording.kept = []
            torch.cuda.set_sync_debug_mode("warn")
            try:
                return function(*args)
            finally:
                torch.cuda.set_sync_debug_mode("default")
                recording.kept = None
                waits = [str(each.message) for each in caught if "called a synchronizing" in str(each.message)]
                if waits:
                    self.obstacle = waits[0]


class _NotRepeatableError(Exception):
    """The step does something that a replay would not repeat."""


class _Recording:
    """One recorded step. It is called like the step's function."""

    def __init__(self, planner: Planner, device: torch.device, values: Any) -> None:
        self._lock = threading.Lock()
        states = {
            id(value.constant): value.constant
            for instruction in _all_instructions(planner)
            for value in values_of(instruction.arguments)
            if value.handle and isinstance(value.constant, VariableState)
        }
        on_host = {key for key, state in states.items() if not _is_on(device, state.value)}
        # The recording reads the constants of the step and of the functions it calls at fixed addresses, so they are kept alive.
        self._host, self._on_device = _divided(planner, on_host)
        self._variables = [(state, state.value) for key, state in states.items() if key not in on_host]
        self._inputs = [torch.empty_like(value, device=device).copy_(value) for value in values]
        self._graph = torch.cuda.CUDAGraph()
        self._kept = recording.kept = []
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # torch warns about the empty graph that a failed recording leaves
                with torch.cuda.graph(self._graph, capture_error_mode="relaxed"):
                    self._results = self._on_device(None, *self._inputs)
        finally:
            recording.kept = None
            moved = [(state, value) for state, value in self._variables if state.value is not value]
            for state, value in moved:
                state.value = value
        if moved or not all(_is_on(device, result) for result in self._results):
            raise _NotRepeatableError("a result or a variable's new value is not on the device")

    def is_current(self) -> bool:
        """Whether every variable still has the memory that was recorded."""
        return all(state.value is value for state, value in self._variables)

    def __call__(self, holding: Any, *values: Any) -> tuple[Any, ...]:
        with self._lock:
            for own, value in zip(self._inputs, values):
                own.copy_(value, non_blocking=True)
            if self._host is not None:
                self._host(holding, *values)
            self._graph.replay()
            return tuple(result.clone() for result in self._results)


def _is_on(device: torch.device, value: Any) -> bool:
    return isinstance(value, torch.Tensor) and value.device == device


def _divided(planner: Planner, on_host: set[int]) -> tuple[Any, Any]:
    """Splits a plan's step in two: the part that updates host variables (None if there is none), run every time, and the rest.

    The typical case is a counter: a training step on the GPU that increments the global step.

    Raises:
        _NotRepeatableError: the two parts depend on each other.
    """
    host, rest = [], []
    for instruction in planner.instructions:
        handles = [value for value in values_of(instruction.arguments) if value.handle]
        (host if any(id(value.constant) in on_host for value in handles) else rest).append(instruction)
    for instruction in host:
        made = set(values_of(instruction.results))
        needed = [value for each in rest for value in values_of(each.arguments)] + planner.results
        if (
            not instruction.traits & Trait.WRITES
            or not all(value.is_constant for value in values_of(instruction.arguments))
            or not made.isdisjoint(needed)
        ):
            raise _NotRepeatableError(
                f"the device's work needs {instruction.op and instruction.op.name}, which is the host's"
            )
    return (_step(planner, host, []) if host else None), _step(planner, rest, planner.results)


def _step(planner: Planner, instructions: list[Instruction], results: list[Any]) -> Any:
    part = copy.copy(planner)
    part.instructions, part.results = instructions, results
    return emit(part).function
