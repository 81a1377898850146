"""Scattering into variables: rows (or elements, by coordinates) replaced, added to, multiplied, ... in place.

Rows that are named more than once are changed once for each time, in order.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import torch

from stoker._src.base import dtypes
from stoker._src.base.dtypes import FLOATS, INDEX, NUMERIC, DType
from stoker._src.base.errors import InvalidArgumentError
from stoker._src.base.export import export
from stoker._src.base.shapes import UNKNOWN_SHAPE, Shape
from stoker._src.graph.definition import ANY, READS, STATEFUL, WRITES, OpDefinition, define, one_of
from stoker._src.graph.scopes import control_dependencies
from stoker._src.graph.tensor import Operation
from stoker._src.ops import scattering, state
from stoker._src.ops.array_movement import POLICY, signed
from stoker._src.ops.state import VariableState
from stoker._src.ops.training import distinct_rows
from stoker._src.ops.values import torch_dtype
from stoker._src.ops.variables import ResourceVariable

Change = Callable[[torch.Tensor, torch.Tensor], Any]

# How the rows that are there and the updates make the new rows, in place of the former.
_CHANGES: dict[str, Change] = {
    "Update": torch.Tensor.copy_,
    "Mul": torch.Tensor.mul_,
    "Div": lambda rows, updates: rows.div_(updates, rounding_mode=None if _divides(rows) else "trunc"),
    "Min": lambda rows, updates: torch.minimum(rows, updates, out=rows),
    "Max": lambda rows, updates: torch.maximum(rows, updates, out=rows),
}
_SIGNS = {"Add": 1, "Sub": -1}


def _divides(rows: torch.Tensor) -> bool:
    return rows.is_floating_point() or rows.is_complex()


def _change(kind: str, target: Any, indices: torch.Tensor, updates: Any, name: str) -> None:
    """Changes the rows `indices` (a vector) of `target` by the rows of `updates`."""
    if isinstance(target, np.ndarray):
        target[indices.numpy()] = updates
        return
    if kind in _SIGNS:
        signed(target).index_add_(0, indices, signed(updates), alpha=_SIGNS[kind])
        return
    change = _CHANGES[kind]
    for rows, chosen in distinct_rows(indices, len(target), name):
        part = target.index_select(0, rows)
        change(part, updates if chosen is None else updates.index_select(0, chosen))
        target.index_copy_(0, rows, part)


def _scatter(kind: str, name: str, target: Any, indices: torch.Tensor, updates: Any) -> None:
    if target.ndim < 1:
        raise InvalidArgumentError(None, None, f"{name}: params must be at least 1-D, got shape []")
    wanted = (*indices.shape, *target.shape[1:])
    if updates.ndim and tuple(updates.shape) != wanted:
        raise InvalidArgumentError(
            None,
            None,
            f"{name}: Must have updates.shape = indices.shape + params.shape[1:] or updates.shape = [], got "
            f"updates.shape {Shape(updates.shape)}, indices.shape {Shape(indices.shape)}, params.shape {Shape(target.shape)}",
        )
    if not indices.numel():
        return
    rows = indices.reshape(-1).long()
    low, high = (int(each) for each in torch.aminmax(rows))
    if low < 0 or high >= target.shape[0]:
        bad = low if low < 0 else high
        at = int((rows == bad).nonzero()[0])
        raise InvalidArgumentError(None, None, f"{name}: indices[{at}] = {bad} is not in [0, {target.shape[0]})")
    shape = (rows.shape[0], *target.shape[1:])
    if not updates.ndim:
        spread = np.broadcast_to(updates, shape) if isinstance(updates, np.ndarray) else updates.expand(shape)
        _change(kind, target, rows, spread, name)
    else:
        _change(kind, target, rows, updates.reshape(shape), name)


def _define(kind: str, allowed: tuple[DType, ...], *, resource: bool) -> OpDefinition:
    name = f"{'Resource' if resource else ''}Scatter{kind}"
    if resource:
        definition = define(
            f"{name}(resource: resource, indices: Tindices, updates: dtype) -> ()",
            WRITES | STATEFUL,
            dtype=allowed,
            Tindices=INDEX,
        )
    else:
        definition = define(
            f"{name}(ref: Ref(T), indices: Tindices, updates: T) -> (output_ref: Ref(T))",
            WRITES | STATEFUL,
            T=allowed,
            Tindices=INDEX,
            use_locking=kind == "Update",
        )

    def kernel(variable: VariableState, indices: torch.Tensor, updates: Any) -> VariableState:
        _scatter(kind, name, variable.read(), indices, updates)
        return variable

    def shape(ref: Shape, indices: Shape, updates: Shape, *, op: Operation) -> Any:
        whole = state.handle_shape(op._inputs[0]) if resource else ref
        if whole.rank is not None and indices.rank is not None and updates.rank:
            updates.merge(indices.concat(Shape(whole.at_least(1)[1:])))
        return () if resource else ref

    definition.kernel(kernel)
    definition.shape(shape)
    return definition.not_differentiable()


_SMALL = (*FLOATS, dtypes.int32, dtypes.int64)
SCATTER = {
    kind: _define(kind, ANY if kind == "Update" else _SMALL if kind in ("Min", "Max") else NUMERIC, resource=False)
    for kind in ("Update", "Add", "Sub", "Mul", "Div", "Min", "Max")
}
RESOURCE_SCATTER = {
    kind: _define(kind, ANY if kind == "Update" else NUMERIC, resource=True)
    for kind in ("Update", "Add", "Sub", "Mul", "Div", "Min", "Max")
}


def _define_nd(kind: str, allowed: tuple[DType, ...], *, resource: bool) -> OpDefinition:
    name = f"{'Resource' if resource else ''}ScatterNd{kind}"
    reference, result = ("resource", "") if resource else ("Ref(T)", "output_ref: Ref(T)")
    definition = define(
        f"{name}(ref: {reference}, indices: Tindices, updates: T) -> ({result})",
        WRITES | STATEFUL,
        T=allowed,
        Tindices=INDEX,
        use_locking=resource or kind == "Update",
        bad_indices_policy=POLICY,
    )

    def kernel(
        variable: VariableState, indices: torch.Tensor, updates: Any, *, bad_indices_policy: str
    ) -> VariableState:
        target = variable.read()
        flat, rows, count, width = scattering._places(list(target.shape), indices, updates, bad_indices_policy)
        _change(kind, target.reshape(count, width), flat, rows, name)
        return variable

    definition.kernel(kernel)
    definition.shape((lambda ref, indices, updates: ()) if resource else (lambda ref, indices, updates: ref))
    return definition.not_differentiable()


SCATTER_ND = {
    kind: _define_nd(kind, ANY if kind == "Update" else NUMERIC, resource=False)
    for kind in ("Update", "Add", "Sub", "Min", "Max")
}
RESOURCE_SCATTER_ND = {kind: _define_nd(kind, ANY, resource=True) for kind in ("Update", "Add", "Sub", "Min", "Max")}

# ---- VariableShape ----------------------------------------------------------------------------------------------

VARIABLE_SHAPE = define(
    "VariableShape(input: resource) -> (output: out_type)",
    READS | STATEFUL,
    out_type=one_of(*INDEX, default=dtypes.int32),
).not_differentiable()


@VARIABLE_SHAPE.kernel
def variable_shape_kernel(input: VariableState, *, out_type: DType) -> torch.Tensor:
    return torch.tensor(input.read().shape, dtype=torch_dtype(out_type))


@VARIABLE_SHAPE.shape
def variable_shape_shape(input: Shape, *, op: Operation) -> Shape:
    known = state.handle_shape(op._inputs[0])
    return UNKNOWN_SHAPE if known.rank is None else Shape((known.rank,))


# ---- the functions ----------------------------------------------------------------------------------------------


def _function(kind: str, locks: bool, does: str) -> Callable[..., Any]:
    def scatter(ref: Any, indices: Any, updates: Any, use_locking: bool = locks, name: str | None = None) -> Any:
        if isinstance(ref, ResourceVariable):
            return _after(ref, RESOURCE_SCATTER[kind](ref.handle, indices, updates, name=name))
        return SCATTER[kind](ref, indices, updates, use_locking=use_locking, name=name)

    scatter.__name__ = scatter.__qualname__ = f"scatter_{kind.lower()}"
    scatter.__doc__ = f"""{does} the rows `indices` of a variable; returns its new value.

    Args:
        ref: a variable.
        indices: rows, in any shape; a row may be named more than once.
        updates: a row for each index, or one number for all.
        use_locking: see `tf.Variable.assign`.
        name: the op's name.

    Raises:
        InvalidArgumentError: an index out of range, or updates of another shape.
    """
    return scatter


def _function_nd(kind: str, locks: bool, does: str) -> Callable[..., Any]:
    def scatter(ref: Any, indices: Any, updates: Any, use_locking: bool = locks, name: str | None = None) -> Any:
        if isinstance(ref, ResourceVariable):
            return _after(
                ref, RESOURCE_SCATTER_ND[kind](ref.handle, indices, updates, use_locking=use_locking, name=name)
            )
        return SCATTER_ND[kind](ref, indices, updates, use_locking=use_locking, name=name)

    scatter.__name__ = scatter.__qualname__ = f"scatter_nd_{kind.lower()}"
    scatter.__doc__ = f"""{does} the slices of a variable at the coordinates `indices`; returns its new value.

    Args:
        ref: a variable.
        indices: coordinates, [..., K].
        updates: a slice (an element, when K is the rank) for each.
        use_locking: see `tf.Variable.assign`.
        name: the op's name.

    Raises:
        InvalidArgumentError: coordinates out of range, or updates of another shape.
    """
    return scatter


def _after(variable: ResourceVariable, update: Any) -> Any:
    """What the functions return for resource variables: the value after the update."""
    with control_dependencies([] if update is None or not hasattr(update, "graph") else [update]):
        return variable.value()


scatter_update = export(v1="scatter_update")(_function("Update", True, "Replaces"))
scatter_add = export(v1="scatter_add")(_function("Add", False, "Adds to"))
scatter_sub = export(v1="scatter_sub")(_function("Sub", False, "Subtracts from"))
scatter_mul = export(v1="scatter_mul")(_function("Mul", False, "Multiplies"))
scatter_div = export(v1="scatter_div")(_function("Div", False, "Divides"))
scatter_min = export(v1="scatter_min")(_function("Min", False, "Takes the smaller of updates and"))
scatter_max = export(v1="scatter_max")(_function("Max", False, "Takes the larger of updates and"))
scatter_nd_update = export(v1="scatter_nd_update")(_function_nd("Update", True, "Replaces"))
scatter_nd_add = export(v1="scatter_nd_add")(_function_nd("Add", False, "Adds to"))
scatter_nd_sub = export(v1="scatter_nd_sub")(_function_nd("Sub", False, "Subtracts from"))
