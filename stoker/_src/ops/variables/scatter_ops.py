"""Row updates of variables: Scatter*, ScatterNd* and their resource forms.

The cost of every op depends on the rows that it updates, never on the size of the variable.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np
import torch

from stoker._src.base import dtypes
from stoker._src.base.dtypes import INDEX, NUMERIC, DType
from stoker._src.base.errors import InvalidArgumentError
from stoker._src.base.export import export
from stoker._src.base.shapes import Shape
from stoker._src.graph.conversion import convert_to_tensor
from stoker._src.graph.definition import ANY, READS, STATEFUL, WRITES, OpDefinition, define, one_of
from stoker._src.graph.planning import Prepared
from stoker._src.graph.tensor import Operation, Tensor
from stoker._src.ops.array import casting, joining, ranges, scattering, shaping
from stoker._src.ops.support import device_checks, handles, table_rows
from stoker._src.ops.support.handles import handle_shape
from stoker._src.ops.support.movement import POLICY
from stoker._src.ops.variables import state_ops
from stoker._src.ops.variables.state_ops import VariableState

# torch has no arithmetic for these. Sums, differences and products of the signed bits are the same.
_SIGNED = {torch.uint16: torch.int16, torch.uint32: torch.int32, torch.uint64: torch.int64}
_WIDER = {torch.uint16: torch.int32, torch.uint32: torch.int64}

Update = Callable[[Any, torch.Tensor, Any], None]


# -- rows and positions ------------------------------------------------------------------------------------------


def checked_rows(indices: torch.Tensor, size: int) -> torch.Tensor:
    """`indices` as a flat int64 vector.

    Raises:
        InvalidArgumentError: an index is outside [0, size).
    """
    flat = indices.reshape(-1).long()

    def refusal() -> InvalidArgumentError:
        at = int(torch.nonzero((flat < 0) | (flat >= size))[0])
        place = ",".join(str(int(i)) for i in np.unravel_index(at, tuple(indices.shape) or (1,)))
        return InvalidArgumentError(
            None, None, f"indices[{place if indices.ndim else ''}] = {int(flat[at])} is not in [0, {size})"
        )

    if flat.is_cuda:
        device_checks.require((flat >= 0) & (flat < size), refusal)
        device_checks.settle()
    elif flat.numel():
        low, high = torch.aminmax(flat)
        if int(low) < 0 or int(high) >= size:
            raise refusal()
    return flat


def rows_in_range(rows: torch.Tensor, updates: torch.Tensor, size: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Replaces additions to rows outside [0, size) by additions of zero.

    TensorFlow ignores such rows on a GPU, because a check would make the host wait.
    """
    bad = (rows < 0) | (rows >= size)
    return rows.masked_fill(bad, 0), updates.masked_fill(bad.reshape(-1, *[1] * (updates.ndim - 1)), 0)


def _row_updates(name: str, target: Any, indices: torch.Tensor, updates: Any) -> Any:
    """`updates` with one entry for each index. A single number is broadcast.

    Raises:
        InvalidArgumentError: the shape does not match.
    """
    wanted = (*indices.shape, *target.shape[1:])
    if tuple(updates.shape) != wanted and updates.shape != ():
        raise InvalidArgumentError(
            None,
            None,
            f"Must have updates.shape = indices.shape + params.shape[1:] or updates.shape = [], got updates.shape "
            f"{Shape(updates.shape)}, indices.shape {Shape(indices.shape)}, params.shape {Shape(target.shape)} ({name})",
        )
    flat = (indices.numel(), *target.shape[1:])
    if isinstance(updates, np.ndarray):
        return np.broadcast_to(updates, wanted).reshape(flat)
    return (updates.expand(wanted) if updates.ndim != len(wanted) else updates).reshape(flat)


# -- what an update does -----------------------------------------------------------------------------------------


def _assign(target: Any, rows: torch.Tensor, updates: Any) -> None:
    if isinstance(target, np.ndarray):
        target[rows.numpy()] = updates
        return
    if target.is_cuda and rows.numel():
        # The device writes in any order, so every repeated row is given its last value each time.
        places = torch.arange(rows.shape[0], device=rows.device)
        last = rows.new_zeros(target.shape[0]).scatter_reduce_(0, rows, places, "amax")
        updates = updates.index_select(0, last.index_select(0, rows))
    _plain(target).index_copy_(0, rows, _plain(updates))


def _plain(x: torch.Tensor) -> torch.Tensor:
    """The same bits in a dtype that torch can index and add."""
    signed = _SIGNED.get(x.dtype)
    return x if signed is None else x.view(signed)


def _add(target: torch.Tensor, rows: torch.Tensor, updates: torch.Tensor) -> None:
    _plain(target).index_add_(0, rows, _plain(updates))


def _subtract(target: torch.Tensor, rows: torch.Tensor, updates: torch.Tensor) -> None:
    # With alpha=-1 torch updates row by row, a hundred times slower.
    _plain(target).index_add_(0, rows, -_plain(updates))


def _one_by_one(combine: Callable[[torch.Tensor, torch.Tensor], torch.Tensor]) -> Update:
    """An update with `combine`, in rounds in which each row occurs once. Repeated rows come in later rounds."""

    def update(target: torch.Tensor, rows: torch.Tensor, updates: torch.Tensor) -> None:
        order = torch.argsort(rows, stable=True)
        in_order = rows[order]
        starts = torch.ones_like(in_order, dtype=torch.bool)
        starts[1:] = in_order[1:] != in_order[:-1]
        places = torch.arange(rows.numel(), device=rows.device)
        occurrence = places - torch.cummax(torch.where(starts, places, 0), 0).values if rows.numel() else places
        target, updates = _plain(target), _plain(updates)
        for turn in range(int(occurrence.max()) + 1 if rows.numel() else 0):
            chosen = order[occurrence == turn]
            at = rows[chosen]
            target.index_copy_(0, at, combine(target.index_select(0, at), updates.index_select(0, chosen)))

    return update


def _widened(combine: Callable[[torch.Tensor, torch.Tensor], torch.Tensor]) -> Update:
    """`_one_by_one` for unsigned numbers, which are compared and divided in a wider dtype."""

    def update(target: torch.Tensor, rows: torch.Tensor, updates: torch.Tensor) -> None:
        kind = target.dtype
        if kind == torch.uint64:
            # Flipping the top bit maps unsigned order to signed order.
            top = torch.iinfo(torch.int64).min
            return _one_by_one(lambda old, new: combine(old ^ top, new ^ top) ^ top)(target, rows, updates)
        wide = _WIDER.get(kind)
        if wide is None:
            return _one_by_one(combine)(target, rows, updates)
        mask = (1 << (8 * kind.itemsize)) - 1
        signed = _SIGNED[kind]
        return _one_by_one(lambda old, new: combine(old.to(wide) & mask, new.to(wide) & mask).to(signed))(
            target, rows, updates
        )

    return update


def _divided(old: torch.Tensor, new: torch.Tensor) -> torch.Tensor:
    if old.dtype.is_floating_point or old.dtype.is_complex:
        return old / new
    if bool((new == 0).any()):
        raise InvalidArgumentError(None, None, "Integer division by zero")
    return torch.div(old, new, rounding_mode="trunc")


def _divide(target: torch.Tensor, rows: torch.Tensor, updates: torch.Tensor) -> None:
    if target.dtype == torch.uint64:
        for row, update in zip(rows.tolist(), updates):
            old = target[row].numpy() if target.ndim > 1 else np.asarray(target[row].item(), np.uint64)
            if (update == 0).any():
                raise InvalidArgumentError(None, None, "Integer division by zero")
            target[row] = torch.from_numpy(np.asarray(old // update.numpy()))
        return
    _widened(_divided)(target, rows, updates)


_SUMS = (_add, _subtract)
_UPDATES: dict[str, Update] = {
    "Update": _assign,
    "Add": _add,
    "Sub": _subtract,
    "Mul": _one_by_one(torch.mul),
    "Div": _divide,
    "Min": _widened(torch.minimum),
    "Max": _widened(torch.maximum),
}
_ORDERED = (dtypes.float16, dtypes.bfloat16, dtypes.float32, dtypes.float64, dtypes.int32, dtypes.int64)


# -- Scatter*, ResourceScatter* ----------------------------------------------------------------------------------


def _scatter_rows(change: Update, name: str) -> Callable[..., None]:
    def kernel(variable: VariableState, indices: torch.Tensor, updates: Any) -> None:
        target = variable.read()
        if not target.shape:
            raise InvalidArgumentError(None, None, f"{name}: params must be at least 1-D, got shape []")
        given = _row_updates(name, target, indices, updates)
        if change in _SUMS and table_rows.add(target, indices.reshape(-1), given, subtract=change is _subtract):
            return
        if change in _SUMS and isinstance(target, torch.Tensor) and target.is_cuda:
            change(target, *rows_in_range(indices.reshape(-1).long(), given, target.shape[0]))
            return
        change(target, checked_rows(indices, target.shape[0]), given)

    return kernel


def _prepared_assignment(op: Operation, shape_of: Any) -> Prepared | None:
    """The host checks the rows that it knows; the device only writes."""
    variable = op._inputs[0]
    shape = handle_shape(variable) if variable.dtype is dtypes.resource else shape_of(variable)
    size = shape.dims[0] if shape.dims else None
    if size is None or not op._inputs[2].dtype.is_floating:
        return None

    def prepare(indices: torch.Tensor) -> tuple[torch.Tensor]:
        return (checked_rows(indices, int(size)).reshape(indices.shape),)

    def kernel(variable: VariableState, updates: torch.Tensor, rows: torch.Tensor, **_: Any) -> VariableState:
        target = variable.read()
        _assign(target, rows.reshape(-1), _row_updates(op.type, target, rows, updates))
        return variable

    return Prepared(("indices",), prepare, 1, (op.definition.inputs[0].name, "updates"), kernel)


def _returning(kernel: Callable[..., None], name: str) -> Callable[..., VariableState]:
    @functools.wraps(kernel)
    def returning(ref: VariableState, indices: torch.Tensor, updates: Any, **attrs: Any) -> VariableState:
        kernel(ref, indices, updates, **attrs)
        return ref

    returning.__name__ = name
    return returning


def _kernel_name(op: str) -> str:
    return "".join(f"_{c.lower()}" if c.isupper() else c for c in op)[1:] + "_kernel"


def _rows_rule(ref: Shape, indices: Shape, updates: Shape) -> Shape:
    if updates.rank != 0 and indices.dims is not None and ref.dims is not None:
        Shape((*indices.dims, *ref.dims[1:])).merge(updates)
    return ref


def _of_handle(rule: Callable[..., Shape]) -> Callable[..., tuple[()]]:
    """Applies `rule` to the variable behind a handle, whose dtype is that of the updates."""

    def by_handle(handle: Shape, indices: Shape, updates: Shape, *, op: Operation) -> tuple[()]:
        found, given = handles.handle_dtype(op._inputs[0]), op._inputs[2].dtype
        if found not in (None, given):
            raise InvalidArgumentError(
                None, None, f"Trying to read variable with wrong dtype. Expected {found.name} got {given.name}."
            )
        rule(handle_shape(op._inputs[0]), indices, updates)
        return ()

    return by_handle


def _skips_padding(op: Operation, padded: list[bool], shape_of: Any) -> list[bool] | None:
    """Additions to padded rows are skipped on a GPU."""
    return [False] * len(op.outputs) if padded[1:] == [True, True] else None


def _scatter(kind: str) -> tuple[OpDefinition, OpDefinition]:
    allowed = ANY if kind == "Update" else (_ORDERED if kind in ("Min", "Max") else NUMERIC)
    name, resource_name = f"Scatter{kind}", f"ResourceScatter{kind}"
    kernel = _scatter_rows(_UPDATES[kind], name)
    by_reference = define(
        f"{name}(ref: Ref(T), indices: Tindices, updates: T) -> (output_ref: Ref(T))",
        WRITES | STATEFUL,
        T=allowed,
        Tindices=INDEX,
        use_locking=kind == "Update",
    )
    if kind in ("Add", "Sub", "Mul", "Div"):
        by_reference.not_differentiable()
    by_reference.kernel(_returning(kernel, _kernel_name(name)))
    by_reference.shape(_rows_rule)
    by_handle = define(
        f"{resource_name}(resource: resource, indices: Tindices, updates: dtype) -> ()",
        WRITES | STATEFUL,
        dtype=ANY if kind == "Update" else NUMERIC,
        Tindices=INDEX,
    )
    kernel.__name__ = _kernel_name(resource_name)
    by_handle.kernel(kernel)
    by_handle.shape(_of_handle(_rows_rule))
    if kind in ("Add", "Sub"):
        for made in (by_reference, by_handle):
            made.planning.padded = _skips_padding
    if kind == "Update":
        for made in (by_reference, by_handle):
            made.planning.prepares = _prepared_assignment
    return by_reference, by_handle


SCATTERS = {kind: _scatter(kind) for kind in ("Update", "Add", "Sub", "Mul", "Div", "Min", "Max")}

# -- ScatterNd*, ResourceScatterNd* ------------------------------------------------------------------------------


def _scatter_positions(change: Update) -> Callable[..., None]:
    def kernel(ref: VariableState, indices: torch.Tensor, updates: Any, *, bad_indices_policy: str) -> None:
        target = ref.read()
        positions, rows, count, width = scattering.places(list(target.shape), indices, updates, bad_indices_policy)
        # A variable's value is contiguous, so this is a view.
        change(target.reshape(count, width), positions, rows)

    return kernel


def _scatter_nd(kind: str) -> tuple[OpDefinition, OpDefinition]:
    name, resource_name = f"ScatterNd{kind}", f"ResourceScatterNd{kind}"
    kernel = _scatter_positions(_UPDATES[kind])
    by_reference = define(
        f"{name}(ref: Ref(T), indices: Tindices, updates: T) -> (output_ref: Ref(T))",
        WRITES | STATEFUL,
        T=ANY if kind == "Update" else NUMERIC,
        Tindices=INDEX,
        use_locking=kind == "Update",
        bad_indices_policy=POLICY,
    )
    if kind in ("Update", "Add", "Sub"):
        by_reference.not_differentiable()
    by_reference.kernel(_returning(kernel, _kernel_name(name)))
    by_reference.shape(scattering.nd_rule)
    by_handle = define(
        f"{resource_name}(ref: resource, indices: Tindices, updates: T) -> ()",
        WRITES | STATEFUL,
        T=ANY,
        Tindices=INDEX,
        use_locking=True,
        bad_indices_policy=POLICY,
    )
    kernel.__name__ = _kernel_name(resource_name)
    by_handle.kernel(kernel)
    by_handle.shape(_of_handle(scattering.nd_rule))
    return by_reference, by_handle


SCATTERS_ND = {kind: _scatter_nd(kind) for kind in ("Update", "Add", "Sub", "Min", "Max")}

# -- VariableShape -----------------------------------------------------------------------------------------------

VARIABLE_SHAPE = define(
    "VariableShape(input: resource) -> (output: out_type)",
    READS | STATEFUL,
    out_type=one_of(*INDEX, default=dtypes.int32),
).not_differentiable()


VARIABLE_SHAPE.planning.of_variable_shapes = True


@VARIABLE_SHAPE.kernel
def variable_shape_kernel(input: VariableState, *, out_type: DType) -> torch.Tensor:
    return torch.tensor(input.read().shape, dtype=torch.int64 if out_type is dtypes.int64 else torch.int32)


@VARIABLE_SHAPE.shape
def variable_shape_rule(input: Shape, *, op: Operation) -> Shape:
    return Shape((handle_shape(op._inputs[0]).rank,))


# -- functions ---------------------------------------------------------------------------------------------------


def _is_reference(ref: Any) -> bool:
    dtype = getattr(ref, "dtype", None)
    return dtype is not None and dtype._is_ref_dtype


def _rows(kind: str, ref: Any, indices: Any, updates: Any, use_locking: bool, name: str | None) -> Any:
    by_reference, _ = SCATTERS[kind]
    if _is_reference(ref):
        return by_reference(ref, indices, updates, use_locking=use_locking, name=name)
    return ref._scatter(kind, indices, updates, name)


def _positions(kind: str, ref: Any, indices: Any, updates: Any, use_locking: bool, name: str | None) -> Any:
    by_reference, _ = SCATTERS_ND[kind]
    if _is_reference(ref):
        return by_reference(ref, indices, updates, use_locking=use_locking, name=name)
    return ref._scatter_nd(kind, indices, updates, name)


@export(v1="scatter_update")
def scatter_update(ref: Any, indices: Any, updates: Any, use_locking: bool = True, name: str | None = None) -> Any:
    """Sets rows of a variable. Returns the variable's updated value.

    Raises:
        InvalidArgumentError: an index is out of range, or the updates have another shape.
    """
    return _rows("Update", ref, indices, updates, use_locking, name)


@export(v1="scatter_add")
def scatter_add(ref: Any, indices: Any, updates: Any, use_locking: bool = False, name: str | None = None) -> Any:
    """Adds to rows of a variable. Repeated rows accumulate. Returns the variable's updated value."""
    return _rows("Add", ref, indices, updates, use_locking, name)


@export(v1="scatter_sub")
def scatter_sub(ref: Any, indices: Any, updates: Any, use_locking: bool = False, name: str | None = None) -> Any:
    """Subtracts from rows of a variable. Returns the variable's updated value."""
    return _rows("Sub", ref, indices, updates, use_locking, name)


@export(v1="scatter_mul")
def scatter_mul(ref: Any, indices: Any, updates: Any, use_locking: bool = False, name: str | None = None) -> Any:
    """Multiplies rows of a variable. Returns the variable's updated value."""
    return _rows("Mul", ref, indices, updates, use_locking, name)


@export(v1="scatter_div")
def scatter_div(ref: Any, indices: Any, updates: Any, use_locking: bool = False, name: str | None = None) -> Any:
    """Divides rows of a variable. Returns the variable's updated value."""
    return _rows("Div", ref, indices, updates, use_locking, name)


@export(v1="scatter_min")
def scatter_min(ref: Any, indices: Any, updates: Any, use_locking: bool = False, name: str | None = None) -> Any:
    """Sets rows of a variable to the minimum of their value and `updates`. Returns the variable's updated value."""
    return _rows("Min", ref, indices, updates, use_locking, name)


@export(v1="scatter_max")
def scatter_max(ref: Any, indices: Any, updates: Any, use_locking: bool = False, name: str | None = None) -> Any:
    """Sets rows of a variable to the maximum of their value and `updates`. Returns the variable's updated value."""
    return _rows("Max", ref, indices, updates, use_locking, name)


@export(v1="scatter_nd_update")
def scatter_nd_update(ref: Any, indices: Any, updates: Any, use_locking: bool = True, name: str | None = None) -> Any:
    """Sets elements or slices of a variable at coordinates. Returns the variable's updated value."""
    return _positions("Update", ref, indices, updates, use_locking, name)


@export(v1="scatter_nd_add")
def scatter_nd_add(ref: Any, indices: Any, updates: Any, use_locking: bool = False, name: str | None = None) -> Any:
    """Adds to elements or slices of a variable at coordinates. Returns the variable's updated value."""
    return _positions("Add", ref, indices, updates, use_locking, name)


@export(v1="scatter_nd_sub")
def scatter_nd_sub(ref: Any, indices: Any, updates: Any, use_locking: bool = False, name: str | None = None) -> Any:
    """Subtracts from elements or slices of a variable at coordinates. Returns the variable's updated value."""
    return _positions("Sub", ref, indices, updates, use_locking, name)


@export(v1="batch_scatter_update")
def batch_scatter_update(
    ref: Any, indices: Any, updates: Any, use_locking: bool = True, name: str | None = None
) -> Any:
    """Sets `ref[b..., indices[b..., i]]` to `updates[b..., i]` for every batch b. Returns the variable's updated value."""
    indices = convert_to_tensor(indices, name="indices")
    sizes = shaping.shape(indices)
    rank = indices.static_shape.rank
    if rank is None:
        raise ValueError("batch_scatter_update needs indices of known rank.")
    last = shaping.expand_dims(indices, -1)
    coordinates = []
    for axis in range(rank - 1):
        size = sizes[axis]
        places = ranges.range(0, size, 1)
        if places.dtype is not indices.dtype:
            places = casting.cast(places, indices.dtype)
        shape = [1] * axis + [size] + [1] * (rank - axis)
        coordinates.append(shaping.reshape(places, shape) * shaping.ones_like(last))
    full = joining.concat([*coordinates, last], -1)
    return scatter_nd_update(ref, full, updates, use_locking, name)


# -- counting ----------------------------------------------------------------------------------------------------


@export(v1="count_up_to")
def count_up_to(ref: Any, limit: int, name: str | None = None) -> Tensor:
    """Increments an integer variable. Returns its previous value.

    Raises:
        OutOfRangeError: (at run time) the variable has reached `limit`.
    """
    if _is_reference(ref):
        return state_ops.COUNT_UP_TO(ref, limit=limit, name=name)
    return state_ops.RESOURCE_COUNT_UP_TO(ref.handle, limit=limit, T=ref.dtype, name=name)
