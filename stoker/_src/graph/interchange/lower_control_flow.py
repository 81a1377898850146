"""Converts If and While ops to Switch, Merge, Enter and related ops where a branch or a body updates a reference variable.

Functions in TensorFlow cannot take references, so an assignment to a 1.x variable inside a branch can only be expressed with the older
control flow ops. `raise_control_flow.py` does the reverse.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from stoker._src.base import dtypes
from stoker._src.formats.protos import NodeDef
from stoker._src.graph.interchange.older_forms import in_older_form
from stoker._src.graph.tensor import Operation, Tensor

if TYPE_CHECKING:
    from stoker._src.graph.function_graph import Function

_BRANCHES = ("If", "StatelessIf")
_LOOPS = ("While", "StatelessWhile")


def takes_references(op: Operation) -> bool:
    """Returns whether the op would have to pass a reference to a function."""
    return op.type in (*_BRANCHES, *_LOOPS) and any(tensor.dtype._is_ref_dtype for tensor in op._inputs)


@dataclass
class _Place:
    """The context in which nodes are written: their name prefix, the control input that makes them run, and the names of tensors."""

    prefix: str
    pivot: str | None
    values: dict[Tensor, str] = field(default_factory=dict)
    ops: dict[Operation, str] = field(default_factory=dict)

    def value(self, tensor: Tensor) -> str:
        return self.values[tensor] if tensor in self.values else tensor._as_node_def_input()

    def wait(self, op: Operation) -> str:
        return "^" + self.ops.get(op, op.name)


class Lowering:
    """Writes ops that take references as nodes of the graph, with their branches and bodies inlined.

    Attributes:
        inlined: ops of functions that were inlined; functions that they refer to are still needed.
        renamed: maps the name of an output in the graph to the name that replaces it.
    """

    def __init__(self, node_def_of: Callable[[Operation], Any], names: set[str]) -> None:
        self._node_def_of, self._names = node_def_of, set(names)
        self._nodes: list[Any] = []
        self.inlined: list[Operation] = []
        self.renamed: dict[str, str] = {}

    def nodes_of(self, op: Operation) -> list[Any]:
        """Returns the nodes that replace an op of the graph."""
        self._nodes, place = [], _Place("", None)
        self._lower(op, place)
        for tensor in op.outputs:
            self.renamed[tensor._as_node_def_input()] = place.values[tensor]
        return self._nodes

    def _lower(self, op: Operation, place: _Place) -> None:
        name = place.prefix + op.name
        written = self._branches(op, place, name) if op.type in _BRANCHES else self._loop(op, place, name)
        self._node(
            name, "NoOp", [f"^{each}" for each in written], unique=False
        )  # consumers that wait for the op wait for this node
        place.ops[op] = name

    def _node(self, name: str, op: str, inputs: list[str], T: Any = None, unique: bool = True, **attrs: Any) -> str:
        base, count = name, 0
        while unique and name in self._names:
            count += 1
            name = f"{base}_{count}"
        self._names.add(name)
        node = NodeDef(name=name, op=op, input=inputs)
        if T is not None:
            node.attr["T"].type = T.base_dtype.as_datatype_enum
        for key, (kind, value) in attrs.items():
            setattr(node.attr[key], kind, value)
        self._nodes.append(node)
        return name

    def _body(self, function: Function, place: _Place) -> list[str]:
        """Writes the ops of a function whose inputs are known to `place`, and returns what the end of the function must wait for."""
        inputs = {tensor.op for tensor in function.inputs}
        for op in function.needed_ops():
            if op in inputs:
                continue
            if takes_references(op):
                self._lower(op, place)
                continue
            node = self._node_def_of(op)
            node.name = place.ops[op] = place.prefix + op.name
            self._names.add(node.name)
            del node.input[:]
            node.input.extend(place.value(tensor) for tensor in op._inputs)
            node.input.extend(place.wait(control) for control in op._control_inputs if control not in inputs)
            if not op._inputs:
                node.input.append(f"^{place.pivot}")
            if "_class" in node.attr:
                del node.attr["_class"]
            for position, tensor in enumerate(op.outputs):
                place.values[tensor] = f"{node.name}:{position}" if position else node.name
            self._nodes.extend(in_older_form(node, op, in_function=False))
            self.inlined.append(op)
        return [place.wait(op) for op in function.control_outputs]

    def _branches(self, op: Operation, place: _Place, name: str) -> list[str]:
        waits = [place.wait(control) for control in op._control_inputs]
        predicate = place.value(op._inputs[0])
        if op._inputs[0].dtype.base_dtype is not dtypes.bool_:
            source = op._inputs[0].dtype.base_dtype.as_datatype_enum
            kinds: dict[str, Any] = {"SrcT": ("type", source), "DstT": ("type", dtypes.bool_.as_datatype_enum)}
            predicate = self._node(f"{name}/Cast", "Cast", [predicate], **kinds)
        predicate = self._node(f"{name}/pred_id", "Identity", [predicate, *waits], dtypes.bool_)
        pivots = self._node(f"{name}/Switch", "Switch", [predicate, predicate], dtypes.bool_)
        ends: list[list[str]] = []
        for label, key, output in (("f", "else_branch", ""), ("t", "then_branch", ":1")):
            function: Function = op.attrs[key].target
            pivot = self._node(f"{name}/switch_{label}", "Identity", [pivots + output], dtypes.bool_)
            inner = _Place(f"{name}/{label}/", pivot)
            for outer, given in zip(op._inputs[1:], function.inputs):
                kind = "RefSwitch" if outer.dtype._is_ref_dtype else "Switch"
                made = self._node(f"{name}/{label}/{kind}", kind, [place.value(outer), predicate], outer.dtype)
                inner.values[given] = made + output
            late = self._body(function, inner)
            results = [(inner.value(tensor), tensor.dtype) for tensor in function.outputs]
            ends.append(
                [
                    self._node(f"{name}/{label}/end", "Identity", [value, *late], dtype)
                    for value, dtype in results or [(pivot, dtypes.bool_)]
                ]
            )
        made = [dtypes.bool_] if not op.outputs else [tensor.dtype for tensor in op.outputs]
        merges = [
            self._node(f"{name}/Merge", "Merge", list(both), dtype, N=("i", 2)) for *both, dtype in zip(*ends, made)
        ]
        place.values.update(zip(op.outputs, merges))
        return merges

    def _loop(self, op: Operation, place: _Place, name: str) -> list[str]:
        condition, body = op.attrs["cond"].target, op.attrs["body"].target
        waits = [place.wait(control) for control in op._control_inputs]
        fixed = [returned is given for given, returned in zip(body.inputs, body.outputs)]
        entries: list[str] = []
        for tensor, stays in zip(op._inputs, fixed):
            kind = "RefEnter" if tensor.dtype._is_ref_dtype else "Enter"
            entries.append(
                self._node(
                    f"{name}/{kind}", kind, [place.value(tensor), *waits], tensor.dtype, frame_name=("s", name.encode()),
                    is_constant=("b", stays), parallel_iterations=("i", op.attrs["parallel_iterations"]),
                )
            )  # fmt: skip
        moving = [i for i, stays in enumerate(fixed) if not stays]
        merges = {
            i: self._node(f"{name}/Merge", "Merge", [entries[i], entries[i]], op._inputs[i].dtype, N=("i", 2))
            for i in moving
        }
        back_edges = {i: self._nodes[-len(moving) + k] for k, i in enumerate(moving)}
        test = _Place(f"{name}/cond/", merges[moving[0]])
        test.values.update(
            (given, merges[i] if i in merges else entries[i]) for i, given in enumerate(condition.inputs)
        )
        late = self._body(condition, test)
        decision = self._node(f"{name}/LoopCond", "LoopCond", [test.value(condition.outputs[0]), *late])
        inner = _Place(f"{name}/body/", None)
        exits = []
        for i, given in enumerate(body.inputs):
            inner.values[given] = entries[i]
            place.values[op.outputs[i]] = place.value(op._inputs[i])
            if i in merges:
                dtype = op._inputs[i].dtype
                switch = self._node(f"{name}/Switch", "Switch", [merges[i], decision], dtype)
                inner.values[given] = self._node(f"{name}/Identity", "Identity", [f"{switch}:1"], dtype)
                inner.pivot = inner.pivot or inner.values[given]
                place.values[op.outputs[i]] = self._node(f"{name}/Exit", "Exit", [switch], dtype)
                exits.append(place.values[op.outputs[i]])
        late = self._body(body, inner)
        for i, merge in back_edges.items():
            value = inner.value(body.outputs[i])
            merge.input[1] = self._node(f"{name}/NextIteration", "NextIteration", [value, *late], op._inputs[i].dtype)
        return exits
