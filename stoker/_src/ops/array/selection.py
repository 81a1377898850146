"""Choosing and reordering elements: where, masks, one_hot, reverse, roll."""

from __future__ import annotations

import math as numbers
from typing import Any

import numpy as np
import torch

from stoker._src.base import dtypes
from stoker._src.base.dtypes import COMPLEX, FLOATS, INDEX, INTS, NUMERIC, as_dtype
from stoker._src.base.errors import InvalidArgumentError
from stoker._src.base.export import export
from stoker._src.base.extensions import extension
from stoker._src.base.shapes import UNKNOWN_SHAPE, Shape, broadcast
from stoker._src.graph.conversion import convert_to_tensor
from stoker._src.graph.definition import ANY, INT, INT32, define, one_of
from stoker._src.graph.late_binding import ops
from stoker._src.graph.scopes import name_scope
from stoker._src.graph.tensor import Operation, Tensor
from stoker._src.ops.array import shaping
from stoker._src.ops.array.broadcasting import reduce_to_inputs
from stoker._src.ops.support import rows, table_rows
from stoker._src.ops.support.dispatching import dispatched, elementwise
from stoker._src.ops.support.movement import allocatable, itemsize, rearranges, signed
from stoker._src.ops.support.values import torch_dtype

_native = extension("stoker._src.ops.native.selection")
_WORTH_A_CALL = 2048  # elements below which torch is as fast

_QUANTIZED = tuple(each for each in dtypes.QUANTIZED_DTYPES if not each._is_ref_dtype)

# ---- Where ------------------------------------------------------------------------------------------------------

WHERE = define("Where(input: T) -> (index: int64)", T=one_of(*NUMERIC, *_QUANTIZED, dtypes.bool_, default=dtypes.bool_))
WHERE.small("where")
WHERE.planning.sized_by = (0,)


@WHERE.kernel
def where_kernel(input: torch.Tensor) -> torch.Tensor:
    if not 1 <= input.ndim <= 8:
        raise InvalidArgumentError(None, None, f"WhereOp : Unhandled input dimensions: {input.ndim}")
    if (
        _native is not None
        and input.dtype == torch.bool
        and input.device.type == "cpu"
        and input.numel() >= _WORTH_A_CALL
    ):
        input = input.contiguous()
        found = _native.count(input, input.numel())
        places = torch.empty((found, input.ndim), dtype=torch.int64)
        _native.places(places, found, input, tuple(input.shape))
        return places
    return torch.nonzero(signed(input)).contiguous()  # torch writes it column by column


@WHERE.shape
def where_shape(input: Shape) -> Shape:
    return Shape((None, input.rank))


# ---- Select, SelectV2 -------------------------------------------------------------------------------------------

SELECT = define("Select(condition: bool, t: T, e: T) -> (output: T)", T=ANY)
SELECT.small("select", lambda op: [1])
SELECT_V2 = define("SelectV2(condition: bool, t: T, e: T) -> (output: T)", T=ANY)
SELECT_V2.small("select", lambda op: [0])


SELECT_V2.rows(rows.broadcast)
SELECT_V2.ragged_rows(rows.elements)


@SELECT.rows
def select_rows(op: Operation, inputs: list[rows.Input]) -> list[Tensor] | None:
    """A single condition becomes one for each row."""
    condition, t, _ = inputs
    if t.rank is None or condition.rank not in (0, t.rank) or not all(each.stacked for each in inputs):
        return None
    return rows.again(op, [each.tensor for each in inputs])


@SELECT.kernel
def select_kernel(condition: torch.Tensor, t: Any, e: Any) -> Any:
    if t.shape != e.shape:
        raise InvalidArgumentError(
            None,
            None,
            f"'then' and 'else' must have the same size.  but received: {Shape(t.shape)} vs. {Shape(e.shape)}",
        )
    if condition.shape != t.shape and condition.ndim:
        if condition.ndim != 1 or not t.ndim or condition.shape[0] != t.shape[0]:
            raise InvalidArgumentError(
                None,
                None,
                f"'cond' must be a scalar, a vector as long as the first dimension, or of the shape of 'then'; got {Shape(condition.shape)} for {Shape(t.shape)}",
            )
        condition = condition.reshape(-1, *[1] * (t.ndim - 1))
    return select_v2_kernel(condition, t, e)


@SELECT_V2.kernel
def select_v2_kernel(condition: torch.Tensor, t: Any, e: Any) -> Any:
    if isinstance(t, np.ndarray):
        chosen = np.where(condition.cpu().numpy(), t, e)
        return chosen if chosen.dtype == object else chosen.astype(object)
    chosen = _selected(condition, t, e)
    return torch.where(condition, t, e) if chosen is None else chosen


def _selected(condition: torch.Tensor, t: torch.Tensor, e: torch.Tensor) -> torch.Tensor | None:
    """The native choice, for booleans of the result's shape or of its first dimensions, and sides that are whole or single numbers."""
    whole = t if t.ndim > e.ndim or e.numel() == 1 else e
    shape, size = whole.shape, whole.numel()
    if _native is None or size < _WORTH_A_CALL or not (condition.is_cpu and t.is_cpu and e.is_cpu):
        return None
    for side in (t, e):
        if side.shape != shape and (side.numel() != 1 or side.ndim > whole.ndim):
            return None
    count = condition.numel()
    leading = len(condition.shape)
    while leading and condition.shape[leading - 1] == 1:
        leading -= 1
    if condition.ndim != whole.ndim or condition.shape[:leading] != shape[:leading] or t.dtype is not e.dtype:
        return None
    if not (condition.is_contiguous() and t.is_contiguous() and e.is_contiguous()) or whole.itemsize > 8:
        return None
    out = torch.empty(shape, dtype=whole.dtype)
    _native.select(
        out, condition, t, t.numel() != 1, e, e.numel() != 1, count, size // count, whole.itemsize, torch.get_num_threads()
    )  # fmt: skip
    return out


@SELECT.lower
def select_lower(build: Any, op: Operation, condition: Any, t: Any, e: Any) -> Any:
    if len(condition.shape) == 1 and len(t.shape) > 1:  # one boolean for each row
        condition = build.reshape(condition, (*condition.shape, *[1] * (len(t.shape) - 1)))
    fits = len(condition.shape) <= len(t.shape)
    return build.select(condition, t, e) if fits and condition.shape in ((), t.shape, _column(t.shape)) else None


def _column(shape: tuple[int, ...]) -> tuple[int, ...]:
    return (*shape[:1], *[1] * (len(shape) - 1))


@SELECT_V2.lower
def select_v2_lower(build: Any, op: Operation, condition: Any, t: Any, e: Any) -> Any:
    shape = tuple(np.broadcast_shapes(condition.shape, t.shape, e.shape))
    spread = [x if x.shape == shape else build.broadcast(x, shape) for x in (t, e)]
    return None if None in spread else build.select(condition, *spread)


@SELECT.shape
def select_shape(condition: Shape, t: Shape, e: Shape) -> Shape:
    merged = t.merge(e)
    if condition.dims and merged.dims is not None:
        if len(condition) != 1 or len(merged) == 1:
            merged = merged.merge(condition)
        elif merged.dims:
            merged = merged.merge(Shape((condition.dims[0], *[None] * (len(merged) - 1))))
    return merged


@SELECT_V2.shape
def select_v2_shape(condition: Shape, t: Shape, e: Shape) -> Shape:
    return broadcast(condition, broadcast(t, e))


@SELECT.grad
def select_grad(op: Operation, g: Tensor) -> Any:
    condition = op.inputs[0]
    blank = shaping.zeros_like(op.inputs[1])
    return None, SELECT(condition, g, blank), SELECT(condition, blank, g)


@SELECT_V2.grad
def select_v2_grad(op: Operation, g: Tensor) -> Any:
    condition, t, e = op.inputs
    blank = shaping.zeros([], g.dtype.base_dtype)
    output = op.outputs[0]
    of_t = reduce_to_inputs(t, output, SELECT_V2(condition, g, blank), None)[0]
    of_e = reduce_to_inputs(e, output, SELECT_V2(condition, blank, g), None)[0]
    return None, of_t, of_e


@export(v1=("where", "select"))
@dispatched
def where(condition: Any, x: Any = None, y: Any = None, name: str | None = None) -> Tensor:
    """Selects elements of `x` where `condition` is true and of `y` elsewhere. Without `x` and `y`, returns the coordinates of true elements.

    `x` and `y` have the same shape. `condition` has that shape too, or is a scalar, or a vector that selects whole rows.

    Raises:
        ValueError: only one of `x` and `y` is given.
    """
    if (x is None) != (y is None):
        raise ValueError("x and y must both be non-None or both be None.")
    if x is None:
        with name_scope(name, "Where", [condition]) as scope:
            condition = convert_to_tensor(condition, dtype_hint=dtypes.bool_, name="condition")
            return WHERE(condition, name=scope)
    return SELECT(condition, x, y, name=name)


@export(v1="where_v2", v2="where")
@dispatched
def where_v2(condition: Any, x: Any = None, y: Any = None, name: str | None = None) -> Tensor:
    """Selects elements of `x` where `condition` is true and of `y` elsewhere. Without `x` and `y`, returns the coordinates of true elements.

    `condition`, `x` and `y` are broadcast together.

    Raises:
        ValueError: only one of `x` and `y` is given.
    """
    if (x is None) != (y is None):
        raise ValueError("x and y must both be non-None or both be None.")
    if x is None:
        return where(condition, name=name)
    return SELECT_V2(condition, x, y, name=name)


# ---- masks ------------------------------------------------------------------------------------------------------


# ---- OneHot -----------------------------------------------------------------------------------------------------

ONE_HOT = define(
    "OneHot(indices: TI, depth: scalar host int32, on_value: any/scalar T, off_value: any/scalar T) -> (output: T)",
    axis=INT32(-1),
    T=ANY,
    TI=one_of(dtypes.uint8, dtypes.int8, *INDEX, default=dtypes.int64),
).not_differentiable()
ONE_HOT.small("one_hot", lambda op: [] if op.attrs["axis"] == -1 else None)


_FEW = 4096
_PLAIN = frozenset((torch.float32, torch.float64, torch.int32, torch.int64, torch.bool))


@ONE_HOT.kernel
def one_hot_kernel(indices: torch.Tensor, depth: int, on_value: Any, off_value: Any, *, axis: int) -> Any:
    if type(depth) is list or depth < 0:
        raise InvalidArgumentError(None, None, f"depth must be a non-negative scalar, got: {depth}")
    if not -1 <= axis <= indices.ndim:
        raise InvalidArgumentError(
            None, None, f"Expected axis to be -1 or between [0, {indices.ndim}].  But received: {axis}"
        )
    at = indices.ndim if axis == -1 else axis
    allocatable([*indices.shape, depth], itemsize(on_value))
    if isinstance(on_value, torch.Tensor) and indices.is_cpu and indices.numel() * depth <= _FEW and axis == -1:
        if (
            on_value.dtype in _PLAIN and off_value.dtype is on_value.dtype
        ):  # NumPy takes a fraction of torch's time to begin
            hot = indices.numpy()[..., None] == np.arange(depth)
            return torch.from_numpy(np.where(hot, on_value.numpy(), off_value.numpy()))
    if isinstance(on_value, torch.Tensor) and not indices.is_cuda:
        sizes = (*indices.shape[:at], depth, *indices.shape[at:])
        result = off_value.expand(sizes).clone(memory_format=torch.contiguous_format)
        if _native is not None and result.is_cpu and on_value.is_cpu:
            at_places = indices.contiguous() if indices.dtype in (torch.int32, torch.int64) else indices.long()
            _native.hot(
                result, at_places, at_places.numel(), at_places.dtype is torch.int64, depth,
                numbers.prod(indices.shape[at:]), on_value.contiguous(), result.itemsize,
            )  # fmt: skip
            return result
        places = indices.long().unsqueeze(at)
        try:
            signed(result).scatter_(at, places, signed(on_value).expand(places.shape))
            return result
        except RuntimeError:
            pass  # an index is outside [0, depth); the slower path below handles it
    steps = torch.arange(depth, dtype=torch.int64, device=indices.device).reshape(-1, *[1] * (indices.ndim - at))
    hot = indices.unsqueeze(at) == steps
    return select_v2_kernel(hot, on_value, off_value)


@ONE_HOT.rows
def one_hot_rows(op: Operation, inputs: list[rows.Input]) -> list[Tensor] | None:
    axis = op.attrs["axis"]
    if not inputs[0].stacked or any(each.stacked for each in inputs[1:]):
        return None
    return rows.again(op, [each.tensor for each in inputs], axis=axis + 1 if axis >= 0 else axis)


@ONE_HOT.lower
def one_hot_lower(build: Any, op: Operation, indices: Any, depth: int, on_value: Any, off_value: Any) -> Any:
    """Each index is compared with all places."""
    places = build.range(depth, op._inputs[0].dtype.base_dtype.name) if depth > 0 else None
    if places is None or op.attr("axis") not in (-1, len(indices.shape)):
        return None
    shape = (*indices.shape, depth)
    hits = build.binary("equal", build.reshape(indices, (*indices.shape, 1)), places)
    if build.number(on_value) == 1.0 and build.number(off_value) == 0.0 and op.attr("T") is dtypes.float32:
        return hits  # booleans are 1 and 0 in fused loops
    sides = [build.broadcast(each, shape) for each in (on_value, off_value)]
    return None if hits is None or None in sides else build.select(hits, *sides)


@ONE_HOT.shape(values=["depth"])
def one_hot_shape(indices: Shape, depth: np.ndarray | None, on_value: Shape, off_value: Shape, *, axis: int) -> Shape:
    if axis < -1:
        raise InvalidArgumentError(None, None, f"axis must be >= -1, got {axis}")
    if depth is not None and (depth.ndim or depth < 0):
        raise InvalidArgumentError(None, None, f"depth must be a non-negative scalar, got: {depth.tolist()}")
    if indices.dims is None or axis > len(indices):
        return UNKNOWN_SHAPE
    at = len(indices) if axis == -1 else axis
    size = None if depth is None else int(depth)
    return Shape((*indices.dims[:at], size, *indices.dims[at:]))


@export("one_hot")
@elementwise
def one_hot(
    indices: Any,
    depth: Any,
    on_value: Any = None,
    off_value: Any = None,
    axis: int | None = None,
    dtype: Any = None,
    name: str | None = None,
) -> Tensor:
    """One-hot encoding: `on_value` (1) at each index along a new dimension of size `depth`, `off_value` (0) elsewhere.

    Args:
        indices: integers. An index outside [0, depth) gives a row of `off_value`.
        depth: the size of the new dimension.
        on_value: the value at the index.
        off_value: the value elsewhere.
        axis: the position of the new dimension; last by default.
        dtype: the dtype of the result; by default that of the values, or float32.
        name: the op's name.

    Raises:
        TypeError: the dtypes differ.
    """
    with name_scope(name, "one_hot", [indices, depth, on_value, off_value, axis, dtype]) as scope:
        wanted = None if dtype is None else as_dtype(dtype).base_dtype
        kinds = {}
        for label, value in (("on_value", on_value), ("off_value", off_value)):
            if value is not None:
                found = convert_to_tensor(value, dtype_hint=wanted).dtype.base_dtype
                kinds[label] = found
                if wanted is not None and found is not wanted:
                    raise TypeError(f"dtype {found.name} of {label} does not match dtype parameter {wanted.name}")
        if len(set(kinds.values())) > 1:
            raise TypeError(
                f"dtype {kinds['on_value'].name} of on_value does not match dtype {kinds['off_value'].name} of off_value"
            )
        kind = wanted or next(iter(kinds.values()), dtypes.float32)
        on = convert_to_tensor(1 if on_value is None else on_value, kind, name="on_value")
        off = convert_to_tensor(0 if off_value is None else off_value, kind, name="off_value")
        return ONE_HOT(indices, depth, on, off, axis=-1 if axis is None else axis, name=scope)


# ---- Reverse, ReverseSequence, Roll -----------------------------------------------------------------------------

_REVERSIBLE = (*INTS, dtypes.bool_, *FLOATS, *COMPLEX, dtypes.string)
REVERSE_V2 = define(
    "ReverseV2(tensor: T, axis: vector host Tidx) -> (output: T)",
    Tidx=one_of(*INDEX, default=dtypes.int32),
    T=_REVERSIBLE,
)
REVERSE = define("Reverse(tensor: T, dims: vector host bool) -> (output: T)", T=_REVERSIBLE)


@REVERSE_V2.kernel
@rearranges
def reverse_kernel(tensor: torch.Tensor, axis: list[int]) -> torch.Tensor:
    if not axis or not tensor.ndim:  # axes of a scalar are ignored
        return tensor.clone()
    _check_axes(tensor.ndim, axis)
    return tensor.flip(axis)


@REVERSE_V2.rows
def reverse_rows(op: Operation, inputs: list[rows.Input]) -> list[Tensor] | None:
    rank, axes = inputs[0].rank, rows.numbers(inputs[1])
    if not rank or axes is None or not inputs[0].stacked:
        return None
    return [REVERSE_V2(inputs[0].tensor, axes % rank + 1)]


def _check_axes(rank: int, axis: list[int]) -> None:
    seen = set()
    for i, each in enumerate(axis):
        if not -rank <= each < rank:
            raise InvalidArgumentError(None, None, f"'axis'[{i}] = {each} is out of valid range [{-rank}, {rank - 1}]")
        if each % rank in seen:
            raise InvalidArgumentError(None, None, f"axis {each % rank} specified more than once.")
        seen.add(each % rank)


@REVERSE.kernel
def reverse_v1_kernel(tensor: Any, dims: list[bool]) -> Any:
    if tensor.ndim and len(dims) != tensor.ndim:
        raise InvalidArgumentError(
            None, None, f"len(dims) must be equal to the rank of the input tensor: {len(dims)} and {tensor.ndim}"
        )
    if tensor.ndim and not tensor.shape[0]:
        raise InvalidArgumentError(None, None, "Invalid input first dimension. Found 0.")
    return reverse_kernel(tensor, [i for i, turned in enumerate(dims) if turned])


@REVERSE_V2.shape(values=["axis"])
def reverse_shape(tensor: Shape, axis: np.ndarray | None) -> Shape:
    if axis is not None and tensor.rank is not None:
        _check_axes(tensor.rank, axis.tolist())
    return tensor


@REVERSE.shape
def reverse_v1_shape(tensor: Shape, dims: Shape) -> Shape:
    (count,) = dims.of_rank(1)
    return tensor if count is None else tensor.of_rank(count)


@REVERSE_V2.grad
def reverse_grad(op: Operation, g: Tensor) -> Any:
    return REVERSE_V2(g, op.inputs[1]), None


@REVERSE.grad
def reverse_v1_grad(op: Operation, g: Tensor) -> Any:
    return REVERSE(g, op.inputs[1]), None


@export("reverse", v1=("reverse_v2", "manip.reverse"))
@dispatched
def reverse(tensor: Any, axis: Any, name: str | None = None) -> Tensor:
    """Reverses `tensor` along the dimensions in `axis`."""
    return REVERSE_V2(tensor, axis, name=name)


REVERSE_SEQUENCE = define(
    "ReverseSequence(input: rank>1 T, seq_lengths: vector Tlen) -> (output: T)",
    seq_dim=INT,
    batch_dim=0,
    T=ANY,
    Tlen=one_of(*INDEX, default=dtypes.int64),
)


@REVERSE_SEQUENCE.kernel
@rearranges
def reverse_sequence_kernel(
    input: torch.Tensor, seq_lengths: torch.Tensor, *, seq_dim: int, batch_dim: int
) -> torch.Tensor:
    _check_sequence_dims(Shape(input.shape), seq_dim, batch_dim)
    if seq_dim == batch_dim:
        raise InvalidArgumentError(None, None, f"batch_dim == seq_dim == {seq_dim}")
    steps, batch = input.shape[seq_dim], input.shape[batch_dim]
    if tuple(seq_lengths.shape) != (batch,):
        raise InvalidArgumentError(
            None, None, f"Length of seq_lengths != input.dims({batch_dim}), ({list(seq_lengths.shape)} vs. {batch})"
        )
    reversed_ = table_rows.reversed_sequences(input, seq_lengths, seq_dim, batch_dim)
    if reversed_ is not None:
        return reversed_
    if seq_lengths.is_cuda:  # a check would make the host wait
        seq_lengths = seq_lengths.clamp(0, steps)
    elif batch and (int(seq_lengths.max()) > steps or int(seq_lengths.min()) < 0):
        raise InvalidArgumentError(
            None, None, f"seq_lengths must be in [0, input.dims({seq_dim}) = {steps}], got {seq_lengths.tolist()}"
        )
    at = torch.arange(steps, device=input.device)
    ends = seq_lengths.to(torch.int64).unsqueeze(1)
    order = torch.where(at < ends, ends - 1 - at, at)
    front = input.movedim((batch_dim, seq_dim), (0, 1))
    taken = front[torch.arange(batch, device=input.device).unsqueeze(1), order]
    return taken.movedim((0, 1), (batch_dim, seq_dim))


def _check_sequence_dims(input: Shape, seq_dim: int, batch_dim: int) -> None:
    for label, dim in (("seq_dim", seq_dim), ("batch_dim", batch_dim)):
        if not 0 <= dim < len(input):
            raise InvalidArgumentError(None, None, f"{label} must be in [0, {len(input)}), the rank of {input}: {dim}")


@REVERSE_SEQUENCE.shape
def reverse_sequence_shape(input: Shape, seq_lengths: Shape, *, seq_dim: int, batch_dim: int) -> Shape:
    if input.rank is not None:
        _check_sequence_dims(input, seq_dim, batch_dim)
        (batch,) = seq_lengths.merge(Shape((input[batch_dim],)))
        at = batch_dim % len(input)
        return Shape((*input[:at], batch, *input[at + 1 :]))
    return input


@REVERSE_SEQUENCE.grad
def reverse_sequence_grad(op: Operation, g: Tensor) -> Any:
    return REVERSE_SEQUENCE(g, op.inputs[1], seq_dim=op.attr("seq_dim"), batch_dim=op.attr("batch_dim")), None


@export(v1="reverse_sequence")
def reverse_sequence(
    input: Any,
    seq_lengths: Any,
    seq_axis: int | None = None,
    batch_axis: int | None = None,
    name: str | None = None,
    seq_dim: int | None = None,
    batch_dim: int | None = None,
) -> Tensor:
    """Reverses the first `seq_lengths[i]` elements of batch entry i along `seq_axis`. The other elements stay in place."""
    if (seq_axis is not None and seq_dim is not None) or (batch_axis is not None and batch_dim is not None):
        raise ValueError(
            "Cannot specify both an argument and its older name (seq_axis and seq_dim, batch_axis and batch_dim)."
        )
    along = seq_dim if seq_axis is None else seq_axis
    if along is None:
        raise ValueError("reverse_sequence needs `seq_axis`.")
    batch = batch_dim if batch_axis is None else batch_axis
    return REVERSE_SEQUENCE(input, seq_lengths, seq_dim=along, batch_dim=0 if batch is None else batch, name=name)


@export(v2="reverse_sequence")
def reverse_sequence_v2(
    input: Any, seq_lengths: Any, seq_axis: int | None = None, batch_axis: int | None = None, name: str | None = None
) -> Tensor:
    """Reverses the first `seq_lengths[i]` elements of batch entry i along `seq_axis`. The other elements stay in place."""
    return reverse_sequence(input, seq_lengths, seq_axis, batch_axis, name)


ROLL = define(
    "Roll(input: T, shift: rank<2 host Tshift, axis: rank<2 host Taxis) -> (output: T)",
    T=ANY,
    Tshift=INDEX,
    Taxis=INDEX,
)


@ROLL.kernel
@rearranges
def roll_kernel(input: torch.Tensor, shift: Any, axis: Any) -> torch.Tensor:
    shifts = shift if type(shift) is list else [shift]
    axes = axis if type(axis) is list else [axis]
    if len(shifts) != len(axes) or type(shift) is not type(axis):
        raise InvalidArgumentError(None, None, f"shift and axis must have the same size, got {shift} and {axis}")
    if not input.ndim:
        raise InvalidArgumentError(None, None, "input must be 1-D or higher")
    for each in axes:
        if not -input.ndim <= each < input.ndim:
            raise InvalidArgumentError(
                None, None, f"axis {each} is out of range for a tensor of shape {Shape(input.shape)}"
            )
    return torch.roll(input, shifts, axes) if axes else input.clone()


@ROLL.shape
def roll_shape(input: Shape, shift: Shape, axis: Shape) -> Shape:
    shift.merge(axis)
    return input.at_least(1)


@ROLL.grad
def roll_grad(op: Operation, g: Tensor) -> Any:
    return ROLL(g, ops.negative(op.inputs[1]), op.inputs[2]), None, None


@export("roll", v1="manip.roll")
def roll(input: Any, shift: Any, axis: Any, name: str | None = None) -> Tensor:
    """Shifts the elements of `input` by `shift` positions along `axis`, with wrap-around."""
    return ROLL(input, shift, axis, name=name)


# ---- ListDiff ---------------------------------------------------------------------------------------------------

LIST_DIFF = define(
    "ListDiff(x: vector T, y: vector T) -> (out: T, idx: out_idx)", T=ANY, out_idx=one_of(*INDEX, default=dtypes.int32)
)


@LIST_DIFF.kernel
def list_diff_kernel(x: Any, y: Any, *, out_idx: Any) -> tuple[Any, torch.Tensor]:
    for label, each in (("x", x), ("y", y)):
        if each.ndim != 1:
            raise InvalidArgumentError(None, None, f"{label} should be a 1D vector, got shape {Shape(each.shape)}.")
    if isinstance(x, np.ndarray):
        gone = set(y.tolist())
        kept = np.array([i for i, item in enumerate(x.tolist()) if item not in gone], dtype=np.int64)
        return x[kept], torch.from_numpy(kept).to(torch_dtype(out_idx))
    plain = signed(x)
    if plain.is_complex() or plain.dtype is torch.bool:
        keep = ~(plain.unsqueeze(1) == signed(y)).any(1)
    else:
        keep = torch.isin(plain, signed(y), invert=True)
    kept = torch.nonzero(keep).reshape(-1)
    return plain[kept].view(x.dtype), kept.to(torch_dtype(out_idx))


@LIST_DIFF.shape
def list_diff_shape(x: Shape, y: Shape) -> tuple[Shape, Shape]:
    return Shape((None,)), Shape((None,))


@export(v1=("setdiff1d", "listdiff"))
def setdiff1d(x: Any, y: Any, index_dtype: Any = dtypes.int32, name: str | None = None) -> Any:
    """The elements of the vector `x` that are not in `y`, in order, and their positions in `x`."""
    return LIST_DIFF(x, y, out_idx=index_dtype, name=name)
