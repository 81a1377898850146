"""Replays repeated steps on a GPU as CUDA graphs.

A small step on a GPU spends its time launching kernels one by one. Once a plan has run a few times with feeds of the same
shapes, it is compiled again for these shapes and divided (division.py). The launches of the device's part are recorded into a
CUDA graph (`torch.cuda.CUDAGraph`) and replayed with one call from then on. What the device's part takes is copied to the recording's own
memory in one transfer, variables are updated in place, and small results return in one wait.

A recording holds for the shapes of what the device's part takes, and for the numbers that decide about its loops, branches and sizes. A
plan has one for each combination that repeats. It becomes invalid when a variable gets different memory. Some obstacles show
only when the device's part runs, for example a kernel that waits for the device to learn a size; the plan then runs as before.
STOKER_CUDA_GRAPHS=0 turns recording off.
"""

from __future__ import annotations

import contextlib
import ctypes
import gc
import os
import threading
import warnings
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch

from stoker._src.base.errors import OpError
from stoker._src.base.shapes import Shape
from stoker._src.graph.definition import Trait
from stoker._src.ops.random.bits.philox import PhiloxState, sides
from stoker._src.ops.support import device_checks
from stoker._src.ops.support.device_checks import Answer
from stoker._src.ops.support.moving import recording
from stoker._src.runtime.devices import Placement
from stoker._src.runtime.lent_variables import Packing
from stoker._src.runtime.locks import VariablesLock
from stoker._src.runtime.plan import threads
from stoker._src.runtime.plan.emit import Step
from stoker._src.runtime.plan.gpu import fused_kernels
from stoker._src.runtime.plan.gpu.division import Division, Obstacle
from stoker._src.runtime.plan.gpu.on_host import (
    BorrowingOnHost,
    Choice,
    OnHost,
    borrowed_variables,
    read_variables,
)
from stoker._src.runtime.plan.gpu.padding import ALL, KNOWN, CannotPad
from stoker._src.runtime.plan.instructions import Instruction, values_of
from stoker._src.runtime.plan.known_shapes import Known
from stoker._src.runtime.plan.planner import Planner

_RUNS_BEFORE = 2  # runs that show that feeds of some shapes repeat
_FEWEST = 4  # fewest instructions worth recording
_MOST_SHAPES = 8  # shapes of feeds per plan for which it is divided
_MOST_RECORDINGS = 24  # recordings per plan and shapes of feeds; they share their memory
_MOST_KEYS = 4096  # combinations of shapes and numbers that are remembered
_MOST_NUMBERS = 256  # elements of a tensor that decides about loops, branches and sizes
_SMALL = 1 << 20  # bytes of a result that is copied to the host with the others
_SHARED, _WORTH_SHARING = 1 << 15, 1 << 23  # bytes of a copy that torch shares among threads, and for which that pays

_TURNED_OFF, _TOO_SHORT = _NOT_TRIED = ("STOKER_CUDA_GRAPHS=0", "it is too short")

MakePlanner = Callable[..., Planner]


class Repeated:
    """Runs one plan on a GPU, and records the steps that repeat."""

    def __init__(self, planner: Planner, make_planner: MakePlanner, placement: Placement, lock: VariablesLock) -> None:
        self._make_planner, self._placement, self._variables_lock = make_planner, placement, lock
        self._is_pure = not planner.writes_variables and not planner.blocks
        self._planner = planner
        computing = [each for each in planner.instructions if not _only_keeps(each)]
        used = {value for each in computing for value in values_of(each.arguments)}
        used.update(value for value in planner.results if value is not None)
        self._feeds_compute = [value in used for value in planner.feed_values]
        self._for_host: dict[bool, bool] = {}  # whether the host may run the plan, by whether it is recorded
        self._choices: dict[Any, Choice] = {}  # by the shapes of the feeds
        self._runs: dict[Any, int] = {}
        self._lock = threading.Lock()
        self._divided: dict[Any, _Divided] = {}
        self.obstacle: str | None = None  # why the plan is not recorded
        if os.environ.get("STOKER_CUDA_GRAPHS") == "0":
            self.obstacle = _TURNED_OFF
        elif len(planner.instructions) < _FEWEST and not any(each.steps for each in planner.instructions):
            self.obstacle = _TOO_SHORT

    def _parts(self) -> list[_Divided]:
        return [part for divided in self._divided.values() for part in divided.parts()]

    @property
    def recordings(self) -> list[_Recording]:
        return [each for divided in self._parts() for each in divided.recordings.values()]

    def steps(self) -> list[Step]:
        on_host = [choice.on_host.step for choice in self._choices.values()]
        return [step for divided in self._divided.values() for step in divided.steps] + on_host

    def release(self) -> None:
        """Gives up the recordings, while nothing else uses the device. A garbage collection could come while another step is recorded."""
        with self._lock:
            for divided in self._parts():
                divided.release()

    def remarks(self) -> list[str]:
        """Describes what was recorded, and why nothing else was."""
        lines = []
        for divided in self._parts():
            before, device, after = divided.division.counts
            lines.append(
                f"recorded {len(divided.recordings)} times as a CUDA graph: {device} instructions, with {before} before "
                f"and {after} after them on the host, {len(divided.division.numbers)} numbers that decide"
                + ("" if divided.rest is None else "; the device goes on with what the host makes then")
            )
            on_device = divided.steps[1].with_functions()
            lines += fused_kernels.summary(line for step in on_device for line in step.planner.instructions)
        if self.obstacle is not None:
            lines.append(f"not recorded as a CUDA graph: {self.obstacle}")
        elif not lines:
            lines.append("not yet recorded as a CUDA graph: it must repeat with feeds of the same shapes")
        lines += [choice.remark for choice in self._choices.values() if choice.remark is not None]
        return lines

    def run(self, function: Any, holding: Any, values: Any) -> Any:
        """Runs the step. `function` is the step for feeds of any shape."""
        try:
            # What a recording depends on: the shapes of feeds, and where they are. The graph tells their dtypes.
            key = tuple([value.shape if value.is_cpu else (value.shape, value.get_device()) for value in values])
        except AttributeError:  # strings are NumPy arrays
            key = _key(values)
            if key is None:
                _return_lent(holding)
                return function(holding, *self._placed(values))
        choice = self._choices.get(key)
        if choice is None and self._may_run_on_host():
            choice = self._choice(key, values)
        if choice is not None:
            return choice.run(lambda: self._on_gpu(key, function, holding, values), holding, values)
        return self._on_gpu(key, function, holding, values)

    def _placed(self, values: Any) -> list[Any]:
        """Returns the feeds where they start. What only goes into queues stays on the host."""
        data = self._placement.data
        return [data(value) if computes else value for value, computes in zip(values, self._feeds_compute)]

    def _may_run_on_host(self) -> bool:
        """Whether the host could be faster: the plan is small, or it cannot be recorded."""
        recorded = self.obstacle is None or self.obstacle in _NOT_TRIED
        found = self._for_host.get(recorded)
        if found is None:
            variables = read_variables if self._is_pure else borrowed_variables
            found = variables(self._planner, self._placement, recorded=recorded) is not None
            self._for_host[recorded] = found
        return found

    def _choice(self, key: Any, values: Any) -> Choice | None:
        """Returns how a small step that repeats is to be run; None for one that has not repeated."""
        if len(self._choices) >= _MOST_SHAPES or (key not in self._divided and self._runs.get(key, 0) <= _RUNS_BEFORE):
            self._runs[key] = self._runs.get(key, 0) + (self.obstacle is not None)
            return None
        if any(isinstance(value, torch.Tensor) and value.is_cuda for value in values):
            return None
        with self._lock:
            found = self._choices.get(key)
            if found is None:
                make, lock, gpu = self._make_planner, self._variables_lock, self._placement.gpu
                assert gpu is not None
                on_host = OnHost(make, values, lock) if self._is_pure else BorrowingOnHost(make, values, lock, gpu)
                found = self._choices[key] = Choice(on_host, lock.lent.together, writes=not self._is_pure)
            return found

    def _on_gpu(self, key: Any, function: Any, holding: Any, values: Any) -> Any:
        _return_lent(holding)
        divided = self._for(key, values) if self.obstacle is None else None
        if divided is None:
            return function(holding, *self._placed(values))
        try:
            return divided(holding, *values)
        except OpError as error:
            if not self._is_pure:
                raise
            # The step for feeds of any shape has the last word about an error.
            results = function(holding, *self._placed(values))
            self.obstacle = f"it fails for these shapes ({error.message.splitlines()[0]})"
            return results
        finally:
            self.obstacle = self.obstacle or next((part.obstacle for part in divided.parts() if part.obstacle), None)

    def _for(self, key: Any, values: Any) -> _Divided | None:
        found = self._divided.get(key)
        if found is not None:
            return found
        runs = self._runs[key] = self._runs.get(key, 0) + 1
        if runs <= _RUNS_BEFORE or len(self._divided) >= _MOST_SHAPES:
            return None
        with self._lock:
            try:
                found = self._divided[key] = _divided(self._make_planner, self._placement, values)
            except Obstacle as error:
                self.obstacle = str(error)
        return found


def _return_lent(holding: Any) -> None:
    if holding is not None:
        holding.settles(holding.return_lent)


def _key(values: Any) -> Any:
    """Returns what a recording depends on; None if there are other feeds than tensors and strings, which are on the host."""
    if not all(isinstance(value, torch.Tensor | np.ndarray) for value in values):
        return None
    return tuple(
        [(value.shape, value.get_device() if isinstance(value, torch.Tensor) else "strings") for value in values]
    )


def _only_keeps(instruction: Instruction) -> bool:
    """Whether an instruction puts its inputs into a queue and computes nothing."""
    return bool(instruction.traits & Trait.BLOCKING) and instruction.op is not None and not instruction.op.outputs


def _divided(make_planner: MakePlanner, placement: Placement, values: Any) -> _Divided:
    """Divides a plan for feeds of some shapes."""
    known = [Known(Shape(value.shape)) for value in values]
    for pads in (ALL, KNOWN):
        with contextlib.suppress(CannotPad):
            return _divided_with(make_planner, placement, known, pads)
    return _divided_with(make_planner, placement, known, "")


def _divided_with(make_planner: MakePlanner, placement: Placement, known: list[Known], pads: str) -> _Divided:
    assert placement.gpu is not None
    division = Division(placement.gpu)
    planner = make_planner(known=known, arrange=division, pads=pads).build()
    return _Divided(division, division.emit(planner), placement)


class _Divided:
    """A plan, or the rest of one, divided into the device's part and what the host does before and after it."""

    def __init__(self, division: Division, steps: list[Step], placement: Placement) -> None:
        """`steps` are the compiled parts: before, on the device, and after; for the last those of the rest, if there is one."""
        assert placement.gpu is not None
        self.division, self.steps = division, steps
        self._placement, self._device = placement, placement.gpu
        before, device, *after = steps
        self._before = threads.Tuned(before.function)  # most of what the host does is too small for all of its threads
        self._on_device = device.function
        self.rest = None if division.rest is None else _Divided(division.rest, after, placement)
        self._after: Callable[..., Any] = self.rest or after[0].function
        self._has_before = division.counts[0] > 0
        places = {value: i for i, value in enumerate([*division.given, *division.made])}
        self._inputs = [places[value] for value in division.inputs]
        self._numbers = [places[value] for value in division.numbers]
        self._pool = torch.cuda.graph_pool_handle()
        self._lock = threading.Lock()
        self._runs: set[Any] = set()  # the combinations of shapes and numbers that were seen
        self._pinned: dict[Any, _Pinned] = {}  # for a recording of those that ran once
        self._own_inputs: dict[Any, _Inputs] = {}
        self.recordings: OrderedDict[Any, _Recording] = OrderedDict()
        self.obstacle: str | None = None

    def parts(self) -> list[_Divided]:
        return [self, *([] if self.rest is None else self.rest.parts())]

    def __call__(self, holding: Any, *values: Any) -> Any:
        made = self._before(holding, *values) if self._has_before else ()
        given = (*values, *made)
        with self._lock:
            # A part before that is not recorded yet leaves its results on the device.
            outputs = self._run([given[i] for i in self._inputs], [given[i].cpu() for i in self._numbers])
        return self._after(holding, *given, *outputs)

    def _run(self, inputs: list[Any], numbers: list[Any]) -> Any:
        key = (
            tuple([(value.shape, value.device.type) for value in inputs]),
            tuple([(value.dtype, value.shape, *value.reshape(-1).tolist()) for value in numbers]),
        )
        found = self.recordings.get(key)
        if found is not None:
            if found.is_current():
                self.recordings.move_to_end(key)
                return found(inputs)
            self._drop(key)
        if key not in self._runs and len(self._runs) < _MOST_KEYS and all(n.numel() <= _MOST_NUMBERS for n in numbers):
            self._runs.add(key)
            results = self._watched(key, inputs, numbers)
            if key in self._pinned:
                stays = self.division.staying
                self._pinned[key].results = [
                    None if i in stays else _pinned_like(result) for i, result in enumerate(results)
                ]
            if len(self._pinned) > _MOST_RECORDINGS:  # of combinations that may never return
                del self._pinned[next(iter(self._pinned))]
            return results
        if self.obstacle is not None or key not in self._runs:
            return self._unrecorded(inputs, numbers)
        if len(self.recordings) >= _MOST_RECORDINGS:
            self._drop(next(iter(self.recordings)))
        try:
            own = self._own_inputs.get(key[0]) or _Inputs(inputs, self._device)
            self._own_inputs = {key[0]: own, **self._own_inputs}
            pinned = self._pinned.pop(key, None)
            if pinned is None:  # there was a recording before, or too many others have been seen since
                self._runs.discard(key)
                return self._unrecorded(inputs, numbers)
            found = _Recording(self._on_device, self.division.variables, self._pool, own, inputs, numbers, pinned)
        except (RuntimeError, Obstacle) as error:
            self.obstacle = str(error)
            torch.cuda.synchronize(self._device)
            return self._unrecorded(inputs, numbers)
        self.recordings[key] = found
        return found(inputs)

    def _drop(self, key: Any) -> None:
        """Gives up one recording. A replay that is still running uses its memory, also that of the host."""
        dropped = self.recordings.pop(key)
        torch.cuda.synchronize(self._device)
        dropped.release()

    def release(self) -> None:
        with self._lock:
            if self.recordings:
                torch.cuda.synchronize(self._device)
            for each in self.recordings.values():
                each.release()
            self.recordings.clear()
            self._own_inputs.clear()
            self._pinned.clear()

    def _unrecorded(self, inputs: list[Any], numbers: list[Any]) -> Any:
        return self._on_device(None, *[value.to(self._device) for value in inputs], *numbers)

    def _watched(self, key: Any, inputs: list[Any], numbers: list[Any]) -> Any:
        """Runs the device's part and checks whether the host waits for the device. Recording that could leave libraries in a bad state."""
        moved = [value.to(self._device) for value in inputs]
        answers = 0

        def look(asked: list[Answer]) -> None:
            nonlocal answers
            answers += len(asked)
            torch.cuda.set_sync_debug_mode("default")
            _look([bool(each.good) for each in asked], asked)
            torch.cuda.set_sync_debug_mode("warn")

        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            recording.kept = kept = []
            recording.generators = generators = {}
            torch.cuda.set_sync_debug_mode("warn")
            try:
                with device_checks.collected(look):
                    results = self._on_device(None, *moved, *numbers)
                self._pinned[key] = _Pinned(
                    kept, torch.empty(answers, dtype=torch.bool, pin_memory=True), list(generators.values())
                )
                return results
            except (RuntimeError, NotImplementedError) as error:
                self.obstacle = str(error)
            finally:
                torch.cuda.set_sync_debug_mode("default")
                recording.kept = recording.generators = None
                waits = [each for each in caught if "called a synchronizing" in str(each.message)]
                if waits:
                    self.obstacle = f"the host waits for the device in {_line(waits[0])}"
        # The device has no kernel for some integers, which are usually on the host.
        return self._on_device(None, *[self._placement.data(value) for value in inputs], *numbers)


def _line(warning: Any) -> str:
    return f"{os.path.basename(warning.filename)}, line {warning.lineno}"


@dataclass
class _Pinned:
    """What an earlier run of a step found for its recording: memory of the host, which cannot be allocated meanwhile, and random ops."""

    moved: list[Any]  # what the step moves to the device
    answers: torch.Tensor  # of checks of data (device_checks.py)
    generators: list[PhiloxState]  # of the random ops whose numbers the device draws
    results: list[Any] = field(default_factory=list)


def _look(good: list[bool], asked: list[Answer]) -> None:
    """Raises the first refusal."""
    for is_good, answer in zip(good, asked):
        if not is_good:
            answer.raise_refusal()


class _Recording:
    """One recorded run of the device's part. It is called with the inputs, and returns the outputs."""

    def __init__(
        self,
        step: Any,
        variables: Any,
        pool: Any,
        own: _Inputs,
        inputs: list[Any],
        numbers: list[Any],
        pinned: _Pinned,
    ) -> None:
        self._variables = [(state, state.value) for state in variables]
        self._inputs = own
        own.fill(inputs)
        self._graphs: list[torch.cuda.CUDAGraph] = []
        self._looks: list[tuple[torch.Tensor, list[Answer]]] = []  # the answers after each graph, in the host's memory
        self._pool, self._answers, self._generators = pool, pinned.answers, pinned.generators
        # The recording reads the step's constants at fixed addresses, so they are kept alive.
        self._step, self._numbers = step, numbers
        self._kept = recording.kept = []
        recording.spare = list(pinned.moved)
        collects = gc.isenabled()
        gc.disable()  # what is destroyed during a recording could end it
        try:
            with warnings.catch_warnings(), sides:
                self._settle()
                warnings.simplefilter("ignore")  # torch warns about the empty graph that a failed recording leaves
                capture = self._capture = torch.cuda.graph(self._new_graph(), pool=pool, capture_error_mode="relaxed")
                with capture, device_checks.collected(self._record_look):
                    self._results = step(None, *own.moved(), *numbers)
                    self._fetched = [_to_host(result, host) for result, host in zip(self._results, pinned.results)]
        finally:
            recording.kept = recording.spare = None
            if collects:
                gc.enable()
            moved = [(state, value) for state, value in self._variables if state.value is not value]
            for state, value in moved:
                state.value = value
        if moved:
            raise Obstacle(f"the memory of variable {moved[0][0].name} changes")
        self._staying = [i for i, host in enumerate(self._fetched) if host is None]
        self._waits = len(self._staying) < len(self._fetched)

    def _new_graph(self) -> torch.cuda.CUDAGraph:
        self._graphs.append(torch.cuda.CUDAGraph())
        return self._graphs[-1]

    def _record_look(self, asked: list[Answer]) -> None:
        """Ends a graph with the transfer of answers. What follows is recorded as another graph, which runs if the host finds no refusal."""
        if len(asked) > len(self._answers):
            raise Obstacle("it asks more than in an earlier run")
        room, self._answers = self._answers[: len(asked)], self._answers[len(asked) :]
        room.copy_(torch.stack([each.good for each in asked]), non_blocking=True)
        self._looks.append((room, asked))
        self._capture.cuda_graph.capture_end()
        self._capture.cuda_graph = self._new_graph()
        self._capture.cuda_graph.capture_begin(pool=self._pool, capture_error_mode="relaxed")

    def release(self) -> None:
        self._results = self._fetched = self._kept = []
        for graph in self._graphs:
            graph.reset()

    def is_current(self) -> bool:
        """Whether every variable still has the memory that was recorded."""
        return all(state.value is value for state, value in self._variables)

    def _settle(self) -> None:
        for each in self._generators:
            each.settle()

    def _replay(self) -> None:
        *first, last = self._graphs
        for graph, (room, asked) in zip(first, self._looks):
            graph.replay()
            _current_stream(self._inputs.device_index).synchronize()
            _look(room.tolist(), asked)
        last.replay()

    def __call__(self, inputs: list[Any]) -> list[Any]:
        self._inputs.fill(inputs)
        if self._generators:
            with sides:
                self._settle()
                self._replay()
        else:
            self._replay()
        if self._waits:
            _current_stream(self._inputs.device_index).synchronize()
        else:
            self._inputs.used()
        results = [
            torch.empty_like(result) if host is None else _copy(torch.empty_like(host, pin_memory=False), host)
            for result, host in zip(self._results, self._fetched)
        ]
        if self._staying:
            _copy_all([results[i] for i in self._staying], [self._results[i] for i in self._staying])
        return results


_streams: dict[int, torch.cuda.Stream] = {}


def _current_stream(device_index: int) -> torch.cuda.Stream:
    """Returns torch's current stream. `torch.cuda.current_stream` takes longer than a small step."""
    handle = torch._C._cuda_getCurrentRawStream(device_index)
    found = _streams.get(handle)
    if found is None:
        found = _streams[handle] = torch.cuda.current_stream(device_index)
    return found


def _copy(to: torch.Tensor, value: torch.Tensor) -> torch.Tensor:
    """Copies a tensor of the host. torch would wake all its threads for a batch of images, which takes longer than the copy."""
    if _SHARED <= value.nbytes < _WORTH_SHARING and value.dtype == to.dtype and value.is_contiguous():
        ctypes.memmove(to.data_ptr(), value.data_ptr(), value.nbytes)
        return to
    return to.copy_(value)


def _copy_all(to: list[torch.Tensor], values: list[torch.Tensor]) -> None:
    """Copies tensors of the device. One launch serves all of a dtype."""
    if len(to) == 1:
        to[0].copy_(values[0])
    elif to:
        torch._foreach_copy_(to, values)  # pyright: ignore[reportPrivateImportUsage]


def _pinned_like(result: Any) -> torch.Tensor | None:
    """Returns pinned memory for the copy of a small result of the device; None if the result is large or on the host already."""
    if not isinstance(result, torch.Tensor) or not result.is_cuda or result.nbytes > _SMALL:
        return None
    return torch.empty(result.shape, dtype=result.dtype, pin_memory=True)


def _to_host(result: Any, host: torch.Tensor | None) -> torch.Tensor | None:
    """Records the copy of a result to the host's memory. Returns that memory; None if there is none that fits."""
    if host is None or not result.is_cuda or host.shape != result.shape or host.dtype != result.dtype:
        return None
    return host.copy_(result, non_blocking=True)


class _Inputs:
    """The inputs of a recording at fixed addresses. Those that come from the host share one transfer."""

    def __init__(self, inputs: list[torch.Tensor], device: torch.device) -> None:
        self.device_index = device.index or 0
        self._from_host = [i for i, value in enumerate(inputs) if not value.is_cuda]
        self._there = [i for i, value in enumerate(inputs) if value.is_cuda]
        packing = Packing([inputs[i] for i in self._from_host])
        self._on_device = torch.empty(packing.nbytes, dtype=torch.uint8, device=device)
        self._staged = torch.empty(packing.nbytes, dtype=torch.uint8, pin_memory=True)
        self._event = torch.cuda.Event()  # after which the host may change what is staged
        self._views = packing.views(self._staged)
        moved = iter(packing.views(self._on_device))
        self.tensors = [torch.empty_like(value) if value.is_cuda else next(moved) for value in inputs]

    def fill(self, inputs: list[torch.Tensor]) -> None:
        """Copies the inputs to where `moved` expects them. Waits until the device no longer needs the ones before."""
        if self._from_host:
            self._event.synchronize()
            for i, view in zip(self._from_host, self._views):
                _copy(view, inputs[i])
        if self._there:
            _copy_all([self.tensors[i] for i in self._there], [inputs[i] for i in self._there])

    def moved(self) -> list[torch.Tensor]:
        """Records the transfer to the device. Returns the inputs there."""
        if self._from_host:
            self._on_device.copy_(self._staged, non_blocking=True)
        return self.tensors

    def used(self) -> None:
        """Marks the point in the device's work after which inputs may change."""
        if self._from_host:
            self._event.record()
