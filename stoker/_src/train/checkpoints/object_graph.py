"""The object graph of a checkpoint, as TensorFlow writes it: nodes with their children by name, keys of values, and slots.

The key of a value is the shortest path from the root to its object:

    optimizer/beta1_power/.ATTRIBUTES/VARIABLE_VALUE
    layer/kernel/.OPTIMIZER_SLOT/optimizer/m/.ATTRIBUTES/VARIABLE_VALUE

A slash inside a name is written as `.S`, a dot as `..`.
"""

from __future__ import annotations

import collections
from collections.abc import Callable, Iterable
from typing import Any

from stoker._src.formats.protos import TrackableObjectGraph
from stoker._src.graph.saveable import SaveableObject
from stoker._src.graph.trackable import Trackable
from stoker._src.ops.variables.variables import Variable

OBJECT_GRAPH_KEY = "_CHECKPOINTABLE_OBJECT_GRAPH"
_ATTRIBUTES = ".ATTRIBUTES"
_SLOTS = ".OPTIMIZER_SLOT"


def escaped(name: str) -> str:
    """Returns a name in the form in which keys contain it."""
    return name.replace(".", "..").replace("/", ".S")


class Saved:
    """One value of an object, with its key in the checkpoint and the function that creates its saveable."""

    def __init__(self, owner: Any, attribute: str, key: str, make: Any) -> None:
        self.owner, self.attribute, self.key, self._make = owner, attribute, key, make

    def saveable(self) -> SaveableObject:
        return saveable_of(self._make, self.key)


def saveable_of(make: Any, key: str) -> SaveableObject:
    """Returns the saveable of one entry of `_gather_saveables_for_checkpoint`, with a checkpoint key as its name."""
    if isinstance(make, Variable):
        return make._saveable(key)
    if isinstance(make, SaveableObject):
        make.name = key
        return make
    return make(name=key)


class ObjectGraph:
    """Everything that can be reached from a root, in breadth-first order.

    Args:
        root: the object to start from.
        attached: further children of the root, by name.
        children: returns the children of an object by name; by default those that checkpoints hold.
    """

    def __init__(
        self,
        root: Any,
        attached: dict[str, Any] | None = None,
        children: Callable[[Any, dict[str, Any]], dict[str, Any]] | None = None,
    ) -> None:
        self.root = root
        self._children = children or children_of
        self.attached = {} if attached is None else attached
        self.objects: list[Any] = [root]
        self.paths: list[tuple[str, ...]] = [()]
        self.children: list[dict[str, int]] = []
        self.slots: dict[int, list[tuple[int, str, int]]] = {}  # by optimizer: (variable, name, slot)
        self._slot_keys: dict[int, str] = {}
        self._numbers = {id(root): 0}
        self._walk()
        self._find_slots()

    def _walk(self) -> None:
        at = 0
        while at < len(self.objects):
            named: dict[str, int] = {}
            for name, child in self._children(self.objects[at], self.attached if at == 0 else {}).items():
                number = self._numbers.get(id(child))
                if number is None:
                    number = self._add(child, (*self.paths[at], name))
                named[name] = number
            self.children.append(named)
            at += 1

    def _add(self, trackable: Any, path: tuple[str, ...]) -> int:
        number = self._numbers[id(trackable)] = len(self.objects)
        self.objects.append(trackable)
        self.paths.append(path)
        return number

    def _find_slots(self) -> None:
        variables = [(number, each) for number, each in enumerate(self.objects) if isinstance(each, Variable)]
        for number in range(len(self.objects)):
            optimizer = self.objects[number]
            if not hasattr(optimizer, "get_slot_names"):
                continue
            for slot_name in optimizer.get_slot_names():
                for owner, variable in variables:
                    slot = optimizer.get_slot(variable, slot_name)
                    if slot is None:
                        continue
                    known = self._numbers.get(id(slot))
                    if known is None:
                        known = self._add(slot, (*self.paths[owner], slot_name))
                        self.children.append({})
                        path = [self._key(owner), _SLOTS, self._key(number), escaped(slot_name)]
                        self._slot_keys[known] = "/".join(path)
                    self.slots.setdefault(number, []).append((owner, slot_name, known))

    def _key(self, number: int) -> str:
        return "/".join(map(escaped, self.paths[number]))

    def values(self) -> list[Saved]:
        """Returns all values to save, object by object."""
        found = []
        for number, trackable in enumerate(self.objects):
            parts = trackable._gather_saveables_for_checkpoint()
            if parts:
                place = self._slot_keys.get(number) or self._key(number)
                for attribute, make in parts.items():
                    key = f"{place}/{_ATTRIBUTES}/{escaped(attribute)}"
                    found.append(Saved(trackable, attribute, key if place else key[1:], make))
        return found

    def message(self, values: Iterable[Saved]) -> Any:
        """Returns the graph as a TrackableObjectGraph."""
        graph = TrackableObjectGraph()
        by_owner: dict[int, list[Saved]] = collections.defaultdict(list)
        for value in values:
            by_owner[id(value.owner)].append(value)
        holding = self._holding({self._numbers[owner] for owner in by_owner})
        for number, trackable in enumerate(self.objects):
            node = graph.nodes.add()
            for name, child in self.children[number].items():
                node.children.add(node_id=child, local_name=name)
            for value in by_owner[id(trackable)]:
                full_name = trackable._shared_name if isinstance(trackable, Variable) else ""
                node.attributes.add(name=value.attribute, full_name=full_name, checkpoint_key=value.key)
            for owner, slot_name, slot in self.slots.get(number, ()):
                node.slot_variables.add(
                    original_variable_node_id=owner, slot_name=slot_name, slot_variable_node_id=slot
                )
            if number in holding:
                node.has_checkpoint_values.value = True
        return graph

    def _holding(self, with_values: set[int]) -> set[int]:
        """Returns the objects that have values, and those from which such objects can be reached."""
        owners: dict[int, list[int]] = collections.defaultdict(list)
        for number, named in enumerate(self.children):
            for child in named.values():
                owners[child].append(number)
        for number, slots in self.slots.items():
            for _, _, slot in slots:
                owners[slot].append(number)
        holding, todo = set(with_values), list(with_values)
        while todo:
            for owner in owners[todo.pop()]:
                if owner not in holding:
                    holding.add(owner)
                    todo.append(owner)
        return holding


def children_of(trackable: Any, attached: dict[str, Any]) -> dict[str, Any]:
    """Returns the trackable children of an object, including attached ones."""
    found = {**trackable._trackable_children(), **attached}
    return {name: child for name, child in found.items() if isinstance(child, Trackable)}
