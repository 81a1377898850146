"""Restores objects from a checkpoint: existing ones immediately, others when they are created.

A restoration walks the object graphs of the checkpoint and of the program in parallel, from the root. If the program has no child of some
name yet, the restoration leaves a `_Position` with the owner, and the walk continues from there when the child is created. A slot is
restored when both its variable and its optimizer are known.
"""

from __future__ import annotations

import collections
import itertools
import weakref
from collections.abc import Callable
from typing import Any

from stoker._src.base import tf_logging
from stoker._src.formats.protos import TrackableObjectGraph
from stoker._src.graph import context
from stoker._src.graph.saveable import SaveableObject
from stoker._src.graph.scopes import device, init_scope
from stoker._src.graph.trackable import VARIABLE_VALUE_KEY
from stoker._src.ops.io import checkpoints
from stoker._src.train.checkpoints.object_graph import saveable_of
from stoker._src.train.checkpoints.reader import CheckpointReader
from stoker._src.train.checkpoints.saver_ops import texts

_UIDS = itertools.count()


class _Position:
    """A node of the checkpoint whose object does not exist yet."""

    def __init__(self, restoration: Restoration, node: int) -> None:
        self._restoration, self._node = restoration, node

    @property
    def uid(self) -> int:
        return self._restoration.uid

    def restore(self, trackable: Any) -> None:
        self._restoration.restore(trackable, self._node)


class PythonSaveable(SaveableObject):
    """Python state that is saved as a string. It is restored in Python, even while a graph is being built.

    Args:
        op, specs, name: as in SaveableObject.
        take: called with the bytes.
    """

    def __init__(self, op: Any, specs: Any, name: str, take: Callable[[bytes], Any]) -> None:
        super().__init__(op, specs, name)
        self.take = take


class RestoreOps:
    """The restore ops of one graph. They are kept so that the next restoration reuses them."""

    def __init__(self) -> None:
        self.path: Any = None  # fed with the checkpoint's path
        self._made: dict[tuple[str, int], Any] = {}

    def ops_for(self, saveables: list[SaveableObject], path: Any, place: str | None) -> list[Any]:
        """Returns the op that restores each saveable. Those that have none yet share one read op."""
        if self.path is None:
            self.path = path
        missing = [each for each in saveables if (each.name, id(each.op)) not in self._made]
        for saveable, op in zip(missing, restore_ops(self.path, missing, place)):
            self._made[saveable.name, id(saveable.op)] = op
        return [self._made[each.name, id(each.op)] for each in saveables]


def restore_ops(path: Any, saveables: list[SaveableObject], place: str | None = None) -> list[Any]:
    """Reads the tensors of all saveables by one op, and restores each. Returns the restore ops, which are None in eager mode."""
    specs = [spec for saveable in saveables for spec in saveable.specs]
    if not specs:
        return []
    with device(place or "/device:CPU:0"):
        tensors = checkpoints.RESTORE_V2(
            path,
            texts([spec.name for spec in specs]),
            texts([spec.slice_spec for spec in specs]),
            dtypes=[spec.dtype for spec in specs],
        )
    ops, at = [], 0
    for saveable in saveables:
        count = len(saveable.specs)
        ops.append(saveable.restore(tensors[at : at + count], None))
        at += count
    return ops


class Restoration:
    """One `restore` of an object-based checkpoint.

    Args:
        graph: the TrackableObjectGraph of the checkpoint.
        path: the path of the checkpoint.
        reader: its reader.
        attached: further children of the root.
        cache: the existing restore ops of the graph; None in eager mode.
        new_path: creates the tensor from which ops read the path.
        options: a `CheckpointOptions`.
    """

    def __init__(
        self,
        graph: TrackableObjectGraph,
        path: str,
        reader: CheckpointReader,
        attached: dict[str, Any],
        cache: RestoreOps | None,
        new_path: Callable[[], Any],
        options: Any,
    ) -> None:
        self.uid = next(_UIDS)
        self.graph, self.path, self.reader = graph, path, reader
        self.ops: list[Any] = []
        self.unused: dict[int, list[str]] = {}  # attributes of the checkpoint that their objects do not have
        self.expect_partial = False
        self.cache = cache
        self._new_path, self._options, self._attached = new_path, options, attached
        self._objects: dict[int, Callable[[], Any]] = {}
        self._slots_of_variable: dict[int, list[tuple[int, str, int]]] = collections.defaultdict(list)
        if not options.experimental_skip_slot_variables:
            for number, node in enumerate(graph.nodes):
                for slot in node.slot_variables:
                    self._slots_of_variable[slot.original_variable_node_id].append(
                        (number, slot.slot_name, slot.slot_variable_node_id)
                    )
        self._slots_of_optimizer: dict[int, list[tuple[int, str, int]]] = collections.defaultdict(list)
        for variable, slots in self._slots_of_variable.items():
            for optimizer, slot_name, slot in slots:
                self._slots_of_optimizer[optimizer].append((variable, slot_name, slot))

    def object_of(self, node: int) -> Any:
        """Returns the object that a node of the checkpoint was matched with, or None."""
        found = self._objects.get(node)
        return None if found is None else found()

    def restored(self) -> list[Any]:
        """Returns all objects that were matched."""
        return [each for each in map(self.object_of, range(len(self.graph.nodes))) if each is not None]

    @property
    def skips_slots(self) -> bool:
        return self._options.experimental_skip_slot_variables

    def skipped(self) -> set[int]:
        """Returns the nodes of slots if slots are not restored."""
        if not self.skips_slots:
            return set()
        return {slot.slot_variable_node_id for node in self.graph.nodes for slot in node.slot_variables}

    # -- the walk ------------------------------------------------------------------------------------------------

    def restore(self, trackable: Any, node: int) -> None:
        """Restores an object and all of its existing children."""
        todo, found = collections.deque([(trackable, node)]), []
        slots: list[tuple[Any, Any, str, int]] = []
        while todo:
            trackable, node = todo.popleft()
            if not self._bind(trackable, node):
                continue
            found.append((trackable, node))
            for child in self.graph.nodes[node].children:
                part = self._attached.get(child.local_name) if node == 0 else None
                if part is None:
                    part = trackable._lookup_dependency(child.local_name)
                if part is None:
                    trackable._defer(child.local_name, _Position(self, child.node_id))
                else:
                    todo.append((part, child.node_id))
            for variable, slot_name, slot in self._slots_of_optimizer.get(node, ()):
                slots.append((node, variable, slot_name, slot))
            for optimizer, slot_name, slot in self._slots_of_variable.get(node, ()):
                slots.append((optimizer, node, slot_name, slot))
        self._assign(found)
        for optimizer, variable, slot_name, slot in slots:
            self._restore_slot(optimizer, variable, slot_name, slot)

    def _bind(self, trackable: Any, node: int) -> bool:
        """Records which object a node belongs to. Returns whether the object must be restored from the node."""
        present = self.object_of(node)
        if present is None:
            try:
                self._objects[node] = weakref.ref(trackable)
            except TypeError:  # tuples cannot be referred to weakly
                self._objects[node] = lambda: trackable
        elif present is not trackable:
            tf_logging.warning(
                "Inconsistent references when loading the checkpoint into this object graph. For example, in the saved "
                "checkpoint object, `model.layer.weight` and `model.layer_copy.weight` reference the same variable, while "
                "in the current object these are two different variables. The referenced variables are:(%s and %s).",
                present,
                trackable,
            )
            return False
        state = trackable._tracking_state()
        if state.uid >= self.uid:
            return False
        state.uid = self.uid
        return True

    def _restore_slot(self, optimizer_node: int, variable_node: int, slot_name: str, slot_node: int) -> None:
        optimizer, variable = self.object_of(optimizer_node), self.object_of(variable_node)
        if optimizer is None or variable is None or self.object_of(slot_node) is not None:
            return
        if not hasattr(optimizer, "_restore_slot"):
            return
        attributes = self.graph.nodes[slot_node].attributes
        simple = len(attributes) == 1 and attributes[0].name == VARIABLE_VALUE_KEY
        make = None
        if simple and context.executing_eagerly():
            make = lambda: self.reader.get_tensor(attributes[0].checkpoint_key)  # noqa: E731
        optimizer._restore_slot(slot_name, variable, _Position(self, slot_node), make)

    # -- values --------------------------------------------------------------------------------------------------

    def _assign(self, found: list[tuple[Any, int]]) -> None:
        saveables: list[SaveableObject] = []
        for trackable, node in found:
            attributes = self.graph.nodes[node].attributes
            if not attributes:
                continue
            parts = trackable._gather_saveables_for_checkpoint()
            for attribute in attributes:
                make = parts.get(attribute.name)
                if make is None:
                    self.unused.setdefault(node, []).append(attribute.name)
                    continue
                saveable = saveable_of(make, attribute.checkpoint_key)
                if isinstance(saveable, PythonSaveable):
                    saveable.take(self.reader.get_tensor(attribute.checkpoint_key))
                elif not saveable.optional_restore or self._has(saveable):
                    saveables.append(saveable)
        if not saveables:
            return
        place = self._options.experimental_io_device
        with init_scope():
            if context.executing_eagerly():
                restore_ops(self.path, saveables, place)
            else:
                assert self.cache is not None, "a restoration of eager mode met a graph"
                path = self.cache.path if self.cache.path is not None else self._new_path()
                self.ops += self.cache.ops_for(saveables, path, place)

    def _has(self, saveable: SaveableObject) -> bool:
        return all(self.reader.has_tensor(spec.name) for spec in saveable.specs)

    # -- what was not restored -----------------------------------------------------------------------------------

    def names(self) -> dict[int, str]:
        """Returns names for the nodes of the checkpoint: the shortest path from the root or, for slots, a description."""
        named, todo = {0: "(root)"}, collections.deque([0])
        while todo:
            number = todo.popleft()
            for child in self.graph.nodes[number].children:
                if child.node_id not in named:
                    named[child.node_id] = f"{named[number]}.{child.local_name}"
                    todo.append(child.node_id)
        for number, node in enumerate(self.graph.nodes):
            for slot in node.slot_variables:
                named[slot.slot_variable_node_id] = (
                    f"{named.get(number)}'s state '{slot.slot_name}' for {named.get(slot.original_variable_node_id)}"
                )
        return named

    def __del__(self) -> None:
        if getattr(self, "expect_partial", True) or tf_logging is None:
            return
        left = [n for n, node in enumerate(self.graph.nodes) if node.attributes and n not in self._objects]
        if not left and not self.unused:
            return
        tf_logging.warning(
            "Detecting that an object or model or tf.train.Checkpoint is being deleted with unrestored values. See the "
            "following logs for the specific values in question. To silence these warnings, use `status.expect_partial()`."
        )
        names = self.names()
        for number in left:
            tf_logging.warning("Value in checkpoint could not be found in the restored object: %s", names.get(number))
        for number, attributes in self.unused.items():
            tf_logging.warning("Attributes not found in the object %s: %s", names.get(number), attributes)
