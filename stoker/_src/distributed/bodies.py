"""Divides branches, loops and functions that have ops on several tasks.

A branch, loop or call has a home: the task that its device names, else that of the variables and queues it uses if they are on one task,
else the master's own. The home runs its bodies. What a body has on another task is replaced:

- A variable of another task that a loop or a function only reads is read once, before it. Its value takes the place of its handle.
- Other ops of another task, such as lookups, updates and queue ops, become parts of graphs, which the home calls (`StokerTaskCall`). Ops of the same
  task that can run together form one part. A call is an ordinary step of that part, so nothing has to be agreed on about iterations.

What the home does not need any more, the handle of a remote variable, is replaced by a zero, so that all positions stay the same.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from stoker._src.base import dtypes
from stoker._src.base.devices import DeviceSpec
from stoker._src.base.errors import InvalidArgumentError
from stoker._src.base.shapes import SCALAR, UNKNOWN_SHAPE, Shape
from stoker._src.distributed.partition import partition
from stoker._src.distributed.placer import CALLS, Placer, bound_inputs, task_name, updating_op
from stoker._src.distributed.rendezvous import task_of
from stoker._src.graph import context
from stoker._src.graph.definition import Trait, find_definition
from stoker._src.graph.function_graph import FuncGraph, Function, note_handle, unique_function_name
from stoker._src.graph.graph import Graph
from stoker._src.graph.interchange.function_def import function_refs
from stoker._src.graph.tensor import Operation, Tensor
from stoker._src.ops.control_flow.task_calls import TASK_CALL
from stoker._src.runtime.plan.pruning import has_effect, in_order

_LOOPS = ("While", "StatelessWhile")
_BRANCHES = ("If", "StatelessIf", "Case", "StatelessCase")
_READS = ("ReadVariableOp", "VariableShape")
_UNSENDABLE = (dtypes.resource, dtypes.variant)


@dataclass(frozen=True)
class _Remote:
    """A handle or reference of another task. If `by_value`, the value of the variable is passed instead."""

    tensor: Tensor  # of the whole graph
    device: str
    by_value: bool

    @property
    def task(self) -> str:
        return task_of(self.device)


@dataclass
class Cluster:
    """What is known of the tasks: DeviceAttributes by name, the master's own task, the tasks that are stoker's, and how ops are placed."""

    devices: dict[str, Any]
    local: str
    own: set[str]
    soft: bool

    def placer(self, graph: Graph, free: frozenset[Operation] = frozenset()) -> Placer:
        return Placer(graph, list(self.devices.values()), self.local, soft=self.soft, free=free)

    def device_of(self, task: str) -> str:
        return next(name for name in self.devices if task_of(name) == task)

    def named(self, op: Operation) -> str | None:
        """Returns the task that an op names; None if it names none, or one that is not there."""
        if not op.device:
            return None
        spec = DeviceSpec.from_string(op.device)
        found = task_name(spec)
        return found if spec.job and any(task_of(name) == found for name in self.devices) else None


def divide_bodies(graph: Graph, cluster: Cluster) -> Graph:
    """Returns a graph in which each branch, loop and function can run on one task: `graph` itself if it is so already."""
    calls = frozenset(op for op in graph._ops if op.type in CALLS)
    if not calls:
        return graph
    return _Division(graph, cluster, calls).result()


def _passed_from(op: Operation) -> int:
    """Returns the position of the first input that an op passes to its functions."""
    return 1 if op.type in _BRANCHES else 0


def _functions(op: Operation) -> list[Function]:
    return [ref.target for ref in function_refs(op) if ref.target is not None]


def _is_bound(user: Operation, tensor: Tensor) -> bool:
    """Whether an op must be on the task of this input."""
    return any(each is tensor for each in bound_inputs(user))


class _Division:
    def __init__(self, graph: Graph, cluster: Cluster, calls: frozenset[Operation]) -> None:
        self.graph, self.cluster = graph, cluster
        self.placer = cluster.placer(graph, calls)
        self.homes: dict[Operation, str] = {}
        groups: dict[int, list[Operation]] = {}
        for op in calls:
            groups.setdefault(id(self.placer.group(op)), []).append(op)
        for ops in groups.values():
            home = self._home(ops)
            if home is not None:
                self.homes.update(dict.fromkeys(ops, home))
        self.homes = {op: home for op, home in self.homes.items() if self._is_divided(op, home)}

    # -- what is to be divided -------------------------------------------------------------------------------------

    def _sources(self, op: Operation) -> dict[int, str]:
        """Returns the devices of the variables, queues and tables that an op passes to its functions, by position."""
        return {
            i: self.placer.device(tensor.op)
            for i, tensor in enumerate(op._inputs)
            if (tensor.dtype._is_ref_dtype or tensor.dtype.base_dtype is dtypes.resource)
            and tensor.op.definition.traits & Trait.SOURCE
            and not tensor.op._inputs
        }

    def _binding(self, op: Operation) -> set[str]:
        """Returns the tasks on which an op uses resources, or updates reference variables."""
        return {
            task_of(device)
            for i, device in self._sources(op).items()
            if not op._inputs[i].dtype._is_ref_dtype or updating_op(op, i) is not None
        }

    def _home(self, ops: list[Operation]) -> str | None:
        """Returns the task that runs a group of calls; None if they can go where their variables are, as a whole."""
        tasks: set[str] = set().union(*map(self._binding, ops))
        references = all(
            op._inputs[i].dtype._is_ref_dtype for op in ops for i, d in self._sources(op).items() if task_of(d) in tasks
        )
        named = next(
            (task for task in map(self.cluster.named, self.placer.group(ops[0]).ops) if task is not None), None
        )
        if len(tasks) <= 1 and (named is None or (references and tasks)):
            return None
        home = named or self.cluster.local
        return home if home in self.cluster.own else None

    def _is_divided(self, op: Operation, home: str) -> bool:
        """Whether something in the bodies of an op is on another task than its home, and can be taken out."""
        sources = self._sources(op)
        elsewhere = {i for i, device in sources.items() if task_of(device) != home}
        if not elsewhere and not self._names_others(op, home):
            return False
        for body in _functions(op) if op.type in _LOOPS else ():
            if len(body.outputs) == len(body.inputs) and any(body.outputs[i] is not body.inputs[i] for i in elsewhere):
                return False  # a loop that changes which variable it uses
        return True

    def _names_others(self, op: Operation, home: str) -> bool:
        pending, seen = _functions(op), set()
        while pending:
            body = pending.pop()
            if body in seen:
                continue
            seen.add(body)
            for each in body.needed_ops():
                if self.cluster.named(each) not in (None, home):
                    return True
                if each.type in CALLS:
                    pending += _functions(each)
        return False

    def _is_only_read(self, op: Operation, position: int) -> bool:
        """Whether all uses of a handle in the bodies of an op can do with the variable's value."""
        shape = op._inputs[position]
        for body in _functions(op):
            given = body.inputs[position - _passed_from(op)]
            if op.type not in _LOOPS and given in body.outputs:
                return False
            for user in given._consumers:
                if user.type in CALLS:
                    positions = [i for i, tensor in enumerate(user._inputs) if tensor is given]
                    if not all(self._is_only_read(user, i) for i in positions):
                        return False
                elif (user.type not in _READS) if not shape.dtype._is_ref_dtype else _is_bound(user, given):
                    return False
        return True

    def _is_read(self, op: Operation, position: int) -> bool:
        """Whether the value of a variable, not only its shape, is used in the bodies of an op."""
        for body in _functions(op):
            given = body.inputs[position - _passed_from(op)]
            for user in given._consumers:
                if user.type in CALLS:
                    if any(self._is_read(user, i) for i, tensor in enumerate(user._inputs) if tensor is given):
                        return True
                elif user.type != "VariableShape":
                    return True
        return False

    # -- the whole graph -------------------------------------------------------------------------------------------

    def result(self) -> Graph:
        if not self.homes:
            return self.graph
        made = Graph()
        made._seed = self.graph._seed
        mapped: dict[Tensor, Tensor] = {}
        copies: dict[Operation, Operation] = {}
        with context.enter_graph(made):
            for op in in_order(set(self.graph._ops), set()):
                home = self.homes.get(op)
                inputs = [mapped[tensor] for tensor in op._inputs]
                waits = [copies[control] for control in op._control_inputs]
                remotes: dict[int, _Remote] = {}
                if home is not None:
                    remotes = self._remotes(op, home)
                    for i, remote in remotes.items():
                        inputs[i] = self._stand_in(made, op, remote, inputs[i], waits)
                    copy = _Call(self, op, home, remotes, made, "").add(made, inputs, op.name)
                    copy._set_device(self.cluster.device_of(home))
                else:
                    copy = copied(made, op, inputs, op.name)
                copies[op] = copy
                for control in waits:
                    copy._add_control_input(control)
                mapped.update(zip(op.outputs, copy.outputs))
                if op.type in _LOOPS:
                    mapped.update((op.outputs[i], mapped[op._inputs[i]]) for i in remotes)
        return made

    def _remotes(self, op: Operation, home: str) -> dict[int, _Remote]:
        found = {}
        for i, device in self._sources(op).items():
            if task_of(device) == home:
                continue
            tensor = op._inputs[i]
            reference = tensor.dtype._is_ref_dtype
            # A branch may be there to find out whether a variable is initialized. It reads it only if it is taken.
            by_value = (reference or op.type not in _BRANCHES) and self._is_only_read(op, i) and self._is_read(op, i)
            found[i] = _Remote(tensor, device, by_value)
        return found

    def _stand_in(self, graph: Graph, op: Operation, remote: _Remote, handle: Tensor, waits: list[Operation]) -> Tensor:
        """Returns what an op is passed instead of a handle: the variable's value, or a zero."""
        name = graph.unique_name(f"{op.name}/{remote.tensor.op.name}/value")
        if not remote.by_value:
            return graph.add_constant(np.int32(0), dtypes.int32, name)
        if remote.tensor.dtype._is_ref_dtype:
            read = graph.add(_definition("Identity"), [handle], {"T": handle.dtype.base_dtype}, name)
        else:
            attrs = {"dtype": remote.tensor.op.attrs["dtype"]}
            read = graph.add(_definition("ReadVariableOp"), [handle], attrs, name)
        read._set_device(remote.device)
        for control in waits:
            read._add_control_input(control)
        return read.outputs[0]


def _definition(name: str) -> Any:
    found = find_definition(name)
    assert found is not None
    return found


def copied(graph: Graph, op: Operation, inputs: list[Tensor], name: str) -> Operation:
    """Adds a copy of an op, without its control inputs, to another graph."""
    copy = graph.add(op.definition, inputs, dict(op.attrs), name)
    copy.stated_elements = op.stated_elements
    if op.device:
        copy._set_device(op.device)
    for old, new in zip(op.outputs, copy.outputs):
        if not old.dtype._is_ref_dtype and old.dtype.base_dtype is not dtypes.resource:
            new._static_shape = old.static_shape
    return copy


class _Call:
    """A branch, loop or call whose bodies are divided. `remotes` are its inputs that are on other tasks, by position."""

    def __init__(
        self, division: _Division, op: Operation, home: str, remotes: dict[int, _Remote], outer: Graph, path: str
    ) -> None:
        self.op = op
        first = _passed_from(op)
        given = [remotes.get(i) for i in range(first, len(op._inputs))]
        self.made: dict[str, Function] = {}
        for function in _functions(op):
            if function.name not in self.made:
                self.made[function.name] = _Body(division, function, home, given, outer, f"{path}{op.name}/").function()

    def add(self, graph: Graph, inputs: list[Tensor], name: str) -> Operation:
        op = self.op
        attrs = dict(op.attrs)
        for key, value in op.attrs.items():
            if isinstance(value, tuple) and value and hasattr(value[0], "target"):
                attrs[key] = tuple(self._ref(each) for each in value)
            elif hasattr(value, "target"):
                attrs[key] = self._ref(value)
        types = [tensor.dtype.base_dtype for tensor in inputs[_passed_from(op) :]]
        if op.type in _LOOPS:
            attrs["T"] = tuple(types)
            shapes = list(attrs.get("output_shapes") or ())
            if len(shapes) == len(inputs):
                replaced = [new.dtype.base_dtype is not old.dtype.base_dtype for old, new in zip(op._inputs, inputs)]
                attrs["output_shapes"] = tuple(
                    tensor.static_shape if changed else shape
                    for shape, tensor, changed in zip(shapes, inputs, replaced)
                )
        else:
            attrs["Tin"] = tuple(types)
        copy = graph.add(_effective(op.definition), inputs, attrs, name)
        for old, new in zip(op.outputs, copy.outputs):
            if old.dtype.base_dtype is new.dtype.base_dtype and old.dtype.base_dtype is not dtypes.resource:
                new._static_shape = old.static_shape
        return copy

    def _ref(self, ref: Any) -> Any:
        return self.made[ref.target.name].ref if ref.target is not None else ref


def _effective(definition: Any) -> Any:
    """Returns the form of a call that may have effects: a call of another task is one."""
    name = definition.name.removeprefix("Stateless")
    return _definition("StatefulPartitionedCall" if name == "PartitionedCall" else name)


class _Body:
    """A body whose ops on other tasks are replaced by calls."""

    def __init__(
        self, division: _Division, function: Function, home: str, given: list[_Remote | None], outer: Graph, path: str
    ) -> None:
        self.division, self.cluster, self.home, self.path = division, division.cluster, home, path
        self.old = function
        self.given = {tensor: remote for tensor, remote in zip(function.inputs, given) if remote is not None}
        self.graph = FuncGraph(function.name, outer)
        self.mapped: dict[Tensor, Tensor] = {}
        self.copies: dict[Operation, Operation] = {}
        for tensor in function.inputs:
            self.mapped[tensor] = self._input(tensor)
        inputs = {tensor.op for tensor in function.inputs}
        self.ops = [op for op in in_order(set(function.needed_ops()), set()) if op not in inputs]
        self.tasks = self._place(inputs)

    def _input(self, tensor: Tensor) -> Tensor:
        remote = self.given.get(tensor)
        name = tensor.op.name
        if remote is None:
            made = self.graph.add_input(tensor.dtype, tensor.static_shape, name)
            note_handle(made, tensor)
            return made
        if not remote.by_value:
            return self.graph.add_input(dtypes.int32, SCALAR, name)
        dtype, shape = _contents(remote.tensor)
        return self.graph.add_input(dtype, shape, name)

    # -- placement -------------------------------------------------------------------------------------------------

    def _place(self, inputs: set[Operation]) -> dict[Operation, str]:
        """Returns the task of each op. Ops that pass resources or variants to each other are on one."""
        group: dict[Operation, list[Operation]] = {op: [op] for op in self.ops}
        at_home = {op for op in self.ops if op.type in CALLS}

        def join(first: Operation, second: Operation) -> None:
            one, two = group[first], group[second]
            if one is not two:
                one += two
                group.update(dict.fromkeys(two, one))

        wanted: dict[Operation, set[str]] = {}
        for op in self.ops:
            for tensor in bound_inputs(op):
                if tensor not in self.given and tensor.op in inputs:
                    at_home.add(op)
                elif tensor.op in group:
                    join(op, tensor.op)
            for remote in (self.given[tensor] for tensor in op._inputs if tensor in self.given):
                if remote.by_value:
                    at_home.add(op)
                elif op.type not in CALLS:
                    wanted.setdefault(op, set()).add(remote.task)
        for tensor in self.old.outputs:
            if tensor.dtype.base_dtype in _UNSENDABLE and tensor.op in group:
                at_home.add(tensor.op)
        found: dict[Operation, str] = {}
        for op in self.ops:
            if op in found:
                continue
            tasks = set().union(*(wanted.get(each, set()) for each in group[op]))
            stays = any(each in at_home for each in group[op])
            if len(tasks) > 1 or (tasks and stays and tasks != {self.home}):
                raise InvalidArgumentError(
                    None,
                    op,
                    f"Cannot assign a device for operation {op.name}: it uses resources of {' and '.join(sorted(tasks | ({self.home} if stays else set())))}.",
                )
            named = (task for task in map(self.cluster.named, group[op]) if task is not None)
            task = self.home if stays else next(iter(tasks), None) or next(named, self.home)
            found.update(dict.fromkeys(group[op], task))
        for op in reversed(self.ops):
            # What has no inputs and no device is made where it is used.
            if not op._inputs and not op._control_inputs and op.type == "Const":
                users = {found.get(user) for tensor in op.outputs for user in tensor._consumers} - {None}
                kept = op.outputs[0] in self.old.outputs or op in self.old.control_outputs
                found[op] = self.home if kept or len(users) != 1 else users.pop() or self.home
        return found

    def _levels(self) -> dict[Operation, int]:
        """Returns how many times what an op needs changes from one task to another. Ops of a task with the same number can run together."""
        levels: dict[Operation, int] = {}
        for op in self.ops:
            sources = [each for each in (*(t.op for t in op._inputs), *op._control_inputs) if each in levels]
            levels[op] = max((levels[s] + (self.tasks[s] != self.tasks[op]) for s in sources), default=0)
        return levels

    # -- the new body ----------------------------------------------------------------------------------------------

    def function(self) -> Function:
        levels = self._levels()
        groups: dict[tuple[int, bool, str], list[Operation]] = {}
        for op in self.ops:
            task = self.tasks[op]
            groups.setdefault((levels[op], task != self.home, task), []).append(op)
        with context.enter_graph(self.graph):
            for (_, elsewhere, task), ops in sorted(groups.items()):
                if elsewhere:
                    self._add_call(ops, task)
                    continue
                for op in ops:
                    self._add_own(op)
        old = self.old
        controls = [self.copies[op] for op in old.control_outputs if op in self.copies]
        made = Function(
            unique_function_name(f"{old.name}_divided"),
            self.graph,
            list(self.graph.inputs),
            [self.mapped[tensor] for tensor in old.outputs],
            list(dict.fromkeys(controls)),
        )
        made.captures, made.accumulators = old.captures, set(old.accumulators)
        return made

    def _add_own(self, op: Operation) -> None:
        inputs = [self.mapped[tensor] for tensor in op._inputs]
        remotes = {i: self.given[tensor] for i, tensor in enumerate(op._inputs) if tensor in self.given}
        if op.type in CALLS:
            copy = _Call(self.division, op, self.home, remotes, self.graph, self.path).add(self.graph, inputs, op.name)
        elif remotes and op.type == "ReadVariableOp":
            copy = self.graph.add(_definition("Identity"), inputs, {"T": inputs[0].dtype.base_dtype}, op.name)
        elif remotes and op.type == "VariableShape":
            attrs = {"T": inputs[0].dtype.base_dtype, "out_type": op.attrs["out_type"]}
            copy = self.graph.add(_definition("Shape"), inputs, attrs, op.name)
        else:
            copy = copied(self.graph, op, inputs, op.name)
            copy._set_device("")
        self._finish(op, copy)
        self.mapped.update(zip(op.outputs, copy.outputs))
        if op.type in _LOOPS:
            self.given.update((op.outputs[i], remote) for i, remote in remotes.items())

    def _finish(self, op: Operation, copy: Operation) -> None:
        self.copies[op] = copy
        for control in op._control_inputs:
            if control in self.copies and self.copies[control] is not copy:
                copy._add_control_input(self.copies[control])

    def _add_call(self, ops: list[Operation], task: str) -> None:
        part = _Part(self, ops, task)
        if part.call is None:
            return
        inputs, fetched, attrs = part.call
        attrs["Tin"] = tuple(tensor.dtype.base_dtype for tensor in inputs)
        attrs["Tout"] = tuple(tensor.dtype.base_dtype for tensor in fetched)
        attrs["output_shapes"] = tuple(tensor.static_shape for tensor in fetched)
        name = self.graph.unique_name(f"{ops[-1].name}/call")
        copy = self.graph.add(TASK_CALL, [self.mapped[tensor] for tensor in inputs], attrs, name)
        for op in ops:
            self._finish(op, copy)
        self.mapped.update(zip(fetched, copy.outputs))


def _contents(handle: Tensor) -> tuple[Any, Shape]:
    """Returns the dtype and the static shape of the variable behind a handle or reference."""
    if handle.dtype._is_ref_dtype:
        return handle.dtype.base_dtype, handle.static_shape
    attrs = handle.op.attrs
    return attrs["dtype"].base_dtype, attrs.get("shape", UNKNOWN_SHAPE)


class _Part:
    """Ops of a body that another task runs at once.

    `call` has the tensors of the body that it takes and returns, and the attributes of the call; None if it has nothing to do.
    """

    def __init__(self, body: _Body, ops: list[Operation], task: str) -> None:
        self.body, self.inside = body, set(ops)
        self.device = body.cluster.device_of(task)
        self.graph = Graph()
        self.mapped: dict[Tensor, Tensor] = {}
        self.taken: list[Tensor] = []
        copies: dict[Operation, Operation] = {}
        with context.enter_graph(self.graph):
            for op in ops:
                copy = copied(self.graph, op, [self._input(tensor) for tensor in op._inputs], f"{body.path}{op.name}")
                copy._set_device(self.device)
                copies[op] = copy
                for control in op._control_inputs:
                    if control in copies:
                        copy._add_control_input(copies[control])
                self.mapped.update(zip(op.outputs, copy.outputs))
        returned = set(body.old.outputs)
        fetched = [t for op in ops for t in op.outputs if t in returned or self._leaves(t)]
        for tensor in fetched:
            if tensor.dtype.base_dtype in _UNSENDABLE:
                raise InvalidArgumentError(
                    None, tensor.op, f"{tensor.name} is a {tensor.dtype.base_dtype.name} of {task} and cannot leave it."
                )
        targets = [copies[op] for op in ops if has_effect(op)]
        self.call = self._call(fetched, targets, task)

    def _leaves(self, tensor: Tensor) -> bool:
        return any(user in self.body.tasks and user not in self.inside for user in tensor._consumers)

    def _input(self, tensor: Tensor) -> Tensor:
        found = self.mapped.get(tensor)
        if found is not None:
            return found
        remote = self.body.given.get(tensor)
        source = tensor.op if remote is None else remote.tensor.op
        if remote is not None or (source.type == "Const" and not source._control_inputs):
            if source.name in self.graph._by_name:
                copy = self.graph._by_name[source.name]
            else:
                copy = copied(self.graph, source, [], source.name)
                copy._set_device(self.device)
            index = tensor.value_index if remote is None else remote.tensor.value_index
            self.mapped[tensor] = copy.outputs[index]
            return copy.outputs[index]
        if tensor.dtype.base_dtype in _UNSENDABLE:
            raise InvalidArgumentError(
                None,
                tensor.op,
                f"{tensor.name} is a {tensor.dtype.base_dtype.name} and cannot be sent to {self.device}: place the ops that use "
                "it on the same task.",
            )
        attrs = {"dtype": tensor.dtype.base_dtype, "shape": tensor.static_shape}
        name = self.graph.unique_name(f"{self.body.path}given/{tensor.op.name}")
        placeholder = self.graph.add(_definition("Placeholder"), [], attrs, name)
        placeholder._set_device(self.device)
        self.taken.append(tensor)
        self.mapped[tensor] = placeholder.outputs[0]
        return placeholder.outputs[0]

    def _call(
        self, fetched: list[Tensor], targets: list[Operation], task: str
    ) -> tuple[list[Tensor], list[Tensor], dict[str, Any]] | None:
        if not fetched and not targets:
            return None
        cluster = self.body.cluster
        feeds = [self.mapped[tensor] for tensor in self.taken]
        fetches = [self.mapped[tensor] for tensor in fetched]
        placer = cluster.placer(self.graph)
        parts = partition(self.graph, feeds, fetches, targets, placer, cluster.devices, set(), self.device)
        assert len(parts) == 1, "a part of a body is on one task"
        part = parts[0]
        taken = [tensor for tensor in self.taken if self.mapped[tensor] in part.feeds]
        attrs = {
            "task": task,
            "graph": part.graph_def.SerializeToString(),
            "feeds": tuple(part.feeds[self.mapped[tensor]] for tensor in taken),
            "fetches": tuple(part.fetches[tensor] for tensor in fetches),
            "linked": task in cluster.own,
        }
        return taken, fetched, attrs
