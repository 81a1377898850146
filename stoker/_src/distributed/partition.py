"""Divides a graph into one part for each task, joined by `_Send` and `_Recv` nodes."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from stoker._src.base.errors import InvalidArgumentError
from stoker._src.distributed.placer import Placer, updating_op
from stoker._src.distributed.rendezvous import key_text, task_of
from stoker._src.distributed.wire_graph import PUSHED
from stoker._src.formats.protos import GraphDef, NodeDef
from stoker._src.graph.graph import Graph
from stoker._src.graph.interchange.function_def import referenced_functions
from stoker._src.graph.interchange.lower_control_flow import Lowering, takes_references
from stoker._src.graph.interchange.node_def import PRODUCER_VERSION, node_def_of
from stoker._src.graph.interchange.older_forms import in_older_form
from stoker._src.graph.tensor import Operation, Tensor
from stoker._src.runtime.plan.pruning import has_effect, in_order, prune

_LARGE_FETCH = 1 << 20  # elements


@dataclass
class TaskPart:
    """One task's part: its GraphDef, and the keys of the feeds and fetches by tensor."""

    task: str
    graph_def: Any = field(default_factory=GraphDef)
    feeds: dict[Tensor, str] = field(default_factory=dict)
    fetches: dict[Tensor, str] = field(default_factory=dict)
    waits_first: bool = False  # whether it can do nothing for others before it gets values from them


def partition(
    graph: Graph,
    feeds: list[Tensor],
    fetches: list[Tensor],
    targets: list[Operation],
    placer: Placer,
    devices: dict[str, Any],
    pushing: set[str],
    local_device: str,
) -> list[TaskPart]:
    """Returns the parts of the graph that a run needs.

    Args:
        graph: the whole graph.
        feeds, fetches, targets: what the run gets and wants.
        placer: the devices of ops.
        devices: DeviceAttributes by name.
        pushing: the tasks that send values without being asked.
        local_device: a device of the master's own task.
    """
    return _Partition(graph, feeds, fetches, targets, placer, devices, pushing, local_device).build()


def _check_only_read(op: Operation, position: int, source: str, device: str) -> None:
    """Checks that a branch or a loop does not update a variable of another task.

    Raises:
        InvalidArgumentError: it does.
    """
    user = updating_op(op, position)
    if user is not None:
        raise InvalidArgumentError(
            None,
            op,
            f"{op.name} runs as a whole on {device}, but its op {user.name} updates {op._inputs[position].op.name}, which is on "
            f"{source}. Place the variables that a branch or a loop updates on one task.",
        )


_IMMEDIATE = frozenset(
    ("Const", "Identity", "NoOp", "ReadVariableOp", "VarHandleOp", "Variable", "VariableV2", "_Recv")
)


def _waits_first(graph_def: Any) -> bool:
    """Whether a part can do next to nothing, and can send nothing, before it gets values from other tasks."""
    waiting: set[str] = set()
    for node in graph_def.node:  # in order of execution
        is_client = "client_terminated" in node.attr and node.attr["client_terminated"].b
        if (node.op == "_Recv" and not is_client) or any(
            name.lstrip("^").partition(":")[0] in waiting for name in node.input
        ):
            waiting.add(node.name)
        elif node.op not in _IMMEDIATE and not (node.op == "_Send" and is_client):
            return False
    return bool(waiting)


class _Partition:
    def __init__(
        self,
        graph: Graph,
        feeds: list[Tensor],
        fetches: list[Tensor],
        targets: list[Operation],
        placer: Placer,
        devices: dict[str, Any],
        pushing: set[str],
        local_device: str,
    ) -> None:
        self.local, self.local_device = task_of(local_device), local_device
        self.fed = set(feeds)
        self.fetches = [tensor for tensor in dict.fromkeys(fetches) if tensor not in self.fed]
        self.needed, self.waited = prune(self.fetches, targets, self.fed)
        self.ops = [op for op in in_order(self.needed | self.waited, self.fed) if op in self.needed]
        self.placer, self.devices, self.pushing = placer, devices, pushing
        self.parts: dict[str, TaskPart] = {}
        self.lowering = Lowering(node_def_of, {op.name for op in graph._ops})
        self.taken = {op.name for op in graph._ops}
        self.written: dict[str, list[Operation]] = {}  # by task
        self.copies: set[tuple[str, Operation]] = set()
        self.received: dict[tuple[str, Any], str] = {}
        self.effects: dict[Operation, bool] = {}
        self.count = 0

    def build(self) -> list[TaskPart]:
        groups = self._groups()
        for op in self.ops:
            device = self.placer.device(op)
            if op not in groups:
                self._write(op, device)
        for tensor in self.fetches:
            device = self.placer.device(tensor.op)
            output = self._output(tensor)
            if self._is_streamed(tensor, device):
                output, device = self._receive(tensor, device, self.local, self.local_device), self.local_device
            part = self._part(task_of(device))
            name = self._name(f"_send_{tensor.op.name}_{tensor.value_index}")
            edge = tensor.name
            node = self._transfer("_Send", name, device, device, device, edge, tensor, is_client=True)
            node.input.append(output)
            part.fetches[tensor] = key_text(device, self.devices[device].incarnation, device, edge)
            part.graph_def.node.append(node)
        for task, part in self.parts.items():
            part.graph_def.versions.producer = PRODUCER_VERSION
            plain = [op for op in self.written.get(task, ()) if not takes_references(op)]
            for function in referenced_functions([*plain, *self.lowering.inlined]).values():
                part.graph_def.library.function.append(function.to_function_def())
            part.waits_first = _waits_first(part.graph_def)
        return list(self.parts.values())

    def _groups(self) -> set[Operation]:
        """Returns the ops that only wait for others and that no op waits for. A step ends after all of its ops in any case."""
        followed: set[Operation] = set()
        found = set()
        for op in reversed(self.ops):
            if op.type == "NoOp" and op not in followed:
                found.add(op)
            else:
                followed.update(op._control_inputs)
        return found

    def _is_streamed(self, tensor: Tensor, device: str) -> bool:
        """Whether a fetched value goes to the master's own task first, because large values travel faster between tasks."""
        size = tensor.static_shape.size
        large = size is None or size >= _LARGE_FETCH
        number = tensor.dtype.base_dtype.is_floating or tensor.dtype.base_dtype.is_integer
        return large and number and task_of(device) != self.local and {task_of(device), self.local} <= self.pushing

    def _part(self, task: str) -> TaskPart:
        return self.parts.setdefault(task, TaskPart(task))

    def _name(self, base: str) -> str:
        name, count = base, 0
        while name in self.taken:
            count += 1
            name = f"{base}_{count}"
        self.taken.add(name)
        return name

    def _output(self, tensor: Tensor) -> str:
        text = tensor._as_node_def_input()
        return self.lowering.renamed.get(text, text)

    def _write(self, op: Operation, device: str) -> None:
        task = task_of(device)
        part = self._part(task)
        self.written.setdefault(task, []).append(op)
        nodes = (
            self.lowering.nodes_of(op)
            if takes_references(op)
            else in_older_form(node_def_of(op), op, in_function=False)
        )
        inputs: dict[str, list[str]] = {}
        for position, tensor in enumerate(op._inputs):
            if takes_references(op) and tensor.dtype._is_ref_dtype and not self._is_at(tensor.op, task):
                _check_only_read(op, position, self.placer.device(tensor.op), device)
            inputs[tensor._as_node_def_input()] = [self._input(tensor, device)]
        for control in op._control_inputs:
            inputs["^" + control.name] = self._controls(control, device)
        for node in nodes:
            node.device = device
            node.attr.pop("_class", None)
            texts = [each for text in node.input for each in inputs.get(text, [text])]
            del node.input[:]
            node.input.extend(text for text in texts if not text.startswith("^"))
            node.input.extend(dict.fromkeys(text for text in texts if text.startswith("^")))
            part.graph_def.node.append(node)

    def _input(self, tensor: Tensor, device: str) -> str:
        """Returns the name under which a task has a tensor: of the node itself, or of the node that receives it."""
        task = task_of(device)
        if tensor in self.fed:
            return self._receive_feed(tensor, task, device)
        source = self.placer.device(tensor.op)
        if task_of(source) == task:
            return self._output(tensor)
        if tensor.op.type == "Const" and not tensor.op._control_inputs:
            self._copy_constant(tensor.op, task, device)
            return tensor.op.name
        return self._receive(tensor, source, task, device)

    def _copy_constant(self, op: Operation, task: str, device: str) -> None:
        if (task, op) not in self.copies:
            self.copies.add((task, op))
            node = node_def_of(op)
            node.device = device
            node.attr.pop("_class", None)
            self._part(task).graph_def.node.append(node)

    def _receive_feed(self, tensor: Tensor, task: str, device: str) -> str:
        known = self.received.get((task, tensor))
        if known is not None:
            return known
        name = self.received[task, tensor] = self._name(f"_recv_{tensor.op.name}_{tensor.value_index}")
        part = self._part(task)
        part.graph_def.node.append(
            self._transfer("_Recv", name, device, device, device, tensor.name, tensor, is_client=True)
        )
        part.feeds[tensor] = key_text(device, self.devices[device].incarnation, device, tensor.name)
        return name

    def _receive(self, tensor: Tensor, source: str, task: str, device: str) -> str:
        known = self.received.get((task, tensor))
        if known is not None:
            return known
        if tensor.dtype.base_dtype.name in ("resource", "variant"):
            raise InvalidArgumentError(
                None,
                tensor.op,
                f"{tensor.name} is a {tensor.dtype.base_dtype.name} on {source} and cannot be sent to {device}: place the ops that "
                "use it on the same task.",
            )
        name = self.received[task, tensor] = self._join(tensor.op.name, self._output(tensor), tensor, source, device)
        return name

    def _join(self, base: str, output: str, tensor: Tensor | None, source: str, device: str) -> str:
        """Adds the two nodes that take a value from one task to another. Returns the name of the receiving node."""
        self.count += 1
        edge = f"edge_{self.count}_{base}"
        send = self._transfer("_Send", self._name(f"{base}/_{self.count}_send"), source, source, device, edge, tensor)
        send.input.append(output)
        self._part(task_of(source)).graph_def.node.append(send)
        name = self._name(f"{base}/_{self.count}_recv")
        receive = self._transfer("_Recv", name, device, source, device, edge, tensor)
        self._part(task_of(device)).graph_def.node.append(receive)
        return name

    def _controls(self, control: Operation, device: str) -> list[str]:
        """Returns what stands for a control input.

        An op without effect, if it is on another task or only waited for, need not be waited for itself: what it waits for is, instead.
        Several ops of another task are waited for by one signal.
        """
        found: list[Operation] = []
        task = task_of(device)
        pending, seen = [control], set()
        while pending:
            each = pending.pop(0)
            if each in seen or (each.outputs and all(tensor in self.fed for tensor in each.outputs)):
                continue
            seen.add(each)
            if each in self.needed and (self._is_at(each, task) or self._has_effect(each)):
                found.append(each)
            elif each in self.needed or each in self.waited:
                pending += [*(t.op for t in each._inputs if t not in self.fed), *each._control_inputs]
        by_task: dict[str, list[Operation]] = {}
        for each in found:
            by_task.setdefault(task_of(self.placer.device(each)), []).append(each)
        names = []
        for source, ops in by_task.items():
            joined = source != task and len(ops) > 1
            names += [self._wait_for_all(ops, device)] if joined else [self._wait_for(each, device) for each in ops]
        return ["^" + name for name in dict.fromkeys(names)]

    def _is_at(self, op: Operation, task: str) -> bool:
        return task_of(self.placer.device(op)) == task

    def _has_effect(self, op: Operation) -> bool:
        found = self.effects.get(op)
        if found is None:
            found = self.effects[op] = has_effect(op)
        return found

    def _wait_for(self, op: Operation, device: str) -> str:
        source, task = self.placer.device(op), task_of(device)
        if task_of(source) == task:
            return op.name
        if op.type == "Const" and not op._control_inputs:
            self._copy_constant(op, task, device)
            return op.name
        for known in (op, *op.outputs):
            if (task, known) in self.received:  # one of its values arrives there in any case
                return self.received[task, known]
        self.received[task, op] = name = self._signal([op], source, device)
        return name

    def _wait_for_all(self, ops: list[Operation], device: str) -> str:
        """Returns the name of a node that runs after several ops of another task."""
        key = task_of(device), frozenset(ops)
        found = self.received.get(key)
        if found is None:
            found = self.received[key] = self._signal(ops, self.placer.device(ops[0]), device)
        return found

    def _signal(self, ops: list[Operation], source: str, device: str) -> str:
        """Sends a zero, made after `ops`, to another task. Returns the name of the receiving node."""
        op = ops[0]
        inputs = ["^" + each.name for each in ops]
        signal = NodeDef(name=self._name(f"{op.name}/_done"), op="Const", device=source, input=inputs)
        signal.attr["dtype"].type = signal.attr["value"].tensor.dtype = 1
        signal.attr["value"].tensor.tensor_shape.SetInParent()
        signal.attr["value"].tensor.float_val.append(0.0)
        self._part(task_of(source)).graph_def.node.append(signal)
        return self._join(op.name, signal.name, None, source, device)

    def _transfer(
        self,
        kind: str,
        name: str,
        device: str,
        source: str,
        destination: str,
        edge: str,
        tensor: Tensor | None,
        *,
        is_client: bool = False,
    ) -> Any:
        node = NodeDef(name=name, op=kind, device=device)
        attr = node.attr
        dtype = 1 if tensor is None else tensor.dtype.base_dtype.as_datatype_enum
        attr["T" if kind == "_Send" else "tensor_type"].type = dtype
        attr["tensor_name"].s = edge.encode()
        attr["send_device"].s, attr["recv_device"].s = source.encode(), destination.encode()
        incarnation = self.devices[source].incarnation
        attr["send_device_incarnation"].i = incarnation - (1 << 64) if incarnation >> 63 else incarnation
        attr["client_terminated"].b = is_client
        if not is_client and {task_of(source), task_of(destination)} <= self.pushing:
            attr[PUSHED].b = True
        return node
