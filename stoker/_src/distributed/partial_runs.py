"""Partial runs at a master: the values that are known so far stay there between the steps."""

from __future__ import annotations

import itertools
import threading
from typing import Any

from stoker._src.base.errors import InvalidArgumentError
from stoker._src.distributed.master import Master, MasterSession
from stoker._src.graph.tensor import Tensor
from stoker._src.runtime.fetches import FetchPlan
from stoker._src.runtime.session import PartialRun


class _Runner:
    """Runs what a partial run asks for as steps of a session."""

    def __init__(self, session: MasterSession) -> None:
        self._session = session

    def converter(self, tensor: Tensor) -> Any:
        return lambda value: value

    def plan(self, graph: Any, fetch: FetchPlan, feeds: list[Tensor]) -> Any:
        divided = self._session.divided(
            tuple(tensor.name for tensor in feeds),
            tuple(tensor.name for tensor in fetch.tensors),
            tuple(op.name for op in fetch.targets),
        )
        return _Plan(divided)


class _Plan:
    def __init__(self, divided: Any) -> None:
        self._divided = divided

    def execute(self, values: list[Any]) -> list[Any]:
        return self._divided.run(values)


class PartialRuns:
    """The partial runs of all sessions of a master."""

    def __init__(self, master: Master) -> None:
        self._master = master
        self._guard = threading.Lock()
        self._numbers = itertools.count()
        self._runs: dict[str, tuple[str, PartialRun]] = {}

    def set_up(self, session_handle: str, feeds: list[str], fetches: list[str], targets: list[str]) -> str:
        session = self._master.session(session_handle)
        tensors = {session.tensor(name, "FeedInputs: unable to find feed output") for name in feeds}
        run = PartialRun(self._fetch(session, fetches, targets), tensors)
        handle = f"{session_handle}_{next(self._numbers)}"
        with self._guard:
            self._runs[handle] = (session_handle, run)
        return handle

    def _fetch(self, session: MasterSession, fetches: list[str], targets: list[str]) -> FetchPlan:
        wanted = [session.tensor(name, "FetchOutputs node") for name in fetches]
        return FetchPlan(session.graph(), [*wanted, *(session.operation(name) for name in targets)])

    def go_on(
        self, handle: str, session_handle: str, values: dict[str, Any], fetches: list[str], targets: list[str]
    ) -> list[Any]:
        """Continues a partial run with the values of further feeds. Returns the values of `fetches`."""
        with self._guard:
            found = self._runs.get(handle)
        if found is None or found[0] != session_handle:
            raise InvalidArgumentError(
                None, None, f"Must run PartialRunSetup before performing partial runs: {handle:.100}"
            )
        session = self._master.session(session_handle)
        feeds = {
            session.tensor(name, "FeedInputs: unable to find feed output"): value for name, value in values.items()
        }
        run = found[1]
        fetch = self._fetch(session, fetches, targets)
        run.go_on(session.graph(), _Runner(session), fetch, feeds)  # type: ignore[arg-type]
        results = [run.known[session.tensor(name, "FetchOutputs node")] for name in fetches]
        run.forget_if_ended()
        return results

    def forget(self, session_handle: str) -> None:
        with self._guard:
            self._runs = {handle: each for handle, each in self._runs.items() if each[0] != session_handle}
