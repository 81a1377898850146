"""`Worker`: the state that outlives single runs. Sessions and eager mode each run their plans on a worker."""

from __future__ import annotations

import weakref
from functools import cached_property
from typing import Any

from stoker._src.base import forking
from stoker._src.graph.tensor import Operation
from stoker._src.ops.support.waiting import RunState, current_run
from stoker._src.runtime.devices import Placement
from stoker._src.runtime.functions.bodies import FunctionCompiler
from stoker._src.runtime.locks import VariablesLock
from stoker._src.runtime.resources import NodeContext, ResourceManager


class RunningSteps:
    """The steps that one client of a worker is running, so that they can be cancelled together."""

    def __init__(self, timeout_in_ms: int = 0) -> None:
        """`timeout_in_ms` is the default timeout of steps; 0 means no timeout."""
        self.closed = False
        self._timeout_in_ms = timeout_in_ms
        self._guard = forking.lock()
        self._states: set[RunState] = set()
        _all_running_steps.add(self)
        forking.in_children(self, RunningSteps._keep_own)

    def _keep_own(self) -> None:
        """In a forked child: the steps of other threads do not exist."""
        self._states &= {current_run()}

    def begin(self, timeout_in_ms: int = 0) -> RunState:
        """Returns the state of a new step. If the client is closed, the step is cancelled immediately.

        A step that Python code starts within another one ends with it.
        """
        state = RunState(timeout_in_ms or self._timeout_in_ms)
        with self._guard:
            self._states.add(state)
            if self.closed:
                state.cancel()
        outer = current_run()
        if outer is not None:
            outer.adopt(state)
        return state

    def end(self, state: RunState) -> None:
        with self._guard:
            self._states.discard(state)
        outer = current_run()
        if outer is not None:
            outer.disown(state)

    def cancel(self) -> None:
        """Cancels the running steps."""
        with self._guard:
            states = list(self._states)
        for state in states:
            state.cancel()

    def close(self) -> None:
        """Cancels the running steps and all later ones."""
        with self._guard:
            self.closed = True
        self.cancel()


_all_running_steps: weakref.WeakSet[RunningSteps] = weakref.WeakSet()


def all_running_steps() -> list[RunningSteps]:
    """Returns the running steps of every client in this process."""
    return list(_all_running_steps)


class Worker:
    """Owns resources and the lock on variables, chooses devices, and compiles functions.

    Sessions that share a worker share its resources, by container and `shared_name` (or the node's name). Each session has
    separate `RunningSteps`, so closing one does not affect the others.
    """

    def __init__(self, config: Any = None, *, places_variables: bool = True) -> None:
        """`config` is a ConfigProto, or None for the defaults.

        If the worker does not place variables, each variable is on the device of its initial value, as in eager mode.
        """
        self.config = config
        self._places_variables = places_variables
        self.resources = ResourceManager()
        self.variables_lock = VariablesLock()
        self._contexts: weakref.WeakKeyDictionary[Operation, NodeContext] = weakref.WeakKeyDictionary()
        self._clients: weakref.WeakSet[RunningSteps] = weakref.WeakSet()

    @cached_property
    def placement(self) -> Placement:
        return Placement(self.config)

    @cached_property
    def compiler(self) -> FunctionCompiler:
        return FunctionCompiler(self.node_context, self.placement, self.variables_lock, self.config)

    def look_for_devices(self) -> None:
        """Detects the devices again, because a program may have hidden some (`tf.config.set_visible_devices`) since the last use."""
        self.__dict__.pop("placement", None)
        self.__dict__.pop("compiler", None)

    def node_context(self, op: Operation) -> NodeContext:
        """Returns the `ctx` for the kernel of `op`. It is the same at every run."""
        found = self._contexts.get(op)
        if found is None:
            device = self.placement.variable_device(op) if self._places_variables else None
            found = self._contexts.setdefault(op, NodeContext(op.name, self.resources, device))
        return found

    def forget_states(self) -> None:
        """Resets the state of every node, so that random ops repeat their first numbers."""
        for context in list(self._contexts.values()):
            context.state = None

    def client(self, timeout_in_ms: int = 0) -> RunningSteps:
        """Returns the running steps of an additional client."""
        steps = RunningSteps(timeout_in_ms)
        self._clients.add(steps)
        return steps

    def close(self) -> None:
        """Cancels the steps of all clients and drops all resources."""
        for steps in list(self._clients):
            steps.close()
        self.resources.reset()
