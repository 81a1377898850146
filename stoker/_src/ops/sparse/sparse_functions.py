"""The functions of `tf.sparse`, and the 1.x functions `tf.sparse_*`."""

from __future__ import annotations

import operator
from math import prod
from typing import Any

import numpy as np

from stoker._src.base import dtypes
from stoker._src.base.dtypes import as_dtype
from stoker._src.base.export import export
from stoker._src.base.shapes import Shape, as_shape
from stoker._src.graph import context
from stoker._src.graph.conversion import convert_to_tensor
from stoker._src.graph.definition import OpDefinition
from stoker._src.graph.indexed_slices import IndexedSlices
from stoker._src.graph.scopes import control_dependencies, name_scope
from stoker._src.graph.sparse_tensor import SparseTensor, SparseTensorValue, is_sparse
from stoker._src.graph.static_values import constant_value, constant_value_as_shape
from stoker._src.graph.tensor import Tensor
from stoker._src.ops.array import casting, gathering, joining, ranges, selection, shaping, slicing
from stoker._src.ops.array.constants import constant, placeholder
from stoker._src.ops.control_flow import assertions
from stoker._src.ops.math import arithmetic, comparison, reductions, unary_functions
from stoker._src.ops.sparse import sparse_ops, sparse_reductions, sparse_with_dense


def as_sparse(value: Any) -> SparseTensor:
    """Converts a SparseTensor or SparseTensorValue to a SparseTensor.

    Raises:
        TypeError: `value` is neither.
    """
    if isinstance(value, SparseTensor):
        return value
    if isinstance(value, SparseTensorValue):
        return SparseTensor.from_value(value)
    raise TypeError(f"Input must be a SparseTensor. Received: {value!r}")


def _known(sparse: SparseTensor, shape: Any) -> SparseTensor:
    """Sets the static shape of `sparse` as far as it is known, and returns it."""
    sparse.set_shape(shape)
    return sparse


def _check_whole(value: Any, label: str) -> None:
    """Raises TypeError for anything except tensors and integers."""
    if not isinstance(value, Tensor) and not hasattr(type(value), "__index__"):
        raise TypeError(f"{label} must be a Tensor or a Python integer, got {value!r}.")


def _settled(sparse: SparseTensor) -> Any:
    """The dense shape for another tensor of the same shape: a list if it is static, else a copy of the shape vector."""
    known = sparse.static_shape
    return list(known) if known.known else shaping.identity(sparse.dense_shape)


def _older(name: str, value: Any, older_name: str, older: Any) -> Any:
    if older is not None:
        if value is not None:
            raise ValueError(f"Cannot specify both '{name}' and '{older_name}'.")
        return older
    return value


# ---- creation and conversion ------------------------------------------------------------------------------------


@export("sparse.from_dense")
def from_dense(tensor: Any, name: str | None = None) -> SparseTensor:
    """Converts `tensor` to a SparseTensor of its nonzero elements (nonempty strings)."""
    with name_scope(name, "dense_to_sparse"):
        tensor = convert_to_tensor(tensor)
        blank = shaping.zeros_like(tensor)
        indices = selection.WHERE(comparison.not_equal(tensor, blank))
        return SparseTensor(indices, gathering.GATHER_ND(tensor, indices), shaping.shape(tensor, out_type=dtypes.int64))


@export(v1=("sparse_placeholder", "sparse.placeholder"))
def sparse_placeholder(dtype: Any, shape: Any = None, name: str | None = None) -> SparseTensor:
    """A placeholder for a SparseTensor, fed with a SparseTensorValue.

    Args:
        dtype: the dtype of the values.
        shape: the dense shape, as sizes or as an int64 vector.
        name: a prefix for the names of the components.
    """
    if context.executing_eagerly():
        raise RuntimeError("`sparse_placeholder` is not compatible with eager execution.")
    given = isinstance(shape, Tensor)
    if given:
        shape.shape.with_rank(1)
    known = constant_value_as_shape(shape) if given else as_shape(shape)
    prefix = None if name is None else f"{name}/"
    if given:
        rank, sizes = shape.static_shape.of_rank(1)[0], shape
    elif known.dims is None:
        rank, sizes = None, placeholder(dtypes.int64, [None], name=prefix and f"{prefix}shape")
    else:
        rank = len(known)
        if known.known:
            sizes = convert_to_tensor(np.array(list(known), np.int64), name=prefix and f"{prefix}shape")
        else:
            sizes = placeholder(dtypes.int64, [rank], name=prefix and f"{prefix}shape")
    values = placeholder(dtype, [None], name=prefix and f"{prefix}values")
    indices = placeholder(dtypes.int64, [None, rank], name=prefix and f"{prefix}indices")
    return _known(SparseTensor(indices, values, sizes), known)


@export("sparse.eye")
def eye(num_rows: Any, num_columns: Any = None, dtype: Any = dtypes.float32, name: str | None = None) -> SparseTensor:
    """A sparse identity matrix."""
    _check_whole(num_rows, "num_rows")
    _check_whole(num_rows if num_columns is None else num_columns, "num_columns")
    with name_scope(name, "eye"):
        rows = casting.cast(convert_to_tensor(num_rows), dtypes.int64)
        columns = rows if num_columns is None else casting.cast(convert_to_tensor(num_columns), dtypes.int64)
        count = arithmetic.minimum(rows, columns)
        steps = ranges.range(count, dtype=dtypes.int64)
        values = shaping.ones(shaping.reshape(casting.cast(count, dtypes.int32), [1]), as_dtype(dtype))
        return SparseTensor(joining.PACK([steps, steps], axis=1), values, joining.PACK([rows, columns]))


@export(v1="sparse_to_dense")
def sparse_to_dense(
    sparse_indices: Any,
    output_shape: Any,
    sparse_values: Any,
    default_value: Any = 0,
    validate_indices: bool = True,
    name: str | None = None,
) -> Tensor:
    """A dense tensor with `sparse_values` at `sparse_indices` and `default_value` elsewhere.

    Indices must be sorted and distinct unless `validate_indices` is False.
    """
    return sparse_ops.SPARSE_TO_DENSE(
        sparse_indices, output_shape, sparse_values, default_value, validate_indices=validate_indices, name=name
    )


@export("sparse.to_dense", v1="sparse_tensor_to_dense")
def to_dense(
    sp_input: Any, default_value: Any = None, validate_indices: bool = True, name: str | None = None
) -> Tensor:
    """Converts to a dense tensor, with `default_value` (zero or the empty string) at missing elements."""
    sparse = as_sparse(sp_input)
    if default_value is None:
        default_value = "" if sparse.dtype.base_dtype is dtypes.string else shaping.zeros([], sparse.dtype.base_dtype)
    dense = sparse_ops.SPARSE_TO_DENSE(
        sparse.indices, sparse.dense_shape, sparse.values, default_value, validate_indices=validate_indices, name=name
    )
    if not getattr(dense, "is_eager", False):
        dense.set_shape(sparse.static_shape)
    return dense


@export("sparse.to_indicator", v1="sparse_to_indicator")
def to_indicator(sp_input: Any, vocab_size: Any, name: str | None = None) -> Tensor:
    """A bool vector for each row, which is true at the ids in the row."""
    sparse = as_sparse(sp_input)
    with name_scope(name, "SparseToIndicator") as scope:
        ones = shaping.ones_like(sparse.values, dtypes.bool_)
        merged = merge(sparse, sparse.with_values(ones), vocab_size)
        return to_dense(merged, False, validate_indices=False, name=scope)


@export(v1=("sparse_merge", "sparse.merge"))
def merge(
    sp_ids: Any, sp_values: Any, vocab_size: Any, name: str | None = None, already_sorted: bool = False
) -> SparseTensor:
    """Combines ids and values with the same indices into one tensor whose last dimension is the id.

    Raises:
        TypeError, ValueError: the arguments do not match.
    """
    many = isinstance(sp_ids, (list, tuple)) and not isinstance(sp_ids, SparseTensorValue)
    ids = [as_sparse(each) for each in (sp_ids if many else [sp_ids])]
    sizes = vocab_size if many else [vocab_size]
    if len(ids) != len(sizes):
        raise ValueError(
            f"vocab_size must have one entry for each of {len(ids)} SparseTensors of ids, got {len(sizes)}."
        )
    for size in sizes:
        _check_whole(size, "vocab_size")
    values = as_sparse(sp_values)
    with name_scope(name, "SparseMerge"):
        columns = [shaping.expand_dims(casting.cast(each.values, dtypes.int64), 1) for each in ids]
        indices = joining.concat([ids[0].indices[:, :-1], *columns], 1)
        extents = [shaping.expand_dims(casting.cast(convert_to_tensor(size), dtypes.int64), 0) for size in sizes]
        shape = joining.concat([ids[0].dense_shape[:-1], *extents], 0)
        result = SparseTensor(indices, values.values, shape)
        return result if already_sorted else reorder(result)


# ---- order and shape --------------------------------------------------------------------------------------------


@export("sparse.reorder", v1="sparse_reorder")
def reorder(sp_input: Any, name: str | None = None) -> SparseTensor:
    """Sorts the elements by their coordinates."""
    sparse = as_sparse(sp_input)
    indices, values = sparse_ops.SPARSE_REORDER(sparse.indices, sparse.values, sparse.dense_shape, name=name)
    return _known(SparseTensor(indices, values, _settled(sparse)), sparse.static_shape)


@export("sparse.reshape", v1="sparse_reshape")
def reshape(sp_input: Any, shape: Any, name: str | None = None) -> SparseTensor:
    """Reshapes a SparseTensor. One size may be -1.

    Raises:
        ValueError: the known numbers of elements differ, or two sizes are -1.
    """
    sparse = as_sparse(sp_input)
    wanted = casting.cast(shape, dtypes.int64)
    with name_scope(name, "SparseReshape") as scope:
        indices, sizes = sparse_ops.SPARSE_RESHAPE(sparse.indices, sparse.dense_shape, wanted, name=scope)
        known = _reshaped(sparse.static_shape, constant_value(wanted))
        if known.known:
            sizes = constant(list(known), dtypes.int64)
        return _known(SparseTensor(indices, shaping.identity(sparse.values), sizes), known)


def _reshaped(shape: Shape, wanted: Any) -> Shape:
    """The static shape after reshaping to `wanted`, with -1 replaced."""
    if wanted is None:
        return Shape(None)
    sizes = wanted.tolist()
    if sizes.count(-1) > 1:
        raise ValueError(f"At most one dimension can be inferred (-1). Found: {sizes}")
    if not shape.known:
        return Shape(None if size < 0 else size for size in sizes)
    count, given = prod(shape.dims), prod(size for size in sizes if size != -1)  # type: ignore[arg-type]
    if -1 in sizes and given and count % given == 0:
        sizes[sizes.index(-1)] = count // given
    elif -1 in sizes or given != count:
        raise ValueError(f"Cannot reshape a tensor with {count} elements to shape {sizes} ({given} elements).")
    return Shape(sizes)


@export("sparse.transpose", v1="sparse_transpose")
def transpose(sp_input: Any, perm: Any = None, name: str | None = None) -> SparseTensor:
    """Permutes the dimensions into the order `perm`, or reverses them."""
    sparse = as_sparse(sp_input)
    with name_scope(name, "SparseTranspose"):
        rank = sparse.static_shape.rank
        if perm is None:
            perm = (
                np.arange(rank)[::-1].astype(np.int32)
                if rank is not None
                else ranges.range(ranges.size(sparse.dense_shape) - 1, -1, -1)
            )
        known = sparse.static_shape
        order = constant_value(perm) if isinstance(perm, Tensor) else np.asarray(perm)
        if known.dims is not None and order is not None and order.ndim == 1 and len(order) != len(known):
            raise ValueError(f"perm {order.tolist()} must have as many elements as {known} has dimensions.")
        indices = gathering.GATHER_V2(sparse.indices, perm, 1)
        result = reorder(SparseTensor(indices, sparse.values, gathering.GATHER_V2(sparse.dense_shape, perm, 0)))
        if known.dims is not None and order is not None:
            _known(result, Shape(known.dims[int(axis)] for axis in order))
        return result


@export("sparse.expand_dims")
def expand_dims(sp_input: Any, axis: Any = None, name: str | None = None) -> SparseTensor:
    """Inserts a dimension of size 1 at `axis` (last by default)."""
    sparse = as_sparse(sp_input)
    rank = sparse.static_shape.rank
    at: Any = -1 if axis is None else axis
    if not isinstance(at, Tensor) and not hasattr(type(at), "__index__"):
        raise TypeError("axis must be an integer value in range [-rank(sp_input) - 1, rank(sp_input)]")
    with name_scope(name, "expand_dims"):
        known = constant_value(at) if isinstance(at, Tensor) else at
        if rank is None or known is None or np.ndim(known):
            return _expanded(sparse, convert_to_tensor(at))
        at = int(known)
        if not -rank - 1 <= at <= rank:
            raise context.invalid(f"axis {at} is out of range [{-rank - 1}, {rank}]")
        at = at + rank + 1 if at < 0 else at
        zeros = shaping.zeros_like(sparse.indices[:, :1])
        indices = joining.concat([sparse.indices[:, :at], zeros, sparse.indices[:, at:]], 1)
        one = convert_to_tensor(np.array([1], np.int64))
        shape = joining.concat([sparse.dense_shape[:at], one, sparse.dense_shape[at:]], 0)
        return SparseTensor(indices, sparse.values, shape)


def _expanded(sparse: SparseTensor, axis: Tensor) -> SparseTensor:
    """`expand_dims` for an axis or rank that is only known at run time."""
    rank = casting.cast(ranges.size(sparse.dense_shape), axis.dtype.base_dtype)
    at = arithmetic.select(comparison.less(axis, 0), arithmetic.add(arithmetic.add(axis, rank), 1), axis)
    zero, rest = shaping.zeros_like(at), unary_functions.negative(shaping.ones_like(at))
    before = slicing.slice(sparse.indices, joining.PACK([zero, zero]), joining.PACK([rest, at]))
    after = slicing.slice(sparse.indices, joining.PACK([zero, at]), joining.PACK([rest, rest]))
    zeros = shaping.zeros_like(sparse.indices[:, :1])
    first = slicing.slice(sparse.dense_shape, joining.PACK([zero]), joining.PACK([at]))
    last = slicing.slice(sparse.dense_shape, joining.PACK([at]), joining.PACK([rest]))
    shape = joining.concat([first, np.array([1], np.int64), last], 0)
    return SparseTensor(joining.concat([before, zeros, after], 1), sparse.values, shape)


@export("sparse.reset_shape", v1="sparse_reset_shape")
def reset_shape(sp_input: Any, new_shape: Any = None) -> SparseTensor:
    """The same elements in the smallest shape that holds them, or in `new_shape`."""
    sparse = as_sparse(sp_input)
    if new_shape is None:
        largest = arithmetic.maximum(reductions.reduce_max(sparse.indices, 0), np.int64(-1))
        return SparseTensor(
            shaping.identity(sparse.indices), shaping.identity(sparse.values), arithmetic.add(largest, np.int64(1))
        )
    wanted = convert_to_tensor(new_shape)
    wanted.shape.with_rank(1)
    wanted = casting.cast(wanted, dtypes.int64)
    own, asked = constant_value(sparse.dense_shape), constant_value(wanted)
    if own is not None and asked is not None:
        if len(own) != len(asked):
            raise ValueError(f"New shape {asked.tolist()} must have the rank of {own.tolist()}.")
        if (asked < own).any():
            raise ValueError(f"Shapes must not get smaller: {own.tolist()} does not fit in {asked.tolist()}.")
        return SparseTensor(shaping.identity(sparse.indices), shaping.identity(sparse.values), wanted)
    wanted = shaping.reshape(wanted, shaping.shape(sparse.dense_shape))
    fits = reductions.reduce_all(comparison.greater_equal(wanted, sparse.dense_shape))
    check = assertions.assert_op(fits, ["Shapes must not get smaller:", sparse.dense_shape, "does not fit in", wanted])
    with control_dependencies([] if check is None else [check]):
        return SparseTensor(shaping.identity(sparse.indices), shaping.identity(sparse.values), shaping.identity(wanted))


# ---- joining, splitting and selecting ---------------------------------------------------------------------------


@export(v1=("sparse_concat", "sparse.concat"))
def concat(
    axis: Any = None,
    sp_inputs: Any = None,
    name: str | None = None,
    expand_nonconcat_dim: bool = False,
    concat_dim: Any = None,
    expand_nonconcat_dims: bool | None = None,
) -> SparseTensor:
    """Concatenates SparseTensors along `axis`. The other sizes must agree, or are expanded to the largest if requested."""
    axis = _older("axis", axis, "concat_dim", concat_dim)
    return concat_v2(axis, sp_inputs, bool(expand_nonconcat_dim or expand_nonconcat_dims), name)


@export(v2="sparse.concat")
def concat_v2(axis: Any, sp_inputs: Any, expand_nonconcat_dims: bool = False, name: str | None = None) -> SparseTensor:
    """Concatenates SparseTensors along `axis`. The other sizes must agree, or are expanded to the largest if requested."""
    if not isinstance(sp_inputs, (list, tuple)):
        raise TypeError("Inputs must be a list or tuple.")
    parts = [as_sparse(each) for each in sp_inputs]
    if len(parts) == 1:
        return parts[0]
    shapes = [part.dense_shape for part in parts]
    if isinstance(axis, float) or not hasattr(type(axis), "__index__"):
        raise TypeError(f"Expected int for argument 'concat_dim' not {axis!r}.")
    at = operator.index(axis)
    if expand_nonconcat_dims:
        largest = reductions.reduce_max(joining.concat([shaping.reshape(shape, [1, -1]) for shape in shapes], 0), 0)
        after = None if at == -1 else at + 1  # a negative axis counts from the end, so it is valid for any rank
        shapes = [
            joining.concat([largest[:at], shape[at:after], largest[after:] if after is not None else shape[:0]], 0)
            for shape in shapes
        ]
    found = sparse_ops.SPARSE_CONCAT(
        [part.indices for part in parts], [part.values for part in parts], shapes, concat_dim=at, name=name
    )
    indices, values, sizes = found
    if not expand_nonconcat_dims and all(part.static_shape.known for part in parts):
        total = list(parts[0].static_shape)
        total[at] = sum(part.static_shape[at] for part in parts)
        sizes = constant(total, dtypes.int64)
    return SparseTensor(indices, values, sizes)


@export(v1=("sparse_split", "sparse.split"))
def split(
    keyword_required: Any = None,
    sp_input: Any = None,
    num_split: int | None = None,
    axis: Any = None,
    name: str | None = None,
    split_dim: Any = None,
) -> list[SparseTensor]:
    """Splits a SparseTensor into `num_split` parts along `axis`. If the size is not divisible, the first parts are one larger.

    Raises:
        ValueError: an argument is given by position, or is missing.
    """
    if keyword_required is not None:
        raise ValueError("Keyword arguments are required for this function.")
    axis = _older("axis", axis, "split_dim", split_dim)
    if sp_input is None or num_split is None or axis is None:
        raise ValueError("sp_input, num_split and axis are required")
    return split_v2(sp_input, num_split, axis, name)


@export(v2="sparse.split")
def split_v2(
    sp_input: Any = None, num_split: int | None = None, axis: Any = None, name: str | None = None
) -> list[SparseTensor]:
    """Splits a SparseTensor into `num_split` parts along `axis`. If the size is not divisible, the first parts are one larger."""
    if sp_input is None or num_split is None or axis is None:
        raise ValueError("sp_input, num_split and axis are required")
    sparse = as_sparse(sp_input)
    found = sparse_ops.SPARSE_SPLIT(
        axis,
        sparse.indices,
        sparse.values,
        sparse.dense_shape,
        num_split=num_split,
        name=name,
    )
    return [SparseTensor(*parts) for parts in zip(*found)]


@export("sparse.slice", v1="sparse_slice")
def slice(sp_input: Any, start: Any, size: Any, name: str | None = None) -> SparseTensor:
    """Extracts `size[i]` elements from `start[i]` on along every dimension i."""
    sparse = as_sparse(sp_input)
    first, count = (convert_to_tensor(each, dtypes.int64) for each in (start, size))
    with name_scope(name, "SparseSlice") as scope:
        return SparseTensor(
            *sparse_ops.SPARSE_SLICE(sparse.indices, sparse.values, sparse.dense_shape, first, count, name=scope)
        )


@export("sparse.retain", v1="sparse_retain")
def retain(sp_input: Any, to_retain: Any) -> SparseTensor:
    """Keeps the elements for which `to_retain` is true."""
    sparse = as_sparse(sp_input)
    keep = convert_to_tensor(to_retain)
    if keep.static_shape.rank not in (1, None):
        raise ValueError(f"Shape {keep.shape} must have rank 1")
    if not keep.static_shape.compatible(sparse.values.static_shape):
        raise ValueError(f"to_retain of shape {keep.shape} is not for values of shape {sparse.values.shape}")
    places = shaping.reshape(selection.WHERE(keep), [-1])
    return _known(
        SparseTensor(
            gathering.GATHER_V2(sparse.indices, places, 0),
            gathering.GATHER_V2(sparse.values, places, 0),
            shaping.identity(sparse.dense_shape),
        ),
        sparse.static_shape,
    )


@export("sparse.mask", v1="sparse_mask")
def mask(a: IndexedSlices, mask_indices: Any, name: str | None = None) -> IndexedSlices:
    """Removes the rows `mask_indices` from IndexedSlices."""
    with name_scope(name, "sparse_mask"):
        rows = convert_to_tensor(a.indices)
        kept, places = selection.LIST_DIFF(rows, mask_indices)
        return IndexedSlices(gathering.gather(a.values, places, name="sparse_mask"), kept, a.dense_shape)


@export("sparse.fill_empty_rows", v1="sparse_fill_empty_rows")
def fill_empty_rows(sp_input: Any, default_value: Any, name: str | None = None) -> tuple[SparseTensor, Tensor]:
    """Fills column 0 of every empty row with `default_value`. Also returns which rows were empty."""
    sparse = as_sparse(sp_input)
    with name_scope(name, "SparseFillEmptyRows"):
        default = convert_to_tensor(default_value, sparse.dtype.base_dtype)
        found = sparse_reductions.SPARSE_FILL_EMPTY_ROWS(sparse.indices, sparse.values, sparse.dense_shape, default)
        return SparseTensor(found.output_indices, found.output_values, sparse.dense_shape), found.empty_row_indicator


# ---- arithmetic -------------------------------------------------------------------------------------------------


@export(v1=("sparse_add", "sparse.add"))
def add(a: Any, b: Any, threshold: Any = None, thresh: Any = None) -> Any:
    """Adds two tensors, of which at least one is sparse. The result is sparse if both are.

    A sparse result omits sums whose magnitude is below `threshold`.

    Raises:
        TypeError: both tensors are dense.
    """
    threshold = _older("threshold", threshold, "thresh", thresh)
    return add_v2(a, b, 0 if threshold is None else threshold)


@export(v2="sparse.add")
def add_v2(a: Any, b: Any, threshold: Any = 0) -> Any:
    """Adds two tensors, of which at least one is sparse. The result is sparse if both are."""
    if is_sparse(a) and is_sparse(b):
        x, y = as_sparse(a), as_sparse(b)
        limit = convert_to_tensor(threshold, x.dtype.real_dtype.base_dtype, name="threshold")
        indices, values, sizes = sparse_ops.SPARSE_ADD(
            x.indices, x.values, x.dense_shape, y.indices, y.values, y.dense_shape, limit
        )
        return SparseTensor(indices, values, list(x.static_shape) if x.static_shape.known else sizes)
    if not is_sparse(a) and not is_sparse(b):
        raise TypeError("At least one input should be SparseTensor; do you mean to use tf.add()?")
    if is_sparse(b):
        a, b = b, a
    x = as_sparse(a)
    return sparse_with_dense.SPARSE_TENSOR_DENSE_ADD(x.indices, x.values, x.dense_shape, b)


@export("sparse.sparse_dense_matmul", v1=("sparse_tensor_dense_matmul", "sparse.matmul"))
def sparse_dense_matmul(
    sp_a: Any, b: Any, adjoint_a: bool = False, adjoint_b: bool = False, name: str | None = None
) -> Tensor:
    """Multiplies a sparse matrix by a dense one (or a dense one by a sparse one)."""
    if is_sparse(b):
        # a b = (b^H a^H)^H puts the sparse factor first.
        flipped = sparse_dense_matmul(b, sp_a, adjoint_a=not adjoint_b, adjoint_b=not adjoint_a, name=name)
        return shaping.transpose(flipped, [1, 0], conjugate=True)
    sparse = as_sparse(sp_a)
    with name_scope(name, "SparseTensorDenseMatMul"):
        b = convert_to_tensor(b, name="b")
        return sparse_with_dense.SPARSE_TENSOR_DENSE_MAT_MUL(
            sparse.indices, sparse.values, sparse.dense_shape, b, adjoint_a=adjoint_a, adjoint_b=adjoint_b
        )


@export("sparse.maximum", v1="sparse_maximum")
def maximum(sp_a: Any, sp_b: Any, name: str | None = None) -> SparseTensor:
    """The element-wise maximum of two SparseTensors. Missing elements count as zero."""
    return _extreme(sparse_ops.SPARSE_SPARSE_MAXIMUM, "SparseSparseMaximum", sp_a, sp_b, name)


@export("sparse.minimum", v1="sparse_minimum")
def minimum(sp_a: Any, sp_b: Any, name: str | None = None) -> SparseTensor:
    """The element-wise minimum of two SparseTensors. Missing elements count as zero."""
    return _extreme(sparse_ops.SPARSE_SPARSE_MINIMUM, "SparseSparseMinimum", sp_a, sp_b, name)


def _extreme(definition: Any, default: str, sp_a: Any, sp_b: Any, name: str | None) -> SparseTensor:
    a, b = as_sparse(sp_a), as_sparse(sp_b)
    with name_scope(name, default) as scope:
        indices, values = definition(a.indices, a.values, a.dense_shape, b.indices, b.values, b.dense_shape, name=scope)
    return SparseTensor(indices, values, a.dense_shape)


@export("sparse.softmax", v1="sparse_softmax")
def softmax(sp_input: Any, name: str | None = None) -> SparseTensor:
    """The softmax over the last dimension of the elements that are present."""
    sparse = as_sparse(sp_input)
    with name_scope(name, "SparseSoftmax"):
        values = sparse_reductions.SPARSE_SOFTMAX(sparse.indices, sparse.values, sparse.dense_shape)
        return SparseTensor(sparse.indices, values, sparse.dense_shape)


def _reduction_axes(sparse: SparseTensor, axis: Any) -> Any:
    if axis is not None:
        return axis
    rank = sparse.static_shape.rank
    return ranges.range(ranges.size(sparse.dense_shape)) if rank is None else np.arange(rank, dtype=np.int32)


def _older_arguments(axis: Any, keepdims: Any, reduction_axes: Any, keep_dims: Any) -> tuple[Any, Any]:
    axis, _ = reductions.older_arguments(axis, None, reduction_axes, None)
    keep = _older("keepdims", keepdims, "keep_dims", keep_dims)
    return axis, False if keep is None else keep


def _reduce(definition: OpDefinition, sp_input: Any, axis: Any, keepdims: bool, name: str | None = None) -> Any:
    sparse = as_sparse(sp_input)
    axes = _reduction_axes(sparse, axis)
    found = definition(sparse.indices, sparse.values, sparse.dense_shape, axes, keep_dims=keepdims, name=name)
    return SparseTensor(*found) if len(definition.outputs) == 3 else found


@export(v1=("sparse_reduce_sum", "sparse.reduce_sum"))
def reduce_sum(
    sp_input: Any, axis: Any = None, keepdims: Any = None, reduction_axes: Any = None, keep_dims: Any = None
) -> Tensor:
    """The sum over `axis` (all dimensions for None), as a dense tensor."""
    axis, keep = _older_arguments(axis, keepdims, reduction_axes, keep_dims)
    return _reduce(sparse_reductions.SPARSE_REDUCE_SUM, sp_input, axis, keep)


@export(v1=("sparse_reduce_sum_sparse", "sparse.reduce_sum_sparse"))
def reduce_sum_sparse(
    sp_input: Any, axis: Any = None, keepdims: Any = None, reduction_axes: Any = None, keep_dims: Any = None
) -> SparseTensor:
    """The sum over `axis` (all dimensions for None), as a SparseTensor."""
    axis, keep = _older_arguments(axis, keepdims, reduction_axes, keep_dims)
    return _reduce(sparse_reductions.SPARSE_REDUCE_SUM_SPARSE, sp_input, axis, keep)


@export(v1=("sparse_reduce_max", "sparse.reduce_max"))
def reduce_max(
    sp_input: Any, axis: Any = None, keepdims: Any = None, reduction_axes: Any = None, keep_dims: Any = None
) -> Tensor:
    """The maximum of the elements that are present over `axis` (zero if there are none), as a dense tensor."""
    axis, keep = _older_arguments(axis, keepdims, reduction_axes, keep_dims)
    return _reduce(sparse_reductions.SPARSE_REDUCE_MAX, sp_input, axis, keep)


@export(v1=("sparse_reduce_max_sparse", "sparse.reduce_max_sparse"))
def reduce_max_sparse(
    sp_input: Any, axis: Any = None, keepdims: Any = None, reduction_axes: Any = None, keep_dims: Any = None
) -> SparseTensor:
    """The maximum of the elements that are present over `axis`, as a SparseTensor."""
    axis, keep = _older_arguments(axis, keepdims, reduction_axes, keep_dims)
    return _reduce(sparse_reductions.SPARSE_REDUCE_MAX_SPARSE, sp_input, axis, keep)


@export(v2="sparse.reduce_sum")
def reduce_sum_v2(
    sp_input: Any, axis: Any = None, keepdims: Any = None, output_is_sparse: bool = False, name: str | None = None
) -> Any:
    """The sum over `axis` (all dimensions for None), dense or sparse."""
    definitions = sparse_reductions.SPARSE_REDUCE_SUM, sparse_reductions.SPARSE_REDUCE_SUM_SPARSE
    return _reduce(definitions[bool(output_is_sparse)], sp_input, axis, False if keepdims is None else keepdims, name)


@export(v2="sparse.reduce_max")
def reduce_max_v2(
    sp_input: Any, axis: Any = None, keepdims: Any = None, output_is_sparse: bool = False, name: str | None = None
) -> Any:
    """The maximum of the elements that are present over `axis`, dense or sparse."""
    definitions = sparse_reductions.SPARSE_REDUCE_MAX, sparse_reductions.SPARSE_REDUCE_MAX_SPARSE
    return _reduce(definitions[bool(output_is_sparse)], sp_input, axis, False if keepdims is None else keepdims, name)


@export(v2="sparse.map_values")
def map_values(op: Any, *args: Any, **kwargs: Any) -> SparseTensor:
    """Applies `op` to the values of SparseTensors with equal indices. Returns a SparseTensor.

    Raises:
        ValueError: there is no SparseTensor among the arguments.
    """
    found = [each for each in (*args, *kwargs.values()) if isinstance(each, SparseTensor)]
    if not found:
        raise ValueError("No SparseTensor in argument list of map_values")

    def values(item: Any) -> Any:
        return item.values if isinstance(item, SparseTensor) else item

    return found[0].with_values(
        op(*[values(item) for item in args], **{key: values(item) for key, item in kwargs.items()})
    )


# ---- operators on a sparse and a dense tensor -------------------------------------------------------------------


def _operator(definition: Any, name: str) -> Any:
    def apply(self: SparseTensor, other: Any) -> SparseTensor:
        with name_scope(None, name, [other]) as scope:
            dense = convert_to_tensor(other, self.dtype.base_dtype, name="y")
            values = definition(self.indices, self.values, self.dense_shape, dense, name=scope)
            return SparseTensor(self.indices, values, self.dense_shape)

    return apply


def _dense_times(self: SparseTensor, other: Any) -> Any:
    return self * other if isinstance(other, Tensor) else NotImplemented


SparseTensor.__rmul__ = _dense_times  # type: ignore[attr-defined]
SparseTensor.__mul__ = _operator(sparse_with_dense.SPARSE_DENSE_CWISE_MUL, "mul")  # type: ignore[attr-defined]
SparseTensor.__truediv__ = _operator(sparse_with_dense.SPARSE_DENSE_CWISE_DIV, "truediv")  # type: ignore[attr-defined]
SparseTensor.__div__ = _operator(sparse_with_dense.SPARSE_DENSE_CWISE_DIV, "div")  # type: ignore[attr-defined]
