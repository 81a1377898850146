"""Slices: Slice, StridedSlice and its updates, and `Tensor.__getitem__`."""

from __future__ import annotations

import functools
import math
import operator
from typing import Any

import numpy as np
import torch

from stoker._src.base import dtypes
from stoker._src.base.dtypes import INDEX
from stoker._src.base.errors import InvalidArgumentError
from stoker._src.base.export import export
from stoker._src.base.shapes import UNKNOWN_SHAPE, Dim, Dimension, Shape
from stoker._src.graph.conversion import convert_to_tensor
from stoker._src.graph.definition import ANY, INT32, STATEFUL, VIEW, WRITES, OpDefinition, Trait, define, unregistered
from stoker._src.graph.late_binding import ops
from stoker._src.graph.scopes import name_scope
from stoker._src.graph.static_values import STATIC, Sight, constant_value, constant_value_as_shape
from stoker._src.graph.tensor import Operation, Tensor
from stoker._src.ops.array import casting, joining, shaping
from stoker._src.ops.array.broadcasting import reduce_to_inputs
from stoker._src.ops.array.constants import constant_of
from stoker._src.ops.support import rows
from stoker._src.ops.support.handles import is_resource_variable
from stoker._src.ops.support.lowering import viewed
from stoker._src.ops.support.movement import allocatable, element, itemsize, signed

builtin_slice = slice

# ---- Slice ------------------------------------------------------------------------------------------------------

SLICE = define(
    "Slice(input: T, begin: vector host Index, size: vector host Index) -> (output: T)", VIEW, T=ANY, Index=INDEX
)
SLICE.small("slice")


@SLICE.kernel
def slice_kernel(input: Any, begin: list[int], size: list[int]) -> Any:
    if not len(begin) == len(size) == input.ndim:
        raise InvalidArgumentError(
            None,
            None,
            f"Expected begin and size arguments to be 1-D tensors of size {input.ndim}, but got {begin} and {size} instead.",
        )
    cuts = []
    for axis, (start, count, extent) in enumerate(zip(begin, size, input.shape)):
        if not 0 <= start <= extent:
            raise InvalidArgumentError(None, None, f"Expected begin[{axis}] in [0, {extent}], but got {start}")
        if count == -1:
            count = extent - start
        if not 0 <= count <= extent - start:
            raise InvalidArgumentError(None, None, f"Size[{axis}] must be in [0, {extent - start}], but is {count}")
        if count != extent:
            cuts.append((axis, start, count))
    if isinstance(input, np.ndarray):
        index = [builtin_slice(None)] * input.ndim
        for axis, start, count in cuts:
            index[axis] = builtin_slice(start, start + count)
        return input[tuple(index)]
    if len(cuts) == 1:
        return input.narrow(*cuts[0])
    if cuts:
        steps, shape, first = input.stride(), list(input.shape), input.storage_offset()
        for axis, start, count in cuts:
            shape[axis] = count
            first += start * steps[axis]
        return input.as_strided(shape, steps, first)
    return input


SLICE.lower(viewed)


@SLICE.shape(values=["begin", "size"])
def slice_shape(input: Shape, begin: np.ndarray | None, size: np.ndarray | None) -> Shape:
    if size is None:
        rank = input.rank if begin is None or input.rank is not None else len(begin)
        return UNKNOWN_SHAPE if rank is None else Shape((None,) * rank)
    if begin is not None and len(begin) != len(size):
        raise InvalidArgumentError(None, None, f"begin has {len(begin)} elements and size has {len(size)}.")
    if any(count < -1 for count in size.tolist()):
        raise InvalidArgumentError(None, None, f"Invalid value in size: {size.tolist()}")
    input = input.of_rank(len(size))
    dims: list[Dim] = []
    for axis, (extent, count) in enumerate(zip(input.dims or (), size.tolist())):
        start = None if begin is None else int(begin[axis])
        if count == -1:
            dims.append(None if extent is None or start is None else extent - start)
        else:
            dims.append(int(count))
        if extent is not None and start is not None and (start < 0 or start > extent or start + max(count, 0) > extent):
            raise InvalidArgumentError(
                None,
                None,
                f"Slice of {count} from {start} does not fit dimension {axis} of size {extent} (shape {input}).",
            )
    return Shape(dims)


SLICE_OF_ROWS = unregistered("SliceOfRows(input: T, begin: Index, size: host Index) -> (output: T)", T=ANY, Index=INDEX)


@SLICE_OF_ROWS.kernel
def slice_of_rows_kernel(input: Any, begin: torch.Tensor, size: list[int]) -> Any:
    """A slice of this size of every row. Each has its own beginning."""
    if begin.shape != (len(input), len(size)) or input.ndim != len(size) + 1:
        raise InvalidArgumentError(None, None, f"begin is {Shape(begin.shape)} for slices of {Shape(input.shape)}.")
    starts = begin.numpy()
    if len(starts) and ((starts < 0) | (starts + np.array(size) > np.array(input.shape[1:]))).any():
        raise InvalidArgumentError(None, None, f"A slice of size {size} does not fit {Shape(input.shape[1:])}.")
    if isinstance(input, torch.Tensor):
        made = input.new_empty((len(input), *size))
        to, source = _bytes_of(made), _bytes_of(input)
    else:
        made = to = np.empty((len(input), *size), dtype=object)
        source = input
    for target, row, start in zip(
        to, source, starts.tolist()
    ):  # NumPy copies small parts in a fraction of torch's time
        target[...] = row[tuple([builtin_slice(first, first + count) for first, count in zip(start, size)])]
    return made


def _bytes_of(tensor: torch.Tensor) -> np.ndarray:
    """The memory of a tensor as an array of numbers of its element size."""
    widths = {1: torch.uint8, 2: torch.int16, 4: torch.int32, 8: torch.int64, 16: torch.complex128}
    return tensor.view(widths[tensor.element_size()]).numpy()


@SLICE_OF_ROWS.shape(as_shapes=["size"])
def slice_of_rows_shape(input: Shape, begin: Shape, size: Shape) -> Shape:
    if size.dims is None:
        return UNKNOWN_SHAPE
    return Shape((None if input.dims is None else input[0], *size.dims))


@SLICE.rows
def slice_rows(op: Operation, inputs: list[rows.Input]) -> list[Tensor] | None:
    begin, size = rows.numbers(inputs[1]), rows.numbers(inputs[2])
    if size is None or not inputs[0].stacked:
        return None
    if begin is None:
        return None if -1 in size else [SLICE_OF_ROWS(*(each.tensor for each in inputs))]
    return [SLICE(inputs[0].tensor, [0, *begin.tolist()], [-1, *size.tolist()])]


@SLICE.grad
def slice_grad(op: Operation, g: Any) -> Any:
    # The gradient is padded with zeros where the input was cut off.
    x, begin, _ = op.inputs
    kind = begin.dtype.base_dtype
    after = shaping.shape(x, out_type=kind) - shaping.shape(op.outputs[0], out_type=kind) - begin
    return ops.pad(g, joining.PACK([begin, after], axis=1)), None, None


@export("slice")
def slice(input_: Any, begin: Any, size: Any, name: str | None = None) -> Tensor:
    """Extracts `size[i]` elements (-1: all the rest) from `begin[i]` on along every dimension i."""
    return SLICE(input_, begin, size, name=name)


# ---- StridedSlice -----------------------------------------------------------------------------------------------

MASKS = ("begin_mask", "end_mask", "ellipsis_mask", "new_axis_mask", "shrink_axis_mask")


@functools.lru_cache(maxsize=4096)
def index_of(
    begin: tuple[Any, ...], end: tuple[Any, ...], strides: tuple[Any, ...],
    begin_mask: int, end_mask: int, ellipsis_mask: int, new_axis_mask: int, shrink_axis_mask: int,
) -> tuple[tuple[Any, ...], bool]:  # fmt: skip
    """The Python index (integers, slices, None, Ellipsis) for a StridedSlice's arguments, and whether any slice runs
    backwards."""
    if not len(begin) == len(end) == len(strides):
        raise InvalidArgumentError(
            None,
            None,
            f"Expected begin, end, and strides to be 1D equal size tensors, but got {list(begin)}, {list(end)}, and {list(strides)} instead.",
        )
    if ellipsis_mask & (ellipsis_mask - 1):
        raise InvalidArgumentError(None, None, "Multiple ellipses in slice spec not allowed")
    items: list[Any] = []
    backwards = False
    for i, (first, last, step) in enumerate(zip(begin, end, strides)):
        bit = 1 << i
        if ellipsis_mask & bit:
            items.append(Ellipsis)
        elif new_axis_mask & bit:
            items.append(None)
        elif shrink_axis_mask & bit:
            if step is not None and step <= 0:
                raise InvalidArgumentError(
                    None, None, f"only stride 1 allowed on non-range indexing, got strides[{i}] = {step}"
                )
            items.append(first)
        else:
            if step == 0:
                raise InvalidArgumentError(None, None, f"strides[{i}] must be non-zero")
            if step is not None and step < 0:
                backwards = True
            items.append(
                builtin_slice(
                    None if begin_mask & bit else first, None if end_mask & bit else last, None if step == 1 else step
                )
            )
    return tuple(items), backwards


def _forwards(items: tuple[Any, ...], shape: Any) -> tuple[tuple[Any, ...], list[int]]:
    """The index with every backward slice reversed, and the dimensions of the result to flip, because torch has no negative
    strides."""
    used = sum(item is not None and item is not Ellipsis for item in items)
    resolved: list[Any] = []
    flips: list[int] = []
    source = target = 0
    for item in items:
        if item is Ellipsis:
            skipped = len(shape) - used
            source, target = source + skipped, target + skipped
        elif item is None:
            target += 1
        elif isinstance(item, builtin_slice):
            walk = range(*item.indices(shape[source])) if source < len(shape) else range(0)
            if item.step is not None and item.step < 0:
                item = builtin_slice(walk[-1], walk[0] + 1, -item.step) if len(walk) else builtin_slice(0, 0)
                flips.append(target)
            source, target = source + 1, target + 1
        else:
            source += 1
        resolved.append(item)
    return tuple(resolved), flips


def _out_of_bounds(items: tuple[Any, ...], shape: Any) -> InvalidArgumentError:
    used = sum(item is not None and item is not Ellipsis for item in items)
    if used > len(shape):
        return InvalidArgumentError(
            None, None, f"Index out of range using input dim {len(shape)}; input has only {len(shape)} dims"
        )
    at = 0
    for item in items:
        if item is Ellipsis:
            at += len(shape) - used
        elif item is not None:
            if not isinstance(item, builtin_slice) and not -shape[at] <= item < shape[at]:
                return InvalidArgumentError(
                    None, None, f"slice index {item} of dimension {at} out of bounds (size {shape[at]})."
                )
            at += 1
    return InvalidArgumentError(None, None, f"The index {items} does not fit shape {Shape(shape)}.")


def _strided(name: str, signature: str, traits: Trait = VIEW) -> OpDefinition:
    return define(
        f"{name}{signature}",
        traits,
        T=ANY,
        Index=(dtypes.int16, *INDEX) if name == "StridedSlice" else INDEX,
        **dict.fromkeys(MASKS, INT32(0)),
    )


_BOUNDS = "begin: vector host Index, end: vector host Index, strides: vector host Index"
_LATE_BOUNDS = _BOUNDS.replace("vector", "any/vector")
_MASKS = ("begin_mask", "end_mask", "ellipsis_mask", "new_axis_mask", "shrink_axis_mask")


def _masks(op: Operation) -> list[int]:
    return [op.attrs[name] for name in _MASKS]


STRIDED_SLICE = _strided("StridedSlice", f"(input: T, {_BOUNDS}) -> (output: T)")
STRIDED_SLICE.small("strided_slice", _masks)


@STRIDED_SLICE.together(lambda op: tuple(op.attrs[name] for name in MASKS) if op.outputs[0].dtype.is_integer else None)
def strided_slice_many(rows: list[Any], attributes: list[dict[str, int]]) -> list[Any] | None:
    """One element or one column of each of many tensors: what feature columns take from sparse indices and shapes."""
    masks, results = attributes[0], []
    known: list[Any] = []
    axis = at = 0
    for tensor, *bounds in rows:
        if bounds != known:
            known = bounds
            items, _ = index_of(*map(tuple, bounds), *[masks[name] for name in MASKS])
            numbers = [i for i, item in enumerate(items) if type(item) is int]
            if len(numbers) != 1 or any(
                item != builtin_slice(None) for item in (*items[: numbers[0]], *items[numbers[0] + 1 :])
            ):
                return None
            axis, at = numbers[0], items[numbers[0]]
        results.append(tensor.select(axis, at) if axis else tensor[at])
    return results


@STRIDED_SLICE.kernel
def strided_slice_kernel(
    input: Any, begin: list[int], end: list[int], strides: list[int],
    *, begin_mask: int, end_mask: int, ellipsis_mask: int, new_axis_mask: int, shrink_axis_mask: int,
) -> Any:  # fmt: skip
    items, backwards = index_of(
        tuple(begin), tuple(end), tuple(strides), begin_mask, end_mask, ellipsis_mask, new_axis_mask, shrink_axis_mask
    )
    try:
        if isinstance(input, np.ndarray):
            return element(input[items])
        if not backwards:
            return input[items]
        items, flips = _forwards(items, input.shape)
        return signed(input)[items].flip(flips).view(input.dtype)
    except IndexError:
        raise _out_of_bounds(items, input.shape) from None


STRIDED_SLICE.lower(viewed)


def _slices_padded_sizes(op: Operation, padded: list[bool], shape_of: Any) -> list[bool] | None:
    return [True] if op._inputs[0].op.definition.traits & Trait.OF_SHAPES and not any(padded[1:]) else None


STRIDED_SLICE.planning.padded = _slices_padded_sizes


@STRIDED_SLICE.shape
def strided_slice_shape(
    input: Shape, begin: Shape, end: Shape, strides: Shape,
    *, op: Operation, begin_mask: int, end_mask: int, ellipsis_mask: int, new_axis_mask: int, shrink_axis_mask: int,
) -> Shape:  # fmt: skip
    known = [constant_value(tensor, partial=True) for tensor in op._inputs[1:4]]
    given = next((each for each in known if each is not None), None)
    if given is None or input.dims is None:
        return UNKNOWN_SHAPE
    numbers = [[None] * len(given) if each is None else each.tolist() for each in known]
    # Unknown numbers are represented by 0 or 1; `sure` marks which numbers are real.
    parts = [tuple(int(i == 2) if each is None else int(each) for each in row) for i, row in enumerate(numbers)]
    items, _ = index_of(*parts, begin_mask, end_mask, ellipsis_mask, new_axis_mask, shrink_axis_mask)
    sure = [
        (first is not None or begin_mask >> i & 1)
        and (last is not None or (end_mask | shrink_axis_mask) >> i & 1)
        and step is not None
        for i, (first, last, step) in enumerate(zip(*numbers))
    ]
    return Shape(_sliced_dims(input.dims, items, sure))


def _sliced_dims(dims: tuple[Dim, ...], items: tuple[Any, ...], sure: list[Any]) -> list[Dim]:
    """The sizes that remain. `sure[i]` says whether all numbers of item i are known."""
    used = sum(item is not None and item is not Ellipsis for item in items)
    if used > len(dims):
        raise _out_of_bounds(items, [0 if size is None else size for size in dims])
    result: list[Dim] = []
    at = 0
    for item, known in zip(items, sure):
        if item is Ellipsis:
            skipped = len(dims) - used
            result.extend(dims[at : at + skipped])
            at += skipped
        elif item is not None and not isinstance(item, builtin_slice):
            size = dims[at]
            if known and size is not None and not -size <= item < size:
                raise InvalidArgumentError(
                    None, None, f"slice index {item} of dimension {at} out of bounds (size {size})."
                )
            at += 1
        elif item is None:
            result.append(1)
        else:
            result.append(_sliced_size(dims[at], item) if known else None)
            at += 1
    return [*result, *dims[at:]]


def _sliced_size(size: Dim, item: Any) -> Dim:
    if size is not None:
        return len(range(*item.indices(size)))
    if (
        item.start is not None
        and item.stop is not None
        and item.step in (None, 1)
        and item.stop >= 0
        and item.stop <= item.start >= 0
    ):
        return 0
    return None


@STRIDED_SLICE.rows
def strided_slice_rows(op: Operation, inputs: list[rows.Input]) -> list[Tensor] | None:
    """Adds a leading item that takes all rows."""
    bounds = [rows.numbers(each) for each in inputs[1:]]
    if any(each is None for each in bounds) or not inputs[0].stacked:
        return None
    begin, end, strides = ([first, *each.tolist()] for first, each in zip((0, 0, 1), bounds) if each is not None)
    masks = {name: 2 * value for name, value in op.attrs.items() if name.endswith("_mask")}
    masks["begin_mask"] += 1
    masks["end_mask"] += 1
    return [STRIDED_SLICE(inputs[0].tensor, begin, end, strides, **masks)]


@STRIDED_SLICE.grad
def strided_slice_grad(op: Operation, g: Any) -> Any:
    x, begin, end, strides = op.inputs
    kind = begin.dtype.base_dtype
    if kind is dtypes.int16:
        begin, end, strides = (casting.cast(each, dtypes.int32) for each in (begin, end, strides))
        kind = dtypes.int32
    masks = {name: op.attr(name) for name in MASKS}
    return STRIDED_SLICE_GRAD(shaping.shape(x, out_type=kind), begin, end, strides, g, **masks), None, None, None


STRIDED_SLICE_GRAD = _strided("StridedSliceGrad", f"(shape: host Index, {_BOUNDS}, dy: T) -> (output: T)", Trait.NONE)
STRIDED_SLICE_GRAD.small("strided_slice_grad", _masks)


def _write(target: Any, items: tuple[Any, ...], backwards: bool, value: Any, *, broadcast: bool = False) -> None:
    """Sets `target[items] = value`. With `broadcast`, any value may be broadcast to the slice, else only a single element."""
    try:
        if isinstance(target, np.ndarray):
            place, wanted = target[items].shape if isinstance(target[items], np.ndarray) else (), value.shape
            if 0 in place:
                return
            if place != wanted and wanted != ():
                if not broadcast:
                    raise _not_assignable(place, wanted)
                value = _spread(place, value)
            target[items] = value if value.ndim else value[()]
            return
        if backwards:
            items, flips = _forwards(items, target.shape)
            if broadcast and target[items].numel():
                value = _spread(target[items].shape, value)
            value = signed(value).flip(flips).view(value.dtype) if value.ndim else value
        place = target[items]
    except IndexError:
        raise _out_of_bounds(items, target.shape) from None
    if not place.numel():
        return
    if broadcast:
        value = _spread(place.shape, value)
    if place.shape != value.shape and value.ndim:
        raise _not_assignable(place.shape, value.shape)
    place.copy_(value)


def _spread(place: Any, value: Any) -> Any:
    """Broadcasts `value` to the shape of its slice and drops surplus leading dimensions of size 1."""
    sizes = value.shape[max(0, value.ndim - len(place)) :]
    repeats = all(size in (1, wanted) for size, wanted in zip(reversed(sizes), reversed(place)))
    if not repeats or any(size != 1 for size in value.shape[: value.ndim - len(sizes)]):
        raise _not_assignable(place, value.shape)
    value = value.reshape(sizes)
    return np.broadcast_to(value, place) if isinstance(value, np.ndarray) else value.expand(tuple(place))


def _not_assignable(place: Any, found: Any) -> InvalidArgumentError:
    return InvalidArgumentError(
        None, None, f"shape of value {Shape(found)} does not match the shape {Shape(place)} of the slice"
    )


@STRIDED_SLICE_GRAD.kernel
def strided_slice_grad_kernel(
    shape: list[int], begin: list[int], end: list[int], strides: list[int], dy: Any,
    *, begin_mask: int, end_mask: int, ellipsis_mask: int, new_axis_mask: int, shrink_axis_mask: int,
) -> Any:  # fmt: skip
    items, backwards = index_of(
        tuple(begin), tuple(end), tuple(strides), begin_mask, end_mask, ellipsis_mask, new_axis_mask, shrink_axis_mask
    )
    shape = allocatable(shape, itemsize(dy))
    result = np.full(shape, b"", dtype=object) if isinstance(dy, np.ndarray) else dy.new_zeros(shape)
    try:
        place = np.shape(result[_forwards(items, shape)[0] if backwards else items])
    except IndexError:
        raise _out_of_bounds(items, shape) from None
    if tuple(place) != tuple(dy.shape):
        raise InvalidArgumentError(None, None, f"shape of dy was {Shape(dy.shape)} instead of {Shape(place)}")
    _write(result, items, backwards, dy)
    return result


def _sliced_part(op: Operation, plan: Any) -> tuple[int, Any] | None:
    shape, bounds = plan.shape_of(op.outputs[0]), [plan.known_value(each) for each in op._inputs[1:4]]
    if not shape.known or any(each is None for each in bounds):
        return None
    masks = [op.attrs[name] for name in MASKS]
    try:
        items, backwards = index_of(*(tuple(each.tolist()) for each in bounds if each is not None), *masks)
        place = np.broadcast_to(np.zeros(()), shape.dims)[items].shape
    except (IndexError, InvalidArgumentError):
        return None  # the kernel says what is wrong
    return None if backwards or place != plan.shape_of(op._inputs[4]).dims else (4, items)


STRIDED_SLICE_GRAD.planning.part = _sliced_part


@STRIDED_SLICE_GRAD.lower
def strided_slice_grad_lower(
    build: Any, op: Operation, shape: list[int], begin: list[int], end: list[int], strides: list[int], dy: Any
) -> Any:
    """Zeros, into which the gradient is copied where the slice was."""
    masks = [op.attr(name) for name in MASKS]
    items, backwards = index_of(tuple(begin), tuple(end), tuple(strides), *masks)
    if backwards:
        return None
    try:
        place = torch.empty(shape, device="meta")[items]
    except (IndexError, RuntimeError):
        return None  # the run raises the error
    if tuple(place.shape) != dy.shape:
        return None
    if place.numel() == dy.size == math.prod(shape):
        return build.reshape(dy, tuple(shape))
    return build.spread(dy, tuple(shape), int(place.storage_offset()), list(place.stride()))


@STRIDED_SLICE_GRAD.shape(as_shapes=["shape"])
def strided_slice_grad_shape(shape: Shape, begin: Shape, end: Shape, strides: Shape, dy: Shape) -> Shape:
    return shape


@STRIDED_SLICE_GRAD.grad
def strided_slice_grad_grad(op: Operation, g: Tensor) -> Any:
    masks = {name: op.attr(name) for name in MASKS}
    return None, None, None, None, STRIDED_SLICE(g, *op.inputs[1:4], **masks)


TENSOR_STRIDED_SLICE_UPDATE = _strided(
    "TensorStridedSliceUpdate", f"(input: T, {_LATE_BOUNDS}, value: T) -> (output: T)", Trait.NONE
)


@TENSOR_STRIDED_SLICE_UPDATE.kernel
def tensor_strided_slice_update_kernel(
    input: Any, begin: list[int], end: list[int], strides: list[int], value: Any,
    *, begin_mask: int, end_mask: int, ellipsis_mask: int, new_axis_mask: int, shrink_axis_mask: int,
) -> Any:  # fmt: skip
    items, backwards = index_of(
        tuple(begin), tuple(end), tuple(strides), begin_mask, end_mask, ellipsis_mask, new_axis_mask, shrink_axis_mask
    )
    result = input.copy() if isinstance(input, np.ndarray) else input.clone()
    _write(result, items, backwards, value, broadcast=True)
    return result


@TENSOR_STRIDED_SLICE_UPDATE.shape
def tensor_strided_slice_update_shape(input: Shape, begin: Shape, end: Shape, strides: Shape, value: Shape) -> Shape:
    return input


@TENSOR_STRIDED_SLICE_UPDATE.grad
def tensor_strided_slice_update_grad(op: Operation, g: Tensor) -> Any:
    masks = {name: op.attr(name) for name in MASKS}
    _, begin, end, strides, value = op.inputs
    of_value = STRIDED_SLICE(g, begin, end, strides, **masks)
    blank = shaping.zeros_like(of_value)
    of_value = reduce_to_inputs(blank, value, None, of_value)[1]
    return TENSOR_STRIDED_SLICE_UPDATE(g, begin, end, strides, blank, **masks), None, None, None, of_value


STRIDED_SLICE_ASSIGN = _strided(
    "StridedSliceAssign", f"(ref: Ref(T), {_LATE_BOUNDS}, value: T) -> (output_ref: Ref(T))", WRITES | STATEFUL
)
RESOURCE_STRIDED_SLICE_ASSIGN = _strided(
    "ResourceStridedSliceAssign", f"(ref: resource, {_LATE_BOUNDS}, value: T) -> ()", WRITES | STATEFUL
)


@STRIDED_SLICE_ASSIGN.kernel
@RESOURCE_STRIDED_SLICE_ASSIGN.kernel
def strided_slice_assign_kernel(
    ref: Any, begin: list[int], end: list[int], strides: list[int], value: Any,
    *, begin_mask: int, end_mask: int, ellipsis_mask: int, new_axis_mask: int, shrink_axis_mask: int,
) -> Any:  # fmt: skip
    items, backwards = index_of(
        tuple(begin), tuple(end), tuple(strides), begin_mask, end_mask, ellipsis_mask, new_axis_mask, shrink_axis_mask
    )
    _write(ref.read(), items, backwards, value, broadcast=True)
    return ref


@STRIDED_SLICE_ASSIGN.shape
def strided_slice_assign_shape(ref: Shape, begin: Shape, end: Shape, strides: Shape, value: Shape) -> Shape:
    return ref


# ---- what a slice of a shape is ---------------------------------------------------------------------------------


def _partial_sizes(op: Operation, sight: Sight = STATIC) -> np.ndarray | None:
    """A slice of a size vector, with None for unknown sizes; None if nothing is known."""
    source = op._inputs[0]
    if source.dtype.base_dtype not in INDEX or source.static_shape.rank != 1:
        return None
    if source.op.type == "StridedSlice" and source.op._inputs[0].op.type == "StridedSlice":
        return None  # a chain of slices gives little information and would be walked repeatedly
    bounds = [each for tensor in op._inputs[1:4] if (each := sight.value_of(tensor)) is not None]
    if len(bounds) < 3:
        return None
    whole = sight.value_of(source)
    if whole is None:
        known = constant_value_as_shape(source, sight)
        if known.dims is None:
            return None
        whole = np.array(known.dims, dtype=object)
    try:
        items, _ = index_of(*(tuple(each.tolist()) for each in bounds), *(op.attrs[name] for name in MASKS))
        found = whole[items]
    except (IndexError, InvalidArgumentError):
        return None
    result = np.empty(np.shape(found), dtype=object)
    result[...] = found
    return result


@STRIDED_SLICE.static_value
def sliced_value(op: Operation) -> np.ndarray | None:
    sizes = _partial_sizes(op)
    if sizes is None:
        return _constant_slice(op)
    return None if any(size is None for size in sizes.reshape(-1)) else sizes.astype(op.outputs[0].dtype.as_numpy_dtype)


def _constant_slice(op: Operation) -> np.ndarray | None:
    """A slice of a constant that is not a size vector."""
    if any(tensor.op.type != "Const" for tensor in op._inputs):
        return None
    array_, *bounds = (tensor.op.attrs["value"] for tensor in op._inputs)
    if array_.size > 4096:
        return None
    try:
        items, _ = index_of(*(tuple(each.tolist()) for each in bounds), *(op.attrs[name] for name in MASKS))
        return np.asarray(array_[items], dtype=array_.dtype)
    except (IndexError, InvalidArgumentError):
        return None


@STRIDED_SLICE.spelled_shape
def sliced_shape(op: Operation, index: int, sight: Sight) -> Shape:
    sizes = _partial_sizes(op, sight)
    if sizes is None or sizes.ndim != 1:
        length = op.outputs[0].static_shape.of_rank(1)[0]
        return UNKNOWN_SHAPE if length is None else Shape((None,) * length)
    return Shape(None if size is None or size < 0 else int(size) for size in sizes)


# ---- tf.strided_slice and x[...] --------------------------------------------------------------------------------


@export("strided_slice")
def strided_slice(
    input_: Any,
    begin: Any,
    end: Any,
    strides: Any = None,
    begin_mask: int = 0,
    end_mask: int = 0,
    ellipsis_mask: int = 0,
    new_axis_mask: int = 0,
    shrink_axis_mask: int = 0,
    var: Any = None,
    name: str | None = None,
) -> Tensor:
    """Extracts the slice `input_[begin:end:strides]`. Bits of the masks mark bounds to ignore, new axes and dropped axes.

    With `var`, the variable that `input_` was read from, the result has a method `assign` that writes to the slice.
    """
    if strides is None:
        strides = shaping.ones_like(begin)
    masks = {
        "begin_mask": begin_mask,
        "end_mask": end_mask,
        "ellipsis_mask": ellipsis_mask,
        "new_axis_mask": new_axis_mask,
        "shrink_axis_mask": shrink_axis_mask,
    }
    result = STRIDED_SLICE(input_, begin, end, strides, **masks, name=name)
    if var is not None:
        result.assign = _slice_assignment(var, begin, end, strides, masks, name)
    return result


def _slice_assignment(
    var: Any, begin: Any, end: Any, strides: Any, masks: dict[str, int], slice_name: str | None
) -> Any:
    def assign(value: Any, name: str | None = None) -> Any:
        """Assigns `value` to this slice of the variable and returns the variable's updated value."""
        if name is None and slice_name is not None:
            name = f"{slice_name}_assign"
        as_slice = getattr(var, "_strided_slice_assign", None)
        if as_slice is not None:
            return as_slice(begin=begin, end=end, strides=strides, value=value, name=name, **masks)
        kind = var.dtype.base_dtype
        if is_resource_variable(var):
            write = RESOURCE_STRIDED_SLICE_ASSIGN(
                var.handle, begin, end, strides, convert_to_tensor(value, kind), **masks, name=name
            )
            return var._after(write, True)
        reference = var._ref() if hasattr(var, "_ref") else var
        return STRIDED_SLICE_ASSIGN(reference, begin, end, strides, value, **masks, name=name)

    return assign


_WRONG_INDEX = "Only integers, slices (`:`), ellipsis (`...`), tf.newaxis (`None`) and scalar tf.int32/tf.int64 tensors are valid indices"


def _bound(index: Any) -> Any:
    """An index as a Python integer or a scalar tensor.

    Raises:
        TypeError: it is neither.
    """
    if type(index) is int:
        return index
    if isinstance(index, Dimension):
        if index.value is None:
            raise TypeError(f"{_WRONG_INDEX}, got {index!r}")
        return index.value
    if not isinstance(index, Tensor) and hasattr(index, "_as_graph_element"):
        index = convert_to_tensor(index)
    if isinstance(index, Tensor):
        if index.dtype.base_dtype not in (dtypes.int16, *INDEX) or index.static_shape.rank not in (None, 0):
            raise TypeError(f"{_WRONG_INDEX}, got {index!r}")
        if getattr(index, "is_eager", False):
            return int(index)  # type: ignore[call-overload]
        return index
    try:
        if isinstance(index, (bool, np.bool_)):
            raise TypeError("a truth value")
        return operator.index(index)
    except TypeError:
        raise TypeError(f"{_WRONG_INDEX}, got {index!r}") from None


def _is_mask(key: Any) -> bool:
    if isinstance(key, Tensor):
        return key.dtype.base_dtype is dtypes.bool_
    return isinstance(key, (bool, np.bool_)) or (isinstance(key, np.ndarray) and key.dtype == np.bool_)


def slice_helper(tensor: Any, key: Any, var: Any = None) -> Any:
    """Implements `tensor[key]`: integers, slices, None, Ellipsis and scalar integer tensors, or one boolean mask.

    Raises:
        TypeError: an index of another kind.
    """
    if _is_mask(key):
        return ops.boolean_mask(tensor, key)
    begin: list[Any] = []
    end: list[Any] = []
    strides: list[Any] = []
    begin_mask = end_mask = ellipsis_mask = new_axis_mask = shrink_axis_mask = 0
    for i, item in enumerate(key if isinstance(key, (tuple, list)) else (key,)):
        bit = 1 << i
        if isinstance(item, builtin_slice):
            start, stop, step = item.start, item.stop, item.step
            if start is None:
                begin.append(0)
                begin_mask |= bit
            else:
                begin.append(_bound(start))
            if stop is None:
                end.append(0)
                end_mask |= bit
            else:
                end.append(_bound(stop))
            strides.append(1 if step is None else _bound(step))
        elif item is Ellipsis:
            begin.append(0)
            end.append(0)
            strides.append(1)
            ellipsis_mask |= bit
        elif item is None:
            begin.append(0)
            end.append(0)
            strides.append(1)
            new_axis_mask |= bit
        else:
            at = _bound(item)
            begin.append(at)
            end.append(at + 1)
            strides.append(1)
            shrink_axis_mask |= bit
    with name_scope(None, "strided_slice", [tensor]) as scope:
        bounds = _vectors(begin, end, strides)
        masks = (begin_mask, end_mask, ellipsis_mask, new_axis_mask, shrink_axis_mask)
        return strided_slice(tensor, *bounds, *masks, var=var, name=scope)


def _vectors(begin: list[Any], end: list[Any], strides: list[Any]) -> tuple[Any, Any, Any]:
    tensors = [each for each in (*begin, *end, *strides) if isinstance(each, Tensor)]
    wide = any(tensor.dtype.base_dtype is dtypes.int64 for tensor in tensors) or any(
        type(each) is int and not -(1 << 31) <= each < 1 << 31 for each in (*begin, *end, *strides)
    )
    kind, numpy_kind = (dtypes.int64, np.int64) if wide else (dtypes.int32, np.int32)
    if not tensors:
        first = constant_of(np.array(begin, numpy_kind), kind, "stack")
        last = constant_of(np.array(end, numpy_kind), kind, "stack_1")
        return first, last, constant_of(np.array(strides, numpy_kind), kind, "stack_2")
    packed: list[Any] = []
    for position, parts in enumerate((begin, end, strides)):
        label = "stack" if position == 0 else f"stack_{position}"
        if any(isinstance(part, Tensor) for part in parts):
            parts = [casting.cast(part, kind) if isinstance(part, Tensor) else part for part in parts]
            packed.append(convert_to_tensor(parts, kind, label))
        else:
            packed.append(constant_of(np.array(parts, numpy_kind), kind, label))
    return packed[0], packed[1], packed[2]


Tensor.__getitem__ = slice_helper
