"""Converts 1.x control flow in a GraphDef to functions: loops of Enter/Merge/Switch/NextIteration/Exit become While nodes, branches
of Switch/Merge become If nodes.

Loops are converted first, from the innermost outwards: a frame's nodes become the bodies of the While's two functions. The
remaining Switch and Merge nodes, in the graph and in every body, belong to branches. Nodes that depend on one side of a Switch move into
that side's function. Exit and Merge nodes are kept as Identity nodes of the same names, so that programs can still find them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from stoker._src.base.dtypes import as_dtype
from stoker._src.formats.protos import GraphDef, NodeDef

_ENTER = ("Enter", "RefEnter")
_EXIT = ("Exit", "RefExit")
_NEXT = ("NextIteration", "RefNextIteration")
_SWITCH = ("Switch", "RefSwitch")
_MERGE = ("Merge", "RefMerge")
CONTROL_FLOW = frozenset((*_ENTER, *_EXIT, *_NEXT, *_SWITCH, *_MERGE, "LoopCond"))


@dataclass
class Body:
    """A function in GraphDef form. Its nodes refer to each other and to the arguments by name, as do the outputs."""

    name: str
    arguments: list[tuple[str, int, bool]] = field(default_factory=list)  # name, dtype number, is a reference
    nodes: list[Any] = field(default_factory=list)
    outputs: list[str] = field(default_factory=list)
    controls: list[str] = field(default_factory=list)  # nodes that run regardless of the outputs
    variables: int = 0  # number of loop variables; the arguments after them are loop-invariant


def split(text: str) -> tuple[str, int]:
    """Splits the name of an input: `"x:1"` -> ("x", 1); `"^x"` -> ("x", -1)."""
    if text.startswith("^"):
        return text[1:], -1
    node, _, index = text.partition(":")
    return node, int(index or 0)


def _joined(node: str, index: int) -> str:
    return node if index == 0 else f"{node}:{index}"


OutputTypes = Callable[[Any], list[int]]


def raise_control_flow(graph_def: Any, bodies: dict[str, Body], output_types: OutputTypes) -> Any:
    """Returns `graph_def` without 1.x control flow, and adds the functions that it needs to `bodies`.

    `output_types(node)` returns the dtype numbers of a node's outputs.

    Raises:
        ValueError: the control flow is malformed, or has a form that no TensorFlow API produces.
    """
    if not any(node.op in CONTROL_FLOW for node in graph_def.node):
        return graph_def
    raiser = _Raiser(graph_def, bodies, output_types)
    result = GraphDef()
    result.CopyFrom(graph_def)
    del result.node[:]
    result.node.extend(raiser.run())
    return result


class _Raiser:
    def __init__(self, graph_def: Any, bodies: dict[str, Body], output_types: OutputTypes) -> None:
        self.bodies, self.output_types = bodies, output_types
        self.nodes: dict[str, Any] = {}
        for node in graph_def.node:
            copy = NodeDef()
            copy.CopyFrom(node)
            self.nodes[node.name] = copy
        self.taken = set(self.nodes)

    def run(self) -> list[Any]:
        frames = Frames(self.nodes)
        for frame in frames.innermost_first():
            self._raise_loop(frame, frames)
        branches = self._branches(self.nodes, {})
        nodes = branches.run()
        return [*nodes.values(), *branches.one_sided()]

    def _branches(self, nodes: dict[str, Any], arguments: dict[str, tuple[int, bool]]) -> _Branches:
        return _Branches(nodes, arguments, self.bodies, self.taken, self.output_types)

    # -- loops -----------------------------------------------------------------------------------------------------

    def _raise_loop(self, frame: str, frames: Frames) -> None:
        inside = {name: node for name, node in self.nodes.items() if frames.of.get(name) == frame}
        loop = _Loop(frame, inside, self.nodes)
        name = _unique(f"{loop.prefix}/While", self.taken)
        condition, body = (Body(_unique(f"{name.replace('/', '_')}_{kind}", self.bodies)) for kind in ("cond", "body"))
        self.bodies[condition.name], self.bodies[body.name] = condition, body
        loop.fill(condition, [loop.condition_input], loop.merge_values)
        loop.fill(body, loop.next_values, loop.body_values, loop.next_controls)
        body.outputs.extend(loop.invariant_arguments())
        body.variables = loop.count
        for made in (condition, body):
            nested = self._branches({n.name: n for n in made.nodes}, {a: (t, r) for a, t, r in made.arguments})
            nested.keep = [*[split(text)[0] for text in made.outputs], *made.controls]
            made.nodes = list(nested.run().values())
        node = NodeDef(name=name, op="While")
        node.input.extend(enter.input[0] for enter in loop.enters)
        controls = {text for n in loop.enters for text in n.input if text.startswith("^")}
        node.input.extend(sorted(controls))
        node.attr["T"].list.type.extend(enter.attr["T"].type for enter in loop.enters)
        node.attr["cond"].func.name = condition.name
        node.attr["body"].func.name = body.name
        parent = frames.parents[frame]
        for gone in inside:
            del self.nodes[gone]
            frames.of.pop(gone)
        for moved in loop.after(name):
            self.nodes[moved.name] = moved
            frames.of[moved.name] = parent
        self.nodes[name] = node
        frames.of[name] = parent


def _unique(name: str, taken: Any) -> str:
    candidate, count = name, 0
    while candidate in taken:
        count += 1
        candidate = f"{name}_{count}"
    if isinstance(taken, set):
        taken.add(candidate)
    return candidate


class Frames:
    """The loop that each node is in. A node is in the frame of its inputs; Enter enters a frame and Exit leaves it."""

    def __init__(self, nodes: dict[str, Any]) -> None:
        self.of: dict[str, str] = {}
        self.parents: dict[str, str] = {}
        for name in topological(nodes):
            node = nodes[name]
            frame = ""
            for text in node.input:
                source = split(text)[0]
                found = self.of.get(source, "")
                if self._depth(found) > self._depth(frame):
                    frame = found
            if node.op in _ENTER:
                child = node.attr["frame_name"].s.decode()
                if self.parents.setdefault(child, frame) != frame:
                    raise ValueError(f"Node '{name}': frame '{child}' is entered from two different frames.")
                frame = child
            elif node.op in _EXIT:
                if not frame:
                    raise ValueError(f"Node '{name}': an Exit outside of any loop.")
                frame = self.parents[frame]
            self.of[name] = frame

    def _depth(self, frame: str) -> int:
        depth = 0
        while frame:
            depth, frame = depth + 1, self.parents[frame]
        return depth

    def innermost_first(self) -> list[str]:
        return sorted(self.parents, key=self._depth, reverse=True)


def topological(nodes: dict[str, Any]) -> list[str]:
    """Returns the names in topological order, ignoring the back edges of loops (NextIteration to Merge).

    Raises:
        ValueError: there is any other cycle, or an input is missing.
    """
    waiting: dict[str, int] = {}
    followers: dict[str, list[str]] = {}
    for name, node in nodes.items():
        sources = set()
        for text in node.input:
            source = split(text)[0]
            if source not in nodes:
                continue  # an argument, or a tensor from the input map
            if not (node.op in _MERGE and nodes[source].op in _NEXT):
                sources.add(source)
        waiting[name] = len(sources)
        for source in sources:
            followers.setdefault(source, []).append(name)
    order = [name for name, count in waiting.items() if count == 0]
    for name in order:
        for follower in followers.get(name, ()):
            waiting[follower] -= 1
            if waiting[follower] == 0:
                order.append(follower)
    if len(order) < len(nodes):
        stuck = next(name for name, count in waiting.items() if count > 0)
        raise ValueError(f"The GraphDef has a cycle through '{stuck}' that is not a loop.")
    return order


class _Loop:
    """The parts of a frame: loop variables first, then the values that the loop only reads."""

    def __init__(self, frame: str, inside: dict[str, Any], nodes: dict[str, Any]) -> None:
        self.frame, self.inside = frame, inside
        enters = [node for node in inside.values() if node.op in _ENTER]
        merges: dict[str, Any] = {}
        for node in inside.values():
            if node.op in _MERGE and len(node.input) >= 2:
                sources = [split(text)[0] for text in node.input]
                backs = [s for s in sources if nodes[s].op in _NEXT] if all(s in nodes for s in sources) else []
                starts = [s for s in sources if s in inside and inside[s].op in _ENTER]
                if backs and starts:
                    merges[starts[0]] = (node, nodes[backs[0]])
        conditions = [node for node in inside.values() if node.op == "LoopCond"]
        if len(conditions) != 1:
            raise ValueError(f"Loop '{frame}' has {len(conditions)} LoopCond nodes; expected 1.")
        self.condition_input = conditions[0].input[0]
        variables = [enter for enter in enters if enter.name in merges]
        constants = [enter for enter in enters if enter.name not in merges]
        self.enters = [*variables, *constants]
        self.names = [f"loop_variable_{i}" for i in range(len(self.enters))]
        merge_at = {merges[enter.name][0].name: i for i, enter in enumerate(variables)}
        self.switches = {
            node.name: merge_at[split(node.input[0])[0]]
            for node in inside.values()
            if node.op in _SWITCH
            and split(node.input[0])[0] in merge_at
            and split(node.input[1])[0] == conditions[0].name
        }
        following = [merges[enter.name][1] for enter in variables]
        self.next_values = [node.input[0] for node in following]
        self.next_controls = [text[1:] for node in following for text in node.input if text.startswith("^")]
        self.exits = [node for node in nodes.values() if node.op in _EXIT and split(node.input[0])[0] in inside]
        self.merge_values = {merge: self.names[i] for merge, i in merge_at.items()}
        self.merge_values |= {e.name: self.names[len(variables) + i] for i, e in enumerate(constants)}
        self.body_values = {**self.merge_values, **{s: self.names[i] for s, i in self.switches.items()}}
        self.boundary = {*self.merge_values, *self.switches, conditions[0].name, *[e.name for e in enters]}
        self.count = len(variables)
        some = next(iter(merge_at), conditions[0].name)
        self.prefix = some.rsplit("/", 1)[0] if "/" in some else "while"

    def invariant_arguments(self) -> list[str]:
        return self.names[self.count :]

    def after(self, name: str) -> list[Any]:
        """Converts Exit nodes to identities of the While's outputs, including the nodes between a Switch and its Exit."""
        found: dict[str, Any] = {}
        stack = []
        for node in self.exits:
            identity = NodeDef(name=node.name, op="Identity")
            identity.attr["T"].type = node.attr["T"].type
            identity.input.append(node.input[0])
            found[node.name] = identity
            stack.append(split(node.input[0])[0])
        while stack:
            source = stack.pop()
            if source in self.boundary or source in found or source not in self.inside:
                continue
            node = found[source] = NodeDef()
            node.CopyFrom(self.inside[source])
            stack.extend(split(text)[0] for text in node.input)
        outer = {enter.name: enter.input[0] for enter in self.enters[self.count :]}
        for node in found.values():
            inputs = []
            for text in node.input:
                source, index = split(text)
                if source in self.switches and index >= 0:
                    inputs.append(_joined(name, self.switches[source]))
                elif source in outer and index >= 0:
                    inputs.append(outer[source])
                elif source in found:
                    inputs.append(text)
                elif index < 0:
                    inputs.append("^" + name)
                else:
                    raise ValueError(f"Loop '{self.frame}': what leaves it at '{node.name}' is not a loop variable.")
            del node.input[:]
            node.input.extend(inputs)
        return list(found.values())

    def fill(self, body: Body, outputs: list[str], values: dict[str, str], controls: Sequence[str] = ()) -> None:
        """Adds the nodes that `outputs` and `controls` need to `body`; `values` maps boundary nodes to arguments."""
        for name, enter in zip(self.names, self.enters):
            body.arguments.append((name, enter.attr["T"].type, enter.op == "RefEnter"))
        found: dict[str, Any] = {}
        stack = [*[split(text)[0] for text in outputs], *controls]
        while stack:
            name = stack.pop()
            if name in found or name in values or name in self.boundary or name not in self.inside:
                continue
            node = NodeDef()
            node.CopyFrom(self.inside[name])
            found[name] = node
            stack.extend(split(text)[0] for text in node.input)
        for node in found.values():
            inputs = []
            for text in node.input:
                source, index = split(text)
                if index < 0:
                    if source in found:
                        inputs.append(text)
                    continue
                inputs.append(self._value(source, index, values, found, node.name))
            del node.input[:]
            node.input.extend(inputs)
            body.nodes.append(node)
        body.outputs.extend(self._value(*split(text), values, found, body.name) for text in outputs)
        body.controls.extend(name for name in controls if name in found)

    def _value(self, source: str, index: int, values: dict[str, str], found: dict[str, Any], user: str) -> str:
        if source in values:
            return values[source]
        if source in found:
            return _joined(source, index)
        raise ValueError(f"Loop '{self.frame}': '{user}' takes '{source}:{index}', which is not in the loop.")


# -- branches ------------------------------------------------------------------------------------------------------


class _Branches:
    """Converts the Switch and Merge nodes of a graph or body to If nodes.

    `state[node]` maps each predicate that a node depends on to its side, 0 or 1. It is computed once, and nodes keep
    their state when nodes around them are replaced.
    """

    def __init__(
        self,
        nodes: dict[str, Any],
        arguments: dict[str, tuple[int, bool]],
        bodies: dict[str, Body],
        taken: set[str],
        output_types: OutputTypes,
    ) -> None:
        self.nodes, self.arguments, self.bodies, self.taken = nodes, arguments, bodies, taken
        self.output_types = output_types
        self.keep: list[str] = []
        self.removed: dict[str, Any] = {}  # nodes that lead to no Merge
        self.state: dict[str, dict[str, int]] = {}
        self.predicates: dict[
            str, tuple[str, int]
        ] = {}  # Merge -> its predicate and the index of the true side's input

    def run(self) -> dict[str, Any]:
        if not any(node.op in _SWITCH or node.op in _MERGE for node in self.nodes.values()):
            return self.nodes
        self._find_states()
        for name in self.keep:
            for predicate, side in list(self.state.get(name, {}).items()):
                self._assume(predicate, side)
        while True:
            self._prune()
            group = self._next_group()
            if group is None:
                break
            self._raise(*group)
        self._drop_dead()
        return self.nodes

    def type_of(self, node: Any, index: int) -> int:
        if node.op in CONTROL_FLOW and (index == 0 or node.op in _SWITCH):
            return node.attr["T"].type
        return self.output_types(node)[index]

    def _root(self, text: str) -> str:
        """Returns the tensor behind a predicate, looking through identities."""
        while True:
            source, index = split(text)
            node = self.nodes.get(source)
            if node is None or node.op != "Identity":
                return _joined(source, index)
            text = node.input[0]

    def _find_states(self) -> None:
        for name in topological(self.nodes):
            node = self.nodes[name]
            if node.op in _MERGE:
                self.state[name] = self._merged(node)
                continue
            state: dict[str, int] = {}
            for text in node.input:
                source, index = split(text)
                found = self.nodes.get(source)
                if found is None or node.op == "ControlTrigger":  # a ControlTrigger runs whichever side is taken
                    continue
                state.update(self.state[source])
                if found.op in _SWITCH and index >= 0:
                    state[self._root(found.input[1])] = index
            self.state[name] = state

    def _input_state(self, text: str) -> dict[str, int]:
        source, index = split(text)
        found = self.nodes.get(source)
        if found is None:
            return {}
        state = dict(self.state[source])
        if found.op in _SWITCH:
            state[self._root(found.input[1])] = index
        return state

    def _merged(self, node: Any) -> dict[str, int]:
        """Returns the state after a Merge, and records its predicate and the sides of its inputs in `predicates`."""
        data = [text for text in node.input if not text.startswith("^")]
        states = [self._input_state(text) for text in data]
        if len(states) != 2:
            raise ValueError(f"Node '{node.name}': a Merge of {len(states)} inputs is neither a branch nor a loop.")
        apart = [p for p in states[0] if p in states[1] and states[0][p] != states[1][p]]
        if not apart:
            # Gradients also merge a value that one side computes with a constant for the other, such as the shape of a looked-up table.
            sided = [(k, p) for k in (0, 1) for p in states[k] if p not in states[1 - k]]
            for k, predicate in sided[-1:]:
                states[1 - k] = {**states[k], predicate: 1 - states[k][predicate]}
                apart.append(predicate)
        if not apart:
            raise ValueError(f"Node '{node.name}': the inputs of this Merge are not two sides of one Switch.")
        predicate = apart[-1]
        self.predicates[node.name] = (predicate, 0 if states[0][predicate] == 1 else 1)
        return {p: side for p, side in states[0].items() if states[1].get(p) == side}

    def _assume(self, predicate: str, side: int) -> None:
        """Treats `predicate` as decided, for a body that returns a value of one side only because its loop is in that branch."""
        for node in self.nodes.values():
            for position, text in enumerate(node.input):
                source, index = split(text)
                switch = self.nodes.get(source)
                if index == side and switch is not None and switch.op in _SWITCH:
                    if self._root(switch.input[1]) == predicate:
                        node.input[position] = switch.input[0]
        for state in self.state.values():
            if state.get(predicate) == side:
                del state[predicate]

    def _prune(self) -> None:
        """Removes one-sided nodes that lead to no Merge; otherwise they would seem to need values of other nodes."""
        reached: set[str] = set()
        stack = [
            name
            for name, node in self.nodes.items()
            if node.op in _MERGE or name in self.keep or (not self.state[name] and node.op not in _SWITCH)
        ]
        while stack:
            name = stack.pop()
            if name in self.nodes and name not in reached:
                reached.add(name)
                stack.extend(split(text)[0] for text in self.nodes[name].input)
        self.removed.update((name, node) for name, node in self.nodes.items() if name not in reached)
        self.nodes = {name: node for name, node in self.nodes.items() if name in reached}

    def _next_group(self) -> tuple[str, list[Any]] | None:
        """Returns the Merges that a single If can replace: they have the same predicate and state and do not depend on each other."""
        merges = [self.nodes[name] for name in topological(self.nodes) if self.nodes[name].op in _MERGE]
        if not merges:
            return None
        deepest = max(merges, key=lambda node: len(self.state[node.name]))
        predicate = self.predicates[deepest.name][0]
        state = self.state[deepest.name]
        like = [n for n in merges if self.predicates[n.name][0] == predicate and self.state[n.name] == state]
        names = {node.name for node in like}
        below = {node.name for node in like if self._depends(node, names)}
        return predicate, [node for node in like if node.name not in below]

    def _depends(self, node: Any, names: set[str]) -> bool:
        seen: set[str] = set()
        stack = [split(text)[0] for text in node.input]
        while stack:
            name = stack.pop()
            if name in names:
                return True
            if name in seen or name not in self.nodes:
                continue
            seen.add(name)
            stack.extend(split(text)[0] for text in self.nodes[name].input)
        return False

    def _raise(self, predicate: str, merges: list[Any]) -> None:
        prefix = merges[0].name.rsplit("/", 1)[0] if "/" in merges[0].name else "cond"
        name = _unique(f"{prefix}/If", self.taken)
        branches = [
            _Branch(self, predicate, side, [m.input[self._input_of(m, side)] for m in merges], f"{name}_{label}")
            for side, label in enumerate(("false", "true"))
        ]
        for side, branch in enumerate(branches):
            branch.also_run(self._triggered(predicate, side, merges))
        outside = self._used_later(branches, merges, predicate)
        captured = list(dict.fromkeys([*branches[0].captured, *branches[1].captured]))
        dtypes = {}
        for branch in branches:
            dtypes.update(branch.dtypes)
        types = [merge.attr["T"].type for merge in merges]
        index_at: dict[str, int] = {}
        for merge in merges:
            if any(split(t) == (merge.name, 1) for n in self.nodes.values() for t in n.input):
                index_at[merge.name] = len(types)
                types.append(as_dtype("int32").as_datatype_enum)
                for side, branch in enumerate(branches):
                    branch.returns_constant(self._input_of(merge, side), self.taken)
        node = NodeDef(name=name, op="If")
        node.input.extend([predicate, *captured])
        node.input.extend(sorted({control for branch in branches for control in branch.controls}))
        extra_at: dict[tuple[str, int], int] = {}
        for text, side, dtype in outside:
            extra_at[split(text)] = len(types)
            types.append(dtype)
            branches[side].body.outputs.append(text)
            branches[1 - side].returns_nothing(dtype, self.taken)
        node.attr["Tcond"].type = as_dtype("bool").as_datatype_enum
        node.attr["Tin"].list.type.extend(dtypes[text][0] for text in captured)
        node.attr["Tout"].list.type.extend(types)
        for branch, attr in zip(branches, ("else_branch", "then_branch")):
            branch.finish(captured, dtypes)
            self.bodies[branch.body.name] = branch.body
            node.attr[attr].func.name = branch.body.name
        for gone in {*branches[0].members, *branches[1].members}:
            del self.nodes[gone]
        for position, merge in enumerate(merges):
            self.nodes[merge.name] = _after_merge(merge, name, position, index_at.get(merge.name))
        state = self.state[merges[0].name]
        self.nodes[name], self.state[name] = node, state
        self._redirect(extra_at, name)

    def _triggered(self, predicate: str, side: int, merges: list[Any]) -> list[str]:
        """Returns nodes of one side that only a ControlTrigger waits for. 1.x loops push on stacks in this way."""
        wanted = {**self.state[merges[0].name], predicate: side}
        names = {merge.name for merge in merges}
        found = [split(text)[0] for node in self.nodes.values() if node.op == "ControlTrigger" for text in node.input]
        return [
            name
            for name in dict.fromkeys(found)
            if name in self.nodes and self.state[name] == wanted and not self._depends(self.nodes[name], names)
        ]

    def _input_of(self, merge: Any, side: int) -> int:
        on = self.predicates[merge.name][1]
        return on if side else 1 - on

    def _used_later(self, branches: list[_Branch], merges: list[Any], predicate: str) -> list[tuple[str, int, int]]:
        """Returns values inside the branches that other nodes on the same side use, as gradients do."""
        members = [branch.members for branch in branches]
        ours = {merge.name for merge in merges}
        found: dict[str, tuple[str, int, int]] = {}
        for node in self.nodes.values():
            if node.name in members[0] or node.name in members[1] or node.name in ours:
                continue
            for text in node.input:
                source, index = split(text)
                if index < 0:
                    continue
                for side in (0, 1):
                    if source in members[side]:
                        found.setdefault(text, (text, side, self.type_of(self.nodes[source], index)))
        return list(found.values())

    def _redirect(self, moved: dict[tuple[str, int], int], name: str) -> None:
        for node in self.nodes.values():
            if node.name == name:
                continue
            inputs = []
            for text in node.input:
                source, index = split(text)
                if (source, index) in moved:
                    text = _joined(name, moved[source, index])
                elif index < 0 and source not in self.nodes:
                    text = "^" + name  # the node waited for a node inside a branch
                inputs.append(text)
            del node.input[:]
            node.input.extend(
                dict.fromkeys(inputs) if len(set(inputs)) < len(inputs) and _only_controls(inputs) else inputs
            )

    def _drop_dead(self) -> None:
        """Removes one-sided nodes that reach no Merge, and nodes that depend on them."""
        gone = {n for n in self.nodes if self.state.get(n)} | {n.name for n in self.nodes.values() if n.op in _SWITCH}
        gone -= {name for name in self.keep if self.nodes.get(name) is not None and self.nodes[name].op not in _SWITCH}
        for name in topological(self.nodes):
            if any(index >= 0 and source in gone for source, index in map(split, self.nodes[name].input)):
                gone.add(name)
        lost = [name for name in self.keep if name in gone]
        if lost:
            raise ValueError(f"'{lost[0]}' is computed on one side of a Switch only, but used on both.")
        for name in gone:
            if name in self.nodes:
                self.removed[name] = self.nodes.pop(name)
        for node in self.nodes.values():
            kept = [text for text in node.input if not text.startswith("^") or text[1:] not in gone]
            if len(kept) < len(node.input):
                del node.input[:]
                node.input.extend(kept)

    def one_sided(self) -> list[Any]:
        """Returns the removed nodes that can stay as they are, because none of their inputs has moved into a branch.

        They run if their side is taken. RefSwitch, whose outputs are variables, is not among them.
        """
        present = {*self.nodes, *self.arguments}
        found = []
        for name in topological(self.removed):
            node = self.removed[name]
            if node.op != "RefSwitch" and all(split(text)[0] in present for text in node.input):
                present.add(name)
                found.append(node)
        return found


def _only_controls(inputs: list[str]) -> bool:
    repeated = {text for text in inputs if inputs.count(text) > 1}
    return all(text.startswith("^") for text in repeated)


def _after_merge(merge: Any, name: str, position: int, index_position: int | None) -> Any:
    dtype = merge.attr["T"].type
    if index_position is None:
        node = NodeDef(name=merge.name, op="Identity")
        node.input.append(_joined(name, position))
        node.attr["T"].type = dtype
        return node
    node = NodeDef(name=merge.name, op="IdentityN")
    node.input.extend([_joined(name, position), _joined(name, index_position)])
    node.attr["T"].list.type.extend([dtype, as_dtype("int32").as_datatype_enum])
    return node


class _Branch:
    """One side of an If: the nodes that move into it, and the tensors that they take from outside."""

    def __init__(self, owner: _Branches, predicate: str, side: int, outputs: list[str], name: str) -> None:
        self.owner = owner
        self.members: set[str] = set()
        self.controls: set[str] = set()
        self.captured: list[str] = []  # tensors from outside
        self.dtypes: dict[str, tuple[int, bool]] = {}
        self.body = Body(_unique(name.replace("/", "_"), owner.bodies))
        self._predicate, self._side = predicate, side
        self._links: dict[str, str] = {}  # name of a tensor as nodes use it -> the outside tensor
        for text in outputs:
            self._take(text)
        self.body.outputs.extend(outputs)

    def also_run(self, names: list[str]) -> None:
        for name in names:
            self._take("^" + name)
            self.body.controls.append(name)

    def _take(self, text: str) -> None:
        stack: list[tuple[str, Any]] = [(text, None)]
        while stack:
            text, user = stack.pop()
            source, index = split(text)
            node = self.owner.nodes.get(source)
            if node is not None and node.op in _SWITCH and self.owner._root(node.input[1]) == self._predicate:
                if index >= 0:
                    self._capture(text, node.input[0], node.attr["T"].type, node.op == "RefSwitch")
                continue
            inside = node is not None and self.owner.state.get(source, {}).get(self._predicate) == self._side
            if not inside:
                if index >= 0:
                    reference = node is not None and node.op in ("VariableV2", "Variable")
                    reference = reference or self.owner.arguments.get(source, (0, False))[1]
                    self._capture(text, text, self._type(user, text), reference)
                elif node is not None:
                    self.controls.add(text)
                continue
            if node is not None and source not in self.members:
                self.members.add(source)
                stack.extend((each, node) for each in node.input)

    def _type(self, user: Any, text: str) -> int:
        source, index = split(text)
        node = self.owner.nodes.get(source)
        if node is not None:
            return self.owner.type_of(node, index)
        if source in self.owner.arguments:
            return self.owner.arguments[source][0]
        raise ValueError(f"The dtype of '{text}', used by '{'' if user is None else user.name}', is not known.")

    def _capture(self, text: str, outside: str, dtype: int, reference: bool) -> None:
        self._links[text] = outside
        if outside not in self.dtypes:
            self.captured.append(outside)
        self.dtypes[outside] = (dtype, reference)

    def returns_constant(self, value: int, taken: set[str]) -> None:
        node = NodeDef(name=_unique(f"value_index_{value}", taken), op="Const")
        node.attr["dtype"].type = as_dtype("int32").as_datatype_enum
        node.attr["value"].tensor.dtype = as_dtype("int32").as_datatype_enum
        node.attr["value"].tensor.tensor_shape.SetInParent()
        node.attr["value"].tensor.int_val.append(value)
        self.body.nodes.append(node)
        self.body.outputs.append(node.name)

    def returns_nothing(self, dtype: int, taken: set[str]) -> None:
        node = NodeDef(name=_unique("not_taken", taken), op="FakeParam")
        node.attr["dtype"].type = dtype
        node.attr["shape"].shape.unknown_rank = True
        self.body.nodes.append(node)
        self.body.outputs.append(node.name)

    def finish(self, captured: list[str], dtypes: dict[str, tuple[int, bool]]) -> None:
        """Fixes the arguments, which both sides share, and rewrites the nodes to use them."""
        names = {text: f"captured_{i}" for i, text in enumerate(captured)}
        self.body.arguments = [(names[text], *dtypes[text]) for text in captured]
        for name in sorted(self.members):
            node = NodeDef()
            node.CopyFrom(self.owner.nodes[name])
            inputs = []
            for text in node.input:
                source, index = split(text)
                if index >= 0:
                    inputs.append(names[self._links[text]] if text in self._links else text)
                elif source in self.members:
                    inputs.append(text)
            del node.input[:]
            node.input.extend(inputs)
            self.body.nodes.append(node)
        self.body.outputs = [names[self._links[t]] if t in self._links else t for t in self.body.outputs]
