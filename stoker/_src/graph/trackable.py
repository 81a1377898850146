"""Trackable objects: they know their parts by name, so that a checkpoint can save and restore the whole.

Variables, tables, layers, optimizers, loss scales, modules and functions are `Trackable`. A trackable

- names its parts: `_trackable_children()`, filled by `_track_trackable` or computed by a subclass,
- finds a part by name: `_lookup_dependency(name)`,
- says what is saved: `_gather_saveables_for_checkpoint()`, a function for each attribute that creates a `SaveableObject`,
- keeps checkpointed values for parts that do not exist yet, and restores them when they are created.

A restoration (see `train/checkpoints/restoration.py`) walks the checkpoint's graph and the object graph in parallel. If a part
does not exist yet, the restoration leaves a `Pending` with the owner, and `_track_trackable` passes it to the part.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

VARIABLE_VALUE_KEY = "VARIABLE_VALUE"
"""The attribute that holds a variable's value."""

# Where an object keeps what this module knows of it; not an attribute of the user's.
STATE_ATTRIBUTE = "_tracking"


class Pending(Protocol):
    """What a checkpoint holds for an object that is not there yet."""

    @property
    def uid(self) -> int:
        """Rises with every restoration: of several, the newest decides."""
        ...

    def restore(self, trackable: Any) -> None:
        """Gives it to the object, which has come."""
        ...


class _State:
    """What a trackable object keeps for this module."""

    __slots__ = ("by_name", "children", "pending", "uid")

    def __init__(self) -> None:
        self.children: dict[str, Any] = {}
        self.pending: dict[str, list[Pending]] = {}
        self.by_name: list[Pending] = []  # checkpoints of names, which any later part may be in
        self.uid = -1  # the restoration that last gave the object its value


class Trackable:
    """The base of everything that checkpoints of objects know. Needs no call of `__init__`."""

    def _tracking_state(self) -> _State:
        state = self.__dict__.get(STATE_ATTRIBUTE)
        if state is None:
            state = self.__dict__[STATE_ATTRIBUTE] = _State()
        return state

    # -- parts ---------------------------------------------------------------------------------------------------

    def _trackable_children(self, save_type: str = "checkpoint", **kwargs: Any) -> dict[str, Any]:
        """The parts by name, in the order in which they were first tracked. `save_type` is "checkpoint" or "savedmodel"."""
        state = self.__dict__.get(STATE_ATTRIBUTE)
        return {} if state is None else dict(state.children)

    def _lookup_dependency(self, name: str) -> Any:
        """The part of a name, or None."""
        return self._trackable_children().get(name)

    def _track_trackable(self, trackable: Any, name: str, overwrite: bool = False) -> Any:
        """Makes `trackable` a part; returns it.

        Raises:
            TypeError: it is not trackable.
            ValueError: another part has the name, and it is not to be replaced.
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

    # -- what waits for parts ------------------------------------------------------------------------------------

    def _defer(self, name: str, pending: Pending) -> None:
        """Keeps what a checkpoint holds for a part that is not there yet."""
        self._tracking_state().pending.setdefault(name, []).append(pending)

    def _handle_deferred_dependencies(self, name: str, trackable: Any) -> None:
        """Gives a part what waited for it."""
        state = self.__dict__.get(STATE_ATTRIBUTE)
        if state is None:
            return
        for pending in sorted(state.pending.pop(name, ()), key=lambda each: each.uid):
            pending.restore(trackable)
        for pending in sorted(state.by_name, key=lambda each: each.uid):
            pending.restore(trackable)

    # -- what is saved of the object itself ------------------------------------------------------------------------

    def _gather_saveables_for_checkpoint(self) -> dict[str, Callable[..., Any]]:
        """What of this object is saved: by the name of the attribute, a function of a name that makes a SaveableObject."""
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
        """A variable made by `getter`, tracked under `name`."""
        variable = getter(name=name, shape=shape, dtype=dtype, initializer=initializer, **kwargs)
        return self._track_trackable(variable, name, overwrite) if isinstance(variable, Trackable) else variable
