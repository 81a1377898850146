"""Functions of ragged tensors: creation from lists, joining, gathering, masking, reduction."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from stoker._src.base import dtypes
from stoker._src.base.dtypes import as_dtype
from stoker._src.base.export import export
from stoker._src.base.shapes import as_shape
from stoker._src.graph.conversion import convert_to_tensor
from stoker._src.graph.scopes import control_dependencies, name_scope
from stoker._src.graph.static_values import constant_value
from stoker._src.graph.tensor import Tensor
from stoker._src.ops.array import casting, constants, gathering, joining, ranges, selection, shaping
from stoker._src.ops.control_flow import debugging
from stoker._src.ops.math import arithmetic, comparison, reductions, scans, segment_reductions, sorting
from stoker._src.ops.ragged import ragged_ops
from stoker._src.ops.ragged.ragged_tensor import RaggedTensor, _merged, _places, checked
from stoker._src.ops.ragged.ragged_value import RaggedTensorValue

# ---- from Python lists ------------------------------------------------------------------------------------------


def _is_list(value: Any) -> bool:
    return isinstance(value, (list, tuple)) or (isinstance(value, np.ndarray) and value.ndim > 0)


def _depth(value: Any) -> tuple[int | None, int]:
    """The depth of the scalars (None if there are no scalars), and the depth of the lists."""
    if not _is_list(value):
        return 0, 0
    scalars, lists = None, 0
    for item in value:
        found, deep = _depth(item)
        if found is not None:
            if scalars is not None and scalars != found:
                raise ValueError("all scalar values must have the same nesting depth")
            scalars = found
        lists = max(lists, deep)
    return (None if scalars is None else scalars + 1), lists + 1


def _default_inner_shape(value: Any, depth: int) -> tuple[int, ...]:
    """The shape of the uniform lists at nesting level `depth`."""
    if depth > 0:
        for item in value:
            return _default_inner_shape(item, depth - 1) if _is_list(item) or depth == 1 else ()
        return ()
    return np.shape(value) if _is_list(value) else ()


def _parts(pylist: Any, dtype: Any, ragged_rank: int | None, inner_shape: Any) -> tuple[Any, list[list[int]], tuple]:
    """The flat values, the splits of each level, and the shape of one value."""
    scalars, lists = _depth(pylist)
    depth = lists if scalars is None else scalars
    if scalars is not None and lists > scalars:
        raise ValueError("Invalid pylist: empty list nesting is greater than scalar value nesting")
    if inner_shape is not None:
        inner = tuple(as_shape(inner_shape).dims or ())
        if ragged_rank is not None and ragged_rank + 1 + len(inner) > depth and scalars is not None:
            raise ValueError(
                f"Invalid pylist: ragged_rank={ragged_rank} and inner_shape={inner} exceed its depth {depth}"
            )
        rank = depth - 1 - len(inner) if ragged_rank is None else ragged_rank
    elif ragged_rank is not None:
        rank, inner = ragged_rank, None
    else:
        rank, inner = depth - 1, ()
    if ragged_rank is not None and scalars is not None and ragged_rank >= max(depth, 1):
        raise ValueError(f"Invalid pylist: has max_nesting {depth}, which is less than ragged_rank {ragged_rank} + 1")
    splits: list[list[int]] = []
    flat: list[Any] = list(pylist)
    for _ in range(rank):
        cuts = [0]
        following: list[Any] = []
        for row in flat:
            following.extend(row)
            cuts.append(len(following))
        splits.append(cuts)
        flat = following
    if inner is None:
        inner = np.shape(flat[0]) if flat else (0,) * max(depth - rank - 1, 0)
    for item in flat:
        if np.shape(item) != inner:
            raise ValueError(f"Invalid pylist: a value of shape {np.shape(item)} where inner_shape is {inner}")
    return flat, splits, inner


@export("ragged.constant")
def constant(
    pylist: Any,
    dtype: Any = None,
    ragged_rank: int | None = None,
    inner_shape: Any = None,
    name: str | None = None,
    row_splits_dtype: Any = dtypes.int64,
) -> Any:
    """Creates a constant RaggedTensor from nested lists (a plain constant if no level can be ragged).

    Args:
        pylist: nested lists of scalars, all at the same depth.
        dtype: the dtype of the values; by default as for `tf.constant`.
        ragged_rank: the number of ragged levels; by default every level except the innermost dimension of a scalar list.
        inner_shape: the shape of the values at the innermost ragged level.
        name: a prefix for the names of the ops.
        row_splits_dtype: int32 or int64.

    Raises:
        ValueError: scalars are at different depths, or the lists contradict `ragged_rank` or `inner_shape`.
    """
    with name_scope(name, "RaggedConstant", None):
        wanted = None if dtype is None else as_dtype(dtype)
        if not _is_list(pylist):
            if ragged_rank:
                raise ValueError(f"Invalid pylist={pylist}: incompatible with ragged_rank={ragged_rank}")
            return constants.constant(pylist, wanted)
        flat, splits, inner = _parts(pylist, wanted, ragged_rank, inner_shape)
        if wanted is None and not flat:
            wanted = dtypes.float32
        result: Any = constants.constant(flat, wanted, shape=(len(flat), *inner), name="values")
        for cuts in reversed(splits):
            result = RaggedTensor._make(result, constants.constant(cuts, as_dtype(row_splits_dtype)))
        return result


@export(v1="ragged.constant_value")
def constant_value_of_lists(
    pylist: Any,
    dtype: Any = None,
    ragged_rank: int | None = None,
    inner_shape: Any = None,
    row_splits_dtype: Any = "int64",
) -> Any:
    """Creates a RaggedTensorValue from nested lists (a plain array if no level can be ragged)."""
    kind = None if dtype is None else (as_dtype(dtype).as_numpy_dtype if not isinstance(dtype, type) else dtype)
    if not _is_list(pylist):
        return np.array(pylist, dtype=kind)
    flat, splits, inner = _parts(pylist, dtype, ragged_rank, inner_shape)
    result: Any = np.array(flat, dtype=kind).reshape((len(flat), *inner))
    for cuts in reversed(splits):
        result = RaggedTensorValue(result, np.array(cuts, dtype=as_dtype(row_splits_dtype).as_numpy_dtype))
    return result


@export(v1="ragged.placeholder")
def placeholder(dtype: Any, ragged_rank: int, value_shape: Any = None, name: str | None = None) -> Any:
    """A placeholder for a RaggedTensor, fed with a RaggedTensorValue. `value_shape` is the shape of one value."""
    if ragged_rank == 0:
        return constants.placeholder(dtype, value_shape, name)
    with name_scope(name, "RaggedPlaceholder", []):
        inner = as_shape(value_shape)
        shape = None if inner.rank is None else [None, *inner]
        result: Any = constants.placeholder(dtype, shape, "flat_values")
        for level in reversed(range(ragged_rank)):
            splits = constants.placeholder(dtypes.int64, [None], f"row_splits_{level}")
            result = RaggedTensor._make(result, splits)
        return result


@export("ragged.range")
def ragged_range(
    starts: Any,
    limits: Any = None,
    deltas: Any = 1,
    dtype: Any = None,
    name: str | None = None,
    row_splits_dtype: Any = dtypes.int64,
) -> RaggedTensor:
    """Row i contains the numbers from `starts[i]` (inclusive) to `limits[i]` (exclusive). A single argument means `limits`."""
    if limits is None:
        starts, limits = 0, starts
    wanted = None if dtype is None else as_dtype(dtype)
    with name_scope(name, "RaggedRange", [starts, limits, deltas]) as scope:
        parts = [
            convert_to_tensor(v, wanted, n) for v, n in ((starts, "starts"), (limits, "limits"), (deltas, "deltas"))
        ]
        if wanted is None:  # the widest of the three dtypes is used
            order = (dtypes.int32, dtypes.int64, dtypes.float32, dtypes.float64)
            found = [part.dtype.base_dtype for part in parts]
            widest = max(found, key=lambda each: order.index(each) if each in order else 0)
            parts = [casting.cast(part, widest) for part in parts]
        made = ragged_ops.RAGGED_RANGE(*parts, Tsplits=as_dtype(row_splits_dtype), name=scope)
        return RaggedTensor._make(made.rt_dense_values, made.rt_nested_splits)


# ---- flat values ------------------------------------------------------------------------------------------------


def _flattened(value: Any, found: list[RaggedTensor]) -> Any:
    if isinstance(value, RaggedTensor):
        found.append(value)
        return value.flat_values
    if isinstance(value, (list, tuple)) and any(isinstance(item, RaggedTensor) for item in value):
        return type(value)(_flattened(item, found) for item in value)
    return value


@export("ragged.map_flat_values")
def map_flat_values(op: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """Applies `op` to the flat values of the ragged tensors among the arguments, which must have the same partitions.

    Raises:
        ValueError: the ragged ranks differ, or the result has another length.
    """
    found: list[RaggedTensor] = []
    args = tuple(_flattened(arg, found) for arg in args)
    kwargs = {key: _flattened(value, found) for key, value in kwargs.items()}
    if not found:
        return op(*args, **kwargs)
    return same_rows(found).with_flat_values(op(*args, **kwargs))


def same_rows(values: list[RaggedTensor]) -> RaggedTensor:
    """Checks that all `values` have the same row partitions, and returns the first.

    Raises:
        ValueError: the ragged ranks differ.
        InvalidArgumentError: (at run time) the splits differ.
    """
    first = values[0]
    if any(each.ragged_rank != first.ragged_rank for each in values):
        raise ValueError(
            f"All ragged arguments must have the same ragged_rank, got {[each.ragged_rank for each in values]}."
        )
    splits = list(first.nested_row_splits)
    for other in values[1:]:
        for level, cuts in enumerate(other.nested_row_splits):
            if cuts is not first.nested_row_splits[level]:
                splits[level] = _same_splits(splits[level], cuts)
    result: Any = first.flat_values
    levels: list[RaggedTensor] = []
    level_value: Any = first
    while isinstance(level_value, RaggedTensor):
        levels.append(level_value)
        level_value = level_value.values
    for cuts, level_of in zip(reversed(splits), reversed(levels)):
        result = RaggedTensor._make(result, cuts, level_of.uniform_row_length)
    return result


def _same_splits(mine: Tensor, theirs: Tensor) -> Tensor:
    """Returns `mine` after checking that it equals `theirs`."""
    theirs = casting.cast(theirs, mine.dtype.base_dtype)
    known = (constant_value(mine), constant_value(theirs))
    if known[0] is not None and known[1] is not None and np.array_equal(*known):
        return mine
    same = comparison.equal(shaping.shape(mine)[0], shaping.shape(theirs)[0])
    mine = checked(mine, same, "Ragged tensors of different numbers of rows:", mine, theirs)
    equal = reductions.reduce_all(comparison.equal(mine, theirs))
    return checked(mine, equal, "Ragged tensors with different rows:", mine, theirs)


# ---- rows -------------------------------------------------------------------------------------------------------


def gather_rows(params: Any, indices: Any) -> Any:
    """Gathers rows of `params` (ragged or not) by a tensor of indices."""
    if not isinstance(params, RaggedTensor):
        return gathering.GATHER_V2(params, indices, 0)
    places = convert_to_tensor(indices)
    rank = places.static_shape.rank
    if rank is None:
        raise ValueError("Gathering rows of a RaggedTensor needs the rank of the indices.")
    if rank == 0:
        return params[casting.cast(places, params.row_splits.dtype.base_dtype)]  # type: ignore[index]
    splits = params.nested_row_splits
    found = ragged_ops.RAGGED_GATHER(
        list(splits), params.flat_values, places, OUTPUT_RAGGED_RANK=len(splits) + rank - 1
    )
    result: Any = found.output_dense_values
    for cuts in reversed(found.output_nested_splits):
        result = RaggedTensor._make(result, cuts)
    return result


def gather(
    params: Any,
    indices: Any,
    validate_indices: Any = None,
    axis: Any = None,
    batch_dims: int = 0,
    name: str | None = None,
) -> Any:
    """Gathers rows of `params` by index, where `params` or `indices` are ragged.

    Raises:
        NotImplementedError: the axis of ragged params is not 0, or there are batch dimensions.
    """
    if batch_dims or (axis not in (None, 0) and isinstance(params, RaggedTensor)):
        raise NotImplementedError(
            f"tf.gather of a RaggedTensor takes axis 0 and no batch dimensions, got axis={axis}, batch_dims={batch_dims}."
        )
    with name_scope(name, "RaggedGather", [each for each in (params, indices) if isinstance(each, Tensor)]):
        if isinstance(indices, RaggedTensor):
            if axis not in (None, 0):
                raise NotImplementedError(f"tf.gather with ragged indices takes axis 0, got {axis}.")
            return indices.with_values(gather(params, indices.values))
        return gather_rows(params, indices)


def expand_dims(input: Any, axis: int, name: str | None = None) -> Any:
    """Inserts a dimension of size 1 at `axis`."""
    if not isinstance(input, RaggedTensor):
        return shaping.expand_dims(input, axis, name=name)
    rank = input.static_shape.rank
    at = axis
    if at < 0:
        if rank is None:
            raise ValueError("A negative axis needs the rank of the RaggedTensor.")
        at += rank + 1
    if at < 0 or (rank is not None and at > rank):
        raise ValueError(f"axis={axis} out of bounds: expected {-1 - (rank or 0)} <= axis <= {rank}")
    with name_scope(name, "RaggedExpandDims", [input.row_splits]):
        if at == 0:
            return RaggedTensor.from_uniform_row_length(input, input.nrows(), 1, validate=False)
        if at == 1:
            return RaggedTensor.from_uniform_row_length(input, 1, input.nrows(), validate=False)
        return input.with_values(expand_dims(input.values, at - 1))


def _as_ragged(values: list[Any]) -> list[Any]:
    """Converts all values to the largest ragged rank among them and to one splits dtype."""
    tensors = [each if isinstance(each, RaggedTensor) else convert_to_tensor(each) for each in values]
    ragged = [each for each in tensors if isinstance(each, RaggedTensor)]
    if not ragged:
        return tensors
    rank = max(each.ragged_rank for each in ragged)
    if any(each.row_splits.dtype is not ragged[0].row_splits.dtype for each in ragged):
        ragged[0] = ragged[0].with_row_splits_dtype(dtypes.int64)
    kind = ragged[0].row_splits.dtype.base_dtype
    made = []
    for each in tensors:
        if not isinstance(each, RaggedTensor):
            each = RaggedTensor.from_tensor(each, ragged_rank=rank, row_splits_dtype=kind)
        elif each.ragged_rank < rank:
            inner = RaggedTensor.from_tensor(
                each.flat_values, ragged_rank=rank - each.ragged_rank, row_splits_dtype=kind
            )
            each = _with_flat(each, inner)
        made.append(each.with_row_splits_dtype(kind))
    return made


def _with_flat(outer: RaggedTensor, inner: RaggedTensor) -> RaggedTensor:
    values = _with_flat(outer.values, inner) if isinstance(outer.values, RaggedTensor) else inner
    return outer.with_values(values)


def concat(values: Any, axis: Any, name: str | None = None) -> Any:
    """Concatenates ragged (and dense) tensors along `axis`."""
    with name_scope(name, "RaggedConcat", None):
        parts = _as_ragged(list(values))
        return _joined(parts, _settled_axis(axis, parts[0]))


def _settled_axis(axis: Any, value: Any, extra: int = 0) -> int:
    """The axis as a non-negative number.

    Raises:
        TypeError: the axis is not a Python integer.
        ValueError: the axis is out of range, or negative for a tensor of unknown rank.
    """
    if not isinstance(axis, (int, np.integer)):
        raise TypeError(f"axis must be an int; got {type(axis).__name__}")
    if value.static_shape.rank is None:
        if axis < 0:
            raise ValueError(f"axis={axis} may only be negative if ndims is statically known.")
        return int(axis)
    rank = value.static_shape.rank + extra
    if not -rank <= axis < rank:
        raise ValueError(f"axis={axis} out of bounds: expected {-rank}<=axis<{rank}")
    return int(axis) % rank


def _joined(parts: list[Any], axis: int) -> Any:
    if not isinstance(parts[0], RaggedTensor):
        return joining.concat(parts, axis)
    if len(parts) == 1:
        return parts[0]
    if axis > 1:
        splits = parts[0].row_splits
        for each in parts[1:]:
            splits = _same_splits(splits, each.row_splits)
        return RaggedTensor._make(_joined([each.values for each in parts], axis - 1), splits)
    whole = _stacked_rows(parts)
    if axis == 0:
        return whole
    # Bring the rows with the same index next to each other, so that they can be merged into one.
    count, rows = len(parts), parts[0].nrows()
    steps = shaping.expand_dims(ranges.range(rows), 1) + shaping.expand_dims(
        ranges.range(constants.constant(count, rows.dtype.base_dtype)) * rows,
        0,
    )
    for each in parts[1:]:
        steps = checked(
            steps,
            comparison.equal(each.nrows(), rows),
            "Input tensors have incompatible numbers of rows:",
            each.nrows(),
            rows,
        )
    order = gather_rows(whole, shaping.reshape(steps, [-1]))
    return RaggedTensor._make(order.values, order.row_splits[::count])


def _stacked_rows(parts: list[RaggedTensor]) -> RaggedTensor:
    values = _joined([each.values for each in parts], 0)
    splits = [parts[0].row_splits]
    end = parts[0].row_splits[-1]
    for each in parts[1:]:
        splits.append(each.row_splits[1:] + end)
        end = end + each.row_splits[-1]
    return RaggedTensor._make(values, joining.concat(splits, 0))


@export("ragged.stack")
def stack(values: Any, axis: int = 0, name: str | None = None) -> Any:
    """Stacks tensors of the same rank (ragged or not, of any sizes) along a new dimension at `axis`."""
    with name_scope(name, "RaggedConcat", None):
        if not isinstance(values, (list, tuple)):
            values = [values]
        if not values:
            raise ValueError("rt_inputs may not be empty.")
        parts = [each if isinstance(each, RaggedTensor) else convert_to_tensor(each) for each in values]
        known = next((each for each in parts if each.static_shape.rank is not None), parts[0])
        rank, at = known.static_shape.rank, _settled_axis(axis, known, 1)
        if rank is not None:
            for each in parts:
                each.shape.with_rank(rank)
        if not any(isinstance(each, RaggedTensor) for each in parts):
            if rank == 1 and at == 0:
                lengths = joining.concat([shaping.SHAPE_OP(each) for each in parts], 0)
                return RaggedTensor.from_row_lengths(joining.concat(parts, 0), lengths, validate=False)
            if rank == 0 or at > 0:
                return joining.stack(parts, at)
        wide = [expand_dims(each, at) for each in parts]
        if not any(isinstance(each, RaggedTensor) for each in wide):
            rank = wide[0].static_shape.rank
            if rank is None:
                raise ValueError("tf.ragged.stack needs the rank of its tensors.")
            wide = [RaggedTensor.from_tensor(each, ragged_rank=max(rank - 1, 1)) for each in wide]
        return _joined([_varying(each) for each in _as_ragged(wide)], at)


def _varying(value: Any) -> Any:
    """The same rows, without the information that rows have a uniform length."""
    if not isinstance(value, RaggedTensor):
        return value
    return RaggedTensor._make(_varying(value.values), value.row_splits)


def tile(input: RaggedTensor, multiples: Any, name: str | None = None) -> RaggedTensor:
    """Repeats `input` `multiples[i]` times along dimension i.

    Raises:
        NotImplementedError: the multiples are not constants.
    """
    times = constant_value(convert_to_tensor(multiples))
    if times is None:
        raise NotImplementedError("tf.tile of a RaggedTensor takes constant multiples.")
    with name_scope(name, "RaggedTile", [input.row_splits]):
        result: Any = input
        for axis, count in enumerate(times.tolist()):
            if count == 0:
                result = result[(*[slice(None)] * axis, slice(0, 0))]
            elif count > 1:
                result = concat([result] * count, axis)
        return result


@export("ragged.boolean_mask")
def boolean_mask(data: Any, mask: Any, name: str | None = None) -> Any:
    """The values where `mask` is true. Dimensions of the mask after the first become ragged."""
    with name_scope(name, "RaggedMask", None):
        if not isinstance(mask, RaggedTensor):
            mask = convert_to_tensor(mask, dtypes.bool_, name="mask")
            rank = mask.static_shape.rank
            if rank is None or rank == 0:
                raise ValueError(f"mask must have a known rank of at least 1, got {mask}")
            if not isinstance(data, RaggedTensor):
                data = convert_to_tensor(data)
                data.shape[:rank].assert_is_compatible_with(mask.shape)
            if rank == 1:
                rows = shaping.squeeze(selection.where(mask), [1])
                return gather_rows(data, rows)
            mask = RaggedTensor.from_tensor(mask, ragged_rank=rank - 1)
        if not isinstance(data, RaggedTensor):
            data = convert_to_tensor(data)
            data = RaggedTensor.from_tensor(data, ragged_rank=mask.ragged_rank, row_splits_dtype=mask.row_splits.dtype)
        return _masked(data, mask)


def _masked(data: RaggedTensor, mask: RaggedTensor) -> RaggedTensor:
    kind = mask.row_splits.dtype.base_dtype
    if isinstance(mask.values, RaggedTensor):
        inner = _masked(data.values, mask.values)
        return RaggedTensor._make(inner, mask.row_splits)
    kept = segment_reductions.UNSORTED_SEGMENT_SUM(casting.cast(mask.values, kind), mask.value_rowids(), mask.nrows())
    lengths = joining.concat([constants.constant([0], kind), scans.cumsum(kept)], 0)
    rows = shaping.squeeze(selection.where(mask.values), [1])
    return RaggedTensor._make(gather_rows(data.values, rows), lengths)


@export("ragged.stack_dynamic_partitions")
def stack_dynamic_partitions(data: Any, partitions: Any, num_partitions: Any, name: str | None = None) -> RaggedTensor:
    """Row i contains the values of `data` whose partition is i, in order."""
    with name_scope(name, "SegmentStack", None):
        data, ids = (
            each if isinstance(each, RaggedTensor) else convert_to_tensor(each, name=label)
            for each, label in ((data, "data"), (partitions, "partitions"))
        )
        count = casting.cast(convert_to_tensor(num_partitions, name="num_partitions"), ids.dtype.base_dtype)
        count.shape.with_rank(0)
        if isinstance(ids, RaggedTensor):
            if not isinstance(data, RaggedTensor) or data.ragged_rank < ids.ragged_rank:
                raise ValueError("data must be a RaggedTensor if partitions is a RaggedTensor")
            with control_dependencies([_same_splits(data.row_splits, ids.row_splits)]):
                inner = casting.cast(shaping.identity(ids.values), ids.row_splits.dtype.base_dtype)
                return stack_dynamic_partitions(data.values, inner, num_partitions)
        rank = ids.static_shape.rank
        if rank is None:
            raise ValueError("partitions must have known rank.")
        data.shape[:rank].assert_is_compatible_with(ids.shape)
        low = debugging.assert_non_negative(ids, message="partitions must be non-negative.")
        high = debugging.assert_less(ids, count, message="partitions must be less than num_partitions")
        known = data.static_shape[:rank] if data.static_shape.rank is not None else None
        same = None
        if rank and not (known and known.known and ids.static_shape.known):
            sizes = [data.nrows()] if isinstance(data, RaggedTensor) else shaping.SHAPE_OP(data)[:rank]
            sizes = casting.cast(sizes, dtypes.int32)
            same = debugging.assert_equal(sizes, shaping.SHAPE_OP(ids)[: 1 if isinstance(data, RaggedTensor) else rank])
        with control_dependencies([check for check in (low, high, same) if check is not None]):
            ids = shaping.identity(ids)
        if rank == 0:
            return stack_dynamic_partitions(expand_dims(data, 0), shaping.expand_dims(ids, 0), count)
        if rank > 1:
            data, ids = _merged(data, 0, rank - 1), shaping.reshape(ids, [-1])
        order = sorting.argsort(ids, stable=True)
        rows = gathering.GATHER_V2(ids, order, 0)
        return RaggedTensor.from_value_rowids(gather_rows(data, order), rows, count, validate=False)


# ---- reductions -------------------------------------------------------------------------------------------------


def _aggregated(combine: Any, data: Any, ids: Tensor, count: Any) -> Any:
    """Combines rows of `data` with the same id element by element. A resulting row is as long as the longest of its rows."""
    if not isinstance(data, RaggedTensor):
        return combine(data, ids, count)
    kind = data.row_splits.dtype.base_dtype
    longest = arithmetic.maximum(
        segment_reductions.UNSORTED_SEGMENT_MAX(data.row_lengths(), ids, count), constants.constant(0, kind)
    )
    splits = joining.concat([constants.constant([0], kind), scans.cumsum(longest)], 0)
    starts = gathering.GATHER_V2(gathering.GATHER_V2(splits, ids, 0), data.value_rowids(), 0)
    places = starts + _places(data)
    return RaggedTensor._make(_aggregated(combine, data.values, places, splits[-1]), splits)


def reduce(dense: Any, combine: Any, input: Any, axis: Any, keepdims: bool) -> Any:
    """Reduces dimensions of `input`. `dense` reduces tensors, and `combine` reduces unsorted segments."""
    if not isinstance(input, RaggedTensor):
        return dense(input, axis, keepdims)
    if axis is None:
        result = dense(input.flat_values, None, False)
        for _ in range((input.static_shape.rank or 0) if keepdims else 0):
            result = shaping.expand_dims(result, 0)
        return result
    if isinstance(axis, Tensor):
        known = constant_value(axis)
        if known is None:
            raise ValueError("Reducing a RaggedTensor needs a constant axis.")
        axis = known.tolist()
    given = axis if isinstance(axis, (list, tuple)) else [axis]
    axes = sorted({_settled_axis(each, input) for each in given}, reverse=True)
    result = input
    for each in axes:
        result = _reduced(dense, combine, result, each)
    for each in reversed(axes) if keepdims else ():
        result = expand_dims(result, each)
    return result


def _reduced(dense: Any, combine: Any, value: Any, axis: int) -> Any:
    if not isinstance(value, RaggedTensor):
        return dense(value, axis, False)
    if axis == 0:
        rows = value.nrows()
        ids = shaping.zeros(shaping.reshape(rows, [1]), rows.dtype.base_dtype)
        return _aggregated(combine, value, ids, 1).values
    if axis == 1:
        return _aggregated(combine, value.values, value.value_rowids(), value.nrows())
    return value.with_values(_reduced(dense, combine, value.values, axis - 1))
