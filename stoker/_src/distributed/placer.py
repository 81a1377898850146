"""Chooses the device of each op of a distributed graph.

Ops that share a variable, queue or table, or that are colocated by `_class`, form a group on one device. A group goes to the device that its ops
name; a group without one goes to the master's own task. Two kinds of ops follow others instead: one without inputs goes where its
value is used, and one that only needs the shape of its input goes to the input.
"""

from __future__ import annotations

from typing import Any

from stoker._src.base import dtypes
from stoker._src.base.devices import DeviceSpec
from stoker._src.base.errors import InvalidArgumentError
from stoker._src.graph.definition import Trait
from stoker._src.graph.graph import Graph
from stoker._src.graph.interchange.function_def import function_refs
from stoker._src.graph.interchange.lower_control_flow import takes_references
from stoker._src.graph.tensor import Operation, Tensor

_UNSENDABLE = (dtypes.resource, dtypes.variant)
CALLS = frozenset(
    (
        *("If", "StatelessIf", "Case", "StatelessCase", "While", "StatelessWhile"),
        *("PartitionedCall", "StatefulPartitionedCall"),
    )
)
"""Ops that run functions while they run."""


def task_name(spec: DeviceSpec) -> str:
    return f"/job:{spec.job}/replica:{spec.replica or 0}/task:{spec.task or 0}"


class _Group:
    """Ops that must be on one device, and what they state about it."""

    __slots__ = ("error", "ops", "owner", "spec")

    def __init__(self, op: Operation) -> None:
        self.ops = [op]
        self.spec = DeviceSpec.from_string(op.device) if op.device else DeviceSpec()
        # The op that makes a variable, queue or table decides where it is: ops that use it go there, whatever they name.
        self.owner = op if op.device and op.definition.traits & Trait.SOURCE else None
        self.error: str | None = None


def _merged(first: _Group, other: _Group) -> _Group:
    """Merges the smaller group into the larger one, and notes if they name different devices."""
    if len(first.ops) < len(other.ops):
        first, other = other, first
    leading, following = (other, first) if first.owner is None and other.owner is not None else (first, other)
    spec = leading.spec.replace()
    for part, what in _PARTS:
        mine, theirs = getattr(spec, part), getattr(following.spec, part)
        if mine is None:
            setattr(spec, part, theirs)
        elif theirs not in (None, mine) and (following.owner is not None or leading.owner is None):
            first.error = first.error or (
                f"Cannot colocate nodes '{leading.ops[0].name}' and '{following.ops[0].name}': Cannot merge devices with "
                f"incompatible {what}: '{leading.spec.to_string()}' and '{following.spec.to_string()}'"
            )
    first.spec, first.owner = spec, leading.owner
    first.ops += other.ops
    first.error = first.error or other.error
    return first


_PARTS = (
    ("job", "jobs"),
    ("replica", "replicas"),
    ("task", "tasks"),
    ("device_type", "types"),
    ("device_index", "ids"),
)


class Placer:
    """The placement of one graph on the devices of a cluster."""

    def __init__(
        self,
        graph: Graph,
        devices: list[Any],
        local: str,
        *,
        soft: bool = False,
        free: frozenset[Operation] = frozenset(),
    ) -> None:
        """`devices` are DeviceAttributes, and `local` is the name of the master's own task. Ops in `free` need not be where their variables are."""
        self._names = [device.name for device in devices]
        self._specs = [DeviceSpec.from_string(name) for name in self._names]
        self._order = sorted(range(len(devices)), key=lambda i: (task_name(self._specs[i]) != local, i))
        self._soft = soft
        self._groups: dict[Operation, _Group] = {}
        self._devices: dict[Operation, str] = {}
        self._collect(graph, free)

    def group(self, op: Operation) -> _Group:
        return self._groups[op]

    def _collect(self, graph: Graph, free: frozenset[Operation]) -> None:
        for op in graph._ops:
            self._groups[op] = _Group(op)
        # What a loop collects for its gradient is where the loop is, whatever it names: TensorFlow's client puts it beside the collected value.
        lists = {tensor.op for op in graph._ops if op.type in CALLS for tensor in bound_inputs(op) if _is_list(tensor)}
        for op in lists:
            self._groups[op].spec = DeviceSpec()
        for op in graph._ops:
            for tensor in bound_inputs(op):
                if op not in free or not tensor.op.definition.traits & Trait.SOURCE:
                    self._join(op, tensor.op)
        for op in graph._ops:
            if takes_references(op) and op not in free:
                # A branch may test whether a variable is initialized before it reads it, so it is evaluated where the variable is.
                # Of several variables, the one counts that it updates.
                positions = [i for i, tensor in enumerate(op._inputs) if tensor.dtype._is_ref_dtype]
                updated = [i for i in positions if updating_op(op, i) is not None]
                self._join(op, op._inputs[(updated or positions)[0]].op)
        for op in graph._ops:
            for text in op.attrs.get("_class") or () if op not in lists else ():
                name = text.decode() if isinstance(text, bytes) else str(text)
                other = graph._by_name.get(name.removeprefix("loc:@")) if name.startswith("loc:@") else None
                if other is not None:
                    self._join(op, other)

    def _join(self, op: Operation, other: Operation) -> None:
        first, second = self._groups[op], self._groups[other]
        if first is not second:
            merged = _merged(first, second)
            for each in (second if merged is first else first).ops:
                self._groups[each] = merged

    def device(self, op: Operation) -> str:
        """Returns the full name of an op's device.

        Raises:
            InvalidArgumentError: there is no such device, or the op is bound to ops on another one.
        """
        found = self._devices.get(op)
        if found is None:
            found = self._devices[op] = self._place(op)
        return found

    def _place(self, op: Operation) -> str:
        # Chains of ops that follow others are walked without recursion.
        seen: set[Operation] = set()
        at: Operation | None = op
        while at is not None and at not in seen:
            if at in self._devices:
                return self._devices[at]
            seen.add(at)
            op = at
            at = self._leader(at)
        return self._match(op, self._groups[op])

    def _leader(self, op: Operation) -> Operation | None:
        """Returns the op whose device this one takes, if it is free to choose."""
        group = self._groups[op]
        if len(group.ops) > 1 or group.spec.to_string():
            return None
        if op.definition.traits & Trait.OF_SHAPES and op._inputs:
            return op._inputs[0].op
        if not op._inputs and len(op.outputs) == 1 and not op.definition.traits & Trait.SOURCE:
            return next(iter(op.outputs[0]._consumers), None)
        return None

    def _match(self, op: Operation, group: _Group) -> str:
        if group.error is not None and not self._soft:
            raise InvalidArgumentError(None, op, f"Cannot assign a device for operation {op.name}: {group.error}")
        for spec in (group.spec, group.spec.replace(device_type=None, device_index=None) if self._soft else None):
            for i in self._order if spec is not None else ():
                if _fits(spec, self._specs[i]):
                    return self._names[i]
        raise InvalidArgumentError(
            None,
            op,
            f"Cannot assign a device for operation {op.name}: {op.name} was explicitly assigned to {group.spec.to_string()} but "
            f"available devices are [ {', '.join(sorted(self._names))} ]. Make sure the device specification refers to a valid "
            "device.",
        )


def updating_op(op: Operation, position: int) -> Operation | None:
    """Returns an op in a branch or a loop that updates the reference variable at a position of its inputs; None if there is none."""
    bodies = [ref.target for ref in function_refs(op) if ref.target is not None]
    pending = [body.inputs[position - 1 if op.type in ("If", "StatelessIf") else position] for body in bodies]
    while pending:
        given = pending.pop()
        for user in given._consumers:
            if user.definition.traits & Trait.WRITES:
                return user
            if takes_references(user):
                inner = [updating_op(user, i) for i, tensor in enumerate(user._inputs) if tensor is given]
                found = next((each for each in inner if each is not None), None)
                if found is not None:
                    return found
            pending += [tensor for tensor in user.outputs if tensor.dtype._is_ref_dtype]
    return None


def _is_list(tensor: Tensor) -> bool:
    """Whether a handle is that of a stack, which lives for one step."""
    return tensor.op.type in ("Stack", "StackV2")


def _fits(spec: DeviceSpec | None, device: DeviceSpec) -> bool:
    return spec is not None and all(
        getattr(spec, part) in (None, getattr(device, part))
        for part in ("job", "replica", "task", "device_type", "device_index")
    )


def bound_inputs(op: Operation) -> list[Tensor]:
    """Returns the inputs that cannot come from another device: references, resources and variants."""
    references = [
        tensor.dtype._is_ref_dtype and arg.is_ref
        for arg, item in zip(op.definition.inputs, op.definition.group(op._inputs, op.attrs))
        for tensor in (item if arg.is_list else (item,))
    ]
    return [
        tensor
        for tensor, is_reference in zip(op._inputs, references)
        if is_reference or tensor.dtype.base_dtype in _UNSENDABLE
    ]
