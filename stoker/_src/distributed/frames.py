"""Loops of which TensorFlow's master has given a task a share.

TensorFlow divides the body of a loop op by op. Each task has the nodes of its share with a frame of their own, often with a loop of control nodes that
asks for the predicate. A share is taken out of its part: one iteration is a graph like that of any part, and a node `StokerLoopShare` takes its place,
which runs iterations until no loop variable is alive.

A value that travels in a frame has the number of the frame and of the iteration at the end of its key. TensorFlow 1.15 takes a hash of the frame's path
as its number: `;0;name` for a loop outside of any other, and `path of the outer frame;its iteration;name` within another. TensorFlow 2 combines the numbers of
the outer frame and of its iteration with a hash of the name. (The keys in requests of TensorFlow's tasks confirm both.)
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from stoker._src.base.errors import InvalidArgumentError, UnimplementedError
from stoker._src.formats.hashing import hash64
from stoker._src.formats.protos import GraphDef, NodeDef
from stoker._src.graph.definition import Trait, find_definition
from stoker._src.graph.interchange.raise_control_flow import Frames, split

_ENTER, _EXIT = ("Enter", "RefEnter"), ("Exit", "RefExit")
_MERGE, _NEXT = ("Merge", "RefMerge"), ("NextIteration", "RefNextIteration")


@dataclass
class Share:
    """A task's share of a loop.

    Attributes:
        frame: the name of the loop's frame.
        graph_def: one iteration.
        variables: the placeholders of the loop variables and the nodes with their next values.
        constants: the placeholders of values that the loop only reads. The inputs of the share are first values of the variables, then these.
        results: the nodes with the values that leave the loop. They are dead except in the last iteration.
        inner: shares of loops inside of this one, by the names of their nodes.
    """

    frame: str
    graph_def: Any
    variables: list[tuple[str, str]] = field(default_factory=list)
    constants: list[str] = field(default_factory=list)
    results: list[str] = field(default_factory=list)
    inner: dict[str, Share] = field(default_factory=dict)


@dataclass(frozen=True)
class Frame:
    """A frame while it runs: its path and number. That of a part outside of any loop has neither."""

    path: str = ""
    number: int = 0

    def inner(self, iteration: int, name: str, *, combined: bool) -> Frame:
        """Returns the frame of a loop in an iteration of this one. If `combined`, it is numbered as in TensorFlow 2."""
        path = f"{self.path};{iteration};{name}"
        if combined:
            return Frame(path, _combined(self.number, _combined(iteration, hash64(name.encode()))))
        return Frame(path, hash64(path.encode()))

    def key(self, key: str, iteration: int) -> str:
        """Returns the key of a value in an iteration, from the one outside of any loop."""
        return f"{key.rpartition(';')[0]};{self.number}:{iteration}" if self.path else key


def _combined(first: int, second: int) -> int:
    """Returns the combination of two hashes."""
    return first ^ ((second + 0x9E3779B97F4A7800 + (first << 10) + (first >> 4)) & 0xFFFF_FFFF_FFFF_FFFF)


def take_shares(graph_def: Any, transfers: set[str]) -> tuple[dict[str, Share], set[str]]:
    """Replaces divided loops by nodes that run this task's share of them.

    Returns:
        The shares by the names of these nodes, and those of `transfers`, the nodes through which values arrive and leave, that are in a loop.

    Raises:
        InvalidArgumentError: the loops are malformed.
        UnimplementedError: a loop variable is a reference.
    """
    nodes = {node.name: node for node in graph_def.node}
    for node in graph_def.node:
        if node.op in (*_ENTER, *_EXIT) and (not node.input or node.input[0].startswith("^")):
            raise InvalidArgumentError(None, None, f"Node '{node.name:.200}' (op {node.op}) has no input.")
    try:
        frames = Frames(nodes)
    except ValueError as error:
        raise InvalidArgumentError(None, None, str(error)) from None
    moved = {name for name in transfers if frames.of.get(name)}
    if not moved:
        return {}, moved
    taker = _Taker(nodes, frames, moved)
    rest, shares = taker.level("")
    kept = []
    for node in rest:
        copy = NodeDef()
        copy.CopyFrom(node)
        kept.append(copy)
    del graph_def.node[:]
    graph_def.node.extend(kept)
    return shares, moved


class _Taker:
    def __init__(self, nodes: dict[str, Any], frames: Frames, transfers: set[str]) -> None:
        self.nodes, self.frames = nodes, frames
        self.taken = set(nodes)
        self.divided: set[str] = set()
        for name in transfers:
            frame = frames.of[name]
            while frame:
                self.divided.add(frame)
                frame = frames.parents[frame]
        self.members: dict[str, list[Any]] = {}
        for name, node in nodes.items():
            frame = frames.of[name]
            while frame and frame not in self.divided:
                frame = frames.parents[frame]  # a loop that is here as a whole
            self.members.setdefault(frame, []).append(node)

    def _name(self, base: str) -> str:
        while base in self.taken:
            base += "_"
        self.taken.add(base)
        return base

    def level(self, frame: str) -> tuple[list[Any], dict[str, Share]]:
        """Returns the nodes of a frame, with nodes in place of the divided loops in it, and the shares of these loops."""
        nodes, shares = list(self.members.get(frame, ())), {}
        for child in sorted(self.divided):
            if self.frames.parents[child] == frame:
                node, share = self._share(child)
                nodes.append(node)
                shares[node.name] = share
        return nodes, shares

    def _share(self, frame: str) -> tuple[Any, Share]:
        share = Share(frame, GraphDef())
        nodes, share.inner = self.level(frame)
        inside = {node.name: node for node in nodes}
        call = NodeDef(name=self._name(f"{frame}/share"), op="StokerLoopShare")
        types = call.attr["Tin"].list.type
        carried: dict[str, Any] = {}  # the loop variable that starts with an Enter
        for node in nodes:
            if node.op in _MERGE:
                sources = [split(text)[0] for text in node.input]
                starts = [s for s in sources if s in inside and inside[s].op in _ENTER]
                backs = [s for s in sources if s in self.nodes and self.nodes[s].op in _NEXT]
                if starts and backs:
                    if node.op == "RefMerge":
                        raise UnimplementedError(
                            None,
                            None,
                            f"Node '{node.name}': a loop that is divided over several tasks carries a reference.",
                        )
                    carried[starts[0]] = node
                    share.variables.append((node.name, backs[0]))
                    types.append(node.attr["T"].type)
                    call.input.append(inside[starts[0]].input[0])
        loop_variables = {name for name, _ in share.variables}
        aliases: dict[str, str] = {}
        made: list[Any] = []
        for node in nodes:
            if node.op in _ENTER and self.frames.of.get(node.name) == frame:
                if node.name not in carried:
                    made += self._constant(node, share, call, aliases)
            elif node.name in loop_variables:
                made.append(_placeholder(node.name, node.attr["T"].type))
            else:
                made.append(node)
        waits = [text for node in nodes if node.op in _ENTER for text in node.input if text.startswith("^")]
        call.input.extend(dict.fromkeys(waits))
        self._results(frame, share, call, made)
        for node in made:
            copy = share.graph_def.node.add()
            copy.CopyFrom(node)
            if copy.op in _NEXT:
                copy.op = "Identity"
            elif copy.op == "LoopCond":
                copy.op = "Identity"
                copy.attr["T"].type = 10
            copy.input[:] = [_aliased(text, aliases) for text in copy.input]
        call.attr["frame"].s = frame.encode()
        return call, share

    def _constant(self, enter: Any, share: Share, call: Any, aliases: dict[str, str]) -> list[Any]:
        """Returns the node that stands for a value that a loop only reads: a copy of its source, or a placeholder."""
        source = self.nodes.get(split(enter.input[0])[0])
        definition = None if source is None else find_definition(source.op)
        if source is not None and definition is not None and not source.input:
            if definition.traits & Trait.SOURCE or source.op == "Const":
                aliases[enter.name] = source.name
                return [source] if list(aliases.values()).count(source.name) == 1 else []
        share.constants.append(enter.name)
        call.attr["Tin"].list.type.append(enter.attr["T"].type)
        call.input.append(enter.input[0])
        return [_placeholder(enter.name, enter.attr["T"].type)]

    def _results(self, frame: str, share: Share, call: Any, made: list[Any]) -> None:
        """Makes the Exit nodes of a loop identities of the share's outputs."""
        call.attr["Tout"].list.SetInParent()
        for node in self.nodes.values():
            if node.op not in _EXIT or self.frames.of.get(split(node.input[0])[0]) != frame:
                continue
            value = NodeDef(name=self._name(f"{node.name}/value"), op="Identity", input=[node.input[0]])
            value.attr["T"].type = node.attr["T"].type
            made.append(value)
            call.attr["Tout"].list.type.append(node.attr["T"].type)
            node.op = "Identity"
            node.input[0] = f"{call.name}:{len(share.results)}"
            share.results.append(value.name)


def _placeholder(name: str, dtype: int) -> Any:
    node = NodeDef(name=name, op="Placeholder")
    node.attr["dtype"].type = dtype
    node.attr["shape"].shape.unknown_rank = True
    return node


def _aliased(text: str, aliases: dict[str, str]) -> str:
    prefix = "^" if text.startswith("^") else ""
    name, colon, index = text.removeprefix("^").partition(":")
    return f"{prefix}{aliases.get(name, name)}{colon}{index}"
