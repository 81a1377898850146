"""The arguments of a Saver, by name: variables, slices of partitioned variables, tables and saveable objects."""

from __future__ import annotations

from typing import Any

from stoker._src.graph import context
from stoker._src.graph.keys import GraphKeys
from stoker._src.graph.saveable import SaveableObject
from stoker._src.graph.tensor import Tensor
from stoker._src.graph.trackable import Trackable
from stoker._src.ops.variables import state_ops
from stoker._src.ops.variables.partitioned import PartitionedVariable
from stoker._src.ops.variables.saveables import ReferenceVariableSaveable, ResourceVariableSaveable
from stoker._src.ops.variables.variables import Variable


def _is_reference(value: Any) -> bool:
    return isinstance(value, Tensor) and value.dtype._is_ref_dtype


def _is_handle(value: Any) -> bool:
    return isinstance(value, Tensor) and value.op is not None and value.op.type == "VarHandleOp"


def saveables_of(value: Any, name: str) -> list[SaveableObject]:
    """Returns the saveable objects of one argument of a saver.

    Raises:
        TypeError: the value cannot be saved.
        ValueError: the value is a list of variables that are not slices of one variable.
    """
    if isinstance(value, SaveableObject):
        value.name = name
        return [value]
    if isinstance(value, (list, tuple, PartitionedVariable)):
        slices = list(value)
        for each in slices:
            if not isinstance(each, Variable) or each._get_save_slice_info() is None:
                raise ValueError(f"Slices must all be slices: {each}")
        return [each._saveable(name) for each in slices]
    if isinstance(value, Variable):
        return [value._saveable(name)]
    if _is_reference(value):
        return [ReferenceVariableSaveable(value, value, "", name)]
    if _is_handle(value):
        dtype = value.op.attr("dtype")
        return [ResourceVariableSaveable(value, state_ops.READ_VARIABLE_OP(value, dtype=dtype), "", name, dtype)]
    if isinstance(value, Trackable):
        parts = value._gather_saveables_for_checkpoint()
        if parts:
            return [make(name if len(parts) == 1 else f"{name}_{part}") for part, make in parts.items()]
    raise TypeError(f"Variable to save is not a Variable: {value}")


def named_saveables(var_list: Any) -> dict[str, Any]:
    """Returns the values to save by their names in the checkpoint. Slices of one variable form a list.

    Raises:
        TypeError: the argument is not a dictionary or list of variables and saveable objects.
        ValueError: two values have the same name.
    """
    if isinstance(var_list, dict):
        return dict(var_list)
    if isinstance(var_list, PartitionedVariable):
        var_list = [var_list]
    if not isinstance(var_list, (list, tuple, set)):
        raise TypeError(f"Variables to save should be passed in a dict or a list. Got {var_list}")
    named: dict[str, Any] = {}
    for value in dict.fromkeys(var_list) if isinstance(var_list, set) else var_list:
        if isinstance(value, Variable) and value._get_save_slice_info() is not None:
            named.setdefault(value._get_save_slice_info().full_name, []).append(value)
            continue
        if isinstance(value, (SaveableObject, PartitionedVariable)):
            name = value.name
        elif isinstance(value, Variable):
            name = value._shared_name
        elif _is_reference(value) or _is_handle(value):
            name = value.op.name
        elif isinstance(value, Trackable) and value._gather_saveables_for_checkpoint():
            name = value.name  # type: ignore[attr-defined]
        else:
            raise TypeError(f"Variable to save is not a Variable: {value}")
        if name in named:
            raise ValueError(f"At least two variables have the same name: {name}")
        named[name] = value
    return named


def validated_saveables(var_list: Any) -> list[SaveableObject]:
    """Returns the saveable objects of a saver, sorted by name.

    Raises:
        TypeError, ValueError: as in `named_saveables`, or an object has two names.
    """
    named = named_saveables(var_list)
    for name in named:
        if not isinstance(name, str):
            raise TypeError(
                "names_to_saveables must be a dict mapping string names to trackable operations. "
                f"Name is not a string: {name}"
            )
    saveables: list[SaveableObject] = []
    seen: set[int] = set()
    for name, value in sorted(named.items()):
        for saveable in saveables_of(value, name):
            if id(saveable.op) in seen:
                raise ValueError(f"The same saveable will be restored with two names: {saveable.name}")
            seen.add(id(saveable.op))
            saveables.append(saveable)
    return saveables


def all_saveable_objects(scope: str | None = None) -> list[Any]:
    """Returns the variables and other saveable objects of the current graph."""
    graph = context.get_default_graph()
    return graph.get_collection(GraphKeys.GLOBAL_VARIABLES, scope) + graph.get_collection(
        GraphKeys.SAVEABLE_OBJECTS, scope
    )
