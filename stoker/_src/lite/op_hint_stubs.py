"""Replaces each part of a GraphDef that `OpHint` marks by a single node.

A hint of level 1 is a part between `Identity` nodes of the same graph. A hint of a higher level wraps a loop: its children are marked in
the loop's body, and each step of the loop is one of their uses. The whole loop is then replaced by the children, one after the other,
applied to whole sequences. Other tensors that the body reads are replaced by the values that enter the loop.
"""

from __future__ import annotations

import heapq
import json
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

from stoker._src.base.export import export
from stoker._src.formats.protos import AttrValue, GraphDef, NodeDef
from stoker._src.graph.graph_util import node_name
from stoker._src.lite.op_hints import ATTRIBUTE_PREFIX, OpHint

_LOOPS = ("While", "StatelessWhile")
_STACK, _UNSTACK = "OpHintStack-", "OpHintUnstack-"


@dataclass
class Wrapped:
    """A node that wraps a tensor of an argument."""

    node: Any
    sort_index: int = 0
    aggregate: str = ""


@dataclass
class Hint:
    """One use of a hinted function, as its nodes describe it."""

    uuid: str
    function: str
    level: int
    mappings: dict[str, list[dict[str, int]]]
    inputs: dict[int, list[Wrapped]] = field(default_factory=dict)
    outputs: dict[int, list[Wrapped]] = field(default_factory=dict)
    attrs: dict[str, Any] = field(default_factory=dict)

    def kept(self, side: dict[int, list[Wrapped]]) -> list[Wrapped]:
        """The nodes that represent an argument of the whole: the first, the last or all of its tensors."""
        found = []
        for wrapped in side.values():
            found.extend(
                {OpHint.AGGREGATE_FIRST: wrapped[:1], OpHint.AGGREGATE_LAST: wrapped[-1:]}.get(
                    wrapped[0].aggregate, wrapped
                )
            )
        return found


def hints_in(nodes: Iterable[Any]) -> dict[str, Hint]:
    """The hints whose nodes are among `nodes`, by id."""
    found: dict[str, Hint] = {}
    for node in nodes:
        if OpHint.FUNCTION_UUID_ATTR not in node.attr:
            continue
        attr = node.attr
        uuid = attr[OpHint.FUNCTION_UUID_ATTR].s.decode()
        hint = found.get(uuid)
        if hint is None:
            mappings = attr[OpHint.CHILDREN_INPUTS_MAPPINGS].s if OpHint.CHILDREN_INPUTS_MAPPINGS in attr else b"{}"
            level = attr[OpHint.FUNCTION_LEVEL_ATTR].i if OpHint.FUNCTION_LEVEL_ATTR in attr else 1
            hint = found[uuid] = Hint(
                uuid, attr[OpHint.FUNCTION_NAME_ATTR].s.decode(), level, json.loads(mappings or b"{}")
            )
        is_input = OpHint.FUNCTION_INPUT_INDEX_ATTR in attr
        index = attr[OpHint.FUNCTION_INPUT_INDEX_ATTR if is_input else OpHint.FUNCTION_OUTPUT_INDEX_ATTR].i
        sort = attr[OpHint.FUNCTION_SORT_INDEX_ATTR].i if OpHint.FUNCTION_SORT_INDEX_ATTR in attr else 0
        aggregate = attr[OpHint.FUNCTION_AGGREGATE_ATTR].s.decode() if OpHint.FUNCTION_AGGREGATE_ATTR in attr else ""
        (hint.inputs if is_input else hint.outputs).setdefault(index, []).append(Wrapped(node, sort, aggregate))
        for key, value in attr.items():
            if key.startswith(ATTRIBUTE_PREFIX):
                hint.attrs[key.removeprefix(ATTRIBUTE_PREFIX)] = value
    for hint in found.values():
        for side in (hint.inputs, hint.outputs):
            for wrapped in side.values():
                wrapped.sort(key=lambda each: each.sort_index)
    return found


@export(v1="lite.experimental.convert_op_hints_to_stubs")
def convert_op_hints_to_stubs(
    session: Any = None,
    graph_def: Any = None,
    write_callback: Callable[[Any, str], Any] = lambda graph_def, comments: None,
) -> Any:
    """Returns a GraphDef in which each part that an `OpHint` marks is one node, whose op is the hint's function.

    Args:
        session: a session whose graph is converted; or
        graph_def: the GraphDef to convert. Exactly one of the two must be given.
        write_callback: called with the GraphDef and a comment, first for the input ("initial") and then after each hint.

    Raises:
        ValueError: both sources or neither are given, or a hint has no outputs.
    """
    if session is not None and graph_def is not None:
        raise ValueError("Provide only one of session and graph_def.")
    if session is None and graph_def is None:
        raise ValueError("Must specify session or graph_def as input.")
    given: Any = session.graph.as_graph_def() if session is not None else graph_def
    write_callback(given, "initial")
    work = _Conversion(given)
    hints = hints_in(given.node)
    for hint in sorted(hints.values(), key=lambda each: -each.level):
        (work.replace if hint.level == 1 else work.replace_loop)(hint)
        write_callback(work.graph_def(), f"{hint.function} {hint.uuid}")
    work.join()
    return work.graph_def()


class _Conversion:
    def __init__(self, graph_def: Any) -> None:
        self.given = graph_def
        self.nodes: dict[str, Any] = {}
        for node in graph_def.node:
            self.nodes[node.name] = NodeDef()
            self.nodes[node.name].CopyFrom(node)
        self.functions = {function.signature.name: function for function in graph_def.library.function}

    def graph_def(self) -> Any:
        made = GraphDef()
        made.CopyFrom(self.given)
        del made.node[:]
        made.node.extend(_ordered(self.nodes))
        return made

    # -- a hint of this graph ------------------------------------------------------------------------------------

    def replace(self, hint: Hint) -> None:
        if not hint.outputs:
            raise ValueError(f"The hint '{hint.function}' ({hint.uuid}) has no outputs.")
        edge = {wrapped.node.name for wrapped in hint.kept(hint.inputs)}
        interior = self.between(hint, edge)
        arguments = []
        for index in sorted(hint.inputs):
            wrapped = hint.inputs[index]
            if wrapped[0].aggregate == OpHint.AGGREGATE_STACK:
                arguments.append(self.stacked([each.node for each in wrapped]))
            else:
                arguments.append(
                    (wrapped[-1] if wrapped[0].aggregate == OpHint.AGGREGATE_LAST else wrapped[0]).node.name
                )
        self.add_stub(hint, arguments)
        for index, wrapped in hint.outputs.items():
            source = f"{hint.uuid}:{index}" if index else hint.uuid
            if wrapped[0].aggregate == OpHint.AGGREGATE_STACK:
                source = self.unstacked([each.node for each in wrapped], source)
                for position, each in enumerate(wrapped):
                    self.nodes[each.node.name].input[:] = [f"{source}:{position}" if position else source]
            else:
                last = wrapped[0].aggregate == OpHint.AGGREGATE_LAST
                self.nodes[(wrapped[-1] if last else wrapped[0]).node.name].input[:] = [source]
        # Outputs that an aggregate leaves out, such as all but the last, go with what they need, unless somebody reads them.
        kept = {wrapped.node.name for wrapped in hint.kept(hint.outputs)}
        left = {wrapped.node.name for side in hint.outputs.values() for wrapped in side} - kept
        self.remove(interior | left | self.between(hint, edge, left))

    def between(self, hint: Hint, edge: set[str], results: set[str] | None = None) -> set[str]:
        """The nodes that the outputs, or other nodes, need, stopping at the nodes of `edge`."""
        results = {wrapped.node.name for wrapped in hint.kept(hint.outputs)} if results is None else results
        found: set[str] = set()
        waiting = [text for name in results for text in self.nodes[name].input]
        while waiting:
            name = node_name(waiting.pop())
            if name not in edge and name not in found and name in self.nodes:
                found.add(name)
                waiting.extend(self.nodes[name].input)
        return found - results

    def remove(self, unwanted: set[str]) -> None:
        """Removes nodes, except those that others still need."""
        needed: set[str] = set()
        waiting = [text for name, node in self.nodes.items() if name not in unwanted for text in node.input]
        while waiting:
            name = node_name(waiting.pop())
            if name in unwanted and name not in needed:
                needed.add(name)
                waiting.extend(self.nodes[name].input)
        for name in unwanted - needed:
            del self.nodes[name]

    def add_stub(self, hint: Hint, arguments: list[str]) -> None:
        stub = NodeDef(name=hint.uuid, op=hint.function, input=arguments)
        stub.attr[OpHint.TFLITE_INPUT_INDICES].list.i.extend(sorted(hint.inputs))
        for name, value in hint.attrs.items():
            stub.attr[name].CopyFrom(value)
        self.nodes[stub.name] = stub

    def stacked(self, nodes: list[Any]) -> str:
        node = NodeDef(name=f"{_STACK}{nodes[0].name}", op="Pack", input=[each.name for each in nodes])
        self.nodes[node.name] = _with_stacking_attrs(node, nodes[0], "N", len(nodes))
        return node.name

    def unstacked(self, nodes: list[Any], source: str) -> str:
        node = NodeDef(name=f"{_UNSTACK}{nodes[0].name}", op="Unpack", input=[source])
        self.nodes[node.name] = _with_stacking_attrs(node, nodes[0], "num", len(nodes))
        return node.name

    def join(self) -> None:
        """Lets those that read the pack of all that an unpack gives read what it takes, if a hint made one of the two."""
        for name, node in list(self.nodes.items()):
            given = [self.wrapped(text) for text in node.input if not text.startswith("^")]
            source = node_name(given[0]) if node.op == "Pack" and given else ""
            unpack = self.nodes.get(source)
            if unpack is None or unpack.op != "Unpack" or not (name.startswith(_STACK) or source.startswith(_UNSTACK)):
                continue
            whole = [f"{source}:{position}" if position else source for position in range(unpack.attr["num"].i)]
            readers = [each for each in self.nodes.values() if name in each.input]
            if given != whole or node.attr["axis"].i != unpack.attr["axis"].i or not readers:
                continue
            for reader in readers:
                reader.input[:] = [unpack.input[0] if text == name else text for text in reader.input]
            self.drop(name)

    def wrapped(self, text: str) -> str:
        """The tensor that a node of a hint wraps, or the tensor itself."""
        node = self.nodes.get(text)
        while node is not None and OpHint.FUNCTION_UUID_ATTR in node.attr:
            text = node.input[0]
            node = self.nodes.get(text)
        return text

    def drop(self, name: str) -> None:
        """Removes a node that nobody reads, and with it the unpack and the hint's nodes that only it reads."""
        inputs = self.nodes.pop(name).input
        read = {node_name(text) for node in self.nodes.values() for text in node.input}
        for source in {node_name(text) for text in inputs} - read:
            node = self.nodes.get(source)
            if node is not None and (node.op == "Unpack" or OpHint.FUNCTION_UUID_ATTR in node.attr):
                self.drop(source)

    # -- a hint around a loop ------------------------------------------------------------------------------------

    def replace_loop(self, parent: Hint) -> None:
        edge = {wrapped.node.name for wrapped in parent.kept(parent.inputs)}
        interior = self.between(parent, edge)
        loops = [self.nodes[name] for name in interior if self.nodes[name].op in _LOOPS]
        for loop in loops:
            body = self.functions.get(loop.attr["body"].func.name)
            children = [] if body is None else list(hints_in(body.node_def).values())
            if children:
                last = self.children(parent, children, loop, body)
                for entry in parent.mappings["parent_last_child_output"]:
                    wrapped = parent.outputs[entry["parent_output_index"]]
                    self.nodes[wrapped[0].node.name].input[:] = [_output(last, entry["child_output_index"])]
                self.remove(interior)
                return

    def children(self, parent: Hint, children: list[Hint], loop: Any, body: Any) -> Hint:
        """Adds the nodes of the children, applied to sequences. Returns the last of them."""
        hoist = _Hoist(self, loop, body)
        previous: Hint | None = None
        for child in children:
            arguments = []
            for index in sorted(child.inputs):
                wrapped = child.inputs[index][0]
                if wrapped.aggregate == OpHint.AGGREGATE_STACK:
                    arguments.append(_sequence(parent, child, previous, index))
                    continue
                node = NodeDef()
                node.CopyFrom(wrapped.node)
                node.input[:] = [hoist.tensor(wrapped.node.input[0])]
                self.nodes[node.name] = node
                arguments.append(node.name)
            self.add_stub(child, arguments)
            for index, outputs in child.outputs.items():
                if outputs[0].aggregate != OpHint.AGGREGATE_STACK:
                    node = NodeDef()
                    node.CopyFrom(outputs[-1].node)
                    node.input[:] = [_output(child, index)]
                    self.nodes[node.name] = node
            previous = child
        assert previous is not None
        return previous


def _sequence(parent: Hint, child: Hint, previous: Hint | None, index: int) -> str:
    """The sequence that a child reads: an input of its parent, or the result of the previous child."""
    if previous is None:
        for entry in parent.mappings["parent_first_child_input"]:
            if entry["first_child_ophint_input_index"] == index:
                return parent.inputs[entry["parent_ophint_input_index"]][0].node.name
    else:
        for entry in parent.mappings["internal_children_input_output"]:
            if entry["child_input_index"] == index:
                return _output(previous, entry["child_output_index"])
    raise ValueError(
        f"The hint '{parent.function}' has no mapping for input {index} of '{child.function}', which is stacked."
    )


def _output(hint: Hint, index: int) -> str:
    """An output of a hint's node. -1 means the output with the largest number."""
    index = max(hint.outputs) if index == -1 else index
    return f"{hint.uuid}:{index}" if index else hint.uuid


class _Hoist:
    """Copies nodes out of a loop body. They compute their values in the first step."""

    def __init__(self, work: _Conversion, loop: Any, body: Any) -> None:
        self.work, self.loop = work, loop
        self.arguments = dict(zip((arg.name for arg in body.signature.input_arg), loop.input, strict=False))
        self.body = {node.name: node for node in body.node_def}
        self.done: set[str] = set()

    def tensor(self, text: str) -> str:
        """The outer tensor that corresponds to the body's tensor `text`."""
        if text in self.arguments:
            return self.arguments[text]
        name, _, rest = text.partition(":")
        position = int(rest.rpartition(":")[2] or 0)
        made = f"{self.loop.name}/{name}"
        if made not in self.done:
            self.done.add(made)
            node = NodeDef()
            node.CopyFrom(self.body[name])
            node.name = made
            node.input[:] = [self.tensor(each) for each in node.input if not each.startswith("^")]
            self.work.nodes[made] = node
        return f"{made}:{position}" if position else made


def _with_stacking_attrs(node: Any, like: Any, count_attr: str, count: int) -> Any:
    node.attr["T"].CopyFrom(like.attr["T"])
    node.attr["axis"].CopyFrom(AttrValue(i=0))
    node.attr[count_attr].CopyFrom(AttrValue(i=count))
    return node


def _ordered(nodes: dict[str, Any]) -> list[Any]:
    """The nodes in topological order. Ties keep the given order."""
    position = {name: number for number, name in enumerate(nodes)}
    sources = {
        name: {node_name(text) for text in node.input if node_name(text) in nodes and node_name(text) != name}
        for name, node in nodes.items()
    }
    consumers: dict[str, list[str]] = {}
    for name, inputs in sources.items():
        for source in inputs:
            consumers.setdefault(source, []).append(name)
    missing = {name: len(inputs) for name, inputs in sources.items()}
    ready = [position[name] for name, count in missing.items() if not count]
    heapq.heapify(ready)
    names = list(nodes)
    found = []
    while ready:
        name = names[heapq.heappop(ready)]
        found.append(name)
        for consumer in consumers.get(name, ()):
            missing[consumer] -= 1
            if not missing[consumer]:
                heapq.heappush(ready, position[consumer])
    # Loops of Merge and NextIteration have no topological order. Their nodes stay at the end.
    found.extend(name for name in names if missing[name] > 0)
    return [nodes[name] for name in found]
