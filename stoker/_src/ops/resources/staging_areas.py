"""`StagingArea` and `MapStagingArea`: staging areas with dtypes, shapes and names of the parts of an element."""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import Any

from stoker._src.base.dtypes import DType, as_dtype
from stoker._src.base.export import export
from stoker._src.base.shapes import TensorShape
from stoker._src.graph import context
from stoker._src.graph.conversion import convert_to_tensor
from stoker._src.graph.late_binding import ops
from stoker._src.graph.scopes import colocate_with, name_scope
from stoker._src.graph.tensor import Operation, Tensor
from stoker._src.ops.control_flow import grouping


class BaseStagingArea:
    """Base class of the staging areas.

    Args:
        dtypes: the types of the parts of an element.
        shapes: their shapes; by default any.
        names: their names. If given, elements are dictionaries.
        shared_name: the name by which several areas share their elements; by default an unused name.
        capacity: the greatest number of elements. `put` waits while the area is full. 0: no limit.
        memory_limit: the greatest number of bytes, likewise.

    Raises:
        ValueError: there are not as many shapes or names as dtypes.
    """

    def __init__(
        self,
        dtypes: Any,
        shapes: Any = None,
        names: Any = None,
        shared_name: str | None = None,
        capacity: int = 0,
        memory_limit: int = 0,
    ) -> None:
        self._name = shared_name or context.get_default_graph().unique_name(type(self).__name__)
        self._dtypes = [as_dtype(each) for each in dtypes]
        for kind, given in (("shapes", shapes), ("names", names)):
            if given is not None and len(given) != len(self._dtypes):
                raise ValueError("StagingArea %s must be the same length as dtypes" % kind)
        self._shapes = [TensorShape(each) for each in shapes or [None] * len(self._dtypes)]
        self._names = None if names is None else list(names)
        self._capacity, self._memory_limit = capacity, memory_limit
        with name_scope(f"{self._name}_root"):
            self._root = grouping.no_op()  # the place of the area: all its ops stand on the device of this one

    @property
    def name(self) -> str:
        return self._name

    @property
    def dtypes(self) -> list[DType]:
        return self._dtypes

    @property
    def shapes(self) -> list[TensorShape]:
        return self._shapes

    @property
    def names(self) -> list[str] | None:
        return self._names

    @property
    def capacity(self) -> int:
        """The greatest number of elements; 0 if there is no limit."""
        return self._capacity

    @property
    def memory_limit(self) -> int:
        """The greatest number of bytes; 0 if there is no limit."""
        return self._memory_limit

    def _placed(self) -> AbstractContextManager[Any]:
        return colocate_with(self._root)

    def _attrs(self, name: str | None, default: str) -> dict[str, Any]:
        return {
            "dtypes": self._dtypes,
            "shared_name": self._name,
            "capacity": self._capacity,
            "memory_limit": self._memory_limit,
            "name": name or f"{self._name}_{default}",
        }

    def _parts(self, values: Any, indices: Any) -> tuple[list[Tensor], list[int]]:
        """The tensors of an element or of some parts of it, and the indices of these parts."""
        if isinstance(values, dict):
            if self._names is None:
                raise ValueError("Staging areas must have names to enqueue a dictionary")
            if not set(values) <= set(self._names):
                raise ValueError(
                    "Keys in dictionary to put do not match names of staging area. Dictionary: "
                    f"({sorted(values)}), Queue: ({sorted(self._names)})"
                )
            indices = [i for i, name in enumerate(self._names) if name in values]
            values = [values[self._names[i]] for i in indices]
        elif self._names is not None:
            raise ValueError("You must enqueue a dictionary in a staging area with names")
        elif indices is None:
            raise ValueError("Indices must be supplied when inserting a list of tensors")
        if len(indices) != len(values):
            raise ValueError(f"Number of indices '{len(indices)}' doesn't match number of values '{len(values)}'")
        tensors = []
        for index, value in zip(indices, values):
            dtype, shape = self._dtypes[index], self._shapes[index]
            tensor = value if isinstance(value, Tensor) else convert_to_tensor(value, dtype)
            if tensor.dtype.base_dtype != dtype:
                raise ValueError(f"Datatypes do not match. '{tensor.dtype}' != '{dtype}'")
            tensor.shape.assert_is_compatible_with(shape)
            tensors.append(tensor)
        return tensors, indices

    def _element(self, tensors: Any, indices: list[int]) -> Any:
        """Parts with their known shapes, by name if they have names."""
        for tensor, index in zip(tensors, indices):
            tensor.set_shape(self._shapes[index])
        return list(tensors) if self._names is None else {self._names[i]: each for i, each in zip(indices, tensors)}


@export(v1="contrib.staging.StagingArea")
class StagingArea(BaseStagingArea):
    """Passes elements from one step of a pipeline to a later one, first in, first out."""

    def put(self, values: Any, name: str | None = None) -> Operation:
        """Adds an element: a tensor, a list of tensors, or a dictionary if the area has names. Waits while the area is full.

        Raises:
            ValueError: the parts differ from those of the area in number, names, types or shapes.
        """
        with name_scope(name, f"{self._name}_put", None) as scope, self._placed():
            values = values if isinstance(values, (list, tuple, dict)) else [values]
            if len(values) != len(self._dtypes):
                raise ValueError(f"Unexpected number of inputs '{len(values)}' vs '{len(self._dtypes)}'")
            tensors, _ = self._parts(values, list(range(len(values))))
            return ops.Stage(tensors, **self._attrs(scope, "put"))

    def get(self, name: str | None = None) -> Any:
        """Takes the oldest element: a list, or a dictionary if the area has names. Waits while the area is empty."""
        with self._placed():
            return self._element(ops.Unstage(**self._attrs(name, "get")), list(range(len(self._dtypes))))

    def peek(self, index: Any, name: str | None = None) -> Any:
        """Reads the element at a position and leaves it there. Waits until there is one."""
        with self._placed():
            return self._element(ops.StagePeek(index, **self._attrs(name, "peek")), list(range(len(self._dtypes))))

    def size(self, name: str | None = None) -> Tensor:
        """Returns the number of elements."""
        return ops.StageSize(**self._attrs(name, "size"))

    def clear(self, name: str | None = None) -> Operation:
        """Removes all elements."""
        return ops.StageClear(**self._attrs(name, "clear"))


class MapStagingArea(BaseStagingArea):
    """Keeps elements by key. An element can be put and taken whole or in parts; it can be taken once all parts are there.

    Args: those of the base class, and
        ordered: whether a `get` without key takes the element with the smallest key; otherwise any.
    """

    def __init__(
        self,
        dtypes: Any,
        shapes: Any = None,
        names: Any = None,
        shared_name: str | None = None,
        ordered: bool = False,
        capacity: int = 0,
        memory_limit: int = 0,
    ) -> None:
        super().__init__(dtypes, shapes, names, shared_name, capacity, memory_limit)
        self._prefix = "OrderedMap" if ordered else "Map"

    def _op(self, kind: str) -> Any:
        return getattr(ops, self._prefix + kind)

    def _wanted(self, indices: Any) -> list[int]:
        """The indices of parts that are given by index or name; by default of all parts."""
        if indices is None:
            return list(range(len(self._dtypes)))
        found = []
        for each in indices:
            if isinstance(each, str):
                if self._names is None:
                    raise ValueError(
                        f"String indices provided '{indices}', but this Staging Area was not created with names."
                    )
                found.append(self._names.index(each))
            elif 0 <= each < len(self._dtypes):
                found.append(each)
            else:
                raise ValueError(f"Index '{each}' is not one of the {len(self._dtypes)} parts of an element.")
        return found

    def _some(self, indices: list[int], name: str | None, default: str) -> dict[str, Any]:
        """The attributes of an op that returns only these parts."""
        return {**self._attrs(name, default), "dtypes": [self._dtypes[i] for i in indices]}

    def put(self, key: Any, vals: Any, indices: Any = None, name: str | None = None) -> Operation:
        """Adds parts of the element of a key: a dictionary, or a list with the indices of its parts. Waits while the area is full.

        Raises:
            ValueError: the parts differ from those of the area in names, types or shapes, or there are no indices.
        """
        with name_scope(name, f"{self._name}_put", None) as scope, self._placed():
            tensors, indices = self._parts(vals, indices)
            return self._op("Stage")(key, indices, tensors, **self._attrs(scope, "put"))

    def get(self, key: Any = None, indices: Any = None, name: str | None = None) -> tuple[Any, Any]:
        """Takes parts (by default all) of the element of a key, or of any element. Waits until there is one.

        Returns:
            The key and the parts: a list, or a dictionary if the area has names.
        """
        wanted = self._wanted(indices)
        with self._placed():
            if key is None:
                key, parts = self._op("UnstageNoKey")(wanted, **self._some(wanted, name, "get_nokey"))
            else:
                parts = self._op("Unstage")(key, wanted, **self._some(wanted, name, "get"))
            return key, self._element(parts, wanted)

    def peek(self, key: Any, indices: Any = None, name: str | None = None) -> Any:
        """Reads parts (by default all) of the element of a key and leaves them there. Waits until it is there."""
        wanted = self._wanted(indices)
        with self._placed():
            return self._element(self._op("Peek")(key, wanted, **self._some(wanted, name, "pop")), wanted)

    def size(self, name: str | None = None) -> Tensor:
        """Returns the number of complete elements."""
        return self._op("Size")(**self._attrs(name, "size"))

    def incomplete_size(self, name: str | None = None) -> Tensor:
        """Returns the number of elements that lack parts."""
        return self._op("IncompleteSize")(**self._attrs(name, "incomplete_size"))

    def clear(self, name: str | None = None) -> Operation:
        """Removes all elements."""
        return self._op("Clear")(**self._attrs(name, "clear"))
