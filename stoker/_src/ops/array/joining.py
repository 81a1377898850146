"""Joining and splitting: stack, unstack, concat, split, tile."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from stoker._src.base import dtypes, nest
from stoker._src.base.dtypes import INDEX, DType
from stoker._src.base.errors import InvalidArgumentError
from stoker._src.base.export import export
from stoker._src.base.shapes import UNKNOWN_SHAPE, Dim, Shape
from stoker._src.graph import context
from stoker._src.graph.conversion import convert_to_tensor, dtype_of, is_tensor, register_tensor_conversion_function
from stoker._src.graph.definition import ANY, INT, INT32, SHAPE, VIEW, define, one_of
from stoker._src.graph.late_binding import ops
from stoker._src.graph.scopes import name_scope
from stoker._src.graph.static_values import Sight, constant_value, constant_value_as_shape
from stoker._src.graph.tensor import Operation, Tensor
from stoker._src.ops.array import casting, shaping
from stoker._src.ops.array.shaping import identity
from stoker._src.ops.support import rows
from stoker._src.ops.support.dispatching import dispatched
from stoker._src.ops.support.lowering import viewed
from stoker._src.ops.support.movement import allocatable, itemsize, rearranges

# ---- Pack, Unpack -----------------------------------------------------------------------------------------------

PACK = define("Pack(values: N * T) -> (output: T)", N=INT(minimum=1), T=ANY, axis=INT32(0))
PACK.small("pack", lambda op: [op.attrs["axis"]])


@PACK.kernel
def pack_kernel(values: list[Any], *, axis: int) -> Any:
    if isinstance(values[0], torch.Tensor):
        return torch.stack(values, axis)
    if isinstance(values[0], np.ndarray):
        if len(values) == 1 and axis in (0, -1) and not values[0].ndim:
            return values[0].reshape(1).copy()
        if axis not in (0, -1) or any(value.ndim for value in values):
            return np.stack(values, axis)
        values = [value.item() for value in values]  # single strings, for which `stack` takes longer
    packed = np.empty(len(values), dtype=object)  # variants, which are scalars
    for i, value in enumerate(values):
        packed[i] = value
    return packed


@PACK.shape
def pack_shape(values: list[Shape], *, axis: int) -> Shape:
    merged = UNKNOWN_SHAPE
    for each in values:
        merged = merged.merge(each)
    if merged.dims is None:
        return UNKNOWN_SHAPE
    axis = merged.normalize_axis(axis, extra=1)
    return Shape((*merged.dims[:axis], len(values), *merged.dims[axis:]))


PACK.of_numbers(lambda op: op._inputs[0].dtype.is_integer and op.outputs[0].static_shape.rank == 1)


@PACK.lower
def pack_lower(build: Any, op: Operation, values: list[Any]) -> Any:
    axis = op.attr("axis") % (len(values[0].shape) + 1)
    if any(value.shape != values[0].shape for value in values):
        return None
    shape = (*values[0].shape[:axis], 1, *values[0].shape[axis:])
    return build.concat([build.reshape(value, shape) for value in values], axis)


@PACK.spelled_shape
def packed_shape(op: Operation, index: int, sight: Sight) -> Shape:
    sizes = [sight.value_of(tensor) for tensor in op._inputs]
    return Shape(None if size is None or size < 0 else int(size) for size in sizes)


@PACK.rows
def pack_rows(op: Operation, inputs: list[rows.Input]) -> list[Tensor] | None:
    axis = op.attrs["axis"]
    if not all(each.stacked for each in inputs):
        return None
    return rows.again(op, [each.tensor for each in inputs], axis=axis + 1 if axis >= 0 else axis)


@PACK.grad
def pack_grad(op: Operation, g: Tensor) -> list[Tensor]:
    return UNPACK(g, num=len(op.inputs), axis=op.attr("axis"))


@export("stack", v1="pack")
@dispatched
def stack(values: Any, axis: int = 0, name: str = "stack") -> Tensor:
    """Stacks tensors of the same shape along a new dimension at `axis`.

    Raises:
        ValueError: `axis` is out of range.
    """
    if axis == 0:
        try:  # a list of plain numbers becomes one constant, as in TensorFlow
            return convert_to_tensor(values, name=name)
        except (TypeError, ValueError):
            pass
    values = list(values) if not isinstance(values, (list, tuple)) else values
    rank = convert_to_tensor(values[0], name=name).static_shape.rank if values else None
    if rank is not None and not -rank - 1 <= axis <= rank:
        raise ValueError(f"Argument `axis` = {axis} not in range [{-rank - 1}, {rank + 1})")
    return PACK(values, axis=axis, name=name)


@export("parallel_stack")
def parallel_stack(values: Any, name: str = "parallel_stack") -> Tensor:
    """Stacks tensors of the same known shape along a new first dimension."""
    if context.executing_eagerly():
        raise RuntimeError("tf.parallel_stack() is not compatible with eager execution.")
    if not isinstance(values, (list, tuple)):
        raise TypeError(f"Expected list for 'values' argument to 'ParallelConcat' Op, not {values!r}.")
    if not values:
        raise ValueError("tf.parallel_stack() needs at least one tensor.")
    with name_scope(name, "parallel_stack", values):
        first = convert_to_tensor(values[0])
        known = first.static_shape
        rows = [shaping.expand_dims(value, 0) for value in values]
        return PARALLEL_CONCAT(rows, shape=Shape((len(values), *known)))


PARALLEL_CONCAT = define("ParallelConcat(values: N * T) -> (output: T)", N=INT(minimum=1), T=ANY, shape=SHAPE)


@PARALLEL_CONCAT.kernel
def parallel_concat_kernel(values: list[Any], *, shape: Shape) -> Any:
    if len(values) > shape[0]:
        raise InvalidArgumentError(
            None, None, f"ParallelConcat: {len(values)} values for the {shape[0]} rows of {shape}"
        )
    for value in values:
        if tuple(value.shape) != (1, *shape[1:]):
            raise InvalidArgumentError(
                None, None, f"ParallelConcat: update shape doesn't match: {Shape(value.shape)} is not a row of {shape}"
            )
    return concat_kernel(values, 0)


@PARALLEL_CONCAT.shape
def parallel_concat_shape(values: list[Shape], *, shape: Shape) -> Shape:
    if not shape.known:
        raise InvalidArgumentError(None, None, f"All input shapes must be fully defined: shape {shape}")
    for value in values:
        Shape((1, *shape[1:])).merge(value)
    return shape


UNPACK = define("Unpack(value: T) -> (output: num * T)", VIEW, num=INT(minimum=0), T=ANY, axis=INT32(0))
UNPACK.small("unpack", lambda op: [op.attrs["axis"]])


@UNPACK.kernel
def unpack_kernel(value: Any, *, num: int, axis: int) -> Any:
    if not -value.ndim <= axis < value.ndim:
        raise InvalidArgumentError(None, None, f"axis = {axis} not in [{-value.ndim}, {value.ndim})")
    if value.shape[axis] != num:
        raise InvalidArgumentError(
            None, None, f"Input shape axis {axis} must equal {num}, got shape {Shape(value.shape)}"
        )
    if isinstance(value, np.ndarray):
        parts = [part.squeeze(axis) for part in np.split(value, max(num, 1), axis)][:num]
        return [part if part.ndim or isinstance(part.item(), bytes) else part.item() for part in parts]
    return value.unbind(axis)


UNPACK.lower(viewed)


@UNPACK.shape
def unpack_shape(value: Shape, *, num: int, axis: int) -> list[Shape]:
    if value.dims is None:
        return [UNKNOWN_SHAPE] * num
    at = value.normalize_axis(axis)
    if value.dims[at] not in (None, num):
        raise InvalidArgumentError(
            None, None, f"Dimension must be {num} but is {value.dims[at]}: cannot unstack {value} along {axis}."
        )
    return [Shape(value.dims[:at] + value.dims[at + 1 :])] * num


@UNPACK.grad
def unpack_grad(op: Operation, *gs: Tensor) -> Tensor:
    return PACK(list(gs), axis=op.attr("axis"))


@UNPACK.static_value
def unpacked_sizes(op: Operation) -> Any:
    """The statically known sizes in `unstack(shape(x))`."""
    source = op._inputs[0]
    if source.dtype.base_dtype not in INDEX or source.static_shape.rank != 1:
        return None
    known = constant_value_as_shape(source)
    if known.dims is None:
        return None
    kind = source.dtype.as_numpy_dtype
    return [None if size is None else np.array(size, kind) for size in known.dims]


@export("unstack", v1="unpack")
def unstack(value: Any, num: int | None = None, axis: int = 0, name: str = "unstack") -> list[Tensor]:
    """Splits `value` into a list of its slices along `axis`.

    Raises:
        ValueError: `axis` is out of range, or the number of slices is neither known nor given.
    """
    value = convert_to_tensor(value)
    if num is None:
        known = value.static_shape
        if known.rank is not None:
            if not -len(known) <= axis < len(known):
                raise ValueError(f"Argument `axis` = {axis} not in range [{-len(known)}, {len(known)})")
            num = known[axis]
        if num is None:
            raise ValueError(f"Cannot infer argument `num` from shape {value.shape}")
    return UNPACK(value, num=num, axis=axis, name=name)


def _packed(value: Any, dtype: DType | None = None, name: str | None = None, as_ref: bool = False) -> Any:
    """Converts a list that holds tensors (at any depth) to one tensor."""
    if not _holds_tensors(value):
        return NotImplemented
    found = next((found for item in _leaves(value) if is_tensor(item) and (found := dtype_of(item)) is not None), None)
    if dtype is not None and found is not dtype:
        value = nest.map_structure(lambda item: casting.cast(item, dtype) if is_tensor(item) else item, value)
        found = dtype
    return _packed_level(value, found, name or "packed")


def _packed_level(items: Any, dtype: DType | None, name: str) -> Any:
    """Stacks one level of nested lists into a tensor; returns it unchanged if it holds no tensor. Plain items are named by position."""
    with name_scope(name) as scope:
        parts = [
            _packed_level(item, dtype, str(i)) if isinstance(item, (list, tuple)) else item
            for i, item in enumerate(items)
        ]
        if not any(is_tensor(part) for part in parts):
            return items
        parts = [convert_to_tensor(part, None if is_tensor(part) else dtype, str(i)) for i, part in enumerate(parts)]
        return PACK(parts, name=scope)


def _leaves(value: Any) -> Any:
    for item in value:
        if isinstance(item, (list, tuple)):
            yield from _leaves(item)
        else:
            yield item


def _holds_tensors(value: Any) -> bool:
    return any(is_tensor(item) for item in _leaves(value))


register_tensor_conversion_function((list, tuple), _packed, 99)

# ---- ConcatV2, Concat, ConcatOffset -----------------------------------------------------------------------------

CONCAT_V2 = define(
    "ConcatV2(values: rank>0 N * T, axis: scalar* host Tidx) -> (output: T)",
    N=INT(minimum=2),
    T=ANY,
    Tidx=one_of(*INDEX, default=dtypes.int32),
)
CONCAT_V2.small("concat")


@CONCAT_V2.lower
def concat_lower(build: Any, op: Operation, values: list[Any], axis: int) -> Any:
    return build.concat(values, axis)


@CONCAT_V2.kernel
def concat_kernel(values: list[Any], axis: Any) -> Any:
    if isinstance(axis, list):
        axis = _single_axis(axis)
    try:
        if isinstance(values[0], np.ndarray):
            return np.concatenate(values, axis)
        return torch.cat(values, axis)
    except (RuntimeError, ValueError, IndexError):
        raise _not_joined(values, axis) from None


def _single_axis(axis: list[Any]) -> int:
    if np.shape(axis) != (1,):
        raise InvalidArgumentError(
            None, None, f"Concat axis tensor should be a scalar integer, but got shape {list(np.shape(axis))}"
        )
    return int(np.ravel(axis)[0])


def _not_joined(values: list[Any], axis: int) -> InvalidArgumentError:
    rank = values[0].ndim
    if rank == 0 or not -rank <= axis < rank:
        return InvalidArgumentError(
            None, None, f"ConcatOp : Expected concatenating dimensions in the range [{-rank}, {rank}), but got {axis}"
        )
    for i, each in enumerate(values):
        if each.ndim != rank or any(
            a != b for at, (a, b) in enumerate(zip(each.shape, values[0].shape)) if at != axis % rank
        ):
            kind = "Ranks" if each.ndim != rank else "Dimensions"
            return InvalidArgumentError(
                None,
                None,
                f"ConcatOp : {kind} of inputs should match: shape[0] = {Shape(values[0].shape)} vs. shape[{i}] = {Shape(each.shape)}",
            )
    shapes = " ".join(str(Shape(each.shape)) for each in values)
    return InvalidArgumentError(None, None, f"ConcatOp : tensors of shapes {shapes} cannot be joined along {axis}.")


@CONCAT_V2.shape(values=["axis"])
def concat_shape(values: list[Shape], axis: np.ndarray | None) -> Shape:
    merged = UNKNOWN_SHAPE
    if axis is None:
        for each in values:
            merged = merged.merge(UNKNOWN_SHAPE if each.rank is None else Shape((None,) * each.rank))
        return merged
    for each in values:
        if each.dims is not None:
            at = each.normalize_axis(int(axis))
            merged = merged.merge(Shape(each.dims[:at] + (None,) + each.dims[at + 1 :]))
    if merged.dims is None:
        return UNKNOWN_SHAPE
    at = merged.normalize_axis(int(axis))
    sizes = [each[at] for each in values]
    total = None if None in sizes else sum(sizes)
    return Shape((*merged.dims[:at], total, *merged.dims[at + 1 :]))


@CONCAT_V2.spelled_shape
def joined_shape(op: Operation, index: int, sight: Sight) -> Shape:
    """The shape denoted by a concatenation of size vectors."""
    joined = Shape(())
    for tensor in op._inputs[:-1]:
        if tensor.static_shape.rank != 1:
            return UNKNOWN_SHAPE
        joined = joined.concat(constant_value_as_shape(tensor, sight))
    return joined


@CONCAT_V2.rows
def concat_rows(op: Operation, inputs: list[rows.Input]) -> list[Tensor] | None:
    axis = rows.numbers(inputs[-1])
    if axis is None or not all(each.stacked for each in inputs[:-1]):
        return None
    return [CONCAT_V2([each.tensor for each in inputs[:-1]], int(axis) + (int(axis) >= 0))]


@CONCAT_V2.grad
def concat_grad(op: Operation, g: Tensor) -> list[Any]:
    return [*cut_like(g, op.inputs[-1], list(op.inputs[:-1])), None]


@export("concat")
@dispatched
def concat(values: Any = None, axis: Any = None, name: str = "concat", concat_dim: Any = None) -> Tensor:
    """Concatenates tensors along `axis`. The argument order of 0.12, with `concat_dim` first, is accepted as well."""
    if concat_dim is not None:
        axis = concat_dim
    elif isinstance(values, (int, np.integer)) and isinstance(axis, (list, tuple)):
        values, axis = axis, values
    if values is None or axis is None:
        raise ValueError(f"concat() needs `values` and `axis`, got {values!r} and {axis!r}.")
    if not isinstance(values, (list, tuple)):
        values = [values]
    if len(values) == 1:
        with name_scope(name):
            if not isinstance(axis, int):
                convert_to_tensor(axis, dtypes.int32, name="concat_dim").shape.assert_has_rank(0)
            return identity(values[0], name=name)
    return CONCAT_V2(list(values), axis, name=name)


def joined_sizes(sizes: list[Any]) -> Any:
    """Joins sizes, each a number or a scalar tensor, into one vector. The vector is a constant if all sizes are known."""
    known = [constant_value(size) if isinstance(size, Tensor) else size for size in sizes]
    if all(size is not None for size in known):
        return np.array([int(size) for size in known], np.int32)
    return PACK([casting.cast(size, dtypes.int32) if isinstance(size, Tensor) else np.int32(size) for size in sizes])


CONCAT = define("Concat(concat_dim: scalar* host int32, values: rank>0 N * T) -> (output: T)", N=INT(minimum=2), T=ANY)


@CONCAT.kernel
def concat_v1_kernel(concat_dim: Any, values: list[Any]) -> Any:
    return concat_kernel(values, concat_dim)


@CONCAT.shape(values=["concat_dim"])
def concat_v1_shape(concat_dim: np.ndarray | None, values: list[Shape]) -> Shape:
    return concat_shape(values, concat_dim)


@CONCAT.grad
def concat_v1_grad(op: Operation, g: Tensor) -> list[Any]:
    return [None, *cut_like(g, op.inputs[0], list(op.inputs[1:]))]


CONCAT_OFFSET = (
    define(
        "ConcatOffset(concat_dim: scalar host int32, shape: vector N * shape_type) -> (offset: N * shape_type)",
        N=INT(minimum=2),
        shape_type=one_of(*INDEX, default=dtypes.int32),
    )
    .not_differentiable()
    .late()
)
CONCAT_OFFSET.small("concat_offset")


@CONCAT_OFFSET.kernel
def concat_offset_kernel(concat_dim: int, shape: list[torch.Tensor]) -> list[torch.Tensor]:
    rank = len(shape[0])
    if not -rank <= concat_dim < rank:
        raise InvalidArgumentError(None, None, f"Concat dim is out of range: {concat_dim} vs. {rank}")
    offset, offsets = 0, []
    for i, each in enumerate(shape):
        if len(each) != rank:
            raise InvalidArgumentError(None, None, f"input {i} should contain {rank} elements, but got {len(each)}")
        if any(axis != concat_dim % rank and int(each[axis]) != int(shape[0][axis]) for axis in range(rank)):
            raise InvalidArgumentError(
                None,
                None,
                f"All dimensions except {concat_dim} must match. Input {i} has shape {each.tolist()} and doesn't match input 0 with shape {shape[0].tolist()}.",
            )
        start = torch.zeros_like(each)
        start[concat_dim] = offset
        offset += int(each[concat_dim])
        offsets.append(start)
    return offsets


@CONCAT_OFFSET.shape
def concat_offset_shape(concat_dim: Shape, shape: list[Shape]) -> list[Shape]:
    return shape


def cut_like(joined: Any, axis: Tensor, parts: list[Tensor]) -> list[Tensor]:
    """Splits `joined` along `axis` into pieces with the sizes of `parts`. This is the inverse of a concatenation."""
    joined = convert_to_tensor(joined)
    at = constant_value(axis)
    if at is not None and parts[0].static_shape.rank is not None:
        along = int(at) % max(1, len(parts[0].static_shape))
        sizes = [part.static_shape[along] for part in parts]
        if None not in sizes:
            return SPLIT_V(joined, np.array(sizes, np.int64), np.int32(along), num_split=len(sizes))
    shapes = shaping.shape_n(parts)
    rank = parts[0].static_shape.rank
    if at is None:
        # ConcatOffset requires a non-negative axis.
        axis = axis % (ops.rank(parts[0]) if rank is None else rank)
    elif at < 0 and rank is not None:
        axis = np.int32(int(at) % rank)  # type: ignore[assignment]
    offsets = CONCAT_OFFSET(axis, shapes)
    return [ops.slice(joined, offset, size) for offset, size in zip(offsets, shapes)]


# ---- Split, SplitV ----------------------------------------------------------------------------------------------

SPLIT = define(
    "Split(split_dim: scalar host int32, value: T) -> (output: num_split * T)", VIEW, num_split=INT(minimum=1), T=ANY
)
SPLIT.small("split")


@SPLIT.kernel
def split_kernel(split_dim: int, value: Any, *, num_split: int) -> Any:
    if not -value.ndim <= split_dim < value.ndim:
        raise InvalidArgumentError(
            None, None, f"-input rank(-{value.ndim}) <= split_dim < input rank ({value.ndim}), but got {split_dim}"
        )
    size = value.shape[split_dim]
    if size % num_split:
        raise InvalidArgumentError(
            None,
            None,
            f"Number of ways to split should evenly divide the split dimension, but got split_dim {split_dim} (size = {size}) and num_split {num_split}",
        )
    if isinstance(value, np.ndarray):
        return np.split(value, num_split, split_dim)
    if size == 0:
        return [value] * num_split
    return value.split(size // num_split, split_dim)


@SPLIT.lower
def split_lower(build: Any, op: Operation, split_dim: int, value: Any) -> Any:
    return build.split(value, split_dim, op.attr("num_split"))


@SPLIT.shape(values=["split_dim"])
def split_shape(split_dim: np.ndarray | None, value: Shape, *, num_split: int) -> list[Shape]:
    if value.dims is None:
        return [UNKNOWN_SHAPE] * num_split
    if split_dim is None:
        return [Shape((None,) * len(value))] * num_split
    at = value.normalize_axis(int(split_dim))
    size = value.dims[at]
    if size is not None and size % num_split:
        raise InvalidArgumentError(
            None,
            None,
            f"Number of ways to split should evenly divide the split dimension, but got split_dim {at} (size = {size}) and num_split {num_split}",
        )
    part = None if size is None else size // num_split
    return [Shape((*value.dims[:at], part, *value.dims[at + 1 :]))] * num_split


@SPLIT.grad
def split_grad(op: Operation, *gs: Tensor) -> Any:
    return None, concat(list(gs), op.inputs[0])


SPLIT_V = define(
    "SplitV(value: rank>0 T, size_splits: host Tlen, split_dim: scalar/one host int32) -> (output: num_split * T)",
    VIEW,
    num_split=INT(minimum=1),
    T=ANY,
    Tlen=one_of(dtypes.int8, *INDEX, default=dtypes.int64),
)
SPLIT_V.small("split_sizes")


@SPLIT_V.kernel
def split_v_kernel(value: Any, size_splits: list[int], split_dim: int, *, num_split: int) -> Any:
    if type(size_splits) is not list or len(size_splits) != num_split:
        raise InvalidArgumentError(
            None, None, f"size_splits must be a vector of one size for each of {num_split} outputs, got {size_splits}"
        )
    if isinstance(value, torch.Tensor):
        try:
            return value.split_with_sizes(size_splits, split_dim)
        except (RuntimeError, IndexError):
            pass  # one size is -1, or the sizes do not fit
    if not -value.ndim <= split_dim < value.ndim:
        raise InvalidArgumentError(
            None, None, f"-input rank(-{value.ndim}) <= split_dim < input rank ({value.ndim}), but got {split_dim}"
        )
    sizes = _settled(size_splits, value.shape[split_dim])
    if isinstance(value, np.ndarray):
        return np.split(value, np.cumsum(sizes)[:-1], split_dim)
    return value.split_with_sizes(sizes, split_dim)


def _settled(sizes: list[int], total: int) -> list[int]:
    """Replaces a -1 in `sizes` by the rest of `total`."""
    given = sum(size for size in sizes if size != -1)
    unknown = sizes.count(-1)
    if unknown > 1:
        raise InvalidArgumentError(None, None, f"Only one dimension of size_splits can be -1, got {sizes}.")
    if any(size < -1 for size in sizes):
        raise InvalidArgumentError(
            None, None, f"Split size at index {[s < -1 for s in sizes].index(True)} must be >= 0. Got: {sizes}"
        )
    if (not unknown and given != total) or given > total:
        raise InvalidArgumentError(
            None,
            None,
            f"Determined shape must either match input shape along split_dim exactly if fully specified, or be less than the size of the input along split_dim if not fully specified.  Got: {given} (sizes {sizes} of {total})",
        )
    return [total - given if size == -1 else size for size in sizes]


SPLIT_V.lower(viewed)


@SPLIT_V.shape(values=["size_splits", "split_dim"])
def split_v_shape(
    value: Shape, size_splits: np.ndarray | None, split_dim: np.ndarray | None, *, num_split: int
) -> list[Shape]:
    if value.dims is None:
        return [UNKNOWN_SHAPE] * num_split
    if split_dim is None:
        return [Shape((None,) * len(value))] * num_split
    at = value.normalize_axis(int(split_dim))
    if size_splits is None:
        sizes: list[Dim] = [value.dims[at] if num_split == 1 else None] * num_split
    else:
        total = value.dims[at]
        sizes = [None if size < 0 else int(size) for size in size_splits.tolist()]
        if total is not None:
            sizes = list(_settled(size_splits.tolist(), total))
    return [Shape((*value.dims[:at], size, *value.dims[at + 1 :])) for size in sizes]


@SPLIT_V.grad
def split_v_grad(op: Operation, *gs: Tensor) -> Any:
    return concat(list(gs), op.inputs[2]), None, None


@export("split")
def split(
    value: Any, num_or_size_splits: Any, axis: Any = 0, num: int | None = None, name: str = "split"
) -> list[Tensor]:
    """Splits `value` along `axis` into equal parts, or into parts of the given sizes (one may be -1).

    The argument order of 0.12 (split_dim, num_split, value) is accepted as well.

    Raises:
        ValueError: the number of parts is not statically known.
    """
    if isinstance(value, (int, np.integer)) and not isinstance(axis, (int, np.integer)):
        value, axis = axis, value
    if isinstance(num_or_size_splits, (int, np.integer)) or type(num_or_size_splits).__name__ == "Dimension":
        return SPLIT(axis, value, num_split=int(num_or_size_splits), name=name)
    sizes = convert_to_tensor(num_or_size_splits)
    if sizes.static_shape.rank == 0:
        raise ValueError(
            "Rank-0 tensors are not supported as the num_or_size_splits argument to split. Argument provided: "
            f"{num_or_size_splits}"
        )
    if num is None:
        num = sizes.static_shape.of_rank(1)[0]
        if num is None:
            raise ValueError(f"Cannot infer argument `num` from shape {num_or_size_splits}")
    return SPLIT_V(value, sizes, axis, num_split=num, name=name)


# ---- Tile -------------------------------------------------------------------------------------------------------

TILE = define(
    "Tile(input: T, multiples: vector host Tmultiples) -> (output: T)",
    T=ANY,
    Tmultiples=one_of(*INDEX, default=dtypes.int32),
)
TILE.small("tile")


@TILE.lower
def tile_lower(build: Any, op: Operation, input: Any, multiples: list[int]) -> Any:
    if any(size != 1 and times != 1 for size, times in zip(input.shape, multiples)):
        return None
    return build.broadcast(input, build.shape_of(op.outputs[0]).dims)


@TILE.rows
def tile_rows(op: Operation, inputs: list[rows.Input]) -> list[Tensor] | None:
    multiples = rows.numbers(inputs[1])
    if multiples is None or not inputs[0].stacked:
        return None
    return [TILE(inputs[0].tensor, [1, *multiples.tolist()])]


@TILE.kernel
@rearranges
def tile_kernel(input: torch.Tensor, multiples: list[int]) -> torch.Tensor:
    if len(multiples) != input.ndim:
        raise InvalidArgumentError(
            None,
            None,
            f"Expected multiples argument to be a vector of length {input.ndim} but got length {len(multiples)}",
        )
    for i, times in enumerate(multiples):
        if times < 0:
            raise InvalidArgumentError(None, None, f"Expected multiples[{i}] >= 0, but got {times}")
    if not multiples:
        return input.clone()
    allocatable([size * times for size, times in zip(input.shape, multiples)], itemsize(input))
    return input.repeat(multiples)


@TILE.shape(as_shapes=["multiples"])
def tile_shape(input: Shape, multiples: Shape) -> Shape:
    if multiples.dims is None:
        return UNKNOWN_SHAPE if input.dims is None else Shape((None,) * len(input))
    input = input.of_rank(len(multiples))
    return Shape(
        0 if 0 in (size, times) else None if size is None or times is None else size * times
        for size, times in zip(input.dims or (), multiples.dims)
    )


@TILE.grad
def tile_grad(op: Operation, g: Any) -> Any:
    # Each dimension becomes (multiple, size), and the gradient is summed over the multiples.
    x, multiples = op.inputs
    g = convert_to_tensor(g)
    rank = x.static_shape.rank
    times = constant_value(multiples)
    if x.static_shape.known and times is not None:
        pairs: Any = [each for pair in zip(times.tolist(), x.static_shape) for each in pair]
    else:
        kind = multiples.dtype.base_dtype
        sizes = shaping.shape(x, out_type=kind)
        pairs = shaping.reshape(shaping.transpose(PACK([multiples, sizes])), [-1])
    axes: Any
    if rank is None:
        axes = ops.range(0, ops.size(pairs), 2)
    else:
        axes = np.arange(0, 2 * rank, 2, dtype=np.int32)
    summed = ops.reduce_sum(shaping.reshape(g, pairs), axes)
    summed.set_shape(x.static_shape) if not context.executing_eagerly() else None
    return summed, None


@export("tile", v1="manip.tile")
@dispatched
def tile(input: Any, multiples: Any, name: str | None = None) -> Tensor:
    """Repeats `input` `multiples[i]` times along dimension i."""
    return TILE(input, multiples, name=name)
