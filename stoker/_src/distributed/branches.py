"""Branches of 1.x whose ops TensorFlow's master has placed on several tasks.

A branch that is on one task as a whole becomes an `If` when a graph is imported. Of a divided branch a task has some of the Switch and Merge
nodes, and values of the side that was not taken travel as *dead*. In a part that may have such values, Switch and Merge are replaced:

- What takes an output of a Switch takes the Switch's input instead and waits for a guard, a node that runs only if the predicate chooses that output.
- A Merge becomes a placeholder, which gets the value of the input that is alive.

- A share of a divided loop (`frames.py`) runs in any case: if what enters it is dead, its first iteration passes that on.

An op runs if what arrives for it is alive and its guards let it; all ops with the same conditions run or do not run together (`stages.py`). A part
without Switch and Merge nodes is planned as if all values were alive. When one arrives dead, the stages that depend on it run in pieces.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from stoker._src.base.errors import InvalidArgumentError, UnimplementedError
from stoker._src.formats.protos import NodeDef
from stoker._src.graph.graph import Graph
from stoker._src.graph.interchange.raise_control_flow import Frames, split, topological
from stoker._src.graph.tensor import Operation, Tensor
from stoker._src.runtime.plan.pruning import in_order

_BOOL, _INT32 = 10, 3
HANDLES = (20, 21)  # resource, variant


@dataclass(frozen=True)
class Condition:
    """A tensor that must have a value, and if `side` is not None, this one."""

    tensor: Tensor
    side: bool | None = None


@dataclass(frozen=True)
class Merge:
    """The placeholders of a Merge: they get the value, and the number, of the input that is alive."""

    inputs: list[Tensor]
    output: Tensor
    index: Tensor


@dataclass(frozen=True)
class Branches:
    """Under which conditions the ops of a part run."""

    conditions: dict[Operation, frozenset[Condition]] = field(default_factory=dict)
    merges: list[Merge] = field(default_factory=list)

    def of(self, op: Operation) -> frozenset[Condition]:
        return self.conditions.get(op, _ALWAYS)

    @property
    def needed(self) -> set[Tensor]:
        """The tensors whose values decide what runs and what a Merge returns."""
        checks = {each.tensor for conditions in self.conditions.values() for each in conditions}
        return checks.union(*(merge.inputs for merge in self.merges))

    @property
    def merged(self) -> list[Tensor]:
        return [tensor for merge in self.merges for tensor in (merge.output, merge.index)]


_ALWAYS: frozenset[Condition] = frozenset()


@dataclass
class _Source:
    """What stands for a tensor after Switch nodes are gone: another tensor, and the nodes to wait for."""

    text: str
    controls: tuple[str, ...] = ()


class BranchNodes:
    """Replaces the Switch and Merge nodes of a GraphDef that are in no loop."""

    def __init__(self, graph_def: Any) -> None:
        """Raises:
        InvalidArgumentError: a node is malformed.
        UnimplementedError: a branch returns a resource.
        """
        self._nodes = {node.name: node for node in graph_def.node}
        if len(self._nodes) < len(graph_def.node):
            raise InvalidArgumentError(None, None, "Two nodes of the part have the same name.")
        self._taken = set(self._nodes)
        self._added: list[Any] = []
        self._sources: dict[str, _Source] = {}  # by the text of the input
        self._controls: dict[str, tuple[str, ...]] = {}  # what stands for a control input, by node
        self._checks: dict[tuple[str, tuple[str, ...]], str] = {}
        self._guards: dict[tuple[str, bool], str] = {}
        self._merges: dict[str, tuple[list[str], str]] = {}  # names of the inputs, and of the index
        self._rewrite()
        nodes = [node for name, node in self._nodes.items() if name not in self._controls]
        kept = []
        for node in (*nodes, *self._added):
            copy = NodeDef()
            copy.CopyFrom(node)
            kept.append(copy)
        del graph_def.node[:]
        graph_def.node.extend(kept)

    def _rewrite(self) -> None:
        try:
            frames = Frames(self._nodes)
            order = topological(self._nodes)
        except ValueError as error:
            raise InvalidArgumentError(None, None, str(error)) from None
        for name in order:
            node = self._nodes[name]
            if node.op in ("Switch", "RefSwitch") and not frames.of[name]:
                self._replace_switch(node)
            elif node.op in ("Merge", "RefMerge") and not frames.of[name]:
                self._replace_merge(node)
            else:
                self._replace_inputs(node)

    def _name(self, base: str) -> str:
        name, count = base, 0
        while name in self._taken:
            count += 1
            name = f"{base}_{count}"
        self._taken.add(name)
        return name

    def _source(self, text: str) -> _Source:
        return self._sources.get(text.removesuffix(":0"), _Source(text))

    def _waits(self, text: str) -> tuple[str, ...]:
        return self._controls.get(split(text)[0], (text,))

    def _replace_inputs(self, node: Any) -> None:
        data = [self._source(text) for text in node.input if not text.startswith("^")]
        own = [wait for text in node.input if text.startswith("^") for wait in self._waits(text)]
        if node.op == "StokerLoopShare":
            types = node.attr["Tin"].list.type
            data = [self._entering(node, each, dtype, own) for each, dtype in zip(data, types)]
        waits = [*(wait for each in data for wait in each.controls), *own]
        del node.input[:]
        node.input.extend(each.text for each in data)
        node.input.extend(dict.fromkeys(waits))

    def _entering(self, loop: Any, source: _Source, dtype: int, waits: list[str]) -> _Source:
        """Returns what a loop gets for a value that enters it, which may be dead. Resources never are."""
        if dtype in HANDLES:
            return _Source(source.text)
        name = self._name(f"{loop.name}/_input")
        self._add(name, "Identity", [source.text, *dict.fromkeys((*source.controls, *waits))]).attr["T"].type = dtype
        return _Source(name)

    def _replace_switch(self, node: Any) -> None:
        data = [text for text in node.input if not text.startswith("^")]
        if len(data) != 2:
            raise InvalidArgumentError(None, None, f"Node '{node.name}' (op {node.op}) has {len(data)} inputs, not 2.")
        value, predicate = map(self._source, data)
        waits = tuple(wait for text in node.input if text.startswith("^") for wait in self._waits(text))
        check = self._check(predicate)
        for index, text in enumerate((node.name, f"{node.name}:1")):
            guard = self._guard(check, bool(index))
            self._sources[text] = _Source(value.text, (*value.controls, *waits, f"^{guard}"))
        before = (f"^{split(value.text)[0]}", f"^{check}", *value.controls, *waits)
        self._controls[node.name] = tuple(dict.fromkeys(before))

    def _check(self, predicate: _Source) -> str:
        """Returns the node that has the value of a predicate."""
        key = predicate.text, predicate.controls
        if key not in self._checks:
            name = self._checks[key] = self._name(f"{split(predicate.text)[0]}/_check")
            self._add(name, "Identity", [predicate.text, *predicate.controls]).attr["T"].type = _BOOL
        return self._checks[key]

    def _guard(self, check: str, side: bool) -> str:
        key = check, side
        if key not in self._guards:
            name = self._guards[key] = self._name(f"{check}_{str(side).lower()}")
            self._add(name, "NoOp", [f"^{check}"])
        return self._guards[key]

    def _add(self, name: str, op: str, inputs: list[str]) -> Any:
        node = NodeDef(name=name, op=op, input=inputs)
        self._added.append(node)
        return node

    def _replace_merge(self, node: Any) -> None:
        dtype = node.attr["T"].type
        if dtype in HANDLES:
            raise UnimplementedError(
                None,
                None,
                f"Node '{node.name}' (op {node.op}) returns a resource or variant from a branch that is divided over several tasks.",
            )
        waits = [wait for text in node.input if text.startswith("^") for wait in self._waits(text)]
        names = []
        for text in (text for text in node.input if not text.startswith("^")):
            source = self._source(text)
            names.append(self._name(f"{node.name}/_input"))
            copy = self._add(names[-1], "Identity", [source.text, *dict.fromkeys((*source.controls, *waits))])
            copy.attr["T"].type = dtype
        index = self._name(f"{node.name}/_index")
        placeholder = self._add(index, "Placeholder", [])
        placeholder.attr["dtype"].type = _INT32
        self._sources[f"{node.name}:1"] = _Source(index)
        self._merges[node.name] = names, index
        node.op = "Placeholder"
        del node.input[:]
        node.attr.clear()
        node.attr["dtype"].type = dtype
        node.attr["shape"].shape.unknown_rank = True

    @property
    def found(self) -> bool:
        """Whether there were any."""
        return bool(self._guards or self._merges)

    def branches(self, graph: Graph, received: list[Tensor]) -> Branches:
        """Returns the conditions of the imported graph's ops. The values of `received` may be dead."""
        ops = graph._by_name
        merges = [
            Merge([ops[name].outputs[0] for name in names], ops[merge].outputs[0], ops[index].outputs[0])
            for merge, (names, index) in self._merges.items()
        ]
        own = {tensor.op: Condition(merge.output) for merge in merges for tensor in (merge.output, merge.index)}
        own.update((ops[name], Condition(ops[check].outputs[0], side)) for (check, side), name in self._guards.items())
        for op in graph._ops:
            for tensor in op._inputs:
                if tensor.op.type == "StokerLoopShare":
                    own[op] = Condition(tensor)  # only the identity that was an Exit takes an output
        return Branches(conditions(graph, received, own), merges)


def conditions(
    graph: Graph, received: list[Tensor], own: dict[Operation, Condition] | None = None
) -> dict[Operation, frozenset[Condition]]:
    """Returns the conditions under which ops run, if the values of `received` may be dead and the ops in `own` have these conditions."""
    own = {**(own or {}), **{tensor.op: Condition(tensor) for tensor in received}}
    found: dict[Operation, frozenset[Condition]] = {}
    for op in in_order(set(graph._ops), set()):
        # A value arrives, alive or dead, whatever its placeholder has control edges from.
        # A share of a loop runs with dead values, too.
        always = op.type in ("Placeholder", "StokerLoopShare")
        sources = [] if always else [*(tensor.op for tensor in op._inputs), *op._control_inputs]
        sets = {found.get(source, _ALWAYS) for source in sources}
        most = max(sets, key=len, default=_ALWAYS)
        # Most ops have the conditions of one of their inputs. They share the set, which may be large.
        before = most if all(each <= most for each in sets) else _ALWAYS.union(*sets)
        found[op] = before | {own[op]} if op in own else before
    return found
