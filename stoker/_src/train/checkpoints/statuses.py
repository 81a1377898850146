"""The status objects that `restore` returns: assertions about what was matched, and restore ops for graphs."""

from __future__ import annotations

from typing import Any

from stoker._src.graph import context
from stoker._src.graph.tracked_structures import DictWrapper, ListWrapper, OrderedDictWrapper, TupleWrapper
from stoker._src.train.checkpoints.object_graph import ObjectGraph
from stoker._src.train.checkpoints.restoration import Restoration

_SHOWN = 10


def session_or_default(session: Any) -> Any:
    """Returns `session`, or the default session.

    Raises:
        ValueError: there is no session.
    """
    if session is None:
        session = context.get_default_graph().default_session()
    if session is None:
        raise ValueError("Checkpoints of a graph need a session: give one, or enter `with tf.Session():`.")
    return session


class LoadStatus:
    """Base class of the statuses. Assertions return the status, so that they can be chained."""

    def assert_consumed(self) -> Any:
        """Raises AssertionError unless everything in the checkpoint was matched, and every object of the program."""
        raise NotImplementedError

    def assert_existing_objects_matched(self) -> Any:
        """Raises AssertionError unless every object of the program was matched."""
        raise NotImplementedError

    def assert_nontrivial_match(self) -> Any:
        """Raises AssertionError unless something besides the root was matched."""
        raise NotImplementedError

    def expect_partial(self) -> Any:
        """Suppresses warnings about values that were not matched."""
        return self

    def run_restore_ops(self, session: Any = None) -> None:
        """Runs the ops that restore, in a graph."""
        raise NotImplementedError

    def initialize_or_restore(self, session: Any = None) -> None:
        """Runs the ops that restore, and the initializers of what is not in the checkpoint, in a graph."""
        raise NotImplementedError


def _initializers(objects: list[Any]) -> list[Any]:
    found = [getattr(each, "initializer", None) for each in objects]
    return [each for each in found if each is not None and not callable(each)]


class CheckpointLoadStatus(LoadStatus):
    """The status of an object-based checkpoint."""

    def __init__(self, restoration: Restoration, root: Any, attached: dict[str, Any]) -> None:
        self._restoration, self._root, self._attached = restoration, root, attached

    def _objects(self) -> list[Any]:
        return ObjectGraph(self._root, self._attached).objects

    def _unmatched(self) -> list[Any]:
        known = {id(each) for each in self._restoration.restored()}
        graph = ObjectGraph(self._root, self._attached)
        if self._restoration.skips_slots:
            known |= {id(graph.objects[slot]) for slots in graph.slots.values() for _, _, slot in slots}
        unmatched = [each for each in graph.objects if id(each) not in known]
        return [each for each in unmatched if each._gather_saveables_for_checkpoint()]

    def assert_consumed(self) -> CheckpointLoadStatus:
        restoration = self._restoration
        self.assert_existing_objects_matched()
        skipped = restoration.skipped()
        for number, node in enumerate(restoration.graph.nodes):
            if node.attributes and number not in skipped and restoration.object_of(number) is None:
                raise AssertionError(f"Unresolved object in checkpoint {restoration.names().get(number)}: {node}")
        if restoration.unused:
            names = restoration.names()
            described = "\n".join(f"    {names.get(number)}: {each}" for number, each in restoration.unused.items())
            raise AssertionError(
                "Unused attributes in these objects (the attributes exist in the checkpoint but were not restored):\n"
                f"{described}"
            )
        return self

    def assert_existing_objects_matched(self) -> CheckpointLoadStatus:
        unmatched = self._unmatched()
        if unmatched:
            shown = unmatched[:_SHOWN]
            raise AssertionError(
                f"Found {len(unmatched)} Python objects that were not bound to checkpointed values, likely due to changes in "
                f"the Python program. Showing {len(shown)} of {len(unmatched)} unmatched objects: {shown}"
            )
        return self

    def assert_nontrivial_match(self) -> CheckpointLoadStatus:
        if any(each is not self._root for each in self._restoration.restored()):
            return self
        unmatched = [each for each in self._objects() if each is not self._root and not _empty(each)]
        if unmatched:
            raise AssertionError(
                "Nothing except the root object matched a checkpointed value. Typically this means that the checkpoint does "
                f"not match the Python program. The following objects have no matching checkpointed value: {unmatched}"
            )
        raise AssertionError(f"Nothing to load. No dependencies have been added to {self._root} yet.")

    def expect_partial(self) -> CheckpointLoadStatus:
        self._restoration.expect_partial = True
        return self

    def run_restore_ops(self, session: Any = None) -> None:
        if context.executing_eagerly() or not self._restoration.ops:
            return
        assert self._restoration.cache is not None, "ops of a graph were made without a place to keep them"
        session = session_or_default(session)
        session.run(self._restoration.ops, {self._restoration.cache.path: self._restoration.path})

    def initialize_or_restore(self, session: Any = None) -> None:
        if context.executing_eagerly():
            return
        session = session_or_default(session)
        known = {id(each) for each in self._restoration.restored()}
        session.run(_initializers([each for each in self._objects() if id(each) not in known]))
        self.run_restore_ops(session)


def _empty(trackable: Any) -> bool:
    kinds = (ListWrapper, DictWrapper, OrderedDictWrapper, TupleWrapper)
    return isinstance(trackable, kinds) and not trackable._trackable_children()


class InitializationOnlyStatus(LoadStatus):
    """The status if there is no checkpoint. Objects can only be initialized."""

    def __init__(self, root: Any, attached: dict[str, Any]) -> None:
        self._root, self._attached = root, attached

    def _refuse(self) -> Any:
        raise AssertionError("No checkpoint specified (save_path=None); nothing is being restored.")

    assert_consumed = assert_existing_objects_matched = assert_nontrivial_match = _refuse

    def run_restore_ops(self, session: Any = None) -> None:
        raise AssertionError(
            "No checkpoint specified, so no restore ops are available (save_path=None to Saver.restore)."
        )

    def initialize_or_restore(self, session: Any = None) -> None:
        if not context.executing_eagerly():
            objects = ObjectGraph(self._root, self._attached).objects
            session_or_default(session).run(_initializers(objects))


class NameBasedSaverStatus(LoadStatus):
    """The status of a name-based checkpoint, whose values are matched by variable names.

    Args:
        restoration: a `NamesRestoration`.
        root, attached: the objects.
    """

    def __init__(self, restoration: Any, root: Any, attached: dict[str, Any]) -> None:
        self._restoration, self._root, self._attached = restoration, root, attached
        self._optional: list[Any] = []

    def add_to_optionally_restored(self, variable: Any) -> None:
        """Declares that the checkpoint need not contain a variable."""
        self._optional.append(variable)

    def assert_consumed(self) -> NameBasedSaverStatus:
        missing = []
        for each in ObjectGraph(self._root, self._attached).objects:
            if any(each is optional for optional in self._optional):
                continue
            names = self._restoration.missing(each)
            if names:
                missing.append(f"    {each}: {names}")
        if missing:
            raise AssertionError("Some objects had attributes which were not restored: \n" + "\n".join(missing))
        return self

    assert_existing_objects_matched = assert_consumed

    def assert_nontrivial_match(self) -> NameBasedSaverStatus:
        if not self._restoration.found:
            raise AssertionError("Nothing in the checkpoint has the name of a variable of these objects.")
        return self

    def run_restore_ops(self, session: Any = None) -> None:
        if not context.executing_eagerly() and self._restoration.ops:
            session_or_default(session).run(self._restoration.ops)

    def initialize_or_restore(self, session: Any = None) -> None:
        if context.executing_eagerly():
            return
        session = session_or_default(session)
        objects = ObjectGraph(self._root, self._attached).objects
        session.run(_initializers([each for each in objects if self._restoration.missing(each)]))
        self.run_restore_ops(session)
