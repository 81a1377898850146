"""Trackable lists, dictionaries and tuples, and `AutoTrackable`, which tracks the values assigned to its attributes.

    module.layers = [a, b]        # module.layers is a ListWrapper: a list whose elements are the children "0", "1", ...
    module.tables = {"x": t}      # a dictionary whose values are children named by their keys

A wrapper is itself a list (dictionary, tuple). It shares its contents with the original: an item appended to either one is in both.
"""

from __future__ import annotations

import collections
import copy
import functools
from collections.abc import Callable, Iterable
from typing import Any

from stoker._src.graph.trackable import STATE_ATTRIBUTE, Trackable

_IGNORED = "If you don't need this {} checkpointed, wrap it in a non-trackable object; it will be subsequently ignored."


class NoDependency:
    """Wraps a value so that it can be assigned to an attribute without being tracked."""

    def __init__(self, value: Any) -> None:
        self.value = value


def wrapped(value: Any) -> Any:
    """Wraps a value for an attribute of a tracked object: lists, dictionaries, and tuples that hold trackable values."""
    kind = type(value)
    if kind is list:
        return ListWrapper(value)
    if kind is dict or kind is collections.OrderedDict:
        return DictWrapper(value) if kind is dict else OrderedDictWrapper(value)
    if isinstance(value, tuple) and not isinstance(value, Trackable) and (kind is tuple or hasattr(kind, "_fields")):
        return _wrapped_tuple(value)
    return value.value if isinstance(value, NoDependency) else value


def _tracks(value: Any) -> bool:
    return isinstance(value, Trackable)


# ---- lists ------------------------------------------------------------------------------------------------------


class ListWrapper(Trackable, list[Any]):
    """A list whose elements are tracked by index. Tracked elements must not move, since a checkpoint finds them by index."""

    def __init__(self, wrapped_list: Iterable[Any] = ()) -> None:
        self._origin = wrapped_list if type(wrapped_list) is list else list(wrapped_list)
        self._moved = self._changed_outside = False
        for number, value in enumerate(self._origin):
            self._origin[number] = wrapped(value)
        list.__init__(self, self._origin)
        for number in range(len(self._origin)):
            self._track(number)

    def _track(self, number: int) -> None:
        value = list.__getitem__(self, number)
        if _tracks(value):
            self._track_trackable(value, str(number), overwrite=True)

    def _sync(self) -> None:
        """Copies items that were added to the original list."""
        if len(self._origin) != list.__len__(self):
            self._changed_outside = True
            list.__init__(self, self._origin)

    def _trackable_children(self, save_type: str = "checkpoint", **kwargs: Any) -> dict[str, Any]:
        described = (
            f"Unable to save the object {self!r} (a list wrapper constructed to track trackable TensorFlow objects). "
        )
        ignored = "\n\n" + _IGNORED.format("list")
        if self._moved:
            raise ValueError(
                f"{described}A list element was replaced (__setitem__, __setslice__), deleted (__delitem__, __delslice__), "
                "or moved (sort). In order to support restoration on object creation, tracking is exclusively for "
                f"append-only data structures.{ignored}"
            )
        same = len(self._origin) == list.__len__(self) and all(
            a is b for a, b in zip(self._origin, list.__iter__(self))
        )
        if self._changed_outside or not same:
            raise ValueError(
                f"{described}The wrapped list was modified outside the wrapper (its final value was {self._origin}), "
                "which breaks restoration on object creation: add to it through the attribute it was assigned to."
                f"{ignored}"
            )
        return super()._trackable_children(save_type, **kwargs)

    def append(self, value: Any) -> None:
        self._sync()
        value = wrapped(value)
        self._origin.append(value)
        list.append(self, value)
        self._track(len(self._origin) - 1)

    def extend(self, values: Iterable[Any]) -> None:
        for value in list(values):
            self.append(value)

    def __iadd__(self, values: Iterable[Any]) -> ListWrapper:
        self.extend(values)
        return self

    def __setitem__(self, key: Any, value: Any) -> None:
        self._sync()
        if isinstance(key, slice):
            self._move(lambda each: list.__setitem__(each, key, value))
            return
        value = wrapped(value)
        present = list.__getitem__(self, key)
        if present is not value and (_tracks(present) or _tracks(value)):
            self._moved = True
        for each in (self._origin, self):
            list.__setitem__(each, key, value)

    def _move(self, change: Callable[[list[Any]], Any]) -> Any:
        """Applies a change that may alter the indices of elements."""
        self._sync()
        self._moved = True
        change(self._origin)
        return change(self)

    def __delitem__(self, key: Any) -> None:
        self._move(lambda each: list.__delitem__(each, key))

    def insert(self, index: Any, value: Any) -> None:
        value = wrapped(value)
        if int(index) >= len(self):
            self.append(value)
        else:
            self._move(lambda each: list.insert(each, index, value))

    def pop(self, index: Any = -1) -> Any:
        return self._move(lambda each: list.pop(each, index))

    def remove(self, value: Any) -> None:
        del self[self.index(value)]

    def clear(self) -> None:
        self._move(list.clear)

    def sort(self, **kwargs: Any) -> None:
        self._move(lambda each: list.sort(each, **kwargs))

    def reverse(self) -> None:
        self._move(list.reverse)

    def __imul__(self, times: Any) -> Any:
        self._move(lambda each: list.__imul__(each, times))
        return self

    def copy(self) -> ListWrapper:
        return type(self)(list(self))

    __copy__ = copy

    def __len__(self) -> int:
        self._sync()
        return list.__len__(self)

    def __iter__(self) -> Any:
        self._sync()
        return list.__iter__(self)

    def __getitem__(self, key: Any) -> Any:
        self._sync()
        return list.__getitem__(self, key)

    def __contains__(self, value: Any) -> bool:
        self._sync()
        return list.__contains__(self, value)

    def __eq__(self, other: object) -> Any:
        self._sync()
        return list.__eq__(self, other)

    def __ne__(self, other: object) -> Any:
        self._sync()
        return list.__ne__(self, other)

    __hash__: Any = None

    def __repr__(self) -> str:
        self._sync()
        return f"ListWrapper({list.__repr__(self)})"

    def __reduce__(self) -> Any:
        return type(self), (list(self),)

    def __deepcopy__(self, memo: Any) -> ListWrapper:
        return _deep_copy(self, list(self), memo)


def _deep_copy(wrapper: Any, contents: Any, memo: Any) -> Any:
    made = type(wrapper)(copy.deepcopy(contents, memo))
    memo[id(wrapper)] = made
    return made


# ---- dictionaries -----------------------------------------------------------------------------------------------


class _TracksValues(Trackable, dict[Any, Any]):
    """Behaviour shared by the wrappers of both kinds of dictionaries."""

    _kind: type

    def __init__(self, wrapped_dict: Any = (), **kwargs: Any) -> None:
        kind = self._kind
        self._origin = wrapped_dict if type(wrapped_dict) is kind and not kwargs else kind(wrapped_dict, **kwargs)
        kind.__init__(self)
        for key in list(self._origin):
            self[key] = self._origin[key]

    def _sync(self) -> None:
        kind = self._kind
        if len(self._origin) != kind.__len__(self):
            for key in [key for key in dict.__iter__(self) if key not in self._origin]:
                kind.__delitem__(self, key)
            for key, value in self._origin.items():
                if not dict.__contains__(self, key):
                    self[key] = value

    def __setitem__(self, key: Any, value: Any) -> None:
        value = wrapped(value)
        self._kind.__setitem__(self._origin, key, value)
        self._kind.__setitem__(self, key, value)
        if isinstance(key, str):
            if _tracks(value):
                self._track_trackable(value, key, overwrite=True)
            else:
                self._untrack(key)

    def __delitem__(self, key: Any) -> None:
        self._sync()
        self._kind.__delitem__(self, key)
        self._origin.pop(key, None)
        if isinstance(key, str):
            self._untrack(key)

    def _trackable_children(self, save_type: str = "checkpoint", **kwargs: Any) -> dict[str, Any]:
        self._sync()
        if any(_tracks(value) and not isinstance(key, str) for key, value in self._origin.items()):
            raise ValueError(
                f"Unable to save the object {self} (a dictionary wrapper constructed automatically on attribute assignment). "
                "The wrapped dictionary contains a non-string key which maps to a trackable object or mutable data structure."
                "\n\n" + _IGNORED.format("dictionary")
            )
        return super()._trackable_children(save_type, **kwargs)

    # Methods of dict that bypass __setitem__ and __delitem__.

    def update(self, *args: Any, **kwargs: Any) -> None:
        for key, value in dict(*args, **kwargs).items():
            self[key] = value

    def setdefault(self, key: Any, default: Any = None) -> Any:
        if key not in self:
            self[key] = default
        return self[key]

    def pop(self, key: Any, *default: Any) -> Any:
        if key not in self and default:
            return default[0]
        value = self[key]
        del self[key]
        return value

    def popitem(self, *args: Any, **kwargs: Any) -> Any:
        key, value = self._kind.popitem(self._origin, *args, **kwargs)
        self._kind.__delitem__(self, key)
        if isinstance(key, str):
            self._untrack(key)
        return key, value

    def clear(self) -> None:
        for key in list(self):
            del self[key]

    def __ior__(self, other: Any) -> Any:
        self.update(other)
        return self

    def copy(self) -> Any:
        return type(self)(self._kind(self))

    def __copy__(self) -> Any:
        return self.copy()

    def __deepcopy__(self, memo: Any) -> Any:
        return _deep_copy(self, self._kind(self.items()), memo)

    def __reduce__(self) -> Any:
        return type(self), (self._kind(self.items()),)

    def __repr__(self) -> str:
        return f"DictWrapper({self._origin!r})"

    def __str__(self) -> str:
        return str(self._origin)

    __hash__: Any = None


def _synced(kind: type, name: str) -> Any:
    """Returns a read method that first copies items added to the original dictionary."""
    method = getattr(kind, name)

    @functools.wraps(method)
    def read(self: Any, *args: Any, **kwargs: Any) -> Any:
        self._sync()
        return method(self, *args, **kwargs)

    return read


_READS = "__len__ __iter__ __getitem__ __contains__ __eq__ __ne__ keys values items get".split()


class DictWrapper(_TracksValues):
    """A dictionary whose values are tracked by their keys."""

    _kind = dict


class OrderedDictWrapper(_TracksValues, collections.OrderedDict):
    """Like `DictWrapper`, for an OrderedDict."""

    _kind = collections.OrderedDict


for _wrapper in (DictWrapper, OrderedDictWrapper):
    for _name in _READS:
        setattr(_wrapper, _name, _synced(_wrapper._kind, _name))


# ---- tuples -----------------------------------------------------------------------------------------------------


class TupleWrapper(Trackable):
    """Base class of wrapped tuples: instances of a subclass of the original tuple type, whose elements are children."""

    def __repr__(self) -> str:
        return f"_TupleWrapper({super().__repr__()})"


@functools.lru_cache(maxsize=1024)
def _tuple_type(kind: type) -> type:
    def reduce(self: Any) -> Any:
        return (tuple, (list(self),)) if kind is tuple else (kind, tuple(self))

    # Structures of namedtuples are compared by type name.
    name = "_TupleWrapper" if kind is tuple else kind.__name__
    return type(name, (TupleWrapper, kind), {"__reduce__": reduce, "__module__": __name__})


def _wrapped_tuple(value: Any) -> Any:
    elements = [wrapped(each) for each in value]
    if not any(map(_tracks, elements)):
        return value
    made = tuple.__new__(_tuple_type(type(value)), elements)
    fields = getattr(made, "_fields", None)
    for names in ((fields,) if fields else ()) + (range(len(elements)),):
        for name, each in zip(names, elements):
            if _tracks(each):
                made._track_trackable(each, str(name))
    return made


# ---- objects ----------------------------------------------------------------------------------------------------


class AutoTrackable(Trackable):
    """Tracks the values assigned to its attributes, including lists, dictionaries and tuples."""

    def __setattr__(self, name: str, value: Any) -> None:
        present = self.__dict__.get(name, _NOTHING)
        if present is value:
            return
        if not self.__dict__.get("_setattr_tracking", True):
            if type(value) is NoDependency:
                value = value.value
        else:
            untracked = type(value) is NoDependency
            value = wrapped(value)
            if isinstance(value, Trackable) and not untracked and name != STATE_ATTRIBUTE:
                self._track_trackable(value, name, overwrite=True)
        object.__setattr__(self, name, value)

    def __delattr__(self, name: str) -> None:
        self._untrack(name)
        object.__delattr__(self, name)


_NOTHING = object()


def no_automatic_dependency_tracking(method: Callable[..., Any]) -> Callable[..., Any]:
    """Decorates a method so that its attribute assignments are not tracked."""

    @functools.wraps(method)
    def untracked(self: Any, *args: Any, **kwargs: Any) -> Any:
        before = self.__dict__.get("_setattr_tracking", True)
        self.__dict__["_setattr_tracking"] = False
        try:
            return method(self, *args, **kwargs)
        finally:
            self.__dict__["_setattr_tracking"] = before

    return untracked
