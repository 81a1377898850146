"""Trackable objects: they know their children by name, so that a checkpoint can save and restore the whole object graph.

Variables, tables, layers, optimizers, loss scales, modules and functions are `Trackable`. A trackable

- names its children: `_trackable_children()`, filled by `_track_trackable` or computed by a subclass,
- finds a child by name: `_lookup_dependency(name)`,
- defines what is saved: `_gather_saveables_for_checkpoint()`, a function for each attribute that creates a `SaveableObject`,
- keeps checkpointed values for children that do not exist yet, and restores them when they are created.

A restoration (see `train/checkpoints/restoration.py`) walks the checkpoint's graph and the object graph in parallel. If a child
does not exist yet, the restoration leaves a `Pending` with the owner, and `_track_trackable` passes it to the child.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

VARIABLE_VALUE_KEY = "VARIABLE_VALUE"
"""The attribute that holds a variable's value."""

# The attribute that holds this module's state of an object. It is not a user attribute.
STATE_ATTRIBUTE = "_tracking"


class Pending(Protocol):
    """Checkpointed values for an object that does not exist yet."""

    @property
    def uid(self) -> int:
        """A number that increases with every restoration. The restoration with the highest number takes precedence."""
        ...

    def restore(self, trackable: Any) -> None:
        """Restores the object, which exists by the time of this call."""
        ...


class _State:
    """This module's state of a trackable object."""

    __slots__ = ("by_name", "children", "pending", "uid")

    def __init__(self) -> None:
        self.children: dict[str, Any] = {}
        self.pending: dict[str, list[Pending]] = {}
        self.by_name: list[Pending] = []  # name-based checkpoints, which may hold values for any later child
        self.uid = -1  # the restoration that last set the object's value


class Trackable:
    """Base class of all objects that object-based checkpoints can save. Subclasses need not call `__init__`."""

    def _tracking_state(self) -> _State:
        state = self.__dict__.get(STATE_ATTRIBUTE)
        if state is None:
            state = self.__dict__[STATE_ATTRIBUTE] = _State()
        return state

    # -- children ------------------------------------------------------------------------------------------------

    def _trackable_children(self, save_type: str = "checkpoint", **kwargs: Any) -> dict[str, Any]:
        """Returns the children by name, in the order in which they were first tracked. `save_type` is "checkpoint" or "savedmodel"."""
        state = self.__dict__.get(STATE_ATTRIBUTE)
        return {} if state is None else dict(state.children)

    def _lookup_dependency(self, name: str) -> Any:
        """Returns the child of the given name, or None."""
        return self._trackable_children().get(name)

    def _track_trackable(self, trackable: Any, name: str, overwrite: bool = False) -> Any:
        """Makes `trackable` a child and returns it.

        Raises:
            TypeError: it is not trackable.
            ValueError: another child has the name, and `overwrite` is False.
        """
        if not isinstance(trackable, Trackable):
            raise TypeError(
                "Trackable._track_trackable() can only be used to track objects of type Trackable. "
                f"Got type {type(trackable)}."
            )
        children = self._tracking_state().children
        present = children.get(name)
        if present is not None and present is not trackable and not overwrite:
            raise ValueError(
                f"Called Trackable._track_trackable() with name='{name}', but a Trackable with this name is already "
                "declared as a dependency. Names must be unique (or overwrite=True)."
            )
        children[name] = trackable
        self._handle_deferred_dependencies(name, trackable)
        return trackable

    def _untrack(self, name: str) -> None:
        state = self.__dict__.get(STATE_ATTRIBUTE)
        if state is not None:
            state.children.pop(name, None)

    # -- deferred restoration ------------------------------------------------------------------------------------

    def _defer(self, name: str, pending: Pending) -> None:
        """Stores checkpointed values for a child that does not exist yet."""
        self._tracking_state().pending.setdefault(name, []).append(pending)

    def _handle_deferred_dependencies(self, name: str, trackable: Any) -> None:
        """Restores a child from the values that were deferred for it."""
        state = self.__dict__.get(STATE_ATTRIBUTE)
        if state is None:
            return
        for pending in sorted(state.pending.pop(name, ()), key=lambda each: each.uid):
            pending.restore(trackable)
        for pending in sorted(state.by_name, key=lambda each: each.uid):
            pending.restore(trackable)

    # -- the object's own values -----------------------------------------------------------------------------------

    def _gather_saveables_for_checkpoint(self) -> dict[str, Callable[..., Any]]:
        """Returns the saveables of this object: attribute name -> a function that takes a name and creates a SaveableObject."""
        return {}

    def _add_variable_with_custom_getter(
        self,
        name: str,
        shape: Any = None,
        dtype: Any = None,
        initializer: Any = None,
        getter: Any = None,
        overwrite: bool = False,
        **kwargs: Any,
    ) -> Any:
        """Creates a variable with `getter` and tracks it under `name`."""
        variable = getter(name=name, shape=shape, dtype=dtype, initializer=initializer, **kwargs)
        return self._track_trackable(variable, name, overwrite) if isinstance(variable, Trackable) else variable
