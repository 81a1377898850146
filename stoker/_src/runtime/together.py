"""Decides whether the host runs all of the small steps of a program with a GPU.

Each small step is measured on the host and on the GPU (plan/gpu/on_host.py), but what one costs depends on where the others run: a step of the host
has to fetch the variables that a step of the GPU has changed. A program that copies variables, asks for actions and updates in turns may
leave each step where it is, although all of them together would be faster on the host. So they are tried together: all runs are timed for a while
as each has been decided, then for as long on the host, and the better of both is kept.
"""

from __future__ import annotations

import statistics
import weakref
from typing import Any

from stoker._src.base import forking

_ENOUGH = 6  # runs of each step that writes in a trial
_MOST = 3000  # runs of a trial
_UNCOUNTED = 3  # runs of each step that follow a change: they fetch variables and find their number of threads
_UNUSUAL = 4  # times the median: a longer run was interrupted and counts as that long
_CLEARLY_LESS = 0.97  # of the time of separate decisions, for the host to run all
_WORTH_A_TRIAL = 3.0  # times that time, which the host may seem to take by the steps' own measurements


class Trial:
    """The times of all runs for a while, by step."""

    def __init__(self) -> None:
        self.times: dict[Any, list[float]] = {}
        self._unsettled: dict[Any, list[float]] = {}  # of runs that tried another number of threads
        self._runs = 0

    def note(self, step: Any, seconds: float, settled: bool) -> None:
        self._runs += 1
        (self.times if settled else self._unsettled).setdefault(step, []).append(seconds)

    @property
    def is_long_enough(self) -> bool:
        if self._runs >= _MOST:
            return True
        least = min((len(times) for step, times in self.times.items() if step.writes), default=0)
        return least >= _ENOUGH + _UNCOUNTED

    def usual(self, step: Any) -> float | None:
        """Returns the mean time of a step's runs; None for one that has hardly run."""
        times = self.times.get(step, [])[_UNCOUNTED:]
        if not times:
            unsettled = sorted(self._unsettled.get(step, ()))
            return unsettled[len(unsettled) // 4] if unsettled else None
        most = _UNUSUAL * statistics.median(times)
        return statistics.fmean(min(each, most) for each in times)


class Together:
    """The steps that use the variables of one worker, and may run on the host. Each tells what was decided for it alone (`chosen`)."""

    def __init__(self) -> None:
        self.on_host = False  # whether the host runs all of them, by a decision or for a trial
        self.trial: Trial | None = None  # the times that are being taken
        self._apart: Trial | None = None  # those of separate decisions
        self._steps: weakref.WeakSet[Any] = weakref.WeakSet()
        self._guard = forking.lock()

    def decided(self, step: Any) -> None:
        """Notes that it was decided where a step runs by itself. That may change what is best for all."""
        with self._guard:
            self._steps.add(step)
        self.reconsider()

    def reconsider(self) -> None:
        """Leaves each step to its own decision. If one is for the GPU, the host is going to be tried with all of them."""
        with self._guard:
            self.on_host, self._apart = False, None
            differ = len(self._steps) > 1 and not all(step.chosen for step in self._steps)
            self.trial = Trial() if differ else None

    def note(self, step: Any, seconds: float, *, settled: bool) -> None:
        """Counts a run of a step that was decided about, and that is `settled` on its number of threads. Ends the trial if there are enough."""
        with self._guard:
            trial, apart = self.trial, self._apart
            if trial is None:
                return
            trial.note(step, seconds, settled)
            if not trial.is_long_enough:
                return
            if apart is None and self._is_promising(trial):
                self._apart, self.on_host, self.trial = trial, True, Trial()
                return
            self._apart = self.trial = None
            self.on_host = apart is not None and self._is_better(apart, trial)
        if self.on_host:
            for each in trial.times:
                each.expect(trial.usual(each))

    def _is_promising(self, apart: Trial) -> bool:
        """Whether the host might be faster if no variable had to move, as far as the steps' own measurements tell."""
        known = [(len(times), apart.usual(step) or 0.0, step.least_on_host) for step, times in apart.times.items()]
        usual = sum(runs * seconds for runs, seconds, _ in known)
        return sum(runs * host for runs, _, host in known) < _WORTH_A_TRIAL * usual

    def _is_better(self, apart: Trial, on_host: Trial) -> bool:
        before = after = 0.0
        for step, times in apart.times.items():
            one, other = apart.usual(step), on_host.usual(step)
            if one is not None and other is not None:
                before += len(times) * one
                after += len(times) * other
        return after < _CLEARLY_LESS * before
