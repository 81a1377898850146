"""Mutual exclusion: mutexes, and `CriticalSection`, which runs a function while it holds one."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any, NamedTuple

from stoker._src.base import dtypes, forking, nest
from stoker._src.base.export import export
from stoker._src.base.shapes import SCALAR
from stoker._src.graph import context
from stoker._src.graph.definition import BLOCKING, SOURCE, STATEFUL, define
from stoker._src.graph.scopes import name_scope
from stoker._src.graph.tensor import Operation, Tensor
from stoker._src.ops.array import shaping
from stoker._src.ops.control_flow import grouping
from stoker._src.ops.support.waiting import current_run, wait_until


class Mutex:
    """A reentrant lock that belongs to a run or, outside of a run, to a thread.

    Within one run the ops are ordered anyway, so only sections of different runs compete.
    """

    def __init__(self, name: str) -> None:
        self.name = name
        self._changed = forking.condition()
        self._owner: Any = None
        self._held: set[MutexHold] = set()
        forking.in_children(self, Mutex._free)

    def _free(self) -> None:
        """In a forked child: the runs of other threads do not exist."""
        if self._owner not in (current_run(), threading.get_ident()):
            self._owner = None
            self._held.clear()

    def lock(self) -> MutexHold:
        """Waits until no other run holds the mutex, and holds it."""
        run = current_run()
        owner = run if run is not None else threading.get_ident()
        with self._changed:
            wait_until(self._changed, lambda: self._owner in (None, owner), f"Lock of mutex '{self.name}'")
            self._owner = owner
            hold = MutexHold(self)
            self._held.add(hold)
        if run is not None:
            run.at_end.append(hold.release)  # also if an op of the section fails
        return hold

    def release(self, hold: MutexHold) -> None:
        with self._changed:
            self._held.discard(hold)
            if not self._held:
                self._owner = None
                self._changed.notify_all()


class MutexHold:
    """The result of MutexLock. The mutex is held until this is released."""

    def __init__(self, mutex: Mutex) -> None:
        self._mutex = mutex

    def release(self) -> None:
        self._mutex.release(self)


MUTEX = define("MutexV2() -> (resource: resource)", SOURCE | STATEFUL, container="", shared_name="")
MUTEX.shape(lambda: SCALAR)


@MUTEX.kernel
def mutex_kernel(*, container: str, shared_name: str, ctx: Any) -> Mutex:
    name = shared_name or ctx.name
    return ctx.resources.lookup_or_create(container, "mutex", name, lambda: Mutex(name))


MUTEX_LOCK = define("MutexLock(mutex: resource) -> (mutex_lock: variant)", STATEFUL | BLOCKING)
MUTEX_LOCK.kernel(lambda mutex: mutex.lock())
MUTEX_LOCK.shape(lambda mutex: SCALAR)

CONSUME_MUTEX_LOCK = define("ConsumeMutexLock(mutex_lock: variant) -> ()", STATEFUL)
CONSUME_MUTEX_LOCK.kernel(lambda mutex_lock: mutex_lock.release())
CONSUME_MUTEX_LOCK.shape(lambda mutex_lock: ())


# ---- CriticalSection --------------------------------------------------------------------------------------------

SECTIONS, EXECUTIONS = "critical_sections", "critical_section_executions"


class _Execution(NamedTuple):
    """One use of a section. It determines which resources later sections may use."""

    op: Operation
    handle: Tensor
    resources: list[Tensor]
    exclusive_resource_access: bool


class _Running(threading.local):
    def __init__(self) -> None:
        self.sections: list[Any] = []


_running = _Running()


@export("CriticalSection")
class CriticalSection:
    """A part of the program that only one run executes at a time.

        section = tf.CriticalSection()
        total = section.execute(lambda: variable.assign_add(1.0))

    Args:
        name: The name of the mutex.
        shared_name: Sections with the same shared name exclude each other.
        critical_section_def: Not supported, as in TensorFlow.
        import_scope: Goes with `critical_section_def`.

    Raises:
        ValueError: `critical_section_def` is given.
    """

    def __init__(
        self,
        name: str | None = None,
        shared_name: str | None = None,
        critical_section_def: Any = None,
        import_scope: str | None = None,
    ) -> None:
        if critical_section_def is not None:
            if name is not None or shared_name is not None:
                raise ValueError(
                    f"Arguments critical_section_def={critical_section_def} and shared_name={shared_name} are mutually "
                    "exclusive. Please only specify one of them."
                )
            raise ValueError("Argument `critical_section_def` is not supported.")
        if import_scope is not None:
            raise ValueError("Argument `import_scope` goes with `critical_section_def`, which is not supported.")
        with name_scope(name, "CriticalSection") as scope:
            own = scope[:-1] if scope.endswith("/") else scope
            if context.executing_eagerly():
                # The name must be unique because all eager resources share one namespace.
                label = shared_name or f"{own}_{id(self)}"
            else:
                label = shared_name or own
            self._handle: Tensor = MUTEX(shared_name=label, name=scope)
            self._name = own
        if not context.executing_eagerly():
            context.get_default_graph().add_to_collection(SECTIONS, self)

    @property
    def name(self) -> str:
        return self._name

    def execute(self, fn: Callable[[], Any], exclusive_resource_access: bool = True, name: str | None = None) -> Any:
        """Calls `fn` such that no other run is inside the section while the ops of `fn` run.

        Args:
            fn: A function without arguments that returns tensors, in any structure.
            exclusive_resource_access: Whether other sections are forbidden to use the resources that `fn` uses.
            name: A name for the scope.

        Returns:
            The results of `fn`, available when the section has been left.

        Raises:
            ValueError: `fn` enters this section again, or it shares a resource with another section and one of the two asked for exclusive access.
        """
        with name_scope(name, "critical_section_execute"):
            if any(section is self for section in _running.sections):
                raise ValueError(
                    f"Attempting to lock a CriticalSection ({self._name}) in which we are already running. "
                    "This is illegal and may cause deadlocks."
                )
            lock = MUTEX_LOCK(self._handle)
            _running.sections.append(self)
            try:
                if context.executing_eagerly():
                    try:
                        return fn()
                    finally:
                        CONSUME_MUTEX_LOCK(lock)
                return self._built(fn, lock, exclusive_resource_access)
            finally:
                _running.sections.pop()

    def _built(self, fn: Callable[[], Any], lock: Tensor, exclusive: bool) -> Any:
        graph = context.get_default_graph()
        before = len(graph.get_operations())
        with graph.control_dependencies([lock.op]):
            result = fn()
        made = graph.get_operations()[before:]
        self._check_resources(graph, made, lock.op, exclusive)
        outputs = [
            each.op if isinstance(each, Tensor) else each for each in nest.flatten(result, expand_composites=True)
        ]
        with graph.control_dependencies([*made, *(each for each in outputs if isinstance(each, Operation))]):
            consume = CONSUME_MUTEX_LOCK(lock)

        def after(each: Any) -> Any:
            if isinstance(each, Operation):
                return grouping.group(each, consume)
            with graph.control_dependencies([consume]):
                return shaping.identity(each)

        return nest.map_structure(after, result, expand_composites=True)

    def _check_resources(self, graph: Any, made: list[Operation], lock: Operation, exclusive: bool) -> None:
        own = set(made)
        used = {
            id(tensor): tensor
            for op in made
            for tensor in op.inputs
            if tensor.dtype.base_dtype is dtypes.resource and tensor.op not in own and tensor is not self._handle
        }
        for other in graph.get_collection(EXECUTIONS):
            if other.handle is self._handle or not (exclusive or other.exclusive_resource_access):
                continue
            shared = [tensor.name for tensor in other.resources if id(tensor) in used]
            if shared:
                raise ValueError(
                    f"This execution would access resources: {shared}. Either this lock (CriticalSection: {self._name}) or "
                    f"lock '{other.handle.op.name}' requested exclusive resource access of this resource. "
                    "Did you mean to call execute with keyword argument exclusive_resource_access=False?"
                )
        graph.add_to_collection(EXECUTIONS, _Execution(lock, self._handle, list(used.values()), exclusive))
