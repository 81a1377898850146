"""What a saver saves: objects that name the tensors they consist of, and take them back."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from stoker._src.base.dtypes import as_dtype
from stoker._src.graph import context
from stoker._src.graph.keys import GraphKeys
from stoker._src.graph.scopes import device
from stoker._src.graph.tensor import Tensor
from stoker._src.ops.array import shaping
from stoker._src.ops.variables import state_ops
from stoker._src.ops.variables.partitioned import PartitionedVariable
from stoker._src.ops.variables.variables import ResourceVariable, Variable


class SaveSpec:
    """One tensor of a saveable object.

    Args:
        tensor: its value, or a function that makes it when it is saved.
        slice_spec: which part of a larger tensor it is, as save ops spell it; "" for a whole one.
        name: its name in the checkpoint.
        dtype: its dtype; may be left out for a tensor.
        device: where it is.
    """

    def __init__(self, tensor: Any, slice_spec: str, name: str, dtype: Any = None, device: str | None = None) -> None:
        if callable(tensor) and not isinstance(tensor, (Tensor, Variable)):
            if dtype is None:
                raise ValueError(f"SaveSpec {name}: a function that makes a tensor needs a dtype beside it.")
            self._make, made = tensor, None
        else:
            self._make, made = None, tensor
        self._tensor = made
        self.slice_spec = slice_spec
        self.name = name
        self.dtype = as_dtype(tensor.dtype if dtype is None else dtype).base_dtype
        self.device = tensor.device if device is None and made is not None else device or ""

    @property
    def tensor(self) -> Any:
        return self._make() if self._make is not None else self._tensor


class SaveableObject:
    """Something a saver saves; subclasses say in `restore` how it takes its tensors back.

    Args:
        op: what the object is made of, to tell two of them apart.
        specs: its SaveSpecs.
        name: its name.
    """

    def __init__(self, op: Any, specs: Iterable[SaveSpec] | Callable[[], Iterable[SaveSpec]], name: str) -> None:
        self.op = op
        self._specs = specs
        self.name = name

    @property
    def specs(self) -> list[SaveSpec]:
        if callable(self._specs):
            self._specs = self._specs()
        return list(self._specs)

    @property
    def optional_restore(self) -> bool:
        return False

    @property
    def device(self) -> str:
        return self.specs[0].device

    def restore(self, restored_tensors: Sequence[Tensor], restored_shapes: Sequence[Any] | None) -> Any:
        """The op that gives the object its tensors, of other shapes where `restored_shapes` says so."""
        raise NotImplementedError("A saveable object must say how it is restored.")


class ReferenceVariableSaveable(SaveableObject):
    """A 1.x variable (by its reference), or a slice of a partitioned one (by its value)."""

    def __init__(self, reference: Tensor, value: Tensor, slice_spec: str, name: str) -> None:
        self._reference = reference
        super().__init__(value, [SaveSpec(value, slice_spec, name, reference.dtype)], name)

    def restore(self, restored_tensors: Sequence[Tensor], restored_shapes: Sequence[Any] | None) -> Any:
        restored = restored_tensors[0]
        if restored_shapes is not None:
            restored = shaping.reshape(restored, restored_shapes[0])
        checked = restored_shapes is None and self._reference.static_shape.known
        return state_ops.ASSIGN(self._reference, restored, validate_shape=checked, use_locking=True).op


class ResourceVariableSaveable(SaveableObject):
    """A variable behind a handle, or a slice of a partitioned one."""

    def __init__(self, handle: Tensor, value: Any, slice_spec: str, name: str, dtype: Any) -> None:
        self._handle = handle
        self._place = "" if context.executing_eagerly() else handle.device
        super().__init__(handle, [SaveSpec(value, slice_spec, name, dtype, self._place)], name)

    def restore(self, restored_tensors: Sequence[Tensor], restored_shapes: Sequence[Any] | None) -> Any:
        restored = restored_tensors[0]
        if restored_shapes is not None:
            restored = shaping.reshape(restored, restored_shapes[0])
        with device(self._place or None):
            return state_ops.ASSIGN_VARIABLE_OP(self._handle, shaping.identity(restored))


def _resource_saveable(variable: ResourceVariable, slice_spec: str, name: str) -> SaveableObject:
    def read_on_host() -> Tensor:
        value = variable.read_value()
        with device("/device:CPU:0"):
            return shaping.identity(value)

    if context.executing_eagerly():
        value: Any = variable.read_value
    else:
        value = read_on_host if slice_spec else variable._as_graph_element()
    return ResourceVariableSaveable(variable.handle, value, slice_spec, name, variable.dtype)


def _is_reference(value: Any) -> bool:
    return isinstance(value, Tensor) and value.dtype._is_ref_dtype


def _is_handle(value: Any) -> bool:
    return isinstance(value, Tensor) and value.op is not None and value.op.type == "VarHandleOp"


def _saveable_of(variable: Variable, name: str) -> SaveableObject:
    info = variable._get_save_slice_info()
    slice_spec = "" if info is None else info.spec
    if isinstance(variable, ResourceVariable):
        return _resource_saveable(variable, slice_spec, name)
    reference = variable._as_graph_element()
    return ReferenceVariableSaveable(reference, variable.value() if slice_spec else reference, slice_spec, name)


def saveables_of(value: Any, name: str) -> list[SaveableObject]:
    """The saveable objects behind what was given to a saver under a name.

    Raises:
        TypeError: it cannot be saved.
        ValueError: a list of variables that are no slices of one.
    """
    if isinstance(value, SaveableObject):
        value.name = name
        return [value]
    if isinstance(value, (list, tuple, PartitionedVariable)):
        slices = list(value)
        for each in slices:
            if not isinstance(each, Variable) or each._get_save_slice_info() is None:
                raise ValueError(f"Slices must all be slices: {each}")
        return [_saveable_of(each, name) for each in slices]
    if isinstance(value, Variable):
        return [_saveable_of(value, name)]
    if _is_reference(value):
        return [ReferenceVariableSaveable(value, value, "", name)]
    if _is_handle(value):
        dtype = value.op.attr("dtype")
        return [ResourceVariableSaveable(value, state_ops.READ_VARIABLE_OP(value, dtype=dtype), "", name, dtype)]
    raise TypeError(f"Variable to save is not a Variable: {value}")


def named_saveables(var_list: Any) -> dict[str, Any]:
    """What to save by its name in the checkpoint; slices of one variable are a list.

    Raises:
        TypeError: not a dictionary or list of variables and saveable objects.
        ValueError: two have one name.
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
        else:
            raise TypeError(f"Variable to save is not a Variable: {value}")
        if name in named:
            raise ValueError(f"At least two variables have the same name: {name}")
        named[name] = value
    return named


def validated_saveables(var_list: Any) -> list[SaveableObject]:
    """The saveable objects of what was given to a saver, sorted by name.

    Raises:
        TypeError, ValueError: as in `named_saveables`; one object under two names.
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
    """The variables and other saveable objects of the current graph."""
    graph = context.get_default_graph()
    return graph.get_collection(GraphKeys.GLOBAL_VARIABLES, scope) + graph.get_collection(
        GraphKeys.SAVEABLE_OBJECTS, scope
    )
