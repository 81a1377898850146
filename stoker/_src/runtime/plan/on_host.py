"""Small steps that the host runs faster than the GPU.

A run on a GPU takes some thirty microseconds for the transfer of its feeds, a launch and the wait for its results, however small it is:
a policy that is asked for one action, a score of one example. If such a run only reads variables, the host can do it with copies of
them. Both ways are measured in turns when the run repeats, and the faster one is kept. The copies are taken again after a run
has written variables, so the measurement tells what that costs in this program. STOKER_RUNS_ON_HOST=0 turns this off.
"""

from __future__ import annotations

import copy
import os
import time
from collections.abc import Callable
from typing import Any

import torch

from stoker._src.base.shapes import Shape
from stoker._src.graph.definition import Trait
from stoker._src.ops.variables.state_ops import VariableState
from stoker._src.runtime.devices import Placement
from stoker._src.runtime.locks import VariablesLock
from stoker._src.runtime.plan.emit import Step, emit
from stoker._src.runtime.plan.instructions import values_of
from stoker._src.runtime.plan.known_shapes import Known
from stoker._src.runtime.plan.planner import Planner

_MOST_INSTRUCTIONS = 100
_MOST_BYTES = 1 << 22  # of the variables that a run reads
_TRIALS = 8  # measured runs of each kind
_CLEARLY_LONGER = 1e-3  # seconds of a run of the host that need no further measurement
_UNCOUNTED = 2  # first runs of each kind, which compile


class Nowhere:
    """The placement of work of the host: everything stays where it is."""

    gpu = None

    def data(self, value: Any) -> Any:
        return value

    def kernel(self, op: Any, kernel: Any) -> tuple[str, Any]:
        return "", kernel


def read_variables(planner: Planner, placement: Placement) -> list[VariableState] | None:
    """Returns the variables that a plan reads; None if the host cannot run the plan on copies of them."""
    if os.environ.get("STOKER_RUNS_ON_HOST") == "0" or len(planner.instructions) > _MOST_INSTRUCTIONS:
        return None
    if planner.writes_variables or planner.blocks or planner.loops or planner.compile_function.precision is not None:
        return None
    found: dict[int, VariableState] = {}
    for each in planner.instructions:
        op = each.op
        if op is None or each.steps or each.kind not in ("kernel", "read") or each.traits & Trait.RETAINS:
            return None
        on_gpu = op.definition.planning.on_gpu
        if (on_gpu is not None and on_gpu(op) is not None) or placement.requested(op) is not None:
            return None  # it draws random numbers there
        for value in values_of(each.arguments):
            if value.handle:
                if not isinstance(value.constant, VariableState):
                    return None
                found[id(value.constant)] = value.constant
    size = sum(state.value.nbytes for state in found.values() if isinstance(state.value, torch.Tensor))
    return list(found.values()) if size <= _MOST_BYTES else None


class OnHost:
    """One plan for feeds of some shapes, which the host runs on copies of variables."""

    def __init__(self, make_planner: Callable[..., Planner], values: Any, lock: VariablesLock) -> None:
        planner = make_planner(known=[Known(Shape(value.shape)) for value in values])
        planner.compile_function = copy.copy(planner.compile_function)
        planner.compile_function.placement = Nowhere()
        self.step: Step = emit(planner.build())
        self._lock = lock
        self._copies: list[tuple[VariableState, VariableState]] = []
        self._taken: Any = None  # what says whether variables have changed since they were copied
        for name, item in self.step.constants.items():
            if isinstance(item, VariableState):
                copied = VariableState(item.name, item.dtype, item.shape, torch.device("cpu"))
                self._copies.append((item, copied))
                self.step.function.__globals__[name] = copied

    def __call__(self, holding: Any, values: Any) -> Any:
        now = [self._lock.writes]
        for state, _ in self._copies:
            value = state.value
            now += [id(value), getattr(value, "_version", 0)]
        if now != self._taken:
            for state, copied in self._copies:
                copied.value = state.value.cpu() if isinstance(state.value, torch.Tensor) else state.value
            self._taken = now
        return self.step.function(holding, *values)


class Choice:
    """Decides by measurement whether the host or the GPU runs a plan for feeds of some shapes."""

    def __init__(self, on_host: OnHost) -> None:
        self.on_host = on_host
        self._times: dict[bool, list[float]] = {True: [], False: []}
        self._next = True
        self.chosen: bool | None = None  # whether the host is faster

    @property
    def remark(self) -> str | None:
        if not self.chosen:
            return None
        host, gpu = (self._mean(kind) * 1e6 for kind in (True, False))
        return f"runs on the host, on copies of variables: {host:.0f} us, on the GPU {gpu:.0f} us"

    def _mean(self, kind: bool) -> float:
        counted = self._times[kind][_UNCOUNTED:]
        return sum(counted) / len(counted)

    def run(self, on_gpu: Callable[[], Any], holding: Any, values: Any) -> Any:
        if self.chosen is not None:
            return self.on_host(holding, values) if self.chosen else on_gpu()
        kind = self._next
        self._next = not kind
        began = time.perf_counter()
        results = self.on_host(holding, values) if kind else on_gpu()
        if not kind and any(isinstance(each, torch.Tensor) and each.is_cuda for each in results):
            torch.cuda.synchronize()
        self._times[kind].append(time.perf_counter() - began)
        host, gpu = self._times[True], self._times[False]
        if min(len(host), len(gpu)) >= _TRIALS + _UNCOUNTED:
            self.chosen = self._mean(True) < self._mean(False)
        elif host and len(gpu) > 1 and min(host) > max(_CLEARLY_LONGER, 4 * min(gpu)):
            self.chosen = False
        return results
