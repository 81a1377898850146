"""Ops that order other ops: no_op, group and tuple."""

from __future__ import annotations

from contextlib import nullcontext
from typing import Any

from stoker._src.base import nest
from stoker._src.base.errors import AbortedError
from stoker._src.base.export import export
from stoker._src.graph import context
from stoker._src.graph.conversion import convert_to_tensor
from stoker._src.graph.definition import STATEFUL, define
from stoker._src.graph.indexed_slices import IndexedSlices
from stoker._src.graph.scopes import colocate_with, control_dependencies, device, name_scope
from stoker._src.graph.sparse_tensor import SparseTensor
from stoker._src.graph.tensor import Operation, Tensor
from stoker._src.ops.array import shaping

NO_OP = define("NoOp() -> ()")
NO_OP.kernel(lambda: None)

CONTROL_TRIGGER = define("ControlTrigger() -> ()")
CONTROL_TRIGGER.kernel(lambda: None)

ABORT = define("Abort() -> ()", STATEFUL, error_msg="", exit_without_error=False)


@ABORT.kernel
def abort_kernel(*, error_msg: str, exit_without_error: bool) -> None:
    """TensorFlow ends the process. Here the run ends, with an error unless `exit_without_error` is set."""
    if not exit_without_error:
        raise AbortedError(None, None, f"Abort_op intentional failure; {error_msg}")


@export("no_op")
def no_op(name: str | None = None) -> Any:
    """Does nothing. It serves as a target of control dependencies."""
    return NO_OP(name=name)


@export("group")
def group(*inputs: Any, **kwargs: Any) -> Any:
    """Returns an op that finishes when all `inputs` (operations, tensors, nested lists) have. None in eager mode.

    Raises:
        ValueError: keyword arguments other than `name`.
        TypeError: an input is of another type.
    """
    name = kwargs.pop("name", None)
    if kwargs:
        raise ValueError(f"Unknown keyword arguments: {', '.join(kwargs)}")
    if context.executing_eagerly():
        return None
    with name_scope(name, "group_deps", None) as scope:
        ops = []
        for item in nest.flatten(inputs, expand_composites=True):
            if not hasattr(item, "device") and not hasattr(item, "op"):
                raise TypeError(
                    f"'inputs' should be zero or more (nested) Tensors. Received '{item}' with type '{type(item)}'."
                )
            ops.append(item)
        by_device: dict[str, list[Any]] = {}
        for item in ops:
            by_device.setdefault(item.device, []).append(item)
        if len(by_device) > 1:  # one op for each device, and one that waits for those
            ops = [_wait(by_device[place], place) for place in sorted(by_device)]
            by_device = {"": ops}
        place, ops = by_device.popitem() if by_device else ("", [])
        return _wait(ops, place, scope)


def _wait(ops: list[Any], place: str, name: str | None = None) -> Any:
    # Without a device of the ops, that of the enclosing blocks applies.
    with device(place) if place else nullcontext(), control_dependencies(ops):
        return NO_OP(name=name)


@export(v1="tuple")
def tuple_v1(tensors: Any, name: str | None = None, control_inputs: Any = None) -> list[Any]:
    """Returns `tensors`, each available only when all of them (and `control_inputs`) are."""
    if context.executing_eagerly():
        return list(tensors)
    with name_scope(name, "tuple", tensors):
        whole = (Tensor, IndexedSlices, SparseTensor)
        tensors = [t if t is None or isinstance(t, whole) else convert_to_tensor(t) for t in tensors]
        waits: list[Any] = [t.op for t in tensors if t is not None]
        for item in control_inputs or ():
            if isinstance(item, Tensor):
                item = item.op
            if not isinstance(item, Operation):
                raise TypeError(f"'control_inputs' must only contain Operation or Tensor. Received: {type(item)}")
            waits.append(item)
        if not waits:
            raise ValueError(f"'tensors' must have at least one Tensor. Received: {tensors}.")
        gate = group(*waits)
        return [None if tensor is None else with_dependencies([gate], tensor) for tensor in tensors]


@export(v2="tuple")
def tuple_v2(tensors: Any, control_inputs: Any = None, name: str | None = None) -> list[Any]:
    """Returns `tensors`, each available only when all of them (and `control_inputs`) are."""
    return tuple_v1(tensors, name, control_inputs)


def with_dependencies(dependencies: Any, output_tensor: Any, name: str | None = None) -> Any:
    """Returns `output_tensor`, available only after `dependencies` have run. IndexedSlices and SparseTensors stay sparse."""
    if context.executing_eagerly():
        return output_tensor
    scoped = name_scope(name, "control_dependency", [*dependencies, output_tensor])
    sparse = isinstance(output_tensor, (IndexedSlices, SparseTensor))
    values = output_tensor.values if sparse else output_tensor
    with scoped as scope, colocate_with(values), control_dependencies(dependencies):
        late = shaping.identity(values, name=scope)
    if isinstance(output_tensor, SparseTensor):
        return output_tensor.with_values(late)
    return IndexedSlices(late, output_tensor.indices, output_tensor.dense_shape) if sparse else late
