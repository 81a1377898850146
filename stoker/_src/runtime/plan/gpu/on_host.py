"""Steps that the host runs faster than the GPU.

A run on a GPU takes some thirty microseconds for the transfer of its feeds, a launch and the wait for its results, however small it is:
a policy that is asked for one action, a score of one example. A step that cannot be recorded (cuda_graphs.py) takes ten microseconds for each
op. The host may be faster, so both ways are measured when such a run repeats, and the faster one is kept while it stays faster.

- A run that only reads variables works on copies of them (`OnHost`), beside other runs. The copies are taken again after a run has written variables.
- A run that writes variables borrows them (`BorrowingOnHost`): they are on the host until a run wants them on the device (lent_variables.py). If it
  waits for Python code, it borrows them again afterwards.
- Random ops go on with their numbers on either side (ops/random/bits/philox.py).
- What is best for each step may not be best for all of them (runtime/together.py).

Either way the measurement tells what the copies cost in this program. STOKER_RUNS_ON_HOST=0 turns this off.
"""

from __future__ import annotations

import os
import statistics
import time
from collections.abc import Callable, Iterator
from typing import Any

import torch

from stoker._src.base.shapes import Shape
from stoker._src.graph.definition import Trait
from stoker._src.ops.variables.state_ops import VariableState
from stoker._src.runtime.devices import Placement
from stoker._src.runtime.lent_variables import Transfers
from stoker._src.runtime.locks import VariablesLock
from stoker._src.runtime.plan import threads
from stoker._src.runtime.plan.emit import Step, emit
from stoker._src.runtime.plan.instructions import Instruction, values_of
from stoker._src.runtime.plan.known_shapes import Known
from stoker._src.runtime.plan.planner import Planner
from stoker._src.runtime.together import Together

# What the host is measured with: instructions of a plan, bytes of its variables, and elements of all its tensors. More is work for a GPU in
# any case. A recorded step is faster there from a smaller size on.
_MOST_INSTRUCTIONS, _MOST_UNRECORDED = 2000, 5000
_MOST_BYTES, _MOST_UNRECORDED_BYTES = 1 << 22, 1 << 24
_MOST_ELEMENTS, _MOST_UNRECORDED_ELEMENTS = 1 << 21, 1 << 24
_TRIALS = 8  # measured runs of each kind
_IN_A_ROW = 5  # runs of a kind that borrow variables before the other kind has its turn
_CLEARLY_LONGER = 1e-3  # seconds of a run of the host that need no further measurement
_FEW = 3  # such runs; the first compile, and one alone may have been interrupted
_UNCOUNTED = 2  # first runs of each kind, which compile
_WORTH_SHARING = 3e-4  # seconds from which a run of the host is measured with several threads
_TRIALS_SHARED = 20  # such runs, most of which try how many
_UNUSUAL = 4  # times the median: a longer run was interrupted and counts as that long
_NEXT_TRY, _LATER = 1000, 10  # runs of the GPU until the host is measured again, and the factor between such tries
_CLEARLY_FASTER = 0.9  # of the GPU's time, for the host to be chosen
_NO_LONGER_FASTER = 1.3  # of the GPU's time, for both to be measured again
_NO_LONGER_USUAL = 2.0  # of the host's time where it runs all steps, for that to be measured again
_UNWATCHED = 15  # of 16 runs of the host that are not timed


def read_variables(planner: Planner, placement: Placement, *, recorded: bool = True) -> list[VariableState] | None:
    """Returns the variables that a plan reads; None if the host cannot run the plan on copies of them, or has too much to do."""
    if planner.writes_variables or planner.blocks:
        return None
    return _variables(planner, placement, recorded)


def borrowed_variables(planner: Planner, placement: Placement, *, recorded: bool) -> list[VariableState] | None:
    """Returns the variables of a plan that writes some; None if the host cannot run the plan with them, or has too much to do."""
    return _variables(planner, placement, recorded) if planner.writes_variables else None


def _variables(planner: Planner, placement: Placement, recorded: bool) -> list[VariableState] | None:
    """Returns the variables of a plan that is small enough for the host. One that is not recorded may be larger."""
    if os.environ.get("STOKER_RUNS_ON_HOST") == "0" or planner.compile_function.precision is not None:
        return None
    if len(planner.instructions) > (_MOST_INSTRUCTIONS if recorded else _MOST_UNRECORDED):
        return None
    found: dict[int, VariableState] = {}
    elements = 0
    for each, own in _with_bodies(planner):
        op = each.op
        if op is None or each.traits & Trait.RETAINS or each.kind in ("begin", "finish"):
            return None
        if each.traits & Trait.BLOCKING and not (op.definition.planning.on_host or each.steps):
            return None  # what it waits for may be on the device
        wanted = placement.requested(op)
        if wanted is not None and wanted.type != "cpu":
            return None  # it must run there
        for value in values_of(each.arguments):
            if isinstance(value.constant, VariableState):
                found[id(value.constant)] = value.constant
            elif value.handle and not value.is_constant:
                return None
        elements += sum(own.shape_of(tensor).size or 0 for tensor in op.outputs)
    size = sum(state.value.nbytes for state in found.values() if isinstance(state.value, torch.Tensor))
    most = (_MOST_BYTES, _MOST_ELEMENTS) if recorded else (_MOST_UNRECORDED_BYTES, _MOST_UNRECORDED_ELEMENTS)
    return list(found.values()) if size <= most[0] and elements <= most[1] else None


def _with_bodies(planner: Planner) -> Iterator[tuple[Instruction, Planner]]:
    """Returns the instructions of a plan and of the functions that it calls, each with its plan."""
    for each in planner.instructions:
        yield each, planner
        for step in each.steps:
            yield from _with_bodies(step.planner)


def _step(make_planner: Callable[..., Planner], values: Any) -> Step:
    """Compiles a plan for the host and feeds of these shapes."""
    planner = make_planner(known=[Known(Shape(value.shape)) for value in values])
    planner.compile_function = planner.compile_function.on_host()
    return emit(planner.build())


class OnHost:
    """One plan for feeds of some shapes, which the host runs on copies of variables."""

    in_a_row = 1  # a run in between that writes variables is part of the measurement

    def __init__(self, make_planner: Callable[..., Planner], values: Any, lock: VariablesLock) -> None:
        self.step = _step(make_planner, values)
        self.work = threads.Tuned(self.step.function, shares=False)
        self._lock = lock
        self._copies: list[tuple[VariableState, VariableState]] = []
        # What was taken of each variable (its value, and the version of it), and the count of runs that wrote until then.
        self._taken: list[tuple[VariableState, Any, int]] = []
        self._taken_at = -1
        self._are_shared = False  # whether all of it is memory of the host, which shows what is written later
        self._transfers = Transfers()
        copies: dict[int, VariableState] = {}
        for step in self.step.with_functions():
            for name, item in step.constants.items():
                if isinstance(item, VariableState):
                    if id(item) not in copies:
                        copies[id(item)] = VariableState(item.name, item.dtype, item.shape, torch.device("cpu"))
                        self._copies.append((item, copies[id(item)]))
                    step.function.__globals__[name] = copies[id(item)]

    def __call__(self, holding: Any, values: Any) -> Any:
        if not self._are_current():
            self._take()
        return self.work(holding, *values)

    def _are_current(self) -> bool:
        """Whether no variable has changed since it was copied. Code outside of sessions may have written to its memory."""
        shared = self._are_shared
        if not shared and self._taken_at != self._lock.writes:
            return False
        for state, value, version in self._taken:
            if state.value is not value or not (shared or getattr(value, "_version", 0) == version):
                return False
        return True

    def _take(self) -> None:
        """Copies the variables that are on the device, all in one transfer. The others are used where they are."""
        began = time.perf_counter()
        moving: dict[torch.device, list[tuple[torch.Tensor, VariableState]]] = {}
        taken = []
        for state, copied in self._copies:
            value = state.value
            taken.append((state, value, getattr(value, "_version", 0)))
            if isinstance(value, torch.Tensor) and not value.is_cpu:
                moving.setdefault(value.device, []).append((value, copied))
            else:
                copied.value = value
        for gpu, pairs in moving.items():
            values = [value for value, _ in pairs]
            for (_, copied), found in zip(pairs, self._transfers.of(values, gpu).to_host(values)):
                copied.value = found  # what another thread that takes copies at the same time assigns, too
        if moving:
            self._lock.lent.waited += time.perf_counter() - began
        self._taken, self._taken_at, self._are_shared = taken, self._lock.writes, not moving

    def take_waited(self) -> float:
        """Nobody waits for what this plan leaves on a device."""
        return 0.0


class BorrowingOnHost:
    """One plan for feeds of some shapes, which the host runs with the variables themselves. The run holds the lock alone."""

    in_a_row = _IN_A_ROW  # variables need not move between runs of the host

    def __init__(
        self, make_planner: Callable[..., Planner], values: Any, lock: VariablesLock, gpu: torch.device
    ) -> None:
        self.step = _step(make_planner, values)
        self.work = threads.Tuned(self.step.function, shares=False)
        self._lock, self._gpu = lock, gpu
        used: dict[int, VariableState] = {}
        written: set[int] = set()
        for each, _ in _with_bodies(self.step.planner):
            states = [value.constant for value in values_of(each.arguments) if value.handle]
            used.update((id(state), state) for state in states)
            if each.traits & Trait.WRITES:
                written.update(map(id, states))
        for step in self.step.with_functions():
            used.update((id(item), item) for item in step.constants.values() if isinstance(item, VariableState))
        self._states = [(state, key in written) for key, state in used.items() if isinstance(state, VariableState)]
        self._lent_at = -1  # the count of returns at which all of them were lent

    def __call__(self, holding: Any, values: Any) -> Any:
        """Runs the step. The caller holds the lock for writing."""
        holding.settles(self._lend)
        return self.work(holding, *values)

    def _lend(self) -> None:
        lent = self._lock.lent
        if self._lent_at != lent.returns:
            lent.lend(self._states, self._gpu, self._lock.writes)
            self._lent_at = lent.returns

    def take_waited(self) -> float:
        """Returns the seconds that other runs of the host have waited for variables since the last call, because this plan ran on the device."""
        waited, self._lock.lent.waited = self._lock.lent.waited, 0.0
        return waited


class Choice:
    """Decides by measurement whether the host or the GPU runs a plan for feeds of some shapes."""

    def __init__(self, on_host: OnHost | BorrowingOnHost, together: Together, *, writes: bool) -> None:
        self.on_host = on_host
        self.writes = writes
        self.chosen: bool | None = None  # whether the host is faster
        self._together = together
        self._next_try = _NEXT_TRY
        self._hopeless = False
        self._begin()

    def _begin(self) -> None:
        self.chosen = None
        self._times: dict[bool, list[float]] = {True: [], False: []}
        self._next, self._left = False, self.on_host.in_a_row
        self._runs, self._late, self._limit = 0, 0, 0.0
        self.on_host.take_waited()

    @property
    def remark(self) -> str | None:
        if not self.chosen and not (self.chosen is False and self._together.on_host):
            return None
        host, gpu = (self._typical(kind) * 1e6 for kind in (True, False))
        how = "with their variables" if isinstance(self.on_host, BorrowingOnHost) else "on copies of variables"
        why = "" if self.chosen else ", because the host runs all small steps of this program faster"
        return f"runs on the host, {how}: {host:.0f} us, on the GPU {gpu:.0f} us{why}"

    @property
    def least_on_host(self) -> float:
        """The time of a run of the host that fetches nothing."""
        times = self._times[True]
        return statistics.median(times[len(times) // 2 :]) if times else 0.0

    def expect(self, seconds: float | None) -> None:
        """Notes how long a run of the host takes if the host runs all steps."""
        self._late, self._limit = 0, max(self._limit, _NO_LONGER_USUAL * (seconds or 0.0))
        self._share()

    def _enough(self, kind: bool) -> int:
        return _UNCOUNTED + (_TRIALS_SHARED if kind and self.on_host.work.shares else _TRIALS)

    def _typical(self, kind: bool) -> float:
        """The usual time of a run. A reading run pays for copies after each write, so the mean counts; else the median.

        With several threads that is the time of the better numbers of them.
        """
        counted = self._times[kind][_UNCOUNTED:] or self._times[kind]
        if kind and self.on_host.work.shares:
            return sorted(counted)[len(counted) // 4]
        usual = statistics.median(counted[-_TRIALS:])
        return (
            statistics.fmean(min(each, _UNUSUAL * usual) for each in counted) if self.on_host.in_a_row == 1 else usual
        )

    def run(self, on_gpu: Callable[[], Any], holding: Any, values: Any) -> Any:
        together, is_open = self._together, self.chosen is None
        kind = self._next if is_open else self.chosen or together.on_host
        if not is_open and together.trial is None:
            self._runs += 1
            if kind and self._runs & _UNWATCHED and not self._late:
                return self.on_host(holding, values)
            if not kind:
                if self._runs >= self._next_try and not self._hopeless:
                    self._next_try *= _LATER
                    self._begin()
                return on_gpu()
        began = time.perf_counter()
        results = self.on_host(holding, values) if kind else on_gpu()
        if not kind and any(isinstance(each, torch.Tensor) and each.is_cuda for each in results):
            torch.cuda.synchronize()
        seconds = time.perf_counter() - began
        if is_open:
            self._note(kind, seconds)
        elif together.trial is not None:
            together.note(self, seconds, settled=not (kind and self.on_host.work.is_trying))
        else:
            self._watch(seconds)
        return results

    def _watch(self, seconds: float) -> None:
        """Looks whether the host still runs as fast as it did. Many late runs: the machine has other work, or the data has grown."""
        if self.on_host.work.is_trying:
            return
        self._late = self._late + 1 if seconds > self._limit else 0
        if self._late > _TRIALS:
            if self.chosen:
                self._begin()
            else:
                self._late = 0
                self._together.reconsider()

    def _note(self, kind: bool, seconds: float) -> None:
        """Counts a run, and decides if there are enough."""
        waited = self.on_host.take_waited()
        if waited and self._times[False]:
            self._times[False][-1] += waited
        self._times[kind].append(seconds)
        self._left -= 1
        if self._left <= 0:
            self._next, self._left = not self._next, self.on_host.in_a_row
        host, gpu = self._times[True], self._times[False]
        if len(host) == _UNCOUNTED + _FEW and not self.on_host.work.shares and min(host) > _WORTH_SHARING:
            self.on_host.work.share()
            host.clear()
        if all(len(times) >= self._enough(each) for each, times in self._times.items()):
            self.chosen = self._typical(True) < _CLEARLY_FASTER * self._typical(False)
            self._limit = _NO_LONGER_FASTER * self._typical(False)
        elif min(len(host), len(gpu)) > _UNCOUNTED and min(gpu) > max(_CLEARLY_LONGER, 4 * min(host)):
            self.chosen, self._limit = True, _NO_LONGER_FASTER * min(gpu)
        elif len(host) > _FEW and len(gpu) > 1 and min(host) > max(_CLEARLY_LONGER, 4 * min(gpu)):
            self.chosen, self._hopeless = False, True
        if self.chosen is not None:
            self._share()
            self._together.decided(self)

    def _share(self) -> None:
        """Lets a run of the host find its number of threads. Until it was chosen, one was enough to compare with."""
        if self.chosen or self._together.on_host:
            self.on_host.work.share()
