"""Saving and restoring of variables, for name-based and object-based checkpoints."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from stoker._src.graph import context
from stoker._src.graph.saveable import SaveableObject, SaveSpec
from stoker._src.graph.scopes import device
from stoker._src.graph.tensor import Tensor
from stoker._src.ops.array import shaping
from stoker._src.ops.variables import state_ops


class ReferenceVariableSaveable(SaveableObject):
    """A 1.x variable (saved by its reference), or a slice of a partitioned one (saved by its value)."""

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
    """A resource variable, or a slice of a partitioned one."""

    def __init__(self, handle: Tensor, value: Any, slice_spec: str, name: str, dtype: Any) -> None:
        self._handle = handle
        self._place = "" if context.executing_eagerly() else handle.device
        super().__init__(handle, [SaveSpec(value, slice_spec, name, dtype, self._place)], name)

    def restore(self, restored_tensors: Sequence[Tensor], restored_shapes: Sequence[Any] | None) -> Any:
        restored = restored_tensors[0]
        if restored_shapes is not None:
            restored = shaping.reshape(restored, restored_shapes[0])
        variable = getattr(self._handle, "variable", lambda: None)()
        if variable is not None and not restored.static_shape.compatible(variable.static_shape):
            raise ValueError(
                f"Received incompatible tensor with shape {restored.shape} when attempting to restore variable with shape "
                f"{variable.shape} and name {variable.name}."
            )
        with device(self._place or None):
            return state_ops.ASSIGN_VARIABLE_OP(self._handle, shaping.identity(restored))


def resource_saveable(variable: Any, slice_spec: str, name: str) -> SaveableObject:
    """The saveable of a resource variable, which may be a slice of a partitioned one."""

    def read_on_host() -> Tensor:
        value = variable.read_value()
        with device("/device:CPU:0"):
            return shaping.identity(value)

    if getattr(variable.handle, "is_eager", False):  # also inside a function, which captures the handle
        value: Any = variable.read_value
    else:
        value = read_on_host if slice_spec else variable._as_graph_element()
    return ResourceVariableSaveable(variable.handle, value, slice_spec, name, variable.dtype)


def reference_saveable(variable: Any, slice_spec: str, name: str) -> SaveableObject:
    """The saveable of a reference variable, which may be a slice of a partitioned one."""
    reference = variable._as_graph_element()
    return ReferenceVariableSaveable(reference, variable.value() if slice_spec else reference, slice_spec, name)
