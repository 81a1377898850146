"""Slots: variables that an optimizer (or a moving average) keeps for each variable that it updates.

A slot named `Adam` of the variable `w` is the variable `w/Adam` (`w/Adam_1` for the second one). The slot of a slice of a
partitioned variable knows its position in the whole, so that checkpoints contain whole slots.
"""

from __future__ import annotations

from contextlib import nullcontext
from typing import Any

from stoker._src.base.dtypes import as_dtype
from stoker._src.base.shapes import as_shape
from stoker._src.graph.conversion import convert_to_tensor
from stoker._src.graph.scopes import colocate_with
from stoker._src.ops.array import shaping
from stoker._src.ops.variables import initializers, variable_scope
from stoker._src.ops.variables.partitioned import SaveSliceInfo
from stoker._src.ops.variables.variables import ResourceVariable, Variable


def is_eager(primary: Any) -> bool:
    """Whether a variable was created in eager mode: it has no op, even while a function that uses it is traced."""
    return getattr(getattr(primary, "handle", primary), "is_eager", False)


def create_slot(primary: Any, val: Any, name: str, colocate_with_primary: bool = True) -> Any:
    """A slot of `primary` with the initial value `val` (a tensor, value, or function without arguments)."""
    known = getattr(val, "static_shape", None)
    validate = True if known is None else known.known
    return _create(primary, name, colocate_with_primary, initializer=val, validate_shape=validate)


def create_slot_with_initializer(
    primary: Any, initializer: Any, shape: Any, dtype: Any, name: str, colocate_with_primary: bool = True
) -> Any:
    """A slot of `primary` with the given shape and dtype, initialized by `initializer`."""
    shape = as_shape(shape)
    return _create(
        primary,
        name,
        colocate_with_primary,
        initializer=initializer,
        shape=shape,
        dtype=as_dtype(dtype),
        validate_shape=shape.known,
    )


def filled_with(number: float, primary: Any, initializer: Any) -> Any:
    """`initializer`, or a function that fills with `number` if the shape is known only when `primary` is initialized."""
    if primary.static_shape.known:
        return initializer
    return lambda: shaping.fill(
        shaping.shape(primary.initialized_value()), convert_to_tensor(number, primary.dtype.base_dtype)
    )


def create_zeros_slot(primary: Any, name: str, dtype: Any = None, colocate_with_primary: bool = True) -> Any:
    """A slot of zeros with the shape of `primary`, and its dtype unless `dtype` is given."""
    wanted = primary.dtype.base_dtype if dtype is None else as_dtype(dtype)
    if primary.static_shape.known:
        return create_slot_with_initializer(
            primary, initializers.Zeros(), primary.static_shape, wanted, name, colocate_with_primary
        )
    # The shape is known only when the primary is initialized, so the zeros are made from its initial value.
    initial = primary.initialized_value() if isinstance(primary, Variable) else primary
    return create_slot(primary, shaping.zeros(shaping.shape(initial), wanted), name, colocate_with_primary)


def _create(primary: Any, name: str, colocate: bool, **made: Any) -> Any:
    eager = is_eager(primary)
    owner = primary._name if eager else primary.op.name
    place = colocate_with(primary.op) if colocate and not eager else nullcontext()
    with variable_scope.variable_scope(None, f"{owner}/{name}") as scope, place:
        scope.set_partitioner(None)  # a slot of a slice is whole
        slot = variable_scope.get_variable(
            "", trainable=False, use_resource=isinstance(primary, ResourceVariable), **made
        )
    info = getattr(primary, "_save_slice_info", None)
    if info is not None:
        # The slice's own name ends in part_N. The slot is named after the whole variable.
        slot_name = slot.op.name[len(owner) + 1 :]
        slot._set_save_slice_info(
            SaveSliceInfo(
                f"{info.full_name}/{slot_name}", list(info.full_shape), list(info.var_offset), list(info.var_shape)
            )
        )
    return slot
